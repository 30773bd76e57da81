"""Models in int8 beside their float32, and beside onnxruntime's static quantization, interleaved in one process.

    python benchmarks/quantized.py [--threads N] [--only TEXT] [--seconds 5] [--layers 4]

Models are ResNet-18, MobileNetV2 and a small vision transformer of torchvision, and an encoder of BERT-base's shape,
with random weights, as torch exports them.
weft: `weft.quantize` with the scheme int8. onnxruntime: `quantize_static` in QDQ form, weights by channel, both int8,
of the model that torch exports to ONNX. Each is calibrated on the same two inputs. Least times in milliseconds; `dB` is
the ratio of the float32 results to the difference.
"""

# pyright: reportMissingImports=false
# The rivals are installed in the environment of `make bench` only.

from __future__ import annotations

import argparse
import os
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared.timing import least

WANTED = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
WANTED.add_argument("--threads", type=int, default=1)
WANTED.add_argument("--only", default="")
WANTED.add_argument("--seconds", type=float, default=5)
WANTED.add_argument("--layers", type=int, default=4)
Call = Callable[[], Any]


@dataclass(frozen=True)
class Model:
    """A network and the shape of its input."""

    name: str
    net: Any
    shape: tuple[int, ...]


def with_statistics(name: str, net: Any) -> Model:
    """A network for images, whose norms have statistics of their own."""
    import torch

    for part in net.modules():
        if isinstance(part, torch.nn.BatchNorm2d):
            part.running_mean.normal_(0, 0.1)
            part.running_var.uniform_(0.5, 1.5)
    return Model(f"{name}, 224x224", net, (1, 3, 224, 224))


def resnet() -> Model:
    """ResNet-18."""
    import torchvision

    return with_statistics("ResNet-18", torchvision.models.resnet18())


def mobilenet() -> Model:
    """MobileNetV2, half of whose convolutions are depthwise."""
    import torchvision

    return with_statistics("MobileNetV2", torchvision.models.mobilenet_v2())


def vision_transformer() -> Model:
    """Four layers of the width of the smallest vision transformers, with a head that is not zero."""
    import torch
    from torchvision.models import VisionTransformer

    net = VisionTransformer(image_size=224, patch_size=16, num_layers=4, num_heads=3, hidden_dim=192, mlp_dim=768)
    torch.nn.init.normal_(net.heads.head.weight, 0, 0.05)
    return with_statistics("vision transformer", net)


def encoder(layers: int) -> Model:
    """Encoder layers of BERT-base's shape on 128 words, attention written out."""
    import torch

    class Layer(torch.nn.Module):
        def __init__(self, width: int = 768, heads: int = 12, inner: int = 3072) -> None:
            super().__init__()
            self.heads = heads
            self.q, self.k, self.v, self.out = (torch.nn.Linear(width, width) for _ in range(4))
            self.up, self.down = torch.nn.Linear(width, inner), torch.nn.Linear(inner, width)
            self.norm1, self.norm2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)

        def forward(self, x: Any) -> Any:
            batch, words, width = x.shape
            shape = batch, words, self.heads, width // self.heads
            q, k, v = (part(x).view(shape).transpose(1, 2) for part in (self.q, self.k, self.v))
            weights = torch.softmax(q @ k.transpose(-1, -2) / shape[-1] ** 0.5, -1)
            x = self.norm1(x + self.out((weights @ v).transpose(1, 2).reshape(batch, words, width)))
            return self.norm2(x + self.down(torch.nn.functional.gelu(self.up(x))))

    net = torch.nn.Sequential(*(Layer() for _ in range(layers)))
    return Model(f"encoder, {layers} layers, 128 words", net, (1, 128, 768))


def own(model: Model, seen: list[Any], threads: int) -> dict[str, Callable[[Any], Any]]:
    """weft, float32 and int8."""
    import torch

    import weft

    module = weft.frontend.torch.from_exported(torch.export.export(model.net, (torch.from_numpy(seen[0]),)))
    target = f"llvm -threads={threads}"
    short = weft.quantize(module, seen)
    return {"float32": weft.compile(module, target)["main"], "int8": weft.compile(short, target)["main"]}


def of_onnxruntime(model: Model, seen: list[Any], threads: int) -> dict[str, Callable[[Any], Any]]:
    """onnxruntime, float32 and int8."""
    import onnxruntime
    import torch
    from onnxruntime import quantization

    class Reader(quantization.CalibrationDataReader):
        def __init__(self, name: str) -> None:
            self.items = iter([{name: item} for item in seen])

        def get_next(self) -> Any:
            return next(self.items, None)

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1

    def session(path: Path) -> Any:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    with tempfile.TemporaryDirectory() as folder:
        exact, ready, short = (Path(folder) / f"{name}.onnx" for name in ("exact", "ready", "short"))
        torch.onnx.export(
            model.net, (torch.from_numpy(seen[0]),), exact, dynamo=True, verbose=False, external_data=False
        )
        first = session(exact)
        name = first.get_inputs()[0].name
        quantization.quant_pre_process(str(exact), str(ready), skip_symbolic_shape=True)
        types = quantization.QuantType.QInt8
        quantization.quantize_static(
            str(ready), str(short), Reader(name), per_channel=True, activation_type=types, weight_type=types
        )
        second = session(short)
    return {
        "onnxruntime float32": lambda x: first.run(None, {name: x})[0],
        "onnxruntime int8": lambda x: second.run(None, {name: x})[0],
    }


def main() -> None:
    """Print the table."""
    arguments = WANTED.parse_args()
    for name in ("OPENBLAS", "OMP", "MKL", "WEFT"):
        os.environ[f"{name}_NUM_THREADS"] = str(arguments.threads)
    warnings.simplefilter("ignore")
    import numpy as np
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(arguments.threads)
    print(f"{arguments.threads} thread(s), milliseconds")
    for make in (resnet, mobilenet, vision_transformer, lambda: encoder(arguments.layers)):
        model = make()
        if arguments.only not in model.name:
            continue
        model.net.eval().requires_grad_(False)
        seen = [torch.randn(model.shape).numpy() for _ in range(2)]
        x = torch.randn(model.shape).numpy()
        runs = own(model, seen, arguments.threads)
        try:
            runs |= of_onnxruntime(model, seen, arguments.threads)
        except Exception as error:
            print(f"onnxruntime: {type(error).__name__}: {str(error)[:200]}")
        wanted = model.net(torch.from_numpy(x)).numpy()
        calls: dict[str, Call] = {name: lambda run=run, x=x: run(x) for name, run in runs.items()}
        times = least(calls, arguments.seconds)
        print(model.name)
        for name, seconds in times.items():
            result = runs[name](x)
            result = result[0] if isinstance(result, tuple) else result
            noise = 20 * np.log10(np.linalg.norm(wanted) / max(np.linalg.norm(wanted - result), 1e-30))
            print(f"    {name:<20} {seconds * 1e3:8.2f}  {noise:6.1f} dB", flush=True)


if __name__ == "__main__":
    main()
