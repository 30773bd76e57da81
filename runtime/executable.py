"""Executable: compiled functions, ready to call, to look into and to save.

exe["main"](*arrays, out=None)      run; NumPy arrays out
exe.functions                       the callables by name
exe.source("llvm" | "asm" | ...)    what was generated
exe.save(path); weft.load(path)     one file (see `weft.runtime.archive`)
"""

from __future__ import annotations

import ctypes
import difflib
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.dtypes import offered_items, shares_bits, stored
from weft.errors import ArgumentError, ArtifactError, printable
from weft.runtime.abi.failures import failure, placed, span_of
from weft.runtime.abi.frame import (
    CALLBACK,
    CONSTANTS,
    FRAME_WORDS,
    HANDLE,
    INTERRUPTED,
    OUTPUTS,
    PARALLEL,
    PLACE,
    POLL,
    SITE,
    VALUES,
)
from weft.runtime.abi.scalars import storage
from weft.runtime.abi.signature import arranged
from weft.runtime.abi.types import Signature, Tuple
from weft.runtime.abi.values import ArgumentPacker, FastPath, Occupied, address, copy_into, unpack
from weft.runtime.callbacks import CallState, begin, callback_address, end
from weft.runtime.device import threads
from weft.runtime.device.base import Device
from weft.runtime.device.cpu import CPU, HostMemory
from weft.runtime.device.frames import stack_need
from weft.runtime.device.guards import guards, is_guarded
from weft.runtime.device.interrupts import poller, raised
from weft.runtime.device.linker import Library
from weft.runtime.device.stack import ENOUGH, NEED, Asked
from weft.runtime.explanation import report
from weft.runtime.programs import RUNNERS
from weft.runtime.programs.endings import call_at_end, release_with
from weft.runtime.programs.fastcall import CODE, fast_call, result_tensors
from weft.runtime.programs.program import Program, is_for_c
from weft.support.array_memory import ALIGNMENT
from weft.support.isolation import isolated, map_items, tuple_items
from weft.support.profile import Profiled
from weft.support.providers import load as load_place
from weft.support.providers import provider

__all__ = ["CompiledFunction", "Executable", "Program"]

if TYPE_CHECKING:
    from weft.runtime.artifact import Artifact, ArtifactSet

_TRIM = ctypes.CFUNCTYPE(None)
_Frame = ctypes.c_int64 * FRAME_WORDS


class _Loaded:
    """A program in memory: code, the table of constants, the release function."""

    def __init__(self, program: Program, members: Mapping[str, Any], device: Device) -> None:
        self.program, self.device = program, device
        exports = [function.symbol for function in program.functions]
        fast = [CODE] if program.python else []
        self.guards = guards() if is_guarded() else None
        imports = None if self.guards is None else self.guards.symbols
        need = stack_need(program.objects)
        asks = [ENOUGH, NEED] if need else []
        self.library = Library(program.objects, [*exports, *fast, *asks, "weft.release", "weft.trim"], imports)
        self.asked = Asked(need, self.library.addresses) if need else None
        self.trim = _TRIM(self.library.addresses["weft.trim"])
        call_at_end(self.library, self.library.addresses["weft.trim"])
        self.constant_bytes = sum(array.nbytes for array, _ in program.constants)
        self.calls_out = any(site["kind"] == "call" for site in program.sites)
        self.callback = callback_address() if self.calls_out else 0
        # A result may outlive the executable, and its memory is released by this code, which it keeps loaded.
        self.hold = release_with(self.library.addresses["weft.release"], self.library)
        self.parallel = threads.runner() if program.threads and need < threads.STACK_BYTES else 0
        self.linked = {**_linked(program.artifacts), **{name: isolated(member) for name, member in members.items()}}
        resident = [_resident(array, device) for array, _ in program.constants]
        self.constants = [kept for _, kept in resident]
        if device is CPU:  # the arrays that are used are those that are saved: none is held twice
            dtypes = [dtype for _, dtype in program.constants]
            program.constants = list(zip(self.constants, dtypes, strict=True))
        table = [place for place, _ in resident]
        self.table = (ctypes.c_int64 * max(1, len(table)))(*table)
        self.table_address = ctypes.addressof(self.table)


def _linked(artifacts: Mapping[str, Artifact]) -> Mapping[str, Any]:
    """The functions that other code generators made, as far as they can be loaded here."""
    if not len(artifacts):
        return {}
    from weft.runtime.loading import loadable  # an executable without such parts needs no loader

    return loadable(artifacts.values())


def _resident(array: np.ndarray, device: Device) -> tuple[int, Any]:
    """A constant in the memory of a device: its address, and what keeps it there."""
    if device is CPU and address(array) % ALIGNMENT == 0 and array.flags.c_contiguous and not array.flags.writeable:
        return address(array), array
    memory = device.allocate(array.nbytes)
    device.write(memory, array)
    if not isinstance(memory, HostMemory):
        return memory.address, memory
    made = memory.array(array.shape, array.dtype)
    made.flags.writeable = False
    return memory.address, made


def _replaced(result: Any, given: Mapping[int, Any]) -> Any:
    """A result with arrays of the caller in the place of their copies, which are there by `id`."""
    return map_items(
        result, tuple_items, lambda item: given.get(id(item), item) if isinstance(item, np.ndarray) else item
    )


class CompiledFunction(Profiled):
    """One compiled function.

    Raises: ArgumentError for arguments that do not fit the signature (W850 number or name, W851 dtype or kind, W852
    rank or shape, W853 read-only, W854 `out`); ShapeError, BoundsError and what else the program's own checks raise.
    """

    __slots__ = ("__weakref__", "_call", "name", "signature")

    def __init__(self, loaded: _Loaded, signature: Signature) -> None:
        self.signature = signature
        self.name = signature.name
        caller = _Caller(loaded, signature)
        call = caller.guarded if loaded.guards is not None else caller.fast() or caller
        self._call = call if loaded.asked is None else loaded.asked.function(self.name, call)

    def __repr__(self) -> str:
        return printable(f"<compiled function {self.name}({', '.join(x.name for x in self.signature.params)})>")

    def __call__(self, /, *args: Any, **options: Any) -> Any:
        """Run on arrays; a tensor-level function writes its outputs in place and returns its scalar result if any.

        Arguments go by position or name. `out=` takes the arrays that results are to be written into.
        """
        return self._call(*args, **options)


class _Caller:
    """How Python calls one function: arguments to words, results to arrays, failures to exceptions."""

    def __init__(self, loaded: _Loaded, signature: Signature) -> None:
        self._loaded = loaded
        self.signature = signature
        self.name = signature.name
        self._entry = loaded.device.launcher(loaded.library.addresses[signature.symbol], loaded.library)
        self._types = [param.type for param in signature.params]
        self._names = [param.name for param in signature.params]
        self._result = signature.result
        self._word_array = ctypes.c_int64 * max(1, sum(ty.words for ty in self._types))
        self._result_array = ctypes.c_int64 * (1 if self._result is None else max(1, self._result.words))
        self._fast_path = FastPath.of(self._types)
        self._tensors = result_tensors(self._result)

    def fast(self) -> Any:
        """The built-in function that takes most calls, where there is one."""
        loaded = self._loaded
        if self.name not in loaded.program.python:
            return None
        addresses = loaded.library.addresses
        words = {"constants": loaded.table_address, "parallel": loaded.parallel, "callback": loaded.callback}
        words |= {"poll": poller(), "entry": addresses[self.signature.symbol], "calls out": loaded.calls_out}
        words["constant bytes"] = loaded.constant_bytes
        functions: dict[str, Callable[..., Any]] = {
            "slow": self,
            "failure": self._failed,
            "wrap": self._wrapped,
            "into": self._wrapped_into,
            "begin": self._begin,
            "end": end,
        }
        return fast_call(self.signature, addresses[CODE], words, functions, loaded)

    def guarded(self, /, *args: Any, out: Any = None, **named: Any) -> Any:
        """Call with arguments in guarded memory, and look at all of it afterwards."""
        watch = self._loaded.guards
        assert watch is not None
        items = offered_items(out)
        targets = (out,) if items is None else items
        with watch.arguments([*args, *targets]) as copies:  # an array that is an argument too is one array
            into = copies[len(args) :]
            result = self(*copies[: len(args)], out=into[0] if items is None else tuple(into), **named)
            watch.check(self.name)
        return _replaced(result, {id(copy): given for copy, given in zip(copies, (*args, *targets), strict=True)})

    def _begin(self) -> int:
        """The handle of a new call."""
        return begin(CallState(self._loaded.program.sites, [], (), self._loaded.linked))

    def __call__(self, /, *args: Any, out: Any = None, **named: Any) -> Any:
        if self._fast_path is not None and not named:
            words = self._fast_path.words(args)
            if words is not None:
                return self._run(words, None, out, args)
        if named or len(args) != len(self._types):
            args = tuple(arranged(self.signature, args, named))
        packer = ArgumentPacker(self.name)
        position = 0
        try:
            for position, (ty, value, name) in enumerate(zip(self._types, args, self._names, strict=True)):
                packer.pack(ty, value, position + 1, name)
            packer.binder.solve()
            packer.separate()
        except ArgumentError as error:
            wrong = packer.binder.refused or position + 1
            raise error.at(span_of(self.signature.params[wrong - 1].span)) from None
        return self._run(packer.words, packer, out, packer.keep)

    def _run(self, given: list[int], packer: ArgumentPacker | None, out: Any, arrays: Sequence[Any]) -> Any:
        loaded = self._loaded
        frame = _Frame()
        objects = packer.objects if packer is not None else []
        read_only = packer.read_only if packer is not None else ()
        state = CallState(loaded.program.sites, objects, read_only, loaded.linked)
        handle = begin(state) if loaded.calls_out else 0
        frame[CALLBACK], frame[HANDLE], frame[CONSTANTS] = loaded.callback, handle, loaded.table_address
        frame[PARALLEL], frame[POLL] = loaded.parallel, poller()
        words = self._word_array(*given)
        results = self._result_array()
        places = self._places(out, results, arrays) if out is not None else {}
        frame[OUTPUTS] = 1 if places else 0
        try:
            status = self._entry(ctypes.addressof(frame), ctypes.addressof(words), ctypes.addressof(results))
            if status:
                raise self._failure(status, frame, state)
            if packer is not None:
                for array, copy in packer.copy_back:
                    array[...] = copy
            if self._result is None:
                return None
            value = unpack(self._result, list(results), loaded.hold, state.objects, places)
        finally:
            if handle:
                end(handle)
        return value if out is None else copy_into(out, value, "out", self.name)

    def _places(self, out: Any, results: Any, arrays: Sequence[Any]) -> dict[int, np.ndarray]:
        """The caller's arrays that results can be written into as they are, by address; `results` says so."""
        wanted = out if isinstance(out, (tuple, list)) else (out,)
        if len(wanted) != len(self._tensors) or isinstance(self._result, Tuple) != isinstance(out, (tuple, list)):
            return {}
        found: dict[int, np.ndarray] = {}
        occupied = Occupied(array for array in arrays if isinstance(array, np.ndarray))
        for array, tensor in zip(wanted, self._tensors, strict=True):
            dtype, rank, word = tensor.dtype, len(tensor.dims), tensor.word
            plain = type(array) is np.ndarray and array.flags.carray and stored(array, dtype).dtype == storage(dtype)
            plain = plain and (shares_bits(dtype) or array.dtype == storage(dtype))
            if not plain or array.ndim != rank or not array.size:
                continue
            if occupied.take(array):
                results[word] = address(array)
                results[word + 2 : word + 2 + array.ndim] = array.shape
                found[address(array)] = array
        return found

    def _failed(self, status: int, frame: int) -> Any:
        """Raise the failure that a frame (at an address) records."""
        words = _Frame.from_address(frame)
        state = end(words[HANDLE]) or CallState(self._loaded.program.sites, [], (), self._loaded.linked)
        raise self._failure(status, words, state)

    def _wrapped(self, results: int, handle: int, *arrays: np.ndarray | None) -> Any:
        """The Python value of result words at an address; some of them may be in arrays that were made for them."""
        places = {address(array): array for array in arrays if array is not None and array.size}
        words = list(self._result_array.from_address(results))
        try:
            assert self._result is not None  # emitted code asks for results alone
            return unpack(self._result, words, self._loaded.hold, [], places)
        finally:
            end(handle)

    def _wrapped_into(self, results: int, handle: int, out: Any, *arrays: np.ndarray | None) -> Any:
        """What `_wrapped` gives, in the caller's arrays."""
        return copy_into(out, self._wrapped(results, handle, *arrays), "out", self.name)

    def _failure(self, status: int, frame: Any, state: CallState) -> BaseException:
        if status == INTERRUPTED:
            return raised(frame[VALUES:])
        place = state.sites[frame[PLACE] - 1] if frame[PLACE] else None
        if status == 2 and state.error is not None:
            error, state.error = state.error, None  # its traceback refers to the state: no cycle is left
            return placed(error, place)
        return failure(state.sites[frame[SITE]], list(frame[VALUES:]), place)


class Executable(Mapping[str, CompiledFunction]):
    """Compiled functions by name. Several threads may call one executable at once; the GIL is released meanwhile."""

    def __init__(
        self, program: Program, members: Mapping[str, Any] | None = None, device: Device | None = None
    ) -> None:
        self._program = program
        self._linkable: Callable[[], ArtifactSet] | None = None
        """What makes the program for C to link, where the executor did not; it needs the module, so no file has it."""
        self.functions: dict[str, Any] = {}
        found: dict[int, dict[str, Any]] = {}
        self._all_loaded: list[_Loaded] = []
        for item in self._programs:
            used = {name: found[id(other)][own] for name, (other, own) in item.uses.items()}
            self._loaded = _Loaded(item, {**(members or {}), **used}, device or CPU)
            self._all_loaded.append(self._loaded)
            found[id(item)] = _functions(self._loaded)
            self.functions.update(item.seen(found[id(item)]))

    def __getitem__(self, name: str) -> CompiledFunction:
        found = self.functions.get(name)
        if found is None and name == "main" and len(self.functions) == 1:
            found = next(iter(self.functions.values()))
        if found is None:
            close = difflib.get_close_matches(str(name), self.functions, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"it has: {', '.join(self.functions) or 'none'}"
            raise ArgumentError(f"the executable has no function {name!r}", code="W855", hint=hint)
        return found

    if not TYPE_CHECKING:  # type checkers know what there is

        def __getattr__(self, name: str) -> Any:
            """Nothing: functions are items."""
            hint = f": write exe[{name!r}]" if name in self.__dict__.get("functions", ()) else ""
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}")

    def __iter__(self) -> Iterator[str]:
        return iter(self.functions)

    def __len__(self) -> int:
        return len(self.functions)

    def __contains__(self, name: object) -> bool:
        return name in self.functions

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled and copied by what `save` writes; ArtifactError where that cannot be saved."""
        return provider("load_executable"), (self.to_bytes(),)

    def __call__(self, /, *args: Any, **options: Any) -> Any:
        """Call `main`, or the only function."""
        return self["main"](*args, **options)

    def __repr__(self) -> str:
        return printable(f"<Executable of {', '.join(self.functions) or 'nothing'}>")

    def source(self, form: str | None = None) -> str:
        """The generated code as text, in a form that the back end has: "llvm" or "asm", "vm", "c" of other parts, ...

        The default is the first of them. ArtifactError W806 for another form names those that there are.
        """
        return provider("source")(self._program, form)

    def explain(self, name: str | None = None) -> str:
        """What the compiler decided about each kernel (or the one of a name), why, and what of it can be pinned."""
        return report(item for one in self._programs for item in one.decisions if name in (None, item["function"]))

    def release_memory(self) -> None:
        """Give the memory back that the functions keep between calls."""
        for loaded in self._all_loaded:
            loaded.trim()

    @property
    def _programs(self) -> tuple[Program, ...]:
        return (*self._program.beside, self._program)

    @property
    def executor(self) -> str:
        """What runs the graph functions: native, vm, graph or aot."""
        driver = self._program.driver
        return "native" if driver is None else str(driver["executor"])

    @property
    def artifacts(self) -> ArtifactSet:
        """What was compiled, as data: object code, the program of the executor, constants, what was linked.

        Places in the source text are no part of it: the same module gives the same set, wherever its text stood.
        """
        return provider("program_artifacts")(self._program)

    @property
    def module(self) -> Any:
        """The compiled module, as after the phase `link`: declarations of functions, and the artifacts that do them.

        Its text is the program: `weft.load_module(module, trust=True)` loads it without compiling anything.
        """
        return provider("compiled_module")(self._program)

    def to_bytes(self) -> bytes:
        """The file of `save` as bytes."""
        with tempfile.TemporaryDirectory(prefix="weft-") as folder:
            self.save(Path(folder, "executable.weft"))
            return Path(folder, "executable.weft").read_bytes()

    def export(self, path: str | PathLike[str]) -> Path:
        """Write the program for C to link: a shared object for a path that ends in .so, else a folder with its header.

        `<model>_run` takes pointers, whatever the executor, so the program must be one straight line of steps of known
        or bounded sizes; others are refused with the reason, as by the executor aot.
        Raises: TargetError W741 or W745 for a program that C cannot call; ArtifactError W819 where no C compiler is
        there, or for an executable that was loaded and does not hold such code.
        """
        return self.linkable().export(path)

    def linkable(self) -> ArtifactSet:
        """The program for C to link, as `export` writes it; errors as there."""
        if self._linkable is not None and not all(map(is_for_c, self._programs)):
            return self._linkable()
        return provider("library_artifacts")(self._programs, self.artifacts)

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything to one file, which `weft.load` reads without the compiler."""
        provider("write_executable")(path, self._program)


def _functions(loaded: _Loaded) -> dict[str, Any]:
    """The public functions of a program in memory."""
    compiled = {f.name: CompiledFunction(loaded, f) for f in loaded.program.functions}
    driven = _driven(loaded.program.driver, loaded, compiled)
    return {name: function for name, function in {**compiled, **driven}.items() if not function.signature.private}


def _driven(driver: dict[str, Any] | None, loaded: _Loaded, kernels: Mapping[str, CompiledFunction]) -> dict[str, Any]:
    """The functions that an executor other than machine code runs."""
    if driver is None:
        return {}
    run = RUNNERS.get(str(driver.get("format")))
    if run is None:
        raise ArtifactError(f"no executor runs {driver.get('format')!r}", code="W840")
    if isinstance(run, str):  # imported for programs of this executor only
        run = load_place(run)
    return dict(run(driver, loaded.constants, kernels, loaded.linked))
