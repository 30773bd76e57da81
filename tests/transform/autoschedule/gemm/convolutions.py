"""Convolutions for tests of their schedules, and what they are compared with."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

import weft
from weft.ir import IRModule
from weft.runtime.device.host import host

WITHOUT_MATRICES = " -mattr=-amx-tile" if host().features.get("amx-tile") else ""
"""What is added to the text of a target so that products go through vectors on every machine."""


def convolution(
    x: Sequence[object],
    w: Sequence[int],
    dtype: str = "float32",
    after: str = "{}",
    more: str = "",
    **options: object,
) -> IRModule:
    given = ", ".join(f"{name}={value}" for name, value in options.items())
    shape = ", ".join(f'"{size}"' if isinstance(size, str) else str(size) for size in x)
    text = f"""
from weft.script import ir as I, relax as R


@I.ir_module
class M:
    @R.function
    def main(x: R.Tensor(({shape}), "{dtype}"), w: R.Tensor({tuple(w)}, "{dtype}"){more}):
        return {after.format(f"R.nn.conv{len(w) - 2}d(x, w, {given})")}
"""
    module = weft.parse(text)
    assert isinstance(module, IRModule)
    return module


def expected(
    x: np.ndarray, w: np.ndarray, strides: Sequence[int], padding: Sequence[int], dilation: Sequence[int]
) -> np.ndarray:
    """The sums in float64."""
    x = np.pad(x.astype("float64"), ((0, 0), (0, 0), *((p, p) for p in padding)))
    axes = tuple(range(2, x.ndim))
    size = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilation, strict=True)]
    windows = np.lib.stride_tricks.sliding_window_view(x, size, axes)
    steps = (slice(None), slice(None), *(slice(None, None, s) for s in strides))
    windows = windows[(*steps, *(slice(None, None, d) for d in dilation))]
    if w.shape[1] == 1 and x.shape[1] > 1:  # each channel by itself
        return np.einsum("ncyxij,cij->ncyx", windows, w[:, 0].astype("float64"), optimize=True)
    letters = "yxz"[: len(axes)], "ijk"[: len(axes)]
    return np.einsum(
        f"nc{letters[0]}{letters[1]},oc{letters[1]}->no{letters[0]}", windows, w.astype("float64"), optimize=True
    )


def decided(executable: weft.Executable) -> dict[str, str]:
    """What was decided about the contraction."""
    (line,) = [line for line in executable.explain().splitlines() if ": gemm: " in line]
    return dict(re.findall(r"(\w+)=(.*?)(?= \w+=|$)", line.split(": gemm: ")[1].split(" (")[0]))


def random(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)
