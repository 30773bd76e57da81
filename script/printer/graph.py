"""Showing graph functions: bindings, blocks, branches.

Without annotations (types="hidden") the types of bindings are deduced along, as a reader does it: a binding whose type
is another one keeps its annotation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from weft.errors import WeftError
from weft.ir.attrs import DPS
from weft.ir.deduction.device_mesh import DTensorType
from weft.ir.deduction.infer import TypeContext, infer_type
from weft.ir.deduction.subtyping import is_base_of
from weft.ir.dim import DimExpr, free_symbols
from weft.ir.graph import (
    BindingBlock,
    Call,
    DataflowBlock,
    DataflowVar,
    Expr,
    ExternFunc,
    Function,
    GlobalVar,
    If,
    MatchCast,
    Op,
    PrimValue,
    SeqExpr,
    Tuple,
    Var,
    VarBinding,
)
from weft.ir.node import Node
from weft.ir.structure.structural import structural_equal
from weft.ir.structure.visit import walk
from weft.ir.types import FuncType, PrimType, ShapeType, TensorType, TupleType, Type
from weft.script.forms.syntax import ALL_FORMS
from weft.script.printer.forms import show_form
from weft.script.printer.literals import write_decorator
from weft.script.printer.state import Printer, varies
from weft.script.printer.types import show_type, show_type_value
from weft.script.printer.values import show_leaf, show_prim_value, show_value

__all__ = [
    "body_symbols",
    "declare_symbols",
    "show_result",
    "show_target",
    "signature_symbols",
    "type_symbols",
    "write_alias",
    "write_binding",
    "write_blocks",
    "write_dataflow",
    "write_graph_function",
    "write_if",
]


@varies
def write_graph_function(printer: Printer, written: str, name: str, function: Function) -> None:
    """`@R.function def ...`."""
    write_decorator(
        printer,
        "R.function",
        {
            "pure": (function.pure, True),
            "private": (function.private, False),
            "name": (name, name if printer.foreign else written),
        },
    )
    before, printer.quoted = printer.quoted, True
    share_sizes(printer, function)
    params = ", ".join(f"{printer.name(param)}: {show_parameter_type(printer, param)}" for param in function.params)
    result = show_result(printer, function)
    printer.quoted = before
    for param in function.params:
        printer.symbols |= type_symbols(param.ty)
    printer.line(f"def {written}({params}){result}:")
    outer = printer.indent
    printer.indent += "    "
    if function.attrs:
        printer.line(show_form(printer, ALL_FORMS["R.func_attr"], {"attrs": function.attrs}))
    if len(outer) == 4:
        write_alias(printer, function)
    with _deduction(printer):
        write_blocks(printer, function.body.blocks)
    printer.line(f"return {show_leaf(printer, function.body.body)}")
    printer.indent = outer


@varies
def share_sizes(printer: Printer, function: Function) -> None:
    """Have parameters that are sizes of their own name share it with the symbol."""
    for param in function.params:
        name = size_name(param.ty)
        if name is not None and name == param.name and name not in printer.symbols | set(printer.names.values()):
            printer.names[param] = name
            printer.shared.add(name)


def size_name(ty: Type | None) -> str | None:
    """The symbol that a scalar type says its value to be."""
    dim = ty.dims[0] if isinstance(ty, PrimType) and ty.dims is not None else None
    return str(dim) if isinstance(dim, DimExpr) and free_symbols(dim) == (str(dim),) else None


@varies
def show_parameter_type(printer: Printer, param: Var) -> str:
    """The type of a parameter."""
    return show_type(printer, param.ty)


@contextmanager
def _deduction(printer: Printer) -> Iterator[None]:
    """A function or a branch, in which types are deduced along."""
    before, printer.context = printer.context, printer.context or TypeContext(printer.functions)
    try:
        with printer.context.scope():
            yield
    finally:
        printer.context = before


@varies
def show_result(printer: Printer, function: Function) -> str:
    """What a signature says of its result."""
    return f" -> {show_type(printer, function.ret_type)}" if function.ret_type is not None else ""


def write_blocks(printer: Printer, blocks: Sequence[BindingBlock]) -> None:
    """Binding blocks; two plain ones in a row are kept apart by a scope."""
    plain_before = False
    for block in blocks:
        if isinstance(block, DataflowBlock):
            write_dataflow(printer, block)
            plain_before = False
        elif plain_before or not block.bindings:
            printer.block_of(
                "with R.bindings():",
                lambda block=block: _bindings(printer, block.bindings),
                empty=not block.bindings,
            )
            plain_before = False
        else:
            _bindings(printer, block.bindings)
            plain_before = True


@varies
def write_dataflow(printer: Printer, block: DataflowBlock) -> None:
    """`with R.dataflow():`."""

    def body() -> None:
        _bindings(printer, block.bindings)
        outputs = [binding.var for binding in block.bindings if not isinstance(binding.var, DataflowVar)]
        printer.line(f"R.output({', '.join(map(printer.name, outputs))})")

    printer.block_of("with R.dataflow():", body)


def _bindings(printer: Printer, bindings: Sequence[VarBinding | MatchCast]) -> None:
    for binding in bindings:
        write_binding(printer, binding)


@varies
def write_binding(printer: Printer, binding: VarBinding | MatchCast) -> None:
    """One binding as one statement (an if as several)."""
    var, value = binding.var, binding.value
    if isinstance(binding, MatchCast):
        source = show_leaf(printer, value)
        if printer.foreign:
            declare_symbols(printer, binding.ty)
        ty = show_type_value(printer, binding.ty)
        same = var.ty is binding.ty or var.ty is None or structural_equal(var.ty, binding.ty)
        printer.symbols |= type_symbols(binding.ty, functions=printer.foreign)
        annotation = "" if same else f": {show_type(printer, var.ty)}"
        printer.line(f"{printer.name(var)}{annotation} = R.match_cast({source}, {ty})")
        _learn(printer, binding)
        return
    if isinstance(value, If):
        write_if(printer, var, value)
        return
    if isinstance(value, Function):
        write_graph_function(printer, printer.name(var), printer.names[var], value)
        return
    text = show_value(printer, value)
    annotate = _needs_type(printer, var, value)
    if var.name == "_" and _is_silent(var, value):
        place = len(printer.lines)
        printer.silent[var] = lambda name: _bind_line(printer, place, var, name)
        printer.line(text)
        return
    printer.line(f"{show_target(printer, var, annotate)} = {text}")


def _learn(printer: Printer, cast: MatchCast) -> None:
    """What holds after a cast."""
    if printer.annotate or printer.context is None:
        return
    try:
        printer.context.learn(cast.ty, infer_type(cast.value, printer.context))
    except WeftError:  # a value without a type tells nothing
        return


def _needs_type(printer: Printer, var: Var, value: Expr) -> bool:
    """Whether the text says the type of a binding: all do, or those whose value alone would give another."""
    if printer.annotate or printer.context is None:
        return printer.annotate
    if var.ty is None or _names_known(value):
        return True
    try:
        found = infer_type(value, printer.context)
    except WeftError:
        return True
    # Equal up to the names of symbols, and of the same symbols: later types speak of them by name.
    return not (structural_equal(found, var.ty) and is_base_of(found, var.ty))


def declare_symbols(printer: Printer, ty: Type) -> None:
    """Declare the new symbols of a type, which other readers want before they are used."""
    for name in sorted(type_symbols(ty) - printer.symbols):
        printer.line(f"{name} = T.int64()")
        printer.symbols = printer.symbols | {name}


@varies
def show_target(printer: Printer, var: Var, annotate: bool) -> str:
    """The variable, with its annotation where it has one."""
    if var.ty is None:
        return printer.name(var)
    annotation = show_type(printer, var.ty) if annotate else ""
    printer.symbols |= type_symbols(var.ty, functions=printer.foreign)
    if not annotation:
        return printer.name(var)
    return f"{printer.name(var)}: {annotation}"


def _bind_line(printer: Printer, place: int, var: Var, name: str) -> None:
    """Give a statement the variable that is named after all."""
    text = printer.lines[place]
    body = text.lstrip(" ")
    printer.lines[place] = f"{text[: len(text) - len(body)]}{name}: {show_type(printer, var.ty)} = {body}"


def _is_silent(var: Var, value: Expr) -> bool:
    """Whether the binding is written as a bare statement, until something names its variable."""
    if not isinstance(var.ty, TupleType) or var.ty.fields or not isinstance(value, Call):
        return False
    if isinstance(value.op, ExternFunc):
        return bool(value.attrs.get(DPS))
    return isinstance(value.op, (Op, GlobalVar))


def write_if(printer: Printer, var: Var, value: If) -> None:
    """`if`, whose branches end by binding one name."""
    condition = show_leaf(printer, value.cond)
    target = show_target(printer, var, _needs_type(printer, var, value))
    known = set(printer.symbols)
    for head, branch in ((f"if {condition}:", value.then_branch), ("else:", value.else_branch)):
        with _deduction(printer):
            printer.block_of(head, lambda branch=branch: _branch(printer, branch, target))
        printer.symbols = set(known)


def _branch(printer: Printer, branch: SeqExpr, target: str) -> None:
    write_blocks(printer, branch.blocks)
    printer.line(f"{target} = {_branch_result(printer, branch.body)}")


def _branch_result(printer: Printer, body: Expr) -> str:
    """The result of a branch: a leaf that reads back as itself."""
    if isinstance(body, PrimValue):
        return show_prim_value(printer, body)
    return show_leaf(printer, body)


@varies
def write_alias(printer: Printer, function: Node) -> None:
    """Say what `cls` is where other readers need that, and the function names others."""
    if printer.foreign and printer.module_class and any(isinstance(item, GlobalVar) for item in walk(function)):
        printer.line(f"cls = {printer.module_class}")


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
