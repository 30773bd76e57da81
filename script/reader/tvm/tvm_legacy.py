"""Reading spellings of TVM's first releases, in today's terms.

with T.block([16, T.reduce_axis(0, 16)], "C") as [vi, vk]:    block variables at the head, bound by `T.bind(vi, i)`,
                                                              or to the loops around, or to loops of their own
T.load("float32", p, i)    T.store(p, i, value)               elements of the memory behind a pointer
B = T.buffer_decl((16,))   T.realize(B[0:16], "shared")       memory for a declared buffer
with T.let(x, 4):                                             a value for a declared variable
A = T.match_buffer(a, (4,), elem_offset=T.var("int32"))       a symbol without a name
"""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from typing import Any

from weft import dtypes
from weft.ir.node import replace
from weft.ir.tensor import (
    AllocBuffer,
    Bind,
    Buffer,
    BufferLoad,
    BufferRegion,
    BufferStore,
    DeclBuffer,
    Extent,
    IntImm,
    IterVar,
    PrimCall,
    PrimExpr,
    PrimVar,
    Stmt,
)
from weft.script.forms.defaults import axis_dtype
from weft.script.forms.reading import TENSOR
from weft.script.reader.expression.names import dotted_name
from weft.script.reader.expression.operators import apply_binary
from weft.script.reader.scope import Scope, describe
from weft.script.reader.tensor.binding import bind_variable
from weft.script.reader.tensor.block import add_axis, axis_domain, block_header, extent_between
from weft.script.reader.tensor.declaration import read_match_buffer
from weft.script.reader.tensor.intrinsic import plain_values, stated_dtype
from weft.script.reader.tensor.scalar import (
    address_of_data,
    as_bool,
    as_index,
    as_prim,
    extent_of,
    read_extent,
    read_scalar,
)
from weft.script.reader.tensor.session import BlockHeader, TensorSession
from weft.script.reader.tensor.statements import read_statements
from weft.script.reader.tensor.store import store_into

__all__ = ["as_mask", "legacy_axes", "legacy_bindings", "legacy_let", "legacy_variables", "named_arguments"]

_AXIS_CALLS = {
    "T.reduce_axis": "reduce",
    "T.scan_axis": "scan",
    "T.opaque_axis": "opaque",
    "T.range": "spatial",
    "T.Range": "spatial",
}
_UNKNOWN_LENGTH = 2**31 - 1  # of the memory behind a pointer that nobody describes


def legacy_axes(session: TensorSession, call: ast.Call, target: ast.expr | None) -> tuple[list[ast.expr], ast.Call]:
    """The axes that stand before the name of a block, and the call without them."""
    named = {keyword.arg: keyword for keyword in call.keywords}
    first = call.args[0] if call.args else None
    listed = isinstance(first, (ast.List, ast.Tuple, ast.Call))
    if "axes" in named:
        first, rest = named["axes"].value, call.args
    elif first is not None and (listed or target is not None) and not _is_text(first):
        rest = call.args[1:]
    else:
        first, rest = None, call.args
    if first is None and not {"name_hint", "exec_scope"} & named.keys():
        return [], call
    keywords = [
        ast.copy_location(ast.keyword("name", word.value), word) if word.arg == "name_hint" else word
        for word in call.keywords
        if word.arg not in ("axes", "exec_scope")
    ]
    axes = list(first.elts) if isinstance(first, (ast.List, ast.Tuple)) else [first] * (first is not None)
    return axes, ast.copy_location(ast.Call(call.func, rest[:1], keywords), call)  # type: ignore[return-value]


def legacy_variables(
    session: TensorSession, header: BlockHeader, axes: Sequence[ast.expr], target: ast.expr | None, tree: ast.AST
) -> None:
    """The block variables `as [vi, vj]` of the axes."""
    names = list(target.elts) if isinstance(target, (ast.List, ast.Tuple)) else [target] * (target is not None)
    if names and not axes:
        raise session.fail("W115", "block variables are bound by T.axis inside the block", target or tree)
    if len(names) != len(axes):
        message = f"the block has {len(axes)} axes for {len(names)} variables"
        raise session.fail("W113", message, tree, "with T.block([n, m]) as [vi, vj]:")
    for name, axis in zip(names, axes, strict=True):
        if not isinstance(name, ast.Name):
            raise session.fail("W115", "a block variable is a name", name or tree)
        kind, start, extent = _legacy_axis(session, axis)
        add_axis(session, header, name, kind, start, extent, None, axis_dtype(extent, None), axis)


def _legacy_axis(session: TensorSession, tree: ast.expr) -> tuple[str, Extent, Extent]:
    kind = _AXIS_CALLS.get(dotted_name(session, tree.func) or "") if isinstance(tree, ast.Call) else None
    if kind is None or not isinstance(tree, ast.Call):
        return ("spatial", *axis_domain(session, tree, 0))
    if not 1 <= len(tree.args) <= 2 or tree.keywords:
        called = ast.unparse(tree.func)
        raise session.fail("W113", f"`{called}` takes the first value and the one after the last", tree)
    bounds = [read_extent(session, argument) for argument in tree.args]
    low, high = bounds if len(bounds) == 2 else (0, bounds[0])
    return kind, low, extent_between(session, low, high, tree)


@TENSOR.assigned("T.match_buffer_region")
def _match_region(session: TensorSession, target: ast.Name, tree: ast.Call) -> None:
    """`B = T.match_buffer_region(A[0:16])`: a buffer of the shape of the region."""
    read_match_buffer(session, target, tree)


@TENSOR.statement("T.bind")
def _bind_axis(session: TensorSession, tree: ast.Call) -> Bind | None:
    """`T.bind(vi, value)`: what a variable at the head of the block is bound to; or a value with a name, `var=v`."""
    if any(keyword.arg == "var" for keyword in tree.keywords) or len(tree.args) == 1:
        return bind_variable(session, tree)
    header = block_header(session, tree, "T.bind")
    values = plain_values(session, tree)
    places = [place for place, item in enumerate(header.iter_vars) if values and item.var is values[0]]
    if len(values) != 2 or not places:
        raise session.fail("W114", "T.bind takes a variable of the block and its value", tree)
    item = header.iter_vars[places[0]]
    if item.value is not None:
        raise session.fail("W118", f"the block variable '{item.var.name}' is bound already", tree)
    value = as_prim(session, values[1], tree, item.var.dtype)
    header.iter_vars[places[0]] = replace(item, value=value)
    return None


def legacy_bindings(session: TensorSession, header: BlockHeader, tree: ast.AST) -> list[IterVar]:
    """Bind variables that no T.bind names to the loops around, in order; without any, to new ones (returned)."""
    items = header.iter_vars
    if not items or any(item.value is not None for item in items):
        return []
    loops = session.loops_here
    if loops and len(loops) != len(items):
        raise session.fail(
            "W113",
            f"the block has {len(items)} variables under {len(loops)} loops",
            tree,
            "bind each: `T.bind(vi, i)`",
        )
    made = loops or tuple(PrimVar(f"i{place}", item.var.dtype, span=item.span) for place, item in enumerate(items))
    header.iter_vars = [replace(item, value=loop) for item, loop in zip(items, made, strict=True)]
    return [] if loops else header.iter_vars


def _memory(session: TensorSession, value: Any, element: str, tree: ast.AST) -> Buffer:
    """The memory behind a pointer as a buffer of one dimension."""
    buffer = value if isinstance(value, Buffer) else _buffer_at(value)
    flat = buffer is not None and buffer.ndim == 1 and not (buffer.strides or buffer.elem_offset)
    if buffer is not None and flat and buffer.dtype == element:
        return buffer
    pointer = isinstance(value, PrimExpr) and value.dtype == "handle"
    if buffer is None and not pointer:
        raise session.fail("W114", f"expected a pointer, got {describe(value)}", tree)
    source = buffer if buffer is not None else value
    key = f"{id(source)} {element}"  # no name of a script
    known = session.scope.get(key)
    if isinstance(known, Buffer):
        return known
    length: Extent = _UNKNOWN_LENGTH if buffer is None else _flat_length(session, buffer, element, tree)
    data = address_of_data(session, buffer, tree) if buffer is not None else as_prim(session, value, tree)
    scope = buffer.scope if buffer is not None else value.scope if isinstance(value, PrimVar) else "global"
    name = getattr(source, "name", "") or "memory"
    made = Buffer(name, (length,), element, scope, data=data, span=session.span(tree))
    session.scope.names[key] = made
    session.views.append(DeclBuffer(made, span=session.span(tree)))
    return made


def _flat_length(session: TensorSession, buffer: Buffer, element: str, tree: ast.AST) -> Extent:
    sizes = [size for size in buffer.shape if isinstance(size, int)]
    length: Any = math.prod(sizes)
    for size in buffer.shape:
        if not isinstance(size, int):
            length = apply_binary(session, "mul", length, size, tree)
    old, new = (dtypes.bits(name) * dtypes.lanes(name) for name in (buffer.dtype, element))
    if old != new:
        length = apply_binary(session, "floordiv", apply_binary(session, "mul", length, old, tree), new, tree)
    return extent_of(length)


@TENSOR.value("T.load")
def _load_call(session: TensorSession, tree: ast.Call) -> PrimExpr:
    """`T.load(dtype, pointer, index, predicate)`."""
    values = named_arguments(session, tree, ("dtype", "var", "index", "predicate"), 3)
    element = dtypes.element(stated_dtype(session, values[0], tree))
    buffer = _memory(session, values[1], element, tree)
    index, mask = as_index(session, values[2], tree), as_mask(session, values[3:], tree)
    return BufferLoad(buffer, (index,), mask, span=session.span(tree))


@TENSOR.statement("T.store")
def _store_call(session: TensorSession, tree: ast.Call) -> Stmt:
    """`T.store(pointer, index, value, predicate)`."""
    values = named_arguments(session, tree, ("var", "index", "value", "predicate"), 3)
    plain = isinstance(values[2], (bool, int, float))
    known = values[0] if isinstance(values[0], Buffer) else _buffer_at(values[0])
    element = known.dtype if known is not None and plain else as_prim(session, values[2], tree).dtype
    buffer = _memory(session, values[0], dtypes.element(element), tree)
    made = store_into(session, buffer, (as_index(session, values[1], tree),), values[2], tree)
    mask = as_mask(session, values[3:], tree)
    assert isinstance(made, BufferStore)
    return made if mask is None else replace(made, predicate=mask)


def named_arguments(session: TensorSession, tree: ast.Call, names: tuple[str, ...], least: int) -> list[Any]:
    """Arguments by position or name; W113 where one of the first `least` is missing."""
    values = dict(zip(names, plain_values(session, tree, names), strict=False))
    values.update({word.arg: session.value(word.value) for word in tree.keywords if word.arg in names})
    missing = [name for name in names[:least] if name not in values]
    if missing or len(tree.args) > len(names):
        called = ast.unparse(tree.func)
        raise session.fail("W113", f"`{called}` takes {', '.join(names[:least])}, and a predicate if any", tree)
    return [values[name] for name in names if name in values]


def as_mask(session: TensorSession, values: list[Any], tree: ast.AST) -> PrimExpr | None:
    """A predicate of a load or store, None where it is always true."""
    if not values or values[0] is None:
        return None
    mask = as_bool(session, as_prim(session, values[0], tree), tree)
    return None if _is_true(mask) else mask


@TENSOR.statement("T.realize")
def _realize(session: TensorSession, tree: ast.Call) -> Stmt:
    """`T.realize(B[0:16], scope, condition)`: memory for a buffer that was only declared."""
    values = named_arguments(session, tree, ("region", "scope", "condition"), 1)
    region = values[0]
    if not isinstance(region, BufferRegion) or region.buffer.name not in session.realized:
        raise session.fail("W114", "T.realize takes a region of a declared buffer", tree)
    if region.buffer not in session.declared:
        raise session.fail("W118", f"the buffer '{region.buffer.name}' has memory already", tree)
    scope = values[1] if len(values) > 1 else ""
    if not isinstance(scope, str):
        raise session.fail("W114", f"a scope is a string, got {describe(scope)}", tree)
    if as_mask(session, values[2:], tree) is not None:
        raise session.fail("W115", "an allocation under a condition", tree, "write the allocation inside an `if`")
    session.declared.discard(region.buffer)
    buffer = replace(region.buffer, scope=scope or region.buffer.scope)
    session.scope.names[buffer.name] = buffer
    return AllocBuffer(buffer, span=session.span(tree))


@TENSOR.scope("T.realize")
def _with_realize(session: TensorSession, tree: ast.With, call: ast.Call, target: ast.expr | None) -> list[Stmt]:
    saved, session.scope = session.scope, Scope(session.scope)
    try:
        return [_realize(session, call), *read_statements(session, tree.body)]  # type: ignore[attr-defined]
    finally:
        session.scope = saved


def legacy_let(session: TensorSession, call: ast.Call, target: ast.expr | None) -> tuple[ast.Name, PrimExpr] | None:
    """The variable and the value of `with T.let(x, value)`, or None for another spelling."""
    if target is not None or len(call.args) != 2 or call.keywords or not isinstance(call.args[0], ast.Name):
        return None
    name = call.args[0]
    known = session.level.lookup(session, name.id, name)
    if not isinstance(known, PrimVar):
        return None
    value = read_scalar(session, call.args[1], None if known.dtype == "handle" else known.dtype)
    if value.dtype != known.dtype:
        raise session.fail("W123", f"'{name.id}' is declared {known.dtype}, the value is {value.dtype}", call.args[1])
    return name, value


def _is_text(tree: ast.expr) -> bool:
    return isinstance(tree, ast.JoinedStr) or (isinstance(tree, ast.Constant) and isinstance(tree.value, str))


def _buffer_at(value: Any) -> Buffer | None:
    """The buffer whose first element a pointer points to."""
    if not isinstance(value, PrimCall) or value.op != "address_of":
        return None
    element = value.args[0]
    if isinstance(element, BufferLoad) and all(isinstance(i, IntImm) and not i.value for i in element.indices):
        return element.buffer
    return None


def _is_true(mask: PrimExpr) -> bool:
    inner = getattr(mask, "value", None)
    inner = inner.value if isinstance(inner, IntImm) else inner
    return inner == 1
