"""Graph-level nodes: whole-tensor programs in A-normal form.

    function ::= Function(params, SeqExpr, ret_type)
    seq      ::= SeqExpr(blocks, body)                  body is a leaf
    block    ::= BindingBlock(bindings) | DataflowBlock(bindings)
    binding  ::= VarBinding(var, value) | MatchCast(var, value, ty)
    value    ::= leaf | Call(op, leaf*) | Tuple(leaf*) | TupleGetItem(leaf) | If(leaf, seq, seq) | Function
    leaf     ::= Var | Constant | GlobalVar | ExternFunc | Op | ShapeExpr | PrimValue | StringImm
               | DataTypeImm | Tuple of leaves

Only variables carry a type; the type of any other expression is deduced from its parts
(`weft.ir.deduction.infer`). A variable is the object, its name a hint. Symbols in types are scoped by the enclosing
top-level function through their names.
Function references are by name (`GlobalVar`), so a module may change a function without touching its callers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from weft.dtypes import check_dtype, is_numpy, storage, stored
from weft.errors import DTypeError, Span
from weft.ir.dim import Dim
from weft.ir.node import EMPTY, FrozenMap, Node, binder, ignored, node, replace
from weft.ir.types import ShapeType, TensorType, Type
from weft.ir.variables import Expr, Var
from weft.support.array_memory import frozen_copy
from weft.support.providers import provider

__all__ = [
    "Binding",
    "BindingBlock",
    "Call",
    "Constant",
    "DataTypeImm",
    "DataflowBlock",
    "DataflowVar",
    "Expr",
    "ExternFunc",
    "Function",
    "GlobalVar",
    "If",
    "MatchCast",
    "Op",
    "PrimValue",
    "PythonFunc",
    "SeqExpr",
    "ShapeExpr",
    "StringImm",
    "Tuple",
    "TupleGetItem",
    "Var",
    "VarBinding",
]


@node
class DataflowVar(Var):
    """A variable that does not leave its dataflow block."""


@node
class GlobalVar(Expr):
    """A reference to a function of the module by name."""

    name: str
    span: Span | None = ignored(default=None)


@node
class ExternFunc(Expr):
    """A reference to a function outside the module, by symbol; `ty` may state its type."""

    name: str
    ty: Type | None = None
    span: Span | None = ignored(default=None)


@node
class PythonFunc(ExternFunc):
    """A Python function that is a member of a module: its text, and itself where a decorator has read it.

    >>> PythonFunc("f", source="def f(self, x): return x").name
    'f'
    """

    source: str = ""
    function: Any = ignored(default=None)


@node
class Op(Expr):
    """A reference to a declared operator by name (`weft.ir.op` holds the declarations)."""

    name: str
    span: Span | None = ignored(default=None)


@node
class Constant(Expr):
    """An array known at compile time.

    `data` is a read-only C-contiguous NumPy array; for a dtype that NumPy lacks it holds the raw bits
    (`dtypes.storage`), and is given as them or as an array of `ml_dtypes`.

    >>> Constant(np.zeros((2, 2), "float32")).dtype
    'float32'
    """

    data: np.ndarray
    dtype: str = ""
    span: Span | None = ignored(default=None)

    def __post_init__(self) -> None:
        data = np.asarray(self.data)
        dtype = check_dtype(self.dtype or data.dtype)
        data = stored(data, dtype)
        if data.dtype != storage(dtype):
            raise DTypeError(
                f"a {dtype} constant is stored as {storage(dtype)}, got an array of {data.dtype}", code="W303"
            )
        if data.flags.writeable or not data.flags.c_contiguous:
            data = frozen_copy(data)
        object.__setattr__(self, "data", data)
        object.__setattr__(self, "dtype", dtype)

    @property
    def ty(self) -> TensorType:
        """The tensor type of the array."""
        return TensorType(self.data.shape, self.dtype)

    @property
    def is_numpy(self) -> bool:
        """Whether `data` holds values (and not raw bits)."""
        return is_numpy(self.dtype)


@node
class ShapeExpr(Expr):
    """A tuple of sizes as a value; `written` keeps how a text spelt them (`4 * n * 8`)."""

    dims: tuple[Dim, ...]
    span: Span | None = ignored(default=None)
    written: tuple[str, ...] = ignored(default=())

    def __post_init__(self) -> None:
        object.__setattr__(self, "dims", tuple(self.dims))

    @property
    def ty(self) -> ShapeType:
        """The shape type with the same dimensions."""
        return ShapeType(self.dims)


@node
class PrimValue(Expr):
    """A scalar: a dimension, integer, float or truth value of the given dtype."""

    value: Dim | float | bool
    dtype: str = ""
    span: Span | None = ignored(default=None)

    def __post_init__(self) -> None:
        if not self.dtype:
            kind = "bool" if isinstance(self.value, bool) else "float32" if isinstance(self.value, float) else "int64"
            object.__setattr__(self, "dtype", kind)


@node
class StringImm(Expr):
    """A string."""

    value: str
    span: Span | None = ignored(default=None)


@node
class DataTypeImm(Expr):
    """A dtype as a value."""

    value: str
    span: Span | None = ignored(default=None)


@node
class Tuple(Expr):
    """A tuple of values."""

    fields: tuple[Expr, ...] = ()
    span: Span | None = ignored(default=None)


@node
class TupleGetItem(Expr):
    """One field of a tuple."""

    value: Expr
    index: int
    span: Span | None = ignored(default=None)

    if TYPE_CHECKING:  # the fields of a tuple, by `weft.ir.op.sugar`

        def __iter__(self) -> Iterator[Expr]: ...


@node
class Call(Expr):
    """A call of an operator, a function of the module, a variable or an extern function.

    `args` are run-time values; `attrs` are what is fixed at compile time (numbers, strings, dtypes, dimensions, tuples,
    maps of these), as the operator's declaration says; `ty_args` are types given by the user (out_ty of the call_*
    family).
    """

    op: Expr
    args: tuple[Expr, ...] = ()
    attrs: FrozenMap = EMPTY
    ty_args: tuple[Type, ...] = ()
    span: Span | None = ignored(default=None)

    if TYPE_CHECKING:  # the fields of a tuple, by `weft.ir.op.sugar`

        def __iter__(self) -> Iterator[Expr]: ...


@node
class VarBinding(Node):
    """var = value."""

    visit_order: ClassVar[tuple[str, ...]] = ("value", "var")
    var: Var = binder()
    value: Expr
    span: Span | None = ignored(default=None)


@node
class MatchCast(Node):
    """var = value, checked at run time to have type `ty`, which may define new symbols."""

    visit_order: ClassVar[tuple[str, ...]] = ("value", "ty", "var")
    var: Var = binder()
    value: Expr
    ty: Type
    span: Span | None = ignored(default=None)


Binding = VarBinding | MatchCast


@node
class BindingBlock(Node):
    """Bindings executed in order; anything is allowed."""

    bindings: tuple[Binding, ...] = ()
    span: Span | None = ignored(default=None)


@node
class DataflowBlock(BindingBlock):
    """Pure bindings without control flow; only plain Vars (the outputs) are visible outside."""


@node
class SeqExpr(Expr):
    """Blocks of bindings followed by a result."""

    blocks: tuple[BindingBlock, ...]
    body: Expr
    span: Span | None = ignored(default=None)


@node
class If(Expr):
    """One of two branches, chosen by a boolean scalar."""

    cond: Expr
    then_branch: SeqExpr
    else_branch: SeqExpr
    span: Span | None = ignored(default=None)


@node
class Function(Expr):
    """A graph function. `name` is a hint (the module's key is what counts).

    `private` ones may be renamed and removed.
    """

    params: tuple[Var, ...] = binder()
    body: SeqExpr
    ret_type: Type
    pure: bool = True
    private: bool = False
    attrs: FrozenMap = EMPTY
    name: str = ignored(default="main")
    span: Span | None = ignored(default=None)

    def __str__(self) -> str:
        return self.script()

    def with_attr(self, key: str, value: Any) -> Function:
        """A copy with one attribute set."""
        return replace(self, attrs=self.attrs.set(key, value))

    def __call__(self, /, *args: Any, **options: Any) -> Any:
        """Compile on first use (cached) and run on arrays."""
        return provider("call")(self, *args, **options)
