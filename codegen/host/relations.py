"""What the sizes of a kernel's arguments must be, in the words of the function that calls it.

A kernel relates the sizes of its parameters in symbols of its own. Where a call breaks such a relation, the message
names the variables and symbols of the user's function: `k of `h` is 3, j of `w` is 4`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from weft.codegen.host.program import Number, Operand, Size
from weft.ir.dim import Dim, DimExpr, free_symbols, operation, substitute
from weft.ir.graph import Constant, Var
from weft.ir.kernel.prim_dim import kernel_signature, symbol_names
from weft.ir.tensor import PrimFunc, PrimVar
from weft.ir.types import TensorType, Type
from weft.support.records import record

__all__ = ["Relation", "relations"]

_MADE_UP = re.compile(r"(lv|gv)?\d*|_.*")
"""Names of variables for parts of expressions: nobody wrote them."""


@record
class Relation:
    """One size of an argument: what it must be, and what it is, each as a dimension of the caller (if any) and text."""

    wanted: Dim | None
    wanted_text: str
    given: Dim | None
    given_text: str

    @property
    def claim(self) -> str:
        """What must hold, as text."""
        first, second = self.wanted_text, self.given_text
        return f"{second} must be {first}" if isinstance(self.wanted, int) else f"{first} must be {second}"

    def parts(self, kernel: str) -> list[str | int]:
        """The message of a call that breaks it; 0 and 1 stand for the size that is wanted and the one given."""
        if isinstance(self.wanted, int):
            return [f"{kernel}: {self.given_text} is ", 1, ", not ", 0]
        return [f"{kernel}: {self.wanted_text} is ", 0, f", {self.given_text} is ", 1, ", and they must be equal"]


@record
class _Source:
    """Where a kernel's symbol gets its value: a dimension of the caller, and its text."""

    dim: Dim | None
    text: str


def relations(
    kernel: PrimFunc, arguments: Sequence[Operand], signature: Sequence[Type] | None = None
) -> list[list[Relation]]:
    """For each parameter of a kernel and each axis the relation that a call has to keep; none for scalars.

    >>> from weft.ir.dim import symbol
    >>> from weft.ir.tensor import Buffer, SeqStmt
    >>> n = PrimVar("n", "int64")
    >>> kernel = PrimFunc((Buffer("a", (n,)), Buffer("b", (n,))), SeqStmt())
    >>> given = [Var("h", TensorType((symbol("k"),), "float32")), Var("w", TensorType((4,), "float32"))]
    >>> found = relations(kernel, given)[1][0]
    >>> found.wanted_text, found.given_text
    ('k of `h`', 'axis 0 of `w`')
    """
    names = symbol_names(kernel)
    signature = kernel_signature(kernel) if signature is None else signature
    sources: dict[str, _Source] = {}
    for position, (param, ty) in enumerate(zip(kernel.params, signature, strict=True)):
        argument = arguments[position] if position < len(arguments) else None
        for axis, dim in enumerate(_dims(ty)):
            kind, operands = operation(dim)
            if kind == "symbol":
                sources.setdefault(operands[0], _source(argument, position, axis))
        if isinstance(param, PrimVar) and param in names:
            sources.setdefault(names[param], _scalar_source(argument, position))
    return [
        [
            _relation(dim, sources, _source(arguments[position] if position < len(arguments) else None, position, axis))
            for axis, dim in enumerate(_dims(ty))
        ]
        for position, ty in enumerate(signature)
    ]


def _dims(ty: Type) -> tuple[Dim, ...]:
    return tuple(ty.dims or ()) if isinstance(ty, TensorType) else ()


def _relation(dim: Dim, sources: dict[str, _Source], given: _Source) -> Relation:
    if not isinstance(dim, DimExpr):
        return Relation(dim, str(dim), given.dim, given.text)
    kind, operands = operation(dim)
    if kind == "symbol" and operands[0] in sources:
        source = sources[operands[0]]
        return Relation(source.dim, source.text, given.dim, given.text)
    found = {name: sources.get(name) for name in free_symbols(dim)}
    known = {name: source.dim for name, source in found.items() if source is not None and source.dim is not None}
    if len(known) == len(found):
        wanted = substitute(dim, known)
        return Relation(wanted, str(wanted), given.dim, given.text)
    where = ", ".join(f"{name} {source.text}" for name, source in found.items() if source is not None)
    return Relation(None, f"{dim} ({where})" if where else str(dim), given.dim, given.text)


def _source(argument: Operand | None, position: int, axis: int) -> _Source:
    named = isinstance(argument, Var) and argument.name and not _MADE_UP.fullmatch(argument.name)
    what = f"`{argument.name}`" if named and isinstance(argument, Var) else f"argument {position + 1}"
    if isinstance(argument, Constant):
        what = "a constant"
    ty = argument.ty if isinstance(argument, Var) else None
    dims = _dims(ty) if isinstance(ty, TensorType) else ()
    dim = dims[axis] if axis < len(dims) else None
    return _Source(dim, f"{dim} of {what}" if isinstance(dim, DimExpr) else f"axis {axis} of {what}")


def _scalar_source(argument: Operand | None, position: int) -> _Source:
    if isinstance(argument, Size):
        return _Source(argument.dim, str(argument.dim))
    if isinstance(argument, Number) and isinstance(argument.value, int):
        return _Source(argument.value, str(argument.value))
    return _Source(None, f"argument {position + 1}")
