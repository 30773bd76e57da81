"""Modules of kernels alone: a graph function around the public one, so that it can be compiled like any other."""

from __future__ import annotations

from weft.codegen.host.kernels import written_positions
from weft.errors import TargetError
from weft.ir.graph import BindingBlock, Call, Function, GlobalVar, Op, SeqExpr, Tuple, Var, VarBinding
from weft.ir.kernel.prim_dim import kernel_signature
from weft.ir.module import IRModule
from weft.ir.tensor import PrimFunc
from weft.ir.types import TupleType
from weft.transform.memory.lower_to_memory import LowerToMemory

__all__ = ["with_entry"]


def with_entry(module: IRModule) -> tuple[IRModule, list[str]]:
    """A module of kernels alone with a graph function that calls its public one."""
    kernels = {name: f for name, f in module.items() if isinstance(f, PrimFunc) and not f.private}
    if len(kernels) != 1:
        raise TargetError(
            f"c: one public kernel can be compiled, the module has {', '.join(kernels) or 'none'}", code="W739"
        )
    ((name, kernel),) = kernels.items()
    written = written_positions(kernel)
    types = kernel_signature(kernel)
    params = tuple(Var(p.name or f"arg{i}", ty) for i, (p, ty) in enumerate(zip(kernel.params, types, strict=True)))
    inputs = [params[i] for i in range(len(params)) if i not in written]
    outputs = [i for i in range(len(params)) if i in written]
    if outputs != list(range(len(inputs), len(params))):
        raise TargetError(
            f"c: kernel {name!r} reads what it writes, or its outputs are not its last parameters",
            code="W739",
            span=kernel.span,
            hint="call it from a graph function with R.call_tir_inplace",
        )
    results = [types[i] for i in outputs]
    ret = results[0] if len(results) == 1 else TupleType(tuple(results))
    out = Var("out", ret)
    call = Call(Op("call_tir"), (GlobalVar(name), Tuple(tuple(inputs))), ty_args=(ret,), span=kernel.span)
    body = SeqExpr((BindingBlock((VarBinding(out, call),)),), out)
    entry = Function(tuple(inputs), body, ret, name=module.fresh_name("main"))
    made = module.with_function(entry.name, entry)
    return LowerToMemory()(made), [entry.name]
