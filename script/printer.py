"""Showing nodes as script text: the other direction of the syntax table.

The text of a module or function reads back as an equal node, and printing that gives the same text again. Names are
made unique per top-level function and valid; everything else is taken from the node as it is. Text is made of
pieces (strings, and tensor-level expressions with the precedence their place asks for), so that deep expressions
need no recursion.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from weft.errors import ScriptError
from weft.ir import dtype as dtypes
from weft.ir.dim import DimExpr, format_dim, free_symbols
from weft.ir.graph import (
    BindingBlock,
    Call,
    Constant,
    DataflowBlock,
    DataflowVar,
    DataTypeImm,
    Expr,
    ExternFunc,
    Function,
    GlobalVar,
    If,
    MatchCast,
    Op,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from weft.ir.intrinsics import INTRINSICS, result_dtype
from weft.ir.module import DummyGlobalInfo, IRModule
from weft.ir.node import FrozenMap, Node
from weft.ir.op import OPS
from weft.ir.structural import structural_equal
from weft.ir.target import Target
from weft.ir.tensor import (
    AllocBuffer,
    AssertStmt,
    AttrStmt,
    Binary,
    Bind,
    Block,
    Break,
    Broadcast,
    Buffer,
    BufferLoad,
    BufferRegion,
    BufferStore,
    Cast,
    Continue,
    DeclBuffer,
    Evaluate,
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
    Range,
    Return,
    Select,
    SeqStmt,
    Stmt,
    Unary,
    While,
)
from weft.ir.types import FuncType, PrimType, ShapeType, TensorType, TupleType, Type, VDevice
from weft.script.constants import constant_parts, float_text
from weft.script.defaults import DTYPE_FIRST, RESULT_DTYPES, axis_dtype, loop_dtype
from weft.script.kinds import string_text
from weft.script.source import deep_stack
from weft.script.syntax import (
    ALL_FORMS,
    ATOM,
    BINARY,
    BINARY_CALLS,
    BUFFERS,
    BY_CLASS,
    CLAUSES,
    LOOPS,
    REQUIRED,
    SCALARS,
    SCOPES,
    TYPES,
    UNARY,
    VALUES,
    Form,
)

__all__ = ["HEADER", "script_of"]

VERSION_LINE = "# weft-script 1"
HEADER = f"{VERSION_LINE}\nfrom weft.script import ir as I, relax as R, tir as T\n"
_RESERVED = frozenset(
    {
        "I",
        "R",
        "T",
        "cls",
        "range",
        "min",
        "max",
        "float",
        "int",
        "bool",
        "len",
        "abs",
        "round",
        "ceildiv",
        "tirx",
        *keyword.kwlist,
    }
)
_LOOP_NAMES = {"serial": "T.serial", "parallel": "T.parallel", "vectorized": "T.vectorized", "unrolled": "T.unroll",
               "thread_binding": "T.thread_binding"}  # fmt: skip
_AXIS_LETTERS = {"spatial": "S", "reduce": "R", "scan": "C", "opaque": "O"}
_NOT_NAME = re.compile(r"\W")

# What other spellings call the same things.
_SPELLINGS: dict[str, dict[str, str]] = {
    "weft": {},
    "tvm-0.27": {"T.block": "T.sblock", "T.block_attr": "T.sblock_attr"},
    "tvm-0.20": {"R.Any": "R.Object", "R.Any()": "R.Object", "out_ty": "out_sinfo", "ty_args": "sinfo_args"},
}
_HEADERS = {
    "weft": HEADER,
    "tvm-0.27": "\n".join(f"# from tvm.script import {name}" for name in ("ir as I", "relax as R", "tirx as T")),
    "tvm-0.20": "\n".join(f"# from tvm.script import {name}" for name in ("ir as I", "relax as R", "tir as T")),
}

Piece = Any  # str | (PrimExpr, minimal precedence)


def script_of(node: Any, *, spelling: str = "weft", types: str = "all", line_numbers: bool = False) -> str:
    """The script text of a module or function, or readable text of any smaller node.

    `spelling` is "weft", "tvm-0.27" or "tvm-0.20" (what those versions of the field call the same things); `types` is
    "all" or "none" (annotations of bindings); with `line_numbers` the text is for reading only.

    >>> from weft.ir import TensorType
    >>> script_of(TensorType((2, 3), "float32"))
    'R.Tensor((2, 3), "float32")'
    """
    if spelling not in _SPELLINGS:
        raise ScriptError(f"unknown spelling {spelling!r}", code="W113", hint=f"one of {', '.join(_SPELLINGS)}")
    if types not in ("all", "none"):
        raise ScriptError(f"unknown option types={types!r}", code="W113", hint='"all" or "none"')
    with deep_stack():
        text = _Printer(spelling, types == "all").text(node)
    if line_numbers:
        lines = text.rstrip("\n").split("\n")
        width = len(str(len(lines)))
        text = "\n".join(f"{number:>{width}} | {line}".rstrip() for number, line in enumerate(lines, 1)) + "\n"
    return text


class _Printer:
    """Prints one node."""

    def __init__(self, spelling: str, annotate: bool) -> None:
        self.renames = _SPELLINGS[spelling]
        self.spelling = spelling
        self.annotate = annotate
        self.lines: list[str] = []
        self.indent = ""
        self.reset()

    def reset(self) -> None:
        """Forget the names of the last function."""
        self.names: dict[Any, str] = {}
        self.used: set[str] = set()
        self.counts: dict[str, int] = {}
        self.symbols: set[str] = set()  # symbols that are names already
        self.silent: dict[Var, int] = {}  # statements whose variable has no name yet -> their line
        self.quoted = False  # whether dimensions are written as strings
        self.loops: dict[PrimVar, For] = {}

    def text(self, node: Any) -> str:
        """The text of any node."""
        if isinstance(node, (IRModule, Function, PrimFunc)):
            self.lines.append(_HEADERS[self.spelling].rstrip("\n"))
            self.lines.append("")
            self.lines.append("")
            if isinstance(node, IRModule):
                self.module(node)
            else:
                self.function(identifier(node.name or "main"), node.name or "main", node)
            return "\n".join(self.lines) + "\n"
        return self.fragment(node)

    # -- lines and names -----------------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        """Add a line at the current depth."""
        self.lines.append(self.indent + text if text else "")

    def name(self, variable: Any) -> str:
        """The name of a variable or buffer; a new one gets a free name."""
        found = self.names.get(variable)
        if found is None:
            found = self.names[variable] = self.fresh(variable.name)
            if variable in self.silent:
                position = self.silent.pop(variable)
                text = self.lines[position]
                body = text.lstrip(" ")
                self.lines[position] = f"{text[: len(text) - len(body)]}{found}: {self.show_type(variable.ty)} = {body}"
        return found

    def fresh(self, hint: str) -> str:
        """A free, valid name near the hint."""
        base = identifier(hint) if hint else "v"
        if base not in self.used and base not in _RESERVED and base not in self.symbols:
            self.used.add(base)
            return base
        count = self.counts.get(base, 0) + 1
        while f"{base}_{count}" in self.used or f"{base}_{count}" in self.symbols:
            count += 1
        self.counts[base] = count
        made = f"{base}_{count}"
        self.used.add(made)
        return made

    def spelled(self, name: str) -> str:
        """A name of the table in the chosen spelling."""
        return self.renames.get(name, name)

    # -- forms ---------------------------------------------------------------------------------------------------------

    def fill(self, form: Form, values: Mapping[str, Any], *, skip: Sequence[str] = ()) -> list[Piece]:
        """The pieces of a form with its holes filled; what equals a default is left out."""
        pieces: list[Piece] = [self.spelled(form.name), "("]
        first = True
        gap = False
        for hole in form.holes:
            if hole.star:
                for value in values.get(hole.name, ()):
                    if not first:
                        pieces.append(", ")
                    first = False
                    self._add(pieces, hole.kind.show(self, value))
                gap = True
                continue
            value = values.get(hole.name, hole.default)
            if value is REQUIRED or hole.name in skip:
                gap = gap or value is not REQUIRED
                continue
            if hole.default is not REQUIRED and _same(value, hole.default):
                gap = True
                continue
            if not first:
                pieces.append(", ")
            first = False
            if gap or hole.named:
                pieces.append(f"{self.spelled(hole.name)}=")
            self._add(pieces, hole.kind.show(self, value))
        pieces.append(")")
        return pieces

    def _add(self, pieces: list[Piece], shown: Any) -> None:
        if isinstance(shown, list):
            pieces.extend(shown)
        else:
            pieces.append(shown)

    def join(self, pieces: Iterable[Piece]) -> str:
        """Pieces as one string; nested expressions are written out without recursion."""
        out: list[str] = []
        stack: list[Piece] = list(pieces)[::-1]
        while stack:
            piece = stack.pop()
            if isinstance(piece, str):
                out.append(piece)
                continue
            expr, minimum = piece
            parts, precedence = self.prim_pieces(expr)
            if precedence < minimum:
                stack.append(")")
                stack.extend(parts[::-1])
                stack.append("(")
            else:
                stack.extend(parts[::-1])
        return "".join(out)

    def form_text(self, form: Form, values: Mapping[str, Any], **options: Any) -> str:
        """A filled form as a string."""
        return self.join(self.fill(form, values, **options))

    def node_values(self, form: Form, node: Node) -> dict[str, Any]:
        """The fields of a node by the names of the form's holes."""
        return {hole.name: getattr(node, hole.name) for hole in form.holes}

    # -- kinds ---------------------------------------------------------------------------------------------------------

    def show_anything(self, value: Any) -> Any:
        """A value whose form decides itself: ready text, an expression, or data."""
        if isinstance(value, _Ready):
            return value.text
        if isinstance(value, (IntImm, FloatImm)):
            return self.immediate(value)
        if isinstance(value, PrimExpr):
            return self.operand(value)
        if isinstance(value, Buffer):
            return self.name(value)
        return self.show_literal(value)

    def show_prim(self, value: Any) -> list[Piece]:
        """A tensor-level expression; a string stands as it is."""
        if isinstance(value, StringImm):
            return [string_text(value.value)]
        return [(value, 0)] if isinstance(value, PrimExpr) else [self.show_literal(value)]

    def show_pointer(self, value: Any) -> list[Piece]:
        """The data of a buffer."""
        return self.show_prim(value)

    def show_prims(self, values: Sequence[PrimExpr]) -> list[Piece]:
        """A list of tensor-level expressions."""
        return ["[", *_separated([(value, 0)] for value in values), "]"]

    def show_extent(self, value: Any) -> list[Piece]:
        """A size."""
        if isinstance(value, int):
            return [str(value)]
        if isinstance(value, str):
            return [value]
        if self.quoted and not isinstance(value, IntImm):
            return [string_text(self.join([(value, 0)]))]
        return [(value, 0)]

    def show_extents(self, values: Sequence[Any]) -> list[Piece]:
        """A shape."""
        inner = _separated(self.show_extent(value) for value in values)
        return ["(", *inner, ",)" if len(values) == 1 else ")"]

    def show_dim(self, value: Any) -> str:
        """A dimension: bare where its symbols are names already, else a string."""
        if isinstance(value, int):
            return str(value)
        text = format_dim(value)
        if self.quoted or any(name in _RESERVED or name not in self.symbols for name in free_symbols(value)):
            return string_text(text)
        return text

    def show_dims(self, values: Sequence[Any]) -> str:
        """Dimensions in brackets."""
        return f"[{', '.join(map(self.show_dim, values))}]"

    def show_shape(self, value: Any) -> str:
        """The shape of a tensor type."""
        if isinstance(value, Var):
            return self.name(value)
        if len(value) == 1:
            return f"({self.show_dim(value[0])},)"
        return f"({', '.join(map(self.show_dim, value))})"

    def show_vdevice(self, value: Any) -> str:
        """A virtual device."""
        return (
            string_text(value)
            if isinstance(value, str)
            else self.join(self.fill(TYPES["I.vdevice"], self.node_values(TYPES["I.vdevice"], value)))
        )

    def show_types(self, values: Sequence[Type]) -> str:
        """One type, or a list."""
        if len(values) == 1 and not (isinstance(values[0], TupleType) and len(values[0].fields) > 1):
            return self.show_type(values[0])
        if len(values) == 1:
            return self.show_type(values[0])
        return f"[{', '.join(map(self.show_type, values))}]"

    def show_leaf(self, value: Expr) -> str:
        """A graph-level leaf."""
        return self.leaf(value)

    def show_callee(self, value: Expr) -> str:
        """The function of a packed call."""
        if isinstance(value, ExternFunc) and value.ty is None:
            return string_text(value.name)
        return self.leaf(value)

    def show_buffer(self, value: Buffer) -> str:
        """The name of a buffer."""
        return self.name(value)

    def show_region(self, value: Any) -> Any:
        """A box of a buffer, or the handle that a buffer is matched with."""
        if isinstance(value, BufferRegion):
            return self.region(value)
        return [(value, 0)]

    def show_regions(self, value: BufferRegion) -> list[Piece]:
        """A box of a buffer."""
        return self.region(value)

    def show_where(self, value: _Ready) -> Any:
        """The bindings of T.Let."""
        return value.text

    def show_literal(self, value: Any) -> str:
        """Attribute data."""
        if value is None or isinstance(value, bool):
            return repr(value)
        if isinstance(value, int):
            return str(value)
        if isinstance(value, float):
            return float_text(value)
        if isinstance(value, str):
            return string_text(value)
        if isinstance(value, (tuple, list)):
            return f"[{', '.join(map(self.show_literal, value))}]"
        if isinstance(value, (FrozenMap, dict)):
            return f"{{{', '.join(f'{string_text(key)}: {self.show_literal(item)}' for key, item in value.items())}}}"
        if isinstance(value, DimExpr):
            known = all(name in self.symbols and name not in _RESERVED for name in free_symbols(value))
            return format_dim(value) if known and not self.quoted else f"I.dim({string_text(format_dim(value))})"
        return self.literal_node(value)

    def literal_node(self, value: Any) -> str:
        """A node in attribute data."""
        if isinstance(value, (IntImm, FloatImm)):
            return self.immediate(value)
        if isinstance(value, PrimExpr):
            return self.join([(value, 0)])
        if isinstance(value, DummyGlobalInfo):
            return "I.dummy_global_info()"
        if isinstance(value, VDevice):
            return self.show_vdevice(value)
        if isinstance(value, Type):
            return self.show_type(value)
        if isinstance(value, Buffer):
            return self.name(value)
        if isinstance(value, Expr):
            return self.leaf(value)
        if isinstance(value, Target):
            return f"I.target({string_text(str(value))})"
        if isinstance(value, np.generic):
            return self.show_literal(value.item())
        raise ScriptError(f"attribute data of type {type(value).__name__} has no text form", code="W114")

    # -- types ---------------------------------------------------------------------------------------------------------

    def show_type(self, ty: Type) -> str:
        """A type."""
        if type(ty) is TensorType:
            return self._tensor_type(ty)
        if isinstance(ty, ShapeType):
            if ty.dims is not None:
                return f"R.Shape({self.show_dims(ty.dims)})"
            return "R.Shape" if ty.ndim < 0 else f"R.Shape(ndim={ty.ndim})"
        if isinstance(ty, TupleType):
            return f"R.Tuple({', '.join(map(self.show_type, ty.fields))})"
        if isinstance(ty, FuncType):
            return self._func_type(ty)
        form = BY_CLASS.get(type(ty))
        if form is None:
            return repr(ty)
        text = self.join(self.fill(form, self.node_values(form, ty)))
        return text[:-2] if text.endswith("()") else text

    def _tensor_type(self, ty: TensorType) -> str:
        if ty.shape is not None and ty.vdevice is None and ty.dtype is not None:
            return f'R.Tensor({self.show_shape(ty.shape)}, "{ty.dtype}")'
        values = {
            "shape": ty.shape,
            "dtype": ty.dtype,
            "vdevice": ty.vdevice,
            "ndim": ty.ndim if ty.shape is None else -1,
        }
        text = self.join(self.fill(TYPES["R.Tensor"], values))
        return "R.Tensor" if text == "R.Tensor()" else text

    def _func_type(self, ty: FuncType) -> str:
        if ty.params is not None:
            params = f"({', '.join(map(self.show_type, ty.params))}{',' if len(ty.params) == 1 else ''})"
            derive = f", derive={string_text(ty.derive)}" if ty.derive else ""
            return f"R.Callable({params}, {self.show_type(ty.ret)}, {ty.pure}{derive})"
        derive = f", derive={string_text(ty.derive)}" if ty.derive else ""
        return f"R.Callable(ret={self.show_type(ty.ret)}, pure={ty.pure}{derive})"

    # -- modules and functions -----------------------------------------------------------------------------------------

    def module(self, module: IRModule) -> None:
        """A module class."""
        self.line(f"{self.spelled('@I.ir_module')}")
        self.line(f"class {identifier(module.name or 'Module')}:")
        self.indent = "    "
        start = len(self.lines)
        if module.attrs:
            self.line(self.form_text(ALL_FORMS["I.module_attrs"], {"attrs": module.attrs}))
        if module.global_infos:
            self.line(self.form_text(ALL_FORMS["I.module_global_infos"], {"infos": module.global_infos}))
        taken: set[str] = set()
        for name, function in module.functions.items():
            if len(self.lines) > start:
                self.line("")
            written = identifier(name)
            while written in taken or written in _RESERVED:
                written += "_"
            taken.add(written)
            if isinstance(function, ExternFunc):
                self.reset()
                self.line(f"{written} = {self.leaf(function)}")
            else:
                self.function(written, name, function)
        if len(self.lines) == start:
            self.line("pass")
        self.indent = ""

    def function(self, written: str, name: str, function: Function | PrimFunc) -> None:
        """A top-level function; `written` is its name as an identifier."""
        self.reset()
        if isinstance(function, Function):
            self.used |= _signature_symbols(function) | _body_symbols(function)
            self.graph_function(written, name, function)
        else:
            self.prim_function(written, name, function)

    def _decorator(self, form: str, options: Mapping[str, tuple[Any, Any]]) -> None:
        given = [f"{key}={self.show_literal(value)}" for key, (value, default) in options.items() if value != default]
        self.line(f"@{form}({', '.join(given)})" if given else f"@{form}")

    def graph_function(self, written: str, name: str, function: Function) -> None:
        """`@R.function def ...`."""
        self._decorator("R.function", {
            "pure": (function.pure, True), "private": (function.private, False), "name": (name, written),
        })  # fmt: skip
        before, self.quoted = self.quoted, True
        params = ", ".join(f"{self.name(param)}: {self.show_type(param.ty)}" for param in function.params)
        result = f" -> {self.show_type(function.ret_type)}" if function.ret_type is not None else ""
        self.quoted = before
        for param in function.params:
            self.symbols |= _type_symbols(param.ty)
        self.line(f"def {written}({params}){result}:")
        outer = self.indent
        self.indent += "    "
        if function.attrs:
            self.line(self.form_text(ALL_FORMS["R.func_attr"], {"attrs": function.attrs}))
        self.blocks(function.body.blocks)
        self.line(f"return {self.leaf(function.body.body)}")
        self.indent = outer

    # -- graph level ---------------------------------------------------------------------------------------------------

    def blocks(self, blocks: Sequence[BindingBlock]) -> None:
        """Binding blocks; two plain ones in a row are kept apart by a scope."""
        plain_before = False
        for block in blocks:
            if isinstance(block, DataflowBlock):
                self._dataflow(block)
                plain_before = False
            elif plain_before or not block.bindings:
                self._scope(
                    "with R.bindings():",
                    lambda block=block: self._bindings(block.bindings, False),
                    empty=not block.bindings,
                )
                plain_before = False
            else:
                self._bindings(block.bindings, False)
                plain_before = True

    def _scope(self, head: str, body: Callable[[], None], *, empty: bool = False) -> None:
        self.line(head)
        outer = self.indent
        self.indent += "    "
        if empty:
            self.line("pass")
        else:
            body()
        self.indent = outer

    def _dataflow(self, block: DataflowBlock) -> None:
        def body() -> None:
            self._bindings(block.bindings, True)
            outputs = [binding.var for binding in block.bindings if not isinstance(binding.var, DataflowVar)]
            self.line(f"R.output({', '.join(map(self.name, outputs))})")

        self._scope("with R.dataflow():", body)

    def _bindings(self, bindings: Sequence[VarBinding | MatchCast], dataflow: bool) -> None:
        for binding in bindings:
            self.binding(binding, dataflow)

    def binding(self, binding: VarBinding | MatchCast, dataflow: bool = False) -> None:
        """One binding as one statement (an if as several)."""
        var, value = binding.var, binding.value
        if isinstance(binding, MatchCast):
            source = self.leaf(value)
            ty = self.show_type(binding.ty)
            same = var.ty is binding.ty or var.ty is None or structural_equal(var.ty, binding.ty)
            self.symbols |= _type_symbols(binding.ty)
            annotation = "" if same else f": {self.show_type(var.ty)}"
            self.line(f"{self.name(var)}{annotation} = R.match_cast({source}, {ty})")
            return
        if isinstance(value, If):
            self._if(var, value)
            return
        if isinstance(value, Function):
            self.graph_function(self.name(var), self.names[var], value)
            return
        text = self.value(value)
        if var.name == "_" and self._is_silent(var, value, dataflow):
            self.silent[var] = len(self.lines)
            self.line(text)
            return
        self.line(f"{self._target(var)} = {text}")

    def _target(self, var: Var) -> str:
        """The variable with its annotation."""
        if not self.annotate or var.ty is None:
            return self.name(var)
        annotation = self.show_type(var.ty)
        self.symbols |= _type_symbols(var.ty)
        return f"{self.name(var)}: {annotation}"

    @staticmethod
    def _is_silent(var: Var, value: Expr, dataflow: bool) -> bool:
        """Whether the binding is written as a bare statement."""
        if not isinstance(var.ty, TupleType) or var.ty.fields or not isinstance(value, Call):
            return False
        if dataflow and not isinstance(var, DataflowVar):
            return False
        if isinstance(value.op, ExternFunc):
            return bool(value.attrs.get("dps"))
        return isinstance(value.op, (Op, GlobalVar))

    def _if(self, var: Var, value: If) -> None:
        condition = self.leaf(value.cond)
        target = self._target(var)
        known = set(self.symbols)
        for head, branch in ((f"if {condition}:", value.then_branch), ("else:", value.else_branch)):
            self._scope(head, lambda branch=branch: self._branch(branch, target))
            self.symbols = set(known)

    def _branch(self, branch: SeqExpr, target: str) -> None:
        self.blocks(branch.blocks)
        self.line(f"{target} = {self._branch_result(branch.body)}")

    def _branch_result(self, body: Expr) -> str:
        """The result of a branch: a leaf that reads back as itself."""
        if isinstance(body, PrimValue):
            return self._prim_value(body)
        if isinstance(body, StringImm):
            return f"R.str({string_text(body.value)})"
        return self.leaf(body)

    def value(self, value: Expr) -> str:
        """What stands on the right of a binding."""
        if isinstance(value, Call):
            return self.call(value)
        if isinstance(value, TupleGetItem):
            return f"{self.leaf(value.value)}[{value.index}]"
        return self.leaf(value)

    def leaf(self, value: Expr) -> str:
        """A leaf (or, in a module that is not in normal form, any expression)."""
        if isinstance(value, Var):
            return self.name(value)
        method = self._LEAVES.get(type(value))
        if method is not None:
            return method(self, value)
        if isinstance(value, (Call, TupleGetItem)):
            return self.value(value)
        if isinstance(value, PrimExpr):
            return self.join([(value, 0)])
        return repr(value)

    def _constant(self, value: Constant) -> str:
        parts = constant_parts(value)
        parts["data"] = _Ready(parts["data"])
        return self.join(self.fill(VALUES["R.const"], {**parts, "dtype": value.dtype}))

    def _global(self, value: GlobalVar) -> str:
        plain = value.name.isidentifier() and not keyword.iskeyword(value.name)
        return f"cls.{value.name}" if plain else f"cls[{string_text(value.name)}]"

    def _tuple(self, value: Tuple) -> str:
        if not value.fields:
            return "R.tuple()"
        inner = ", ".join(map(self.leaf, value.fields))
        return f"({inner},)" if len(value.fields) == 1 else f"({inner})"

    def _prim_value(self, value: PrimValue) -> str:
        return f"R.prim_value({self._scalar(value)})"

    def _scalar(self, value: PrimValue) -> str:
        """A scalar as a number, typed when its dtype is not the usual one."""
        usual = PrimValue(value.value).dtype
        number = value.value
        text = self.show_dim(number) if isinstance(number, DimExpr) else self.show_literal(number)
        if usual == value.dtype:
            return text
        if isinstance(number, DimExpr):
            return f'{text}, "{value.dtype}"'
        return f"T.{value.dtype}({text})"

    def _extern(self, value: ExternFunc) -> str:
        return self.join(self.fill(VALUES["R.ExternFunc"], {"name": value.name, "ty": value.ty}))

    def call(self, call: Call) -> str:
        """A call."""
        op = call.op
        if isinstance(op, Op):
            definition = OPS.get(op.name)
            if definition is not None and self._declared(definition, call):
                return self._operator(op.name, definition, call)
            return self.join(self.fill(VALUES["R.call_op"], {
                "name": op.name, "args": call.args, "attrs": dict(call.attrs), "ty_args": call.ty_args,
            }))  # fmt: skip
        if isinstance(op, ExternFunc):
            return self.join(self.fill(VALUES["R.call_packed"], {
                "func": op, "args": call.args, "attrs": dict(call.attrs), "ty_args": call.ty_args,
            }))  # fmt: skip
        parts = [self.leaf(argument) for argument in call.args]
        if call.attrs:
            parts.append(f"attrs={self.show_literal(call.attrs)}")
        if call.ty_args:
            parts.append(f"{self.spelled('ty_args')}={self.show_types(call.ty_args)}")
        return f"{self.leaf(op)}({', '.join(parts)})"

    @staticmethod
    def _declared(definition: Any, call: Call) -> bool:
        """Whether the declaration covers everything the call holds."""
        names = {param.name for param in definition.params if param.kind in ("attr", "dtype")}
        if any(key not in names and key != "absent" for key in call.attrs):
            return False
        typed = any(param.kind == "types" for param in definition.params)
        return len(call.ty_args) <= (1 if typed else 0)

    def _operator(self, name: str, definition: Any, call: Call) -> str:
        """A call as the operator's declaration says it is called."""
        parts: list[str] = []
        expected = iter(definition.params)
        in_order = True
        for param, value in definition.unbind(call):
            if in_order:
                in_order = next(expected, None) is param and param.kind not in ("attr", "dtype", "types")
            if param.kind == "variadic":
                parts.extend(map(self.leaf, value))
                in_order = False
                continue
            text = self._argument(param, value)
            parts.append(text if in_order else f"{self.spelled(param.name)}={text}")
        return f"R.{name}({', '.join(parts)})"

    def _argument(self, param: Any, value: Any) -> str:
        """An argument of an operator by the kind of its parameter."""
        kind = param.kind
        if kind == "shape" and isinstance(value, ShapeExpr):
            return self._known_shape(value)
        if kind == "prim" and isinstance(value, PrimValue):
            usual = PrimValue(value.value).dtype == value.dtype
            return self._scalar(value) if usual else self._prim_value(value)
        if kind == "callee":
            return self.show_callee(value)
        if kind == "types":
            return self._type_argument(value)
        if kind in ("attr", "dtype"):
            return self.show_literal(value)
        return self.leaf(value)

    def _known_shape(self, value: ShapeExpr) -> str:
        if all(
            isinstance(dim, int) or all(name in self.symbols and name not in _RESERVED for name in free_symbols(dim))
            for dim in value.dims
        ):
            return self.show_shape(value.dims)
        return self.leaf(value)

    def _type_argument(self, value: Any) -> str:
        if isinstance(value, TupleType) and len(value.fields) > 1:
            return f"[{', '.join(map(self.show_type, value.fields))}]"
        if isinstance(value, (tuple, list)):
            return f"[{', '.join(map(self.show_type, value))}]"
        return self.show_type(value)

    _LEAVES: ClassVar[dict[type, Callable[[Any, Any], str]]] = {
        Constant: _constant, GlobalVar: _global, Tuple: _tuple, PrimValue: _prim_value, ExternFunc: _extern,
        ShapeExpr: lambda self, value: f"R.shape({self.show_dims(value.dims)})",
        StringImm: lambda self, value: f"R.str({string_text(value.value)})",
        DataTypeImm: lambda self, value: f'R.dtype("{value.value}")',
        Op: lambda self, value: f"R.{value.name}",
    }  # fmt: skip

    # -- tensor level: functions ---------------------------------------------------------------------------------------

    def prim_function(self, written: str, name: str, function: PrimFunc) -> None:
        """`@T.prim_func def ...`."""
        self._decorator("T.prim_func", {"private": (function.private, False), "name": (name, written)})
        for param in function.params:
            if isinstance(param, PrimVar):
                self.name(param)
        before, self.quoted = self.quoted, True
        known = set(self.names)
        params = ", ".join(self._parameter(param) for param in function.params)
        declared = [v for v in self.names if isinstance(v, PrimVar) and v not in known and v.dtype != "int64"]
        self.quoted = before
        result = f" -> {self._scalar_type(function.ret_type)}" if function.ret_type is not None else ""
        self.line(f"def {written}({params}){result}:")
        outer = self.indent
        self.indent += "    "
        if function.attrs:
            self.line(self.form_text(ALL_FORMS["T.func_attr"], {"attrs": function.attrs}))
        for variable in declared:
            self.line(f"{self.name(variable)} = T.{variable.dtype}()")
        self.statements(function.body)
        self.indent = outer

    def _scalar_type(self, ty: Type) -> str:
        return f"T.{ty.dtype}" if isinstance(ty, PrimType) else self.show_type(ty)

    def _parameter(self, param: Buffer | PrimVar) -> str:
        if isinstance(param, Buffer):
            return f"{self.name(param)}: {self.form_text(BUFFERS['T.Buffer'], self._buffer_values(param))}"
        return f"{self.name(param)}: {self._variable_type(param)}"

    @staticmethod
    def _variable_type(variable: PrimVar) -> str:
        if variable.dtype != "handle":
            return f"T.{variable.dtype}"
        if variable.pointee is None and variable.scope == "global":
            return "T.handle"
        scope = "" if variable.scope == "global" else f", {string_text(variable.scope)}"
        return f"T.handle({string_text(variable.pointee or 'void')}{scope})"

    @staticmethod
    def _buffer_values(buffer: Buffer) -> dict[str, Any]:
        fields = ("shape", "data", "strides", "elem_offset", "scope", "align", "offset_factor", "axis_separators")
        # The dtype is always written: a reader should not have to know the default.
        return {**{field: getattr(buffer, field) for field in fields}, "dtype": _Always(buffer.dtype)}

    # -- tensor level: statements --------------------------------------------------------------------------------------

    def statements(self, body: Stmt) -> None:
        """The statements of a block."""
        items = body.stmts if isinstance(body, SeqStmt) and len(body.stmts) != 1 else (body,)
        if not items:
            self.line("pass")
        for item in items:
            self.statement(item)

    def statement(self, stmt: Stmt) -> None:
        """One statement."""
        method = self._STATEMENTS.get(type(stmt))
        if method is None:
            raise ScriptError(f"a {type(stmt).__name__} has no text form", code="W114")
        method(self, stmt)

    def _inner(self, head: str, body: Stmt) -> None:
        self._scope(head, lambda: self.statements(body))

    def _seq(self, stmt: SeqStmt) -> None:
        def body() -> None:
            for item in stmt.stmts:
                self.statement(item)

        self._scope("with T.seq():", body, empty=not stmt.stmts)

    def _store(self, stmt: BufferStore) -> None:
        if stmt.predicate is not None:
            head = [f"{self.name(stmt.buffer)}.vstore(", *self._position(stmt.indices), ", ", *self.operand(stmt.value)]
            self.line(self.join([*head, ", predicate=", (stmt.predicate, 0), ")"]))
            return
        pieces = [*self._element(stmt.buffer, stmt.indices), " = ", *self.operand(stmt.value)]
        self.line(self.join(pieces))

    def _for(self, stmt: For) -> None:
        group = self._grid_of(stmt)
        if len(group) > 1:
            extents = [
                self._typed_extent(loop.extent, loop.loop_var.dtype, loop_dtype(0, loop.extent)) for loop in group
            ]
            head = self.form_text(LOOPS["T.grid"], {"extents": extents})
            self._loop(group, f"for {', '.join(self.name(loop.loop_var) for loop in group)} in {head}:")
            return
        head = self._loop_head(stmt)
        self._loop([stmt], f"for {self.name(stmt.loop_var)} in {head}:")

    def _loop(self, group: list[For], head: str) -> None:
        for loop in group:
            self.loops[loop.loop_var] = loop
        self._inner(head, group[-1].body)

    @staticmethod
    def _grid_of(stmt: For) -> list[For]:
        """The loops that `T.grid` can say at once."""
        group: list[For] = []
        inner: Stmt = stmt
        variables: set[PrimVar] = set()
        while isinstance(inner, For) and inner.kind == "serial" and inner.step is None and not inner.annotations:
            plain = isinstance(inner.start, int) and inner.start == 0 and inner.thread is None
            if not plain or _mentions(inner.extent, variables):
                break
            if not isinstance(inner.extent, int) and inner.extent.dtype != inner.loop_var.dtype:
                break
            group.append(inner)
            variables.add(inner.loop_var)
            inner = inner.body
        return group

    def _typed_extent(self, extent: Any, wanted: str, natural: str) -> Any:
        """The extent, as a typed constant where that says the dtype of the variable."""
        if wanted != natural and isinstance(extent, int) and dtypes.is_integer(wanted):
            return f"T.{wanted}({extent})"
        return extent

    def _loop_head(self, stmt: For) -> str:
        start, extent, dtype = stmt.start, stmt.extent, stmt.loop_var.dtype
        values: dict[str, Any] = {"step": stmt.step, "annotations": dict(stmt.annotations), "thread": stmt.thread or ""}
        natural = loop_dtype(start, extent)
        if isinstance(start, int) and isinstance(extent, int):
            values.update(self._constant_range(start, extent, dtype))
        else:
            if isinstance(start, int) and start == 0:
                values["start"] = extent
            else:
                values.update(start=start, extent=extent)
            if natural != dtype:
                values["dtype"] = dtype
        if stmt.kind == "serial" and not stmt.annotations and "extent" not in values and "dtype" not in values:
            if stmt.step is not None and "stop" not in values:
                values = {**values, "start": 0, "stop": values["start"]}
            return self.form_text(LOOPS["range"], values)
        return self.form_text(LOOPS[_LOOP_NAMES[stmt.kind]], values)

    @staticmethod
    def _constant_range(start: int, extent: int, dtype: str) -> dict[str, Any]:
        def typed(value: int) -> Any:
            return value if dtype == "int32" else f"T.{dtype}({value})"

        return {"start": typed(extent)} if start == 0 else {"start": typed(start), "stop": typed(start + extent)}

    def _while(self, stmt: While) -> None:
        self._inner(f"while {self.join(self._condition(stmt.condition))}:", stmt.body)

    def _condition(self, condition: PrimExpr) -> list[Piece]:
        """A condition that is not known while reading, even when it is a constant."""
        return [self.immediate(condition)] if isinstance(condition, (IntImm, FloatImm)) else [(condition, 0)]

    def _if_statement(self, stmt: IfThenElse) -> None:
        head = "if"
        current: Stmt | None = stmt
        while isinstance(current, IfThenElse):
            self._inner(f"{head} {self.join(self._condition(current.condition))}:", current.then_body)
            head = "elif"
            current = current.else_body
        if current is not None:
            self._inner("else:", current)

    def _block(self, stmt: Block) -> None:
        values = {"name": stmt.name, "no_realize": any(item.value is None for item in stmt.iter_vars)}
        self._scope(f"with {self.form_text(SCOPES['T.block'], values)}:", lambda: self._block_body(stmt))

    def _block_body(self, stmt: Block) -> None:
        self._axes(stmt.iter_vars)
        if stmt.predicate is not None:
            self.line(self.form_text(CLAUSES["T.where"], {"predicate": stmt.predicate}))
        for buffer in stmt.alloc_buffers:
            values = {**self._buffer_values(buffer), "block": True, "annotations": {}}
            text = self.form_text(BUFFERS["T.alloc_buffer"], values)
            if self.spelling == "tvm-0.27":
                text = text.replace("T.alloc_buffer", "T.sblock_alloc_buffer", 1)
            self.line(f"{self.name(buffer)} = {text}")
        for match in stmt.match_buffers:
            self._match(match)
        for name, regions in (("T.reads", stmt.reads), ("T.writes", stmt.writes)):
            if regions is not None:
                self.line(self.form_text(CLAUSES[name], {"regions": regions}))
        if stmt.annotations:
            self.line(self.form_text(CLAUSES["T.block_attr"], {"attrs": stmt.annotations}))
        if stmt.init is not None:
            self._inner("with T.init():", stmt.init)
        self._in_block = True
        items = stmt.body.stmts if isinstance(stmt.body, SeqStmt) and len(stmt.body.stmts) != 1 else (stmt.body,)
        for item in items:
            if isinstance(item, AllocBuffer):
                self._alloc(item, in_block=True)
            else:
                self.statement(item)
        if not items:
            self.line("pass")

    def _match(self, match: MatchBufferRegion) -> None:
        values = {**self._buffer_values(match.buffer), "source": match.source}
        text = self.form_text(BUFFERS["T.match_buffer"], values)
        self.line(f"{self.name(match.buffer)} = {text}")

    def _axes(self, iter_vars: Sequence[IterVar]) -> None:
        if len(iter_vars) > 1 and all(self._is_remap(item) for item in iter_vars):
            letters = "".join(_AXIS_LETTERS[item.kind] for item in iter_vars)
            text = self.form_text(
                CLAUSES["T.axis.remap"], {"kinds": letters, "values": [item.value for item in iter_vars]}
            )
            self.line(f"{', '.join(self.name(item.var) for item in iter_vars)} = {text}")
            return
        for item in iter_vars:
            self._axis(item)

    def _is_remap(self, item: IterVar) -> bool:
        loop = self.loops.get(item.value) if isinstance(item.value, PrimVar) else None  # type: ignore[arg-type]
        if loop is None or item.kind not in ("spatial", "reduce") or item.var.dtype != loop.loop_var.dtype:
            return False
        return _same_extent(item.start, loop.start) and _same_extent(item.extent, loop.extent)

    def _axis(self, item: IterVar) -> None:
        values: dict[str, Any] = {"value": item.value, "start": item.start}
        extent = item.extent
        if axis_dtype(extent, item.value) != item.var.dtype:
            if isinstance(extent, int) and dtypes.is_integer(item.var.dtype):
                values["extent"] = _Ready(f"T.{item.var.dtype}({extent})")
            else:
                values["dtype"] = item.var.dtype
        values.setdefault("extent", _Ready(self.join(self.show_extent(extent))))
        text = self.form_text(CLAUSES[f"T.axis.{item.kind}"], values)
        self.line(f"{self.name(item.var)} = {text}")

    def _bind(self, stmt: Bind) -> None:
        value = self.join(self.operand(stmt.value))
        variable = stmt.var
        typed = variable.dtype == "handle" and (variable.pointee is not None or variable.scope != "global")
        annotation = f"T.let[{self._variable_type(variable)}]" if typed else "T.let"
        self.line(f"{self.name(variable)}: {annotation} = {value}")

    def _alloc(self, stmt: AllocBuffer, in_block: bool = False) -> None:
        values = {**self._buffer_values(stmt.buffer), "block": not in_block, "annotations": dict(stmt.annotations)}
        self.line(f"{self.name(stmt.buffer)} = {self.form_text(BUFFERS['T.alloc_buffer'], values)}")

    def _decl(self, stmt: DeclBuffer) -> None:
        text = self.form_text(BUFFERS["T.decl_buffer"], self._buffer_values(stmt.buffer))
        self.line(f"{self.name(stmt.buffer)} = {text}")

    def _assert(self, stmt: AssertStmt) -> None:
        message = string_text(stmt.message)
        if stmt.kind != "AssertionError":
            message = f"({string_text(stmt.kind)}, {message})"
        self.line(f"assert {self.join([*self._condition(stmt.condition), f', {message}'])}")

    def _attr(self, stmt: AttrStmt) -> None:
        # A typed constant, so that it does not read back as a plain number.
        value = _Ready(self.immediate(stmt.value)) if isinstance(stmt.value, (IntImm, FloatImm)) else stmt.value
        values = {"node": stmt.node, "key": stmt.key, "value": value}
        self._inner(f"with {self.form_text(SCOPES['T.attr'], values)}:", stmt.body)

    def _evaluate(self, stmt: Evaluate) -> None:
        value = stmt.value
        if isinstance(value, PrimExpr):
            self.line(self.form_text(CLAUSES["T.evaluate"], {"value": value}))
        else:
            self.line(f"T.evaluate({self.value(value)})")

    def _return(self, stmt: Return) -> None:
        self.line("return" if stmt.value is None else f"return {self.join(self.operand(stmt.value))}")

    _STATEMENTS: ClassVar[dict[type, Callable[[Any, Any], None]]] = {
        SeqStmt: _seq, BufferStore: _store, For: _for, While: _while, IfThenElse: _if_statement, Block: _block, Bind: _bind,
        AllocBuffer: _alloc, DeclBuffer: _decl, AssertStmt: _assert, AttrStmt: _attr, Evaluate: _evaluate, Return: _return,
        Break: lambda self, stmt: self.line("break"), Continue: lambda self, stmt: self.line("continue"),
    }  # fmt: skip

    # -- tensor level: expressions -------------------------------------------------------------------------------------

    def operand(self, value: PrimExpr) -> list[Piece]:
        """An expression where a bare number would take another dtype: only the usual integers are bare."""
        return [(value, 0)]

    def immediate(self, value: IntImm | FloatImm) -> str:
        """A typed constant."""
        if isinstance(value, IntImm):
            number = str(bool(value.value)) if value.dtype == "bool" else str(value.value)
            return f"T.{value.dtype}({number})"
        text = float_text(value.value)
        text = {'float("inf")': '"inf"', 'float("-inf")': '"-inf"', 'float("nan")': '"nan"'}.get(text, text)
        return f"T.{value.dtype}({text})"

    def prim_pieces(self, expr: PrimExpr) -> tuple[list[Piece], int]:
        """The pieces of an expression and its precedence."""
        method = self._PRIMS.get(type(expr))
        if method is not None:
            return method(self, expr)
        form = BY_CLASS.get(type(expr))
        if form is not None and form.name in SCALARS:
            return self.fill(form, self.node_values(form, expr)), ATOM
        if isinstance(expr, (StringImm,)):
            return [string_text(expr.value)], ATOM
        return [self.leaf(expr)], ATOM

    def _int(self, expr: IntImm) -> tuple[list[Piece], int]:
        if expr.dtype == "bool" and expr.value in (0, 1):
            return [str(bool(expr.value))], ATOM
        if expr.dtype == "int32" and -(2**31) <= expr.value < 2**31:
            return [str(expr.value)], ATOM if expr.value >= 0 else UNARY["neg"].precedence
        return [self.immediate(expr)], ATOM

    def _binary(self, expr: Binary) -> tuple[list[Piece], int]:
        row = BINARY.get(expr.kind)
        integral = expr.kind == "div" and not dtypes.is_float(dtypes.element(expr.a.dtype))
        left, right = self._sides(expr)
        if row is None or integral:
            return [f"{BINARY_CALLS[expr.kind]}(", *left, ", ", *right, ")"], ATOM
        low = row.precedence + (0 if row.associative else 1)
        return [*_raised(left, low), f" {row.text} ", *_raised(right, row.precedence + 1)], row.precedence

    def _sides(self, expr: Binary) -> tuple[list[Piece], list[Piece]]:
        """Both operands: an integer constant is bare where the other side gives it its dtype."""
        a, b = expr.a, expr.b
        immediate_a, immediate_b = isinstance(a, (IntImm, FloatImm)), isinstance(b, (IntImm, FloatImm))
        if immediate_a and immediate_b:
            return [self.immediate(a)], [self.immediate(b)]  # type: ignore[arg-type]
        left = self._side(a, b) if immediate_a else [(a, 0)]
        right = self._side(b, a) if immediate_b else [(b, 0)]
        return left, right

    def _side(self, value: Any, other: PrimExpr) -> list[Piece]:
        if isinstance(value, IntImm) and value.dtype == other.dtype and dtypes.is_integer(value.dtype):
            if dtypes.can_hold(value.dtype, value.value):
                return [str(value.value)] if value.value >= 0 else [f"({value.value})"]
        if isinstance(value, IntImm) and value.dtype == "bool" == other.dtype and value.value in (0, 1):
            return [str(bool(value.value))]
        return [self.immediate(value)]

    def _unary(self, expr: Unary) -> tuple[list[Piece], int]:
        row = UNARY[expr.kind]
        if isinstance(expr.a, (IntImm, FloatImm)):
            return [row.text, self.immediate(expr.a)], row.precedence
        return [row.text, (expr.a, row.precedence)], row.precedence

    def _select(self, expr: Select) -> tuple[list[Piece], int]:
        return self.fill(SCALARS["T.Select"], self.node_values(SCALARS["T.Select"], expr)), ATOM

    def _load(self, expr: BufferLoad) -> tuple[list[Piece], int]:
        if expr.predicate is not None:
            position = self._position(expr.indices)
            return [f"{self.name(expr.buffer)}.vload(", *position, ", predicate=", (expr.predicate, 0), ")"], ATOM
        return self._element(expr.buffer, expr.indices), ATOM

    def _position(self, indices: Sequence[PrimExpr]) -> list[Piece]:
        return ["[", *_separated([(index, 0)] for index in indices), "]"]

    def _element(self, buffer: Buffer, indices: Sequence[PrimExpr]) -> list[Piece]:
        if not indices:
            return [f"{self.name(buffer)}[()]"]
        return [f"{self.name(buffer)}[", *_separated([(index, 0)] for index in indices), "]"]

    def _let(self, expr: Let) -> tuple[list[Piece], int]:
        name = self.name(expr.var)
        return ["T.Let(", (expr.body, 0), f", where={{{name}: ", (expr.value, 0), "})"], ATOM

    def _cast(self, expr: Cast) -> tuple[list[Piece], int]:
        if isinstance(expr.value, (IntImm, FloatImm)):
            return [f'T.Cast("{expr.dtype}", {self.immediate(expr.value)})'], ATOM
        return [f'T.Cast("{expr.dtype}", ', (expr.value, 0), ")"], ATOM

    def _broadcast(self, expr: Broadcast) -> tuple[list[Piece], int]:
        return ["T.Broadcast(", *self.operand(expr.value), f", {expr.lanes})"], ATOM

    def _prim_call(self, expr: PrimCall) -> tuple[list[Piece], int]:
        args = _separated([self._call_argument(argument)] for argument in expr.args)
        if isinstance(expr.op, GlobalVar):
            dtype = [] if expr.dtype == "void" else [f'{", " if expr.args else ""}dtype="{expr.dtype}"']
            return [f"{self._global(expr.op)}(", *args, *dtype, ")"], ATOM
        name = str(expr.op)
        entry = INTRINSICS.get(name)
        if name == "if_then_else" and len(expr.args) == 3 and not expr.attrs:
            return ["T.if_then_else(", *args, ")"], ATOM
        if entry is None or (entry.rule != "given" and not self._is_regular(entry, expr)):
            return self._call_intrin(name, expr)
        if entry.rule != "given":
            return [f"T.{name}(", *args, ")"], ATOM
        if name in DTYPE_FIRST:
            first = f'T.{name}("{expr.dtype}"'
            tail = [", ", *args] if expr.args else []
        else:
            first, tail = f"T.{name}(", list(args)
            if expr.dtype != RESULT_DTYPES.get(name, "void"):
                tail.append(f'{", " if expr.args else ""}dtype="{expr.dtype}"')
        if expr.attrs:
            tail.append(f"{', ' if expr.args or name in DTYPE_FIRST else ''}attrs={self.show_literal(expr.attrs)}")
        return [first, *tail, ")"], ATOM

    @staticmethod
    def _is_regular(entry: Any, expr: PrimCall) -> bool:
        """Whether reading the plain call gives the same node."""
        if expr.attrs or not all(isinstance(argument, PrimExpr) for argument in expr.args):
            return False
        operands = [argument.dtype for argument in expr.args]  # type: ignore[union-attr]
        if entry.promotes and len(set(operands)) > 1:
            return False
        try:
            return result_dtype(entry, operands) == expr.dtype
        except Exception:  # a call that the table would refuse keeps its plain form
            return False

    def _call_intrin(self, name: str, expr: PrimCall) -> tuple[list[Piece], int]:
        values = {"dtype": expr.dtype, "op": name, "args": expr.args, "attrs": dict(expr.attrs)}
        return self.fill(SCALARS["T.call_intrin"], values), ATOM

    def _call_argument(self, value: Expr) -> Piece:
        if isinstance(value, StringImm):
            return string_text(value.value)
        if isinstance(value, PrimExpr):
            return (value, 0)
        return self.leaf(value)

    def region(self, region: BufferRegion) -> list[Piece]:
        """A box: single elements and `start:stop` slices."""
        if not region.region:
            return [f"{self.name(region.buffer)}[()]"]
        return [f"{self.name(region.buffer)}[", *_separated(self._range(item) for item in region.region), "]"]

    def _range(self, item: Range) -> list[Piece]:
        start, extent = item.start, item.extent
        if isinstance(extent, int) and extent == 1:
            return self.show_extent(start)
        if isinstance(start, int):
            if isinstance(extent, int):
                return [f"{start}:{start + extent}"]
            if start == 0:
                return ["0:", (extent, 0)]
            return [f"{start}:{start} + ", (extent, BINARY["add"].precedence + 1)]
        stop: list[Piece] = [str(extent)] if isinstance(extent, int) else [(extent, BINARY["add"].precedence + 1)]
        return [(start, 0), ":", (start, BINARY["add"].precedence), " + ", *stop]

    _PRIMS: ClassVar[dict[type, Callable[[Any, Any], tuple[list[Piece], int]]]] = {
        PrimVar: lambda self, expr: ([self.name(expr)], ATOM), IntImm: _int,
        FloatImm: lambda self, expr: ([self.immediate(expr)], ATOM), Binary: _binary, Unary: _unary, BufferLoad: _load,
        Let: _let, Cast: _cast, Broadcast: _broadcast, PrimCall: _prim_call, Select: _select,
        StringImm: lambda self, expr: ([string_text(expr.value)], ATOM),
    }  # fmt: skip

    # -- smaller nodes -------------------------------------------------------------------------------------------------

    def fragment(self, node: Any) -> str:
        """Readable text of a node that is no unit."""
        if isinstance(node, Type):
            self.symbols |= _type_symbols(node)
            return self.show_type(node)
        if isinstance(node, PrimExpr):
            return self.join([(node, 0)])
        if isinstance(node, BufferRegion):
            return self.join(self.region(node))
        if isinstance(node, Buffer):
            return f"{self.name(node)}: {self.form_text(BUFFERS['T.Buffer'], self._buffer_values(node))}"
        start = len(self.lines)
        self.symbols |= _all_symbols(node)
        if isinstance(node, Stmt):
            self.statement(node)
        elif isinstance(node, (VarBinding, MatchCast)):
            self.binding(node)
        elif isinstance(node, BindingBlock):
            self.blocks((node,))
        elif isinstance(node, SeqExpr):
            self.blocks(node.blocks)
            self.line(self.leaf(node.body))
        elif isinstance(node, If):
            self._if(Var("result", None), node)  # type: ignore[arg-type]
        elif isinstance(node, Expr):
            return self.value(node)
        else:
            return repr(node)
        return "\n".join(self.lines[start:])


class _Ready:
    """Text that is ready, in the place of a value."""

    __slots__ = ("text",)

    def __init__(self, text: Any) -> None:
        self.text = text


class _Always(str):
    """A string that is written even where it equals the default."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


def _same(value: Any, default: Any) -> bool:
    """Whether a value equals the default of its hole."""
    if default is None or value is None:
        return value is default
    if isinstance(value, Node):
        return False
    if isinstance(value, Mapping) and isinstance(default, Mapping):
        return not value and not default
    return type(value) is type(default) and value == default


def _separated(parts: Iterable[list[Piece]]) -> list[Piece]:
    result: list[Piece] = []
    for part in parts:
        if result:
            result.append(", ")
        result.extend(part)
    return result


def _raised(pieces: list[Piece], minimum: int) -> list[Piece]:
    """The same pieces with the precedence that their place asks for."""
    return [piece if isinstance(piece, str) else (piece[0], max(minimum, piece[1])) for piece in pieces]


def identifier(name: str) -> str:
    """A valid identifier near a name."""
    if name.isidentifier() and not keyword.iskeyword(name):
        return name
    made = _NOT_NAME.sub("_", name)
    if not made or made[0].isdigit():
        made = f"v{made}" if made else "v"
    return f"{made}_" if keyword.iskeyword(made) else made


def _same_extent(a: Any, b: Any) -> bool:
    if isinstance(a, int) or isinstance(b, int):
        return isinstance(a, int) and isinstance(b, int) and a == b
    return a is b or structural_equal(a, b)


def _mentions(extent: Any, variables: set[PrimVar]) -> bool:
    """Whether a size uses one of the variables."""
    stack = [extent] if isinstance(extent, PrimExpr) and variables else []
    while stack:
        current = stack.pop()
        if current in variables:
            return True
        if isinstance(current, Binary):
            stack.extend((current.a, current.b))
        elif isinstance(current, (Cast, Broadcast)):
            stack.append(current.value)
        elif isinstance(current, Unary):
            stack.append(current.a)
        elif not isinstance(current, (PrimVar, IntImm, FloatImm)):
            return True  # something richer: do not merge
    return False


def _type_symbols(ty: Type | None) -> set[str]:
    """Every symbol of a type."""
    found: set[str] = set()
    stack: list[Any] = [ty]
    while stack:
        current = stack.pop()
        if isinstance(current, TensorType):
            dims: Any = current.shape if isinstance(current.shape, tuple) else ()
        elif isinstance(current, ShapeType):
            dims = current.dims or ()
        else:
            if isinstance(current, TupleType):
                stack.extend(current.fields)
            elif isinstance(current, FuncType):
                stack.extend((*(current.params or ()), current.ret))
            continue
        for dim in dims:
            if not isinstance(dim, int):
                found.update(free_symbols(dim))
    return found


def _signature_symbols(function: Function) -> set[str]:
    found = _type_symbols(function.ret_type)
    for param in function.params:
        found |= _type_symbols(param.ty)
    return found


def _body_symbols(function: Function) -> set[str]:
    """Symbols that bindings of the body mention, nested functions and branches included."""
    found: set[str] = set()
    for binding in _all_bindings(function.body):
        ty = binding.var.ty
        if type(ty) is TensorType and isinstance(ty.shape, tuple):
            for dim in ty.shape:
                if not isinstance(dim, int):
                    found.update(free_symbols(dim))
        elif ty is not None:
            found |= _type_symbols(ty)
        if isinstance(binding, MatchCast):
            found |= _type_symbols(binding.ty)
        elif isinstance(binding.value, Function):
            found |= _signature_symbols(binding.value)
    return found


def _all_bindings(root: SeqExpr) -> Iterator[VarBinding | MatchCast]:
    stack: list[SeqExpr] = [root]
    while stack:
        for block in stack.pop().blocks:
            for binding in block.bindings:
                yield binding
                value = binding.value
                if isinstance(value, If):
                    stack.extend((value.then_branch, value.else_branch))
                elif isinstance(value, Function):
                    stack.append(value.body)


def _all_symbols(node: Any) -> set[str]:
    """Every symbol below a small node."""
    found: set[str] = set()
    stack = [node]
    seen: set[int] = set()
    while stack:
        current = stack.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        if isinstance(current, DimExpr):
            found.update(free_symbols(current))
        elif isinstance(current, (tuple, list)):
            stack.extend(current)
        elif isinstance(current, FrozenMap):
            stack.extend(current.values())
        elif isinstance(current, Node):
            stack.extend(getattr(current, slot, None) for slot in current.__dataclass_fields__)  # type: ignore[attr-defined]
    return found
