# pyright: reportMissingImports=false
"""Layers of encoders in graphs of `torch.compile`, which hold each as one node."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from weft.frontend.torch.backend import compile_graph
from weft.frontend.torch.importer import Importer

torch = pytest.importorskip("torch", reason="torch is large: make test-frontends installs it")
nn = torch.nn


@pytest.fixture
def reports(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The reports of what is imported."""
    found: list[Any] = []
    run = Importer.run

    def told(self: Importer, *args: Any, **options: Any) -> Any:
        module, report = run(self, *args, **options)
        found.append(report)
        return module, report

    monkeypatch.setattr(Importer, "run", told)
    torch._dynamo.reset()
    return found


def padded(batch: int, length: int) -> Any:
    mask = torch.zeros(batch, length, dtype=torch.bool)
    mask[0, length // 2 :] = True
    return mask


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("kind", ["none", "keys", "causal", "both"])
def test_layers_of_encoders(reports: list[Any], norm_first: bool, kind: str) -> None:
    activation = "gelu" if norm_first else "relu"
    layer = nn.TransformerEncoderLayer(16, 4, 32, activation=activation, batch_first=True, norm_first=norm_first)
    layer = layer.eval().requires_grad_(False)
    fast = torch.compile(layer, backend=compile_graph, dynamic=True)
    for batch, length in ((2, 6), (3, 9)):
        x, options = torch.randn(batch, length, 16), {}
        if kind in ("keys", "both"):
            options["src_key_padding_mask"] = padded(batch, length)
        if kind in ("causal", "both"):
            options["src_mask"] = torch.ones(length, length, dtype=torch.bool).triu(1)
        np.testing.assert_allclose(fast(x, **options), layer(x, **options), rtol=1e-4, atol=1e-5)
    operators = {row.operator for report in reports for row in report.nodes}
    assert "aten._transformer_encoder_layer_fwd.default" in operators
    assert not any(report.fallbacks for report in reports)


@pytest.mark.parametrize("average", [False, True])
def test_attention_with_its_weights(reports: list[Any], average: bool) -> None:
    layer = nn.MultiheadAttention(16, 4, batch_first=True).eval().requires_grad_(False)

    weights = layer.in_proj_weight, layer.in_proj_bias, layer.out_proj.weight, layer.out_proj.bias

    def applied(x: Any, mask: Any) -> Any:
        return torch._native_multi_head_attention(x, x, x, 16, 4, *weights, mask, True, average, 1)

    fast = torch.compile(applied, backend=compile_graph, dynamic=True)
    for batch, length in ((2, 6), (3, 9)):
        given = torch.randn(batch, length, 16), padded(batch, length)
        given[1][1] = True  # it sees nothing
        for own, other in zip(fast(*given), applied(*given), strict=True):
            np.testing.assert_allclose(own, other, rtol=1e-4, atol=1e-5)
    assert "aten._native_multi_head_attention.default" in {row.operator for row in reports[0].nodes}
    assert not any(report.fallbacks for report in reports)


def test_attention_of_three_tensors() -> None:
    layer = nn.MultiheadAttention(16, 4, batch_first=True).eval().requires_grad_(False)
    weights = layer.in_proj_weight, layer.in_proj_bias, layer.out_proj.weight, layer.out_proj.bias

    def applied(q: Any, k: Any) -> Any:
        return torch._native_multi_head_attention(q, k, k, 16, 4, *weights, None, False)[0]

    q, k = torch.randn(2, 5, 16), torch.randn(2, 5, 16)
    fast = torch.compile(applied, backend=compile_graph)
    np.testing.assert_allclose(fast(q, k), applied(q, k), rtol=1e-4, atol=1e-5)
