"""Reading the simple statements of tensor-level functions: what a name stands for, calls as statements, jumps.

A name that is assigned once is an immutable binding; one that is assigned again is a local scalar in memory.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, ClassVar

from weft import dtypes
from weft.ir.graph import Expr
from weft.ir.kernel.prim import cast
from weft.ir.node import EMPTY, FrozenMap, replace
from weft.ir.tensor import (
    AllocBuffer,
    Bind,
    Break,
    Buffer,
    BufferRegion,
    Continue,
    DeclBuffer,
    Evaluate,
    FloatImm,
    IntImm,
    PrimCall,
    PrimExpr,
    PrimVar,
    Return,
    Stmt,
)
from weft.script.forms.syntax import ALL_FORMS, CLAUSES
from weft.script.reader.base import ModuleScope, describe
from weft.script.reader.call import KnownValue
from weft.script.reader.macros import Macro
from weft.script.reader.tensor.block import AXES
from weft.script.reader.tensor.declaration import POINTERS
from weft.script.reader.tensor.scalar import index_const
from weft.script.reader.tensor.store import StoreReader
from weft.script.source.text import MISSING, Unit

__all__ = ["BindingReader"]


class BindingReader(StoreReader):
    """Reads simple statements."""

    def __init__(self, unit: Unit, module: ModuleScope) -> None:
        super().__init__(unit, module)
        self.attrs: FrozenMap = EMPTY
        self.assigned: dict[str, int] = {}  # how often each name is assigned
        self.offsets_read = set()
        self.realized: frozenset[str] = frozenset()  # names that a T.realize gives memory

    def expand_statement(self, tree: ast.Call) -> list[Stmt] | None:
        """The statements of a macro that is called as one, or None for another call (see `read_tensor`)."""
        return None

    def _pass(self, tree: ast.stmt) -> None:
        return None

    def _expression(self, tree: ast.Expr) -> Any:
        call = tree.value
        if isinstance(call, ast.Constant) and isinstance(call.value, str):
            return None  # a docstring
        if isinstance(call, ast.Call):
            name = self.dotted(call.func)
            method = self._CLAUSE_METHODS.get(name or "")
            if method is not None:
                return method(self, call)
            if isinstance(call.func, ast.Attribute) and call.func.attr == "vstore":
                return self._vstore(call)
            expanded = self.expand_statement(call)
            if expanded is not None:
                return expanded
        value = self.value(call)
        if value is None and isinstance(call, ast.Call):
            return None  # what happened while reading, such as adding to a list
        if not isinstance(value, Expr) or isinstance(value, PrimVar):
            raise self.fail("W115", f"a statement of {describe(value)} does nothing", tree)
        return Evaluate(value, span=self.span(tree))

    def _evaluate(self, tree: ast.Call) -> Any:
        inner = tree.args[0] if len(tree.args) == 1 else None
        statement = self._JUMPS.get(self.dotted(inner.func) or "") if isinstance(inner, ast.Call) else None
        if statement is not None and isinstance(inner, ast.Call):
            return statement(self, inner)
        if isinstance(inner, ast.Call) and self.dotted(inner.func) == "T.StringImm":
            return Evaluate(self.value(inner), span=self.span(tree))
        return Evaluate(self.bind(CLAUSES["T.evaluate"], tree)["value"], span=self.span(tree))

    def _func_attr(self, tree: ast.Call) -> None:
        values = self.bind(ALL_FORMS["T.func_attr"], tree)
        if not isinstance(values["attrs"], FrozenMap):
            raise self.fail("W114", "T.func_attr takes a dictionary", tree)
        self._check_private(values["attrs"], tree)
        self.attrs = self.joined(self.attrs, values["attrs"], "function", tree)

    def _static_assert(self, tree: ast.Call) -> None:
        values = self._values(tree)
        if not values or not self.known(values[0], tree):
            raise self.fail("W114", "T.static_assert takes a condition known while reading", tree)
        if not values[0]:
            raise self.fail("W124", str(values[1]) if len(values) > 1 else "the static assertion is false", tree)

    def _break_loop(self, tree: ast.Call) -> Stmt:
        return Break(span=self.span(tree))

    def _continue_loop(self, tree: ast.Call) -> Stmt:
        return Continue(span=self.span(tree))

    def _ret(self, tree: ast.Call) -> Stmt:
        values = self._values(tree)
        return Return(self.as_prim(values[0], tree) if values else None, span=self.span(tree))

    def _assign(self, tree: ast.Assign) -> Any:
        if len(tree.targets) != 1:
            return self._assign_all(tree)
        target = tree.targets[0]
        if isinstance(target, ast.Subscript):
            return self._store(target, tree.value, tree)
        if isinstance(target, (ast.Tuple, ast.List)):
            return self._assign_many(target, tree.value, tree)
        if isinstance(target, ast.Name):
            return self._assign_name(target, tree.value, None, tree)
        raise self.fail("W115", "only names and buffer elements can be assigned", target)

    def _assign_all(self, tree: ast.Assign) -> list[Stmt]:
        """`a = b[i] = e`: the value is computed once."""
        value = self.value(tree.value)
        made: list[Any] = []
        if isinstance(value, PrimExpr) and not isinstance(value, (IntImm, FloatImm, PrimVar)):
            var = PrimVar("value", value.dtype, span=self.span(tree.value))
            made.append(Bind(var, value, span=self.span(tree)))
            value = var
        for target in tree.targets:
            one = ast.copy_location(ast.Assign([target], KnownValue(value, tree.value)), tree)
            part = self._assign(one)
            made.extend(part if isinstance(part, list) else [part])
        return [part for part in made if part is not None]

    def _assign_many(self, target: ast.Tuple | ast.List, tree: ast.expr, statement: ast.stmt) -> Any:
        names = [item for item in target.elts if isinstance(item, ast.Name)]
        name = self.dotted(tree.func) if isinstance(tree, ast.Call) else None
        if len(names) != len(target.elts):
            if name == "T.axis.remap" and isinstance(tree, ast.Call):
                self._remap_starred(target, tree)
                return None
            return self._assign_parts(target, self.value(tree), tree, statement)
        if name == "T.axis.remap" and isinstance(tree, ast.Call):
            self._remap(names, tree)
            return None
        if isinstance(tree, (ast.Tuple, ast.List)) and len(tree.elts) == len(names):
            parts = [
                self._assign_name(item, part, None, statement) for item, part in zip(names, tree.elts, strict=True)
            ]
            return [part for made in parts for part in (made if isinstance(made, list) else [made]) if part is not None]
        return self._assign_parts(target, self.value(tree), tree, statement)

    def _assign_parts(
        self, target: ast.Tuple | ast.List, values: Any, tree: ast.expr, statement: ast.stmt
    ) -> list[Any]:
        """`a, (b, *c) = values`."""
        if not isinstance(values, (tuple, list, range)):
            raise self.fail("W115", f"cannot unpack {describe(values)} into {len(target.elts)} names", statement)
        made: list[Any] = []
        for item, value in self.unpacked(target, values, target):
            one = ast.copy_location(ast.Assign([item], KnownValue(value, tree)), statement)
            part = self._assign(one)
            made.extend(part if isinstance(part, list) else [part])
        return [part for part in made if part is not None]

    def _assign_name(self, target: ast.Name, tree: ast.expr, annotation: ast.expr | None, statement: ast.stmt) -> Any:
        name = self.dotted(tree.func) if isinstance(tree, ast.Call) else None
        method = self._NAMED.get(name or "")
        if method is not None and isinstance(tree, ast.Call):
            return method(self, target, tree)
        dtype = self.symbol_declaration(tree)
        if dtype is not None:
            self.scope.names[target.id] = self.symbol_value(target.id, target)
            return None
        pointer = self._handle_annotation(tree, target) if name in POINTERS else None
        if pointer is not None:
            self.scope.names[target.id] = pointer
            return None
        if annotation is None and self.names_module(tree):
            self.scope.names[target.id] = self.module
            return None
        buffer = self.buffer_expression(tree, target.id, target)
        if buffer is not None:
            self.scope.names[target.id] = buffer
            if buffer.data is None:
                self.declared.add(buffer)
                if target.id in self.realized:
                    return None
            return DeclBuffer(buffer, span=self.span(statement))
        return self._assign_value(target, tree, annotation, statement)

    def _assign_value(self, target: ast.Name, tree: ast.expr, annotation: ast.expr | None, statement: ast.stmt) -> Any:
        """`x = e`: a store into a local scalar, a new one, an immutable binding, or a plain value."""
        known = self.scope.get(target.id)
        if isinstance(known, Buffer) and (known.name in self.scalars or self._is_one_element(known)):
            return self._store_into(known, (index_const(0),), self.value(tree), statement)
        view = self._view(target, tree, statement)
        if view is not None:
            return view
        value = self.value(tree)
        if isinstance(known, Buffer) and any(known is param for param in self.params):
            hint = f"`{target.id}[...] = ...` writes elements: give {known.ndim} indices"
            raise self.fail("W115", f"`{target.id}` is a parameter: another value of that name is lost", target, hint)
        dtype, is_let = self._declared(annotation)
        self._refuse_taken(known, target)
        repeated = self.assigned.get(target.id, 0) > 1 and not is_let
        if annotation is None and self._is_static(value, repeated, target):
            self.scope.names[target.id] = value
            return None
        made = self.as_prim(value, tree, dtype.dtype if dtype is not None and dtype.dtype != "handle" else None)
        if dtype is not None and isinstance(made, PrimCall) and made.dtype == "void":
            made = replace(made, dtype=dtype.dtype)
        if dtype is not None and annotation is not None:
            self._check_declared(target, made, dtype.dtype, is_let, annotation)
        if dtype is not None and dtype.dtype not in ("handle", made.dtype):
            made = self.fold(lambda: cast(dtype.dtype, made), tree)
        if repeated:
            return self._new_scalar(target, made, statement)
        return self._bind_name(target, made, dtype, statement)

    def _annotated(self, tree: ast.AnnAssign) -> Any:
        if not isinstance(tree.target, ast.Name):
            raise self.fail("W115", "only names take annotations", tree)
        if tree.value is None:
            dtype, _ = self._declared(tree.annotation)
            assert dtype is not None
            buffer = Buffer(tree.target.id, (1,), dtype.dtype, "local", span=self.span(tree.target))
            self.scalars = self.scalars | {tree.target.id}
            self.scope.names[tree.target.id] = buffer
            return AllocBuffer(buffer, span=self.span(tree))
        return self._assign_name(tree.target, tree.value, tree.annotation, tree)

    def _bind_name(self, target: ast.Name, value: PrimExpr, declared: PrimVar | None, statement: ast.AST) -> Stmt:
        """A new immutable name; a pointer is what its declaration says it points to."""
        pointee, scope = (declared.pointee, declared.scope) if declared is not None else (None, "global")
        var = PrimVar(target.id, value.dtype, pointee, scope, span=self.span(target))
        self.scope.names[target.id] = var
        return Bind(var, value, span=self.span(statement))

    def _bind_call(self, target: ast.Name, tree: ast.Call) -> Stmt:
        value = self.bind(CLAUSES["T.bind"], tree)["value"]
        var = PrimVar(target.id, value.dtype, span=self.span(target))
        self.scope.names[target.id] = var
        return Bind(var, value, span=self.span(tree))

    def _is_static(self, value: Any, repeated: bool, target: ast.Name) -> bool:
        """Whether a name only stands for a value while reading; W115 where it would change as the kernel runs."""
        if isinstance(value, (PrimExpr, BufferRegion)):
            return False
        if not repeated or isinstance(value, (Macro, ModuleScope)):
            return True
        if isinstance(value, (bool, int, float, Buffer)):
            return False
        known = self.scope.names.get(target.id, MISSING)
        if known is not MISSING and not isinstance(known, (PrimExpr, Buffer)):
            return True  # bound anew in the block that bound it
        if self.scope.get(target.id) is MISSING:
            return True
        raise self.fail(
            "W115", f"'{target.id}' is bound by an outer block: {describe(value)} cannot be stored as the kernel runs",
            target, "use another name",
        )  # fmt: skip

    def _refuse_taken(self, known: Any, target: ast.Name) -> None:
        """W118: a parameter, or a variable of a loop or block, is not assigned."""
        if not isinstance(known, PrimVar):
            return
        of_block = self.block is not None and any(item.var is known for item in self.block.iter_vars)
        what = "parameter" if known in self.params else "loop variable" if known in self.loops else ""
        if what or of_block:
            what = what or "block variable"
            raise self.fail("W118", f"'{target.id}' is a {what}: it is not assigned", target, "use another name")

    def _check_declared(
        self, target: ast.Name, value: PrimExpr, dtype: str, is_let: bool, annotation: ast.expr
    ) -> None:
        """W123: a name that stands for a value has its dtype; a declared integer is no float."""
        lossy = dtypes.is_integer(dtype) and dtypes.is_float(value.dtype)
        if lossy or (is_let and dtype not in ("handle", value.dtype)):
            message = f"'{target.id}' is declared {dtype}, the value is {value.dtype}"
            raise self.fail("W123", message, annotation, f'T.Cast("{dtype}", ...)')

    _CLAUSE_METHODS: ClassVar[dict[str, Callable[[Any, ast.Call], Any]]] = {}

    _JUMPS: ClassVar[dict[str, Callable[[Any, ast.Call], Stmt]]] = {}

    _NAMED: ClassVar[dict[str, Callable[[Any, ast.Name, ast.Call], Any]]] = {}


BindingReader._NAMED = {
    "T.alloc_buffer": BindingReader._alloc,
    "T.allocate": BindingReader._allocate,
    "T.allocate_const": BindingReader._allocate_const,
    "T.alloc_local": BindingReader._alloc_local,
    "T.alloc_shared": BindingReader._alloc_shared,
    "T.local_scalar": BindingReader._local_scalar,
    "T.shared_scalar": BindingReader._shared_scalar,
    "T.decl_buffer": BindingReader._decl,
    "T.decl_scalar": BindingReader._decl_scalar,
    "T.match_buffer": BindingReader._match_buffer,
    "T.axis.remap": BindingReader._remap_one,
    "T.bind": BindingReader._bind_call,
    "T.env_thread": BindingReader._env_thread,
    "T.preflattened_buffer": BindingReader._preflattened,
    "T.launch_thread": BindingReader._launch_named,
    **AXES,
}
BindingReader._JUMPS = {
    "T.ret": BindingReader._ret,
    "T.break_loop": BindingReader._break_loop,
    "T.continue_loop": BindingReader._continue_loop,
}
BindingReader._CLAUSE_METHODS = {
    "T.func_attr": BindingReader._func_attr,
    "T.reads": BindingReader._reads,
    "T.writes": BindingReader._writes,
    "T.where": BindingReader._where,
    "T.block_attr": BindingReader._block_attr,
    "T.evaluate": BindingReader._evaluate,
    "T.attr": BindingReader._attr_statement,
    **BindingReader._JUMPS,
    "T.launch_thread": BindingReader._launch_statement,
    "T.masked_store": BindingReader._masked_store,
    "T.static_assert": BindingReader._static_assert,
    "T.preflattened_buffer": BindingReader._preflattened_statement,
    **{name: BindingReader._bare_axis for name in AXES},
}
