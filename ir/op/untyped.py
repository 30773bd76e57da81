"""NumPy without types, for references that call what its stubs give no result type for (`where`, `linalg.solve`)."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["untyped_np"]

untyped_np: Any = np
