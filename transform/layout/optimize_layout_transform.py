"""OptimizeLayoutTransform: layout transforms that follow each other become one, and one that changes nothing goes.

R.layout_transform(R.layout_transform(x, f), g)   ->   R.layout_transform(x, i -> g(f(i))), or x

Only of transforms that fill their result: every element of it is an element of the operand (sizes are proved equal),
so that no padding is made that the other one would move.
"""

from __future__ import annotations

from typing import ClassVar

from weft.ir import Call, Expr, Function, TensorType, Var
from weft.ir.dim import Dim, Facts, product, prove_equal, substitute, symbol
from weft.ir.kernel.index_map import IndexMap, read_index_map
from weft.ir.op import OPS, get_op
from weft.support.records import dataclass
from weft.transform.infra.generators.choices import Choices
from weft.transform.pattern.constructors import is_op, wildcard
from weft.transform.pattern.evidence.instances import function_of
from weft.transform.pattern.rule import Rule, Site
from weft.transform.rewrite.apply_rules import RulePass
from weft.transform.rewrite.rule_set import RuleSet, register_rules

__all__ = ["OptimizeLayoutTransform"]

_INNER = wildcard()
_FORM = is_op("layout_transform")(_INNER, varg_default_wildcard=True)


def _joined(site: Site) -> Expr | None:
    call, inner = site.call, site.value(_INNER)
    if not isinstance(call, Call) or not _fills(call, site):
        return None
    outer_map, source = _map(call), call.args[0]
    if isinstance(inner, Call) and _FORM.match(inner) and _fills(inner, site):
        inner_map, source = _map(inner), inner.args[0]
        ty = site.tensor(source)
        if ty is None or len(ty.dims or ()) != len(inner_map.names):
            return None
        outer_map = _composed(outer_map, inner_map, ty)
    elif not _is_identity(outer_map):
        return None
    if _is_identity(outer_map):
        return source
    return get_op("layout_transform")(source, str(outer_map))


def _map(call: Call) -> IndexMap:
    return read_index_map(OPS["layout_transform"].values(call)["index_map"])


def _fills(call: Call, site: Site) -> bool:
    """Whether a transform has as many elements as its operand, which it then only moves."""
    given, result = site.tensor(call.args[0]), site.tensor(call)
    if given is None or result is None or given.dims is None or result.dims is None:
        return False
    values = OPS["layout_transform"].values(call)
    plain = not values["axis_separators"] and not values["input_axis_separators"]
    return (
        plain and _is_one_to_one(_map(call), given) and prove_equal(product(given.dims), product(result.dims)) is True
    )


def _is_one_to_one(item: IndexMap, ty: TensorType) -> bool:
    """Whether no two elements go to one place: each index is found again among the targets, split or whole."""
    targets = {str(target) for target in item.targets}
    for name in item.names:
        whole = name in targets
        split = any(
            target.startswith(f"{name} // ") and f"{name} % {target.removeprefix(f'{name} // ')}" in targets
            for target in targets
        )
        if not whole and not split and not _is_joined(name, item, ty):
            return False
    return True


def _is_joined(name: str, item: IndexMap, ty: TensorType) -> bool:
    """Whether an index is part of a sum whose other part is less than its factor: 4 * i + j for j below 4."""
    for target in item.targets:
        text = str(target)
        for outer, inner in ((a, b) for a in item.names for b in item.names if a != b and name in (a, b)):
            size = (ty.dims or ())[item.names.index(inner)]
            if text in (f"{size} * {outer} + {inner}", f"{inner} + {size} * {outer}"):
                return True
    return False


def _composed(outer: IndexMap, inner: IndexMap, ty: TensorType) -> IndexMap:
    """The map of both, for indices within the sizes of the operand."""
    values = dict(zip(outer.names, inner.targets, strict=True))
    indices = [symbol(name) for name in inner.names]
    within = Facts()
    for name, index, size in zip(inner.names, indices, ty.dims or (), strict=True):
        within = within.assume_bounds(name, 0, size - 1 if isinstance(size, int) and size > 0 else None)
        within = within if isinstance(size, int) else within.assume_le(index + 1, size)

    def shortest(target: Dim) -> Dim:
        """An index itself where the target is one: 4 * (i // 4) + i % 4, or (4 * i + j) // 4 for j below 4."""
        return next((index for index in indices if prove_equal(target, index, within) is True), target)

    return IndexMap(len(inner.names), tuple(shortest(substitute(target, values)) for target in outer.targets))


def _is_identity(item: IndexMap) -> bool:
    return tuple(map(str, item.targets)) == item.names


_PAIRS = (
    ("lambda n, c, h: (n, h, c)", "lambda n, h, c: (n, c, h)"),
    ("lambda n, c, h: (n, c // 2, h, c % 2)", "lambda n, c, h, k: (n, c * 2 + k, h)"),
    ("lambda n, c, h: (h, n, c)", "lambda n, c, h: (n, h, c)"),
    ("lambda n, c, h: (n, c // 2, h, c % 2)", "lambda n, c, h, k: (h, n, c, k)"),
)


def _instance(choices: Choices) -> Function:
    first, second = choices.pick(_PAIRS)
    x = Var("x", TensorType((choices.pick((2, 3, 1)), choices.pick((4, 2, 6)), choices.pick((3, 2))), "float32"))
    value = get_op("layout_transform")(get_op("layout_transform")(x, first), second)
    return function_of(value, [x])


register_rules(
    RuleSet(
        "layout-transforms",
        "layout transforms that cancel or join",
        [Rule("OptimizeLayoutTransform", _FORM, _joined, _instance, "bit", doc="transforms of one value join")],
        trusted=True,
    )
)


@dataclass(frozen=True)
class OptimizeLayoutTransform(RulePass):
    """Join layout transforms that follow each other, and drop those that change nothing."""

    sets_of_class: ClassVar[tuple[str, ...]] = ("layout-transforms",)

    @classmethod
    def sample(cls, choices: Choices) -> tuple[OptimizeLayoutTransform, str]:
        """A layout that is made and undone, around an operator or not."""
        first, second = choices.pick(_PAIRS)
        return (
            cls(),
            f"""@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4, 3), "float32")):
        with R.dataflow():
            a = R.layout_transform(x, "{first}")
            b = R.layout_transform(a, "{second}")
            out = R.exp(b)
            R.output(out)
        return out
""",
        )
