"""How a contraction with weights of few bits is arranged on a machine."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from weft.dtypes import bits, per_byte
from weft.ir.tensor import Buffer
from weft.target.machine_model import DotProduct, MachineModel
from weft.transform.autoschedule.gemm.groups.match import ScaledContraction, buffers_of
from weft.transform.autoschedule.gemm.match import runs_along
from weft.transform.autoschedule.gemm.tiling import ceil_div
from weft.transform.autoschedule.knobs import Knobs

__all__ = ["FLOAT", "Grouped", "grouped_form"]

FLOAT = "float32"
"""What sums of groups are added up in."""


@dataclass(frozen=True)
class Grouped:
    """How such a contraction is arranged: vectors of a panel, rows of a tile, and the instruction (None: floats).

    `prefetched` is how many steps of a group ahead weights are prefetched, those of `vectors_per_line` vectors at once.
    """

    found: ScaledContraction
    lanes: int
    vectors: int
    max_rows: int
    dot: DotProduct | None
    is_packed: bool = True
    prefetched: int = 0
    vectors_per_line: int = 1

    @property
    def terms(self) -> int:
        """The neighbours along k in a lane of B."""
        return 1 if self.dot is None else self.dot.terms

    @property
    def per(self) -> int:
        """The elements in a byte of packed weights."""
        return per_byte(self.found.b.load.buffer.dtype) if self.is_packed else 1

    @property
    def width(self) -> int:
        """The columns of a panel."""
        return self.vectors * self.lanes

    @property
    def step_bytes(self) -> int:
        """What a step of a group reads of packed weights."""
        elements = self.width * self.terms * self.per
        return max(1, elements * bits(self.found.b.load.buffer.dtype) // 8)

    @property
    def columns(self) -> int:
        """The columns of B."""
        extent = self.found.plain.extents[self.found.plain.v]
        assert isinstance(extent, int)
        return extent

    @property
    def panels(self) -> int:
        """How many panels there are; the last one may be part of one."""
        return ceil_div(self.columns, self.width)

    @property
    def groups(self) -> int:
        """How many groups there are along k."""
        return self.found.size // self.found.group

    def values(self) -> dict[str, Any]:
        """The numbers of the decision."""
        return {
            "form": "float" if self.dot is None else "dot",
            "mr": self.max_rows,
            "nr_vectors": self.vectors,
            "lanes": self.lanes,
            "group": self.found.group,
            "prefetched": self.prefetched,
            "epilogue": self.found.plain.epilogue is not None,
        }


def grouped_form(
    found: ScaledContraction, machine: MachineModel, constants: frozenset[Buffer], knobs: Knobs
) -> Grouped | None:
    """The arrangement for a machine.

    None where groups are no whole number of bytes, and where B is no constant and does not lie along the columns.
    """
    lanes = max(1, machine.vector_bits // bits(FLOAT))
    vectors = 4 if machine.vector_registers >= 32 else 2
    rows = 4 if machine.vector_registers >= 32 else 2
    if not buffers_of(found.b) <= constants:
        runs = all(runs_along(load, found.plain.v) for load in found.b.loads)
        return Grouped(found, lanes, vectors, rows + 2, None, is_packed=False) if runs else None
    per = per_byte(found.b.load.buffer.dtype)
    dot = _instruction(found, machine)
    if dot is not None and not found.group % (dot.terms * per):
        form = Grouped(found, lanes, vectors, rows, dot)
    elif found.group % per:
        return None
    else:
        form = Grouped(found, lanes, vectors, rows + 2, None)
    apart = machine.line_bytes * form.vectors // form.step_bytes
    return dataclasses.replace(
        form, prefetched=knobs.prefetch_bytes // form.step_bytes, vectors_per_line=min(max(1, apart), form.vectors)
    )


def _instruction(found: ScaledContraction, machine: MachineModel) -> DotProduct | None:
    """What multiplies bytes of B without a sign by those of A."""
    if found.a.load.buffer.dtype != "int8" or bits(found.b.load.buffer.dtype) > 8:
        return None
    wanted = ("uint8", "int8", "int32")
    return next((row for row in machine.dot_products if row.is_vector and row.types == wanted), None)
