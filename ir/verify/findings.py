"""What the verifier reports: findings, and the table of checks by code.

    finding ::= code message [span] function path reason

`path` names the binding, block or parameter inside the function; `reason` says why the rule is there. The types of
values are checked by deduction, whose errors keep their own codes (W1.., W2.., W3..).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from weft.errors import Span, VerifyError, WeftError

__all__ = ["CHECKS", "Finding", "Report"]

CHECKS: dict[str, str] = {
    # Graph level: names
    "W401": "a variable is used only after its definition and where it is visible",
    "W402": "a variable is defined once",
    "W403": "a dataflow variable does not leave its dataflow block",
    "W404": "a variable is a parameter of one function only",
    "W405": "a dataflow variable is defined by a binding of a dataflow block",
    "W406": "a symbol has a value where it is used: a parameter's type, a match_cast or a result defines it",
    "W407": "a dataflow variable does not occur in a type",
    "W408": "a function reference names a function of the module",
    # Graph level: form
    "W410": "operands are leaves: the module is in A-normal form",
    "W411": "a dataflow block has no control flow",
    "W412": "a sequence stands only as the body of a function or of a branch",
    "W413": "a tensor-level function is a member of the module, not a value",
    "W414": "the result of a sequence is a leaf",
    # Graph level: purity
    "W420": "a dataflow block has no effects",
    "W421": "a pure function has no effects",
    # Graph level: types
    "W430": "every variable has a type",
    "W431": "a function states the type of its result",
    "W432": "a match_cast can succeed",
    "W433": "an output of a kernel call is written by the kernel",
    "W434": "the name in the attribute global_symbol is the function's name",
    "W435": "a kernel call without in-place outputs leaves its inputs alone",
    # Tensor level: names
    "W450": "a variable is used where it is visible",
    "W451": "a buffer is used where it is visible",
    "W452": "a variable or buffer is defined once",
    "W453": "the sizes of parameters determine every symbol",
    # Tensor level: accesses
    "W455": "an access has one index per dimension",
    "W456": "an index is in range",
    "W457": "an index is an integer",
    "W458": "vector lanes fit together",
    "W459": "a stored value has the dtype of its buffer",
    "W460": "operands have one dtype",
    "W461": "a condition is a truth value",
    "W462": "sizes are not negative",
    "W463": "an intrinsic gets the operands that it takes",
    # Tensor level: control
    "W464": "break and continue stand in a loop",
    "W465": "a returned value has the declared type",
    "W466": "a loop has a known kind and a positive step",
    "W467": "the parts of an expression are expressions",
    # Tensor level: blocks
    "W470": "the declared reads of a block cover what it reads",
    "W471": "the declared writes of a block cover what it writes",
    "W472": "the bindings of a block are affine in the variables around it, or the variable is opaque",
    "W473": "a reduction variable does not index what its block writes",
    "W474": "a block with an init has a reduction variable",
    "W475": "a local buffer is written before it is read",
    "W476": "a block variable has a known kind",
    "W477": "a view lies in the memory that it is of",
}


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
    findings: list[Finding] = field(default_factory=list)
    path: str = ""
    _seen: set[tuple[str, int, str]] = field(default_factory=set)

    def add(
        self, code: str, message: str, span: Span | None = None, *, hint: str | None = None, key: object = None,
        notes: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        """Report a violation; repeated ones about the same object (`key`) count once."""
        mark = (code, id(key) if key is not None else -1, message if key is None else "")
        if key is not None and mark in self._seen:
            return
        self._seen.add(mark)
        self.findings.append(Finding(code, message, span, self.function, self.path, notes, hint))

    def add_error(self, error: WeftError, span: Span | None = None) -> None:
        """Report an error of deduction under its own code."""
        place = error.span or span
        self.findings.append(
            Finding(error.code, error.message, place, self.function, self.path, error.notes, error.hint)
        )
