"""Tensor expressions: tensor-level functions written as formulas over indices.

    tensor    ::= placeholder(shape, dtype) | compute(shape, f) | scan(shape, f, axis)
    f         ::= (i, j, ...) -> expr | reduction | (expr, ...)       one expression per output
    reduction ::= sum | max | min | prod (expr, axis) | comm_reducer(combine, identity)((expr, ...), axis)
    function  ::= create_prim_func([tensor | scalar, ...])

A shape holds dimensions (int or `DimExpr`) or scalar expressions; a dimension used in arithmetic stands for its value.
Every computed tensor becomes one loop nest around one Block, in the order of first use; tensors that are not among the
arguments become local buffers. Index variables are int64. The symbols of the dimensions become int64 PrimVars, one per
name and function; those that no parameter's shape binds are appended as scalar parameters. Equal formulas give equal
functions.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

from weft.errors import DTypeError, ShapeError, VerifyError
from weft.ir import dtype as dtypes
from weft.ir import prim
from weft.ir.dim import Dim, DimExpr, symbol
from weft.ir.node import ignored, node
from weft.ir.prim_dim import dim_to_prim
from weft.ir.tensor import (
    AllocBuffer,
    AssertStmt,
    Bind,
    Block,
    Buffer,
    BufferLoad,
    BufferStore,
    Extent,
    For,
    IfThenElse,
    IntImm,
    IterVar,
    PrimCall,
    PrimExpr,
    PrimFunc,
    PrimVar,
    Select,
    SeqStmt,
    Stmt,
)
from weft.ir.visit import substitute, walk

__all__ = [
    "Check",
    "ReduceAxis",
    "Reduction",
    "Tensor",
    "abs",
    "all",
    "any",
    "cast",
    "ceil",
    "check",
    "comm_reducer",
    "compute",
    "const",
    "cos",
    "create_prim_func",
    "equal",
    "erf",
    "exp",
    "floor",
    "floordiv",
    "floormod",
    "if_then_else",
    "index",
    "isnan",
    "log",
    "max",
    "maximum",
    "min",
    "minimum",
    "not_equal",
    "placeholder",
    "power",
    "prod",
    "reduce_axis",
    "round",
    "rsqrt",
    "scan",
    "select",
    "sigmoid",
    "sin",
    "size",
    "sqrt",
    "sum",
    "tanh",
    "trace",
    "trunc",
    "truncdiv",
    "truncmod",
    "var",
]

_any = any

INDEX = "int64"
Size: TypeAlias = Dim | PrimExpr
Index: TypeAlias = PrimExpr | Dim

_symbols: dict[str, PrimVar] = {}
"""What stands for a symbol in formulas; every created function replaces them by variables of its own."""


class _Symbols(Mapping[str, PrimVar]):
    """The formula variables of symbols, made when first asked for."""

    def __getitem__(self, name: str) -> PrimVar:
        return _symbols.setdefault(name, PrimVar(name, INDEX))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str)

    def __iter__(self) -> Iterator[str]:
        return iter(_symbols)

    def __len__(self) -> int:
        return len(_symbols)


def size(extent: Size) -> PrimExpr:
    """The value of a dimension as an int64 expression.

    >>> size(3).dtype
    'int64'
    """
    if isinstance(extent, PrimExpr):
        return extent
    return prim.as_expr(dim_to_prim(extent, _Symbols()), INDEX)


prim.CONVERSIONS[DimExpr] = size


def _extent(extent: Size) -> Extent:
    return extent if isinstance(extent, int) else size(extent)


# ---------------------------------------------------------------------------------------------------------------------
# Tensors
# ---------------------------------------------------------------------------------------------------------------------


@node
class _FormulaBuffer(Buffer):
    """What stands for a tensor in formulas; every created function replaces it by a buffer of its own."""

    tensor: Any = ignored(default=None)


@dataclass(eq=False, slots=True)
class Tensor:
    """A tensor of a formula; indexing gives the expression that loads one element.

    >>> A = placeholder((4, 8), "float32", name="A")
    >>> A.shape, A.dtype, A.ndim, A[0, 1].dtype
    ((4, 8), 'float32', 2, 'float32')
    """

    name: str
    shape: tuple[Any, ...]
    dtype: str
    stage: _Stage | None = None
    buffer: Buffer = field(init=False)
    __iter__: ClassVar[None] = None  # indexing by 0, 1, 2, ... would never end

    def __post_init__(self) -> None:
        self.shape = tuple(extent.value if isinstance(extent, IntImm) else extent for extent in self.shape)
        self.dtype = dtypes.check_dtype(self.dtype)
        shape = tuple(_extent(extent) for extent in self.shape)
        self.buffer = _FormulaBuffer(self.name, shape, self.dtype, tensor=self)

    @property
    def ndim(self) -> int:
        """The rank."""
        return len(self.shape)

    def __getitem__(self, indices: Index | tuple[Index, ...]) -> PrimExpr:
        chosen = indices if isinstance(indices, tuple) else (indices,)
        if len(chosen) != self.ndim:
            raise ShapeError(f"{self.name!r} has {self.ndim} dimensions, got {len(chosen)} indices", code="W240")
        return BufferLoad(self.buffer, tuple(index(i) for i in chosen))

    def __call__(self, *indices: Index) -> PrimExpr:
        """The element at the indices; the same as indexing."""
        return self[indices]


def index(value: Index) -> PrimExpr:
    """An index expression: Python integers and dimensions are int64."""
    return value if isinstance(value, PrimExpr) else size(value)


def placeholder(shape: Iterable[Size] | Size, dtype: str = "float32", name: str = "placeholder") -> Tensor:
    """An input tensor."""
    return Tensor(name, _shape(shape), dtype)


def _shape(shape: Iterable[Size] | Size) -> tuple[Size, ...]:
    return tuple(shape) if isinstance(shape, Iterable) else (shape,)


@dataclass(eq=False, slots=True)
class _Stage:
    """How tensors are computed: index variables, axes, and one expression (or one reduction) per output."""

    name: str
    variables: tuple[PrimVar, ...]
    kinds: tuple[str, ...]
    values: tuple[PrimExpr, ...]
    reduction: Reduction | None = None
    outputs: tuple[Tensor, ...] = ()


@node
class ReduceAxis(PrimVar):
    """An index that a reduction runs over, in [start, start + extent)."""

    start: Extent = 0
    extent: Extent = 1


def var(name: str, dtype: str = INDEX) -> Any:
    """A symbol for the sizes of shapes; with another dtype than int64 a scalar parameter.

    >>> placeholder((var("n"), 4)).shape
    (n, 4)
    """
    return symbol(name) if dtype == INDEX else PrimVar(name, dtype)


def reduce_axis(bounds: tuple[Size, Size], name: str = "k") -> ReduceAxis:
    """An index over [low, high) for a reduction.

    >>> k = reduce_axis((0, 16), name="k")
    >>> k.extent, k.dtype
    (16, 'int64')
    """
    low, high = bounds
    if isinstance(low, int) and low == 0:
        return ReduceAxis(name, INDEX, start=0, extent=_extent(high))
    if isinstance(low, (int, DimExpr)) and isinstance(high, (int, DimExpr)):
        return ReduceAxis(name, INDEX, start=_extent(low), extent=_extent(high - low))
    return ReduceAxis(name, INDEX, start=_extent(low), extent=size(high) - size(low))


@dataclass(frozen=True, eq=False, slots=True)
class Reduction:
    """Expressions combined over axes; it is a whole formula, not a part of one."""

    combine: Callable[[tuple[PrimExpr, ...], tuple[PrimExpr, ...]], tuple[PrimExpr, ...]]
    identity: tuple[PrimExpr, ...]
    values: tuple[PrimExpr, ...]
    axes: tuple[ReduceAxis, ...]
    may_be_empty: bool = True  # False: the result for empty axes is never read, so nothing need be stored for it

    def _no_arithmetic(self, *_: Any) -> Any:
        raise VerifyError(
            "a reduction is used inside an expression",
            code="W480",
            hint="give the reduction a compute of its own and use the tensor that it returns",
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _no_arithmetic
    __lt__ = __le__ = __gt__ = __ge__ = __neg__ = _no_arithmetic


Axes: TypeAlias = ReduceAxis | Sequence[ReduceAxis]


def comm_reducer(
    combine: Callable[..., Any], identity: Callable[..., Any], name: str = "reduce"
) -> Callable[..., Reduction]:
    """A reduction of the user's own; `combine(x, y)` must be associative, `identity(dtype)` neutral for it.

    For several values at once (an index and a value), the functions take and give tuples: `combine((i, a), (j, b))`,
    `identity(dtype_i, dtype_a)`.

    >>> product = comm_reducer(lambda x, y: x * y, lambda dtype: const(1, dtype))
    """

    def reducer(value: Any, axis: Axes) -> Reduction:
        several = isinstance(value, (tuple, list))
        values = tuple(prim.as_expr(part) for part in value) if several else (prim.as_expr(value),)
        neutral = identity(*(part.dtype for part in values))
        neutral = tuple(neutral) if several else (neutral,)

        def combined(a: tuple[PrimExpr, ...], b: tuple[PrimExpr, ...]) -> tuple[PrimExpr, ...]:
            return tuple(combine(a, b)) if several else (combine(a[0], b[0]),)

        start = tuple(prim.as_expr(part, values[i].dtype) for i, part in enumerate(neutral))
        return Reduction(combined, start, values, tuple(axis) if isinstance(axis, (tuple, list)) else (axis,))  # type: ignore[arg-type]

    reducer.__name__ = name
    return reducer


def _least(dtype: str) -> PrimExpr:
    return const(float("-inf") if dtypes.is_float(dtype) else dtypes.min_value(dtype), dtype)


def _greatest(dtype: str) -> PrimExpr:
    return const(float("inf") if dtypes.is_float(dtype) else dtypes.max_value(dtype), dtype)


def const(value: int | float | bool, dtype: str = "float32") -> PrimExpr:
    """A constant of the given dtype."""
    return prim.const(value, dtype)


def maximum(a: Any, b: Any) -> PrimExpr:
    """The greater of two values."""
    return prim.binary("max", a, b)


def minimum(a: Any, b: Any) -> PrimExpr:
    """The smaller of two values."""
    return prim.binary("min", a, b)


_sum_reducer = comm_reducer(lambda x, y: x + y, lambda dtype: const(0, dtype), "sum")
_prod_reducer = comm_reducer(lambda x, y: x * y, lambda dtype: const(1, dtype), "prod")
_max_reducer = comm_reducer(maximum, _least, "max")
_min_reducer = comm_reducer(minimum, _greatest, "min")


def sum(expr: Any, axis: Axes) -> Reduction:
    """The sum over the axes; 0 when they are empty."""
    return _sum_reducer(expr, axis)


def prod(expr: Any, axis: Axes) -> Reduction:
    """The product over the axes; 1 when they are empty."""
    return _prod_reducer(expr, axis)


def max(expr: Any, axis: Axes) -> Reduction:
    """The greatest value over the axes; the least value of the dtype (-inf for floats) when they are empty."""
    return _max_reducer(expr, axis)


def min(expr: Any, axis: Axes) -> Reduction:
    """The least value over the axes; the greatest value of the dtype (inf for floats) when they are empty."""
    return _min_reducer(expr, axis)


# ---------------------------------------------------------------------------------------------------------------------
# Scalar formulas
# ---------------------------------------------------------------------------------------------------------------------


def _choice(name: str, condition: Any, true_value: Any, false_value: Any) -> tuple[PrimExpr, PrimExpr, PrimExpr]:
    left, right = prim.pair(true_value, false_value, name)
    condition = prim.as_expr(condition)
    if not dtypes.is_bool(dtypes.element(condition.dtype)):
        raise DTypeError(f"the condition of {name} is {condition.dtype}, not bool", code="W313")
    return condition, left, right


def if_then_else(condition: Any, true_value: Any, false_value: Any) -> PrimExpr:
    """One of two values; only the chosen one is evaluated, so it may guard a load."""
    operands = _choice("if_then_else", condition, true_value, false_value)
    return PrimCall("if_then_else", operands, operands[1].dtype)


def select(condition: Any, true_value: Any, false_value: Any) -> PrimExpr:
    """One of two values; both are evaluated."""
    return Select(*_choice("select", condition, true_value, false_value))


def all(*conditions: Any) -> PrimExpr:
    """Whether every condition holds (True for none); lazily from left to right."""
    return _joined("and", conditions, True)


def any(*conditions: Any) -> PrimExpr:
    """Whether some condition holds (False for none); lazily from left to right."""
    return _joined("or", conditions, False)


def _joined(kind: str, conditions: Sequence[Any], empty: bool) -> PrimExpr:
    if not conditions:
        return const(empty, "bool")
    result = prim.as_expr(conditions[0])
    for condition in conditions[1:]:
        result = prim.binary(kind, result, condition)
    return result


def equal(a: Any, b: Any) -> PrimExpr:
    """a == b."""
    return prim.binary("eq", a, b)


def not_equal(a: Any, b: Any) -> PrimExpr:
    """a != b."""
    return prim.binary("ne", a, b)


def cast(dtype: str, value: Any) -> PrimExpr:
    """The value converted to a dtype."""
    return prim.cast(dtype, prim.as_expr(value))


def abs(value: Any) -> PrimExpr:
    """The absolute value."""
    return prim.intrinsic("abs", value)


def exp(value: Any) -> PrimExpr:
    """e to the power of the value."""
    return prim.intrinsic("exp", value)


def log(value: Any) -> PrimExpr:
    """The natural logarithm."""
    return prim.intrinsic("log", value)


def sqrt(value: Any) -> PrimExpr:
    """The square root."""
    return prim.intrinsic("sqrt", value)


def rsqrt(value: Any) -> PrimExpr:
    """One over the square root."""
    return prim.intrinsic("rsqrt", value)


def tanh(value: Any) -> PrimExpr:
    """The hyperbolic tangent."""
    return prim.intrinsic("tanh", value)


def erf(value: Any) -> PrimExpr:
    """The error function."""
    return prim.intrinsic("erf", value)


def sigmoid(value: Any) -> PrimExpr:
    """1 / (1 + exp(-value)), without overflow."""
    return prim.intrinsic("sigmoid", value)


def floor(value: Any) -> PrimExpr:
    """The greatest whole number not above the value."""
    return prim.intrinsic("floor", value)


def ceil(value: Any) -> PrimExpr:
    """The least whole number not below the value."""
    return prim.intrinsic("ceil", value)


def trunc(value: Any) -> PrimExpr:
    """The value without its fraction."""
    return prim.intrinsic("trunc", value)


def round(value: Any) -> PrimExpr:
    """The nearest whole number, of two the even one."""
    return prim.intrinsic("round", value)


def sin(value: Any) -> PrimExpr:
    """The sine."""
    return prim.intrinsic("sin", value)


def cos(value: Any) -> PrimExpr:
    """The cosine."""
    return prim.intrinsic("cos", value)


def isnan(value: Any) -> PrimExpr:
    """Whether the value is not a number."""
    return prim.intrinsic("isnan", value)


def floordiv(a: Any, b: Any) -> PrimExpr:
    """a / b rounded down."""
    return prim.binary("floordiv", a, b)


def floormod(a: Any, b: Any) -> PrimExpr:
    """What floordiv leaves; it has the sign of b."""
    return prim.binary("floormod", a, b)


def truncdiv(a: Any, b: Any) -> PrimExpr:
    """a / b rounded towards zero."""
    return prim.binary("truncdiv", a, b)


def truncmod(a: Any, b: Any) -> PrimExpr:
    """What truncdiv leaves; it has the sign of a."""
    return prim.binary("truncmod", a, b)


def power(base: Any, exponent: Any) -> PrimExpr:
    """The base to the power of the exponent."""
    return prim.intrinsic("pow", base, exponent)


# ---------------------------------------------------------------------------------------------------------------------
# Stages
# ---------------------------------------------------------------------------------------------------------------------


def _index_names(function: Callable[..., Any], count: int) -> list[str]:
    """Names for the indices: those of the function's parameters, i0, i1, ... where it has none."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return [f"i{position}" for position in range(count)]
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    own = [parameter for parameter in parameters if parameter.kind in positional]
    required = len([parameter for parameter in own if parameter.default is inspect.Parameter.empty])
    variadic = _any(parameter.kind == inspect.Parameter.VAR_POSITIONAL for parameter in parameters)
    if required > count or (len(own) < count and not variadic):
        raise ShapeError(f"the formula takes {required} indices, the shape has {count} dimensions", code="W241")
    names = [parameter.name for parameter in own[:count]]
    return [*names, *(f"i{position}" for position in range(len(names), count))]


def compute(shape: Iterable[Size] | Size, fcompute: Callable[..., Any], name: str = "compute") -> Any:
    """A tensor given by a formula over its indices; a tuple of tensors when the formula gives several values.

    Errors: W240, W241 (numbers of indices), W480 (a reduction inside an expression).

    >>> A = placeholder((4, 8), name="A")
    >>> k = reduce_axis((0, 8), name="k")
    >>> compute((4,), lambda i: sum(A[i, k], axis=k), name="row_sum").shape
    (4,)
    """
    dims = _shape(shape)
    variables = tuple(PrimVar(text, INDEX) for text in _index_names(fcompute, len(dims)))
    result = fcompute(*variables)
    several = isinstance(result, (tuple, list)) or (isinstance(result, Reduction) and len(result.values) > 1)
    reduction = result if isinstance(result, Reduction) else None
    if reduction is not None:
        values = reduction.values
        variables = (*variables, *reduction.axes)
    else:
        parts: tuple[Any, ...] = tuple(result) if isinstance(result, (tuple, list)) else (result,)
        values = tuple(_value(part) for part in parts)
    kinds = ("spatial",) * len(dims) + ("reduce",) * (len(variables) - len(dims))
    stage = _Stage(name, variables, kinds, values, reduction)
    names = [name] if not several else [f"{name}_v{position}" for position in range(len(values))]
    stage.outputs = tuple(Tensor(text, dims, value.dtype, stage) for text, value in zip(names, values, strict=True))
    return stage.outputs if several else stage.outputs[0]


def _value(value: Any) -> PrimExpr:
    if isinstance(value, Reduction):
        return value._no_arithmetic()
    return size(value) if isinstance(value, DimExpr) else prim.as_expr(value)


def scan(
    shape: Iterable[Size] | Size, fcompute: Callable[..., Any], axis: int, dtype: str, name: str = "scan"
) -> Tensor:
    """A tensor whose elements may use elements before them along one axis, computed in that order.

    The formula takes the tensor itself and the indices, and must guard the first element with `if_then_else`.

    >>> A = placeholder((8,), name="A")
    >>> total = scan((8,), lambda out, i: A[i] + if_then_else(i > 0, out[i - 1], 0.0), axis=0, dtype="float32")
    """
    dims = _shape(shape)
    names = _index_names(fcompute, len(dims) + 1)[1:]
    variables = tuple(PrimVar(text, INDEX) for text in names)
    kinds = tuple("scan" if position == axis else "spatial" for position in range(len(dims)))
    stage = _Stage(name, variables, kinds, ())
    out = Tensor(name, dims, dtype, stage)
    stage.values = (prim.cast(out.dtype, _value(fcompute(out, *variables))),)
    stage.outputs = (out,)
    return out


# ---------------------------------------------------------------------------------------------------------------------
# Functions
# ---------------------------------------------------------------------------------------------------------------------


Argument: TypeAlias = Tensor | PrimVar | DimExpr


@dataclass(frozen=True, eq=False, slots=True)
class Check:
    """A condition that a function asserts before it computes, for every index of a shape (once, for none)."""

    condition: PrimExpr
    message: str
    kind: str = "ShapeError"
    shape: tuple[Size, ...] = ()
    variables: tuple[PrimVar, ...] = ()


def check(shape: Iterable[Size], condition: Callable[..., PrimExpr], message: str, kind: str = "ShapeError") -> Check:
    """A condition over indices that must hold for all of them.

    >>> A = placeholder((4,), "int64", name="A")
    >>> valid = check((4,), lambda i: A[i] >= 0, "an index is negative", "BoundsError")
    >>> create_prim_func([A], checks=[valid]).params[0].name
    'A'
    """
    dims = _shape(shape)
    variables = tuple(PrimVar(text, INDEX) for text in _index_names(condition, len(dims)))
    return Check(condition(*variables), message, kind, dims, variables)


@dataclass(frozen=True, slots=True)
class Traced:
    """A created function and the symbols that became scalar parameters at its end, in order."""

    function: PrimFunc
    scalars: tuple[str, ...]


def create_prim_func(args: Sequence[Argument] | Tensor, name: str = "main", checks: Sequence[Check] = ()) -> PrimFunc:
    """The function with the given parameters, in that order, that computes those of them that are computed.

    `checks` are what the function asserts first.
    Errors: W481 when a formula uses a placeholder that is not among the arguments.

    >>> A = placeholder((4,), name="A")
    >>> B = compute((4,), lambda i: A[i] * 2.0, name="B")
    >>> [parameter.name for parameter in create_prim_func([A, B]).params]
    ['A', 'B']
    """
    return trace(args, name, checks).function


def trace(args: Sequence[Argument] | Tensor, name: str = "main", checks: Sequence[Check] = ()) -> Traced:
    """`create_prim_func` that also tells which symbols the caller must pass after the outputs."""
    return _Builder([args] if isinstance(args, Tensor) else list(args)).build(name, checks)


class _Builder:
    """One function under construction: the maps from formula variables and buffers to its own."""

    def __init__(self, args: list[Argument]) -> None:
        self.args = args
        self.mapping: dict[Any, Any] = {}
        self.symbols: dict[str, PrimVar] = {}
        self.buffer_names: set[str] = set()
        self.block_names: set[str] = set()

    def build(self, name: str, checks: Sequence[Check]) -> Traced:
        params = [self._parameter(arg) for arg in self.args]
        stages = self._stages()
        own = {id(arg) for arg in self.args}
        body: list[Stmt] = [self._assertion(check) for check in checks]
        for stage in stages:
            body.extend(AllocBuffer(self._buffer(tensor)) for tensor in stage.outputs if id(tensor) not in own)
            body.extend(self._nests(stage))
        bound = {id(dim) for param in params if isinstance(param, Buffer) for dim in param.shape}
        bound |= {id(param) for param in params}
        scalars = [text for text, variable in self.symbols.items() if id(variable) not in bound]
        params.extend(self.symbols[text] for text in scalars)
        statement = body[0] if len(body) == 1 else SeqStmt(tuple(body))
        return Traced(PrimFunc(tuple(params), statement, name=name), tuple(scalars))

    def _parameter(self, arg: Argument) -> Buffer | PrimVar:
        if isinstance(arg, Tensor):
            return self._buffer(arg)
        if isinstance(arg, DimExpr):
            variable = size(arg)
            if not isinstance(variable, PrimVar):
                hint = "only a bare symbol can be a scalar parameter"
                raise VerifyError(f"{arg} is not a symbol", code="W482", hint=hint)
            return self._own(variable)
        return arg

    def _own(self, value: Any) -> Any:
        """The value over this function's own variables and buffers."""
        if isinstance(value, int):
            return value
        for part in walk(value):
            if isinstance(part, PrimVar) and part not in self.mapping and _symbols.get(part.name) is part:
                self.mapping[part] = self.symbols[part.name] = PrimVar(part.name, INDEX)
        return substitute(value, self.mapping)

    def _buffer(self, tensor: Tensor) -> Buffer:
        found = self.mapping.get(tensor.buffer)
        if found is None:
            shape = tuple(self._own(extent) for extent in tensor.buffer.shape)
            found = Buffer(_unique(tensor.name, self.buffer_names), shape, tensor.dtype)
            self.mapping[tensor.buffer] = found
        return found

    def _stages(self) -> list[_Stage]:
        """The stages that the arguments need, each after those whose tensors it reads."""
        order: list[_Stage] = []
        state: dict[int, bool] = {}
        given = {id(arg) for arg in self.args}
        stack: list[tuple[_Stage, bool]] = []
        for arg in reversed(self.args):
            if isinstance(arg, Tensor) and arg.stage is not None:
                stack.append((arg.stage, False))
        while stack:
            stage, expanded = stack.pop()
            if expanded:
                order.append(stage)
                continue
            if id(stage) in state:
                continue
            state[id(stage)] = True
            stack.append((stage, True))
            for tensor in reversed(_reads(stage)):
                if tensor.stage is None:
                    if id(tensor) not in given:
                        raise VerifyError(
                            f"{tensor.name!r} is read but is not among the arguments",
                            code="W481",
                            hint="pass every placeholder to create_prim_func",
                        )
                elif id(tensor.stage) not in state:
                    stack.append((tensor.stage, False))
        return order

    def _assertion(self, check: Check) -> Stmt:
        """A check as an assert, in loops where it has indices."""
        extents = [self._own(_extent(size)) for size in check.shape]
        loops = [PrimVar(variable.name, INDEX) for variable in check.variables]
        values = [PrimVar(f"v{variable.name}", INDEX) for variable in check.variables]
        self.mapping.update(zip(check.variables, values, strict=True))
        statement: Stmt = AssertStmt(self._own(check.condition), check.message, check.kind)
        if not loops:
            return statement
        iters = (
            IterVar(*parts)
            for parts in zip(values, [0] * len(loops), extents, ["spatial"] * len(loops), loops, strict=True)
        )
        statement = Block(_unique("check", self.block_names), statement, tuple(iters))
        for loop, extent in reversed(list(zip(loops, extents, strict=True))):
            statement = For(loop, 0, extent, statement)
        return statement

    def _nests(self, stage: _Stage) -> Iterator[Stmt]:
        """The loop nest of a stage, after one for the case that a reduction has nothing to join.

        A block's init runs before its first iteration, so never where there is none.
        """
        starts, extents = self._domain(stage)
        count = stage.outputs[0].ndim
        unsure = [extent for extent in extents[count:] if not isinstance(extent, int) or extent == 0]
        if stage.reduction is not None and stage.reduction.may_be_empty and unsure:
            stores = lambda: (None, self._identity(stage))  # noqa: E731
            fill = self._nest(f"{stage.name}_empty", stage, starts[:count], extents[:count], stores)
            if 0 in unsure:
                yield fill
                return
            yield IfThenElse(any(*(equal(extent, const(0, INDEX)) for extent in unsure)), fill)
        yield self._nest(stage.name, stage, starts, extents, lambda: self._statements(stage))

    def _nest(
        self,
        name: str,
        stage: _Stage,
        starts: Sequence[Extent],
        extents: Sequence[Extent],
        statements: Callable[[], tuple[Stmt | None, Stmt]],
    ) -> Stmt:
        """Loops around a block over the first variables of a stage, as many as there are extents."""
        iters: list[IterVar] = []
        loops: list[tuple[PrimVar, Extent, Extent]] = []
        for variable, kind, start, extent in zip(stage.variables, stage.kinds, starts, extents, strict=False):
            loop = PrimVar(variable.name, INDEX)
            own = PrimVar(f"v{variable.name}", INDEX)
            self.mapping[variable] = own
            iters.append(IterVar(own, start, extent, kind, loop))
            loops.append((loop, start, extent))
        init, body = statements()
        statement: Stmt = Block(_unique(name, self.block_names), body, tuple(iters), init=init)
        for loop, start, extent in reversed(loops):
            statement = For(loop, start, extent, statement)
        return statement

    def _domain(self, stage: _Stage) -> tuple[list[Extent], list[Extent]]:
        shape = stage.outputs[0].buffer.shape
        starts: list[Extent] = [0] * len(shape)
        extents: list[Extent] = [self._own(extent) for extent in shape]
        for variable in stage.variables[len(shape) :]:
            assert isinstance(variable, ReduceAxis)
            starts.append(self._own(variable.start))
            extents.append(self._own(variable.extent))
        return starts, extents

    def _statements(self, stage: _Stage) -> tuple[Stmt | None, Stmt]:
        """The block's init and body."""
        indices, buffers = self._targets(stage)
        if stage.reduction is None:
            return None, self._stores(buffers, stage.values, indices)
        loads = tuple(BufferLoad(buffer, indices) for buffer in buffers)
        combined = stage.reduction.combine(loads, stage.values)
        init = self._identity(stage)
        if len(buffers) == 1:
            return init, self._stores(buffers, combined, indices)
        # All new values are taken before the first is stored: each may read every old one.
        kept = tuple(PrimVar(f"v_{tensor.name}", tensor.dtype) for tensor in stage.outputs)
        binds = tuple(
            Bind(variable, self._own(prim.cast(variable.dtype, value)))
            for variable, value in zip(kept, combined, strict=True)
        )
        stores = self._stores(buffers, kept, indices)
        return init, SeqStmt((*binds, *stores.stmts)) if isinstance(stores, SeqStmt) else stores

    def _targets(self, stage: _Stage) -> tuple[tuple[PrimVar, ...], list[Buffer]]:
        """The indices and buffers that a stage stores to."""
        for tensor in stage.outputs:
            self._buffer(tensor)
        return stage.variables[: stage.outputs[0].ndim], [tensor.buffer for tensor in stage.outputs]

    def _identity(self, stage: _Stage) -> Stmt:
        """The stores of a reduction's neutral values."""
        assert stage.reduction is not None
        indices, buffers = self._targets(stage)
        return self._stores(buffers, stage.reduction.identity, indices)

    def _stores(self, buffers: Sequence[Buffer], values: Sequence[PrimExpr], indices: Sequence[PrimExpr]) -> Stmt:
        stores = tuple(
            self._own(BufferStore(buffer, prim.cast(buffer.dtype, value), tuple(indices)))
            for buffer, value in zip(buffers, values, strict=True)
        )
        return stores[0] if len(stores) == 1 else SeqStmt(stores)


def _reads(stage: _Stage) -> list[Tensor]:
    """The tensors that a stage loads from, in order of first occurrence."""
    found: dict[int, Tensor] = {}
    for value in stage.values:
        for part in walk(value):
            if isinstance(part, BufferLoad) and isinstance(part.buffer, _FormulaBuffer):
                found.setdefault(id(part.buffer), part.buffer.tensor)
    return list(found.values())


def _unique(base: str, used: set[str]) -> str:
    name, count = base, 0
    while name in used:
        count += 1
        name = f"{base}_{count}"
    used.add(name)
    return name
