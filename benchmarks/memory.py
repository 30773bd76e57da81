"""How much memory a process holds that compiles a model, or finds it compiled, and runs it: each weight once.

    python benchmarks/memory.py [--only TEXT]

A model reads its weights from a safetensors file: the decoder of examples/llama.py (8 layers of 512, 113 MiB), and
ResNet-50 without norms (97 MiB). Each row is a new process: `compiled` has an empty cache, `found` one that has the
program, `loaded` reads what `Executable.save` wrote. Columns are MiB: the weights, what the process had after `import
weft`, after a call while it holds the module and its weights, after it let them go, of that what is its own memory and
no file's (RssAnon), and the most there ever was.
"""

# pyright: reportMissingImports=false
# The example is found when it is needed.

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
MIB = 1 << 10  # the system says kB


@dataclass(frozen=True)
class Model:
    """Weights by name, the module that they make, and what it is called with."""

    weights: Callable[[Path], None]
    module: Callable[[Mapping[str, np.ndarray]], Any]
    inputs: Callable[[], tuple[np.ndarray, ...]]


def _llama() -> Any:
    sys.path.insert(0, str(HERE.parent / "examples"))
    import llama

    return llama


def _config() -> Any:
    return _llama().Config(vocabulary=7168, hidden=512, wide=1376, layers=8, heads=8, groups=2)


def _step() -> tuple[np.ndarray, ...]:
    """One token after a cache of 128."""
    config = _config()
    cache = np.ones((config.layers, 128, config.groups, config.size), np.float32)
    return np.arange(1), cache, cache


STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))
"""Channels, blocks, and the step of the first one."""


def _convolutions() -> dict[str, tuple[int, ...]]:
    """The shapes of the weights of ResNet-50."""
    found: dict[str, tuple[int, ...]] = {"stem": (64, 3, 7, 7)}
    before = 64
    for stage, (channels, blocks, _) in enumerate(STAGES):
        for block in range(blocks):
            name = f"{stage}.{block}"
            found[f"{name}.a"] = (channels, before, 1, 1)
            found[f"{name}.b"] = (channels, channels, 3, 3)
            found[f"{name}.c"] = (4 * channels, channels, 1, 1)
            if not block:
                found[f"{name}.skip"] = (4 * channels, before, 1, 1)
            before = 4 * channels
    return {**found, "head": (2048, 1000)}


def _random_convolutions(path: Path) -> None:
    import weft

    random = np.random.default_rng(0)
    made = {name: random.standard_normal(shape, "float32") * 0.05 for name, shape in _convolutions().items()}
    weft.frontend.safetensors.save(path, made)


def _resnet_50(weights: Mapping[str, np.ndarray]) -> Any:
    import weft
    from weft.script import relax as R

    def convolved(x: Any, name: str, strides: int = 1) -> Any:
        edge = weights[name].shape[-1] // 2
        return R.nn.conv2d(x, R.const(weights[name]), strides=(strides, strides), padding=(edge, edge))

    @R.function
    def main(x: R.Tensor((1, 3, 224, 224), "float32")):
        x = R.nn.relu(convolved(x, "stem", 2))
        x = R.nn.max_pool2d(x, pool_size=(3, 3), strides=(2, 2), padding=(1, 1))
        for stage, (_, blocks, strides) in enumerate(STAGES):
            for block in range(blocks):
                name = f"{stage}.{block}"
                step = 1 if block else strides
                y = R.nn.relu(convolved(x, f"{name}.a"))
                y = R.nn.relu(convolved(y, f"{name}.b", step))
                y = convolved(y, f"{name}.c")
                if block == 0:
                    x = convolved(x, f"{name}.skip", step)
                x = R.nn.relu(x + y)
        return R.matmul(R.mean(x, axis=[2, 3]), R.const(weights["head"]))

    return weft.IRModule({"main": main})


MODELS = {
    "decoder": Model(
        lambda path: _llama().random_checkpoint(_config(), path),
        lambda weights: _llama().decoder(_config(), weights),
        _step,
    ),
    "ResNet-50": Model(_random_convolutions, _resnet_50, lambda: (np.ones((1, 3, 224, 224), np.float32),)),
}


def status() -> dict[str, float]:
    """What the system says of this process, in MiB."""
    gc.collect()
    lines = (line.split() for line in Path("/proc/self/status").read_text().splitlines())
    return {words[0][:-1]: int(words[1]) / MIB for words in lines if words[0] in ("VmRSS:", "RssAnon:", "VmHWM:")}


def report(model: Model, how: str, folder: Path) -> None:
    """Do one thing in this process, and print what memory it took."""
    import weft

    start = status()["VmRSS"]
    if how == "loaded":
        exe = weft.load(folder / "model.weft")
        run(exe, model)
        with_module = status()["VmRSS"]
    else:
        weights = weft.frontend.safetensors.load(folder / "weights.safetensors")
        module = model.module(weights)
        exe = weft.compile(module)
        run(exe, model)
        with_module = status()["VmRSS"]
        del module, weights
    end = status()
    if how == "found":
        exe.save(folder / "model.weft")
    row = {"imported": start, "held": with_module, "let go": end["VmRSS"], "own": end["RssAnon"], "most": end["VmHWM"]}
    print(json.dumps(row))


def run(exe: Any, model: Model) -> None:
    """Call the only function."""
    next(iter(exe.functions.values()))(*model.inputs())


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--only", default="", help="models whose name contains the text")
    parser.add_argument("--process", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.process:
        name, how, folder = arguments.process
        report(MODELS[name], how, Path(folder))
        return
    columns = ("weights", "imported", "held", "let go", "own", "most")
    print(f"{'MiB':22s}" + "".join(f"{column:>10s}" for column in columns))
    for name, model in MODELS.items():
        if arguments.only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "weights.safetensors")
            model.weights(path)
            for how in ("compiled", "found", "loaded"):
                environment = {**os.environ, "WEFT_CACHE_DIR": str(Path(folder, "cache")), "OMP_NUM_THREADS": "1"}
                command = [sys.executable, __file__, "--process", name, how, folder]
                done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
                row = {"weights": path.stat().st_size / (1 << 20), **json.loads(done.stdout)}
                print(f"{f'{name} {how}':22s}" + "".join(f"{row[column]:10.1f}" for column in columns), flush=True)


if __name__ == "__main__":
    main()
