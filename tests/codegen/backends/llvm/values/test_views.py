"""Views of memory and calls of kernels stay inside of the memory that they are given, or end with an error of ours."""

from __future__ import annotations

import numpy as np
import pytest

import weft

_HEAD = "from weft.script import ir as I, relax as R, tir as T\n\n@I.ir_module\nclass M:\n"
_FILL = """
    @T.prim_func
    def fill(B: T.Buffer((%s,), "%s")):
        for i in range(%s):
            B[i] = T.%s(7)
"""


def _guarded(size: int) -> tuple[np.ndarray, np.ndarray]:
    """An array in the middle of zeros, and all of them."""
    whole = np.zeros(4096, "float32")
    return whole[2048 : 2048 + size], whole


def _run(text: str, *scalars: int, size: int = 8) -> np.ndarray:
    """What a kernel writes to an array of zeros; it writes nothing around it."""
    array, whole = _guarded(size)
    try:
        weft.compile(weft.parse(_HEAD + text))["k"](array, *scalars)
    finally:
        assert not whole[:2048].any()
        assert not whole[2048 + size :].any()
    return array


def _view(declared: str, extent: str = "8", dtype: str = "float32", params: str = "") -> str:
    return (
        f'    @T.prim_func\n    def k(A: T.Buffer((8,), "float32"){params}):\n        B = T.decl_buffer({declared})\n'
        f"        for i in range({extent}):\n            B[i] = T.{dtype}(7)\n"
    )


def _call(arg: str, size: int = 8, dtype: str = "float32") -> str:
    caller = f'    @T.prim_func\n    def k(A: T.Buffer((8,), "float32")):\n        M.fill({arg})\n'
    return _FILL % (size, dtype, size, dtype) + caller


@pytest.mark.parametrize(
    ("text", "scalars"),
    [
        (_view('(64,), "float32", data=A.data', "64"), ()),
        (_view('(8,), "float32", data=A.data, elem_offset=100'), ()),
        (_view('(8,), "float32", data=A.data, elem_offset=1'), ()),
        (_view('(8,), "float32", data=A.data, strides=(1000,)'), ()),
        (_view('(8,), "float64", data=A.data', dtype="float64"), ()),
        (_view('(n,), "float32", data=A.data', "n", params=", n: T.int64"), (64,)),
        (_view('(8,), "float32", data=A.data, elem_offset=n', params=", n: T.int64"), (-4,)),
        (_view('(8,), "float32", data=A.data, elem_offset=n', params=", n: T.int64"), (2**62,)),
        (_view('(8,), "float32", data=T.address_of(A[4])'), ()),
        (_call("A.data", 64), ()),
        (_call("A", 64), ()),
        (_call("A", 8, "float64"), ()),
        (_call("T.address_of(A[4])"), ()),
    ],
)
def test_what_looks_past_its_memory_is_an_error(text: str, scalars: tuple[int, ...]) -> None:
    with pytest.raises((weft.BoundsError, weft.VerifyError), match=r"the buffer 'B' lies outside of its memory, 'A'"):
        _run(text, *scalars)


@pytest.mark.parametrize(
    ("text", "scalars", "wanted"),
    [
        (_view('(8,), "float32", data=A.data'), (), [7.0] * 8),
        (_view('(4,), "float32", data=A.data, elem_offset=2', "4"), (), [0, 0, 7, 7, 7, 7, 0, 0]),
        (_view('(4,), "float32", data=A.data, strides=(2,)', "4"), (), [7, 0, 7, 0, 7, 0, 7, 0]),
        (_view('(n,), "float32", data=A.data', "n", params=", n: T.int64"), (3,), [7, 7, 7, 0, 0, 0, 0, 0]),
        (_call("T.address_of(A[4])", 4), (), [0, 0, 0, 0, 7, 7, 7, 7]),
    ],
)
def test_what_stays_inside_runs(text: str, scalars: tuple[int, ...], wanted: list[float]) -> None:
    assert _run(text, *scalars).tolist() == wanted


def test_a_kernel_takes_sizes_from_its_arguments_and_must_find_them_in_all() -> None:
    callee = """
    @T.prim_func
    def copy(X: T.Buffer(("n",), "float32"), B: T.Buffer(("n",), "float32")):
        for i in range(n):
            B[i] = X[i]
"""
    caller = """
    @T.prim_func
    def k(A: T.Buffer((8,), "float32")):
        S = T.alloc_buffer((1000,), "float32")
        for i in range(1000):
            S[i] = T.float32(7)
        M.copy(S, A)
"""
    with pytest.raises((weft.BoundsError, weft.VerifyError), match=r"the buffer 'B' lies outside of its memory, 'A'"):
        _run(callee + caller)


def test_strides_and_offsets_of_parameters_are_held_against_the_array_that_came() -> None:
    template = """
    @T.prim_func
    def k(a: T.handle):
        s = T.int64()
        A = T.match_buffer(a, (4, 4), "float32", {layout})
        for i, j in T.grid(4, 4):
            A[i, j] = T.float32(7)
"""
    array, whole = _guarded(16)
    for layout in ("strides=(1000, 1)", "strides=(s, s)", "strides=(s, 4)"):
        with pytest.raises(weft.ArgumentError, match="expected strides") as caught:
            weft.compile(weft.parse(_HEAD + template.format(layout=layout)))["k"](array.reshape(4, 4))
        assert caught.value.code == "W852"
        assert not whole.any()
    for layout in ("strides=(4, 1)", "strides=(s, 1)", "elem_offset=100"):
        array[:] = 0
        weft.compile(weft.parse(_HEAD + template.format(layout=layout)))["k"](array.reshape(4, 4))
        assert array.tolist() == [7.0] * 16
        assert np.count_nonzero(whole) == 16


def test_the_strides_of_a_matched_region_are_those_of_its_source() -> None:
    text = """
    @T.prim_func
    def k(A: T.Buffer((8, 8), "float32")):
        for i in range(1):
            with T.block("b"):
                B = T.match_buffer(A[0:4, 0:4], (4, 4), "float32", strides=({stride}, 1))
                for r, c in T.grid(4, 4):
                    B[r, c] = T.float32(7)
"""
    array = np.zeros((8, 8), "float32")
    with pytest.raises(weft.VerifyError, match=r"the strides of the buffer 'B' are not those of its region"):
        weft.compile(weft.parse(_HEAD + text.format(stride=1000)))["k"](array)
    weft.compile(weft.parse(_HEAD + text.format(stride=8)))["k"](array)
    assert np.count_nonzero(array) == 16


_POINTERS = [
    "T.if_then_else(p[0] > 0, A.data, A.data)",
    "T.Select(p[0] > 0, A.data, p.data)",
    'T.reinterpret("handle", p[0])',
    'T.Cast("handle", p[0])',
    'T.reinterpret("handle", T.reinterpret("int64", A.data))',
    "T.handle_add_byte_offset(A.data, 1)",
    "T.handle_add_byte_offset(A.data, p[0])",
]
_LOOK = """
    @T.prim_func
    def look(h: T.handle):
        B = T.decl_buffer((4,), "float32", data=h)
        B[0] = T.float32(7)

    @T.prim_func
    def k(A: T.Buffer((8,), "float32"), p: T.Buffer((1,), "int64")):
        A[0] = A[0]
        %s
"""


@pytest.mark.parametrize("pointer", _POINTERS)
@pytest.mark.parametrize("use", ["h: T.handle = {}\n        M.look(h)", "M.look({})", "B = {}"])
def test_nothing_looks_behind_a_pointer_of_which_nobody_knows_the_memory(pointer: str, use: str) -> None:
    view = f'T.decl_buffer((4,), "float32", data={pointer})\n        B[3] = 1.0'
    line = use.format(view if use[0] == "B" else pointer)
    with pytest.raises(weft.VerifyError) as caught:
        weft.compile(weft.parse(_HEAD + _LOOK % line))
    assert caught.value.code == "W478"


def test_a_number_is_no_pointer() -> None:
    for argument in ("0", "p[0]", "T.int64(4096)"):
        with pytest.raises(weft.VerifyError) as caught:
            weft.compile(weft.parse(_HEAD + _LOOK % f"M.look({argument})"))
        assert caught.value.code == "W463"


@pytest.mark.parametrize(
    ("pointer", "first"),
    [
        ("A.data", 0),
        ("T.address_of(A[2])", 2),
        ('A.access_ptr("rw", offset=3)', 3),
        ("T.handle_add_byte_offset(A.data, 16)", 4),
        ('T.access_ptr(T.address_of(A[1]), "rw", 2)', 3),
    ],
)
@pytest.mark.parametrize("use", ["{}", "h"])
def test_pointers_under_other_names_are_followed(pointer: str, first: int, use: str) -> None:
    text = f"""
    @T.prim_func
    def k(A: T.Buffer((8,), "float32"), n: T.int64):
        A[7] = A[7]
        h: T.handle = {pointer}
        B = T.decl_buffer((n,), "float32", data={use.format(pointer)})
        for i in range(n):
            B[i] = T.float32(7)
"""
    room = 8 - first
    assert _run(text, room).tolist() == [0.0] * first + [7.0] * room
    with pytest.raises(weft.BoundsError, match="lies outside of its memory"):
        _run(text, room + 1)


def test_sizes_that_a_call_gives_and_those_of_the_memory_are_compared() -> None:
    callee = """
    @T.prim_func
    def fill(h: T.handle, n: T.int64):
        B = T.match_buffer(h, (n,), "float32")
        for i in range(n):
            B[i] = T.float32(7)
"""
    caller = """
    @T.prim_func
    def k(A: T.Buffer((8,), "float32"), n: T.int64):
        A[7] = A[7]
        M.fill(A.data, n)
"""
    assert _run(callee + caller, 5).tolist() == [7.0] * 5 + [0.0] * 3
    for n in (9, 2**40, -1, -(2**62)):
        with pytest.raises(weft.BoundsError, match="the buffer 'B' lies outside of its memory, 'A'"):
            _run(callee + caller, n)
