"""WordPiece, as BERT's uncased models want it: text to numbers of a vocabulary.

    text    ::= word | punctuation ...           in lower case, without accents
    word    ::= piece ##piece ...                the longest piece of the vocabulary first; [UNK] where one is missing
    numbers ::= [CLS] pieces [SEP]

Source: Wu et al., Google's Neural Machine Translation System, 2016; the vocabulary file says the rest.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

LONGEST_WORD = 100


class WordPiece:
    """A vocabulary, one piece a line: the number of a piece is that of its line."""

    def __init__(self, path: Path) -> None:
        lines = path.read_text(encoding="utf-8").splitlines()
        self.numbers = {piece: number for number, piece in enumerate(lines)}
        self.unknown, self.first, self.last = (self.numbers[f"[{name}]"] for name in ("UNK", "CLS", "SEP"))

    def encode(self, text: str, longest: int = 256) -> list[int]:
        """The numbers of a text, cut to a length."""
        pieces = [number for word in words(text) for number in self.word(word)]
        return [self.first, *pieces[: longest - 2], self.last]

    def word(self, word: str) -> Iterator[int]:
        """The numbers of one word: the longest pieces from its beginning on."""
        found, start = [], 0
        while start < len(word):
            marks = "##" if start else ""
            ends = range(len(word), start, -1) if len(word) <= LONGEST_WORD else ()
            end = next((end for end in ends if marks + word[start:end] in self.numbers), None)
            if end is None:
                return iter([self.unknown])
            found.append(self.numbers[marks + word[start:end]])
            start = end
        return iter(found)

    def batch(self, texts: Iterable[str]) -> tuple[np.ndarray, np.ndarray]:
        """Texts as numbers and a mask, filled up to the longest."""
        rows = [self.encode(text) for text in texts]
        ids = np.zeros((len(rows), max(map(len, rows))), "int64")
        mask = np.zeros_like(ids)
        for number, row in enumerate(rows):
            ids[number, : len(row)], mask[number, : len(row)] = row, 1
        return ids, mask


def words(text: str) -> Iterator[str]:
    """The words and marks of a text, in lower case and without accents."""
    plain = unicodedata.normalize("NFD", "".join(_spaced(letter) for letter in text).lower())
    for chunk in "".join(letter for letter in plain if unicodedata.category(letter) != "Mn").split():
        word = ""
        for letter in chunk:
            if _is_mark(letter):
                if word:
                    yield word
                yield letter
                word = ""
            else:
                word += letter
        if word:
            yield word


def _spaced(letter: str) -> str:
    """A letter as it counts: a space for white ones, nothing for control characters, ideographs as words."""
    code = ord(letter)
    if letter in "\t\n\r" or unicodedata.category(letter) == "Zs":
        return " "
    if code in (0, 0xFFFD) or unicodedata.category(letter).startswith("C"):
        return ""
    ideograph = 0x4E00 <= code <= 0x9FFF or 0x3400 <= code <= 0x4DBF or 0x20000 <= code <= 0x2CEAF
    return f" {letter} " if ideograph or 0xF900 <= code <= 0xFAFF or 0x2F800 <= code <= 0x2FA1F else letter


def _is_mark(letter: str) -> bool:
    code = ord(letter)
    ascii_mark = 33 <= code <= 47 or 58 <= code <= 64 or 91 <= code <= 96 or 123 <= code <= 126
    return ascii_mark or unicodedata.category(letter).startswith("P")
