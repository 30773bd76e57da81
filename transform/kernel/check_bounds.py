"""CheckBounds: accesses that are not proved to stay inside their buffers are asserted to.

    for i in range(n):          assert n <= 0 or n <= m, "index out of range for 'y' (dimension 0): ..."
        y[i] = x[i]             for i in range(n):
                                    y[i] = x[i]

An index is proved by the ranges of loops and blocks, by what binds say, and by the conditions that hold where it
stands: branches, lazy choices, predicates, earlier assertions. What is left becomes an `AssertStmt` of kind BoundsError
before the statement with the access, or further out:

    no loop variable in it        before the loop, for a loop that runs
    linear in the loop variable   before the loop, at the first or last iteration, where all iterations run
    reads memory (a gather)       right before the statement, after the assertions of what it reads itself; nowhere
                                  where an assertion before has said it of every element of that memory

A loop or a block variable whose number of iterations may be negative gets max(number, 0): later passes count on extents
that are sizes, as those of buffers are, which are asserted where memory is taken.

An access that a condition guards is asserted where the condition holds. Assertions that stand already are facts, so a
second run changes nothing. An assumption (T.assume) becomes an assertion as well: it is a fact afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

from weft.ir import IRModule, replace, walk
from weft.ir.dim import Dim
from weft.ir.kernel.prim import binary
from weft.ir.tensor import (
    PREFETCH,
    AllocBuffer,
    AssertStmt,
    AttrStmt,
    Binary,
    Bind,
    Block,
    Break,
    BufferStore,
    DeclBuffer,
    Evaluate,
    Extent,
    For,
    IfThenElse,
    IntImm,
    IterVar,
    PrimCall,
    PrimExpr,
    PrimFunc,
    PrimVar,
    Return,
    SeqStmt,
    Stmt,
    While,
)
from weft.support.records import dataclass
from weft.transform.analysis.index_analyzer import IndexAnalyzer, nonzero_factors
from weft.transform.analysis.indices.exactness import is_reinterpreted
from weft.transform.analysis.indices.facts import Facts, negated
from weft.transform.infra.base import FunctionPass
from weft.transform.kernel.bounds.accesses import AccessChecks
from weft.transform.kernel.bounds.asserted_elements import asserted_elements, unchanged_buffers
from weft.transform.kernel.bounds.checks import Check, Placement, below_largest, changed
from weft.transform.kernel.bounds.jumps import is_loud
from weft.transform.kernel.bounds.loops import before_loop, reduction_loops
from weft.transform.kernel.bounds.sizes import with_bound_sizes
from weft.transform.kernel.bounds.values import enter_iteration, parameter_facts
from weft.transform.kernel.bounds.what_follows import facts_after

__all__ = ["CheckBounds", "check_bounds"]


@dataclass(frozen=True)
class CheckBounds(FunctionPass):
    """Assert what is not proved: that every access of a tensor-level function stays inside its buffer."""

    kinds: ClassVar[type | tuple[type, ...]] = PrimFunc

    def run_function(self, name: str, function: PrimFunc, module: IRModule) -> PrimFunc:
        """The function with assertions; the same object when it needs none."""
        return check_bounds(function, module)


def check_bounds(function: PrimFunc, module: IRModule | None = None) -> PrimFunc:
    """A tensor-level function whose accesses are all proved or asserted to be in range.

    So are the views that it declares, within the memory that they view, and the buffers that the functions of the
    module which it calls take, within those that they are given.

    >>> from weft.ir.tensor import Buffer, BufferLoad, BufferStore
    >>> n, m, i = (PrimVar(name, "int64") for name in "nmi")
    >>> x, y = Buffer("x", (n,)), Buffer("y", (m,))
    >>> loop = For(i, 0, n, BufferStore(y, BufferLoad(x, (i,)), (i,)))
    >>> check_bounds(PrimFunc((x, y), loop)).body.stmts[0].message
    "index out of range for 'y' (dimension 0): i must lie in [0, m)"
    """
    function = with_bound_sizes(function)
    return replace(function, body=_Checker(function, module).body())


class _Checker:
    def __init__(self, function: PrimFunc, module: IRModule | None = None) -> None:
        self.function = function
        self.known = IndexAnalyzer()
        self.placement = Placement(self.known)
        self.accesses = AccessChecks(self.known, self.placement, module)
        self.chain: tuple[PrimVar, ...] = ()  # the loops of the perfect nest that ends here
        self.quiet: dict[int, tuple[Stmt, bool]] = {}
        self.unchanged = unchanged_buffers(function)

    def body(self) -> Stmt:
        """The whole body."""
        facts = parameter_facts(self.function, self.known)
        stmt, checks = self.statement(self.function.body, facts)
        return self.placement.placed(checks, stmt, facts)

    # Statements -------------------------------------------------------------------------------------------------------

    def statement(self, stmt: Stmt, facts: Facts) -> tuple[Stmt, list[Check]]:
        """The statement with assertions inside, and the checks that may stand before it or further out."""
        chain, self.chain = self.chain, ()
        if isinstance(stmt, (For, Block)):
            self.chain = chain
        method = _STATEMENTS.get(type(stmt))
        if method is None:
            return stmt, []
        return method(self, stmt, facts)

    def _leaf(self, stmt: AssertStmt | Bind | Evaluate | Return, facts: Facts) -> tuple[Stmt, list[Check]]:
        part = stmt.condition if isinstance(stmt, AssertStmt) else stmt.value
        checks, _ = self.accesses.expressions(facts, part)
        return self.placement.outside(checks, stmt, facts)

    def _store(self, stmt: BufferStore, facts: Facts) -> tuple[Stmt, list[Check]]:
        def visit(facts: Facts) -> Facts:
            facts = self.accesses.visit(stmt.value, (), facts)
            return self.accesses.visit_access(stmt.buffer, stmt.indices, stmt.predicate, stmt.span, (), facts)

        checks, _ = self.accesses.checks_of(facts, visit)
        return self.placement.outside(checks, stmt, facts)

    def _allocate(self, stmt: AllocBuffer, facts: Facts) -> tuple[Stmt, list[Check]]:
        checks, _ = self.accesses.checks_of(facts, partial(self.accesses.memory, stmt.buffer, stmt.span))
        return self.placement.outside(checks, stmt, facts)

    def _declare(self, stmt: DeclBuffer, facts: Facts) -> tuple[Stmt, list[Check]]:
        def visit(facts: Facts) -> Facts:
            facts = self.accesses.visit(stmt.buffer.data, (), facts)
            return self.accesses.view(stmt.buffer, stmt.buffer.data, stmt.span, (), facts)

        checks, _ = self.accesses.checks_of(facts, visit)
        return self.placement.outside(checks, stmt, facts)

    def _evaluate(self, stmt: Evaluate, facts: Facts) -> tuple[Stmt, list[Check]]:
        new, checks = self._leaf(stmt, facts)
        call = stmt.value
        if isinstance(call, PrimCall) and call.op == "assume" and isinstance(call.args[0], PrimExpr):
            condition = call.args[0]
            if not self.known.holds(condition, facts) and not self.placement.is_asserted(condition, facts):
                promise = AssertStmt(condition, "an assumption does not hold", "BoundsError", span=stmt.span)
                parts = new.stmts if isinstance(new, SeqStmt) else (new,)
                new = SeqStmt((*parts[:-1], promise, parts[-1]), span=stmt.span)
        return new, checks

    def _sequence(self, stmt: SeqStmt, facts: Facts) -> tuple[Stmt, list[Check]]:
        out: list[Stmt] = []
        up: list[Check] = []
        defined: set[PrimVar] = set()
        quiet = True
        for part in stmt.stmts:
            new, checks = self.statement(part, facts)
            for check in checks:
                left = self.placement.left(check, facts)
                if left is None:
                    continue
                if quiet and not self.placement.uses(left) & defined:
                    up.append(left)
                    facts = self.placement.learn(left, facts)
                else:
                    asserts, facts = self.placement.asserts([left], facts)
                    out.extend(asserts)
            for item in new.stmts if isinstance(new, SeqStmt) else (new,):
                out.append(item)
                facts = self._after(item, facts)
            quiet = quiet and self._is_quiet(part)
            if isinstance(part, Bind):
                defined.add(part.var)
        same = len(out) == len(stmt.stmts) and all(a is b for a, b in zip(out, stmt.stmts, strict=True))
        return (stmt if same else replace(stmt, stmts=tuple(out))), up

    def _after(self, stmt: Stmt, facts: Facts) -> Facts:
        """What is known after a statement."""
        facts = facts_after(self.known, stmt, facts)
        facts = facts.with_elements(*asserted_elements(stmt, self.unchanged))
        if isinstance(stmt, AssertStmt):
            return facts.with_asserted(stmt.condition, self.placement.key(stmt.condition))
        return facts

    def _is_quiet(self, stmt: Stmt) -> bool:
        """Whether a statement ends, raises nothing but what is raised for bounds, and goes on to the next one."""
        found = self.quiet.get(id(stmt))
        if found is None:
            found = self.quiet[id(stmt)] = (stmt, not any(map(is_loud, walk(stmt))))
        return found[1]

    def _for(self, stmt: For, facts: Facts) -> tuple[Stmt, list[Check]]:
        chain, before = self.chain, facts
        count = may_be_negative(stmt.extent)
        header, facts = self.accesses.expressions(facts, stmt.start, count, stmt.step)
        start, extent = self.known.dim(stmt.start, facts), self.known.dim(count, facts)
        ranges, facts = self.accesses.checks_of(facts, lambda facts: self._range_fits(stmt, start, extent, facts))
        header = [*header, *ranges]
        inside = self.known.range(stmt.loop_var, start, extent, facts)
        factors = nonzero_factors(self.known, count, facts)
        inside = inside.with_facts(*(self.placement.fact(x - 1, stmt.loop_var) for x in factors)).after_write()
        self.chain = (*chain, stmt.loop_var)
        body, checks = self.statement(stmt.body, inside)
        stay: list[Check] = []
        for check in checks:
            moved = before_loop(self.known, check, stmt, start, extent, facts, is_quiet=self._is_quiet(stmt.body))
            if moved is None:
                stay.append(check)
            elif self.placement.left(moved, facts) is not None:
                header.append(moved)
        size = _at_least_none(self.known, stmt.extent, facts)
        new = replace(stmt, extent=size, body=self.placement.placed(stay, body, inside))
        return self.placement.outside(header, new, before)

    def _range_fits(self, loop: For, start: Dim, extent: Dim, facts: Facts) -> Facts:
        """The start and the end of a loop are the numbers that they say."""
        message = f"the range of the loop of {loop.loop_var.name!r} does not fit 64 bits"
        facts = self.accesses.operands_are_exact(message, (loop.start, loop.extent), (), loop.span, facts)
        signs = tuple(
            dim
            for part, dim in ((loop.start, start), (loop.extent, extent))
            if isinstance(part, PrimExpr) and is_reinterpreted(part.dtype) and not self.known.proves(dim, facts)
        )
        if signs:
            self.accesses.found.append(Check(message, signs, (), (), loop.span))
            facts = facts.with_facts(*map(self.placement.fact, signs))
        ends = dict.fromkeys((start, extent, start + extent))
        left = tuple(dim for dim in ends if self.known.symbols.is_computed(dim) or not self.known.is_exact(dim, facts))
        if not left:
            return facts
        self.accesses.found.append(Check(message, (), (), left, loop.span))
        return facts.with_facts(*map(self.placement.fact, below_largest(left)))

    def _while(self, stmt: While, facts: Facts) -> tuple[Stmt, list[Check]]:
        checks, _ = self.accesses.expressions(facts.after_write(), stmt.condition)
        inside = self.known.assume(stmt.condition, facts.after_write())
        body, inner = self.statement(stmt.body, inside)
        body = self.placement.placed(inner, body, inside)
        each = [check for check in checks if self.placement.is_volatile(check)]
        if not each:
            return replace(stmt, body=body), checks
        # The condition reads memory that iterations may change: what it reads is asserted in every one.
        asserts, _ = self.placement.asserts(each, facts.after_write())
        leave = IfThenElse(negated(stmt.condition), Break(span=stmt.span), span=stmt.span)
        loop = replace(stmt, condition=IntImm(1, "bool"), body=SeqStmt((*asserts, leave, body), span=stmt.span))
        return loop, [check for check in checks if not self.placement.is_volatile(check)]

    def _if(self, stmt: IfThenElse, facts: Facts) -> tuple[Stmt, list[Check]]:
        before = facts
        header, facts = self.accesses.expressions(facts, stmt.condition)
        branches: list[Stmt | None] = []
        for branch, test in ((stmt.then_body, stmt.condition), (stmt.else_body, negated(stmt.condition))):
            if branch is None:
                branches.append(None)
                continue
            inside = self.known.assume(test, facts)
            new, checks = self.statement(branch, inside)
            branches.append(self.placement.placed(checks, new, inside))
        return self.placement.outside(header, replace(stmt, then_body=branches[0], else_body=branches[1]), before)

    def _attribute(self, stmt: AttrStmt, facts: Facts) -> tuple[Stmt, list[Check]]:
        before, header = facts, list[Check]()
        if stmt.key != PREFETCH:  # which may name a place that is not there
            header, facts = self.accesses.expressions(facts, stmt.value)
        inside = facts
        item = stmt.node
        new_var = isinstance(item, IterVar) and item.var not in self.known.values
        if isinstance(item, IterVar) and new_var and isinstance(stmt.value, (int, PrimExpr)):
            inside = self.known.range(item.var, 0, self.known.dim(stmt.value, facts), facts).after_write()
        body, checks = self.statement(stmt.body, inside)
        stay = checks if new_var else []
        new = replace(stmt, body=self.placement.placed(stay, body, inside))
        return self.placement.outside([*header, *(check for check in checks if check not in stay)], new, before)

    # Blocks -----------------------------------------------------------------------------------------------------------

    def _block(self, stmt: Block, facts: Facts) -> tuple[Stmt, list[Check]]:
        """A block; its init runs once even where a loop of the reduction is empty, so those loops prove nothing of it.

        The loops are those of a perfect nest whose variables only the reduction uses.
        """
        always, outer = reduction_loops(stmt, self.chain), facts
        self.chain = ()
        parts = [part for item in stmt.iter_vars for part in (item.value, item.start, item.extent)]
        header, facts = self.accesses.expressions(facts, *parts)
        for item in stmt.iter_vars:
            message = f"the variable {item.var.name!r} of block {stmt.name!r} does not fit 64 bits"
            values = () if item.value is None else (item.value,)
            visit = partial(self.accesses.operands_are_exact, message, values, (), item.span or stmt.span)
            exact, facts = self.accesses.checks_of(facts, visit)
            header += exact
        sizes = [_at_least_none(self.known, item.extent, facts) for item in stmt.iter_vars]
        stmt = _counted(stmt, [may_be_negative(item.extent) for item in stmt.iter_vars])
        defined: set[PrimVar] = set()
        for item in stmt.iter_vars:
            facts = enter_iteration(self.known, item, facts)
            if item.var not in self.known.values or item.var in self.known.moving:
                defined.add(item.var)
        inside, domain = facts, []
        if stmt.predicate is not None:
            tested, inside = self.accesses.expressions(inside, stmt.predicate)
            header += tested
            inside = self.known.assume(stmt.predicate, inside)
        for item in stmt.iter_vars:
            check = _domain_check(self.known, stmt, item, inside, always if stmt.init is not None else frozenset())
            if check is not None:
                domain.append(check)
                inside = self.placement.learn(check, inside)
        for buffer in stmt.alloc_buffers:
            found, inside = self.accesses.checks_of(inside, partial(self.accesses.memory, buffer, stmt.span))
            domain += found
        for match in stmt.match_buffers:
            found, inside = self.accesses.checks_of(inside, partial(self.accesses.match, match))
            domain += found
            defined |= {x for x in (*match.buffer.shape, *(match.buffer.strides or ())) if isinstance(x, PrimVar)}
        body, checks = self.statement(stmt.body, inside)
        init, first = stmt.init, []
        if init is not None:
            early = inside.without_owners(set(always))
            init, first = self.statement(init, early)
            first = [changed(check, always=check.always | always) for check in first]
            init_front = [check for check in (*domain, *first) if self._stays(check, stmt, defined)]
            init = self.placement.placed(init_front, init, early)
        front = [check for check in (*domain, *checks) if self._stays(check, stmt, defined)]
        up = [check for check in (*domain, *first, *checks) if not self._stays(check, stmt, defined)]
        before = facts
        for check in domain:
            before = before if check in front else self.placement.learn(check, before)
        body = self.placement.placed(
            front, body, before if stmt.predicate is None else self.known.assume(stmt.predicate, before)
        )
        new = _counted(replace(stmt, body=body, init=init), sizes)
        return self.placement.outside([*header, *up], new, outer)

    def _stays(self, check: Check, block: Block, defined: set[PrimVar]) -> bool:
        return block.predicate is not None or bool(self.placement.uses(check) & defined)


def _at_least_none(known: IndexAnalyzer, extent: Extent, facts: Facts) -> Extent:
    """A number of iterations that is never negative, whatever loops stand around it."""
    count = may_be_negative(extent)
    if isinstance(count, int) or known.proves(known.dim(count, facts), facts.without_ranges()):
        return count
    return extent if count is not extent else binary("max", count, 0)


def _counted(block: Block, extents: Sequence[Extent]) -> Block:
    """A block with other numbers of iterations of its variables."""
    if all(item.extent is extent for item, extent in zip(block.iter_vars, extents, strict=True)):
        return block
    items = zip(block.iter_vars, extents, strict=True)
    return replace(block, iter_vars=tuple(replace(item, extent=extent) for item, extent in items))


def may_be_negative(extent: Extent) -> Extent:
    """The number that stands in max(number, 0); any other extent itself."""
    if isinstance(extent, Binary) and extent.kind == "max" and isinstance(extent.b, IntImm) and extent.b.value == 0:
        return extent.a
    return extent


def _domain_check(
    known: IndexAnalyzer, block: Block, item: IterVar, facts: Facts, always: frozenset[PrimVar]
) -> Check | None:
    if item.value is None or item.var not in known.values:
        return None
    if item.kind not in ("reduce", "scan") and always:
        facts = facts.without_owners(set(always))
    else:
        always = frozenset()
    value, start = known.values[item.var], known.dim(item.start, facts)
    needs = (value - start, start + known.dim(item.extent, facts) - 1 - value)
    left = tuple(need for need in needs if not known.proves(need, facts))
    message = f"the variable {item.var.name!r} of block {block.name!r} is outside its range"
    return Check(message, left, span=item.span or block.span, always=always) if left else None


_STATEMENTS: dict[type, Callable[[_Checker, Any, Facts], tuple[Stmt, list[Check]]]] = {
    SeqStmt: _Checker._sequence,
    BufferStore: _Checker._store,
    For: _Checker._for,
    While: _Checker._while,
    IfThenElse: _Checker._if,
    Block: _Checker._block,
    AllocBuffer: _Checker._allocate,
    Bind: _Checker._leaf,
    DeclBuffer: _Checker._declare,
    AssertStmt: _Checker._leaf,
    AttrStmt: _Checker._attribute,
    Evaluate: _Checker._evaluate,
    Return: _Checker._leaf,
}
