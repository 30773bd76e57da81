"""The command line: `weft COMMAND ...`, the same as `python -m weft COMMAND ...`.

    show     print the modules of files as text          compile  save an executable, or print its code
    check    read and verify files                       pass     apply passes to a module
    run      call a function on arrays                   phases   list the phases of compilation
    export   write the files that a target makes         ops      list or describe the operators
    target   list, show and explain targets              artifact show, verify and compare archives
    cache    show or empty what is kept on disk          explain  say what is decided, and why
    import   a model of another framework as text        qemu     run C sources on an emulated board
    quantize a float model as integers, with a report

A FILE is Python with decorated units, or script text, or `-` for standard input; nothing of it is run.
Exit status: 0 fine, 1 the user's input is wrong, 2 wrong usage; 130 after Ctrl-C, 141 when the reader of a pipe left,
70 when weft itself is at fault. Results go to standard output, errors to standard error; with `--json` both are JSON
on standard output, errors as a list of findings. An error is one screen; WEFT_TRACEBACK=full shows where it was raised.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import os
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from weft import __version__
from weft.command.report import report_errors
from weft.errors import WeftError, printable

__all__ = ["main"]

EXIT_FINE, EXIT_INPUT, EXIT_USAGE, EXIT_FAULT, EXIT_INTERRUPT, EXIT_PIPE = 0, 1, 2, 70, 130, 141

_FILES = "FILE: Python or script text, or -; never run. Exit 1: input, 2: usage"

# Command -> (module of weft.command that does it, one line of help).
_COMMANDS = {
    "show": ("inspect", "print the modules of files as text"),
    "check": ("inspect", "read and verify files; each finding with its place"),
    "run": ("execute", "compile, and call a function on given or random arrays"),
    "compile": ("execute", "save an executable, or print its LLVM or assembly"),
    "pass": ("inspect", "apply passes to a module and print the result"),
    "export": ("execute", "write C sources or a shared object, of a module or an archive"),
    "explain": ("explain", "say what is decided about a module, and why"),
    "phases": ("passes", "list the phases of compilation and their passes"),
    "target": ("target_cmd", "list, show and explain targets"),
    "artifact": ("target_cmd", "show, verify and compare archives of artifacts"),
    "ops": ("ops_cmd", "list or describe the operators; pages and stubs of them"),
    "import": ("import_cmd", "write a foreign model as text, report on it, check it"),
    "quantize": ("quantize_cmd", "write a float model as integers, and report on it"),
    "qemu": ("qemu", "run exported C sources on an emulated board, or list the boards"),
    "cache": ("cache", "show or empty the compiled code that is kept on disk"),
}


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Help without a line for the word that stands for a command: the commands themselves follow."""

    def _format_action(self, action: argparse.Action) -> str:
        text = super()._format_action(action)
        return text.partition("\n")[2] if action.metavar == "COMMAND" else text


def _formatter(prog: str) -> argparse.HelpFormatter:
    """Help is laid out for 80 columns, or fewer on a narrower terminal."""
    width = min(80, int(os.environ.get("COLUMNS", "") or 80)) if os.environ.get("COLUMNS", "80").isdigit() else 80
    return _Formatter(prog, max_help_position=26, width=max(40, width))


class _Parser(argparse.ArgumentParser):
    """Options in full only, and help that names the command's purpose first."""

    def __init__(
        self, prog: str | None = None, description: str | None = None, epilog: str | None = None, **more: Any
    ) -> None:  # more: what later versions of Python hand from a parser to that of a command
        super().__init__(
            prog=prog, description=description, epilog=epilog, formatter_class=_formatter, allow_abbrev=False, **more
        )


def _options_of(name: str) -> list[str]:
    """The options of a command, by its help."""
    parser = _Parser(name)
    _OPTIONS[name](parser)
    if name in _FOR_TARGETS:
        importlib.import_module("weft.command.inputs.targets").add_target_options(parser, shown=True)
    return re.findall(r"--[\w-]+", parser.format_help())


def _near(word: str, known: Sequence[str]) -> str:
    """A question about known words that are like one; empty where none is."""
    found = difflib.get_close_matches(word, list(dict.fromkeys(known)), n=2)
    return f"; did you mean {' or '.join(found)}?" if found else ""


def _parser(wanted: str | None = None, *, shown: bool = False) -> argparse.ArgumentParser:
    """The parser; options that come from registries are there for the command that is wanted, in its help if shown."""
    parser = _Parser("weft", "A compiler toolkit for tensor programs in Python.")
    parser.add_argument("--version", action="version", version=f"weft {__version__}")
    commands = parser.add_subparsers(
        title=_FILES, dest="command", metavar="COMMAND", required=True, parser_class=_Parser
    )
    for name, (_, purpose) in _COMMANDS.items():
        command = commands.add_parser(name, help=purpose, description=f"{purpose[0].upper()}{purpose[1:]}.")
        _OPTIONS[name](command)
        if name == wanted and name in _FOR_TARGETS:
            importlib.import_module("weft.command.inputs.targets").add_target_options(command, shown=shown)
        command.add_argument("--json", action="store_true", help="results and errors as JSON")
    return parser


def _add_files(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", metavar="FILE", nargs="+", help="Python or script text; - is standard input")


def _add_unit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--unit", metavar="NAME", help="which decorated unit, when FILE has several")


_FOR_TARGETS = ("run", "compile", "export", "explain", "pass", "phases", "target")


def _add_compilation(parser: argparse.ArgumentParser, more: str = "") -> None:
    level = f"optimisation level (default: 2){more}"
    parser.add_argument("--opt", type=int, choices=(0, 1, 2, 3), help=level)


def _add_trust(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--allow-extern", metavar="NAME", action="append", default=[], help="a C function that FILE may call"
    )
    parser.add_argument("--trust", action="store_true", help="run the compiled code that FILE carries")


def _add_phases(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--symbol", metavar="NAME=SIZE", action="append", type=_symbol, default=[], help="a size that is known"
    )
    parser.add_argument("--params", metavar="PATH", help="an .npz file of arrays for parameters of main")
    after = "write the text after a phase (--dump-dir: where to)"
    parser.add_argument("--dump-after", metavar="PHASE", action="append", help=after)
    parser.add_argument("--dump-dir", metavar="FOLDER", help=argparse.SUPPRESS)  # named beside --dump-after
    parser.add_argument("--resume-from", metavar="PHASE", help="FILE is the module after this phase: go on from there")


def _add_whole_compilation(parser: argparse.ArgumentParser) -> None:
    """What the commands that write compiled code have in common."""
    _add_compilation(parser, "; --workers N: threads")
    for add in (_add_trust, _add_models, _add_phases):
        add(parser)
    parser.add_argument("--workers", metavar="N", type=int, help=argparse.SUPPRESS)  # named beside --opt


def _add_models(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--setup", metavar="FILE", help=argparse.SUPPRESS)  # named beside --model
    parser.add_argument(
        "--model",
        metavar="NAME[=FILE]",
        action="append",
        type=_model,
        default=[],
        help="one of several models (--setup PATH: Python to run)",
    )


def _model(text: str) -> tuple[str, str | None]:
    """NAME or NAME=FILE of the command line."""
    name, _, file = text.partition("=")
    return name, file or None


def _show_options(parser: argparse.ArgumentParser) -> None:
    _add_files(parser)
    parser.add_argument("--function", metavar="NAME", help="only this function, with the functions that it calls")
    parser.add_argument("--types", choices=("all", "hidden"), default="all", help="types of bindings (default: all)")
    parser.add_argument("--line-numbers", action="store_true", help="number the lines")


def _check_options(parser: argparse.ArgumentParser) -> None:
    _add_files(parser)
    parser.add_argument("--strict", action="store_true", help="refuse sizes that only a declared type relates (W213)")


def _run_options(parser: argparse.ArgumentParser) -> None:
    parser.usage = "weft run [OPTION...] FILE"  # the full list is too long for a screen with the options below
    parser.add_argument("file", metavar="FILE", help="Python, script text, a saved executable, or -")
    _add_unit(parser)
    parser.add_argument("--function", metavar="NAME", help="which function (default: main, or the only one)")
    parser.add_argument(
        "--input", metavar="[NAME=]PATH", action="append", default=[], help=".npy by position or name, .npz by names"
    )
    parser.add_argument("--setup", metavar="PATH", help="Python to run first, such as one that registers functions")
    parser.add_argument("--random", action="store_true", help="random values for the others (--seed N: other ones)")
    parser.add_argument(
        "--symbol", metavar="NAME=SIZE", action="append", type=_symbol, default=[], help="a size for --random"
    )
    parser.add_argument("--seed", type=int, default=0, help=argparse.SUPPRESS)  # named beside --random
    parser.add_argument("--interpret", action="store_true", help="with the reference interpreter")
    parser.add_argument("--output", metavar="PATH", help="write the results to a .npy or .npz file")
    _add_compilation(parser)
    _add_trust(parser)


def _compile_options(parser: argparse.ArgumentParser) -> None:
    parser.usage = "weft compile [OPTION...] FILE"
    parser.add_argument("file", metavar="FILE", help="Python, script text, or -")
    _add_unit(parser)
    parser.add_argument("-o", "--output", metavar="PATH", help="where to (default: the name of FILE with .weft)")
    forms = ("llvm", "asm", "c", "header", "vm", "graph", "aot")
    parser.add_argument("--emit", metavar="FORM", choices=forms, help="the code as text: llvm, asm, c, header, vm ...")
    _add_whole_compilation(parser)


def _export_options(parser: argparse.ArgumentParser) -> None:
    parser.usage = "weft export [OPTION...] -o PATH FILE"
    parser.add_argument("file", metavar="FILE", help="an archive of artifacts; Python, script text, or -")
    _add_unit(parser)
    parser.add_argument("-o", "--output", metavar="PATH", required=True, help="a folder, or a shared object (.so)")
    _add_whole_compilation(parser)


def _target_options(parser: argparse.ArgumentParser) -> None:
    parser.usage = "weft target ACTION [OPTION...] [TARGET]"
    parser.add_argument("action", choices=("list", "tags", "show", "explain"), help="what to do")
    parser.add_argument("text", metavar="TARGET", nargs="?", help="such as 'c -mcpu=cortex-m7' (or --target)")
    _add_compilation(parser)


def _artifact_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("show", "verify", "diff"), help="what to do; diff takes two files")
    parser.add_argument("files", metavar="FILE", nargs="+", help="an archive, or the text of a compiled module")


def _pass_options(parser: argparse.ArgumentParser) -> None:
    parser.usage = "weft pass [OPTION...] PASSES [FILE], weft pass --list [NAME]"
    parser.add_argument(
        "pipeline", metavar="PASSES", nargs="?", help="passes and phases: 'normalize,legalize,fuse{max_ops=8}'"
    )
    parser.add_argument("--list", action="store_true", help="list the passes, or describe the one that is named")
    parser.add_argument("file", metavar="FILE", nargs="?", default="-", help="default: standard input")
    _add_unit(parser)


def _explain_options(parser: argparse.ArgumentParser) -> None:
    parser.usage = "weft explain [OPTION...] FILE"
    parser.add_argument("file", metavar="FILE", help="Python, script text, or -")
    _add_unit(parser)
    parser.add_argument("--function", metavar="NAME", help="only this function or kernel")
    _add_compilation(parser)


def _phases_options(parser: argparse.ArgumentParser) -> None:
    parser.usage = "weft phases [OPTION...]"
    _add_compilation(parser)


def _ops_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="describe this operator, as nn.relu")
    parser.add_argument("--page", action="store_true", help="as Markdown, of a family or a package NAME too")
    parser.add_argument("--stubs", metavar="FOLDER", help="write stubs with what plug-ins add, for editors")


def _qemu_options(parser: argparse.ArgumentParser) -> None:
    parser.usage = "weft qemu list, weft qemu run [OPTION...] FOLDER"
    parser.add_argument("action", choices=("run", "list"), help="what to do")
    parser.add_argument("folder", metavar="FOLDER", nargs="?", help="what weft export wrote, or an archive of it")
    parser.add_argument("--inputs", metavar="PATH", action="append", default=[], help="an .npz file of the inputs")
    parser.add_argument("--input", metavar="NAME=PATH", action="append", default=[], help="one input, an .npy file")
    parser.add_argument("--part", metavar="LABEL", help="on the board of its processor (default: the greatest)")
    parser.add_argument("--board", metavar="NAME", help="on this board, whatever the processor")
    parser.add_argument("--model", metavar="NAME", help="which model, when there are several")
    parser.add_argument("--timeout", metavar="SECONDS", type=float, default=60, help="default: 60")
    parser.add_argument("-o", "--output", metavar="PATH", help="write the results to a .npy or .npz file")


def _cache_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("info", "clear"), help="what to do")


def _import_options(parser: argparse.ArgumentParser) -> None:
    parser.usage = "weft import [OPTION...] FILE"
    parser.add_argument("file", metavar="FILE", help="an ONNX model, or a program of torch.export (.pt2)")
    parser.add_argument("-o", "--output", metavar="PATH", help="the text; large arrays go to a folder beside it")
    parser.add_argument("--report", action="store_true", help="what became of each node (default without -o)")
    parser.add_argument("--check", action="store_true", help="compare with onnxruntime, ONNX's reference, or PyTorch")
    parser.add_argument(
        "--symbol", metavar="NAME=SIZE", action="append", type=_symbol, default=[], help="a size for --check"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the random inputs of --check")


def _quantize_options(parser: argparse.ArgumentParser) -> None:
    parser.usage = "weft quantize [OPTION...] FILE --data PATH"
    parser.add_argument("file", metavar="FILE", help="Python or script text, with the function main")
    _add_unit(parser)
    parser.add_argument(
        "--data",
        metavar="PATH",
        action="append",
        required=True,
        help="an .npz of arrays by parameter: one item, or several along an axis in front",
    )
    parser.add_argument("--scheme", default="int8", help="int8 with -symmetric, -tensor, -entropy ... (default: int8)")
    parser.add_argument("--max-drop", type=float, metavar="X", help="layers stay float32 until results differ by less")
    parser.add_argument("--params", metavar="PATH", help="an .npz file of arrays for parameters of main")
    patterns = {"include": "quantize only", "exclude": "leave out", "force": "quantize although slower:"}
    for name, what in patterns.items():
        parser.add_argument(f"--{name}", metavar="PATTERN", action="append", default=[], help=f"{what} layers by name")
    parser.add_argument("--measure", action="store_true", help="what layers cost is measured here, not estimated")
    parser.add_argument("--target", metavar="TARGET", help="what costs are estimated for (default: this machine)")
    parser.add_argument("--qdq", action="store_true", help="keep floats between quantize and dequantize")
    parser.add_argument("-o", "--output", metavar="PATH", help="the text; large arrays go to a folder beside it")
    parser.add_argument("--report", action="store_true", help="what became of each layer (default without -o)")
    parser.add_argument("--plot", metavar="PATH", help="the noise of layers as a picture (needs matplotlib)")
    parser.add_argument("--setup", metavar="FILE", help="Python to run first, for functions that are called by name")


_OPTIONS: dict[str, Callable[[argparse.ArgumentParser], None]] = {
    "show": _show_options,
    "check": _check_options,
    "run": _run_options,
    "compile": _compile_options,
    "pass": _pass_options,
    "export": _export_options,
    "target": _target_options,
    "artifact": _artifact_options,
    "explain": _explain_options,
    "phases": _phases_options,
    "ops": _ops_options,
    "import": _import_options,
    "quantize": _quantize_options,
    "qemu": _qemu_options,
    "cache": _cache_options,
}


def _symbol(text: str) -> tuple[str, int]:
    """NAME=SIZE of the command line."""
    name, equals, size = text.partition("=")
    if not (name.isidentifier() and equals and size.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=SIZE, such as n=4")
    return name, int(size)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status and never raises for what a user did.

    >>> main(["--version"])
    weft 0.1.0
    0
    """
    given = list(sys.argv[1:] if argv is None else argv)
    try:
        wanted = next((word for word in given if not word.startswith("-")), None)
        if wanted is not None and wanted not in _COMMANDS:
            near = _near(wanted, list(_COMMANDS)) or f"; there are {', '.join(_COMMANDS)}"
            _parser().error(f"there is no command {wanted!r}{near}")
        parser = _parser(wanted, shown="--help-target" in given)
        options, others = parser.parse_known_args(given)
        if others:
            option = next((word for word in others if word.startswith("-")), "").partition("=")[0]
            parser.error(f"unrecognized arguments: {' '.join(others)}{_near(option, _options_of(options.command))}")
    except SystemExit as stop:
        return int(stop.code or 0)
    except WeftError as error:  # a plug-in that does not load
        _trace()
        return report_errors([error], "--json" in given)
    try:
        # The commands live in modules of their own, so that --help loads nothing else.
        module = importlib.import_module(f"weft.command.{_COMMANDS[options.command][0]}")
        status = getattr(module, f"{options.command}_command")(options)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return EXIT_INTERRUPT
    except BrokenPipeError:
        _abandon_output()
        return EXIT_PIPE
    except WeftError as error:
        _trace()
        report_errors([error], options.json)
        return EXIT_USAGE if error.code == "W017" else EXIT_INPUT
    except Exception as error:
        _trace()
        print(printable(f"weft itself failed: {type(error).__name__}: {_first_lines(error)}"), file=sys.stderr)
        print("This is a fault in weft, not in your input. WEFT_TRACEBACK=full shows where.", file=sys.stderr)
        return EXIT_FAULT


def _trace() -> None:
    if os.environ.get("WEFT_TRACEBACK") == "full":
        traceback.print_exc()


def _first_lines(error: Exception) -> str:
    """At most ten lines of a message, so that a fault fits a screen too."""
    lines = str(error).splitlines()
    return "\n".join([*lines[:10], *(["..."] if len(lines) > 10 else [])])


def _abandon_output() -> None:
    """Nobody reads standard output any more: Python must not fail again when it flushes at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # standard output is not a real file, as under a test
        pass


if __name__ == "__main__":
    sys.exit(main())
