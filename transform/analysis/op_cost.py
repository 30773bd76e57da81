"""What calls and functions cost, in floating-point operations and bytes, with symbolic sizes.

Products and convolutions count two operations for each term of their sums, everything else one for each element that it
reads or gives; every operand is read and every result written once. Of sizes that are not known there is no cost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft import dtypes
from weft.errors import PassError
from weft.ir import Call, ExternFunc, Function, GlobalVar, IRModule, Op, TensorType, TupleType, Type, Var
from weft.ir.deduction.infer import TypeContext, infer_type
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import Dim, floordiv, maximum, product
from weft.ir.op import OPS
from weft.ir.structure.visit import walk
from weft.support.records import dataclass

__all__ = ["OpCost", "bytes_of", "flops", "function_cost", "memory_traffic", "terms_of_sums"]


@dataclass(frozen=True)
class OpCost:
    """Operations and bytes of calls, and the calls of which they are not known."""

    flops: Dim
    bytes: Dim
    unknown: tuple[str, ...] = ()


def flops(call: Call, context: TypeContext) -> Dim | None:
    """The operations of a call; None where sizes are not known.

    >>> import weft
    >>> head = '@R.function\\ndef f(a: R.Tensor(("n", 8), "float32"), b: R.Tensor((8, 4), "float32")):\\n'
    >>> f = weft.parse(head + "    return R.matmul(a, b)")
    >>> flops(f.body.blocks[0].bindings[0].value, TypeContext())
    64 * n
    """
    result, operands = _sizes(infer_type(call, context)), [_sizes(infer_type(arg, context)) for arg in call.args]
    if result is None or any(size is None for size in operands) or not isinstance(call.op, Op):
        return None
    terms = terms_of_sums(call, context)
    if terms is not None:
        return 2 * terms * result
    return maximum(result, *(size for size in operands if size is not None))


def terms_of_sums(call: Call, context: TypeContext) -> Dim | None:
    """The terms of each sum of a product or a convolution; None for other operators."""
    name = call.op.name if isinstance(call.op, Op) else ""
    dims = [dims_of(infer_type(arg, context)) or () for arg in call.args]
    if name == "matmul":
        return dims[0][-1] if dims[0] else 1
    if name.startswith("nn.conv") and "transpose" not in name and len(dims) >= 2:
        values = OPS[name].values(call)
        out = str(values.get("kernel_layout", "OI")).find("O")
        kernel = product(dims[1])
        return floordiv(kernel, dims[1][out]) if 0 <= out < len(dims[1]) else None
    return None


def memory_traffic(call: Call, context: TypeContext) -> Dim | None:
    """The bytes that a call reads and writes; None where sizes are not known."""
    types = [infer_type(call, context), *(infer_type(arg, context) for arg in call.args)]
    found: Dim = 0
    for ty in types:
        size = bytes_of(ty)
        if size is None:
            return None
        found = found + size
    return found


def function_cost(module: IRModule, name: str = "main") -> OpCost:
    """The operations and bytes of the operators that a function calls, branches and local functions once each.

    Calls of functions of the module count with what those cost, calls of others are `unknown`. Raises PassError W510
    for a name that is no graph function.

    >>> import weft
    >>> head = '@R.function\\ndef f(a: R.Tensor(("n", 8), "float32"), b: R.Tensor((8, 4), "float32")):\\n'
    >>> function_cost(weft.IRModule({"f": weft.parse(head + "    return R.matmul(a, b)")}), "f")
    OpCost(flops=64 * n, bytes=48 * n + 128, unknown=())
    """
    return _cost(module, name, ())


def _cost(module: IRModule, name: str, around: tuple[str, ...]) -> OpCost:
    function = module[name]
    if not isinstance(function, Function):
        raise PassError(f"{name!r} is no graph function", code="W510")
    context = TypeContext(module.functions)
    total = OpCost(0, 0)
    for call in walk(function.body):
        if not isinstance(call, Call):
            continue
        callee = call.op.name if isinstance(call.op, (Op, GlobalVar, ExternFunc, Var)) else "?"
        inner = module.functions.get(callee) if not isinstance(call.op, Op) else None
        if isinstance(inner, Function) and callee not in (name, *around):
            cost = _cost(module, callee, (name, *around))
        else:
            computed = isinstance(call.op, Op) and callee in OPS and OPS[callee].is_computed  # call_tir says nothing
            operations = flops(call, context) if computed else None
            traffic = memory_traffic(call, context) if computed else None
            cost = OpCost(0, 0, (callee,)) if operations is None or traffic is None else OpCost(operations, traffic)
        total = OpCost(total.flops + cost.flops, total.bytes + cost.bytes, (*total.unknown, *cost.unknown))
    return total


def _total(ty: Type, of: Callable[[TensorType, Sequence[Dim]], Dim | None]) -> Dim | None:
    """What the tensors of a value of a type add up to; None where that of one is not known."""
    if isinstance(ty, TupleType):
        sizes = [_total(field, of) for field in ty.fields]
        known = [size for size in sizes if size is not None]
        return sum(known, 0) if len(known) == len(sizes) else None  # type: ignore[arg-type]
    if isinstance(ty, TensorType):
        dims = dims_of(ty)
        return None if dims is None else of(ty, dims)
    return 0


def _sizes(ty: Type) -> Dim | None:
    return _total(ty, lambda tensor, dims: product(dims))


def _bytes(ty: TensorType, dims: Sequence[Dim]) -> Dim | None:
    return None if ty.dtype is None else product(dims) * max(1, dtypes.bits(ty.dtype) // 8)


def bytes_of(ty: Type) -> Dim | None:
    """The bytes of a value of a type; None where its sizes are not known.

    >>> bytes_of(TensorType((3, 4), "float16"))
    24
    """
    return _total(ty, _bytes)
