"""Images: a tree of C sources, its arguments as data, and the start-up of a bare board, linked for one processor.

    image ::= start-up (`start.c`, `board.ld`), a main program that calls the model once, the tree's own library

The main program writes every output as hexadecimal bytes, a line each, and ends with what the model returned. The tree
is built by its own Makefile, in a copy of its folder. The libraries of the compiler are those of the least processor
among the parts; the start-up is compiled for the greatest, so that it switches the floating-point unit on.

Errors: ArtifactError W824 a folder that holds no such tree, W825 a tool that is missing or that refuses.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from weft.errors import ArtifactError
from weft.runtime.abi.scalars import storage
from weft.support.records import dataclass
from weft.target import Board, Target

__all__ = ["Model", "Tensor", "Tree", "build_image", "call", "link_options", "read_tree"]

COMPILER = "arm-none-eabi-gcc"
_HERE = Path(__file__).parent
_STRICT = ("-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O2")
_LINK = ("-nostartfiles", "-Wl,--gc-sections", "--specs=nano.specs", "--specs=nosys.specs")


@dataclass(frozen=True)
class Tensor:
    """An argument or result of a model."""

    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def bytes(self) -> int:
        """The bytes that it takes."""
        return int(np.prod(self.shape, dtype=np.int64)) * storage(self.dtype).itemsize


@dataclass(frozen=True)
class Model:
    """What `metadata.json` says of one model."""

    name: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    pools: Mapping[str, int]


@dataclass(frozen=True)
class Tree:
    """A folder that `weft export` wrote for C: its library, its models, its parts."""

    folder: Path
    library: str
    models: Mapping[str, Model]
    parts: Mapping[str, Target]

    def model(self, name: str | None) -> Model:
        """The model of a name, or the only one; ArtifactError W824."""
        if name is None and len(self.models) == 1:
            return next(iter(self.models.values()))
        if name is not None and name in self.models:
            return self.models[name]
        said = f"no model {name!r} is" if name else "several models are"
        raise ArtifactError(f"{said} in {str(self.folder)!r}", code="W824", hint=f"models: {', '.join(self.models)}")

    def part(self, label: str | None) -> Target:
        """The part of a label, or the one whose processor has most; ArtifactError W824."""
        if label is None:
            return self.by_features()[-1]
        if label in self.parts:
            return self.parts[label]
        known = ", ".join(filter(None, self.parts)) or "none"
        raise ArtifactError(f"the sources have no part {label!r}", code="W824", hint=f"parts: {known}")

    def by_features(self) -> list[Target]:
        """The parts, the one whose processor has least first."""
        return sorted(self.parts.values(), key=lambda part: (part.features.has_fpu, part.features.has_dsp))


def read_tree(folder: Path) -> Tree:
    """What a folder of C sources says of itself; ArtifactError W824 for one that says nothing."""
    try:
        data = json.loads((folder / "metadata.json").read_text("utf-8"))
        models = {name: _model(name, facts) for name, facts in data["models"].items()}
        targets = next(iter(data["models"].values()))["targets"]
        parts = {label: Target(facts) for label, facts in targets.items()}
        library = str(data["library"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, StopIteration) as error:
        raise ArtifactError(
            f"{str(folder)!r} holds no C sources of weft: {type(error).__name__}: {error}",
            code="W824",
            hint="weft export FILE -o FOLDER --target 'c -mcpu=cortex-m7f'",
        ) from None
    return Tree(folder, library, models, parts)


def _model(name: str, facts: Mapping[str, Any]) -> Model:
    inputs, outputs = (tuple(map(_tensor, facts[key])) for key in ("inputs", "outputs"))
    (memory,) = facts["memory"]["functions"].values()
    return Model(name, inputs, outputs, {str(pool): int(size) for pool, size in memory["pools"].items()})


def _tensor(facts: Mapping[str, Any]) -> Tensor:
    return Tensor(str(facts["name"]), str(facts["dtype"]), tuple(map(int, facts["shape"])))


# The main program.


def call(model: Model, given: Mapping[str, np.ndarray]) -> str:
    """A program that calls a model once on arrays, in C."""
    lines = [f'#include "{model.name}.h"', "#include <stddef.h>", "void board_write(const char *text);"]
    lines += [_words(f"given_{name}", data.tobytes()) for name, data in given.items()]
    lines += [f"static uint64_t result_{i}[{_words_of(item.bytes)}];" for i, item in enumerate(model.outputs)]
    lines += [f"static uint64_t pool_{name}[{_words_of(size) + 2}];" for name, size in model.pools.items()]
    inputs = [f".{item.name} = (const void *)given_{item.name}" for item in model.inputs]
    outputs = [f".{item.name} = (void *)result_{i}" for i, item in enumerate(model.outputs)]
    pools = [f".{name} = (uint8_t *)(((uintptr_t)pool_{name} + 15) & ~(uintptr_t)15)" for name in model.pools]
    lines += [
        *_DUMP,
        "int main(void) {",
        f"  struct {model.name}_inputs inputs = {{ {', '.join(inputs) or '0'} }};",
        f"  struct {model.name}_outputs outputs = {{ {', '.join(outputs) or '0'} }};",
        f"  struct {model.name}_workspaces workspaces = {{ {', '.join(pools) or '0'} }};",
        f"  struct {model.name}_devices devices = {{ 0 }};",
        f"  int32_t code = {model.name}_run(&inputs, &outputs, &workspaces, &devices);",
        f'  if (code) {{ board_write({model.name}_message(code)); board_write("\\n"); return 1; }}',
        *(f"  dump((const uint8_t *)result_{i}, {item.bytes});" for i, item in enumerate(model.outputs)),
        "  return 0;",
        "}",
        "",
    ]
    return "\n".join(lines)


_DUMP = """static void dump(const uint8_t *data, size_t size) {
  static const char digits[] = "0123456789abcdef";
  char text[65];
  for (size_t i = 0; i < size;) {
    size_t n = 0;
    for (; n < 32 && i < size; ++n, ++i) {
      text[2 * n] = digits[data[i] >> 4];
      text[2 * n + 1] = digits[data[i] & 15];
    }
    text[2 * n] = 0;
    board_write(text);
  }
  board_write("\\n");
}""".splitlines()


def _words_of(size: int) -> int:
    return max(1, -(-size // 8))


def _words(name: str, data: bytes) -> str:
    padded = data + b"\0" * (8 * _words_of(len(data)) - len(data))
    words = np.frombuffer(padded, "<u8").tolist()
    return f"static const uint64_t {name}[] = {{ {', '.join(f'{word}ull' for word in words)} }};"


# The image.


def build_image(tree: Tree, main: str, board: Board, folder: Path) -> Path:
    """Compile and link an image in a folder; gives its path. ArtifactError W825 for what does not compile or link."""
    for tool in (COMPILER, "make"):
        if shutil.which(tool) is None:
            raise missing(tool)
    sources = folder / "tree"
    shutil.copytree(tree.folder, sources)
    (folder / "main.c").write_text(main)
    _run(["make", "-s", "-C", sources])
    least, most = tree.by_features()[0].gcc_flags(), tree.by_features()[-1].gcc_flags()
    for name, source, flags in (("start", _HERE / "start.c", most), ("main", folder / "main.c", least)):
        strict = _STRICT if name == "main" else ("-std=c99", "-O2")
        _run([COMPILER, *flags, *strict, f"-I{sources}/include", "-c", source, "-o", folder / f"{name}.o"])
    image = folder / "image.elf"
    objects = [folder / "start.o", folder / "main.o", sources / f"lib{tree.library}.a"]
    _run([COMPILER, *least, "-O2", *link_options(board, folder), *objects, "-lm", "-o", image])
    return image


def link_options(board: Board, folder: Path) -> list[str]:
    """What the linker is told, with the script for the memories of a board, which is written to a folder."""
    (flash, flash_bytes), (ram, ram_bytes) = board.flash, board.ram
    memories = (
        f"MEMORY {{ flash (rx) : ORIGIN = {flash:#x}, LENGTH = {flash_bytes}\n"
        f"         ram (rwx) : ORIGIN = {ram:#x}, LENGTH = {ram_bytes} }}\n"
    )
    (folder / "board.ld").write_text(memories + (_HERE / "board.ld").read_text("utf-8"))
    return [*_LINK, "-T", str(folder / "board.ld")]


def missing(tool: str) -> ArtifactError:
    """W825: a tool that is not installed."""
    return ArtifactError(f"{tool} is not installed", code="W825", hint="make test-embedded installs what it needs")


def _run(command: Sequence[object]) -> None:
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()[-6:]
        raise ArtifactError(f"{command[0]} refuses the sources", code="W825", notes=lines)
