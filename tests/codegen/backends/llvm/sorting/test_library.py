"""The vector code that sorts keys, called by itself: every layout of lanes, orders of keys, sizes around its limits."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Iterator

import llvmlite.binding as llvm
import numpy as np
import pytest

from weft.codegen.backends.llvm.asm.key_vector import KeyVector
from weft.codegen.backends.llvm.asm.module import ModuleWriter
from weft.codegen.backends.llvm.sorting.library import emit_sorts
from weft.codegen.backends.llvm.sorting.network import batcher_exchanges
from weft.codegen.backends.llvm.sorting.writer import GOLDEN, registers
from weft.runtime.device.host import binding, host

pytestmark = pytest.mark.skipif(
    not host().features.get("avx512f") or not host().features.get("avx512vl"), reason="vectors without compress"
)
LAYOUTS = (KeyVector(32, 16), KeyVector(64, 8), KeyVector(32, 8), KeyVector(64, 4))
GUARD = 123


@functools.cache
def code(keys: KeyVector) -> tuple[object, Callable[[str], int]]:
    """The functions of a layout, those that are internal as well; what keeps them, and their addresses."""
    binding()
    module = ModuleWriter()
    emit_sorts(module, keys)
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=1
    )
    parsed = llvm.parse_assembly(str(module).replace("define internal", "define"))
    manager = llvm.create_new_module_pass_manager()
    manager.add_always_inliner_pass()
    manager.run(parsed, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=1)))
    engine = llvm.create_mcjit_compiler(parsed, machine)
    engine.finalize_object()
    return engine, engine.get_function_address


def called(keys: KeyVector, name: str, x: np.ndarray, *more: int, spare: bool = True) -> np.ndarray:
    """What a function makes of keys; memory behind them and behind the spare memory stays as it is."""
    _, address = code(keys)
    held, beside = (np.full(x.size + 64, GUARD, x.dtype) for _ in range(2))
    held[: x.size] = x
    pointers = [array.ctypes.data for array in ((held, beside) if spare else (held,))]
    arguments = [*map(ctypes.c_void_p, pointers), *map(ctypes.c_int64, (x.size, *more))]
    function = ctypes.CFUNCTYPE(None, *(type(each) for each in arguments))(address(f"weft.{name}.{keys.name}"))
    function(*arguments)
    assert (held[x.size :] == GUARD).all()
    assert (beside[x.size :] == GUARD).all()
    return held[: x.size]


PAIRS = (KeyVector(64, 8, True), KeyVector(64, 4, True))


def called_on_pairs(keys: KeyVector, name: str, x: np.ndarray, *more: int) -> tuple[np.ndarray, np.ndarray]:
    """What a function makes of keys and their positions; memory behind all of it stays as it is."""
    _, address = code(keys)
    held = [np.full(x.size + 64, GUARD, dtype) for dtype in (np.uint64, np.uint32) * 2]
    held[0][: x.size], held[1][: x.size] = x, np.arange(x.size)
    arguments = [*(ctypes.c_void_p(array.ctypes.data) for array in held), *map(ctypes.c_int64, (x.size, *more))]
    if name == "sort.heap":
        del arguments[2:4]
    function = ctypes.CFUNCTYPE(None, *(type(each) for each in arguments))(address(f"weft.{name}.{keys.name}"))
    function(*arguments)
    assert all((array[x.size :] == GUARD).all() for array in held)
    return held[0][: x.size], held[1][: x.size]


def orders(keys: KeyVector, size: int) -> Iterator[np.ndarray]:
    """Keys in orders that pivots like and dislike."""
    rng, dtype, most = np.random.default_rng(size), np.dtype(f"uint{keys.bits}"), (1 << keys.bits) - 1
    x = rng.integers(0, most, size, np.uint64, endpoint=True).astype(dtype)
    yield x
    yield np.sort(x)
    yield np.sort(x)[::-1].copy()
    yield x % dtype.type(5)
    yield np.full(size, most, dtype)
    yield np.where(rng.random(size) < 0.7, dtype.type(most), x)
    yield (np.arange(size) % 17).astype(dtype)
    yield from runs(x)


def runs(x: np.ndarray) -> Iterator[np.ndarray]:
    """Keys of which most are in order: some moved to either end, added behind, or two runs, with ties and without."""
    few, third = min(3, x.size), x.size // 3
    for keys in (x, x % x.dtype.type(5)):
        ordered = np.sort(keys)
        yield np.concatenate([ordered[few:], ordered[:few]])
        yield np.concatenate([ordered[x.size - few :], ordered[: x.size - few]])
        yield np.concatenate([ordered[:third], ordered[third + 1 :], ordered[third : third + 1]])[: x.size]
        yield np.concatenate([np.sort(keys[few:]), keys[:few]])
        yield np.concatenate([np.sort(keys[::2]), np.sort(keys[1::2])])
        yield np.concatenate([np.sort(keys[: third + few]), keys[:few], np.sort(keys[third + few :])])[: x.size]


SIZES = (*range(20), 31, 63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 513, 1000, 3001, 4099)


@pytest.mark.parametrize("keys", LAYOUTS, ids=str)
def test_keys_are_sorted_in_place(keys: KeyVector) -> None:
    for size in SIZES:
        for x in orders(keys, size):
            np.testing.assert_array_equal(called(keys, "sort", x), np.sort(x))


@pytest.mark.parametrize("keys", LAYOUTS, ids=str)
def test_the_key_of_a_rank_gets_its_place(keys: KeyVector) -> None:
    for size in SIZES[1:]:
        for x in orders(keys, size):
            for rank in {0, size // 2, size - 1}:
                found = called(keys, "select", x, rank)
                np.testing.assert_array_equal(np.sort(found), np.sort(x))
                assert found[rank] == np.sort(x)[rank]
                assert (found[:rank] <= found[rank]).all()
                assert (found[rank:] >= found[rank]).all()


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_where_pivots_are_bad_a_heap_sorts(depth: int) -> None:
    for keys in LAYOUTS[:2]:
        for x in orders(keys, 3001):
            np.testing.assert_array_equal(called(keys, "sort.parts", x, depth), np.sort(x))
        for size in (0, 1, 2, 3, 100):
            for x in orders(keys, size):
                np.testing.assert_array_equal(called(keys, "sort.heap", x, spare=False), np.sort(x))


@pytest.mark.parametrize("count", [1, 2, 4, *registers(LAYOUTS[0])])
def test_the_exchanges_of_columns_sort_every_pattern_of_zeros_and_ones(count: int) -> None:
    patterns = np.arange(1 << count)[:, None] >> np.arange(count) & 1
    for low, high in batcher_exchanges(count):
        pair = patterns[:, [low, high]]
        patterns[:, low], patterns[:, high] = pair.min(1), pair.max(1)
    assert (np.diff(patterns, axis=1) >= 0).all()


@pytest.mark.parametrize("keys", PAIRS, ids=str)
def test_positions_move_with_their_keys_and_ascend_where_these_are_equal(keys: KeyVector) -> None:
    for size in SIZES:
        for x in orders(keys, size):
            found, positions = called_on_pairs(keys, "sort", x)
            np.testing.assert_array_equal(positions, np.argsort(x, kind="stable"))
            np.testing.assert_array_equal(found, np.sort(x))


def test_a_heap_sorts_pairs_where_pivots_are_bad() -> None:
    for size in (0, 1, 2, 3, 100, 3001):
        for x in orders(PAIRS[0], size):
            for name, *more in (("sort.heap",), ("sort.parts", 1)):
                _, positions = called_on_pairs(PAIRS[0], name, x, *more)
                np.testing.assert_array_equal(positions, np.argsort(x, kind="stable"))


@pytest.mark.parametrize("keys", PAIRS, ids=str)
def test_the_pairs_up_to_a_rank_are_those_of_a_stable_sort(keys: KeyVector) -> None:
    for size in SIZES[1:]:
        for x in orders(keys, size):
            for rank in {0, size // 2, size - 1}:
                found, positions = called_on_pairs(keys, "select", x, rank)
                wanted = np.argsort(x, kind="stable")
                np.testing.assert_array_equal(found, x[positions])
                assert positions[rank] == wanted[rank]
                np.testing.assert_array_equal(np.sort(positions[:rank]), np.sort(wanted[:rank]))


CHUNK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
RUNNER = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)


@RUNNER
def backwards(chunk: int, context: int, first: int, last: int, limit: int) -> None:
    """Does the last part first, so that parts that need each other are found out."""
    for start in reversed(range(first, last, limit)):
        CHUNK(chunk)(context, start, min(start + limit, last))


@pytest.mark.parametrize("keys", [*LAYOUTS[:2], PAIRS[0]], ids=str)
def test_parts_that_threads_share_make_the_same_order(keys: KeyVector) -> None:
    more = (ctypes.cast(backwards, ctypes.c_void_p).value, 0, 3)
    for size in (129, 1000, 3001, 70_000):
        for x in orders(keys, size):
            assert all(word is not None for word in more)
            if keys.has_positions:
                found, positions = called_on_pairs(keys, "sort.shared", x, *more)  # type: ignore[arg-type]
                np.testing.assert_array_equal(positions, np.argsort(x, kind="stable"))
            else:
                found = called(keys, "sort.shared", x, *more)  # type: ignore[arg-type]
            np.testing.assert_array_equal(found, np.sort(x))


NARROW = (KeyVector(16, 32), KeyVector(16, 16)) if host().features.get("avx512vbmi2") else ()
VALUES = tuple(KeyVector(keys.bits, keys.lanes, of_values=True) for keys in (*LAYOUTS, *NARROW))
WIDEST = [keys for keys in VALUES if keys.bits * keys.lanes == 512]
CODES = {"u": (0, 0), "i": (1, 1), "f": (-1, 1)}
"""What negative elements and others are combined with: nothing, the sign (1), all bits (-1)."""


def called_on_values(keys: KeyVector, x: np.ndarray, descending: bool, *more: int) -> np.ndarray:
    """Elements in order in other memory; what is behind that stays as it is, and so do the elements."""
    _, address = code(keys)
    held, before = np.full(x.size + 64, GUARD, x.dtype), x.copy()
    number, top = np.dtype(f"u{x.itemsize}"), 1 << (keys.bits - 1)
    signs = [{0: 0, 1: top, -1: 2 * top - 1}[sign] for sign in CODES[x.dtype.kind]]
    codes = [sign ^ (2 * top - 1) * descending for sign in signs]
    infinity = int(np.array(np.inf, x.dtype).view(number)) if x.dtype.kind == "f" else 0
    kind = {16: ctypes.c_uint16, 32: ctypes.c_uint32, 64: ctypes.c_uint64}[keys.bits]
    arguments = [ctypes.c_void_p(held.ctypes.data), ctypes.c_void_p(x.ctypes.data), ctypes.c_int64(x.size)]
    arguments += [*map(kind, (*codes, infinity)), *map(ctypes.c_int64, more)]
    name = f"weft.sort.values{'.shared' if more else ''}.{keys.name}"
    ctypes.CFUNCTYPE(None, *(type(each) for each in arguments))(address(name))(*arguments)
    np.testing.assert_array_equal(held[x.size :], GUARD)
    np.testing.assert_array_equal(x.view(number), before.view(number))
    return held[: x.size]


def elements(keys: KeyVector, dtype: str, size: int) -> Iterator[np.ndarray]:
    """The bits of keys in many orders as elements of a dtype; floats with zeros and nan of both signs, and without."""
    for x in orders(keys, size):
        found = x.view(dtype)
        if found.dtype.kind != "f":
            yield found
            continue
        special = np.array([np.nan, -np.nan, 0.0, -0.0, 1.0, -np.inf], dtype)
        yield np.nan_to_num(found)
        yield np.where(x % 3 == 0, special[x.astype(np.int64) % 6], found)
        yield np.where(x % 3 == 0, np.abs(special[2:4])[x.astype(np.int64) % 2] * -1, np.nan_to_num(found))


@pytest.mark.parametrize("keys", VALUES, ids=str)
@pytest.mark.parametrize("kind", "uif")
def test_elements_are_sorted_into_other_memory(keys: KeyVector, kind: str) -> None:
    number = f"u{keys.bits // 8}"
    sizes = SIZES if keys in WIDEST else (0, 1, 64, 129, 300, 1000, 4099)
    for size in sizes:
        for position, x in enumerate(elements(keys, f"{kind}{keys.bits // 8}", size)):
            descending = (position + size) % 2 == 1
            order = np.argsort(x, kind="stable")
            if descending:
                order = x.size - 1 - np.argsort(x[::-1], kind="stable")[::-1]
            found = called_on_values(keys, x, descending)
            np.testing.assert_array_equal(found.view(number), x[order].view(number))


@pytest.mark.parametrize("keys", VALUES, ids=str)
def test_runs_are_merged_behind_equal_elements_from_which_others_fall(keys: KeyVector) -> None:
    lanes, number = keys.lanes, f"u{keys.bits // 8}"
    last = np.arange(5, 2 * lanes + 4) % 250
    x = np.concatenate([np.full(125 * lanes, 5), np.full(lanes, 3), [9], np.sort(last)]).astype(number)
    for found in (x, x[::-1].copy()):
        np.testing.assert_array_equal(called_on_values(keys, found, False), np.sort(x))
        np.testing.assert_array_equal(called_on_values(keys, found, True), np.sort(x)[::-1])


def of_few_kinds(keys: KeyVector, size: int) -> Iterator[np.ndarray]:
    """Bits of a few kinds, about as many as are compared or counted; with others late, and all in one slot."""
    rng, dtype = np.random.default_rng(size), np.dtype(f"uint{keys.bits}")
    kinds = (rng.integers(0, (1 << 64) - 1, 300, np.uint64, endpoint=True) >> np.uint64(64 - keys.bits)).astype(dtype)
    kinds[:2] = 0, 1 << (keys.bits - 1)
    for count in (2, 4, 5, 8, 9, 100, 256, 257):
        x = rng.choice(kinds[:count], size)
        yield x
        x = x.copy()
        x[-1] = kinds[-1]
        yield x
        x[size // 2 :] = rng.choice(kinds, size - size // 2)
        yield x
    inverse = pow(GOLDEN >> (64 - keys.bits) | 1, -1, 1 << keys.bits)
    collide = np.array([inverse * kind % (1 << keys.bits) for kind in range(1, 251)], dtype)
    yield rng.choice(collide[:20], size)
    yield rng.choice(collide, size)


@pytest.mark.parametrize("keys", VALUES, ids=str)
@pytest.mark.parametrize("kind", "uif")
def test_elements_of_few_kinds_are_counted(keys: KeyVector, kind: str) -> None:
    number = f"u{keys.bits // 8}"
    for size in (4096, 4099, 9001):
        for position, bits in enumerate(of_few_kinds(keys, size)):
            x, descending = bits.view(f"{kind}{keys.bits // 8}"), position % 2 == 1
            order = np.argsort(x, kind="stable")
            if descending:
                order = x.size - 1 - np.argsort(x[::-1], kind="stable")[::-1]
            found = called_on_values(keys, x, descending)
            np.testing.assert_array_equal(found.view(number), x[order].view(number))


def test_more_elements_than_lanes_count_are_sorted() -> None:
    keys = WIDEST[-1]
    x = np.random.default_rng(0).choice(np.array([0, 1, 5, 77], f"u{keys.bits // 8}"), 32 * 65535 + 4096)
    np.testing.assert_array_equal(called_on_values(keys, x, False), np.sort(x))


@pytest.mark.parametrize("keys", WIDEST, ids=str)
def test_elements_are_sorted_where_pivots_are_bad(keys: KeyVector) -> None:
    _, address = code(keys)
    codes = np.zeros(16, f"u{keys.bits // 8}")
    for depth in (0, 1, 3):
        for x in orders(keys, 3001):
            held = x.copy()
            arguments = held.ctypes.data, x.size, depth, codes.ctypes.data
            parts = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
            parts(address(f"weft.sort.parts.{keys.name}"))(*arguments)
            np.testing.assert_array_equal(held, np.sort(x))


@pytest.mark.parametrize("keys", WIDEST, ids=str)
def test_threads_sort_elements_as_one_does(keys: KeyVector) -> None:
    runner = ctypes.cast(backwards, ctypes.c_void_p).value
    assert runner is not None
    for size in (0, 129, 3001, 70_000):
        for x in elements(keys, f"f{keys.bits // 8}", size):
            found, number = called_on_values(keys, x, False, runner, 0, 3), f"u{keys.bits // 8}"
            np.testing.assert_array_equal(found.view(number), np.sort(x, kind="stable").view(number))
