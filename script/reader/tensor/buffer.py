"""Reading buffers: their declarations, elements, slices and regions."""

from __future__ import annotations

import ast
from typing import Any

from weft.dtypes import Scalable
from weft.ir.kernel.prim import const, lane_count
from weft.ir.structure.structural import structural_equal
from weft.ir.tensor import Binary, Buffer, BufferLoad, BufferRegion, IntImm, PrimExpr, PrimVar, Ramp, Range
from weft.script.forms.reading import TENSOR
from weft.script.forms.syntax import BUFFERS
from weft.script.reader.expression.arguments import bind_arguments
from weft.script.reader.expression.names import dotted_name
from weft.script.reader.expression.operators import apply_binary
from weft.script.reader.expression.values import element_of_container
from weft.script.reader.scope import describe
from weft.script.reader.tensor.scalar import address_of_data, as_index, as_prim, as_side, extent_of
from weft.script.reader.tensor.session import TensorSession

__all__ = [
    "as_region",
    "bind_buffer",
    "buffer_expression",
    "difference_of",
    "element_of_buffer",
    "make_buffer",
    "name_offset",
    "read_indices",
    "read_pointer",
    "read_region",
    "read_regions",
]

# What may follow the shape and dtype of a buffer by position.
_PLACES = (
    "data",
    "strides",
    "elem_offset",
    "scope",
    "align",
    "offset_factor",
    "buffer_type",
    "axis_separators",
)
_BUFFER_TYPES = ("", "auto", "auto_broadcast", "default")


def element_of_buffer(session: TensorSession, base: Any, tree: ast.Subscript) -> Any:
    """An element of a buffer (a load), a slice of one (a region), or of a plain container."""
    if not isinstance(base, Buffer):
        return element_of_container(session, base, tree)
    indices = read_indices(session, base, tree)
    if any(isinstance(index, Range) for index in indices):
        region = tuple(index if isinstance(index, Range) else Range(extent_of(index), 1) for index in indices)
        return BufferRegion(base, region, span=session.span(tree))
    return BufferLoad(base, tuple(indices), span=session.span(tree))  # type: ignore[arg-type]


def read_indices(session: TensorSession, buffer: Buffer, tree: ast.Subscript) -> list[PrimExpr | Range]:
    """The indices of a subscript; W121 when their number is not the buffer's rank."""
    trees = tree.slice.elts if isinstance(tree.slice, ast.Tuple) else [tree.slice]
    result: list[PrimExpr | Range] = []
    for item in trees:
        if isinstance(item, ast.Starred):
            spread = session.value(item.value)
            if not isinstance(spread, (tuple, list)):
                raise session.fail("W115", "only tuples known while reading can be spread with *", item)
            result.extend(as_index(session, value, item) for value in spread)
        elif isinstance(item, ast.Slice):
            result.append(_slice(session, buffer, len(result), item))
        else:
            value = session.value(item)
            parts = value if isinstance(value, (tuple, list)) else [value]
            result.extend(as_index(session, part, item) for part in parts)
    if len(result) != buffer.ndim:
        shape = ", ".join(str(e) if isinstance(e, int) else getattr(e, "name", "...") for e in buffer.shape)
        raise session.fail(
            "W121",
            f"'{buffer.name}' has {buffer.ndim} dimension{'s' * (buffer.ndim != 1)} ({shape}), "
            f"got {len(result)} ind{'ex' if len(result) == 1 else 'ices'}",
            tree,
        )
    return result


def _slice(session: TensorSession, buffer: Buffer, axis: int, tree: ast.Slice) -> PrimExpr | Range:
    start: Any = session.value(tree.lower) if tree.lower is not None else 0
    if tree.upper is not None:
        stop: Any = session.value(tree.upper)
    elif axis < buffer.ndim:
        stop = buffer.shape[axis]
    else:
        stop = 0
    if tree.step is not None:
        step = session.constant(tree.step)
        if type(step) is not int:
            raise session.fail("W114", f"the step of a slice is an integer, got {describe(step)}", tree.step)
        if isinstance(start, int) and isinstance(stop, int) and stop <= start:
            raise session.fail("W124", f"the slice {start}:{stop} is empty", tree)
        if step <= 0:
            raise session.fail("W124", f"the step of a slice is positive, got {step}", tree)
        if step != 1:
            lanes = lane_count(difference_of(session, start, stop, tree))
            if isinstance(lanes, Scalable) and int(lanes) % step:
                raise session.fail("W123", "the step of a scalable slice divides its length", tree)
            if isinstance(lanes, Scalable):
                base = as_index(session, start, tree)
                return Ramp(base, const(step, base.dtype), Scalable(int(lanes) // step))
            if lanes is None:
                raise session.fail("W123", "a slice with a step has constant bounds", tree)
            base = as_index(session, start, tree)
            return Ramp(base, const(step, base.dtype), -(-lanes // step))
    if isinstance(start, int) and isinstance(stop, int) and stop < start:
        raise session.fail("W124", f"the slice {start}:{stop} goes backwards", tree)
    extent = difference_of(session, start, stop, tree)
    return Range(extent_of(as_side(session, start, tree)), extent_of(extent), span=None)


def difference_of(session: TensorSession, start: Any, stop: Any, tree: ast.AST) -> Any:
    """stop - start, plain where both are."""
    low, high = (side.value if isinstance(side, IntImm) else side for side in (start, stop))
    if isinstance(low, int) and isinstance(high, int):
        return high - low
    if isinstance(low, int) and low == 0:
        return as_side(session, stop, tree)
    if isinstance(stop, Binary) and stop.kind == "add" and _same_expr(start, stop.a):
        return stop.b.value if isinstance(stop.b, IntImm) else stop.b
    return apply_binary(session, "sub", stop, start, tree)


def buffer_expression(session: TensorSession, tree: ast.expr, name: str, place: ast.AST) -> Buffer | None:
    """`T.Buffer(...)` or `T.Buffer[...]` as a buffer, or None for another expression."""
    if isinstance(tree, ast.Subscript) and dotted_name(session, tree.value) == "T.Buffer":
        elements = tree.slice.elts if isinstance(tree.slice, ast.Tuple) else [tree.slice]
        tree = ast.copy_location(ast.Call(tree.value, list(elements), []), tree)
    if not isinstance(tree, ast.Call) or dotted_name(session, tree.func) != "T.Buffer":
        return None
    values = bind_buffer(session, "T.Buffer", tree)
    if session.defining:
        name_offset(session, values, name, place)
    return make_buffer(session, values, name, place)


def name_offset(session: TensorSession, values: dict[str, Any], name: str, place: ast.AST) -> None:
    """Where a buffer of the caller starts is not known while reading when it says what divides that number.

    A symbol stands for it where the text reads it (`A.elem_offset`).
    """
    if name in session.offsets_read and values.get("offset_factor") and values.get("elem_offset") is None:
        shape = values["shape"]
        dtype = shape[0].dtype if shape and isinstance(shape[0], PrimExpr) else "int32"
        values["elem_offset"] = PrimVar(f"{name}_elem_offset", dtype, span=session.span(place))


def bind_buffer(session: TensorSession, name: str, tree: ast.Call) -> dict[str, Any]:
    """The holes of a buffer form; what only other compilers act on is checked for its kind and left out."""
    kept: list[ast.keyword] = []
    plain = len(BUFFERS[name].positional)
    more = tree.args[plain:]
    if 0 < len(more) <= len(_PLACES):  # by position, in the order of TVM
        named = [ast.copy_location(ast.keyword(*pair), pair[1]) for pair in zip(_PLACES, more, strict=False)]
        tree = ast.copy_location(ast.Call(tree.func, tree.args[:plain], [*named, *tree.keywords]), tree)
    for keyword in tree.keywords:
        if keyword.arg == "buffer_type" and session.constant(keyword.value) not in _BUFFER_TYPES:
            raise session.fail("W114", "the type of a buffer is default or auto_broadcast", keyword.value)
        if keyword.arg not in ("buffer_type", "layout"):
            kept.append(keyword)
    values = bind_arguments(session, BUFFERS[name], ast.copy_location(ast.Call(tree.func, tree.args, kept), tree))
    if values.get("dtype") == "void":
        given = [word.value for word in tree.keywords if word.arg == "dtype"] or tree.args[1:2] or [tree]
        raise session.fail("W301", "a buffer of void has no elements", given[0])
    for size in values.get("shape") or ():
        if isinstance(size, int) and size < 0:
            raise session.fail("W114", f"a size cannot be negative, got {size}", tree)
    return values


def make_buffer(session: TensorSession, values: dict[str, Any], name: str, place: ast.AST) -> Buffer:
    """A buffer from the holes that all buffer forms share."""
    separators = values.get("axis_separators", ())
    return session.fold(
        lambda: Buffer(
            name,
            values["shape"],
            values["dtype"],
            values.get("scope", "global"),
            values.get("strides"),
            values.get("elem_offset"),
            values.get("data"),
            values.get("align", 0),
            values.get("offset_factor", 0),
            tuple(separators),
            span=session.span(place),
        ),
        place,
    )


@TENSOR.hole("region")
def read_region(session: TensorSession, tree: ast.expr) -> Any:
    """The source of a match_buffer: a handle, a buffer, an element or a slice of one."""
    return session.value(tree)


@TENSOR.hole("regions")
def read_regions(session: TensorSession, tree: ast.expr) -> BufferRegion | tuple[BufferRegion, ...]:
    """Regions in T.reads and T.writes."""
    value = session.value(tree)
    if isinstance(value, (tuple, list)):
        return tuple(as_region(session, item, tree) for item in value)
    return as_region(session, value, tree)


def as_region(session: TensorSession, value: Any, tree: ast.AST) -> BufferRegion:
    """A value as a box of a buffer."""
    if isinstance(value, BufferRegion):
        return value
    if isinstance(value, BufferLoad):
        if any(isinstance(index, Ramp) for index in value.indices):
            raise session.fail("W123", "a region has no steps", tree)
        return BufferRegion(
            value.buffer, tuple(Range(extent_of(index), 1) for index in value.indices), span=session.span(tree)
        )
    if isinstance(value, Buffer):
        return BufferRegion(value, tuple(Range(0, extent) for extent in value.shape), span=session.span(tree))
    raise session.fail("W114", f"expected a region of a buffer, got {describe(value)}", tree)


@TENSOR.hole("pointer")
def read_pointer(session: TensorSession, tree: ast.expr) -> PrimExpr:
    """The data of a buffer declaration."""
    value = session.value(tree)
    made = address_of_data(session, value, tree) if isinstance(value, Buffer) else as_prim(session, value, tree)
    if made.dtype != "handle":
        raise session.fail("W114", f"expected a pointer, got {made.dtype}", tree, "such as the `data` of a buffer")
    return made


def _same_expr(a: Any, b: PrimExpr) -> bool:
    """Whether two expressions are built alike of the same variables."""
    if isinstance(a, int):
        return isinstance(b, IntImm) and a == b.value
    return a is b or (isinstance(a, PrimExpr) and structural_equal(a, b))
