"""From artifacts to code that runs: the edges of their life that need a machine.

    Artifacts       => export => shared object           C source and object code, by the C compiler of this machine
    shared object   => load   => LoadedModule            by the system's loader
    object code     => JIT    => LoadedModule            in this process, no file
    kind of others  => load   => LoadedModule            by the loader that a plug-in registered for it

Nothing here runs by itself: whoever loads an artifact trusts it as much as any program.

Errors: ArtifactError W819 what cannot be loaded, exported or linked that way, W805 code that does not link, W803 code
for another machine, W814 and W815 as in `weft.runtime.artifact`.
"""

from __future__ import annotations

import ctypes
import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from weft.errors import ArtifactError
from weft.runtime.artifact import Artifact, ArtifactSet, Symbol
from weft.runtime.device.object_symbols import HOST_SYMBOLS
from weft.runtime.loaded import LoadedModule
from weft.runtime.registry import find_func
from weft.runtime.safe_archive import write_whole
from weft.support.isolation import isolated
from weft.support.providers import provider

__all__ = [
    "HOST_SYMBOLS",
    "LoadedModule",
    "compile_c",
    "export",
    "in_memory",
    "jit",
    "load_artifact",
    "load_library",
    "load_set",
    "loadable",
    "register_loader",
    "unregister_loader",
]

COMPILED = ("c", "header", "object")
"""What an export to a shared object may consist of."""
BESIDE = ("header", "constants", "build")
"""What stands beside code and is not loaded."""
FOLDERS = ("include", "src")
"""The folders of a source tree that an artifact may ask for (`folder` in its provenance)."""
_STRICT = ("-std=c99", "-O2", "-ffp-contract=off", "-fPIC")
# Of what an archive says about flags, only the choice of a processor and of a standard are taken over.
_FLAG = re.compile(r"-m(thumb|(arch|cpu|tune|fpu|float-abi)=[\w.+-]+)|-std=c(99|11)")
_C_TYPES = {
    "void": None,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
    "int": ctypes.c_int,
    "size_t": ctypes.c_size_t,
    **{f"{sign}int{bits}_t": getattr(ctypes, f"c_{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)},
}

Loader = Callable[[Artifact], Mapping[str, Callable[..., Any]]]


# Executables link machine code and kernels in C are linked by what is here: both load when they are first needed.
_loaders: dict[str, Loader] = {
    "weft-executable": lambda artifact: provider("load_executable")(artifact.data),
    "c-kernels": lambda artifact: provider("load_c_kernels")(artifact),
}


# Loaders of kinds.


def register_loader(kind: str, loader: Loader) -> None:
    """Say how artifacts of a kind become functions: `loader(artifact)` gives them by the names of their symbols."""
    if _loaders.setdefault(kind, loader) is not loader:
        raise ArtifactError(f"artifacts of kind {kind!r} have a loader already", code="W819")


def unregister_loader(kind: str) -> None:
    """Forget the loader of a kind."""
    _loaders.pop(kind, None)


def load_artifact(artifact: Artifact) -> LoadedModule:
    """Load one artifact: machine code for this machine, a kind with a loader, or one that lives in memory.

    Raises: ArtifactError W819 for what must be exported first, is read beside others, or is not here any more.
    """
    if artifact.kind in BESIDE and artifact.kind not in _loaders:
        raise _cannot_load(artifact)
    return load_set([artifact])


def load_set(artifacts: Iterable[Artifact]) -> LoadedModule:
    """Load artifacts together, so that one may need what another provides.

    A source whose symbols all are there in a form that can be loaded is passed over. ArtifactError W819 as
    `load_artifact`.
    """
    found: dict[str, Callable[..., Any]] = {}
    keep, code = [], []
    chosen = list(ArtifactSet(artifacts).values())
    given = {symbol.name for item in chosen if _loads(item) for symbol in item.provides}
    for artifact in chosen:
        if artifact.kind == "c" and artifact.provides and {symbol.name for symbol in artifact.provides} <= given:
            continue
        if not artifact.serialisable:
            module = _of_memory(artifact)
        elif artifact.kind in _loaders:
            module = LoadedModule(_checked(artifact, _loaders[artifact.kind](artifact)))
        elif artifact.kind == "object":
            code.append(artifact)
            continue
        elif artifact.kind in BESIDE:
            continue
        else:
            raise _cannot_load(artifact)
        found.update(module)
        keep.append(module)
    if code:
        module = jit(code)
        found.update(module)
        keep.append(module)
    return LoadedModule(found, keep)


def loadable(given: Iterable[Artifact]) -> Mapping[str, Callable[..., Any]]:
    """The functions of those artifacts that this process can load.

    What others provide is a registered function of that name, or else ArtifactError W819 when it is called.
    """
    artifacts = ArtifactSet(given)
    ready = [
        artifact
        for artifact in artifacts.values()
        if artifact.kind in _loaders
        or (artifact.kind == "object" and artifact.loader != "cc")  # those are for C programs to link
        or isinstance(artifact.memory, LoadedModule)
    ]
    names = {item.name for item in ready}
    others = [item for item in artifacts.values() if item.name not in names and item.loader != "cc"]
    stand_in = {symbol.name: _registered(symbol.name, item) for item in others for symbol in item.provides}
    return {**stand_in, **load_set(ready)} if ready else stand_in


def _registered(name: str, artifact: Artifact) -> Callable[..., Any]:
    """What stands for a function of an artifact that no loader is there for."""

    def call(*args: Any) -> Any:
        function = find_func(name)
        if function is None:
            raise _cannot_load(artifact)
        return isolated(function)(*args)

    return call


def _loads(artifact: Artifact) -> bool:
    return not artifact.serialisable or artifact.kind == "object" or artifact.kind in _loaders


def _of_memory(artifact: Artifact) -> LoadedModule:
    if isinstance(artifact.memory, LoadedModule):
        return artifact.memory
    raise ArtifactError(
        f"artifact {artifact.name!r} was in the memory of another process, and is gone", code="W819", hint="build again"
    )


def _checked(artifact: Artifact, functions: Mapping[str, Callable[..., Any]]) -> Mapping[str, Callable[..., Any]]:
    missing = [symbol.name for symbol in artifact.provides if symbol.name not in functions]
    if missing:
        message = f"the loader of kind {artifact.kind!r} does not give {', '.join(missing)} of {artifact.name!r}"
        raise ArtifactError(message, code="W819")
    return functions


def _cannot_load(artifact: Artifact) -> ArtifactError:
    if artifact.kind in (*COMPILED, "sharedlib"):
        hint = "export it to a shared object first"
    else:
        known = ", ".join(sorted({"object", *_loaders}))
        hint = f"import the plug-in that registers a loader for it; kinds that can be loaded: {known}"
    message = f"artifact {artifact.name!r} of kind {artifact.kind!r} cannot be loaded"
    return ArtifactError(message, code="W819", hint=hint)


def jit(artifacts: Iterable[Artifact]) -> LoadedModule:
    """Link object code in this process.

    Raises: ArtifactError W819 for anything but object code, W803 for that of another machine, W805 for what is missing.
    """
    items = list(ArtifactSet(artifacts).values())
    for artifact in items:
        if artifact.kind != "object" or not artifact.serialisable:
            message = f"artifact {artifact.name!r} of kind {artifact.kind!r} is no object code"
            raise ArtifactError(message, code="W819", hint="only object code is linked in a process")
        _check_machine(artifact)
    from weft.runtime.device.linker import Library  # llvmlite loads with it

    symbols = [symbol for artifact in items for symbol in artifact.provides]
    library = Library([artifact.data for artifact in items], [symbol.name for symbol in symbols])
    functions = {symbol.name: _linked(symbol, library) for symbol in symbols}
    return LoadedModule(functions, library)


def _linked(symbol: Symbol, library: Any) -> Callable[..., Any]:
    result, arguments = _prototype(symbol)
    return _function(symbol.name, ctypes.CFUNCTYPE(result, *(arguments or ()))(library.addresses[symbol.name]), library)


@functools.cache
def _own_machine() -> tuple[int, bytes] | None:
    """Word size and machine of this process, as ELF files state them."""
    try:
        with open(sys.executable, "rb") as file:
            head = file.read(20)
    except OSError:
        return None
    return (head[4], head[18:20]) if head[:4] == b"\x7fELF" else None


def _check_machine(artifact: Artifact) -> None:
    head = artifact.data[:20]
    own = _own_machine()
    if own is not None and (head[:4] != b"\x7fELF" or (head[4], head[18:20]) != own):
        raise ArtifactError(
            f"artifact {artifact.name!r} holds code for another machine: {artifact.target}",
            code="W803",
            hint="compile it for this one",
        )


# Shared objects.


def export(artifacts: Iterable[Artifact], path: str | os.PathLike[str]) -> Path:
    """Write artifacts as files: a shared object for a path that ends in .so, else a folder of their contents.

    Raises: ArtifactError W819 when some cannot be part of a shared object, or no C compiler is there; W815 for symbols
    that nothing provides; W805 for code that does not compile; NotSerializable for what is only in memory.
    """
    chosen = ArtifactSet(artifacts)
    for artifact in chosen.values():
        artifact._check_serialisable()
    target = Path(path)
    if target.suffix != ".so":
        return _export_folder(chosen, target)
    ready = [artifact for artifact in chosen.values() if artifact.kind == "sharedlib"]
    if len(ready) == 1 and all(artifact.kind in ("sharedlib", *BESIDE) for artifact in chosen.values()):
        _write(target, ready[0].data)
        return target
    odd = [artifact for artifact in chosen.values() if artifact.kind not in (*COMPILED, *BESIDE)]
    if odd:
        raise ArtifactError(
            f"artifact {odd[0].name!r} of kind {odd[0].kind!r} cannot be part of a shared object",
            code="W819",
            hint=f"kinds that can: {', '.join(COMPILED)}",
        )
    chosen.link_check(HOST_SYMBOLS)
    with tempfile.TemporaryDirectory(prefix="weft-") as folder:
        _compile(chosen, Path(folder))
        _write(target, Path(folder, "library.so").read_bytes())
    return target


def _write(path: Path, content: bytes) -> None:
    try:
        write_whole(path, content)
    except OSError as error:
        raise ArtifactError(f"cannot write {str(path)!r}: {error.strerror}", code="W818") from None


def _export_folder(artifacts: ArtifactSet, folder: Path) -> Path:
    for artifact in artifacts.values():
        inside = artifact.provenance.get("folder")  # an archive may say anything: two names are obeyed
        place = folder / inside if inside in FOLDERS else folder
        try:
            place.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ArtifactError(f"cannot make the folder {str(place)!r}: {error.strerror}", code="W818") from None
        _write(place / artifact.name, artifact.data)
    return folder


def _compiler(what: str) -> str:
    """The C compiler of this machine."""
    found = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not found:
        raise ArtifactError(f"no C compiler is there to make {what}", code="W819", hint="set CC")
    return found


def compile_c(source: str, name: str, standard: str = "c99") -> bytes:
    """Object code of a C source for this machine, under a file name of its own.

    Raises: ArtifactError W819 when no C compiler is there, W805 for a source that it refuses.
    """
    compiler = _compiler(f"code of {name}")
    with tempfile.TemporaryDirectory(prefix="weft-") as folder:
        Path(folder, name).write_text(source, encoding="utf-8")
        place = [str(Path(folder, name)), "-o", str(Path(folder, f"{name}.o"))]
        _call([compiler, *_STRICT, f"-std={standard}", "-c", *place])
        return Path(folder, f"{name}.o").read_bytes()


def _compile(artifacts: ArtifactSet, folder: Path) -> None:
    compiler = _compiler("a shared object")
    units = []
    for artifact in artifacts.values():
        (folder / artifact.name).write_bytes(artifact.data)
        if artifact.kind == "object":
            _check_machine(artifact)
            units.append(folder / artifact.name)
    for artifact in artifacts.values():
        if artifact.kind == "c":
            units.append(folder / f"{artifact.name}.o")
            flags = [str(flag) for flag in artifact.provenance.get("flags", ()) if _FLAG.fullmatch(str(flag))]
            place = [str(folder / artifact.name), "-o", str(units[-1])]
            _call([compiler, *_STRICT, *flags, "-I", str(folder), "-c", *place])
    _call([compiler, "-shared", "-o", str(folder / "library.so"), *map(str, units), "-lm"])


def _call(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines()[:6]
        raise ArtifactError(f"{Path(command[0]).name} refuses the code", code="W805", notes=lines)


def load_library(path: str | os.PathLike[str], symbols: Iterable[Symbol]) -> LoadedModule:
    """Load a shared object and find symbols in it.

    Raises: ArtifactError W819 when it cannot be loaded or lacks a symbol.
    """
    try:
        library = ctypes.CDLL(str(Path(path).resolve()))
    except OSError as error:
        raise ArtifactError(f"cannot load {os.fspath(path)!r}: {error}", code="W819") from None
    found = {}
    for symbol in symbols:
        if not hasattr(library, symbol.name):
            raise ArtifactError(f"{os.fspath(path)!r} has no symbol {symbol.name!r}", code="W819")
        raw = getattr(library, symbol.name)
        raw.restype, raw.argtypes = _prototype(symbol)
        found[symbol.name] = _function(symbol.name, raw, library)
    return LoadedModule(found, library)


# Functions.


def _function(name: str, raw: Callable[..., Any], library: Any) -> Callable[..., Any]:
    """A function of a library, which stays loaded as long as the function is there."""

    def call(*args: Any) -> Any:
        assert library is not None
        return raw(*(arg.ctypes.data if isinstance(arg, np.ndarray) else arg for arg in args))

    call.__name__ = name
    return call


def _prototype(symbol: Symbol) -> tuple[Any, list[Any] | None]:
    """Result and arguments as ctypes knows them; int and anything for a symbol without a prototype."""
    match = re.fullmatch(rf"\s*(.*?)\b{re.escape(symbol.name)}\s*\((.*)\)\s*;?\s*", symbol.signature, re.DOTALL)
    if match is None:
        return ctypes.c_int, None
    result, arguments = match.group(1).strip(), match.group(2).strip()
    listed = [] if arguments in ("", "void") else [_c_type(item, symbol) for item in arguments.split(",")]
    return _c_type(f"{result} result", symbol), listed


def _c_type(text: str, symbol: Symbol) -> Any:
    if "*" in text or "[" in text:
        return ctypes.c_void_p
    words = [word for word in text.split() if word not in ("const", "restrict", "static", "inline")]
    if words and words[0] in _C_TYPES:
        return _C_TYPES[words[0]]
    raise ArtifactError(f"the prototype of {symbol.name!r} has a type that is not known: {text.strip()!r}", code="W819")


def in_memory(name: str, module: LoadedModule, *, target: str = "{}", codegen: str = "jit") -> Artifact:
    """An artifact that stands for a loaded module: it can be part of a module, and refuses to be saved."""
    provides = tuple(Symbol(symbol) for symbol in module)
    return Artifact(
        "jit", name, b"", target, provides, codegen=codegen, loader="memory", serialisable=False, memory=module
    )
