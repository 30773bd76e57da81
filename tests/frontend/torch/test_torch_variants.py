# pyright: reportMissingImports=false
"""Operators that are others for lists, under other names or with results more; some gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft

torch = pytest.importorskip("torch", reason="torch is large: make test-frontends installs it")
A = torch.ops.aten
functional = torch.nn.functional


class Applied(torch.nn.Module):
    """A function as a program."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


def compared(function: Callable[..., Any], *args: Any) -> None:
    """The program is native and gives what PyTorch gives."""
    net = Applied(function)
    module = weft.frontend.torch.from_exported(torch.export.export(net, args))
    assert module.import_report().fallbacks == ()
    found, wanted = weft.compile(module)["main"](*(x.numpy() for x in args)), net(*args)
    found, wanted = ([x] if not isinstance(x, (tuple, list)) else x for x in (found, wanted))
    for own, other in zip(found, wanted, strict=True):
        assert (own.shape, own.dtype) == (tuple(other.shape), other.numpy().dtype)
        np.testing.assert_allclose(own, other.numpy(), rtol=1e-4, atol=1e-5)


def drawn(*sizes: int) -> Any:
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(sum(sizes)))


def test_lists_of_tensors() -> None:
    def lists(a: Any, b: Any, c: Any, d: Any) -> Any:
        x, y = [a, b], [c, d]
        return [
            *torch._foreach_add(x, y, alpha=2.5),
            *torch._foreach_mul(x, [1.5, 2.0]),
            *torch._foreach_pow(2.0, x),
            *torch._foreach_norm(x, 1),
            *torch._foreach_max(x),
        ]

    compared(lists, drawn(3, 2), drawn(4), drawn(3, 2) + 1, drawn(4) + 1)


def test_counts_and_segments() -> None:
    numbers, lengths = torch.tensor([1, 5, 1, 0, 3]), torch.tensor([2, 0, 3])
    compared(lambda x, w: [torch.bincount(x) * 2, torch.bincount(x, w, minlength=8)], numbers, drawn(5))
    compared(torch.bincount, numbers[:0])
    compared(lambda x, n: torch.segment_reduce(x, "max", lengths=n), drawn(5, 2), lengths)


def test_products_of_integers() -> None:
    integers = torch.arange(-128, 128, dtype=torch.int8)
    compared(A._weight_int8pack_mm, drawn(4, 8), integers.reshape(32, 8), drawn(32))
    compared(torch._int_mm, integers.repeat(4).reshape(32, 32), integers.repeat(4).reshape(32, 32))
    compared(lambda x, w, b: torch.conv_tbc(x, w, b, 1), drawn(7, 2, 3), drawn(3, 3, 5), drawn(5))


def test_values_that_are_quantized_and_back() -> None:
    x, scales, zeros = drawn(4, 5) * 30, torch.tensor([0.1, 0.2, 0.3, 0.4]), torch.tensor([0, 3, -5, 127])
    x[0, 0] = float("nan")

    def quantized(x: Any, scales: Any, zeros: Any, on: Any) -> Any:
        zeros = zeros.to(torch.int32)
        one, other = scales[:1], zeros[1:2]
        return [
            *A.fake_quantize_per_tensor_affine_cachemask(x, 0.1, 3, -128, 127),
            *A.fake_quantize_per_channel_affine_cachemask(x[1:], scales[1:], zeros[1:], 0, -128, 127),
            *A._fake_quantize_per_tensor_affine_cachemask_tensor_qparams(x, one, other, on, -128, 127),
            A._fake_quantize_learnable_per_tensor_affine(x, one, other + 0.5, -128, 127),
        ]

    for on in (0, 1):
        compared(quantized, x, scales, zeros, torch.tensor([on]))


@pytest.mark.parametrize("corners", [False, True])
def test_gradients_of_images(corners: bool) -> None:
    old = [2, 3, 5, 6]

    def resized(g: Any) -> Any:
        new = list(g.shape[2:])
        return [
            A.upsample_nearest2d_backward(g, new, old),
            A._upsample_nearest_exact2d_backward(g, new, old),
            A.upsample_bilinear2d_backward(g, new, old, corners),
            A.upsample_bicubic2d_backward(g, new, old, corners),
        ]

    compared(resized, drawn(2, 3, 7, 4))


def test_gradients_of_pools_and_paddings() -> None:
    x = drawn(1, 2, 4, 5, 6)
    pooled, places = functional.adaptive_max_pool3d(x, 2, return_indices=True)

    def pools(x: Any, g: Any, places: Any, average: Any, wide: Any) -> Any:
        return [
            A.adaptive_max_pool3d_backward(g, x, places),
            A._adaptive_avg_pool3d_backward(g, x),
            A.avg_pool3d_backward(average, x, [3] * 3, [2] * 3, [1] * 3, True, False, None),
            A.replication_pad3d_backward(wide, x, [2, 1, 0, 3, 1, 1]),
        ]

    average = functional.avg_pool3d(x, 3, 2, 1, True, False)
    compared(pools, x, drawn(*pooled.shape), places, drawn(*average.shape), drawn(1, 2, 6, 8, 9))


@pytest.mark.parametrize("p", [0.0, 1.0, 1.5, 2.0, float("inf")])
def test_gradients_of_distances(p: float) -> None:
    a, b = drawn(2, 4, 3), drawn(2, 5, 3)
    b[0, 0], b[0, 1, :2] = a[0, 0], a[0, 1, :2]
    compared(lambda g, a, b, d: A._cdist_backward(g, a, b, p, d), drawn(2, 4, 5), a, b, torch.cdist(a, b, p))


def test_gradients_by_masks() -> None:
    x = drawn(4, 5)
    compared(lambda g, m: A.masked_scatter_backward(g, m, [3, 4]), x, x > 0.3)
    compared(lambda g, x: [A.softshrink_backward(g, x, 0.5), A.hardshrink_backward(g, x, 0.5)], x + 1, x)


@pytest.mark.parametrize("length", [1, 7])
def test_windows(length: int) -> None:
    def windows(x: Any) -> Any:
        made = [torch.bartlett_window, torch.blackman_window, torch.hamming_window, torch.kaiser_window]
        return [x[0] + window(length, periodic) for window in made for periodic in (False, True)]

    compared(windows, drawn(2))


NUMBERS = [*map(float, "nan inf -inf 0 -0 1 -1 0.5 2.5 -2.5 1e-7 -1e-7 5 10 -20 100".split())]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_functions_have_the_digits_of_pytorch_where_they_are_small(dtype: Any) -> None:
    def functions(x: Any) -> Any:
        special = torch.special
        made = [torch.erfc(x), functional.mish(x), torch.digamma(x), functional.selu(x), torch.sign(x), torch.sgn(x)]
        more = [special.ndtri(torch.sigmoid(x) * 0.25)] if dtype is not torch.bfloat16 else []
        return [*made, special.i0e(x), special.i1e(x), *more]

    x = torch.tensor(NUMBERS, dtype=dtype)
    net = Applied(functions)
    module = weft.frontend.torch.from_exported(torch.export.export(net, (x,)))
    assert module.import_report().fallbacks == ()
    tolerance = {torch.float32: 2e-5, torch.float64: 1e-9, torch.bfloat16: 1.6e-2}[dtype]
    for own, other in zip(weft.compile(module)["main"](weft.frontend.torch.array_of(x)), net(x), strict=True):
        np.testing.assert_allclose(own.astype("float64"), other.double().numpy(), rtol=tolerance, atol=1e-30)


def test_quotients_of_floats_are_floored_exactly() -> None:
    a, b = (torch.tensor([1.0, -1.0, 0.3, 7.0, float("inf"), 0.0, -6.0]), torch.tensor([0.1, float("inf"), -0.1, 0.0]))
    compared(torch.floor_divide, a.repeat(4), b.repeat_interleave(7))


def test_rows_whose_mask_lets_nothing_through_attend_to_nothing() -> None:
    q, k, mask = drawn(2, 4, 3, 8), drawn(2, 4, 5, 8), drawn(3, 5) > 0
    mask[0] = False
    compared(lambda q, k, mask: functional.scaled_dot_product_attention(q, k, k, mask), q, k, mask)


@pytest.mark.parametrize("shape", [(3, 5), (1, 5), (4, 3, 5), (2, 1, 3, 5), (2, 1, 1, 5), (1, 4, 3, 5), (2, 4, 3, 5)])
def test_masks_of_any_shape_that_fits_are_read_where_they_are(shape: tuple[int, ...]) -> None:
    q, k, bias = drawn(2, 4, 3, 8), drawn(2, 4, 5, 8), drawn(*shape)
    attention = functional.scaled_dot_product_attention
    compared(lambda q, k, mask: attention(q, k, k, mask), q, k, bias)
    compared(lambda q, k, mask: attention(q, k, k, mask), q, k, bias > 0)


def test_bytes_repeated_edges_and_positions_that_are_no_numbers() -> None:
    def several(x: Any, g: Any, b: Any) -> Any:
        pads = [functional.pad(x, p, "circular") for p in ([1, -1, 0, -1], [-1, 2, 1, 1])]
        grids = [functional.grid_sample(x, g, "nearest", p, align_corners=False) for p in ("zeros", "border")]
        return [*pads, *grids, torch.any(b, 0), torch.all(b)]

    g = drawn(2, 2, 3, 2)
    g[0, 0, 0, 0] = float("nan")
    compared(several, drawn(2, 3, 3, 4), g, torch.tensor([[0, 3], [0, 0]], dtype=torch.uint8))


def test_the_kth_value_of_an_axis() -> None:
    def kth(x: Any) -> Any:
        return [*torch.kthvalue(x, 3, -1), *torch.kthvalue(x, 2, 0, keepdim=True)]

    compared(kth, drawn(6, 7))
    compared(lambda x: [*torch.kthvalue(x, 1, 0, keepdim=True)], torch.tensor(3.0))
