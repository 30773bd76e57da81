"""Executors: one lowering, equal results; bytecode as data."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.generation import graphs
from tests.generation.arguments import copied
from tests.properties import assert_agree, interpreted, nudged, precision, run_main
from tests.strategies import generate

import weft
from weft.errors import ArgumentError, ArtifactError, ShapeError
from weft.ir import IRModule
from weft.runtime import register_func, unregister_func
from weft.runtime.bytecode import check_program, listing, program_hash
from weft.runtime.vm import Event, VMFunction

RECURSIVE = """
@I.ir_module
class Module:
    @R.function(private=True)
    def factorial(n: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        done = R.less_equal(n, R.const(1, "int64"))
        if done:
            r = R.const(1, "int64")
        else:
            before = R.subtract(n, R.const(1, "int64"))
            rest = Module.factorial(before)
            r = R.multiply(n, rest)
        return r

    @R.function
    def main(n: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        r = Module.factorial(n)
        return r
"""


@pytest.fixture(autouse=True, scope="module")
def library() -> Iterator[None]:
    """The external functions that generated modules call."""
    for name, function in graphs._EXTERN.items():
        register_func(name, function)
    yield
    for name in graphs._EXTERN:
        unregister_func(name)


def parse(text: str) -> IRModule:
    found = weft.parse(text)
    assert isinstance(found, IRModule)
    return found


def function(text: str) -> weft.Executable:
    return weft.compile(weft.parse(text), executor="vm")


@pytest.mark.parametrize("seed", range(200, 216))
def test_bytecode_agrees_with_the_interpreter_on_random_modules(seed: int) -> None:
    """A9, D10: control flow, kernels, library calls and symbolic sizes."""
    module = generate(seed)
    arguments, want = interpreted(module, seed)
    if want is None:
        pytest.skip("the module has no value at any of the sizes tried")
    got = weft.compile(module, opt=seed % 4, executor="vm")["main"](*copied(arguments))
    other, moved = nudged(module, arguments)
    assert_agree(want, got, run_main(other, moved), precision(module))


def test_recursion_and_branches_run_in_bytecode() -> None:
    """A9: and calls do not lean on Python's stack."""
    exe = weft.compile(parse(RECURSIVE), executor="vm")
    assert exe["main"](np.array(10)) == 3628800
    exe["main"](np.array(20_000))  # wraps, and is far deeper than Python calls may be


def test_endless_recursion_ends_with_an_error() -> None:
    endless = RECURSIVE.replace("R.less_equal(n", "R.greater(n").replace("R.subtract", "R.multiply")
    with pytest.raises(RecursionError, match="calls of factorial are nested too deep"):
        weft.compile(parse(endless), executor="vm")["main"](np.array(0))


def test_a_function_value_may_come_from_the_caller() -> None:
    """A9: closures are values here; machine code refuses this module."""
    exe = function("""
@R.function
def main(f: R.Callable((R.Tensor((2,), "float32"),), R.Tensor((2,), "float32")), x: R.Tensor((2,), "float32")):
    y = f(x)
    return y
""")
    x = np.ones(2, "float32")
    np.testing.assert_array_equal(exe["main"](lambda value: value + 1, x), x + 1)


def test_the_same_checks_fail_with_the_same_words() -> None:
    """A9: a match_cast that does not hold, and an argument that does not fit."""
    text = """
@R.function
def main(x: R.Tensor(("n", "m"), "float32")) -> R.Tensor(("n", "n"), "float32"):
    y = R.match_cast(x, R.Tensor(("n", "n"), "float32"))
    z = R.exp(y)
    return z
"""
    messages = []
    for executor in ("native", "vm"):
        exe = weft.compile(weft.parse(text), executor=executor)
        with pytest.raises(ShapeError) as caught:
            exe["main"](np.ones((2, 3), "float32"))
        messages.append((caught.value.code, caught.value.message, caught.value.span.line))  # type: ignore[union-attr]
        with pytest.raises(ArgumentError) as wrong:
            exe["main"](np.ones((2,), "float32"))
        messages.append((wrong.value.code, wrong.value.message, wrong.value.span.line))  # type: ignore[union-attr]
    assert messages[:2] == messages[2:]


def test_results_share_no_memory_with_arguments_and_constants() -> None:
    exe = function("""
@R.function
def main(x: R.Tensor((2,), "float32")) -> R.Tuple(R.Tensor((2,), "float32"), R.Tensor((2,), "float32")):
    return (x, R.const([1.0, 2.0], "float32"))
""")
    x = np.zeros(2, "float32")
    for result in exe["main"](x):
        result[...] = 7
    assert exe["main"](x)[0].tolist() == [0, 0]
    assert exe["main"](x)[1].tolist() == [1, 2]


def test_a_profile_counts_each_callee() -> None:
    """Profiles and traces see every kernel, with its arguments and how long it took."""
    main = weft.compile(parse(RECURSIVE), executor="vm")["main"]
    assert isinstance(main, VMFunction)
    rows = {row.name: row.count for row in main.profile(np.array(4))}
    assert (rows["multiply"], rows["less_equal"]) == (3, 4)
    events: list[Event] = []
    with main.watching(events.append):
        main(np.array(2))
    kernels = [event for event in events if event.kind == "kernel"]
    assert [(event.function, event.name) for event in kernels] == [
        ("factorial", "less_equal"), ("factorial", "subtract"), ("factorial", "less_equal"), ("factorial", "multiply"),
    ]  # fmt: skip
    assert int(kernels[0].arguments[0]) == 2
    assert all(event.seconds >= 0 for event in events)
    main(np.array(3))
    assert len([event for event in events if event.name == "multiply"]) == 1


def test_bytecode_is_data_that_is_saved_loaded_and_hashed(tmp_path: Path) -> None:
    """A9, C3: the program survives the file, without pickle; its listing is four kinds of instructions."""
    exe = weft.compile(parse(RECURSIVE), executor="vm")
    exe.save(tmp_path / "model.weft")
    again = weft.load(tmp_path / "model.weft")
    assert again.executor == "vm"
    assert again["main"](np.array(5)) == 120
    assert again.artifacts == exe.artifacts
    driver = exe.artifacts["driver.json"]
    assert driver.kind == "weft-bytecode"
    program = json.loads(driver.data)
    kinds = {instruction[0] for f in program["functions"] for instruction in f["code"]}
    assert kinds == {"call", "ret", "if", "goto"}
    text = listing(exe._program.driver or {})
    assert "function factorial(" in text
    assert "if not r" in text


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (["code", 0, 1], 99, "no register 99"),
        (["code", 0, 2], ["kernel", "os.system"], "calls the kernel 'os.system'"),
        (["code", 0, 2], ["builtin", "eval"], "calls the builtin 'eval'"),
        (["code", -1], ["goto", 5], "does not end with ret"),
        (["registers"], 0, "too few registers"),
        (["code", 0, 3], [["k", 7]], "no constant 7"),
        (["code", 0], ["jump"], "no instruction 'jump'"),
    ],
)
def test_bytecode_that_refers_to_what_is_not_there_is_refused(path: list[object], value: object, said: str) -> None:
    """A hostile program is refused before any of it runs."""
    program = json.loads(json.dumps(weft.compile(parse(RECURSIVE), executor="vm")._program.driver))
    item = next(f for f in program["functions"] if f["name"] == "main")
    before = program_hash(program)
    for step in path[:-1]:
        item = item[step]
    item[path[-1]] = value
    assert program_hash(program) != before
    with pytest.raises(ArtifactError, match=said) as caught:
        check_program(program, {"multiply", "subtract", "less_equal"}, 1)
    assert caught.value.code == "W840"
