"""The operator record: one declaration holds everything that is known about an operator.

    OpDef  ::= name, params, rule, doc, pure, (lower | decompose), numpy, examples
    Param  ::= name, kind, default, of, optional

Kinds of parameters and where their values live in a `Call`:

    expr      a run-time value                                            args
    exprs     a tuple or list of run-time values, or a tuple variable     args, as one Tuple (or the variable)
    shape     a tuple of dimensions, or a variable of shape type          args, as a ShapeExpr (or the variable)
    prim      a scalar: number, dimension, PrimValue, constant, variable  args, numbers as PrimValue
    variadic  any number of run-time values                               args, one each
    callee    a function of the module, or the name of an extern one      args, as GlobalVar or ExternFunc
    attr      fixed at compile time: numbers, strings, dimensions, tuples attrs
    dtype     a dtype (None allowed when that is the default)             attrs
    types     a type, or a list of them                                   ty_args, a list of several as one TupleType

Run-time parameters stand in `args` in the order of declaration. Optional ones (default None) that are absent at the
end are left out; absent ones before a present one are named in `attrs["absent"]`. Attributes equal to their default
are left out, so that one call has one form.

A Python number given for an `expr` becomes a constant of the dtype of the other tensors in the call.
An operator without a lowering says who gives it meaning (`builtin`); what is computed has a NumPy reference in any
case. A declaration that lacks a part fails when made.

Errors: ScriptError W140 unknown operator, W141 wrong arguments, W142 a value of the wrong kind; DTypeError W310 a
number that the adopted dtype cannot hold.
"""

from __future__ import annotations

import difflib
import inspect
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from typing import Any, Literal, cast

import numpy as np

from weft.dtypes import can_hold, check_dtype, is_bool, is_complex, is_float, is_integer, is_numpy, max_value
from weft.errors import DTypeError, ScriptError, ShapeError, Span, WeftError, described
from weft.ir.attrs import ABSENT
from weft.ir.deduction.device_mesh import DeviceMesh, parse_placement
from weft.ir.deduction.infer import TypeContext, quick_type, type_text
from weft.ir.dim import Dim, DimExpr, evaluate
from weft.ir.graph import Call, Constant, Expr, ExternFunc, GlobalVar, Op, PrimValue, ShapeExpr, StringImm, Tuple, Var
from weft.ir.kernel.index_map import index_map_text
from weft.ir.node import FrozenMap
from weft.ir.op.precision import UNDECLARED, Precision
from weft.ir.tensor import IntImm, PrimExpr, PrimFunc
from weft.ir.types import AnyType, PrimType, TensorType, TupleType, Type, VDevice
from weft.support.guards import is_array, is_listing
from weft.support.records import dataclass, record

__all__ = [
    "FIXED",
    "REQUIRED",
    "RUN_TIME",
    "Arguments",
    "Builtin",
    "Example",
    "Lower",
    "Numbers",
    "OpDef",
    "Param",
    "ParamKind",
    "Reference",
    "ValueKind",
    "constant_like",
]


class ParamKind(StrEnum):
    """Where the value of a parameter lives in a call; see the module."""

    EXPR = "expr"
    EXPRS = "exprs"
    SHAPE = "shape"
    PRIM = "prim"
    VARIADIC = "variadic"
    CALLEE = "callee"
    ATTR = "attr"
    DTYPE = "dtype"
    TYPES = "types"


class ValueKind(StrEnum):
    """What a value may be."""

    INT = "int"
    BOOL = "bool"
    FLOAT = "float"
    STR = "str"
    DIM = "dim"
    INTS = "ints"
    DIMS = "dims"
    SECTIONS = "sections"
    DEVICE = "device"
    INDEX_MAP = "index_map"
    MESH = "mesh"
    PLACEMENT = "placement"
    SEVERAL = "several"
    STATED = "stated"
    ANY = "any"


RUN_TIME = frozenset(
    (
        ParamKind.EXPR,
        ParamKind.EXPRS,
        ParamKind.SHAPE,
        ParamKind.PRIM,
        ParamKind.VARIADIC,
        ParamKind.CALLEE,
    )
)
FIXED = frozenset((ParamKind.ATTR, ParamKind.DTYPE))
"""The kinds whose values are attributes of the call."""


# Tables, because an enumeration looks through its members at each question, and a thousand parameters are declared.
_PARAM_KINDS = {str(kind): kind for kind in ParamKind}
_VALUE_KINDS = {str(kind): kind for kind in ValueKind}

_KindText = Literal["expr", "exprs", "shape", "prim", "variadic", "callee", "attr", "dtype", "types"]


class _Required:
    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED = _Required()


@record
class Param:
    """A parameter: name, kind (see the module), default, and for attributes what they may be.

    Declarations write kinds by their texts. `of` is a `ValueKind`; ints and dims take a single value as well, sections
    are a number or a list of dimensions; a `?` after it allows None (`optional`). A run-time value that
    is no operand of the arithmetic says so by `of` int (indices) or bool (conditions): numbers beside it do not take
    its dtype, and it does not take theirs. Values that must come as a list or a tuple, even one alone, say `several`;
    a dtype for which "void" is not another word for None says `stated`.
    """

    name: str
    kind: ParamKind | _KindText = ParamKind.EXPR
    default: Any = REQUIRED
    of: ValueKind | str = ValueKind.ANY
    optional: bool = False

    def __post_init__(self) -> None:
        of = self.of.removesuffix("?")
        kind, value_kind = _PARAM_KINDS.get(self.kind), _VALUE_KINDS.get(of)
        if kind is None:
            raise ValueError(f"parameter {self.name}: unknown kind {self.kind!r}; one of {', '.join(ParamKind)}")
        if value_kind is None:
            raise ValueError(f"parameter {self.name}: unknown value kind {of!r}; one of {', '.join(ValueKind)}")
        object.__setattr__(self, "optional", self.optional or self.of != of)
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "of", value_kind)

    @property
    def required(self) -> bool:
        """Whether a call must give it."""
        return self.default is REQUIRED and self.kind != "variadic"


@dataclass(frozen=True)
class Example:
    """Arguments for documentation and generated tests: types stand for run-time values of that type.

    `ranges` gives, by parameter name, the interval that random values come from (integers: ends included; an end may
    be a dimension); without one: [-2, 2] for floats, [-4, 4] for signed and [0, 4] for unsigned integers. `least` is
    the least value of its symbols (1 where an empty input is an error).
    """

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    ranges: Mapping[str, tuple[Any, Any]] = field(default_factory=dict[str, tuple[Any, Any]])
    least: int = 0


class Arguments:
    """The values of a call by parameter name: expressions (None when absent), attributes with their defaults."""

    __slots__ = ("_values", "call")

    def __init__(self, definition: OpDef, call: Call) -> None:
        self.call = call
        self._values = definition.values(call)

    def __getattr__(self, name: str) -> Any:
        try:
            return self._values[name]
        except KeyError:
            raise AttributeError(f"{_name_of(self.call)} has no parameter {name}") from None

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    @property
    def name(self) -> str:
        """The operator, as the script writes it."""
        return f"R.{_name_of(self.call)}"

    @property
    def span(self) -> Span | None:
        """The span of the call."""
        return self.call.span


def _name_of(call: Call) -> str:
    return call.op.name if isinstance(call.op, Op) else "?"


Rule = Callable[[Arguments, TypeContext], Type]
Lower = Callable[[Arguments, TypeContext, str], PrimFunc | None]


class Builtin(StrEnum):
    """Who gives an operator meaning that no kernel, and no operator with one, computes."""

    NOBODY = ""  # it is computed
    EXECUTORS = "the interpreter and the executors"
    MEMORY = "the interpreter and the lowering to explicit memory"
    WRITTEN_OUT = "the operators, numbers or dimensions that it is written out as"
    ATTENTION = "a library of attention, by R.call_dps_packed"
    CALLER = "the passes of the caller: no executor runs tensors that are spread over a mesh"


Numbers = Callable[[Any], Any] | Callable[[Any, Any], Any] | Callable[[Any, Any, Any], Any]
"""A function of a value and of at most two attributes, by name."""
Reference = (
    Callable[[Any], Any]
    | Callable[[Any, Any], Any]
    | Callable[[Any, Any, Any], Any]
    | Callable[[Any, Any, Any, Any], Any]
    | Callable[[Any, Any, Any, Any, Any], Any]
    | Callable[[Any, Any, Any, Any, Any, Any], Any]
    | Callable[..., Any]
)
"""A function of the run-time values in order and of the attributes by name; from it the parameters of a lambda are
typed."""


@dataclass(frozen=True, eq=False, repr=False)
class OpDef:
    """An operator, declared once.

    `rule(arguments, context)` gives the type. `lowering(arguments, context, name)` gives the kernel (None where shapes
    are not known), or `decompose(arguments, builder)` an expression in simpler operators, or the call itself where it
    stays. `numpy` takes the run-time values in order (arrays, tuples of ints for shapes, scalars, None when absent) and
    the attributes by name.
    """

    name: str
    params: tuple[Param, ...]
    rule: Rule
    doc: str
    lowering: Lower | None = None
    decompose: Callable[[Arguments, Any], Expr] | None = None
    numpy: Callable[..., Any] | None = None
    pure: bool = False
    examples: tuple[Example, ...] = ()
    builtin: Builtin | str = Builtin.NOBODY  # from outside also in words of its own
    family: str = ""
    selects: str = ""
    """The parameter whose elements, or the greatest of some of them, its result consists of: an increasing function of
    elements may be applied before it as well as after it."""
    layout: Callable[..., Any] | str = ""
    """How it computes on operands whose axes lie otherwise (`weft.ir.op.layout_rules`), or why it does not."""
    precision: Precision = UNDECLARED
    """Whether it may compute in half precision (`weft.ir.op.precision`)."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "doc", (self.doc or "").strip())
        object.__setattr__(self, "__doc__", self.doc)  # what help() and notebooks show of R.<name>
        missing: list[str] = []
        if not self.doc and sys.flags.optimize < 2:  # python -OO takes docstrings away
            missing.append("doc")
        computed = self.lowering is not None or self.decompose is not None
        if not computed and not self.builtin:
            missing.append("lowering (or decompose, or builtin)")
        if self.numpy is None and (computed or not self.builtin):  # what is computed has a reference, whoever helps
            missing.append("numpy")
        if not self.examples and not self.builtin:
            missing.append("examples")
        names = [param.name for param in self.params]
        if len(set(names)) != len(names):
            missing.append("distinct parameter names")
        if missing:
            raise TypeError(f"operator {self.name}: the declaration lacks {', '.join(missing)}")

    def __repr__(self) -> str:
        return f"<operator {self.name}>"

    @property
    def is_computed(self) -> bool:
        """Whether calls become kernels, or simpler operators that do."""
        return self.lowering is not None or self.decompose is not None

    @property
    def __signature__(self) -> inspect.Signature:
        """The parameters, as inspect and editors ask for them."""
        made: list[inspect.Parameter] = []
        kind: Any = inspect.Parameter.POSITIONAL_OR_KEYWORD
        for param in self.params:
            if param.kind == ParamKind.VARIADIC:
                made.append(inspect.Parameter(param.name, inspect.Parameter.VAR_POSITIONAL))
                kind = inspect.Parameter.KEYWORD_ONLY  # what follows
                continue
            default = inspect.Parameter.empty if param.default is REQUIRED else param.default
            made.append(inspect.Parameter(param.name, kind, default=default))
        return inspect.Signature(made)

    # -- using a declaration ------------------------------------------------------------------------------------------

    def infer(self, call: Call, context: TypeContext) -> Type:
        """The type of a call; ShapeError W205 where a size of it is negative."""
        ty = self.rule(Arguments(self, call), context)
        for part in ty.fields if isinstance(ty, TupleType) else (ty,):
            if isinstance(part, TensorType) and isinstance(part.shape, tuple):
                if any(isinstance(dim, int) and dim < 0 for dim in part.shape):
                    message = f"R.{self.name}: a size is negative in {part.shape}"
                    raise ShapeError(message, code="W205", span=call.span, hint="sizes are 0 or more")
        return ty

    def lower(self, call: Call, context: TypeContext, name: str) -> PrimFunc | None:
        """The kernel that computes a call, or None where shapes are not known or there is no lowering."""
        if self.lowering is None:
            return None
        # Checks were recorded when the call was deduced; the kernel performs them.
        scratch = TypeContext(context.functions, context.facts)
        return self.lowering(Arguments(self, call), scratch, name)

    def arguments(self, call: Call) -> Arguments:
        """The values of a call by parameter name."""
        return Arguments(self, call)

    def run(self, call: Call, values: Sequence[Any], symbols: Mapping[str, int]) -> Any:
        """Apply the NumPy reference to the values of `call.args`, with the attributes' dimensions evaluated."""
        if self.numpy is None:
            raise ScriptError(f"R.{self.name} has no NumPy reference", code="W143", span=call.span)
        slots = dict(zip((param.name for param, _ in self._run_time(call)), self._grouped(call, values), strict=True))
        positional: list[Any] = []
        for param in self.params:
            if param.kind == ParamKind.VARIADIC:
                positional.extend(slots.get(param.name, ()))
            elif param.kind in RUN_TIME:
                positional.append(slots.get(param.name))
        attrs = self.values(call)
        named = {p.name: _evaluated(attrs[p.name], symbols) for p in self.params if p.kind in FIXED}
        return self.numpy(*positional, **named)

    def _grouped(self, call: Call, values: Sequence[Any]) -> Iterator[Any]:
        position = 0
        for param, value in self._run_time(call):
            if param.kind == ParamKind.VARIADIC:
                yield tuple(values[position : position + len(value)])
                position += len(value)
            else:
                yield values[position]
                position += 1

    def _run_time(self, call: Call) -> Iterator[tuple[Param, Any]]:
        """(parameter, value) for the run-time parameters that a call has; variadic ones with a tuple."""
        absent = call.attrs.get(ABSENT, ())
        after = 0
        position = 0
        run_time = [param for param in self.params if param.kind in RUN_TIME and param.name not in absent]
        for index, param in enumerate(run_time):
            if param.kind == ParamKind.VARIADIC:
                after = len(run_time) - index - 1
                stop = len(call.args) - after
                yield param, tuple(call.args[position:stop])
                position = stop
            elif position < len(call.args):
                yield param, call.args[position]
                position += 1

    def values(self, call: Call) -> dict[str, Any]:
        """Every parameter's value in a call: expressions, attributes with defaults, None for what is absent."""
        found: dict[str, Any] = {}
        for param in self.params:
            if param.kind in RUN_TIME:
                found[param.name] = () if param.kind == ParamKind.VARIADIC else None
            elif param.kind == ParamKind.TYPES:
                found[param.name] = call.ty_args[0] if call.ty_args else None
            else:
                found[param.name] = call.attrs.get(param.name, None if param.default is REQUIRED else param.default)
        for param, value in self._run_time(call):
            found[param.name] = value
        return found

    # -- Python values to a call and back -----------------------------------------------------------------------------

    def bind(self, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, span: Span | None = None) -> Call:
        """The call with the given Python values; ScriptError W141 or W142 names the parameter that is wrong."""
        return _Binder(self, span).bind(args, kwargs or {})

    def unbind(self, call: Call) -> list[tuple[Param, Any]]:
        """(parameter, value) pairs in order, defaults left out: `bind` of them gives the call back."""
        values = self.values(call)
        present = {param.name for param, _ in self._run_time(call)}
        pairs: list[tuple[Param, Any]] = []
        for param in self.params:
            value = values[param.name]
            if param.kind == ParamKind.VARIADIC:
                if value:
                    pairs.append((param, value))
            elif param.kind in RUN_TIME:
                if param.name in present and not _is_default(param, value):
                    pairs.append((param, value))
            elif param.kind == ParamKind.TYPES:
                if value is not None:
                    pairs.append((param, value))
            elif param.required or not _same_data(value, param.default):
                pairs.append((param, value))
        return pairs

    def __call__(self, *args: Any, **kwargs: Any) -> Call:
        """The same as `bind(args, kwargs)`."""
        return self.bind(args, kwargs)

    @property
    def signature(self) -> str:
        """The signature as text: `clip(x, min, max)`."""
        parts: list[str] = []
        for param in self.params:
            star = "*" if param.kind == ParamKind.VARIADIC else ""
            default = "" if param.default is REQUIRED or star else f"={param.default!r}"
            parts.append(f"{star}{param.name}{default}")
        return f"{self.name}({', '.join(parts)})"


def _same_data(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return a.hex() == b.hex()
    return type(a) is type(b) and a == b


def _is_default(param: Param, value: Any) -> bool:
    default = param.default
    if default is REQUIRED or not isinstance(value, PrimValue):
        return False
    return value.dtype == PrimValue(default).dtype and _same_data(value.value, default)


def _evaluated(value: Any, symbols: Mapping[str, int]) -> Any:
    if isinstance(value, DimExpr):
        return evaluate(value, symbols)
    if isinstance(value, tuple):
        return tuple(_evaluated(item, symbols) for item in cast("tuple[Any, ...]", value))
    return value


# ---------------------------------------------------------------------------------------------------------------------
# Values of attributes
# ---------------------------------------------------------------------------------------------------------------------


class _Unfit(Exception):
    """The value is not of the wanted kind."""


def _plain(value: Any) -> Any:
    """A Python value for what stands for one: NumPy scalars, PrimValues and integer immediates."""
    if isinstance(value, PrimValue):
        return value.value
    if isinstance(value, IntImm):
        return bool(value.value) if value.dtype == "bool" else value.value
    if isinstance(value, StringImm):
        return value.value
    return cast("Any", value).item() if isinstance(value, np.generic) else value


def _int(value: Any) -> int:
    value = _plain(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise _Unfit("an integer")
    return value


def _bool(value: Any) -> bool:
    value = _plain(value)
    if not isinstance(value, (bool, int)) or value not in (0, 1):
        raise _Unfit("True or False")
    return bool(value)


def _float(value: Any) -> float:
    value = _plain(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _Unfit("a number")
    return float(value)


def _str(value: Any) -> str:
    value = _plain(value)
    if not isinstance(value, str):
        raise _Unfit("a string")
    return value


def _dim(value: Any) -> Dim:
    value = _plain(value)
    if isinstance(value, Var) and isinstance(value.ty, PrimType) and value.ty.dims is not None:
        value = value.ty.dims[0]  # a scalar that is a size
    if isinstance(value, bool) or not isinstance(value, (int, DimExpr)):
        raise _Unfit("an integer or a dimension")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise _Unfit("an integer of 64 bits")
    return value


def _sequence(item: Callable[[Any], Any], what: str) -> Callable[[Any], tuple[Any, ...]]:
    def convert(value: Any) -> tuple[Any, ...]:
        if isinstance(value, (Tuple, ShapeExpr)):
            value = value.fields if isinstance(value, Tuple) else value.dims
        try:
            return tuple(item(part) for part in value) if is_listing(value) else (item(value),)
        except _Unfit:
            raise _Unfit(what) from None

    return convert


def _sections(value: Any) -> int | tuple[Dim, ...]:
    return _sequence(_dim, "a number of parts or a list of positions")(value) if _is_listed(value) else _int(value)


def _is_listed(value: Any) -> bool:
    return isinstance(value, (list, tuple, Tuple, ShapeExpr))


def _device(value: Any) -> Any:
    if not isinstance(value, (str, VDevice)):
        raise _Unfit("a device")
    return value


def _mesh(value: Any) -> Any:
    if not isinstance(value, DeviceMesh):
        raise _Unfit("a mesh of devices")
    return value


def _placement(value: Any) -> tuple[int | None, ...]:
    if isinstance(value, str):
        return parse_placement(value)
    if not isinstance(value, tuple):
        raise _Unfit("a placement")
    axes = cast("tuple[Any, ...]", value)
    if not all(axis is None or type(axis) is int for axis in axes):
        raise _Unfit("a placement")
    return axes


def _index_map(value: Any) -> str:
    value = _plain(value)
    try:
        return index_map_text(value)
    except WeftError as error:
        raise _Unfit(f"an index map ({error.message})") from None


def _any(value: Any) -> Any:
    value = _plain(value)
    if isinstance(value, Tuple):
        value = value.fields
    if isinstance(value, ShapeExpr):
        value = value.dims
    if is_listing(value):
        return tuple(_any(item) for item in value)
    if isinstance(value, dict):
        return FrozenMap({key: _any(item) for key, item in cast("dict[Any, Any]", value).items()})
    if isinstance(value, Expr):
        raise _Unfit("a value known at compile time")
    return value


_CONVERT: dict[ValueKind, Callable[[Any], Any]] = {
    ValueKind.INT: _int,
    ValueKind.BOOL: _bool,
    ValueKind.FLOAT: _float,
    ValueKind.STR: _str,
    ValueKind.DIM: _dim,
    ValueKind.INTS: _sequence(_int, "an integer or a list of integers"),
    ValueKind.DIMS: _sequence(_dim, "a dimension or a list of dimensions"),
    ValueKind.SECTIONS: _sections,
    ValueKind.DEVICE: _device,
    ValueKind.INDEX_MAP: _index_map,
    ValueKind.MESH: _mesh,
    ValueKind.PLACEMENT: _placement,
    ValueKind.SEVERAL: _any,
    ValueKind.STATED: _any,
    ValueKind.ANY: _any,
}


# ---------------------------------------------------------------------------------------------------------------------
# Binding
# ---------------------------------------------------------------------------------------------------------------------


@record
class _Number:
    """A Python number that waits for the dtype of its neighbours (`of` any)."""

    value: Any
    of: str = "any"


def constant_like(value: Any, dtype: str | None, span: Span | None = None, what: str = "the operand") -> Constant:
    """A 0-d constant of a Python number in a dtype (its own kind's when None); DTypeError W310 if it does not fit."""
    value = _plain(value)
    if dtype is None:
        dtype = "bool" if isinstance(value, bool) else "float32" if isinstance(value, float) else "int32"
    if isinstance(value, complex) or is_complex(dtype):
        return _complex_constant(value, dtype, span, what)
    fits = is_float(dtype) or (isinstance(value, bool) if is_bool(dtype) else not isinstance(value, float))
    too_great = is_float(dtype) and math.isfinite(value) and abs(value) > max_value(dtype)
    if not fits or too_great or (is_integer(dtype) and not can_hold(dtype, int(value))):
        raise DTypeError(
            f"{value!r} is not a value of {dtype}, the dtype of {what}", code="W310", span=span, hint="use R.astype"
        )
    if not is_numpy(dtype) and dtype != "bfloat16":
        raise DTypeError(
            f"a Python number has no {dtype} constant", code="W310", span=span, hint="use R.const and R.astype"
        )
    if dtype == "bfloat16":
        bits = np.asarray(value, "float32").view("uint32").astype("uint64")
        rounded = (bits + 0x7FFF + ((bits >> np.uint64(16)) & np.uint64(1))) >> np.uint64(16)
        return Constant(np.asarray(rounded).astype("uint16"), dtype, span=span)
    return Constant(np.asarray(value, dtype), dtype, span=span)


def _complex_constant(value: Any, dtype: str, span: Span | None, what: str) -> Constant:
    if not is_complex(dtype):
        hint = f"make {what} complex: R.astype(x, {'complex64'!r})"
        raise DTypeError(f"{value!r} is not a value of {dtype}, the dtype of {what}", code="W310", span=span, hint=hint)
    return Constant(np.asarray(value, dtype), dtype, span=span)


class _Binder:
    """One binding of Python values to the parameters of an operator."""

    def __init__(self, definition: OpDef, span: Span | None) -> None:
        self.definition = definition
        self.span = span

    def error(self, message: str, code: str = "W141", hint: str | None = None) -> WeftError:
        hint = hint or f"the signature is R.{self.definition.signature}"
        return ScriptError(f"R.{self.definition.name}: {message}", code=code, span=self.span, hint=hint)

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Call:
        given = self.assign(args, kwargs)
        run_time: list[tuple[Param, list[Any]]] = []
        attrs: dict[str, Any] = {}
        ty_args: tuple[Type, ...] = ()
        for param in self.definition.params:
            value = given.get(param.name, param.default)
            if param.kind in RUN_TIME:
                run_time.append((param, self.values(param, value)))
            elif param.kind == ParamKind.TYPES:
                ty_args = self.types(param, value)
            else:
                value = self.attribute(param, value)
                if param.required or not _same_data(value, param.default):
                    attrs[param.name] = value
        present = [index for index, (_, values) in enumerate(run_time) if values]
        last = present[-1] if present else -1
        absent = tuple(p.name for p, values in run_time[: last + 1] if not values and p.kind != ParamKind.VARIADIC)
        if absent:
            attrs[ABSENT] = absent
        flat = [(param, value) for param, values in run_time for value in values]
        return Call(Op(self.definition.name), self.settle(flat), FrozenMap(attrs), ty_args, span=self.span)

    def assign(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        params = self.definition.params
        given: dict[str, Any] = {}
        for index, param in enumerate(params):
            if param.kind == ParamKind.VARIADIC:
                given[param.name] = tuple(args[index:])
                args = args[:index]
                break
        if len(args) > len(params):
            raise self.error(f"takes at most {len(params)} arguments, got {len(args)}")
        given.update((param.name, value) for param, value in zip(params, args, strict=False))
        names = {param.name: param for param in params}
        for name, value in kwargs.items():
            name = _ALIASES.get(name, name) if name not in names else name
            if name not in names:
                close = _ELSEWHERE.get(name)
                close = [close] if close in names else difflib.get_close_matches(name, names, 1)
                hint = f"did you mean {close[0]}?" if close else None
                raise self.error(f"has no parameter {name!r}", hint=hint)
            if name in given and names[name].kind != ParamKind.VARIADIC:
                raise self.error(f"got two values for {name}")
            if names[name].kind == ParamKind.VARIADIC:
                if not is_listing(value):
                    raise self.error(f"{name} must be a list of values, got {_describe(value)}", "W142")
                value = tuple(value)
            given[name] = value
        missing = [param.name for param in params if param.required and param.name not in given]
        if missing:
            raise self.error(f"lacks {', '.join(missing)}")
        return given

    def values(self, param: Param, value: Any) -> list[Any]:
        """What a run-time parameter puts into `args`: nothing when absent."""
        if param.kind == ParamKind.VARIADIC:
            return [] if value is REQUIRED else [self.element(param, item) for item in value]
        if value is None:
            if param.default is not None:
                raise self.error(f"{param.name} is None", "W142")
            return []
        convert = {
            ParamKind.EXPR: self.expr,
            ParamKind.EXPRS: self.exprs,
            ParamKind.SHAPE: self.shape,
            ParamKind.PRIM: self.prim,
            ParamKind.CALLEE: self.callee,
        }
        return [convert[ParamKind(param.kind)](param, value)]

    def expr(self, param: Param, value: Any) -> Any:
        if isinstance(value, Expr) and not isinstance(value, PrimExpr):
            return value
        if isinstance(value, (bool, int, float, complex, np.generic)):
            return _Number(value, param.of)
        if isinstance(value, PrimExpr):
            return _Number(_plain(value), param.of) if isinstance(value, IntImm) else value
        if is_array(value):
            return Constant(value, span=self.span)
        if isinstance(value, DimExpr):
            return PrimValue(value, span=self.span)
        if isinstance(value, str):
            return StringImm(value, span=self.span)
        if is_listing(value):
            return self.exprs(param, value)
        raise self.error(f"{param.name} must be a run-time value, got {_describe(value)}", "W142")

    def exprs(self, param: Param, value: Any) -> Any:
        if is_listing(value):
            return Tuple(tuple(self.element(param, item) for item in value), span=self.span)
        value = self.element(param, value)
        if isinstance(value, Tuple) or isinstance(quick_type(value), (TupleType, AnyType)):
            return value
        if param.of == ValueKind.SEVERAL and isinstance(quick_type(value), TensorType):
            written = getattr(value, "name", "") or "x"
            hint = f"give a list: R.{self.definition.name}([{written}, ...])"
            raise self.error(f"{param.name} must be a list of tensors, got one tensor", "W142", hint)
        return Tuple((value,), span=self.span)

    def element(self, param: Param, value: Any) -> Expr:
        """One of several values: a Python number is a scalar, it has no neighbour to take a dtype from."""
        found = self.expr(param, value)
        return self.prim(param, found.value) if isinstance(found, _Number) else found

    def shape(self, param: Param, value: Any) -> Expr:
        if isinstance(value, Tuple):
            value = value.fields
        if isinstance(value, (int, DimExpr)) and not isinstance(value, bool):
            value = (value,)
        if is_listing(value):
            for size in value:
                if isinstance(size, int) and not -(2**63) <= size < 2**63:
                    raise self.error(f"{param.name}: the size {_describe(size)} does not fit in 64 bits", "W142")
            try:
                return ShapeExpr(tuple(_dim(item) for item in value), span=self.span)
            except _Unfit:
                raise self.error(f"{param.name} must be a list of sizes, got {_describe(value)}", "W142") from None
        if isinstance(value, Expr) and not isinstance(value, PrimExpr):
            return value
        raise self.error(f"{param.name} must be a list of sizes, got {_describe(value)}", "W142")

    def prim(self, param: Param, value: Any) -> Expr:
        if param.of == ValueKind.DIM and isinstance(value, Var) and isinstance(value.ty, PrimType) and value.ty.dims:
            return PrimValue(value.ty.dims[0], span=self.span)
        if isinstance(value, (complex, np.complexfloating)):  # there are no scalars of them
            dtype = "complex64" if isinstance(value, complex) and not isinstance(value, np.generic) else None
            return Constant(np.asarray(value, dtype), span=self.span)
        if isinstance(value, np.generic):
            number = cast("Any", value)
            return PrimValue(number.item(), str(number.dtype), span=self.span)
        if isinstance(value, IntImm):
            return PrimValue(_plain(value), value.dtype, span=self.span)
        if isinstance(value, (bool, int, float, DimExpr)):
            return PrimValue(value, span=self.span)
        if isinstance(value, Expr):
            return value
        raise self.error(f"{param.name} must be a scalar, got {_describe(value)}", "W142")

    def callee(self, param: Param, value: Any) -> Expr:
        if isinstance(value, StringImm):
            value = value.value
        if isinstance(value, str):
            return ExternFunc(value, span=self.span)
        if isinstance(value, (GlobalVar, ExternFunc, Var)):
            return value
        raise self.error(
            f"{param.name} must be a function of the module or the name of an extern one, got {_describe(value)}",
            "W142",
        )

    def attribute(self, param: Param, value: Any) -> Any:
        if value is None and (param.default is None or param.optional):
            return None
        if param.kind == ParamKind.DTYPE:
            older = param.default is None and param.of != ValueKind.STATED
            if older and isinstance(value, str) and value in ("", "void"):  # none is stated
                return None
            return self.dtype(param, getattr(value, "value", value))
        try:
            return _CONVERT[ValueKind(param.of)](value)
        except _Unfit as wanted:
            raise self.error(f"{param.name} must be {wanted}, got {_describe(value)}", "W142") from None

    def dtype(self, param: Param, value: Any) -> str:
        try:
            found = check_dtype(value.dtype if isinstance(value, PrimType) else value)
            if found == "void":
                raise ValueError("no tensor has elements of no type")
            return found
        except (TypeError, ValueError):
            raise self.error(f"{param.name} must be a dtype, got {_describe(value)}", "W142") from None

    def types(self, param: Param, value: Any) -> tuple[Type, ...]:
        if value is REQUIRED or value is None:
            if param.default is REQUIRED:
                raise self.error(f"{param.name} must be a type", "W142")
            return ()
        if is_listing(value):
            if not all(isinstance(item, Type) for item in value):
                raise self.error(f"{param.name} must be a list of types, got {_describe(value)}", "W142")
            return (value[0],) if len(value) == 1 else (TupleType(tuple(value)),)
        if not isinstance(value, Type):
            raise self.error(f"{param.name} must be a type, got {_describe(value)}", "W142")
        return (value,)

    def settle(self, values: list[tuple[Param, Any]]) -> tuple[Expr, ...]:
        """Turn waiting numbers into constants of the dtype of the first operand beside them."""
        if not any(isinstance(value, _Number) for _, value in values):
            return tuple(value for _, value in values)
        neighbour = next(filter(None, map(self._operand_dtype, values)), None)
        return tuple(self._settled(value, neighbour) if isinstance(value, _Number) else value for _, value in values)

    @staticmethod
    def _operand_dtype(item: tuple[Param, Any]) -> tuple[str, str] | None:
        """(dtype, name) of a tensor or scalar operand."""
        param, value = item
        if param.of != ValueKind.ANY or not isinstance(value, Expr):
            return None
        ty = quick_type(value)
        if not isinstance(ty, (TensorType, PrimType)) or ty.dtype is None:
            return None
        return ty.dtype, getattr(value, "name", "") or type_text(ty)

    def _settled(self, number: _Number, neighbour: tuple[str, str] | None) -> Constant:
        if number.of == ValueKind.INT:
            return constant_like(number.value, "int64", self.span, "an index")
        if number.of == ValueKind.BOOL or neighbour is None:
            return constant_like(number.value, None, self.span)
        return constant_like(number.value, neighbour[0], self.span, neighbour[1])


# Older spellings of parameters.
_ALIASES = {"out_sinfo": "out_ty", "sinfo_args": "ty_args"}
_ELSEWHERE = {"dim": "axis", "dims": "axes", "keepdim": "keepdims"}
"""Names that PyTorch has for parameters."""


def _describe(value: Any) -> str:
    named = getattr(value, "__weft_name__", None)
    if isinstance(named, str):
        return f"the function {named}"
    if isinstance(value, Expr):
        return f"a value of type {type_text(quick_type(value))}"
    if is_listing(value) and any(isinstance(item, Expr) for item in value):
        return f"{described(value)} with {next(_describe(item) for item in value if isinstance(item, Expr))}"
    text = repr(value)
    return f"{text if len(text) < 40 else text[:37] + '...'} ({type(value).__name__})"
