"""Store forwarding: loads that are not needed since memory is known, and those that something forbids to leave out."""

from __future__ import annotations

import pytest
from tests.codegen.backends.llvm.asm.assembly import instruction_of
from tests.codegen.backends.llvm.asm.assembly import read as record

from weft.codegen.backends.llvm.asm.function import FunctionWriter
from weft.codegen.backends.llvm.asm.module import ModuleWriter
from weft.codegen.backends.llvm.asm.store_forwarding import StoreForwarding
from weft.codegen.backends.llvm.asm.types import bytes_of

NOALIAS = "ptr noalias nocapture"


def writer() -> FunctionWriter:
    """A function of two buffers that are apart, two that need not be, and a pointer."""
    params = [(NOALIAS, "a"), (NOALIAS, "b"), ("ptr", "p"), ("ptr", "q")]
    return FunctionWriter(ModuleWriter(), "f", "void", params)


def at(w: FunctionWriter, base: str, index: int | str, element: str = "float") -> str:
    """The address of an element."""
    return w.emit(instruction_of(f"getelementptr {element}, ptr {base}, i64 {index}"))


def read(w: FunctionWriter, pointer: str, ty: str = "float") -> str:
    """A load."""
    return w.emit(instruction_of(f"load {ty}, ptr {pointer}, align 4"))


def write(w: FunctionWriter, pointer: str, value: str = "1.0", ty: str = "float") -> None:
    """A store."""
    w.do(instruction_of(f"store {ty} {value}, ptr {pointer}, align 4"))


def test_what_was_stored_is_what_a_load_gives() -> None:
    w = writer()
    write(w, at(w, "%a", 3), "%x")
    assert read(w, at(w, "%a", 3)) == "%x"
    write(w, "%p", "%v", "<4 x float>")
    assert read(w, "%p", "<4 x float>") == "%v"
    write(w, "%a", "splat (float 0x3FF0000000000000)", "<4 x float>")
    assert read(w, "%a", "<4 x float>") == "splat (float 0x3FF0000000000000)"


def test_another_type_is_read_from_memory() -> None:
    w = writer()
    write(w, "%a", "%x")
    assert read(w, "%a", "i32") != "%x"


def test_a_store_changes_what_it_overlaps() -> None:
    w = writer()
    whole = read(w, "%a", "<4 x float>")
    low, high = read(w, "%a"), read(w, at(w, "%a", 4))
    write(w, at(w, "%a", 3), "%x")
    assert read(w, "%a", "<4 x float>") != whole
    assert read(w, "%a") == low
    assert read(w, at(w, "%a", 4)) == high
    write(w, at(w, "%a", 1), "%v", "<4 x float>")
    assert read(w, "%a") == low
    assert read(w, at(w, "%a", 3)) != "%x"
    assert read(w, at(w, "%a", 4)) != high


def test_a_store_at_an_offset_that_is_not_known_changes_all_of_its_buffer() -> None:
    w = writer()
    first = read(w, "%a")
    write(w, at(w, "%a", "%i"), "%x")
    again = read(w, "%a")
    assert again != first
    assert read(w, at(w, "%a", "%i")) == "%x"
    write(w, "%a", "%y")
    assert read(w, at(w, "%a", "%i")) != "%x"


def test_offsets_from_one_place_are_told_apart() -> None:
    w = writer()
    place = at(w, "%a", "%i")
    first = read(w, place)
    write(w, at(w, place, 1), "%x")
    assert read(w, place) == first
    assert read(w, at(w, place, 1)) == "%x"


def test_bytes_count_and_not_elements() -> None:
    w = writer()
    write(w, at(w, "%a", 8, "i8"), "%x", "i64")
    assert read(w, at(w, "%a", 1, "i64"), "i64") == "%x"
    write(w, at(w, "%a", 15, "i8"), "%y", "i8")
    assert read(w, at(w, "%a", 1, "i64"), "i64") != "%x"


def test_buffers_that_are_apart_keep_what_is_known() -> None:
    w = writer()
    own = w.alloca("i8", 64)
    kept, mine = read(w, "%a"), read(w, own)
    write(w, "%b", "%x")
    assert read(w, "%a") == kept
    assert read(w, own) == mine
    write(w, own, "%y")
    assert read(w, "%a") == kept
    assert read(w, "%b") == "%x"


def test_parameters_that_may_overlap_change_each_other() -> None:
    w = writer()
    first = read(w, "%p")
    write(w, "%q", "%x")
    assert read(w, "%p") != first


def test_a_pointer_of_unknown_origin_may_point_anywhere() -> None:
    w = writer()
    own = w.alloca("i8", 64)
    found = w.emit(instruction_of("load ptr, ptr %p"))
    before = read(w, own), read(w, "%a"), read(w, "%p")
    there = read(w, found)
    write(w, found, "%x")
    assert not {*before} & {read(w, own), read(w, "%a"), read(w, "%p")}
    write(w, own, "%y")
    assert read(w, found) not in (there, "%x")


def test_calls_may_change_anything_and_prefetches_nothing() -> None:
    w = writer()
    first = read(w, "%a")
    w.do(instruction_of("call void @llvm.prefetch.p0(ptr %a, i32 0, i32 2, i32 1)"))
    assert read(w, "%a") == first
    w.do(instruction_of("call void @f(ptr %q)"))
    assert read(w, "%a") != first


def test_a_masked_store_changes_its_buffer_only() -> None:
    w = writer()
    mine, other = read(w, "%a"), read(w, "%b")
    w.do(instruction_of("call void @llvm.masked.store.v4f32.p0(<4 x float> %v, ptr %a, i32 4, <4 x i1> %m)"))
    assert read(w, "%a") != mine
    assert read(w, "%b") == other


def test_what_is_known_ends_with_the_block() -> None:
    w = writer()
    first = read(w, "%a")
    w.open(w.label("next"))
    assert read(w, "%a") != first


STORED = "store float %x, ptr %a, align 4"


def known_after(*lines: str) -> str | None:
    """What the pass alone says of a load from %a after some instructions."""
    memory = StoreForwarding()
    memory.root("%a", alone=True)
    memory.root("%b", alone=True)
    for pointer in ("%p", "%q"):
        memory.root(pointer, alone=False)
    for line in lines:
        memory.apply(*record(line))
    return memory.find(instruction_of("load float, ptr %a, align 4"))


@pytest.mark.parametrize(
    "line",
    [
        "%1 = load float, ptr %b, align 4",
        "store float %y, ptr %b, align 4",
        "store float %y, ptr %p, align 4",
        "%1 = fdiv float %x, %y",
        "%1 = getelementptr float, ptr %a, i64 %i",
        "%1 = phi i64 [ 0, %body ], [ %2, %for.1 ]",
        "%1 = call float @llvm.fma.f32(float %x, float %y, float %z)",
        "%1 = call <4 x float> @llvm.masked.load.v4f32.p0(ptr %a, i32 4, <4 x i1> %m, <4 x float> zeroinitializer)",
        "call void @llvm.prefetch.p0(ptr %a, i32 0, i32 2, i32 1)",
        "call void @llvm.masked.store.v4f32.p0(<4 x float> %v, ptr %b, i32 4, <4 x i1> %m)",
    ],
)
def test_memory_stays_known_past_what_does_not_change_it(line: str) -> None:
    assert known_after(STORED, line) == "%x"


@pytest.mark.parametrize(
    "line",
    [
        "store float %y, ptr %unknown, align 4",
        "store <2 x float> %v, ptr %a, align 4",
        "store i1 true, ptr %b, align 1",
        "store volatile float %y, ptr %b, align 4",
        "store atomic i64 0, ptr %q release, align 8",
        "%1 = load volatile float, ptr %b, align 4",
        "%1 = load atomic i64, ptr %q acquire, align 8",
        "%1 = atomicrmw xchg ptr %q, i64 1 acquire",
        "call void @f(ptr %q)",
        "%1 = call i32 %callback(ptr %frame)",
        "call void @llvm.memcpy.p0.p0.i64(ptr %a, ptr %b, i64 8, i1 false)",
        "call void @llvm.masked.store.v4f32.p0(<4 x float> %v, ptr %a, i32 4, <4 x i1> %m)",
        "call void @llvm.masked.store.v4f32.p0(<4 x float> %v, ptr %unknown, i32 4, <4 x i1> %m)",
    ],
)
def test_memory_is_not_known_past_what_may_change_it(line: str) -> None:
    assert known_after(STORED, line) is None


def test_a_volatile_load_is_never_left_out() -> None:
    memory = StoreForwarding()
    memory.root("%a", alone=True)
    memory.apply(*record(STORED))
    assert memory.find(instruction_of("load volatile float, ptr %a, align 4")) is None


def test_atomic_and_odd_stores_leave_nothing_known() -> None:
    w = writer()
    first = read(w, "%a")
    w.do(instruction_of("store atomic i64 0, ptr %q release, align 8"))
    second = read(w, "%a")
    w.do(instruction_of("store i1 true, ptr %b, align 1"))
    assert len({first, second, read(w, "%a")}) == 3


def test_bytes_of_types() -> None:
    assert [bytes_of(ty) for ty in ("i8", "half", "float", "double", "ptr", "<3 x float>")] == [1, 2, 4, 8, 8, 12]
    assert bytes_of("i1") is None
    assert bytes_of("{ i64, i1 }") is None
