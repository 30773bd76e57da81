"""What became of each layer of a quantized model: printed as a table, as JSON, or as a picture.

    report = module.quantization_report()
    print(report)
    report.to_json()
    report.plot("noise.png")            needs matplotlib: the extra `plot`

The report is kept beside the module that `weft.quantize` returned; the text of the module says only what stands there.
"""

from __future__ import annotations

import importlib
import json
import math
from dataclasses import asdict
from typing import Any
from weakref import WeakKeyDictionary

from weft.errors import MissingExtraError, PassError
from weft.ir import IRModule
from weft.support.records import dataclass, record

__all__ = ["QuantizationReport", "QuantizedLayer", "attach_report", "quantization_report"]


@record
class QuantizedLayer:
    """A layer: what it computes in, and why where that is float32; its noise, its weights, and its share of the work.

    `decibels` is the ratio of signal to noise when this layer alone is quantized, `worst_channel` the output channel
    with the least one. `operations` counts multiplications and additions of the first call; `float_ms` and
    `int8_ms` are what it costs in milliseconds, estimated or measured, None where that is not known.
    """

    name: str
    operator: str
    dtype: str
    reason: str = ""
    decibels: float | None = None
    worst_channel: int | None = None
    worst_decibels: float | None = None
    bytes_before: int = 0
    bytes_after: int = 0
    operations: int = 0
    float_ms: float | None = None
    int8_ms: float | None = None


@dataclass(frozen=True)
class QuantizationReport:
    """The layers in order, and the whole: `drop` of the results (see `weft.quantize`), its limit, the metric."""

    layers: tuple[QuantizedLayer, ...]
    scheme: str
    drop: float
    max_drop: float | None = None
    metric_before: float | None = None
    metric_after: float | None = None

    @property
    def quantized(self) -> tuple[QuantizedLayer, ...]:
        """The layers that compute on integers."""
        return tuple(layer for layer in self.layers if layer.dtype != "float32")

    @property
    def share(self) -> float:
        """The share of operations that integers do, from 0 to 1."""
        total = sum(layer.operations for layer in self.layers)
        return sum(layer.operations for layer in self.quantized) / total if total else 0.0

    def __str__(self) -> str:
        width = max([len(layer.name) for layer in self.layers] + [5])
        head = f"{'layer':<{width}}  {'operator':<10} {'dtype':<8} {'SNR':>8}  {'worst channel':>18}  {'weights':>21}"
        lines = [self._summary(), f"{head}  work  float ms   int8 ms"]
        if self.metric_before is not None and self.metric_after is not None:
            lines.insert(1, f"metric {self.metric_before:.6g} -> {self.metric_after:.6g}")
        total = sum(layer.operations for layer in self.layers) or 1
        for layer in self.layers:
            worst = "" if layer.worst_channel is None else f"{layer.worst_channel}: {_decibels(layer.worst_decibels)}"
            sizes = f"{_bytes(layer.bytes_before)} -> {_bytes(layer.bytes_after)}" if layer.bytes_before else ""
            row = (
                f"{layer.name:<{width}}  {layer.operator:<10} {layer.dtype:<8} {_decibels(layer.decibels):>8}"
                f"  {worst:>18}  {sizes:>21}  {100 * layer.operations / total:3.0f} %"
                f"  {_milliseconds(layer.float_ms):>8}  {_milliseconds(layer.int8_ms):>8}"
            )
            lines.append(f"{row}  {layer.reason}".rstrip())
        return "\n".join(lines)

    def _summary(self) -> str:
        before, after = (sum(getattr(layer, f"bytes_{when}") for layer in self.layers) for when in ("before", "after"))
        limit = "" if self.max_drop is None else f" (at most {self.max_drop:g})"
        counts = f"{len(self.quantized)} of {len(self.layers)} layers, {100 * self.share:.1f} % of operations"
        return f"{self.scheme}: {counts}; weights {_bytes(before)} -> {_bytes(after)}; drop {self.drop:.4g}{limit}"

    def to_json(self) -> str:
        """The report as JSON; a ratio without noise is null."""
        layers = [{key: _finite(value) for key, value in asdict(layer).items()} for layer in self.layers]
        own = {
            "scheme": self.scheme,
            "drop": _finite(self.drop),
            "max_drop": self.max_drop,
            "metric_before": self.metric_before,
            "metric_after": self.metric_after,
            "share": self.share,
        }
        return json.dumps({**own, "layers": layers}, indent=1)

    def plot(self, path: str | None = None) -> Any:
        """Noise and cost by layer as a figure of matplotlib, written to a file if a path is given.

        Raises: MissingExtraError W971 without matplotlib.
        """
        try:
            figures: Any = importlib.import_module("matplotlib.figure")
        except ImportError:
            message = "a plot of a quantization report needs matplotlib"
            raise MissingExtraError(message, hint="pip install 'weft[plot]'") from None
        figure = figures.Figure(figsize=(11, 2 + 0.22 * len(self.layers)), layout="constrained")
        figure.suptitle(self._summary(), fontsize="medium")
        noise, cost = figure.subplots(1, 2, sharey=True)
        self._plot_noise(noise)
        self._plot_cost(cost)
        noise.set_yticks(range(len(self.layers)), [layer.name for layer in self.layers], fontsize="small")
        noise.set_ylim(len(self.layers) - 0.4, -0.6)
        if path is not None:
            figure.savefig(path)
        return figure

    def _plot_noise(self, axes: Any) -> None:
        known = [
            (place, layer)
            for place, layer in enumerate(self.layers)
            if layer.decibels is not None and math.isfinite(layer.decibels)
        ]
        for dtype, colour in _COLOURS.items():
            rows = [
                (place, layer.decibels) for place, layer in known if (layer.dtype == "float32") == (dtype == "float32")
            ]
            if rows:
                label = "whole layer, int8" if dtype == "int8" else "whole layer, stays float32"
                axes.barh(*zip(*rows, strict=True), color=colour, label=label)
        worst = [(layer.worst_decibels, place) for place, layer in known if math.isfinite(layer.worst_decibels or 0)]
        if worst:
            axes.plot(*zip(*worst, strict=True), "k|", markersize=7, label="worst channel")
        for place, layer in enumerate(self.layers):
            if layer.decibels is None:
                axes.text(0, place, f" {layer.dtype}", va="center", fontsize="small", color=_COLOURS["float32"])
        axes.set_xlabel("signal to noise in dB, more is better")
        if known:
            _legend(axes)

    def _plot_cost(self, axes: Any) -> None:
        shown = False
        for offset, (dtype, colour) in zip((-0.2, 0.2), _COLOURS.items(), strict=True):
            times = [layer.float_ms if dtype == "float32" else layer.int8_ms for layer in self.layers]
            rows = [(place + offset, time) for place, time in enumerate(times) if time is not None]
            if rows:
                axes.barh(*zip(*rows, strict=True), height=0.4, color=colour, label=f"as {dtype}")
                shown = True
        axes.set_xlabel("cost in milliseconds")
        axes.locator_params(axis="x", nbins=5)
        if shown:
            _legend(axes)


_COLOURS = {"float32": "tab:orange", "int8": "tab:blue"}


def _legend(axes: Any) -> None:
    """A legend above the axes, where it hides no bar."""
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, fontsize="small", frameon=False)


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _decibels(value: float | None) -> str:
    return "" if value is None else "exact" if value == math.inf else f"{value:.1f} dB"


def _milliseconds(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _bytes(count: int) -> str:
    size, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.1f} {unit}" if unit != "B" else f"{count} B"


_reports: WeakKeyDictionary[IRModule, QuantizationReport] = WeakKeyDictionary()


def attach_report(module: IRModule, report: QuantizationReport) -> IRModule:
    """The module, of which `quantization_report` then tells."""
    _reports[module] = report
    return module


def quantization_report(module: IRModule) -> QuantizationReport:
    """The report of a module that `weft.quantize` returned; PassError W586 for another one.

    >>> module = attach_report(IRModule(), QuantizationReport((), "int8", 0.0))
    >>> quantization_report(module).share
    0.0
    """
    found = _reports.get(module)
    if found is None:
        message = "no report of this module: weft.quantize did not return it"
        raise PassError(message, code="W586", hint="ask for the report before the module is changed")
    return found
