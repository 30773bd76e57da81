"""RNN, GRU and LSTM over a known number of steps: one product for all inputs, then a product with the state for each.

Weights are (directions, gates * hidden, ...); with a second direction the sequence is read backwards. Steps beyond the
length of a sequence leave the state as it is and give zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.frontend.emitter import Unsupported
from weft.frontend.onnx.node import OnnxNode
from weft.frontend.onnx.table import row
from weft.ir.graph import Constant, Expr
from weft.script import relax as R

_MOST_STEPS = 64


def _hard_sigmoid(x: Expr, alpha: float, beta: float) -> Expr:
    return R.clip(R.add(R.multiply(x, alpha), beta), 0.0, 1.0)


_ACTIVATIONS: dict[str, Callable[[Expr, float, float], Expr]] = {
    "sigmoid": lambda x, a, b: R.sigmoid(x),
    "tanh": lambda x, a, b: R.tanh(x),
    "relu": lambda x, a, b: R.nn.relu(x),
    "affine": lambda x, a, b: R.add(R.multiply(x, a), b),
    "leakyrelu": lambda x, a, b: R.where(R.less(x, 0.0), R.multiply(x, a), x),
    "thresholdedrelu": lambda x, a, b: R.where(R.greater(x, a), x, R.zeros_like(x)),
    "scaledtanh": lambda x, a, b: R.multiply(R.tanh(R.multiply(x, b)), a),
    "hardsigmoid": _hard_sigmoid,
    "elu": lambda x, a, b: R.where(R.less(x, 0.0), R.multiply(R.subtract(R.exp(x), 1.0), a), x),
    "softsign": lambda x, a, b: R.divide(x, R.add(R.abs(x), 1.0)),
    "softplus": lambda x, a, b: R.log(R.add(R.exp(x), 1.0)),
}
_CONSTANTS = {
    "leakyrelu": (0.01, 0.0),
    "hardsigmoid": (0.2, 0.5),
    "elu": (1.0, 0.0),
    "thresholdedrelu": (1.0, 0.0),
    "affine": (1.0, 0.0),
    "scaledtanh": (1.0, 1.0),
}


@dataclass(frozen=True)
class Cell:
    """One direction of a recurrent operator."""

    n: OnnxNode
    hidden: int
    weights: Expr  # (inputs, gates * hidden)
    recurrent: Expr  # (hidden, gates * hidden)
    bias: Expr | None  # (gates * hidden,), of the inputs
    recurrent_bias: Expr | None
    peephole: Expr | None
    activations: Sequence[Callable[[Expr], Expr]]
    clip: float | None

    def part(self, x: Expr, gate: int, axis: int = 1) -> Expr:
        """The columns of one gate."""
        return R.strided_slice(x, [axis], [gate * self.hidden], [(gate + 1) * self.hidden])

    def act(self, index: int, x: Expr) -> Expr:
        """An activation of a limited value."""
        return self.activations[index](R.clip(x, -self.clip, self.clip) if self.clip is not None else x)

    def gate(self, index: int) -> Expr:
        """The peephole of a gate, 0 without."""
        assert self.peephole is not None
        return self.part(self.peephole, index, 0)


def _rnn(cell: Cell, x: Expr, state: Sequence[Expr]) -> list[Expr]:
    product = R.add(x, _recurrent(cell, state[0]))
    return [cell.act(0, product)]


def _recurrent(cell: Cell, h: Expr) -> Expr:
    product = R.matmul(h, cell.recurrent)
    return product if cell.recurrent_bias is None else R.add(product, cell.recurrent_bias)


def _gru(cell: Cell, x: Expr, state: Sequence[Expr]) -> list[Expr]:
    n, (h,) = cell.n, state
    gates = n.emit(_recurrent(cell, h), "gates")
    z = n.emit(cell.act(0, R.add(cell.part(x, 0), cell.part(gates, 0))), "z")
    r = n.emit(cell.act(0, R.add(cell.part(x, 1), cell.part(gates, 1))), "r")
    if n.attr("linear_before_reset", 0):
        new = R.multiply(r, cell.part(gates, 2))
    else:
        new = R.matmul(R.multiply(r, h), cell.part(cell.recurrent, 2))
        if cell.recurrent_bias is not None:
            new = R.add(new, cell.part(cell.recurrent_bias, 2, 0))
    new = n.emit(cell.act(1, R.add(cell.part(x, 2), new)), "new")
    return [R.add(R.multiply(R.subtract(R.ones_like(z), z), new), R.multiply(z, h))]


def _lstm(cell: Cell, x: Expr, state: Sequence[Expr]) -> list[Expr]:
    n, (h, c) = cell.n, state
    gates = n.emit(R.add(x, _recurrent(cell, h)), "gates")
    i, o, f, new = (cell.part(gates, index) for index in range(4))
    if cell.peephole is not None:
        i, f = R.add(i, R.multiply(cell.gate(0), c)), R.add(f, R.multiply(cell.gate(2), c))
    i = n.emit(cell.act(0, i), "i")
    f = R.subtract(R.ones_like(i), i) if n.attr("input_forget", 0) else cell.act(0, f)
    kept = n.emit(R.add(R.multiply(f, c), R.multiply(i, cell.act(1, new))), "c")
    if cell.peephole is not None:
        o = R.add(o, R.multiply(cell.gate(1), kept))
    return [R.multiply(cell.act(0, o), cell.activations[2](kept)), kept]


def _functions(n: OnnxNode, names: Sequence[str]) -> list[Callable[[Expr], Expr]]:
    alphas, betas = list(n.attr("activation_alpha") or []), list(n.attr("activation_beta") or [])
    made: list[Callable[[Expr], Expr]] = []
    for name in names:
        key = name.lower()
        if key not in _ACTIVATIONS:
            raise Unsupported(f"the activation {name}")
        alpha, beta = _CONSTANTS.get(key, (0.0, 0.0))
        if key in _CONSTANTS and alphas:
            alpha = alphas.pop(0)
        if key in ("affine", "scaledtanh", "hardsigmoid") and betas:
            beta = betas.pop(0)
        made.append(_bound(_ACTIVATIONS[key], float(alpha), float(beta)))
    return made


def _bound(function: Callable[[Expr, float, float], Expr], alpha: float, beta: float) -> Callable[[Expr], Expr]:
    return lambda x: function(x, alpha, beta)


def recurrent(gates: int, states: int, step: Any, default: Sequence[str]) -> Any:
    """A recurrent operator of a number of gates and states."""

    def over(n: OnnxNode, x: Expr, w: Expr, r: Expr, b: Expr | None, lengths: Expr | None) -> Any:
        if n.attr("layout", 0):
            x = n.emit(R.permute_dims(x, (1, 0, 2)), "x")
        directions, hidden = n.dims(w, [0])[0], int(n.attr("hidden_size") or n.dims(r, [2])[0])
        steps, batch = n.dims(x, [0])[0], n.shape(x)[1]
        if not 0 < steps <= _MOST_STEPS:
            raise Unsupported(f"a sequence of {steps} steps")
        names = list(n.attr("activations") or list(default) * directions)
        per = len(names) // directions
        initial = [_initial(n, 5 + index, directions, batch, hidden, n.dtype(x)) for index in range(states)]
        sequences, finals = [], []
        for d in range(directions):
            backwards = n.attr("direction", "forward") == "reverse" or d == 1
            cell = _cell(n, gates, hidden, d, w, r, b, _functions(n, names[d * per : (d + 1) * per]))
            state = [_one(n, s, d) for s in initial]
            rows, state = _run(cell, step, x, state, steps, backwards, lengths)
            sequences.append(
                R.concat([R.expand_dims(h, [0, 1]) for h in rows], 0) if steps > 1 else R.expand_dims(rows[0], [0, 1])
            )
            finals.append(state)
        y = R.concat(sequences, 1) if directions > 1 else sequences[0]
        ends = [[R.expand_dims(final[index], [0]) for final in finals] for index in range(states)]
        outputs = [y, *(R.concat(parts, 0) if len(parts) > 1 else parts[0] for parts in ends)]
        if n.attr("layout", 0):
            outputs = [R.permute_dims(y, (2, 0, 1, 3)), *(R.permute_dims(v, (1, 0, 2)) for v in outputs[1:])]
        return outputs[: len(n.proto.output)]

    return over


def _one(n: OnnxNode, x: Expr, index: int) -> Expr:
    return n.emit(R.squeeze(R.strided_slice(x, [0], [index], [index + 1]), [0]), "part")


def _initial(n: OnnxNode, index: int, directions: int, batch: Any, hidden: int, dtype: str) -> Expr:
    given = n[index]
    if given is None:
        return n.emit(R.zeros((directions, batch, hidden), dtype), "initial")
    return n.emit(R.permute_dims(given, (1, 0, 2)), "initial") if n.attr("layout", 0) else given


def _cell(n: OnnxNode, gates: int, hidden: int, d: int, w: Expr, r: Expr, b: Expr | None, functions: Any) -> Cell:
    bias, recurrent_bias = None, None
    if b is not None:
        both = _one(n, b, d)
        bias = n.emit(R.strided_slice(both, [0], [0], [gates * hidden]), "bias")
        recurrent_bias = n.emit(R.strided_slice(both, [0], [gates * hidden], [2 * gates * hidden]), "bias")
    peephole = _one(n, n.need(7), d) if gates == 4 and n.has(7) else None
    limit = float(n.attr("clip")) if n.given("clip") else None
    turned = [n.emit(R.permute_dims(_one(n, v, d), (1, 0)), "weights") for v in (w, r)]
    return Cell(n, hidden, turned[0], turned[1], bias, recurrent_bias, peephole, functions, limit)


def _run(
    cell: Cell, step: Any, x: Expr, state: list[Expr], steps: int, backwards: bool, lengths: Expr | None
) -> tuple[list[Expr], list[Expr]]:
    """The result of each step in order of the sequence, and the last state."""
    n = cell.n
    projected = R.matmul(x, cell.weights)
    projected = n.emit(projected if cell.bias is None else R.add(projected, cell.bias), "projected")
    rows: list[Expr] = [x] * steps
    for at in reversed(range(steps)) if backwards else range(steps):
        new: list[Expr] = [n.emit(value, "state") for value in step(cell, _one(n, projected, at), state)]
        shown = new[0]
        if lengths is not None:
            runs = R.expand_dims(R.greater(lengths, Constant(np.asarray(at, n.dtype(lengths)))), [1])
            shown = n.emit(R.where(runs, new[0], R.zeros_like(new[0])), "shown")
            new = [n.emit(R.where(runs, a, b), "state") for a, b in zip(new, state, strict=True)]
        rows[at], state = shown, new
    return rows, state


row("RNN", recurrent(1, 1, _rnn, ["Tanh"]))
row("GRU", recurrent(3, 1, _gru, ["Sigmoid", "Tanh"]))
row("LSTM", recurrent(4, 2, _lstm, ["Sigmoid", "Tanh", "Tanh"]))
