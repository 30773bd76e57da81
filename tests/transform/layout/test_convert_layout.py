"""ConvertLayout: each rule by itself on operands that lie otherwise, and whole functions."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import weft
from weft.ir import Call, DataflowVar, Function, IRModule, Op, TensorType, Var, VarBinding
from weft.ir.builder import BlockBuilder
from weft.ir.op import OPS
from weft.ir.op.layout_rules.axis_layout import AxisLayout
from weft.ir.structure.visit import walk
from weft.testing import assert_round_trip, assert_same_meaning, random_arguments
from weft.transform import ConvertLayout
from weft.transform.layout.convert_layout import Mover

RULES = [name for name, definition in OPS.items() if callable(definition.layout)]


def test_every_operator_of_weft_has_a_rule_or_says_why_not() -> None:
    assert len(RULES) > 120
    without = [name for name, definition in OPS.items() if not definition.layout and "." not in name]
    assert without == []


def bound(name: str, place: int) -> tuple[Call, list[Var]]:
    """The call of an example, with a variable for each tensor."""
    found = OPS[name].examples[place]
    variables: list[Var] = []

    def value(item: Any) -> Any:
        if isinstance(item, weft.ir.Type):
            variables.append(Var(f"x{len(variables)}", item))
            return variables[-1]
        if isinstance(item, (list, tuple)) and any(isinstance(part, weft.ir.Type) for part in item):
            return tuple(map(value, item))
        return item

    args = [value(item) for item in found.args]
    kwargs = {key: value(item) for key, item in found.kwargs.items()}
    return OPS[name].bind(args, kwargs), variables


def results(old: IRModule, new: IRModule, low: float, high: float) -> list[tuple[Any, Any]]:
    """What both modules give for some arguments that the first one accepts."""
    function = old["main"]
    assert isinstance(function, Function)
    found: list[tuple[Any, Any]] = []
    for seed in range(12):
        try:
            given = random_arguments(function, seed)
            if low or high:
                given = [np.clip(value, low, high).astype(value.dtype) for value in given]
            expected = weft.interpret(old)["main"](*given)
        except weft.WeftError:
            continue
        found.append((expected, weft.interpret(new)["main"](*given)))
        if len(found) == 2:
            break
    return found


def orders(ndim: int, rng: random.Random) -> AxisLayout:
    axes = list(range(ndim))
    while axes == sorted(axes):
        rng.shuffle(axes)
    return AxisLayout(tuple((axis, 0) for axis in axes))


def moved(call: Call, variables: list[Var], rng: random.Random) -> tuple[Function, Function] | None:
    """A function that calls an operator, and the one that does so on operands of another order."""
    before = BlockBuilder(IRModule())
    with before.function("main", variables), before.dataflow():
        result = before.emit_output(call)
        before._scopes[-1].close_block()
        before._scopes[-1].dataflow = False
        before.emit_func_output(result)
    old = before.get()["main"]
    assert isinstance(old, Function)
    mover = Mover({}, IRModule())
    mover.in_dataflow = True
    binding = old.body.blocks[0].bindings[0]
    assert isinstance(binding, VarBinding)
    ranks = {var.ty.ndim for var in variables if isinstance(var.ty, TensorType) and var.ty.ndim > 1}
    if not ranks:
        return None
    common = {rank: orders(rank, rng) for rank in ranks}
    first = []
    for var in variables:
        if isinstance(var.ty, TensorType) and var.ty.ndim > 1:
            mover.made = []
            layout = common[var.ty.ndim]
            other = mover._permuted(var, [axis for axis, _ in layout.axes], var.name)
            mover.held[var] = {layout: other}
            first += mover.made
    mover.made = []
    if not mover._moved(binding):
        return None
    mover._plain(binding.var) if isinstance(binding.var, DataflowVar) else None
    block = weft.ir.DataflowBlock((*first, *mover.made))
    body = weft.ir.replace(old.body, blocks=(block,))
    return old, weft.ir.replace(old, body=body)


@pytest.mark.parametrize("name", RULES)
def test_an_operator_computes_the_same_on_operands_of_another_order(name: str) -> None:
    rng = random.Random(name)
    count = 0
    for place in range(len(OPS[name].examples)):
        call, variables = bound(name, place)
        made = moved(call, variables, rng)
        if made is None:
            continue
        old, new = (IRModule({"main": function}) for function in made)
        weft.ir.assert_well_formed(new)
        low, high = (
            next(iter(OPS[name].examples[place].ranges.values()), (0, 0)) if name.startswith("vision") else (0, 0)
        )
        for expected, found in results(old, new, low, high):
            many = isinstance(expected, tuple)
            for one, other in zip(expected if many else [expected], found if many else [found], strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
            count += 1
        calls = [node for node in walk(new["main"]) if isinstance(node, Call) and isinstance(node.op, Op)]
        if name != "permute_dims":
            assert any(node.op.name == name for node in calls)  # type: ignore[union-attr]
    assert count


HEAD = """
@R.function
def main(x: R.Tensor(("n", 4, 8, 8), "float32"), w: R.Tensor((8, 4, 3, 3), "float32"),
         b: R.Tensor((8, 1, 1), "float32")):
    with R.dataflow():
        y = R.nn.conv2d(x, w, padding=1)
        {}
        R.output({})
    return {}
"""
NHWC = ConvertLayout({"relax.nn.conv2d": ["NHWC", "OHWI"]})


def program(lines: str, out: str = "out") -> IRModule:
    made = weft.parse(HEAD.format(lines.replace("\n", "\n        "), out, f"({out})" if "," in out else out))
    return IRModule({"main": made})  # type: ignore[dict-item]


def operators(module: IRModule) -> list[str]:
    return [n.op.name for n in walk(module["main"]) if isinstance(n, Call) and isinstance(n.op, Op)]


CASES = (
    ("z = R.add(y, b)\nout = R.nn.relu(z)", ["nn.conv2d", "reshape", "permute_dims", "add", "nn.relu", "permute_dims"]),
    ("z = R.permute_dims(y, axes=[0, 2, 3, 1])\nout = R.exp(z)", ["nn.conv2d", "exp"]),  # the permutations cancel
    ("out = R.mean(y, axis=[2, 3])", ["nn.conv2d", "mean"]),
    ("z = R.flatten(y)\nout = R.exp(z)", ["nn.conv2d", "permute_dims", "flatten", "exp"]),
    ("z = R.matmul(y, y)\nout = R.add(z, y)", ["nn.conv2d", "permute_dims", "matmul", "add"]),  # moved back once
)


@pytest.mark.parametrize(("lines", "left"), CASES)
def test_what_is_left_of_a_function(lines: str, left: list[str]) -> None:
    before = program(lines)
    after = NHWC(before)
    assert operators(after) == ["permute_dims", "permute_dims", *left]
    assert_round_trip(after)
    assert_same_meaning(before, after, trials=2)
    assert operators(NHWC(after)) == operators(after)


def test_several_results_and_the_types_of_the_function_stay() -> None:
    before = program("s = R.split(y, 2, axis=1)\np = s[0]\nq = R.exp(y)", "p, q")
    after = NHWC(before)
    assert weft.structural_equal(after["main"].ret_type, before["main"].ret_type)  # type: ignore[attr-defined]
    assert_same_meaning(before, after, trials=2)


@pytest.mark.parametrize("channels", [8, 6])
def test_blocks_are_made_where_they_divide(channels: int) -> None:
    text = program("out = R.nn.relu(y)").script().replace("8, 4, 3, 3", f"{channels}, 4, 3, 3")
    text = (
        text.replace("n, 8, 8, 8", f"n, {channels}, 8, 8")
        .replace('"n", 8, 8, 8', f'"n", {channels}, 8, 8')
        .replace("R.Tensor((8, 1, 1)", f"R.Tensor(({channels}, 1, 1)")
    )
    before = weft.parse(text)
    assert isinstance(before, IRModule)
    after = ConvertLayout({"nn.conv2d": ["NCHW4c", "OIHW4o"]})(before)
    assert ('data_layout="NCHW4c"' in after.script()) == (channels == 8)
    assert (after is before) == (channels == 6)
    assert_same_meaning(before, after, trials=2)


def test_what_is_compiled_gives_the_same() -> None:
    before = program("z = R.add(y, b)\np = R.nn.max_pool2d(z, pool_size=2, strides=2)\nout = R.nn.relu(p)")
    assert_same_meaning(before, weft.compile(NHWC(before)), name="main", trials=2)


def test_plain_blocks_with_such_operators_become_dataflow_blocks() -> None:
    before = program("out = R.nn.relu(y)")
    text = before.script().replace("with R.dataflow():", "if True:").replace("            R.output(out)\n", "")
    plain = weft.parse(
        "\n".join(
            line[4:] if line.startswith("            ") else line for line in text.splitlines() if "if True" not in line
        )
    )
    assert isinstance(plain, IRModule)
    assert ConvertLayout({})(plain) is plain
    assert ConvertLayout({"nn.max_pool2d": ["NHWC"]})(plain) is plain
    after = NHWC(plain)
    assert weft.structural_equal(after, NHWC(before))
    assert_same_meaning(plain, after, trials=2)


def test_operators_in_branches_are_converted_too() -> None:
    before = weft.parse(
        """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((1, 8, 5, 4), "float32"), w: R.Tensor((8, 8, 3, 3), "float32"), c: R.Tensor((), "bool")):
        if c:
            y = R.nn.relu(R.nn.conv2d(x, w, padding=1))
        else:
            y = R.nn.relu(x)
        return y
"""
    )
    assert isinstance(before, IRModule)
    after = NHWC(before)
    assert 'data_layout="NHWC"' in after.script()
    assert_same_meaning(before, after, trials=2)


def permuted(count: int) -> IRModule:
    """Convolutions with a permutation before and after each, as exporters write them."""
    lines = ["v0 = x"]
    for place in range(count):
        lines += [
            f"a{place} = R.permute_dims(v{place}, axes=[0, 3, 1, 2])",
            f"b{place} = R.nn.conv2d(a{place}, w, padding=1)",
            f"v{place + 1} = R.nn.relu(R.permute_dims(b{place}, axes=[0, 2, 3, 1]))",
        ]
    body = "\n            ".join(lines)
    module = weft.parse(
        f"""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 5, 4, 8), "float32"), w: R.Tensor((8, 8, 3, 3), "float32")):
        with R.dataflow():
            {body}
            out = R.exp(v{count})
            R.output(out)
        return out
"""
    )
    assert isinstance(module, IRModule)
    return module


def moves(module: IRModule) -> int:
    main = module["main"]
    assert isinstance(main, Function)
    calls = [node.op.name for node in walk(main) if isinstance(node, Call) and isinstance(node.op, Op)]
    return calls.count("permute_dims")


def test_of_several_layouts_those_are_taken_that_move_the_least() -> None:
    choice = ConvertLayout({"nn.conv2d": [["NCHW", "OIHW"], ["NHWC", "OHWI"], ["HWNC", "OIHW"]]})
    channels_last = permuted(2)
    after = choice(channels_last)
    assert 'data_layout="NHWC"' in after.script()
    assert moves(after) == 1  # the kernel's
    assert_same_meaning(channels_last, after, trials=2)
    channels_first = program("out = R.nn.relu(y)")
    assert moves(choice(channels_first)) == 0
    five = [["NCHW"], ["NHWC"], ["HWNC"], ["CHWN"], ["NHCW"]]
    with pytest.raises(weft.PassError, match="125 choices of layouts, at most 64 are compared"):
        ConvertLayout({f"nn.{name}_pool2d": five for name in ("max", "avg", "adaptive_avg")})


def test_moving_what_is_known_when_compiling_costs_nothing() -> None:
    """A large kernel that is a constant is moved rather than the small values of each call."""
    module = weft.parse("""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((1, 4, 4, 16), "float32"), w: R.Tensor((16, 16, 3, 3), "float32")):
        with R.dataflow():
            a = R.permute_dims(x, [0, 3, 1, 2])
            b = R.nn.conv2d(a, w, padding=1)
            c = R.permute_dims(b, [0, 2, 3, 1])
            R.output(c)
        return c
""")
    assert isinstance(module, IRModule)
    choice = ConvertLayout({"nn.conv2d": [["NCHW", "OIHW"], ["NHWC", "OHWI"]]})
    assert 'data_layout="NHWC"' not in choice(module).script()
    known = weft.transform.BindParams("main", {"w": np.ones((16, 16, 3, 3), "float32")})(module)
    assert 'data_layout="NHWC"' in choice(known).script()


def test_calls_with_a_label_stay_as_they_are() -> None:
    before = program("out = R.nn.relu(y)")
    labelled = weft.ir.rewrite(
        before,
        lambda node: weft.ir.replace(node, attrs=node.attrs.set("target", "npu")) if isinstance(node, Call) else None,
    )
    assert NHWC(labelled) is labelled
    assert ConvertLayout({})(before) is before


@pytest.mark.parametrize(
    ("layouts", "message"),
    [
        ({"nn.conv9d": ["NHWC"]}, "'nn.conv9d', which is no operator with a layout"),
        ({"nn.relu": ["NHWC"]}, "'nn.relu', which is no operator with a layout"),
        ({"nn.conv2d": []}, r"one to three layouts \(data, kernel, result\), got 0"),
        ({"nn.conv2d": ["NHWX"]}, "data_layout is an order of NCHW, got 'NHWX'"),
        ({"nn.conv2d": ["NHWC", "OH"]}, "kernel_layout is an order of OIHW, got 'OH'"),
    ],
)
def test_layouts_that_there_are_not_are_refused(layouts: Any, message: str) -> None:
    with pytest.raises(weft.PassError, match=message) as caught:
        ConvertLayout(layouts)
    assert caught.value.code == "W506"
