"""What names mean while a script is read, and what kinds of values there are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from weft.errors import Span
from weft.ir.dim import DimExpr
from weft.ir.graph import Expr, Var
from weft.ir.node import EMPTY, FrozenMap
from weft.ir.tensor import Buffer, BufferLoad, PrimExpr
from weft.ir.types import FuncType, PrimType, ShapeType, TensorType, TupleType, Type
from weft.script.source.budget import measure
from weft.script.source.diagnostics import Consequence, fail
from weft.script.source.text import MISSING
from weft.support.records import record

__all__ = [
    "MAX_PARTS",
    "UNREAD",
    "Called",
    "Hidden",
    "ModuleScope",
    "Scope",
    "describe",
    "is_dim",
    "is_plain",
    "plain_capture",
]

MAX_PARTS = 1_000_000


@record
class Hidden:
    """What a name means that has several meanings, depending on what runs; `why` says so in the error."""

    why: str


@record
class Called:
    """A name of I, R or T that stands for a function, as a value: what `f = R.exp` binds."""

    name: str

    @property
    def __weft_name__(self) -> str:
        return self.name


UNREAD = Hidden("the statement that binds it cannot be read")


class Scope:
    """Names of a block; inner blocks see outer ones."""

    __slots__ = ("names", "own", "parent")

    def __init__(self, parent: Scope | None = None, *, own: bool = False) -> None:
        self.names: dict[str, Any] = {}
        self.parent = parent
        self.own = own  # whether its names are those of a call, or of a comprehension

    def around(self, inner: Scope) -> Scope:
        """The scope of the names that a function defined here sees when it is called in an inner scope.

        They have the values that they have there, but for the names of the calls in between.
        """
        found: Scope = inner
        scope: Scope | None = inner
        while scope is not None and scope is not self:
            if scope.own and scope.parent is not None:
                found = scope.parent
            scope = scope.parent
        return self if scope is None else found

    def get(self, name: str) -> Any:
        """What the name means, or MISSING."""
        scope: Scope | None = self
        while scope is not None:
            found = scope.names.get(name, MISSING)
            if found is UNREAD:
                raise Consequence(f"'{name}' could not be read")
            if found is not MISSING:
                return found
            scope = scope.parent
        return MISSING

    def visible(self) -> Iterator[str]:
        """Every visible name."""
        scope: Scope | None = self
        while scope is not None:
            yield from scope.names
            scope = scope.parent


class ModuleScope:
    """What a function may ask of the module around it."""

    name: str | None = None
    function_names: tuple[str, ...] = ()
    macros: Mapping[str, Any] = MappingProxyType({})
    infos: FrozenMap = EMPTY
    changes_arrays: bool = False  # whether its functions assign elements, so that it matters what is one array

    def adopt(self, function: Any, span: Span) -> str:
        """The name under which a captured function joins the module."""
        raise fail(
            "W150",
            "a captured function can be called only inside an @I.ir_module class",
            span,
            hint="put both functions in one class",
        )

    def parameters_of(self, name: str) -> Mapping[str, Any] | None:
        """The parameters of a graph function with the trees of their defaults; None where they are not known."""
        return None

    def returned_by(self, name: str) -> Any:
        """Which of its arguments a graph function may return and change (`sharing.Returned`); None where not known."""
        return None

    def return_dtype(self, name: str) -> str:
        """The dtype that a tensor-level function returns ("void" for none)."""
        return "void"


def is_dim(value: Any) -> bool:
    """Whether a value is a dimension."""
    return isinstance(value, DimExpr) or (isinstance(value, int) and not isinstance(value, bool))


def is_plain(value: Any) -> bool:
    """Whether a value is Python data that can be known while reading (`Session.known` charges for looking)."""
    return measure(value, MAX_PARTS).plain


def plain_capture(value: Any) -> Any:
    """A NumPy scalar as a Python number; anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def describe(value: Any) -> str:
    """A value in an error message."""
    if isinstance(value, (bool, int, float, complex, str)) or value is None:
        text = repr(value)
        return text if len(text) <= 60 else text[:57] + "..."
    if isinstance(value, DimExpr):
        return f"the dimension {value}"
    if isinstance(value, Called):
        return f"the function {value.name}"
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, Type):
        return f"the type {type(value).__name__}"
    if isinstance(value, (Buffer, PrimExpr, Expr)):
        ty = getattr(value, "ty", None) if isinstance(value, Var) else value
        return next((words for kind, words in _WORDS if isinstance(ty, kind)), "a value of the graph")
    known = getattr(value, "described_as", None)
    if isinstance(known, str):
        return known
    name = type(value).__name__
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"


_WORDS: tuple[tuple[type, str], ...] = (
    (Buffer, "a buffer"),
    (BufferLoad, "an element of a buffer"),
    (PrimExpr, "a scalar of the kernel"),
    (TensorType, "a tensor"),
    (TupleType, "a tuple"),
    (ShapeType, "a shape"),
    (PrimType, "a scalar"),
    (FuncType, "a function"),
)
