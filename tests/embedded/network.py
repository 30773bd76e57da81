"""The digits network for boards: the weights of the demo, one image a call."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import weft
from weft import transform
from weft.ir import IRModule

DATA = Path(__file__).resolve().parents[2] / "examples" / "data"


_WEIGHTS = """
images: R.Tensor(("n", 1, 8, 8), "float32"),
        conv_weight: R.Tensor((16, 1, 3, 3), "float32"),
        conv_bias: R.Tensor((16,), "float32"),
        hidden_weight: R.Tensor((256, 64), "float32"),
        hidden_bias: R.Tensor((64,), "float32"),
        out_weight: R.Tensor((64, 10), "float32"),
        out_bias: R.Tensor((10,), "float32"),
"""
_NETWORK = """
@I.ir_module
class Network:
    @R.function
    def main(
        WEIGHTS
    ):
        with R.dataflow():
            convolved = R.nn.relu(R.nn.conv2d(images, conv_weight, padding=1) + R.reshape(conv_bias, (1, 16, 1, 1)))
            pooled = R.reshape(R.nn.max_pool2d(convolved, pool_size=(2, 2), strides=(2, 2)), (n, 256))
            hidden = R.nn.relu(R.matmul(pooled, hidden_weight) + hidden_bias)
            scores = R.matmul(hidden, out_weight) + out_bias
            confidence = R.nn.softmax(scores)
            digit = R.argmax(confidence, axis=1)
            R.output(scores, digit, confidence)
        return RESULT
"""


def network(result: str) -> IRModule:
    """The network with its weights as parameters, whose `main` gives some of: scores, digit, confidence."""
    return transform.DeadCodeElimination()(_parsed(_NETWORK.replace("RESULT", result)))


def _parsed(text: str) -> IRModule:
    module = weft.parse(text.replace("WEIGHTS", _WEIGHTS))
    assert isinstance(module, IRModule)
    return module


def images(count: int) -> np.ndarray:
    """The first test images, scaled to 0..1."""
    return np.load(DATA / "digits.npz")["images"][:count].reshape(count, 1, 8, 8).astype("float32") / np.float32(16)


def bound(count: int) -> IRModule:
    """The network with its weights, for a known number of images."""
    weights = dict(np.load(DATA / "digits_weights.npz"))
    module = transform.BindParams("main", weights)(network("(digit, confidence)"))
    return transform.BindSymbolicVars({"n": count})(module)


_DIVIDED = """
@I.ir_module
class Divided:
    @R.function(private=True)
    def features(
        images: R.Tensor(("n", 1, 8, 8), "float32"),
        conv_weight: R.Tensor((16, 1, 3, 3), "float32"),
        conv_bias: R.Tensor((16,), "float32"),
    ) -> R.Tensor(("n", 256), "float32"):
        R.func_attr({"target": "inference_cpu"})
        with R.dataflow():
            convolved = R.nn.relu(R.nn.conv2d(images, conv_weight, padding=1) + R.reshape(conv_bias, (1, 16, 1, 1)))
            pooled = R.reshape(R.nn.max_pool2d(convolved, pool_size=(2, 2), strides=(2, 2)), (n, 256))
            R.output(pooled)
        return pooled

    @R.function(private=True)
    def layer(
        x: R.Tensor(("n", "k"), "float32"), weight: R.Tensor(("k", "m"), "float32"), bias: R.Tensor(("m",), "float32")
    ) -> R.Tensor(("n", "m"), "float32"):
        R.func_attr({"target": "low_power_cpu"})
        with R.dataflow():
            y = R.matmul(x, weight) + bias
            R.output(y)
        return y

    @R.function
    def main(
        WEIGHTS
    ) -> R.Tuple(R.Tensor(("n",), "int64"), R.Tensor(("n", 10), "float32")):
        with R.dataflow():
            pooled = cls.features(images, conv_weight, conv_bias)
            hidden = R.nn.relu(cls.layer(pooled, hidden_weight, hidden_bias))
            confidence = R.nn.softmax(cls.layer(hidden, out_weight, out_bias))
            digit = R.argmax(confidence, axis=1)
            R.output(digit, confidence)
        return digit, confidence
"""


def divided(count: int) -> IRModule:
    """The same in functions with the label of the part of a target that runs each."""
    weights = dict(np.load(DATA / "digits_weights.npz"))
    module = transform.BindParams("main", weights)(_parsed(_DIVIDED))
    return transform.BindSymbolicVars({"n": count}, "main")(module)
