"""Recurrent layers: one layer of ours for each, whose gates stand in another order in PyTorch's weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.frontend.emitter import Unsupported
from weft.frontend.torch.node import FxNode
from weft.frontend.torch.table import row
from weft.ir.graph import Expr, TupleGetItem
from weft.script import relax as R


class _Layers:
    """Layers one on the other: what an operator of ours is told for each of them."""

    def __init__(self, operator: Any, states: int, activation: str = "", **options: Any) -> None:
        self.operator, self.states, self.activation, self.options = operator, states, activation, options

    def __call__(
        self,
        n: FxNode,
        x: Expr,
        initial: Any,
        weights: Sequence[Expr],
        biased: bool,
        count: int,
        dropout: float,
        train: bool,
        both: bool,
        batch_first: bool = False,
    ) -> list[Expr]:
        """The last layer's results, and the last states of all layers, by layer and direction."""
        first = list(initial) if isinstance(initial, (list, tuple)) else [initial]
        directions, each = 2 if both else 1, 4 if biased else 2
        if (train and dropout) or len(weights) != count * directions * each:
            raise Unsupported("dropout between layers, or projections of the states")
        single = n.rank(x) == 2
        if single:
            x, first = R.expand_dims(x, [1]), [R.expand_dims(state, [1]) for state in first]
        elif batch_first:
            x = R.permute_dims(x, (1, 0, 2))
        first = [n.emit(state, "initial") for state in first]
        ends: list[list[Expr]] = [[] for _ in first]
        for layer in range(count):
            own = [
                weights[(layer * directions + d) * each : (layer * directions + d + 1) * each]
                for d in range(directions)
            ]
            start, stop = layer * directions, (layer + 1) * directions
            x, *after = self._layer(n, x, own, [R.strided_slice(state, [0], [start], [stop]) for state in first])
            for kept, state in zip(ends, after, strict=True):
                kept.append(state)
        results = [x, *(R.concat(parts, 0) if len(parts) > 1 else parts[0] for parts in ends)]
        if single:
            return [R.squeeze(result, [1]) for result in results]
        return [R.permute_dims(x, (1, 0, 2)) if batch_first else x, *results[1:]]

    def _layer(self, n: FxNode, x: Expr, own: Sequence[Sequence[Expr]], initial: Sequence[Expr]) -> list[Expr]:
        """One layer, of which `own` has the weights by direction: its results, and its last states."""
        weight, recurrent = (R.stack([part[index] for part in own], 0) for index in range(2))
        bias = R.stack([R.concat(list(part[2:]), 0) for part in own], 0) if len(own[0]) == 4 else None
        options = {**self.options, "direction": "bidirectional" if len(own) == 2 else "forward"}
        if self.activation:
            options["activations"] = [self.activation] * len(own)
        made = n.emit(self.operator(x, weight, recurrent, bias, None, *initial, **options), "layer")
        y, *after = (n.emit(TupleGetItem(made, index)) for index in range(1 + self.states))
        steps, directions, batch, hidden = n.shape(y)
        rows = R.reshape(R.permute_dims(y, (0, 2, 1, 3)), (steps, batch, directions * hidden))
        return [n.emit(rows, "rows"), *after]


row("lstm", _Layers(R.nn.lstm, 2, gates="ifco"))
row("gru", _Layers(R.nn.gru, 1, gates="rzh", linear_before_reset=True))
row("rnn_tanh", _Layers(R.nn.rnn, 1))
row("rnn_relu", _Layers(R.nn.rnn, 1, "Relu"))
