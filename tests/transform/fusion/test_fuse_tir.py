"""FuseTIR: one kernel for a group, with fewer buffers and the same results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.transform.helpers import assert_same_meaning, check, left_alone, module

import weft
from weft.ir import IRModule, PrimFunc, TensorType, Var, walk
from weft.ir.builder import BlockBuilder
from weft.ir.dim import symbol
from weft.ir.op import get_op
from weft.ir.tensor import AllocBuffer, AssertStmt, BufferStore, For
from weft.testing import assert_same_meaning as same_meaning
from weft.transform import ConvertToDataflow, LegalizeOps, Pipeline, TileContractions
from weft.transform.fusion.annotate_pattern import AnnotateTIROpPattern
from weft.transform.fusion.fuse_ops import FuseOps
from weft.transform.fusion.fuse_tir import FuseTIR

N = symbol("n")
FUSE = Pipeline([LegalizeOps(), ConvertToDataflow(), AnnotateTIROpPattern(), FuseOps(), FuseTIR()])
GROUP = 'R.func_attr({"primitive": True})'


def fused(text: str) -> IRModule:
    """The module after fusion, with what every result of it promises."""
    return checked(module(text))


def checked(old: IRModule) -> IRModule:
    before = LegalizeOps()(old)
    new = FUSE(old)
    assert weft.verify(new) == []
    weft.assert_structural_equal(weft.parse(new.script()), new)
    assert_same_meaning(before, new)
    assert FuseTIR()(new) is new
    return new


def kernels(module: IRModule) -> list[PrimFunc]:
    return [function for function in module.functions.values() if isinstance(function, PrimFunc)]


def only_kernel(module: IRModule) -> PrimFunc:
    (kernel,) = kernels(module)
    return kernel


def stores(kernel: PrimFunc) -> int:
    return sum(isinstance(node, BufferStore) for node in walk(kernel.body))


def allocations(kernel: PrimFunc) -> int:
    return sum(isinstance(node, AllocBuffer) for node in walk(kernel.body))


# What a group becomes -----------------------------------------------------------------------------------------------

PAIR = """
@T.prim_func(private=True)
def double(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")):
    for i in range(n):
        with T.block("y"):
            vi = T.axis.spatial(n, i)
            y[vi] = x[vi] * T.float32(2.0)
@T.prim_func(private=True)
def power(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")):
    for i in range(n):
        with T.block("y"):
            vi = T.axis.spatial(n, i)
            y[vi] = T.exp(x[vi])
"""


def test_elementwise_kernels_become_one_loop() -> None:
    check(
        FuseTIR(),
        PAIR
        + f"""
@R.function
def main(x: R.Tensor(("m",), "float32")):
    z = cls.both(x)
    return z
@R.function(private=True)
def both(x: R.Tensor(("n",), "float32")):
    {GROUP}
    with R.dataflow():
        y = R.call_tir(cls.double, (x,), out_ty=R.Tensor((n,), "float32"))
        z = R.call_tir(cls.power, (y,), out_ty=R.Tensor((n,), "float32"))
        R.output(z)
    return z
""",
        """
@R.function
def main(x: R.Tensor(("m",), "float32")):
    z = R.call_tir(cls.both, (x,), out_ty=R.Tensor((m,), "float32"))
    return z
@T.prim_func(private=True)
def both(x: T.Buffer(("n",), "float32"), z: T.Buffer(("n",), "float32")):
    T.func_attr({"primitive": True, "op_pattern": "elementwise"})
    for i in range(n):
        with T.block("y"):
            vi = T.axis.spatial(n, i)
            z[vi] = T.exp(x[vi] * T.float32(2.0))
""",
    )


def test_sums_of_products_grow_in_the_output_and_are_still_recognised() -> None:
    new = fused(
        """
        @R.function
        def main(x: R.Tensor(("n", 6), "float32"), w: R.Tensor((6, 8), "float32"), b: R.Tensor((8,), "float32")):
            y = R.matmul(x, w)
            z = R.add(y, b)
            r = R.nn.relu(z)
            return r
        """
    )
    kernel = only_kernel(new)
    assert (allocations(kernel), stores(kernel)) == (0, 3)  # init, sum, epilogue
    tiled = TileContractions.with_options({"vector_bits": 128, "registers": 16})(new)
    assert tiled is not new
    assert weft.verify(tiled) == []


def test_diamonds_are_computed_once_in_memory() -> None:
    new = fused(
        """
        @R.function
        def main(x: R.Tensor(("n", 4), "float32")):
            t = R.exp(x)
            a = R.add(t, R.const(1.0))
            z = R.divide(t, a)
            return z
        """
    )
    assert (allocations(only_kernel(new)), stores(only_kernel(new))) == (0, 1)


def test_several_results_are_outputs_of_one_kernel() -> None:
    text = (
        PAIR
        + f"""
@R.function
def main(x: R.Tensor(("n",), "float32")):
    pair = cls.both(x)
    y = pair[0]
    z = pair[1]
    return (y, z)
@R.function(private=True)
def both(x: R.Tensor(("n",), "float32")):
    {GROUP}
    y = R.call_tir(cls.double, (x,), out_ty=R.Tensor((n,), "float32"))
    z = R.call_tir(cls.power, (y,), out_ty=R.Tensor((n,), "float32"))
    return (y, z)
"""
    )
    old = module(text)
    new = FuseTIR()(old)
    assert weft.verify(new) == []
    assert_same_meaning(old, new)
    assert len(only_kernel(new).params) == 3


def test_kernels_with_several_results_can_be_inside() -> None:
    old = module(
        f"""
        @T.prim_func(private=True)
        def halves(x: T.Buffer(("n",), "float32"), a: T.Buffer(("n",), "float32"), b: T.Buffer(("n",), "float32")):
            for i in range(n):
                a[i] = x[i] * T.float32(0.5)
            for i in range(n):
                b[i] = x[i] - T.float32(0.5)
        @T.prim_func(private=True)
        def plus(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32"), z: T.Buffer(("n",), "float32")):
            for i in range(n):
                z[i] = x[i] + y[i]
        @R.function
        def main(x: R.Tensor(("n",), "float32")):
            z = cls.group(x)
            return z
        @R.function(private=True)
        def group(x: R.Tensor(("n",), "float32")):
            {GROUP}
            p = R.call_tir(cls.halves, (x,), out_ty=[R.Tensor((n,), "float32"), R.Tensor((n,), "float32")])
            a = p[0]
            b = p[1]
            z = R.call_tir(cls.plus, (a, b), out_ty=R.Tensor((n,), "float32"))
            return z
        """
    )
    new = FuseTIR()(old)
    assert weft.verify(new) == []
    assert_same_meaning(old, new)
    assert (allocations(only_kernel(new)), stores(only_kernel(new))) == (0, 1)


def test_sizes_that_no_buffer_has_become_scalars() -> None:
    old = module(
        PAIR
        + """
@R.function
def main(x: R.Tensor(("k", 2), "float32")):
    with R.dataflow():
        f = R.reshape(x, (-1,))
        y = R.call_tir(cls.double, (f,), out_ty=R.Tensor((2 * k,), "float32"))
        z = R.call_tir(cls.power, (y,), out_ty=R.Tensor((2 * k,), "float32"))
        R.output(z)
    return z
"""
    )
    kernel = next(k for k in kernels(checked(old)) if "fusion" in k.attrs)
    assert [param.name for param in kernel.params][-1] == "k"


def test_kernels_used_twice_get_variables_of_their_own() -> None:
    kernel = only_kernel(
        fused(
            """
            @R.function
            def main(x: R.Tensor(("n", 4), "float32")):
                a = R.sum(R.add(x, R.const(1.0)), axis=1, keepdims=True)
                b = R.multiply(a, a)
                c = R.multiply(b, b)
                return c
            """
        )
    )
    loops = [node.loop_var for node in walk(kernel.body) if isinstance(node, For)]
    assert len(set(loops)) == len(loops)


def test_asserts_stay_in_order_and_keep_what_they_look_at() -> None:
    old = module(
        f"""
        @T.prim_func(private=True)
        def double(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")):
            assert n > 1, "too short"
            for i in range(n):
                y[i] = x[i] * T.float32(2.0)
        @T.prim_func(private=True)
        def root(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")):
            for i in range(n):
                assert x[i] >= T.float32(0.0), "negative"
            for i in range(n):
                y[i] = T.sqrt(x[i])
        @R.function
        def main(x: R.Tensor(("n",), "float32")):
            z = cls.group(x)
            return z
        @R.function(private=True)
        def group(x: R.Tensor(("n",), "float32")):
            {GROUP}
            y = R.call_tir(cls.double, (x,), out_ty=R.Tensor((n,), "float32"))
            z = R.call_tir(cls.root, (y,), out_ty=R.Tensor((n,), "float32"))
            return z
        """
    )
    new = FuseTIR()(old)
    assert weft.verify(new) == []
    asserts = [node.message for node in walk(only_kernel(new).body) if isinstance(node, AssertStmt)]
    assert asserts == ["too short", "negative"]
    run = weft.interpret(new)["main"]
    assert run(np.array([2.0, 8.0], "float32")).tolist() == [2.0, 4.0]
    for wrong in ([1.0], [1.0, -1.0]):
        with pytest.raises(AssertionError):
            run(np.array(wrong, "float32"))


def test_constants_in_a_group_become_arguments() -> None:
    old = module(
        PAIR
        + f"""
@R.function
def main(x: R.Tensor((2,), "float32")):
    z = cls.group()
    return z
@R.function(private=True)
def group():
    {GROUP}
    y = R.call_tir(cls.double, (R.const([1.0, 2.0], "float32"),), out_ty=R.Tensor((2,), "float32"))
    z = R.call_tir(cls.power, (y,), out_ty=R.Tensor((2,), "float32"))
    return z
"""
    )
    new = FuseTIR()(old)
    assert weft.verify(new) == []
    assert_same_meaning(old, new)
    assert len(only_kernel(new).params) == 2


def test_groups_that_are_no_kernel_are_left_alone() -> None:
    left_alone(
        FuseTIR(),
        f"""
        @R.function
        def main(x: R.Tensor(("n",), "float32")):
            z = cls.group(x)
            return z
        @R.function(private=True)
        def group(x: R.Tensor(("n",), "float32")):
            {GROUP}
            y = R.call_dps_packed("test.copy", (x,), out_ty=R.Tensor((n,), "float32"))
            return y
        """,
    )


# Random graphs ------------------------------------------------------------------------------------------------------

UNARY = ("exp", "tanh", "nn.relu", "negative", "abs")
BINARY = ("add", "multiply", "subtract", "maximum")


@st.composite
def graphs(draw: st.DrawFn) -> IRModule:
    """A function of elementwise, broadcast, shape-changing and reducing operators over (n, 4), (4,) and (n, 1)."""
    params = [Var(f"x{i}", TensorType(shape, "float32")) for i, shape in enumerate([(N, 4), (4,), (N, 1)])]
    builder = BlockBuilder()
    with builder.function("main", params):
        with builder.dataflow():
            values = {(N, 4): [params[0]], (4,): [params[1]], (N, 1): [params[2]], (4, N): []}

            def emit(name: str, *args: Var, **options: object) -> None:
                var = builder.emit(get_op(name).bind(args, options, None))
                values.setdefault(var.ty.shape, []).append(var)  # type: ignore[union-attr]

            for _ in range(draw(st.integers(2, 9))):
                kind = draw(st.sampled_from(["unary", "binary", "broadcast", "move", "reduce", "product"]))
                known = [shape for shape, items in values.items() if items]
                shape = draw(st.sampled_from(known))
                x = draw(st.sampled_from(values[shape]))
                if kind == "unary":
                    emit(draw(st.sampled_from(UNARY)), x)
                elif kind == "binary":
                    emit(draw(st.sampled_from(BINARY)), x, draw(st.sampled_from(values[shape])))
                elif kind == "broadcast":
                    other = draw(st.sampled_from([*values[(4,)], *values[(N, 1)]]))
                    emit(draw(st.sampled_from(BINARY)), draw(st.sampled_from(values[(N, 4)])), other)
                elif kind == "move" and len(shape) == 2:
                    emit("permute_dims", x)
                    emit("reshape", values[x.ty.shape][-1], shape=(N * (shape[0] * shape[1]) // N,))  # type: ignore[operator,union-attr]
                elif kind == "reduce":
                    emit("sum", draw(st.sampled_from(values[(N, 4)])), axis=[1], keepdims=True)
                elif kind == "product" and values[(4, N)]:
                    emit("matmul", draw(st.sampled_from(values[(4, N)])), draw(st.sampled_from(values[(N, 4)])))
            everything = [item for items in values.values() for item in items if item not in params]
            results: list[Var] = []
            if everything:
                results = draw(st.lists(st.sampled_from(everything), min_size=1, max_size=3, unique=True))
            outputs = [builder.emit_output(item) for item in results]
        builder.emit_func_output(tuple(outputs) if len(outputs) > 1 else outputs[0] if outputs else params[0])
    return builder.get()


@settings(max_examples=40, deadline=None)
@given(graphs(), st.integers(0, 5), st.integers(0, 1000))
def test_fusion_keeps_every_bit_of_the_results(old: IRModule, count: int, seed: int) -> None:
    new = checked(old)
    random = np.random.default_rng(seed)
    arguments = [random.standard_normal(shape).astype("float32") for shape in ((count, 4), (4,), (count, 1))]
    before, after = weft.interpret(LegalizeOps()(old))["main"](*arguments), weft.interpret(new)["main"](*arguments)
    for a, b in zip(_flat(before), _flat(after), strict=True):
        np.testing.assert_array_equal(a, b)


def _flat(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


@settings(max_examples=6, deadline=None)
@given(graphs(), st.integers(1, 4), st.integers(0, 1000))
def test_compiled_results_agree(old: IRModule, count: int, seed: int) -> None:
    """Unfused without optimisation against fused: multiplications may be contracted with additions."""
    new = FUSE(old)
    random = np.random.default_rng(seed)
    arguments = [random.uniform(-1, 1, shape).astype("float32") for shape in ((count, 4), (4,), (count, 1))]
    expected = weft.interpret(old)["main"](*arguments)
    for a, b in zip(_flat(expected), _flat(weft.compile(new)["main"](*arguments)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


NARROW = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def exp(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n, 4))
        B = T.match_buffer(b, (n, 4))
        for i, j in T.grid(n, 4):
            with T.block("exp"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.exp(A[vi, vj])

    @T.prim_func(private=True)
    def scale(a: T.handle, s: T.float32, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n, 4))
        B = T.match_buffer(b, (n, 4))
        for i, j in T.grid(n, 4):
            with T.block("scale"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * s + T.Cast("float32", n)

    @R.function(private=True)
    def fused(x: R.Tensor(("n", 4), "float32"), s: R.Prim("float32")):
        R.func_attr({"primitive": True})
        with R.dataflow():
            y = R.call_tir(Module.exp, (x,), out_ty=R.Tensor((n, 4), "float32"))
            z = R.call_tir(Module.scale, (y, s), out_ty=R.Tensor((n, 4), "float32"))
            R.output(z)
        return z

    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), s: R.Prim("float32")):
        return Module.fused(x, s)
"""


def test_kernels_over_narrow_sizes_and_scalars_are_fused() -> None:
    before = weft.parse(NARROW)
    assert isinstance(before, IRModule)
    annotated = AnnotateTIROpPattern()(before)
    assert [annotated[name].attrs["op_pattern"] for name in ("exp", "scale")] == ["elementwise"] * 2
    after = FuseTIR()(annotated)
    assert len([f for f in after.functions.values() if isinstance(f, PrimFunc)]) == 1
    same_meaning(before, after, trials=2)
    same_meaning(before, weft.compile(after), name="main", trials=2)


def test_fields_of_tuples_are_parameters_of_the_fused_kernel() -> None:
    before = weft.parse(
        """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def add(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("add"):
                vi = T.axis.spatial(8, i)
                C[vi] = A[vi] + B[vi]

    @R.function(private=True)
    def fused(t: R.Tuple(R.Tensor((8,), "float32"), R.Tensor((8,), "float32")), z: R.Tensor((8,), "float32")):
        R.func_attr({"Primitive": True})
        with R.dataflow():
            u = (t[1], z)
            c = R.call_tir(Module.add, (t[0], u[0]), out_ty=R.Tensor((8,), "float32"))
            d = R.call_tir(Module.add, (c, u[1]), out_ty=R.Tensor((8,), "float32"))
            R.output(d)
        return d

    @R.function
    def main(t: R.Tuple(R.Tensor((8,), "float32"), R.Tensor((8,), "float32")), z: R.Tensor((8,), "float32")):
        with R.dataflow():
            r = Module.fused(t, z)
            R.output(r)
        return r
"""
    )
    assert isinstance(before, IRModule)
    after = FuseTIR()(before)
    fused = after["fused"]
    assert isinstance(fused, PrimFunc)
    assert [param.name for param in fused.params] == ["t_0", "t_1", "z", "d"]
    same_meaning(before, after, trials=2)
