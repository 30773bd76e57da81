"""Object code into the process: the only place of the runtime that needs llvmlite (its binding alone).

One linker serves the process; each executable is a library of its own in it, unloaded when nothing refers to it.
"""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Iterable, Mapping
from typing import Any

from weft.errors import ArtifactError
from weft.runtime.device.object_symbols import LOAD_FIRST, absent_symbols
from weft.support.forks import in_child, no_fork

__all__ = ["Library", "assembly", "host", "machine_code"]

_lock = threading.Lock()
_numbers = itertools.count(1)


@functools.cache
def _binding() -> Any:
    try:
        import llvmlite.binding as llvm  # a heavy import, so only when machine code is loaded
    except ImportError as error:
        raise ArtifactError(
            "machine code is loaded by llvmlite, which is not installed", code="W809", hint="pip install llvmlite"
        ) from error
    in_child(functools.partial(_free_lock, llvm))
    with no_fork():
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
    return llvm


def _free_lock(llvm: Any) -> None:
    """Give a child of a fork the lock of llvmlite, which another thread of the parent may have held."""
    lock: Any = getattr(getattr(llvm.ffi.lib, "_lock", None), "_lock", None)
    if hasattr(lock, "_at_fork_reinit"):
        lock._at_fork_reinit()


@functools.cache
def _linker() -> Any:
    llvm = _binding()
    target = llvm.Target.from_default_triple()
    # JITLink keeps the sections of an object together; the older linker maps each where there is room, and aborts the
    # process where they are more than 2 GiB apart (after `import torch`, whose libraries fill the address space).
    return llvm.create_lljit_compiler(target.create_target_machine(jit=True), use_jit_link=True)


@functools.cache
def host() -> tuple[str, str, str]:
    """(triple, CPU name, features) of this machine."""
    llvm = _binding()
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


def assembly(text: str, target: tuple[str, str, str]) -> str:
    """The assembly of LLVM text for (triple, CPU, features)."""
    llvm = _binding()
    triple, cpu, features = target
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features, opt=2, reloc="pic")
    with no_fork(), _lock:
        return machine.emit_assembly(llvm.parse_assembly(text))


def machine_code(text: str, level: int = 2) -> bytes:
    """Object code of LLVM text for this machine: for the few functions that belong to the runtime itself.

    `level` is that of LLVM's code generator: 0 for what only calls others, which then takes a tenth of the time.
    """
    llvm = _binding()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), opt=level, reloc="pic", codemodel="small"
    )
    with no_fork(), _lock:
        module = llvm.parse_assembly(text)
        module.triple, module.data_layout = llvm.get_process_triple(), str(machine.target_data)
        module.verify()
        return machine.emit_object(module)


class Library:
    """Loaded object code and the addresses of its exported symbols.

    Raises: ArtifactError W815 for symbols that the process lacks, W805 for code that does not link otherwise.
    """

    def __init__(
        self, objects: Iterable[bytes], exports: Iterable[str], imports: Mapping[str, int] | None = None
    ) -> None:
        objects = list(objects)
        builder = _binding().JITLibraryBuilder()
        for code in objects:
            builder.add_object_img(code)
        exports, imports = list(exports), imports or {}
        for name in exports:
            builder.export_symbol(name)
        for name, place in imports.items():
            builder.import_symbol(name, place)
        builder.add_current_process()
        with no_fork(), _lock:
            try:
                self._tracker = builder.link(_linker(), f"weft.{next(_numbers)}")
            except RuntimeError as error:
                if absent := absent_symbols(objects, imports):
                    raise ArtifactError(f"nothing provides {', '.join(absent)}", code="W815", hint=LOAD_FIRST) from None
                raise ArtifactError(f"the machine code does not link: {error}", code="W805") from None
        self.addresses = {name: self._tracker[name] for name in exports}
