"""Floats of 16 bits and less in C: the conversions bit by bit, and kernels against the interpreter."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from tests.codegen.backends.c.test_c import STRICT, generate, lowered, parsed, run

import weft
from weft.codegen.backends.c.short_floats import narrowing, widening
from weft.dtypes import SCALARS, array_dtype, bits, stored
from weft.support.small_floats import encode

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a C compiler")
SHORT = {name: array_dtype(name) for name, row in SCALARS.items() if row.layout and row.bits <= 16}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """Every conversion over arrays."""
    lines = ["#include <stdint.h>", "#include <string.h>"]
    for short in SHORT:
        own = SCALARS[short].c
        pairs = [(*widening(short), own, "float")]
        pairs += [(*narrowing(f"float{w}", short), kind, own) for w, kind in ((32, "float"), (64, "double"))]
        for name, text, source, target in pairs:
            loop = f"for (int64_t i = 0; i < n; ++i) y[i] = {name}(x[i]);"
            lines += [text, f"void all_{name}(const {source} *x, {target} *y, int64_t n) {{ {loop} }}"]
    folder = tmp_path_factory.mktemp("short")
    (folder / "all.c").write_text("\n".join(lines))
    options = [*STRICT, "-fsanitize=undefined", "-fno-sanitize-recover=all", "-shared", "-fPIC"]
    subprocess.run(["gcc", *options, folder / "all.c", "-o", folder / "all.so"], check=True)
    return ctypes.CDLL(str(folder / "all.so"))


def converted(library: ctypes.CDLL, name: str, values: np.ndarray, target: str) -> np.ndarray:
    """What a conversion in C gives."""
    result = np.zeros(values.shape, target)
    places = (ctypes.c_void_p(array.ctypes.data) for array in (values, result))
    getattr(library, f"all_{name}")(*places, ctypes.c_int64(values.size))
    return result


def every(short: str) -> np.ndarray:
    """Every value of a type."""
    return np.arange(1 << bits(short), dtype=f"uint{8 * SHORT[short].itemsize}").view(SHORT[short])


@pytest.mark.parametrize("short", SHORT)
def test_every_short_float_widens_to_the_same_float(library: ctypes.CDLL, short: str) -> None:
    expected = every(short).astype("float32")
    got = converted(library, f"weft_float32_from_{short}", every(short), "float32")
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    real = ~np.isnan(expected)
    np.testing.assert_array_equal(got.view("uint32")[real], expected.view("uint32")[real])


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("short", SHORT)
def test_floats_round_once_to_the_nearest_short_float(library: ctypes.CDLL, short: str, width: int) -> None:
    """All short floats, what lies halfway between two, the neighbours of both, and any bits at all."""
    with np.errstate(all="ignore"):
        near = every(short).astype(f"float{width}")
        middle = (near[:-1] + near[1:]) / 2
        exact = np.concatenate([near, middle])
        random = np.random.default_rng(0).integers(0, 2**width, 200_000, dtype=f"uint{width}").view(exact.dtype)
        values = np.concatenate([exact, np.nextafter(exact, np.inf), np.nextafter(exact, -np.inf), random])
        values = values.astype(f"float{width}")
        expected = values.astype("float16") if short == "float16" else encode(values, short).view(SHORT[short])
    got = converted(library, f"weft_{short}_from_float{width}", values, SHORT[short])
    nan = np.isnan(values) if short == "float16" else np.zeros(values.shape, bool)  # NumPy keeps a nan's first bits
    assert np.isnan(got[nan]).all()
    own = f"uint{8 * got.itemsize}"
    np.testing.assert_array_equal(got.view(own)[~nan], expected.view(own)[~nan])


@pytest.mark.parametrize("short", ["float16", "bfloat16"])
def test_the_bits_of_a_short_float_can_be_read(short: str) -> None:
    text = f'x: T.Buffer((4,), "{short}"), y: T.Buffer((4,), "uint16")'
    body = 'for i in range(4):\n            y[i] = T.reinterpret("uint16", x[i])'
    module = parsed(f"@I.ir_module\nclass M:\n    @T.prim_func\n    def main({text}):\n        {body}\n")
    made = weft.compile(module, "c")
    written = "".join(artifact.data.decode() for artifact in made.values() if artifact.name.endswith(".c"))
    assert f"y[i] = weft_uint16_bits_of_{short}(x[i]);" in written


@pytest.mark.parametrize("short", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz"])
def test_kernels_of_short_floats_compute_what_the_interpreter_says(short: str, tmp_path: Path) -> None:
    body = (
        f'a = R.add(x, R.const([1.5, -2, 0.1, 70000], "{short}"))\n        b = R.multiply(R.exp(a), R.maximum(x, a))\n'
        '        c = R.astype(b, "float64")\n        d = R.astype(R.astype(c, "int32"), '
        f'"{short}")\n        y = R.where(R.greater(x, d), R.negative(R.abs(b)), d)'
    )
    head = f'@I.ir_module\nclass M:\n    @R.function\n    def main(x: R.Tensor((4,), "{short}")):\n'
    module = parsed(f"{head}        {body}\n        return y\n")
    x = np.array([0.3, 4, -1e-3, 2], "float32").astype(SHORT[short])
    expected = weft.interpret(module)["main"](x)
    got = np.zeros(4, SCALARS[short].c.removesuffix("_t"))
    assert run(generate(lowered(module), model="model"), "model", [stored(x, short)], [got], tmp_path) == 0
    np.testing.assert_array_equal(got, np.asarray(expected).astype(SHORT[short]).view(got.dtype))
