"""Dimensions of graph functions as 64-bit integers: computed once from the symbols, where they are first needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from weft.codegen.backends.llvm.asm.function import Size
from weft.codegen.backends.llvm.asm.instructions import binary, icmp
from weft.codegen.backends.llvm.asm.overflow import Exact
from weft.codegen.backends.llvm.host.state import FunctionState
from weft.errors import OutOfMemoryError, ShapeError, Span, TargetError
from weft.ir.dim import Dim, DimExpr, operation

__all__ = ["SizeEmitter"]


class SizeEmitter(FunctionState):
    """Sizes, and the symbols that they are made of."""

    def size(self, dim: Dim, span: Span | None = None) -> Size:
        """The value of a dimension; TargetError when a symbol has none here."""
        if not isinstance(dim, DimExpr):
            return int(dim)
        found = self.sizes.get(dim)
        if found is None:
            exact = Exact(self.w)
            found = self.sizes[dim] = self.exactly(dim, self.symbols, exact, span)
            self.fits_64_bits(dim, exact, span)
        return found

    def fits_64_bits(self, dim: Dim, exact: Exact, span: Span | None) -> None:
        """OutOfMemoryError W950 when a size, or a part of it, is no 64-bit number."""
        holds = exact.holds()
        message = f"no memory for a size of {dim}: it does not fit 64 bits"
        if holds is False:
            raise OutOfMemoryError(message, code="W950", span=span)
        if holds is not True:
            self.unless(holds, "MemoryError", [message], [], span)

    def compared(self, dim: Dim, size: Size, symbols: Mapping[str, Size], span: Span | None) -> tuple[Size, bool | str]:
        """A dimension for the values of its symbols, and whether it is exactly a size."""
        exact = Exact(self.w)
        if not isinstance(dim, DimExpr) or (symbols is self.symbols and dim in self.sizes):
            wanted = self.size(dim, span)
        else:
            wanted = self.exactly(dim, symbols, exact, span)
        holds = exact.holds()
        if holds is False or (isinstance(wanted, int) and isinstance(size, int)):
            return wanted, holds is True and wanted == size
        if wanted == size and holds is True:
            return wanted, True
        same = self.w.emit(icmp("eq", "i64", wanted, size))
        return wanted, same if holds is True else self.w.emit(binary("and", "i1", same, holds))

    def exactly(self, dim: Dim, symbols: Mapping[str, Size], exact: Exact, span: Span | None = None) -> Size:
        """A dimension for the values of its symbols; `exact` knows whether it fits."""
        kind, operands = operation(dim)
        if kind == "constant":
            return operands[0]
        if kind == "symbol":
            if operands[0] not in symbols:
                raise TargetError(f"llvm: the symbol {operands[0]} has no value in {self.name}", code="W744", span=span)
            return symbols[operands[0]]
        if kind == "pow":
            base = self.exactly(operands[0], symbols, exact, span)
            return self._fold([base] * operands[1], exact.mul)
        values = [self.exactly(operand, symbols, exact, span) for operand in operands]
        if kind in ("add", "mul"):
            return self._fold(values, exact.add if kind == "add" else exact.mul)
        if kind in ("min", "max"):
            return self._fold(values, lambda a, b: self.arith.binary(kind, "int64", str(a), str(b)))
        if not isinstance(values[1], int):
            nonzero = self.w.emit(icmp("ne", "i64", values[1], "0"))
            self.unless(nonzero, "ShapeError", [f"division by zero in {dim}: {operands[1]} is 0"], [], span, "W280")
        return self.arith.binary({"mod": "floormod"}.get(kind, kind), "int64", str(values[0]), str(values[1]))

    @staticmethod
    def _fold(values: Sequence[Size], combine: Callable[[Size, Size], Size]) -> Size:
        result = values[0]
        for value in values[1:]:
            result = combine(result, value)
        return result

    def bind_symbol(self, name: str, size: Size, source: str) -> None:
        """Give a symbol its value."""
        self.symbols[name] = size
        self.sources[name] = source

    def nonnegative(self, dim: Dim, span: Span | None) -> Size:
        """A size; ShapeError W221 when the program finds a negative one."""
        known = dim in self.sizes if isinstance(dim, DimExpr) else True
        size = self.size(dim, span)
        if isinstance(size, int) and size < 0:
            raise ShapeError(f"a shape has the negative size {size}", code="W221", span=span)
        if not known and _may_be_negative(dim):
            fine = self.w.emit(icmp("sge", "i64", size, "0"))
            self.unless(fine, "ShapeError", [f"a shape has the negative size {dim} = ", 0], [size], span, "W221")
        return size


def _may_be_negative(dim: Dim) -> bool:
    """Whether a dimension is not evidently at least 0."""
    kind, operands = operation(dim)
    if kind == "constant":
        return operands[0] < 0
    if kind == "symbol":
        return False
    if kind == "pow":
        return _may_be_negative(operands[0])
    return any(_may_be_negative(operand) for operand in operands)
