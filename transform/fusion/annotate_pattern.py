"""AnnotateTIROpPattern: what kind of computation each kernel is, told from its loops.

    elementwise   every element from the elements of the inputs in the same place
    broadcast     as elementwise, with inputs that lack axes or have one element along them
    injective     every element from single elements of the inputs, by a map of indices
    reduction     some elements join many of an input
    contraction   sums of products of two inputs: matrix products, convolutions
    opaque        anything else, and kernels whose loops a schedule has arranged

The kind is stored as the attribute `op_pattern`. A kernel that has the attribute keeps it: that is how a user says
better. Several nests of loops in one kernel have the kind of the last in this list that one of them has. The names of
kernels and of operators play no part, so kernels written by hand are classified like those of operators.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from weft.dtypes import is_integer
from weft.ir import IRModule, Node, replace, substitute, walk
from weft.ir.attrs import OP_PATTERN
from weft.ir.kernel.prim_dim import buffer_symbols
from weft.ir.tensor import Buffer, BufferLoad, IntImm, PrimExpr, PrimFunc, PrimVar
from weft.support.records import dataclass
from weft.transform.analysis.access_pattern import Nest, Reading, nests_of, reading
from weft.transform.infra.base import FunctionPass
from weft.transform.kernel.scheduled import is_scheduled
from weft.transform.kernel.widen_indices import with_wide_indices

__all__ = ["PATTERNS", "AnnotateTIROpPattern", "op_pattern"]

PATTERNS = ("elementwise", "broadcast", "injective", "reduction", "contraction", "opaque")


@dataclass(frozen=True)
class AnnotateTIROpPattern(FunctionPass):
    """Give every kernel without one the attribute `op_pattern`.

    >>> from weft.ir import te
    >>> A = te.placeholder((4, 8), name="A")
    >>> B = te.compute((8, 4), lambda i, j: A[j, i], name="B")
    >>> module = IRModule({"f": te.create_prim_func([A, B], "f")})
    >>> AnnotateTIROpPattern()(module)["f"].attrs["op_pattern"]
    'injective'
    """

    kinds: ClassVar[type | tuple[type, ...]] = PrimFunc
    text_name: ClassVar[str] = "annotate-tir-op-pattern"
    aliases: ClassVar[tuple[str, ...]] = ("annotate-pattern",)

    def run_function(self, name: str, function: PrimFunc, module: IRModule) -> PrimFunc:
        """The kernel with its attribute."""
        return function if OP_PATTERN in function.attrs else function.with_attr(OP_PATTERN, op_pattern(function))


def op_pattern(function: PrimFunc) -> str:
    """The kind of a kernel, as the module says."""
    nests = None if is_scheduled(function) else nests_of(_with_wide_sizes(function))
    if not nests:
        return "opaque"
    return max((_pattern(nest) for nest in nests), key=PATTERNS.index)


def _with_wide_sizes(function: PrimFunc) -> PrimFunc:
    """The kernel over sizes of the dtype of dimensions, and without its scalars: these are values like constants."""
    narrow = [symbol for symbol in buffer_symbols(function) if symbol.dtype != "int64" and is_integer(symbol.dtype)]
    scalars = [param for param in function.params if isinstance(param, PrimVar) and not is_integer(param.dtype)]
    if not narrow and not scalars:
        return function
    function = replace(function, params=tuple(param for param in function.params if param not in scalars))
    if not narrow:
        return function
    wide: dict[Node, Node] = {symbol: PrimVar(symbol.name, "int64") for symbol in narrow}
    for buffer in {part for part in walk(function) if isinstance(part, Buffer)}:
        wide[buffer] = replace(substitute(buffer, wide))
    body = with_wide_indices(substitute(function.body, wide))
    return PrimFunc(tuple(wide.get(param, param) for param in function.params), body)  # type: ignore[arg-type]


def _pattern(nest: Nest) -> str:
    if nest.reduction:
        return "contraction" if nest.is_contraction else "reduction"
    own = [load for load in _loads(nest) if load.buffer is nest.store.buffer]
    if nest.init is not None or any(reading(nest, load) is not Reading.SAME for load in own):
        return "opaque"  # elements made from other ones of the result
    if all(isinstance(index, (PrimVar, IntImm)) for index in nest.store.indices):
        loads = _loads(nest)
        if all(reading(nest, load) is Reading.SAME for load in loads):
            return "elementwise"
        if all(_keeps_order(load.indices, nest.store.indices) for load in loads):
            return "broadcast"
    return "injective"


def _loads(nest: Nest) -> list[BufferLoad]:
    return [part for part in walk(nest.store) if isinstance(part, BufferLoad)]


def _keeps_order(indices: Sequence[PrimExpr], stored: Sequence[PrimExpr]) -> bool:
    """Whether indices are some of the stored ones in their order, with constants in between."""
    places = [position for index in indices for position, x in enumerate(stored) if x is index]
    known = all(isinstance(index, IntImm) or index in stored for index in indices)
    return known and places == sorted(set(places))
