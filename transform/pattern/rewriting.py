"""Rebuilding functions where patterns match.

    rewrite_call(pattern, rewriter, function)       values of a form become what `rewriter(expr, matches)` gives
    rewrite_bindings(context, rewriter, function)   dataflow blocks, until the patterns of a context are not found

What a rewriter gives may be nested, and may use anything it was shown: a value that a binding has already is not
computed again. The type of a replacement must be proved to be one of what it replaces. Pure bindings that nothing uses
any more go away; nothing impure does.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from weft.errors import PassError, Span, described
from weft.ir import (
    Binding,
    BindingBlock,
    Call,
    DataflowBlock,
    Expr,
    Function,
    IRModule,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
    replace,
)
from weft.ir.builder import BlockBuilder
from weft.ir.deduction.infer import TypeContext, infer_type, is_base_of, type_text
from weft.transform.analysis.value_numbering import same_type
from weft.transform.graph.dead_code import without_dead_bindings, without_dead_values
from weft.transform.infra.rewriting import FunctionRewriter, derived
from weft.transform.pattern.context import BlockSearch, PatternContext
from weft.transform.pattern.language import DFPattern, checked_pattern
from weft.transform.pattern.matching import Match, bindings_of_function

__all__ = ["Replacements", "rewrite_bindings", "rewrite_call"]

CallRewriter = Callable[[Expr, dict[DFPattern, Expr]], "Expr | None"]
BlockRewriter = Callable[[dict[DFPattern, Expr], dict[Var, Expr]], Mapping[Var, Expr]]

_ORIGIN = "rewrite"


def rewrite_call(
    pattern: DFPattern, rewriter: CallRewriter, function: Function, module: IRModule | None = None
) -> Function:
    """The function where each bound value of the form of `pattern` is what `rewriter(expr, matches)` gives.

    Bindings are visited once, in order; None or `expr` itself leaves one alone. `module` has the functions that are
    called. Raises PassError W550 and W551 for wrong arguments, W553 for a replacement that does not fit.

    >>> import weft
    >>> from weft.ir.op import get_op
    >>> from weft.transform.pattern import is_op, wildcard
    >>> text = '@R.function\\ndef f(x: R.Tensor((2,), "float32")):\\n    y = R.exp(x)\\n    return y'
    >>> x = wildcard()
    >>> new = rewrite_call(is_op("exp")(x), lambda expr, found: get_op("tanh")(found[x]), weft.parse(text))
    >>> "R.tanh(x)" in new.script()
    True
    """
    checked_pattern(pattern, "what is rewritten")
    _check_function(function)
    module = module or IRModule()
    new = _Calls(pattern, rewriter, function, module).run(function)
    return function if new is function else without_dead_bindings(new, module)


def _check_function(function: Any) -> None:
    if not isinstance(function, Function):
        raise PassError(f"what is rewritten is a graph function, got {described(function)}", code="W551")


class Replacements:
    """Makes bindings of what a rewriter gives."""

    def __init__(self, module: IRModule) -> None:
        self.builder = BlockBuilder(module)
        self.module = module
        self.owners: dict[int, Var] = {}
        self.known: set[Var] = set()
        self.alive: list[Expr] = []  # the ids of these stay theirs

    def replaced(self, binding: VarBinding, value: Any, dataflow: bool) -> list[Binding]:
        """The binding with another value, after the bindings that the parts of the value need."""
        if not isinstance(value, Expr):
            raise self.unfit(binding, f"is {described(value)}, not an expression")
        with self.builder.collect(dataflow) as before:
            new = self.builder.normalize(self.owners.get(id(value)) or self.over_parts(value, binding))
            ty = infer_type(new, TypeContext(self.module.functions))
        if not same_type(ty, binding.var.ty) and is_base_of(binding.var.ty, ty) is not True:
            raise self.unfit(binding, f"has type {type_text(ty)}, and {type_text(binding.var.ty)} is wanted")
        span = derived(binding.span or binding.value.span, _ORIGIN)
        return [*(replace(item, span=span) for item in before), replace(binding, value=new, span=span)]

    def over_parts(self, value: Expr, binding: VarBinding) -> Expr:
        """The value over variables for what is bound already; a part that occurs twice is bound once."""
        if isinstance(value, Var) and value not in self.known:
            raise self.unfit(binding, f"uses {value.name!r}, which is not bound before it")
        if isinstance(value, Call):
            args = tuple(self.part(arg, binding) for arg in value.args)
            return replace(value, op=self.part(value.op, binding), args=args)
        if isinstance(value, Tuple):
            return replace(value, fields=tuple(self.part(field, binding) for field in value.fields))
        return replace(value, value=self.part(value.value, binding)) if isinstance(value, TupleGetItem) else value

    def part(self, value: Expr, binding: VarBinding) -> Expr:
        """What stands for a part of a replacement."""
        owner = self.owners.get(id(value))
        if owner is not None:
            return owner
        new = self.over_parts(value, binding)
        if not isinstance(new, (Call, TupleGetItem)):
            return new
        var = self.owners[id(value)] = self.builder.emit(new)
        self.alive.append(value)
        self.known.add(var)
        return var

    def bound(self, bindings: Sequence[Binding]) -> None:
        """What follows may use these."""
        for binding in bindings:
            self.known.add(binding.var)
            if isinstance(binding, VarBinding):
                self.owners[id(binding.value)] = binding.var

    def unfit(self, binding: VarBinding, what: str) -> PassError:
        """The error for a replacement."""
        span: Span | None = binding.value.span or binding.span
        return PassError(f"the replacement for {binding.var.name!r} {what}", code="W553", span=span)


class ValueRewriter(FunctionRewriter):
    """Replaces the values of bindings by what `replacement` makes of them, over what is bound before."""

    def __init__(self, function: Function, module: IRModule) -> None:
        super().__init__()
        self.values = bindings_of_function(function)
        self.made = Replacements(module)
        self.made.owners = {id(value): var for var, value in self.values.items()}
        self.made.known.update(function.params)

    def rewrite_parameter(self, param: Var) -> Var:
        self.made.known.add(param)
        return param

    def match(self, binding: VarBinding) -> Match:
        """What is known where a value is bound."""
        return Match(
            self.values, self.made.module.functions, ChainMap({id(binding.value): binding.var}, self.made.owners)
        )

    def replacement(self, binding: VarBinding) -> Any:
        """What stands for the value of a binding; None where it stays."""
        raise NotImplementedError

    def rewrite_binding(self, binding: Binding) -> Binding | Sequence[Binding]:
        new: list[Binding] = [binding]
        if isinstance(binding, VarBinding):
            self.made.owners.pop(id(binding.value), None)  # a value inside its own replacement is computed there
            other = self.replacement(binding)
            if other is not None and other is not binding.value:
                new = self.made.replaced(binding, other, self.in_dataflow)
        self.values.update({item.var: item.value for item in new if isinstance(item, VarBinding)})
        self.made.bound(new)
        return new[0] if len(new) == 1 else new


class _Calls(ValueRewriter):
    def __init__(self, pattern: DFPattern, rewriter: CallRewriter, function: Function, module: IRModule) -> None:
        super().__init__(function, module)
        self.pattern, self.rewriter = pattern, rewriter

    def replacement(self, binding: VarBinding) -> Any:
        found = self.match(binding).first(self.pattern, binding.value)
        return None if found is None else self.rewriter(binding.value, found)


def rewrite_bindings(
    context: PatternContext, rewriter: BlockRewriter, function: Function, module: IRModule | None = None
) -> Function:
    """The function whose dataflow blocks are changed until the patterns of a context are not found in them any more.

    `rewriter(matches, bindings)` gets the variable of each pattern and the value of each variable of the block, and
    gives new values for variables; no values end the work on a block. Raises PassError W551 for what is no function,
    W552 for a context without patterns, W553 for a value that does not fit, W554 when there is no end.
    """
    _check_function(function)
    module = module or IRModule()
    known = set(function.params)
    blocks: list[BindingBlock] = []
    for block in function.body.blocks:
        blocks.append(_rewritten(context, rewriter, block, known, module))
        known.update(item.var for item in blocks[-1].bindings)
    if all(a is b for a, b in zip(blocks, function.body.blocks, strict=True)):
        return function
    return without_dead_bindings(replace(function, body=replace(function.body, blocks=tuple(blocks))), module)


def _rewritten(
    context: PatternContext, rewriter: BlockRewriter, block: BindingBlock, known: set[Var], module: IRModule
) -> BindingBlock:
    if not isinstance(block, DataflowBlock):
        return block
    for _ in range(100 + 10 * len(block.bindings)):
        search = BlockSearch(context, block, dict(module.functions))
        found = search.first()
        if found is None:
            return block
        changes = rewriter(found, dict(search.match.bindings))
        if not isinstance(changes, Mapping):
            message = f"a rewriter of bindings gives a dictionary of values by variable, got {described(changes)}"
            raise PassError(message, code="W553")
        if not changes:
            return block
        block = without_dead_values(_changed(block, changes, known, module), module)
    raise PassError(
        "the patterns are still found after as many changes as there can be",
        code="W554",
        hint="what the rewriter gives is found again: let it give {} then",
    )


def _changed(block: BindingBlock, changes: Mapping[Var, Expr], known: set[Var], module: IRModule) -> BindingBlock:
    """The block with new values for some variables."""
    bound = {item.var for item in block.bindings if isinstance(item, VarBinding)}
    for var in changes:
        if var not in bound:
            name = repr(var.name) if isinstance(var, Var) else described(var)
            raise PassError(f"the rewriter changes {name}, which the block does not bind", code="W553")
    made = Replacements(module)
    made.known.update(known)
    bindings: list[Binding] = []
    for binding in block.bindings:
        new: list[Binding] = [binding]
        if isinstance(binding, VarBinding) and binding.var in changes:
            new = made.replaced(binding, changes[binding.var], dataflow=True)
        bindings += new
        made.bound(new)
    return replace(block, bindings=tuple(bindings))
