"""Showing graph functions: bindings, blocks, branches, calls and leaves.

Without annotations (types="hidden") the types of bindings are deduced along, as a reader does it: a binding whose type
is another one keeps its annotation.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from weft.errors import WeftError
from weft.ir.deduction.device_mesh import DTensorType
from weft.ir.deduction.infer import TypeContext, infer_type
from weft.ir.deduction.subtyping import is_base_of
from weft.ir.dim import DimExpr, free_symbols
from weft.ir.graph import (
    BindingBlock,
    Call,
    Constant,
    DataflowBlock,
    DataflowVar,
    DataTypeImm,
    Expr,
    ExternFunc,
    Function,
    GlobalVar,
    If,
    MatchCast,
    Op,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from weft.ir.module import BaseFunc
from weft.ir.node import EMPTY
from weft.ir.op import OPS
from weft.ir.structure.structural import structural_equal
from weft.ir.tensor import (
    PrimExpr,
)
from weft.ir.types import FuncType, PrimType, ShapeType, TensorType, TupleType, Type
from weft.script.forms.constants import constant_parts
from weft.script.forms.holes import string_text
from weft.script.forms.syntax import (
    ALL_FORMS,
    VALUES,
)
from weft.script.printer.base import RESERVED, BasePrinter, Ready

__all__ = ["GraphPrinter", "body_symbols", "signature_symbols", "type_symbols"]


class GraphPrinter(BasePrinter):
    """Prints graph-level nodes."""

    functions: Mapping[str, BaseFunc | FuncType] = EMPTY  # what deduction may look up
    context: TypeContext | None = None  # of the function being printed

    def graph_function(self, written: str, name: str, function: Function) -> None:
        """`@R.function def ...`."""
        self.decorator("R.function", {
            "pure": (function.pure, True), "private": (function.private, False),
            "name": (name, name if self.foreign else written),
        })  # fmt: skip
        before, self.quoted = self.quoted, True
        params = ", ".join(f"{self.name(param)}: {self.show_type(param.ty)}" for param in function.params)
        result = self.result_text(function)
        self.quoted = before
        for param in function.params:
            self.symbols |= type_symbols(param.ty)
        self.line(f"def {written}({params}){result}:")
        outer = self.indent
        self.indent += "    "
        if function.attrs:
            self.line(self.form_text(ALL_FORMS["R.func_attr"], {"attrs": function.attrs}))
        if len(outer) == 4:
            self.module_alias(function)
        with self._deduction():
            self.blocks(function.body.blocks)
        self.line(f"return {self.leaf(function.body.body)}")
        self.indent = outer

    @contextmanager
    def _deduction(self) -> Iterator[None]:
        """A function or a branch, in which types are deduced along."""
        before, self.context = self.context, self.context or TypeContext(self.functions)
        try:
            with self.context.scope():
                yield
        finally:
            self.context = before

    def result_text(self, function: Function) -> str:
        """What a signature says of its result."""
        return f" -> {self.show_type(function.ret_type)}" if function.ret_type is not None else ""

    def blocks(self, blocks: Sequence[BindingBlock]) -> None:
        """Binding blocks; two plain ones in a row are kept apart by a scope."""
        plain_before = False
        for block in blocks:
            if isinstance(block, DataflowBlock):
                self._dataflow(block)
                plain_before = False
            elif plain_before or not block.bindings:
                self.block_of(
                    "with R.bindings():",
                    lambda block=block: self._bindings(block.bindings),
                    empty=not block.bindings,
                )
                plain_before = False
            else:
                self._bindings(block.bindings)
                plain_before = True

    def _dataflow(self, block: DataflowBlock) -> None:
        def body() -> None:
            self._bindings(block.bindings)
            outputs = [binding.var for binding in block.bindings if not isinstance(binding.var, DataflowVar)]
            self.line(f"R.output({', '.join(map(self.name, outputs))})")

        self.block_of("with R.dataflow():", body)

    def _bindings(self, bindings: Sequence[VarBinding | MatchCast]) -> None:
        for binding in bindings:
            self.binding(binding)

    def binding(self, binding: VarBinding | MatchCast) -> None:
        """One binding as one statement (an if as several)."""
        var, value = binding.var, binding.value
        if isinstance(binding, MatchCast):
            source = self.leaf(value)
            if self.foreign:
                self.declare_symbols(binding.ty)
            ty = self.type_value(binding.ty)
            same = var.ty is binding.ty or var.ty is None or structural_equal(var.ty, binding.ty)
            self.symbols |= type_symbols(binding.ty, functions=self.foreign)
            annotation = "" if same else f": {self.show_type(var.ty)}"
            self.line(f"{self.name(var)}{annotation} = R.match_cast({source}, {ty})")
            self._learn(binding)
            return
        if isinstance(value, If):
            self._if(var, value)
            return
        if isinstance(value, Function):
            self.graph_function(self.name(var), self.names[var], value)
            return
        text = self.value(value)
        annotate = self._needs_type(var, value)
        if var.name == "_" and self._is_silent(var, value):
            self.silent[var] = len(self.lines)
            self.line(text)
            return
        self.line(f"{self._target(var, annotate)} = {text}")

    def _learn(self, cast: MatchCast) -> None:
        """What holds after a cast."""
        if self.annotate or self.context is None:
            return
        try:
            self.context.learn(cast.ty, infer_type(cast.value, self.context))
        except WeftError:  # a value without a type tells nothing
            return

    def _needs_type(self, var: Var, value: Expr) -> bool:
        """Whether the text says the type of a binding: all do, or those whose value alone would give another."""
        if self.annotate or self.context is None:
            return self.annotate
        if var.ty is None or _names_known(value):
            return True
        try:
            found = infer_type(value, self.context)
        except WeftError:
            return True
        # Equal up to the names of symbols, and of the same symbols: later types speak of them by name.
        return not (structural_equal(found, var.ty) and is_base_of(found, var.ty))

    def declare_symbols(self, ty: Type) -> None:
        """Declare the new symbols of a type, which other readers want before they are used."""
        for name in sorted(type_symbols(ty) - self.symbols):
            self.line(f"{name} = T.int64()")
            self.symbols = self.symbols | {name}

    def _target(self, var: Var, annotate: bool) -> str:
        """The variable, with its annotation where it has one."""
        if var.ty is None:
            return self.name(var)
        annotation = self.show_type(var.ty) if annotate else ""
        self.symbols |= type_symbols(var.ty, functions=self.foreign)
        if not annotation:
            return self.name(var)
        return f"{self.name(var)}: {annotation}"

    @staticmethod
    def _is_silent(var: Var, value: Expr) -> bool:
        """Whether the binding is written as a bare statement, until something names its variable."""
        if not isinstance(var.ty, TupleType) or var.ty.fields or not isinstance(value, Call):
            return False
        if isinstance(value.op, ExternFunc):
            return bool(value.attrs.get("dps"))
        return isinstance(value.op, (Op, GlobalVar))

    def _if(self, var: Var, value: If) -> None:
        condition = self.leaf(value.cond)
        target = self._target(var, self._needs_type(var, value))
        known = set(self.symbols)
        for head, branch in ((f"if {condition}:", value.then_branch), ("else:", value.else_branch)):
            with self._deduction():
                self.block_of(head, lambda branch=branch: self._branch(branch, target))
            self.symbols = set(known)

    def _branch(self, branch: SeqExpr, target: str) -> None:
        self.blocks(branch.blocks)
        self.line(f"{target} = {self._branch_result(branch.body)}")

    def _branch_result(self, body: Expr) -> str:
        """The result of a branch: a leaf that reads back as itself."""
        if isinstance(body, PrimValue):
            return self._prim_value(body)
        return self.leaf(body)

    def value(self, value: Expr) -> str:
        """What stands on the right of a binding."""
        if isinstance(value, Call):
            return self.call(value)
        if isinstance(value, TupleGetItem):
            return f"{self.leaf(value.value)}[{value.index}]"
        return self.leaf(value)

    def leaf(self, value: Expr) -> str:
        """A leaf (or, in a module that is not in normal form, any expression)."""
        if isinstance(value, Var):
            return self.name(value)
        method = self._LEAVES.get(type(value))
        if method is not None:
            return method(self, value)
        if isinstance(value, (Call, TupleGetItem)):
            return self.value(value)
        if isinstance(value, PrimExpr):
            return self.join([(value, 0)])
        return repr(value)

    def _constant(self, value: Constant) -> str:
        parts = constant_parts(value, self.blobs)
        parts["data"] = Ready(parts["data"])
        return self.join(self.fill(VALUES["R.const"], {**parts, "dtype": value.dtype}))

    def global_name(self, value: GlobalVar) -> str:
        """A function of the module."""
        plain = value.name.isidentifier() and not keyword.iskeyword(value.name)
        return f"cls.{value.name}" if plain else f"cls[{string_text(value.name)}]"

    def _tuple(self, value: Tuple) -> str:
        if not value.fields:
            return "R.tuple()"
        inner = ", ".join(map(self.leaf, value.fields))
        return f"({inner},)" if len(value.fields) == 1 else f"({inner})"

    def _prim_value(self, value: PrimValue) -> str:
        return f"R.prim_value({self._scalar(value)})"

    def _scalar(self, value: PrimValue) -> str:
        """A scalar as a number, typed when its dtype is not the usual one."""
        usual = PrimValue(value.value).dtype
        number = value.value
        text = self.show_dim(number) if isinstance(number, DimExpr) else self.show_literal(number)
        if usual == value.dtype:
            return text
        if isinstance(number, DimExpr):
            return f'{text}, "{value.dtype}"'
        return f"T.{value.dtype}({text})"

    def _extern(self, value: ExternFunc) -> str:
        return self.join(self.fill(VALUES["R.ExternFunc"], {"name": value.name, "ty": value.ty}))

    def call(self, call: Call) -> str:
        """A call."""
        op = call.op
        if isinstance(op, Op):
            definition = OPS.get(op.name)
            if definition is not None and self._declared(definition, call):
                return self._operator(op.name, definition, call)
            return self.join(self.fill(VALUES["R.call_op"], {
                "name": op.name, "args": call.args, "attrs": dict(call.attrs), "ty_args": call.ty_args,
            }))  # fmt: skip
        if isinstance(op, ExternFunc):
            return self.join(self.fill(VALUES["R.call_packed"], {
                "func": op, "args": call.args, "attrs": dict(call.attrs), "ty_args": call.ty_args,
            }))  # fmt: skip
        parts = [self.leaf(argument) for argument in call.args]
        if call.attrs:
            parts.append(f"attrs={self.show_literal(call.attrs)}")
        if call.ty_args:
            parts.append(f"{self.spelled('ty_args')}={self.show_types(call.ty_args)}")
        return f"{self.leaf(op)}({', '.join(parts)})"

    @staticmethod
    def _declared(definition: Any, call: Call) -> bool:
        """Whether the declaration covers everything the call holds."""
        names = {param.name for param in definition.params if param.kind in ("attr", "dtype")}
        label = call.attrs.get("target", "")
        if any(key not in names and key not in ("absent", "target") for key in call.attrs):
            return False
        if "target" not in names and not (isinstance(label, str) and (not label or label.isidentifier())):
            return False
        typed = any(param.kind == "types" for param in definition.params)
        return len(call.ty_args) <= (1 if typed else 0)

    def _operator(self, name: str, definition: Any, call: Call) -> str:
        """A call as the operator's declaration says it is called."""
        parts: list[str] = []
        expected = iter(definition.params)
        in_order = True
        for param, value in definition.unbind(call):
            if in_order:
                in_order = next(expected, None) is param and param.kind not in ("attr", "dtype", "types")
            if param.kind == "variadic":
                parts.extend(map(self.leaf, value))
                in_order = False
                continue
            text = self._argument(param, value)
            parts.append(text if in_order else f"{self.spelled(param.name)}={text}")
        if "target" in call.attrs and all(param.name != "target" for param in definition.params):
            parts.append(f"target={string_text(call.attrs['target'])}")  # the label of the call site
        return f"R.{name}({', '.join(parts)})"

    def _argument(self, param: Any, value: Any) -> str:
        """An argument of an operator by the kind of its parameter."""
        kind = param.kind
        if kind == "shape" and isinstance(value, ShapeExpr):
            return self._known_shape(value)
        if kind == "prim" and isinstance(value, PrimValue):
            usual = PrimValue(value.value).dtype == value.dtype
            return self._scalar(value) if usual else self._prim_value(value)
        if kind == "callee":
            return self.show_callee(value)
        if kind == "types":
            return self._type_argument(value)
        if param.of == "placement":
            return self.show_placement(value)
        if param.of == "mesh":
            return self.show_mesh(value)
        if kind in ("attr", "dtype"):
            return self.show_literal(value)
        return self.leaf(value)

    def _known_shape(self, value: ShapeExpr) -> str:
        if all(
            isinstance(dim, int) or all(name in self.symbols and name not in RESERVED for name in free_symbols(dim))
            for dim in value.dims
        ):
            return self.show_shape(value.dims)
        return self.leaf(value)

    def _type_argument(self, value: Any) -> str:
        if isinstance(value, TupleType) and len(value.fields) > 1:
            return f"[{', '.join(map(self.type_value, value.fields))}]"
        if isinstance(value, (tuple, list)):
            return f"[{', '.join(map(self.type_value, value))}]"
        return self.type_value(value)

    _LEAVES: ClassVar[dict[type, Callable[[Any, Any], str]]] = {
        Constant: _constant, GlobalVar: global_name, Tuple: _tuple, PrimValue: _prim_value, ExternFunc: _extern,
        ShapeExpr: lambda self, value: f"R.shape({self.show_dims(value.dims)})",
        StringImm: lambda self, value: f"R.str({string_text(value.value)})",
        DataTypeImm: lambda self, value: f'R.dtype("{value.value}")',
        Op: lambda self, value: f"R.{value.name}",
    }  # fmt: skip


def _names_known(value: Expr) -> bool:
    """Whether a value is known while reading, so that only an annotation makes its name a variable."""
    if isinstance(value, Tuple):
        return bool(value.fields) and all(map(_names_known, value.fields))
    return isinstance(value, (ExternFunc, GlobalVar))


def type_symbols(ty: Type | None, *, functions: bool = True) -> set[str]:
    """Every symbol of a type, with those that function types in it have for themselves, or without."""
    found: set[str] = set()
    stack: list[Any] = [ty]
    while stack:
        current = stack.pop()
        if isinstance(current, DTensorType):
            current = current.tensor
        if isinstance(current, TensorType):
            dims: Any = current.shape if isinstance(current.shape, tuple) else ()
        elif isinstance(current, (ShapeType, PrimType)):
            dims = current.dims or ()
        else:
            if isinstance(current, TupleType):
                stack.extend(current.fields)
            elif isinstance(current, FuncType) and functions:
                stack.extend((*(current.params or ()), current.ret))
            continue
        for dim in dims:
            if not isinstance(dim, int):
                found.update(free_symbols(dim))
    return found


def signature_symbols(function: Function) -> set[str]:
    """Every symbol of a signature."""
    found = type_symbols(function.ret_type)
    for param in function.params:
        found |= type_symbols(param.ty)
    return found


def body_symbols(function: Function) -> set[str]:
    """Symbols that bindings of the body mention, nested functions and branches included."""
    found: set[str] = set()
    for binding in _all_bindings(function.body):
        ty = binding.var.ty
        if type(ty) is TensorType and isinstance(ty.shape, tuple):
            for dim in ty.shape:
                if not isinstance(dim, int):
                    found.update(free_symbols(dim))
        elif ty is not None:
            found |= type_symbols(ty)
        if isinstance(binding, MatchCast):
            found |= type_symbols(binding.ty)
        elif isinstance(binding.value, Function):
            found |= signature_symbols(binding.value)
    return found


def _all_bindings(root: SeqExpr) -> Iterator[VarBinding | MatchCast]:
    stack: list[SeqExpr] = [root]
    while stack:
        for block in stack.pop().blocks:
            for binding in block.bindings:
                yield binding
                value = binding.value
                if isinstance(value, If):
                    stack.extend((value.then_branch, value.else_branch))
                elif isinstance(value, Function):
                    stack.append(value.body)
