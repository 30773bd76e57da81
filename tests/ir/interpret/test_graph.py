"""Graph functions run binding by binding, with shapes, arguments and results checked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from weft.errors import ArgumentError, BoundsError, RecursionDepthError, ShapeError, WeftError
from weft.ir import IRModule
from weft.ir.interpret import encode, interpret


def ramp(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.arange(int(np.prod(shape)), dtype=dtype).reshape(shape)


def run(text: str, *args: Any, functions: Any = None, name: str = "main", **options: Any) -> Any:
    return interpret(weft.parse(text), functions=functions)[name](*args, **options)


SCALE = """
@I.ir_module
class Module:
    @T.prim_func
    def scale(x: T.Buffer(("n", 4), "float32"), y: T.Buffer(("n", 4), "float32")):
        for i, j in T.grid(n, 4):
            y[i, j] = x[i, j] * T.float32(2)

    @T.prim_func
    def half(x: T.Buffer(("n", 4), "float32"), y: T.Buffer(("n", 4), "float32")):
        for i, j in T.grid(n, 4):
            if j < 2:
                y[i, j] = x[i, j]

    @T.prim_func
    def update(x: T.Buffer(("n", 4), "float32")):
        for i, j in T.grid(n, 4):
            x[i, j] = x[i, j] + T.float32(1)

    @T.prim_func
    def add(x: T.Buffer(("n", 4), "float32"), y: T.Buffer(("n", 4), "float32"), z: T.Buffer(("n", 4), "float32")):
        for i, j in T.grid(n, 4):
            z[i, j] = x[i, j] + y[i, j]

    @R.function
    def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        cls = Module
        with R.dataflow():
            h = R.call_tir(cls.scale, (x,), out_ty=R.Tensor((n, 4), "float32"))
            y = R.add(h, x)
            R.output(y)
        return y

    @R.function
    def unwritten(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        cls = Module
        y = R.call_tir(cls.half, (x,), out_ty=R.Tensor((n, 4), "float32"))
        return y

    @R.function
    def inplace(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        cls = Module
        y = R.call_tir_inplace(cls.update, (x,), inplace_indices=[0], out_ty=R.Tensor((n, 4), "float32"))
        return y

    @R.function
    def mixed(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("m", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        cls = Module
        z = R.call_tir(cls.add, (x, y), out_ty=R.Tensor((n, 4), "float32"))
        return z
"""


@pytest.mark.parametrize("n", [0, 1, 3])
def test_operators_and_kernels_run_at_every_size(n: int) -> None:
    np.testing.assert_array_equal(run(SCALE, ramp(n, 4)), 3 * ramp(n, 4))


def test_the_trace_lists_bindings_with_their_values() -> None:
    result, steps = run(SCALE, ramp(2, 4), trace=True)
    assert [name for name, _ in steps] == ["h", "y"]
    np.testing.assert_array_equal(steps[0][1], 2 * ramp(2, 4))
    np.testing.assert_array_equal(steps[1][1], result)


def test_an_output_that_a_kernel_leaves_unwritten_is_an_error_with_the_symbol_values() -> None:
    with pytest.raises(BoundsError) as caught:
        run(SCALE, ramp(3, 4), name="unwritten")
    assert caught.value.code == "W902"
    assert "in unwritten with n=3" in caught.value.notes
    assert caught.value.span is not None


def test_an_inplace_kernel_leaves_the_callers_array_alone() -> None:
    x = ramp(2, 4)
    np.testing.assert_array_equal(run(SCALE, x, name="inplace"), ramp(2, 4) + 1)
    np.testing.assert_array_equal(x, ramp(2, 4))


def test_sizes_that_a_kernel_needs_equal_are_compared_when_it_runs() -> None:
    np.testing.assert_array_equal(run(SCALE, ramp(2, 4), ramp(2, 4), name="mixed"), 2 * ramp(2, 4))
    with pytest.raises(ShapeError) as caught:
        run(SCALE, ramp(2, 4), ramp(3, 4), name="mixed")
    assert "in mixed with n=2, m=3" in caught.value.notes


@pytest.mark.parametrize(
    ("args", "code", "text"),
    [
        ((), "W850", "main takes 2 arguments (x, w), got 0"),
        (
            (ramp(64, 8), ramp(64, 256)),
            "W852",
            "argument 2 `w` of main: expected float32[(n, 128)], got float32[(64, 256)]",
        ),
        ((ramp(64, 8), ramp(32, 128)), "W852", "got float32[(32, 128)]; n=64 from argument 1"),
        ((ramp(64, 8, dtype="float64"), ramp(64, 128)), "W851", "expected float32[(n, 8)], got float64[(64, 8)]"),
        ((ramp(64), ramp(64, 128)), "W852", "got float32[(64,)]"),
        (("text", ramp(64, 128)), "W851", "got str 'text'"),
    ],
)
def test_wrong_arguments_name_parameter_symbol_and_where_it_came_from(
    args: tuple[Any, ...], code: str, text: str
) -> None:
    function = """
@R.function
def main(x: R.Tensor(("n", 8), "float32"), w: R.Tensor(("n", 128), "float32")) -> R.Tensor(("n", 8), "float32"):
    return x
"""
    with pytest.raises(ArgumentError) as caught:
        interpret(weft.parse(function))(*args)
    assert caught.value.code == code
    assert text in caught.value.message


def test_shapes_scalars_strings_and_tuples_are_values() -> None:
    function = """
@R.function
def main(
    s: R.Shape(["n", "m"]), p: R.Prim("int64"), t: R.Tuple(R.Tensor(("n",), "float32"), R.Tensor(("m",), "float32"))
) -> R.Tuple(R.Shape(["m", "n"]), R.Prim("int64"), R.Tensor(("m",), "float32")):
    a = t[1]
    r = (R.shape([m, n]), p, a)
    return r
"""
    call = interpret(weft.parse(function))
    shape, number, array = call((2, 3), 7, (ramp(2), ramp(3)))
    assert (shape, number, array.tolist()) == ((3, 2), 7, [0, 1, 2])
    with pytest.raises(ArgumentError, match="m=3 from argument 1"):
        call([2, 3], 7, (ramp(2), ramp(2)))
    with pytest.raises(ArgumentError, match="expected int64"):
        call((2, 3), 1.5, (ramp(2), ramp(3)))


def test_a_match_cast_binds_symbols_and_checks() -> None:
    function = """
@R.function
def main(x: R.Tensor(ndim=2, dtype="float32")) -> R.Tensor(ndim=2, dtype="float32"):
    m = T.int64()
    y = R.match_cast(x, R.Tensor((m, 4), "float32"))
    z = R.zeros((m, 2), dtype="float32")
    return z
"""
    call = interpret(weft.parse(function))
    assert call(ramp(5, 4)).shape == (5, 2)
    with pytest.raises(ShapeError, match=r"match_cast of y: expected float32\[\(m, 4\)\], got float32\[\(5, 3\)\]"):
        call(ramp(5, 3))


def test_only_the_chosen_branch_runs() -> None:
    function = """
@R.function
def main(c: R.Tensor((), "bool"), x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
    if c:
        y = R.add(x, x)
    else:
        y = R.call_pure_packed("never", x, ty_args=R.Tensor((4,), "float32"))
    return y
"""
    call = interpret(weft.parse(function))
    assert call(np.array(True), ramp(4)).tolist() == [0, 2, 4, 6]
    with pytest.raises(ArgumentError, match="'never' is not registered"):
        call(np.array(False), ramp(4))


def test_functions_call_each_other_themselves_and_what_surrounds_them() -> None:
    module = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((), "int32"), k: R.Tensor((), "int32")) -> R.Tensor((), "int32"):
        @R.function
        def shifted(z: R.Tensor((), "int32")) -> R.Tensor((), "int32"):
            w = R.add(z, k)
            return w
        f = Module.factorial(x)
        y = shifted(f)
        return y

    @R.function
    def factorial(x: R.Tensor((), "int32")) -> R.Tensor((), "int32"):
        c = R.less_equal(x, R.const(1, "int32"))
        if c:
            y = R.const(1, "int32")
        else:
            less = R.subtract(x, R.const(1, "int32"))
            rest = Module.factorial(less)
            y = R.multiply(x, rest)
        return y
"""
    assert run(module, np.array(5, "int32"), np.array(7, "int32")) == 127


def test_a_recursion_without_end_is_an_error() -> None:
    module = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((), "int32")) -> R.Tensor((), "int32"):
        y = Module.main(x)
        return y
"""
    with pytest.raises(RecursionDepthError, match="calls of main are nested too deep") as caught:
        run(module, np.array(1, "int32"))
    assert caught.value.code == "W951"


def test_external_functions_of_every_calling_convention() -> None:
    function = """
@R.function(pure=False)
def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
    a = R.call_dps_packed("into", (x,), out_ty=R.Tensor((n,), "float32"))
    b = R.call_pure_packed("double", a, ty_args=R.Tensor((n,), "float32"))
    c = R.call_packed("double", b, ty_args=R.Tensor((n,), "float32"))
    return c
"""

    def into(x: np.ndarray, out: np.ndarray) -> None:
        out[...] = x + 1

    functions = {"into": into, "double": lambda x: 2 * x}
    call = interpret(weft.parse(function), functions=functions.get)
    assert call(ramp(3)).tolist() == [4, 8, 12]


def test_an_external_result_of_another_type_is_an_error() -> None:
    function = """
@R.function
def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
    b = R.call_pure_packed("wrong", x, ty_args=R.Tensor((n,), "float32"))
    return b
"""
    call = interpret(weft.parse(function), functions={"wrong": lambda x: x[:-1]}.get)
    with pytest.raises(ShapeError) as caught:
        call(ramp(3))
    assert caught.value.code == "W223"
    assert "the result of 'wrong': expected float32[(n,)], got float32[(2,)]" in caught.value.message
    assert "n=3 from argument 1" in caught.value.message


def test_print_and_assert(capsys: pytest.CaptureFixture[str]) -> None:
    function = """
@R.function(pure=False)
def main(x: R.Tensor((2,), "float32"), c: R.Tensor((), "bool")) -> R.Tensor((2,), "float32"):
    R.print(x, format="x is {}")
    R.assert_op(c, x, format="bad x {}")
    return x
"""
    call = interpret(weft.parse(function))
    call(ramp(2), np.array(True))
    assert capsys.readouterr().out == "x is [0. 1.]\n"
    with pytest.raises(AssertionError, match=r"bad x \[0\. 1\.\]"):
        call(ramp(2), np.array(False))


EXPLICIT = """
@I.ir_module
class Module:
    @T.prim_func
    def left(x: T.Buffer((4,), "float32"), y: T.Buffer((8,), "float32")):
        for i in range(4):
            y[i] = x[i]

    @T.prim_func
    def right(x: T.Buffer((4,), "float32"), y: T.Buffer((8,), "float32")):
        for i in range(4):
            y[i + 4] = x[i]

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((8,), "float32"):
        cls = Module
        alloc = R.builtin.alloc_tensor(R.shape([8]), dtype="float32", runtime_device_index=0, storage_scope="global")
        cls.left(x, alloc)
        cls.right(x, alloc)
        return alloc

    @R.function
    def half(x: R.Tensor((4,), "float32")) -> R.Tensor((8,), "float32"):
        cls = Module
        alloc = R.builtin.alloc_tensor(R.shape([8]), dtype="float32", runtime_device_index=0, storage_scope="global")
        cls.left(x, alloc)
        return alloc

    @R.function
    def early(x: R.Tensor((4,), "float32")) -> R.Tensor((8,), "float32"):
        cls = Module
        alloc = R.builtin.alloc_tensor(R.shape([8]), dtype="float32", runtime_device_index=0, storage_scope="global")
        y = R.add(alloc, alloc)
        return y
"""


def test_the_explicit_memory_form_may_be_written_in_parts() -> None:
    np.testing.assert_array_equal(run(EXPLICIT, ramp(4)), np.tile(ramp(4), 2))


@pytest.mark.parametrize(
    ("name", "text"), [("half", r"element \(4,\)"), ("early", r"`alloc` is read before element \(0,\)")]
)
def test_memory_that_was_not_written_is_not_read(name: str, text: str) -> None:
    with pytest.raises(BoundsError, match=text) as caught:
        run(EXPLICIT, ramp(4), name=name)
    assert caught.value.code == "W901"


def test_all_phases_of_lowering_mean_the_same() -> None:
    module = weft.parse(SCALE)
    assert isinstance(module, IRModule)
    expected = interpret(module)["main"](ramp(3, 4))
    for passes in ("legalize", "legalize,memory"):
        lowered = weft.transform.parse_pipeline(passes)(module)
        np.testing.assert_array_equal(interpret(lowered)["main"](ramp(3, 4)), expected)


def test_bfloat16_results_are_arrays_of_ml_dtypes_and_operators_round() -> None:
    function = """
@R.function
def main(x: R.Tensor(("n",), "bfloat16")) -> R.Tensor(("n",), "bfloat16"):
    y = R.exp(x)
    return y
"""
    values = encode(np.array([0.5, 1.0], "float32"), "bfloat16")
    result = interpret(weft.parse(function))(values)
    assert result.dtype == np.dtype("bfloat16")
    np.testing.assert_allclose(result.astype("float64"), np.exp([0.5, 1.0]), rtol=2**-8)


def test_an_index_out_of_range_at_run_time_is_a_bounds_error() -> None:
    function = """
@R.function
def main(x: R.Tensor((4,), "float32"), i: R.Tensor((2,), "int64")) -> R.Tensor((2,), "float32"):
    y = R.take(x, i, axis=0)
    return y
"""
    call = interpret(weft.parse(function))
    assert call(ramp(4), np.array([3, -1])).tolist() == [3, 3]
    with pytest.raises(BoundsError):
        call(ramp(4), np.array([0, 4]))


def test_weft_interpret_finds_registered_functions() -> None:
    weft.register_func("tests.triple", lambda x, out: np.multiply(x, 3, out=out))
    function = weft.parse("""
@R.function
def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
    y = R.call_dps_packed("tests.triple", (x,), out_ty=R.Tensor((n,), "float32"))
    return y
""")
    assert weft.interpret(function)(ramp(3)).tolist() == [0, 3, 6]


PLANNED = """
@I.ir_module
class Module:
    @T.prim_func
    def scale(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
        for i in range(4):
            y[i] = x[i] * T.float32(2)

    @R.function(pure=False)
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        storage = R.memory.alloc_storage(R.shape([32]), 0, "global", "uint8")
        a = R.memory.alloc_tensor(storage, 0, R.shape([4]), "float32")
        cls.scale(x, a)
        b = R.memory.alloc_tensor(storage, 16, R.shape([4]), "float32")
        cls.scale(a, b)
        R.memory.kill_tensor(a)
        c = R.memory.alloc_tensor(storage, 0, R.shape([4]), "float32")
        cls.scale(b, c)
        return c

    @R.function(pure=False)
    def reused(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        storage = R.memory.alloc_storage(R.shape([16]), 0, "global", "uint8")
        a = R.memory.alloc_tensor(storage, 0, R.shape([4]), "float32")
        cls.scale(x, a)
        R.memory.kill_tensor(a)
        y = R.add(a, a)
        return y

    @R.function(pure=False)
    def small(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        storage = R.memory.alloc_storage(R.shape([16]), 0, "global", "uint8")
        a = R.memory.alloc_tensor(storage, 4, R.shape([4]), "float32")
        return a
"""


def test_tensors_share_a_planned_storage() -> None:
    assert run(PLANNED, ramp(4)).tolist() == [0, 8, 16, 24]


@pytest.mark.parametrize(("name", "code"), [("reused", "W911"), ("small", "W903")])
def test_a_wrong_plan_is_found(name: str, code: str) -> None:
    with pytest.raises(BoundsError) as caught:
        run(PLANNED, ramp(4), name=name)
    assert caught.value.code == code


def test_a_kernel_that_writes_an_input_breaks_the_promise_of_its_call() -> None:
    module = SCALE.replace("y[i, j] = x[i, j] * T.float32(2)", "y[i, j] = x[i, j] * T.float32(2); x[i, j] = y[i, j]")
    x = ramp(2, 4)
    with pytest.raises(WeftError, match="kernel scale writes its input 'x'") as caught:
        run(module, x)
    assert caught.value.code == "W435"
    np.testing.assert_array_equal(x, ramp(2, 4))


def test_a_wrong_argument_inside_the_program_points_at_the_call() -> None:
    module = """
@I.ir_module
class Module:
    @R.function
    def trace(a: R.Tensor(("k", "k"), "float32")) -> R.Tensor(("k",), "float32"):
        y = R.sum(a, axis=1)
        return y

    @R.function
    def main(a: R.Tensor(("n", "m"), "float32")) -> R.Tensor(("n",), "float32"):
        r = Module.trace(a)
        return r
"""
    assert run(module, np.ones((3, 3), "float32")).tolist() == [3, 3, 3]
    with pytest.raises(ShapeError) as caught:
        run(module, np.ones((3, 2), "float32"))
    assert caught.value.span is not None
    assert caught.value.span.line == 11
