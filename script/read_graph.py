"""Reading `@R.function`: signatures, statements, blocks.

Every variable gets its type here: the deduced one, or the annotation, which is checked as a claim. Names known while
reading (sizes, numbers, tuples of them, captured values) bind no variable.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from weft.errors import Span
from weft.ir.graph import (
    BindingBlock,
    DataflowBlock,
    Expr,
    ExternFunc,
    Function,
    GlobalVar,
    If,
    MatchCast,
    SeqExpr,
    Tuple,
    Var,
    VarBinding,
)
from weft.ir.infer import VOID, check_claim, type_text
from weft.ir.node import EMPTY, FrozenMap
from weft.ir.relations import is_base_of, type_symbols
from weft.ir.structural import structural_equal
from weft.ir.tensor import PrimFunc
from weft.ir.types import AnyType, FuncType, PrimType, TensorType, TupleType, Type
from weft.ir.verify import valueless_symbols
from weft.script.diagnostics import did_you_mean, fail
from weft.script.macros import Macro
from weft.script.read_call import KnownValue
from weft.script.read_value import LEAVES, Blocks, ValueReader
from weft.script.reader import (
    ModuleScope,
    Reader,
    Scope,
    definition_options,
    describe,
    is_dim,
    is_plain,
    macro_of,
    parts_of,
)
from weft.script.scope import Hidden
from weft.script.source import MISSING, Unit
from weft.script.syntax import ALL_FORMS, VALUES

__all__ = ["GraphReader"]

_TYPED = 'write `x: R.Tensor((2, 3), "float32")`'
_ELEMENTS = "R.where and R.scatter_elements make a tensor with other elements; a T.prim_func writes them"


class GraphReader(ValueReader):
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
        self.open_symbols: dict[str, ast.AST] = {}  # declared in the body, and nothing has given them a value yet
        self.result_symbols: set[str] = set()  # named by the result type and by no parameter

    def signature(self, tree: ast.FunctionDef) -> None:
        """Read parameters and result type."""
        params: list[Var] = []
        self.defaults = self.parameters(tree.args)
        self.defining = True
        self.negative_dims = False
        for argument in self.defaults:
            if argument.annotation is None:
                raise self.fail(
                    "W113",
                    f"parameter '{argument.arg}' has no type",
                    argument,
                    "functions of a module have no `self`" if argument.arg == "self" else _TYPED,
                )
            var = Var(argument.arg, self.read_type(argument.annotation), span=self.span(argument))
            self.scope.names[argument.arg] = var
            params.append(var)
        self.params = tuple(params)
        known = set(self.symbols)
        if tree.returns is not None:
            self.ret_type = self.read_type(tree.returns)
            self.ret_tree = tree.returns
        self.result_symbols = self.symbols - known - self.unit.symbols.keys()
        self.symbols -= self.result_symbols
        self.defining = False
        self.negative_dims = True

    def func_type(self) -> FuncType:
        """The signature as a type."""
        assert self.ret_type is not None
        return FuncType(tuple(param.ty for param in self.params), self.ret_type, self.pure)

    def function(self, tree: ast.FunctionDef, *, pure: bool, private: bool, name: str | None = None) -> Function:
        """The function, its signature having been read."""
        self.pure, self.private = pure, private
        self.scope = Scope(self.scope)
        with self.context.scope():
            body = self.sequence(tree.body, tree)
            ret_type = self._result_type(body, tree)
        made = Function(
            self.params, body, ret_type, self.pure, private, self.attrs, name or tree.name,
            span=self.unit.name_span(tree),
        )
        self._check_open_symbols(made)
        return made

    def _check_open_symbols(self, function: Function) -> None:
        """W117: a symbol that is declared and used has a value: from a parameter, a match_cast or a result."""
        if not self.open_symbols:
            return
        for finding in valueless_symbols(function, self.context.functions):
            for name, place in self.open_symbols.items():
                if finding.message.startswith(f"the symbol {name} "):
                    hint = "bind it by a parameter or by R.match_cast"
                    raise self.fail("W117", f"the symbol '{name}' is declared and never gets a value", place, hint)

    def _result_type(self, body: SeqExpr, tree: ast.FunctionDef) -> Type:
        if self.ret_type is None:
            return self.infer(body, tree)
        unbound = self.result_symbols - self.symbols
        if unbound and self.ret_tree is not None:
            name = min(unbound)
            hint = did_you_mean(name, self.symbols) or "bind it by a parameter or by R.match_cast"
            raise self.fail("W117", f"no parameter binds the symbol '{name}' of the result", self.ret_tree, hint)
        place = self.return_span or self.span(tree)
        check_claim(
            self.ret_type, self.infer(body.body, tree), self.context, f"result of {tree.name}", place, at_run_time=True
        )
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
        if is_plain(test):
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

    def statement(self, tree: ast.stmt) -> None:
        """Read one statement into the current block."""
        method = self._STATEMENTS.get(type(tree))
        if method is None:
            raise self.unsupported(tree)
        method(self, tree)

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

    def _assign(self, tree: ast.Assign) -> None:
        if len(tree.targets) != 1:
            value = self.value(tree.value)
            if isinstance(value, Expr):
                value = self.leaf(value, tree.value)  # it happens once, whatever names it gets
            for target in tree.targets:
                self._assign_to(target, KnownValue(value, tree.value), None, tree)
            return
        self._assign_to(tree.targets[0], tree.value, None, tree)

    def _annotated(self, tree: ast.AnnAssign) -> None:
        if tree.value is None:
            raise self.fail("W115", "a declaration without a value", tree)
        self._assign_to(tree.target, tree.value, tree.annotation, tree)

    def _augmented(self, tree: ast.AugAssign) -> None:
        if not isinstance(tree.target, ast.Name):
            raise self.fail("W115", "tensors are values: elements cannot be assigned", tree.target, _ELEMENTS)
        load = ast.copy_location(ast.Name(tree.target.id, ast.Load()), tree.target)
        value = ast.copy_location(ast.BinOp(load, tree.op, tree.value), tree)
        self._assign_to(tree.target, value, None, tree)

    def _assign_to(self, target: ast.expr, tree: ast.expr, annotation: ast.expr | None, statement: ast.stmt) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target, tree, statement)
            return
        if not isinstance(target, ast.Name):
            hint = _ELEMENTS if isinstance(target, ast.Subscript) else None
            raise self.fail("W115", "only names can be bound: tensors are values", target, hint)
        if isinstance(tree, ast.Call) and self._special(target, tree, annotation, statement):
            return
        if annotation is None and self.names_module(tree):
            self.scope.names[target.id] = self.module
            return
        value = self.value(tree)
        if annotation is None and self._is_static(value):
            self.scope.names[target.id] = value
            return
        declared = self._claim(annotation, value, tree) if annotation is not None else None
        if isinstance(declared, PrimType) and (is_plain(value) or is_dim(value)):
            value = self.prim_value(value, declared.dtype, tree)
        self.scope.names[target.id] = self.bind_value(target, self.as_expr(value, tree), declared, statement)

    def _declares(self, tree: ast.expr) -> bool:
        """Whether an expression declares a symbol: `T.int64()`."""
        if not isinstance(tree, ast.Call) or any(word.arg != "is_size_var" for word in tree.keywords):
            return False
        name = self.dotted(tree.func)
        return name in ("T.var", "T.dyn") or (name is not None and not tree.args and bool(self.dtype_name(name)))

    def _special(self, target: ast.Name, tree: ast.Call, annotation: ast.expr | None, statement: ast.stmt) -> bool:
        """Assignments that are more than a value: match_cast and declarations of symbols."""
        name = self.dotted(tree.func)
        if name == "R.match_cast":
            self._match_cast(target, tree, annotation, statement)
            return True
        if self._declares(tree):
            if target.id not in self.symbols:
                self.open_symbols.setdefault(target.id, target)
            self.symbols.add(target.id)
            self.scope.names.pop(target.id, None)
            return True
        return False

    @staticmethod
    def _is_static(value: Any) -> bool:
        if isinstance(value, (tuple, list)):
            return all(map(GraphReader._is_static, parts_of(value)))
        return not isinstance(value, Expr) or isinstance(value, (ExternFunc, GlobalVar, PrimFunc))

    def _claim(self, annotation: ast.expr, value: Any, tree: ast.expr) -> Type:
        """The declared type of a binding; symbols that deduction has just made may be named here."""
        before, self.defining = self.defining, isinstance(value, Expr)
        known = set(self.symbols)
        try:
            declared = self.read_type(annotation)
        finally:
            self.defining = before
        new = self.symbols - known
        if new:
            self._name_new_symbols(new, declared, value, annotation, tree)
        return declared

    def _name_new_symbols(
        self, new: set[str], declared: Type, value: Expr, annotation: ast.expr, tree: ast.expr
    ) -> None:
        made = type_symbols(self.infer(value, tree)) - self.symbols
        if len(made) < len(new):
            self.symbols -= new
            name = sorted(new)[0]
            hint = did_you_mean(name, self.symbols) or "symbols come from the signature or from R.match_cast"
            raise self.fail("W117", f"undefined symbol '{name}'", annotation, hint)

    def _unpack(self, target: ast.Tuple | ast.List, tree: ast.expr, statement: ast.stmt) -> None:
        if isinstance(tree, (ast.Tuple, ast.List)) and len(tree.elts) == len(target.elts):
            if all(isinstance(item, ast.Name) for item in target.elts) and any(map(self._declares, tree.elts)):
                for item, part in zip(target.elts, tree.elts, strict=True):
                    self._assign_to(item, part, None, statement)
                return
        self._unpack_value(target, self.value(tree), tree, statement)

    def _unpack_value(
        self, target: ast.Tuple | ast.List, value: Any, tree: ast.expr, statement: ast.stmt
    ) -> None:
        for item, part in self.unpacked(target, self.parts(value, tree), target):
            if isinstance(item, (ast.Tuple, ast.List)):
                self._unpack_value(item, part, tree, statement)
            elif not isinstance(item, ast.Name):
                raise self.fail("W115", "only names can be unpacked into", item)
            elif self._is_static(part):
                self.scope.names[item.id] = part
            else:
                self.scope.names[item.id] = self.bind_value(item, self.as_expr(part, tree), None, statement)

    def parts(self, value: Any, tree: ast.expr) -> Sequence[Any]:
        """The parts of a value to unpack: those of a tuple variable are its fields."""
        if not isinstance(value, Expr):
            if not isinstance(value, (tuple, list, range)):
                raise self.fail("W114", f"cannot unpack {describe(value)}", tree)
            return value
        fields = self.fields_of(value, tree)
        if fields is None:
            raise self.fail("W114", f"cannot unpack a {type_text(self.infer(self.leaf(value, tree), tree))}", tree)
        return fields

    def _match_cast(self, target: ast.Name, tree: ast.Call, annotation: ast.expr | None, statement: ast.stmt) -> None:
        values = self.bind(VALUES["R.match_cast"], tree)
        before, self.defining = self.defining, True
        try:
            ty = self.read_type(values["ty"])
        finally:
            self.defining = before
        declared = ty
        if annotation is not None:
            declared = self.read_type(annotation)
        var = self.make_var(target.id, declared, target)
        found = self.infer(values["value"], tree)
        if is_base_of(ty, found) is False:
            raise self.fail("W432", f"a {type_text(found)} is never a {type_text(ty)}", tree)
        self._emit(MatchCast(var, values["value"], ty, span=self.span(statement)))
        for name in type_symbols(ty):
            self.open_symbols.pop(name, None)
        self.context.learn(ty, self.infer(values["value"], tree))
        self.scope.names[target.id] = var

    def _misplaced_cast(self, tree: ast.Call) -> Any:
        target = self.fresh(tree)
        self._match_cast(target, tree, None, tree)  # type: ignore[arg-type]
        return self.scope.names.pop(target.id)

    def _with(self, tree: ast.With) -> None:
        call = tree.items[0].context_expr
        name = self.dotted(call.func) if isinstance(call, ast.Call) else self.dotted(call)
        if name not in ("R.dataflow", "R.bindings") or len(tree.items) != 1:
            raise self.fail(
                "W115", f"`with {ast.unparse(call)[:40]}` is not part of a graph function", call, "with R.dataflow():"
            )
        if tree.items[0].optional_vars is not None:
            raise self.fail("W115", "a dataflow block has no name", tree.items[0].optional_vars)
        if self.dataflow_names is not None:
            raise self.fail("W119", "a dataflow block inside a dataflow block", call)
        if name == "R.bindings":
            self._plain_block(tree)
        else:
            self._dataflow(tree)

    def _plain_block(self, tree: ast.With) -> None:
        """A block of bindings kept apart from its neighbours."""
        self.blocks.flush()
        for statement in tree.body:
            self.statement(statement)
        self.blocks.done.append(BindingBlock(tuple(self.blocks.bindings), span=self.span(tree)))
        self.blocks.bindings = []

    def _is_dataflow(self, tree: ast.With) -> bool:
        call = tree.items[0].context_expr
        return isinstance(call, ast.Call) and self.dotted(call.func) == "R.dataflow"

    def _dataflow(self, tree: ast.With) -> None:
        self.blocks.flush()
        for statement in tree.body:
            if isinstance(statement, ast.With) and self._is_dataflow(statement):
                raise self.fail("W119", "a dataflow block inside a dataflow block", statement.items[0].context_expr)
        outputs = self._output_names(tree)
        last = {name: -1 for name in outputs}
        for position, statement in enumerate(tree.body):
            for name in _targets(statement):
                if name in last:
                    last[name] = position
        for name, position in last.items():
            if position < 0:
                where = self.scope.get(name)
                why = "it is bound outside the block" if where is not MISSING else "nothing in the block binds it"
                hint = did_you_mean(name, {target for statement in tree.body for target in _targets(statement)})
                raise self.fail("W119", f"'{name}' is no output of this block: {why}", outputs[name], hint)
        outer = self.scope
        self.scope = Scope(outer)
        self.dataflow_names = last
        try:
            for position, statement in enumerate(tree.body):
                self.position = position
                if not _is_output(self, statement):
                    if isinstance(statement, ast.Return):
                        raise self.fail("W120", "a return inside a dataflow block", statement)
                    self.statement(statement)
        finally:
            self.dataflow_names = None
            self.position = -1
            inner, self.scope = self.scope, outer
        for name in outputs:
            outer.names[name] = inner.names[name]
        self._forget_statics(inner, outer, outputs)
        self.blocks.done.append(DataflowBlock(tuple(self.blocks.bindings), span=self.span(tree)))
        self.blocks.bindings = []

    def _forget_statics(self, inner: Scope, outer: Scope, outputs: Mapping[str, Any]) -> None:
        """Names known while reading stay visible; variables of the block leave a trace for the error message."""
        for name, value in inner.names.items():
            if name not in outputs:
                if self._holds_local(value):
                    self.hidden[name] = "it is local to a dataflow block: add it to R.output"
                else:
                    outer.names.setdefault(name, value)

    def _holds_local(self, value: Any) -> bool:
        """Whether a value names variables of the block, by itself or in what it holds or computes later."""
        if isinstance(value, Macro):
            return value.scope is not None
        if isinstance(value, (tuple, list, dict)):
            return any(map(self._holds_local, value.values() if isinstance(value, dict) else value))
        return not self._is_static(value)

    def _output_names(self, tree: ast.With) -> dict[str, ast.AST]:
        found: dict[str, ast.AST] = {}
        for position, statement in enumerate(tree.body):
            if not _is_output(self, statement):
                continue
            if position != len(tree.body) - 1:
                after = tree.body[position + 1]
                raise self.fail("W119", "nothing can follow `R.output` in its block", after, "write `R.output` last")
            for argument in _output_call(statement).args:
                if not isinstance(argument, ast.Name):
                    raise self.fail("W114", "R.output takes names", argument)
                found[argument.id] = argument
        return found

    def _if(self, tree: ast.If) -> None:
        test = self.value(tree.test)
        if is_plain(test):
            for statement in tree.body if test else tree.orelse:
                self.statement(statement)
            return
        if self.dataflow_names is not None:
            raise self.fail(
                "W119", "a dataflow block has no control flow", tree, "move the if outside of it, or use R.where"
            )
        otherwise = tree.orelse or self._kept(tree)
        condition = self.leaf(test, tree.test)
        self._check_condition(condition, tree.test)
        shadowed: dict[str, Hidden] = {}
        then_name, then_type, then_branch = self._branch(tree.body, tree, shadowed)
        else_name, else_type, else_branch = self._branch(otherwise, tree, shadowed)
        self.scope.names.update(shadowed)
        if then_name != else_name:
            raise self.fail(
                "W119",
                f"the branches must end by binding one name, not '{then_name}' and '{else_name}'",
                otherwise[-1],
            )
        value = If(condition, then_branch, else_branch, span=self.span(tree))
        both = then_type is not None and else_type is not None and structural_equal(then_type, else_type)
        target = ast.copy_location(ast.Name(then_name, ast.Store()), tree)
        if both:
            var = self.make_var(then_name, then_type, tree)  # type: ignore[arg-type]
            self._emit(VarBinding(var, value, span=self.span(tree)))
        else:
            var = self.bind_value(target, value, None, tree)
        self.scope.names[then_name] = var
        self.hidden.pop(then_name, None)

    def _kept(self, tree: ast.If) -> list[ast.stmt]:
        """The branch of an `if` without `else`: the name that the other branch binds keeps its value."""
        last = tree.body[-1]
        targets = last.targets if isinstance(last, ast.Assign) else [getattr(last, "target", None)]
        name = targets[0].id if len(targets) == 1 and isinstance(targets[0], ast.Name) else None
        if name is None or self.scope.get(name) is MISSING:
            hint = f"write `else:` with another value of `{name}`, or bind `{name}` before" if name else None
            raise self.fail("W115", "an `if` needs an `else`: both branches give the value", tree, hint)
        load, store = ast.Name(name, ast.Load()), ast.Name(name, ast.Store())
        kept = ast.Assign([ast.copy_location(store, last)], ast.copy_location(load, last))
        return [ast.copy_location(kept, last)]

    def _check_condition(self, condition: Expr, tree: ast.AST) -> None:
        ty = self.infer(condition, tree)
        right = (
            isinstance(ty, AnyType)
            or (isinstance(ty, PrimType) and ty.dtype == "bool")
            or (isinstance(ty, TensorType) and ty.dtype in ("bool", None) and ty.ndim in (0, -1))
        )
        if not right:
            hint = None
            if isinstance(ty, TensorType) and ty.dtype in ("bool", None):
                hint = "R.where(condition, a, b) chooses for each element"
            elif not isinstance(ty, TupleType):
                hint = "compare it, as in `x > 0`"
            raise self.fail("W123", f"a condition is a bool scalar, got {type_text(ty)}", tree, hint)

    def _branch(
        self, trees: Sequence[ast.stmt], tree: ast.If, shadowed: dict[str, Hidden]
    ) -> tuple[str, Type | None, SeqExpr]:
        """(name bound last, its declared type, the branch); outer names that it binds anew are noted."""
        saved_scope, self.scope = self.scope, Scope(self.scope)
        saved_blocks, self.blocks = self.blocks, Blocks()
        try:
            with self.context.scope():
                for statement in trees[:-1]:
                    self.statement(statement)
                name, declared, result = self._last_of_branch(trees[-1])
            self.blocks.flush()
            for inner, value in self.scope.names.items():
                if inner == name:
                    continue
                why = "only the last binding of a branch is visible after the if"
                self.hidden.setdefault(inner, why)
                if saved_scope.get(inner) is not MISSING and saved_scope.get(inner) is not value:
                    shadowed[inner] = Hidden(f"a branch gives it another value, and {why}")
            return name, declared, SeqExpr(tuple(self.blocks.done), result)
        finally:
            self.scope, self.blocks = saved_scope, saved_blocks

    def _last_of_branch(self, tree: ast.stmt) -> tuple[str, Type | None, Expr]:
        if isinstance(tree, ast.AnnAssign) and isinstance(tree.target, ast.Name) and tree.value is not None:
            if self._is_leaf_tree(tree.value):
                result = self.leaf(self.value(tree.value), tree.value)
                declared = self._claim(tree.annotation, result, tree.value)
                if is_base_of(declared, self.infer(result, tree), self.context.facts) is not True:
                    result = self.bind_value(tree.target, result, declared, tree)
                return tree.target.id, declared, result
            self.statement(tree)
            result = self._bound(tree.target.id, tree)
            return tree.target.id, result.ty if isinstance(result, Var) else None, result
        if isinstance(tree, ast.Assign) and len(tree.targets) == 1 and isinstance(tree.targets[0], ast.Name):
            name = tree.targets[0].id
            if self._is_leaf_tree(tree.value):
                return name, None, self.leaf(self.value(tree.value), tree.value)
            self.statement(tree)
            return name, None, self._bound(name, tree)
        self.statement(tree)
        if isinstance(tree, ast.Expr):
            return "_", VOID, Tuple((), span=self.span(tree))
        names = [name for name in _targets(tree) if self.scope.names.get(name) is not None]
        if isinstance(tree, ast.With):
            names = [name for name in _outputs_of(self, tree)]
        if not names:
            raise self.fail("W119", "a branch must end by binding the result", tree)
        return names[-1], None, self._bound(names[-1], tree)

    def _bound(self, name: str, tree: ast.AST) -> Expr:
        value = self.scope.get(name)
        return value if isinstance(value, Expr) else self.as_expr(value, tree)

    def _is_leaf_tree(self, tree: ast.expr) -> bool:
        """Whether the expression is a leaf as it stands, so that it needs no binding of its own."""
        if isinstance(tree, (ast.Name, ast.Constant)):
            return True
        if isinstance(tree, (ast.Tuple, ast.List)):
            return all(self._is_leaf_tree(item) for item in tree.elts)
        if isinstance(tree, ast.Call):
            return self.dotted(tree.func) in (
                "R.const",
                "R.shape",
                "R.prim_value",
                "R.str",
                "R.dtype",
                "R.ExternFunc",
                "R.tuple",
            )
        return isinstance(tree, ast.Attribute) and self.global_name(tree) is not None

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
        inner.pure = options["pure"]
        declared = inner.func_type() if inner.ret_type is not None else None
        if declared is not None:  # a local function may call itself
            var = self.make_var(tree.name, declared, tree)
            inner.scope.parent = Scope(self.scope)
            inner.scope.parent.names[tree.name] = var
        value = inner.function(tree, pure=options["pure"], private=options["private"])
        if declared is None:
            var = self.make_var(
                tree.name, FuncType(tuple(p.ty for p in value.params), value.ret_type, value.pure), tree
            )
        self._emit(VarBinding(var, value, span=self.span(tree)))  # type: ignore[possibly-undefined]
        self.scope.names[tree.name] = var  # type: ignore[possibly-undefined]

    def _assert(self, tree: ast.Assert) -> None:
        test = self.value(tree.test)
        message = self.constant(tree.msg) if tree.msg is not None else None
        if is_plain(test):
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

    _STATEMENTS: ClassVar[dict[type, Callable[[Any, Any], None]]] = {}


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


def _is_output(reader: Reader, tree: ast.stmt) -> bool:
    return (
        isinstance(tree, ast.Expr) and isinstance(tree.value, ast.Call) and reader.dotted(tree.value.func) == "R.output"
    )


def _output_call(tree: ast.stmt) -> ast.Call:
    """The call of an R.output statement."""
    assert isinstance(tree, ast.Expr)
    assert isinstance(tree.value, ast.Call)
    return tree.value


def _outputs_of(reader: Reader, tree: ast.With) -> list[str]:
    last = tree.body[-1]
    if _is_output(reader, last):
        return [argument.id for argument in last.value.args if isinstance(argument, ast.Name)]  # type: ignore[attr-defined]
    return []


def _targets(tree: ast.stmt) -> list[str]:
    """The names that a statement binds."""
    if isinstance(tree, ast.FunctionDef):
        return [tree.name]
    if isinstance(tree, ast.For):
        return [name for statement in tree.body for name in _targets(statement)]
    if isinstance(tree, ast.If):
        return [name for statement in (*tree.body, *tree.orelse) for name in _targets(statement)]
    targets = (
        tree.targets
        if isinstance(tree, ast.Assign)
        else [tree.target]
        if isinstance(tree, (ast.AnnAssign, ast.AugAssign))
        else []
    )
    names: list[str] = []
    for target in targets:
        for item in target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]:
            if isinstance(item, ast.Name):
                names.append(item.id)
    return names


def _ends_in_return(trees: Sequence[ast.stmt]) -> bool:
    return bool(trees) and (
        isinstance(trees[-1], ast.Return) or (isinstance(trees[-1], ast.If) and _returns(trees[-1]))
    )


def _returns(tree: ast.If) -> bool:
    return _ends_in_return(tree.body) or _ends_in_return(tree.orelse)
