# ruff: noqa: E501  (scripts inside strings and inside decorated functions)
"""Every construct of the script: text reads as a node, the node prints, the print reads back equal and prints the same."""

from __future__ import annotations

import numpy as np
import pytest
from tests.script.reading import check

import weft
from weft.dtypes import storage as storage_of
from weft.ir import Constant, Function, IRModule, PrimFunc, structural_equal
from weft.ir.dim import symbol
from weft.ir.tensor import Block, Buffer, BufferStore, FloatImm, For, IterVar, PrimVar
from weft.script import parse, script_of


def graph(body: str, params: str = 'x: R.Tensor((2, 3), "float32")', result: str = "", options: str = "") -> str:
    """A graph function around some statements."""
    lines = "\n".join(f"    {line}" for line in body.strip("\n").split("\n"))
    return f"@R.function{options}\ndef main({params}){result}:\n{lines}\n"


def prim(
    body: str, params: str = 'A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")', result: str = ""
) -> str:
    """A tensor-level function around some statements."""
    lines = "\n".join(f"    {line}" for line in body.strip("\n").split("\n"))
    return f"@T.prim_func\ndef f({params}){result}:\n{lines}\n"


TYPES = [
    'R.Tensor((2, 3), "float32")',
    'R.Tensor(("n", 4), "float32")',
    'R.Tensor(("n * 2 + 1", "n"), "int8")',
    'R.Tensor(("n // 2 % 3", "min(n, 8)", "n"), "int8")',
    'R.Tensor((), "bool")',
    'R.Tensor((1,), "bfloat16")',
    'R.Tensor(dtype="float32", ndim=2)',
    "R.Tensor(ndim=3)",
    "R.Tensor",
    'R.Tensor(dtype="float32")',
    "R.Tensor((2, 3))",
    'R.Tensor((2, 3), "float32", vdevice="llvm:0")',
    'R.Tensor((2,), "float32", vdevice=I.vdevice({"kind": "llvm"}, 1, "global"))',
    "R.Shape",
    "R.Shape([2, 3])",
    'R.Shape(["n", 3])',
    "R.Shape(ndim=2)",
    'R.Prim("int64")',
    'R.Tuple(R.Tensor((2,), "float32"), R.Prim("int64"))',
    "R.Tuple()",
    "R.Any",
    "R.Str",
    'R.Callable((R.Tensor((2,), "float32"),), R.Tensor((2,), "float32"), True)',
    "R.Callable((), R.Any, False)",
    "R.Callable(ret=R.Any, pure=False)",
    'R.Callable(ret=R.Any, pure=True, derive="shape.rule")',
]


@pytest.mark.parametrize("ty", TYPES)
def test_a_type_reads_back(ty: str) -> None:
    function = check(graph("return p", f"p: {ty}"))
    assert isinstance(function, Function)
    assert structural_equal(function.params[0].ty, function.ret_type)


GRAPH = {
    "nested calls": "return R.add(R.exp(x), R.multiply(x, x))",
    "operators": "y = x + x * x - x / x\nz = -y\nreturn z",
    "comparisons": "a = x < x\nb = x >= x\nc = x == x\nreturn (a, b, c)",
    "python scalars": "y = 2 * x + 1.5\nreturn y",
    "constants": 'y = R.add(x, R.const(1.5, "float32"))\nreturn y',
    "constant nan": 'c = R.const([float("nan"), float("inf"), float("-inf"), -0.0], "float32")\nreturn c',
    "constant bits": 'c = R.const([16256, 65535], "bfloat16", bits=True)\nreturn c',
    "constant nan payload": 'c = R.const([2143289345, 4290772992], "float32", bits=True)\nreturn c',
    "empty constant": 'c = R.const([], "int64", shape=(0, 3))\nreturn c',
    "complex constants": 'c = R.const([1j, complex(-0.0, float("inf"))], "complex64")\ny = c * (2 - 1j)\nreturn y',
    "scalar constant": 'c = R.const(True, "bool")\nreturn c',
    "tuples": "t = (x, (x, x))\ny = t[1]\nz = y[0]\nreturn (z, t)",
    "empty tuple": "return R.tuple()",
    "leaves": 's = R.shape([2, 3])\np = R.prim_value(3)\nq = R.str("a\\"b\\n")\nd = R.dtype("float16")\nreturn (s, p, q, d)',
    "prim values": "a = R.prim_value(True)\nb = R.prim_value(1.5)\nc = R.prim_value(T.int32(7))\nd = R.prim_value(T.float64(0.1))\nreturn (a, b, c, d)",
    "dataflow": "with R.dataflow():\n    a = R.exp(x)\n    b = R.exp(a)\n    R.output(b)\nreturn b",
    "two dataflow blocks": "with R.dataflow():\n    a = R.exp(x)\n    R.output(a)\nwith R.dataflow():\n    b = R.exp(a)\n    R.output(b)\nreturn b",
    "several outputs": "with R.dataflow():\n    a = R.exp(x)\n    b = R.exp(a)\n    R.output(b, a)\nreturn (a, b)",
    "mixed blocks": "a = R.exp(x)\nwith R.dataflow():\n    b = R.exp(a)\n    R.output(b)\nc = R.exp(b)\nreturn c",
    "blocks apart": "a = R.exp(x)\nwith R.bindings():\n    b = R.exp(a)\nreturn b",
    "match_cast": 'y = R.match_cast(x, R.Tensor(("m", 3), "float32"))\nz: R.Tensor((m, 3), "float32") = R.exp(y)\nreturn z',
    "weaker match_cast": 'y: R.Tensor(dtype="float32", ndim=2) = R.match_cast(x, R.Tensor((2, 3), "float32"))\nreturn y',
    "match_cast inside": 'y = R.exp(R.match_cast(x, R.Tensor(("m", 3), "float32")))\nreturn y',
    "declared symbol": 'm = T.int64()\ny = R.match_cast(x, R.Tensor((m, 3), "float32"))\nreturn y',
    "annotation": 'y: R.Tensor((2, 3), "float32") = R.exp(x)\nreturn y',
    "weaker annotation": 'y: R.Tensor(dtype="float32", ndim=2) = R.exp(x)\nreturn y',
    "func_attr": 'R.func_attr({"num_input": 1, "names": ["a", "b"], "nested": {"k": None, "f": 0.5, "t": True}})\nreturn x',
    "call_packed": 'R.is_impure()\ny = R.call_packed("my.f", x, ty_args=R.Tensor((2, 3), "float32"))\nreturn y',
    "call_pure_packed": 'y = R.call_pure_packed("my.f", x, ty_args=R.Tensor((2, 3), "float32"))\nreturn y',
    "call_dps_packed": 'y = R.call_dps_packed("my.f", (x,), out_ty=R.Tensor((2, 3), "float32"))\nreturn y',
    "call_dps_packed tuple": (
        'y = R.call_dps_packed("my.f", (x,), out_ty=[R.Tensor((2, 3), "float32"), R.Tensor((3,), "int32")])\nreturn y[1]'
    ),
    "extern": 'R.is_impure()\nf = R.ExternFunc("my.f")\ny = R.call_packed(f, x, ty_args=R.Tensor((2, 3), "float32"))\nreturn y',
    "same name": "x = R.exp(x)\nx = R.exp(x)\nreturn x",
    "augmented": "y = R.exp(x)\ny += x\ny *= 2.0\nreturn y",
    "static values": "k = 2\nsizes = (k + 1, k)\ny = R.reshape(x, sizes)\nreturn y",
    "shape attributes": "y = R.reshape(x, (x.shape[1], x.shape[0]))\nz = R.astype(y, y.dtype)\nreturn z",
    "static loop": "for i in range(3):\n    x = R.exp(x)\nreturn x",
    "unpacked": "a, b = (R.exp(x), x)\nreturn R.add(a, b)",
    "docstring": '"""What it does."""\nreturn x',
    "alias": "y = x\nreturn y",
}


@pytest.mark.parametrize("name", GRAPH)
def test_a_graph_construct_reads_back(name: str) -> None:
    check(graph(GRAPH[name]))


def test_a_call_of_a_function_keeps_its_attributes() -> None:
    text = """
@I.ir_module
class M:
    @R.function
    def g(x: R.Tensor((2, 3), "float32")):
        return x

    @R.function
    def f(x: R.Tensor((2, 3), "float32")):
        y = cls.g(x, attrs={"a": 1})
        return y
"""
    assert 'attrs={"a": 1}' in weft.parse(text).script()
    check(text)


def test_an_if_gives_the_last_binding_of_its_branches() -> None:
    text = graph(
        "if c:\n    a = R.exp(x)\n    y: R.Tensor((2, 3), 'float32') = R.add(a, a)\nelse:\n    y: R.Tensor((2, 3), 'float32') = x\nz = R.exp(y)\nreturn z",
        'x: R.Tensor((2, 3), "float32"), c: R.Tensor((), "bool")',
    )
    function = check(text)
    assert isinstance(function, Function)
    value = function.body.blocks[0].bindings[0].value
    assert isinstance(value, weft.ir.If)
    assert value.else_branch.body is function.params[0]


def test_an_if_whose_branches_return_is_the_result() -> None:
    check(graph("if c:\n    return R.exp(x)\nreturn x", 'x: R.Tensor((2, 3), "float32"), c: R.Prim("bool")'))


def test_nested_ifs_and_dataflow_in_branches_read_back() -> None:
    body = """
if c:
    with R.dataflow():
        a = R.exp(x)
        y = R.exp(a)
        R.output(y)
else:
    if c:
        y = R.exp(x)
    else:
        y = x
return y
"""
    check(graph(body, 'x: R.Tensor((2, 3), "float32"), c: R.Prim("bool")'))


def test_nested_functions_read_back() -> None:
    body = """
@R.function
def inner(z: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
    w = R.add(z, x)
    return w
y = inner(x)
return y
"""
    check(graph(body))


def test_a_local_function_may_call_itself() -> None:
    body = """
@R.function
def loop(z: R.Tensor((2, 3), "float32"), c: R.Prim("bool")) -> R.Tensor((2, 3), "float32"):
    if c:
        r = loop(z, c)
    else:
        r = z
    return r
y = loop(x, c)
return y
"""
    check(graph(body, 'x: R.Tensor((2, 3), "float32"), c: R.Prim("bool")'))


def test_an_impure_function_holds_void_statements() -> None:
    text = graph('_ = R.print(x, format="x={}")\nR.print(x, format="{}")\nreturn x', options="(pure=False)")
    function = check(text)
    assert isinstance(function, Function)
    assert not function.pure
    assert '\n    R.print(x, format="x={}")' in script_of(function)


def test_symbols_of_a_signature_are_names_in_the_body() -> None:
    text = graph(
        "y = R.reshape(x, (n * 2, 2))\ns = R.shape([n, 4])\np = R.prim_value(n + 1)\nreturn (y, s, p)",
        'x: R.Tensor(("n", 4), "float32")',
    )
    function = check(text)
    assert "R.reshape(x, (2 * n, 2))" in script_of(function)


def test_variables_that_would_hide_a_symbol_or_a_namespace_get_other_names() -> None:
    n, x = symbol("n"), weft.ir.Var("n", weft.ir.TensorType((symbol("n"),), "float32"))
    y = weft.ir.Var("R", x.ty)
    z = weft.ir.Var("class", x.ty)
    call = weft.ir.Call(weft.ir.Op("exp"), (x,))
    bindings = (weft.ir.VarBinding(y, call), weft.ir.VarBinding(z, y))
    function = Function(
        (x,), weft.ir.SeqExpr((weft.ir.BindingBlock(bindings),), z), weft.ir.TensorType((n,), "float32")
    )
    text = script_of(function)
    assert "def main(n_1:" in text
    assert "R_1:" in text
    weft.assert_structural_equal(parse(text), function)


def test_a_symbol_named_like_a_namespace_is_written_as_a_string() -> None:
    check(graph('y = R.reshape(x, (R.shape(["T", 4])))\nreturn y', 'x: R.Tensor(("T", 4), "float32")'))


MODULE = """
@I.ir_module
class Example:
    I.module_attrs({"version": 3, "f": float("nan"), "text": "\\u00e9'\\""})
    I.module_global_infos({"vdevice": [I.vdevice({"kind": "llvm"}, 0, "global")], "dummy": [I.dummy_global_info()]})
    ext = R.ExternFunc("my.ext")

    @R.function
    def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        y = cls.helper(x)
        z = R.call_tir(Example.kernel, (y,), out_ty=R.Tensor((n, 4), "float32"))
        return z

    @R.function(private=True)
    def helper(x: R.Tensor(("m", 4), "float32")):
        return R.exp(x)

    @T.prim_func(private=True)
    def kernel(a: T.handle, b: T.handle):
        T.func_attr({"tir.noalias": True})
        n = T.int64()
        A = T.match_buffer(a, (n, 4), "float32")
        B = T.match_buffer(b, (n, 4), "float32")
        for i, j in T.grid(n, 4):
            B[i, j] = A[i, j] + T.float32(1)
"""


def test_a_module_reads_back_whatever_the_order_of_its_functions() -> None:
    module = check(MODULE)
    assert isinstance(module, IRModule)
    assert list(module) == ["ext", "main", "helper", "kernel"]
    assert module["helper"].private  # type: ignore[union-attr]


def test_functions_may_call_each_other_recursively() -> None:
    check("""
@I.ir_module
class M:
    @R.function
    def even(x: R.Tensor((2,), "float32"), c: R.Prim("bool")) -> R.Tensor((2,), "float32"):
        y = cls.odd(x, c)
        return y

    @R.function
    def odd(x: R.Tensor((2,), "float32"), c: R.Prim("bool")) -> R.Tensor((2,), "float32"):
        y = cls.even(x, c)
        return y
""")


def test_function_names_that_are_no_identifiers_read_back() -> None:
    body = weft.ir.SeqExpr((), weft.ir.Tuple(()))
    void = weft.ir.TupleType(())
    other = Function((), body, void, name="a-b")
    var = weft.ir.Var("_", void)
    call = weft.ir.VarBinding(var, weft.ir.Call(weft.ir.GlobalVar("a-b")))
    main = Function((), weft.ir.SeqExpr((weft.ir.BindingBlock((call,)),), weft.ir.Tuple(())), void)
    module = IRModule({"a-b": other, "class": other, "main": main, "a_b": other})
    text = script_of(module)
    weft.assert_structural_equal(parse(text), module)
    assert list(parse(text)) == list(module)  # type: ignore[arg-type]


def test_an_empty_module_reads_back() -> None:
    check("@I.ir_module\nclass Empty:\n    pass\n")


PRIM = {
    "grid": "for i, j in T.grid(8, 8):\n    B[i, j] = A[i, j]",
    "serial": "for i in range(8):\n    for j in T.serial(2, 6):\n        B[i, j] = A[i, j]",
    "parallel": "for i in T.parallel(8):\n    for j in T.vectorized(8):\n        B[i, j] = A[i, j]",
    "unroll": "for i in T.unroll(8):\n    B[i, 0] = A[i, 0]",
    "thread": 'for i in T.thread_binding(8, thread="threadIdx.x"):\n    B[i, 0] = A[i, 0]',
    "annotations": 'for i in T.serial(8, annotations={"pragma": 1, "s": "x"}):\n    B[i, 0] = A[i, 0]',
    "step": "for i in range(0, 8, 2):\n    B[i, 0] = A[i, 0]",
    "serial step": "for i in T.serial(1, 8, step=3):\n    B[i, 0] = A[i, 0]",
    "int64 loop": "for i in range(T.int64(8)):\n    B[i, 0] = A[i, 0]",
    "int64 grid": "for i, j in T.grid(T.int64(8), T.int64(8)):\n    B[i, j] = A[i, j]",
    "dependent loops": "for i in range(8):\n    for j in range(i):\n        B[i, j] = A[i, j]",
    "range of expressions": "for i in range(8):\n    for j in range(i, i + 4):\n        B[i, j] = A[i, j]",
    "block": (
        "for i, j in T.grid(8, 8):\n"
        '    with T.block("b"):\n'
        '        vi, vj = T.axis.remap("SS", [i, j])\n'
        "        T.reads(A[vi, vj])\n        T.writes(B[vi, vj])\n"
        "        B[vi, vj] = A[vi, vj]"
    ),
    "reduction": (
        "for i, k in T.grid(8, 8):\n"
        '    with T.block("sum"):\n'
        "        vi = T.axis.spatial(8, i)\n        vk = T.axis.reduce(8, k)\n"
        "        with T.init():\n            B[vi, 0] = T.float32(0)\n"
        "        B[vi, 0] = B[vi, 0] + A[vi, vk]"
    ),
    "axis range": (
        'for i in range(4):\n    with T.block("b"):\n        vi = T.axis.spatial((2, 6), i + 2)\n        B[vi, 0] = A[vi, 0]'
    ),
    "opaque axis": (
        'for i in range(4):\n    with T.block("b"):\n'
        "        vi = T.axis.opaque(4, i)\n        vs = T.axis.scan(4, i)\n        B[vi, vs] = A[vi, 0]"
    ),
    "where and attrs": (
        'for i in range(9):\n    with T.block("b"):\n        vi = T.axis.spatial(8, i)\n'
        '        T.where(i < 8)\n        T.reads()\n        T.writes(B[0:8, vi * 1])\n        T.block_attr({"k": 1})\n        B[vi, 0] = T.float32(1)'
    ),
    "regions": (
        'for i in range(2):\n    with T.block("b"):\n        vi = T.axis.spatial(2, i)\n'
        "        T.reads(A[vi * 4:vi * 4 + 4, 0:8])\n        T.writes(B[vi, 1:3])\n        B[vi, 1] = A[vi * 4, 0]"
    ),
    "match region": (
        'for i in range(2):\n    with T.block("b"):\n        vi = T.axis.spatial(2, i)\n'
        '        S = T.match_buffer(A[vi * 4:vi * 4 + 4, 0:8], (4, 8), "float32", offset_factor=1)\n        B[vi, 1] = S[0, 0]'
    ),
    "block alloc": (
        'with T.block("root"):\n    C = T.alloc_buffer((8, 8), "float32", scope="shared")\n'
        '    D = T.alloc_buffer((8,), "int8", block=False)\n'
        "    for i in range(8):\n        C[i, 0] = A[i, 0]\n        B[i, 0] = C[i, 0]"
    ),
    "alloc": 'C = T.alloc_buffer((8,), "float32", scope="local")\nfor i in range(8):\n    C[i] = A[i, 0]\n    B[i, 0] = C[i]',
    "alloc annotations": 'C = T.alloc_buffer((8,), "float32", annotations={"k": 1})\nC[0] = A[0, 0]',
    "decl": 'C = T.decl_buffer((64,), "float32", data=A.data)\nB[0, 0] = C[3]',
    "if": "for i in range(8):\n    if i < 4:\n        B[i, 0] = A[i, 0]\n    elif i == 5:\n        B[i, 0] = T.float32(0)\n    else:\n        B[i, 0] = T.float32(1)",
    "if and or not": "for i in range(8):\n    if i < 4 and (i > 2 or not i == 3):\n        B[i, 0] = A[i, 0]",
    "chained comparison": "for i in range(8):\n    if 1 < i <= 4:\n        B[i, 0] = A[i, 0]",
    "while": "x = T.int32(0)\nwhile x < 8:\n    B[x, 0] = A[x, 0]\n    x = x + 1",
    "break": "for i in range(8):\n    if i == 3:\n        break\n    if i == 2:\n        continue\n    B[i, 0] = A[i, 0]",
    "let": 'for i in range(8):\n    y: T.let = i * 2 + 1\n    B[i, 0] = T.Cast("float32", y)',
    "bind": 'for i in range(8):\n    y = T.bind(i * 2)\n    B[i, 0] = T.Cast("float32", y)',
    "let statement": "with T.LetStmt(T.int32(3)) as v:\n    B[v, 0] = A[v, 0]",
    "let expression": "for i in range(8):\n    B[i, 0] = T.Let(v * v, where={v: A[i, 0]})",
    "local scalar": "acc = T.float32(0)\nfor i in range(8):\n    acc += A[i, 0]\nB[0, 0] = acc",
    "typed scalar": "acc: T.float32 = 0.0\nfor i in range(8):\n    acc = acc + A[i, 0]\nB[0, 0] = acc",
    "augmented": "for i in range(8):\n    B[i, 0] += A[i, 0]\n    B[i, 0] *= 2.0",
    "math": "for i in range(8):\n    B[i, 0] = T.exp(A[i, 0]) + T.sqrt(T.abs(A[i, 1])) - T.tanh(T.float32(1.5)) * T.pow(A[i, 2], T.float32(2))",
    "min max": "for i in range(8):\n    B[i, 0] = T.max(A[i, 0], T.float32(0)) + T.min(A[i, 1], A[i, 2])\n    B[i, 1] = max(A[i, 0], A[i, 1])",
    "casts": 'for i in range(8):\n    B[i, 0] = T.Cast("float32", i) + T.Cast("float32", T.int32(3))',
    "constants": 'B[0, 0] = T.float32("inf")\nB[0, 1] = T.float32("nan")\nB[0, 2] = T.float32(-0.0)\nB[0, 3] = T.min_value("float32")\nB[0, 4] = T.infinity("float32")',
    "integer arithmetic": (
        "for i in range(8):\n    B[i // 2, i % 2] = A[T.truncdiv(i, 2), T.truncmod(i, 3)]\n"
        "    B[i << 1 >> 1, (i & 3) | (i ^ 1)] = A[~i & 7, T.ceildiv(i, 2)]"
    ),
    "precedence": "for i in range(8):\n    B[((i + 1) * 2 - (3 - i)) % 8, -(i - 7)] = (A[i, 0] - (A[i, 1] - A[i, 2])) / (A[i, 3] * A[i, 4])",
    "typed constants": "for i in range(5, 8):\n    B[T.int32(2) + T.int32(3), -T.int32(5) + i] = A[i, T.int64(3)]",
    "select": "for i in range(8):\n    B[i, 0] = T.Select(i < 4, A[i, 0], T.float32(0)) + T.if_then_else(i < 4, A[i, 0], T.float32(0))\n    B[i, 1] = A[i, 0] if i < 2 else A[i, 1]",
    "vectors": "B[0, T.Ramp(0, 1, 4)] = A[0, T.Ramp(0, 1, 4)] + T.Broadcast(A[1, 0], 4)\nB[1, 0:4] = A[1, 4:8]\nB[2, T.Ramp(0, 2, 4)] = T.Broadcast(T.float32(1), 4)",
    "shuffle": "B[0, 0] = T.Shuffle([A[0, 0:4]], [T.int32(1)])",
    "assert": 'assert A[0, 0] > T.float32(0), "positive"\nassert A[0, 1] > T.float32(0), ("ValueError", "p")\nB[0, 0] = A[0, 0]',
    "evaluate": 'T.evaluate(T.call_extern("int32", "puts", "hi\\n"))\nT.call_packed("my.f", A[0, 0])\nT.call_pure_extern("float32", "sinf", A[0, 0])',
    "attr": 'with T.attr("key_node", "pragma", 1):\n    B[0, 0] = A[0, 0]',
    "attr rest": 'T.attr(A, "pragma", T.int32(1))\nB[0, 0] = A[0, 0]\nB[0, 1] = A[0, 1]',
    "launch": 'tx = T.launch_thread("threadIdx.x", 8)\nB[tx, 0] = A[tx, 0]\nB[tx, 1] = A[tx, 1]',
    "address": 'T.evaluate(T.address_of(A[0, 0]))\nT.evaluate(T.call_extern("int32", "f", A.data, B.data))',
    "device call": 'T.tvm_storage_sync("shared")\nT.evaluate(T.call_intrin("int32", "my.intrin", A[0, 0]))',
    "reinterpret": 'B[0, 0] = T.reinterpret("float32", T.uint32(1065353216))',
    "seq": "with T.seq():\n    B[0, 0] = A[0, 0]\nwith T.seq():\n    pass",
    "empty": "pass",
    "no realize": 'with T.block("b", no_realize=True):\n    vi = T.axis.spatial(8)\n    B[vi, 0] = A[vi, 0]',
    "nested blocks": (
        'with T.block("outer"):\n    for i in range(8):\n        with T.block("inner"):\n            vi = T.axis.spatial(8, i)\n            B[vi, 0] = A[vi, 0]'
    ),
    "func attr": 'T.func_attr({"global_symbol": "f", "tir.noalias": True, "big": 123456789012345678901234567890})\nB[0, 0] = A[0, 0]',
    "comparison of a comparison": "B[0, 0] = T.Select((A[0, 0] < A[1, 0]) == (A[2, 0] < A[3, 0]), A[0, 0], A[1, 0])",
    "buffer without memory": 'C = T.Buffer((64,), "float32")\nT.evaluate(T.call_extern("int32", "g", C.data))',
    "axis apart from its loop": (
        'for i in range(2, 6):\n    for j in range(4):\n        with T.block("b"):\n            vi = T.axis.spatial((0, 4), i)\n'
        "            vj = T.axis.spatial(4, j)\n            B[vi, 0] = A[vi, vj]"
    ),
    "pointer in a scope": (
        'p: T.let[T.handle(storage_scope="shared")] = T.call_extern("handle", "f")\nT.evaluate(T.call_extern("int32", "g", p))'
    ),
    "docstring": '"""Copy one."""\nB[0, 0] = A[0, 0]',
}


@pytest.mark.parametrize("name", PRIM)
def test_a_tensor_construct_reads_back(name: str) -> None:
    check(prim(PRIM[name]))


PARAMETERS = [
    'A: T.Buffer((8,), "float32"), n: T.int32',
    'A: T.Buffer(("n", "n * 2 + 1"), "float32"), B: T.Buffer(("m // 2", "m"), "int8")',
    'A: T.Buffer((8,), "float32", scope="shared", align=64, offset_factor=4)',
    'A: T.Buffer(("n", 4), "float32", strides=("s", 1), elem_offset="o")',
    'A: T.Buffer((4, 4), "float32", axis_separators=[1])',
    'A: T.Buffer[(4, 4), "float32"]',
    'A: T.Buffer((), "float32")',
    "p: T.handle",
    'p: T.handle("float32", "global")',
    'p: T.handle("float32", "shared")',
    'n: T.int64, A: T.Buffer(("n",), "float32")',
    "x: T.float32, b: T.bool",
]


@pytest.mark.parametrize("params", PARAMETERS)
def test_parameters_read_back(params: str) -> None:
    check(prim("T.evaluate(0)", params))


def test_symbols_that_are_not_int64_are_declared_in_the_body() -> None:
    function = check(
        prim("n = T.int32()\nfor i in range(n):\n    A[i] = T.float32(0)", 'A: T.Buffer(("n",), "float32")')
    )
    assert isinstance(function, PrimFunc)
    assert function.params[0].shape[0].dtype == "int32"  # type: ignore[union-attr]
    assert "n = T.int32()" in script_of(function)


def test_scalar_functions_return() -> None:
    check(prim("return a + b", "a: T.int32, b: T.int32", " -> T.int32"))


def test_tensor_functions_call_each_other() -> None:
    check("""
@I.ir_module
class M:
    @T.prim_func
    def main(A: T.Buffer((4,), "int32")):
        A[0] = cls.add(A[1], A[2])
        cls.touch(A.data)

    @T.prim_func(private=True)
    def add(a: T.int32, b: T.int32) -> T.int32:
        return a + b

    @T.prim_func
    def touch(p: T.handle):
        T.evaluate(0)
""")


@pytest.mark.parametrize(
    "dtype",
    [
        *("float16", "float32", "float64", "int8", "uint64", "bool", "bfloat16", "float8_e4m3fn", "float4_e2m1fn"),
        *("int4", "complex64", "complex128"),
    ],
)
def test_constants_of_any_dtype_keep_their_bytes(dtype: str) -> None:
    storage = storage_of(dtype)
    rng = np.random.default_rng(7)
    for shape in [(), (3,), (2, 3), (0, 2), (20, 20)]:
        raw = rng.integers(0, 256, size=(*shape, storage.itemsize), dtype=np.uint8)
        if dtype == "bool":
            raw &= 1
        data = np.ascontiguousarray(raw).view(storage).reshape(shape)
        constant = Constant(data, dtype)
        var = weft.ir.Var("c", constant.ty)
        block = weft.ir.BindingBlock((weft.ir.VarBinding(var, constant),))
        function = Function((), weft.ir.SeqExpr((block,), var), constant.ty)
        again = parse(script_of(function))
        weft.assert_structural_equal(again, function)
        assert again.body.blocks[0].bindings[0].value.data.tobytes() == data.tobytes()  # type: ignore[union-attr]


def test_large_constants_may_stand_in_a_side_file() -> None:
    import hashlib

    data = np.arange(6, dtype="float32").reshape(2, 3)
    digest = hashlib.sha256(data.tobytes()).hexdigest()
    text = graph(f'c = R.const("sha256:{digest}", "float32", shape=(2, 3))\nreturn c')
    function = parse(text, blobs={f"sha256:{digest}": data.tobytes()})
    assert isinstance(function, Function)
    assert np.array_equal(function.body.blocks[0].bindings[0].value.data, data)  # type: ignore[union-attr]
    with pytest.raises(weft.ScriptError, match="no blob") as caught:
        parse(text)
    assert caught.value.code == "W151"


def test_deep_expressions_print() -> None:
    x: weft.ir.PrimExpr = weft.ir.PrimVar("x", "int32")
    for _ in range(100_000):
        x = weft.ir.Binary("add", x, weft.ir.IntImm(1))
    assert script_of(x).count("+") == 100_000
    for _ in range(5_000):
        x = weft.ir.Binary("sub", weft.ir.IntImm(1), x)
    assert script_of(x).startswith("1 - (1 - (")


def test_long_sums_read_back() -> None:
    check(prim(f"A[0, 0] = {' + '.join(['B[0, 0]'] * 700)}"))


def test_line_numbers_and_missing_annotations_are_options() -> None:
    function = parse(graph("y = R.exp(x)\nreturn y"))
    assert "5 | " in script_of(function, line_numbers=True)
    bare = script_of(function, types="hidden")
    assert "y = R.exp(x)" in bare
    weft.assert_structural_equal(parse(bare), function)
    with pytest.raises(weft.ScriptError, match="unknown option"):
        script_of(function, types="some")


@pytest.mark.parametrize("spelling", ["tvm-0.27", "tvm-0.20"])
def test_other_spellings_are_printed_and_read(spelling: str) -> None:
    module = parse(MODULE)
    text = script_of(module, spelling=spelling)
    weft.assert_structural_equal(parse(text), module)
    assert ("out_sinfo=" in text) == (spelling == "tvm-0.20")


def test_targets_in_attributes_read_back() -> None:
    function = check(graph('R.func_attr({"target": I.target("llvm -mcpu=znver3")})\nreturn x'))
    assert isinstance(function, Function)
    assert str(function.attrs["target"]) == "llvm -mcpu=znver3"


@pytest.mark.parametrize("inner", ["int32", "int64"])
@pytest.mark.parametrize("outer", ["int32", "int64"])
def test_the_dtypes_of_loops_and_of_what_they_bind_read_back(outer: str, inner: str) -> None:
    """G10: a variable may be narrower than the size of its loop, and a block's than the loop's."""
    n, i, j, v, w = PrimVar("n", "int64"), PrimVar("i", outer), PrimVar("j", inner), PrimVar("v"), PrimVar("w", "int64")
    x = Buffer("x", (n, n))
    axes = (IterVar(v, 0, n, "spatial", i), IterVar(w, 0, n, "spatial", j))
    block = Block("b", BufferStore(x, FloatImm(0.0), (v, w)), axes)
    kernel = PrimFunc((x,), For(i, 0, n, For(j, 0, n, block)), name="main")
    again = parse(kernel.script())
    assert weft.first_mismatch(kernel, again) is None
