"""What type deduction accepts is legalized: a call that no kernel can be made of is refused when it is built."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
from tests.ir.op.variants import mutations, variants

import weft
from weft.errors import WeftError
from weft.ir.builder import BlockBuilder
from weft.ir.deduction.infer import infer_type
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import symbol
from weft.ir.graph import Call, Expr, Function, Var
from weft.ir.module import IRModule
from weft.ir.op import OPS, Example, OpDef
from weft.ir.op.common import f32, typed
from weft.ir.types import ShapeType
from weft.script import relax as R
from weft.testing.operators import bound_example
from weft.transform import LegalizeOps
from weft.transform.analysis.free_symbols import symbols_of

_OF_WORKERS = ("ccl.", "dist.")
"""Operators of several workers: their types are those of programs that other runtimes run."""


def _program(definition: OpDef, example: Example) -> IRModule:
    """A function of a call; raises what building the call raises."""
    call, variables = bound_example(definition, example)
    names = symbols_of(call) | {name for var in variables.values() for name in symbols_of(var.ty)}
    sizes = Var("sizes", ShapeType(tuple(map(symbol, sorted(names)))))
    builder = BlockBuilder()
    with builder.function("main", [*variables.values(), sizes]):
        builder.emit_func_output(builder.emit(call))
    return builder.get()


def _refused_late(definition: OpDef, example: Example) -> str:
    """What legalization says against a call that was built; nothing where all is well."""
    try:
        module = _program(definition, example)
    except WeftError:
        return ""
    try:
        LegalizeOps()(module)
    except WeftError as error:
        return f"{example.args} {dict(example.kwargs)}: {error}"
    return ""


@pytest.mark.parametrize("part", range(8))
def test_what_deduction_accepts_is_legalized(part: int) -> None:
    """A few odd calls of each operator: all of them take ten minutes."""
    for name in list(OPS)[part::8]:
        odd = [*(example for _, example in variants(OPS[name])), *mutations(OPS[name])]
        for example in random.Random(name).sample(odd, min(3, len(odd))):
            late = _refused_late(OPS[name], example)
            assert not late or name.startswith(_OF_WORKERS), f"R.{name} {late}"


X = Var("x", f32(4, 6))
Z = Var("z", typed("complex64", 4, 4))
REFUSED: dict[str, Callable[[], Expr]] = {
    "sizes below 0": lambda: R.broadcast_to(Var("x", f32()), (-2, 6)),
    "sizes of pictures below 0": lambda: R.image.resize2d(Var("x", f32(1, 2, 3, 4)), (-3, 2)),
    "a product without imaginary part": lambda: R.matmul(Z, Z, out_dtype="int32"),
    "sums without imaginary part": lambda: R.cumsum(Z, axis=0, dtype="int64"),
    "an empty window": lambda: R.signal.stft(Var("x", f32(8)), Var("w", f32(0)), 4),
    "more parts than a tuple has": lambda: R.split(X, 2**40),
    "more channels than are added": lambda: R.nn.local_response_norm(Var("x", f32(2, "c", 3)), 2**31),
    "no tensors": lambda: R.hstack([]),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_computed_is_refused_when_it_is_built(what: str) -> None:
    with pytest.raises(WeftError, match=r"W205: |W321: "):
        infer_type(REFUSED[what]())


ACCEPTED: dict[str, Callable[[], Expr]] = {
    "an axis that scalars do not use": lambda: R.quantize(X, R.const(0.5, "float32"), R.const(3, "int8"), axis=7),
    "a range of fractions in complex numbers": lambda: R.arange(0, 1, 0.25, "complex64"),
    "more means than elements": lambda: R.nn.adaptive_avg_pool1d(Var("x", f32(1, 2, 6)), 2**12 + 1),
    "windows past all channels": lambda: R.nn.local_response_norm(Var("x", f32(2, 3, 4)), 2**40),
}


@pytest.mark.parametrize("what", ACCEPTED)
def test_odd_arguments_with_a_meaning_have_it_however_they_are_run(what: str) -> None:
    call = ACCEPTED[what]()
    assert isinstance(call, Call)
    variables = [arg for arg in call.args if isinstance(arg, Var)]
    builder = BlockBuilder()
    with builder.function("main", variables):
        builder.emit_func_output(builder.emit(call))
    shapes = [dims_of(infer_type(var)) for var in variables]
    arrays = [np.random.default_rng(1).normal(size=shape).astype("float32") for shape in shapes]
    want = weft.interpret(builder.get())["main"](*arrays)
    np.testing.assert_allclose(weft.compile(builder.get())["main"](*arrays), want, rtol=1e-5)


def test_what_legalization_refuses_has_a_place() -> None:
    source = """
@R.function
def main(x: R.Tensor((2, 3), "float32")):
    y = R.diag_embed(x, offset=-9223372036854775808)
    return y
"""
    main = weft.parse(source)
    assert isinstance(main, Function)
    with pytest.raises(WeftError) as caught:
        LegalizeOps()(IRModule({"main": main}))
    assert caught.value.span is not None
    assert caught.value.span.quoted() == "<text>:4: y = R.diag_embed(x, offset=-9223372036854775808)"
