"""The last steps with LLVM: parse, verify, optimise, emit object code or assembly.

opt   IR pipeline   code generator   what it buys
0     none          0                the quickest compile
1     O1            2                scalar optimisation
2     O2            2                loops vectorised, multiply-add contracted, running sums in any order
3     O3            3                and all float arithmetic reassociated

Code that is written with vectors already is brought into registers and left as it is from opt 1 on: it was written
without what the pipelines remove, and what they add to it is time.

Modules are compiled in contexts of their own, several at once where there are several cores (`Compiler`). LLVM allows
that; llvmlite's lock, which is there for callers who share a context, is left while such a thread is inside of LLVM.
"""

from __future__ import annotations

import functools
import hashlib
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import Any

from weft.codegen.backends.llvm.machine.emit import REGISTERS, optimise, parsed
from weft.errors import TargetError
from weft.runtime.device.code_cache import object_cache
from weft.runtime.device.host import binding, host, llvm_version
from weft.support.forks import no_fork
from weft.support.spread import cores, short_turns
from weft.support.stack import stacks_of, with_stack

__all__ = ["Compiler", "Machine", "compile_module"]

MOST_THREADS = 8
SMALL, FEW = 4 << 10, 2
"""Bytes of text of a small module, and how many of them wait for no thread."""
STACK_BYTES = 16 << 20
"""For LLVM, which recurses; some systems give threads much less."""


class Machine:
    """A CPU and an optimisation level to emit code for.

    With features switched by hand it is one for which nobody has tried what LLVM does: `apart` says that it is emitted
    for in a process of its own.
    """

    def __init__(self, cpu: str = "", features: str = "", opt: int = 2) -> None:
        own = host()
        self.triple = triple = own.triple
        self.cpu = cpu or own.cpu
        # A 64-bit machine is assumed by everything here; a name that LLVM does not know must not make it doubt that.
        base = ("+64bit,+sse2" if triple.startswith("x86_64") else "") if cpu else own.flags
        self.features = ",".join(filter(None, (base, features)))
        self.opt = opt
        self.apart = bool(features)

    @contextmanager
    def emitter(self, *, quick: bool = False) -> Iterator[_Emitter]:
        """What emits code for it, which nobody else uses meanwhile.

        `quick` gives the fast instruction selector: for code that is large and runs once per kernel.
        """
        level = self.level(quick)
        idle = _idle.setdefault((self.triple, self.cpu, self.features, level), deque())
        try:
            made = idle.pop()
        except IndexError:
            made = _Emitter(self.triple, self._make(level))
        yield made
        idle.append(made)

    def level(self, quick: bool) -> int:
        """The level of the code generator."""
        return 0 if quick else self.opt if self.opt in (0, 3) else 2

    def _make(self, level: int) -> Any:
        llvm = binding()
        target = llvm.Target.from_triple(self.triple)
        return target.create_target_machine(
            cpu=self.cpu, features=self.features, opt=level, reloc="pic", codemodel="small"
        )


class _Emitter:
    """LLVM's object for a machine, and what was asked of it once: a thread waits for its turn after each call."""

    def __init__(self, triple: str, target_machine: Any) -> None:
        self._triple = triple
        self._target_machine = target_machine
        self._layout = str(target_machine.target_data)

    def compiled(self, text: str, pipeline: str) -> tuple[bytes, str]:
        """Object code and assembly of a module text after a pipeline."""
        llvm, target_machine = binding(), self._target_machine
        try:
            module = parsed(llvm, self._layout, self._triple, text)
        except RuntimeError as error:
            raise TargetError(f"llvm refuses the generated code: {error}", code="W749") from None
        with module:
            optimise(llvm, target_machine, module, pipeline)
            return target_machine.emit_object(module), assembly_of(module) if pipeline else text


_idle: dict[tuple[str, str, str, int], deque[_Emitter]] = {}


def compile_module(
    machine: Machine,
    text: str,
    *,
    quick: bool = False,
    explicit: bool = False,
    later: Callable[[Callable[[], None]], object] | None = None,
) -> tuple[bytes, str]:
    """Object code, and the LLVM assembly it was made from, of a module text; TargetError W749 when LLVM refuses it.

    `quick` skips optimisation: for graph functions, whose length is that of the model. `explicit` says that loops are
    written with vectors and need none of what finds them. `later` takes what writes it to the disk, else that is done.
    """
    pipeline = "" if quick or not machine.opt else REGISTERS if explicit else f"O{machine.opt}"
    cache = object_cache()
    facts = (text, machine.triple, machine.cpu, machine.features, pipeline, str(quick), str(machine.opt))
    key = hashlib.sha256("\0".join((*facts, llvm_version())).encode()).hexdigest()
    found = cache.get(key)
    if found is not None:
        return bytes(found[0]), found[1]
    if machine.apart:
        from weft.codegen.backends.llvm.machine.child import Request, emit_apart  # loads what starts processes

        told = machine.triple, machine.cpu, machine.features, "", "small", "pic"
        made = emit_apart(Request(*told, machine.level(quick), pipeline, text))
    else:
        with no_fork(), machine.emitter(quick=quick) as emitter:
            made = emitter.compiled(text, pipeline)
    keep = functools.partial(cache.put, key, [made[0]], made[1])
    keep() if later is None else later(keep)
    return made


_printing = threading.Lock()


def assembly_of(module: Any) -> str:
    """The text of a module of llvmlite, which sets the locale of the process while it prints: one thread at a time.

    Two at once would leave the process in the locale "C".
    """
    with no_fork(), _printing:  # a child would lack the thread that prints
        return str(module)


class Compiler:
    """Compiles modules while more of them are written: in threads where there are several cores, else at once.

    `workers` is how many are compiled at once; by default one for each core, at most MOST_THREADS. The thread that
    writes them is one of these, once it has written all: what waits for it to write more would wait longer if it had
    to share its core. So one means no thread. The first few modules are compiled at once as long as they are small: to
    start threads takes longer than one of them.

    >>> with Compiler() as compiler:
    ...     done = compiler.add(Machine(), "define i32 @f() { ret i32 1 }")
    >>> code, text = done.result()
    """

    def __init__(self, workers: int | None = None) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._jobs: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        """What nobody has begun."""
        self._kept: deque[Callable[[], None]] = deque()
        """What writes to the disk, which takes many turns: once all is compiled."""
        self._workers = workers
        self._small = 0
        self._turns = ExitStack()

    def add(self, machine: Machine, text: str, *, quick: bool = False, explicit: bool = False) -> Future[Any]:
        """What becomes the object code and the assembly of a module (`compile_module`), or its error."""
        if self._pool is None and len(text) < SMALL and self._small < FEW:
            self._small += 1
            return _now(functools.partial(compile_module, machine, text, quick=quick, explicit=explicit))
        later = self._kept.append if self._threads() is not None else None
        return self.call(compile_module, machine, text, quick=quick, explicit=explicit, later=later)

    def call(self, function: Callable[..., Any], *args: Any, **options: Any) -> Future[Any]:
        """What becomes the result of a function that compiles, or its error."""
        action, pool = functools.partial(function, *args, **options), self._threads()
        if pool is None:
            return _now(action)
        done: Future[Any] = Future()
        self._jobs.append((done, action))
        pool.submit(self._next)
        return done

    def _next(self) -> None:
        """Do what waits longest, if anything does."""
        try:
            done, action = self._jobs.popleft()
        except IndexError:
            return
        try:
            done.set_result(action())
        except BaseException as error:
            done.set_exception(error)
            if not isinstance(error, Exception):
                raise

    def _rest(self, mark: _Unlocked) -> None:
        """Do all that waits, as the threads do."""
        with mark.taken():
            while self._jobs:
                self._next()

    def _threads(self) -> ThreadPoolExecutor | None:
        """The threads beside this one; None where there are to be none, or none can be had."""
        if self._pool is None:
            count, mark = self._workers or min(cores(), MOST_THREADS), _unlocked()
            if count < 2 or mark is None:
                return None
            self._pool = ThreadPoolExecutor(count - 1, "weft-compile", initializer=mark.set)
            try:
                with stacks_of(STACK_BYTES):
                    self._pool.submit(int).result()
            except RuntimeError:  # no thread can be had: everything is compiled here
                self._pool = None
            else:
                self._turns.enter_context(short_turns())
        return self._pool

    def __enter__(self) -> Compiler:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        mark = _unlocked() if self._jobs else None
        try:
            if mark is not None and error is None:
                with_stack(functools.partial(self._rest, mark))
        finally:
            self._jobs.clear()
            with self._turns:
                if self._pool is not None:
                    self._pool.shutdown(cancel_futures=True)
        if error is None:
            for keep in self._kept:
                keep()


def _now(action: Callable[[], Any]) -> Future[Any]:
    """The result of an action, as if it had been under way."""
    done: Future[Any] = Future()
    done.set_result(with_stack(action))
    return done


class _Unlocked(threading.local):
    """Whether calls of LLVM by this thread go without llvmlite's lock."""

    here = False

    def set(self) -> None:
        """Let this thread's calls go without it."""
        self.here = True

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Let them for a while."""
        before, self.here = self.here, True
        try:
            yield
        finally:
            self.here = before


@functools.cache
def _unlocked() -> _Unlocked | None:
    """The mark of threads that use contexts of their own alone; None where llvmlite has another lock than is known."""
    ffi = binding().ffi
    lock = getattr(getattr(ffi.lib, "_lock", None), "_lock", None)
    register = getattr(ffi, "register_lock_callback", None)
    if register is None or lock is None or not hasattr(lock, "acquire") or not hasattr(lock, "release"):
        return None
    mark = _Unlocked()
    # The callbacks come right after llvmlite takes the lock and right before it gives it back.
    register(lambda: lock.release() if mark.here else None, lambda: lock.acquire() if mark.here else None)
    return mark
