"""Reading operators and operator calls of graph functions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import partial, reduce
from typing import Any

import numpy as np

from weft.dtypes import is_float, is_integer
from weft.errors import WeftError
from weft.ir.attrs import LABEL
from weft.ir.deduction.device_mesh import check_placement, whole_tensors
from weft.ir.dim import DimExpr, maximum, minimum, prove_equal, prove_le, prove_lt
from weft.ir.graph import Expr, Function, PrimValue, Tuple, Var
from weft.ir.kernel.index_map import MappedLayout
from weft.ir.node import replace
from weft.ir.op import OPS, OpDef, get_op, likely_operators
from weft.ir.op.declare import ParamKind
from weft.ir.tensor import PrimExpr, PrimFunc
from weft.ir.types import PrimType, ShapeType, TensorType, TupleType, Type
from weft.script.forms.syntax import BINARY, UNARY
from weft.script.reader.expression.dims import size_of
from weft.script.reader.expression.names import unknown_name
from weft.script.reader.expression.operators import apply_binary, takes_dims
from weft.script.reader.expression.places import as_mesh, checked_device, read_placement
from weft.script.reader.expression.python_functions import refuse_builtin
from weft.script.reader.graph.bindings import (
    LEAVES,
    as_expr,
    as_leaf,
    fields_of,
    in_dtype,
    is_weak,
    number_dtype,
    prim_leaf,
    scalar_tensor,
    type_of,
)
from weft.script.reader.graph.expressions.numbers import promoted, settled_numbers
from weft.script.reader.graph.session import GraphSession
from weft.script.reader.graph.sizes import takes_sizes
from weft.script.reader.macros import Macro
from weft.script.reader.scope import describe, is_dim
from weft.script.source.text import MISSING

__all__ = [
    "as_operand",
    "as_operator",
    "builtin_of_values",
    "call_operator",
    "check_devices",
    "combine_value",
    "combine_values",
    "contained_value",
    "operator_instead",
    "operator_names",
    "placed",
    "reduced",
]

_RELATIONS: dict[str, Callable[[Any, Any], bool | None]] = {
    "eq": prove_equal,
    "ne": lambda a, b: None if (known := prove_equal(a, b)) is None else not known,
    "le": prove_le,
    "lt": prove_lt,
    "ge": lambda a, b: prove_le(b, a),
    "gt": lambda a, b: prove_lt(b, a),
}
_OPERATORS = {"abs": "abs", "round": "round", "min": "minimum", "max": "maximum"}


def _joined(session: GraphSession, left: Any, right: Any, tree: ast.AST) -> tuple[Any, ...] | None:
    """`t + (a, b)`: the parts of two tuples, of which one is a value of the graph; None for other operands."""
    for side in (left, right):
        if isinstance(side, Expr):
            if not isinstance(type_of(session, side, tree), TupleType):
                return None
        elif not isinstance(side, tuple):
            return None
    first, second = (side if isinstance(side, tuple) else fields_of(session, side, tree) for side in (left, right))
    return (*(first or ()), *(second or ()))


def combine_values(session: GraphSession, kind: str, left: Any, right: Any, tree: ast.AST) -> Any:
    """An operator on tensors: the declared operator that it means."""
    joined = _joined(session, left, right, tree) if kind == "add" and not is_dim(left) and not is_dim(right) else None
    if joined is not None:
        return joined
    for side in (left, right):
        if not isinstance(side, (Expr, bool, int, float, complex, DimExpr)):
            hint = "arrays are given as `R.const(array)`" if isinstance(side, np.ndarray) else None
            raise session.fail("W114", f"`{BINARY[kind].text}` of {describe(left)} and {describe(right)}", tree, hint)
    left_size, right_size = size_of(session, left), size_of(session, right)
    if left_size is not None and right_size is not None:
        if kind in _RELATIONS:
            return _relation(session, kind, left_size, right_size, tree)
        if takes_dims(kind, left_size, right_size):
            return apply_binary(session, kind, left_size, right_size, tree)
    numbers = promoted(session, kind, [left, right], tree)
    made = call_operator(session, BINARY[kind].graph, [_as_truth(session, v, tree) for v in numbers.values], {}, tree)
    if kind not in _RELATIONS and numbers.weak:
        session.weak.add(made)
    return made


def contained_value(session: GraphSession, item: Any, values: Any, tree: ast.AST) -> Any:
    """`v in x` of a tensor: whether one of its elements is v."""
    ty = type_of(session, values, tree) if isinstance(values, Expr) else None
    if not isinstance(ty, TensorType):
        return MISSING
    same = as_leaf(session, combine_values(session, "eq", values, item, tree), tree)
    return call_operator(session, "any", [same], {}, tree)


def _as_truth(session: GraphSession, value: Any, tree: ast.AST) -> Any:
    """A bool scalar that a run computes as a tensor of rank 0, which kernels take; everything else as it is."""
    ty = type_of(session, value, tree) if isinstance(value, Var) else None
    return scalar_tensor(session, value, tree) if isinstance(ty, PrimType) and ty.dtype == "bool" else value


def _relation(session: GraphSession, kind: str, left: Any, right: Any, tree: ast.AST) -> Any:
    """A comparison of sizes: known where it holds (or not) for all of them, else computed when the program runs."""
    known = session.fold(lambda: _RELATIONS[kind](left, right), tree)
    if known is not None:
        return known
    scalars = [PrimValue(side, "int64", span=session.span(tree)) for side in (left, right)]
    return call_operator(session, BINARY[kind].graph, scalars, {}, tree)


def operator_instead(session: GraphSession, name: str) -> str | None:
    """The operator of the graph."""
    close = likely_operators(name)
    return f"it was given values of the graph: did you mean `R.{close[0]}`?" if close else None


def as_operator(session: GraphSession, tree: ast.Attribute) -> str | None:
    """A hint: the operator that a method or attribute of a tensor of another library is here."""
    if tree.attr == "size":  # a number in NumPy, the shape in PyTorch
        tensor = ast.unparse(tree.value)[:30]
        return f"`{tensor}.shape[0]` is one of its sizes, `R.size({tensor})` the number of elements"
    close = likely_operators(tree.attr)
    if not close:
        return None
    more = ", ..." if len(OPS[close[0]].params) > 1 else ""
    return f"write `R.{close[0]}({ast.unparse(tree.value)[:30]}{more})`"


def combine_value(session: GraphSession, kind: str, operand: Any, tree: ast.AST) -> Any:
    """A unary operator on a tensor."""
    if not isinstance(operand, Expr):
        raise session.fail("W114", f"`{UNARY[kind].text.strip()}` of {describe(operand)}", tree)
    size = size_of(session, operand)
    if kind == "neg" and size is not None:
        return session.fold(lambda: -size, tree)
    operand = _as_truth(session, operand, tree)
    made = call_operator(session, UNARY[kind].graph, [operand], {}, tree)
    if is_weak(session, operand):
        session.weak.add(made)
    return made


def call_operator(session: GraphSession, name: str, args: list[Any], kwargs: dict[str, Any], tree: ast.AST) -> Expr:
    """A call of a declared operator."""
    if name == "stack" and args and isinstance(args[0], Var) and args[0] in session.stacked:
        return args[0]  # a list that a loop appended to is one tensor already
    span = session.span(tree)
    op = operator_of(session, name, tree)
    given = dict(enumerate(args)) | kwargs
    numbers = _numbers_of_python(session, op, args, kwargs)
    for key, value in given.items():
        if isinstance(value, Macro) and not value.level:
            _refuse_lambda(session, op, key, tree)
    args = [
        _sized(session, op, index, as_operand(session, value, tree))
        for index, value in enumerate(settled_numbers(session, op, args, tree))
    ]
    kwargs = {key: _sized(session, op, key, as_operand(session, value, tree)) for key, value in kwargs.items()}
    try:
        label = _call_label(session, op, kwargs, tree)
        if "ty_args" in kwargs and not any(param.kind == ParamKind.TYPES for param in op.params):
            del kwargs["ty_args"]  # said by printers of passes; the operator's own rule deduces it
        call = op.bind(args, kwargs, span)
    except WeftError as error:
        raise error.at(span) from None
    made = call if label is None else replace(call, attrs=call.attrs.set(LABEL, label))
    if numbers and type_of(session, made, tree) == TensorType((), number_dtype(session, numbers[0], tree)):
        session.weak.add(made)
    return made


def _numbers_of_python(session: GraphSession, op: OpDef, args: list[Any], kwargs: dict[str, Any]) -> list[Any]:
    """The operands of an operator where all are numbers of Python: its result is one; none where its dtype is said."""
    if op.name == "astype" or kwargs:
        return []
    operands = [value for value, param in zip(args, op.params, strict=False) if param.kind == ParamKind.EXPR]
    return operands if all(isinstance(v, Expr) and is_weak(session, v) for v in operands) else []


def operator_of(session: GraphSession, name: str, tree: ast.AST) -> OpDef:
    """The declaration of an operator; for the error other names that R has, and namespaces, count too."""
    try:
        return get_op(name, session.span(tree))
    except WeftError as error:
        known = unknown_name(session, f"R.{name}", tree)
        raise known if known.code == "W114" or (error.hint is None and known.hint is not None) else error from None


def _refuse_lambda(session: GraphSession, op: OpDef, key: int | str, tree: ast.AST) -> None:
    """A lambda is a value for parameters that take the text of a function, and for no others."""
    found = [param for index, param in enumerate(op.params) if key in (index, param.name)]
    if found and found[0].kind != ParamKind.ATTR:
        message = f"R.{op.name}: {found[0].name} must be a value of the graph, got a lambda"
        raise session.fail("W114", message, tree, "a lambda is called where it is used: `(lambda a: a + 1)(x)`")


def placed(session: GraphSession, op: OpDef, args: list[Any], kwargs: dict[str, Any], tree: ast.Call) -> None:
    """Resolve the mesh and the placement among the arguments of a call, with their places in the text."""
    mesh = None
    for index, param in enumerate(op.params):
        if param.of not in ("mesh", "placement"):
            continue
        found = [keyword.value for keyword in tree.keywords if keyword.arg == param.name]
        place = found[0] if found else tree.args[index] if index < len(tree.args) else None
        values: Any = kwargs if found else args
        key: Any = param.name if found else index
        if place is None or isinstance(place, ast.Starred) or not (found or index < len(args)):
            continue
        if param.of == "mesh":
            mesh = values[key] = as_mesh(session, values[key], place)
        else:
            values[key] = placement = read_placement(session, place)
            ty = whole_tensors(type_of(session, args[0], tree)) if args and isinstance(args[0], LEAVES) else None
            ndim = ty.ndim if isinstance(ty, TensorType) else -1
            if mesh is not None:
                session.fold(partial(check_placement, placement, mesh, ndim), place)


def check_devices(session: GraphSession, op: OpDef, args: list[Any], kwargs: dict[str, Any], tree: ast.Call) -> None:
    """The names of virtual devices among the arguments of a call."""
    for index, param in enumerate(op.params):
        if param.of == "device":
            if isinstance(given := kwargs.get(param.name), str):
                kwargs[param.name] = checked_device(session, given, tree)
            elif index < len(args) and isinstance(given := args[index], str):
                args[index] = checked_device(session, given, tree)


def _call_label(session: GraphSession, op: OpDef, kwargs: dict[str, Any], tree: ast.AST) -> str | None:
    """`target="npu"`: the label of the part that a call belongs to, which any operator takes."""
    if "target" not in kwargs or any(param.name == "target" for param in op.params):
        return None
    label = kwargs.pop("target")
    if not isinstance(label, str) or not label.isidentifier():
        raise session.fail("W114", f"target takes the label of a part of the target, got {describe(label)}", tree)
    return label


def _sized(session: GraphSession, op: OpDef, key: int | str, value: Any) -> Any:
    """An argument in which scalars that are sizes stand as those, where the parameter takes sizes."""
    takes = any(takes_sizes(param) for index, param in enumerate(op.params) if key in (index, param.name))
    if not takes or not isinstance(value, (tuple, list)):
        return value
    return type(value)(size_of(session, item, item) for item in value)


def as_operand(session: GraphSession, value: Any, tree: ast.AST) -> Any:
    """An argument of an operator: calls are bound first, plain values stay (the declaration converts them)."""
    if isinstance(value, Tuple) and all(isinstance(item, LEAVES) for item in value.fields):
        return value
    if isinstance(value, (PrimFunc, Function)):
        return as_expr(session, value, tree)
    if isinstance(value, Expr) and not isinstance(value, (*LEAVES, Type, PrimExpr)):
        return as_leaf(session, value, tree)
    if isinstance(value, PrimExpr):
        return prim_leaf(session, value, tree)
    if isinstance(value, Macro) and not value.level:
        return value.text  # the operator that takes a function reads its text
    if isinstance(value, MappedLayout):
        return value.text
    if isinstance(value, (tuple, list)):
        return type(value)(as_operand(session, item, tree) for item in value)
    if isinstance(value, np.ndarray):
        return as_expr(session, value, tree)
    return value


def builtin_of_values(session: GraphSession, name: str, values: list[Any], tree: ast.Call) -> Any:
    """`abs(x)`, `max(x, y)`, `len(x)`, `round(x)`, `sum(x)`, `float(x)` and their like, of tensors and tuples."""
    if name == "abs" and len(values) == 1:
        return _applied(session, name, values, tree)
    if name == "round" and len(values) == 1:
        made = _applied(session, name, values, tree)
        return _as_python_number(session, "int", made, tree) if _rank(session, made, tree) == 0 else made
    if name == "round" and len(values) == 2 and isinstance(values[1], int):
        return _rounded(session, values[0], values[1], tree)
    if name in ("min", "max") and len(values) > 1:
        return reduce(lambda a, b: _applied(session, name, [a, b], tree), values)
    if name in _REDUCTIONS and len(values) == 1 and _rank(session, values[0], tree) == 1:
        return reduced(session, name, values[0], tree)
    if name in ("float", "int", "bool") and len(values) == 1 and _rank(session, values[0], tree) == 0:
        return _as_python_number(session, name, values[0], tree)
    if name == "len" and len(values) == 1:
        if isinstance(values[0], (tuple, list)):
            return len(values[0])
        ty = type_of(session, as_leaf(session, values[0], tree), tree)
        if isinstance(ty, TupleType):
            return len(ty.fields)
        if isinstance(ty, (TensorType, ShapeType)) and ty.dims:
            return ty.dims[0] if isinstance(ty, TensorType) else len(ty.dims)
    return refuse_builtin(session, name, values, tree)


def reduced(session: GraphSession, name: str, value: Any, tree: ast.AST) -> Expr:
    """`sum(x)` and its like of the rows of a tensor; the sum of truth values is their number."""
    if name == "sum" and number_dtype(session, value, tree) == "bool":
        value = in_dtype(session, value, "int64", tree)
    return call_operator(session, name, [value], {"axis": 0}, tree)


def _applied(session: GraphSession, name: str, values: list[Any], tree: ast.AST) -> Any:
    """The operator that a function of Python is; of numbers of Python the result is one."""
    sizes = [size_of(session, value) for value in values]
    if name in ("min", "max") and None not in sizes:
        return session.fold(lambda: (minimum if name == "min" else maximum)(*sizes), tree)
    numbers = promoted(session, name, values, tree)
    made = call_operator(session, _OPERATORS[name], numbers.values, {}, tree)
    if numbers.weak:
        session.weak.add(made)
    return made


def _rounded(session: GraphSession, value: Any, digits: int, tree: ast.AST) -> Any:
    """`round(x, 2)` of floats: the nearest multiple of 0.01."""
    scalar = scalar_tensor(session, value, tree)
    if not is_float(number_dtype(session, scalar, tree)):
        return value if digits >= 0 else refuse_builtin(session, "round", [value], tree)  # type: ignore[arg-type]
    first, last = ("mul", "div") if digits >= 0 else ("div", "mul")
    scaled = as_leaf(session, combine_values(session, first, scalar, 10.0 ** abs(digits), tree), tree)
    return combine_values(session, last, _applied(session, "round", [scaled], tree), 10.0 ** abs(digits), tree)


_REDUCTIONS = ("sum", "min", "max", "any", "all")


def _rank(session: GraphSession, value: Any, tree: ast.AST) -> int:
    """The rank of a tensor, 0 for a scalar, -1 for anything else."""
    ty = type_of(session, as_leaf(session, value, tree), tree) if isinstance(value, (Expr, DimExpr)) else None
    return ty.ndim if isinstance(ty, TensorType) else 0 if isinstance(ty, PrimType) else -1


def _as_python_number(session: GraphSession, name: str, value: Any, tree: ast.AST) -> Any:
    """`float(x)`, `int(x)`, `bool(x)` of a scalar: a number of Python, in its dtype where that is of the kind."""
    if isinstance(value, DimExpr) and name == "int":
        return value
    scalar = scalar_tensor(session, value, tree)
    dtype = number_dtype(session, scalar, tree)
    fits = {"float": is_float, "int": is_integer, "bool": lambda dtype: dtype == "bool"}[name](dtype)
    wanted = dtype if fits else {"float": "float64", "int": "int64", "bool": "bool"}[name]
    made = scalar if fits else in_dtype(session, scalar, wanted, tree)
    if name != "bool" and not fits:
        session.weak.add(made)
    return made


def operator_names(session: GraphSession, root: str) -> Iterator[str] | list[str]:  # type: ignore[override]
    """Declared operators, for suggestions."""
    return [f"R.{name}" for name in OPS] if root == "R" else []
