"""The NPU's own tools, as its maker would ship them: commands to streams, streams to C. Nothing here knows of weft."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

from weft_npu import hardware

__all__ = ["assemble", "driver", "prototype"]

_OPERATIONS = {
    "npu_windows": hardware.WINDOWS,
    "npu_multiply": hardware.MULTIPLY,
    "npu_load": hardware.LOAD,
    "npu_store": hardware.STORE,
}
_DRIVER = """\
#include <stdint.h>

int32_t npu_execute(const uint8_t *stream, uint64_t bytes, void *const *regions, uint64_t *cycles);
{prototype};

static const uint32_t stream[] = {{
{words}
}};

{prototype} {{
  void *regions[{count}];
  {regions}
  return npu_execute((const uint8_t *)(const void *)stream, sizeof stream, regions, 0);
}}
"""


def assemble(commands: Iterable[tuple[str, Sequence[int]]], array: int, sram: int) -> bytes:
    """A stream of commands, each an operation with its fields, for a machine of some size."""
    words = [array, sram]
    for operation, fields in commands:
        words += [_OPERATIONS[operation], *fields]
    return hardware.MAGIC + struct.pack(f"<{len(words)}I", *words)


def prototype(name: str, count: int) -> str:
    """The driver of a stream with some regions, in C."""
    return f"int32_t {name}({', '.join(f'void *region{i}' for i in range(count))})"


def driver(name: str, stream: bytes, count: int) -> str:
    """C that hands a stream over, with its arguments as regions."""
    words = [f"{word}u" for (word,) in struct.iter_unpack("<I", stream)]
    return _DRIVER.format(
        prototype=prototype(name, count),
        words=",\n".join("  " + ", ".join(words[i : i + 12]) for i in range(0, len(words), 12)),
        count=count,
        regions=" ".join(f"regions[{i}] = region{i};" for i in range(count)),
    )
