"""Generated C on emulated boards: trees through `weft.codegen.emulation`, and single files linked the same way."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np

from weft.codegen import emulation
from weft.codegen.backends.c import CSource, SourceTree
from weft.codegen.emulation.image import COMPILER, Model, Tensor, build_image, call, link_options, read_tree
from weft.codegen.emulation.qemu import EMULATOR, emulate, results
from weft.target import Board, Target
from weft.target.boards import board_of

TOOLS = (COMPILER, EMULATOR)
START = Path(emulation.__file__).parent / "start.c"


def missing_tools() -> list[str]:
    """The tools that are not installed."""
    return [tool for tool in TOOLS if shutil.which(tool) is None]


def of_processor(cpu: str) -> Board:
    """The board of a processor."""
    found = board_of(Target(f"c -mcpu={cpu}"))
    assert found is not None
    return found


def run_tree(
    tree: SourceTree, inputs: dict[str, np.ndarray], outputs: list[np.ndarray], folder: Path, board: Board
) -> list[np.ndarray]:
    """The outputs of one call of a tree's image on an emulated board; its objects are in `folder / "built"`."""
    tree.write(folder / "sources")
    read = read_tree(folder / "sources")
    built = folder / "built"
    built.mkdir()
    image = build_image(read, call(read.model(None), inputs), board, built)
    return list(results(read.model(None), emulate(image, board), board).values())


def run(
    source: CSource,
    model: str,
    target: Target,
    inputs: dict[str, np.ndarray],
    outputs: list[np.ndarray],
    folder: Path,
    board: Board | None = None,
) -> list[np.ndarray]:
    """The outputs of one call of a single file of C on the emulated board of the target's processor."""
    board = board or board_of(target)
    assert board is not None
    taken = tuple(Tensor(name, str(data.dtype), data.shape) for name, data in inputs.items())
    given = tuple(Tensor(f"output{i}", str(out.dtype), out.shape) for i, out in enumerate(outputs))
    described = Model(model, taken, given, {"workspace": _workspace(source, model)})
    for name, text in {**source.files, "main.c": call(described, inputs)}.items():
        (folder / name).write_text(text)
    strict = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off", "-O2", "-ffunction-sections"]
    objects = []
    for file in (folder / f"{model}.c", folder / "main.c", START):
        objects.append(folder / f"{file.name}.o")
        flags = strict if file is not START else ["-O2"]
        subprocess.run([COMPILER, *target.gcc_flags(), *flags, "-c", file, "-o", objects[-1]], check=True)
    image = folder / "image.elf"
    command = [COMPILER, *target.gcc_flags(), "-O2", *link_options(board, folder), *objects, "-lm", "-o", image]
    subprocess.run(command, check=True)
    return list(results(described, emulate(image, board), board).values())


def _workspace(source: CSource, model: str) -> int:
    lines = source.files[f"{model}.h"].splitlines()
    (line,) = (line for line in lines if line.startswith("#define") and "_WORKSPACE_BYTES " in line)
    return int(line.split()[-1])
