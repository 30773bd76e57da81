"""The public C header of a model: what every back end that writes one says."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["header_text"]


def header_text(model: str, sizes: Sequence[tuple[str, int]], structures: Sequence[str], entry: str) -> str:
    """The header, with the bytes of each memory by the name of its macro, lines of structures, and the prototype."""
    upper = model.upper()
    lines = [
        f"#ifndef {upper}_H",
        f"#define {upper}_H",
        "",
        "#include <stdint.h>",
        "",
        *(f"#define {upper}_{name}_BYTES {size}" for name, size in sizes),
        "",
        *structures,
        f"{entry};",
        f"const char *{model}_message(int32_t code);",
        "",
        "#endif",
        "",
    ]
    return "\n".join(lines)
