"""Tensor-level functions: compiled code means what the interpreter says."""

from __future__ import annotations

import numpy as np
import pytest
from tests.codegen.helpers import check_kernel, module, random_array, symbols_of

import weft
from weft.errors import TargetError
from weft.ir.kernel.intrinsics import INTRINSICS
from weft.ir.kernel.prim import binary, cast, const, intrinsic
from weft.ir.tensor import (
    BINARY_KINDS,
    Buffer,
    BufferLoad,
    BufferStore,
    Cast,
    Evaluate,
    For,
    PrimCall,
    PrimExpr,
    PrimFunc,
    PrimVar,
)
from weft.testing.kernels import free_kernel
from weft.transform.infra.generators.choices import SeededChoices

INTEGERS = ("int8", "uint8", "int16", "int32", "uint32", "int64", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float64")


def elementwise(expr: PrimExpr, inputs: list[Buffer], index: PrimVar, size: PrimVar) -> PrimFunc:
    """out[i] = expr over a symbolic number of elements."""
    out = Buffer("out", (size,), expr.dtype)
    return PrimFunc((*inputs, out), For(index, 0, size, BufferStore(out, expr, (index,))), name="main")


def operands(*dtypes: str) -> tuple[PrimVar, PrimVar, list[Buffer], list[PrimExpr]]:
    size, index = PrimVar("n", "int64"), PrimVar("i", "int64")
    buffers = [Buffer(f"x{k}", (size,), dtype) for k, dtype in enumerate(dtypes)]
    return size, index, buffers, [BufferLoad(buffer, (index,)) for buffer in buffers]


@pytest.mark.parametrize("seed", range(120))
def test_random_kernels_agree_with_the_interpreter(seed: int) -> None:
    function = free_kernel(SeededChoices(seed))
    compiled = weft.compile(function, opt=(1, 2, 0, 3)[seed % 4])["main"]
    rng = np.random.default_rng(seed)
    for trial in range(3):
        sizes = {name: int(rng.integers(0, 6)) if trial else 1 for name in symbols_of(function)}
        check_kernel(function, compiled, sizes, seed + trial)


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS, "bool"])
def test_every_binary_operation_is_defined_for_every_operand(dtype: str) -> None:
    """Division by zero, the least value over -1, wide and negative shifts included."""
    size, index, buffers, (a, b) = operands(dtype, dtype)
    extremes = _extremes(dtype)
    pairs = np.array([(x, y) for x in extremes for y in extremes], extremes.dtype)
    for kind in BINARY_KINDS:
        try:
            expr = binary(kind, a, b)
        except weft.DTypeError:
            continue
        function = elementwise(expr, buffers, index, size)
        compiled = weft.compile(function, opt=1)["main"]
        _compare(function, compiled, [pairs[:, 0].copy(), pairs[:, 1].copy()], kind)


def _extremes(dtype: str) -> np.ndarray:
    if dtype == "bool":
        return np.array([False, True])
    if dtype == "bfloat16":
        values = np.array([0, -0.0, 1, -2.5, 3, np.inf, -np.inf, np.nan, 1e30, 7.25], "float32")
        return (values.view("uint32") >> 16).astype("uint16")
    if dtype in FLOATS:
        return np.array([0, -0.0, 1, -2.5, 3, np.inf, -np.inf, np.nan, 7.25, -7.25, 0.1], dtype)
    info = np.iinfo(dtype)
    near = [value for value in (-7, -1, 0, 1, 2, 7, 8, 31, 63) if info.min <= value <= info.max]
    return np.array([info.min, info.max, *near], dtype)


def _compare(function: PrimFunc, compiled: object, inputs: list[np.ndarray], what: str) -> None:
    out = function.params[-1]
    assert isinstance(out, Buffer)
    results = []
    for run in (weft.interpret(function), compiled):
        result = np.zeros(len(inputs[0]), weft.dtypes.storage(out.dtype))
        with np.errstate(all="ignore"):
            run(*inputs, result)  # type: ignore[operator]
        results.append(result)
    want, got = results
    if out.dtype in ("float16", "float32", "float64"):
        np.testing.assert_allclose(got, want, rtol=1e-2 if out.dtype == "float16" else 1e-5, atol=1e-6, err_msg=what)
    elif out.dtype == "bfloat16":
        a, b = ((x.astype("uint32") << 16).view("float32") for x in (got, want))
        np.testing.assert_allclose(a, b, rtol=1e-2, err_msg=what)
    else:
        np.testing.assert_array_equal(got, want, err_msg=what)


@pytest.mark.parametrize("source", [*INTEGERS, *FLOATS, "bool"])
def test_casts_between_all_types_are_defined(source: str) -> None:
    """Out of range saturates, nan becomes 0."""
    size, index, buffers, (a,) = operands(source)
    values = _extremes(source)
    if source in ("float32", "float64"):
        values = np.concatenate([values, np.array([1e10, -1e10, 1e20, -1e20, 255.5, 2.0**31], source)])
    for target in (*INTEGERS, *FLOATS, "bool"):
        function = elementwise(Cast(target, a) if target != source else a, buffers, index, size)
        _compare(function, weft.compile(function, opt=1)["main"], [values], f"{source} to {target}")


MATH = [
    name for name, entry in INTRINSICS.items() if entry.rule in ("float", "same", "bool", "integer") and entry.numpy
]


@pytest.mark.parametrize("name", MATH)
def test_every_mathematical_intrinsic_agrees_with_numpy(name: str) -> None:
    entry = INTRINSICS[name]
    kinds = ("int32", "uint8", "int64") if entry.rule == "integer" else ("float32", "float64", "float16", "bfloat16")
    kinds = (*kinds, "int32") if entry.rule in ("same", "bool") and name not in ("likely", "pow") else kinds
    for dtype in kinds:
        types = [dtype] * entry.arity if name != "ldexp" else [dtype, "int32"]
        if name == "likely":
            types = ["bool"]
        size, index, buffers, loads = operands(*types)
        function = elementwise(intrinsic(name, *loads), buffers, index, size)
        rng = np.random.default_rng(1)
        inputs = [random_array(kind, (17,), rng) for kind in types]
        if name in ("acosh", "log", "log2", "log10", "sqrt", "rsqrt", "pow") and dtype in ("float32", "float64"):
            inputs = [np.abs(array) + 1 for array in inputs]
        if name in ("nextafter", "fma") and dtype in ("float16", "bfloat16"):
            continue  # one rounding here, two in the reference
        _compare(function, weft.compile(function, opt=1)["main"], inputs, f"{name} {dtype}")


def test_address_arithmetic_is_done_in_64_bits() -> None:
    """An int32 index times an int32 stride passes 2**31 without wrapping."""
    big = Buffer("big", (70_000, 40_000), "uint8")
    out = Buffer("out", (1,), "uint8")
    i = PrimVar("i", "int32")
    row = binary("add", i, const(69_998, "int32"))
    body = For(i, 0, 2, BufferStore(out, BufferLoad(big, (row, const(39_999, "int32"))), (const(0, "int32"),)))
    text = weft.compile(PrimFunc((big, out), body), opt=0).source("llvm")
    assert "mul i64" in text
    assert "mul i32" not in text


def test_a_scalar_result_is_returned() -> None:
    function = module("""
@T.prim_func
def add(x: T.Buffer((4,), "float32"), k: T.int32) -> T.float32:
    return x[k] * T.float32(2)
""")
    assert weft.compile(function)["add"](np.arange(4, dtype="float32"), 3) == 6.0


def test_loops_can_be_left_and_continued_and_memory_is_freed_on_the_way_out() -> None:
    function = module("""
@T.prim_func
def main(x: T.Buffer(("n",), "int32"), out: T.Buffer((1,), "int32")):
    out[0] = 0
    for i in range(n):
        big = T.alloc_buffer((n + 100000,), "int32")
        big[i] = x[i]
        if big[i] < 0:
            continue
        if big[i] > 100:
            break
        out[0] = out[0] + big[i]
""")
    compiled = weft.compile(function)["main"]
    out = np.zeros(1, "int32")
    compiled(np.array([1, -5, 7, 200, 9], "int32"), out)
    assert out[0] == 8
    compiled(np.zeros(0, "int32"), out)
    assert out[0] == 0


def test_an_assertion_stops_with_its_message_kind_and_place() -> None:
    function = module("""
@T.prim_func
def main(x: T.Buffer(("n",), "int32")):
    assert n > 2, "too few"
    x[0] = 1
""")
    compiled = weft.compile(function)["main"]
    compiled(np.zeros(3, "int32"))
    with pytest.raises(AssertionError, match="too few") as info:
        compiled(np.zeros(2, "int32"))
    assert "assert n > 2" in "".join(info.value.__notes__)


def test_lazy_conditions_do_not_read_out_of_range() -> None:
    function = module("""
@T.prim_func
def main(x: T.Buffer(("n",), "float32"), y: T.Buffer((8,), "float32")):
    for i in range(8):
        y[i] = T.if_then_else(i < n and x[i] > T.float32(0), x[i], T.float32(-1))
""")
    definitions = weft.compile(function, opt=0).source("llvm").split("\ndefine ")
    (kernel,) = [text for text in definitions if "phi float" in text]
    assert "select" not in kernel.split("phi float")[0]
    compiled = weft.compile(function)["main"]
    y = np.zeros(8, "float32")
    compiled(np.array([1, -2, 3], "float32"), y)
    np.testing.assert_array_equal(y, [1, -1, 3, -1, -1, -1, -1, -1])


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "int64", "bool"])
def test_an_element_that_all_lanes_share_is_read_once_and_only_for_lanes_that_are_on(dtype: str) -> None:
    value = "x[i] and b[k]" if dtype == "bool" else "x[i] + b[k]"
    function = module(
        f"""
        @T.prim_func
        def main(
            x: T.Buffer((16,), "{dtype}"), b: T.Buffer(("m",), "{dtype}"), used: T.int64, k: T.int64,
            y: T.Buffer((16,), "{dtype}"),
        ):
            for i in T.vectorized(16):
                if i < used:
                    y[i] = {value}
        """
    )
    compiled = weft.compile(function)
    assert "gather" not in compiled.source("asm")
    rng = np.random.default_rng(0)
    x, b = random_array(dtype, (16,), rng), random_array(dtype, (3,), rng)
    for used, k in ((0, 1 << 40), (0, -(1 << 40)), (7, 2), (16, 0), (-3, 1 << 50)):
        got, want = np.zeros_like(x), np.zeros_like(x)
        compiled["main"](x, b, used, k, got)
        if used > 0:
            want[:used] = (np.logical_and if dtype == "bool" else np.add)(x, b[k])[:used]
        np.testing.assert_array_equal(got, want)


def test_views_of_regions_and_strided_buffers_reach_the_same_memory() -> None:
    function = module("""
@T.prim_func
def main(x: T.Buffer((8, 8), "float32"), y: T.Buffer((8, 8), "float32")):
    s0, s1, t0, t1 = T.int64(), T.int64(), T.int64(), T.int64()
    for i, j in T.grid(2, 2):
        with T.block("tile"):
            vi, vj = T.axis.remap("SS", [i, j])
            a = T.match_buffer(x[vi * 4 : vi * 4 + 4, vj * 4 : vj * 4 + 4], (4, 4), "float32", strides=(s0, s1))
            b = T.match_buffer(y[vi * 4 : vi * 4 + 4, vj * 4 : vj * 4 + 4], (4, 4), "float32", strides=(t0, t1))
            for k, l in T.grid(4, 4):
                b[l, k] = a[k, l]
""")
    x = np.arange(64, dtype="float32").reshape(8, 8)
    got, want = np.zeros_like(x), np.zeros_like(x)
    weft.compile(function)["main"](x, got)
    weft.interpret(function)(x, want)
    np.testing.assert_array_equal(got, want)


def test_functions_call_each_other_and_c_functions() -> None:
    whole = module("""
    @T.prim_func(private=True)
    def square(x: T.float32) -> T.float32:
        return x * x

    @T.prim_func
    def main(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")):
        for i in range(n):
            y[i] = M.square(x[i]) + T.call_pure_extern("float32", "fabsf", x[i])
""")
    y = np.zeros(3, "float32")
    weft.compile(whole)["main"](np.array([1, -2, 3], "float32"), y)
    np.testing.assert_array_equal(y, [2, 6, 12])


def test_an_intrinsic_of_another_device_is_refused_by_name() -> None:
    call = Evaluate(PrimCall("ptx_wgmma_fence", (), "void"))
    with pytest.raises(TargetError, match=r"the CPU has no T\.ptx_wgmma_fence"):
        weft.compile(PrimFunc((), call))


def test_a_kernel_with_a_10000_term_expression_compiles() -> None:
    size, index, buffers, (a,) = operands("float32")
    expr: PrimExpr = a
    for _ in range(10_000):
        expr = binary("add", expr, a)
    compiled = weft.compile(elementwise(expr, buffers, index, size), opt=0)["main"]
    out = np.zeros(2, "float32")
    compiled(np.array([1, 2], "float32"), out)
    np.testing.assert_allclose(out, [10001, 20002])


def test_each_optimisation_level_does_something() -> None:
    function = module("""
@T.prim_func
def main(x: T.Buffer(("n",), "float32"), y: T.Buffer((1,), "float32")):
    y[0] = T.float32(0)
    for i in range(n):
        y[0] = y[0] + x[i] * x[i]
""")
    texts = [weft.compile(function, opt=level).source("llvm") for level in range(4)]
    assert len(set(texts)) == 4
    assert "contract" in texts[2]
    assert "reassoc" in texts[3]
    assert "<" not in texts[0].split("define i32 @weft.kernel")[1].split("\n}")[0]


def test_cast_of_constants_keeps_values() -> None:
    assert cast("int64", const(3, "int32")).dtype == "int64"


def test_kernels_that_are_equal_but_for_their_names_are_compiled_once() -> None:
    """Functions are compared by structure: three of one text have one body of machine code, another one its own."""
    text = """
@I.ir_module
class Module:
    @T.prim_func
    def first(x: T.Buffer((8,), "float32"), y: T.Buffer((8,), "float32")):
        for i in range(8):
            y[i] = x[i] * T.float32(3)

    @T.prim_func
    def second(a: T.Buffer((8,), "float32"), b: T.Buffer((8,), "float32")):
        for j in range(8):
            b[j] = a[j] * T.float32(3)

    @T.prim_func
    def other(x: T.Buffer((8,), "float32"), y: T.Buffer((8,), "float32")):
        for i in range(8):
            y[i] = x[i] * T.float32(4)
"""
    exe = weft.compile(weft.parse(text))
    bodies = [name for name in ("first", "second", "other") if f"@weft.kernel.{name}(" in exe.source("llvm")]
    assert bodies == ["first", "other"]
    x, y = np.arange(8, dtype="float32"), np.zeros(8, "float32")
    for name, factor in (("first", 3), ("second", 3), ("other", 4)):
        exe[name](x, y)
        np.testing.assert_array_equal(y, x * factor)


@pytest.mark.parametrize("name", ["function", "call_function", "extern", "packed_function"])
def test_no_name_of_a_call_reaches_a_method_of_the_emitter(name: str) -> None:
    a, b, i = Buffer("a", (4,)), Buffer("b", (4,)), PrimVar("i", "int64")
    value = PrimCall(name, (BufferLoad(a, (i,)),), "float32")
    kernel = PrimFunc((a, b), For(i, 0, 4, BufferStore(b, value, (i,))), name="main")
    with pytest.raises(weft.TargetError, match=f"the CPU has no T.{name}") as caught:
        weft.compile(kernel)
    assert caught.value.code == "W742"


def test_sizes_that_an_iteration_reads_of_its_own_memory() -> None:
    """How much there is to do in a loop for threads is estimated before it, where that memory is not there yet."""
    text = """
@T.prim_func
def main(x: T.Buffer((16,), "int64"), y: T.Buffer((16,), "int64")):
    for i in range(16):
        with T.block("y"):
            vi = T.axis.spatial(16, i)
            s = T.alloc_buffer((1,), "int64")
            s[0] = x[vi] + 2
            if s[0] > 5:
                t = T.alloc_buffer((s[0],), "int64")
                for j in range(s[0]):
                    t[j] = x[j % 16]
                y[vi] = t[s[0] - 1]
            else:
                y[vi] = T.int64(0)
"""
    found, x, got, want = module(text), np.arange(16), np.zeros(16, "int64"), np.zeros(16, "int64")
    weft.compile(found)["main"](x, got)
    weft.interpret(found)["main"](x, want)
    np.testing.assert_array_equal(got, want)
