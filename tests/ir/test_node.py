"""The node contract: frozen, compared by identity, field roles drive everything."""

from __future__ import annotations

import dataclasses

import pytest

from weft.ir import Call, DataflowVar, FrozenMap, Op, TensorType, Var, VarBinding, fields_of, replace


def test_nodes_compare_by_identity() -> None:
    a, b = TensorType((2,), "float32"), TensorType((2,), "float32")
    assert a == a
    assert a != b
    assert len({a, b}) == 2


def test_nodes_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        TensorType((2,), "float32").dtype = "int8"  # type: ignore[misc]


def test_nodes_take_positional_and_keyword_arguments() -> None:
    ty = TensorType((2,), "float32")
    assert Var("x", ty).ty is Var(name="x", ty=ty).ty


def test_replace_without_a_change_returns_the_same_object() -> None:
    call = Call(Op("exp"), (Var("x", TensorType((2,), "float32")),))
    assert replace(call, args=call.args) is call
    assert replace(call, args=()).args == ()


def test_a_binding_is_visited_value_first() -> None:
    assert [info.name for info in fields_of(VarBinding)][:2] == ["value", "var"]
    assert {info.name: info.role for info in fields_of(VarBinding)}["var"] == "binder"


def test_dataflow_variables_are_variables() -> None:
    assert issubclass(DataflowVar, Var)


def test_a_frozen_map_freezes_its_values_and_keeps_order() -> None:
    items = FrozenMap({"b": [1, {"c": [2]}], "a": 0})
    assert list(items) == ["b", "a"]
    assert items["b"] == (1, FrozenMap({"c": (2,)}))
    assert items.set("a", 1)["a"] == 1
    assert items["a"] == 0
    assert list(items.without("b")) == ["a"]
    assert items.map_values(lambda value: value) is items
    with pytest.raises(TypeError):
        items["a"] = 2  # type: ignore[index]
