"""Scalar types that have a value: R.Prim(value=...), which older releases have."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.ir.types import PrimType
from weft.script import parse

SIZED = """
@I.ir_module
class M:
    @R.function(private=True)
    def fill(p: R.Prim(value="n")) -> R.Tensor(("n",), "float32"):
        return R.ones((n,), "float32")

    @R.function
    def main(x: R.Tensor(("k",), "float32"), q: R.Prim("int64", value="s")) -> R.Tensor(("k + s + 1",), "float32"):
        return R.concat([x, M.fill(q), R.zeros((1,), "float32")])
"""


def test_a_scalar_parameter_binds_the_symbol_that_its_type_names() -> None:
    module = parse(SIZED)
    weft.assert_structural_equal(module, parse(module.script()))
    assert weft.verify(module) == []
    x = np.full(2, 5, "float32")
    runs = [weft.interpret(module)["main"], *(weft.compile(module, executor=name)["main"] for name in ("native", "vm"))]
    for run in runs:
        np.testing.assert_array_equal(run(x, 3), [5, 5, 1, 1, 1, 0])
        np.testing.assert_array_equal(run(x, 0), [5, 5, 0])
        with pytest.raises(weft.ArgumentError, match=r"argument 2 `q` of main: expected int64.*, got int -1") as caught:
            run(x, -1)
        assert caught.value.code == "W852"


def test_a_scalar_is_matched_with_a_value() -> None:
    body = "    q = R.match_cast(p, R.Prim(value='m'))\n    return R.reshape(x, (m, -1))\n"
    module = parse(f"@R.function\ndef main(x: R.Tensor((6,), 'float32'), p: R.Prim('int64')):\n{body}")
    weft.assert_structural_equal(module, parse(module.script()))
    x = np.arange(6, dtype="float32")
    for run in (weft.interpret(module), weft.compile(module)["main"]):
        assert run(x, 3).shape == (3, 2)
        with pytest.raises(weft.WeftError):
            run(x, -1)


@pytest.mark.parametrize(
    ("text", "dtype", "value"),
    [
        ("R.Prim(value=3)", "int64", 3),
        ("R.Prim(value=T.int64(3))", "int64", 3),
        ("R.Prim('int32', value=3)", "int32", 3),
        ("R.Prim(value=T.int32(3))", "int32", 3),
        ("R.Prim(value=True)", "bool", True),
        ("R.Prim(value=1.5)", "float32", 1.5),
        ("R.Prim('float64', value=0.1)", "float64", 0.1),
        ("R.Prim(value=T.float16(0.25))", "float16", 0.25),
    ],
)
def test_a_constant_is_the_value_of_a_type(text: str, dtype: str, value: object) -> None:
    function = parse(f"@R.function\ndef main(p: {text}):\n    return p\n")
    ty = function.params[0].ty
    assert isinstance(ty, PrimType)
    assert (ty.dtype, ty.value) == (dtype, value)
    assert type(ty.value) is type(value)
    weft.assert_structural_equal(function, parse(function.script()))
    run = weft.interpret(function)
    assert run(value) == value
    with pytest.raises(weft.ArgumentError):
        run(np.dtype(dtype).type(not value) if dtype != "bool" else False)


def test_the_value_of_a_binding_is_proved_and_its_variable_is_plain() -> None:
    head = '@R.function\ndef main(x: R.Tensor(("n",), "float32")):\n'
    function = parse(head + "    a: R.Prim(value=n + 1) = R.prim_value(1 + n)\n    return a\n")
    weft.assert_structural_equal(function, parse(head + "    a = R.prim_value(n + 1)\n    return a\n"))
    with pytest.raises(weft.ShapeError, match="annotation of a") as caught:
        parse(head + "    a: R.Prim(value=n + 1) = R.prim_value(n)\n    return a\n")
    assert caught.value.span is not None
    assert caught.value.span.line == 3


def test_scalar_types_with_a_value_have_a_form_in_each_spelling_of_tvm() -> None:
    module = parse(SIZED)
    for spelling, written in (("tvm-0.20", 'p: R.Prim(value="n")'), ("tvm-0.27", "n: T.int64")):
        text = module.script(spelling=spelling)
        assert f'def fill({written}) -> R.Tensor(("n",), "float32"):' in text
        weft.assert_structural_equal(module, parse(text))


def test_a_scalar_of_a_computed_size_has_no_form_in_the_newer_spelling() -> None:
    text = "@R.function\ndef main(x: R.Tensor(('n',), 'float32'), p: R.Prim(value='n + 1')):\n    return x\n"
    with pytest.raises(weft.ScriptError, match=r"the scalar type R\.Prim\(.*\) has no form") as caught:
        parse(text).script(spelling="tvm-0.27")
    assert caught.value.code == "W116"


def test_an_argument_that_is_not_the_value_is_refused() -> None:
    text = SIZED.replace("M.fill(q)", "R.match_cast(M.fill(R.prim_value(4)), R.Tensor((5,), 'float32'))")
    with pytest.raises(weft.ScriptError, match=r"\(4,\), .* is never a R.Tensor\(\(5,\)"):
        parse(text)


@pytest.mark.parametrize(
    ("annotation", "code"),
    [("R.Prim()", "W113"), ("R.Prim('float32', value='n')", "W123"), ("R.Prim('int8', value=300)", "W123")],
)
def test_a_value_that_its_dtype_cannot_have_is_refused(annotation: str, code: str) -> None:
    with pytest.raises(weft.WeftError) as caught:
        parse(f"@R.function\ndef main(\n    p: {annotation}\n):\n    return p\n")
    assert caught.value.code == code
    assert caught.value.span is not None
    assert caught.value.span.line == 3


def test_a_scalar_that_is_a_size_stays_a_variable_where_a_kernel_takes_values() -> None:
    module = parse("""
@I.ir_module
class M:
    @T.prim_func
    def scale(x: T.Buffer((4,), "float32"), h: T.int64, y: T.Buffer((4,), "float32")):
        for i in range(4):
            y[i] = x[i] * T.Cast("float32", h)

    @R.function
    def main(x: R.Tensor((4,), "float32"), w: R.Tensor(("k",), "float32")):
        h = R.prim_value(k)
        return R.call_tir(cls.scale, (x, h), out_ty=R.Tensor((4,), "float32"))
""")
    first, second = module["main"].body.blocks[0].bindings
    assert second.value.args[1].fields[1] is first.var
