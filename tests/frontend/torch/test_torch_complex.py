# pyright: reportMissingImports=false
"""Complex programs of PyTorch: every node native, values as PyTorch computes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft.frontend import import_report
from weft.script import relax as R

torch = pytest.importorskip("torch", reason="torch is large: make test-frontends installs it")


class Program(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *values: Any) -> Any:
        return self.function(*values)


def rotated(x: Any, angles: Any) -> Any:
    """The rotary embedding of Llama."""
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    turned = torch.polar(torch.ones_like(angles), angles)
    return torch.view_as_real(pairs * turned).flatten(3)


X, Z = torch.randn(3, 8), torch.randn(3, 8, dtype=torch.complex64)
WINDOW = torch.hann_window(8)
MATRIX, SIDE = torch.randn(3, 3, dtype=torch.complex64), torch.randn(3, 2, dtype=torch.complex64)
FACTOR = torch.linalg.cholesky(MATRIX @ MATRIX.mH + torch.eye(3))
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "inverse sine": (torch.asin, (Z,)),
    "variance": (lambda z: torch.var(z, 1), (Z,)),
    "cholesky_solve": (torch.cholesky_solve, (SIDE, FACTOR)),
    "cholesky_solve, upper": (lambda b, u: torch.cholesky_solve(b, u, upper=True), (SIDE, FACTOR.mH.clone())),
    "factors of matrices": (lambda z: torch.linalg.lu_factor(z)[0], (MATRIX,)),
    "eigenvalues of an upper triangle": (lambda z: torch.linalg.eigvalsh(z, "U"), (MATRIX,)),
    "fft": (torch.fft.fft, (Z,)),
    "rfft of double": (torch.fft.rfft, (X.double(),)),
    "irfft of an odd length": (lambda z: torch.fft.irfft(z, 9, norm="ortho"), (Z,)),
    "fftn of reals": (torch.fft.fftn, (X,)),
    "ifft2 cropped": (lambda z: torch.fft.ifft2(z, (2, -1)), (Z,)),
    "hfft": (torch.fft.hfft, (Z,)),
    "ihfftn": (torch.fft.ihfftn, (X,)),
    "fftshift": (torch.fft.fftshift, (Z,)),
    "fftfreq": (lambda x: x * torch.fft.fftfreq(8, 0.5), (X,)),
    "stft": (lambda x, w: torch.stft(x, 8, 4, window=w, return_complex=True), (torch.randn(2, 32), WINDOW)),
    "istft": (lambda z, w: torch.istft(z, 8, 4, window=w), (torch.fft.fft(torch.randn(2, 9, 5)).mT, WINDOW)),
    "istft of half of the bins": (lambda z: torch.istft(z, 8, onesided=False), (torch.randn(8, 5) + 0j,)),
    "istft of bins that say how many": (lambda z: torch.istft(z, 8), (torch.randn(8, 5) + 0j,)),
    "rotary embedding": (rotated, (torch.randn(1, 3, 2, 8), torch.randn(3, 1, 4))),
    "parts of a conjugate": (lambda z: (z.conj() * 1j).real + torch.angle(z) + z.imag, (Z,)),
    "products": (lambda z: torch.exp(z @ z.mH) / (2 - 1j), (Z,)),
    "lengths and signs": (lambda z: z.abs() + torch.sgn(z).real, (Z,)),
    "norms": (lambda z: (torch.vdot(z[0], z[1]), torch.linalg.vector_norm(z), torch.var(z)), (Z,)),
    "sums": (lambda z: (z.sum(0), z.mean(), torch.complex(z.real, z.imag) == z), (Z,)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_complex_programs_are_native_and_agree(name: str) -> None:
    function, inputs = PROGRAMS[name]
    program = Program(function)
    module = weft.frontend.torch.from_exported(torch.export.export(program, inputs))
    assert [node.name for node in import_report(module).nodes if node.how == "python"] == []
    found, wanted = weft.compile(module)["main"](*inputs), program(*inputs)
    for a, b in zip(*(x if isinstance(x, tuple) else (x,) for x in (found, wanted)), strict=True):
        want = b.resolve_conj().numpy()
        assert (a.dtype, a.shape) == (want.dtype, want.shape)
        np.testing.assert_allclose(a, want, rtol=1e-3, atol=1e-4)


def test_a_tensor_with_the_conjugate_bit_is_taken_with_its_values() -> None:
    @R.function
    def main(x: R.Tensor((3, 8), "complex64")):
        return R.imag(x)

    np.testing.assert_array_equal(weft.compile(main)["main"](Z.conj()), -Z.imag.numpy())
