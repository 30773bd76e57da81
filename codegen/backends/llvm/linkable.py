"""Object code that C calls, for this machine or another: a straight-line program behind one plain function.

    int32_t <model>_run(const struct <model>_inputs *, struct <model>_outputs *, struct <model>_workspaces *,
                        struct <model>_devices *)
    const char *<model>_message(int32_t code)

The interface is that of the C sources (`weft.codegen.backends.c`): 0 is success, anything else the number of a failed
check. There is no runtime, and without an operating system no heap: constants stand in the object, the caller gives the
workspace. External functions are C functions `int32_t name(void *, ...)` that give 0.

Errors: TargetError W742 for kernels that need a runtime.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.codegen.backends.base import Job, Plan
from weft.codegen.backends.c.helpers import c_type
from weft.codegen.backends.c.program import member_names
from weft.codegen.backends.c.spelling import c_comment, check_model
from weft.codegen.backends.generators import ARTIFACTS
from weft.codegen.backends.header import header_text
from weft.codegen.backends.llvm.asm.module import ModuleWriter, byte_text, quoted
from weft.codegen.backends.llvm.asm.program import Program as Emission
from weft.codegen.backends.llvm.asm.program import kernel_symbol
from weft.codegen.backends.llvm.kernel.emitter import kernel_params
from weft.codegen.backends.llvm.kernel.kernel import emit_kernel
from weft.codegen.backends.llvm.machine.cross import cross_machine, emit_object
from weft.codegen.backends.llvm.machine.machine import Machine, compile_module
from weft.codegen.backends.llvm.matrices.nest import ASKS_AT_START, USES_MATRICES
from weft.codegen.backends.llvm.sorting.library import emit_sorts
from weft.codegen.host.entry import Entry, Place, only_entry
from weft.codegen.host.entry_kernel import entry_module
from weft.codegen.host.kernels import is_noalias
from weft.codegen.host.single_kernel import with_entry
from weft.errors import TargetError
from weft.ir.kernel.prim_dim import buffer_symbols
from weft.ir.module import IRModule
from weft.ir.structure.references import referenced_functions
from weft.ir.tensor import PrimFunc
from weft.runtime.abi.frame import FRAME_WORDS, SITE
from weft.runtime.artifact import Artifact, ArtifactSet, Symbol
from weft.runtime.device.artifact_symbols import true_symbols
from weft.runtime.device.host import llvm_version
from weft.runtime.programs.library_names import LIBRARY
from weft.support.records import dataclass
from weft.transform.kernel.lower_blocks import lower_blocks
from weft.transform.kernel.lower_vector_loops import lower_vector_loops

__all__ = ["ObjectSource", "linkable", "object_artifacts", "object_code", "object_source"]


@dataclass(frozen=True)
class ObjectSource:
    """LLVM assembly of a program, its C header, and the external functions that it calls."""

    text: str
    header: str
    needs: tuple[str, ...]
    prototype: str


def object_source(
    module: IRModule,
    entry: Entry,
    model: str,
    *,
    opt: int = 2,
    hosted: bool = False,
    linux: bool = False,
    c_functions: frozenset[str] = frozenset(),
    **machine: Any,
) -> ObjectSource:
    """The program of an entry, ready for a code generator of LLVM; `hosted` where there is an operating system.

    Where that is Linux, code with matrices in registers asks it for leave as the program starts.

    `c_functions` are C functions that kernels may call beside those that are declared, `machine` what else the emission
    is told: the features of the processor, how floats are computed.
    """
    check_model(model)
    made = entry_module(module, entry, c_calls=True)
    externs = tuple(dict.fromkeys(step.name for step in entry.steps if step.kind == "extern"))
    functions = _reached(made, entry.name)
    emission = Emission(
        functions, opt, c_functions=c_functions.union(externs), links_later=True, serial=True, **machine
    )
    writer = ModuleWriter()
    for name, function in functions.items():
        emit_kernel(writer, emission, name, lower_vector_loops(lower_blocks(function)), noalias=is_noalias(function))
    for keys in sorted(emission.sorted_keys):
        emit_sorts(writer, keys)
    calls = [site["name"] for site in emission.sites if site["kind"] == "call"]
    if calls:
        raise TargetError(
            f"llvm: a kernel of {entry.name} calls {calls[0]!r}, which only a runtime can do",
            code="W742",
            span=entry.function.span,
        )
    entry_kernel = functions[entry.name]
    _constants(writer, entry)
    _entry(writer, entry, entry_kernel, model)
    _message(writer, emission.sites, model)
    text = str(writer)
    if linux and USES_MATRICES in text:
        writer.add_global(ASKS_AT_START)
        text = str(writer)
    for name in functions:
        symbol = quoted(kernel_symbol(name))
        text = text.replace(f"define i32 @{symbol}(", f"define internal i32 @{symbol}(")
    if not hosted and "@aligned_alloc(" in text:
        raise TargetError(
            f"llvm: a kernel of {entry.name} allocates memory, which there is no system for",
            code="W742",
            span=entry.function.span,
        )
    return ObjectSource(text, _header(entry, model), externs, _prototype(model))


def object_artifacts(
    source: ObjectSource, code: bytes, model: str, target: str, flags: Sequence[str]
) -> list[Artifact]:
    """Object code and its header, for C programs to link; `flags` are what LLVM was told of the machine."""
    message = Symbol(f"{model}_message", f"const char *{model}_message(int32_t code)")
    symbol = Symbol(f"{model}_run", f"int32_t {model}_run(void *, void *, void *, void *)")
    symbols, needs = (symbol, message), tuple(Symbol(name) for name in source.needs)
    facts = {"llvm": llvm_version(), "flags": list(flags), LIBRARY: model}
    made = Artifact("object", f"{model}.o", code, target, symbols, needs, "llvm", "cc", facts)
    return [
        true_symbols(made),
        Artifact(
            "header",
            f"{model}.h",
            source.header.encode(),
            target,
            codegen="llvm",
            loader="cc",
            provenance={LIBRARY: model},
        ),
    ]


def _reached(module: IRModule, name: str) -> dict[str, PrimFunc]:
    found: dict[str, PrimFunc] = {}
    pending = [name]
    while pending:
        current = pending.pop()
        function = module.functions.get(current)
        if current not in found and isinstance(function, PrimFunc):
            found[current] = function
            pending.extend(sorted(referenced_functions(function)))
    return {key: found[key] for key in module if key in found}


def _constants(writer: ModuleWriter, entry: Entry) -> None:
    for index, item in enumerate(entry.constants):
        content = np.ascontiguousarray(item.data).tobytes() or b"\0"
        writer.add_global(
            f"@weft.constant.{index} = internal constant [{len(content)} x i8] {byte_text(content)}, align 64"
        )


def _prototype(model: str) -> str:
    return (
        f"int32_t {model}_run(const struct {model}_inputs *inputs, struct {model}_outputs *outputs,\n"
        f"    struct {model}_workspaces *workspaces, struct {model}_devices *devices)"
    )


def _entry(writer: ModuleWriter, entry: Entry, kernel: PrimFunc, model: str) -> None:
    """The function that C calls: pointers out of the structures, a frame on the stack, the program."""
    symbols = [symbol.name for symbol in buffer_symbols(kernel)]
    inputs = ", ".join([*["ptr"] * len(entry.inputs), *["i64"] * len(entry.symbols)]) or "i8"
    outputs = ", ".join(["ptr"] * len(entry.outputs)) or "i8"
    lines = [
        f"define i32 @{model}_run(ptr %inputs, ptr %outputs, ptr %workspaces, ptr %devices) nounwind {{",
        f"  %frame = alloca [{FRAME_WORDS} x i64], align 8",
        f"  store [{FRAME_WORDS} x i64] zeroinitializer, ptr %frame",
    ]
    operands = ["ptr %frame"]

    def load(into: str, kind: str, structure: str, base: str, index: int) -> str:
        lines.append(f"  %{into}.p = getelementptr inbounds {{ {structure} }}, ptr %{base}, i32 0, i32 {index}")
        lines.append(f"  %{into} = load {kind}, ptr %{into}.p")
        return f"{kind} %{into}"

    operands += [load(f"in{i}", "ptr", inputs, "inputs", i) for i in range(len(entry.inputs))]
    operands += [f"ptr @weft.constant.{i}" for i in range(len(entry.constants))]
    operands += [load(f"out{i}", "ptr", outputs, "outputs", i) for i in range(len(entry.outputs))]
    operands.append(load("arena", "ptr", "ptr", "workspaces", 0))
    for name in symbols:
        place = len(entry.inputs) + entry.symbols.index(name)
        operands.append(load(f"s{place}", "i64", inputs, "inputs", place))
    types = ("ptr", *(kind for kind, _ in kernel_params(kernel)))
    spelled = writer.declare(kernel_symbol(entry.name), "i32", types)
    lines += [
        f"  %status = call i32 {spelled}({', '.join(operands)})",
        "  %fine = icmp eq i32 %status, 0",
        "  br i1 %fine, label %done, label %failed",
        "failed:",
        f"  %site.p = getelementptr i64, ptr %frame, i32 {SITE}",
        "  %site = load i64, ptr %site.p",
        "  %short = trunc i64 %site to i32",
        "  %code = add i32 %short, 1",
        "  ret i32 %code",
        "done:",
        "  ret i32 0",
        "}",
        "",
    ]
    writer.define(f"{model}_run", "\n".join(lines))


def _message(writer: ModuleWriter, sites: list[dict[str, Any]], model: str) -> None:
    """The texts of failed checks; numbers that only the run knows are left out."""
    texts = []
    for site in sites:
        parts = site.get("message", ())
        said = "".join(part if isinstance(part, str) else "?" for part in parts)
        texts.append(f"{site.get('kind', '')}: {said}")
    lines = [f"define ptr @{model}_message(i32 %code) nounwind {{", "  switch i32 %code, label %other ["]
    for index, text in enumerate(texts):
        content = text.encode("utf-8") + b"\0"
        writer.add_global(
            f"@weft.message.{index} = internal constant [{len(content)} x i8] {byte_text(content)}, align 1"
        )
        lines.append(f"    i32 {index + 1}, label %m{index}")
    lines.append("  ]")
    for index in range(len(texts)):
        lines += [f"m{index}:", f"  ret ptr @weft.message.{index}"]
    writer.add_global('@weft.message.none = internal constant [1 x i8] c"\\00", align 1')
    lines += ["other:", "  ret ptr @weft.message.none", "}", ""]
    writer.define(f"{model}_message", "\n".join(lines))


def _header(entry: Entry, model: str) -> str:
    upper = model.upper()
    names = member_names([param.name for param in entry.function.params])
    sizes = member_names([f"{name}_size" for name in entry.symbols], names)
    inputs = [
        f"  const {_pointer(place)}{name};{_note(place)}" for name, place in zip(names, entry.inputs, strict=True)
    ]
    inputs += [f"  int64_t {name};" for name in sizes]
    outputs = [f"  {_pointer(place)}output{i};{_note(place)}" for i, place in enumerate(entry.outputs)]
    fields = {
        "inputs": inputs or ["  char unused;"],
        "outputs": outputs or ["  char unused;"],
        "workspaces": [f"  uint8_t *workspace; /* {upper}_WORKSPACE_BYTES bytes, aligned to 64 */"],
        "devices": ["  void *host; /* unused */"],
    }
    structures = [
        line for name, members in fields.items() for line in (f"struct {model}_{name} {{", *members, "};", "")
    ]
    return header_text(model, [("WORKSPACE", max(1, entry.arena_bytes()))], structures, _prototype(model))


def _pointer(place: Place) -> str:
    try:
        return f"{c_type(place.dtype)} *"
    except KeyError:  # a float that C has no name for: its bits
        return "void *"


def _note(place: Place) -> str:
    return " " + c_comment(f"{place.dtype}[{', '.join(map(str, place.shape))}]")


def linkable(module: IRModule, entry: Entry, plan: Plan) -> list[Artifact]:
    """The program of an entry for C programs of this machine to link: object code and a header."""
    machine = plan.machines[plan.driver]
    model = plan.model
    options: dict[str, Any] = {"opt": plan.opt, "c_functions": plan.c_functions, "features": machine.names}
    options |= {"fast_math": machine.fast_math, "strict_math": machine.strict_math}
    model_of_machine = machine.described().machine
    options |= {"gathers": model_of_machine.gather, "sorts": model_of_machine.sort_bits}
    told = Machine(machine.cpu, machine.features, plan.opt)
    source = object_source(module, entry, model, hosted=True, linux="-linux" in told.triple, **options)
    code, _ = compile_module(told, source.text)
    flags = [f"-mtriple={told.triple}", f"-mcpu={told.cpu}", f"-mattr={told.features}"]
    return object_artifacts(source, code, model, plan.parts[plan.driver].to_json(), flags)


def object_code(job: Job) -> ArtifactSet:
    """Object code for another machine, with its header."""
    made, _ = job.remaining(lambda label: label == job.plan.driver)
    part = job.plan.parts[job.plan.driver]
    program = only_entry(made)
    if program is None:
        made, _ = with_entry(made)
        program = only_entry(made)
    assert program is not None
    machine = cross_machine(part, job.plan.opt)
    source = object_source(
        made,
        program,
        job.plan.model,
        opt=job.plan.opt,
        hosted=job.plan.hosted,
        linux=job.plan.hosted and "-linux" in machine.triple,
        c_functions=job.plan.c_functions,
        features=machine.names,
        gathers=part.machine.gather,
        sorts=part.machine.sort_bits,
        fast_math=bool(part.get("fast_math")),
        strict_math=bool(part.get("strict_math")),
    )
    code = emit_object(machine, source.text)
    flags = [f"-mtriple={machine.triple}", f"-mcpu={machine.cpu}", f"-mattr={machine.features}"]
    found = object_artifacts(source, code, job.plan.model, part.to_json(), flags)
    return made.attrs.get(ARTIFACTS, ArtifactSet()).union(found)
