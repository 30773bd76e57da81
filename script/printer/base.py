"""What all printing shares: lines, names, filling forms, the show side of hole kinds, types and attribute data.

Text is made of pieces: strings, and tensor-level expressions with the precedence their place asks for, so that deep
expressions need no recursion.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.errors import ScriptError
from weft.ir.deduction.device_mesh import DeviceMesh, DTensorType, Placement, placement_text, same_mesh
from weft.ir.dim import DimExpr, format_dim, free_symbols
from weft.ir.graph import (
    Expr,
    ExternFunc,
    GlobalVar,
    StringImm,
    Var,
)
from weft.ir.kernel.index_map import MappedLayout
from weft.ir.module import DummyGlobalInfo
from weft.ir.node import FrozenMap, Node
from weft.ir.structure.visit import walk
from weft.ir.tensor import (
    Buffer,
    BufferRegion,
    FloatImm,
    For,
    IntImm,
    PrimExpr,
    PrimVar,
)
from weft.ir.types import FuncType, PrimType, ShapeType, TensorType, TupleType, Type, VDevice
from weft.script.forms.constants import float_text
from weft.script.forms.holes import string_text
from weft.script.forms.syntax import (
    BY_CLASS,
    REQUIRED,
    TYPES,
    Form,
)
from weft.target import Target

__all__ = ["RESERVED", "Always", "BasePrinter", "Piece", "Ready", "identifier", "raised", "separated"]

RESERVED = frozenset(
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

_NOT_NAME = re.compile(r"\W")

# What other spellings call the same things.
SPELLINGS: dict[str, dict[str, str]] = {
    "weft": {},
    "tvm-0.27": {
        "T.block": "T.sblock", "T.block_attr": "T.sblock_attr", "R.Str": "R.Any", "R.Str()": "R.Any",
    },
    "tvm-0.20": {
        "R.Any": "R.Object", "R.Any()": "R.Object", "R.Str": "R.Object", "R.Str()": "R.Object",
        "out_ty": "out_sinfo", "ty_args": "sinfo_args",
    },
}

Piece = Any  # str | (PrimExpr, minimal precedence)


class BasePrinter:
    """Names, lines and forms; the levels add their nodes."""

    if TYPE_CHECKING:

        def leaf(self, value: Expr) -> str:
            """A graph-level leaf (graph level)."""
            ...

        def value(self, value: Expr) -> str:
            """What may stand on the right of a binding (graph level)."""
            ...

        def global_name(self, value: GlobalVar) -> str:
            """A function of the module (graph level)."""
            ...

        def immediate(self, value: IntImm | FloatImm) -> str:
            """A typed constant (tensor level)."""
            ...

        def operand(self, value: PrimExpr) -> list[Piece]:
            """An expression in its place (tensor level)."""
            ...

        def prim_pieces(self, expr: PrimExpr) -> tuple[list[Piece], int]:
            """The pieces of an expression and its precedence (tensor level)."""
            ...

        def region(self, region: BufferRegion) -> list[Piece]:
            """A box of a buffer (tensor level)."""
            ...

    def __init__(self, spelling: str, annotate: bool) -> None:
        self.renames = SPELLINGS[spelling]
        self.spelling = spelling
        self.foreign = spelling != "weft"
        self.module_class: str | None = None  # the class of the module around the functions
        self.annotate = annotate
        self.unchecked = False  # whether the function, printed alone, has faults that reading would refuse
        self.blobs: dict[str, bytes] | None = None  # large constants by their hash, when they are not to be in the text
        self.meshes: list[tuple[str, DeviceMesh]] = []  # of the module around the functions, by their names
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
        self.threads: dict[PrimVar, str] = {}  # thread axes that are declared before their loop

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
        if base not in self.used and base not in RESERVED and base not in self.symbols:
            self.used.add(base)
            return base
        count = self.counts.get(base, 0) + 1
        while f"{base}_{count}" in self.used or f"{base}_{count}" in self.symbols:
            count += 1
        self.counts[base] = count
        made = f"{base}_{count}"
        self.used.add(made)
        return made

    def block_of(self, head: str, body: Callable[[], None], *, empty: bool = False) -> None:
        """A statement with an indented body."""
        self.line(head)
        outer = self.indent
        self.indent += "    "
        if empty:
            self.line("pass")
        else:
            body()
        self.indent = outer

    def decorator(self, form: str, options: Mapping[str, tuple[Any, Any]]) -> None:
        """A decorator with the options (value, default) that differ from their defaults."""
        given = [f"{key}={self.show_literal(value)}" for key, (value, default) in options.items() if value != default]
        if self.unchecked:
            given.append("check_well_formed=False")
        self.line(f"@{form}({', '.join(given)})" if given else f"@{form}")

    def module_alias(self, function: Node) -> None:
        """Say what `cls` is where other readers need that, and the function names others."""
        if self.foreign and self.module_class and any(isinstance(item, GlobalVar) for item in walk(function)):
            self.line(f"cls = {self.module_class}")

    def spelled(self, name: str) -> str:
        """A name of the table in the chosen spelling."""
        return self.renames.get(name, name)

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

    def show_anything(self, value: Any) -> Any:
        """A value whose form decides itself: ready text, an expression, or data."""
        if isinstance(value, Ready):
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

    def show_operand(self, value: Any) -> list[Piece]:
        """An argument of a tensor-level call."""
        return self.show_prim(value)

    def show_pointer(self, value: Any) -> list[Piece]:
        """The data of a buffer."""
        return self.show_prim(value)

    def show_prims(self, values: Sequence[PrimExpr]) -> list[Piece]:
        """A list of tensor-level expressions."""
        return ["[", *separated([(value, 0)] for value in values), "]"]

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
        inner = separated(self.show_extent(value) for value in values)
        return ["(", *inner, ",)" if len(values) == 1 else ")"]

    def show_dim(self, value: Any) -> str:
        """A dimension: bare where its symbols are names already, else a string."""
        if isinstance(value, int):
            return str(value)
        text = self.dim_text(value)
        if self.quoted or any(name in RESERVED or name not in self.symbols for name in free_symbols(value)):
            return string_text(text)
        return text

    def dim_text(self, value: DimExpr) -> str:
        """The text of an expression over sizes."""
        return format_dim(value)

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
        if len(values) == 1:
            return self.type_value(values[0])
        return f"[{', '.join(map(self.type_value, values))}]"

    def type_value(self, ty: Type) -> str:
        """A type where it is an argument, not an annotation."""
        return self.show_type(ty)

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

    def show_where(self, value: Ready) -> Any:
        """The bindings of T.Let."""
        return value.text

    def show_literal(self, value: Any) -> str:
        """Attribute data."""
        if value is None or isinstance(value, int):
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
            known = all(name in self.symbols and name not in RESERVED for name in free_symbols(value))
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
        if isinstance(value, DeviceMesh):
            return self.mesh_text(value)
        if isinstance(value, MappedLayout):
            inverse = f", inverse_index_map={value.inverse}" if value.inverse else ""
            return f"T.index_map({value.text}{inverse})"
        if isinstance(value, Type):
            return self.show_type(value)
        if isinstance(value, Buffer):
            return self.name(value)
        if isinstance(value, Expr):
            return self.leaf(value)
        if isinstance(value, Target):
            return f"I.target({string_text(str(value))})"
        if hasattr(value, "content_hash") and hasattr(value, "to_text_data"):  # artifacts, which are the runtime's
            return f"I.artifacts({self.show_literal(value.to_text_data())})"
        if isinstance(value, np.generic):
            return self.show_literal(value.item())
        raise ScriptError(f"attribute data of type {type(value).__name__} has no text form", code="W114")

    def show_type(self, ty: Type) -> str:
        """A type."""
        if type(ty) is TensorType:
            return self._tensor_type(ty)
        if isinstance(ty, DTensorType):
            return self._spread_type(ty)
        if isinstance(ty, ShapeType):
            if ty.dims is not None:
                return f"R.Shape({self.show_dims(ty.dims)})"
            return "R.Shape" if ty.ndim < 0 else f"R.Shape(ndim={ty.ndim})"
        if isinstance(ty, PrimType):
            return self._prim_type(ty)
        if isinstance(ty, TupleType):
            return f"R.Tuple({', '.join(map(self.show_type, ty.fields))})"
        if isinstance(ty, FuncType):
            return self._func_type(ty)
        form = BY_CLASS.get(type(ty))
        if form is None:
            return repr(ty)
        text = self.join(self.fill(form, self.node_values(form, ty)))
        return text[:-2] if text.endswith("()") else text

    def _prim_type(self, ty: PrimType) -> str:
        if ty.value is None:
            return f'R.Prim("{ty.dtype}")'
        return f'R.Prim("{ty.dtype}", value={self.scalar_value(ty)})'

    def scalar_value(self, ty: PrimType) -> str:
        """The value that a scalar type states."""
        if ty.dims is not None:
            return self.show_dim(ty.dims[0])
        return self.show_literal(ty.value)

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

    def _spread_type(self, ty: DTensorType) -> str:
        tensor = ty.tensor
        values = {
            "shape": tensor.shape,
            "dtype": tensor.dtype,
            "device_mesh": ty.mesh,
            "placement": ty.placement,
            "ndim": tensor.ndim if tensor.shape is None else -1,
        }
        return self.join(self.fill(TYPES["R.DTensor"], values))

    def show_mesh(self, mesh: DeviceMesh) -> str:
        """A mesh of devices by its place in the module's infos, or written out."""
        found = next((place for place, known in self.meshes if same_mesh(known, mesh)), None)
        return string_text(found) if found is not None else self.mesh_text(mesh)

    def mesh_text(self, mesh: DeviceMesh) -> str:
        """A mesh of devices, written out."""
        shape = f"({', '.join(map(str, mesh.shape))}{',' if len(mesh.shape) == 1 else ''})"
        first = mesh.devices[0]
        in_row = mesh.devices == tuple(range(first, first + len(mesh.devices)))
        devices = f"I.Range({first}, {first + len(mesh.devices)})" if in_row else str(list(mesh.devices))
        return f"R.device_mesh({shape}, {devices})"

    def show_placement(self, placement: Placement) -> str:
        """A placement."""
        return string_text(placement_text(placement))

    def _func_type(self, ty: FuncType) -> str:
        if ty.params is not None:
            params = f"({', '.join(map(self.show_type, ty.params))}{',' if len(ty.params) == 1 else ''})"
            derive = f", derive={string_text(ty.derive)}" if ty.derive else ""
            return f"R.Callable({params}, {self.show_type(ty.ret)}, {ty.pure}{derive})"
        derive = f", derive={string_text(ty.derive)}" if ty.derive else ""
        return f"R.Callable(ret={self.show_type(ty.ret)}, pure={ty.pure}{derive})"


class Ready:
    """Text that is ready, in the place of a value."""

    __slots__ = ("text",)

    def __init__(self, text: Any) -> None:
        self.text = text


class Always(str):
    """A string that is written even where it equals the default: it is of another type."""

    __slots__ = ()


def _same(value: Any, default: Any) -> bool:
    """Whether a value equals the default of its hole."""
    if default is None or value is None:
        return value is default
    if isinstance(value, Node):
        return False
    if isinstance(value, Mapping) and isinstance(default, Mapping):
        return not value and not default
    return type(value) is type(default) and value == default


def separated(parts: Iterable[list[Piece]]) -> list[Piece]:
    """Parts with commas between them."""
    result: list[Piece] = []
    for part in parts:
        if result:
            result.append(", ")
        result.extend(part)
    return result


def raised(pieces: list[Piece], minimum: int) -> list[Piece]:
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
