"""Pipelines: passes in order, and their text.

    pipeline ::= [item ("," item)*]
    item     ::= NAME ["{" [option ("," option)*] "}"]
    option   ::= NAME "=" value
    value    ::= integer | float | "true" | "false" | "none" | NAME | STRING
               | "[" [value ("," value)*] "]" | "{" [key ":" value ("," key ":" value)*] "}"

The NAME is that of a pass, or of a phase: its passes, and those of the hooks of the target. A phase takes the options
that one of its passes has, and `target`: for which one it runs (else for that of `with target:`, or of the module).
Between two phases the mandatory ones join that lie between them.

`str(pipeline)` is this text, and `parse_pipeline` reads it back into equal passes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import lru_cache
from typing import Any, ClassVar

from weft.errors import PassError, Source, Span, described
from weft.ir import IRModule
from weft.transform.infra.base import Pass
from weft.transform.infra.context import PassContext
from weft.transform.infra.registry import find_item, named_phases

__all__ = ["Pipeline", "parse_pipeline"]

_GRAMMAR = r"""
start: [item ("," item)*]
item: NAME ["{" [option ("," option)*] "}"]
option: NAME "=" value
?value: NUMBER -> number | STRING -> string | NAME -> word
      | "[" [value ("," value)*] "]" -> array
      | "{" [pair ("," pair)*] "}" -> mapping
pair: (NAME | STRING) ":" value
NAME: /[A-Za-z_][A-Za-z0-9_-]*/
NUMBER.2: /-?(inf|nan)\b|-?\d+(\.\d*)?([eE][-+]?\d+)?/
STRING: /"([^"\\]|\\.)*"/
%ignore /[ \t\r\n]+/
"""


@dataclass(frozen=True, init=False)
class Pipeline(Pass, abstract=True):
    """Passes run in order; itself a pass. Those whose level is above `opt` of the `PassContext` are left out.

    Raises: TypeError for an item that is not a pass.

    >>> Pipeline([])(IRModule({})).functions
    FrozenMap({})
    """

    checks_itself: ClassVar[bool] = True
    passes: tuple[Pass, ...]
    title: str | None

    def __init__(self, passes: Iterable[Pass] = (), name: str | None = None) -> None:
        items = tuple(passes)
        for item in items:
            if not isinstance(item, Pass):
                kind = described(item)
                raise TypeError(f"a pipeline holds passes, got {kind}")
        object.__setattr__(self, "passes", items)
        object.__setattr__(self, "title", name)

    @property
    def name(self) -> str:
        """The given name, or "pipeline"."""
        return self.title or "pipeline"

    def run(self, module: IRModule) -> IRModule:
        """Run the passes in order."""
        opt = PassContext.current().opt
        for item in self.passes:
            if item.level <= opt:
                module = item(module)
        return module

    def __iter__(self) -> Iterator[Pass]:
        return iter(self.passes)

    def __len__(self) -> int:
        return len(self.passes)

    def __add__(self, other: Pipeline) -> Pipeline:
        return Pipeline((*self.passes, *other.passes))

    def __str__(self) -> str:
        return ",".join(text for text in map(str, self.passes) if text)


def parse_pipeline(text: str) -> Pipeline:
    """The pipeline that a text names.

    Raises: PassError W500 for wrong syntax, W501 for an unknown pass, W502 for an option that is unknown, missing,
    ill-typed, or several passes of a phase have; each with a caret under the place.

    >>> str(parse_pipeline("legalize-ops, dce{}"))
    'legalize-ops,dead-code-elimination'
    >>> str(parse_pipeline("legalize,fuse{max_ops=8},plan"))
    'legalize,fuse{max_ops=8},lower,plan'
    """
    source = Source("<pipeline>", text)
    made: list[Pass] = []
    last: str | None = None
    for tree in _parse(source).children:
        if tree is None:
            continue
        name, item = str(tree.children[0]), _read_item(tree, source)
        if name in named_phases():
            made += _between(last, name)
            last = name
        made.append(item)
    return Pipeline(made)


def _between(last: str | None, name: str) -> list[Pass]:
    """The mandatory phases after one and before another."""
    phases = named_phases()
    names = list(phases)
    skipped = names[names.index(last) + 1 : names.index(name)] if last is not None else []
    return [phases[item].with_options({}) for item in skipped if phases[item].mandatory]


def _parse(source: Source) -> Any:
    from lark.exceptions import UnexpectedEOF, UnexpectedInput  # lark is loaded when text is first read

    try:
        return _parser().parse(source.text)
    except UnexpectedInput as error:
        at = len(source.text) if isinstance(error, UnexpectedEOF) else (error.pos_in_stream or 0)
        token = getattr(error, "token", None)
        ended = at >= len(source.text) or (token is not None and token.type == "$END")
        at = len(source.text) if ended else at
        message = "the pipeline ends too early" if ended else f"unexpected {source.text[at]!r} in the pipeline"
        raise PassError(
            message, code="W500", span=Span(source, at, at + 1), hint="write name{option=value, ...},name,..."
        ) from None


@lru_cache(maxsize=1)
def _parser() -> Any:
    import lark

    return lark.Lark(_GRAMMAR, parser="lalr", propagate_positions=True, maybe_placeholders=True)


def _read_item(tree: Any, source: Source) -> Pass:
    token, *options = tree.children
    span = _span(token, source)
    found = find_item(str(token), span)
    values: dict[str, Any] = {}
    for option in options:
        if option is None:
            continue
        key, value_tree = option.children
        where = _span(key, source)
        value = _read_value(key, value_tree, where)
        if key in values:
            raise PassError(f"option {key} is given twice", code="W502", span=where)
        found.check_option(str(key), value, where)
        values[str(key)] = value
    if isinstance(found, type):
        _check_complete(found, values, span)
    return found.with_options(values)


def _check_complete(cls: type[Any], values: Mapping[str, Any], span: Span) -> None:
    for item in fields(cls):
        if item.init and item.default is MISSING and item.default_factory is MISSING and item.name not in values:
            raise PassError(f"pass {cls.text_name} needs the option {item.name!r}", code="W502", span=span)


def _span(token: Any, source: Source) -> Span:
    return Span(source, token.start_pos, token.end_pos)


_WORDS = {"true": True, "false": False, "none": None}


def _read_value(option: str, tree: Any, span: Span) -> Any:
    try:
        return _value(tree)
    except (ValueError, RecursionError) as error:  # escapes that are none, thousands of digits or brackets
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise PassError(f"the value of option {option} cannot be read: {why}", code="W500", span=span) from None


def _value(tree: Any) -> Any:
    text = str(tree.children[0]) if tree.children else ""
    if tree.data == "number":
        return int(text) if text.lstrip("-").isdigit() else float(text)
    if tree.data == "string":
        return json.loads(text, strict=False)
    if tree.data == "word":
        return _WORDS.get(text, text)
    items = [item for item in tree.children if item is not None]
    if tree.data == "array":
        return tuple(map(_value, items))
    return {_key(key): _value(value) for key, value in (pair.children for pair in items)}


def _key(token: Any) -> str:
    return json.loads(token, strict=False) if token.type == "STRING" else str(token)
