"""How a contraction with weights of few bits is arranged on a machine."""

from __future__ import annotations

import dataclasses
from typing import Any

from weft.dtypes import bits, is_integer, max_value, min_value, per_byte
from weft.ir.tensor import Buffer, IntImm, PrimVar
from weft.support.records import dataclass
from weft.target.machine_model import DotProduct, MachineModel
from weft.transform.autoschedule.gemm.groups.match import ScaledContraction, buffers_of
from weft.transform.autoschedule.gemm.match import runs_along
from weft.transform.autoschedule.gemm.tiling import ceil_div
from weft.transform.autoschedule.knobs import Knobs

__all__ = ["DIGITS", "FLOAT", "SHORT", "Grouped", "Matrices", "grouped_form"]

FLOAT = "float32"
"""What sums of groups are added up in."""

SHORT = "bfloat16"
"""What matrices in registers hold."""

SHORT_DIGITS = 8
"""Of a bfloat16, in bits: all whole numbers up to 2^8 are exact in it."""

_MIN_ROWS, _MIN_DOT_ROWS = 8, 40
"""The rows from which on matrices in registers pay: panels are converted for them. Without, an instruction that
multiplies bytes needs no conversion."""

MAX_DIGIT_ROWS = 2
"""The rows that read weights of few bits from memory and not, for most of them, from caches."""

DIGITS = 3
"""How many bytes a float of A is written in, where it has digits: as many bits as the mantissa of a float32."""


@dataclass(frozen=True)
class Matrices:
    """How many rows are multiplied by an instruction over matrices: each element of A as the sum of so many `parts`.

    Scales multiply sums of `segment` products. A `block` of k and so many `rows` of A stay in the second cache, while
    they meet the panels of one of the `chunks`.
    """

    instruction: DotProduct
    parts: int
    segment: int
    block: int
    rows: int
    chunks: int


@dataclass(frozen=True)
class Grouped:
    """How such a contraction is arranged: vectors of a panel, rows of a tile, and the instruction (None: floats).

    `has_digits`: floats of A are written as digits of a byte (`digits`), which the instruction multiplies.
    `prefetched` is how many steps of a group ahead weights are prefetched, those of `vectors_per_line` vectors at once.
    `chunks` are those of the panels, each with a buffer for one of them in floats (0: there are never so many rows).
    Of `min_rows_of_matrices` rows or more `matrices` says how they are multiplied (None: as fewer are).
    """

    found: ScaledContraction
    lanes: int
    vectors: int
    max_rows: int
    dot: DotProduct | None
    is_packed: bool = True
    has_digits: bool = False
    prefetched: int = 0
    vectors_per_line: int = 1
    chunks: int = 0
    matrices: Matrices | None = None

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

    @property
    def min_rows_unpacked(self) -> int:
        """From how many rows on the panels are converted once, and not in each tile."""
        return 2 * self.max_rows + 1

    @property
    def min_rows_of_matrices(self) -> int:
        """From how many rows on matrices in registers are multiplied, where there are any."""
        return _MIN_ROWS if self.dot is None else _MIN_DOT_ROWS

    @property
    def axes(self) -> list[PrimVar]:
        """The variables of A that k is not."""
        return self.found.axes

    def values(self) -> dict[str, Any]:
        """The numbers of the decision."""
        return {
            "form": "digits" if self.has_digits else "float" if self.dot is None else "dot",
            "mr": self.max_rows,
            "nr_vectors": self.vectors,
            "lanes": self.lanes,
            "group": self.found.group,
            "prefetched": self.prefetched,
            "chunks": self.chunks if self.matrices is None else self.matrices.chunks,
            "parts": 0 if self.matrices is None else self.matrices.parts,
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
        in_place = Grouped(found, lanes, vectors, rows + 2, None, is_packed=False)
        return dataclasses.replace(in_place, chunks=_chunks(in_place, machine, knobs)) if runs else None
    per = per_byte(found.b.load.buffer.dtype)
    has_digits = _takes_digits(found)
    dot = _instruction("int8" if has_digits else found.a.load.buffer.dtype, found, machine)
    if dot is not None:
        form = Grouped(found, lanes, vectors, rows, dot, has_digits=has_digits)
    elif found.group % per:
        return None
    else:
        form = Grouped(found, lanes, vectors, rows + 2, None)
    matrices = _matrices(form, machine, knobs)
    if matrices is None and dot is None:
        form = dataclasses.replace(form, chunks=_chunks(form, machine, knobs))
    form = dataclasses.replace(form, matrices=matrices)
    apart = machine.line_bytes * form.vectors // form.step_bytes
    return dataclasses.replace(
        form, prefetched=knobs.prefetch_bytes // form.step_bytes, vectors_per_line=min(max(1, apart), form.vectors)
    )


def _chunks(form: Grouped, machine: MachineModel, knobs: Knobs) -> int:
    """How many chunks the panels have where many rows may read them as floats, which the second cache holds."""
    r = form.found.plain.r
    extent = 0 if r is None else form.found.plain.extents[r]
    if isinstance(extent, int) and extent < form.min_rows_unpacked:
        return 0
    fits = form.found.size * form.width * bits(FLOAT) // 8 <= machine.l2_bytes
    return min(form.panels, knobs.few_chunks) if fits else 0


def _matrices(form: Grouped, machine: MachineModel, knobs: Knobs) -> Matrices | None:
    """What many rows are multiplied by; None where there are few, or elements of B have more bits than it takes."""
    found, wanted = form.found, (SHORT, SHORT, FLOAT)
    row = next((row for row in machine.dot_products if row.is_matrix and row.types == wanted), None)
    parts, r = _parts(found.a.load.buffer.dtype), found.plain.r
    if row is None or machine.vector_bits != 8 * machine.line_bytes or not machine.has_masks or r is None:
        return None
    extent = found.plain.extents[r]
    if not parts or found.group % row.terms or not _is_short(found) or not found.group:
        return None
    if isinstance(extent, int) and extent < form.min_rows_of_matrices:
        return None
    segment = _largest_part(found.group, row.terms, knobs.kc)
    block = _largest_part(found.size, segment, knobs.kc)
    tile = 2 * row.shape[0]
    fitting = machine.matrix_caches[1] // 2 // (block * parts * bits(SHORT) // 8)
    rows = max(tile, min(knobs.window_mc // 2, fitting) // tile * tile)
    return Matrices(row, parts, segment, block, rows, min(form.panels, knobs.few_chunks))


def _largest_part(size: int, unit: int, most: int) -> int:
    """The largest number of whole units up to `most` that a size is a multiple of."""
    return max(part for part in range(unit, max(unit, most) + 1, unit) if size % part == 0)


def _parts(dtype: str) -> int:
    """How many short floats an element of A is the sum of; 0 where it is none."""
    if is_integer(dtype):
        return 1 if bits(dtype) <= SHORT_DIGITS else 0
    return {SHORT: 1, "float16": 2, FLOAT: 3}.get(dtype, 0)


def _is_short(found: ScaledContraction) -> bool:
    """Whether all elements of B less their zero points are whole numbers that a short float holds."""
    b = found.b
    low, high = int(min_value(b.load.buffer.dtype)), int(max_value(b.load.buffer.dtype))
    if isinstance(b.zero, IntImm):
        low, high = low - b.zero.value, high - b.zero.value
    elif b.zero is not None:
        kind = b.zero.buffer.dtype
        low, high = low - int(max_value(kind)), high - int(min_value(kind))
    return max(-low, high) <= 1 << SHORT_DIGITS


def _instruction(dtype: str, found: ScaledContraction, machine: MachineModel) -> DotProduct | None:
    """What multiplies bytes of B without a sign by bytes of A, of a type; groups are whole numbers of its lanes."""
    stored = found.b.load.buffer.dtype
    if dtype != "int8" or bits(stored) > 8:
        return None
    wanted = ("uint8", "int8", "int32")
    dot = next((row for row in machine.dot_products if row.is_vector and row.types == wanted), None)
    return None if dot is None or found.group % (dot.terms * per_byte(stored)) else dot


def _takes_digits(found: ScaledContraction) -> bool:
    """Whether floats of A become digits: of few rows, which wait for no memory where B is converted to floats.

    Of elements that fill a byte the conversion takes less time than memory does. Sums of the products of two digits are
    exact in 32 bits.
    """
    b, rows = found.b, 1
    for var in found.axes:
        extent = found.plain.extents[var]
        rows *= extent if isinstance(extent, int) else MAX_DIGIT_ROWS + 1
    if rows > MAX_DIGIT_ROWS or per_byte(b.load.buffer.dtype) == 1 or found.a.scale is not None:
        return False
    zero = 0 if b.zero is None else abs(b.zero.value) if isinstance(b.zero, IntImm) else 1 << bits(b.zero.buffer.dtype)
    largest = (1 << bits(b.load.buffer.dtype)) + zero
    return found.group * largest * 128 * 257 < 1 << 31
