"""ResolvePointers: whatever looks at memory names the element whose address it begins at.

    h: T.handle = T.address_of(A[i])                    M.k(h)  ->  M.k(T.address_of(A[i]))
    B = T.decl_buffer((4,), "float32", data=h)          data=T.address_of(A[i])
    A.access_ptr("r", offset=n)                         T.address_of(A[n])

So that every later pass sees whose memory is read and written, and how much of it is there. What is no such address
may stand where nothing is looked at; a view of it, or a kernel that is given it, is refused (W478): pointers made of
numbers, chosen by conditions, moved by bytes that are no whole elements. Bare handles (`CheckHandles`) and what
declared C functions return stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from weft import dtypes
from weft.errors import Span
from weft.ir import GlobalVar, IRModule, PrimFunc, replace, rewrite, walk
from weft.ir.kernel.prim import binary
from weft.ir.kernel.views import ADDRESSES, handles_of, place_of, unknown_memory
from weft.ir.tensor import (
    Binary,
    Bind,
    Buffer,
    BufferLoad,
    Cast,
    DeclBuffer,
    IntImm,
    Let,
    PrimCall,
    PrimExpr,
    PrimVar,
    SeqStmt,
    Stmt,
)
from weft.support.records import dataclass
from weft.transform.analysis.indices.facts import reads_memory
from weft.transform.infra.base import FunctionPass

__all__ = ["ResolvePointers"]

_FOREIGN = ("call_extern", "call_pure_extern")
_MOVED = "handle_add_byte_offset"
_HINT = "take the address of an element: T.address_of(A[i])"


@dataclass(frozen=True)
class ResolvePointers(FunctionPass):
    """Say of every pointer which element it is the address of, and refuse views of those that have none."""

    kinds: ClassVar[type | tuple[type, ...]] = PrimFunc

    def run_function(self, name: str, function: PrimFunc, module: IRModule) -> PrimFunc:
        """The kernel in which pointers are addresses; VerifyError W478."""
        nodes = list(walk(function.body))
        bound = {node.var: node.value for node in nodes if isinstance(node, (Bind, Let)) and node.var.dtype == "handle"}
        if bound or any(_is_other_form(node) for node in nodes):
            resolver = _Resolver(bound)
            function = replace(function, body=rewrite(function.body, pre=resolver.resolved, types=True))
            nodes = list(walk(function.body))
        handles = set(handles_of(function))
        foreign = {variable for variable, value in bound.items() if _is_foreign(value)}
        for node in nodes:
            if isinstance(node, DeclBuffer) and node.buffer.data is not None:
                if node.buffer.data not in foreign and not _is_foreign(node.buffer.data):
                    _require(node.buffer.data, handles, node.span)
            elif isinstance(node, PrimCall):
                for pointer in _given_to_kernels(node, module):
                    _require(pointer, handles, node.span)
        return function


def _is_other_form(node: Any) -> bool:
    """Whether a node is a pointer that is spelled in another way than as the address of an element."""
    if isinstance(node, PrimCall):
        return node.op == _MOVED or (node.op in ADDRESSES and not isinstance(node.args[0], (Buffer, BufferLoad)))
    return isinstance(node, Cast) and node.dtype == "handle"


class _Resolver:
    """Pointers of one kernel as addresses of elements."""

    def __init__(self, bound: Mapping[PrimVar, PrimExpr]) -> None:
        self.bound = bound

    def resolved(self, node: Any) -> PrimExpr | Stmt | None:
        """The address that a pointer is, nothing in place of a name for one; None for what stays as it is."""
        if isinstance(node, Bind) and node.var in self.bound and self._variable(node.var) is not None:
            return SeqStmt(())
        if isinstance(node, PrimVar):
            return self._variable(node) if node in self.bound else None
        return self.address(node) if _is_other_form(node) else None

    def _variable(self, variable: PrimVar) -> PrimExpr | None:
        value = self.bound[variable]
        found = value if isinstance(value, PrimVar) and value not in self.bound else self.address(value)
        if found is not None and reads_memory(_index_of(found)):
            why = "the element is chosen by what memory holds"
            hint = "bind the index to a variable, and take the address where it is used"
            raise unknown_memory(f"the handle {variable.name!r}", why, variable.span, hint)
        return found

    def address(self, pointer: Any) -> PrimExpr | None:
        """The address of an element that a pointer is; None when it is none."""
        if isinstance(pointer, PrimVar):
            return self._variable(pointer) if pointer in self.bound else None
        if isinstance(pointer, Let):
            return self.address(pointer.body)
        if isinstance(pointer, Cast) and pointer.dtype == pointer.value.dtype == "handle":
            return self.address(pointer.value)
        if not isinstance(pointer, PrimCall) or not pointer.args:
            return None
        if pointer.op == "reinterpret" and getattr(pointer.args[0], "dtype", "") == "handle":
            return self.address(pointer.args[0])
        if pointer.op in ADDRESSES:
            return self._element(pointer)
        return self._moved(pointer) if pointer.op == _MOVED and len(pointer.args) == 2 else None

    def _element(self, pointer: PrimCall) -> PrimExpr | None:
        base, *rest = pointer.args
        if isinstance(base, BufferLoad):
            found: PrimExpr | None = pointer if pointer.op == "address_of" else _address(base, pointer.span)
        else:
            found = self.address(base)
        counts = [arg for arg in rest if isinstance(arg, PrimExpr) and dtypes.is_integer(arg.dtype)]
        return _further(found, counts[0]) if found is not None and counts and pointer.op == "access_ptr" else found

    def _moved(self, pointer: PrimCall) -> PrimExpr | None:
        found, offset = self.address(pointer.args[0]), pointer.args[1]
        if found is None or not isinstance(offset, PrimExpr):
            return None
        count = _elements_of(offset, _item_bytes(found))
        return None if count is None else _further(found, count)


def _address(element: BufferLoad, span: Span | None) -> PrimExpr:
    return PrimCall("address_of", (element,), "handle", span=span)


def _index_of(address: PrimExpr) -> PrimExpr:
    """What decides which element an address is that of."""
    place = place_of(address)
    if place is None or not place[1]:
        return IntImm(0, "int64")
    first, *rest = place[1]
    for index in rest:
        first = binary("add", first, index)
    return first


def _item_bytes(address: PrimExpr) -> int:
    place = place_of(address)
    return 0 if place is None else dtypes.item_bytes(place[0].dtype)


def _elements_of(offset: PrimExpr, item: int) -> PrimExpr | None:
    """How many whole elements so many bytes are; None when that cannot be seen."""
    if isinstance(offset, IntImm):
        return IntImm(offset.value // item, offset.dtype) if item and offset.value % item == 0 else None
    if isinstance(offset, Binary) and offset.kind == "mul":
        for count, size in ((offset.a, offset.b), (offset.b, offset.a)):
            if isinstance(size, IntImm) and size.value == item:
                return count
    return offset if item == 1 else None


def _further(address: PrimExpr, count: PrimExpr) -> PrimExpr | None:
    """The address of an element some elements further on, in a buffer of one dimension."""
    place = place_of(address)
    if isinstance(count, IntImm) and count.value == 0:
        return address
    if place is None or place[0].ndim != 1:
        return None
    buffer, (index,) = place
    if buffer.strides is not None and buffer.strides != (1,):
        return None
    return _address(BufferLoad(buffer, (binary("add", index, count),), span=address.span), address.span)


def _is_foreign(pointer: Any) -> bool:
    """Whether a declared C function gives a pointer: its word is taken for it."""
    return isinstance(pointer, PrimCall) and pointer.op in _FOREIGN


def _given_to_kernels(call: PrimCall, module: IRModule) -> list[Any]:
    """The pointers that a call gives another kernel."""
    callee = module.functions.get(call.op.name) if isinstance(call.op, GlobalVar) else None
    pairs = zip(callee.params, call.args, strict=False) if isinstance(callee, PrimFunc) else ()
    return [arg for param, arg in pairs if isinstance(param, Buffer) or param.dtype == "handle"]


def _require(pointer: Any, handles: set[PrimVar], span: Span | None) -> None:
    """W478 unless it is known what memory a pointer is the address of."""
    if place_of(pointer) is None and pointer not in handles:
        raise unknown_memory("this pointer", "it is not the address of an element", span, _HINT)
