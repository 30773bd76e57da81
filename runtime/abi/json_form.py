"""The JSON form of sizes, types, signatures and sites; reading it accepts nothing that writing it cannot give.

    signature ::= {name, kind, symbol, params: [{name, type, span}], result: type | [], span, private}
    type      ::= ["tensor", dtype | null, dims | null, rank, use?]  rank -1 is unknown; use: copied | written
                | ["buffer", dtype, dims, strides | null, written]   a tensor-level parameter
                | ["shape", dims | null, rank] | ["prim", dtype, dim | null, "size"?]
                | ["tuple", type*] | ["string"] | ["function"] | ["object"]
    argument  ::= type | ["buffer", dtype, rank] | ["string", text] | ["prim", dtype]
    dim       ::= int | name | [text, tree] | null                   null: any size
    tree      ::= int | name | [operation, tree*]                    add mul floordiv mod min max pow
    site      ::= {kind, args: [argument], result: type | [], ...}   the rest is data already

Errors: ValueError for anything else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from weft.runtime.abi import types as abi
from weft.runtime.abi.dims import OPERATIONS, Dim, Expression, Operation, Tree
from weft.runtime.abi.scalars import DTYPE_CODES

__all__ = [
    "argument_from_json",
    "dim_from_json",
    "dim_to_json",
    "parameter_from_json",
    "parameter_to_json",
    "signature_from_json",
    "signature_to_json",
    "site_from_json",
    "site_to_json",
    "type_from_json",
    "type_to_json",
]

_MOST = 1 << 62
_MOST_SIZES = 64
_PAIRS = ("floordiv", "mod", "pow")


def _expect(right: bool, what: str, value: object) -> None:
    if not right:
        raise ValueError(f"{str(value)[:60]} is no {what}")


# Sizes.


def dim_to_json(dim: Dim) -> Any:
    """A size as JSON."""
    return [dim.text, _tree_to_json(dim.tree)] if isinstance(dim, Expression) else dim


def _tree_to_json(tree: Tree) -> Any:
    return [tree.name, *map(_tree_to_json, tree.operands)] if isinstance(tree, Operation) else tree


def dim_from_json(data: Any) -> Dim:
    """The size that JSON means.

    >>> dim_from_json(["n + 1", ["add", "n", 1]])
    Expression(text='n + 1', tree=Operation(name='add', operands=('n', 1)))
    """
    if isinstance(data, list):
        _expect(len(data) == 2 and isinstance(data[0], str), "size", data)
        return Expression(data[0], _tree_from_json(data[1]))
    return None if data is None else _leaf(data)


def _tree_from_json(data: Any) -> Tree:
    if not isinstance(data, list):
        return _leaf(data)
    _expect(len(data) > 1 and isinstance(data[0], str) and data[0] in OPERATIONS, "operation on sizes", data)
    _expect(len(data) == 3 or data[0] not in _PAIRS, "operation on two sizes", data)
    return Operation(data[0], tuple(map(_tree_from_json, data[1:])))


def _leaf(data: Any) -> int | str:
    _expect(isinstance(data, (int, str)) and not isinstance(data, bool), "size", data)
    return data


def _dims_to_json(dims: tuple[Dim, ...] | None) -> Any:
    return None if dims is None else [dim_to_json(dim) for dim in dims]


def _dims_from_json(data: Any) -> tuple[Dim, ...] | None:
    if data is None:
        return None
    _expect(isinstance(data, list), "shape", data)
    return tuple(map(dim_from_json, data))


# Types.


def type_to_json(ty: abi.Type | None) -> list[Any]:
    """A type as JSON; [] for None, which is no value."""
    return [] if ty is None else _WRITE[type(ty)](ty)


def type_from_json(data: Any) -> abi.Type | None:
    """The type that JSON means: the words of a call follow from it."""
    if data == []:
        return None
    _expect(isinstance(data, list) and isinstance(data[0], str) and data[0] in _READ, "type", data)
    return _READ[data[0]](data, *data[1:])


def argument_from_json(data: Any) -> abi.Type:
    """The type of what compiled code hands out."""
    if isinstance(data, list) and data[:1] == ["buffer"] and len(data) == 3:
        _expect(_is_dtype(data[1]) and _is_rank(data[2]), "buffer", data)
        return abi.StridedBuffer(data[1], data[2])
    if isinstance(data, list) and data[:1] == ["string"] and len(data) == 2:
        _expect(isinstance(data[1], str), "string", data)
        return abi.Text(data[1])
    if isinstance(data, list) and data[:1] == ["tuple"]:
        return abi.Tuple(tuple(map(argument_from_json, data[1:])))
    return _some(type_from_json(data), data)


def _some(ty: abi.Type | None, data: Any) -> abi.Type:
    if ty is None:
        raise ValueError(f"{data} is no type of a value")
    return ty


def _is_dtype(value: Any) -> bool:
    return isinstance(value, str) and value in DTYPE_CODES


def _is_rank(value: Any, low: int = 0) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= _MOST_SIZES


def _tensor(data: list[Any], dtype: Any = 0, dims: Any = 0, rank: Any = None, use: Any = "", *more: Any) -> abi.Tensor:
    _expect(not more and (dtype is None or _is_dtype(dtype)) and _is_rank(rank, -1), "tensor", data)
    _expect(use in ("copied", "written", "constant") or len(data) == 4, "tensor", data)
    read = _dims_from_json(dims)
    _expect(read is None or rank == len(read), "tensor of that rank", data)
    return abi.Tensor(dtype, read, rank, use)


def _buffer(
    data: list[Any], dtype: Any = 0, dims: Any = None, strides: Any = None, written: Any = None, *more: Any
) -> abi.Buffer:
    sizes, steps = _dims_from_json(dims), _dims_from_json(strides)
    _expect(not more and _is_dtype(dtype) and isinstance(written, bool), "buffer", data)
    if sizes is None or len(sizes) > _MOST_SIZES or (steps is not None and len(steps) != len(sizes)):
        raise ValueError(f"{str(data)[:60]} is no buffer")
    return abi.Buffer(dtype, sizes, steps, written)


def _shape(data: list[Any], dims: Any = 0, rank: Any = None, *more: Any) -> abi.Shape:
    read = _dims_from_json(dims)
    known = isinstance(rank, int) and not isinstance(rank, bool) and -1 <= rank < _MOST
    _expect(not more and known and (read is None or rank == len(read)), "shape", data)
    return abi.Shape(read, rank)


def _scalar(data: list[Any], dtype: Any = None, dim: Any = None, *more: Any) -> abi.Scalar:
    _expect(isinstance(dtype, str) and more in ((), ("size",)), "scalar", data)
    return abi.Scalar(dtype, dim_from_json(dim), more == ("size",))


def _tuple(data: list[Any], *fields: Any) -> abi.Tuple:
    return abi.Tuple(tuple(_some(type_from_json(field), field) for field in fields))


def _plain(make: Callable[[], abi.Type]) -> Callable[..., abi.Type]:
    def read(data: list[Any], *more: Any) -> abi.Type:
        _expect(not more, "type", data)
        return make()

    return read


_READ: Mapping[str, Callable[..., abi.Type]] = {
    "tensor": _tensor,
    "buffer": _buffer,
    "shape": _shape,
    "prim": _scalar,
    "tuple": _tuple,
    "string": _plain(abi.String),
    "function": _plain(abi.Function),
    "object": _plain(abi.Object),
}
_WRITE: Mapping[type, Callable[[Any], list[Any]]] = {
    abi.Tensor: lambda ty: ["tensor", ty.dtype, _dims_to_json(ty.dims), ty.rank, *([ty.use] if ty.use else [])],
    abi.Buffer: lambda ty: ["buffer", ty.dtype, _dims_to_json(ty.dims), _dims_to_json(ty.strides), ty.written],
    abi.Shape: lambda ty: ["shape", _dims_to_json(ty.dims), ty.rank],
    abi.Scalar: lambda ty: ["prim", ty.dtype, dim_to_json(ty.dim), *(["size"] if ty.is_size else [])],
    abi.Tuple: lambda ty: ["tuple", *map(type_to_json, ty.fields)],
    abi.String: lambda ty: ["string"],
    abi.Function: lambda ty: ["function"],
    abi.Object: lambda ty: ["object"],
    abi.StridedBuffer: lambda ty: ["buffer", ty.dtype, ty.rank],
    abi.Text: lambda ty: ["string", ty.text],
}


# Signatures and sites.


def parameter_to_json(parameter: abi.Parameter) -> dict[str, Any]:
    """A parameter as JSON."""
    return {"name": parameter.name, "type": type_to_json(parameter.type), "span": parameter.span}


def parameter_from_json(data: Any) -> abi.Parameter:
    """The parameter that JSON means."""
    _expect(isinstance(data, dict) and {"name", "type"} <= data.keys() <= {"name", "type", "span"}, "parameter", data)
    _expect(isinstance(data["name"], str), "name", data["name"])
    return abi.Parameter(data["name"], _some(type_from_json(data["type"]), data), _span(data.get("span")))


def _span(data: Any) -> list[Any] | None:
    if data is not None:
        _expect(isinstance(data, list) and len(data) == 6, "place", data)
        _expect(all(isinstance(item, (str, int)) for item in data), "place", data)
    return data


_FIELDS = {"name", "kind", "symbol", "params", "result", "span", "private"}


def signature_to_json(signature: abi.Signature) -> dict[str, Any]:
    """A signature as JSON."""
    return {
        "name": signature.name,
        "kind": signature.kind,
        "symbol": signature.symbol,
        "params": [parameter_to_json(parameter) for parameter in signature.params],
        "result": type_to_json(signature.result),
        "span": signature.span,
        "private": signature.private,
    }


def signature_from_json(data: Any) -> abi.Signature:
    """The signature that JSON means."""
    _expect(isinstance(data, dict) and _FIELDS - {"span", "private"} <= data.keys() <= _FIELDS, "signature", data)
    name, kind, symbol, params = (data[key] for key in ("name", "kind", "symbol", "params"))
    _expect(isinstance(name, str) and isinstance(symbol, str) and isinstance(params, list), "signature", data)
    _expect(kind in ("graph", "kernel"), "kind of function", kind)
    private = data.get("private", False)
    _expect(isinstance(private, bool), "signature", data)
    made = tuple(map(parameter_from_json, params))
    return abi.Signature(name, kind, symbol, made, type_from_json(data["result"]), _span(data.get("span")), private)


def site_to_json(site: Mapping[str, Any]) -> dict[str, Any]:
    """A site as JSON."""
    if "args" not in site:
        return dict(site)
    return {**site, "args": [type_to_json(arg) for arg in site["args"]], "result": type_to_json(site["result"])}


def site_from_json(data: Mapping[str, Any]) -> dict[str, Any]:
    """The site that JSON means."""
    if "args" not in data:
        return dict(data)
    _expect(isinstance(data["args"], list) and "result" in data, "site", data)
    return {**data, "args": tuple(map(argument_from_json, data["args"])), "result": type_from_json(data["result"])}
