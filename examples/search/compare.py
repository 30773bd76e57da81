# pyright: reportMissingImports=false
"""The model beside the same written in torch, and exported to onnxruntime: are they equal, and how fast is each."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Mapping
from functools import partial

import model
import numpy as np
import torch

import weft

SIZES = ((1, 1), (1, 7), (3, 16), (8, 64), (2, 256), (5, 33))
TOLERANCE = 1e-5


class Encoder(torch.nn.Module):
    """The same in torch: the checkpoint's names, functions of torch."""

    def __init__(self, weights: dict[str, np.ndarray]) -> None:
        super().__init__()
        self.weights = {name: torch.from_numpy(np.array(array)) for name, array in weights.items()}

    def dense(self, x: torch.Tensor, name: str) -> torch.Tensor:
        return torch.nn.functional.linear(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def norm(self, x: torch.Tensor, name: str) -> torch.Tensor:
        scale, offset = (self.weights[f"{name}.LayerNorm.{part}"] for part in ("weight", "bias"))
        return torch.nn.functional.layer_norm(x, (model.HIDDEN,), scale, offset, model.EPSILON)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        tables = [self.weights[f"embeddings.{name}_embeddings.weight"] for name in ("word", "position", "token_type")]
        batch, length = ids.shape
        x = self.norm(tables[0][ids] + tables[1][:length] + tables[2][0], "embeddings")
        seen = mask.to(torch.float32)
        bias = ((seen - 1.0) * 1e9).reshape(batch, 1, 1, length)
        for layer in range(model.LAYERS):
            name = f"encoder.layer.{layer}"
            q, k, v = (
                self.dense(x, f"{name}.attention.self.{part}").reshape(batch, length, model.HEADS, -1).transpose(1, 2)
                for part in ("query", "key", "value")
            )
            heads = torch.nn.functional.scaled_dot_product_attention(q, k, v, bias)
            mixed = self.dense(heads.transpose(1, 2).reshape(batch, length, -1), f"{name}.attention.output.dense")
            x = self.norm(x + mixed, f"{name}.attention.output")
            wide = torch.nn.functional.gelu(self.dense(x, f"{name}.intermediate.dense"))
            x = self.norm(x + self.dense(wide, f"{name}.output.dense"), f"{name}.output")
        kept = seen.unsqueeze(2)
        mean = (x * kept).sum(1) / kept.sum(1)
        return mean / (mean * mean).sum(1, keepdim=True).sqrt()


def sample(rng: np.random.Generator, batch: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Random words; all rows but the first end early."""
    ends = np.maximum(length - rng.integers(0, length, batch), 1)
    ends[0] = length
    return rng.integers(1000, 30000, (batch, length)), (np.arange(length) < ends[:, None]).astype("int64")


def exported(net: Encoder) -> Callable[..., np.ndarray] | None:
    """The model in onnxruntime, where that is installed."""
    try:
        import onnxruntime
    except ImportError:
        return None
    file = io.BytesIO()
    ids, mask = (torch.ones(2, 8, dtype=torch.int64) for _ in range(2))
    axes = {name: {0: "batch", 1: "length"} for name in ("ids", "mask")}
    torch.onnx.export(net, (ids, mask), file, input_names=["ids", "mask"], dynamic_axes=axes, dynamo=False)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(file.getvalue(), options, ["CPUExecutionProvider"])
    return lambda ids, mask: session.run(None, {"ids": ids, "mask": mask})[0]


def least(runs: Mapping[str, Callable[[], object]], rounds: int = 15) -> dict[str, float]:
    """The least time of each of several programs, whose runs alternate: what disturbs one disturbs the others.

    On one thread it is processor time, which leaves out when other programs have the core.
    """
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    times = dict.fromkeys(runs, float("inf"))
    for _ in range(rounds):
        for name, run in runs.items():
            start = clock()
            run()
            times[name] = min(times[name], clock() - start)
    return times


def compare(exe: weft.Executable, timed: bool) -> int:
    """Print the greatest difference at each size, and times; 1 where one is too great."""
    net = Encoder(weft.frontend.safetensors.load(model.checkpoint() / "model.safetensors")).eval()
    rng, worst = np.random.default_rng(0), 0.0
    runs: dict[str, Callable[..., np.ndarray]] = {
        "weft": exe["encode"],
        "torch": lambda ids, mask: net(torch.from_numpy(ids), torch.from_numpy(mask)).numpy(),
    }
    with torch.no_grad():
        if timed and (other := exported(net)) is not None:
            runs["onnxruntime"] = other
        for batch, length in SIZES:
            given = sample(rng, batch, length)
            difference = float(np.abs(runs["weft"](*given) - runs["torch"](*given)).max())
            worst = max(worst, difference)
            times = least({name: partial(run, *given) for name, run in runs.items()}) if timed else {}
            told = "".join(f"; {name} {1e3 * seconds:.2f} ms" for name, seconds in times.items())
            print(f"{batch} x {length}: differs by {difference:.1e}{told}")
    print(f"the greatest difference from torch is {worst:.1e}; at most {TOLERANCE} is wanted")
    return 0 if worst <= TOLERANCE else 1
