# pyright: reportInvalidTypeForm=false, reportRedeclaration=false, reportAttributeAccessIssue=false
# ruff: noqa: E501  (scripts inside strings and inside decorated functions)
"""The decorators: where sources are found, what scripts may capture, and what an uncaught error looks like."""

from __future__ import annotations

import linecache
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
import pytest

import weft
from weft.ir import Function, IRModule, PrimFunc
from weft.ir.dim import symbol
from weft.script import ir as I
from weft.script import parse, script_of, tirx
from weft.script import relax as R
from weft.script import tir as T

SIZE = 4
SHAPE = (2, SIZE)
WEIGHT = np.arange(8, dtype="float32").reshape(2, 4)
symbol_m = symbol("m")
k = TypeVar("k")
rows = T.int32()


@T.prim_func
def twice(x: T.Buffer((2, SIZE), "float32"), y: T.Buffer((2, SIZE), "float32")):
    for i, j in T.grid(2, SIZE):
        with T.block("twice"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = x[vi, vj] * 2.0


def text_of(function: Any) -> str:
    return script_of(function)


def test_a_module_captures_globals_arrays_and_functions() -> None:
    @I.ir_module
    class Model:
        @R.function
        def main(x: R.Tensor(SHAPE, "float32")) -> R.Tensor((2, SIZE), "float32"):
            y = x + R.const(WEIGHT)
            z = R.call_tir(twice, (y,), out_ty=R.Tensor(SHAPE, "float32"))
            return z

    assert isinstance(Model, IRModule)
    assert set(Model) == {"main", "twice"}
    assert "R.const([[0.0, 1.0, 2.0, 3.0]" in text_of(Model)
    weft.assert_structural_equal(parse(text_of(Model)), Model)


def make(width: int, scale: float, dtype: str) -> Function:
    @R.function
    def scaled(x: R.Tensor(("n", width), dtype)):
        return x * scale

    return scaled  # type: ignore[return-value]


def test_closures_are_captured() -> None:
    assert 'R.Tensor(("n", 3), "float16")' in text_of(make(3, 0.5, "float16"))
    assert "R.const(0.25" in text_of(make(5, 0.25, "float32"))


def test_functions_of_one_name_are_told_apart_by_their_lines() -> None:
    @R.function
    def f(x: R.Tensor((1,), "float32")):
        return x

    first = f

    @R.function
    def f(x: R.Tensor((2,), "float32")):
        return x

    assert "(1,)" in text_of(first)
    assert "(2,)" in text_of(f)


@pytest.mark.parametrize("width", [1, 2])
def test_classes_of_one_name_are_told_apart_by_their_lines(width: int) -> None:
    if width == 1:

        @I.ir_module
        class M:
            @R.function
            def main(x: R.Tensor((1,), "float32")):
                return x
    else:

        @I.ir_module(check_well_formed=False)
        class M:
            @R.function(private=True)
            def main(x: R.Tensor((2,), "float32")):
                return x

    assert f"({width},)" in text_of(M)


def test_symbols_declared_outside_are_symbols() -> None:
    @R.function
    def typed(x: R.Tensor((k, symbol_m), "float32")) -> R.Tensor((k, symbol_m), "float32"):
        return R.reshape(x, (k, symbol_m))

    assert 'x: R.Tensor(("k", "m"), "float32")' in text_of(typed)

    @T.prim_func
    def kernel(x: T.Buffer((rows, 4), "float32")):
        for i in range(rows):
            x[i, 0] = T.float32(0)

    assert isinstance(kernel, PrimFunc)
    assert kernel.params[0].shape[0].dtype == "int32"  # type: ignore[union-attr]


def test_captured_values_follow_attributes_and_items() -> None:
    class Config:
        sizes: ClassVar = {"hidden": 7}
        dtype = np.float32

    config = Config()

    @R.function
    def main(x: R.Tensor((config.sizes["hidden"] * 2, 3), config.dtype)):
        return x

    assert 'R.Tensor((14, 3), "float32")' in text_of(main)


def test_a_captured_object_that_a_script_cannot_use_is_named() -> None:
    thing = object()
    with pytest.raises(weft.ScriptError, match="'thing' is a Python object") as caught:

        @R.function
        def main(x: R.Tensor((2,), "float32")):
            return R.add(x, thing)

    assert caught.value.code == "W150"


def test_namespaces_may_have_other_names() -> None:
    from weft import script
    from weft.script import relax as rx

    @rx.function
    def main(x: rx.Tensor((2,), "float32")):
        return script.relax.exp(rx.nn.relu(x))

    assert "R.nn.relu(x)" in text_of(main)

    @tirx.prim_func(s_tir=True)
    def kernel(x: tirx.Buffer((2,), "float32")):
        x[0] = tirx.exp(x[1])

    assert "T.exp(x[1])" in text_of(kernel)


def test_plain_functions_of_a_class_wait_for_it() -> None:
    class Plain:
        @R.function
        def main(x: R.Tensor((2,), "float32")):
            return x

    assert callable(Plain.main)
    assert not isinstance(Plain.main, Function)


def test_errors_point_into_this_file() -> None:
    with pytest.raises(weft.ScriptError) as caught:

        @R.function
        def main(x: R.Tensor((2,), "float32")):
            return R.nn.rellu(x)

    span = caught.value.span
    assert span is not None
    assert span.filename == __file__
    line = Path(__file__).read_text().split("\n")[span.line - 1]
    assert line[span.column - 1 : span.end_column - 1] == "R.nn.rellu"


PRINTED = """
from weft.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @T.prim_func
    def k(x: T.Buffer(("n", "2 * n + 1"), "float32"), p: T.handle("float32"), q: T.int64):
        T.func_attr({"a": 1})
        for i in range(n):
            x[i, 0] = T.float32(1)

    I.module_attrs({"k": 1})
    ext = R.ExternFunc("e")

    @R.function
    def main(x: R.Tensor(("n", "2 * n + 1"), "float32"), s: R.Shape(["n"]), t: R.Tuple(R.Prim("int64"), R.Any), f: R.Callable((R.Any,), R.Any, True)) -> R.Tensor(("n", "2 * n + 1"), "float32"):
        return x
"""


def test_printed_text_runs_as_python() -> None:
    module = parse(PRINTED)
    text = script_of(module)
    linecache.cache["<printed>"] = (len(text), None, text.splitlines(True), "<printed>")
    names: dict[str, Any] = {}
    exec(compile(text, "<printed>", "exec"), names)
    weft.assert_structural_equal(names["Module"], module)


@pytest.mark.parametrize("decorator", [R.function, T.prim_func, T.macro])
def test_a_lambda_is_refused_for_what_it_is(decorator: Callable[[Any], Any]) -> None:
    with pytest.raises(weft.ScriptError, match="W104: the decorator takes a `def`, got a lambda"):
        decorator(lambda x: x + 1)


def test_source_that_nobody_kept_is_an_error_that_says_what_to_do() -> None:
    lines = ["from weft.script import relax as R", "@R.function", "def f(x: R.Tensor((2,), 'int8')):", "    return x"]
    code = compile("\n".join(lines), "<gone>", "exec")
    with pytest.raises(weft.ScriptError, match="no source text") as caught:
        exec(code, {})
    assert caught.value.code == "W102"
    assert "weft.parse" in (caught.value.hint or "")


SCRIPT = """
from weft.script import relax as R
@R.function
def f(x: R.Tensor((2,), "float32")):
    return R.exp(x)
print("parsed", f.params[0].name)
"""


def run(*args: str, text: str | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    root = Path(weft.__file__).parent.parent
    return subprocess.run(
        [sys.executable, *args],
        input=text,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(root), **env},
    )


def test_a_command_line_text_is_found() -> None:
    assert run("-c", SCRIPT).stdout == "parsed x\n"


def test_a_script_on_redirected_input_is_found(tmp_path: Path) -> None:
    path = tmp_path / "s.py"
    path.write_text(SCRIPT)
    with path.open() as stream:
        root = Path(weft.__file__).parent.parent
        done = subprocess.run(
            [sys.executable],
            stdin=stream,
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, "PYTHONPATH": str(root)},
        )
    assert done.stdout == "parsed x\n", done.stderr


def test_an_uncaught_error_shows_the_users_frames_only(tmp_path: Path) -> None:
    path = tmp_path / "bad.py"
    path.write_text(SCRIPT.replace("R.exp", "R.ex"))
    done = run(str(path))
    assert done.returncode == 1
    assert "W140: unknown operator R.ex" in done.stderr
    assert f"{path}:5:12" in done.stderr
    assert "reader/graph" not in done.stderr
    assert "reader/graph" in run(str(path), WEFT_TRACEBACK="full").stderr


def test_names_outside_scripts_build_nodes() -> None:
    x = weft.ir.Var("x", R.Tensor(("n", 4), "float32"))
    call = R.nn.softmax(R.add(x, x), axis=-1)
    assert isinstance(call, weft.ir.Call)
    assert text_of(call).startswith("R.nn.softmax(R.add(x, x)")
    assert (
        text_of(R.Tuple(R.Prim("int64"), R.Any, R.Shape(["n", 2])))
        == 'R.Tuple(R.Prim("int64"), R.Any, R.Shape([n, 2]))'
    )
    assert text_of(T.exp(T.float32(1)) + 2.0) == "T.exp(T.float32(1.0)) + T.float32(2.0)"
    assert text_of(T.max(T.int32(3), 4)) == "T.max(T.int32(3), T.int32(4))"
    with pytest.raises(AttributeError, match="nosuch"):
        _ = R.nosuch
    with pytest.raises(AttributeError, match="nosuch"):
        _ = T.nosuch
    with pytest.raises(weft.ScriptError, match="inside a decorated function"):
        R.dataflow()


def test_a_doctest_may_hold_scripts() -> None:
    import doctest

    source = textwrap.dedent(
        """
        >>> from weft.script import relax as R
        >>> @R.function
        ... def f(x: R.Tensor((2,), "float32")):
        ...     return x
        >>> f.params[0].name
        'x'
        """
    )
    test = doctest.DocTestParser().get_doctest(source, {}, "t", None, 0)
    assert doctest.DocTestRunner().run(test).failed == 0


def test_a_module_states_its_target() -> None:
    """E7: as a string, as a captured Target; both are the attribute that travels with the module."""
    captured = weft.Target("a: c -mcpu=cortex-m0; b: c -mcpu=cortex-m7f")

    @I.ir_module(target=captured)
    class Parts:
        @R.function
        def main(x: R.Tensor((2,), "float32")):
            return x

    @I.ir_module(target="llvm -mcpu=x86-64-v3")
    class Leaf:
        @R.function
        def main(x: R.Tensor((2,), "float32")):
            return x

    assert Parts.attrs["target"] == captured
    assert Leaf.attrs["target"] == weft.Target("llvm -mcpu=x86-64-v3")
    for module in (Parts, Leaf):
        assert weft.structural_equal(weft.parse(module.script()), module)


@pytest.mark.parametrize(("spelt", "code"), [('"lvm"', "W701"), ("3", "W113")])
def test_a_wrong_target_of_a_module_is_marked(spelt: str, code: str) -> None:
    text = (
        "from weft.script import ir as I, relax as R\n\n"
        f"@I.ir_module(target={spelt})\nclass M:\n    @R.function\n    def main(x: R.Tensor((2,), 'float32')):\n"
        "        return x\n"
    )
    with pytest.raises(weft.WeftError) as caught:
        weft.parse(text)
    assert caught.value.code == code
    assert caught.value.span is not None
    assert (caught.value.span.line, caught.value.span.column) == (3, 21)
