"""build: what comes after the phases. Each part's functions go to its code generator, and what drives is linked.

    part of this machine        machine code in the executable
    kind with a code generator  artifacts, linked by the loaders of their kinds
    anything else               refused, with the label, the kind and a function named

Errors: TargetError W736 a part that nothing can make code for, or that the driving part cannot call; W739 an executor
or an entry that the code generator of the driving part does not have.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace as with_fields
from pathlib import Path
from typing import Any

from weft.codegen.backends.c.library import SourceTree, source_tree
from weft.codegen.backends.c.part import compiles_here, kernels_of_part
from weft.codegen.backends.generators import ARTIFACTS, Generator, generate_artifacts
from weft.codegen.backends.llvm.machine.cross import cross_machine, emit_object
from weft.codegen.executors import entry, native, vm
from weft.codegen.executors.objects import object_artifacts, object_source
from weft.codegen.host.kernels import written_positions
from weft.codegen.host.read import read_program
from weft.codegen.plan import CARRIED, Plan, make_plan
from weft.errors import TargetError
from weft.ir.graph import BindingBlock, Call, Function, GlobalVar, Op, SeqExpr, Tuple, Var, VarBinding
from weft.ir.module import BaseFunc, IRModule
from weft.ir.node import EMPTY, replace
from weft.ir.prim_dim import kernel_signature
from weft.ir.tensor import PrimFunc
from weft.ir.types import TupleType
from weft.runtime.artifact import Artifact, ArtifactSet, Symbol
from weft.runtime.executable import EXECUTABLE, Executable, Program
from weft.target import Target
from weft.target.builtin import LLVM, C
from weft.transform.graph.dead_code import referenced_functions
from weft.transform.infra.context import PassContext
from weft.transform.infra.phases import run_phases
from weft.transform.memory.lower_to_memory import LowerToMemory
from weft.transform.target.parts import LABEL, owners

__all__ = ["EMITTERS", "build"]

Emitter = Callable[[IRModule, Plan, Mapping[str, str]], Program]


def _native(module: IRModule, plan: Plan, owner: Mapping[str, str]) -> Program:
    return native.generate(module, plan.machines, owner, plan.driver, c_functions=plan.c_functions)


def _vm(module: IRModule, plan: Plan, owner: Mapping[str, str]) -> Program:
    program = native.generate(
        module, plan.machines, owner, plan.driver, kernels_only=True, c_functions=plan.c_functions
    )
    program.driver = vm.emit_program(read_program(module), program)
    return program


EMITTERS: dict[str, Emitter] = {"native": _native, "vm": _vm, "graph": entry.graph, "aot": entry.aot}
"""For each executor, what makes a program of a lowered module whose other parts are artifacts."""


def build(
    module: IRModule, plan: Plan, members: Mapping[str, Callable[..., Any]] = EMPTY
) -> Executable | ArtifactSet:
    """The executable of a lowered module, or its artifacts where they do not run here; `members` are its Python."""
    if plan.runs_here:
        return Executable(link(module, plan), members)
    kind = plan.parts[plan.driver].kind
    if kind is C:
        return _c_sources(module, plan)
    if kind is LLVM:
        return _objects(module, plan)
    made = generate_artifacts(module, plan.target)
    owner = owners(made, plan.parts)
    for name in made:
        raise _no_generator(plan, owner[name], name, made)
    return made.attrs.get(ARTIFACTS, ArtifactSet())


def _objects(module: IRModule, plan: Plan) -> ArtifactSet:
    """Object code for another machine, with its header."""
    if plan.executor not in ("native", "aot"):
        raise TargetError(
            f"executor {plan.executor!r} cannot be had with {plan.where(plan.driver)}, which is another machine",
            code="W739",
            hint='leave the executor out, or say "aot"',
        )
    made = generate_artifacts(module, plan.target)
    owner = owners(made, plan.parts)
    for name in made:
        if owner[name] != plan.driver:
            raise _no_generator(plan, owner[name], name, made)
    part = plan.parts[plan.driver]
    program = entry.only_entry(made)
    if program is None:
        made, _ = _with_entries(made)
        program = entry.only_entry(made)
    assert program is not None
    hosted = part.triple is not None and part.triple.os == "linux"
    machine = cross_machine(part, plan.opt)
    source = object_source(
        made, program, plan.model, opt=plan.opt, fast_math=bool(part.get("fast_math")), hosted=hosted,
        c_functions=plan.c_functions, features=machine.names,
    )  # fmt: skip
    code = emit_object(machine, source.text)
    found = object_artifacts(source, code, plan.model, part.to_json())
    return made.attrs.get(ARTIFACTS, ArtifactSet()).union(found)


class SourceArtifacts(ArtifactSet):
    """The artifacts of a tree of C sources; exported to a folder they are the whole tree with its build files."""

    def __init__(self, tree: SourceTree) -> None:
        super().__init__(tree.artifacts().values())
        self.tree = tree

    def export(self, path: str | os.PathLike[str]) -> Path:
        """Write a shared object (a path that ends in .so) or the tree; ArtifactError W818 when that cannot be done."""
        if Path(path).suffix == ".so":
            return super().export(path)
        self.tree.write(path)
        return Path(path)


def _c_sources(module: IRModule, plan: Plan) -> ArtifactSet:
    """C for all parts: those of other kinds give C drivers of their own."""
    if plan.executor not in ("native", "aot"):
        raise TargetError(
            f"executor {plan.executor!r} cannot be had with {plan.where(plan.driver)}: C is compiled ahead of time",
            code="W739",
            hint='leave the executor out, or say "aot"',
        )
    made = generate_artifacts(module, plan.target)
    owner = owners(made, plan.parts)
    for name in made:
        if plan.parts[owner[name]].kind is not C:
            raise _no_generator(plan, owner[name], name, made)
    graphs = [name for name, function in made.items() if isinstance(function, Function) and not function.private]
    if not graphs:
        made, graphs = _with_entries(made)
    if len(graphs) == 1:
        return SourceArtifacts(
            source_tree(made, plan.target, name=plan.model, function=graphs[0], externs=plan.externs)
        )
    raise TargetError(
        f"c: one entry can be compiled, the module has {', '.join(graphs)}",
        code="W739",
        span=made[graphs[1]].span,
        hint="make the others private, or compile them one by one",
    )


def _with_entries(module: IRModule) -> tuple[IRModule, list[str]]:
    """A module of kernels alone with a graph function that calls its public one."""
    kernels = {name: f for name, f in module.items() if isinstance(f, PrimFunc) and not f.private}
    if len(kernels) != 1:
        raise TargetError(
            f"c: one public kernel can be compiled, the module has {', '.join(kernels) or 'none'}", code="W739"
        )
    ((name, kernel),) = kernels.items()
    written = written_positions(kernel)
    types = kernel_signature(kernel)
    params = tuple(Var(p.name or f"arg{i}", ty) for i, (p, ty) in enumerate(zip(kernel.params, types, strict=True)))
    inputs = [params[i] for i in range(len(params)) if i not in written]
    outputs = [i for i in range(len(params)) if i in written]
    if outputs != list(range(len(inputs), len(params))):
        raise TargetError(
            f"c: kernel {name!r} reads what it writes, or its outputs are not its last parameters",
            code="W739",
            span=kernel.span,
            hint="call it from a graph function with R.call_tir_inplace",
        )
    results = [types[i] for i in outputs]
    ret = results[0] if len(results) == 1 else TupleType(tuple(results))
    out = Var("out", ret)
    call = Call(Op("call_tir"), (GlobalVar(name), Tuple(tuple(inputs))), ty_args=(ret,), span=kernel.span)
    body = SeqExpr((BindingBlock((VarBinding(out, call),)),), out)
    entry = Function(tuple(inputs), body, ret, name=module.fresh_name("main"))
    made = module.with_function(entry.name, entry)
    return LowerToMemory()(made), [entry.name]


def link(module: IRModule, plan: Plan) -> Program:
    """The program of a module that this machine drives."""
    compiled = {label: kernels_of_part(label) for label, part in plan.parts.items() if compiles_here(part)}
    remaining = generate_artifacts(module, plan.target, {**compiled, **_configurations(plan)})
    owner = owners(remaining, plan.parts)
    for name in remaining:
        if owner[name] not in plan.machines:
            raise _no_generator(plan, owner[name], name, module)
    program = EMITTERS[plan.executor](remaining, plan, owner)
    program.artifacts = program.artifacts.union(remaining.attrs.get(ARTIFACTS, ArtifactSet()).values())
    return program


def _configurations(plan: Plan) -> dict[str, Generator]:
    """Code generators of the parts that are configurations of their own: each compiles its functions by itself."""
    nested = {label: part for label, part in plan.parts.items() if part.parts}

    def generator(label: str) -> Generator:
        def generate(module: IRModule, part: Target) -> Artifact:
            inner = build_nested(module, label, part, plan)
            provides = tuple(Symbol(name) for name in inner)
            return Artifact(EXECUTABLE, f"{label}.weft", inner.to_bytes(), part.to_json(), provides, codegen="weft")

        return generate

    return {label: generator(label) for label in nested}


def build_nested(module: IRModule, label: str, part: Target, outer: Plan) -> Executable:
    """The executable of the functions of a part, lowered already, by the part's own target."""
    functions: dict[str, BaseFunc] = {}
    called = {callee for _, f in module.items() for callee in referenced_functions(f)}
    for name, function in module.items():
        if isinstance(function, (Function, PrimFunc)):
            attrs = function.attrs.without(LABEL) if function.attrs.get(LABEL) == label else function.attrs
            private = function.private and (name in called or isinstance(function, PrimFunc))
            function = replace(function, attrs=attrs, private=private)
        functions[name] = function
    alone = module.with_functions(functions)
    for key in (CARRIED, ARTIFACTS):
        alone = alone.without_attr(key) if key in alone.attrs else alone
    plan = with_fields(make_plan(alone, part, None, outer.opt), externs=outer.externs)
    if not plan.runs_here:
        raise TargetError(
            f"part {label!r} is a configuration of its own, and {plan.where(plan.driver)} cannot run beside this one",
            code="W736",
        )
    with PassContext(level=0):  # what its own kinds ask for; the rest was done with the whole
        lowered = run_phases(alone, plan.passes)
    made = build(lowered, plan)
    assert isinstance(made, Executable)
    return made


def _no_generator(plan: Plan, label: str, name: str, module: IRModule | None = None) -> TargetError:
    kind = plan.parts[label].kind.name
    subject = f"function {name!r} belongs to {plan.where(label)}, and" if name else f"{plan.where(label)}:"
    return TargetError(
        f"{subject} nothing here makes code of kind {kind!r} that {plan.where(plan.driver)} can call",
        code="W736",
        span=module[name].span if module is not None and name else None,
        hint=f"give kind {kind!r} a code generator (kind.codegen), or a lowering hook",
    )
