"""Fourier transforms: every way they are computed, and what is refused."""

from __future__ import annotations

from typing import Any

import ml_dtypes  # noqa: F401  (np.dtype knows bfloat16 after it)
import numpy as np
import pytest

import weft
from weft.errors import DTypeError, ShapeError, TargetError
from weft.ir.interpret import interpret
from weft.ir.op.composite.fourier import is_native


def transform(call: str, annotation: str) -> Any:
    return weft.parse(f"@R.function\ndef main(x: {annotation}):\n    y = {call}\n    return y\n")


@pytest.mark.parametrize("length", [1, 64, 67, 134, 1009])
def test_a_transform_of_any_length_agrees_with_numpy(length: int) -> None:
    module = transform("R.signal.fft(x)", f'R.Tensor((2, {length}, 2), "float32")')
    x = np.random.default_rng(length).normal(size=(2, length, 2)).astype("float32")
    want = np.fft.fft(x[..., 0].astype("float64") + 1j * x[..., 1])
    got = weft.compile(module)["main"](x)
    assert np.abs(got[..., 0] + 1j * got[..., 1] - want).max() <= 2e-6 * np.abs(want).max()


def test_transforms_of_known_lengths_with_small_factors_are_native() -> None:
    lengths = [n for n in range(1, 300) if is_native(n)]
    assert lengths[:127] == list(range(1, 128))
    assert 131 not in lengths
    assert 256 in lengths
    assert not is_native(8192)


def test_the_inverse_gives_the_signal_back() -> None:
    x = np.random.default_rng(0).normal(size=(3, 96)).astype("float32")
    call = "R.signal.irfft(R.signal.rfft(x, norm='ortho'), 96, norm='ortho')"
    got = weft.compile(transform(call, 'R.Tensor((3, 96), "float32")'))["main"](x)
    np.testing.assert_allclose(got, x, atol=2e-6)


def test_the_imaginary_parts_of_no_and_of_the_highest_frequency_are_not_seen() -> None:
    x = np.random.default_rng(0).normal(size=(5, 2)).astype("float32")
    got = weft.compile(transform("R.signal.irfft(x)", 'R.Tensor((5, 2), "float32")'))["main"](x)
    np.testing.assert_allclose(got, np.fft.irfft(x[:, 0] + 1j * x[:, 1]), atol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_short_floats_are_transformed_in_float32(dtype: str) -> None:
    for size in ("100", '"n"'):
        module = transform("R.signal.rfft(x)", f'R.Tensor(({size},), "{dtype}")')
        x = np.random.default_rng(0).normal(size=100).astype(np.dtype(dtype))
        got = weft.compile(module)["main"](x).astype("float32")
        want = np.fft.rfft(x.astype("float64"))
        assert np.abs(got[:, 0] + 1j * got[:, 1] - want).max() <= 0.1


def test_native_transforms_run_without_python_and_others_say_why_not() -> None:
    x = np.random.default_rng(0).normal(size=(2, 96)).astype("float32")
    got = weft.compile(transform("R.signal.rfft(x)", 'R.Tensor((2, 96), "float32")'), executor="graph")["main"](x)
    np.testing.assert_allclose(got[..., 0], np.fft.rfft(x).real, atol=1e-4)
    with pytest.raises(TargetError, match=r"call_py"):
        weft.compile(transform("R.signal.rfft(x)", 'R.Tensor((2, "n"), "float32")'), executor="aot")


@pytest.mark.parametrize(("size", "step"), [(8, 2), (7, 3), (5, 5)])
def test_the_inverse_of_frames_gives_the_signal_back(size: int, step: int) -> None:
    text = """@R.function
def main(x: R.Tensor(("b", "t"), "float32"), w: R.Tensor((SIZE,), "float32")):
    y = R.signal.istft(R.signal.stft(x, w, STEP), w, STEP)
    return y
"""
    main = weft.compile(weft.parse(text.replace("SIZE", str(size)).replace("STEP", str(step))))["main"]
    rng = np.random.default_rng(size)
    for frames in (1, 4, 9):
        x = rng.normal(size=(2, (frames - 1) * step + size)).astype("float32")
        np.testing.assert_allclose(main(x, rng.uniform(0.5, 1, size).astype("float32")), x, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("call", "annotation", "error", "says"),
    [
        ("R.signal.fft(x)", 'R.Tensor((4, 3), "float32")', ShapeError, "1 or 2 of them, not 3"),
        ("R.signal.fft(x, axis=1)", 'R.Tensor((4, 2), "float32")', ShapeError, "along another one"),
        ("R.signal.fft(x, axis=2)", 'R.Tensor((4, 2), "float32")', ShapeError, "axis"),
        ("R.signal.rfft(x, length=0)", 'R.Tensor((4,), "float32")', ShapeError, "a transform of 0 values"),
        ("R.signal.rfft(x, norm='no')", 'R.Tensor((4,), "float32")', ShapeError, "backward, ortho, forward"),
        ("R.signal.rfft(x)", 'R.Tensor((4,), "int32")', DTypeError, "float"),
        ("R.signal.irfft(x)", 'R.Tensor((4, 1), "float32")', ShapeError, "2 of them"),
        ("R.signal.stft(x, x, 0)", 'R.Tensor((4,), "float32")', ShapeError, "at least 1"),
        ("R.signal.stft(x, R.zeros((5,), 'float32'), 1)", 'R.Tensor((4,), "float32")', ShapeError, "no longer"),
        ("R.signal.istft(x, R.ones((4,), 'float32'), 2)", 'R.Tensor((3, 2), "float32")', ShapeError, "frames, bins"),
        ("R.signal.istft(x, R.ones((5,), 'float32'), 2)", 'R.Tensor((3, 2, 2), "float32")', ShapeError, "bins of"),
        ("R.signal.istft(x, R.ones((2,), 'float32'), 0)", 'R.Tensor((3, 2, 2), "float32")', ShapeError, "at least 1"),
        ("R.signal.overlap_add(x, 2)", 'R.Tensor((4,), "float32")', ShapeError, "two dimensions"),
        ("R.signal.overlap_add(x, 2)", 'R.Tensor((0, 4), "float32")', ShapeError, "no frame"),
        ("R.signal.overlap_add(x, 2)", 'R.Tensor((3, 4), "bool")', DTypeError, "numeric"),
        ("R.signal.mel_weight_matrix(4, 8, 8000, 9.0, 3.0)", 'R.Tensor((1,), "bool")', ShapeError, "edges from 9.0"),
        ("R.signal.mel_weight_matrix(0, 8, 8000, 0.0, 3.0)", 'R.Tensor((1,), "bool")', ShapeError, "at least 1"),
    ],
)
def test_what_is_no_transform_is_refused(call: str, annotation: str, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        transform(call, annotation)


@pytest.mark.parametrize("run", [interpret, weft.compile])
def test_no_frame_is_refused_when_the_program_runs(run: Any) -> None:
    main = run(transform("R.signal.overlap_add(x, 3)", 'R.Tensor(("frames", "size"), "float32")'))["main"]
    assert main(np.ones((1, 0), "float32")).shape == (0,)
    with pytest.raises(ShapeError, match="there is no frame"):
        main(np.ones((0, 4), "float32"))
