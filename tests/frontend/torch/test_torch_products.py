# pyright: reportMissingImports=false
"""Products of groups of rows and of three tensors, as PyTorch computes them, natively."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft

torch = pytest.importorskip("torch", reason="torch is large: make test-frontends installs it")


class Grouped(torch.nn.Module):
    """Rows by the matrices of their groups."""

    def forward(self, x: Any, weights: Any, offs: Any) -> Any:
        return torch._grouped_mm(x, weights, offs)


def test_groups_of_rows_meet_their_matrices() -> None:
    """Groups may be empty; rows behind the last group become 0, at any number of rows."""
    weights = torch.randn(3, 8, 16).bfloat16()
    given = (torch.randn(10, 8).bfloat16(), weights, torch.tensor([4, 4, 10], dtype=torch.int32))
    program = torch.export.export(Grouped(), given, dynamic_shapes=({0: torch.export.Dim("m")}, None, None))
    module = weft.frontend.torch.from_exported(program)
    assert not module.import_report().fallbacks
    main = weft.compile(module)["main"]
    for rows, ends in ((10, [4, 4, 10]), (6, [0, 1, 5]), (3, [0, 0, 0]), (0, [0, 0, 0])):
        x = torch.randn(rows, 8).bfloat16()
        wanted, start = np.zeros((rows, 16), "float32"), 0
        for group, end in enumerate(ends):
            wanted[start:end] = (x[start:end].float() @ weights[group].float()).numpy()
            start = end
        arrays = [weft.frontend.torch.array_of(item) for item in (x, weights)]
        found = np.asarray(main(*arrays, np.array(ends, "int32")), "float32")
        np.testing.assert_allclose(found, wanted, rtol=1e-2, atol=1e-6)
    with pytest.raises(weft.WeftError):
        main(*(weft.frontend.torch.array_of(item) for item in given[:2]), np.array([4, 4, 11], "int32"))


def test_products_of_three_tensors_are_native() -> None:
    net = torch.nn.Bilinear(3, 4, 5).requires_grad_(False)
    a, b = torch.randn(6, 3), torch.randn(6, 4)
    module = weft.frontend.torch.from_exported(torch.export.export(net, (a, b)))
    assert not module.import_report().fallbacks
    np.testing.assert_allclose(
        weft.compile(module)["main"](a.numpy(), b.numpy()), net(a, b).numpy(), rtol=1e-5, atol=1e-6
    )
