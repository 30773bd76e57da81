"""Walking, rewriting and substitution."""

from __future__ import annotations

import gc
import weakref

from weft.ir import (
    BindingBlock,
    Buffer,
    BufferLoad,
    BufferStore,
    Call,
    For,
    Function,
    IfThenElse,
    Op,
    PrimFunc,
    PrimVar,
    SeqExpr,
    SeqStmt,
    ShapeExpr,
    Stmt,
    TensorType,
    Var,
    VarBinding,
    post_order,
    prim,
    rewrite,
    substitute,
    substitute_symbols,
    walk,
)
from weft.ir.dim import symbol
from weft.ir.node import replace
from weft.ir.structure.visit import _walk, nodes_of, rewrite_statements, statements


def function() -> Function:
    n = symbol("n")
    x = Var("x", TensorType((n, 4), "float32"))
    y = Var("y", TensorType((4 * n,), "float32"))
    call = Call(Op("reshape"), (x, ShapeExpr((4 * n,))))
    return Function((x,), SeqExpr((BindingBlock((VarBinding(y, call),)),), y), y.ty)


def test_a_rewrite_that_changes_nothing_returns_the_same_object() -> None:
    f = function()
    assert rewrite(f, lambda node: None) is f
    assert rewrite(f, lambda node: node, types=True) is f


def test_a_rewrite_keeps_binder_and_uses_together() -> None:
    f = function()
    new = rewrite(f, lambda node: Var("z", node.ty) if isinstance(node, Var) and node.name == "y" else None)
    binding = new.body.blocks[0].bindings[0]
    assert binding.var.name == "z"
    assert new.body.body is binding.var
    assert new.params[0] is f.params[0]


def test_symbols_are_replaced_in_types_and_in_shape_values() -> None:
    f = substitute_symbols(function(), {"n": 3})
    assert f.params[0].ty.shape == (3, 4)
    binding = f.body.blocks[0].bindings[0]
    assert binding.value.args[1].dims == (12,)
    assert binding.value.args[0] is f.params[0]
    assert f.ret_type.shape == (12,)


def test_substituting_a_symbol_reaches_buffers_and_loops() -> None:
    n, i = PrimVar("n", "int64"), PrimVar("i", "int64")
    a, b = Buffer("A", (n,)), Buffer("B", (n,))
    f = PrimFunc((a, b), For(i, 0, n, BufferStore(b, BufferLoad(a, (i,)), (i,))))
    g = substitute(f, {n: 5})
    assert [param.shape for param in g.params] == [(5,), (5,)]
    assert g.body.extent == 5
    assert g.body.body.buffer is g.params[1]
    assert g.body.body.value.buffer is g.params[0]


def test_walk_goes_parents_first_and_post_order_children_first() -> None:
    value = prim.binary("add", prim.const(1, "int32"), PrimVar("i"))
    assert [type(node).__name__ for node in walk(value)] == ["Binary", "IntImm", "PrimVar"]
    assert [type(node).__name__ for node in post_order(value)] == ["IntImm", "PrimVar", "Binary"]


def test_statements_are_walked_in_the_same_order_without_their_expressions() -> None:
    i, out = PrimVar("i", "int64"), Buffer("out", (4,))
    store = BufferStore(out, prim.const(1.0, "float32"), (i,))
    chosen = IfThenElse(prim.binary("lt", i, prim.const(2, "int64")), store, SeqStmt((store, For(i, 0, 2, store))))
    loop = For(i, 0, 4, SeqStmt((chosen, store)))
    assert list(statements(loop)) == [node for node in walk(loop) if isinstance(node, Stmt)]
    assert [type(part).__name__ for part in statements(chosen)][:3] == ["IfThenElse", "BufferStore", "SeqStmt"]


def test_pre_replacements_are_not_entered() -> None:
    value = prim.binary("add", prim.const(1, "int32"), PrimVar("i"))
    seen = []
    new = rewrite(
        value, lambda node: seen.append(node), pre=lambda node: prim.const(7, "int32") if node is value.a else None
    )
    assert new.a.value == 7
    assert value.a not in seen


def test_statements_are_rewritten_from_the_inside() -> None:
    """Inner statements come first, each once; without a change the same object comes back."""
    n, i, j = (PrimVar(name, "int64") for name in "nij")
    x = Buffer("x", (n, n))
    inner = For(j, 0, n, BufferStore(x, BufferLoad(x, (i, j)) + 1, (i, j)))
    outer = For(i, 0, n, SeqStmt((inner, inner)))
    seen: list[Stmt] = []
    assert rewrite_statements(outer, seen.append) is outer
    assert seen == [inner.body, inner, outer.body, outer]

    def parallel(stmt: Stmt) -> Stmt | None:
        return replace(stmt, kind="parallel") if isinstance(stmt, For) and stmt.loop_var is j else None

    new = rewrite_statements(outer, parallel)
    assert isinstance(new, For)
    assert isinstance(new.body, SeqStmt)
    assert [getattr(part, "kind", "") for part in new.body.stmts] == ["parallel", "parallel"]
    assert new.kind == "serial"


def kernel() -> PrimFunc:
    """Two nests, one of which holds the other's store."""
    x, i, j, k = Buffer("x", (4, 4)), *(PrimVar(name, "int64") for name in "ijk")
    store = BufferStore(x, BufferLoad(x, (i, j)) + 1, (i, j))
    inner = For(j, 0, 4, store)
    again = For(i, 0, 4, SeqStmt((inner, For(k, 0, 4, BufferStore(x, prim.const(0.0, "float32"), (i, k))))))
    return PrimFunc((x,), SeqStmt((For(i, 0, 4, inner), again)))


def test_what_is_kept_of_a_walk_is_the_walk_of_what_is_there() -> None:
    """In whatever order kernels, sequences and loops are asked for, and after a part was replaced."""
    parts = [node for node in _walk(kernel(), types=False) if isinstance(node, (PrimFunc, SeqStmt, For))]
    for order in (parts, parts[::-1]):
        for part in order:
            assert list(walk(part)) == list(_walk(part, types=False))
    old = kernel()
    assert list(walk(old)) == list(_walk(old, types=False))
    new = replace(old, body=SeqStmt((old.body.stmts[1], old.body.stmts[0], old.body.stmts[1])))
    assert list(walk(new)) == list(_walk(new, types=False))


def test_nodes_of_classes_come_in_the_order_of_the_walk() -> None:
    f = kernel()
    for root in (f, f.body, f.body.stmts[0], f.body.stmts[0].body.body):
        for classes in ((For,), (Stmt,), (Buffer, BufferStore), (IfThenElse,), (SeqStmt, PrimFunc)):
            assert list(nodes_of(root, *classes)) == [node for node in walk(root) if isinstance(node, classes)]


def test_what_is_kept_of_a_walk_goes_with_the_node() -> None:
    f = kernel()
    assert len(list(walk(f))) > 20
    alive = [weakref.ref(node) for node in (f, f.body, f.body.stmts[0])]
    del f
    gc.collect()
    assert [item() for item in alive] == [None, None, None]
