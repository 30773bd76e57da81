"""Targets of the command line: options made from the registries, configuration files, and which of them holds.

    --target TARGET                 what to compile for
    --target-KIND-OPTION VALUE      an option of every part of that kind: --target-c-mcpu cortex-m7
    --executor NAME, --executor-FIELD VALUE, --runtime ..., --package ...
    --config FILE                   JSON: a target, or {"target": ..., "executor": ..., "opt": ...}

The command line wins over the file, the file over what kinds have by default.

Errors: W010 a file that cannot be read, W016 a file that is no configuration, W017 an option for a kind that no part
of the target has (exit status 2), and what a Target raises.
"""

from __future__ import annotations

import argparse
import difflib
import json
from collections.abc import Iterator, Mapping
from typing import Any

import weft
from weft.command.inputs.files import InputError, read_text
from weft.ir.node import FrozenMap
from weft.target import Config, Target
from weft.target.kinds import CONFIG_FIELDS, KINDS, Field
from weft.target.schema import SCHEMA

__all__ = ["UsageError", "add_target_options", "chosen_target"]

_FILE_KEYS = ("target", "host", "opt", *CONFIG_FIELDS)


class UsageError(InputError):
    """Options that do not go together: the command was used wrongly (exit status 2)."""

    default_code = "W017"


def add_target_options(parser: argparse.ArgumentParser, *, shown: bool) -> None:
    """The options for targets: one for each field of each registered kind, and of configurations.

    They are many: the help lists them only where they are asked for (`shown`).
    """
    weft.load_plugins()
    parser.add_argument("--target", metavar="TARGET", help="what to compile for (default: this machine's CPU)")
    parser.add_argument("--config", metavar="FILE", help="a configuration (JSON); the command line wins over it")
    parser.add_argument("--help-target", action="help", help="more options, for each kind of target; then exit")
    for name, fields in SCHEMA.items():
        first, *rest = fields
        _add(parser, f"--{name}", first, fields[first], shown)
        for key in rest:
            _add(parser, f"--{name}-{key}", key, fields[key], shown)
    for kind in sorted(KINDS.values(), key=lambda item: item.name):
        for name, field in kind.fields.items():
            _add(parser, f"--target-{kind.name}-{_dashed(name)}", field.type, field, shown)


def _add(parser: argparse.ArgumentParser, option: str, metavar: str, field: Field, shown: bool) -> None:
    parser.add_argument(option, metavar=metavar.upper(), help=_help(field) if shown else argparse.SUPPRESS)


def _dashed(name: str) -> str:
    return name.replace("_", "-")


def _help(field: Field) -> str:
    known = f" ({', '.join(map(str, field.choices))})" if field.choices else ""
    default = f" [{field.default}]" if field.default not in (None, (), False) else ""
    return f"{field.doc}{known}{default}".replace("%", "%%")


def chosen_target(options: argparse.Namespace) -> tuple[Target | None, int]:
    """What the command line and its file ask for (None: nothing), and the level of optimisation."""
    stated = _read_config(options.config) if options.config else {}
    level = options.opt if getattr(options, "opt", None) is not None else stated.pop("opt", 2)
    if level not in (0, 1, 2, 3):
        raise InputError(f"{options.config}: opt is 0 to 3, got {level!r}", file=options.config, code="W016")
    from_file = _of_file(stated, options)
    given = dict(_given(options))
    named = {name: value for name, value in given.items() if name in CONFIG_FIELDS}
    for_kinds = {name: value for name, value in given.items() if name not in CONFIG_FIELDS}
    base = Target(options.target) if options.target is not None else from_file
    if base is None and (named or for_kinds):
        base = Target("llvm")
    if base is None:
        return None, level
    if options.target is not None and from_file is not None and from_file.kind.name == "config":
        inherited = {name: from_file.options[name] for name in CONFIG_FIELDS if name in from_file.options}
        base = _with_fields(base, inherited, wins=False)
    target = _with_options(_with_fields(base, named, wins=True), for_kinds)
    return _with_origins(target, given, None if options.target is not None else from_file, options.config), level


def _given(options: argparse.Namespace) -> Iterator[tuple[Any, Any]]:
    """What the command line says: fields of a configuration by name, options by (kind, name)."""
    for name, fields in SCHEMA.items():
        values = {key: getattr(options, name if key == next(iter(fields)) else f"{name}_{key}", None) for key in fields}
        stated = {key: value for key, value in values.items() if value is not None}
        if stated:
            yield name, stated
    for kind in KINDS.values():
        for name in kind.fields:
            value = getattr(options, f"target_{kind.name.replace('-', '_')}_{name}", None)
            if value is not None:
                yield (kind.name, name), value


def _read_config(path: str) -> dict[str, Any]:
    try:
        data = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON: {error}", file=path, code="W016") from None
    if not isinstance(data, dict):
        raise InputError(f"{path} holds no configuration: a JSON object is wanted", file=path, code="W016")
    if "kind" in data or "tag" in data:
        opt = {"opt": data.pop("opt")} if "opt" in data else {}
        return {"target": data, **opt}
    for key in data:
        if key not in _FILE_KEYS:
            close = difflib.get_close_matches(key, _FILE_KEYS, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"it may have: {', '.join(_FILE_KEYS)}"
            raise InputError(f"{path} has an unknown entry {key!r}", file=path, code="W016", hint=hint)
    return data


def _of_file(stated: Mapping[str, Any], options: argparse.Namespace) -> Target | None:
    """The target of a configuration file, or None when it names none and says nothing else."""
    fields = {name: stated[name] for name in CONFIG_FIELDS if name in stated}
    if "target" not in stated and not fields:
        return None
    target = stated.get("target", options.target or "llvm")
    return Config(target, host=stated.get("host"), **fields).to_target()


def _with_fields(target: Target, fields: Mapping[str, Any], *, wins: bool) -> Target:
    """The target with fields of a configuration; where both say something, the given ones win or not."""
    if not fields:
        return target
    data = Config.of(target)
    merged = {}
    for name, value in fields.items():
        old = getattr(data, name)
        old = dict(old) if isinstance(old, Mapping) else {}
        merged[name] = {**old, **value} if wins else {**_plain(value), **old}
    kept = {name: getattr(data, name) for name in CONFIG_FIELDS if name not in merged}
    return Config(data.target, host=data.host, **kept, **merged).to_target()


def _plain(value: Any) -> Any:
    return {key: _plain(item) for key, item in value.items()} if isinstance(value, Mapping) else value


def _with_options(target: Target, options: Mapping[tuple[str, str], Any]) -> Target:
    """The target with options for all parts of a kind; UsageError W017 for a kind that no part has."""
    kinds = {part.kind.name for part in target.walk()}
    for kind, name in options:
        if kind not in kinds:
            raise UsageError(
                f"--target-{kind}-{_dashed(name)} is for parts of kind {kind!r}, and {str(target)!r} has none",
                hint=f"it has: {', '.join(sorted(kinds - {'composite', 'config'}))}",
            )

    def changed(part: Target) -> dict[str, Any]:
        data = part.to_dict()
        mine = {name: value for (kind, name), value in options.items() if kind == part.kind.name}
        if "mcpu" in mine:  # what followed from another processor does not hold any more
            data = {key: value for key, value in data.items() if key not in ("mfpu", "mtriple")}
        data.update({name: _listed(part, name, value) for name, value in mine.items()})
        if part.parts:
            data["parts"] = {label: changed(inner) for label, inner in part.parts.items()}
        return data

    return Target(changed(target)) if options else target


def _listed(part: Target, name: str, value: str) -> Any:
    return value.split(",") if part.kind.fields[name].type == "list" else value


def _with_origins(target: Target, given: Mapping[Any, Any], from_file: Target | None, path: str | None) -> Target:
    """The target, where each option remembers whether the command line or the file stated it."""

    def marked(part: Target, before: Target | None) -> Target:
        origins = dict(part.origins)
        for name in part.options:
            if (part.kind.name, name) in given or (part.kind.name == "config" and name in given):
                origins[name] = "command line"
            elif before is not None and before.kind is part.kind and name in before.options:
                origins[name] = f"file {path}"
        parts = {
            label: marked(inner, before.parts.get(label) if before is not None else None)
            for label, inner in part.parts.items()
        }
        copy = Target(part)
        object.__setattr__(copy, "origins", FrozenMap(origins))
        object.__setattr__(copy, "parts", FrozenMap(parts))
        return copy

    return marked(target, from_file) if path is not None or given else target
