"""Plug-ins: packages that add kinds of targets, operators, passes, code generators and loaders when they are imported.

A package names a module (or a function to call) under the entry point group `weft.plugins`:

    [project.entry-points."weft.plugins"]
    npu = "weft_npu"

Nothing is imported until `load_plugins` is called; the command line calls it, reading a text never does.
"""

from __future__ import annotations

from importlib import metadata

from weft.errors import WeftError

__all__ = ["GROUP", "load_plugins"]

GROUP = "weft.plugins"
_loaded: set[tuple[str, str]] = set()


def load_plugins() -> list[str]:
    """Import every installed plug-in that is not imported yet; gives the names of those that were, in order.

    Raises: WeftError W070 for one that fails, with what it raised as the cause.

    """
    names: list[str] = []
    for entry in sorted(metadata.entry_points(group=GROUP), key=lambda item: (item.name, item.value)):
        if (entry.name, entry.value) in _loaded:
            continue
        try:
            value = entry.load()
            if callable(value):
                value()
        except Exception as error:
            raise WeftError(
                f"the plug-in {entry.name!r} ({entry.value}) does not load: {type(error).__name__}: {error}",
                code="W070",
                hint="uninstall it, or repair it",
            ) from error
        _loaded.add((entry.name, entry.value))
        names.append(entry.name)
    return names
