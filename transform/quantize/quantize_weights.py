"""QuantizeWeights: products with constant matrices of floats become products with matrices of few bits.

    y = R.matmul(x, R.const(w))         y = R.matmul(x, R.dequantize(codes, scale, 8, axis=0, group_size=32))

and with "-a8" in the scheme

    x8 = R.quantize_dynamic(x, group_size=32)
    y = R.matmul(R.dequantize(x8[0], x8[1], 0, group_size=32), R.dequantize(codes, scale, 8, axis=0, group_size=32))

The schemes: `weft.transform.quantize.schemes`. Products are those of `matmul` with a constant matrix on the right, or
the transpose of one, and of `linear`. `include` and `exclude` are patterns (`fnmatch`) of names: that of the product,
of the weight, or of the sum with its bias. The codes, scales and zero points stand in the text; the rule
FuseDequantizeMatmul makes one operator of each product, whose tiles convert what they read.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from weft.dtypes import presented
from weft.errors import PassError, described
from weft.ir import (
    Binding,
    Call,
    Constant,
    Expr,
    Function,
    IRModule,
    Op,
    PrimValue,
    TensorType,
    TupleGetItem,
    Var,
    VarBinding,
    replace,
)
from weft.ir.deduction.infer import infer_type
from weft.ir.op import get_op
from weft.support.records import dataclass
from weft.transform.infra.base import Pass, map_functions
from weft.transform.infra.decisions import Decision, with_decisions
from weft.transform.infra.rewriting import FunctionRewriter, bindings_of, value_behind
from weft.transform.quantize.schemes import QuantizedMatrix, weight_scheme
from weft.transform.rewrite.cancel_transposes import axes_of_permutation

__all__ = ["QuantizeWeights", "checked_patterns"]


@dataclass(frozen=True)
class QuantizeWeights(Pass):
    """Store the constant matrices of products in few bits; see `weft.transform.quantize.schemes` for the schemes.

    Raises: PassError W570 for a scheme that is none, W571 for patterns that are no texts.

    >>> QuantizeWeights("int4-g64", exclude=("lm_head*",)).text_name
    'quantize-weights'
    """

    keeps_meaning: ClassVar[bool] = False  # the numbers are others on purpose
    scheme: str = "int4"
    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("include", "exclude"):
            object.__setattr__(self, name, checked_patterns(name, getattr(self, name)))
        weight_scheme(self.scheme)

    def run(self, module: IRModule) -> IRModule:
        """The module with quantized weights; each function says what became of its products."""
        return map_functions(module, lambda name, function: _Quantizing(self, function).run(function))

    def takes(self, names: Iterator[str] | set[str]) -> bool:
        """Whether a product of these names is asked for."""
        known = list(names)
        wanted = any(fnmatch.fnmatchcase(name, pattern) for name in known for pattern in self.include)
        return wanted and not any(fnmatch.fnmatchcase(name, pattern) for name in known for pattern in self.exclude)


def checked_patterns(name: str, given: object) -> tuple[str, ...]:
    """Patterns of names, one or several; PassError W571 for other things.

    >>> checked_patterns("include", "head*")
    ('head*',)
    """
    patterns = (given,) if isinstance(given, str) else given
    if not isinstance(patterns, (list, tuple)) or not all(isinstance(x, str) for x in patterns):
        raise PassError(f"{name} is a pattern of names, or several, got {described(given)}", code="W571")
    return tuple(patterns)


@dataclass(frozen=True)
class _Product:
    """A product with a constant matrix: the call, its activations, the matrix as (k, n), the names it goes by."""

    call: Call
    activations: Expr
    matrix: np.ndarray
    bias: Expr | None = None
    weight: str = ""


class _Quantizing(FunctionRewriter):
    """Rewrites the products of one function."""

    def __init__(self, options: QuantizeWeights, function: Function) -> None:
        super().__init__()
        self.options, self.scheme = options, weight_scheme(options.scheme)
        self.values: dict[Var, Expr] = {}
        self.sums = dict(_sums(function))
        self.made: dict[tuple[Any, ...], tuple[np.ndarray, tuple[Constant, Constant, Expr], int]] = {}
        self.activations: dict[tuple[int, int], Var] = {}
        self.decisions: list[Decision] = []

    def run(self, function: Function) -> Function:
        """The function, with what was decided about its products."""
        return with_decisions(super().run(function), self.decisions)

    def rewrite_binding(self, binding: Binding) -> Binding | list[Binding]:
        if not isinstance(binding, VarBinding):
            return binding
        self.values[binding.var] = binding.value
        found = self._product(binding.value)
        names = {binding.var.name, self.sums.get(binding.var, ""), "" if found is None else found.weight} - {""}
        if found is None or not self.options.takes(names):
            return binding
        group = self.scheme.group_of(found.matrix.shape[0])
        if group is None or not np.isfinite(found.matrix).all():
            why = "too few weights share a divisor" if group is None else "a weight is no finite number"
            self._decide(binding, found, {"scheme": "none"}, f"it stays as it is: {why}")
            return binding
        return self._quantized(binding, found, group)

    # What there is

    def _constant(self, value: Expr) -> Constant | None:
        known = value_behind(value, self.values)
        return known if isinstance(known, Constant) else None

    def _transposed(self, value: Expr) -> Expr | None:
        """The matrix that a value is the transpose of."""
        behind = self.values.get(value) if isinstance(value, Var) else value
        if not isinstance(behind, Call) or not isinstance(behind.op, Op) or behind.op.name != "permute_dims":
            return None
        return behind.args[0] if axes_of_permutation(behind, 2) == (1, 0) else None

    def _product(self, value: Expr) -> _Product | None:
        if not isinstance(value, Call) or not isinstance(value.op, Op) or value.op.name not in ("matmul", "linear"):
            return None
        right, transposed = value.args[1], value.op.name == "linear"
        name = right.name if isinstance(right, Var) else ""
        while (behind := self._transposed(right)) is not None:
            right, transposed = behind, not transposed
            name = right.name if isinstance(right, Var) else name
        weight = self._constant(right)
        if weight is None or weight.data.ndim != 2 or weight.dtype not in ("float32", "float16", "bfloat16"):
            return None
        matrix = np.asarray(presented(weight.data, weight.dtype))
        activations, _, *rest = value.args
        return _Product(value, activations, matrix.T if transposed else matrix, rest[0] if rest else None, name)

    # What becomes of it

    def _quantized(self, binding: VarBinding, found: _Product, group: int) -> list[Binding]:
        new: list[Binding] = []
        ty = infer_type(found.activations)
        assert isinstance(ty, TensorType)
        (codes, scale, zero), size = self._matrix(found, group)
        options = {"axis": 0, "group_size": size, "out_dtype": ty.dtype}
        weight = self._bound(new, f"{binding.var.name}_weight", get_op("dequantize")(codes, scale, zero, **options))
        left = found.activations
        if self.scheme.quantizes_activations and ty.dtype == "float32":
            left = self._integers(new, left, size)
        attrs = {name: value for name, value in found.call.attrs.items() if name == "out_dtype"}
        product: Expr = get_op("matmul")(left, weight, **attrs)
        if found.bias is not None:
            product = get_op("add")(self._bound(new, f"{binding.var.name}_product", product), found.bias)
        saved = found.matrix.size * (found.matrix.itemsize - self.scheme.bits / 8) - scale.data.nbytes
        values = {"scheme": self.options.scheme, "group_size": size, "saved_bytes": int(saved)}
        self._decide(binding, found, values, "a constant matrix of floats")
        return [*new, replace(binding, value=product)]

    def _matrix(self, found: _Product, group: int) -> tuple[tuple[Constant, Constant, Expr], int]:
        """The constants of a matrix, once for all products with it."""
        key = found.matrix.__array_interface__["data"][0], found.matrix.shape, found.matrix.strides
        if key not in self.made:
            made = QuantizedMatrix.of(found.matrix, self.scheme, group)
            point = made.zero_point
            zero = Constant(point) if isinstance(point, np.ndarray) else PrimValue(point, "int32")
            self.made[key] = found.matrix, (Constant(made.codes), Constant(made.scale), zero), made.group_size
        _, constants, size = self.made[key]
        return constants, size

    def _integers(self, new: list[Binding], left: Expr, size: int) -> Expr:
        """The activations as integers that stand for them, once for all products with them."""
        key = id(left), size
        if key not in self.activations:
            both = self._bound(new, "activations", get_op("quantize_dynamic")(left, group_size=size))
            data = self._bound(new, "quantized", TupleGetItem(both, 0))
            scale = self._bound(new, "scale", TupleGetItem(both, 1))
            call = get_op("dequantize")(data, scale, PrimValue(0, "int32"), group_size=size)
            self.activations[key] = self._bound(new, "dequantized", call)
        return self.activations[key]

    def _bound(self, new: list[Binding], name: str, value: Expr) -> Var:
        var = self.fresh(name, infer_type(value))
        new.append(VarBinding(var, value))
        return var

    def _decide(self, binding: VarBinding, found: _Product, values: dict[str, object], reason: str) -> None:
        self.decisions.append(Decision(binding.var.name, "quantize-weights", values, reason))


def _sums(function: Function) -> Iterator[tuple[Var, str]]:
    """The names of sums by the first of their operands."""
    for binding in bindings_of(function.body):
        value = binding.value
        if isinstance(value, Call) and isinstance(value.op, Op) and value.op.name == "add" and value.args:
            if isinstance(value.args[0], Var):
                yield value.args[0], binding.var.name
