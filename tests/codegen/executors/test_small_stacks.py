"""Threads with a small stack read texts that nest deeply, and run kernels with much scratch memory.

Kernels whose frames are larger than what is left are an error there.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import weft

NESTED = '''
text = """
@T.prim_func
def main(a: T.Buffer((4,), "float32")):
    a[0] = """ + "(" * 150 + "a[1]" + ")" * 150

def call():
    weft.parse(text)
    try:
        weft.parse(text + ")")
    except weft.WeftError as error:
        print(error.code)
'''
SCRATCH = """
lines = ["@T.prim_func", 'def main(a: T.Buffer((4,), "float32"), b: T.Buffer((4,), "float32")):']
for k in range(8):
    lines.append(f'    s{k} = T.alloc_buffer((4000,), "float32")')
    lines += ["    for i in range(4000):", f"        s{k}[i] = a[i % 4]"]
lines.append("    b[0] = " + " + ".join(f"s{k}[3]" for k in range(8)))
main = weft.compile(weft.parse("\\n".join(lines)), opt=0)["main"]
a, b = np.ones(4, "float32"), np.zeros(4, "float32")

def call():
    main(a, b)
    print(b[0])
"""
WIDE = """
text = [
    "@I.ir_module",
    "class M:",
    "    @T.prim_func(private=True)",
    '    def wide(a: T.Buffer((8, 512), "float32"), b: T.Buffer((8, 512), "float32")):',
    *(f"        v{k} = a[{k}, T.ramp(0, 1, 512)]" for k in range(8)),
    *(f"        b[{k}, T.ramp(0, 1, 512)] = " + " + ".join(f"v{(k * j) % 8}" for j in range(8)) for k in range(8)),
    "    @R.function",
    '    def main(x: R.Tensor((8, 512), "float32")) -> R.Tensor((8, 512), "float32"):',
    '        return R.call_tir(M.wide, (x,), out_ty=R.Tensor((8, 512), "float32"))',
]
module = weft.parse("\\n".join(text))
mains = [weft.compile(module, executor=kind, opt=0)["main"] for kind in ("native", "vm", "graph", "aot")]

def call():
    for main in mains:
        try:
            print(main(np.ones((8, 512), "float32"))[0, 0])
        except weft.WeftError as error:
            print(error.code)
"""
RECURSIVE = """
text = [
    "@I.ir_module",
    "class M:",
    "    @T.prim_func",
    '    def down(a: T.Buffer((4096,), "float32"), b: T.Buffer((4096,), "float32"), n: T.int64):',
    *(f"        v{k} = a[T.ramp(0, 1, 4096)] + T.broadcast(T.float32({k}), 4096)" for k in range(3)),
    "        if n > 0:",
    "            M.down(a, b, n - 1)",
    "        b[T.ramp(0, 1, 4096)] = b[T.ramp(0, 1, 4096)] + v0 + v1 + v2",
]
main = weft.compile(weft.parse("\\n".join(text)), opt=0)["down"]
a, b = np.ones(4096, "float32"), np.zeros(4096, "float32")

def call():
    for depth in (2, 10**7):
        try:
            main(a, b, depth)
            print(b[0])
        except weft.WeftError as error:
            print(error.code)
"""
THREAD = """
threading.stack_size({kilobytes} << 10)
thread = threading.Thread(target=call)
thread.start()
thread.join()
"""


CALLED_BACK = '''
module = weft.parse("""
@R.function(pure=False)
def main(x: R.Tensor((4,), "float32")):
    y = R.call_packed("again", x, ty_args=[R.Tensor((4,), "float32")])
    return y
""")
mains = [weft.interpret(module)["main"], *(weft.compile(module, executor=kind)["main"] for kind in ("native", "vm"))]

def call():
    for main in mains:
        weft.register_func("again", main, override=True)
        try:
            main(np.ones(4, "float32"))
        except weft.WeftError as error:
            print(error.code)
'''


@pytest.mark.parametrize(
    ("program", "kilobytes", "expected"), [(NESTED, 64, "W101"), (NESTED, 0, "W101"), (SCRATCH, 48, "8.0")]
)
def test_a_small_stack_is_enough(program: str, kilobytes: int, expected: str) -> None:
    assert printed(program, kilobytes) == [expected]


@pytest.mark.parametrize(("kilobytes", "expected"), [(64, "W951"), (0, "8.0")])
def test_frames_that_the_stack_has_no_room_for_are_an_error(kilobytes: int, expected: str) -> None:
    assert printed(WIDE, kilobytes) == [expected] * 4


@pytest.mark.parametrize(("kilobytes", "expected"), [(64, "W951"), (1024, "18.0")])
def test_recursion_asks_for_frames_as_large_as_they_are(kilobytes: int, expected: str) -> None:
    assert printed(RECURSIVE, kilobytes) == [expected, "W951"]


@pytest.mark.parametrize("kilobytes", [64, 128])
def test_functions_that_call_what_called_them_are_stopped(kilobytes: int) -> None:
    assert printed(CALLED_BACK, kilobytes) == ["W951"] * 3


def printed(program: str, kilobytes: int) -> list[str]:
    """The words that `call` of a program prints in a thread with so many kilobytes of stack (0: the usual one)."""
    sources = str(Path(weft.__file__).parent.parent)
    head = f"import sys, threading\nsys.path.insert(0, {sources!r})\nimport numpy as np\nimport weft\n"
    text = head + program + THREAD.format(kilobytes=kilobytes)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, (done.returncode, done.stderr[-500:])
    return done.stdout.split()
