"""Reading targets, artifacts, layouts and other things that attributes hold."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from weft.errors import ShapeError, WeftError
from weft.ir.dim import Dim, parse_dim, symbol
from weft.ir.kernel.index_map import MappedLayout, index_map, index_map_text
from weft.ir.node import FrozenMap
from weft.script.forms.reading import COMMON, GRAPH
from weft.script.reader.device import FOREIGN_TARGETS
from weft.script.reader.expression.arguments import KnownValue
from weft.script.reader.expression.attributes import attribute_value
from weft.script.reader.expression.expansion import expand_macro
from weft.script.reader.macros import Macro
from weft.script.reader.scope import describe
from weft.script.reader.session import Session
from weft.script.source.diagnostics import did_you_mean
from weft.support.providers import provider
from weft.target import Target

__all__ = ["stated_target"]


@COMMON.value("I.float_bits")
def _form_float_bits(session: Session, tree: ast.Call) -> float:
    bits = session.constant(tree.args[0]) if len(tree.args) == 1 else None
    if not isinstance(bits, int) or not 0 <= bits < 2**64:
        raise session.fail("W113", "I.float_bits takes one unsigned 64-bit integer", tree)
    return float(np.uint64(bits).view(np.float64))


@COMMON.value("I.dim")
def _form_dim(session: Session, tree: ast.Call) -> Dim:
    text = session.constant(tree.args[0]) if len(tree.args) == 1 else None
    if not isinstance(text, str):
        raise session.fail("W113", "I.dim takes one string", tree)
    try:
        return parse_dim(text)  # by itself: a variable of the same name does not hide a symbol here
    except ShapeError as error:
        raise error.at(session.span(tree)) from None


@COMMON.value("I.target")
def _form_target(session: Session, tree: ast.Call) -> Target:
    spec = attribute_value(session, session.value(tree.args[0]), tree) if len(tree.args) == 1 else None
    if not isinstance(spec, (str, FrozenMap)):
        raise session.fail("W113", "I.target takes a string or a dictionary", tree)
    return session.fold(lambda: Target(spec), tree)


def stated_target(session: Session, tree: ast.expr) -> Target:
    """A target given as a string, as a dictionary, as `I.target(...)` or as a captured Target."""
    spec = attribute_value(session, session.value(tree), tree)
    if not isinstance(spec, (str, FrozenMap, Target)):
        raise session.fail("W113", "a target is a string, a dictionary or I.target(...)", tree)
    return spec if isinstance(spec, Target) else session.fold(lambda: Target(spec), tree)


@COMMON.value("I.artifacts")
def _form_artifacts(session: Session, tree: ast.Call) -> Any:
    data = attribute_value(session, session.value(tree.args[0]), tree) if len(tree.args) == 1 else None
    if not isinstance(data, tuple) or not all(isinstance(item, FrozenMap) for item in data):
        raise session.fail("W113", "I.artifacts takes a list of dictionaries", tree)
    return session.fold(lambda: provider("artifacts")(data), tree)


@COMMON.value("T.target")
def _form_foreign_target(session: Session, tree: ast.Call) -> Target | FrozenMap:
    """`T.target(...)`: a target of weft, or the description of another project's as plain data."""
    spec = attribute_value(session, session.value(tree.args[0]), tree) if tree.args else None
    try:
        return _form_target(session, tree)
    except WeftError:
        if isinstance(spec, str) and spec.split()[:1] and spec.split()[0] in FOREIGN_TARGETS:
            spec = FrozenMap({"kind": spec})
        if not isinstance(spec, FrozenMap):
            raise
    if "kind" not in spec and "tag" not in spec:
        hint = did_you_mean(next(iter(spec), ""), ["kind"]) or 'T.target({"kind": "llvm"})'
        raise session.fail("W114", "a target says its kind", tree, hint)
    host = [session.value(item) for item in tree.args[1:2]]
    host += [session.value(keyword.value) for keyword in tree.keywords if keyword.arg == "host"]
    return FrozenMap({**spec, "host": attribute_value(session, host[0], tree)}) if host else spec


@COMMON.value("I.meta_var", "T.meta_var")
def _form_meta_var(session: Session, tree: ast.Call) -> Any:
    if len(tree.args) != 1 or tree.keywords:
        raise session.fail("W113", "I.meta_var takes one argument", tree)
    return session.value(tree.args[0])


@COMMON.value("T.index_map")
@GRAPH.value("T.index_map")
def _form_index_map(session: Session, tree: ast.Call) -> MappedLayout:
    """`T.index_map(lambda i, j: (j, i))`: where elements go, as attribute data."""
    named = {keyword.arg: keyword for keyword in tree.keywords}
    wrong = next((word for name, word in named.items() if name not in ("inverse_index_map", "index_dtype")), None)
    if wrong is not None or len(tree.args) != 1:
        place = tree if wrong is None else wrong
        raise session.fail("W113", "T.index_map takes a function of the indices, and inverse_index_map", place)
    text = _map_text(session, tree.args[0])
    inverse = named.get("inverse_index_map")
    stated = inverse is not None and not (isinstance(inverse.value, ast.Constant) and inverse.value.value is None)
    back = _map_text(session, inverse.value) if inverse is not None and stated else ""
    return MappedLayout(text, back, span=session.span(tree))


def _map_text(session: Session, tree: ast.expr) -> str:
    """The canonical text of a map given as a lambda (which may use what is known while reading) or as text."""
    found = session.value(tree)
    if isinstance(found, Macro) and isinstance(found.body, ast.expr):
        names = [*found.arguments.posonlyargs, *found.arguments.args]
        indices = [KnownValue(symbol(f"i{position}"), tree) for position in range(len(names))]
        targets = expand_macro(session, found, ast.copy_location(ast.Call(tree, indices, []), tree))  # type: ignore[arg-type]
        return session.fold(lambda: str(index_map(len(names), targets)), tree)
    if not isinstance(found, str):
        raise session.fail("W114", f"expected a lambda, got {describe(found)}", tree, "lambda i, j: (j, i)")
    return session.fold(lambda: index_map_text(found), tree)
