"""The rows of the table of ATen operators; loading this package fills the table."""

from __future__ import annotations

import importlib

FAMILIES = (
    "elementwise",
    "shapes",
    "reductions",
    "networks",
    "resizing",
    "recurrent",
    "control",
    "indexing",
    "special",
    "linear_algebra",
    "products",
    "complex_numbers",
    "quantization",
    "attention",
    "gradients",
    "variants",
)

for _family in FAMILIES:
    importlib.import_module(f"weft.frontend.torch.operators.{_family}")
