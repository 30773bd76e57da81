"""Tensor-level nodes: loops over buffers.

    primfunc ::= PrimFunc(params: (Buffer | PrimVar)*, stmt)
    stmt     ::= SeqStmt(stmt*) | For | While | IfThenElse | Block | BufferStore | Bind | AllocBuffer | DeclBuffer
               | AssertStmt | AttrStmt | Evaluate | Break | Continue | Return
    expr     ::= PrimVar | IntImm | FloatImm | StringImm | Unary | Binary | Cast | Select | BufferLoad | Ramp |
    Broadcast
               | Shuffle | Let | PrimCall

Names introduced by `Bind`, `AllocBuffer` and `DeclBuffer` are visible in the rest of the enclosing SeqStmt (flat
scopes); a loop variable in its body; a block's variables inside the block, its allocations too. `Extent = int |
PrimExpr`: plain integers stay plain wherever a size stands. The symbols of a function are the PrimVars that occur
bare in the shapes, strides or offsets of its parameter buffers; they are bound by the call. Scalar parameters are
PrimVars. Every expression has a `dtype`; arithmetic nodes have operands of one dtype (constructors in
`weft.ir.kernel.prim` promote).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from weft.dtypes import check_dtype, lanes, with_lanes
from weft.errors import ShapeError, Span, VerifyError, described
from weft.ir.graph import Expr
from weft.ir.node import EMPTY, FrozenMap, Node, binder, derived, ignored, node, replace
from weft.ir.types import Type
from weft.support.guards import is_listing
from weft.support.providers import provider

__all__ = [
    "BINARY_KINDS",
    "COMPARISONS",
    "LOGICAL",
    "MATRIX_TILES",
    "NEAREST",
    "PREFETCH",
    "UNARY_KINDS",
    "AllocBuffer",
    "AssertStmt",
    "AttrStmt",
    "Binary",
    "Bind",
    "Block",
    "Break",
    "Broadcast",
    "Buffer",
    "BufferLoad",
    "BufferRegion",
    "BufferStore",
    "Cast",
    "Continue",
    "DeclBuffer",
    "Evaluate",
    "Extent",
    "FloatImm",
    "For",
    "IfThenElse",
    "IntImm",
    "IterVar",
    "Let",
    "MatchBufferRegion",
    "PrimCall",
    "PrimExpr",
    "PrimFunc",
    "PrimVar",
    "Ramp",
    "Range",
    "Return",
    "Select",
    "SeqStmt",
    "Shuffle",
    "Stmt",
    "Unary",
    "While",
]

UNARY_KINDS = ("neg", "not", "bitwise_not")
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
LOGICAL = ("and", "or")
PREFETCH = "prefetch"
NEAREST = "nearest"
"""The node of an attribute `PREFETCH` whose element goes to the nearest cache, not only to the second one."""
MATRIX_TILES = "matrix_tiles"
BINARY_KINDS = (
    "add",
    "sub",
    "mul",
    "div",
    "floordiv",
    "floormod",
    "truncdiv",
    "truncmod",
    "min",
    "max",
    *COMPARISONS,
    *LOGICAL,
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "shift_left",
    "shift_right",
)


class PrimExpr(Expr):
    """The base of scalar (or vector) expressions; every subclass has `dtype`."""

    __slots__ = ()
    if TYPE_CHECKING:  # `weft.ir.kernel.prim` installs the operators
        dtype: str = ""

        def __add__(self, other: Any) -> PrimExpr: ...
        def __radd__(self, other: Any) -> PrimExpr: ...
        def __sub__(self, other: Any) -> PrimExpr: ...
        def __rsub__(self, other: Any) -> PrimExpr: ...
        def __mul__(self, other: Any) -> PrimExpr: ...
        def __rmul__(self, other: Any) -> PrimExpr: ...
        def __truediv__(self, other: Any) -> PrimExpr: ...
        def __rtruediv__(self, other: Any) -> PrimExpr: ...
        def __floordiv__(self, other: Any) -> PrimExpr: ...
        def __rfloordiv__(self, other: Any) -> PrimExpr: ...
        def __mod__(self, other: Any) -> PrimExpr: ...
        def __rmod__(self, other: Any) -> PrimExpr: ...
        def __and__(self, other: Any) -> PrimExpr: ...
        def __rand__(self, other: Any) -> PrimExpr: ...
        def __or__(self, other: Any) -> PrimExpr: ...
        def __ror__(self, other: Any) -> PrimExpr: ...
        def __xor__(self, other: Any) -> PrimExpr: ...
        def __rxor__(self, other: Any) -> PrimExpr: ...
        def __lshift__(self, other: Any) -> PrimExpr: ...
        def __rlshift__(self, other: Any) -> PrimExpr: ...
        def __rshift__(self, other: Any) -> PrimExpr: ...
        def __rrshift__(self, other: Any) -> PrimExpr: ...
        def __lt__(self, other: Any) -> PrimExpr: ...
        def __le__(self, other: Any) -> PrimExpr: ...
        def __gt__(self, other: Any) -> PrimExpr: ...
        def __ge__(self, other: Any) -> PrimExpr: ...
        def __neg__(self) -> PrimExpr: ...
        def __invert__(self) -> PrimExpr: ...


class Stmt(Node):
    """The base of statements."""

    __slots__ = ()


@node
class PrimVar(PrimExpr):
    """A scalar variable; identity is the object. Handles may say what they point to and where.

    A handle of another scope than the global one that says nothing else points to void.
    """

    name: str = ignored(default="")
    dtype: str = "int32"
    pointee: str | None = None
    scope: str = "global"
    span: Span | None = ignored(default=None)

    def __post_init__(self) -> None:
        if self.pointee is None and self.scope != "global":
            object.__setattr__(self, "pointee", "void")


@node
class IntImm(PrimExpr):
    """An integer or truth value."""

    value: int
    dtype: str = "int32"
    span: Span | None = ignored(default=None)


@node
class FloatImm(PrimExpr):
    """A floating-point value, held as a Python float (exact for every type up to 64 bits; nan payloads are kept)."""

    value: float
    dtype: str = "float32"
    span: Span | None = ignored(default=None)


Extent = int | PrimExpr


def _plain(extent: Extent) -> Extent:
    """Constants stand as plain ints in extents, so that one size has one form."""
    return extent.value if isinstance(extent, IntImm) else extent


def _set_plain(target: Node, *names: str) -> None:
    for name in names:
        value = getattr(target, name)
        if isinstance(value, IntImm):
            object.__setattr__(target, name, value.value)


@node
class Buffer(Node):
    """A multi-dimensional view of memory; identity is the object.

    `data` None means that the buffer owns its memory (a parameter or an allocation). `strides` None means compact
    row-major. `elem_offset` None means zero. `size_dtypes` keeps the dtypes of sizes that were given as typed
    constants (`T.int64(4)`), which mean the same number here and not in every reader of the text.
    """

    name: str = ignored(default="")
    shape: tuple[Extent, ...] = ()
    dtype: str = "float32"
    scope: str = "global"
    strides: tuple[Extent, ...] | None = None
    elem_offset: Extent | None = None
    data: PrimExpr | None = None
    align: int = 0
    offset_factor: int = 0
    axis_separators: tuple[int, ...] = ()
    span: Span | None = ignored(default=None)
    size_dtypes: tuple[str, ...] = ignored(default=())

    def __post_init__(self) -> None:
        if any(isinstance(extent, IntImm) for extent in self.shape):
            dtypes = (extent.dtype if isinstance(extent, PrimExpr) else "int32" for extent in self.shape)
            object.__setattr__(self, "size_dtypes", tuple(dtypes))
        object.__setattr__(self, "shape", tuple(_plain(extent) for extent in self.shape))
        if self.strides is not None:
            object.__setattr__(self, "strides", tuple(_plain(extent) for extent in self.strides))
            if self.strides and len(self.strides) != len(self.shape):
                message = f"buffer {self.name!r} has {len(self.shape)} dimensions and {len(self.strides)} strides"
                raise ShapeError(message, code="W202", span=self.span, hint="state a stride for each dimension")
        _set_plain(self, "elem_offset")
        object.__setattr__(self, "dtype", check_dtype(self.dtype))

    @property
    def ndim(self) -> int:
        """The rank."""
        return len(self.shape)


@node
class Range(Node):
    """[start, start + extent)."""

    start: Extent
    extent: Extent
    span: Span | None = ignored(default=None)

    def __post_init__(self) -> None:
        _set_plain(self, "start", "extent")


@node
class BufferRegion(Node):
    """A box of a buffer."""

    buffer: Buffer
    region: tuple[Range, ...]
    span: Span | None = ignored(default=None)


def _load_dtype(buffer: Buffer, indices: tuple[PrimExpr, ...]) -> str:
    """The buffer's dtype, times the lanes of the last index."""
    return with_lanes(buffer.dtype, lanes(buffer.dtype) * lanes(indices[-1].dtype)) if indices else buffer.dtype


def _no_expression(node: Node, *fields: str) -> VerifyError:
    """The error for a node whose parts are no expressions, which its dtype would follow from."""
    for name in fields:
        value = getattr(node, name)
        for part in value if is_listing(value) else (value,):
            if not isinstance(part, PrimExpr):
                message = f"`{name}` of {type(node).__name__} takes expressions, got {described(part)}"
                return VerifyError(message, code="W467", hint="weft.ir.kernel.prim.const makes one of a number")
    return VerifyError(f"{type(node).__name__} has a part of no dtype", code="W467")


def _comparison_dtype(operand: str) -> str:
    return with_lanes("bool", lanes(operand))


@node
class Unary(PrimExpr):
    """neg, not, bitwise_not."""

    kind: str
    a: PrimExpr
    span: Span | None = ignored(default=None)
    dtype: str = derived()

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "dtype", self.a.dtype)
        except (AttributeError, TypeError):
            raise _no_expression(self, "a") from None


@node
class Binary(PrimExpr):
    """Arithmetic, comparison, logic and bits on two operands of one dtype (kinds in BINARY_KINDS)."""

    kind: str
    a: PrimExpr
    b: PrimExpr
    span: Span | None = ignored(default=None)
    dtype: str = derived()

    def __post_init__(self) -> None:
        try:
            dtype = _comparison_dtype(self.a.dtype) if self.kind in COMPARISONS else self.a.dtype
            object.__setattr__(self, "dtype", dtype)
        except (AttributeError, TypeError, ValueError):
            raise _no_expression(self, "a", "b") from None


@node
class Cast(PrimExpr):
    """A value converted to another dtype (C semantics; float to integer truncates)."""

    dtype: str
    value: PrimExpr
    span: Span | None = ignored(default=None)


@node
class Select(PrimExpr):
    """One of two values, both evaluated."""

    condition: PrimExpr
    true_value: PrimExpr
    false_value: PrimExpr
    span: Span | None = ignored(default=None)
    dtype: str = derived()

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "dtype", self.true_value.dtype)
        except (AttributeError, TypeError):
            raise _no_expression(self, "condition", "true_value", "false_value") from None


@node
class BufferLoad(PrimExpr):
    """buffer[indices]; a Ramp as last index makes a vector."""

    buffer: Buffer
    indices: tuple[PrimExpr, ...]
    predicate: PrimExpr | None = None
    span: Span | None = ignored(default=None)
    dtype: str = derived()

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "dtype", _load_dtype(self.buffer, self.indices))
        except (AttributeError, TypeError):
            raise _no_expression(self, "indices") from None


@node
class Ramp(PrimExpr):
    """The vector base, base + stride, ..."""

    base: PrimExpr
    stride: PrimExpr
    lanes: int
    span: Span | None = ignored(default=None)
    dtype: str = derived()

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "dtype", with_lanes(self.base.dtype, self.lanes))
        except (AttributeError, TypeError):
            raise _no_expression(self, "base", "stride") from None


@node
class Broadcast(PrimExpr):
    """A scalar repeated in every lane."""

    value: PrimExpr
    lanes: int
    span: Span | None = ignored(default=None)
    dtype: str = derived()

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "dtype", with_lanes(self.value.dtype, self.lanes))
        except (AttributeError, TypeError):
            raise _no_expression(self, "value") from None


@node
class Shuffle(PrimExpr):
    """Lanes picked from the concatenation of vectors."""

    vectors: tuple[PrimExpr, ...]
    indices: tuple[PrimExpr, ...]
    span: Span | None = ignored(default=None)
    dtype: str = derived()

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "dtype", with_lanes(self.vectors[0].dtype, len(self.indices)))
        except (AttributeError, TypeError):
            raise _no_expression(self, "vectors", "indices") from None


@node
class Let(PrimExpr):
    """body with var standing for value."""

    visit_order: ClassVar[tuple[str, ...]] = ("value", "var", "body")
    var: PrimVar = binder()
    value: PrimExpr
    body: PrimExpr
    span: Span | None = ignored(default=None)
    dtype: str = derived()

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "dtype", self.body.dtype)
        except (AttributeError, TypeError):
            raise _no_expression(self, "value", "body") from None


@node
class PrimCall(PrimExpr):
    """A call of an intrinsic by name (table: `weft.ir.kernel.intrinsics`) or of a function of the module (GlobalVar).

    External symbols are called through the intrinsics `call_extern`, `call_pure_extern`, `call_packed` with the
    symbol as first argument (a StringImm).
    """

    op: str | Expr
    args: tuple[Expr, ...] = ()
    dtype: str = "void"
    attrs: FrozenMap = EMPTY
    span: Span | None = ignored(default=None)


@node
class SeqStmt(Stmt):
    """Statements in order; a sequence inside a sequence is spliced in, so that one program has one form."""

    stmts: tuple[Stmt, ...] = ()
    span: Span | None = ignored(default=None)

    def __post_init__(self) -> None:
        if any(isinstance(stmt, SeqStmt) for stmt in self.stmts):
            flat = (part for stmt in self.stmts for part in (stmt.stmts if isinstance(stmt, SeqStmt) else (stmt,)))
            object.__setattr__(self, "stmts", tuple(flat))


@node
class BufferStore(Stmt):
    """buffer[indices] = value."""

    buffer: Buffer
    value: PrimExpr
    indices: tuple[PrimExpr, ...]
    predicate: PrimExpr | None = None
    span: Span | None = ignored(default=None)


@node
class For(Stmt):
    """A loop; kind is serial, parallel, vectorized, unrolled or thread_binding (`thread` names the axis).

    `launched` keeps that a text said so of a thread axis (`T.launch_thread`), which is the same loop here.
    """

    visit_order: ClassVar[tuple[str, ...]] = ("start", "extent", "step", "loop_var", "body")
    loop_var: PrimVar = binder()
    start: Extent
    extent: Extent
    body: Stmt
    kind: str = "serial"
    thread: str | None = None
    step: Extent | None = None
    annotations: FrozenMap = EMPTY
    span: Span | None = ignored(default=None)
    launched: bool = ignored(default=False)

    def __post_init__(self) -> None:
        _set_plain(self, "start", "extent", "step")


@node
class While(Stmt):
    """Repeat while the condition holds."""

    condition: PrimExpr
    body: Stmt
    span: Span | None = ignored(default=None)


@node
class IfThenElse(Stmt):
    """A conditional statement."""

    condition: PrimExpr
    then_body: Stmt
    else_body: Stmt | None = None
    span: Span | None = ignored(default=None)


@node
class IterVar(Node):
    """A block's iteration variable over [start, start + extent), bound to `value` (None only with no_realize).

    kind is spatial, reduce, scan or opaque.
    """

    visit_order: ClassVar[tuple[str, ...]] = ("start", "extent", "value", "var")
    var: PrimVar = binder()
    start: Extent
    extent: Extent
    kind: str
    value: PrimExpr | None = None
    span: Span | None = ignored(default=None)

    def __post_init__(self) -> None:
        _set_plain(self, "start", "extent")


@node
class MatchBufferRegion(Node):
    """A buffer that stands for a region of another one inside a block."""

    visit_order: ClassVar[tuple[str, ...]] = ("source", "buffer")
    buffer: Buffer = binder()
    source: BufferRegion
    span: Span | None = ignored(default=None)


@node
class Block(Stmt):
    """A unit of computation with declared iteration space and accesses.

    `reads` and `writes` None mean "as the body does" (`weft.ir.kernel.regions` derives them). `predicate` guards the
    instance; `init` runs before the first iteration of the reduce variables. `bare` keeps that a text gives a
    block without variables that is bound to nothing (`no_realize=True`), which is the same block here.
    """

    visit_order: ClassVar[tuple[str, ...]] = (
        "iter_vars",
        "predicate",
        "alloc_buffers",
        "match_buffers",
        "reads",
        "writes",
        "init",
        "body",
    )
    name: str
    body: Stmt
    iter_vars: tuple[IterVar, ...] = ()
    predicate: PrimExpr | None = None
    reads: tuple[BufferRegion, ...] | None = None
    writes: tuple[BufferRegion, ...] | None = None
    init: Stmt | None = None
    alloc_buffers: tuple[Buffer, ...] = binder(default=())
    match_buffers: tuple[MatchBufferRegion, ...] = ()
    annotations: FrozenMap = EMPTY
    span: Span | None = ignored(default=None)
    bare: bool = ignored(default=False)


@node
class Bind(Stmt):
    """var = value for the rest of the enclosing sequence (immutable)."""

    visit_order: ClassVar[tuple[str, ...]] = ("value", "var")
    var: PrimVar = binder()
    value: PrimExpr
    span: Span | None = ignored(default=None)


@node
class AllocBuffer(Stmt):
    """Memory for a buffer, alive for the rest of the enclosing sequence; contents undefined."""

    buffer: Buffer = binder()
    annotations: FrozenMap = EMPTY
    span: Span | None = ignored(default=None)


@node
class DeclBuffer(Stmt):
    """A buffer that views existing memory (`buffer.data`), for the rest of the enclosing sequence."""

    buffer: Buffer = binder()
    span: Span | None = ignored(default=None)


@node
class AssertStmt(Stmt):
    """Stop with an error of the given kind unless the condition holds.

    `parts` keeps how a text divides the message, where it says more than the message and the kind do.
    """

    condition: PrimExpr
    message: str
    kind: str = "AssertionError"
    parts: tuple[str, ...] = ()
    span: Span | None = ignored(default=None)

    def __post_init__(self) -> None:
        # `assert c, "m"` is an AssertionError here and a RuntimeError elsewhere: one that names it is told apart.
        if len(self.parts) == 1 and self.kind != "AssertionError":
            object.__setattr__(self, "parts", ())


@node
class AttrStmt(Stmt):
    """An attribute about a node that holds inside the body.

    The key `PREFETCH` says that the element that `value` names is wanted soon: it changes no result, and the place may
    be beyond the ends of the buffer; with the node `NEAREST` it is wanted very soon. `MATRIX_TILES` names the
    instruction over matrices that may do what the body says.
    """

    node: object
    key: str
    value: object
    body: Stmt
    span: Span | None = ignored(default=None)


@node
class Evaluate(Stmt):
    """An expression for its effect."""

    value: Expr
    span: Span | None = ignored(default=None)


@node
class Break(Stmt):
    """Leave the innermost loop."""

    span: Span | None = ignored(default=None)


@node
class Continue(Stmt):
    """Go to the next iteration of the innermost loop."""

    span: Span | None = ignored(default=None)


@node
class Return(Stmt):
    """Leave the function, with a scalar result if any."""

    value: PrimExpr | None = None
    span: Span | None = ignored(default=None)


@node
class PrimFunc(Expr):
    """A tensor-level function; buffers are parameters, outputs among them are written in place.

    `s_tir` keeps what TVM's scripts say of a function: that it is of the dialect that has blocks, whether or not it
    holds one. It means nothing to weft.
    """

    params: tuple[Buffer | PrimVar, ...] = binder()
    body: Stmt
    ret_type: Type | None = None
    private: bool = False
    attrs: FrozenMap = EMPTY
    name: str = ignored(default="main")
    span: Span | None = ignored(default=None)
    s_tir: bool = ignored(default=False)

    def __str__(self) -> str:
        return self.script()

    def with_attr(self, key: str, value: object) -> PrimFunc:
        """A copy with one attribute set."""
        return replace(self, attrs=self.attrs.set(key, value))

    def __call__(self, /, *args: Any, **options: Any) -> Any:
        """Compile on first use (cached) and run on arrays."""
        return provider("call")(self, *args, **options)
