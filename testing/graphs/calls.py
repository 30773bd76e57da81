"""Calls of kernels, external functions and functions of the module."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from weft import dtypes
from weft.errors import WeftError
from weft.ir.deduction.infer import infer_type
from weft.ir.deduction.subtyping import match_types, type_symbols
from weft.ir.dim import Dim
from weft.ir.graph import (
    Call,
    DataflowVar,
    Expr,
    ExternFunc,
    Function,
    GlobalVar,
    PrimValue,
    Var,
    VarBinding,
)
from weft.ir.node import replace
from weft.ir.op import get_op
from weft.ir.tensor import PrimFunc
from weft.ir.types import AnyType, PrimType, TensorType, TupleType, Type
from weft.testing.graphs.leaves import any_leaf
from weft.testing.graphs.state import FunctionState, Rejected
from weft.testing.graphs.types import needs_other
from weft.testing.kernels import kernel
from weft.transform.infra.generators.values import DTYPES

_KERNELS = ("kernel", "tir_add", "k", "x", "n", "scale", "T")


def _is_kernel_dtype(dtype: str) -> bool:
    """Whether random kernels compute with elements of a dtype."""
    return dtypes.is_numpy(dtype) and not dtypes.is_complex(dtype)


def kernel_call(f: FunctionState) -> tuple[Expr, bool]:
    """A call_tir of a kernel made for it, or of one that is there already and fits."""
    choices = f.choices
    known = [var for var in f.known_tensors() if _is_kernel_dtype(var.ty.dtype)]  # type: ignore[attr-defined]
    inputs: list[Var] = [choices.pick(known[::-1]) for _ in range(choices.integer(0, 3))] if known else []
    types: list[Any] = [var.ty for var in inputs]
    values: list[Expr] = list(inputs)
    if choices.flip(10):
        scalars = [var for var in f.visible if isinstance(var.ty, PrimType)]
        scalar: Expr = choices.pick(scalars) if scalars else PrimValue(2, "int64")
        types.append(infer_type(scalar))
        values.append(scalar)
    dims = [dim for var in inputs for dim in var.ty.dims]  # type: ignore[attr-defined]
    shape = output_shape(f, inputs, dims)
    outputs = [TensorType(shape, choices.pick(DTYPES))]
    if choices.flip(15):
        outputs.append(TensorType(output_shape(f, inputs, dims), choices.pick(DTYPES)))
    exact = all(var in f.exact for var in inputs)
    extra = choices.integer(1, 2) if choices.flip(10) else 0
    function = kernel(choices, types, outputs, f.home.fresh(_KERNELS), choices.flip(), exact, extra)
    out: Any = outputs if len(outputs) > 1 or choices.flip(10) else outputs[0]
    name = "call_tir" if choices.flip(90) else "call_tir_with_grad"
    options: dict[str, Any] = {"te_grad_name": "grad"} if name == "call_tir_with_grad" else {}
    if extra:
        options["tir_vars"] = tuple(f.dim() for _ in range(extra))
    f.home.functions[function.name] = function
    call = _accepted(
        f, function, lambda: get_op(name).bind((GlobalVar(function.name), values), {"out_ty": out, **options})
    )
    return call, all(not dtypes.is_float(ty.dtype or "float32") for ty in outputs)


def _accepted(f: FunctionState, kernel: PrimFunc, make: Callable[[], Call]) -> Call:
    """The call of a new kernel, where it has a type and nothing of it is checked at run time; else no kernel either."""
    try:
        call = make()
        context = f.context()
        infer_type(call, context)
        if f.runnable and context.checks:
            raise Rejected
    except (WeftError, Rejected):
        del f.home.functions[kernel.name]
        raise Rejected from None
    return call


def in_place(f: FunctionState) -> tuple[Expr, bool]:
    """A kernel that writes over a tensor made for it, which nothing else uses."""
    choices = f.choices
    known = [var for var in f.known_tensors() if _is_kernel_dtype(var.ty.dtype)]  # type: ignore[attr-defined]
    if not known:
        raise Rejected
    source = choices.pick(known[::-1])
    made = choices.pick((get_op("zeros_like"), get_op("ones_like"), get_op("abs"))).bind((source,))
    ty = infer_type(made, f.context())
    assert isinstance(ty, TensorType)
    others = [choices.pick(known) for _ in range(choices.integer(0, 2))]
    at = choices.integer(0, len(others))
    exact = all(var in f.exact for var in others)
    function = kernel(
        choices,
        [var.ty for var in others],  # type: ignore[misc]
        [ty],
        f.home.fresh(_KERNELS),
        choices.flip(),
        exact,
    )
    params = list(function.params)
    params.insert(at, params.pop())
    function = replace(function, params=tuple(params))
    over = (DataflowVar if f.dataflow else Var)(choices.name(), ty)
    values: list[Expr] = list(others)
    values.insert(at, over)
    f.home.functions[function.name] = function
    call = get_op("call_tir_inplace").bind(
        (GlobalVar(function.name), values, [at]), {"out_ty": replace(ty, vdevice=None)}
    )
    _accepted(f, function, lambda: call)
    f.before.append(VarBinding(over, made))
    return call, not dtypes.is_float(ty.dtype or "float32")


def output_shape(f: FunctionState, inputs: Sequence[Var], dims: Sequence[Dim]) -> tuple[Dim, ...]:
    """A shape of dimensions that the inputs have."""
    choices = f.choices
    if inputs and choices.flip(60):
        shape = choices.pick(inputs).ty.dims  # type: ignore[attr-defined]
        return shape[:-1] if shape and choices.flip(20) else shape
    pool = (*dims, 4, 1, 3)
    return tuple(choices.pick(pool) for _ in range(choices.integer(0, 2)))


def library(f: FunctionState) -> tuple[Expr, bool]:
    """A call of an external function."""
    choices = f.choices
    known = f.known_tensors()
    if not known:
        raise Rejected
    var = choices.pick(known[::-1])
    kind = choices.integer(0, 2)
    ty = replace(var.ty, vdevice=None)
    if kind == 0:
        return get_op("call_dps_packed").bind(("test.reversed", [var]), {"out_ty": ty}), var in f.exact
    if kind == 1:
        return get_op("call_pure_packed").bind(("test.copy", var), {"ty_args": ty}), var in f.exact
    if f.dataflow:
        raise Rejected
    f.pure = False
    return Call(ExternFunc("test.copy"), (var,), ty_args=(ty,)), var in f.exact


def opaque(f: FunctionState) -> tuple[Expr, bool]:
    """A call that only a reader needs to understand."""
    choices = f.choices
    args = choices.several(0, 3, partial(any_leaf, f))
    ty = choices.pick((TensorType(ndim=2, dtype="float32"), AnyType(), TensorType((4, f.dim()), "float32")))
    kind = choices.integer(0, 3)
    if kind == 0:
        tensor = TensorType((4, f.dim()), "float32")
        types = choices.pick((tensor, TupleType((tensor, tensor))))
        return get_op("call_dps_packed").bind((choices.pick(("f", "lib.g", "é")), args), {"out_ty": types}), False
    if kind == 1:
        return get_op("call_pure_packed").bind(("lib.pure", *args), {"ty_args": ty}), False
    if f.dataflow:
        raise Rejected
    f.pure = False
    if kind == 2:
        return Call(ExternFunc(choices.pick(("vm.builtin", "two words"))), tuple(args), ty_args=(ty,)), False
    return Call(ExternFunc("lib.effect"), tuple(args), ty_args=(TupleType(()),)), False


def module_call(f: FunctionState) -> tuple[Expr, bool]:
    """A call of another graph function of the module."""
    functions = [name for name, function in f.home.functions.items() if isinstance(function, Function)]
    if not functions:
        raise Rejected
    name = f.choices.pick(functions)
    function = f.home.functions[name]
    assert isinstance(function, Function)
    if not function.pure and f.dataflow:
        raise Rejected
    args = fitting(f, [param.ty for param in function.params])
    call = Call(GlobalVar(name), tuple(args))
    context = f.context()
    infer_type(call, context)
    if f.runnable and context.checks:
        raise Rejected
    if any(isinstance(arg, Var) and arg not in f.exact for arg in args):
        raise Rejected  # the function takes its parameters as exact
    f.pure = f.pure and function.pure
    return call, False


def fitting(f: FunctionState, types: Sequence[Type]) -> list[Expr]:
    """Visible values for parameter types; a new parameter of the type where there is none."""
    args: list[Expr] = []
    for ty in types:
        fitting = [var for var in f.visible if match_types([ty], [var.ty]).answer is True]
        if fitting and f.choices.flip(70):
            args.append(f.choices.pick(fitting[::-1]))
        elif not f.nested and len(f.params) < 8 and not needs_other(ty) and not taken(f, ty):
            args.append(f.parameter(ty))
        else:
            raise Rejected
    return args


def taken(f: FunctionState, ty: Type) -> bool:
    """Whether a type names symbols that a match_cast defines: no parameter may define them too."""
    bound = set().union(*(type_symbols(param.ty) for param in f.params))
    return bool(type_symbols(ty) & f.used_symbols - bound)
