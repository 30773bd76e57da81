# pyright: reportMissingImports=false
"""Results of `torch.compile(..., backend="weft")` that show the memory of inputs, or of each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch", reason="torch is large: make test-frontends installs it")

from weft.frontend.torch.backend import compile_graph  # noqa: E402


def columns(x: Any) -> Any:
    return x.chunk(2, -1)


def beside_others(x: Any) -> Any:
    return [*x.split(1, 0), *x.chunk(2, -1), x * 2]


def of_what_changes(x: Any) -> Any:
    return x.add_(1), *x.chunk(2, 1)


def changed_through_a_view(x: Any) -> Any:
    return x.chunk(2, 1)[1].mul_(3), x.view(-1)[2:4]


def of_what_is_made(x: Any) -> Any:
    return (x + 1).t().chunk(2, 0)


@pytest.mark.parametrize("net", [columns, beside_others, of_what_changes, changed_through_a_view, of_what_is_made])
def test_views_lie_where_those_of_pytorch_do(net: Callable[[Any], Any]) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(net, backend=compile_graph, dynamic=True)
    for rows, first in ((4, 0), (5, 3)):
        base = torch.arange(80.0).view(10, 8)
        given, own = base.clone()[first : first + rows], base.clone()[first : first + rows]
        found, wanted = compiled(given), net(own)
        assert torch.equal(given, own)
        for a, b in zip(found, wanted, strict=True):
            assert torch.equal(a, b)


def test_a_view_of_an_input_shows_what_is_written_later() -> None:
    x = torch.zeros(3, 4)
    left, right = torch.compile(columns, backend=compile_graph, dynamic=True)(x)
    x[:, 2:] += 1
    assert left.sum() == 0
    assert right.sum() == 6
