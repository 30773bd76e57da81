"""Calls inside of kernels: of other kernels, of declared C functions, of registered Python functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft import dtypes
from weft.codegen.backends.llvm.asm.function import Size
from weft.codegen.backends.llvm.asm.instructions import (
    Operand,
    call,
    cast,
    load,
)
from weft.codegen.backends.llvm.asm.stack import stack_is_enough
from weft.codegen.backends.llvm.asm.types import memory_type, value_type
from weft.codegen.backends.llvm.kernel.emitter import WARM, KernelEmitter, call_back, kernel_params
from weft.codegen.backends.llvm.values.expressions import CallForm, dtype_of
from weft.codegen.backends.llvm.values.views import BufferView, Linear
from weft.codegen.backends.llvm.values.words import from_word, to_word
from weft.codegen.host.kernels import result_dtype
from weft.errors import Span, TargetError
from weft.ir.graph import Expr, GlobalVar, StringImm
from weft.ir.kernel.externs import find_extern
from weft.ir.kernel.prim_dim import buffer_symbols
from weft.ir.kernel.views import ADDRESSES, place_of
from weft.ir.tensor import (
    Buffer,
    BufferLoad,
    IntImm,
    PrimCall,
    PrimFunc,
    PrimVar,
)
from weft.runtime.abi import types as abi
from weft.runtime.device.object_symbols import in_process
from weft.runtime.registry import find_func

__all__ = ["KERNEL_CALLS"]


def _call_kernel(emitter: KernelEmitter, expr: PrimCall) -> str:
    """A call of another tensor-level function: pointers and scalars, symbols solved from the buffers given."""
    callee = emitter.program.kernel(expr.op.name) if isinstance(expr.op, GlobalVar) else None
    if callee is None or not isinstance(expr.op, GlobalVar):
        raise TargetError(f"llvm: cannot call {expr.op!r} from a tensor-level function", code="W740", span=expr.span)
    if len(expr.args) != len(callee.params):
        raise TargetError(
            f"llvm: {expr.op.name} takes {len(callee.params)} arguments, got {len(expr.args)}",
            code="W740",
            span=expr.span,
        )
    _check_stack(emitter, expr.op.name, expr.span)
    operands: list[tuple[str, Operand]] = [("ptr", "%frame")]
    for param, arg in zip(callee.params, expr.args, strict=True):
        if isinstance(param, Buffer):
            operands.append(("ptr", _pointer(emitter, arg)))
        else:
            given = emitter.arith.cast(dtype_of(arg), param.dtype, emitter.value(arg))
            operands.append((value_type(param.dtype), given))
    solved = _solve(emitter, expr, callee)
    operands += [("i64", solved[symbol]) for symbol in buffer_symbols(callee)]
    dtype = result_dtype(callee)
    slot = emitter.w.alloca(memory_type(dtype)) if dtype else ""
    if dtype:
        operands.append(("ptr", slot))
    symbol = emitter.program.kernel_symbol(expr.op.name)
    spelled = emitter.module.declare(symbol, "i32", ("ptr", *(t for t, _ in kernel_params(callee))))
    emitter.leave_if(emitter.w.emit(call("i32", spelled, operands)))
    return emitter.memory.from_memory(dtype, emitter.memory.read(dtype, slot)) if dtype else "0"


def _check_stack(emitter: KernelEmitter, name: str, span: Span | None) -> None:
    """W951 where calls of kernels are nested so deep that the stack would run out; W741 where nobody would tell."""
    if emitter.program.has_no_end(name):
        hint = "the executors native and vm end a recursion that is too deep with an error"
        raise TargetError(
            f"llvm: the recursion of {name} in code that is linked into programs", code="W741", span=span, hint=hint
        )
    if not emitter.program.nests_deeply(name):
        return
    bad, good = emitter.w.label("deep"), emitter.w.label("ok")
    emitter.w.branch(stack_is_enough(emitter.w, emitter.module), good, bad, WARM)
    emitter.w.open(bad)
    emitter.program.fail(emitter.w, "RecursionError", [f"calls of {name} are nested too deep"], [], span=span)
    emitter.leave(1)
    emitter.w.open(good)


def _pointer(emitter: KernelEmitter, arg: Expr) -> str:
    """The address that a buffer argument means."""
    if isinstance(arg, BufferLoad):
        view = emitter.view(arg.buffer)
        return emitter.memory.lane_address(view, emitter.index.offset(view, arg.indices), 0)
    if isinstance(arg, Buffer):
        return emitter.view(arg).pointer
    return emitter.value(arg)


def _view_behind(emitter: KernelEmitter, arg: Expr) -> BufferView | None:
    """The buffer that a pointer argument points into, when it can be told."""
    if isinstance(arg, Buffer):
        return emitter.view(arg)
    if isinstance(arg, PrimCall) and arg.op in ADDRESSES and arg.args:
        arg = arg.args[0]
    return emitter.view(arg.buffer) if isinstance(arg, BufferLoad) else None


def _from_here(emitter: KernelEmitter, arg: Expr, view: BufferView) -> tuple[list[Size], list[Size]]:
    """Sizes and strides of what a registered function sees behind a pointer: the buffer, or from an element on a row
    of what is left of it."""
    place = place_of(arg)
    if place is None or all(isinstance(index, IntImm) and index.value == 0 for index in place[1]):
        return view.shape, view.strides
    w, where = emitter.w, emitter.index.offset(view, place[1])
    assert isinstance(where, Linear)
    last: Size = 0
    for extent, stride in zip(view.shape, view.strides, strict=True):
        last = w.add(last, w.mul(w.sub(extent, 1), stride))
    return [w.sub(w.add(last, 1), w.add(where.base, where.plus))], [1]


def _solve(emitter: KernelEmitter, expr: PrimCall, callee: PrimFunc) -> dict[PrimVar, Size]:
    solved: dict[PrimVar, Size] = {}
    for param, arg in zip(callee.params, expr.args, strict=True):
        if not isinstance(param, Buffer):
            continue
        view = _view_behind(emitter, arg)
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


def _call_extern(emitter: KernelEmitter, expr: PrimCall) -> str:
    """A declared C function, or a registered Python function; which were declared was checked before."""
    name, rest = _symbol(emitter, expr)
    if name not in emitter.program.c_functions and (find_func(name) is not None or find_extern(name) is None):
        return _callback(emitter, expr, name, rest)
    if not emitter.program.links_later and not in_process(name):
        raise TargetError(
            f"this process has no C function {name!r}",
            code="W762",
            span=expr.span,
            hint="load its library first: ctypes.CDLL(path, ctypes.RTLD_GLOBAL)",
        )
    operands, types = [], []
    for arg in rest:
        ty = (
            "ptr"
            if _view_behind(emitter, arg) is not None and not isinstance(arg, BufferLoad)
            else value_type(dtype_of(arg))
        )
        types.append(ty)
        operands.append((ty, _pointer(emitter, arg) if ty == "ptr" else emitter.value(arg)))
    result = value_type(expr.dtype)
    spelled = emitter.module.declare(name, result, tuple(types))
    if result == "void":
        emitter.w.do(call("void", spelled, operands))
        emitter.configure_matrices()
        return "0"
    given = emitter.w.emit(call(result, spelled, operands))
    emitter.configure_matrices()
    return given


def _call_packed(emitter: KernelEmitter, expr: PrimCall) -> str:
    """A registered Python function."""
    name, rest = _symbol(emitter, expr)
    return _callback(emitter, expr, name, rest)


def _print_buffer(emitter: KernelEmitter, expr: PrimCall) -> str:
    """Print a buffer."""
    args = [arg for arg in expr.args if not isinstance(arg, (StringImm, IntImm))]  # dtype and sizes are known
    return _callback(emitter, expr, "weft.print", args, action=True, labels=[_label(arg) for arg in args])


def _start_profile(emitter: KernelEmitter, expr: PrimCall) -> str:
    """Say that a loop begins; its name stands with the site."""
    number, *rest = expr.args
    name = rest[0].value if rest and isinstance(rest[0], StringImm) else ""
    return _callback(emitter, expr, "weft.start_profile", [number], action=True, labels=[name])


def _end_profile(emitter: KernelEmitter, expr: PrimCall) -> str:
    """Say that a loop is over."""
    return _callback(emitter, expr, "weft.end_profile", expr.args, action=True)


def _symbol(emitter: KernelEmitter, expr: PrimCall) -> tuple[str, Sequence[Expr]]:
    if not expr.args or not isinstance(expr.args[0], StringImm):
        raise TargetError(f"llvm: {expr.op} takes the symbol's name first", code="W740", span=expr.span)
    return expr.args[0].value, expr.args[1:]


def _callback(emitter: KernelEmitter, expr: PrimCall, name: str, args: Sequence[Expr], **text: object) -> str:
    """Hand scalars and buffers to the runtime, which calls the Python function of that name."""
    words: list[Size] = []
    kinds: list[abi.Type] = []
    for arg in args:
        view = _view_behind(emitter, arg)
        if isinstance(arg, StringImm):
            kinds.append(abi.Text(arg.value))
        elif view is not None and not isinstance(arg, BufferLoad):
            address = emitter.w.emit(cast("ptrtoint", "ptr", _pointer(emitter, arg), "i64"))
            shape, strides = _from_here(emitter, arg, view)
            words += [address, 0, *shape, *strides]
            kinds.append(abi.StridedBuffer(view.dtype, len(shape)))
        elif dtypes.lanes(dtype_of(arg)) != 1:
            message = f"llvm: a registered function takes no vectors, {name} is given a {dtype_of(arg)}"
            raise TargetError(message, code="W740", span=expr.span, hint="store it in a buffer")
        else:
            dtype = dtype_of(arg)
            words.append(to_word(emitter.w, dtype, emitter.value(arg)))
            kinds.append(abi.Scalar(dtype))
    result = None if expr.dtype in ("void", "handle") else abi.Scalar(expr.dtype)
    site = emitter.program.site(
        kind="call", name=name, args=kinds, result=result, span=expr.span, in_kernel=True, **text
    )
    slot = call_back(emitter.w, site, words, 1)
    emitter.leave_if(slot[0])
    return from_word(emitter.w, expr.dtype, emitter.w.emit(load("i64", slot[1]))) if result else "0"


def _label(arg: Expr) -> str:
    """What a printed argument is called."""
    while isinstance(arg, PrimCall) and arg.args:
        arg = arg.args[0]
    return arg.buffer.name if isinstance(arg, BufferLoad) else ""


KERNEL_CALLS: Mapping[str, CallForm] = {
    "": _call_kernel,
    "call_cpacked": _call_packed,
    "call_extern": _call_extern,
    "call_packed": _call_packed,
    "call_pure_extern": _call_extern,
    "end_profile_intrinsic": _end_profile,
    "print_buffer": _print_buffer,
    "start_profile_intrinsic": _start_profile,
    "tvm_call_packed": _call_packed,
}
"""By name of the intrinsic; calls of other functions of the module have none."""
