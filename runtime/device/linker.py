"""Object code into the process, and LLVM text to object code.

Each executable is a library of its own, unloaded when nothing refers to it. Objects that become an image
(`weft.runtime.device.image`) need no llvmlite; one linker of LLVM serves the process for others.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from weft.errors import ArtifactError
from weft.runtime.device.code_cache import object_cache
from weft.runtime.device.host import binding, host
from weft.runtime.device.image import Absent, Mapped, can_run, linked
from weft.runtime.device.object_symbols import LOAD_FIRST, absent_symbols
from weft.support.forks import no_fork

__all__ = ["Library", "assembly", "machine_code"]

_lock = threading.Lock()
_numbers = itertools.count(1)


@functools.cache
def _linker() -> Any:
    llvm = binding()
    target = llvm.Target.from_default_triple()
    # JITLink keeps the sections of an object together; the older linker maps each where there is room, and aborts the
    # process where they are more than 2 GiB apart (after `import torch`, whose libraries fill the address space).
    return llvm.create_lljit_compiler(target.create_target_machine(jit=True), use_jit_link=True)


def assembly(text: str, target: tuple[str, str, str]) -> str:
    """The assembly of LLVM text for (triple, CPU, features)."""
    llvm = binding()
    triple, cpu, features = target
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features, opt=2, reloc="pic")
    with no_fork(), _lock:
        return machine.emit_assembly(llvm.parse_assembly(text))


def machine_code(text: str, level: int = 2) -> bytes:
    """Object code of LLVM text for this machine: for the few functions that belong to the runtime itself.

    `level` is that of LLVM's code generator: 0 for what only calls others, which then takes a tenth of the time. What
    was made before comes from the cache.
    """
    own = host()
    facts = ("runtime", own.triple, own.cpu, own.flags, own.version, str(level), text)
    cache, key = object_cache(), hashlib.sha256("\0".join(facts).encode()).hexdigest()
    found = cache.get(key)
    if found is not None:
        return bytes(found[0])
    code = _machine_code(text, own.cpu, level)
    cache.put(key, [code], text)
    return code


def _machine_code(text: str, cpu: str, level: int) -> bytes:
    llvm = binding()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=cpu, opt=level, reloc="pic", codemodel="small"
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
        objects, exports, imports = list(objects), list(exports), imports or {}
        image = linked(objects, exports) if can_run() else None
        try:
            self._loaded = Mapped(image, imports) if image else _Jitted(objects, exports, imports)
        except Absent as error:
            raise ArtifactError(f"nothing provides {', '.join(error.names)}", code="W815", hint=LOAD_FIRST) from None
        except (OSError, RuntimeError) as error:
            raise ArtifactError(f"the machine code does not link: {error}", code="W805") from None
        self.addresses = self._loaded.addresses


class _Jitted:
    """Objects that LLVM's linker has put into the process; Absent or RuntimeError for what it cannot link."""

    def __init__(self, objects: Sequence[bytes], exports: Sequence[str], imports: Mapping[str, int]) -> None:
        builder = binding().JITLibraryBuilder()
        for code in objects:
            builder.add_object_img(code)
        for name in exports:
            builder.export_symbol(name)
        for name, place in imports.items():
            builder.import_symbol(name, place)
        builder.add_current_process()
        with no_fork(), _lock:
            try:
                self._tracker = builder.link(_linker(), f"weft.{next(_numbers)}")
            except RuntimeError:
                if absent := absent_symbols(objects, imports):
                    raise Absent(absent) from None
                raise
        self.addresses = {name: self._tracker[name] for name in exports}
