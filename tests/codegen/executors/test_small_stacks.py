"""Threads with a small stack read texts that nest deeply, and run kernels with much scratch memory."""

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
THREAD = """
threading.stack_size({kilobytes} << 10)
thread = threading.Thread(target=call)
thread.start()
thread.join()
"""


@pytest.mark.parametrize(
    ("program", "kilobytes", "expected"), [(NESTED, 64, "W101"), (NESTED, 0, "W101"), (SCRATCH, 48, "8.0")]
)
def test_a_small_stack_is_enough(program: str, kilobytes: int, expected: str) -> None:
    sources = str(Path(weft.__file__).parent.parent)
    head = f"import sys, threading\nsys.path.insert(0, {sources!r})\nimport numpy as np\nimport weft\n"
    text = head + program + THREAD.format(kilobytes=kilobytes)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, (done.returncode, done.stderr[-500:])
    assert done.stdout.split() == [expected]
