"""Running a model over data for what quantization needs: the intervals of values, and the noise of each layer.

    calls_of(data, function)        every item of data as a list of arrays, checked against the parameters
    observed_intervals(...)         the float model with the wanted values as further results, over all calls
    noise_of_layers(...)            each layer on quantized operands beside itself: signal and noise by channel

Both run compiled, once over the data each.

Errors: PassError W581 data that is none, W582 an item that is no arguments of the function, W583 a value that is no
number; ArgumentError and ShapeError of the call, with a note that names the item.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from weft.errors import PassError, WeftError, described
from weft.ir import (
    BindingBlock,
    Constant,
    Expr,
    Function,
    IRModule,
    PrimValue,
    Tuple,
    TupleType,
    Var,
    VarBinding,
    replace,
)
from weft.ir.deduction.infer import infer_type
from weft.ir.op import get_op
from weft.support.records import dataclass
from weft.transform.graph.to_non_dataflow import PlainBlocks
from weft.transform.infra.registry import nearest
from weft.transform.infra.rewriting import merge_blocks
from weft.transform.quantize.insert_quantize_dequantize import dequantized_weights, quantized_layer
from weft.transform.quantize.layers import Layer
from weft.transform.quantize.model_schemes import ModelScheme
from weft.transform.quantize.observers import Observer

__all__ = ["LayerNoise", "calls_of", "noise_of_layers", "observed_intervals", "results_of"]

Call = list[Any]


def calls_of(data: Any, function: Function) -> list[Call]:
    """The arguments of every call that data holds: tuples in order, mappings by name, an array alone for one parameter.

    Raises: PassError W581, W582, W583.
    """
    if isinstance(data, (str, bytes, Mapping)) or not isinstance(data, Iterable):
        message = f"data is an iterable of arguments, got {described(data)}"
        raise PassError(message, code="W581", hint="[(array, ...), ...] or [{'x': array, ...}, ...]")
    names = [param.name for param in function.params]
    calls = [_call(item, names, place) for place, item in enumerate(data)]
    if not calls:
        raise PassError("data has no item: there is nothing to observe", code="W581")
    return calls


def _call(item: Any, names: Sequence[str], place: int) -> Call:
    takes = f"the function takes: {', '.join(names) or 'nothing'}"
    if isinstance(item, Mapping):
        for name in item:
            if name not in names:
                hint = nearest(str(name), names) or takes
                raise PassError(f"item {place} of data has {name!r}, which is no parameter", code="W582", hint=hint)
        missing = [name for name in names if name not in item]
        if missing:
            hint = f"{takes}; params= binds weights"
            raise PassError(f"item {place} of data lacks {', '.join(missing)}", code="W582", hint=hint)
        values = [item[name] for name in names]
    else:
        values = list(item) if isinstance(item, (tuple, list)) else [item]
    if len(values) != len(names):
        message = f"item {place} of data has {len(values)} arguments for {len(names)} parameters"
        hint = f"{takes}; params= binds weights"
        raise PassError(message, code="W582", hint=hint)
    for name, value in zip(names, values, strict=True):
        if isinstance(value, np.ndarray) and value.dtype.kind == "f" and not np.isfinite(value).all():
            kind = "nan" if np.isnan(value).any() else "an infinity"
            raise PassError(f"item {place} of data has {kind} in {name}", code="W583", hint="leave such items out")
    return values


@contextmanager
def _in_item(place: int) -> Iterator[None]:
    """Errors of a call with a note that names the item of data."""
    try:
        yield
    except WeftError as error:
        error.notes = (*error.notes, f"in item {place} of data")
        raise


def results_of(module: IRModule, calls: Sequence[Call]) -> Iterator[tuple[Any, ...]]:
    """What the compiled module gives for each call, as a tuple."""
    for place, arguments in enumerate(calls):
        with _in_item(place):
            result = module(*arguments)
        yield result if isinstance(result, tuple) else (result,)


def observed_intervals(
    module: IRModule,
    wanted: Sequence[Var],
    calls: Sequence[Call],
    scheme: ModelScheme,
    outputs: Callable[[Any], None],
) -> dict[Var, Observer]:
    """An observer of each wanted value of `main`, which has seen all calls; results go to `outputs`."""
    function = module["main"]
    assert isinstance(function, Function)
    extended = _WithResults().of(function, lambda replaced: [replaced(var) for var in wanted])
    found = {var: scheme.new_observer() for var in wanted}
    for result, *values in results_of(module.with_function("main", extended), calls):
        outputs(result)
        for observer, value in zip(found.values(), values, strict=True):
            observer.observe(np.asarray(value))
    return found


@dataclass(frozen=True)
class LayerNoise:
    """The squares of a layer's results and of what quantizing its operands changes, summed for each output channel."""

    signal: np.ndarray
    noise: np.ndarray

    @property
    def decibels(self) -> float:
        """The ratio of signal to noise of the whole layer."""
        return decibels(float(self.signal.sum()), float(self.noise.sum()))

    @property
    def worst(self) -> tuple[int, float]:
        """The channel with the least ratio, of those that have a signal, and its ratio."""
        ratios = [decibels(float(s), float(n)) for s, n in zip(self.signal, self.noise, strict=True)]
        place = int(np.argmin(ratios)) if ratios else 0
        return place, ratios[place] if ratios else float("inf")


def decibels(signal: float, noise: float) -> float:
    """A ratio of powers in dB; infinite without noise.

    >>> decibels(100.0, 1.0)
    20.0
    """
    if noise <= 0 or signal <= 0:
        return float("inf") if noise <= 0 else float("-inf") if signal <= 0 < noise else 0.0
    return float(10 * np.log10(signal / noise))


def noise_of_layers(
    module: IRModule,
    layers: Sequence[Layer],
    ranges: Mapping[Var, tuple[float, float]],
    calls: Sequence[Call],
    scheme: ModelScheme,
) -> list[LayerNoise]:
    """The noise of each layer when it alone is quantized, with exact values before it."""
    function = module["main"]
    assert isinstance(function, Function)

    def results(replaced: Callable[[Var], Var]) -> list[Expr]:
        made: list[Expr] = []
        for layer in layers:
            made += _signal_and_noise(layer, replaced, ranges, scheme)
        return made

    extended = _WithResults().of(function, results)
    totals: list[np.ndarray] = []
    for _, *values in results_of(module.with_function("main", extended), calls):
        wide = [np.asarray(value, "float64") for value in values]
        totals = wide if not totals else [a + b for a, b in zip(totals, wide, strict=True)]
    return [LayerNoise(*totals[2 * place : 2 * place + 2]) for place in range(len(layers))]


def _signal_and_noise(
    layer: Layer,
    replaced: Callable[[Var], Var],
    ranges: Mapping[Var, tuple[float, float]],
    scheme: ModelScheme,
) -> list[Expr]:
    operands: list[Expr] = []
    for var in layer.activations:
        grid = scheme.activations(*ranges[var], symmetric=layer.is_symmetric)
        scale, zero = PrimValue(float(grid.scale), "float32"), PrimValue(grid.zero, "int32")
        operands.append(get_op("dequantize")(get_op("quantize")(replaced(var), scale, zero), scale, zero))
    if layer.weights is not None:
        codes, grid = scheme.weights(layer.weights.values, layer.weights.axis)
        weights = dequantized_weights(Constant(codes), grid, layer.weights.axis)
        operands.append(get_op("permute_dims")(weights) if layer.weights.moved else weights)
    exact: Expr = replaced(layer.var)
    product = quantized_layer(layer, operands)
    if layer.bias is not None:
        product = get_op("add")(product, layer.bias)
    ndim = layer.var.ty.ndim  # type: ignore[attr-defined]
    axes = tuple(axis for axis in range(ndim) if axis != layer.channel % ndim)
    difference = get_op("subtract")(product, exact)
    return [get_op("sum")(get_op("multiply")(part, part), axis=axes) for part in (exact, difference)]


class _WithResults(PlainBlocks):
    """A function that gives further values beside its own results: (results, value, ...)."""

    def of(self, function: Function, values: Callable[[Callable[[Var], Var]], Sequence[Expr]]) -> Function:
        """The function with results that are made of its variables as they are named now."""
        plain = self.run(function)
        more: list[VarBinding] = []
        given: list[Expr] = [plain.body.body]
        for value in values(lambda var: self._plain(var)):
            given.append(value if isinstance(value, Var) else self._emitted(value, more))
        blocks = merge_blocks([*plain.body.blocks, BindingBlock(tuple(more))])
        types = TupleType(tuple(infer_type(value) for value in given))
        result = Var("results", types)
        last = BindingBlock((VarBinding(result, Tuple(tuple(given))),))
        body = replace(plain.body, blocks=merge_blocks([*blocks, last]), body=result)
        return replace(plain, body=body, ret_type=types)

    def _plain(self, var: Var) -> Var:
        found = self.replaced.get(var, var)
        assert isinstance(found, Var)
        return found

    def _emitted(self, value: Expr, more: list[VarBinding]) -> Var:
        """A variable for a value whose parts are bound before it."""
        bound = replace(value, args=tuple(self._part(arg, more) for arg in value.args))  # type: ignore[attr-defined]
        var = Var("probe", infer_type(bound))
        more.append(VarBinding(var, bound))
        return var

    def _part(self, value: Expr, more: list[VarBinding]) -> Expr:
        return self._emitted(value, more) if hasattr(value, "args") else value
