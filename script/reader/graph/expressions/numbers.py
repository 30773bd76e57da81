"""Numbers in arithmetic: the dtypes that operands take where Python converts them.

    x + 0.5, x * k       a number of Python takes the dtype of the tensor, an integer of rank 0 that of a float
    k * 0.5, k / n       float64, which Python computes in: of rank 0 only
    k + j, t + u         the wider of two dtypes of one kind: of rank 0 only
    p * 2                a truth value beside a number is 0 or 1
    b > 0.5, x < b       compared in float64: the result is a truth value whatever the operands are

What is computed from numbers of Python is one again, and `k * 0.5` is, too: it takes the dtype of the tensor that it
meets. Tensors of different dtypes are refused with what to write: NumPy computes int64 with float32 in float64, PyTorch
and JAX in float32, and the array API leaves it open.

Errors: DTypeError W320 tensors of different dtypes, W310 a float beside a tensor of integers, W321 `/` of integers.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.dtypes import is_float, is_integer
from weft.ir.dim import DimExpr
from weft.ir.graph import Expr, Var
from weft.ir.op import OpDef
from weft.ir.op.declare import ParamKind
from weft.ir.types import PrimType, TensorType
from weft.script.forms.syntax import BINARY
from weft.script.reader.graph.bindings import in_dtype, is_weak, number_dtype, scalar_tensor, type_of
from weft.script.reader.graph.session import GraphSession
from weft.support.records import dataclass

__all__ = ["Numbers", "joined_dtype", "promoted", "settled_numbers"]

_COMPARED = ("eq", "ne", "lt", "le", "gt", "ge")
_ARITHMETIC = (*_COMPARED, "add", "sub", "mul", "div", "floordiv", "floormod", "pow", "min", "max")
_OF_TRUTHS = ("add", "sub", "mul")
_NAMES = {"min": "minimum", "max": "maximum"}
_PYTHONS_FLOAT = "float64"


@dataclass(frozen=True)
class Numbers:
    """The operands as the operator takes them, and whether the result is a number of Python."""

    values: list[Any]
    weak: bool


@dataclass(frozen=True)
class _Operand:
    value: Any
    dtype: str
    rank: int  # 0 of a number, -1 where it is not known
    weak: bool  # a number of Python

    @property
    def is_number(self) -> bool:
        return self.rank == 0


def promoted(session: GraphSession, kind: str, values: list[Any], tree: ast.AST) -> Numbers:
    """Operands in the dtypes that Python and NumPy compute numbers in."""
    weak = all(is_weak(session, value) for value in values)
    if not any(isinstance(value, (Expr, DimExpr)) for value in values) or kind not in _ARITHMETIC:
        return Numbers(values, weak)
    if kind in _OF_TRUTHS:
        values = _truths_as_numbers(session, values, tree)
        weak = all(is_weak(session, value) for value in values)
    if weak:
        return Numbers(_as_python(session, kind, values, tree), True)
    operands = [_operand(session, value, tree) for value in values]
    dtype = _common_dtype(session, kind, operands, tree)
    if dtype is None:
        return Numbers(values, False)
    made = [_converted(session, operand, dtype, tree) for operand in operands]
    strong = any(not operand.weak and operand.dtype == dtype for operand in operands)
    return Numbers(made, not strong and all(operand.is_number for operand in operands))


def _operand(session: GraphSession, value: Any, tree: ast.AST) -> _Operand:
    ty = type_of(session, value, tree) if isinstance(value, Expr) else None
    rank = ty.ndim if isinstance(ty, TensorType) else 0 if isinstance(ty, PrimType) or ty is None else -1
    return _Operand(value, number_dtype(session, value, tree), rank, is_weak(session, value))


def _common_dtype(session: GraphSession, kind: str, operands: list[_Operand], tree: ast.AST) -> str | None:
    """The dtype to convert to; None where the operator takes the operands as they are."""
    dtypes = [operand.dtype for operand in operands]
    if "None" in dtypes:  # not known
        return None
    if kind in _COMPARED and dtypes.count("bool") == 1 and any(is_integer(dtype) for dtype in dtypes):
        message = f"a {' compared with a '.join(dtypes)}"
        hint = 'R.sum of truth values is one, `sum(...)` their number; R.astype(..., "int64") makes integers of them'
        raise session.fail("W310", message, tree, hint)
    if not all(is_float(dtype) or is_integer(dtype) for dtype in dtypes) or any(item.rank < 0 for item in operands):
        return None
    integers = [operand for operand in operands if is_integer(operand.dtype)]
    floats = [operand for operand in operands if is_float(operand.dtype)]
    if kind == "div" and not floats:
        return _quotient(session, operands, tree)
    if integers and floats:
        return _of_both_kinds(session, kind, integers, floats, operands, tree)
    strong = {operand.dtype for operand in operands if not operand.weak}
    if len(strong) < 2:
        return None
    if kind not in _COMPARED and not all(operand.is_number for operand in operands):
        raise _refused(session, "W320", kind, operands, tree)
    return _wider(strong)


def _of_both_kinds(
    session: GraphSession,
    kind: str,
    integers: list[_Operand],
    floats: list[_Operand],
    operands: list[_Operand],
    tree: ast.AST,
) -> str | None:
    if all(operand.weak for operand in integers):
        return None  # they take the dtype of the tensor
    strong = {operand.dtype for operand in floats if not operand.weak}
    if all(operand.is_number for operand in integers):
        return _wider(strong) if strong else _PYTHONS_FLOAT
    if kind in _COMPARED:
        return _PYTHONS_FLOAT
    raise _refused(session, "W320" if strong else "W310", kind, operands, tree)


def joined_dtype(numbers: Sequence[tuple[str, bool]]) -> str | None:
    """The dtype of what is one of some numbers, each with its dtype and whether it is one of Python; None for none.

    >>> joined_dtype([("int64", False), ("float64", True)]), joined_dtype([("float32", False), ("float64", True)])
    ('float64', 'float32')
    """
    dtypes = {dtype for dtype, _ in numbers}
    if len(dtypes) == 1:
        return next(iter(dtypes))
    if not all(is_float(dtype) or is_integer(dtype) for dtype in dtypes):
        return None
    strong = {dtype for dtype, weak in numbers if not weak}
    floats = set(filter(is_float, strong or dtypes))
    if floats:
        return _wider(floats)
    return _PYTHONS_FLOAT if any(map(is_float, dtypes)) else _wider(strong or dtypes)


def _wider(dtypes: set[str]) -> str | None:
    """The dtype that holds the values of all of these; None where NumPy knows none of their kind."""
    if len(dtypes) == 1:
        return next(iter(dtypes))
    try:
        found = np.result_type(*dtypes).name
    except TypeError:  # narrow floats, which NumPy has not
        return None
    return found if is_float(found) == any(map(is_float, dtypes)) else None


def _quotient(session: GraphSession, operands: list[_Operand], tree: ast.AST) -> str:
    """Numbers are divided into a float, as in Python; W321 for tensors of integers."""
    if all(operand.is_number for operand in operands):
        return _PYTHONS_FLOAT
    dtype = next(operand.dtype for operand in operands if not operand.weak)
    texts = _texts(tree)
    line = f"`{_cast(texts[0])} / {texts[1]}` gives floats, `{texts[0]} // {texts[1]}` integers" if texts else None
    hint = f"{line or 'write `//` or R.astype'}; R.divide(x, y) rounds toward zero"
    raise session.fail("W321", f"`/` of {dtype} values: the quotient of integers is none", tree, hint)


def _refused(session: GraphSession, code: str, kind: str, operands: list[_Operand], tree: ast.AST) -> Exception:
    """The error for operands that only the text can convert, with what to write."""
    name = _NAMES.get(kind) or BINARY[kind].graph
    message = f"R.{name}: the operands are {' and '.join(operand.dtype for operand in operands)}"
    texts = _texts(tree)
    floats = [operand.dtype for operand in operands if is_float(operand.dtype) and not operand.weak]
    if not texts or len(operands) != 2:
        return session.fail(code, message, tree, "convert one with R.astype")
    wanted = (_wider(set(floats)) or floats[0]) if floats else "float32"
    if not any(is_float(operand.dtype) for operand in operands):
        wanted = _wider({operand.dtype for operand in operands}) or operands[0].dtype
    made = [
        text if operand.dtype == wanted or operand.weak else _cast(text, wanted)
        for text, operand in zip(texts, operands, strict=True)
    ]
    line = f"{name}({made[0]}, {made[1]})" if kind in _NAMES else f"{made[0]} {BINARY[kind].text.strip()} {made[1]}"
    return session.fail(code, message, tree, f"write `{'R.' * (kind in _NAMES)}{line}`")


def _cast(text: str, dtype: str = "float32") -> str:
    return f'R.astype({text}, "{dtype}")'


def _texts(tree: ast.AST) -> list[str] | None:
    """The two operands as they are written; None where they are not."""
    parts: list[ast.expr] = []
    if isinstance(tree, ast.BinOp):
        parts = [tree.left, tree.right]
    elif isinstance(tree, ast.AugAssign):
        parts = [tree.target, tree.value]
    elif isinstance(tree, ast.Compare) and len(tree.comparators) == 1:
        parts = [tree.left, *tree.comparators]
    elif isinstance(tree, ast.Call) and len(tree.args) == 2:
        parts = list(tree.args)
    if not parts or any(type(node).__module__ != ast.__name__ for part in parts for node in ast.walk(part)):
        return None
    texts = [ast.unparse(part) for part in parts]
    atoms = (ast.Name, ast.Constant, ast.Subscript, ast.Call, ast.Attribute)
    return [
        text if isinstance(part, atoms) or isinstance(tree, ast.Call) else f"({text})"
        for text, part in zip(texts, parts, strict=True)
    ]


def _converted(session: GraphSession, operand: _Operand, dtype: str, tree: ast.AST) -> Any:
    if operand.dtype == dtype or (operand.weak and not isinstance(operand.value, Expr)):
        return operand.value
    return in_dtype(session, scalar_tensor(session, operand.value, tree), dtype, tree)


def _truths_as_numbers(session: GraphSession, values: list[Any], tree: ast.AST) -> list[Any]:
    """Operands of which one is a truth value that arithmetic with a number takes as 0 or 1."""
    dtypes = [number_dtype(session, value, tree) for value in values]
    if dtypes.count("bool") != 1 or not any(is_float(dtype) or is_integer(dtype) for dtype in dtypes):
        return values
    place = dtypes.index("bool")
    made = list(values)
    made[place] = in_dtype(session, scalar_tensor(session, values[place], tree), dtypes[1 - place], tree)
    if is_weak(session, values[1 - place]):
        session.weak.add(made[place])
    return made


def _as_python(session: GraphSession, kind: str, values: list[Any], tree: ast.AST) -> list[Any]:
    """Numbers of Python of which a run computes some: with a float, or divided, integers are floats."""
    values = [scalar_tensor(session, value, tree) if isinstance(value, Var) else value for value in values]
    dtypes = [number_dtype(session, value, tree) for value in values]
    found = {dtype for value, dtype in zip(values, dtypes, strict=True) if is_float(dtype) and isinstance(value, Expr)}
    if kind != "div" and not any(map(is_float, dtypes)):
        return values
    floats = (_wider(found) if found else None) or _PYTHONS_FLOAT
    return [
        value if isinstance(value, float) or dtype == floats else in_dtype(session, value, floats, tree)
        for value, dtype in zip(values, dtypes, strict=True)
    ]


def settled_numbers(session: GraphSession, op: OpDef, args: list[Any], tree: ast.AST) -> list[Any]:
    """Arguments in which a number of Python that a run computes has the dtype of the first tensor beside it."""
    operands = [param.kind == ParamKind.EXPR and param.of == "any" for param in op.params[: len(args)]]
    weak = [
        takes and not isinstance(value, (int, float, complex)) and is_weak(session, value)
        for takes, value in zip(operands, args, strict=False)
    ]
    if not any(weak):
        return args
    others = (value for value, takes, number in zip(args, operands, weak, strict=False) if takes and not number)
    types = [type_of(session, value, tree) for value in others if isinstance(value, Expr)]
    dtype = next((ty.dtype for ty in types if isinstance(ty, TensorType) and ty.dtype), None)
    if dtype is None:
        return args
    made = list(args)
    for position, number in enumerate(weak):
        own = number_dtype(session, args[position], tree) if number else dtype
        if own != dtype and (is_float(dtype) or (is_integer(dtype) and is_integer(own))):
            made[position] = in_dtype(session, args[position], dtype, tree)
    return made
