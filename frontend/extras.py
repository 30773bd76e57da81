"""Packages that a format needs and weft does not: an error names the extra that brings them."""

from __future__ import annotations

import importlib
from typing import Any

from weft.errors import MissingExtraError

__all__ = ["require"]


def require(package: str, extra: str) -> Any:
    """The package; MissingExtraError W971 with the extra of weft that has it.

    >>> require("json", "onnx").loads("1")
    1
    """
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise MissingExtraError(
            f"weft.frontend.{extra} needs the package {package!r}: {error}",
            hint=f"pip install 'weft[{extra}]'",
        ) from None
