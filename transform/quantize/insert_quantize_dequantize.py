"""InsertQuantizeDequantize: a function in QDQ form: what layers read is quantized, and dequantized again.

    y = R.matmul(x, w)         q = R.quantize(x, s, z)
                               d = R.dequantize(q, s, z)
                               v = R.dequantize(R.const(codes), t, 0, axis=1)
                               y = R.matmul(d, v)

`ranges` are the intervals of values by their names (`layers`), as `weft.quantize` observes them; a layer whose values
have none stays in floats, and one that `exclude` names. FoldQuantizeDequantize makes integer kernels of this form,
which is plain text until then: models of other frameworks in QDQ form are the same.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar

from weft.ir import (
    Binding,
    BindingBlock,
    Call,
    Constant,
    Expr,
    Function,
    IRModule,
    PrimValue,
    Var,
    VarBinding,
    replace,
)
from weft.ir.deduction.infer import infer_type
from weft.ir.op import OPS, get_op
from weft.ir.op.declare import FIXED
from weft.support.records import dataclass
from weft.transform.infra.base import FunctionPass
from weft.transform.infra.rewriting import FunctionRewriter
from weft.transform.quantize.layers import Layer, Plan, Weights, plan_of, sums_between
from weft.transform.quantize.model_schemes import Grid, ModelScheme, model_scheme

__all__ = ["InsertQuantizeDequantize", "dequantized_weights", "is_asked_for", "quantized_layer"]


@dataclass(frozen=True, eq=False)
class InsertQuantizeDequantize(FunctionPass):
    """Put quantize and dequantize around the operands of products and convolutions.

    Raises: PassError W580 for a scheme that is none.

    >>> InsertQuantizeDequantize({"x": (-1.0, 2.0)}, exclude=("head*",)).text_name
    'insert-quantize-dequantize'
    """

    keeps_meaning: ClassVar[bool] = False  # the numbers are others on purpose
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    scheme: str = "int8"
    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        model_scheme(self.scheme)

    def run_function(self, name: str, function: Function, module: IRModule) -> Function:
        """The function in QDQ form."""
        plan = plan_of(function)
        layers = [layer for layer in plan.layers if self.takes(layer, plan)]
        return _Inserting(self, plan, layers, function).run(function) if layers else function

    def takes(self, layer: Layer, plan: Plan) -> bool:
        """Whether a layer is asked for, and the intervals of what it reads are known."""
        if not all(plan.names[var] in self.ranges for var in layer.activations):
            return False
        return is_asked_for(layer, self.include, self.exclude)


def is_asked_for(layer: Layer, include: tuple[str, ...], exclude: tuple[str, ...]) -> bool:
    """Whether patterns of names take a layer."""
    wanted = any(fnmatch.fnmatchcase(name, pattern) for name in layer.names for pattern in include)
    return wanted and not any(fnmatch.fnmatchcase(name, pattern) for name in layer.names for pattern in exclude)


def quantized_layer(layer: Layer, operands: list[Expr]) -> Expr:
    """The call of a layer on other operands, without its bias."""
    if layer.operator == "linear":
        return get_op("matmul")(*operands)
    values = OPS[layer.operator].values(layer.call)
    attrs = {param.name: values[param.name] for param in OPS[layer.operator].params if param.kind in FIXED}
    return get_op(layer.operator)(*operands, **attrs)


class _Inserting(FunctionRewriter):
    def __init__(self, options: InsertQuantizeDequantize, plan: Plan, layers: list[Layer], function: Function) -> None:
        super().__init__()
        self.plan, self.ranges = plan, options.ranges
        self.scheme: ModelScheme = model_scheme(options.scheme)
        self.layers = {layer.var: layer for layer in layers}
        sums = sums_between(function, layers).items()
        self.sums = {var: terms for var, terms in sums if all(plan.names[term] in self.ranges for term in terms)}
        self.known: dict[tuple[Var, bool], Var] = {}

    def rewrite_block(self, block: BindingBlock, bindings: tuple[Binding, ...]) -> BindingBlock:
        """What a block has made is not seen outside of it."""
        self.known.clear()
        return super().rewrite_block(block, bindings)

    def rewrite_binding(self, binding: Binding) -> Binding | list[Binding]:
        if not isinstance(binding, VarBinding):
            return binding
        new: list[Binding] = []
        layer = self.layers.get(binding.var)
        if layer is not None:
            value = quantized_layer(layer, self._operands(new, layer))
            if layer.bias is not None:
                value = get_op("add")(self._bound(new, f"{binding.var.name}_product", value), layer.bias)
            return [*new, replace(binding, value=value)]
        terms, call = self.sums.get(binding.var), binding.value
        if terms is None or not isinstance(call, Call):
            return binding
        args = [self._quantized(new, arg, False) if isinstance(arg, Var) and arg in terms else arg for arg in call.args]
        return [*new, replace(binding, value=replace(call, args=tuple(args)))]

    def _operands(self, new: list[Binding], layer: Layer) -> list[Expr]:
        symmetric = layer.is_symmetric
        operands: list[Expr] = [self._quantized(new, var, symmetric) for var in layer.activations]
        if layer.weights is not None:
            operands.append(self._weights(new, layer.weights, layer.var.name))
        return operands

    def _quantized(self, new: list[Binding], var: Var, symmetric: bool) -> Var:
        found = self.known.get((var, symmetric))
        if found is None:
            grid = self.scheme.activations(*self.ranges[self.plan.names[var]], symmetric=symmetric)
            scale, zero = PrimValue(float(grid.scale), "float32"), PrimValue(grid.zero, "int32")
            codes = self._bound(new, f"{var.name}_quantized", get_op("quantize")(var, scale, zero))
            found = self._bound(new, f"{var.name}_dequantized", get_op("dequantize")(codes, scale, zero))
            self.known[var, symmetric] = found
        return found

    def _weights(self, new: list[Binding], weights: Weights, name: str) -> Var:
        codes, grid = self.scheme.weights(weights.values, weights.axis)
        found = self._bound(new, f"{name}_weight", dequantized_weights(Constant(codes), grid, weights.axis))
        return self._bound(new, f"{name}_transposed", get_op("permute_dims")(found)) if weights.moved else found

    def _bound(self, new: list[Binding], name: str, value: Expr) -> Var:
        var = self.fresh(name, infer_type(value))
        new.append(VarBinding(var, value))
        return var


def dequantized_weights(codes: Constant, grid: Grid, axis: int) -> Expr:
    """The weights that codes stand for."""
    if grid.scale.ndim:
        return get_op("dequantize")(codes, Constant(grid.scale), 0, axis=axis)
    return get_op("dequantize")(codes, PrimValue(float(grid.scale), "float32"), 0)
