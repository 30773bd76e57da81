"""What layers cost in float32 and on integers: estimated for a machine, or measured on this one.

    cycles of products in float32   =  multiply-adds / (2 * lanes)                          lanes of float32
    cycles of products in int8      =  multiply-adds / (6 * lanes)                          with dot products
    cycles of other windows         =  vectors * terms * 1.5 in float32 (three times that with strides), 1.75 in int8
                                       and 15 for each row of the picture, which is padded
    what comes after                =  results * 8 / lanes where integers read them, else of int8 results * 2 / lanes
    at least                        =  bytes / 8 where all of them exceed the second cache

Sums of fewer than four products fill up an instruction that adds four. Other windows are those of convolutions in
groups (depthwise ones): they have no sums over channels, vectors run along rows of the picture, and integers have to
be widened. Results that integers read are scaled to eight bits whatever computed them. The numbers were fitted to some
fifty layers on a server's processor; milliseconds are those of one core of 3 GHz.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from weft.ir import Function, TensorType
from weft.ir.deduction.infer import infer_type
from weft.ir.dim import evaluate, free_symbols
from weft.support.records import record
from weft.target.machine_model import MachineModel
from weft.transform.quantize.layer_alone import measured_milliseconds
from weft.transform.quantize.layers import Layer, read_by_layers
from weft.transform.quantize.model_schemes import ModelScheme

__all__ = ["LayerCost", "costs_of", "estimated_cost", "measured_cost", "shape_of"]

_CYCLES = 3e6
"""In a millisecond."""
_QUANTIZING, _CONVERTING = 8, 2
"""Instructions that make a vector of results integers of eight bits, and that make integers floats."""
_BYTES = 8
"""That come from memory, or go there, in a cycle."""
_FLOAT_TAP, _STRIDED_TAP, _INT8_TAP, _PADDED_ROW = 1.5, 4.5, 1.75, 15
"""Cycles of a vector of windows for each term, and of padding a row."""


@record
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


def estimated_cost(
    layer: Layer, shapes: Sequence[tuple[int, ...]], result: tuple[int, ...], machine: MachineModel, is_quantized: bool
) -> LayerCost | None:
    """The cost of a layer whose operands and result have these shapes; `is_quantized`: integers read the result.

    None for processors without vectors and caches: those are small, and integers spare their memory.
    """
    lanes = machine.vector_bits // 32
    if not lanes or not machine.l2_bytes:
        return None
    results, weights = math.prod(result), 0 if layer.weights is None else layer.weights.values.size
    elements = sum(math.prod(shape) for shape in shapes) + weights + results
    if layer.groups == 1:
        in_floats, in_integers = _products(layer.terms, results, lanes, machine)
    else:
        in_floats, in_integers = _windows(layer, shapes[0], result, lanes)
    after = results / lanes * _QUANTIZING if is_quantized else 0.0
    converted = after or results / lanes * _CONVERTING
    least = elements / _BYTES if elements > machine.l2_bytes else 0.0
    least_of_floats = 4 * elements / _BYTES if 4 * elements > machine.l2_bytes else 0.0
    return LayerCost(max(in_floats + after, least_of_floats) / _CYCLES, max(in_integers + converted, least) / _CYCLES)


def _products(terms: int, results: int, lanes: int, machine: MachineModel) -> tuple[float, float]:
    """The cycles of products of matrices, in floats and on integers."""
    group = max((dot.terms for dot in machine.dot_products if dot.is_vector and dot.operand == "i8"), default=1)
    rounded = -(-terms // group) * group
    return results * terms / (2 * lanes), results * rounded / (lanes * (1.5 * group if group > 1 else 3))


def _windows(layer: Layer, picture: tuple[int, ...], result: tuple[int, ...], lanes: int) -> tuple[float, float]:
    """The cycles of a convolution in groups, in floats and on integers."""
    width, row = max(1, result[-1]), max(1, picture[-1])
    taps = math.prod(result) // width * -(-width // lanes) * layer.terms
    return (
        taps * (_STRIDED_TAP if layer.has_strides else _FLOAT_TAP),
        taps * _INT8_TAP + math.prod(picture) // row * _PADDED_ROW,
    )


def measured_cost(
    layer: Layer, shapes: Sequence[tuple[int, ...]], scheme: ModelScheme, is_quantized: bool
) -> LayerCost:
    """The cost of a layer alone, compiled and run in both forms here."""
    return LayerCost(*measured_milliseconds(layer, shapes, scheme, is_quantized), is_measured=True)


def costs_of(
    function: Function,
    layers: Sequence[Layer],
    sizes: Mapping[str, int],
    scheme: ModelScheme,
    machine: MachineModel | None,
) -> dict[str, LayerCost]:
    """The costs of layers by name, estimated for a machine or (None) measured, each kind of layer once.

    Layers with sizes that are not known have none.
    """
    found: dict[str, LayerCost] = {}
    known: dict[tuple[Any, ...], LayerCost | None] = {}
    quantized = read_by_layers(function, layers)
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
            layer.var in quantized,
            None if weights is None else (weights.values.shape, weights.axis),
        )
        if key not in known:
            known[key] = (
                measured_cost(layer, given, scheme, layer.var in quantized)
                if machine is None
                else estimated_cost(layer, given, result, machine, layer.var in quantized)
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
