"""What a program sees of the plug-in, before and after it is loaded; run in a process of its own."""

from __future__ import annotations

import numpy as np

import weft
from weft.script import relax as R
from weft.testing import check_operator
from weft.transform import parse_pipeline

TEXT = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        with R.dataflow():
            a = R.woof.bark(x)
            b = R.woof.bark(a)
            c = R.nn.relu(b)
            R.output(c)
        return c
"""
try:
    weft.parse(TEXT)
except weft.WeftError as error:
    print(error.code)
print(weft.load_plugins())
module = weft.parse(TEXT)
assert isinstance(module, weft.IRModule)
print(module.script().count("R.woof.bark("), weft.structural_equal(weft.parse(module.script()), module))
x = np.arange(8, dtype="float32").reshape(2, 4) - 3
want = np.maximum(9 * x, 0)
print((weft.interpret(module)["main"](x) == want).all(), (weft.compile(module)["main"](x) == want).all())
hushed = parse_pipeline("hush")(module)
print((weft.compile(hushed)["main"](x) == np.maximum(6 * x, 0)).all())
loud = weft.compile(module, "host: llvm; dog: woofles -volume=5")
import weft_woofles  # noqa: E402 (the plug-in is there by now)

print((loud["main"](x) == np.maximum(25 * x, 0)).all(), len(weft_woofles.runs))
print(set(weft_woofles.runs) < set(loud.artifacts), weft.Target(loud.artifacts["woof.woof"].target))
check_operator("woof.bark")
print(R.woof.bark.signature, R.woof.bark.doc)
