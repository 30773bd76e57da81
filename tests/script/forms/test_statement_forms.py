"""Statement forms added from outside: one row says how they are written, read, shown and documented."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import weft
from weft.ir import AttrStmt, BufferStore, Evaluate
from weft.ir.kernel.prim import const
from weft.script import remove_statement_form, statement_form
from weft.script import tir as T

KERNEL = """
@T.prim_func
def f(x: T.Buffer((4,), "float32")):
    {}
    x[0] = T.float32(1)
"""


@pytest.fixture
def pragma() -> Iterator[None]:
    statement_form(
        "T.pragma(name: text, *, factor: integer = 1)",
        doc="A pragma for the statements that follow.",
        node=AttrStmt,
        read=lambda values, span: (
            lambda body: AttrStmt(None, f"pragma.{values['name']}", const(values["factor"], "int32"), body, span=span)
        ),
        show=lambda node: (
            {"name": node.key[7:], "factor": node.value.value} if node.key.startswith("pragma.") else None
        ),
    )
    yield
    remove_statement_form("T.pragma")


@pytest.mark.usefixtures("pragma")
def test_a_form_is_read_and_shown_as_its_row_says() -> None:
    function = weft.parse(KERNEL.format('T.pragma("unroll", factor=4)'))
    assert isinstance(function.body, AttrStmt)
    assert function.body.key == "pragma.unroll"
    text = function.script()
    assert 'with T.pragma("unroll", factor=4):' in text
    assert weft.structural_equal(weft.parse(text), function)


@pytest.mark.usefixtures("pragma")
def test_a_node_that_the_form_does_not_say_keeps_its_own() -> None:
    function = weft.parse(KERNEL.format('T.attr({"other": 1})'))
    assert "T.attr(" in function.script()


@pytest.mark.usefixtures("pragma")
def test_text_for_tvm_shows_the_node_as_it_is() -> None:
    function = weft.parse(KERNEL.format('T.pragma("unroll")'))
    text = function.script(spelling="tvm-0.27")
    assert "T.pragma" not in text
    assert "pragma.unroll" in text


@pytest.mark.usefixtures("pragma")
def test_arguments_that_do_not_fit_are_told_with_the_signature() -> None:
    with pytest.raises(weft.ScriptError, match=r"T\.pragma has no argument 'factr'") as caught:
        weft.parse(KERNEL.format('T.pragma("unroll", factr=4)'))
    assert caught.value.code == "W113"
    with pytest.raises(weft.ScriptError, match=r"`T\.pragm` does not exist") as caught:
        weft.parse(KERNEL.format('T.pragm("unroll")'))
    assert caught.value.hint == "did you mean `T.pragma`?"


@pytest.mark.usefixtures("pragma")
def test_the_namespace_has_the_form_and_its_sentence() -> None:
    assert "pragma" in dir(T)
    assert T.pragma.__doc__.startswith("A pragma for the statements that follow.")


def test_a_form_may_stand_for_several_statements() -> None:
    def clear(values: dict, span: object) -> list[BufferStore]:
        buffer = values["buffer"].buffer
        return [BufferStore(buffer, const(0, buffer.dtype), (const(i, "int32"),)) for i in range(buffer.shape[0])]

    statement_form("T.clear(buffer: regions)", doc="Zeros in a buffer of one dimension.", read=clear)
    try:
        kernel = weft.parse(KERNEL.format("T.clear(x)"))
        assert kernel.script().count("T.float32(0.0)") == 4
    finally:
        remove_statement_form("T.clear")


def test_names_of_the_table_are_not_taken_twice() -> None:
    with pytest.raises(ValueError, match=r"two rows for T\.reads"):
        statement_form("T.reads()", doc="", read=lambda values, span: Evaluate(const(0, "int32")))
    with pytest.raises(ValueError, match="a statement form is one of T"):
        statement_form("R.reads()", doc="", read=lambda values, span: None)


def test_a_form_that_was_taken_back_is_unknown() -> None:
    with pytest.raises(weft.ScriptError, match=r"`T\.pragma` does not exist"):
        weft.parse(KERNEL.format('T.pragma("unroll")'))
