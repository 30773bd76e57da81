"""Reading what a value is with other elements (`element_targets.Updated`): NumPy's assignment, of a value that is new.

y[i] = v, y[i, j] = v    index_put; an index out of range is an error
y[1:n:2] = v             slice_scatter, of a value that takes the size of the slice
y[:, j] = v              index_put with the indices of the axes before; of a tensor, the same with its axes first
y[mask] = v              where, of a scalar; of a tensor, index_put at the positions where the mask is true
xs[0] = v                a list, a tuple of the graph or a dictionary with another part

Values take the dtype of y, where that loses no fraction, and the shape of what they replace.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.dtypes import is_float, is_integer
from weft.errors import ShapeError, WeftError
from weft.ir.deduction.infer import type_text
from weft.ir.dim import DimExpr
from weft.ir.graph import Constant, Expr, TupleGetItem, Var
from weft.ir.types import PrimType, TensorType, TupleType, is_scalar_type
from weft.script.forms.reading import COMMON
from weft.script.forms.syntax import BINARY_BY_TREE
from weft.script.reader.expression.names import slice_of
from weft.script.reader.expression.operators import apply_binary
from weft.script.reader.graph.bindings import as_leaf, in_dtype, is_weak, number_dtype, scalar_tensor, type_of
from weft.script.reader.graph.element_targets import Updated
from weft.script.reader.graph.expressions.elements import run_time_field
from weft.script.reader.graph.expressions.index import check_index, element_of, follow_one_another, read_items
from weft.script.reader.graph.expressions.masks import Item, mask_of, with_positions
from weft.script.reader.graph.expressions.operators import call_operator
from weft.script.reader.graph.session import GraphSession
from weft.script.reader.graph.sharing import note_same_memory, refuse_outer, refuse_shared
from weft.script.reader.scope import describe, is_dim

__all__: list[str] = []


@COMMON.tree(Updated)
def _updated(session: GraphSession, tree: Updated) -> Any:
    """The new value of what has elements assigned."""
    if tree.operator is None:
        value, base = session.value(tree.value), session.value(tree.base)
    else:
        base, value = session.value(tree.base), tree.value
    refuse_outer(session, tree)
    refuse_shared(session, base, tree)
    if isinstance(base, (list, dict)):
        return _container(session, base, value, tree)
    if not isinstance(base, Expr):
        raise session.fail("W115", f"the elements of {describe(base)} cannot be assigned", tree.element)
    leaf = as_leaf(session, base, tree.base)
    ty = type_of(session, leaf, tree.base)
    if isinstance(ty, TupleType):
        return _fields(session, leaf, ty, value, tree)
    if not isinstance(ty, TensorType) or ty.dims is None or ty.dtype is None:
        hint = "use R.match_cast to say its shape" if isinstance(ty, TensorType) else None
        raise session.fail("W115", f"the elements of a {type_text(ty)} cannot be assigned", tree.element, hint)
    made = _Update(session, tree, ty).of(leaf, value)
    note_same_memory(session, made, leaf)
    return made


def _combined(session: GraphSession, old: Any, value: Any, tree: Updated) -> Any:
    """The value itself, or that of `old operator value`."""
    if tree.operator is None:
        return value
    kind = BINARY_BY_TREE.get(type(tree.operator))
    if kind is None:
        raise session.unsupported(tree.operator)
    return apply_binary(session, kind, old, value, tree)


def _read(session: GraphSession, value: Any, tree: Updated) -> Any:
    """What is assigned; of an update it is read after the old value."""
    return value if tree.operator is None else session.value(tree.value)


def _container(session: GraphSession, base: Any, value: Any, tree: Updated) -> Any:
    """A list or a dictionary with another part."""
    try:
        key = slice_of(session, tree.element.slice)
    except WeftError as error:
        raise _as_tensor_instead(session, base, tree, error) from None
    session.unit.charge(len(base), tree)
    old = session.fold(lambda: base[key], tree.element) if tree.operator is not None else None
    made = base.copy()
    made[key] = session.level.settled(session, _combined(session, old, _read(session, value, tree), tree), tree.value)
    return made


def _as_tensor_instead(session: GraphSession, base: Any, tree: Updated, error: WeftError) -> WeftError:
    """The error for an element that a run chooses of a list or a dictionary: a tensor has such elements."""
    values = list(base.values()) if isinstance(base, dict) else base
    name = ast.unparse(tree.base) if isinstance(tree.base, ast.Name) else None
    dtypes = {_dtype_of_number(session, value) for value in values}
    if error.code != "W114" or name is None or len(dtypes) != 1 or None in dtypes:
        return error
    dtype = dtypes.pop()
    known = [value for value in values if not isinstance(value, Expr)]
    whole = f'R.zeros(({len(values)},), "{dtype}")' if not any(known) else f'R.const({values}, "{dtype}")'
    kind = "dictionary" if isinstance(base, dict) else "list"
    message = f"which element of the {kind} `{name}` is assigned, only a run says"
    return session.fail("W114", message, tree.element, f"a tensor has such elements: `{name} = {whole}`")


def _dtype_of_number(session: GraphSession, value: Any) -> str | None:
    """The dtype that a number has as an element of a tensor; None for what is no number."""
    if isinstance(value, Expr):
        ty = value.ty if isinstance(value, Var) else None
        return str(ty.dtype) if is_scalar_type(ty) else None
    return {int: "int64", float: "float32"}.get(type(value))


def _fields(session: GraphSession, base: Expr, ty: TupleType, value: Any, tree: Updated) -> Any:
    """A tuple of the graph, which a list is that a run decides on, with another field."""
    index, count = session.value(tree.element.slice), len(ty.fields)
    if isinstance(index, (Expr, DimExpr)):
        raise run_time_field(session, ty, tree.element)
    if type(index) is not int or not -count <= index < count:
        raise session.fail("W121", f"field {describe(index)} of a tuple of {count}", tree.element.slice)
    fields = [as_leaf(session, TupleGetItem(base, place, span=session.span(tree)), tree) for place in range(count)]
    fields[index] = as_leaf(session, _combined(session, fields[index], _read(session, value, tree), tree), tree.value)
    return tuple(fields)


class _Update:
    """One assignment to elements of a tensor."""

    def __init__(self, session: GraphSession, tree: Updated, ty: TensorType) -> None:
        self.session, self.tree, self.ty = session, tree, ty
        self.dtype = str(ty.dtype)

    def of(self, base: Expr, value: Any) -> Expr:
        """The tensor with the elements set."""
        items = read_items(self.session, self.tree.element, self.ty)
        if any(item is None for item, _ in items):
            raise self._fail("W115", "a new axis has no elements to assign")
        mask = self._lone_mask(items)
        given = self._operand(value) if mask is not None else None
        if mask is not None and not self._has_axes(given):
            return self._where(base, mask, given)
        items, old = with_positions(self.session, items, self.ty), None
        if self.tree.operator is not None:
            old = as_leaf(self.session, element_of(self.session, base, self.ty, items, self.tree.element), self.tree)
        given = self._operand(value) if mask is None else given
        new = self._value(_combined(self.session, old, given, self.tree))
        padded = [*items, *[(slice(None), self.tree.element)] * (self.ty.ndim - len(items))]
        try:
            made = self._set(base, padded, new)
            type_of(self.session, made, self.tree)
        except ShapeError as error:
            raise self._misfit(error, new) from None
        return made

    def _misfit(self, error: ShapeError, new: Expr) -> WeftError:
        """What is assigned has another shape, in the words of the text."""
        given = type_text(type_of(self.session, new, self.tree))
        written = ast.unparse(self.tree.element)[:40]
        hint = "it has the shape of the elements, or one that broadcasts to it"
        return self.session.fail(error.code, f"a {given} does not fit into `{written}`", self.tree.element, hint)

    def _fail(self, code: str, message: str, hint: str | None = None) -> WeftError:
        return self.session.fail(code, message, self.tree.element, hint)

    def _call(self, name: str, args: list[Any], **keywords: Any) -> Expr:
        return call_operator(self.session, name, args, keywords, self.tree)

    # Values

    def _operand(self, value: Any) -> Any:
        """What is assigned, or combined with the old value in the dtype of the tensor."""
        given = _read(self.session, value, self.tree)
        keeps = self.tree.operator is None or not isinstance(given, Expr) or is_weak(self.session, given)
        return given if keeps else self._value(given)

    def _value(self, value: Any) -> Expr:
        """A value in the dtype of the tensor."""
        session = self.session
        if isinstance(value, (list, tuple)) and session.known(value, self.tree.value):
            return self._array(value)
        if not isinstance(value, Expr) and not is_dim(value) and not isinstance(value, (bool, float, np.ndarray)):
            raise self._fail("W114", f"an element is a number or a tensor, got {describe(value)}")
        leaf = scalar_tensor(session, value, self.tree)
        ty = type_of(session, leaf, self.tree)
        if not isinstance(ty, (TensorType, PrimType)):
            raise self._fail("W114", f"an element is a number or a tensor, got {type_text(ty)}")
        given = number_dtype(session, leaf, self.tree)
        if given == self.dtype:
            return leaf
        self._check_dtype(given, is_weak(session, value))
        if is_scalar_type(ty):
            return in_dtype(session, leaf, self.dtype, self.tree)
        return self._call("astype", [leaf], dtype=self.dtype)

    def _array(self, value: Any) -> Expr:
        found = self.session.fold(lambda: np.asarray(value), self.tree.value)
        if found.dtype.kind not in "bif":
            raise self._fail("W114", "an element is a number or a tensor")
        self._check_dtype({"b": "bool", "i": "int64", "f": "float64"}[found.dtype.kind], True)
        return Constant(found.astype(self.dtype), span=self.session.span(self.tree.value))

    def _check_dtype(self, given: str, is_number: bool) -> None:
        """W320 where the dtype of the tensor would lose what a value has."""
        own = self.dtype
        kept = given == "bool" or is_float(own) or (is_integer(own) and is_integer(given)) or own.startswith("complex")
        if own == "bool" or not kept or given.startswith("complex") > own.startswith("complex"):
            name = "a number" if is_number else "a value"
            message = f"{name} of dtype {given} in a tensor of {own}"
            hint = f'convert what is assigned: `R.astype(value, "{own}")`'
            raise self._fail("W320", message, hint)

    # Operators

    def _lone_mask(self, items: Sequence[Item]) -> Expr | None:
        """The index where that is a tensor of truth values, and nothing else."""
        if len(items) != 1 or mask_of(self.session, *items[0]) is None:
            return None
        return as_leaf(self.session, *items[0])

    def _has_axes(self, value: Any) -> bool:
        if isinstance(value, Expr):
            return not is_scalar_type(type_of(self.session, as_leaf(self.session, value, self.tree), self.tree))
        return isinstance(value, (list, tuple, np.ndarray)) and np.ndim(value) > 0

    def _where(self, base: Expr, mask: Expr, given: Any) -> Expr:
        """A number at the places that a mask has."""
        new = self._value(_combined(self.session, base, given, self.tree))
        found = self._type(mask)
        if found.ndim < self.ty.ndim:
            mask = self._call("expand_dims", [mask, list(range(found.ndim, self.ty.ndim))])
        return self._call("where", [mask, new, base])

    def _set(self, base: Expr, items: Sequence[Item], value: Expr) -> Expr:
        """A tensor with what stands at one index for each axis set."""
        chosen = [axis for axis, (item, _) in enumerate(items) if not isinstance(item, slice)]
        for axis in chosen:
            check_index(self.session, self._type(base), axis, *items[axis])
        if chosen != list(range(len(chosen))):
            return self._indices_first(base, items, value, chosen)
        rest = items[len(chosen) :]
        if not chosen:
            return self._set_slices(base, rest, value)
        if any(item != slice(None) for item, _ in rest):
            inner = element_of(self.session, base, self._type(base), items[: len(chosen)], self.tree.element)
            own = [(slice(None), self.tree.element)] * max(self._index_rank(*items[axis]) for axis in chosen)
            value = self._set_slices(as_leaf(self.session, inner, self.tree), [*own, *rest], value)
        indices = tuple(scalar_tensor(self.session, item, place) for item, place in items[: len(chosen)])
        return self._call("index_put", [base, indices, value])

    def _type(self, value: Expr) -> TensorType:
        ty = type_of(self.session, value, self.tree)
        assert isinstance(ty, TensorType)
        return ty

    def _indices_first(self, base: Expr, items: Sequence[Item], value: Expr, chosen: list[int]) -> Expr:
        ndim = max(self._index_rank(*items[axis]) for axis in chosen)
        if not ndim and all(item == slice(None) for item, _ in items[chosen[-1] + 1 :]):
            return self._put_between(base, items[: chosen[-1] + 1], value)
        if ndim:
            value = self._index_axes_first(base, items, value, chosen, ndim)
        order = [*chosen, *(axis for axis in range(len(items)) if axis not in chosen)]
        moved = self._call("permute_dims", [base, order])
        made = self._set(moved, [items[axis] for axis in order], value)
        return self._call("permute_dims", [made, [order.index(axis) for axis in range(len(order))]])

    def _put_between(self, base: Expr, items: Sequence[Item], value: Expr) -> Expr:
        """What is assigned to `x[:, i]`: slices before an index are tensors of the indices in them, which broadcast."""
        slices = [axis for axis, (item, _) in enumerate(items) if isinstance(item, slice)]
        indices: list[Expr] = []
        for axis, (item, place) in enumerate(items):
            if not isinstance(item, slice):
                indices.append(scalar_tensor(self.session, item, place))
                continue
            size = (self._type(base).dims or ())[axis]
            every = as_leaf(self.session, self._call("arange", [0, size, 1], dtype="int64"), self.tree)
            found = element_of(self.session, every, self._type(every), [(item, place)], self.tree.element)
            after = len(slices) - 1 - slices.index(axis)
            indices.append(self._call("expand_dims", [found, list(range(1, after + 1))]) if after else found)
        return self._call("index_put", [base, tuple(indices), value])

    def _index_rank(self, item: Any, place: ast.expr) -> int:
        ty = type_of(self.session, as_leaf(self.session, item, place), place) if isinstance(item, Expr) else None
        return ty.ndim if isinstance(ty, TensorType) else 0

    def _index_axes_first(
        self, base: Expr, items: Sequence[Item], value: Expr, chosen: Sequence[int], ndim: int
    ) -> Expr:
        """What is assigned to `x[:, index]`, with the axes of the indices first, as index_put has them."""
        shape = self._type(element_of(self.session, base, self._type(base), items, self.tree.element))
        whole = self._call("broadcast_to", [value, shape.dims])
        first = chosen[0] if follow_one_another(chosen) else 0
        own = range(first, first + ndim)
        return self._call("permute_dims", [whole, [*own, *(at for at in range(shape.ndim) if at not in own)]])

    def _set_slices(self, base: Expr, items: Sequence[Item], value: Expr) -> Expr:
        axis = next((axis for axis, (item, _) in enumerate(items) if item != slice(None)), None)
        if axis is None:
            return self._call("broadcast_to", [value, self._type(base).dims])
        part, place = items[axis]
        single = [(slice(None), place)] * axis
        inner = element_of(self.session, base, self._type(base), [*single, (part, place)], self.tree.element)
        rest = [(item if at > axis else slice(None), where) for at, (item, where) in enumerate(items)]
        value = self._set_slices(as_leaf(self.session, inner, self.tree), rest, value)
        return self._scattered(base, value, part, axis)

    def _scattered(self, base: Expr, value: Expr, part: slice, axis: int) -> Expr:
        step = part.step or 1
        if step < 0:
            if part.start is not None or part.stop is not None or step != -1:
                raise self._fail("W115", "elements are assigned to slices that go forward", "reverse what is assigned")
            value = self._call("flip", [value], axis=axis)
        start = 0 if part.start is None or step < 0 else part.start
        stop = 2**63 - 1 if part.stop is None or step < 0 else part.stop
        return self._call("slice_scatter", [base, value, start, stop, abs(step)], axis=axis)
