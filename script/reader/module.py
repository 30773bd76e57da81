"""Reading whole units: a module, or one function.

`parse(text)` reads text with the fixed prelude and evaluates nothing. `read_unit` reads one definition of a larger
text; the decorators use it with the user's live names. Functions of a module may refer to each other in any order:
signatures come first, and a function without a declared result is read when its type is first needed.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from weft.errors import Span, WeftError
from weft.ir.graph import ExternFunc, Function, PythonFunc
from weft.ir.module import BaseFunc, DummyGlobalInfo, IRModule
from weft.ir.node import EMPTY, FrozenMap
from weft.ir.structure.structural import structural_equal, structural_hash
from weft.ir.tensor import PrimFunc
from weft.ir.types import FuncType, PrimType
from weft.ir.verify import certain_findings, verify
from weft.script.forms.syntax import ALL_FORMS, REWRITER, SIDES
from weft.script.reader.base import ModuleScope, Reader, definition_options, describe, macro_of
from weft.script.reader.graph import emit_te  # noqa: F401  reads `R.emit_te`
from weft.script.reader.graph.function import GraphReader
from weft.script.reader.macros import Macro
from weft.script.reader.metadata import declare_metadata
from weft.script.reader.tensor.function import TensorReader
from weft.script.source.blobs import Blobs, as_blobs
from weft.script.source.diagnostics import Consequence, Limits, did_you_mean, fail
from weft.script.source.python_member import member_source
from weft.script.source.text import NAMESPACE_MODULES, Unit, deep_stack, make_source, parse_python

__all__ = ["Definition", "declare", "declare_macro", "import_names", "parse", "read_unit"]

Definition = ast.ClassDef | ast.FunctionDef
_FUTURE_VERSIONS = "weft-script"


def parse(
    text: str, *, filename: str = "<text>", blobs: Blobs | None = None, limits: Limits | None = None
) -> IRModule | Function | PrimFunc:
    """The module or function that a text defines; nothing of the text is evaluated, imported or opened.

    Errors: ScriptError W101 (syntax), W103 (limits), W104 (no unit, or several), W11x-W15x (see `diagnostics`), and the
    errors of type deduction, each with the place in the text.

    >>> parse('''
    ... @R.function
    ... def main(x: R.Tensor(("n", 4), "float32")):
    ...     return x
    ... ''').params[0].name
    'x'
    """
    if not isinstance(text, str):
        raise fail("W101", f"a script is a string, got {type(text).__name__}")
    unit = Unit(make_source(filename, text), limits or Limits(), blobs=as_blobs(blobs))
    with deep_stack():
        tree = parse_python(unit.source, unit.limits)
        _check_version(unit)
        definitions = list(_top_level(unit, tree))
        if len(definitions) != 1:
            raise _not_one(unit, definitions)
        return read_unit(unit, definitions[0])


def _check_version(unit: Unit) -> None:
    for line in unit.source.text.split("\n", 5)[:5]:
        words = line.lstrip("# ").split()
        if line.startswith("#") and len(words) == 2 and words[0] == _FUTURE_VERSIONS:
            if words[1] != "1":
                raise fail("W104", f"the text is weft-script {words[1][:20]}; this weft reads version 1")


def _not_one(unit: Unit, definitions: list[Definition]) -> WeftError:
    if not definitions:
        return fail(
            "W104", "the text defines nothing to read", Span(unit.source, 0, 0),
            hint="it needs an @I.ir_module class, an @R.function or a @T.prim_func",
        )  # fmt: skip
    names = ", ".join(definition.name for definition in definitions)
    return fail(
        "W104",
        f"the text defines several units: {names}",
        unit.name_span(definitions[1]),
        hint="put them in one @I.ir_module class",
    )


def _top_level(unit: Unit, tree: ast.Module) -> Iterator[Definition]:
    """The definitions of a text; imports become aliases, declarations of symbols are noted."""
    reader = Reader(unit, ModuleScope())
    for statement in tree.body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            import_names(unit, statement)
        elif isinstance(statement, ast.FunctionDef) and declare_macro(reader, statement):
            continue
        elif isinstance(statement, (ast.ClassDef, ast.FunctionDef)):
            yield statement
        elif _is_harmless(statement) or declare_metadata(unit, statement):
            continue
        elif not declare(reader, statement):
            raise reader.fail(
                "W104", "only imports, symbols, constants and decorated definitions can stand here", statement
            )


def _is_harmless(tree: ast.stmt) -> bool:
    return isinstance(tree, ast.Pass) or (isinstance(tree, ast.Expr) and isinstance(tree.value, ast.Constant))


def import_names(unit: Unit, tree: ast.Import | ast.ImportFrom, *, strict: bool = True) -> None:
    """Take a prelude import as aliases; any other import is refused in a text that must be a script."""
    for alias in tree.names:
        if isinstance(tree, ast.ImportFrom):
            path = f"{tree.module or ''}.{alias.name}"
            known = (tree.module or "").split(".")[0] in ("weft", "tvm", "__future__", "typing", "typing_extensions")
        else:
            path = alias.name
            known = path.split(".")[0] in ("weft", "tvm", "numpy")
        space = NAMESPACE_MODULES.get(path)
        name = alias.asname or alias.name
        if space is not None and "." not in name:
            unit.aliases[name] = space
        elif not known and strict:
            raise fail("W104", f"`import {path}` has no meaning in a text: nothing is imported", unit.span(tree))


def declare_macro(reader: Reader, tree: ast.FunctionDef) -> bool:
    """Note a macro that is defined outside functions; whether the definition is one."""
    macro = macro_of(reader, tree)
    if macro is None:
        return False
    reader.unit.constants[tree.name] = replace(macro, scope=None)
    return True


def declare(reader: Reader, tree: ast.stmt, *, strict: bool = True) -> bool:
    """`n = T.int64()`, `n = TypeVar("n")` and `N = 4` outside functions."""
    if not (isinstance(tree, ast.Assign) and len(tree.targets) == 1 and isinstance(tree.targets[0], ast.Name)):
        return False
    name = tree.targets[0].id
    value = tree.value
    if isinstance(value, ast.Call):
        called = reader.dotted(value.func) or (value.func.id if isinstance(value.func, ast.Name) else "")
        dtype = reader.dtype_name(called) if not value.args and not value.keywords else None
        is_type_variable = called in ("TypeVar", "T.TypeVar", "I.TypeVar", "R.TypeVar")
        if is_type_variable and not value.args:
            raise fail("W113", f"{called} takes the name of the symbol", reader.span(value), f'{called}("{name}")')
        if is_type_variable or dtype is not None:
            reader.unit.symbols[name] = dtype or "int64"
            return True
    try:
        made = reader.value(value)
    except WeftError:
        if strict:
            raise
        return False
    if reader.known(made, value):
        reader.unit.constants[name] = made
        return True
    return False


# ---------------------------------------------------------------------------------------------------------------------
# One unit
# ---------------------------------------------------------------------------------------------------------------------


def read_unit(unit: Unit, tree: Definition) -> IRModule | Function | PrimFunc:
    """The module or function that a definition stands for."""
    reader = Reader(unit, ModuleScope())
    kind, options = definition_options(reader, tree)
    if isinstance(tree, ast.ClassDef):
        if kind == "R.rewriter":
            return _rewriter(unit, tree)
        if kind != "I.ir_module":
            raise fail("W104", f"@{kind} on a class", unit.name_span(tree), hint="a class takes @I.ir_module")
        module = _Module(unit, tree).read(check=bool(options["check_well_formed"]))
        target = options["target"]
        return module if target is None else module.with_attr("target", target)
    if kind in ("I.ir_module", "R.rewriter"):
        raise fail("W104", f"@{kind} on a function", unit.name_span(tree), hint="use @R.function or @T.prim_func")
    module = ModuleScope()
    if kind == "T.prim_func":
        kernel = _tensor_function(unit, module, tree, options, options["name"])
        if options["check_well_formed"]:
            _check(unit, {kernel.name: kernel}, [kernel.name])
        return kernel
    graph = GraphReader(unit, module, _Lone(tree.name))
    graph.signature(tree)
    graph.refuse_defaults()
    if isinstance(graph.context.functions, _Lone) and graph.ret_type is not None:
        graph.pure = options["pure"]
        graph.context.functions[tree.name] = graph.func_type()
    made = graph.function(tree, pure=options["pure"], private=options["private"], name=options["name"])
    if options["check_well_formed"]:
        _check(unit, {made.name: made}, [made.name])
    return made


def _rewriter(unit: Unit, tree: ast.ClassDef) -> IRModule:
    """A rule of rewriting: a module of two graph functions, marked as one."""
    module = _Module(unit, tree).read(check=True)
    for name in SIDES:
        if not isinstance(module.functions.get(name), Function):
            hint = "@R.rewriter takes a class of two graph functions, `pattern` and `replacement`"
            raise fail("W104", f"the rule has no graph function '{name}'", unit.name_span(tree), hint=hint)
    return module.with_attr(REWRITER, True)


def _tensor_function(
    unit: Unit, module: ModuleScope, tree: ast.FunctionDef, options: Mapping[str, Any], name: str | None
) -> PrimFunc:
    """Read a tensor-level function."""
    reader = TensorReader(unit, module)
    if options["persistent"]:
        reader.attrs = FrozenMap({"tirx.persistent_kernel": True})
    return reader.function(tree, private=options["private"], name=name, s_tir=bool(options["s_tir"]))


def _check(unit: Unit, functions: Mapping[str, Any], names: Sequence[str]) -> None:
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


class _Lone(dict[str, Any]):
    """The functions that a function outside any module sees: itself, and anything as an opaque function."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def get(self, name: str, default: Any = None) -> Any:
        found = super().get(name)
        if found is None:
            return FuncType(None, ALL_FORMS["R.Any"].build(), False)  # type: ignore[misc]
        return found


class _Functions(dict[str, Any]):
    """The functions of a module while it is read: asking for one reads its signature, or all of it if need be."""

    def __init__(self, module: _Module) -> None:
        super().__init__()
        self.module = module

    def get(self, name: str, default: Any = None) -> Any:
        found = super().get(name)
        return found if found is not None else self.module.signature_of(name, default)


class _Module(ModuleScope):
    """Reads the body of a module class."""

    def __init__(self, unit: Unit, tree: ast.ClassDef) -> None:
        self.unit = unit
        self.tree = tree
        self.name = tree.name
        self.reader = Reader(unit, self)
        self.definitions: dict[str, tuple[ast.FunctionDef, str, dict[str, Any]]] = {}
        self.order: list[str] = []
        self.functions = _Functions(self)
        self.readers: dict[str, GraphReader] = {}
        self.reading: set[str] = set()
        self.unread: set[str] = set()  # what an error kept from being read, where errors are gathered
        self.attrs: FrozenMap = EMPTY
        self.infos: FrozenMap = EMPTY
        self.adopted: dict[int, str] = {}
        self.shared: dict[Any, list[str]] = {}  # private kernels that joined, by their hash: equal ones are one
        self.macros: dict[str, Macro] = {}  # type: ignore[assignment]

    @property
    def function_names(self) -> tuple[str, ...]:  # type: ignore[override]
        """Every function of the module."""
        return tuple(self.order)

    def read(self, *, check: bool = True) -> IRModule:
        """The module; `check` says whether what is certainly wrong with it is an error."""
        self._bases()
        for statement in self.tree.body:
            if not self._attempt(lambda statement=statement: self._statement(statement)):
                self._leave_out(statement)
        for wanted, read in (("T.prim_func", self._prim_func), ("R.function", self._graph_function)):
            for name, (_, kind, _) in self.definitions.items():
                if kind == wanted and name not in self.unread:
                    self._attempt(lambda name=name, read=read: read(name))
        if self.unit.findings:
            raise Consequence("a function could not be read")
        functions = {name: dict.__getitem__(self.functions, name) for name in self.order}
        if check:
            checked = [name for name, (*_, options) in self.definitions.items() if options["check_well_formed"]]
            _check(self.unit, functions, checked)
            for name in checked:
                self._check_symbol_name(name, functions[name])
        return IRModule(FrozenMap(functions), self.attrs, self.infos, self.tree.name, self.unit.name_span(self.tree))

    def _attempt(self, read: Callable[[], object]) -> bool:
        """Whether reading a member went well; where errors are gathered one that did not is noted."""
        try:
            read()
        except WeftError as error:
            if not self.unit.note(error):
                raise
            return False
        return True

    def _leave_out(self, tree: ast.stmt) -> None:
        """A member that cannot be read: its name is one of the module, and what uses it is a consequence."""
        targets = tree.targets if isinstance(tree, ast.Assign) else [tree]
        for name in (getattr(target, "id", getattr(target, "name", None)) for target in targets):
            if name is not None and name not in self.order:
                self.order.append(name)
                self.unread.add(name)

    def _check_symbol_name(self, name: str, function: BaseFunc) -> None:
        """W434: a graph function of a module is called by its name."""
        stated = function.attrs.get("global_symbol", name) if isinstance(function, Function) else name
        if stated != name:
            tree = self.definitions[name][0]
            values = [statement.value for statement in tree.body if isinstance(statement, ast.Expr)]
            place = next((value for value in values if "global_symbol" in ast.unparse(value)), tree)
            message = f"the function {name} has the global_symbol {stated!r}"
            raise fail("W434", message, self.unit.span(place), "leave out the attribute, or rename the function")

    def _statement(self, tree: ast.stmt) -> None:
        if isinstance(tree, ast.FunctionDef):
            self._define(tree)
        elif isinstance(tree, ast.Assign) and len(tree.targets) == 1 and isinstance(tree.targets[0], ast.Name):
            self._assign(tree.targets[0], tree.value, tree)
        elif isinstance(tree, ast.Expr) and isinstance(tree.value, ast.Call):
            self._directive(tree.value)
        elif not _is_harmless(tree):
            raise self.reader.fail("W104", "a module holds functions, extern functions and I.module_attrs", tree)

    def _define(self, tree: ast.FunctionDef) -> None:
        macro = macro_of(self.reader, tree)
        if macro is not None:
            self.macros[tree.name] = replace(macro, scope=None)
            return
        if self._python_member(tree):
            return
        kind, options = definition_options(self.reader, tree)
        name = tree.name if options["name"] is None else options["name"]
        if name in self.order:
            raise fail("W118", f"the module has two functions named '{name}'", self.unit.name_span(tree))
        if kind in ("I.ir_module", "R.rewriter"):
            raise fail("W104", f"@{kind} on a function", self.unit.name_span(tree))
        self.definitions[name] = (tree, kind, options)
        self.order.append(name)

    def _python_member(self, tree: ast.FunctionDef) -> bool:
        """Take over an `@I.pyfunc` function: its text, and itself where the class stands in a running program."""
        names = [
            self.reader.dotted(decorator.func if isinstance(decorator, ast.Call) else decorator)
            for decorator in tree.decorator_list
        ]
        if "I.pyfunc" not in names:
            return False
        place = tree.decorator_list[names.index("I.pyfunc")]
        if isinstance(place, ast.Call):
            raise self.reader.fail("W113", "I.pyfunc takes no options", place, "write `@I.pyfunc`")
        if place is not tree.decorator_list[0]:
            raise self.reader.fail("W115", "a decorator above @I.pyfunc", tree.decorator_list[0], "write it below")
        if tree.name in self.order:
            raise fail("W118", f"the module has two functions named '{tree.name}'", self.unit.name_span(tree))
        self.order.append(tree.name)
        self.functions[tree.name] = PythonFunc(
            tree.name, span=self.unit.name_span(tree), source=member_source(self.unit, tree),
            function=self.unit.members.get(tree.name),
        )  # fmt: skip
        return True

    def _bases(self) -> None:
        """`class M(BasePyModule)` says of itself that it has Python functions; other bases have no meaning."""
        for base in self.tree.bases:
            name = base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")
            if name != "BasePyModule":
                raise self.reader.fail("W115", "a module has no base class", base, "its functions stand in its body")
            self.attrs = FrozenMap({**self.attrs, "base_py_module": True})
        for keyword in self.tree.keywords:
            raise self.reader.fail("W115", "the class of a module takes no arguments", keyword)

    def _assign(self, target: ast.Name, tree: ast.expr, statement: ast.stmt) -> None:
        if declare(self.reader, statement, strict=False):
            return
        if isinstance(tree, ast.Call) and (self.reader.dotted(tree.func) or "").startswith("R."):
            graph = GraphReader(self.unit, self, self.functions)
            value: Any = graph.value(tree)
        else:
            value = self.reader.value(tree)
        if not isinstance(value, (Function, PrimFunc, ExternFunc)):
            raise self.reader.fail("W114", f"a module holds functions; '{target.id}' is {describe(value)}", statement)
        if target.id in self.order:
            raise self.reader.fail("W118", f"the module has two functions named '{target.id}'", target)
        self.order.append(target.id)
        self.functions[target.id] = value

    def _directive(self, tree: ast.Call) -> None:
        name = self.reader.dotted(tree.func)
        if name == "I.module_attrs":
            attrs = _ModuleReader(self.unit, self).bind(ALL_FORMS[name], tree)["attrs"]
            if not isinstance(attrs, FrozenMap):
                raise self.reader.fail("W114", "I.module_attrs takes a dictionary", tree)
            self.attrs = self.reader.joined(self.attrs, attrs, "module", tree)
        elif name == "I.module_global_infos":
            infos = _ModuleReader(self.unit, self).bind(ALL_FORMS[name], tree)["infos"]
            if not isinstance(infos, FrozenMap):
                raise self.reader.fail("W114", "I.module_global_infos takes a dictionary", tree)
            for key, value in infos.items():
                if not isinstance(value, tuple):
                    raise self.reader.fail("W114", f"the infos {key!r} are a list, got {describe(value)}", tree)
            self.infos = self.reader.joined(self.infos, infos, "module", tree)
        else:
            hint = did_you_mean(name or "", ("I.module_attrs", "I.module_global_infos"))
            raise self.reader.fail(
                "W104", "only I.module_attrs and I.module_global_infos can be called in a module", tree, hint
            )

    # -- functions -----------------------------------------------------------------------------------------------------

    def _prim_func(self, name: str) -> None:
        tree, _, options = self.definitions[name]
        with self._whole(name):
            self.functions[name] = _tensor_function(self.unit, self, tree, options, name)

    def _graph_reader(self, name: str) -> GraphReader:
        """The reader of a graph function, its signature read."""
        found = self.readers.get(name)
        if found is None:
            tree, _, options = self.definitions[name]
            found = GraphReader(self.unit, self, self.functions)
            found.signature(tree)
            found.pure = options["pure"]
            self.readers[name] = found
        return found

    def _graph_function(self, name: str) -> BaseFunc:
        found = dict.get(self.functions, name)
        if found is None:
            tree, _, options = self.definitions[name]
            self.reading.add(name)
            with self._whole(name):
                reader = self._graph_reader(name)
                reader.check_defaults()
                found = reader.function(tree, pure=options["pure"], private=options["private"], name=name)
            self.reading.discard(name)
            self.functions[name] = found
        return found

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
        known = self.readers.get(name)
        if name in self.unread and (known is None or known.ret_type is None):
            raise Consequence(f"the function '{name}' could not be read")
        if name not in self.definitions:
            return default
        tree, kind, _ = self.definitions[name]
        if kind == "T.prim_func":
            self._prim_func(name)
            return dict.__getitem__(self.functions, name)
        reader = self._graph_reader(name)
        if reader.ret_type is not None:
            return reader.func_type()
        if name in self.reading:
            raise fail(
                "W122", f"'{name}' calls itself, so its result type must be written", self.unit.name_span(tree),
                hint=f"def {tree.name}(...) -> R.Tensor(...):",
            )  # fmt: skip
        return self._graph_function(name)

    def parameters_of(self, name: str) -> Mapping[str, Any] | None:
        """The parameters of a graph function of this text."""
        if name not in self.definitions or self.definitions[name][1] != "R.function":
            return None
        return {argument.arg: default for argument, default in self._graph_reader(name).defaults.items()}

    def return_dtype(self, name: str) -> str:
        """The dtype that a tensor-level function returns, from its signature alone."""
        if name not in self.definitions or self.definitions[name][1] != "T.prim_func":
            found = dict.get(self.functions, name)
            ty = found.ret_type if isinstance(found, PrimFunc) else None
        else:
            returns = self.definitions[name][0].returns
            ty = TensorReader(self.unit, self).read_type(returns) if returns is not None else None
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
        base = function.name or "captured"
        name = base
        count = 1
        while name in self.order:
            name = f"{base}_{count}"
            count += 1
        self.order.append(name)
        self.functions[name] = function
        self.adopted[id(function)] = name
        if shared:
            self.shared.setdefault(key, []).append(name)
        return name


class _ModuleReader(Reader):
    """Reads attributes and global infos, where types, devices and literals may stand."""

    def call_named(self, name: str, tree: ast.Call) -> Any:
        """Global infos, beside what every reader knows."""
        if name == "I.dummy_global_info":
            return DummyGlobalInfo(span=self.span(tree))
        if (name.startswith(("R.", "T.")) and name not in ALL_FORMS) or name in (
            "R.const",
            "R.prim_value",
            "R.shape",
            "R.str",
        ):
            return GraphReader(self.unit, self.module, {}).value(tree)
        return super().call_named(name, tree)
