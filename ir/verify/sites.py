"""The bindings of a graph function, collected once without recursion: what every check of graph functions goes through.

A site is a binding or the result of a sequence, with the block it is in and the function around it. Sites come in the
order of execution; those of a nested function or branch before the binding that holds it.
"""

# What stands in a field may be anything until it is verified.
# pyright: reportUnnecessaryIsInstance=false

from __future__ import annotations

from collections.abc import Iterator

from weft.ir.graph import Binding, BindingBlock, DataflowBlock, Expr, Function, If, SeqExpr, Var
from weft.support.records import dataclass

__all__ = ["Region", "Site", "sites_of"]


@dataclass(frozen=True)
class Region:
    """A sequence: the body of a function (bound to `var` when local) or a branch, inside another region or none."""

    sequence: SeqExpr
    function: Function
    outer: Region | None
    is_body: bool
    var: Var | None = None


@dataclass(frozen=True)
class Site:
    """A binding in a block, or (binding None) the result of a sequence; `enters` and `leaves` mark where a region
    does.
    """

    region: Region
    value: Expr
    binding: Binding | None = None
    block: BindingBlock | None = None
    event: str = "value"

    @property
    def dataflow(self) -> bool:
        """Whether it stands in a dataflow block."""
        return isinstance(self.block, DataflowBlock)


def sites_of(function: Function) -> Iterator[Site]:
    """The sites of a function. Events: enter and leave (of a region), open and close (of a block), value."""
    stack: list[Site | Region] = [Region(function.body, function, None, True)]
    while stack:
        item = stack.pop()
        if isinstance(item, Site):
            yield item
            continue
        sequence = item.sequence
        yield Site(item, sequence.body, event="enter")
        work: list[Site | Region] = []
        for block in sequence.blocks:
            work.append(Site(item, sequence.body, None, block, "open"))
            for binding in block.bindings:
                work.extend(_inner(binding, item))
                work.append(Site(item, binding.value, binding, block))
            work.append(Site(item, sequence.body, None, block, "close"))
        work.append(Site(item, sequence.body))
        work.append(Site(item, sequence.body, event="leave"))
        stack.extend(reversed(work))


def _inner(binding: Binding, region: Region) -> Iterator[Region]:
    value = binding.value
    if isinstance(value, If):
        for branch in (value.then_branch, value.else_branch):
            if isinstance(branch, SeqExpr):
                yield Region(branch, region.function, region, False)
    elif isinstance(value, Function) and isinstance(value.body, SeqExpr):
        yield Region(value.body, value, region, True, binding.var)
