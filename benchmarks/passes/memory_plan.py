"""How much memory the plan of a Llama-3-8B-shaped decoder takes: sizes only, nothing is allocated and nothing runs.

    python benchmarks/passes/memory_plan.py [--layers 32] [--joined] [--json]

32 layers, model size 4096, 32 query and 8 key and value heads, feed-forward 14336, vocabulary 128256, float16. Prefill
runs with 128, 256, 512 and 1024 tokens in succession, decoding with batches of 1, 16, 32 and 64 and a cache of 1024:
one executable serves all of them, and what it holds is the block of the largest. Attention is one opaque call of a
library, or matmul, softmax, matmul. Results (logits, keys and values) are the caller's and not counted; the scratch
memory of kernels is. `live` is what the values that are needed at one step take: no plan of these kernels does with
less. `peer` is what another compiler's planner takes for such a program, the figure to stay below. With `--joined` the
program is written as exporters write it: gate and up are one product and a `split`, every product has float32 sums and
an `astype`, a prefill has logits of its last token only, and logits are float32.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import weft
from weft.ir import Function, IRModule, PrimFunc
from weft.target import Target
from weft.transform import default_pipeline
from weft.transform.memory.hoist_scratch import scratch_bytes
from weft.transform.memory.storage_map import storages_of

MIB = 1 << 20
TARGET = "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=x86-64-v3"
PREFILL = tuple({"n": n} for n in (128, 256, 512, 1024))
DECODE = tuple({"b": b, "m": 1024} for b in (1, 16, 32, 64))
PEER = {
    ("prefill", "opaque", False): 120.0,
    ("prefill", "opaque", True): 112.0,
    ("prefill", "matmul", False): 254.0,
    ("prefill", "matmul", True): 148.0,
    ("decode", "opaque", False): 7.5,
    ("decode", "opaque", True): 7.0,
    ("decode", "matmul", False): 144.0,
    ("decode", "matmul", True): 140.0,
}


@dataclass(frozen=True)
class Shape:
    """The sizes of a decoder."""

    layers: int = 32
    model: int = 4096
    heads: int = 32
    groups: int = 8
    feed_forward: int = 14336
    vocabulary: int = 128256
    joined: bool = False

    @property
    def head(self) -> int:
        """The size of one head."""
        return self.model // self.heads


@dataclass(frozen=True)
class Row:
    """One case: bytes of the plan and of the live values at each of the sizes, in MiB."""

    program: str
    attention: str
    bounds: bool
    planned: tuple[float, ...]
    live: tuple[float, ...]
    peer: float

    @property
    def held(self) -> float:
        """What is held after all sizes ran in succession."""
        return max(self.planned)


def decoder(shape: Shape, program: str, attention: str, bounds: bool) -> IRModule:
    """The module of one case."""
    return weft.parse(_text(shape, program, attention, bounds))  # type: ignore[return-value]


def _text(s: Shape, program: str, attention: str, bounds: bool) -> str:
    kv = s.groups * s.head
    rows = "n" if program == "prefill" else "b"
    limits = '{"n": 1024}' if program == "prefill" else '{"b": 64, "m": 1024}'
    params = [f"tokens: R.Tensor(('{rows}',), 'int32')", f"table: R.Tensor(({s.vocabulary}, {s.model}), 'float16')"]
    lines: list[str] = ["x0 = R.take(table, tokens, axis=0)"]
    results: list[str] = []
    for i in range(s.layers):
        if program == "decode":
            params += [f"{name}{i}: R.Tensor(('b', 'm', {s.groups}, {s.head}), 'float16')" for name in ("kc", "vc")]
        sizes = {
            "wq": (s.model, s.model),
            "wk": (s.model, kv),
            "wv": (s.model, kv),
            "wo": (s.model, s.model),
            **_gates(s),
            "wd": (s.feed_forward, s.model),
            "na": (s.model,),
            "nf": (s.model,),
        }
        params += [f"{name}{i}: R.Tensor({size}, 'float16')" for name, size in sizes.items()]
        lines += _layer(s, i, rows, program, attention, results)
    params += [f"no: R.Tensor(({s.model},), 'float16')", f"wl: R.Tensor(({s.model}, {s.vocabulary}), 'float16')"]
    lines += [f"last = R.nn.rms_norm(x{s.layers}, no, axes=[-1])"]
    if s.joined and program == "prefill":
        lines += ["last = R.strided_slice(last, [0], [-1], [2147483647])"]
    wide = ", out_dtype='float32'" if s.joined else ""
    lines += [f"logits = R.matmul(last, wl{wide})"]
    results.append("logits")
    body = "\n".join(f"                {line}" for line in [*lines, f"R.output({', '.join(results)})"])
    attribute = f'            R.func_attr({{"tir_var_upper_bound": {limits}}})\n' if bounds else ""
    symbols = "n = T.int64()" if program == "prefill" else "b = T.int64()\n            m = T.int64()"
    return (
        f"@I.ir_module\nclass Decoder:\n        @R.function\n        def main({', '.join(params)}):\n{attribute}"
        f"            {symbols}\n            with R.dataflow():\n{body}\n            return ({', '.join(results)},)\n"
    )


def _gates(s: Shape) -> dict[str, tuple[int, int]]:
    """The weights of the gate and of what it multiplies."""
    if s.joined:
        return {"wgu": (s.model, 2 * s.feed_forward)}
    return {"wg": (s.model, s.feed_forward), "wu": (s.model, s.feed_forward)}


def _product(s: Shape, a: str, b: str) -> str:
    return f"R.astype(R.matmul({a}, {b}, out_dtype='float32'), 'float16')" if s.joined else f"R.matmul({a}, {b})"


def _layer(s: Shape, i: int, rows: str, program: str, attention: str, results: list[str]) -> list[str]:
    lines = [
        f"a{i} = R.nn.rms_norm(x{i}, na{i}, axes=[-1])",
        f"q{i} = R.reshape({_product(s, f'a{i}', f'wq{i}')}, ({rows}, {s.heads}, {s.head}))",
        f"k{i} = R.reshape({_product(s, f'a{i}', f'wk{i}')}, ({rows}, {s.groups}, {s.head}))",
        f"v{i} = R.reshape({_product(s, f'a{i}', f'wv{i}')}, ({rows}, {s.groups}, {s.head}))",
    ]
    results += [f"k{i}", f"v{i}"]
    out = f"R.Tensor(({rows}, {s.heads}, {s.head}), 'float16')"
    cache = "" if program == "prefill" else f"kc{i}, vc{i}, "
    if attention == "opaque":
        lines.append(f"o{i} = R.call_dps_packed('attention', (q{i}, {cache}k{i}, v{i}), out_ty={out})")
    else:
        lines += (_prefill_attention if program == "prefill" else _decode_attention)(s, i)
    return [
        *lines,
        f"p{i} = {_product(s, f'R.reshape(o{i}, ({rows}, {s.model}))', f'wo{i}')}",
        f"y{i} = R.add(x{i}, p{i})",
        f"f{i} = R.nn.rms_norm(y{i}, nf{i}, axes=[-1])",
        *_gated(s, i),
        f"d{i} = {_product(s, f'h{i}', f'wd{i}')}",
        f"x{i + 1} = R.add(y{i}, d{i})",
    ]


def _gated(s: Shape, i: int) -> list[str]:
    gated = f"h{i} = R.multiply(R.nn.silu(g{i}), u{i})"
    if not s.joined:
        return [f"g{i} = R.matmul(f{i}, wg{i})", f"u{i} = R.matmul(f{i}, wu{i})", gated]
    parts = f"both{i} = R.split({_product(s, f'f{i}', f'wgu{i}')}, 2, axis=-1)"
    return [parts, f"g{i} = both{i}[0]", f"u{i} = both{i}[1]", gated]


def _prefill_attention(s: Shape, i: int) -> list[str]:
    each = s.heads // s.groups
    return [
        f"qt{i} = R.permute_dims(q{i}, [1, 0, 2])",
        f"kt{i} = R.permute_dims(R.repeat(k{i}, {each}, axis=1), [1, 2, 0])",
        f"vt{i} = R.permute_dims(R.repeat(v{i}, {each}, axis=1), [1, 0, 2])",
        f"s{i} = {_product(s, f'qt{i}', f'kt{i}')}",
        f"w{i} = R.nn.softmax(R.multiply(s{i}, R.const({s.head**-0.5}, 'float16')), axis=-1)",
        f"o{i} = R.permute_dims({_product(s, f'w{i}', f'vt{i}')}, [1, 0, 2])",
    ]


def _decode_attention(s: Shape, i: int) -> list[str]:
    each = s.heads // s.groups
    return [
        f"qt{i} = R.reshape(q{i}, (b, {s.groups}, {each}, {s.head}))",
        f"kt{i} = R.permute_dims(kc{i}, [0, 2, 3, 1])",
        f"s{i} = {_product(s, f'qt{i}', f'kt{i}')}",
        f"w{i} = R.nn.softmax(R.multiply(s{i}, R.const({s.head**-0.5}, 'float16')), axis=-1)",
        f"vt{i} = R.permute_dims(vc{i}, [0, 2, 1, 3])",
        f"o{i} = R.reshape({_product(s, f'w{i}', f'vt{i}')}, (b, {s.heads}, {s.head}))",
    ]


def measure(shape: Shape, program: str, attention: str, bounds: bool) -> Row:
    """The plan of one case."""
    module = default_pipeline(Target(TARGET))(decoder(shape, program, attention, bounds))
    sizes = PREFILL if program == "prefill" else DECODE
    return Row(
        program,
        attention,
        bounds,
        tuple(_planned(module, values) / MIB for values in sizes),
        tuple(_live(module, values) / MIB for values in sizes),
        PEER[program, attention, bounds],
    )


def _planned(module: IRModule, values: Mapping[str, int]) -> int:
    main = module["main"]
    assert isinstance(main, Function)
    inner = max((scratch_bytes(f, 64) for f in module.functions.values() if isinstance(f, PrimFunc)), default=0)
    return inner + sum(storage.bytes_at(values) for storage in storages_of(main, module))


def _live(module: IRModule, values: Mapping[str, int]) -> int:
    main = module["main"]
    assert isinstance(main, Function)
    return sum(storage.live_bytes_at(values) for storage in storages_of(main, module))


def cases(shape: Shape) -> list[Row]:
    """All cases, in the order of the table."""
    return [
        measure(shape, program, attention, bounds)
        for program in ("prefill", "decode")
        for attention in ("opaque", "matmul")
        for bounds in (False, True)
    ]


def table(rows: Sequence[Row]) -> str:
    """The rows as text."""
    head = f"{'program':8} {'attention':9} {'bounds':6} {'held':>8} {'live':>8} {'peer':>7}"
    lines = [f"{head}   MiB at each size (live)"]
    for row in rows:
        each = "  ".join(f"{a:.2f} ({b:.2f})" for a, b in zip(row.planned, row.live, strict=True))
        lines.append(
            f"{row.program:8} {row.attention:9} {'yes' if row.bounds else 'no':6} {row.held:8.2f} {max(row.live):8.2f} "
            f"{row.peer:7.1f}   {each}"
        )
    return "\n".join(lines)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--joined", action="store_true", help="one product of gate and up, float32 sums, last logits")
    parser.add_argument("--json", action="store_true", help="as JSON")
    options = parser.parse_args()
    rows = cases(Shape(layers=options.layers, joined=options.joined))
    print(json.dumps([{**asdict(row), "held": row.held} for row in rows], indent=1) if options.json else table(rows))


if __name__ == "__main__":
    main()
