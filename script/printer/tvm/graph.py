"""Graph functions in text for TVM."""

from __future__ import annotations

from weft.ir.deduction.device_mesh import DTensorType
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import free_symbols
from weft.ir.graph import DataflowBlock, Function, MatchCast, Var, VarBinding
from weft.ir.node import Node
from weft.ir.tensor import PrimFunc
from weft.ir.types import StringType, TupleType, Type
from weft.script.printer.graph import (
    declare_symbols,
    share_sizes,
    show_parameter_type,
    show_result,
    show_target,
    size_name,
    type_symbols,
    write_alias,
    write_binding,
    write_dataflow,
    write_graph_function,
)
from weft.script.printer.tvm.style import TVM, TvmPrinter

__all__ = []


@TVM(write_graph_function)
def _graph_function(printer: TvmPrinter, written: str, name: str, function: Function) -> None:
    """`@R.function def ...`."""
    before, order = printer.place, printer.order
    printer.place, printer.order = f"the function '{name}'", {**order}
    for param in function.params:
        _number_symbols(printer, param.ty)
    write_graph_function.plain(printer, written, name, function)
    printer.place, printer.order = before, order


@TVM(share_sizes)
def _share_sizes(printer: TvmPrinter, function: Function) -> None:
    """Scalars that are sizes are named as those; a size that is named before has no such scalar."""
    if printer.older:
        return
    named: set[str] = set(printer.symbols)
    for param in function.params:
        name = size_name(param.ty)
        if name is not None and name not in named:
            printer.names[param] = name
        named |= type_symbols(param.ty)


@TVM(show_parameter_type)
def _parameter_type(printer: TvmPrinter, param: Var) -> str:
    name = size_name(param.ty)
    shared = not printer.older and name is not None and printer.names.get(param) == name
    return "T.int64" if shared else show_parameter_type.plain(printer, param)


def _number_symbols(printer: TvmPrinter, ty: Type | None) -> None:
    """Number the symbols of a type after those that are known."""
    if isinstance(ty, TupleType):
        for part in ty.fields:
            _number_symbols(printer, part)
    elif ty is not None:
        for dim in dims_of(ty) or ():
            for symbol in free_symbols(dim):
                printer.order.setdefault(symbol, len(printer.order))


@TVM(show_result)
def _result_text(printer: TvmPrinter, function: Function) -> str:
    """What a signature says of its result; strings have no type there."""
    unsaid = _mentions_strings(function.ret_type) or _mentions_no_place(function.ret_type)
    return "" if unsaid else show_result.plain(printer, function)


@TVM(write_binding)
def _binding(printer: TvmPrinter, binding: VarBinding | MatchCast) -> None:
    """One binding as one statement (an if as several)."""
    before, printer.place = printer.place, f"the binding of '{binding.var.name}'"
    write_binding.plain(printer, binding)
    printer.place = before


@TVM(write_dataflow)
def _dataflow(printer: TvmPrinter, block: DataflowBlock) -> None:
    # Names of a `with` end with it, but symbols hold for the rest of the function: they are declared before.
    for binding in block.bindings:
        if isinstance(binding, MatchCast):
            declare_symbols(printer, binding.ty)
            _number_symbols(printer, binding.ty)
    write_dataflow.plain(printer, block)


@TVM(show_target)
def _target(printer: TvmPrinter, var: Var, annotate: bool) -> str:
    """The variable with its annotation, where that has a form."""
    if _mentions_strings(var.ty) or _mentions_no_place(var.ty):  # what has no form in annotations is deduced
        return printer.name(var)
    unknown = type_symbols(var.ty) - printer.symbols
    if unknown:
        raise printer.refuse(
            f"the size '{min(unknown)}', which comes from the data",
            var,
            hint="name it with R.match_cast before",
        )
    return show_target.plain(printer, var, annotate)


@TVM(write_alias)
def _module_alias(printer: TvmPrinter, function: Node) -> None:
    """Say what `cls` is, in graph functions: in others names of the class are plain values."""
    if not isinstance(function, PrimFunc):
        write_alias.plain(printer, function)


def _mentions_strings(ty: Type | None) -> bool:
    """Whether a type is or holds that of strings."""
    if isinstance(ty, TupleType):
        return any(map(_mentions_strings, ty.fields))
    return isinstance(ty, StringType)


def _mentions_no_place(ty: Type | None) -> bool:
    """Whether a type is or holds that of a spread tensor whose place is not said."""
    if isinstance(ty, TupleType):
        return any(map(_mentions_no_place, ty.fields))
    return isinstance(ty, DTensorType) and (ty.mesh is None or ty.placement is None)
