"""What layers cost in float32 and on integers: estimated for a machine, or measured on this one.

    cycles of float32  =  max(multiply-adds / (2 * lanes), bytes / 8)                          lanes of float32
    cycles of int8     =  max(multiply-adds / (6 * lanes) + results * 8 / lanes, bytes / 8)    with dot products

Sums of fewer than four products fill up an instruction that adds four. Convolutions with few channels in a group
(depthwise ones) have no sums over channels, and reach a quarter of what products in floats do, in integers a little
less: those have to be widened. Each result of integers is requantized, eight instructions for a vector, which is why
layers with few terms are slower. Bytes count where all of them exceed the second cache. The rates were fitted to some
sixty layers on a server's processor; milliseconds are those of one core of 3 GHz.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weft.ir import TensorType
from weft.ir.deduction.infer import infer_type
from weft.ir.dim import evaluate, free_symbols
from weft.target.machine_model import MachineModel
from weft.transform.quantize.layer_alone import measured_milliseconds
from weft.transform.quantize.layers import Layer
from weft.transform.quantize.model_schemes import ModelScheme

__all__ = ["LayerCost", "costs_of", "estimated_cost", "measured_cost", "shape_of"]

_CYCLES = 3e6
"""In a millisecond."""
_REQUANTIZING = 8
"""Instructions that requantize a vector of results."""
_BYTES = 8
"""That come from memory, or go there, in a cycle."""
_FEW_CHANNELS = 8
"""Channels of a group below which a convolution is no product of matrices."""


@dataclass(frozen=True, slots=True)
class LayerCost:
    """The milliseconds of a layer in float32 and on integers."""

    float_ms: float
    int8_ms: float
    is_measured: bool = False

    @property
    def is_slower(self) -> bool:
        """Whether integers take longer."""
        return self.int8_ms > self.float_ms

    def __str__(self) -> str:
        how = "measured" if self.is_measured else "estimated"
        return f"int8 {self.int8_ms:.4f} ms, float32 {self.float_ms:.4f} ms, {how}"


@dataclass(frozen=True)
class _Rates:
    """Multiply-adds in a cycle, each with products of matrices and without."""

    product: float
    other: float


def estimated_cost(
    layer: Layer, shapes: Sequence[tuple[int, ...]], results: int, machine: MachineModel
) -> LayerCost | None:
    """The cost of a layer whose operands have these shapes and which gives so many results.

    None for processors without vectors and caches: those are small, and integers spare their memory.
    """
    lanes = machine.vector_bits // 32
    if not lanes or not machine.l2_bytes:
        return None
    terms = max((dot.terms for dot in machine.dot_products if dot.is_vector and dot.operand == "i8"), default=1)
    in_floats = _Rates(2 * lanes, lanes / 2)
    in_integers = _Rates(lanes * (1.5 * terms if terms > 1 else 3), lanes * 0.4)
    is_product = min(layer.channels_of_group) >= (_FEW_CHANNELS if layer.groups > 1 else 0)
    weights = 0 if layer.weights is None else layer.weights.values.size
    elements = sum(math.prod(shape) for shape in shapes) + weights + results
    rounded = -(-layer.terms // terms) * terms if is_product else layer.terms
    return LayerCost(
        _milliseconds(results * layer.terms, in_floats, is_product, 0, 4 * elements, machine),
        _milliseconds(results * rounded, in_integers, is_product, results * _REQUANTIZING / lanes, elements, machine),
    )


def _milliseconds(
    additions: float, rates: _Rates, is_product: bool, after: float, size: int, machine: MachineModel
) -> float:
    computing = additions / (rates.product if is_product else rates.other) + after
    return max(computing, size / _BYTES if size > machine.l2_bytes else 0.0) / _CYCLES


def measured_cost(layer: Layer, shapes: Sequence[tuple[int, ...]], scheme: ModelScheme) -> LayerCost:
    """The cost of a layer alone, compiled and run in both forms here."""
    return LayerCost(*measured_milliseconds(layer, shapes, scheme), is_measured=True)


def costs_of(
    layers: Sequence[Layer], sizes: Mapping[str, int], scheme: ModelScheme, machine: MachineModel | None
) -> dict[str, LayerCost]:
    """The costs of layers by name, estimated for a machine or (None) measured, each kind of layer once.

    Layers with sizes that are not known have none.
    """
    found: dict[str, LayerCost] = {}
    known: dict[tuple[Any, ...], LayerCost | None] = {}
    for layer in layers:
        shapes = [shape_of(infer_type(var), sizes) for var in layer.activations]
        result = shape_of(layer.var.ty, sizes)
        if result is None or any(shape is None for shape in shapes):
            continue
        given = [shape for shape in shapes if shape is not None]
        weights = layer.weights
        key = (
            layer.operator,
            layer.call.attrs,
            *given,
            None if weights is None else (weights.values.shape, weights.axis),
        )
        if key not in known:
            known[key] = (
                measured_cost(layer, given, scheme)
                if machine is None
                else estimated_cost(layer, given, math.prod(result), machine)
            )
        if (cost := known[key]) is not None:
            found[layer.name] = cost
    return found


def shape_of(ty: Any, sizes: Mapping[str, int]) -> tuple[int, ...] | None:
    """The shape of a tensor under the sizes of symbols; None where it is not known."""
    dims = ty.dims if isinstance(ty, TensorType) else None
    if dims is None or not all(set(free_symbols(dim)) <= set(sizes) for dim in dims):
        return None
    return tuple(int(evaluate(dim, sizes)) for dim in dims)
