"""Tensors of formulas: given ones, and computed ones with the stage that computes them.

tensor ::= placeholder(shape, dtype) | compute(shape, f) | scan(shape, f, axis) | extern(shape, tensors, f)
f      ::= (i, j, ...) -> expr | reduction | (expr, ...)       one expression per output
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from typing import Any, ClassVar

from weft import dtypes
from weft.errors import ShapeError, VerifyError, described
from weft.ir.dim import DimExpr
from weft.ir.kernel import prim
from weft.ir.node import ignored, node
from weft.ir.te.reductions import ReduceAxis, Reduction
from weft.ir.te.sizes import INDEX, Index, Size, as_extent, as_shape, index, size
from weft.ir.tensor import Buffer, BufferLoad, Evaluate, IntImm, PrimExpr, PrimVar, Stmt
from weft.support.guards import is_listing
from weft.support.records import dataclass

__all__ = ["FormulaBuffer", "Stage", "Tensor", "compute", "extern", "index_names", "placeholder", "scan"]


@node
class FormulaBuffer(Buffer):
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
    stage: Stage | None = None
    buffer: Buffer = field(init=False)
    __iter__: ClassVar[None] = None  # indexing by 0, 1, 2, ... would never end

    def __post_init__(self) -> None:
        self.shape = tuple(extent.value if isinstance(extent, IntImm) else extent for extent in self.shape)
        self.dtype = dtypes.check_dtype(self.dtype)
        shape = tuple(as_extent(extent) for extent in self.shape)
        self.buffer = FormulaBuffer(self.name, shape, self.dtype, tensor=self)

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


def placeholder(shape: Iterable[Size] | Size, dtype: str = "float32", name: str = "placeholder") -> Tensor:
    """An input tensor."""
    return Tensor(name, as_shape(shape), dtype)


@dataclass(eq=False, slots=True)
class Stage:
    """How tensors are computed: index variables, axes, and one expression (or one reduction) per output."""

    name: str
    variables: tuple[PrimVar | ReduceAxis, ...]
    kinds: tuple[str, ...]
    values: tuple[PrimExpr, ...]
    reduction: Reduction | None = None
    inputs: tuple[Tensor, ...] = ()
    statement: Stmt | None = None  # instead of values: over the buffers of inputs and outputs
    outputs: tuple[Tensor, ...] = ()


def index_names(function: Callable[..., Any], count: int) -> list[str]:
    """Names for the indices: those of the function's parameters, i0, i1, ... where it has none."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return [f"i{position}" for position in range(count)]
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    own = [parameter for parameter in parameters if parameter.kind in positional]
    required = len([parameter for parameter in own if parameter.default is inspect.Parameter.empty])
    variadic = any(parameter.kind == inspect.Parameter.VAR_POSITIONAL for parameter in parameters)
    if required > count or (len(own) < count and not variadic):
        raise ShapeError(f"the formula takes {required} indices, the shape has {count} dimensions", code="W241")
    names = [parameter.name for parameter in own[:count]]
    return [*names, *(f"i{position}" for position in range(len(names), count))]


def compute(shape: Iterable[Size] | Size, fcompute: Callable[..., Any], name: str = "compute") -> Any:
    """A tensor given by a formula over its indices; a tuple of tensors when the formula gives several values.

    Errors: W240, W241 (numbers of indices), W480 (a reduction inside an expression).

    >>> from weft.ir.te import reduce_axis, sum
    >>> A = placeholder((4, 8), name="A")
    >>> k = reduce_axis((0, 8), name="k")
    >>> compute((4,), lambda i: sum(A[i, k], axis=k), name="row_sum").shape
    (4,)
    """
    dims = as_shape(shape)
    indices = tuple(PrimVar(text, INDEX) for text in index_names(fcompute, len(dims)))
    result = fcompute(*indices)
    several = is_listing(result) or (isinstance(result, Reduction) and len(result.values) > 1)
    reduction = result if isinstance(result, Reduction) else None
    variables = indices if reduction is None else (*indices, *reduction.axes)
    if reduction is not None:
        values = reduction.values
    else:
        parts: tuple[Any, ...] = tuple(result) if is_listing(result) else (result,)
        values = tuple(_value(part) for part in parts)
    kinds = ("spatial",) * len(dims) + ("reduce",) * (len(variables) - len(dims))
    stage = Stage(name, variables, kinds, values, reduction)
    names = [name] if not several else [f"{name}_v{position}" for position in range(len(values))]
    stage.outputs = tuple(Tensor(text, dims, value.dtype, stage) for text, value in zip(names, values, strict=True))
    return stage.outputs if several else stage.outputs[0]


def _value(value: Any) -> PrimExpr:
    if isinstance(value, Reduction):
        return value.no_arithmetic()
    return size(value) if isinstance(value, DimExpr) else prim.as_expr(value)


def scan(
    shape: Iterable[Size] | Size, fcompute: Callable[..., Any], axis: int, dtype: str, name: str = "scan"
) -> Tensor:
    """A tensor whose elements may use elements before them along one axis, computed in that order.

    The formula takes the tensor itself and the indices, and must guard the first element with `if_then_else`.

    >>> from weft.ir.te import if_then_else
    >>> A = placeholder((8,), name="A")
    >>> total = scan((8,), lambda out, i: A[i] + if_then_else(i > 0, out[i - 1], 0.0), axis=0, dtype="float32")
    """
    dims = as_shape(shape)
    names = index_names(fcompute, len(dims) + 1)[1:]
    variables = tuple(PrimVar(text, INDEX) for text in names)
    kinds = tuple("scan" if position == axis else "spatial" for position in range(len(dims)))
    stage = Stage(name, variables, kinds, ())
    out = Tensor(name, dims, dtype, stage)
    stage.values = (prim.cast(out.dtype, _value(fcompute(out, *variables))),)
    stage.outputs = (out,)
    return out


def extern(
    shape: Iterable[Size] | Sequence[Iterable[Size]],
    inputs: Sequence[Tensor],
    fcompute: Callable[[list[Buffer], list[Buffer]], Any],
    name: str = "extern",
    dtype: str | Sequence[str] | None = None,
) -> Any:
    """What a statement over whole tensors makes: a tensor, or a list of tensors when `shape` is a list of shapes.

    `fcompute` gets the buffers of the inputs and of the results, and gives a statement, or a call to evaluate
    (`T.call_packed("f", ins[0], outs[0])`). `dtype` is that of all results, or one of each; by default that of the
    inputs, when they share one. Errors: W485 for results without a dtype, or what is no statement.

    >>> from weft.ir.te import create_prim_func
    >>> from weft.script import tir as T
    >>> A = placeholder((4,), name="A")
    >>> B = extern((4,), [A], lambda ins, outs: T.call_packed("f", ins[0], outs[0]))
    >>> B.dtype, create_prim_func([A, B]).body.name
    ('float32', 'extern')
    """
    given: list[Any] = list(shape)
    several = bool(given) and all(is_listing(part) for part in given)
    shapes = [as_shape(part) for part in given] if several else [as_shape(given)]
    shared = {tensor.dtype for tensor in inputs}
    if dtype is None and len(shared) != 1:
        raise VerifyError("the dtype of the result is not told", code="W485", hint="extern(..., dtype=)")
    chosen = [dtype or shared.pop()] * len(shapes) if dtype is None or isinstance(dtype, str) else list(dtype)
    if len(chosen) != len(shapes):
        raise VerifyError(f"{len(chosen)} dtypes for {len(shapes)} results", code="W485")
    names = [name] if not several else [f"{name}_v{position}" for position in range(len(shapes))]
    stage = Stage(name, (), (), (), inputs=tuple(inputs))
    parts = zip(names, shapes, chosen, strict=True)
    stage.outputs = tuple(Tensor(text, dims, kind, stage) for text, dims, kind in parts)
    made = fcompute([tensor.buffer for tensor in inputs], [tensor.buffer for tensor in stage.outputs])
    if not isinstance(made, (Stmt, PrimExpr)):
        raise VerifyError(f"the function of {name!r} gives {described(made)}, no statement", code="W485")
    stage.statement = made if isinstance(made, Stmt) else Evaluate(made)
    return list(stage.outputs) if several else stage.outputs[0]
