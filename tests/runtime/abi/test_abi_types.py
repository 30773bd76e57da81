"""Types of compiled functions are records; their JSON form says the same and nothing else is read."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from weft.runtime.abi import types as abi
from weft.runtime.abi.dims import Expression, Operation, dim_names, evaluate_dim, solve_linear
from weft.runtime.abi.json_form import (
    argument_from_json,
    signature_from_json,
    signature_to_json,
    site_from_json,
    site_to_json,
    type_from_json,
    type_to_json,
)
from weft.script import relax as R

_names = st.sampled_from("nmk")
_leaves = st.integers(0, 99) | _names
_trees = st.recursive(
    _leaves,
    lambda inner: (
        st.builds(Operation, st.sampled_from(("add", "mul", "min", "max")), st.lists(inner, min_size=1).map(tuple))
        | st.builds(Operation, st.sampled_from(("floordiv", "mod", "pow")), st.tuples(inner, inner))
    ),
    max_leaves=6,
)
_dims = st.lists(st.none() | _leaves | st.builds(Expression, st.text(max_size=5), _trees), max_size=4).map(tuple)
_dtypes = st.sampled_from(("float32", "int64", "bool", "bfloat16", "int4"))


def _tensor(dtype: str | None, dims: tuple[Any, ...] | None, rank: int, use: Any) -> abi.Tensor:
    return abi.Tensor(dtype, dims, rank if dims is None else len(dims), use)


_tensors = st.builds(
    _tensor, st.none() | _dtypes, st.none() | _dims, st.integers(-1, 9), st.sampled_from(("", "copied", "written"))
)
_shapes = st.builds(lambda dims: abi.Shape(dims, -1 if dims is None else len(dims)), st.none() | _dims)
_buffers = st.builds(lambda t, d, w: abi.Buffer(t, d, d[::-1] if w else None, w), _dtypes, _dims, st.booleans())
_types = st.recursive(
    _tensors
    | _shapes
    | _buffers
    | st.builds(abi.Scalar, _dtypes, st.none() | _leaves, st.booleans())
    | st.sampled_from((abi.String(), abi.Function(), abi.Object())),
    lambda inner: st.builds(abi.Tuple, st.lists(inner, max_size=3).map(tuple)),
    max_leaves=5,
)


@given(_types)
def test_a_type_is_what_its_json_form_reads_as(ty: abi.Type) -> None:
    assert type_from_json(json.loads(json.dumps(type_to_json(ty)))) == ty


@given(st.lists(_types, max_size=3), st.none() | _types, st.booleans())
def test_a_signature_is_what_its_json_form_reads_as(
    types: list[abi.Type], result: abi.Type | None, private: bool
) -> None:
    params = tuple(abi.Parameter(f"p{i}", ty, ["f.py", "x", 1, 0, 1, ""]) for i, ty in enumerate(types))
    signature = abi.Signature("main", "graph", "weft.entry.main", params, result, None, private)
    assert signature_from_json(json.loads(json.dumps(signature_to_json(signature)))) == signature


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=6), lambda x: st.lists(x, max_size=6)))
def test_other_json_is_no_type(data: Any) -> None:
    try:
        ty = type_from_json(data)
    except ValueError:
        return
    assert ty is None or type_from_json(type_to_json(ty)) == ty


@pytest.mark.parametrize(
    "data",
    [
        ["tensor"],
        ["tensor", "float32", None],
        ["tensor", "float32", [1], 2],
        ["tensor", "float99", [1], 1],
        ["tensor", "float32", [True], 1],
        ["tensor", "float32", [1], 1, "kept"],
        ["tensor", "float32", None, 65],
        ["tensor", "float32", [["n", ["floordiv", "n"]]], 1],
        ["tensor", "float32", [["n", ["exec", "n"]]], 1],
        ["buffer", "float32", [1], [1, 2], True],
        ["buffer", "float32", [1], None, 1],
        ["shape", [1], 3],
        ["prim", "int64", None, "number"],
        ["tuple", []],
        ["string", 3],
        ["object", 1],
        {},
        7,
        "tensor",
        [["tensor"]],
    ],
)
def test_malformed_types_are_refused(data: Any) -> None:
    with pytest.raises(ValueError, match=r"is no|are no|of a value"):
        type_from_json(data)


def test_what_compiled_code_hands_out_has_types_of_its_own() -> None:
    args = (abi.StridedBuffer("float32", 2), abi.Text("a"), abi.Scalar("int64"), abi.Tuple((abi.Text("b"),)))
    site = {"kind": "call", "name": "f", "args": args, "result": None}
    assert site_from_json(json.loads(json.dumps(site_to_json(site)))) == site
    assert [arg.words for arg in args] == [6, 0, 1, 0]
    with pytest.raises(ValueError, match="is no buffer"):
        argument_from_json(["buffer", "float32", -1])


def test_sizes_are_evaluated_exactly_and_solved_where_they_are_linear() -> None:
    size = Expression("2 * n + 1", Operation("add", (Operation("mul", (2, "n")), 1)))
    assert (evaluate_dim(size, {"n": 2**62}), dim_names(size)) == (2**63 + 1, ["n"])
    assert (solve_linear(size, "n", 9, {}), solve_linear(size, "n", 8, {})) == (4, None)
    assert evaluate_dim(Operation("mod", ("n", 0)), {"n": 3}) is None


def test_signatures_of_compiled_functions_are_records() -> None:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        return R.exp(x)

    for executor in ("native", "vm", "graph", "aot"):
        signature = weft.compile(main, executor=executor)["main"].signature
        assert signature.params[0].type == abi.Tensor("float32", ("n", 4), 2)
        assert (signature.kind, str(signature.result)) == ("graph", "float32[(n, 4)]")
        with pytest.raises(dataclasses.FrozenInstanceError):
            signature.name = "other"  # type: ignore[misc]
    assert weft.compile(main)["main"](np.zeros((2, 4), "float32")).sum() == 8
