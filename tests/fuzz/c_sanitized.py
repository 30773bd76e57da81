"""Generated C of random kernels under the sanitizers of gcc: no undefined behaviour, no memory of others.

    PYTHONPATH=src:. python tests/fuzz/c_sanitized.py [--seeds 100] [--start 0]

It ends with exit code 1 and the seed for a finding.

Each kernel is taken for the sizes of random arguments, compiled with -fsanitize=undefined,address, called, and its
results are compared with the reference interpreter. The address sanitizer has to be loaded before Python, so the script
runs itself again.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
from tests.codegen.backends.c import test_c

import weft
from weft.codegen.host.kernels import written_positions
from weft.codegen.host.single_kernel import with_entry
from weft.ir import Function, IRModule
from weft.ir.kernel.prim_dim import buffer_symbols
from weft.ir.structure.visit import substitute
from weft.ir.tensor import Buffer, IntImm
from weft.testing import random_arguments, random_kernel
from weft.testing.checks import assert_agree

ROOT = Path(__file__).resolve().parents[2]
FLAGS = ["-fsanitize=undefined,address", "-fno-sanitize-recover=all", "-Wno-unused"]


def checked(seed: int, folder: Path) -> str:
    """What became of a kernel: same, stopped (a check of its own), or why it was left out."""
    test_c.SANITIZE[:] = FLAGS
    kernel = random_kernel(seed)
    arguments = random_arguments(kernel, seed)
    sizes: dict[object, object] = {}
    for param, value in zip(kernel.params, arguments, strict=True):
        if isinstance(param, Buffer):
            sizes.update(
                {
                    s: IntImm(n, s.dtype)
                    for s, n in zip(param.shape, value.shape, strict=True)
                    if s in buffer_symbols(kernel)
                }
            )
    fixed = substitute(kernel, sizes)
    try:
        module, _ = with_entry(test_c.lowered(IRModule({kernel.name: fixed})))
        source = test_c.generate(module, model="model", function=module_entry(module))
        expected = [value.copy() for value in arguments]
        weft.interpret(IRModule({kernel.name: fixed}))[kernel.name](*expected)
    except weft.WeftError as error:
        return f"left out: {str(error)[:60]}"
    written = written_positions(kernel)
    got = [value.copy() for value in arguments]
    inputs = [stored(value) for index, value in enumerate(got) if index not in written]
    outputs = [stored(value) for index, value in enumerate(got) if index in written]
    status = test_c.run(source, "model", inputs, outputs, folder)
    if status:
        return "stopped by a check"
    for index, (want, have) in enumerate(zip(expected, got, strict=True)):
        assert_agree(want, have, have, 1e-6, f"argument {index} of seed {seed}")
    return "same"


def stored(array: np.ndarray) -> np.ndarray:
    """The bytes of an array, which is written in place."""
    assert array.flags.c_contiguous
    return array


def module_entry(module: IRModule) -> str:
    """The name of the one graph function."""
    return next(name for name, function in module.items() if isinstance(function, Function))


def main() -> int:
    """Run the seeds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--start", type=int, default=0)
    options = parser.parse_args()
    if "asan" not in os.environ.get("LD_PRELOAD", ""):
        library = subprocess.check_output(["gcc", "-print-file-name=libasan.so"], text=True).strip()
        preloaded = {**os.environ, "LD_PRELOAD": library, "ASAN_OPTIONS": "detect_leaks=0", "PYTHONMALLOC": "malloc"}
        return subprocess.run([sys.executable, *sys.argv], env=preloaded, check=False).returncode
    found: Counter[str] = Counter()
    for seed in range(options.start, options.start + options.seeds):
        print(f"seed {seed}", end="\r", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            found[checked(seed, Path(folder))] += 1
    for what, count in found.most_common():
        print(f"{count:6} {what}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
