"""Reading calls inside scalar expressions: intrinsics, casts, choices, typed constants."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.errors import WeftError
from weft.ir.graph import Expr, StringImm
from weft.ir.kernel.intrinsics import INTRINSICS
from weft.ir.kernel.prim import as_expr, cast, const, intrinsic, lane_count
from weft.ir.node import EMPTY
from weft.ir.op import OPS
from weft.ir.tensor import Binary, Buffer, BufferLoad, Cast, FloatImm, Let, PrimCall, PrimExpr, PrimVar, Select
from weft.script.forms.defaults import (
    DTYPE_FIRST,
    DTYPE_LAST,
    DTYPE_MAYBE_FIRST,
    DTYPE_OF_ARGUMENT,
    OLD_OPERATORS,
    RESULT_DTYPES,
    is_device_name,
)
from weft.script.forms.reading import TENSOR
from weft.script.forms.syntax import NAMES, SCALARS, UNARY
from weft.script.reader.expression.arguments import argument_trees, bind_arguments
from weft.script.reader.expression.attributes import read_literal
from weft.script.reader.expression.names import unknown_name
from weft.script.reader.scope import Scope, describe
from weft.script.reader.tensor.scalar import (
    address_of_data,
    as_bool,
    as_prim,
    as_side,
    divided_up,
    in_common_dtype,
    read_prims,
    read_scalar,
)
from weft.script.reader.tensor.session import TensorSession
from weft.script.source.diagnostics import did_you_mean

__all__ = [
    "as_call_argument",
    "float_text",
    "intrinsic_call",
    "intrinsic_instead",
    "intrinsic_names",
    "masked_indices",
    "opaque_call",
    "operator_call",
    "plain_values",
    "read_lanes",
    "read_operand",
    "read_predicate",
    "read_where",
    "scalar_form",
    "stated_dtype",
    "typed_constant",
    "typed_value",
    "unknown_scalar",
]


def _names_dtype(value: Any) -> bool:
    try:
        return isinstance(value, str) and bool(dtypes.check_dtype(value))
    except WeftError:
        return False


def unknown_scalar(session: TensorSession, name: str, tree: ast.AST) -> WeftError:
    """The error for a name that I, R or T does not have, or has for graph functions only."""
    if name.startswith("R.") and (name[2:] in OPS or name in NAMES):
        hint = session.level.instead_of(session, name)
        return session.fail("W115", f"`{name}` is graph-level: it belongs in an @R.function", tree, hint)
    return unknown_name(session, name, tree)


def intrinsic_instead(session: TensorSession, name: str) -> str | None:
    """The scalar function of that name."""
    short = name.rpartition(".")[2]
    return f"did you mean `T.{short}`?" if short in INTRINSICS or f"T.{short}" in NAMES else None


def intrinsic_names(session: TensorSession, root: str) -> list[str]:
    """Intrinsics, for suggestions."""
    return [f"T.{name}" for name in INTRINSICS] if root == "T" else []


def operator_call(session: TensorSession, kind: str, name: str, tree: ast.Call) -> PrimExpr:
    """`T.max(a, b)` and the like, which may state the dtype that they have."""
    return _stated(session, _combined(session, kind, name, tree), tree)


def _combined(session: TensorSession, kind: str, name: str, tree: ast.Call) -> PrimExpr:
    values = plain_values(session, tree, ("dtype",))
    if kind in UNARY:
        if len(values) != 1:
            raise session.fail("W113", f"{name} takes 1 argument, got {len(values)}", tree)
        return session.level.combine_unary(session, kind, values[0], tree)
    if len(values) != 2:
        raise session.fail("W113", f"{name} takes 2 arguments, got {len(values)}", tree)
    left, right = (as_side(session, value, tree) for value in values)
    if not isinstance(left, PrimExpr) and not isinstance(right, PrimExpr):
        left = as_expr(left)
    if kind == "div":  # T.Div divides integers too, as C does
        made = in_common_dtype(session, left, right, tree)
        return Binary("div", *made, span=session.span(tree))
    return session.level.combine(session, kind, left, right, tree)


def plain_values(session: TensorSession, tree: ast.Call, keywords: Sequence[str] = ()) -> list[Any]:
    """The values of positional arguments; W113 for keywords that the call does not take."""
    for keyword in tree.keywords:
        if keyword.arg not in keywords and keyword.arg != "span":
            raise session.fail("W113", f"`{ast.unparse(tree.func)}` has no argument '{keyword.arg}'", keyword)
    return [session.value(argument) for argument in argument_trees(session, tree)]


def scalar_form(session: TensorSession, name: str, tree: ast.Call) -> PrimExpr:
    """A form of the table that stands for a node."""
    values = bind_arguments(session, SCALARS[name], tree)
    return SCALARS[name].build(**values, span=session.span(tree))  # type: ignore[misc]


@TENSOR.hole("lanes")
def read_lanes(session: TensorSession, tree: ast.expr) -> int:
    """A number of lanes: a constant, or a multiple of `T.vscale()`."""
    value = session.value(tree)
    lanes = session.fold(lambda: lane_count(value), tree)
    if lanes is None or isinstance(value, bool):
        what = repr(value) if isinstance(value, (bool, float, str)) else describe(value)
        hint = "a constant, or a multiple of T.vscale()"
        raise session.fail("W114", f"expected an integer, got {what}", tree, hint)
    return lanes


@TENSOR.value("T.Cast")
def _cast(session: TensorSession, tree: ast.Call) -> PrimExpr:
    """`T.Cast("float32", x)`; `T.cast(x, "float32")` is the same."""
    named = {keyword.arg: session.value(keyword.value) for keyword in tree.keywords}
    values = [session.value(argument) for argument in argument_trees(session, tree)]
    if "dtype" in named:
        values.insert(0, named.pop("dtype"))
    values.extend(named.values())
    if len(values) == 2 and isinstance(values[1], str):
        values.reverse()
    if len(values) != 2 or not isinstance(values[0], (str, np.dtype)):
        raise session.fail("W113", "T.Cast takes a dtype and a value", tree, 'T.Cast("float32", value)')
    dtype = session.fold(lambda: dtypes.check_dtype(values[0]), tree)
    return Cast(dtype, as_prim(session, values[1], tree), span=session.span(tree))


@TENSOR.value("T.Select")
def _select(session: TensorSession, tree: ast.Call) -> PrimExpr:
    values = plain_values(session, tree)
    if len(values) != 3:
        raise session.fail(
            "W113",
            f"T.Select takes 3 arguments, got {len(values)}",
            tree,
            "T.Select(condition, true_value, false_value)",
        )
    sides = [value.dtype for value in values[1:] if isinstance(value, PrimExpr)]
    if len(set(sides)) > 1:
        raise session.fail("W123", f"T.Select chooses between a {sides[0]} and a {sides[1]}", tree, "use T.Cast")
    a, b = in_common_dtype(session, values[1], values[2], tree)
    return Select(as_bool(session, as_prim(session, values[0], tree), tree), a, b, span=session.span(tree))


@TENSOR.value("T.if_then_else")
def _if_then_else(session: TensorSession, tree: ast.Call) -> PrimExpr:
    values = plain_values(session, tree, ("dtype",))
    if len(values) != 3:
        raise session.fail("W113", f"T.if_then_else takes 3 arguments, got {len(values)}", tree)
    a, b = in_common_dtype(session, values[1], values[2], tree)
    test = as_bool(session, as_prim(session, values[0], tree), tree)
    return _stated(session, PrimCall("if_then_else", (test, a, b), a.dtype, span=session.span(tree)), tree)


def _stated(session: TensorSession, value: PrimExpr, tree: ast.Call) -> PrimExpr:
    """A value whose call may state the dtype that it has anyway, as texts of TVM once did."""
    stated = [keyword.value for keyword in tree.keywords if keyword.arg == "dtype"]
    if not stated:
        return value
    dtype = session.fold(lambda: dtypes.check_dtype(session.constant(stated[0])), stated[0])
    if dtype != value.dtype:
        raise session.fail("W123", f"the value is {value.dtype}, not {dtype}", stated[0])
    return value


@TENSOR.value("T.Let")
def _let(session: TensorSession, tree: ast.Call) -> PrimExpr:
    values = bind_arguments(session, SCALARS["T.Let"], tree)
    where = values["where"]
    bindings: list[tuple[PrimVar, PrimExpr]] = []
    saved = session.scope
    try:
        for key, item in zip(where.keys, where.values, strict=True):
            value = read_scalar(session, item)
            var = PrimVar(key.id, value.dtype, span=session.span(key))
            bindings.append((var, value))
            session.scope = Scope(session.scope)
            session.scope.names[key.id] = var
        result = read_scalar(session, values["body"])
    finally:
        session.scope = saved
    for var, value in reversed(bindings):
        result = Let(var, value, result, span=session.span(tree))
    return result


@TENSOR.hole("where")
def read_where(session: TensorSession, tree: ast.expr) -> ast.Dict:
    """The bindings of T.Let: `{v: value}`."""
    if not isinstance(tree, ast.Dict) or not all(isinstance(key, ast.Name) for key in tree.keys):
        raise session.fail("W114", "expected {v: value}", tree)
    return tree


def typed_constant(session: TensorSession, dtype: str, tree: ast.Call) -> PrimExpr:
    """`T.float32(1)`: a constant of a dtype; of an expression, a cast."""
    if len(tree.args) != 1 or tree.keywords:
        hint = f"a symbol is declared by an assignment: `n = T.{dtype}()`" if not tree.args else None
        raise session.fail("W113", f"T.{dtype} takes 1 argument, got {len(tree.args)}", tree, hint)
    value = session.value(tree.args[0])
    return typed_value(session, dtype, value, tree)


def typed_value(session: TensorSession, dtype: str, value: Any, tree: ast.AST) -> PrimExpr:
    """A constant of a dtype, or a cast of an expression."""
    if isinstance(value, str) and dtypes.is_float(dtype):
        return FloatImm(float_text(session, value, tree), dtype, span=session.span(tree))
    if isinstance(value, (bool, int, float)):
        return session.fold(lambda: const(value, dtype), tree)
    if isinstance(value, str):
        raise session.fail("W114", f"expected a {dtype} value, got the string {value!r}", tree)
    return session.fold(lambda: cast(dtype, as_prim(session, value, tree)), tree)


def float_text(session: TensorSession, text: str, tree: ast.AST) -> float:
    """A float written as a string: nan, inf, -inf."""
    try:
        return float(text)
    except ValueError:
        raise session.fail("W152", f"{text!r} is not a number", tree) from None


def _limit(session: TensorSession, name: str) -> Callable[[ast.Call], PrimExpr]:
    def read(tree: ast.Call) -> PrimExpr:
        values = plain_values(session, tree)
        if len(values) != 1:
            raise session.fail("W113", f"{name} takes a dtype", tree)
        dtype = session.fold(lambda: dtypes.check_dtype(values[0]), tree)
        if name == "T.infinity" and not dtypes.is_float(dtype):
            raise session.fail("W123", f"{dtype} has no infinity", tree, "T.max_value")
        if name == "T.infinity":
            return FloatImm(float("inf"), dtype, span=session.span(tree))
        bound = dtypes.min_value(dtype) if name == "T.min_value" else dtypes.max_value(dtype)
        return session.fold(lambda: const(bound, dtype), tree)

    return read


@TENSOR.value("T.infinity")
def _infinity(session: TensorSession, tree: ast.Call) -> PrimExpr:
    return _limit(session, "T.infinity")(tree)


@TENSOR.value("T.min_value")
def _min_value(session: TensorSession, tree: ast.Call) -> PrimExpr:
    return _limit(session, "T.min_value")(tree)


@TENSOR.value("T.max_value")
def _max_value(session: TensorSession, tree: ast.Call) -> PrimExpr:
    return _limit(session, "T.max_value")(tree)


@TENSOR.value("T.ceildiv")
def _ceildiv_call(session: TensorSession, tree: ast.Call) -> Any:
    values = plain_values(session, tree)
    if len(values) != 2:
        raise session.fail("W113", f"T.ceildiv takes 2 arguments, got {len(values)}", tree)
    return divided_up(session, values[0], values[1], tree)


def intrinsic_call(session: TensorSession, name: str, tree: ast.Call) -> PrimExpr:
    """`T.exp(x)`: a call of an intrinsic."""
    entry = INTRINSICS[name]
    if entry.rule == "given":
        return _given(session, name, tree)
    values = [as_side(session, value, tree) for value in plain_values(session, tree, ("dtype",))]
    if entry.arity >= 0 and len(values) != entry.arity:
        many = "s" if entry.arity != 1 else ""
        raise session.fail("W113", f"T.{name} takes {entry.arity} argument{many}, got {len(values)}", tree)
    return _stated(session, session.fold(lambda: intrinsic(name, *values, span=session.span(tree)), tree), tree)


def _given(session: TensorSession, name: str, tree: ast.Call) -> PrimExpr:
    """A call that states its dtype: first, by keyword, or the usual one of that intrinsic."""
    masked = _masked_load(session, tree) if name == "masked_load" else None
    if masked is not None:
        return masked
    stated = [keyword.value for keyword in tree.keywords if keyword.arg == "dtype"]
    attrs = [read_literal(session, keyword.value) for keyword in tree.keywords if keyword.arg == "attrs"]
    values = plain_values(session, tree, ("dtype", "attrs"))
    if stated:
        dtype = stated_dtype(session, session.constant(stated[0]), stated[0])
    elif name in DTYPE_FIRST:
        if not values or not isinstance(values[0], (str, type)):
            raise session.fail(
                "W113", f"T.{name} takes the dtype of its result first", tree, f'T.{name}("float32", ...)'
            )
        dtype = stated_dtype(session, values[0], tree)
        values = values[1:]
    elif name in DTYPE_MAYBE_FIRST and values and _names_dtype(values[0]):
        dtype = stated_dtype(session, values[0], tree)
        values = values[1:]
    elif name in DTYPE_LAST and len(values) == DTYPE_LAST[name] + 1 and _names_dtype(values[-1]):
        dtype = stated_dtype(session, values[-1], tree)
        values = values[:-1]
    elif name in DTYPE_OF_ARGUMENT and len(values) > DTYPE_OF_ARGUMENT[name]:
        dtype = as_prim(session, values[DTYPE_OF_ARGUMENT[name]], tree).dtype
    else:
        dtype = RESULT_DTYPES.get(name, "void")
    if name == "print_buffer" and values and isinstance(values[-1], (tuple, list)):
        values = [*values[:-1], *values[-1]]  # its last argument may be the whole shape
    args = tuple(as_call_argument(session, value, tree) for value in values)
    if name == "reinterpret":
        _check_reinterpret(session, args, dtype, tree)
    return PrimCall(name, args, dtype, attrs[0] if attrs else EMPTY, span=session.span(tree))


def _masked_load(session: TensorSession, tree: ast.Call) -> PrimExpr | None:
    """`T.masked_load(dtype, A, *indices, mask)` as a load with a predicate, or None where A is a pointer."""
    source = session.value(tree.args[1]) if len(tree.args) > 3 and not tree.keywords else None
    if not isinstance(source, Buffer):
        return None
    indices, mask = masked_indices(session, source, tree.args[2:], tree)
    return BufferLoad(source, indices, mask, span=session.span(tree)) if indices else None


def masked_indices(
    session: TensorSession, buffer: Buffer, trees: Sequence[ast.expr], tree: ast.AST
) -> tuple[tuple[PrimExpr, ...], PrimExpr]:
    """The indices before a mask, and the mask; no indices where they are no vector."""
    *parts, mask = [read_scalar(session, item) for item in trees]
    if len(parts) != buffer.ndim:
        raise session.fail("W121", f"'{buffer.name}' has {buffer.ndim} dimensions, got {len(parts)} indices", tree)
    return (tuple(parts) if dtypes.lanes(parts[-1].dtype) != 1 else ()), as_bool(session, mask, tree)


def _check_reinterpret(session: TensorSession, args: tuple[Expr, ...], dtype: str, tree: ast.AST) -> None:
    """W123: bits are read as a value of the same size."""
    if len(args) != 1:
        raise session.fail("W113", "T.reinterpret takes a dtype and a value", tree)
    given = args[0].dtype if isinstance(args[0], PrimExpr) else "handle"
    sizes = [dtypes.bits(name) * dtypes.lanes(name) for name in (dtype, given) if name not in ("handle", "void")]
    if len(set(sizes)) > 1:
        raise session.fail("W123", f"the bits of {given} are not those of a {dtype}", tree)


def stated_dtype(session: TensorSession, value: Any, tree: ast.AST) -> str:
    """A stated dtype; the empty one says that there is no result."""
    return "void" if value == "" else session.fold(lambda: dtypes.check_dtype(value), tree)


@TENSOR.hole("operand")
def read_operand(session: TensorSession, tree: ast.expr) -> Expr:
    """An argument of a call: a scalar, the address of a buffer, or a string."""
    return as_call_argument(session, session.value(tree), tree)


def as_call_argument(session: TensorSession, value: Any, tree: ast.AST) -> Expr:
    """An argument of a call: a scalar, the address of a buffer, a string."""
    if isinstance(value, Buffer) and not (value.shape in ((1,), ()) and value.name in session.scalars):
        return address_of_data(session, value, tree)
    if isinstance(value, str):
        return StringImm(value, span=session.span(tree))
    if isinstance(value, Expr):
        return value
    return as_prim(session, value, tree)


def opaque_call(session: TensorSession, name: str, tree: ast.Call) -> PrimExpr:
    """An intrinsic of some device: kept as it is written, by the name that all releases understand."""
    return _given(session, OLD_OPERATORS.get(name, name), tree)


@TENSOR.value("T.call_intrin")
def _call_intrin(session: TensorSession, tree: ast.Call) -> PrimExpr:
    values = bind_arguments(session, SCALARS["T.call_intrin"], tree)
    op = session.constant(values["op"])
    if not isinstance(op, str):
        raise session.fail("W114", "the intrinsic is named by a string", tree)
    own = op.startswith(("tirx.", "tir.")) or "." not in op
    op = op.removeprefix("tirx.").removeprefix("tir.")  # the namespaces of operators in other spellings
    op = OLD_OPERATORS.get(op, op)
    if own and not (op in INTRINSICS or op in RESULT_DTYPES or is_device_name(op) or f"T.{op}" in NAMES):
        hint = did_you_mean(op, INTRINSICS) or "name an intrinsic of a device of yours with a dot: `mine.load`"
        raise session.fail("W111", f"there is no intrinsic '{op}'", values["op"], hint)
    return PrimCall(op, values["args"], values["dtype"], values["attrs"], span=session.span(tree))


@TENSOR.value("T.comm_reducer")
def _comm_reducer(session: TensorSession, tree: ast.Call) -> PrimExpr:
    """`T.comm_reducer(lambda x, y: x + y, [identity])`: a reduction as text, with its identities."""
    if len(tree.args) != 2 or tree.keywords:
        raise session.fail("W113", "T.comm_reducer takes a function and its identities", tree)
    combine = tree.args[0]
    text = ast.unparse(combine) if isinstance(combine, ast.Lambda) else session.constant(combine)
    if not isinstance(text, str):
        raise session.fail("W114", "expected a lambda or its text", combine)
    identities = read_prims(session, tree.args[1])
    dtype = identities[0].dtype if identities else "void"
    return PrimCall("comm_reducer", (StringImm(text), *identities), dtype, span=session.span(tree))


def read_predicate(session: TensorSession, tree: ast.Call) -> PrimExpr | None:
    """The keyword `predicate` of a load or store."""
    found = [keyword.value for keyword in tree.keywords if keyword.arg == "predicate"]
    return read_scalar(session, found[0]) if found else None


@TENSOR.value("T.IntImm", "T.FloatImm")
def _immediate(session: TensorSession, tree: ast.Call) -> PrimExpr:
    """`T.IntImm("int4", 3)`, `T.FloatImm("float64", 1e300)`: a constant by the dtype as a string."""
    values = plain_values(session, tree)
    if len(values) != 2 or not _names_dtype(values[0]) or not isinstance(values[1], (int, float)):
        raise session.fail("W113", "a constant takes a dtype and a number", tree)
    return session.fold(lambda: const(values[1], dtypes.check_dtype(values[0])), tree)
