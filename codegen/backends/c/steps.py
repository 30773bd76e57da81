"""A host program as the steps of a C program: kernels, constants, memory, device calls.

Sizes are known at compile time (bind the symbols first). Calls of other graph functions become part of the caller.
Each kernel belongs to the part of the target that its own label names, else to that of the function which calls it; a
kernel that two parts call is compiled for each.

Memory is planned for everything at once: tensors between kernels, and the scratch memory of each kernel while it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from weft.codegen.backends.c.expressions import float_literal, int_literal, unsupported
from weft.codegen.backends.c.helpers import c_type
from weft.codegen.backends.c.kernel import align, check_dtype
from weft.codegen.backends.c.kernels import Kernels
from weft.codegen.backends.c.memory import ALIGNMENT, Placement, Planner, Pool, greedy, place
from weft.codegen.backends.c.program import Memory, MemoryView, Operator, Program, member_names, size_of, static_shape
from weft.codegen.backends.c.spelling import check_model
from weft.codegen.backends.generators import ARTIFACTS
from weft.codegen.foreign import refuse_undeclared
from weft.codegen.host import program as host
from weft.codegen.host.read import read_program as read_host_program
from weft.errors import Span, TargetError
from weft.ir.attrs import LABEL
from weft.ir.deduction.subtyping import match_types
from weft.ir.dim import Dim, DimExpr
from weft.ir.dim import substitute as substitute_dim
from weft.ir.graph import Constant, Function, Var
from weft.ir.module import IRModule
from weft.ir.node import replace
from weft.ir.tensor import Buffer
from weft.ir.types import TensorType, Type
from weft.runtime.artifact import Artifact, ArtifactSet
from weft.target import Target
from weft.transform.memory.pack_memory import Request
from weft.transform.target.labels import leaf_parts, owners

__all__ = ["read_program"]

_MAX_CALLS = 200


class _Reader:
    """Reads one function, with those that it calls, into a Program.

    `values` are those of variables, tuples as tuples; `sizes` those of the symbols of the function that is read.
    """

    def __init__(
        self, functions: host.HostProgram, program: Program, owner: Mapping[str, str], artifacts: ArtifactSet
    ) -> None:
        self.functions, self.program, self.owner = functions.functions, program, owner
        self.kernels = Kernels(program, functions.kernels)
        self.values: dict[Var, Any] = {}
        self.sizes: Mapping[str, Dim] = {}
        self.allocations: list[Memory] = []
        self.lifetimes: list[list[int]] = []
        self.users: list[set[str]] = []
        self.calls: list[str] = []
        # Where a symbol is there in several forms, C calls the one in C.
        inferior_first = sorted(artifacts.values(), key=lambda item: item.kind == "c")
        self.providers = {symbol.name: (item, symbol) for item in inferior_first for symbol in item.provides}

    def read(self, function: host.HostFunction, pools: Sequence[Pool], planner: Planner) -> None:
        """Read the function once, plan its memory."""
        program = self.program
        self.values.update(zip(function.params, program.inputs, strict=True))
        self.body(function.body, self.owner[program.function])
        self.place_outputs(self.results(self.value(function.body.result), function.body.span))
        inner = [index for index, memory in enumerate(self.allocations) if not memory.text]
        requests = [Request(size_of(self.allocations[i].ty), *self.lifetimes[i], alignment=ALIGNMENT) for i in inner]
        plan = place(requests, [frozenset(self.users[i]) for i in inner], pools, planner)
        self.take_places(inner, plan)
        program.sizes, program.pools = plan.sizes, tuple(pools)

    def take_places(self, inner: list[int], plan: Placement) -> None:
        for index, (pool, offset) in zip(inner, plan.places, strict=True):
            kind = c_type(self.allocations[index].ty.dtype or "")
            text = f"({pool} + {offset})"
            self.allocations[index].text = text if kind == "uint8_t" else f"(({kind} *)(void *){text})"

    # Steps.

    def body(self, body: host.Body, label: str) -> None:
        for step in body.steps:
            rule = _STEPS.get(type(step))
            if rule is None:
                raise _no_form(step)
            rule(self, step, label)

    def alloc(self, step: host.Alloc, label: str) -> None:
        if step.block:
            raise _no_kernel(step)
        self.values[step.into] = self.allocate(_tensor(self.sized(step.into.ty), step.into))

    def view(self, step: host.View, label: str) -> None:
        """The same memory with another shape or dtype, from its start on."""
        offset = self.value(step.offset)
        whole = isinstance(offset, host.Number) and offset.value == 0
        if step.block or not whole:
            raise _no_kernel(step)
        source = self.memory(step.source, step.span)
        self.values[step.into] = MemoryView(source, _tensor(self.sized(step.into.ty), step.into))

    def bind(self, step: host.Bind | host.Match, label: str) -> None:
        self.values[step.into] = self.value(step.value)

    def allocate(self, ty: TensorType) -> Memory:
        memory = Memory("", ty, len(self.allocations))
        self.allocations.append(memory)
        self.lifetimes.append([len(self.program.operators), len(self.program.operators)])
        self.users.append(set())
        return memory

    def function_call(self, step: host.Call, label: str) -> None:
        """The steps of the callee become steps of the caller, with its sizes."""
        name, callee = step.function, self.functions[step.function]
        if name in self.calls or len(self.calls) > _MAX_CALLS:
            raise unsupported("recursion", step.span)
        given = [self.memory(arg, step.span) for arg in step.arguments]
        outer = self.sizes
        self.sizes = match_types([param.ty for param in callee.params], [memory.ty for memory in given]).symbols
        self.values.update(zip(callee.params, given, strict=True))
        self.calls.append(name)
        self.body(callee.body, callee.source.attrs.get(LABEL) or self.owner.get(name, label))
        self.calls.pop()
        self.values[step.into] = self.value(callee.body.result)
        self.sizes = outer

    def launch(self, step: host.Launch, label: str) -> None:
        function = self.kernels.kernels[step.kernel]
        label = function.attrs.get(LABEL) or label
        buffers = [p for p in function.params if isinstance(p, Buffer)]
        memories = [self.memory(arg, step.span) for arg in step.arguments[: len(buffers)]]
        scalars = [self.scalar(arg, step.span) for arg in step.arguments[len(buffers) :]]
        kernel = self.kernels.called(step.kernel, label, buffers, memories, step.span)
        if kernel.workspace_bytes:
            memories.append(self.allocate(TensorType((kernel.workspace_bytes,), "uint8")))
        self.use(memories, label)
        tensors, scratch = memories[: len(buffers)], memories[len(buffers) :]

        def write() -> str:
            args = [*(item.text for item in tensors), *scalars, *(item.text for item in scratch)]
            return f"{kernel.name}({', '.join(args)})"

        device = self.device(label)
        self.program.operators.append(Operator(kernel.name, label, device, kernel.workspace_bytes, write, True))

    def extern(self, step: host.Extern, label: str) -> None:
        """A symbol of a library, or of an artifact that another code generator made."""
        name = step.name
        if step.python:
            raise TargetError(
                f"c: R.call_py of {name!r} cannot run: C code has no Python process",
                code="W741",
                span=step.span,
                hint='executor="native" and executor="vm" of the target llvm can',
            )
        if not name.isidentifier():
            raise TargetError(
                f"c: the library function {name!r} has no C name",
                code="W743",
                span=step.span,
                hint="use an identifier, and give the function to the linker",
            )
        memories = [self.memory(arg, step.span) for arg in step.arguments]
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

    # Values.

    def value(self, operand: host.Operand) -> Any:
        """What an operand stands for: memory, a tuple of values, or the operand itself."""
        return host.value_of(operand, self.values, unsupported)

    def sized(self, ty: Type | None) -> Type | None:
        """A type with the sizes that symbols have here."""
        if not isinstance(ty, TensorType) or not self.sizes or ty.dims is None:
            return ty
        dims = tuple(substitute_dim(dim, self.sizes) if isinstance(dim, DimExpr) else dim for dim in ty.dims)
        return replace(ty, shape=dims)

    def scalar(self, operand: host.Operand, span: Span | None) -> str:
        value = self.value(operand)
        if isinstance(value, host.Size):
            known = substitute_dim(value.dim, self.sizes) if isinstance(value.dim, DimExpr) else value.dim
            value = host.Number(known, value.dtype) if isinstance(known, int) else value
        if not isinstance(value, host.Number):
            raise unsupported("a scalar that is not known at compile time", span)
        if isinstance(value.value, float):
            return float_literal(value.value, value.dtype)
        return int_literal(int(value.value), value.dtype)

    def memory(self, operand: Any, span: Span | None) -> Memory:
        value = operand if isinstance(operand, Memory) else self.value(operand)
        if isinstance(value, Memory):
            return value
        if isinstance(value, Constant):
            check_dtype(value.dtype, span)
            key = (value.dtype, value.data.tobytes(), value.data.shape)
            constants = self.program.constants
            return Memory(constants.setdefault(key, f"{self.program.model}_constant_{len(constants)}"), value.ty)
        if isinstance(value, host.Extents):
            raise unsupported("a shape as a tensor", span)
        raise unsupported(f"{type(value).__name__} as a tensor", span)

    def use(self, memories: Sequence[Memory], label: str) -> None:
        for memory in memories:
            if memory.allocation is not None:
                self.lifetimes[memory.allocation][1] = len(self.program.operators)
                self.users[memory.allocation].add(label)

    def results(self, value: Any, span: Span | None) -> list[Memory]:
        if isinstance(value, tuple):
            return [memory for item in value for memory in self.results(item, span)]
        return [self.memory(value, span)]

    def place_outputs(self, results: list[Memory]) -> None:
        """Let allocations that are returned live in the caller's memory; what else is returned is copied."""
        for index, memory in enumerate(results):
            text = f"outputs->output{index}"
            self.program.outputs.append(Memory(text, memory.ty))
            own = None if memory.allocation is None else self.allocations[memory.allocation]
            if own is not None and not own.text and _alike(own.ty, memory.ty):
                own.text = text
            else:
                self.program.copies.append((text, memory))


def _alike(a: TensorType, b: TensorType) -> bool:
    """Whether tensors of two types take the same memory, of the same type in C."""
    return size_of(a) == size_of(b) and c_type(a.dtype or "") == c_type(b.dtype or "")


_STEPS: Mapping[type, Callable[[_Reader, Any, str], None]] = {
    host.Alloc: _Reader.alloc,
    host.View: _Reader.view,
    host.Bind: _Reader.bind,
    host.Match: _Reader.bind,
    host.Free: lambda reader, step, label: None,  # where memory is used for the last time follows from the calls
    host.Call: _Reader.function_call,
    host.Launch: _Reader.launch,
    host.Extern: _Reader.extern,
}


def _no_form(step: host.Step) -> TargetError:
    if isinstance(step, (host.Conditional, host.Loop)):
        what = "a loop" if isinstance(step, host.Loop) else "control flow"
        return unsupported(f"{what} in a graph function", step.span)
    return _no_kernel(step)


def _no_kernel(step: host.Step) -> TargetError:
    name = step.name if isinstance(step, host.Operation) else _NAMES.get(type(step), "a closure")
    return TargetError(f"c: {name} has no kernel", code="W744", span=step.span, hint="run LegalizeOps first")


_NAMES: Mapping[type, str] = {host.Alloc: "memory.alloc_storage", host.View: "memory.view"}


def _tensor(ty: object, var: Var) -> TensorType:
    if not isinstance(ty, TensorType):
        raise unsupported(f"{var.name!r}, which is no tensor", var.span)
    static_shape(ty, var.span)
    check_dtype(ty.dtype or "", var.span)
    return ty


def _inputs(params: Sequence[Var]) -> list[Memory]:
    """Where the caller's tensors are: in fields that are called as the parameters where C allows it."""
    names = member_names([param.name for param in params])
    return [Memory(f"inputs->{name}", _tensor(param.ty, param)) for name, param in zip(names, params, strict=True)]


def read_program(
    module: IRModule,
    function: str,
    *,
    model: str,
    target: Target,
    pools: Sequence[Pool],
    planner: Planner = greedy,
    externs: Collection[str] = (),
) -> Program:
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
    functions = read_host_program(module)
    artifacts = module.attrs.get(ARTIFACTS, ArtifactSet())
    _Reader(functions, program, owner, artifacts).read(functions.functions[function], pools, planner)
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
