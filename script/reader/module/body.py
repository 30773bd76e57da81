"""A module while it is read: what its functions may ask of it, and when each of them is read.

Functions may refer to each other in any order: signatures come first, and a function without a declared result is read
when its type is first needed.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from weft.errors import Span, WeftError
from weft.ir.attrs import GLOBAL_SYMBOL, PERSISTENT
from weft.ir.graph import Function
from weft.ir.module import BaseFunc, IRModule
from weft.ir.node import EMPTY, FrozenMap
from weft.ir.structure.structural import structural_equal, structural_hash
from weft.ir.tensor import PrimFunc
from weft.ir.types import PrimType
from weft.ir.verify import certain_findings, verify
from weft.script.reader.expression.types import read_type
from weft.script.reader.graph.element_targets import changes_arrays
from weft.script.reader.graph.function import check_defaults, read_function, read_signature, signature_of
from weft.script.reader.graph.level import graph_session
from weft.script.reader.graph.session import GraphSession
from weft.script.reader.graph.sharing import note_function
from weft.script.reader.macros import Macro
from weft.script.reader.scope import ModuleScope
from weft.script.reader.tensor.function import read_prim_func, tensor_session
from weft.script.source.diagnostics import Consequence, fail
from weft.script.source.text import Unit
from weft.support.records import record

__all__ = ["Member", "ModuleBody", "check_functions", "read_tensor_function"]


@record
class Member:
    """A decorated function of a module: its text, its decorator and the options of that."""

    tree: ast.FunctionDef
    kind: str
    options: dict[str, Any]


def read_tensor_function(
    unit: Unit, module: ModuleScope, tree: ast.FunctionDef, options: Mapping[str, Any], name: str | None
) -> PrimFunc:
    """Read a tensor-level function."""
    session = tensor_session(unit, module)
    if options["persistent"]:
        session.attrs = FrozenMap({PERSISTENT: True})
    return read_prim_func(session, tree, private=options["private"], name=name, s_tir=bool(options["s_tir"]))


def check_functions(unit: Unit, functions: Mapping[str, Any], names: Sequence[str]) -> None:
    """What no call can make right is an error here already; the verifier and the interpreter say the rest.

    Where errors are gathered, the rest is said with it.
    """
    found = certain_findings(functions, names)
    if not found:
        return
    if unit.findings is None:
        raise found[0].error()
    for finding in verify(IRModule(FrozenMap(functions))):
        unit.note(finding.error())
    raise Consequence("the unit is not well formed")


_NESTED = 20
"""Functions that are read while each waits for the next, to know what that returns."""


class _Functions(dict[str, Any]):
    """The functions of a module while it is read: asking for one reads its signature, or all of it if need be."""

    def __init__(self, module: ModuleBody) -> None:
        super().__init__()
        self.module = module

    def get(self, name: str, default: Any = None) -> Any:
        found = super().get(name)
        return found if found is not None else self.module.signature_of(name, default)


class ModuleBody(ModuleScope):
    """The functions of a module class, each read when it is needed."""

    def __init__(self, unit: Unit, tree: ast.ClassDef) -> None:
        self.unit = unit
        self.tree = tree
        self.name = tree.name
        self.definitions: dict[str, Member] = {}
        self.order: list[str] = []
        self.functions = _Functions(self)
        self.sessions: dict[str, GraphSession] = {}  # of graph functions whose signature is read
        self.reading: set[str] = set()
        self.unread: set[str] = set()  # what an error kept from being read, where errors are gathered
        self.returned: dict[str, Any] = {}  # what graph functions return of their arguments, where that matters
        self.changes_arrays = changes_arrays(tree.body)
        self.attrs: FrozenMap = EMPTY
        self.infos: FrozenMap = EMPTY
        self.adopted: dict[int, str] = {}
        self.shared: dict[Any, list[str]] = {}  # private kernels that joined, by their hash: equal ones are one
        self.macros: dict[str, Macro] = {}  # type: ignore[assignment]

    @property
    def function_names(self) -> tuple[str, ...]:  # type: ignore[override]
        """Every function of the module."""
        return tuple(self.order)

    def prim_func(self, name: str) -> None:
        """Read a tensor-level function."""
        member = self.definitions[name]
        with self._whole(name):
            self.functions[name] = read_tensor_function(self.unit, self, member.tree, member.options, name)

    def _graph_session(self, name: str) -> GraphSession:
        """The session of a graph function, its signature read."""
        found = self.sessions.get(name)
        if found is None:
            member = self.definitions[name]
            found = graph_session(self.unit, self, self.functions)
            read_signature(found, member.tree)
            found.pure = member.options["pure"]
            self.sessions[name] = found
        return found

    def graph_function(self, name: str) -> BaseFunc:
        """A graph function, read if it is not yet."""
        found = dict.get(self.functions, name)
        if found is None:
            member = self.definitions[name]
            self.reading.add(name)
            with self._whole(name):
                session, options = self._graph_session(name), member.options
                check_defaults(session)
                found = read_function(session, member.tree, pure=options["pure"], private=options["private"], name=name)
            self.reading.discard(name)
            self.functions[name] = found
            self.returned[name] = note_function(session, found.params, found.body.body, found.ret_type)
        return found

    def returned_by(self, name: str) -> Any:
        """Which of its arguments a graph function may return and change; None where it is being read."""
        member = self.definitions.get(name)
        unread = name not in self.returned and name not in self.reading and name not in self.unread
        if member is not None and member.kind == "R.function" and unread and len(self.reading) < _NESTED:
            self.graph_function(name)
        return self.returned.get(name)

    @contextlib.contextmanager
    def _whole(self, name: str) -> Iterator[None]:
        """Around the reading of a function: it is read or, where errors are gathered, its error is noted once."""
        try:
            yield
        except WeftError as error:
            if not self.unit.note(error):
                raise
            self.unread.add(name)
            self.reading.discard(name)
            raise Consequence(f"the function '{name}' could not be read") from None

    def signature_of(self, name: str, default: Any) -> Any:
        """The signature of a function that is not read yet; W122 where it depends on itself."""
        known = self.sessions.get(name)
        if name in self.unread and (known is None or known.ret_type is None):
            raise Consequence(f"the function '{name}' could not be read")
        member = self.definitions.get(name)
        if member is None:
            return default
        if member.kind == "T.prim_func":
            self.prim_func(name)
            return dict.__getitem__(self.functions, name)
        session = self._graph_session(name)
        if session.ret_type is not None:
            return signature_of(session)
        if name in self.reading:
            raise fail(
                "W122",
                f"'{name}' calls itself, so its result type must be written",
                self.unit.name_span(member.tree),
                hint=f"def {member.tree.name}(...) -> R.Tensor(...):",
            )
        return self.graph_function(name)

    def parameters_of(self, name: str) -> Mapping[str, Any] | None:
        """The parameters of a graph function of this text."""
        if name not in self.definitions or self.definitions[name].kind != "R.function":
            return None
        return {argument.arg: default for argument, default in self._graph_session(name).defaults.items()}

    def return_dtype(self, name: str) -> str:
        """The dtype that a tensor-level function returns, from its signature alone."""
        if name not in self.definitions or self.definitions[name].kind != "T.prim_func":
            found = dict.get(self.functions, name)
            ty = found.ret_type if isinstance(found, PrimFunc) else None
        else:
            returns = self.definitions[name].tree.returns
            ty = read_type(tensor_session(self.unit, self), returns) if returns is not None else None
        return ty.dtype if isinstance(ty, PrimType) else "void"

    def adopt(self, function: Any, span: Span) -> str:
        """A captured function joins the module under its name, or a fresh one."""
        known = self.adopted.get(id(function))
        if known is not None:
            return known
        for name in self.order:
            if dict.get(self.functions, name) is function:
                return name
        shared = isinstance(function, PrimFunc) and function.private
        key = structural_hash(function) if shared else ""
        for name in self.shared.get(key, ()) if shared else ():
            if structural_equal(self.functions[name], function):
                return name
        name = self._free_name(function.name or "captured")
        self.order.append(name)
        self.functions[name] = function
        self.adopted[id(function)] = name
        if shared:
            self.shared.setdefault(key, []).append(name)
        return name

    def _free_name(self, base: str) -> str:
        name = base
        count = 1
        while name in self.order:
            name = f"{base}_{count}"
            count += 1
        return name

    def check_symbol_name(self, name: str, function: BaseFunc) -> None:
        """W434: a graph function of a module is called by its name."""
        stated = function.attrs.get(GLOBAL_SYMBOL, name) if isinstance(function, Function) else name
        if stated != name:
            tree = self.definitions[name].tree
            values = [statement.value for statement in tree.body if isinstance(statement, ast.Expr)]
            place = next((value for value in values if "global_symbol" in ast.unparse(value)), tree)
            message = f"the function {name} has the global_symbol {stated!r}"
            raise fail("W434", message, self.unit.span(place), "leave out the attribute, or rename the function")
