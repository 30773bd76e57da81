"""Programs whose dtype matters: halves that PyTorch computes in float32, integers whose sums are int64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft.frontend import import_report
from weft.frontend.torch import array_of

torch = pytest.importorskip("torch")
HALF = torch.float16
torch.manual_seed(0)
LARGE, SMALL = (torch.randn(3, 8) * 400).to(HALF), (torch.randn(3, 8) * 1e-3).to(HALF)
BYTES = torch.randint(0, 256, (3, 8), dtype=torch.uint8)


class Program(torch.nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Any) -> Any:
        return self.function(*inputs)


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "norm of large halves": (lambda x, w: torch.nn.functional.rms_norm(x, (8,), w), (LARGE, LARGE[0] / 400)),
    "norm of small halves": (lambda x: torch.nn.functional.rms_norm(x, (8,)), (SMALL,)),
    "norm of rows, epsilon 0": (lambda x: torch.nn.functional.rms_norm(x, (3, 8), eps=0.0), (SMALL.float(),)),
    "length of large halves": (lambda x: torch.linalg.vector_norm(x, dim=1), (LARGE,)),
    "distance of halves": (lambda x, y: torch.dist(x, y, 3), (LARGE / 8, SMALL)),
    "how many are not 0": (lambda x: torch.linalg.vector_norm(x, 0, dim=0, keepdim=True), (SMALL,)),
    "sum of bytes": (lambda x: torch.einsum("ij->j", x), (BYTES,)),
    "product of bytes": (lambda x: torch.einsum("ij,kj->ik", x, x), (BYTES,)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_dtype_is_computed_as_pytorch_computes_it(name: str) -> None:
    function, inputs = PROGRAMS[name]
    program = Program(function)
    module = weft.frontend.torch.from_exported(torch.export.export(program, inputs))
    assert not import_report(module).fallbacks
    found, wanted = weft.compile(module)["main"](*map(array_of, inputs)), array_of(program(*inputs))
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_allclose(found.astype("float64"), wanted.astype("float64"), rtol=1e-3, atol=1e-6)
