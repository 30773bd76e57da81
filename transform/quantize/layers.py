"""The layers of a function that can be quantized, and the values that have to be observed for that.

    layer ::= a product (`matmul`, `linear`) or a convolution of floats: its activations, and its weights where they
              are constant, or a second value of activations

Only what a function computes itself is observed: products in branches, loops and other functions have a reason instead.

A sum or a mean is quantized as well where its result goes into a layer, through operators whose results can be
integers: the terms that no layer has just computed become integers first. Every value has a name of its own here: its
name in the text, with a number where that is not unique.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import field

import numpy as np

from weft.dtypes import presented
from weft.ir import Call, Constant, Expr, Function, If, IRModule, Node, Op, TensorType, Var, VarBinding
from weft.ir.deduction.infer import infer_type
from weft.ir.op import OPS
from weft.ir.structure.references import referenced_functions
from weft.ir.structure.variables import use_counts
from weft.ir.structure.visit import walk
from weft.support.records import dataclass
from weft.transform.infra.rewriting import bindings_of, value_behind
from weft.transform.rewrite.cancel_transposes import axes_of_permutation
from weft.transform.rewrite.quantized.moves import selecting
from weft.transform.rewrite.quantized.operands import called
from weft.transform.rewrite.quantized.products import CONVOLUTIONS, LARGEST_SUM, TRANSPOSED_CONVOLUTIONS

__all__ = [
    "Layer",
    "Plan",
    "Refused",
    "Weights",
    "observed",
    "plan_of",
    "products_elsewhere",
    "read_by_layers",
    "sums_between",
]

_PASSED = ("nn.relu", "nn.relu6", "clip", "maximum", "minimum")
"""Operators that give integers for integers, beside those that select elements: limits of numbers."""
_MEANS = ("mean", *(f"nn.adaptive_avg_pool{count}d" for count in (1, 2, 3)))
"""Sums of one value."""

_WINDOWED = (*CONVOLUTIONS, *TRANSPOSED_CONVOLUTIONS)
_LAYERS = ("matmul", "linear", *_WINDOWED)

_UNNAMED = re.compile(r"[lg]v\d*(_\d+)?")
"""Names that are made where a program has none."""


@dataclass(frozen=True, eq=False)
class Weights:
    """The constant operand of a layer, as it is written: `axis` is that of output channels, `moved` where the product
    takes its transpose."""

    values: np.ndarray
    axis: int
    name: str = ""
    moved: bool = False


@dataclass(frozen=True, eq=False)
class Layer:
    """A product or a convolution: the variable of its result, its operands, its bias (of `linear`)."""

    name: str
    var: Var
    call: Call
    activations: tuple[Var, ...]
    weights: Weights | None
    names: frozenset[str]
    channel: int = -1
    bias: Expr | None = None

    @property
    def operator(self) -> str:
        """The name of its operator."""
        assert isinstance(self.call.op, Op)
        return self.call.op.name

    @property
    def is_symmetric(self) -> bool:
        """Whether zero points of its activations have to be 0."""
        return self.weights is None or self.operator in TRANSPOSED_CONVOLUTIONS

    @property
    def groups(self) -> int:
        """The groups of channels of a convolution."""
        is_convolution = self.operator in _WINDOWED
        return OPS[self.operator].values(self.call)["groups"] if is_convolution else 1

    @property
    def has_strides(self) -> bool:
        """Whether the windows of a convolution are more than one element apart."""
        return self.operator in _WINDOWED and max(OPS[self.operator].values(self.call)["strides"]) > 1

    @property
    def terms(self) -> int:
        """How many products are added for one element of the result."""
        if self.weights is not None:
            shape = self.weights.values.shape
            return int(np.prod(shape)) // max(1, shape[self.weights.axis])
        ty = infer_type(self.activations[1])
        size = ty.dims[-2] if isinstance(ty, TensorType) and ty.dims is not None else 0
        return size if isinstance(size, int) else 0


@dataclass(frozen=True)
class Refused:
    """A product that cannot be quantized, and why."""

    name: str
    operator: str
    reason: str


@dataclass(eq=False)
class Plan:
    """What of a function can be quantized."""

    layers: list[Layer] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    names: dict[Var, str] = field(default_factory=dict)
    """A name of its own for each value."""
    order: list[str] = field(default_factory=list)
    """The names of all products, in order."""


def plan_of(function: Function) -> Plan:
    """The layers of a function, in order."""
    return _Planning(function).run()


def products_elsewhere(module: IRModule, function: Function) -> list[Refused]:
    """The products of the other functions that a function calls, none of which is quantized."""
    found: list[Refused] = []
    pending, seen = [function], set[str]()
    while pending:
        for name in sorted(set(referenced_functions(pending.pop())) - seen):
            seen.add(name)
            other = module.functions.get(name)
            if not isinstance(other, Function):
                continue
            pending.append(other)
            reason = f"it is computed by the function {name}, not by main itself"
            for var, call in _products(other):
                found.append(Refused(f"{name}.{var.name}", _name_of(call), reason))
    return found


def observed(function: Function, layers: list[Layer]) -> list[Var]:
    """The values whose intervals are needed to quantize layers, and the sums between them."""
    terms = [var for terms in sums_between(function, layers).values() for var in terms]
    return list(dict.fromkeys([*(var for layer in layers for var in layer.activations), *terms]))


def sums_between(function: Function, layers: list[Layer]) -> dict[Var, list[Var]]:
    """The sums and means that go into layers, and the terms of each that are to become integers before."""
    return _Sums(function, layers).run()


def read_by_layers(function: Function, layers: Sequence[Layer]) -> set[Var]:
    """The layers whose results other layers read, through sums, limits, means and what selects elements."""
    values, made = _values(function), {layer.var for layer in layers}
    found, seen = set[Var](), set[Var]()
    pending = [var for layer in layers for var in layer.activations]
    while pending:
        var = pending.pop()
        if var in seen:
            continue
        seen.add(var)
        value = values.get(var)
        if var in made:
            found.add(var)
        elif isinstance(value, Call) and (selecting(value) or called(value, "add", *_PASSED, *_MEANS) is not None):
            pending += [arg for arg in value.args if isinstance(arg, Var)]
    return found


def _products(root: Node) -> Iterator[tuple[Var, Call]]:
    """The products anywhere below a node, with the variables of their results."""
    for node in walk(root):
        if isinstance(node, VarBinding) and (call := called(node.value, *_LAYERS)) is not None:
            yield node.var, call


def _name_of(call: Call) -> str:
    assert isinstance(call.op, Op)
    return call.op.name


def _values(function: Function) -> dict[Var, Expr]:
    return {item.var: item.value for item in bindings_of(function.body) if isinstance(item, VarBinding)}


def _constant(values: dict[Var, Expr], value: Expr) -> Constant | None:
    known = value_behind(value, values)
    return known if isinstance(known, Constant) else None


def _bodies(values: dict[Var, Expr]) -> Iterator[tuple[str, Expr]]:
    """What is computed a number of times that differs, and what that is."""
    for value in values.values():
        if isinstance(value, If):
            yield "a branch", value
        elif isinstance(value, Function):
            yield "a loop or a local function", value


class _Planning:
    def __init__(self, function: Function) -> None:
        self.values = _values(function)
        self.inner = [(where, *item) for where, root in _bodies(self.values) for item in _products(root)]
        inner = dict.fromkeys(var for _, var, _ in self.inner)
        self.plan = Plan(names=_distinct([*function.params, *self.values, *inner]))
        self.sums = {first: self.plan.names[var] for first, var in _first_operands(self.values, "add")}
        self.followers = dict(_first_operands(self.values, "add", "nn.relu"))

    def run(self) -> Plan:
        for var, value in self.values.items():
            if called(value, *_LAYERS) is not None and isinstance(value, Call):
                self._layer(var, value)
        for where, var, call in self.inner:
            self._refuse(self._label(var), call, f"it is computed in {where}, where values are not observed")
        return self.plan

    def _refuse(self, name: str, call: Call, reason: str) -> None:
        self.plan.order.append(name)
        self.plan.refused.append(Refused(name, _name_of(call), reason))

    def _layer(self, var: Var, call: Call) -> None:
        name = self._label(var)
        found = self._made(name, var, call)
        if isinstance(found, str):
            self._refuse(name, call, found)
        else:
            self.plan.order.append(name)
            self.plan.layers.append(found)

    def _label(self, var: Var) -> str:
        """The name of a product: that of its sum with a bias, or of `relu` of that, where nobody gave it one."""
        name = var
        while _UNNAMED.fullmatch(name.name) and name in self.followers:
            name = self.followers[name]
        return self.plan.names[var if _UNNAMED.fullmatch(name.name) else name]

    def _made(self, name: str, var: Var, call: Call) -> Layer | str:
        result, left = infer_type(call), call.args[0]
        if not isinstance(result, TensorType) or result.dtype != "float32":
            return f"its result is {result.dtype if isinstance(result, TensorType) else 'no tensor'}"
        operands = list(call.args[:2])
        types = [ty for ty in map(infer_type, operands) if isinstance(ty, TensorType)]
        if len(types) != 2 or any(ty.dtype != "float32" or ty.dims is None for ty in types):
            return "its operands are no float32 tensors of known ranks"
        if not isinstance(left, Var) or _constant(self.values, left) is not None:
            return "its first operand is constant"
        weights = self._weights(call)
        names = frozenset({name, self.plan.names[var], self.sums.get(var, ""), weights.name if weights else ""})
        bias = call.args[2] if len(call.args) > 2 and called(call, "linear") else None
        if weights is None:
            right = operands[1]
            if not isinstance(right, Var) or called(call, "matmul") is None:
                return "its weights are no constant"
            layer = Layer(name, var, call, (left, right), None, names - {""})
        else:
            channel = self._channel(call)
            if channel is None:
                return "its layout has blocks"
            layer = Layer(name, var, call, (left,), weights, names - {""}, channel, bias)
            if layer.operator in TRANSPOSED_CONVOLUTIONS and layer.groups > 1:
                return "its scales are for channels, which a transposed convolution in groups shares"
        return layer if (why := _unfit(layer, types)) is None else why

    def _weights(self, call: Call) -> Weights | None:
        right, moved = call.args[1], False
        name = self.plan.names.get(right, right.name) if isinstance(right, Var) else ""
        value = self.values.get(right) if isinstance(right, Var) else right
        permuted = None if value is None else called(value, "permute_dims")
        if called(call, "matmul") is not None and permuted is not None and axes_of_permutation(permuted, 2) == (1, 0):
            right, moved = permuted.args[0], True
            name = self.plan.names.get(right, right.name) if isinstance(right, Var) else name
        known = _constant(self.values, right)
        if known is None:
            return None
        values = np.asarray(presented(known.data, known.dtype))
        if called(call, "matmul") is not None:
            return Weights(values, 0 if moved else values.ndim - 1, name, moved) if values.ndim == 2 else None
        if called(call, "linear") is not None:
            return Weights(values, 0, name, True) if values.ndim == 2 else None
        assert isinstance(call.op, Op)
        return Weights(values, OPS[call.op.name].values(call)["kernel_layout"].index("O"), name)

    def _channel(self, call: Call) -> int | None:
        """The axis of output channels in the result, from the end; None where the layout has blocks."""
        assert isinstance(call.op, Op)
        if call.op.name not in _WINDOWED:
            return -1
        args = OPS[call.op.name].values(call)
        result = args["out_layout"] or args["data_layout"]
        plain = all(layout.isupper() for layout in (args["data_layout"], args["kernel_layout"], result))
        return result.index("C") - len(result) if plain else None


class _Sums:
    def __init__(self, function: Function, layers: list[Layer]) -> None:
        self.values, self.uses = _values(function), use_counts(function)
        self.made = {layer.var for layer in layers}
        self.pending = [var for layer in layers for var in layer.activations]

    def run(self) -> dict[Var, list[Var]]:
        found: dict[Var, list[Var]] = {}
        seen: set[Var] = set()
        while self.pending:
            var = self.pending.pop()
            value = self.values.get(var)
            if var in seen or not isinstance(value, Call):
                continue
            seen.add(var)
            if called(value, "add") is not None:
                terms = self._terms(value)
                found |= {} if terms is None else {var: terms}
                self.pending += terms or []
            elif called(value, *_MEANS) is not None and isinstance(value.args[0], Var):
                found[var] = [value.args[0]]
                self.pending.append(value.args[0])
            elif (selecting(value) or called(value, *_PASSED) is not None) and isinstance(value.args[0], Var):
                self.pending.append(value.args[0])
        return found

    def _terms(self, call: Call) -> list[Var] | None:
        """The terms of a sum of two tensors that are to become integers; None where one is no such tensor."""
        terms = [arg for arg in call.args if isinstance(arg, Var) and _constant(self.values, arg) is None]
        types = [infer_type(term) for term in terms]
        dims = [ty.dims for ty in types if isinstance(ty, TensorType) and ty.dtype == "float32"]
        if len(dims) != 2 or dims[0] is None or dims[0] != dims[1]:
            return None
        fresh = [var for var in terms if self._is_fresh(var)]
        return [var for var in terms if not fresh or var is not fresh[0]]

    def _is_fresh(self, var: Var) -> bool:
        """Whether a layer has just computed a value, which nothing else uses."""
        if self.uses.get(var, 0) != 1 or var in self.made:
            return var in self.made and self.uses.get(var, 0) == 1
        value = self.values.get(var)
        total = None if value is None else called(value, "add")
        if total is None:
            return False
        first, second = total.args[0], total.args[-1]
        if _constant(self.values, second) is None:
            return False
        return isinstance(first, Var) and first in self.made and self.uses.get(first, 0) == 1


def _unfit(layer: Layer, types: list[TensorType]) -> str | None:
    """Why a layer cannot be quantized."""
    if types[0].ndim < 2 or types[1].ndim < 2:
        return "an operand is a vector"
    if layer.weights is not None and not np.isfinite(layer.weights.values).all():
        return "a weight is no finite number"
    if not layer.terms:
        return "how many products it adds is not known, or none"
    if layer.terms > LARGEST_SUM:
        return f"it adds {layer.terms} products, and int32 has room for {LARGEST_SUM}"
    return None


def _first_operands(values: dict[Var, Expr], *operators: str) -> Iterator[tuple[Var, Var]]:
    """The results of operators by the first of their operands."""
    for var, value in values.items():
        call = called(value, *operators)
        if call is not None and isinstance(call.args[0], Var):
            yield call.args[0], var


def _distinct(variables: list[Var]) -> dict[Var, str]:
    counts, taken = Counter[str](), {var.name for var in variables}
    names: dict[Var, str] = {}
    for var in variables:
        name = var.name
        while counts[var.name] and name in taken:
            name = f"{var.name}_{counts[var.name]}"
            counts[var.name] += 1
        counts[var.name] += not counts[var.name]
        taken.add(name)
        names[var] = name
    return names
