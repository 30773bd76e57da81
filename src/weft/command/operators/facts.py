"""What follows from an operator's declaration and is said of it: found by asking its rule, its lowering, its reference.

    shapes     how the shapes of the operands give that of the result, in symbols
    dtypes     what the rule gives for each dtype, or the code of its refusal
    becomes    the loops, the simpler operators or the library call that it is lowered to
    cost       bytes that a call reads and writes, operations of sums of products (`weft.transform.rewrite.cost`)
    result     the values of a small example

Nothing of this is written by hand, so that it holds. What an example does not show is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

import weft
from weft.dtypes import is_bool, is_float, is_numpy, is_unsigned
from weft.errors import WeftError
from weft.ir.builder import BlockBuilder
from weft.ir.deduction.infer import TypeContext, type_text
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import Dim, DimExpr, evaluate, free_symbols
from weft.ir.graph import Call, Constant, Expr, ExternFunc, GlobalVar, Op, PrimValue, ShapeExpr, Tuple, Var
from weft.ir.op import Example, OpDef
from weft.ir.structure.visit import children, walk
from weft.ir.tensor import For, PrimFunc
from weft.ir.types import TensorType, TupleType, Type
from weft.support.records import dataclass
from weft.transform import LegalizeOps
from weft.transform.analysis.op_cost import flops, memory_traffic, terms_of_sums

__all__ = ["Sample", "becomes", "cost", "dtypes_taken", "result_of", "samples", "shapes"]

_KINDS = {
    "bool": ("bool",),
    "int": ("int8", "int32", "int64"),
    "uint": ("uint8", "uint32"),
    "float16, bfloat16": ("float16", "bfloat16"),
    "float32, float64": ("float32", "float64"),
}
_MOST_ELEMENTS = 12
"""Of an array that is shown."""


@dataclass(frozen=True)
class Sample:
    """An example as a call on variables, with its type and the variables by parameter name."""

    definition: OpDef
    example: Example
    call: Call
    type: Type
    variables: Mapping[str, Var]

    @staticmethod
    def of(definition: OpDef, example: Example) -> Sample | None:
        """None for what has a meaning only inside a module, or is refused."""
        try:
            return Sample.asked(definition, example)
        except WeftError:
            return None

    @staticmethod
    def asked(definition: OpDef, example: Example) -> Sample:
        """With the error of the rule where there is one."""
        variables: dict[str, Var] = {}
        args = [_stand_in(value, f"x{at}", variables) for at, value in enumerate(example.args)]
        kwargs = {key: _stand_in(value, key, variables) for key, value in example.kwargs.items()}
        call = definition.bind(args, kwargs)
        return Sample(definition, example, call, definition.infer(call, TypeContext()), variables)

    @property
    def symbols(self) -> tuple[str, ...]:
        """The symbols in the shapes of its operands and of its result."""
        types = [self.type, *(variable.ty for variable in self.variables.values())]
        return tuple(sorted({name for ty in types for dim in _dims(ty) for name in free_symbols(dim)}))


def _stand_in(value: Any, name: str, variables: dict[str, Var]) -> Any:
    if isinstance(value, Type):
        return variables.setdefault(name, Var(name, value))
    if isinstance(value, tuple | list):
        return type(value)(_stand_in(item, f"{name}_{at}", variables) for at, item in enumerate(value))
    return value


def _dims(ty: Type | None) -> Iterator[Dim]:
    if isinstance(ty, TupleType):
        for part in ty.fields:
            yield from _dims(part)
    elif isinstance(ty, TensorType):
        yield from dims_of(ty) or ()


def samples(definition: OpDef) -> list[Sample]:
    """The examples of an operator that can be asked, those with symbols first."""
    found = [sample for example in definition.examples if (sample := Sample.of(definition, example)) is not None]
    return sorted(found, key=lambda sample: not sample.symbols)


def shapes(sample: Sample) -> str | None:
    """`(n, 4), (4,) -> (n, 4)`; None where an operand is no tensor of known rank.

    >>> from weft.ir.op import get_op
    >>> shapes(samples(get_op("matmul"))[0])
    '(n, 4), (4, m) -> (n, m)'
    """
    operands = [_shape(variable.ty) for variable in sample.variables.values()]
    result = _shape(sample.type)
    if result is None or any(operand is None for operand in operands):
        return None
    return f"{', '.join(map(str, operands))} -> {result}".lstrip()


def _shape(ty: Type | None) -> str | None:
    if isinstance(ty, TupleType):
        parts = [_shape(part) for part in ty.fields]
        return None if None in parts else f"[{', '.join(map(str, parts))}]"
    dims = dims_of(ty) if isinstance(ty, TensorType) else None
    if dims is None:
        return None
    return f"({dims[0]},)" if len(dims) == 1 else f"({', '.join(map(str, dims))})"


def dtypes_taken(definition: OpDef) -> str | None:
    """What the rule gives where the first operand, and those of its dtype, have another one.

    >>> from weft.ir.op import get_op
    >>> dtypes_taken(get_op("less"))
    'all to bool'
    >>> dtypes_taken(get_op("nn.softmax"))
    'float16, bfloat16, float32, float64 to the same; others: W321'
    """
    found = samples(definition)
    first = next((var.ty for sample in found for var in sample.variables.values()), None)
    if not isinstance(first, TensorType) or first.dtype is None:
        return None
    given = {dtype: _outcome(found[0], str(first.dtype), dtype) for kind in _KINDS.values() for dtype in kind}
    refused = sorted({str(code) for code in given.values() if isinstance(code, str)})
    taken = {dtype: outcome for dtype, outcome in given.items() if not isinstance(outcome, str)}
    if len(set(taken.values())) > 1:  # it follows the operand
        named = {d: tuple("the same" if part == d else part for part in parts) for d, parts in taken.items()}
    else:
        named = taken
    outcomes: dict[str, list[str]] = {}
    for kind, members in _KINDS.items():
        alike = len({named.get(dtype) for dtype in members}) == 1
        for dtype in members[:1] if alike else members:
            if dtype in named:
                outcomes.setdefault(", ".join(dict.fromkeys(named[dtype])), []).append(kind if alike else dtype)
    if not outcomes:
        return None
    if len(outcomes) == 1 and not refused:
        return f"all to {next(iter(outcomes))}"
    texts = [f"{', '.join(kinds)} to {outcome}" for outcome, kinds in outcomes.items()]
    return "; ".join([*texts, *([f"others: {', '.join(refused)}"] if refused else [])])


def _outcome(sample: Sample, old: str, new: str) -> str | tuple[str, ...]:
    """The dtypes of the result where operands of one dtype have another one, or the code of the refusal."""

    def other(value: Any) -> Any:
        if isinstance(value, TensorType) and value.dtype == old:
            return replace(value, dtype=new)
        return type(value)(map(other, value)) if isinstance(value, tuple | list) else value

    example = sample.example
    changed = replace(
        example,
        args=tuple(map(other, example.args)),
        kwargs={key: other(value) for key, value in example.kwargs.items()},
    )
    try:
        result = Sample.asked(sample.definition, changed).type
    except WeftError as error:
        return error.code
    parts = getattr(result, "fields", (result,))
    return tuple(str(getattr(part, "dtype", type_text(part))) for part in parts)


def becomes(definition: OpDef) -> str:
    """What a call is lowered to.

    >>> from weft.ir.op import get_op
    >>> becomes(get_op("exp"))
    'a kernel of 1 loop nest, at most 2 loops deep'
    """
    for sample in samples(definition):
        try:
            text = _lowered(sample)
        except WeftError:
            continue
        if text is not None:
            return text
    return f"stays a call, whose meaning is from {definition.builtin}" if definition.builtin else "stays a call"


def _lowered(sample: Sample) -> str | None:
    """The kernel of a sample, or the calls that it is written out as."""
    definition = sample.definition
    kernel = definition.lower(sample.call, TypeContext(), "kernel")
    if kernel is not None:
        return _kernel_text(kernel)
    if definition.decompose is None:
        return None
    builder = BlockBuilder()
    with builder.function("main", list(sample.variables.values())):
        builder.emit_func_output(builder.emit(sample.call))
    module = LegalizeOps()(builder.get())
    calls = [item for item in walk(module["main"]) if isinstance(item, Call)]
    outside = sorted({_outside(call) for call in calls} - {""})
    kernels = sum(isinstance(function, PrimFunc) for function in module.functions.values())
    parts = [f"{kernels} kernel{'s' * (kernels > 1)}"] if kernels else []
    return " and ".join([*parts, *(f"`{name}` of the runtime" for name in outside)]) or None


def _outside(call: Call) -> str:
    """The function outside of the module that a call is of, by name."""
    if isinstance(call.op, Op) and call.op.name in ("call_packed", "call_pure_packed", "call_dps_packed", "call_py"):
        callee = call.args[0]
        return callee.name if isinstance(callee, ExternFunc | GlobalVar) else str(getattr(callee, "value", ""))
    return ""


def _kernel_text(kernel: PrimFunc) -> str:
    depths: list[int] = []

    def count(node: Any, depth: int) -> None:
        if isinstance(node, For):
            if depth == 0:
                depths.append(0)
            depths[-1] = max(depths[-1], depth + 1)
        for child in children(node):
            count(child, depth + isinstance(node, For))

    count(kernel.body, 0)
    if not depths:
        return "a kernel without loops"
    nests = f"{len(depths)} loop nest{'s' * (len(depths) > 1)}"
    return f"a kernel of {nests}, at most {max(depths)} loop{'s' * (max(depths) > 1)} deep"


def cost(sample: Sample) -> str | None:
    """The bytes that a call reads and writes, and the operations of sums of products; None where sizes are not known.

    >>> from weft.ir.op import get_op
    >>> cost(samples(get_op("matmul"))[0])
    '8 * m * n operations; 4 * m * n + 16 * m + 16 * n bytes'
    """
    context = TypeContext()
    try:
        traffic, terms = memory_traffic(sample.call, context), terms_of_sums(sample.call, context)
        operations = flops(sample.call, context) if terms is not None else None
    except WeftError:
        return None
    if traffic is None:
        return None
    return f"{traffic} bytes" if operations is None else f"{operations} operations; {traffic} bytes"


def result_of(sample: Sample) -> str | None:
    """A call on small numbers and what comes out, as Python: None where a value has no such text or is too long.

    >>> from weft.ir.op import get_op
    >>> print([*filter(None, map(result_of, samples(get_op("cumsum"))))][1])
    R.cumsum([[0.0, 0.5, 1.0], [1.5, 2.0, 2.5]]) = [0.0, 0.5, 1.5, 3.0, 5.0, 7.5]
    """
    if sample.definition.numpy is None or sample.symbols:
        return None
    arrays: dict[Var, np.ndarray] = {}
    for at, (name, variable) in enumerate(sample.variables.items()):
        array = _numbers(variable.ty, sample.example.ranges.get(_parameter(sample, name)), at)
        if array is None:
            return None
        arrays[variable] = array
    try:
        values = [_value(arg, arrays) for arg in sample.call.args]
        with np.errstate(all="ignore"):
            result = sample.definition.run(sample.call, values, {})
    except (WeftError, ValueError, TypeError):
        return None
    text = _result_text(result)
    if text is None:
        return None
    given = [_given_text(value, sample, arrays, f"x{at}") for at, value in enumerate(sample.example.args)]
    given += [f"{key}={_given_text(value, sample, arrays, key)}" for key, value in sample.example.kwargs.items()]
    return f"R.{sample.definition.name}({', '.join(given)}) = {text}"


def _parameter(sample: Sample, name: str) -> str:
    params = sample.definition.params
    place = name[1:].partition("_")[0]
    return params[min(int(place), len(params) - 1)].name if name[0] == "x" and place.isdigit() else name


def _numbers(ty: Type | None, limits: Any, seed: int) -> np.ndarray | None:
    """A few numbers that are easy to follow, within limits."""
    dims = dims_of(ty) if isinstance(ty, TensorType) else None
    if dims is None or not isinstance(ty, TensorType) or any(isinstance(dim, DimExpr) for dim in dims):
        return None
    size, dtype = int(np.prod([int(dim) for dim in dims], dtype=int)), str(ty.dtype)
    if size > _MOST_ELEMENTS or not is_numpy(dtype):
        return None
    steps = np.arange(size) + seed
    if is_bool(dtype):
        flat = steps % 2 == 0
    elif limits is None:
        flat = steps / 2 if is_float(dtype) else steps % 5 if is_unsigned(dtype) else steps - 1
    else:
        low, high = (evaluate(end, {}) if isinstance(end, DimExpr) else end for end in limits)
        flat = low + (high - low) * (steps % 5) / 4
    return np.asarray(flat).astype(dtype).reshape([int(dim) for dim in dims])


def _value(expr: Expr, arrays: Mapping[Var, Any]) -> Any:
    if isinstance(expr, Var):
        return arrays[expr]
    if isinstance(expr, Constant):
        return expr.data
    if isinstance(expr, ShapeExpr):
        return tuple(evaluate(dim, {}) for dim in expr.dims)
    if isinstance(expr, PrimValue):
        return np.asarray(evaluate(expr.value, {}) if isinstance(expr.value, DimExpr) else expr.value, expr.dtype)[()]
    if isinstance(expr, Tuple):
        return tuple(_value(item, arrays) for item in expr.fields)
    raise TypeError(f"{type(expr).__name__} has no value here")


def _array_text(array: Any) -> str:
    return str(np.asarray(array).astype("float64").round(4).tolist() if is_float(str(array.dtype)) else array.tolist())


def _result_text(result: Any) -> str | None:
    parts = result if isinstance(result, tuple | list) else [result]
    arrays = [np.asarray(part) for part in parts]
    if any(array.dtype == object or array.size > _MOST_ELEMENTS for array in arrays):
        return None
    texts = [_array_text(array) for array in arrays]
    return texts[0] if len(texts) == 1 and not isinstance(result, tuple | list) else f"({', '.join(texts)})"


def _given_text(value: Any, sample: Sample, arrays: Mapping[Var, Any], name: str) -> str:
    if isinstance(value, Type):
        return _array_text(arrays[sample.variables[name]])
    if isinstance(value, tuple | list):
        parts = [_given_text(item, sample, arrays, f"{name}_{at}") for at, item in enumerate(value)]
        inner = ", ".join(parts)
        return f"[{inner}]" if isinstance(value, list) else f"({inner},)" if len(parts) == 1 else f"({inner})"
    if isinstance(value, np.ndarray):
        return _array_text(value)
    return str(value) if isinstance(value, weft.ir.Node) or hasattr(value, "terms") else repr(value)
