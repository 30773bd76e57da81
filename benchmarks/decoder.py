"""A decoder of the shape of Llama with weights in few bits beside llama.cpp, interleaved in one process.

    python benchmarks/decoder.py [--layers 22] [--threads N] [--past 128] [--seconds 4] [--width 4 8]

The model is TinyLlama's: 22 layers of 2048, 32 heads in 4 groups, 5632 in between, 32000 tokens, 1.1 billion weights,
all of them random. weft runs the decoder of examples/llama.py after QuantizeWeights, with a scale for 32 weights and
activations quantized to int8; llama.cpp runs the same sizes as Q4_0 or Q8_0, which do likewise. A step is one token
after a cache of `past` tokens, a prompt is 128 tokens without a cache. Columns are milliseconds, llama.cpp's time over
weft's (above 1: weft takes less), the bytes of weights that a step reads over its time, and what a dot product of as
many bytes with themselves reads. Least times. llama.cpp comes with `pip install llama-cpp-python gguf`, which builds it
in about ten minutes.
"""

# pyright: reportMissingImports=false
# The rivals are installed in the environment of `make bench` only.

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from shared.timing import least

WANTED = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
WANTED.add_argument("--layers", type=int, default=22)
WANTED.add_argument("--threads", type=int, default=1)
WANTED.add_argument("--past", type=int, default=128)
WANTED.add_argument("--seconds", type=float, default=4.0)
WANTED.add_argument("--width", type=int, nargs="+", default=(4, 8), choices=(4, 8))
Call = Callable[[], Any]
GROUP, PROMPT = 32, 128


def sizes(layers: int) -> Any:
    """The configuration of the example's decoder."""
    sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
    from llama import Config

    return Config(vocabulary=32000, hidden=2048, wide=5632, layers=layers, heads=32, groups=4)


def own(config: Any, width: int, past: int, threads: int) -> dict[str, Call]:
    """A step and a prompt of weft."""
    import numpy as np
    from llama import decoder, random_checkpoint

    import weft
    from weft.transform import QuantizeWeights

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "random.safetensors")
        random_checkpoint(config, path)
        module = weft.IRModule({"step": decoder(config, weft.frontend.safetensors.load(path))})
        module = QuantizeWeights(f"int{width}-a8")(module)
        step = weft.compile(module, target=f"llvm -threads={threads}")["step"]

    def call(new: int, past: int) -> Call:
        tokens = np.arange(new, dtype=np.int64)
        cache = np.ones((config.layers, past, config.groups, config.size), np.float32)
        return lambda: step(tokens, cache, cache)

    return {"step": call(1, past), "prompt": call(PROMPT, 0)}


def shapes(config: Any) -> Iterator[tuple[str, int, int]]:
    """The matrices of the model under llama.cpp's names: rows of so many terms."""
    yield "token_embd", config.vocabulary, config.hidden
    yield "output", config.vocabulary, config.hidden
    for layer in range(config.layers):
        name, inner = f"blk.{layer}", config.groups * config.size
        for part, rows in (("attn_q", config.hidden), ("attn_output", config.hidden)):
            yield f"{name}.{part}", rows, config.hidden
        for part in ("attn_k", "attn_v"):
            yield f"{name}.{part}", inner, config.hidden
        for part in ("ffn_gate", "ffn_up"):
            yield f"{name}.{part}", config.wide, config.hidden
        yield f"{name}.ffn_down", config.hidden, config.wide


def write_gguf(config: Any, width: int, path: Path) -> None:
    """Write the model with random weights as llama.cpp reads it."""
    import gguf
    import numpy as np

    choices = np.random.default_rng(0)
    kind = gguf.GGMLQuantizationType.Q4_0 if width == 4 else gguf.GGMLQuantizationType.Q8_0
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_vocab_size(config.vocabulary)
    writer.add_context_length(2048)
    writer.add_embedding_length(config.hidden)
    writer.add_block_count(config.layers)
    writer.add_feed_forward_length(config.wide)
    writer.add_head_count(config.heads)
    writer.add_head_count_kv(config.groups)
    writer.add_layer_norm_rms_eps(config.epsilon)
    writer.add_rope_dimension_count(config.size)
    writer.add_tokenizer_model("none")
    for name, rows, terms in shapes(config):
        blocks = choices.integers(0, 256, (rows, terms // GROUP, 2 + GROUP * width // 8), dtype=np.uint8)
        blocks[..., :2] = np.frombuffer(np.float16(0.01).tobytes(), np.uint8)
        writer.add_tensor(f"{name}.weight", blocks.reshape(rows, -1), raw_dtype=kind)
    norms = [f"blk.{layer}.{part}" for layer in range(config.layers) for part in ("attn_norm", "ffn_norm")]
    for name in [*norms, "output_norm"]:
        writer.add_tensor(f"{name}.weight", np.ones(config.hidden, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def of_llama_cpp(config: Any, width: int, past: int, threads: int) -> dict[str, Call]:
    """A step and a prompt of llama.cpp; nothing where it is not installed."""
    try:
        from llama_cpp import Llama
    except ImportError:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "random.gguf")
        write_gguf(config, width, path)
        threaded = {"n_threads": threads, "n_threads_batch": threads}
        model = Llama(str(path), n_ctx=1024, n_batch=512, use_mmap=False, verbose=False, **threaded)
    model.reset()
    model.eval(list(range(past)))

    def step() -> None:
        model.n_tokens = past
        model.eval([1])

    def prompt() -> None:
        model.reset()
        model.eval(list(range(PROMPT)))
        model.n_tokens = 0

    return {"step": step, "prompt": prompt}


def main() -> None:
    """Print the table."""
    arguments = WANTED.parse_args()
    for name in ("OPENBLAS", "OMP", "MKL", "WEFT"):
        os.environ[f"{name}_NUM_THREADS"] = str(arguments.threads)
    import numpy as np

    config = sizes(arguments.layers)
    columns = ("weft", "llama.cpp", "ratio", "GB/s", "memory")
    print(f"{'':14s}" + "".join(f"{name:>12s}" for name in columns))
    for width in arguments.width:
        mine = own(config, width, arguments.past, arguments.threads)
        theirs = of_llama_cpp(config, width, arguments.past, arguments.threads)
        read = sum(rows * terms for name, rows, terms in shapes(config) if name != "token_embd") * (
            width / 8 + 2 / GROUP
        )
        plain = np.ones(int(read) // 8)
        for what in ("step", "prompt"):
            calls = {"weft": mine[what], "memory": lambda plain=plain: plain.dot(plain)}
            if theirs:
                if what == "step":  # the cache that a prompt has emptied
                    theirs["prompt"]()
                calls["llama.cpp"] = theirs[what]
            found = least(calls, arguments.seconds)
            rival = found.get("llama.cpp", float("nan"))
            row = [found["weft"] * 1e3, rival * 1e3, rival / found["weft"]]
            row += [read / found["weft"] / 1e9, read / found["memory"] / 1e9]
            print(f"{f'int{width} {what}':14s}" + "".join(f"{value:12.3f}" for value in row), flush=True)


if __name__ == "__main__":
    main()
