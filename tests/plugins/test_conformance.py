"""A part never gets what it cannot do: that is refused with the reason, and what a generator leaves out is found."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.plugins.examples import imported
from tests.plugins.toy_accelerator import installed

import weft
from weft import ir
from weft.codegen.backends.generators import Translated
from weft.ir.tensor import BufferStore
from weft.runtime import unregister_func
from weft.runtime.artifact import Symbol
from weft.testing import check_part

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
EXP = '@R.function\ndef main(x: R.Tensor((4,), "float32")):\n    y = R.exp(x{})\n    return y\n'
PRODUCT = (
    '@R.function\ndef main(x: R.Tensor((4, 4), "{}"), w: R.Tensor((4, 4), "{}")):\n'
    "    y = R.matmul(x, w{})\n    return y\n"
)


@pytest.fixture(scope="module", autouse=True)
def plugins() -> Iterator[None]:
    """Both examples, and everything of them gone afterwards."""
    with imported([str(EXAMPLES / name) for name in ("npu", "openblas")]):
        yield


def parsed(text: str) -> weft.IRModule:
    found = weft.parse(text)
    return found if isinstance(found, weft.IRModule) else weft.IRModule({"main": found})


@pytest.mark.parametrize(
    ("target", "label", "dtype", "more"),
    [("host: llvm; npu: npu", "npu", "int8", ', out_dtype="int32"'), ("host: llvm; b: openblas", "b", "float32", "")],
)
def test_the_examples_conform(target: str, label: str, dtype: str, more: str) -> None:
    mine = parsed(PRODUCT.format(dtype, dtype, f'{more}, target="{label}"'))
    operators = ["R.exp(x)", "R.matmul(x, y)"]
    report = check_part(target, label, programs=[mine], operators=operators, seeds=1, executors=["native"])
    report.assert_clean()
    assert report.refused >= 10
    assert report.computed >= 5


@pytest.mark.parametrize(
    "text",
    [
        EXP.format(', target="npu"'),
        PRODUCT.format("float32", "float32", ', target="npu"'),
        PRODUCT.format("int8", "int8", ', target="npu"'),
        EXP.format("").replace("    y =", '    R.func_attr({"target": "npu"})\n    y ='),
    ],
)
@pytest.mark.parametrize("executor", ["native", "graph"])
def test_what_the_accelerator_does_not_do_is_refused_with_the_reason(text: str, executor: str) -> None:
    reason = r"part 'npu' \(npu\) does not take R\.\w+: it takes R.nn.conv2d"
    with pytest.raises(weft.TargetError, match=reason) as caught:
        weft.compile(parsed(text), "host: llvm; npu: npu", executor=executor)
    assert caught.value.code == "W753"
    assert "R." in str(caught.value).partition("-->")[2]  # the caret stands under the call


def test_plain_functions_are_partitioned_like_dataflow_blocks() -> None:
    text = PRODUCT.format("int8", "int8", ', out_dtype="int32"')
    made = weft.compile(parsed(text), "host: llvm; npu: npu")
    assert [item.kind for item in made.artifacts.values() if item.loader == "npu"] == ["npu-stream"]
    x = np.arange(16, dtype="int8").reshape(4, 4)
    np.testing.assert_array_equal(made["main"](x, x), x.astype("int32") @ x)


def test_a_call_for_another_part_is_left_to_it() -> None:
    text = PRODUCT.format("int8", "int8", ', out_dtype="int32", target="host"')
    made = weft.compile(parsed(text), "host: llvm; npu: npu")
    assert not [item for item in made.artifacts.values() if item.loader == "npu"]


KERNEL = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def twice(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            B[i] = A[i] * T.float32(2)

    @R.function
    def main(x: R.Tensor((4,), "float32")):
        cls = Module
        y = R.call_tir(cls.twice, (x,), out_ty=R.Tensor((4,), "float32"), target="npu")
        return y
"""


def test_a_kernel_of_the_user_is_no_work_for_a_part_that_lowers_functions() -> None:
    with pytest.raises(weft.TargetError, match="kernel 'twice' is labelled for part 'npu'") as caught:
        weft.compile(parsed(KERNEL), "host: llvm; npu: npu")
    assert caught.value.code == "W753"


def stores(function: Any) -> list[Any]:
    return [node for node in ir.walk(function) if isinstance(node, BufferStore)]


def test_the_label_of_a_call_of_a_kernel_reaches_the_part() -> None:
    with installed() as kind:
        seen: list[str] = []

        def generate(module: weft.IRModule, target: weft.Target) -> Translated:
            seen.extend(module)
            provides = tuple(Symbol(name) for name in module)
            made = weft.Artifact("toy-program", "toy.bin", b"", provides=provides)
            return Translated(made, {name: stores(function) for name, function in module.items()})

        kind.codegen(generate)
        made = weft.compile(parsed(KERNEL.replace("npu", "toy")), "host: llvm; toy: toy")
        assert (seen, "toy.bin" in made.artifacts) == (["twice"], True)


def test_a_statement_that_a_generator_leaves_out_is_an_error() -> None:
    second = "T.float32(2)\n            B[i] = B[i] + T.float32(1)\n"
    two = KERNEL.replace("npu", "toy").replace("T.float32(2)\n", second)
    with installed() as kind:

        def generate(module: weft.IRModule, target: weft.Target) -> Translated:
            made = weft.Artifact("toy-program", "toy.bin", b"", provides=tuple(Symbol(name) for name in module))
            return Translated(made, {name: stores(function)[:1] for name, function in module.items()})

        kind.codegen(generate)
        wrong = r"leaves out a statement of 'twice': B\[i\] = B\[i\] \+"
        with pytest.raises(weft.ArtifactError, match=wrong) as caught:
            weft.compile(parsed(two), "host: llvm; toy: toy")
        assert caught.value.code == "W820"


def test_the_kit_finds_a_part_that_takes_what_it_cannot_do() -> None:
    """A hook that calls a library for any operator, and one that fails inside."""

    @weft.register_func("test.negative")
    def negative(x: np.ndarray, out: np.ndarray) -> None:
        out[...] = -x

    def careless(module: weft.IRModule, function: ir.Function) -> tuple[weft.IRModule, ir.GlobalVar]:
        result = ir.Var("result", function.ret_type)
        args = (ir.ExternFunc("test.negative"), ir.Tuple(function.params[:1]))
        call = ir.Call(ir.Op("call_dps_packed"), args, ty_args=(function.ret_type,))
        body = ir.SeqExpr((ir.BindingBlock((ir.VarBinding(result, call),)),), result)
        entry = ir.replace(function, name="entry", body=body, attrs=ir.FrozenMap())
        return weft.IRModule({"entry": entry}), ir.GlobalVar("entry")

    def broken(module: weft.IRModule, function: ir.Function) -> Any:
        raise KeyError("npu")

    options: dict[str, Any] = {"operators": ["R.negative(x)", "R.exp(x)"], "seeds": 0, "executors": ["native"]}
    for hook, wrong in ((careless, "R.exp(x)"), (broken, "KeyError")):
        with installed() as kind:
            kind.lowering(hook)
            report = check_part("host: llvm; toy: toy", "toy", **options)
        assert wrong in str(report)
        with pytest.raises(AssertionError, match="failures"):
            report.assert_clean()
    unregister_func("test.negative")
