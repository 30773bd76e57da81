"""Kernels over odd vectors, types, intrinsics and processors, compiled in a child process: an error, never a death.

    PYTHONPATH=src:. python tests/fuzz/odd_vectors.py [--seeds 500] [--start 0]

It ends with exit code 1 where a compile ended its process, or raised what is no error of weft's, with the seeds.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
from collections import Counter

import weft
from weft import WeftError

DTYPES = (
    "bool", "int4", "uint4", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16",
    "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn",
)
LANES = (1, 2, 3, 4, 5, 7, 8, 12, 13, 16, 17, 24, 31, 33, 48, 63, 65, 100, 127, 129, 255, 257, 513, 1000, 2047, 4096)
BINARY = ("+", "-", "*", "//", "%", "/", "<<", ">>", "&", "|", "^", "<", "==")
CALLS = (
    "exp", "tanh", "log", "sin", "cos", "erf", "sqrt", "floor", "round", "pow", "atan2", "popcount", "clz", "abs",
    "isnan", "nextafter", "ldexp", "fma", "rsqrt", "sigmoid", "log1p", "max", "min", "q_multiply_shift", "copysign",
)
INTRINSICS = (
    "llvm.sqrt", "llvm.fma", "llvm.ctpop", "llvm.ctlz", "llvm.bswap", "llvm.bitreverse", "llvm.smax", "llvm.umin",
    "llvm.sadd.sat", "llvm.fshl", "llvm.exp", "llvm.powi", "llvm.vector.reduce.add", "llvm.abs", "llvm.canonicalize",
    "llvm.minimum", "llvm.is.fpclass", "llvm.x86.avx2.pmadd.wd", "llvm.matrix.multiply", "llvm.experimental.stepvector",
)
FLAGS = (
    "", "-mcpu=x86-64", "-mcpu=x86-64-v2", "-mcpu=x86-64-v3", "-mattr=-avx", "-mattr=-sse2", "-mattr=-avx2,-fma",
    "-mattr=-sse", "-mattr=-cmov", "-mattr=-avx512f", "-mtriple=thumbv7m-none-eabi -mcpu=cortex-m3",
    "-mcpu=cortex-m0", "-mtriple=wasm32-unknown-unknown", "-mtriple=aarch64-linux-gnu",
    "-mtriple=aarch64-linux-gnu -mattr=-neon", "-mtriple=riscv64-linux-gnu", "-mtriple=riscv64-linux-gnu -mattr=+v",
)


def program(seed: int) -> tuple[str, str]:
    """The text of a kernel, and the target it is for."""
    draw = random.Random(seed)
    dtype, other, lanes = draw.choice(DTYPES), draw.choice(DTYPES), draw.choice(LANES)
    size = max(lanes, 8)
    step = draw.choice((1, 1, 1, 2, 3)) if lanes * 3 < size else 1
    vector = f"x[T.Ramp(0, {step}, {lanes})]" if lanes > 1 else "x[3]"
    second = draw.choice((vector, f"T.Broadcast(x[1], {lanes})" if lanes > 1 else "x[1]", f"y[{vector[2:]}"))
    of = other if lanes == 1 else f"{other}x{lanes}"
    own = dtype if lanes == 1 else f"{dtype}x{lanes}"
    kind = draw.randrange(7)
    if kind == 0:
        value = f"{vector} {draw.choice(BINARY)} {second}"
    elif kind == 1:
        name = draw.choice(CALLS)
        value = f"T.{name}({', '.join([vector, second, second][:draw.choice((1, 1, 2, 3))])})"
    elif kind == 2:
        arguments = [vector, second, second][: draw.choice((1, 2, 3))]
        value = f'T.call_llvm_intrin("{draw.choice((own, of))}", "{draw.choice(INTRINSICS)}", {", ".join(arguments)})'
    elif kind == 3:
        value = f'T.Cast("{of}", {vector}) {draw.choice(BINARY)} T.Cast("{of}", {second})'
    elif kind == 4:
        value = f"T.Select({vector} < {second}, {second}, {vector})"
    elif kind == 5:
        value = f"T.Shuffle([{vector}], [{draw.randrange(lanes)}])"
    else:
        value = f"T.if_then_else({vector} == {second}, {vector}, {second})"
    place = f"T.Ramp(0, 1, {lanes})" if lanes > 1 else "2"
    result = draw.choice((dtype, other))
    text = (
        f'@T.prim_func\ndef main(x: T.Buffer(({size},), "{dtype}"), y: T.Buffer(({size},), "{dtype}"), '
        f'z: T.Buffer(({size},), "{result}")):\n    z[{place}] = {value}\n'
    )
    return text, f"llvm {draw.choice(FLAGS)}".strip()


def outcome(seed: int) -> str:
    """What became of a program: compiled, or the code of the error."""
    text, target = program(seed)
    try:
        weft.compile(weft.parse(text), target, opt=seed % 4)
    except WeftError as error:
        return str(error.code)
    return "compiled"


def child(start: int, count: int) -> int:
    """Compile programs one after another; each seed is told before its program, each outcome after it."""
    for seed in range(start, start + count):
        print(f"{seed} ", end="", flush=True)
        try:
            print(outcome(seed), flush=True)
        except Exception as error:
            print(f"raised {type(error).__name__}: {str(error)[:100]!r}", flush=True)
    return 0


def sweep(start: int, count: int) -> tuple[Counter[str], list[str]]:
    """The outcomes of the seeds, and the findings."""
    found: Counter[str] = Counter()
    findings: list[str] = []
    seed, end = start, start + count
    while seed < end:
        command = [sys.executable, __file__, "--child", "--start", str(seed), "--seeds", str(end - seed)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        lines = done.stdout.splitlines()
        for line in lines:
            number, _, what = line.partition(" ")
            seed = int(number) + 1
            what = what or f"died with {done.returncode}: {(done.stderr.strip().splitlines() or [''])[0][:120]}"
            found[what.partition(":")[0]] += 1
            if what.startswith(("raised", "died")):
                findings.append(f"seed {number}: {what}")
        if not lines:
            raise RuntimeError(done.stderr)
    return found, findings


def main() -> int:
    """Run; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=500)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--child", action="store_true")
    options = parser.parse_args()
    if options.child:
        return child(options.start, options.seeds)
    found, findings = sweep(options.start, options.seeds)
    for what, times in found.most_common():
        print(f"{times:6} {what}")
    print(*findings, sep="\n")
    return 1 if findings else 0


if __name__ == "__main__":
    raise SystemExit(main())
