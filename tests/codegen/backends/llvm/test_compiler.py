"""The last steps with LLVM: several modules at once give what one after the other gives."""

from __future__ import annotations

import locale
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import numpy as np
import pytest

import weft
from weft.codegen.backends.llvm import program
from weft.codegen.backends.llvm.machine import machine
from weft.codegen.backends.llvm.machine.machine import Compiler, Machine, compile_module
from weft.errors import TargetError

MODULES = [
    f"define float @f{n}(ptr %p) {{\n  %q = getelementptr float, ptr %p, i64 {n}\n  %x = load float, ptr %q\n"
    f"  %y = fmul float %x, {float(n)}\n  ret float %y\n}}\n"
    for n in range(1, 13)
]
SCRIPT = """
from weft.script import ir as I, relax as R

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((8, 16), "float32"), w: R.Tensor((16, 4), "float32")):
        a = R.matmul(x, w)
        b = R.nn.relu(a)
        c = R.exp(b)
        y = R.sum(c, axis=1)
        return y
"""


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CACHE_DIR", "off")


def compiled(monkeypatch: pytest.MonkeyPatch, cores: int) -> list[tuple[bytes, str]]:
    monkeypatch.setattr(machine, "cores", lambda: cores)
    with Compiler() as compiler:
        jobs = [compiler.add(Machine(), text, quick=n % 3 == 0) for n, text in enumerate(MODULES)]
    return [job.result() for job in jobs]


def test_modules_compiled_at_once_are_those_compiled_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    in_turn = compiled(monkeypatch, 1)
    assert compiled(monkeypatch, 4) == in_turn
    assert [code for code, _ in in_turn] == [
        compile_module(Machine(), text, quick=n % 3 == 0)[0] for n, text in enumerate(MODULES)
    ]


def test_threads_start_where_there_is_much_to_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "cores", lambda: 4)
    started: list[int] = []

    class Pool(ThreadPoolExecutor):
        def __init__(self, count: int, *args: Any, **options: Any) -> None:
            started.append(count)
            super().__init__(count, *args, **options)

    monkeypatch.setattr(machine, "ThreadPoolExecutor", Pool)
    for texts, expected in (
        (MODULES[: machine.FEW], []),
        (MODULES[: machine.FEW + 1], [3]),
        ([MODULES[0] + ";" * machine.SMALL], [3]),
    ):
        started.clear()
        with Compiler() as compiler:
            jobs = [compiler.add(Machine(), text) for text in texts]
        assert started == expected
        assert [job.result()[0] for job in jobs] == [compile_module(Machine(), text)[0] for text in texts]


def test_what_no_thread_has_begun_is_compiled_by_the_one_that_wrote_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Busy(ThreadPoolExecutor):
        """Threads that begin nothing but what is asked first."""

        def submit(self, function: Any, *args: Any, **options: Any) -> Any:
            return super().submit(function) if function is int else None

    expected = compiled(monkeypatch, 1)
    monkeypatch.setattr(machine, "ThreadPoolExecutor", Busy)
    interval = sys.getswitchinterval()
    assert compiled(monkeypatch, 4) == expected
    assert sys.getswitchinterval() == interval


@pytest.mark.parametrize("cores", [1, 4])
def test_what_llvm_refuses_is_the_same_error_from_a_thread(monkeypatch: pytest.MonkeyPatch, cores: int) -> None:
    monkeypatch.setattr(machine, "cores", lambda: cores)

    def compile_all() -> None:
        with Compiler() as compiler:
            texts = MODULES[0], "define i32 @g() { ret i64 0 }", MODULES[1]
            jobs = [compiler.add(Machine(), text) for text in texts]
        for job in jobs:
            job.result()

    with pytest.raises(TargetError, match="llvm refuses the generated code") as raised:
        compile_all()
    assert raised.value.code == "W749"


def test_a_process_that_can_start_no_thread_compiles_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    expected = compiled(monkeypatch, 1)
    monkeypatch.setattr("threading.Thread.start", refuse)
    assert compiled(monkeypatch, 4) == expected


def test_an_executable_has_the_same_bytes_whenever_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    for cores in (1, 4, 4):
        monkeypatch.setattr(machine, "cores", lambda cores=cores: cores)
        made.append(weft.compile(weft.parse(SCRIPT)))
    first, *others = (executable._program.objects for executable in made)
    assert all(objects == first for objects in others)
    random = np.random.default_rng(0)
    a, b = random.random((8, 16), "float32"), random.random((16, 4), "float32")
    np.testing.assert_allclose(made[1](a, b), np.exp(np.maximum(a @ b, 0)).sum(1), rtol=1e-5)


class Watched(ThreadPoolExecutor):
    """Threads whose number and greatest number at work are seen."""

    asked: ClassVar[list[int]] = []

    def __init__(self, count: int, *args: Any, **options: Any) -> None:
        self.asked.append(count)
        super().__init__(count, *args, **options)


@pytest.mark.parametrize(
    ("target", "executor"), [(None, "native"), (None, "vm"), (None, "aot"), ("a: llvm; b: llvm -mcpu=host", None)]
)
def test_any_number_of_workers_gives_the_same_program(
    monkeypatch: pytest.MonkeyPatch, target: str | None, executor: str | None
) -> None:
    monkeypatch.setattr(machine, "ThreadPoolExecutor", Watched)
    monkeypatch.setattr(machine, "cores", lambda: 5)
    Watched.asked.clear()
    made = [weft.compile(weft.parse(SCRIPT), target, executor=executor, workers=n) for n in (1, 2, 12, None)]
    assert Watched.asked == [1, 11, 4]  # the thread that writes modules is one of the workers
    assert len({item.artifacts.content_hash for item in made}) == 1


def test_targets_that_compile_nothing_here_take_workers_too() -> None:
    """E10: the argument is of every target; there is one source or one object to make."""
    for target in ("c", "llvm -mcpu=cortex-m4"):
        one, four = (weft.compile(weft.parse(SCRIPT), target, workers=count) for count in (1, 4))
        assert one == four
    assert weft.compile({"a": weft.parse(SCRIPT)}, workers=2).names == ("a.h", "a.o")


@pytest.mark.parametrize("workers", [0, -1, True, 1.0, "2"])
def test_what_is_no_number_of_workers_is_refused(workers: Any) -> None:
    for models in (weft.parse(SCRIPT), {"a": weft.parse(SCRIPT)}):
        with pytest.raises(weft.PassError, match="compiled at once, at least 1, got") as caught:
            weft.compile(models, workers=workers)
        assert caught.value.code == "W547"


def test_an_interrupt_while_workers_compile_ends_the_call_and_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(program, "_graphs", interrupt)
    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        weft.compile(weft.parse(SCRIPT), workers=3)
    assert threading.active_count() == before


def test_several_threads_may_compile_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = compiled(monkeypatch, 1)
    monkeypatch.setattr(machine, "cores", lambda: 2)

    def all_of_them(_: int) -> list[tuple[bytes, str]]:
        with Compiler() as compiler:
            jobs = [compiler.add(Machine(), text, quick=n % 3 == 0) for n, text in enumerate(MODULES)]
        return [job.result() for job in jobs]

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(all_of_them, range(3))) == [expected] * 3


def test_compiling_in_threads_leaves_the_locale_of_the_process() -> None:
    """llvmlite sets it while it prints a module; two threads that print at once would leave it changed."""
    text = "define i32 @f() { ret i32 1 }\n" + "".join(f"@g{i} = global i32 {i}\n" for i in range(300))
    before = locale.setlocale(locale.LC_ALL)
    with Compiler() as compiler:
        jobs = [compiler.add(Machine(), f"{text}@other = global i32 {number}\n") for number in range(60)]
    assert all(job.result()[1] for job in jobs)
    assert locale.setlocale(locale.LC_ALL) == before
