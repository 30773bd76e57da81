"""CheckHandles: what graph functions give a kernel behind bare handles is as much memory as the kernel looks at.

    def k(h: T.handle): A = T.decl_buffer((16,), "float32", data=h)     64 bytes
    R.call_tir(M.k, (x,), ...)                                          x: (n, 4) float32 is not proved to have them

The sizes of views of a handle are numbers, so one comparison per argument settles it when compiling: refused (W478)
where the tensor is not proved to be large enough. Kernels that call kernels are checked as views are (`check_bounds`),
calls from outside when they come.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from weft import dtypes
from weft.errors import Span, VerifyError
from weft.ir import (
    Call,
    Expr,
    Function,
    GlobalVar,
    IRModule,
    Op,
    PrimFunc,
    TensorType,
    Tuple,
    TupleType,
    Type,
    replace,
    walk,
)
from weft.ir.deduction.infer import TypeContext, infer_type
from weft.ir.dim import product, prove_le
from weft.ir.kernel.views import HANDLE_BYTES, handle_bytes, handles_of
from weft.ir.tensor import PrimVar
from weft.support.records import dataclass
from weft.transform.infra.base import Pass, map_functions

__all__ = ["CheckHandles"]

_CALLS = ("call_tir", "call_tir_with_grad", "call_tir_inplace")


@dataclass(frozen=True)
class CheckHandles(Pass):
    """Refuse calls of kernels that would look beyond the memory behind a bare handle."""

    def run(self, module: IRModule) -> IRModule:
        """The module with the bytes behind each handle as an attribute of its kernel; VerifyError W478."""
        needed = {
            (name, handle): handle_bytes(kernel, handle, module.functions)
            for name, kernel in module.functions.items()
            if isinstance(kernel, PrimFunc)
            for handle in handles_of(kernel)
        }
        if needed:
            context = TypeContext(module.functions)
            for function in module.functions.values():
                for call in walk(function.body) if isinstance(function, Function) else ():
                    for name, handle, given in _behind_handles(call, module, context):
                        _require(name, handle, given, needed[name, handle], call.span)
        return map_functions(module, lambda name, kernel: _noted(name, kernel, needed), PrimFunc)


def _noted(name: str, kernel: PrimFunc, needed: Mapping[tuple[str, PrimVar], int]) -> PrimFunc:
    found = tuple(needed[name, handle] for handle in handles_of(kernel))
    known = kernel.attrs.get(HANDLE_BYTES, ())
    return kernel if tuple(known) == found else replace(kernel, attrs=kernel.attrs.set(HANDLE_BYTES, found))


def _behind_handles(call: object, module: IRModule, context: TypeContext) -> Iterator[tuple[str, PrimVar, Type]]:
    """The kernel, the handle and the type of what is behind it, for each handle of a call."""
    if not isinstance(call, Call) or not isinstance(call.op, Op) or call.op.name not in _CALLS or not call.ty_args:
        return
    callee, inputs = call.args[0], call.args[1]
    kernel = module.functions.get(callee.name) if isinstance(callee, GlobalVar) else None
    if not isinstance(callee, GlobalVar) or not isinstance(kernel, PrimFunc) or not isinstance(inputs, Tuple):
        return
    outputs = call.ty_args[0].fields if isinstance(call.ty_args[0], TupleType) else (call.ty_args[0],)
    given = [*(_type_of(item, context) for item in inputs.fields), *outputs]
    for param, ty in zip(kernel.params, given, strict=False):
        if isinstance(param, PrimVar) and param.dtype == "handle":
            yield callee.name, param, ty


def _type_of(item: Expr, context: TypeContext) -> Type:
    return infer_type(item, context)


def _require(name: str, handle: PrimVar, given: Type, needed: int, span: Span | None) -> None:
    if isinstance(given, TensorType) and given.dims is not None and given.dtype is not None:
        has = product(given.dims) * dtypes.storage(given.dtype).itemsize
        if prove_le(needed, has) is True:
            return
        why = f"{has} bytes are there"
    else:
        why = "its shape is not known"
    raise VerifyError(
        f"kernel {name} looks at {needed} bytes behind its handle {handle.name!r}, and {why}",
        code="W478",
        span=span,
        hint=f"give the parameter a shape: {handle.name}: T.Buffer((...), dtype)",
    )
