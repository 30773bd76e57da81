"""LLVM functions while they are written: the passes over their records together, blocks, sizes, parts of modules."""

from __future__ import annotations

from tests.codegen.backends.llvm.asm.assembly import instruction_of, read

from weft.codegen.backends.llvm.asm.function import FunctionWriter
from weft.codegen.backends.llvm.asm.module import LONG, ModuleWriter


def writer() -> tuple[ModuleWriter, FunctionWriter]:
    module = ModuleWriter()
    return module, FunctionWriter(module, "f", "i64", [("i64", "x"), ("i1", "c"), ("ptr", "p")])


def test_the_same_instruction_in_a_block_that_is_dominated_is_the_first_one() -> None:
    _, w = writer()
    first = w.emit(instruction_of("mul i64 %x, 3"))
    then, done = w.label("then"), w.label("done")
    w.branch("%c", then, done)
    w.open(then)
    assert w.emit(instruction_of("mul i64 %x, 3")) == first
    w.open(done)
    assert w.emit(instruction_of("mul i64 %x, 3")) == first


def test_what_one_branch_computes_is_not_known_in_the_other_nor_after_both() -> None:
    _, w = writer()
    then, other, done = w.label("then"), w.label("else"), w.label("done")
    w.branch("%c", then, other)
    w.open(then)
    inside = w.emit(instruction_of("mul i64 %x, 3"))
    w.jump(done)
    w.open(other)
    assert w.emit(instruction_of("mul i64 %x, 3")) != inside
    w.open(done)
    assert w.emit(instruction_of("mul i64 %x, 3")) != inside


def test_what_a_loop_computes_is_not_known_after_it() -> None:
    _, w = writer()
    head, body, done = w.label("for"), w.label("body"), w.label("done")
    w.open(head)
    in_head = w.emit(instruction_of("add i64 %x, 1"))
    w.branch("%c", body, done)
    w.open(body)
    inside = w.emit(instruction_of("mul i64 %x, 3"))
    assert w.emit(instruction_of("add i64 %x, 1")) == in_head
    w.jump(head)
    w.open(done)
    assert w.emit(instruction_of("add i64 %x, 1")) == in_head
    assert w.emit(instruction_of("mul i64 %x, 3")) != inside


def test_memory_is_read_again_after_something_may_have_been_written() -> None:
    module, w = writer()
    first = w.emit(instruction_of("load i64, ptr %p"))
    assert w.emit(instruction_of("load i64, ptr %p")) == first
    w.do(instruction_of("store i64 1, ptr %q"))
    second = w.emit(instruction_of("load i64, ptr %p"))
    assert second != first
    assert w.emit(instruction_of("call i64 @g()")) != w.emit(instruction_of("call i64 @g()"))
    third = w.emit(instruction_of("load i64, ptr %p"))
    assert third not in (first, second)
    w.open(w.label("next"))
    assert w.emit(instruction_of("load i64, ptr %p")) not in (first, second, third)
    w.emit(instruction_of("atomicrmw xchg ptr %p, i64 1 acquire"))
    w.emit(instruction_of("load i64, ptr %p"))
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


def loop(w: FunctionWriter) -> tuple[str, str]:
    """Begin a loop over an index; gives the index and the label of its body."""
    body = w.label("for")
    before = w.block_label
    w.begin_loop()
    w.open(body)
    w.define(*read(f"%{body}.i = phi i64 [ 0, %{before} ], [ %{body}.n, %{body} ]"))
    return f"%{body}.i", body


def end(w: FunctionWriter, body: str) -> None:
    """End the loop."""
    done = w.label("done")
    w.define(*read(f"%{body}.n = add i64 %{body}.i, 1"))
    w.branch(w.emit(instruction_of(f"icmp ne i64 %{body}.n, 9")), body, done)
    w.end_loop()
    w.open(done)


def test_sizes_and_masks_that_a_loop_does_not_change_stand_before_it() -> None:
    module, w = writer()
    outer, first = loop(w)
    row = w.emit(instruction_of(f"mul i64 {outer}, 3"))
    inner, second = loop(w)
    fixed, of_row = w.emit(instruction_of("mul i64 %x, 5")), w.emit(instruction_of(f"add i64 {row}, 7"))
    own = w.emit(instruction_of(f"add i64 {of_row}, {inner}"))
    mask = w.emit(instruction_of("icmp slt <4 x i32> <i32 0, i32 1, i32 2, i32 3>, %bounds"))
    number = w.emit(instruction_of("fadd <4 x float> %a, %b"))
    end(w, second)
    end(w, first)
    w.ret("i64 0")
    w.finish()
    text = str(module)
    places = [text.index(f"{name} = ") for name in (fixed, mask, f"{outer}", of_row, f"{inner}", own)]
    assert places == sorted(places)
    assert text.index(f"{number} = ") > text.index(f"{inner} = ")


def test_what_an_earlier_loop_computed_is_used_after_it() -> None:
    module, w = writer()
    outer, first = loop(w)
    inner, second = loop(w)
    deep = w.emit(instruction_of(f"mul i64 {inner}, 3"))
    end(w, second)
    after = w.emit(instruction_of(f"add i64 {deep}, {outer}"))
    end(w, first)
    w.ret(f"i64 {w.emit(instruction_of(f'add i64 {after}, {deep}'))}")
    w.finish()
    text = str(module)
    assert text.index(f"{deep} = ") < text.index(f"{after} = ")


def test_sizes_have_the_ranges_that_follow_from_those_of_loops() -> None:
    _, w = writer()
    w.ranges["%i"] = 0, 3
    scaled = w.mul("%i", 16)
    assert w.range_of(scaled) == (0, 48)
    assert w.range_of(w.sub(5, scaled)) == (-43, 5)
    assert w.range_of(w.add(scaled, "%x")) is None
    assert w.range_of(w.mul("%i", 1 << 62)) is None


def test_long_parts_are_compiled_apart_and_short_ones_stay() -> None:
    apart: list[tuple[ModuleWriter, bool]] = []
    module = ModuleWriter(compile_apart=lambda part, explicit: apart.append((part, explicit)))
    for name, count in (("short", 1), ("long", LONG // 10)):
        part = module.part()
        w = FunctionWriter(part, name, "void", [("ptr", "p")])
        part.declare("g", "void", ())
        for _ in range(count):
            w.do(instruction_of("call void @g()"))
        w.ret("void")
        w.finish()
        module.add(part, explicit=True)
    assert "@short" in str(module)
    assert "@long" not in str(module)
    ((part, explicit),) = apart
    assert "@long" in str(part)
    assert "declare void @g()" in str(part)
    assert explicit


def test_code_beside_a_module_takes_its_declarations_and_no_hints() -> None:
    beside = ModuleWriter()
    module = ModuleWriter(beside)
    module.declare("g", "void", ())
    w = FunctionWriter(module, "f", "void", [])
    w.do(instruction_of("call void @g()"))
    w.jump("body", f", !llvm.loop {module.add_metadata('!{@self}')}")
    w.finish(beside=True)
    assert not module.has_functions
    assert "declare void @g()" in str(beside)
    assert "br label %body\n}" in str(beside)
