"""Calls inside of kernels: of other kernels, of declared C functions, of registered Python functions."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from weft.codegen.backends.llvm.asm.function import Size
from weft.codegen.backends.llvm.asm.instructions import (
    Operand,
    call,
    cast,
    load,
)
from weft.codegen.backends.llvm.asm.stack import stack_is_enough
from weft.codegen.backends.llvm.asm.types import memory_type, value_type
from weft.codegen.backends.llvm.kernel.expressions import BufferView, ExpressionEmitter, dtype_of
from weft.codegen.backends.llvm.kernel.frame import WARM, KernelFrame, kernel_params
from weft.codegen.host.kernels import result_dtype
from weft.errors import Span, TargetError
from weft.ir.graph import Expr, GlobalVar, StringImm
from weft.ir.kernel.externs import find_extern
from weft.ir.kernel.prim_dim import buffer_symbols
from weft.ir.tensor import (
    Buffer,
    BufferLoad,
    IntImm,
    PrimCall,
    PrimFunc,
    PrimVar,
)
from weft.runtime.abi import types as abi
from weft.runtime.registry import find_func

__all__ = ["KernelCalls", "in_process"]


class KernelCalls(KernelFrame):
    """The part of a kernel's emitter that calls."""

    def call_function(self, expr: PrimCall) -> str:
        """A call of another tensor-level function: pointers and scalars, symbols solved from the buffers given."""
        callee = self.program.kernel(expr.op.name) if isinstance(expr.op, GlobalVar) else None
        if callee is None or not isinstance(expr.op, GlobalVar):
            raise TargetError(
                f"llvm: cannot call {expr.op!r} from a tensor-level function", code="W740", span=expr.span
            )
        if len(expr.args) != len(callee.params):
            raise TargetError(
                f"llvm: {expr.op.name} takes {len(callee.params)} arguments, got {len(expr.args)}",
                code="W740",
                span=expr.span,
            )
        self._check_stack(expr.op.name, expr.span)
        operands: list[tuple[str, Operand]] = [("ptr", "%frame")]
        for param, arg in zip(callee.params, expr.args, strict=True):
            if isinstance(param, Buffer):
                operands.append(("ptr", self.pointer(arg)))
            else:
                given = self.arith.cast(dtype_of(arg), param.dtype, self.value(arg))
                operands.append((value_type(param.dtype), given))
        solved = self._solve(expr, callee)
        operands += [("i64", solved[symbol]) for symbol in buffer_symbols(callee)]
        dtype = result_dtype(callee)
        slot = self.w.alloca(memory_type(dtype)) if dtype else ""
        if dtype:
            operands.append(("ptr", slot))
        symbol = self.program.kernel_symbol(expr.op.name)
        spelled = self.module.declare(symbol, "i32", ("ptr", *(t for t, _ in kernel_params(callee))))
        self.leave_if(self.w.emit(call("i32", spelled, operands)))
        return self._from_memory(dtype, self._read(dtype, slot)) if dtype else "0"

    def _check_stack(self, name: str, span: Span | None) -> None:
        """W951 where calls of kernels are nested so deep that the stack would run out."""
        if not self.program.nests_deeply(name):
            return
        bad, good = self.w.label("deep"), self.w.label("ok")
        self.w.branch(stack_is_enough(self.w, self.module), good, bad, WARM)
        self.w.open(bad)
        self.program.fail(self.w, "RecursionError", [f"calls of {name} are nested too deep"], [], span=span)
        self.leave(1)
        self.w.open(good)

    def pointer(self, arg: Expr) -> str:
        """The address that a buffer argument means."""
        if isinstance(arg, BufferLoad):
            view = self.view(arg.buffer)
            return self.lane_address(view, self.offset(view, arg.indices), 0)
        if isinstance(arg, Buffer):
            return self.view(arg).pointer
        return self.value(arg)

    def view_behind(self, arg: Expr) -> BufferView | None:
        """The buffer that a pointer argument points into, when it can be told."""
        if isinstance(arg, Buffer):
            return self.view(arg)
        if isinstance(arg, PrimCall) and arg.op in ("address_of", "access_ptr", "tvm_access_ptr") and arg.args:
            arg = arg.args[0]
        return self.view(arg.buffer) if isinstance(arg, BufferLoad) else None

    def _solve(self, expr: PrimCall, callee: PrimFunc) -> dict[PrimVar, Size]:
        solved: dict[PrimVar, Size] = {}
        for param, arg in zip(callee.params, expr.args, strict=True):
            if not isinstance(param, Buffer):
                continue
            view = self.view_behind(arg)
            if view is None or len(view.shape) != param.ndim:
                continue
            for wanted, given in (
                *zip(param.shape, view.shape, strict=True),
                *zip(param.strides or (), view.strides, strict=False),
            ):
                if isinstance(wanted, PrimVar):
                    solved.setdefault(wanted, given)
            if isinstance(param.elem_offset, PrimVar):
                solved.setdefault(param.elem_offset, 0)
        missing = [symbol.name for symbol in buffer_symbols(callee) if symbol not in solved]
        if missing:
            raise TargetError(
                f"llvm: this call leaves the sizes {', '.join(missing)} of the callee unknown",
                code="W740",
                span=expr.span,
                hint="pass whole buffers of the callee's rank",
            )
        return solved

    def call_extern_function(self, expr: PrimCall) -> str:
        """A declared C function, or a registered Python function; which were declared was checked before."""
        name, rest = self._symbol(expr)
        if name not in self.program.c_functions and (find_func(name) is not None or find_extern(name) is None):
            return self._callback(expr, name, rest)
        if not self.program.links_later and not in_process(name):
            raise TargetError(
                f"this process has no C function {name!r}", code="W762", span=expr.span,
                hint="load its library first: ctypes.CDLL(path, ctypes.RTLD_GLOBAL)",
            )  # fmt: skip
        operands, types = [], []
        for arg in rest:
            ty = (
                "ptr"
                if self.view_behind(arg) is not None and not isinstance(arg, BufferLoad)
                else value_type(dtype_of(arg))
            )
            types.append(ty)
            operands.append((ty, self.pointer(arg) if ty == "ptr" else self.value(arg)))
        result = value_type(expr.dtype)
        spelled = self.module.declare(name, result, tuple(types))
        if result == "void":
            self.w.do(call("void", spelled, operands))
            return "0"
        return self.w.emit(call(result, spelled, operands))

    def call_packed_function(self, expr: PrimCall) -> str:
        """A registered Python function."""
        name, rest = self._symbol(expr)
        return self._callback(expr, name, rest)

    def call_print_buffer(self, expr: PrimCall) -> str:
        """Print a buffer."""
        args = [arg for arg in expr.args if not isinstance(arg, (StringImm, IntImm))]  # dtype and sizes are known
        return self._callback(expr, "weft.print", args, action=True, labels=[_label(arg) for arg in args])

    calls: ClassVar[Mapping[str, Callable[[Any, PrimCall], str]]] = {
        **ExpressionEmitter.calls,
        "call_cpacked": call_packed_function,
        "call_extern": call_extern_function,
        "call_packed": call_packed_function,
        "call_pure_extern": call_extern_function,
        "print_buffer": call_print_buffer,
        "tvm_call_packed": call_packed_function,
    }

    def _symbol(self, expr: PrimCall) -> tuple[str, Sequence[Expr]]:
        if not expr.args or not isinstance(expr.args[0], StringImm):
            raise TargetError(f"llvm: {expr.op} takes the symbol's name first", code="W740", span=expr.span)
        return expr.args[0].value, expr.args[1:]

    def _callback(self, expr: PrimCall, name: str, args: Sequence[Expr], **text: object) -> str:
        """Hand scalars and buffers to the runtime, which calls the Python function of that name."""
        words: list[Size] = []
        kinds: list[abi.Type] = []
        for arg in args:
            view = self.view_behind(arg)
            if isinstance(arg, StringImm):
                kinds.append(abi.Text(arg.value))
            elif view is not None and not isinstance(arg, BufferLoad):
                words += [self.w.emit(cast("ptrtoint", "ptr", self.pointer(arg), "i64")), 0, *view.shape, *view.strides]
                kinds.append(abi.StridedBuffer(view.dtype, len(view.shape)))
            else:
                dtype = dtype_of(arg)
                words.append(self.to_word(dtype, self.value(arg)))
                kinds.append(abi.Scalar(dtype))
        result = None if expr.dtype in ("void", "handle") else abi.Scalar(expr.dtype)
        site = self.program.site(kind="call", name=name, args=kinds, result=result, span=expr.span, **text)
        slot = self.callback(site, words)
        self.leave_if(slot[0])
        return self.from_word(expr.dtype, self.w.emit(load("i64", slot[1]))) if result else "0"


def _label(arg: Expr) -> str:
    """What a printed argument is called."""
    while isinstance(arg, PrimCall) and arg.args:
        arg = arg.args[0]
    return arg.buffer.name if isinstance(arg, BufferLoad) else ""


def in_process(name: str) -> bool:
    """Whether the process has a C symbol of that name."""
    try:
        getattr(ctypes.CDLL(None), name)
    except (AttributeError, ValueError):
        return False
    return True
