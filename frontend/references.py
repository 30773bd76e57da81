"""Bodies of nodes in Python: what a framework's reference raises becomes an error of ours that names the node."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from weft.errors import ModelError, WeftError

__all__ = ["as_reference"]


@contextmanager
def as_reference(reference: str, node: str) -> Iterator[None]:
    """A block in which a reference runs a node: ModelError W978 for what it raises; the place is added by the caller.

    >>> with as_reference("the reference of ONNX", "Resize 'up'"):
    ...     [][0]
    Traceback (most recent call last):
        ...
    weft.errors.ModelError: W978: the reference of ONNX cannot run Resize 'up': IndexError: list index out of range
    """
    try:
        yield
    except WeftError:
        raise
    except Exception as error:
        told = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
        what = f"{type(error).__name__}: {told}" if told else type(error).__name__
        raise ModelError(f"{reference} cannot run {node}: {what}", code="W978") from error
