"""Calls of kernels and of functions outside the module, closures, and effects.

    call_tir             a kernel of the module; outputs are allocated and passed after the inputs, then `tir_vars`
    call_tir_inplace     some outputs reuse inputs: `inplace_indices` has an input's index, or -1 for a new array
    call_dps_packed      an extern function that writes outputs passed last
    call_packed          an extern function that returns its result; impure (`call_pure_packed` promises purity)
    call_py              a Python function on arrays that returns its result; pure

Their meaning is given by the interpreter and by the lowering to explicit memory.
Errors: ScriptError W130 numbers of arguments, W135 a callee of the wrong level; ShapeError W202, W201, W210 and
DTypeError W320 where the call contradicts the kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.errors import DTypeError, ScriptError, ShapeError, Span
from weft.ir.deduction.infer import TypeContext, check_claim
from weft.ir.deduction.subtyping import (
    Match,
    dims_of,
    is_base_of,
    match_types,
    substitute_type,
    type_symbols,
    type_text,
)
from weft.ir.dim import DimExpr, symbol
from weft.ir.graph import Call, Expr, Function, GlobalVar, Op, PrimValue, Var
from weft.ir.kernel.prim_dim import kernel_signature, symbol_names
from weft.ir.node import replace
from weft.ir.op.declare import Arguments, Builtin, OpDef, Param
from weft.ir.op.registry import add_op, register_op
from weft.ir.tensor import PrimFunc, PrimVar
from weft.ir.types import AnyType, PrimType, ShapeType, TensorType, TupleType, Type

_MEMORY = Builtin.MEMORY

# ---------------------------------------------------------------------------------------------------------------------
# Kernels of the module
# ---------------------------------------------------------------------------------------------------------------------


def outputs_of(ty: Type) -> tuple[Type, ...]:
    """The output types of a declared `out_ty`."""
    return ty.fields if isinstance(ty, TupleType) else (ty,)


def _declared(args: Arguments, *, with_dtype: bool = True) -> Type:
    """The declared result, which must say how much memory each output takes, maybe but for the size of an element."""
    for ty in outputs_of(args.out_ty):
        if not isinstance(ty, TensorType) or (with_dtype and ty.dtype is None) or ty.shape is None:
            raise ShapeError(
                f"{args.name}: out_ty must be tensors with shape and dtype, got {type_text(ty)}",
                code="W206",
                span=args.span,
                hint="memory for the outputs is allocated before the call",
            )
    return args.out_ty


def _argument_types(args: Arguments, context: TypeContext) -> tuple[Type, ...]:
    ty = context.type_of(args.args)
    return ty.fields if isinstance(ty, TupleType) else (ty,)


def _kernel_call(args: Arguments, context: TypeContext) -> Type:
    declared = _declared(args)
    check_kernel(args, context, outputs_of(declared))
    return declared


def check_kernel(args: Arguments, context: TypeContext, outputs: Sequence[Type]) -> None:
    """Check a call against the kernel's signature, where the kernel is in scope."""
    callee = args.gvar
    if not isinstance(callee, GlobalVar):
        name = getattr(callee, "name", "")
        known = f"its name has no quotes: `Module.{name}`" if name in context.functions else None
        hint = known or "an extern function is called with R.call_dps_packed"
        raise ScriptError(
            f"{args.name} calls a kernel of the module, got {type(callee).__name__}",
            code="W135",
            span=args.span,
            hint=hint,
        )
    kernel = context.functions.get(callee.name)
    if isinstance(kernel, Function):
        hint = "call a graph function directly"
        raise ScriptError(
            f"{args.name}: {callee.name} is a graph function, not a kernel", code="W135", span=args.span, hint=hint
        )
    if isinstance(kernel, PrimFunc):
        _KernelMatch(args, context, callee.name, kernel, outputs).run()


class _KernelMatch:
    """One call held against the signature of its kernel."""

    def __init__(
        self, args: Arguments, context: TypeContext, name: str, kernel: PrimFunc, outputs: Sequence[Type]
    ) -> None:
        self.args, self.context, self.name, self.kernel = args, context, name, kernel
        inputs = _argument_types(args, context)
        extra = args.tir_vars
        scalars = dims_of(context.type_of(extra)) if extra is not None else ()
        given: list[Type] = [*self._with_values(inputs), *outputs, *(ShapeType((dim,)) for dim in scalars or ())]
        self.given, self.first_output, self.last_output = given, len(inputs), len(inputs) + len(outputs)
        numbers = {"input": len(inputs), "output": len(outputs), "tir_var": len(scalars or ())}
        self.counts = ", ".join(f"{count} {what}{'s' * (count != 1)}" for what, count in numbers.items())

    def _with_values(self, inputs: Sequence[Type]) -> list[Type]:
        """The argument types, with the dimensions that scalar arguments are."""
        values: Sequence[Any] = getattr(self.args.args, "fields", ()) or (None,) * len(inputs)
        return [self._value_type(value, ty) for value, ty in zip(values, inputs, strict=True)]

    @staticmethod
    def _value_type(value: Expr | None, ty: Type) -> Type:
        if (
            isinstance(value, PrimValue)
            and isinstance(value.value, (int, DimExpr))
            and not isinstance(value.value, bool)
        ):
            return ShapeType((value.value,))
        return ty

    def run(self) -> None:
        """Raise what is contradicted, record what is left for run time."""
        wanted = self._parameters()
        if len(wanted) != len(self.given):
            raise self._error(ScriptError, f"takes {len(wanted)} parameters, the call passes {self.counts}", "W130")
        match = match_types(wanted, self.given)
        if match.answer is False:
            raise self._mismatch(match)
        with self.context.one_call():  # outputs come after the inputs, whose sizes the call compares
            for index, (param, given) in enumerate(zip(wanted, self.given, strict=True)):
                self._compare(index, param, given, match)

    def _parameters(self) -> list[Type]:
        names = symbol_names(self.kernel)
        types = kernel_signature(self.kernel)
        result: list[Type] = []
        for index, (param, ty) in enumerate(zip(self.kernel.params, types, strict=True)):
            known = index < len(self.given) and isinstance(self.given[index], ShapeType)
            result.append(ShapeType((symbol(names[param]),)) if isinstance(param, PrimVar) and known else ty)
        return result

    def _compare(self, index: int, param: Type, given: Type, match: Match) -> None:
        unbound = type_symbols(param) - set(match.symbols)
        if unbound or isinstance(param, AnyType):  # a bare handle says nothing of what is behind it
            return
        computed = substitute_type(param, match.symbols)
        if self.first_output <= index < self.last_output:
            what = f"output {self._label(index)} of kernel {self.name}"
            check_claim(given, computed, self.context, what, self.args.span, at_run_time=True)
            return
        for a, b in zip(dims_of(computed) or (), dims_of(given) or (), strict=False):
            try:
                self.context.require_equal(a, b, f"{self._place(index)} of kernel {self.name}", self.args.span)
            except ShapeError as error:
                error.notes = (*error.notes, *self._declaration(index))
                raise

    def _declaration(self, index: int) -> list[str]:
        """Where the kernel declares a parameter, as a note."""
        span = self.kernel.params[index].span or self.kernel.span if index >= 0 else self.kernel.span
        return [f"declared at {span.quoted()}"] if span is not None else []

    def _place(self, index: int) -> str:
        """An argument by the caller's variable, where it is one, and by the kernel's parameter."""
        values: Sequence[Any] = getattr(self.args.args, "fields", ())
        value = values[index] if index < len(values) else None
        named = f"`{value.name}`, " if isinstance(value, Var) and value.name else ""
        return f"{named}argument {self._label(index)}"

    def _label(self, index: int) -> str:
        return self.kernel.params[index].name or str(index + 1)

    def _mismatch(self, match: Match) -> Exception:
        index = match.index
        ty, given = kernel_signature(self.kernel)[index], self.given[index]
        dtypes = [t.dtype for t in (ty, given) if isinstance(t, (TensorType, PrimType)) and t.dtype is not None]
        wrong_dtype = type(ty) is type(given) and len(set(dtypes)) == 2
        output = self.first_output <= index < self.last_output
        place = f"output {self._label(index)}" if output else self._place(index)
        message = f"{place}: the kernel declares {type_text(ty)}, the call passes {type_text(given)}"
        return self._error(DTypeError if wrong_dtype else ShapeError, message, "W320" if wrong_dtype else "W202", index)

    def _error(self, kind: type[Any], message: str, code: str, index: int = -1) -> Exception:
        text = f"{self.args.name} of {self.name}: {message}"
        return kind(text, code=code, span=self.args.span, notes=self._declaration(index))


_KERNEL_PARAMS = (Param("gvar", "callee"), Param("args", "exprs"))
_OUT = Param("out_ty", "types")
_TIR_VARS = Param("tir_vars", "shape", None)


@register_op("call_tir", [*_KERNEL_PARAMS, _OUT, _TIR_VARS], pure=True, builtin=_MEMORY)
def call_tir(args: Arguments, context: TypeContext) -> Type:
    """Call a kernel of the module on inputs; its outputs are new arrays of the declared types."""
    return _kernel_call(args, context)


@register_op(
    "call_tir_with_grad",
    [
        *_KERNEL_PARAMS,
        _OUT,
        _TIR_VARS,
        Param("te_grad_name", "attr", "", "str"),
        Param("te_grad_kwargs", "attr", None, "any?"),
    ],
    pure=True,
    builtin=_MEMORY,
)
def call_tir_with_grad(args: Arguments, context: TypeContext) -> Type:
    """`call_tir` of a kernel whose gradient is registered under a name."""
    return _kernel_call(args, context)


@register_op(
    "call_tir_inplace",
    [*_KERNEL_PARAMS, Param("inplace_indices", "attr", of="ints"), _OUT, _TIR_VARS],
    pure=True,
    builtin=_MEMORY,
)
def call_tir_inplace(args: Arguments, context: TypeContext) -> Type:
    """Call a kernel that writes some outputs over inputs that are not used afterwards."""
    declared = outputs_of(_declared(args))
    inputs = _argument_types(args, context)
    indices: tuple[int, ...] = args.inplace_indices
    if len(indices) != len(declared) or any(not -1 <= index < len(inputs) for index in indices):
        message = (
            f"{args.name}: inplace_indices {indices} must name an input, or -1, for each of {len(declared)} outputs"
        )
        raise ScriptError(message, code="W141", span=args.span)
    named = [index for index in indices if index >= 0]
    if len(set(named)) != len(named):
        raise ScriptError(f"{args.name}: two outputs are written over one input", code="W141", span=args.span)
    for index, output in zip(indices, declared, strict=True):
        if index >= 0 and is_base_of(output, inputs[index], context.facts) is False:
            message = (
                f"{args.name}: the output {type_text(output)} does not fit over the input {type_text(inputs[index])}"
            )
            raise ShapeError(message, code="W202", span=args.span)
    check_kernel(args, context, [ty for index, ty in zip(indices, declared, strict=True) if index < 0])
    return args.out_ty


# ---------------------------------------------------------------------------------------------------------------------
# Functions outside the module
# ---------------------------------------------------------------------------------------------------------------------


@register_op("call_dps_packed", [Param("func", "callee"), Param("args", "exprs"), _OUT], pure=True, builtin=_MEMORY)
def call_dps_packed(args: Arguments, context: TypeContext) -> Type:
    """Call an extern function on inputs, with new arrays of the declared types passed last for it to write."""
    return _declared(args, with_dtype=False)


@register_op(
    "call_py", [Param("func_name", "attr", of="str"), Param("args", "exprs"), _OUT], pure=True, builtin=_MEMORY
)
def call_py(args: Arguments, context: TypeContext) -> Type:
    """Call a Python function, registered or of the module, on inputs; it returns new values of the declared types.

    Only executors that live in a Python process run it. Sizes may be left out of the types (`R.Tensor("float32",
    ndim=2)`); what the function returns is held against what they say. `R.call_py_func` is an older spelling.
    """
    return args.out_ty


_TY_ARGS = Param("ty_args", "types", None)


def _stated(args: Arguments) -> Type:
    return args.ty_args if args.ty_args is not None else AnyType()


@register_op(
    "call_pure_packed", [Param("func", "callee"), Param("args", "variadic"), _TY_ARGS], pure=True, builtin=_MEMORY
)
def call_pure_packed(args: Arguments, context: TypeContext) -> Type:
    """Call an extern function that has no effects and returns a value of the stated type."""
    return _stated(args)


@register_op(
    "call_inplace_packed",
    [Param("func", "callee"), Param("args", "variadic"), Param("inplace_indices", "attr", of="ints"), _TY_ARGS],
    pure=True,
    builtin=_MEMORY,
)
def call_inplace_packed(args: Arguments, context: TypeContext) -> Type:
    """Call an extern function that changes and returns arguments that are not used afterwards."""
    count = len(args.args)
    if any(not -1 <= index < count for index in args.inplace_indices):
        message = f"{args.name}: inplace_indices {args.inplace_indices} must name one of {count} arguments, or -1"
        raise ScriptError(message, code="W141", span=args.span)
    return _stated(args)


@register_op(
    "call_builtin_with_ctx", [Param("func", "callee"), Param("args", "exprs"), _TY_ARGS], pure=False, builtin=_MEMORY
)
def call_builtin_with_ctx(args: Arguments, context: TypeContext) -> Type:
    """Call a builtin of the executor that also receives the executor's state."""
    return _stated(args)


class _CallPacked(OpDef):
    """`R.call_packed(func, *args)`: the call has the extern function itself as its operator."""

    def bind(self, args: Sequence[Any] = (), kwargs: Any = None, span: Span | None = None) -> Call:
        call = OpDef.bind(self, args, kwargs, span)
        return replace(call, op=call.args[0], args=call.args[1:])

    def values(self, call: Call) -> dict[str, Any]:
        return OpDef.values(self, replace(call, op=Op(self.name), args=(call.op, *call.args)))

    def _run_time(self, call: Call) -> Any:
        extern = not isinstance(call.op, Op)
        return OpDef._run_time(self, replace(call, op=Op(self.name), args=(call.op, *call.args)) if extern else call)


def _call_packed(args: Arguments, context: TypeContext) -> Type:
    return _stated(args)


add_op(
    _CallPacked(
        "call_packed",
        (Param("func", "callee"), Param("args", "variadic"), _TY_ARGS, Param("dps", "attr", False, "bool")),
        _call_packed,
        "Call an extern function, which may have effects, for its result; with dps it writes its last arguments.",
        pure=False,
        builtin=_MEMORY,
        family="call",
    )
)

# ---------------------------------------------------------------------------------------------------------------------
# Closures
# ---------------------------------------------------------------------------------------------------------------------


@register_op("make_closure", [Param("func", "callee"), Param("args", "exprs")], pure=True, builtin=_MEMORY)
def make_closure(args: Arguments, context: TypeContext) -> Type:
    """A function with its first arguments fixed."""
    return AnyType()


def _closure_result(args: Arguments, context: TypeContext) -> Type:
    ty = context.type_of(args.closure)
    if isinstance(ty, (PrimType, ShapeType, TensorType, TupleType)):
        raise ScriptError(f"{args.name}: a {type_text(ty)} is not a function", code="W131", span=args.span)
    return _stated(args)


@register_op("invoke_closure", [Param("closure"), Param("args", "exprs"), _TY_ARGS], pure=False, builtin=_MEMORY)
def invoke_closure(args: Arguments, context: TypeContext) -> Type:
    """Call a closure, which may have effects, on its remaining arguments. ScriptError W131 for what is no function."""
    return _closure_result(args, context)


@register_op("invoke_pure_closure", [Param("closure"), Param("args", "exprs"), _TY_ARGS], pure=True, builtin=_MEMORY)
def invoke_pure_closure(args: Arguments, context: TypeContext) -> Type:
    """Call a closure without effects on its remaining arguments. ScriptError W131 for what is no function."""
    return _closure_result(args, context)
