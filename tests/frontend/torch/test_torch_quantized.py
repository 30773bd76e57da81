# pyright: reportMissingImports=false
"""Quantized programs beside PyTorch, bit by bit and without a node in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft

torch = pytest.importorskip("torch", reason="torch is large: make test-frontends installs it")
pytest.importorskip("torch.ao.quantization.fx._decomposed", reason="it defines the operators")

q = torch.ops.quantized_decomposed
I8, RANGE = torch.int8, (-128, 127)
SCALES, ZEROS = torch.linspace(0.001, 0.05, 6), torch.arange(-3, 3)
ROWS, PARTS = (SCALES[:, None], ZEROS[:, None]), (torch.stack([SCALES, SCALES * 2], 1), torch.stack([ZEROS, ZEROS], 1))
PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "tensor": lambda x, w: q.quantize_per_tensor(x, 0.013, 3, *RANGE, I8),
    "half": lambda x, w: q.quantize_per_tensor(x.half(), 0.013, 3, 0, 255, torch.uint8),
    "back": lambda x, w: q.dequantize_per_tensor(w, 0.013, 3, *RANGE, I8),
    "back to half": lambda x, w: q.dequantize_per_tensor(w, 0.013, 3, *RANGE, I8, out_dtype=torch.float16),
    "channels": lambda x, w: q.quantize_per_channel(x, SCALES, ZEROS, 0, *RANGE, I8),
    "columns": lambda x, w: q.quantize_per_channel(x.t(), SCALES.double(), ZEROS, 1, *RANGE, I8),
    "channels back": lambda x, w: q.dequantize_per_channel(w, SCALES, ZEROS, 0, *RANGE, I8),
    "no zeros": lambda x, w: q.dequantize_per_channel(w, SCALES.double(), None, 0, *RANGE, I8),
    "rows": lambda x, w: q.quantize_per_token(x, *ROWS, *RANGE, I8),
    "rows back": lambda x, w: q.dequantize_per_token(w, *ROWS, *RANGE, I8, torch.float32),
    "groups": lambda x, w: q.quantize_per_channel_group(x, *PARTS, *RANGE, I8, 4),
    "groups back": lambda x, w: q.dequantize_per_channel_group(w, *PARTS, *RANGE, I8, 4, torch.float32),
    "chosen": lambda x, w: q.choose_qparams.tensor(x, *RANGE, 1e-5, I8),
    "chosen above": lambda x, w: q.choose_qparams.tensor(x.abs() + 1, 0, 255, 1e-5, torch.uint8),
    "symmetric": lambda x, w: q.choose_qparams_symmetric.tensor(x, 0, 255, 1e-5, torch.uint8),
    "of rows": lambda x, w: q.choose_qparams_per_token(x, I8),
    "of rows in full": lambda x, w: q._choose_qparams_per_token_asymmetric_impl(x, I8),
    "dynamic": lambda x, w: q.quantize_per_tensor.tensor(x, *q.choose_qparams.tensor(x, *RANGE, 1e-5, I8), *RANGE, I8),
    "dynamic back": lambda x, w: q.dequantize_per_tensor.tensor(
        w, *q.choose_qparams.tensor(x, *RANGE, 1e-5, I8), *RANGE, I8
    ),
}


class Program(torch.nn.Module):
    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any, w: Any) -> Any:
        return self.function(x, w)


@pytest.mark.parametrize("name", PROGRAMS)
def test_integers_are_those_of_pytorch(name: str) -> None:
    def given(spread: float) -> tuple[Any, Any]:
        return torch.randn(6, 8) * spread, torch.randint(-120, 120, (6, 8), dtype=torch.int8)

    module = weft.frontend.torch.from_exported(torch.export.export(Program(PROGRAMS[name]), given(1)))
    assert not module.import_report().fallbacks
    main = weft.interpret(module)["main"]
    for spread in (0.01, 1, 100, 0):
        inputs = given(spread)
        found, wanted = main(*(item.numpy() for item in inputs)), PROGRAMS[name](*inputs)
        found, wanted = (item if isinstance(item, tuple) else (item,) for item in (found, wanted))
        for a, b in zip(found, wanted, strict=True):
            assert a.dtype == b.numpy().dtype
            np.testing.assert_array_equal(a, b.numpy())
