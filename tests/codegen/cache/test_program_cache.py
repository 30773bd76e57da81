"""Whole programs kept on disk: found again by everything that they follow from, and by nothing less."""

from __future__ import annotations

import hashlib
import logging
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft.codegen.cache import programs as program_cache
from weft.codegen.cache.programs import key_of
from weft.codegen.compile import as_module
from weft.errors import ArgumentError, BoundsError
from weft.ir.graph import Constant
from weft.ir.op import OPS, Param, register_op
from weft.ir.structure.fingerprint import fingerprint
from weft.ir.tensor import FloatImm
from weft.runtime.device import code_cache as cache_module
from weft.runtime.device.code_cache import object_cache

SCRIPT = """from weft.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(({rows}, 16), "{dtype}"), w: R.Tensor((16, 4), "{dtype}")):
        a = R.matmul(x, w)
        b = R.multiply(a, R.const({factor}, "{dtype}"))
        y = {function}(b)
        return y
"""


def module(rows: str = "8", dtype: str = "float32", factor: str = "2.5", function: str = "R.exp") -> weft.IRModule:
    made = weft.parse(SCRIPT.format(rows=rows, dtype=dtype, factor=factor, function=function))
    assert isinstance(made, weft.IRModule)
    return made


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and no checks after passes: with them, every pass runs."""
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("WEFT_CHECK", "0")
    return tmp_path / "cache"


@pytest.fixture
def no_passes(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From the call on, nothing may be compiled."""

    def forbid() -> None:
        def refuse(*_: object, **__: object) -> None:
            raise AssertionError("compiled again")

        monkeypatch.setattr("weft.transform.infra.pipeline.Pipeline.run", refuse)
        monkeypatch.setattr("weft.codegen.backends.llvm.machine.machine._Emitter.compiled", refuse)

    return forbid


def inputs(rows: int = 8) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    return random.random((rows, 16), "float32"), random.random((16, 4), "float32")


def key(made: weft.IRModule, *args: Any, **options: Any) -> str | None:
    return key_of(made, *args, **options)


def test_what_was_compiled_is_loaded_without_a_pass(no_passes: Callable[[], None]) -> None:
    first = weft.compile(module())
    expected = first(*inputs())
    no_passes()
    again = weft.compile(module())
    np.testing.assert_array_equal(again(*inputs()), expected)
    assert again.source() == first.source()
    assert again.artifacts.to_bytes() == first.artifacts.to_bytes()
    with pytest.raises(AssertionError, match="compiled again"):
        weft.compile(module(factor="2.25"))


@pytest.mark.parametrize("executor", ["native", "vm"])
def test_symbolic_shapes_and_errors_come_back_as_they_were(executor: str, no_passes: Callable[[], None]) -> None:
    first = weft.compile(module(rows='"n"'), executor=executor)
    no_passes()
    again = weft.compile(module(rows='"n"'), executor=executor)
    assert again.executor == executor
    for rows in (1, 5):
        np.testing.assert_array_equal(again(*inputs(rows)), first(*inputs(rows)))
    raised = []
    for executable in (first, again):
        with pytest.raises(ArgumentError) as caught:
            executable(np.zeros((2, 15), "float32"), inputs()[1])
        raised.append(str(caught.value))
    assert raised[0] == raised[1]


def test_failures_point_to_the_text_that_was_compiled(no_passes: Callable[[], None]) -> None:
    int64, float32 = "T.Buffer((1,), 'int64')", "T.Buffer((4,), 'float32')"
    text = f"@T.prim_func\ndef pick(i: {int64}, x: {float32}, y: {float32}):\n    y[0] = x[i[0]]\n"
    weft.compile(weft.parse(text))
    no_passes()
    again = weft.compile(weft.parse(text))["pick"]
    with pytest.raises(BoundsError) as caught:
        again(np.array([7]), np.zeros(4, "float32"), np.zeros(4, "float32"))
    assert caught.value.span is not None
    assert (caught.value.span.line, caught.value.span.source.line_text(3)) == (3, "    y[0] = x[i[0]]")


def test_bound_weights_come_back(no_passes: Callable[[], None]) -> None:
    x, w = inputs()
    first = weft.compile(module(), params={"w": w})
    other = weft.compile(module(), params={"w": w + 1})
    assert not np.array_equal(first(x), other(x))
    no_passes()
    np.testing.assert_array_equal(weft.compile(module(), params={"w": w.copy()})(x), first(x))
    np.testing.assert_array_equal(weft.compile(module(), params={"w": w + 1})(x), other(x))


def test_every_change_is_another_key(monkeypatch: pytest.MonkeyPatch) -> None:
    base = module()
    keys = [
        key(base),
        key(module(factor="2.25")),
        key(module(rows="9")),
        key(module(rows='"n"')),
        key(module(dtype="float64")),
        key(module(function="R.tanh")),
        key(base.with_attr("kind", 1)),
        key(base, opt=3),
        key(base, "llvm -mcpu=x86-64-v2"),
        key(base, executor="vm"),
        key(base, "llvm -mcpu=x86-64-v2 -mattr=+avx"),
    ]
    text = SCRIPT.format(rows="8", dtype="float32", factor="2.5", function="R.exp")
    named, moved = weft.parse(text.replace("(x", "(z").replace("main(x", "main(z")), weft.parse("\n" + text)
    keys += [key(item) for item in (named, moved) if isinstance(item, weft.IRModule)]
    monkeypatch.setattr(program_cache, "_STATE", "another weft")
    keys.append(key(base))
    monkeypatch.setattr(program_cache, "llvm_version", lambda: "another LLVM")
    keys.append(key(base))
    assert None not in keys
    assert len(set(keys)) == len(keys) == 15


def test_texts_that_programs_are_made_of_are_sources(tmp_path: Path) -> None:
    for name in ("a.py", "b.ll", "c.lark", "d.so"):
        (tmp_path / name).write_text("")
    facts: list[tuple[str, int, int]] = []
    program_cache._add_sources(str(tmp_path), facts)
    assert sorted(Path(path).name for path, _, _ in facts) == ["a.py", "b.ll", "c.lark"]


def test_the_same_text_has_the_same_key() -> None:
    assert key(module()) == key(module())
    assert fingerprint(module(rows='"n * 2"')) == fingerprint(module(rows='"n * 2"'))
    assert fingerprint(module(rows='"n * 2"')) != fingerprint(module(rows='"n * 3"'))


def test_weights_that_differ_in_one_bit_are_other_weights() -> None:
    made = Constant(np.zeros(4, "float32")), Constant(-np.zeros(4, "float32"))
    assert fingerprint(made[0]) != fingerprint(made[1])
    assert fingerprint(made[0]) != fingerprint(Constant(np.zeros((2, 2), "float32")))


def test_what_depends_on_more_than_the_module_is_not_kept() -> None:
    @register_op("test.twice", [Param("x")], builtin="a test", pure=True)
    def twice(args: Any, context: Any) -> Any:
        """Twice."""
        return context.type_of(args.x)

    try:
        declared = weft.parse(SCRIPT.format(rows="8", dtype="float32", factor="1.0", function="R.test.twice"))
        assert isinstance(declared, weft.IRModule)
        assert key(declared) is None
    finally:
        OPS.pop("test.twice")
    text = "@T.prim_func\ndef f(x: T.Buffer((1,), 'float32')):\n    x[0] = T.call_extern('float32', 'sqrtf', x[0])\n"
    assert key(as_module(weft.parse(text))) is None
    with weft.transform.PassContext(disabled=["fold-constant"]):
        assert key(module()) is None
    with weft.transform.PassContext(config={"check.level": 1}):
        assert key(module()) is None
    assert key(module().with_attr("thing", object())) is None
    assert key(module(), "c") is None
    assert key(module()) is not None


def test_a_trace_or_another_pipeline_runs_the_passes() -> None:
    weft.compile(module())
    steps: list[Any] = []
    weft.compile(module(), trace=steps)
    assert steps
    ran = []
    pipeline = weft.transform.default_pipeline()

    @weft.transform.module_pass(name="tests-noted")
    def noted(given: weft.IRModule) -> weft.IRModule:
        ran.append(given)
        return pipeline(given)

    weft.compile(module(), pipeline=noted)
    assert ran


@pytest.mark.parametrize("damage", [b"", b"short", b"\0" * 100, b"flip"])
def test_a_damaged_entry_is_compiled_again_and_said(
    folder: Path, damage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    expected = weft.compile(module())(*inputs())
    for path in folder.iterdir():
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(bytes(data) if damage == b"flip" else damage)
    with caplog.at_level(logging.WARNING, "weft.cache"):
        np.testing.assert_array_equal(weft.compile(module())(*inputs()), expected)
    assert "is damaged" in caplog.text
    caplog.clear()
    np.testing.assert_array_equal(weft.compile(module())(*inputs()), expected)
    assert caplog.text == ""


def test_a_cache_that_cannot_be_written_does_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = weft.compile(module())(*inputs())
    (tmp_path / "file").write_text("not a folder")
    for place in (str(tmp_path / "file"), "/proc/weft", "off"):
        monkeypatch.setenv("WEFT_CACHE_DIR", place)
        np.testing.assert_array_equal(weft.compile(module())(*inputs()), expected)


def test_programs_of_great_weights_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_cache, "_LARGEST", 100)
    weft.compile(module(), params={"w": inputs()[1]})
    before = object_cache().info().entries
    weft.compile(module(), params={"w": inputs()[1]})
    assert object_cache().info().entries == before
    weft.compile(module())
    assert object_cache().info().entries > before
    assert cache_module.LIMIT // 8 > 100


def test_a_nan_of_another_sign_or_payload_is_another_program() -> None:
    quiet, negative = (
        struct.unpack("<d", struct.pack("<Q", bits))[0] for bits in (0x7FF8000000000001, 0xFFF8000000000002)
    )
    marks = {fingerprint(FloatImm(value, "float64")) for value in (quiet, negative, float("nan"))}
    assert len(marks) == 3


def test_large_weights_are_mapped_from_the_disk(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Weights come from the file, in order, without a copy; a damaged one is compiled again."""
    weight = np.random.default_rng(0).random((1600, 1100), "float32")
    affine = weft.parse("""
@R.function
def main(x: R.Tensor((1, 1600), "float32"), w: R.Tensor((1600, 1100), "float32"), b: R.Tensor((1100,), "float32")):
    return R.add(R.matmul(x, w), b)
""")
    x, bias = np.ones((1, 1600), "float32"), np.arange(1100, dtype="float32")
    params = {"w": weight, "b": bias}
    expected = weft.compile(affine, params=params)["main"](x)
    kept = weft.compile(affine, params=params)
    np.testing.assert_array_equal(kept["main"](x), expected)
    for array, _ in kept._program.constants:
        assert not array.flags.owndata
        assert not array.flags.writeable
        assert array.ctypes.data % 64 == 0
    for path in folder.iterdir():
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.unlink()
        path.write_bytes(bytes(data))
        path.chmod(0o600)
    with caplog.at_level(logging.WARNING, "weft.cache"):
        np.testing.assert_array_equal(weft.compile(affine, params=params)["main"](x), expected)
    assert "is damaged" in caplog.text


def test_sources_are_unpacked_when_they_are_asked_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    expected = weft.compile(module()).source()
    asked: list[int] = []
    unpacked = program_cache.unpacked
    monkeypatch.setattr(program_cache, "unpacked", lambda text: asked.append(len(text)) or unpacked(text))
    again = weft.compile(module())
    again(*inputs())
    assert asked == []
    assert again.source() == expected
    assert len(asked) == 1
    damaged = weft.compile(module())
    monkeypatch.setattr(program_cache, "unpacked", lambda text: unpacked(b"damage"))
    with caplog.at_level(logging.WARNING, "weft.cache"):
        assert list(damaged._program.sources) == []
    assert "cannot be read" in caplog.text


def test_an_entry_of_another_version_goes_without_a_warning(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    cache, key = object_cache(), "1" * 64
    cache.put(key, [b"code"], "text")
    path = folder / f"{key}.code"
    rest = key.encode() + (4).to_bytes(8, "little") + b"\x7fELF\x02\x01\x01\0" + b"without a stamp"
    path.write_bytes(hashlib.sha256(rest).digest() + rest)
    with caplog.at_level(logging.WARNING, "weft.cache"):
        assert cache.get(key) is None
    assert (caplog.text, path.exists()) == ("", False)


def test_large_entries_are_hashed_again_only_where_they_were_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cache_module, "_CHUNK", 1 << 12)
    cache, key = object_cache(), "0" * 64
    code = np.random.default_rng(0).bytes(1 << 15)
    cache.put(key, [code[:100], code[100:]], "text")
    path = folder / f"{key}.code"
    made: list[int] = []
    digest = cache_module._digest
    monkeypatch.setattr(cache_module, "_digest", lambda rest: made.append(len(rest)) or digest(rest))

    def read() -> bool:
        found = cache.get(key)
        return found is not None and (bytes(found[0]), found[1]) == (code, "text")

    assert read()
    assert made == []
    os.utime(path)  # as a copy of the folder has it
    assert read()
    assert len(made) == 1
    assert read()
    assert len(made) == 1
    with path.open("r+b") as file:
        file.seek(1 << 14)
        file.write(b"damage")
    with caplog.at_level(logging.WARNING, "weft.cache"):
        assert cache.get(key) is None
    assert "is damaged" in caplog.text


def test_a_program_from_the_disk_loads_no_passes_back_ends_or_grammars(tmp_path: Path) -> None:
    path = tmp_path / "run.py"
    path.write_text(
        "import sys\nimport numpy as np\nimport weft\n"
        f"module = weft.parse({SCRIPT.format(rows=8, dtype='float32', factor=2, function='R.exp')!r})\n"
        "weft.compile(module)['main'](np.ones((8, 16), 'float32'), np.ones((16, 4), 'float32'))\n"
        "heavy = ('weft.transform.public', 'weft.transform.infra.phases', 'weft.codegen.lowering', "
        "'weft.codegen.backends.llvm.program', 'weft.codegen.backends.generators', 'weft.transform.infra.base', "
        "'weft.transform.autoschedule.registry', 'weft.transform.memory.planners', 'weft.ir.interpret', "
        "'lark', 'sympy')\n"
        "print([name for name in heavy if name in sys.modules])\n"
    )
    said = [
        subprocess.run([sys.executable, path], capture_output=True, text=True, check=True, timeout=120).stdout
        for _ in range(2)
    ]
    assert "weft.transform.infra.phases" in said[0]
    assert said[1] == "[]\n"
