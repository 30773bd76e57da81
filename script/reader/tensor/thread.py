"""Reading what holds for the rest of a block: attributes of a scope, axes of threads.

    scope ::= T.attr(node, key, value) | T.attr({key: value, ...})
            | t = T.env_thread(tag) | T.launch_thread(t | tag, extent)

Each gives a function from the statements that follow to the statement around them.
"""

from __future__ import annotations

import ast
from typing import Any

from weft import dtypes
from weft.ir.node import FrozenMap, Node
from weft.ir.tensor import (
    AttrStmt,
    For,
    PrimVar,
    Stmt,
)
from weft.script.forms.defaults import loop_dtype
from weft.script.forms.syntax import LOOPS, SCOPES
from weft.script.reader.base import ModuleScope
from weft.script.reader.device import THREAD_AXES, is_thread_axis
from weft.script.reader.tensor.declaration import DeclarationReader
from weft.script.source.text import Unit

__all__ = ["ThreadReader"]


class ThreadReader(DeclarationReader):
    """Reads statements that hold for the rest of their block."""

    def __init__(self, unit: Unit, module: ModuleScope) -> None:
        super().__init__(unit, module)
        self.threads: dict[str, str] = {}

    def thread_axis(self, tag: Any, tree: ast.AST) -> str:
        """The name of an axis of threads; W114 for any other text."""
        if not is_thread_axis(tag):
            raise self.fail("W114", f"there is no axis of threads {tag!r}", tree, f"such as {THREAD_AXES}")
        return tag

    def _attr_statement(self, tree: ast.Call) -> Any:
        if len(tree.args) == 1 and not tree.keywords:
            return self._attr_pairs(tree)
        values = self.bind(SCOPES["T.attr"], tree)
        axis = values["node"]
        if isinstance(axis, ast.Call) and self.dotted(axis.func) == "T.iter_var":
            return self._thread_of(axis, values["key"], self.value(values["value"]), tree)
        node, value = self.attr_operand(values["node"]), self.attr_operand(values["value"])
        if type(node) is int and node == 0:  # how older texts say that it is of no node in particular
            node = None
        return lambda body: AttrStmt(node, values["key"], value, body, span=self.span(tree))

    def _thread_of(self, axis: ast.Call, key: str, extent: Any, tree: ast.Call) -> Any:
        """`T.attr(T.iter_var(v, (0, n), "ThreadIndex", tag), "thread_extent", n)`: a thread axis around the rest.

        Any other attribute is of what the tag names, of no node in particular where there is none.
        """
        named = {word.arg: word.value for word in axis.keywords}
        places = [*axis.args, *(named[name] for name in ("iter_type", "thread_tag") if name in named)]
        var, tag = (self._axis_variable(places[0]), self.value(places[3])) if len(places) == 4 else (None, None)
        bound = key in ("thread_extent", "virtual_thread")
        if not isinstance(var, PrimVar) or not isinstance(tag, str) or (bound and not tag):
            raise self.fail("W113", "T.iter_var takes a variable, its range, its kind and its thread", axis)
        if not bound:
            value = extent if isinstance(extent, Node) else self.attribute_value(extent, tree)
            return lambda body: AttrStmt(tag or None, key, value, body, span=self.span(tree))
        self.thread_axis(tag, tree)
        size = self.as_extent(extent, tree)
        self.loops[var] = (0, size)
        return lambda body: For(var, 0, size, body, "thread_binding", tag, span=self.span(tree))

    def _axis_variable(self, tree: ast.expr) -> Any:
        """The variable of an iteration axis; a declaration in its place is one that nothing names."""
        dtype = self.symbol_declaration(tree)
        return PrimVar("v", dtype, span=self.span(tree)) if dtype is not None else self.value(tree)

    def _attr_pairs(self, tree: ast.Call) -> Any:
        """`T.attr({"key": value, ...})`: attributes of no node in particular, the first outermost."""
        pairs = self.read_literal(tree.args[0])
        if not isinstance(pairs, FrozenMap):
            raise self.fail("W114", "T.attr takes a node, a key and a value, or a dictionary", tree)

        def wrap(body: Stmt) -> Stmt:
            for key, value in reversed(list(pairs.items())):
                body = AttrStmt(None, key, value, body, span=self.span(tree))
            return body

        return wrap

    def attr_operand(self, tree: ast.expr) -> Any:
        """The node or value of an attribute statement."""
        value = self.value(tree)
        return value if isinstance(value, Node) else self.attribute_value(value, tree)

    def _env_thread(self, target: ast.Name, tree: ast.Call) -> None:
        values = self._values(tree, ("dtype",))
        stated = [self.constant(keyword.value) for keyword in tree.keywords if keyword.arg == "dtype"] or values[1:]
        if not 1 <= len(values) <= 2 or not isinstance(values[0], str):
            raise self.fail("W113", "T.env_thread takes the name of a thread axis", tree)
        tag = self.thread_axis(values[0], tree)
        dtype = self.fold(lambda: dtypes.check_dtype(stated[0]), tree) if stated else "int32"
        var = PrimVar(target.id, dtype, span=self.span(target))
        self.threads[target.id] = tag
        self.scope.names[target.id] = var

    def _launch_named(self, target: ast.Name, tree: ast.Call) -> Any:
        values = self.bind(LOOPS["T.launch_thread"], tree)
        return self._launch(target.id, values, tree, target)

    def _launch_statement(self, tree: ast.Call) -> Any:
        values = self.bind(LOOPS["T.launch_thread"], tree)
        return self._launch(None, values, tree, tree)

    def _launch(self, name: str | None, values: dict[str, Any], tree: ast.Call, place: ast.AST) -> Any:
        """A thread axis as a loop around the rest of the block."""
        thread = values["thread"]
        for argument in tree.args[1:2]:
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                raise self.fail("W114", f"an extent is an integer, got {argument.value!r}", argument)
        if isinstance(thread, ast.Name) and thread.id in self.threads:
            tag, var = self.threads[thread.id], self.scope.get(thread.id)
            if var in self.loops:  # launched before: the axis of another loop, under the same name
                var = PrimVar(thread.id, var.dtype, span=self.span(place))
                self.scope.names[thread.id] = var
        elif isinstance(thread, ast.Name) and isinstance(self.scope.get(thread.id), PrimVar):
            # declared as a symbol before; printers of passes name it after its axis
            var, tag = self.scope.get(thread.id), thread.id.replace("_", ".", 1)
        else:
            tag = self.thread_axis(self.constant(thread), thread)
            var = PrimVar(name or str(tag).replace(".", "_"), loop_dtype(0, values["extent"]), span=self.span(place))
            if name:
                self.scope.names[name] = var
        self.loops[var] = (0, values["extent"])
        return lambda body: For(
            var, 0, values["extent"], body, "thread_binding", str(tag), span=self.span(tree), launched=True,
        )  # fmt: skip
