"""LLVM text: what is computed once where it can be seen is not computed again."""

from __future__ import annotations

from weft.codegen.llvm.text import FunctionWriter, ModuleWriter


def writer() -> tuple[ModuleWriter, FunctionWriter]:
    module = ModuleWriter()
    return module, FunctionWriter(module, "f", "i64", [("i64", "x"), ("i1", "c"), ("ptr", "p")])


def test_the_same_instruction_in_a_block_that_is_dominated_is_the_first_one() -> None:
    _, w = writer()
    first = w.emit("mul i64 %x, 3")
    then, done = w.label("then"), w.label("done")
    w.branch("%c", then, done)
    w.open(then)
    assert w.emit("mul i64 %x, 3") == first
    w.open(done)
    assert w.emit("mul i64 %x, 3") == first


def test_what_one_branch_computes_is_not_known_in_the_other_nor_after_both() -> None:
    _, w = writer()
    then, other, done = w.label("then"), w.label("else"), w.label("done")
    w.branch("%c", then, other)
    w.open(then)
    inside = w.emit("mul i64 %x, 3")
    w.jump(done)
    w.open(other)
    assert w.emit("mul i64 %x, 3") != inside
    w.open(done)
    assert w.emit("mul i64 %x, 3") != inside


def test_what_a_loop_computes_is_not_known_after_it() -> None:
    _, w = writer()
    head, body, done = w.label("for"), w.label("body"), w.label("done")
    w.open(head)
    in_head = w.emit("add i64 %x, 1")
    w.branch("%c", body, done)
    w.open(body)
    inside = w.emit("mul i64 %x, 3")
    assert w.emit("add i64 %x, 1") == in_head
    w.jump(head)
    w.open(done)
    assert w.emit("add i64 %x, 1") == in_head
    assert w.emit("mul i64 %x, 3") != inside


def test_memory_is_read_again_after_something_may_have_been_written() -> None:
    module, w = writer()
    first = w.emit("load i64, ptr %p")
    assert w.emit("load i64, ptr %p") == first
    w.do("store i64 1, ptr %q")
    second = w.emit("load i64, ptr %p")
    assert second != first
    assert w.emit("call i64 @g()") != w.emit("call i64 @g()")
    third = w.emit("load i64, ptr %p")
    assert third not in (first, second)
    w.open(w.label("next"))
    assert w.emit("load i64, ptr %p") not in (first, second, third)
    w.emit("atomicrmw xchg ptr %p, i64 1 acquire")
    w.emit("load i64, ptr %p")
    w.ret("i64 0")
    w.finish()
    assert str(module).count("load i64, ptr %p") == 5


def test_a_label_that_nothing_jumps_to_starts_no_block() -> None:
    module, w = writer()
    used, unused, out = w.label("used"), w.label("unused"), w.label("out")
    w.branch("%c", used, out)
    w.open_if_used(unused)
    assert w.terminated
    w.open_if_used(used)
    w.ret("i64 0")
    w.open(out)
    w.ret("i64 1")
    w.finish()
    assert "unused" not in str(module)
    assert "used.1:" in str(module)
