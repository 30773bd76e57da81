"""Registered functions: what they return is checked, what they keep is theirs, what they raise comes out."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from weft.dtypes import array_dtype, storage, stored
from weft.errors import ArgumentError, ShapeError, WeftError
from weft.ir import Function, IRModule, PrimFunc
from weft.runtime.registry import register_func, unregister_func

EXECUTORS = ("native", "vm")
SIZES = """
@I.ir_module
class M:
    @R.function(pure=False)
    def main(x: R.Tensor((2,), "float32")) -> R.Shape(ndim={ndim}):
        s = R.call_packed("tests.sizes", x, ty_args=R.Shape(ndim={ndim}))
        return s
"""
X = np.arange(2, dtype="float32")
LONG = np.ones(1000, "float32")


def module(text: str) -> IRModule:
    made = weft.parse(text)
    if isinstance(made, (Function, PrimFunc)):
        made = IRModule({"main": made})
    assert isinstance(made, IRModule)
    return made


@pytest.fixture(scope="module")
def programs():
    """A program that returns the sizes that a registered function gives, by executor and rank."""
    return {
        (executor, ndim): weft.compile(module(SIZES.format(ndim=ndim)), executor=executor)["main"]
        for executor in EXECUTORS
        for ndim in (-1, 0, 3, 17)
    }


def expected(value: Any, ndim: int) -> tuple[int, ...] | None:
    """What comes back for the sizes that a function returns; None when they are no shape of that rank."""
    plain = all(type(size) is int or isinstance(size, np.integer) for size in value)
    fits = len(value) == ndim if ndim >= 0 else len(value) <= 16
    return tuple(map(int, value)) if plain and fits and all(0 <= size < 2**63 for size in value) else None


SIZE = st.one_of(
    st.integers(0, 5),
    st.integers(-(2**70), 2**70),
    st.sampled_from([2**63 - 1, 2**63, 2**64, -1, True, 1.0, 1.9]),
    st.sampled_from([None, np.int8(3), np.uint64(2**63), np.float32(1), "1"]),
)
MANY = st.integers(0, 1200).map(lambda count: [1] * count)


@settings(max_examples=150, deadline=None)
@given(
    value=st.one_of(st.lists(SIZE, max_size=20), MANY),
    ndim=st.sampled_from([-1, -1, 0, 3, 17]),
    executor=st.sampled_from(EXECUTORS),
)
def test_sizes_come_back_as_they_are_or_are_refused(programs: Any, value: list[Any], ndim: int, executor: str) -> None:
    register_func("tests.sizes", lambda x: tuple(value))
    wanted = expected([np.nan if isinstance(size, str | None) else size for size in value], ndim)
    if wanted is not None:
        assert programs[executor, ndim](X) == wanted
    else:
        with pytest.raises(ShapeError) as caught:
            programs[executor, ndim](X)
        assert caught.value.code == "W223"


@pytest.mark.parametrize("count", [17, 1000])
@pytest.mark.parametrize("executor", EXECUTORS)
def test_more_sizes_than_there_is_room_for_are_refused_as_an_argument_too(count: int, executor: str) -> None:
    text = "@R.function\ndef main(s: R.Shape(ndim=-1)) -> R.Shape(ndim=-1):\n    return s\n"
    run = weft.compile(IRModule({"main": weft.parse(text)}), executor=executor)["main"]  # pyright: ignore
    assert run((1,) * 16) == (1,) * 16
    if executor == "native":
        with pytest.raises(ArgumentError, match="ranks up to 16"):
            run((1,) * count)


KEEPS = """
@I.ir_module
class M:
    @R.function(pure=False)
    def main(x: R.Tensor((1000,), "float32")) -> R.Tensor((1000,), "float32"):
        with R.dataflow():
            a = R.add(x, x)
            R.output(a)
        b = R.call_dps_packed("tests.keep", (a,), out_ty=R.Tensor((1000,), "float32"))
        c = R.multiply(b, b)
        return c
"""
KERNEL = """
@I.ir_module
class M:
    @T.prim_func
    def main(x: T.Buffer((1000,), "float32"), y: T.Buffer((1000,), "float32")):
        T.evaluate(T.call_packed("tests.keep", x.data, y.data, dtype="void"))
"""


@pytest.mark.parametrize("executor", ["native", "vm", "graph", "aot"])
def test_arrays_that_a_function_keeps_stay_as_they_were(executor: str) -> None:
    kept: list[np.ndarray] = []

    def keep(a: np.ndarray, out: np.ndarray) -> None:
        out[...] = a + 1
        kept.extend([a, a[::2], out])

    register_func("tests.keep", keep)
    exe = weft.compile(module(KEEPS), executor=executor)
    for turn in range(3):
        x = np.full(1000, turn, "float32")
        np.testing.assert_array_equal(exe["main"](x), (2 * x + 1) ** 2)
        del x
    del exe
    gc.collect()
    junk = [np.full(1000, -7, "float32") for _ in range(50)]
    for turn in range(3):
        a, half, out = kept[3 * turn : 3 * turn + 3]
        np.testing.assert_array_equal(a, 2 * turn)
        np.testing.assert_array_equal(half, 2 * turn)
        np.testing.assert_array_equal(out, 2 * turn + 1)
    assert len(junk) == 50


def test_arrays_that_a_kernel_hands_out_are_the_functions_too() -> None:
    kept: list[np.ndarray] = []

    def keep(x: np.ndarray, y: np.ndarray) -> None:
        y[...] = x * 3
        kept.extend([x, y])

    register_func("tests.keep", keep)
    exe = weft.compile(module(KERNEL))
    x, y = np.ones(1000, "float32"), np.zeros(1000, "float32")
    exe["main"](x, y)
    np.testing.assert_array_equal(y, 3)
    x[...] = y[...] = 9
    np.testing.assert_array_equal(kept[0], 1)
    np.testing.assert_array_equal(kept[1], 3)


def test_an_array_that_is_given_twice_is_one_array() -> None:
    def both(x: np.ndarray, y: np.ndarray) -> None:
        x[0] = 5
        assert y[0] == 5

    register_func("tests.keep", both)
    text = KERNEL.replace("x.data, y.data", "x.data, x.data")
    x = np.ones(1000, "float32")
    weft.compile(module(text))["main"](x, np.zeros(1000, "float32"))
    assert x[0] == 5


class RefusesNotes(Exception):
    """An exception that cannot be added to."""

    def add_note(self, note: str, /) -> None:
        raise RuntimeError("no notes")


class OddNotes(Exception):
    """One whose notes are no list."""

    __notes__ = 3  # pyright: ignore[reportAssignmentType]


@pytest.mark.parametrize("kind", [RefusesNotes, OddNotes, ValueError, KeyboardInterrupt])
def test_what_a_function_raises_comes_out_whatever_its_notes_do(kind: type[BaseException]) -> None:
    def fail(a: np.ndarray, out: np.ndarray) -> None:
        raise kind("mine")

    register_func("tests.keep", fail)
    with pytest.raises(kind) as caught:
        weft.compile(module(KEEPS))["main"](LONG)
    assert caught.value.args == ("mine",)


@pytest.mark.parametrize("executor", ["interpreter", "native", "vm", "graph"])
def test_what_a_function_raises_says_where_it_was_called(executor: str) -> None:
    def fail(a: np.ndarray, out: np.ndarray) -> None:
        raise LookupError("mine")

    register_func("tests.keep", fail)
    made = module(KEEPS)
    main = (weft.interpret(made) if executor == "interpreter" else weft.compile(made, executor=executor))["main"]
    with pytest.raises(LookupError) as caught:
        main(LONG)
    (note,) = caught.value.__notes__
    assert note.startswith("in 'tests.keep', called at\n")
    assert "^" in note


@pytest.mark.parametrize("executor", ["interpreter", "native", "vm"])
@pytest.mark.parametrize("size", ['"n",', "3,"])
def test_functions_of_python_run_in_loops_and_branches(executor: str, size: str) -> None:
    register_func("tests.keep", lambda x: x * 2)
    made = weft.parse(f"""@R.function
def main(x: R.Tensor(({size}), "float32"), k: R.Tensor((), "int64")):
    for i in range(k):
        if R.max(x) < 10.0:
            x = R.call_py("tests.keep", (x,), out_ty=R.Tensor(x.shape, "float32"))
        else:
            x = x - 1.0
    return x
""")
    main = (weft.interpret(made) if executor == "interpreter" else weft.compile(made, executor=executor))["main"]
    x = np.array([1, 2, 3], "float32")
    for steps, wanted in ((0, x), (1, x * 2), (2, x * 4), (5, x * 4 - 3)):
        np.testing.assert_array_equal(main(x, np.int64(steps)), wanted)


@pytest.mark.parametrize("executor", ["native", "vm", "graph", "aot"])
@pytest.mark.parametrize(
    "name", ["weft.null", "weft.assert", "weft.cast", "weft.print", "weft.print_format", "weft.tensor_to_shape"]
)
def test_actions_of_the_runtime_are_no_names(name: str, executor: str) -> None:
    with pytest.raises(WeftError) as caught:
        weft.compile(module(KEEPS.replace("tests.keep", name)), executor=executor)["main"](LONG)
    assert caught.value.code == ("W760" if executor == "aot" else "W861")
    register_func(name, lambda a, out: out.fill(2))
    try:
        result = weft.compile(module(KEEPS.replace("tests.keep", name)), executor=executor)["main"](LONG)
        np.testing.assert_array_equal(result, 4)
    finally:
        unregister_func(name)


def run_of(text: str, executor: str) -> Any:
    """The function of a program in an executor, or in the interpreter."""
    made = module(text)
    return weft.interpret(made)["main"] if executor == "interpreter" else weft.compile(made, executor=executor)["main"]


NARROW = """
@I.ir_module
class M:
    @R.function(pure=False)
    def main(x: R.Tensor((4,), "{dtype}")) -> R.Tensor((4,), "{dtype}"):
        a = R.call_packed("tests.turn", x, (x, R.shape([4])), ty_args=R.Tensor((4,), "{dtype}"))
        b = R.call_py("tests.turn", (a, (a, R.shape([4]))), out_ty=R.Tensor((4,), "{dtype}"))
        c = R.call_dps_packed("tests.write", (b,), out_ty=R.Tensor((4,), "{dtype}"))
        return c
"""
WRITTEN = """
@I.ir_module
class M:
    @R.function
    def main(x: R.Tensor((4,), "{dtype}")) -> R.Tensor((4,), "{dtype}"):
        with R.dataflow():
            c = R.call_dps_packed("tests.write", (x,), out_ty=R.Tensor((4,), "{dtype}"))
            R.output(c)
        return c
"""
IN_KERNEL = """
@T.prim_func
def main(x: T.Buffer((4,), "{dtype}"), y: T.Buffer((4,), "{dtype}")):
    T.evaluate(T.call_packed("tests.write", x.data, y.data, dtype="void"))
"""


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "int4"])
@pytest.mark.parametrize("executor", ["native", "vm", "graph", "aot", "interpreter"])
def test_narrow_types_are_those_of_ml_dtypes_in_functions(executor: str, dtype: str) -> None:
    seen: list[tuple[str, ...]] = []

    def turn(a: np.ndarray, group: tuple[np.ndarray, Any]) -> np.ndarray:
        seen.append((a.dtype.name, group[0].dtype.name))
        return a[::-1]

    def write(a: np.ndarray, out: np.ndarray) -> None:
        seen.append((a.dtype.name, out.dtype.name))
        out[...] = a[::-1]

    register_func("tests.turn", turn)
    register_func("tests.write", write)
    x = np.array([1, 2, 3, 0]).astype(array_dtype(dtype))
    text = WRITTEN if executor in ("graph", "aot") else NARROW
    result = run_of(text.format(dtype=dtype), executor)(x)
    assert result.dtype == x.dtype
    np.testing.assert_array_equal(result, x[::-1])
    assert seen == [(dtype, dtype)] * (1 if text is WRITTEN else 3)
    if executor in ("native", "interpreter"):
        out = np.zeros(4, array_dtype(dtype))
        run_of(IN_KERNEL.format(dtype=dtype), executor)(x, out)
        np.testing.assert_array_equal(out, x[::-1])


@pytest.mark.parametrize("executor", ["native", "vm", "graph", "aot", "interpreter"])
def test_memory_of_an_array_is_not_a_functions_to_resize(executor: str) -> None:
    refused: list[bool] = []

    def write(*arrays: np.ndarray) -> None:
        for array in arrays:
            with pytest.raises(ValueError, match="does not own"):
                array.resize(100_000, refcheck=False)
            with pytest.raises(ValueError, match="cannot resize"):
                array.base.resize(100_000)  # type: ignore[union-attr]
            refused.append(True)
        arrays[-1][...] = arrays[0]

    register_func("tests.write", write)
    x = np.arange(4, dtype="float32")
    np.testing.assert_array_equal(run_of(WRITTEN.format(dtype="float32"), executor)(x), x)
    assert len(refused) == 2


RETURNED = """
@I.ir_module
class M:
    @R.function(pure=False)
    def main(x: R.Tensor((1000,), "float32")) -> R.Tensor((1000,), "float32"):
        a = R.call_packed("tests.give", x, ty_args=R.Tensor((1000,), "float32"))
        o = R.call_packed("tests.give", x, ty_args=R.Object)
        _ = R.call_packed("tests.spoil", ty_args=R.Tuple)
        b = R.match_cast(o, R.Tensor((1000,), "float32"))
        c = R.add(a, b)
        return c
"""


@pytest.mark.parametrize("executor", ["native", "vm", "interpreter"])
def test_what_a_function_returned_and_changes_later_is_the_callers(executor: str) -> None:
    kept: list[np.ndarray] = []

    def give(x: np.ndarray) -> np.ndarray:
        kept.append(x + 1)
        return kept[-1]

    def spoil() -> None:
        for array in kept:
            array[...] = -1
            array.resize(4_000_000, refcheck=False)

    register_func("tests.give", give)
    register_func("tests.spoil", spoil)
    run = run_of(RETURNED, executor)
    for _ in range(3):
        kept.clear()
        np.testing.assert_array_equal(run(np.ones(1000, "float32")), 4)


OVERLAPPING = """
@T.prim_func
def main(x: T.Buffer((6,), "float32")):
    tail = T.decl_buffer((3,), "float32", data=x.data, elem_offset=3)
    T.evaluate(T.call_packed("tests.write", x.data, T.address_of(x[3]), x.data, dtype="void"))
"""


@pytest.mark.parametrize("executor", ["native", "interpreter"])
def test_arrays_that_overlap_are_copies_that_overlap(executor: str) -> None:
    def write(x: np.ndarray, tail: np.ndarray, again: np.ndarray) -> None:
        assert again is x
        x[3] = 7
        assert tail[0] == 7
        tail[1] = 8
        assert x[4] == 8

    register_func("tests.write", write)
    x = np.zeros(6, "float32")
    run_of(OVERLAPPING, executor)(x)
    assert x.tolist() == [0, 0, 0, 7, 8, 0]


CALLABLE = """
@R.function(pure=False)
def main(f: R.Callable((R.Tensor((4,), "bfloat16"),), R.Tensor((4,), "bfloat16")), x: R.Tensor((4,), "bfloat16")):
    y = f(x)
    return y
"""


@pytest.mark.parametrize("executor", ["vm", "interpreter"])
def test_a_function_that_is_an_argument_gets_arrays_of_its_own(executor: str) -> None:
    kept: list[np.ndarray] = []

    def double(x: np.ndarray) -> np.ndarray:
        kept.append(x)
        return x + x

    x = np.ones(4).astype(array_dtype("bfloat16"))
    result = run_of(CALLABLE, executor)(double, x)
    assert result.tolist() == [2, 2, 2, 2]
    assert kept[0].dtype == x.dtype
    assert not np.may_share_memory(kept[0], x)


@pytest.mark.parametrize("executor", ["native", "vm", "interpreter"])
def test_narrow_values_are_shown_as_numbers(executor: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = NARROW.replace("return c", '_ = R.print(c, format="{{}}")\n        return c')
    register_func("tests.turn", lambda a, group: a)
    register_func("tests.write", lambda a, out: out.__setitem__(..., a))
    run_of(text.format(dtype="bfloat16"), executor)(np.array([1.5, 2, 3, 0]).astype(array_dtype("bfloat16")))
    assert "1.5" in capsys.readouterr().out


UNSTATED = """
@R.function(pure=False)
def main(x: R.Tensor((4,), "{dtype}"), given: R.Object):
    a: R.Object = x
    b: R.Tensor = x
    c: R.Object = R.call_packed("tests.see", a, (b, a), ty_args=R.Object)
    d = R.match_cast(given, R.Tensor((4,), "{dtype}"))
    pair: R.Object = (a, d)
    _ = R.print(pair, format="{{}}")
    return (a, b, c, d, pair)
"""
RESTATED = """
@R.function(pure=False)
def main(x: R.Tensor((4,), "{dtype}")):
    a: R.Object = x
    return R.match_cast(a, R.Tensor((4,), "{raw}"))
"""


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "int4"])
@pytest.mark.parametrize("executor", ["native", "vm", "interpreter"])
def test_arrays_keep_their_type_where_no_annotation_states_it(executor: str, dtype: str) -> None:
    seen: list[str] = []

    def see(a: np.ndarray, group: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        seen.extend(item.dtype.name for item in (a, *group))
        return a

    register_func("tests.see", see)
    x = np.array([1, 2, 3, 0]).astype(array_dtype(dtype))
    bits = stored(x, dtype).astype(storage(dtype).name)
    for form in (x, bits):
        a, b, c, d, pair = run_of(UNSTATED.format(dtype=dtype), executor)(form, x)
        for result in (a, b, c, d, *pair):
            assert result.dtype == x.dtype
            np.testing.assert_array_equal(result, x)
    assert seen == [dtype] * 6
    with pytest.raises(ShapeError, match=f"got {dtype}"):
        run_of(RESTATED.format(dtype=dtype, raw=bits.dtype), executor)(x)


@pytest.mark.parametrize("executor", ["interpreter", *EXECUTORS])
@pytest.mark.parametrize("value", [3, None, b"a", ("a",)])
def test_what_is_declared_a_string_is_one(executor: str, value: object) -> None:
    register_func("tests.keep", lambda x: value)
    call = 'R.call_packed("tests.keep", x, ty_args=I.StringType())'
    text = f'@R.function(pure=False)\ndef main(x: R.Tensor((2,), "float32")):\n    s = {call}\n    return s\n'
    run = run_of(text, executor)
    with pytest.raises(ShapeError) as caught:
        run(X)
    assert caught.value.code in ("W222", "W223")
    register_func("tests.keep", lambda x: "a")
    assert run(X) == "a"
