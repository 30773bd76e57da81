"""Where values are needed first and made: what the Lazy passes stand on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from weft.ir import Binding, BindingBlock, Expr, Function, Var, replace
from weft.ir.structure.visit import walk
from weft.transform.analysis.free_symbols import bare_symbols, symbols_of
from weft.transform.graph.to_non_dataflow import PlainBlocks
from weft.transform.infra.rewriting import bindings_of, merge_blocks

__all__ = ["loaded_before_use", "plain", "stored_when_made"]

Make = Callable[[int, Var], Sequence[Binding]]


def loaded_before_use(function: Function, values: Sequence[Var], load: Make) -> Function:
    """The function, whose blocks are plain, with `load(index, var)` in front of the first use of each variable.

    What names a size that only its type gives is a use as well.
    """
    waiting: dict[Var, int] = {var: place for place, var in enumerate(values)}
    known = {name for param in function.params for name in bare_symbols(param.ty)}
    new: list[Binding] = []

    def require(node: Binding | Expr) -> None:
        """Load what a part of the body uses, and what alone names its sizes."""
        used = {part for part in walk(node) if isinstance(part, Var)}
        for var in [*(var for var in waiting if var in used), *waiting]:
            if var in waiting and (var in used or (bare_symbols(var.ty) - known) & symbols_of(node)):
                known.update(bare_symbols(var.ty))
                new.extend(load(waiting.pop(var), var))

    for binding in bindings_of(function.body):
        require(binding)
        new.append(binding)
    require(function.body.body)
    return _with_bindings(function, new)


def stored_when_made(function: Function, values: Mapping[Var, list[int]], store: Make) -> Function:
    """The function, whose blocks are plain, with `store(index, var)` behind the binding of each variable; first those
    of variables that it does not bind."""
    own = {binding.var for binding in bindings_of(function.body)}
    new = [item for var, places in values.items() if var not in own for place in places for item in store(place, var)]
    for binding in bindings_of(function.body):
        new.append(binding)
        for place in values.get(binding.var, ()):
            new += store(place, binding.var)
    return _with_bindings(function, new)


def plain(function: Function) -> Function:
    """The function without dataflow blocks."""
    return PlainBlocks().run(function)


def _with_bindings(function: Function, bindings: Sequence[Binding]) -> Function:
    blocks = merge_blocks([BindingBlock(tuple(bindings))])
    return replace(function, body=replace(function.body, blocks=blocks))
