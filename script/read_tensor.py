"""Reading `@T.prim_func`: statements over buffers.

Names follow Python's blocks: a loop variable is visible in its loop, a name bound in a block until the block ends.
A name that is assigned once is an immutable binding; one that is assigned again is a local scalar in memory.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from weft.ir import dtype as dtypes
from weft.ir.dim import DimExpr
from weft.ir.graph import Expr, GlobalVar, StringImm
from weft.ir.intrinsics import INTRINSICS
from weft.ir.node import EMPTY, FrozenMap, Node, replace
from weft.ir.prim import as_expr, binary, cast, const, intrinsic, unary
from weft.ir.structural import structural_equal
from weft.ir.tensor import (
    AllocBuffer,
    AssertStmt,
    AttrStmt,
    Binary,
    Bind,
    Block,
    Break,
    Buffer,
    BufferLoad,
    BufferRegion,
    BufferStore,
    Cast,
    Continue,
    DeclBuffer,
    Evaluate,
    Extent,
    FloatImm,
    For,
    IfThenElse,
    IntImm,
    IterVar,
    Let,
    MatchBufferRegion,
    PrimCall,
    PrimExpr,
    PrimFunc,
    PrimVar,
    Ramp,
    Range,
    Return,
    Select,
    SeqStmt,
    Stmt,
    While,
)
from weft.ir.types import PrimType, Type
from weft.script.diagnostics import did_you_mean
from weft.script.reader import ModuleScope, Reader, Scope, describe, is_plain
from weft.script.source import MISSING, Unit
from weft.script.syntax import ALL_FORMS, BUFFERS, CALLED_KINDS, CLAUSES, LOOPS, SCALARS, SCOPES, UNARY

__all__ = ["DTYPE_FIRST", "RESULT_DTYPES", "TensorReader", "axis_dtype", "index_const", "is_device_name", "loop_dtype"]

# Calls whose first argument is the dtype of the result, as the field writes them; the dtype that others have by default.
DTYPE_FIRST = ("call_extern", "call_pure_extern", "call_llvm_intrin", "call_llvm_pure_intrin", "reinterpret")
RESULT_DTYPES = {
    "call_packed": "int32", "call_cpacked": "int32", "tvm_call_packed": "int32", "address_of": "handle",
    "access_ptr": "handle", "handle_add_byte_offset": "handle", "q_multiply_shift": "int32", "vscale": "int32",
    "assume": "bool", "print_buffer": "void",
}  # fmt: skip
_DEVICE_PREFIXES = (
    "tvm_", "ptx", "cuda", "mma_", "simdgroup", "make_filled", "nvshmem", "metal", "webgpu", "nki", "dma_", "start_profile",
    "end_profile", "texture2d", "mem_copy", "create_barriers", "thread_return", "anylist", "prefetch",
)  # fmt: skip
_LOOP_KINDS = {"T.serial": "serial", "range": "serial", "T.parallel": "parallel", "T.vectorized": "vectorized",
               "T.unroll": "unrolled", "T.thread_binding": "thread_binding"}  # fmt: skip
_AXIS_LETTERS = {"S": "spatial", "R": "reduce", "C": "scan", "O": "opaque"}


def is_device_name(name: str) -> bool:
    """Whether an unknown intrinsic is one of a device (read as an opaque call)."""
    return name.startswith(_DEVICE_PREFIXES)


def loop_dtype(start: Extent, extent: Extent) -> str:
    """The dtype of a loop variable: that of its extent or start, int32 for plain numbers."""
    for value in (extent, start):
        if isinstance(value, PrimExpr):
            return value.dtype
    return "int32"


def axis_dtype(extent: Extent, value: PrimExpr | None) -> str:
    """The dtype of a block variable: that of its extent, else of what it is bound to."""
    if isinstance(extent, PrimExpr):
        return extent.dtype
    return value.dtype if value is not None else "int32"


def index_const(value: int) -> IntImm:
    """The expression of a literal index."""
    made = as_expr(value)
    assert isinstance(made, IntImm)
    return made


class _Symbols(dict[str, PrimVar]):
    """The symbols of a function by name."""


class _BlockHeader:
    """What the clauses of a block say."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.iter_vars: list[IterVar] = []
        self.predicate: PrimExpr | None = None
        self.reads: tuple[BufferRegion, ...] | None = None
        self.writes: tuple[BufferRegion, ...] | None = None
        self.init: Stmt | None = None
        self.alloc_buffers: list[Buffer] = []
        self.match_buffers: list[MatchBufferRegion] = []
        self.annotations: FrozenMap = EMPTY


class TensorReader(Reader):
    """Reads one tensor-level function."""

    def __init__(self, unit: Unit, module: ModuleScope) -> None:
        super().__init__(unit, module)
        self.variables = _Symbols()
        self.symbol_dtypes: dict[str, str] = {}
        self.loops: dict[PrimVar, For | tuple[Extent, Extent]] = {}
        self.block: _BlockHeader | None = None
        self.attrs: FrozenMap = EMPTY
        self.assigned: dict[str, int] = {}
        self.params: list[Buffer | PrimVar] = []
        self.threads: dict[str, str] = {}
        self.loop_depth = 0

    # -- functions -----------------------------------------------------------------------------------------------------

    def function(self, tree: ast.FunctionDef, *, private: bool = False, name: str | None = None) -> PrimFunc:
        """The function that a definition stands for."""
        self._check_arguments(tree.args)
        self._prescan(tree.body)
        self.defining = True
        arguments = [*tree.args.posonlyargs, *tree.args.args]
        for argument in arguments:  # scalars first: shapes may mention a scalar parameter
            self._scalar_parameter(argument)
        for argument in arguments:
            if argument.arg not in self.scope.names:
                self._buffer_parameter(argument)
        self.params = [self.scope.names[argument.arg] for argument in arguments]
        self.defining = False
        ret_type = self._return_type(tree)
        self.scope = Scope(self.scope)
        body = self.body(tree.body, top=True)
        return PrimFunc(
            tuple(self.params), body, ret_type, private, self.attrs, name or tree.name, span=self.unit.name_span(tree)
        )

    def _check_arguments(self, arguments: ast.arguments) -> None:
        for extra in (arguments.vararg, arguments.kwarg, *arguments.kwonlyargs):
            if extra is not None:
                raise self.fail("W115", f"parameter '{extra.arg}': only plain parameters can be compiled", extra)
        if arguments.defaults:
            raise self.fail("W115", "a tensor-level function has no default arguments", arguments.defaults[0])
        seen: set[str] = set()
        for argument in (*arguments.posonlyargs, *arguments.args):
            if argument.arg in seen:
                raise self.fail("W118", f"two parameters are named '{argument.arg}'", argument)
            seen.add(argument.arg)

    def _prescan(self, body: Sequence[ast.stmt]) -> None:
        """How often each name is assigned, and the dtypes that `n = T.int32()` gives to symbols."""
        for statement in body:
            for node in ast.walk(statement):
                if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
                    self._prescan_assignment(node)

    def _prescan_assignment(self, node: ast.Assign | ast.AnnAssign | ast.AugAssign) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            for item in target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]:
                if isinstance(item, ast.Name):
                    self.assigned[item.id] = self.assigned.get(item.id, 0) + 1
        if isinstance(node, ast.Assign) and len(targets) == 1 and isinstance(targets[0], ast.Name):
            dtype = self.symbol_declaration(node.value)
            if dtype is not None:
                self.symbol_dtypes[targets[0].id] = dtype

    def symbol_declaration(self, tree: ast.expr) -> str | None:
        """The dtype of `T.int64()` (a new symbol), or None for another expression."""
        if isinstance(tree, ast.Call) and not tree.args:
            name = self.dotted(tree.func)
            if name == "T.var" or name == "T.dyn":
                return "int64"
            dtype = self.dtype_name(name) if name and not tree.keywords else None
            if dtype is not None and dtypes.is_integer(dtype):
                return dtype
        return None

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

    def _handle_annotation(self, annotation: ast.expr, place: ast.AST) -> PrimVar | None:
        name = getattr(place, "arg", "") or getattr(place, "id", "")
        if self.dotted(annotation) == "T.handle":
            return PrimVar(name, "handle", span=self.span(place))
        if isinstance(annotation, ast.Call) and self.dotted(annotation.func) in ("T.handle", "T.Ptr"):
            values = [self.constant(item) for item in annotation.args]
            if len(values) > 2 or annotation.keywords:
                raise self.fail("W113", "T.handle takes a dtype and a scope", annotation)
            pointee = self.fold(lambda: dtypes.check_dtype(values[0]), annotation) if values else None
            return PrimVar(name, "handle", pointee, values[1] if len(values) > 1 else "global", span=self.span(place))
        return None

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

    def _described_buffer(self, value: Buffer, argument: ast.arg) -> Buffer:
        """A parameter described by a buffer outside the script; variables in its shape become symbols of the function."""
        sizes = tuple(
            self.dim_text(extent.name, argument.annotation or ast.Constant(0)) if isinstance(extent, PrimVar) else extent
            for extent in value.shape
        )
        return replace(value, name=argument.arg, shape=sizes, span=self.span(argument))

    def _return_type(self, tree: ast.FunctionDef) -> Type | None:
        if tree.returns is None or (isinstance(tree.returns, ast.Constant) and tree.returns.value is None):
            return None
        return self.read_type(tree.returns)

    # -- names ---------------------------------------------------------------------------------------------------------

    def symbol_value(self, name: str, tree: ast.AST) -> PrimVar:
        """The variable of a symbol."""
        found = self.variables.get(name)
        if found is None:
            dtype = self.symbol_dtypes.get(name) or self.unit.symbols.get(name) or "int64"
            found = self.variables[name] = PrimVar(name, dtype, span=self.span(tree))
            self.symbols.add(name)
        return found

    def use_symbol(self, name: str, tree: ast.expr) -> None:
        """A name in a string shape: a symbol, or a scalar parameter."""
        if name in self.variables or name in self.symbols:
            return
        super().use_symbol(name, tree)

    def captured(self, value: Any, name: str, tree: ast.AST) -> Any:
        """Captured values; a symbol of weft becomes the function's variable of that name."""
        made = super().captured(value, name, tree)
        if isinstance(made, DimExpr):
            self.defining, before = True, self.defining
            try:
                return self.dim_text(str(made), tree)  # type: ignore[arg-type]
            finally:
                self.defining = before
        return made

    def declared_outside(self, name: str, variable: PrimVar, tree: ast.AST) -> PrimVar:
        """A symbol declared outside the script keeps its dtype."""
        self.symbol_dtypes.setdefault(name, variable.dtype)
        return self.symbol_value(name, tree)

    def dim_text(self, text: str, tree: ast.expr) -> Any:
        """A size written as a string: a scalar expression over symbols."""
        if text.isidentifier():
            self.use_symbol(text, tree)
            return self.symbol_value(text, tree)
        inner = self.text_tree(text, tree)
        for node in ast.walk(inner):
            if (
                isinstance(node, ast.Name)
                and node.id not in ("min", "max", "ceildiv")
                and self.unit.namespace(node.id) is None
            ):
                self.use_symbol(node.id, tree)
                self.symbol_value(node.id, tree)
        saved = self.scope
        self.scope = Scope()
        self.scope.names.update(self.variables)
        try:
            return self.value(inner)
        finally:
            self.scope = saved

    def lookup(self, name: str, tree: ast.AST) -> Any:
        """The meaning of a name; symbols count as names."""
        found = self.scope.get(name)
        if found is MISSING and name in self.variables:
            return self.variables[name]
        return super().lookup(name, tree)

    # -- expressions ---------------------------------------------------------------------------------------------------

    def prim(self, tree: ast.expr, like: str | None = None) -> PrimExpr:
        """A scalar expression; plain numbers take the dtype `like`."""
        return self.as_prim(self.value(tree), tree, like)

    def as_prim(self, value: Any, tree: ast.AST, like: str | None = None) -> PrimExpr:
        """A value as a scalar expression."""
        if isinstance(value, PrimExpr):
            return value
        if isinstance(value, BufferRegion):
            return self._vector_load(value, tree)
        if isinstance(value, Buffer):
            if value.shape in ((1,), ()) or value.name in self.scalars:
                zeros = tuple(index_const(0) for _ in value.shape)
                return BufferLoad(value, zeros, span=self.span(tree))
            raise self.fail("W121", f"'{value.name}' is a buffer: give {value.ndim} indices", tree)
        if isinstance(value, str):
            return StringImm(value, span=self.span(tree))  # type: ignore[return-value]
        if isinstance(value, (bool, int, float)):
            return self.fold(lambda: as_expr(value) if like is None else _literal(value, like), tree)
        raise self.fail("W114", f"expected a scalar, got {describe(value)}", tree)

    scalars: frozenset[str] = frozenset()

    def read_prim(self, tree: ast.expr) -> PrimExpr:
        """A scalar expression as an argument."""
        return self.prim(tree)

    def read_prims(self, tree: ast.expr) -> tuple[PrimExpr, ...]:
        """A list of scalar expressions."""
        value = self.value(tree)
        if not isinstance(value, (tuple, list)):
            raise self.fail("W114", f"expected a list, got {describe(value)}", tree)
        return tuple(self.as_prim(item, tree) for item in value)

    def read_extent(self, tree: ast.expr) -> Extent:
        """A size: a plain number or an expression (typed constants say the dtype of a loop variable)."""
        return self.as_extent(self.value(tree), tree)

    def as_extent(self, value: Any, tree: ast.expr) -> Extent:
        """A value as a size."""
        if isinstance(value, str):
            value = self.dim_text(value, tree)
        if isinstance(value, DimExpr):
            value = self.captured(value, str(value), tree)
        if isinstance(value, PrimExpr) and not isinstance(value, FloatImm) and dtypes.is_float(value.dtype):
            raise self.fail("W123", f"a size must be an integer, got {value.dtype}", tree)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        if isinstance(value, float):
            raise self.fail("W123", f"a size must be an integer, got {value!r}", tree)
        return self.as_prim(value, tree)

    def read_extents(self, tree: ast.expr) -> tuple[Extent, ...]:
        """A shape: a tuple of sizes, or one size."""
        value = self.value(tree)
        if isinstance(value, (tuple, list)):
            if isinstance(tree, (ast.Tuple, ast.List)) and len(tree.elts) == len(value):
                return tuple(self.as_extent(item, place) for item, place in zip(value, tree.elts, strict=True))
            return tuple(self.as_extent(item, tree) for item in value)
        return (self.as_extent(value, tree),)

    def combine(self, kind: str, left: Any, right: Any, tree: ast.AST) -> Any:
        """A scalar operation."""
        if kind == "pow":
            return self.fold(
                lambda: intrinsic("pow", self._side(left, tree), self._side(right, tree), span=self.span(tree)), tree
            )
        if kind == "matmul":
            raise self.fail("W115", "`@` is not a scalar operation", tree, "write the loops of the product")
        a, b = self._side(left, tree), self._side(right, tree)
        if kind in ("and", "or"):
            a, b = self._as_bool(a, tree), self._as_bool(b, tree)
        return self.fold(lambda: binary(kind, a, b, self.span(tree)), tree)

    def _side(self, value: Any, tree: ast.AST) -> Any:
        if isinstance(value, (bool, int, float)):
            return value
        return self.as_prim(value, tree)

    def _as_bool(self, value: Any, tree: ast.AST) -> Any:
        if isinstance(value, (int, float)):
            return bool(value)
        if not dtypes.is_bool(dtypes.element(value.dtype)):
            raise self.fail("W123", f"expected a condition (bool), got {value.dtype}", tree, "compare it: `x != 0`")
        return value

    def combine_unary(self, kind: str, operand: Any, tree: ast.AST) -> Any:
        """A scalar operation on one operand."""
        value = self.as_prim(operand, tree)
        return self.fold(lambda: unary(kind, value, self.span(tree)), tree)

    def conditional(self, condition: Any, tree: ast.IfExp) -> PrimExpr:
        """`a if c else b`: only the chosen value is evaluated."""
        test = self._as_bool(self.as_prim(condition, tree.test), tree.test)
        a, b = self._common(self.value(tree.body), self.value(tree.orelse), tree)
        return PrimCall("if_then_else", (test, a, b), a.dtype, span=self.span(tree))

    def _common(self, left: Any, right: Any, tree: ast.AST) -> tuple[PrimExpr, PrimExpr]:
        """Two values in their common dtype."""
        a, b = self._side(left, tree), self._side(right, tree)
        made = self.fold(lambda: binary("max", a, b), tree)
        assert isinstance(made, Binary)
        return made.a, made.b

    def builtin_of(self, name: str, values: list[Any], tree: ast.Call) -> Any:
        """`min(i, j)`, `abs(x)`, `float(i)` and the like on scalars."""
        if name in ("min", "max") and len(values) > 1:
            result = self._side(values[0], tree)
            for value in values[1:]:
                result = self.combine(name, result, value, tree)
            return result
        if name == "abs" and len(values) == 1:
            return self.fold(lambda: intrinsic("abs", self.as_prim(values[0], tree), span=self.span(tree)), tree)
        if name == "ceildiv" and len(values) == 2:
            return self._ceildiv(values[0], values[1], tree)
        return super().builtin_of(name, values, tree)

    def _ceildiv(self, a: Any, b: Any, tree: ast.AST) -> PrimExpr:
        above = self.binary("sub", self.binary("add", a, b, tree), 1, tree)
        return self.binary("floordiv", above, b, tree)

    # -- calls ---------------------------------------------------------------------------------------------------------

    def call_named(self, name: str, tree: ast.Call) -> Any:
        """A call of a name of T."""
        method = self._TENSOR_FORMS.get(name)
        if method is not None:
            return method(self, tree)
        if name in CALLED_KINDS:
            return self._operator_call(CALLED_KINDS[name], name, tree)
        if name in SCALARS:
            return self._scalar_form(name, tree)
        dtype = self.dtype_name(name)
        if dtype is not None:
            return self._typed(dtype, tree)
        if name.startswith("T."):
            short = name[2:]
            if short in INTRINSICS:
                return self._intrinsic(short, tree)
            if name in BUFFERS or name in LOOPS or name in SCOPES or name in CLAUSES:
                raise self.fail("W114", f"`{name}` cannot stand inside an expression", tree)
            if is_device_name(short):
                return self._opaque(short, tree)
        return super().call_named(name, tree)

    def extra_names(self, root: str) -> list[str]:
        """Intrinsics, for suggestions."""
        return [f"T.{name}" for name in INTRINSICS] if root == "T" else []

    def _operator_call(self, kind: str, name: str, tree: ast.Call) -> PrimExpr:
        """`T.max(a, b)` and the like."""
        values = self._values(tree)
        if kind in UNARY:
            if len(values) != 1:
                raise self.fail("W113", f"{name} takes 1 argument, got {len(values)}", tree)
            return self.combine_unary(kind, values[0], tree)
        if len(values) != 2:
            raise self.fail("W113", f"{name} takes 2 arguments, got {len(values)}", tree)
        left, right = (self._side(value, tree) for value in values)
        if not isinstance(left, PrimExpr) and not isinstance(right, PrimExpr):
            left = as_expr(left)
        if kind == "div":  # T.Div divides integers too, as C does
            made = self._common(left, right, tree)
            return Binary("div", *made, span=self.span(tree))
        return self.combine(kind, left, right, tree)

    def _values(self, tree: ast.Call, keywords: Sequence[str] = ()) -> list[Any]:
        for keyword in tree.keywords:
            if keyword.arg not in keywords and keyword.arg != "span":
                raise self.fail("W113", f"`{ast.unparse(tree.func)}` has no argument '{keyword.arg}'", keyword)
        return [self.value(argument) for argument in self._spread(tree)]

    def _scalar_form(self, name: str, tree: ast.Call) -> PrimExpr:
        values = self.bind(SCALARS[name], tree)
        return SCALARS[name].build(**values, span=self.span(tree))  # type: ignore[misc]

    def _cast(self, tree: ast.Call) -> PrimExpr:
        """`T.Cast("float32", x)`; `T.cast(x, "float32")` is the same."""
        named = {keyword.arg: self.value(keyword.value) for keyword in tree.keywords}
        values = [self.value(argument) for argument in self._spread(tree)]
        if "dtype" in named:
            values.insert(0, named.pop("dtype"))
        values.extend(named.values())
        if len(values) == 2 and isinstance(values[1], str):
            values.reverse()
        if len(values) != 2 or not isinstance(values[0], (str, np.dtype)):
            raise self.fail("W113", "T.Cast takes a dtype and a value", tree, 'T.Cast("float32", value)')
        dtype = self.fold(lambda: dtypes.check_dtype(values[0]), tree)
        return Cast(dtype, self.as_prim(values[1], tree), span=self.span(tree))

    def _select(self, tree: ast.Call) -> PrimExpr:
        values = self._values(tree)
        if len(values) != 3:
            raise self.fail(
                "W113",
                f"T.Select takes 3 arguments, got {len(values)}",
                tree,
                "T.Select(condition, true_value, false_value)",
            )
        a, b = self._common(values[1], values[2], tree)
        return Select(self._as_bool(self.as_prim(values[0], tree), tree), a, b, span=self.span(tree))

    def _if_then_else(self, tree: ast.Call) -> PrimExpr:
        values = self._values(tree)
        if len(values) != 3:
            raise self.fail("W113", f"T.if_then_else takes 3 arguments, got {len(values)}", tree)
        a, b = self._common(values[1], values[2], tree)
        return PrimCall(
            "if_then_else", (self._as_bool(self.as_prim(values[0], tree), tree), a, b), a.dtype, span=self.span(tree)
        )

    def _let(self, tree: ast.Call) -> PrimExpr:
        values = self.bind(SCALARS["T.Let"], tree)
        where = values["where"]
        bindings: list[tuple[PrimVar, PrimExpr]] = []
        saved = self.scope
        try:
            for key, item in zip(where.keys, where.values, strict=True):
                value = self.prim(item)
                var = PrimVar(key.id, value.dtype, span=self.span(key))
                bindings.append((var, value))
                self.scope = Scope(self.scope)
                self.scope.names[key.id] = var
            result = self.prim(values["body"])
        finally:
            self.scope = saved
        for var, value in reversed(bindings):
            result = Let(var, value, result, span=self.span(tree))
        return result

    def read_where(self, tree: ast.expr) -> ast.Dict:
        """The bindings of T.Let: `{v: value}`."""
        if not isinstance(tree, ast.Dict) or not all(isinstance(key, ast.Name) for key in tree.keys):
            raise self.fail("W114", "expected {v: value}", tree)
        return tree

    def _typed(self, dtype: str, tree: ast.Call) -> PrimExpr:
        """`T.float32(1)`: a constant of a dtype; of an expression, a cast."""
        if len(tree.args) != 1 or tree.keywords:
            hint = f"a symbol is declared by an assignment: `n = T.{dtype}()`" if not tree.args else None
            raise self.fail("W113", f"T.{dtype} takes 1 argument, got {len(tree.args)}", tree, hint)
        value = self.value(tree.args[0])
        return self.typed_value(dtype, value, tree)

    def typed_value(self, dtype: str, value: Any, tree: ast.AST) -> PrimExpr:
        """A constant of a dtype, or a cast of an expression."""
        if isinstance(value, str) and dtypes.is_float(dtype):
            return FloatImm(self.float_text(value, tree), dtype, span=self.span(tree))
        if isinstance(value, (bool, int, float)):
            return self.fold(lambda: const(value, dtype), tree)
        return self.fold(lambda: cast(dtype, self.as_prim(value, tree)), tree)

    def float_text(self, text: str, tree: ast.AST) -> float:
        """A float written as a string: nan, inf, -inf."""
        try:
            return float(text)
        except ValueError:
            raise self.fail("W152", f"{text!r} is not a number", tree) from None

    def _limit(self, name: str) -> Callable[[ast.Call], PrimExpr]:
        def read(tree: ast.Call) -> PrimExpr:
            values = self._values(tree)
            if len(values) != 1:
                raise self.fail("W113", f"{name} takes a dtype", tree)
            dtype = self.fold(lambda: dtypes.check_dtype(values[0]), tree)
            if name == "T.infinity":
                return FloatImm(float("inf"), dtype, span=self.span(tree))
            bound = dtypes.min_value(dtype) if name == "T.min_value" else dtypes.max_value(dtype)
            return self.fold(lambda: const(bound, dtype), tree)

        return read

    def _infinity(self, tree: ast.Call) -> PrimExpr:
        return self._limit("T.infinity")(tree)

    def _min_value(self, tree: ast.Call) -> PrimExpr:
        return self._limit("T.min_value")(tree)

    def _max_value(self, tree: ast.Call) -> PrimExpr:
        return self._limit("T.max_value")(tree)

    def _ceildiv_call(self, tree: ast.Call) -> Any:
        values = self._values(tree)
        if len(values) != 2:
            raise self.fail("W113", f"T.ceildiv takes 2 arguments, got {len(values)}", tree)
        return self._ceildiv(values[0], values[1], tree)

    def _intrinsic(self, name: str, tree: ast.Call) -> PrimExpr:
        entry = INTRINSICS[name]
        if entry.rule == "given":
            return self._given(name, tree)
        values = [self._side(value, tree) for value in self._values(tree)]
        if entry.arity >= 0 and len(values) != entry.arity:
            many = "s" if entry.arity != 1 else ""
            raise self.fail("W113", f"T.{name} takes {entry.arity} argument{many}, got {len(values)}", tree)
        return self.fold(lambda: intrinsic(name, *values, span=self.span(tree)), tree)

    def _given(self, name: str, tree: ast.Call) -> PrimExpr:
        """A call that states its dtype: first, by keyword, or the usual one of that intrinsic."""
        stated = [keyword.value for keyword in tree.keywords if keyword.arg == "dtype"]
        attrs = [self.read_literal(keyword.value) for keyword in tree.keywords if keyword.arg == "attrs"]
        values = self._values(tree, ("dtype", "attrs"))
        if stated:
            dtype = self.fold(lambda: dtypes.check_dtype(self.constant(stated[0])), stated[0])
        elif name in DTYPE_FIRST:
            if not values or not isinstance(values[0], (str, type)):
                raise self.fail(
                    "W113", f"T.{name} takes the dtype of its result first", tree, f'T.{name}("float32", ...)'
                )
            dtype = self.fold(lambda: dtypes.check_dtype(values[0]), tree)
            values = values[1:]
        else:
            dtype = RESULT_DTYPES.get(name, "void")
        args = tuple(self._call_argument(value, tree) for value in values)
        return PrimCall(name, args, dtype, attrs[0] if attrs else EMPTY, span=self.span(tree))

    def _call_argument(self, value: Any, tree: ast.AST) -> Expr:
        if isinstance(value, Buffer) and not (value.shape in ((1,), ()) and value.name in self.scalars):
            return self._data_of(value, tree)
        if isinstance(value, Expr):
            return value
        return self.as_prim(value, tree)

    def _data_of(self, buffer: Buffer, tree: ast.AST) -> PrimExpr:
        """The address of a buffer's first element."""
        zeros = tuple(index_const(0) for _ in buffer.shape)
        return PrimCall("address_of", (BufferLoad(buffer, zeros),), "handle", span=self.span(tree))

    def _opaque(self, name: str, tree: ast.Call) -> PrimExpr:
        """An intrinsic of some device: kept as it is written."""
        return self._given(name, tree)

    def _call_intrin(self, tree: ast.Call) -> PrimExpr:
        values = self.bind(SCALARS["T.call_intrin"], tree)
        op = self.constant(values["op"])
        if not isinstance(op, str):
            raise self.fail("W114", "the intrinsic is named by a string", tree)
        return PrimCall(op, values["args"], values["dtype"], values["attrs"], span=self.span(tree))

    def call_other(self, tree: ast.Call) -> Any:
        """A call of a function of the module, or a method of a buffer."""
        name = self.global_name(tree.func)
        if name is not None:
            callee = GlobalVar(name, self.span(tree.func))
            stated = [keyword.value for keyword in tree.keywords if keyword.arg == "dtype"]
            values = self._values(tree, ("dtype",))
            dtype = self.constant(stated[0]) if stated else self.module.return_dtype(name)
            return PrimCall(
                callee, tuple(self._call_argument(value, tree) for value in values), dtype, span=self.span(tree)
            )
        if isinstance(tree.func, ast.Attribute):
            base = self.value(tree.func.value)
            return self._method(base, tree.func.attr, tree)
        if isinstance(tree.func, ast.Name):
            found = self.lookup(tree.func.id, tree.func)
            if isinstance(found, PrimFunc):
                callee = GlobalVar(self.module.adopt(found, self.span(tree.func)), self.span(tree.func))
                dtype = found.ret_type.dtype if isinstance(found.ret_type, PrimType) else "void"
                args = tuple(self._call_argument(value, tree) for value in self._values(tree))
                return PrimCall(callee, args, dtype, span=self.span(tree))
        return super().call_other(tree)

    def _method(self, base: Any, name: str, tree: ast.Call) -> Any:
        if isinstance(base, Buffer):
            if name == "vload":
                return self._vload(base, tree)
            if name == "access_ptr":
                values = [
                    self._call_argument(value, tree) for value in self._values(tree, ("offset", "ptr_type", "extent"))
                ]
                return PrimCall("access_ptr", (self._data_of(base, tree), *values), "handle", span=self.span(tree))
        if isinstance(base, PrimExpr) and name == "astype":
            values = self._values(tree)
            if len(values) == 1:
                return self.fold(lambda: cast(dtypes.check_dtype(values[0]), base), tree)
        raise self.fail("W115", f"{describe(base)} has no method '{name}' in a script", tree.func)

    def _vload(self, buffer: Buffer, tree: ast.Call) -> PrimExpr:
        values = self._values(tree, ("dtype", "predicate"))
        indices = values[0] if values and isinstance(values[0], (tuple, list)) else values[:1]
        stated = [self.constant(keyword.value) for keyword in tree.keywords if keyword.arg == "dtype"] or values[1:2]
        lanes = dtypes.lanes(stated[0]) if stated else 1
        made = [self.as_prim(index, tree) for index in indices]
        if lanes > 1:
            made[-1] = Ramp(made[-1], const(1, made[-1].dtype), lanes)
        return BufferLoad(buffer, tuple(made), self._predicate(tree), span=self.span(tree))

    def _predicate(self, tree: ast.Call) -> PrimExpr | None:
        found = [keyword.value for keyword in tree.keywords if keyword.arg == "predicate"]
        return self.prim(found[0]) if found else None

    def attribute_of(self, base: Any, tree: ast.Attribute) -> Any:
        """`A.data`, `A.shape`, `A.dtype`, `x.dtype` and the like."""
        if isinstance(base, Buffer):
            if tree.attr == "data":
                return base.data if base.data is not None else self._data_of(base, tree)
            if tree.attr in ("shape", "dtype", "ndim", "strides", "elem_offset", "scope", "name"):
                found = getattr(base, tree.attr)
                return found
        if isinstance(base, PrimExpr) and tree.attr == "dtype":
            return base.dtype
        return super().attribute_of(base, tree)

    # -- buffers and indices -------------------------------------------------------------------------------------------

    def subscript_of(self, base: Any, tree: ast.Subscript) -> Any:
        """An element of a buffer (a load), a slice of one (a region), or of a plain container."""
        if not isinstance(base, Buffer):
            return super().subscript_of(base, tree)
        indices = self.indices(base, tree)
        if any(isinstance(index, Range) for index in indices):
            region = tuple(index if isinstance(index, Range) else Range(_extent_of(index), 1) for index in indices)
            return BufferRegion(base, region, span=self.span(tree))
        return BufferLoad(base, tuple(indices), span=self.span(tree))  # type: ignore[arg-type]

    def indices(self, buffer: Buffer, tree: ast.Subscript) -> list[PrimExpr | Range]:
        """The indices of a subscript; W121 when their number is not the buffer's rank."""
        trees = tree.slice.elts if isinstance(tree.slice, ast.Tuple) else [tree.slice]
        result: list[PrimExpr | Range] = []
        for item in trees:
            if isinstance(item, ast.Starred):
                spread = self.value(item.value)
                if not isinstance(spread, (tuple, list)):
                    raise self.fail("W115", "only tuples known while reading can be spread with *", item)
                result.extend(self._index(value, item) for value in spread)
            elif isinstance(item, ast.Slice):
                result.append(self._slice(buffer, len(result), item))
            else:
                result.append(self._index(self.value(item), item))
        if len(result) != buffer.ndim:
            shape = ", ".join(str(e) if isinstance(e, int) else getattr(e, "name", "...") for e in buffer.shape)
            raise self.fail("W121", f"'{buffer.name}' has {buffer.ndim} dimension{'s' * (buffer.ndim != 1)} ({shape}), "
                            f"got {len(result)} ind{'ex' if len(result) == 1 else 'ices'}", tree)  # fmt: skip
        return result

    def _index(self, value: Any, tree: ast.AST) -> PrimExpr:
        made = self.as_prim(value, tree)
        if isinstance(made, StringImm) or dtypes.is_float(made.dtype):
            raise self.fail("W123", f"an index must be an integer, got {getattr(made, 'dtype', 'a string')}", tree)
        return made

    def _slice(self, buffer: Buffer, axis: int, tree: ast.Slice) -> PrimExpr | Range:
        start: Any = self.value(tree.lower) if tree.lower is not None else 0
        if tree.upper is not None:
            stop: Any = self.value(tree.upper)
        elif axis < buffer.ndim:
            stop = buffer.shape[axis]
        else:
            stop = 0
        if tree.step is not None:
            step = self.constant(tree.step)
            if isinstance(step, int) and step != 1:
                lanes = self._length(start, stop, tree)
                if not isinstance(lanes, int):
                    raise self.fail("W123", "a slice with a step has constant bounds", tree)
                base = self._index(start, tree)
                return Ramp(base, const(step, base.dtype), -(-lanes // step))
        extent = self._length(start, stop, tree)
        return Range(_extent_of(self._side(start, tree)), _extent_of(extent), span=None)

    def _length(self, start: Any, stop: Any, tree: ast.AST) -> Any:
        if isinstance(start, int) and start == 0:
            return self._side(stop, tree)
        if isinstance(stop, Binary) and stop.kind == "add" and _same_expr(start, stop.a):
            return stop.b.value if isinstance(stop.b, IntImm) else stop.b
        return self.binary("sub", stop, start, tree)

    def _vector_load(self, region: BufferRegion, tree: ast.AST) -> PrimExpr:
        return BufferLoad(region.buffer, self._vector_indices(region, tree), span=self.span(tree))

    def _vector_indices(self, region: BufferRegion, tree: ast.AST) -> tuple[PrimExpr, ...]:
        """Indices of a slice used as a value: the last dimension becomes a vector."""
        made: list[PrimExpr] = []
        for position, item in enumerate(region.region):
            start = as_expr(item.start)
            extent = item.extent.value if isinstance(item.extent, IntImm) else item.extent
            if not isinstance(extent, int):
                raise self.fail("W123", "a slice used as a value has a constant length", tree)
            if extent != 1 and position != len(region.region) - 1:
                raise self.fail("W123", "only the last dimension can be a slice", tree)
            made.append(start if extent == 1 else Ramp(start, const(1, start.dtype), extent))
        return tuple(made)

    def buffer_expression(self, tree: ast.expr, name: str, place: ast.AST) -> Buffer | None:
        """`T.Buffer(...)` or `T.Buffer[...]` as a buffer, or None for another expression."""
        if isinstance(tree, ast.Subscript) and self.dotted(tree.value) == "T.Buffer":
            elements = tree.slice.elts if isinstance(tree.slice, ast.Tuple) else [tree.slice]
            tree = ast.copy_location(ast.Call(tree.value, list(elements), []), tree)
        if not isinstance(tree, ast.Call) or self.dotted(tree.func) != "T.Buffer":
            return None
        for keyword in list(tree.keywords):
            if keyword.arg in ("buffer_type", "layout"):
                tree.keywords.remove(keyword)
        return self.make_buffer(self.bind(BUFFERS["T.Buffer"], tree), name, place)

    def make_buffer(self, values: dict[str, Any], name: str, place: ast.AST) -> Buffer:
        """A buffer from the holes that all buffer forms share."""
        separators = values.get("axis_separators", ())
        return self.fold(
            lambda: Buffer(
                name, values["shape"], values["dtype"], values.get("scope", "global"), values.get("strides"),
                values.get("elem_offset"), values.get("data"), values.get("align", 0), values.get("offset_factor", 0),
                tuple(separators), span=self.span(place),
            ), place,
        )  # fmt: skip

    def read_region(self, tree: ast.expr) -> Any:
        """The source of a match_buffer: a handle, a buffer, an element or a slice of one."""
        return self.value(tree)

    def read_regions(self, tree: ast.expr) -> BufferRegion | tuple[BufferRegion, ...]:
        """Regions in T.reads and T.writes."""
        value = self.value(tree)
        if isinstance(value, (tuple, list)):
            return tuple(self.as_region(item, tree) for item in value)
        return self.as_region(value, tree)

    def as_region(self, value: Any, tree: ast.AST) -> BufferRegion:
        """A value as a box of a buffer."""
        if isinstance(value, BufferRegion):
            return value
        if isinstance(value, BufferLoad):
            return BufferRegion(
                value.buffer, tuple(Range(_extent_of(index), 1) for index in value.indices), span=self.span(tree)
            )
        if isinstance(value, Buffer):
            return BufferRegion(value, tuple(Range(0, extent) for extent in value.shape), span=self.span(tree))
        raise self.fail("W114", f"expected a region of a buffer, got {describe(value)}", tree)

    # -- statements ----------------------------------------------------------------------------------------------------

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
            method = self._STATEMENTS.get(type(tree))
            if method is None:
                raise self.unsupported(tree)
            if position == 0 and top and _is_docstring(tree):
                continue
            made = method(self, tree)
            if callable(made):  # a scope that reaches to the end of the block
                result.append(made(self.body(trees[position + 1 :])))
                return result
            if isinstance(made, list):
                result.extend(made)
            elif made is not None:
                result.append(made)
        return result

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
        value = self.value(call)
        if not isinstance(value, Expr) or isinstance(value, PrimVar):
            raise self.fail("W115", f"a statement of {describe(value)} does nothing", tree)
        return Evaluate(value, span=self.span(tree))

    def _vstore(self, tree: ast.Call) -> Stmt:
        assert isinstance(tree.func, ast.Attribute)
        buffer = self.value(tree.func.value)
        values = self._values(tree, ("predicate",))
        if not isinstance(buffer, Buffer) or len(values) != 2:
            raise self.fail("W113", "vstore takes indices and a value", tree)
        indices = [
            self.as_prim(index, tree) for index in (values[0] if isinstance(values[0], (tuple, list)) else [values[0]])
        ]
        value = self.as_prim(values[1], tree)
        lanes = dtypes.lanes(value.dtype)
        if lanes > 1 and dtypes.lanes(indices[-1].dtype) == 1:
            indices[-1] = Ramp(indices[-1], const(1, indices[-1].dtype), lanes)
        return BufferStore(buffer, value, tuple(indices), self._predicate(tree), span=self.span(tree))

    # clauses

    def _header(self, tree: ast.AST, what: str) -> _BlockHeader:
        if self.block is None:
            raise self.fail("W114", f"`{what}` belongs directly inside a `with T.block(...)`", tree)
        return self.block

    def _func_attr(self, tree: ast.Call) -> None:
        values = self.bind(ALL_FORMS["T.func_attr"], tree)
        if not isinstance(values["attrs"], FrozenMap):
            raise self.fail("W114", "T.func_attr takes a dictionary", tree)
        self.attrs = FrozenMap({**self.attrs, **values["attrs"]})

    def _reads(self, tree: ast.Call) -> None:
        self._header(tree, "T.reads").reads = self._regions(tree, "T.reads")

    def _writes(self, tree: ast.Call) -> None:
        self._header(tree, "T.writes").writes = self._regions(tree, "T.writes")

    def _regions(self, tree: ast.Call, name: str) -> tuple[BufferRegion, ...]:
        values = self.bind(CLAUSES[name], tree)["regions"]
        flat: list[BufferRegion] = []
        for value in values:
            flat.extend(value if isinstance(value, tuple) else (value,))
        return tuple(flat)

    def _where(self, tree: ast.Call) -> None:
        predicate = self.bind(CLAUSES["T.where"], tree)["predicate"]
        self._header(tree, "T.where").predicate = self._as_bool(predicate, tree)

    def _block_attr(self, tree: ast.Call) -> None:
        header = self._header(tree, "T.block_attr")
        attrs = self.bind(CLAUSES["T.block_attr"], tree)["attrs"]
        header.annotations = FrozenMap({**header.annotations, **attrs})

    def _evaluate(self, tree: ast.Call) -> Stmt:
        return Evaluate(self.bind(CLAUSES["T.evaluate"], tree)["value"], span=self.span(tree))

    def _bare_axis(self, tree: ast.Call) -> None:
        raise self.fail("W114", "a block variable needs a name", tree, "write `vi = T.axis.spatial(4, i)`")

    def _break_loop(self, tree: ast.Call) -> Stmt:
        return Break(span=self.span(tree))

    def _continue_loop(self, tree: ast.Call) -> Stmt:
        return Continue(span=self.span(tree))

    def _ret(self, tree: ast.Call) -> Stmt:
        values = self._values(tree)
        return Return(self.as_prim(values[0], tree) if values else None, span=self.span(tree))

    def _attr_statement(self, tree: ast.Call) -> Any:
        values = self.bind(SCOPES["T.attr"], tree)
        node, value = self.attr_operand(values["node"]), self.attr_operand(values["value"])
        return lambda body: AttrStmt(node, values["key"], value, body, span=self.span(tree))

    def attr_operand(self, tree: ast.expr) -> Any:
        """The node or value of an attribute statement."""
        value = self.value(tree)
        return value if isinstance(value, Node) else self.attribute_value(value, tree)

    def _static_assert(self, tree: ast.Call) -> None:
        values = self._values(tree)
        if not values or not is_plain(values[0]):
            raise self.fail("W114", "T.static_assert takes a condition known while reading", tree)
        if not values[0]:
            raise self.fail("W124", str(values[1]) if len(values) > 1 else "the static assertion is false", tree)

    # assignments

    def _assign(self, tree: ast.Assign) -> Any:
        if len(tree.targets) != 1:
            raise self.fail("W115", "one target at a time", tree)
        target = tree.targets[0]
        if isinstance(target, ast.Subscript):
            return self._store(target, tree.value, tree)
        if isinstance(target, (ast.Tuple, ast.List)):
            return self._assign_many(target, tree.value, tree)
        if isinstance(target, ast.Name):
            return self._assign_name(target, tree.value, None, tree)
        raise self.fail("W115", "only names and buffer elements can be assigned", target)

    def _assign_many(self, target: ast.Tuple | ast.List, tree: ast.expr, statement: ast.stmt) -> Any:
        names = [item for item in target.elts if isinstance(item, ast.Name)]
        if len(names) != len(target.elts):
            raise self.fail("W115", "only names can be unpacked into", target)
        name = self.dotted(tree.func) if isinstance(tree, ast.Call) else None
        if name == "T.axis.remap" and isinstance(tree, ast.Call):
            self._remap(names, tree)
            return None
        if isinstance(tree, (ast.Tuple, ast.List)) and len(tree.elts) == len(names):
            parts = [
                self._assign_name(item, part, None, statement) for item, part in zip(names, tree.elts, strict=True)
            ]
            return [part for made in parts for part in (made if isinstance(made, list) else [made]) if part is not None]
        values = self.value(tree)
        if isinstance(values, (tuple, list)) and len(values) == len(names):
            for item, value in zip(names, values, strict=True):
                self.scope.names[item.id] = value
            return None
        raise self.fail("W115", f"cannot unpack {describe(values)} into {len(names)} names", statement)

    def _assign_name(self, target: ast.Name, tree: ast.expr, annotation: ast.expr | None, statement: ast.stmt) -> Any:
        name = self.dotted(tree.func) if isinstance(tree, ast.Call) else None
        method = self._NAMED.get(name or "")
        if method is not None and isinstance(tree, ast.Call):
            return method(self, target, tree)
        dtype = self.symbol_declaration(tree)
        if dtype is not None:
            self.scope.names[target.id] = self.symbol_value(target.id, target)
            return None
        if annotation is None and self.names_module(tree):
            self.scope.names[target.id] = self.module
            return None
        buffer = self.buffer_expression(tree, target.id, target)
        if buffer is not None:
            self.scope.names[target.id] = buffer
            return DeclBuffer(buffer, span=self.span(statement))
        return self._assign_value(target, tree, annotation, statement)

    def _assign_value(self, target: ast.Name, tree: ast.expr, annotation: ast.expr | None, statement: ast.stmt) -> Any:
        """`x = e`: a store into a local scalar, a new one, an immutable binding, or a plain value."""
        known = self.scope.get(target.id)
        if isinstance(known, Buffer) and known.name in self.scalars:
            return self._store_into(known, (index_const(0),), self.value(tree), statement)
        value = self.value(tree)
        dtype, is_let = self._declared(annotation)
        repeated = self.assigned.get(target.id, 0) > 1 and not is_let
        if not repeated and annotation is None and not isinstance(value, (PrimExpr, BufferRegion)):
            if is_plain(value) or isinstance(value, (Buffer, ModuleScope)):
                self.scope.names[target.id] = value
                return None
        made = self.as_prim(value, tree, dtype.dtype if dtype is not None and dtype.dtype != "handle" else None)
        if dtype is not None and dtype.dtype not in ("handle", made.dtype):
            made = self.fold(lambda: cast(dtype.dtype, made), tree)
        if repeated:
            return self._new_scalar(target, made, statement)
        pointee, scope = (dtype.pointee, dtype.scope) if dtype is not None else (None, "global")
        var = PrimVar(target.id, made.dtype, pointee, scope, span=self.span(target))
        self.scope.names[target.id] = var
        return Bind(var, made, span=self.span(statement))

    def _new_scalar(self, target: ast.Name, value: PrimExpr, statement: ast.stmt) -> list[Stmt]:
        buffer = Buffer(target.id, (1,), value.dtype, "local", span=self.span(target))
        self.scalars = self.scalars | {target.id}
        self.scope.names[target.id] = buffer
        store = BufferStore(buffer, value, (index_const(0),), span=self.span(statement))
        return [AllocBuffer(buffer, span=self.span(statement)), store]

    def _declared(self, annotation: ast.expr | None) -> tuple[PrimVar | None, bool]:
        """The dtype that an annotation states (as a variable), and whether it is `T.let`."""
        if annotation is None:
            return None, False
        if isinstance(annotation, ast.Subscript) and self.dotted(annotation.value) in ("T.let", "T.LetStmt"):
            return self._declared(annotation.slice)[0], True
        if self.dotted(annotation) in ("T.let", "T.LetStmt"):
            return None, True
        handle = self._handle_annotation(annotation, ast.copy_location(ast.Name("", ast.Load()), annotation))
        if handle is not None:
            return handle, False
        value = self.value(annotation)
        if isinstance(value, str):
            return PrimVar("", self.fold(lambda: dtypes.check_dtype(value), annotation)), False
        if isinstance(value, PrimType):
            return PrimVar("", value.dtype), False
        raise self.fail("W114", f"expected T.let or a dtype, got {describe(value)}", annotation)

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

    def _augmented(self, tree: ast.AugAssign) -> Any:
        kind = _kind_of(tree.op)
        right = self.value(tree.value)
        if isinstance(tree.target, ast.Name):
            known = self.lookup(tree.target.id, tree.target)
            if isinstance(known, Buffer) and known.name in self.scalars:
                left: Any = self.as_prim(known, tree.target)
                return self._store_into(known, (index_const(0),), self.binary(kind, left, right, tree), tree)
            if is_plain(known) and is_plain(right):
                self.scope.names[tree.target.id] = self.binary(kind, known, right, tree)
                return None
            raise self.fail("W115", f"'{tree.target.id}' is not a local scalar", tree.target)
        if not isinstance(tree.target, ast.Subscript):
            raise self.fail("W115", "only buffer elements and local scalars can be updated", tree)
        base = self.value(tree.target.value)
        if not isinstance(base, Buffer):
            raise self.fail("W114", f"{describe(base)} is not a buffer", tree.target)
        indices = self._store_indices(base, tree.target)
        left = BufferLoad(base, indices, span=self.span(tree.target))
        return self._store_into(base, indices, self.binary(kind, left, right, tree), tree)

    def _store(self, target: ast.Subscript, tree: ast.expr, statement: ast.stmt) -> Stmt:
        base = self.value(target.value)
        if not isinstance(base, Buffer):
            raise self.fail("W114", f"{describe(base)} is not a buffer", target.value)
        indices = self._store_indices(base, target)
        return self._store_into(base, indices, self.value(tree), statement, tree)

    def _store_indices(self, buffer: Buffer, target: ast.Subscript) -> tuple[PrimExpr, ...]:
        indices = self.indices(buffer, target)
        if any(isinstance(index, Range) for index in indices):
            region = tuple(index if isinstance(index, Range) else Range(_extent_of(index), 1) for index in indices)
            return self._vector_indices(BufferRegion(buffer, region), target)
        return tuple(indices)  # type: ignore[arg-type]

    def _store_into(
        self, buffer: Buffer, indices: tuple[PrimExpr, ...], value: Any, statement: ast.AST, tree: ast.AST | None = None
    ) -> Stmt:
        place = tree or statement
        lanes = dtypes.lanes(indices[-1].dtype) if indices else 1
        wanted = dtypes.with_lanes(buffer.dtype, dtypes.lanes(buffer.dtype) * lanes)
        made = self.as_prim(value, place, wanted)
        if made.dtype != wanted:
            made = self._converted(made, wanted, buffer, place)
        return BufferStore(buffer, made, indices, span=self.span(statement))

    def _converted(self, value: PrimExpr, wanted: str, buffer: Buffer, tree: ast.AST) -> PrimExpr:
        """A value in the dtype of the buffer it is stored into; W123 where that would lose information unasked."""
        if dtypes.promote(value.dtype, wanted) == wanted and dtypes.lanes(value.dtype) in (1, dtypes.lanes(wanted)):
            return self.fold(lambda: cast(wanted, value), tree)
        raise self.fail(
            "W123",
            f"'{buffer.name}' holds {wanted}, the value is {value.dtype}",
            tree,
            f'write `T.Cast("{wanted}", ...)`',
        )

    # named things

    def _alloc(self, target: ast.Name, tree: ast.Call) -> Stmt | None:
        values = self.bind(BUFFERS["T.alloc_buffer"], tree)
        buffer = self.make_buffer(values, target.id, target)
        self.scope.names[target.id] = buffer
        if self.block is not None and values["block"] and not values["annotations"]:
            self.block.alloc_buffers.append(buffer)
            return None
        return AllocBuffer(buffer, values["annotations"], span=self.span(tree))

    def _alloc_scope(self, name: str, scope: str | None) -> Callable[[ast.Name, ast.Call], Stmt]:
        def read(target: ast.Name, tree: ast.Call) -> Stmt:
            values = self.bind(BUFFERS[name], tree)
            if "shape" not in values:
                values["shape"] = (1,)
                self.scalars = self.scalars | {target.id}
            buffer = self.make_buffer({**values, "scope": scope or values["scope"]}, target.id, target)
            self.scope.names[target.id] = buffer
            return AllocBuffer(buffer, values.get("annotations", EMPTY) or EMPTY, span=self.span(tree))

        return read

    def _allocate(self, target: ast.Name, tree: ast.Call) -> Stmt:
        return self._alloc_scope("T.allocate", None)(target, tree)

    def _alloc_local(self, target: ast.Name, tree: ast.Call) -> Stmt:
        return self._alloc_scope("T.alloc_local", "local")(target, tree)

    def _alloc_shared(self, target: ast.Name, tree: ast.Call) -> Stmt:
        return self._alloc_scope("T.alloc_shared", "shared")(target, tree)

    def _local_scalar(self, target: ast.Name, tree: ast.Call) -> Stmt:
        return self._alloc_scope("T.local_scalar", "local")(target, tree)

    def _shared_scalar(self, target: ast.Name, tree: ast.Call) -> Stmt:
        return self._alloc_scope("T.shared_scalar", "shared")(target, tree)

    def _decl(self, target: ast.Name, tree: ast.Call) -> Stmt:
        values = self.bind(BUFFERS["T.decl_buffer"], tree)
        buffer = self.make_buffer(values, target.id, target)
        self.scope.names[target.id] = buffer
        if buffer.data is None:  # a declaration of memory that nobody owns yet
            return AllocBuffer(buffer, span=self.span(tree))
        return DeclBuffer(buffer, span=self.span(tree))

    def read_pointer(self, tree: ast.expr) -> PrimExpr:
        """The data of a buffer declaration."""
        value = self.value(tree)
        return self._data_of(value, tree) if isinstance(value, Buffer) else self.as_prim(value, tree)

    def _match_buffer(self, target: ast.Name, tree: ast.Call) -> None:
        before, self.defining = self.defining, self.block is None
        try:
            values = self.bind(BUFFERS["T.match_buffer"], tree)
        finally:
            self.defining = before
        source = values.pop("source")
        if isinstance(source, PrimVar) and source in self.params:
            if values["shape"] is None:
                raise self.fail("W113", "T.match_buffer lacks its argument 'shape'", tree)
            buffer = self.make_buffer(values, target.id, target)
            self.params[self.params.index(source)] = buffer
            self.scope.names[target.id] = buffer
            return
        if isinstance(source, (BufferRegion, BufferLoad, Buffer)):
            region = self.as_region(source, tree)
            if values["shape"] is None:
                values["shape"] = tuple(item.extent for item in region.region)
            if not any(keyword.arg == "dtype" for keyword in tree.keywords) and len(tree.args) < 3:
                values["dtype"] = region.buffer.dtype
            buffer = self.make_buffer(values, target.id, target)
            self.scope.names[target.id] = buffer
            header = self._header(tree, "T.match_buffer of a region")
            header.match_buffers.append(MatchBufferRegion(buffer, region, span=self.span(tree)))
            return
        raise self.fail("W114", "T.match_buffer takes a handle parameter or a region of a buffer", tree)

    def _axis(self, kind: str) -> Callable[[Any, ast.Name, ast.Call], None]:
        def read(self: TensorReader, target: ast.Name, tree: ast.Call) -> None:
            header = self._header(tree, f"T.axis.{kind}")
            values = self.bind(CLAUSES[f"T.axis.{kind}"], tree)
            start, extent = self._axis_domain(values["extent"], values["start"])
            value = values["value"]
            dtype = values["dtype"] or axis_dtype(extent, value)
            self._add_axis(header, target, kind, start, extent, value, dtype, tree)

        return read

    def _axis_domain(self, tree: ast.expr, start: Extent) -> tuple[Extent, Extent]:
        if isinstance(tree, (ast.Tuple, ast.List)) and len(tree.elts) == 2:
            low, high = (self.read_extent(item) for item in tree.elts)
            return low, self._difference(low, high, tree)
        return start, self.read_extent(tree)

    def _difference(self, low: Extent, high: Extent, tree: ast.AST) -> Extent:
        """high - low, plain when both are."""
        if isinstance(low, int) and low == 0:
            return high
        if isinstance(low, IntImm) and isinstance(high, IntImm):
            return IntImm(high.value - low.value, high.dtype)
        return self._length(low, high, tree)

    def _add_axis(
        self, header: _BlockHeader, target: ast.Name, kind: str, start: Extent, extent: Extent, value: PrimExpr | None,
        dtype: str, tree: ast.AST,
    ) -> None:  # fmt: skip
        var = PrimVar(target.id, dtype, span=self.span(target))
        header.iter_vars.append(IterVar(var, start, extent, kind, value, span=self.span(tree)))
        self.scope.names[target.id] = var

    def _remap(self, names: list[ast.Name], tree: ast.Call) -> None:
        header = self._header(tree, "T.axis.remap")
        values = self.bind(CLAUSES["T.axis.remap"], tree)
        letters, variables = values["kinds"], values["values"]
        if len(letters) != len(variables) or len(letters) != len(names):
            raise self.fail(
                "W113", f"T.axis.remap: {len(letters)} kinds, {len(variables)} loops, {len(names)} names", tree
            )
        for target, letter, variable in zip(names, letters, variables, strict=True):
            if letter not in _AXIS_LETTERS:
                raise self.fail("W114", f"axis kind {letter!r}: expected S (spatial) or R (reduce)", tree.args[0])
            domain = self.loops.get(variable) if isinstance(variable, PrimVar) else None
            if domain is None:
                raise self.fail(
                    "W114", "T.axis.remap takes variables of enclosing loops", tree, "use T.axis.spatial(extent, value)"
                )
            start, extent = domain  # type: ignore[misc]
            self._add_axis(header, target, _AXIS_LETTERS[letter], start, extent, variable, variable.dtype, tree)

    def _remap_one(self, target: ast.Name, tree: ast.Call) -> None:
        self._remap([target], tree)

    def _bind_call(self, target: ast.Name, tree: ast.Call) -> Stmt:
        value = self.bind(CLAUSES["T.bind"], tree)["value"]
        var = PrimVar(target.id, value.dtype, span=self.span(target))
        self.scope.names[target.id] = var
        return Bind(var, value, span=self.span(tree))

    def _env_thread(self, target: ast.Name, tree: ast.Call) -> None:
        tag = self.constant(tree.args[0]) if tree.args else None
        if not isinstance(tag, str):
            raise self.fail("W113", "T.env_thread takes the name of a thread axis", tree)
        var = PrimVar(target.id, "int32", span=self.span(target))
        self.threads[target.id] = tag
        self.scope.names[target.id] = var

    def _launch_named(self, target: ast.Name, tree: ast.Call) -> Any:
        values = self.bind(LOOPS["T.launch_thread"], tree)
        return self._launch(target.id, values, tree, target)

    def _launch_statement(self, tree: ast.Call) -> Any:
        values = self.bind(LOOPS["T.launch_thread"], tree)
        return self._launch(None, values, tree, tree)

    def _launch(self, name: str | None, values: dict[str, Any], tree: ast.Call, place: ast.AST) -> Any:
        """A thread axis as a loop around the rest of the block."""
        thread = values["thread"]
        if isinstance(thread, ast.Name) and thread.id in self.threads:
            tag, var = self.threads[thread.id], self.scope.get(thread.id)
        else:
            tag = self.constant(thread)
            var = PrimVar(name or str(tag).replace(".", "_"), loop_dtype(0, values["extent"]), span=self.span(place))
            if name:
                self.scope.names[name] = var
        self.loops[var] = (0, values["extent"])
        return lambda body: For(var, 0, values["extent"], body, "thread_binding", str(tag), span=self.span(tree))

    # compound statements

    def _for(self, tree: ast.For) -> Any:
        if tree.orelse:
            raise self.fail("W115", "`else` of a loop is not part of the script", tree)
        call = tree.iter
        name = None
        if isinstance(call, ast.Call):
            name = self.dotted(call.func)
            if name is None and isinstance(call.func, ast.Name) and call.func.id == "range":
                name = "range"
        if name is None or name not in LOOPS or not isinstance(call, ast.Call):
            hint = "loop over range(n), T.grid(n, m), T.serial(n), T.parallel(n), T.vectorized(n), T.unroll(n)"
            raise self.fail("W115", "this cannot be looped over", tree.iter, hint)
        if name == "T.grid":
            return self._grid(tree, call)
        if not isinstance(tree.target, ast.Name):
            raise self.fail("W113", f"{name} gives one variable", tree.target)
        return self._loop(tree, call, name)

    def _loop(self, tree: ast.For, call: ast.Call, name: str) -> Stmt:
        assert isinstance(tree.target, ast.Name)
        values = self.bind(LOOPS[name], call)
        start, stop, step = values["start"], values["stop"], values.get("step")
        extent = values.get("extent")
        if extent is None:
            if stop is None:
                start, stop = 0, start
            extent = self._difference(start, stop, call)
        dtype = values.get("dtype") or loop_dtype(start, extent)
        var = PrimVar(tree.target.id, dtype, span=self.span(tree.target))
        body = self._loop_body([(tree.target.id, var, start, extent)], tree.body)
        return For(var, start, extent, body, _LOOP_KINDS[name], values.get("thread"), step,
                   values.get("annotations", EMPTY) or EMPTY, span=self.span(tree))  # fmt: skip

    def _grid(self, tree: ast.For, call: ast.Call) -> Stmt:
        extents = self.bind(LOOPS["T.grid"], call)["extents"]
        targets = tree.target.elts if isinstance(tree.target, (ast.Tuple, ast.List)) else [tree.target]
        if len(targets) != len(extents) or not extents:
            raise self.fail("W113", f"T.grid has {len(extents)} extents for {len(targets)} variables", tree.target)
        names: list[tuple[str, PrimVar, Extent, Extent]] = []
        for target, extent in zip(targets, extents, strict=True):
            if not isinstance(target, ast.Name):
                raise self.fail("W115", "a loop variable is a name", target)
            names.append((target.id, PrimVar(target.id, loop_dtype(0, extent), span=self.span(target)), 0, extent))
        body = self._loop_body(names, tree.body)
        for _, var, start, extent in reversed(names):
            body = For(var, start, extent, body, span=self.span(tree))
        return body

    def _loop_body(self, names: list[tuple[str, PrimVar, Extent, Extent]], trees: Sequence[ast.stmt]) -> Stmt:
        saved, self.scope = self.scope, Scope(self.scope)
        block, self.block = self.block, None
        for name, var, start, extent in names:
            if name in {known for known, other, *_ in names if other is not var}:
                raise self.fail("W118", f"two loop variables are named '{name}'", trees[0])
            self.scope.names[name] = var
            self.loops[var] = (start, extent)
        self.loop_depth += 1
        try:
            return self.body(trees)
        finally:
            self.loop_depth -= 1
            self.scope, self.block = saved, block

    def _while(self, tree: ast.While) -> Stmt:
        if tree.orelse:
            raise self.fail("W115", "`else` of a loop is not part of the script", tree)
        condition = self._as_bool(self.prim(tree.test), tree.test)
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
            if is_plain(test):
                if test:
                    return self._conditional_of(parts, self._nested(item.body))
                continue
            parts.append((self._as_bool(self.as_prim(test, item.test), item.test), self._nested(item.body)))
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
            hint = did_you_mean(name or "", self._SCOPE_METHODS)
            raise self.fail("W115", f"`with {ast.unparse(call)[:40]}` is not part of the script", call, hint)
        return method(self, tree, call, item.optional_vars)

    def _with_block(self, tree: ast.With, call: ast.Call, target: ast.expr | None) -> Stmt:
        values = self.bind(SCOPES["T.block"], call)
        header = _BlockHeader(values["name"])
        saved_scope, self.scope = self.scope, Scope(self.scope)
        saved_block, self.block = self.block, header
        if target is not None:
            self._block_variables(header, target, call)
        try:
            body = self.body(tree.body)
        finally:
            self.scope, self.block = saved_scope, saved_block
        if not values["no_realize"]:
            for item in header.iter_vars:
                if item.value is None:
                    raise self.fail(
                        "W113",
                        f"the block variable '{item.var.name}' is bound to nothing",
                        tree,
                        "or say no_realize=True",
                    )
        return Block(
            header.name, body, tuple(header.iter_vars), header.predicate, header.reads, header.writes, header.init,
            tuple(header.alloc_buffers), tuple(header.match_buffers), header.annotations, span=self.span(call),
        )  # fmt: skip

    def _block_variables(self, header: _BlockHeader, target: ast.expr, call: ast.Call) -> None:
        raise self.fail("W115", "block variables are bound by T.axis inside the block", target)

    def _with_init(self, tree: ast.With, call: ast.Call, target: ast.expr | None) -> None:
        header = self._header(call, "T.init")
        if header.init is not None:
            raise self.fail("W118", "a block has one T.init", call)
        saved, self.scope = self.scope, Scope(self.scope)
        block, self.block = self.block, None
        try:
            header.init = self.body(tree.body)
        finally:
            self.scope, self.block = saved, block

    def _with_seq(self, tree: ast.With, call: ast.Call, target: ast.expr | None) -> Stmt:
        saved, self.scope = self.scope, Scope(self.scope)
        block, self.block = self.block, None
        try:
            return SeqStmt(tuple(self.statements(tree.body)), span=self.span(call))
        finally:
            self.scope, self.block = saved, block

    def _with_attr(self, tree: ast.With, call: ast.Call, target: ast.expr | None) -> Stmt:
        return self._attr_statement(call)(self._nested_one(tree.body))

    def _nested_one(self, trees: Sequence[ast.stmt]) -> Stmt:
        return _as_one(self._nested(trees))

    def _with_let(self, tree: ast.With, call: ast.Call, target: ast.expr | None) -> list[Stmt]:
        values = self.bind(SCOPES["T.LetStmt"], call)
        if isinstance(values["var"], ast.Name):
            target = values["var"]
        if not isinstance(target, ast.Name):
            raise self.fail("W113", "T.LetStmt needs a name", call, "with T.LetStmt(value) as v:")
        var = PrimVar(target.id, values["value"].dtype, span=self.span(target))
        self.scope.names[target.id] = var
        return [Bind(var, values["value"], span=self.span(call)), *self.statements(tree.body)]

    def _with_launch(self, tree: ast.With, call: ast.Call, target: ast.expr | None) -> Stmt:
        values = self.bind(LOOPS["T.launch_thread"], call)
        saved, self.scope = self.scope, Scope(self.scope)
        try:
            name = target.id if isinstance(target, ast.Name) else None
            wrap = self._launch(name, values, call, target or call)
            return wrap(self._nested_one(tree.body))
        finally:
            self.scope = saved

    def _assert(self, tree: ast.Assert) -> Stmt | None:
        test = self.value(tree.test)
        message = self.value(tree.msg) if tree.msg is not None else ""
        kind = "AssertionError"
        if isinstance(message, (tuple, list)):
            if len(message) != 2 or not isinstance(message[0], str):
                raise self.fail("W114", "expected a message or (kind, message)", tree)
            kind, message = message
        if isinstance(message, (list, tuple)):
            message = "".join(str(part) for part in message)
        if not isinstance(message, str):
            raise self.fail("W114", f"the message of an assertion is a string, got {describe(message)}", tree)
        condition = self._as_bool(self.as_prim(test, tree.test), tree.test)
        if not isinstance(condition, PrimExpr):
            condition = const(bool(condition), "bool")
        return AssertStmt(condition, message, kind, span=self.span(tree))

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

    _TENSOR_FORMS: ClassVar[dict[str, Callable[[Any, ast.Call], Any]]] = {}
    _STATEMENTS: ClassVar[dict[type, Callable[[Any, Any], Any]]] = {}
    _CLAUSE_METHODS: ClassVar[dict[str, Callable[[Any, ast.Call], Any]]] = {}
    _NAMED: ClassVar[dict[str, Callable[[Any, ast.Name, ast.Call], Any]]] = {}
    _SCOPE_METHODS: ClassVar[dict[str, Callable[[Any, ast.With, ast.Call, ast.expr | None], Any]]] = {}


_R = TensorReader
TensorReader._TENSOR_FORMS = {
    "T.Cast": _R._cast, "T.Select": _R._select, "T.if_then_else": _R._if_then_else, "T.Let": _R._let, "T.infinity": _R._infinity,
    "T.min_value": _R._min_value, "T.max_value": _R._max_value, "T.ceildiv": _R._ceildiv_call,
    "T.call_intrin": _R._call_intrin,
}  # fmt: skip
TensorReader._STATEMENTS = {
    ast.Pass: _R._pass, ast.Expr: _R._expression, ast.Assign: _R._assign, ast.AnnAssign: _R._annotated,
    ast.AugAssign: _R._augmented, ast.For: _R._for, ast.While: _R._while, ast.If: _R._if, ast.With: _R._with,
    ast.Assert: _R._assert, ast.Return: _R._return, ast.Break: _R._break, ast.Continue: _R._continue,
}  # fmt: skip
_axis_methods = {f"T.axis.{kind}": _R._axis(None, kind) for kind in _AXIS_LETTERS.values()}  # type: ignore[arg-type]
TensorReader._NAMED = {
    "T.alloc_buffer": _R._alloc, "T.allocate": _R._allocate, "T.alloc_local": _R._alloc_local,
    "T.alloc_shared": _R._alloc_shared, "T.local_scalar": _R._local_scalar, "T.shared_scalar": _R._shared_scalar,
    "T.decl_buffer": _R._decl, "T.match_buffer": _R._match_buffer, "T.axis.remap": _R._remap_one, "T.bind": _R._bind_call,
    "T.env_thread": _R._env_thread, "T.launch_thread": _R._launch_named, **_axis_methods,
}  # fmt: skip
TensorReader._CLAUSE_METHODS = {
    "T.func_attr": _R._func_attr, "T.reads": _R._reads, "T.writes": _R._writes, "T.where": _R._where,
    "T.block_attr": _R._block_attr, "T.evaluate": _R._evaluate, "T.attr": _R._attr_statement,
    "T.break_loop": _R._break_loop, "T.continue_loop": _R._continue_loop, "T.ret": _R._ret,
    "T.launch_thread": _R._launch_statement, "T.static_assert": _R._static_assert,
    **{name: _R._bare_axis for name in _axis_methods},
}  # fmt: skip
TensorReader._SCOPE_METHODS = {
    "T.block": _R._with_block, "T.init": _R._with_init, "T.seq": _R._with_seq, "T.attr": _R._with_attr,
    "T.LetStmt": _R._with_let, "T.launch_thread": _R._with_launch,
}  # fmt: skip


def _literal(value: bool | int | float, dtype: str) -> PrimExpr:
    """A plain number in a dtype that its place asks for, where it has a value of that dtype; else in its own."""
    scalar = dtypes.element(dtype)
    if isinstance(value, float) and not dtypes.is_float(scalar):
        return as_expr(value)
    if dtypes.is_bool(scalar) and not isinstance(value, bool):
        return as_expr(value)
    return const(value, dtype)


def _extent_of(value: Any) -> Extent:
    return value.value if isinstance(value, IntImm) and value.dtype == "int32" else value


def _same_expr(a: Any, b: PrimExpr) -> bool:
    """Whether two expressions are built alike of the same variables."""
    if isinstance(a, int):
        return isinstance(b, IntImm) and a == b.value
    return a is b or (isinstance(a, PrimExpr) and structural_equal(a, b))


def _as_one(stmts: list[Stmt]) -> Stmt:
    return stmts[0] if len(stmts) == 1 else SeqStmt(tuple(stmts))


def _is_docstring(tree: ast.stmt) -> bool:
    return isinstance(tree, ast.Expr) and isinstance(tree.value, ast.Constant) and isinstance(tree.value.value, str)


def _kind_of(op: ast.operator) -> str:
    from weft.script.syntax import BINARY_BY_TREE

    return BINARY_BY_TREE[type(op)]
