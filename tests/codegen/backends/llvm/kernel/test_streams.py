"""Large results are stored past the caches: which loops, under which conditions, and with the same values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from weft.ir import For, IRModule, walk
from weft.transform import CheckBounds, LegalizeOps, VectorizeNests
from weft.transform.autoschedule.nontemporal import STREAMS

HEAD = "from weft.script import ir as I, relax as R, tir as T\n\n@I.ir_module\nclass Module:\n"
KINDS = {
    "map": "R.add(x, R.const(1, {dtype}))",
    "transpose": "R.permute_dims(x, axes=[1, 0])",
    "comparison": "R.greater(x, R.const(3, {dtype}))",
    "copy": "R.flip(x, axis=0)",
}


def program(kind: str, dims: str = '"n", "m"', dtype: str = "float32") -> IRModule:
    value = KINDS[kind].format(dtype=repr(dtype))
    found = weft.parse(f"""{HEAD}
    @R.function
    def main(x: R.Tensor(({dims}), "{dtype}")):
        with R.dataflow():
            y = {value}
            R.output(y)
        return y
""")
    assert isinstance(found, IRModule)
    return found


def expected(kind: str, x: np.ndarray) -> np.ndarray:
    return {
        "map": lambda: x + x.dtype.type(1),
        "transpose": lambda: x.T,
        "comparison": lambda: x > 3,
        "copy": lambda: x[::-1],
    }[kind]()


def streams(module: IRModule, target: str) -> bool:
    text = weft.compile(module, target=target).source("llvm")
    assert ("!nontemporal" in text) == ("call void @llvm.x86.sse.sfence()" in text)
    return "!nontemporal" in text


@pytest.mark.parametrize(
    ("dims", "options", "wanted"),
    [
        ('"n", "m"', "", True),  # seen at run time
        ("4096, 4096", "", True),
        ("64, 64", "", False),
        ("64, 64", "-streaming_bytes=4096", True),
        ('"n", "m"', "-streaming_bytes=0", False),
        ('"n", "m"', "-mcpu=x86-64-v3", True),
    ],
)
@pytest.mark.parametrize("kind", ["map", "transpose"])
def test_results_that_may_be_large_have_such_stores(kind: str, dims: str, options: str, wanted: bool) -> None:
    assert streams(program(kind, dims), f"llvm {options}") is wanted


def test_no_such_stores_where_a_result_takes_the_memory_of_an_input_or_is_read_again() -> None:
    found = weft.parse(f"""{HEAD}
    @R.function
    def main(x: R.Tensor(("n", 64), "float32")):
        with R.dataflow():
            a = R.matmul(x, R.const(1.0, "float32") * R.ones((64, 64), "float32"))
            y = R.nn.softmax(a, axis=-1)
            R.output(y)
        return y
""")
    assert isinstance(found, IRModule)
    assert not streams(found, "llvm -streaming_bytes=64")


def test_marked_are_the_steps_over_vectors_of_results_that_are_not_read() -> None:
    def marks(module: IRModule, **options: int) -> list[int]:
        new = VectorizeNests.with_options({"vector_bits": 256, **options})(CheckBounds()(LegalizeOps()(module)))
        weft.assert_structural_equal(weft.parse(new.script()), new)
        loops = [part for _, function in new.items() for part in walk(function) if isinstance(part, For)]
        return [loop.annotations[STREAMS] for loop in loops if STREAMS in loop.annotations]

    assert marks(program("map"), streaming_bytes=1024)[:1] == [1024]
    assert marks(program("map")) == []
    assert marks(program("map", "8, 16"), streaming_bytes=1024) == []
    assert marks(program("map", "16, 16"), streaming_bytes=1024) == [1024]


@settings(max_examples=10)
@given(
    st.sampled_from(sorted(KINDS)),
    st.sampled_from(["float32", "float64", "int8", "float16"]),
    st.sampled_from([1, 7, 16, 33, 64, 129]),
    st.sampled_from([1, 16, 31, 64, 100, 256]),
    st.integers(0, 17),
)
def test_values_are_the_same_wherever_the_result_lies(kind: str, dtype: str, rows: int, columns: int, off: int) -> None:
    """Results of the caller may lie at any address: only aligned vectors go past the caches."""
    x = np.random.default_rng(rows).integers(-9, 9, (rows, columns)).astype(dtype)
    run = weft.compile(program(kind, dtype=dtype), target="llvm -streaming_bytes=1")["main"]
    want = expected(kind, x)
    np.testing.assert_array_equal(run(x), want)
    room = np.zeros(want.size + 32, want.dtype)
    result = room[off : off + want.size].reshape(want.shape)
    run(x, out=result)
    np.testing.assert_array_equal(result, want)
    assert not room[:off].any()
    assert not room[off + want.size :].any()


def test_threads_share_them() -> None:
    x = np.random.default_rng(0).standard_normal((700, 1024), "float32")
    run = weft.compile(program("map"), target="llvm -streaming_bytes=1 -threads=2")["main"]
    for _ in range(20):
        np.testing.assert_array_equal(run(x), x + np.float32(1))


def test_the_fact_belongs_to_the_processor_and_the_option_goes_first() -> None:
    assert weft.Target("llvm -mcpu=x86-64-v4").features.streaming_bytes == 32 << 20
    assert weft.Target("llvm -mcpu=x86-64-v4 -streaming_bytes=5").features.streaming_bytes == 5
    assert weft.Target("llvm -mcpu=x86-64-v4 -streaming_bytes=0").features.streaming_bytes == 0
    assert weft.Target("llvm -mcpu=neoverse-n2").features.streaming_bytes == 0
    assert weft.Target("c -mcpu=cortex-m7").features.streaming_bytes == 0
