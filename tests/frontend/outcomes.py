"""What became of a model that was imported, compiled and run: a status, and what to say of it."""

from __future__ import annotations

import argparse
import os
import traceback
import warnings
from collections import Counter

from weft.frontend.report import ImportReport

__all__ = ["closed", "computed", "failed", "options_of", "parser_of"]


def parser_of(about: str | None) -> argparse.ArgumentParser:
    """The options that every collection has: which of its models, and the shares that are asked for."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("pattern", nargs="?", default="")
    parser.add_argument("--minimum", type=float, default=0.0)
    parser.add_argument("--native", type=float, default=0.0)
    return parser


def options_of(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The options of this run, from which on warnings and logs of the libraries are not shown."""
    warnings.simplefilter("ignore")
    os.environ.setdefault("TORCH_LOGS", "-all")
    return parser.parse_args()


def computed(report: ImportReport, detail: str = "") -> tuple[str, str]:
    """The status of a model whose results are right: native, or python with the operators that are run there."""
    if not report.fallbacks:
        return "native", detail
    reasons = sorted({f"{node.operator}: {node.why}" for node in report.fallbacks})
    return "python", "; ".join([detail, *reasons] if detail else reasons)


def failed(stage: str, error: Exception) -> tuple[str, str]:
    """The stage that ended with an error, and the error with its place."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    first = str(error).strip().splitlines()[0] if str(error) else ""
    return stage, f"{type(error).__name__} at {last.filename.rpartition('/')[2]}:{last.lineno}: {first}"


def closed(counts: Counter[str], seconds: float, minimum: float, least_native: float) -> int:
    """The exit status for how many were right, and natively, of those that count; prints the last line."""
    right = counts["native"] + counts["python"]
    total = sum(counts.values()) - counts["skip"]
    native = counts["native"] / total if total else 0.0
    share = right / max(total, 1)
    print(f"{right} of {total} right ({share:.1%}), {native:.1%} native; {dict(counts)}; {seconds:.0f} s")
    return 0 if right >= minimum * total and native >= least_native else 1
