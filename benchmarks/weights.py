"""Products with weights in few bits beside onnxruntime's MatMulNBits, interleaved in one process.

    python benchmarks/weights.py [--threads N] [--only TEXT] [--seconds 0.3]

A row of the table is a product of float32 rows with a constant matrix of 4 or 8 bits, a scale for 32 weights. Columns
are milliseconds: weft with float32 activations beside onnxruntime of accuracy level 1, weft with activations quantized
to int8 ("-a8") beside onnxruntime of level 4, and the ratio of times of each pair (above 1: weft takes less). The last
columns are what weft reads of weights and scales in GB/s, and what a dot product of as many bytes with themselves
reads. Least times.
"""

# pyright: reportMissingImports=false
# The rivals are installed in the environment of `make bench` only.

from __future__ import annotations

import argparse
import itertools
import os
from collections.abc import Callable
from typing import Any

from shared.timing import least

WANTED = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
WANTED.add_argument("--threads", type=int, default=1)
WANTED.add_argument("--only", default="")
WANTED.add_argument("--seconds", type=float, default=0.3)
Call = Callable[[], Any]
GROUP = 32
SHAPES = ((1, 2048, 2048), (1, 4096, 4096), (1, 4096, 8192), (1, 8192, 8192), (4, 4096, 4096), (128, 2048, 2048))


def own(weights: Any, x: Any, scheme: str, threads: int) -> Call:
    """weft's product under a scheme of QuantizeWeights."""
    import weft
    from weft.transform import BindParams, QuantizeWeights

    (rows, terms), columns = x.shape, weights.shape[1]
    text = f"""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(({rows}, {terms}), "float32"), w: R.Tensor(({terms}, {columns}), "float32")):
        return R.matmul(x, w)
"""
    module = weft.parse(text)
    assert isinstance(module, weft.IRModule)
    quantized = QuantizeWeights(scheme)(BindParams("main", {"w": weights})(module))
    call = weft.compile(quantized, target=f"llvm -threads={threads}")["main"]
    return lambda: call(x)


def of_onnxruntime(x: Any, columns: int, width: int, level: int, threads: int) -> Call | None:
    """MatMulNBits of random weights; None where onnxruntime is not installed."""
    try:
        import onnxruntime
        from onnx import TensorProto, helper
    except ImportError:
        return None
    import numpy as np

    rows, terms = x.shape
    choices = np.random.default_rng(0)
    codes = choices.integers(0, 256, (columns, terms // GROUP, GROUP * width // 8)).astype(np.uint8)
    scales = choices.uniform(0.001, 0.01, columns * terms // GROUP).astype(np.float32)
    node = helper.make_node(
        "MatMulNBits",
        ["x", "codes", "scales"],
        ["y"],
        domain="com.microsoft",
        K=terms,
        N=columns,
        bits=width,
        block_size=GROUP,
        accuracy_level=level,
    )
    graph = helper.make_graph(
        [node],
        "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, terms])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [rows, columns])],
        [
            helper.make_tensor("codes", TensorProto.UINT8, codes.shape, codes.tobytes(), raw=True),
            helper.make_tensor("scales", TensorProto.FLOAT, scales.shape, scales.tobytes(), raw=True),
        ],
    )
    sets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    model = helper.make_model(graph, opset_imports=sets, ir_version=9).SerializeToString()
    session = onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"])
    return lambda: session.run(None, {"x": x})


def main() -> None:
    """Print the table."""
    arguments = WANTED.parse_args()
    for name in ("OPENBLAS", "OMP", "MKL", "WEFT"):
        os.environ[f"{name}_NUM_THREADS"] = str(arguments.threads)
    import numpy as np

    print(
        f"{'rows x terms x columns':24s}"
        + "".join(
            f"{name:>10s}" for name in ("weft", "ort", "ratio", "weft-a8", "ort", "ratio", "GB/s", "a8 GB/s", "memory")
        )
    )
    for (rows, terms, columns), width in itertools.product(SHAPES, (4, 8)):
        name = f"{rows}x{terms}x{columns} int{width}"
        if arguments.only not in name:
            continue
        choices = np.random.default_rng(1)
        weights = choices.standard_normal((terms, columns)).astype(np.float32)
        x = choices.standard_normal((rows, terms)).astype(np.float32)
        size = terms * columns * (width / 8 + 2 / GROUP)
        calls: dict[str, Call] = {}
        for suffix, level in (("", 1), ("-a8", 4)):
            calls[f"weft{suffix}"] = own(weights, x, f"int{width}{suffix}", arguments.threads)
            rival = of_onnxruntime(x, columns, width, level, arguments.threads)
            if rival is not None:
                calls[f"ort{suffix}"] = rival
        plain = np.ones(int(size) // 8)
        calls["memory"] = lambda plain=plain: plain.dot(plain)
        found = least(calls, arguments.seconds)
        row = []
        for suffix in ("", "-a8"):
            mine, theirs = found[f"weft{suffix}"], found.get(f"ort{suffix}", float("nan"))
            row += [mine * 1e3, theirs * 1e3, theirs / mine]
        row += [size / found[key] / 1e9 for key in ("weft", "weft-a8", "memory")]
        print(f"{name:24s}" + "".join(f"{value:10.3f}" for value in row), flush=True)


if __name__ == "__main__":
    main()
