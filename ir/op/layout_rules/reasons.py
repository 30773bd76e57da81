"""Why operators of a family compute on their operands as they are written, unless a declaration says otherwise."""

from __future__ import annotations

__all__ = ["REASONS"]

_ORDER = "what it gives depends on the order in which the elements lie"
_PLACES = "its operands name places in tensors as they are written"
_NONE = "it has no operand whose axes could lie otherwise"
_LAST = "its rows or matrices are the last axes"
_MEMORY = "it says where values lie, not what they are"
_CALLEE = "the function that it calls says how its operands lie"

REASONS: dict[str, str] = {
    "call": _CALLEE,
    "create": _NONE,
    "dynamic": _ORDER,
    "elementwise_datatype": _MEMORY,
    "elementwise_quantize": "scales belong to axes, and to groups of elements that follow each other along one",
    "elementwise_requantize": "multipliers belong to an axis",
    "fft": "the values that it transforms lie along axes",
    "grad": "its operands lie as those of the operator that it is the gradient of",
    "indexing_index": _PLACES,
    "indexing_scatter": _PLACES,
    "indexing_search": "the sequence that is searched is the last axis",
    "indexing_selection": _PLACES,
    "indexing_sorting": "the place of the value is counted along the axis as it is written",
    "inspection": "it tells how a value lies",
    "layout": "it moves elements itself, by a formula of their places as they are written",
    "linear_algebra": _LAST,
    "manipulate": _ORDER,
    "nn_activations": _ORDER,
    "nn_attention": "sequences, heads and their elements are its axes in this order",
    "nn_loss": "classes are its second axis",
    "nn_norm": "channels are its second axis",
    "nn_pool": "channels and images are its axes in this order",
    "nn_recurrent": "its layout is one of sequences, which nothing else shares",
    "nn_window": "channels and images are its axes in this order",
    "program_call": _CALLEE,
    "program_distributed": "it says on which devices values lie",
    "program_loop": "the body says how its values lie",
    "program_memory": _MEMORY,
    "program_shape_ops": "it reads sizes, or shows values as they are written",
    "quantized": _LAST,
    "reductions_statistical": _ORDER,
    "signal": "its samples lie along one axis",
    "unary": "it gives two values of one",
    "vision_detection": "boxes are rows",
    "vision_image": _NONE,
    "window": _NONE,
}
