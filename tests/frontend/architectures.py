# pyright: reportMissingImports=false
"""Networks of transformers and torchvision, given to weft: python tests/frontend/architectures.py [PATTERN] [--onnx]

Every architecture is made small, with random weights, exported once with the sizes that vary as symbols, imported,
compiled once, and held against eager PyTorch at several sizes. `--onnx` goes through a file of ONNX instead. Printed
are how many architectures are right at all sizes, and how many of these have no node in Python. `--minimum 1.0
--native 0.9` make the exit status say whether that holds. Needs torch, torchvision and transformers.
"""

from __future__ import annotations

import collections
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torchvision
import transformers
from outcomes import closed, computed, failed, options_of, parser_of

import weft
from weft.frontend import import_report

WORDS = 99


@dataclass(frozen=True)
class Architecture:
    """A network, its inputs for a batch and a length, the axes that vary, and the sizes that are tried."""

    name: str
    make: Callable[[], Any]
    inputs: Callable[[int, int], tuple[Any, ...]]
    axes: tuple[dict[int, Any], ...]
    sizes: tuple[tuple[int, int], ...] = ((2, 16), (1, 7), (3, 33))


class First(torch.nn.Module):
    """A network of transformers, from its named inputs to its first result."""

    def __init__(self, net: Any, names: tuple[str, ...], **fixed: Any) -> None:
        super().__init__()
        self.net, self.names, self.fixed = net, names, fixed

    def forward(self, *given: Any) -> Any:
        return self.net(**dict(zip(self.names, given, strict=True)), **self.fixed, return_dict=False)[0]


def batch() -> Any:
    """The symbol of the batch."""
    return torch.export.Dim("batch", max=64)


def length() -> Any:
    """The symbol of the length."""
    return torch.export.Dim("length", min=2, max=64)


def image(name: str, side: int, **options: Any) -> Architecture:
    """A network of torchvision on images."""

    def make() -> Any:
        return getattr(torchvision.models, name)(weights=None, **options)

    sizes = ((2, side), (1, side), (3, side))
    return Architecture(name, make, lambda count, size: (torch.randn(count, 3, size, size),), ({0: batch()},), sizes)


SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "vocab_size": WORDS,
    "max_position_embeddings": 64,
}


def words(count: int, size: int) -> tuple[Any, ...]:
    """Numbers of words."""
    return (torch.randint(1, WORDS, (count, size)),)


def text(name: str, model: str, config: str, fixed: dict[str, Any] | None = None, **options: Any) -> Architecture:
    """A network of transformers from numbers of words to its first result."""

    def make() -> Any:
        settings = getattr(transformers, config)(**options)
        return First(getattr(transformers, model)(settings), ("input_ids",), **(fixed or {}))

    return Architecture(name, make, words, ({0: batch(), 1: length()},))


def masked(name: str, model: str, config: str, **options: Any) -> Architecture:
    """An encoder with the mask of its padding."""

    def inputs(count: int, size: int) -> tuple[Any, ...]:
        mask = torch.ones(count, size, dtype=torch.int64)
        mask[0, size // 2 :] = 0
        return (*words(count, size), mask)

    def make() -> Any:
        settings = getattr(transformers, config)(**options)
        return First(getattr(transformers, model)(settings), ("input_ids", "attention_mask"))

    return Architecture(name, make, inputs, ({0: batch(), 1: length()}, {0: batch(), 1: length()}))


def decoder(name: str, model: str, config: str, **options: Any) -> Architecture:
    """A causal decoder without its cache."""
    return text(name, model, config, {"use_cache": False}, **options)


def vision(name: str, model: str, config: str, **options: Any) -> Architecture:
    """A network of transformers on images of 32 by 32."""

    def make() -> Any:
        return First(getattr(transformers, model)(getattr(transformers, config)(**options)), ("pixel_values",))

    sizes = ((2, 32), (1, 32), (3, 32))
    return Architecture(name, make, lambda count, size: (torch.randn(count, 3, size, size),), ({0: batch()},), sizes)


def translation(name: str, model: str, config: str, **options: Any) -> Architecture:
    """An encoder and a decoder, both on words."""

    def make() -> Any:
        settings = getattr(transformers, config)(**options)
        net = getattr(transformers, model)(settings)
        return First(net, ("input_ids", "decoder_input_ids"), use_cache=False)

    def inputs(count: int, size: int) -> tuple[Any, ...]:
        return (*words(count, size), *words(count, 5))

    return Architecture(name, make, inputs, ({0: batch(), 1: length()}, {0: batch()}))


def sound(name: str, model: str, config: str, **options: Any) -> Architecture:
    """A network of transformers on samples of sound."""

    def make() -> Any:
        return First(getattr(transformers, model)(getattr(transformers, config)(**options)), ("input_values",))

    sizes = ((2, 1600), (1, 1600))
    return Architecture(name, make, lambda count, size: (torch.randn(count, size),), ({0: batch()},), sizes)


_GROUPED = {**SMALL, "num_key_value_heads": 2}
_VISION = {key: SMALL[key] for key in ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")}
_PATCHES = {**_VISION, "image_size": 32, "patch_size": 8}
_T5 = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4, "vocab_size": WORDS}
_BART = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "vocab_size": WORDS,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
}

ARCHITECTURES = (
    masked("bert", "BertModel", "BertConfig", **SMALL),
    masked("roberta", "RobertaModel", "RobertaConfig", **{**SMALL, "max_position_embeddings": 80}),
    masked(
        "distilbert",
        "DistilBertModel",
        "DistilBertConfig",
        dim=32,
        n_layers=2,
        n_heads=4,
        hidden_dim=64,
        vocab_size=WORDS,
    ),
    masked("albert", "AlbertModel", "AlbertConfig", **SMALL, embedding_size=16),
    masked("electra", "ElectraModel", "ElectraConfig", **SMALL, embedding_size=16),
    masked("mpnet", "MPNetModel", "MPNetConfig", **{**SMALL, "max_position_embeddings": 80}),
    masked(
        "deberta-v2", "DebertaV2Model", "DebertaV2Config", **SMALL, relative_attention=True, pos_att_type=["c2p", "p2c"]
    ),
    masked("modernbert", "ModernBertModel", "ModernBertConfig", **SMALL, pad_token_id=0),
    decoder("gpt2", "GPT2LMHeadModel", "GPT2Config", n_embd=32, n_layer=2, n_head=4, vocab_size=WORDS, n_positions=64),
    decoder("gpt-neox", "GPTNeoXForCausalLM", "GPTNeoXConfig", **SMALL),
    decoder(
        "opt",
        "OPTForCausalLM",
        "OPTConfig",
        hidden_size=32,
        num_hidden_layers=2,
        ffn_dim=64,
        num_attention_heads=4,
        vocab_size=WORDS,
        word_embed_proj_dim=32,
        max_position_embeddings=64,
    ),
    decoder("bloom", "BloomForCausalLM", "BloomConfig", hidden_size=32, n_layer=2, n_head=4, vocab_size=WORDS),
    decoder("llama", "LlamaForCausalLM", "LlamaConfig", **_GROUPED),
    decoder("mistral", "MistralForCausalLM", "MistralConfig", **_GROUPED, sliding_window=8),
    decoder("qwen2", "Qwen2ForCausalLM", "Qwen2Config", **_GROUPED),
    decoder("qwen3", "Qwen3ForCausalLM", "Qwen3Config", **_GROUPED, head_dim=8),
    decoder("phi", "PhiForCausalLM", "PhiConfig", **SMALL),
    decoder("phi3", "Phi3ForCausalLM", "Phi3Config", **_GROUPED, pad_token_id=0),
    decoder("gemma2", "Gemma2ForCausalLM", "Gemma2Config", **_GROUPED, head_dim=8, sliding_window=8),
    decoder("olmo2", "Olmo2ForCausalLM", "Olmo2Config", **SMALL),
    decoder("stablelm", "StableLmForCausalLM", "StableLmConfig", **_GROUPED),
    decoder("mixtral", "MixtralForCausalLM", "MixtralConfig", **_GROUPED, num_local_experts=2),
    decoder(
        "mamba", "MambaForCausalLM", "MambaConfig", hidden_size=32, num_hidden_layers=2, vocab_size=WORDS, state_size=4
    ),
    translation("t5", "T5ForConditionalGeneration", "T5Config", **_T5),
    translation("bart", "BartForConditionalGeneration", "BartConfig", **_BART),
    translation("marian", "MarianMTModel", "MarianConfig", **_BART),
    vision("vit", "ViTModel", "ViTConfig", **_PATCHES),
    vision("deit", "DeiTModel", "DeiTConfig", **_PATCHES),
    vision("clip", "CLIPVisionModel", "CLIPVisionConfig", **_PATCHES),
    vision("siglip", "SiglipVisionModel", "SiglipVisionConfig", **_PATCHES),
    vision(
        "dinov2",
        "Dinov2Model",
        "Dinov2Config",
        **{key: value for key, value in _PATCHES.items() if key != "intermediate_size"},
    ),
    vision(
        "segformer",
        "SegformerForSemanticSegmentation",
        "SegformerConfig",
        hidden_sizes=[8, 16, 24, 32],
        depths=[1, 1, 1, 1],
        num_attention_heads=[1, 2, 3, 4],
        decoder_hidden_size=16,
    ),
    vision(
        "convnext2",
        "ConvNextV2Model",
        "ConvNextV2Config",
        hidden_sizes=[8, 16, 24, 32],
        depths=[1, 1, 1, 1],
        image_size=32,
    ),
    vision("mobilevit", "MobileViTModel", "MobileViTConfig", image_size=32),
    sound(
        "wav2vec2",
        "Wav2Vec2Model",
        "Wav2Vec2Config",
        **_VISION,
        conv_dim=[16] * 7,
        num_conv_pos_embeddings=8,
        num_conv_pos_embedding_groups=4,
    ),
    image("alexnet", 64),
    image("vgg11_bn", 32),
    image("resnet18", 64),
    image("resnext50_32x4d", 32),
    image("densenet121", 32),
    image("squeezenet1_1", 64),
    image("googlenet", 64, init_weights=False, aux_logits=False),
    image("inception_v3", 96, init_weights=False, aux_logits=False),
    image("mobilenet_v2", 32),
    image("mobilenet_v3_small", 32),
    image("efficientnet_b0", 32),
    image("shufflenet_v2_x0_5", 32),
    image("mnasnet0_5", 32),
    image("regnet_y_400mf", 32),
    image("convnext_tiny", 32),
    image("swin_t", 32),
    image("vit_b_16", 224),
    image("maxvit_t", 224),
)


def imported(net: Any, given: tuple[Any, ...], architecture: Architecture, through_onnx: bool) -> Any:
    """The module of a network."""
    axes = (architecture.axes,) if isinstance(net, First) else architecture.axes
    if not through_onnx:
        program = torch.export.export(net, given, dynamic_shapes=axes)
        return weft.frontend.torch.from_exported(program)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        torch.onnx.export(net, given, path, dynamo=True, dynamic_shapes=axes, verbose=False)
        return weft.frontend.onnx.load(path)


def run(architecture: Architecture, through_onnx: bool) -> tuple[str, str]:
    """(status, detail): native, python, wrong, or the stage that failed; skip where PyTorch itself does not export."""
    torch.manual_seed(0)
    stage = "make"
    try:
        net = architecture.make().eval().requires_grad_(False)
        stage = "import"
        start = time.perf_counter()
        try:
            module = imported(net, architecture.inputs(*architecture.sizes[0]), architecture, through_onnx)
        except weft.errors.WeftError:
            raise
        except Exception as error:
            return "skip", "not exported: " + failed("", error)[1]
        report = import_report(module)
        middle = time.perf_counter()
        stage = "compile"
        main = weft.compile(module)["main"]
        times = f"import {middle - start:.1f} s, compile {time.perf_counter() - middle:.1f} s"
        stage = "run"
        for size in architecture.sizes:
            given = architecture.inputs(*size)
            wanted = net(*given).numpy()
            results = main(*(value.numpy() for value in given))
            found = results[0] if isinstance(results, tuple) else results
            if found.shape != wanted.shape:
                return "wrong", f"at {size} shape {found.shape}, expected {wanted.shape}"
            far = float(np.abs(found - wanted).max() / max(float(np.abs(wanted).max()), 1e-9))
            if not far < 1e-4:
                return "wrong", f"at {size} differs by {far:.1e}"
    except Exception as error:
        return failed(stage, error)
    return computed(report, times)


def main() -> int:
    """Run and print."""
    parser = parser_of(__doc__)
    parser.add_argument("--onnx", action="store_true", help="through a file of ONNX")
    options = options_of(parser)
    start, counts = time.perf_counter(), collections.Counter()
    for architecture in ARCHITECTURES:
        if options.pattern in architecture.name:
            status, detail = run(architecture, options.onnx)
            counts[status] += 1
            print(f"{status:8} {architecture.name}: {detail[:400]}", flush=True)
    return closed(counts, time.perf_counter() - start, options.minimum, options.native)


if __name__ == "__main__":
    sys.exit(main())
