"""Objects become images that run without a linker; what an image cannot hold goes to that of LLVM."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from weft.errors import ArtifactError
from weft.runtime.device.host import host
from weft.runtime.device.image import Absent, Mapped, can_run, linked
from weft.runtime.device.linker import Library, machine_code

pytestmark = pytest.mark.skipif(not can_run(), reason="images are for x86-64 and ELF")

USER = """
@table = internal constant [3 x i64] [i64 5, i64 7, i64 11]
@where = internal global ptr getelementptr ([3 x i64], ptr @table, i64 0, i64 1)
@shared = external global i64
@calls = internal global i64 0, align 64
declare i64 @other(i64)
declare ptr @memcpy(ptr, ptr, i64)
define i64 @user(i64 %x, ptr %to) nounwind {
  %place = load volatile ptr, ptr @where
  %seven = load i64, ptr %place
  store ptr getelementptr ([3 x i64], ptr @table, i64 0, i64 2), ptr @where
  %old = load i64, ptr @calls
  %new = add i64 %old, 1
  store i64 %new, ptr @calls
  %copied = call ptr @memcpy(ptr %to, ptr @table, i64 24)
  %got = load i64, ptr @shared
  %y = call i64 @other(i64 %x)
  %a = add i64 %y, %seven
  %b = add i64 %a, %got
  ret i64 %b
}
"""
OTHER = """
@shared = global i64 1000
@function = internal global ptr @other
define i64 @other(i64 %x) nounwind {
  %y = mul i64 %x, 3
  ret i64 %y
}
define ptr @address() nounwind {
  %f = load volatile ptr, ptr @function
  ret ptr %f
}
"""


def image_of(*texts: str, exports: tuple[str, ...]) -> Mapped:
    image = linked(list(map(machine_code, texts)), exports)
    assert image is not None
    return Mapped(image, {})


def test_code_reaches_constants_data_other_objects_and_the_process() -> None:
    mapped = image_of(USER, OTHER, exports=("user", "address", "other"))
    user = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)(mapped.addresses["user"])
    to = np.zeros(3, np.int64)
    assert user(2, to.ctypes.data) == 6 + 7 + 1000
    assert user(2, to.ctypes.data) == 6 + 11 + 1000  # what it wrote before
    assert to.tolist() == [5, 7, 11]
    address = ctypes.CFUNCTYPE(ctypes.c_int64)(mapped.addresses["address"])
    assert address() == mapped.addresses["other"]


def test_each_library_has_data_of_its_own() -> None:
    text = (
        "@n = internal global i64 0\ndefine i64 @next() { %o = load i64, ptr @n\n %x = add i64 %o, 1\n"
        "store i64 %x, ptr @n\n ret i64 %x }"
    )
    first, second = (image_of(text, exports=("next",)) for _ in range(2))
    count, other = (ctypes.CFUNCTYPE(ctypes.c_int64)(each.addresses["next"]) for each in (first, second))
    assert [count(), count(), other(), count()] == [1, 2, 1, 3]


def test_code_cannot_be_written_and_its_memory_is_given_back() -> None:
    mapped = image_of(OTHER, exports=("other",))
    place = mapped.addresses["other"]

    def permissions() -> str:
        for line in Path("/proc/self/maps").read_text().splitlines():
            start, _, end = line.split()[0].partition("-")
            if int(start, 16) <= place < int(end, 16):
                return line.split()[1]
        return ""

    if not os.path.exists("/proc/self/maps"):
        pytest.skip("the system does not show what is mapped")
    assert permissions() == "r-xp"
    del mapped
    gc.collect()
    assert permissions() != "r-xp"


def test_names_that_nobody_has_are_listed() -> None:
    names = ("weft_absent_b", "weft_absent_a")
    declared, called = ("\n".join(f"{what} void @{name}()" for name in names) for what in ("declare", "call"))
    image = linked([machine_code(f"{declared}\ndefine void @f() {{\n{called}\nret void }}")], ["f"])
    assert image is not None
    with pytest.raises(Absent) as caught:
        Mapped(image, {})
    assert caught.value.names == ["weft_absent_a", "weft_absent_b"]


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param(["@t = thread_local global i64 3\ndefine ptr @f() { ret ptr @t }"], id="thread-local"),
        pytest.param(["define i64 @f() { ret i64 1 }", "define i64 @f() { ret i64 2 }"], id="twice"),
        pytest.param(["define i64 @g() { ret i64 1 }"], id="lacking"),
    ],
)
def test_what_an_image_cannot_hold_is_left_to_the_linker_of_llvm(texts: list[str]) -> None:
    assert linked(list(map(machine_code, texts)), ["f"]) is None


def test_damaged_and_foreign_objects_are_no_images() -> None:
    code = machine_code(OTHER)
    assert linked([code], ["other"]) is not None
    assert linked([code[: len(code) // 2]], ["other"]) is None
    assert linked([b"\xcf\xfa\xed\xfe" + code[4:]], ["other"]) is None
    with pytest.raises(ArtifactError, match="does not link") as caught:
        Library([code, code], ["other"])
    assert caught.value.code == "W805"


COMPILE = """
import sys
import numpy as np
import weft
from weft.runtime.device.host import host
from weft.script import relax as R

@R.function
def main(x: R.Tensor(("n", 8), "float32")):
    return R.nn.softmax(R.matmul(x, R.permute_dims(x)))

x = np.ones((3, 8), "float32")
result = weft.compile(main)["main"](x)
print(float(abs(result - 1 / 3).max()) < 1e-6, "llvmlite.binding" in sys.modules, host().cpu)
"""


def test_a_program_from_the_disk_runs_without_llvm(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(COMPILE)
    environment = {**os.environ, "WEFT_CACHE_DIR": str(tmp_path / "cache"), "WEFT_CHECK": "0"}
    command = [sys.executable, str(file)]
    for loads_llvm in (True, False):
        ran = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert (ran.stdout, ran.stderr) == (f"True {loads_llvm} {host().cpu}\n", "")
