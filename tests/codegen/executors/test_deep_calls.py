"""Calls that nest too deeply end with W951 whatever stack the thread has, and programs that do with W524."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import weft
from weft.codegen.backends.llvm.asm.stack import CHAIN, deep_calls
from weft.ir import replace, rewrite
from weft.ir.node import Node
from weft.ir.structure.recursion import deep_recursion
from weft.ir.tensor import Binary, BufferStore, FloatImm

GRAPH = """
@I.ir_module
class M:
    @R.function(private=True)
    def down(x: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        c = R.less(x, R.const(1, "int64"))
        if c:
            r = R.add(x, R.const(0, "int64"))
        else:
            p = R.subtract(x, R.const(1, "int64"))
            r = M.down(p)
        return r

    @R.function
    def main(x: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        r = M.down(x)
        return r
"""
KERNEL = """
@I.ir_module
class M:
    @T.prim_func(private=True)
    def down(a: T.Buffer((4,), "float32"), n: T.int64):
        if n > 0:
            a[0] = a[0] + T.float32(1)
            M.down(a, n - 1)
            a[2] = a[2] + a[0]

    @T.prim_func
    def main(a: T.Buffer((4,), "float32"), n: T.int64):
        M.down(a, n)
"""
TAIL = """
@I.ir_module
class M:
    @T.prim_func(private=True)
    def down(a: T.Buffer((4,), "float32"), b: T.Buffer((4,), "float32")):
        b[0] = a[0] + T.float32(1)
        M.down(a, b)

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        return R.call_tir(M.down, (x,), out_ty=R.Tensor((4,), "float32"))
"""
CHILD = """
import sys, threading
import numpy as np
import weft

exe = weft.load(sys.argv[1])
given = (np.array(10**7),) if sys.argv[2] == "graph" else (np.zeros(4, "float32"), 10**7)

def call():
    try:
        exe["main"](*given)
    except weft.WeftError as error:
        print(error.code)

for kilobytes in (64, 256, 1024, 0):
    threading.stack_size(kilobytes << 10)
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
call()
"""


def program(level: str) -> weft.IRModule:
    return weft.parse(GRAPH if level == "graph" else KERNEL)


@pytest.mark.parametrize("level", ["graph", "kernel"])
@pytest.mark.parametrize("limit", ["256", "8192"])
def test_recursion_without_end_is_an_error_in_every_thread(level: str, limit: str, tmp_path: Path) -> None:
    weft.compile(program(level)).save(tmp_path / "m.weft")
    sources = str(Path(weft.__file__).parent.parent)
    text = f"import sys\nsys.path.insert(0, {sources!r})\n{CHILD}"
    command = ["bash", "-c", f'ulimit -s {limit}; exec "$@"', "bash", sys.executable, "-c", text]
    done = subprocess.run([*command, str(tmp_path / "m.weft"), level], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, (done.returncode, done.stderr[-500:])
    assert done.stdout.split() == ["W951"] * 5


@pytest.mark.parametrize("level", ["graph", "kernel"])
@pytest.mark.parametrize("kilobytes", [256, 0])
def test_recursion_without_end_is_an_error_in_the_interpreter(level: str, kilobytes: int) -> None:
    limit, main = sys.getrecursionlimit(), weft.interpret(program(level))["main"]
    given = (np.array(10**7),) if level == "graph" else (np.zeros(4, "float32"), 10**7)
    assert _code_in_a_thread(kilobytes, lambda: main(*given)) == "W951"
    assert sys.getrecursionlimit() == limit


def test_a_local_function_of_the_interpreter_takes_none_of_the_stack() -> None:
    """1,500 calls of it ended a thread of 256 KiB."""
    main = weft.interpret(
        weft.parse("""
@R.function
def main(x: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
    @R.function
    def down(k: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        if k > R.const(0, "int64"):
            r = down(k - R.const(1, "int64")) + x
        else:
            r = k
        return r
    return down(x)
""")
    )["main"]
    found: list[int] = []

    def call() -> None:
        found.append(int(main(np.array(1500))))
        raise LookupError

    assert _code_in_a_thread(256, call) == "LookupError"
    assert found == [1500 * 1500]


def test_functions_that_are_registered_nest_as_deeply_as_the_stack_allows() -> None:
    """The limit of Python is raised for a recursion, which these calls are no part of."""
    run = weft.interpret(
        weft.parse("""
@I.ir_module
class M:
    @R.function(pure=False)
    def again(x: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        if x > R.const(0, "int64"):
            r = R.call_packed("tests.deep_calls.again", x, ty_args=R.Tensor((), "int64"))
            y = M.other(r)
        else:
            y = x
        return y
    @R.function(pure=False)
    def other(x: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        if x < R.const(0, "int64"):
            y = M.again(x)
        else:
            y = x
        return y
""")
    )["again"]
    weft.register_func("tests.deep_calls.again", lambda x: run(x - 1), override=True)
    assert run(np.array(20)) == 0
    assert _code_in_a_thread(1024, lambda: run(np.array(10**7))) == "W951"


@pytest.mark.parametrize("executor", ["native", "vm"])
@pytest.mark.parametrize("kilobytes", [64, 256, 1024])
def test_recursion_through_a_registered_function_is_an_error(executor: str, kilobytes: int) -> None:
    text = """
@R.function
def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
    return R.call_pure_packed("tests.deep_calls.again", x, ty_args=R.Tensor((4,), "float32"))
"""
    main = weft.compile(weft.parse(text), executor=executor)["main"]
    weft.register_func("tests.deep_calls.again", lambda x: main(x), override=True)
    code = _code_in_a_thread(kilobytes, lambda: main(np.zeros(4, "float32")))
    assert code in ("W951", "RecursionError")  # whichever ends first, the stack or Python's limit


@pytest.mark.parametrize("executor", ["native", "vm"])
def test_tail_calls_without_end_take_the_stack_too(executor: str) -> None:
    with pytest.raises(weft.WeftError) as caught:
        weft.compile(weft.parse(TAIL), executor=executor)["main"](np.zeros(4, "float32"))
    assert caught.value.code == "W951"


@pytest.mark.parametrize("target", ["c", "llvm"])
def test_recursion_is_refused_in_code_that_nobody_watches(target: str, tmp_path: Path) -> None:
    with pytest.raises(weft.TargetError, match="recursion") as caught:
        weft.compile(weft.parse(TAIL), target, executor="aot").export(tmp_path / "m")
    assert caught.value.code == "W741"


def _code_in_a_thread(kilobytes: int, call: Callable[[], object]) -> str:
    """How a call ends in a thread with a stack of so many kilobytes: the code or the class of what it raises."""
    found: list[str] = []

    def run() -> None:
        try:
            call()
        except weft.WeftError as error:
            found.append(error.code)
        except Exception as error:
            found.append(type(error).__name__)

    before = threading.stack_size(kilobytes << 10)
    try:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    return found[0]


def test_recursion_that_ends_gives_its_value() -> None:
    array = np.zeros(4, "float32")
    weft.compile(program("kernel"))["main"](array, 100)
    assert array.tolist() == [100, 0, 10_000, 0]
    assert weft.compile(program("graph"))["main"](np.array(1000)) == 0


def test_only_calls_that_can_nest_deeply_ask_for_the_stack() -> None:
    lines = ["    @R.function\n    def f0(x: R.Tensor((), 'int64')) -> R.Tensor((), 'int64'):\n        return x\n"]
    for number in range(1, CHAIN + 2):
        lines.append(lines[0].replace("f0", f"f{number}").replace("return x", f"return M.f{number - 1}(x)"))
    module = weft.parse("@I.ir_module\nclass M:\n" + "".join(lines))
    assert deep_calls(module.functions) == {f"f{CHAIN}", f"f{CHAIN + 1}"}
    assert deep_calls(program("graph").functions) == {"down", "main"}


def test_the_recursion_limit_goes_back_when_the_last_thread_is_done() -> None:
    before = sys.getrecursionlimit()
    scalar = "@R.function\ndef main(x: R.Tensor((4,), 'float32')):\n    return R.add(x, R.const({}, 'float32'))\n"

    def work(number: int) -> None:
        weft.compile(weft.parse(scalar.format(float(number))))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(16)))
    assert sys.getrecursionlimit() == before


def test_the_recursion_limit_is_that_of_the_guards_inside() -> None:
    before = sys.getrecursionlimit()
    entered, leave = threading.Event(), threading.Event()

    def other() -> None:
        with deep_recursion(before + 2000):
            entered.set()
            leave.wait()

    thread = threading.Thread(target=other)
    with deep_recursion(before + 1000):
        thread.start()
        entered.wait()
        assert sys.getrecursionlimit() == before + 2000
    assert sys.getrecursionlimit() == before + 2000
    leave.set()
    thread.join()
    assert sys.getrecursionlimit() == before


def test_an_expression_that_is_too_deep_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.ir.structure.recursion._LIMIT", 2000)
    kernel = weft.parse(
        "@T.prim_func\ndef k(a: T.Buffer((4,), 'float32'), b: T.Buffer((4,), 'float32')):\n"
        "    for i in range(4):\n        b[i] = a[i]\n"
    )

    def deepened(node: Node) -> Node | None:
        if not isinstance(node, BufferStore):
            return None
        value = node.value
        for number in range(2000):
            value = Binary("max", FloatImm(float(number % 5), "float32"), value)
        return replace(node, value=value)

    with pytest.raises(weft.PassError) as caught:
        weft.compile(rewrite(kernel, deepened))
    assert caught.value.code == "W524"
    assert "nested too deeply" in caught.value.message
