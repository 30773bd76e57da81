# pyright: reportInvalidTypeForm=false, reportRedeclaration=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportUndefinedVariable=false, reportGeneralTypeIssues=false, reportArgumentType=false, reportIndexIssue=false
"""`@I.pyfunc` functions: their text belongs to the module, themselves to the program that defines them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from weft.ir.graph import PythonFunc
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T

HEAD = "@I.ir_module\nclass M:\n"
MAIN = """
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        return R.call_py_func("f", (x,), out_ty=R.Tensor((4,), "float32"))
"""
X = np.ones(4, "float32")


class BasePyModule:
    """Stands for the class that scripts of the field inherit from."""


def scaling(factor: int) -> Any:
    @I.ir_module
    class M(BasePyModule):
        @I.pyfunc
        def f(self, x):
            """Scales."""
            margin = """
      Any margin:
                     kept."""
            # by the captured factor
            y = x * max(
                factor,
                len(margin) - 1000,
            )

            return y

        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            return R.call_py_func("f", (x,), out_ty=R.Tensor((4,), "float32"))

    return M


def test_a_module_holds_the_text_of_its_python_functions_and_reads_back() -> None:
    module = scaling(2)
    text = module.script()
    assert "    @I.pyfunc\n    def f(self, x):\n" in text
    assert "        # by the captured factor\n        y = x * max(\n            factor,\n" in text
    assert "        )\n\n        return y\n" in text
    assert "      Any margin:\n                     kept." in text
    again = weft.parse(text)
    assert weft.first_mismatch(module, again) is None
    assert again.script() == text
    assert module.attrs["base_py_module"] is True
    assert weft.verify(module) == []


@pytest.mark.parametrize("executor", ["native", "vm"])
def test_each_module_calls_its_own_function(executor: str) -> None:
    two, five = scaling(2), scaling(5)
    compiled = [weft.compile(module, executor=executor) for module in (two, five)]
    assert [exe["main"](X).tolist() for exe in compiled] == [[2.0] * 4, [5.0] * 4]
    assert [weft.interpret(module)["main"](X)[0] for module in (two, five)] == [2, 5]


def test_self_is_the_module() -> None:
    @I.ir_module
    class M:
        @I.pyfunc
        def f(self, x):
            return weft.interpret(self)["double"](x) + 1

        @R.function
        def double(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            return x + x

        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            return R.call_py_func("f", (x,), out_ty=R.Tensor((4,), "float32"))

    assert weft.compile(M)["main"](X).tolist() == [3] * 4


def test_a_function_without_self_gets_the_arguments_alone() -> None:
    @I.ir_module
    class M:
        @I.pyfunc
        def f(x):
            return np.subtract(x, 1)

        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            return R.call_py_func("f", (x,), out_ty=R.Tensor((4,), "float32"))

    assert weft.compile(M)["main"](X).tolist() == [0] * 4


def test_text_runs_nothing_and_says_that_the_function_must_be_given() -> None:
    module = weft.parse(f"{HEAD}    @I.pyfunc\n    def f(self, x):\n        raise SystemExit\n{MAIN}")
    with pytest.raises(weft.ArgumentError) as caught:
        weft.compile(module)
    span = caught.value.span
    assert span is not None
    assert (caught.value.code, span.line, span.column) == ("W861", 4, 9)
    assert "weft.register_func('f', f)" in (caught.value.hint or "")
    with pytest.raises(weft.ArgumentError) as caught:
        weft.interpret(module)["main"](X)
    assert caught.value.code == "W861"


def test_a_registered_function_stands_in_for_the_text() -> None:
    from weft.runtime import unregister_func

    module = weft.parse(f"{HEAD}    @I.pyfunc\n    def f(self, x):\n        return x\n{MAIN}")
    weft.register_func("f", lambda x: x * 7)
    try:
        assert weft.compile(module)["main"](X).tolist() == [7] * 4
    finally:
        unregister_func("f")


def test_members_survive_passes() -> None:
    lowered = weft.lower(scaling(3))
    assert isinstance(lowered["f"], PythonFunc)
    assert weft.first_mismatch(weft.parse(lowered.script()), lowered) is None


def test_a_member_in_one_line_and_one_with_decorators_keep_them() -> None:
    text = f"{HEAD}    @I.pyfunc\n    def f(x): return x\n\n"
    text += "    @I.pyfunc\n    @some.wrapper(1)\n    def g(x):\n        return x\n"
    module = weft.parse(text)
    assert (module["f"].source, module["g"].source) == (
        "def f(x): return x",
        "@some.wrapper(1)\ndef g(x):\n    return x",
    )
    assert weft.first_mismatch(weft.parse(module.script()), module) is None


def test_other_versions_have_no_text_for_it() -> None:
    with pytest.raises(weft.ScriptError, match="the Python function 'f'") as caught:
        scaling(1).script(spelling="tvm-0.27")
    assert caught.value.code == "W116"


@pytest.mark.parametrize("source", ["", "def f(:", "x = 1", "def g(x): return x", "def f(x): pass\nimport os"])
def test_what_is_no_text_of_one_function_is_not_printed(source: str) -> None:
    module = weft.ir.IRModule({"f": PythonFunc("f", source=source)})
    with pytest.raises(weft.ScriptError) as caught:
        module.script()
    assert caught.value.code == "W116"


@pytest.mark.parametrize(
    ("text", "code", "line", "column"),
    [
        (f"{HEAD}    @I.pyfunc()\n    def f(x): return x\n", "W113", 3, 6),
        (f"{HEAD}    @other\n    @I.pyfunc\n    def f(x): return x\n", "W115", 3, 6),
        (f"{HEAD}    @I.pyfunc\n    def f(x): return x\n    @I.pyfunc\n    def f(x): return x\n", "W118", 6, 9),
        ("@I.ir_module\nclass M(dict):\n    @I.pyfunc\n    def f(x): return x\n", "W115", 2, 9),
        ("@I.ir_module\nclass M(metaclass=x):\n    @I.pyfunc\n    def f(x): return x\n", "W115", 2, 9),
        ("@I.pyfunc\ndef f(x): return x\n", "W111", 1, 2),
    ],
)
def test_what_is_no_member_is_refused_where_it_stands(text: str, code: str, line: int, column: int) -> None:
    with pytest.raises(weft.ScriptError) as caught:
        weft.parse(text)
    span = caught.value.span
    assert span is not None
    assert (caught.value.code, span.line, span.column) == (code, line, column)


@pytest.mark.parametrize(
    "source",
    ["def f(self):\n    return 1  # why", "# c\ndef f(self): return 1", "def f(self):\n    x = 1\n    \n    return x"],
)
def test_text_that_would_not_come_back_as_it_is_has_no_text_form(source: str) -> None:
    """G10: readers leave out comments around a member and blanks on empty lines."""
    with pytest.raises(weft.ScriptError, match="no text form") as caught:
        weft.ir.IRModule({"f": PythonFunc("f", source=source)}).script()
    assert caught.value.code == "W116"


def test_call_py_reads_in_both_spellings_and_prints_in_one() -> None:
    older = weft.parse(MAIN.replace('"f"', '"docs.f"').replace("\n    ", "\n"))
    assert 'R.call_py(func_name="docs.f"' in older.script()
    assert weft.structural_equal(weft.parse(older.script()), older)
    assert 'R.call_py_func("docs.f"' in older.script(spelling="tvm-0.27") or "py_func_name" in older.script(
        spelling="tvm-0.27"
    )
    assert R.call_py_func is R.call_py


@pytest.mark.parametrize("executor", ["native", "vm"])
def test_sizes_that_call_py_does_not_say_are_those_of_what_it_returns(executor: str) -> None:
    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("m",), "float32"):
        m = T.int64()
        found = R.call_py("test.positive", (x, R.str("above"), 0.5), out_ty=R.Tensor("float32", ndim=1))
        y = R.match_cast(found, R.Tensor((m,), "float32"))
        return R.exp(y)

    weft.register_func("test.positive", lambda x, how, least: x[x > least])
    x = np.array([0.0, 1.0, 2.0], "float32")
    for run in (weft.interpret(main)["main"], weft.compile(main, executor=executor)["main"]):
        np.testing.assert_allclose(run(x), np.exp(x[1:]), rtol=1e-6)
    weft.register_func("test.positive", lambda x, how, least: x.astype("float64"))
    with pytest.raises(weft.ShapeError, match=r"test\.positive"):
        weft.compile(main, executor=executor)["main"](x)


@pytest.mark.parametrize(("target", "executor"), [("llvm", "graph"), ("llvm", "aot"), ("c", None)])
def test_call_py_is_refused_where_there_is_no_python(target: str, executor: str | None) -> None:
    options = {"executor": executor} if executor else {}
    with pytest.raises(weft.TargetError) as caught:
        weft.compile(weft.parse(MAIN.replace("\n    ", "\n")), target, **options)
    assert "call_py" in str(caught.value)
    assert "Python" in str(caught.value)
