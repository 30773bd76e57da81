# pyright: reportMissingImports=false
"""Operators of onnxruntime's own domain beside onnxruntime, where it is installed: `make test-frontends` does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper

import weft
from weft.frontend import import_report

runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is large: make test-frontends installs it")

RNG = np.random.default_rng(0)
U8 = {"uint8": (0, 255), "int8": (-128, 127)}


def real(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype("float32")


def whole(*shape: int, dtype: str = "uint8") -> np.ndarray:
    low, high = U8[dtype]
    return RNG.integers(low, high + 1, shape).astype(dtype)


def step(value: float = 0.05) -> np.ndarray:
    return np.array(value, "float32")


def zero(value: int = 120, dtype: str = "uint8") -> np.ndarray:
    return np.array(value, dtype)


def i32(values: Any) -> np.ndarray:
    return np.array(values, "int32")


def given(
    operator: str, *inputs: Any, outputs: Any = 1, constants: Any = (), domain: str = "com.microsoft", **attributes: Any
) -> Any:
    """(model, arrays): a node on arrays, of which None is left out; some are constants. Outputs: how many, or which."""
    names = [f"x{index}" if array is not None else "" for index, array in enumerate(inputs)]
    arrays = {name: array for name, array in zip(names, inputs, strict=True) if name}
    made = [f"y{index}" for index in range(outputs)] if isinstance(outputs, int) else outputs.split(",")
    node = helper.make_node(operator, names, made, domain=domain, **attributes)
    fixed = [f"x{index}" for index in constants]

    def info(name: str, array: np.ndarray) -> Any:
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)

    graph = helper.make_graph(
        [node],
        operator,
        [info(name, array) for name, array in arrays.items() if name not in fixed],
        [helper.make_empty_tensor_value_info(name) for name in made if name],
        [numpy_helper.from_array(arrays[name], name) for name in fixed],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10), {
        name: array for name, array in arrays.items() if name not in fixed
    }


def hidden(batch: int, length: int, size: int = 16) -> np.ndarray:
    return real(batch, length, size)


def tables(places: int = 32, half: int = 4) -> tuple[np.ndarray, np.ndarray]:
    angles = np.outer(np.arange(places), 1 / 100 ** (np.arange(half) / half))
    return np.cos(angles).astype("float32"), np.sin(angles).astype("float32")


def cases() -> dict[str, Any]:
    cos, sin = tables()
    ones = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], "int32")
    x8, s, z = whole(2, 6), step(), zero()
    return {
        "gelu": given("Gelu", real(2, 5)),
        "fast gelu": given("FastGelu", real(2, 5)),
        "fast gelu, bias": given("FastGelu", real(2, 5), real(5)),
        "bias gelu": given("BiasGelu", real(2, 5), real(5)),
        "quick gelu": given("QuickGelu", real(2, 5), alpha=1.7),
        "matmul": given("FusedMatMul", real(3, 4, 5), real(3, 6, 5), alpha=0.5, transB=1),
        "matmul, both": given("FusedMatMul", real(3, 5, 4), real(3, 6, 5), transA=1, transB=1),
        "matmul, batch": given("FusedMatMul", real(4, 3, 5), real(3, 5, 6), transBatchA=1),
        "gemm": given(
            "FusedGemm",
            real(3, 4),
            real(5, 4),
            real(5),
            transB=1,
            alpha=0.5,
            beta=2.0,
            activation="LeakyRelu",
            activation_alpha=0.1,
        ),
        "conv": given("FusedConv", real(1, 3, 6, 6), real(4, 3, 3, 3), real(4), activation="Relu", kernel_shape=[3, 3]),
        "conv, sum": given(
            "FusedConv",
            real(1, 3, 6, 6),
            real(4, 3, 3, 3),
            real(4),
            real(1, 4, 4, 4),
            activation="Relu",
            kernel_shape=[3, 3],
        ),
        "skip norm": given(
            "SkipLayerNormalization", hidden(2, 5), hidden(2, 5), real(16), real(16), real(16), epsilon=1e-5
        ),
        "skip norm, sum": given(
            "SkipLayerNormalization", hidden(2, 5), hidden(2, 5), real(16), real(16), None, outputs="y,,,sum"
        ),
        "skip rms": given(
            "SkipSimplifiedLayerNormalization", hidden(2, 5), hidden(2, 5), real(16), real(16), epsilon=1e-5
        ),
        "rms": given("SimplifiedLayerNormalization", hidden(2, 5), real(16), domain="", axis=-1, epsilon=1e-5),
        "rms of halves": given(
            "SimplifiedLayerNormalization",
            (hidden(2, 5) * 400).astype("float16"),
            real(16).astype("float16"),
            domain="",
            axis=-1,
            epsilon=1e-5,
        ),
        "embedding": given(
            "EmbedLayerNormalization",
            RNG.integers(0, 9, (2, 5)).astype("int32"),
            RNG.integers(0, 2, (2, 5)).astype("int32"),
            real(9, 16),
            real(7, 16),
            real(2, 16),
            real(16),
            real(16),
            ones,
            outputs=2,
            epsilon=1e-5,
        ),
        "bits 4": given(
            "MatMulNBits", real(3, 32), whole(5, 2, 8), real(10), whole(5), K=32, N=5, bits=4, block_size=16
        ),
        "bits 4, no zero": given(
            "MatMulNBits", real(2, 3, 40), whole(5, 3, 8), real(15), K=40, N=5, bits=4, block_size=16, constants=(1,)
        ),
        "bits 8": given("MatMulNBits", real(3, 32), whole(5, 2, 16), real(10), K=32, N=5, bits=8, block_size=16),
        "bits 4, constant": given(
            "MatMulNBits",
            real(3, 64),
            whole(7, 2, 16),
            real(14),
            whole(7),
            K=64,
            N=7,
            bits=4,
            block_size=32,
            constants=(1, 2, 3),
        ),
        "bits 8, integers": given(
            "MatMulNBits",
            real(3, 64),
            whole(7, 2, 32),
            real(14),
            whole(14),
            K=64,
            N=7,
            bits=8,
            block_size=32,
            accuracy_level=4,
            constants=(1, 2, 3),
        ),
        "add": given("QLinearAdd", x8, s, z, whole(6), step(0.03), zero(100), step(0.1), zero(128)),
        "add, signed": given(
            "QLinearAdd",
            whole(2, 6, dtype="int8"),
            s,
            zero(3, "int8"),
            whole(6, dtype="int8"),
            step(0.03),
            zero(-4, "int8"),
            step(0.1),
            zero(0, "int8"),
        ),
        "mul": given("QLinearMul", x8, s, z, whole(6), step(0.03), zero(100), step(0.2), zero(128)),
        "sigmoid": given("QLinearSigmoid", x8, s, z, step(1 / 256), zero(0), constants=(1, 2, 3, 4)),
        "leaky": given("QLinearLeakyRelu", x8, s, z, s, z, alpha=0.2, constants=(1, 2, 3, 4)),
        "softmax": given("QLinearSoftmax", x8, s, z, step(1 / 256), zero(0), axis=-1, opset=13, constants=(1, 2, 3, 4)),
        "pool": given(
            "QLinearAveragePool", whole(1, 3, 6, 6), s, z, step(0.04), z, kernel_shape=[2, 2], strides=[2, 2]
        ),
        "pool, last": given(
            "QLinearAveragePool", whole(1, 6, 6, 3), s, z, step(0.04), z, kernel_shape=[2, 2], channels_last=1
        ),
        "global": given("QLinearGlobalAveragePool", whole(1, 3, 6, 6), s, z, step(0.02), z, channels_last=0),
        "concat": given(
            "QLinearConcat",
            step(0.06),
            z,
            x8,
            s,
            z,
            whole(2, 3),
            step(0.02),
            zero(7),
            axis=1,
            constants=(0, 1, 3, 4, 6, 7),
        ),
        "qgemm": given(
            "QGemm",
            whole(3, 8),
            step(0.02),
            zero(9),
            whole(8, 4),
            step(0.03),
            zero(100),
            RNG.integers(-99, 99, 4).astype("int32"),
            step(0.3),
            zero(128),
            constants=range(1, 9),
        ),
        "qgemm, real": given(
            "QGemm",
            whole(3, 8),
            step(0.02),
            zero(9),
            whole(4, 8),
            step(0.03),
            zero(100),
            None,
            None,
            None,
            transB=1,
            alpha=2.0,
        ),
        "integer": given(
            "MatMulIntegerToFloat", whole(3, 8), whole(8, 4), step(0.02), step(0.03), zero(9), zero(100), real(4)
        ),
        "dynamic": given("DynamicQuantizeMatMul", real(3, 8), whole(8, 4), step(0.03), zero(100), real(4)),
        "attention": given("Attention", hidden(2, 5), real(16, 48), real(48), num_heads=2),
        "attention, mask": given("Attention", hidden(2, 5), real(16, 48), real(48), ones, num_heads=4),
        "attention, lengths": given("Attention", hidden(2, 5), real(16, 48), real(48), i32([3, 5]), num_heads=4),
        "attention, causal": given("Attention", hidden(2, 5), real(16, 48), real(48), num_heads=2, unidirectional=1),
        "attention, past": given(
            "Attention",
            hidden(2, 1),
            real(16, 48),
            real(48),
            None,
            real(2, 2, 2, 3, 8),
            num_heads=2,
            unidirectional=1,
            outputs=2,
        ),
        "multi": given("MultiHeadAttention", hidden(2, 5), hidden(2, 7), hidden(2, 7), num_heads=2),
        "multi, bias": given(
            "MultiHeadAttention", hidden(2, 5), hidden(2, 5), hidden(2, 5), real(48), num_heads=2, scale=0.3
        ),
        "multi, mask": given("MultiHeadAttention", hidden(2, 5), hidden(2, 5), hidden(2, 5), None, ones, num_heads=2),
        "multi, scores": given(
            "MultiHeadAttention", hidden(2, 5), hidden(2, 5), hidden(2, 5), None, None, real(2, 2, 5, 5), num_heads=2
        ),
        "multi, past": given(
            "MultiHeadAttention",
            hidden(2, 1),
            hidden(2, 1),
            hidden(2, 1),
            None,
            None,
            None,
            real(2, 2, 4, 8),
            real(2, 2, 4, 8),
            num_heads=2,
            outputs=3,
        ),
        "rotary": given("RotaryEmbedding", real(2, 5, 16), np.arange(10).reshape(2, 5), cos, sin),
        "rotary, offset": given("RotaryEmbedding", real(2, 2, 5, 8), np.array([3]), cos, sin, interleaved=1),
        "rotary, part": given(
            "RotaryEmbedding",
            real(2, 5, 24),
            np.arange(10).reshape(2, 5),
            cos[:, :2],
            sin[:, :2],
            num_heads=3,
            rotary_embedding_dim=4,
        ),
        "groups, first": given(
            "GroupQueryAttention",
            real(2, 5, 32),
            real(2, 5, 16),
            real(2, 5, 16),
            real(2, 2, 0, 8),
            real(2, 2, 0, 8),
            i32([4, 4]),
            i32(5),
            num_heads=4,
            kv_num_heads=2,
            outputs=3,
        ),
        "groups, rotary": given(
            "GroupQueryAttention",
            real(2, 5, 64),
            real(2, 5, 32),
            real(2, 5, 32),
            real(2, 2, 0, 16),
            real(2, 2, 0, 16),
            i32([4, 4]),
            i32(5),
            *tables(32, 8),
            num_heads=4,
            kv_num_heads=2,
            do_rotary=1,
            outputs=3,
        ),
        "groups, next": given(
            "GroupQueryAttention",
            real(2, 1, 64),
            real(2, 1, 32),
            real(2, 1, 32),
            real(2, 2, 6, 16),
            real(2, 2, 6, 16),
            i32([6, 6]),
            i32(7),
            *tables(32, 8),
            num_heads=4,
            kv_num_heads=2,
            do_rotary=1,
            outputs=3,
        ),
        "groups, rows": given(
            "GroupQueryAttention",
            real(2, 1, 64),
            real(2, 1, 32),
            real(2, 1, 32),
            real(2, 2, 6, 16),
            real(2, 2, 6, 16),
            i32([3, 6]),
            i32(7),
            *tables(32, 8),
            num_heads=4,
            kv_num_heads=2,
            do_rotary=1,
            rotary_interleaved=1,
            outputs="y,key,value",
        ),
        "groups, room": given(
            "GroupQueryAttention",
            real(1, 1, 64),
            real(1, 1, 32),
            real(1, 1, 32),
            real(1, 2, 9, 16),
            real(1, 2, 9, 16),
            i32([4]),
            i32(5),
            num_heads=4,
            kv_num_heads=2,
            outputs="y,key,value",
        ),
        "groups, window": given(
            "GroupQueryAttention",
            real(1, 6, 32),
            real(1, 6, 16),
            real(1, 6, 16),
            real(1, 2, 0, 8),
            real(1, 2, 0, 8),
            i32([5]),
            i32(6),
            num_heads=4,
            kv_num_heads=2,
            local_window_size=3,
            outputs=3,
        ),
        "groups, packed": given(
            "GroupQueryAttention",
            real(2, 5, 64),
            None,
            None,
            real(2, 2, 0, 8),
            real(2, 2, 0, 8),
            i32([4, 4]),
            i32(5),
            num_heads=4,
            kv_num_heads=2,
            outputs=3,
        ),
        "expand": given("ExpandDims", real(2, 3), i32(1), constants=(1,)),
        "trilu": given("Trilu", real(3, 4), upper=0),
        "pad": given("Pad", real(2, 3), np.array([0, 1, 1, 0]), step(0.5), mode="constant", constants=(1,)),
        "quantize": given("QuantizeLinear", real(2, 5), step(), zero()),
        "dequantize": given("DequantizeLinear", x8, s, z),
    }


ALL = cases()


@pytest.mark.parametrize("name", list(ALL))
def test_an_operator_of_onnxruntime_is_native_and_equal_to_it(name: str) -> None:
    model, arrays = ALL[name]
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    wanted = runtime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"]).run(None, arrays)
    module = weft.frontend.onnx.load(model)
    assert not import_report(module).fallbacks, import_report(module).fallbacks[0].why
    found = weft.compile(module)["main"](*arrays.values())
    found = found if isinstance(found, tuple) else (found,)
    if name in ("groups, rows", "groups, room"):  # what lies behind the end of a row of a cache is anything
        found, wanted = found[:1], wanted[:1]
    for a, b in zip(found, wanted, strict=True):
        assert a.dtype == b.dtype
        if b.dtype.kind in "iu":
            assert np.abs(a.astype("int64") - b.astype("int64")).max() <= 1  # ties after products in other orders
        else:
            np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-4)


def test_packed_heads_are_those_that_come_apart() -> None:
    packed = real(2, 5, 2, 3, 8)
    parts = [np.ascontiguousarray(packed[:, :, :, part]).reshape(2, 5, 16) for part in range(3)]
    model, arrays = given("MultiHeadAttention", packed, num_heads=2)
    apart, values = given("MultiHeadAttention", *parts, num_heads=2)
    whole = weft.compile(weft.frontend.onnx.load(model))["main"](*arrays.values())
    other = weft.compile(weft.frontend.onnx.load(apart))["main"](*values.values())
    np.testing.assert_allclose(whole, other, rtol=1e-5, atol=1e-6)


def test_weights_of_few_bits_are_converted_in_the_tiles_of_their_product() -> None:
    """Matrices that would be of some size in floats; smaller ones are folded."""
    for level, form in ((0, "form=float"), (4, "grouped-gemm")):
        model, _ = given(
            "MatMulNBits",
            real(3, 128),
            whole(160, 4, 16),
            real(640),
            K=128,
            N=160,
            bits=4,
            block_size=32,
            accuracy_level=level,
            constants=(1, 2),
        )
        module = weft.frontend.onnx.load(model)
        assert ("R.quantize_dynamic" in module.script()) == (level == 4)
        assert form in str(weft.compile(module).explain())
