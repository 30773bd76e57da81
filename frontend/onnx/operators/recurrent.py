"""RNN, GRU and LSTM: operators of ours with the same weights, orders of gates, directions and activations."""

from __future__ import annotations

from typing import Any

from weft.errors import ShapeError
from weft.frontend.emitter import Unsupported
from weft.frontend.onnx.node import OnnxNode
from weft.frontend.onnx.table import row
from weft.ir.graph import Expr, TupleGetItem
from weft.script import relax as R


def recurrent(operator: Any, states: int, activations: int, own: str = "") -> Any:
    """A recurrent operator of a number of states and activations, with an attribute of its own."""

    def over(n: OnnxNode, x: Expr, w: Expr, r: Expr, b: Expr | None, lengths: Expr | None) -> Any:
        later = [n[index] for index in range(5, 8 if states == 2 else 6)]  # initial states, peepholes
        direction = n.attr("direction", "forward")
        names = list(n.attr("activations") or ())[: activations * (2 if direction == "bidirectional" else 1)]
        options: dict[str, Any] = {
            "direction": direction,
            "activations": names or None,
            "activation_alpha": n.attr("activation_alpha") or None,
            "activation_beta": n.attr("activation_beta") or None,
            "clip": float(n.attr("clip")) if n.given("clip") else None,
            "layout": int(n.attr("layout", 0)),
        }
        if own:
            options[own] = bool(n.attr(own, 0))
        try:
            made = n.emit(operator(x, w, r, b, lengths, *later, **options), "layers")
        except ShapeError as error:
            raise Unsupported(error.message) from None
        return [TupleGetItem(made, index) for index in range(len(n.proto.output))]

    return over


row("RNN", recurrent(R.nn.rnn, 1, 1))
row("GRU", recurrent(R.nn.gru, 1, 2, "linear_before_reset"))
row("LSTM", recurrent(R.nn.lstm, 2, 3, "input_forget"))
