"""Structural equality, hash and the path of the first mismatch."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from tests.support.hash_seeds import printed_under_hash_seeds

from weft import parse
from weft.ir import (
    BindingBlock,
    Buffer,
    BufferLoad,
    BufferStore,
    Call,
    Constant,
    For,
    Function,
    IRModule,
    Op,
    PrimFunc,
    PrimVar,
    SeqExpr,
    TensorType,
    Var,
    VarBinding,
    assert_structural_equal,
    first_mismatch,
    prim,
    structural_equal,
    structural_hash,
    substitute_symbols,
)
from weft.ir.dim import Dim, symbol
from weft.ir.tensor import FloatImm


def chain(op: str, shape: tuple[Dim, ...], name: str = "x", length: int = 1) -> Function:
    x = Var(name, TensorType(shape, "float32"))
    bindings, last = [], x
    for i in range(length):
        last_arg, last = last, Var(f"{name}{i}", TensorType(shape, "float32"))
        bindings.append(VarBinding(last, Call(Op(op), (last_arg,))))
    return Function((x,), SeqExpr((BindingBlock(tuple(bindings)),), last), TensorType(shape, "float32"))


def kernel(symbol_name: str, factor: float) -> PrimFunc:
    n, i = PrimVar(symbol_name, "int64"), PrimVar("i", "int64")
    a, b = Buffer("A", (n, 4)), Buffer("B", (n, 4))
    zero = prim.const(0, "int64")
    store = BufferStore(b, prim.binary("mul", BufferLoad(a, (i, zero)), factor), (i, zero))
    return PrimFunc((a, b), For(i, 0, n, store))


def test_names_of_bound_variables_do_not_matter() -> None:
    assert structural_equal(chain("exp", (2, 3), "x"), chain("exp", (2, 3), "other"))
    assert structural_hash(chain("exp", (2, 3), "x")) == structural_hash(chain("exp", (2, 3), "other"))


def test_names_of_symbols_do_not_matter_but_their_pattern_does() -> None:
    n, m = symbol("n"), symbol("m")
    assert structural_equal(chain("exp", (n, m)), chain("exp", (m, n)))
    assert not structural_equal(chain("exp", (n, m)), chain("exp", (n, n)))
    assert not structural_equal(chain("exp", (n, n)), chain("exp", (n, m)))
    assert structural_hash(chain("exp", (n, m))) == structural_hash(chain("exp", (m, n)))


def test_compound_dimensions_compare_after_matching_symbols() -> None:
    n, k = symbol("n"), symbol("k")
    assert structural_equal(chain("exp", (n, 2 * n + 1)), chain("exp", (k, 2 * k + 1)))
    assert structural_equal(chain("exp", (2 * n + 1, n)), chain("exp", (2 * k + 1, k)))
    assert not structural_equal(chain("exp", (n, 2 * n + 1)), chain("exp", (k, 2 * k)))


def test_the_first_mismatch_has_a_path() -> None:
    assert first_mismatch(chain("exp", (2,)), chain("log", (2,))) == (
        "root.body.blocks[0].bindings[0].value.op.name: 'exp' against 'log'"
    )
    assert first_mismatch(kernel("n", 2.0), kernel("m", 3.0)) == "root.body.body.value.b.value: 2.0 against 3.0"


def test_free_variables_are_equal_only_to_themselves() -> None:
    x, y = Var("x", TensorType((2,), "float32")), Var("x", TensorType((2,), "float32"))
    assert structural_equal(Call(Op("exp"), (x,)), Call(Op("exp"), (x,)))
    assert not structural_equal(Call(Op("exp"), (x,)), Call(Op("exp"), (y,)))


def test_tensor_level_symbols_are_bound_by_parameter_buffers() -> None:
    assert structural_equal(kernel("n", 2.0), kernel("size", 2.0))
    assert structural_hash(kernel("n", 2.0)) == structural_hash(kernel("size", 2.0))


def test_floats_compare_by_their_bits() -> None:
    nan = struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000001))[0]
    assert structural_equal(FloatImm(nan), FloatImm(nan))
    assert not structural_equal(FloatImm(nan), FloatImm(float("nan")))
    assert not structural_equal(FloatImm(0.0), FloatImm(-0.0))


def test_constants_compare_by_dtype_shape_and_bytes() -> None:
    data = np.array([1.0, np.nan], "float32")
    assert structural_equal(Constant(data), Constant(data.copy()))
    assert not structural_equal(Constant(data), Constant(data.reshape(2, 1)))
    assert not structural_equal(Constant(np.zeros(2, "float32")), Constant(np.zeros(2, "int32")))


def test_modules_compare_as_mappings() -> None:
    f, g = chain("exp", (2,)), chain("log", (3,))
    assert structural_equal(IRModule({"f": f, "g": g}), IRModule({"g": g, "f": f}))
    assert first_mismatch(IRModule({"f": f}), IRModule({"g": f})) == "root.functions: ['f'] against ['g']"
    assert structural_hash(IRModule({"f": f, "g": g})) == structural_hash(IRModule({"g": g, "f": f}))


def test_symbols_are_scoped_by_function() -> None:
    n, m = symbol("n"), symbol("m")
    a = IRModule({"f": chain("exp", (n,)), "g": chain("exp", (n,))})
    b = IRModule({"f": chain("exp", (n,)), "g": chain("exp", (m,))})
    assert structural_equal(a, b)


def test_assert_structural_equal_names_the_path() -> None:
    with pytest.raises(AssertionError, match=r"ret_type\.dtype|shape\[0\]"):
        assert_structural_equal(chain("exp", (2,)), chain("exp", (3,)))


def test_a_long_chain_needs_no_deep_recursion() -> None:
    a, b = chain("exp", (2,), length=20_000), chain("exp", (2,), length=20_000)
    assert structural_equal(a, b)
    assert structural_hash(a) == structural_hash(b)
    assert substitute_symbols(a, {"n": 3}) is a


def test_a_deep_expression_needs_no_deep_recursion() -> None:
    def deep() -> PrimFunc:
        buffer, zero = Buffer("A", (1,)), prim.const(0, "int64")
        value = BufferLoad(buffer, (zero,))
        for _ in range(20_000):
            value = prim.binary("add", value, 1.0)
        return PrimFunc((buffer,), BufferStore(buffer, value, (zero,)))

    a, b = deep(), deep()
    assert structural_equal(a, b)
    assert structural_hash(a) == structural_hash(b)


def test_the_hash_is_the_same_in_every_process() -> None:
    code = (
        "from weft.ir import TensorType, Var, structural_hash, FrozenMap, VDevice\n"
        "print(structural_hash(TensorType((2, 3), 'float32')), structural_hash(VDevice('llvm', 1)))"
    )
    assert len(printed_under_hash_seeds(code)) == 1


STATED = """
@T.prim_func
def rows(A: T.Buffer(("n", 8), "float32"), B: T.Buffer(("n",), "float32")):
    for i, k in T.grid(n, 4):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            {}
            {}
            with T.init():
                B[vi] = 0.0
            half: T.let = vk * 2
            B[vi] = B[vi] + A[vi, half] + A[vi, half + 1]
"""


@pytest.mark.parametrize(
    ("reads", "writes"),
    [
        ("T.reads(A[vi, vk * 2:vk * 2 + 2])", "T.writes(B[vi])"),
        ("T.reads(A[vi, 2 * vk:2 * (vk + 1)])", "pass"),
        ("T.reads(A[vi, vk * 2 + 1], A[vi, vk * 2])", "T.writes([B[vi]])"),
        ("pass", "T.writes(B[vi:vi + 1])"),
    ],
)
def test_accesses_that_a_block_states_as_its_body_has_them_do_not_matter(reads: str, writes: str) -> None:
    plain, stated = (
        parse(STATED.format(*lines).replace("            pass\n", "")) for lines in (("pass", "pass"), (reads, writes))
    )
    assert structural_equal(plain, stated)
    assert structural_equal(stated, plain)
    assert structural_hash(plain) == structural_hash(stated)


@pytest.mark.parametrize(
    ("reads", "writes", "field"),
    [
        ("T.reads(A[vi, 0:8])", "T.writes(B[vi])", "reads"),
        ("T.reads(A[vi, vk * 2:vk * 2 + 2], B[vi])", "T.writes(B[vi])", "reads"),
        ("T.reads(A[vi, vk * 2:vk * 2 + 2])", "T.writes(B[0:n])", "writes"),
    ],
)
def test_wider_accesses_are_another_block(reads: str, writes: str, field: str) -> None:
    plain, stated = (
        parse(STATED.format(*lines).replace("            pass\n", "")) for lines in (("pass", "pass"), (reads, writes))
    )
    mismatch = first_mismatch(plain, stated)
    assert mismatch is not None
    assert f".{field}: None against" in mismatch
    assert structural_hash(plain) != structural_hash(stated)
    assert structural_equal(stated, stated)
