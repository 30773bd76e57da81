"""The digits network in eight-bit integers: symmetric scales from the first images, fixed-point requantisation.

A real value is `scale * q`. A sum of products has the scale of its factors' product; what brings it to the scale of the
next layer is a 31-bit multiplier and a shift, so that every processor gives the same bits.
"""

from __future__ import annotations

import numpy as np
from tests.embedded import network

import weft
from weft import transform
from weft.ir import IRModule
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T


def _scale(values: np.ndarray) -> float:
    return float(np.abs(values).max()) / 127


def _fixed(factor: float) -> tuple[int, int]:
    """(multiplier, shift) with factor = multiplier / 2**shift and a multiplier of at most 31 bits."""
    shift = 0
    while factor * 2 ** (shift + 1) < 2**30 and shift < 62:
        shift += 1
    return round(factor * 2**shift), shift


def _integers(values: np.ndarray, scale: float, dtype: str = "int8") -> np.ndarray:
    return np.rint(values / scale).clip(np.iinfo(dtype).min, np.iinfo(dtype).max).astype(dtype)


def _convolved(images: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """The convolution of the network on NumPy: 3x3, padding 1, one input channel, and relu."""
    padded = np.pad(images[:, 0], ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    return np.maximum(np.einsum("nyxij,oij->noyx", windows, weight[:, 0]) + bias[:, None, None], 0)


def _pooled(values: np.ndarray) -> np.ndarray:
    return values.reshape(*values.shape[:2], 4, 2, 4, 2).max((3, 5)).reshape(len(values), -1)


class Quantised:
    """Integer weights, the fixed-point factors between layers, and what they compute on NumPy."""

    def __init__(self) -> None:
        weights = dict(np.load(network.DATA / "digits_weights.npz"))
        images = network.images(200)
        first = _pooled(_convolved(images, weights["conv_weight"], weights["conv_bias"]))
        second = np.maximum(first @ weights["hidden_weight"] + weights["hidden_bias"], 0)
        self.input_scale = 1 / 127
        scales = [self.input_scale, _scale(first), _scale(second)]
        self.tensors: dict[str, np.ndarray] = {}
        self.factors: list[tuple[int, int]] = []
        for i, layer in enumerate(("conv", "hidden", "out")):
            weight_scale = _scale(weights[f"{layer}_weight"])
            product = scales[i] * weight_scale
            self.tensors[f"{layer}_weight"] = _integers(weights[f"{layer}_weight"], weight_scale)
            self.tensors[f"{layer}_bias"] = _integers(weights[f"{layer}_bias"], product, "int32")
            if i < 2:
                self.factors.append(_fixed(product / scales[i + 1]))

    def images(self, count: int) -> np.ndarray:
        """The first test images as integers."""
        return _integers(network.images(count), self.input_scale)

    @staticmethod
    def requantise(values: np.ndarray, factor: tuple[int, int]) -> np.ndarray:
        """To the next layer's scale, rounding half up, without negative values (relu)."""
        multiplier, shift = factor
        scaled = (np.maximum(values, 0).astype("int64") * multiplier + (1 << (shift - 1))) >> shift
        return scaled.clip(0, 127).astype("int8")

    def logits(self, images: np.ndarray) -> np.ndarray:
        """The network on NumPy: the 32-bit sums of the last layer."""
        wide = {name: value.astype("int32") for name, value in self.tensors.items()}
        padded = np.pad(images[:, 0].astype("int32"), ((0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
        sums = np.einsum("nyxij,oij->noyx", windows, wide["conv_weight"][:, 0]) + wide["conv_bias"][:, None, None]
        pooled = _pooled(self.requantise(sums, self.factors[0])).astype("int32")
        hidden = self.requantise(pooled @ wide["hidden_weight"] + wide["hidden_bias"], self.factors[1])
        return hidden.astype("int32") @ wide["out_weight"] + wide["out_bias"]


def by_weft(count: int) -> IRModule:
    """The network as `weft.quantize` makes it, for a known number of images."""
    weights = dict(np.load(network.DATA / "digits_weights.npz"))
    images = [(network.images(200),)]
    made = weft.quantize(network.network("scores"), images, params=weights, target="llvm -mcpu=cortex-m4")
    return transform.BindSymbolicVars({"n": count})(made)


def module(network_: Quantised, count: int) -> IRModule:
    """The same network as a module, for a known number of images."""
    (conv_factor, conv_shift), (hidden_factor, hidden_shift) = network_.factors

    @I.ir_module
    class Digits:
        @T.prim_func(private=True)
        def after_conv(sums: T.Buffer(("n", 16, 8, 8), "int32"), out: T.Buffer(("n", 16, 8, 8), "int8")):
            for i, c, y, x in T.grid(n, 16, 8, 8):
                with T.block("requantise"):
                    vi, vc, vy, vx = T.axis.remap("SSSS", [i, c, y, x])
                    out[vi, vc, vy, vx] = T.Cast(
                        "int8",
                        T.min(
                            T.shift_right(
                                T.Cast("int64", T.max(sums[vi, vc, vy, vx], 0)) * T.int64(conv_factor)
                                + T.shift_left(T.int64(1), T.int64(conv_shift - 1)),
                                T.int64(conv_shift),
                            ),
                            T.int64(127),
                        ),
                    )

        @T.prim_func(private=True)
        def after_hidden(sums: T.Buffer(("n", 64), "int32"), out: T.Buffer(("n", 64), "int8")):
            for i, c in T.grid(n, 64):
                with T.block("requantise"):
                    vi, vc = T.axis.remap("SS", [i, c])
                    out[vi, vc] = T.Cast(
                        "int8",
                        T.min(
                            T.shift_right(
                                T.Cast("int64", T.max(sums[vi, vc], 0)) * T.int64(hidden_factor)
                                + T.shift_left(T.int64(1), T.int64(hidden_shift - 1)),
                                T.int64(hidden_shift),
                            ),
                            T.int64(127),
                        ),
                    )

        @R.function
        def main(
            images: R.Tensor(("n", 1, 8, 8), "int8"),
            conv_weight: R.Tensor((16, 1, 3, 3), "int8"),
            conv_bias: R.Tensor((16,), "int32"),
            hidden_weight: R.Tensor((256, 64), "int8"),
            hidden_bias: R.Tensor((64,), "int32"),
            out_weight: R.Tensor((64, 10), "int8"),
            out_bias: R.Tensor((10,), "int32"),
        ) -> R.Tensor(("n", 10), "int32"):
            with R.dataflow():
                sums = R.nn.conv2d(images, conv_weight, padding=1, out_dtype="int32") + R.reshape(
                    conv_bias, (1, 16, 1, 1)
                )
                convolved = R.call_tir(cls.after_conv, (sums,), out_ty=R.Tensor((n, 16, 8, 8), "int8"))
                pooled = R.reshape(R.nn.max_pool2d(convolved, pool_size=(2, 2), strides=(2, 2)), (n, 256))
                inner = R.matmul(pooled, hidden_weight, out_dtype="int32") + hidden_bias
                hidden = R.call_tir(cls.after_hidden, (inner,), out_ty=R.Tensor((n, 64), "int8"))
                logits = R.matmul(hidden, out_weight, out_dtype="int32") + out_bias
                R.output(logits)
            return logits

    bound = transform.BindParams("main", network_.tensors)(Digits)
    return transform.BindSymbolicVars({"n": count})(bound)
