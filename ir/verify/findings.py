"""What the verifier reports: findings, and the table of checks by code.

    finding ::= code message [span] function path reason

`path` names the binding, block or parameter inside the function; `reason` says why the rule is there. The types of
values are checked by deduction, whose errors keep their own codes (W1.., W2.., W3..).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from weft.error_codes import ERROR_CODES
from weft.errors import Span, VerifyError, WeftError
from weft.ir.attrs import Carrier, wrong_values
from weft.support.records import dataclass

__all__ = ["CHECKS", "Finding", "Report"]

CHECKS: dict[str, str] = {
    code: row.sentence
    for code, row in ERROR_CODES.items()
    if "W401" <= code <= "W436" or "W450" <= code <= "W477"  # graph level; tensor level
}
"""The rules, by the codes of what breaks them."""


@dataclass(frozen=True)
class Finding:
    """One violated rule: stable code, message, place, the function it is in, and why the rule is there."""

    code: str
    message: str
    span: Span | None = None
    function: str = ""
    path: str = ""
    notes: tuple[str, ...] = ()
    hint: str | None = None

    @property
    def reason(self) -> str:
        """The rule that is violated."""
        return CHECKS.get(self.code, "types are deduced from the parts of a value")

    def error(self) -> VerifyError:
        """The finding as an error."""
        where = f"in function {self.function}" + (f", {self.path}" if self.path else "")
        notes = (*self.notes, *((where,) if self.function else ()), f"rule: {self.reason}")
        return VerifyError(self.message, code=self.code, span=self.span, notes=notes, hint=self.hint)

    def __str__(self) -> str:
        return str(self.error())

    def to_json(self) -> dict[str, Any]:
        """JSON-like data: what an error has, and function, path, reason."""
        extra = {"function": self.function, "path": self.path, "reason": self.reason}
        return {**self.error().to_json(), "notes": list(self.notes), **extra}


@dataclass
class Report:
    """Collects the findings of one function."""

    function: str
    findings: list[Finding] = field(default_factory=list[Finding])
    path: str = ""
    _seen: set[tuple[str, int, str]] = field(default_factory=set[tuple[str, int, str]])

    def add(
        self,
        code: str,
        message: str,
        span: Span | None = None,
        *,
        hint: str | None = None,
        key: object = None,
        notes: tuple[str, ...] = (),
    ) -> None:
        """Report a violation; repeated ones about the same object (`key`) count once."""
        mark = (code, id(key) if key is not None else -1, message if key is None else "")
        if key is not None and mark in self._seen:
            return
        self._seen.add(mark)
        self.findings.append(Finding(code, message, span, self.function, self.path, notes, hint))

    def add_attributes(self, attrs: Mapping[str, Any], carrier: Carrier, what: str, span: Span | None) -> None:
        """W436 for attributes that weft obeys and whose values it cannot obey."""
        for row, value in wrong_values(attrs, carrier):
            message = f"the attribute {row.name!r} of {what} is a value of type {row.type}, got {value!r}"
            self.add("W436", message, span, hint=row.meaning)

    def add_error(self, error: WeftError, span: Span | None = None) -> None:
        """Report an error of deduction under its own code."""
        place = error.span or span
        self.findings.append(
            Finding(error.code, error.message, place, self.function, self.path, error.notes, error.hint)
        )
