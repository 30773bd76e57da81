"""Evidence for a rule: proved for all sizes and values, or tested on generated ones; a wrong rule is refused.

    evidence(rule)      Evidence("proved" | "tested", ...), remembered for the rule

A rule that is written as two functions is proved where both sides have one normal form (`tensor_algebra`). Otherwise
it is applied to instances of its form, of generated sizes (0 and 1 among them), dtypes, attributes and values, and both
programs are interpreted; where one fails (an index out of range), the other has to fail as well. Rules that keep bits
are given nan, infinities and zeros of both signs, too; for rules of real arithmetic, floats are small dyadic numbers,
with which sums and products have no rounding. What a rule names is where it may turn wrong: further sets have values at
and around the numbers of both sides, larger ones, and few different ones (ties); rules that keep bits have one of
integers over all of their range, and of floats that lie where narrower types round. Instances have sizes around the
whole numbers of a rule. In those, what overflows on either side says nothing of real arithmetic.

Errors: PassError W555 a wrong rule, with the smallest instance that shows it; W556 a rule of which no instance was
found.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from weft.errors import PassError, WeftError
from weft.ir import Function, IRModule
from weft.ir.deduction.infer import type_text
from weft.ir.interpret import interpret
from weft.support.records import dataclass
from weft.transform.infra.generators.arguments import copied, random_arguments
from weft.transform.infra.generators.choices import SeededChoices
from weft.transform.pattern.application import applied_once
from weft.transform.pattern.evidence.instances import numbers_of
from weft.transform.pattern.evidence.tensor_algebra import proved_equal
from weft.transform.pattern.rule import Rule

__all__ = ["Evidence", "evidence"]

_ATTEMPTS, _WANTED = 400, 24
_KINDS = ("plain", "plain", "named", "wide", "few")
_OF_BITS = (*_KINDS, "bits")
_ROUNDED_BEHIND = (3, 4, 8, 9, 11, 12, 16, 24, 25, 29, 40, 52)
"""Places of bits behind the first one: those at which types end, and some between and beyond."""
_ODD = (np.nan, np.inf, -np.inf, -0.0, 0.0)
_TOLERANCE = {"float16": 2e-2, "bfloat16": 5e-2, "float32": 1e-4, "float64": 1e-9}


@dataclass(frozen=True)
class Evidence:
    """What is known of a rule: `kind` is "proved" or "tested"; `detail` says of what, `instances` on how many."""

    rule: str
    kind: str
    detail: str
    instances: int = 0

    def __str__(self) -> str:
        return f"{self.rule}: {self.kind} ({self.detail})"


_known: WeakKeyDictionary[Rule, Evidence] = WeakKeyDictionary()


def evidence(rule: Rule) -> Evidence:
    """What is known of a rule, found out at the first question; see the module. Raises PassError W555, W556."""
    found = _known.get(rule)
    if found is None:
        found = _known[rule] = _found_out(rule)
    return found


def _found_out(rule: Rule) -> Evidence:
    sides = rule.sides
    if sides is not None and not sides.attributes and proved_equal(sides, exact=rule.exactness == "bit"):
        what = "bits" if rule.exactness == "bit" else "real numbers"
        return Evidence(rule.name, "proved", f"equal {what} for all sizes, by normal form")
    return _tested(rule)


@dataclass(frozen=True)
class _Trial:
    """What came of one instance: applied or not, and the difference if there is one."""

    applied: bool
    difference: str = ""
    size: int = 0


def _tested(rule: Rule) -> Evidence:
    instances, wrong = 0, list[_Trial]()
    for seed in range(_ATTEMPTS):
        choices = SeededChoices(seed)
        function = rule.instance(choices)
        trial = None if function is None else _trial(rule, function, choices)
        if trial is None or not trial.applied:
            continue
        instances += 1
        if trial.difference:
            wrong.append(trial)
        if instances >= _WANTED or len(wrong) >= 4:
            break
    if wrong:
        least = min(wrong, key=lambda trial: trial.size)
        span = rule.sides.replacement.span if rule.sides is not None else None
        raise PassError(
            f"rule {rule.name!r} is wrong ({rule.exactness}): {least.difference}",
            code="W555",
            span=span,
            hint="state the condition that is missing, or `exactness`; unchecked() is for other meanings on purpose",
        )
    if not instances:
        raise PassError(
            f"no instance of rule {rule.name!r} was found in {_ATTEMPTS} attempts, so nothing is known of it",
            code="W556",
            hint="state ranks and dtypes of the parameters",
        )
    return Evidence(rule.name, "tested", f"{instances} instances, {len(_kinds(rule))} sets of values each", instances)


def _kinds(rule: Rule) -> Sequence[str]:
    """The sets of values on which each instance is tried."""
    return _OF_BITS if rule.exactness == "bit" else _KINDS


def _trial(rule: Rule, before: Function, choices: SeededChoices) -> _Trial:
    module = IRModule({"main": before})
    try:
        after = applied_once([rule], before, module)
    except WeftError as error:
        return _Trial(True, f"for {_signature(before)} {error.message}", 0)
    if after is before:
        return _Trial(False)
    numbers = sorted(numbers_of(before) | numbers_of(after))
    for kind in _kinds(rule):
        drawn = random_arguments(before, choices)
        if kind == "plain":
            arguments = [_odd(rule, value, choices) for value in drawn]
        else:
            arguments = [_telling(kind, value, numbers, choices) for value in drawn]
        size = sum(np.size(value) for value in arguments)
        try:
            expected = _run(before, arguments)
        except WeftError as error:
            if _fails(after, arguments):
                continue
            said = f"the pattern fails, the replacement does not: {error.message}"
            return _Trial(True, f"for {_signature(before)} {said}")
        try:
            got: Any = _run(after, arguments)
        except WeftError as error:
            return _Trial(True, f"for {_signature(before)} the replacement fails: {error.message}", size)
        place = _difference(rule, expected, got, finite=kind != "plain" and rule.exactness != "bit")
        if place is not None:
            shown = ", ".join(f"{p.name} = {_shown(v)}" for p, v in zip(before.params, arguments, strict=True))
            return _Trial(True, f"for {_signature(before)}; {shown}: {place}", size)
    return _Trial(True)


def _run(function: Function, arguments: Sequence[Any]) -> Any:
    with np.errstate(all="ignore"):
        return interpret(IRModule({"main": function}))["main"](*copied(arguments))


def _fails(function: Function, arguments: Sequence[Any]) -> bool:
    try:
        _run(function, arguments)
    except WeftError:
        return True
    return False


def _signature(function: Function) -> str:
    return ", ".join(f"{param.name}: {type_text(param.ty)}" for param in function.params) or "constants"


def _odd(rule: Rule, value: Any, choices: SeededChoices) -> Any:
    """The value with a few of those that real arithmetic does not have, where a rule is to keep bits."""
    if not isinstance(value, np.ndarray) or value.size == 0:
        return value
    flat = value.reshape(-1).copy()
    if value.dtype.kind == "f" and rule.exactness == "bit":
        flat *= value.dtype.type(1.0123456789)  # numbers that use all the bits they have
        if choices.flip():
            flat[choices.integer(0, flat.size - 1)] = choices.pick(_ODD)
    elif value.dtype.kind in "iu" and choices.flip(40):
        info = np.iinfo(value.dtype)
        middle = max(info.min, min(info.max, choices.integer(-1000, 1000)))
        flat[choices.integer(0, flat.size - 1)] = choices.pick((info.max, info.min, middle))
    return flat.reshape(value.shape)


def _telling(kind: str, value: Any, numbers: Sequence[float], choices: SeededChoices) -> Any:
    """The value with elements that tell rules apart: around the numbers that a rule names, larger ones, or few."""
    if not isinstance(value, np.ndarray) or value.size == 0 or value.dtype.kind not in "fiu":
        return value
    if kind == "bits":
        return _bits(value, choices)
    flat = value.reshape(-1).astype("float64")
    if kind == "few":
        flat = np.sign(flat)
    elif kind == "wide":
        flat = flat * 4
    elif numbers:
        for place in range(flat.size):
            if choices.flip():
                number = numbers[choices.integer(0, len(numbers) - 1)]
                flat[place] = choices.pick((1, -1, 2, 1)) * number + choices.pick((0, 1, -1))
    if value.dtype.kind in "iu":
        info = np.iinfo(value.dtype)
        flat = np.clip(np.trunc(flat), max(info.min, -(2**40)), min(info.max, 2**40))
    with np.errstate(over="ignore"):
        return flat.astype(value.dtype).reshape(value.shape)


def _bits(value: np.ndarray, choices: SeededChoices) -> np.ndarray:
    """Integers of any number of bits, floats of a few bits at places where narrower types round."""
    if value.dtype.kind == "f":
        drawn = [_of_few_bits(choices) for _ in range(value.size)]
    else:
        info = np.iinfo(value.dtype)
        widths = [choices.integer(0, info.bits - 1) for _ in range(value.size)]
        drawn = [max(info.min, choices.integer(-(1 << width), (1 << width) - 1)) for width in widths]
    with np.errstate(over="ignore"):
        return np.array(drawn, value.dtype).reshape(value.shape)


def _of_few_bits(choices: SeededChoices) -> float:
    first, second = (2.0 ** -choices.pick(_ROUNDED_BEHIND) for _ in range(2))
    return choices.pick((1, -1)) * 2.0 ** choices.integer(-3, 9) * (1 + first + choices.pick((0, 1, -1)) * second)


def _difference(rule: Rule, expected: Any, got: Any, finite: bool = False) -> str | None:
    """Where results differ, as text; with `finite`, among the elements that are numbers on both sides."""
    if isinstance(expected, tuple):
        if not isinstance(got, tuple) or len(expected) != len(got):
            return "the replacement has another number of results"
        pairs = (_difference(rule, a, b, finite) for a, b in zip(expected, got, strict=True))
        return next((place for place in pairs if place is not None), None)
    left, right = np.asarray(expected), np.asarray(got)
    if left.shape != right.shape or left.dtype != right.dtype:
        return f"{left.dtype}{left.shape} becomes {right.dtype}{right.shape}"
    unlike = ~_alike(rule, left, right)
    if finite and left.dtype.kind == "f":
        unlike &= np.isfinite(left) & np.isfinite(right)
    if not unlike.any():
        return None
    place = tuple(int(i) for i in np.argwhere(unlike)[0])
    at = f"[{', '.join(map(str, place))}]" if place else ""
    return f"the pattern gives {left[place]}{' at ' + at if at else ''}, the replacement {right[place]}"


def _alike(rule: Rule, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    if left.dtype.kind != "f":
        return left == right
    both = np.isnan(left) & np.isnan(right)
    if rule.exactness == "bit":
        return both | ((left == right) & (np.signbit(left) == np.signbit(right)))
    with np.errstate(all="ignore"):
        finite = np.abs(left[np.isfinite(left)])
        scale = max(1.0, float(finite.max())) if finite.size else 1.0
        limit = rule.tolerance or _TOLERANCE.get(str(left.dtype), 1e-4)
        return both | (left == right) | (np.abs(left - right) <= limit * scale)


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.size > 12:
        return f"{value.dtype} of {'x'.join(map(str, value.shape))}"
    return repr(value.tolist()) if isinstance(value, np.ndarray) else repr(value)
