"""IRModule: an immutable, ordered mapping of names to functions of all levels, with attributes and global infos.

module ::= IRModule(functions: {name: Function | PrimFunc | ExternFunc}, attrs, global_infos, name)

Source: Lai et al., Relax: composable abstractions for end-to-end dynamic machine learning, 2023.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Any

from weft.errors import PassError, Span, VerifyError, described
from weft.ir.dim.inspection import first_free
from weft.ir.graph import ExternFunc, Function
from weft.ir.node import EMPTY, FrozenMap, Node, ignored, node, replace
from weft.ir.tensor import PrimFunc
from weft.support.guards import is_mapping
from weft.support.providers import provider

__all__ = ["BaseFunc", "DummyGlobalInfo", "IRModule", "fresh_name"]

BaseFunc = Function | PrimFunc | ExternFunc


def fresh_name(base: str, used: Container[str]) -> str:
    """`base`, or a free name that continues its numeric suffix (`f` is followed by `f_1`).

    The first one where the names in use have no gaps; found in a logarithmic number of steps.
    """
    if base not in used:
        return base
    stem = base.rstrip("0123456789")
    count = int(base[len(stem) :]) + 1 if stem != base else 1
    stem = stem if stem != base else f"{base}_"
    return f"{stem}{first_free(lambda number: f'{stem}{number}' in used, count)}"


@node
class DummyGlobalInfo(Node):
    """A global info without content."""

    span: Span | None = ignored(default=None)


@node
class IRModule(Node):
    """Functions by name. Every change returns a new module that shares what did not change.

    Errors: W510 for a function name the module does not have, VerifyError W413 for a member that is no function.

    >>> IRModule({}).with_attr("kind", "test").attrs["kind"]
    'test'
    """

    functions: Mapping[str, BaseFunc] = EMPTY
    attrs: FrozenMap = EMPTY
    global_infos: FrozenMap = EMPTY
    name: str = ignored(default="Module")
    span: Span | None = ignored(default=None)

    def __post_init__(self) -> None:
        for field in ("functions", "attrs", "global_infos"):
            value = getattr(self, field)
            if not isinstance(value, FrozenMap):
                if not is_mapping(value):
                    raise VerifyError(f"{field} of a module are by name, a dict: got {described(value)}", code="W413")
                object.__setattr__(self, field, FrozenMap(value))
        given: Mapping[str, Any] = self.functions  # whatever the caller gave
        for name, function in given.items():
            if not isinstance(function, BaseFunc):
                raise VerifyError(f"{name} is {described(function)}, not a function of weft", code="W413")

    def __str__(self) -> str:
        return self.script()

    def __getitem__(self, name: str) -> BaseFunc:
        try:
            return self.functions[name]
        except KeyError:
            raise PassError(
                f"the module has no function {name!r}",
                code="W510",
                hint=f"it has: {', '.join(self.functions) or 'none'}",
            ) from None

    def __contains__(self, name: object) -> bool:
        return name in self.functions

    def __iter__(self) -> Iterator[str]:
        return iter(self.functions)

    def __len__(self) -> int:
        return len(self.functions)

    def items(self) -> Iterator[tuple[str, BaseFunc]]:
        """(name, function) pairs in order."""
        return iter(self.functions.items())

    def with_function(self, name: str, function: BaseFunc) -> IRModule:
        """A copy with a function added (last) or replaced (in place)."""
        if self.functions.get(name) is function:
            return self
        return replace(self, functions=FrozenMap({**self.functions, name: function}))

    def with_functions(self, functions: Mapping[str, BaseFunc]) -> IRModule:
        """A copy with exactly the given functions; itself when they are the same objects in the same order."""
        old = self.functions
        if list(old) == list(functions) and all(old[name] is functions[name] for name in old):
            return self
        return replace(self, functions=FrozenMap(functions))

    def without(self, *names: str) -> IRModule:
        """A copy without the given functions."""
        for name in names:
            self[name]
        return replace(self, functions=FrozenMap({k: f for k, f in self.functions.items() if k not in names}))

    def with_attr(self, key: str, value: Any) -> IRModule:
        """A copy with one attribute set."""
        return replace(self, attrs=self.attrs.set(key, value))

    def without_attr(self, key: str) -> IRModule:
        """A copy without an attribute."""
        return replace(self, attrs=self.attrs.without(key))

    def with_global_infos(self, infos: Mapping[str, Any]) -> IRModule:
        """A copy with the given global infos."""
        return replace(self, global_infos=FrozenMap(infos))

    def fresh_name(self, base: str) -> str:
        """`base`, or the next free name when the module has that one; a numeric suffix is the counter.

        >>> IRModule({"f12": ExternFunc("a"), "f13": ExternFunc("b"), "f4": ExternFunc("c")}).fresh_name("f12")
        'f14'
        """
        return fresh_name(base, self.functions)

    def import_report(self) -> Any:
        """What became of each node of the foreign model that the module was made of (`weft.frontend.ImportReport`)."""
        return provider("import_report")(self)

    def quantization_report(self) -> Any:
        """What became of each layer where `weft.quantize` made the module (`QuantizationReport`)."""
        return provider("quantization_report")(self)

    def __call__(self, /, *args: Any, **options: Any) -> Any:
        """Compile on first use (cached) and run on arrays."""
        return provider("call")(self, *args, **options)
