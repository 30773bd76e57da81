"""Names of TVM that scripts may use elsewhere and that weft does not read, each with the reason."""

from __future__ import annotations

__all__ = ["why_unsupported"]

_TILES = (
    "scope_id selector filter elected cluster cta warpgroup warp thread wg tile tmem smem TileLayout "
    "ComposeLayout TensorMap SMEMPool TMEMPool ExecScope ScopeIdDef alloc_cast_frag alloc_tcgen05_ldst_frag "
    "wg_reg_tile tensormap_encode_tiled Layout Iter S R"
)
_UNSUPPORTED: dict[str, str] = {
    **{f"T.{name}": "it belongs to the tile-level GPU dialect" for name in _TILES.split()},
    "T.jit": "a template has no meaning before it is specialised",
    "T.constexpr": "a template has no meaning before it is specialised",
    "T.Optional": "a template has no meaning before it is specialised",
    "T.Reduce": "a reduction is a block with T.init",
    "T.reduce": "a reduction is a block with T.init",
    "R.emit_te": "the function that it calls is Python, which reading a text never runs",
}
_FAMILIES = {
    "T.nvshmem.": "it belongs to the tile-level GPU dialect",
    "T.tile.": "it belongs to the tile-level GPU dialect",
}


def why_unsupported(name: str) -> str | None:
    """Why a name that TVM has is not read, or None for any other name.

    >>> why_unsupported("R.emit_te")
    'the function that it calls is Python, which reading a text never runs'
    """
    found = _UNSUPPORTED.get(name)
    if found is None:
        found = next((why for prefix, why in _FAMILIES.items() if name.startswith(prefix)), None)
    return found
