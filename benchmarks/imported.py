"""How fast imported models are beside where they came from: torch eager, inductor and onnxruntime, in one process.

    python benchmarks/imported.py [--threads 1 2] [--only TEXT] [--layers N] [--seconds 1.0] [--rivals NAME ...]

Models are ResNet-18 and -50, MobileNetV2 and V3 and EfficientNet-B0 of torchvision, and BERT-base, DistilBERT, GPT-2, a
Llama shape and the encoder of T5 of transformers, with random weights; what is not installed is left out. Each is
exported once, and compiled once for all sizes, as inductor does it (`dynamic=True`) and an onnxruntime session. Rounds
alternate between the libraries, and a figure is the least of them: other work on the machine only ever adds to it. On
one thread it is processor time, which leaves out when others have the core.
`speed` is the time of the fastest rival over weft's: above 1, weft is faster. Results agree with eager within 1e-3 or
the row says so.
"""

# pyright: reportMissingImports=false
# The rivals are installed in the environment of `make bench` or `make test-frontends` only.

from __future__ import annotations

import argparse
import gc
import math
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

Call = Callable[[], Any]
SIZES = tuple((batch, length) for batch in (1, 8) for length in (16, 100, 128, 200, 512))
"""Batch and length."""


@dataclass(frozen=True)
class Model:
    """A network, its inputs at sizes (batch, length), and which of their axes vary."""

    name: str
    net: Any
    inputs: Callable[[int, int], tuple[Any, ...]]
    axes: tuple[dict[int, Any], ...]
    sizes: Sequence[tuple[int, int]]


def pictures(name: str) -> Model:
    """A network of torchvision on images of 224 by 224, whose norms have statistics of their own."""
    import torch
    import torchvision

    axes = ({0: torch.export.Dim("batch", max=64)},)
    net = getattr(torchvision.models, name)()
    for part in net.modules():
        if isinstance(part, torch.nn.BatchNorm2d):
            part.running_mean.normal_(0, 0.1)
            part.running_var.uniform_(0.5, 1.5)
    return Model(name, net, lambda batch, _: (torch.randn(batch, 3, 224, 224),), axes, ((1, 224), (8, 224)))


def resnet18(layers: int | None) -> Model:
    """ResNet-18."""
    return pictures("resnet18")


def resnet50(layers: int | None) -> Model:
    """ResNet-50."""
    return pictures("resnet50")


def mobilenet_v2(layers: int | None) -> Model:
    """MobileNetV2: depthwise convolutions of 3x3."""
    return pictures("mobilenet_v2")


def mobilenet_v3(layers: int | None) -> Model:
    """MobileNetV3-Large: depthwise convolutions up to 5x5, gates of channels."""
    return pictures("mobilenet_v3_large")


def efficientnet(layers: int | None) -> Model:
    """EfficientNet-B0: the same, and silu."""
    return pictures("efficientnet_b0")


def text(name: str, net: Any, words: int, *, decodes: bool = False) -> Model:
    """A model of transformers from word numbers to its first result; one that decodes keeps no cache."""
    import torch

    given = {"use_cache": False} if decodes else {}

    class First(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def forward(self, ids: Any) -> Any:
            return self.net(input_ids=ids, **given)[0]

    axes = ({0: torch.export.Dim("batch", max=64), 1: torch.export.Dim("length", min=2, max=512)},)
    return Model(name, First(), lambda *shape: (torch.randint(1, words, shape),), axes, SIZES)


def bert(layers: int | None) -> Model:
    """BERT-base."""
    import transformers

    config = transformers.BertConfig(num_hidden_layers=layers or 12)
    return text("bert-base", transformers.BertModel(config, add_pooling_layer=False), config.vocab_size)


def distilbert(layers: int | None) -> Model:
    """DistilBERT."""
    import transformers

    config = transformers.DistilBertConfig(n_layers=layers or 6)
    return text("distilbert", transformers.DistilBertModel(config), config.vocab_size)


def gpt2(layers: int | None) -> Model:
    """GPT-2, without its head."""
    import transformers

    config = transformers.GPT2Config(n_layer=layers or 12)
    return text("gpt2", transformers.GPT2Model(config), config.vocab_size, decodes=True)


def t5_encoder(layers: int | None) -> Model:
    """The encoder of T5-small."""
    import transformers

    config = transformers.T5Config(num_layers=layers or 6)
    return text("t5-encoder", transformers.T5EncoderModel(config), config.vocab_size)


def llama(layers: int | None) -> Model:
    """A decoder of Llama's shape, of 110 million weights."""
    import transformers

    config = transformers.LlamaConfig(
        hidden_size=768,
        intermediate_size=2048,
        num_hidden_layers=layers or 12,
        num_attention_heads=12,
        num_key_value_heads=4,
        vocab_size=16000,
        max_position_embeddings=512,
    )
    return text("llama", transformers.LlamaForCausalLM(config), config.vocab_size, decodes=True)


MODELS = (resnet18, resnet50, mobilenet_v2, mobilenet_v3, efficientnet, bert, distilbert, gpt2, llama, t5_encoder)

# -- the libraries: each prepares a model, and gives a function of the inputs


def eager(model: Model) -> Callable[..., Any]:
    """The network as it is."""
    return model.net


def inductor(model: Model) -> Callable[..., Any]:
    """`torch.compile` for all sizes."""
    import torch

    run = torch.compile(model.net, dynamic=True)
    for size in model.sizes[:2]:
        run(*model.inputs(*size))
    return run


def onnxruntime(model: Model) -> Callable[..., Any]:
    """A session on what PyTorch exports to ONNX."""
    import onnxruntime
    import torch

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        torch.onnx.export(model.net, model.inputs(2, 16), path, dynamo=True, dynamic_shapes=model.axes, verbose=False)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = torch.get_num_threads(), 1
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [item.name for item in session.get_inputs()]
    return lambda *given: session.run(None, dict(zip(names, (x.numpy() for x in given), strict=True)))[0]


def compiled(model: Model) -> Callable[..., Any]:
    """weft: the exported program, compiled once."""
    import torch

    import weft

    program = torch.export.export(model.net, model.inputs(2, 16), dynamic_shapes=model.axes)
    start = time.perf_counter()
    module = weft.frontend.torch.from_exported(program)
    imported = time.perf_counter() - start
    main = weft.compile(module)["main"]
    built = time.perf_counter() - start - imported
    print(f"# {model.name}: weft imports in {imported:.2f} s, and compiles in {built:.1f} s")
    return lambda *given: main(*(x.numpy() for x in given))


LIBRARIES = {"weft": compiled, "eager": eager, "inductor": inductor, "onnxruntime": onnxruntime}

# -- all of them


def least(calls: dict[str, Call], seconds: float, clock: Callable[[], float]) -> dict[str, float]:
    """The least time of each call in milliseconds by a clock, of rounds in which all take turns in changing order."""
    for call in calls.values():
        call()
    found = dict.fromkeys(calls, math.inf)
    random, rounds, end = Random(0), 0, time.perf_counter() + seconds * len(calls)
    while rounds < 3 or (time.perf_counter() < end and rounds < 200):
        for name, call in random.sample(list(calls.items()), len(calls)):
            start = clock()
            call()
            found[name] = min(found[name], (clock() - start) * 1e3)
        rounds += 1
    return found


def rows(model: Model, names: Sequence[str], seconds: float) -> Iterator[tuple[str, dict[str, float], float]]:
    """For each size: what it is, the times, and how far weft's result is from eager's."""
    import numpy as np
    import torch

    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    ready: dict[str, Callable[..., Any]] = {}
    for name in names:
        start = time.perf_counter()
        ready[name] = LIBRARIES[name](model)
        print(f"# {model.name}: {name} is ready after {time.perf_counter() - start:.1f} s", flush=True)
    for size in model.sizes:
        given = model.inputs(*size)
        wanted = eager(model)(*given).numpy()
        far = float(np.abs(ready["weft"](*given) - wanted).max() / np.abs(wanted).max())
        calls = {name: partial(run, *given) for name, run in ready.items()}
        yield f"{model.name} {size[0]}x{size[1]}", least(calls, seconds, clock), far


def worker(options: argparse.Namespace, threads: int) -> None:
    """One number of threads."""
    import torch

    warnings.simplefilter("ignore")
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    names = ["weft", *(name for name in LIBRARIES if name != "weft" and name in options.rivals)]
    print(f"threads {threads}, milliseconds" + "".join(f"{name:>13}" for name in names) + f"{'speed':>8}", flush=True)
    speeds: list[float] = []
    for make in MODELS:
        if options.only not in make.__name__:
            continue
        try:
            model = make(options.layers)
        except ImportError as error:
            print(f"# {make.__name__}: {error.name} is not installed")
            continue
        model.net.eval().requires_grad_(False)
        for name, times, far in rows(model, names, options.seconds):
            speeds.append(min(value for key, value in times.items() if key != "weft") / times["weft"])
            note = "" if far < 1e-3 else f"   DIFFERS by {far:.1e}"
            columns = "".join(f"{times[key]:>13.2f}" for key in names)
            print(f"{name:<23}{columns}{speeds[-1]:>8.2f}{note}", flush=True)
        del model
        gc.collect()
    if speeds:
        print(f"least {min(speeds):.2f}, geometric mean {math.exp(sum(map(math.log, speeds)) / len(speeds)):.2f}")


def main() -> None:
    """A process for each number of threads, which libraries read when they are loaded."""
    parser = argparse.ArgumentParser(description="How fast imported models are beside where they came from.")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--only", default="", help="of " + ", ".join(make.__name__ for make in MODELS))
    parser.add_argument("--layers", type=int, help="of the text models, in place of their own")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each library and size")
    parser.add_argument("--rivals", nargs="+", default=[name for name in LIBRARIES if name != "weft"])
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(options, options.worker)
        return
    from rivals import environment

    for threads in options.threads:
        command = [sys.executable, __file__, *sys.argv[1:], "--worker", str(threads)]
        subprocess.run(command, env={**environment(threads, None), "PYTHONUNBUFFERED": "1"}, check=True)


if __name__ == "__main__":
    main()
