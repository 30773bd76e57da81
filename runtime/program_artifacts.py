"""Programs as sets of artifacts: what compiling makes and executables are made of, in files and in modules.

    program.json     which artifacts belong together: sites, names of objects and constants, target
    signatures.json  the functions (`weft.runtime.abi.json_form`)
    code<i>.o        object code; provides and needs what its table of symbols says
    constant<i>.bin  the bytes of constants, each once
    driver.json      the program of an executor that is no machine code

Places in the source text and decisions, which name variables, are no part of the artifacts: a module gives the same
ones wherever its text stood.

Errors: ArtifactError W823 for artifacts that are no program, or lack a part of it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, cast

import numpy as np

from weft.errors import ArtifactError
from weft.runtime.abi.json_form import (
    parameter_from_json,
    signature_from_json,
    signature_to_json,
    site_from_json,
    site_to_json,
    type_from_json,
)
from weft.runtime.abi.scalars import storage
from weft.runtime.abi.types import Signature
from weft.runtime.artifact import PROGRAM, Artifact, ArtifactSet, Symbol
from weft.runtime.device.artifact_symbols import symbols_of
from weft.runtime.merging import merged_programs, split_programs
from weft.runtime.programs.bytecode import program_bytes, read_functions
from weft.runtime.programs.program import Program, is_for_c
from weft.support.array_memory import content_bytes

__all__ = [
    "EXECUTABLE",
    "PROGRAM",
    "Program",
    "artifact_program",
    "carried_artifacts",
    "library_artifacts",
    "program_artifacts",
    "program_of_file",
    "programs_of",
    "public_signatures",
]

EXECUTABLE = "weft-executable"
"""The kind of an artifact that is an executable of its own."""
_OWN = (PROGRAM, "signatures", "object", "constants")


def program_artifacts(program: Program) -> ArtifactSet:
    """The artifacts that a program and those beside it consist of."""
    if not program.beside:
        return _artifacts_alone(program)
    return _together([*program.beside, program])[0]


def library_artifacts(programs: Sequence[Program], artifacts: ArtifactSet) -> ArtifactSet:
    """The library for C to link among the artifacts of programs; ArtifactError W819 where one of them has none."""
    absent = [item for item in programs if not is_for_c(item)]
    if absent:
        names = ", ".join(item.name for program in absent for item in public_signatures(program))
        raise ArtifactError(
            f"C programs cannot call {names}: compiled for calls from Python, and what is saved, or linked into a"
            " module, does not hold the model that a library for C is made of",
            code="W819",
            hint='export before saving; what executor="aot" makes keeps its library, also when it is merged',
        )
    return ArtifactSet(item for item in artifacts.values() if item.loader == "cc")


def _together(programs: list[Program], aside: ArtifactSet | None = None) -> tuple[ArtifactSet, list[str]]:
    numbers = {id(item): number for number, item in enumerate(programs)}
    used = ({name: (numbers[id(p)], own) for name, (p, own) in item.uses.items()} for item in programs)
    return merged_programs(zip(map(_artifacts_alone, programs), used, strict=True), aside)


def carried_artifacts(program: Program) -> tuple[ArtifactSet, dict[str, list[str]]]:
    """What the file of a program holds besides: artifacts of others, programs beside it, and what it uses of them."""
    if not program.beside:
        return ArtifactSet(program.artifacts.values()), {}
    artifacts, names = _together(program.beside, ArtifactSet(program.artifacts.values()))
    places = {id(item): name for item, name in zip(program.beside, names, strict=True)}
    return artifacts, {name: [places[id(item)], own] for name, (item, own) in program.uses.items()}


def program_of_file(
    artifacts: ArtifactSet, uses: Mapping[str, Sequence[str]] = MappingProxyType({}), **fields: Any
) -> Program:
    """The program of the fields that its file holds; errors as `artifact_program`."""
    programs, alone = programs_of(artifacts)
    return Program(**fields, artifacts=alone, beside=list(programs.values()), uses=_uses(uses, programs))


def _uses(uses: Mapping[str, Sequence[str]], programs: Mapping[str, Program]) -> dict[str, tuple[Program, str]]:
    return {str(name): (programs[place], str(own)) for name, (place, own) in uses.items()}


def _artifacts_alone(program: Program) -> ArtifactSet:
    target = _target_of(program.provenance, ())
    signatures = program_bytes({"functions": [signature_to_json(function) for function in program.functions]})
    public = tuple(Symbol(function.name) for function in public_signatures(program))
    facts = _facts_of(program, program.provenance.get("functions", ()))
    made = [Artifact("signatures", "signatures.json", signatures, target, codegen="weft", provenance=facts)]
    objects = [f"code{index}.o" for index in range(len(program.objects))]
    for name, code in zip(objects, program.objects, strict=True):
        provides, needs = symbols_of(code)
        own = _object_facts(program, {part for symbol in provides for part in symbol.name.split(".")})
        place = _target_of(program.provenance, own.get("functions", ()))
        made.append(Artifact("object", name, code, place, provides, needs, program.kind, provenance=own))
    constants = _constants_of(program)
    made.extend({item.name: item for item in constants}.values())
    if program.driver is not None:
        content = program_bytes(program.driver)
        kind = str(program.driver["format"])
        made.append(Artifact(kind, "driver.json", content, target, codegen="weft", provenance=facts))
    whole = program_bytes(
        {
            "sites": [site_to_json(site) for site in program.sites],
            "constants": [item.name for item in constants],
            "objects": objects,
            "target": list(program.target),
            "python": program.python,
            "threads": program.threads,
            "kind": program.kind,
            "driver": None if program.driver is None else "driver.json",
            **({} if program.names is None else {"names": program.names}),
        }
    )
    made.append(
        Artifact(
            PROGRAM,
            "program.json",
            whole,
            target,
            public,
            codegen="weft",
            loader=PROGRAM,
            provenance=program.provenance,
        )
    )
    return ArtifactSet([*made, *program.artifacts.values()])


def _constants_of(program: Program) -> list[Artifact]:
    """The artifact of each constant; those with the same bytes, dtype and shape have one."""
    found: dict[Any, list[tuple[np.ndarray, Artifact]]] = {}
    constants: list[Artifact] = []
    for array, dtype in program.constants:
        flat = content_bytes(array)
        alike = found.setdefault((dtype, array.shape, flat[:_HEAD].tobytes()), [])
        same = next((artifact for other, artifact in alike if np.array_equal(other, flat)), None)
        if same is None:
            name = f"constant{sum(map(len, found.values()))}.bin"
            facts = {"dtype": dtype, "shape": list(array.shape)}
            shared = flat.nbytes > _HEAD and not array.flags.writeable
            content = cast(bytes, flat.data.toreadonly()) if shared else flat.tobytes()
            same = Artifact("constants", name, content, codegen="weft", provenance=facts)
            alike.append((flat, same))
        constants.append(same)
    return constants


_HEAD = 4096  # bytes that mostly tell constants apart


def _target_of(facts: Mapping[str, Any], functions: Iterable[str]) -> str:
    """The target of the code of some functions as JSON: that of their part, else of the part that drives."""
    parts, labels = facts.get("parts", {}), facts.get("labels", {})
    label = next((labels[name] for name in functions if name in labels), facts.get("driver", ""))
    return str(parts.get(label, "{}"))


def _facts_of(program: Program, names: Collection[str]) -> dict[str, Any]:
    """What an artifact was made from and by: of the whole program's, what is about these functions."""
    facts = {key: program.provenance[key] for key in ("weft", "llvm", "opt") if key in program.provenance}
    for key in ("functions", "decisions"):
        known = program.provenance.get(key, {})
        facts[key] = {name: known[name] for name in sorted(names) if name in known}
    return facts


def _object_facts(program: Program, names: Collection[str]) -> dict[str, Any]:
    """What one object was made from and by, the functions that it holds and the flags of LLVM."""
    triple, cpu, features = program.target
    return {**_facts_of(program, names), "flags": [f"-mtriple={triple}", f"-mcpu={cpu}", f"-mattr={features}"]}


def public_signatures(program: Program) -> list[Signature]:
    """The functions that a program has for callers, under the names that they see; those of its executor too."""
    found = {item.name: item for item in program.functions}
    driver = program.driver or {}
    if "functions" in driver:
        found |= {name: function.signature for name, function in read_functions(driver).items()}
    elif driver:
        params = tuple(map(parameter_from_json, driver["params"]))
        name = str(driver["name"])
        found[name] = Signature(name, "graph", "", params, type_from_json(driver["result"]))
    public = {item.name: item for item in found.values() if not item.private}
    return [item if item.name == name else replace(item, name=name) for name, item in program.seen(public).items()]


def artifact_program(artifacts: ArtifactSet) -> Program:
    """The program that artifacts are, the last of several with the others beside it.

    Raises: ArtifactError W823 for artifacts that are no program, or lack a part of it, W814 for a function that two
    programs provide.
    """
    programs, _ = programs_of(artifacts)
    if not programs:
        hint = "a module that was compiled for this machine has one; C sources and other objects are exported"
        raise ArtifactError("the artifacts hold no program to load", code="W823", hint=hint)
    *beside, last = programs.values()
    last.beside = beside
    return last


def programs_of(artifacts: ArtifactSet) -> tuple[dict[str, Program], ArtifactSet]:
    """The programs among artifacts by name, each after those that it uses, and the artifacts of none."""
    programs: dict[str, Program] = {}
    mine: set[str] = set()
    for item, own in split_programs(artifacts):
        try:
            whole = json.loads(item.data)
            program = _program(whole, own, dict(item.provenance))
            program.uses = _uses(whole.get("uses", {}), programs)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError) as error:
            raise ArtifactError(f"{item.name!r} is no program: {error}", code="W823") from None
        programs[item.name] = program
        mine.update(own)
    return programs, ArtifactSet(item for name, item in artifacts.items() if name not in mine.union(programs))


def _program(whole: Mapping[str, Any], artifacts: ArtifactSet, provenance: dict[str, Any]) -> Program:
    signatures = json.loads(artifacts[str(whole.get("signatures", "signatures.json"))].data)["functions"]
    names = {*whole["objects"], *whole["constants"], whole["driver"] or ""}
    others = [item for item in artifacts.values() if item.kind not in _OWN or item.loader == "cc"]
    return Program(
        functions=[signature_from_json(item) for item in signatures],
        sites=[site_from_json(item) for item in whole["sites"]],
        constants=[_constant(artifacts[name]) for name in whole["constants"]],
        objects=[artifacts[name].data for name in whole["objects"]],
        target=(str(whole["target"][0]), str(whole["target"][1]), str(whole["target"][2])),
        python=list(map(str, whole["python"])),
        threads=bool(whole["threads"]),
        kind=str(whole["kind"]),
        driver=_driver(json.loads(artifacts[str(whole["driver"])].data)) if whole["driver"] else None,
        provenance=provenance,
        artifacts=ArtifactSet(item for item in others if item.name not in names),
        names={str(name): str(own) for name, own in whole["names"].items()} if "names" in whole else None,
    )


def _constant(artifact: Artifact) -> tuple[np.ndarray, str]:
    dtype = str(artifact.provenance["dtype"])
    return np.frombuffer(artifact.data, storage(dtype)).reshape(artifact.provenance["shape"]), dtype


def _driver(data: dict[str, Any]) -> dict[str, Any]:
    """The program of an executor, with no places in the source text where it had some."""
    if "functions" in data:
        for function in data["functions"]:
            function["code"] = [[*i, -1] if i[0] in ("call", "size") else i for i in function["code"]]
        data["spans"] = []
    return data
