"""What a nest is that keeps the position of the maximum or minimum: two values that are stored together.

p[i], v[i] = (p[i], v[i]) if is_first((p[i], v[i]), (k, x[i, k])) else (k, x[i, k])
"""

from __future__ import annotations

from collections.abc import Callable

from weft import dtypes
from weft.ir import replace, te
from weft.ir.kernel.nests import perfect_nest
from weft.ir.kernel.prim import binary, cast, const, unary
from weft.ir.op.indexing.search import Better, is_first
from weft.ir.structure.structural import structural_equal
from weft.ir.tensor import (
    Bind,
    Block,
    Buffer,
    BufferLoad,
    BufferStore,
    For,
    PrimExpr,
    PrimVar,
    Select,
    SeqStmt,
    Stmt,
)
from weft.support.records import dataclass
from weft.target.machine_model import MachineModel
from weft.transform.analysis.access_pattern import Nest, is_pure_value, nest_of
from weft.transform.autoschedule.knobs import Knobs
from weft.transform.autoschedule.rules.loops import INDEX
from weft.transform.autoschedule.rules.strides import kinds_in, loads_in, same_place, step_along, uses

__all__ = ["ArgReduction", "Running", "arg_reduction"]


_KINDS: tuple[tuple[str, Better, Callable[[str], float | int]], ...] = (
    ("le", lambda a, b: a > b, dtypes.lowest),
    ("ge", lambda a, b: a < b, dtypes.highest),
)
"""What holds where a value is not better than another one, what "better" is, and the worst value of a dtype."""


@dataclass(frozen=True)
class ArgReduction:
    """Positions and values: what is stored, what it starts from, and the candidate of one iteration.

    `step_dtype` is that of the numbers of steps, of which vectors have as many lanes as of values.
    """

    nest: Nest
    places: tuple[BufferLoad, BufferLoad]
    start: tuple[BufferStore, BufferStore]
    position: PrimExpr
    value: PrimExpr
    not_better: str
    better: Better
    machine: MachineModel
    knobs: Knobs
    step_dtype: str

    @property
    def lanes(self) -> int:
        """Lanes of its vectors."""
        loads = (load.dtype for load in loads_in(self.value))
        return self.machine.lanes([*loads, self.value.dtype, self.step_dtype])

    def is_even(self, var: PrimVar) -> bool:
        """Whether vectors along a variable load contiguous or evenly strided memory."""
        return all(step_along(load, var) in range(self.knobs.max_stride + 1) for load in loads_in(self.value))

    def extreme(self, a: PrimExpr, b: PrimExpr) -> PrimExpr:
        """The better one of two values, or a nan."""
        return binary("max" if self.not_better == "le" else "min", a, b)

    def wins(self, new: PrimExpr, old: PrimExpr) -> PrimExpr:
        """Whether a later value replaces an earlier one."""
        wins = unary("not", binary(self.not_better, new, old))
        return te.all(wins, te.equal(old, old)) if dtypes.is_float(old.dtype) else wins

    def update(self, position: PrimExpr, value: PrimExpr) -> list[Stmt]:
        """A candidate given to what is stored, as in the nest."""
        keep = is_first(self.better, self.places, (position, value))
        names = [PrimVar(name, place.dtype) for name, place in zip(("position", "value"), self.places, strict=True)]
        binds = [
            Bind(name, Select(keep, place, new))
            for name, place, new in zip(names, self.places, (position, value), strict=True)
        ]
        stores = [
            BufferStore(place.buffer, name, place.indices, span=store.span)
            for name, place, store in zip(names, self.places, self.start, strict=True)
        ]
        return [*binds, *stores]


def arg_reduction(stmt: Stmt, machine: MachineModel, knobs: Knobs) -> ArgReduction | None:
    """The nest as one that keeps positions, whose numbers of steps are int64 at first; None where it is none."""
    _, block = perfect_nest(stmt)
    if not isinstance(block, Block) or not isinstance(block.body, SeqStmt) or not isinstance(block.init, SeqStmt):
        return None
    if len(block.body.stmts) != 4 or len(block.init.stmts) != 2:
        return None
    first, second, *stores = block.body.stmts
    start = block.init.stmts
    if not isinstance(first, Bind) or not isinstance(second, Bind):
        return None
    put = tuple(part for part in (*stores, *start) if isinstance(part, BufferStore) and part.predicate is None)
    if len(put) != 4 or put[0].value is not first.var or put[1].value is not second.var:
        return None
    # One of the two stores stands for both in a nest, which says what the loops are.
    alone = replace(block, body=replace(put[0], value=first.value), init=put[2], reads=None, writes=None)
    nest = nest_of(_with_block(stmt, alone))
    if nest is None or not nest.reduction:
        return None
    return _arg_reduction_of(nest, first.value, second.value, (put[0], put[1]), (put[2], put[3]), machine, knobs)


def _with_block(stmt: Stmt, block: Block) -> Stmt:
    return replace(stmt, body=_with_block(stmt.body, block)) if isinstance(stmt, For) else block


def _arg_reduction_of(
    nest: Nest,
    first: PrimExpr,
    second: PrimExpr,
    stores: tuple[BufferStore, BufferStore],
    start: tuple[BufferStore, BufferStore],
    machine: MachineModel,
    knobs: Knobs,
) -> ArgReduction | None:
    if not isinstance(first, Select) or not isinstance(second, Select):
        return None
    position, value = first.false_value, second.false_value
    places = (BufferLoad(stores[0].buffer, stores[0].indices), BufferLoad(stores[1].buffer, stores[1].indices))
    kept = (first.true_value, second.true_value)
    for place, old, begin in zip(places, kept, start, strict=True):
        if not isinstance(old, BufferLoad) or not same_place(place, old) or not same_place(place, begin):
            return None
    kinds, own = kinds_in(value), {store.buffer for store in stores}
    loads = [*loads_in(value), *loads_in(position), *(load for put in start for load in loads_in(put.value))]
    if len(own) != 2 or kinds is None or not is_pure_value(value) or any(load.buffer in own for load in loads):
        return None
    if position.dtype != INDEX or any(uses(x, var) for put in stores for x in put.indices for var in nest.reduction):
        return None
    if dtypes.is_bool(value.dtype):
        return None
    for not_better, better, worst in _KINDS:
        keep = is_first(better, places, (position, value))
        given = [first.condition, second.condition, start[0].value, start[1].value]
        expected = [keep, keep, const(dtypes.max_value(INDEX), INDEX), const(worst(value.dtype), value.dtype)]
        if all(structural_equal(x, y) for x, y in zip(given, expected, strict=True)):
            return ArgReduction(nest, places, start, position, value, not_better, better, machine, knobs, INDEX)
    return None


@dataclass(frozen=True)
class Running:
    """Running values and the steps that they came from, in small buffers that registers hold."""

    found: ArgReduction
    steps: Buffer
    values: Buffer

    def clear(self, place: PrimExpr) -> Stmt:
        """Nothing was seen: the first candidate that is better than the worst value counts, else the first one."""
        zero = const(0, self.steps.dtype)
        worst = self.found.start[1].value
        return SeqStmt((BufferStore(self.steps, zero, (place,)), BufferStore(self.values, worst, (place,))))

    def take(self, place: PrimExpr, step: PrimExpr, value: PrimExpr) -> Stmt:
        """A candidate for one of them."""
        old_step, old = BufferLoad(self.steps, (place,)), BufferLoad(self.values, (place,))
        wins = self.found.wins(value, old)
        new_step = Select(wins, cast(self.steps.dtype, step), old_step)
        put = BufferStore(self.values, Select(wins, value, old), (place,))
        return SeqStmt((BufferStore(self.steps, new_step, (place,)), put))  # the step first: it looks at the old value

    @classmethod
    def of(cls, found: ArgReduction, width: int) -> Running:
        """So many of them."""
        steps = Buffer("steps", (width,), found.step_dtype, "local")
        return cls(found, steps, Buffer("values", (width,), found.value.dtype, "local"))
