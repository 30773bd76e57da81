"""Reading assignments in graph functions: bindings, claims, unpacking, `R.match_cast`, declared symbols.

    x = value    x: type = value    x += value    a, (b, *c) = value    n = T.int64()    y = R.match_cast(x, type)

An annotation is a claim that is checked; a name known while reading (a size, a number, a tuple of them) binds no
variable.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from weft.ir.deduction.infer import type_text
from weft.ir.deduction.subtyping import is_base_of, type_symbols
from weft.ir.graph import (
    Expr,
    ExternFunc,
    GlobalVar,
    MatchCast,
)
from weft.ir.tensor import PrimFunc
from weft.ir.types import PrimType, Type
from weft.script.forms.syntax import VALUES
from weft.script.reader.base import (
    ModuleScope,
    describe,
    is_dim,
)
from weft.script.reader.call import KnownValue
from weft.script.reader.graph.value import ValueReader
from weft.script.source.diagnostics import did_you_mean
from weft.script.source.text import Unit

__all__ = ["AssignReader"]

_ELEMENTS = "R.where and R.scatter_elements make a tensor with other elements; a T.prim_func writes them"


class AssignReader(ValueReader):
    """Reads assignments."""

    def __init__(self, unit: Unit, module: ModuleScope, functions: Mapping[str, Any]) -> None:
        super().__init__(unit, module, functions)
        self.open_symbols: dict[str, ast.AST] = {}  # declared in the body, and nothing has given them a value yet

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
        self.known(value, tree)  # pays for going through it
        if annotation is None and self._is_static(value):
            self.scope.names[target.id] = value
            return
        declared = self._claim(annotation, value, tree) if annotation is not None else None
        if isinstance(declared, PrimType) and (self.known(value, tree) or is_dim(value)):
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
            return all(map(AssignReader._is_static, value))
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

    def _unpack_value(self, target: ast.Tuple | ast.List, value: Any, tree: ast.expr, statement: ast.stmt) -> None:
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
