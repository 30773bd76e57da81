"""PackConstants: what a kernel copies from a constant before it uses it is copied once, when the module is compiled.

    def k(x, w, y):                                         def k(x, p, y):
        p = T.alloc_buffer((4096,))
        for i, j in T.grid(64, 64):                             y[...] = f(x, p)
            p[j * 64 + i] = w[i, j]
        y[...] = f(x, p)
    y = R.call_tir(k, (x, R.const(w)))                      y = R.call_tir(k, (x, R.const(p)))

`constant_params` says which parameters of private kernels are constants in every call. Packed products copy such an
operand as a whole into the order in which their tiles read it (`weft.transform.autoschedule.gemm.packed`); other
kernels that copy one in plain nests of loops lose their copies as well. A copy may widen floats. Sums of
elements times numbers, in float64 and rounded once (the weights of Winograd convolutions), are computed here as well.
Calls that copy the same constant in the same way share the copy. A copy that is more than twice as large as the
constant, or sums more than eight times as large, stay in the kernel. A constant that no call reads any more leaves the
program.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np

from weft.dtypes import includes, is_float, item_bytes, presented, storage
from weft.ir import (
    Binding,
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    IRModule,
    Op,
    PrimFunc,
    Tuple,
    Var,
    VarBinding,
    replace,
)
from weft.ir.structure.visit import nodes_of
from weft.ir.tensor import (
    AllocBuffer,
    Binary,
    Buffer,
    BufferLoad,
    BufferStore,
    Cast,
    FloatImm,
    For,
    IntImm,
    PrimExpr,
    PrimVar,
    SeqStmt,
    Stmt,
)
from weft.support.array_memory import aligned_zeros
from weft.support.forks import cached_property
from weft.support.records import dataclass
from weft.transform.graph.dead_code import without_dead_bindings
from weft.transform.infra.base import Pass, map_functions
from weft.transform.infra.decisions import Decision, with_decisions
from weft.transform.infra.rewriting import FunctionRewriter

__all__ = ["PackConstants", "constant_params"]

_SLACK = 1 << 12
_WIDE = "float64"
"""The type that sums are computed in."""


@dataclass(frozen=True)
class PackConstants(Pass):
    """Compute what kernels copy from constants."""

    level: ClassVar[int] = 1

    def run(self, module: IRModule) -> IRModule:
        """The module with packed constants in the calls of kernels that packed them."""
        kernels: dict[str, _Kernel] = {}
        for name, params in constant_params(module).items():
            function = module[name]
            assert isinstance(function, PrimFunc)
            packed = tuple(_packings(function, params))
            if packed:
                kernels[name] = _Kernel(function, packed)
        if not kernels:
            return module
        known: dict[tuple[object, ...], tuple[Constant, Constant]] = {}

        def packed_calls(_name: str, function: Function) -> Function:
            new = _Calls(kernels, known).run(function)
            # A variable that stands for a constant would keep it in the program beside its packed form.
            return function if new is function else without_dead_bindings(new, module)

        new = map_functions(module, packed_calls)
        packed_kernels = {name: kernel.with_packed_params() for name, kernel in kernels.items()}
        return new.with_functions({**new.functions, **packed_kernels})


def constant_params(module: IRModule) -> dict[str, frozenset[int]]:
    """The positions of the parameters that are constants in every call, by private kernel that has any."""
    found: dict[str, frozenset[int]] = {}
    mentions: dict[str, int] = {}
    for function in module.functions.values():
        if not isinstance(function, (Function, PrimFunc)):
            continue
        known: dict[Var, Expr] = {}
        for node in nodes_of(function, VarBinding, GlobalVar, Call):
            if isinstance(node, VarBinding) and isinstance(node.value, Constant):
                known[node.var] = node.value
            elif isinstance(node, GlobalVar):
                mentions[node.name] = mentions.get(node.name, 0) + 1
            call = _kernel_call(node)
            if call is not None:
                name, args = call
                here = frozenset(at for at, arg in enumerate(args) if isinstance(known.get(arg, arg), Constant))  # type: ignore[call-overload]
                found[name] = found.get(name, here) & here
                mentions[name] = mentions.get(name, 0) - 1
    return {
        name: params
        for name, params in found.items()
        if params
        and not mentions[name]
        and isinstance(kernel := module.functions.get(name), PrimFunc)
        and kernel.private
    }


def _kernel_call(node: object) -> tuple[str, tuple[Expr, ...]] | None:
    """The name and the inputs of a kernel that a call runs on them without changing them."""
    if not isinstance(node, Call) or not isinstance(node.op, Op) or node.op.name != "call_tir":
        return None
    kernel, inputs = node.args[:2]
    if not isinstance(kernel, GlobalVar) or not isinstance(inputs, Tuple):
        return None
    return kernel.name, inputs.fields


# Copies -------------------------------------------------------------------------------------------------------------


Place = tuple[int, tuple[int, ...]]
"""The first element that an access reaches, and how far each loop moves it."""


@dataclass(frozen=True)
class Sum:
    """Elements times numbers, added up in float64 in this order."""

    terms: tuple[tuple[float, Place], ...]

    def of(self, constant: np.ndarray, sizes: tuple[int, ...]) -> np.ndarray:
        """The sums of a flat array."""
        total, term = np.empty(sizes), np.empty(sizes)
        for number, (factor, (first, steps)) in enumerate(self.terms):
            view = _view(constant, first, sizes, steps)
            np.multiply(view, factor, out=term if number else total, dtype=np.float64)
            if number:
                total += term
        return total


@dataclass(frozen=True)
class Copy:
    """Elements that a nest of loops stores: where the first is, and how far each loop moves, in elements of a buffer.

    `source` is the first element of the constant and how far each loop moves there, a sum of several such, or the value
    that all get.
    """

    sizes: tuple[int, ...]
    first: int
    steps: tuple[int, ...]
    source: Place | Sum | float

    def apply(self, target: np.ndarray, constant: np.ndarray) -> None:
        """Store into a flat array."""
        place = _view(target, self.first, self.sizes, self.steps)
        if isinstance(self.source, Sum):
            place[...] = self.source.of(constant, self.sizes)
        elif isinstance(self.source, tuple):
            place[...] = _view(constant, self.source[0], self.sizes, self.source[1])
        else:
            place[...] = self.source


def _view(array: np.ndarray, first: int, sizes: Sequence[int], steps: Sequence[int]) -> np.ndarray:
    strides = [step * array.itemsize for step in steps]
    return np.lib.stride_tricks.as_strided(array[first:], shape=sizes, strides=strides)


def _copy_of(stmt: Stmt) -> tuple[Copy, Buffer, Buffer | None] | None:
    """A nest as (copy, its target, its source); None where it is anything else."""
    sizes: dict[PrimVar, int] = {}
    while isinstance(stmt, For):
        if not isinstance(stmt.extent, int) or stmt.start != 0 or stmt.step is not None or stmt.annotations:
            return None
        sizes[stmt.loop_var] = stmt.extent
        stmt = stmt.body
    if not isinstance(stmt, BufferStore) or stmt.predicate is not None or not all(sizes.values()):
        return None
    place = _place(stmt, sizes)
    if place is None or not _is_injective(tuple(sizes.values()), place[1]):
        return None
    value = stmt.value
    if isinstance(value, FloatImm):
        return Copy(tuple(sizes.values()), *place, value.value), stmt.buffer, None
    source = _source(value, stmt.buffer.dtype, sizes)
    return None if source is None else (Copy(tuple(sizes.values()), *place, source[0]), stmt.buffer, source[1])


def _source(value: PrimExpr, dtype: str, sizes: Mapping[PrimVar, int]) -> tuple[Place | Sum, Buffer] | None:
    """Where a value comes from, and the buffer that has it."""
    if isinstance(value, Cast) and value.value.dtype == _WIDE and dtype == "float32":
        return _sum(value.value, sizes)
    load = _loaded(value) if value.dtype == dtype else None
    source = None if load is None else _place(load, sizes)
    return None if load is None or source is None else (source, load.buffer)


def _loaded(value: PrimExpr) -> BufferLoad | None:
    """The element that a value is, as it is stored or as a wider float."""
    while isinstance(value, Cast) and is_float(value.dtype) and includes(value.dtype, value.value.dtype):
        value = value.value
    return value if isinstance(value, BufferLoad) and value.predicate is None else None


def _sum(value: PrimExpr, sizes: Mapping[PrimVar, int]) -> tuple[Sum, Buffer] | None:
    """A sum of elements of one buffer times numbers."""
    terms = _terms(value)
    if terms is None or len({load.buffer for _, load in terms}) != 1:
        return None
    places = [(factor, place) for factor, load in terms if (place := _place(load, sizes)) is not None]
    return (Sum(tuple(places)), terms[0][1].buffer) if len(places) == len(terms) else None


def _terms(value: PrimExpr) -> list[tuple[float, BufferLoad]] | None:
    """The factors and elements of a sum, in the order in which they are added."""
    if isinstance(value, Binary) and value.kind == "add":
        first, last = _terms(value.a), _terms(value.b)
        return None if first is None or last is None or len(last) != 1 else first + last
    factor = 1.0
    if isinstance(value, Binary) and value.kind == "mul" and isinstance(value.b, FloatImm):
        factor, value = value.b.value, value.a
    load = _loaded(value) if isinstance(value, Cast) else None
    return None if load is None else [(factor, load)]


def _place(access: BufferLoad | BufferStore, sizes: Mapping[PrimVar, int]) -> Place | None:
    """The first element that an access reaches and how far each loop moves it; None unless that is in range."""
    shape = access.buffer.shape
    if access.buffer.strides is not None or len(shape) != len(access.indices):
        return None
    first, steps, width = 0, dict.fromkeys(sizes, 0), 1
    for index, extent in reversed(list(zip(access.indices, shape, strict=True))):
        form = _linear_form(index)
        if not isinstance(extent, int) or form is None or not form.keys() <= sizes.keys() | {None}:
            return None
        reach = [(form.get(var, 0), size - 1) for var, size in sizes.items()]
        low = form.get(None, 0) + sum(min(0, step) * maximum for step, maximum in reach)
        high = form.get(None, 0) + sum(max(0, step) * maximum for step, maximum in reach)
        if low < 0 or high >= extent:
            return None
        first += form.get(None, 0) * width
        for var in sizes:
            steps[var] += form.get(var, 0) * width
        width *= extent
    return first, tuple(steps.values())


def _linear_form(index: PrimExpr) -> dict[PrimVar | None, int] | None:
    """A sum of multiples of variables: how many of each, and the constant under None."""
    if isinstance(index, IntImm):
        return {None: index.value}
    if isinstance(index, PrimVar):
        return {index: 1}
    if isinstance(index, Cast):
        return _linear_form(index.value)
    if not isinstance(index, Binary) or index.kind not in ("add", "sub", "mul"):
        return None
    a, b = _linear_form(index.a), _linear_form(index.b)
    if a is None or b is None:
        return None
    if index.kind == "mul":
        a, b = (b, a) if a.keys() <= {None} else (a, b)
        return {var: count * b.get(None, 0) for var, count in a.items()} if b.keys() <= {None} else None
    sign = 1 if index.kind == "add" else -1
    return {var: a.get(var, 0) + sign * b.get(var, 0) for var in (*a, *b)}


def _is_injective(sizes: Sequence[int], steps: Sequence[int]) -> bool:
    """Whether no two iterations store to the same element: each loop moves past all that the faster ones reach."""
    reach = 0
    for step, size in sorted((abs(step), size) for step, size in zip(steps, sizes, strict=True) if size > 1):
        if step <= reach:
            return False
        reach += step * (size - 1)
    return True


# Kernels ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Packing:
    """A buffer of a kernel that holds nothing but copies of a constant parameter."""

    buffer: Buffer
    param: int
    copies: tuple[Copy, ...]
    stmts: frozenset[int]

    def packed(self, constant: Constant) -> np.ndarray:
        """The buffer's elements for a constant."""
        shape = tuple(extent for extent in self.buffer.shape if isinstance(extent, int))
        target = aligned_zeros(shape, storage(self.buffer.dtype))  # as compiled code takes it, without another copy
        flat = np.ascontiguousarray(constant.data).reshape(-1)
        if constant.dtype != self.buffer.dtype:
            flat = presented(flat, constant.dtype)
        for copy in self.copies:
            copy.apply(target.reshape(-1), flat)
        target.flags.writeable = False
        return target


def _packings(function: PrimFunc, params: frozenset[int]) -> Iterator[_Packing]:
    """The buffers that hold copies of constants and are complete before anything else mentions them."""
    stmts = list(_flat(function.body))
    own = {item.buffer for item in stmts if isinstance(item, AllocBuffer) and item.buffer.scope == "global"}
    if not own:
        return
    constants = {function.params[at]: at for at in params if isinstance(function.params[at], Buffer)}
    found: dict[Buffer, list[tuple[Copy, Stmt]]] = {buffer: [] for buffer in own}
    source: dict[Buffer, Buffer] = {}
    done: set[Buffer] = set()
    for stmt in stmts:
        if isinstance(stmt, AllocBuffer):
            continue
        copy = _copy_of(stmt)
        if copy is not None and copy[1] in own - done:
            target, read = copy[1], copy[2]
            if read is None or (read in constants and source.setdefault(target, read) is read):
                found[target].append((copy[0], stmt))
                continue
        mentioned = own.intersection(nodes_of(stmt, Buffer))
        stored = {node.buffer for node in nodes_of(stmt, BufferStore)}
        done |= mentioned
        for buffer in mentioned & stored:
            found.pop(buffer, None)
    for buffer, copies in found.items():
        kept = tuple(copy for copy, _ in copies)
        if buffer in source and _pays(buffer, source[buffer], _room(kept)):
            yield _Packing(buffer, constants[source[buffer]], kept, frozenset(id(stmt) for _, stmt in copies))


def _room(copies: Sequence[Copy]) -> int:
    """How many times the room of a constant what is made of it may take: sums would be computed in each call."""
    return 8 if any(isinstance(copy.source, Sum) for copy in copies) else 2


def _pays(buffer: Buffer, constant: Buffer, room: int) -> bool:
    """Whether the copy is of known size and not much larger than the constant."""
    sizes = [math.prod(x for x in item.shape if isinstance(x, int)) for item in (buffer, constant)]
    known = all(isinstance(x, int) for item in (buffer, constant) for x in item.shape)
    return known and buffer.strides is None and sizes[0] <= room * sizes[1] + _SLACK


def _flat(stmt: Stmt) -> Iterator[Stmt]:
    """The statements of sequences in sequences."""
    if isinstance(stmt, SeqStmt):
        for item in stmt.stmts:
            yield from _flat(item)
    else:
        yield stmt


@dataclass(frozen=True)
class _Kernel:
    """A kernel and its buffers that become parameters."""

    function: PrimFunc
    packings: tuple[_Packing, ...]

    @cached_property
    def unread_params(self) -> frozenset[int]:
        """The positions of parameters that nothing but the copies reads."""
        sources = {item.param for item in self.packings}
        used = set(nodes_of(self._body(), Buffer))
        return frozenset(at for at in sources if self.function.params[at] not in used)

    def _body(self) -> Stmt:
        buffers = {item.buffer for item in self.packings}
        copies = frozenset().union(*(item.stmts for item in self.packings))
        kept = [
            stmt
            for stmt in _flat(self.function.body)
            if id(stmt) not in copies and not (isinstance(stmt, AllocBuffer) and stmt.buffer in buffers)
        ]
        return kept[0] if len(kept) == 1 else SeqStmt(tuple(kept))

    def replaced(self, items: Sequence[object], new: Sequence[object]) -> tuple[object, ...]:
        """Parameters or arguments with those of the packed buffers after the ones that they are copies of."""
        unread, result = self.unread_params, []
        for at, item in enumerate(items):
            result += [] if at in unread else [item]
            result += [value for packing, value in zip(self.packings, new, strict=True) if packing.param == at]
        return tuple(result)

    def with_packed_params(self) -> PrimFunc:
        """The kernel that takes packed constants."""
        params = self.replaced(self.function.params, [item.buffer for item in self.packings])
        function = replace(self.function, params=params, body=self._body())
        return with_decisions(function, self._decisions())

    def _decisions(self) -> Iterator[Decision]:
        """What became of each constant."""
        for param in dict.fromkeys(item.param for item in self.packings):
            buffers = [item.buffer for item in self.packings if item.param == param]
            values = {
                "packed_as": tuple(item.name for item in buffers),
                "bytes": sum(map(_bytes, buffers)),
                "keeps_original": param not in self.unread_params,
            }
            reason = "copied into the order in which it is read, when the module is compiled"
            yield Decision(_name(self.function.params[param]), "packing", values, reason)


def _bytes(buffer: Buffer) -> int:
    return math.prod(x for x in buffer.shape if isinstance(x, int)) * item_bytes(buffer.dtype)


def _name(param: object) -> str:
    return getattr(param, "name", "")


class _Calls(FunctionRewriter):
    """Calls kernels with packed constants."""

    def __init__(
        self, kernels: Mapping[str, _Kernel], known: dict[tuple[object, ...], tuple[Constant, Constant]]
    ) -> None:
        super().__init__()
        self.kernels, self.known = kernels, known
        self.constants: dict[Var, Constant] = {}

    def rewrite_binding(self, binding: Binding) -> Binding:
        if not isinstance(binding, VarBinding):
            return binding
        if isinstance(binding.value, Constant):
            self.constants[binding.var] = binding.value
        call = _kernel_call(binding.value)
        if call is None or call[0] not in self.kernels:
            return binding
        kernel, args = self.kernels[call[0]], call[1]
        new = [self._packed(args[item.param], item) for item in kernel.packings]
        assert isinstance(binding.value, Call)
        inputs = replace(binding.value.args[1], fields=kernel.replaced(args, new))
        value = replace(binding.value, args=(binding.value.args[0], inputs, *binding.value.args[2:]))
        return replace(binding, value=value)

    def _packed(self, arg: Expr, packing: _Packing) -> Constant:
        constant = self.constants[arg] if isinstance(arg, Var) else arg
        assert isinstance(constant, Constant)
        key = (id(constant.data), packing.copies, packing.buffer.shape, packing.buffer.dtype)
        if key not in self.known:
            new = Constant(packing.packed(constant), packing.buffer.dtype, span=constant.span)
            self.known[key] = constant, new  # the first one stays alive, so that its number is not used again
        return self.known[key][1]
