"""Calls of kernels that tensor-expression functions compute: a formula becomes a PrimFunc and a call_tir of it.

    argument of the call                            what the formula gets
    a tensor of known shape and dtype               a te placeholder
    a shape, a scalar, a string known while reading its dimensions, its number or dimension, its text
    a tuple                                         the tuple of what its fields stand for
    anything that is no graph value                 itself

The arguments may be lists, tuples and dictionaries of these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from weft.errors import ShapeError, VerifyError
from weft.ir import te
from weft.ir.deduction.infer import type_text
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import symbol
from weft.ir.graph import Call, Expr, GlobalVar, Op, PrimValue, ShapeExpr, StringImm, Tuple, TupleGetItem, Var
from weft.ir.kernel.prim_dim import prim_to_dim
from weft.ir.node import EMPTY, FrozenMap, replace
from weft.ir.tensor import PrimExpr, PrimFunc
from weft.ir.types import ShapeType, TensorType, TupleType, Type
from weft.support.guards import is_listing, is_mapping
from weft.support.records import dataclass

__all__ = ["call_formula"]


def call_formula(
    formula: Callable[..., Any],
    args: Sequence[Any],
    options: Mapping[str, Any],
    *,
    leaf: Callable[[Expr], Expr],
    infer: Callable[[Expr], Type],
    add: Callable[[PrimFunc, str], GlobalVar],
) -> Call:
    """The call of the kernel that a formula computes; `leaf` binds what computes, `add` puts the kernel in the module.

    `primfunc_name_hint` among the options names the kernel, `primfunc_attrs` gives it attributes; the rest goes to the
    formula. Errors: W485 (an argument that a formula cannot take, a result that is no tensor), those of `weft.ir.te`.
    """
    options = dict(options)
    hint = options.pop("primfunc_name_hint", None)
    attrs = options.pop("primfunc_attrs", None)
    inputs = _Inputs(leaf, infer)
    result = formula(*inputs.convert(tuple(args)), **inputs.convert(options))
    several = is_listing(result)
    given: list[Any] = list(result) if several else [result]
    for output in given:
        if not isinstance(output, te.Tensor):
            raise VerifyError(f"the formula returned {type(output).__name__}, not a tensor", code="W485")
    outputs: list[te.Tensor] = given
    name = hint or _formula_name(formula, outputs)
    distinct = _distinct(outputs, inputs.tensors)
    traced = te.trace([*inputs.tensors, *distinct], name)
    kernel = replace(traced.function, private=True, attrs=FrozenMap(attrs) if attrs else EMPTY)
    types = tuple(_tensor_type(output) for output in distinct)
    ty = TupleType(types) if several else types[0]
    arguments: tuple[Expr, ...] = (add(kernel, name), Tuple(tuple(inputs.values)))
    if traced.scalars:
        arguments = (*arguments, ShapeExpr(tuple(symbol(text) for text in traced.scalars)))
    return Call(Op("call_tir"), arguments, ty_args=(ty,))


def _formula_name(formula: Callable[..., Any], outputs: list[te.Tensor]) -> str:
    """The name of the Python function; of the tensor it computes, for one without a name."""
    names = (getattr(formula, "__name__", ""), outputs[0].name if outputs else "")
    return next((name for name in names if name.isidentifier()), "te_func")


def _tensor_type(tensor: te.Tensor) -> TensorType:
    dims = [prim_to_dim(extent) if isinstance(extent, PrimExpr) else extent for extent in tensor.shape]
    if any(dim is None for dim in dims):
        raise ShapeError(f"the shape of {tensor.name!r} is no expression over symbols", code="W242")
    return TensorType(tuple(dim for dim in dims if dim is not None), tensor.dtype)


def _elements(source: te.Tensor) -> Callable[..., Any]:
    def element(*indices: PrimExpr) -> Any:
        return source[indices]

    return element


def _distinct(outputs: list[te.Tensor], inputs: list[te.Tensor]) -> list[te.Tensor]:
    """The outputs, with a copy of each that is an input or occurs twice: a kernel writes each of its outputs."""
    seen = {id(tensor) for tensor in inputs}
    result: list[te.Tensor] = []
    for output in outputs:
        if id(output) in seen:
            output = te.compute(output.shape, _elements(output), name="copy")
        seen.add(id(output))
        result.append(output)
    return result


@dataclass(slots=True)
class _Inputs:
    """The graph values that a formula takes, as te tensors and scalars."""

    leaf: Callable[[Expr], Expr]
    infer: Callable[[Expr], Type]
    values: list[Expr] = field(default_factory=list[Expr])
    tensors: list[te.Tensor] = field(default_factory=list[te.Tensor])

    def convert(self, value: Any) -> Any:
        """The value with every graph value in it replaced by what stands for it in formulas."""
        if is_mapping(value):
            return {key: self.convert(item) for key, item in value.items()}
        if is_listing(value):
            return type(value)(self.convert(item) for item in value)
        if isinstance(value, PrimExpr) or not isinstance(value, Expr):
            return value
        if isinstance(value, PrimValue):
            return value.value
        if isinstance(value, ShapeExpr):
            return value.dims
        if isinstance(value, StringImm):
            return value.value
        if isinstance(value, Tuple):
            return tuple(self.convert(item) for item in value.fields)
        return self._argument(value)

    def _argument(self, value: Expr) -> Any:
        leaf = self.leaf(value)
        ty = self.infer(leaf)
        if isinstance(ty, TupleType):
            return tuple(self.convert(TupleGetItem(leaf, position)) for position in range(len(ty.fields)))
        if isinstance(ty, ShapeType) and ty.dims is not None:
            return ty.dims
        if isinstance(ty, TensorType):
            dims = dims_of(ty)
            if dims is not None and ty.dtype is not None:
                name = leaf.name if isinstance(leaf, Var) and leaf.name.isidentifier() else "A"
                tensor = te.placeholder(dims, ty.dtype, name=name)
                self.values.append(leaf)
                self.tensors.append(tensor)
                return tensor
        hint = "use match_cast to give it a shape and a dtype" if isinstance(ty, TensorType) else None
        raise VerifyError(f"a formula cannot take a value of type {type_text(ty)}", code="W485", hint=hint)
