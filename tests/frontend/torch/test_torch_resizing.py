# pyright: reportMissingImports=false
"""Images at another size and at positions of a grid, as PyTorch computes them, natively."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import weft

torch = pytest.importorskip("torch", reason="torch is large: make test-frontends installs it")
functional = torch.nn.functional

KINDS = (("nearest", None), ("nearest-exact", None), ("bilinear", False), ("bilinear", True), ("bicubic", False))


class Applied(torch.nn.Module):
    """A function as a network."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Any) -> Any:
        return self.function(*inputs)


def compared(function: Any, *inputs: Any, others: Any = (), axes: Any = None, native: bool = True) -> None:
    """The imported function beside PyTorch's, on inputs and on others of other sizes."""
    program = torch.export.export(Applied(function), inputs, dynamic_shapes=axes)
    module = weft.frontend.torch.from_exported(program)
    assert native != bool(module.import_report().fallbacks)
    main = weft.compile(module)["main"]
    for given in (inputs, *others):
        found = main(*(x.numpy() for x in given))
        np.testing.assert_allclose(found, function(*given).numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("mode", "align_corners"), KINDS)
def test_images_are_resized_natively(mode: str, align_corners: bool | None) -> None:
    options = {"mode": mode, "align_corners": align_corners}
    image = torch.randn(2, 2, 5, 6)
    for wanted in ({"size": (7, 3)}, {"size": (1, 1)}, {"scale_factor": (2.0, 0.5)}, {"size": (13, 15)}):
        compared(lambda x, wanted=wanted: functional.interpolate(x, **wanted, **options), image)


@pytest.mark.parametrize(("mode", "align_corners"), KINDS)
def test_images_of_any_size_are_made_twice_as_large(mode: str, align_corners: bool | None) -> None:
    options = {"mode": mode, "align_corners": align_corners}
    axes = (({0: torch.export.Dim("batch"), 2: torch.export.Dim("height", min=2, max=100)},),)
    compared(
        lambda x: functional.interpolate(x, scale_factor=2, **options),
        torch.randn(2, 2, 5, 9),
        others=((torch.randn(3, 2, 6, 9),),),
        axes=axes,
    )


def test_a_scale_that_is_not_the_quotient_of_the_sizes_is_kept() -> None:
    """5 * 1.7 is 8.5, so that the result has 8 rows, read at steps of 1 / 1.7 and not of 5 / 8."""
    compared(lambda x: functional.interpolate(x, scale_factor=1.7, mode="bilinear"), torch.randn(1, 2, 5, 6))


@pytest.mark.parametrize("mode", ["nearest", "linear", "nearest-exact"])
def test_rows_are_resized(mode: str) -> None:
    compared(lambda x: functional.interpolate(x, size=9, mode=mode), torch.randn(2, 3, 5))


@pytest.mark.parametrize("mode", ["nearest", "trilinear"])
def test_volumes_are_resized(mode: str) -> None:
    compared(lambda x: functional.interpolate(x, scale_factor=2, mode=mode), torch.randn(1, 2, 2, 3, 4))


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_images_are_read_at_the_positions_of_a_grid(mode: str) -> None:
    image, grid = torch.randn(2, 2, 5, 6), torch.randn(2, 3, 4, 2)
    for padding, align in itertools.product(("zeros", "border", "reflection"), (False, True)):
        options = {"mode": mode, "padding_mode": padding, "align_corners": align}
        compared(lambda x, y, options=options: functional.grid_sample(x, y, **options), image, grid)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_images_are_merged_with_antialiasing(mode: str) -> None:
    options = {"mode": mode, "antialias": True}
    image = torch.randn(2, 2, 17, 12)
    for wanted in ({"size": (5, 20)}, {"size": (1, 1)}, {"scale_factor": (0.3, 0.5)}, {"size": (17, 4)}):
        compared(lambda x, wanted=wanted: functional.interpolate(x, **wanted, **options), image)
    compared(lambda x: functional.interpolate(x, size=(5, 4), align_corners=True, **options), image)


def test_images_of_any_size_are_merged_with_antialiasing() -> None:
    axes = (({0: torch.export.Dim("batch"), 2: torch.export.Dim("height", min=2, max=100)},),)
    compared(
        lambda x: functional.interpolate(x, size=(6, 5), mode="bilinear", antialias=True),
        torch.randn(2, 2, 17, 9),
        others=((torch.randn(3, 2, 31, 9),), (torch.randn(1, 2, 3, 9),)),
        axes=axes,
    )
