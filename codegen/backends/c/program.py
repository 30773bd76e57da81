"""A graph function in explicit-memory form as the steps of a C program: kernels, constants, memory, device calls.

Reads what `weft.transform.LowerToMemory` makes, with sizes known at compile time (bind the symbols first). Calls of
other graph functions become part of the caller. Each kernel belongs to the part of the target that its own label names,
else to that of the function which calls it; a kernel that two parts call is compiled for each.

Memory is planned for everything at once: tensors between kernels, and the scratch memory of each kernel while it runs.
`weft.codegen.backends.c.files` writes the result as C.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from weft import dtypes
from weft.codegen.backends.c.expressions import float_literal, int_literal, unsupported
from weft.codegen.backends.c.helpers import c_type
from weft.codegen.backends.c.kernel import KEYWORDS, Helpers, KernelWriter, align, check_dtype, identifier
from weft.codegen.backends.c.memory import Placement, Planner, Pool, Request, greedy, place
from weft.codegen.backends.c.spelling import check_model
from weft.codegen.backends.generators import ARTIFACTS
from weft.codegen.foreign import refuse_undeclared
from weft.errors import Span, TargetError
from weft.ir.dim import free_symbols, product
from weft.ir.graph import (
    Call,
    Constant,
    Expr,
    ExternFunc,
    Function,
    GlobalVar,
    If,
    MatchCast,
    Op,
    PrimValue,
    ShapeExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from weft.ir.module import IRModule
from weft.ir.prim_dim import buffer_symbols
from weft.ir.simplify import simplify
from weft.ir.subtyping import match_types
from weft.ir.tensor import Buffer, IntImm, PrimCall, PrimFunc, PrimVar
from weft.ir.types import TensorType
from weft.ir.visit import substitute, substitute_symbols, walk
from weft.runtime.artifact import Artifact, ArtifactSet
from weft.target import Target
from weft.transform.graph.bind_symbolic_vars import how_to_bind
from weft.transform.kernel.lower_blocks import lower_blocks
from weft.transform.target.parts import LABEL, leaf_parts, owners

__all__ = ["Memory", "Operator", "Program", "read_program", "size_of", "static_shape"]

_MAX_CALLS = 200


@dataclass
class Memory:
    """Where a tensor lives: a C expression of its first element, its type, and for allocations their number."""

    text: str
    ty: TensorType
    allocation: int | None = None


@dataclass(frozen=True)
class Operator:
    """One call of a kernel or external function: its lines, the device it runs on (or none), what metadata says."""

    name: str
    label: str
    device: str
    scratch: int
    write: Callable[[], str]
    checked: bool


@dataclass
class Program:
    """What `files` needs to write the C of one model."""

    model: str
    function: str
    target: Target
    parts: dict[str, Target]
    main_label: str
    inputs: list[Memory]
    outputs: list[Memory] = field(default_factory=list)
    operators: list[Operator] = field(default_factory=list)
    copies: list[tuple[str, Memory]] = field(default_factory=list)
    constants: dict[tuple[str, bytes, tuple[int, ...]], str] = field(default_factory=dict)
    kernels: dict[tuple[str, str, tuple[int, ...]], KernelWriter] = field(default_factory=dict)
    helpers: dict[str, Helpers] = field(default_factory=dict)
    externs: dict[str, str] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)
    artifacts: list[Artifact] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    pools: tuple[Pool, ...] = ()

    @property
    def labels(self) -> list[str]:
        """The labels of the parts that have kernels, in the order of the parts."""
        used = {label for _, label, _ in self.kernels}
        return [label for label in self.parts if label in used]

    @property
    def devices(self) -> list[str]:
        """The labels of the devices that are called, in the order of the parts."""
        used = {operator.device for operator in self.operators if operator.device}
        return [label for label in self.parts if label in used]

    @property
    def constant_bytes(self) -> int:
        """Bytes of all constants."""
        return sum(len(content) for _, content, _ in self.constants)


class _Reader:
    """Reads one function, with those that it calls, into a Program."""

    def __init__(self, module: IRModule, program: Program, owner: Mapping[str, str]) -> None:
        self.module, self.program, self.owner = module, program, owner
        self.values: dict[Var, Expr | Memory] = {}
        self.allocations: list[Memory] = []
        self.lifetimes: list[list[int]] = []
        self.users: list[set[str]] = []
        self.calls: list[str] = []
        made = module.attrs.get(ARTIFACTS, ArtifactSet())
        # Where a symbol is there in several forms, C calls the one in C.
        inferior_first = sorted(made.values(), key=lambda item: item.kind == "c")
        self.providers = {symbol.name: (item, symbol) for item in inferior_first for symbol in item.provides}

    def read(self, function: Function, pools: Sequence[Pool], planner: Planner) -> None:
        """Read the function once, plan its memory."""
        program = self.program
        self.values.update(zip(function.params, program.inputs, strict=True))
        self.body(function, self.owner[program.function])
        self.place_outputs(self.results(function.body.body))
        inner = [index for index, memory in enumerate(self.allocations) if not memory.text]
        requests = [Request(size_of(self.allocations[i].ty), *self.lifetimes[i]) for i in inner]
        plan = place(requests, [frozenset(self.users[i]) for i in inner], pools, planner)
        self.take_places(inner, plan)
        program.sizes, program.pools = plan.sizes, tuple(pools)

    def take_places(self, inner: list[int], plan: Placement) -> None:
        for index, (pool, offset) in zip(inner, plan.places, strict=True):
            kind = c_type(self.allocations[index].ty.dtype or "")
            text = f"({pool} + {offset})"
            self.allocations[index].text = text if kind == "uint8_t" else f"(({kind} *)(void *){text})"

    # Bindings.

    def body(self, function: Function, label: str) -> None:
        for block in function.body.blocks:
            for binding in block.bindings:
                self.bind(binding, label)

    def bind(self, binding: VarBinding | MatchCast, label: str) -> None:
        value = binding.value
        if isinstance(value, If):
            raise unsupported("control flow in a graph function", value.span)
        if isinstance(value, Call) and isinstance(binding, VarBinding):
            self.call(binding.var, value, label)
        else:
            self.values[binding.var] = value

    def call(self, var: Var, call: Call, label: str) -> None:
        op = call.op
        if isinstance(op, Op) and op.name == "builtin.alloc_tensor":
            self.values[var] = self.allocate(_tensor(var.ty, var))
        elif isinstance(op, GlobalVar) and isinstance(self.module[op.name], Function):
            self.function_call(var, call, op.name, label)
        elif isinstance(op, GlobalVar):
            self.kernel_call(call, op.name, label)
        elif isinstance(op, ExternFunc):
            self.extern_call(call, op.name, label)
        else:
            name = op.name if isinstance(op, Op) else "a closure"
            raise TargetError(f"c: {name} has no kernel", code="W744", span=call.span, hint="run LegalizeOps first")

    def allocate(self, ty: TensorType) -> Memory:
        memory = Memory("", ty, len(self.allocations))
        self.allocations.append(memory)
        self.lifetimes.append([len(self.program.operators), len(self.program.operators)])
        self.users.append(set())
        return memory

    def function_call(self, var: Var, call: Call, name: str, label: str) -> None:
        """The bindings of the callee become bindings of the caller, with its sizes."""
        callee = self.module[name]
        assert isinstance(callee, Function)
        if name in self.calls or len(self.calls) > _MAX_CALLS:
            raise unsupported("recursion", call.span)
        given = [self.memory(arg, call.span) for arg in call.args]
        sizes = match_types([param.ty for param in callee.params], [memory.ty for memory in given]).symbols
        if sizes:
            callee = substitute_symbols(callee, sizes)
        self.values.update(zip(callee.params, given, strict=True))
        self.calls.append(name)
        self.body(callee, callee.attrs.get(LABEL) or self.owner.get(name, label))
        self.calls.pop()
        self.values[var] = callee.body.body

    def kernel_call(self, call: Call, name: str, label: str) -> None:
        function = self.module[name]
        if not isinstance(function, PrimFunc):
            raise unsupported("a call of something else than a kernel", call.span)
        label = function.attrs.get(LABEL) or label
        buffers = [p for p in function.params if isinstance(p, Buffer)]
        memories = [self.memory(arg, call.span) for arg in call.args[: len(buffers)]]
        scalars = [self.scalar(arg, call.span) for arg in call.args[len(buffers) :]]
        sizes = {item: self.symbol(buffers, item, memories, call.span) for item in buffer_symbols(function)}
        kernel = self.kernel(name, label, call.span, sizes)
        if kernel.workspace_bytes:
            memories.append(self.allocate(TensorType((kernel.workspace_bytes,), "uint8")))
        self.use(memories, label)
        tensors, scratch = memories[: len(buffers)], memories[len(buffers) :]

        def write() -> str:
            args = [*(item.text for item in tensors), *scalars, *(item.text for item in scratch)]
            return f"{kernel.name}({', '.join(args)})"

        device = self.device(label)
        self.program.operators.append(Operator(kernel.name, label, device, kernel.workspace_bytes, write, True))

    def extern_call(self, call: Call, name: str, label: str) -> None:
        """A symbol of a library, or of an artifact that another code generator made."""
        if not name.isidentifier():
            raise TargetError(
                f"c: the library function {name!r} has no C name", code="W743", span=call.span,
                hint="use an identifier, and give the function to the linker",
            )  # fmt: skip
        memories = [self.memory(arg, call.span) for arg in call.args]
        types = ", ".join(["void *"] * len(memories)) or "void"
        prototype, checked = f"void {name}({types})", False
        if name in self.providers:
            artifact, symbol = self.providers[name]
            label = self.label_of(artifact) or label
            checked = True
            prototype = symbol.signature or f"int32_t {name}({types})"
            if artifact not in self.program.artifacts:
                self.program.artifacts.append(artifact)
        self.use(memories, label)
        self.program.externs[name] = f"extern {prototype};"

        def write() -> str:
            return f"{name}({', '.join(f'(void *)(uintptr_t){memory.text}' for memory in memories)})"

        self.program.operators.append(Operator(name, label, self.device(label), 0, write, checked))

    def label_of(self, artifact: Artifact) -> str:
        """The label of the part that an artifact was made for."""
        made_for = Target(artifact.target) if artifact.target != "{}" else None
        return next((label for label, part in self.program.parts.items() if part == made_for), "")

    def device(self, label: str) -> str:
        part = self.program.parts.get(label)
        return label if part is not None and part.kind.device != "cpu" else ""

    def kernel(
        self, name: str, label: str, span: Span | None, sizes: Mapping[PrimVar, int] | None = None
    ) -> KernelWriter:
        """The kernel for a part, with the sizes of a call in place of its symbols."""
        key = (name, label, tuple((sizes or {}).values()))
        found = self.program.kernels.get(key)
        if found is not None:
            return found
        function = self.module[name]
        if not isinstance(function, PrimFunc):
            raise unsupported("a call of something else than a kernel", span)
        part = self.program.parts.get(label)
        if part is not None and part.kind.code_generator is not None and part.kind.name != "c":
            raise TargetError(
                f"c: kernel {name!r} belongs to part {label!r}, whose kind {part.kind.name!r} makes its own code",
                code="W747", span=function.span, hint="run the code generators of the target first",
            )  # fmt: skip
        if sizes:
            function = substitute(function, {var: IntImm(size, var.dtype) for var, size in sizes.items()})
        lowered = simplify(lower_blocks(function))
        callees: dict[str, KernelWriter] = {}
        for item in walk(lowered):
            if isinstance(item, PrimCall) and isinstance(item.op, GlobalVar):
                callees[item.op.name] = self.kernel(item.op.name, label, item.span)
        helpers = self.program.helpers.setdefault(label, Helpers(messages=self.program.messages))
        made = KernelWriter(self.kernel_name(name, label), lowered, helpers, callees)
        self.program.kernels[key] = made
        return made

    def kernel_name(self, name: str, label: str) -> str:
        base = f"{self.program.model}_{_safe(name)}"
        taken = {f"{self.program.model}_{suffix}" for suffix in ("run", "message", "steps", "tell", "TELL")}
        taken |= {writer.name for writer in self.program.kernels.values()}
        if label and any(other == name and owner != label for other, owner, _ in self.program.kernels):
            base = f"{base}__{_safe(label)}"
        count, candidate = 0, base
        while candidate in taken:
            count += 1
            candidate = f"{base}_{count}"
        return candidate

    def symbol(
        self, buffers: Sequence[Buffer], symbol: PrimVar, memories: Sequence[Memory], span: Span | None
    ) -> int:
        for buffer, memory in zip(buffers, memories, strict=True):
            if symbol in buffer.shape:
                return static_shape(memory.ty)[buffer.shape.index(symbol)]
            if symbol is buffer.elem_offset:
                return 0  # a whole array
        raise unsupported("a kernel whose sizes do not follow from its arguments", span)

    def scalar(self, arg: Expr, span: Span | None) -> str:
        value = self.resolve(arg)
        if not isinstance(value, PrimValue) or not isinstance(value.value, (int, float)):
            raise unsupported("a scalar that is not known at compile time", span)
        if isinstance(value.value, float):
            return float_literal(value.value, value.dtype)
        return int_literal(int(value.value), value.dtype)

    # Values.

    def resolve(self, value: Expr | Memory) -> Expr | Memory:
        """Follow variables and fields of tuples to what they stand for."""
        while True:
            if isinstance(value, Var) and value in self.values:
                value = self.values[value]
            elif isinstance(value, TupleGetItem):
                inner = self.resolve(value.value)
                if not isinstance(inner, Tuple):
                    raise unsupported("a tuple that is not made in the function", value.span)
                value = inner.fields[value.index]
            else:
                return value

    def memory(self, value: Expr | Memory, span: Span | None) -> Memory:
        value = self.resolve(value)
        if isinstance(value, Memory):
            return value
        if isinstance(value, Constant):
            check_dtype(value.dtype, span)
            key = (value.dtype, value.data.tobytes(), value.data.shape)
            constants = self.program.constants
            return Memory(constants.setdefault(key, f"{self.program.model}_constant_{len(constants)}"), value.ty)
        if isinstance(value, ShapeExpr):
            raise unsupported("a shape as a tensor", span)
        raise unsupported(f"{type(value).__name__} as a tensor", span)

    def use(self, memories: Sequence[Memory], label: str) -> None:
        for memory in memories:
            if memory.allocation is not None:
                self.lifetimes[memory.allocation][1] = len(self.program.operators)
                self.users[memory.allocation].add(label)

    def results(self, body: Expr) -> list[Memory]:
        value = self.resolve(body)
        if isinstance(value, Tuple):
            return [memory for item in value.fields for memory in self.results(item)]
        return [self.memory(value, body.span)]

    def place_outputs(self, results: list[Memory]) -> None:
        """Let allocations that are returned live in the caller's memory; what else is returned is copied."""
        for index, memory in enumerate(results):
            text = f"outputs->output{index}"
            self.program.outputs.append(Memory(text, memory.ty))
            if memory.allocation is not None and not memory.text:
                memory.text = text
            else:
                self.program.copies.append((text, memory))


def _safe(name: str) -> str:
    return "".join(char if char.isascii() and (char.isalnum() or char == "_") else "_" for char in name)


def _tensor(ty: object, var: Var) -> TensorType:
    if not isinstance(ty, TensorType):
        raise unsupported(f"{var.name!r}, which is no tensor", var.span)
    static_shape(ty, var.span)
    check_dtype(ty.dtype or "", var.span)
    return ty


def static_shape(ty: TensorType, span: Span | None = None) -> tuple[int, ...]:
    """The shape of a tensor; TargetError W745 when a size is not known."""
    if ty.dims is None or ty.dtype is None or not all(isinstance(dim, int) for dim in ty.dims):
        unknown = [name for dim in ty.dims or () for name in free_symbols(dim)]
        raise TargetError(
            f"c: every size must be known at compile time{f', and {unknown[0]} is not' if unknown else ''}",
            code="W745", span=span,
            hint=f"bind it: {how_to_bind(unknown[0])}" if unknown else "state the shape and the dtype",
        )  # fmt: skip
    return ty.dims  # type: ignore[return-value]


def size_of(ty: TensorType) -> int:
    """Bytes of a tensor."""
    return int(product(static_shape(ty))) * max(1, dtypes.bits(ty.dtype or "") // 8)  # type: ignore[arg-type]


def _inputs(params: Sequence[Var]) -> list[Memory]:
    """Where the caller's tensors are: in fields that are called as the parameters where C allows it."""
    names = member_names([param.name for param in params])
    return [Memory(f"inputs->{name}", _tensor(param.ty, param)) for name, param in zip(names, params, strict=True)]


def member_names(wanted: Sequence[str], others: Sequence[str] = ()) -> list[str]:
    """Names for members of a structure beside others: the wanted ones where C allows it, and no two the same.

    >>> member_names(["x", "int", "x", "é"])
    ['x', 'v_int', 'x_1', '_']
    """
    taken = set(others)
    found: list[str] = []
    for index, given in enumerate(wanted):
        name = _safe(given)
        if not name or name in taken or name in KEYWORDS or name[0].isdigit():
            name = identifier(name or f"input{index}", taken)
        taken.add(name)
        found.append(name)
    return found


def read_program(
    module: IRModule, function: str, *, model: str, target: Target, pools: Sequence[Pool], planner: Planner = greedy,
    externs: Collection[str] = (),
) -> Program:  # fmt: skip
    """Read a graph function in explicit-memory form for the parts of a target; `externs` names what it may call.

    Errors: TargetError W741 a construct without a C99 form, W743 external names, W744 an operator without a kernel,
    W745 sizes that are not known, W746 memory that does not suffice, W747 a kernel of a kind with its own code, W760
    and W761 foreign code.
    """
    if function not in module:
        raise TargetError(f"c: there is no function {function!r}", code="W743", hint=f"it has: {', '.join(module)}")
    entry = module[function]
    if not isinstance(entry, Function):
        raise unsupported("an entry that is no graph function", entry.span)
    check_model(model)
    parts = dict(leaf_parts(target))
    refuse_undeclared(module, parts, externs, c_calls=True)
    owner = owners(module, parts)
    main_label = "host" if "host" in parts else owner[function]
    program = Program(model, function, target, parts, main_label, _inputs(entry.params))
    _Reader(module, program, owner).read(entry, pools, planner)
    _check_constants(program)
    return program


def _check_constants(program: Program) -> None:
    """TargetError W746 when the pools for constants are too small for them."""
    pools = [pool for pool in program.pools if pool.constant]
    needed = sum(align(len(content)) for _, content, _ in program.constants)
    have = sum(pool.size for pool in pools if pool.size is not None)
    if pools and all(pool.size is not None for pool in pools) and needed > have:
        names = ", ".join(repr(pool.name) for pool in pools)
        raise TargetError(f"memory overflow: the constants need {needed} bytes, {names} has {have}", code="W746")
