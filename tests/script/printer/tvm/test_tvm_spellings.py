# ruff: noqa: E501  (scripts inside strings)
"""What `script(spelling=...)` writes for TVM's readers, construct by construct; it reads back as the same module.

With that version of TVM importable, the texts are also read by it (skipped otherwise: it is no dependency).
"""

from __future__ import annotations

import importlib.util
import re

import pytest

import weft
from weft.ir.dim import symbol
from weft.ir.graph import BindingBlock, Call, Function, Op, SeqExpr, Var, VarBinding
from weft.ir.structure.visit import walk
from weft.ir.tensor import AssertStmt
from weft.ir.types import TensorType
from weft.script import parse

SPELLINGS = ("tvm-0.27", "tvm-0.20")
PRIM = "@T.prim_func\ndef f(A: T.Buffer((16,), 'float32'), B: T.Buffer((16,), 'float32')):\n"
GRAPH = "@R.function\ndef main(x: R.Tensor(('n', 4), 'float32')):\n"


def _block(text: str, head: str) -> str:
    return head + "".join(f"    {line}\n" for line in text.splitlines())


def prim(text: str) -> str:
    """A tensor-level function around statements."""
    return _block(text, PRIM)


def graph(text: str) -> str:
    """A graph function around statements."""
    return _block(text, GRAPH)


# name: (script, lines of the newer text, lines of the older text; None for the same)
CASES: dict[str, tuple[str, list[str], list[str] | None]] = {
    "symbolic sizes": (
        "@T.prim_func\ndef f(A: T.Buffer(('n', 4), 'float32'), B: T.Buffer((4,), 'float32')):\n    B[0] = A[0, 0]\n",
        [
            'def f(var_A: T.handle, B: T.Buffer((4,), "float32")):',
            "n = T.int64()",
            'A = T.match_buffer(var_A, (n, 4), "float32")',
        ],
        None,
    ),
    "scalable vectors": (
        prim(
            "B[0 : 4 * T.vscale()] = A[0 : T.vscale() * 4] + T.float32(1)\nx: T.let = A[T.Ramp(0, 2, T.vscale() * 4)]\nB[0 : T.vscale() * 4] = x"
        ),
        [
            "B[T.Ramp(0, 1, T.vscale() * 4)] = A[T.Ramp(0, 1, T.vscale() * 4)] + T.Broadcast(T.float32(1.0), T.vscale() * 4)",
            "x: T.let = A[T.Ramp(0, 2, T.vscale() * 4)]",
        ],
        [
            "B[T.Ramp(0, 1, T.vscale() * 4)] = A[T.Ramp(0, 1, T.vscale() * 4)] + T.Broadcast(T.float32(1.0), T.vscale() * 4)"
        ],
    ),
    "predicates of vectors": (
        prim(
            "B.vstore([T.Ramp(0, 1, 4)], A.vload([T.Ramp(0, 2, 4)], predicate=T.Broadcast(True, 4)), predicate=T.Broadcast(True, 4))"
        ),
        [
            'T.masked_store(B, T.masked_load("float32x4", A, T.Ramp(0, 2, 4), T.Broadcast(True, 4)), T.Ramp(0, 1, 4), T.Broadcast(True, 4))'
        ],
        [
            "B.vstore([T.Ramp(0, 1, 4)], A.vload([T.Ramp(0, 2, 4)], predicate=T.Broadcast(True, 4)), predicate=T.Broadcast(True, 4))"
        ],
    ),
    "device operators": (
        prim(
            "T.ptx_commit_group()\nT.simdgroup_load(A.data, 0, B.data, 8)\nT.evaluate(T.ptx_ldmatrix('float16', False, 4, '.b16', A.data, 8, B.data, 3))"
        ),
        [
            'T.evaluate(T.call_intrin("void", "tirx.ptx.cp_async_commit_group"))',
            'T.evaluate(T.call_intrin("void", "tirx.simdgroup_load", A.data, 0, B.data, 8))',
            'T.evaluate(T.call_intrin("float16", "tirx.ptx_legacy.ldmatrix", False, 4, ".b16", A.data, 8, B.data, 3))',
        ],
        [
            "T.evaluate(T.ptx_commit_group())",
            'T.evaluate(T.call_intrin("void", "tir.simdgroup_load", A.data, 0, B.data, 8))',
            'T.evaluate(T.ptx_ldmatrix("float16", False, 4, ".b16", A.data, 8, B.data, 3))',
        ],
    ),
    "buffers for kernels of the module": (
        "@I.ir_module\nclass M:\n    @T.prim_func\n    def f(A: T.Buffer((4,), 'float32')):\n        M.g(A.data, A)\n\n"
        "    @T.prim_func(private=True)\n    def g(p: T.handle, B: T.Buffer((4,), 'float32')):\n        B[0] = 0.0\n",
        ["T.evaluate(M.g(A.data, A))"],
        None,
    ),
    "symbols of 32 bits": (
        "@T.prim_func\ndef f(A: T.Buffer(('n',), 'float32')):\n    n = T.int32()\n    A[0] = 0.0\n",
        ["n = T.int32()", 'A = T.match_buffer(var_A, (n,), "float32")'],
        None,
    ),
    "typed sizes": (
        "@T.prim_func\ndef f(A: T.Buffer((T.int64(4), 8), 'float32')):\n    for i in range(T.int64(4)):\n        A[i, 0] = 0.0\n",
        ['def f(A: T.Buffer((T.int64(4), 8), "float32")):', "for i in range(T.int64(4)):", "A[i, 0] = T.float32(0.0)"],
        None,
    ),
    "typed regions": (
        "@T.prim_func\ndef f(A: T.Buffer((T.int64(4),), 'float32')):\n    with T.block('b'):\n        T.reads()\n        T.writes(A[0:4])\n        A[0] = 0.0\n",
        ["T.writes(A[T.int64(0):T.int64(4)])"],
        None,
    ),
    "blocks": (
        prim(
            "for i in range(16):\n    with T.block('b'):\n        v = T.axis.spatial(16, i)\n        T.block_attr({'k': 1})\n        B[v] = A[v]"
        ),
        ["@T.prim_func(s_tir=True)", 'with T.sblock("b"):', 'T.sblock_attr({"k": 1})'],
        ["@T.prim_func", 'with T.block("b"):', 'T.block_attr({"k": 1})'],
    ),
    "the dialect of a function without blocks": (
        "@T.prim_func(s_tir=True)\ndef f(A: T.Buffer((16,), 'float32')):\n    A[0] = 0.0\n",
        ["@T.prim_func(s_tir=True)"],
        ["@T.prim_func"],
    ),
    "buffers of the outermost block": (
        prim(
            "C = T.alloc_buffer((16,), 'float32')\nfor i in range(16):\n    with T.block('b'):\n        v = T.axis.spatial(16, i)\n        C[v] = A[v]"
        ),
        ['C = T.sblock_alloc_buffer((16,), "float32")'],
        ['C = T.alloc_buffer((16,), "float32")'],
    ),
    "buffers of a function without blocks": (
        prim("C = T.alloc_buffer((16,), 'float32', scope='local')\nC[0] = A[0]"),
        ['C = T.alloc_buffer((16,), "float32", scope="local")'],
        ['C = T.decl_buffer((16,), "float32", scope="local")'],
    ),
    "statements of a block that allocate": (
        prim("with T.block('b'):\n    C = T.alloc_buffer((1,), 'int32', scope='local', block=False)\n    C[0] = 1"),
        ['C = T.alloc_buffer((1,), "int32", scope="local")'],
        ['C = T.decl_buffer((1,), "int32", scope="local")'],
    ),
    "block variables that start elsewhere": (
        prim(
            "for i in range(8):\n    with T.block('b'):\n        v = T.axis.spatial(8, i + 2, start=2)\n        B[v] = A[v]"
        ),
        ["v = T.axis.spatial((2, 10), i + 2)"],
        None,
    ),
    "loops that start elsewhere": (
        "@T.prim_func\ndef f(A: T.Buffer((16,), 'float32'), m: T.int64):\n    for i in T.serial(2, extent=m):\n        A[i] = 0.0\n",
        ["for i in range(T.int64(2), T.int64(2) + m):"],
        None,
    ),
    "bound variables of expressions": (
        prim("B[0] = T.Let(x * x, where={x: A[0]})"),
        ["x = T.float32()", "B[0] = T.Let(x * x, where={x: A[0]})"],
        None,
    ),
    "bound variables of a second condition": (
        prim("if A[0] > 0.0:\n    B[0] = 1.0\nelif T.Let(x > 1.0, where={x: A[1]}):\n    B[0] = 2.0"),
        ["else:", "x = T.float32()", "if T.Let(x > T.float32(1.0), where={x: A[1]}):"],
        None,
    ),
    "what readers would compute": (
        prim(
            "B[T.Add(T.int32(1), T.int32(2))] = A[0]\nfor i in range(4):\n    B[T.Add(i, 0)] = T.Mul(A[i], T.float32(1))"
        ),
        ["B[T.Add(T.int32(1), T.int32(2))] = A[0]", "B[T.Add(i, T.int32(0))] = T.Mul(A[i], T.float32(1.0))"],
        None,
    ),
    "division of integers": (
        "@T.prim_func\ndef f(A: T.Buffer((16,), 'int64')):\n    A[0] = T.Div(A[1], T.int64(2))\n",
        ["A[0] = T.Div(A[1], T.int64(2))"],
        None,
    ),
    "constants of small integers": (
        "@T.prim_func\ndef f(A: T.Buffer((16,), 'int8')):\n    A[0] = A[1] + T.int8(3)\n",
        ["A[0] = A[1] + T.int8(3)"],
        None,
    ),
    "device intrinsics": (
        prim('T.tvm_storage_sync("shared")\nB[0] = A[0]'),
        ['T.evaluate(T.tvm_storage_sync("shared"))'],
        None,
    ),
    "operators by name": (
        prim('T.evaluate(T.call_intrin("int32", "ptx.bar_sync", 1))'),
        ['T.evaluate(T.call_intrin("int32", "tirx.ptx.bar_sync", 1))'],
        ['T.evaluate(T.call_intrin("int32", "tir.ptx.bar_sync", 1))'],
    ),
    "the data of a buffer": (
        prim('C = T.decl_buffer((4, 4), "float32", data=A.data)\nB[0] = C[0, 0]'),
        ['C = T.decl_buffer((4, 4), "float32", data=A.data)'],
        None,
    ),
    "attributes of nothing": (
        prim('T.attr({"pragma_scope": "seq"})\nB[0] = A[0]'),
        ['with T.attr({"pragma_scope": "seq"}):'],
        ['with T.attr(0, "pragma_scope", "seq"):'],
    ),
    "launched threads": (
        prim('with T.launch_thread("threadIdx.x", 16) as t:\n    B[t] = A[t]'),
        ['with T.launch_thread("threadIdx.x", 16) as t:'],
        None,
    ),
    "bound threads": (
        prim('for t in T.thread_binding(16, thread="threadIdx.x"):\n    B[t] = A[t]'),
        ['for t in T.thread_binding(16, thread="threadIdx.x"):'],
        None,
    ),
    "pointers with an access": (
        prim('T.evaluate(T.call_extern("int32", "use", A.access_ptr("r")))\nB[0] = 0.0'),
        ['T.evaluate(T.call_extern("int32", "use", A.access_ptr("r")))'],
        None,
    ),
    "pointers with an offset": (
        prim(
            'T.evaluate(T.call_extern("int32", "use", A.access_ptr("r", offset=4), B.access_ptr("w", extent=4, offset=T.Cast("int32", A[0]) + 1)))'
        ),
        [
            'T.evaluate(T.call_extern("int32", "use", A.access_ptr("r", offset=4), B.access_ptr("w", extent=4, offset=T.Cast("int32", A[0]) + 1)))'
        ],
        None,
    ),
    "elements among others": (
        "@T.prim_func\ndef f(A: T.Buffer((4, 4), 'float32')):\n    for i in range(T.int64(4)):\n        with T.block('b'):\n"
        "            v = T.axis.spatial(T.int64(4), i)\n            T.reads()\n            T.writes(A[T.int64(0), v])\n            A[T.int64(0), v] = 0.0\n",
        ["T.writes(A[T.int64(0), v])"],
        None,
    ),
    "calls of functions of the module": (
        "@I.ir_module\nclass M:\n    @T.prim_func(private=True)\n    def g(x: T.float32) -> T.float32:\n        return x\n"
        "    @T.prim_func\n    def f(A: T.Buffer((4,), 'float32')):\n        A[0] = M.g(A[1])\n",
        ["A[0] = M.g(A[1])"],
        None,
    ),
    "closures": (
        "@R.function(pure=False)\ndef main(f: R.Callable(derive='d', pure=False), c: R.Any, x: R.Any):\n    y = R.invoke_closure(c, (x,), ty_args=R.Any)\n    return y\n",
        [
            'def main(f: R.Callable(derive_func="d", purity=False), c: R.Any, x: R.Any) -> R.Any:',
            "y: R.Any = R.invoke_closure(c, (x,), ty_args=R.Any())",
        ],
        [
            'def main(f: R.Callable(derive_func="d", purity=False), c: R.Object, x: R.Object) -> R.Object:',
            "y: R.Object = R.invoke_closure(c, (x,), sinfo_args=R.Object())",
        ],
    ),
    "strings": (
        graph("s = R.str('a')\nt = (s, x)\nreturn t"),
        ['def main(x: R.Tensor(("n", 4), "float32")):', 's = R.str("a")', "t = (s, x)"],
        None,
    ),
    "copies and loads of devices": (
        prim(
            "T.ptx_cp_async('float32', A.data, 0, B.data, 4, 16)\nT.s_tir.cp_async_raw('float32', A.data, 0, B.data, 4, 16)\nT.evaluate(T.ptx_ldg32(A[1], True, B[1], 0, dtype='float32'))"
        ),
        [
            'T.evaluate(T.call_intrin("float32", "tirx.s_tir.cp_async_raw", A.data, 0, B.data, 4, 16))',
            'T.evaluate(T.call_intrin("float32", "tirx.s_tir.ldg32", A[1], True, B[1], 0))',
        ],
        [
            'T.evaluate(T.ptx_cp_async("float32", A.data, 0, B.data, 4, 16))',
            'T.evaluate(T.ptx_ldg32("float32", A[1], True, B[1], 0))',
        ],
    ),
    "functions outside with a type": (
        "@R.function(pure=False)\ndef main(x: R.Any):\n    y = R.ExternFunc('f', R.Callable((R.Any,), R.Any, False))(x)\n    return y\n",
        ['y: R.Any = R.ExternFunc("f", R.Callable((R.Any,), R.Any, False))(x)'],
        ['y: R.Object = R.ExternFunc("f", R.Callable((R.Object,), R.Object, False))(x)'],
    ),
    "functions outside as values": (
        "@R.function(pure=False)\ndef main(x: R.Tensor((2,), 'float32')):\n    R.vm.call_tir_dyn('f', (x, x))\n    return x\n",
        ['R.vm.call_tir_dyn(R.ExternFunc("f"), (x, x))'],
        None,
    ),
    "wanted soon": (
        prim("T.prefetch(T.address_of(A[1]), 0, 3, 1)"),
        ['T.evaluate(T.call_intrin("void", "tirx.prefetch", T.address_of(A[1]), 0, 3, 1))'],
        ['T.evaluate(T.call_intrin("void", "tir.prefetch", T.address_of(A[1]), 0, 3, 1))'],
    ),
    "blocks bound to nothing": (
        prim("with T.block('b', no_realize=True):\n    T.reads()\n    T.writes(B[0])\n    B[0] = 0.0"),
        ['with T.sblock("b", no_realize=True):'],
        ['with T.block("b", no_realize=True):'],
    ),
    "bound values": (
        prim("v: T.let = A[0]\nw: T.let = T.float32(2)\nB[0] = v + w"),
        ["v: T.let = A[0]"],
        ["v: T.float32 = A[0]", "w: T.float32 = T.float32(2.0)"],
    ),
    "results": ("@T.prim_func\ndef f(x: T.int32) -> T.int32:\n    return x + 1\n", ["return x + 1"], ["T.ret(x + 1)"]),
    "constants of few bits": (
        "@T.prim_func\ndef f(A: T.Buffer((4,), 'int4')):\n    A[0] = T.int4(3)\n",
        ['A[0] = T.IntImm("int4", 3)'],
        None,
    ),
    "large constants": (
        "@T.prim_func\ndef f(A: T.Buffer((4,), 'float64')):\n    A[0] = T.float64(-1e300)\n",
        ['A[0] = T.FloatImm("float64", -1e+300)'],
        None,
    ),
    "threads of blocks": (
        prim(
            "for t in T.thread_binding(16, thread='threadIdx.x'):\n    with T.block('b'):\n        v = T.axis.spatial(16, t)\n        B[v] = A[v]"
        ),
        ['for t in T.thread_binding(16, thread="threadIdx.x"):'],
        None,
    ),
    "targets": (
        prim('T.func_attr({"target": T.target({"kind": "cuda", "arch": "sm_80"})})\nB[0] = A[0]'),
        ['T.func_attr({"target": T.target({"kind": "cuda", "arch": "sm_80"})})'],
        None,
    ),
    "arrays": (
        graph("y = R.const([[1.5, -0.0], [float('inf'), 2]], 'float32')\nreturn y"),
        ['y: R.Tensor((2, 2), "float32") = R.const([[1.5, -0.0], [float("inf"), 2.0]], "float32")'],
        None,
    ),
    "empty arrays": (
        graph("y = R.const([], 'int32', shape=(2, 0))\nreturn y"),
        ['y: R.Tensor((2, 0), "int32") = R.const([[], []], "int32")'],
        None,
    ),
    "large arrays": (
        graph(f"y = R.const({[0] * 300}, 'int8')\nreturn y"),
        [f'y: R.Tensor((300,), "int8") = R.const({[0] * 300}, "int8")'],
        None,
    ),
    "small floats": (
        graph("y = R.const([1.0, -2.5], 'bfloat16')\nreturn y"),
        ['y: R.Tensor((2,), "bfloat16") = R.const([1.0, -2.5], "bfloat16")'],
        None,
    ),
    "numbers": (
        graph("a = R.prim_value(1.5)\nb = R.prim_value(3)\nc = R.prim_value(n)\nreturn x"),
        [
            'a: R.Prim("float32") = R.prim_value(T.float32(1.5))',
            'b: R.Prim("int64") = R.prim_value(3)',
            'c: R.Prim("int64") = R.prim_value(n)',
        ],
        None,
    ),
    "sizes": (
        graph("y = R.reshape(x, (n * 4,))\nz = R.zeros((min(n, 4), n // 2 + 1), 'float32')\nreturn y"),
        [
            'y: R.Tensor((n * 4,), "float32") = R.reshape(x, R.shape([n * 4]))',
            'z: R.Tensor((T.min(n, 4), n // 2 + 1), "float32") = R.zeros(R.shape([T.min(n, 4), n // 2 + 1]), dtype="float32")',
        ],
        None,
    ),
    "symbols in the order of the signature": (
        "@R.function\ndef main(x: R.Tensor(('n', 'm', 'k'), 'float32')):\n    y = R.reshape(x, (n * m, k))\n    z = R.zeros((k + n, max(m, k)), 'float32')\n    return y\n",
        [
            'y: R.Tensor((n * m, k), "float32") = R.reshape(x, R.shape([n * m, k]))',
            'z: R.Tensor((n + k, T.max(m, k)), "float32") = R.zeros(R.shape([n + k, T.max(m, k)]), dtype="float32")',
        ],
        None,
    ),
    "spread tensors whose place is deduced": (
        "@I.ir_module\nclass M:\n    I.module_global_infos({'mesh': [R.device_mesh((2,), [0, 1])]})\n\n"
        "    @R.function\n    def main(x: R.DTensor((4, 4), 'float32', 'mesh[0]', 'R')):\n        y = R.exp(x)\n        return y\n",
        ['def main(x: R.DTensor((4, 4), "float32", "mesh[0]", "R")):', "y = R.exp(x)"],
        None,
    ),
    "symbols of a match": (
        graph(
            "with R.dataflow():\n    y = R.match_cast(x, R.Tensor(('m', 4), 'float32'))\n    R.output(y)\nz = R.reshape(y, (m * 4,))\nreturn z"
        ),
        ["m = T.int64()", 'z: R.Tensor((m * 4,), "float32") = R.reshape(y, R.shape([m * 4]))'],
        None,
    ),
    "sizes as they were written": (
        graph("y = R.reshape(x, R.shape([2 * n * 2]))\nreturn y"),
        ['y: R.Tensor((n * 4,), "float32") = R.reshape(x, R.shape([2 * n * 2]))'],
        None,
    ),
    "maps of indices": (
        "@R.function\ndef main(x: R.Tensor((4, 8), 'float32')):\n    y = R.layout_transform(x, index_map=lambda i, j: (j, i))\n    return y\n",
        ['y: R.Tensor((8, 4), "float32") = R.layout_transform(x, index_map=T.index_map(lambda i0, i1: (i1, i0)))'],
        None,
    ),
    "devices": (
        graph("y = R.hint_on_device(x, R.cpu(0))\nreturn y"),
        ['y: R.Tensor((n, 4), "float32") = R.hint_on_device(x, dst_vdevice=R.device(1, 0))'],
        None,
    ),
    "tensors as numbers": (
        graph("y = R.full((2,), R.const(1, 'float32'), 'float32')\nreturn y"),
        ['y: R.Tensor((2,), "float32") = R.full(R.shape([2]), R.const(1.0, "float32"), dtype="float32")'],
        None,
    ),
    "an axis": (graph("y = R.flip(x, axis=1)\nreturn y"), ['y: R.Tensor((n, 4), "float32") = R.flip(x, axis=1)'], None),
    "memory": (
        graph("s = R.vm.alloc_storage(R.shape([128]))\nreturn x"),
        ['s: R.Any = R.vm.alloc_storage(R.shape([128]), runtime_device_index=0, dtype="uint8")'],
        ['s: R.Object = R.vm.alloc_storage(R.shape([128]), runtime_device_index=0, dtype="uint8")'],
    ),
    "types of functions": (
        "@R.function\ndef main(g: R.Callable(ret=R.Any, pure=False)):\n    return g\n",
        ["def main(g: R.Callable(ret=R.Any, purity=False)) -> R.Callable(ret=R.Any, purity=False):"],
        ["def main(g: R.Callable(ret=R.Object, purity=False)) -> R.Callable(ret=R.Object, purity=False):"],
    ),
    "functions named like builtins": (
        "@I.ir_module\nclass M:\n    @T.prim_func\n    def max(A: T.Buffer((4,), 'float32')):\n        for i in range(4):\n            A[i] = 0.0\n"
        "    @R.function\n    def main():\n        y = R.call_tir(cls.max, (), out_ty=R.Tensor((4,), 'float32'))\n        return y\n",
        [
            'def max(A: T.Buffer((4,), "float32")):',
            "cls = M",
            'y: R.Tensor((4,), "float32") = R.call_tir(cls.max, R.tuple(), out_ty=R.Tensor((4,), "float32"))',
        ],
        [
            'def max(A: T.Buffer((4,), "float32")):',
            "cls = M",
            'y: R.Tensor((4,), "float32") = R.call_tir(cls.max, R.tuple(), out_sinfo=R.Tensor((4,), "float32"))',
        ],
    ),
    "a class named like a symbol": (
        "@I.ir_module\nclass n:\n    @R.function\n    def main(x: R.Tensor(('n',), 'float32')):\n        return x\n",
        ["class n_:"],
        None,
    ),
}


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines()]


@pytest.mark.parametrize("name", CASES)
def test_a_construct_is_written_as_the_newer_version_reads_it(name: str) -> None:
    script, wanted, _ = CASES[name]
    lines = _lines(parse(script).script(spelling="tvm-0.27"))
    assert [line for line in wanted if line not in lines] == [], "\n".join(lines)


@pytest.mark.parametrize("name", CASES)
def test_a_construct_is_written_as_the_older_version_reads_it(name: str) -> None:
    script, newer, older = CASES[name]
    lines = _lines(parse(script).script(spelling="tvm-0.20"))
    assert [line for line in (newer if older is None else older) if line not in lines] == [], "\n".join(lines)


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("name", CASES)
def test_the_other_spelling_reads_back_as_the_same_module(name: str, spelling: str) -> None:
    module = parse(CASES[name][0])
    text = module.script(spelling=spelling)
    again = parse(text)
    weft.assert_structural_equal(module, again)
    assert again.script(spelling=spelling) == text


def test_a_number_that_fills_a_tensor_is_written_as_the_tensor_that_others_want() -> None:
    text = parse(graph("y = R.full((2,), 1.5, 'float32')\nreturn y")).script(spelling="tvm-0.27")
    assert 'R.full(R.shape([2]), R.const(1.5, "float32"), dtype="float32")' in text


REFUSED = {
    "a name that hides the namespace": (
        "@I.ir_module\nclass M:\n    @T.prim_func(name='T')\n    def t(A: T.Buffer((4,), 'float32')):\n        A[0] = 0.0\n",
        'a function called "T"',
    ),
    "bits of a nan": (graph("y = R.const([2143289345], 'float32', bits=True)\nreturn y"), "a constant of float32"),
    "a number that its dtype does not hold": (prim("A[0] = T.float32(1e300)"), "the float32 constant 1e+300"),
    "logic of numbers": (graph("y = R.logical_not(x)\nreturn y"), "R.logical_not of numbers"),
    "block variables without a value": (
        prim("with T.block('b', no_realize=True):\n    v = T.axis.spatial(16)\n    B[v] = A[v]"),
        "bound to nothing",
    ),
    "external functions of the module": (
        "@I.ir_module\nclass M:\n    e = R.ExternFunc('f')\n    @R.function(pure=False)\n    def main(x: R.Tensor((2,), 'float32')):\n        y = cls.e(x)\n        return y\n",
        "the external function 'e'",
    ),
    "a predicate": (prim("B[0] = A.vload([0], predicate=True)"), "a load from 'A' with a predicate"),
    "a large unsigned number": (
        "@T.prim_func\ndef f(A: T.Buffer((4,), 'uint64')):\n    A[0] = T.uint64(18446744073709551615)\n",
        "the uint64 constant",
    ),
    "symbols where others want numbers": (
        graph("y = R.repeat(x, n, axis=0)\nreturn y"),
        "a symbol as the argument 'repeats' of R.repeat",
    ),
    "sizes for a kernel": (
        "@I.ir_module\nclass M:\n    @T.prim_func\n    def k(A: T.Buffer((4,), 'float32'), n: T.int64):\n"
        "        for i in range(4):\n            A[i] = T.Cast('float32', n)\n"
        "    @R.function\n    def main(x: R.Tensor(('n',), 'float32')):\n"
        "        y = R.call_tir(cls.k, (), out_ty=R.Tensor((4,), 'float32'), tir_vars=R.shape([n]))\n        return y\n",
        "a kernel call with tir_vars",
    ),
    "what only newer versions have": (prim("for i in range(4):\n    if A[i] > 0.0:\n        break"), "`break`"),
    "steps": (prim("for i in range(0, 8, 2):\n    B[i] = A[i]"), "the step of the loop over 'i'"),
    "the kind of an assertion": (prim("assert A[0] > 0.0, ('ValueError', 'm')"), "an assertion that raises ValueError"),
    "parts of a message": (
        prim("assert A[0] > 0.0, ('AssertionError', ['a', 'b'])"),
        "an assertion with a message of parts",
    ),
    "pointers to pointers": (
        "@T.prim_func\ndef f(p: T.handle('handle')):\n    T.evaluate(p)\n",
        "the pointer to pointers 'p'",
    ),
    "a choice between pointers": (
        "@T.prim_func\ndef f(p: T.handle, q: T.handle, n: T.int32):\n    T.evaluate(T.if_then_else(n > 0, p, q))\n",
        "a choice between pointers",
    ),
    "barriers by number": (prim("T.ptx_wait_barrier(0)"), "T.ptx_wait_barrier"),
    "floor division of floats": (prim("B[0] = T.floordiv(A[0], A[1])"), "floordiv of float32"),
    "the type of a string": ("@R.function\ndef main(s: R.Str):\n    return s\n", "the type of a string"),
}


ONLY_OLDER = ("what only newer versions have", "steps", "the kind of an assertion", "parts of a message")


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_form_is_refused_by_name(name: str) -> None:
    script, message = REFUSED[name]
    spelling = "tvm-0.20" if name in ONLY_OLDER else "tvm-0.27"
    with pytest.raises(weft.WeftError, match=re.escape(message)) as caught:
        parse(script).script(spelling=spelling)
    assert caught.value.code == "W116"
    assert spelling in str(caught.value)


def test_the_target_of_a_virtual_device_is_written_as_newer_versions_know_targets() -> None:
    text = "@I.ir_module\nclass M:\n    I.module_global_infos({'vdevice': [I.vdevice('cuda -arch=sm_80 -max_num_threads=64'), I.vdevice('llvm')]})\n"
    text += "\n    @R.function\n    def main(x: R.Tensor((2,), 'float32', 'cuda:0')):\n        return x\n"
    module = parse(text)
    newer = '[I.vdevice({"kind": "cuda", "arch": "sm_80", "max_num_threads": 64}), I.vdevice("llvm")]'
    assert newer in module.script(spelling="tvm-0.27")
    assert '[I.vdevice("cuda -arch=sm_80 -max_num_threads=64"), ' in module.script(spelling="tvm-0.20")


def test_the_type_of_a_string_is_written_where_it_is_an_argument() -> None:
    body = "    y = R.call_packed('f', x, ty_args=[R.Str, R.Any])\n    z = R.match_cast(x, R.Str)\n    return x\n"
    module = parse(f"@R.function(pure=False)\ndef main(x: R.Any):\n{body}")
    text = module.script(spelling="tvm-0.27")
    assert 'y = R.call_packed("f", x, ty_args=[I.StringType(), R.Any])' in text
    assert "z = R.match_cast(x, I.StringType())" in text
    weft.assert_structural_equal(module, parse(text))


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ('"m n"', '"m n"'),
        ('("AssertionError", "m n")', '("AssertionError", ["m n"])'),
        ('("AssertionError", ["m", " n"])', '("AssertionError", ["m", " n"])'),
        ('("ValueError", ["m", " n"])', '("ValueError", ["m", " n"])'),
        ('("ValueError", ["m n"])', '("ValueError", "m n")'),
        ('("ValueError", "m n")', '("ValueError", "m n")'),
        ('("ValueError", [])', '("ValueError", [])'),
    ],
)
def test_the_parts_of_a_message_are_kept(said: str, shown: str) -> None:
    module = parse(prim(f"assert A[0] > 0.0, {said}\nB[0] = A[0]"))
    for text in (module.script(), module.script(spelling="tvm-0.27")):
        assert f"assert A[0] > T.float32(0.0), {shown}" in _lines(text)
        weft.assert_structural_equal(module, parse(text))
    checks = [node for node in walk(module) if isinstance(node, AssertStmt)]
    assert [check.message for check in checks] == ["" if said.endswith("[])") else "m n"]


def test_each_branch_declares_the_sizes_that_it_names() -> None:
    head = "@R.function\ndef main(x: R.Tensor(('n', 4), 'float32'), c: R.Tensor((), 'bool')):\n"
    cast = "        y = R.match_cast(x, R.Tensor(('m', 4), 'float32'))\n        z = R.exp(x)\n"
    module = parse(f"{head}    if c:\n{cast}    else:\n{cast}    return z\n")
    assert _lines(module.script(spelling="tvm-0.27")).count("m = T.int64()") == 2


def test_a_size_that_nothing_declares_is_refused_with_its_binding() -> None:
    x = Var("x", TensorType((4,), "float32"))
    y = Var("y", TensorType((symbol("m"),), "float32"))
    block = BindingBlock((VarBinding(y, Call(Op("exp"), (x,))),))
    function = Function((x,), SeqExpr((block,), y), TensorType((4,), "float32"))
    with pytest.raises(weft.WeftError, match=r"the size 'm', .* \(in the binding of 'y'\)") as caught:
        function.script(spelling="tvm-0.27")
    assert caught.value.code == "W116"


@pytest.mark.skipif(importlib.util.find_spec("tvm") is None, reason="TVM is not installed: it is no dependency")
@pytest.mark.parametrize("name", CASES)
def test_that_version_reads_the_text(name: str) -> None:
    from tvm.script import from_source  # type: ignore[import-not-found]

    text = parse(CASES[name][0]).script(spelling="tvm-0.27")
    again = from_source(text).script()
    assert again


def test_the_memory_that_every_device_has_is_no_part_of_its_name() -> None:
    """TVM writes it out: `llvm:0:global`."""
    text = """
@I.ir_module
class M:
    I.module_global_infos({"vdevice": [I.vdevice("llvm"), I.vdevice("cuda", 0)]})

    @R.function
    def main(x: R.Tensor((4,), "float32", "llvm:0")) -> R.Tensor((4,), "float32", "cuda:0"):
        return R.to_vdevice(x, "cuda:0")
"""
    long = text.replace('"llvm:0"', '"llvm:0:global"').replace('"cuda:0"', '"cuda:0:global"')
    weft.assert_structural_equal(weft.parse(long), weft.parse(text))
    weft.assert_structural_equal(weft.parse(long.replace('x, "', 'x, dst_vdevice="')), weft.parse(text))
