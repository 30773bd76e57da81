"""The file of an executable: a zip without pickle, every part of which is hashed, read by `safe_archive`.

manifest.json      {format, version, functions, sites, constants: [{dtype, shape, file}], objects, target, hashes}
manifest.sha256    the hash of manifest.json
code/<i>.o         object code, which holds the hash of the manifest it belongs to
data/<sha256>      one constant, its bytes in row order, from a line of the processor's cache on
source/<kind>      the generated text
artifacts.zip      what other code generators made, where there is any

Nothing else is in the file, and the manifest is checked as a whole (`weft.runtime.manifest`) before anything is made
of it. Constants are not read but mapped, and used where they are: the file is replaced, not written again, while
programs run that were loaded from it.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np

from weft.errors import ArtifactError
from weft.runtime.abi.frame import BINDING
from weft.runtime.abi.json_form import signature_from_json, signature_to_json, site_from_json, site_to_json
from weft.runtime.abi.scalars import storage
from weft.runtime.artifact import ArtifactSet
from weft.runtime.device.host import host
from weft.runtime.executable import Executable
from weft.runtime.manifest import check_manifest
from weft.runtime.program_artifacts import carried_artifacts, program_of_file
from weft.runtime.safe_archive import DAMAGE, Limits, map_archive, open_file, packing, read_archive
from weft.support.array_memory import ALIGNMENT, content_bytes

__all__ = ["damaged", "load", "load_bytes", "read", "write"]

FORMAT, VERSION = "weft-executable", 6
ARTIFACTS = "artifacts.zip"
MANIFEST, SEAL = "manifest.json", "manifest.sha256"
_AS_THEY_ARE = ("data/", ARTIFACTS)
_MAPS = os.name == "posix"
"""Whether a file that is mapped can be removed, as temporary ones are; where it cannot, constants are read."""
_DATE = (1980, 1, 1, 0, 0, 0)  # the same program gives the same bytes


def write(path: str | PathLike[str], program: Any) -> None:
    """Write a program to a file, whole or not at all."""
    parts: dict[str, bytes | memoryview] = {}
    constants = []
    for array, dtype in program.constants:
        data = content_bytes(array).data
        name = f"data/{hashlib.sha256(data).hexdigest()}"
        parts[name] = data
        constants.append({"dtype": dtype, "shape": list(array.shape), "file": name})
    parts.update({f"source/{i}.ll": text.encode() for i, text in enumerate(program.sources)})
    carried, uses = carried_artifacts(program)
    if len(carried):
        parts[ARTIFACTS] = carried.to_bytes()
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "functions": [signature_to_json(function) for function in program.functions],
        "sites": [site_to_json(site) for site in program.sites],
        "constants": constants,
        "objects": len(program.objects),
        "sources": len(program.sources),
        "target": list(program.target),
        **program.facts(),
        **({} if program.names is None else {"names": program.names}),
        **({"uses": uses} if uses else {}),
        "bound": any(BINDING in code for code in program.objects),
        "hashes": {name: hashlib.sha256(data).hexdigest() for name, data in parts.items()},
    }
    binding = _binding(json.loads(json.dumps(manifest)))
    for index, code in enumerate(program.objects):
        parts[f"code/{index}.o"] = bound = code.replace(BINDING, binding)
        manifest["hashes"][f"code/{index}.o"] = hashlib.sha256(bound).hexdigest()
    text = json.dumps(manifest, indent=1).encode()
    files = {MANIFEST: text, SEAL: hashlib.sha256(text).hexdigest().encode(), **parts}
    temporary = f"{os.fspath(path)}.{os.getpid()}.part"
    try:
        with open(temporary, "wb") as out, zipfile.ZipFile(out, "w") as file:
            for name, data in files.items():
                info = zipfile.ZipInfo(name, _DATE)
                if isinstance(data, memoryview) or name.startswith(_AS_THEY_ARE):
                    info.extra = _gap(out.tell() + _BEFORE + len(name))
                else:
                    info.compress_type = packing(data)
                file.writestr(info, data)
        os.replace(temporary, path)
    except OSError as error:
        raise ArtifactError(f"cannot write {os.fspath(path)}: {error.strerror or error}", code="W804") from None
    finally:
        if os.path.exists(temporary):
            os.remove(temporary)


_BEFORE = 30
"""The bytes of the head of an entry without its name."""


def _gap(place: int) -> bytes:
    """What stands between the name of an entry and its data, at a place, so that these begin where a line does."""
    size = -(place + 4) % ALIGNMENT
    return struct.pack("<2H", 0, size) + bytes(size)


def _binding(manifest: Mapping[str, Any]) -> bytes:
    """The hash of all that a manifest says but the hashes of the code, which holds it."""
    hashes = {name: digest for name, digest in manifest["hashes"].items() if not name.startswith("code/")}
    return hashlib.sha256(json.dumps({**manifest, "hashes": hashes}, sort_keys=True).encode()).digest()


def read(path: str | PathLike[str], build: Callable[..., Any], storage: Callable[[str], np.dtype[Any]]) -> Any:
    """Read a program from a file; `build` makes it of its parts."""
    if not isinstance(path, (str, os.PathLike)):
        raise ArtifactError(f"a file is named by its path, got {type(path).__name__}", code="W800")
    name = os.fspath(path)
    try:
        with open_file(path) as file:
            size = os.fstat(file.fileno()).st_size
            files, arrays = _files(file, name)
        manifest = _manifest(files, name)
        check_manifest(manifest, {*files, *arrays} - {MANIFEST, SEAL})
        _check_parts(manifest["hashes"], {**files, **arrays}, name)
        _check_host(manifest["target"], name)
        _check_binding(manifest, files, name)
        return _built(manifest, files, arrays, Limits().within(size), build, storage)
    except ArtifactError as error:
        if error.code != "W811":
            raise
        raise damaged(name, error.message) from None
    except OSError as error:
        raise ArtifactError(f"cannot read {name}: {error.strerror or error}", code="W800") from None
    except DAMAGE as error:
        raise damaged(name, str(error) or type(error).__name__) from None


def _files(file: IO[bytes], name: str) -> tuple[dict[str, bytes], dict[str, memoryview]]:
    if file.read(2) != b"PK":
        raise _foreign(name)
    return map_archive(file, "data") if _MAPS else (read_archive(file), {})


def _built(
    manifest: Mapping[str, Any],
    parts: Mapping[str, bytes],
    arrays: Mapping[str, memoryview],
    limits: Limits,
    build: Callable[..., Any],
    storage: Callable[[str], np.dtype[Any]],
) -> Any:
    constants = [
        (np.frombuffer(content, storage(c["dtype"])).reshape(c["shape"]), c["dtype"])
        for c in manifest["constants"]
        for content in (arrays.get(c["file"]) or parts[c["file"]],)
    ]
    return build(
        functions=[signature_from_json(function) for function in manifest["functions"]],
        sites=[site_from_json(site) for site in manifest["sites"]],
        constants=constants,
        objects=[parts[f"code/{i}.o"] for i in range(manifest["objects"])],
        target=tuple(manifest["target"]),
        sources=[parts[f"source/{i}.ll"].decode() for i in range(manifest["sources"])],
        python=manifest.get("python", []),
        threads=manifest.get("threads", False),
        driver=manifest.get("driver"),
        decisions=manifest.get("decisions", []),
        kind=manifest.get("kind", "llvm"),
        provenance=manifest.get("provenance", {}),
        names=manifest.get("names"),
        uses=manifest.get("uses", {}),
        artifacts=ArtifactSet.from_bytes(parts[ARTIFACTS], limits) if ARTIFACTS in parts else ArtifactSet(),
    )


def damaged(path: str | PathLike[str], why: str) -> ArtifactError:
    """The error about a file that no saving writes (W801)."""
    return ArtifactError(f"{os.fspath(path)} is damaged: {why}", code="W801", hint="save it again")


def _foreign(name: str) -> ArtifactError:
    return ArtifactError(f"{name} is not a saved executable", code="W800")


def _manifest(files: Mapping[str, bytes], name: str) -> dict[str, Any]:
    if MANIFEST not in files:
        raise _foreign(name)
    text = files[MANIFEST]
    manifest = json.loads(text)
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise _foreign(name)
    if manifest.get("version") != VERSION:
        raise ArtifactError(
            f"{name} has version {manifest.get('version')}; this weft reads version {VERSION}",
            code="W802",
            hint="compile again",
        )
    if hashlib.sha256(text).hexdigest().encode() != files.get(SEAL):
        raise damaged(name, "the manifest does not have its hash")
    return manifest


def _check_parts(hashes: Mapping[str, str], files: Mapping[str, bytes | memoryview], name: str) -> None:
    for part, digest in hashes.items():
        if hashlib.sha256(files[part]).hexdigest() != digest:
            raise damaged(name, f"{part} does not have its hash")


def _check_binding(manifest: Mapping[str, Any], files: dict[str, bytes], name: str) -> None:
    """Take the hash of the manifest out of the code; W801 for code that was compiled with another manifest."""
    if not manifest["bound"]:
        return
    binding, found = _binding(manifest), False
    for index in range(manifest["objects"]):
        code = files[f"code/{index}.o"]
        found = found or binding in code
        files[f"code/{index}.o"] = code.replace(binding, BINDING)
    if not found:
        raise damaged(name, "its code belongs to another manifest")


def _check_host(target: list[str], name: str) -> None:
    """ArtifactError W803 unless this machine can run the code."""
    triple, features = host().triple, host().flags
    have = {feature for feature in features.split(",") if feature.startswith("+")}
    need = {feature for feature in target[2].split(",") if feature.startswith("+")}
    if target[0] != triple or not need <= have:
        lacks = (
            f", which lacks {', '.join(sorted(f[1:] for f in need - have)[:6])}"
            if target[0] == triple
            else f" ({triple})"
        )
        if why := host().refusal(feature[1:] for feature in need - have):
            lacks += f" ({why})"
        raise ArtifactError(
            f"{name} holds code for {target[1]} on {target[0]}; this machine is another one{lacks}",
            code="W803",
            hint='compile for a more general CPU: target="llvm -mcpu=x86-64-v2"',
        )


def load_bytes(content: bytes) -> Executable:
    """The executable of `Executable.to_bytes`; errors as `load`."""
    with tempfile.TemporaryDirectory(prefix="weft-") as folder:
        Path(folder, "executable.weft").write_bytes(content)
        return load(Path(folder, "executable.weft"))


def load(path: str | PathLike[str]) -> Executable:
    """Load an executable that was saved, and trust it: its machine code runs as part of this process.

    Hashes tell a damaged file, not a hostile one: load what comes from whom you would run a program of.
    Raises: ArtifactError W800 not there or not such a file, W801 damaged, W802 another version, W803 for another
    machine.
    """
    program = read(path, program_of_file, storage)
    try:
        return Executable(program)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise damaged(path, f"its program does not fit together: {error}") from None
