"""Reading `@R.function`: signatures, bodies, what a function returns.

Every variable gets its type here: the deduced one, or the annotation, which is checked as a claim. Names known while
reading (sizes, numbers, tuples of them, captured values) bind no variable.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from weft.errors import Span
from weft.ir.deduction.infer import VOID, check_claim, func_type, signature_type, type_text
from weft.ir.deduction.subtyping import is_base_of
from weft.ir.graph import (
    Expr,
    Function,
    If,
    SeqExpr,
    Tuple,
    Var,
    VarBinding,
)
from weft.ir.node import EMPTY, FrozenMap
from weft.ir.structure.structural import structural_equal
from weft.ir.types import AnyType, FuncType, TensorType, TupleType, Type
from weft.ir.verify import valueless_symbols
from weft.script.forms.syntax import ALL_FORMS
from weft.script.reader.base import (
    ModuleScope,
    Scope,
    definition_options,
    describe,
    macro_of,
)
from weft.script.reader.graph.region import RegionReader
from weft.script.reader.graph.value import LEAVES, Blocks, ValueReader
from weft.script.reader.macros import Macro
from weft.script.reader.recovery import attempt
from weft.script.source.diagnostics import Consequence, did_you_mean, fail
from weft.script.source.text import Unit

__all__ = ["GraphReader"]

_TYPED = 'write `x: R.Tensor((2, 3), "float32")`'


class GraphReader(RegionReader):
    """Reads one graph function (and the functions nested in it)."""

    level = "R"

    def __init__(self, unit: Unit, module: ModuleScope, functions: Mapping[str, Any]) -> None:
        super().__init__(unit, module, functions)
        self.attrs: FrozenMap = EMPTY
        self.params: tuple[Var, ...] = ()
        self.defaults: dict[ast.arg, ast.expr | None] = {}  # the parameters, with what callers may leave out
        self.ret_type: Type | None = None
        self.ret_tree: ast.expr | None = None
        self.pure = True
        self.branches = 0  # around the current place, of an if that returns
        self.raw_return = False  # whether `return` gives a value as it is (of a macro), not a leaf
        self.return_span: Span | None = None
        self.result_symbols: set[str] = set()  # named by the result type and by no parameter

    def signature(self, tree: ast.FunctionDef) -> None:
        """Read parameters and result type."""
        params: list[Var] = []
        self.defaults = self.parameters(tree.args)
        self.defining = True
        self.negative_dims = False
        self.scopes_function_types = False  # texts of version 1 name the symbols of these function types in the body
        for argument in self.defaults:
            var = attempt(self, argument, lambda argument=argument: self._parameter(argument))
            if var is not None:
                self.scope.names[argument.arg] = var
                params.append(var)
        self.params = tuple(params)
        self.scopes_function_types = True
        known = set(self.symbols)
        if tree.returns is not None:
            self.ret_type = self.read_type(tree.returns)
            self.ret_tree = tree.returns
        self.result_symbols = self.symbols - known - self.unit.symbols.keys()
        self.symbols -= self.result_symbols
        self.defining = False
        self.negative_dims = True

    def _parameter(self, argument: ast.arg) -> Var:
        if argument.annotation is None:
            hint = "functions of a module have no `self`" if argument.arg == "self" else _TYPED
            raise self.fail("W113", f"parameter '{argument.arg}' has no type", argument, hint)
        return Var(argument.arg, self.read_type(argument.annotation), span=self.span(argument))

    def check_defaults(self) -> None:
        """Read what callers may leave out, as a call would: wrong ones are errors whether or not a call needs them."""
        for argument, default in self.defaults.items():
            if default is None:
                continue
            param = self.scope.get(argument.arg)
            probe = GraphReader(self.unit, self.module, self.context.functions)
            found = probe.infer(probe.default_value(probe.value(default), param.ty, default), default)
            what = f"default of '{argument.arg}'"
            check_claim(param.ty, found, probe.context, what, self.span(default), at_run_time=True)

    def refuse_defaults(self) -> None:
        """W115: only calls inside a module may leave arguments out; elsewhere a default would be lost."""
        for argument, default in self.defaults.items():
            if default is not None:
                message = f"no call can leave out '{argument.arg}': defaults are for the functions of a module"
                hint = "leave out the default, or the type to make it a constant of the body"
                raise self.fail("W115", message, default, hint)

    def func_type(self) -> FuncType:
        """The signature as a type."""
        if len(self.params) != len(self.defaults):
            raise Consequence("a parameter could not be read")
        assert self.ret_type is not None
        return signature_type(self.params, self.ret_type, self.pure)

    def function(self, tree: ast.FunctionDef, *, pure: bool, private: bool, name: str | None = None) -> Function:
        """The function, its signature having been read."""
        self.pure, self.private = pure, private
        self.scope = Scope(self.scope)
        found = self.unit.noted
        with self.context.scope():
            body = self.sequence(tree.body, tree)
            ret_type = self._result_type(body, tree)
        if self.unit.noted > found or len(self.params) < len(self.defaults):
            raise Consequence("a statement could not be read")
        made = Function(
            self.params, body, ret_type, self.pure, private, self.attrs, name or tree.name,
            span=self.unit.name_span(tree),
        )
        self._check_open_symbols(made)
        return made

    def _check_open_symbols(self, function: Function) -> None:
        """W117: a symbol that is declared and used has a value: from a parameter, a match_cast or a result."""
        declared: dict[str, ast.AST | None] = {**dict.fromkeys(self.unit.symbols), **self.open_symbols}
        for finding in valueless_symbols(function, self.context.functions) if declared else ():
            for name, place in declared.items():
                if finding.message.startswith(f"the symbol {name} "):
                    message = f"the symbol '{name}' is declared and never gets a value"
                    span = self.span(place) if place is not None else finding.span or function.span
                    raise fail("W117", message, span, "bind it by a parameter or by R.match_cast")

    def _result_type(self, body: SeqExpr, tree: ast.FunctionDef) -> Type:
        if self.ret_type is None:
            return self.infer(body, tree)
        unbound = self.result_symbols - self.symbols
        if unbound and self.ret_tree is not None:
            name = min(unbound)
            hint = did_you_mean(name, self.symbols) or "bind it by a parameter or by R.match_cast"
            raise self.fail("W117", f"no parameter binds the symbol '{name}' of the result", self.ret_tree, hint)
        place = self.return_span or self.span(tree)
        found, what = self.infer(body.body, tree), f"result of {tree.name}"
        if not check_claim(self.ret_type, found, self.context, what, place, at_run_time=True):
            self.note_assumed(self.ret_type, found, what, self.span(self.ret_tree or tree), place)
        return self.ret_type

    def sequence(self, trees: Sequence[ast.stmt], tree: ast.AST) -> SeqExpr:
        """A function body: statements and a final return."""
        saved, self.blocks = (self.blocks, self.raw_return), Blocks()
        self.raw_return = False
        try:
            result = self._body(trees, tree)
            self.blocks.flush()
            return SeqExpr(tuple(self.blocks.done), result)
        finally:
            self.blocks, self.raw_return = saved

    def _body(self, trees: Sequence[ast.stmt], tree: ast.AST) -> Expr:
        for position, statement in enumerate(trees):
            last = position == len(trees) - 1
            if isinstance(statement, ast.Return):
                if not last:
                    raise self.fail("W120", "statements after the return", trees[position + 1])
                return self.returned(statement)
            if isinstance(statement, ast.If) and _returns(statement):
                return self._if_with_returns(statement, trees[position + 1 :])
            self.statement(statement)
        if isinstance(self.ret_type, TupleType) and not self.ret_type.fields:
            return Tuple((), span=self.span(tree))
        hint = "end it with `return value`"
        if isinstance(tree, ast.FunctionDef):
            raise fail("W120", "the function returns nothing", self.unit.name_span(tree), hint=hint)
        raise self.fail("W120", "the function returns nothing", trees[-1] if trees else tree, hint)

    def returned(self, tree: ast.Return) -> Expr:
        """The leaf that a return gives."""
        if tree.value is not None and self.raw_return:
            return self.value(tree.value)
        self.return_span = self.span(tree.value or tree)
        if tree.value is None:
            return Tuple((), span=self.span(tree))
        result = self.leaf(self.value(tree.value), tree.value)
        if self.ret_type is not None and self.branches:
            self._check_branch_result(result, self.ret_type, tree.value)
        return result

    def _check_branch_result(self, result: Expr, declared: Type, tree: ast.expr) -> None:
        """What one branch returns is never what the function declares: said where it is returned."""
        found = self.infer(result, tree)
        if is_base_of(declared, found, self.context.facts) is False:
            check_claim(declared, found, self.context, "result of a branch", self.span(tree), at_run_time=True)
            raise self.fail("W432", f"a {type_text(found)} is never a {type_text(declared)}", tree)

    def _if_with_returns(self, tree: ast.If, rest: Sequence[ast.stmt]) -> Expr:
        """An if whose branches return: the result of the function is its value."""
        test = self.value(tree.test)
        orelse = [*tree.orelse, *rest] if not _ends_in_return(tree.orelse) else tree.orelse
        body = tree.body if _ends_in_return(tree.body) else [*tree.body, *rest]
        if self.known(test, tree.test):
            return self._body(body if test else orelse, tree)
        condition = self.leaf(test, tree.test)
        if self.dataflow_names is not None:
            raise self.fail("W119", "a dataflow block has no control flow", tree)
        self.branches += 1
        made = If(condition, self._scoped(body, tree), self._scoped(orelse, tree), span=self.span(tree))
        self.branches -= 1
        self._check_condition(condition, tree)
        return self.bind_value(self.fresh(tree, "result"), made, None, tree)

    def _scoped(self, trees: Sequence[ast.stmt], tree: ast.AST) -> SeqExpr:
        saved, self.scope = self.scope, Scope(self.scope)
        try:
            with self.context.scope():
                return self.sequence(trees, tree)
        finally:
            self.scope = saved

    def _pass(self, tree: ast.stmt) -> None:
        return None

    def _expression(self, tree: ast.Expr) -> None:
        call = tree.value
        if isinstance(call, ast.Constant) and isinstance(call.value, str):
            return  # a docstring
        if isinstance(call, ast.Call):
            name = self.dotted(call.func)
            if name == "R.func_attr":
                values = self.bind(ALL_FORMS["R.func_attr"], call)
                if not isinstance(values["attrs"], FrozenMap):
                    raise self.fail("W114", "R.func_attr takes a dictionary", call)
                self._check_private(values["attrs"], call)
                self.attrs = self.joined(self.attrs, values["attrs"], "function", call)
                return
            if name == "R.is_impure":
                self.pure = False
                return
            if name == "R.output":
                raise self.fail("W119", "`R.output` belongs at the end of a `with R.dataflow()`", call)
        value = self.value(call)
        if value is None and isinstance(call, ast.Call):
            return  # what happened while reading, such as adding to a list
        if not isinstance(value, Expr) or isinstance(value, LEAVES):
            raise self.fail("W115", f"a statement of {describe(value)} does nothing", tree)
        ty = self.infer(value, call)
        if ty is not VOID and not structural_equal(ty, VOID) and not isinstance(ty, AnyType):
            raise self.fail("W115", f"the value ({type_text(ty)}) is not used", tree, "bind it to a name: `_ = ...`")
        self._emit(VarBinding(self.make_var("_", ty, tree), value, span=self.span(tree)))

    def _for(self, tree: ast.For) -> None:
        """A loop over a range known while reading is unrolled."""
        self.static_for(tree, self.iterable(self.value(tree.iter), tree.iter))

    def iterable(self, value: Any, tree: ast.expr) -> Sequence[Any]:
        """What a loop can go through: also the fields of a tuple variable."""
        if isinstance(value, Expr):
            value = self.leaf(value, tree)
            ty = self.infer(value, tree)
            if isinstance(ty, TensorType):
                raise self.fail(
                    "W115", "a tensor cannot be looped over while reading", tree,
                    "`for part in R.split(x, 4):` loops over parts; `for i in range(4):` over indices",
                )  # fmt: skip
            return [self.leaf(part, tree) for part in self.parts(value, tree)]
        return super().iterable(value, tree)

    def statement_list(self, trees: Sequence[ast.stmt]) -> list[Any]:
        """Read statements into the current block."""
        for tree in trees:
            self.statement(tree)
        return []

    def expand_body(self, macro: Macro, tree: ast.Call) -> Any:
        """The result of a macro; its bindings go into the current block."""
        if isinstance(macro.body, ast.expr):
            return self.value(macro.body)
        saved = self.place, self.ret_type, self.foreign, self.raw_return
        self.raw_return = True
        self.place = self.place or tree  # what a macro binds is no output of the block around its call
        self.ret_type, self.foreign = None, macro.hygienic and macro.scope is None
        try:
            return self._body(macro.body, macro.body[0])
        finally:
            self.place, self.ret_type, self.foreign, self.raw_return = saved

    def _nested_function(self, tree: ast.FunctionDef) -> None:
        macro = macro_of(self, tree)
        if macro is not None:
            self.scope.names[tree.name] = macro
            return
        kind, options = definition_options(self, tree)
        if kind != "R.function":
            raise self.fail("W115", "a tensor-level function inside a graph function", tree, "define it in the module")
        inner = GraphReader(self.unit, self.module, self.context.functions)
        inner.context = self.context
        inner.symbols = self.symbols
        inner.scope = Scope(self.scope)
        inner.hidden = self.hidden
        inner.signature(tree)
        inner.refuse_defaults()
        inner.pure = options["pure"]
        declared = inner.func_type() if inner.ret_type is not None else None
        if declared is not None:  # a local function may call itself
            var = self.make_var(tree.name, declared, tree)
            inner.scope.parent = Scope(self.scope)
            inner.scope.parent.names[tree.name] = var
        value = inner.function(tree, pure=options["pure"], private=options["private"])
        if declared is None:
            var = self.make_var(tree.name, func_type(value), tree)
        self._emit(VarBinding(var, value, span=self.span(tree)))  # type: ignore[possibly-undefined]
        self.scope.names[tree.name] = var  # type: ignore[possibly-undefined]

    def _assert(self, tree: ast.Assert) -> None:
        test = self.value(tree.test)
        message = self.constant(tree.msg) if tree.msg is not None else None
        if self.known(test, tree.test):
            if not test:
                said = f": {message}" if message is not None else ""
                raise self.fail("W124", f"the assertion is false while reading{said}", tree)
            return
        if self.pure or self.dataflow_names is not None:
            where = "outside of the dataflow block" if self.dataflow_names is not None else "with pure=False"
            raise self.fail(
                "W115", "an assertion about values is an effect", tree, f"it can stand in an R.function {where}"
            )
        keywords = {"format": str(message)} if message is not None else {}
        call = self.operator("assert_op", [test], keywords, tree)
        self._emit(VarBinding(self.make_var("_", self.infer(call, tree), tree), call, span=self.span(tree)))


_G = GraphReader
GraphReader._GRAPH_FORMS = {**ValueReader._GRAPH_FORMS, "R.match_cast": _G._misplaced_cast}
GraphReader._STATEMENTS = {
    ast.Pass: _G._pass,
    ast.Expr: _G._expression,
    ast.Assign: _G._assign,
    ast.AnnAssign: _G._annotated,
    ast.AugAssign: _G._augmented,
    ast.With: _G._with,
    ast.If: _G._if,
    ast.For: _G._for,
    ast.FunctionDef: _G._nested_function,
    ast.Assert: _G._assert,
}


def _ends_in_return(trees: Sequence[ast.stmt]) -> bool:
    return bool(trees) and (
        isinstance(trees[-1], ast.Return) or (isinstance(trees[-1], ast.If) and _returns(trees[-1]))
    )


def _returns(tree: ast.If) -> bool:
    return _ends_in_return(tree.body) or _ends_in_return(tree.orelse)
