"""Rebuilding graph functions binding by binding: what most passes stand on.

A `FunctionRewriter` walks the bindings of a function in order and keeps a map from variables to what stands for them
now. A pass overrides `rewrite_binding`, which sees each binding with its operands already mapped and returns the
binding, other bindings in its place, or none. What does not change stays the same object; a block that changes keeps
its kind. Branches of an `If` and local functions are walked like the outer body (recursion follows their nesting,
never the bindings).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from weft.errors import Span
from weft.ir import (
    Binding,
    BindingBlock,
    Call,
    DataflowBlock,
    DataflowVar,
    Expr,
    Function,
    If,
    MatchCast,
    Op,
    SeqExpr,
    ShapeExpr,
    ShapeType,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    Var,
    VarBinding,
    replace,
    rewrite,
)
from weft.ir.attrs import ABSENT
from weft.ir.op import OPS

__all__ = [
    "FunctionRewriter",
    "bindings_of",
    "derived",
    "is_marked",
    "map_dataflow",
    "map_operands",
    "merge_blocks",
    "operands",
    "shape_variables",
    "value_behind",
    "void_binding",
]

E = TypeVar("E", bound=Expr)


def value_behind(expr: Expr, values: Mapping[Var, Expr]) -> Expr:
    """What a variable stands for, through all variables whose values are known; another expression as it is."""
    while isinstance(expr, Var) and expr in values:
        expr = values[expr]
    return expr


def map_dataflow(function: Function, change: Callable[[DataflowBlock], BindingBlock]) -> Function:
    """The function with others in place of its outer dataflow blocks; the same object when none changes."""
    old = function.body.blocks
    blocks = tuple(change(block) if isinstance(block, DataflowBlock) else block for block in old)
    if all(a is b for a, b in zip(blocks, old, strict=True)):
        return function
    return replace(function, body=replace(function.body, blocks=blocks))


def derived(span: Span | None, origin: str) -> Span | None:
    """The span marked as the work of a pass."""
    return span.derived(origin) if span is not None else None


def void_binding(value: Expr, span: Span | None = None) -> VarBinding:
    """A binding whose value is of no interest: the void statement."""
    return VarBinding(Var("_", TupleType(())), value, span=span)


def operands(value: Expr) -> Iterator[Expr]:
    """The leaves that a bound value uses directly, callee included, without entering branches and local functions."""
    if isinstance(value, Call):
        yield value.op
        for arg in value.args:
            yield from _leaves(arg)
    elif isinstance(value, TupleGetItem):
        yield from _leaves(value.value)
    elif isinstance(value, If):
        yield from _leaves(value.cond)
    elif not isinstance(value, (Function, SeqExpr)):
        yield from _leaves(value)


def _leaves(value: Expr) -> Iterator[Expr]:
    if isinstance(value, Tuple):
        for item in value.fields:
            yield from _leaves(item)
    else:
        yield value


def map_operands(value: E, leaf: Callable[[Expr], Expr]) -> E:
    """The value with `leaf(x)` for each operand x; branches and local functions stay."""
    if isinstance(value, Call):
        args = _map_items(value.args, leaf)
        op = leaf(value.op)
        return value if args is value.args and op is value.op else replace(value, op=op, args=args)
    if isinstance(value, TupleGetItem):
        return replace(value, value=_map_leaf(value.value, leaf))
    if isinstance(value, If):
        return replace(value, cond=_map_leaf(value.cond, leaf))
    if isinstance(value, (Function, SeqExpr)):
        return value
    return _map_leaf(value, leaf)  # type: ignore[return-value]


def _map_leaf(value: Expr, leaf: Callable[[Expr], Expr]) -> Expr:
    return replace(value, fields=_map_items(value.fields, leaf)) if isinstance(value, Tuple) else leaf(value)


def _map_items(items: tuple[Expr, ...], leaf: Callable[[Expr], Expr]) -> tuple[Expr, ...]:
    new = tuple(_map_leaf(item, leaf) for item in items)
    return items if all(a is b for a, b in zip(new, items, strict=True)) else new


def bindings_of(seq: SeqExpr) -> Iterator[Binding]:
    """The bindings of a sequence in order, those of branches and local functions left out."""
    for block in seq.blocks:
        yield from block.bindings


def merge_blocks(blocks: Iterable[BindingBlock]) -> tuple[BindingBlock, ...]:
    """The blocks without empty ones, and with neighbouring plain blocks joined (text shows no border between those)."""
    new: list[BindingBlock] = []
    for block in blocks:
        if not block.bindings:
            continue
        plain = not isinstance(block, DataflowBlock)
        if plain and new and not isinstance(new[-1], DataflowBlock):
            new[-1] = BindingBlock((*new[-1].bindings, *block.bindings), span=new[-1].span)
        else:
            new.append(block)
    return tuple(new)


def is_marked(value: Expr) -> bool:
    """Whether a call says more than the operator knows: the part of a target that it is for."""
    if not isinstance(value, Call) or not isinstance(value.op, Op) or not value.attrs:
        return False
    known = {param.name for param in OPS[value.op.name].params} if value.op.name in OPS else set[str]()
    return any(key not in known and key != ABSENT for key in value.attrs)


class FunctionRewriter:
    """Rebuilds a function; see the module. `replaced` maps old variables to the leaves that stand for them."""

    def __init__(self) -> None:
        self.replaced: dict[Var, Expr] = {}
        self.in_dataflow = False

    def run(self, function: Function) -> Function:
        """The function with every binding rewritten; itself when nothing changes."""
        params = tuple(self.rewrite_parameter(param) for param in function.params)
        params = function.params if params == function.params else params
        body = self.sequence(function.body)
        return replace(function, params=params, body=body, ret_type=self.map_type(function.ret_type))

    # What a pass overrides -------------------------------------------------------------------------------------------

    def rewrite_parameter(self, param: Var) -> Var:
        """The parameter in the new function."""
        return param

    def rewrite_binding(self, binding: Binding) -> Binding | Sequence[Binding]:
        """What stands for a binding whose operands are mapped already."""
        return binding

    def rewrite_block(self, block: BindingBlock, bindings: tuple[Binding, ...]) -> BindingBlock:
        """The block with new bindings."""
        return replace(block, bindings=bindings)

    def fresh(self, name: str, ty: Type, span: Span | None = None) -> Var:
        """A new variable for a binding beside the current one."""
        return (DataflowVar if self.in_dataflow else Var)(name, ty, span=span)

    # The walk --------------------------------------------------------------------------------------------------------

    def sequence(self, seq: SeqExpr) -> SeqExpr:
        """A body or branch, rewritten."""
        blocks = [self._block(block) for block in seq.blocks]
        body = self.map_value(seq.body)
        if all(a is b for a, b in zip(blocks, seq.blocks, strict=True)):
            return replace(seq, body=body)
        return replace(seq, blocks=merge_blocks(blocks), body=body)

    def _block(self, block: BindingBlock) -> BindingBlock:
        new: list[Binding] = []
        self.in_dataflow = isinstance(block, DataflowBlock)
        for binding in block.bindings:
            result = self.rewrite_binding(self.mapped_binding(binding))
            if isinstance(result, (VarBinding, MatchCast)):
                new.append(result)
            else:
                new.extend(result)
        same = len(new) == len(block.bindings) and all(a is b for a, b in zip(new, block.bindings, strict=True))
        if same and not self.changes_blocks:
            return block
        return self.rewrite_block(block, block.bindings if same else tuple(new))

    changes_blocks = False
    """Whether `rewrite_block` is to see blocks whose bindings did not change, too."""

    def mapped_binding(self, binding: Binding) -> Binding:
        """The binding with operands mapped, and branches and local functions rewritten."""
        value = self.map_value(binding.value)
        if isinstance(value, (If, Function)):
            value = self._inner(value)
        var = self.map_variable(binding.var)
        if isinstance(binding, MatchCast):
            return replace(binding, var=var, value=value, ty=self.map_type(binding.ty))
        return replace(binding, var=var, value=value)

    def _inner(self, value: If | Function) -> Expr:
        outer = self.in_dataflow
        if isinstance(value, Function):
            new = self.run(value)
        else:
            then_branch, else_branch = self.sequence(value.then_branch), self.sequence(value.else_branch)
            new = replace(value, then_branch=then_branch, else_branch=else_branch)
        self.in_dataflow = outer
        return new

    def map_variable(self, var: Var) -> Var:
        """The variable, or a new one where its type mentions a replaced shape variable."""
        ty = self.map_type(var.ty)
        if ty is var.ty:
            return var
        new = self.replaced[var] = replace(var, ty=ty)
        return new

    def map_value(self, value: E) -> E:
        """The value with replaced variables mapped, in its type arguments too."""
        if not self.replaced:
            return value
        new = map_operands(value, self._leaf)
        if isinstance(new, Call) and new.ty_args:
            ty_args = tuple(self.map_type(ty) for ty in new.ty_args)
            if any(a is not b for a, b in zip(ty_args, new.ty_args, strict=True)):
                return replace(new, ty_args=ty_args)
        return new

    def _leaf(self, leaf: Expr) -> Expr:
        return self.replaced.get(leaf, leaf) if isinstance(leaf, Var) else leaf

    def map_type(self, ty: Type) -> Type:
        """The type with replaced shape variables mapped."""
        if not self.replaced or next(shape_variables(ty), None) is None:
            return ty
        return rewrite(ty, pre=self._shape_in_type, types=True)

    def _shape_in_type(self, node: object) -> Type | None:
        if not isinstance(node, TensorType) or not isinstance(node.shape, Var) or node.shape not in self.replaced:
            return None
        shape = self.replaced[node.shape]
        if isinstance(shape, ShapeExpr):
            return replace(node, shape=shape.dims)
        if not isinstance(shape, Var):
            return None
        known = shape.ty.dims if isinstance(shape.ty, ShapeType) else None  # what is known by its sizes goes by them
        return replace(node, shape=shape if known is None else known)


def shape_variables(ty: Type) -> Iterator[Var]:
    """The shape variables that a type mentions."""
    if isinstance(ty, TensorType):
        if isinstance(ty.shape, Var):
            yield ty.shape
    elif isinstance(ty, TupleType):
        for field in ty.fields:
            yield from shape_variables(field)
