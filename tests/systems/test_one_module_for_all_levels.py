"""Dynamic shapes and one module for all levels: partial lowering, libraries after tuning, fusion by own decisions."""

from __future__ import annotations

import ctypes
import ctypes.util
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import weft
from weft import ArgumentError, ShapeError, WeftError, transform
from weft.ir import Call, Function, GlobalVar, IRModule, Op, PrimFunc, TensorType, Var, replace, rewrite
from weft.ir.dim import DimExpr, symbol
from weft.ir.verify import assert_well_formed, verify
from weft.runtime import unregister_func
from weft.runtime.programs.bytecode import listing
from weft.target.machine_model import MachineModel
from weft.transform import FuseOps, LegalizeOps, Pipeline, phase
from weft.transform.fusion.fuse_ops import KernelCall

MODEL = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 8), "float32"), w: R.Tensor((8, 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        with R.dataflow():
            a = R.matmul(x, w)
            b = R.nn.relu(a)
            c = R.nn.softmax(b)
            d = R.add(c, R.const(1.0, "float32"))
            e = R.permute_dims(d, axes=[1, 0])
            f = R.permute_dims(e, axes=[1, 0])
            R.output(f)
        return f
"""
OPERATORS = ("matmul", "nn.relu", "nn.softmax", "add", "permute_dims")


def parsed(text: str) -> IRModule:
    found = weft.parse(text)
    return found if isinstance(found, IRModule) else IRModule({"main": found})


def arrays() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(5, 8)).astype("float32"), rng.normal(size=(8, 4)).astype("float32")


def test_a_size_is_an_integer_or_an_expression_of_symbols() -> None:
    """D1: one type of tensors for both; numbers in place of symbols give the static type."""
    n = symbol("n")
    assert isinstance(n * 2 + 1, DimExpr)
    assert isinstance((n * 2 + 1) - n * 2, int)  # what does not depend on a symbol is a plain number
    symbolic, static = TensorType((n, n * 2 + 1), "float32"), TensorType((3, 7), "float32")
    assert type(symbolic) is type(static)
    bound = transform.BindSymbolicVars({"n": 3})(parsed(MODEL))
    assert bound["main"].params[0].ty.dims == (3, 8)  # type: ignore[union-attr]
    assert weft.structural_equal(bound, parsed(MODEL.replace('"n"', "3")))
    with pytest.raises(WeftError) as caught:
        parsed(MODEL.replace('("n", 8)', '("n", 8.5)'))
    assert caught.value.span is not None
    assert caught.value.span.line == 5


DATA = """
@R.function
def main(x: R.Tensor(("n",), "{dtype}")) -> R.Tensor((2,), "int64"):
    i = {call}
    j = R.match_cast(i, R.Tensor({shape}, "int64"))
    f = R.reshape(j, (k,))
    g = R.match_cast(f, R.Tensor((2,), "int64"))
    return g
"""


@pytest.mark.parametrize("opt", [0, 2])
@pytest.mark.parametrize(
    ("call", "shape", "dtype", "good", "bad", "expected"),
    [
        ("R.nonzero(x)", '(1, "k")', "float32", [0, 1, 0, 3], [1, 1, 0, 3], [1, 3]),
        ("R.unique(x)", '("k",)', "int64", [5, 2, 5], [1, 2, 3], [2, 5]),
    ],
)
def test_sizes_that_depend_on_data_are_checked_when_they_are_there(
    call: str, shape: str, dtype: str, good: Any, bad: Any, expected: Any, opt: int
) -> None:
    """D6: a cast that does not hold names the variable, what was expected and what came."""
    run = weft.compile(parsed(DATA.format(call=call, shape=shape, dtype=dtype)), opt=opt)["main"]
    np.testing.assert_array_equal(run(np.array(good, dtype)), expected)
    with pytest.raises(ShapeError) as caught:
        run(np.array(bad, dtype))
    assert caught.value.message == "match_cast of g: expected int64[(2,)], got int64[(3,)]"
    assert caught.value.span is not None
    assert (caught.value.span.line, caught.value.span.column) == (7, 5)


@pytest.mark.parametrize(
    ("shapes", "dtype", "message"),
    [
        (((2, 3), (2,)), "float32", "argument 1 `x` of main: expected float32[(n, 4)], got float32[(2, 3)]"),
        (((2, 4, 1), (2,)), "float32", "argument 1 `x` of main: expected float32[(n, 4)], got float32[(2, 4, 1)]"),
        (((2, 4), (3,)), "float32", "argument 2 `y` of main: expected float32[(n,)], got float32[(3,)]; n=2 from"),
        (((2, 4), (2,)), "float64", "argument 1 `x` of main: expected float32[(n, 4)], got float64[(2, 4)]"),
    ],
)
def test_the_boundary_of_a_function_checks_rank_dtype_and_relations(shapes: Any, dtype: str, message: str) -> None:
    """D9: with the parameter, the symbol and where its value came from."""
    text = (
        '@R.function\ndef main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("n",), "float32")) -> '
        'R.Tensor(("n", 4), "float32"):\n    z = R.add(x, R.expand_dims(y, axis=[1]))\n    return z\n'
    )
    run = weft.compile(parsed(text))["main"]
    with pytest.raises(ArgumentError) as caught:
        run(*(np.ones(shape, dtype) for shape in shapes))
    assert caught.value.message.startswith(message)
    assert run(np.ones((2, 4), "float32"), np.ones(2, "float32")).shape == (2, 4)


# No one-way door.


def test_a_kernel_that_was_tuned_is_swapped_for_a_library() -> None:
    """D11: after lowering and scheduling, a call of a kernel becomes a call of a library function again."""
    tiled = transform.TileContractions(MachineModel(256, 16))
    lowered = Pipeline([phase("import"), phase("legalize"), tiled])(parsed(MODEL))
    assert isinstance(lowered["matmul"], PrimFunc)
    calls: list[tuple[int, ...]] = []

    def library(x: np.ndarray, w: np.ndarray, out: np.ndarray) -> None:
        calls.append(x.shape)
        np.matmul(x, w, out=out)

    def swap(node: Any) -> Any:
        if isinstance(node, Call) and isinstance(node.op, Op) and node.op.name == "call_tir":
            callee = node.args[0]
            if isinstance(callee, GlobalVar) and callee.name == "matmul":
                return replace(node, op=Op("call_dps_packed"), args=(weft.ir.ExternFunc("test.gemm"), *node.args[1:]))
        return None

    swapped = lowered.with_function("main", rewrite(lowered["main"], swap)).without("matmul")
    assert_well_formed(swapped)
    weft.register_func("test.gemm", library)
    try:
        out = weft.compile(swapped)["main"](*arrays())
    finally:
        unregister_func("test.gemm")
    np.testing.assert_allclose(out, weft.interpret(parsed(MODEL))["main"](*arrays()), rtol=1e-5)
    assert calls == [(5, 8)]
    assert weft.structural_equal(parsed(swapped.script()), swapped)  # and it is text at any point


@pytest.mark.parametrize("operator", OPERATORS)
def test_any_half_of_a_module_may_be_lowered_before_the_rest(operator: str) -> None:
    """D12: one operator becomes kernels, the others stay; the default build takes it from there."""
    keep = {name: (lambda builder, call: call) for name in OPERATORS if name != operator}
    before = transform.Normalize()(parsed(MODEL))
    whole = LegalizeOps()(before)
    only = _only(before, whole, operator)
    assert_well_formed(only)
    text = only["main"].script()
    assert "R.call_tir" in text
    assert f"R.{operator}(" not in text
    assert all(f"R.{name}(" in text for name in keep)
    want = weft.interpret(before)["main"](*arrays())
    for opt in (0, 2):
        np.testing.assert_allclose(weft.compile(only, opt=opt)["main"](*arrays()), want, rtol=1e-5)


def _only(before: IRModule, whole: IRModule, operator: str) -> IRModule:
    """The module with the calls of one operator as they are after lowering."""
    old, new = before["main"], whole["main"]
    assert isinstance(old, Function)
    assert isinstance(new, Function)
    ((left,), (right,)) = (function.body.blocks for function in (old, new))
    variables = {b.var: a.var for a, b in zip(left.bindings, right.bindings, strict=True)}
    variables.update(zip(new.params, old.params, strict=True))

    def follow(node: Any) -> Any:
        return variables.get(node) if isinstance(node, Var) else None

    def chosen(binding: Any) -> bool:
        return getattr(getattr(binding.value, "op", None), "name", "") == operator

    pairs = zip(left.bindings, right.bindings, strict=True)
    bindings = tuple(replace(a, value=rewrite(b.value, follow)) if chosen(a) else a for a, b in pairs)
    body = replace(old.body, blocks=(replace(left, bindings=bindings),))
    kernels = {name: f for name, f in whole.items() if name != "main"}
    module = whole.with_functions({**kernels, "main": replace(old, body=body)})
    return transform.DeadCodeElimination()(module)


def test_an_operator_of_a_shared_library_takes_two_steps() -> None:
    """D14: a function of the C library by its name, and a call of it."""
    name = ctypes.util.find_library("m")
    if name is None:
        pytest.skip("no library of mathematics is there")
    cbrt = ctypes.CDLL(name).cbrt
    cbrt.restype, cbrt.argtypes = ctypes.c_double, [ctypes.c_double]

    @weft.register_func("test.cbrt")
    def apply(x: np.ndarray, out: np.ndarray) -> None:  # step 1: the function
        out[...] = [cbrt(value) for value in x]

    text = (  # step 2: call it
        '@R.function\ndef main(x: R.Tensor(("n",), "float64")) -> R.Tensor(("n",), "float64"):\n'
        '    y = R.call_dps_packed("test.cbrt", (x,), out_ty=R.Tensor((n,), "float64"))\n'
        "    z = R.nn.relu(y)\n    return z\n"
    )
    try:
        out = weft.compile(parsed(text))["main"](np.array([8.0, -27.0, 1.0]))
    finally:
        unregister_func("test.cbrt")
    np.testing.assert_allclose(out, [2.0, 0.0, 1.0])


# Fusion in three passes.

CONVS = """
@I.ir_module
class Module:
    @R.function
    def main(
        x: R.Tensor((1, 2, 8, 8), "float32"), v: R.Tensor((3, 2, 3, 3), "float32"), w: R.Tensor((2, 3, 1, 1), "float32")
    ) -> R.Tensor((1, 2, 6, 6), "float32"):
        with R.dataflow():
            a = R.nn.conv2d(x, v)
            b = R.nn.relu(a)
            c = R.nn.conv2d(b, w)
            d = R.exp(c)
            R.output(d)
        return d
"""


def test_the_decision_of_fusion_is_replaceable() -> None:
    """D17: analysis, decision, application; a decision of the user's puts two convolutions into one group."""
    module = transform.AnnotateTIROpPattern()(phase("legalize")(phase("import")(parsed(CONVS))))
    patterns = {name: f.attrs["op_pattern"] for name, f in module.items() if isinstance(f, PrimFunc)}
    assert patterns["conv2d"] == patterns["conv2d1"] == "contraction"
    assert patterns["relu"] == "elementwise"
    seen: list[list[str]] = []

    def decide(calls: Sequence[KernelCall], max_ops: int) -> list[list[int]]:
        seen.append([call.kernel for call in calls])
        return [[0, 1, 2]]

    fused = FuseOps(decide=decide)(module)
    assert seen == [["conv2d", "relu", "conv2d1", "exp"]]
    groups = {name: f.attrs["kernels"] for name, f in fused.items() if "kernels" in getattr(f, "attrs", {})}
    assert list(groups.values()) == [("conv2d", "relu", "conv2d1")]
    usual = FuseOps()(module)
    assert all(len(f.attrs["kernels"]) < 3 for _, f in usual.items() if "kernels" in getattr(f, "attrs", {}))
    rng = np.random.default_rng(0)
    given = [rng.normal(size=shape).astype("float32") for shape in ((1, 2, 8, 8), (3, 2, 3, 3), (2, 3, 1, 1))]
    want = weft.interpret(parsed(CONVS))["main"](*given)
    for made in (fused, transform.FuseTIR()(fused)):
        np.testing.assert_allclose(weft.compile(made)["main"](*given), want, rtol=1e-4, atol=1e-5)


def test_groups_of_the_user_and_of_patterns_are_respected() -> None:
    """D17: what has been grouped before the generic pass stays as it is."""
    grouped = transform.PartitionCalls("", {"mine": ("nn.relu", "nn.conv2d")})(transform.Normalize()(parsed(CONVS)))
    mine = grouped["mine"]
    assert isinstance(mine, Function)
    attrs = mine.attrs.without("target").set("primitive", True)
    grouped = grouped.with_function("mine", replace(mine, attrs=attrs))
    lowered = FuseOps()(transform.AnnotateTIROpPattern()(phase("legalize")(grouped)))
    mine = lowered["mine"]
    assert isinstance(mine, Function)
    text = mine.script()
    assert re.findall(r"cls\.(\w+)|R\.call_tir\(\w+\.(\w+)", text)
    assert text.count("R.call_tir") == 2  # both kernels of the pair, and nothing else
    others = [f.attrs["kernels"] for _, f in lowered.items() if "kernels" in getattr(f, "attrs", {})]
    assert all("relu" not in names for names in others)
    rng = np.random.default_rng(0)
    given = [rng.normal(size=shape).astype("float32") for shape in ((1, 2, 8, 8), (3, 2, 3, 3), (2, 3, 1, 1))]
    want = weft.interpret(parsed(CONVS))["main"](*given)
    np.testing.assert_allclose(weft.compile(lowered)["main"](*given), want, rtol=1e-4, atol=1e-5)


# Dataflow blocks and updates in place.

FUNCTION = '@R.function\ndef main(x: R.Tensor((4,), "float32")):\n    with R.dataflow():\n{}    return {}\n'


@pytest.mark.parametrize(
    ("lines", "result", "code", "line"),
    [
        (('t = R.call_packed("f", x, ty_args=R.Tensor((4,), "float32"))', "R.output(t)"), "t", "W420", 4),
        (("t = R.exp(x)", "s = R.exp(t)", "R.output(s)"), "t", "W119", 7),
        (("if R.const(True):", "    t = R.exp(x)", "else:", "    t = x", "R.output(t)"), "t", "W119", 4),
        (("t = R.exp(x)", "R.output(q)"), "t", "W119", 5),
    ],
)
def test_what_a_dataflow_block_cannot_hold_is_refused(lines: Any, result: str, code: str, line: int) -> None:
    """D19: effects, control flow, variables that escape without being outputs, outputs that are none."""
    with pytest.raises(WeftError) as caught:
        weft.parse(FUNCTION.format("".join(f"        {item}\n" for item in lines), result))
    assert caught.value.code == code
    assert caught.value.span is not None
    assert caught.value.span.line == line


def test_the_rules_of_dataflow_blocks_are_verified_for_built_modules_too() -> None:
    """D19: a block that a pass made of other parts is found out."""
    good = parsed(FUNCTION.format("        t = R.exp(x)\n        s = R.exp(t)\n        R.output(s)\n", "s"))
    assert verify(good) == []
    main = good["main"]
    assert isinstance(main, Function)
    (block,) = main.body.blocks
    escaped = replace(main, body=replace(main.body, body=block.bindings[0].var))
    assert verify(good.with_function("main", escaped))
    effect = replace(block.bindings[0].value, op=weft.ir.ExternFunc("f"), ty_args=(block.bindings[0].var.ty,))
    bindings = (replace(block.bindings[0], value=effect), *block.bindings[1:])
    impure = replace(main, body=replace(main.body, blocks=(replace(block, bindings=bindings),)))
    assert "W420" in {finding.error().code for finding in verify(good.with_function("main", impure))}


INPLACE = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def increase(x: T.Buffer((4,), "float32")):
        for i in range(4):
            x[i] = x[i] + T.float32(1)

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        with R.dataflow():
            t = R.multiply(x, R.const(2, "float32"))
            u = R.exp({before})
            y = R.call_tir_inplace(cls.increase, ({updated},), inplace_indices=[0], out_ty=R.Tensor((4,), "float32"))
            v = R.multiply({after}, R.const(10, "float32"))
            z = R.add(R.add(u, y), v)
            R.output(z)
        return z
"""


@pytest.mark.parametrize("opt", [0, 1, 2])
@pytest.mark.parametrize("executor", ["native", "vm"])
@pytest.mark.parametrize(
    ("before", "updated", "after"), [("t", "t", "y"), ("t", "t", "t"), ("x", "x", "x"), ("t", "x", "x")]
)
def test_an_update_in_place_keeps_the_values_that_others_read(
    before: str, updated: str, after: str, executor: str, opt: int
) -> None:
    """D20: readers of the old value see it, before and after; arguments of the caller never change."""
    module = parsed(INPLACE.format(before=before, updated=updated, after=after))
    x = np.array([0.0, 0.5, -1.0, 2.0], "float32")
    values = {"x": x, "t": 2 * x}
    values["y"] = values[updated] + 1
    want = np.exp(values[before]) + values["y"] + 10 * values[after]
    given = x.copy()
    out = weft.compile(module, opt=opt, executor=executor)["main"](given)
    np.testing.assert_allclose(out, want, rtol=1e-6)
    np.testing.assert_array_equal(given, x)
    np.testing.assert_allclose(weft.interpret(module)["main"](x), want, rtol=1e-6)


def chain(length: int) -> IRModule:
    lines = ["a0 = R.reshape(x, (n * m,))"]
    lines += [f"a{i} = R.{'exp' if i % 2 else 'negative'}(a{i - 1})" for i in range(1, length)]
    return parsed(
        '@R.function\ndef main(x: R.Tensor(("n", "m"), "float32")) -> R.Tensor(("n * m",), "float32"):\n'
        + "".join(f"    {line}\n" for line in lines)
        + f"    return a{length - 1}\n"
    )


def test_sizes_are_read_once_and_computed_without_work_for_each_operator() -> None:
    """D21: no instruction reads a shape; a longer chain adds kernels and their memory, and nothing for sizes."""
    texts = []
    for length in (4, 8):
        executable = weft.compile(chain(length), executor="vm", opt=0)
        texts.append(listing(executable._program.driver))  # type: ignore[arg-type]
    for text in texts:
        assert not re.search(r"shape_of|tensor_to_shape|match_shape", text)
    kinds = [sorted(re.findall(r"= (kernel|builtin \w+)", text)) for text in texts]
    added = [kind for kind in set(kinds[1]) if kinds[1].count(kind) > kinds[0].count(kind)]
    assert set(added) <= {"kernel", "builtin alloc_tensor", "builtin tensor_in_storage", "builtin view"}
    assert kinds[1].count("kernel") - kinds[0].count("kernel") == 4
    sizes = [re.findall(r"r\d+ = mul\(.*\)    # (.*)", text) for text in texts]
    assert sizes == [["m * n"]] * 2, "one instruction computes the size of every value"
    native = weft.compile(chain(8))
    assert not [site for site in native._program.sites if site["kind"] == "call"]  # no way back to Python
    x = np.random.default_rng(0).normal(size=(3, 5)).astype("float32")
    np.testing.assert_allclose(native["main"](x), weft.interpret(chain(8))["main"](x), rtol=1e-5)
