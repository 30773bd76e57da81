"""One loop while it is read: what it carries, and the functions of its body and its condition.

A carried value keeps its type. Numbers of Python are carried in the dtype that an iteration gives them: the body is
read again with that one.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace as renewed
from typing import Any

import numpy as np

from weft.dtypes import is_float, is_integer
from weft.errors import DTypeError, ShapeError, Span
from weft.ir.deduction.infer import check_claim, func_type, type_text
from weft.ir.deduction.subtyping import type_symbols
from weft.ir.dim import DimExpr, symbol
from weft.ir.graph import (
    Call,
    DataflowVar,
    Expr,
    Function,
    GlobalVar,
    SeqExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from weft.ir.node import replace
from weft.ir.op import get_op
from weft.ir.op.program.loop import iterations
from weft.ir.types import PrimType, TensorType, TupleType, Type, is_scalar_type
from weft.script.reader.expression.static import counted
from weft.script.reader.graph.bindings import (
    WHOLE,
    bind_value,
    emit_binding,
    fresh_target,
    in_dtype,
    is_weak,
    make_var,
    note_weak,
    scalar_tensor,
    type_of,
    weak_parts,
)
from weft.script.reader.graph.conditions import check_condition, read_condition
from weft.script.reader.graph.expressions.dictionaries import flat, form_of, in_form
from weft.script.reader.graph.expressions.numbers import joined_dtype
from weft.script.reader.graph.joined import Following, at, bound_names, name_at
from weft.script.reader.graph.loops.body import (
    LoopTree,
)
from weft.script.reader.graph.loops.trial import restore_names
from weft.script.reader.graph.session import GraphSession, inner_session
from weft.script.reader.graph.sharing import (
    Memory,
    carried_memory,
    given_memory,
    handed_memory,
    note_memory,
    part_memories,
    refuse_kept,
)
from weft.script.reader.graph.statements import in_order, read_statement
from weft.script.reader.scope import Hidden, describe
from weft.support.records import dataclass

__all__ = ["LoopReader", "handed_on"]


@dataclass(frozen=True)
class _Carried:
    """A name that an iteration hands to the next: its value before the loop, its type throughout, and which parts of it
    are numbers of Python, which take the dtype of what they meet (see `note_weak`).
    """

    name: str
    initial: Expr
    ty: Type
    weak: frozenset[int]
    memory: Sequence[Memory]  # the arrays that it may be, or that its fields may be
    form: Any = None  # its dictionaries, which are carried as tuples of their values


class LoopReader:
    """One loop while it is read."""

    def __init__(
        self,
        session: GraphSession,
        tree: LoopTree,
        index: ast.Name | None,
        body: Sequence[ast.stmt],
        lists: Mapping[str, str],
    ) -> None:
        self.lists = lists
        self.rows: tuple[Type, ...] = ()
        self.known = frozenset(session.symbols)
        self.first_values: dict[str, str] = {}  # of names that only iterations have: what could be written before
        self.session, self.tree, self.index, self.body_trees = session, tree, index, body
        own = [index.id] if index is not None else []
        names: list[str] = list(dict.fromkeys((*bound_names(body), *own)))
        self.local = [name for name in names if not self._is_carried(name)]
        self.carried = [self._carry(name) for name in names if self._is_carried(name)]
        found = [memory for item in self.carried for memory in item.memory]
        self.carried = _with_parts(
            self.carried, carried_memory(session, self, self._part_names(), [found], self._others())
        )

    def _is_carried(self, name: str) -> bool:
        """Whether a name has a value before the loop; W115 for one that is not of the graph."""
        if not self.session.has_value(name):
            return False
        value = self.session.scope.get(name)
        if not _can_be_carried(value):
            message = f"`{name}` is {describe(value)} before the loop, and the loop gives it another value"
            hint = "a loop hands on tensors, numbers, and tuples and dictionaries of them: use another name"
            raise self.session.fail("W115", message, self.tree, hint)
        return True

    def _carry(self, name: str) -> _Carried:
        """A number becomes a tensor of rank 0: what the body computes from it is one."""
        value = self.session.scope.get(name)
        form = form_of(value)
        initial = handed_on(self.session, flat(self.session, form, value, name, self.tree), self.tree)
        ty = type_of(self.session, initial, self.tree)
        memory = self._memory(self.session, name, initial, ty)
        return _Carried(name, initial, ty, weak_parts(self.session, initial), memory, form)

    def _memory(self, session: GraphSession, name: str, value: Expr, ty: Type) -> list[Memory]:
        """The arrays that a value may be; what a `return` gives ends the loop, and is not looked at again in it."""
        found = part_memories(session, value, ty)
        return [frozenset()] * len(found) if name in session.results else found

    @property
    def types(self) -> TupleType:
        """What the loop carries."""
        return TupleType(tuple(item.ty for item in self.carried))

    # The two functions

    def body(self, statements: Sequence[ast.stmt], index_symbol: str | None) -> Function:
        """The body as a function of the index and the carried values.

        It is read again where an iteration gives a number of Python another dtype: from integers to floats, and to
        that of the tensors which it meets.
        """
        self.index_symbol = index_symbol
        before = set(self.session.symbols), dict(self.session.hidden)
        while True:
            made, inner, given = self._read_body(statements, index_symbol)
            found = [type_of(inner, value, self.tree) for value in given]
            settled = [
                _settled(item, ty, weak_parts(inner, value))
                for item, ty, value in zip(self.carried, found, given, strict=False)
            ]
            settled = self._with_memory(
                settled,
                [self._memory(inner, item.name, value, item.ty) for item, value in zip(settled, given, strict=False)],
            )
            if settled == self.carried:
                break
            self.carried = settled
            restore_names(self.session, *before)
        for item, ty in zip(self.carried, found, strict=False):
            _check_invariant(inner, item, ty, self.session.span(self.tree))
        self.rows = tuple(found[len(self.carried) :])
        for name, value in zip(self.lists, given[len(self.carried) :], strict=True):
            refuse_kept(inner, self, name, value, self.tree)
        return replace(made, ret_type=TupleType((*self.types.fields, *self.rows)))

    def _with_memory(self, items: list[_Carried], given: list[list[Memory]]) -> list[_Carried]:
        """What is carried, with the arrays that an iteration may make of it."""
        before = [memory for item in items for memory in item.memory]
        new = [memory for parts in given for memory in parts]
        found = handed_memory(self.session, self, self._part_names(), before, new, self._others())
        return _with_parts(items, found)

    def _part_names(self) -> list[tuple[str, int]]:
        """Each part of what is carried: the name, and the place in it."""
        return [(item.name, place) for item in self.carried for place in range(len(item.memory))]

    def _others(self) -> Memory:
        """The arrays that names may be which the loop does not hand on."""
        return given_memory(self.session, [item.name for item in self.carried])

    def _read_body(
        self, statements: Sequence[ast.stmt], index_symbol: str | None
    ) -> tuple[Function, GraphSession, list[Expr]]:
        """The function, the session that read it, and the values that it gives."""
        inner, params = self._inner()
        if self.index is not None:
            params.insert(0, self._index(inner, self.index, index_symbol))
        given: list[Expr] = []

        def result() -> Expr:
            names = (*(item.name for item in self.carried), *self.lists.values())
            forms = {item.name: item.form for item in self.carried if item.form is not None}
            held = [flat(inner, forms.get(name), inner.scope.get(name), name, self.tree) for name in names]
            values = [handed_on(inner, value, self.tree) for value in held]
            pairs = zip(self.carried, values, strict=False)
            given.extend(_as_carried(inner, item, value, self.tree) for item, value in pairs)
            given.extend(values[len(self.carried) :])
            self.first_values = _first_values(inner, self.local, self.known, self.tree)
            return Tuple(tuple(given), span=inner.span(self.tree))

        return self._function(inner, params, statements, result, "loop_body"), inner, given

    def condition(self, tree: ast.expr | None) -> Function | None:
        """The condition as a function of the carried values."""
        if tree is None:
            return None
        inner, params = self._inner()

        def result() -> Expr:
            value = scalar_tensor(inner, read_condition(inner, tree), tree)
            check_condition(inner, value, tree)
            return value

        return self._function(inner, params, [], result, "loop_condition")

    def _inner(self) -> tuple[GraphSession, list[Var]]:
        """A reader of what runs in each iteration, and the variables that stand for the carried values in it."""
        session = self.session
        inner = inner_session(session)
        inner.carried = {*session.carried, *(item.name for item in self.carried)}
        inner.returned = session.returned
        asked = [at(self.tree, ast.Expr(self.tree.test))] if isinstance(self.tree, ast.While) else []
        names = {item.name for item in self.carried}
        inner.wanted = Following([*self.body_trees, *asked], names, -1, session.wanted)
        params = []
        for item in self.carried:
            var = Var(item.name, item.ty, span=session.span(self.tree))
            note_weak(inner, var, item.weak)
            note_memory(inner, var, item.memory)
            inner.scope.names[item.name] = in_form(inner, item.form, var, self.tree)
            params.append(var)
        return inner, params

    def _index(self, inner: GraphSession, index: ast.Name, name: str | None) -> Var:
        ty = PrimType("int64", symbol(name)) if name is not None else PrimType("int64")
        var = Var(index.id, ty, span=inner.span(index))
        inner.scope.names[index.id] = symbol(name) if name is not None else var
        if name is None:
            inner.weak.add(var)
        return var

    def _function(
        self,
        inner: GraphSession,
        params: Sequence[Var],
        trees: Sequence[ast.stmt],
        result: Callable[[], Expr],
        name: str,
    ) -> Function:
        inner.pure = self.session.pure
        inner.params = tuple(params)
        with inner.context.scope():
            for _, tree in in_order(inner, trees):
                read_statement(inner, tree)
            value = result()
            inner.blocks.flush()
            body = SeqExpr(tuple(inner.blocks.done), value)
            ty = type_of(inner, value, self.tree)
        return Function(inner.params, body, ty, inner.pure, name=name, span=inner.span(self.tree))

    # The loop

    def emit(self, body: Function, range_: Sequence[Expr] | None, condition: Function | None) -> None:
        """Bind the functions, the loop, and the names that it carries."""
        session, tree = self.session, self.tree
        functions = {"body": self._bind(body)}
        if condition is not None:
            functions["condition"] = self._bind(condition)
        initial = tuple(_of_dtype(session, item, tree) for item in self.carried)
        arguments: dict[str, Any] = {**functions, "initial": Tuple(initial)}
        stacked = self._stacked(range_, condition)
        if range_ is not None:
            arguments["range"] = Tuple(tuple(range_))
        name = "loop" if session.pure else "loop_with_effects"
        arguments |= {"out_ty": TupleType((*self.types.fields, *stacked)), "stacked": len(stacked)}
        call: Call = get_op(name).bind([], arguments, session.span(tree))
        result = bind_value(session, fresh_target(session, tree, "loop"), call, None, tree)
        for number, item in enumerate(self.carried):
            field = TupleGetItem(result, number, span=session.span(tree))
            made = self._take(item.name, field)
            note_memory(session, made, item.memory)
            session.hidden.pop(item.name, None)
            note_weak(session, made, item.weak)
            session.scope.names[item.name] = in_form(session, item.form, made, tree)
        for number, name in enumerate(self.lists, len(self.carried)):
            session.stacked.add(self._take(name, TupleGetItem(result, number, span=session.span(tree))))
        for name in self.local:
            line = f": write `{name} = {self.first_values[name]}` before it" if name in self.first_values else ""
            why = f"it is bound in a loop, which may have no iteration{line or ': bind it before the loop'}"
            session.hidden[name] = why
        if self.index is not None and self.index_symbol == self.index.id and self.index.id in self.local:
            session.scope.names[self.index.id] = Hidden(session.hidden[self.index.id])  # the symbol has ended, too

    def _take(self, name: str, field: Expr) -> Var:
        """The name after the loop."""
        made = bind_value(self.session, name_at(name, ast.Store(), self.tree), field, None, self.tree)  # type: ignore[arg-type]
        self.session.scope.names[name] = made
        return made

    def _stacked(self, range_: Sequence[Expr] | None, condition: Function | None) -> list[TensorType]:
        """The types of the lists as tensors with a row for each iteration."""
        session, tree = self.session, self.tree
        count = iterations(Tuple(tuple(range_)) if range_ is not None else None)
        if self.rows and (count is None or condition is not None):
            name = next(iter(self.lists))
            message = f"the list '{name}' gets a value in each iteration, of a number that only a run decides"
            hint = f"a range of sizes, without `break`, says how many rows it has; else {counted(name)}"
            raise session.fail("W115", message, tree, hint)
        made = []
        for name, ty in zip(self.lists, self.rows, strict=True):
            if not isinstance(ty, TensorType) or ty.dims is None or ty.dtype is None:
                message = f"the list '{name}' becomes a tensor, of values of known shape: got {type_text(ty)}"
                hint = "append each of its tensors to a list of its own" if isinstance(ty, TupleType) else None
                raise session.fail("W114", message, tree, hint)
            made.append(TensorType((count, *ty.dims), ty.dtype))  # type: ignore[arg-type]
        return made

    def _bind(self, function: Function) -> Var:
        session = self.session
        target = fresh_target(session, self.tree, function.name)
        var = make_var(session, target.id, func_type(function), self.tree)
        assert not isinstance(var, DataflowVar)
        emit_binding(session, VarBinding(var, function, span=session.span(self.tree)))
        return var


def _with_parts(items: Sequence[_Carried], found: Sequence[Memory]) -> list[_Carried]:
    """What is carried, with the arrays that all its parts may be, one after the other."""
    made, rest = list[_Carried](), list(found)
    for item in items:
        memory, rest = rest[: len(item.memory)], rest[len(item.memory) :]
        made.append(item if list(item.memory) == memory else renewed(item, memory=memory))
    return made


def _check_invariant(inner: GraphSession, item: _Carried, found: Type, place: Span | None) -> None:
    """A name has one type in all iterations: proved, refuted here, or checked when the loop runs."""
    try:
        check_claim(item.ty, found, inner.context, f"`{item.name}` after an iteration", place, at_run_time=True)
    except (ShapeError, DTypeError) as error:
        before = f"`{item.name}` is {type_text(item.ty)} before the loop and {type_text(found)} after an iteration"
        hint = "a value keeps its type in all iterations"
        if isinstance(error, ShapeError):
            hint += (
                "; where a size grows, append to a list, of which the loop makes one tensor, or begin with a tensor"
                " of the final size and write into it"
            )
        elif isinstance(error, DTypeError) and error.hint is not None:
            hint += f": {error.hint}"
        raise type(error)(before, code=error.code, span=place, hint=hint, notes=error.notes) from None


def _can_be_carried(value: Any) -> bool:
    if isinstance(value, (tuple, list, dict)):
        return all(map(_can_be_carried, value.values() if isinstance(value, dict) else value))
    known = isinstance(value, (bool, int, float, DimExpr, np.ndarray))
    return known or (isinstance(value, Expr) and not isinstance(value, (GlobalVar, Function)))


def handed_on(session: GraphSession, value: Any, tree: ast.AST) -> Expr:
    """A value as iterations hand it on: numbers as tensors of rank 0, also in tuples."""
    if isinstance(value, (tuple, list)):
        return Tuple(tuple(handed_on(session, item, tree) for item in value), span=session.span(tree))
    return scalar_tensor(session, value, tree)


def _first_values(session: GraphSession, names: Sequence[str], known: Collection[str], tree: ast.AST) -> dict[str, str]:
    """What to write before a loop for the names that it surely binds."""
    found = {name: _first_value(session, session.scope.names.get(name), known, tree) for name in names}
    return {name: text for name, text in found.items() if text is not None}


def _first_value(session: GraphSession, value: Any, known: Collection[str], tree: ast.AST) -> str | None:
    """What to write before a loop for a name that an iteration gives this value; None where that is not known."""
    if isinstance(value, (bool, int, float)):
        return repr(type(value)())
    if isinstance(value, DimExpr):
        return "0"
    ty = type_of(session, value, tree) if isinstance(value, Expr) else None
    if not isinstance(ty, (TensorType, PrimType)) or ty.dtype is None:
        return None
    if is_weak(session, value):
        return "0.0" if is_float(ty.dtype) else "0"
    dims = ty.dims if isinstance(ty, TensorType) else ()
    if dims is None or type_symbols(ty).difference(known):
        return None
    if not dims and ty.dtype == "bool":
        return "False"
    shape = ", ".join(map(str, dims)) + "," * (len(dims) == 1)
    return f'R.zeros(({shape}), "{ty.dtype}")'


def _settled(item: _Carried, found: Type, weak: frozenset[int]) -> _Carried:
    """What is carried, with the types of numbers of Python where an iteration gives them another dtype."""
    before = _parts(item.ty)
    after = _parts(found)
    if before.keys() != after.keys():
        return item
    kept: set[int] = set()
    for place in before:
        dtype = _new_dtype(item, place, after[place], place in weak)
        number = place in item.weak
        if dtype is not None:
            number = (number or is_integer(str(before[place].dtype))) and place in weak  # type: ignore[attr-defined]
            before[place] = TensorType((), dtype)
        same = getattr(before[place], "dtype", None) == getattr(after[place], "dtype", 0)
        if number and place in weak and same:
            kept.add(place)
    types = [before[place] for place in sorted(before)]
    changed = any(new is not old for new, old in zip(types, _parts(item.ty).values(), strict=True))
    if not changed:
        return item if kept == item.weak else renewed(item, weak=frozenset(kept))
    return renewed(item, ty=TupleType(tuple(types)) if WHOLE not in before else types[0], weak=frozenset(kept))


def _parts(ty: Type) -> dict[int, Type]:
    """The fields of a tuple type by their places, or the type itself."""
    return dict(enumerate(ty.fields)) if isinstance(ty, TupleType) else {WHOLE: ty}


def _new_dtype(item: _Carried, place: int, after: Type, weak: bool) -> str | None:
    """The dtype that a number has from now on, where it is another one."""
    before = _parts(item.ty)[place]
    if not _is_number(before) or not _is_number(after):
        return None
    numbers = [(str(before.dtype), place in item.weak), (str(after.dtype), weak)]  # type: ignore[attr-defined]
    found = joined_dtype(numbers)
    return found if found != numbers[0][0] else None


def _is_number(ty: Type) -> bool:
    return is_scalar_type(ty) and ty.dtype is not None


def _as_carried(session: GraphSession, item: _Carried, value: Expr, tree: ast.AST) -> Expr:
    """What an iteration gives, with numbers in the dtypes that they are carried in, where those can hold them."""
    ty = type_of(session, value, tree)
    if not isinstance(value, Tuple) or not isinstance(item.ty, TupleType):
        return _number_as_carried(session, item, WHOLE, value, tree)
    if not isinstance(ty, TupleType) or len(ty.fields) != len(item.ty.fields):
        return value
    made = [_number_as_carried(session, item, place, part, tree) for place, part in enumerate(value.fields)]
    return Tuple(tuple(made), span=value.span)


def _number_as_carried(session: GraphSession, item: _Carried, place: int, value: Expr, tree: ast.AST) -> Expr:
    before, after = _parts(item.ty).get(place), type_of(session, value, tree)
    if before is None or not _is_number(before) or not _is_number(after):
        return value
    dtype, weak = str(before.dtype), is_weak(session, value)  # type: ignore[attr-defined]
    if dtype == after.dtype or joined_dtype([(dtype, place in item.weak), (str(after.dtype), weak)]) != dtype:  # type: ignore[attr-defined]
        return value
    made = in_dtype(session, value, dtype, tree)
    if weak:
        session.weak.add(made)
    return made


def _of_dtype(session: GraphSession, item: _Carried, tree: ast.AST) -> Expr:
    """The initial value in the dtypes that it is carried in."""
    if isinstance(item.initial, Tuple) and isinstance(item.ty, TupleType):
        pairs = zip(item.initial.fields, item.ty.fields, strict=True)
        return Tuple(tuple(_converted(session, part, ty, tree) for part, ty in pairs), span=item.initial.span)
    return _converted(session, item.initial, item.ty, tree)


def _converted(session: GraphSession, value: Expr, ty: Type, tree: ast.AST) -> Expr:
    given = type_of(session, value, tree)
    if not isinstance(given, TensorType) or not isinstance(ty, TensorType) or ty.dtype in (None, given.dtype):
        return value
    return in_dtype(session, value, str(ty.dtype), tree)
