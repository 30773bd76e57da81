"""Mistakes in annotations, which Python evaluates before a decorator sees them; and other uses of I, R, T by Python.

Where Python leaves annotations alone (from 3.14 on, and under the future import) the reader finds the mistake and shows
the part that is wrong instead of the whole annotation.
"""

from __future__ import annotations

import inspect
import pickle
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.script import relax as R
from weft.script import tir as T

HEAD = "from weft.script import ir as I, relax as R, tir as T\n"
GRAPH = "@R.function\ndef f(x: {}):\n    return x\n"
KERNEL = "@T.prim_func\ndef f(x: {}):\n    T.evaluate(0)\n"
ANNOTATIONS = {
    "a number for a shape": (GRAPH, 'R.Tensor(4, "float32")', "W114", "expected a shape, got 4", "write `(4,)`"),
    "dtype before shape": (GRAPH, 'R.Tensor("float32", (4,))', "W114", "expected a shape", "the shape comes first"),
    "unknown dtype": (GRAPH, 'R.Tensor((2, 3), "f32")', "W301", "unknown dtype 'f32'", "float32"),
    "unknown keyword": (GRAPH, 'R.Tensor((2,), dtyp="f")', "W113", "unexpected keyword argument", "shape, dtype"),
    "half an expression": (GRAPH, 'R.Tensor(("n +",), "float32")', "W287", "'n +' is not a size", "names, integers"),
    "true division": (GRAPH, 'R.Tensor(("n/2",), "float32")', "W287", "unexpected '/' at character 1", "//"),
    "a shape for a number": (GRAPH, "R.Shape(3)", "W114", "expected a shape, got 3", "write `(3,)`"),
    "misspelt type": (GRAPH, "R.Tensr", "W111", "`R.Tensr` does not exist", "did you mean `R.Tensor`?"),
    "misspelt scalar type": (KERNEL, "T.int33", "W111", "`T.int33` does not exist", "did you mean `T.int32`?"),
    "misspelt buffer": (KERNEL, "T.Bufer", "W111", "`T.Bufer` does not exist", "did you mean `T.Buffer`?"),
    "unknown dtype of a buffer": (KERNEL, 'T.Buffer((4,), "f32")', "W301", "unknown dtype 'f32'", "float32"),
    "a buffer without a shape": (KERNEL, "T.Buffer()", "W113", "missing a required argument: 'shape'", "shape, dtype"),
}


@pytest.mark.parametrize("name", ANNOTATIONS)
def test_a_mistake_in_an_annotation_is_shown_under_it_in_the_users_file(name: str, tmp_path: Path) -> None:
    unit, annotation, code, message, hint = ANNOTATIONS[name]
    path = tmp_path / "model.py"
    path.write_text(HEAD + unit.format(annotation), encoding="utf-8")
    with pytest.raises(weft.WeftError) as caught:
        runpy.run_path(str(path))
    error = caught.value
    assert error.code == code, error
    if sys.version_info >= (3, 14):
        return  # the next test says the rest
    assert message in error.message, error
    assert hint in (error.hint or ""), error
    assert error.span is not None
    place = (error.span.filename, error.span.line, error.span.column, error.span.end_column)
    assert place == (str(path), 3, 10, 10 + len(annotation)), error


# Where the part stands that is wrong, and what the reader says differently.
PARTS = {
    "a number for a shape": ("4", ""),
    "dtype before shape": ('"float32"', ""),
    "unknown dtype": ('"f32"', ""),
    "unknown keyword": ('dtyp="f"', "R.Tensor has no argument 'dtyp'"),
    "half an expression": ('"n +"', ""),
    "true division": ('"n/2"', ""),
    "a shape for a number": ("3", ""),
    "misspelt type": ("R.Tensr", ""),
    "misspelt scalar type": ("T.int33", ""),
    "misspelt buffer": ("T.Bufer", ""),
    "unknown dtype of a buffer": ('"f32"', ""),
    "a buffer without a shape": ("T.Buffer()", "T.Buffer lacks its argument 'shape'"),
}


@pytest.mark.parametrize("name", ANNOTATIONS)
def test_a_mistake_in_an_annotation_that_python_leaves_alone_is_shown_under_its_part(name: str, tmp_path: Path) -> None:
    unit, annotation, code, message, hint = ANNOTATIONS[name]
    part, other = PARTS[name]
    path = tmp_path / "model.py"
    path.write_text("from __future__ import annotations; " + HEAD + unit.format(annotation), encoding="utf-8")
    with pytest.raises(weft.WeftError) as caught:
        runpy.run_path(str(path))
    error = caught.value
    assert error.code == code, error
    assert (other or message) in error.message, error
    assert other or hint in (error.hint or ""), error
    assert error.hint, error
    assert error.span is not None
    start = 10 + annotation.index(part)
    place = (error.span.filename, error.span.line, error.span.column, error.span.end_column)
    assert place == (str(path), 3, start, start + len(part)), error


def test_an_annotation_behind_wide_letters_has_its_column_in_characters(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text(HEAD + '@R.function\ndef f(größe: R.Tensor((2,), "f32")):\n    return größe\n', encoding="utf-8")
    with pytest.raises(weft.DTypeError) as caught:
        runpy.run_path(str(path))
    assert caught.value.span is not None
    assert caught.value.span.column == (14 if sys.version_info < (3, 14) else 29)


def test_a_type_outside_of_scripts_fails_under_the_call_that_made_it() -> None:
    with pytest.raises(weft.DTypeError, match="unknown dtype 'f32'") as caught:
        weft.ir.Var("x", R.Tensor((2,), "f32"))
    assert caught.value.span is not None
    source = caught.value.span.source.text[caught.value.span.start : caught.value.span.end]
    assert source == 'R.Tensor((2,), "f32")'


def test_a_name_that_a_namespace_lacks_is_an_attribute_error_too() -> None:
    assert not any((hasattr(R, "Tensr"), hasattr(T, "Bufer"), hasattr(T.axis, "spacial")))
    with pytest.raises(AttributeError, match=r"`T\.axis\.spacial` does not exist") as caught:
        getattr(T.axis, "spacial")  # noqa: B009
    error = caught.value
    assert isinstance(error, weft.ScriptError)
    assert error.hint == "did you mean `T.axis.spatial`?"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@pytest.mark.parametrize("name", ["T.grid", "T.block", "T.alloc_buffer", "T.axis.remap", "R.dataflow", "R.match_cast"])
def test_names_that_only_scripts_use_are_documented_and_say_so_when_called(name: str) -> None:
    value: Any = {"R": R, "T": T}[name[0]]
    for part in name.split(".")[1:]:
        value = getattr(value, part)
    assert value.__name__ == name.rpartition(".")[2]
    assert len(inspect.getdoc(value) or "") > 30
    with pytest.raises(weft.ScriptError, match=f"{name} has a meaning only inside a decorated function"):
        value(4)


def test_the_names_of_a_namespace_can_be_listed() -> None:
    assert {"Buffer", "grid", "block", "axis", "exp", "float32", "prim_func", "Cast"} <= set(dir(T))
    assert {"matmul", "nn", "Tensor", "function", "dataflow"} <= set(dir(R))
    for name in dir(T):
        assert getattr(T, name) is not None


def test_a_device_may_be_the_third_argument_of_a_tensor_type() -> None:
    device = weft.ir.VDevice(weft.Target("llvm"), 0, "global")
    tensor: Any = R.Tensor
    assert tensor((2,), "float32", device).vdevice is device
