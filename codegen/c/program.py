"""A whole graph function as C99: one entry with caller-provided memory, kernels, constants, no heap.

    int32_t <model>_run(const struct <model>_inputs *, struct <model>_outputs *, struct <model>_workspaces *,
                        struct <model>_devices *)

reads the explicit-memory form of `weft.transform.LowerToMemory` with sizes known at compile time (bind the symbols
first). The result is 0, or the number of a failed check, whose text `<model>_message` gives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from weft.codegen.c.expressions import float_literal, int_literal, unsupported
from weft.codegen.c.helpers import c_type
from weft.codegen.c.kernel import Helpers, KernelWriter, align
from weft.codegen.c.memory import Request, greedy
from weft.errors import Span, TargetError
from weft.ir import dtype as dtypes
from weft.ir.dim import product
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
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from weft.ir.module import IRModule
from weft.ir.prim_dim import buffer_symbols
from weft.ir.simplify import simplify
from weft.ir.tensor import Buffer, PrimCall, PrimFunc
from weft.ir.types import TensorType
from weft.ir.visit import walk
from weft.transform.lower_blocks import lower_blocks

__all__ = ["CSource", "generate"]

Planner = Callable[[Sequence[Request]], tuple[list[int], int]]


@dataclass(frozen=True)
class CSource:
    """Generated files by name, and the bytes of workspace that a call needs."""

    files: dict[str, str]
    workspace_bytes: int
    entry: str


@dataclass
class _Memory:
    """Where a tensor value lives: a C expression of its first element, its type, and for allocations its lifetime."""

    text: str
    ty: TensorType
    allocation: int | None = None


class _Program:
    def __init__(self, module: IRModule, function: Function, model: str, planner: Planner) -> None:
        self.module, self.function, self.model, self.planner = module, function, model, planner
        self.helpers = Helpers()
        self.kernels: dict[str, KernelWriter] = {}
        self.constants: dict[tuple[str, bytes, tuple[int, ...]], str] = {}
        self.values: dict[Var, Expr | _Memory] = {}
        self.allocations: list[_Memory] = []
        self.lifetimes: list[list[int]] = []
        self.steps: list[Callable[[], list[str]]] = []
        self.outputs: list[_Memory] = []
        self.kernel_workspace = 0

    def generate(self) -> CSource:
        """Read the function once, plan its memory, write the files."""
        self.inputs = [_Memory(f"inputs->{_field(p, i)}", _tensor(p.ty, p)) for i, p in enumerate(self.function.params)]
        self.values.update(zip(self.function.params, self.inputs, strict=True))
        for block in self.function.body.blocks:
            for binding in block.bindings:
                self._bind(binding)
        results = self._results(self.function.body.body)
        copies = self._place_outputs(results)
        requests = [
            Request(_bytes(m.ty), life[0], life[1]) for m, life in zip(self.allocations, self.lifetimes, strict=True)
        ]
        inner = [index for index, memory in enumerate(self.allocations) if not memory.text]
        offsets, total = self.planner([requests[index] for index in inner])
        for index, offset in zip(inner, offsets, strict=True):
            kind = c_type(self.allocations[index].ty.dtype or "")
            self.allocations[index].text = f"(({kind} *)(void *)(workspace + {offset}))"
        total = align(total)
        body = [line for step in self.steps for line in step()]
        body = [line.replace("@kernel_workspace", f"workspace + {total}") for line in [*body, *copies()]]
        return self._files(body, total + self.kernel_workspace)

    # Bindings.

    def _bind(self, binding: VarBinding | MatchCast) -> None:
        value = binding.value
        if isinstance(binding, MatchCast):
            self.values[binding.var] = value
        elif isinstance(value, Call):
            self._call(binding.var, value)
        elif isinstance(value, If):
            raise unsupported("control flow in a graph function", value.span)
        else:
            self.values[binding.var] = value

    def _call(self, var: Var, call: Call) -> None:
        if isinstance(call.op, Op) and call.op.name == "builtin.alloc_tensor":
            memory = _Memory("", _tensor(var.ty, var), len(self.allocations))
            self.allocations.append(memory)
            self.lifetimes.append([len(self.steps), len(self.steps)])
            self.values[var] = memory
        elif isinstance(call.op, GlobalVar):
            self._kernel_call(call, call.op.name)
        elif isinstance(call.op, ExternFunc):
            self._extern_call(call, call.op.name)
        else:
            name = call.op.name if isinstance(call.op, Op) else "a closure"
            raise TargetError(f"c: {name} has no kernel", code="W744", span=call.span, hint="run LegalizeOps first")

    def _kernel_call(self, call: Call, name: str) -> None:
        kernel = self._kernel(name, call.span)
        buffers = [p for p in kernel.function.params if isinstance(p, Buffer)]
        memories = [self._memory(arg, call.span) for arg in call.args[: len(buffers)]]
        self._use(memories)
        scalars = [self._scalar(arg, call.span) for arg in call.args[len(buffers) :]]
        symbols = [
            self._symbol(kernel.function, symbol, memories, call.span) for symbol in buffer_symbols(kernel.function)
        ]

        def write() -> list[str]:
            args = [*(memory.text for memory in memories), *scalars, *symbols]
            if kernel.workspace_bytes:
                args.append("@kernel_workspace")
            return [f"  failed = {kernel.name}({', '.join(args)});", "  if (failed) return failed;"]

        self.kernel_workspace = max(self.kernel_workspace, kernel.workspace_bytes)
        self.steps.append(write)

    def _extern_call(self, call: Call, name: str) -> None:
        if not name.isidentifier():
            raise TargetError(
                f"c: the library function {name!r} has no C name", code="W743", span=call.span,
                hint="use an identifier, and give the function to the linker",
            )  # fmt: skip
        memories = [self._memory(arg, call.span) for arg in call.args]
        self._use(memories)
        types = ", ".join(["void *"] * len(memories)) or "void"
        self.helpers.externs[name] = f"extern void {name}({types});"
        self.steps.append(
            lambda: [f"  {name}({', '.join(f'(void *)(uintptr_t){memory.text}' for memory in memories)});"]
        )

    def _kernel(self, name: str, span: Span | None) -> KernelWriter:
        if name not in self.kernels:
            function = self.module[name]
            if not isinstance(function, PrimFunc):
                raise unsupported("a call of another graph function (inline it first)", span)
            lowered = simplify(lower_blocks(function))
            for item in walk(lowered):
                if isinstance(item, PrimCall) and isinstance(item.op, GlobalVar):
                    self._kernel(item.op.name, item.span)
            self.kernels[name] = KernelWriter(f"{self.model}_{_safe(name)}", lowered, self.helpers, self.kernels)
        return self.kernels[name]

    def _symbol(self, kernel: PrimFunc, symbol: object, memories: list[_Memory], span: Span | None) -> str:
        buffers = [p for p in kernel.params if isinstance(p, Buffer)]
        for buffer, memory in zip(buffers, memories, strict=True):
            if symbol in buffer.shape:
                return int_literal(_shape(memory.ty)[buffer.shape.index(symbol)], "int64")  # type: ignore[arg-type]
        raise unsupported("a kernel whose sizes do not follow from its arguments", span)

    def _scalar(self, arg: Expr, span: Span | None) -> str:
        arg = self._resolve(arg)  # type: ignore[assignment]
        if not isinstance(arg, PrimValue) or not isinstance(arg.value, (int, float)):
            raise unsupported("a scalar that is not known at compile time", span)
        return (
            float_literal(arg.value, arg.dtype)
            if isinstance(arg.value, float)
            else int_literal(int(arg.value), arg.dtype)
        )

    # Values.

    def _resolve(self, value: Expr | _Memory) -> Expr | _Memory:
        """Follow variables and fields of tuples to what they stand for."""
        while True:
            if isinstance(value, Var) and value in self.values:
                value = self.values[value]
            elif isinstance(value, TupleGetItem):
                inner = self._resolve(value.value)
                if not isinstance(inner, Tuple):
                    raise unsupported("a tuple that is not made in the function", value.span)
                value = inner.fields[value.index]
            else:
                return value

    def _memory(self, value: Expr | _Memory, span: Span | None) -> _Memory:
        value = self._resolve(value)
        if isinstance(value, _Memory):
            return value
        if isinstance(value, Constant):
            key = (value.dtype, value.data.tobytes(), value.data.shape)
            name = self.constants.setdefault(key, f"{self.model}_constant_{len(self.constants)}")
            return _Memory(name, value.ty)
        raise unsupported(f"{type(value).__name__} as a tensor", span)

    def _use(self, memories: Sequence[_Memory]) -> None:
        for memory in memories:
            if memory.allocation is not None:
                self.lifetimes[memory.allocation][1] = len(self.steps)

    def _results(self, body: Expr) -> list[_Memory]:
        value = self._resolve(body)
        if isinstance(value, Tuple):
            return [memory for item in value.fields for memory in self._results(item)]
        return [self._memory(value, body.span)]

    def _place_outputs(self, results: list[_Memory]) -> Callable[[], list[str]]:
        """Let allocations that are returned live in the caller's memory; what else is returned is copied."""
        copied: list[tuple[str, _Memory]] = []
        for index, memory in enumerate(results):
            place = f"outputs->output{index}"
            self.outputs.append(_Memory(place, memory.ty))
            if memory.allocation is not None and not memory.text:
                memory.text = place
            else:
                copied.append((place, memory))
        return lambda: [f"  memcpy({place}, {memory.text}, {_bytes(memory.ty)});" for place, memory in copied]

    # Text.

    def _files(self, body: list[str], workspace: int) -> CSource:
        model, upper = self.model, self.model.upper()
        fields = [
            (
                "inputs",
                [
                    f"  const {c_type(m.ty.dtype or '')} *{m.text.removeprefix('inputs->')};{_note(m.ty)}"
                    for m in self.inputs
                ],
            ),
            (
                "outputs",
                [
                    f"  {c_type(m.ty.dtype or '')} *{m.text.removeprefix('outputs->')};{_note(m.ty)}"
                    for m in self.outputs
                ],
            ),
            ("workspaces", [f"  uint8_t *workspace; /* {upper}_WORKSPACE_BYTES bytes, aligned to 16 */"]),
            ("devices", ["  void *host; /* unused */"]),
        ]
        structs = [
            line
            for name, members in fields
            for line in (f"struct {model}_{name} {{", *(members or ["  char unused;"]), "};", "")
        ]
        entry = (
            f"int32_t {model}_run(const struct {model}_inputs *inputs, struct {model}_outputs *outputs,\n"
            f"    struct {model}_workspaces *workspaces, struct {model}_devices *devices)"
        )
        header = [
            f"#ifndef {upper}_H", f"#define {upper}_H", "", "#include <stdint.h>", "",
            f"#define {upper}_WORKSPACE_BYTES {workspace}", "", *structs,
            f"{entry};", f"const char *{model}_message(int32_t code);", "", "#endif", "",
        ]  # fmt: skip
        messages = [f'  case {i + 1}: return "{_escape(text)}";' for i, text in enumerate(self.helpers.messages)]
        prologue = ["  int32_t failed = 0;", "  uint8_t *workspace = workspaces ? workspaces->workspace : 0;"]
        unused = ["  (void)inputs; (void)outputs; (void)devices; (void)workspace; (void)failed;"]
        source = [
            f'#include "{model}.h"', "", "#include <math.h>", "#include <string.h>", "",
            *self.helpers.externs.values(), *self.helpers.definitions.values(), "",
            *(_constant(name, *key) for key, name in self.constants.items()), "",
            *(f"static {kernel.text()}\n" for kernel in self.kernels.values()),
            f"{entry} {{", *prologue, *unused, *body, "  return failed;", "}", "",
            f"const char *{model}_message(int32_t code) {{", "  switch (code) {", *messages,
            '  default: return "";', "  }", "}", "",
        ]  # fmt: skip
        return CSource({f"{model}.h": "\n".join(header), f"{model}.c": "\n".join(source)}, workspace, f"{model}_run")


def _safe(name: str) -> str:
    return "".join(char if char.isascii() and (char.isalnum() or char == "_") else "_" for char in name)


def _field(param: Var, index: int) -> str:
    return _safe(param.name) or f"input{index}"


def _escape(text: str) -> str:
    return (
        text.encode("ascii", "backslashreplace").decode().replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    )


def _note(ty: TensorType) -> str:
    return f" /* {ty.dtype}[{', '.join(map(str, _shape(ty)))}] */"


def _tensor(ty: object, var: Var) -> TensorType:
    if not isinstance(ty, TensorType):
        raise unsupported(f"{var.name!r}, which is no tensor", var.span)
    _shape(ty, var.span)
    return ty


def _shape(ty: TensorType, span: Span | None = None) -> tuple[int, ...]:
    if ty.dims is None or ty.dtype is None or not all(isinstance(dim, int) for dim in ty.dims):
        raise TargetError(
            "c: every size must be known at compile time", code="W745", span=span, hint="run BindSymbolicVars first"
        )
    return ty.dims  # type: ignore[return-value]


def _bytes(ty: TensorType) -> int:
    return int(product(_shape(ty))) * max(1, dtypes.bits(ty.dtype or "") // 8)  # type: ignore[arg-type]


def _constant(name: str, dtype: str, content: bytes, shape: tuple[int, ...]) -> str:
    values = np.frombuffer(content, dtypes.storage(dtype)).tolist() or [0]
    write = float_literal if dtypes.is_float(dtype) else int_literal
    texts = [write(value, dtype) for value in values]
    rows = ["  " + ", ".join(texts[i : i + 12]) for i in range(0, len(texts), 12)]
    note = f"/* {dtype}[{', '.join(map(str, shape))}] */"
    return f"static const {c_type(dtype)} {name}[{len(texts)}] = {{ {note}\n" + ",\n".join(rows) + "\n};"


def generate(module: IRModule, function: str = "main", *, model: str = "model", planner: Planner = greedy) -> CSource:
    """The C files of a graph function in explicit-memory form.

    Errors: TargetError W741 a construct without a C99 form, W743 external names, W744 an operator without a kernel,
    W745 sizes that are not known.
    """
    entry = module[function]
    if not isinstance(entry, Function):
        raise unsupported("an entry that is no graph function", entry.span)
    if not model.isidentifier() or not model.isascii():
        raise TargetError(f"c: {model!r} is no C name", code="W743")
    return _Program(module, entry, model, planner).generate()
