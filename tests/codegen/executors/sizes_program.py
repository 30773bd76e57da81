"""Programs whose sizes come near the limits of 64 bits, run one after another: a line of JSON for each that ended.

    python sizes_program.py EXECUTOR SEED

The name of a program is printed before it runs, so that the one that kills the process is known.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

import weft

NEAR = [0, 1, 2, 3, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**32 + 1, 3037000500, 2**61, 2**62, 2**62 + 1, 2**63 - 1]

_SIZES = ["n + m", "n * m", "n * n * 4 + 5", "n * n * m", "max(n, m) * 2", "n * m // 2", "2 * n + 3 * m"]
_GRAPHS = {
    "zeros": 'R.zeros(({size},), "float32")',
    "bytes": 'R.zeros(({size}, 3), "int8")',
    "empty": 'R.zeros((0, {size}, m), "float32")',
    "broadcast": "R.broadcast_to(x, ({size},))",
    "shape": "R.shape([{size}])",
    "chain": 'R.add(R.zeros(({size},), "float32"), R.ones(({size},), "float32"))',
}
_KERNELS = {
    "store": "A[{index}] = T.float32(7.0)",
    "guarded": "if {index} < 8:\n            if {index} >= 0:\n                A[{index}] = T.float32(7.0)",
    "quotient": "A[({index}) // 4] = T.float32(7.0)",
    "remainder": "A[({index}) % 8] = T.float32(7.0)",
    "bound": "k: T.int64 = {index}\n        A[k] = T.float32(7.0)",
    "loop": "for i in range(n):\n            A[i * m] = T.float32(7.0)\n            if i > 2:\n                break",
    "lazy": "A[0] = T.if_then_else({index} < 8, A[{index}], T.float32(7.0))",
}
_INDICES = ["n * n", "8 * n", "n * m", "n + m", "n * n - m", "n - m", "n * n * n"]
_HEAD = "from weft.script import ir as I, relax as R, tir as T\n\n@I.ir_module\nclass M:\n"


def programs(seed: int, count: int) -> Iterator[tuple[str, str, str, list[Any]]]:
    """(name, text, function, arguments) of random programs."""
    generator = random.Random(seed)
    for _ in range(count):
        n, m = generator.choice(NEAR), generator.choice(NEAR)
        if generator.random() < 0.5:
            kind, size = generator.choice(sorted(_GRAPHS)), generator.choice(_SIZES)
            value = _GRAPHS[kind].format(size=size)
            text = (
                '    @R.function\n    def main(s: R.Shape(["n", "m"]), x: R.Tensor((1,), "float32")):\n'
                f"        n = T.int64()\n        m = T.int64()\n        return {value}\n"
            )
            yield f"{value} n={n} m={m}", _HEAD + text, "main", [(n, m), np.ones(1, "float32")]
        else:
            kind, index = generator.choice(sorted(_KERNELS)), generator.choice(_INDICES)
            body = _KERNELS[kind].format(index=index)
            text = (
                '    @T.prim_func\n    def main(A: T.Buffer((8,), "float32"), n: T.int64, m: T.int64):\n'
                f"        {body}\n"
            )
            yield f"{body} n={n} m={m}", _HEAD + text, "main", [np.ones(8, "float32"), n, m]


def outcome(text: str, function: str, args: list[Any], executor: str) -> Any:
    """What a program gives: a result, the array that it wrote, or the code of its error."""
    try:
        module = weft.parse(text)
        run = weft.interpret(module) if executor == "interpret" else weft.compile(module, executor=executor)
        result = run[function](*args)
    except weft.WeftError as error:
        return ["error", error.code]
    if isinstance(result, np.ndarray):
        return ["array", list(result.shape)]
    return ["value", args[0].tolist() if result is None else list(result)]


def main() -> None:
    """Run all programs."""
    executor, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    for name, text, function, args in programs(seed, count):
        print(json.dumps({"name": name}), flush=True)
        print(json.dumps({"outcome": outcome(text, function, args, executor)}), flush=True)


if __name__ == "__main__":
    main()
