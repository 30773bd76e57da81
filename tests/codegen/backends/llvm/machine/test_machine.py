"""Compiling in the child of a fork."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from weft.codegen.backends.llvm.machine import child as apart
from weft.codegen.backends.llvm.machine import machine


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_prints_although_a_thread_of_the_parent_was_printing_at_the_fork() -> None:
    began = threading.Event()

    class Slow:
        def __str__(self) -> str:
            began.set()
            threading.Event().wait(0.1)
            return "text"

    thread = threading.Thread(target=machine.assembly_of, args=(Slow(),))
    thread.start()
    began.wait()
    child = os.fork()
    if not child:
        signal.alarm(10)  # ends a child that waits for ever
        os._exit(machine.assembly_of("text") != "text")
    assert os.waitpid(child, 0)[1] == 0
    thread.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_process_of_llvm_ends_although_a_child_of_a_fork_has_its_input() -> None:
    process, (read, write) = apart._Child(), os.pipe()
    forked = os.fork()
    if not forked:
        os.close(write)
        os.read(read, 1)  # until the process has ended
        os._exit(0)
    process.close()
    assert process.process.returncode is not None
    os.close(write)
    assert os.waitpid(forked, 0)[1] == 0
    os.close(read)
