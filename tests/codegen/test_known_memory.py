"""What is known of memory while a function is written: loads that are not needed, and those that are."""

from __future__ import annotations

from weft.codegen.backends.llvm.asm.asm import FunctionWriter, ModuleWriter
from weft.codegen.backends.llvm.asm.store_forwarding import bytes_of

NOALIAS = "ptr noalias nocapture"


def writer() -> FunctionWriter:
    """A function of two buffers that are apart, two that need not be, and a pointer."""
    params = [(NOALIAS, "a"), (NOALIAS, "b"), ("ptr", "p"), ("ptr", "q")]
    return FunctionWriter(ModuleWriter(), "f", "void", params)


def at(w: FunctionWriter, base: str, index: int | str, element: str = "float") -> str:
    """The address of an element."""
    return w.emit(f"getelementptr {element}, ptr {base}, i64 {index}")


def read(w: FunctionWriter, pointer: str, ty: str = "float") -> str:
    """A load."""
    return w.emit(f"load {ty}, ptr {pointer}, align 4")


def write(w: FunctionWriter, pointer: str, value: str = "1.0", ty: str = "float") -> None:
    """A store."""
    w.do(f"store {ty} {value}, ptr {pointer}, align 4")


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
    found = w.emit("load ptr, ptr %p")
    before = read(w, own), read(w, "%a"), read(w, "%p")
    there = read(w, found)
    write(w, found, "%x")
    assert not {*before} & {read(w, own), read(w, "%a"), read(w, "%p")}
    write(w, own, "%y")
    assert read(w, found) not in (there, "%x")


def test_calls_may_change_anything_and_prefetches_nothing() -> None:
    w = writer()
    first = read(w, "%a")
    w.do("call void @llvm.prefetch.p0(ptr %a, i32 0, i32 2, i32 1)")
    assert read(w, "%a") == first
    w.do("call void @f(ptr %q)")
    assert read(w, "%a") != first


def test_a_masked_store_changes_its_buffer_only() -> None:
    w = writer()
    mine, other = read(w, "%a"), read(w, "%b")
    w.do("call void @llvm.masked.store.v4f32.p0(<4 x float> %v, ptr %a, i32 4, <4 x i1> %m)")
    assert read(w, "%a") != mine
    assert read(w, "%b") == other


def test_what_is_known_ends_with_the_block() -> None:
    w = writer()
    first = read(w, "%a")
    w.open(w.label("next"))
    assert read(w, "%a") != first


def test_atomic_and_odd_stores_leave_nothing_known() -> None:
    w = writer()
    first = read(w, "%a")
    w.do("store atomic i64 0, ptr %q release, align 8")
    second = read(w, "%a")
    w.do("store i1 true, ptr %b, align 1")
    assert len({first, second, read(w, "%a")}) == 3


def test_bytes_of_types() -> None:
    assert [bytes_of(ty) for ty in ("i8", "half", "float", "double", "ptr", "<3 x float>")] == [1, 2, 4, 8, 8, 12]
    assert bytes_of("i1") is None
    assert bytes_of("{ i64, i1 }") is None
