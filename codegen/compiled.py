"""Compiled modules: after the phases `codegen` and `link`, functions are declarations, and artifacts do what they did.

    codegen   the artifacts of every part: objects, sources, bytecode, drivers, constants once each
    link      what is loaded: every symbol that some artifact needs is there; sources and headers are left out

    main = R.ExternFunc("main", R.Callable(...))        declared, provided by the artifact `program.json`

The text of such a module is the program: `load_module` loads it in another process without compiling anything.
`weft.compile` is the phases and this: `exe.module` is the module after `link`.

Errors: ArtifactError W830 for code that nobody trusts, W823 for a module that holds no program, W815 for symbols that
nothing provides.
"""

from __future__ import annotations

from typing import Any

from weft.errors import ArtifactError
from weft.ir.attrs import ARTIFACTS
from weft.ir.deduction.infer import func_type
from weft.ir.dim import Dim, parse_dim, symbol
from weft.ir.graph import ExternFunc, Function
from weft.ir.module import IRModule
from weft.ir.tensor import PrimFunc
from weft.ir.types import AnyType, FuncType, PrimType, ShapeType, StringType, TensorType, TupleType, Type
from weft.runtime.abi import types as abi
from weft.runtime.abi.dims import Dim as AbiDim
from weft.runtime.artifact import Artifact, ArtifactSet, missing_symbols
from weft.runtime.device.object_symbols import HOST_SYMBOLS, LOAD_FIRST, PROCESS_SYMBOLS, in_process
from weft.runtime.executable import Executable
from weft.runtime.merging import kept_artifacts
from weft.runtime.program_artifacts import PROGRAM, Program, artifact_program, program_artifacts, public_signatures
from weft.runtime.registry import find_func
from weft.script import parse

__all__ = [
    "compiled_module",
    "declared_module",
    "declared_type",
    "holds_program",
    "is_compiled",
    "linked",
    "linked_artifacts",
    "load_module",
]

SOURCES = ("c", "header", "build", "llvm")
"""Kinds of artifacts that are read by compilers and people, and not loaded."""


def compiled_module(program: Program, *, link: bool = True) -> IRModule:
    """The module of a program: declarations of its public functions, and its artifacts."""
    public = [item for one in (*program.beside, program) for item in public_signatures(one)]
    functions = {item.name: ExternFunc(item.name, _function_type(item)) for item in public}
    module = IRModule(functions).with_attr(ARTIFACTS, program_artifacts(program))
    return linked(module) if link else module


def declared_module(module: IRModule, artifacts: ArtifactSet) -> IRModule:
    """The module of artifacts that do not run here, with declarations of the functions that they were made of."""
    functions = {
        name: ExternFunc(name, func_type(function) if isinstance(function, Function) else None)
        for name, function in module.items()
        if isinstance(function, (Function, PrimFunc)) and not function.private
    }
    return IRModule(functions).with_attr(ARTIFACTS, artifacts)


def linked(module: IRModule) -> IRModule:
    """The module after `link`: what is loaded, all of whose symbols are there, and libraries for C; ArtifactError W815.

    A library that C programs link is what the executor aot is for; sources beside other programs are left out.
    """
    if not holds_program(module):  # sources, and objects for others to link
        return module
    artifacts = module.attrs.get(ARTIFACTS, ArtifactSet())
    loaded = kept_artifacts(artifacts, _is_loaded)
    lacking = {symbol for symbol, _ in missing_symbols(loaded, _ALWAYS)}
    there = {name for name in lacking if find_func(name) is not None or in_process(name)}
    loaded.link_check(_ALWAYS | there if there else _ALWAYS, hint=LOAD_FIRST)
    return module.with_attr(ARTIFACTS, linked_artifacts(artifacts))


def linked_artifacts(artifacts: ArtifactSet) -> ArtifactSet:
    """Those of a program's artifacts that stay when it is linked."""
    if any(item.kind == "object" and item.loader == "cc" for item in artifacts.values()):
        return kept_artifacts(artifacts, lambda item: item.loader == "cc" or _is_loaded(item))
    return kept_artifacts(artifacts, _is_loaded)


_ALWAYS = HOST_SYMBOLS | PROCESS_SYMBOLS


def _is_loaded(item: Artifact) -> bool:
    return item.kind not in SOURCES and item.loader != "cc"


def holds_program(module: IRModule) -> bool:
    """Whether a module is compiled, so that it can be loaded."""
    return any(item.kind == PROGRAM for item in module.attrs.get(ARTIFACTS, ArtifactSet()).values())


def is_compiled(module: IRModule) -> bool:
    """Whether a module is what the phase `codegen` gives: declarations alone, and artifacts."""
    declared = all(type(function) is ExternFunc for function in module.functions.values())
    return declared and ARTIFACTS in module.attrs


def load_module(module: IRModule | str, *, trust: bool = False) -> Executable:
    """The executable of a compiled module, or of its text; nothing is compiled.

    Raises: ArtifactError W830 unless the caller trusts the machine code that it holds, W823 when it holds no program.
    """
    if isinstance(module, str):
        read = parse(module)
        module = read if isinstance(read, IRModule) else IRModule({read.name: read})
    artifacts = module.attrs.get(ARTIFACTS, ArtifactSet())
    if not trust:
        names = ", ".join(list(artifacts)[:3]) or "none"
        raise ArtifactError(
            f"the module carries compiled code ({names}), which is not run unless it is trusted",
            code="W830",
            hint="if you trust it: weft.load_module(module, trust=True), or --trust on the command line",
        )
    return Executable(artifact_program(artifacts))


def _function_type(signature: abi.Signature) -> FuncType:
    params = tuple(declared_type(param.type) for param in signature.params)
    result = TupleType(()) if signature.result is None else declared_type(signature.result)
    return FuncType(params, result)


def declared_type(ty: abi.Type) -> Type:
    """The graph-level type that a signature holds."""
    if isinstance(ty, (abi.Tensor, abi.Buffer)):
        dims = _dims(ty.dims)
        return TensorType(dims, ty.dtype) if dims is not None else TensorType(None, ty.dtype, ndim=ty.rank)
    if isinstance(ty, abi.Shape):
        dims = _dims(ty.dims)
        return ShapeType(dims) if dims is not None else ShapeType(None, ty.rank)
    if isinstance(ty, abi.Tuple):
        return TupleType(tuple(map(declared_type, ty.fields)))
    if isinstance(ty, abi.Scalar):
        return PrimType(ty.dtype)
    return StringType() if isinstance(ty, abi.String) else AnyType()


def _dims(dims: tuple[AbiDim, ...] | None) -> tuple[Dim, ...] | None:
    """Dimensions, or None when one of them may be anything."""
    if dims is None or None in dims:
        return None
    return tuple(_dim(dim) for dim in dims)


def _dim(dim: Any) -> Dim:
    return dim if isinstance(dim, int) else symbol(dim) if isinstance(dim, str) else parse_dim(dim.text)
