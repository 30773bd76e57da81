"""What a call returns lives as long as somebody holds it, whatever becomes of the executable."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

PROGRAM = """
import gc
import numpy as np
import weft

module = weft.parse('''
@R.function
def main(x: R.Tensor(("n", 4), "float32")) -> R.Tuple(R.Tensor(("n", 4), "float32"), R.Tensor(("n", 4), "float32")):
    return (R.nn.relu(x), R.negative(x))
''')
first, second = weft.compile(module)["main"](np.ones((3, 4), "float32"))
del module
gc.collect()
print(first.sum(), second.sum())
view = first[1:]
del first, second
gc.collect()
print(view.sum())
del view
gc.collect()
print("alive")
"""


def test_results_outlive_the_executable_that_made_them() -> None:
    """In a process of its own: releasing memory through unloaded code would end this one."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    run = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == ["12.0", "-12.0", "8.0", "alive"]
