"""Foreign code: a text reaches it only by names that were declared beside it, and with the types that were declared."""

from __future__ import annotations

import ctypes
import math
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from weft.errors import TargetError, WeftError
from weft.ir import IRModule
from weft.ir.kernel.externs import declare_extern, remove_extern
from weft.target.kinds import remove_target_kind

EXECUTORS = ("native", "vm", "graph", "aot")


def kernel(call: str, dtype: str = "float32") -> IRModule:
    function = weft.parse(f"""
@T.prim_func
def f(x: T.Buffer((4,), "{dtype}"), y: T.Buffer((4,), "{dtype}")):
    for i in range(4):
        y[i] = {call}
""")
    return IRModule({"f": function})  # pyright: ignore[reportArgumentType]


def calling(name: str) -> IRModule:
    function = weft.parse(f"""
@R.function
def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
    return R.call_dps_packed({name!r}, (x,), out_ty=R.Tensor((4,), "float32"))
""")
    return IRModule({"main": function})  # pyright: ignore[reportArgumentType]


def process_symbols() -> list[str]:
    """Names of C functions that every process has, dangerous ones among them."""
    names = "system exit abort memcpy free malloc kill fork execve popen mprotect dlopen longjmp raise puts Py_Exit"
    return [name for name in names.split() if hasattr(ctypes.CDLL(None), name)]


@given(
    name=st.sampled_from([*process_symbols(), "weft.print", "no such", "a\0b", 'x"()\n ret void', "nowhere"]),
    how=st.sampled_from(["call_extern", "call_pure_extern"]),
    target=st.sampled_from(["llvm", "c"]),
)
def test_an_undeclared_name_is_read_printed_verified_and_not_compiled(name: str, how: str, target: str) -> None:
    module = kernel(f'T.{how}("float32", {name!r}, x[i])')
    assert weft.verify(module) == []
    assert weft.structural_equal(weft.parse(module.script()), module)
    with pytest.raises(TargetError, match="which nobody declared") as caught:
        weft.compile(module, target)
    assert caught.value.code == "W760"
    assert caught.value.span is not None
    assert "--allow-extern" in (caught.value.hint or "")


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_name_that_only_the_process_has_is_never_called_from_a_graph_function(executor: str) -> None:
    with pytest.raises(WeftError, match="'abort'") as caught:
        weft.compile(calling("abort"), executor=executor)["main"](np.zeros(4, "float32"))
    assert caught.value.code == ("W760" if executor == "aot" else "W861")


def test_c_takes_outside_functions_that_are_declared() -> None:
    with pytest.raises(TargetError, match="which nobody declared"):
        weft.compile(calling("board_blink"), "c")
    made = weft.compile(calling("board_blink"), "c", externs=("board_blink",))
    assert any(b"board_blink(" in item.data for item in made.values())


@pytest.mark.parametrize(
    ("name", "value"), [("llvm.trap", 0), ("llvm.debugtrap", 0), ("llvm.sqrt.f32(float 1.0)\n call void @abort()", 0)]
)
def test_an_intrinsic_that_is_no_mathematics_is_refused(name: str, value: int) -> None:
    with pytest.raises(TargetError, match="which nobody declared"):
        weft.compile(kernel(f'T.call_llvm_intrin("float32", {name!r}, x[i])'))


def test_mathematics_is_declared() -> None:
    x, y, z = np.linspace(0.1, 2, 4, dtype="float32"), np.zeros(4, "float32"), np.zeros(4, "float32")
    weft.compile(kernel('T.call_pure_extern("float32", "cbrtf", x[i])'))["f"](x, y)
    weft.compile(kernel('T.call_llvm_pure_intrin("float32", "llvm.sqrt", x[i])'))["f"](x, z)
    np.testing.assert_allclose(y, np.cbrt(x), rtol=1e-6)
    np.testing.assert_allclose(z, np.sqrt(x), rtol=1e-6)


@pytest.mark.parametrize(
    "call", ['"float32", "sqrt", x[i]', '"float64", "sqrtf", x[i]', '"float32", "sqrtf"', '"float32", "sqrtf", x.data']
)
@pytest.mark.parametrize("target", ["llvm", "c"])
def test_declared_types_are_held(call: str, target: str) -> None:
    dtype = "float64" if call.startswith('"float64') else "float32"
    with pytest.raises(TargetError, match=r"expected sqrtf?\(float") as caught:
        weft.compile(kernel(f"T.call_pure_extern({call})", dtype), target)
    assert caught.value.code == "W761"


def test_the_caller_names_what_else_may_be_called() -> None:
    module = kernel('T.call_extern("int32", "abs", x[i])', "int32")
    x, y = np.array([-3, 1, 0, -7], "int32"), np.zeros(4, "int32")
    weft.compile(module, externs=["abs"])["f"](x, y)
    np.testing.assert_array_equal(y, abs(x))
    module(x, y, externs=["abs"])
    with pytest.raises(TargetError, match="no C function 'weft_nowhere'") as caught:
        weft.compile(kernel('T.call_extern("float32", "weft_nowhere", x[i])'), externs=["weft_nowhere"])
    assert caught.value.code == "W762"
    with pytest.raises(WeftError, match="externs are names"):
        weft.compile(module, externs="abs")


def test_a_plug_in_declares_a_function_with_its_types() -> None:
    declare_extern("labs", "int64", "int64")
    try:
        module = kernel('T.call_extern("int64", "labs", x[i])', "int64")
        x, y = np.array([-3, 1, 0, -7]), np.zeros(4, "int64")
        weft.compile(module)["f"](x, y)
        np.testing.assert_array_equal(y, abs(x))
        with pytest.raises(TargetError, match=r"expected labs\(int64\) -> int64, got labs\(int32\) -> int32"):
            weft.compile(kernel('T.call_extern("int32", "labs", x[i])', "int32"))
        with pytest.raises(TargetError, match="declared already"):
            declare_extern("labs", "int32", "int32")
    finally:
        remove_extern("labs")
    with pytest.raises(TargetError, match="C name"):
        declare_extern("not a name", "int32")


def test_a_kind_declares_functions_for_programs_that_it_takes_part_in() -> None:
    kind = weft.target_kind("extern-kind")
    try:
        kind.extern("labs", "int64", "int64")
        module = kernel('T.call_extern("int64", "labs", x[i])', "int64")
        x, y = np.array([-3, 1, 0, -7]), np.zeros(4, "int64")
        weft.compile(module, "host: llvm; other: extern-kind")["f"](x, y)
        np.testing.assert_array_equal(y, abs(x))
        with pytest.raises(TargetError, match="which nobody declared"):
            weft.compile(module, "llvm")
    finally:
        remove_target_kind("extern-kind")


def test_a_registered_function_is_a_declaration_and_wins_over_a_c_function() -> None:
    weft.register_func("tanf", lambda value: math.floor(value))
    try:
        module = kernel('T.call_extern("float32", "tanf", x[i])')
        x, y, z = np.linspace(0, 5, 4, dtype="float32"), np.zeros(4, "float32"), np.zeros(4, "float32")
        weft.compile(module)["f"](x, y)
        weft.interpret(module)["f"](x, z)
        np.testing.assert_array_equal(y, np.floor(x))
        np.testing.assert_array_equal(z, np.floor(x))
    finally:
        weft.runtime.registry.unregister_func("tanf")


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a C compiler to make a library")
@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_library_that_the_process_has_loaded_is_called(executor: str, tmp_path: Path) -> None:
    """D14: neither of C's own library nor of LLVM, which makes code of `labs`."""
    name = f"twice_of_a_library_{executor}"
    source, library = tmp_path / "library.c", tmp_path / "library.so"
    source.write_text(f"float {name}(float x) {{ return x + x; }}\n")
    subprocess.run(["gcc", "-shared", "-fPIC", source, "-o", library], check=True)
    module = weft.parse(f"""
@I.ir_module
class M:
    @T.prim_func(private=True)
    def f(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
        for i in range(4):
            y[i] = T.call_pure_extern("float32", "{name}", x[i])
    @R.function
    def main(x: R.Tensor((4,), "float32")):
        return R.call_tir(cls.f, (x,), out_ty=R.Tensor((4,), "float32"))
""")
    assert isinstance(module, IRModule)
    with pytest.raises(WeftError, match=name) as caught:
        weft.compile(module, executor=executor, externs=(name,))
    assert "ctypes.RTLD_GLOBAL" in (caught.value.hint or "")
    ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)
    executable = weft.compile(module, executor=executor, externs=(name,))
    np.testing.assert_array_equal(executable["main"](np.arange(4, dtype="float32")), [0, 2, 4, 6])
