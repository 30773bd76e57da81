"""A layer as a function of its own, in float32 and on integers, and how long each takes on this machine.

    float32     main(x: float32):   y = layer(x, weights)                             return quantize(y)
    int8        main(q: int8):      y = layer(dequantize(q), dequantize(codes))       return quantize(y)

This is what a layer is between layers on integers: those before it give floats or integers as it wants them, those
after it read integers. Where none comes after it, the result stays a float. Sizes are those of the first call.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from weft.ir import Constant, Expr, IRModule, TensorType, Var
from weft.ir.builder import BlockBuilder
from weft.ir.op import get_op
from weft.transform.quantize.insert_quantize_dequantize import dequantized_weights, quantized_layer
from weft.transform.quantize.layers import Layer
from weft.transform.quantize.model_schemes import ModelScheme

__all__ = ["float_layer", "integer_layer", "measured_milliseconds"]

_SECONDS = 0.02
"""How long each form of a layer is run."""
_RUNS = 3
"""How often it is run at least."""
_STEP, _ZERO = 0.05, 3
"""What integers stand for: any scale and zero point that are none of the simple ones take the same time."""


def float_layer(layer: Layer, shapes: Sequence[tuple[int, ...]], is_quantized: bool) -> IRModule:
    """The layer in float32, of activations of these shapes; `is_quantized`: integers read its result."""
    params = [Var(f"x{place}", TensorType(shape, "float32")) for place, shape in enumerate(shapes)]
    builder = BlockBuilder()
    with builder.function("main", params):
        operands: list[Expr] = list(params)
        if layer.weights is not None:
            operands.append(_turned(builder, Constant(layer.weights.values), layer))
        _give(builder, quantized_layer(layer, operands), is_quantized)
    return builder.get()


def integer_layer(layer: Layer, shapes: Sequence[tuple[int, ...]], scheme: ModelScheme, is_quantized: bool) -> IRModule:
    """The layer on integers, of activations of these shapes, in QDQ form."""
    params = [Var(f"q{place}", TensorType(shape, "int8")) for place, shape in enumerate(shapes)]
    zero = 0 if scheme.is_symmetric or layer.is_symmetric else _ZERO
    builder = BlockBuilder()
    with builder.function("main", params):
        operands: list[Expr] = [builder.emit(get_op("dequantize")(param, _STEP, zero)) for param in params]
        if layer.weights is not None:
            codes, grid = scheme.weights(layer.weights.values, layer.weights.axis)
            weights = builder.emit(dequantized_weights(Constant(codes), grid, layer.weights.axis))
            operands.append(_turned(builder, weights, layer))
        _give(builder, quantized_layer(layer, operands), is_quantized)
    return builder.get()


def _give(builder: BlockBuilder, result: Expr, is_quantized: bool) -> None:
    made = builder.emit(result)
    builder.emit_func_output(builder.emit(get_op("quantize")(made, _STEP, _ZERO)) if is_quantized else made)


def _turned(builder: BlockBuilder, weights: Expr, layer: Layer) -> Expr:
    moved = layer.weights is not None and layer.weights.moved
    return builder.emit(get_op("permute_dims")(weights)) if moved else weights


def measured_milliseconds(
    layer: Layer, shapes: Sequence[tuple[int, ...]], scheme: ModelScheme, is_quantized: bool
) -> tuple[float, float]:
    """The least times in float32 and on integers, run in turn, each compiled as `weft.compile` does by default."""
    generator = np.random.default_rng(0)
    floats = [generator.normal(size=shape).astype("float32") for shape in shapes]
    integers = [generator.integers(-128, 128, size=shape).astype("int8") for shape in shapes]
    first = _run(float_layer(layer, shapes, is_quantized), floats)
    second = _run(integer_layer(layer, shapes, scheme, is_quantized), integers)
    least = _least([first, second])
    return 1000 * least[0], 1000 * least[1]


def _run(module: IRModule, arguments: Sequence[np.ndarray]) -> Callable[[], object]:
    """A call of the compiled module whose result lies in one place."""
    out = module(*arguments)
    return lambda: module(*arguments, out=out)


def _least(runs: Sequence[Callable[[], object]]) -> list[float]:
    least = [float("inf")] * len(runs)
    end, count = time.perf_counter() + _SECONDS * len(runs), 0
    while count < _RUNS or time.perf_counter() < end:
        for place, run in enumerate(runs):
            began = time.perf_counter()
            run()
            least[place] = min(least[place], time.perf_counter() - began)
        count += 1
    return least
