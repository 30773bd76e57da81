"""Modules that moved are found under their old names too, as the same objects."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys

import pytest

import weft
from weft.moved import MOVED, new_name


def old_names() -> list[str]:
    return [f"{old}.{name.partition('>')[0]}" for old, _, names in MOVED for name in names.split()]


@pytest.mark.parametrize("name", old_names())
def test_the_old_name_gives_the_module_of_the_new_one(name: str) -> None:
    new = new_name(name)
    assert new is not None
    old_module, module = importlib.import_module(name), importlib.import_module(new)
    assert old_module is module
    assert module.__name__ == new
    assert module.__spec__ is not None
    assert module.__spec__.name == new


def test_from_package_import_of_an_old_name() -> None:
    code = "from weft.ir import dtype; from weft.ir.target import Target; import weft; assert Target is weft.Target"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_te_is_imported_as_a_module_of_weft() -> None:
    code = "import weft.te; from weft.te import placeholder; from weft import te; assert weft.te is te"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_every_module_of_te_has_its_short_name() -> None:
    package = importlib.import_module("weft.ir.te")
    names = {module.name for module in pkgutil.iter_modules(package.__path__)}
    assert {name for name in names if new_name(f"weft.te.{name}") is not None} == names


def test_names_that_never_were_are_not_found() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"weft\.ir\.nosuch"):
        importlib.import_module("weft.ir.nosuch")


def test_no_old_name_hides_a_module() -> None:
    assert weft.__spec__ is not None
    assert not set(old_names()) & {new_name(name) for name in old_names()}
