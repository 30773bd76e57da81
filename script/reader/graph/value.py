"""Reading graph-level values: leaves, operator calls, calls of functions; and binding them to variables.

Nested calls become bindings of their own, in the order in which Python would evaluate them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, TypeVar

import numpy as np

from weft.errors import ShapeError, WeftError
from weft.ir.deduction.device_mesh import check_placement, is_spread, whole_tensors
from weft.ir.deduction.infer import TypeContext, check_claim, exact_type, infer_type, type_text
from weft.ir.deduction.subtyping import dims_of, substitute_type, type_symbols
from weft.ir.dim import DimExpr, prove_equal, prove_le, prove_lt
from weft.ir.graph import (
    BindingBlock,
    Call,
    Constant,
    DataflowVar,
    DataTypeImm,
    Expr,
    ExternFunc,
    Function,
    GlobalVar,
    MatchCast,
    Op,
    PrimValue,
    ShapeExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from weft.ir.kernel.index_map import MappedLayout
from weft.ir.node import EMPTY, replace
from weft.ir.op import OPS, OpDef, get_op, likely_operators
from weft.ir.tensor import FloatImm, IntImm, PrimExpr, PrimFunc
from weft.ir.types import AnyType, FuncType, PrimType, ShapeType, TensorType, TupleType, Type
from weft.script.forms.constants import constant_value
from weft.script.forms.holes import KINDS
from weft.script.forms.syntax import ALL_FORMS, BINARY, UNARY, VALUES
from weft.script.forms.unsupported import why_unread
from weft.script.reader.base import OLD_KEYWORDS, ModuleScope, Reader, Scope, describe, is_dim
from weft.script.reader.call import KnownValue
from weft.script.reader.graph.index import index_tensor
from weft.script.reader.macros import Macro
from weft.script.source.diagnostics import did_you_mean
from weft.script.source.text import Unit

__all__ = ["LEAVES", "Blocks", "ValueReader"]

FormReader = TypeVar("FormReader", bound=Callable[[Any, ast.Call], Any])
LEAVES = (Var, Constant, GlobalVar, ExternFunc, Op, ShapeExpr, PrimValue, StringImm, DataTypeImm)


_RELATIONS: dict[str, Callable[[Any, Any], bool | None]] = {
    "eq": prove_equal,
    "ne": lambda a, b: None if (known := prove_equal(a, b)) is None else not known,
    "le": prove_le,
    "lt": prove_lt,
    "ge": lambda a, b: prove_le(b, a),
    "gt": lambda a, b: prove_lt(b, a),
}
_OPERATORS = {"abs": "abs", "round": "round", "min": "minimum", "max": "maximum"}
_WHOLE_DIVISION = {"T.Div": "floordiv", "T.truncdiv": "floordiv", "T.truncmod": "floormod"}


class Blocks:
    """The binding blocks of a sequence while it is read."""

    def __init__(self) -> None:
        self.done: list[BindingBlock] = []
        self.bindings: list[VarBinding | MatchCast] = []
        self.dataflow = False

    def flush(self) -> None:
        """Close the current plain block."""
        if self.bindings:
            self.done.append(BindingBlock(tuple(self.bindings)))
            self.bindings = []


class ValueReader(Reader):
    """Reads the values of a graph function and emits its bindings."""

    def __init__(self, unit: Unit, module: ModuleScope, functions: Mapping[str, Any]) -> None:
        super().__init__(unit, module)
        self.context = TypeContext(functions)
        self.blocks = Blocks()
        self.dataflow_names: dict[str, int] | None = None  # outputs of the current dataflow block -> last statement
        self.position = -1  # of the statement in the dataflow block
        self.place: ast.AST | None = None  # set while a value that the text does not name is bound
        self.counter = 0
        self.hidden: dict[str, str] = {}  # names bound elsewhere -> why they are not visible

    def infer(self, value: Expr, tree: ast.AST) -> Type:
        """The type of a value; errors point at the tree when they point nowhere."""
        try:
            return infer_type(value, self.context)
        except WeftError as error:
            raise error.at(self.span(tree)) from None

    def make_var(self, name: str, ty: Type, tree: ast.AST) -> Var:
        """A variable of the right class for the place: outputs of a dataflow block are visible outside."""
        names = self.dataflow_names
        if names is None or (names.get(name) == self.position and self.place is None):
            return Var(name, ty, span=self.span(tree))
        return DataflowVar(name, ty, span=self.span(tree))

    def bind_value(self, target: ast.Name, value: Expr, declared: Type | None, tree: ast.AST) -> Var:
        """Bind a value to a new variable."""
        ty = self.infer(value, tree)
        if isinstance(ty, TupleType):
            self._check_fields(list(ty.fields), tree)
        if declared is not None:
            ty = exact_type(value, self.context) if isinstance(value, PrimValue) else ty
            ty = self._with_declared_names(ty, declared)
            what = f"annotation of {target.id}"
            if not check_claim(declared, ty, self.context, what, self._place_of_claim(tree), at_run_time=True):
                self.note_assumed(declared, ty, what, self._place_of_claim(tree), value.span)
                return self.bind_checked(target, value, declared, tree)
            # The value of a scalar that is written out is there to see: its variable has the plain type.
            known = isinstance(value, PrimValue) and isinstance(declared, PrimType)
            ty = PrimType(value.dtype, span=declared.span) if known else declared  # type: ignore[attr-defined]
        else:
            for name in type_symbols(ty) if not isinstance(value, Var) else ():
                self.symbols.add(name)
        var = self.make_var(target.id, ty, target)
        self._emit(VarBinding(var, value, span=self.span(tree)))
        return var

    def note_assumed(self, declared: Type, found: Type, what: str, place: Any, value: Any) -> None:
        """Note a relation of sizes that nothing but a declared type states: the program checks it when it runs."""
        if isinstance(declared, TupleType) and isinstance(found, TupleType):
            for index, (a, b) in enumerate(zip(declared.fields, found.fields, strict=False)):
                self.note_assumed(a, b, f"{what}, field {index}", place, value)
            return
        pairs = zip(dims_of(declared) or (), dims_of(found) or (), strict=False)
        open_ = [f"{a} is taken to be {b}" for a, b in pairs if prove_equal(a, b) is not True]
        if open_ and not is_spread(declared):
            notes = [f"declared {type_text(declared)}, computed {type_text(found)}"]
            if value is not None:
                notes.append(f"computed at {value.filename}:{value.line}:{value.column}")
            message = f"{what}: {', '.join(open_)}, which is checked when the program runs"
            self.unit.assumed.append(ShapeError(message, code="W213", span=place, notes=notes))

    def bind_checked(self, target: ast.Name, value: Expr, declared: Type, tree: ast.AST) -> Var:
        """Bind a value to a new variable of a type that deduction leaves open: it is checked at run time."""
        known = self.leaf(value, tree)
        var = self.make_var(target.id, declared, target)
        self._emit(MatchCast(var, known, declared, span=self.span(tree)))
        self.context.learn(declared, self.infer(known, tree))
        return var

    def _with_declared_names(self, ty: Type, declared: Type) -> Type:
        """The deduced type, with symbols that deduction has just made called as the annotation calls them."""
        renamed: dict[str, Any] = {}
        for made, named in zip(_dims_within(ty), _dims_within(declared), strict=False):
            if isinstance(made, DimExpr) and isinstance(named, DimExpr) and made is not named:
                name = str(made)
                if name.isidentifier() and name not in self.symbols:
                    renamed[name] = named
        return substitute_type(ty, renamed) if renamed else ty

    def _place_of_claim(self, tree: ast.AST) -> Any:
        return self.span(tree.annotation if isinstance(tree, ast.AnnAssign) else tree)

    def _emit(self, binding: VarBinding | MatchCast) -> None:
        self.blocks.bindings.append(binding)

    def fresh(self, tree: ast.AST, base: str = "lv") -> ast.Name:
        """A target for a value that the text does not name."""
        count = self.counter
        self.counter += 1
        return ast.copy_location(ast.Name(base if count == 0 else f"{base}{count}", ast.Store()), tree)

    def undefined(self, name: str, tree: ast.AST) -> WeftError:
        """The error for an unknown name; says why when it was visible elsewhere."""
        why = self.hidden.get(name)
        if why is not None:
            return self.fail("W119", f"'{name}' is not visible here", tree, why)
        return super().undefined(name, tree)

    def leaf(self, value: Any, tree: ast.AST) -> Expr:
        """A value as a leaf; anything else is bound to a variable first."""
        made = self.as_expr(value, tree)
        if isinstance(made, LEAVES) or (isinstance(made, Tuple)):
            return made
        before, self.place = self.place, tree
        try:
            return self.bind_value(self.fresh(tree), made, None, tree)
        finally:
            self.place = before

    def as_expr(self, value: Any, tree: ast.AST) -> Expr:
        """A value as an expression; tuples of leaves become tuples."""
        if isinstance(value, PrimFunc):
            return GlobalVar(self.module.adopt(value, self.span(tree)), self.span(tree))
        if isinstance(value, PrimExpr):
            return self._prim_leaf(value, tree)
        if isinstance(value, Function):
            return GlobalVar(self.module.adopt(value, self.span(tree)), self.span(tree))
        if isinstance(value, Expr):
            return value
        if isinstance(value, (tuple, list)):
            return Tuple(tuple(self.leaf(item, tree) for item in value), span=self.span(tree))
        if isinstance(value, str):
            return StringImm(value, span=self.span(tree))
        if isinstance(value, np.ndarray):
            return constant_value(value, None, None, False, self.span(tree), None)
        if isinstance(value, (bool, int, float, DimExpr)):
            return PrimValue(value, span=self.span(tree))
        found = "a lambda" if isinstance(value, Macro) and isinstance(value.body, ast.expr) else describe(value)
        raise self.fail("W114", f"expected a value, got {found}", tree)

    def _prim_leaf(self, value: PrimExpr, tree: ast.AST) -> PrimValue:
        if isinstance(value, IntImm):
            return PrimValue(
                bool(value.value) if value.dtype == "bool" else value.value, value.dtype, span=self.span(tree)
            )
        if isinstance(value, FloatImm):
            return PrimValue(value.value, value.dtype, span=self.span(tree))
        raise self.fail("W114", f"a tensor-level {type(value).__name__} is no value of a graph function", tree)

    def read_leaf(self, tree: ast.expr) -> Expr:
        """A leaf as an argument."""
        return self.leaf(self.value(tree), tree)

    def read_shape(self, tree: ast.expr) -> Any:
        """A shape in a type: dimensions, or a variable of shape type."""
        if isinstance(tree, ast.Name):
            value = self.value(tree)
            if isinstance(value, Var):
                if not isinstance(value.ty, (ShapeType, AnyType)):
                    raise self.fail("W114", f"'{tree.id}' is a {type_text(value.ty)}, not a shape", tree)
                return value
        return self.read_dims(tree)

    def read_callee(self, tree: ast.expr) -> Expr:
        """The function of a packed call: a name or an ExternFunc."""
        value = self.value(tree)
        if isinstance(value, str):
            return ExternFunc(value, span=self.span(tree))
        if isinstance(value, (ExternFunc, GlobalVar)):
            return value
        raise self.fail("W114", f"expected the name of a function, got {describe(value)}", tree)

    def fields_of(self, value: Expr, tree: ast.AST) -> Sequence[Expr] | None:
        """The fields of a tuple of the graph, or None for another value."""
        if isinstance(value, Tuple):
            return value.fields
        var = self.leaf(value, tree)
        ty = self.infer(var, tree)
        if not isinstance(ty, TupleType):
            return None
        return [TupleGetItem(var, index, span=self.span(tree)) for index in range(len(ty.fields))]

    def _joined(self, left: Any, right: Any, tree: ast.AST) -> tuple[Any, ...] | None:
        """`t + (a, b)`: the parts of two tuples, of which one is a value of the graph; None for other operands."""
        for side in (left, right):
            if isinstance(side, Expr):
                if not isinstance(self.infer(side, tree), TupleType):
                    return None
            elif not isinstance(side, tuple):
                return None
        first, second = (side if isinstance(side, tuple) else self.fields_of(side, tree) for side in (left, right))
        return (*(first or ()), *(second or ()))

    def combine(self, kind: str, left: Any, right: Any, tree: ast.AST) -> Any:
        """An operator on tensors: the declared operator that it means."""
        joined = self._joined(left, right, tree) if kind == "add" and not is_dim(left) and not is_dim(right) else None
        if joined is not None:
            return joined
        for side in (left, right):
            if not isinstance(side, (Expr, bool, int, float, DimExpr)):
                raise self.fail("W114", f"`{BINARY[kind].text}` of {describe(left)} and {describe(right)}", tree)
        if is_dim(left) and is_dim(right) and kind in _RELATIONS:
            return self._relation(kind, left, right, tree)
        return self.operator(BINARY[kind].graph, [left, right], {}, tree)

    def _relation(self, kind: str, left: Any, right: Any, tree: ast.AST) -> bool:
        """A comparison of sizes, where it holds (or not) for all of them."""
        known = self.fold(lambda: _RELATIONS[kind](left, right), tree)
        if known is None:
            raise self.fail(
                "W115", f"whether {left} {BINARY[kind].text} {right} depends on the sizes of a run", tree,
                "R.match_cast checks sizes when the function runs",
            )  # fmt: skip
        return known

    def instead_of(self, name: str) -> str | None:
        """The operator of the graph."""
        close = likely_operators(name)
        return f"it was given values of the graph: did you mean `R.{close[0]}`?" if close else None

    def _as_operator(self, tree: ast.Attribute) -> str | None:
        """A hint: the operator that a method or attribute of a tensor of another library is here."""
        close = likely_operators(tree.attr)
        if not close:
            return None
        more = ", ..." if len(OPS[close[0]].params) > 1 else ""
        return f"write `R.{close[0]}({ast.unparse(tree.value)[:30]}{more})`"

    def combine_unary(self, kind: str, operand: Any, tree: ast.AST) -> Any:
        """A unary operator on a tensor."""
        if not isinstance(operand, Expr):
            raise self.fail("W114", f"`{UNARY[kind].text.strip()}` of {describe(operand)}", tree)
        return self.operator(UNARY[kind].graph, [operand], {}, tree)

    def operator(self, name: str, args: list[Any], kwargs: dict[str, Any], tree: ast.AST) -> Expr:
        """A call of a declared operator."""
        span = self.span(tree)
        args = [self.operand(value, tree) for value in args]
        kwargs = {key: self.operand(value, tree) for key, value in kwargs.items()}
        try:
            op = get_op(name, span)
            label = self._call_label(op, kwargs, tree)
            if "ty_args" in kwargs and not any(param.kind == "types" for param in op.params):
                del kwargs["ty_args"]  # said by printers of passes; the operator's own rule deduces it
            call = op.bind(args, kwargs, span)
        except WeftError as error:
            raise error.at(span) from None
        return call if label is None else replace(call, attrs=call.attrs.set("target", label))

    def _placed(self, op: OpDef, args: list[Any], kwargs: dict[str, Any], tree: ast.Call) -> None:
        """Resolve the mesh and the placement among the arguments of a call, with their places in the text."""
        mesh = None
        for index, param in enumerate(op.params):
            if param.of not in ("mesh", "placement"):
                continue
            found = [keyword.value for keyword in tree.keywords if keyword.arg == param.name]
            place = found[0] if found else tree.args[index] if index < len(tree.args) else None
            values: Any = kwargs if found else args
            key: Any = param.name if found else index
            if place is None or isinstance(place, ast.Starred) or not (found or index < len(args)):
                continue
            if param.of == "mesh":
                mesh = values[key] = self.as_mesh(values[key], place)
            else:
                values[key] = placement = self.read_placement(place)
                ty = whole_tensors(self.infer(args[0], tree)) if args and isinstance(args[0], LEAVES) else None
                ndim = ty.ndim if isinstance(ty, TensorType) else -1
                if mesh is not None:
                    self.fold(partial(check_placement, placement, mesh, ndim), place)

    def _check_devices(self, op: OpDef, args: list[Any], kwargs: dict[str, Any], tree: ast.Call) -> None:
        """The names of virtual devices among the arguments of a call."""
        for index, param in enumerate(op.params):
            if param.of == "device":
                given = kwargs.get(param.name, args[index] if index < len(args) else None)
                if isinstance(given, str):
                    self.check_device(given, tree)

    def _call_label(self, op: OpDef, kwargs: dict[str, Any], tree: ast.AST) -> str | None:
        """`target="npu"`: the label of the part that a call belongs to, which any operator takes."""
        if "target" not in kwargs or any(param.name == "target" for param in op.params):
            return None
        label = kwargs.pop("target")
        if not isinstance(label, str) or not label.isidentifier():
            raise self.fail("W114", f"target takes the label of a part of the target, got {describe(label)}", tree)
        return label

    def operand(self, value: Any, tree: ast.AST) -> Any:
        """An argument of an operator: calls are bound first, plain values stay (the declaration converts them)."""
        if isinstance(value, Tuple) and all(isinstance(item, LEAVES) for item in value.fields):
            return value
        if isinstance(value, (PrimFunc, Function)):
            return self.as_expr(value, tree)
        if isinstance(value, Expr) and not isinstance(value, (*LEAVES, Type, PrimExpr)):
            return self.leaf(value, tree)
        if isinstance(value, PrimExpr):
            return self._prim_leaf(value, tree)
        if isinstance(value, Macro) and not value.level:
            return value.text  # the operator that takes a function reads its text
        if isinstance(value, MappedLayout):
            return value.text
        if isinstance(value, (tuple, list)):
            return type(value)(self.operand(item, tree) for item in value)
        if isinstance(value, np.ndarray):
            return self.as_expr(value, tree)
        return value

    def attribute_of(self, base: Any, tree: ast.Attribute) -> Any:
        """`x.shape`, `x.dtype`, `x.ndim` of a tensor whose type says them."""
        if isinstance(base, Expr) and tree.attr in ("shape", "dtype", "ndim"):
            ty = self.infer(self.leaf(base, tree.value), tree)
            if isinstance(ty, TensorType):
                found = {"shape": ty.dims, "dtype": ty.dtype, "ndim": ty.ndim if ty.ndim >= 0 else None}[tree.attr]
                if found is not None:
                    return found
                raise self.fail(
                    "W114", f"the {tree.attr} of {type_text(ty)} is not known here", tree, "use R.match_cast to name it"
                )
        if isinstance(base, Expr):
            message = f"`.{tree.attr}` of {describe(base)} is not part of the script"
            raise self.fail("W115", message, tree, self._as_operator(tree))
        return super().attribute_of(base, tree)

    def spread(self, value: Any, tree: ast.expr) -> Sequence[Any]:
        """The parts of `*value`: the fields of a tuple of the graph too."""
        ty = self.infer(value, tree) if isinstance(value, Expr) else None
        if not isinstance(ty, TupleType):
            return super().spread(value, tree)
        whole = self.leaf(value, tree)
        fields = [TupleGetItem(whole, position, span=self.span(tree)) for position in range(len(ty.fields))]
        return [self.leaf(field, tree) for field in fields]

    def subscript_of(self, base: Any, tree: ast.Subscript) -> Any:
        """A field of a tuple; of a tensor, an error that says what to write."""
        if not isinstance(base, Expr):
            return super().subscript_of(base, tree)
        value = self.leaf(base, tree.value)
        ty = self.infer(value, tree.value)
        if isinstance(ty, TensorType):
            return index_tensor(self, value, ty, tree)
        if isinstance(ty, ShapeType) and ty.dims is not None:
            index, dims = self.slice_of(tree.slice), ty.dims
            return self.fold(lambda: dims[index], tree)
        if isinstance(ty, TupleType) and isinstance(tree.slice, ast.Slice):
            index = self.slice_of(tree.slice)
            fields = [TupleGetItem(value, position, span=self.span(tree)) for position in range(len(ty.fields))]
            return tuple(self.leaf(field, tree) for field in self.fold(lambda: fields[index], tree))
        if not isinstance(ty, (TupleType, AnyType)):
            raise self.fail("W114", f"a {type_text(ty)} has no fields", tree)
        index = self.constant(tree.slice)
        if isinstance(index, bool) or not isinstance(index, int):
            raise self.fail("W114", f"a field is chosen by a constant, got {describe(index)}", tree.slice)
        if isinstance(ty, TupleType):
            count = len(ty.fields)
            if not -count <= index < count:
                raise self.fail("W121", f"field {index} of a tuple of {count}", tree.slice)
            index %= count
        return TupleGetItem(value, index, span=self.span(tree))

    def call_named(self, name: str, tree: ast.Call) -> Any:
        """A call of a name of R: a form of the table, or a declared operator."""
        method = self._GRAPH_FORMS.get(name)
        if method is not None:
            return method(self, tree)
        if name.startswith("R.") and name not in VALUES and name not in ALL_FORMS and name not in self._FORMS:
            if name[2:] in OPS:
                args, kwargs = self.arguments(tree)
                if name.startswith("R.dist."):
                    self._placed(OPS[name[2:]], args, kwargs, tree)
                self._check_devices(OPS[name[2:]], args, kwargs, tree)
                return self.operator(name[2:], args, kwargs, tree)
            if why_unread(name) is not None:
                raise self.unknown(name, tree.func)
            get_op(name[2:], self.span(tree.func))
        if name.startswith("T."):
            dtype = self.dtype_name(name)
            if dtype is not None and len(tree.args) == 1:
                return self._typed(dtype, tree)
            if name in ("T.IntImm", "T.FloatImm") and len(tree.args) == 2 and not tree.keywords:
                return self._typed(KINDS["dtype"].read(self, tree.args[0]), tree)
            if name in ("T.min", "T.max", "T.floordiv", "T.floormod", "T.ceildiv", "T.Div", "T.truncdiv", "T.truncmod"):
                short = _WHOLE_DIVISION.get(name, name[2:])  # sizes are not negative: both divisions agree
                values = [self.value(argument) for argument in tree.args]
                if short in ("min", "max", "ceildiv"):
                    inner = ast.copy_location(ast.Name(short, ast.Load()), tree.func)
                    return self.call_builtin(short, ast.copy_location(ast.Call(inner, tree.args, []), tree))
                if len(values) == 2:
                    return self.binary(short, values[0], values[1], tree)
            close = likely_operators(name.removeprefix("T."))
            hint = f"did you mean `R.{close[0]}`?" if close else None
            raise self.fail("W115", f"`{name}` is tensor-level: it belongs in a T.prim_func", tree.func, hint)
        return super().call_named(name, tree)

    def settled(self, value: Any, tree: ast.expr) -> Any:
        """A value that may be used more than once: what computes is bound first."""
        return self.leaf(value, tree) if isinstance(value, Expr) and not isinstance(value, PrimExpr) else value

    def builtin_of(self, name: str, values: list[Any], tree: ast.Call) -> Any:
        """`abs(x)`, `min(x, y)`, `max(x, y)`, `len(x)`, `round(x)` of tensors and tuples."""
        if name in _OPERATORS and len(values) == (1 if name in ("abs", "round") else 2):
            return self.operator(_OPERATORS[name], values, {}, tree)
        if name == "len" and len(values) == 1:
            if isinstance(values[0], (tuple, list)):
                return len(values[0])
            ty = self.infer(self.leaf(values[0], tree), tree)
            if isinstance(ty, TupleType):
                return len(ty.fields)
            if isinstance(ty, (TensorType, ShapeType)) and ty.dims:
                return ty.dims[0] if isinstance(ty, TensorType) else len(ty.dims)
        return super().builtin_of(name, values, tree)

    def extra_names(self, root: str) -> Iterator[str] | list[str]:  # type: ignore[override]
        """Declared operators, for suggestions."""
        return [f"R.{name}" for name in OPS] if root == "R" else []

    def arguments(self, tree: ast.Call) -> tuple[list[Any], dict[str, Any]]:
        """The values of a call's arguments, in Python's order."""
        args = [self.value(argument) for argument in self._spread(tree)]
        kwargs: dict[str, Any] = {}
        for keyword in tree.keywords:
            if keyword.arg is None:
                raise self.fail("W115", "** is not part of the script", keyword.value)
            word = OLD_KEYWORDS.get(keyword.arg, keyword.arg)
            if word in kwargs:
                raise self.fail("W113", f"`{word}` is given twice, here as `{keyword.arg}`", keyword)
            kwargs[word] = self.argument(keyword.value)
        return args, kwargs

    def argument(self, tree: ast.expr) -> Any:
        """The value of a keyword argument; `out_ty=[...]` holds types."""
        return self.value(tree)

    def _typed(self, dtype: str, tree: ast.Call) -> Any:
        """`T.int64(3)`, `T.IntImm("int64", 3)`: a number of a dtype; a dimension stays one."""
        value = self.value(tree.args[-1])
        if isinstance(value, DimExpr):
            return value if dtype == "int64" else PrimValue(value, dtype, span=self.span(tree))
        if isinstance(value, str) and dtype.startswith(("float", "bfloat")):
            value = self.fold(lambda: float(value), tree)
        if not isinstance(value, (bool, int, float)):
            raise self.fail("W114", f"expected a number, got {describe(value)}", tree)
        if dtype == "int64" and isinstance(value, int):
            return value
        return self.prim_value(value, dtype, tree)

    def prim_value(self, value: Any, dtype: str, tree: ast.AST) -> PrimValue:
        """A number as a scalar of a dtype."""
        if dtype == "bool":
            value = bool(value)
        elif dtype.startswith(("float", "bfloat")) and not isinstance(value, DimExpr):
            value = float(value)
        elif isinstance(value, float):
            raise self.fail("W114", f"{value!r} is not a value of {dtype}", tree)
        return PrimValue(value, dtype, span=self.span(tree))

    def call_other(self, tree: ast.Call) -> Any:
        """A call of a function of the module or of a local function."""
        name = self.global_name(tree.func)
        if name is not None:
            return self._call_of(GlobalVar(name, self.span(tree.func)), tree)
        if isinstance(tree.func, ast.Attribute):
            base = self.value(tree.func.value)
            hint = self._as_operator(tree.func) if isinstance(base, Expr) else None
            raise self.fail(
                "W115", f"`.{tree.func.attr}` of {describe(base)} is not part of the script", tree.func, hint
            )
        if isinstance(tree.func, ast.Name):
            found = self.lookup(tree.func.id, tree.func)
            if isinstance(found, (Var, ExternFunc, GlobalVar)):
                return self._call_of(found, tree)
            if isinstance(found, (Function, PrimFunc)):
                return self._call_of(self.as_expr(found, tree.func), tree)
        if isinstance(tree.func, (ast.Call, ast.Subscript)):
            found = self.value(tree.func)
            if isinstance(found, Expr) and not isinstance(found, PrimExpr):
                return self._call_of(self.leaf(found, tree.func), tree)
        return super().call_other(tree)

    def _call_of(self, callee: Expr, tree: ast.Call) -> Call:
        attrs, ty_args = EMPTY, ()
        for keyword in tree.keywords:
            if keyword.arg == "attrs":
                attrs = self.read_literal(keyword.value)
            elif keyword.arg in ("ty_args", "sinfo_args"):
                ty_args = self.read_types(keyword.value)
        names = ("attrs", "ty_args", "sinfo_args")
        keywords = [keyword for keyword in tree.keywords if keyword.arg not in names]
        args = [self.leaf(self.value(argument), argument) for argument in self._spread(tree)]
        known = self.module.parameters_of(callee.name) if isinstance(callee, GlobalVar) else None
        if known is not None:
            self._name_arguments(callee, args, keywords, known, tree)
        elif keywords:
            raise self.fail("W113", "a function is called with positional arguments", keywords[0])
        return Call(callee, tuple(args), attrs, ty_args, span=self.span(tree))

    def _name_arguments(
        self, callee: Expr, args: list[Expr], keywords: list[ast.keyword], known: Mapping[str, ast.expr | None],
        tree: ast.Call,
    ) -> None:  # fmt: skip
        """Add keyword arguments and defaults to the arguments of a call of a graph function of the module."""
        given = {keyword.arg: keyword for keyword in keywords}
        for name, keyword in given.items():
            if name is None:
                raise self.fail("W115", "** is not part of the script", keyword.value)
            if name not in known:
                raise self.fail("W113", f"there is no parameter '{name}'", keyword, did_you_mean(name, known))
            if name in list(known)[: len(args)]:
                raise self.fail("W113", f"'{name}' is given twice", keyword)
        for position, (name, default) in enumerate(known.items()):
            if position < len(args):
                continue
            if name in given:
                args.append(self.leaf(self.value(given[name].value), given[name].value))
            elif default is not None:
                scope, self.scope = self.scope, Scope()
                try:
                    args.append(self._default(self.value(default), callee, position, tree))
                finally:
                    self.scope = scope
            elif given:
                raise self.fail("W113", f"the call lacks its argument '{name}'", tree)
            else:
                return  # too few: said with the types of all

    def _default(self, value: Any, callee: Expr, position: int, tree: ast.Call) -> Expr:
        """The default of a parameter, as the argument of a call."""
        found: Any = self.context.functions.get(callee.name) if isinstance(callee, GlobalVar) else None
        params = found.params if isinstance(found, (Function, FuncType)) and found.params is not None else ()
        wanted = params[position] if position < len(params) else None
        return self.default_value(value, wanted.ty if isinstance(wanted, Var) else wanted, tree)

    def default_value(self, value: Any, wanted: Type | None, tree: ast.AST) -> Expr:
        """The default of a parameter of a type: a number becomes a scalar tensor where that is its type."""
        if isinstance(wanted, TensorType) and wanted.ndim == 0 and isinstance(value, (bool, int, float)):
            return constant_value(value, wanted.dtype, None, False, self.span(tree), self.unit.blobs)
        return self.leaf(value, tree)

    def _const(self, tree: ast.Call) -> Constant:
        values = self.bind(VALUES["R.const"], tree)
        data = self.value(values["data"])
        if isinstance(data, DimExpr):
            hint = f'a size is a scalar of the graph already: write `{data}`, or `R.astype({data}, "float32")`'
            raise self.fail("W114", f"expected a constant, got {describe(data)}", values["data"], hint)
        data = self.constant(KnownValue(data, values["data"]))
        dtype = values["dtype"]
        if dtype is None and isinstance(data, np.dtype):
            raise self.fail("W114", "expected a number or array", tree)
        return constant_value(data, dtype, values["shape"], values["bits"], self.span(tree), self.unit.blobs)

    def _shape(self, tree: ast.Call) -> ShapeExpr:
        dims = self.bind(VALUES["R.shape"], tree)["dims"]
        trees = tree.args[0].elts if tree.args and isinstance(tree.args[0], (ast.List, ast.Tuple)) else []
        computed = len(trees) == len(dims) and any(isinstance(item, ast.BinOp) for item in trees)
        return ShapeExpr(dims, span=self.span(tree), written=tuple(map(ast.unparse, trees)) if computed else ())

    def _prim_value(self, tree: ast.Call) -> PrimValue:
        values = self.bind(VALUES["R.prim_value"], tree)
        value = self.value(values["value"])
        if isinstance(value, str):
            value = self.dim_text(value, values["value"])
        if isinstance(value, PrimValue):
            return replace(value, span=self.span(tree))
        if not isinstance(value, (bool, int, float, DimExpr)):
            raise self.fail("W114", f"expected a number or dimension, got {describe(value)}", values["value"])
        if values["dtype"] is not None:
            return self.prim_value(value, values["dtype"], tree)
        return PrimValue(value, span=self.span(tree))

    def _dtype_value(self, tree: ast.Call) -> DataTypeImm:
        """`R.dtype("float32")`; the empty text is how printers of the field write void."""
        if len(tree.args) == 1 and isinstance(tree.args[0], ast.Constant) and tree.args[0].value == "":
            return DataTypeImm("void", span=self.span(tree))
        return self._plain_form(tree)

    def _plain_form(self, tree: ast.Call) -> Any:
        form = ALL_FORMS[self.dotted(tree.func) or ""]
        return form.build(**self.bind(form, tree), span=self.span(tree))  # type: ignore[misc]

    def _call_packed(self, tree: ast.Call) -> Call:
        values = self.bind(VALUES["R.call_packed"], tree)
        return Call(values["func"], values["args"], values["attrs"] or EMPTY, values["ty_args"], span=self.span(tree))

    def _call_op(self, tree: ast.Call) -> Call:
        values = self.bind(VALUES["R.call_op"], tree)
        op = Op(values["name"], span=self.span(tree))
        return Call(op, values["args"], values["attrs"] or EMPTY, values["ty_args"], span=self.span(tree))

    _GRAPH_FORMS: ClassVar[dict[str, Callable[[Any, ast.Call], Any]]] = {}

    @classmethod
    def form(cls, name: str) -> Callable[[FormReader], FormReader]:
        """A decorator of the function `(reader, tree)` that reads the calls of a form."""

        def register(read: FormReader) -> FormReader:
            cls._GRAPH_FORMS[name] = read
            return read

        return register


ValueReader._GRAPH_FORMS = {
    "R.const": ValueReader._const,
    "R.shape": ValueReader._shape,
    "R.prim_value": ValueReader._prim_value,
    "R.str": ValueReader._plain_form,
    "R.dtype": ValueReader._dtype_value,
    "R.ExternFunc": ValueReader._plain_form,
    "R.tuple": ValueReader._plain_form,
    "R.call_packed": ValueReader._call_packed,
    "R.call_op": ValueReader._call_op,
    "T.index_map": Reader._form_index_map,
}


def _dims_within(ty: Type) -> Iterator[Any]:
    """The dimensions of a type in order."""
    if isinstance(ty, TensorType):
        yield from ty.dims or ()
    elif isinstance(ty, (ShapeType, PrimType)):
        yield from ty.dims or ()
    elif isinstance(ty, TupleType):
        for part in ty.fields:
            yield from _dims_within(part)
