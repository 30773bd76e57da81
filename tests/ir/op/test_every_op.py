"""Every declared operator, by its examples: types, the NumPy reference, the lowered loops, binding and documentation.

D3: deduced shapes are those of NumPy at random symbol values. D4: they come out in canonical form.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from weft.dtypes import is_bool, is_float, is_unsigned
from weft.ir import IRModule, assert_structural_equal, verify
from weft.ir.deduction.infer import TypeContext, infer_type
from weft.ir.deduction.subtyping import dims_of, type_symbols
from weft.ir.dim import DimExpr, evaluate, free_symbols
from weft.ir.graph import Call, Constant, Expr, GlobalVar, PrimValue, ShapeExpr, Tuple, Var
from weft.ir.interpret import interpret
from weft.ir.op import OPS, Example, OpDef
from weft.ir.op.common import kernel_call, kernel_inputs
from weft.ir.tensor import Buffer
from weft.ir.types import PrimType, TensorType, TupleType, Type

EXAMPLES = [
    pytest.param(definition, example, id=f"{definition.name}-{index}")
    for definition in OPS.values()
    for index, example in enumerate(definition.examples)
]
TOLERANCE = {"float16": (2e-2, 2e-3), "float32": (2e-5, 1e-5), "float64": (1e-9, 1e-9)}


def bound(definition: OpDef, example: Example) -> tuple[Call, dict[str, Var]]:
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


def assignments(call: Call, context: TypeContext, result: Type, least: int) -> list[dict[str, int]]:
    """Symbol values up to 5 under which every recorded check holds and every size is a size."""
    types = [result, *(context.type_of(arg) for arg in call.args)]
    names = sorted({name for ty in types for name in type_symbols(ty)} | _attr_symbols(call.attrs))
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


def random_array(ty: TensorType, symbols: Mapping[str, int], limits: Any, rng: np.random.Generator) -> np.ndarray:
    """Random values of a type within limits."""
    shape = tuple(evaluate(dim, symbols) for dim in dims_of(ty) or ())
    dtype = str(ty.dtype)
    default = (-2, 2) if is_float(dtype) else (0, 4) if is_unsigned(dtype) else (-4, 4)
    low, high = (evaluate(end, symbols) if isinstance(end, DimExpr) else end for end in limits or default)
    if is_bool(dtype):
        return rng.integers(0, 2, shape).astype("bool")
    if is_float(dtype):
        return rng.uniform(low, high, shape).astype(dtype)
    return rng.integers(low, max(low, high), shape, endpoint=True).astype(dtype)


def evaluated(expr: Expr, arrays: Mapping[Var, Any], symbols: Mapping[str, int]) -> Any:
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
        return tuple(evaluated(item, arrays, symbols) for item in expr.fields)
    raise AssertionError(f"an example has an argument {expr!r}")


class Run:
    """An example with random symbol values and random arrays."""

    def __init__(self, definition: OpDef, example: Example, seed: int) -> None:
        self.definition = definition
        self.call, variables = bound(definition, example)
        self.context = TypeContext()
        self.type = infer_type(self.call, self.context)
        choices = assignments(self.call, self.context, self.type, example.least)
        rng = np.random.default_rng(seed)
        self.symbols = choices[seed % len(choices)]
        self.arrays: dict[Var, Any] = {}
        for name, variable in variables.items():
            limits = example.ranges.get(name, example.ranges.get(name.rpartition("_")[0]))
            ty = variable.ty
            ty = TensorType((), ty.dtype) if isinstance(ty, PrimType) else ty
            assert isinstance(ty, TensorType)
            self.arrays[variable] = random_array(ty, self.symbols, limits, rng)
        self.values = [evaluated(arg, self.arrays, self.symbols) for arg in self.call.args]

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
        inputs = [evaluated(expr, self.arrays, self.symbols) for expr in kernel_inputs(self.call, self.context)]
        outputs = [np.zeros(self.shape(ty), ty.dtype) for ty in self.outputs()]
        rest = kernel.params[len(inputs) + len(outputs) :]
        assert not any(isinstance(param, Buffer) for param in rest)
        interpret(kernel)(*inputs, *outputs, *(self.symbols[param.name] for param in rest))
        return outputs


def _has_no_kernel(definition: OpDef, call: Call, context: TypeContext) -> bool:
    """Whether an example is computed by other operators; one that could be either way is so where it has no kernel."""
    if definition.decompose is None:
        return definition.lowering is None
    return definition.lower(call, context, "kernel") is None


@pytest.mark.parametrize(("definition", "example"), EXAMPLES)
def test_types_and_loops_agree_with_numpy(definition: OpDef, example: Example) -> None:
    """D3.

    The generator stands inside: hypothesis keeps the settings of every case of a parametrized test in one chain, and
    a thousand of them are more than the recursion limit.
    """

    @settings(max_examples=4, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
    @given(seed=st.integers(0, 10**6))
    def agree(seed: int) -> None:
        run = Run(definition, example, seed)
        expected = run.reference()
        types = run.outputs()
        assert [array.shape for array in expected] == [run.shape(ty) for ty in types]
        assert [str(array.dtype) for array in expected] == [ty.dtype for ty in types]
        if _has_no_kernel(definition, run.call, run.context):
            return
        for got, want in zip(run.lowered(), expected, strict=True):
            relative, absolute = TOLERANCE.get(str(want.dtype), (0, 0))
            np.testing.assert_allclose(got, want, rtol=relative, atol=absolute)

    agree()


@pytest.mark.parametrize(("definition", "example"), EXAMPLES)
def test_binding_what_unbind_gives_makes_the_same_call(definition: OpDef, example: Example) -> None:
    call, _ = bound(definition, example)
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for index, (param, value) in enumerate(definition.unbind(call)):
        if param.kind == "variadic":
            args.extend(value)
        elif len(args) == index and param is definition.params[index]:
            args.append(value)
        else:
            kwargs[param.name] = value
    assert_structural_equal(definition.bind(args, kwargs), call)


@pytest.mark.parametrize(("definition", "example"), EXAMPLES)
def test_kernels_are_well_formed_and_fit_their_calls(definition: OpDef, example: Example) -> None:
    call, _ = bound(definition, example)
    context = TypeContext()
    kernel = definition.lower(call, context, "kernel")
    if kernel is None:
        assert _has_no_kernel(definition, call, context)
        return
    assert verify(IRModule({"kernel": kernel})) == []
    replaced = kernel_call(call, kernel, GlobalVar("kernel"), context)
    assert_structural_equal(infer_type(replaced, TypeContext({"kernel": kernel})), infer_type(call))


@pytest.mark.parametrize("definition", OPS.values(), ids=list(OPS))
def test_every_operator_is_documented(definition: OpDef) -> None:
    paragraph = definition.doc.split("\n\n")[0]
    assert paragraph.endswith(".")
    assert len(paragraph) > 10
    assert definition.signature.startswith(definition.name + "(")
    assert isinstance(definition.pure, bool)


@pytest.mark.parametrize("definition", [d for d in OPS.values() if not d.builtin], ids=lambda d: d.name)
def test_every_operator_has_a_symbolic_example(definition: OpDef) -> None:
    def symbolic(value: Any) -> bool:
        if isinstance(value, (tuple, list)):
            return any(map(symbolic, value))
        return isinstance(value, DimExpr) or (isinstance(value, Type) and bool(type_symbols(value)))

    assert any(any(map(symbolic, (*e.args, *e.kwargs.values()))) for e in definition.examples)
