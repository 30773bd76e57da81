"""Shape rules at random: what is deduced for symbols is what NumPy has for numbers, and kernels agree with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from weft.errors import ShapeError
from weft.ir.deduction.infer import TypeContext, infer_type
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import Dim, evaluate, symbol
from weft.ir.graph import Call, Var
from weft.ir.interpret import interpret
from weft.ir.op import get_op
from weft.ir.op.indexing.index import _numpy_slice
from weft.ir.op.manipulate import _numpy_split
from weft.ir.tensor import PrimVar
from weft.ir.types import TensorType, TupleType

n, m = symbol("n"), symbol("m")
SIZES: list[Dim] = [1, 2, 3, 4, n, m, n + 1, 2 * n, n + m, n * 3 + 2]
sizes = st.sampled_from(SIZES)
values = st.fixed_dictionaries({"n": st.integers(0, 5), "m": st.integers(0, 5)})
common = settings(max_examples=120, deadline=None, derandomize=True)


def var(*dims: Dim, name: str = "x") -> Var:
    return Var(name, TensorType(dims, "float32"))


def array(ty: Any, symbols: dict[str, int]) -> np.ndarray:
    shape = tuple(evaluate(dim, symbols) for dim in dims_of(ty) or ())
    return np.arange(int(np.prod(shape)), dtype="float32").reshape(shape)


def outputs(call: Call, symbols: dict[str, int]) -> list[np.ndarray]:
    """What the kernel of a call computes; its checks are met."""
    context = TypeContext()
    ty = infer_type(call, context)
    parts = ty.fields if isinstance(ty, TupleType) else (ty,)
    kernel = get_op(call.op.name).lower(call, context, "kernel")  # type: ignore[attr-defined]
    assert kernel is not None
    results = [np.zeros(tuple(evaluate(dim, symbols) for dim in dims_of(part) or ()), "float32") for part in parts]
    inputs = [array(arg.ty, symbols) for arg in call.args if isinstance(arg, Var)]
    scalars = [symbols[param.name] for param in kernel.params if isinstance(param, PrimVar)]
    interpret(kernel)(*inputs, *results, *scalars)
    return results


def checks_hold(call: Call, symbols: dict[str, int]) -> bool:
    context = TypeContext()
    infer_type(call, context)
    return all(check.holds(evaluate(check.lhs, symbols), evaluate(check.rhs, symbols)) for check in context.checks)


def refused(call: Call, symbols: dict[str, int]) -> bool:
    """Whether a check of the call fails; then its kernel says so as well."""
    try:
        if checks_hold(call, symbols):
            return False
    except ShapeError:  # false for all sizes
        return True
    with pytest.raises(ShapeError, match="must"):
        outputs(call, symbols)
    return True


boundaries = st.one_of(
    st.integers(-7, 7),
    st.sampled_from([n, m, n - 1, n - 2, m - n, 2 * n, -n, n - m + 1, 1 << 62, -(1 << 62), 2**63 - 1]),
)


@common
@given(size=sizes, begin=boundaries, end=boundaries, step=st.sampled_from([1, 2, 3, -1, -2, -3]), symbols=values)
def test_slices_are_those_of_python(size: Dim, begin: Dim, end: Dim, step: int, symbols: dict[str, int]) -> None:
    """D3: symbolic boundaries of either sign too; what is assumed of them is checked."""
    call = get_op("strided_slice")(var(size, 2), [0], [begin], [end], [step])
    x = array(var(size, 2).ty, symbols)
    expected = _numpy_slice(x, [0], [evaluate(begin, symbols)], [evaluate(end, symbols)], [step], False)
    if refused(call, symbols):
        assert expected.shape[0] == 0 or min(evaluate(begin, symbols), evaluate(end, symbols)) < 0
        return
    (got,) = outputs(call, symbols)
    assert got.shape == expected.shape
    assert got.tolist() == expected.tolist()


@common
@given(size=sizes, cut=st.one_of(st.integers(1, 5), st.lists(boundaries, min_size=1, max_size=3)), symbols=values)
def test_splits_are_those_of_numpy(size: Dim, cut: Any, symbols: dict[str, int]) -> None:
    """D3."""
    call = get_op("split")(var(2, size), cut, axis=-1)
    x = array(var(2, size).ty, symbols)
    numbers = cut if isinstance(cut, int) else tuple(evaluate(index, symbols) for index in cut)
    expected = _numpy_split(x, numbers, -1)
    if refused(call, symbols):
        assert isinstance(numbers, tuple)
        assert min(numbers) < 0 or any(part.shape[-1] == 0 for part in expected)
        return
    got = outputs(call, symbols)
    assert [part.shape for part in got] == [part.shape for part in expected]
    assert [part.tolist() for part in got] == [part.tolist() for part in expected]


@common
@given(shape=st.lists(sizes, max_size=3), symbols=values, data=st.data())
def test_reshapes_keep_the_order_of_elements(shape: list[Dim], symbols: dict[str, int], data: st.DataObject) -> None:
    """D3: a size of -1 is computed, and what does not divide is refuted or checked."""
    factors: list[Dim] = [part for dim in shape for part in (dim, 1)]
    target = data.draw(st.permutations(factors))
    if target and data.draw(st.booleans()):
        target[data.draw(st.integers(0, len(target) - 1))] = -1
    call = get_op("reshape")(var(*shape), tuple(target))
    try:
        ty = infer_type(call)
    except ShapeError:  # the rest is 0 for all symbol values
        assume(False)
        return
    rest = int(np.prod([evaluate(dim, symbols) for dim in target if not (isinstance(dim, int) and dim == -1)]))
    assume(-1 not in target or rest != 0)
    assert checks_hold(call, symbols)
    x = array(var(*shape).ty, symbols)
    (got,) = outputs(call, symbols)
    assert got.shape == tuple(evaluate(dim, symbols) for dim in dims_of(ty) or ())
    assert got.ravel().tolist() == x.ravel().tolist()


@common
@given(a=st.lists(sizes, max_size=3), b=st.lists(sizes, max_size=3), symbols=values)
def test_broadcasts_are_those_of_numpy_where_their_checks_hold(
    a: list[Dim], b: list[Dim], symbols: dict[str, int]
) -> None:
    """D3: what is refuted never broadcasts with sizes above 1, what is not checked always does."""
    x, y = var(*a), var(*b, name="y")
    call = get_op("subtract")(x, y)
    left, right = array(x.ty, symbols), array(y.ty, symbols)
    try:
        infer_type(call)
    except ShapeError:
        pairs = [(p, q) for p, q in zip(reversed(left.shape), reversed(right.shape), strict=False) if p != q]
        assert pairs
        return
    if not checks_hold(call, symbols):
        return
    (got,) = outputs(call, symbols)
    assert got.tolist() == (left - right).tolist()


@common
@given(
    start=st.one_of(st.integers(-5, 5), sizes),
    end=st.one_of(st.integers(-5, 9), sizes, st.just(n - 3)),
    step=st.sampled_from([1, 2, 5, -1, -2]),
    symbols=values,
)
def test_ranges_are_those_of_numpy(start: Dim, end: Dim, step: int, symbols: dict[str, int]) -> None:
    """D3."""
    call = get_op("arange")(start, end, step, dtype="float32")
    expected = np.arange(evaluate(start, symbols), evaluate(end, symbols), step, dtype="float32")
    (got,) = outputs(call, symbols)
    assert got.tolist() == expected.tolist()


@common
@given(
    shape=st.lists(sizes, min_size=1, max_size=3),
    counts=st.lists(st.sampled_from([0, 1, 2, 3, m]), min_size=1, max_size=3),
    symbols=values,
)
def test_tiles_are_those_of_numpy(shape: list[Dim], counts: list[Dim], symbols: dict[str, int]) -> None:
    """D3."""
    call = get_op("tile")(var(*shape), counts)
    expected = np.tile(array(var(*shape).ty, symbols), [evaluate(count, symbols) for count in counts])
    (got,) = outputs(call, symbols)
    assert got.shape == expected.shape
    assert got.tolist() == expected.tolist()


@common
@given(parts=st.lists(sizes, min_size=1, max_size=4), axis=st.sampled_from([0, 1, -1]), symbols=values)
def test_joins_are_those_of_numpy(parts: list[Dim], axis: int, symbols: dict[str, int]) -> None:
    """D3."""
    shapes = [(size, 2) if axis == 0 else (2, size) for size in parts]
    operands = [var(*shape, name=f"x{index}") for index, shape in enumerate(shapes)]
    context = TypeContext()
    call = get_op("concat")(tuple(operands), axis=axis)
    ty = infer_type(call, context)
    kernel = get_op("concat").lower(call, context, "kernel")
    assert kernel is not None
    arrays = [array(operand.ty, symbols) for operand in operands]
    expected = np.concatenate(arrays, axis)
    got = np.zeros(tuple(evaluate(dim, symbols) for dim in dims_of(ty) or ()), "float32")
    scalars = [symbols[param.name] for param in kernel.params if isinstance(param, PrimVar)]
    interpret(kernel)(*arrays, got, *scalars)
    assert got.tolist() == expected.tolist()
