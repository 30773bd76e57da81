"""The last steps with LLVM: parse, verify, optimise, emit object code or assembly.

opt   IR pipeline   code generator   what it buys
0     none          0                the quickest compile
1     O1            2                scalar optimisation
2     O2            2                loops vectorised, multiply-add contracted, running sums in any order
3     O3            3                and all float arithmetic reassociated

Code that is written with vectors already goes through O1 at every level: what O2 adds to it is time.
"""

from __future__ import annotations

import functools
import hashlib
import threading
from typing import Any

from weft.codegen.cache import object_cache
from weft.errors import TargetError
from weft.version import VERSION

__all__ = ["Machine", "compile_module"]

_lock = threading.Lock()


@functools.cache
def binding() -> Any:
    """llvmlite's binding with the host's code generator ready (a heavy import, so only when needed)."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


@functools.cache
def host() -> tuple[str, str, str]:
    """(triple, cpu, features) of this machine."""
    llvm = binding()
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


@functools.cache
def host_features() -> dict[str, bool]:
    """Every feature of this processor family, and whether this machine has it."""
    return dict(binding().get_host_cpu_features())


class Machine:
    """A CPU and an optimisation level to emit code for."""

    def __init__(self, cpu: str = "", features: str = "", opt: int = 2) -> None:
        triple, host_cpu, own_features = host()
        self.triple = triple
        self.cpu = cpu or host_cpu
        # A 64-bit machine is assumed by everything here; a name that LLVM does not know must not make it doubt that.
        base = ("+64bit,+sse2" if triple.startswith("x86_64") else "") if cpu else own_features
        self.features = ",".join(filter(None, (base, features)))
        self.opt = opt

    @functools.cached_property
    def target_machine(self) -> Any:
        """LLVM's object for it."""
        return self._make(self.opt if self.opt in (0, 3) else 2)

    def _make(self, level: int) -> Any:
        llvm = binding()
        target = llvm.Target.from_triple(self.triple)
        return target.create_target_machine(
            cpu=self.cpu, features=self.features, opt=level, reloc="pic", codemodel="small"
        )

    @functools.cached_property
    def quick_machine(self) -> Any:
        """For code that is large and runs once per kernel: the fast instruction selector."""
        return self._make(0)


def compile_module(machine: Machine, text: str, *, quick: bool = False, explicit: bool = False) -> tuple[bytes, str]:
    """Object code, and the LLVM assembly it was made from, of a module text; TargetError W749 when LLVM refuses it.

    `quick` skips optimisation: for graph functions, whose length is that of the model. `explicit` says that loops are
    written with vectors and need none of what finds them.
    """
    llvm = binding()
    level = 0 if quick else min(machine.opt, 1) if explicit else machine.opt
    cache = object_cache()
    facts = (text, machine.triple, machine.cpu, machine.features, str(level), str(quick), str(machine.opt), _version())
    key = hashlib.sha256("\0".join(facts).encode()).hexdigest()
    found = cache.get(key)
    if found is not None:
        return found
    with _lock:  # one context for all modules: LLVM's is not thread safe
        try:
            module = llvm.parse_assembly(text)
            module.triple = machine.triple
            target_machine = machine.quick_machine if quick else machine.target_machine
            module.data_layout = str(target_machine.target_data)
            module.verify()
        except RuntimeError as error:
            raise TargetError(f"llvm refuses the generated code: {error}", code="W749") from None
        if level > 0:
            options = llvm.create_pipeline_tuning_options(speed_level=level)
            options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = level >= 2
            builder = llvm.create_pass_builder(target_machine, options)
            builder.getModulePassManager().run(module, builder)
        made = target_machine.emit_object(module), str(module)
    cache.put(key, *made)
    return made


@functools.cache
def _version() -> str:
    """What else the code follows from: the versions of LLVM and of weft."""
    import llvmlite

    return f"{llvmlite.__version__} {binding().llvm_version_info} {VERSION}"
