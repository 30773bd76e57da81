"""Tensors that are spread over a mesh of devices: reading, printing, equality, exact errors."""

from __future__ import annotations

import pytest

import weft
from weft.errors import WeftError
from weft.ir import structural_equal, structural_hash
from weft.ir.deduction.device_mesh import DeviceMesh, DTensorType
from weft.ir.types import TensorType
from weft.ir.verify import verify
from weft.script import ir as I
from weft.script import parse
from weft.script import relax as R
from weft.transform import LegalizeOps

MODULE = """
@I.ir_module
class Module:
    I.module_global_infos({"mesh": [R.device_mesh((2,), I.Range(0, 2)), R.device_mesh((2, 2), [3, 5, 7, 9])]})

    @T.prim_func(private=True)
    def whole(x: T.Buffer((4, 8), "float32"), y: T.Buffer((4, 8), "float32")):
        for i, j in T.grid(4, 8):
            y[i, j] = x[i, j] + T.float32(1)

    @T.prim_func(private=True)
    def part(x: T.Buffer((2, 8), "float32"), y: T.Buffer((2, 8), "float32")):
        for i, j in T.grid(2, 8):
            y[i, j] = x[i, j] + T.float32(1)

    @R.function
    def main(x: R.DTensor((4, 8), "float32", "mesh[0]", "S[0]"), w: R.Tensor((4, 8), "float32")):
        cls = Module
        a = R.dist.call_tir(cls.whole, (x,), out_ty=R.DTensor((4, 8), "float32", "mesh[0]", "S[0]"))
        b = R.dist.call_tir_local_view(cls.part, (a,), out_ty=R.DTensor((4, 8), "float32", "mesh[0]", "S[0]"))
        c: R.DTensor((4, 8), "float32", "mesh[0]", "S[0]") = R.add(a, b)
        d = R.dist.redistribute(w, device_mesh="mesh[1]", placement="S[1], R")
        e = R.dist.annotate_sharding(c, device_mesh="mesh[0]", placement="R")
        return (e, d)
"""
PLACED = DTensorType(TensorType((4, 8), "float32"), DeviceMesh((2,), (0, 1)), (0,))


def _types(module: weft.IRModule) -> dict[str, object]:
    block = module["main"].body.blocks[0]
    return {binding.var.name: binding.var.ty for binding in block.bindings}


def test_a_module_with_spread_tensors_is_well_formed_and_its_variables_have_the_types_that_it_says() -> None:
    """The result of an operator is placed by its annotation, a redistribution by itself, a wish changes no type."""
    module = parse(MODULE)
    assert verify(module) == []
    types = _types(module)
    for name in ("a", "b", "c", "e"):
        assert structural_equal(types[name], PLACED), name
    assert structural_equal(types["d"].mesh, DeviceMesh((2, 2), (3, 5, 7, 9)))
    assert types["d"].placement == (1, None)


@pytest.mark.parametrize("options", [{}, {"types": "hidden"}, {"spelling": "tvm-0.27"}, {"spelling": "tvm-0.20"}])
def test_what_is_printed_reads_back_equal(options: dict[str, str]) -> None:
    """Every spelling, with and without the types that can be deduced."""
    module = parse(MODULE)
    text = module.script(**options)
    again = parse(text)
    assert structural_equal(module, again)
    assert structural_hash(module) == structural_hash(again)
    assert '"mesh[1]"' in text


def test_a_function_without_its_module_writes_the_mesh_out() -> None:
    """A mesh is part of the type: the name is only how the module's text says it."""
    function = parse(MODULE)["main"]
    text = parse(MODULE).script()
    assert 'x: R.DTensor((4, 8), "float32", "mesh[0]", "S[0]")' in text
    assert 'x: R.DTensor((4, 8), "float32", R.device_mesh((2,), I.Range(0, 2)), "S[0]")' in function.script()


def test_modules_that_differ_in_mesh_or_placement_are_not_equal() -> None:
    """Structural equality sees both."""
    module = parse(MODULE)
    for old, new in (("[3, 5, 7, 9]", "[3, 5, 7, 8]"), ("S[1], R", "R, S[1]")):
        assert not structural_equal(module, parse(MODULE.replace(old, new)))


def test_an_operator_without_an_annotation_gives_a_spread_tensor_whose_place_is_not_known() -> None:
    """It prints and reads; the field's spelling, which has no such type, leaves it to deduction."""
    module = parse(MODULE.replace(': R.DTensor((4, 8), "float32", "mesh[0]", "S[0]") = R.add', " = R.add"))
    assert structural_equal(_types(module)["c"], DTensorType(TensorType((4, 8), "float32")))
    assert structural_equal(module, parse(module.script()))
    text = module.script(spelling="tvm-0.27")
    assert "c = R.add(" in text
    assert structural_equal(module, parse(text))


LINE = 'def f(x: R.DTensor((4, 8), "float32", R.device_mesh((2,), [0, 1]), "S[0]")):'


@pytest.mark.parametrize(
    ("old", "new", "code", "place"),
    [
        ("R.device_mesh((2,), [0, 1])", '"mesh[0]"', "W111", '"mesh[0]"'),
        ("[0, 1]", "[0, 1, 2]", "W205", "R.device_mesh"),
        ('"S[0]"', '"S[2]"', "W203", '"S[2]"'),
        ('"S[0]"', '"S[0], R"', "W205", '"S[0], R"'),
        ('"S[0]"', '"P"', "W114", '"P"'),
    ],
)
def test_a_wrong_type_is_an_error_at_the_part_that_is_wrong(old: str, new: str, code: str, place: str) -> None:
    """The span is that of the mesh or the placement."""
    line = LINE.replace(old, new)
    with pytest.raises(WeftError) as found:
        parse(f"@R.function\n{line}\n    return x\n")
    span = found.value.span
    assert (found.value.code, span.line, span.column) == (code, 2, line.index(place) + 1)


@pytest.mark.parametrize(
    ("mesh", "placement", "code", "place"),
    [
        ('"grid[0]"', '"S[0]"', "W111", '"grid[0]"'),
        ('"mesh[2]"', '"S[0]"', "W111", '"mesh[2]"'),
        ('"mesh[0]"', '"S[0], R"', "W205", '"S[0], R"'),
        ('"mesh[0]"', '"S[2]"', "W203", '"S[2]"'),
    ],
)
def test_a_wrong_operator_is_an_error_at_the_argument_that_is_wrong(
    mesh: str, placement: str, code: str, place: str
) -> None:
    """The mesh and the placement of R.dist.redistribute."""
    line = f"        d = R.dist.redistribute(w, device_mesh={mesh}, placement={placement})"
    text = MODULE.replace('        d = R.dist.redistribute(w, device_mesh="mesh[1]", placement="S[1], R")', line)
    with pytest.raises(WeftError) as found:
        parse(text)
    span = found.value.span
    number = text.split("\n").index(line) + 1
    assert (found.value.code, span.line, span.column) == (code, number, line.index(place) + 1)


def test_a_kernel_of_the_wrong_view_is_refused() -> None:
    """The kernel of a local view takes the part of one device, that of R.dist.call_tir the whole."""
    for old, new in (("cls.whole, (x,)", "cls.part, (x,)"), ("cls.part, (a,)", "cls.whole, (a,)")):
        with pytest.raises(WeftError) as found:
            parse(MODULE.replace(old, new))
        assert found.value.code in ("W201", "W210")


def test_an_annotation_that_contradicts_a_known_place_is_refused() -> None:
    """What a redistribution says is known; an annotation decides only what is not."""
    text = MODULE.replace("d = R.dist", 'd: R.DTensor((4, 8), "float32", "mesh[1]", "R, R") = R.dist')
    with pytest.raises(WeftError) as found:
        parse(text)
    assert found.value.code == "W210"


def test_a_program_over_spread_tensors_does_not_run() -> None:
    """Compiling and interpreting refuse it by name."""
    module = parse(MODULE)
    for run in (weft.compile, weft.interpret):
        with pytest.raises(weft.TargetError) as found:
            run(module)
        assert found.value.code == "W741"
        assert "R.DTensor" in found.value.message


def test_the_python_names_build_the_same_nodes() -> None:
    """Outside of a script, and under both names."""
    mesh = R.device_mesh((2,), I.Range(0, 2))
    assert structural_equal(R.DTensor((4, 8), "float32", mesh, "S[0]"), PLACED)
    assert structural_equal(R.dist.DTensor((4, 8), "float32", R.dist.device_mesh((2,), [0, 1]), "S[0]"), PLACED)


def test_legalizing_leaves_operators_on_spread_tensors_alone() -> None:
    """A kernel works on the tensors of one device: the module stays as it is, and well formed."""
    module = parse(MODULE)
    assert LegalizeOps()(module) is module
