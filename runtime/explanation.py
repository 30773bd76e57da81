"""What was decided, as text: one block per function, one line per decision.

    record ::= {"function": name, "about": text, "kind": text, value by name ..., "reason": text}

Records are plain data that the compiler leaves in a program (`weft.transform.infra.decisions`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["line", "report"]

_OWN = ("function", "about", "kind", "reason", "applied", "pins", "schedule")


def line(record: Mapping[str, Any]) -> str:
    """A record in one line: what it is about, values, the reason.

    >>> line({"about": "matmul", "kind": "gemm", "mc": 168, "reason": "B is large"})
    'matmul: gemm: mc=168 (B is large)'
    """
    values = " ".join(f"{name}={_shown(value)}" for name, value in record.items() if name not in _OWN)
    reason = f" ({record['reason']})" if record.get("reason") else ""
    return f"{record['about']}: {record['kind']}{': ' + values if values else ''}{reason}"


def report(records: Iterable[Mapping[str, Any]]) -> str:
    """Records by function, with the steps of the schedule that it stands for, and what of each can be pinned.

    >>> print(report([{"function": "f", "about": "exp", "kind": "elementwise", "lanes": 8, "pins": ["lanes"]}]))
    f
        exp: elementwise: lanes=8
            can be pinned: lanes
    """
    lines: list[str] = []
    function = None
    for record in records:
        if record["function"] != function:
            function = record["function"]
            lines.append(str(function))
        lines.append(f"    {line(record)}")
        lines += [f"        {step}" for step in record.get("schedule", ())]
        if record.get("pins"):
            lines.append(f"        can be pinned: {_shown(record['pins'])}")
    return "\n".join(lines) or "nothing was decided"


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(_shown, value)) if isinstance(value, (tuple, list)) else str(value)
