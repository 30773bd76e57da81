"""Reading `x[...]` of a tensor in a graph function: NumPy's indexing as operators.

x[1]          take along the axis, which goes away; an index out of range is an error (at reading where it is known)
x[i]          the same with an integer tensor: its dimensions stand where the axis was
x[i, :, k]    index_tensor, where one index of several has dimensions: all broadcast, and stand where the axes were if
              these follow one another, else first
x[[0, k]]     a list of numbers, or an array, is a tensor
x[mask]       the positions where a tensor of truth values is true (`masks`)
x[1:n, ::-1]  strided_slice, with Python's rules for boundaries
x[a:b:k]      the positions that Python counts, where a run decides the step (`boundaries`)
x[..., None]  the axes not mentioned; a new axis of size 1
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from types import NoneType
from typing import Any

import numpy as np

from weft.dtypes import is_integer
from weft.ir.deduction.infer import type_text
from weft.ir.graph import Constant, Expr
from weft.ir.types import PrimType, TensorType
from weft.script.reader.graph.bindings import as_leaf, in_dtype, scalar_tensor, type_of
from weft.script.reader.graph.expressions.boundaries import is_boundary, is_by_places, places_of, with_sizes
from weft.script.reader.graph.expressions.masks import Item, axes_of, with_positions
from weft.script.reader.graph.expressions.operators import call_operator
from weft.script.reader.graph.session import GraphSession
from weft.script.reader.graph.sharing import note_same_memory
from weft.script.reader.scope import describe, is_dim

__all__ = ["check_index", "element_of", "follow_one_another", "index_tensor", "read_items"]

_END = 2**63 - 1  # an open boundary, as strided_slice has it


def index_tensor(session: GraphSession, value: Expr, ty: TensorType, tree: ast.Subscript) -> Expr:
    """The element or slice of a tensor; W121 for too many indices or one out of range, W115 for other indexing."""
    return element_of(session, value, ty, with_positions(session, read_items(session, tree, ty), ty), tree)


def read_items(session: GraphSession, tree: ast.Subscript, ty: TensorType) -> list[Item]:
    """What stands between the brackets, without `...`; W121 for more indices than axes."""
    trees = list(tree.slice.elts) if isinstance(tree.slice, ast.Tuple) else [tree.slice]
    items = [(_item(session, item), item) for item in trees]
    if ty.ndim < 0:
        raise session.fail(
            "W114", f"a {type_text(ty)} of unknown rank cannot be indexed", tree, "use R.match_cast to say its shape"
        )
    return _with_known_boundaries(session, _without_ellipsis(session, items, ty.ndim, tree), ty)


def _with_known_boundaries(session: GraphSession, items: list[Item], ty: TensorType) -> list[Item]:
    """Items in which the boundaries of slices are sizes."""
    made, axis = list[Item](), 0
    for item, place in items:
        if isinstance(item, slice) and item != slice(None):
            size = ty.dims[axis] if ty.dims is not None else None
            by_places = is_by_places(item)
            if by_places and any(not isinstance(other, (slice, NoneType)) for other, _ in items):
                message = "a slice of a step that a run decides stands beside slices alone"
                raise session.fail("W115", message, place, "index by `R.arange(start, stop, step)`, or in two steps")
            item = places_of(session, item, size, place) if by_places else with_sizes(session, item, size, place)
        axis += axes_of(session, item, place)
        made.append((item, place))
    return made


def element_of(session: GraphSession, value: Expr, ty: TensorType, items: Sequence[Item], tree: ast.Subscript) -> Expr:
    """The element or slice that was read between brackets."""
    axes = _Axes(session, tree, ty)
    for item, place in items:
        axes.add(item, place)
    made = axes.apply(value)
    if not axes.data:
        note_same_memory(session, made, value)
    return made


def _item(session: GraphSession, tree: ast.expr) -> Any:
    """A slice with its boundaries read, None, Ellipsis, or an index."""
    if isinstance(tree, ast.Constant) and (tree.value is None or tree.value is Ellipsis):
        return tree.value
    if isinstance(tree, ast.Slice):
        parts = [session.value(part) if part is not None else None for part in (tree.lower, tree.upper, tree.step)]
        for part, place in zip(parts, (tree.lower, tree.upper, tree.step), strict=True):
            if part is None or is_dim(part) or is_boundary(session, part, place or tree):
                continue
            got = type_text(type_of(session, part, tree)) if isinstance(part, Expr) else describe(part)
            message = f"a boundary of a slice is an integer or a size, got {got}"
            raise session.fail("W115", message, place or tree, "int(...) makes an integer of a number")
        if parts[2] == 0:
            raise session.fail("W115", "the step of a slice is an integer other than 0", tree.step or tree)
        return slice(*parts)
    if isinstance(tree, ast.Starred):
        raise session.fail("W115", "a starred index is not part of the script", tree, "write every index")
    item = _as_tensor(session, session.value(tree), tree)
    return as_leaf(session, item, tree) if isinstance(item, Expr) else item


def _as_tensor(session: GraphSession, item: Any, tree: ast.expr) -> Any:
    """An array, or a list of numbers, as the tensor that it is for NumPy; every other index as it is."""
    if isinstance(item, list) and session.known(item, tree):
        item = session.fold(lambda: np.asarray(item), tree)
        item = item.astype("int64") if item.size == 0 else item  # a list without numbers is one of positions
    if isinstance(item, np.ndarray):
        dtype = "int64" if item.dtype.kind == "i" else item.dtype
        return Constant(item.astype(dtype), span=session.span(tree))
    if not isinstance(item, list) or not all(is_dim(part) or isinstance(part, Expr) for part in item):
        return item
    parts = [in_dtype(session, scalar_tensor(session, part, tree), "int64", tree) for part in item]
    return as_leaf(session, call_operator(session, "stack", [tuple(parts)], {"axis": 0}, tree), tree)


def follow_one_another(axes: Sequence[int]) -> bool:
    """Whether axes follow one another, without one between them."""
    return list(axes) == list(range(axes[0], axes[0] + len(axes)))


def _without_ellipsis(
    session: GraphSession, items: list[tuple[Any, ast.expr]], ndim: int, tree: ast.Subscript
) -> list[tuple[Any, ast.expr]]:
    dots = [position for position, (item, _) in enumerate(items) if item is Ellipsis]
    used = sum(axes_of(session, item, place) for item, place in items)
    if len(dots) > 1:
        raise session.fail("W121", "an index has one `...`", items[dots[1]][1])
    if used > ndim:
        raise session.fail("W121", f"{used} indices of a tensor of {ndim} dimension{'s' * (ndim != 1)}", tree)
    if not dots:
        return items
    return [*items[: dots[0]], *[(slice(None), tree)] * (ndim - used), *items[dots[0] + 1 :]]


def check_index(session: GraphSession, ty: TensorType, axis: int, index: Any, tree: ast.expr) -> None:
    """W121 for an index that is known to be out of range."""
    size = ty.dims[axis] if ty.dims is not None else None
    if isinstance(index, int) and isinstance(size, int) and not -size <= index < size:
        raise session.fail("W121", f"index {index} is out of range for a size of {size}", tree)


class _Axes:
    """What an index does to each axis: slices first, then the axes that go away, then the new ones."""

    def __init__(self, session: GraphSession, tree: ast.Subscript, ty: TensorType) -> None:
        self.session = session
        self.tree = tree
        self.ty = ty
        self.axis = 0
        self.slices: list[tuple[int, slice]] = []
        self.taken: list[tuple[int, Any, ast.expr]] = []
        self.new: list[tuple[int, int]] = []  # after how many of the axes that stay, and of those that go away
        self.kept = 0  # axes that stay, so far
        self.rank = 0  # dimensions of the indices that are tensors, which broadcast

    @property
    def data(self) -> bool:
        """Whether an index is a tensor with dimensions of its own."""
        return self.rank > 0

    def add(self, item: Any, tree: ast.expr) -> None:
        """One index."""
        if item is None:
            self.new.append((self.kept, len(self.taken)))
            return
        if isinstance(item, slice):
            if item != slice(None):
                self.slices.append((self.axis, item))
            self.kept += 1
        elif is_dim(item):
            check_index(self.session, self.ty, self.axis, item, tree)
            self.taken.append((self.axis, item, tree))
        else:
            self._add_data(item, tree)
        self.axis += 1

    def _add_data(self, item: Any, tree: ast.expr) -> None:
        if not isinstance(item, Expr):
            raise self.session.fail("W115", f"a tensor cannot be indexed by {describe(item)}", tree, _OTHER)
        leaf = as_leaf(self.session, item, tree)
        ty = type_of(self.session, leaf, tree)
        dtype = ty.dtype if isinstance(ty, (TensorType, PrimType)) else None
        ndim = ty.ndim if isinstance(ty, TensorType) else 0
        if dtype is None or not is_integer(dtype) or ndim < 0:
            hint = _MASK if dtype == "bool" else _OTHER
            raise self.session.fail("W115", f"a tensor cannot be indexed by a {type_text(ty)}", tree, hint)
        self.rank = max(self.rank, ndim)
        self.taken.append((self.axis, leaf, tree))

    def apply(self, value: Expr) -> Expr:
        """The operators, in order."""
        if self.slices:
            axes = [axis for axis, _ in self.slices]
            steps = [part.step or 1 for _, part in self.slices]
            begin = [_begin(part) for _, part in self.slices]
            end = [_stop(part) for _, part in self.slices]
            strides = {} if all(step == 1 for step in steps) else {"strides": steps}
            value = self._call("strided_slice", [value, axes, begin, end], strides)
        if self.data and len(self.taken) > 1:
            value = self._chosen_together(value)
        else:
            for axis, index, tree in reversed(self.taken):
                value = call_operator(
                    self.session, "take", [as_leaf(self.session, value, tree), index], {"axis": axis}, self.tree
                )
        if self.new:
            value = self._call("expand_dims", [value, self._new_axes()], {})
        return value

    def _chosen_together(self, value: Expr) -> Expr:
        """The elements at several indices, which broadcast."""
        axes = [axis for axis, _, _ in self.taken]
        order = [*axes, *(axis for axis in range(self.ty.ndim) if axis not in axes)]
        if order != sorted(order):
            value = self._call("permute_dims", [value, order], {})
        indices = tuple(scalar_tensor(self.session, index, tree) for _, index, tree in self.taken)
        value = self._call("index_tensor", [value, indices], {})
        first = 0 if self._are_apart() else axes[0]
        if not first:
            return value
        rest = range(self.rank, self.rank + self.ty.ndim - len(axes))
        return self._call("permute_dims", [value, [*rest[:first], *range(self.rank), *rest[first:]]], {})

    def _are_apart(self) -> bool:
        """Whether an axis stands between indices, of which one is a tensor; their dimensions come first, then."""
        between = any(0 < taken < len(self.taken) for _, taken in self.new)
        return self.data and (between or not follow_one_another([axis for axis, _, _ in self.taken]))

    def _new_axes(self) -> list[int]:
        """Where the new axes stand in the result."""
        apart = self._are_apart()
        after = [self.rank if apart or taken else 0 for _, taken in self.new]
        return [kept + rank + place for place, ((kept, _), rank) in enumerate(zip(self.new, after, strict=True))]

    def _call(self, name: str, args: list[Any], kwargs: dict[str, Any]) -> Expr:
        return call_operator(
            self.session, name, [as_leaf(self.session, args[0], self.tree), *args[1:]], kwargs, self.tree
        )


_OTHER = "use R.take, R.gather_nd or R.where"
_MASK = "a mask has axes; R.where(mask, x, y) takes a number"


def _begin(part: slice) -> Any:
    if part.start is not None:
        return part.start
    return 0 if (part.step or 1) > 0 else _END


def _stop(part: slice) -> Any:
    if part.stop is not None:
        return part.stop
    return _END if (part.step or 1) > 0 else -_END
