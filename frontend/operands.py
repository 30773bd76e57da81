"""What the rows of a table of foreign operators ask of the types of operands."""

from __future__ import annotations

from weft.frontend.emitter import Emitter, Unsupported
from weft.ir.dim import Dim
from weft.ir.graph import Expr
from weft.ir.types import TensorType, Type

__all__ = ["Operands"]


class Operands:
    """The types of expressions of an import; Unsupported where a row needs more than is known."""

    @property
    def emitter(self) -> Emitter:
        """Where the bindings of the import go."""
        raise NotImplementedError

    def type(self, expr: Expr) -> Type:
        """The type of an expression."""
        return self.emitter.type(expr)

    def tensor(self, expr: Expr) -> TensorType:
        """The type of a tensor of known rank and dtype."""
        ty = self.type(expr)
        if not isinstance(ty, TensorType) or ty.ndim < 0 or ty.dtype is None:
            raise Unsupported("the rank or the type of an input is not known")
        return ty

    def shape(self, expr: Expr) -> tuple[Dim, ...]:
        """The sizes of a tensor."""
        dims = self.tensor(expr).dims
        if dims is None:
            raise Unsupported("the sizes of an input are not known")
        return dims

    def rank(self, expr: Expr) -> int:
        """The rank of a tensor."""
        return self.tensor(expr).ndim

    def dtype(self, expr: Expr) -> str:
        """The dtype of a tensor."""
        dtype = self.tensor(expr).dtype
        assert dtype is not None
        return dtype
