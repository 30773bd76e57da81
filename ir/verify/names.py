"""Checks of names in graph functions: variables, dataflow variables, parameters, symbols, function references."""

# A variable of a function that is not typed yet has no type.
# pyright: reportUnnecessaryComparison=false

from __future__ import annotations

from collections.abc import Iterator, Mapping

from weft.errors import Span, WeftError
from weft.ir.deduction.subtyping import dims_of, type_symbols
from weft.ir.dim import DimExpr, determined, free_symbols
from weft.ir.graph import (
    Call,
    DataflowVar,
    Expr,
    Function,
    GlobalVar,
    If,
    MatchCast,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    Var,
)
from weft.ir.module import BaseFunc
from weft.ir.node import FrozenMap, Node
from weft.ir.structure.visit import children
from weft.ir.types import TensorType, TupleType, Type
from weft.ir.verify.findings import Report
from weft.ir.verify.sites import Site, sites_of
from weft.ir.verify.values import Deduction
from weft.support.guards import is_listing

__all__ = ["check_names", "check_shared_parameters"]

_ALONE = "a dimension that is the symbol alone gives it a value"


def check_shared_parameters(functions: Mapping[str, BaseFunc], report: Report) -> None:
    """W404: no variable is a parameter of two functions of the module."""
    owner: dict[Var, str] = {}
    for name, function in functions.items():
        if isinstance(function, Function):
            report.function = name
            for param in function.params:
                if param in owner:
                    report.add("W404", f"{param.name!r} is a parameter of {owner[param]} too", param.span)
                owner.setdefault(param, name)


def check_names(function: Function, deduction: Deduction, report: Report) -> None:
    """W401-W403, W405-W408 for a function and those nested in it."""
    _Names(deduction, report).run(function)


class _Names:
    def __init__(self, deduction: Deduction, report: Report) -> None:
        self.deduction = deduction
        self.functions = deduction.context.functions
        self.report = report
        self.visible: set[Var] = set()
        self.defined: set[Var] = set()
        self.symbols: set[str] = set()
        self.saved: list[tuple[list[Var], list[str]]] = []
        self.block_vars: list[Var] = []
        self.left: set[Var] = set()

    def run(self, function: Function) -> None:
        for site in sites_of(function):
            self.report.path = site.binding.var.name if site.binding is not None else ""
            getattr(self, f"_{site.event}")(site)
        self.report.path = ""

    # Regions

    def _enter(self, site: Site) -> None:
        region = site.region
        if region.var is not None:  # a local function may call itself
            self._define(region.var)
        self.saved.append(([], []))
        if region.is_body:
            for param in region.function.params:
                if isinstance(param, DataflowVar):
                    self.report.add("W405", f"the parameter {param.name!r} is a dataflow variable", param.span)
                self._define(param)
            self._parameter_symbols(region.function)

    def _leave(self, site: Site) -> None:
        if site.region.is_body:
            self._type_symbols(site.region.function.ret_type, site.region.function.span, "the declared result")
        variables, symbols = self.saved.pop()
        self.visible.difference_update(variables)
        self.symbols.difference_update(symbols)

    def _parameter_symbols(self, function: Function) -> None:
        """Dimensions define what they determine; others only use."""
        types = [param.ty for param in function.params if param.ty is not None]
        for name in sorted(determined([dim for ty in types for dim in _dims(ty)])):
            self._define_symbol(name)
        for param in function.params:
            if param.ty is not None:
                self._type_symbols(param.ty, param.span, f"parameter {param.name}", _ALONE)

    # Blocks

    def _open(self, site: Site) -> None:
        self.block_vars = []

    def _close(self, site: Site) -> None:
        if site.dataflow:
            hidden = [var for var in self.block_vars if isinstance(var, DataflowVar)]
            self.visible.difference_update(hidden)
            self.left.update(hidden)
        self.block_vars = []

    # Bindings and results

    def _value(self, site: Site) -> None:
        binding = site.binding
        if isinstance(binding, MatchCast):
            self._uses(site.value)
            for name in sorted(determined([*_dims(binding.ty)], self.symbols)):
                self._define_symbol(name)
            self._type_symbols(binding.ty, binding.span, "the type of a match_cast", _ALONE)
            self._shape_variables(binding.ty, binding.span)
        elif isinstance(site.value, Function) and binding is not None:
            pass  # its inside has its own region; the variable is visible there, so that it may call itself
        else:
            self._uses(site.value)
            if isinstance(site.value, Call):
                self._result_symbols(site.value)
        if binding is None:
            return
        var = binding.var
        if isinstance(var, DataflowVar) and not site.dataflow:
            self.report.add(
                "W405",
                f"the dataflow variable {var.name!r} is defined outside a dataflow block",
                var.span or binding.span,
            )
        self._define(var, recursive=isinstance(site.value, Function))
        self.block_vars.append(var)
        if var.ty is not None and not isinstance(binding, MatchCast):
            self._shape_variables(var.ty, var.span)

    def _define(self, var: Var, recursive: bool = False) -> None:
        if var in self.defined and not (recursive and var in self.visible):
            self.report.add("W402", f"variable {var.name!r} is defined twice", var.span)
        self.defined.add(var)
        if var not in self.visible:
            self.visible.add(var)
            self.saved[-1][0].append(var)

    def _define_symbol(self, name: str) -> None:
        if name not in self.symbols:
            self.symbols.add(name)
            self.saved[-1][1].append(name)

    def _result_symbols(self, call: Call) -> None:
        """A size that only the values decide comes with a symbol of its own, which the result defines."""
        stated = {name for ty in call.ty_args for name in type_symbols(ty)}
        found = self.deduction.of(call)
        if not isinstance(found, WeftError):  # an error is reported by the check of types
            for name in type_symbols(found) - stated:
                self._define_symbol(name)

    # Uses

    def _uses(self, value: Expr) -> None:
        stack: list[Node] = [value]
        while stack:
            current = stack.pop()
            if isinstance(current, Var):
                self._use(current)
            elif isinstance(current, GlobalVar):
                if self.deduction.closed and current.name not in self.functions:
                    known = ", ".join(self.functions) or "none"
                    self.report.add(
                        "W408",
                        f"the module has no function {current.name!r}",
                        current.span or value.span,
                        hint=f"it has: {known}",
                    )
            elif isinstance(current, ShapeExpr):
                self._dims(current.dims, current.span or value.span, "a shape")
            elif isinstance(current, PrimValue) and isinstance(current.value, DimExpr):
                self._dims((current.value,), current.span or value.span, "a scalar")
            elif isinstance(current, If):
                stack.append(current.cond)
            elif isinstance(current, Call):
                stack.extend((current.op, *current.args))
                self._dims(tuple(_dims_in(current.attrs)), current.span, "an attribute")
                for ty in current.ty_args:
                    self._type_symbols(ty, current.span, "a stated type")
                    self._shape_variables(ty, current.span)
            elif not isinstance(current, (Function, SeqExpr)):
                stack.extend(child for child in children(current, types=False) if isinstance(child, Expr))

    def _use(self, var: Var) -> None:
        if var in self.visible:
            return
        if var in self.left:
            self.report.add(
                "W403",
                f"dataflow variable {var.name!r} is used outside its block",
                var.span,
                hint="name it in R.output(...)",
                key=var,
            )
        else:
            known = "is not visible here" if var in self.defined else "is used before it is defined"
            self.report.add("W401", f"variable {var.name!r} {known}", var.span, key=var)

    def _dims(self, dims: tuple[object, ...], span: Span | None, what: str, hint: str | None = None) -> None:
        for dim in dims:
            for name in free_symbols(dim) if isinstance(dim, DimExpr) else ():
                if name not in self.symbols:
                    self.report.add("W406", f"the symbol {name} in {what} has no value here", span, hint=hint)

    def _type_symbols(self, ty: Type | None, span: Span | None, what: str, hint: str | None = None) -> None:
        if ty is not None:
            self._dims(tuple(_dims(ty)), span, what, hint)

    def _shape_variables(self, ty: Type, span: Span | None) -> None:
        for part in _parts(ty):
            if isinstance(part, TensorType) and isinstance(part.shape, Var):
                if isinstance(part.shape, DataflowVar):
                    self.report.add("W407", f"the dataflow variable {part.shape.name!r} occurs in a type", span)
                self._use(part.shape)


def _parts(ty: Type) -> Iterator[Type]:
    stack = [ty]
    while stack:
        current = stack.pop()
        yield current
        if isinstance(current, TupleType):
            stack.extend(current.fields)
        # The symbols of a function type are its own, so it is not entered.


def _dims(ty: Type) -> Iterator[DimExpr]:
    for part in _parts(ty):
        if isinstance(part, TensorType) and isinstance(part.shape, Var):
            continue
        yield from (dim for dim in dims_of(part) or () if isinstance(dim, DimExpr))


def _dims_in(value: object) -> Iterator[DimExpr]:
    if isinstance(value, DimExpr):
        yield value
    elif is_listing(value):
        for item in value:
            yield from _dims_in(item)
    elif isinstance(value, FrozenMap):
        for item in value.values():
            yield from _dims_in(item)
