"""A source tree of C for one or several models: kernels by the parts of the target, build files, metadata.

    include/<model>.h            the public header           src/<model>_ops_<label>.c   kernels of one part
    src/<model>_ops.h            what the sources share      src/<model>_main.c          the entry
    src/<model>_data.c           the constants               Makefile, CMakeLists.txt    flags for each file
    include/<library>.h          for several models: their headers, and memory that suffices for each
    metadata.json                version, models, targets, memory by function and operator, files

Sources of other code generators (artifacts of kind `c` and `header`) join the tree. Parts that are linked into one
image must pass floats in one way: `hard` beside a part without a floating-point unit is refused.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from weft.codegen.backends.c.files import apart, ops_file, together
from weft.codegen.backends.c.memory import Planner, greedy, pools_of
from weft.codegen.backends.c.program import Memory, Program, size_of, static_shape
from weft.codegen.backends.c.spelling import check_model, plain_word
from weft.codegen.backends.c.steps import read_program
from weft.codegen.backends.generators import provenance
from weft.errors import ArtifactError, TargetError
from weft.ir.module import IRModule
from weft.runtime.artifact import Artifact, ArtifactSet, Symbol
from weft.runtime.programs.library_names import LIBRARY, UNNAMED
from weft.runtime.safe_archive import write_whole
from weft.support.records import dataclass
from weft.target import Target
from weft.target.triple import Triple
from weft.version import VERSION

__all__ = ["CSource", "SourceTree", "generate", "source_tree"]

LAYOUT = 1
"""The version of the layout of the tree and of metadata.json."""


@dataclass(frozen=True)
class CSource:
    """Generated files by name, and the bytes of workspace that a call needs."""

    files: dict[str, str]
    workspace_bytes: int
    entry: str


def generate(
    module: IRModule,
    function: str = "main",
    *,
    model: str = UNNAMED,
    planner: Planner = greedy,
    target: Target | str = "c",
    externs: Collection[str] = (),
) -> CSource:
    """One header and one source for a graph function in explicit-memory form.

    Errors: as `weft.codegen.backends.c.steps.read_program`.
    `externs` names C functions that it may call beside those that are declared (`weft.ir.kernel.externs`).

    """
    wanted = Target(target)
    options = {"pools": pools_of(wanted), "planner": planner, "externs": externs}
    program = read_program(module, function, model=model, target=wanted, **options)
    return CSource(together(program), sum(program.sizes.values()), f"{model}_run")


@dataclass(frozen=True)
class Linkage:
    """The symbols that a source defines for others, and those that it leaves to the linker."""

    provides: tuple[Symbol, ...] = ()
    needs: tuple[Symbol, ...] = ()


@dataclass(frozen=True)
class SourceTree:
    """The files of a library by path, which part each source is compiled for, what metadata.json says, the symbols."""

    name: str
    files: dict[str, str]
    labels: dict[str, str]
    parts: dict[str, Target]
    metadata: dict[str, Any]
    provenance: dict[str, Any] = field(default_factory=dict)
    linkage: dict[str, Linkage] = field(default_factory=dict)

    @property
    def sources(self) -> list[str]:
        """The C files, in order."""
        return [path for path in self.files if path.endswith(".c")]

    def flags(self, path: str) -> list[str]:
        """The options of GCC that make it compile a source for its part."""
        part = self.parts.get(self.labels.get(path, ""))
        return [plain_word(flag, "the option") for flag in part.gcc_flags()] if part is not None else []

    def write(self, folder: str | os.PathLike[str]) -> None:
        """Write the tree; ArtifactError W818 when that cannot be done."""
        try:
            for path, text in self.files.items():
                place = Path(folder, path)
                place.parent.mkdir(parents=True, exist_ok=True)
                write_whole(place, text.encode())
        except OSError as error:
            raise ArtifactError(f"cannot write {os.fspath(folder)!r}: {error.strerror}", code="W818") from None

    def artifacts(self) -> ArtifactSet:
        """The files as artifacts, sources with the target of their part; an export to a folder gives the tree again."""
        return ArtifactSet(self._artifact(path) for path in self.files)

    def _artifact(self, path: str) -> Artifact:
        part = self.parts.get(self.labels.get(path, ""))
        linkage = self.linkage.get(path, Linkage())
        folder, _, name = path.rpartition("/")
        return Artifact(
            {".c": "c", ".h": "header"}.get(path[-2:], "build"),
            name,
            self.files[path].encode(),
            part.to_json() if part is not None else "{}",
            linkage.provides,
            linkage.needs,
            codegen="c",
            loader="cc",
            provenance={
                **self.provenance,
                "flags": [*self.flags(path), f"-std={_standard(self)}"],
                "folder": folder,
                LIBRARY: self.name,
            },
        )


def source_tree(
    models: IRModule | Mapping[str, IRModule],
    target: Target | str,
    *,
    name: str = UNNAMED,
    function: str | Mapping[str, str] = "main",
    planner: Planner = greedy,
    externs: Collection[str] = (),
    runtime: str | None = None,
) -> SourceTree:
    """The C of one model (called `name`), or of several by name, for the parts of a target.

    `function` is the entry of every model, or of each by its name. With the runtime "host" the build files make a
    shared object, too.
    `externs` names C functions that they may call beside those that are declared (`weft.ir.kernel.externs`).

    Errors: as `read_program`, TargetError W748 for parts that cannot be linked with each other.
    """
    wanted = Target(target)
    modules = {name: models} if isinstance(models, IRModule) else dict(models)
    if not modules or (name in modules and not isinstance(models, IRModule)):
        raise TargetError(f"c: a library {name!r} needs models of other names", code="W743")
    check_model(name)
    _check_linked(wanted)
    entries = dict.fromkeys(modules, function) if isinstance(function, str) else function
    pools = pools_of(wanted)
    programs = [
        read_program(module, entries[model], model=model, target=wanted, pools=pools, planner=planner, externs=externs)
        for model, module in modules.items()
    ]
    files: dict[str, str] = {}
    labels: dict[str, str] = {}
    linkage: dict[str, Linkage] = {}
    for program in programs:
        files.update(apart(program))
        labels.update(_labels(program))
        linkage.update(_linkage(program))
        for artifact in program.artifacts:
            _join(files, labels, artifact, program)
    if len(programs) > 1:
        files[f"include/{name}.h"] = _library_header(name, programs)
    parts = programs[0].parts
    tree = SourceTree(name, files, labels, parts, _metadata(name, wanted, programs, files, labels))
    files["Makefile"] = _makefile(tree, shared=runtime == "host")
    files["CMakeLists.txt"] = _cmake(tree, shared=runtime == "host")
    files["metadata.json"] = json.dumps(tree.metadata, indent=1) + "\n"
    made_from = {model: provenance(module)["functions"] for model, module in modules.items()}
    return SourceTree(name, files, labels, parts, tree.metadata, {"weft": VERSION, "functions": made_from}, linkage)


def _labels(program: Program) -> dict[str, str]:
    model = program.model
    return {
        f"src/{model}_main.c": program.main_label,
        f"src/{model}_data.c": program.main_label,
        **{ops_file(model, label): label for label in program.labels},
    }


def _linkage(program: Program) -> dict[str, Linkage]:
    """The symbols of the entry, of the kernels of each part, of the sources that other code generators made."""
    model = program.model
    entry = Symbol(f"{model}_run", f"int32_t {model}_run(void *, void *, void *, void *)")
    return {
        f"src/{model}_main.c": Linkage((entry,), _declared(program.externs)),
        **{ops_file(model, label): Linkage((), _declared(program.helpers[label].externs)) for label in program.labels},
        **{_path(item): Linkage(item.provides, item.needs) for item in program.artifacts},
    }


def _declared(externs: Mapping[str, str]) -> tuple[Symbol, ...]:
    """The symbols of declarations as they stand in C: `extern int32_t f(float);`."""
    return tuple(Symbol(name, text.removeprefix("extern ").rstrip(";")) for name, text in externs.items())


def _path(artifact: Artifact) -> str:
    return f"{'include' if artifact.kind == 'header' else 'src'}/{plain_word(artifact.name, 'the file name')}"


def _join(files: dict[str, str], labels: dict[str, str], artifact: Artifact, program: Program) -> None:
    """Sources that another code generator made for functions of the program."""
    if artifact.kind not in ("c", "header"):
        raise TargetError(
            f"c: artifact {artifact.name!r} of kind {artifact.kind!r} cannot be part of C sources",
            code="W747",
            hint="its code generator must give C as well: a driver that the entry calls",
        )
    path = _path(artifact)
    text = artifact.data.decode()
    if files.setdefault(path, text) != text:
        raise TargetError(f"c: two sources are named {path!r}", code="W743")
    labels[path] = program.main_label  # the host runs the driver of a device


def _check_linked(target: Target) -> None:
    """TargetError W748 for parts that cannot be one image: floats passed in different ways, several standards of C."""
    ways: dict[str, str] = {}
    standards = {str(part.get("std")): label for label, part in _leaves(target) if "std" in part.kind.fields}
    if len(standards) > 1:
        raise TargetError(
            f"parts {standards['c99']!r} and {standards['c11']!r} are compiled together, by one standard of C",
            code="W748",
            hint="give both the same -std",
        )
    for label, part in _leaves(target):
        cpu = part.cpu
        if cpu is not None and cpu.arch.startswith("thumb"):
            flag = next(item for item in part.gcc_flags() if item.startswith("-mfloat-abi="))
            ways["hard" if flag.endswith("=hard") else "soft"] = label
    if len(ways) > 1:
        raise TargetError(
            f"parts {ways['soft']!r} and {ways['hard']!r} pass floats in different ways and cannot be linked",
            code="W748",
            hint=f"give part {ways['hard']!r} -mfloat-abi=softfp",
        )


def _leaves(target: Target) -> list[tuple[str, Target]]:
    if not target.parts:
        return [("", target)]
    return [(inner or label, leaf) for label, part in target.parts.items() for inner, leaf in _leaves(part)]


def _library_header(name: str, programs: Sequence[Program]) -> str:
    """All headers, and pools that suffice for each model (one runs at a time)."""
    upper = name.upper()
    pools = dict.fromkeys(pool for program in programs for pool in program.sizes)
    sizes = {pool: max(program.sizes.get(pool, 0) for program in programs) for pool in pools}
    lines = [f"#ifndef {upper}_H", f"#define {upper}_H", ""]
    lines += [f'#include "{program.model}.h"' for program in programs]
    lines += ["", *(f"#define {upper}_{pool.upper()}_BYTES {size}" for pool, size in sizes.items()), "", "#endif", ""]
    return "\n".join(lines)


# Metadata.


def _metadata(
    name: str, target: Target, programs: Sequence[Program], files: Mapping[str, str], labels: Mapping[str, str]
) -> dict[str, Any]:
    pools = dict.fromkeys(pool for program in programs for pool in program.sizes)
    return {
        "version": LAYOUT,
        "weft": VERSION,
        "library": name,
        "target": target.to_dict(),
        "memory": {pool: max(program.sizes.get(pool, 0) for program in programs) for pool in pools},
        "models": {program.model: _model_metadata(program) for program in programs},
        "files": {path: labels.get(path, "") for path in sorted(files)},
    }


def _model_metadata(program: Program) -> dict[str, Any]:
    return {
        "entry": f"{program.model}_run",
        "targets": {label: part.to_dict() for label, part in program.parts.items()},
        "inputs": [_tensor(memory) for memory in program.inputs],
        "outputs": [_tensor(memory) for memory in program.outputs],
        "memory": {
            "functions": {
                program.function: {
                    "pools": dict(program.sizes),
                    "constants": program.constant_bytes,
                    "io": sum(size_of(memory.ty) for memory in [*program.inputs, *program.outputs]),
                }
            },
            "operators": [
                {"name": item.name, "target": item.label, "scratch": item.scratch} for item in program.operators
            ],
        },
    }


def _tensor(memory: Memory) -> dict[str, Any]:
    name = memory.text.partition("->")[2]
    return {"name": name, "dtype": memory.ty.dtype, "shape": list(static_shape(memory.ty)), "bytes": size_of(memory.ty)}


# Build files.

_STRICT = "-pedantic -Wall -Wextra -Werror -ffp-contract=off -O2 -ffunction-sections -fdata-sections"


def _standard(tree: SourceTree) -> str:
    """The language standard that the parts of C ask for."""
    return max((str(part.get("std")) for part in tree.parts.values() if "std" in part.kind.fields), default="c99")


def _makefile(tree: SourceTree, *, shared: bool) -> str:
    triple = _cross(tree)
    objects = " ".join(f"{path[:-2]}.o" for path in tree.sources)
    lines = [
        f"# {tree.name}: a static library. CROSS is the prefix of the compiler's name.",
        f"CROSS ?= {triple}",
        "CC := $(CROSS)gcc",
        "AR := $(CROSS)ar",
        f"CFLAGS := -std={_standard(tree)} {_STRICT} -Iinclude -Isrc{' -fPIC' if shared else ''}",
        "",
        *([f"all: lib{tree.name}.a lib{tree.name}.so", ""] if shared else []),
        f"lib{tree.name}.a: {objects}",
        "\t$(AR) rcsD $@ $^",
        "",
    ]
    if shared:
        lines += [f"lib{tree.name}.so: {objects}", "\t$(CC) -shared -o $@ $^ -lm", ""]
    for path in tree.sources:
        lines += [f"{path[:-2]}.o: {path}", f"\t$(CC) {' '.join([*tree.flags(path), '$(CFLAGS)'])} -c $< -o $@", ""]
    made = f"lib{tree.name}.a lib{tree.name}.so" if shared else f"lib{tree.name}.a"
    lines += ["clean:", f"\trm -f {made} {objects}", "", ".PHONY: all clean" if shared else ".PHONY: clean", ""]
    return "\n".join(lines)


def _cmake(tree: SourceTree, *, shared: bool) -> str:
    lines = [
        "cmake_minimum_required(VERSION 3.10)",
        f"project({tree.name} C)",
        f"add_library({tree.name} {'SHARED' if shared else 'STATIC'} {' '.join(tree.sources)})",
        f"target_include_directories({tree.name} PUBLIC include PRIVATE src)",
        f"target_compile_options({tree.name} PRIVATE -std={_standard(tree)} {_STRICT})",
    ]
    for path in tree.sources:
        if tree.flags(path):
            lines.append(
                f'set_source_files_properties({path} PROPERTIES COMPILE_OPTIONS "{";".join(tree.flags(path))}")'
            )
    return "\n".join([*lines, ""])


def _cross(tree: SourceTree) -> str:
    """The usual prefix of the compiler for the first part, empty for the machine at hand."""
    triple: Triple | None = next((part.triple for part in tree.parts.values() if part.triple is not None), None)
    if triple is None:
        return ""
    if triple.arch.startswith("thumb"):
        return "arm-none-eabi-"
    if triple.arch == "armv7a":
        return f"arm-linux-{triple.env}-"
    known = {"aarch64": "aarch64-linux-gnu-", "riscv64": "riscv64-linux-gnu-", "riscv32": "riscv64-unknown-elf-"}
    return known.get(triple.arch, "")
