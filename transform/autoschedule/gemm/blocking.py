"""Blocking: how much of both operands of a contraction is packed at a time, and who reads it.

    mr x nr        a register tile: mr rows of nr_vectors vectors
    mc x kc        a packed block of A, kc x nr a packed panel of B; nc columns of panels at a time
    chunks         of the panels (or of the rows), which threads may share

`blocking_of` decides; what it gives is data: the record of a decision (`values`), checked against pins (`check`).

Sources: Goto and van de Geijn, Anatomy of high-performance matrix multiplication, 2008; Van Zee and van de Geijn, BLIS,
2015 (the names of the blocks); Low et al., Analytical modeling is enough for high-performance BLIS, 2016 (their sizes).
"""

from __future__ import annotations

import math
from typing import Any

from weft.dtypes import bits, includes, is_float
from weft.ir.kernel.prim import as_expr, binary, const
from weft.ir.tensor import Buffer, BufferLoad, Extent, PrimExpr, PrimVar
from weft.support.forks import cached_property
from weft.support.records import dataclass
from weft.transform.autoschedule.gemm.dot_products.dot import Dot, axes_of_k, dot_of, matrix_dot_of
from weft.transform.autoschedule.gemm.match import Contraction, converted
from weft.transform.autoschedule.gemm.tiles import flat_view, panels_of_chunk, times_of
from weft.transform.autoschedule.gemm.tiling import (
    INDEX,
    Capacity,
    ceil_div,
    packs_whole,
    tile_of,
    tile_rows,
    vectors_of,
)
from weft.transform.autoschedule.registry import checked
from weft.transform.autoschedule.rules.loops import BLOCK
from weft.transform.autoschedule.rules.strides import kinds_in, step_along
from weft.transform.infra.decisions import Decision, refused

__all__ = [
    "Blocking",
    "along_k",
    "block_size",
    "blocking_of",
    "depth_of",
    "has_matrices",
    "in_one_loop",
    "keeps_sums",
    "known",
    "padded_k_of",
    "reads_parts",
    "row_of_a",
    "rows_of_parts",
    "steps_of_part",
]

_MIN_PARTED = 8
"""Rows of a tile from which on a quarter of it has sums enough to hide the latency of multiply-adds."""
_ROWS_MULTIPLE = 4
"""What half a tile is a multiple of there, as numbers of rows often are."""
_K_MULTIPLE = 16
"""What blocks of k are multiples of, so that no group of a dot-product instruction is cut."""
_FEW_TO_MANY = 4
"""How many times longer blocks of k are for many rows, where panels are packed right before their tiles."""
_RUN_OF_PANELS = 16
"""Panels of a block of columns at least, where threads share these: shorter runs of memory are read slowly."""
_PANEL_OF_FIRST = 3
"""What part of the first cache a part of a panel of matrices takes, beside tiles of A and sums."""
_BLOCK_OF_SECOND = 2
"""What part of the second cache a block of A takes there, as panels come through it from the third one."""
_SUMS_OF_SECOND = 2
"""How many second caches the sums of a block take at most that matrices are loaded from and stored to as they are: wide
blocks of columns pack A less often, which costs more than sums that come from the third cache."""


@dataclass(frozen=True, eq=False)
class Blocking:
    """The sizes of tiles and blocks, and how each operand is read.

    `steps` are iterations of the outermost reduction in a block; each has `granularity` products that stay together.
    `remainder_sizes` are those of tiles for a symbolic remainder of rows, `even_rows` that of two or three tiles which
    a few more rows than those of a tile fill (None: there are none). `view_of_a` is A where it lies, with k as one
    axis, where it is not packed. `reuses_panels`: all panels of a block are packed before its rows, for several blocks
    of rows; `repacks_per_block`: each panel is packed right before its tiles, again and again. `has_partial_sums`:
    those of one block of rows and columns are kept in memory of their own, as C has no place for them.
    `shares_blocks`: threads share blocks of columns, each of which goes through all of k with memory of its own.
    `packs_rows_of_a`: A is packed, and converted, in vectors along k, so that each row stays in one piece.
    """

    found: Contraction
    capacity: Capacity
    mr: int
    nr_vectors: int
    steps: int
    granularity: int
    mc: int
    nc: int
    chunks: int
    remainder_sizes: tuple[int, ...]
    even_rows: int | None
    view_of_a: Buffer | None
    constant_a: bool
    constant_b: bool
    shares_rows: bool
    reuses_panels: bool
    repacks_per_block: bool
    separate_remainders: bool
    has_partial_sums: bool
    shares_blocks: bool
    dot: Dot | None
    packs_rows_of_a: bool

    @property
    def group(self) -> int:
        """Neighbours along k that lie side by side in packed operands."""
        return 1 if self.dot is None else self.dot.group

    @cached_property
    def a_along_k(self) -> Buffer | None:
        """A with k as one axis, where groups along it are read from there."""
        return None if self.dot is None else along_k(self.found.scalar, self.found)

    @cached_property
    def rows_of_b(self) -> Buffer | None:
        """Where windows are copied to before their elements are put into groups."""
        if self.dot is None or self.found.window is None:
            return None
        return Buffer("b_rows", (self.chunks, self.kc * self.nr), self.found.vector.dtype)

    @property
    def padded_kc(self) -> int:
        """The extent along k that a packed block has room for: whole groups."""
        return ceil_div(self.kc, depth_of(self)) * depth_of(self)

    @property
    def r(self) -> PrimVar:
        """The variable of A's rows."""
        assert self.found.r is not None
        return self.found.r

    @property
    def k(self) -> PrimVar:
        """The outermost variable of the reduction, which blocks are cut along."""
        return self.found.reduction[0]

    @property
    def inner(self) -> tuple[PrimVar, ...]:
        """The other variables of the reduction."""
        return self.found.reduction[1:]

    @property
    def nr(self) -> int:
        """Columns of a panel."""
        return self.nr_vectors * self.capacity.lanes

    @property
    def kc(self) -> int:
        """The extent along k of a packed block."""
        return self.steps * self.granularity

    @property
    def k_extent(self) -> int:
        """The extent along k of the whole contraction, where it is known."""
        return known(self.found.extents[self.k]) * self.granularity

    @property
    def splits_k(self) -> bool:
        """Whether there may be several blocks along k, so that partial sums go from one to the next."""
        return self.found.extents[self.k] != self.steps

    @cached_property
    def has_several_blocks(self) -> PrimExpr | None:
        """Whether there is more than one block of rows, where only sizes of the call say so."""
        rows = self.found.extents[self.r]
        if not self.reuses_panels or isinstance(rows, int):
            return None
        return binary("gt", as_expr(rows, INDEX), const(self.mc, INDEX))

    @cached_property
    def a(self) -> Buffer:
        """The packed block of A, or all of a constant one; a last tile of symbolic size may have rows to spare."""
        if self.constant_a:
            rows = known(self.found.extents[self.r])
            dtype = self.capacity.dtype if self.widens_a else self.found.scalar.dtype
            return Buffer("a_packed", (ceil_div(rows, self.mr), self.mr * self.k_extent), dtype)
        dtype = self.capacity.dtype if self.dot is None else self.dot.a_type
        return Buffer("a_packed", (times_of(_rows_with_room(self, row_of_a(self)), row_of_a(self)),), dtype)

    @cached_property
    def b(self) -> Buffer:
        """The packed panels of B, or all of a constant one."""
        if self.constant_b:
            panels = ceil_div(known(self.found.extents[self.found.v]), self.nr)
            return Buffer("b_packed", (panels, self.nr * padded_k_of(self)), self.found.vector.dtype)
        slots = (_max_panels(self),) if self.reuses_panels else ()
        dtype = self.capacity.dtype if self.dot is None else self.dot.b_type
        return Buffer("b_packed", (self.chunks, *slots, self.padded_kc * self.nr), dtype)

    @cached_property
    def partial_sums(self) -> Buffer:
        """The partial sums of a block, whose last one has the remainder of rows, too: rows of columns, or, where
        matrices keep them, one panel after another."""
        if keeps_sums(self):
            shape = (_max_panels(self), self.chunks, times_of(_rows_with_room(self, self.nc), self.nr))
        else:
            shape = (_rows_with_room(self, self.nc), self.nc)
        return Buffer("partial_sums", shape, self.capacity.dtype)

    @property
    def widens_a(self) -> bool:
        """Whether a constant A is kept in the type of the sums: tiles would convert one element of it at a time."""
        stored, dtype = self.found.scalar.dtype, self.capacity.dtype
        is_narrow = stored != dtype and is_float(stored) and is_float(dtype)
        return self.constant_a and is_narrow and all(includes(dtype, x) for x in (stored, *self.found.casts[0]))

    def of_a(self, value: PrimExpr) -> PrimExpr:
        """What a tile reads of A, in the type of the sums: copies are converted as they are made."""
        is_as_stored = self.constant_a or self.view_of_a is not None
        return self.found.of_a(value) if is_as_stored and not self.widens_a else value

    def of_b(self, value: PrimExpr) -> PrimExpr:
        """What a tile reads of B, in the type of the sums."""
        if not self.constant_b or (self.dot is not None and self.dot.b_type == self.found.vector.dtype):
            return value
        return self.found.of_b(value) if self.dot is None else converted(value, (self.dot.b_type,))

    def values(self) -> dict[str, Any]:
        """What a record says of it."""
        return {
            "mr": self.mr,
            "nr_vectors": self.nr_vectors,
            "lanes": self.capacity.lanes,
            "mc": self.mc,
            "nc": self.nc,
            "kc": self.kc,
            "chunks": self.chunks,
            "a": "constant" if self.constant_a else "blocks" if self.view_of_a is None else "in place",
            "b": "constant" if self.constant_b else "panels",
            "shares": "rows" if self.shares_rows else "blocks of columns" if self.shares_blocks else "columns",
            "reuses_panels": self.reuses_panels,
            "repacks_per_block": self.repacks_per_block,
            "accumulates": self.found.accumulates or (self.splits_k and not self.has_partial_sums),
            **({"k_part": steps_of_part(self) * depth_of(self)} if reads_parts(self) else {}),
            **({"sums": "of a block"} if self.has_partial_sums else {}),
            "remainders": "apart" if self.separate_remainders else "masked",
            **({} if self.dot is None else {"instruction": self.dot.instruction.instruction}),
        }

    def check(self, decision: Decision) -> None:
        """PassError W528 for blocks that do not hold whole tiles, or more than there is."""
        rows, columns = self.found.extents[self.r], self.found.extents[self.found.v]
        k_extent = times_of(self.found.extents[self.k], self.granularity)
        for name, extent, granularity, what in (
            ("mc", rows, self.mr, "rows of a tile (mr)"),
            ("nc", columns, self.nr, "columns of a panel"),
            ("kc", k_extent, self.granularity, "products that stay together"),
        ):
            high = extent if isinstance(extent, int) else 1 << 24
            value = checked(decision, name, 1, high, f"there are {high}")
            if value % granularity and value != extent:
                raise refused(f"gemm of {decision.about!r}: {name}={value} is no multiple of the {granularity} {what}")
        checked(decision, "chunks", 1, 1024, "chunks that threads may share")
        for name, here, why in (
            (
                "nc",
                self.reuses_panels or self.has_partial_sums or self.nc == columns or not isinstance(columns, int),
                "with one block of rows panels are packed one at a time",
            ),
            ("chunks", self.chunks == decision.values["chunks"], f"there are {self.chunks} chunks to share"),
        ):
            if not here:
                raise refused(f"gemm of {decision.about!r}: {name}={decision.values[name]} changes nothing: {why}")


def steps_of_part(blocking: Blocking) -> int:
    """Steps of an instruction over matrices of which a panel stays in the first cache beside tiles of A."""
    if blocking.dot is None or not has_matrices(blocking):
        return 0
    steps = ceil_div(blocking.kc, blocking.dot.depth)
    first, _ = blocking.capacity.machine.matrix_caches
    near = first // _PANEL_OF_FIRST * 8 // (blocking.nr * blocking.dot.depth * bits(blocking.dot.b_type))
    return ceil_div(steps, max(1, round(steps / max(1, near))))


def reads_parts(blocking: Blocking) -> bool:
    """Whether several tiles of rows meet a part of a panel before the next one."""
    rows = blocking.found.extents[blocking.r]
    several = not isinstance(rows, int) or rows > blocking.mr
    is_split = blocking.dot is not None and 0 < steps_of_part(blocking) < ceil_div(blocking.kc, blocking.dot.depth)
    return several and is_split and not blocking.shares_rows


def keeps_sums(blocking: Blocking) -> bool:
    """Whether matrices of sums go to memory as they are from one block of k to the next, as they do between its parts.

    Not those of long sums, which are added up block by block.
    """
    if not (blocking.has_partial_sums and reads_parts(blocking)) or blocking.found.may_be_long:
        return False
    extent = blocking.found.extents[blocking.k]
    return isinstance(extent, int) and (extent % blocking.steps == 0 or not in_one_loop(blocking))


def _max_panels(blocking: Blocking) -> int:
    """The maximum of panels in a chunk."""
    many, apart = blocking.capacity.knobs.many_panels, blocking.separate_remainders
    return panels_of_chunk(blocking.nc, blocking.nr, blocking.chunks, apart, many)


def in_one_loop(blocking: Blocking) -> bool:
    """Whether a last block of k that has fewer steps is in the loop over all others."""
    return blocking.granularity == 1 and blocking.found.runs


def rows_of_parts(blocking: Blocking) -> int:
    """The rows whose sums stay near from one part to the next."""
    most = blocking.capacity.machine.stack_bytes * 8 // (blocking.nr * bits(blocking.capacity.dtype))
    return max(1, most // blocking.mr) * blocking.mr


def depth_of(blocking: Blocking) -> int:
    """Products along k that one instruction adds to each sum."""
    return 1 if blocking.dot is None else blocking.dot.depth


def padded_k_of(blocking: Blocking) -> int:
    """The extent along k of a packed constant B: whole steps of its instruction."""
    return ceil_div(blocking.k_extent, depth_of(blocking)) * depth_of(blocking)


def has_matrices(blocking: Blocking) -> bool:
    """Whether tiles are of matrices, so that the last columns take vectors as wide as all others."""
    return blocking.dot is not None and blocking.dot.instruction.is_matrix


def row_of_a(blocking: Blocking) -> int:
    """Elements from one row of a packed block of A to the next: rows that stay in one piece start in other sets of the
    first cache."""
    return blocking.padded_kc + (blocking.capacity.lanes if blocking.packs_rows_of_a else 0)


def blocking_of(found: Contraction, capacity: Capacity, constants: frozenset[Buffer]) -> Blocking:
    """The blocks of a contraction; `constants` are operands that are known when it is compiled."""
    assert found.r is not None
    extents, knobs, pins = found.extents, capacity.knobs, capacity.pins
    rows, columns = extents[found.r], extents[found.v]
    matrix = matrix_dot_of(found, capacity.machine, pins)
    mr, nr_vectors = _tile(found, capacity, matrix)
    nr = nr_vectors * capacity.lanes
    # What masks and empty lanes cost a large product is more than what a text of their own costs to compile.
    sizes = [extents[x] for x in (found.v, found.r, *found.reduction)]
    separate_remainders = knobs.remainders_from <= math.prod(x if isinstance(x, int) else 0 for x in sizes)
    # Panels that are kept need places of their own, which a remainder in narrower panels would not have.
    whole = capacity.masks or (isinstance(columns, int) and columns % nr == 0)
    constant_a = packs_whole(found, found.scalar, found.r, constants)
    constant_b = found.window is None and packs_whole(found, found.vector, found.v, constants)
    granularity = math.prod(known(extents[x]) for x in found.reduction[1:])
    plain = isinstance(rows, int) and found.window is None
    is_large = plain and known(rows) > capacity.mc
    # Panels that are packed one after another are written again and again: in all, chunks hold no more than stays near.
    repacks = plain and not is_large and not constant_b
    steps = _steps(found, capacity, granularity, is_large=is_large, constant_b=constant_b)
    if matrix is not None and not constant_b and "kc" not in pins:
        steps = _steps_of_repacked(found, capacity, matrix, steps, repacks=repacks)
    extent = extents[found.reduction[0]]
    if matrix is not None and steps != extent:
        whole_steps = matrix.depth // math.gcd(matrix.depth, granularity)
        steps = ceil_div(steps, whole_steps) * whole_steps
        steps = min(steps, extent) if isinstance(extent, int) else steps
    has_partial_sums = found.partial_sums is not None and extent != steps
    max_mc = capacity.mc if found.window is None else knobs.window_mc
    size = _packed_bytes(found, capacity)
    if constant_b:
        max_mc = max(mr, min(max_mc, _room_for_a(capacity) // max(1, steps * granularity)))
    if found.partial_sums is not None:
        max_mc = max(mr, max_mc * knobs.kc * 4 // max(knobs.kc * 4, steps * granularity * size))
    if matrix is not None and found.partial_sums is not None:
        max_mc = max(mr, capacity.machine.matrix_caches[1] // _BLOCK_OF_SECOND // (steps * granularity * size))
    mc = pins.get("mc", _even_block(rows, max_mc, mr))
    is_narrow = isinstance(columns, int) and columns <= knobs.few_panels * nr
    are_known = isinstance(rows, int) and isinstance(columns, int) and rows >= 4 * mr
    shares_rows = are_known and is_narrow and whole and not has_partial_sums
    is_single_block = isinstance(rows, int) and rows <= mc
    reuses = whole and not is_single_block and not shares_rows and not constant_b and not has_partial_sums
    max_nc = capacity.nc
    if has_partial_sums:
        most = capacity.knobs.partial_sums_bytes
        if matrix is not None and not found.may_be_long:
            most = max(most, _SUMS_OF_SECOND * capacity.machine.matrix_caches[1])
        max_nc = max(nr, min(max_nc, most // (mc * bits(capacity.dtype) // 8)))
    elif found.partial_sums is not None and matrix is None:
        # Panels of matrices come from the third cache: A's blocks are packed once for all columns.
        max_nc = max(nr, min(max_nc, capacity.knobs.unsplit_bytes // (steps * granularity * size)))
    in_blocks = reuses or has_partial_sums or not isinstance(columns, int)
    own_nc = _columns_by_themselves(found, capacity, nr) if matrix and repacks and has_partial_sums else None
    nc = pins.get("nc", own_nc or (_even_block(columns, max_nc, nr) if in_blocks else columns))
    dot = matrix or _dot(found, capacity, steps, constant_a=constant_a, constant_b=constant_b)
    constant_a = constant_a and dot is None  # columns are many: the copy of A is cheap beside them
    reads_a = is_narrow and not constant_a and not found.casts[0] and dot is None and not has_partial_sums
    # Without a direct nest for few rows, a single one must not be rounded up far.
    is_alone, is_parted = not found.runs or constant_b, constant_b and not isinstance(rows, int)
    return Blocking(
        found,
        capacity,
        mr,
        nr_vectors,
        steps,
        granularity,
        mc,
        nc,
        pins.get("chunks", 1) if own_nc else _chunks(columns, nr, capacity, shares_rows=shares_rows, repacks=repacks),
        *(((mr // 2,), None) if matrix else _remainders(mr, is_alone=is_alone, is_parted=is_parted)),
        along_k(found.scalar, found) if reads_a else None,
        constant_a,
        constant_b,
        shares_rows,
        reuses,
        repacks,
        separate_remainders,
        has_partial_sums,
        own_nc is not None,
        dot,
        dot is None and not constant_a and _has_rows_to_pack(found, capacity),
    )


def _columns_by_themselves(found: Contraction, capacity: Capacity, nr: int) -> int | None:
    """The columns of blocks that threads share, each with all of k: none waits for others, nor has their partial sums.

    Each block packs A for itself, which has few rows beside these columns. Blocks are all alike. One core needs none.
    """
    assert found.r is not None
    rows, columns = found.extents[found.r], found.extents[found.v]
    if not isinstance(columns, int) or columns % nr or capacity.machine.cores == 1:
        return None
    panels = columns // nr
    numbers = (n for n in range(capacity.knobs.few_chunks, 1, -1) if panels % n == 0 and panels // n >= _RUN_OF_PANELS)
    size = next((panels // n * nr for n in numbers), 0)
    return size if known(rows) <= size else None


def _tile(found: Contraction, capacity: Capacity, matrix: Dot | None) -> tuple[int, int]:
    """Rows and vectors of a tile: as many as registers have room for, of matrices two by two."""
    assert found.r is not None
    rows, columns = found.extents[found.r], found.extents[found.v]
    if matrix is None:
        mr, pinned = tile_rows(rows, capacity), capacity.pins.get("nr_vectors", 2 * capacity.knobs.nr_vectors)
        return mr, vectors_of(found, mr, capacity, pinned)
    mr = matrix.most_rows if not isinstance(rows, int) else min(matrix.most_rows, matrix.padded_rows(rows))
    vectors = 2 if not isinstance(columns, int) or columns > capacity.lanes else 1
    return capacity.pins.get("mr", mr), capacity.pins.get("nr_vectors", vectors)


def _remainders(mr: int, *, is_alone: bool, is_parted: bool) -> tuple[tuple[int, ...], int | None]:
    """The sizes of tiles for a symbolic remainder of rows, and for a few more rows than those of a tile."""
    if is_parted and mr >= _MIN_PARTED:
        half = ceil_div(mr, 2 * _ROWS_MULTIPLE) * _ROWS_MULTIPLE
        return (1, half // 2, half), half
    return (1, ceil_div(mr, 2)) if is_alone else (ceil_div(mr, 2),), None


def _has_rows_to_pack(found: Contraction, capacity: Capacity) -> bool:
    """Whether A, which lies along k, can be copied, and converted where it is, in whole vectors."""
    load, k = found.scalar, found.reduction[0]
    if len(found.reduction) > 1 or capacity.lanes == 1:
        return False
    return load.indices[-1] is k and step_along(load, k) == 1 and kinds_in(found.of_a(load)) is not None


def _dot(found: Contraction, capacity: Capacity, steps: int, *, constant_a: bool, constant_b: bool) -> Dot | None:
    """The instruction for the products, where A lies along k in memory and constants have whole groups."""
    if found.window is None and len(found.reduction) != 1:
        return None
    if (found.window is not None or constant_a) and along_k(found.scalar, found) is None:
        return None
    if found.window is None and constant_a and not found.runs:
        return None  # columns would be packed one element at a time
    dot = dot_of(found, capacity.machine)
    if dot is None or not constant_b:
        return dot
    k_extent = known(found.extents[found.reduction[0]])
    return dot if k_extent % dot.group == 0 and (steps % dot.group == 0 or steps == k_extent) else None


def _steps(found: Contraction, capacity: Capacity, granularity: int, *, is_large: bool, constant_b: bool) -> int:
    """Iterations of the outermost reduction that are packed at a time."""
    if "kc" in capacity.pins:
        return max(1, capacity.pins["kc"] // granularity)
    assert found.r is not None
    rows, kc = found.extents[found.r], capacity.knobs.kc
    limit = kc if is_large else 3 * kc // 4
    if found.partial_sums is not None:
        return _steps_of_narrow(found, capacity, granularity)
    if constant_b:
        limit = max(limit, _steps_of_constant(found, capacity))
    if constant_b and isinstance(rows, int):  # nothing but A is packed: few rows may be longer
        limit = max(limit, capacity.mc * kc // max(rows, capacity.max_mr))
    if found.is_long_sum:
        limit = min(limit, BLOCK)
    return block_size(found.extents[found.reduction[0]], max(1, limit // max(1, granularity)))


def _steps_of_repacked(found: Contraction, capacity: Capacity, matrix: Dot, steps: int, *, repacks: bool) -> int:
    """Iterations of a block where panels of a B that runs along the columns are packed right before their tiles.

    A panel is one cache line of each row of B in the block: of many rows these are as many pages of memory. Where rows
    of A are not few, sums go to memory and back for longer blocks, if there are several.
    """
    extent, limit = found.extents[found.reduction[0]], capacity.knobs.repacked_steps * matrix.depth
    if not found.runs or found.window is not None or (not repacks and steps == extent):
        return steps
    return min(steps, block_size(extent, limit if repacks else _FEW_TO_MANY * limit, matrix.depth))


def _steps_of_constant(found: Contraction, capacity: Capacity) -> int:
    """The products of a block where nothing but A is packed: more where panels of B leave the first cache anyway.

    Then they come from afar however long they are, and longer ones write sums back less often.
    """
    kc, (rows, columns) = capacity.knobs.kc, tile_of(capacity)
    item = min(bits(found.vector.dtype) // 8, _packed_bytes(found, capacity))
    if kc * (rows + columns) * item <= capacity.machine.l1_bytes:
        return kc
    return max(kc, capacity.knobs.constant_k * kc * 32 // bits(capacity.dtype))


def _rows_with_room(blocking: Blocking, elements: int) -> Extent:
    """How many rows of so many elements a block has room for, those of a last tile that is not full included.

    Where a symbol is the number of rows, a plan takes what a call needs; what the stack has room for has one size.
    """
    rows, most = blocking.found.extents[blocking.r], blocking.mc + blocking.mr
    fits = most * elements * bits(blocking.capacity.dtype) <= 8 * blocking.capacity.machine.stack_bytes
    if fits or not isinstance(rows, PrimVar):
        return most
    return binary("min", binary("add", as_expr(rows, INDEX), const(blocking.mr, INDEX)), const(most, INDEX))


def _room_for_a(capacity: Capacity) -> int:
    """Elements of A that stay in the second cache beside panels of B that come through it."""
    near = capacity.machine.l2_bytes * 5 // 8 // (bits(capacity.dtype) // 8)
    return max(near, capacity.mc * capacity.knobs.kc)


def _steps_of_narrow(found: Contraction, capacity: Capacity, granularity: int) -> int:
    """Iterations that are packed at a time where a single block along k needs no partial sums."""
    extent = found.extents[found.reduction[0]]
    limit = capacity.knobs.kc * 4 // _packed_bytes(found, capacity)
    if isinstance(extent, int) and extent * granularity <= capacity.knobs.unsplit_k * limit:
        return max(1, extent)
    # Whole groups, whichever instruction adds them.
    steps = block_size(extent, max(1, limit // max(1, granularity)))
    return steps if granularity > 1 or steps < _K_MULTIPLE else ceil_div(steps, _K_MULTIPLE) * _K_MULTIPLE


def _packed_bytes(found: Contraction, capacity: Capacity) -> int:
    """The bytes of an element in packed operands."""
    dot = matrix_dot_of(found, capacity.machine, capacity.pins) or dot_of(found, capacity.machine)
    return bits(capacity.dtype if dot is None else dot.a_type) // 8


def _chunks(columns: Extent, nr: int, capacity: Capacity, *, shares_rows: bool, repacks: bool) -> int:
    panels = ceil_div(columns, nr) if isinstance(columns, int) else capacity.chunks
    if shares_rows:
        return panels
    limit = capacity.knobs.few_chunks if repacks else capacity.chunks
    wanted = capacity.pins.get("chunks", min(limit, capacity.chunks))
    return min(wanted, panels) if isinstance(columns, int) else wanted


def along_k(load: BufferLoad, found: Contraction) -> Buffer | None:
    """An operand with k as one axis, where it lies in that order: axes of one element may follow."""
    count = axes_of_k(load, found)
    if count is None:
        return None
    return load.buffer if count == 1 else flat_view(load.buffer, count)


def known(extent: Extent) -> int:
    """An extent that is a number."""
    assert isinstance(extent, int)
    return extent


def _even_block(extent: Extent, limit: int, granularity: int) -> int:
    """The size of a block: all, or parts of whole panels or tiles that are as even as can be."""
    if not isinstance(extent, int):
        return ceil_div(limit, granularity) * granularity
    if extent <= limit:
        return extent
    return ceil_div(ceil_div(extent, ceil_div(extent, limit)), granularity) * granularity


def block_size(extent: Extent, limit: int, granularity: int = 1) -> int:
    """The size of a block: a known extent that fits, or a part of it that leaves no remainder."""
    if not isinstance(extent, int):
        return limit
    if extent <= limit:
        return extent
    sizes = range(limit // granularity * granularity, limit // 2, -granularity)
    even = next((size for size in sizes if extent % size == 0), 0)
    return even or ceil_div(ceil_div(extent, ceil_div(extent, limit)), granularity) * granularity
