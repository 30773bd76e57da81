"""HoistScratch: large buffers that kernels allocate become parameters, which the plan of the caller has a place for.

    t = T.alloc_buffer((n, 64))  inside k(x, y)        k(x, y, t), and the caller allocates t beside the call

This holds for private kernels that only graph functions call, and for buffers whose size follows from the sizes of the
arguments; the attribute `scratch` has their positions. Small buffers of known size stay on the stack, the smallest
first while it has room for them. Inside of a parallel loop with a known number of iterations each iteration gets a copy
of its own, allocated once before the loop, of which a code generator may use one for iterations that do not run at
once; in one with more, and where copies take more than `MOST_COPIED` bytes or pointers lead to a buffer, buffers stay
where they are.

    for i in T.parallel(8): t = T.alloc_buffer((n, 64)); t[j, k]      t = T.alloc_buffer((8, n, 64)); ... t[i, j, k]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated

from weft import dtypes
from weft.errors import ShapeError
from weft.ir import (
    Binding,
    Call,
    Function,
    GlobalVar,
    IRModule,
    Node,
    PrimFunc,
    ShapeExpr,
    TensorType,
    Var,
    VarBinding,
    replace,
    walk,
)
from weft.ir.attrs import SCRATCH
from weft.ir.dim import Dim, free_symbols, match_dims, product, substitute
from weft.ir.kernel.prim import cast
from weft.ir.kernel.prim_dim import buffer_symbols, kernel_signature, prim_to_dim, symbol_names
from weft.ir.kernel.views import ADDRESSES
from weft.ir.op import get_op
from weft.ir.structure.visit import children, inner_statements, nodes_of, rewrite, rewrite_statements, statements
from weft.ir.tensor import (
    AllocBuffer,
    Block,
    Buffer,
    BufferLoad,
    BufferStore,
    For,
    PrimCall,
    PrimExpr,
    PrimVar,
    SeqStmt,
    Stmt,
)
from weft.support.records import dataclass
from weft.target.machine_model import STACK_BYTES, STACK_TOTAL
from weft.transform.infra.base import Pass, map_functions
from weft.transform.infra.options import AtLeast
from weft.transform.infra.rewriting import FunctionRewriter, derived

__all__ = ["HoistScratch", "scratch_bytes"]


@dataclass(frozen=True)
class HoistScratch(Pass):
    """Make the scratch memory of kernels part of what their callers allocate.

    Buffers of known size up to `stack_bytes` stay where they are.
    """

    stack_bytes: Annotated[int, AtLeast(0)] = STACK_BYTES

    def run(self, module: IRModule) -> IRModule:
        """The module with large scratch buffers as parameters."""
        least = self.stack_bytes
        module = map_functions(module, lambda name, function: _with_copies(function, least), PrimFunc)
        kernels: dict[str, _Scratch] = {}
        for name in _private_kernels(module):
            function = module[name]
            assert isinstance(function, PrimFunc)
            buffers = tuple(_large(function, self.stack_bytes))
            if buffers:
                kernels[name] = _Scratch(function, buffers)
        for function in module.functions.values():
            for call in _calls(function):
                name = call.op.name if isinstance(call.op, GlobalVar) else ""
                if name in kernels and kernels[name].sizes(call) is None:
                    del kernels[name]
        if not kernels:
            return module
        new = map_functions(module, lambda name, function: _Calls(kernels).run(function))
        return new.with_functions({**new.functions, **{name: kernel.hoisted() for name, kernel in kernels.items()}})


def scratch_bytes(function: PrimFunc, least: int = STACK_BYTES) -> int:
    """The bytes of known size, above `least` each, that a kernel still allocates itself."""
    sizes = (_size(buffer) for buffer in _allocated(function.body))
    return sum(size for size in sizes if isinstance(size, int) and size > least)


def _private_kernels(module: IRModule) -> list[str]:
    """The private kernels that only calls in graph functions refer to."""
    found = {name for name, f in module.functions.items() if isinstance(f, PrimFunc) and f.private}
    for function in module.functions.values():
        called = {id(call.op) for call in _calls(function)}
        for node in nodes_of(function, GlobalVar, PrimCall) if isinstance(function, (Function, PrimFunc)) else ():
            if isinstance(node, GlobalVar) and id(node) not in called:
                found.discard(node.name)
            elif isinstance(node, PrimCall) and isinstance(node.op, GlobalVar):
                found.discard(node.op.name)
    return sorted(found)


def _calls(function: object) -> Iterator[Call]:
    if isinstance(function, Function):
        yield from (node for node in walk(function) if isinstance(node, Call) and isinstance(node.op, GlobalVar))


def _allocated(stmt: Stmt) -> Iterator[Buffer]:
    for node in statements(stmt):
        if isinstance(node, AllocBuffer):
            yield node.buffer
        elif isinstance(node, Block):
            yield from node.alloc_buffers


def _size(buffer: Buffer, names: Mapping[PrimVar, str] | None = None) -> Dim | None:
    """The bytes of a compact buffer; None when they do not follow from named sizes."""
    dims = [prim_to_dim(extent, names) for extent in buffer.shape]
    if buffer.strides is not None or any(dim is None for dim in dims):
        return None
    return product(dim for dim in dims if dim is not None) * dtypes.item_bytes(buffer.dtype)


def _large(function: PrimFunc, least: int) -> Iterator[Buffer]:
    shared = {id(part) for loop in statements(function.body) if _runs_apart(loop) for part in statements(loop)}
    symbols, crowded = _symbols(function), _crowded_out(function, least)
    for node in statements(function.body):
        if not isinstance(node, AllocBuffer) or id(node) in shared:
            continue
        if node.buffer in crowded or _is_large(node.buffer, symbols, least):
            yield node.buffer


def _crowded_out(function: PrimFunc, least: int) -> set[Buffer]:
    """Buffers that are small enough for the stack, which smaller ones of the function, or of a parallel loop, fill."""
    rooms: dict[Stmt, list[Buffer]] = {}
    pending = [(function.body, function.body)]
    while pending:
        stmt, room = pending.pop()
        if isinstance(stmt, AllocBuffer) and stmt.buffer.scope != "local":
            rooms.setdefault(room, []).append(stmt.buffer)
        inside = stmt if _runs_apart(stmt) else room
        pending += ((part, inside) for part in inner_statements(stmt))
    return {buffer for buffers in rooms.values() for buffer in _beyond(buffers, least)}


def _beyond(buffers: Iterable[Buffer], least: int) -> Iterator[Buffer]:
    """Of buffers that are small enough each, those that go beyond the stack when the smallest come first."""
    sizes = [(size, buffer) for buffer in buffers if isinstance(size := _size(buffer), int) and size <= least]
    total = 0
    for size, buffer in sorted(sizes, key=lambda pair: pair[0]):
        total += size
        if total > STACK_TOTAL:
            yield buffer


def _symbols(function: PrimFunc) -> dict[PrimVar, str]:
    names = symbol_names(function)
    return {symbol: names[symbol] for symbol in buffer_symbols(function)}


def _is_large(buffer: Buffer, symbols: Mapping[PrimVar, str], least: int) -> bool:
    """Whether a buffer is too large for the stack, of a size that follows from the symbols."""
    variables = {v for extent in buffer.shape if isinstance(extent, PrimExpr) for v in walk(extent)}
    if buffer.scope == "local" or any(isinstance(v, PrimVar) and v not in symbols for v in variables):
        return False
    size = _size(buffer, symbols)
    return size is not None and not (isinstance(size, int) and size <= least)


MOST_COPIES = 64
"""How many iterations a parallel loop may have for each to get its own copy of a buffer."""


MOST_COPIED = 64 << 20
"""The bytes of known size that the copies of a buffer may take."""


def _with_copies(function: PrimFunc, least: int) -> PrimFunc:
    """The function with a copy for each iteration in place of large buffers that parallel loops allocate inside."""
    symbols, crowded = _symbols(function), _crowded_out(function, least)

    def copied(loop: Stmt) -> Stmt | None:
        if not isinstance(loop, For) or loop.kind != "parallel" or loop.step not in (None, 1):
            return None
        from_zero = isinstance(loop.start, int) and loop.start == 0
        if not from_zero or not isinstance(loop.extent, int) or loop.extent > MOST_COPIES:
            return None
        inner = {id(node) for part in statements(loop.body) if _runs_apart(part) for node in statements(part)}
        found: list[Buffer] = []
        for node in statements(loop.body):
            if not isinstance(node, AllocBuffer) or id(node) in inner or node.buffer.strides is not None:
                continue
            if node.buffer in crowded or _is_large(node.buffer, symbols, least):
                size = _size(node.buffer, symbols)
                if not isinstance(size, int) or size * loop.extent <= MOST_COPIED:
                    found.append(node.buffer)
        excluded = _used_otherwise(loop.body) if found else set[Buffer]()
        mapping = {x: replace(x, shape=(loop.extent, *x.shape)) for x in found if x not in excluded}
        if not mapping:
            return None
        body = rewrite(loop.body, lambda node: _in_copy(node, mapping, loop.loop_var))
        return SeqStmt((*(AllocBuffer(buffer) for buffer in mapping.values()), replace(loop, body=body)))

    if not any(_runs_apart(part) for part in statements(function.body)):
        return function
    return replace(function, body=rewrite_statements(function.body, copied))


def _used_otherwise(stmt: Stmt) -> set[Buffer]:
    """The buffers that something else than allocations, loads and stores uses, or that a pointer leads to."""
    nodes = list(walk(stmt))
    led_to = {id(arg) for node in nodes if isinstance(node, PrimCall) and node.op in ADDRESSES for arg in node.args}
    others = (x for x in nodes if not isinstance(x, (AllocBuffer, BufferLoad, BufferStore)) or id(x) in led_to)
    return {part for node in others for part in children(node) if isinstance(part, Buffer)}


def _in_copy(node: Node, mapping: Mapping[Buffer, Buffer], index: PrimVar) -> Node | None:
    if isinstance(node, AllocBuffer) and node.buffer in mapping:
        return SeqStmt(())
    if isinstance(node, (BufferLoad, BufferStore)) and node.buffer in mapping:
        return replace(node, buffer=mapping[node.buffer], indices=(cast("int64", index), *node.indices))
    return None


def _runs_apart(node: object) -> bool:
    return isinstance(node, For) and node.kind not in ("serial", "unrolled")


@dataclass(frozen=True)
class _Scratch:
    """A kernel and the buffers that become its parameters."""

    function: PrimFunc
    buffers: tuple[Buffer, ...]

    @property
    def position(self) -> int:
        """Where the new parameters stand: after the last buffer."""
        return max((i for i, p in enumerate(self.function.params) if isinstance(p, Buffer)), default=-1) + 1

    def hoisted(self) -> PrimFunc:
        """The kernel with the buffers as parameters."""
        gone = set(self.buffers)

        def drop(node: Stmt) -> Stmt | None:
            if isinstance(node, Block) and (node.reads is not None or node.writes is not None):
                listed = {region.buffer for region in (*(node.reads or ()), *(node.writes or ()))}
                own = {part for part in walk(node.body) if isinstance(part, Buffer)} & gone - listed
                return replace(node, reads=None, writes=None) if own else None
            return SeqStmt(()) if isinstance(node, AllocBuffer) and node.buffer in gone else None

        params = self.function.params
        at = self.position
        body = rewrite_statements(self.function.body, drop)
        function = replace(self.function, params=(*params[:at], *self.buffers, *params[at:]), body=body)
        scratch = (*function.attrs.get(SCRATCH, ()), *range(at, at + len(self.buffers)))
        return function.with_attr(SCRATCH, scratch)

    def sizes(self, call: Call) -> list[tuple[Dim, ...]] | None:
        """The shapes of the buffers in terms of the caller's symbols; None where an argument does not tell."""
        if len(call.args) != len(self.function.params):
            return None
        values: dict[str, Dim] = {}
        for ty, arg in zip(kernel_signature(self.function), call.args, strict=True):
            given = getattr(arg, "ty", None)
            if not isinstance(ty, TensorType):
                continue
            if not isinstance(given, TensorType) or given.dims is None or len(given.dims) != len(ty.dims or ()):
                return None
            found, _ = match_dims(ty.dims or (), given.dims)
            for name, value in found.items():
                values.setdefault(name, value)
        names = symbol_names(self.function)
        try:
            return [tuple(_meant(prim_to_dim(extent, names), values) for extent in b.shape) for b in self.buffers]
        except (KeyError, ShapeError):
            return None


def _meant(dim: Dim | None, values: Mapping[str, Dim]) -> Dim:
    if dim is None or any(name not in values for name in free_symbols(dim)):
        raise KeyError
    return substitute(dim, values)


class _Calls(FunctionRewriter):
    """Allocates the scratch memory beside each call."""

    def __init__(self, kernels: Mapping[str, _Scratch]) -> None:
        super().__init__()
        self.kernels = kernels

    def rewrite_binding(self, binding: Binding) -> Binding | list[Binding]:
        call = binding.value
        if not isinstance(call, Call) or not isinstance(call.op, GlobalVar) or call.op.name not in self.kernels:
            return binding
        kernel = self.kernels[call.op.name]
        shapes = kernel.sizes(call)
        assert shapes is not None
        span = derived(binding.span, HoistScratch.text_name)
        new: list[Binding] = []
        for buffer, shape in zip(kernel.buffers, shapes, strict=True):
            var = Var(buffer.name or "scratch", TensorType(shape, buffer.dtype), span=span)
            options = {"dtype": buffer.dtype, "runtime_device_index": 0, "storage_scope": "global"}
            made = get_op("builtin.alloc_tensor").bind((ShapeExpr(shape, span=span),), options, span)
            new.append(VarBinding(var, made, span=span))
        at = kernel.position
        args = (*call.args[:at], *(item.var for item in new), *call.args[at:])
        return [*new, replace(binding, value=replace(call, args=args))]
