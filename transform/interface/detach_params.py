"""DetachParams: constants of a function become parameters, so that weights travel apart from the program.

    def main(x):                                   def main(x, constant):  num_input = 1
        y = R.matmul(x, R.const(array))      ->        y = R.matmul(x, constant)

The inverse of `BindParams`, which `detach_params` gives the arrays for. Functions that others in the module use keep
their constants, and so do arrays of fewer than `min_size` elements and scalars.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from weft.ir import Constant, Function, IRModule, Var, replace, rewrite
from weft.ir.attrs import NUM_INPUT
from weft.ir.module import fresh_name
from weft.ir.structure.references import referenced_functions
from weft.ir.structure.visit import walk
from weft.support.records import dataclass
from weft.transform.infra.base import Pass
from weft.transform.infra.generators.choices import Choices
from weft.transform.infra.options import AtLeast

__all__ = ["DetachParams", "detach_params"]


@dataclass(frozen=True)
class DetachParams(Pass):
    """Make parameters of constants of at least `min_size` elements, behind the others."""

    keeps_meaning: ClassVar[bool] = False  # callers pass the arrays
    keeps_types: ClassVar[bool] = False
    min_size: Annotated[int, AtLeast(0)] = 1

    @classmethod
    def sample(cls, choices: Choices) -> tuple[DetachParams, str]:
        """Constants, one of them used twice."""
        size = choices.pick((2, 3))
        values = ", ".join(["[" + ", ".join(["0.5"] * size) + "]"] * size)
        return (
            cls(),
            f"""@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", {size}), "float32")):
        with R.dataflow():
            y = R.matmul(x, R.const([{values}], "float32"))
            out = R.add(y, R.const([{", ".join(["1.0"] * size)}], "float32"))
            R.output(out)
        return out
""",
        )

    def run(self, module: IRModule) -> IRModule:
        """Detach the constants of every function that nothing in the module refers to."""
        return _detached(module, self.min_size)[0]


def detach_params(module: IRModule, min_size: int = 1) -> tuple[IRModule, dict[str, dict[str, Any]]]:
    """The module with constants as parameters, and their arrays by function and parameter.

    >>> import numpy as np
    >>> import weft
    >>> head = '@R.function\\ndef main(x: R.Tensor((2,), "float32")):\\n'
    >>> module = weft.IRModule({"main": weft.parse(head + '    return R.add(x, R.const([1.0, 2.0], "float32"))')})
    >>> detached, arrays = detach_params(module)
    >>> arrays
    {'main': {'constant': array([1., 2.], dtype=float32)}}
    >>> bound = weft.transform.BindParams("main", arrays["main"])(detached)
    >>> weft.structural_equal(bound["main"].body, module["main"].body)
    True
    """
    new, found = _detached(module, min_size)
    return new, {name: {var.name: array for var, array in params.items()} for name, params in found.items()}


def _detached(module: IRModule, min_size: int) -> tuple[IRModule, dict[str, Mapping[Var, Any]]]:
    used = {name for other in module.functions.values() for name in referenced_functions(other)}
    arrays: dict[str, Mapping[Var, Any]] = {}
    for name, function in module.items():
        if isinstance(function, Function) and name not in used:
            new, found = _function(function, min_size)
            if found:
                module, arrays[name] = module.with_function(name, new), found
    return module, arrays


def _function(function: Function, min_size: int) -> tuple[Function, Mapping[Var, Any]]:
    names = {param.name for param in function.params}
    found: dict[Constant, Var] = {}
    for node in walk(function.body):
        if isinstance(node, Constant) and node not in found and node.data.ndim and node.data.size >= min_size:
            name = fresh_name("constant", names)
            names.add(name)
            found[node] = Var(name, node.ty)
    if not found:
        return function, {}
    body = rewrite(function.body, lambda node: found.get(node) if isinstance(node, Constant) else None)
    new = replace(function, params=(*function.params, *found.values()), body=body)
    if NUM_INPUT not in function.attrs:
        new = new.with_attr(NUM_INPUT, len(function.params))
    return new, {var: constant.data for constant, var in found.items()}
