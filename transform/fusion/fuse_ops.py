"""FuseOps: kernels that are better computed together become one function.

    with R.dataflow():                                   @R.function(private=True)
        y = R.call_tir(cls.add, (x, b), out_ty=...)      def fused_add_relu(x, b): ...      attribute primitive
        z = R.call_tir(cls.relu, (y,), out_ty=...)
        R.output(z)                                      z = cls.fused_add_relu(x, b)

The pass decides, then applies. The decision is a function from the kernel calls of a segment of a dataflow block (with
the kinds that `AnnotateTIROpPattern` found, how each call reads the others, what it costs) to groups of them;
`group_by_consumers` is the built-in one, and `FuseOps(decide=...)` takes another. The application outlines each group
as a private function with the attribute `primitive` that says which kernels it holds and why; `FuseTIR` makes one
kernel of it. Only calls whose shapes are proved to fit take part, so no run-time check is lost, and never calls with
different labels (attribute `target`) or on both sides of a call that has effects or overwrites its arguments.

Source: Chen et al., TVM, 2018 (operators by the kind of their loops, and which kinds may be fused).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Annotated, ClassVar

from weft.dtypes import bits
from weft.errors import PassError
from weft.ir import (
    Binding,
    BindingBlock,
    Call,
    Constant,
    DataflowBlock,
    DataflowVar,
    Expr,
    FrozenMap,
    Function,
    GlobalVar,
    IRModule,
    MatchCast,
    Op,
    PrimFunc,
    PrimType,
    SeqExpr,
    ShapeExpr,
    ShapeType,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    Var,
    VarBinding,
    replace,
    structural_equal,
    structural_hash,
    walk,
)
from weft.ir.attrs import FUSION, KERNELS, LABEL, NOALIAS, OP_PATTERN, PRIMITIVE, attribute
from weft.ir.deduction.infer import TypeContext, infer_type
from weft.ir.dim import symbol
from weft.ir.module import fresh_name
from weft.ir.tensor import AssertStmt, Buffer, BufferLoad
from weft.support.records import dataclass, record
from weft.transform.analysis.access_pattern import Cost, Nest, Reading, cost, nests_of, reading, size_of
from weft.transform.analysis.free_symbols import bare_symbols, symbols_of
from weft.transform.analysis.purity import is_pure
from weft.transform.analysis.value_numbering import expr_key, same_type, type_key
from weft.transform.fusion.annotate_pattern import op_pattern
from weft.transform.fusion.inline_blocks import LARGEST_VALUE, divides_indices, pays
from weft.transform.infra.base import Pass, map_functions
from weft.transform.infra.options import AtLeast
from weft.transform.infra.rewriting import FunctionRewriter, derived, map_operands, operands, shape_variables

__all__ = ["Decide", "FuseOps", "KernelCall", "Use", "group_by_consumers"]

LIGHT = ("elementwise", "broadcast", "injective")
HEAVY = ("reduction", "contraction")
_NEAR, _MORE_TERMS = 16, 4
"""How far before a contraction another one is looked for that takes its place in a group, and what it has to have."""
_PRODUCT_AND_ROUNDING = 2
"""Nests of a kernel that rounds the sums of a product."""
_MOST_PARTS, _PART_MULTIPLE = 4, 16
"""Of the columns of a product that are put together: tiles hold vectors of each, which have so many elements at most.
"""


# What a decision sees ------------------------------------------------------------------------------------------------


@record
class Use:
    """How one call uses the result of another: `consumer` is its index, `loads` how often it occurs in the loops."""

    consumer: int
    reading: Reading
    loads: int


@record
class KernelCall:
    """One kernel call that may be fused.

    `uses` are those by other calls of the list; `escapes` says that the result is needed beyond them. `segment` numbers
    the parts of the block between calls that nothing may be moved across. `terms` are those of a sum, 0 where that
    follows from symbols. `columns` are those of a product of matrices whose second operand is read along them or a
    constant, where their number is known; 0 for others.
    """

    index: int
    name: str
    kernel: str
    pattern: str
    result: TensorType
    target: object = None
    segment: int = 0
    cost: Cost = Cost.MOVE
    size: int = 0
    gathers: bool = False
    nests: int = 1
    uses: tuple[Use, ...] = ()
    escapes: bool = False
    terms: int = 1
    columns: int = 0


Decide = Callable[[Sequence[KernelCall], int], Sequence[Sequence[int]]]
"""(calls, max_ops) -> groups, each the indices of the calls that become one function."""


def group_by_consumers(calls: Sequence[KernelCall], max_ops: int) -> list[list[int]]:
    """The built-in decision: a call joins the group that all of its consumers are in, where that pays.

    Calls are looked at from the last to the first, so a group has one result, and a diamond ends up in one group.
    Kernels with one value for each element are computed inside their consumers: when all loads are in the same place,
    or the value costs little. A reduction or contraction takes the elementwise kernels after it, which then work in
    its place in memory; those that round its sums, or compute from them what others only move (`concat`, a
    permutation), stay with it where their consumers cannot take it in. Those that put equal parts of the columns of a
    product together follow it as well, so that it is never stored. Of two contractions that are added, the one with
    more terms has them: what it reads of the other waits for memory least.
    """
    groups: list[_Group] = []
    of: dict[int, _Group] = {}
    sums = _sums(calls)
    for call in reversed(calls):
        group = _common_group(call, of)
        if group is None or group.parts(call, sums, calls) or not group.take(call, max_ops, calls):
            group = _Group(call)
            groups.append(group)
        of[call.index] = group
    return [sorted(group.members) for group in reversed(groups) if len(group.members) > 1]


def _common_group(call: KernelCall, of: dict[int, _Group]) -> _Group | None:
    found = {id(of[use.consumer]): of[use.consumer] for use in call.uses}
    return next(iter(found.values())) if len(found) == 1 and not call.escapes else None


def _sums(calls: Sequence[KernelCall]) -> dict[int, KernelCall]:
    """The contractions that elementwise kernels alone follow, by the index of each of those."""
    found: dict[int, KernelCall] = {}
    for call in calls:
        source = call if call.pattern == "contraction" else found.get(call.index)
        if source is None or call.escapes or len(call.uses) != 1:
            continue
        (use,) = call.uses
        if use.reading is Reading.SAME and calls[use.consumer].pattern in LIGHT:
            found[use.consumer] = source
    return found


def _joins_parts(product: KernelCall, sink: KernelCall) -> bool:
    """Whether tiles of a product have what is put together from parts of its columns: a few of whole vectors."""
    shape = sink.result.shape
    columns = shape[-1] if isinstance(shape, tuple) and shape else None
    if not isinstance(columns, int) or not product.columns:
        return False
    return columns % _PART_MULTIPLE == 0 and columns < product.columns <= _MOST_PARTS * columns


class _Group:
    """A group that grows upwards from its result.

    `members` says for each call how its value is read where the result is computed, and how often.
    """

    def __init__(self, sink: KernelCall) -> None:
        self.sink = sink
        self.members: dict[int, tuple[Reading, int]] = {sink.index: (Reading.SAME, 1)}
        self.size = sink.size
        self.cost = sink.cost
        self.heavy = sink.pattern in HEAVY

    def take(self, call: KernelCall, max_ops: int, calls: Sequence[KernelCall]) -> bool:
        """Add a call all of whose consumers are members; False when that does not pay."""
        sink = self.sink
        if len(self.members) >= max_ops or call.target != sink.target or call.segment != sink.segment:
            return False
        if any(pattern not in (*LIGHT, *HEAVY) for pattern in (call.pattern, sink.pattern)):
            return False
        into = [calls[use.consumer] for use in call.uses]
        reduces = any(consumer.pattern in HEAVY for consumer in into)
        how, count = self._reading(call, into)
        if call.pattern in HEAVY:
            fits = self._fits_before(call, how) and not self._has_longer(call, max_ops, calls)
        else:
            fits = self._fits_in(call, into, how, count, reduces)
        if not fits:
            return False
        self.heavy = self.heavy or call.pattern in HEAVY
        self.members[call.index] = (how, count)
        if call.pattern in LIGHT and not reduces:
            self.size += call.size * count
            self.cost = max(self.cost, call.cost)
        return True

    def parts(self, call: KernelCall, sums: Mapping[int, KernelCall], calls: Sequence[KernelCall]) -> bool:
        """Whether a call would part sums from what rounds them, so that they would be stored, or from arithmetic that
        their tiles do for nothing, which what only moves their results would do: it stays out."""
        source = sums.get(call.index)
        rounds = source is not None and bits(call.result.dtype or "") < bits(source.result.dtype or "")
        moves = self.sink.cost is Cost.MOVE and call.cost is not Cost.MOVE and not self.heavy
        if source is None or not (rounds or moves):
            return False
        how, _ = self._reading(call, [calls[use.consumer] for use in call.uses])
        if how is Reading.PART and not self.heavy and _joins_parts(source, self.sink):
            return False
        return how is not Reading.SAME or (rounds and self.heavy)

    def _reading(self, call: KernelCall, into: Sequence[KernelCall]) -> tuple[Reading, int]:
        """How the value of a call is read where the result is computed, and how often."""
        how, count = Reading.SAME, 0
        for use, consumer in zip(call.uses, into, strict=True):
            outer, times = (Reading.SAME, 1) if consumer.pattern in HEAVY else self.members[use.consumer]
            how, count = max(how, use.reading, outer), count + use.loads * times
        return how, count

    def _fits_before(self, call: KernelCall, how: Reading) -> bool:
        """Whether a reduction or contraction can be followed by the group: in its place, or as its tiles are stored."""
        if how is Reading.PART and not self.heavy:
            return _joins_parts(call, self.sink)
        in_tiles = call.pattern == "contraction"  # the sums of a tile need no memory of their own
        return not self.heavy and how is Reading.SAME and (in_tiles or call.result.dtype == self.sink.result.dtype)

    def _has_longer(self, call: KernelCall, max_ops: int, calls: Sequence[KernelCall]) -> bool:
        """Whether a contraction of many more terms that comes before, and rounds as this one does, can join as well."""
        if call.pattern != "contraction" or call.result.dtype != self.sink.result.dtype:
            return False
        before = calls[max(0, call.index - _NEAR) : call.index]
        longer = [x for x in before if x.pattern == "contraction" and x.terms >= _MORE_TERMS * call.terms > 0]
        room = max_ops - len(self.members)
        return any(x.result.dtype == call.result.dtype and self._is_reached(x, room, calls) for x in longer)

    def _is_reached(self, call: KernelCall, room: int, calls: Sequence[KernelCall]) -> bool:
        """Whether light calls, one after another at the same elements, lead from a call to a member."""
        sink = self.sink
        while room > 0 and len(call.uses) == 1 and not call.escapes:
            (use,), room = call.uses, room - 1
            if use.reading is not Reading.SAME or (call.target, call.segment) != (sink.target, sink.segment):
                return False
            call = calls[use.consumer]
            if call.index in self.members:
                return self.members[call.index][0] is Reading.SAME
            if call.pattern not in LIGHT or call.nests > 1 or call.result.dtype != sink.result.dtype:
                return False
        return False

    def _fits_in(self, call: KernelCall, into: Sequence[KernelCall], how: Reading, count: int, reduces: bool) -> bool:
        """Whether a value for each element can be computed inside its consumers."""
        if call.nests > 1 or any(consumer.pattern == "contraction" for consumer in into):
            return False
        if self.size + call.size * count > LARGEST_VALUE or (call.gathers and self.cost is Cost.EXPENSIVE):
            return False
        return pays(call.cost, how, count, reduces) and not (reduces and len(into) > 1)


# The pass -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FuseOps(Pass):
    """Outline groups of kernel calls of dataflow blocks as private functions with the attribute `primitive`.

    `max_ops` bounds the calls of a group; `decide` replaces the built-in decision. Functions that are `primitive`
    already are left alone. Raises: PassError W534 for groups that overlap, name no call, or cannot be computed at once.
    """

    text_name: ClassVar[str] = "fuse-ops"
    level: ClassVar[int] = 1
    max_ops: Annotated[int, AtLeast(1)] = 16
    decide: Decide | None = field(default=None)

    def run(self, module: IRModule) -> IRModule:
        """Fuse every graph function that is no group itself."""
        outlined = _Outlined(module)

        def fuse(name: str, function: Function) -> Function:
            if attribute(function.attrs, PRIMITIVE):
                return function
            fuser = _Fuser(outlined, self.decide or group_by_consumers, self.max_ops, self.text_name)
            fuser.label = function.attrs.get(LABEL)
            return fuser.run(function)

        new = map_functions(module, fuse)
        return new.with_functions({**new.functions, **outlined.added}) if outlined.added else new

    def explain(self, module: IRModule) -> str:
        """What the pass would fuse, as text: a line for each group.

        >>> FuseOps().explain(IRModule({}))
        'nothing to fuse'
        """
        new = self(module)
        lines = [
            f"{name}: {function.attrs[FUSION]}"
            for name, function in new.items()
            if name not in module and isinstance(function, Function)
        ]
        return "\n".join(lines) or "nothing to fuse"


class _Outlined:
    """The functions made in one run; groups of equal structure share one."""

    def __init__(self, module: IRModule) -> None:
        self.module = module
        self.context = TypeContext(module.functions)
        self.added: dict[str, Function] = {}
        self.names = set(module.functions)
        self.known: dict[tuple[int, object], list[str]] = {}
        self.facts: dict[str, _KernelFacts] = {}
        self.fitting: dict[Hashable, bool] = {}

    def kernel(self, name: str) -> _KernelFacts | None:
        """What the loops of a kernel say; None when the module has no such kernel."""
        function = self.module.functions.get(name)
        if not isinstance(function, PrimFunc):
            return None
        if name not in self.facts:
            self.facts[name] = _KernelFacts(function)
        return self.facts[name]

    def fits(self, call: Call) -> bool:
        """Whether the shapes of a kernel call are proved to fit, so that nothing is left to check when it runs."""
        types = [*(infer_type(arg, self.context) for arg in call.args[1:]), *call.ty_args]
        key = (expr_key(call.args[0]), *map(type_key, types))
        if key not in self.fitting:
            context = TypeContext(self.module.functions)
            infer_type(call, context)
            self.fitting[key] = not context.checks
        return self.fitting[key]

    def add(self, function: Function, base: str, label: object) -> GlobalVar:
        """A reference to the function, added unless an equal one was for callers with the same label."""
        key = (structural_hash(function), label)
        for name in self.known.get(key, ()):
            if structural_equal(self.added[name], function):
                return GlobalVar(name)
        name = fresh_name(base, self.names)
        self.names.add(name)
        self.added[name] = replace(function, name=name)
        self.known.setdefault(key, []).append(name)
        return GlobalVar(name)


class _KernelFacts:
    """What a decision needs to know of a kernel, from its loops."""

    def __init__(self, function: PrimFunc) -> None:
        self.function = function
        self.known_uses: dict[int, tuple[Reading, int]] = {}
        self.pattern = str(function.attrs.get(OP_PATTERN) or op_pattern(function))
        self.target = function.attrs.get(LABEL)
        nests = nests_of(function)
        # What a user grouped stays as it is; so do kernels whose buffers may overlap.
        overlap = not attribute(function.attrs, NOALIAS, True)
        if nests is None or overlap or attribute(function.attrs, PRIMITIVE):
            self.pattern = "opaque"
        self.nests = nests or []
        values = [nest.store.value for nest in self.nests]
        self.cost = max(map(cost, values), default=Cost.EXPENSIVE)
        self.size = sum(map(size_of, values))
        self.terms = max((_terms(nest) for nest in self.nests), default=1)
        self.gathers = any(map(divides_indices, values))
        self.checked = {
            part.buffer
            for stmt in walk(function.body)
            if isinstance(stmt, AssertStmt)
            for part in walk(stmt.condition)
            if isinstance(part, BufferLoad)
        }

    def use(self, position: int) -> tuple[Reading, int]:
        """How the parameter at a position is read, and how often it occurs."""
        if position not in self.known_uses:
            self.known_uses[position] = self._use(position)
        return self.known_uses[position]

    def columns(self, args: Sequence[Expr]) -> int:
        """The columns of a product of matrices that is the only thing the kernel computes, or rounds; 0 for others.

        Its second operand is read along them, or a constant.
        """
        nest = self.nests[0] if self.nests else None
        if (
            nest is None
            or not nest.is_contraction
            or len(nest.reduction) != 1
            or len(self.nests) > _PRODUCT_AND_ROUNDING
            or not nest.store.indices
        ):
            return 0
        v, columns = nest.store.indices[-1], nest.store.buffer.shape[-1]
        constants = {p for p, arg in zip(self.function.params, args, strict=False) if isinstance(arg, Constant)}
        loads = [part for part in walk(nest.store.value) if isinstance(part, BufferLoad)]
        runs = any(load.buffer is not nest.store.buffer and load.indices[-1:] == (v,) for load in loads)
        own = any(load.buffer in constants and v in load.indices for load in loads)
        return columns if isinstance(columns, int) and (runs or own) else 0

    def _use(self, position: int) -> tuple[Reading, int]:
        buffer = self.function.params[position]
        if not isinstance(buffer, Buffer) or buffer in self.checked:
            return Reading.UNKNOWN, 1
        how, loads = Reading.SAME, 0
        for nest in self.nests:
            for part in walk(nest.stmt):
                if isinstance(part, BufferLoad) and part.buffer is buffer:
                    how, loads = max(how, reading(nest, part)), loads + 1
        if len(self.nests) > 1 and self.pattern in LIGHT:
            how = max(how, Reading.REPEATED)  # the readings between the nests are not followed
        return how, loads


def _terms(nest: Nest) -> int:
    """How many terms a sum of a nest has; 0 where symbols say it."""
    return math.prod(extent if isinstance(extent := nest.extents[var], int) else 0 for var in nest.reduction)


def _is_candidate(binding: Binding, outlined: _Outlined) -> bool:
    """Whether a binding is a call of a known kernel with one result, whose shapes are proved to fit."""
    call = binding.value
    if not isinstance(binding, VarBinding) or not isinstance(call, Call) or not isinstance(call.op, Op):
        return False
    if call.op.name != "call_tir" or not isinstance(call.args[0], GlobalVar) or not isinstance(call.args[1], Tuple):
        return False
    facts = outlined.kernel(call.args[0].name)
    if facts is None or not all(map(_is_known, (binding.var.ty, *call.ty_args))):
        return False
    if not same_type(binding.var.ty, call.ty_args[0]) or not all(map(_is_value, call.args[1].fields)):
        return False
    return outlined.fits(call)


def _is_known(ty: Type) -> bool:
    return isinstance(ty, TensorType) and isinstance(ty.shape, tuple) and ty.dtype is not None


def _is_value(arg: Expr) -> bool:
    """Whether an argument can be handed to a group: a tensor of known shape, or a scalar, as the number of a step."""
    return isinstance(arg, (Var, Constant)) and (_is_known(arg.ty) or isinstance(arg.ty, PrimType))


class _Fuser(FunctionRewriter):
    changes_blocks = True
    label: object = None
    """The label of the function, which owns the kernels that it calls."""

    def __init__(self, outlined: _Outlined, decide: Decide, max_ops: int, origin: str) -> None:
        super().__init__()
        self.outlined = outlined
        self.decide = decide
        self.max_ops = max_ops
        self.origin = origin

    def rewrite_block(self, block: BindingBlock, bindings: tuple[Binding, ...]) -> BindingBlock:
        if not isinstance(block, DataflowBlock):
            return super().rewrite_block(block, bindings)
        positions = [i for i, binding in enumerate(bindings) if _is_candidate(binding, self.outlined)]
        if len(positions) < 2:
            return replace(block, bindings=bindings)
        calls = _calls_of(bindings, positions, self.outlined)
        groups = [list(group) for group in self.decide(calls, self.max_ops)]
        _check_groups(groups, calls)
        if not groups:
            return replace(block, bindings=bindings)
        merged = [[positions[index] for index in sorted(group)] for group in groups]
        names = [[calls[index] for index in sorted(group)] for group in groups]
        return replace(block, bindings=tuple(self.apply(bindings, merged, names)))

    def apply(
        self, bindings: Sequence[Binding], groups: Sequence[Sequence[int]], calls: Sequence[Sequence[KernelCall]]
    ) -> Iterator[Binding]:
        """The bindings with one call in place of each group, each after what it needs."""
        unit = {position: number for number, group in enumerate(groups) for position in group}
        used = _used_outside(bindings, unit)
        for step in _order(bindings, unit, groups):
            if isinstance(step, Binding):
                yield step
                continue
            members = [bindings[position] for position in groups[step]]
            yield from self.outline([m for m in members if isinstance(m, VarBinding)], used[step], calls[step])

    def outline(
        self, members: Sequence[VarBinding], used: Sequence[Var], calls: Sequence[KernelCall]
    ) -> Iterator[Binding]:
        """The call of the function that the members become, and the projections of its results."""
        function, args = _group_function(members, used, calls)
        label = "_".join(call.kernel.rstrip("0123456789_") or call.kernel for call in calls)
        base = f"fused_{label}" if len(label) <= 60 else f"fused_{label[:50].rstrip('_')}_{len(calls)}"
        span = derived(members[-1].span, self.origin)
        call = Call(self.outlined.add(function, base, self.label), args, span=span)
        if len(used) == 1:
            yield VarBinding(used[0], call, span=span)
            return
        results = DataflowVar("fused", function.ret_type, span=span)
        yield VarBinding(results, call, span=span)
        for index, var in enumerate(used):
            yield VarBinding(var, TupleGetItem(results, index, span=span), span=span)


def _calls_of(bindings: Sequence[Binding], positions: Sequence[int], outlined: _Outlined) -> list[KernelCall]:
    """What the decision is given: the candidates of a block and how they use each other."""
    index_of = {bindings[position].var: index for index, position in enumerate(positions)}
    uses: list[list[Use]] = [[] for _ in positions]
    escapes = [not isinstance(bindings[position].var, DataflowVar) for position in positions]
    candidates = set(positions)
    segments: list[int] = []
    segment = 0
    for position, binding in enumerate(bindings):
        if _moves_nothing_across(binding, outlined.module):
            segment += 1
        if position not in candidates:
            for var in _variables(binding):
                if var in index_of:
                    escapes[index_of[var]] = True
            continue
        segments.append(segment)
        call = binding.value
        assert isinstance(call, Call)
        facts = _facts(call, outlined)
        for place, arg in enumerate(call.args[1].fields):  # type: ignore[attr-defined]
            if isinstance(arg, Var) and arg in index_of:
                uses[index_of[arg]].append(Use(len(segments) - 1, *facts.use(place)))
    found: list[KernelCall] = []
    for index, position in enumerate(positions):
        call, var = bindings[position].value, bindings[position].var
        assert isinstance(call, Call)
        facts = _facts(call, outlined)
        found.append(
            KernelCall(
                index,
                var.name,
                call.args[0].name,  # type: ignore[attr-defined]
                facts.pattern,
                var.ty,  # type: ignore[arg-type]
                facts.target,
                segments[index],
                facts.cost,
                facts.size,
                facts.gathers,
                len(facts.nests),
                tuple(uses[index]),
                escapes[index],
                facts.terms,
                facts.columns(call.args[1].fields),  # type: ignore[attr-defined]
            )
        )
    return found


def _facts(call: Call, outlined: _Outlined) -> _KernelFacts:
    facts = outlined.kernel(call.args[0].name)  # type: ignore[attr-defined]
    assert facts is not None
    return facts


_OVERWRITES = ("call_tir_inplace", "call_inplace_packed")


def _moves_nothing_across(binding: Binding, module: IRModule) -> bool:
    value = binding.value
    overwrites = isinstance(value, Call) and isinstance(value.op, Op) and value.op.name in _OVERWRITES
    return overwrites or not is_pure(value, module)


def _variables(binding: Binding) -> Iterator[Var]:
    """The variables that a binding uses, branches and types included."""
    for part in walk(binding.value):
        if isinstance(part, Var):
            yield part
    yield from shape_variables(binding.var.ty)


def _check_groups(groups: Sequence[Sequence[int]], calls: Sequence[KernelCall]) -> None:
    seen: set[int] = set()
    for group in groups:
        for index in group:
            if not 0 <= index < len(calls) or index in seen:
                raise PassError(
                    f"fuse-ops: call {index} is in no or in several of {len(calls)} calls",
                    code="W534",
                    hint="each group lists indices of the given calls, and no call is in two groups",
                )
            seen.add(index)
        labels = {calls[index].target for index in group}
        if len(labels) > 1 or len({calls[index].segment for index in group}) > 1:
            raise PassError(
                f"fuse-ops: the calls {', '.join(calls[index].name for index in group)} cannot be one function",
                code="W534",
                hint="their labels differ, or an effect lies between them",
            )


def _used_outside(bindings: Sequence[Binding], unit: dict[int, int]) -> dict[int, list[Var]]:
    """For each group the variables that something outside of it uses, in order."""
    number_of = {bindings[position].var: number for position, number in unit.items()}
    wanted = {var for var in number_of if not isinstance(var, DataflowVar)}
    for position, binding in enumerate(bindings):
        wanted.update(var for var in _variables(binding) if number_of.get(var, -1) not in (-1, unit.get(position)))
    found: dict[int, list[Var]] = {number: [] for number in unit.values()}
    for position in sorted(unit):
        if bindings[position].var in wanted:
            found[unit[position]].append(bindings[position].var)
    return found


def _order(bindings: Sequence[Binding], unit: dict[int, int], groups: Sequence[Sequence[int]]) -> list[Binding | int]:
    """Bindings and groups (by number), each where its last member was unless something before needs it earlier."""
    owner = {binding.var: position for position, binding in enumerate(bindings)}
    casts = [position for position, binding in enumerate(bindings) if isinstance(binding, MatchCast)]
    done: set[int] = set()
    entered: set[int] = set()
    result: list[Binding | int] = []

    def last(position: int) -> int:
        """A group goes by its last member."""
        return max(groups[unit[position]]) if position in unit else position

    def needs(position: int) -> Iterator[int]:
        for member in groups[unit[position]] if position in unit else (position,):
            yield from (owner[var] for var in _variables(bindings[member]) if var in owner)
            before = bisect_left(casts, member)
            yield from casts[max(before - 1, 0) : before]  # its symbols may occur in types; it needs those before it

    for start in range(len(bindings)):
        stack = [(start, False)] if start == last(start) else []
        while stack:
            position, finished = stack.pop()
            if position in done:
                continue
            if finished:
                done.add(position)
                entered.discard(position)
                result.append(unit[position] if position in unit else bindings[position])
                continue
            entered.add(position)
            stack.append((position, True))
            wanted = dict.fromkeys(last(needed) for needed in needs(position))
            wanted.pop(position, None)
            if any(other in entered for other in wanted):
                raise PassError(
                    "fuse-ops: a group cannot be computed at once: what it needs depends on what it gives",
                    code="W534",
                    hint="a group holds every call between two of its members",
                )
            stack.extend((other, False) for other in reversed(wanted) if other not in done)
    return result


def _group_function(
    members: Sequence[VarBinding], used: Sequence[Var], calls: Sequence[KernelCall]
) -> tuple[Function, tuple[Expr, ...]]:
    """The function of a group and the arguments of its call."""
    own = {member.var for member in members}
    params: dict[Expr, Var] = {}
    for member in members:
        for leaf in operands(member.value):
            if isinstance(leaf, (Var, Constant)) and leaf not in own and leaf not in params:
                name = leaf.name if isinstance(leaf, Var) else "constant"
                params[leaf] = Var(name, leaf.ty, span=leaf.span)
    wanted = list(used)
    local = {var: (Var if var in wanted else DataflowVar)(var.name, var.ty, span=var.span) for var in own}

    def leaf_of(leaf: Expr) -> Expr:
        if isinstance(leaf, Var) and leaf in local:
            return local[leaf]
        return params.get(leaf, leaf)

    bindings = tuple(replace(m, var=local[m.var], value=map_operands(m.value, leaf_of)) for m in members)
    result: Expr = local[wanted[0]] if len(wanted) == 1 else Tuple(tuple(local[var] for var in wanted))
    ret_type: Type = wanted[0].ty if len(wanted) == 1 else TupleType(tuple(var.ty for var in wanted))
    body = SeqExpr((DataflowBlock(bindings),), result)
    names = [call.kernel for call in calls]
    attrs = {PRIMITIVE: True, FUSION: _reason(calls), KERNELS: tuple(names)}
    if calls[0].target is not None:
        attrs[LABEL] = calls[0].target
    function = Function(tuple(params.values()), body, ret_type, private=True, attrs=FrozenMap(attrs))
    carried = {name for var in params.values() for name in bare_symbols(var.ty)}
    loose = sorted(symbols_of(function) - carried)
    args: tuple[Expr, ...] = tuple(params)
    if loose:
        dims = tuple(map(symbol, loose))
        sizes = Var("sizes", ShapeType(dims))
        function = replace(function, params=(*function.params, sizes))
        args = (*args, ShapeExpr(dims))
    return function, args


def _reason(calls: Sequence[KernelCall]) -> str:
    """Why the calls are together, in words."""
    heavy = [call.kernel for call in calls if call.pattern in HEAVY]
    chain = " + ".join(call.kernel for call in calls)
    what = f"{heavy[0]} with what is computed at its elements" if heavy else "computed at each element"
    return f"{chain}: {what}"
