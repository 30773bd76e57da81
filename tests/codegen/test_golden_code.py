"""The LLVM assembly and the C that ten kernels become, as text: what is emitted changes only on purpose.

    pytest tests/codegen/test_golden_code.py --update-golden      write the files anew, and look at the difference

The assembly is what goes to LLVM, for a processor level by name, so that it is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from weft import IRModule, lower, parse
from weft import compile as build
from weft.codegen.backends.llvm.asm.module import ModuleWriter
from weft.codegen.backends.llvm.asm.program import Program
from weft.codegen.backends.llvm.kernel.kernel import emit_kernel
from weft.codegen.host.kernels import is_noalias
from weft.ir.tensor import PrimFunc
from weft.runtime.artifact import ArtifactSet
from weft.target.features import named_features
from weft.transform.kernel.lower_blocks import lower_blocks
from weft.transform.kernel.lower_vector_loops import lower_vector_loops

LEVEL = "x86-64-v3"


def operator(params: str, *body: str) -> str:
    """A program of operators, whose last value is y."""
    lines = "\n        ".join(body)
    return f"@I.ir_module\nclass M:\n    @R.function\n    def main({params}):\n        {lines}\n        return y\n"


def kernel(params: str, *body: str) -> str:
    """A program that is one tensor function."""
    lines = "\n        ".join(body)
    return f"@I.ir_module\nclass M:\n    @T.prim_func\n    def main({params}):\n        {lines}\n"


PROGRAMS = {
    "addition": operator('a: R.Tensor((20,), "float32"), b: R.Tensor((20,), "float32")', "y = R.add(a, b)"),
    "exponential": operator('x: R.Tensor((16,), "float32")', "y = R.exp(x)"),
    "relu of a sum over rows": operator('x: R.Tensor((3, 10), "float32")', "y = R.nn.relu(R.sum(x, axis=1))"),
    "softmax": operator('x: R.Tensor((4, 8), "float32")', "y = R.nn.softmax(x)"),
    "argmax": operator('x: R.Tensor((4, 24), "float32")', "y = R.argmax(x, axis=1)"),
    "product": operator('x: R.Tensor((4, 8), "float32"), w: R.Tensor((8, 8), "float32")', "y = R.matmul(x, w)"),
    "transpose": operator('x: R.Tensor((8, 8), "int32")', "y = R.permute_dims(x)"),
    "gather with checks": operator(
        'x: R.Tensor((9, 4), "float32"), i: R.Tensor((6,), "int64")', "y = R.take(x, i, axis=0)"
    ),
    "casts and quotients": kernel(
        'x: T.Buffer((5,), "int32"), f: T.Buffer((5,), "float32"), y: T.Buffer((5,), "int8")',
        "for i in range(5):",
        '    y[i] = T.Cast("int8", x[i] // T.Cast("int32", f[i])) + T.Cast("int8", x[i] % 3)',
    ),
    "while with an assertion": kernel(
        'x: T.Buffer((8,), "int32"), y: T.Buffer((1,), "int32")',
        "y[0] = 0",
        "while y[0] < 8:",
        '    assert x[y[0]] > 0, "a step goes on"',
        "    y[0] = y[0] + x[y[0]]",
    ),
}


def module_of(name: str) -> IRModule:
    found = parse(PROGRAMS[name])
    assert isinstance(found, IRModule)
    return found


def llvm_of(module: IRModule) -> str:
    """The assembly of the kernels of a module, as it goes to LLVM."""
    lowered = lower(module, target=f"llvm -mcpu={LEVEL}")
    functions = dict(lowered.items())
    program = Program(functions, features=named_features("x86_64", LEVEL, ""))
    writer = ModuleWriter()
    for name, function in functions.items():
        if isinstance(function, PrimFunc):
            steps = lower_vector_loops(lower_blocks(function))
            emit_kernel(writer, program, name, steps, noalias=is_noalias(function))
    return str(writer)


def c_of(module: IRModule) -> str:
    """The C sources of a module without what is the same for all."""
    found = build(module, "c")
    assert isinstance(found, ArtifactSet)
    files = [artifact for artifact in found.values() if artifact.name.endswith(".c")]
    return "\n".join(artifact.data.decode() for artifact in files)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_assembly_of_a_kernel_is_as_written_down(name: str, golden: Callable[..., None]) -> None:
    golden(llvm_of(module_of(name)), suffix="ll")


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_c_of_a_kernel_is_as_written_down(name: str, golden: Callable[..., None]) -> None:
    golden(c_of(module_of(name)), suffix="c")
