"""Checks of views: what lies outside of its memory for all sizes, and calls of kernels that take more than they get.

What depends on sizes is checked when the code runs (`weft.transform.kernel.check_bounds`); here is what no size makes
right, wherever it stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.errors import ShapeError, Span, VerifyError
from weft.ir.dim import Dim, prove_lt
from weft.ir.kernel.prim import buffer_strides
from weft.ir.kernel.prim_dim import prim_to_dim
from weft.ir.kernel.regions import Bounds
from weft.ir.kernel.views import call_views, span_within
from weft.ir.module import BaseFunc
from weft.ir.structure.visit import walk
from weft.ir.tensor import Block, Buffer, DeclBuffer, Extent, MatchBufferRegion, PrimCall, PrimFunc
from weft.ir.verify.findings import Report

__all__ = ["check_views"]


class _NoDimension(Exception):
    """An extent that is no dimension: nothing is said of a view with it."""


def check_views(function: PrimFunc, functions: Mapping[str, BaseFunc], report: Report) -> None:
    """W477 for the views of a kernel."""
    for node in walk(function.body):
        if isinstance(node, DeclBuffer) and node.buffer.data is not None:
            _check(node.buffer, node.buffer.data, node.span, report)
        elif isinstance(node, Block):
            for match in node.match_buffers:
                _check_strides(match, report)
        elif isinstance(node, PrimCall):
            try:
                views = list(call_views(node, functions))
            except VerifyError:  # a handle with memory that nothing is known of: told when compiling
                views = []
            for view, place in views:
                _check(view, place, node.span, report)


def _check(view: Buffer, place: Any, span: Span | None, report: Report) -> None:
    names = Bounds()

    def dim(extent: Extent) -> Dim:
        for part in () if isinstance(extent, int) else walk(extent):
            if hasattr(part, "name"):
                names.name(part)  # type: ignore[arg-type]
        found = prim_to_dim(extent, names.names)
        if found is None:
            raise _NoDimension
        return found

    try:
        inside = span_within(view, place, dim)
        outside = inside is not None and any(prove_lt(need, 0) is True for need in inside.needs)
    except (_NoDimension, ShapeError):
        return
    if outside and inside is not None:
        message = f"the buffer {view.name!r} lies outside of its memory, {inside.memory.name!r}"
        report.add("W477", message, span or view.span, key=view)


def _check_strides(match: MatchBufferRegion, report: Report) -> None:
    """The strides of a matched buffer are those of its region, where both are numbers."""
    source, buffer = match.source.buffer, match.buffer
    steps = buffer_strides(source)[source.ndim - buffer.ndim :]
    for size, stride, step in zip(buffer.shape, buffer.strides or (), steps, strict=False):
        if size != 1 and isinstance(stride, int) and isinstance(step, int) and stride != step:
            message = f"the strides of the buffer {buffer.name!r} are not those of its region: {stride} is not {step}"
            report.add("W477", message, match.span or buffer.span, key=buffer)
