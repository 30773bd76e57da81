"""Graph functions as machine code: control flow, values of all kinds, run-time checks, calls out."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from tests.codegen.helpers import check, module

import weft
from weft.errors import ArgumentError, ShapeError, TargetError

KERNEL = re.compile(r"define .*@weft\.kernel\.")


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype("float32")


def test_a_branch_computes_only_what_is_chosen() -> None:
    check(
        """
    @R.function
    def main(c: R.Tensor((), "bool"), x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        if c:
            y = R.add(x, x)
            z = R.multiply(y, x)
        else:
            z = R.exp(x)
        return z
""",
        (np.array(True), floats(3, 4)),
        (np.array(False), floats(0, 4)),
        (np.array(False), floats(1, 4)),
    )


def test_tuples_shapes_and_scalars_go_in_and_come_out() -> None:
    source = """
    @R.function
    def main(
        t: R.Tuple(R.Tensor(("n",), "float32"), R.Tuple(R.Tensor((2,), "int64"))),
        s: R.Shape(["n", "m"]),
        a: R.Prim("int64"),
    ) -> R.Tuple(R.Tuple(R.Tensor(("n",), "float32")), R.Shape(["n", "m"]), R.Tensor((2,), "int64"), R.Prim("int64")):
        x = t[0]
        u = t[1]
        v = u[0]
        y = R.add(x, x)
        return ((y,), R.shape([n, m]), v, a)
"""
    check(source, ((floats(3), (np.arange(2),)), (3, 5), 7), ((floats(3), (np.arange(2),)), (4, 5), 7))
    result = weft.compile(module(source))["main"]((floats(3), [np.arange(2)]), (3, 5), -1)
    assert result[1] == (3, 5)
    assert result[3] == -1


@pytest.mark.parametrize("executor", ["native", "vm"])
def test_a_tuple_of_a_string_and_a_tensor_of_any_type_comes_out_whole(executor: str) -> None:
    """A string that the program states takes no word of a call; what stands behind it in a tuple is found."""
    source = """
    @R.function
    def main(x: R.Tensor((3, "n"), "int32")) -> R.Any:
        s = R.str("label")
        return (s, x, (s, (x,)), s)
"""
    x = np.arange(12, dtype="int32").reshape(3, 4)
    first, y, (second, (z,)), third = weft.compile(module(source), executor=executor)["main"](x)
    assert (first, second, third) == ("label",) * 3
    np.testing.assert_array_equal(y, x)
    np.testing.assert_array_equal(z, x)


def test_recursion() -> None:
    check(
        """
    @R.function(private=True)
    def fact(x: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        c = R.less(x, R.const(2, "int64"))
        if c:
            r = R.multiply(x, x)
        else:
            p = R.subtract(x, R.const(1, "int64"))
            q = M.fact(p)
            r = R.multiply(q, x)
        return r

    @R.function
    def main(x: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        y = M.fact(x)
        return y
""",
        (np.array(1),),
        (np.array(9),),
    )


def test_a_deep_recursion_frees_what_it_allocates() -> None:
    whole = module(
        """
    @R.function(private=True)
    def down(x: R.Tensor((), "int64"), y: R.Tensor((1000,), "float32")) -> R.Tensor((1000,), "float32"):
        c = R.less(x, R.const(1, "int64"))
        if c:
            r = R.add(y, R.const(0.0, "float32"))
        else:
            p = R.subtract(x, R.const(1, "int64"))
            z = R.add(y, R.const(1.0, "float32"))
            r = M.down(p, z)
        return r

    @R.function
    def main(x: R.Tensor((), "int64"), y: R.Tensor((1000,), "float32")) -> R.Tensor((1000,), "float32"):
        r = M.down(x, y)
        return r
"""
    )
    out = weft.compile(whole)["main"](np.array(500), np.zeros(1000, "float32"))
    assert (out == 500).all()


MATCH = """
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(dtype="float32")) -> R.Tensor(("n", 4), "float32"):
        z = R.match_cast(y, R.Tensor((n, 4), "float32"))
        r = R.add(x, z)
        return r
"""


def test_match_cast_of_a_tensor_of_unknown_rank_is_checked_when_it_runs() -> None:
    check(
        MATCH,
        (floats(3, 4), floats(3, 4)),
        (floats(3, 4), floats(2, 4)),
        (floats(3, 4), floats(4)),
        (floats(0, 4), floats(0, 4)),
    )
    compiled = weft.compile(module(MATCH))["main"]
    with pytest.raises(ShapeError) as info:
        compiled(floats(3, 4), floats(2, 4))
    assert info.value.message == (
        "match_cast of z: expected float32[(n, 4)], got float32[(2, 4)]; n=3 from argument 1 `x`"
    )
    assert info.value.span is not None
    assert (info.value.span.line, info.value.span.column) == (8, 9)


def test_match_cast_names_new_symbols_for_what_a_library_returns() -> None:
    weft.register_func("test.unique", np.unique)
    source = """
    @R.function(pure=False)
    def main(y: R.Tensor(("k",), "int64")):
        m = T.int64()
        u = R.call_packed("test.unique", y, ty_args=R.Tensor(ndim=1, dtype="int64"))
        z = R.match_cast(u, R.Tensor((m,), "int64"))
        r = R.add(z, z)
        return r
"""
    check(source, (np.array([3, 1, 3]),), (np.zeros(0, "int64"),))


def test_objects_of_a_library_pass_through() -> None:
    weft.register_func("test.make", lambda: {"rows": 3})
    weft.register_func("test.use", lambda d: np.full(d["rows"], 7, "float32"))
    source = """
    @R.function(pure=False)
    def main():
        d = R.call_packed("test.make")
        x = R.call_packed("test.use", d, ty_args=R.Tensor((3,), "float32"))
        return x
"""
    np.testing.assert_array_equal(weft.compile(module(source))["main"](), np.full(3, 7, "float32"))


def test_a_library_result_of_another_type_is_refused() -> None:
    weft.register_func("test.wrong", lambda x: x.astype("float64"))
    source = """
    @R.function(pure=False)
    def main(y: R.Tensor(("k",), "float32")):
        u = R.call_packed("test.wrong", y, ty_args=R.Tensor(("k",), "float32"))
        return u
"""
    with pytest.raises(
        ShapeError, match=r"the result of 'test.wrong': expected float32\[\(k,\)\], got float64\[\(2,\)\]"
    ):
        weft.compile(module(source))["main"](floats(2))
    weft.register_func("test.wrong", lambda x: np.zeros(5, "float32"))
    with pytest.raises(ShapeError, match=r"expected float32\[\(k,\)\], got float32\[\(5,\)\]; k=2"):
        weft.compile(module(source))["main"](floats(2))


CALL_OUT = """
    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        y = R.call_dps_packed("test.library", (x,), out_ty=R.Tensor((n,), "float32"))
        return y
"""


def test_a_library_writes_into_memory_of_the_compiled_code() -> None:
    weft.register_func("test.library", lambda x, out: np.negative(x, out=out))
    check(CALL_OUT, (floats(3),), (floats(0),))


def test_an_exception_of_a_library_reaches_the_caller_as_it_is() -> None:
    def fails(*_: Any) -> None:
        raise KeyError("mine")

    weft.register_func("test.library", fails)
    with pytest.raises(KeyError, match="mine"):
        weft.compile(module(CALL_OUT))["main"](floats(3))


def test_a_library_that_is_not_registered_is_named_at_the_call() -> None:
    weft.register_func("test.library", lambda x, out: None)
    compiled = weft.compile(module(CALL_OUT.replace("test.library", "test.libary")))["main"]
    with pytest.raises(ArgumentError) as info:
        compiled(floats(3))
    assert info.value.hint == "did you mean 'test.library'?"
    assert "test.libary" in info.value.message
    assert info.value.span is not None


def test_printing_and_assertions(capsys: pytest.CaptureFixture[str]) -> None:
    source = """
    @R.function(pure=False)
    def main(c: R.Tensor((), "bool"), y: R.Tensor(("k",), "int64")) -> R.Tensor(("k",), "int64"):
        R.print(y, format="value: {}")
        _ = R.assert_op(c, y, format="not {}")
        return y
"""
    compiled = weft.compile(module(source))["main"]
    compiled(np.array(True), np.arange(3))
    assert capsys.readouterr().out == "value: [0 1 2]\n"
    with pytest.raises(AssertionError, match=r"not \[0 1\]"):
        compiled(np.array(False), np.arange(2))


def test_local_functions_and_closures_are_lifted() -> None:
    check(
        """
    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        @R.function
        def inner(y: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):
            z = R.add(y, x)
            return z
        r = inner(x)
        return r
""",
        (floats(3),),
    )


def test_constants_and_arguments_handed_back_are_copies() -> None:
    source = """
    @R.function
    def main(x: R.Tensor((2,), "float32")) -> R.Tuple(R.Tensor((2,), "float32"), R.Tensor((2,), "float32")):
        c = R.const([1.0, 2.0], "float32")
        return (x, c)
"""
    compiled = weft.compile(module(source))["main"]
    x = floats(2)
    first, constant = compiled(x)
    first[:] = 0
    constant[:] = 0
    assert (x == floats(2)).all()
    np.testing.assert_array_equal(compiled(x)[1], [1, 2])


def test_sizes_that_disagree_are_found_with_both_values() -> None:
    source = """
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("m", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        z = R.add(x, y)
        return z
"""
    check(source, (floats(2, 4), floats(2, 4)), (floats(3, 4), floats(2, 4)))
    with pytest.raises(ShapeError, match="n of `x` is 3, m of `y` is 2"):
        weft.compile(module(source))["main"](floats(3, 4), floats(2, 4))


def test_a_reshape_to_another_number_of_elements_is_an_error_when_it_runs() -> None:
    source = """
    @R.function
    def main(x: R.Tensor(("n", "m"), "float32")) -> R.Tensor(("n * m // 2", 2), "float32"):
        y = R.reshape(x, (n * m // 2, 2))
        return y
"""
    check(source, (floats(2, 3),), (floats(3, 3),), (floats(0, 4),))


def test_an_index_out_of_range_is_a_bounds_error() -> None:
    source = """
    @R.function
    def main(x: R.Tensor(("n", 3), "float32"), i: R.Tensor(("k",), "int64")) -> R.Tensor(("k", 3), "float32"):
        y = R.take(x, i, axis=0)
        return y
"""
    check(source, (floats(4, 3), np.array([0, 3, -1])), (floats(4, 3), np.array([4])), (floats(4, 3), np.array([-5])))


def test_compound_dimensions_of_parameters_are_compared() -> None:
    source = """
    @R.function
    def main(x: R.Tensor(("2 * n + 1", 4), "float32"), s: R.Shape(["n"])) -> R.Tensor(("n", 4), "float32"):
        y = R.strided_slice(x, axes=[0], begin=[0], end=[n])
        return y
"""
    check(source, (floats(7, 4), (3,)), (floats(6, 4), (3,)), (floats(1, 4), (0,)))


def test_a_kernel_that_writes_its_input_leaves_the_callers_array_alone() -> None:
    source = """
    @T.prim_func(private=True)
    def inc(x: T.Buffer(("n",), "float32")):
        for i in range(n):
            with T.block("inc"):
                v = T.axis.spatial(n, i)
                x[v] = x[v] + T.float32(1)

    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        with R.dataflow():
            y = R.call_tir_inplace(M.inc, (x,), inplace_indices=[0], out_ty=R.Tensor((n,), "float32"))
            R.output(y)
        return y
"""
    x = np.zeros(3, "float32")
    x.flags.writeable = False
    np.testing.assert_array_equal(weft.compile(module(source))["main"](x), [1, 1, 1])
    assert (x == 0).all()


def test_a_function_value_that_is_chosen_while_running_is_refused_with_a_way_out() -> None:
    source = """
    @R.function
    def main(f: R.Callable((R.Tensor((2,), "float32"),), R.Tensor((2,), "float32")), x: R.Tensor((2,), "float32")):
        y = f(x)
        return y
"""
    with pytest.raises(TargetError) as info:
        weft.compile(module(source))
    assert info.value.hint is not None


def test_a_missing_kernel_is_named() -> None:
    source = """
@R.function
def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
    y = R.exp(x)
    return y
"""
    unknown = source.replace('R.Tensor((2,), "float32")', "R.Tensor(ndim=1)")
    with pytest.raises(TargetError, match=r"R\.exp has no kernel"):
        weft.compile(module(unknown), pipeline=weft.transform.Pipeline([]))


def test_parameters_are_bound_when_compiling() -> None:
    source = """
@R.function
def main(x: R.Tensor(("n", 2), "float32"), w: R.Tensor((2, 3), "float32")) -> R.Tensor(("n", 3), "float32"):
    y = R.matmul(x, w)
    return y
"""
    w = floats(2, 3)
    compiled = weft.compile(module(source), params={"w": w})["main"]
    np.testing.assert_allclose(compiled(floats(4, 2)), floats(4, 2) @ w, rtol=1e-5)


def test_calling_a_module_or_function_compiles_it_once() -> None:
    function = module("""
@R.function
def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
    y = R.add(x, x)
    return y
""")
    np.testing.assert_array_equal(function(np.ones(2, "float32")), [2, 2])
    from weft.codegen.compile import _cache

    first = _cache[function]
    function(np.ones(3, "float32"))
    assert _cache[function] is first


def test_equal_kernels_are_generated_once() -> None:
    kernel = """
    @T.prim_func(private=True)
    def {0}(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")):
        for i in range(n):
            y[i] = x[i] * T.float32(2)
"""
    main = """
    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        a = R.call_tir(M.first, (x,), out_ty=R.Tensor((n,), "float32"))
        b = R.call_tir(M.second, (a,), out_ty=R.Tensor((n,), "float32"))
        return b
"""
    exe = weft.compile(module(kernel.format("first") + kernel.format("second") + main))
    assert len(KERNEL.findall(exe.source("llvm"))) == 1
    np.testing.assert_array_equal(exe["main"](np.ones(2, "float32")), [4, 4])


def test_a_thousand_operators_compile_in_time_that_grows_with_their_number() -> None:
    """Kernels are shared, so the graph function is what grows."""
    exe = weft.compile(chain(1000))
    assert len(KERNEL.findall(exe.source("llvm"))) <= 4
    x = floats(2, 64)
    want = x
    for index in range(1000):
        want = np.maximum(want, 0) if index % 2 else want - x
    np.testing.assert_allclose(exe["main"](x), want, rtol=1e-3)


def chain(length: int) -> Any:
    lines = ["@R.function", 'def main(x: R.Tensor(("n", 64), "float32")) -> R.Tensor(("n", 64), "float32"):']
    previous = "x"
    for index in range(length):
        value = f"R.nn.relu({previous})" if index % 2 else f"R.subtract({previous}, x)"
        lines.append(f"    v{index} = {value}")
        previous = f"v{index}"
    return module("\n".join([*lines, f"    return {previous}"]) + "\n")


def test_an_allocation_that_cannot_be_had_is_an_error_and_not_a_crash() -> None:
    source = """
    @R.function
    def main(s: R.Shape(["n", "m"])) -> R.Tensor(("n", "m"), "float32"):
        y = R.zeros((n, m), "float32")
        return y
"""
    compiled = weft.compile(module(source))["main"]
    assert compiled((2, 3)).shape == (2, 3)
    assert compiled((0, 2**40)).shape == (0, 2**40)
    for shape in ((2**40, 2**20), (2**62, 2**62), (2**61, 4)):
        with pytest.raises(weft.OutOfMemoryError, match=r"no memory for y: (at least )?\d+ bytes") as caught:
            compiled(shape)
        assert isinstance(caught.value, MemoryError)
        assert caught.value.code == "W950"
        assert caught.value.span is not None
        span = caught.value.span
        assert span.source.text[span.start : span.end].endswith('R.zeros((n, m), "float32")')
    for run in (weft.interpret(module(source))["main"], weft.compile(module(source), executor="vm")["main"]):
        for shape, size in (((2**40, 2**20), 2**62), ((2**62, 2**62), 2**126)):
            with pytest.raises(weft.OutOfMemoryError, match=f"no memory for .*{size} bytes") as caught:
                run(shape)
            assert (caught.value.code, caught.value.span is not None) == ("W950", True)


def test_a_recursion_without_end_is_an_error_and_not_a_crash() -> None:
    source = """
    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        y = R.add(x, x)
        z = M.main(y)
        return z
"""
    with pytest.raises(RecursionError, match="calls of main are nested too deep") as caught:
        weft.compile(module(source))["main"](floats(3))
    assert isinstance(caught.value, weft.RecursionDepthError)
    assert caught.value.code == "W951"
