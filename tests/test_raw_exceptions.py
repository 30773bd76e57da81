# ruff: noqa: E501  (scripts inside strings)
"""What is wrong in odd ways ends with an error of weft, not with what happened to fail first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft.__main__ import main
from weft.dtypes import check_dtype
from weft.ir.kernel.prim import const
from weft.ir.tensor import Buffer, BufferStore, PrimFunc
from weft.script import Limits, parse

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
    monkeypatch.setattr("weft.command.files.Limits", lambda: Limits(size=1000))
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
