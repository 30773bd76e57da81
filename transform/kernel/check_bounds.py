"""CheckBounds: accesses that are not proved to stay inside their buffers are asserted to.

    for i in range(n):          assert n <= 0 or n <= m, "index out of range for 'y' (dimension 0): ..."
        y[i] = x[i]             for i in range(n):
                                    y[i] = x[i]

An index is proved by the ranges of loops and blocks, by what binds say, and by the conditions that hold where it
stands: branches, lazy choices, predicates, earlier assertions. What is left becomes an `AssertStmt` of kind BoundsError
before the statement with the access, or further out:

    no loop variable in it        before the loop, for a loop that runs
    linear in the loop variable   before the loop, at the first or last iteration, where all iterations run
    reads memory (a gather)       right before the statement, after the assertions of what it reads itself

An access that a condition guards is asserted where the condition holds. Assertions that stand already are facts, so a
second run changes nothing. An assumption (T.assume) becomes an assertion as well: it is a fact afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from weft import dtypes
from weft.errors import ShapeError, Span
from weft.ir import IRModule, replace, structural_hash, walk
from weft.ir.dim import Dim
from weft.ir.graph import GlobalVar
from weft.ir.kernel.intrinsics import INTRINSICS
from weft.ir.kernel.prim import as_expr, binary, buffer_strides, cast
from weft.ir.tensor import (
    PREFETCH,
    AllocBuffer,
    AssertStmt,
    AttrStmt,
    Binary,
    Bind,
    Block,
    Break,
    Broadcast,
    Buffer,
    BufferLoad,
    BufferStore,
    Cast,
    Continue,
    DeclBuffer,
    Evaluate,
    For,
    IfThenElse,
    IntImm,
    IterVar,
    Let,
    MatchBufferRegion,
    PrimCall,
    PrimExpr,
    PrimFunc,
    PrimVar,
    Ramp,
    Return,
    Select,
    SeqStmt,
    Shuffle,
    Stmt,
    Unary,
    While,
)
from weft.transform.analysis.exactness import LARGEST, limits_of, most_elements
from weft.transform.analysis.facts import Fact, Facts, conjunction, disjunction, negated, reads_memory
from weft.transform.analysis.index_analyzer import IndexAnalyzer
from weft.transform.analysis.views import call_views, span_within
from weft.transform.infra.base import FunctionPass

__all__ = ["CheckBounds", "check_bounds"]

_JUMPS = (Break, Continue, Return)
_QUOTIENTS = frozenset({"floordiv", "floormod", "truncdiv", "truncmod", "min", "max"})


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

    >>> n, m, i = (PrimVar(name, "int64") for name in "nmi")
    >>> x, y = Buffer("x", (n,)), Buffer("y", (m,))
    >>> loop = For(i, 0, n, BufferStore(y, BufferLoad(x, (i,)), (i,)))
    >>> check_bounds(PrimFunc((x, y), loop)).body.stmts[0].message
    "index out of range for 'y' (dimension 0): i must lie in [0, m)"
    """
    return replace(function, body=_Checker(function, module).body())


@dataclass(frozen=True)
class _Check:
    """What must hold before a statement wherever the guards hold: dimensions nonnegative, and numbers of 64 bits."""

    message: str
    needs: tuple[Dim, ...]
    guards: tuple[PrimExpr, ...] = ()
    exact: tuple[Dim, ...] = ()
    span: Span | None = None
    always: frozenset[PrimVar] = frozenset()  # loops without which the access happens, too (see `_block`)


class _Checker:
    def __init__(self, function: PrimFunc, module: IRModule | None = None) -> None:
        self.function = function
        self.module = module
        self.known = IndexAnalyzer()
        self.chain: tuple[PrimVar, ...] = ()  # the loops of the perfect nest that ends here
        self.found: list[_Check] = []
        self.conditions: dict[Any, tuple[PrimExpr, tuple[PrimExpr, ...]]] = {}
        self.keys: dict[int, tuple[PrimExpr, int]] = {}
        self.quiet: dict[int, tuple[Stmt, bool]] = {}

    def body(self) -> Stmt:
        """The whole body."""
        facts = self._parameters()
        stmt, checks = self.statement(self.function.body, facts)
        return self._placed(checks, stmt, facts)

    def _parameters(self) -> Facts:
        facts = Facts()
        buffers = [param for param in self.function.params if isinstance(param, Buffer)]
        sizes: dict[PrimVar, int] = {}
        for buffer in buffers:
            for extent in buffer.shape:
                if isinstance(extent, PrimVar):
                    sizes[extent] = min(sizes.get(extent, LARGEST), most_elements(buffer))
        for param in self.function.params:
            if isinstance(param, PrimVar) and param not in sizes and dtypes.is_integer(param.dtype):
                facts = self.known.unknown(param, facts)
        for buffer in buffers:
            layout = (*buffer.shape, *(buffer.strides or ()), buffer.elem_offset)
            for extent in layout:
                if isinstance(extent, PrimVar) and extent not in self.known.values:
                    if extent in sizes:
                        self.known.size(extent, sizes[extent])
                    else:
                        facts = self.known.unknown(extent, facts)
        for buffer in buffers:
            self.known.exactness.exists(buffer, tuple(self.known.dim(extent, facts) for extent in buffer.shape))
        sides = [self.known.dim(extent, facts) for buffer in buffers for extent in buffer.shape]
        return facts.with_facts(*(Fact(side) for side in sides if not self.known.proves(side, facts)))

    # Placing ----------------------------------------------------------------------------------------------------------

    def _condition(self, check: _Check) -> PrimExpr:
        key = (check.needs, check.exact, tuple(map(id, check.guards)))
        if key not in self.conditions:
            self.conditions[key] = (self._built(check), check.guards)  # the guards stay alive, and with them their ids
        return self.conditions[key][0]

    def _built(self, check: _Check) -> PrimExpr:
        exact = map(self.known.exact_condition, check.exact)
        needed = conjunction((*exact, *(self.known.condition(need) for need in check.needs)))
        return disjunction((*(negated(guard) for guard in check.guards), needed))

    def _key(self, condition: PrimExpr) -> int:
        """The structural hash of a condition, computed once: guards can be long."""
        found = self.keys.get(id(condition))
        if found is None:
            found = self.keys[id(condition)] = (condition, structural_hash(condition))
        return found[1]

    def _is_volatile(self, check: _Check) -> bool:
        dims = (*check.needs, *check.exact)
        return any(map(self.known.is_volatile, dims)) or any(map(reads_memory, check.guards))

    def _uses(self, check: _Check) -> set[PrimVar]:
        needed = {variable for dim in (*check.needs, *check.exact) for variable in self.known.variables(dim)}
        return needed | {part for guard in check.guards for part in walk(guard) if isinstance(part, PrimVar)}

    def _left(self, check: _Check, facts: Facts) -> _Check | None:
        """What of a check the facts do not say."""
        if self._is_asserted(self._condition(check), facts):
            return None
        inside = facts
        for guard in check.guards:
            inside = self.known.assume(guard, inside)
        needs = tuple(need for need in check.needs if not self.known.proves(need, inside))
        exact = tuple(dim for dim in check.exact if not self.known.is_exact(dim, inside))
        guards = tuple(guard for guard in check.guards if not self.known.holds(guard, facts))
        if not needs and not exact:
            return None
        never = tuple(need for need in needs if isinstance(need, int))  # what remains is negative
        check = _changed(check, needs=never[:1] or needs, guards=guards, exact=exact)
        return None if self._is_asserted(self._condition(check), facts) else check

    def _is_asserted(self, condition: PrimExpr, facts: Facts) -> bool:
        return bool(facts.asserted) and facts.has_asserted(condition, self._key(condition))

    def _learn(self, check: _Check, facts: Facts) -> Facts:
        condition = self._condition(check)
        if check.guards:
            return self.known.assume(condition, facts, exact=True).with_asserted(condition, self._key(condition))
        new = map(self._fact, (*check.needs, *_below_largest(check.exact)))
        return facts.with_facts(*new).with_asserted(condition, self._key(condition))

    def _asserts(self, checks: Iterable[_Check], facts: Facts) -> tuple[list[Stmt], Facts]:
        out: list[Stmt] = []
        for check in checks:
            left = self._left(check, facts)
            if left is not None:
                out.append(AssertStmt(self._condition(left), left.message, "BoundsError", span=left.span))
                facts = self._learn(left, facts)
        return out, facts

    def _placed(self, checks: Iterable[_Check], stmt: Stmt, facts: Facts) -> Stmt:
        """The statement after its assertions."""
        asserts, _ = self._asserts(checks, facts)
        return SeqStmt((*asserts, stmt), span=stmt.span) if asserts else stmt

    def _outside(self, checks: Sequence[_Check], stmt: Stmt, facts: Facts) -> tuple[Stmt, list[_Check]]:
        """A statement with the checks that read memory right before it, and the others for further out."""
        up = [check for check in checks if not self._is_volatile(check)]
        if len(up) == len(checks):
            return stmt, up
        for check in up:
            facts = self._learn(check, facts)
        return self._placed([check for check in checks if self._is_volatile(check)], stmt, facts), up

    # Statements -------------------------------------------------------------------------------------------------------

    def statement(self, stmt: Stmt, facts: Facts) -> tuple[Stmt, list[_Check]]:
        """The statement with assertions inside, and the checks that may stand before it or further out."""
        chain, self.chain = self.chain, ()
        if isinstance(stmt, (For, Block)):
            self.chain = chain
        method = _STATEMENTS.get(type(stmt))
        if method is None:
            return stmt, []
        return method(self, stmt, facts)

    def _checks_of(self, facts: Facts, visit: Callable[[Facts], Facts]) -> tuple[list[_Check], Facts]:
        outer, self.found = self.found, []
        facts = visit(facts)
        found, self.found = self.found, outer
        return found, facts

    def _expressions(self, facts: Facts, *parts: Any) -> tuple[list[_Check], Facts]:
        def visit(facts: Facts) -> Facts:
            for part in parts:
                facts = self._visit(part, (), facts)
            return facts

        return self._checks_of(facts, visit)

    def _leaf(self, stmt: AssertStmt | Bind | Evaluate | Return, facts: Facts) -> tuple[Stmt, list[_Check]]:
        part = stmt.condition if isinstance(stmt, AssertStmt) else stmt.value
        checks, _ = self._expressions(facts, part)
        return self._outside(checks, stmt, facts)

    def _store(self, stmt: BufferStore, facts: Facts) -> tuple[Stmt, list[_Check]]:
        def visit(facts: Facts) -> Facts:
            facts = self._visit(stmt.value, (), facts)
            return self._visit_access(stmt.buffer, stmt.indices, stmt.predicate, stmt.span, (), facts)

        checks, _ = self._checks_of(facts, visit)
        return self._outside(checks, stmt, facts)

    def _declare(self, stmt: DeclBuffer, facts: Facts) -> tuple[Stmt, list[_Check]]:
        def visit(facts: Facts) -> Facts:
            facts = self._visit(stmt.buffer.data, (), facts)
            return self._view(stmt.buffer, stmt.buffer.data, stmt.span, (), facts)

        checks, _ = self._checks_of(facts, visit)
        return self._outside(checks, stmt, facts)

    def _view(
        self, buffer: Buffer, place: Any, span: Span | None, guards: tuple[PrimExpr, ...], facts: Facts
    ) -> Facts:
        """A buffer lies in the memory that stands from a place on, where it is known what that is a place of."""
        inside = span_within(buffer, place, lambda extent: self.known.dim(extent, facts))
        if inside is None:
            return facts
        message = f"the buffer {buffer.name!r} lies outside of its memory, {inside.memory.name!r}"
        return self._need(message, inside.needs, guards, span, facts)

    def _evaluate(self, stmt: Evaluate, facts: Facts) -> tuple[Stmt, list[_Check]]:
        new, checks = self._leaf(stmt, facts)
        call = stmt.value
        if isinstance(call, PrimCall) and call.op == "assume" and isinstance(call.args[0], PrimExpr):
            condition = call.args[0]
            if not self.known.holds(condition, facts) and not self._is_asserted(condition, facts):
                promise = AssertStmt(condition, "an assumption does not hold", "BoundsError", span=stmt.span)
                parts = new.stmts if isinstance(new, SeqStmt) else (new,)
                new = SeqStmt((*parts[:-1], promise, parts[-1]), span=stmt.span)
        return new, checks

    def _sequence(self, stmt: SeqStmt, facts: Facts) -> tuple[Stmt, list[_Check]]:
        out: list[Stmt] = []
        up: list[_Check] = []
        defined: set[PrimVar] = set()
        quiet = True
        for part in stmt.stmts:
            new, checks = self.statement(part, facts)
            for check in checks:
                left = self._left(check, facts)
                if left is None:
                    continue
                if quiet and not self._uses(left) & defined:
                    up.append(left)
                    facts = self._learn(left, facts)
                else:
                    asserts, facts = self._asserts([left], facts)
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
        if isinstance(stmt, AssertStmt):
            facts = self.known.assume(stmt.condition, facts, exact=stmt.kind == "BoundsError")
            return facts.with_asserted(stmt.condition, self._key(stmt.condition))
        if isinstance(stmt, Bind):
            return self._bound(stmt.var, stmt.value, facts)
        if isinstance(stmt, (AllocBuffer, DeclBuffer)):
            return facts
        if isinstance(stmt, Evaluate) and isinstance(stmt.value, PrimCall) and stmt.value.op == "assume":
            return self.known.assume(stmt.value.args[0], facts)
        facts = facts.after_write()
        if isinstance(stmt, IfThenElse) and stmt.else_body is None and _always_jumps(stmt.then_body):
            return self.known.assume(negated(stmt.condition), facts)
        return facts

    def _bound(self, var: PrimVar, value: PrimExpr, facts: Facts) -> Facts:
        """What is known of a variable with a value."""
        if dtypes.lanes(var.dtype) > 1:
            return facts
        if dtypes.is_bool(var.dtype):
            if not reads_memory(value):
                self.known.binds[var] = value
            return facts
        if not dtypes.is_integer(var.dtype):
            return facts
        if reads_memory(value):
            return self.known.frozen(var, value, facts)
        dim = self.known.dim(value, facts)
        exact = dtypes.is_signed(var.dtype) and _is_plain_arithmetic(value)
        if exact or self.known.fits(dim, var.dtype, facts):
            self.known.values[var] = dim
            return facts
        return self.known.unknown(var, facts)

    def _is_quiet(self, stmt: Stmt) -> bool:
        """Whether a statement ends, raises nothing but what is raised for bounds, and goes on to the next one."""
        found = self.quiet.get(id(stmt))
        if found is None:
            found = self.quiet[id(stmt)] = (stmt, not any(map(_is_loud, walk(stmt))))
        return found[1]

    def _for(self, stmt: For, facts: Facts) -> tuple[Stmt, list[_Check]]:
        chain = self.chain
        header, facts = self._expressions(facts, stmt.start, stmt.extent, stmt.step)
        start, extent = self.known.dim(stmt.start, facts), self.known.dim(stmt.extent, facts)
        ranges, facts = self._checks_of(facts, lambda facts: self._range_fits(stmt, start, extent, facts))
        header = [*header, *ranges]
        inside = self.known.range(stmt.loop_var, start, extent, facts)
        factors = self.known.nonzero_factors(stmt.extent, facts)
        inside = inside.with_facts(*(self._fact(x - 1, stmt.loop_var) for x in factors)).after_write()
        self.chain = (*chain, stmt.loop_var)
        body, checks = self.statement(stmt.body, inside)
        stay: list[_Check] = []
        for check in checks:
            moved = self._moved(check, stmt, start, extent, facts)
            if moved is None:
                stay.append(check)
            elif self._left(moved, facts) is not None:
                header.append(moved)
        new = replace(stmt, body=self._placed(stay, body, inside))
        return self._outside(header, new, facts)

    def _range_fits(self, loop: For, start: Dim, extent: Dim, facts: Facts) -> Facts:
        """The start and the end of a loop are the numbers that they say."""
        ends = dict.fromkeys((start, extent, start + extent))
        left = tuple(dim for dim in ends if not self.known.is_exact(dim, facts))
        if not left:
            return facts
        self.found.append(
            _Check(f"the range of the loop of {loop.loop_var.name!r} does not fit 64 bits", (), (), left, loop.span)
        )
        return facts.with_facts(*map(self._fact, _below_largest(left)))

    def _fact(self, nonnegative: Dim, owner: PrimVar | None = None) -> Fact:
        return Fact(nonnegative, owner=owner, volatile=self.known.is_volatile(nonnegative))

    def _moved(self, check: _Check, loop: For, start: Dim, extent: Dim, facts: Facts) -> _Check | None:
        """A check of the start of a loop's body as one before the loop; None when it cannot go there."""
        var, needs = loop.loop_var, check.needs
        if any(var in walk(guard) for guard in check.guards):
            return None
        if any(var in self.known.variables(dim) for dim in check.exact):
            return None
        if any(var in self.known.variables(need) for need in needs):
            if (
                not (loop.step is None or (isinstance(loop.step, int) and loop.step == 1))
                or not self._is_quiet(loop.body)
                or var in check.always
            ):
                return None
            inside = facts.with_facts(Fact(extent - 1))
            extreme = [self._extreme(need, var, start, extent, inside) for need in needs]
            if any(need is None for need in extreme):
                return None
            needs = tuple(need for need in extreme if need is not None)
        guards = check.guards
        if var not in check.always and not self.known.proves(extent - 1, facts):
            guards = (self.known.condition(extent - 1), *guards)
        return _changed(check, needs=needs, guards=guards)

    def _extreme(self, need: Dim, var: PrimVar, start: Dim, extent: Dim, facts: Facts) -> Dim | None:
        """The least value over the iterations of what is linear in the loop's variable."""
        known = self.known
        try:
            slope = known.replaced(need, var, known.values[var] + 1) - need
            if var in known.variables(slope):
                return None
            rising = known.proves(slope, facts)
            if rising or known.proves(-slope, facts):
                least = known.replaced(need, var, start if rising else start + extent - 1)
                return None if var in known.variables(least) else least  # in what is no arithmetic, say
        except ShapeError:  # over the limits of dimensions
            pass
        return None

    def _while(self, stmt: While, facts: Facts) -> tuple[Stmt, list[_Check]]:
        checks, _ = self._expressions(facts.after_write(), stmt.condition)
        inside = self.known.assume(stmt.condition, facts.after_write())
        body, inner = self.statement(stmt.body, inside)
        body = self._placed(inner, body, inside)
        each = [check for check in checks if self._is_volatile(check)]
        if not each:
            return replace(stmt, body=body), checks
        # The condition reads memory that iterations may change: what it reads is asserted in every one.
        asserts, _ = self._asserts(each, facts.after_write())
        leave = IfThenElse(negated(stmt.condition), Break(span=stmt.span), span=stmt.span)
        loop = replace(stmt, condition=IntImm(1, "bool"), body=SeqStmt((*asserts, leave, body), span=stmt.span))
        return loop, [check for check in checks if not self._is_volatile(check)]

    def _if(self, stmt: IfThenElse, facts: Facts) -> tuple[Stmt, list[_Check]]:
        header, facts = self._expressions(facts, stmt.condition)
        branches: list[Stmt | None] = []
        for branch, test in ((stmt.then_body, stmt.condition), (stmt.else_body, negated(stmt.condition))):
            if branch is None:
                branches.append(None)
                continue
            inside = self.known.assume(test, facts)
            new, checks = self.statement(branch, inside)
            branches.append(self._placed(checks, new, inside))
        return self._outside(header, replace(stmt, then_body=branches[0], else_body=branches[1]), facts)

    def _attribute(self, stmt: AttrStmt, facts: Facts) -> tuple[Stmt, list[_Check]]:
        header: list[_Check] = []
        if stmt.key != PREFETCH:  # which may name a place that is not there
            header, facts = self._expressions(facts, stmt.value)
        inside = facts
        item = stmt.node
        new_var = isinstance(item, IterVar) and item.var not in self.known.values
        if isinstance(item, IterVar) and new_var and isinstance(stmt.value, (int, PrimExpr)):
            inside = self.known.range(item.var, 0, self.known.dim(stmt.value, facts), facts).after_write()
        body, checks = self.statement(stmt.body, inside)
        stay = checks if new_var else []
        new = replace(stmt, body=self._placed(stay, body, inside))
        return self._outside([*header, *(check for check in checks if check not in stay)], new, facts)

    # Blocks -----------------------------------------------------------------------------------------------------------

    def _block(self, stmt: Block, facts: Facts) -> tuple[Stmt, list[_Check]]:
        """A block; its init runs once even where a loop of the reduction is empty, so those loops prove nothing of it.

        The loops are those of a perfect nest whose variables only the reduction uses.
        """
        always = _reduction_loops(stmt, self.chain)
        self.chain = ()
        parts = [part for item in stmt.iter_vars for part in (item.value, item.start, item.extent)]
        header, facts = self._expressions(facts, *parts)
        defined: set[PrimVar] = set()
        for item in stmt.iter_vars:
            facts = self._iteration(item, facts)
            if item.var not in self.known.values or item.var in self.known.moving:
                defined.add(item.var)
        inside, domain = facts, []
        if stmt.predicate is not None:
            tested, inside = self._expressions(inside, stmt.predicate)
            header += tested
            inside = self.known.assume(stmt.predicate, inside)
        for item in stmt.iter_vars:
            check = self._domain_check(stmt, item, inside, always if stmt.init is not None else frozenset())
            if check is not None:
                domain.append(check)
                inside = self._learn(check, inside)
        for match in stmt.match_buffers:
            found, inside = self._checks_of(inside, lambda facts, match=match: self._match(match, facts))
            domain += found
            defined |= {x for x in (*match.buffer.shape, *(match.buffer.strides or ())) if isinstance(x, PrimVar)}
        body, checks = self.statement(stmt.body, inside)
        init, first = stmt.init, []
        if init is not None:
            early = inside.without_owners(set(always))
            init, first = self.statement(init, early)
            first = [_changed(check, always=check.always | always) for check in first]
            init_front = [check for check in (*domain, *first) if self._stays(check, stmt, defined)]
            init = self._placed(init_front, init, early)
        front = [check for check in (*domain, *checks) if self._stays(check, stmt, defined)]
        up = [check for check in (*domain, *first, *checks) if not self._stays(check, stmt, defined)]
        before = facts
        for check in domain:
            before = before if check in front else self._learn(check, before)
        body = self._placed(
            front, body, before if stmt.predicate is None else self.known.assume(stmt.predicate, before)
        )
        return self._outside([*header, *up], replace(stmt, body=body, init=init), facts)

    def _stays(self, check: _Check, block: Block, defined: set[PrimVar]) -> bool:
        return block.predicate is not None or bool(self._uses(check) & defined)

    def _iteration(self, item: IterVar, facts: Facts) -> Facts:
        if item.value is None:
            return self.known.range(
                item.var, self.known.dim(item.start, facts), self.known.dim(item.extent, facts), facts
            )
        value = cast(item.var.dtype, item.value)
        facts = self._bound(item.var, value, facts)
        if item.var not in self.known.moving:
            self.known.lets[item.var] = value  # outside the block the value stands for it
        return facts

    def _domain_check(self, block: Block, item: IterVar, facts: Facts, always: frozenset[PrimVar]) -> _Check | None:
        if item.value is None or item.var not in self.known.values:
            return None
        if item.kind not in ("reduce", "scan") and always:
            facts = facts.without_owners(set(always))
        else:
            always = frozenset()
        value, start = self.known.values[item.var], self.known.dim(item.start, facts)
        needs = (value - start, start + self.known.dim(item.extent, facts) - 1 - value)
        left = tuple(need for need in needs if not self.known.proves(need, facts))
        message = f"the variable {item.var.name!r} of block {block.name!r} is outside its range"
        return _Check(message, left, span=item.span or block.span, always=always) if left else None

    def _match(self, match: MatchBufferRegion, facts: Facts) -> Facts:
        """The region that a buffer stands for lies in its source, and has the size of the buffer."""
        source, buffer, known = match.source.buffer, match.buffer, self.known
        for axis, (part, extent) in enumerate(zip(match.source.region, source.shape, strict=True)):
            start, count = known.dim(part.start, facts), known.dim(part.extent, facts)
            limit = known.dim(extent, facts) - start - count
            facts = self._need(f"region out of range for {source.name!r} (dimension {axis})", (start, limit), (),
                               match.span, facts)  # fmt: skip
        for size, part in zip(buffer.shape, match.source.region[source.ndim - buffer.ndim :], strict=True):
            if isinstance(size, PrimVar) and size not in known.values:
                facts = self._bound(size, cast(size.dtype, as_expr(part.extent, size.dtype)), facts)
                continue
            room = known.dim(part.extent, facts) - known.dim(size, facts)
            facts = self._need(f"the buffer {buffer.name!r} is larger than its region", (room,), (), match.span, facts)
        steps = buffer_strides(source)[source.ndim - buffer.ndim :]
        for stride, step in zip(buffer.strides or (), steps, strict=False):
            if isinstance(stride, PrimVar) and stride not in known.values:
                facts = self._bound(stride, cast(stride.dtype, as_expr(step, stride.dtype)), facts)
                continue
            more = known.dim(stride, facts) - known.dim(step, facts)
            message = f"the strides of the buffer {buffer.name!r} are not those of its region"
            facts = self._need(message, (more, -more), (), match.span, facts)
        if isinstance(buffer.elem_offset, PrimVar) and buffer.elem_offset not in known.values:
            facts = known.unknown(buffer.elem_offset, facts)
        return facts

    # Expressions ------------------------------------------------------------------------------------------------------

    def _visit(self, expr: Any, guards: tuple[PrimExpr, ...], facts: Facts) -> Facts:
        """Collect the checks of an expression that is evaluated where the guards hold; the facts after it."""
        if isinstance(expr, BufferLoad):
            return self._visit_access(expr.buffer, expr.indices, expr.predicate, expr.span, guards, facts)
        if isinstance(expr, Let):
            facts = self._visit(expr.value, guards, facts)
            self.known.lets[expr.var] = expr.value
            return self._visit(expr.body, guards, facts)
        if isinstance(expr, Binary):
            facts = self._visit(expr.a, guards, facts)
            if expr.kind in ("and", "or") and dtypes.lanes(expr.dtype) == 1:
                self._visit_where(expr.a if expr.kind == "and" else negated(expr.a), expr.b, guards, facts)
                return facts
            return self._visit(expr.b, guards, facts)
        if isinstance(expr, PrimCall):
            return self._visit_call(expr, guards, facts)
        parts: Sequence[Any] = ()
        if isinstance(expr, Unary):
            parts = (expr.a,)
        elif isinstance(expr, (Cast, Broadcast)):
            parts = (expr.value,)
        elif isinstance(expr, Select):
            parts = (expr.condition, expr.true_value, expr.false_value)
        elif isinstance(expr, Ramp):
            parts = (expr.base, expr.stride)
        elif isinstance(expr, Shuffle):
            parts = (*expr.vectors, *expr.indices)
        for part in parts:
            facts = self._visit(part, guards, facts)
        return facts

    def _visit_where(self, condition: PrimExpr, expr: Any, guards: tuple[PrimExpr, ...], facts: Facts) -> None:
        condition = self.known.closed(condition)
        self._visit(expr, (*guards, condition), self.known.assume(condition, facts))

    def _visit_call(self, call: PrimCall, guards: tuple[PrimExpr, ...], facts: Facts) -> Facts:
        if call.op == "if_then_else" and isinstance(call.args[0], PrimExpr) and dtypes.lanes(call.args[0].dtype) == 1:
            facts = self._visit(call.args[0], guards, facts)
            self._visit_where(call.args[0], call.args[1], guards, facts)
            self._visit_where(negated(call.args[0]), call.args[2], guards, facts)
            return facts
        for view, place in call_views(call, self.module) if isinstance(call.op, GlobalVar) else ():
            facts = self._view(view, place, call.span, guards, facts)
        for arg in call.args:
            if call.op in ("address_of", "access_ptr", "tvm_access_ptr") and isinstance(arg, BufferLoad):
                facts = self._visit_address(arg, guards, facts)
            else:
                facts = self._visit(arg, guards, facts)
        return facts

    def _visit_address(self, load: BufferLoad, guards: tuple[PrimExpr, ...], facts: Facts) -> Facts:
        """An element whose address is taken; that of the first one may be asked of a buffer without elements, too."""
        if all(isinstance(index, IntImm) and index.value == 0 for index in load.indices):
            return facts
        outer = facts
        for extent in load.buffer.shape:
            size = self.known.dim(extent, facts)
            if not self.known.proves(size - 1, facts):
                guards = (*guards, self.known.condition(size - 1))
                facts = facts.with_facts(Fact(size - 1))
        inside = self._visit_access(load.buffer, load.indices, None, load.span, guards, facts)
        return inside if facts is outer else outer

    def _visit_access(
        self, buffer: Buffer, indices: Sequence[PrimExpr], predicate: PrimExpr | None, span: Span | None,
        guards: tuple[PrimExpr, ...], facts: Facts,
    ) -> Facts:  # fmt: skip
        for index in indices:
            facts = self._visit(index, guards, facts)
        if len(indices) != buffer.ndim:
            return facts  # the verifier's to report
        lanes = max((dtypes.lanes(index.dtype) for index in indices), default=1)
        if isinstance(lanes, dtypes.Scalable):
            return facts  # no machine code is made of it
        if predicate is None:
            straight = all(isinstance(index, (Ramp, Broadcast)) or dtypes.lanes(index.dtype) == 1 for index in indices)
            picked = (0,) if lanes == 1 else (0, lanes - 1) if straight else tuple(range(lanes))
            return self._visit_lanes(buffer, indices, picked, span, guards, facts)
        facts = self._visit(predicate, guards, facts)
        for lane in range(lanes):
            active = self.known.closed(_lane(predicate, lane))
            inside = self.known.assume(active, facts)
            self._visit_lanes(buffer, indices, (lane,), span, (*guards, active), inside)
        return facts

    def _visit_lanes(
        self, buffer: Buffer, indices: Sequence[PrimExpr], picked: Sequence[int], span: Span | None,
        guards: tuple[PrimExpr, ...], facts: Facts,
    ) -> Facts:  # fmt: skip
        facts = self._operands_are_exact(buffer, indices, guards, span, facts)
        for axis, (index, extent) in enumerate(zip(indices, buffer.shape, strict=True)):
            limit = self.known.dim(extent, facts)
            places = [self.known.dim(_lane(index, lane), facts) for lane in picked]
            needs = [need for place in places for need in (place, limit - 1 - place)]
            if not isinstance(index, (Ramp, Broadcast)) and dtypes.lanes(index.dtype) != 1:
                largest = limits_of(dtypes.element(index.dtype))[1]  # lanes are computed in their dtype
                needs += [largest - place for place in places if largest < LARGEST]
            message = f"index out of range for {buffer.name!r} (dimension {axis})"
            place, size = self.known.text(places[0]), self.known.text(limit)
            if len(places) == 1 and size is not None:
                message += f": {place or 'the index'} must lie in [0, {size})"
            facts = self._need(message, needs, guards, span, facts)
        return facts

    def _operands_are_exact(
        self, buffer: Buffer, indices: Sequence[PrimExpr], guards: tuple[PrimExpr, ...], span: Span | None, facts: Facts
    ) -> Facts:
        """What an index divides, or takes the remainder of, is the number that it says."""
        parts = (part for index in indices for part in walk(index) if isinstance(part, Binary))
        operands = (side for part in parts if part.kind in _QUOTIENTS for side in (part.a, part.b))
        dims = dict.fromkeys(self.known.dim(side, facts) for side in operands if _is_word(side))
        left = tuple(dim for dim in dims if not self.known.is_exact(dim, facts))
        if not left:
            return facts
        message = f"the arithmetic of an index of {buffer.name!r} does not fit 64 bits"
        self.found.append(_Check(message, (), guards, left, span))
        return facts.with_facts(*map(self._fact, _below_largest(left)))

    def _need(
        self, message: str, needs: Iterable[Dim], guards: tuple[PrimExpr, ...], span: Span | None, facts: Facts
    ) -> Facts:
        left = tuple(need for need in dict.fromkeys(needs) if not self.known.proves(need, facts))
        if not left:
            return facts
        check = _Check(message, left, guards, span=span)
        self.found.append(check)
        return facts.with_facts(*(self._fact(need) for need in left))


def _is_word(expr: PrimExpr) -> bool:
    return dtypes.lanes(expr.dtype) == 1 and dtypes.is_integer(expr.dtype) and dtypes.is_signed(expr.dtype)


def _below_largest(dims: Iterable[Dim]) -> Iterator[Dim]:
    """What is not negative where dimensions are numbers of 64 bits, as far as it is a dimension."""
    for dim in dims:
        try:
            yield LARGEST - dim
        except ShapeError:  # a constant over 64 bits
            continue


def _changed(check: _Check, **changes: Any) -> _Check:
    """A check with other parts."""
    return _Check(**{**check.__dict__, **changes})


def _lane(expr: PrimExpr, lane: int) -> PrimExpr:
    """One lane of a vector."""
    if dtypes.lanes(expr.dtype) == 1:
        return expr
    if isinstance(expr, Broadcast):
        return expr.value
    if isinstance(expr, Ramp):
        return expr.base if lane == 0 else binary("add", expr.base, binary("mul", expr.stride, lane))
    if isinstance(expr, Binary):
        return Binary(expr.kind, _lane(expr.a, lane), _lane(expr.b, lane), span=expr.span)
    if isinstance(expr, Unary):
        return Unary(expr.kind, _lane(expr.a, lane), span=expr.span)
    if isinstance(expr, Cast):
        return Cast(dtypes.element(expr.dtype), _lane(expr.value, lane), span=expr.span)
    return Shuffle((expr,), (IntImm(lane, "int32"),), span=expr.span)


def _is_plain_arithmetic(value: PrimExpr) -> bool:
    """Whether generated code has the exact 64-bit value of a narrower variable that is bound to this."""
    return all(
        isinstance(part, (PrimVar, IntImm))
        or (isinstance(part, Binary) and part.kind in ("add", "sub", "mul") and dtypes.is_signed(part.dtype))
        for part in walk(value)
    )


def _is_loud(part: Any) -> bool:
    if isinstance(part, AssertStmt):
        return part.kind != "BoundsError"
    if isinstance(part, PrimCall):
        entry = INTRINSICS.get(part.op) if isinstance(part.op, str) else None
        return entry is None or not entry.pure
    return isinstance(part, (While, *_JUMPS))


def _always_jumps(stmt: Stmt) -> bool:
    last = stmt.stmts[-1] if isinstance(stmt, SeqStmt) and stmt.stmts else stmt
    return isinstance(last, _JUMPS)


def _reduction_loops(block: Block, chain: Sequence[PrimVar]) -> frozenset[PrimVar]:
    """The loops around a block whose variables only its reduction uses."""
    used: dict[bool, set[Any]] = {True: set(), False: set()}
    for item in block.iter_vars:
        if item.value is not None:
            used[item.kind in ("reduce", "scan")].update(walk(item.value))
    return frozenset(var for var in chain if var in used[True] and var not in used[False])


_STATEMENTS: dict[type, Callable[[_Checker, Any, Facts], tuple[Stmt, list[_Check]]]] = {
    SeqStmt: _Checker._sequence,
    BufferStore: _Checker._store,
    For: _Checker._for,
    While: _Checker._while,
    IfThenElse: _Checker._if,
    Block: _Checker._block,
    Bind: _Checker._leaf,
    DeclBuffer: _Checker._declare,
    AssertStmt: _Checker._leaf,
    AttrStmt: _Checker._attribute,
    Evaluate: _Checker._evaluate,
    Return: _Checker._leaf,
}
