"""What a schedule is: a module, the handles into it, and the trace; the primitives stand in the other files.

    schedule ::= module, function in work, handle -> (function, loop variable | block name | number), trace

A primitive is a method (or a function that a user registers) marked with `primitive`: it is recorded in the trace as
one step, whatever primitives it uses itself, and either does all of its work or raises and leaves the schedule as it
was. Loops are known by their variables, blocks by their names, which the schedule makes unique in each function.
Every result is verified before it is kept.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar

from weft.errors import ScheduleError
from weft.ir import IRModule
from weft.ir.tensor import Block, For, PrimFunc
from weft.ir.verify import assert_well_formed, verify
from weft.transform.infra.registry import nearest
from weft.transform.schedule.choices import RandomChoices
from weft.transform.schedule.failure import failure
from weft.transform.schedule.handles import BlockRV, Handle, LoopRV
from weft.transform.schedule.state import ScheduleState
from weft.transform.schedule.trace import PRIMITIVES, Instruction, Primitive, Trace, handles_in
from weft.transform.schedule.tree import Tree, unique_block_names, with_early_allocations

__all__ = ["ScheduleCore", "primitive", "register_primitive"]

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound="ScheduleCore")


def primitive(function: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Register a method as a primitive under its name."""
    signature = inspect.signature(function)
    own = signature.replace(parameters=list(signature.parameters.values())[1:])

    @functools.wraps(function)
    def run(self: S, *args: P.args, **options: P.kwargs) -> R:
        return self._perform(PRIMITIVES[function.__name__], function, args, options)

    PRIMITIVES[function.__name__] = Primitive(function.__name__, run, own)
    return run


def register_primitive(function: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Make a function of a schedule a primitive of all schedules, under its own name (a decorator).

    It is called as a method, is one step of the trace, and replays by name. ScheduleError W604 when a primitive or
    another member of schedules has the name already.

    >>> from weft.transform.schedule import Schedule, register_primitive
    >>> @register_primitive
    ... def halve(sch, loop):
    ...     return sch.split(loop, [2, None])
    >>> "halve" in PRIMITIVES
    True
    >>> del PRIMITIVES["halve"]
    """
    name = function.__name__
    if name in PRIMITIVES or name.startswith("_") or name in ScheduleCore.reserved:
        raise ScheduleError(f"schedules have a member {name!r} already", code="W604", hint="choose another name")
    return primitive(function)


class ScheduleCore(ScheduleState):
    """A schedule without its primitives: what users read, copies, and primitives as steps."""

    reserved: frozenset[str] = frozenset()

    def __init__(self, module: IRModule | PrimFunc, *, seed: int | None = None, verify: bool = True) -> None:
        if isinstance(module, PrimFunc):
            module = IRModule({module.name or "main": module})
        if not isinstance(module, IRModule):
            raise failure("W601", f"a schedule is of a module or a tensor function, not of {type(module).__name__}")
        self._verifies = verify
        if verify:
            assert_well_formed(module)
        for name, function in module.items():
            if isinstance(function, PrimFunc):
                module = module.with_function(name, with_early_allocations(unique_block_names(function)))
        names = [name for name, function in module.items() if isinstance(function, PrimFunc)]
        super().__init__(module, names[0] if len(names) == 1 else "main" if "main" in names else None)
        self._depth = 0
        self._noted: dict[str, Any] = {}
        self._trace = Trace()
        self._chosen = RandomChoices(seed)

    # What users read --------------------------------------------------------------------------------------------------

    @property
    def mod(self) -> IRModule:
        """The module as it is now."""
        return self._module

    @property
    def func(self) -> PrimFunc:
        """The function in work as it is now; ScheduleError W601 when none is chosen."""
        function = self._module[self._name_of_function(None)]
        assert isinstance(function, PrimFunc)
        return function

    @property
    def trace(self) -> Trace:
        """What was done so far."""
        return self._trace

    def show(self, **options: Any) -> None:
        """Print the module as script, coloured on a terminal."""
        self._module.show(**options)

    def get(self, handle: Handle) -> Block | For | int:
        """What a handle stands for now: a Block, a For, or a number; ScheduleError W603 when it is gone."""
        if isinstance(handle, LoopRV):
            return self._loop(handle)[1]
        return self._block(handle)[1] if isinstance(handle, BlockRV) else self._number(handle)

    def remove_rv(self, handle: Handle) -> None:
        """Forget a handle; the loop or block that it stands for stays."""
        self._keys.pop(handle, None)

    def copy(self) -> Any:
        """A schedule in the same state, for which the handles of this one are valid too."""
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__)
        new._keys, new._trees, new._noted = dict(self._keys), dict(self._trees), {}
        new._trace = self._trace.copy()
        new._chosen = self._chosen.copy()
        return new

    def fork(self, seed: int | None = None) -> Any:
        """A copy with random choices of its own: of the given seed, or of one drawn here."""
        new = self.copy()
        new.seed(self.fork_seed() if seed is None else seed)
        return new

    def seed(self, seed: int) -> None:
        """Start the sequence of random choices anew."""
        self._chosen.random.seed(seed)

    def choose_next(self, choices: Sequence[Any]) -> None:
        """What the sampling primitives choose that the next primitive uses: how traces repeat primitives of users."""
        self._chosen.given = list(choices)

    def fork_seed(self) -> int:
        """A seed for another schedule."""
        return self._chosen.random.randrange(1, 2**31)

    def __getattr__(self, name: str) -> Any:
        found = PRIMITIVES.get(name)
        if found is None or name.startswith("_"):
            hint = nearest(name, list(PRIMITIVES))
            raise AttributeError(f"a schedule has no {name!r}" + (f"; {hint}" if hint else ""), name=name, obj=self)
        return functools.partial(found.run, self)

    # Primitives as steps ---------------------------------------------------------------------------------

    def _perform(self, item: Primitive, function: Callable[..., Any], args: Any, options: Any) -> Any:
        """Run a primitive as one step: all of it or nothing."""
        bound = item.parameters.bind(*args, **options)
        bound.apply_defaults()
        samples = "decision" in item.parameters.parameters
        if self._depth:
            return self._perform_inside(function, bound, samples)
        saved = self._saved()
        self._depth, self._noted = 1, {}
        self._chosen.start()
        try:
            result = function(self, *args, **options)
            self._check(saved.module)
        except BaseException:
            self._restore(saved)
            raise
        finally:
            self._depth, self._chosen.given = 0, []
        arguments = {**bound.arguments, **self._noted}
        arguments.pop("decision", None)
        listed = isinstance(result, (list, tuple))
        self._trace.instructions.append(
            Instruction(
                item.name, arguments, handles_in(result), self._chosen.decision, listed, tuple(self._chosen.inside)
            )
        )
        return result

    def _perform_inside(self, function: Callable[..., Any], bound: inspect.BoundArguments, samples: bool) -> Any:
        """Run a primitive that another one uses: a part of that step, which keeps what is chosen here."""
        if samples and bound.arguments["decision"] is None and self._chosen.given:
            bound.arguments["decision"] = self._chosen.given.pop(0)
        outer, self._chosen.decision = self._chosen.decision, None
        self._depth += 1
        try:
            result = function(self, *bound.args, **bound.kwargs)
            if samples:
                self._chosen.inside.append(self._chosen.decision)
            return result
        finally:
            self._depth, self._chosen.decision = self._depth - 1, outer

    def _check(self, old: IRModule) -> None:
        """Refuse a result that is not well formed: W618."""
        if old is self._module:
            return
        for name, function in self._module.items():
            if old.functions.get(name) is not function and isinstance(function, PrimFunc):
                alone = name not in old or len(old) == 1
                findings = verify(function if alone else self._module) if self._verifies else ()
                if findings:
                    first = findings[0]
                    notes = [str(first.error()), *(f"also {item.code}: {item.message}" for item in findings[1:4])]
                    raise failure(
                        "W618",
                        f"function {name!r} would not be well formed: {first.message}",
                        notes=notes,
                        hint="the step does not apply to this code",
                    )
                self._recheck(self._tree(name))

    def _recheck(self, tree: Tree) -> None:
        """What must still hold after a step."""

    def _record(self, **arguments: Any) -> None:
        """Keep other values of arguments in the trace than those given (text for a function, say)."""
        if self._depth == 1:
            self._noted.update(arguments)
