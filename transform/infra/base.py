"""The pass: a frozen dataclass that maps an IRModule to an IRModule.

    class Fuse(Pass):                     @dataclass(frozen=True)
        max_ops: int = 8                  fields are the options; the text form is fuse{max_ops=8}
        def run(self, module): ...        pure: the same module in, the same module out, nothing changed in place

Contract of every pass: an unchanged module is returned as the same object; unknown operators, attributes and node kinds
are left alone; nothing impure is dropped, merged or reordered. `FunctionPass` maps functions one by one. `@module_pass`
and `@function_pass` make a pass of a plain function. Calling a pass (`item(module)`) runs it with everything around it:
`PassContext`, instruments, the checks of WEFT_CHECK, and the report of a failure.
"""

from __future__ import annotations

import inspect
import logging
import time
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, Field, dataclass, field, fields, make_dataclass, replace
from typing import Any, ClassVar, Self, TypeVar, overload

from weft.errors import PassError, Span, WeftError, described
from weft.ir import BaseFunc, Function, IRModule
from weft.ir.structure.recursion import deeply, is_deep
from weft.transform.infra import checks, options
from weft.transform.infra.context import PassContext, active_instruments, changed_options, is_disabled
from weft.transform.infra.generators.choices import Choices
from weft.transform.infra.registry import kebab_case, nearest, register

__all__ = [
    "FunctionPass",
    "Pass",
    "WrongResult",
    "failing_in",
    "function_pass",
    "map_functions",
    "module_pass",
    "nested_too_deeply",
]

_log = logging.getLogger("weft.passes")

P = TypeVar("P", bound="Pass")


def nested_too_deeply(where: str) -> PassError:
    """The error for a program that nests deeper than the thread that compiles it has stack for."""
    return PassError(
        f"the program is nested too deeply {where}", code="W524", hint="bind parts of long expressions to variables"
    )


@dataclass(frozen=True)
class Pass:
    """The base of passes. Subclasses are frozen dataclasses that define `run`.

    Raises (when called): TypeError for an argument or a result that is not an IRModule; PassError W520 when the pass
    fails inside (the cause attached, a reproducer file named in the notes); what the checks of WEFT_CHECK find.
    """

    text_name: ClassVar[str] = "pass"
    aliases: ClassVar[tuple[str, ...]] = ()
    level: ClassVar[int] = 0
    """The least `opt` of a `PassContext` with which a pipeline runs the pass."""
    checks_itself: ClassVar[bool] = False
    """True for a pass made of passes, each of which is checked."""
    former_options: ClassVar[Mapping[str, tuple[str, str]]] = {}
    """Options that older texts have -> the option that holds them now, and the name in it."""
    keeps_meaning: ClassVar[bool] = True
    """False when the pass changes signatures or results on purpose: WEFT_CHECK=3 then compares nothing."""
    exact: ClassVar[str] = "bit"
    """How results compare where the meaning is kept: "bit" by bit, "real" in real arithmetic, "approximate"."""
    keeps_names: ClassVar[bool] = True
    """Whether every function that others may call stays, under its name."""
    keeps_types: ClassVar[bool] = True
    """Whether functions that others may call take and give the same types as before."""
    _restricted: ClassVar[Mapping[str, Any]] = {}
    names_itself: ClassVar[bool] = True
    """Whether errors have a note that they were found in this pass."""

    def __init_subclass__(cls, abstract: bool = False, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "text_name" not in cls.__dict__:
            cls.text_name = kebab_case(cls.__name__)
        if "aliases" not in cls.__dict__:
            cls.aliases = ()
        if not abstract:
            register(cls, (cls.text_name, *cls.aliases))

    def __post_init__(self) -> None:
        """Raise PassError W502 for an option outside of its choices or range, however the pass was made."""
        for option, hint in self._restricted_options().items():
            if not options.fits(getattr(self, option), hint):
                self.check_option(option, getattr(self, option))

    @classmethod
    def _restricted_options(cls) -> Mapping[str, Any]:
        if "_restricted" not in cls.__dict__:
            found = {name: hint for name, hint in cls.option_types().items() if options.is_restricted(hint)}
            cls._restricted = found
        return cls._restricted

    @property
    def name(self) -> str:
        """The name of the pass in text."""
        return self.text_name

    def run(self, module: IRModule) -> IRModule:
        """The work itself; call the pass instead, which surrounds this with checks and instruments."""
        raise NotImplementedError(f"{type(self).__name__} does not define run")

    @classmethod
    def sample(cls, choices: Choices) -> tuple[Pass, str] | None:
        """A pass of this class, and the script of a module that it changes; None where none is written.

        Tests run samples at check level 3, and docs/reference/passes.md shows the simplest one before and after.
        """
        return None

    def __call__(self, module: IRModule) -> IRModule:
        """Run the pass on a module, with the checks and instruments of the context around it."""
        if not isinstance(module, IRModule):
            hint = 'weft.IRModule({"main": function}) is a module of one function'
            raise PassError(f"pass {self.name} takes an IRModule, got {described(module)}", code="W511", hint=hint)
        instruments = active_instruments()
        if is_disabled(self) or not all(instrument.should_run(module, self) for instrument in instruments):
            return module
        changed = changed_options(self)
        item = replace(self, **changed) if changed else self
        for instrument in instruments:
            instrument.before(module, item)
        began = time.perf_counter()
        new = item._guarded(module)
        if _log.isEnabledFor(logging.DEBUG):
            took, what = (time.perf_counter() - began) * 1000, "nothing to do" if new is module else "changed"
            _log.debug("%s: %.1f ms, %s", item, took, what)
        for instrument in reversed(instruments):
            instrument.after(module, new, item)
        return new

    def _guarded(self, module: IRModule) -> IRModule:
        try:
            # Passes follow the nesting of conditionals, never the number of bindings.
            new = deeply(module, lambda: self.run(module))
        except WeftError as error:
            if self.names_itself and not self.checks_itself:
                _note_pass(error, self.name)
            raise
        except RecursionError as error:
            if is_deep(module):
                raise nested_too_deeply(f"for pass {self.name}") from error
            raise self._failure(error, module) from error
        except Exception as error:
            if self.checks_itself:  # a part of a pipeline reports itself; the rest comes from an instrument
                raise
            raise checks.ill_formed(module, self) or self._failure(error, module) from error
        if not isinstance(new, IRModule):
            raise WrongResult(f"pass {self.name} must return an IRModule, it returned {described(new)}", code="W523")
        checks.check_pass(module, new, self)
        return new

    def _failure(self, error: BaseException, module: IRModule) -> PassError:
        function = getattr(error, "weft_function", None)
        where = getattr(error, "weft_place", "") + (f" on function {function!r}" if function else "")
        return PassError(
            f"pass {self.name} failed{where}: {type(error).__name__}: {error}",
            code="W520",
            notes=checks.write_reproducer(module, self, error),
        )

    @classmethod
    def option_types(cls) -> dict[str, Any]:
        """The options of the pass: name to annotated type."""
        try:
            hints = typing.get_type_hints(cls, include_extras=True)
        except NameError:  # annotations that name types of a local scope: nothing to check values against
            hints = {}
        return {item.name: hints.get(item.name, Any) for item in fields(cls) if item.init}

    @classmethod
    def check_option(cls, option: str, value: Any, span: Span | None = None) -> None:
        """Raise PassError W502 unless the pass has the option and the value has its type."""
        known = cls.option_types()
        if option in cls.former_options:
            return
        if option not in known:
            hint = nearest(option, known) or (f"it has: {', '.join(known)}" if known else "it has no options")
            raise PassError(f"pass {cls.text_name} has no option {option!r}", code="W502", span=span, hint=hint)
        if not options.fits(value, known[option]):
            expected = options.type_text(known[option])
            if isinstance(value, IRModule):
                hint = f"make the pass, then call it: {cls.__name__}()(module)"
                message = f"option {option} of {cls.text_name} takes {expected}, got a module"
                raise PassError(message, code="W502", span=span, hint=hint)
            raise PassError(
                f"option {option} of {cls.text_name} takes {expected}, got {value!r}", code="W502", span=span
            )

    @classmethod
    def with_options(cls, values: Mapping[str, Any]) -> Self:
        """The pass with options that a text gives, by their names of today or former ones.

        >>> from weft.transform import TileContractions
        >>> str(TileContractions.with_options({"vector_bits": 512, "block_rows": 96}))
        'tile-contractions{machine={vector_bits: 512}, knobs={mc: 96}}'
        """
        new: dict[str, Any] = {}
        for name, value in values.items():
            if name in cls.former_options:
                option, inside = cls.former_options[name]
                new[option] = {**new.get(option, {}), inside: value}
            else:
                new[name] = {**new.get(name, {}), **value} if isinstance(value, Mapping) else value
        return cls(**new)

    def __str__(self) -> str:
        given = {
            item.name: getattr(self, item.name)
            for item in fields(self)
            if _differs(getattr(self, item.name), _default(item))
        }
        if not given:
            return self.name
        return f"{self.name}{{{', '.join(f'{key}={options.to_text(value)}' for key, value in given.items())}}}"


class WrongResult(PassError, TypeError):
    """A pass returned something else than it must (W523)."""


def _note_pass(error: WeftError, name: str) -> None:
    """Add a note on the innermost pass that was running."""
    if not any(note.startswith("in pass ") for note in error.notes):
        function = getattr(error, "weft_function", None)
        error.notes = (*error.notes, f"in pass {name}" + (f", function {function!r}" if function else ""))


def _differs(value: Any, default: Any) -> bool:
    """Whether an option is not at its default; an array, whose `!=` is no truth value, never is."""
    different = value != default
    return different if isinstance(different, bool) else True


def _default(item: Field[Any]) -> Any:
    """The default of an option; MISSING when it has to be given."""
    return item.default_factory() if item.default_factory is not MISSING else item.default


def map_functions(
    module: IRModule,
    transform: Callable[[str, Any], BaseFunc],
    kinds: type | tuple[type, ...] = Function,
) -> IRModule:
    """The module with `transform(name, function)` in place of each function of the given kinds.

    An error that escapes carries the name of the function, so that the report of the pass can say it.
    """
    new: dict[str, BaseFunc] = {}
    for name, function in module.functions.items():
        if not isinstance(function, kinds):
            new[name] = function
            continue
        try:
            new[name] = transform(name, function)
        except Exception as error:
            if not hasattr(error, "weft_function"):
                error.weft_function = name  # type: ignore[attr-defined]
            raise
    return module.with_functions(new)


@contextmanager
def failing_in(place: str) -> Iterator[None]:
    """Errors of Python that escape carry the place, such as " in the hook of kind npu", for the report of the pass."""
    try:
        yield
    except WeftError:
        raise
    except Exception as error:
        if not hasattr(error, "weft_place"):
            error.weft_place = place  # type: ignore[attr-defined]
        raise


@dataclass(frozen=True)
class FunctionPass(Pass, abstract=True):
    """The base of passes that map functions one by one; `kinds` says which (graph functions unless overridden)."""

    kinds: ClassVar[type | tuple[type, ...]] = Function

    def run(self, module: IRModule) -> IRModule:
        """Map every function of the kinds."""
        return map_functions(module, lambda name, function: self._checked(name, function, module), self.kinds)

    def _checked(self, name: str, function: BaseFunc, module: IRModule) -> BaseFunc:
        new = self.run_function(name, function, module)
        if not isinstance(new, BaseFunc):
            message = f"pass {self.name} must return a function for {name!r}, it returned {described(new)}"
            raise WrongResult(message, code="W523")
        return new

    def run_function(self, name: str, function: Any, module: IRModule) -> BaseFunc:
        """The new function; the same object when nothing changes."""
        raise NotImplementedError(f"{type(self).__name__} does not define run_function")


# What a user's plain function becomes -------------------------------------------------------------------------------

Plain = Callable[..., Any]


@overload
def module_pass(function: Plain) -> Pass: ...
@overload
def module_pass(*, name: str | None = None, level: int = 0) -> Callable[[Plain], Pass]: ...
def module_pass(function: Plain | None = None, *, name: str | None = None, level: int = 0) -> Any:
    """Make a pass of a function `(module)` or `(module, context)` that returns a module.

    Keyword-only parameters, which need annotations and defaults, are the options of the pass.

    >>> @module_pass
    ... def mark(module, *, value: int = 1):
    ...     return module.with_attr("marked", value)
    >>> mark(IRModule({})).attrs["marked"], str(mark), str(replace(mark, value=3))
    (1, 'mark', 'mark{value=3}')
    """

    def decorate(plain: Plain) -> Pass:
        def run(self: Pass, module: IRModule) -> Any:
            return plain(*_given(plain, module, PassContext.current()), **_options_of(self))

        return _plain_pass(plain, name, level, Pass, "run", run)

    return decorate if function is None else decorate(function)


@overload
def function_pass(function: Plain) -> Pass: ...
@overload
def function_pass(*, name: str | None = None, level: int = 0) -> Callable[[Plain], Pass]: ...
def function_pass(function: Plain | None = None, *, name: str | None = None, level: int = 0) -> Any:
    """Make a pass of a function `(function)`, `(function, module)` or `(function, module, context)`.

    It is called on each graph function of a module and returns the new one. Keyword-only parameters are options.

    >>> @function_pass
    ... def seal(function):
    ...     return function.with_attr("sealed", True)
    >>> str(seal)
    'seal'
    """

    def decorate(plain: Plain) -> Pass:
        def run_function(self: Pass, function_name: str, function: Function, module: IRModule) -> Any:
            return plain(*_given(plain, function, module, PassContext.current()), **_options_of(self))

        return _plain_pass(plain, name, level, FunctionPass, "run_function", run_function)

    return decorate if function is None else decorate(function)


def _plain_pass(plain: Plain, name: str | None, level: int, base: type[Pass], method: str, body: Plain) -> Pass:
    parameters = [p for p in inspect.signature(plain).parameters.values() if p.kind is p.KEYWORD_ONLY]
    for parameter in parameters:
        if parameter.default is parameter.empty or parameter.annotation is parameter.empty:
            raise PassError(
                f"option {parameter.name!r} of pass {plain.__name__} needs an annotation and a default", code="W506"
            )
    hints = typing.get_type_hints(plain, include_extras=True)
    text_name = kebab_case(name or plain.__name__)
    namespace: dict[str, Any] = {
        method: body,
        "text_name": text_name,
        "level": level,
        "__doc__": plain.__doc__,
        "__module__": plain.__module__,
        "__qualname__": plain.__qualname__,
    }
    options_spec = [(p.name, hints[p.name], field(default=p.default)) for p in parameters]
    cls = make_dataclass(plain.__name__, options_spec, bases=(base,), namespace=namespace, frozen=True)
    cls.__module__ = plain.__module__  # from 3.12 on it is that of the caller
    return cls()


def _given(plain: Plain, *available: Any) -> tuple[Any, ...]:
    """As many of the available arguments as the function has positional parameters."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    wanted = sum(parameter.kind in kinds for parameter in inspect.signature(plain).parameters.values())
    return available[:wanted]


def _options_of(item: Pass) -> Mapping[str, Any]:
    return types.MappingProxyType({info.name: getattr(item, info.name) for info in fields(item)})
