"""The arguments of `weft run`: arrays read from files, sizes given on the command line, random values for the rest.

Symbols are bound in order: by the shapes of the given arrays, by `--symbol`, then at random. What does not fit a
parameter is left to the called function, whose message names the parameter, unless the command line contradicts
itself.

Errors: W010 a file that cannot be read, W020 an input that no parameter takes or that comes twice, W021 a parameter
without a value, W022 a size that contradicts an array or names nothing, W023 a type that has no random values.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from typing import IO, Any

import numpy as np

from weft.command.inputs.entry_points import Parameter
from weft.command.inputs.files import InputError, write_file
from weft.dtypes import array_dtype, is_bool, is_float, max_value, stored
from weft.errors import ShapeError, described, shortened
from weft.ir.dim import Dim, evaluate, format_dim, free_symbols, match_dims
from weft.ir.types import PrimType, ShapeType, TensorType, TupleType, Type
from weft.support.records import dataclass

__all__ = ["Inputs", "arguments", "describe", "flatten", "read_inputs", "save_results", "summarise"]

_RANDOM_SIZES = (2, 9)
_RANDOM_INTEGERS = (0, 10)
_PREVIEW = 16
_LONGEST_REASON = 200


@dataclass(slots=True)
class Inputs:
    """Arrays given by position and by name."""

    positional: list[np.ndarray] = field(default_factory=list)
    named: dict[str, np.ndarray] = field(default_factory=dict)


def read_inputs(items: Sequence[str]) -> Inputs:
    """The arrays of `--input [NAME=]PATH`, in order.

    Raises: InputError W010 for a file that is not .npy or .npz, W020 for a name given twice.
    """
    inputs = Inputs()
    for item in items:
        name, equals, path = item.partition("=")
        if not (equals and name.isidentifier()):
            name, path = "", item
        loaded = _load(path)
        if isinstance(loaded, np.ndarray):
            loaded = {name: loaded} if name else loaded
        elif name:
            raise InputError(f"{path} holds several arrays, and {name!r} is one", file=path, code="W020")
        if isinstance(loaded, np.ndarray):
            inputs.positional.append(loaded)
            continue
        for key, array in loaded.items():
            if key in inputs.named:
                raise InputError(f"the input {key!r} is given twice", file=path, code="W020")
            inputs.named[key] = array
    return inputs


def _load(path: str) -> np.ndarray | dict[str, np.ndarray]:
    with _read_errors(path, f"{path} is not a .npy or .npz file of plain arrays"):
        with open(path, "rb") as file:
            known = file.read(6).startswith((np.lib.format.MAGIC_PREFIX, b"PK"))
        if not known:  # NumPy would take it for a pickle, and say so
            hint = "numpy.save and numpy.savez write such files"
            raise InputError(f"{path} is not a .npy or .npz file", file=path, hint=hint)
        loaded = np.load(path, allow_pickle=False)
    if isinstance(loaded, np.ndarray):
        return loaded
    with loaded:
        return {name: _member(path, loaded, name) for name in loaded.files}


def _member(path: str, archive: Mapping[str, Any], name: str) -> np.ndarray:
    """An array of an .npz file."""
    with _read_errors(path, f"{path} is not a .npz file of plain arrays: {name!r} cannot be read"):
        array = archive[name]
    if not isinstance(array, np.ndarray):  # bytes, of a member that is no array
        raise InputError(f"{path} is not a .npz file of plain arrays: {name!r} is none", file=path)
    return array


@contextmanager
def _read_errors(path: str, what: str) -> Iterator[None]:
    """InputError W010 for whatever is raised in reading a file: `what` is wrong, and the reason."""
    try:
        yield
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}", file=path) from None
    except Exception as error:  # NumPy raises what its parsers of headers and zlib raise
        raise InputError(f"{what}: {shortened(_reason(error), _LONGEST_REASON)}", file=path) from None


def _reason(error: Exception) -> str:
    if isinstance(error, EOFError):
        return "it ends too early"
    return "it holds Python objects" if "allow_pickle" in str(error) else str(error) or described(error)


def arguments(
    parameters: Sequence[Parameter], inputs: Inputs, symbols: Mapping[str, int], seed: int | None
) -> tuple[list[Any], dict[str, int]]:
    """A value for every parameter, and the sizes that were chosen at random.

    `seed` None means that every parameter must be given. Raises: InputError W020-W023.
    """
    given = _assign(parameters, inputs)
    missing = [parameter for parameter in parameters if parameter.name not in given]
    if missing and seed is None:
        names = ", ".join(f"{parameter.name}: {describe(parameter.ty)}" for parameter in missing)
        hint = f"give --input {missing[0].name}=FILE.npy, or --random for the rest"
        raise InputError(f"no value for {names}", code="W021", hint=hint)
    sizes = _known_sizes(parameters, given, symbols)
    draw = _Draw(np.random.default_rng(seed), sizes, {})
    values = [given[item.name] if item.name in given else draw.value(item.ty, item.name) for item in parameters]
    return values, draw.chosen


def _assign(parameters: Sequence[Parameter], inputs: Inputs) -> dict[str, np.ndarray]:
    """Named arrays by name, the others to the remaining parameters in order."""
    names = [parameter.name for parameter in parameters]
    takes = f"it takes: {', '.join(names) or 'nothing'}"
    for name in inputs.named:
        if name not in names:
            raise InputError(f"the function has no parameter {name!r}", code="W020", hint=takes)
    free = [name for name in names if name not in inputs.named]
    if len(inputs.positional) > len(free):
        count = len(inputs.positional) + len(inputs.named)
        raise InputError(f"{count} inputs for {len(names)} parameters", code="W020", hint=takes)
    return {**inputs.named, **dict(zip(free, inputs.positional, strict=False))}


def _known_sizes(
    parameters: Sequence[Parameter], given: Mapping[str, np.ndarray], symbols: Mapping[str, int]
) -> dict[str, int]:
    """The symbols that the given arrays determine, and those of the command line."""
    sizes: dict[str, int] = {}
    for parameter in parameters:
        dims = parameter.ty.dims if isinstance(parameter.ty, TensorType) else None
        array = given.get(parameter.name)
        if dims is not None and array is not None and len(dims) == array.ndim:
            try:
                found, _ = match_dims(dims, array.shape)
            except ShapeError:
                continue  # the call says what is wrong with this array, and for which parameter
            for name, size in found.items():
                if isinstance(size, int):
                    sizes.setdefault(name, size)
    known = {name for parameter in parameters for name in _symbols(parameter.ty)}
    known |= {parameter.name for parameter in parameters if isinstance(parameter.ty, PrimType)}
    for name, size in symbols.items():
        if name not in known:
            hint = f"it has: {', '.join(sorted(known)) or 'none'}"
            raise InputError(f"the function has no symbol {name!r} in its parameters", code="W022", hint=hint)
        if sizes.setdefault(name, size) != size:
            raise InputError(f"--symbol {name}={size}, but the inputs have {name}={sizes[name]}", code="W022")
    return sizes


def _symbols(ty: Type) -> list[str]:
    if isinstance(ty, TupleType):
        return [name for part in ty.fields for name in _symbols(part)]
    dims = ty.dims if isinstance(ty, TensorType | ShapeType) else None
    return [name for dim in dims or () for name in free_symbols(dim)]


@dataclass(slots=True)
class _Draw:
    """Random values; sizes that nothing has fixed are drawn when they are first needed, and noted in `chosen`."""

    rng: np.random.Generator
    sizes: dict[str, int]
    chosen: dict[str, int]

    def value(self, ty: Type, name: str) -> Any:
        """A random value of a type, for the parameter `name`."""
        if isinstance(ty, TensorType):
            return self._array(self._shape(ty.dims, ty.ndim), ty.dtype or "float32", name)
        if isinstance(ty, ShapeType):
            return self._shape(ty.dims, ty.ndim)
        if isinstance(ty, PrimType):
            return self.sizes[name] if name in self.sizes else self._array((), ty.dtype, name).item()
        if isinstance(ty, TupleType):
            return tuple(self.value(part, name) for part in ty.fields)
        raise InputError(f"parameter {name!r} has type {describe(ty)}, which has no random values", code="W023")

    def _shape(self, dims: Sequence[Dim] | None, ndim: int) -> tuple[int, ...]:
        if dims is None:
            return tuple(int(size) for size in self.rng.integers(*_RANDOM_SIZES, size=2 if ndim < 0 else ndim))
        for dim in dims:
            for symbol in free_symbols(dim):
                if symbol not in self.sizes:
                    self.sizes[symbol] = self.chosen[symbol] = int(self.rng.integers(*_RANDOM_SIZES))
        return tuple(evaluate(dim, self.sizes) for dim in dims)

    def _array(self, shape: tuple[int, ...], dtype: str, name: str) -> np.ndarray:
        kind = array_dtype(dtype)
        if is_float(dtype):
            return np.asarray(self.rng.standard_normal(shape)).astype(kind)
        low, high = (0, 2) if is_bool(dtype) else _RANDOM_INTEGERS
        return np.asarray(self.rng.integers(low, min(high, int(max_value(dtype)) + 1), size=shape)).astype(kind)


def describe(ty: Type) -> str:
    """A type in a few words: `float32 (n, 4)`."""
    if isinstance(ty, TensorType):
        return f"{ty.dtype or 'any dtype'} {_shape_text(ty)}"
    if isinstance(ty, PrimType):
        return ty.dtype
    if isinstance(ty, TupleType):
        return f"({', '.join(map(describe, ty.fields))})"
    return type(ty).__name__.removesuffix("Type").lower()


def _shape_text(ty: TensorType) -> str:
    if ty.dims is not None:
        return f"({', '.join(map(format_dim, ty.dims))}{',' if len(ty.dims) == 1 else ''})"
    return f"of rank {ty.ndim}" if ty.ndim >= 0 else "of any shape"


def flatten(result: Any, name: str) -> list[tuple[str, Any]]:
    """The values of a result, tuples opened, each with its name: `out`, `out[1]`."""
    if isinstance(result, tuple | list):
        return [item for i, part in enumerate(result) for item in flatten(part, f"{name}[{i}]")]
    return [(name, result)]


def summarise(value: Any) -> dict[str, Any]:
    """What to say about a value: shape, dtype, and for numbers their range, mean and (when few) themselves."""
    if not isinstance(value, np.ndarray | np.generic | int | float):
        return {"value": value if value is None or isinstance(value, str) else repr(value)}
    array = np.asarray(value)
    summary: dict[str, Any] = {"shape": list(array.shape), "dtype": str(array.dtype)}
    if array.dtype.kind == "V":  # of `ml_dtypes`
        array = array.astype("float64")
    if array.size and array.dtype.kind in "biuf":
        wide = array.astype("float64")
        with np.errstate(all="ignore"):
            figures = {"min": wide.min(), "max": wide.max(), "mean": wide.mean()}
        summary.update({key: _number(figure) for key, figure in figures.items()})
    if array.size <= _PREVIEW:
        summary["values"] = [_number(item) for item in array.ravel()]
    return summary


def _number(value: Any) -> float | int | bool | str:
    """A number as JSON has it; JSON has no nan and no infinities, so these are strings."""
    plain = value.item() if hasattr(value, "item") else value
    return str(plain) if isinstance(plain, float) and not np.isfinite(plain) else plain


def save_results(path: str, results: Sequence[tuple[str, Any]]) -> None:
    """Write arrays to a .npy file (one result) or a .npz file (any number, by name)."""
    given = {name: np.asarray(value) for name, value in results}
    # Files of NumPy know no types but its own: others are written as their bits.
    arrays = {name: stored(array, array.dtype.name) for name, array in given.items()}
    if any(array.dtype == object for array in arrays.values()):
        raise InputError(f"cannot write {path}: not every result is an array", file=path)
    if path.endswith(".npy"):
        if len(arrays) != 1:
            raise InputError(f"{path} can hold one array, there are {len(arrays)}", file=path, hint="use .npz")
        (array,) = arrays.values()
        write_file(path, lambda target: _to_stream(target, lambda stream: np.save(stream, array, allow_pickle=False)))
    elif path.endswith(".npz"):
        write_file(path, lambda target: _to_stream(target, lambda stream: _write_archive(stream, arrays)))
    else:
        raise InputError(f"cannot write {path}: results go to a .npy or .npz file", file=path)


def _write_archive(stream: IO[bytes], arrays: Mapping[str, np.ndarray]) -> None:
    """What `np.savez` writes; that function cannot take an array of the name `file`."""
    with zipfile.ZipFile(stream, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def _to_stream(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """NumPy adds a suffix to a path that has another one, but not to a stream."""
    with path.open("wb") as stream:
        write(stream)
