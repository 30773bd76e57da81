"""A child of a fork compiles and calls, whatever threads of the parent were doing at that moment."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from weft.ir.structure.recursion import deep_recursion
from weft.support.collection import rare_collections
from weft.support.forks import cached_property, no_fork

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

HEAD = """
import os, signal, sys, threading
import numpy as np, weft
os.environ["WEFT_CACHE_DIR"] = "off"
head = "@R.function\\ndef main(x: R.Tensor(('n',), 'float32')) -> R.Tensor(('n',), 'float32'):\\n"

def call(number):
    exe = weft.compile(weft.parse(head + f"    return R.add(x, R.const({number}.0))"))
    return exe["main"](np.ones(3, "float32")).tolist() == [1 + number] * 3

def fork():
    child = os.fork()
    if child == 0:
        signal.alarm(100)
        os._exit(0 if call(2) else 1)
    assert os.waitpid(child, 0)[1] == 0
"""
LOCKS = """
from weft.ir.dim.representation import INTERN_LOCK
from weft.ir.structure import recursion
from weft.runtime.device import linker, threads
from weft.support import collection
call(1)
held_locks = linker.binding().ffi.lib._lock._lock, INTERN_LOCK, recursion._lock, threads._lock, collection._lock
for lock in held_locks:
    held, done = threading.Event(), threading.Event()
    def hold():
        with lock:
            held.set()
            done.wait()
    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    fork()
    done.set()
    thread.join()
"""
FIRST = """
thread = threading.Thread(target=call, args=(1,))
thread.start()
while "weft.codegen" not in sys.modules:  # in the middle of the imports of the first program
    pass
fork()
thread.join()
"""
OFTEN = """
thread = threading.Thread(target=lambda: [call(number) for number in range(3, 9)])
thread.start()
while thread.is_alive():
    fork()
"""


@pytest.mark.parametrize("program", [LOCKS, FIRST, OFTEN], ids=["locks", "first", "often"])
def test_a_child_compiles_whatever_threads_of_the_parent_are_doing(program: str) -> None:
    command = [sys.executable, "-W", "ignore", "-c", HEAD + program]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (ran.returncode, ran.stderr) == (0, "")


def status_of_child(action: Callable[[], bool]) -> int:
    """The status with which a child ends that says whether something holds."""
    child = os.fork()
    if not child:
        os._exit(not action())
    return os.waitpid(child, 0)[1]


def test_a_fork_waits_for_what_it_may_not_interrupt() -> None:
    order, began = [], threading.Event()

    def work() -> None:
        with no_fork(), no_fork():
            began.set()
            threading.Event().wait(0.05)
            order.append("work")

    thread = threading.Thread(target=work)
    thread.start()
    began.wait()
    with no_fork():  # its own work is over or under way, as it is the one that forks
        assert status_of_child(lambda: order == ["work"]) == 0
    thread.join()


def test_a_child_leaves_for_the_threads_that_it_lacks() -> None:
    entered, done = threading.Event(), threading.Event()
    before = sys.getrecursionlimit(), gc.get_threshold()

    def work() -> None:
        with ExitStack() as stack:
            stack.enter_context(deep_recursion(5 * before[0]))
            stack.enter_context(rare_collections())
            entered.set()
            done.wait()

    thread = threading.Thread(target=work)
    thread.start()
    entered.wait()
    try:
        assert (sys.getrecursionlimit(), gc.get_threshold()) != before
        assert status_of_child(lambda: (sys.getrecursionlimit(), gc.get_threshold()) == before) == 0
    finally:
        done.set()
        thread.join()
    assert (sys.getrecursionlimit(), gc.get_threshold()) == before


def test_an_attribute_that_is_computed_in_one_thread_keeps_no_other_waiting() -> None:
    began, done = threading.Event(), threading.Event()

    class Pair:
        def __init__(self, waits: bool) -> None:
            self.waits = waits

        @cached_property
        def value(self) -> int:
            if self.waits:
                began.set()
                assert done.wait(60)
            return 1

    slow = Pair(True)
    thread = threading.Thread(target=lambda: slow.value)
    thread.start()
    assert began.wait(60)
    other = Pair(False)
    assert other.value == 1
    assert other.__dict__["value"] == 1
    done.set()
    thread.join()
    assert slow.value == 1
