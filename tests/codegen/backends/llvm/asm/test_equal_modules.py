"""Loops that are the same code are compiled once, and called by whoever called either."""

from __future__ import annotations

import numpy as np

import weft
from weft.codegen.backends.llvm.asm.equal_modules import EqualModules
from weft.codegen.backends.llvm.asm.function import FunctionWriter
from weft.codegen.backends.llvm.asm.instructions import call
from weft.codegen.backends.llvm.asm.module import ModuleWriter


def calling(name: str, callee: str = "", result: str = "7") -> ModuleWriter:
    """A module of one function, which calls another one."""
    module = ModuleWriter()
    w = FunctionWriter(module, name, "i32", [])
    if callee:
        result = w.emit(call("i32", module.declare(callee, "i32", ()), []))
    w.ret("i32", result)
    w.finish()
    return module


def test_equal_loops_are_one_and_their_callers_call_it() -> None:
    """Of callers that are loops themselves too; what differs in its kind, or is no loop, stays."""
    modules = EqualModules()
    assert "@weft.loop.a.1()" in (modules.text_of(calling("weft.loop.a.1"), "kind") or "")
    assert modules.text_of(calling("weft.loop.b c.1"), "kind") is None
    assert modules.text_of(calling("weft.loop.d.1"), "other kind") is not None
    assert modules.text_of(calling("weft.loop.e.1", result="8"), "kind") is not None
    assert modules.text_of(calling("weft.loop.a.2", "weft.loop.a.1"), "kind") is not None
    assert modules.text_of(calling("weft.loop.b c.2", "weft.loop.b c.1"), "kind") is None
    both = calling("weft.kernel.f", "weft.loop.b c.1")
    for name in ("weft.loop.a.1", "weft.loop.b c.2", "weft.loop.d.1"):
        both.declare(name, "i32", ())
    text = modules.text_of(both, None) or ""
    assert "call i32 @weft.loop.a.1()" in text
    assert [line for line in text.splitlines() if line.startswith("declare")] == [
        "declare i32 @weft.loop.a.1()",
        "declare i32 @weft.loop.a.2()",
        "declare i32 @weft.loop.d.1()",
    ]
    assert modules.text_of(calling("weft.kernel.g"), None) is not None
    assert modules.text_of(calling("weft.kernel.h"), None) is not None


def test_layers_that_pad_alike_share_that_loop() -> None:
    module = weft.parse("""
@R.function
def main(
    x: R.Tensor((1, 64, 56, 56), "float32"),
    v: R.Tensor((64, 64, 3, 3), "float32"),
    w: R.Tensor((64, 64, 3, 3), "float32"),
):
    y = R.nn.conv2d(x, v, padding=(1, 1))
    return R.nn.relu(R.nn.conv2d(y, w, padding=(1, 1)))
""")
    random = np.random.default_rng(0)
    args = [random.standard_normal(shape, "float32") for shape in ((1, 64, 56, 56), (64, 64, 3, 3), (64, 64, 3, 3))]
    made = weft.compile(module, workers=2)
    np.testing.assert_allclose(made["main"](*args), weft.interpret(module)["main"](*args), rtol=1e-3, atol=1e-2)
    text = made.source("llvm")
    assert text.count("define i32 @weft.loop.") < text.count("define void @weft.chunk.")
