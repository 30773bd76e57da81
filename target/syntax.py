"""The string form of targets, both ways: text to plain data by `target.lark`, plain data to text."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from typing import Any, cast

from weft.errors import Source, Span, TargetError

__all__ = ["parse_target", "write_options"]

_BARE = re.compile(r"[^\s\"';:{},=][^\s\"';:{},]*")
_WORD = re.compile(r"[a-z]+")
_MAX_LENGTH = 100_000


@functools.cache
def _parser() -> Any:
    from lark import Lark  # heavy, and only strings need it

    grammar = resources.files("weft.target").joinpath("target.lark").read_text("utf-8")
    return Lark(grammar, parser="lalr", lexer="contextual", maybe_placeholders=False)


def parse_target(text: str) -> dict[str, Any]:
    """Plain data (kind, options, parts) of a target string; TargetError W708 with a caret for a syntax error."""
    if _WORD.fullmatch(text):
        return {"kind": text}  # most are a name alone, and reading the grammar takes longer than a small compile
    from lark import UnexpectedInput

    source = Source("<target>", text)
    if len(text) > _MAX_LENGTH:
        raise TargetError(f"a target string may have {_MAX_LENGTH} characters, got {len(text)}", code="W708")
    if text.count("{") > 50:
        raise TargetError("a target string may nest 50 deep", code="W708")
    try:
        tree = _parser().parse(text)
    except UnexpectedInput as error:
        position = error.pos_in_stream if error.pos_in_stream is not None and error.pos_in_stream >= 0 else len(text)
        span = Span(source, min(position, len(text)), min(position + 1, len(text)))
        hint = "as in `c -mcpu=cortex-m4` or `label: c -mcpu=cortex-m0; other: llvm`"
        raise TargetError(f"malformed target {text!r}", code="W708", span=span, hint=hint) from None
    return _target(tree.children[0], source)


def _target(tree: Any, source: Source) -> dict[str, Any]:
    return {"kind": "composite", "parts": _parts(tree, source)} if tree.data == "composite" else _item(tree, source)


def _parts(tree: Any, source: Source) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    for part in tree.children:
        label, body = part.children
        if str(label) in parts:
            span = Span(source, label.start_pos, label.end_pos)
            raise TargetError(f"label {str(label)!r} occurs twice", code="W707", span=span)
        parts[str(label)] = _target(body.children[0].children[0] if body.data == "nested" else body, source)
    return parts


def _item(tree: Any, source: Source) -> dict[str, Any]:
    name, *rest = tree.children
    data: dict[str, Any] = {"kind": str(name)}
    for child in rest:
        if child.data == "parts":
            data["parts"] = _parts(child.children[0], source)
        else:
            _put(data, child, source)
    return data


def _put(data: dict[str, Any], option: Any, source: Source) -> None:
    key, *value = option.children
    path = str(key)[1:].replace("-", "_").split(".")
    inside = data
    for step in path[:-1]:
        inside = inside.setdefault(step, {})
    if path[-1] in inside or (len(path) == 1 and path[0] in ("kind", "parts")):
        raise TargetError(
            f"option {'.'.join(path)!r} occurs twice", code="W708", span=Span(source, key.start_pos, key.end_pos)
        )
    inside[path[-1]] = _value(value[0]) if value else True


def _value(tree: Any) -> Any:
    atoms = [_atom(atom.children[0]) for atom in tree.children]
    return atoms[0] if len(atoms) == 1 else atoms


def _atom(token: Any) -> str:
    return json.loads(str(token)) if token.type == "STRING" else str(token)


def write_options(options: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """The options as `-name=value`, nested data with dotted names."""
    for name in options if prefix else sorted(options):
        value = options[name]
        key = f"{prefix}{name.replace('_', '-')}"
        if isinstance(value, Mapping):
            yield from write_options(cast("Mapping[str, Any]", value), f"{key}.")
        elif value is True:
            yield f"-{key}"
        elif isinstance(value, (list, tuple)):
            # A list of one needs its comma-free form to stay a list: the field's type says so when it is read.
            yield f"-{key}={','.join(map(_write_atom, cast('Sequence[Any]', value)))}"
        else:
            yield f"-{key}={_write_atom(value)}"


def _write_atom(value: Any) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text if _BARE.fullmatch(text) else json.dumps(text, ensure_ascii=False)
