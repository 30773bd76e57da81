"""TopologicalSort: the bindings of dataflow blocks in another order that their uses allow.

    order       "depth-first"      what uses a value stands as near behind it as it may
                "breadth-first"    in rounds: first what needs no other, then what needs only those
                "memory"           the binding next that leaves the least memory in use (where that lowers the peak)
    direction   "from-inputs"      rounds and paths begin at the bindings that need no other
                "from-outputs"     they begin at the results, so that every value stands near its first use

What a binding needs are the variables that it uses and the sizes that a `match_cast` names for it. Of bindings that may
stand next, the one that stood first does. Sizes that are symbols count as 64 in "memory".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field

from weft import dtypes
from weft.errors import PassError
from weft.ir import (
    Binding,
    BindingBlock,
    DataflowBlock,
    Function,
    IRModule,
    MatchCast,
    TensorType,
    TupleType,
    Type,
    Var,
)
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import evaluate, free_symbols
from weft.support.records import dataclass
from weft.transform.analysis.free_symbols import symbols_of
from weft.transform.analysis.lifetimes import variables
from weft.transform.infra.base import FunctionPass
from weft.transform.infra.generators.choices import Choices
from weft.transform.infra.rewriting import FunctionRewriter

__all__ = ["TopologicalSort"]

ORDERS = ("depth-first", "breadth-first", "memory")
DIRECTIONS = ("from-inputs", "from-outputs")


@dataclass(frozen=True)
class TopologicalSort(FunctionPass):
    """Sort the bindings of dataflow blocks: depth or breadth first, from inputs or outputs, or for little memory.

    Raises PassError W506 for another order or direction.
    """

    order: str = "depth-first"
    direction: str = "from-inputs"

    def __post_init__(self) -> None:
        for name, value, known in (("order", self.order, ORDERS), ("direction", self.direction, DIRECTIONS)):
            if value not in known:
                raise PassError(f"{name} is one of {', '.join(known)}, got {value!r}", code="W506")

    @classmethod
    def sample(cls, choices: Choices) -> tuple[TopologicalSort, str]:
        """Two paths whose bindings take turns, or do not, against the order."""
        order = choices.pick(ORDERS)
        size = choices.pick((4, 3, 7))
        mixed = ("a = R.exp(x)", "b = R.exp(y)", "c = R.negative(a)", "d = R.negative(b)", "out = R.add(c, d)")
        straight = ("a = R.exp(x)", "c = R.negative(a)", "b = R.exp(y)", "d = R.negative(b)", "out = R.add(c, d)")
        large = ("a = R.outer(x, y)", "b = R.outer(y, x)", "c = R.sum(a)", "d = R.sum(b)", "out = R.add(c, d)")
        lines = {"depth-first": mixed, "breadth-first": straight, "memory": large}[order]
        body = "\n            ".join(lines)
        return (
            cls(order, "from-inputs"),
            f"""@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(({size},), "float32"), y: R.Tensor(({size},), "float32")):
        with R.dataflow():
            {body}
            R.output(out)
        return out
""",
        )

    def run_function(self, name: str, function: Function, module: IRModule) -> Function:
        """The function with its dataflow blocks sorted."""
        return _Sorter(self).run(function)


class _Sorter(FunctionRewriter):
    changes_blocks = True

    def __init__(self, item: TopologicalSort) -> None:
        super().__init__()
        self.item = item

    def rewrite_block(self, block: BindingBlock, bindings: tuple[Binding, ...]) -> BindingBlock:
        if not isinstance(block, DataflowBlock) or len(bindings) < 2:
            return super().rewrite_block(block, bindings)
        graph = _Graph(bindings)
        new = tuple(bindings[place] for place in graph.order(self.item.order, self.item.direction))
        same = all(a is b for a, b in zip(new, bindings, strict=True))
        return super().rewrite_block(block, bindings if same else new)


@dataclass
class _Graph:
    """Which bindings of a block need which, by their places."""

    bindings: tuple[Binding, ...]
    needs: list[list[int]] = field(default_factory=list[list[int]])
    users: list[list[int]] = field(default_factory=list[list[int]])

    def __post_init__(self) -> None:
        made = {binding.var: place for place, binding in enumerate(self.bindings)}
        named = self._named()
        for place, binding in enumerate(self.bindings):
            used = dict.fromkeys(made[var] for var in _used(binding) if var in made)
            used.update(dict.fromkeys(named[name] for name in symbols_of(binding) if named.get(name, place) < place))
            self.needs.append([other for other in used if other != place])
            self.users.append([])
            for other in self.needs[-1]:
                self.users[other].append(place)

    def _named(self) -> Mapping[str, int]:
        """The sizes that a `match_cast` of the block names first, and where."""
        found: dict[str, int] = {}
        for place, binding in enumerate(self.bindings):
            for name in symbols_of(binding) if isinstance(binding, MatchCast) else ():
                found.setdefault(name, place)
        return found

    def order(self, order: str, direction: str) -> list[int]:
        """The places in the wanted order."""
        if order == "memory":
            written, greedy = list(range(len(self.bindings))), self._by_memory()
            return greedy if self._peak(greedy) < self._peak(written) else written
        if direction == "from-outputs":
            if order == "depth-first":
                return self._paths_to_results()
            return self._rounds(self.users, self.needs, reverse=True)[::-1]
        return self._paths() if order == "depth-first" else self._rounds(self.needs, self.users)

    def _rounds(self, needs: list[list[int]], users: list[list[int]], reverse: bool = False) -> list[int]:
        open_needs = [len(set(found)) for found in needs]
        ready = [place for place, count in enumerate(open_needs) if not count]
        made: list[int] = []
        while ready:
            made.extend(sorted(ready, reverse=reverse))
            following: list[int] = []
            for place in ready:
                following += _met(users[place], open_needs)
            ready = following
        return made

    def _paths(self) -> list[int]:
        open_needs = [len(found) for found in self.needs]
        stack = [place for place in reversed(range(len(self.bindings))) if not open_needs[place]]
        made: list[int] = []
        while stack:
            made.append(stack.pop())
            stack += sorted(_met(self.users[made[-1]], open_needs), reverse=True)
        return made

    def _paths_to_results(self) -> list[int]:
        made: dict[int, None] = {}
        stack = [(place, False) for place in reversed(range(len(self.bindings))) if not self.users[place]]
        while stack:
            place, met = stack.pop()
            if place in made:
                continue
            if met:
                made[place] = None
            else:
                stack.append((place, True))
                stack += [(need, False) for need in reversed(self.needs[place]) if need not in made]
        return list(made)

    def _by_memory(self) -> list[int]:
        open_needs, left = [len(found) for found in self.needs], [len(found) for found in self.users]
        ready = [place for place, count in enumerate(open_needs) if not count]
        made: list[int] = []

        def growth(place: int) -> tuple[int, int]:
            freed = sum(_bytes(self.bindings[need].var.ty) for need in self.needs[place] if left[need] == 1)
            return _bytes(self.bindings[place].var.ty) - freed, place

        while ready:
            place = min(ready, key=growth)
            ready.remove(place)
            made.append(place)
            for need in self.needs[place]:
                left[need] -= 1
            ready += _met(self.users[place], open_needs)
        return made

    def _peak(self, order: list[int]) -> int:
        """The most bytes of values of the block that are there at once; those that leave it stay."""
        left = [len(found) for found in self.users]
        now = peak = 0
        for place in order:
            now += _bytes(self.bindings[place].var.ty)
            peak = max(peak, now)
            for need in self.needs[place]:
                left[need] -= 1
                now -= 0 if left[need] else _bytes(self.bindings[need].var.ty)
        return peak


def _met(places: Iterable[int], open_needs: list[int]) -> list[int]:
    """Those of the places that now need nothing more."""
    found: list[int] = []
    for place in places:
        open_needs[place] -= 1
        if not open_needs[place]:
            found.append(place)
    return found


def _used(binding: Binding) -> Iterable[Var]:
    yield from variables(binding.value)
    for ty in (binding.var.ty, *([binding.ty] if isinstance(binding, MatchCast) else [])):
        if isinstance(ty, TensorType) and isinstance(ty.shape, Var):
            yield ty.shape


def _bytes(ty: Type) -> int:
    """The bytes of a value, with 64 for each symbol; of one of unknown sizes none."""
    if isinstance(ty, TupleType):
        return sum(map(_bytes, ty.fields))
    if not isinstance(ty, TensorType) or ty.dtype is None:
        return 0
    total = dtypes.bits(ty.dtype)
    for dim in dims_of(ty) or (0,):
        total *= dim if isinstance(dim, int) else max(0, evaluate(dim, dict.fromkeys(free_symbols(dim), 64)))
    return total // 8
