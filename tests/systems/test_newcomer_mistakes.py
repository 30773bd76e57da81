"""Mistakes of newcomers: each ends as one error of weft, with its code, its place and what to do instead.

Each row is a program as a user writes it to a file. What is shown of the uncaught error has no line of weft's own
files, marks the text of the program where the mistake stands in it, and fits a screen.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pytest

import weft

HEAD = "import numpy as np\nimport weft\nfrom weft.script import ir as I, relax as R, tir as T\n"
SCALE = '@R.function\ndef main(x: R.Tensor(("n", 4), "float32")):\n    return x * 2.0\n'
KERNEL = """@I.ir_module
class M:
    @T.prim_func
    def kernel(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
        for i in range(4):
            y[i] = x[i]

    @R.function
    def main(x: R.Tensor((4,), "float32")):
        return R.call_tir("kernel", (x,), out_ty=R.Tensor((4,), "float32"))
"""


def graph(body: str, before: str = "@R.function", x: str = 'x: R.Tensor(("n", 4), "float32")') -> str:
    return f"{before}\ndef main({x}):\n    {body}\n"


MASKED = "np.ma.masked_array([[1.0] * 4], [[0, 1, 0, 0]], 'f4')"
MISTAKES = [
    # (program, code, line under the caret or "", words of the message or hint)
    (graph("return R.sum(x, dim=0)"), "W141", "R.sum(x, dim=0)", "did you mean axis?"),
    (graph("return R.zeros(x.size(0), 'float32')"), "W115", "x.size", "`x.shape[0]` is one of its sizes"),
    (graph("return x[R.sum(x) > 0.0]"), "W115", "R.sum(x) > 0.0", "R.where(mask, x, y)"),
    (graph("return x", x='x: R.tensor(("n", 4), "float32")'), "W111", "R.tensor", "did you mean `R.Tensor`?"),
    (graph("x = x + 1", "@T.prim_func", 'x: T.Buffer((4,), "float32")'), "W121", "x + 1", "give an index"),
    ("class M:\n    pass\nweft.compile(M)", "W511", "", "@I.ir_module above the class"),
    (graph("return np.concatenate([x, x])"), "W153", "np.concatenate([x, x])", "did you mean `R.concat`"),
    (graph("return np.exp(x)"), "W153", "np.exp(x)", "did you mean `R.exp`"),
    (graph("return {'a': x}['b']"), "W124", "{'a': x}['b']", "there is no key 'b'"),
    (graph("return R.reshape(x, (n / 2, 8))"), "W142", "R.reshape(x, (n / 2, 8))", "with a value of type R.Tensor"),
    (graph("return x", x='x: R.Tensor((4,), "double")'), "W301", 'R.Tensor((4,), "double")', "'float64'"),
    (graph("return x", x='x: T.Buffer((4,), "float32")'), "W115", "T.Buffer", "takes R.Tensor((4,)"),
    (graph("return x", "@T.prim_func"), "W114", 'R.Tensor(("n", 4), "float32")', "decorated with @R.function"),
    (graph("return x", "@R.function(prue=True)"), "W113", "R.function(prue=True)", "keyword argument 'prue'"),
    (graph("return x", "@R.function('main')"), "W104", "R.function('main')", "got a str"),
    (graph("return x", "@I.ir_module"), "W104", "", "@R.function or @T.prim_func decorates a function"),
    (graph("return x", "@R.function\nasync").replace("async\n", "async "), "W115", None, "`async`"),
    ("@R.function\nclass M:\n    pass\n", "W104", "R.function", "@I.ir_module decorates a class"),
    ("@T.prim_func\nclass M:\n    pass\n", "W104", "T.prim_func", "got the class M"),
    ("@R.ir_module\nclass M:\n    pass\n", "W111", "R.ir_module", "did you mean `I.ir_module`"),
    (KERNEL, "W135", None, "`Module.kernel`"),
    (SCALE + "weft.compile(main, opt=99)", "W733", "", "got 99"),
    (SCALE + "weft.compile(main, targt='llvm')", "W850", "", "did you mean `target`"),
    ("weft.compile('model.py')", "W511", "", "weft.parse(text)"),
    (SCALE + "weft.transform.FoldConstant(weft.IRModule({'main': main}))", "W502", "", "FoldConstant()(module)"),
    ("weft.IRModule([1])", "W413", "", "got a list"),
    ("weft.IRModule({'main': lambda x: x})", "W413", "", "not a function of weft"),
    (SCALE + "weft.compile(main)['main'](np.ones((2, 4)).astype('>f4'))", "W851", None, "x.astype('float32')"),
    (
        SCALE + "weft.compile(main)['main'](np.ma.masked_array([[1.0] * 4], [[0, 1, 0, 0]], 'f4'))",
        "W851",
        None,
        "masked",
    ),
    (SCALE + "main(np.ma.masked_array([[1.0] * 4], [[0, 1, 0, 0]], 'f4'))", "W851", None, "masked"),
    (SCALE + "x = np.ones((2, 4), 'f4')\nweft.compile(main)['main'](x, out=[x.T])", "W854", "", "got list [array("),
]


def shown(program: str, path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What the uncaught error of a program in a file shows."""
    path.write_text(HEAD + program, encoding="utf-8")
    try:
        runpy.run_path(str(path))
    except BaseException as error:
        sys.excepthook(type(error), error, _from(error.__traceback__, path))
        return capsys.readouterr().err
    raise AssertionError("nothing was wrong")


def _from(tb: TracebackType | None, path: Path) -> TracebackType | None:
    """The traceback from the program on."""
    while tb is not None and tb.tb_frame.f_code.co_filename != str(path):
        tb = tb.tb_next
    return tb


def test_functions_of_an_executable_are_items() -> None:
    exe: Any = weft.compile(weft.parse(SCALE))
    with pytest.raises(AttributeError, match=r"write exe\['main'\]"):
        exe.main(np.ones((2, 4), "float32"))
    assert not hasattr(exe, "forward")


@pytest.mark.parametrize(("program", "code", "marked", "words"), MISTAKES, ids=range(len(MISTAKES)))
def test_a_mistake_is_one_error_with_its_place_and_a_way_out(
    program: str, code: str, marked: str | None, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "program.py"
    text = shown(program, path, capsys)
    lines = text.splitlines()
    assert f": {code}: " in text
    assert words in text
    assert len(lines) < 30
    assert all(f'"{path}"' in line for line in lines if line.startswith("  File "))
    if marked == "":
        assert "-->" not in text
        return
    at = next(index for index, line in enumerate(lines) if "-->" in line)
    source, carets = lines[at + 2].partition("| ")[2], lines[at + 3].partition("| ")[2]
    under = source[carets.index("^") : carets.rindex("^") + 1]
    assert marked is None or under == marked


def test_a_masked_array_without_masked_elements_is_an_array() -> None:
    program = weft.parse("from weft.script import relax as R\n" + SCALE)
    array = weft.compile(program)["main"](np.ma.masked_array([[1.0] * 4], dtype="f4"))
    assert array.tolist() == [[2.0] * 4]
