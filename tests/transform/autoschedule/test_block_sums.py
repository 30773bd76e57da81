"""BlockSums, and products of long vectors: no accumulator of float32 takes in so much that it loses its digits."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from tests.dataflow import dataflow_module

import weft
from weft.ir import Function, IRModule
from weft.ir.structure.visit import walk
from weft.ir.tensor import For, PrimFunc
from weft.testing import random_arguments
from weft.transform import BlockSums

UNIT = 2.0**-24


def module_of(value: str, params: str) -> IRModule:
    return dataflow_module(params, f"y = {value}")


def kernel(value: str, params: str) -> IRModule:
    return weft.transform.LegalizeOps()(module_of(value, params))


def loops(module: IRModule) -> int:
    return sum(isinstance(node, For) for f in module.functions.values() if isinstance(f, PrimFunc) for node in walk(f))


@pytest.mark.parametrize(
    ("shape", "axis", "blocks"), [("(3, 2000000)", 1, 2), ("(5000, 2)", 0, 1), ('("n", 2)', 0, 2), ("(4000, 70)", 0, 0)]
)
def test_a_long_sum_has_an_accumulator_for_each_block(shape: str, axis: int, blocks: int) -> None:
    module = kernel(f"R.sum(x, axis={axis})", f'x: R.Tensor({shape}, "float32")')
    assert loops(BlockSums()(module)) == loops(module) + blocks


@pytest.mark.parametrize(
    "module",
    [
        kernel("R.sum(x, axis=1)", 'x: R.Tensor((3, 4096), "float32")'),
        kernel("R.sum(x)", 'x: R.Tensor(("n",), "float64")'),
        kernel("R.sum(x)", 'x: R.Tensor(("n",), "int32")'),
        kernel("R.max(x)", 'x: R.Tensor((100000,), "float32")'),
        kernel("R.cumsum(x)", 'x: R.Tensor((100000,), "float32")'),
    ],
    ids=["short", "float64", "integers", "maximum", "running"],
)
def test_what_loses_nothing_is_left_alone(module: IRModule) -> None:
    assert BlockSums()(module) is module


def test_a_scheduled_kernel_is_left_alone() -> None:
    module = kernel("R.sum(x)", 'x: R.Tensor((100000,), "float32")')
    (name,) = [name for name, f in module.functions.items() if isinstance(f, PrimFunc)]
    function = module[name]
    assert isinstance(function, PrimFunc)
    scheduled = module.with_function(name, function.with_attr("tir.is_scheduled", True))
    assert BlockSums()(scheduled) is scheduled


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 7, 8, 9, 16, 27, 28, 40, 65])
def test_every_term_is_added_once_whatever_the_size(size: int) -> None:
    fixed = kernel("R.sum(x, axis=1)", f'x: R.Tensor((2, {size}), "float32")')
    open_ = kernel("R.sum(x, axis=[1, 2])", 'x: R.Tensor((2, "n", 3), "float32")')
    terms = np.arange(2 * size * 3, dtype="float32").reshape(2, size, 3)
    for block in (2, 3):
        new = weft.interpret(BlockSums(block)(fixed))["main"](terms[:, :, 0])
        np.testing.assert_array_equal(new, terms[:, :, 0].sum(1))
        new = weft.interpret(BlockSums(block)(open_))["main"](terms)
        np.testing.assert_array_equal(new, terms.sum((1, 2)))


def test_the_meaning_stays() -> None:
    for value, params in (
        ("R.mean(x, axis=0)", 'x: R.Tensor(("n", 3), "float32")'),
        ("R.matmul(x, R.permute_dims(x))", 'x: R.Tensor(("n", 31), "float16")'),
        ("R.nn.softmax(x)", 'x: R.Tensor((2, "n"), "float32")'),
    ):
        module = kernel(value, params)
        function = module["main"]
        assert isinstance(function, Function)
        given = random_arguments(function, 3)
        old, new = weft.interpret(module)["main"](*given), weft.interpret(BlockSums(3)(module))["main"](*given)
        np.testing.assert_allclose(new, old, rtol=1e-3, atol=1e-6)


# Numbers ------------------------------------------------------------------------------------------------------------

ONES = 1 << 25
LONG = 1 << 20
rng = np.random.default_rng(15)
POSITIVE = rng.random((2, LONG), dtype="float32")


@pytest.mark.parametrize("opt", [0, 2])
def test_more_ones_than_float32_counts_are_counted(opt: int) -> None:
    module = module_of("R.sum(x)", 'x: R.Tensor(("n",), "float32")')
    ones = np.broadcast_to(np.float32(1), (ONES,))
    assert float(weft.compile(module, opt=opt)["main"](ones)) == ONES


@pytest.mark.parametrize("opt", [0, 1, 2, 3])
@pytest.mark.parametrize(
    ("value", "params"),
    [
        ("R.matmul(x, R.permute_dims(x))", 'x: R.Tensor((2, 1048576), "float32")'),
        ("R.matmul(R.permute_dims(y), y)", 'y: R.Tensor((1048576, 2), "float32")'),
        ("R.matmul(R.permute_dims(y), y)", 'y: R.Tensor((32768, 64), "float32")'),
        ("R.sum(R.multiply(x, x), axis=1)", 'x: R.Tensor((2, "n"), "float32")'),
        ("R.mean(y, axis=0)", 'y: R.Tensor(("n", 2), "float32")'),
    ],
)
def test_long_sums_and_products_keep_their_digits(value: str, params: str, opt: int) -> None:
    x = POSITIVE
    if "y" in params:
        x = x.reshape(32768, 64) if "64" in params else np.ascontiguousarray(x.T)
    out = weft.compile(module_of(value, params), opt=opt)["main"](x)
    wide = x.astype("float64")
    exact = {
        "R.matmul(x": wide @ wide.T if x.shape[0] == 2 else None,
        "R.matmul(R": wide.T @ wide if x.shape[0] != 2 else None,
        "R.sum(R.mu": (wide * wide).sum(1) if x.shape[0] == 2 else None,
        "R.mean(y, ": wide.mean(0),
    }[value[:10]]
    assert exact is not None
    assert np.abs(out / exact - 1).max() < 128 * UNIT


@pytest.mark.parametrize("opt", [0, 1, 2, 3])
@pytest.mark.parametrize("size", ['"n"', str(2 * LONG)])
def test_a_sum_of_squares_is_within_a_few_roundings(size: str, opt: int) -> None:
    module = module_of("R.sum(R.multiply(x, x))", f'x: R.Tensor(({size},), "float32")')
    x = POSITIVE.reshape(-1)
    wide = x.astype("float64")
    assert abs(float(weft.compile(module, opt=opt)["main"](x)) / (wide @ wide) - 1) < 16 * UNIT


def test_half_operands_keep_their_digits_too() -> None:
    module = module_of("R.matmul(x, R.permute_dims(x))", 'x: R.Tensor((2, 1048576), "bfloat16")')
    x = POSITIVE.astype(ml_dtypes.bfloat16)
    wide = x.astype("float64")
    for opt in (0, 2):
        out = weft.compile(module, opt=opt)["main"](x).astype("float64")
        assert np.abs(out / (wide @ wide.T) - 1).max() < 2.0**-8
