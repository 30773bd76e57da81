"""Ctrl-C ends loops of compiled code within moments, whatever runs them, and the executable stays usable."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PROGRAM = """
import signal, sys
import numpy as np, weft
executor, handler = sys.argv[1:]
kernels = '''
    @T.prim_func
    def endless(x: T.Buffer((4,), "int64")):
        while x[0] > 0:
            x[1] = x[1] + x[2] * T.int64(3)

    @T.prim_func
    def long(x: T.Buffer((4,), "int64")):
        for i in T.serial(T.int64(1125899906842624)):
            x[1] = x[1] * x[2] + i * x[3]

    @T.prim_func
    def nested(x: T.Buffer((4,), "int64")):
        for i in T.serial(T.int64(1 << 32)):
            for j in T.serial(T.int64(1 << 32)):
                x[1] = x[1] * x[2] + j * x[3]

    @T.prim_func
    def counted(n: T.int64, x: T.Buffer((4,), "int64")):
        for i in range(n):
            x[1] = x[1] * x[2] + i * x[3]

    @T.prim_func
    def table(n: T.int64, x: T.Buffer((4,), "int64")):
        for i in range(n):
            for j in range(n):
                x[1] = x[1] * x[2] + i * j

    @T.prim_func
    def waited(n: T.int64, x: T.Buffer((4,), "int64")):
        for k in T.parallel(4):
            for i in range(n * T.Cast("int64", T.max(k, 1) - 1)):
                x[k] = x[k] * T.int64(3) + i

    @T.prim_func
    def reduced(x: T.Buffer((4,), "float32")):
        for i in range(1 << 61):
            with T.block("sum"):
                v = T.axis.reduce(1 << 61, i)
                with T.init():
                    x[0] = T.float32(0)
                x[0] = x[0] + T.Cast("float32", v)

    @T.prim_func
    def triangle(n: T.int64, x: T.Buffer((4,), "int64")):
        for i in range(n):
            for j in range(i):
                for k in range(j):
                    x[1] = x[1] * x[2] + k * x[3]

    @T.prim_func
    def within(n: T.int64, x: T.Buffer((4,), "int64")):
        while x[0] > 0:
            for i in range(n):
                x[1] = x[1] * x[2] + i * x[3]

    @T.prim_func
    def several(x: T.Buffer((4,), "int64")):
        for k in T.parallel(4):
            for i in T.serial(T.int64(1125899906842624)):
                x[k] = x[k] * T.int64(3) + i
'''
module = weft.parse('''
@I.ir_module
class M:
    @R.function
    def main(x: R.Tensor((4,), "int64")) -> R.Tensor((4,), "int64"):
        cls = M
        with R.dataflow():
            y = R.call_tir(cls.again, (x,), out_ty=R.Tensor((4,), "int64"))
            R.output(y)
        return y

    @T.prim_func
    def again(x: T.Buffer((4,), "int64"), y: T.Buffer((4,), "int64")):
        for i in range(4):
            y[i] = x[i]
        while y[0] > 0:
            y[1] = y[1] + y[2] * T.int64(3)
''' + ("" if executor in ("graph", "aot") else kernels))

class Stop(Exception):
    pass

def stop(number, frame):
    raise Stop

if handler == "own":
    signal.signal(signal.SIGINT, stop)
exe = weft.compile(module, executor=executor)
given = {"counted": 2**50, "table": 2**50, "waited": 2**50, "triangle": 2**20, "within": 2**22}
every = ("main", "endless", "long", "nested", "reduced", *given, "several")
for name in ("main",) if executor in ("graph", "aot") else every:
    x = np.ones(4, "float32" if name == "reduced" else "int64")
    try:
        print(name, flush=True)
        exe[name](*([given[name]] if name in given else []), x)
    except (KeyboardInterrupt, Stop) as error:
        print(type(error).__name__, flush=True)
print(exe["main"](np.array([0, 5, 6, 7])).tolist(), flush=True)
"""
CASES = [("native", "python's"), ("native", "own"), ("vm", "own"), ("graph", "own"), ("aot", "own")]


@pytest.mark.parametrize(("executor", "handler"), CASES)
def test_an_interrupt_ends_loops(executor: str, handler: str) -> None:
    command = [sys.executable, "-c", PROGRAM, executor, handler]
    environment = {**os.environ, "WEFT_NUM_THREADS": "2"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path.cwd(), env=environment) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if line.startswith("["):
                    assert line == "[0, 5, 6, 7]\n"
                    break
                time.sleep(0.3)  # the loop runs, most times; the test holds either way
                process.send_signal(signal.SIGINT)
                assert process.stdout.readline() == ("Stop\n" if handler == "own" else "KeyboardInterrupt\n")
            assert process.wait(10) == 0
        finally:
            process.kill()


CALLBACKS = """
import signal
import numpy as np, weft

class Stop(Exception):
    pass

def stop(number, frame):
    raise Stop

signal.signal(signal.SIGALRM, stop)
weft.register_func("tests.nothing", lambda x: None)
run = weft.compile(weft.parse('''
@T.prim_func
def main(x: T.Buffer((4,), "int64")):
    while x[0] > 0:
        T.evaluate(T.call_packed("tests.nothing", x.data, dtype="void"))
'''))["main"]
moments = np.random.default_rng(SEED).uniform(0.0003, 0.002, 150)
stopped = 0
for moment in moments:
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, moment)
            run(np.ones(4, "int64"))  # ends by the signal alone
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except Stop:
        stopped += 1
print(stopped)
"""


def test_a_signal_as_a_callback_begins_or_ends_raises_what_its_handler_raised() -> None:
    """The loop does nothing but call: signals come before, in and after the Python function."""
    command = [sys.executable, "-c", CALLBACKS.replace("SEED", str(time.time_ns()))]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, cwd=Path.cwd())
    assert (done.returncode, done.stdout, done.stderr) == (0, "150\n", "")


RESULTS = """
import signal, sys
import numpy as np, weft

class Stop(Exception):
    pass

def stop(number, frame):
    raise Stop

signal.signal(signal.SIGALRM, stop)
sys.unraisablehook = lambda lost: print("lost in", lost.object)
run = weft.compile(weft.parse('''
@R.function
def main(x: R.Tensor(("n",), "float32")):
    return R.reshape(R.expand_dims(x, 1) * x, (n * n,))
'''))["main"]
moments = np.random.default_rng(SEED).uniform(1e-5, 3e-4, 700)
x, stopped = np.ones(4, "float32"), 0
for moment in moments:
    try:
        signal.setitimer(signal.ITIMER_REAL, moment)
        while True:
            run(x=x)  # whose result holds memory of the program
    except Stop:
        stopped += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
print(stopped)
"""


def test_a_signal_as_a_result_ends_is_not_lost() -> None:
    """Of 3,000 handlers 103 had raised where the memory of results was given back, which Python reports and forgets."""
    command = [sys.executable, "-c", RESULTS.replace("SEED", str(time.time_ns()))]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, cwd=Path.cwd())
    assert (done.returncode, done.stdout, done.stderr) == (0, "700\n", "")
