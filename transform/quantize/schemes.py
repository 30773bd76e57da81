"""Schemes of weights in few bits, as text, and the numbers of a matrix under one.

    scheme ::= ("int2" | "int4" | "int8") { "-g" size | "-channel" | "-affine" | "-a8" | "-s32" }

    -g32        a scale for 32 neighbours along the contracted axis (the default); -channel: one for the whole axis
    -affine     a zero point for each scale, so that codes cover the range of values; else zero is in the middle
    -a8         activations become int8 with scales of the same groups when they are known
    -s32        scales of float32; else of float16

Codes have no sign: `code - zero_point` times the scale is the weight. Without `-affine` the value of the greatest size
in a group becomes the end of the range that is one step longer, as in the formats Q4_0 of llama.cpp.

Source: Jacob et al., Quantization and training of neural networks for efficient integer-arithmetic-only inference,
2018.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from weft.dtypes import array_dtype, max_value
from weft.errors import PassError
from weft.support.records import dataclass

__all__ = ["QuantizedMatrix", "WeightScheme", "weight_scheme"]

_FORM = re.compile(r"int([248])((?:-(?:g\d+|channel|affine|a8|s32))*)")
_LEAST = 8
"""The fewest neighbours that share a scale."""


@dataclass(frozen=True)
class WeightScheme:
    """How weights are stored: bits of a code, weights for each scale (0: all), zero points, dtypes."""

    bits: int = 4
    group_size: int = 32
    is_affine: bool = False
    quantizes_activations: bool = False
    scale_dtype: str = "float16"

    @property
    def dtype(self) -> str:
        """The dtype of codes."""
        return f"uint{self.bits}"

    def group_of(self, size: int) -> int | None:
        """The weights for each scale along an axis of a size: as many as divide it, at most those of the scheme.

        None where these are too few.

        >>> WeightScheme(group_size=64).group_of(96), WeightScheme().group_of(30)
        (32, None)
        """
        group = math.gcd(size, self.group_size or size)
        return group if group >= min(_LEAST, self.group_size or _LEAST) else None


def weight_scheme(text: str) -> WeightScheme:
    """The scheme that a text says; PassError W570 for one that is none.

    >>> weight_scheme("int8-g64-a8").group_size
    64
    """
    form = _FORM.fullmatch(text) if isinstance(text, str) else None
    if form is None:
        hint = 'a scheme is int2, int4 or int8 with any of -g32, -channel, -affine, -a8, -s32, as in "int4-g64-affine"'
        raise PassError(f"there is no scheme {text!r} for weights", code="W570", hint=hint)
    parts = form[2].split("-")[1:]
    sizes = [0 if part == "channel" else int(part[1:]) for part in parts if part == "channel" or part[0] == "g"]
    if len(sizes) > 1 or any(0 < size < _LEAST for size in sizes) or ("g0" in parts):
        message = f"scheme {text!r}: a scale stands for one number of weights, {_LEAST} at least"
        raise PassError(message, code="W570", hint="-g32, or -channel for all of them")
    return WeightScheme(
        int(form[1]),
        sizes[0] if sizes else 32,
        "affine" in parts,
        "a8" in parts,
        "float32" if "s32" in parts else "float16",
    )


@dataclass(frozen=True)
class QuantizedMatrix:
    """A matrix (k, n) as codes, scales (groups, n), and zero points: those of groups, or one number."""

    codes: np.ndarray
    scale: np.ndarray
    zero_point: np.ndarray | int
    group_size: int

    @staticmethod
    def of(matrix: np.ndarray, scheme: WeightScheme, group: int) -> QuantizedMatrix:
        """The codes nearest to a matrix of floats, under scales as they are stored."""
        size, columns = matrix.shape
        values = np.asarray(matrix, np.float32).reshape(size // group, group, columns)
        with np.errstate(all="ignore"):
            scale, zero = (_affine if scheme.is_affine else _symmetric)(values, scheme)
            inverse = np.where(scale == 0, np.float32(0), np.float32(1) / scale)
            codes = np.clip(np.rint(values * inverse[:, None]) + _spread(zero), 0, max_value(scheme.dtype))
        stored = array_dtype(scheme.dtype)
        point = zero.astype(stored) if isinstance(zero, np.ndarray) else zero
        codes = codes.reshape(size, columns).astype(np.uint8).astype(stored)
        return QuantizedMatrix(codes, scale.astype(scheme.scale_dtype), point, group)


def _spread(zero: Any) -> Any:
    return zero[:, None] if isinstance(zero, np.ndarray) else zero


def _stored(scale: np.ndarray, scheme: WeightScheme) -> np.ndarray:
    """Scales as the scheme stores them, so that codes fit these; what float16 has as infinite stays finite."""
    limit = np.finfo(scheme.scale_dtype).max
    return np.clip(scale, -limit, limit).astype(scheme.scale_dtype).astype(np.float32)


def _symmetric(values: np.ndarray, scheme: WeightScheme) -> tuple[np.ndarray, int]:
    middle = 1 << (scheme.bits - 1)
    low, high = values.min(axis=1), values.max(axis=1)
    end = np.where(high > -low, high, low)
    return _stored(end / np.float32(-middle), scheme), middle


def _affine(values: np.ndarray, scheme: WeightScheme) -> tuple[np.ndarray, np.ndarray]:
    most = float(max_value(scheme.dtype))
    low, high = np.minimum(values.min(axis=1), 0), np.maximum(values.max(axis=1), 0)
    scale = _stored((high - low) / np.float32(most), scheme)
    zero = np.where(scale == 0, 0, np.rint(-low / np.where(scale == 0, np.float32(1), scale)))
    return scale, np.clip(zero, 0, most).astype(np.uint8)
