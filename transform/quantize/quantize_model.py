"""weft.quantize: a float model and some data to a model of integer kernels, with a report.

    prepare      private functions inlined, constants folded, norms and factors folded into weights
    cost         each layer in floats and in integers, estimated or measured: what integers make slower stays float32
    observe      the float model runs over the data: the interval of every value that integers are to stand for
    judge        each layer alone on quantized operands: its ratio of signal to noise
    quantize     QDQ form around the layers (InsertQuantizeDequantize), integers of that (FoldQuantizeDequantize)
    compare      the results beside those of the float model: the drop; while it is above `max_drop`, the layers with
                 the least ratio stay float32: as few of them, in that order, as a bisection finds

The drop is `metric(results of the float model) - metric(results of the quantized one)` where a metric is given: a
function of the list of results, one for each item of data, that is larger for better ones; else `drop` says what it is.

Errors: PassError W580 to W586.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, Literal

import numpy as np

from weft.errors import PassError, described
from weft.ir import Function, IRModule, Op, TensorType, Var
from weft.ir.dim import DimExpr, free_symbols
from weft.ir.structure.visit import walk
from weft.support.providers import provider
from weft.support.records import dataclass
from weft.target import Target
from weft.target.machine_model import MachineModel
from weft.transform.graph.bind_params import BindParams
from weft.transform.graph.canonicalize import CanonicalizeBindings
from weft.transform.graph.dead_code import DeadCodeElimination
from weft.transform.graph.fold_constant import FoldConstant
from weft.transform.graph.inline_functions import InlinePrivateFunctions
from weft.transform.graph.normalize import Normalize
from weft.transform.infra.pipeline import Pipeline
from weft.transform.quantize.calibrate import (
    Call,
    LayerNoise,
    calls_of,
    noise_of_layers,
    observed_intervals,
    results_of,
)
from weft.transform.quantize.drop import result_drop
from weft.transform.quantize.insert_quantize_dequantize import InsertQuantizeDequantize, is_asked_for
from weft.transform.quantize.layer_costs import LayerCost, costs_of, shape_of
from weft.transform.quantize.layers import Layer, Plan, observed, plan_of, products_elsewhere
from weft.transform.quantize.model_schemes import ModelScheme, model_scheme
from weft.transform.quantize.quantize_weights import checked_patterns
from weft.transform.quantize.report import QuantizationReport, QuantizedLayer, attach_report
from weft.transform.rewrite.apply_rules import ApplyRules
from weft.transform.rewrite.quantized.fold_quantize_dequantize import FoldQuantizeDequantize

__all__ = ["quantize"]

Metric = Callable[[list[Any]], float]
_RULES = ("transposes", "reshapes", "casts", "matmul-transposes", "inference-norms", "scale-shift", "split-slices")
_QUANTIZED = frozenset(("quantize", "dequantize", "requantize", "quantize_dynamic", "matmul_dequantized"))


def quantize(
    model: IRModule | Function,
    data: Iterable[Any],
    scheme: str = "int8",
    *,
    max_drop: float | None = None,
    metric: Metric | None = None,
    params: Mapping[str, Any] | None = None,
    include: str | Sequence[str] = ("*",),
    exclude: str | Sequence[str] = (),
    force: str | Sequence[str] = (),
    costs: Literal["estimated", "measured"] = "estimated",
    target: Target | str | None = None,
    form: Literal["integer", "qdq"] = "integer",
) -> IRModule:
    """The model with its products and convolutions on int8; `quantization_report` of the module says how well.

    `main` of the model runs over `data`, an iterable of arguments (tuples in order, mappings by name, an array alone
    for one parameter), to see which values occur; its weights are constants, or `params` binds them. For the scheme
    see `weft.transform.quantize.model_schemes`. Layers stay float32 that `exclude` names (patterns of the names of
    products, weights and sums), those that integers make slower unless `force` names them, and those that make the
    drop larger than `max_drop`: the decline of `metric(results)`, which gets the list of results and is larger for
    better ones; without it the relative error of float results, and the share of others that differ. What is slower
    is estimated for `target` (this machine if it is not given), or `costs="measured"`: each layer compiled and run
    here. The result is in integers, the same bits on every target, or in QDQ form (`form="qdq"`).

    Raises: PassError W571 for patterns that are none, W580 for a scheme that is none, W581 to W583 for data that does
    not fit, W584 for a model that is quantized already, W585 for one without anything to quantize, W586 for a limit,
    a metric, a form or costs that are none; TargetError for a target that is none.

    >>> import weft
    >>> text = '@R.function\\ndef main(x: R.Tensor((1, 2), "float32"), w: R.Tensor((2, 2), "float32")):\\n'
    >>> model = weft.parse(text + "    y = R.matmul(x, w)\\n    return y")
    >>> x, w = np.array([[1, -2]], "float32"), np.eye(2, dtype="float32")
    >>> quantize(model, [x], params={"w": w})(x).round(1)
    array([[ 1., -2.]], dtype=float32)
    """
    patterns = checked_patterns("include", include), checked_patterns("exclude", exclude)
    forced = checked_patterns("force", force)
    chosen = model_scheme(scheme)
    _check_limit(max_drop, metric)
    _check_choice("form", form, "integer", "qdq")
    _check_choice("costs", costs, "estimated", "measured")
    if costs == "measured" and target is not None:
        message = f"costs are measured on this machine, and estimated for the target {str(target)!r}"
        raise PassError(message, code="W586", hint="leave out target= or costs=")
    machine = provider("scheduled_machine")(None if target is None else Target(target))
    module = _prepared(_module(model), params)
    function = module["main"]
    assert isinstance(function, Function)
    work = _Work(module, function, chosen, calls_of(data, function), *patterns, metric)
    work.leave_slower(None if costs == "measured" else machine, forced)
    work.observe()
    kept, best = work.within(max_drop)
    report = work.report(kept, best.drop, max_drop)
    return attach_report(best.integer if form == "integer" else best.qdq, report)


def _check_limit(max_drop: object, metric: object) -> None:
    number = isinstance(max_drop, (int, float)) and not isinstance(max_drop, bool)
    if max_drop is not None and not (number and math.isfinite(max_drop) and max_drop >= 0):  # type: ignore[arg-type]
        raise PassError(f"max_drop is a number, 0 or more, or None; got {max_drop!r}", code="W586")
    if metric is not None and not callable(metric):
        message = f"metric is a function of the list of results, got {described(metric)}"
        raise PassError(message, code="W586")


def _check_choice(name: str, given: object, first: str, second: str) -> None:
    if given not in (first, second):
        raise PassError(f"{name} is {first!r} or {second!r}, got {given!r}", code="W586")


def _module(model: object) -> IRModule:
    if isinstance(model, Function):
        return IRModule({"main": model})
    if not isinstance(model, IRModule) or not isinstance(model.functions.get("main"), Function):
        hint = "weft.frontend reads models of other frameworks"
        given = "a module without it" if isinstance(model, IRModule) else described(model)
        raise PassError(
            f"what is quantized is a module with a graph function 'main', got {given}", code="W585", hint=hint
        )
    return model


def _prepared(module: IRModule, params: Mapping[str, Any] | None) -> IRModule:
    """The model with what is known computed, and norms and factors in the weights."""
    found = sorted({node.name for node in walk(module["main"]) if isinstance(node, Op)} & _QUANTIZED)
    if found:
        message = f"the model is quantized already: it holds R.{found[0]}"
        raise PassError(message, code="W584", hint="weft.compile makes integer kernels of QDQ form by itself")
    if params:
        module = BindParams("main", params)(module)
    return Pipeline(
        [
            Normalize(),
            InlinePrivateFunctions(),
            CanonicalizeBindings(),
            FoldConstant(),
            ApplyRules("real", _RULES),
            DeadCodeElimination(),
        ]
    )(module)


@dataclass(frozen=True, eq=False)
class _Tried:
    """A model with some of its layers quantized, in both forms, and how much its results decline."""

    drop: float
    qdq: IRModule
    integer: IRModule


@dataclass
class _Work:
    """A model on its way: what was observed, the noise of its layers, its results."""

    module: IRModule
    function: Function
    scheme: ModelScheme
    calls: list[Call]
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    metric: Metric | None
    plan: Plan = field(init=False)
    layers: list[Layer] = field(init=False)
    ranges: dict[Var, tuple[float, float]] = field(default_factory=dict)
    results: list[Any] = field(default_factory=list)
    noise: dict[str, LayerNoise] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    costs: dict[str, LayerCost] = field(default_factory=dict)
    before: float = 0.0
    """What the metric says of the float model."""

    def __post_init__(self) -> None:
        self.plan = plan_of(self.function)
        self.plan.refused += products_elsewhere(self.module, self.function)
        self.layers = self.plan.layers
        for layer in self.plan.layers:
            if not is_asked_for(layer, self.include, self.exclude):
                self.reasons[layer.name] = "excluded"
        self._leave_out()
        if not self.layers:
            told = [f"{item.name}: {item.reason}" for item in self.plan.refused[:3]]
            told += [f"{name}: {reason}" for name, reason in list(self.reasons.items())[:3]]
            hint = "; ".join(told) or "matmul, linear and convolutions with constant weights are; params= binds weights"
            raise PassError("the model has nothing to quantize", code="W585", hint=hint)

    def _leave_out(self) -> None:
        self.layers = [layer for layer in self.layers if layer.name not in self.reasons]

    def leave_slower(self, machine: MachineModel | None, forced: tuple[str, ...]) -> None:
        """See what the layers cost, on a machine or measured here: those that integers make slower stay float32."""
        self.costs = costs_of(self.function, self.layers, self._sizes(), self.scheme, machine)
        for layer in self.layers:
            cost = self.costs.get(layer.name)
            if cost is not None and cost.is_slower and not is_asked_for(layer, forced, ()):
                self.reasons[layer.name] = f"slower: {cost}"
        self._leave_out()

    def observe(self) -> None:
        """See the intervals of values, and the noise of each layer alone."""
        wanted = observed(self.function, self.layers)
        found = observed_intervals(self.module, wanted, self.calls, self.scheme, self.results.append)
        self.before = 0.0 if self.metric is None else float(self.metric(self.results))
        self.ranges = {var: seen.interval() for var, seen in found.items() if seen.is_finite and not seen.is_empty}
        for layer in self.layers:
            if not all(var in self.ranges for var in layer.activations):
                self.reasons[layer.name] = "no finite values of its operands were seen"
        self._leave_out()
        noise = noise_of_layers(self.module, self.layers, self.ranges, self.calls, self.scheme)
        self.noise = dict(zip((layer.name for layer in self.layers), noise, strict=True))

    def within(self, max_drop: float | None) -> tuple[list[str], _Tried]:
        """The layers that stay float32 so that the drop is not larger, and the model with the others quantized."""
        order = sorted(self.noise, key=lambda name: self.noise[name].decibels)
        best = self._tried([])
        if max_drop is None or best.drop <= max_drop:
            return [], best
        few, many, best = 0, len(order), _Tried(0.0, self.module, self.module)
        while many - few > 1:
            middle = (few + many) // 2
            tried = self._tried(order[:middle])
            if tried.drop <= max_drop:
                many, best = middle, tried
            else:
                few = middle
        return order[:many], best

    def _tried(self, kept: list[str]) -> _Tried:
        """The model with some layers in floats."""
        names = self.plan.names
        ranges = {names[var]: interval for var, interval in self.ranges.items()}
        left = [name for name, reason in self.reasons.items() if reason != "excluded"]
        insert = InsertQuantizeDequantize(ranges, self.scheme.text, self.include, (*self.exclude, *left, *kept))
        qdq = insert(self.module)
        integer = FoldQuantizeDequantize()(qdq)
        results = [_result(values) for values in results_of(integer, self.calls)]
        drop = result_drop(self.results, results) if self.metric is None else self.before - float(self.metric(results))
        return _Tried(drop, qdq, integer)

    # The report

    def report(self, kept: Sequence[str], drop: float, max_drop: float | None) -> QuantizationReport:
        """What became of each product of the function."""
        reasons = {**self.reasons, **dict.fromkeys(kept, "with it the drop is above max_drop")}
        rows = {layer.name: self._row(layer, reasons.get(layer.name, "")) for layer in self.plan.layers}
        rows |= {
            item.name: QuantizedLayer(item.name, item.operator, "float32", item.reason) for item in self.plan.refused
        }
        ordered = list(rows[name] for name in dict.fromkeys([*self.plan.order, *rows]))
        before = None if self.metric is None else self.before
        after = None if before is None else before - drop
        return QuantizationReport(tuple(ordered), self.scheme.text, drop, max_drop, before, after)

    def _row(self, layer: Layer, reason: str) -> QuantizedLayer:
        noise = self.noise.get(layer.name)
        before = 0 if layer.weights is None else layer.weights.values.nbytes
        after = before
        if not reason and layer.weights is not None:
            codes, grid = self.scheme.weights(layer.weights.values, layer.weights.axis)
            after = codes.nbytes + grid.scale.nbytes
        worst = (None, None) if noise is None else noise.worst
        cost = self.costs.get(layer.name)
        shape = shape_of(layer.var.ty, self._sizes())
        return QuantizedLayer(
            layer.name,
            layer.operator,
            "float32" if reason else "int8",
            reason,
            None if noise is None else noise.decibels,
            *worst,
            before,
            after,
            0 if shape is None else 2 * layer.terms * math.prod(shape),
            None if cost is None else cost.float_ms,
            None if cost is None else cost.int8_ms,
        )

    def _sizes(self) -> dict[str, int]:
        """The sizes of symbols in the first call."""
        found: dict[str, int] = {}
        for param, value in zip(self.function.params, self.calls[0], strict=True):
            dims = param.ty.dims if isinstance(param.ty, TensorType) else None
            for dim, size in zip(dims or (), np.shape(value), strict=False):
                if isinstance(dim, DimExpr) and free_symbols(dim) == (str(dim),):
                    found[str(dim)] = size
        return found


def _result(values: tuple[Any, ...]) -> Any:
    return values[0] if len(values) == 1 else values
