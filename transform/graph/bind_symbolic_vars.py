"""BindSymbolicVars: symbols of graph functions get numbers.

    def main(x: R.Tensor(("n", 4)))      BindSymbolicVars({"n": 7})      def main(x: R.Tensor((7, 4)))

Kernels stay as general as they are; types that depend on the symbol are deduced again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from weft.errors import PassError
from weft.ir import Function, IRModule, substitute_symbols
from weft.support.records import dataclass
from weft.transform.analysis.free_symbols import symbols_of
from weft.transform.infra.base import Pass
from weft.transform.infra.registry import nearest
from weft.transform.infra.reinfer import retype_module

__all__ = ["BindSymbolicVars", "how_to_bind"]


@dataclass(frozen=True)
class BindSymbolicVars(Pass):
    """Give symbols fixed values, in one function or in all that have them.

    Raises: PassError W541 for a symbol that no function in question has, W542 for a value that is no size, W510 for an
    unknown function; ShapeError where a value contradicts a constraint.
    """

    keeps_meaning: ClassVar[bool] = False  # signatures become narrower on purpose
    binding_map: Mapping[str, int]
    func_name: str | None = None

    def run(self, module: IRModule) -> IRModule:
        """Substitute, then deduce types again."""
        values = {str(name): _checked(str(name), value) for name, value in self.binding_map.items()}
        functions = self._functions(module)
        known = {name: symbols_of(function) for name, function in functions.items()}
        for name in values:
            if not any(name in symbols for symbols in known.values()):
                everything = sorted({symbol for symbols in known.values() for symbol in symbols})
                where = f"function {self.func_name!r} has" if self.func_name else "no function has"
                raise PassError(
                    f"{where} {'no' if self.func_name else 'a'} symbol {name!r}",
                    code="W541",
                    hint=nearest(name, everything) or f"symbols: {', '.join(everything) or 'none'}",
                )
        new = module
        for name, function in functions.items():
            new = new.with_function(name, substitute_symbols(function, values))
        return module if new is module else retype_module(new)

    def _functions(self, module: IRModule) -> dict[str, Function]:
        if self.func_name is None:
            return {name: function for name, function in module.items() if isinstance(function, Function)}
        function = module[self.func_name]
        if not isinstance(function, Function):
            raise PassError(f"{self.func_name!r} is no graph function", code="W510")
        return {self.func_name: function}


def how_to_bind(name: str) -> str:
    """What to say to someone whose size must be known.

    >>> how_to_bind("n")
    "weft.transform.BindSymbolicVars({'n': 64}), or --symbol n=64 on the command line"
    """
    return f"weft.transform.BindSymbolicVars({{{name!r}: 64}}), or --symbol {name}=64 on the command line"


def _checked(name: str, value: Any) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__") or int(value) < 0:
        raise PassError(f"the symbol {name!r} cannot be {value!r}", code="W542", hint="a size is an integer >= 0")
    return int(value)
