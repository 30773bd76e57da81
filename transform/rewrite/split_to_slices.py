"""SplitToSlices: a part of a split is a slice, which the kernels that read it compute where they need it.

    both = R.split(x, 2, axis=-1)                     R.strided_slice(x, [1], [0], [64])
    R.multiply(R.nn.silu(both[0]), both[1])     ->    R.strided_slice(x, [1], [64], [128])

A split has several results, so that no consumer can take it in; a slice has one. Only splits of an axis of known size
into a few parts: each part that no kernel takes in is a kernel of its own.
"""

from __future__ import annotations

from typing import ClassVar

from weft.ir import Call, Expr, Function, TensorType, TupleGetItem, TupleType, Var
from weft.ir.op import OPS, get_op
from weft.support.records import dataclass
from weft.transform.infra.generators.choices import Choices
from weft.transform.pattern.constructors import is_op, is_tuple_get_item, wildcard
from weft.transform.pattern.evidence.instances import function_of
from weft.transform.pattern.rule import Rule, Site
from weft.transform.rewrite.apply_rules import RulePass
from weft.transform.rewrite.rule_set import RuleSet, register_rules

__all__ = ["SplitToSlices"]

_X = wildcard()
_SPLIT = is_op("split")(_X)
_FORM = is_tuple_get_item(_SPLIT)
_MOST = 8
"""The most parts."""


def _slice(site: Site) -> Expr | None:
    part, call, parts, whole = site.call, site.value(_SPLIT), site.type(_SPLIT), site.tensor(_X)
    if not isinstance(part, TupleGetItem) or not isinstance(call, Call) or whole is None or whole.dims is None:
        return None
    if not isinstance(parts, TupleType) or len(parts.fields) > _MOST:
        return None
    axis = OPS["split"].values(call)["axis"] % len(whole.dims)
    sizes = [field.dims[axis] for field in parts.fields if isinstance(field, TensorType) and field.dims is not None]
    known = [size for size in sizes if isinstance(size, int)]
    if len(known) < len(parts.fields) or sum(known) != whole.dims[axis]:
        return None
    start = sum(known[: part.index])
    return get_op("strided_slice")(site[_X], [axis], [start], [start + known[part.index]])


def _instance(choices: Choices) -> Function:
    dims = tuple(choices.pick((2, 3, 4, 6)) for _ in range(choices.integer(1, 3)))
    axis = choices.integer(0, len(dims) - 1)
    x = Var("x", TensorType(dims, choices.pick(("float32", "int8", "bool"))))
    wanted = choices.pick((1, 2, 3, (1,), (0, 2), (1, 1)))
    count = wanted if isinstance(wanted, int) else len(wanted) + 1
    split = get_op("split")(x, wanted, axis=axis - choices.pick((0, len(dims))))
    return function_of(TupleGetItem(split, choices.integer(0, count - 1)), [x])


register_rules(
    RuleSet(
        "split-slices",
        "parts of a split as slices",
        [Rule("SplitToSlices", _FORM, _slice, _instance, "bit", doc="kernels that read the part compute it in place")],
        trusted=True,
    )
)


@dataclass(frozen=True)
class SplitToSlices(RulePass):
    """Write the parts of splits as slices, so that the kernels that read them take them in."""

    sets_of_class: ClassVar[tuple[str, ...]] = ("split-slices",)
