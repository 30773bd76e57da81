"""Properties of generated modules: well-formedness, text, equality, and that the checks themselves can fail.

What a module means (interpreter, passes, machine code) is in `test_meaning.py`. `tests/fuzz/modules.py` runs
the same checks on as many modules as one likes.
"""

from __future__ import annotations

import dataclasses
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from weft import first_mismatch, parse, structural_equal, structural_hash, verify
from weft.ir.dim import DimExpr, free_symbols, substitute, symbol
from weft.ir.graph import Constant, DataflowVar, Function, Var, VarBinding
from weft.ir.module import IRModule
from weft.ir.node import FrozenMap, Node, fields_of, replace
from weft.ir.structure.visit import rewrite, walk
from weft.ir.tensor import Binary, Buffer, FloatImm, For, IntImm, PrimVar
from weft.ir.types import TensorType
from weft.script.forms import syntax
from weft.testing.checks import check_round_trip, check_well_formed
from weft.testing.strategies import generate, generate_kernel, kernels, modules, opaque_kernels

ROOT = Path(__file__).resolve().parents[2]
SEEDS = 300
SLICES = 6

generated = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


def _slice(index: int) -> range:
    return range(index * SEEDS // SLICES, (index + 1) * SEEDS // SLICES)


# ---------------------------------------------------------------------------------------------------------------------
# Every generated module
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", range(SLICES))
def test_modules_are_well_formed_and_their_text_reads_back_as_them(part: int) -> None:
    """G10: parse(print(m)) equals m, prints the same text and has the same hash; the verifier finds nothing."""
    for seed in _slice(part):
        for runnable in (True, False):
            module = generate(seed, runnable=runnable)
            check_well_formed(module)
            check_round_trip(module)


@generated
@given(modules())
def test_a_drawn_module_reads_back(module: IRModule) -> None:
    """G10, with examples that shrink."""
    check_well_formed(module)
    check_round_trip(module)


@generated
@given(modules(runnable=False))
def test_a_drawn_module_of_anything_reads_back(module: IRModule) -> None:
    """G10, with examples that shrink."""
    check_well_formed(module)
    check_round_trip(module)


@generated
@given(kernels())
def test_a_drawn_kernel_reads_back_alone(kernel: Any) -> None:
    """G10 for a function outside a module."""
    check_round_trip(kernel)


@generated
@given(opaque_kernels())
def test_a_drawn_function_of_any_constructs_reads_back_alone(kernel: Any) -> None:
    """G10 for a function outside a module."""
    check_round_trip(kernel)


def test_a_seed_gives_one_module() -> None:
    for seed in range(20):
        assert generate(seed).script() == generate(seed).script()


def test_modules_cover_the_language() -> None:
    """The generators are worth their time: every node class of both levels occurs."""
    levels = ("weft.ir.graph", "weft.ir.tensor", "weft.ir.types", "weft.ir.variables")
    seen = {type(node).__name__ for seed in range(400) for node in walk(generate(seed, runnable=False), types=True)}
    expected = {cls.__name__ for cls in _subclasses(Node) if cls.__module__ in levels}
    assert expected - seen == {"Expr", "PrimExpr", "Stmt", "Type"}  # the abstract ones


def _subclasses(cls: type) -> set[type]:
    direct = set(cls.__subclasses__())
    return direct.union(*(_subclasses(inner) for inner in direct)) if direct else direct


# ---------------------------------------------------------------------------------------------------------------------
# Equality, hash, rewriting
# ---------------------------------------------------------------------------------------------------------------------


def _renamed_symbols(function: Function) -> Function:
    """The function with other symbol names."""
    names = {name for node in walk(function, types=True) for dim in _dims(node) for name in free_symbols(dim)}
    mapping = {name: symbol(f"{name}_renamed") for name in names}
    return rewrite(function, dim=lambda dim: substitute(dim, mapping), types=True)


def _dims(node: Node) -> list[DimExpr]:
    found: list[DimExpr] = []
    for name in ("dims", "shape", "value"):
        value = getattr(node, name, None)
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, DimExpr):
                found.append(item)
    return found


def test_other_names_for_symbols_keep_equality_and_hash() -> None:
    for seed in range(80):
        module = generate(seed)
        functions = {
            name: _renamed_symbols(function) if isinstance(function, Function) else function
            for name, function in module.items()
        }
        other = module.with_functions(functions)
        assert first_mismatch(module, other) is None
        assert structural_hash(module) == structural_hash(other)


def test_other_names_for_variables_keep_equality_and_text_stays_readable() -> None:
    for seed in range(80):
        module = generate(seed, runnable=False)

        def rename(node: Node) -> Node | None:
            return replace(node, name="x") if isinstance(node, (Var, DataflowVar, PrimVar, Buffer)) else None

        other = rewrite(module, rename, types=True)
        assert first_mismatch(module, other) is None
        assert structural_hash(module) == structural_hash(other)
        check_round_trip(other)


def test_the_order_of_functions_does_not_matter_for_equality() -> None:
    for seed in range(60):
        module = generate(seed)
        names = list(module.functions)
        random.Random(seed).shuffle(names)
        other = replace(module, functions=FrozenMap({name: module.functions[name] for name in names}))
        assert structural_equal(module, other)
        assert structural_hash(module) == structural_hash(other)
        assert list(parse(other.script()).functions) == names


def test_rewriting_without_a_change_is_the_same_object() -> None:
    for seed in range(60):
        module = generate(seed, runnable=False)
        assert rewrite(module, lambda node: None, types=True) is module


def test_rebuilding_every_node_gives_an_equal_module() -> None:
    for seed in range(60):
        module = generate(seed, runnable=False)
        rebuilt = rewrite(module, _copy, types=True)
        assert rebuilt is not module
        assert first_mismatch(module, rebuilt) is None
        check_well_formed(rebuilt)


def _copy(node: Node) -> Node:
    """A new node with the same fields."""
    return type(node)(**{name: getattr(node, name) for name, _ in fields_of(type(node))})


def test_one_changed_literal_makes_modules_differ() -> None:
    changed = 0
    for seed in range(120):
        module = generate(seed, runnable=False)
        other = _with_one_change(module, seed)
        if other is not None:
            changed += 1
            assert first_mismatch(module, other) is not None
            assert structural_hash(module) != structural_hash(other)
            assert module.script() != other.script()
    assert changed > 60


def _with_one_change(module: IRModule, seed: int) -> IRModule | None:
    """The module with one number, operator or loop kind changed."""
    candidates = [node for node in walk(module) if _changed(node) is not None]
    if not candidates:
        return None
    chosen = random.Random(seed).choice(candidates)
    return rewrite(module, pre=lambda node: _changed(node) if node is chosen else None)


def _changed(node: Node) -> Node | None:
    if isinstance(node, IntImm) and node.dtype not in ("bool", "uint1"):
        return replace(node, value=node.value ^ 1)
    if isinstance(node, FloatImm):
        return replace(node, value=-node.value)
    if isinstance(node, Binary) and node.kind in ("add", "sub"):
        return replace(node, kind="sub" if node.kind == "add" else "add")
    if isinstance(node, For) and node.kind == "serial" and node.step is None:
        return replace(node, kind="parallel")
    if isinstance(node, Constant) and node.is_numpy and node.data.size and node.data.dtype.kind in "fi":
        with np.errstate(all="ignore"):
            return replace(node, data=-node.data - 1)
    return None


# ---------------------------------------------------------------------------------------------------------------------
# The properties can fail
# ---------------------------------------------------------------------------------------------------------------------


def _first_failure(check: Callable[[IRModule], None], seeds: int = 80) -> str | None:
    """What the first failing seed says, or None."""
    for seed in range(seeds):
        for runnable in (True, False):
            try:
                check(generate(seed, runnable=runnable))
            except Exception as error:
                return f"{type(error).__name__}: {error}"
    return None


def test_a_printer_that_writes_another_operator_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    row = syntax.BINARY["sub"]
    monkeypatch.setitem(syntax.BINARY, "sub", dataclasses.replace(row, text="+"))
    assert _first_failure(check_round_trip)


def test_a_printer_that_forgets_parentheses_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    row = syntax.BINARY["add"]
    monkeypatch.setitem(syntax.BINARY, "add", dataclasses.replace(row, precedence=syntax.BINARY["mul"].precedence))
    assert _first_failure(check_round_trip)


def test_a_printer_that_rounds_constants_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    holders = [
        module
        for name, module in sorted(sys.modules.items())
        if name.startswith("weft.script") and hasattr(module, "float_text")
    ]
    whole = holders[0].float_text
    for holder in holders:
        monkeypatch.setattr(holder, "float_text", lambda value: whole(float(f"{value:.3g}")))
    assert _first_failure(check_round_trip)


def test_a_reader_that_confuses_operators_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    add = next(tree for tree, kind in syntax.BINARY_BY_TREE.items() if kind == "add")
    monkeypatch.setitem(syntax.BINARY_BY_TREE, add, "sub")
    assert _first_failure(check_round_trip)


def test_a_rewriter_that_leaves_a_use_behind_is_caught_by_the_verifier() -> None:
    """A new variable where one is bound, and the old one where it is used."""
    caught = 0
    for seed in range(60):
        module = generate(seed)
        main = module["main"]
        assert isinstance(main, Function)
        used = {node for node in walk(main.body) if isinstance(node, Var)}
        if not used & set(main.params):
            continue
        broken = replace(main, params=tuple(replace(param, name=f"{param.name}_new") for param in main.params))
        caught += bool(verify(module.with_function("main", broken)))
    assert caught > 20


def test_a_wrong_type_is_caught_by_the_verifier() -> None:
    """A binding that claims one more dimension than its value has."""
    caught = tried = 0
    for seed in range(60):
        module = generate(seed)

        def worse(node: Node) -> Node | None:
            if isinstance(node, VarBinding) and isinstance(node.var.ty, TensorType) and node.var.ty.dims is not None:
                return replace(node, var=replace(node.var, ty=TensorType((*node.var.ty.dims, 7), node.var.ty.dtype)))
            return None

        broken = rewrite(module, worse)
        if broken is not module:
            tried += 1
            caught += bool(verify(broken))
    assert tried > 30
    assert caught == tried


# ---------------------------------------------------------------------------------------------------------------------
# Other processes
# ---------------------------------------------------------------------------------------------------------------------

_OTHER = """
import sys
sys.path[:0] = {paths!r}
from weft.testing.strategies import generate
import weft
texts = sys.stdin.read().split("\\n# ---- next ----\\n")
for seed, text in enumerate(texts):
    module = weft.parse(text)
    print(weft.structural_hash(module), weft.structural_hash(generate(seed)), module.script() == text)
"""


def test_another_process_reads_the_same_modules_with_the_same_hash() -> None:
    """G10, C9: text written here is read in a process with another hash seed; seeds mean the same there."""
    originals = [generate(seed) for seed in range(12)]
    paths = [str(ROOT / "src"), str(ROOT)]
    result = subprocess.run(
        [sys.executable, "-c", _OTHER.format(paths=paths)],
        input="\n# ---- next ----\n".join(module.script() for module in originals),
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONHASHSEED": "12345", "PYTHONIOENCODING": "utf-8"},
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    lines = result.stdout.split("\n")[: len(originals)]
    hashes = [structural_hash(module) for module in originals]
    assert lines == [f"{value} {value} True" for value in hashes]


def test_kernels_of_a_seed_are_the_same_in_any_order() -> None:
    first = [generate_kernel(seed).script() for seed in range(10)]
    assert [generate_kernel(seed).script() for seed in reversed(range(10))] == first[::-1]
