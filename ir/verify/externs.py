"""The refusal of foreign code that nobody declared: C functions and LLVM intrinsics that a program calls by name.

A text reaches foreign code only by names that were declared beside it: the mathematics of C, what a plug-in or a kind
of target declares (`weft.ir.kernel.externs`), a registered function, an artifact of the module, or a name that the
caller gives (`weft.compile(..., externs=("name",))`). Declared types are held: a C function called with others would
read what is not there.

Errors: TargetError W760 a name that nobody declared, W761 a declared one with other types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from weft.errors import Span, TargetError
from weft.ir.graph import Expr, ExternFunc, StringImm
from weft.ir.kernel.externs import Extern, find_extern, is_math_intrinsic
from weft.ir.module import BaseFunc
from weft.ir.structure.visit import nodes_of, walk
from weft.ir.tensor import PrimCall, PrimExpr, PrimFunc

__all__ = ["refuse_undeclared_kernels", "refuse_undeclared_symbols", "undeclared"]

_EXTERN = ("call_extern", "call_pure_extern")
_INTRINSIC = ("call_llvm_intrin", "call_llvm_pure_intrin")


def refuse_undeclared_kernels(
    functions: Iterable[BaseFunc], declared: Mapping[str, Extern], known: Callable[[str], bool]
) -> None:
    """Refuse kernels that call C functions or LLVM intrinsics by undeclared names, or declared ones with other types.

    `declared` are the externs of the target's kinds, `known(name)` is true for what needs no declared types: names that
    the caller gives, registered functions, symbols of artifacts.
    """
    for function in functions:
        for node in nodes_of(function, PrimCall) if isinstance(function, PrimFunc) else ():
            if node.op in _EXTERN:
                _check_call(node, declared, known)
            elif node.op in _INTRINSIC:
                _check_intrinsic(node, known)


def refuse_undeclared_symbols(functions: Iterable[BaseFunc], known: Callable[[str], bool]) -> None:
    """Refuse graph functions whose calls of outside functions become calls of C symbols that nobody declared."""
    for function in functions:
        for node in walk(function):
            if isinstance(node, ExternFunc) and not known(node.name):
                raise undeclared("R.call_dps_packed", node.name, node.span or function.span)


def undeclared(caller: str, name: str, span: Span | None) -> TargetError:
    """The error of a call of foreign code by a name that nobody declared."""
    return TargetError(
        f"{caller} of {name!r}, which nobody declared: a text reaches foreign code only by declared names",
        code="W760",
        span=span,
        hint=f"if you trust it: weft.compile(..., externs=({name!r},)), or --allow-extern {name} on the command line",
    )


def _check_call(call: PrimCall, declared: Mapping[str, Extern], known: Callable[[str], bool]) -> None:
    symbol = call.args[0] if call.args else None
    if not isinstance(symbol, StringImm):
        raise TargetError(f"T.{call.op} takes the symbol's name first", code="W740", span=call.span)
    if known(symbol.value):
        return
    wanted = find_extern(symbol.value) or declared.get(symbol.value)
    if wanted is None:
        raise undeclared(f"T.{call.op}", symbol.value, call.span)
    got = Extern(symbol.value, call.dtype, tuple(map(_dtype_of, call.args[1:])))
    if got != wanted:
        message = f"T.{call.op} of {symbol.value!r}: expected {wanted}, got {got}"
        raise TargetError(message, code="W761", span=call.span, hint="cast the arguments, or state the result's dtype")


def _dtype_of(arg: Expr) -> str:
    return arg.dtype if isinstance(arg, PrimExpr) else "handle"


def _check_intrinsic(call: PrimCall, known: Callable[[str], bool]) -> None:
    name = next((arg.value for arg in call.args if isinstance(arg, StringImm)), None)
    if name is not None and not is_math_intrinsic(name) and not known(name):
        raise undeclared(f"T.{call.op}", name, call.span)
