"""Matrices in registers (Intel AMX): what statements under `MATRIX_TILES` say, by the instruction that is named there.

    sums = 0;  for p:  for g:  for i:  for j:  sums[i, j] = dot_product(sums[i, j], A[p, i, g], B[p, g, j])

There may be a loop over few parts of A inside of that over p: a matrix of B is loaded once for all of them.
Where sums are cleared under a condition only, they are loaded where it does not hold: several tiles of rows meet a part
of B then, and A passes it by without a place in the first cache. A matrix has 16 rows of 64 bytes.
Those of the sums are 0 to 3, two by two, those of A 4 and 5, those of B 6 and 7; what they are is configured once for
each function, and again after whatever may have configured something else: they belong to nobody across calls. Where
the processor has no such instruction, or the statements are of another form, they are emitted as they are.

tdpbf16ps takes subnormal numbers as zeros, gives none, and adds up even and odd terms of a step apart, each product
added with one rounding to nearest even (Intel, Software Developer's Manual, volume 2, TDPBF16PS).
"""

from __future__ import annotations

from weft import dtypes
from weft.codegen.backends.llvm.asm.function import FunctionWriter
from weft.codegen.backends.llvm.asm.instructions import Operand, call
from weft.codegen.backends.llvm.asm.module import byte_text
from weft.codegen.backends.llvm.math.arithmetic import Arithmetic
from weft.ir.kernel.prim import const
from weft.ir.node import replace
from weft.ir.structure.visit import children
from weft.ir.tensor import (
    MATRIX_TILES,
    AttrStmt,
    BufferLoad,
    BufferStore,
    For,
    IfThenElse,
    PrimCall,
    PrimExpr,
    PrimVar,
    Ramp,
    SeqStmt,
    Shuffle,
    Stmt,
)
from weft.runtime.device.host import ASKS_FOR_MATRICES
from weft.support.records import dataclass
from weft.target import DOT_PRODUCTS, DotProduct
from weft.transform.autoschedule.rules.strides import uses

__all__ = [
    "ASKS_AT_START",
    "NUMBER",
    "PREFIX",
    "ROWS",
    "USES_MATRICES",
    "MatrixNest",
    "configure",
    "do_matrices",
    "has_matrix_tiles",
    "matrix_nest_of",
    "release",
]

ROWS, _BYTES = 16, 64
PREFIX, NUMBER = "llvm.x86.", "i8 immarg"
"""Of the names of intrinsics; the type of the number of a matrix."""
_COUNTS = tuple((ROWS, m * ROWS, *n) for m in (1, 2) for n in ((), (2,)))
"""The extents of the loops over groups, rows and columns."""
_PARTS = (1, 2, 3)
"""The extents of a loop over parts of A."""
USES_MATRICES = "@llvm.x86.ldtilecfg("
"""What the text of code that uses matrices has."""
ASKS_AT_START = f"""\
declare i64 @syscall(i64, ...)
define internal void @weft.matrices.ask() {{
  call i64 (i64, ...) @syscall({", ".join(f"i64 {number}" for number in ASKS_FOR_MATRICES)})
  ret void
}}
@llvm.global_ctors = appending global [1 x {{ i32, ptr, ptr }}] [
  {{ i32, ptr, ptr }} {{ i32 65535, ptr @weft.matrices.ask, ptr null }}
]
"""
"""A function that asks Linux for leave as a program starts, as `weft.runtime.device.host` does."""


def has_matrix_tiles(stmt: Stmt, arith: Arithmetic, *, in_order: bool) -> bool:
    """Whether code of a statement uses matrices, beside that of parallel loops, which are functions of their own unless
    they run `in_order`."""
    return bool(_instructions(arith)) and _has_tiles(stmt, arith, in_order)


def _has_tiles(stmt: Stmt, arith: Arithmetic, in_order: bool) -> bool:
    if isinstance(stmt, AttrStmt) and stmt.key == MATRIX_TILES:
        return matrix_nest_of(stmt, arith) is not None
    if isinstance(stmt, For) and stmt.kind == "parallel" and not in_order:
        return False
    return any(_has_tiles(part, arith, in_order) for part in children(stmt) if isinstance(part, Stmt))


def configure(w: FunctionWriter) -> None:
    """Eight matrices of 16 rows of 64 bytes, from here on in this thread."""
    content = bytes([1, *[0] * 15, *[_BYTES, 0] * 8, *[0] * 16, *[ROWS] * 8, *[0] * 8])
    w.module.add_global(f"@weft.matrices = private constant [64 x i8] {byte_text(content)}, align 64")
    do_matrices(w, "ldtilecfg", ("ptr",), [("ptr", "@weft.matrices")])


def release(w: FunctionWriter) -> None:
    """No matrices from here on: the system need not save them."""
    do_matrices(w, "tilerelease", (), [])


@dataclass(frozen=True)
class MatrixNest:
    """The loops and accesses: `rows` and `columns` are matrices of the sums, of which `j` None is the only column.

    `part`, of so many `parts`, is the variable of A that B has not. `clears` says when sums begin at zero (None:
    always).
    """

    row: DotProduct
    clears: PrimExpr | None
    step: For
    g: PrimVar
    i: PrimVar
    j: PrimVar | None
    rows: int
    columns: int
    sums: BufferLoad
    a: BufferLoad
    b: BufferLoad
    part: PrimVar | None = None
    parts: int = 1

    def at(self, m: int, n: int, part: int = 0) -> dict[PrimVar, PrimExpr]:
        """The variables at the first element of a matrix."""
        places: dict[PrimVar, PrimExpr] = {self.g: const(0, "int64"), self.i: const(m * ROWS, "int64")}
        if self.part is not None:
            places[self.part] = const(part, "int64")
        return places if self.j is None else {**places, self.j: const(n, "int64")}


def matrix_nest_of(stmt: AttrStmt, arith: Arithmetic) -> MatrixNest | None:
    """What is said under the attribute, where an instruction does it."""
    row = next((row for row in _instructions(arith) if row.instruction == stmt.value), None)
    if row is None or not isinstance(stmt.body, SeqStmt) or len(stmt.body.stmts) != 2:
        return None
    first, inner = stmt.body.stmts
    loops: list[For] = []
    while isinstance(inner, For):
        loops.append(inner)
        inner = inner.body
    loads = _product_of(inner)
    if loads is None or len(loops) < 3:
        return None
    sums, a, b = loads
    part = None if any(uses(index, loops[1].loop_var) for index in b.indices) else loops.pop(1)
    step, group, rows, *columns = loops
    counts = tuple(loop.extent for loop in (group, rows, *columns))
    if counts not in _COUNTS or (part is not None and part.extent not in _PARTS):
        return None
    return MatrixNest(
        row,
        first.condition if isinstance(first, IfThenElse) else None,
        step,
        group.loop_var,
        rows.loop_var,
        columns[0].loop_var if columns else None,
        rows.extent // ROWS if isinstance(rows.extent, int) else 0,
        2 if columns else 1,
        sums,
        a,
        b,
        None if part is None else part.loop_var,
        1 if part is None or not isinstance(part.extent, int) else part.extent,
    )


def _instructions(arith: Arithmetic) -> list[DotProduct]:
    """Those over matrices that the processor has, and that may be used."""
    rows = (row for row in DOT_PRODUCTS if row.is_matrix and row.feature in arith.features)
    return [row for row in rows if not (arith.strict and dtypes.is_float(row.types[2]))]


def _product_of(stmt: Stmt) -> tuple[BufferLoad, BufferLoad, BufferLoad] | None:
    """The first elements of sums, A and B."""
    value = stmt.value if isinstance(stmt, BufferStore) else None
    if not isinstance(value, PrimCall) or value.op != "dot_product":
        return None
    sums, a, b = value.args
    if not (isinstance(a, Shuffle) and isinstance(a.vectors[0], BufferLoad)):
        return None
    if not (isinstance(sums, BufferLoad) and isinstance(b, BufferLoad)):
        return None
    return _first(sums), _first(a.vectors[0]), _first(b)


def _first(load: BufferLoad) -> BufferLoad:
    return replace(load, indices=tuple(x.base if isinstance(x, Ramp) else x for x in load.indices))


def do_matrices(w: FunctionWriter, name: str, params: tuple[str, ...], operands: list[tuple[str, Operand]]) -> None:
    """Call an intrinsic over matrices."""
    w.do(call("void", w.module.declare(f"{PREFIX}{name}", "void", params), operands))
