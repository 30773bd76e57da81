"""The entry to the interpreter: a mapping of the functions of a module to callables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from weft.errors import PassError, Span, WeftError
from weft.ir.graph import Function
from weft.ir.interpret.compiled import Lookup
from weft.ir.interpret.kernel import Caller, Kernel
from weft.ir.module import BaseFunc, IRModule
from weft.ir.tensor import PrimFunc

__all__ = ["Interpreter", "interpret"]


class Interpreter(Mapping[str, Callable[..., Any]]):
    """The functions of a module as callables on arrays; compiled when first called, kept after that."""

    def __init__(self, module: IRModule, lookup: Lookup) -> None:
        self.module = module
        self.lookup = lookup
        self._kernels: dict[int, Kernel] = {}

    def __getitem__(self, name: str) -> Callable[..., Any]:
        return self._callable(name, self.module[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self.module)

    def __len__(self) -> int:
        return len(self.module)

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Call the only function, or `main`."""
        names = list(self.module)
        if len(names) != 1 and "main" not in names:
            raise PassError(f"the module has {len(names)} functions and no `main`: choose one by name", code="W510")
        return self["main" if "main" in names else names[0]](*args, **options)

    def kernel(self, function: PrimFunc) -> Kernel:
        """The compiled form of a PrimFunc."""
        found = self._kernels.get(id(function))
        if found is None:
            found = self._kernels[id(function)] = Kernel(function, self._call_kernel, self.lookup)
        return found

    def _call_kernel(self, name: str, values: list[Any], span: Span | None) -> Any:
        """A call from one PrimFunc to another."""
        function = self.module[name]
        if not isinstance(function, PrimFunc):
            raise WeftError(f"{name} is not a tensor-level function", code="W862", span=span)
        return self.kernel(function).run(values, Caller(span=span))

    def _callable(self, name: str, function: BaseFunc) -> Callable[..., Any]:
        if isinstance(function, PrimFunc):
            return self.kernel(function)
        raise WeftError(f"{name} cannot be interpreted", code="W862")


def _no_functions(name: str) -> None:
    return None


def interpret(value: IRModule | BaseFunc, *, functions: Lookup | None = None) -> Any:
    """A mapping of function names to callables on NumPy arrays; for a single function, its callable.

    `functions(name)` finds external functions. Raises what the program raises; ArgumentError for wrong arguments,
    BoundsError for indices out of range, values read before they are written and outputs that are not wholly written.

    >>> import numpy as np
    >>> from weft.ir.tensor import Buffer, BufferLoad, BufferStore, For, PrimFunc, PrimVar
    >>> i, x, y = PrimVar("i"), Buffer("x", (3,)), Buffer("y", (3,))
    >>> double = PrimFunc((x, y), For(i, 0, 3, BufferStore(y, BufferLoad(x, (i,)) * 2, (i,))))
    >>> out = np.zeros(3, "float32")
    >>> interpret(double)(np.ones(3, "float32"), out)
    >>> out
    array([2., 2., 2.], dtype=float32)
    """
    lookup = functions or _no_functions
    if isinstance(value, (PrimFunc, Function)):
        name = value.name or "main"
        return Interpreter(IRModule({name: value}), lookup)[name]
    if not isinstance(value, IRModule):
        raise PassError(f"cannot interpret a {type(value).__name__}", code="W511")
    return Interpreter(value, lookup)
