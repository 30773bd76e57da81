"""Knobs: every number that schedules are tuned by, in one frozen value with ranges.

    knobs ::= a level | a level with some of the fields          Knobs.level(2), Knobs.level(2, mc=96, kc=256)
    text  ::= {mc: 96, kc: 256}                                  the fields that differ from the defaults

What a machine has is in `weft.target.MachineModel`; what a user may turn is here. Knobs come to the passes of a
schedule from `weft.compile(..., opt=Knobs(mc=96))`, from a context (`PassContext(config={"knobs": {"mc": 96}})`), or in
the text of a pipeline (`tile-contractions{knobs={mc: 96}}`); the text of a pass shows those that it runs with.

Blocks and tiles of contractions go by the names of Goto and of BLIS: A goes in blocks of mc x kc, B in panels of
kc x nr out of kc x nc, and a tile of mr x nr sums stays in registers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, field, fields
from typing import Any

from weft.errors import PassError, described
from weft.support.records import dataclass
from weft.transform.infra.context import declare_setting, setting
from weft.transform.infra.registry import nearest

__all__ = ["LEVELS", "Knobs", "as_knobs", "in_context"]


def _knob(default: int, low: int, high: int, doc: str) -> Any:
    return field(default=default, metadata={"range": (low, high), "doc": doc})


@dataclass(frozen=True)
class Knobs:
    """The tunables of the scheduler; PassError W526 for a name that is none, W527 for a value out of its range.

    >>> str(Knobs(mc=96)), Knobs(mc=96).kc
    ('{mc: 96}', 512)
    """

    level: int = _knob(2, 0, 3, "which passes run and how much the code generator does; `Knobs.level` in `opt=`")

    mc: int = _knob(168, 1, 1 << 16, "rows of A in a packed block, which stays in the second cache")
    nc: int = _knob(2048, 1, 1 << 24, "columns of B that are packed at a time")
    kc: int = _knob(512, 1, 1 << 16, "products of each sum in a packed block")
    nr_vectors: int = _knob(2, 1, 8, "vectors in a row of a full register tile")
    nr_max_vectors: int = _knob(16, 1, 64, "vectors in a row of a register tile where there are few rows")
    pack_from: int = _knob(0, 0, 1 << 40, "elements of B from which on it is packed; 0: what the second cache says")
    window_mc: int = _knob(512, 1, 1 << 16, "rows of A in a packed block where windows move over B")
    few_rows: int = _knob(8, 1, 1 << 16, "rows from which on a constant B that a near cache holds is packed")
    inner_rows: int = _knob(24, 2, 1 << 16, "rows from which on B, which lies along k, is packed; fewer read it there")
    inner_dot_pair_rows: int = _knob(6, 2, 1 << 16, "the same where an instruction adds two products to each sum")
    inner_dot_rows: int = _knob(3, 2, 1 << 16, "the same where it adds four products")
    inner_k: int = _knob(256, 1, 1 << 30, "products of each sum from which on few rows read such a B where it lies")
    inner_columns: int = _knob(4, 1, 64, "results that share a vector of A there")
    converted_from: int = _knob(1 << 10, 0, 1 << 40, "elements of B from which on it is packed where it is converted")
    winograd: int = _knob(2, 0, 4, "results along an axis of the largest tiles of Winograd convolutions: 2, 4, 0: none")
    few_panels: int = _knob(8, 0, 1 << 16, "panels up to which threads share the rows")
    many_panels: int = _knob(8, 1, 1 << 16, "whole panels from which on the last one, under a mask, shares their text")
    remainders_from: int = _knob(1 << 27, 0, 1 << 60, "multiplications from which on remainders have their own text")
    prefetch_k: int = _knob(32, 0, 1 << 10, "how many steps of k ahead a panel of B is prefetched")
    prefetch_bytes: int = _knob(2048, 0, 1 << 20, "how many bytes of weights of few bits ahead these are prefetched")
    stream_k: int = _knob(16, 1, 1 << 16, "rows of a large B that few rows of A read from end to end")
    stream_max_k: int = _knob(128, 1, 1 << 16, "the maximum of such rows of B")
    stream_from: int = _knob(1 << 17, 1, 1 << 40, "elements that such rows of B have together")
    stream_vectors: int = _knob(
        16, 1, 64, "vectors in a row of a tile there, where the second cache holds such rows of B"
    )
    stream_min_vectors: int = _knob(4, 1, 64, "vectors where it does not, and at least where threads share the tiles")
    stream_far_k: int = _knob(
        8, 1, 1 << 16, "rows of a B that memory alone holds which few rows of A read side by side"
    )
    stream_far_vectors: int = _knob(8, 1, 64, "vectors in a row of a tile there")
    stream_far_rows: int = _knob(4, 0, 64, "the maximum of rows of A there")
    stream_ahead: int = _knob(1024, 0, 1 << 20, "how many bytes ahead such rows of B are prefetched")
    stream_max_rows: int = _knob(16, 1, 1 << 16, "rows of A that stream with partial sums on the stack")
    stream_max_columns: int = _knob(512, 1, 1 << 16, "columns of such a block")
    constant_k: int = _knob(2, 1, 64, "times kc that are one block where B is a constant")
    repacked_steps: int = _knob(4, 1, 1 << 12, "steps of k in a block of matrices where few rows meet a B that varies")
    unsplit_k: int = _knob(2, 1, 64, "times kc that are one block where blocks would need memory for partial sums")
    partial_sums_bytes: int = _knob(1 << 19, 1, 1 << 40, "the maximum of partial sums where C has no place for them")
    unsplit_bytes: int = _knob(2 << 20, 1, 1 << 40, "the maximum of the panels of longer blocks of k")
    chunks: int = _knob(16, 1, 1 << 10, "the maximum of chunks that threads may share")
    few_chunks: int = _knob(8, 1, 1 << 10, "the maximum of chunks where each packs its panels again and again")
    min_chunks: int = _knob(4, 1, 1 << 10, "iterations from which on a loop around a chain is worth sharing")

    row_block: int = _knob(84, 1, 1 << 16, "rows of a chain of contractions that are computed at a time")
    key_block: int = _knob(512, 1, 1 << 20, "keys of attention that are computed at a time")
    attention_single_rows: int = _knob(6, 0, 1 << 16, "rows of an unknown number up to which each goes alone")
    narrow_attention: int = _knob(1, 0, 1, "whether attention rounds probabilities to bfloat16, where matrices are")
    attention_rows: int = _knob(16, 1, 1 << 16, "rows from which on a copy of all keys pays")

    accumulators: int = _knob(4, 1, 64, "vectors that a reduction along a row runs in")
    column_vectors: int = _knob(8, 1, 64, "vectors that a reduction down the columns runs in")
    wide_column_vectors: int = _knob(64, 1, 1 << 10, "vectors of columns that stay in a cache where rows are many")
    column_rows: int = _knob(8, 2, 64, "rows that are combined at a time there")
    argreduce_vectors: int = _knob(2, 1, 16, "vectors in which the position of a maximum or minimum is looked for")
    argreduce_group: int = _knob(8, 1, 64, "vectors whose maximum or minimum is compared with the best one so far")
    scan_rows: int = _knob(4, 1, 64, "rows that a scan whose joins may not be grouped runs through side by side")
    split_from: int = _knob(1 << 18, 1, 1 << 40, "elements from which on a reduction to few results is split")
    split_results: int = _knob(1 << 12, 1, 1 << 30, "results up to which a reduction is split")
    max_stride: int = _knob(4, 1, 64, "the widest constant stride that a vector is gathered from whole loads with")
    map_vectors: int = _knob(4, 1, 64, "vectors in a step of a cheap elementwise loop")
    gather_ahead: int = _knob(2, 0, 64, "rows ahead of which a gathered row is prefetched, 0 for none")
    gather_lines: int = _knob(4, 1, 64, "cache lines of such a row that are prefetched")
    gather_block: int = _knob(512, 0, 1 << 20, "rows whose indices are checked just before they are read, 0 for all")

    parallel_iterations: int = _knob(16, 1, 1 << 20, "iterations that are enough for an outer loop to be shared")
    parallel_from: int = _knob(4096, 0, 1 << 40, "stores from which on a loop is made parallel")
    typical_extent: int = _knob(256, 1, 1 << 30, "what a size that is not known counts as there")

    def __post_init__(self) -> None:
        for item in fields(self):
            value, (low, high) = getattr(self, item.name), item.metadata["range"]
            if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
                hint = item.metadata["doc"]
                raise PassError(f"knob {item.name} is {low} to {high}, got {value!r}", code="W527", hint=hint)

    @classmethod
    def of_level(cls, level: int, **changed: Any) -> Knobs:
        """The knobs of a level, with some of them changed.

        >>> Knobs.of_level(3, mc=96).level
        3
        """
        return as_knobs({"level": level, **changed})

    @classmethod
    def known(cls) -> tuple[Field[Any], ...]:
        """The knobs: name, default, and `metadata` with `range` and `doc`."""
        return fields(cls)

    def to_dict(self) -> dict[str, int]:
        """The knobs that differ from their defaults."""
        return {item.name: value for item in fields(self) if (value := getattr(self, item.name)) != item.default}

    def __str__(self) -> str:
        return "{" + ", ".join(f"{name}: {value}" for name, value in self.to_dict().items()) + "}"

    def explain(self) -> str:
        """One line per knob: value, range, meaning."""
        lines = []
        for item in fields(self):
            low, high = item.metadata["range"]
            lines.append(f"{item.name} = {getattr(self, item.name)} ({low} to {high}): {item.metadata['doc']}")
        return "\n".join(lines)


def as_knobs(value: object) -> Knobs:
    """Knobs as they are, of a level, or from names and values; PassError W526, W527."""
    if isinstance(value, Knobs):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return LEVELS[value] if 0 <= value < len(LEVELS) else Knobs(level=value)
    if not isinstance(value, Mapping):
        hint = 'as in Knobs(mc=96) or {"mc": 96}'
        raise PassError(f"knobs are names and numbers, got {described(value)}", code="W527", hint=hint)
    known = [item.name for item in fields(Knobs)]
    for name in value:
        if name not in known:
            hint = nearest(str(name), known) or ", ".join(known)
            raise PassError(f"there is no knob {name!r}", code="W526", hint=hint)
    return Knobs(**value)


def in_context(own: Knobs) -> Knobs:
    """The knobs that a pass runs with: its own, under what the setting `knobs` of the context says where they say
    nothing."""
    found = setting("knobs")
    return own if found is None else Knobs(**{**as_knobs(found).to_dict(), **own.to_dict()})


LEVELS: tuple[Knobs, ...] = tuple(Knobs(level=level) for level in range(4))
"""What `opt=0` to `opt=3` mean."""
declare_setting("knobs", as_knobs)
