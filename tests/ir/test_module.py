"""IRModule: an immutable, ordered mapping."""

from __future__ import annotations

import pytest

import weft
from weft.ir import Function, IRModule, SeqExpr, TensorType, Var


def identity() -> Function:
    x = Var("x", TensorType((2,), "float32"))
    return Function((x,), SeqExpr((), x), x.ty)


def test_changes_make_new_modules() -> None:
    f, g = identity(), identity()
    module = IRModule({"f": f})
    more = module.with_function("g", g)
    assert list(module) == ["f"]
    assert list(more) == ["f", "g"]
    assert more["f"] is f
    assert list(more.without("f")) == ["g"]
    assert module.with_function("f", f) is module
    assert module.with_functions({"f": f}) is module


def test_a_member_that_is_no_function_is_refused_at_once() -> None:
    for make in (lambda: IRModule({"a": 3}), lambda: IRModule({}).with_function("a", 3)):  # type: ignore[dict-item, arg-type]
        with pytest.raises(weft.VerifyError, match="a is an int, not a function") as error:
            make()
        assert error.value.code == "W413"


def test_attributes_and_global_infos() -> None:
    module = IRModule({}).with_attr("a", [1, 2]).with_global_infos({"vdevice": []})
    assert module.attrs["a"] == (1, 2)
    assert module.without_attr("a").attrs == {}
    assert list(module.global_infos) == ["vdevice"]


def test_an_unknown_function_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(weft.PassError, match="no function 'g'") as caught:
        IRModule({"f": identity()})["g"]
    assert caught.value.code == "W510"
    assert caught.value.hint == "it has: f"


def test_fresh_names_count_on_from_their_numeric_suffix() -> None:
    """B8: with func12, func13 and func4 taken, another func12 becomes func14."""
    module = IRModule({"func12": identity(), "func13": identity(), "func4": identity()})
    assert module.fresh_name("g") == "g"
    assert module.fresh_name("func12") == "func14"
    assert module.fresh_name("func4") == "func5"
    assert IRModule({"f": identity(), "f_1": identity()}).fresh_name("f") == "f_2"
