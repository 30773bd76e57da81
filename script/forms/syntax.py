"""The syntax table: how every construct of a script is written, once, for the reader and the printer.

A form is a call in Python syntax with holes. Its signature is a Python signature whose annotations name hole kinds
(`weft.script.forms.holes`)::

    T.Select(condition: prim, true_value: prim, false_value: prim)

Reading binds a call's arguments to the holes as Python would and gives each to its kind; printing fills the holes
from the node (fields of the same name, unless the row says otherwise) and leaves out what equals its default. Rows
stand in groups by the place where they may occur:

    TYPES       types                                   SCALARS     tensor-level expressions
    VALUES      graph-level leaves and calls            LOOPS       after `for ... in`
    BUFFERS     what makes a buffer                     CLAUSES     statements that are a bare call
    DIRECTIVES  function and module level statements    SCOPES      after `with`

Operators of Python's own syntax stand in BINARY and UNARY with their precedence; declared operators
(`R.nn.softmax`) and intrinsics (`T.exp`) need no rows: their declarations say how they are called.
"""

from __future__ import annotations

import ast
import bisect
from collections.abc import Callable, Mapping
from typing import Any

from weft.ir import graph, tensor, types
from weft.ir.attrs import REWRITER
from weft.ir.node import freeze
from weft.script.forms.holes import KINDS, Kind
from weft.support.records import record

__all__ = [
    "ALIASES", "ALL_FORMS", "BINARY", "BINARY_BY_TREE", "BUFFERS", "BY_CLASS", "CLAUSES", "COMPARE_BY_TREE",
    "DIRECTIVES", "LOOPS", "NAMES", "REQUIRED", "REWRITER", "SCALARS", "SCOPES", "SHOWN_AS", "SIDES", "TYPES", "UNARY",
    "UNARY_BY_TREE", "VALUES", "Form", "Hole", "Operator", "ShownAs", "add_form", "form_doc",
]


class _Required:
    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED = _Required()


@record
class Hole:
    """An argument of a form; `star` takes all the rest by position, `named` is by keyword only."""

    name: str
    kind: Kind
    default: Any = REQUIRED
    star: bool = False
    named: bool = False


@record
class Form:
    """A row of the table: the written name, its holes, the node class (if it stands for one)."""

    name: str
    holes: tuple[Hole, ...]
    node: type | None = None
    build: Callable[..., Any] | None = None
    old_names: Mapping[str, str] | None = None
    doc: str = ""  # a sentence; empty where the node, or the function of the namespace, says it

    @property
    def positional(self) -> list[Hole]:
        """The holes that positional arguments fill, in order."""
        return [hole for hole in self.holes if not hole.named and not hole.star]


@record
class ShownAs:
    """A statement form from outside: the values of its holes for a node, or None; whether the node has a body."""

    form: Form
    values: Callable[[Any], Mapping[str, Any] | None]
    has_body: bool


TYPES: dict[str, Form] = {}
VALUES: dict[str, Form] = {}
SCALARS: dict[str, Form] = {}
BUFFERS: dict[str, Form] = {}
LOOPS: dict[str, Form] = {}
SCOPES: dict[str, Form] = {}
CLAUSES: dict[str, Form] = {}
DIRECTIVES: dict[str, Form] = {}
ALL_FORMS: dict[str, Form] = {}
SHOWN_AS: dict[type, list[ShownAs]] = {}  # statement forms from outside, by the class of the node that they show
NAMES: list[str] = []  # every name of the table in order, for suggestions
BY_CLASS: dict[type, Form] = {}
ALIASES: dict[str, str] = {}  # an old or short spelling -> the one that is printed


def _holes(arguments: ast.arguments) -> tuple[Hole, ...]:
    def kind(argument: ast.arg) -> Kind:
        assert isinstance(argument.annotation, ast.Name), argument.arg
        return KINDS[argument.annotation.id]

    plain = arguments.args
    missing = [REQUIRED] * (len(plain) - len(arguments.defaults))
    defaults = [*missing, *(freeze(ast.literal_eval(default)) for default in arguments.defaults)]
    holes = [Hole(argument.arg, kind(argument), default) for argument, default in zip(plain, defaults, strict=True)]
    if arguments.vararg:
        holes.append(Hole(arguments.vararg.arg, kind(arguments.vararg), star=True))
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        value = REQUIRED if default is None else freeze(ast.literal_eval(default))
        holes.append(Hole(argument.arg, kind(argument), value, named=True))
    return tuple(holes)


def add_form(
    group: dict[str, Form],
    signature: str,
    node: type | None = None,
    build: Callable[..., Any] | None = None,
    *,
    aliases: str = "",
    old_names: Mapping[str, str] | None = None,
    doc: str = "",
) -> Form:
    """Add a row to a group of the table; ValueError for a name that has one."""
    name, _, rest = signature.partition("(")
    tree = ast.parse(f"def form({rest}: pass").body[0]
    assert isinstance(tree, ast.FunctionDef)
    made = Form(name, _holes(tree.args), node, build or node, old_names, doc)
    if name in ALL_FORMS:
        raise ValueError(f"two rows for {name}")
    group[name] = ALL_FORMS[name] = made
    if node is not None:
        BY_CLASS.setdefault(node, made)
    for alias in aliases.split():
        ALIASES[alias] = name
    for known in (name, *aliases.split()) if NAMES else ():
        bisect.insort(NAMES, known)
    return made


def form_doc(name: str) -> str:
    """The sentence of a row about itself, by its name or another spelling of that; empty where it has none."""
    row = ALL_FORMS.get(ALIASES.get(name, name))
    return row.doc if row is not None else ""


# ---------------------------------------------------------------------------------------------------------------------
# Types
# ---------------------------------------------------------------------------------------------------------------------

add_form(TYPES, "R.Tensor(shape: shape_or_none = None, dtype: dtype_or_none = None, *, ndim: integer = -1, "
             "vdevice: vdevice_or_none = None)", types.TensorType)
add_form(TYPES, "R.Shape(dims: dims_or_none = None, *, ndim: integer = -1)", types.ShapeType)
add_form(TYPES, "R.Tuple(*fields: type)", types.TupleType)
add_form(TYPES, "R.Prim(dtype: dtype_or_none = None, value: scalar_value_or_none = None)", types.PrimType)
add_form(
    TYPES,
    "R.Callable(params: types_or_none = None, ret: type_or_none = None, pure: boolean_or_none = None, *, "
    "derive: text_or_none = None)",
    types.FuncType,
    old_names={"purity": "pure", "derive_func": "derive"},
    doc="A function type; without params, that of an opaque function.",
)
add_form(TYPES, "R.Any()", types.AnyType, aliases="R.Object I.AnyType", doc="The type of anything.")
add_form(TYPES, "R.Str()", types.StringType, aliases="R.String I.StringType")
add_form(TYPES, "R.DTensor(shape: shape_or_none = None, dtype: dtype_or_none = None, device_mesh: mesh_or_none = None, "
             "placement: placement_or_none = None, *, ndim: integer = -1)", aliases="R.dist.DTensor")
add_form(TYPES, "R.device_mesh(shape: literal, device_ids: literal)", aliases="R.dist.device_mesh R.DeviceMesh")
add_form(TYPES, "I.vdevice(target: literal, index: integer = 0, scope: text = 'global')", types.VDevice)

# ---------------------------------------------------------------------------------------------------------------------
# Graph level
# ---------------------------------------------------------------------------------------------------------------------

add_form(
    VALUES,
    "R.const(data: anything, dtype: dtype_or_none = None, *, shape: literal = None, bits: boolean = False)",
    graph.Constant,
)
add_form(VALUES, "R.shape(dims: dims)", graph.ShapeExpr, aliases="R.ShapeExpr")
add_form(VALUES, "R.prim_value(value: anything, dtype: dtype_or_none = None)", graph.PrimValue)
add_form(VALUES, "R.str(value: text)", graph.StringImm)
add_form(VALUES, "R.dtype(value: dtype)", graph.DataTypeImm)
add_form(
    VALUES,
    "R.ExternFunc(name: text, ty: type_or_none = None)",
    graph.ExternFunc,
    doc="A function outside the module, by name.",
)
add_form(VALUES, "R.tuple(*fields: leaf)", graph.Tuple)
add_form(VALUES, "R.TupleGetItem(tuple_value: leaf, index: integer)", doc="A field of a tuple: `t[0]`.")
add_form(
    VALUES,
    "R.emit(value: anything, annotate_ty: type_or_none = None)",
    old_names={"annotate_struct_info": "annotate_ty"},
    doc="The value in a binding of its own, of a type that it is checked to have.",
)
add_form(
    VALUES,
    "R.match_cast(value: leaf, ty: anything)",
    graph.MatchCast,
    old_names={"struct_info": "ty"},
    doc="The value, its type checked when the function runs; symbols of the type that are new are bound.",
)
add_form(VALUES, "R.call_packed(func: callee, *args: leaf, ty_args: types = (), attrs: literal = {})",
      old_names={"sinfo_args": "ty_args"})
add_form(VALUES, "R.call_op(name: text, *args: leaf, attrs: literal = {}, ty_args: types = ())")
add_form(DIRECTIVES, "R.func_attr(attrs: literal)", doc="Attributes of the function.")
add_form(DIRECTIVES, "R.output(*vars: leaf)", doc="The variables that leave a dataflow block, at its end.")
add_form(DIRECTIVES, "R.is_impure()", doc="The function may have effects, as @R.function(pure=False) says.")
add_form(DIRECTIVES, "I.module_attrs(attrs: literal)")
add_form(DIRECTIVES, "I.module_global_infos(infos: literal)")
add_form(DIRECTIVES, "T.func_attr(attrs: literal)", doc="Attributes of the function.")
add_form(SCOPES, "R.dataflow()", doc="A block of pure bindings; only what R.output names leaves it.")

# ---------------------------------------------------------------------------------------------------------------------
# Tensor level: expressions
# ---------------------------------------------------------------------------------------------------------------------

add_form(SCALARS, "T.Cast(dtype: dtype, value: prim)", tensor.Cast, aliases="T.cast")
add_form(SCALARS, "T.Select(condition: prim, true_value: prim, false_value: prim)", tensor.Select)
add_form(SCALARS, "T.Ramp(base: prim, stride: prim, lanes: lanes)", tensor.Ramp, aliases="T.ramp")
add_form(
    SCALARS,
    "T.Broadcast(value: prim, lanes: lanes)",
    tensor.Broadcast,
    aliases="T.broadcast",
    doc="A scalar in every lane.",
)
add_form(SCALARS, "T.Shuffle(vectors: prims, indices: prims)", tensor.Shuffle)
add_form(SCALARS, "T.StringImm(value: text)", graph.StringImm, aliases="I.StringImm")
add_form(SCALARS, "T.Let(body: anything, *, where: where)", tensor.Let)
add_form(
    SCALARS,
    "T.call_intrin(dtype: dtype, op: anything, *args: operand, attrs: literal = {})",
    doc="A call of an intrinsic by name.",
)

# ---------------------------------------------------------------------------------------------------------------------
# Tensor level: buffers, loops, scopes, clauses
# ---------------------------------------------------------------------------------------------------------------------

_BUFFER = (
    'shape: extents, dtype: dtype = "float32", *, data: pointer_or_none = None, strides: extents_or_none = None, '
    'elem_offset: extent_or_none = None, scope: text = "global", align: integer = 0, offset_factor: integer = 0, '
    "axis_separators: literal = ()"
)
_PLAIN_BUFFER = _BUFFER.replace('scope: text = "global", ', "")
add_form(BUFFERS, f"T.Buffer({_BUFFER})", tensor.Buffer)
add_form(
    BUFFERS,
    f"T.match_buffer(source: region, {_BUFFER.replace('shape: extents', 'shape: extents_or_none = None')})",
    tensor.MatchBufferRegion,
    doc="A buffer over the memory of a handle parameter, or over a region of another buffer.",
)
add_form(
    BUFFERS,
    f"T.alloc_buffer({_BUFFER}, block: boolean = True, annotations: literal = {{}})",
    tensor.AllocBuffer,
    aliases="T.sblock_alloc_buffer",
    doc="A temporary buffer.",
)
add_form(BUFFERS, f"T.decl_buffer({_BUFFER})", tensor.DeclBuffer, doc="A buffer over memory that exists.")
add_form(
    BUFFERS,
    'T.allocate(shape: extents, dtype: dtype = "float32", scope: text = "global", condition: prim_or_none = None, *, '
    "annotations: literal = {})",
    doc="A temporary buffer.",
)
add_form(
    BUFFERS,
    "T.allocate_const(data: anything, dtype: dtype, shape: extents, *, annotations: literal = {})",
    doc="Memory with known content.",
)
add_form(
    BUFFERS, f"T.alloc_local({_PLAIN_BUFFER}, annotations: literal = {{}})", doc="A temporary buffer in local memory."
)
add_form(
    BUFFERS, f"T.alloc_shared({_PLAIN_BUFFER}, annotations: literal = {{}})", doc="A temporary buffer in shared memory."
)
add_form(
    BUFFERS,
    'T.alloc_scalar(dtype: dtype = "float32", scope: text = "global")',
    doc="A variable in the memory of a scope.",
)
add_form(BUFFERS, 'T.local_scalar(dtype: dtype = "float32")', doc="A local variable.")
add_form(BUFFERS, 'T.shared_scalar(dtype: dtype = "float32")', doc="A variable in shared memory.")
add_form(
    BUFFERS,
    'T.decl_scalar(dtype: dtype, data: pointer_or_none = None, scope: text = "global", '
    "elem_offset: extent_or_none = None)",
    doc="A variable in memory that exists.",
)

_LOOP = (
    "*, step: extent_or_none = None, annotations: literal = {}, dtype: dtype_or_none = None, "
    "extent: extent_or_none = None"
)
for _kind, _doc in {
    "serial": "A loop.",
    "parallel": "A loop whose rounds may run at the same time.",
    "vectorized": "A loop of one vector operation.",
    "unroll": "A loop that is written out.",
}.items():
    add_form(LOOPS, f"T.{_kind}(start: extent, stop: extent_or_none = None, {_LOOP})", doc=_doc)
add_form(
    LOOPS,
    f"T.thread_binding(start: extent, stop: extent_or_none = None, thread: text = '', {_LOOP})",
    doc="A loop whose rounds are threads of a device.",
)
add_form(
    LOOPS,
    "T.grid(*extents: extent)",
    doc="Nested loops, one variable each (a single name stands for the tuple of all).",
)
add_form(LOOPS, "range(start: extent, stop: extent_or_none = None, step: extent_or_none = None, *, "
      "annotations: literal = {})", doc="A loop over numbers, as in Python.")
add_form(LOOPS, "T.launch_thread(thread: anything, extent: extent)", doc="A thread axis around the rest of the block.")

add_form(
    SCOPES,
    "T.block(name: text = '', *, no_realize: boolean = False)",
    tensor.Block,
    aliases="T.sblock",
    doc="A unit of computation over iteration variables.",
)
add_form(SCOPES, "T.init()", doc="What runs before the first step of a reduction.")
add_form(SCOPES, "T.seq()", tensor.SeqStmt, doc="Statements kept together.")
add_form(
    SCOPES,
    "T.attr(node: anything, key: text, value: anything)",
    tensor.AttrStmt,
    doc="An attribute of a node, for the statements inside or after.",
)
add_form(
    SCOPES,
    "T.LetStmt(value: prim, var: anything = None, *, type_annotation: anything = None)",
    aliases="T.let",
    doc="A name for a value.",
)

_AXIS = "extent: anything, value: prim_or_none = None, *, start: extent = 0, dtype: dtype_or_none = None"
for _kind, _doc in {
    "spatial": "An iteration variable each of whose values is a result of its own.",
    "reduce": "An iteration variable that is summed over.",
    "scan": "An iteration variable that runs in order.",
    "opaque": "An iteration variable of unknown kind.",
}.items():
    add_form(CLAUSES, f"T.axis.{_kind}({_AXIS})", doc=_doc)
ALIASES.update({"T.axis.S": "T.axis.spatial", "T.axis.R": "T.axis.reduce"})
add_form(
    CLAUSES,
    "T.axis.remap(kinds: text, values: prims)",
    doc="Iteration variables of given kinds (S spatial, R reduce) for enclosing loops.",
)
add_form(CLAUSES, "T.reads(*regions: regions)", doc="What the block reads; derived where it is not stated.")
add_form(CLAUSES, "T.writes(*regions: regions)", doc="What the block writes; derived where it is not stated.")
add_form(CLAUSES, "T.where(predicate: prim)", doc="When the block runs.")
add_form(CLAUSES, "T.block_attr(attrs: literal)", aliases="T.sblock_attr", doc="Attributes of the block.")
add_form(CLAUSES, "T.evaluate(value: prim)", tensor.Evaluate, doc="An expression for its effect.")
add_form(CLAUSES, "T.bind(value: prim, var: anything = None)", doc="A name for a value.")

# ---------------------------------------------------------------------------------------------------------------------
# Python's operators
# ---------------------------------------------------------------------------------------------------------------------


@record
class Operator:
    """A Python operator: its tree class, precedence (higher binds tighter), and the graph-level operator it means."""

    text: str
    tree: type[ast.AST]
    precedence: int
    graph: str = ""
    associative: bool = True  # the left operand may have the same precedence


BINARY: dict[str, Operator] = {
    "or": Operator("or", ast.Or, 1, "logical_or"),
    "and": Operator("and", ast.And, 2, "logical_and"),
    "eq": Operator("==", ast.Eq, 4, "equal", associative=False),
    "ne": Operator("!=", ast.NotEq, 4, "not_equal", associative=False),
    "lt": Operator("<", ast.Lt, 4, "less", associative=False),
    "le": Operator("<=", ast.LtE, 4, "less_equal", associative=False),
    "gt": Operator(">", ast.Gt, 4, "greater", associative=False),
    "ge": Operator(">=", ast.GtE, 4, "greater_equal", associative=False),
    "bitwise_or": Operator("|", ast.BitOr, 5, "bitwise_or"),
    "bitwise_xor": Operator("^", ast.BitXor, 6, "bitwise_xor"),
    "bitwise_and": Operator("&", ast.BitAnd, 7, "bitwise_and"),
    "shift_left": Operator("<<", ast.LShift, 8, "left_shift"),
    "shift_right": Operator(">>", ast.RShift, 8, "right_shift"),
    "add": Operator("+", ast.Add, 9, "add"),
    "sub": Operator("-", ast.Sub, 9, "subtract"),
    "mul": Operator("*", ast.Mult, 10, "multiply"),
    "div": Operator("/", ast.Div, 10, "divide"),
    "floordiv": Operator("//", ast.FloorDiv, 10, "floor_divide"),
    "floormod": Operator("%", ast.Mod, 10, "floor_mod"),
    "matmul": Operator("@", ast.MatMult, 10, "matmul"),
    "pow": Operator("**", ast.Pow, 12, "power"),
}
UNARY: dict[str, Operator] = {
    "not": Operator("not ", ast.Not, 3, "logical_not"),
    "neg": Operator("-", ast.USub, 11, "negative"),
    "bitwise_not": Operator("~", ast.Invert, 11, "bitwise_not"),
}
SIDES = ("pattern", "replacement")

ATOM = 20
BINARY_BY_TREE = {row.tree: kind for kind, row in BINARY.items()}
COMPARE_BY_TREE = {row.tree: kind for kind, row in BINARY.items() if row.precedence == 4}
UNARY_BY_TREE = {row.tree: kind for kind, row in UNARY.items()}

# Binary nodes that Python has no operator for, and the named spellings of those it has one for.
BINARY_CALLS = {
    "min": "T.min", "max": "T.max", "truncdiv": "T.truncdiv", "truncmod": "T.truncmod",
    "floordiv": "T.floordiv", "floormod": "T.floormod", "add": "T.Add", "sub": "T.Sub", "mul": "T.Mul", "div": "T.Div",
    "eq": "T.EQ", "ne": "T.NE", "lt": "T.LT", "le": "T.LE", "gt": "T.GT", "ge": "T.GE", "and": "T.And", "or": "T.Or",
    "bitwise_and": "T.bitwise_and", "bitwise_or": "T.bitwise_or", "bitwise_xor": "T.bitwise_xor",
    "shift_left": "T.shift_left", "shift_right": "T.shift_right",
}
UNARY_CALLS = {"not": "T.Not", "bitwise_not": "T.bitwise_not", "neg": "T.neg"}
CALLED_KINDS = {name: kind for kind, name in (*BINARY_CALLS.items(), *UNARY_CALLS.items())}
ALIASES.update({
    "T.div": "T.Div", "T.FloorDiv": "T.floordiv", "T.FloorMod": "T.floormod", "T.Min": "T.min", "T.Max": "T.max",
    "T.Mod": "T.truncmod", "T.truncDiv": "T.truncdiv", "T.power": "T.pow", "T.indexdiv": "T.floordiv",
    "T.indexmod": "T.floormod", "T.buffer_decl": "T.Buffer", "T.ptx_legacy.mma": "T.ptx_mma",
    "T.ptx_legacy.ldmatrix": "T.ptx_ldmatrix", 
    **{f"T.metal.{name}": f"T.{name}" for name in (
        "make_filled_simdgroup_matrix", "simdgroup_load", "simdgroup_store", "simdgroup_multiply_accumulate"
    )},
    "R.call_py_func": "R.call_py", "T.boolean": "T.bool", "T.logical_and": "T.And",
    "T.logical_or": "T.Or", "T.logical_not": "T.Not", "T.BitwiseAnd": "T.bitwise_and",
    "T.BitwiseOr": "T.bitwise_or", "T.BitwiseXor": "T.bitwise_xor", "T.BitwiseNot": "T.bitwise_not",
    "T.LShift": "T.shift_left", "T.RShift": "T.shift_right", "T.left_shift": "T.shift_left",
    "T.right_shift": "T.shift_right",
})

NAMES.extend(sorted({*ALL_FORMS, *ALIASES, *CALLED_KINDS}))
