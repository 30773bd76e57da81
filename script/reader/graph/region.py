"""Reading the parts of graph functions with names of their own: dataflow blocks and the branches of an `if`.

    block ::= with R.dataflow(): statement ... R.output(name, ...)      only the outputs are visible after it
            | with R.bindings(): statement ...
    if    ::= if condition: statement ... else: statement ...           both branches end by binding one name

A name that is not visible any more leaves its reason for the error message.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from weft.ir.deduction.infer import VOID, type_text
from weft.ir.deduction.subtyping import is_base_of
from weft.ir.graph import (
    BindingBlock,
    DataflowBlock,
    Expr,
    If,
    SeqExpr,
    Tuple,
    Var,
    VarBinding,
)
from weft.ir.structure.structural import structural_equal
from weft.ir.types import AnyType, PrimType, TensorType, TupleType, Type
from weft.script.reader.base import (
    Reader,
    Scope,
)
from weft.script.reader.graph.assign import AssignReader
from weft.script.reader.graph.value import Blocks
from weft.script.reader.macros import Macro
from weft.script.reader.recovery import attempt
from weft.script.reader.scope import Hidden
from weft.script.source.diagnostics import did_you_mean
from weft.script.source.text import MISSING

__all__ = ["RegionReader"]


class RegionReader(AssignReader):
    """Reads the compound statements that open a scope for names."""

    def statement(self, tree: ast.stmt) -> None:
        """Read one statement into the current block."""
        attempt(self, tree, lambda: self._statement(tree))

    def _statement(self, tree: ast.stmt) -> None:
        method = self._STATEMENTS.get(type(tree))
        if method is None:
            raise self.unsupported(tree)
        method(self, tree)

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
        if self.known(test, tree.test):
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

    _STATEMENTS: ClassVar[dict[type, Callable[[Any, Any], None]]] = {}


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
