"""What a call takes on a part of a target, as far as the compiler knows: cycles of one core.

    cycles(call) ::= operations / operations in a cycle + bytes / bytes in a cycle

Operations and bytes are those of `weft.transform.rewrite.cost`, symbols stand for `TYPICAL`. Operations in a cycle
follow from the machine model: the lanes of a vector where the kind writes vectors, the products of a dot-product
instruction where one fits, a routine of many instructions for floats that no unit computes.

A kind may say what calls take itself (`kind.cost`), None for those that it does not do. Without that, two parts do the
same work when their kind says so (`kind.alike`); of any other part nothing is known.
"""

from __future__ import annotations

from collections.abc import Mapping

from weft import dtypes
from weft.ir import Call, Op, TensorType, TupleType, Type
from weft.ir.deduction.infer import TypeContext, infer_type
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import Dim, free_symbols, product
from weft.ir.dim.inspection import value_at
from weft.ir.op import OPS
from weft.target import Target
from weft.transform.analysis.op_cost import flops, memory_traffic

__all__ = ["TYPICAL", "call_cycles", "copy_cycles", "same_work"]

TYPICAL = 256
"""What a symbol counts as where sizes are compared: parts differ in factors, not in sizes."""
SOFTWARE_FLOAT = {32: 30.0, 64: 60.0}
"""Cycles of an operation on floats of so many bits that no unit computes."""
PRODUCTS = ("matmul", "nn.conv1d", "nn.conv2d", "nn.conv3d")
"""Operators whose sums of products dot-product instructions compute."""


def same_work(home: Target, other: Target) -> bool:
    """Whether a part can do what another does, so that what they take decides."""
    if other.kind.cost_of_call is not None:
        return True
    return other.kind is home.kind and other.kind.alike is not None and other.kind.alike(home, other)


def call_cycles(call: Call, part: Target, context: TypeContext) -> float | None:
    """What an operator's call takes on a part; None where that is not known, or the part does not do it."""
    if not isinstance(call.op, Op) or call.op.name not in OPS or not OPS[call.op.name].is_computed:
        return None
    if part.kind.cost_of_call is not None:
        found = part.kind.cost_of_call(call, part)
        return None if found is None else float(found)
    if part.kind.alike is None:
        return None
    operations, traffic = _number(flops(call, context)), _number(memory_traffic(call, context))
    if operations is None or traffic is None:
        return None
    kinds = [
        dtype
        for item in (infer_type(call, context), *(infer_type(a, context) for a in call.args))
        for dtype in _dtypes(item)
    ]
    return operations / _in_a_cycle(call.op.name, kinds, part) + traffic / _bytes_in_a_cycle(part)


def copy_cycles(ty: Type, source: Target, destination: Target) -> float:
    """What a value takes to another memory, written and read once; nothing where the parts share one."""
    if source.kind.memory == destination.kind.memory:
        return 0.0
    if isinstance(ty, TupleType):
        return sum(copy_cycles(item, source, destination) for item in ty.fields)
    dims = dims_of(ty) if isinstance(ty, TensorType) else None
    if dims is None or not isinstance(ty, TensorType) or ty.dtype is None:
        return 0.0
    moved = (_number(product(dims)) or 0) * max(1, dtypes.bits(ty.dtype) // 8)
    return 2 * moved / min(map(_bytes_in_a_cycle, (source, destination)))


def _number(size: Dim | None) -> int | None:
    """A size, with `TYPICAL` for its symbols."""
    if size is None:
        return None
    values: Mapping[str, int] = dict.fromkeys(free_symbols(size), TYPICAL)
    return value_at(size, values)


def _dtypes(ty: Type) -> list[str]:
    if isinstance(ty, TupleType):
        return [dtype for item in ty.fields for dtype in _dtypes(item)]
    return [ty.dtype] if isinstance(ty, TensorType) and ty.dtype else []


def _in_a_cycle(name: str, kinds: list[str], part: Target) -> float:
    """The operations that one core of a part does in a cycle, on values of these dtypes."""
    machine, widest = part.machine, max(map(dtypes.bits, kinds), default=32)
    if any(map(dtypes.is_float, kinds)) and not _has_floats(part, widest):
        return 1.0 / SOFTWARE_FLOAT[64 if widest > 32 else 32]
    lanes = machine.lanes(kinds) if part.kind.explicit_vectors and machine.vector_bits else 1
    cores = max(1, machine.cores)
    terms = 1
    if name in PRODUCTS and part.kind.explicit_vectors and len(kinds) == 3:
        result, *operands = kinds
        wanted = (*map(_family, operands), result)
        found = (dot for dot in machine.dot_products if dot.is_vector)
        terms = max((dot.terms for dot in found if (*map(_family, dot.types[:2]), dot.types[2]) == wanted), default=1)
    return float(lanes * terms * cores)


def _family(dtype: str) -> tuple[bool, int]:
    """What instructions for a type take besides: integers of one width are turned into each other."""
    return dtypes.is_float(dtype), dtypes.bits(dtype)


def _has_floats(part: Target, bits: int) -> bool:
    """Whether a unit computes floats of so many bits; small units have single precision only."""
    if part.cpu is None:  # a machine that runs weft
        return True
    return bool(part.cpu.fpu) and not (bits > 32 and "-sp-" in f"{part.cpu.fpu}-")


def _bytes_in_a_cycle(part: Target) -> float:
    """The bytes that one core moves in a cycle."""
    vectors = part.machine.vector_bits // 8 if part.kind.explicit_vectors else 0
    return float(max(vectors, 4))
