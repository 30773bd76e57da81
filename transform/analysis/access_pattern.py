"""Loop nests around one store: what fusion sees of a kernel.

    nest ::= for v0: for v1: ...: block(v0, v1, ...): [init]; out[...] = value      the block may be left out

`nests_of` reads a kernel as a list of such nests; None where it holds anything else. `reading` says how a nest reads a
buffer, `cost` what computing a value takes. Nothing here goes by names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum

from weft.dtypes import is_integer
from weft.ir import structural_equal, walk
from weft.ir.dim import Dim, product, same
from weft.ir.kernel.intrinsics import INTRINSICS
from weft.ir.kernel.prim_dim import prim_to_dim
from weft.ir.tensor import (
    AllocBuffer,
    AssertStmt,
    Binary,
    Block,
    Broadcast,
    Buffer,
    BufferLoad,
    BufferStore,
    Cast,
    Extent,
    FloatImm,
    For,
    IfThenElse,
    IntImm,
    Let,
    PrimCall,
    PrimExpr,
    PrimFunc,
    PrimVar,
    Ramp,
    Select,
    SeqStmt,
    Shuffle,
    Stmt,
    Unary,
)
from weft.support.records import dataclass

__all__ = [
    "Cost",
    "Nest",
    "Reading",
    "cost",
    "is_pure_value",
    "most_of",
    "nest_of",
    "nests_of",
    "part_of",
    "reading",
    "same_extents",
    "size_of",
    "statements_of",
    "writes_whole",
]


class Reading(IntEnum):
    """How a nest reads the elements of a buffer, from the best for fusion to the worst."""

    SAME = 0
    """Each where the nest stores: out[i, j] from x[i, j]."""
    PART = 1
    """Each of one of several equal parts of the columns, in the order of the nest: out[i, j] from x[i, j + n]."""
    ONCE = 2
    """Each at most once, in another order."""
    REPEATED = 3
    """Some of them more than once."""
    UNKNOWN = 4
    """Outside of the nests that are understood."""


class Cost(IntEnum):
    """What computing one element takes."""

    MOVE = 0
    """Nothing: a load, a constant, or a conversion of one."""
    ARITHMETIC = 1
    """A few instructions."""
    EXPENSIVE = 2
    """Divisions, intrinsics, much arithmetic."""


@dataclass(frozen=True, eq=False)
class Nest:
    """One nest: its iteration variables with extents in order, and what it stores."""

    stmt: Stmt
    extents: dict[PrimVar, Extent]
    spatial: tuple[PrimVar, ...]
    reduction: tuple[PrimVar, ...]
    store: BufferStore
    init: BufferStore | None
    block: Block | None

    @property
    def is_contraction(self) -> bool:
        """Whether the nest sums products of two loads."""
        value = self.store.value
        if not self.reduction or not isinstance(value, Binary) or value.kind != "add":
            return False
        products = [_uncast(part) for part in (value.a, value.b)]
        return any(
            isinstance(part, Binary) and part.kind == "mul" and _is_load(part.a) and _is_load(part.b)
            for part in products
        )


def _uncast(value: PrimExpr) -> PrimExpr:
    while isinstance(value, Cast):
        value = value.value
    return value


def _is_load(value: PrimExpr) -> bool:
    return isinstance(_uncast(value), BufferLoad)


# Recognition --------------------------------------------------------------------------------------------------------


def statements_of(stmt: Stmt) -> tuple[Stmt, ...]:
    """The statements of a sequence, or the one statement."""
    return stmt.stmts if isinstance(stmt, SeqStmt) else (stmt,)


def nests_of(function: PrimFunc) -> list[Nest] | None:
    """The nests of a kernel in order; None when it is made of anything else than nests, asserts and allocations."""
    if not all(_is_plain_parameter(param) for param in function.params):
        return None
    nests: list[Nest] = []
    for stmt in statements_of(function.body):
        if isinstance(stmt, (AllocBuffer, AssertStmt)) or _only_asserts(stmt):
            continue
        if isinstance(stmt, IfThenElse) and stmt.else_body is None and is_pure_value(stmt.condition):
            stmt = stmt.then_body  # the result of a reduction that has nothing to join
        nest = nest_of(stmt)
        if nest is None:
            return None
        nests.append(nest)
    return nests


def _is_plain_parameter(param: Buffer | PrimVar) -> bool:
    """Whether a parameter is a scalar, or compact memory whose symbols are of the dtype of dimensions."""
    if isinstance(param, PrimVar):
        return is_integer(param.dtype)
    plain = param.strides is None and param.elem_offset is None and param.data is None and param.scope == "global"
    variables = (x for extent in param.shape if isinstance(extent, PrimExpr) for x in walk(extent))
    return plain and all(x.dtype == "int64" for x in variables if isinstance(x, PrimVar))


def _only_asserts(stmt: Stmt) -> bool:
    """Whether a statement checks and computes nothing: asserts, in loops where they are about elements."""
    if isinstance(stmt, For):
        return _only_asserts(stmt.body)
    if isinstance(stmt, Block):
        return stmt.init is None and not stmt.alloc_buffers and _only_asserts(stmt.body)
    if isinstance(stmt, SeqStmt):
        return all(map(_only_asserts, stmt.stmts))
    return isinstance(stmt, AssertStmt)


def nest_of(stmt: Stmt) -> Nest | None:
    """The statement as a nest, or None."""
    loops: dict[PrimVar, Extent] = {}
    inner = stmt
    while isinstance(inner, For):
        if inner.kind != "serial" or inner.annotations or inner.thread or inner.step not in (None, 1):
            return None
        if not (isinstance(inner.start, int) and inner.start == 0) or _depends(inner.extent, loops):
            return None
        loops[inner.loop_var] = inner.extent
        inner = inner.body
    if isinstance(inner, Block):
        return _block_nest(stmt, loops, inner)
    if not isinstance(inner, BufferStore) or not _is_plain_store(inner):
        return None
    if set(loops) - set(inner.indices):  # one element stored by several iterations
        return None
    return Nest(stmt, loops, tuple(loops), (), inner, None, None)


def _depends(extent: Extent, loops: dict[PrimVar, Extent]) -> bool:
    return isinstance(extent, PrimExpr) and any(x in loops or isinstance(x, BufferLoad) for x in walk(extent))


def _block_nest(stmt: Stmt, loops: dict[PrimVar, Extent], block: Block) -> Nest | None:
    """A nest whose block stands for its loops one to one, with nothing else attached to it."""
    values = [item.value for item in block.iter_vars]
    if len(set(values)) != len(loops) or set(values) != set(loops) or len(values) != len(loops):
        return None
    if block.predicate is not None or block.alloc_buffers or block.match_buffers or block.annotations:
        return None
    if any(item.kind not in ("spatial", "reduce") or item.start != 0 for item in block.iter_vars):
        return None
    extents: dict[PrimVar, Extent] = {}
    for item in block.iter_vars:
        assert isinstance(item.value, PrimVar)
        if not same_extents((item.extent,), (loops[item.value],)):
            return None
        extents[item.var] = loops[item.value]
    spatial = tuple(item.var for item in block.iter_vars if item.kind == "spatial")
    reduction = tuple(item.var for item in block.iter_vars if item.kind == "reduce")
    store, init = block.body, block.init
    if not isinstance(store, BufferStore) or not _is_plain_store(store) or set(spatial) - set(store.indices):
        return None
    if init is not None and (not isinstance(init, BufferStore) or not _is_plain_store(init)):
        return None
    return Nest(stmt, extents, spatial, reduction, store, init, block)


def _is_plain_store(store: BufferStore) -> bool:
    return store.predicate is None and all(map(is_pure_value, (store.value, *store.indices)))


_SCALAR = (PrimVar, IntImm, FloatImm, Unary, Binary, Cast, Select, BufferLoad, Let, PrimCall, Buffer)


def is_pure_value(value: PrimExpr) -> bool:
    """Whether a value is scalar arithmetic on loads, which may be computed anywhere."""
    for part in walk(value):
        if not isinstance(part, _SCALAR):
            return False
        if isinstance(part, PrimCall) and not (isinstance(part.op, str) and _is_pure_intrinsic(part.op)):
            return False
        if isinstance(part, BufferLoad) and part.predicate is not None:
            return False
    return True


def _is_pure_intrinsic(name: str) -> bool:
    entry = INTRINSICS.get(name)
    return entry is not None and entry.pure and entry.rule != "given" and entry.arity >= 0


def same_extents(a: Sequence[Extent], b: Sequence[Extent]) -> bool:
    """Whether two lists of sizes over the same variables are equal for all their values."""
    if len(a) != len(b):
        return False
    names = _names((*a, *b))
    for x, y in zip(a, b, strict=True):
        left, right = prim_to_dim(x, names), prim_to_dim(y, names)
        if left is None or right is None or not same(left, right):
            return False
    return True


def _names(extents: Sequence[Extent]) -> dict[PrimVar, str]:
    """A name for each variable of the extents: variables are told apart by identity, dimensions by name."""
    variables = (x for extent in extents if isinstance(extent, PrimExpr) for x in walk(extent))
    return {x: f"s{i}" for i, x in enumerate(dict.fromkeys(x for x in variables if isinstance(x, PrimVar)))}


def writes_whole(nest: Nest) -> bool:
    """Whether a nest without reduction gives every element of its buffer once, in the order of the indices."""
    store = nest.store
    own = len(set(store.indices)) == len(store.indices) and set(store.indices) == set(nest.spatial)
    if nest.reduction or nest.init is not None or not own:
        return False
    return same_extents([nest.extents[x] for x in store.indices if isinstance(x, PrimVar)], store.buffer.shape)


# Readings and costs -------------------------------------------------------------------------------------------------


def reading(nest: Nest, load: BufferLoad) -> Reading:
    """How one load of a nest goes through its buffer."""
    if not nest.reduction and len(load.indices) == len(nest.store.indices):
        alike = all(_same_place(x, y, nest) for x, y in zip(load.indices, nest.store.indices, strict=True))
        if alike and same_extents(load.buffer.shape, nest.store.buffer.shape):
            return Reading.SAME
    if part_of(nest, load) is not None:
        return Reading.PART
    used = [set(_variables(index, nest)) for index in load.indices]
    needed = {var for var, extent in nest.extents.items() if not _is_one(extent)}
    if needed - set().union(*used) or any(isinstance(x, BufferLoad) for index in load.indices for x in walk(index)):
        return Reading.REPEATED
    separate = all(isinstance(index, (PrimVar, IntImm)) for index in load.indices)
    if separate or _same_size(tuple(nest.extents.values()), load.buffer.shape):
        return Reading.ONCE
    return Reading.REPEATED


def part_of(nest: Nest, load: BufferLoad) -> int | None:
    """Which of several equal parts of a buffer's columns a load of a nest reads, each where the nest stores; None for
    other loads."""
    store, shape = nest.store, load.buffer.shape
    if nest.reduction or not shape or len(load.indices) != len(store.indices):
        return None
    *rows, column = load.indices
    *stored, v = store.indices
    width, whole = store.buffer.shape[-1], shape[-1]
    if not all(_same_place(x, y, nest) for x, y in zip(rows, stored, strict=True)) or not isinstance(v, PrimVar):
        return None
    if not isinstance(width, int) or not isinstance(whole, int) or whole <= width or not width or whole % width:
        return None
    if not same_extents(shape[:-1], store.buffer.shape[:-1]) or not same_extents((nest.extents.get(v, 0),), (width,)):
        return None
    start = _start_of(column, v)
    return start // width if start is not None and start % width == 0 and start < whole else None


def _start_of(index: PrimExpr, var: PrimVar) -> int | None:
    """The constant that is added to a variable in an index, None where that is not all."""
    if index is var:
        return 0
    if not isinstance(index, Binary) or index.kind != "add":
        return None
    a, b = (index.a, index.b) if index.a is var else (index.b, index.a)
    return b.value if a is var and isinstance(b, IntImm) else None


def _same_place(index: PrimExpr, stored: PrimExpr, nest: Nest) -> bool:
    """Whether an index is the iteration variable that is stored at; along an axis of one element, 0 is that too."""
    if not isinstance(stored, PrimVar) or stored not in nest.extents:
        return False
    return index is stored or (isinstance(index, IntImm) and index.value == 0 and _is_one(nest.extents[stored]))


def _is_one(extent: Extent) -> bool:
    return isinstance(extent, int) and extent == 1


def _variables(index: PrimExpr, nest: Nest) -> Iterator[PrimVar]:
    return (x for x in walk(index) if isinstance(x, PrimVar) and x in nest.extents)


def _same_size(a: Sequence[Extent], b: Sequence[Extent]) -> bool:
    """Whether two shapes have one number of elements."""
    names = _names((*a, *b))
    sizes: list[Dim] = []
    for shape in (a, b):
        dims = [prim_to_dim(extent, names) for extent in shape]
        if any(dim is None for dim in dims):
            return False
        sizes.append(product(dim for dim in dims if dim is not None))
    return same(*sizes)


def cost(value: PrimExpr) -> Cost:
    """What computing a value takes; the indices of its loads cost nothing extra."""
    found, stack = Cost.MOVE, [value]
    operations = 0
    while stack:
        part = stack.pop()
        if isinstance(part, BufferLoad):
            continue
        if isinstance(part, PrimCall):
            if part.op != "if_then_else":
                return Cost.EXPENSIVE
            stack.extend(arg for arg in part.args[1:] if isinstance(arg, PrimExpr))
        elif isinstance(part, Binary):
            if part.kind in ("div", "floordiv", "floormod", "truncdiv", "truncmod"):
                return Cost.EXPENSIVE
            operations += 1
            stack.extend((part.a, part.b))
        elif isinstance(part, Unary):
            operations += 1
            stack.append(part.a)
        elif isinstance(part, Select):
            operations += 1
            stack.extend((part.condition, part.true_value, part.false_value))
        elif isinstance(part, Cast):
            stack.append(part.value)
        elif isinstance(part, (Let, Ramp, Broadcast, Shuffle)):
            return Cost.EXPENSIVE
    if operations:
        found = Cost.ARITHMETIC if operations <= 4 else Cost.EXPENSIVE
    return found


def size_of(value: PrimExpr) -> int:
    """The number of nodes of an expression, shared ones counted each time."""
    return sum(1 for _ in walk(value))


def most_of(extent: Extent) -> int | None:
    """The most that an extent can be, where it tells that (what a block has of an axis); None where it does not.

    >>> from weft.ir.kernel.prim import binary, const
    >>> from weft.ir.tensor import PrimVar
    >>> most_of(binary("min", PrimVar("n", "int64"), const(64, "int64")))
    64
    """
    if isinstance(extent, int):
        return extent
    if isinstance(extent, IntImm):
        return extent.value
    if isinstance(extent, Binary) and extent.kind == "min":
        return min((most for most in (most_of(extent.a), most_of(extent.b)) if most is not None), default=None)
    if isinstance(extent, Binary) and extent.kind == "mul":
        a, b = most_of(extent.a), most_of(extent.b)
        return None if a is None or b is None else a * b
    if isinstance(extent, Binary) and extent.kind == "add":
        a, b = most_of(extent.a), most_of(extent.b)
        return None if a is None or b is None else a + b
    if isinstance(extent, Binary) and extent.kind == "floordiv" and isinstance(extent.b, IntImm) and extent.b.value > 0:
        most = most_of(extent.a)
        return None if most is None else most // extent.b.value
    divisor = _divisor_of(extent)
    return None if divisor is None else divisor - 1


def _divisor_of(extent: Extent) -> int | None:
    """c > 0 of what a division by it leaves, `a % c` or `a - a // c * c`; None for another extent."""
    match extent:
        case Binary(kind="floormod", b=IntImm(value=c)) if c > 0:
            return c
        case Binary(kind="sub", a=a, b=Binary(kind="mul", a=Binary(kind="floordiv") as quotient, b=IntImm(value=c))):
            divides = isinstance(quotient.b, IntImm) and quotient.b.value == c > 0
            return c if divides and structural_equal(quotient.a, a) else None
        case _:
            return None
