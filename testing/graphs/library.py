"""The external functions that generated modules call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["EXTERN", "extern"]


def _reversed(*args: Any) -> None:
    args[-1][...] = args[0].reshape(-1)[::-1].reshape(args[0].shape)


EXTERN: dict[str, Callable[..., Any]] = {"test.reversed": _reversed, "test.copy": lambda x, *rest: np.array(x)}


def extern(name: str) -> Callable[..., Any] | None:
    """The external functions that generated modules call."""
    return EXTERN.get(name)


_PYTHON = (
    "def {name}(self, x):\n    return x",
    "def {name}(self): return 1",
    '@other("""\n x""")\ndef {name}(x, *y, k="名"):\n\n    """Any\n  margin.\n"""\n    # why\n    return (x +\n k)',
    "def {name}(self, x):\n\tif x:\n\t    return '\\\n'\n\treturn f'''\n{{x}}\n'''",
)
