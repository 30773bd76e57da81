"""Executors: one lowering, equal results; bytecode as data."""

from __future__ import annotations

import ctypes
import json
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from tests.plugins import toy_accelerator

import weft
from weft.errors import ArgumentError, ArtifactError, ShapeError, TargetError
from weft.ir import Function, GlobalVar, IRModule, PrimFunc
from weft.runtime.artifact import ArtifactSet
from weft.runtime.loading import register_loader, unregister_loader
from weft.runtime.programs.bytecode import check_program, listing, program_hash
from weft.runtime.programs.entry import entry_function
from weft.runtime.programs.vm import Event, VMFunction
from weft.testing.meaning import compare_random, random_module, register_library, runner

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


def parse(text: str) -> IRModule:
    found = weft.parse(text)
    assert isinstance(found, IRModule)
    return found


def function(text: str) -> weft.Executable:
    return weft.compile(weft.parse(text), executor="vm")


@pytest.mark.parametrize("seed", range(200, 216))
def test_bytecode_agrees_with_the_interpreter_on_random_modules(seed: int) -> None:
    """A9, D10: control flow, kernels, library calls and symbolic sizes."""
    register_library()
    module = random_module(seed)
    if not compare_random(module, runner(weft.compile(module, opt=seed % 4, executor="vm")), seed):
        pytest.skip("the module has no value at any of the sizes tried")


@pytest.mark.parametrize("executor", ["graph", "aot"])
def test_straight_line_programs_agree_with_the_interpreter_on_random_modules(executor: str) -> None:
    """A9, B9: what is not refused computes the same."""
    register_library()
    ran, refused = 0, set()
    for seed in range(300, 324):
        module = random_module(seed)
        try:
            exe = weft.compile(module, executor=executor)
        except TargetError as error:
            refused.add(error.code)
            continue
        ran += compare_random(module, runner(exe), seed)
    assert ran >= 3
    assert refused <= {"W739", "W741", "W742", "W745"}


def test_recursion_and_branches_run_in_bytecode() -> None:
    """A9: and calls do not lean on Python's stack."""
    exe = weft.compile(parse(RECURSIVE), executor="vm")
    assert exe["main"](np.array(10)) == 3628800
    exe["main"](np.array(20_000))  # wraps, and is far deeper than Python calls may be


def test_endless_recursion_ends_with_an_error() -> None:
    endless = RECURSIVE.replace("R.less_equal(n", "R.greater(n").replace("R.subtract", "R.multiply")
    with pytest.raises(weft.RecursionDepthError, match="calls of factorial are nested too deep"):
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
        ("factorial", "less_equal"),
        ("factorial", "subtract"),
        ("factorial", "less_equal"),
        ("factorial", "multiply"),
    ]
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
        (["code", 0], ["size", 0, "exec", ["n"], "n", -1], "no operation 'exec'"),
        (["code", 0], ["size", 99, "mul", ["n", 2], "2 * n", -1], "no register 99"),
        (["code", 0], ["size", 0, "mul", [[99, "n"], 2], "2 * n", -1], "no register 99"),
        (["code", 0], ["size", 0, "mul", [1.5, 2], "2 * n", -1], "no size 1.5"),
        (["code", 0], ["size", 0, "mul", ["n", 2], "2 * n", 10_000], "no span 10000"),
        (["code", 0, 3], [["shape", [["mul", "n", 2]]]], "malformed bytecode"),
        (["code", 0, 3], [["d", [99, "n"]]], "no register 99"),
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


UNRANKED = """
@R.function
def main(x: R.Tensor(dtype="float32")) -> R.Tensor(dtype="float32"):
    return R.nn.relu(x)
"""
BOUNDED = """
@R.function
def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, "m"), "float32")):
    R.func_attr({"tir_var_upper_bound": {"n": 64, "m": 8}})
    with R.dataflow():
        y = R.nn.softmax(R.matmul(x, w))
        z = R.exp(y)
        R.output(y, z)
    return (y, (z, x))
"""
STATIC = """
@R.function
def main(x: R.Tensor((3, 4), "float32")):
    with R.dataflow():
        w = R.const([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]], "float32")
        y = R.matmul(x, w)
        z = R.nn.softmax(y)
        R.output(y, z)
    return (y, z)
"""
X = np.linspace(-1, 1, 12, dtype="float32").reshape(3, 4)


@pytest.mark.parametrize("executor", ["graph", "aot"])
def test_bounded_sizes_need_no_memory_that_depends_on_them(executor: str, tmp_path: Path) -> None:
    """A9: equal results for every size within the bounds, from one compiled program; greater ones are refused."""
    exe = weft.compile(weft.parse(BOUNDED), executor=executor)
    exe.save(tmp_path / "model.weft")
    for loaded in (exe, weft.load(tmp_path / "model.weft")):
        assert loaded.executor == executor
        for n, m in ((1, 1), (5, 3), (64, 8), (7, 2)):
            x, w = np.ones((n, 4), "float32"), np.linspace(0, 1, 4 * m, dtype="float32").reshape(4, m)
            (y, (z, same)), (ey, (ez, _)) = loaded["main"](x, w), weft.interpret(weft.parse(BOUNDED))["main"](x, w)
            np.testing.assert_allclose(y, ey, rtol=1e-5)
            np.testing.assert_allclose(z, ez, rtol=1e-5)
            np.testing.assert_array_equal(same, x)
            assert not np.may_share_memory(same, x)
    with pytest.raises(ArgumentError, match="n is 65, and was stated to be at most 64"):
        exe["main"](np.ones((65, 4), "float32"), np.ones((4, 2), "float32"))


@pytest.mark.parametrize("executor", ["graph", "aot"])
def test_calls_from_several_threads_do_not_share_memory(executor: str) -> None:
    exe = weft.compile(weft.parse(STATIC), executor=executor)
    inputs = [X * k for k in range(40)]
    expected = [weft.interpret(weft.parse(STATIC))["main"](x)[1] for x in inputs]
    with ThreadPoolExecutor(4) as pool:
        for (_, got), wanted in zip(pool.map(exe["main"], inputs), expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("executor", ["graph", "aot"])
def test_what_a_straight_line_program_cannot_do_is_refused_with_a_way_out(executor: str) -> None:
    """A9: control flow, calls of functions, sizes without bounds; the place in the text is shown."""
    branch = """
@R.function
def main(c: R.Tensor((), "bool"), x: R.Tensor((2,), "float32")):
    if c:
        y = R.call_pure_packed("my.function", x, ty_args=R.Tensor((2,), "float32"))
    else:
        y = R.tanh(x)
    return y
"""
    for can in ("native", "vm"):
        assert weft.compile(weft.parse(UNRANKED), executor=can)["main"](np.full((2, 3), -1, "float32")).sum() == 0
    unbounded = BOUNDED.replace('"n": 64, ', "")
    for text, code, said, line in (
        (branch, "W741", "R.call_pure_packed cannot be in a loop or a branch of a straight-line program", 5),
        (UNRANKED, "W741", "a value that is no tensor of known shape and dtype", 4),
        (RECURSIVE, "W741", "a call of the graph function 'factorial'", 17),
        (unbounded, "W745", "the size n is neither known nor bounded", 3),
    ):
        with pytest.raises(TargetError, match=said) as caught:
            weft.compile(weft.parse(text), executor=executor)
        assert caught.value.code == code
        assert 'executor="native" and executor="vm" can' in (caught.value.hint or "")
        assert caught.value.span is not None
        assert caught.value.span.line == line


CELLS = """
@I.ir_module
class Module:
    @R.function(private=True)
    def cell(x: R.Tensor((3, 8), "float32"), h: R.Tensor((3, 4), "float32"), w: R.Tensor((12, 4), "float32")):
        return R.tanh(R.matmul(R.concat((x, h), axis=1), w))

    @R.function
    def main(x: R.Tensor((5, 3, 8), "float32"), w: R.Tensor((12, 4), "float32")):
        h = R.zeros((3, 4), "float32")
        for t in range(5):
            h = Module.cell(x[t], h, w)
        return h
"""


@pytest.mark.parametrize("executor", ["native", "vm", "graph", "aot"])
def test_private_functions_become_part_of_a_straight_line(executor: str) -> None:
    """A9: calls of private graph functions need no step by hand, in any executor."""
    module = weft.parse(CELLS)
    x, w = np.random.default_rng(0).standard_normal((5, 3, 8), "float32"), np.full((12, 4), 0.25, "float32")
    got = weft.compile(module, executor=executor)["main"](x, w)
    np.testing.assert_allclose(got, weft.interpret(module)["main"](x, w), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("executor", ["graph", "aot"])
def test_numbers_that_a_straight_line_gives_are_tensors(executor: str) -> None:
    module = weft.parse(
        """
@R.function
def main(x: R.Tensor((4,), "float32")):
    last = 0
    for i in range(3):
        last = i
    return x, last, R.prim_value(2.5), R.prim_value(1.5, "bfloat16")
"""
    )
    found = weft.compile(module, executor=executor)(np.ones(4, "float32"))
    assert [(part.dtype.name, part.tolist()) for part in found[1:]] == [
        ("int64", 2),
        ("float32", 2.5),
        ("bfloat16", 1.5),
    ]


@pytest.mark.parametrize("dtype", ["float32", "int64", "int16"])
def test_code_that_sorts_vectors_is_part_of_a_straight_line(dtype: str) -> None:
    """It is defined once in the object, beside the kernels that call it."""
    module = weft.parse(
        f"""
@R.function
def main(x: R.Tensor((100,), "{dtype}")):
    return R.sort(x), R.argsort(x)
"""
    )
    x = np.random.default_rng(0).integers(0, 1000, 100).astype(dtype)
    found = weft.compile(module, executor="aot")(x)
    for part, wanted in zip(found, (np.sort(x), np.argsort(x, kind="stable")), strict=True):
        np.testing.assert_array_equal(part, wanted)


@pytest.mark.parametrize("executor", ["graph", "aot"])
def test_several_public_functions_are_refused_before_what_is_in_them(executor: str) -> None:
    """A9: the second one is shown, and how it becomes part of the first."""
    with pytest.raises(TargetError, match="one entry can be compiled ahead, the module has cell, main") as caught:
        weft.compile(weft.parse(CELLS.replace("(private=True)", "")), executor=executor)
    assert caught.value.code == "W739"
    assert caught.value.span is not None
    assert (caught.value.span.line, caught.value.span.column) == (9, 9)
    assert "@R.function(private=True)" in (caught.value.hint or "")


def test_the_graph_is_json_with_places_in_one_arena() -> None:
    """A9: nodes in order, each with the places of its arguments; nothing overlaps the end of the arena."""
    exe = weft.compile(weft.parse(STATIC), executor="graph")
    program = json.loads(exe.artifacts["driver.json"].data)
    assert program["format"] == "weft-graph"
    assert [node["op"] for node in program["nodes"]] == ["kernel", "kernel"]
    kinds = [[item["kind"] for item in node["arguments"]] for node in program["nodes"]]
    assert kinds[0] == ["input", "constant", "output"]
    assert set(kinds[1]) <= {"output", "arena"}
    for number in (99, -1):
        broken = json.loads(json.dumps(exe._program.driver))
        broken["nodes"][0]["arguments"][0]["index"] = number
        with pytest.raises(ArtifactError, match="which is not there") as caught:
            entry_function(broken, exe._loaded.constants, exe.functions, {})
        assert caught.value.code == "W841"


def test_ahead_of_time_compilation_is_a_lowering_to_one_kernel() -> None:
    """D16: the module prints, reads back equal, and runs in the interpreter, constants and all."""
    lowered = weft.lower(weft.parse(STATIC))
    module = weft.transform.LowerToEntry()(lowered)
    main = module["main"]
    assert isinstance(main, PrimFunc)
    assert not any(isinstance(function, Function) for _, function in module.items())
    again = parse(module.script())
    assert weft.structural_equal(again, module)
    constants = [constant.data for constant in again.attrs["constants"]]
    y, z = np.zeros((3, 2), "float32"), np.zeros((3, 2), "float32")
    weft.interpret(again)["main"](X, *constants, y, z)
    for got, wanted in zip((y, z), weft.interpret(weft.parse(STATIC))["main"](X), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5)


def test_a_shared_object_with_a_header_runs_in_a_c_program(tmp_path: Path) -> None:
    """D16: the header compiles as C99, the program computes the same, and nothing of Python is there."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    exe = weft.compile(weft.parse(STATIC), executor="aot")
    files = ArtifactSet(item for item in exe.artifacts.values() if item.loader == "cc")
    assert files.names == ("model.h", "model.o")
    files.export(tmp_path / "libmodel.so")
    files.export(tmp_path)
    values = ", ".join(f"{float(value)!r}f" for value in X.ravel())
    (tmp_path / "main.c").write_text(f"""
#include "model.h"
#include <stdio.h>
static float x[12] = {{ {values} }}, y[6], z[6];
static double workspace[MODEL_WORKSPACE_BYTES / 8 + 8];
int main(void) {{
  struct model_inputs inputs = {{ x }};
  struct model_outputs outputs = {{ y, z }};
  struct model_workspaces workspaces = {{ (uint8_t *)(((uintptr_t)workspace + 63) & ~(uintptr_t)63) }};
  int32_t code = model_run(&inputs, &outputs, &workspaces, 0);
  for (int i = 0; i < 6; ++i) printf("%a %a\\n", (double)y[i], (double)z[i]);
  printf("[%s]\\n", model_message(0));
  return code;
}}
""")
    strict = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror"]
    command = [compiler, *strict, "main.c", "./libmodel.so", "-o", "main"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    done = subprocess.run(["./main"], cwd=tmp_path, check=True, capture_output=True, text=True)
    *rows, last = done.stdout.splitlines()
    got = np.array([[float.fromhex(item) for item in row.split()] for row in rows])
    wanted = weft.interpret(weft.parse(STATIC))["main"](X)
    np.testing.assert_allclose(got[:, 0], wanted[0].ravel(), rtol=1e-5)
    np.testing.assert_allclose(got[:, 1], wanted[1].ravel(), rtol=1e-5)
    assert last == "[]"


@pytest.mark.parametrize("executor", ["native", "vm", "graph", "aot"])
def test_one_plug_in_works_under_every_executor(executor: str, tmp_path: Path) -> None:
    """B9: its kernel is called by its symbol, from an artifact that its loader makes a function of."""
    text = """
@I.ir_module
class Module:
    @R.function(private=True)
    def block(x: R.Tensor((3, 4), "float32")) -> R.Tensor((3, 4), "float32"):
        R.func_attr({"target": "acc"})
        y = R.exp(x)
        return y

    @R.function
    def main(x: R.Tensor((3, 4), "float32")) -> R.Tensor((3, 4), "float32"):
        a = R.multiply(x, x)
        b = Module.block(a)
        c = R.add(b, a)
        return c
"""
    kernel = parse("""
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def device_exp(x: T.Buffer((3, 4), "float32"), y: T.Buffer((3, 4), "float32")):
        for i, j in T.grid(3, 4):
            y[i, j] = T.exp(x[i, j])
""")
    calls = []

    def device(x: np.ndarray, y: np.ndarray) -> None:
        calls.append(x.shape)
        y[...] = np.exp(x)

    register_loader("toy-program", loader := lambda artifact: {"device_exp": device})
    try:
        with toy_accelerator.installed() as toy:
            toy.lowering(lambda module, function: (kernel, GlobalVar("device_exp")))
            toy.codegen(toy_accelerator.compile_functions)
            exe = weft.compile(parse(text), "host: llvm; acc: toy", executor=executor)
        exe.save(tmp_path / "model.weft")
        for loaded in (exe, weft.load(tmp_path / "model.weft")):
            calls.clear()
            np.testing.assert_allclose(loaded["main"](X), np.exp(X * X) + X * X, rtol=1e-5)
            assert calls == [(3, 4)]
    finally:
        assert loader
        unregister_loader("toy-program")


RELATED = {
    "an operator": ("y = R.add(x, w)", "add: n of `x` must be m of `w`"),
    "an annotation": ('y: R.Tensor((m,), "float32") = R.exp(x)', "match_cast of y: .* m must be n"),
    "a result": ("y = R.exp(x)", "the result of main: .* m must be n"),
}


@pytest.mark.parametrize("executor", ["graph", "aot"])
@pytest.mark.parametrize(("line", "message"), RELATED.values(), ids=RELATED)
def test_straight_line_programs_compare_the_sizes_that_the_text_relates(executor: str, line: str, message: str) -> None:
    """Kernels get addresses alone: without it `add` would read beyond the end of the shorter array."""
    result = ' -> R.Tensor(("m",), "float32")' if "exp" in line else ""
    module = parse(
        "@I.ir_module\nclass M:\n    @R.function\n"
        f'    def main(x: R.Tensor(("n",), "float32"), w: R.Tensor(("m",), "float32")){result}:\n'
        f'        R.func_attr({{"tir_var_upper_bound": {{"n": 8, "m": 8}}}})\n        {line}\n        return y\n'
    )
    run = weft.compile(module, executor=executor)["main"]
    x = np.zeros(3, "float32")
    assert run(x, x).shape == (3,)
    with pytest.raises(ShapeError, match=message):
        run(x, x[:2].copy())


EXPORTED = """
@I.ir_module
class M:
    @R.function(private=True)
    def twice(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        y = R.add(x, x)
        return y

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        y = M.twice(R.exp(x))
        return y
"""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a C compiler")
@pytest.mark.parametrize("executor", ["native", "vm", "graph", "aot"])
def test_c_calls_what_any_executor_exports_as_a_shared_object(executor: str, tmp_path: Path) -> None:
    made = weft.compile(parse(EXPORTED), executor=executor)
    run = ctypes.CDLL(str(made.export(tmp_path / "model.so"))).model_run
    x, y, room = np.linspace(-1, 1, 4, dtype="float32"), np.zeros(4, "float32"), np.zeros(4096, "uint8")
    pointers = [(ctypes.c_void_p * 1)(array.ctypes.data) for array in (x, y, room)]
    assert run(*pointers, None) == 0
    np.testing.assert_array_equal(y, made["main"](x))
    assert sorted(path.name for path in made.export(tmp_path / "files").iterdir()) == ["model.h", "model.o"]


@pytest.mark.parametrize(
    ("size", "body", "code"), [('"n"', "R.cumsum(R.sort(x))", "W745"), ("4", "R.unique(x)", "W741")]
)
def test_what_c_cannot_call_is_not_exported_with_the_reason(size: str, body: str, code: str, tmp_path: Path) -> None:
    function = weft.parse(f'@R.function\ndef main(x: R.Tensor(({size},), "float32")):\n    y = {body}\n    return y\n')
    assert isinstance(function, Function)
    with pytest.raises(weft.TargetError) as caught:
        weft.compile(function).export(tmp_path / "model.so")
    assert caught.value.code == code


def test_a_loaded_executable_exports_what_its_file_holds(tmp_path: Path) -> None:
    for executor, code in (("native", "W819"), ("aot", None)):
        weft.compile(parse(EXPORTED), executor=executor).save(tmp_path / "model.weft")
        again = weft.load(tmp_path / "model.weft")
        if code is None:
            assert (again.export(tmp_path / "files") / "model.o").exists()
            continue
        with pytest.raises(weft.ArtifactError, match="C programs cannot call main: compiled for") as caught:
            again.export(tmp_path / "files")
        assert caught.value.code == code


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a C compiler")
def test_a_kernel_alone_is_exported_too(tmp_path: Path) -> None:
    kernel = weft.parse(
        '@T.prim_func\ndef twice(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):\n'
        "    for i in range(4):\n        y[i] = x[i] * T.float32(2)\n"
    )
    assert isinstance(kernel, PrimFunc)
    assert ctypes.CDLL(str(weft.compile(kernel).export(tmp_path / "twice.so"))).model_run


BRANCHES = """
@R.function
def main(
    c: R.Tensor((), "bool"), k: R.Prim("int64"), x: R.Tensor(("n", "m"), "float32")
) -> R.Tensor("float32", ndim=1):
    if c:
        a = R.reshape(x, (n * m,))
        y = R.exp(a)
    else:
        b = R.negative(x)
        y = R.reshape(b, (n * m,))
    z = R.add(y, y)
    for i in range(k):
        z = R.multiply(z, R.reshape(x, (n * m,)))
    w = R.concat((z, R.reshape(x, (n * m,))), axis=0)
    return w
"""


@pytest.mark.parametrize("opt", [0, 2])
def test_a_size_that_one_way_computes_is_not_used_on_another(opt: int) -> None:
    """D21: what a branch or a loop that may not run computes is computed again where it is needed."""
    module = IRModule({"main": weft.parse(BRANCHES)})  # type: ignore[dict-item]
    compiled = weft.compile(module, executor="vm", opt=opt)["main"]
    x = np.arange(6, dtype="float32").reshape(2, 3) / 8
    for condition in (True, False):
        for count in (0, 1, 3):
            arguments = (np.array(condition), count, x)
            np.testing.assert_allclose(compiled(*arguments), weft.interpret(module)["main"](*arguments), rtol=1e-6)


def test_a_size_that_cannot_be_computed_is_told_where_it_is_needed() -> None:
    function = weft.parse(
        """
@R.function
def main(x: R.Tensor(("n",), "float32"), s: R.Shape(["a"])) -> R.Tensor("float32", ndim=1):
    y = R.zeros((n // a,), dtype="float32")
    return y
"""
    )
    compiled = weft.compile(function, executor="vm")["main"]
    assert compiled(np.ones(5, "float32"), (2,)).shape == (2,)
    with pytest.raises(weft.ShapeError, match="division by zero in n // a") as caught:
        compiled(np.ones(5, "float32"), (0,))
    assert caught.value.code == "W280"
    assert caught.value.span is not None
    assert caught.value.span.line == 4
