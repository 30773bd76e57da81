"""A plug-in of pytest that plants the fault named by WEFT_FAULT before tests are collected."""

from __future__ import annotations

import os

from tests.mutation.faults import plant

import weft
import weft.codegen.compile  # noqa: F401

if os.environ.get("WEFT_FAULT"):
    plant(os.environ["WEFT_FAULT"])
