"""Every rule for tensor-level functions: a minimal function that breaks it, and functions that break none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import weft
from weft.ir import IRModule, verify
from weft.ir.graph import GlobalVar
from weft.ir.kernel.prim import as_expr, binary, cast
from weft.ir.tensor import (
    AllocBuffer,
    AssertStmt,
    Binary,
    Bind,
    Block,
    Break,
    Broadcast,
    Buffer,
    BufferLoad,
    BufferRegion,
    BufferStore,
    Cast,
    Continue,
    DeclBuffer,
    Evaluate,
    FloatImm,
    For,
    IfThenElse,
    IntImm,
    IterVar,
    Let,
    PrimCall,
    PrimFunc,
    PrimVar,
    Ramp,
    Range,
    Return,
    Select,
    SeqStmt,
    Shuffle,
    Stmt,
    Unary,
    While,
)
from weft.ir.types import PrimType
from weft.ir.verify import CHECKS


def seq(*stmts: Stmt) -> SeqStmt:
    return SeqStmt(stmts)


def load(buffer: Buffer, *indices: Any) -> BufferLoad:
    return BufferLoad(buffer, tuple(as_expr(index) for index in indices))


def store(buffer: Buffer, value: Any, *indices: Any) -> BufferStore:
    return BufferStore(buffer, as_expr(value), tuple(as_expr(index) for index in indices))


def region(buffer: Buffer, *ranges: tuple[Any, Any]) -> BufferRegion:
    return BufferRegion(buffer, tuple(Range(*part) for part in ranges))


def loop(extent: Any, body: Callable[[PrimVar], Stmt], **options: Any) -> For:
    variable = PrimVar("i")
    return For(variable, 0, extent, body(variable), **options)


X, Y = Buffer("x", (4,)), Buffer("y", (4,))


def kernel(body: Stmt, *params: Any, **options: Any) -> PrimFunc:
    return PrimFunc(params or (X, Y), body, **options)


def codes(value: Any) -> list[str]:
    return [finding.code for finding in verify(value)]


def block(body: Any, kind: str = "spatial", value: Any = None, **options: Any) -> Stmt:
    """A block with one variable over the loop around it."""
    i, v = PrimVar("i"), PrimVar("v")
    made = Block(
        "b",
        body(v),
        (IterVar(v, 0, 4, kind, i if value is None else value(i)),),
        **{k: f(v) for k, f in options.items()},
    )
    return For(i, 0, 4, made)


def two_names(variable: PrimVar) -> Stmt:
    return For(variable, 0, 4, store(Y, 0.0, variable))


SHARED = PrimVar("i")
LOCAL = Buffer("local", (4,))
NOTHING = Buffer("nothing", (0,))
N = PrimVar("n", "int64")

BROKEN: list[tuple[str, str, Callable[[], Any]]] = [
    ("W408", "unknown function", lambda: IRModule({"f": kernel(Evaluate(PrimCall(GlobalVar("nowhere"), ())))})),
    ("W450", "unknown variable", lambda: kernel(store(Y, 0.0, PrimVar("ghost")))),
    ("W450", "loop variable after its loop", lambda: kernel(seq(two_names(SHARED), store(Y, 0.0, SHARED)))),
    ("W450", "let variable after its let", lambda: kernel(store(Y, let_outside(), 0))),
    ("W451", "unknown buffer", lambda: kernel(store(Buffer("z", (4,)), 0.0, 0))),
    ("W451", "buffer before its allocation", lambda: kernel(seq(store(LOCAL, 0.0, 0), AllocBuffer(LOCAL)))),
    (
        "W451",
        "unknown buffer in a region",
        lambda: kernel(block(lambda v: store(Y, 0.0, v), reads=lambda v: (region(LOCAL, (v, 1)),))),
    ),
    ("W452", "two loops over one variable", lambda: kernel(seq(two_names(SHARED), two_names(SHARED)))),
    ("W453", "symbol only in a product", lambda: kernel(Evaluate(as_expr(0)), Buffer("z", (N * 2,)))),
    ("W455", "too many indices", lambda: kernel(store(Y, 0.0, 0, 0))),
    ("W455", "too few indices", lambda: kernel(store(Y, load(X), 0))),
    ("W455", "too few ranges", lambda: kernel(block(lambda v: store(Y, 0.0, v), reads=lambda v: (region(X),)))),
    ("W456", "constant index", lambda: kernel(store(Y, load(X, 4), 0))),
    ("W456", "negative index", lambda: kernel(store(Y, 0.0, -1))),
    ("W456", "loop runs too far", lambda: kernel(loop(4, lambda i: store(Y, load(X, i + 1), i)))),
    ("W456", "symbolic loop runs too far", lambda: symbolic(1)),
    ("W456", "an element of an empty buffer", lambda: kernel(Evaluate(load(NOTHING, 0)), NOTHING)),
    ("W457", "float index", lambda: kernel(store(Y, 0.0, 1.0))),
    ("W457", "float loop bound", lambda: kernel(loop(FloatImm(4.0), lambda i: store(Y, 0.0, i)))),
    ("W458", "lanes of a store", lambda: kernel(store(Y, 0.0, Ramp(IntImm(0), IntImm(1), 4)))),
    (
        "W458",
        "lanes of a predicate",
        lambda: kernel(BufferStore(Y, FloatImm(0.0), (IntImm(0),), Broadcast(as_expr(True), 4))),
    ),
    (
        "W458",
        "lanes of operands",
        lambda: kernel(store(Y, Binary("add", FloatImm(0.0), Broadcast(FloatImm(0.0), 4)), 0)),
    ),
    ("W458", "lanes of a cast", lambda: kernel(store(Y, Cast("float32x4", FloatImm(0.0)), 0))),
    ("W459", "stored dtype", lambda: kernel(store(Y, 1, 0))),
    ("W459", "bound dtype", lambda: kernel(Bind(PrimVar("t", "float32"), IntImm(1)))),
    ("W460", "operands of two dtypes", lambda: kernel(store(Y, Binary("add", FloatImm(0.0), IntImm(1)), 0))),
    ("W460", "choice between dtypes", lambda: kernel(store(Y, Select(as_expr(True), FloatImm(0.0), IntImm(1)), 0))),
    ("W460", "bits of a float", lambda: kernel(store(Y, Binary("bitwise_and", FloatImm(0.0), FloatImm(1.0)), 0))),
    ("W460", "shuffle of two dtypes", lambda: kernel(store(Y, Shuffle((FloatImm(0.0), IntImm(1)), (IntImm(0),)), 0))),
    ("W461", "condition", lambda: kernel(IfThenElse(as_expr(1), store(Y, 0.0, 0)))),
    ("W461", "while condition", lambda: kernel(While(as_expr(1), Break()))),
    ("W461", "and of integers", lambda: kernel(Evaluate(Binary("and", IntImm(1), IntImm(0))))),
    ("W461", "not of an integer", lambda: kernel(Evaluate(Unary("not", IntImm(1))))),
    ("W462", "negative extent", lambda: kernel(loop(-1, lambda i: store(Y, 0.0, i)))),
    ("W462", "negative size", lambda: kernel(AllocBuffer(Buffer("z", (-1,))))),
    ("W463", "exp of an integer", lambda: kernel(Evaluate(PrimCall("exp", (IntImm(1),), "int32")))),
    ("W463", "exp of two", lambda: kernel(Evaluate(PrimCall("exp", (FloatImm(1.0), FloatImm(1.0)), "float32")))),
    ("W463", "exp gives another dtype", lambda: kernel(Evaluate(PrimCall("exp", (FloatImm(1.0),), "float64")))),
    (
        "W463",
        "arguments of a function",
        lambda: IRModule({"g": kernel(store(Y, 0.0, 0)), "f": kernel(Evaluate(PrimCall(GlobalVar("g"), ())))}),
    ),
    ("W464", "break", lambda: kernel(Break())),
    ("W464", "continue", lambda: kernel(IfThenElse(as_expr(True), Continue()))),
    ("W465", "returned dtype", lambda: kernel(Return(IntImm(1)), ret_type=PrimType("float32"))),
    ("W465", "return without value", lambda: kernel(Return(), ret_type=PrimType("float32"))),
    ("W466", "loop kind", lambda: kernel(loop(4, lambda i: store(Y, 0.0, i), kind="sideways"))),
    ("W466", "thread without name", lambda: kernel(loop(4, lambda i: store(Y, 0.0, i), kind="thread_binding"))),
    ("W466", "step", lambda: kernel(loop(4, lambda i: store(Y, 0.0, i), step=0))),
    ("W467", "loop body", lambda: kernel(loop(4, lambda i: 3))),  # type: ignore[arg-type, return-value]
    ("W470", "undeclared read", lambda: kernel(block(lambda v: store(Y, load(X, v), v), reads=lambda v: ()))),
    (
        "W470",
        "read outside the region",
        lambda: kernel(block(lambda v: store(Y, load(X, 3 - v), v), reads=lambda v: (region(X, (4 - v, 1)),))),
    ),
    ("W471", "undeclared write", lambda: kernel(block(lambda v: store(Y, 0.0, v), writes=lambda v: ()))),
    (
        "W471",
        "write outside the region",
        lambda: kernel(block(lambda v: store(Y, 0.0, v), writes=lambda v: (region(Y, (v + 1, 1)),))),
    ),
    ("W472", "quadratic binding", lambda: kernel(block(lambda v: store(Y, 0.0, v), value=lambda i: i * i))),
    (
        "W472",
        "binding that reads a buffer",
        lambda: kernel(
            block(lambda v: store(Y, 0.0, v), value=lambda i: cast("int32", load(Buffer("idx", (4,), "int32"), i)))
        ),
    ),
    ("W473", "reduction variable in the write", lambda: kernel(block(lambda v: store(Y, load(Y, v), v), "reduce"))),
    (
        "W474",
        "init without reduction",
        lambda: kernel(block(lambda v: store(Y, 0.0, v), init=lambda v: store(Y, 0.0, v))),
    ),
    (
        "W475",
        "local buffer never set",
        lambda: kernel(seq(AllocBuffer(LOCAL), loop(4, lambda i: store(Y, load(LOCAL, i), i)))),
    ),
    (
        "W475",
        "sum without init",
        lambda: kernel(seq(AllocBuffer(LOCAL), loop(4, lambda i: store(LOCAL, load(LOCAL, i) + 1.0, i)))),
    ),
    ("W476", "variable kind", lambda: kernel(block(lambda v: store(Y, 0.0, v), "diagonal"))),
    ("W477", "a view that is too large", lambda: kernel(viewed(Buffer("v", (64,), data=address(X, 0))))),
    ("W477", "a view of what is before", lambda: kernel(viewed(Buffer("v", (1,), elem_offset=-1, data=address(X, 0))))),
]


def address(buffer: Buffer, at: int) -> PrimCall:
    return PrimCall("address_of", (load(buffer, at),), "handle")


def viewed(view: Buffer) -> SeqStmt:
    return seq(DeclBuffer(view), Evaluate(load(view, 0)))


def let_outside() -> Any:
    t = PrimVar("t", "float32")
    return Let(t, FloatImm(1.0), t) + t


def symbolic(shift: int) -> PrimFunc:
    a, b = Buffer("a", (N,)), Buffer("b", (N,))
    i = PrimVar("i", "int64")
    return PrimFunc((a, b), For(i, 0, N, store(b, load(a, i + shift), i)))


def too_far() -> For:
    return loop(4, lambda i: Evaluate(load(X, i + 1)))


@pytest.mark.parametrize(("code", "what", "build"), BROKEN, ids=[f"{code} {what}" for code, what, _ in BROKEN])
def test_a_function_that_breaks_a_rule_is_reported_under_its_code(
    code: str, what: str, build: Callable[[], Any]
) -> None:
    assert code in codes(build())


def test_every_rule_for_tensor_level_functions_is_tested() -> None:
    assert {code for code in CHECKS if code >= "W450"} <= {code for code, _, _ in BROKEN}


GOOD: list[tuple[str, Callable[[], Any]]] = [
    ("a loop", lambda: kernel(loop(4, lambda i: store(Y, load(X, i), i)))),
    ("a symbolic loop", lambda: symbolic(0)),
    ("a guarded access", lambda: kernel(loop(4, lambda i: IfThenElse(i < 3, store(Y, load(X, i + 1), i))))),
    (
        "an access to an empty buffer that never runs",
        lambda: kernel(loop(0, lambda i: Evaluate(load(NOTHING, 0))), NOTHING),
    ),
    (
        "an access after an assertion that stops what would be wrong",
        lambda: kernel(seq(AssertStmt(binary("eq", N, 0), "no elements"), too_far()), Buffer("a", (N,)), X),
    ),
    (
        "a lazily guarded access",
        lambda: kernel(
            loop(4, lambda i: store(Y, PrimCall("if_then_else", (i < 3, load(X, i + 1), FloatImm(0.0)), "float32"), i))
        ),
    ),
    (
        "a local buffer",
        lambda: kernel(
            seq(
                AllocBuffer(LOCAL),
                loop(4, lambda i: store(LOCAL, 1.0, i)),
                loop(4, lambda i: store(Y, load(LOCAL, i), i)),
            )
        ),
    ),
    ("a view", lambda: kernel(seq(DeclBuffer(VIEW), loop(4, lambda i: store(VIEW, 1.0, i))))),
    ("a vector", lambda: kernel(store(Y, Broadcast(FloatImm(0.0), 4), Ramp(IntImm(0), IntImm(1), 4)))),
    ("a while loop", lambda: kernel(While(load(X, 0) > 0.0, IfThenElse(load(X, 1) > 0.0, Break(), Continue())))),
    ("one let used twice", lambda: kernel(store(Y, twice(), 0))),
    (
        "an opaque binding",
        lambda: kernel(
            block(lambda v: store(Y, 0.0, v), "opaque", value=lambda i: cast("int32", load(IDX, i))), IDX, Y
        ),
    ),
    (
        "a split binding",
        lambda: kernel(
            loop(
                2, lambda o: loop(2, lambda i: Block("b", store(Y, 0.0, V), (IterVar(V, 0, 4, "spatial", o * 2 + i),)))
            )
        ),
    ),
    (
        "a fused binding",
        lambda: kernel(
            loop(
                4,
                lambda f: Block(
                    "b", store(M, 0.0, V, W), (IterVar(V, 0, 2, "spatial", f // 2), IterVar(W, 0, 2, "spatial", f % 2))
                ),
            ),
            M,
        ),
    ),
    (
        "declared regions",
        lambda: kernel(
            block(
                lambda v: store(Y, load(X, v), v),
                reads=lambda v: (region(X, (v, 1)),),
                writes=lambda v: (region(Y, (0, 4)),),
            )
        ),
    ),
    ("an unknown intrinsic", lambda: kernel(Evaluate(PrimCall("device_barrier", (IntImm(0),))))),
    ("a returned value", lambda: kernel(Return(binary("add", FloatImm(1.0), 2.0)), ret_type=PrimType("float32"))),
]

VIEW = Buffer("view", (4,), data=PrimCall("address_of", (load(Y, 0),), "handle"))
IDX = Buffer("idx", (4,), "int32")
M = Buffer("m", (2, 2))
V, W = PrimVar("v"), PrimVar("w")


def twice() -> Any:
    t = PrimVar("t", "float32")
    shared = Let(t, FloatImm(1.0), t * 2.0)
    return shared + shared


@pytest.mark.parametrize("build", [build for _, build in GOOD], ids=[what for what, _ in GOOD])
def test_a_well_formed_function_has_no_findings(build: Callable[[], Any]) -> None:
    assert verify(build()) == []


def test_a_reduction_with_init_need_not_declare_that_it_reads_its_output() -> None:
    function = weft.parse("""
@T.prim_func
def matmul(A: T.Buffer(("n", 8), "float32"), B: T.Buffer((8, 4), "float32"), C: T.Buffer(("n", 4), "float32")):
    for i, j, k in T.grid(n, 4, 8):
        with T.block("matmul"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            T.reads(A[vi, vk], B[vk, vj])
            T.writes(C[vi, vj])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
""")
    assert verify(function) == []


def test_a_finding_in_a_block_names_the_block() -> None:
    finding = verify(kernel(block(lambda v: store(Y, 0.0, v), init=lambda v: store(Y, 0.0, v))))[0]
    assert finding.path == "block b"


def test_a_variable_that_is_used_often_is_reported_once() -> None:
    ghost = PrimVar("ghost", "float32")
    value: Any = ghost
    for _ in range(20):
        value = value + ghost
    assert codes(kernel(store(Y, value, 0))) == ["W450"]


def test_deep_expressions_are_verified_without_recursion() -> None:
    value: Any = load(X, 0)
    for _ in range(20_000):
        value = value + 1.0
    assert verify(kernel(store(Y, value, 0))) == []


@pytest.mark.parametrize("strides", ["(1,)", "(8, 4, 1)"])
def test_strides_of_another_rank_are_refused_where_they_are_read(strides: str) -> None:
    text = f"""
@T.prim_func
def f(a: T.handle):
    A = T.match_buffer(a, (4, 4), "float32", strides={strides})
    A[0, 0] = T.float32(1)
"""
    with pytest.raises(weft.ShapeError, match=r"buffer 'A' has 2 dimensions and \d strides") as caught:
        weft.parse(text)
    assert caught.value.code == "W202"


def test_the_sizes_of_a_buffer_stand_in_the_message_as_they_were_written() -> None:
    b = Buffer("b", (N + 1,))
    i = PrimVar("i", "int64")
    function = PrimFunc((b,), For(i, 0, N + 2, store(b, 0.0, i)))
    [found] = [finding for finding in weft.verify(IRModule({"f": function})) if finding.code == "W456"]
    assert found.message == "index n + 1 in dimension 0 is out of range for 'b' of shape (n + 1,)"
