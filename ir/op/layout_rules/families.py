"""How families of operators compute on moved axes: the rules that declarations name in `layout`.

broadcasting("x1", "x2")     every element from those in the same place: operands of lower rank get axes of one
reducing("x")                axes that an attribute names go, or have one element
along("data")                an operator along the axes of an attribute
by_text(...)                 an operator that has its layout as a text
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import prove_equal
from weft.ir.op.layout_rules.axis_layout import AxisLayout, LayoutAnswer, LayoutQuestion, LayoutRule, is_one
from weft.ir.types import TensorType, TupleType

__all__ = [
    "along",
    "batch_normalising",
    "broadcasting",
    "by_text",
    "concatenating",
    "expanding",
    "normalising_channels",
    "padding",
    "permuting",
    "reducing",
    "squeezing",
    "windowed",
    "with_mask",
]


def broadcasting(*names: str) -> LayoutRule:
    """Every element of the result from the elements in its place; operands of a known and equal or broadcast size."""

    def rule(question: LayoutQuestion) -> LayoutAnswer | None:
        result = question.result
        dims = dims_of(result) if isinstance(result, TensorType) else None
        operands = {name: question.tensor(name) for name in names if not question.is_scalar(name)}
        if dims is None or None in operands.values():
            return None
        chosen = question.chosen([question.args[name] for name in operands], len(dims))
        if chosen is None:
            return None
        for ty in operands.values():
            own = dims_of(ty) or ()  # type: ignore[arg-type]
            pairs = zip(own, dims[len(dims) - len(own) :], strict=True)
            if not all(is_one(a) or prove_equal(a, b) is True for a, b in pairs):
                return None
        moved = {name: chosen for name, ty in operands.items() if ty is not None and ty.ndim > 0}
        return LayoutAnswer(moved, chosen)

    return rule


def _axes(value: Any, ndim: int) -> list[int]:
    """The axes that an attribute names, from the front; all for None."""
    if value is None:
        return list(range(ndim))
    return [axis % ndim for axis in ((value,) if isinstance(value, int) else value)]


def _like(value: Any, axes: Sequence[int]) -> Any:
    """Axes in the form of an attribute: one number, or several."""
    return axes[0] if isinstance(value, int) else tuple(axes)


def _moved(question: LayoutQuestion, name: str) -> tuple[AxisLayout, TensorType] | None:
    layout, ty = question.layout(name), question.tensor(name)
    return (layout, ty) if layout is not None and ty is not None else None


def reducing(name: str, in_order: bool = False) -> LayoutRule:
    """A reduction over `axis`, `in_order` where the order of elements matters (positions in the flattened tensor)."""

    def rule(question: LayoutQuestion) -> LayoutAnswer | None:
        found = _moved(question, name)
        if found is None:
            return None
        layout, _ = found
        args = question.args
        axes = _axes(args["axis"], layout.ndim)
        blocks = layout.blocks
        if in_order and (args["axis"] is None or len(axes) != 1 or axes[0] in blocks):
            return None
        places = [place for place, (axis, _) in enumerate(layout.axes) if axis in axes]
        new = places[0] if in_order else tuple(places)
        result = layout if args["keepdims"] else layout.without(axes)
        changed = {} if args["axis"] is None else {"axis": new}
        return LayoutAnswer({name: layout}, result, changed)

    return rule


def along(name: str, attribute: str = "axis") -> LayoutRule:
    """An operator along axes that an attribute names; all other operands lie as written."""

    def rule(question: LayoutQuestion) -> LayoutAnswer | None:
        found = _moved(question, name)
        value = question.args[attribute]
        if found is None or value is None:
            return None
        layout = found[0]
        axes = _axes(value, layout.ndim)
        if any(axis in layout.blocks for axis in axes):
            return None
        result = question.result
        layouts = [layout] * len(result.fields) if isinstance(result, TupleType) else layout
        return LayoutAnswer({name: layout}, layouts, {attribute: _like(value, [layout.index(axis) for axis in axes])})

    return rule


def normalising_channels(question: LayoutQuestion) -> LayoutAnswer | None:
    """Normalisation whose attributes name the channels (`channel_axis`) and the axes of the statistics (`axes`)."""
    found = _moved(question, "data")
    if found is None:
        return None
    layout, args = found[0], question.args
    axes = _axes(args["axes"], layout.ndim)
    channel = args["channel_axis"] % layout.ndim
    if layout.blocks:
        return None
    changed = {"channel_axis": layout.index(channel), "axes": tuple(layout.index(axis) for axis in axes)}
    return LayoutAnswer({"data": layout}, layout, changed)


def batch_normalising(question: LayoutQuestion) -> LayoutAnswer | None:
    """Batch normalisation: the data along an axis, the statistics as written."""
    found = _moved(question, "data")
    if found is None:
        return None
    layout = found[0]
    axis = question.args["axis"] % layout.ndim
    if layout.blocks:
        return None
    plain = AxisLayout.plain(1)
    return LayoutAnswer({"data": layout}, [layout, plain, plain], {"axis": layout.index(axis)})


def with_mask(question: LayoutQuestion) -> LayoutAnswer | None:
    """Two results of the size of the data, whose elements come from those in their place."""
    found = _moved(question, "data")
    return None if found is None else LayoutAnswer({"data": found[0]}, [found[0], found[0]])


def concatenating(question: LayoutQuestion) -> LayoutAnswer | None:
    """Tensors one behind the other along an axis, which may lie in blocks that divide each of them."""
    types = question.fields("tensors")
    if not types:
        return None
    ndim = types[0].ndim
    axis: int | None = question.args["axis"]
    chosen = question.chosen(question.args["tensors"].fields, ndim)
    if chosen is None or axis is None:
        return None
    if axis % ndim in chosen.blocks and any(is_one(dims[axis % ndim]) for ty in types if (dims := dims_of(ty))):
        return None
    return LayoutAnswer({"tensors": [chosen] * len(types)}, chosen, {"axis": chosen.index(axis % ndim)})


def permuting(question: LayoutQuestion) -> LayoutAnswer | None:
    """A permutation moves nothing: its operand is the result in another layout."""
    found = _moved(question, "x")
    if found is None:
        return None
    layout = found[0]
    axes = question.args["axes"]
    order = list(reversed(range(layout.ndim))) if axes is None else _axes(axes, layout.ndim)
    result = layout.renumbered({axis: place for place, axis in enumerate(order)})
    return LayoutAnswer({"x": layout}, result, same="x")


def squeezing(question: LayoutQuestion) -> LayoutAnswer | None:
    """Axes of one element go."""
    found = _moved(question, "x")
    if found is None:
        return None
    layout, ty = found
    value = question.args["axis"]
    dims = dims_of(ty) or ()
    axes = [axis for axis in range(len(dims)) if is_one(dims[axis])] if value is None else _axes(value, layout.ndim)
    if any(axis in layout.blocks for axis in axes):
        return None
    return LayoutAnswer({"x": layout}, layout.without(axes), {"axis": tuple(layout.index(axis) for axis in axes)})


def expanding(question: LayoutQuestion) -> LayoutAnswer | None:
    """Axes of one element come, in front of the others in memory."""
    found = _moved(question, "x")
    if found is None:
        return None
    layout, value = found[0], question.args["axis"]
    count = 1 if isinstance(value, int) else len(value)
    fresh = _axes(value, layout.ndim + count)
    old = [axis for axis in range(layout.ndim + count) if axis not in fresh]
    rest = layout.renumbered(dict(enumerate(old)))
    result = AxisLayout((*((axis, 0) for axis in sorted(fresh)), *rest.axes))
    return LayoutAnswer({"x": layout}, result, {"axis": tuple(range(count))})


def padding(question: LayoutQuestion) -> LayoutAnswer | None:
    """Elements before and after each axis: of one in blocks, none."""
    found = _moved(question, "data")
    if found is None:
        return None
    layout, width = found[0], question.args["pad_width"]
    if len(width) != 2 * layout.ndim or any(width[2 * axis] or width[2 * axis + 1] for axis in layout.blocks):
        return None
    new = [(0, 0) if block else (width[2 * axis], width[2 * axis + 1]) for axis, block in layout.axes]
    return LayoutAnswer({"data": layout}, layout, {"pad_width": tuple(item for pair in new for item in pair)})


def by_text(name: str, attribute: str = "layout", out: str | None = None) -> LayoutRule:
    """An operator of images whose layout is a text: the one that the user wants, else that of its operand."""

    def rule(question: LayoutQuestion) -> LayoutAnswer | None:
        own = question.args[attribute]
        out_own = (question.args[out] if out else None) or own
        layout = AxisLayout.between(own, question.wanted[0]) if question.wanted else question.layout(name)
        if layout is None or question.tensor(name) is None:
            return None
        return _texts({name: (layout, attribute, own)}, out, out_own, own, layout)

    return rule


def _texts(
    operands: dict[str, tuple[AxisLayout, str, str]], out: str | None, out_own: str, own: str, layout: AxisLayout
) -> LayoutAnswer | None:
    """The answer with new texts; a result of another order of letters lies as that order does."""
    attributes: dict[str, Any] = {}
    for moved, attribute, text in operands.values():
        new = moved.text(text)
        if new is None:
            return None
        attributes[attribute] = new
    wanted = layout.text(own)
    result = AxisLayout.between(out_own, wanted) if wanted is not None else None
    if result is None:
        return None
    if out is not None:
        attributes[out] = None
    return LayoutAnswer({name: moved for name, (moved, _, _) in operands.items()}, result, attributes)


def windowed(question: LayoutQuestion) -> LayoutAnswer | None:
    """A convolution: wanted are the layouts of data, kernel and, where it differs, of the result."""
    args, wanted = question.args, question.wanted
    own, kernel = args["data_layout"], args["kernel_layout"]
    out = args["out_layout"] or own
    if question.tensor("data") is None or question.tensor("weight") is None:
        return None
    data = AxisLayout.between(own, wanted[0]) if wanted else question.layout("data")
    weight = AxisLayout.between(kernel, wanted[1]) if len(wanted) > 1 else AxisLayout.plain(len(kernel))
    if data is None or weight is None:
        return None
    answer = _texts(
        {"data": (data, "data_layout", own), "weight": (weight, "kernel_layout", kernel)}, "out_layout", out, own, data
    )
    if answer is None or len(wanted) < 3:
        return answer
    result = AxisLayout.between(out, wanted[2])
    if result is None:
        return None
    return LayoutAnswer(answer.operands, result, {**answer.attributes, "out_layout": wanted[2]})
