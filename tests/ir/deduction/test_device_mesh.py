"""Types of spread tensors: subtypes, common bases, symbols, parts."""

from __future__ import annotations

import pytest

from weft.errors import ShapeError
from weft.ir.deduction.device_mesh import DeviceMesh, DTensorType, local_tensor, whole_tensors
from weft.ir.deduction.subtyping import common_base, erase, is_base_of, match_types, substitute_type, type_symbols
from weft.ir.dim import symbol
from weft.ir.structure.structural import structural_equal
from weft.ir.types import TensorType, TupleType

MESH = DeviceMesh((2, 2), (0, 1, 2, 3))
TENSOR = TensorType((4, 8), "float32")


def _spread(tensor: TensorType = TENSOR, mesh: DeviceMesh | None = MESH, place: object = (0, None)) -> DTensorType:
    return DTensorType(tensor, mesh, place)  # type: ignore[arg-type]


def test_a_subtype_has_an_equal_mesh_and_placement_and_a_subtype_as_its_tensor() -> None:
    """Another mesh object of the same devices is the same mesh."""
    again = _spread(mesh=DeviceMesh((2, 2), (0, 1, 2, 3)))
    assert is_base_of(_spread(), again) is True
    assert is_base_of(_spread(TensorType(ndim=2)), again) is True
    assert is_base_of(_spread(), _spread(TensorType((4, 9), "float32"))) is False
    assert is_base_of(_spread(), _spread(mesh=DeviceMesh((2, 2), (0, 1, 2, 4)))) is False
    assert is_base_of(_spread(), _spread(place=(None, 0))) is False
    assert is_base_of(_spread(), TENSOR) is False
    assert is_base_of(TENSOR, _spread()) is False


def test_a_place_that_is_not_said_may_be_any_and_is_not_known() -> None:
    """As for a shape that is not said."""
    assert is_base_of(DTensorType(TENSOR), _spread()) is True
    assert is_base_of(_spread(), DTensorType(TENSOR)) is None


def test_the_common_base_keeps_what_both_have() -> None:
    """The placement, else the mesh, else only that it is spread."""
    same = common_base(_spread(TensorType((4, 9), "float32")), _spread())
    assert structural_equal(same, _spread(TensorType(dtype="float32", ndim=2)))
    assert structural_equal(common_base(_spread(), _spread(place=(1, None))), DTensorType(TENSOR, MESH))
    other = _spread(mesh=DeviceMesh((2, 2), (4, 5, 6, 7)))
    assert structural_equal(common_base(_spread(), other), DTensorType(TENSOR))


def test_symbols_of_the_tensor_are_symbols_of_the_type() -> None:
    """They are found, bound by calls, replaced and erased."""
    n = symbol("n")
    ty = _spread(TensorType((n, 8), "float32"))
    assert type_symbols(TupleType((ty,))) == {"n"}
    assert structural_equal(substitute_type(ty, {"n": 4}), _spread())
    assert structural_equal(erase(ty, set()), _spread(TensorType(dtype="float32", ndim=2)))
    assert match_types([ty], [_spread()]).symbols == {"n": 4}


def test_the_part_of_a_device_is_the_tensor_divided_by_the_mesh() -> None:
    """Every dimension of the mesh divides the one it splits; the same one twice is divided twice."""
    assert local_tensor(_spread()).dims == (2, 8)
    assert local_tensor(_spread(place=(1, 1))).dims == (4, 2)
    assert structural_equal(whole_tensors(TupleType((_spread(),))), TupleType((TENSOR,)))
    with pytest.raises(ShapeError) as found:
        local_tensor(_spread(TensorType((3, 8), "float32")))
    assert found.value.code == "W201"


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda: DeviceMesh((2, 2), (0, 1, 2)), "W205"),
        (lambda: DeviceMesh((0,), ()), "W205"),
        (lambda: DeviceMesh((2,), (1, 1)), "W205"),
        (lambda: _spread(place=(0,)), "W205"),
        (lambda: _spread(place=(0, 2)), "W203"),
    ],
)
def test_a_mesh_or_placement_that_cannot_be_is_refused(make: object, code: str) -> None:
    """When it is made, whoever makes it."""
    with pytest.raises(ShapeError) as found:
        make()  # type: ignore[operator]
    assert found.value.code == code
