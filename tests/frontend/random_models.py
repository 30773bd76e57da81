# pyright: reportMissingImports=false
"""Random ONNX models beside onnxruntime: python tests/frontend/random_models.py [--count 200] [--start 0] [--show SEED]

A model is a random graph of 4 to 20 nodes over tensors whose sizes may be symbols: elementwise operators, products,
norms, reductions, shapes that the model computes, windows, choices, loops. Each is imported, compiled once and run at
two sizes, and held against onnxruntime. Printed is each that is not right, and how many are.
"""

from __future__ import annotations

import argparse
import collections
import random
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime
from onnx import ModelProto, TensorProto, helper, numpy_helper
from outcomes import failed

import weft
from weft.frontend import import_report

Dims = tuple[Any, ...]  # numbers, or names of symbols
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
_UNARY = (
    "Relu",
    "Sigmoid",
    "Tanh",
    "Neg",
    "Abs",
    "Erf",
    "Softplus",
    "Softsign",
    "HardSwish",
    "HardSigmoid",
    "Elu",
    "Selu",
    "LeakyRelu",
    "Floor",
    "Ceil",
    "Round",
    "Sign",
    "Identity",
    "Mish",
    "Cos",
    "Sin",
    "Atan",
    "Gelu",
    "Celu",
)
_BINARY = ("Add", "Sub", "Mul", "Max", "Min", "Mean", "Sum")
_REDUCTIONS = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceSumSquare", "ReduceLogSumExp")


class Maker:
    """One random model: nodes, constants and the tensors that nodes may read."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.rng = np.random.default_rng(seed)
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.tensors: list[tuple[str, Dims]] = []
        self.count = 0

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def constant(self, value: Any, dtype: str = "float32") -> str:
        name = self.name()
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def node(self, operator: str, inputs: list[str], dims: Dims, **attributes: Any) -> tuple[str, Dims]:
        name = self.name()
        self.nodes.append(helper.make_node(operator, inputs, [name], name=f"{operator}_{name}", **attributes))
        self.tensors.append((name, dims))
        return name, dims

    def pick(self, rank: int | None = None, least: int = 0) -> tuple[str, Dims] | None:
        """A tensor, rather one of the newest."""
        fitting = [t for t in self.tensors if (rank is None or len(t[1]) == rank) and len(t[1]) >= least]
        return self.random.choice(fitting[-6:]) if fitting else None

    # What a node may be; each returns whether it made one

    def unary(self) -> bool:
        x, dims = self.pick() or self.tensors[0]
        self.node(self.random.choice(_UNARY), [x], dims)
        return True

    def binary(self) -> bool:
        x, dims = self.pick() or self.tensors[0]
        others = [t for t in self.tensors if t[1] == dims]
        other = self.random.choice(others)[0] if self.random.random() < 0.5 else self.fitting_constant(dims)
        self.node(self.random.choice(_BINARY), [x, other], dims)
        return True

    def fitting_constant(self, dims: Dims) -> str:
        cut = self.random.randint(0, len(dims))
        shape = [size if isinstance(size, int) and self.random.random() < 0.7 else 1 for size in dims[cut:]]
        return self.constant(self.rng.normal(size=shape))

    def power(self) -> bool:
        x, dims = self.pick() or self.tensors[0]
        exponent = self.constant(self.random.choice([0.5, 2.0, 1.0, 3.0]))
        self.node("Pow", [self.node("Abs", [x], dims)[0], exponent], dims)
        return True

    def matmul(self) -> bool:
        found = self.pick(least=1)
        if found is None or not isinstance(found[1][-1], int):
            return False
        (x, dims), columns = found, self.random.randint(1, 6)
        weight = self.constant(self.rng.normal(size=(dims[-1], columns)) / dims[-1])
        self.node("MatMul", [x, weight], (*dims[:-1], columns))
        return True

    def self_matmul(self) -> bool:
        found = self.pick(least=2)
        if found is None:
            return False
        x, dims = found
        order = [*range(len(dims) - 2), len(dims) - 1, len(dims) - 2]
        turned, _ = self.node("Transpose", [x], tuple(dims[a] for a in order), perm=order)
        self.node("MatMul", [x, turned], (*dims[:-1], dims[-2]))
        return True

    def softmax(self) -> bool:
        found = self.pick(least=1)
        if found is None:
            return False
        x, dims = found
        self.node(self.random.choice(["Softmax", "LogSoftmax"]), [x], dims, axis=self.random.randrange(-1, len(dims)))
        return True

    def norm(self) -> bool:
        found = self.pick(least=2)
        if found is None or not isinstance(found[1][-1], int):
            return False
        x, dims = found
        scale, bias = (self.constant(self.rng.normal(size=dims[-1:])) for _ in range(2))
        self.node("LayerNormalization", [x, scale, bias], dims, axis=-1)
        return True

    def reduction(self) -> bool:
        found = self.pick(least=1)
        if found is None:
            return False
        x, dims = found
        axes = sorted(self.random.sample(range(len(dims)), self.random.randint(1, len(dims))))
        keeps = self.random.randint(0, 1)
        left = tuple(1 if a in axes else size for a, size in enumerate(dims) if keeps or a not in axes)
        signed = [a - len(dims) if self.random.random() < 0.3 else a for a in axes]
        self.node(self.random.choice(_REDUCTIONS), [x, self.constant(signed, "int64")], left, keepdims=keeps)
        return True

    def transpose(self) -> bool:
        found = self.pick(least=2)
        if found is None:
            return False
        x, dims = found
        order = self.random.sample(range(len(dims)), len(dims))
        self.node("Transpose", [x], tuple(dims[a] for a in order), perm=order)
        return True

    def flatten_by_shape(self) -> bool:
        """(a, b, ...) as (a, -1), with sizes that the model computes."""
        found = self.pick(least=2)
        if found is None:
            return False
        x, dims = found
        shape = self.helper("Shape", [x])
        first = self.helper("Gather", [shape, self.constant(0, "int64")], axis=0)
        first = self.helper("Unsqueeze", [first, self.constant([0], "int64")])
        sizes = self.helper("Concat", [first, self.constant([-1], "int64")], axis=0)
        rest = [size for size in dims[1:] if not isinstance(size, int)]
        whole = int(np.prod([size for size in dims[1:] if isinstance(size, int)]))
        last = whole if not rest else rest[0] if whole == 1 and len(rest) == 1 else f"{self.name()}_"
        self.node("Reshape", [x, sizes], (dims[0], last))
        return True

    def helper(self, operator: str, inputs: list[str], **attributes: Any) -> str:
        name = self.name()
        self.nodes.append(helper.make_node(operator, inputs, [name], **attributes))
        return name

    def unsqueeze(self) -> bool:
        x, dims = self.pick() or self.tensors[0]
        if len(dims) > 3:
            return False
        axis = self.random.randint(0, len(dims))
        self.node("Unsqueeze", [x, self.constant([axis], "int64")], (*dims[:axis], 1, *dims[axis:]))
        return True

    def squeeze(self) -> bool:
        x, dims = self.pick() or self.tensors[0]
        axes = [a for a, size in enumerate(dims) if size == 1]
        if not axes:
            return False
        self.node("Squeeze", [x, self.constant(axes, "int64")], tuple(size for size in dims if size != 1))
        return True

    def concat(self) -> bool:
        found = self.pick(least=1)
        if found is None:
            return False
        x, dims = found
        axis = self.random.randrange(len(dims))
        total = 2 * dims[axis] if isinstance(dims[axis], int) else f"{self.name()}_"
        self.node("Concat", [x, self.node("Neg", [x], dims)[0]], (*dims[:axis], total, *dims[axis + 1 :]), axis=axis)
        return True

    def take_slice(self) -> bool:
        found = self.pick(least=1)
        if found is None or not any(isinstance(size, int) and size > 1 for size in found[1]):
            return False
        x, dims = found
        axis = self.random.choice([a for a, size in enumerate(dims) if isinstance(size, int) and size > 1])
        start, step = self.random.randrange(dims[axis]), self.random.choice([1, 1, 2, -1])
        end = self.random.randint(start + 1, dims[axis]) if step > 0 else -1000
        size = len(range(*slice(start, end if step > 0 else None, step).indices(dims[axis])))
        arguments = [self.constant([value], "int64") for value in (start, end, axis, step)]
        self.node("Slice", [x, *arguments], (*dims[:axis], size, *dims[axis + 1 :]))
        return True

    def gather(self) -> bool:
        found = self.pick(least=1)
        if found is None or not any(isinstance(size, int) for size in found[1]):
            return False
        x, dims = found
        axis = self.random.choice([a for a, size in enumerate(dims) if isinstance(size, int)])
        index = self.rng.integers(-dims[axis], dims[axis], self.random.choice([(), (3,), (2, 2)]))
        made = (*dims[:axis], *index.shape, *dims[axis + 1 :])
        self.node("Gather", [x, self.constant(index, "int64")], made, axis=axis)
        return len(dims) + index.ndim - 1 <= 5

    def pad(self) -> bool:
        found = self.pick(least=1)
        if found is None or not isinstance(found[1][-1], int):
            return False
        x, dims = found
        before, after = self.random.randint(0, 2), self.random.randint(0, 2)
        mode = self.random.choice(["constant", "edge", "reflect"]) if dims[-1] > 2 else "constant"
        pads = [0] * (len(dims) - 1) + [before] + [0] * (len(dims) - 1) + [after]
        self.node("Pad", [x, self.constant(pads, "int64")], (*dims[:-1], dims[-1] + before + after), mode=mode)
        return True

    def expand_by_shape(self) -> bool:
        """A row spread over a tensor whose shape the model asks for."""
        found = self.pick(least=2)
        if found is None:
            return False
        x, dims = found
        row = self.constant(self.rng.normal(size=dims[-1:] if isinstance(dims[-1], int) else (1,)))
        self.node("Expand", [row, self.helper("Shape", [x])], dims)
        return True

    def choice(self) -> bool:
        x, dims = self.pick() or self.tensors[0]
        test = self.helper(self.random.choice(["Greater", "LessOrEqual"]), [x, self.constant(0.1)])
        self.node("Where", [test, x, self.constant(self.random.random())], dims)
        return True

    def clip(self) -> bool:
        x, dims = self.pick() or self.tensors[0]
        self.node("Clip", [x, self.constant(-0.7), self.constant(0.9) if self.random.random() < 0.5 else ""], dims)
        return True

    def whole(self) -> bool:
        x, dims = self.pick() or self.tensors[0]
        limited, _ = self.node("Clip", [x, self.constant(-9.0), self.constant(9.0)], dims)
        whole = self.helper("Cast", [limited], to=INT64)
        even = self.helper("Mod", [whole, self.constant(3, "int64")])
        self.node("Cast", [even], dims, to=FLOAT)
        return True

    def running(self) -> bool:
        found = self.pick(least=1)
        if found is None:
            return False
        x, dims = found
        axis = self.constant(self.random.randrange(len(dims)), "int64")
        self.node("CumSum", [x, axis], dims, exclusive=self.random.randint(0, 1), reverse=self.random.randint(0, 1))
        return True

    def greatest(self) -> bool:
        found = self.pick(least=1)
        if found is None or not isinstance(found[1][-1], int):
            return False
        x, dims = found
        count = self.random.randint(1, dims[-1])
        values, places = self.name(), self.name()
        self.nodes.append(helper.make_node("TopK", [x, self.constant([count], "int64")], [values, places], axis=-1))
        self.tensors.append((values, (*dims[:-1], count)))
        return True

    def windows(self) -> bool:
        found = self.pick(4)
        if found is None or not all(isinstance(size, int) for size in found[1][1:]) or min(found[1][2:]) < 3:
            return False
        (x, (b, c, h, w)), kind = found, self.random.choice(["Conv", "MaxPool", "AveragePool", "BatchNormalization"])
        if kind == "BatchNormalization":
            parts = [self.constant(np.abs(self.rng.normal(size=c)) + 0.5) for _ in range(4)]
            self.node(kind, [x, *parts], (b, c, h, w))
            return True
        stride, pad = self.random.randint(1, 2), self.random.randint(0, 1)
        size = tuple((n + 2 * pad - 3) // stride + 1 for n in (h, w))
        options = {"kernel_shape": [3, 3], "strides": [stride] * 2, "pads": [pad] * 4}
        if kind != "Conv":
            self.node(kind, [x], (b, c, *size), **options)
            return True
        made = self.random.randint(1, 4)
        weight = self.constant(self.rng.normal(size=(made, c, 3, 3)) / 3)
        self.node("Conv", [x, weight, self.constant(self.rng.normal(size=made))], (b, made, *size), **options)
        return True

    def branches(self) -> bool:
        x, dims = self.pick() or self.tensors[0]
        total = self.helper("ReduceSum", [x], keepdims=0)
        test = self.helper("Greater", [total, self.constant(0.1)])  # sums that cancel are 0 but for roundings
        graphs = []
        for operator in ("Neg", "Tanh"):
            name = self.name()
            info = helper.make_tensor_value_info(name, FLOAT, None)
            graphs.append(helper.make_graph([helper.make_node(operator, [x], [name])], operator, [], [info]))
        self.node("If", [test], dims, then_branch=graphs[0], else_branch=graphs[1])
        return True

    def steps(self) -> bool:
        """A loop that carries a tensor, as often as a tensor is long."""
        found = self.pick(least=1)
        if found is None:
            return False
        x, dims = found
        index, going, old, new, still = (self.name() for _ in range(5))
        half = self.constant(0.5)
        body = helper.make_graph(
            [
                helper.make_node("Mul", [old, half], [f"{new}_"]),
                helper.make_node("Add", [f"{new}_", x], [new]),
                helper.make_node("Identity", [going], [still]),
            ],
            "body",
            [
                helper.make_tensor_value_info(index, INT64, []),
                helper.make_tensor_value_info(going, TensorProto.BOOL, []),
                helper.make_tensor_value_info(old, FLOAT, [None] * len(dims)),
            ],
            [
                helper.make_tensor_value_info(still, TensorProto.BOOL, []),
                helper.make_tensor_value_info(new, FLOAT, [None] * len(dims)),
            ],
        )
        shape = self.helper("Shape", [x])
        count = self.helper("Gather", [shape, self.constant(0, "int64")], axis=0)
        self.node("Loop", [count, "", x], dims, body=body)
        return True

    def made(self) -> tuple[ModelProto, list[tuple[str, Dims]]]:
        """The model and its inputs."""
        shapes: list[Dims] = [("n", 4), ("n", "m", 6), ("n", 3, 8, 8), (5, "m"), ("n", 2, 3)]
        inputs = [(self.name(), dims) for dims in self.random.sample(shapes, self.random.randint(1, 2))]
        self.tensors.extend(inputs)
        made: list[Callable[[], bool]] = [
            self.unary,
            self.unary,
            self.binary,
            self.binary,
            self.power,
            self.matmul,
            self.self_matmul,
            self.softmax,
            self.norm,
            self.reduction,
            self.transpose,
            self.flatten_by_shape,
            self.unsqueeze,
            self.squeeze,
            self.concat,
            self.take_slice,
            self.gather,
            self.pad,
            self.expand_by_shape,
            self.choice,
            self.clip,
            self.whole,
            self.running,
            self.greatest,
            self.windows,
            self.windows,
            self.branches,
            self.steps,
        ]
        for _ in range(self.random.randint(4, 20)):
            self.random.choice(made)()
        names = [name for name, _ in self.tensors[len(inputs) :]] or [inputs[0][0]]
        outputs = sorted({*self.random.sample(names, min(2, len(names))), names[-1]})
        graph = helper.make_graph(
            self.nodes,
            "random",
            [helper.make_tensor_value_info(name, FLOAT, dims) for name, dims in inputs],
            [helper.make_empty_tensor_value_info(name) for name in outputs],
            self.constants,
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), inputs


def unlike(found: Any, wanted: Any) -> str:
    """What differs, empty when nothing does."""
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return f"{found.dtype}{list(found.shape)}, expected {wanted.dtype}{list(wanted.shape)}"
    scale = max(float(np.nanmax(np.abs(wanted), initial=1.0)), 1.0)
    close = np.isclose(found, wanted, rtol=1e-3, atol=1e-4 * scale, equal_nan=True)
    share = close.mean() if close.size else 1.0
    return "" if share == 1.0 else f"{share:.0%} of the elements are equal"


def status(seed: int) -> tuple[str, str]:
    """(right, wrong, import, compile, run, invalid or python, detail) of one model."""
    model, inputs = Maker(seed).made()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    except Exception as error:
        return "invalid", str(error)
    stage, rng = "import", np.random.default_rng(seed)
    try:
        module = weft.frontend.onnx.load(model)
        stage = "compile"
        main = weft.compile(module)["main"]
        for sizes in ({"n": 3, "m": 4}, {"n": 1, "m": 2}):
            shapes = {name: [sizes.get(size, size) for size in dims] for name, dims in inputs}
            arrays = {name: rng.normal(size=shape).astype("float32") for name, shape in shapes.items()}
            try:
                wanted = session.run(None, arrays)
            except Exception as error:
                return "invalid", str(error)
            stage = "run"
            found = main(*arrays.values())
            for a, b in zip(found if isinstance(found, tuple) else (found,), wanted, strict=True):
                if told := unlike(np.asarray(a), b):
                    return "wrong", told
    except Exception as error:
        return failed(stage, error)
    fallbacks = import_report(module).fallbacks
    return ("python", fallbacks[0].why) if fallbacks else ("right", "")


def main() -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--show", type=int)
    options = parser.parse_args()
    if options.show is not None:
        print(weft.frontend.onnx.load(Maker(options.show).made()[0]).script())
        print(*status(options.show))
        return 0
    begin, counts = time.perf_counter(), collections.Counter()
    for seed in range(options.start, options.start + options.count):
        found, detail = status(seed)
        counts[found] += 1
        if found != "right":
            print(f"{found:8} {seed}: {detail[:250]}", flush=True)
    right, total = counts["right"] + counts["python"], sum(counts.values()) - counts["invalid"]
    seconds = time.perf_counter() - begin
    print(f"{right} of {total} right ({right / max(total, 1):.1%}); {dict(counts)}; {seconds:.0f} s")
    return 0 if right >= 0.99 * total and not counts["wrong"] else 1


if __name__ == "__main__":
    sys.exit(main())
