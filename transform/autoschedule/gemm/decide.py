"""What is decided about a contraction, and whether it can be followed.

    form        packed, direct, or packed or direct (as symbolic sizes say when the kernel runs)
    mr, nr_vectors, lanes        the register tile: mr rows of nr_vectors vectors of lanes
    mc, nc, kc                   packed blocks: mc x kc of A, kc x nc of B (0 where nothing is packed)
    chunks                       of work that threads may share
    a, b                         how operands are packed: blocks or panels, constant (when compiled), in place
    shares, reuses_panels, repacks_per_block, accumulates, remainders, epilogue      what follows from the rest

The first seven may be pinned, but for lanes.
"""

from __future__ import annotations

from typing import Any

from weft.ir import FrozenMap
from weft.ir.tensor import Buffer, IfThenElse, PrimExpr, Stmt
from weft.target.machine_model import MachineModel
from weft.transform.autoschedule.gemm.blocking import blocking_of
from weft.transform.autoschedule.gemm.direct import direct
from weft.transform.autoschedule.gemm.match import Contraction
from weft.transform.autoschedule.gemm.packed import packed
from weft.transform.autoschedule.gemm.tiling import Capacity, packing_pays, tile_rows, tile_vectors
from weft.transform.autoschedule.gemm.whole_constants import packed_constants
from weft.transform.autoschedule.knobs import Knobs
from weft.transform.autoschedule.registry import GEMM_ORDER, Rule, Site, checked
from weft.transform.infra.decisions import Decision, refused

__all__ = ["GEMM", "apply_gemm", "decide_gemm"]

_BOTH = "packed or direct"


def decide_gemm(about: str, found: Contraction, capacity: Capacity, constants: frozenset[Buffer]) -> Decision | None:
    """Tiles and blocks of a contraction; None where B is read across and packing it does not pay."""
    packs = packing_pays(found, capacity, constants)
    if packs is False and not found.runs:
        return None
    form = "packed" if packs is True else "direct" if packs is False else _BOTH
    return Decision(about, GEMM.name, _values(found, capacity, constants, form), _reason(found, form))


def _values(found: Contraction, capacity: Capacity, constants: frozenset[Buffer], form: str) -> dict[str, Any]:
    if form != "direct":
        values = blocking_of(found, capacity, constants).values()
        return {"form": form, **values, "epilogue": found.epilogue is not None}
    rows = 1 if found.r is None else tile_rows(found.extents[found.r], capacity)
    vectors = tile_vectors(rows, found.extents[found.v], capacity)
    return {
        "form": form, "mr": rows, "nr_vectors": vectors, "lanes": capacity.lanes, "accumulates": found.accumulates,
        "epilogue": found.epilogue is not None,
    }  # fmt: skip


def _reason(found: Contraction, form: str) -> str:
    if found.window is not None:
        return "windows become columns as they are packed"
    if form == "packed":
        return "B is read by several tiles and too large for a near cache" if found.runs else "B is read across"
    return "symbolic sizes say when packing pays" if form == _BOTH else "a near cache has B, or few rows read it"


def apply_gemm(
    found: Contraction, decision: Decision, capacity: Capacity, constants: frozenset[Buffer]
) -> tuple[tuple[Stmt, ...], Stmt, Decision]:
    """What packs constants, the nest, and the decision with what follows from it; PassError W528 where it cannot be."""
    form = str(decision.values.get("form"))
    packs = _condition(found, decision, form, packing_pays(found, capacity, constants))
    _check_tile(decision, capacity)
    pinned = Capacity(capacity.machine, capacity.knobs, capacity.dtype, FrozenMap(_pins(decision)))
    if packs is False:
        return (), direct(found, pinned), _complete(decision, _values(found, pinned, constants, form))
    blocking = blocking_of(found, pinned, constants)
    blocking.check(decision)
    values = {"form": form, **blocking.values(), "epilogue": found.epilogue is not None}
    first, tiles = tuple(packed_constants(blocking)), packed(blocking)
    if packs is not True:
        tiles = IfThenElse(packs, tiles, direct(found, pinned))
    return first, tiles, _complete(decision, values)


def _complete(decision: Decision, values: dict[str, Any]) -> Decision:
    return Decision(decision.about, decision.kind, values, decision.reason)


def _pins(decision: Decision) -> dict[str, Any]:
    return {name: value for name, value in decision.values.items() if name in GEMM.pins and name != "form"}


def _condition(found: Contraction, decision: Decision, form: str, packs: bool | PrimExpr) -> bool | PrimExpr:
    """Whether to pack, under a condition where the form says so; W528 where the form cannot be had."""
    can_pack = found.window is not None or (found.r is not None and len(found.reduction) == 1)
    if form in ("packed", _BOTH) and not can_pack:
        raise refused(f"gemm of {decision.about!r}: there are no rows, or several sums, to pack operands for")
    if form in ("direct", _BOTH) and not found.runs:
        raise refused(f"gemm of {decision.about!r}: B is not read along its last axis, so that it has to be packed")
    if form == _BOTH and isinstance(packs, bool):
        raise refused(f"gemm of {decision.about!r}: all sizes are known, nothing is left to decide at run time")
    if form not in ("packed", "direct", _BOTH):
        raise refused(f"gemm of {decision.about!r} has no form {form!r}", hint=f"packed, direct, {_BOTH}")
    return packs if form == _BOTH else form == "packed"


def _check_tile(decision: Decision, capacity: Capacity) -> None:
    registers = capacity.machine.vector_registers
    rows = checked(decision, "mr", 1, 1024, "rows of a register tile")
    vectors = checked(decision, "nr_vectors", 1, 64, "vectors in a row of a register tile")
    if rows * vectors + 2 > registers and (rows, vectors) != _smallest(capacity):
        raise refused(
            f"gemm of {decision.about!r}: a tile of {rows} x {vectors} vectors needs {rows * vectors + 2} registers, "
            f"the machine has {registers}",
        )


def _smallest(capacity: Capacity) -> tuple[int, int]:
    """The tile that is taken where there are too few registers for any."""
    return capacity.max_mr, capacity.knobs.nr_vectors


class GemmRule(Rule):
    """Contractions in register tiles, over packed operands where that pays.

    `TileContractions` decides and applies it itself: a contraction takes the statement after it with it.
    """

    name = "gemm"
    order = GEMM_ORDER
    pins = frozenset(("form", "mr", "nr_vectors", "mc", "nc", "kc", "chunks"))

    def applies(self, site: Site, machine: MachineModel, knobs: Knobs) -> bool:
        """Never by itself."""
        return False


GEMM = GemmRule()
