"""Reading `@T.prim_func`: functions and compound statements.

Names follow Python's blocks: a loop variable is visible in its loop, a name bound in a block until the block ends.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, ClassVar

from weft import dtypes
from weft.ir.deduction.infer import type_text
from weft.ir.kernel.intrinsics import INTRINSICS
from weft.ir.kernel.prim import const
from weft.ir.node import EMPTY, FrozenMap, replace
from weft.ir.structure.visit import walk
from weft.ir.tensor import (
    AllocBuffer,
    AssertStmt,
    Block,
    Break,
    Buffer,
    BufferStore,
    Continue,
    Evaluate,
    Extent,
    For,
    IfThenElse,
    PrimCall,
    PrimExpr,
    PrimFunc,
    PrimVar,
    Return,
    SeqStmt,
    Stmt,
    While,
)
from weft.ir.types import PrimType, TupleType, Type
from weft.script.forms.defaults import loop_dtype
from weft.script.forms.syntax import LOOPS, SCOPES
from weft.script.forms.unsupported import why_unread
from weft.script.reader.base import Scope, describe, macro_of
from weft.script.reader.call import KnownValue
from weft.script.reader.macros import Macro
from weft.script.reader.recovery import attempt
from weft.script.reader.tensor.block import BlockHeader
from weft.script.reader.tvm.tvm_next import RecentReader
from weft.script.source.diagnostics import Consequence, did_you_mean, fail
from weft.script.source.text import MISSING

__all__ = ["TensorReader"]

_LOOP_TEXTS = ("thread", "dtype")
_LOOP_KINDS = {
    "T.serial": "serial",
    "range": "serial",
    "T.parallel": "parallel",
    "T.vectorized": "vectorized",
    "T.unroll": "unrolled",
    "T.thread_binding": "thread_binding",
}


class TensorReader(RecentReader):
    """Reads one tensor-level function."""

    level = "T"
    loop_depth = 0
    pending: list[Stmt] | None = None  # what macros inside the current statement compute before it

    def function(
        self, tree: ast.FunctionDef, *, private: bool = False, name: str | None = None, s_tir: bool = False
    ) -> PrimFunc:
        """The function that a definition stands for."""
        self.s_tir = s_tir
        self.private = private
        arguments = self.parameters(tree.args)
        for default in filter(None, arguments.values()):
            raise self.fail("W115", "a tensor-level function has no default arguments", default)
        self._prescan(tree.body)
        found = self.unit.noted
        self.defining = True
        for read in (self._scalar_parameter, self._buffer_parameter):  # shapes may mention a scalar parameter
            for argument in arguments:
                if argument.arg not in self.scope.names:
                    attempt(self, argument, lambda argument=argument, read=read: read(argument))
        self.params = [self.scope.names[argument.arg] for argument in arguments]
        self.defining = False
        ret_type = self._return_type(tree)
        self.scope = Scope(self.scope)
        body = self.body(tree.body, top=True)
        if self.unit.noted > found:
            raise Consequence("a statement could not be read")
        return PrimFunc(
            tuple(self.params), body, ret_type, private, self.attrs, name or tree.name,
            span=self.unit.name_span(tree), s_tir=s_tir,
        )  # fmt: skip

    def _prescan(self, body: Sequence[ast.stmt]) -> None:
        """How often each name is assigned, the dtypes that `n = T.int32()` gives to symbols, the offsets in use."""
        self.realized |= self.realized_names(body)
        for statement in body:
            for node in ast.walk(statement):
                if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
                    self._prescan_assignment(node)
                elif isinstance(node, ast.Attribute) and node.attr == "elem_offset":
                    if isinstance(node.value, ast.Name):
                        self.offsets_read.add(node.value.id)

    def _prescan_assignment(self, node: ast.Assign | ast.AnnAssign | ast.AugAssign) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            for item in target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]:
                if isinstance(item, ast.Name):
                    self.assigned[item.id] = self.assigned.get(item.id, 0) + 1
        if isinstance(node, ast.Assign) and len(targets) == 1:
            names, values = [targets[0]], [node.value]
            if isinstance(targets[0], (ast.Tuple, ast.List)) and isinstance(node.value, (ast.Tuple, ast.List)):
                names, values = targets[0].elts, node.value.elts
            for item, value in zip(names, values, strict=False):
                dtype = self.symbol_declaration(value) if isinstance(item, ast.Name) else None
                if dtype is not None and isinstance(item, ast.Name):
                    self.symbol_dtypes[item.id] = dtype

    def _annotation(self, argument: ast.arg) -> ast.expr:
        if argument.annotation is None:
            raise self.fail(
                "W113", f"parameter '{argument.arg}' has no type", argument, 'write `x: T.Buffer((4,), "float32")`'
            )
        return argument.annotation

    def _scalar_parameter(self, argument: ast.arg) -> None:
        annotation = self._annotation(argument)
        made = self._handle_annotation(annotation, argument)
        if made is None and isinstance(annotation, ast.Attribute):
            dtype = self.dtype_name(self.dotted(annotation) or "")
            made = PrimVar(argument.arg, dtype, span=self.span(argument)) if dtype else None
        if made is not None:
            self.scope.names[argument.arg] = made
            if dtypes.is_integer(made.dtype) and made.dtype != "handle":
                self.variables.setdefault(argument.arg, made)

    def _buffer_parameter(self, argument: ast.arg) -> None:
        annotation = self._annotation(argument)
        made = self.buffer_expression(annotation, argument.arg, place=argument)
        if made is None:
            value = self.value(annotation)
            if isinstance(value, Buffer):
                made = self._described_buffer(value, argument)
            elif isinstance(value, PrimVar):
                made = PrimVar(argument.arg, value.dtype, value.pointee, value.scope, span=self.span(argument))
            elif isinstance(value, PrimType):
                made = PrimVar(argument.arg, value.dtype, span=self.span(argument))
        if made is None:
            raise self.fail(
                "W114",
                f"parameter '{argument.arg}': expected T.Buffer(...), T.handle or a dtype such as T.int32",
                annotation,
            )
        self.scope.names[argument.arg] = made
        if isinstance(made, Buffer):
            self.buffer_places[made] = argument

    def _described_buffer(self, value: Buffer, argument: ast.arg) -> Buffer:
        """A parameter described by a buffer outside the script: variables in its shape become symbols."""
        sizes = tuple(
            self.dim_text(extent.name, argument.annotation or ast.Constant(0))
            if isinstance(extent, PrimVar)
            else extent
            for extent in value.shape
        )
        return replace(value, name=argument.arg, shape=sizes, span=self.span(argument))

    def _return_type(self, tree: ast.FunctionDef) -> Type | None:
        if tree.returns is None or (isinstance(tree.returns, ast.Constant) and tree.returns.value is None):
            return None
        ty = self.read_type(tree.returns)
        if not isinstance(ty, (PrimType, TupleType)):
            raise self.fail("W114", f"a tensor-level function returns a scalar, not a {type_text(ty)}", tree.returns)
        return ty

    def body(self, trees: Sequence[ast.stmt], *, top: bool = False) -> Stmt:
        """The statements of a block as one statement."""
        stmts = self.statements(trees, top=top)
        return stmts[0] if len(stmts) == 1 else SeqStmt(tuple(stmts))

    def inner(self, trees: Sequence[ast.stmt]) -> Stmt:
        """The statements of an inner block, with a scope of their own."""
        saved, self.scope = self.scope, Scope(self.scope)
        try:
            return self.body(trees)
        finally:
            self.scope = saved

    def statements(self, trees: Sequence[ast.stmt], *, top: bool = False) -> list[Stmt]:
        """Statements in order; statement-form T.attr and T.launch_thread take the rest of the block as their body."""
        result: list[Stmt] = []
        for position, tree in enumerate(trees):
            if position == 0 and top and _is_docstring(tree):
                continue
            before, self.pending = self.pending, [] if isinstance(tree, _SIMPLE) else None
            views, self.views = self.views, []
            made: Any = attempt(self, tree, lambda tree=tree: self._statement(tree))
            result.extend((*self.views, *(self.pending or ())))
            self.pending, self.views = before, views
            if isinstance(made, FunctionType):  # a scope that reaches to the end of the block
                result.append(made(self.body(trees[position + 1 :])))
                return result
            if isinstance(made, list):
                result.extend(made)
            elif made is not None:
                result.append(made)
        return result

    def _statement(self, tree: ast.stmt) -> Any:
        method = self._STATEMENTS.get(type(tree))
        if method is None:
            raise self.unsupported(tree)
        return method(self, tree)

    def statement_list(self, trees: Sequence[ast.stmt]) -> list[Any]:
        """Statements in order."""
        return list(self.statements(trees))

    def expand_body(self, macro: Macro, tree: ast.Call) -> Any:
        """The value of a macro; what it computes before it stands before the statement around the call."""
        if isinstance(macro.body, ast.expr):
            return self.value(macro.body)
        stmts, value = self._macro_statements(macro)
        if value is MISSING:
            raise self.fail("W120", f"the macro '{macro.name}' gives no value", macro.body[-1], "end it with `return`")
        if stmts:
            if self.pending is None:
                raise self.fail(
                    "W115", f"the macro '{macro.name}' has statements, which cannot stand here", macro.body[0],
                    "assign its value to a name first",
                )  # fmt: skip
            if not _only_writes_its_own(stmts):
                raise self.fail(
                    "W115", f"the macro '{macro.name}' writes memory: it cannot stand inside an expression",
                    macro.body[0], "call it as a statement of its own",
                )  # fmt: skip
            self.pending.extend(stmts)
        return value

    def expand_statement(self, tree: ast.Call) -> list[Stmt] | None:
        """The statements of a macro that is called as one, or None for another call."""
        macro = self.static_path(tree.func)
        if not isinstance(macro, Macro) or isinstance(macro.body, ast.expr):
            return None
        return self.expand(macro, tree, self._statement_of_macro)

    def _statement_of_macro(self, macro: Macro, tree: ast.Call) -> list[Stmt]:
        stmts, value = self._macro_statements(macro)
        if isinstance(value, PrimExpr) and not isinstance(macro.body, ast.expr):
            raise self.fail("W115", f"the value of the macro '{macro.name}' is not used", macro.body[-1])
        return stmts

    def _macro_statements(self, macro: Macro) -> tuple[list[Stmt], Any]:
        """(statements, value or MISSING) of a macro whose parameters are bound."""
        saved = self.assigned, self.foreign
        self.assigned = {} if macro.hygienic else dict(self.assigned)
        self.foreign = macro.hygienic and macro.scope is None
        assert not isinstance(macro.body, ast.expr)
        self._prescan(macro.body)
        stmts: list[Stmt] = []
        try:
            value = self._until_return(list(macro.body), stmts)
            return stmts, value
        finally:
            self.assigned, self.foreign = saved

    def _until_return(self, trees: list[ast.stmt], stmts: list[Stmt]) -> Any:
        for position, tree in enumerate(trees):
            if isinstance(tree, ast.Return):
                stmts.extend(self.statements(trees[:position]))
                return MISSING if tree.value is None else self.value(tree.value)
            if isinstance(tree, ast.If) and _holds_return(tree):
                stmts.extend(self.statements(trees[:position]))
                chosen = tree.body if self.static_condition(tree.test) else tree.orelse
                return self._until_return([*chosen, *trees[position + 1 :]], stmts)
        stmts.extend(self.statements(trees))
        return MISSING

    def _nested_macro(self, tree: ast.FunctionDef) -> None:
        macro = macro_of(self, tree)
        if macro is None:
            raise self.fail(
                "W115", "a function inside a tensor-level function", tree, "decorate it with @T.inline or @T.macro"
            )
        self.scope.names[tree.name] = macro

    def conditional(self, condition: Any, tree: ast.IfExp) -> PrimExpr:
        """`a if c else b`: what only one side computes cannot stand before the statement."""
        before, self.pending = self.pending, None
        try:
            return super().conditional(condition, tree)
        finally:
            self.pending = before

    def _static_loop(self, tree: ast.For) -> list[Stmt]:
        """A loop over what is known while reading: its rounds one after another."""
        depth, self.loop_depth = self.loop_depth, 0  # a `break` below is none of a loop around this one
        try:
            return self.static_for(tree, self.iterable(self.value(tree.iter), tree.iter))
        finally:
            self.loop_depth = depth

    loop_hint = "loop over range(n), T.grid(n, m), T.serial(n), T.parallel(n), T.vectorized(n), T.unroll(n)"

    def _for(self, tree: ast.For) -> Any:
        call = tree.iter
        name = None
        if isinstance(call, ast.Call):
            name = self.dotted(call.func)
            if name is None and isinstance(call.func, ast.Name) and call.func.id == "range":
                name = "range"
        if name is None:
            return self._static_loop(tree)
        if name not in LOOPS or not isinstance(call, ast.Call):
            hint = did_you_mean(name, LOOPS) or self.loop_hint
            raise self.fail("W115", "this cannot be looped over", tree.iter, hint)
        if tree.orelse:
            raise self.fail("W115", "`else` of a loop is not part of the script", tree)
        if name == "T.grid":
            return self._grid(tree, call)
        if not isinstance(tree.target, ast.Name):
            raise self.fail("W113", f"{name} gives one variable", tree.target)
        return self._loop(tree, call, name)

    def _loop(self, tree: ast.For, call: ast.Call, name: str) -> Stmt:
        assert isinstance(tree.target, ast.Name)
        if name == "T.thread_binding":
            call = _with_named_thread(call)
        values = self.bind(LOOPS[name], call)
        start, stop, step = values["start"], values["stop"], values.get("step")
        extent = values.get("extent")
        if extent is None:
            if stop is None:
                start, stop = 0, start
            extent = self._difference(start, stop, call)
        for argument in (*call.args, *(keyword.value for keyword in call.keywords if keyword.arg not in _LOOP_TEXTS)):
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                raise self.fail("W114", f"a loop bound is an integer, got {argument.value!r}", argument)
        if name == "T.thread_binding" and not values["thread"]:
            raise self.fail("W113", "T.thread_binding lacks its argument 'thread'", call, 'thread="threadIdx.x"')
        if name == "T.thread_binding":
            self.thread_axis(values["thread"], call)
        if isinstance(step, int) and step <= 0:
            raise self.fail("W124", f"the step of a loop is positive, got {step}", call)
        if not isinstance(values.get("annotations") or EMPTY, FrozenMap):
            raise self.fail("W114", "the annotations of a loop are a dictionary", call)
        dtype = values.get("dtype") or loop_dtype(start, extent)
        var = PrimVar(tree.target.id, dtype, span=self.span(tree.target))
        body = self._loop_body([(tree.target.id, var, start, extent)], tree.body)
        return For(var, start, extent, body, _LOOP_KINDS[name], values.get("thread"), step,
                   values.get("annotations", EMPTY) or EMPTY, span=self.span(tree))  # fmt: skip

    def _grid(self, tree: ast.For, call: ast.Call) -> Stmt:
        extents = self.bind(LOOPS["T.grid"], call)["extents"]
        targets = tree.target.elts if isinstance(tree.target, (ast.Tuple, ast.List)) else [tree.target]
        groups = self._grid_groups(targets, len(extents), tree)
        names: list[tuple[str, PrimVar, Extent, Extent]] = []
        tuples: dict[str, tuple[PrimVar, ...]] = {}
        for target, count in groups:
            name = target.value if isinstance(target, ast.Starred) else target
            if not isinstance(name, ast.Name):
                raise self.fail("W115", "a loop variable is a name", target)
            made: list[PrimVar] = []
            for position in range(count if count >= 0 else 1):
                extent = extents[len(names)]
                written = f"{name.id}{position}" if count >= 0 else name.id
                if count < 0 and any(known == written for known, *_ in names):
                    raise self.fail("W118", f"two loop variables are named '{written}'", name)
                made.append(PrimVar(written, loop_dtype(0, extent), span=self.span(name)))
                names.append(("" if count >= 0 else written, made[-1], 0, extent))
            if count >= 0:
                tuples[name.id] = tuple(made)
        body = self._loop_body(names, tree.body, tuples)
        for _, var, start, extent in reversed(names):
            body = For(var, start, extent, body, span=self.span(tree))
        return body

    def _grid_groups(self, targets: Sequence[ast.expr], count: int, tree: ast.For) -> list[tuple[ast.expr, int]]:
        """Targets with how many loops each stands for; -1 for one loop as itself, not as a tuple."""
        if len(targets) == 1 and count != 1 and isinstance(tree.target, ast.Name):
            return [(targets[0], count)]  # `for i in T.grid(*shape)`: i is the tuple of all
        stars = [target for target in targets if isinstance(target, ast.Starred)]
        least = len(targets) - len(stars)
        if len(stars) > 1 or count < least or (not stars and count != least) or not count:
            raise self.fail("W113", f"T.grid has {count} extents for {len(targets)} variables", tree.target)
        return [(target, count - least if isinstance(target, ast.Starred) else -1) for target in targets]

    def _loop_body(
        self, names: list[tuple[str, PrimVar, Extent, Extent]], trees: Sequence[ast.stmt],
        tuples: dict[str, tuple[PrimVar, ...]] | None = None,
    ) -> Stmt:  # fmt: skip
        saved, self.scope = self.scope, Scope(self.scope)
        block, self.block = self.block, None
        loops, self.loops_here = self.loops_here, (*self.loops_here, *(var for _, var, *_ in names))
        self.scope.names.update(tuples or {})
        for name, var, start, extent in names:
            self.loops[var] = (start, extent)
            if not name:
                continue  # one of a tuple
            self.scope.names[name] = var
        self.loop_depth += 1
        try:
            return self.body(trees)
        finally:
            self.loop_depth -= 1
            self.scope, self.block, self.loops_here = saved, block, loops

    def _while(self, tree: ast.While) -> Stmt:
        if tree.orelse:
            raise self.fail("W115", "`else` of a loop is not part of the script", tree)
        condition = self._as_bool(self.prim(tree.test), tree.test, truthy=True)
        return While(condition, self._loop_body([], tree.body), span=self.span(tree))

    def _if(self, tree: ast.If) -> Any:
        chain: list[ast.If] = []
        current: ast.If | None = tree
        while current is not None:  # an elif chain is deep on the right; no recursion there
            chain.append(current)
            rest = current.orelse
            current = rest[0] if len(rest) == 1 and isinstance(rest[0], ast.If) else None
        last = chain[-1]
        parts: list[tuple[Any, list[Stmt]]] = []
        for item in chain:
            test = self.value(item.test)
            if self.known(test, item.test):
                if test:
                    return self._conditional_of(parts, self._nested(item.body))
                continue
            condition = self._as_bool(self.as_prim(test, item.test), item.test, truthy=True)
            parts.append((condition, self._nested(item.body)))
        return self._conditional_of(parts, self._nested(last.orelse) if last.orelse else None)

    def _nested(self, trees: Sequence[ast.stmt]) -> list[Stmt]:
        saved, self.scope = self.scope, Scope(self.scope)
        block, self.block = self.block, None
        try:
            return self.statements(trees)
        finally:
            self.scope, self.block = saved, block

    def _conditional_of(self, parts: list[tuple[Any, list[Stmt]]], last: list[Stmt] | None) -> Any:
        if not parts:
            return last or None
        result: Stmt | None = None if last is None else _as_one(last)
        for test, stmts in reversed(parts):
            result = IfThenElse(test, _as_one(stmts), result, span=test.span)
        return result

    def _with(self, tree: ast.With) -> Any:
        if len(tree.items) != 1:
            outer = ast.copy_location(
                ast.With(tree.items[:1], [ast.copy_location(ast.With(tree.items[1:], tree.body), tree)]), tree
            )
            return self._with(outer)
        item = tree.items[0]
        call = item.context_expr
        name = self.dotted(call.func) if isinstance(call, ast.Call) else None
        method = self._SCOPE_METHODS.get(name or "")
        if method is None or not isinstance(call, ast.Call):
            if name is not None and why_unread(name) is not None:
                raise self.unknown(name, call)
            hint = did_you_mean(name or "", self._SCOPE_METHODS)
            raise self.fail("W115", f"`with {ast.unparse(call)[:40]}` is not part of the script", call, hint)
        return method(self, tree, call, item.optional_vars)

    def _with_block(self, tree: ast.With, call: ast.Call, target: ast.expr | None) -> Stmt:
        axes, call = self.early_axes(call, target)
        values = self.bind(SCOPES["T.block"], call)
        header = BlockHeader(values["name"])
        saved_scope, self.scope = self.scope, Scope(self.scope)
        saved_block, self.block = self.block, header
        loops, self.loops_here = self.loops_here, ()
        self.early_variables(header, axes, target, call)
        try:
            body = self.body(tree.body)
        finally:
            self.scope, self.block, self.loops_here = saved_scope, saved_block, loops
        own = self.early_bindings(header, call) if axes else []
        self._check_bound(header, values["no_realize"], call)
        made: Stmt = Block(
            header.name, body, tuple(header.iter_vars), header.predicate, header.reads, header.writes, header.init,
            tuple(header.alloc_buffers), tuple(header.match_buffers), header.annotations, span=self.span(call),
            bare=values["no_realize"] and not header.iter_vars,
        )  # fmt: skip
        for item in reversed(own):
            assert isinstance(item.value, PrimVar)
            made = For(item.value, item.start, item.extent, made, span=self.span(tree))
        return made

    def _check_bound(self, header: BlockHeader, bare: bool, call: ast.Call) -> None:
        """W113 for a variable that is bound to nothing, or that is bound where nothing is."""
        for item in header.iter_vars:
            place = item.span or self.span(call)
            if item.value is None and not bare:
                message = f"the block variable '{item.var.name}' is bound to nothing"
                raise fail("W113", message, place, "or say no_realize=True")
            if item.value is not None and bare:
                message = f"the block variable '{item.var.name}' is bound to a value, and the block to nothing"
                raise fail("W113", message, place, "leave out no_realize=True")
        if bare and header.predicate is not None:
            raise fail("W113", "a block that is bound to nothing has no predicate", self.span(call))

    def _with_init(self, tree: ast.With, call: ast.Call, target: ast.expr | None) -> None:
        header = self._header(call, "T.init")
        self.bind(SCOPES["T.init"], call)
        if header.init is not None:
            raise self.fail("W118", "a block has one T.init", call)
        saved, self.scope = self.scope, Scope(self.scope)
        block, self.block = self.block, None
        try:
            header.init = self.body(tree.body)
        finally:
            self.scope, self.block = saved, block

    def _with_seq(self, tree: ast.With, call: ast.Call, target: ast.expr | None) -> Stmt:
        self.bind(SCOPES["T.seq"], call)
        saved, self.scope = self.scope, Scope(self.scope)
        block, self.block = self.block, None
        try:
            return SeqStmt(tuple(self.statements(tree.body)), span=self.span(call))
        finally:
            self.scope, self.block = saved, block

    def _with_attr(self, tree: ast.With, call: ast.Call, target: ast.expr | None) -> Stmt:
        return self._attr_statement(call)(self.nested_one(tree.body))

    def nested_one(self, trees: Sequence[ast.stmt]) -> Stmt:
        """The statements of an inner block as one."""
        return _as_one(self._nested(trees))

    def _with_let(self, tree: ast.With, call: ast.Call, target: ast.expr | None) -> list[Stmt]:
        early = self.early_let(call, target)
        if early is not None:
            target, value = early
            call = ast.copy_location(ast.Call(call.func, [KnownValue(value, call)], []), call)
        values = self.bind(SCOPES["T.LetStmt"], call)
        if isinstance(values["var"], ast.Name):
            target = values["var"]
        if not isinstance(target, ast.Name):
            raise self.fail("W113", "T.LetStmt needs a name", call, "with T.LetStmt(value) as v:")
        saved, self.scope = self.scope, Scope(self.scope)
        try:
            declared, _ = self._declared(values["type_annotation"])
            if declared is not None and declared.dtype != values["value"].dtype:
                stated = f"'{target.id}' is declared {declared.dtype}, the value is {values['value'].dtype}"
                raise self.fail("W123", stated, values["type_annotation"])
            return [self._bind_name(target, values["value"], declared, call), *self.statements(tree.body)]
        finally:
            self.scope = saved

    def _with_allocation(self, tree: ast.With, call: ast.Call, target: ast.expr | None) -> list[Stmt]:
        """`with T.allocate(...) as A:`, `with T.decl_buffer(...) as A:`: the name lives as long as the block."""
        if not isinstance(target, ast.Name):
            raise self.fail("W113", "the allocation needs a name", call, "with T.allocate(...) as A:")
        saved, self.scope = self.scope, Scope(self.scope)
        try:
            made = self._assign_name(target, call, None, tree)
            first = made if isinstance(made, list) else [made]
            return [*(item for item in first if item is not None), *self.statements(tree.body)]
        finally:
            self.scope = saved

    def _with_assert(self, tree: ast.With, call: ast.Call, target: ast.expr | None) -> list[Stmt]:
        """`with T.Assert(condition, message):`: the assertion, then the statements."""
        if len(call.args) != 2 or call.keywords:
            raise self.fail("W113", "T.Assert takes a condition and a message", call)
        first = self._assert(ast.copy_location(ast.Assert(call.args[0], call.args[1]), call))
        return [*([first] if first is not None else []), *self._nested(tree.body)]

    def _with_launch(self, tree: ast.With, call: ast.Call, target: ast.expr | None) -> Stmt:
        values = self.bind(LOOPS["T.launch_thread"], call)
        saved, self.scope = self.scope, Scope(self.scope)
        try:
            name = target.id if isinstance(target, ast.Name) else None
            wrap = self._launch(name, values, call, target or call)
            return wrap(self.nested_one(tree.body))
        finally:
            self.scope = saved

    def _assert(self, tree: ast.Assert) -> Stmt | None:
        test = self.value(tree.test)
        message = self.value(tree.msg) if tree.msg is not None else ""
        kind, parts = "AssertionError", ()
        if isinstance(message, (tuple, list)):
            if len(message) != 2 or not isinstance(message[0], str):
                raise self.fail("W114", "expected a message or (kind, message)", tree)
            kind, message = message
            parts = tuple(map(str, message)) if isinstance(message, (list, tuple)) else (message,)
            message = "".join(parts) if all(isinstance(part, str) for part in parts) else message
        if not isinstance(message, str):
            raise self.fail("W114", f"the message of an assertion is a string, got {describe(message)}", tree)
        condition = self._as_bool(self.as_prim(test, tree.test), tree.test)
        if not isinstance(condition, PrimExpr):
            condition = const(bool(condition), "bool")
        return AssertStmt(condition, message, kind, parts, span=self.span(tree))

    def _return(self, tree: ast.Return) -> Stmt:
        if tree.value is None or (isinstance(tree.value, ast.Constant) and tree.value.value is None):
            return Return(span=self.span(tree))
        return Return(self.prim(tree.value), span=self.span(tree))

    def _break(self, tree: ast.Break) -> Stmt:
        if not self.loop_depth:
            raise self.fail("W115", "`break` outside a loop", tree)
        return Break(span=self.span(tree))

    def _continue(self, tree: ast.Continue) -> Stmt:
        if not self.loop_depth:
            raise self.fail("W115", "`continue` outside a loop", tree)
        return Continue(span=self.span(tree))

    _STATEMENTS: ClassVar[dict[type, Callable[[Any, Any], Any]]] = {}

    _SCOPE_METHODS: ClassVar[dict[str, Callable[[Any, ast.With, ast.Call, ast.expr | None], Any]]] = {}


_R = TensorReader
TensorReader._STATEMENTS = {
    ast.Pass: _R._pass,
    ast.Expr: _R._expression,
    ast.Assign: _R._assign,
    ast.AnnAssign: _R._annotated,
    ast.AugAssign: _R._augmented,
    ast.For: _R._for,
    ast.While: _R._while,
    ast.If: _R._if,
    ast.With: _R._with,
    ast.Assert: _R._assert,
    ast.Return: _R._return,
    ast.Break: _R._break,
    ast.Continue: _R._continue,
    ast.FunctionDef: _R._nested_macro,
}
TensorReader._SCOPE_METHODS = {
    "T.block": _R._with_block,
    "T.init": _R._with_init,
    "T.seq": _R._with_seq,
    "T.attr": _R._with_attr,
    "T.LetStmt": _R._with_let,
    "T.launch_thread": _R._with_launch,
    "T.Assert": _R._with_assert,
    "T.allocate": _R._with_allocation,
    "T.allocate_const": _R._with_allocation,
    "T.decl_buffer": _R._with_allocation,
    "T.alloc_buffer": _R._with_allocation,
    "T.realize": _R._with_realize,
    "T.hint": _R._with_hint,
    "T.If": _R._with_if,
    "T.While": _R._with_while,
}


def _with_named_thread(call: ast.Call) -> ast.Call:
    """`T.thread_binding(8, "threadIdx.x")` with the axis by keyword, where its place holds it otherwise."""
    last = call.args[-1] if call.args else None
    if not (isinstance(last, ast.Constant) and isinstance(last.value, str)):
        return call
    keyword = ast.copy_location(ast.keyword("thread", last), last)
    return ast.copy_location(ast.Call(call.func, call.args[:-1], [keyword, *call.keywords]), call)


_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)


def _holds_return(tree: ast.If) -> bool:
    return any(
        isinstance(item, ast.Return) or (isinstance(item, ast.If) and _holds_return(item))
        for item in (*tree.body, *tree.orelse)
    )


def _only_writes_its_own(stmts: list[Stmt]) -> bool:
    """Whether statements change nothing but memory that they allocate, so that they may run a little earlier."""
    own: set[Any] = set()
    for stmt in stmts:
        for node in walk(stmt):
            if isinstance(node, AllocBuffer):
                own.add(node.buffer)
            elif isinstance(node, Block):
                own.update(node.alloc_buffers)
            elif isinstance(node, BufferStore) and node.buffer not in own:
                return False
            elif isinstance(node, (Evaluate, AssertStmt, Return, PrimCall)) and not _is_pure_call(node):
                return False
    return True


def _is_pure_call(node: Any) -> bool:
    if not isinstance(node, PrimCall) or not isinstance(node.op, str):
        return False
    entry = INTRINSICS.get(node.op)
    return entry is not None and entry.pure


def _as_one(stmts: list[Stmt]) -> Stmt:
    return stmts[0] if len(stmts) == 1 else SeqStmt(tuple(stmts))


def _is_docstring(tree: ast.stmt) -> bool:
    return isinstance(tree, ast.Expr) and isinstance(tree.value, ast.Constant) and isinstance(tree.value.value, str)
