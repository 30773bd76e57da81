"""`weft qemu`: what `weft export` wrote for a board is run on the board that QEMU emulates.

    weft qemu list                                                  the boards
    weft qemu run FOLDER --inputs in.npz [--part LABEL]             the outputs of one call

FOLDER may also be an archive of artifacts. Errors: W017 an option that is missing or does not go with the action, and
those of `weft.codegen.emulation.qemu`.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import weft
from weft.codegen.emulation.qemu import run_on_board
from weft.command.execute import row_text
from weft.command.inputs.arrays import read_inputs, save_results, summarise
from weft.command.inputs.targets import UsageError
from weft.command.report import print_json, say
from weft.target import BOARDS

__all__ = ["qemu_command"]


def qemu_command(options: argparse.Namespace) -> int:
    """List the boards, or run the C sources of a folder on one of them."""
    if options.action == "list":
        boards = BOARDS.values()
        rows = [{"board": board.name, "tag": board.tag, "target": str(weft.tag[board.tag])} for board in boards]
        if options.json:
            print_json(rows)
        else:
            say("\n".join(f"{row['board']:<12} {row['tag']:<18} {row['target']}" for row in rows))
        return 0
    if options.folder is None:
        raise UsageError("weft qemu run needs the folder that weft export wrote")
    results = _run(options)
    if options.output is not None:
        save_results(options.output, list(results.items()))
    rows = [{"name": name, **summarise(value)} for name, value in results.items()]
    print_json(rows) if options.json else say("\n".join(map(row_text, rows)))
    return 0


def _run(options: argparse.Namespace) -> dict[str, Any]:
    given = read_inputs([*options.inputs, *options.input])
    if given.positional:
        raise UsageError("inputs of a board go by name", hint="--input x=x.npy, or an .npz file")
    wanted = {"model": options.model, "part": options.part, "board": options.board, "timeout": options.timeout}
    if Path(options.folder).is_dir():
        return run_on_board(options.folder, given.named, **wanted)
    with tempfile.TemporaryDirectory(prefix="weft-") as place:
        tree = weft.ArtifactSet.load(options.folder).export(Path(place, "tree"))
        return run_on_board(tree, given.named, **wanted)
