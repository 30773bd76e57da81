"""The rows of the table, by what the operators are about; loading this package fills the table."""

from __future__ import annotations

import importlib

FAMILIES = (
    "elementwise",
    "shapes",
    "indexing",
    "reductions",
    "networks",
    "resizing",
    "normalization",
    "quantization",
    "control",
    "loops",
    "recurrent",
    "transforms",
    "classical",
    "microsoft",
    "microsoft_attention",
)

for _family in FAMILIES:
    importlib.import_module(f"weft.frontend.onnx.operators.{_family}")
