# pyright: reportMissingImports=false
"""Gradients of core ATen, and a whole training step, beside PyTorch and without a node in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft

torch = pytest.importorskip("torch", reason="torch is large: make test-frontends installs it")
nn, aten = torch.nn, torch.ops.aten
DYNAMIC = torch.export.Dim.DYNAMIC
ALL = [True, True, True]


def real(*shape: int) -> Any:
    return torch.randn(*shape)


def convolved(shape: Any, weights: Any, *options: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The gradients of a convolution: stride, padding, dilation, transposed, more of the result, groups."""
    x, w = real(*shape), real(*weights)
    y = aten.convolution(x, w, None, *options)
    return lambda g, x, w: aten.convolution_backward(g, x, w, [y.shape[1]], *options, ALL), (torch.randn_like(y), x, w)


def pooled(shape: Any, *options: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The gradient of an average pool: kernel, stride, padding, ceil, count of the padding, divisor."""
    x = real(*shape)
    y = aten.avg_pool2d(x, *options)
    return lambda g, x: aten.avg_pool2d_backward(g, x, *options), (torch.randn_like(y), x)


def layer(g: Any, x: Any, w: Any) -> Any:
    _, mean, rstd = aten.native_layer_norm(x, [5, 6], w, w, 1e-5)
    return aten.native_layer_norm_backward(g, x, [5, 6], mean, rstd, w, w, ALL)


def groups(g: Any, x: Any, w: Any) -> Any:
    _, mean, rstd = aten.native_group_norm(x, w, w, x.shape[0], 6, 20, 3, 1e-5)
    return aten.native_group_norm_backward(g, x, mean, rstd, w, x.shape[0], 6, 20, 3, ALL)


def greatest(g: Any, x: Any) -> Any:
    _, places = aten.max_pool2d_with_indices(x, [3, 2], [2, 1], [1, 0], [1, 2], True)
    return aten.max_pool2d_with_indices_backward(g, x, [3, 2], [2, 1], [1, 0], [1, 2], True, places)


def rows(g: Any, places: Any) -> Any:
    return aten.embedding_dense_backward(g, places, 5, 2, True)


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "layer norm": (layer, (real(3, 5, 6), real(3, 5, 6), real(5, 6))),
    "group norm": (groups, (real(2, 6, 4, 5), real(2, 6, 4, 5), real(6))),
    "convolution": convolved((2, 4, 7, 8), (6, 2, 3, 2), [2, 3], [1, 0], [1, 2], False, [0, 0], 2),
    "line": convolved((2, 3, 8), (4, 3, 3), [3], [1], [2], False, [0], 1),
    "space": convolved((2, 2, 5, 6, 6), (2, 2, 2, 1, 3), [1, 2, 2], [0, 0, 1], [1, 1, 1], False, [0, 0, 0], 1),
    "transposed": convolved((2, 4, 5, 4), (4, 3, 3, 2), [2, 3], [1, 0], [1, 2], True, [1, 2], 2),
    "average": pooled((2, 3, 7, 8), [3, 2], [2, 2], [1, 0], False, False, None),
    "average of all": pooled((3, 7, 8), [3, 2], [], [1, 1], False, True, None),
    "average behind": pooled((2, 3, 7, 8), [2, 3], [2, 2], [1, 0], True, False, None),
    "divisor": pooled((2, 3, 7, 8), [2, 3], [2, 2], [1, 0], True, True, 3),
    "greatest": (greatest, (real(2, 3, 4, 6), real(2, 3, 7, 8))),
    "adaptive": (lambda g, x: aten._adaptive_avg_pool2d_backward(g, x), (real(2, 3, 3, 9), real(2, 3, 7, 8))),
    "rows": (rows, (real(3, 4, 6), torch.arange(12).view(3, 4) % 5)),
}  # fmt: skip


class Program(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *given: Any) -> Any:
        return self.function(*given)


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_those_of_pytorch(name: str) -> None:
    function, given = CASES[name]
    module = weft.frontend.torch.from_exported(torch.export.export(Program(function), given))
    assert not module.import_report().fallbacks
    found, wanted = weft.interpret(module)["main"](*(item.numpy() for item in given)), function(*given)
    found, wanted = (item if isinstance(item, (tuple, list)) else (item,) for item in (found, wanted))
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b.numpy(), rtol=2e-4, atol=2e-4)


def test_a_batch_of_any_size_is_one_program() -> None:
    function, given = CASES["convolution"]
    program = torch.export.export(Program(function), given, dynamic_shapes=(({0: DYNAMIC}, {0: DYNAMIC}, None),))
    main = weft.interpret(weft.frontend.torch.from_exported(program))["main"]
    given = (torch.cat([given[0]] * 2), torch.cat([given[1]] * 2), given[2])
    for a, b in zip(main(*(item.numpy() for item in given)), function(*given), strict=True):
        np.testing.assert_allclose(a, b.numpy(), rtol=2e-4, atol=2e-4)


class Loss(nn.Module):
    """A network with what gradients are taken of, and its loss."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.out = nn.Embedding(7, 8), nn.Linear(8, 3)
        self.net = nn.Sequential(
            nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.GroupNorm(2, 4), nn.GELU(), nn.MaxPool2d(2),
            nn.AvgPool2d(2), nn.Flatten(), nn.Linear(16, 8), nn.LayerNorm(8), nn.Tanh(),
        )  # fmt: skip

    def forward(self, x: Any, words: Any, classes: Any) -> Any:
        return nn.functional.cross_entropy(self.out(self.net(x) + self.words(words).mean(1)), classes)


def test_a_training_step_is_native() -> None:
    experimental = pytest.importorskip("torch.export.experimental")
    net, given = Loss(), (real(4, 2, 8, 8), torch.randint(0, 7, (4, 3)), torch.randint(0, 3, (4,)))
    program = experimental._export_forward_backward(torch.export.export(net, given))
    module = weft.frontend.torch.from_exported(program)
    assert not module.import_report().fallbacks
    states = weft.frontend.torch.state(program).values()
    loss, *gradients = weft.compile(module)["main"](*(item.numpy() for item in given), *states)
    wanted = net(*given)
    wanted.backward()
    np.testing.assert_allclose(loss, wanted.detach().numpy(), rtol=1e-5)
    specs = program.graph_signature.output_specs
    names = [item.target for item in specs if item.kind.name == "GRADIENT_TO_PARAMETER"]
    for name, gradient in zip(names, gradients, strict=False):
        np.testing.assert_allclose(gradient, net.get_parameter(name).grad.numpy(), rtol=1e-4, atol=1e-6)


def test_random_numbers_say_why_they_stay_in_pytorch() -> None:
    program = torch.export.export(Program(lambda x: x + torch.rand(3)), (real(3),))
    (node,) = weft.frontend.torch.from_exported(program).import_report().fallbacks
    assert "generator" in node.why
