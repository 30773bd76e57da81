"""PartitionCalls: chains of operators that a part of a target can do become functions of that part.

    PartitionCalls(label="npu", patterns={"npu.layer": ("matmul", "add"), "npu.matmul": ("matmul",)})

    y = R.matmul(x, w)                     y = cls.npu_layer(x, w, b)
    z = R.add(y, b)          becomes       (a private function with the attributes target and Composite)

A chain is a sequence of calls in one dataflow block, each of which takes the result of the one before, which nothing
else uses. The function has a parameter for each operand that the chain takes from outside, in order: of `R.add(x, x)`
two, so that a part needs one kernel for one chain. Longer chains come before shorter ones, earlier patterns before
later ones. What is in a function of its own already stays there, so that several backends take their parts one after
the other. A call with the label of another part is left to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import NoReturn

from weft.errors import TargetError
from weft.ir import (
    Call,
    Constant,
    DataflowBlock,
    DataflowVar,
    Expr,
    FrozenMap,
    Function,
    GlobalVar,
    IRModule,
    Op,
    SeqExpr,
    ShapeExpr,
    ShapeType,
    Var,
    VarBinding,
    replace,
    rewrite,
    walk,
)
from weft.ir.attrs import COMPOSITE, LABEL
from weft.ir.deduction.subtyping import type_text
from weft.ir.dim import symbol
from weft.support.records import dataclass
from weft.transform.analysis.free_symbols import bare_symbols, symbols_of
from weft.transform.infra.base import Pass
from weft.transform.infra.rewriting import map_operands

__all__ = ["COMPOSITE", "Declined", "PartitionCalls", "outlined_function"]


class Declined(TargetError):
    """A part does not take a function: what its lowering hook raises, with the reason (W753)."""

    default_code = "W753"


@dataclass(frozen=True)
class PartitionCalls(Pass):
    """Give chains of operators to the part of a target with a label.

    `patterns` are chains of operator names by the name of the pattern. A subclass may refuse chains (`accepts`).
    """

    label: str
    patterns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def accepts(self, name: str, calls: Sequence[Call]) -> bool | str:
        """Whether a chain is wanted, or in words why not; types and attributes of the calls decide."""
        return True

    def taken(self, function: Function) -> tuple[str, tuple[VarBinding, ...]]:
        """The pattern that a whole function is, with its bindings; raises `Declined` for what is none, or not accepted.

        What a lowering hook asks first: labels give it functions that its part did not choose.
        """
        bindings = [item for block in function.body.blocks for item in block.bindings]
        chain = tuple(item for item in bindings if isinstance(item, VarBinding) and isinstance(item.value, Call))
        if len(chain) != len(bindings) or not chain or function.body.body is not chain[-1].var:
            return self._declined("what is no chain of operators")
        tensors = [param for param in function.params if not isinstance(param.ty, ShapeType)]
        if _operands(chain) != tensors:
            return self._declined("a function whose parameters are not the operands of its operators, in order")
        operators, calls = tuple(map(_operator, chain)), [item.value for item in chain if isinstance(item.value, Call)]
        said = ""
        for name, pattern in self.patterns.items():
            if tuple(pattern) == operators:
                answer = self.accepts(name, calls)
                if answer is True:
                    return name, chain
                said = answer or said
        what = ", ".join(f"R.{name}" for name in operators if name) or "a call of a function"
        types = ", ".join(type_text(item.ty) for item in tensors)
        return self._declined(f"{what}: {said}" if said else f"{what} of {types}")

    def _declined(self, what: str) -> NoReturn:
        operators = "; ".join(" > ".join(f"R.{name}" for name in pattern) for pattern in self.patterns.values())
        raise Declined(f"it takes {operators} of types that it accepts, and this is {what}")

    def run(self, module: IRModule) -> IRModule:
        """Outline the chains of every graph function that has no label of its own."""
        new = module
        for name, function in module.items():
            if isinstance(function, Function) and LABEL not in function.attrs and COMPOSITE not in function.attrs:
                new = _Outliner(self, new, name, function).run()
        return new


@dataclass
class _Outliner:
    """The work on one function: blocks are rebuilt, functions join the module."""

    item: PartitionCalls
    module: IRModule
    name: str
    function: Function

    def run(self) -> IRModule:
        blocks = tuple(
            self.block(block) if isinstance(block, DataflowBlock) else block for block in self.function.body.blocks
        )
        if all(new is old for new, old in zip(blocks, self.function.body.blocks, strict=True)):
            return self.module
        body = replace(self.function.body, blocks=blocks)
        return self.module.with_function(self.name, replace(self.function, body=body))

    def block(self, block: DataflowBlock) -> DataflowBlock:
        chains = list(self.chains(block))
        if not chains:
            return block
        inner = {binding.var: chain for _, chain in chains for binding in chain}
        last = {chain[-1].var: (name, chain) for name, chain in chains}
        bindings = []
        for binding in block.bindings:
            if binding.var in last:
                bindings.append(self.outlined(*last[binding.var]))
            elif binding.var not in inner:
                bindings.append(binding)
        return replace(block, bindings=tuple(bindings))

    def chains(self, block: DataflowBlock) -> Iterator[tuple[str, tuple[VarBinding, ...]]]:
        """The chains that match, none of which shares a call with another."""
        uses = _uses(self.function)
        bound = {item.var: item for item in block.bindings if isinstance(item, VarBinding)}
        taken: set[Var] = set()
        patterns = sorted(self.item.patterns.items(), key=lambda item: -len(item[1]))  # stable: given order after that
        for name, operators in patterns:
            for binding in bound.values():
                chain = _chain(binding, operators, bound, uses)
                if chain is None or any(item.var in taken or self.is_elsewhere(item) for item in chain):
                    continue
                if self.item.accepts(name, [item.value for item in chain if isinstance(item.value, Call)]) is True:
                    taken.update(item.var for item in chain)
                    yield name, chain

    def is_elsewhere(self, binding: VarBinding) -> bool:
        """Whether a call says that it is for another part."""
        return isinstance(binding.value, Call) and binding.value.attrs.get(LABEL, self.item.label) != self.item.label

    def outlined(self, name: str, chain: Sequence[VarBinding]) -> VarBinding:
        """The call of a new function in place of the last binding of a chain."""
        function, args = outlined_function(chain, {LABEL: self.item.label, COMPOSITE: name}, each=True)
        fresh = self.module.fresh_name("".join(char if char.isalnum() else "_" for char in name))
        self.module = self.module.with_function(fresh, replace(function, name=fresh))
        return replace(chain[-1], value=Call(GlobalVar(fresh), args, span=chain[-1].value.span))


def _uses(function: Function) -> dict[Var, int]:
    """How often each variable occurs, apart from where it is bound."""
    counts: dict[Var, int] = {}
    for block in function.body.blocks:
        for binding in block.bindings:
            for node in walk(binding.value):
                if isinstance(node, Var):
                    counts[node] = counts.get(node, 0) + 1
    for node in walk(function.body.body):
        if isinstance(node, Var):
            counts[node] = counts.get(node, 0) + 2  # a result is used by whoever called
    return counts


def _chain(
    binding: VarBinding, operators: Sequence[str], bound: Mapping[Var, VarBinding], uses: Mapping[Var, int]
) -> tuple[VarBinding, ...] | None:
    """The chain that ends in a binding, if its operators are those of the pattern."""
    found: list[VarBinding] = []
    current: VarBinding | None = binding
    for position, name in enumerate(reversed(operators)):
        call = current.value if current is not None else None
        if current is None or not isinstance(call, Call) or not isinstance(call.op, Op) or call.op.name != name:
            return None
        if position and (not isinstance(current.var, DataflowVar) or uses.get(current.var, 0) != 1):
            return None
        found.append(current)
        before = [bound[arg] for arg in call.args if isinstance(arg, Var) and arg in bound]
        wanted = operators[-position - 2] if position + 1 < len(operators) else None
        current = next((item for item in before if _operator(item) == wanted), None)
    return tuple(reversed(found))


def _operator(binding: VarBinding) -> str | None:
    call = binding.value
    return call.op.name if isinstance(call, Call) and isinstance(call.op, Op) else None


def _plain(value: Expr) -> Expr:
    """A call without its label, which is that of the function now."""
    if isinstance(value, Call) and LABEL in value.attrs:
        return replace(value, attrs=value.attrs.without(LABEL))
    return value


def _operands(chain: Sequence[VarBinding]) -> list[Expr]:
    """What the calls of a chain take from outside, each time that they take it."""
    own = {binding.var for binding in chain}
    found: list[Expr] = []

    def see(leaf: Expr) -> Expr:
        if isinstance(leaf, Var) and leaf not in own:
            found.append(leaf)
        return leaf

    for binding in chain:
        map_operands(binding.value, see)
    return found


def _with_a_parameter_for_each(chain: Sequence[VarBinding]) -> tuple[Sequence[VarBinding], Mapping[Expr, Expr]]:
    """The chain with a variable of its own for each further time that it takes a value; these and what they are."""
    own, seen, more = {binding.var for binding in chain}, set[Expr](), dict[Expr, Expr]()

    def apart(leaf: Expr) -> Expr:
        if not isinstance(leaf, Var) or leaf in own:
            return leaf
        if leaf not in seen:
            seen.add(leaf)
            return leaf
        again = Var(leaf.name, leaf.ty, span=leaf.span)
        more[again] = leaf
        return again

    return [replace(item, value=map_operands(item.value, apart)) for item in chain], more


def outlined_function(
    chain: Sequence[VarBinding], attrs: dict[str, str], *, constants: bool = True, each: bool = False
) -> tuple[Function, tuple[Expr, ...]]:
    """The function of bindings whose last one is its result, and the arguments of its call.

    What they take from outside are parameters, arrays too where `constants` is false; with `each`, once for each time
    that they take it.
    """
    own = {binding.var for binding in chain}
    params: dict[Expr, Var] = {}
    again: Mapping[Expr, Expr] = {}
    if each:
        chain, again = _with_a_parameter_for_each(chain)
    for binding in chain:
        for node in walk(binding.value):
            if isinstance(node, Var) and node not in own and node not in params:
                params[node] = Var(node.name, node.ty, span=node.span)
            elif isinstance(node, Constant) and not constants:
                params.setdefault(node, Var("constant", node.ty, span=node.span))
    result = chain[-1]
    local: dict[Var, Var] = {item.var: DataflowVar(item.var.name, item.var.ty) for item in chain[:-1]}
    local[result.var] = Var(result.var.name, result.var.ty)
    names: Mapping[Expr, Var] = {**params, **local}

    def rename(node: object) -> Var | None:
        return names.get(node) if isinstance(node, (Var, Constant)) else None

    bindings = tuple(replace(item, var=local[item.var], value=_plain(rewrite(item.value, rename))) for item in chain)
    body = SeqExpr((DataflowBlock(bindings),), local[result.var])
    span = result.value.span or result.span
    function = Function(tuple(params.values()), body, result.var.ty, private=True, attrs=FrozenMap(attrs), span=span)
    args: tuple[Expr, ...] = tuple(again.get(param, param) for param in params)
    loose = sorted(symbols_of(function) - {name for var in params.values() for name in bare_symbols(var.ty)})
    if loose:  # sizes that no parameter says
        dims = tuple(map(symbol, loose))
        function = replace(function, params=(*function.params, Var("sizes", ShapeType(dims))))
        args = (*args, ShapeExpr(dims))
    return function, args
