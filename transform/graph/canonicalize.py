"""CanonicalizeBindings: bindings that only rename, re-check or repack.

    y = x                        uses of y become x; in a dataflow block whose output y is, x takes the place of y
    y = match_cast(x, ty)        the same, when the type of x is ty
    t = (a, b); y = t[0]         y = a, and so on as above
    p = t[0]; q = t[1]; (p, q)   t
    y = match_cast(x, (m,))      m becomes n everywhere, when x has n elements and m is new there
    R.output(y)                  y becomes a dataflow variable, when nothing outside of the block uses it

A binding whose type differs from that of its value stays: where it says more it is a claim, and where it says less the
code after it was checked with less (what would be refuted with more must still be left to run time).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from weft.ir import (
    Binding,
    BindingBlock,
    DataflowBlock,
    DataflowVar,
    Expr,
    Function,
    If,
    IRModule,
    MatchCast,
    SeqExpr,
    ShapeType,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    Var,
    VarBinding,
    replace,
    substitute,
    walk,
)
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import Dim, DimExpr, operation
from weft.ir.dim import substitute as substitute_dim
from weft.ir.node import Node
from weft.ir.structure.variables import free_variables
from weft.ir.structure.visit import substitute_symbols
from weft.support.records import dataclass
from weft.transform.analysis.free_symbols import symbols_of
from weft.transform.analysis.value_numbering import same_type
from weft.transform.infra.base import FunctionPass
from weft.transform.infra.rewriting import FunctionRewriter, operands, shape_variables

__all__ = ["CanonicalizeBindings"]


@dataclass(frozen=True)
class CanonicalizeBindings(FunctionPass):
    """Remove bindings that only rename a value, casts that cannot fail, and fields of known tuples."""

    aliases: ClassVar[tuple[str, ...]] = ("canonicalize",)
    level: ClassVar[int] = 1

    def run_function(self, name: str, function: Function, module: IRModule) -> Function:
        """The function without them."""
        known = _known_symbols(function)
        named = substitute_symbols(function, known) if known else function
        return _with_inner_outputs(_Canonical().run(named))


def _known_symbols(function: Function) -> dict[str, Dim]:
    """The dimensions that new symbols of casts stand for: sizes of the values that are cast."""
    found: dict[str, Dim] = {}
    bindings = [binding for block in function.body.blocks for binding in block.bindings]
    if not any(isinstance(binding, MatchCast) for binding in bindings):
        return found
    seen = {name for param in function.params for name in symbols_of(param)}
    for binding in bindings:
        before = seen | symbols_of(binding.value)
        if isinstance(binding, MatchCast) and isinstance(binding.value, Var):
            for name, size in _named_sizes(binding.var.ty, binding.value.ty):
                if name not in before and name not in found:
                    found[name] = substitute_dim(size, found) if isinstance(size, DimExpr) else size
        seen |= before | symbols_of(binding.var)
    return found


def _named_sizes(new: Type | None, old: Type | None) -> list[tuple[str, Dim]]:
    """The bare symbols in one type with the dimensions that are in their places in another one."""
    tensors = isinstance(new, TensorType) and isinstance(old, TensorType)
    if not (tensors or (isinstance(new, ShapeType) and isinstance(old, ShapeType))):
        return []
    sizes = dims_of(new) or (), dims_of(old) or ()  # type: ignore[arg-type]
    if len(sizes[0]) != len(sizes[1]):
        return []
    return [(str(a), b) for a, b in zip(*sizes, strict=True) if operation(a)[0] == "symbol"]


def _with_inner_outputs(function: Function) -> Function:
    """The function whose dataflow blocks give out only what is used outside of them."""
    blocks = _blocks_in(function.body)
    flows = [block for block in blocks if isinstance(block, DataflowBlock)]
    outputs = [[b.var for b in block.bindings if not isinstance(b.var, DataflowVar)] for block in flows]
    if not any(len(given) > 1 for given in outputs):  # a block keeps one output at least
        return function
    outside = _used_outside(function.body, blocks)
    inner: dict[Node, Node] = {
        var: DataflowVar(var.name, var.ty, span=var.span)
        for given in outputs
        if not outside.isdisjoint(given)
        for var in given
        if var not in outside
    }
    if inner:
        shapes = {var for part in walk(function) if isinstance(part, Var) for var in shape_variables(part.ty)}
        inner = {var: new for var, new in inner.items() if var not in shapes}
    return substitute(function, inner) if inner else function


def _blocks_in(body: SeqExpr) -> list[BindingBlock]:
    """The blocks of a body, and of the branches and local functions in it."""
    found: list[BindingBlock] = []
    stack: list[Expr] = [body]
    while stack:
        sequence = stack.pop()
        assert isinstance(sequence, SeqExpr)
        found.extend(sequence.blocks)
        for block in sequence.blocks:
            for binding in block.bindings:
                stack.extend(_bodies(binding.value))
    return found


def _bodies(value: Expr) -> tuple[Expr, ...]:
    if isinstance(value, If):
        return value.then_branch, value.else_branch
    return (value.body,) if isinstance(value, Function) else ()


def _used_outside(body: SeqExpr, blocks: Sequence[BindingBlock]) -> set[Expr]:
    """The variables that something else than the bindings of their own block uses."""
    found: set[Expr] = {*operands(body.body)}
    for block in blocks:
        own = {binding.var for binding in block.bindings}
        for binding in block.bindings:
            value = binding.value
            inner = _bodies(value)
            found.update(leaf for leaf in (free_variables(value) if inner else operands(value)) if leaf not in own)
            found.update(leaf for part in inner if isinstance(part, SeqExpr) for leaf in operands(part.body))
    return found


class _Canonical(FunctionRewriter):
    def __init__(self) -> None:
        super().__init__()
        self.tuples: dict[Var, tuple[Expr, ...]] = {}
        self.items: dict[Var, tuple[Var, int]] = {}
        self.local: list[Var] = []  # variables of this dataflow block whose entries above may name dataflow variables

    def rewrite_binding(self, binding: Binding) -> Binding | Sequence[Binding]:
        value = self.simplified(binding.value)
        if isinstance(binding, MatchCast):
            if not isinstance(value, Var) or not same_type(binding.ty, value.ty):
                return replace(binding, value=value)
            binding = VarBinding(binding.var, value, span=binding.span)
        if self.in_dataflow:
            self.local.append(binding.var)
        if isinstance(value, Tuple):
            self.tuples[binding.var] = value.fields
        elif isinstance(value, TupleGetItem) and isinstance(value.value, Var):
            self.items[binding.var] = (value.value, value.index)
        elif isinstance(value, Var) and same_type(binding.var.ty, value.ty):
            if isinstance(binding.var, DataflowVar) or not isinstance(value, DataflowVar):
                self.replaced[binding.var] = value
                return ()
        return replace(binding, value=value)

    def simplified(self, value: Expr) -> Expr:
        """A field of a known tuple, or a tuple of all fields of one variable, as the shorter thing."""
        if isinstance(value, TupleGetItem) and isinstance(value.value, Tuple):
            return value.value.fields[value.index]
        if isinstance(value, TupleGetItem) and isinstance(value.value, Var) and value.value in self.tuples:
            return self.tuples[value.value][value.index]
        if isinstance(value, Tuple) and value.fields:
            origins = [self.items.get(field) if isinstance(field, Var) else None for field in value.fields]
            first = origins[0]
            if first is not None and origins == [(first[0], index) for index in range(len(origins))]:
                whole = first[0]
                if isinstance(whole.ty, TupleType) and len(whole.ty.fields) == len(origins):
                    return whole
        return value

    def rewrite_block(self, block: BindingBlock, bindings: tuple[Binding, ...]) -> BindingBlock:
        """The block; in a dataflow block, an output that renames an inner variable takes its place."""
        if isinstance(block, DataflowBlock):
            bindings = self.outputs_in_place(bindings)
            for var in self.local:  # what is known of its tuples is not visible after the block
                self.tuples.pop(var, None)
                self.items.pop(var, None)
            self.local.clear()
        return super().rewrite_block(block, bindings)

    changes_blocks = True

    def outputs_in_place(self, bindings: tuple[Binding, ...]) -> tuple[Binding, ...]:
        """The bindings with each inner variable that outputs rename bound as the first of those outputs."""
        own = {binding.var for binding in bindings}
        renamed: dict[Var, Expr] = {}
        kept = []
        for binding in bindings:
            var, value = binding.var, binding.value
            if not isinstance(binding, VarBinding) or not isinstance(value, DataflowVar) or value not in own:
                kept.append(binding)
            elif not same_type(var.ty, value.ty):
                kept.append(binding)
            elif value in renamed:
                renamed[var] = self.replaced[var] = renamed[value]
            else:
                renamed[value] = var
        return tuple(map(_Renamer(renamed).rename, kept)) if renamed else bindings


class _Renamer(FunctionRewriter):
    def __init__(self, renamed: dict[Var, Expr]) -> None:
        super().__init__()
        self.replaced = renamed

    def rename(self, binding: Binding) -> Binding:
        """The binding with its own variable and its operands renamed."""
        new = self.mapped_binding(binding)
        var = self.replaced.get(new.var)
        return replace(new, var=var) if isinstance(var, Var) else new
