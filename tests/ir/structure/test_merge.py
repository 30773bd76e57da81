"""Merging modules with renaming."""

from __future__ import annotations

import pytest

from weft import ArtifactError, PassError
from weft.ir import (
    BindingBlock,
    Call,
    ExternFunc,
    Function,
    GlobalVar,
    IRModule,
    Op,
    SeqExpr,
    TensorType,
    Var,
    VarBinding,
)
from weft.ir.structure.merge import merge, rename_functions
from weft.ir.structure.structural import structural_equal
from weft.runtime.artifact import Artifact, ArtifactSet, Symbol

TYPE = TensorType((2,), "float32")


def calling(callee: str, *, private: bool = True) -> Function:
    x, y = Var("x", TYPE), Var("y", TYPE)
    op = Op(callee[1:]) if callee.startswith("@") else GlobalVar(callee)
    return Function((x,), SeqExpr((BindingBlock((VarBinding(y, Call(op, (x,))),)),), y), TYPE, private=private)


def test_conflicting_private_names_are_renamed_with_their_references() -> None:
    """B6: two hooks both return `helper`; each caller keeps its own."""
    left = IRModule({"helper": calling("@exp"), "f": calling("helper", private=False)})
    right = IRModule({"helper": calling("@log"), "g": calling("helper", private=False)})
    result = merge(left, right)
    assert result.mapping == {"helper": "helper_1", "g": "g"}
    assert list(result.module) == ["helper", "f", "helper_1", "g"]
    assert result.module["g"].body.blocks[0].bindings[0].value.op.name == "helper_1"
    assert result.module["f"] is left["f"]


def test_equal_functions_are_shared() -> None:
    module = IRModule({"helper": calling("@exp"), "f": calling("helper", private=False)})
    result = merge(module, IRModule({"helper": calling("@exp"), "g": calling("helper", private=False)}))
    assert list(result.module) == ["helper", "f", "g"]


def test_a_function_is_not_shared_when_what_it_calls_differs() -> None:
    left = IRModule({"outer": calling("inner"), "inner": calling("@exp")})
    right = IRModule({"outer": calling("inner"), "inner": calling("@log")})
    result = merge(left, right)
    assert result.mapping == {"outer": "outer_1", "inner": "inner_1"}
    assert result.module["outer_1"].body.blocks[0].bindings[0].value.op.name == "inner_1"


def test_a_public_name_is_never_silently_renamed() -> None:
    """B7: a conflict is an error unless the functions are equal, then they are shared."""
    left, right = (IRModule({"f": calling(op, private=False)}) for op in ("@exp", "@log"))
    with pytest.raises(PassError, match="different public function 'f'") as caught:
        merge(left, right)
    assert caught.value.code == "W530"
    assert structural_equal(merge(left, IRModule({"f": calling("@exp", private=False)})).module, left)
    assert merge(left, right, public="rename").mapping == {"f": "f_1"}


def test_merging_nothing_changes_nothing() -> None:
    module = IRModule({"f": calling("@exp")}).with_attr("a", 1)
    assert structural_equal(merge(module, IRModule({})).module, module)
    assert structural_equal(merge(IRModule({}), module).module, module)


def test_attributes_join_or_disagree() -> None:
    one, two = (ArtifactSet([Artifact("c", f"{name}.c", b"")]) for name in "ab")
    joined = merge(IRModule({}).with_attr("artifacts", one), IRModule({}).with_attr("artifacts", two)).module
    assert joined.attrs["artifacts"].names == ("a.c", "b.c")
    with pytest.raises(PassError, match="disagree on attribute 'k'") as caught:
        merge(IRModule({}).with_attr("k", 1), IRModule({}).with_attr("k", 2))
    assert caught.value.code == "W531"


def test_a_symbol_has_one_provider_after_merging() -> None:
    """B7: nothing wins silently."""

    def providing(name: str, data: bytes) -> IRModule:
        artifact = Artifact("object", name, data, provides=(Symbol("k"),))
        return IRModule({}).with_attr("artifacts", ArtifactSet([artifact]))

    with pytest.raises(ArtifactError, match="both provide 'k'"):
        merge(providing("a.o", b"1"), providing("b.o", b"2"))
    with pytest.raises(ArtifactError, match="before their code is generated"):
        merge(providing("a.o", b"1"), providing("a.o", b"2"))
    same = merge(providing("a.o", b"1"), providing("a.o", b"1")).module
    assert same.attrs["artifacts"].names == ("a.o",)


def test_a_registered_function_keeps_its_name_when_a_function_of_that_name_is_renamed() -> None:
    """B6: it is another function, outside of both modules."""
    x, y, z = (Var(name, TYPE) for name in "xyz")
    own, outside = Call(GlobalVar("f"), (x,)), Call(ExternFunc("f"), (y,), ty_args=(TYPE,))
    body = SeqExpr((BindingBlock((VarBinding(y, own), VarBinding(z, outside))),), z)
    module = IRModule({"f": calling("@exp"), "main": Function((x,), body, TYPE)})
    main = rename_functions(module, {"f": "g"})["main"]
    assert isinstance(main, Function)
    called = [binding.value.op.name for binding in main.body.blocks[0].bindings]  # type: ignore[union-attr]
    assert called == ["g", "f"]


def test_a_declared_symbol_stays_when_its_function_is_renamed() -> None:
    """H8, B6: what a declaration stands for is found under the name that it has outside."""
    left = IRModule({"f": ExternFunc("library.f"), "main": calling("f", private=False)})
    right = IRModule({"f": ExternFunc("library.g"), "other": calling("f", private=False)})
    result = merge(left, right, public="rename")
    assert result.mapping["f"] == "f_1"
    declared = result.module["f_1"]
    assert isinstance(declared, ExternFunc)
    assert declared.name == "library.g"
    assert "cls.f_1(" in result.module["other"].script()
    assert "cls.f(" in result.module["main"].script()
