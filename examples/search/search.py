"""Semantic search over this project's own documentation, with real weights: `make example-search`, or

    python examples/search/search.py "how do I stop a loop early"         the passages that are nearest in meaning
    python examples/search/search.py --check                              the model beside torch, where it is installed
    python examples/search/search.py --time                               the same, and how long both take

The model is compiled once, for every batch and length. What the documentation means is kept in a file beside the
environment and made again when a page changes.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import model
import numpy as np
from tokenizer import WordPiece

import weft

ROOT = Path(__file__).resolve().parents[2]
INDEX = ROOT / ".search" / "index.npz"
BATCH, TOP, LEAST_WORDS = 16, 3, 6
QUESTIONS = (
    "how do I run a model with another batch size without compiling again",
    "what happens when an index is out of range",
    "can I write my own operator",
)


def passages() -> list[tuple[str, str]]:
    """(page and heading, text) for each paragraph and row of a table of the documentation; code is left out."""
    docs = ROOT / "docs"  # without docs/reference, where one looks up by name
    pages = [ROOT / "README.md", *sorted([*docs.glob("*.md"), *docs.glob("guide/*.md")])]
    return [
        (f"{path.relative_to(ROOT)}: {heading}", text)
        for path in pages
        for heading, text in paragraphs(path.read_text(encoding="utf-8"), path.name)
        if len(text.split()) >= LEAST_WORDS
    ]


def paragraphs(page: str, heading: str) -> Iterator[tuple[str, str]]:
    """(heading, text) for each paragraph of a page, and for each row of its tables."""
    lines: list[str] = []
    code = False
    for line in [*page.splitlines(), ""]:
        code ^= line.startswith("```")
        if code or line.startswith("```"):
            continue
        if (not line.strip() or line.startswith(("|", "#", "- "))) and lines:
            yield heading, " ".join(lines)
            lines = []
        if line.startswith("#"):
            heading = line.lstrip("# ")
        elif line.startswith("|"):
            yield heading, " ".join(cell.strip() for cell in line.strip("|").split("|"))
        elif line.strip():
            lines.append(line.strip())


def vectors(exe: weft.Executable, words: WordPiece, texts: Sequence[str]) -> np.ndarray:
    """The vectors of texts, those of similar length together, with a bar for how far it is."""
    order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
    found = np.empty((len(texts), model.HIDDEN), "float32")
    for start in progress(range(0, len(texts), BATCH), "reading the documentation"):
        part = order[start : start + BATCH]
        found[part] = exe["encode"](*words.batch([texts[index] for index in part]))
    return found


def progress(steps: range, title: str) -> Iterator[int]:
    """The steps, with a bar on a terminal."""
    for number, step in enumerate(steps, 1):
        yield step
        if sys.stderr.isatty():
            done = 30 * number // len(steps)
            end = "\n" if number == len(steps) else ""
            print(f"\r{title} [{'#' * done}{'.' * (30 - done)}] {number}/{len(steps)}", end=end, file=sys.stderr)


def index(exe: weft.Executable, words: WordPiece) -> tuple[list[tuple[str, str]], np.ndarray]:
    """The passages and their vectors, from the file where nothing has changed."""
    found = passages()
    key = hashlib.sha256("\n".join(text for item in found for text in item).encode()).hexdigest()
    if INDEX.exists():
        with np.load(INDEX) as file:
            if str(file["key"]) == key:
                return found, file["vectors"]
    made = vectors(exe, words, [text for _, text in found])
    INDEX.parent.mkdir(exist_ok=True)
    np.savez(INDEX, key=key, vectors=made)
    return found, made


def answer(exe: weft.Executable, words: WordPiece, question: str) -> None:
    """Print the passages whose meaning is nearest to that of a question."""
    found, meaning = index(exe, words)
    start = time.perf_counter()
    scores = meaning @ exe["encode"](*words.batch([question]))[0]
    best = np.argsort(-scores)[:TOP]
    print(f"\n{question}?   ({len(found)} passages, {1e3 * (time.perf_counter() - start):.1f} ms)")
    for place in best:
        where, text = found[place]
        print(f"  {scores[place]:.2f}  {where}\n        {text[:150]}{'...' if len(text) > 150 else ''}")


def main() -> int:
    """Answer the questions, or compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("question", nargs="*")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--time", action="store_true")
    options = parser.parse_args()
    start = time.perf_counter()
    exe, words = model.load(), WordPiece(model.checkpoint() / "vocab.txt")
    print(f"all-MiniLM-L6-v2 compiled for every batch and length in {time.perf_counter() - start:.1f} s")
    if options.check or options.time:
        import compare  # needs torch

        return compare.compare(exe, options.time)
    for question in [" ".join(options.question)] if options.question else QUESTIONS:
        answer(exe, words, question.rstrip("?"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
