"""Products as commands: a loop over tiles as the machine would do them one by one, and what weft's passes make of it.

    for t in range(tiles):                                load a, b (0)
        a, b, c = memory of the machine                   load a, b (1); multiply a, b (0)
        with T.block("load"): npu_load, npu_load      ->  load a, b (2); multiply a, b (1); store c (0)
        with T.block("multiply"): npu_multiply            load a, b (3); multiply a, b (2); store c (1)
        with T.block("store"): npu_store                  ...

Two tiles of an operand: `InjectDoubleBuffer` gives a and b two versions and lets the loads run ahead, so that the
machine copies the next tiles while it multiplies these. More: the loop says how far ahead they run (`_stages`), and
`InjectSoftwarePipeline` does that; sums that one multiplication makes get a second place too, and are stored while the
next ones are made. Then the loop is gone through once, which makes a straight line of commands of it.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, prod
from typing import Any

import numpy as np

import weft
from weft import ir
from weft.ir.tensor import AllocBuffer, Binary, Block, Evaluate, For, IfThenElse, IntImm, PrimCall, PrimVar, SeqStmt
from weft.transform import InjectDoubleBuffer, InjectSoftwarePipeline

__all__ = ["Product", "commands", "loop"]

SRAM = "npu.sram"
_KERNEL = """
@T.prim_func(private=True)
def tiled({params}):
    {before_loop}for t in T.serial({count}, annotations={stages}):
        a = T.alloc_buffer(({left},), "int8", scope="{sram}")
        b = T.alloc_buffer(({right},), "int8", scope="{sram}")
        {in_loop}with T.block("load"):
            T.reads({reads})
            T.writes({filled})
            T.block_attr({attributes})
{before}            T.evaluate(T.call_extern("int32", "npu_load", {a_at}, T.address_of(a[0]), {m}, {depth}, {inner}))
            T.evaluate(T.call_extern("int32", "npu_load", {b_at}, T.address_of(b[0]), {depth}, {n}, {columns}))
        with T.block("multiply"):
            T.reads(a[0:{left}], b[0:{right}], c[0:{cells}])
            T.writes(c[0:{cells}])
            T.evaluate(T.call_extern(
                "int32", "npu_multiply", T.address_of(a[0]), T.address_of(b[0]), T.address_of(c[0]),
                {m}, {depth}, {n}, T.if_then_else({k} > 0, 1, 0)
            ))
        with T.block("store"):
            T.reads(c[0:{cells}])
            T.writes({written})
            if {k} + {depth} == {inner}:
                T.evaluate(T.call_extern("int32", "npu_store", T.address_of(c[0]), {c_at}, {m}, {n}, {columns}))
"""
_SUMS = 'c = T.alloc_buffer(({cells},), "int32", scope="{sram}")\n{indent}'


@dataclass(frozen=True)
class Product:
    """Products of matrices of one size: `shapes` are those of all arguments, `names` of left, right and result.

    `windows` is a command that comes before each but its first argument, the place of an image; `images` of them.
    """

    shapes: Mapping[str, tuple[int, ...]]
    names: tuple[str, str, str]
    rows: int
    inner: int
    columns: int
    images: int = 1
    windows: str = ""


def commands(product: Product, array: int, sram: int, buffers: int) -> ir.PrimFunc:
    """The kernel of a product for a machine: one command after another."""
    kernel: Any = weft.parse(loop(product, array, sram, buffers))
    kernel = InjectSoftwarePipeline()(InjectDoubleBuffer()(ir.IRModule({"tiled": kernel})))["tiled"]
    offsets = _offsets(kernel)
    body = SeqStmt(tuple(_commands(kernel.body, offsets, {})))
    return ir.replace(kernel, name="npu_kernel", body=body)


def _commands(stmt: Any, offsets: Mapping[Any, int], values: dict[Any, int]) -> Iterator[Evaluate]:
    """The commands of a statement in the order in which it runs them."""
    if isinstance(stmt, SeqStmt):
        for part in stmt.stmts:
            yield from _commands(part, offsets, values)
    elif isinstance(stmt, For):
        start, extent = _value(stmt.start, values), _value(stmt.extent, values)
        for number in range(start, start + extent):
            yield from _commands(stmt.body, offsets, {**values, stmt.loop_var: number})
    elif isinstance(stmt, Block):
        yield from _commands(stmt.body, offsets, values)
    elif isinstance(stmt, IfThenElse) and _value(stmt.condition, values):
        yield from _commands(stmt.then_body, offsets, values)
    elif isinstance(stmt, Evaluate):
        call: Any = stmt.value
        name, *args = call.args
        yield Evaluate(ir.replace(call, args=(name, *(_argument(arg, offsets, values) for arg in args))))


_BINARY = {
    **{name: getattr(operator, name) for name in ("add", "sub", "mul", "floordiv", "eq", "gt")},
    **{"floormod": operator.mod, "min": min, "max": max},
}


def _value(expr: Any, values: Mapping[Any, int]) -> int:
    """The number that an expression is."""
    if isinstance(expr, int):
        return expr
    if isinstance(expr, PrimVar):
        return values[expr]
    if isinstance(expr, Binary):
        return _BINARY[expr.kind](_value(expr.a, values), _value(expr.b, values))
    if isinstance(expr, PrimCall):
        condition, a, b = expr.args
        return _value(a if _value(condition, values) else b, values)
    return expr.value


def _room(inner: int, array: int, sram: int, buffers: int) -> tuple[int, int, bool]:
    """How many tiles of an operand there are, how long each is, and whether sums have a second place."""
    left = [(sram - count * 4 * array * array) // (2 * array) for count in (1, 2)]
    if buffers > 2 and left[1] >= buffers * inner:
        return buffers, inner, True
    buffers = min(buffers, left[0])
    return buffers, max(1, min(inner, left[0] // buffers)), False


def _stages(buffers: int, alone: bool) -> dict[str, list[int]]:
    """How many iterations multiplying and storing are behind loading; none for what `InjectDoubleBuffer` does."""
    return {"software_pipeline_stage": [0, buffers - 1, buffers - 1 + alone]} if buffers > 2 else {}


def loop(product: Product, array: int, sram: int, buffers: int) -> str:
    """The kernel as a loop over tiles, before anything of it runs ahead."""
    shapes, (left, right, result) = product.shapes, product.names
    rows, inner, columns = product.rows, product.inner, product.columns
    buffers, step, alone = _room(inner, array, sram, buffers)
    down, across, deep = ceil(rows / array), ceil(columns / array), ceil(inner / step)
    tiles = down * across * deep
    i, j, k = f"t // {across * deep} % {down} * {array}", f"t // {deep} % {across} * {array}", f"t % {deep} * {step}"
    whole = {name: f"{name}[{', '.join(f'0:{size}' for size in shape)}]" for name, shape in shapes.items()}
    image, before = f"t // {tiles}", ""
    if product.windows:
        size = prod(shapes["x"]) // product.images
        call = product.windows.format(_at("x", shapes["x"], f"{image} * {size}"))
        before = f'            if t % {tiles} == 0:\n                T.evaluate(T.call_extern("int32", {call}))\n'
    filled = [f"a[0:{array * step}]", f"b[0:{step * array}]", *([whole["windows"]] if before else ())]
    sums = [_SUMS.format(cells=array * array, sram=SRAM, indent=" " * 4 * depth) for depth in (1, 2)]
    return _KERNEL.format(
        stages=_stages(buffers, alone),
        before_loop="" if alone else sums[0],
        in_loop=sums[1] if alone else "",
        params=", ".join(
            f'{name}: T.Buffer({shape}, "{"int32" if name == result else "int8"}")' for name, shape in shapes.items()
        ),
        sram=SRAM,
        count=product.images * tiles,
        cells=array * array,
        left=array * step,
        right=step * array,
        reads=", ".join(text for name, text in whole.items() if name != result),
        filled=", ".join(filled),
        written=whole[result],
        attributes={"double_buffer_scope": 0} if buffers == 2 else {},
        before=before,
        a_at=_at(left, shapes[left], f"({i}) * {inner} + ({k})"),
        b_at=_at(right, shapes[right], f"({k}) * {columns} + ({j})"),
        c_at=_at(result, shapes[result], f"{image} * {rows * columns} + ({i}) * {columns} + ({j})"),
        m=f"T.min({array}, {rows} - ({i}))",
        n=f"T.min({array}, {columns} - ({j}))",
        depth=f"T.min({step}, {inner} - ({k}))",
        k=f"({k})",
        inner=inner,
        columns=columns,
    )


def _at(name: str, shape: Sequence[int], offset: str) -> str:
    """The address of an element, counted in the order of memory."""
    steps = [prod(shape[place + 1 :]) for place in range(len(shape))]
    indices = [f"({offset}) // {step} % {size}" for step, size in zip(steps, shape, strict=True)]
    return f"T.address_of({name}[{', '.join(indices)}])"


def _offsets(kernel: ir.PrimFunc) -> dict[Any, int]:
    """Where each buffer of the machine's memory starts: one after the other, sums first."""
    offsets, end = dict[Any, int](), 0
    for node in ir.walk(kernel.body):
        if isinstance(node, AllocBuffer):
            offsets[node.buffer] = end
            end += _bytes(node.buffer, prod(node.buffer.shape))
    return offsets


def _bytes(buffer: Any, count: Any) -> int:
    return int(count) * np.dtype(buffer.dtype).itemsize


def _argument(arg: Any, offsets: Mapping[Any, int], values: Mapping[Any, int]) -> Any:
    """A number, an address of the host, or an offset in the machine's memory."""
    if not (isinstance(arg, PrimCall) and arg.op == "address_of"):
        return IntImm(_value(arg, values), "int32")
    load: Any = arg.args[0]
    places = [_value(index, values) for index in load.indices]
    if load.buffer not in offsets:
        indices = tuple(IntImm(place, "int32") for place in places)
        return ir.replace(arg, args=(ir.replace(load, indices=indices),))
    return IntImm(offsets[load.buffer] + _bytes(load.buffer, np.ravel_multi_index(places, load.buffer.shape)), "int32")
