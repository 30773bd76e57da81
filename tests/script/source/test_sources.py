# pyright: reportInvalidTypeForm=false, reportAttributeAccessIssue=false, reportUndefinedVariable=false
# ruff: noqa: E501  (scripts inside strings)
"""Scripts work where people type: files, cells, prompts, command lines, `exec`, and under every Python that runs weft.

`WEFT_PYTHONS` may name more interpreters that can import weft's dependencies; the subprocess tests run under each.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import pty
import select
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T

PYTHONS = [sys.executable, *filter(None, os.environ.get("WEFT_PYTHONS", "").split(os.pathsep))]
SOURCES = str(Path(weft.__file__).parent.parent)

FUNCTION = "@R.function\ndef f(x: R.Tensor((2,), 'float32')):\n    return R.exp(x)\n"
TEXT = f"from weft.script import relax as R\n{FUNCTION}print('read', f.params[0].name)\n"


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": SOURCES, "PYTHONDONTWRITEBYTECODE": "1", **more}


def run(python: str, *args: str, text: str | None = None, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python, *args], input=text, capture_output=True, text=True, timeout=120, env=environment(), **options
    )


PROGRAMS = {
    "a file": TEXT,
    "postponed annotations": "from __future__ import annotations\n" + TEXT,
    "a nested function": "from weft.script import relax as R\ndef make(n):\n    @R.function\n    def f(x: R.Tensor((n,), 'int8')):\n        return R.abs(x)\n    return f\nprint('read', make(3).params[0].name)\n",
    "a method": "from weft.script import relax as R\nclass Maker:\n    size = 3\n    def make(self):\n        @R.function\n        def f(x: R.Tensor((self.size,), 'int8')):\n            return R.abs(x)\n        return f\nprint('read', Maker().make().params[0].name)\n",
    "postponed in a nested function": "from __future__ import annotations\nfrom weft.script import relax as R\ndef make(n):\n    @R.function\n    def f(x: R.Tensor((n,), 'int8')):\n        return R.abs(x)\n    return f\nprint('read', make(3).params[0].name)\n",
    "a module in a function": "from weft.script import ir as I, relax as R\ndef make(n):\n    @I.ir_module\n    class M:\n        @R.function\n        def f(x: R.Tensor((n,), 'int8')):\n            return R.abs(x)\n    return M\nprint('read', make(3)['f'].params[0].name)\n",
    "another decorator above": "from weft.script import relax as R\ndef keep(f):\n    return f\n@keep\n@keep\n"
    + TEXT.split("\n", 1)[1],
    "exec of a variable": f"text = {TEXT!r}\nexec(text)\n",
    "exec in a function": f"def go(text):\n    exec(text, {{}})\ngo({TEXT!r})\n",
    "exec of a literal": f"exec({TEXT!r})\n",
    "exec under postponed annotations": f"from __future__ import annotations\nexec({TEXT!r}, {{}})\n",
    "a stated source": f"text = {TEXT!r}\ncode = compile(text, '<made>', 'exec')\nnames = {{'__source__': text}}\ndel text\nexec(code, names)\n",
    "linecache": f"import linecache\ntext = {TEXT!r}\nlinecache.cache['<made>'] = (len(text), None, text.splitlines(True), '<made>')\ncode = compile(text, '<made>', 'exec')\ndel text\nexec(code)\n",
    "a function made by exec and called later": "ns = {}\ndef go():\n    exec('from weft.script import relax as R\\ndef make(n):\\n    @R.function\\n    def f(x: R.Tensor((n,), \"int8\")):\\n        return R.abs(x)\\n    return f\\nmake(1)\\n', ns)\ngo()\nprint('read', ns['make'](2).params[0].name)\n",
    "a macro": "from weft.script import tir as T\n@T.macro\ndef m(A):\n    A[0] = T.float32(1)\n@T.prim_func\ndef f(x: T.Buffer((2,), 'float32')):\n    m(x)\nprint('read', f.params[0].name)\n",
    "other characters": "from weft.script import relax as R\n@R.function\ndef f(x: R.Tensor((2,), 'float32')):\n    größe = R.exp(x); ß = R.abs(größe)\n    return ß\nprint('read', f.params[0].name)\n",
}


@pytest.mark.parametrize("python", PYTHONS)
def test_programs_of_every_kind_are_read(python: str, tmp_path: Path) -> None:
    """One process for all kinds, so that the test is quick: each is a file of its own, run as one."""
    for number, text in enumerate(PROGRAMS.values()):
        (tmp_path / f"p{number}.py").write_text(text, encoding="utf-8")
    driver = tmp_path / "driver.py"
    driver.write_text(
        "import runpy, sys, traceback\nfor path in sys.argv[1:]:\n    try:\n        runpy.run_path(path, run_name='__main__')\n"
        "    except BaseException:\n        traceback.print_exc(file=sys.stdout)\n"
    )
    done = run(python, str(driver), *(str(tmp_path / f"p{number}.py") for number in range(len(PROGRAMS))))
    assert done.stdout == "read x\n" * len(PROGRAMS), done.stdout + done.stderr


@pytest.mark.parametrize("python", PYTHONS)
def test_a_command_line_and_a_redirected_input_are_read(python: str, tmp_path: Path) -> None:
    assert run(python, "-c", TEXT).stdout == "read x\n"
    path = tmp_path / "program.py"
    path.write_text(TEXT)
    with path.open() as stream:
        done = subprocess.run([python], stdin=stream, capture_output=True, text=True, timeout=60, env=environment())
    assert done.stdout == "read x\n", done.stderr


def test_text_from_a_pipe_is_an_error_that_says_what_to_do() -> None:
    done = run(sys.executable, "-", text=TEXT)
    if done.returncode == 0:  # a Python that keeps it
        assert done.stdout == "read x\n"
        return
    assert (
        "W102: no source text of the definition in <stdin>: Python keeps no text of what is piped into it"
        in done.stderr
    )
    assert "weft.parse(text)" in done.stderr


def typed(python: str, lines: list[str]) -> str:
    """What a terminal shows when lines are typed at the prompt."""
    child, terminal = pty.fork()
    if child == 0:  # pragma: no cover
        os.execve(python, [python, "-q"], environment(TERM="dumb", PYTHON_BASIC_REPL="1"))
    shown = b""

    def read_until(mark: bytes, seconds: float = 120.0) -> None:
        nonlocal shown
        end = time.monotonic() + seconds
        while time.monotonic() < end and not shown.endswith(mark):
            if select.select([terminal], [], [], 0.05)[0]:
                try:
                    shown += os.read(terminal, 65536)
                except OSError:
                    return

    for line in lines:
        read_until(b"... " if line.startswith((" ", "def")) or not line else b">>> ")
        os.write(terminal, line.encode() + b"\n")
        shown += b"\n"
    read_until(b">>> ")
    os.write(terminal, b"exit()\n")
    os.close(terminal)
    os.waitpid(child, 0)
    return shown.decode(errors="replace")


@pytest.mark.parametrize("python", PYTHONS)
def test_a_definition_typed_at_the_prompt_is_read(python: str) -> None:
    if run(python, "-c", "import readline").returncode:
        pytest.skip("this Python has no readline")
    lines = [
        "from weft.script import relax as R",
        "@R.function",
        "def f(x: R.Tensor((2,), 'float32')):",
        "    return R.exp(x)",
        "",
        "print('re' + 'ad', f.params[0].name)",
    ]
    assert "read x" in typed(python, lines)


def test_what_exec_ran_of_a_file_that_is_read_on_the_way_says_how_to_keep_the_text(tmp_path: Path) -> None:
    path = tmp_path / "defined.py"
    path.write_text(TEXT, encoding="utf-8")
    done = run(sys.executable, "-c", f"exec(open({str(path)!r}).read())")
    assert "W102" in done.stderr
    assert "`text = open(path).read(); exec(text)`" in done.stderr
    assert '`exec(code, {"__source__": text})`' in done.stderr
    for program in (
        f"text = open({str(path)!r}).read(); exec(text)",
        f"text = open({str(path)!r}).read(); exec(compile(text, '<made>', 'exec'), {{'__source__': text}})",
    ):
        assert run(sys.executable, "-c", program).stdout == "read x\n"


def test_a_notebook_cell_is_read_and_its_errors_point_into_it() -> None:
    if importlib.util.find_spec("IPython") is None:
        pytest.skip("IPython is not installed")
    code = textwrap.dedent(
        f"""
        from IPython.core.interactiveshell import InteractiveShell
        shell = InteractiveShell.instance()
        shell.run_cell({TEXT!r})
        result = shell.run_cell({TEXT.replace("R.exp", "R.exq")!r})
        error = result.error_in_exec
        print(error.code, error.span.line, error.span.column)
        """
    )
    done = run(sys.executable, "-c", code)
    assert done.stdout.startswith("read x\n"), done.stdout + done.stderr
    assert "W140 4 12" in done.stdout


def counted(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def inner(*args: Any) -> Any:
        return function(*args)

    return inner


def test_a_decorator_below_changes_the_function_and_is_refused() -> None:
    with pytest.raises(weft.ScriptError) as caught:

        @R.function
        @counted
        def main(x: R.Tensor((2,), "int8")):
            return x

    assert caught.value.code == "W115"
    assert caught.value.span is not None
    assert "counted" in caught.value.message


def test_a_decorator_in_a_text_has_no_meaning() -> None:
    with pytest.raises(weft.ScriptError) as caught:
        weft.parse("@cached\n@R.function\ndef f(x: R.Tensor((2,), 'int8')):\n    return x\n")
    assert caught.value.code == "W115"
    assert caught.value.span is not None
    assert (caught.value.span.line, caught.value.span.column, caught.value.span.end_column) == (1, 2, 8)


def test_members_may_be_static_methods() -> None:
    @I.ir_module
    class M:
        @staticmethod
        @T.prim_func
        def k(x: T.Buffer((2,), "float32")):
            x[0] = T.float32(1)

        @staticmethod
        @R.function
        def main(x: R.Tensor((2,), "float32")):
            return x

    assert set(M.functions) == {"k", "main"}  # type: ignore[attr-defined]
