# pyright: reportMissingImports=false
"""Positions of masks, numbers at equal distances, and truths of nothing, as PyTorch has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft

torch = pytest.importorskip("torch", reason="torch is large: make test-frontends installs it")
nn = torch.nn


def native(net: Any, given: tuple[Any, ...], sizes: Any) -> Any:
    """The compiled function of a network, all of whose nodes are native."""
    module = weft.frontend.torch.from_exported(torch.export.export(net, given, dynamic_shapes=sizes))
    assert module.import_report().fallbacks == ()
    return weft.compile(module)["main"]


class Experts(nn.Module):
    """Rows by the expert that each chooses, which `torch.where` of a mask finds."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(8, 3, bias=False)
        self.experts = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))

    def forward(self, x: Any) -> Any:
        weights, chosen = self.gate(x).softmax(-1).topk(2, -1)
        y = torch.zeros_like(x)
        for place, expert in enumerate(self.experts):
            rows, which = torch.where(chosen == place)
            y.index_add_(0, rows, expert(x[rows]) * weights[rows, which, None])
        return y


def test_experts_chosen_by_where_are_native() -> None:
    net = Experts().requires_grad_(False)
    run = native(net, (torch.randn(6, 8),), ({0: torch.export.Dim("rows", min=2, max=64)},))
    for rows in (2, 7, 40):
        x = torch.randn(rows, 8)
        np.testing.assert_allclose(run(x.numpy()), net(x).numpy(), rtol=1e-4, atol=1e-5)


def test_bags_of_rows_of_any_length_are_native() -> None:
    net = nn.EmbeddingBag(20, 4, mode="mean", padding_idx=1).requires_grad_(False)
    sizes = ({0: torch.export.Dim("b", max=9), 1: torch.export.Dim("s", min=2, max=99)},)
    run = native(net, (torch.randint(0, 20, (3, 5)),), sizes)
    for shape in ((1, 2), (4, 9)):
        x = torch.randint(0, 20, shape)
        np.testing.assert_allclose(run(x.numpy()), net(x).numpy(), rtol=1e-5, atol=1e-6)


def test_numbers_at_equal_distances() -> None:
    class Net(nn.Module):
        def forward(self, x: Any) -> Any:
            count = x.shape[0]
            kinds = {"device": "cpu", "requires_grad": False}
            iota = torch.ops.prims.iota
            return iota(count, start=3, step=-2, dtype=torch.int32, **kinds), iota(
                4, start=count, step=count, dtype=torch.int64, **kinds
            )

    run = native(Net(), (torch.randn(6),), ({0: torch.export.Dim("n", min=2)},))
    for size in (2, 5):
        for found, wanted in zip(run(np.zeros(size, "float32")), Net()(torch.zeros(size)), strict=True):
            np.testing.assert_array_equal(found, wanted.numpy(), strict=True)


def test_truths_of_nothing() -> None:
    class Net(nn.Module):
        def forward(self, x: Any) -> Any:
            chosen = x[x > 2]
            return (chosen > 0).any(), (chosen > 5).all()

    run = native(Net(), (torch.randn(6),), ({0: torch.export.Dim("n", min=2)},))
    for x in (torch.zeros(3), torch.tensor([3.0, 0.0]), torch.tensor([6.0, 7.0])):
        for found, wanted in zip(run(x.numpy()), Net()(x), strict=True):
            np.testing.assert_array_equal(found, wanted.numpy(), strict=True)
