"""What must hold for every module.

check_well_formed(module)            verify finds nothing
check_round_trip(module)             text reads back as an equal module with the same text and hash; as does the text
                                     without the types that follow from the rest
has_no_result(error)                 whether an error says that no program has a result at such sizes
run_main(module, arguments)          the interpreter's result, or None where no program has one
interpreted(module, seed)            (arguments, result) for arguments that fit
assert_agree(expected, got, ...)     two results up to rounding, judged by how the program answers small changes

Who holds one program against another calls `meaning.compare`, which is made of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.errors import BoundsError, ShapeError, WeftError
from weft.ir.graph import Constant, Function
from weft.ir.interpret import interpret
from weft.ir.module import IRModule
from weft.ir.node import Node, replace
from weft.ir.structure.structural import first_mismatch, structural_hash
from weft.ir.structure.visit import rewrite, walk
from weft.ir.tensor import Buffer, PrimExpr, PrimFunc
from weft.ir.types import TensorType
from weft.ir.verify import verify
from weft.script import parse
from weft.testing.graphs import extern
from weft.transform.infra.generators.arguments import copied, random_arguments
from weft.transform.infra.generators.choices import SeededChoices

__all__ = [
    "assert_agree",
    "check_round_trip",
    "check_well_formed",
    "has_no_result",
    "interpreted",
    "nudged",
    "nudged_value",
    "precision",
    "run_kernel",
    "run_main",
    "same_bits",
]

NO_RESULT = ("W200", "W221", "W224")
"""Codes of errors that say that a program has no result: a negative size, an operator without a value at such sizes."""


def check_well_formed(module: IRModule) -> None:
    """Verify finds nothing."""
    findings = verify(module)
    assert not findings, "\n".join(map(str, findings[:3]))


def check_round_trip(node: Any) -> None:
    """Print, read, compare, print again, hash: with every type, and without those that follow from the rest."""
    usual = node.script()
    _check_text(node, usual, {})
    hidden = node.script(types="hidden")
    if hidden != usual:
        _check_text(node, hidden, {"types": "hidden"})


def _check_text(node: Any, text: str, options: dict[str, Any]) -> None:
    back = parse(text)
    mismatch = first_mismatch(node, back)
    assert mismatch is None, f"{mismatch}\n{text}"
    again = back.script(**options)
    assert again == text, f"printed again differently:\n{_first_difference(text, again)}"
    assert structural_hash(node) == structural_hash(back), text


def _first_difference(one: str, two: str) -> str:
    for left, right in zip(one.splitlines(), two.splitlines(), strict=False):
        if left != right:
            return f"- {left}\n+ {right}"
    return "one is longer"


def has_no_result(error: WeftError) -> bool:
    """Whether an error says that a program has no result for these arguments: sizes that an operator refuses."""
    return error.code in NO_RESULT or (error.code in ("W222", "W900") and error.message.startswith("R."))


def run_main(module: IRModule, arguments: Sequence[Any], name: str = "main") -> Any:
    """The interpreter's result; None where the program has none at these sizes."""
    try:
        return interpret(module, functions=extern)[name](*copied(arguments))
    except (ShapeError, BoundsError) as error:
        if has_no_result(error):
            return None
        raise


def interpreted(module: IRModule, seed: int, attempts: int = 4) -> tuple[list[Any], Any]:
    """Arguments for `main` and its result; (arguments, None) where no attempt found sizes that fit."""
    choices = SeededChoices(seed)
    function = module["main"]
    assert isinstance(function, Function)
    arguments: list[Any] = []
    for _ in range(attempts):
        arguments = random_arguments(function, choices)
        result = run_main(module, arguments)
        if result is not None:
            return arguments, result
    return arguments, None


def precision(module: Node) -> float:
    """The rounding unit of the coarsest float that occurs in a module."""
    coarsest = 2.0**-52
    for node in walk(module, types=True):
        dtype = node.dtype if isinstance(node, (Buffer, Constant, PrimExpr, TensorType)) else None
        scalar = dtypes.part(dtypes.element(dtype)) if dtype else ""
        if scalar and dtypes.is_float(scalar) and dtypes.is_numpy(scalar):
            coarsest = max(coarsest, float(np.finfo(scalar).eps))
    return coarsest


def _nudge(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind == "c":
        return _nudge(np.real(array)) + array.dtype.type(1j) * _nudge(np.imag(array))
    return np.nextafter(array, array * 2 + np.asarray(1, array.dtype)) if array.dtype.kind == "f" else array


def nudged(module: IRModule, arguments: Sequence[Any]) -> tuple[IRModule, list[Any]]:
    """The module and arguments with every float moved by one unit in the last place."""

    def change(node: Node) -> Node | None:
        if isinstance(node, Constant) and node.is_numpy and node.data.dtype.kind in "fc" and node.data.size:
            return replace(node, data=_nudge(node.data))
        return None

    return rewrite(module, change), [nudged_value(value) for value in arguments]


def nudged_value(value: Any) -> Any:
    """An argument with every float moved."""
    if isinstance(value, np.ndarray):
        return _nudge(value)
    return tuple(map(nudged_value, value)) if isinstance(value, tuple) else value


def assert_agree(expected: Any, got: Any, nearby: Any, unit: float, path: str = "result") -> None:
    """Equal up to rounding: a float may be off by what a small change of the inputs does, and by the unit."""
    if isinstance(expected, tuple):
        assert isinstance(got, tuple), f"{path}: {type(got).__name__} for a tuple"
        assert len(got) == len(expected), f"{path}: {len(got)} fields for {len(expected)}"
        for index, item in enumerate(zip(expected, got, nearby, strict=True)):
            assert_agree(*item, unit, f"{path}[{index}]")
        return
    if not isinstance(expected, (np.ndarray, np.generic, float)):
        assert expected == got, f"{path}: expected {expected!r}, got {got!r}"
        return
    left, right, near = np.asarray(expected), np.asarray(got), np.asarray(nearby)
    assert left.shape == right.shape, f"{path}: shape {left.shape} expected, got {right.shape}"
    if isinstance(expected, np.ndarray):
        assert left.dtype == right.dtype, f"{path}: {left.dtype} expected, got {right.dtype}"
    if left.dtype.kind not in "fc":
        assert np.array_equal(left, right), f"{path}: expected\n{left}\ngot\n{right}"
        return
    with np.errstate(all="ignore"):
        exact = "f8" if left.dtype.kind == "f" else "c16"
        wide, other, near = left.astype(exact), right.astype(exact), near.astype(exact)
        slack = 64 * unit * (1 + np.abs(wide)) + 64 * np.abs(wide - near)
        unsure = ~np.isfinite(slack) | (np.abs(wide) > float(np.finfo(left.dtype).max) / 4)
        fine = (np.abs(wide - other) <= slack) | (wide == other) | (np.isnan(wide) & np.isnan(other)) | unsure
    assert fine.all(), f"{path}: expected\n{left}\ngot\n{right}\nslack\n{slack}"


def same_bits(a: Any, b: Any) -> bool:
    """Whether two results are the same to the last bit."""
    if isinstance(a, tuple):
        return isinstance(b, tuple) and len(a) == len(b) and all(map(same_bits, a, b))
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return type(a) is type(b) and (a == b or a != a)


def run_kernel(function: PrimFunc, arguments: Sequence[Any]) -> list[Any]:
    """The arguments after the interpreter ran a kernel on copies of them."""
    values = copied(arguments)
    interpret(function)(*values)
    return values
