"""`A.elem_offset`: zero where a buffer starts at its pointer, a symbol where the caller may start it elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.ir.tensor import PrimFunc, PrimVar
from weft.script import parse

PARAMETERS = ('A: T.Buffer((8,), "float32", offset_factor={})', "a: T.handle")
MATCH = '\n    A = T.match_buffer(a, (8,), "float32", offset_factor={})'


def kernel(parameter: str, factor: int) -> PrimFunc:
    """A kernel that adds the offset of its first parameter to its elements."""
    match = MATCH if parameter.startswith("a") else ""
    text = f"""
@T.prim_func
def f({parameter}, B: T.Buffer((8,), "float32")):{match}
    for i in range(8):
        B[i] = A[i] + T.Cast("float32", A.elem_offset)
"""
    made = parse(text.format(factor))
    assert isinstance(made, PrimFunc)
    return made


@pytest.mark.parametrize("parameter", PARAMETERS)
def test_the_offset_of_a_parameter_with_an_offset_factor_is_a_symbol(parameter: str) -> None:
    function = kernel(parameter, 4)
    offset = function.params[0].elem_offset  # type: ignore[union-attr]
    assert isinstance(offset, PrimVar)
    assert (offset.name, offset.dtype) == ("A_elem_offset", "int32")
    assert not weft.verify(function)
    for spelling in ("weft", "tvm-0.27", "tvm-0.20"):
        weft.assert_structural_equal(parse(function.script(spelling=spelling)), function)
    assert "elem_offset=A_elem_offset, offset_factor=4" in function.script(spelling="tvm-0.27")


@pytest.mark.parametrize("parameter", PARAMETERS)
def test_the_offset_of_a_parameter_without_an_offset_factor_is_zero(parameter: str) -> None:
    function = kernel(parameter, 0)
    assert function.params[0].elem_offset is None  # type: ignore[union-attr]
    assert 'T.Cast("float32", T.int32(0))' in function.script()


@pytest.mark.parametrize("parameter", PARAMETERS)
def test_a_symbolic_offset_is_zero_for_whole_arrays(parameter: str) -> None:
    function = kernel(parameter, 4)
    a, b, c = np.arange(8, dtype="float32"), np.zeros(8, "float32"), np.zeros(8, "float32")
    weft.compile(weft.ir.IRModule({"f": function}), target="llvm")["f"](a, b)
    np.testing.assert_array_equal(a, b)
    weft.interpret(function)(a, c)
    np.testing.assert_array_equal(a, c)
    assert weft.compile(function, target="c")


def test_the_offset_of_a_view_is_a_symbol_where_the_text_reads_it() -> None:
    text = """
@T.prim_func
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(2):
        with T.block("b"):
            vi = T.axis.spatial(2, i)
            T.reads(A[vi * 4:vi * 4 + 4])
            T.writes(B[vi * 4:vi * 4 + 4])
            C = T.match_buffer(A[vi * 4:vi * 4 + 4], (4,), "float32", offset_factor=4)
            D = T.match_buffer(B[vi * 4:vi * 4 + 4], (4,), "float32", offset_factor=4)
            for j in range(4):
                D[j] = C[j] + T.Cast("float32", C.elem_offset)
"""
    function = parse(text)
    assert isinstance(function, PrimFunc)
    assert not weft.verify(function)
    shown = function.script()
    assert "elem_offset=C_elem_offset, offset_factor=4)" in shown
    assert "D_elem_offset" not in shown
    weft.assert_structural_equal(parse(shown), function)
    weft.assert_structural_equal(parse(function.script(spelling="tvm-0.27")), function)
    a, b = np.arange(8, dtype="float32"), np.zeros(8, "float32")
    weft.compile(weft.ir.IRModule({"f": function}), target="llvm")["f"](a, b)
    np.testing.assert_array_equal(a, b)


def test_names_beside_a_symbolic_offset_stay_apart() -> None:
    text = """
@T.prim_func
def f(A: T.Buffer((8,), "float32", offset_factor=1), A_elem_offset: T.int32, B: T.Buffer((8,), "float32")):
    for i in range(8):
        B[i] = A[i] + T.Cast("float32", A.elem_offset - A_elem_offset)
"""
    function = parse(text)
    assert isinstance(function, PrimFunc)
    weft.assert_structural_equal(parse(function.script()), function)
    assert function.params[0].elem_offset is not function.params[1]  # type: ignore[union-attr]
