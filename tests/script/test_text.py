# ruff: noqa: E501  (scripts inside strings)
"""What a text holds survives: every literal, data beside the text, attributes, devices; old texts stay readable."""

from __future__ import annotations

import hashlib
import json
import math
import struct
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import weft
from weft import dtypes
from weft.ir import Buffer, Constant, Function, IRModule, PrimFunc, PrimVar, SeqExpr, Var
from weft.ir.deduction.infer import TypeContext, infer_type
from weft.ir.node import FrozenMap, Node
from weft.ir.tensor import BufferStore, FloatImm, IntImm
from weft.script import parse, script_of
from weft.script.source.blobs import BlobFolder

DTYPES = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "bfloat16",
    "float8_e4m3fn",
    "float8_e5m2",
    "int4",
    "uint4",
]
FROZEN = Path(__file__).parent / "frozen"


def again(node: Any, **options: Any) -> Any:
    text = script_of(node)
    back = parse(text, **options)
    weft.assert_structural_equal(back, node)
    assert script_of(back) == text
    return back


def constant_function(constant: Constant) -> Function:
    return Function((), SeqExpr((), constant), infer_type(constant, TypeContext({})), name="main")


def stored(dtype: str, raw: bytes, count: int) -> np.ndarray:
    """`count` elements of a dtype from random bytes, within what the dtype stores."""
    storage = dtypes.storage(dtype)
    bits = (raw * (count * storage.itemsize // max(1, len(raw)) + 1))[: count * storage.itemsize]
    data = np.frombuffer(bits, storage).copy()
    if dtype == "bool":
        return data.view("uint8") % 2 == 1
    if dtype in ("int4", "uint4"):
        low = -8 if dtype == "int4" else 0
        return (data.astype("int64") % 16 + low).astype(storage)
    return data


@pytest.mark.parametrize("dtype", DTYPES)
@given(raw=st.binary(min_size=1, max_size=64), shape=st.sampled_from([(), (1,), (0, 3), (2, 3), (17, 17)]))
@settings(max_examples=30, deadline=None)
def test_array_constants_keep_their_bits(dtype: str, raw: bytes, shape: tuple[int, ...]) -> None:
    data = stored(dtype, raw, math.prod(shape)).reshape(shape)
    constant = Constant(data, dtype)
    back = again(constant_function(constant)).body.body
    assert back.dtype == dtype
    assert back.data.tobytes() == data.tobytes()
    assert back.data.shape == shape


@given(st.integers(0, 2**64 - 1))
@settings(max_examples=200, deadline=None)
def test_floats_in_kernels_and_attributes_keep_their_bits(bits: int) -> None:
    value = struct.unpack("<d", struct.pack("<Q", bits))[0]
    buffer = Buffer("A", (1,), "float64")
    store = BufferStore(buffer, FloatImm(value, "float64"), (IntImm(0),))
    made = PrimFunc((buffer,), store, attrs=FrozenMap({"value": value}), name="f")
    back = again(made)
    for found in (back.body.value.value, back.attrs["value"]):
        assert struct.pack("<d", found) == struct.pack("<d", value)


FLOATS = [
    0.0,
    -0.0,
    0.1,
    1 / 3,
    1e-45,
    1.17549435e-38,
    5e-324,
    1.7976931348623157e308,
    1e22,
    123456789.0,
    math.inf,
    -math.inf,
]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_floats_are_written_shortest(dtype: str) -> None:
    values = [value for value in FLOATS if dtype == "float64" or not math.isfinite(value) or abs(value) < 6e4]
    constant = Constant(
        np.array(values, "float64") if dtype == "float64" else np.array(values, "float32"),
        "float64" if dtype == "float64" else "float32",
    )
    text = script_of(constant_function(constant))
    assert "0.1, " in text
    assert "-0.0, " in text
    assert 'float("-inf")' in text
    again(constant_function(constant))
    if dtype in ("float16", "bfloat16"):
        small = parse(f'@R.function\ndef main():\n    return R.const([0.1, -0.0, float("inf"), 1.5], "{dtype}")\n')
        assert "bits" not in script_of(small)
        assert '-0.0, float("inf"), 1.5]' in script_of(small)
        again(small)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**400), 2**400) | st.floats() | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=8), JSON, max_size=4))
@settings(max_examples=150, deadline=None)
def test_attributes_of_any_json_like_value_survive(attrs: dict[str, Any]) -> None:
    module = IRModule(FrozenMap({}), FrozenMap(attrs), name="M")
    again(module)
    function = parse('@R.function\ndef main(x: R.Tensor((2,), "float32")):\n    return x\n')
    again(weft.ir.node.replace(function, attrs=FrozenMap(attrs)))  # type: ignore[type-var]


@given(st.text(st.characters(codec="utf-8"), max_size=40))
@settings(max_examples=150, deadline=None)
def test_strings_with_any_character_survive(text: str) -> None:
    call = f"R.call_pure_packed({('f' + text)!r}, R.str({text!r}), ty_args=R.Any)"
    made = parse(f"@R.function\ndef main():\n    return {call}\n")
    assert again(made).body.blocks[0].bindings[0].value.args[1].value == text


@pytest.mark.parametrize("value", [0, -1, 2**31, -(2**63), 2**63 - 1, 10**18])
def test_integers_survive(value: int) -> None:
    made = parse(
        f"@R.function\ndef main(x: R.Tensor((2,), 'int64')):\n    y = R.prim_value({value})\n    return R.add(x, R.const({value}, 'int64'))\n"
    )
    again(made)
    again(parse(f"@T.prim_func\ndef f(A: T.Buffer((2,), 'int64')):\n    A[0] = T.int64({value})\n"))


NODES = {
    "nested tuples": '@R.function\ndef main(x: R.Tensor((2,), "int8")):\n    t = ((x, (x,)), (), R.const(1, "int8"))\n    return (t, t[0][1], ((),))\n',
    "nested tuple types": '@R.function\ndef main(x: R.Tuple(R.Tuple(), R.Tuple(R.Tensor((2,), "int8"), R.Tuple(R.Any, R.Shape(ndim=2))))) -> R.Tuple(R.Tuple(), R.Tuple(R.Tensor((2,), "int8"), R.Tuple(R.Any, R.Shape(ndim=2)))):\n    return x\n',
    "devices": '@I.ir_module\nclass M:\n    I.module_global_infos({"vdevice": [I.vdevice("llvm", 0, "global"), I.vdevice({"kind": "c", "mcpu": "cortex-m7"}, 1, "shared")], "mesh": [I.dummy_global_info()]})\n\n    @R.function\n    def main(x: R.Tensor((2,), "float32", vdevice="vdevice:0")):\n        y = R.to_vdevice(x, "vdevice:1")\n        return y\n',
    "targets": '@I.ir_module\nclass M:\n    I.module_attrs({"target": I.target("llvm"), "deep": {"a": [1, None, {"b": True}], "dim": I.dim("2 * n")}})\n\n    @R.function\n    def main():\n        R.func_attr({"shape": [1, 2], "ty": "x"})\n        return R.const(1)\n',
}


@pytest.mark.parametrize("name", NODES)
def test_structured_values_survive(name: str) -> None:
    again(parse(NODES[name]))


# ---------------------------------------------------------------------------------------------------------------------
# Data beside the text
# ---------------------------------------------------------------------------------------------------------------------

BIG = np.arange(1000, dtype="float32").reshape(10, 100)


def big_module() -> IRModule:
    data = {"sha256:" + hashlib.sha256(BIG.tobytes()).hexdigest(): BIG}
    made = parse(
        "@I.ir_module\nclass M:\n    @R.function\n    def main(x: R.Tensor((10, 100), 'float32')):\n"
        f"        y = R.add(x, R.const({next(iter(data))!r}, 'float32', shape=(10, 100)))\n        return R.add(y, R.const(2.0, 'float32'))\n",
        blobs=data,
    )
    assert isinstance(made, IRModule)
    return made


def test_large_constants_go_beside_the_text_by_their_hash(tmp_path: Path) -> None:
    module = big_module()
    inline = module.script()
    assert "base64:" in inline
    weft.assert_structural_equal(parse(inline), module)
    for blobs in ({}, tmp_path / "data", str(tmp_path / "more")):
        text = module.script(blobs=blobs)
        assert "sha256:" in text
        assert "base64:" not in text
        assert len(text) < 1000
        weft.assert_structural_equal(parse(text, blobs=blobs), module)
    files = list((tmp_path / "data").iterdir())
    assert [path.name for path in files] == [hashlib.sha256(BIG.tobytes()).hexdigest()]
    assert files[0].read_bytes() == BIG.tobytes()


def test_a_missing_or_damaged_blob_is_an_error_at_its_constant(tmp_path: Path) -> None:
    text = big_module().script(blobs=tmp_path)
    (path,) = tmp_path.iterdir()
    line = next(number for number, content in enumerate(text.split("\n"), 1) if "sha256" in content)
    column = text.split("\n")[line - 1].index("R.const") + 1

    def failure(blobs: Any) -> weft.WeftError:
        with pytest.raises(weft.ScriptError) as caught:
            parse(text, blobs=blobs)
        span = caught.value.span
        assert span is not None
        assert (caught.value.code, span.line, span.column) == ("W151", line, column)
        return caught.value

    assert "was given" in failure(None).message
    assert "was given" in failure({}).message
    path.write_bytes(path.read_bytes()[:-1] + b"\1")
    assert "is damaged" in failure(tmp_path).message
    path.unlink()
    assert "was given" in failure(tmp_path).message


def test_a_text_cannot_name_other_files(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"1234")
    folder = tmp_path / "data"
    folder.mkdir()
    for name in ("../secret", "/etc/hostname", "..", "", "A" * 64):
        with pytest.raises(weft.ScriptError) as caught:
            parse(f"@R.function\ndef main():\n    return R.const('sha256:{name}', 'int8', shape=(4,))\n", blobs=folder)
        assert caught.value.code == "W151"
    blobs = BlobFolder(folder)
    with pytest.raises(KeyError):
        blobs["sha256:../secret"] = b""
    assert list(blobs) == []


def test_blobs_of_another_kind_are_refused() -> None:
    with pytest.raises(weft.ScriptError, match="blobs is a mapping or a folder"):
        parse("@R.function\ndef main():\n    return R.const(1)\n", blobs=3)  # type: ignore[arg-type]


# ---------------------------------------------------------------------------------------------------------------------
# Versions
# ---------------------------------------------------------------------------------------------------------------------


def digest(node: Any) -> str:
    """A hash of what a node says in the fields that nodes had when the corpus was frozen."""
    fields: dict[str, list[str]] = json.loads((FROZEN / "fields.json").read_text())
    numbers: dict[int, int] = {}

    def facts(value: Any) -> Any:
        if isinstance(value, (Var, PrimVar, Buffer)) and id(value) in numbers:
            return numbers[id(value)]
        if isinstance(value, Node):
            if isinstance(value, (Var, PrimVar, Buffer)):
                numbers[id(value)] = len(numbers)
            return [type(value).__name__, *(facts(getattr(value, name)) for name in fields[type(value).__name__])]
        if isinstance(value, tuple):
            return [facts(item) for item in value]
        if isinstance(value, FrozenMap):
            return {key: facts(value[key]) for key in sorted(value)}
        if isinstance(value, np.ndarray):
            return [str(value.dtype), list(value.shape), value.tobytes().hex()]
        return value.hex() if isinstance(value, float) else repr(value) if isinstance(value, (int, str)) else str(value)

    return hashlib.sha256(json.dumps(facts(node)).encode()).hexdigest()


def test_the_first_line_carries_the_version() -> None:
    text = script_of(parse("@R.function\ndef main():\n    return R.const(1)\n"))
    assert text.split("\n")[0] == "# weft-script 1"
    for version in ("0", "2", "99", "x"):
        with pytest.raises(weft.ScriptError, match="this weft reads version 1") as caught:
            parse(text.replace("weft-script 1", f"weft-script {version}"))
        assert caught.value.code == "W104"
    parse(text.replace("# weft-script 1\n", ""))


def test_the_frozen_corpus_is_large() -> None:
    assert len(list(FROZEN.glob("*.weft"))) >= 20


@pytest.mark.parametrize("path", sorted(FROZEN.glob("*.weft")), ids=lambda path: path.stem)
def test_texts_of_version_1_stay_readable(path: Path) -> None:
    """The files are never edited: a text that was printed once must mean the same for ever."""
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# weft-script 1\n")
    expected = json.loads((FROZEN / "hashes.json").read_text())[path.stem]
    assert hashlib.sha256(text.encode()).hexdigest() == expected["text"], "a frozen text was edited"
    node = parse(text, blobs=FROZEN / "blobs")
    assert digest(node) == expected["structure"]
    weft.assert_structural_equal(parse(node.script()), node)
