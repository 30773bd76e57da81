"""Products and convolutions of narrow types beside our float32, torch and onnxruntime, interleaved in one process.

    python benchmarks/narrow.py [--threads N] [--only TEXT] [--seconds 0.3]

Columns are GF/s (GOP/s for integers): float32, float16, bfloat16 and int8 -> int32 of weft, then the rivals that are
installed, each in the type of its name (torch: float32, float16, bfloat16; onnxruntime: MatMulInteger and ConvInteger
of uint8 x int8). `weft` is our float32: what a narrow type gains is its column over that one. Least times. What weft
computes is compared with NumPy in float64 first: the farthest result is off by at most FARTHEST of the largest one.
"""

# pyright: reportMissingImports=false
# The rivals are installed in the environment of `make bench` only.

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from shared.timing import least

WANTED = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
WANTED.add_argument("--threads", type=int, default=1)
WANTED.add_argument("--only", default="")
WANTED.add_argument("--seconds", type=float, default=0.3)
Call = Callable[[], Any]
Shape = tuple[int, ...]
FARTHEST = {"float32": 1e-5, "float16": 2e-3, "bfloat16": 1e-2, "int8": 0.0}


@dataclass(frozen=True)
class Case:
    """A product of matrices, batched or not, or a convolution of two operands."""

    name: str
    shapes: tuple[Shape, Shape]
    operations: int
    is_convolution: bool = False


def cases() -> Iterator[Case]:
    """Everything that is measured."""
    for rows, terms, columns in (
        (128, 128, 128),
        (256, 512, 512),
        (512, 512, 512),
        (1024, 1024, 1024),
        (2048, 2048, 2048),
        (512, 4096, 1024),
        (1, 4096, 4096),
        (16, 1024, 1024),
    ):
        shapes = ((rows, terms), (terms, columns))
        yield Case(f"matmul {rows}x{terms}x{columns}", shapes, 2 * rows * terms * columns)
    yield Case("batched 12x128x64x128", ((12, 128, 64), (12, 64, 128)), 2 * 12 * 128 * 64 * 128)
    yield Case("conv 3x3 64@56", ((1, 64, 56, 56), (64, 64, 3, 3)), 2 * 64 * 64 * 9 * 56 * 56, is_convolution=True)
    yield Case("conv 1x1 256->64@28", ((1, 256, 28, 28), (64, 256, 1, 1)), 2 * 256 * 64 * 28 * 28, is_convolution=True)


def text_of(case: Case, dtype: str) -> str:
    """The operator on two parameters."""
    wide = ', out_dtype="int32"' if dtype == "int8" else ""
    padding = case.shapes[1][-1] // 2
    call = f"R.nn.conv2d(a, b, padding={padding}{wide})" if case.is_convolution else f"R.matmul(a, b{wide})"
    a, b = (f'R.Tensor({shape}, "{dtype}")' for shape in case.shapes)
    return (
        "from weft.script import ir as I, relax as R\n\n@I.ir_module\nclass Module:\n    @R.function\n"
        f"    def main(a: {a}, b: {b}):\n        return {call}\n"
    )


def check(case: Case, dtype: str, given: Sequence[Any], got: Any) -> None:
    """Compare a result with what NumPy computes in float64; SystemExit where it is another."""
    import numpy as np

    a, b = (x.astype(np.float64) for x in given)
    if case.is_convolution:
        padding = b.shape[-1] // 2
        a = np.pad(a, [(0, 0), (0, 0), (padding, padding), (padding, padding)])
        windows = np.lib.stride_tricks.sliding_window_view(a, b.shape[2:], axis=(2, 3))
        expected = np.einsum("nchwij,ocij->nohw", windows, b, optimize=True)
    else:
        expected = a @ b
    error = np.abs(got.astype(np.float64) - expected).max() / np.abs(expected).max()
    if not error <= FARTHEST[dtype]:
        raise SystemExit(f"{case.name} in {dtype} is wrong: off by {error:.2g} of the largest result")


def main() -> None:
    """Print the table."""
    arguments = WANTED.parse_args()
    for name in ("OPENBLAS", "OMP", "MKL", "WEFT"):
        os.environ[f"{name}_NUM_THREADS"] = str(arguments.threads)
    import ml_dtypes
    import numpy as np

    import weft

    types = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "int8": np.int8}

    def operands(case: Case, dtype: str) -> list[Any]:
        generator = np.random.default_rng(0)
        if dtype == "int8":
            return [generator.integers(-128, 128, shape).astype(np.int8) for shape in case.shapes]
        return [generator.standard_normal(shape).astype(types[dtype]) for shape in case.shapes]

    def own(case: Case, dtype: str) -> Call:
        given = operands(case, dtype)
        call = weft.compile(weft.parse(text_of(case, dtype)), target=f"llvm -threads={arguments.threads}")["main"]
        check(case, dtype, given, call(*given))
        return lambda: call(*given)

    def of_torch(case: Case) -> dict[str, Call]:
        try:
            import torch
        except ImportError:
            return {}
        torch.set_num_threads(arguments.threads)
        found: dict[str, Call] = {}
        for dtype in ("float32", "float16", "bfloat16"):
            a, b = (torch.from_numpy(x).to(getattr(torch, dtype)) for x in operands(case, "float32"))
            if case.is_convolution:
                padding = case.shapes[1][-1] // 2
                found[f"torch {dtype}"] = lambda a=a, b=b, p=padding: torch.nn.functional.conv2d(a, b, padding=p)
            else:
                found[f"torch {dtype}"] = lambda a=a, b=b: torch.matmul(a, b)
        return found

    def of_onnxruntime(case: Case) -> dict[str, Call]:
        try:
            import onnxruntime as ort
            from onnx import TensorProto, helper
        except ImportError:
            return {}
        kind = "ConvInteger" if case.is_convolution else "MatMulInteger"
        options = {"pads": [case.shapes[1][-1] // 2] * 4} if case.is_convolution else {}
        node = helper.make_node(kind, ["a", "b"], ["y"], **options)
        values = [
            helper.make_tensor_value_info("a", TensorProto.UINT8, case.shapes[0]),
            helper.make_tensor_value_info("b", TensorProto.INT8, case.shapes[1]),
        ]
        result = helper.make_tensor_value_info("y", TensorProto.INT32, None)
        graph = helper.make_graph([node], "g", values, [result])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
        model.ir_version = 8
        settings = ort.SessionOptions()
        settings.intra_op_num_threads = arguments.threads
        session = ort.InferenceSession(model.SerializeToString(), settings, providers=["CPUExecutionProvider"])
        a, b = operands(case, "int8")
        feed = {"a": a.view(np.uint8), "b": b}
        return {"onnxruntime u8s8": lambda: session.run(None, feed)}

    print(f"{arguments.threads} thread(s); GF/s, GOP/s for integers")
    for case in cases():
        if arguments.only not in case.name:
            continue
        calls: dict[str, Call] = {"weft": own(case, "float32")}
        calls |= {dtype: own(case, dtype) for dtype in ("float16", "bfloat16", "int8")}
        for rival in (of_torch, of_onnxruntime):
            try:
                calls |= rival(case)
            except Exception as error:
                print(f"{rival.__name__}: {type(error).__name__}: {str(error)[:80]}")
        times = least(calls, arguments.seconds)
        shown = "  ".join(f"{name} {case.operations / seconds / 1e9:.0f}" for name, seconds in times.items())
        print(f"{case.name:24s}{shown}", flush=True)


if __name__ == "__main__":
    main()
