"""Values and types that nest deeply, hold themselves, or are held twice at each of many levels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import weft
from weft.ir import Function, IRModule, SeqExpr, TupleType, Var
from weft.ir.types import TensorType
from weft.runtime.abi import types as abi

X = np.ones(3, "float32")
TEXT = """
@I.ir_module
class M:
    @R.function
    def main(x: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
        return x
    @R.function
    def pair(x: R.Tuple(R.Tensor((3,), "float32"), R.Tuple(R.Tensor((3,), "float32")))) -> R.Tensor((3,), "float32"):
        return x[0]
    @R.function
    def anything(x: R.Object) -> R.Object:
        return x
    @R.function(pure=False)
    def returned(x: R.Prim("int64")) -> R.Object:
        y = R.call_packed("tests.deep_values", x, ty_args=R.Object)
        return y
"""


def nested(levels: int, wrap: Callable[[Any], Any], made: Any = X) -> Any:
    for _ in range(levels):
        made = wrap(made)
    return made


def ending(call: Callable[[], Any]) -> str:
    """The code of the error of a call; nothing where it ends well."""
    try:
        call()
    except weft.WeftError as error:
        return error.code
    return ""


itself: list[Any] = []
itself.append(itself)
VALUES = [
    nested(1500, lambda part: (part,)),
    nested(1500, lambda part: [part]),
    nested(40, lambda part: (part, part)),
    nested(40, lambda part: [part, part]),
    itself,
]


@pytest.fixture(scope="module", params=["native", "vm", "interpreter"])
def functions(request: pytest.FixtureRequest) -> Mapping[str, Any]:
    weft.register_func("tests.deep_values", lambda number: VALUES[int(number)], override=True)
    module = weft.parse(TEXT)
    return weft.interpret(module) if request.param == "interpreter" else weft.compile(module, executor=request.param)


@pytest.mark.parametrize("number", range(len(VALUES)))
def test_values_that_nest_without_end_are_refused_or_pass(functions: Mapping[str, Any], number: int) -> None:
    for name in ("main", "pair"):
        with pytest.raises(weft.WeftError) as caught:
            functions[name](VALUES[number])
        assert caught.value.code == "W851"
        assert len(str(caught.value)) < 1000
    for name, given in (("anything", VALUES[number]), ("returned", number)):
        assert ending(lambda name=name, given=given: functions[name](given)) in ("", "W951")


def test_tuples_that_compiled_code_takes_nest_little_or_are_refused() -> None:
    def function(levels: int) -> IRModule:
        ty = nested(levels, lambda part: TupleType((part,)), TensorType((3,), "float32"))
        p = Var("p", ty)
        return IRModule({"main": Function((p,), SeqExpr((), p), ty, name="main")})

    assert weft.compile(function(60))["main"](nested(60, lambda part: (part,))) is not None
    with pytest.raises(weft.WeftError) as caught:
        weft.compile(function(1500))
    assert caught.value.code == "W951"


@pytest.mark.parametrize("width", [1, 2])
def test_records_of_types_nest_little(width: int) -> None:
    with pytest.raises(weft.WeftError) as caught:
        nested(1500, lambda part: abi.Tuple((part,) * width), abi.Tensor("float32", (3,), 1))
    assert caught.value.code == "W951"
    assert str(nested(2, lambda part: abi.Tuple((part,) * width), abi.String())).startswith("tuple(tuple(a string")
