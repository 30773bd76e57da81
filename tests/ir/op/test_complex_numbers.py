"""Operators on complex numbers: interpreter and machine code against NumPy, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from weft.ir import dim
from weft.ir.builder import BlockBuilder
from weft.ir.deduction.infer import infer_type
from weft.ir.graph import Var
from weft.ir.op import get_op
from weft.ir.op.common import typed
from weft.ir.types import TensorType
from weft.script import relax as R

DTYPES = ("complex64", "complex128")
TOLERANCE = {"complex64": 2e-4, "complex128": 1e-10, "float32": 2e-4, "float64": 1e-10, "bool": 0}


def random(shape: tuple[int, ...], dtype: str, rng: np.random.Generator) -> np.ndarray:
    values = rng.normal(size=shape)
    return (values + 1j * rng.normal(size=shape) if dtype.startswith("complex") else values).astype(dtype)


def module_of(make: Callable[..., Any], *arrays: np.ndarray, symbolic: bool = False) -> weft.IRModule:
    """A program of an expression over the arrays."""
    names: dict[tuple[int, int], Any] = {}
    params = []
    for place, array in enumerate(arrays):
        sizes = [names.setdefault((size, 0), dim.symbol(f"s{size}")) if symbolic else size for size in array.shape]
        params.append(Var(f"x{place}", TensorType(tuple(sizes), str(array.dtype))))
    builder = BlockBuilder()
    with builder.function("main", params):
        builder.emit_func_output(builder.emit(make(*params)))
    return builder.get()


def agree(make: Callable[..., Any], numpy: Callable[..., Any], *arrays: np.ndarray, symbolic: bool = False) -> None:
    """An expression over the arrays, interpreted and compiled, against NumPy."""
    module = module_of(make, *arrays, symbolic=symbolic)
    want = np.asarray(numpy(*arrays))
    for run in (weft.interpret(module)["main"], weft.compile(module)["main"]):
        got = run(*arrays)
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        np.testing.assert_allclose(got, want, TOLERANCE[str(want.dtype)], TOLERANCE[str(want.dtype)])


ELEMENTWISE: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "add": (R.add, np.add),
    "subtract": (R.subtract, np.subtract),
    "multiply": (R.multiply, np.multiply),
    "divide": (R.divide, np.divide),
    "equal": (R.equal, np.equal),
    "matmul": (lambda x, y: R.matmul(x, R.permute_dims(y)), lambda x, y: x @ y.T),
    "einsum": (lambda x, y: R.einsum([x, y], subscripts="ij,ij->i"), lambda x, y: np.einsum("ij,ij->i", x, y)),
    "exp of a product": (lambda x, y: R.exp(R.multiply(x, y)), lambda x, y: np.exp(x * y)),
    "log, sqrt": (lambda x, y: R.log(R.sqrt(R.add(x, y))), lambda x, y: np.log(np.sqrt(x + y))),
    "tanh": (lambda x, y: R.tanh(R.add(x, y)), lambda x, y: np.tanh(x + y)),
    "a length": (lambda x, y: R.abs(R.subtract(x, R.conj(y))), lambda x, y: np.abs(x - np.conj(y))),
    "angle": (lambda x, y: R.angle(R.multiply(x, y)), lambda x, y: np.angle(x * y)),
    "parts": (lambda x, y: R.complex(R.imag(x), R.real(y)), lambda x, y: x.imag + 1j * y.real),
    "a cube": (lambda x, y: R.power(R.add(x, y), 3), lambda x, y: (x + y) ** 3),
    "a choice": (lambda x, y: R.where(R.equal(x, y), x, y), lambda x, y: np.where(x == y, x, y)),
    "a sum": (lambda x, y: R.sum(R.multiply(x, y), axis=0), lambda x, y: (x * y).sum(0)),
    "a mean": (lambda x, y: R.mean(R.add(x, y), axis=1), lambda x, y: (x + y).mean(1)),
    "a variance": (lambda x, y: R.variance(R.multiply(x, y), axis=1), lambda x, y: (x * y).var(1)),
    "a deviation": (
        lambda x, y: R.std(R.multiply(x, y), axis=[1], keepdims=True),
        lambda x, y: (x * y).std(1, keepdims=True),
    ),
    "a product": (lambda x, y: R.prod(R.multiply(x, y), axis=1), lambda x, y: (x * y).prod(1)),
    "joined": (lambda x, y: R.concat([x, y], axis=1), lambda x, y: np.concatenate([x, y], 1)),
    "transposed": (lambda x, y: R.add(R.permute_dims(x), R.permute_dims(y)), lambda x, y: x.T + y.T),
    "padded": (lambda x, y: R.nn.pad(R.add(x, y), [1, 0, 0, 2]), lambda x, y: np.pad(x + y, ((1, 0), (0, 2)))),
    "flipped": (lambda x, y: R.flip(R.negative(x), axis=1), lambda x, y: -x[:, ::-1]),
    "views": (lambda x, y: R.view_as_complex(R.negative(R.view_as_real(x))), lambda x, y: -x),
}


@pytest.mark.parametrize("name", ELEMENTWISE)
@settings(max_examples=4, deadline=None, derandomize=True)
@given(rows=st.integers(0, 5), columns=st.integers(1, 7), dtype=st.sampled_from(DTYPES), symbolic=st.booleans())
def test_operators_agree_with_numpy(name: str, rows: int, columns: int, dtype: str, symbolic: bool) -> None:
    rng = np.random.default_rng(rows * 8 + columns)
    make, numpy = ELEMENTWISE[name]
    agree(make, numpy, random((rows, columns), dtype, rng), random((rows, columns), dtype, rng), symbolic=symbolic)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "exp2": lambda z: np.exp(z * float(np.log(2))),
    "expm1": np.expm1,
    "log10": np.log10,
    "log1p": lambda z: np.log1p(z.astype("complex128")).astype(z.dtype),
    "log2": np.log2,
    "rsqrt": lambda z: 1 / np.sqrt(z),
    "sigmoid": lambda z: 1 / (1 + np.exp(-z)),
    "sinc": np.sinc,
    "sqrt": np.sqrt,
}
SIGNED = (0.0, -0.0)
CUTS = [complex(real, imag) for real in (-3, -1.5, -0.5, 0.5, 1.5, 3) for imag in SIGNED]
"""Both sides of the axes, on which the inverse functions jump."""


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_functions_have_the_branch_cuts_of_numpy(name: str, dtype: str) -> None:
    near = random((12,), "complex128", np.random.default_rng(5))
    turned = [complex(imag, real) for real, imag in ((z.real, z.imag) for z in CUTS)]
    numbers = np.concatenate([near, near * 4, near * 1e-3, CUTS, turned]).astype(dtype)
    agree(getattr(R, name), FUNCTIONS[name], numbers)


@pytest.mark.parametrize("name", ["log1p", "expm1"])
def test_small_numbers_keep_their_digits(name: str) -> None:
    """Held against series: NumPy's log1p of complex numbers rounds 1 + z."""
    z = np.array([1e-5 + 2e-5j, -3e-6 + 1e-6j, 2e-7j], "complex64")
    exact = z.astype("complex128")
    square = exact**2 / (2 if name == "expm1" else -2)
    got = weft.compile(module_of(getattr(R, name), z))["main"](z)
    np.testing.assert_allclose(got, exact + square, rtol=1e-6)


def hermitian(x: np.ndarray) -> np.ndarray:
    """A positive definite matrix."""
    return (x @ x.conj().T + np.eye(len(x))).astype(x.dtype)


MATRICES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "cholesky": (lambda x: R.linalg.cholesky(x, True), lambda x: np.linalg.cholesky(x).conj().T),
    "inv": (R.linalg.inv, np.linalg.inv),
    "det": (R.linalg.det, np.linalg.det),
    "sign of det": (lambda x: R.linalg.slogdet(R.multiply(x, x))[0], lambda x: np.linalg.slogdet(x * x)[0]),
    "singular values": (lambda x: R.linalg.svd(x)[1], lambda x: np.linalg.svd(x)[1]),
    "eigenvalues": (lambda x: R.linalg.eigh(x)[0], lambda x: np.linalg.eigh(x)[0]),
    "pinv": (R.linalg.pinv, np.linalg.pinv),
    "norm": (R.linalg.vector_norm, lambda x: np.asarray(np.linalg.norm(x.ravel()))),
    "nuclear norm": (lambda x: R.linalg.matrix_norm(x, "nuc"), lambda x: np.linalg.norm(x, "nuc")),
}


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("rows", [3, 66])
def test_matrices_are_those_of_numpy(name: str, rows: int) -> None:
    """Kernels of small ones, LAPACK of large ones."""
    make, numpy = MATRICES[name]
    small = random((rows, rows), "complex128", np.random.default_rng(7)) / rows
    agree(make, numpy, hermitian(small))


def test_products_of_batches_and_vectors() -> None:
    rng = np.random.default_rng(1)
    a, b, v = (random(shape, "complex64", rng) for shape in ((2, 1, 3, 4), (5, 4, 2), (4,)))
    for x, y in ((a, b), (v, b), (a, v), (v, v)):
        agree(R.matmul, np.matmul, x, y)


@pytest.mark.parametrize("executor", ["native", "vm", "graph", "aot"])
def test_every_executor_takes_and_gives_complex_arrays(executor: str) -> None:
    @R.function
    def main(x: R.Tensor((3, 4), "complex64")):
        return R.matmul(x, R.const([[1j], [2], [3 - 1j], [0.5]], "complex64"))

    x = random((3, 4), "complex64", np.random.default_rng(2))
    got = weft.compile(main, executor=executor)["main"](x)
    np.testing.assert_allclose(got, x @ np.array([[1j], [2], [3 - 1j], [0.5]]), rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "args"),
    [("sort", ()), ("max", ()), ("argmax", ()), ("floor", ()), ("sign", ()), ("clip", (0, 1)), ("median", ())],
)
def test_what_needs_an_order_is_refused_and_says_why(name: str, args: tuple[Any, ...]) -> None:
    x = Var("x", typed("complex64", "n"))
    with pytest.raises(weft.DTypeError, match="got complex64") as caught:
        infer_type(get_op(name).bind((x, *args), {}))
    assert caught.value.code == "W321"
    assert "no order" in str(caught.value.hint)


def test_an_imaginary_part_is_not_dropped() -> None:
    x = Var("x", typed("complex64", "n"))
    for call in (R.astype(x, "float32"), R.less(x, x), R.full((2,), 1j, "float32")):
        with pytest.raises(weft.DTypeError, match="complex64"):
            infer_type(call)
    assert infer_type(R.astype(x, "bool")).dtype == "bool"  # type: ignore[union-attr]


TRANSFORMS = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")


@pytest.mark.parametrize("name", TRANSFORMS)
@settings(max_examples=6, deadline=None, derandomize=True)
@given(
    length=st.sampled_from([2, 3, 8, 60, 131, 202]),
    taken=st.sampled_from([None, 4, 9]),
    norm=st.sampled_from(["backward", "ortho", "forward"]),
    axis=st.sampled_from([0, 1, -1]),
    symbolic=st.booleans(),
)
def test_transforms_agree_with_numpy(
    name: str, length: int, taken: int | None, norm: str, axis: int, symbolic: bool
) -> None:
    """Lengths that are products of matrices, and those that are pocketfft's (of large prime factors, or symbols)."""
    dtype = "float32" if name in ("rfft", "ihfft") else "complex64"
    x = random((length, 3) if axis == 0 else (3, length), dtype, np.random.default_rng(length))

    def numpy(x: np.ndarray) -> Any:
        found = getattr(np.fft, name)(x, taken, axis, norm)
        return found.astype("complex64" if np.iscomplexobj(found) else "float32")

    agree(lambda x: getattr(R.fft, name)(x, taken, axis, norm), numpy, x, symbolic=symbolic)


def test_transforms_along_several_axes_and_back() -> None:
    x = random((4, 6, 5), "complex64", np.random.default_rng(3))
    agree(
        lambda x: R.fft.ifftn(R.fft.fftshift(R.fft.fftn(x))), lambda x: np.fft.ifftn(np.fft.fftshift(np.fft.fftn(x))), x
    )
    agree(lambda x: R.fft.rfft2(R.real(x)), lambda x: np.fft.rfft2(x.real), x)


def test_short_types_have_no_transform() -> None:
    with pytest.raises(weft.DTypeError, match="float16") as caught:
        infer_type(R.fft.fft(Var("x", typed("float16", 8))))
    assert caught.value.code == "W321"
