"""Every operator compiled to machine code agrees with its NumPy reference, at random shapes and symbol values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from weft.ir.builder import BlockBuilder
from weft.ir.dim import symbol
from weft.ir.graph import Var
from weft.ir.op import OPS, OpDef
from weft.ir.types import ShapeType
from weft.testing.operators import TOLERANCE, Run

COMPUTED = [definition for definition in OPS.values() if not definition.builtin]


def module_of(definition: OpDef, examples: slice = slice(None)) -> Any:
    """A module with one function for each example; symbols come by an extra shape parameter, so that all are bound."""
    builder = BlockBuilder()
    for index, example in enumerate(definition.examples[examples]):
        run = Run(definition, example, 0)
        params = [*run.arrays, Var("sizes", ShapeType(tuple(symbol(name) for name in run.symbols)))]
        with builder.function(f"example_{index}", params):
            with builder.dataflow():
                result = builder.emit_output(builder.emit(run.call))
            builder.emit_func_output(result)
    return builder.get()


@pytest.mark.parametrize("definition", COMPUTED, ids=lambda definition: definition.name)
def test_machine_code_agrees_with_numpy(definition: OpDef) -> None:
    """D3, D10."""
    executable = weft.compile(module_of(definition))
    for index, example in enumerate(definition.examples):
        for seed in (index, 11 * index + 7, 101 * index + 31):
            run = Run(definition, example, seed)
            got = executable[f"example_{index}"](*run.arrays.values(), tuple(run.symbols.values()))
            for array, want in zip(got if isinstance(got, tuple) else (got,), run.reference(), strict=True):
                relative, absolute = TOLERANCE.get(str(want.dtype), (0, 0))
                assert (array.shape, array.dtype) == (want.shape, want.dtype)
                np.testing.assert_allclose(array, want, rtol=5 * relative, atol=5 * absolute)
