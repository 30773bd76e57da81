"""What is only concatenated is written in place, in every executor, with the elements that copying gives."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from tests.dataflow import dataflow_module

import weft
from weft.ir import Call, Function, GlobalVar, IRModule, PrimFunc, walk
from weft.ir.attrs import IN_PLACE
from weft.transform.autoschedule.explain import explain
from weft.transform.kernel.buffers.concatenation import as_part, concatenation

PICTURES = (
    'x: R.Tensor(("n", 2, 5, 6), "float32"), v: R.Tensor((6, 2, 1, 1), "float32"), '
    'w: R.Tensor((3, 2, 3, 3), "float32"), u: R.Tensor((3, 2, 3, 3), "float32")'
)
A = "a = R.nn.relu(R.nn.conv2d(x, v))\n"
B = "b = R.nn.relu(R.nn.conv2d(x, w, padding=1))\n"
POOLED = "p = R.nn.max_pool2d(R.nn.conv2d(x, u, padding=1), pool_size=(3, 3), padding=1)\n"
JOINED = f"{A}{B}y = R.concat([a, b], axis=1)"
MATRICES = 'x: R.Tensor(("m", 4), "float32"), v: R.Tensor((4, 33), "float32"), w: R.Tensor((4, 6), "float32")'

IN_PLACE_PROGRAMS: dict[str, tuple[str, str]] = {
    "channels": (PICTURES, JOINED),
    "a part of a part": (
        PICTURES,
        f"{A}{B}{POOLED}c = R.concat([a, b], axis=1)\ny = R.concat([p, c], axis=1)",
    ),
    "then read": (PICTURES, f"{A}{B}c = R.concat([a, b], axis=1)\ny = R.nn.max_pool2d(c, pool_size=(2, 2))"),
    "two of them": (
        PICTURES,
        f"{A}{B}{POOLED}q = R.nn.conv2d(x * x, v)\nc = R.concat([a, b], axis=1)\nd = R.concat([q, p], axis=1)\n"
        "y = R.nn.max_pool2d(c, pool_size=(2, 2)) + R.nn.max_pool2d(d, pool_size=(2, 2))",
    ),
    "columns": (MATRICES, "a = R.matmul(x, v)\nb = R.nn.relu(R.matmul(x, w))\ny = R.concat([a, b], axis=-1)"),
    "rows of known numbers": (
        'x: R.Tensor((5, 4), "float32"), v: R.Tensor((4, 33), "float32"), w: R.Tensor((7, 4), "float32")',
        "a = R.matmul(x, v)\nb = R.nn.relu(R.matmul(w, v))\ny = R.concat([a, b], axis=0)",
    ),
    "one picture": (PICTURES.replace('"n"', "1"), JOINED),
    "halves": (PICTURES.replace("float32", "float16"), JOINED),
    "integers": (
        'x: R.Tensor(("m", 4), "int32"), v: R.Tensor((4, 33), "int32"), w: R.Tensor((4, 6), "int32")',
        "a = R.matmul(x, v)\nb = R.matmul(x, w)\ny = R.concat([b, a], axis=1)",
    ),
}  # fmt: skip

COPIED_PROGRAMS: dict[str, tuple[str, str]] = {
    "a parameter": (PICTURES, f"{A}y = R.concat([a, x], axis=1)"),
    "read again": (
        PICTURES,
        f"{A}{B}c = R.concat([a, b], axis=1)\nd = R.nn.max_pool2d(c, pool_size=(5, 6))\n"
        "y = R.nn.max_pool2d(a, pool_size=(5, 6)) + R.sum(d, axis=1, keepdims=True)",
    ),
    "the same twice": (PICTURES, f"{A}y = R.concat([a, a], axis=1)"),
    "sizes that are not known": (
        'x: R.Tensor(("m", 4), "float32"), v: R.Tensor((4, "k"), "float32"), w: R.Tensor((4, 6), "float32")',
        "a = R.matmul(x, v)\nb = R.matmul(x, w)\ny = R.concat([a, b], axis=1)",
    ),
}  # fmt: skip


def copies(module: IRModule) -> int:
    """How many kernels a module calls that concatenate."""
    called = [node.op.name for node in walk(module) if isinstance(node, Call) and isinstance(node.op, GlobalVar)]
    return sum("concat" in name for name in called)


def arrays(module: IRModule, size: int, seed: int = 0) -> list[np.ndarray]:
    """Inputs in which every unknown size is one number."""
    main, rng = module["main"], np.random.default_rng(seed)
    assert isinstance(main, Function)
    shapes = [[dim if isinstance(dim, int) else size for dim in param.ty.dims] for param in main.params]  # type: ignore[attr-defined]
    return [rng.integers(-4, 5, shape).astype(param.ty.dtype) for shape, param in zip(shapes, main.params, strict=True)]  # type: ignore[attr-defined]


def read(program: tuple[str, str]) -> IRModule:
    return dataflow_module(*program)


@pytest.mark.parametrize("name", IN_PLACE_PROGRAMS)
def test_parts_are_written_where_they_are_concatenated(name: str) -> None:
    module = read(IN_PLACE_PROGRAMS[name])
    assert copies(weft.lower(module, stop="lower")) > 0
    assert copies(weft.lower(module)) == 0
    main = weft.compile(module)["main"]
    for size in (1, 3):
        given = arrays(module, size)
        wanted = np.asarray(weft.interpret(module)["main"](*given))
        np.testing.assert_array_equal(np.asarray(main(*given)), wanted)


@pytest.mark.parametrize("name", COPIED_PROGRAMS)
def test_what_something_else_needs_is_copied(name: str) -> None:
    module = read(COPIED_PROGRAMS[name])
    assert copies(weft.lower(module)) == 1
    given = arrays(module, 3)
    wanted = np.asarray(weft.interpret(module)["main"](*given))
    np.testing.assert_array_equal(np.asarray(weft.compile(module)["main"](*given)), wanted)


@pytest.mark.parametrize("name", ["columns", "rows of known numbers"])
def test_the_interpreter_writes_in_place(name: str) -> None:
    module = read(IN_PLACE_PROGRAMS[name])
    given = arrays(module, 2)
    wanted = np.asarray(weft.interpret(module)["main"](*given))
    np.testing.assert_array_equal(np.asarray(weft.interpret(weft.lower(module))["main"](*given)), wanted)


@pytest.mark.parametrize("executor", ["vm", "graph", "aot"])
def test_every_executor_writes_in_place(executor: str) -> None:
    params, body = IN_PLACE_PROGRAMS["a part of a part"]
    module = dataflow_module(params.replace('"n"', "4"), body)
    given = arrays(module, 4)
    main = weft.compile(module, executor=executor)["main"]
    np.testing.assert_array_equal(np.asarray(main(*given)), np.asarray(weft.interpret(module)["main"](*given)))


def test_the_planned_text_reads_back_as_a_program_of_its_own() -> None:
    module = read(IN_PLACE_PROGRAMS["then read"])
    again = weft.parse(weft.lower(module).script())
    assert isinstance(again, IRModule)
    given = arrays(module, 3)
    wanted = np.asarray(weft.interpret(module)["main"](*given))
    np.testing.assert_array_equal(np.asarray(weft.compile(again)["main"](*given)), wanted)


def test_kernels_say_what_they_write_a_part_of() -> None:
    lowered = weft.lower(read(IN_PLACE_PROGRAMS["channels"]))
    kernels = [f for f in lowered.functions.values() if isinstance(f, PrimFunc)]
    reasons = [str(f.attrs[IN_PLACE]) for f in kernels]
    assert len(reasons) == len(kernels) == 2
    assert reasons[1].endswith("is written from 6 on along axis 1 of 9 where it is concatenated: no copy is made")
    assert [item["reason"] for item in explain(lowered) if item["kind"] == "in_place"] == reasons


def test_random_branches_are_concatenated_as_copies_are() -> None:
    random, copied, whole = Random(0), 0, 0
    for _ in range(3):
        channels = [random.choice((1, 3, 16, 17)) for _ in range(random.randint(2, 4))]
        height, width = random.choice((5, 8, 13)), random.choice((6, 7, 16))
        params = [f'x: R.Tensor(("n", 4, {height}, {width}), "float32")']
        lines: list[str] = []
        for at, count in enumerate(channels):
            kernel = random.choice((1, 3))
            params.append(f'w{at}: R.Tensor(({count}, 4, {kernel}, {kernel}), "float32")')
            made = f"R.nn.conv2d(x, w{at}, padding={kernel // 2})"
            pooled = f"R.nn.max_pool2d({made}, pool_size=(3, 3), padding=1)"
            lines.append(f"p{at} = {random.choice((made, f'R.nn.relu({made})', pooled))}")
        parts = ", ".join(f"p{at}" for at in range(len(channels)))
        module = dataflow_module(", ".join(params), "\n".join((*lines, f"y = R.concat([{parts}], axis=1)")))
        copied, whole = copied + copies(weft.lower(module)), whole + 1
        main = weft.compile(module)["main"]
        for size in (1, 5):
            given = arrays(module, size)
            wanted = np.asarray(weft.interpret(module)["main"](*given))
            np.testing.assert_array_equal(np.asarray(main(*given)), wanted)
    assert copied < whole


KERNEL = """
@T.prim_func
def kernel(a: T.Buffer((n, 2), "float32"), b: T.Buffer((n, 3), "float32"), y: T.Buffer((n, 5), "float32")):
    for i, j in T.grid(n, 5):
        y[i, j] = {value}
"""
CHOICE = "T.if_then_else(j < 2, a[i, j], b[i, j - 2])"


@pytest.mark.parametrize(
    ("value", "parts"),
    [
        (CHOICE, [(0, 0), (1, 2)]),
        ("T.if_then_else(j < 3, b[i, j], a[i, j - 3])", [(1, 0), (0, 3)]),
        ("T.if_then_else(j < 2, a[i, j], b[i, 4 - j])", None),
        ("T.if_then_else(j < 2, a[i, j], T.float32(0))", None),
        ("T.if_then_else(j < 2, a[i, j], b[n - 1 - i, j - 2])", None),
        ("T.if_then_else(j < 2, a[i, j] + T.float32(1), b[i, j - 2])", None),
        ("T.if_then_else(j < 2, a[i, j], b[i, T.min(j, 2)])", None),
    ],
)
def test_kernels_that_concatenate_are_known(value: str, parts: list[tuple[int, int]] | None) -> None:
    kernel = weft.parse(KERNEL.format(value=value).replace("(n,", '("n",'))
    assert isinstance(kernel, PrimFunc)
    found = concatenation(kernel)
    assert (None if found is None else [(part.position, part.start) for part in found.parts]) == parts


VIEWED = """
@T.prim_func
def kernel(x: T.Buffer((3, 6), "float32"), y: T.Buffer((3, 2, 3), "float32")):
    v = T.decl_buffer({shape}, "float32", data=T.address_of(y[0, 0, 0]))
    for i in range(3):
        for j in range(6):
            v[{place}] = x[i, j]
"""


@pytest.mark.parametrize(
    ("shape", "place", "axis", "has_form"),
    [
        ("(3, 6)", "i, j", 1, True),
        ("(3, 6)", "i, j", 2, False),
        ("(18,)", "i * 6 + j", 1, False),
        ("(18,)", "i * 6 + j", 0, True),
        ("(6, 3)", "i * 2 + j // 3, j % 3", 1, False),
        ("(3, 2, 3)", "i, j // 3, j % 3", 2, True),
    ],
)
def test_views_have_the_axes_before_the_concatenated_one(shape: str, place: str, axis: int, has_form: bool) -> None:
    kernel = weft.parse(VIEWED.format(shape=shape, place=place))
    assert isinstance(kernel, PrimFunc)
    sizes = [3, 2, 3]
    total = sizes[axis] + 4
    made = as_part(kernel, 1, axis, 1, total)
    assert (made is not None) == has_form
    if made is None:
        return
    x = np.arange(18, dtype="float32").reshape(3, 6)
    y = np.full([*sizes[:axis], total, *sizes[axis + 1 :]], -1, "float32")
    wanted = y.copy()
    wanted[(*[slice(None)] * axis, slice(1, 1 + sizes[axis]))] = x.reshape(3, 2, 3)
    weft.compile(made)(x, y)
    np.testing.assert_array_equal(y, wanted)
