"""Modules whose docstrings are collected are imported by name first.

pytest's `importlib` mode loads a file as a module of its own where nothing has imported it yet, after the packages
above it: when one of those imports the file too, there are two copies of its classes and registries.
"""

from __future__ import annotations

import contextlib
import importlib
from pathlib import Path

import pytest

SOURCES = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collect_file(file_path: Path) -> None:
    """Import a module of weft; what it lacks is said when pytest collects it."""
    if file_path.suffix == ".py" and file_path.is_relative_to(SOURCES / "weft"):
        name = ".".join(file_path.relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__")
        if not name.endswith("__main__"):
            with contextlib.suppress(Exception):
                importlib.import_module(name)
