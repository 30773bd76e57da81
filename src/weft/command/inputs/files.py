"""Files of the command line as modules: reading text, finding units, choosing one. Nothing of a file is run.

Errors: W010 a file that cannot be read or written, W011 a file without units, W012 a unit or function that is not
there, W013 a file with several units where one is needed.
"""

from __future__ import annotations

import io
import itertools
import os
import sys
import tempfile
import tokenize
import zipfile
from collections.abc import Callable
from pathlib import Path

from weft.errors import WeftError
from weft.ir.module import IRModule
from weft.script import FileUnit, Limits, read_units
from weft.transform.infra.registry import nearest

__all__ = [
    "InputError",
    "as_module",
    "file_name",
    "is_archive",
    "load_one",
    "load_units",
    "read_text",
    "weights_folder",
    "write_file",
]


class InputError(WeftError):
    """A file or a choice on the command line is wrong (W010-W049)."""

    default_code = "W010"

    def __init__(self, message: str, *, file: str | None = None, code: str | None = None, hint: str | None = None):
        super().__init__(message, code=code, hint=hint)
        self.file = file


def as_module(unit: FileUnit) -> IRModule:
    """A unit as a module: itself, or a module that holds the one function. Raises the error that reading it raised."""
    if isinstance(unit.value, WeftError):
        raise unit.value
    return unit.value if isinstance(unit.value, IRModule) else IRModule({unit.name: unit.value})


def read_text(file: str) -> str:
    """The text of a file, or of standard input for `-`, in the encoding that it declares (UTF-8 unless it says)."""
    try:
        data = _bytes(file)
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = io.TextIOWrapper(io.BytesIO(data), encoding).read()  # line breaks become "\n"
    except OSError as error:
        hint = _near(file) if isinstance(error, FileNotFoundError) else None
        raise InputError(f"cannot read {file}: {error.strerror or error}", file=file, hint=hint) from None
    except (SyntaxError, ValueError, LookupError) as error:  # also of encodings that are none of text
        raise InputError(f"cannot read {file} as text: {error}", file=file) from None
    return text


def _near(file: str) -> str | None:
    """Files of the folder whose names are like one that is not there."""
    try:
        with os.scandir(Path(file).parent) as found:
            names = [item.name for item in itertools.islice(found, 10_000) if item.is_file()]
    except OSError:
        return None
    return nearest(Path(file).name, names)


def _bytes(file: str) -> bytes:
    """The bytes of a file, no more than the reader takes: a device such as /dev/zero has no end."""
    most = Limits().size
    if file == "-":
        data = sys.stdin.buffer.read(most + 1)
    else:
        with open(file, "rb") as stream:
            data = stream.read(most + 1)
    if len(data) > most:
        raise InputError(f"cannot read {file_name(file)}: it has more than {most} bytes", file=file)
    return data


def file_name(file: str) -> str:
    """How a file is named in messages."""
    return "<stdin>" if file == "-" else file


def load_units(file: str) -> list[FileUnit]:
    """Every unit of a file; a unit that cannot be read holds its error.

    Raises: InputError W010 for a file that is not there or not text, W011 for one without units; ScriptError for what
    is not Python.
    """
    folder = weights_folder(file)
    units = read_units(read_text(file), filename=file_name(file), blobs=folder if folder.is_dir() else None)
    if not units:
        raise InputError(
            f"{file_name(file)} defines no unit",
            file=file,
            code="W011",
            hint="a unit is a class under @I.ir_module, or a function under @R.function or @T.prim_func",
        )
    return units


def weights_folder(file: str) -> Path:
    """Where the large arrays of a text lie, by their hash: `model.weights` for `model.py`."""
    path = Path("stdin" if file == "-" else file)
    return path.with_suffix(".weights") if path.name else path


def load_one(file: str, name: str | None) -> FileUnit:
    """The unit with a name, or the only one of a file; when there are several, the only module among them.

    Raises: InputError W010-W013; what reading the unit raised.
    """
    units = load_units(file)
    names = ", ".join(unit.name for unit in units)
    if name is not None:
        chosen = [unit for unit in units if unit.name == name]
        if not chosen:
            raise InputError(f"{file_name(file)} has no unit {name!r}", file=file, code="W012", hint=f"it has: {names}")
    else:
        modules = [unit for unit in units if isinstance(unit.value, IRModule)]
        chosen = modules if len(modules) == 1 else units
        if len(chosen) > 1:
            message = f"{file_name(file)} defines {len(units)} units"
            raise InputError(message, file=file, code="W013", hint=f"choose one with --unit: {names}")
    as_module(chosen[-1])
    return chosen[-1]  # a later definition replaces an earlier one, as in Python


def is_archive(file: str) -> bool:
    """Whether a file is an archive, by its name or its contents."""
    return Path(file).is_file() and (file.endswith(".weft") or zipfile.is_zipfile(file))


def write_file(path: str, write: Callable[[Path], object]) -> None:
    """Write a file whole or not at all: `write` fills a file next to it, which then takes its name.

    Raises: InputError W010 when it cannot be written.
    """
    target = Path(path)
    try:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=target.suffix)
        os.close(handle)
        try:
            write(Path(temporary))
            os.chmod(temporary, 0o666 & ~_umask())
            os.replace(temporary, target)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}", file=path) from None


def _umask() -> int:
    """The permissions that new files go without; the system has no way to ask but to set it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
