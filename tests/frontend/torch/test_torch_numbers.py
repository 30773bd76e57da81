# pyright: reportMissingImports=false
"""Numbers of other kinds: what a program reads of its tensors, which may be negative, and types that NumPy lacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft.frontend.torch import array_of
from weft.frontend.torch.backend import compile_graph

torch = pytest.importorskip("torch", reason="torch is large: make test-frontends installs it")


def _arithmetic(x: Any, y: Any) -> Any:
    k = x.item()
    return k, y + k, y * (k - 3), k % 5, k // 3, 2 * k + 1, torch.clamp(y, min=k), torch.where(y > k, y, -y)


def _places(x: Any, y: Any) -> Any:
    k = x.item()
    return y[k], y[:k], y[k:], y[:, k:], y.roll(k)


def _parts(x: Any, y: Any) -> Any:
    a, b = (x + torch.tensor([0, 2])).tolist()
    return y + a - b, torch.tensor([a, b])


def _comparisons(x: Any, y: Any) -> Any:
    k = x.item() + 2**60
    return k > 2**60, k == 2**60 + 1, y


@pytest.mark.parametrize("function", [_arithmetic, _places, _parts, _comparisons])
def test_numbers_may_be_negative(function: Callable[..., Any]) -> None:
    class Net(torch.nn.Module):
        def forward(self, x: Any, y: Any) -> Any:
            return function(x, y)

    first = torch.tensor(-2), torch.arange(12.0).reshape(4, 3)
    rows = torch.export.Dim("rows", min=4)
    program = torch.export.export(Net(), first, dynamic_shapes={"x": None, "y": {0: rows}})
    module = weft.frontend.torch.from_exported(program)
    assert module.import_report().fallbacks == ()
    run = weft.compile(module)["main"]
    for count, size in ((-2, 4), (3, 5), (0, 4), (2, 6)):
        x, y = torch.tensor(count), torch.randn(size, 3)
        for own, other in zip(run(x.numpy(), y.numpy()), function(x, y), strict=True):
            np.testing.assert_array_equal(own, np.asarray(other))


def test_numbers_of_compiled_graphs_are_numbers_of_python() -> None:
    def computed(x: Any) -> Any:
        k = x.item()
        return k + 1, x * k, k / 2, k > 1

    torch._dynamo.config.capture_scalar_outputs = True
    run = torch.compile(computed, backend=compile_graph, fullgraph=True)
    for value in (-2, 0, 3):
        assert repr(run(torch.tensor(value))) == repr(computed(torch.tensor(value)))


def test_what_pytorch_computes_may_be_of_a_type_that_numpy_lacks() -> None:
    class Net(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.frexp(x)

    x = torch.tensor([3.0, -0.25, 0.0], dtype=torch.bfloat16)
    module = weft.frontend.torch.from_exported(torch.export.export(Net(), (x,)))
    assert [node.operator for node in module.import_report().fallbacks] == ["prims.frexp.default"]
    for own, other in zip(weft.compile(module)["main"](array_of(x)), Net()(x), strict=True):
        np.testing.assert_array_equal(own, array_of(other), strict=True)


def test_hard_swish_keeps_its_digits_where_it_begins() -> None:
    """x / 6 + 0.5 has none left near -3, where x + 3 is exact."""

    class Net(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.nn.functional.hardswish(x), torch.nn.functional.hardsigmoid(x)

    x = torch.cat([torch.linspace(-8, 8, 1001), torch.tensor([-2.9999998, 3.0, torch.inf, -torch.inf, torch.nan])])
    module = weft.frontend.torch.from_exported(torch.export.export(Net(), (x,)))
    for own, other in zip(weft.compile(module)["main"](x.numpy()), Net()(x), strict=True):
        np.testing.assert_allclose(own, other.numpy(), rtol=2.5e-7)
