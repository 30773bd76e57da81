"""What became of each node of an imported model.

    native      one operator of ours
    composed    several
    known       computed while importing: constants and sizes
    python      a Python function, called at run time (`R.call_py`), and why

The report is kept beside the module that an importer returned; the text of the module says only what stands there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Literal
from weakref import WeakKeyDictionary

from weft.errors import ModelError
from weft.ir.module import IRModule
from weft.support.records import dataclass, record

__all__ = ["ImportReport", "ImportedNode", "attach_report", "import_report"]

How = Literal["native", "composed", "known", "python"]


@record
class ImportedNode:
    """A node of the model: its name, its operator, how it was imported, into which operators, why, and its cost.

    The cost is a count of scalar operations, symbols taken for 64; a node in Python counts ten times.
    """

    name: str
    operator: str
    how: How
    operators: tuple[str, ...] = ()
    why: str = ""
    cost: float = 0.0


@dataclass(frozen=True)
class ImportReport:
    """The nodes of a model in order; printed by operator, those in Python first and one by one."""

    nodes: tuple[ImportedNode, ...]

    @property
    def fallbacks(self) -> tuple[ImportedNode, ...]:
        """The nodes that run in Python."""
        return tuple(node for node in self.nodes if node.how == "python")

    @property
    def native_share(self) -> float:
        """The share of nodes that do not run in Python, from 0 to 1."""
        return 1.0 - len(self.fallbacks) / len(self.nodes) if self.nodes else 1.0

    def __str__(self) -> str:
        total = sum(node.cost for node in self.nodes) or 1.0
        counts = Counter(node.how for node in self.nodes)
        told = ", ".join(f"{counts[how]} {how}" for how in ("native", "composed", "known", "python") if counts[how])
        lines = [f"{len(self.nodes)} node{'s' * (len(self.nodes) != 1)}: {told or 'none'}"]
        for node in self.fallbacks:
            lines.append(f"  python    {node.operator:<24} {_percent(node.cost, total)}  {node.name}: {node.why}")
        for (how, operator), nodes in _grouped(node for node in self.nodes if node.how != "python"):
            cost = sum(node.cost for node in nodes)
            made = " ".join(dict.fromkeys(name for node in nodes for name in node.operators))
            lines.append(f"  {how:<9} {operator:<24} {_percent(cost, total)}  x{len(nodes):<5} {made}".rstrip())
        return "\n".join(lines)


def _percent(cost: float, total: float) -> str:
    return f"{100 * cost / total:5.1f} %"


def _grouped(nodes: Iterable[ImportedNode]) -> list[tuple[tuple[How, str], list[ImportedNode]]]:
    groups: dict[tuple[How, str], list[ImportedNode]] = {}
    for node in nodes:
        groups.setdefault((node.how, node.operator), []).append(node)
    return sorted(groups.items(), key=lambda item: (-sum(node.cost for node in item[1]), item[0]))


_reports: WeakKeyDictionary[IRModule, ImportReport] = WeakKeyDictionary()


def attach_report(module: IRModule, report: ImportReport) -> IRModule:
    """The module, of which `import_report` then tells."""
    _reports[module] = report
    return module


def import_report(module: IRModule) -> ImportReport:
    """The report of a module that an importer returned; ModelError W972 for another one.

    >>> module = attach_report(IRModule(), ImportReport((ImportedNode("act", "Relu", "native", ("nn.relu",)),)))
    >>> print(import_report(module))
    1 node: 1 native
      native    Relu                       0.0 %  x1     nn.relu
    """
    found = _reports.get(module)
    if found is None:
        raise ModelError(
            "no report of this module: no importer returned it",
            code="W972",
            hint="ask for the report before the module is changed",
        )
    return found
