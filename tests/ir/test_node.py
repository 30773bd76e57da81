"""The node contract: frozen, compared by identity, field roles drive everything."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from weft import ResourceError
from weft.ir import Call, DataflowVar, FrozenMap, Op, TensorType, TupleType, Type, Var, VarBinding, fields_of, replace


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


@pytest.mark.parametrize("hold", [lambda part: [part, part], lambda part: {"a": part, "b": part}])
def test_data_that_is_held_twice_at_each_of_many_levels_is_refused(hold: Callable[[Any], Any]) -> None:
    data: Any = [1, 2]
    for _ in range(40):
        data = hold(data)
    with pytest.raises(ResourceError, match="more than 65536 lists and dicts") as caught:
        FrozenMap({"key": data})
    assert caught.value.code == "W951"


def test_long_lists_of_numbers_are_data() -> None:
    assert FrozenMap({"key": [list(range(200_000)), [1, 2]]})["key"][0][-1] == 199_999


def test_types_of_tuples_that_are_held_twice_at_each_of_many_levels_are_refused() -> None:
    held: Type = TensorType((2,), "float32")
    for _ in range(15):
        held = TupleType((held, held))
    with pytest.raises(ResourceError, match="a type of 65536 values is refused") as caught:
        TupleType((held, held))
    assert caught.value.code == "W951"
