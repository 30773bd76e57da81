"""FoldConstant: pure calls whose operands are all known at compile time become constants.

The interpreter computes the values, so folding means exactly what running means. A call that fails (an index out of
range) stays and fails when the program runs. Folding does not blow the module up: a result may be larger than
`max_bytes` only when it is no larger than the constants it is made of (a weight that is transposed, say). Kernels are
interpreted element by element, so calls of kernels fold only up to `max_kernel_elements`; fold before `LegalizeOps` to
have whole operators.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace as with_options
from typing import Annotated, Any, ClassVar

import numpy as np

from weft.dtypes import storage, stored
from weft.errors import Span, WeftError
from weft.ir import (
    Binding,
    BindingBlock,
    Call,
    Constant,
    DataTypeImm,
    Expr,
    ExternFunc,
    Function,
    GlobalVar,
    IRModule,
    Op,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    StringImm,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    Var,
    VarBinding,
    replace,
)
from weft.ir.dim import DimExpr
from weft.ir.interpret.entry import interpret, value_of_call
from weft.support.records import dataclass
from weft.transform.analysis.purity import gives_fresh_memory, is_pure
from weft.transform.infra.base import FunctionPass
from weft.transform.infra.context import PassContext, changed_options, is_disabled
from weft.transform.infra.options import AtLeast
from weft.transform.infra.rewriting import FunctionRewriter, derived, map_operands, operands

__all__ = ["ConstantFolder", "FoldConstant", "folder_in_context"]


@dataclass(frozen=True)
class FoldConstant(FunctionPass):
    """Compute pure calls on constants at compile time.

    `max_bytes` limits results that are larger than the constants they come from, `max_kernel_elements` the work of
    kernels.
    """

    aliases: ClassVar[tuple[str, ...]] = ("fold",)
    level: ClassVar[int] = 1
    max_bytes: Annotated[int, AtLeast(0)] = 1 << 16
    max_kernel_elements: Annotated[int, AtLeast(0)] = 1 << 12

    def run_function(self, name: str, function: Function, module: IRModule) -> Function:
        """The function with constants in place of constant calls."""
        return ConstantFolder(self, module).run(function)


def folder_in_context(module: IRModule) -> ConstantFolder | None:
    """What folds constants within another pass, where a pipeline would run FoldConstant; else None."""
    item = FoldConstant()
    if item.level > PassContext.current().opt or is_disabled(item):
        return None
    return ConstantFolder(with_options(item, **changed_options(item)), module)


class ConstantFolder(FunctionRewriter):
    """Folds the calls of one function, and knows which variables stand for constants."""

    def __init__(self, options: FoldConstant, module: IRModule) -> None:
        super().__init__()
        self.options = options
        self.module = module
        self.known: dict[Var, Expr] = {}

    def rewrite_binding(self, binding: Binding) -> Binding:
        """The binding, of a constant where its value is one."""
        if not isinstance(binding, VarBinding):
            return binding
        value = binding.value
        if isinstance(value, Call):
            folded = self.fold(value, binding.var.ty)
            if folded is not None:
                binding = replace(binding, value=folded, span=folded.span)
        self.learn(binding)
        return binding

    def folded(self, bindings: Sequence[Binding]) -> list[Binding]:
        """Bindings that take the place of one, those of local functions too."""
        return [self.rewrite_binding(self.mapped_binding(binding)) for binding in bindings]

    def learn(self, binding: Binding) -> None:
        """Remember the variable of a constant."""
        constant = self.constant_of(binding.value) if isinstance(binding, VarBinding) else None
        if constant is not None:
            self.known[binding.var] = constant

    def has_constants(self, call: Call) -> bool:
        """Whether some operand is an array that is known at compile time."""
        return any(isinstance(self.constant_of(arg), Constant) for arg in call.args)

    def constant_of(self, value: Expr) -> Expr | None:
        """The value over constants only, or None."""
        if isinstance(value, TupleGetItem):
            whole = self.constant_of(value.value)
            return whole.fields[value.index] if isinstance(whole, Tuple) else None
        if isinstance(value, Tuple):
            fields = [self.constant_of(field) for field in value.fields]
            known = tuple(field for field in fields if field is not None)
            return replace(value, fields=known) if len(known) == len(fields) else None
        if isinstance(value, Var):
            return self.known.get(value)
        return value if _is_static_leaf(value) else None

    def fold(self, call: Call, ty: Type) -> Expr | None:
        """The result of a call as a constant, or None when it is not known or not to be folded."""
        if not self.may_fold(call) or not _is_static(ty):
            return None
        args = [self.constant_of(arg) for arg in call.args if not isinstance(arg, (GlobalVar, Op))]
        if any(arg is None for arg in args):
            return None
        constants = sum(leaf.data.nbytes for arg in args if arg is not None for leaf in _constants(arg))
        if _size_in_bytes(ty) > max(self.options.max_bytes, constants):
            return None
        if _is_kernel_call(call) and _elements(ty, args) > self.options.max_kernel_elements:
            return None
        plain = map_operands(call, lambda leaf: self.known.get(leaf, leaf) if isinstance(leaf, Var) else leaf)
        return self.evaluate(plain, ty, derived(call.span, self.options.text_name))

    def may_fold(self, call: Call) -> bool:
        """Whether the interpreter alone gives the value: a pure call without external functions and free symbols."""
        if gives_fresh_memory(call) or not is_pure(call, self.module):
            return False
        if any(isinstance(leaf, ExternFunc) for leaf in operands(call)):
            return False
        return isinstance(call.op, (Op, GlobalVar)) and not _mentions_symbols(call.attrs)

    def evaluate(self, call: Call, ty: Type, span: Span | None) -> Expr | None:
        """What the interpreter gives for a call on constants; None where it fails."""
        calls = any(isinstance(leaf, GlobalVar) for leaf in operands(call))
        try:
            with np.errstate(all="ignore"):
                value = self.value_of_function(call, ty) if calls else value_of_call(call, ty)
        except WeftError:
            return None
        return _as_constant(value, ty, span)

    def value_of_function(self, call: Call, ty: Type) -> Any:
        """What a call that may need functions of the module gives."""
        result = Var("result", ty)
        body = SeqExpr((BindingBlock((VarBinding(result, call),)),), result)
        name = self.module.fresh_name("folded")
        return interpret(self.module.with_function(name, Function((), body, ty, name=name)))[name]()


def _is_static_leaf(value: Expr) -> bool:
    if isinstance(value, ShapeExpr):
        return not any(isinstance(dim, DimExpr) for dim in value.dims)
    if isinstance(value, PrimValue):
        return not isinstance(value.value, DimExpr)
    return isinstance(value, (Constant, StringImm, DataTypeImm))


def _is_static(ty: Type) -> bool:
    """Whether the type is that of arrays of known size, in a non-empty tuple or alone."""
    if isinstance(ty, TupleType):
        return bool(ty.fields) and all(map(_is_static, ty.fields))
    if not isinstance(ty, TensorType) or ty.dims is None or ty.dtype is None or ty.vdevice is not None:
        return False
    return all(isinstance(dim, int) for dim in ty.dims)


def _tensors(ty: Type) -> Iterator[TensorType]:
    if isinstance(ty, TensorType):
        yield ty
    elif isinstance(ty, TupleType):
        for field in ty.fields:
            yield from _tensors(field)


def _count(ty: TensorType) -> int:
    return math.prod(dim for dim in ty.dims or () if isinstance(dim, int))


def _size_in_bytes(ty: Type) -> int:
    return sum(_count(part) * storage(part.dtype).itemsize for part in _tensors(ty) if part.dtype is not None)


def _elements(ty: Type, args: Sequence[Expr | None]) -> int:
    inputs = sum(leaf.data.size for arg in args if arg is not None for leaf in _constants(arg))
    return inputs + sum(map(_count, _tensors(ty)))


def _constants(value: Expr) -> Iterator[Constant]:
    if isinstance(value, Constant):
        yield value
    elif isinstance(value, Tuple):
        for field in value.fields:
            yield from _constants(field)


def _is_kernel_call(call: Call) -> bool:
    return isinstance(call.op, GlobalVar) or any(isinstance(arg, GlobalVar) for arg in call.args)


def _mentions_symbols(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return any(map(_mentions_symbols, value))
    if hasattr(value, "values"):
        return any(map(_mentions_symbols, value.values()))
    return isinstance(value, DimExpr)


def _as_constant(value: Any, ty: Type, span: Span | None) -> Expr | None:
    if isinstance(ty, TupleType):
        fields = [_as_constant(item, field, span) for item, field in zip(value, ty.fields, strict=True)]
        known = tuple(field for field in fields if field is not None)
        return Tuple(known, span=span) if len(known) == len(fields) else None
    if not isinstance(ty, TensorType) or ty.dtype is None:
        return None
    array = stored(np.asarray(value), ty.dtype)
    if array.dtype != storage(ty.dtype) or array.shape != ty.dims:
        return None
    return Constant(array, ty.dtype, span=span)
