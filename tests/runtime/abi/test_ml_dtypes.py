"""Arrays of types that NumPy lacks are those of `ml_dtypes` on the way in and out, in every executor."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from weft import dtypes
from weft.ir.graph import Constant
from weft.script import relax as R
from weft.support.dlpack import offered_array

SMALL = [
    "bfloat16",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float4_e2m1fn",
    "int4",
    "uint4",
    "int2",
    "uint2",
]
ROUND = """
from weft.script import relax as R

@R.function
def main(x: R.Tensor(("n", 3), "bfloat16"), f: R.Tensor(("n", 3), "float32")):
    with R.dataflow():
        y = R.add(x, R.astype(f, "bfloat16"))
        z = R.multiply(y, y)
        R.output(y, z)
    return y, z
"""
MOVE = """
from weft.script import tir as T

@T.prim_func
def main(x: T.Buffer((4,), "{dtype}"), y: T.Buffer((4,), "{dtype}")):
    for i in range(4):
        y[i] = x[3 - i]
"""


def runners(text: str) -> dict[str, Any]:
    module = weft.parse(text)
    made = {name: weft.compile(module, executor=name)["main"] for name in ("native", "vm", "graph", "aot")}
    return {**made, "interpreter": weft.interpret(module)["main"]}


def test_bfloat16_arrays_go_in_and_come_out_of_every_executor() -> None:
    x = np.array([[1, 2.5, -3], [0.1, 300, np.inf]]).astype(ml_dtypes.bfloat16)
    f = np.array([[1, 1, 1], [2, 2, 2.0]], "float32")
    want = x + f.astype(ml_dtypes.bfloat16)
    for name, run in runners(ROUND).items():
        for given_x in (x, x.view("uint16"), np.asfortranarray(x), x[:, ::-1][:, ::-1]):
            y, z = run(given_x, f)
            assert (y.dtype, z.dtype) == (ml_dtypes.bfloat16, ml_dtypes.bfloat16), name
            np.testing.assert_array_equal(y, want, err_msg=name)
            np.testing.assert_array_equal(z, want * want, err_msg=name)


def test_results_are_written_into_arrays_of_either_kind() -> None:
    x, f = np.ones((2, 3), ml_dtypes.bfloat16), np.ones((2, 3), "float32")
    for name, run in runners(ROUND).items():
        if name == "interpreter":
            continue  # it has no `out=`
        for kind in (ml_dtypes.bfloat16, "uint16"):
            out = np.zeros((2, 3), kind), np.zeros((2, 3), kind)
            got = run(x, f, out=out)
            assert got[0] is out[0], name
            np.testing.assert_array_equal(out[0].view(ml_dtypes.bfloat16), np.full((2, 3), 2.0), err_msg=name)
            np.testing.assert_array_equal(out[1].view(ml_dtypes.bfloat16), np.full((2, 3), 4.0), err_msg=name)
        with pytest.raises(weft.ArgumentError):
            run(x, f, out=(np.zeros((2, 3), "float32"), np.zeros((2, 3), "float32")))


@pytest.mark.parametrize("dtype", SMALL)
def test_kernels_move_values_of_every_small_type_in_place(dtype: str) -> None:
    kind = dtypes.array_dtype(dtype)
    assert kind.name == dtype
    x = np.array([1, 2, 1, 0.5 if dtypes.is_float(dtype) else 0]).astype(kind)
    if dtypes.is_signed(dtype):
        x[3] = -1
    module = weft.parse(MOVE.format(dtype=dtype))
    for run in (weft.compile(module)["main"], weft.interpret(module)["main"]):
        y = np.zeros(4, kind)
        run(x, y)
        np.testing.assert_array_equal(y, x[::-1])
        raw = np.zeros(4, dtypes.storage(dtype))
        run(dtypes.stored(x, dtype), raw)
        np.testing.assert_array_equal(dtypes.presented(raw, dtype), x[::-1])


@pytest.mark.parametrize("dtype", SMALL)
def test_constants_are_given_as_arrays_of_ml_dtypes(dtype: str) -> None:
    array = np.array([[1, 2], [1, 1]]).astype(dtypes.array_dtype(dtype))
    made = Constant(array)
    assert (made.dtype, made.data.dtype) == (dtype, dtypes.storage(dtype))
    np.testing.assert_array_equal(dtypes.presented(made.data, dtype), array)


def test_a_script_captures_an_array_of_ml_dtypes() -> None:
    w = np.array([[1, 2], [-0.5, 3]]).astype(ml_dtypes.bfloat16)

    @R.function
    def main(x: R.Tensor((2, 2), "bfloat16")):
        y = R.add(x, R.const(w))
        return y

    np.testing.assert_array_equal(main(w), w + w)
    assert weft.structural_equal(weft.parse(main.script()), main)


def test_parameters_are_bound_to_arrays_of_ml_dtypes() -> None:
    x = np.array([[1, 2, 3]]).astype(ml_dtypes.bfloat16)
    module = weft.parse(ROUND.replace('("n", 3)', "(1, 3)"))
    if isinstance(module, weft.ir.Function):
        module = weft.ir.IRModule({"main": module})
    bound = weft.transform.BindParams("main", {"x": x})(module)
    assert weft.structural_equal(weft.parse(bound.script()), bound)
    y, _ = weft.compile(bound)["main"](np.zeros((1, 3), "float32"))
    np.testing.assert_array_equal(y, x)


def test_an_array_of_another_small_type_is_refused() -> None:
    run = weft.compile(weft.parse(ROUND))["main"]
    with pytest.raises(weft.ArgumentError) as info:
        run(np.zeros((1, 3), "float16"), np.zeros((1, 3), "float32"))
    assert info.value.code == "W851"
    with pytest.raises(weft.ArgumentError):
        weft.compile(weft.parse(MOVE.format(dtype="float8_e4m3fn")))["main"](
            np.zeros(4, ml_dtypes.float8_e5m2), np.zeros(4, ml_dtypes.float8_e5m2)
        )


@given(st.sampled_from(SMALL), st.lists(st.integers(0, 3), max_size=5))
def test_stored_and_presented_are_inverse(dtype: str, values: list[int]) -> None:
    array = np.array(values, "int32").astype(dtypes.array_dtype(dtype))
    raw = dtypes.stored(array, dtype)
    assert raw.dtype == dtypes.storage(dtype)
    assert dtypes.presented(raw, dtype).tobytes() == array.tobytes()
    assert dtypes.stored(raw, dtype) is raw


def test_the_package_is_imported_when_it_is_needed() -> None:
    code = (
        "import sys, numpy as np, weft\nfrom weft.script import relax as R\n"
        "m = weft.parse('from weft.script import relax as R\\n\\n@R.function\\n"
        'def main(x: R.Tensor((2,), "float32")):\\n    return R.add(x, x)\\n\')\n'
        "weft.compile(m)['main'](np.ones(2, 'float32'))\nassert 'ml_dtypes' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float32"])
def test_tensors_of_other_projects_go_in_by_dlpack(dtype: str) -> None:
    """An object that offers nothing but `__dlpack__`, with strides of its own; the memory is the same."""
    whole = np.arange(12).reshape(3, 4).astype(dtypes.array_dtype(dtype))
    run = weft.compile(
        weft.parse(
            MOVE.format(dtype=dtype).replace("(4,)", "(3,)").replace("range(4)", "range(3)").replace("3 - i", "2 - i")
        )
    )["main"]
    column, out = whole[:, 1], np.zeros(3, dtypes.array_dtype(dtype))
    run(weft.to_dlpack(column), out)
    np.testing.assert_array_equal(out.view("uint8"), np.ascontiguousarray(column[::-1]).view("uint8"))
    seen = offered_array(weft.to_dlpack(whole))
    assert seen is not None
    seen[0, 0] = 7
    assert whole[0, 0] == 7


def test_a_tensor_of_a_type_that_nobody_has_is_refused() -> None:
    class Odd:
        def __dlpack__(self, **_: Any) -> Any:
            raise ValueError("no such type")

        def __dlpack_device__(self) -> tuple[int, int]:
            return 1, 0

    run = weft.compile(weft.parse(MOVE.format(dtype="bfloat16")))["main"]
    with pytest.raises(weft.ArgumentError, match="no such type") as caught:
        run(Odd(), np.zeros(4, ml_dtypes.bfloat16))
    assert caught.value.code == "W851"
