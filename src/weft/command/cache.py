"""`weft cache info | clear`: the compiled code that is kept on disk (`weft.codegen.cache`)."""

from __future__ import annotations

import argparse
import json

from weft.command.report import say
from weft.runtime.device.code_cache import object_cache

__all__ = ["cache_command"]


def cache_command(options: argparse.Namespace) -> int:
    """Say what the cache holds, or empty it."""
    cache = object_cache()
    removed = cache.clear() if options.action == "clear" else None
    info = cache.info()
    folder = str(info.folder) if info.folder is not None else None
    if options.json:
        facts: dict[str, object] = {**vars(info), "folder": folder}
        print(json.dumps(facts if removed is None else {"removed": removed, **facts}))
    elif removed is not None:
        print(f"removed {removed} {'entry' if removed == 1 else 'entries'}")
    elif folder is None:
        print("nothing is kept: WEFT_CACHE_DIR is off")
    else:
        if info.refused:
            say(f"ignored  {info.refused}")
        say(f"folder   {folder}\nentries  {info.entries}\nsize     {info.bytes} of at most {info.limit} bytes")
    return 0
