"""Reading a module class: its members, attributes and global infos.

module ::= class NAME: member ...
member ::= decorated function | macro | Python function (@I.pyfunc) | NAME = function | constant | symbol
         | I.module_attrs({...}) | I.module_global_infos({...})
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from weft.errors import WeftError
from weft.ir.attrs import BASE_PY_MODULE
from weft.ir.graph import ExternFunc, Function, PythonFunc
from weft.ir.module import DummyGlobalInfo, IRModule
from weft.ir.node import FrozenMap
from weft.ir.tensor import PrimFunc
from weft.script.forms.syntax import ALL_FORMS
from weft.script.reader.definition import definition_options, macro_of
from weft.script.reader.expression.arguments import bind_arguments
from weft.script.reader.expression.attributes import joined_attributes
from weft.script.reader.expression.call import call_form
from weft.script.reader.expression.level import AROUND, session_around
from weft.script.reader.expression.names import dotted_name
from weft.script.reader.graph.level import graph_session
from weft.script.reader.module.body import Member, ModuleBody, check_functions
from weft.script.reader.module.prelude import declare, is_harmless
from weft.script.reader.scope import describe
from weft.script.reader.session import Session
from weft.script.source.diagnostics import Consequence, did_you_mean, fail
from weft.script.source.python_member import member_source
from weft.script.source.text import Unit

__all__ = ["read_module"]


def read_module(unit: Unit, tree: ast.ClassDef, *, check: bool = True) -> IRModule:
    """The module of a class; `check` says whether what is certainly wrong with it is an error."""
    module = ModuleBody(unit, tree)
    session = session_around(unit, module)
    _check_bases(session, module)
    for statement in tree.body:
        if not _attempt(unit, lambda statement=statement: _member(session, module, statement)):
            _leave_out(module, statement)
    for wanted, read in (("T.prim_func", module.prim_func), ("R.function", module.graph_function)):
        for name, member in module.definitions.items():
            if member.kind == wanted and name not in module.unread:
                _attempt(unit, lambda name=name, read=read: read(name))
    if unit.findings:
        raise Consequence("a function could not be read")
    functions = {name: dict.__getitem__(module.functions, name) for name in module.order}
    if check:
        checked = [name for name, member in module.definitions.items() if member.options["check_well_formed"]]
        check_functions(unit, functions, checked)
        for name in checked:
            module.check_symbol_name(name, functions[name])
    return IRModule(FrozenMap(functions), module.attrs, module.infos, tree.name, unit.name_span(tree))


def _attempt(unit: Unit, read: Callable[[], object]) -> bool:
    """Whether reading a member went well; where errors are gathered one that did not is noted."""
    try:
        read()
    except WeftError as error:
        if not unit.note(error):
            raise
        return False
    return True


def _leave_out(module: ModuleBody, tree: ast.stmt) -> None:
    """A member that cannot be read: its name is one of the module, and what uses it is a consequence."""
    targets = tree.targets if isinstance(tree, ast.Assign) else [tree]
    for name in (getattr(target, "id", getattr(target, "name", None)) for target in targets):
        if name is not None and name not in module.order:
            module.order.append(name)
            module.unread.add(name)


def _check_bases(session: Session, module: ModuleBody) -> None:
    """`class M(BasePyModule)` says of itself that it has Python functions; other bases have no meaning."""
    for base in module.tree.bases:
        name = base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")
        if name != "BasePyModule":
            raise session.fail("W115", "a module has no base class", base, "its functions stand in its body")
        module.attrs = FrozenMap({**module.attrs, BASE_PY_MODULE: True})
    for keyword in module.tree.keywords:
        raise session.fail("W115", "the class of a module takes no arguments", keyword)


def _member(session: Session, module: ModuleBody, tree: ast.stmt) -> None:
    if isinstance(tree, ast.FunctionDef):
        _define(session, module, tree)
    elif isinstance(tree, ast.Assign) and len(tree.targets) == 1 and isinstance(tree.targets[0], ast.Name):
        _assign(session, module, tree.targets[0], tree)
    elif isinstance(tree, ast.Expr) and isinstance(tree.value, ast.Call):
        _directive(session, module, tree.value)
    elif not is_harmless(tree):
        raise session.fail("W104", "a module holds functions, extern functions and I.module_attrs", tree)


def _define(session: Session, module: ModuleBody, tree: ast.FunctionDef) -> None:
    macro = macro_of(session, tree)
    if macro is not None:
        module.macros[tree.name] = replace(macro, scope=None)
        return
    if _python_member(session, module, tree):
        return
    kind, options = definition_options(session, tree)
    name = tree.name if options["name"] is None else options["name"]
    if name in module.order:
        raise fail("W118", f"the module has two functions named '{name}'", module.unit.name_span(tree))
    if kind in ("I.ir_module", "R.rewriter"):
        raise fail("W104", f"@{kind} on a function", module.unit.name_span(tree))
    module.definitions[name] = Member(tree, kind, options)
    module.order.append(name)


def _python_member(session: Session, module: ModuleBody, tree: ast.FunctionDef) -> bool:
    """Take over an `@I.pyfunc` function: its text, and itself where the class stands in a running program."""
    names = [
        dotted_name(session, decorator.func if isinstance(decorator, ast.Call) else decorator)
        for decorator in tree.decorator_list
    ]
    if "I.pyfunc" not in names:
        return False
    place = tree.decorator_list[names.index("I.pyfunc")]
    if isinstance(place, ast.Call):
        raise session.fail("W113", "I.pyfunc takes no options", place, "write `@I.pyfunc`")
    if place is not tree.decorator_list[0]:
        raise session.fail("W115", "a decorator above @I.pyfunc", tree.decorator_list[0], "write it below")
    if tree.name in module.order:
        raise fail("W118", f"the module has two functions named '{tree.name}'", module.unit.name_span(tree))
    module.order.append(tree.name)
    module.functions[tree.name] = PythonFunc(
        tree.name,
        span=module.unit.name_span(tree),
        source=member_source(module.unit, tree),
        function=module.unit.members.get(tree.name),
    )
    return True


def _assign(session: Session, module: ModuleBody, target: ast.Name, statement: ast.Assign) -> None:
    tree = statement.value
    if declare(session, statement, strict=False):
        return
    if isinstance(tree, ast.Call) and (dotted_name(session, tree.func) or "").startswith("R."):
        value: Any = graph_session(module.unit, module, module.functions).value(tree)
    else:
        value = session.value(tree)
    if not isinstance(value, (Function, PrimFunc, ExternFunc)):
        raise session.fail("W114", f"a module holds functions; '{target.id}' is {describe(value)}", statement)
    if target.id in module.order:
        raise session.fail("W118", f"the module has two functions named '{target.id}'", target)
    module.order.append(target.id)
    module.functions[target.id] = value


def _directive(session: Session, module: ModuleBody, tree: ast.Call) -> None:
    name = dotted_name(session, tree.func)
    if name == "I.module_attrs":
        attrs = bind_arguments(_attribute_session(module), ALL_FORMS[name], tree)["attrs"]
        if not isinstance(attrs, FrozenMap):
            raise session.fail("W114", "I.module_attrs takes a dictionary", tree)
        module.attrs = joined_attributes(session, module.attrs, attrs, "module", tree)
    elif name == "I.module_global_infos":
        infos = bind_arguments(_attribute_session(module), ALL_FORMS[name], tree)["infos"]
        if not isinstance(infos, FrozenMap):
            raise session.fail("W114", "I.module_global_infos takes a dictionary", tree)
        for key, value in infos.items():
            if not isinstance(value, tuple):
                raise session.fail("W114", f"the infos {key!r} are a list, got {describe(value)}", tree)
        module.infos = joined_attributes(session, module.infos, infos, "module", tree)
    else:
        hint = did_you_mean(name or "", ("I.module_attrs", "I.module_global_infos"))
        raise session.fail(
            "W104", "only I.module_attrs and I.module_global_infos can be called in a module", tree, hint
        )


def _call_in_attributes(session: Session, name: str, tree: ast.Call) -> Any:
    """Global infos and leaves of the graph, beside what is known everywhere."""
    if name == "I.dummy_global_info":
        return DummyGlobalInfo(span=session.span(tree))
    of_level = name.startswith(("R.", "T.")) and name not in ALL_FORMS
    if of_level or name in ("R.const", "R.prim_value", "R.shape", "R.str"):
        return graph_session(session.unit, session.module, {}).value(tree)
    return call_form(session, name, tree)


_ATTRIBUTES = replace(AROUND, call_named=_call_in_attributes)


def _attribute_session(module: ModuleBody) -> Session:
    """A session for attributes and global infos, where types, devices and literals may stand."""
    return Session(module.unit, module, _ATTRIBUTES)
