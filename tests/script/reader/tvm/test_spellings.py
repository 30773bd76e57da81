# ruff: noqa: E501  (scripts inside strings)
"""Both generations of spelling, and Python conveniences, read as what they mean."""

from __future__ import annotations

import pytest
from tests.script.reading import check

import weft
from weft.ir import AllocBuffer, AttrStmt, Block, Buffer, For, IRModule, PrimFunc, walk


def same(left: str, right: str) -> None:
    """Two texts that mean the same."""
    weft.assert_structural_equal(check(left), check(right))


GRAPH = '@R.function\ndef main(x: R.Tensor(("n", 4), "float32")):\n'
PRIM = '@T.prim_func\ndef f(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):\n'

PAIRS = {
    "out_sinfo": (
        GRAPH + '    y = R.call_dps_packed("f", (x,), out_sinfo=R.Tensor((n, 4), "float32"))\n    return y\n',
        GRAPH + '    y = R.call_dps_packed("f", (x,), out_ty=R.Tensor((n, 4), "float32"))\n    return y\n',
    ),
    "bare argument": (
        GRAPH + '    y = R.call_dps_packed("f", x, R.Tensor((n, 4), "float32"))\n    return y\n',
        GRAPH + '    y = R.call_dps_packed("f", (x,), out_ty=R.Tensor((n, 4), "float32"))\n    return y\n',
    ),
    "sinfo_args": (
        GRAPH + '    y = R.call_pure_packed("f", x, sinfo_args=(R.Tensor((n, 4), "float32"),))\n    return y\n',
        GRAPH + '    y = R.call_pure_packed("f", x, ty_args=R.Tensor((n, 4), "float32"))\n    return y\n',
    ),
    "object": (
        "@R.function\ndef main(x: R.Object):\n    return x\n",
        "@R.function\ndef main(x: R.Any):\n    return x\n",
    ),
    "string type": (
        "@R.function\ndef main(x: I.StringType()):\n    return x\n",
        "@R.function\ndef main(x: R.Str):\n    return x\n",
    ),
    "scalar parameter": (
        "@R.function\ndef main(x: T.int64):\n    return x\n",
        '@R.function\ndef main(x: R.Prim("int64")):\n    return x\n',
    ),
    "list of types": (
        "@R.function\ndef main(x: R.Tuple([R.Any, R.Str])):\n    return x\n",
        "@R.function\ndef main(x: R.Tuple(R.Any, R.Str)):\n    return x\n",
    ),
    "dtype first": (
        '@R.function\ndef main(x: R.Tensor("float32", ndim=2)):\n    return x\n',
        '@R.function\ndef main(x: R.Tensor(dtype="float32", ndim=2)):\n    return x\n',
    ),
    "purity": (
        "@R.function\ndef main(x: R.Callable((R.Any,), R.Any, purity=False)):\n    return x\n",
        "@R.function\ndef main(x: R.Callable((R.Any,), R.Any, False)):\n    return x\n",
    ),
    "type variable": (
        'from typing import TypeVar\nn = TypeVar("n")\n@R.function\ndef main(x: R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32"):\n    return x\n',
        '@R.function\ndef main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):\n    return x\n',
    ),
    "declared symbol": (
        "n = T.int64()\n" + GRAPH.replace('"n"', "n") + "    n = T.int64()\n    return R.reshape(x, (4, n))\n",
        GRAPH + "    return R.reshape(x, (4, n))\n",
    ),
    "strings in shapes": (
        GRAPH + '    return R.shape(["n", "2 * n + 1"])\n',
        GRAPH + "    return R.shape([n, 2 * n + 1])\n",
    ),
    "typed dimensions": (
        '@R.function\ndef main(x: R.Tensor((T.int64(4),), "int8")):\n    return x\n',
        '@R.function\ndef main(x: R.Tensor((4,), "int8")):\n    return x\n',
    ),
    "emitted twice": (
        GRAPH + "    return R.add(R.exp(x), x)\n",
        GRAPH + "    a = R.exp(x)\n    b = R.add(a, x)\n    return b\n",
    ),
    "augmented": (GRAPH + "    y = x\n    y += x\n    return y\n", GRAPH + "    y = x\n    z = y + x\n    return z\n"),
    "static loop": (
        GRAPH + "    for i in range(2):\n        x = x + float(i)\n    return x\n",
        GRAPH + "    a = x + 0.0\n    b = a + 1.0\n    return b\n",
    ),
    "unpacking": (
        GRAPH + "    a, b = R.split(x, 2, axis=1)\n    return a\n",
        GRAPH + "    t = R.split(x, 2, axis=1)\n    a = t[0]\n    b = t[1]\n    return a\n",
    ),
    "attributes of a tensor": (
        GRAPH + "    return R.zeros((x.shape[1], x.ndim), x.dtype)\n",
        GRAPH + '    return R.zeros((4, 2), "float32")\n',
    ),
    "docstring": (GRAPH + '    """Words."""\n    return x\n', GRAPH + "    return x\n"),
    "module prelude": (
        "from weft.script import ir as I, relax as R, tir as T\nfrom tvm.script import relax as Q\nimport weft\n"
        + GRAPH.replace("R.", "Q.")
        + "    return x\n",
        GRAPH + "    return x\n",
    ),
    "tirx": (PRIM.replace("T.", "tirx.") + "    A[0] = tirx.exp(B[0])\n", PRIM + "    A[0] = T.exp(B[0])\n"),
    "sblock": (
        PRIM
        + '    for i in range(16):\n        with T.sblock("b"):\n            vi = T.axis.S(16, i)\n            T.sblock_attr({"a": 1})\n            B[vi] = A[vi]\n',
        PRIM
        + '    for i in range(16):\n        with T.block("b"):\n            vi = T.axis.spatial(16, i)\n            T.block_attr({"a": 1})\n            B[vi] = A[vi]\n',
    ),
    "sblock_alloc_buffer": (
        PRIM
        + '    with T.block("b"):\n        C = T.sblock_alloc_buffer((16,), dtype="float32")\n        B[0] = C[0]\n',
        PRIM + '    with T.block("b"):\n        C = T.alloc_buffer((16,), "float32")\n        B[0] = C[0]\n',
    ),
    "allocate": (
        PRIM + '    C = T.allocate([16], "float32", "local")\n    C[0] = A[0]\n',
        PRIM + '    C = T.alloc_buffer((16,), "float32", scope="local")\n    C[0] = A[0]\n',
    ),
    "alloc_local": (
        PRIM + '    C = T.alloc_local((4,), "int8")\n    T.evaluate(C[0])\n',
        PRIM + '    C = T.alloc_buffer((4,), "int8", scope="local")\n    T.evaluate(C[0])\n',
    ),
    "match_buffer": (
        "@T.prim_func\ndef f(a: T.handle, n: T.int32):\n    A = T.match_buffer(a, [n, 4])\n    A[0, 0] = T.float32(0)\n",
        '@T.prim_func\ndef f(A: T.Buffer(("n", 4), "float32"), n: T.int32):\n    A[0, 0] = T.float32(0)\n',
    ),
    "literal into a buffer": (PRIM + "    A[0] = 1\n", PRIM + "    A[0] = T.float32(1)\n"),
    "integer into a float buffer": (
        PRIM + "    for i in range(16):\n        A[i] = i\n",
        PRIM + '    for i in range(16):\n        A[i] = T.Cast("float32", i)\n',
    ),
    "cast orders": (
        PRIM + '    for i in range(16):\n        A[i] = T.cast(i, "float32")\n',
        PRIM + "    for i in range(16):\n        A[i] = T.float32(i)\n",
    ),
    "let statement": (
        PRIM + "    with T.LetStmt(A[0]) as v:\n        B[0] = v\n",
        PRIM + "    v: T.let = A[0]\n    B[0] = v\n",
    ),
    "one assignment": (
        PRIM + "    v = A[0] + A[1]\n    B[0] = v\n",
        PRIM + "    v: T.let = A[0] + A[1]\n    B[0] = v\n",
    ),
    "typed let": (
        PRIM + "    v: T.let[T.int64] = 3\n    T.evaluate(v)\n",
        PRIM + "    v: T.let = T.int64(3)\n    T.evaluate(v)\n",
    ),
    "ret": (
        "@T.prim_func\ndef f(a: T.int32) -> T.int32:\n    T.ret(a)\n",
        "@T.prim_func\ndef f(a: T.int32) -> T.int32:\n    return a\n",
    ),
    "launch with": (
        PRIM + '    with T.launch_thread("threadIdx.x", 16) as t:\n        B[t] = A[t]\n',
        PRIM + '    for t in T.thread_binding(16, thread="threadIdx.x"):\n        B[t] = A[t]\n',
    ),
    "env thread": (
        PRIM + '    t = T.env_thread("threadIdx.x")\n    with T.launch_thread(t, 16):\n        B[t] = A[t]\n',
        PRIM + '    for t in T.thread_binding(16, thread="threadIdx.x"):\n        B[t] = A[t]\n',
    ),
    "launch statement": (
        PRIM + '    t = T.launch_thread("threadIdx.x", 16)\n    B[t] = A[t]\n',
        PRIM + '    for t in T.thread_binding(16, thread="threadIdx.x"):\n        B[t] = A[t]\n',
    ),
    "compile-time if": (
        PRIM + "    if 2 > 1:\n        B[0] = A[0]\n    else:\n        B[0] = A[1]\n",
        PRIM + "    B[0] = A[0]\n",
    ),
    "python functions": (
        PRIM + "    B[0] = max(A[0], A[1], A[2])\n",
        PRIM + "    B[0] = T.max(T.max(A[0], A[1]), A[2])\n",
    ),
    "ternary": (
        PRIM + "    B[0] = A[0] if A[1] > 0.0 else 0.0\n",
        PRIM + "    B[0] = T.if_then_else(A[1] > T.float32(0), A[0], T.float32(0))\n",
    ),
    "vload": (PRIM + '    B.vstore([0], A.vload([4], "float32x4"))\n', PRIM + "    B[0:4] = A[4:8]\n"),
    "regions as lists": (
        PRIM + '    with T.block("b"):\n        T.reads([A[0], A[1:3]])\n        T.writes([])\n        B[0] = A[0]\n',
        PRIM + '    with T.block("b"):\n        T.reads(A[0], A[1:3])\n        T.writes()\n        B[0] = A[0]\n',
    ),
    "whole buffers": (
        PRIM + '    with T.block("b"):\n        T.reads(A)\n        B[0] = A[0]\n',
        PRIM + '    with T.block("b"):\n        T.reads(A[0:16])\n        B[0] = A[0]\n',
    ),
    "root block comment": (PRIM + '    # with T.block("root"):\n    B[0] = A[0]\n', PRIM + "    B[0] = A[0]\n"),
    "options of decorators": (
        "@T.prim_func(private=True, s_tir=True, check_well_formed=False)\ndef f(a: T.int32):\n    T.evaluate(a)\n",
        "@T.prim_func(private=True)\ndef f(a: T.int32):\n    T.evaluate(a)\n",
    ),
    "limits": (PRIM + '    A[0] = T.max_value("float32")\n', PRIM + "    A[0] = T.float32(3.4028234663852886e+38)\n"),
    "static unpacking": (PRIM + "    a, b = 1, 2\n    A[a] = B[b]\n", PRIM + "    A[1] = B[2]\n"),
    "spread indices": (PRIM + "    i = (3,)\n    A[*i] = B[0]\n", PRIM + "    A[3] = B[0]\n"),
    "many bindings": (
        PRIM + "    a, b = A[0], A[1]\n    B[0] = a + b\n",
        PRIM + "    a: T.let = A[0]\n    b: T.let = A[1]\n    B[0] = a + b\n",
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_two_spellings_mean_the_same(name: str) -> None:
    same(*PAIRS[name])


def test_a_name_assigned_again_is_a_local_scalar() -> None:
    function = check(PRIM + "    s = T.float32(0)\n    for i in range(16):\n        s = s + A[i]\n    B[0] = s\n")
    assert [type(node) for node in walk(function) if isinstance(node, AllocBuffer)] == [AllocBuffer]


def test_a_handle_that_no_buffer_matches_stays_a_pointer() -> None:
    function = check(
        "@T.prim_func\ndef f(a: T.handle, b: T.handle):\n    B = T.match_buffer(b, (4,))\n    T.evaluate(a)\n"
    )
    assert isinstance(function, PrimFunc)
    assert [type(param).__name__ for param in function.params] == ["PrimVar", "Buffer"]


def test_allocations_belong_to_the_block_they_stand_in() -> None:
    function = check(
        PRIM + '    with T.block("b"):\n        C = T.alloc_buffer((16,), "float32")\n        B[0] = C[0]\n'
    )
    blocks = [node for node in walk(function) if isinstance(node, Block)]
    assert [buffer.name for buffer in blocks[0].alloc_buffers] == ["C"]
    assert all(isinstance(buffer, Buffer) for buffer in blocks[0].alloc_buffers)


def test_loop_variables_take_the_dtype_of_their_range() -> None:
    function = check(
        '@T.prim_func\ndef f(A: T.Buffer(("n",), "float32")):\n    for i in range(n):\n        for j in range(4):\n            A[i] = A[j]\n'
    )
    dtypes = [node.loop_var.dtype for node in walk(function) if isinstance(node, For)]
    assert dtypes == ["int64", "int32"]


PEER = """
# from tvm.script import ir as I
# from tvm.script import tir as T
# from tvm.script import relax as R

@I.ir_module
class Module:
    @T.prim_func(private=True)
    def add(var_x: T.handle, var_y: T.handle, var_T_add: T.handle):
        T.func_attr({"tir.noalias": T.bool(True)})
        n = T.int64()
        x = T.match_buffer(var_x, (n, T.int64(4)))
        y = T.match_buffer(var_y, (n, T.int64(4)))
        T_add = T.match_buffer(var_T_add, (n, T.int64(4)))
        # with T.block("root"):
        for ax0, ax1 in T.grid(n, T.int64(4)):
            with T.block("T_add"):
                v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
                T.reads(x[v_ax0, v_ax1], y[v_ax0, v_ax1])
                T.writes(T_add[v_ax0, v_ax1])
                T_add[v_ax0, v_ax1] = x[v_ax0, v_ax1] + y[v_ax0, v_ax1]

    @R.function
    def main(x: R.Tensor(("n", 4), dtype="float32"), y: R.Tensor(("n", 4), dtype="float32")) -> R.Tensor(("n", 4), dtype="float32"):
        n = T.int64()
        R.func_attr({"num_input": 1})
        cls = Module
        with R.dataflow():
            lv = R.call_tir(cls.add, (x, y), out_sinfo=R.Tensor((n, 4), dtype="float32"))
            gv: R.Tensor((n, 4), dtype="float32") = R.add(lv, y)
            R.output(gv)
        return gv
"""


def test_a_module_as_the_peer_prints_it_reads() -> None:
    module = check(PEER)
    assert isinstance(module, IRModule)
    assert list(module) == ["add", "main"]
    assert module["main"].attrs["num_input"] == 1  # type: ignore[union-attr]


_KERNEL = "@T.prim_func\ndef f(A: T.Buffer((4, 8), 'float32'), B: T.Buffer((32,), 'float32')):\n"


def _body(text: str) -> str:
    return _KERNEL + "".join(f"    {line}\n" for line in text.splitlines())


@pytest.mark.parametrize(
    "body",
    [
        "flat = A.view(32)\nfor i in range(32):\n    B[i] = flat[i]",
        'bits = A.view("int32")\nfor i, j in T.grid(4, 8):\n    B[i * 8 + j] = T.reinterpret("float32", bits[i, j])',
        'T.attr({"pragma_scope": "fast", "level": 3})\nfor i in range(32):\n    B[i] = 0.0',
        'T.func_attr({"target": T.target({"kind": "cuda", "arch": "sm_80", "keys": ["gpu"]})})\nB[0] = 0.0',
        'T.func_attr({"target": T.target("cuda", host="llvm")})\nB[0] = 0.0',
    ],
)
def test_a_construct_of_lowered_kernels_reads_and_reads_back(body: str) -> None:
    function = weft.parse(_body(body))
    again = weft.parse(function.script())
    assert weft.structural_equal(function, again)


def test_attributes_written_as_a_dictionary_hold_for_the_rest_of_the_block() -> None:
    function = weft.parse(_body('T.attr({"a": 1, "b": 2})\nB[0] = 0.0'))
    assert [(node.key, node.value) for node in walk(function) if isinstance(node, AttrStmt)] == [("a", 1), ("b", 2)]


def test_a_misspelt_target_of_weft_is_still_an_error() -> None:
    with pytest.raises(weft.WeftError, match="unknown"):
        weft.parse(_body('T.func_attr({"target": T.target("lvm")})\nB[0] = 0.0'))


@pytest.mark.parametrize("text", ["nan", "inf", "-inf"])
def test_a_float_constant_can_be_written_as_its_name(text: str) -> None:
    function = weft.parse(
        f"@R.function\ndef f() -> R.Tensor((), 'float32'):\n    return R.const('{text}', 'float32')\n"
    )
    assert weft.structural_equal(function, weft.parse(function.script()))
    assert f'float("{text}")' in function.script()


def test_the_peer_spelling_declares_what_other_readers_want_declared() -> None:
    module = weft.parse(
        "@I.ir_module\nclass M:\n"
        "    @T.prim_func\n    def k(A: T.Buffer((4,), 'float32'), B: T.Buffer((4,), 'float32')):\n"
        "        for i in range(4):\n            with T.block('b'):\n                vi = T.axis.spatial(4, i)\n"
        "                B[vi] = A[vi]\n"
        "    @R.function\n    def main(x: R.Tensor(ndim=1, dtype='float32'), s: R.Tensor((4,), 'float32')):\n"
        "        y = R.match_cast(x, R.Tensor(('m',), 'float32'))\n"
        "        z = R.call_tir(cls.k, (s,), out_ty=R.Tensor((4,), 'float32'))\n        return (y, z)\n"
    )
    text = module.script(spelling="tvm-0.27")
    assert "@T.prim_func(s_tir=True)" in text
    assert "cls = M\n" in text
    assert "m = T.int64()\n" in text
    weft.assert_structural_equal(module, weft.parse(text))
