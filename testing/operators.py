"""What must hold of an operator's declaration: the tests that every operator of weft has, for those from outside too.

    check_operator("example.triple")

For each example of the declaration, at several values of its symbols (sizes of 0 and 1 among them) and random arrays:

    types       the deduced types are those of the NumPy reference, the sizes evaluated
    kernel      the lowered loops, where there are some, are well-formed and compute what the reference says
    text        the call prints and reads back as itself
    programs    the interpreter and compiled code compute what the reference says

Errors are AssertionError, which names the operator and the example. `Run` is one example with values: tests of weft
compare by it in other ways.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from weft.codegen import compile
from weft.dtypes import is_bool, is_complex, is_float, is_unsigned
from weft.ir import IRModule, verify
from weft.ir.builder import BlockBuilder
from weft.ir.deduction.infer import TypeContext, infer_type
from weft.ir.deduction.subtyping import dims_of, type_symbols
from weft.ir.dim import DimExpr, evaluate, free_symbols, symbol
from weft.ir.graph import Call, Constant, Expr, PrimValue, ShapeExpr, Tuple, Var
from weft.ir.interpret import interpret
from weft.ir.op import Example, OpDef, get_op
from weft.ir.op.common import kernel_inputs
from weft.ir.tensor import Buffer
from weft.ir.types import PrimType, ShapeType, TensorType, TupleType, Type
from weft.testing.checks import check_round_trip

__all__ = ["TOLERANCE", "Run", "bound_example", "check_operator", "has_no_kernel"]

TOLERANCE = {
    "float16": (2e-2, 2e-3),
    "float32": (2e-5, 1e-5),
    "float64": (1e-9, 1e-9),
    "complex64": (2e-5, 1e-5),
    "complex128": (1e-9, 1e-9),
}
"""(relative, absolute) by dtype; what is no float is equal."""


def bound_example(definition: OpDef, example: Example) -> tuple[Call, dict[str, Var]]:
    """The call of an example, with a variable for each type, and the variables by parameter name."""
    variables: dict[str, Var] = {}

    def value(item: Any, name: str) -> Any:
        if isinstance(item, Type):
            variables[name] = Var(name, item)
            return variables[name]
        if isinstance(item, (tuple, list)) and any(isinstance(part, Type) for part in item):
            return tuple(value(part, f"{name}_{index}") for index, part in enumerate(item))
        return item

    names = [param.name for param in definition.params]
    names += [f"{names[-1]}_{index}" for index in range(len(example.args) - len(names))]
    args = [value(item, name) for item, name in zip(example.args, names, strict=False)]
    kwargs = {name: value(item, name) for name, item in example.kwargs.items()}
    return definition.bind(args, kwargs), variables


def _assignments(call: Call, context: TypeContext, result: Type, least: int) -> list[dict[str, int]]:
    """Symbol values up to 5 under which every recorded check holds and every size is a size."""
    types = [result, *(context.type_of(arg) for arg in call.args)]
    numbers = tuple(arg.value for arg in call.args if isinstance(arg, PrimValue))
    symbolic = _attr_symbols(call.attrs) | _attr_symbols(numbers)
    names = sorted({name for ty in types for name in type_symbols(ty)} | symbolic)
    found = []
    for values in itertools.product((3, 2, 5, 1, 4, 0), repeat=len(names)):
        symbols = dict(zip(names, values, strict=True))
        if min(values, default=least) < least:
            continue
        if all(check.holds(evaluate(check.lhs, symbols), evaluate(check.rhs, symbols)) for check in context.checks):
            if all(evaluate(dim, symbols) >= 0 for dim in _dims(result)):
                found.append(symbols)
    assert found, "no symbol values satisfy the checks"
    return found[:24]


def _dims(ty: Type) -> Iterator[Any]:
    if isinstance(ty, TupleType):
        for part in ty.fields:
            yield from _dims(part)
    else:
        yield from dims_of(ty) or ()


def _attr_symbols(value: Any) -> set[str]:
    if isinstance(value, DimExpr):
        return set(free_symbols(value))
    if isinstance(value, Mapping):
        return {name for item in value.values() for name in _attr_symbols(item)}
    if isinstance(value, tuple):
        return {name for item in value for name in _attr_symbols(item)}
    return set()


def _random_array(ty: TensorType, symbols: Mapping[str, int], limits: Any, rng: np.random.Generator) -> np.ndarray:
    """Random values of a type within limits."""
    shape = tuple(evaluate(dim, symbols) for dim in dims_of(ty) or ())
    dtype = str(ty.dtype)
    default = (-2, 2) if is_float(dtype) or is_complex(dtype) else (0, 4) if is_unsigned(dtype) else (-4, 4)
    low, high = (evaluate(end, symbols) if isinstance(end, DimExpr) else end for end in limits or default)
    if is_bool(dtype):
        return rng.integers(0, 2, shape).astype("bool")
    if is_float(dtype):
        return rng.uniform(low, high, shape).astype(dtype)
    if is_complex(dtype):
        return (rng.uniform(low, high, shape) + 1j * rng.uniform(low, high, shape)).astype(dtype)
    return rng.integers(low, max(low, high), shape, endpoint=True).astype(dtype)


def _evaluated(expr: Expr, arrays: Mapping[Var, Any], symbols: Mapping[str, int]) -> Any:
    """The value of an argument."""
    if isinstance(expr, Var):
        return arrays[expr]
    if isinstance(expr, Constant):
        return expr.data
    if isinstance(expr, ShapeExpr):
        return tuple(evaluate(dim, symbols) for dim in expr.dims)
    if isinstance(expr, PrimValue):
        return np.asarray(evaluate(expr.value, symbols) if isinstance(expr.value, DimExpr) else expr.value, expr.dtype)[
            ()
        ]
    if isinstance(expr, Tuple):
        return tuple(_evaluated(item, arrays, symbols) for item in expr.fields)
    raise AssertionError(f"an example has an argument {expr!r}")


class Run:
    """An example with random symbol values and random arrays."""

    def __init__(self, definition: OpDef, example: Example, seed: int) -> None:
        self.definition, self.example = definition, example
        self.call, variables = bound_example(definition, example)
        self.context = TypeContext()
        self.type = infer_type(self.call, self.context)
        choices = _assignments(self.call, self.context, self.type, example.least)
        rng = np.random.default_rng(seed)
        self.symbols = choices[seed % len(choices)]
        self.arrays: dict[Var, Any] = {}
        for name, variable in variables.items():
            limits = example.ranges.get(name, example.ranges.get(name.rpartition("_")[0]))
            ty = variable.ty
            ty = TensorType((), ty.dtype) if isinstance(ty, PrimType) else ty
            assert isinstance(ty, TensorType)
            self.arrays[variable] = _random_array(ty, self.symbols, limits, rng)
        self.values = [_evaluated(arg, self.arrays, self.symbols) for arg in self.call.args]

    def reference(self) -> list[np.ndarray]:
        """The outputs of the NumPy reference."""
        with np.errstate(all="ignore"):
            result = self.definition.run(self.call, self.values, self.symbols)
        return [np.asarray(part) for part in (result if isinstance(result, tuple) else (result,))]

    def outputs(self) -> list[TensorType]:
        """The output types."""
        fields = self.type.fields if isinstance(self.type, TupleType) else (self.type,)
        assert all(isinstance(field, TensorType) for field in fields)
        return list(fields)  # type: ignore[arg-type]

    def shape(self, ty: TensorType) -> tuple[int, ...]:
        """A type's shape in numbers."""
        dims = dims_of(ty)
        assert dims is not None
        return tuple(evaluate(dim, self.symbols) for dim in dims)

    def lowered(self) -> list[np.ndarray]:
        """The outputs of the lowered loops, run by the reference interpreter."""
        kernel = self.definition.lower(self.call, self.context, "kernel")
        assert kernel is not None
        inputs = [_evaluated(expr, self.arrays, self.symbols) for expr in kernel_inputs(self.call, self.context)]
        outputs = [np.zeros(self.shape(ty), ty.dtype) for ty in self.outputs()]
        rest = kernel.params[len(inputs) + len(outputs) :]
        assert not any(isinstance(param, Buffer) for param in rest)
        interpret(kernel)(*inputs, *outputs, *(self.symbols[param.name] for param in rest))
        return outputs


def has_no_kernel(definition: OpDef, call: Call, context: TypeContext) -> bool:
    """Whether an example is computed by other operators; one that could be either way is so where it has no kernel."""
    if definition.decompose is None:
        return definition.lowering is None
    return definition.lower(call, context, "kernel") is None


def check_operator(operator: str | OpDef, seeds: int = 4) -> None:
    """Compare an operator with its reference at its examples; AssertionError names the example that differs.

    >>> check_operator("nn.relu", seeds=2)
    """
    definition = get_op(operator) if isinstance(operator, str) else operator
    if not definition.examples or definition.numpy is None:
        raise AssertionError(f"R.{definition.name} has no examples, or no reference, to compare by")
    for number, example in enumerate(definition.examples):
        try:
            check_round_trip(_program(definition, example))
            for seed in range(seeds):
                _check_run(Run(definition, example, 101 * seed + number))
        except Exception as error:
            raise AssertionError(f"R.{definition.name}, example {number + 1}: {error}") from error


def _check_run(run: Run) -> None:
    expected, types = run.reference(), run.outputs()
    given = [(array.shape, str(array.dtype)) for array in expected]
    stated = [(run.shape(ty), ty.dtype) for ty in types]
    assert given == stated, f"the reference gives {given}, the types say {stated} at {run.symbols}"
    program = _program(run.definition, run.example)
    arguments = [*run.arrays.values(), tuple(run.symbols.values())]
    ways: dict[str, Any] = {"compiled code": compile(program)["main"], "the interpreter": interpret(program)["main"]}
    found = {name: way(*arguments) for name, way in ways.items()}
    if not has_no_kernel(run.definition, run.call, run.context):
        kernel = run.definition.lower(run.call, run.context, "kernel")
        assert kernel is not None
        assert verify(IRModule({"kernel": kernel})) == [], "the kernel is not well-formed"
        found["the kernel"] = tuple(run.lowered())
    for name, got in found.items():
        for array, want in zip(got if isinstance(got, tuple) else (got,), expected, strict=True):
            relative, absolute = TOLERANCE.get(str(want.dtype), (0, 0))
            message = f"{name} differs from the reference at {run.symbols}"
            np.testing.assert_allclose(array, want, 5 * relative, 5 * absolute, err_msg=message)


def _program(definition: OpDef, example: Example) -> IRModule:
    """A function of an example; its symbols come by a parameter, too, so that all are bound."""
    run = Run(definition, example, 0)
    builder = BlockBuilder()
    params = [*run.arrays, Var("sizes", ShapeType(tuple(symbol(name) for name in run.symbols)))]
    with builder.function("main", params):
        with builder.dataflow():
            result = builder.emit_output(builder.emit(run.call))
        builder.emit_func_output(result)
    return builder.get()
