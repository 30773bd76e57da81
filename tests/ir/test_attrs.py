"""The table of attribute keys: every row is used, its aliases are read as it is, and wrong values are found."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.ir import attrs, verify
from weft.ir.attrs import KEYS, AttributeKey, Carrier, attribute, wrong_values

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ("src/weft", "ir", "script", "transform", "codegen", "runtime", "frontend", "testing")
GOOD: dict[str, Any] = {
    "flag": True,
    "number from 0": 3,
    "text": "a",
    "text or number": 4,
    "texts": ("a", "b"),
    "numbers from 0": (0, 2),
    "pairs of positions": ((0, 1),),
    "mapping": {"a": 1},
    "sizes by symbol": {"n": 4},
    "records": ({"kind": "gemm"},),
    "number": 0.5,
    "value": object(),
}
BAD: dict[str, tuple[Any, ...]] = {
    "flag": ("yes", 0.5),
    "number from 0": (-1, "3", True),
    "text": (3,),
    "text or number": (-1, (1,)),
    "texts": ("ab", (1,)),
    "numbers from 0": (3, ("a",), (-1,)),
    "pairs of positions": ((0, 1), ((0, 1, 2),)),
    "mapping": ((1, 2),),
    "sizes by symbol": ({"n": "many"}, {"n": -4}),
    "records": (("a",), {"a": 1}),
    "number": ("1", True),
}


LOOKUP = re.compile(r"""(?:\b(?:attrs|annotations)(?:\.(?:get|set|without))?[\[(]|with_attr\()["']([^"']+)["']""")


@cache
def sources() -> dict[str, str]:
    """The files of the library but for the table, without the examples and the quotations in their docstrings."""
    paths = (path for folder in LIBRARY for path in (ROOT / folder).rglob("*.py") if not path.is_symlink())
    texts = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in paths}
    del texts["ir/attrs.py"]
    return {name: re.sub(r"(>>>|\.\.\.) .*|`[^`\n]*`", "", text) for name, text in texts.items()}


def test_every_row_has_a_constant_and_every_constant_is_used() -> None:
    keys = {row.name for row in KEYS.values()}
    constants = {name: getattr(attrs, name) for name in attrs.__all__ if isinstance(getattr(attrs, name), str)}
    assert keys == set(constants.values())
    used = set(re.findall(r"\w+", "\n".join(sources().values())))
    assert sorted(set(constants) - used) == []


def test_no_code_looks_up_a_key_of_the_table_by_a_text() -> None:
    """`attrs.get("noalias")` is `attrs.get(NOALIAS)`: a slip of spelling is a name that is missing."""
    found = [f"{name}: {key}" for name, text in sources().items() for key in lookups(text)]
    assert found == []


def lookups(text: str) -> list[str]:
    """The keys of the table that are looked up, or set, as texts."""
    keys = {key for _, key in KEYS}
    return [key for key in LOOKUP.findall(text) if key in keys]


@pytest.mark.parametrize("text", ["f.attrs.get('noalias')", 'f.attrs["noalias"]', 'f.with_attr("noalias", 1)'])
def test_a_key_as_a_text_is_seen(text: str) -> None:
    assert lookups(text) == ["noalias"]


@pytest.mark.parametrize("row", {row.name: row for row in KEYS.values()}.values(), ids=lambda row: row.name)
def test_values_of_another_type_are_found(row: AttributeKey) -> None:
    for spelling in (row.name, *row.aliases):
        for carrier in row.carriers:
            assert wrong_values({spelling: GOOD[row.type]}, carrier) == []
            for value in BAD.get(row.type, ()):
                assert wrong_values({spelling: value}, carrier) == [(row, value)]


def test_what_is_not_in_the_table_may_have_any_value() -> None:
    assert wrong_values({"mine": object(), "op_pattern": [1]}, Carrier.GRAPH) == []


@pytest.mark.parametrize("spelling", ["noalias", "tir.noalias", "tirx.noalias"])
def test_every_spelling_is_read_as_the_key(spelling: str) -> None:
    assert attribute({spelling: False}, attrs.NOALIAS, True) is False
    assert attribute({}, attrs.NOALIAS, True) is True


MODULE = """from weft.script import ir as I, relax as R, tir as T
@I.ir_module
class M:
    I.module_attrs({module})
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        R.func_attr({graph})
        return x
    @T.prim_func
    def f(A: T.Buffer((4,), "float32")):
        T.func_attr({kernel})
        for i in T.serial(4, annotations={loop}):
            A[i] = T.float32(0)
"""


@pytest.mark.parametrize(
    ("place", "attributes", "found"),
    [
        ("module", {"name": 3, "cheaper": "x"}, []),  # keys of rules: this module is none
        ("module", {"base_py_module": "x"}, ["W436"]),
        ("graph", {"tir_var_upper_bound": {"n": "many"}}, ["W436"]),
        ("graph", {"mine": "many"}, []),
        ("kernel", {"tir.noalias": "no"}, ["W436"]),
        ("kernel", {"tir.noalias": True}, []),
        ("loop", {"weft.streams": -1}, ["W436"]),
        ("loop", {"weft.streams": 1}, []),
    ],
)
def test_the_verifier_holds_values_against_the_table(place: str, attributes: dict[str, Any], found: list[str]) -> None:
    parts = {"module": {}, "graph": {}, "kernel": {}, "loop": {}} | {place: attributes}
    text = MODULE
    for name, value in parts.items():
        text = text.replace("{" + name + "}", repr(value))
    assert [finding.code for finding in verify(weft.parse(text))] == found
