"""The surroundings in which passes run: level, disabled passes, instruments and settings.

    with PassContext(level=2, disabled=["fold-constant"], config={"fold-constant.max_bytes": 1024}):
        module = pipeline(module)

Contract: nothing is ignored. An unknown pass in `disabled` or an unknown key in `config` is a PassError (W504, W505).
Contexts nest: the innermost `level` and `opt` that are stated hold; `disabled`, `instruments` and `config` add to those
of the contexts around (the inner value of a key wins). Contexts belong to the thread (and task) that entered them.

    level       0-3, what is checked after every pass (`weft.transform.infra.checks`), over WEFT_CHECK
    opt         a pipeline leaves out passes whose own `level` is higher; a pass called directly always runs; 1 where
                nothing is stated, and `weft.compile` states its own
    disabled    names of passes that are left out wherever they are called
    config      "<pass>.<option>": the value of the option in every such pass that has it at its default;
                "check.level": as `level`; "check.directory": where reproducers are written;
                "knobs": the tunables of the scheduler (`weft.transform.Knobs`, or some of them by name)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar, Token
from dataclasses import MISSING, fields
from types import TracebackType
from typing import Any, Protocol

from weft.errors import PassError
from weft.transform.infra.registry import PassType, find_pass, named_passes, nearest

__all__ = [
    "PassContext",
    "active_instruments",
    "changed_options",
    "check_level",
    "declare_setting",
    "is_disabled",
    "is_plain",
    "setting",
]

_SETTINGS: dict[str, type] = {"check.level": int, "check.directory": str}
_DECLARED: dict[str, Callable[[Any], Any]] = {}


def declare_setting(key: str, check: Callable[[Any], Any]) -> None:
    """Make a setting known; `check` refuses what it cannot be with a PassError."""
    _DECLARED[key] = check


class Watcher(Protocol):
    """What a context needs of an instrument (`weft.transform.Instrument` is one that does nothing)."""

    def enter_context(self, context: PassContext) -> None:
        """The `with` block starts."""

    def exit_context(self, context: PassContext) -> None:
        """The `with` block ended, normally or by an error."""

    def should_run(self, module: Any, item: Any) -> bool:
        """Whether the pass may run on the module."""
        ...

    def before(self, module: Any, item: Any) -> None:
        """The pass is about to run."""

    def after(self, old: Any, new: Any, item: Any) -> None:
        """The pass ran."""


class PassContext:
    """Checks, disabled passes, instruments, settings and `opt` for the passes that run inside the `with` block.

    Raises: W504 for an unknown pass in `disabled`, W505 for an unknown key or a value of the wrong type in `config`,
    and for a `level` that is not 0 to 3.

    >>> with PassContext(level=2) as context:
    ...     PassContext.current() is context, check_level()
    (True, 2)
    """

    def __init__(
        self,
        level: int | None = None,
        disabled: Iterable[str] = (),
        instruments: Iterable[Watcher] = (),
        config: Mapping[str, Any] | None = None,
        *,
        opt: int | None = None,
    ) -> None:
        if opt is not None and (not isinstance(opt, int) or isinstance(opt, bool)):
            raise PassError(f"opt is a number, got {opt!r}", code="W505")
        self.opt: int = PassContext.current().opt if opt is None else opt
        self.disabled = frozenset(_disabled_name(name) for name in disabled)
        self.instruments = tuple(instruments)
        stated = {} if level is None else {"check.level": level}
        self.config = {_checked_key(key, value): value for key, value in {**(config or {}), **stated}.items()}
        self._tokens: list[Token[tuple[PassContext, ...]]] = []

    @staticmethod
    def current() -> PassContext:
        """The innermost context; a plain one when there is none."""
        return _stack.get()[-1]

    def __enter__(self) -> PassContext:
        self._tokens.append(_stack.set((*_stack.get(), self)))
        entered: list[Watcher] = []
        try:
            for instrument in self.instruments:
                instrument.enter_context(self)
                entered.append(instrument)
        except BaseException:
            _stack.reset(self._tokens.pop())
            for instrument in reversed(entered):
                instrument.exit_context(self)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _stack.reset(self._tokens.pop())
        for instrument in reversed(self.instruments):
            instrument.exit_context(self)


_stack: ContextVar[tuple[PassContext, ...]] = ContextVar("weft-pass-contexts", default=(PassContext(opt=1),))


def active_instruments() -> tuple[Watcher, ...]:
    """The instruments of all contexts around, outermost first, each once."""
    return tuple(dict.fromkeys(instrument for context in _stack.get() for instrument in context.instruments))


def is_disabled(item: PassType) -> bool:
    """Whether a pass is to be left out here."""
    return any(item.name in context.disabled for context in _stack.get())


def is_plain() -> bool:
    """Whether passes run as they are: none is disabled, watched or set."""
    return not any(context.disabled or context.instruments or context.config for context in _stack.get())


def setting(key: str) -> Any:
    """The value of a setting in the innermost context that has it, or None."""
    for context in reversed(_stack.get()):
        if key in context.config:
            return context.config[key]
    return None


def changed_options(item: PassType) -> dict[str, Any]:
    """The options of a pass that settings change: those that it has at their defaults."""
    if not any(context.config for context in _stack.get()):
        return {}
    changed = {}
    for field in fields(item):
        value = setting(f"{item.name}.{field.name}")
        default = field.default if field.default_factory is MISSING else field.default_factory()
        if value is not None and getattr(item, field.name) == default:
            changed[field.name] = value
    return changed


def check_level() -> int:
    """How much is checked after each pass (0-3): the `level` of the contexts around, else WEFT_CHECK, else 0.

    Raises: W505 when WEFT_CHECK is not a number from 0 to 3.
    """
    level = setting("check.level")
    if level is not None:
        return level
    text = os.environ.get("WEFT_CHECK", "0")
    if text not in ("0", "1", "2", "3"):
        raise PassError(f"WEFT_CHECK is {text!r}", code="W505", hint="use 0, 1, 2 or 3")
    return int(text)


def _disabled_name(name: str) -> str:
    try:
        return find_pass(name).text_name
    except PassError as error:
        raise PassError(f"`disabled` names an unknown pass {name!r}", code="W504", hint=error.hint) from None


def _checked_key(key: str, value: Any) -> str:
    """The key with the pass's own name for its alias, when pass, option and value are known and fit."""
    kind = _SETTINGS.get(key)
    if kind is not None:
        if not isinstance(value, kind) or (key == "check.level" and value not in (0, 1, 2, 3)):
            raise PassError(f"the setting {key!r} cannot be {value!r}", code="W505")
        return key
    passes = named_passes()  # which are loaded by that, and with them what declares settings
    if key in _DECLARED:
        _DECLARED[key](value)
        return key
    pass_name, _, option = key.rpartition(".")
    cls = passes.get(pass_name)
    if cls is None or option not in cls.option_types():
        raise PassError(f"there is no setting {key!r}", code="W505", hint=nearest(key, _known_settings()))
    cls.check_option(option, value)
    return f"{cls.text_name}.{option}"


def _known_settings() -> list[str]:
    options = (f"{cls.text_name}.{option}" for cls in set(named_passes().values()) for option in cls.option_types())
    return [*_SETTINGS, *_DECLARED, *options]
