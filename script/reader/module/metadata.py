"""Constants that other printers keep in a section of their own, before the units that name them.

    section  ::= metadata = tvm.ir.load_json("...")          (also tvm.ffi.load_json and the like)
    use      ::= metadata["relax.expr.Constant"][0]

The JSON is a graph of numbered nodes, in one of two forms: `root_index` with nodes of `type` and `data`, or `root` with
nodes of `type_key`, `keys`, `data` and `attrs` and the arrays in `b64ndarrays`. Only arrays are taken from it; an array
is base64 of: magic, reserved (8 bytes each), device kind and number, rank (4 each), dtype (code, bits: 1 each; lanes:
2), shape (8 each), size (8), elements.
"""

from __future__ import annotations

import ast
import base64
import binascii
import json
import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.errors import WeftError
from weft.ir.graph import Constant
from weft.script.source.diagnostics import fail
from weft.script.source.text import Unit
from weft.support.dlpack import CODES

__all__ = ["declare_metadata"]

_MAGIC = 0xDD5E40F096B4A13F
_KINDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 6: "bool"}


def declare_metadata(unit: Unit, tree: ast.stmt) -> bool:
    """Note the constants of a metadata section, if the statement is one; ScriptError W152 where it is damaged."""
    if not (isinstance(tree, ast.Assign) and len(tree.targets) == 1 and isinstance(tree.targets[0], ast.Name)):
        return False
    call = tree.value
    called = call.func if isinstance(call, ast.Call) else None
    if not (isinstance(called, ast.Attribute) and called.attr == "load_json" and isinstance(call, ast.Call)):
        return False
    text = call.args[0].value if len(call.args) == 1 and isinstance(call.args[0], ast.Constant) else None
    if not isinstance(text, str) or call.keywords:
        raise fail("W152", "load_json takes one string", unit.span(call))
    try:
        unit.constants[tree.targets[0].id] = _constants(json.loads(text))
    except WeftError as error:
        raise error.at(unit.span(call)) from None
    except RecursionError:
        raise fail("W103", "the metadata is nested too deeply to read", unit.span(call)) from None
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, struct.error) as error:
        raise fail("W152", f"the metadata cannot be read: {error}", unit.span(call)) from None
    return True


def _constants(data: Any) -> dict[str, list[Any]]:
    """Arrays by the name of their kind; None in the place of anything else."""
    if "root_index" in data:
        return _newer(data)
    nodes, arrays = data["nodes"], data["b64ndarrays"]
    root = nodes[data["root"]]
    found: dict[str, list[Any]] = {}
    for key, index in zip(root["keys"], root["data"], strict=True):
        found[key] = [_older_array(nodes[item], arrays) for item in nodes[index]["data"]]
    return found


def _older_array(node: Mapping[str, Any], arrays: Sequence[str]) -> Constant | None:
    place = node.get("attrs", {}).get("data")
    return _array(arrays[int(place)]) if place is not None and node["type_key"].endswith("Constant") else None


def _newer(data: Any) -> dict[str, list[Any]]:
    nodes = data["nodes"]
    pairs = nodes[data["root_index"]]["data"]
    found: dict[str, list[Any]] = {}
    for key, index in zip(pairs[::2], pairs[1::2], strict=True):
        found[nodes[key]["data"]] = [_newer_array(nodes[item], nodes) for item in nodes[index]["data"]]
    return found


def _newer_array(node: Mapping[str, Any], nodes: Sequence[Any]) -> Constant | None:
    fields = node.get("data")
    place = fields.get("value", fields.get("data")) if isinstance(fields, Mapping) else None
    held = nodes[place] if isinstance(place, int) else None
    return _array(held["data"]) if held is not None and held.get("type") in ("ffi.Tensor", "ffi.NDArray") else None


def _array(text: str) -> Constant:
    """The array that a string holds."""
    try:
        raw = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None
    magic, _, _, _, rank = struct.unpack_from("<QQiii", raw)
    if magic != _MAGIC or not 0 <= rank <= 64:
        raise ValueError("an array does not begin as one")
    code, bits, lanes = struct.unpack_from("<BBH", raw, 28)
    shape = struct.unpack_from(f"<{rank}q", raw, 32)
    (size,) = struct.unpack_from("<q", raw, 32 + 8 * rank)
    dtype = _dtype(code, bits, lanes)
    holds = dtypes.storage(dtype)
    start = 40 + 8 * rank
    if min(shape, default=0) < 0 or size != math.prod(shape) * holds.itemsize or len(raw) != start + size:
        raise ValueError(f"an array of shape {shape} and {dtype} does not have {len(raw) - start} bytes")
    return Constant(np.frombuffer(raw, holds, offset=start).reshape(shape), dtype)


def _dtype(code: int, bits: int, lanes: int) -> str:
    if code in CODES and code not in _KINDS and lanes == 1:
        return CODES[code]
    kind = _KINDS.get(code)
    if kind is None or lanes != 1 or (bits < 8 and (kind, bits) != ("uint", 1)):
        raise ValueError(f"an array of dtype code {code}, {bits} bits, {lanes} lanes is not read")
    if kind == "bool" or bits == 1:
        return "bool"
    return dtypes.check_dtype(f"{kind}{bits}")
