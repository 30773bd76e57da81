"""Runs of C sources on an emulated board: an image is built, QEMU runs it, and its outputs are read back.

    run_on_board(folder, {"x": array}) -> {"output0": array}

The board is the one whose processor is that of the part asked for, by default the part whose processor has most.

Errors: ArtifactError W824 and W825 as for images, W826 a run that fails or does not end; ArgumentError W850 a missing
or unknown input, W851 and W852 one of another dtype or shape.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from weft.codegen.emulation.image import Model, Tree, build_image, call, missing, read_tree
from weft.errors import ArgumentError, ArtifactError
from weft.runtime.abi.scalars import storage
from weft.target import BOARDS, Board
from weft.target.boards import board_of

__all__ = ["board_for", "emulate", "results", "run_on_board"]

EMULATOR = "qemu-system-arm"


def run_on_board(
    folder: Path | str,
    inputs: Mapping[str, np.ndarray],
    *,
    model: str | None = None,
    part: str | None = None,
    board: str | None = None,
    timeout: float = 60,
) -> dict[str, np.ndarray]:
    """The outputs of one call of a model, by name, on an emulated board."""
    tree = read_tree(Path(folder))
    wanted = tree.model(model)
    given = _checked(wanted, inputs)
    where = board_for(tree, part, board)
    with tempfile.TemporaryDirectory(prefix="weft-") as place:
        image = build_image(tree, call(wanted, given), where, Path(place))
        return results(wanted, emulate(image, where, timeout), where)


def results(model: Model, done: subprocess.CompletedProcess[str], board: Board) -> dict[str, np.ndarray]:
    """What an image wrote: the outputs by name; ArtifactError W826 for one that failed."""
    if done.returncode:
        said = done.stderr.strip().splitlines()[-3:] or ["it wrote nothing"]
        message = f"the image failed on {board.name}: it ended with {done.returncode}"
        raise ArtifactError(message, code="W826", notes=said)
    rows = done.stderr.splitlines()
    if len(rows) != len(model.outputs):
        raise ArtifactError(f"the image on {board.name} wrote {len(rows)} results", code="W826", notes=rows[:3])
    return {
        item.name: np.frombuffer(bytes.fromhex(row), storage(item.dtype)).reshape(item.shape)
        for row, item in zip(rows, model.outputs, strict=True)
    }


def board_for(tree: Tree, part: str | None = None, board: str | None = None) -> Board:
    """The board of a name, else that of a part's processor; ArtifactError W824 where there is none."""
    if board is not None:
        if board not in BOARDS:
            raise ArtifactError(f"there is no board {board!r}", code="W824", hint=f"boards: {', '.join(BOARDS)}")
        return BOARDS[board]
    target = tree.part(part)
    found = board_of(target)
    if found is None:
        cpus = ", ".join(item.cpu for item in BOARDS.values())
        raise ArtifactError(f"no emulated board has the processor of {target}", code="W824", hint=f"they have {cpus}")
    return found


def emulate(image: Path, board: Board, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    """Run an image; what it writes comes on the error stream, and its exit status is that of the emulator."""
    if shutil.which(EMULATOR) is None:
        raise missing(EMULATOR)
    command = [EMULATOR, "-M", board.name, "-nographic", "-monitor", "none", "-serial", "none"]
    command += ["-semihosting-config", "enable=on,target=native", "-kernel", str(image)]
    try:
        return subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        raise ArtifactError(f"the image on {board.name} did not end in {timeout:g} seconds", code="W826") from None


def _checked(model: Model, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The inputs in the order of the model."""
    names = [item.name for item in model.inputs]
    odd = [name for name in inputs if name not in names] or [name for name in names if name not in inputs]
    if odd:
        what = "has no input" if odd[0] in inputs else "needs the input"
        raise ArgumentError(f"model {model.name} {what} {odd[0]!r}", code="W850", hint=f"inputs: {', '.join(names)}")
    for item in model.inputs:
        got = np.asarray(inputs[item.name])
        if got.dtype != storage(item.dtype):
            raise ArgumentError(f"input {item.name!r} is {item.dtype}, got {got.dtype}", code="W851")
        if got.shape != item.shape:
            raise ArgumentError(f"input {item.name!r} has the shape {item.shape}, got {got.shape}", code="W852")
    return {name: np.ascontiguousarray(inputs[name]) for name in names}
