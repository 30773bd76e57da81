"""What is decided about a contraction, and whether it can be obeyed.

    form        packed, direct, inner, or several of these (as symbolic sizes say when the kernel runs); channels where
                windows meet constant weights, columns where those of one element do, winograd2 and winograd4 where
                tiles of 2x2 and 4x4 results take fewer products than these, planes where each result has a plane to
                itself
    mr, nr_vectors, lanes        the register tile: mr rows of nr_vectors vectors of lanes; of inner products, mr rows
                                 of nr_vectors results, each a vector of sums along k
    mc, nc, kc                   packed blocks: mc x kc of A, kc x nc of B (0 where nothing is packed); by channels
                                 or columns, mc positions of windows, of Winograd's forms tiles
    chunks                       of work that threads may share
    planes, images               what pads the input: planes are read in place, under masks, or copied; images are
    a, b                         how operands are packed: blocks or panels, constant (when compiled), in place
    shares, reuses_panels, repacks_per_block, accumulates, remainders, epilogue      what follows from the rest
    parts                        of the columns, which tiles put together
    k_part                       products of each sum that tiles of matrices add before the next tile of rows does
    results                      far, where the second cache does not hold them: the steps of a tile prefetch where it
                                 ends, and tiles of rows go along what results are put together with
    operands                     far, where results are put together with parts of an array that no near cache holds,
                                 which the call chooses (of all steps of a loop, its own): prefetched in the same way

The first seven may be pinned, but for lanes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from weft.dtypes import bits, is_float
from weft.ir import FrozenMap
from weft.ir.tensor import Buffer, IfThenElse, PrimExpr, Stmt
from weft.support.records import dataclass
from weft.target.machine_model import MachineModel
from weft.transform.autoschedule.gemm.blocking import blocking_of, has_matrices
from weft.transform.autoschedule.gemm.collapse_rows import with_collapsed_rows
from weft.transform.autoschedule.gemm.convolutions.channels import (
    Channels,
    channels_of,
    cost_of_direct,
    cost_of_matrices,
    with_images,
)
from weft.transform.autoschedule.gemm.convolutions.columns import Columns, columns_of
from weft.transform.autoschedule.gemm.convolutions.implicit_gemm import match_planes, match_windows
from weft.transform.autoschedule.gemm.convolutions.look_ahead import looks_ahead
from weft.transform.autoschedule.gemm.convolutions.planes import Planes, planes_of, with_planes
from weft.transform.autoschedule.gemm.convolutions.winograd import FORMS as _WINOGRAD
from weft.transform.autoschedule.gemm.convolutions.winograd import Winograd, form_of_windows, winograd_of
from weft.transform.autoschedule.gemm.convolutions.winograd_block import winograd_loops
from weft.transform.autoschedule.gemm.direct import direct, streams
from weft.transform.autoschedule.gemm.dot_products.dot import dot_of, matrix_dot_of
from weft.transform.autoschedule.gemm.epilogue import (
    cases_without_terms,
    chosen_parts,
    has_far_results,
    with_epilogue,
    with_parts,
)
from weft.transform.autoschedule.gemm.few_columns import few_columns
from weft.transform.autoschedule.gemm.inner_products import block_of_results, inner_products, is_inner, rows_that_pack
from weft.transform.autoschedule.gemm.match import Contraction, match, products_of, views_of
from weft.transform.autoschedule.gemm.packed import packed
from weft.transform.autoschedule.gemm.tiling import (
    Capacity,
    at_least,
    even_vectors,
    packing_pays,
    tile_rows,
    vectors_of,
)
from weft.transform.autoschedule.gemm.whole_constants import packed_constants
from weft.transform.autoschedule.knobs import Knobs
from weft.transform.autoschedule.registry import GEMM_ORDER, Rule, Site, Taken, checked
from weft.transform.autoschedule.rules.loops import sequence
from weft.transform.infra.decisions import Decision, refused

__all__ = ["GemmRule", "apply_gemm", "complete_gemm", "decide_gemm"]

_PACKED, _DIRECT, _INNER, _CHANNELS, _PLANES = "packed", "direct", "inner", "channels", "planes"
_COLUMNS = "columns"
_FEWEST_ROWS = 6
"""Of a tile whose vectors are more than the knobs say."""
_OR = f"{_PACKED} or "
_OR_INNER = f" or {_INNER}"


def decide_gemm(about: str, found: Contraction, capacity: Capacity, constants: frozenset[Buffer]) -> Decision | None:
    """Tiles and blocks of a contraction; None where B is read across and packing it does not pay."""
    packs, in_place = _packs(found, capacity, constants), _in_place(found, capacity.knobs, constants)
    if packs is False and in_place is None:
        return None
    form = _PLANES if planes_of(found, capacity) is not None else _form_of_windows(found, capacity, constants)
    if form is None:
        form = _by_matrices(found, capacity, constants, packs, in_place)
    return Decision(about, GemmRule.name, _values(found, capacity, constants, form), _reason(found, form))


def _form_of_windows(
    found: Contraction, capacity: Capacity, constants: frozenset[Buffer], product: Contraction | None = None
) -> str | None:
    """The form that reads windows where they are; None where matrices are better, as which they are that product."""
    if matrix_dot_of(found, capacity.machine, capacity.pins) is not None:
        return None
    channels = channels_of(found, capacity, constants)
    if channels is None:
        return None
    matrices = _cost_of_product(channels, capacity, constants, product)
    return form_of_windows(channels, _largest_winograd(found, capacity.knobs), matrices)


def _cost_of_product(
    channels: Channels, capacity: Capacity, constants: frozenset[Buffer], product: Contraction | None
) -> float | None:
    """What windows cost as a product of matrices; None where columns of windows of one element are better: those that
    are far are read in longer runs, and few of them are copied as near as panels are."""
    columns = columns_of(channels)
    if product is None or columns is None or not columns.is_one_run:
        is_plain = columns is not None and columns.is_one_run
        return None if is_plain else cost_of_matrices(channels, product is None or not product.runs)
    ahead, l2 = looks_ahead(product, capacity), capacity.machine.l2_bytes
    if not ahead and channels.image_bytes > l2:
        return None
    if ahead or _packs(product, capacity, constants) is False:
        return cost_of_direct(channels)
    copied = columns.products * columns.columns * bits(columns.found.dtype) // 8
    return None if 4 * copied < l2 else cost_of_matrices(channels, copies=False)


def _largest_winograd(found: Contraction, knobs: Knobs) -> int:
    """Rows of Winograd's tiles at most: the largest ones where results have so few digits that all errors are alike."""
    is_half = is_float(found.store.buffer.dtype) and bits(found.store.buffer.dtype) < bits(found.dtype)
    return max(_WINOGRAD.values()) if knobs.winograd and is_half else knobs.winograd


def _by_matrices(
    found: Contraction,
    capacity: Capacity,
    constants: frozenset[Buffer],
    packs: bool | PrimExpr,
    in_place: str | None,
) -> str:
    """The form that reads B as a matrix, or several, among which sizes decide when the kernel runs."""
    few = few_columns(found, capacity, constants)
    if few is True:
        return _INNER
    form = _PACKED if packs is True else str(in_place) if packs is False else f"{_OR}{in_place}"
    return form if few is False else f"{form}{_OR_INNER}"


def _in_place(found: Contraction, knobs: Knobs, constants: frozenset[Buffer]) -> str | None:
    """The form that reads B where it is; None where it has to be packed."""
    return _DIRECT if found.runs else _INNER if is_inner(found, knobs, constants) else None


def _packs(found: Contraction, capacity: Capacity, constants: frozenset[Buffer]) -> bool | PrimExpr:
    """Whether to pack, or the condition on symbolic sizes under which to."""
    if looks_ahead(found, capacity):
        return False
    if _in_place(found, capacity.knobs, constants) != _INNER:
        return packing_pays(found, capacity, constants)
    assert found.r is not None
    return at_least(found.extents[found.r], rows_that_pack(found, capacity.machine, capacity.knobs))


def _windows(
    found: Contraction, form: str, capacity: Capacity, constants: frozenset[Buffer]
) -> Channels | Columns | Planes | Winograd | None:
    """The nest that reads windows where they are; None where the form is another one, or cannot be had."""
    if form == _PLANES:
        return planes_of(found, capacity)
    if form in _WINOGRAD:
        return winograd_of(channels_of(found, capacity, constants), _WINOGRAD[form])
    if form == _COLUMNS:
        return columns_of(channels_of(found, capacity, constants))
    return channels_of(found, capacity, constants) if form == _CHANNELS else None


def _fills(found: Contraction, decision: Decision, capacity: Capacity, constants: frozenset[Buffer]) -> bool:
    """Whether the nest computes the input of its windows itself."""
    windows = _windows(found, str(decision.values["form"]), _pinned(decision, capacity), constants)
    return windows is not None and not isinstance(windows, Columns) and windows.filling is not None


def _values(found: Contraction, capacity: Capacity, constants: frozenset[Buffer], form: str) -> dict[str, Any]:
    if form == _INNER:
        rows, columns = block_of_results(found, capacity)
        values = {"mr": rows, "nr_vectors": columns, "lanes": capacity.lanes, "accumulates": found.accumulates}
        return {"form": form, **values, "epilogue": found.epilogue is not None}
    windows = _windows(found, form, capacity, constants)
    if windows is not None:
        return {"form": form, **windows.values(), "epilogue": found.epilogue is not None}
    if _base(found, form) != _DIRECT:
        blocking = blocking_of(found, capacity, constants)
        results = {} if has_matrices(blocking) else _results(found, capacity)
        values = {**blocking.values(), "epilogue": found.epilogue is not None, **_parts(found), **results}
        return {"form": form, **values}
    rows = 1 if found.r is None else tile_rows(found.extents[found.r], capacity)
    vectors = vectors_of(found, rows, capacity)
    return {
        "form": form,
        "mr": rows,
        "nr_vectors": vectors,
        "lanes": capacity.lanes,
        "accumulates": found.accumulates or streams(found, capacity),
        "epilogue": found.epilogue is not None,
        **_parts(found),
        **_results(found, capacity),
    }


def _parts(found: Contraction) -> dict[str, Any]:
    """What a record says of the parts of the columns, where there are some."""
    return {} if found.parts is None else {"parts": found.part_count}


def _results(found: Contraction, capacity: Capacity) -> dict[str, Any]:
    """What a record says of results that no near cache holds, and of what they are put together with."""
    if has_far_results(found, capacity):
        return {"results": "far"}
    return {"operands": "far"} if not found.outer and chosen_parts(found, capacity) else {}


def _reason(found: Contraction, form: str) -> str:
    if form == _PLANES:
        return "each result has a plane to itself"
    if form in _WINOGRAD:
        return "transformed windows of 3x3 take fewer products of constant weights"
    if form == _CHANNELS:
        return "vectors of constant weights meet elements where they are"
    if form == _COLUMNS:
        return "some positions are copied for all constant weights"
    if found.window is not None:
        return "windows become columns as they are packed"
    if form == _INNER:
        return "few columns, or few rows read B, which lies along k"
    if form == _PACKED:
        return "B is read by several tiles and too large for a near cache" if found.runs else "B is read across"
    if form == f"{_DIRECT}{_OR_INNER}":
        return "a symbolic size says when columns are few"
    return "symbolic sizes say when packing pays" if form != _DIRECT else "a near cache has B, or few rows read it"


def complete_gemm(found: Contraction, decision: Decision, capacity: Capacity, constants: frozenset[Buffer]) -> Decision:
    """The decision with what follows from it; PassError W528 where it cannot be followed."""
    form = str(decision.values.get("form"))
    reads_windows = form in (_CHANNELS, _COLUMNS, _PLANES, *_WINOGRAD)
    packs = not reads_windows and _condition(found, decision, form, capacity, constants)
    if reads_windows and _windows(found, form, capacity, constants) is None:
        raise refused(f"gemm of {decision.about!r}: there are no windows, or {_NEEDS.get(form, _OF_WINOGRAD)}")
    decision = _in_form(found, decision, form, capacity, constants)
    pinned = _pinned(decision, capacity)
    _check_tile(decision, capacity, matrix_dot_of(found, capacity.machine, pinned.pins) is not None)
    _check_parts(found, decision, pinned)
    windows = _windows(found, form, pinned, constants)
    if windows is not None:
        windows.check(decision)
    elif packs is not False:
        blocking_of(found, pinned, constants).check(decision)
    return Decision(decision.about, decision.kind, _values(found, pinned, constants, form), decision.reason)


def _in_form(
    found: Contraction, decision: Decision, form: str, capacity: Capacity, constants: frozenset[Buffer]
) -> Decision:
    """The decision without the tiles and blocks of another form, where the form was pinned."""
    default = decide_gemm(decision.about, found, capacity, constants)
    if default is None or default.values["form"] == form:
        return decision
    own = {name: value for name, value in decision.values.items() if value != default.values.get(name)}
    chosen = dataclasses.replace(decision, values=FrozenMap(own))
    return dataclasses.replace(
        decision, values=FrozenMap({**_values(found, _pinned(chosen, capacity), constants, form), **own})
    )


def apply_gemm(found: Contraction, decision: Decision, capacity: Capacity, constants: frozenset[Buffer]) -> Stmt:
    """Views, what packs constants, and the nest."""
    pinned = _pinned(decision, capacity)
    form = decision.values["form"]
    views = views_of(found)
    if form == _INNER:
        return sequence([*views, inner_products(found, pinned, constants)])
    windows = _windows(found, str(form), pinned, constants)
    if isinstance(windows, Winograd):
        return sequence([*views, *windows.packed_weights(), winograd_loops(windows)])
    if isinstance(windows, Channels | Columns):
        return sequence([*views, *windows.packed_weights(), windows.build()])
    if windows is not None:
        return sequence([*views, windows.build()])
    base = _base(found, str(form))
    copies: Iterator[Stmt] = iter(())
    if base == _DIRECT:
        tiles = direct(found, pinned)
    else:
        blocking = blocking_of(found, pinned, constants)
        copies, tiles = packed_constants(blocking), packed(blocking)
        if base != _PACKED:
            packs = _packs(found, capacity, constants)
            assert not isinstance(packs, bool)
            # A tile of matrices says nothing of the rows that vectors have registers for.
            own = capacity if has_matrices(blocking) else pinned
            others = direct(found, own) if found.runs else inner_products(found, capacity, constants)
            tiles = IfThenElse(packs, tiles, others)
    if base != form:
        few = few_columns(found, capacity, constants)
        assert not isinstance(few, bool)
        tiles = IfThenElse(few, inner_products(found, capacity, constants), tiles)
    return sequence([*views, *copies, tiles])


def _base(found: Contraction, form: str) -> str:
    """The form without inner products over few columns, where the kernel tells whether they are few."""
    return form.removesuffix(_OR_INNER) if found.runs else form


def _pinned(decision: Decision, capacity: Capacity) -> Capacity:
    """The capacity with the values of a decision that are not to be chosen again."""
    pins = {name: value for name, value in decision.values.items() if name in GemmRule.pins and name != "form"}
    return Capacity(capacity.machine, capacity.knobs, capacity.dtype, FrozenMap(pins))


def _condition(
    found: Contraction, decision: Decision, form: str, capacity: Capacity, constants: frozenset[Buffer]
) -> bool | PrimExpr:
    """Whether to pack, under a condition where the form says so; W528 where the form cannot be had."""
    can_pack = found.r is not None and (found.window is not None or len(found.reduction) == 1)
    packs, in_place = _packs(found, capacity, constants), _in_place(found, capacity.knobs, constants)
    few = few_columns(found, capacity, constants)
    if form not in _MATRIX_FORMS:
        hint = ", ".join((*_MATRIX_FORMS[:3], _CHANNELS, _COLUMNS, *_WINOGRAD, _PLANES, *_MATRIX_FORMS[3:]))
        raise refused(f"gemm of {decision.about!r} has no form {form!r}", hint=hint)
    if form.startswith(_PACKED) and not can_pack:
        raise refused(f"gemm of {decision.about!r}: there are no rows, or several reductions, to pack operands for")
    if _DIRECT in form and not found.runs:
        raise refused(f"gemm of {decision.about!r}: B is not read along its last axis, so that it has to be packed")
    base = _base(found, form)
    if base.endswith(_INNER) and in_place != _INNER and few is not True:
        raise refused(f"gemm of {decision.about!r}: inner products need both operands along k, and no constant B")
    if (base.startswith(_OR) and isinstance(packs, bool)) or (base != form and isinstance(few, bool)):
        raise refused(f"gemm of {decision.about!r}: all sizes are known, nothing is left to decide at run time")
    return packs if base.startswith(_OR) else base == _PACKED


_NEEDS = {
    _CHANNELS: "too few channels of constant weights",
    _COLUMNS: "they have several elements, or too many channels for a block",
    _PLANES: "several rows read the same elements",
}
_OF_WINOGRAD = "they are others than 3x3 summed in float32 that move by one over enough channels of constant weights"
_MATRIX_FORMS = (
    _PACKED,
    _DIRECT,
    _INNER,
    f"{_OR}{_DIRECT}",
    f"{_OR}{_INNER}",
    f"{_DIRECT}{_OR_INNER}",
    f"{_OR}{_DIRECT}{_OR_INNER}",
)


def _check_tile(decision: Decision, capacity: Capacity, has_matrices: bool) -> None:
    registers = capacity.machine.vector_registers
    rows = checked(decision, "mr", 1, 1024, "rows of a register tile")
    vectors = checked(decision, "nr_vectors", 1, 64, "vectors in a row of a register tile")
    if not has_matrices and rows * vectors + 2 > registers and (rows, vectors) != _smallest(capacity):
        raise refused(
            f"gemm of {decision.about!r}: a tile of {rows} x {vectors} vectors needs {rows * vectors + 2} registers, "
            f"the machine has {registers}",
        )


def _check_parts(found: Contraction, decision: Decision, capacity: Capacity) -> None:
    """PassError W528 for panels that are no whole vectors of each part of the columns."""
    vectors = decision.values["nr_vectors"] if found.parts is not None else 1
    if found.parts is not None and even_vectors(found, vectors, capacity) != vectors:
        raise refused(
            f"gemm of {decision.about!r}: panels of nr_vectors={vectors} are no whole vectors of each of "
            f"{found.part_count} parts of {found.parts.columns} columns"
        )


def _smallest(capacity: Capacity) -> tuple[int, int]:
    """The tile that is taken where there are too few registers for any."""
    return capacity.max_mr, capacity.knobs.nr_vectors


@dataclass(frozen=True)
class _Found:
    """The contraction that a nest is, with the next statement as its epilogue where that can be."""

    contraction: Contraction
    capacity: Capacity
    takes_next: bool = False


def _found(site: Site, machine: MachineModel, knobs: Knobs) -> _Found | None:
    found = _recognised(site, machine, knobs)
    if found is None or not (found.pays or is_inner(found, knobs, site.constants)):
        return None
    capacity = Capacity(machine, knobs, found.dtype)
    following = site.following
    if following:
        fused = with_epilogue(found, following[0], following[1:])
        if fused is not None and fused.store is not found.store and not _is_free(site, found):
            fused = None  # what it would leave out is a result of its own
        if fused is not None:
            fused = with_collapsed_rows(fused, 2 * capacity.max_mr)
            has_place = fused.runs or is_inner(fused, knobs, site.constants)
            if has_place or _packs(fused, capacity, site.constants) is not False:
                return _Found(fused, capacity, takes_next=True)
        parted = with_parts(found, following[0], following[1:], capacity, site.constants)
        if parted is not None and _is_free(site, found) and _is_tiled(found, capacity, site.constants):
            return _Found(
                with_collapsed_rows(parted, 2 * capacity.max_mr), _for_parts(parted, capacity, site.constants), True
            )
    return _Found(with_collapsed_rows(found, 2 * capacity.max_mr), capacity)


def _is_tiled(found: Contraction, capacity: Capacity, constants: frozenset[Buffer]) -> bool:
    """Whether sums are in tiles of columns, whatever the sizes are."""
    in_place = found.runs or not is_inner(found, capacity.knobs, constants)
    return in_place and few_columns(found, capacity, constants) is False


def _for_parts(found: Contraction, capacity: Capacity, constants: frozenset[Buffer]) -> Capacity:
    """The capacity where a tile has vectors of each part: so many that elements which are converted fill them, where
    there are registers, as pieces of rows would be parts of cache lines."""
    vectors = max(capacity.knobs.nr_vectors, found.part_count)
    wider = found.part_count * bits(found.dtype) // bits(found.vector.dtype)
    if found.vector.buffer not in constants and _FEWEST_ROWS * wider < capacity.machine.vector_registers:
        vectors = max(vectors, wider)
    return dataclasses.replace(capacity, knobs=dataclasses.replace(capacity.knobs, nr_vectors=vectors))


def _is_free(site: Site, found: Contraction) -> bool:
    """Whether sums need not be stored, as far as the statements up to the nest tell."""
    return found.result is not None and site.is_local(found.result)


def _recognised(site: Site, machine: MachineModel, knobs: Knobs) -> Contraction | None:
    """What a nest is: a product of matrices, windows, or windows where they are better than a product of matrices."""
    products = products_of(site.stmt)
    if products is None:
        return None
    found = match(products)
    windows = match_windows(products, 1 if found is None else 2)
    if windows is not None and windows.pays and (found is None or _are_better(windows, found, machine)):
        found = windows
    planes = match_planes(products) if found is None or found.r is None else None
    if planes is not None and planes_of(planes, Capacity(machine, knobs, planes.dtype)) is not None:
        return with_planes(site, planes, machine)
    windows = match_windows(products, keeps_windows=True)
    if windows is None:
        return found
    windows = with_images(site, windows, machine)
    form = _form_of_windows(windows, Capacity(machine, knobs, windows.dtype), site.constants, found)
    return found if form is None else windows


def _are_better(windows: Contraction, found: Contraction, machine: MachineModel) -> bool:
    """Whether windows are better than the product of matrices, row by row of positions, that a nest is as well."""
    if matrix_dot_of(windows, machine, {}) is not None:
        return True
    if windows.window is None and found.r is not None and isinstance(windows.extents[windows.v], int):
        return True  # all positions as one row leave one remainder, and are many to look ahead in
    return found.r is not None and not (found.runs and _reads_well(found, machine))


def _reads_well(found: Contraction, machine: MachineModel) -> bool:
    """Whether B is as quick where it is as in panels that have collapsed rows.

    Not if a row of columns leaves a part of its last vector empty, and not if there is an instruction for several
    products: only panels have its operands side by side.
    """
    columns = found.extents[found.v]
    is_short = isinstance(columns, int) and columns % 16 != 0
    return not is_short and dot_of(found, machine) is None


class GemmRule(Rule):
    """Contractions in register tiles, over packed operands where that pays, with what is done to their results next."""

    name = "gemm"
    order = GEMM_ORDER
    pins = frozenset(("form", "mr", "nr_vectors", "mc", "nc", "kc", "chunks", "batch_block"))

    def decide(self, site: Site, machine: MachineModel, knobs: Knobs) -> Decision | None:
        """Tiles and blocks."""
        found = site.once(_found, site, machine, knobs)
        return None if found is None else decide_gemm(site.name, found.contraction, found.capacity, site.constants)

    def completed(self, site: Site, decision: Decision, machine: MachineModel, knobs: Knobs) -> Decision:
        """The values that follow from those that may be pinned."""
        found = site.once(_found, site, machine, knobs)
        assert found is not None
        return complete_gemm(found.contraction, decision, found.capacity, site.constants)

    def apply(self, site: Site, decision: Decision, machine: MachineModel, knobs: Knobs) -> Stmt:
        """Loops over blocks and tiles."""
        found = site.once(_found, site, machine, knobs)
        assert found is not None
        return apply_gemm(found.contraction, decision, found.capacity, site.constants)

    def takes(self, site: Site, decision: Decision) -> Taken:
        """The statements that became epilogue and filling, and the sums of another type where all end in a tile."""
        found = site.once(_found, site)
        if found is None:
            return Taken()
        contraction, gone = found.contraction, frozenset[Buffer]()
        earlier = frozenset() if contraction.accumulates else frozenset(cases_without_terms(site))
        filling = None if contraction.filling is None else contraction.filling.stmt
        if filling is not None and _fills(contraction, decision, found.capacity, site.constants):
            earlier |= {filling}
            gone |= {contraction.vector.buffer}
        if found.takes_next and contraction.partial_sums is not None and contraction.result is not None:
            gone |= {contraction.result}
        return Taken(int(found.takes_next), gone, earlier)
