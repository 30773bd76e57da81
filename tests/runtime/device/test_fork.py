"""A child of a fork compiles and calls, whatever locks threads of the parent held at that moment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import os, signal, threading
import numpy as np, weft
from weft.ir.dim.representation import INTERN_LOCK
from weft.runtime.device import linker, threads
os.environ["WEFT_CACHE_DIR"] = "off"
head = "@R.function\\ndef main(x: R.Tensor(('n',), 'float32')) -> R.Tensor(('n',), 'float32'):\\n"
text = head + "    return R.add(x, R.const({}.0))"
weft.compile(weft.parse(text.format(1)))
locks = [INTERN_LOCK, linker._lock, threads._lock, linker._binding().ffi.lib._lock._lock]
for lock in locks:
    held, done = threading.Event(), threading.Event()
    def hold():
        with lock:
            held.set()
            done.wait()
    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        exe = weft.compile(weft.parse(text.format(2)))
        os._exit(0 if exe["main"](np.ones(3, "float32")).tolist() == [3, 3, 3] else 1)
    status = os.waitpid(child, 0)[1]
    done.set()
    thread.join()
    assert status == 0
print("done")
"""


def test_a_child_compiles_while_threads_of_the_parent_hold_locks() -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM],
        capture_output=True,
        text=True,
        cwd=Path.cwd(),
        timeout=60,
        check=False,
    )
    assert ran.stdout == "done\n", ran.stderr
