# ruff: noqa: E501  (scripts inside strings)
"""What is wrong in odd ways ends with an error of weft, not with what happened to fail first."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft.__main__ import main
from weft.dtypes import check_dtype
from weft.ir import Var
from weft.ir.dim import symbol
from weft.ir.kernel.prim import const
from weft.ir.tensor import (
    Binary,
    Buffer,
    BufferLoad,
    BufferStore,
    Cast,
    For,
    IfThenElse,
    IntImm,
    PrimCall,
    PrimFunc,
    PrimVar,
    SeqStmt,
)
from weft.script import Limits, parse
from weft.script import relax as R

FUNCTION = '@R.function\ndef main(x: R.Tensor((2, 3), "float32")):\n    return x\n'
SELF = parse(
    '@R.function\ndef main(x: R.Tensor((3,), "float32"), self: R.Tensor((3,), "float32")):\n    return R.subtract(x, self)\n'
)


def test_a_lambda_is_called_outside_of_functions() -> None:
    text = "@I.ir_module\nclass M:\n    I.module_attrs({'a': (lambda y: y + 1)(3)})\n"
    module = parse(text)
    assert isinstance(module, weft.IRModule)
    assert module.attrs["a"] == 4
    parse("f = (lambda x: x)(3)\n" + FUNCTION)


@pytest.mark.parametrize("name", ["float32x", "float32xvscalex"])
def test_a_count_of_lanes_of_very_many_digits_is_too_large(name: str) -> None:
    with pytest.raises(weft.DTypeError, match="more than 4096 lanes"):
        check_dtype(name + "9" * 5000)


@pytest.mark.parametrize("name", ["float", "int", "uint", "bool", "float8_e"])
def test_a_dtype_of_very_many_digits_is_unknown(name: str) -> None:
    with pytest.raises(weft.DTypeError, match="unknown dtype"):
        check_dtype(name + "9" * 5000)


@pytest.mark.parametrize("call", [weft.compile(SELF), weft.compile(SELF)["main"], weft.interpret(SELF), SELF])
def test_a_parameter_may_be_called_self(call: Any) -> None:
    x = np.arange(3, dtype="float32")
    np.testing.assert_array_equal(call(x, self=x), x - x)


class Foreign:
    """A tensor of another project that offers its memory and then refuses."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, **options: Any) -> Any:
        raise self.error


class ForeignArray(Foreign):
    def __array__(self, *args: Any, **options: Any) -> Any:
        raise self.error


@pytest.mark.parametrize("kind", [Foreign, ForeignArray])
@pytest.mark.parametrize("error", [RuntimeError("requires grad"), BufferError("sparse"), TypeError("on meta")])
@pytest.mark.parametrize("call", [weft.compile(SELF), weft.interpret(SELF)])
def test_tensors_that_give_no_array_are_refused_with_their_reason(call: Any, error: Exception, kind: Any) -> None:
    with pytest.raises(weft.ArgumentError, match=str(error)) as caught:
        call(np.ones(3, "float32"), kind(error))
    assert caught.value.code == "W851"


def test_indices_that_are_no_expressions_are_a_finding() -> None:
    buffer = Buffer("b", (4,), "float32")
    store: Any = BufferStore(buffer, const(1.0, "float32"), (0,))  # type: ignore[arg-type]
    assert [finding.code for finding in weft.verify(PrimFunc((buffer,), store))] == ["W457"]


@pytest.mark.parametrize("name", ["rot13", "hex", "base64", "nothing", "undefined", "idna", "punycode"])
def test_a_file_in_a_coding_that_cannot_be_read_is_one_error(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model.py"
    path.write_bytes(f"# coding: {name}\n{FUNCTION}".encode() + b"# \xff\n")
    assert main(["check", str(path)]) == 1
    assert "W010" in capsys.readouterr().err


def test_a_file_without_end_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("weft.command.inputs.files.Limits", lambda: Limits(size=1000))
    assert main(["check", "/dev/zero"]) == 1
    assert "more than 1000 bytes" in capsys.readouterr().err


@pytest.mark.parametrize(
    "header", [b"{'descr': '<f4', 'fortran_order': False, 'shape': (", b"{", b"x" * 60, b"((" * 40]
)
def test_an_odd_array_file_is_one_error(header: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "model.py").write_text(FUNCTION)
    path = tmp_path / "x.npy"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header + b"\n").to_bytes(2, "little") + header + b"\n")
    assert main(["run", str(tmp_path / "model.py"), "--input", f"x={path}"]) == 1
    assert "W010" in capsys.readouterr().err


# -- nodes that Python lets anybody build --------------------------------------------------------------------------------

B = Buffer("b", (4,), "float32")
ZERO, ONE = const(0, "int64"), const(1.0, "float32")
ODD: tuple[Any, ...] = (
    0,
    "x",
    None,
    1.5,
    (),
    [ZERO],
    B,
    Var("e"),
    True,
    np.int64(1),
    symbol("n"),
    object(),
    int,
    np.ones(3),
    2**70,
)
SHAPES: dict[str, Callable[[Any], Any]] = {
    "the index of a store": lambda part: BufferStore(B, ONE, (part,)),
    "the indices of a store": lambda part: BufferStore(B, ONE, part),
    "the value of a store": lambda part: BufferStore(B, part, (ZERO,)),
    "the buffer of a store": lambda part: BufferStore(part, ONE, (ZERO,)),
    "the index of a load": lambda part: BufferStore(B, BufferLoad(B, (part,)), (ZERO,)),
    "an operand": lambda part: BufferStore(B, Binary("add", ONE, part), (ZERO,)),
    "the kind of an operation": lambda part: BufferStore(B, Binary(part, ONE, ONE), (ZERO,)),
    "what is cast": lambda part: BufferStore(B, Cast("float32", part), (ZERO,)),
    "the argument of a call": lambda part: BufferStore(B, PrimCall("exp", (part,), "float32"), (ZERO,)),
    "the variable of a loop": lambda part: For(part, 0, 4, BufferStore(B, ONE, (ZERO,))),
    "the body of a loop": lambda part: For(PrimVar("i", "int64"), 0, 4, part),
    "a condition": lambda part: IfThenElse(part, BufferStore(B, ONE, (ZERO,))),
    "a statement": lambda part: SeqStmt((part,)),
    "the body of the function": lambda part: part,
}


@pytest.mark.parametrize("what", SHAPES)
def test_nodes_of_odd_parts_end_with_errors_of_weft(what: str) -> None:
    for part in ODD:
        for use in (weft.verify, str, weft.structural_hash, weft.compile, lambda f: weft.interpret(f)["k"](np.ones(4))):
            with contextlib.suppress(weft.WeftError):
                use(PrimFunc((B,), SHAPES[what](part), name="k"))  # type: ignore[operator]


def test_a_part_that_is_none_is_told_by_its_field() -> None:
    with pytest.raises(weft.VerifyError) as caught:
        weft.assert_well_formed(PrimFunc((B,), For(PrimVar("i", "int64"), 0, 4, 3)))  # type: ignore[arg-type]
    assert (caught.value.code, caught.value.message) == ("W467", "`body` of For takes a Stmt, got an int")
    found = weft.verify(PrimFunc((B,), For(PrimVar("i", "int64"), 0, None, BufferStore(B, ONE, (ZERO,)))))  # type: ignore[arg-type]
    assert [finding.code for finding in found] == ["W467"]


# -- ranks, digits, results ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["R.reshape(x, (4, %s))", "R.zeros((%s 4), 'float32')"])
def test_a_tensor_of_more_dimensions_than_an_array_has_is_refused(call: str) -> None:
    lines = f'@R.function\ndef main(x: R.Tensor((4,), "float32")):\n    y = {call % ("1, " * 64)}\n    return y\n'
    with pytest.raises(weft.ShapeError) as caught:
        weft.parse(lines)
    assert (caught.value.code, caught.value.span and caught.value.span.line) == ("W291", 3)
    parsed = weft.parse(lines.replace("1, " * 64, "1, " * 63))
    for run in (weft.interpret(parsed), weft.compile(parsed), weft.compile(parsed, executor="vm")):
        assert run["main"](np.ones(4, "float32")).ndim == 64


def test_numbers_of_very_many_digits_have_a_text() -> None:
    number = 10**100_000
    for node in (R.Tensor((number,), "float32"), const(0, "int64"), IntImm(number, "int64")):
        assert repr(node) == str(node)
    assert str(IntImm(number, "int64")).startswith("IntImm(value=0x1c0a")


@weft.register_func("tests.no_sizes")
def sizes(kind: np.ndarray) -> Any:
    return WRONG[int(kind[0])]


WRONG: tuple[Any, ...] = ((1, 2), None, np.ones(3), (-1,), (2**70,), (1.9,), "a", object(), {1: 2}, (True,), {1}, 3)


@pytest.mark.parametrize("executor", ["native", "vm", "interpreter"])
def test_what_is_no_shape_is_refused_as_the_result_of_a_function(executor: str) -> None:
    module: Any = weft.parse(
        '@R.function\ndef main(x: R.Tensor((1,), "int64")):\n'
        '    y = R.call_pure_packed("tests.no_sizes", x, ty_args=[R.Shape(ndim=1)])\n    return y\n'
    )
    run = weft.interpret(module) if executor == "interpreter" else weft.compile(module, executor=executor)
    for index in range(len(WRONG)):
        with pytest.raises(weft.WeftError):
            run["main"](np.array([index]))
