"""What is measured beside other libraries: each case as a weft script, and as functions over NumPy, jax and torch.

A case has inputs (arrays of given shapes and dtypes), the lines of a weft function over them (`x0`, `x1`, ... in, the
last name out) and formulas: `arrays` takes a namespace that follows NumPy (numpy, jax.numpy) and the inputs, `torch`
takes the module torch and tensors, `onnx` lists nodes of a graph. A formula that is absent has no counterpart there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

import weft

__all__ = ["RESNET_18", "Case", "Input", "cases", "layer_norm", "module_of", "rms_norm", "softmax"]

Formula = Callable[..., Any]
Node = tuple[str, tuple[str, ...], tuple[str, ...], dict[str, Any]]


@dataclass(frozen=True)
class Input:
    """An argument: its shape now, its type in the script (symbols allowed), and how its values are drawn.

    Weights are known when the model is compiled, to the libraries that compile.
    """

    shape: tuple[int, ...]
    dtype: str = "float32"
    text: str = ""
    scale: float = 1.0
    below: int = 0  # integers are drawn from 0 to this
    weight: bool = False
    around: float = 0.0  # what floats are drawn around

    @property
    def annotation(self) -> str:
        """The type in the script."""
        dims = self.text or ", ".join(map(str, self.shape)) + ("," if len(self.shape) == 1 else "")
        return f'R.Tensor(({dims}), "{self.dtype}")'

    def draw(self, random: np.random.Generator) -> np.ndarray:
        """Values."""
        if self.dtype.startswith("int"):
            return random.integers(0, self.below, self.shape, self.dtype)
        return (random.standard_normal(self.shape, "float32") * self.scale + self.around).astype(self.dtype)


@dataclass(frozen=True)
class Case:
    """One row of the table; `tolerance` is absolute and relative."""

    group: str
    name: str
    inputs: tuple[Input, ...]
    lines: tuple[str, ...]
    arrays: Formula | None = None
    torch: Formula | None = None
    onnx: tuple[Node, ...] = ()
    tolerance: float = 1e-3
    symbols: tuple[str, ...] = ()


def module_of(case: Case) -> weft.IRModule:
    """The case as a module whose function `main` takes the inputs in order."""
    parameters = ", ".join(f"x{index}: {item.annotation}" for index, item in enumerate(case.inputs))
    lines = [f"{name} = T.int64()" for name in case.symbols] + list(case.lines)
    last = case.lines[-1].split("=")[0].strip()
    body = "\n".join(f"        {line}" for line in (*lines, f"return {last}"))
    text = (
        "from weft.script import ir as I, relax as R, tir as T\n\n@I.ir_module\nclass Case:\n    @R.function\n"
        f"    def main({parameters}):\n{body}\n"
    )
    module = weft.parse(text)
    assert isinstance(module, weft.IRModule)
    return module


def node(kind: str, *inputs: str, out: str = "y", **attributes: Any) -> Node:
    """A node of an ONNX graph with one result."""
    return kind, inputs, (out,), attributes


def cases() -> Iterator[Case]:
    """Everything that is measured, group by group."""
    yield from _products()
    yield from _convolutions()
    yield from _rows()
    yield from _attentions()
    yield from _models()


def _product(name: str, a: tuple[int, ...], b: tuple[int, ...], group: str) -> Case:
    return Case(
        group, name, (Input(a), Input(b)), ("y = R.matmul(x0, x1)",), lambda xp, a, b: xp.matmul(a, b),
        lambda torch, a, b: torch.matmul(a, b), (node("MatMul", "x0", "x1"),),
    )


def _products() -> Iterator[Case]:
    for n in (64, 96, 128, 256, 512, 1024, 2048):
        yield _product(f"matmul {n}", (n, n), (n, n), "matmul")
    for m, k, n in ((97, 101, 103), (333, 257, 511), (1000, 777, 1001)):
        yield _product(f"matmul {m}x{k}x{n}", (m, k), (k, n), "matmul")
    for side in (1024, 4096):
        for m in (1, 7, 33, 128):
            yield _product(f"matmul {m}x{side}x{side}", (m, side), (side, side), "skinny")
    yield _product("batched 8x128x64x128", (8, 128, 64), (8, 64, 128), "matmul")


# The distinct convolutions of ResNet-18: channels, results, height and width, kernel, stride.
RESNET_18 = (
    (3, 64, 224, 7, 2), (64, 64, 56, 3, 1), (64, 128, 56, 3, 2), (64, 128, 56, 1, 2), (128, 128, 28, 3, 1),
    (128, 256, 28, 3, 2), (128, 256, 28, 1, 2), (256, 256, 14, 3, 1), (256, 512, 14, 3, 2), (256, 512, 14, 1, 2),
    (512, 512, 7, 3, 1),
)


def _convolution(
    name: str, channels: int, out: int, size: int, kernel: int, stride: int, groups: int, group: str
) -> Case:
    pad = kernel // 2
    options = f"strides={stride}, padding={pad}, groups={groups}"
    return Case(
        group, name, (Input((1, channels, size, size)), Input((out, channels // groups, kernel, kernel), scale=0.05)),
        (f"y = R.nn.conv2d(x0, x1, {options})",), None,
        lambda torch, x, w: torch.nn.functional.conv2d(x, w, stride=stride, padding=pad, groups=groups),
        (node("Conv", "x0", "x1", strides=[stride] * 2, pads=[pad] * 4, group=groups, kernel_shape=[kernel] * 2),),
    )


def _convolutions() -> Iterator[Case]:
    for channels, out, size, kernel, stride in RESNET_18:
        name = f"conv2d {channels}->{out} {size}x{size} {kernel}x{kernel}/{stride}"
        yield _convolution(name, channels, out, size, kernel, stride, 1, "conv2d")
    for channels, size, stride in ((32, 112, 1), (96, 112, 2), (384, 14, 1)):
        name = f"depthwise {channels} {size}x{size} 3x3/{stride}"
        yield _convolution(name, channels, channels, size, 3, stride, channels, "depthwise")


def softmax(xp: Any, x: Any) -> Any:
    """Along the last axis, over a namespace that follows NumPy."""
    powers = xp.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def layer_norm(xp: Any, x: Any, gamma: Any, beta: Any) -> Any:
    """Along the last axis."""
    centred = x - x.mean(-1, keepdims=True)
    return centred / xp.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * gamma + beta


def rms_norm(xp: Any, x: Any, gamma: Any) -> Any:
    """Along the last axis."""
    return x / xp.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * gamma


def _gelu(xp: Any, x: Any, bias: Any) -> Any:
    x = x + bias
    return 0.5 * x * (1.0 + xp.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


def _rows() -> Iterator[Case]:
    wide, row = Input((4096, 1024)), Input((1024,))
    functional: Callable[[Any], Any] = lambda torch: torch.nn.functional  # noqa: E731
    yield Case("norms", "softmax 4096x1024", (wide,), ("y = R.nn.softmax(x0, axis=-1)",), softmax,
               lambda torch, x: torch.softmax(x, -1), (node("Softmax", "x0", axis=-1),))
    yield Case("norms", "layer_norm 4096x768", (Input((4096, 768)), Input((768,)), Input((768,))),
               ("y = R.nn.layer_norm(x0, x1, x2, axes=-1)",), layer_norm,
               lambda torch, x, g, b: functional(torch).layer_norm(x, (768,), g, b),
               (node("LayerNormalization", "x0", "x1", "x2", axis=-1),))
    yield Case("norms", "rms_norm 4096x1024", (wide, row), ("y = R.nn.rms_norm(x0, x1, axes=-1)",), rms_norm,
               lambda torch, x, g: functional(torch).rms_norm(x, (1024,), g, 1e-5))
    yield Case("elementwise", "gelu of a sum 4096x1024", (wide, row), ("z = R.add(x0, x1)", "y = R.nn.gelu_tanh(z)"),
               _gelu, lambda torch, x, b: functional(torch).gelu(x + b, approximate="tanh"))
    yield Case("elementwise", "abs(tanh(exp)) 1M", (Input((1 << 20,)),),
               ("a = R.exp(x0)", "b = R.tanh(a)", "y = R.abs(b)"), lambda xp, x: xp.abs(xp.tanh(xp.exp(x))),
               lambda torch, x: torch.abs(torch.tanh(torch.exp(x))),
               (node("Exp", "x0", out="a"), node("Tanh", "a", out="b"), node("Abs", "b")))
    yield Case("reductions", "sum of rows 4096x1024", (wide,), ("y = R.sum(x0, axis=1)",), lambda xp, x: x.sum(1),
               lambda torch, x: x.sum(1), tolerance=1e-2)
    yield Case("reductions", "sum of columns 4096x1024", (wide,), ("y = R.sum(x0, axis=0)",), lambda xp, x: x.sum(0),
               lambda torch, x: x.sum(0), tolerance=1e-2)
    yield Case("reductions", "sum 4096x1024", (wide,), ("y = R.sum(x0)",), lambda xp, x: x.sum(),
               lambda torch, x: x.sum(), tolerance=1.0)
    yield Case("reductions", "argmax of rows 4096x1024", (wide,), ("y = R.argmax(x0, axis=1)",),
               lambda xp, x: x.argmax(1), lambda torch, x: x.argmax(1),
               (node("ArgMax", "x0", axis=1, keepdims=0),))
    yield Case("movement", "transpose 2048x2048", (Input((2048, 2048)),), ("y = R.permute_dims(x0)",),
               lambda xp, x: xp.ascontiguousarray(x.T) if xp is np else x.T.copy(),
               lambda torch, x: x.t().contiguous(), (node("Transpose", "x0", perm=[1, 0]),))
    yield Case("movement", "cumsum 4096x1024", (wide,), ("y = R.cumsum(x0, axis=1)",), lambda xp, x: xp.cumsum(x, 1),
               lambda torch, x: x.cumsum(1), tolerance=1e-2)
    yield Case("movement", "embedding 32000x512, 2048", (Input((32000, 512)), Input((2048,), "int64", below=32000)),
               ("y = R.take(x0, x1, axis=0)",), lambda xp, x, i: xp.take(x, i, 0),
               lambda torch, x, i: torch.nn.functional.embedding(i, x),
               (node("Gather", "x0", "x1", axis=0),))


def _attention(xp: Any, q: Any, k: Any, v: Any) -> Any:
    scores = xp.matmul(q.transpose(0, 2, 1, 3), k.transpose(0, 2, 3, 1)) / np.sqrt(q.shape[-1]).astype("float32")
    return xp.matmul(softmax(xp, scores), v.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3)


def _torch_attention(torch: Any, q: Any, k: Any, v: Any) -> Any:
    turned = [x.transpose(1, 2) for x in (q, k, v)]
    return torch.nn.functional.scaled_dot_product_attention(*turned).transpose(1, 2).contiguous()


def _attentions() -> Iterator[Case]:
    for length in (64, 256, 1024):
        item = Input((1, length, 8, 64))
        yield Case("attention", f"8 heads of 64, {length} long", (item,) * 3, ("y = R.nn.attention(x0, x1, x2)",),
                   _attention, _torch_attention)


# -- models


def _perceptron() -> Case:
    sizes = (784, 512, 256, 10)
    weights = [
        Input(shape, scale=scale, weight=True)
        for a, b in pairwise(sizes) for shape, scale in (((a, b), 0.05), ((b,), 1.0))
    ]
    lines = []
    for layer, (w, b) in enumerate(((1, 2), (3, 4), (5, 6))):
        given = "x0" if layer == 0 else f"h{layer - 1}"
        lines += [f"p{layer} = R.matmul({given}, x{w})", f"s{layer} = R.add(p{layer}, x{b})"]
        lines.append(f"h{layer} = R.nn.relu(s{layer})" if layer < 2 else "y = R.nn.softmax(s2, axis=-1)")

    def arrays(xp: Any, x: Any, *weights: Any) -> Any:
        for layer in range(3):
            x = xp.matmul(x, weights[2 * layer]) + weights[2 * layer + 1]
            x = xp.maximum(x, 0) if layer < 2 else softmax(xp, x)
        return x

    def torch_formula(torch: Any, x: Any, *weights: Any) -> Any:
        for layer in range(3):
            x = torch.addmm(weights[2 * layer + 1], x, weights[2 * layer])
            x = torch.relu(x) if layer < 2 else torch.softmax(x, -1)
        return x

    return Case("models", "perceptron of 3 layers, batch 64", (Input((64, 784), text='"n", 784'), *weights),
                tuple(lines), arrays, torch_formula, symbols=("n",))


class _Graph:
    """A model under construction: inputs and lines for weft, and the same calls on torch tensors."""

    def __init__(self, *inputs: Input) -> None:
        self.inputs = list(inputs)
        self.lines: list[str] = []
        self.steps: list[tuple[str, Callable[[Any, dict[str, Any]], Any]]] = []

    def weight(self, *shape: int, scale: float = 0.05, around: float = 0.0) -> str:
        self.inputs.append(Input(shape, scale=scale, weight=True, around=around))
        return f"x{len(self.inputs) - 1}"

    def add(self, text: str, step: Callable[[Any, dict[str, Any]], Any]) -> str:
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        self.steps.append((name, step))
        return name

    def case(self, name: str, symbols: tuple[str, ...] = ()) -> Case:
        last, steps = self.steps[-1][0], tuple(self.steps)

        def run(torch: Any, *inputs: Any) -> Any:
            values = {f"x{index}": value for index, value in enumerate(inputs)}
            for target, step in steps:
                values[target] = step(torch, values)
            return values[last]

        return Case("models", name, tuple(self.inputs), tuple(self.lines), None, run, symbols=symbols)


def _resnet_18(norms: bool = False) -> Case:
    """The network with biases in its convolutions, or with norms behind them, as it is exported."""
    g = _Graph(Input((1, 3, 224, 224)))

    def conv(x: str, channels: int, out: int, kernel: int, stride: int) -> str:
        if norms:
            return norm(x, channels, out, kernel, stride)
        w, b, pad = g.weight(out, channels, kernel, kernel), g.weight(1, out, 1, 1), kernel // 2
        y = g.add(
            f"R.nn.conv2d({x}, {w}, strides={stride}, padding={pad})",
            lambda t, v: t.nn.functional.conv2d(v[x], v[w], v[b].flatten(), stride=stride, padding=pad),
        )
        return g.add(f"R.add({y}, {b})", lambda t, v: v[y])  # torch adds it in the convolution

    def norm(x: str, channels: int, out: int, kernel: int, stride: int) -> str:
        w, pad = g.weight(out, channels, kernel, kernel), kernel // 2
        scale, shift, mean, variance = g.weight(out, around=1), g.weight(out), g.weight(out), g.weight(out, around=1)
        y = g.add(
            f"R.nn.conv2d({x}, {w}, strides={stride}, padding={pad})",
            lambda t, v: t.nn.functional.conv2d(v[x], v[w], stride=stride, padding=pad),
        )
        return g.add(
            f"R.nn.batch_norm({y}, {scale}, {shift}, {mean}, {variance}, axis=1, training=False)[0]",
            lambda t, v: t.nn.functional.batch_norm(v[y], v[mean], v[variance], v[scale], v[shift]),
        )

    def relu(x: str) -> str:
        return g.add(f"R.nn.relu({x})", lambda t, v: t.relu(v[x]))

    x = relu(conv("x0", 3, 64, 7, 2))
    pool = x
    x = g.add(
        f"R.nn.max_pool2d({pool}, pool_size=(3, 3), strides=(2, 2), padding=(1, 1))",
        lambda t, v: t.nn.functional.max_pool2d(v[pool], 3, 2, 1),
    )
    channels = 64
    for stage, out in enumerate((64, 128, 256, 512)):
        for block in range(2):
            stride = 2 if stage and not block else 1
            short = conv(x, channels, out, 1, stride) if stride == 2 else x
            y = conv(relu(conv(x, channels, out, 3, stride)), out, out, 3, 1)
            both = g.add(f"R.add({y}, {short})", lambda t, v, y=y, short=short: v[y] + v[short])
            x, channels = relu(both), out
    mean = g.add(f"R.mean({x}, axis=[2, 3])", lambda t, v, x=x: v[x].mean((2, 3)))
    w, b = g.weight(512, 1000), g.weight(1000)
    product = g.add(f"R.matmul({mean}, {w})", lambda t, v: v[mean] @ v[w])
    g.add(f"R.add({product}, {b})", lambda t, v: v[product] + v[b])
    return g.case("ResNet-18 with norms, batch 1" if norms else "ResNet-18, batch 1")


def _linear(g: _Graph, x: str, a: int, b: int) -> str:
    w, bias = g.weight(a, b), g.weight(b)
    product = g.add(f"R.matmul({x}, {w})", lambda t, v: v[x] @ v[w])
    return g.add(f"R.add({product}, {bias})", lambda t, v: v[product] + v[bias])


def _encoder() -> Case:
    """Four layers like BERT's: width 512, 8 heads; batch and length are symbols."""
    g = _Graph(Input((2, 128, 512), text='"n", "length", 512'))
    width, heads, x = 512, 8, "x0"
    for _ in range(4):
        parts = []
        for _ in range(3):
            flat = _linear(g, x, width, width)
            parts.append(g.add(f"R.reshape({flat}, (n, length, {heads}, {width // heads}))",
                               lambda t, v, flat=flat: v[flat].unflatten(2, (heads, width // heads))))
        q, k, u = parts
        mixed = g.add(
            f"R.nn.attention({q}, {k}, {u})", lambda t, v, q=q, k=k, u=u: _torch_attention(t, v[q], v[k], v[u])
        )
        joined = g.add(f"R.reshape({mixed}, (n, length, {width}))", lambda t, v, mixed=mixed: v[mixed].flatten(2))
        x = _normed(g, x, _linear(g, joined, width, width), width)
        hidden = _linear(g, x, width, 4 * width)
        active = g.add(f"R.nn.gelu_tanh({hidden})",
                       lambda t, v, hidden=hidden: t.nn.functional.gelu(v[hidden], approximate="tanh"))
        x = _normed(g, x, _linear(g, active, 4 * width, width), width)
    return g.case("encoder, 4 layers of 512, 2x128 (symbolic)", ("n", "length"))


def _normed(g: _Graph, x: str, y: str, width: int) -> str:
    both = g.add(f"R.add({x}, {y})", lambda t, v: v[x] + v[y])
    gamma, beta = g.weight(width), g.weight(width)
    return g.add(
        f"R.nn.layer_norm({both}, {gamma}, {beta}, axes=-1)",
        lambda t, v: t.nn.functional.layer_norm(v[both], (width,), v[gamma], v[beta]),
    )


def _decoder() -> Case:
    """One token through two layers like Llama's: width 1024, 16 heads, a cache whose length is a symbol."""
    width, heads, inner, size, length = 1024, 16, 2816, 64, 255
    g, x = _Graph(Input((1, 1, width))), "x0"
    for _ in range(2):
        normed = _rms(g, x, width)
        parts = []
        for _ in range(3):
            w = g.weight(width, width)
            flat = g.add(f"R.matmul({normed}, {w})", lambda t, v, normed=normed, w=w: v[normed] @ v[w])
            parts.append(g.add(f"R.reshape({flat}, (1, 1, {heads}, {size}))",
                               lambda t, v, flat=flat: v[flat].reshape(1, 1, heads, size)))
        q, *new = parts
        caches = []
        for item in new:
            g.inputs.append(Input((1, length, heads, size), text=f'1, "length", {heads}, {size}'))
            old = f"x{len(g.inputs) - 1}"
            caches.append(g.add(f"R.concat(({old}, {item}), axis=1)",
                                lambda t, v, old=old, item=item: t.cat((v[old], v[item]), 1)))
        k, u = caches
        mixed = g.add(
            f"R.nn.attention({q}, {k}, {u})", lambda t, v, q=q, k=k, u=u: _torch_attention(t, v[q], v[k], v[u])
        )
        joined = g.add(f"R.reshape({mixed}, (1, 1, {width}))", lambda t, v, mixed=mixed: v[mixed].flatten(2))
        w = g.weight(width, width)
        out = g.add(f"R.matmul({joined}, {w})", lambda t, v, joined=joined, w=w: v[joined] @ v[w])
        x = g.add(f"R.add({x}, {out})", lambda t, v, x=x, out=out: v[x] + v[out])
        normed = _rms(g, x, width)
        first, second, third = g.weight(width, inner), g.weight(width, inner), g.weight(inner, width)
        gate = g.add(f"R.matmul({normed}, {first})", lambda t, v, normed=normed, first=first: v[normed] @ v[first])
        up = g.add(f"R.matmul({normed}, {second})", lambda t, v, normed=normed, second=second: v[normed] @ v[second])
        active = g.add(f"R.nn.silu({gate})", lambda t, v, gate=gate: t.nn.functional.silu(v[gate]))
        both = g.add(f"R.multiply({active}, {up})", lambda t, v, active=active, up=up: v[active] * v[up])
        down = g.add(f"R.matmul({both}, {third})", lambda t, v, both=both, third=third: v[both] @ v[third])
        x = g.add(f"R.add({x}, {down})", lambda t, v, x=x, down=down: v[x] + v[down])
    return g.case("decoder step, 2 layers of 1024, cache of 255 (symbolic)", ("length",))


def _rms(g: _Graph, x: str, width: int) -> str:
    gamma = g.weight(width)
    return g.add(
        f"R.nn.rms_norm({x}, {gamma}, axes=-1)",
        lambda t, v: t.nn.functional.rms_norm(v[x], (width,), v[gamma], 1e-5),
    )


def _models() -> Iterator[Case]:
    yield _perceptron()
    yield _resnet_18()
    yield _resnet_18(norms=True)
    yield _encoder()
    yield _decoder()
