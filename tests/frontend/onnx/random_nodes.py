# pyright: reportMissingImports=false
"""Random nodes of ONNX beside its runtime: python -m tests.frontend.onnx.random_nodes [--count 300] [--start 0]
[--show SEED] [--only OPERATOR]

A model is one node of one operator in one of its versions from opset 7 on, with random attributes (rarely used ones
too), dtypes that the version allows, inputs that are inputs or constants, sizes that are numbers or symbols, optional
inputs that are absent, sizes of 0 and tensors without axes. Some nodes stand in a branch, in the body of a loop or in a
function, and take what is outside of it. Each is imported, compiled and run, and held against onnxruntime, or where
that refuses the model against the reference implementation of ONNX. Printed is each that is not right; `disputed` are
those where the two differ and ours is the reference's.
"""

from __future__ import annotations

import argparse
import collections
import random
import sys
import time
import warnings
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import ModelProto, TensorProto, defs, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from tests.frontend.onnx.node_recipes import RECIPES, Draw, Whole

import weft
from weft.frontend import import_report

try:
    import onnxruntime
except ImportError:  # then only the reference is asked
    onnxruntime = None

_IR = 10


class Made:
    """A model of one node, and what to give it."""

    def __init__(self, seed: int, operator: str = "") -> None:
        self.random = random.Random(seed)
        self.operator = operator or self.random.choice([name for name in sorted(RECIPES) if defs.has(name)])
        versions = sorted(
            {
                s.since_version
                for s in defs.get_all_schemas_with_history()
                if s.name == self.operator and s.domain == "" and not s.deprecated
            }
        )
        last = defs.onnx_opset_version()
        opsets = [
            max(version, 7)
            for at, version in enumerate(versions)
            if (versions[at + 1] if at + 1 < len(versions) else last + 1) > 7
        ]
        self.opset = self.random.choice(opsets) if self.random.random() < 0.6 else opsets[-1]
        schema = defs.get_schema(self.operator, self.opset, "")
        self.draw = Draw(seed, self.operator, schema)
        inputs, attributes = RECIPES[self.operator](self.draw)
        self.outputs = attributes.pop("#", 1)
        self.attributes = attributes
        self.given: dict[str, np.ndarray] = {}
        self.refusal, self.expected = "", []
        self.inputs, self.infos, self.constants = [], [], []
        symbolic = self.random.random() < 0.5
        share = self.random.choice([0.0, 0.0, 0.0, 0.3, 1.0])
        for at, value in enumerate(inputs):
            if value is None:
                self.inputs.append("")
                continue
            array = value.array if isinstance(value, Whole) else np.asarray(value)
            name = f"x{at}"
            self.inputs.append(name)
            constant = self.random.random() < (0.85 if isinstance(value, Whole) else share)
            if constant:
                self.constants.append(numpy_helper.from_array(array, name))
                continue
            self.given[name] = array
            kind = helper.np_dtype_to_tensor_dtype(array.dtype)
            dims: list[Any] = list(array.shape)
            if symbolic and not isinstance(value, Whole):
                dims = [
                    f"{name}_{axis}" if size > 1 and self.random.random() < 0.5 else size
                    for axis, size in enumerate(dims)
                ]
            self.infos.append(helper.make_tensor_value_info(name, kind, dims))
        names = [f"y{at}" for at in range(self.outputs)]
        self.names = names
        self.node = helper.make_node(self.operator, self.inputs, names, name="node", **attributes)
        self.place = self.random.choices(["plain", "branch", "loop", "function"], [0.76, 0.08, 0.08, 0.08])[0]

    def model(self) -> ModelProto:
        opsets = [helper.make_opsetid("", self.opset)]
        infos, functions = list(self.infos), []
        info = [helper.make_empty_tensor_value_info(name) for name in self.names]
        nodes = [self.node]
        if self.place == "branch":
            infos.append(helper.make_tensor_value_info("yes", TensorProto.BOOL, []))
            self.given["yes"] = np.asarray(True)
            inner = helper.make_graph([self.node], "then", [], self.typed())
            other = helper.make_graph(
                [helper.make_node(self.operator, self.inputs, self.names, name="other", **self.attributes)],
                "else",
                [],
                self.typed(),
            )
            nodes = [
                helper.make_node("If", ["yes"], [f"{n}_" for n in self.names], then_branch=inner, else_branch=other)
            ]
            info = [helper.make_empty_tensor_value_info(f"{n}_") for n in self.names]
        elif self.place == "loop":
            infos.append(helper.make_tensor_value_info("times", TensorProto.INT64, []))
            self.given["times"] = np.asarray(2)
            self.constants.append(numpy_helper.from_array(np.asarray(0.5, "float32"), "zero"))
            body = helper.make_graph(
                [
                    helper.make_node("Identity", ["going"], ["still"]),
                    helper.make_node("Identity", ["old"], ["new"]),
                    self.node,
                ],
                "body",
                [
                    helper.make_tensor_value_info("step", TensorProto.INT64, []),
                    helper.make_tensor_value_info("going", TensorProto.BOOL, []),
                    helper.make_tensor_value_info("old", TensorProto.FLOAT, []),
                ],
                [
                    helper.make_tensor_value_info("still", TensorProto.BOOL, []),
                    helper.make_tensor_value_info("new", TensorProto.FLOAT, []),
                    *self.typed(),
                ],
            )
            nodes = [
                helper.make_node("Loop", ["times", "", "zero"], ["last", *(f"{n}_" for n in self.names)], body=body)
            ]
            info = [helper.make_empty_tensor_value_info(f"{n}_") for n in self.names]
        elif self.place == "function" and self.opset >= 8:
            there = [name for name in self.inputs if name]
            functions = [helper.make_function("own", "Own", there, self.names, [self.node], opsets)]
            nodes = [helper.make_node("Own", there, self.names, domain="own")]
            opsets = [*opsets, helper.make_opsetid("own", 1)]
        graph = helper.make_graph(nodes, "random", infos, info, self.constants)
        return helper.make_model(graph, opset_imports=opsets, ir_version=_IR, functions=functions)

    def about(self) -> str:
        """The node, and what it is given; a constant has a !."""
        constants = {item.name: numpy_helper.to_array(item) for item in self.constants}
        parts = [f"{self.operator}-{self.opset}", self.place, str(self.attributes).replace("\n", " ")]
        for name in self.inputs:
            array = self.given.get(name, constants.get(name))
            mark = "!" if name in constants else ""
            parts.append(f"{name}{mark}:{array.dtype}{list(array.shape)}" if array is not None else "-")
        return " ".join(parts)

    def typed(self) -> list[Any]:
        """The outputs with their types, which inner graphs must state."""
        kinds = self.kinds
        return [helper.make_tensor_value_info(n, kind, None) for n, kind in zip(self.names, kinds, strict=True)]

    @property
    def kinds(self) -> list[int]:
        graph = helper.make_graph(
            [self.node], "g", self.infos, [helper.make_empty_tensor_value_info(n) for n in self.names], self.constants
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=_IR)
        inferred = onnx.shape_inference.infer_shapes(model)
        return [item.type.tensor_type.elem_type for item in inferred.graph.output]


# Operators whose reference is wrong in places, or leaves out attributes.
DOUBTED = {"Softmax", "LogSoftmax", "Hardmax", "RNN", "GRU", "LSTM", "GlobalMaxPool", "LpNormalization"}
ROUGH = {"float32": 2e-4, "float64": 1e-6, "float16": 1e-2, "bfloat16": 4e-2}


def unlike(found: Any, wanted: Any) -> str:
    """What differs, empty when nothing does."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return f"{found.dtype}{list(found.shape)}, expected {wanted.dtype}{list(wanted.shape)}"
    if wanted.dtype.kind in "biu":
        off = found != wanted
        if not off.any():
            return ""
        at = tuple(int(i) for i in np.argwhere(off)[0])
        return f"{off.mean():.0%} differ, at {at} {found[at]} expected {wanted[at]}"
    rough = ROUGH[wanted.dtype.name]
    a, b = found.astype("float64"), wanted.astype("float64")
    finite = np.abs(b[np.isfinite(b)])
    close = np.isclose(a, b, rtol=rough, atol=rough * max(float(finite.max(initial=1.0)), 1.0), equal_nan=True)
    if close.all():
        return ""
    at = tuple(int(i) for i in np.argwhere(~close)[0])
    return f"{(~close).mean():.0%} differ, at {at} {a[at]} expected {b[at]}"


def references(made: Made, model: ModelProto) -> list[tuple[str, list[Any]]]:
    """The results of onnxruntime and of the reference implementation, of those that run the model."""
    found = []
    if onnxruntime is not None and not any(a.dtype == ml_dtypes.bfloat16 for a in made.given.values()):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = 1
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        try:
            session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
            found.append(("onnxruntime", session.run(None, made.given)))
        except Exception as error:
            made.refusal = str(error)
    try:
        with np.errstate(all="ignore"):
            results = ReferenceEvaluator(model).run(None, made.given)
        if [
            helper.np_dtype_to_tensor_dtype(np.asarray(r).dtype) for r in results
        ] == made.expected and made.operator not in DOUBTED:
            found.append(("reference", results))
    except Exception as error:
        made.refusal = str(error)
    return found


def status(seed: int, operator: str = "") -> tuple[str, str]:
    """(right, python, disputed, wrong, invalid or the stage that failed, detail) of one model."""
    made = Made(seed, operator)
    model = made.model()
    about = made.about()
    try:
        model = onnx.shape_inference.infer_shapes(model, True, True, True)
        onnx.checker.check_model(model, full_check=True)
    except Exception as error:
        if "Field 'shape' of 'type'" not in str(error):
            return "invalid", about + ": " + str(error)[:200]
    made.expected = [item.type.tensor_type.elem_type for item in model.graph.output]
    wanted = references(made, model)
    if not wanted:
        return "invalid", about + ": " + made.refusal[:200]
    stage = "import"
    try:
        module = weft.frontend.onnx.load(model)
        stage = "compile"
        main = weft.compile(module)["main"]
        stage = "run"
        results = main(*made.given.values())
        results = results if isinstance(results, tuple) else (results,)
        told = {}
        for who, values in wanted:
            differs = next(filter(None, (unlike(a, b) for a, b in zip(results, values, strict=True))), "")
            told[who] = differs
        if all(told.values()):
            return "wrong", f"{about}: {told}"
        if told.get("onnxruntime"):
            return "disputed", f"{about}: {told}"
    except Exception as error:
        return stage, f"{about}: {type(error).__name__}: {error}"
    fallbacks = import_report(module).fallbacks
    return ("python", about + ": " + fallbacks[0].why) if fallbacks else ("right", "")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--show", type=int)
    parser.add_argument("--only", default="")
    parser.add_argument("--hide", default="right")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.show is not None:
        made = Made(options.show, options.only)
        model = onnx.shape_inference.infer_shapes(made.model(), True, True, True)
        print(onnx.printer.to_text(model))
        print(status(options.show, options.only))
        for name, value in made.given.items():
            print(name, value.dtype, value.tolist())
        print(references(made, model))
        module = weft.frontend.onnx.load(model)
        print(module.script())
        print(weft.compile(module)["main"](*made.given.values()))
        return 0
    begin, counts = time.perf_counter(), collections.Counter()
    for seed in range(options.start, options.start + options.count):
        try:
            found, detail = status(seed, options.only)
        except Exception as error:
            found, detail = "generator", f"{type(error).__name__}: {error}"
        counts[found] += 1
        if found not in options.hide.split(","):
            print(f"{found:8} {seed}: {detail[:420]}", flush=True)
    print(f"{dict(counts)}; {time.perf_counter() - begin:.0f} s, processor {time.process_time():.0f} s")
    return 1 if counts["wrong"] or counts["generator"] else 0


if __name__ == "__main__":
    sys.exit(main())
