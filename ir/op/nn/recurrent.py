"""Recurrent layers: RNN, GRU and LSTM over sequences of any length, as loops over fused cells.

    data (t, b, i), weight (d, g h, i), recurrent (d, g h, h), bias (d, 2 g h) -> y (t, d, b, h), states (d, b, h)

d is 2 of bidirectional layers and else 1, g the number of gates: 1, 3 or 4, in the order that `gates` says. The inputs
of all steps are multiplied at once; each iteration multiplies the state, and computes all gates from both. Steps beyond
the length of a sequence leave its state as it is, and give zeros. A reversed direction reads from the last step, and
gives its results in the order of the sequence. With layout 1 the batch is the first axis of data, y and states.

Sources: Hochreiter and Schmidhuber, Long short-term memory, 1997; Gers and Schmidhuber, Recurrent nets that time and
count, 2000 (peepholes); Cho et al., Learning phrase representations, 2014. Names of activations, their constants and
default orders of gates are those of ONNX.

Errors: ShapeError W201, W202 sizes that do not fit, W205 an unknown direction, activation, layout or order of gates;
DTypeError W320, W321.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import numpy as np

from weft.ir.deduction.infer import TypeContext
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import Dim
from weft.ir.graph import Expr, Function, SeqExpr, Tuple, TupleGetItem, Var
from weft.ir.op.common import (
    Dims,
    dtype_error,
    example,
    f32,
    require_dtype,
    require_rank,
    same_dtype,
    shape_error,
    tensor,
    typed,
)
from weft.ir.op.composite.declaring import call
from weft.ir.op.declare import Arguments, Example, Numbers, Param
from weft.ir.op.precision import written_out
from weft.ir.op.registry import register_op
from weft.ir.op.untyped import untyped_np
from weft.ir.types import PrimType, TensorType, TupleType
from weft.support.records import dataclass

__all__: list[str] = []


# ---------------------------------------------------------------------------------------------------------------------
# Activations
# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Activation:
    """A function of a cell: as an expression and in NumPy, with the defaults of the constants that it takes."""

    expression: Callable[[Any], Expr] | Callable[[Any, Any], Expr] | Callable[[Any, Any, Any], Expr]
    numpy: Numbers
    constants: tuple[float, ...] = ()


_ACTIVATIONS = {
    "sigmoid": _Activation(lambda x: call("sigmoid", x), lambda x: 0.5 * (1 + np.tanh(0.5 * x))),
    "tanh": _Activation(lambda x: call("tanh", x), np.tanh),
    "relu": _Activation(lambda x: call("nn.relu", x), lambda x: np.maximum(x, 0)),
    "affine": _Activation(
        lambda x, alpha, beta: call("add", call("multiply", x, alpha), beta),
        lambda x, alpha, beta: alpha * x + beta,
        (1.0, 0.0),
    ),
    "leakyrelu": _Activation(
        lambda x, alpha: call("nn.leakyrelu", x, alpha),
        lambda x, alpha: untyped_np.where(x < 0, alpha * x, x),
        (0.01,),
    ),
    "thresholdedrelu": _Activation(
        lambda x, alpha: call("nn.thresholded_relu", x, alpha),
        lambda x, alpha: np.where(x > alpha, x, 0),
        (1.0,),
    ),
    "scaledtanh": _Activation(
        lambda x, alpha, beta: call("multiply", call("tanh", call("multiply", x, beta)), alpha),
        lambda x, alpha, beta: alpha * np.tanh(beta * x),
        (1.0, 1.0),
    ),
    "hardsigmoid": _Activation(
        lambda x, alpha, beta: call("nn.hardsigmoid", x, alpha, beta),
        lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1),
        (0.2, 0.5),
    ),
    "elu": _Activation(
        lambda x, alpha: call("nn.elu", x, alpha),
        lambda x, alpha: untyped_np.where(x < 0, alpha * np.expm1(x), x),
        (1.0,),
    ),
    "softsign": _Activation(lambda x: call("nn.softsign", x), lambda x: x / (1 + np.abs(x))),
    "softplus": _Activation(lambda x: call("nn.softplus", x), lambda x: np.logaddexp(x, 0)),
}

_Chosen = list[tuple[_Activation, tuple[float, ...]]]


def _chosen(names: Sequence[str], alphas: Sequence[float], betas: Sequence[float]) -> _Chosen:
    """The activations of a call: those that take constants use them up in order, and have defaults after the last."""
    given = [list(alphas), list(betas)]
    found: _Chosen = []
    for name in names:
        activation = _ACTIVATIONS[name.lower()]
        pairs = zip(activation.constants, given, strict=False)
        found.append((activation, tuple(values.pop(0) if values else default for default, values in pairs)))
    return found


# ---------------------------------------------------------------------------------------------------------------------
# Cells
# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Kind:
    """A kind of layer: its gates by letters in the default order, how many states, the default activations."""

    letters: str
    states: int
    activations: tuple[str, ...]
    cell: Callable[[_Cell, Expr, Sequence[Expr]], list[Expr]]


@dataclass(frozen=True)
class _Cell:
    """One direction of a layer, as expressions: what each iteration uses."""

    order: str
    hidden: Dim
    recurrent: dict[str, Expr]  # by the gates it is of, one letter each: (h, gates * h)
    recurrent_bias: Expr | None  # of a GRU whose reset gate comes after the product
    peephole: Expr | None
    activations: _Chosen
    args: Arguments

    def part(self, x: Expr, gate: str, axis: int = 1, order: str | None = None) -> Expr:
        """The columns of one gate."""
        place = (self.order if order is None else order).index(gate)
        return call("strided_slice", x, [axis], [place * self.hidden], [(place + 1) * self.hidden])

    def gate(self, given: Expr, product: Expr, gate: str) -> Expr:
        """What inputs and state give for a gate."""
        return call("add", self.part(given, gate), self.part(product, gate))

    def act(self, index: int, x: Expr) -> Expr:
        """An activation of a limited value."""
        limit = self.args.clip
        return self.plain(index, x if limit is None else call("clip", x, -limit, limit))

    def plain(self, index: int, x: Expr) -> Expr:
        """An activation."""
        activation, constants = self.activations[index]
        return activation.expression(x, *constants)

    def seen(self, gate: str, c: Expr, x: Expr) -> Expr:
        """The gate with what a peephole shows it of the cell."""
        if self.peephole is None:
            return x
        return call("add", x, call("multiply", self.part(self.peephole, gate, 0, "iof"), c))


def _rnn_cell(cell: _Cell, given: Expr, state: Sequence[Expr]) -> list[Expr]:
    return [cell.act(0, call("add", given, call("matmul", state[0], cell.recurrent["i"])))]


def _gru_cell(cell: _Cell, given: Expr, state: Sequence[Expr]) -> list[Expr]:
    (h,) = state
    if cell.args.linear_before_reset:
        product = call("matmul", h, cell.recurrent[cell.order])
        if cell.recurrent_bias is not None:
            product = call("add", product, cell.recurrent_bias)
        z, r = (cell.act(0, cell.gate(given, product, gate)) for gate in "zr")
        new = call("multiply", r, cell.part(product, "h"))
    else:
        z, r = (
            cell.act(0, call("add", cell.part(given, gate), call("matmul", h, cell.recurrent[gate]))) for gate in "zr"
        )
        new = call("matmul", call("multiply", r, h), cell.recurrent["h"])
    new = cell.act(1, call("add", cell.part(given, "h"), new))
    return [call("add", new, call("multiply", z, call("subtract", h, new)))]


def _lstm_cell(cell: _Cell, given: Expr, state: Sequence[Expr]) -> list[Expr]:
    h, c = state
    both = call("add", given, call("matmul", h, cell.recurrent[cell.order]))
    i = cell.act(0, cell.seen("i", c, cell.part(both, "i")))
    if cell.args.input_forget:
        f = call("add", call("negative", i), 1)
    else:
        f = cell.act(0, cell.seen("f", c, cell.part(both, "f")))
    new = cell.act(1, cell.part(both, "c"))
    kept = call("add", call("multiply", f, c), call("multiply", i, new))
    o = cell.act(0, cell.seen("o", kept, cell.part(both, "o")))
    return [call("multiply", o, cell.plain(2, kept)), kept]


# ---------------------------------------------------------------------------------------------------------------------
# A layer as loops
# ---------------------------------------------------------------------------------------------------------------------


class _Layer:
    """A layer while it is written in other operators."""

    def __init__(self, kind: _Kind, args: Arguments, builder: Any) -> None:
        self.kind, self.args, self.builder = kind, args, builder
        data = tensor(args, "data", builder.types)
        sizes, weights = dims_of(data), dims_of(tensor(args, "recurrent", builder.types))
        if sizes is None or weights is None:
            raise shape_error(args, "the sizes of data and recurrent have to be known")
        self.steps, self.batch = (sizes[1], sizes[0]) if args.layout else sizes[:2]
        self.dtype, self.hidden = data.dtype, weights[2]
        self.x = self.turned(args.data, (1, 0, 2))

    def turned(self, x: Expr, axes: Sequence[int]) -> Expr:
        """A tensor whose first axes are sequence and batch, or directions and batch, in that order."""
        return self.builder.emit(call("permute_dims", x, axes=list(axes))) if self.args.layout else x

    def one(self, x: Expr, direction: int) -> Expr:
        """What belongs to one direction."""
        return call("squeeze", call("strided_slice", x, [0], [direction], [direction + 1]), axis=[0])

    def result(self) -> Expr:
        """y and the last states."""
        rows: list[Expr] = []
        ends: list[list[Expr]] = []
        for direction in range(_directions(self.args)):
            *final, sequence = self.direction(direction)
            rows.append(sequence)
            ends.append(final)
        y = call("stack", Tuple(tuple(rows)), axis=1) if len(rows) > 1 else call("expand_dims", rows[0], axis=[1])
        finals: list[Expr] = []
        for parts in zip(*ends, strict=True):
            one = len(parts) == 1
            finals.append(call("expand_dims", parts[0], axis=[0]) if one else call("stack", Tuple(parts), axis=0))
        if self.args.layout:
            y = call("permute_dims", y, axes=[2, 0, 1, 3])
            finals = [call("permute_dims", final, axes=[1, 0, 2]) for final in finals]
        return Tuple((y, *finals))

    def direction(self, direction: int) -> list[Expr]:
        """The last states of one direction, and its results in the order of the sequence."""
        args, builder, kind = self.args, self.builder, self.kind
        cell, inputs = self.cell(direction)
        initial = [self.initial(name, direction) for name in ("initial_h", "initial_c")[: kind.states]]
        index = Var("step", PrimType("int64"))
        state_type = TensorType((self.batch, self.hidden), self.dtype)
        state = [Var(name, state_type) for name in ("h", "c")[: kind.states]]
        given = call("take", inputs, index, axis=0)
        new = kind.cell(cell, given, state)
        shown = new[0]
        if args.sequence_lengths is not None:
            lengths = builder.emit(call("expand_dims", call("astype", args.sequence_lengths, "int64"), axis=[1]))
            runs = call("greater", lengths, index)
            shown = call("where", runs, shown, call("zeros_like", shown))
            new = [call("where", runs, value, old) for value, old in zip(new, state, strict=True)]
        types = TupleType((state_type,) * kind.states)
        body = Function(
            (index, *state), SeqExpr((), Tuple((*new, shown))), TupleType((*types.fields, state_type)), name="cell"
        )
        backwards = args.direction == "reverse" or direction == 1
        bounds = (self.steps - 1, -1, -1) if backwards else (0, self.steps, 1)
        rows = TensorType((self.steps, self.batch, self.hidden), self.dtype)
        loop = builder.emit(call("loop", body, tuple(initial), out_ty=[*types.fields, rows], range=bounds, stacked=1))
        found: list[Expr] = [TupleGetItem(loop, number) for number in range(kind.states + 1)]
        if backwards:
            found[-1] = call("flip", found[-1], axis=0)
        return found

    def initial(self, name: str, direction: int) -> Expr:
        """The state before the first step."""
        if self.args[name] is None:
            return self.builder.emit(call("zeros", (self.batch, self.hidden), self.dtype))
        return self.builder.emit(self.one(self.turned(self.args[name], (1, 0, 2)), direction))

    def cell(self, direction: int) -> tuple[_Cell, Expr]:
        """What the iterations of a direction use, and the products of the weights and the inputs of all steps."""
        args, builder, size = self.args, self.builder, len(self.kind.letters) * self.hidden
        inputs = call("matmul", self.x, call("permute_dims", self.one(args.weight, direction), axes=[1, 0]))
        later = None
        if args.bias is not None:
            both = builder.emit(self.one(args.bias, direction))
            bias, later = (call("strided_slice", both, [0], [part * size], [(part + 1) * size]) for part in range(2))
            if not (self.kind.letters == "zrh" and args.linear_before_reset):
                bias, later = call("add", bias, later), None
            inputs = call("add", inputs, bias)
        weights = builder.emit(self.one(args.recurrent, direction))
        parts = [args.gates]
        if self.kind.letters == "zrh" and not args.linear_before_reset:
            parts = list("zrh")
        recurrent = {letters: builder.emit(self.columns(weights, letters)) for letters in parts}
        peephole = None
        if self.kind.states == 2 and args.peephole is not None:
            peephole = builder.emit(self.one(args.peephole, direction))
        names = _names(self.kind, args)
        per = len(self.kind.activations)
        chosen = _chosen(names, _listed(args.activation_alpha), _listed(args.activation_beta))
        cell = _Cell(
            args.gates,
            self.hidden,
            recurrent,
            None if later is None else builder.emit(later),
            peephole,
            chosen[direction * per : (direction + 1) * per],
            args,
        )
        return cell, builder.emit(inputs)

    def columns(self, weights: Expr, letters: str) -> Expr:
        """The weights of one gate, or of all, as a matrix that the state is multiplied with from the left."""
        if letters != self.args.gates:
            place = self.args.gates.index(letters)
            weights = call("strided_slice", weights, [0], [place * self.hidden], [(place + 1) * self.hidden])
        return call("permute_dims", weights, axes=[1, 0])


# ---------------------------------------------------------------------------------------------------------------------
# Reference
# ---------------------------------------------------------------------------------------------------------------------


def _activated(activation: _Activation, constants: tuple[float, ...], value: Any) -> Any:
    return cast("Callable[..., Any]", activation.numpy)(value, *constants)


def _reference(kind: _Kind) -> Callable[..., Any]:
    def reference(data: Any, weight: Any, recurrent: Any, bias: Any, lengths: Any, *more: Any, **how: Any) -> Any:
        def turn(array: Any) -> Any:
            return np.moveaxis(array, 0, 1) if how["layout"] else array

        x, dtype, hidden = turn(data).astype("float64"), data.dtype, recurrent.shape[2]
        steps, batch, directions = *x.shape[:2], weight.shape[0]
        names = _listed(how["activations"]) or kind.activations * directions
        chosen = _chosen(names, _listed(how["activation_alpha"]), _listed(how["activation_beta"]))
        functions = [partial(_activated, activation, constants) for activation, constants in chosen]
        y = np.zeros((steps, directions, batch, hidden))
        ends = np.zeros((kind.states, directions, batch, hidden))
        for d in range(directions):
            state = [
                np.zeros((batch, hidden)) if s is None else turn(s)[d].astype("float64") for s in more[: kind.states]
            ]
            peephole = more[2][d].astype("float64") if kind.states == 2 and more[2] is not None else None
            parts = np.zeros(2 * weight.shape[1]) if bias is None else bias[d].astype("float64")
            step = _Step(
                how,
                hidden,
                recurrent[d].astype("float64"),
                parts[weight.shape[1] :],
                peephole,
                functions[d * len(kind.activations) :],
            )
            order = range(steps)[::-1] if how["direction"] == "reverse" or d == 1 else range(steps)
            for t in order:
                new = step.of(kind.letters, x[t] @ weight[d].T.astype("float64") + parts[: weight.shape[1]], state)
                runs = np.ones((batch, 1), bool) if lengths is None else (t < lengths)[:, None]
                y[t, d] = np.where(runs, new[0], 0)
                state = [np.where(runs, value, old) for value, old in zip(new, state, strict=True)]
            ends[:, d] = state
        result = np.moveaxis(y, 2, 0) if how["layout"] else y
        return tuple(np.ascontiguousarray(v).astype(dtype) for v in (result, *map(turn, ends)))

    return reference


@dataclass(frozen=True)
class _Step:
    """One step of the reference."""

    how: dict[str, Any]
    hidden: int
    recurrent: Any
    bias: Any
    peephole: Any
    functions: list[Any]

    def act(self, index: int, x: Any) -> Any:
        limit = self.how["clip"]
        return self.functions[index](x if limit is None else np.clip(x, -limit, limit))

    def of(self, letters: str, given: Any, state: list[Any]) -> list[Any]:
        size, gates = self.hidden, self.how["gates"]
        where = {gate: slice(place * size, (place + 1) * size) for place, gate in enumerate(gates)}
        h = state[0]
        both = {gate: given[:, at] + h @ self.recurrent[at].T + self.bias[at] for gate, at in where.items()}
        if letters == "i":
            return [self.act(0, both["i"])]
        if letters == "zrh":
            z, r, at = self.act(0, both["z"]), self.act(0, both["r"]), where["h"]
            if self.how["linear_before_reset"]:
                part = r * (h @ self.recurrent[at].T + self.bias[at])
            else:
                part = (r * h) @ self.recurrent[at].T + self.bias[at]
            return [(1 - z) * self.act(1, given[:, at] + part) + z * h]
        c = state[1]
        seen = np.zeros((3, size)) if self.peephole is None else self.peephole.reshape(3, size)
        i = self.act(0, both["i"] + seen[0] * c)
        f = 1 - i if self.how["input_forget"] else self.act(0, both["f"] + seen[2] * c)
        kept = f * c + i * self.act(1, both["c"])
        return [self.act(0, both["o"] + seen[1] * kept) * self.functions[2](kept), kept]


# ---------------------------------------------------------------------------------------------------------------------
# Declarations
# ---------------------------------------------------------------------------------------------------------------------

_DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}


def _directions(args: Arguments) -> int:
    return _DIRECTIONS[args.direction]


def _listed(value: Any) -> tuple[Any, ...]:
    """The values of an attribute that may be one value, or absent."""
    return () if value is None else cast("tuple[Any, ...]", value) if isinstance(value, tuple) else (value,)


def _names(kind: _Kind, args: Arguments) -> tuple[Any, ...]:
    return _listed(args.activations) or kind.activations * _directions(args)


def _check_attributes(kind: _Kind, args: Arguments) -> None:
    if args.direction not in _DIRECTIONS:
        hint = f"directions are {', '.join(_DIRECTIONS)}"
        raise shape_error(args, f"unknown direction {args.direction!r}", "W205", hint)
    if args.layout not in (0, 1):
        raise shape_error(args, f"layout is 0 or 1, got {args.layout}", "W205")
    if sorted(args.gates) != sorted(kind.letters):
        message = f"gates are the letters of {kind.letters!r} in some order, got {args.gates!r}"
        raise shape_error(args, message, "W205")
    names = _names(kind, args)
    if len(names) != len(kind.activations) * _directions(args):
        wanted = len(kind.activations) * _directions(args)
        raise shape_error(args, f"there are {wanted} activations, got {len(names)}", "W205")
    for name in names:
        if not isinstance(name, str) or name.lower() not in _ACTIVATIONS:
            raise shape_error(args, f"unknown activation {name!r}", "W205", f"known: {', '.join(_ACTIVATIONS)}")
    for constants in (args.activation_alpha, args.activation_beta):
        if not all(isinstance(value, (int, float)) for value in _listed(constants)):
            raise shape_error(args, f"constants of activations are numbers, got {constants}", "W205")
    if args.clip is not None and not args.clip > 0:
        raise shape_error(args, f"clip is positive, got {args.clip}", "W205")


def _rule(kind: _Kind) -> Callable[[Arguments, TypeContext], TupleType]:
    ranks = {"data": 3, "weight": 3, "recurrent": 3, "bias": 2, "initial_h": 3, "initial_c": 3, "peephole": 2}

    def rule(args: Arguments, context: TypeContext) -> TupleType:
        _check_attributes(kind, args)
        names = [param.name for param in kind_params(kind) if param.name in ranks and args[param.name] is not None]
        operands = {name: tensor(args, name, context) for name in names}
        for name, ty in operands.items():
            require_rank(args, name, ty, ranks[name])
            require_dtype(args, name, ty, "float")
        dtype = same_dtype(args, *operands.values())
        if dtype is None:
            raise dtype_error(args, "the dtype of data has to be known")
        dims = {name: dims_of(ty) for name, ty in operands.items()}
        data, weight, recurrent = dims["data"], dims["weight"], dims["recurrent"]
        if data is None or weight is None or recurrent is None:
            return TupleType((TensorType(dtype=dtype, ndim=4), *(TensorType(dtype=dtype, ndim=3),) * kind.states))
        steps, batch = (data[1], data[0]) if args.layout else data[:2]
        count, hidden = _directions(args), recurrent[2]
        rows = len(kind.letters) * hidden
        state: Dims = (batch, count, hidden) if args.layout else (count, batch, hidden)
        wanted: dict[str, Dims] = {
            "weight": (count, rows, data[2]),
            "recurrent": (count, rows, hidden),
            "bias": (count, 2 * rows),
            "initial_h": state,
            "initial_c": state,
            "peephole": (count, 3 * hidden),
        }
        for name, sizes in wanted.items():
            for axis, (own, full) in enumerate(zip(dims.get(name) or (), sizes, strict=False)):
                context.require_equal(own, full, f"{args.name}: axis {axis} of {name}", args.span)
        _check_lengths(args, batch, context)
        y: Dims = (batch, steps, count, hidden) if args.layout else (steps, count, batch, hidden)
        return TupleType((TensorType(y, dtype), *(TensorType(state, dtype),) * kind.states))

    return rule


def _check_lengths(args: Arguments, batch: Dim, context: TypeContext) -> None:
    if args.sequence_lengths is None:
        return
    lengths = tensor(args, "sequence_lengths", context)
    require_rank(args, "sequence_lengths", lengths, 1)
    require_dtype(args, "sequence_lengths", lengths, "integer")
    for own in dims_of(lengths) or ():
        context.require_equal(own, batch, f"{args.name}: the size of sequence_lengths", args.span)


def kind_params(kind: _Kind) -> list[Param]:
    """The parameters of a kind of layer."""
    own = {
        "i": [],
        "zrh": [Param("linear_before_reset", "attr", False, "bool")],
        "iofc": [Param("input_forget", "attr", False, "bool")],
    }
    return [
        Param("data"),
        Param("weight"),
        Param("recurrent"),
        Param("bias", default=None),
        Param("sequence_lengths", default=None, of="int"),
        Param("initial_h", default=None),
        *([Param("initial_c", default=None), Param("peephole", default=None)] if kind.states == 2 else ()),
        Param("direction", "attr", "forward", "str"),
        Param("activations", "attr", None, "any?"),
        Param("activation_alpha", "attr", None, "any?"),
        Param("activation_beta", "attr", None, "any?"),
        Param("clip", "attr", None, "float?"),
        *own[kind.letters],
        Param("layout", "attr", 0, "int"),
        Param("gates", "attr", kind.letters, "str"),
    ]


def _declare(name: str, kind: _Kind, doc: str, examples: tuple[Example, ...]) -> None:
    register_op(
        name,
        kind_params(kind),
        doc=doc,
        decompose=lambda args, builder: _Layer(kind, args, builder).result(),
        numpy=_reference(kind),
        pure=True,
        examples=examples,
        precision=written_out(),
    )(_rule(kind))


_LENGTHS = {"sequence_lengths": (0, 3)}

_declare(
    "nn.rnn",
    _Kind("i", 1, ("Tanh",), _rnn_cell),
    """A recurrent layer: h = f(x W^T + h R^T + the biases) at each step; gives y and the last h.

    data (t, b, i), weight (d, h, i), recurrent (d, h, h), bias (d, 2 h), sequence_lengths (b,), initial_h (d, b, h)
    -> y (t, d, b, h), (d, b, h); with layout 1 data (b, t, i), states (b, d, h), y (b, t, d, h).
    """,
    (
        example(f32("t", 2, 3), f32(1, 4, 3), f32(1, 4, 4)),
        example(
            f32(3, 2, 3),
            f32(2, 4, 3),
            f32(2, 4, 4),
            f32(2, 8),
            typed("int32", 2),
            f32(2, 2, 4),
            direction="bidirectional",
            activations=["Relu", "Affine"],
            activation_alpha=[0.5],
            ranges=_LENGTHS,
        ),
    ),
)
_declare(
    "nn.gru",
    _Kind("zrh", 1, ("Sigmoid", "Tanh"), _gru_cell),
    """A gated recurrent layer; gives y and the last h.

    z = f(x Wz^T + h Rz^T + bz), r = f(x Wr^T + h Rr^T + br), n = g(x Wh^T + (r h) Rh^T + bh) or, with
    linear_before_reset, g(x Wh^T + wh + r (h Rh^T + rh)); the new h is (1 - z) n + z h. `gates` is the order of z, r
    and h in the weights. data (t, b, i), weight (d, 3 h, i), recurrent (d, 3 h, h), bias (d, 6 h): those of the inputs,
    then those of the state; sequence_lengths (b,), initial_h (d, b, h) -> y (t, d, b, h), (d, b, h); with layout 1
    data (b, t, i), states (b, d, h), y (b, t, d, h).
    """,
    (
        example(f32("t", 2, 3), f32(1, 12, 3), f32(1, 12, 4), f32(1, 24)),
        example(f32("t", "b", 3), f32(1, 12, 3), f32(1, 12, 4), f32(1, 24), linear_before_reset=True, clip=0.5),
        example(
            f32(2, 3, 2),
            f32(2, 9, 2),
            f32(2, 9, 3),
            f32(2, 18),
            typed("int32", 2),
            f32(2, 2, 3),
            direction="bidirectional",
            layout=1,
            gates="rzh",
            ranges=_LENGTHS,
        ),
    ),
)
_declare(
    "nn.lstm",
    _Kind("iofc", 2, ("Sigmoid", "Tanh", "Tanh"), _lstm_cell),
    """A layer with long short-term memory; gives y, the last h and the last c.

    i, o, f = f(x W^T + h R^T + b + p c) and n = g(x W^T + h R^T + b) of the gates i, o, f, c (o sees the new c); the
    new c is f c + i n, the new h is o h(c). With input_forget f is 1 - i. `gates` is the order of i, o, f and c in the
    weights; peepholes p are always in the order i, o, f. clip limits what f and g are applied to. data (t, b, i),
    weight (d, 4 h, i), recurrent (d, 4 h, h), bias (d, 8 h): those of the inputs, then those of the state;
    sequence_lengths (b,), initial_h and initial_c (d, b, h), peephole (d, 3 h) -> y (t, d, b, h), two times
    (d, b, h); with layout 1 data (b, t, i), states (b, d, h), y (b, t, d, h).
    """,
    (
        example(f32("t", 2, 3), f32(1, 16, 3), f32(1, 16, 4), f32(1, 32)),
        example(f32("t", "b", 3), f32(1, 16, 3), f32(1, 16, 4), direction="reverse", gates="ifco"),
        example(
            f32(3, 2, 2),
            f32(2, 12, 2),
            f32(2, 12, 3),
            f32(2, 24),
            typed("int32", 2),
            f32(2, 2, 3),
            f32(2, 2, 3),
            f32(2, 9),
            direction="bidirectional",
            clip=0.7,
            ranges=_LENGTHS,
        ),
        example(
            f32(2, "t", 2),
            f32(1, 12, 2),
            f32(1, 12, 3),
            f32(1, 24),
            typed("int32", 2),
            f32(2, 1, 3),
            f32(2, 1, 3),
            layout=1,
            input_forget=True,
            activations=["HardSigmoid", "Softsign", "ScaledTanh"],
            ranges=_LENGTHS,
        ),
    ),
)
