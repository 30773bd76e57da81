"""Reading what Python would run before there is a program: macros, lambdas, comprehensions, static loops, and the calls
of Python functions that a decorated script may capture.

Everything here happens on values that are known while reading (`is_plain`, and tuples and lists of anything). The text
reader runs nothing: only a decorator, whose text stands in a running program, may call that program's functions.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from weft.errors import WeftError
from weft.ir.dim import DimExpr
from weft.ir.graph import Expr, Function
from weft.ir.node import FrozenMap, Node
from weft.ir.op import OpDef
from weft.ir.tensor import PrimFunc
from weft.script.reader.call import CallReader
from weft.script.reader.macros import MACRO_OPTIONS, Macro
from weft.script.reader.scope import Called, ModuleScope, Scope, describe, is_plain
from weft.script.source.budget import measure
from weft.script.source.diagnostics import did_you_mean, fail
from weft.script.source.text import MISSING, Unit

__all__ = ["StaticReader", "macro_of"]

_LISTS = {"list": list, "tuple": tuple, "reversed": lambda values: list(reversed(values)), "enumerate": enumerate}
_PLAIN: dict[str, Callable[..., Any]] = {
    "any": any, "all": all, "sorted": sorted, "str": str, "divmod": divmod, "dict": dict,
}  # fmt: skip
_METHODS_OF_DICTS = ("get", "items", "keys", "values")


class StaticReader(CallReader):
    """Reads what is known while reading."""

    level: ClassVar[str] = ""
    expanding: int = 0  # macros around this place

    if TYPE_CHECKING:

        def expand_body(self, macro: Macro, tree: ast.Call) -> Any:
            """What the body of a macro gives at this level; its names are bound already."""
            ...

        def statement_list(self, trees: Sequence[ast.stmt]) -> list[Any]:
            """Statements of a block, at this level."""
            ...

    # -- calls ---------------------------------------------------------------------------------------------------------

    def call_static(self, tree: ast.Call) -> Any:
        """A call of a macro, a lambda, or (in decorated scripts) of a Python function; MISSING for any other."""
        found = self._lambda(tree.func) if isinstance(tree.func, ast.Lambda) else self.static_path(tree.func)
        if isinstance(found, Macro):
            return self.expand(found, tree)
        if isinstance(tree.func, ast.Attribute):
            made = self._method_of_container(tree.func, tree)
            if made is not MISSING:
                return made
        if isinstance(found, Called):
            return self.call_named(found.name, tree)
        if found is MISSING or self.unit.captured is None or isinstance(found, (Node, ModuleScope)):
            return MISSING
        if hasattr(found, "__weft_dtype__"):
            return self.call_named(f"T.{found.__weft_dtype__}", tree)
        if isinstance(found, OpDef):
            return self.call_named(f"R.{found.name}", tree)
        name = getattr(found, "__weft_name__", None)
        if isinstance(name, str):
            return self.call_named(name, tree)
        if callable(found) and not hasattr(found, "functions"):
            return self._call_python(found, tree)
        return MISSING

    def static_path(self, tree: ast.expr) -> Any:
        """What a path of names stands for when its root is no IR value: a macro, a captured object; or MISSING."""
        if isinstance(tree, ast.Name):
            found = self.scope.get(tree.id)
            if found is not MISSING or tree.id in self.symbols:
                return found
            return self.unit.capture(tree.id)
        if isinstance(tree, ast.Attribute):
            macro = self._macro_of_module(tree)
            if macro is not None:
                return macro
            if self.unit.captured is None or tree.attr.startswith("_"):
                return MISSING
            base = self.static_path(tree.value)
            if base is MISSING or isinstance(base, (Node, DimExpr, ModuleScope)) or is_plain(base):
                return MISSING
            return getattr(base, tree.attr, MISSING)
        if isinstance(tree, ast.Subscript):
            base = self.static_path(tree.value)
            if isinstance(base, (tuple, list, dict)):
                key = self.slice_of(tree.slice)
                return self.fold(lambda: base[key], tree)
        return MISSING

    def _macro_of_module(self, tree: ast.Attribute) -> Macro | None:
        """The macro that `cls.f` or `Module.f` names."""
        if isinstance(tree.value, ast.Name):
            bound = self.scope.get(tree.value.id)
            if bound is self.module or (bound is MISSING and tree.value.id in ("cls", self.module.name)):
                return self.module.macros.get(tree.attr)
        return None

    def _call_python(self, function: Callable[..., Any], tree: ast.Call) -> Any:
        """The result of a Python function of the program that the script stands in."""
        args, keywords = self.static_arguments(tree)
        name = ast.unparse(tree.func)[:60]
        try:
            return self.adapted(self.run_python(lambda: function(*args, **keywords), name, tree), name, tree)
        except WeftError as error:
            if error.code == "W153" and error.hint is None and any(isinstance(a, (Node, DimExpr)) for a in args):
                error.hint = self.instead_of(name.rpartition(".")[2])
            raise

    def instead_of(self, name: str) -> str | None:
        """A hint for a Python function that was called on values of the script: what has its name here."""
        return None

    def run_python(self, compute: Callable[[], Any], name: str, tree: ast.AST) -> Any:
        """What a computation of the user's program gives; its failures are errors at the tree (W153)."""
        try:
            return compute()
        except WeftError as error:
            error.notes = (*error.notes, f"while reading calls `{name}`")
            raise error.at(self.span(tree)) from None
        except Exception as error:
            raise self.fail("W153", f"`{name}` raised {type(error).__name__}: {error}", tree) from error

    def static_arguments(self, tree: ast.Call) -> tuple[list[Any], dict[str, Any]]:
        """The values of a call's arguments; each is computed once, however often it is used."""
        args = [self.settled(self.value(argument), argument) for argument in self._spread(tree)]
        keywords: dict[str, Any] = {}
        for keyword in tree.keywords:
            value = self.settled(self.value(keyword.value), keyword.value)
            if keyword.arg is not None:
                keywords[keyword.arg] = value
            elif isinstance(value, (dict, FrozenMap)) and all(isinstance(key, str) for key in value):
                keywords.update(value)
            else:
                raise self.fail("W115", "only dictionaries known while reading can be spread with **", keyword.value)
        return args, keywords

    def settled(self, value: Any, tree: ast.expr) -> Any:
        """A value that may be used more than once."""
        return value

    def _method_of_container(self, func: ast.Attribute, tree: ast.Call) -> Any:
        """`parts.append(x)` of a list of this block, `sizes.items()` of a dictionary."""
        if not isinstance(func.value, ast.Name):
            return MISSING
        base = self.scope.get(func.value.id)
        if isinstance(base, list) and func.attr in ("append", "extend"):
            return self._grow(base, func, tree)
        if base is MISSING:
            base = self.unit.capture(func.value.id)
        if isinstance(base, (dict, FrozenMap)) and func.attr in _METHODS_OF_DICTS:
            args, _ = self.static_arguments(tree)
            made = self.fold(lambda: getattr(base, func.attr)(*args), tree)
            return made if func.attr == "get" else list(made)
        return MISSING

    def _grow(self, base: list[Any], func: ast.Attribute, tree: ast.Call) -> None:
        """Add to a list. Only in the block that made it: what runs later, or not at all, cannot change it now."""
        assert isinstance(func.value, ast.Name)
        if self.scope.names.get(func.value.id) is not base:
            raise self.fail(
                "W115", f"the list '{func.value.id}' belongs to an outer block", tree, "build it where it is made"
            )
        args, keywords = self.static_arguments(tree)
        if len(args) != 1 or keywords:
            raise self.fail("W113", f"{func.attr} takes 1 argument, got {len(args) + len(keywords)}", tree)
        self.unit.step(tree)
        base.extend(args if func.attr == "append" else self.iterable(args[0], tree.args[0]))

    # -- macros --------------------------------------------------------------------------------------------------------

    def expand(
        self, macro: Macro, tree: ast.Call, read: Callable[[Macro, ast.Call], Any] | None = None
    ) -> Any:
        """What a macro gives here: its body read with its parameters bound to the arguments."""
        if macro.level not in ("", self.level):
            hint = f"a macro for this place is decorated with @{self.level}.macro"
            raise self.fail("W115", f"'{macro.name}' is a macro of the other level", tree.func, hint)
        self.unit.step(tree)
        args, keywords = self.static_arguments(tree)
        caller, scope = self.unit, self.scope
        unit = macro.unit_for(caller)
        parent = macro.scope if macro.hygienic else scope
        if self.expanding >= self.unit.limits.nesting:
            raise self.fail("W103", f"macros nest deeper than {self.unit.limits.nesting}", tree, "Limits(nesting=...)")
        bound = self._bind_macro(macro, unit, [*macro.receiver, *args], keywords, tree)
        place = self.span(tree)
        self.unit, self.scope = unit, Scope(parent)
        self.scope.names.update(bound)
        self.expanding += 1
        try:
            return (read or self.expand_body)(macro, tree)
        except WeftError as error:
            note = f"in the macro '{macro.name}' called at {place.filename}:{place.line}:{place.column}"
            if macro.level and error.code != "W103":
                error.notes = (*error.notes, note)
            raise
        finally:
            self.expanding -= 1
            self.unit, self.scope = caller, scope

    def expand_body(self, macro: Macro, tree: ast.Call) -> Any:
        """The value of a macro outside functions: that of an expression; W115 for one with statements."""
        if isinstance(macro.body, ast.expr):
            return self.value(macro.body)
        raise self.fail("W115", f"the macro '{macro.name}' has statements, which cannot stand here", tree)

    def _bind_macro(
        self, macro: Macro, unit: Unit, args: list[Any], keywords: dict[str, Any], tree: ast.Call
    ) -> dict[str, Any]:
        """Parameters to values, as Python binds them."""
        arguments = macro.arguments
        positional = [*arguments.posonlyargs, *arguments.args]
        names = [argument.arg for argument in (*positional, *arguments.kwonlyargs)]
        bound = {argument.arg: value for argument, value in zip(positional, args, strict=False)}
        if arguments.vararg is not None:
            bound[arguments.vararg.arg] = tuple(args[len(positional) :])
        elif len(args) > len(positional):
            many = "s" if len(positional) != 1 else ""
            raise self.fail("W113", f"'{macro.name}' takes {len(positional)} argument{many}, got {len(args)}", tree)
        rest: dict[str, Any] = {}
        for name, value in keywords.items():
            if name in bound:
                raise self.fail("W113", f"'{macro.name}' got '{name}' twice", tree)
            if name not in names and arguments.kwarg is None:
                raise self.fail("W113", f"'{macro.name}' has no argument '{name}'", tree, did_you_mean(name, names))
            (bound if name in names else rest)[name] = value
        if arguments.kwarg is not None:
            bound[arguments.kwarg.arg] = rest
        self._bind_defaults(macro, unit, bound)
        for name in names:
            if name not in bound:
                raise self.fail("W113", f"'{macro.name}' lacks its argument '{name}'", tree)
        return bound

    def _bind_defaults(self, macro: Macro, unit: Unit, bound: dict[str, Any]) -> None:
        """Defaults are read where the macro is defined."""
        arguments = macro.arguments
        positional = [*arguments.posonlyargs, *arguments.args]
        defaulted = positional[len(positional) - len(arguments.defaults) :]
        pairs: list[tuple[ast.arg, ast.expr | None]] = [
            *zip(defaulted, arguments.defaults, strict=True),
            *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
        ]
        saved = self.unit, self.scope
        self.unit, self.scope = unit, Scope(macro.scope)
        try:
            for argument, default in pairs:
                if argument.arg not in bound and default is not None:
                    bound[argument.arg] = self.value(default)
        finally:
            self.unit, self.scope = saved

    def _lambda(self, tree: ast.Lambda) -> Macro:
        return Macro("lambda", tree.args, tree.body, self.unit, scope=self.scope)

    # -- parameters ----------------------------------------------------------------------------------------------------

    def parameters(self, arguments: ast.arguments) -> dict[ast.arg, ast.expr | None]:
        """The parameters that a caller passes, with their defaults.

        One with a default and no type is a constant of the body, as in Python's `def f(x, size=SIZE)`. W115 for
        parameters that cannot be compiled, W118 for two of one name.
        """
        for extra in (arguments.vararg, arguments.kwarg):
            if extra is not None:
                raise self.fail("W115", f"parameter '{extra.arg}': only plain parameters can be compiled", extra)
        positional = [*arguments.posonlyargs, *arguments.args]
        first = len(positional) - len(arguments.defaults)
        pairs = [
            *((argument, None) for argument in positional[:first]),
            *zip(positional[first:], arguments.defaults, strict=True),
            *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
        ]
        passed: dict[ast.arg, ast.expr | None] = {}
        seen: set[str] = set()
        for argument, default in pairs:
            if argument.arg in seen:
                raise self.fail("W118", f"two parameters are named '{argument.arg}'", argument)
            seen.add(argument.arg)
            if argument.annotation is not None or default is None:
                if argument in arguments.kwonlyargs:
                    raise self.fail(
                        "W115", f"parameter '{argument.arg}': only plain parameters can be compiled", argument
                    )
                passed[argument] = default
                continue
            value = self.value(default)
            if isinstance(value, Expr) and not isinstance(value, (PrimFunc, Function)):
                raise self.fail(
                    "W115", f"the default of '{argument.arg}' is not known while reading", default,
                    "give the parameter a type, or bind it in the body",
                )  # fmt: skip
            self.scope.names[argument.arg] = value
        return passed

    # -- loops and comprehensions --------------------------------------------------------------------------------------

    def iterable(self, value: Any, tree: ast.expr) -> Sequence[Any]:
        """The items of a value that is known while reading; W115 for any other."""
        if isinstance(value, (dict, FrozenMap)):
            value = list(value)
        if hasattr(value, "tolist") and self.unit.captured is not None and not isinstance(value, Node):
            value = value.tolist()
        if not isinstance(value, (tuple, list, range, str)):
            raise self.fail("W115", f"{describe(value)} cannot be looped over while reading", tree, self.loop_hint)
        self.check_rounds(value, self.unit.limits.unrolled, tree)
        return value

    loop_hint = "loop over range(3), a tuple or a list"

    def set_target(self, target: ast.expr, value: Any) -> None:
        """Bind the target of a static loop; tuples are unpacked, a starred target takes the rest."""
        if isinstance(target, ast.Name):
            self.scope.names[target.id] = value
            return
        if not isinstance(target, (ast.Tuple, ast.List)):
            raise self.fail("W115", "only names can be bound by a static loop", target)
        for item, part in self.unpacked(target, self.iterable(value, target), target):
            self.set_target(item, part)

    def unpacked(
        self, target: ast.Tuple | ast.List, values: Sequence[Any], tree: ast.AST
    ) -> list[tuple[ast.expr, Any]]:
        """Targets with their parts; W113 when the numbers do not fit."""
        stars = [index for index, item in enumerate(target.elts) if isinstance(item, ast.Starred)]
        least = len(target.elts) - len(stars)
        self.check_rounds(values, self.unit.limits.parts, tree)
        if len(values) < least or (not stars and len(values) != least):
            expected = f"at least {least}" if stars else str(least)
            raise self.fail("W113", f"{len(values)} values cannot be unpacked into {expected} names", tree)
        if not stars:
            return list(zip(target.elts, values, strict=True))
        first = stars[0]
        after = len(target.elts) - first - 1
        starred = target.elts[first]
        assert isinstance(starred, ast.Starred)
        return [
            *zip(target.elts[:first], values[:first], strict=True),
            (starred.value, list(values[first : len(values) - after])),
            *zip(target.elts[first + 1 :], values[len(values) - after :], strict=True),
        ]

    def _comprehension(self, tree: ast.ListComp | ast.GeneratorExp) -> list[Any]:
        return [self.settled(self.value(tree.elt), tree.elt) for _ in self._rounds(tree.generators, tree)]

    def _dict_comprehension(self, tree: ast.DictComp) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        for _ in self._rounds(tree.generators, tree):
            key = self.value(tree.key)
            if not isinstance(key, (str, int)):
                raise self.fail("W114", f"a key must be a string or an integer, got {describe(key)}", tree.key)
            made[key] = self.settled(self.value(tree.value), tree.value)
        return made

    def _rounds(self, generators: list[ast.comprehension], tree: ast.AST) -> Iterator[None]:
        """Once per round of a comprehension, its names bound."""
        first, *rest = generators
        if first.is_async:
            raise self.fail("W115", "an asynchronous comprehension is not part of the script", tree)
        values = self.iterable(self.value(first.iter), first.iter)
        saved, self.scope = self.scope, Scope(self.scope)
        try:
            for item in values:
                self.unit.step(tree)
                self.set_target(first.target, item)
                if all(self.static_condition(test) for test in first.ifs):
                    if rest:
                        yield from self._rounds(rest, tree)
                    else:
                        yield
        finally:
            self.scope = saved

    def static_condition(self, tree: ast.expr) -> bool:
        """A condition that is known while reading; W115 for any other."""
        value = self.value(tree)
        if not self.known(value, tree):
            raise self.fail("W115", "the condition is not known while reading", tree)
        return bool(value)

    def static_for(self, tree: ast.For, values: Sequence[Any]) -> list[Any]:
        """The statements of an unrolled loop; `break` and `continue` are decided while reading."""
        made: list[Any] = []
        for item in values:
            self.unit.step(tree)
            self.set_target(tree.target, item)
            if self._static_body(tree.body, made) == "break":
                return made
        if tree.orelse:
            made.extend(self.statement_list(tree.orelse))
        return made

    def _static_body(self, trees: Sequence[ast.stmt], made: list[Any]) -> str:
        """Read one round; gives "break" or "continue" where the round says so, else ""."""
        run: list[ast.stmt] = []
        for tree in trees:
            self.unit.step(tree)
            leaves = isinstance(tree, (ast.Break, ast.Continue))
            if not leaves and not (isinstance(tree, ast.If) and _leaves_loop(tree)):
                run.append(tree)
                continue
            made.extend(self.statement_list(run))
            run = []
            if leaves:
                return "break" if isinstance(tree, ast.Break) else "continue"
            assert isinstance(tree, ast.If)
            signal = self._static_body(tree.body if self.static_condition(tree.test) else tree.orelse, made)
            if signal:
                return signal
        made.extend(self.statement_list(run))
        return ""

    # -- functions that Python has built in ----------------------------------------------------------------------------

    def call_builtin(self, name: str, tree: ast.Call) -> Any:
        """Functions of Python on what is known while reading."""
        if name == "range":
            return self._range(tree)
        if name == "zip":
            columns = [self.iterable(self.value(argument), argument) for argument in self._spread(tree)]
            strict = any(keyword.arg == "strict" and self.constant(keyword.value) for keyword in tree.keywords)
            return self.fold(lambda: [tuple(row) for row in zip(*columns, strict=strict)], tree)
        if name in _LISTS:
            return self._list_function(name, tree)
        if name == "sum" and tree.args:
            return self._sum(tree)
        if name in _PLAIN:
            args, keywords = self.static_arguments(tree)
            if not self.known(args, tree) or not self.known(list(keywords.values()), tree):
                raise self.fail("W115", f"`{name}` takes only what is known while reading", tree)
            for value in args:
                if isinstance(value, range):
                    self.check_rounds(value, self.unit.limits.unrolled, tree)
            if name == "sorted":
                self._charge_sorting(args, tree)
            return self.fold_known(partial(_PLAIN[name], **keywords), tuple(args), tree)
        return super().call_builtin(name, tree)

    def _charge_sorting(self, args: list[Any], tree: ast.AST) -> None:
        """Each of n elements is compared log(n) times."""
        units = measure(args, self.unit.budget.left, deep=True).units
        self.unit.charge(units * units.bit_length(), tree)

    def _range(self, tree: ast.Call) -> range:
        values = [self.value(argument) for argument in self._spread(tree)]
        if tree.keywords or not all(isinstance(item, int) and not isinstance(item, bool) for item in values):
            raise self.fail("W115", "the bounds of a static loop are integers known while reading", tree)
        return self.fold(lambda: range(*map(int, values)), tree)

    def _list_function(self, name: str, tree: ast.Call) -> Any:
        args, keywords = self.static_arguments(tree)
        items = list(self.iterable(args[0], tree.args[0])) if args else []
        rest = args[1:]
        made = self.fold(lambda: _LISTS[name](items, *rest, **keywords), tree)
        return list(made) if name == "enumerate" else made

    def _sum(self, tree: ast.Call) -> Any:
        args, _ = self.static_arguments(tree)
        items = self.iterable(args[0], tree.args[0])
        total: Any = args[1] if len(args) > 1 else MISSING
        for item in items:
            total = item if total is MISSING else self.binary("add", total, item, tree)
        return 0 if total is MISSING else total


def macro_of(reader: StaticReader, tree: ast.FunctionDef) -> Macro | None:
    """The macro that a definition makes, or None for a definition that is no macro; W113 for a wrong option."""
    for decorator in tree.decorator_list:
        call = decorator if isinstance(decorator, ast.Call) else None
        name = reader.dotted(call.func if call else decorator)
        if name not in MACRO_OPTIONS:
            continue
        options = dict(MACRO_OPTIONS[name])
        for keyword in call.keywords if call else []:
            if keyword.arg not in options:
                hint = did_you_mean(keyword.arg or "", options) or f"it takes: {', '.join(options) or 'nothing'}"
                raise reader.fail("W113", f"{name} has no option '{keyword.arg}'", keyword, hint)
            options[keyword.arg] = reader.constant(keyword.value)
        if call and call.args:
            raise reader.fail("W113", f"{name} takes keyword options only", call.args[0])
        others = [other for other in tree.decorator_list if other is not decorator]
        if others:
            raise fail("W115", "a macro has one decorator", reader.span(others[0]))
        hygienic = bool(options.get("hygienic", True))
        return Macro(tree.name, tree.args, tree.body, reader.unit, name[0], hygienic, reader.scope)
    return None


def _leaves_loop(tree: ast.If) -> bool:
    """Whether a branch of an `if` ends the round of the loop around it."""
    for statement in (*tree.body, *tree.orelse):
        if isinstance(statement, (ast.Break, ast.Continue)):
            return True
        if isinstance(statement, ast.If) and _leaves_loop(statement):
            return True
    return False

