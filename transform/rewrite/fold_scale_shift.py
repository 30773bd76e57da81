"""FoldScaleShift: factors and offsets that are known at compile time go into convolutions and products before them.

    R.multiply(R.nn.conv2d(x, w), s)        ->   R.nn.conv2d(x, R.multiply(w, s))
    R.multiply(R.matmul(x, w), s)           ->   R.matmul(x, R.multiply(w, s))
    R.multiply(R.add(y, b), s), y as above  ->   the same with b * s added after it
    R.add(R.add(y, b), c)                   ->   R.add(y, R.add(b, c))

Weights, factors and offsets are constants, so that what the replacement computes of them is computed when compiling.
"""

from __future__ import annotations

from typing import ClassVar

from weft.support.records import dataclass
from weft.transform.rewrite.apply_rules import RulePass
from weft.transform.rewrite.rule_set import RuleSet, RuleText, register_rules

__all__ = ["FoldScaleShift"]

_RULE = """
@R.rewriter
class {name}:
    I.module_attrs({{"constant": [{constant}], "attributes": [{attributes}], "doc": "{doc}"}})

    @R.function
    def pattern({params}):
        return {pattern}

    @R.function
    def replacement({params}):
        return {replacement}
"""
_DATA = 'x: R.Tensor(("n", "c", "h", "v"), "float32"), w: R.Tensor(("o", "g", "a", "b"), "float32")'
_LINE = 'x: R.Tensor(("n", "c", "v"), "float32"), w: R.Tensor(("o", "g", "a"), "float32")'
_ATTRIBUTES = '"nn.{}(strides, padding, dilation, groups)"'


def _text(name: str, constant: str, attributes: str, params: str, pattern: str, replacement: str, doc: str) -> str:
    quoted = ", ".join(f'"{item}"' for item in constant.split())
    return _RULE.format(
        name=name,
        constant=quoted,
        attributes=attributes,
        params=params,
        pattern=pattern,
        replacement=replacement,
        doc=doc,
    )


def _for_convolution(rank: int) -> list[RuleText]:
    """The rules for a convolution over some axes, factors of shape (1, o, 1, ...) and (o, 1, ...)."""
    operator, data = f"nn.conv{rank}d", _DATA if rank == 2 else _LINE
    ones, attributes = ", 1" * rank, _ATTRIBUTES.format(f"conv{rank}d")
    found: list[RuleText] = []
    for lead, expanded in (
        ("1, ", f"R.permute_dims(s, axes=[1, 0, {', '.join(str(a) for a in range(2, rank + 2))}])"),
        ("", "R.expand_dims(s, axis=1)"),
    ):
        factor = f's: R.Tensor(({lead}"o"{ones}), "float32")'
        offset = f't: R.Tensor(({lead}"o"{ones}), "float32")'
        suffix = "" if lead else "OfThree"
        call, scaled = f"R.{operator}(x, w)", f"R.{operator}(x, R.multiply(w, {expanded}))"
        found += [
            RuleText(
                ("multiply", operator),
                _text(
                    f"ScaleOfConv{rank}d{suffix}",
                    "w s",
                    attributes,
                    f"{data}, {factor}",
                    f"R.multiply({call}, s)",
                    scaled,
                    "the factor goes into the weights",
                ),
            ),
            RuleText(
                ("multiply", "add", operator),
                _text(
                    f"ScaleOfBiasedConv{rank}d{suffix}",
                    "w s t",
                    attributes,
                    f"{data}, {factor}, {offset}",
                    f"R.multiply(R.add({call}, t), s)",
                    f"R.add({scaled}, R.multiply(t, s))",
                    "the factor goes into the weights and the offset",
                ),
            ),
        ]
    return found


_MATRICES = 'x: R.Tensor(("m", "k"), "float32"), w: R.Tensor(("k", "n"), "float32"), s: R.Tensor(("n",), "float32")'
_ANY = 'x: R.Tensor(dtype="float32"), b: R.Tensor(dtype="float32"), c: R.Tensor(dtype="float32")'

register_rules(
    RuleSet(
        "scale-shift",
        "constant factors and offsets after convolutions and products",
        [
            *_for_convolution(2),
            *_for_convolution(1),
            RuleText(
                ("multiply", "matmul"),
                _text(
                    "ScaleOfMatmul",
                    "w s",
                    "",
                    _MATRICES,
                    "R.multiply(R.matmul(x, w), s)",
                    "R.matmul(x, R.multiply(w, s))",
                    "the factor goes into the weights",
                ),
            ),
            RuleText(
                ("multiply", "add", "matmul"),
                _text(
                    "ScaleOfBiasedMatmul",
                    "w s t",
                    "",
                    f'{_MATRICES}, t: R.Tensor(("n",), "float32")',
                    "R.multiply(R.add(R.matmul(x, w), t), s)",
                    "R.add(R.matmul(x, R.multiply(w, s)), R.multiply(t, s))",
                    "the factor goes into the weights and the offset",
                ),
            ),
            RuleText(
                ("add",),
                _text(
                    "SumOfOffsets",
                    "b c",
                    "",
                    _ANY,
                    "R.add(R.add(x, b), c)",
                    "R.add(x, R.add(b, c))",
                    "constant offsets are added once",
                ),
            ),
        ],
        trusted=True,
    )
)


@dataclass(frozen=True)
class FoldScaleShift(RulePass):
    """Put constant factors and offsets into the weights and biases of convolutions and products before them."""

    sets_of_class: ClassVar[tuple[str, ...]] = ("scale-shift",)
