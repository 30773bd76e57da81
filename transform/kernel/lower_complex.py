"""LowerComplex: complex numbers in kernels become pairs of floats over the same memory.

    x: T.Buffer((n, m), "complex64")         x_parts = T.decl_buffer((n, 2 * m), data=T.address_of(x[0, 0]))
    y[i, j] = x[i, j] * z[i, j]              re = x_parts[i, 2 * j]; im = x_parts[i, 2 * j + 1]; ...
                                             y_parts[i, 2 * j] = re * z_re - im * z_im; y_parts[i, 2 * j + 1] = ...
    y[i, j] = x[i, j] + z[i, j]              y_parts[i, j] = x_parts[i, j] + z_parts[i, j]        over 2 * m of them

The last form is that of nests that do the same to both parts (copies, sums, choices): loops over neighbouring floats,
which become vectors as any others do. Only addresses of complex parameters are left, so schedules and back ends see
floats. A product is (a c - b d, a d + b c), a quotient Smith's, as NumPy computes them: what is infinite or nan in one
part may make both nan (the rules of Annex G of C are not applied).
Source: R. L. Smith, Algorithm 116: Complex division, 1962.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, TypeVar

from weft import dtypes
from weft.errors import DTypeError
from weft.ir import IRModule, Node, PrimFunc, replace, rewrite, substitute, walk
from weft.ir.kernel.nests import perfect_nest
from weft.ir.kernel.prim import as_expr, binary, cast, const, intrinsic, unary
from weft.ir.kernel.simplify import simplify
from weft.ir.kernel.views import ADDRESSES
from weft.ir.structure.visit import nodes_of
from weft.ir.tensor import (
    Binary,
    Bind,
    Block,
    Buffer,
    BufferLoad,
    BufferRegion,
    BufferStore,
    Cast,
    DeclBuffer,
    Extent,
    FloatImm,
    For,
    IntImm,
    IterVar,
    Let,
    PrimCall,
    PrimExpr,
    PrimVar,
    Range,
    Select,
    SeqStmt,
    Stmt,
    Unary,
)
from weft.support.records import dataclass
from weft.transform.infra.base import FunctionPass
from weft.transform.infra.generators.choices import Choices

__all__ = ["LowerComplex", "has_complex"]

INDEX = "int64"
N = TypeVar("N", bound=Node)
T = TypeVar("T")
Pair = tuple[PrimExpr, PrimExpr]
"""The real and the imaginary part."""


@dataclass(frozen=True)
class LowerComplex(FunctionPass):
    """Complex buffers as views of floats, complex arithmetic as that of the parts.

    Raises: DTypeError W318 for complex numbers where there are no parts of them: scalar parameters, vectors, results.
    """

    kinds: ClassVar[type | tuple[type, ...]] = PrimFunc
    exact: ClassVar[str] = "real"

    @classmethod
    def sample(cls, choices: Choices) -> tuple[LowerComplex, str]:
        """A nest of products, or one of sums or quotients."""
        value = choices.pick(("x[vi, vj] * y[vi, vj]", "x[vi, vj] + y[vi, vj]", "x[vi, vj] / y[vi, vj]"))
        dtype = choices.pick(("complex64", "complex128"))
        return (
            cls(),
            f"""@I.ir_module
class Module:
    @T.prim_func
    def kernel(x: T.Buffer((2, 3), "{dtype}"), y: T.Buffer((2, 3), "{dtype}"), z: T.Buffer((2, 3), "{dtype}")):
        for i, j in T.grid(2, 3):
            with T.block("z"):
                vi, vj = T.axis.remap("SS", [i, j])
                z[vi, vj] = {value}
""",
        )

    def run_function(self, name: str, function: PrimFunc, module: IRModule) -> PrimFunc:
        """The kernel over floats; itself where nothing in it is complex."""
        return _Lowering().function(function) if has_complex(function) else function


def has_complex(function: PrimFunc) -> bool:
    """Whether some buffer or value of a kernel is complex, but for addresses of parameters.

    >>> from weft.ir.te import compute, create_prim_func, placeholder
    >>> x = placeholder((4,), "complex64")
    >>> has_complex(create_prim_func([x, compute((4,), lambda i: x[i] + x[i])]))
    True
    """
    accessed = (node.buffer.dtype for node in nodes_of(function.body, BufferStore))
    if not any(map(dtypes.is_complex, {*accessed, *(node.dtype for node in nodes_of(function.body, PrimExpr))})):
        return False
    views: set[int] = set()
    for node in walk(function.body):
        if isinstance(node, PrimCall) and node.op in ADDRESSES:
            views.update(map(id, node.args))
        elif isinstance(node, BufferLoad) and id(node) in views:
            continue
        elif isinstance(node, PrimExpr) and dtypes.is_complex(node.dtype):
            return True
        elif isinstance(node, BufferStore) and dtypes.is_complex(node.buffer.dtype):
            return True
    return False


def _refused(node: PrimExpr | Buffer, what: str) -> DTypeError:
    hint = "pass the parts: T.real(z), T.imag(z)"
    return DTypeError(f"{what} of {node.dtype} has no meaning in a kernel", code="W318", span=node.span, hint=hint)


# ---------------------------------------------------------------------------------------------------------------------
# Buffers
# ---------------------------------------------------------------------------------------------------------------------


def _doubled(extent: Extent) -> Extent:
    return extent * 2


def _parts_of(buffer: Buffer) -> Buffer:
    """The buffer of floats that has the memory of a complex one: twice as many along the last axis."""
    shape = (*buffer.shape[:-1], _doubled(buffer.shape[-1])) if buffer.shape else (2,)
    strides = buffer.strides
    if strides:
        if strides[-1] != 1:
            raise _refused(buffer, "a buffer whose last axis has steps")
        strides = (*(_doubled(stride) for stride in strides[:-1]), 1)
    offset = None if buffer.elem_offset is None else _doubled(buffer.elem_offset)
    dtype = dtypes.part(buffer.dtype)
    return replace(buffer, shape=shape, strides=strides or None, elem_offset=offset, dtype=dtype, size_dtypes=())


def _view_of(buffer: Buffer) -> Buffer:
    """The floats of a complex parameter."""
    first = BufferLoad(buffer, tuple(const(0, INDEX) for _ in buffer.shape))
    found = _parts_of(replace(buffer, elem_offset=None))
    return replace(found, name=f"{buffer.name}_parts", data=PrimCall("address_of", (first,), "handle"))


def _place(index: PrimExpr, part: int) -> PrimExpr:
    twice = as_expr(index) * 2
    return simplify(twice + part if part else twice)


# ---------------------------------------------------------------------------------------------------------------------
# Kernels
# ---------------------------------------------------------------------------------------------------------------------


class _Lowering:
    """Rewrites one kernel."""

    def __init__(self) -> None:
        self.buffers: dict[Buffer, Buffer] = {}
        self.variables: dict[PrimVar, Pair] = {}
        self.bound: list[tuple[PrimVar, PrimExpr]] = []  # what is computed before the statement at hand
        self.count = 0

    def function(self, function: PrimFunc) -> PrimFunc:
        """The kernel whose complex parameters are seen as floats."""
        for param in function.params:
            if isinstance(param, PrimVar) and dtypes.is_complex(param.dtype):
                raise _refused(param, "a scalar parameter")
        params = [x for x in function.params if isinstance(x, Buffer) and dtypes.is_complex(x.dtype)]
        views = {param: _view_of(param) for param in params}
        self.buffers.update(views)
        body = self.done(function.body)
        return replace(function, body=SeqStmt((*map(DeclBuffer, views.values()), body)))

    def done(self, node: N) -> N:
        """A statement, or what is not complex, over floats."""
        return rewrite(node, pre=self._before)

    def _before(self, node: Node) -> Node | None:
        rule = _RULES.get(node.__class__)
        found = None if rule is None else rule(self, node)
        if found is None and isinstance(node, PrimExpr) and dtypes.is_complex(node.dtype):
            raise _refused(node, "a value")
        return found

    # What is not complex, of what is

    def _buffer(self, node: Buffer) -> Buffer | None:
        if not dtypes.is_complex(node.dtype):
            return None
        if node not in self.buffers:
            found = _parts_of(node)
            self.buffers[node] = found
            if node.data is not None:
                self.buffers[node] = replace(found, data=self.done(node.data))
        return self.buffers[node]

    def _region(self, node: BufferRegion) -> BufferRegion | None:
        if not dtypes.is_complex(node.buffer.dtype):
            return None
        ranges = [self.done(item) for item in node.region]
        last = ranges.pop() if ranges else Range(0, 1)
        whole = Range(_doubled(last.start), _doubled(last.extent))
        return replace(node, buffer=self.done(node.buffer), region=(*ranges, whole))

    def _called(self, node: PrimCall) -> PrimExpr | None:
        complex_args = [x for x in node.args if isinstance(x, PrimExpr) and dtypes.is_complex(x.dtype)]
        if node.op in ADDRESSES and node.args:
            return self._address(node)
        if node.op in ("real", "imag") and complex_args:
            return self._alone(lambda: self.pair(complex_args[0])[node.op == "imag"])
        return None

    def _apart(self, make: Callable[[], T]) -> tuple[list[tuple[PrimVar, PrimExpr]], T]:
        """What is computed before something is, apart from what is for the statement at hand; and that itself."""
        outer, self.bound = self.bound, []
        made = make()
        inner, self.bound = self.bound, outer
        return inner, made

    def _alone(self, make: Callable[[], PrimExpr]) -> PrimExpr:
        """A value that is not complex, with what it needs inside of it."""
        return _within(*self._apart(make))

    def _address(self, node: PrimCall) -> PrimExpr | None:
        first = node.args[0]
        dtype = first.dtype if isinstance(first, (Buffer, BufferLoad)) else ""
        if not dtype or not dtypes.is_complex(dtype):
            return None
        if len(node.args) > 1:
            raise _refused(first, "an offset in a buffer")  # type: ignore[arg-type]
        if isinstance(first, BufferLoad):
            first = BufferLoad(self._floats(first.buffer), self._indices(first, 0))
        return replace(node, args=(self.done(first),) if isinstance(first, Buffer) else (first,))

    # Statements

    def _statement(self, make: Callable[[], Sequence[Stmt]]) -> Stmt:
        """What statements are made of, after what is computed for several of them."""
        bound, stmts = self._apart(make)
        made = (*(Bind(var, value) for var, value in bound), *stmts)
        return made[0] if len(made) == 1 else SeqStmt(made)

    def _store(self, node: BufferStore) -> Stmt | None:
        if not dtypes.is_complex(node.buffer.dtype):
            return None
        if node.predicate is not None:
            raise _refused(node.buffer, "a masked store")

        def stores() -> list[Stmt]:
            values, buffer = self.pair(node.value), self._floats(node.buffer)
            places = [self._indices(node, part) for part in range(2)]
            if any(isinstance(x, BufferLoad) and x.buffer is buffer for x in walk(values[1])):
                values = tuple(self._kept(value) for value in values)
            return [BufferStore(buffer, *item, span=node.span) for item in zip(values, places, strict=True)]

        return self._statement(stores)

    def _bind(self, node: Bind) -> Stmt | None:
        if not dtypes.is_complex(node.var.dtype):
            return None
        return self._statement(
            lambda: [Bind(*item, span=node.span) for item in self._named(node.var, self.pair(node.value))]
        )

    def _named(self, var: PrimVar, values: Pair) -> list[tuple[PrimVar, PrimExpr]]:
        """Variables for the parts of a complex one."""
        parts = [PrimVar(f"{var.name}_{part}", dtypes.part(var.dtype)) for part in ("re", "im")]
        self.variables[var] = parts[0], parts[1]
        return list(zip(parts, values, strict=True))

    def _for(self, node: For) -> Stmt | None:
        return _over_floats(node, self._floats)

    # Complex values

    def _floats(self, buffer: Buffer) -> Buffer:
        found = self._buffer(buffer)
        assert found is not None
        return found

    def _indices(self, access: BufferLoad | BufferStore, part: int) -> tuple[PrimExpr, ...]:
        if any(dtypes.lanes(index.dtype) != 1 for index in access.indices) or dtypes.lanes(access.buffer.dtype) != 1:
            raise _refused(access.buffer, "a vector")
        indices: list[PrimExpr] = [self.done(index) for index in access.indices]  # type: ignore[misc]
        last = _place(indices.pop(), part) if indices else const(part, INDEX)
        return (*indices, last)

    def pair(self, node: PrimExpr) -> Pair:
        """The parts of a complex expression."""
        rule = _PAIRS.get(node.__class__)
        if rule is None or dtypes.lanes(node.dtype) != 1:
            raise _refused(node, "a vector" if dtypes.lanes(node.dtype) != 1 else f"{type(node).__name__}")
        return rule(self, node)

    def _kept(self, value: PrimExpr) -> PrimExpr:
        """A value that is used several times, computed once."""
        if isinstance(value, (PrimVar, FloatImm, IntImm)):
            return value
        self.count += 1
        var = PrimVar(f"part_{self.count}", value.dtype)
        self.bound.append((var, value))
        return var

    def _inside(self, node: PrimExpr) -> Pair:
        made, values = self._apart(lambda: self.pair(node))
        return _within(made, values[0]), _within(_renamed(made), values[1], made)


# ---------------------------------------------------------------------------------------------------------------------
# Complex values as pairs
# ---------------------------------------------------------------------------------------------------------------------


def _loaded(kernel: _Lowering, node: BufferLoad) -> Pair:
    if node.predicate is not None:
        raise _refused(node, "a masked load")
    buffer = kernel._floats(node.buffer)
    return BufferLoad(buffer, kernel._indices(node, 0)), BufferLoad(buffer, kernel._indices(node, 1))


def _variable(kernel: _Lowering, node: PrimVar) -> Pair:
    return kernel.variables[node]


def _arithmetic(kernel: _Lowering, node: Binary) -> Pair:
    (a, b), (c, d) = kernel.pair(node.a), kernel.pair(node.b)
    if node.kind in ("add", "sub"):
        return binary(node.kind, a, c), binary(node.kind, b, d)
    (a, b), (c, d) = map(kernel._kept, (a, b)), map(kernel._kept, (c, d))
    return (a * c - b * d, a * d + b * c) if node.kind == "mul" else _quotient(kernel, (a, b), (c, d))


def _quotient(kernel: _Lowering, x: Pair, y: Pair) -> Pair:
    """Smith's: by the greater part of the divisor, so that nothing overflows that need not."""
    (a, b), (c, d) = x, y
    size_c, size_d = intrinsic("abs", c), intrinsic("abs", d)
    by_real = kernel._kept(binary("ge", size_c, size_d))
    zero = kernel._kept(binary("and", binary("eq", size_c, 0), binary("eq", size_d, 0)))
    great, small = kernel._kept(Select(by_real, c, d)), kernel._kept(Select(by_real, d, c))
    ratio = kernel._kept(small / great)
    scale = kernel._kept(const(1, c.dtype) / (great + small * ratio))
    real = Select(by_real, a + b * ratio, a * ratio + b) * scale
    imaginary = Select(by_real, b - a * ratio, b * ratio - a) * scale
    return Select(zero, a / size_c, real), Select(zero, b / size_c, imaginary)


def _negated(kernel: _Lowering, node: Unary) -> Pair:
    a, b = kernel.pair(node.a)
    return unary(node.kind, a), unary(node.kind, b)


def _converted(kernel: _Lowering, node: Cast) -> Pair:
    part = dtypes.part(node.dtype)
    if dtypes.is_complex(node.value.dtype):
        a, b = kernel.pair(node.value)
        return cast(part, a), cast(part, b)
    return cast(part, kernel.done(node.value)), const(0, part)  # type: ignore[arg-type]


def _selected(kernel: _Lowering, node: Select) -> Pair:
    condition: PrimExpr = kernel._kept(kernel.done(node.condition))  # type: ignore[arg-type]
    (a, b), (c, d) = kernel.pair(node.true_value), kernel.pair(node.false_value)
    return Select(condition, a, c), Select(condition, b, d)


def _chosen(kernel: _Lowering, node: PrimCall) -> Pair:
    """A lazy choice: what its sides need is computed inside of them."""
    condition: PrimExpr = kernel.done(node.args[0])  # type: ignore[assignment]
    sides = [kernel._inside(side) for side in node.args[1:]]  # type: ignore[arg-type]
    real, imaginary = (PrimCall(node.op, (condition, *side), side[0].dtype) for side in zip(*sides, strict=True))
    return real, imaginary


def _let_pair(kernel: _Lowering, node: Let) -> Pair:
    if dtypes.is_complex(node.var.dtype):
        kernel.bound += kernel._named(node.var, kernel.pair(node.value))
    else:
        kernel.bound.append((node.var, kernel.done(node.value)))  # type: ignore[arg-type]
    return kernel.pair(node.body)


def _calculated(kernel: _Lowering, node: PrimCall) -> Pair:
    rule = _CALLS.get(node.op) if isinstance(node.op, str) else None
    if rule is None:
        raise _refused(node, "a result")
    return rule(kernel, node)


def _joined(kernel: _Lowering, node: PrimCall) -> Pair:
    real, imaginary = (kernel.done(arg) for arg in node.args)
    return real, imaginary  # type: ignore[return-value]


def _conjugate(kernel: _Lowering, node: PrimCall) -> Pair:
    a, b = kernel.pair(node.args[0])  # type: ignore[arg-type]
    return a, unary("neg", b)


def _undefined(kernel: _Lowering, node: PrimCall) -> Pair:
    part = replace(node, dtype=dtypes.part(node.dtype))
    return part, part


def _compared(kernel: _Lowering, node: Binary) -> PrimExpr | None:
    if not dtypes.is_complex(node.a.dtype) or dtypes.is_complex(node.dtype):
        return None

    def compared() -> PrimExpr:
        (a, b), (c, d) = kernel.pair(node.a), kernel.pair(node.b)
        return binary("and" if node.kind == "eq" else "or", binary(node.kind, a, c), binary(node.kind, b, d))

    return kernel._alone(compared)


def _let(kernel: _Lowering, node: Let) -> PrimExpr | None:
    if not dtypes.is_complex(node.var.dtype) or dtypes.is_complex(node.dtype):
        return None

    def inside() -> PrimExpr:
        kernel.bound += kernel._named(node.var, kernel.pair(node.value))
        return kernel.done(node.body)  # type: ignore[return-value]

    return kernel._alone(inside)


Named = Sequence[tuple[PrimVar, PrimExpr]]
"""Variables and their values, each of which may use those before it."""


def _within(made: Named, value: PrimExpr, old: Named = ()) -> PrimExpr:
    """A value after what it needs; `old` has the variables that those of `made` stand for."""
    mapping = {was: var for (was, _), (var, _) in zip(old, made, strict=False)}
    value = substitute(value, mapping)
    for var, part in reversed(made):
        value = Let(var, part, value)
    return value


def _renamed(made: Named) -> list[tuple[PrimVar, PrimExpr]]:
    """The same values under variables of their own."""
    mapping: dict[PrimVar, PrimVar] = {}
    found: list[tuple[PrimVar, PrimExpr]] = []
    for var, value in made:
        new = PrimVar(var.name, var.dtype)
        found.append((new, substitute(value, mapping)))
        mapping[var] = new
    return found


_RULES = {
    Buffer: _Lowering._buffer,
    BufferRegion: _Lowering._region,
    PrimCall: _Lowering._called,
    Binary: _compared,
    Let: _let,
    BufferStore: _Lowering._store,
    Bind: _Lowering._bind,
    For: _Lowering._for,
}
_CALLS = {
    "complex": _joined,
    "conj": _conjugate,
    "if_then_else": _chosen,
    "undef": _undefined,
}
_PAIRS = {
    BufferLoad: _loaded,
    PrimVar: _variable,
    Binary: _arithmetic,
    Unary: _negated,
    Cast: _converted,
    Select: _selected,
    Let: _let_pair,
    PrimCall: _calculated,
}
"""How a complex node is a pair."""


# ---------------------------------------------------------------------------------------------------------------------
# Nests that do the same to both parts
# ---------------------------------------------------------------------------------------------------------------------


def _over_floats(nest: For, floats: Callable[[Buffer], Buffer]) -> Stmt | None:
    """The nest over the floats of its result, where both parts get the same of theirs; None for others."""
    found = _nest_of(nest)
    if found is None:
        return None
    loop, block, item = found
    stores = [x for x in (block.init, block.body) if x is not None]
    if not all(isinstance(x, BufferStore) and _is_alike(x.value) for x in stores):
        return None
    wide_loop, wide = PrimVar(loop.name, loop.dtype), PrimVar(item.var.name, item.var.dtype)
    change = _ToFloats(item.var, wide, floats)
    new = replace(
        block,
        body=change.store(block.body),  # type: ignore[arg-type]
        init=None if block.init is None else change.store(block.init),  # type: ignore[arg-type]
        iter_vars=tuple(
            IterVar(wide, 0, _doubled(x.extent), x.kind, wide_loop) if x is item else x for x in block.iter_vars
        ),
        reads=None,
        writes=None,
    )
    return _rebuilt(nest, loop, wide_loop, new)


def _rebuilt(stmt: Stmt, loop: PrimVar, wide: PrimVar, block: Block) -> Stmt:
    if not isinstance(stmt, For):
        return block
    inner = _rebuilt(stmt.body, loop, wide, block)
    if stmt.loop_var is not loop:
        return replace(stmt, body=inner)
    return replace(stmt, loop_var=wide, extent=_doubled(stmt.extent), body=inner)


def _nest_of(nest: For) -> tuple[PrimVar, Block, IterVar] | None:
    """The loop, the block and its variable along which the complex numbers of a result are neighbours."""
    around, inner = perfect_nest(nest)
    loops = {loop.loop_var: loop for loop in around}
    if not isinstance(inner, Block) or not isinstance(inner.body, BufferStore):
        return None
    store = inner.body
    plain = not (inner.predicate or inner.match_buffers or inner.alloc_buffers or inner.annotations or store.predicate)
    if not plain or not dtypes.is_complex(store.buffer.dtype) or not store.indices:
        return None
    item = next((x for x in inner.iter_vars if x.var is store.indices[-1]), None)
    if item is None or item.kind != "spatial" or not isinstance(item.start, int) or item.start:
        return None
    loop = loops.get(item.value)  # type: ignore[arg-type]
    uses = sum(any(y is item.value for y in walk(x.value)) for x in inner.iter_vars if x.value is not None)
    if loop is None or uses != 1 or loop.kind != "serial" or loop.annotations:
        return None
    if loop.start != 0 or loop.step not in (None, 1):
        return None
    return loop.loop_var, inner, item


def _is_alike(value: PrimExpr) -> bool:
    """Whether both parts of a value are one expression of both parts of what it is made of."""
    if isinstance(value, BufferLoad):
        return bool(value.indices) and value.predicate is None
    if isinstance(value, Binary):
        return value.kind in ("add", "sub") and _is_alike(value.a) and _is_alike(value.b)
    if isinstance(value, Unary):
        return _is_alike(value.a)
    if isinstance(value, Cast):
        return dtypes.is_complex(value.value.dtype) and _is_alike(value.value)
    if isinstance(value, Select):
        return _is_alike(value.true_value) and _is_alike(value.false_value) and _is_plain(value.condition)
    if isinstance(value, PrimCall) and value.op == "if_then_else":
        return _is_plain(value.args[0]) and all(_is_alike(x) for x in value.args[1:])  # type: ignore[arg-type]
    return _constant(value) is not None


def _constant(value: PrimExpr) -> PrimExpr | None:
    """What both parts of a constant are."""
    if not isinstance(value, PrimCall) or value.op != "complex":
        return None
    a, b = value.args
    same = isinstance(a, FloatImm) and isinstance(b, FloatImm) and a.value == b.value
    return a if same else None  # type: ignore[return-value]


def _is_plain(condition: Node) -> bool:
    """Whether nothing in a condition is complex."""
    return not any(isinstance(x, PrimExpr) and dtypes.is_complex(x.dtype) for x in walk(condition))


class _ToFloats:
    """Puts v = wide // 2 and the part wide % 2 in the place of v, the number of a complex element."""

    def __init__(self, v: PrimVar, wide: PrimVar, floats: Callable[[Buffer], Buffer]) -> None:
        self.v, self.wide, self.floats = v, wide, floats
        self.half, self.part = binary("floordiv", wide, 2), binary("floormod", wide, 2)

    def store(self, node: BufferStore) -> BufferStore:
        """The store of one part."""
        indices = tuple(self.plain(x) for x in node.indices[:-1])
        return BufferStore(self.floats(node.buffer), self.value(node.value), (*indices, self.wide), span=node.span)

    def plain(self, node: PrimExpr) -> PrimExpr:
        """What is not complex."""
        return substitute(node, {self.v: self.half})

    def value(self, node: PrimExpr) -> PrimExpr:
        """One part of a value."""
        if isinstance(node, BufferLoad):
            indices = tuple(self.plain(x) for x in node.indices[:-1])
            return BufferLoad(self.floats(node.buffer), (*indices, self._last(node.indices[-1])))
        if isinstance(node, Binary):
            return binary(node.kind, self.value(node.a), self.value(node.b))
        if isinstance(node, Unary):
            return unary(node.kind, self.value(node.a))
        if isinstance(node, Cast):
            return cast(dtypes.part(node.dtype), self.value(node.value))
        if isinstance(node, Select):
            return Select(self.plain(node.condition), self.value(node.true_value), self.value(node.false_value))
        assert isinstance(node, PrimCall)
        found = _constant(node)
        if found is not None:
            return found
        condition, *sides = node.args
        parts = [self.value(side) for side in sides]  # type: ignore[arg-type]
        return PrimCall(node.op, (self.plain(condition), *parts), parts[0].dtype)  # type: ignore[arg-type]

    def _last(self, index: PrimExpr) -> PrimExpr:
        """The place of a part where that of the number is known: wide for v, and so for v + a."""
        rest = simplify(index - self.v)
        if not any(x is self.v for x in walk(rest)):
            return simplify(self.wide + rest * 2)
        return self.plain(index) * 2 + self.part
