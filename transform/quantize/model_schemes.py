"""Schemes of quantized models, as text, and the numbers of tensors under one.

    scheme ::= "int8" { "-symmetric" | "-tensor" | "-minmax" | "-percentile" [number] | "-entropy" }

    -symmetric   zero points of activations are 0; else integers cover the interval of values that were seen
    -tensor      one scale for each matrix of weights; else one for each output channel
    -minmax      activations from the least to the greatest value that was seen (the default)
    -percentile  without the outer ones: -percentile99.99 leaves one in twenty thousand out at each end; 99.9 else
    -entropy     the interval of which 128 steps tell most

Weights are integers from -127 to 127 with a zero point of 0, activations are int8.
"""

from __future__ import annotations

import re

import numpy as np

from weft.errors import PassError, described
from weft.support.records import dataclass
from weft.transform.quantize.observers import EntropyObserver, MinMaxObserver, Observer, PercentileObserver

__all__ = ["Grid", "ModelScheme", "model_scheme"]

_PART = r"symmetric|tensor|minmax|percentile(?:\d+(?:\.\d+)?)?|entropy"
_FORM = re.compile(rf"int8((?:-(?:{_PART}))*)")


@dataclass(frozen=True)
class Grid:
    """What integers stand for: floats `(q - zero) * scale`; the scale has shape () or (n,)."""

    scale: np.ndarray
    zero: int = 0


@dataclass(frozen=True)
class ModelScheme:
    """How a model is quantized: zero points, scales for channels, and how intervals are observed."""

    text: str = "int8"
    is_symmetric: bool = False
    is_per_channel: bool = True
    observer: str = "minmax"
    percentile: float = 99.9

    def new_observer(self) -> Observer:
        """An observer of one tensor."""
        if self.observer == "percentile":
            return PercentileObserver(self.percentile)
        return EntropyObserver() if self.observer == "entropy" else MinMaxObserver()

    def activations(self, low: float, high: float, symmetric: bool = False) -> Grid:
        """The grid of int8 over an interval, which 0 is always in.

        >>> ModelScheme().activations(0.0, 2.55).zero, ModelScheme().activations(-1, 1, symmetric=True).zero
        (-128, 0)
        """
        low, high = min(low, 0.0), max(high, 0.0)
        if symmetric or self.is_symmetric:
            return Grid(_step(max(-low, high) / 127))
        scale = _step((high - low) / 255)
        return Grid(scale, int(np.clip(np.rint(-128 - low / float(scale)), -128, 127)))

    def weights(self, values: np.ndarray, axis: int) -> tuple[np.ndarray, Grid]:
        """The integers nearest to weights whose output channels lie along an axis, and what they stand for."""
        others = tuple(i for i in range(values.ndim) if i != axis) if self.is_per_channel else None
        most = np.abs(values.astype("float32")).max(axis=others, initial=0)
        scale = np.asarray(most / np.float32(127), "float32")
        positive = scale[scale > 0]
        scale = np.where(scale > 0, scale, positive.min() if positive.size else 1).astype("float32")
        spread = scale.reshape([-1 if i == axis else 1 for i in range(values.ndim)]) if scale.ndim else scale
        return np.clip(np.rint(values / spread), -127, 127).astype("int8"), Grid(scale)


def _step(size: float) -> np.ndarray:
    """A scale as float32; 1 where there is nothing to tell apart."""
    return np.asarray(size if size >= np.finfo("float32").tiny else 1.0, "float32")


def model_scheme(text: str) -> ModelScheme:
    """The scheme that a text says; PassError W580 for one that is none.

    >>> model_scheme("int8-symmetric-percentile99.99").percentile
    99.99
    """
    form = _FORM.fullmatch(text) if isinstance(text, str) else None
    hint = "a scheme is int8 with any of -symmetric, -tensor, and one of -minmax, -percentile99.9, -entropy"
    if form is None:
        given = repr(text) if isinstance(text, str) else described(text)
        raise PassError(f"there is no scheme {given} for models", code="W580", hint=hint)
    parts = form[1].split("-")[1:]
    observers = [part for part in parts if part not in ("symmetric", "tensor")]
    percentile = float(observers[0].removeprefix("percentile") or 99.9) if "percentile" in "".join(observers) else 99.9
    if len(observers) > 1 or len(set(parts)) != len(parts) or not 50 <= percentile <= 100:
        raise PassError(f"scheme {text!r} says one thing twice, or no percentile", code="W580", hint=hint)
    name = "percentile" if observers and observers[0].startswith("percentile") else (observers or ["minmax"])[0]
    return ModelScheme(text, "symmetric" in parts, "tensor" not in parts, name, percentile)
