"""Arrays mapped from safetensors files, and headers that claim what is not so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import weft
from weft.frontend import safetensors


def written(path: Path, header: Any, data: bytes = b"", length: int | None = None) -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes((len(text) if length is None else length).to_bytes(8, "little") + text + data)
    return path


def entry(shape: Any = (2,), offsets: Any = (0, 8), dtype: Any = "F32", **more: Any) -> dict[str, Any]:
    shapes = list(shape) if isinstance(shape, tuple) else shape
    return {"dtype": dtype, "shape": shapes, "data_offsets": list(offsets), **more}


def test_arrays_are_read_only_views_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    given = {
        "a": np.arange(6, dtype="float32").reshape(2, 3),
        "b": np.ones(4, ml_dtypes.bfloat16),
        "e": np.zeros((0, 3)),
        "s": np.array(7),
        "c": np.array([True, False]),
    }
    safetensors.save(path, given, {"made": "here"})
    found = safetensors.load(path)
    assert list(found) == list(given)
    for name, array in given.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name].astype("float64"), array.astype("float64"))
    assert not found["a"].flags.writeable
    assert not found["a"].flags.owndata
    assert safetensors.metadata(path) == {"made": "here"}


def test_a_loaded_array_is_a_parameter_of_a_compiled_module(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    safetensors.save(path, {"w": np.full((4, 3), 2, "float32")})
    module = weft.parse(
        '@R.function\ndef main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 3), "float32")):\n'
        "    return R.matmul(x, w)\n"
    )
    exe = weft.compile(module, params=safetensors.load(path))
    assert (exe["main"](np.ones((2, 4), "float32")) == 8).all()


HOSTILE: dict[str, tuple[Any, bytes, int | None]] = {
    "nothing": (b"", b"", None),
    "a header longer than the file": ({"w": entry()}, bytes(8), 2**63),
    "no JSON": (b"{", b"", None),
    "a list": ([], b"", None),
    "nested too deep": (b"[" * 200000, b"", None),
    "two of one name": (b'{"w": 1, "w": 2}', b"", None),
    "another dtype": ({"w": entry(dtype="F1")}, bytes(8), None),
    "a dtype that is no text": ({"w": entry(dtype=["F32"])}, bytes(8), None),
    "a negative size": ({"w": entry((-2,))}, bytes(8), None),
    "a size that is no number": ({"w": entry((2.0,))}, bytes(8), None),
    "true for a size": ({"w": entry((True, 2))}, bytes(8), None),
    "gigantic sizes": ({"w": entry((2**62, 2**62))}, bytes(8), None),
    "a shape that is a text": ({"w": entry("22")}, bytes(8), None),
    "a place behind the end": ({"w": entry((2,), (8, 16))}, bytes(8), None),
    "a place backwards": ({"w": entry((2,), (8, 0))}, bytes(8), None),
    "three offsets": ({"w": entry((2,), (0, 8, 8))}, bytes(8), None),
    "fewer bytes than sizes": ({"w": entry((3,))}, bytes(8), None),
    "an overlap": ({"v": entry(), "w": entry((1,), (4, 8))}, bytes(8), None),
    "a gap": ({"w": entry((1,), (4, 8))}, bytes(8), None),
    "bytes of no array": ({"w": entry()}, bytes(9), None),
    "more keys": ({"w": entry(strides=[1])}, bytes(8), None),
}


@pytest.mark.parametrize("name", [name for name in HOSTILE if name != "nothing"])
def test_a_header_that_claims_what_is_not_so_is_refused(tmp_path: Path, name: str) -> None:
    header, data, length = HOSTILE[name]
    with pytest.raises(weft.ModelError) as caught:
        safetensors.load(written(tmp_path / "w.safetensors", header, data, length))
    assert caught.value.code == "W979"


def test_a_file_that_is_not_there_or_empty_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    for name in ("missing", "empty", "."):
        with pytest.raises(weft.ModelError):
            safetensors.load(tmp_path / name)


def test_an_index_leads_to_several_files(tmp_path: Path) -> None:
    safetensors.save(tmp_path / "one.safetensors", {"a": np.ones(2, "float32"), "b": np.array([1j, 2], "complex64")})
    safetensors.save(tmp_path / "two.safetensors", {"c": np.arange(3)})
    index = tmp_path / "model.safetensors.index.json"
    places = {"c": "two.safetensors", "a": "one.safetensors", "b": "one.safetensors"}
    index.write_text(json.dumps({"metadata": {"total_size": 48}, "weight_map": places}))
    found = safetensors.load(index)
    assert list(found) == ["c", "a", "b"]
    assert found["c"].tolist() == [0, 1, 2]
    assert found["b"].tolist() == [1j, 2]


@pytest.mark.parametrize(
    ("index", "told"),
    [
        ('{"weight_map": {"a": "../one.safetensors"}}', "no safetensors file beside the index"),
        ('{"weight_map": {"a": "/etc/passwd"}}', "no safetensors file beside the index"),
        ('{"weight_map": {"x": "one.safetensors"}}', "one.safetensors has no array 'x'"),
        ('{"weight_map": {"x": "none.safetensors"}}', "No such file"),
        ('{"weight_map": ["a"]}', "no weight_map"),
        ("[" * 100_000, "no JSON"),
    ],
)
def test_an_index_that_leads_nowhere_is_refused(tmp_path: Path, index: str, told: str) -> None:
    safetensors.save(tmp_path / "one.safetensors", {"a": np.ones(2, "float32")})
    (tmp_path / "index.json").write_text(index)
    with pytest.raises(weft.ModelError, match=f"W979.*{told}"):
        safetensors.load(tmp_path / "index.json")


def test_sizes_that_no_array_has_are_refused_also_where_one_is_0(tmp_path: Path) -> None:
    path = written(tmp_path / "w.safetensors", {"a": entry((2**62, 2**62, 0), (0, 0))})
    with pytest.raises(weft.ModelError, match=r"W979.*too many"):
        safetensors.load(path)


def test_a_dtype_that_is_not_known_is_named(tmp_path: Path) -> None:
    path = written(tmp_path / "w.safetensors", {"a": entry((4,), (0, 2), "F4")}, bytes(2))
    with pytest.raises(weft.ModelError, match=r"W979.*'a' is of 'F4'"):
        safetensors.load(path)
