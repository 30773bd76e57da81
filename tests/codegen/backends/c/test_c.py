"""C99 code: clean under strict warnings and sanitizers, no heap, equal to the reference interpreter."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.embedded import network, quantised

import weft
from weft import TargetError, transform
from weft.codegen.backends.c import CSource, generate
from weft.codegen.backends.c.memory import greedy
from weft.ir import IRModule, replace
from weft.ir.graph import BindingBlock, Call, Expr, Function, Op, SeqExpr, Var, VarBinding
from weft.ir.types import TensorType
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T
from weft.transform.memory.pack_memory import Request

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a C compiler")
STRICT = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off", "-O1"]
SANITIZE = ["-fsanitize=undefined", "-fno-sanitize-recover=all"]


def lowered(module: IRModule) -> IRModule:
    return transform.default_pipeline()(module)


def run(source: CSource, model: str, inputs: list[np.ndarray], outputs: list[np.ndarray], folder: Path) -> int:
    """Compile the files strictly and call the entry; gives its result."""
    for name, text in source.files.items():
        (folder / name).write_text(text)
    library = folder / f"{model}.so"
    command = ["gcc", *STRICT, *SANITIZE, "-shared", "-fPIC", folder / f"{model}.c", "-lm", "-o", library]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    entry = getattr(ctypes.CDLL(str(library)), source.entry)
    workspace = np.zeros(source.workspace_bytes + 16, "uint8")
    start = -workspace.ctypes.data % 16
    blocks = [
        [item.ctypes.data for item in inputs],
        [item.ctypes.data for item in outputs],
        [workspace.ctypes.data + start],
        [0],
    ]
    return entry(*((ctypes.c_void_p * max(1, len(block)))(*block) for block in blocks))


def parsed(text: str) -> IRModule:
    """The module that a text holds."""
    module = weft.parse(text)
    assert isinstance(module, IRModule)
    return module


def check(module: IRModule, inputs: list[np.ndarray], folder: Path, tolerance: float = 1e-5) -> CSource:
    """Compare the C code of `main` with the reference interpreter."""
    expected = weft.interpret(module)["main"](*inputs)
    expected = list(expected) if isinstance(expected, tuple) else [expected]
    source = generate(lowered(module), model="model")
    outputs = [np.empty_like(item) for item in expected]
    assert run(source, "model", inputs, outputs, folder) == 0
    for got, want in zip(outputs, expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
    return source


def test_complex_numbers_are_two_floats(tmp_path: Path) -> None:
    module = parsed(
        """
@I.ir_module
class M:
    @R.function
    def main(x: R.Tensor((3, 4), "complex64")):
        y = R.matmul(x, R.const([[1j], [2], [3 - 1j], [0.5]], "complex64"))
        return R.exp(y / 3.0), R.abs(y), R.view_as_real(x), R.matmul(x, R.permute_dims(R.conj(x)))
"""
    )
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(3, 4)) + 1j * rng.normal(size=(3, 4))).astype("complex64")
    source = check(module, [x], tmp_path)
    assert "Complex" not in "".join(source.files.values())


def test_the_integers_of_a_quantized_layer_are_the_interpreters(tmp_path: Path) -> None:
    module = parsed(
        """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 3, 5, 5), "int8"), z: R.Tensor((2, 4, 5, 5), "int8")):
        a = R.dequantize(x, 0.043, 17)
        w = R.dequantize(R.const(WEIGHTS, "int8"), R.const([0.011, 0.3, 0.007, 0.02], "float32"), 0, axis=0)
        p = R.nn.conv2d(a, w, padding=1)
        b = R.add(p, R.const([[[0.5]], [[-1.0]], [[2.0]], [[0.1]]], "float32"))
        r = R.nn.relu(R.add(b, R.dequantize(z, 0.1, 3)))
        y = R.quantize(r, 0.05, -128)
        return y
""".replace("WEIGHTS", str(np.random.default_rng(0).integers(-127, 128, (4, 3, 3, 3)).tolist()))
    )
    folded = transform.FoldQuantizeDequantize()(module)
    assert "dequantize(" not in folded.script()
    generator = np.random.default_rng(1)
    inputs = [generator.integers(-128, 128, shape).astype("int8") for shape in ((2, 3, 5, 5), (2, 4, 5, 5))]
    check(folded, inputs, tmp_path, tolerance=0)
    np.testing.assert_array_equal(weft.compile(folded)["main"](*inputs), weft.interpret(folded)["main"](*inputs))


def test_the_digits_network_in_c_agrees_with_the_interpreter(tmp_path: Path) -> None:
    """G4: one entry with structures of inputs, outputs, workspaces and devices."""
    source = check(network.bound(2), [network.images(2)], tmp_path)
    header = source.files["model.h"]
    assert "int32_t model_run(const struct model_inputs *inputs, struct model_outputs *outputs," in header
    assert f"#define MODEL_WORKSPACE_BYTES {source.workspace_bytes}" in header


def test_the_integer_network_is_exact_everywhere(tmp_path: Path) -> None:
    """G7: NumPy, the interpreter, machine code and C agree to the last bit."""
    model = quantised.Quantised()
    images = model.images(3)
    module = quantised.module(model, 3)
    expected = model.logits(images)
    np.testing.assert_array_equal(weft.interpret(module)["main"](images), expected)
    np.testing.assert_array_equal(weft.compile(module)["main"](images), expected)
    check(module, [images], tmp_path, tolerance=0)
    labels = np.load(network.DATA / "digits.npz")["labels"]
    assert np.mean(model.logits(model.images(500)).argmax(1) == labels[:500]) > 0.96


def test_there_is_no_heap(tmp_path: Path) -> None:
    """G1: no allocation function is called; memory is an offset into what the caller gives."""
    source = check(network.bound(1), [network.images(1)], tmp_path)
    symbols = subprocess.run(["nm", "-u", tmp_path / "model.so"], capture_output=True, text=True, check=True).stdout
    assert not re.search(r"\b(malloc|calloc|realloc|free|alloca)\b", symbols)
    assert "workspace + " in source.files["model.c"]


@I.ir_module
class Arithmetic:
    @T.prim_func
    def integers(a: T.Buffer((16,), "int32"), b: T.Buffer((16,), "int32"), c: T.Buffer((12, 16), "int32")):
        for i in range(16):
            c[0, i] = a[i] + b[i]
            c[1, i] = a[i] - b[i]
            c[2, i] = a[i] * b[i]
            c[3, i] = a[i] // b[i]
            c[4, i] = a[i] % b[i]
            c[5, i] = T.truncdiv(a[i], b[i])
            c[6, i] = T.truncmod(a[i], b[i])
            c[7, i] = T.shift_left(a[i], b[i])
            c[8, i] = T.shift_right(a[i], b[i])
            c[9, i] = T.min(a[i], b[i])
            c[10, i] = T.abs(a[i])
            c[11, i] = -a[i]

    @R.function
    def main(a: R.Tensor((16,), "int32"), b: R.Tensor((16,), "int32")) -> R.Tensor((12, 16), "int32"):
        c = R.call_tir(cls.integers, (a, b), out_ty=R.Tensor((12, 16), "int32"))
        return c


def test_integer_arithmetic_is_defined_where_c_is_not(tmp_path: Path) -> None:
    edges = [0, 1, -1, 7, -7, 31, 32, 33, -(2**31), 2**31 - 1, 2, -2, 5, 100, -100, 3]
    a = np.array(edges, "int32")
    b = np.array([0, -1, 0, 2, 2, 1, -1, 40, -1, 2**31 - 1, 33, -3, 0, -7, 7, -(2**31)], "int32")
    check(Arithmetic, [a, b], tmp_path)
    check(Arithmetic, [b, a], tmp_path)


@I.ir_module
class Conversions:
    @T.prim_func
    def convert(
        x: T.Buffer((12,), "float32"),
        y: T.Buffer((12,), "int8"),
        z: T.Buffer((12,), "int64"),
        w: T.Buffer((12,), "float32"),
    ):
        for i in range(12):
            y[i] = T.Cast("int8", x[i])
            z[i] = T.Cast("int64", x[i])
            w[i] = T.floordiv(T.max(x[i], T.float32(1)), T.float32(0.25)) + T.floormod(x[i], T.float32(3))

    @R.function
    def main(x: R.Tensor((12,), "float32")) -> R.Tuple(
        R.Tensor((12,), "int8"), R.Tensor((12,), "int64"), R.Tensor((12,), "float32")
    ):
        y = R.call_tir(
            cls.convert, (x,), out_ty=[R.Tensor((12,), "int8"), R.Tensor((12,), "int64"), R.Tensor((12,), "float32")]
        )
        return y


def test_conversions_saturate_and_take_nan_to_zero(tmp_path: Path) -> None:
    values = [0.0, -0.0, 1.9, -1.9, 127.0, 128.0, -129.0, 1e30, -1e30, np.inf, -np.inf, np.nan]
    check(Conversions, [np.array(values, "float32")], tmp_path)


@I.ir_module
class Attributed:
    @T.prim_func
    def kernel(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
        T.attr(x.data, "storage_alignment", 64)
        for i in range(4):
            y[i] = x[i] + T.float32(1)

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        y = R.call_tir(Attributed.kernel, (x,), out_ty=R.Tensor((4,), "float32"))
        return y


def test_what_an_attribute_is_about_is_not_written(tmp_path: Path) -> None:
    """Inputs are const, which a parameter that is no pointer to const would discard."""
    source = check(Attributed, [np.ones(4, "float32")], tmp_path)
    assert "const float *restrict x" in source.files["model.c"]


@I.ir_module
class Checked:
    @T.prim_func
    def kernel(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
        assert x[0] > T.float32(0), "the first value must be positive"
        for i in range(4):
            y[i] = x[i]

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        y = R.call_tir(cls.kernel, (x,), out_ty=R.Tensor((4,), "float32"))
        return y


def test_a_failed_assertion_is_the_result_and_has_a_text(tmp_path: Path) -> None:
    source = generate(lowered(Checked), model="model")
    out = np.zeros(4, "float32")
    assert run(source, "model", [np.ones(4, "float32")], [out], tmp_path) == 0
    assert run(source, "model", [-np.ones(4, "float32")], [out], tmp_path) == 1
    message = ctypes.CDLL(str(tmp_path / "model.so")).model_message
    message.restype = ctypes.c_char_p
    assert message(1) == b"AssertionError: the first value must be positive"


@I.ir_module
class Library:
    @R.function
    def main(x: R.Tensor((1, 8), "int8")) -> R.Tensor((1, 8), "int8"):
        y = R.call_dps_packed("arm_softmax_s8", (x,), out_ty=R.Tensor((1, 8), "int8"))
        return y


UNUSED = """
@I.ir_module
class M:
    @T.prim_func
    def k(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
        a = T.alloc_buffer((), "float32")
        b: T.let = x[0] + x[1]
        for i in range(4):
            a[()] = x[i]
            y[i] = x[i]

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        y = R.call_tir(cls.k, (x,), out_ty=R.Tensor((4,), "float32"))
        return y
"""


def test_what_a_kernel_computes_and_never_reads_is_no_warning(tmp_path: Path) -> None:
    check(parsed(UNUSED), [np.arange(4, dtype="float32")], tmp_path)


def test_parameters_of_any_names_have_fields_of_their_own(tmp_path: Path) -> None:
    """Two of one name, a keyword, none at all, one that is taken by what another would become."""
    ty = TensorType((2,), "float32")
    params = tuple(Var(name, ty) for name in ("x", "x", "for", "", "3d", "x_1", "é"))
    total: Expr = params[0]
    bindings = []
    for place, param in enumerate(params[1:]):
        var = Var(f"t{place}", ty)
        bindings.append(VarBinding(var, Call(Op("add"), (Call(Op("add"), (total, total)), param))))
        total = var
    main = Function(params, SeqExpr((BindingBlock(tuple(bindings)),), total), ty)
    inputs = [np.array([place, 10.0], "float32") for place in range(len(params))]
    check(transform.Normalize()(IRModule({"main": main})), inputs, tmp_path)


TAKEN = """
@I.ir_module
class M:
    @T.prim_func(private=True)
    def of_a_buffer(NAME: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
        for i in range(4):
            y[i] = T.exp(NAME[i])

    @T.prim_func(private=True)
    def of_a_value(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
        NAME: T.let = x[0] + x[1]
        for i in range(4):
            y[i] = T.exp(x[i]) * NAME

    @T.prim_func(private=True)
    def of_a_loop(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
        for NAME in range(4):
            y[NAME] = T.exp(x[NAME])

    @R.function
    def main(NAME: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        a = R.call_tir(cls.of_a_buffer, (NAME,), out_ty=R.Tensor((4,), "float32"))
        b = R.call_tir(cls.of_a_value, (a,), out_ty=R.Tensor((4,), "float32"))
        return R.call_tir(cls.of_a_loop, (b,), out_ty=R.Tensor((4,), "float32"))
"""


@pytest.mark.parametrize("name", ["expf", "INT64_MIN", "NULL", "int64_t", "__attribute__", "memcpy", "static_assert"])
def test_names_that_c_has_taken_may_be_those_of_variables(name: str, tmp_path: Path) -> None:
    check(parsed(TAKEN.replace("NAME", name)), [np.linspace(-1, 1, 4, dtype="float32")], tmp_path)


NARROW = """
@I.ir_module
class M:
    @T.prim_func(private=True)
    def narrow(x: T.Buffer((6, 32), "float32"), y: T.Buffer((6, 32), "DTYPE")):
        for i in range(6):
            y[i, T.Ramp(0, 1, 32)] = T.Cast("DTYPEx32", x[i, T.Ramp(0, 1, 32)])

    @T.prim_func(private=True)
    def sums(
        x: T.Buffer((6, 32), "DTYPE"), w: T.Buffer((5,), "DTYPE"), y: T.Buffer((6, 5), "int32"),
        z: T.Buffer((6, 5), "DTYPE"),
    ):
        for i, j in T.grid(6, 5):
            y[i, j] = T.int32(0)
            for k in range(32):
                y[i, j] = y[i, j] + T.Cast("int32", x[i, k]) * T.Cast("int32", w[j])
            z[i, j] = x[i, 3] * w[j] - T.bitwise_not(x[i, j])
        for i in range(6):
            y[i, T.Ramp(0, 1, 4)] = y[i, T.Ramp(0, 1, 4)] + T.Cast("int32x4", x[i, T.Ramp(4, 1, 4)])

    @R.function
    def main(x: R.Tensor((6, 32), "float32")):
        q = R.call_tir(cls.narrow, (x,), out_ty=R.Tensor((6, 32), "DTYPE"))
        types = [R.Tensor((6, 5), "int32"), R.Tensor((6, 5), "DTYPE")]
        y = R.call_tir(cls.sums, (q, R.const(WEIGHTS, "DTYPE")), out_ty=types)
        return (y[0], R.astype(y[1], "int32"))
"""


@pytest.mark.parametrize(
    ("dtype", "weights", "size"), [("int4", "[-8, 7, -1, 3, 5]", 3), ("uint2", "[3, 0, 1, 2, 3]", 2)]
)
def test_numbers_of_less_than_a_byte_wrap_and_are_packed(dtype: str, weights: str, size: int, tmp_path: Path) -> None:
    module = parsed(NARROW.replace("DTYPE", dtype).replace("WEIGHTS", weights))
    x = np.random.default_rng(0).normal(size=(6, 32)).astype("float32") * 6
    source = check(module, [x], tmp_path, tolerance=0)
    assert f"[{size}] = {{ /* uint8[{size}] */" in "".join(source.files.values())


def test_a_library_call_is_carried_by_the_host_code() -> None:
    """B19: a hook that only emits an extern call needs no code generator of its own."""
    source = generate(lowered(Library), externs=("arm_softmax_s8",))
    assert "arm_softmax_s8((void *)(uintptr_t)inputs->x" in source.files["model.c"]


DIGITS = network.network("(digit, confidence)")


@pytest.mark.parametrize(
    ("module", "code", "message"),
    [
        (DIGITS, "W745", "every size must be known at compile time"),
        (transform.BindSymbolicVars({"n": 1})(DIGITS), "W744", "has no kernel"),
    ],
)
def test_what_c_cannot_express_is_refused(module: IRModule, code: str, message: str) -> None:
    if code == "W745":
        module = lowered(module)
    with pytest.raises(TargetError, match=message) as caught:
        generate(module)
    assert caught.value.code == code


def test_a_planner_is_a_plug_in() -> None:
    """G2: sizes and lifetimes in, offsets out; the greedy one reuses memory, a plain one does not."""

    def one_after_another(requests):
        offsets, total = [], 0
        for request in requests:
            offsets.append(total)
            total += -(-request.size // 16) * 16
        return offsets, total

    module = lowered(network.bound(1))
    reused = generate(module, model="model").workspace_bytes
    plain = generate(module, model="model", planner=one_after_another).workspace_bytes
    assert reused < plain


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 12), st.integers(0, 6)), max_size=20))
def test_planned_memory_never_overlaps(items: list[tuple[int, int, int]]) -> None:
    """G2: two blocks that live at one time are disjoint, and everything is inside the total."""
    requests = [Request(size, first, first + length) for size, first, length in items]
    offsets, total = greedy(requests)
    for i, a in enumerate(requests):
        assert offsets[i] % 16 == 0
        assert offsets[i] + a.size <= total
        for j, b in enumerate(requests[:i]):
            if a.meets(b) and a.size and b.size:
                assert offsets[i] + a.size <= offsets[j] or offsets[j] + b.size <= offsets[i]


TWICE = """from weft.script import ir as I, relax as R, tir as T

@I.ir_module
class M:
    @T.prim_func(private=True)
    def double(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
        for i in range(4):
            y[i] = x[i] + x[i]

    @T.prim_func(private=True)
    def add(x: T.Buffer((4,), "float32"), z: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
        for i in range(4):
            y[i] = x[i] + z[i]

    @R.function(private=True)
    def f(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        y = R.call_tir(cls.double, (x,), out_ty=R.Tensor(("n",), "float32"))
        return y

    @R.function
    def main(x: R.Tensor((4,), "float32"), w: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        a = cls.f(x)
        b = cls.f(w)
        c = R.call_tir(cls.add, (a, b), out_ty=R.Tensor((4,), "float32"))
        return c
"""


@pytest.mark.parametrize("sizes", ["symbolic", "known"])
def test_each_call_of_a_function_has_results_of_its_own(sizes: str) -> None:
    """G1: the steps of a function that is called twice stand there twice, and so does its memory."""
    module = weft.parse(TWICE if sizes == "symbolic" else TWICE.replace('"n"', "4"))
    assert isinstance(module, IRModule)
    text = "\n".join(generate(transform.LowerToMemory()(module)).files.values())
    first, second, both = re.findall(r"failed = model_\w+\((.*)\);", text)
    a, b = first.split(", ")[1], second.split(", ")[1]
    assert a != b
    assert both.split(", ")[:2] == [a, b]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 12), st.integers(0, 6)), max_size=12))
def test_no_plan_is_larger_than_that_of_the_largest_first(items: list[tuple[int, int, int]]) -> None:
    """G2: several orders are tried; the simplest of them is among these."""
    requests = [Request(-(-size // 16) * 16, first, first + length) for size, first, length in items]
    placed: list[tuple[Request, int]] = []
    for request in sorted(requests, key=lambda item: -int(item.size)):
        offset = 0
        for other, start in sorted(((o, s) for o, s in placed if o.meets(request)), key=lambda pair: pair[1]):
            if offset + int(request.size) <= start:
                break
            offset = max(offset, start + int(other.size))
        placed.append((request, offset))
    assert greedy(requests)[1] <= max((offset + int(request.size) for request, offset in placed), default=0)


@pytest.mark.parametrize(
    "store",
    [
        "A[X[0] * X[0]] = T.float32(7)",
        "for i in range(X[0] * X[0]):\n            A[i % 8] = T.float32(7)",
        "A[(X[0] * X[0]) // 2**61] = T.float32(7)",
    ],
)
def test_an_index_that_leaves_64_bits_is_an_error_in_c(store: str, tmp_path: Path) -> None:
    module = parsed(f"""
from weft.script import ir as I, relax as R, tir as T

@I.ir_module
class M:
    @T.prim_func
    def k(X: T.Buffer((8,), "int64"), A: T.Buffer((8,), "float32")):
        for i in range(8):
            A[i] = T.float32(0)
        {store}

    @R.function
    def main(x: R.Tensor((8,), "int64")) -> R.Tensor((8,), "float32"):
        y = R.call_tir(M.k, (x,), out_ty=R.Tensor((8,), "float32"))
        return y
""")
    check(module, [np.full(8, 2)], tmp_path)
    source = generate(lowered(module), model="wraps")
    for value in (3037000500, 2**32, -(2**63)):
        output = np.zeros(8, "float32")
        assert run(source, "wraps", [np.full(8, value)], [output], tmp_path) != 0
        assert not output.any()


def test_a_loop_has_the_iterations_that_memory_said_when_it_began(tmp_path: Path) -> None:
    module = parsed("""
from weft.script import ir as I, relax as R, tir as T

@I.ir_module
class M:
    @T.prim_func
    def k(X: T.Buffer((8,), "int64"), A: T.Buffer((8,), "int64")):
        for i in range(8):
            A[i] = X[i]
        for i in range(A[0]):
            A[0] = T.int64(1000000)
            A[i + 1] = T.int64(7)

    @R.function
    def main(x: R.Tensor((8,), "int64")) -> R.Tensor((8,), "int64"):
        y = R.call_tir(M.k, (x,), out_ty=R.Tensor((8,), "int64"))
        return y
""")
    check(module, [np.full(8, 2)], tmp_path)


@I.ir_module
class Wrapping:
    @T.prim_func
    def pick(x: T.Buffer((4,), "int32"), k: T.Buffer((3,), "int32"), y: T.Buffer((4,), "int32")):
        for i in range(4):
            y[i] = x[i + k[0] - k[1]]
        for j in range(k[0] - k[1] + 1, k[2]):
            y[j] = y[j] * k[0]

    @R.function
    def main(x: R.Tensor((4,), "int32"), k: R.Tensor((3,), "int32")) -> R.Tensor((4,), "int32"):
        y = R.call_tir(cls.pick, (x, k), out_ty=R.Tensor((4,), "int32"))
        return y


def test_indices_wrap_where_their_arithmetic_leaves_its_type(tmp_path: Path) -> None:
    source = generate(lowered(Wrapping), model="model")
    got = np.zeros(4, "int32")
    inputs = [np.arange(4, dtype="int32"), np.array([2**31 - 1, 2**31 - 1, 4], "int32")]
    assert run(source, "model", inputs, [got], tmp_path) == 0
    assert got.tolist() == [0, *np.array([1, 2, 3], "int32") * np.int32(2**31 - 1)]


def test_indices_that_stay_in_their_type_are_plain_arithmetic() -> None:
    text = 'x: T.Buffer((6, 4), "float32"), y: T.Buffer((24,), "float32")'
    body = "for i, j in T.grid(6, 4):\n            y[i * 4 + j] = x[i, j]"
    module = parsed(f"@I.ir_module\nclass M:\n    @T.prim_func\n    def main({text}):\n        {body}\n")
    made = weft.compile(module, "c")
    written = "".join(a.data.decode() for a in made.values() if a.name.endswith(".c"))
    assert "y[((i * 4) + j)] = x[i * 4 + j];" in written


@pytest.mark.parametrize("dtype", ["float32", "int8", "float64"])
def test_many_elements_are_sorted_by_the_digits_of_their_bits(dtype: str, tmp_path: Path) -> None:
    head = f'@R.function\ndef main(x: R.Tensor((2, 200), "{dtype}")):\n'
    main = weft.parse(head + "    return (R.sort(x, descending=True), R.argsort(x))")
    assert isinstance(main, Function)
    x = (np.random.default_rng(0).standard_normal((2, 200)) * 30).astype(dtype)
    ordered, positions = np.zeros_like(x), np.zeros((2, 200), "int32")
    pipeline = transform.default_pipeline("c")  # the default target has instructions that sort
    source = generate(pipeline(IRModule({"model": replace(main, name="model")})), "model")
    assert run(source, "model", [x], [ordered, positions], tmp_path) == 0
    np.testing.assert_array_equal(ordered, np.sort(x)[:, ::-1])
    np.testing.assert_array_equal(positions, np.argsort(x, kind="stable"))


VECTORS = {
    "bound once, read twice": ("v = x[T.ramp(0, 1, 4)]", "y[T.ramp(4, 1, 4)] = v + v", "y[T.ramp(0, 1, 4)] = v"),
    "kept while memory changes": (
        "for i in range(8): y[i] = x[i]",
        "v = y[T.ramp(0, 1, 4)]",
        "y[T.ramp(0, 1, 4)] = y[T.ramp(4, 1, 4)]",
        "y[T.ramp(4, 1, 4)] = v",
    ),
    "indices": ("i = T.ramp(0, 2, 4)", "y[i] = x[i]", "y[T.ramp(1, 2, 4)] = x[i]"),
    "one number in all lanes": ("v = T.Broadcast(x[1], 8)", "y[T.ramp(0, 1, 8)] = v"),
    "truth values": (
        "v = x[T.ramp(0, 1, 8)] > T.Broadcast(T.float32(0), 8)",
        "y[T.ramp(0, 1, 8)] = T.Select(v, x[T.ramp(0, 1, 8)], T.Broadcast(T.float32(0), 8))",
    ),
    "one lane": ("v = x[T.ramp(0, 1, 4)]", "for i in range(8): y[i] = T.Shuffle([v], [2])"),
    "bits": (
        "v = T.reinterpret('uint32x4', x[T.ramp(0, 1, 4)])",
        "y[T.ramp(0, 1, 8)] = T.Cast('float32x8', T.reinterpret('uint16x8', v))",
    ),
    "bits of what stands for them": (
        "y[T.ramp(0, 1, 8)] = T.Cast('float32x8', "
        "T.Let(T.reinterpret('uint16x8', v), where={v: T.reinterpret('uint32x4', x[T.ramp(0, 1, 4)])}))",
    ),
    "nothing comes of it": ("T.evaluate(x[T.ramp(0, 1, 4)])", "for i in range(8): y[i] = x[i]"),
}


@pytest.mark.parametrize("body", VECTORS.values(), ids=VECTORS)
def test_vectors_that_variables_hold(body: tuple[str, ...], tmp_path: Path) -> None:
    module = parsed(_KERNEL_OF_EIGHT.format(body="\n        ".join(body)))
    x, y = np.array([1, -2, 3, -4, 5, 6, -7, 8], "float32"), np.empty(8, "float32")
    source = generate(lowered(module), model="vectors")
    assert run(source, "vectors", [x], [y], tmp_path) == 0
    np.testing.assert_array_equal(y, np.asarray(weft.interpret(module)["main"](x)))


def test_a_vector_where_one_number_is_written_is_refused() -> None:
    text = _KERNEL_OF_EIGHT.format(body="for i in range(8): y[i] = T.call_extern('float32', 'f', x[T.ramp(0, 1, 4)])")
    with pytest.raises(TargetError, match="float32x4 where one number is written") as caught:
        weft.compile(parsed(text), "c", externs=("f",))
    assert caught.value.code == "W741"


_KERNEL_OF_EIGHT = """
@I.ir_module
class M:
    @T.prim_func
    def k(x: T.Buffer((8,), "float32"), y: T.Buffer((8,), "float32")):
        {body}
    @R.function
    def main(x: R.Tensor((8,), "float32")) -> R.Tensor((8,), "float32"):
        y = R.call_tir(cls.k, (x,), out_ty=R.Tensor((8,), "float32"))
        return y
"""
