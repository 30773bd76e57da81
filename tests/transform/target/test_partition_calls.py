"""PartitionCalls: chains of operators become functions of a part of the target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import weft
from weft.ir import Call, Function, IRModule, TensorType
from weft.ir.verify import assert_well_formed
from weft.transform import PartitionCalls, parse_pipeline

TEXT = """
@I.ir_module
class Module:
    @R.function
    def main(
        x: R.Tensor(("n", 8), "float32"), w: R.Tensor((8, 4), "float32"), b: R.Tensor((4,), "float32")
    ) -> R.Tuple(R.Tensor(("n", 4), "float32"), R.Tensor(("n", 4), "float32")):
        with R.dataflow():
            a = R.matmul(x, w)
            c = R.add(a, b)
            d = R.matmul(x, R.const(2.0, "float32") * w)
            e = R.multiply(c, d)
            f = R.exp(e)
            R.output(e, f)
        return e, f
"""
PATTERNS = {"acc.layer": ("matmul", "add"), "acc.matmul": ("matmul",)}


def parse(text: str = TEXT) -> IRModule:
    found = weft.transform.Normalize()(weft.parse(text))  # type: ignore[arg-type]
    assert isinstance(found, IRModule)
    return found


def outlined(module: IRModule) -> dict[str, list[str]]:
    """The operators of each function of a part."""
    return {
        f"{f.attrs['target']}:{f.attrs['Composite']}": [
            str(getattr(binding.value, "op", "")).partition("name='")[2].partition("'")[0]
            for block in f.body.blocks
            for binding in block.bindings
        ]
        for _, f in module.items()
        if isinstance(f, Function) and "Composite" in f.attrs
    }


def test_the_longest_chain_is_taken_and_the_rest_stays() -> None:
    """D15: a pattern becomes an outlined function; the product whose result is used in the sum is taken with it."""
    before = parse()
    after = PartitionCalls("acc", PATTERNS)(before)
    assert_well_formed(after)
    assert outlined(after) == {"acc:acc.layer": ["matmul", "add"], "acc:acc.matmul": ["matmul"]}
    main = after["main"].script()
    assert main.count("cls.") == 2
    assert "R.matmul" not in main
    assert "R.exp(e)" in main
    x, w, b = (np.random.default_rng(0).normal(size=s).astype("float32") for s in ((3, 8), (8, 4), (4,)))
    for got, want in zip(weft.interpret(after)["main"](x, w, b), weft.interpret(before)["main"](x, w, b), strict=True):
        np.testing.assert_array_equal(got, want)
    assert PartitionCalls("acc", PATTERNS)(after) is after
    shortest_first = dict(reversed(PATTERNS.items()))
    assert outlined(PartitionCalls("acc", shortest_first)(before)) == outlined(after)


def test_a_result_that_is_used_twice_stays_out_of_a_chain() -> None:
    chain = PartitionCalls("acc", {"acc.layer": ("matmul", "add")})
    assert outlined(chain(parse())) == {"acc:acc.layer": ["matmul", "add"]}
    assert outlined(chain(parse(TEXT.replace("f = R.exp(e)", "f = R.multiply(a, e)")))) == {}
    text = TEXT.replace("f = R.exp(e)", "f = R.multiply(a, e)").replace("multiply(c, d", "add(c, d")
    sums = outlined(chain(parse(text)))
    assert sums == {"acc:acc.layer": ["matmul", "add"]}  # d and e: the other operand of the sum comes from outside


def test_several_backends_take_their_parts_in_either_order() -> None:
    """D15: interleaved, what one took the other leaves alone."""
    layer, product = PartitionCalls("one", {"one.layer": PATTERNS["acc.layer"]}), PartitionCalls("two", PATTERNS)
    assert outlined(product(layer(parse()))) == {"one:one.layer": ["matmul", "add"], "two:acc.matmul": ["matmul"]}
    assert set(outlined(layer(product(parse())))) == {"two:acc.layer", "two:acc.matmul"}


@dataclass(frozen=True)
class OnlyWide(PartitionCalls):
    """Chains whose first operand has known sizes."""

    def accepts(self, name: str, calls: Sequence[Call]) -> bool:
        """Known sizes alone."""
        ty = getattr(calls[0].args[1], "ty", None)
        return isinstance(ty, TensorType) and ty.dims is not None and all(isinstance(dim, int) for dim in ty.dims)


def test_a_subclass_refuses_chains() -> None:
    text = TEXT.replace('w: R.Tensor((8, 4), "float32")', 'w: R.Tensor((8, "m"), "float32")')
    text = text.replace('b: R.Tensor((4,), "float32")', 'b: R.Tensor(("m",), "float32")')
    text = text.replace('("n", 4)', '("n", "m")')
    assert outlined(OnlyWide("acc", PATTERNS)(parse(text))) == {}
    assert len(outlined(OnlyWide("acc", PATTERNS)(parse()))) == 2


def test_sizes_that_no_argument_says_are_passed() -> None:
    text = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n * 2",), "float32"), s: R.Shape(["n"])) -> R.Tensor(("n", 2), "float32"):
        with R.dataflow():
            a = R.reshape(x, (n, 2))
            R.output(a)
        return a
"""
    after = PartitionCalls("acc", {"acc.reshape": ("reshape",)})(parse(text))
    assert_well_formed(after)
    assert "cls.acc_reshape(x, R.shape([n]))" in after["main"].script()


def test_the_pass_has_a_text_form() -> None:
    item = PartitionCalls("acc", PATTERNS)
    assert parse_pipeline(str(item)).passes[0] == item
    assert parse_pipeline("partition-calls{label=acc}").passes[0] == PartitionCalls("acc")


def test_what_is_outside_of_dataflow_blocks_stays() -> None:
    before = weft.parse(
        "@R.function\ndef main(x: R.Tensor((2, 2), 'float32')) -> R.Tensor((2, 2), 'float32'):\n"
        "    y = R.matmul(x, x)\n    return y\n"
    )
    module = weft.transform.Normalize()(IRModule({"main": before}))  # type: ignore[dict-item]
    assert PartitionCalls("acc", PATTERNS)(module) is module
