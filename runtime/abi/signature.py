"""Arguments against signatures: their order, and the values of symbols.

`Binder` collects the values of symbols with the place each came from, and says what does not fit. The signatures are
records (`weft.runtime.abi.types`).
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from weft.errors import ArgumentError
from weft.runtime.abi.dims import Dim, dim_names, evaluate_dim, first_solved
from weft.runtime.abi.types import Signature, Sized

__all__ = ["Binder", "arranged"]


class Binder:
    """The symbols of one call: values, and where each came from.

    >>> from weft.runtime.abi.types import Tensor
    >>> binder = Binder("main")
    >>> binder.add(Tensor("float32", ("n", 4), 2), (3, 4), "float32[(3, 4)]", 1, "x")
    >>> binder.solve()
    >>> binder.values
    {'n': 3}
    """

    def __init__(self, function: str) -> None:
        self.function = function
        self.values: dict[str, int] = {}
        self.sources: dict[str, str] = {}
        self.refused = 0  # the position of the argument that `solve` refused
        self._claims: list[tuple[Sized, Sequence[Dim], Sequence[int], str, int, str]] = []

    def add(self, ty: Sized, sizes: Sequence[int], got: str, position: int, name: str) -> None:
        """Note that an argument's dimensions have the given sizes; bare symbols get their values."""
        dims = ty.dims or ()
        self._claims.append((ty, dims, sizes, got, position, name))
        for dim, size in zip(dims, sizes, strict=True):
            if isinstance(dim, str) and dim not in self.values:
                self._set(dim, size, position, name)

    def _set(self, symbol: str, value: int, position: int, name: str) -> None:
        self.values[symbol] = int(value)
        self.sources[symbol] = f"argument {position} `{name}`"

    def solve(self) -> None:
        """Solve compound dimensions for symbols without a value, then compare everything; ArgumentError W852."""
        while any(self._solve_one(*claim) for claim in self._claims):
            pass
        for ty, dims, sizes, got, position, name in self._claims:
            for dim, size in zip(dims, sizes, strict=True):
                if dim is not None and evaluate_dim(dim, self.values) != size:
                    self.refused = position
                    raise self.refuse(position, name, str(ty), got, self.explain(dims))

    def _solve_one(
        self, ty: Sized, dims: Sequence[Dim], sizes: Sequence[int], got: str, position: int, name: str
    ) -> bool:
        found = first_solved(dims, sizes, self.values)
        if found is not None:
            self._set(*found, position, name)
        return found is not None

    def explain(self, dims: Sequence[Dim]) -> str:
        """The symbols in some dimensions with their values and sources."""
        names = dict.fromkeys(name for dim in dims for name in dim_names(dim))
        return ", ".join(
            f"{name}={self.values[name]} from {self.sources[name]}" if name in self.values else f"{name} has no value"
            for name in names
        )

    def refuse(
        self,
        position: int,
        name: str,
        expected: str,
        got: str,
        why: str = "",
        code: str = "W852",
        hint: str | None = None,
    ) -> ArgumentError:
        """The error for an argument."""
        message = f"argument {position} `{name}` of {self.function}: expected {expected}, got {got}"
        return ArgumentError(message + (f"; {why}" if why else ""), code=code, hint=hint)


def arranged(signature: Signature, args: Sequence[Any], named: Mapping[str, Any]) -> Sequence[Any]:
    """Positional and named arguments in order; ArgumentError W850 when some lack or are too many."""
    names, function = [param.name for param in signature.params], signature.name
    if not named and len(args) == len(names):
        return args
    takes = f"{function} takes {len(names)} arguments ({', '.join(names)})"
    for name in named:
        if name not in names:
            close = difflib.get_close_matches(name, names, 1)
            hint = f"did you mean {close[0]!r}?" if close else None
            raise ArgumentError(f"{function} has no parameter {name!r}", code="W850", notes=[takes], hint=hint)
    if len(args) > len(names):
        raise ArgumentError(f"{takes}, got {len(args)}", code="W850")
    values = dict(zip(names, args, strict=False))
    twice = [name for name in named if name in values]
    if twice:
        raise ArgumentError(f"{function} got two values for {twice[0]!r}", code="W850")
    values.update(named)
    missing = [name for name in names if name not in values]
    if missing:
        raise ArgumentError(f"{takes}, got {len(values)}: {', '.join(missing)} missing", code="W850")
    return [values[name] for name in names]
