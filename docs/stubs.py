"""Write script/relax.pyi, tir.pyi and tirx.pyi, what editors and type checkers see of R and T: python docs/stubs.py

A test compares the files with what this script would write; `weft.command.operators.stubs` makes them.
"""

from __future__ import annotations

from pathlib import Path

from weft.command.operators.stubs import stubs

ROOT = Path(__file__).resolve().parent.parent

if __name__ == "__main__":
    for path, text in stubs().items():
        (ROOT / path).write_text(text, encoding="utf-8")
        print(f"wrote {path}")
