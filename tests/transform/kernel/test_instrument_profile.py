"""Profiles of loops: a run of any executor says what the loops took that were marked, and computes what it did."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft.errors import TargetError
from weft.ir.module import IRModule
from weft.support.profile import ProfileRow, end, profiled, start
from weft.transform import InstrumentProfile

TEXT = """
@I.ir_module
class Module:
    @T.prim_func
    def scale(x: T.Buffer((3, 4), "float32"), y: T.Buffer((3, 4), "float32")):
        for i in range(3):
            for j in range(4):
                y[i, j] = x[i, j] * 2.0
        for i in range(3):
            y[i, 0] = y[i, 0] + 1.0

    @R.function
    def main(x: R.Tensor((3, 4), "float32")):
        with R.dataflow():
            y = R.call_tir(cls.scale, (x,), out_ty=R.Tensor((3, 4), "float32"))
            z = R.call_tir(cls.scale, (y,), out_ty=R.Tensor((3, 4), "float32"))
            R.output(z)
        return z
"""
COUNTS = {"scale: i": 2, "scale: i/j": 6, "scale: i_1": 2}


def marked() -> IRModule:
    module = weft.parse(TEXT)
    assert isinstance(module, IRModule)
    return InstrumentProfile(max_depth=0)(module)


def expected(x: np.ndarray) -> np.ndarray:
    for _ in range(2):
        x = x * np.float32(2)
        x[:, 0] += np.float32(1)
    return x


def counts(rows: list[ProfileRow]) -> dict[str, int]:
    assert [row.seconds for row in rows] == sorted((row.seconds for row in rows), reverse=True)
    assert min(row.seconds for row in rows) >= 0
    return {row.name: row.count for row in rows if row.kind == "loop" and row.name.startswith("scale")}


@pytest.mark.parametrize("executor", ["interpreter", "native", "vm", "graph"])
def test_a_run_says_what_its_loops_took(executor: str) -> None:
    module = marked()
    functions = weft.interpret(module) if executor == "interpreter" else weft.compile(module, executor=executor)
    run: Any = functions["main"]
    x = np.arange(12, dtype="float32").reshape(3, 4)
    np.testing.assert_array_equal(run(x), expected(x))
    assert counts(run.profile(x)) == COUNTS
    np.testing.assert_array_equal(run(x), expected(x))


def test_kernels_say_it_too() -> None:
    module = marked()
    x, y = np.ones((3, 4), "float32"), np.zeros((3, 4), "float32")
    for functions in (weft.interpret(module), weft.compile(module)):
        run: Any = functions["scale"]
        assert counts(run.profile(x, y)) == {"scale: i": 1, "scale: i/j": 3, "scale: i_1": 1}


def test_loops_as_they_run_are_marked_after_the_schedule() -> None:
    module = weft.parse(TEXT)
    run = weft.compile(module, pipeline="legalize,fuse,schedule,instrument-profile")["main"]
    x = np.ones((3, 4), "float32")
    np.testing.assert_array_equal(run(x), expected(x))
    assert len(run.profile(x)) >= 2


def test_a_loop_that_is_left_otherwise_ends_with_the_one_around() -> None:
    rows = profiled(lambda: (start(1, "outer"), start(2, "inner"), end(1), end(7)))
    assert {row.name: row.count for row in rows} == {"outer": 1, "inner": 1}
    start(3, "unheard")
    end(3)
    assert profiled(lambda: (start(4), end(4)))[0].name == "loop 4"


def test_the_text_is_one_that_tvm_reads() -> None:
    text = marked().script(spelling="tvm-0.27")
    assert 'T.call_intrin("void", "tirx.start_profile_intrinsic", 1, "scale: i")' in text
    weft.assert_structural_equal(weft.parse(text), marked())


USER = """
#include <stdint.h>
int32_t started[9], ended[9];
const char *last;
void weft_profile_start(int32_t number, const char *name) { started[number]++; last = name; }
void weft_profile_end(int32_t number) { ended[number]++; }
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_c_calls_two_functions_of_the_user(tmp_path: Path) -> None:
    tree = weft.compile(marked(), target="c").export(tmp_path / "tree")
    header = next(tree.rglob("model.h"))
    assert "void weft_profile_start(int32_t number, const char *name);" in header.read_text()
    assert "void weft_profile_end(int32_t number);" in header.read_text()
    (tmp_path / "user.c").write_text(USER)
    command = ["cc", "-std=c99", "-Wall", "-Werror", "-shared", "-fPIC", "-I", header.parent, tmp_path / "user.c"]
    sources = [path for path in tree.rglob("model*.c")]
    subprocess.run([*command, *sources, "-lm", "-o", tmp_path / "model.so"], check=True)
    library = ctypes.CDLL(str(tmp_path / "model.so"))
    x, y, space = np.ones((3, 4), "float32"), np.zeros((3, 4), "float32"), np.zeros(4096, "uint8")
    place = space.ctypes.data + -space.ctypes.data % 16
    blocks = [(ctypes.c_void_p * 1)(item) for item in (x.ctypes.data, y.ctypes.data, place, None)]
    assert library.model_run(*blocks) == 0
    np.testing.assert_array_equal(y, expected(x))
    number = ctypes.c_int32 * 9
    assert list(number.in_dll(library, "started")) == list(number.in_dll(library, "ended")) == [0, 2, 6, 2, *[0] * 5]
    assert ctypes.c_char_p.in_dll(library, "last").value == b"scale: i_1"


def test_a_library_of_machine_code_has_nobody_to_tell() -> None:
    with pytest.raises(TargetError, match=r"W742.*weft\.start_profile"):
        weft.compile(marked(), executor="aot")
