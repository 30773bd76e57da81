"""BindParams: parameters of a graph function become constants.

    def main(x, w: R.Tensor(("k", 4)))      BindParams("main", {"w": array})      def main(x), the array in place of w

The symbols that the array's shape fixes are substituted everywhere in the function; what it merely restricts
(`("2 * n",)` with n bound by another parameter) stays as a `match_cast`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from weft.errors import DTypeError, PassError, ShapeError, described
from weft.ir import (
    BindingBlock,
    Constant,
    Expr,
    Function,
    IRModule,
    MatchCast,
    PrimType,
    PrimValue,
    ShapeExpr,
    ShapeType,
    TensorType,
    Type,
    Var,
    replace,
    substitute_symbols,
)
from weft.ir.deduction.infer import infer_type, type_text
from weft.ir.deduction.subtyping import match_types
from weft.ir.dim import prove_equal
from weft.ir.structure.references import referenced_functions
from weft.support.records import dataclass
from weft.transform.infra.base import Pass
from weft.transform.infra.registry import nearest
from weft.transform.infra.reinfer import retype_module
from weft.transform.infra.rewriting import FunctionRewriter, derived, merge_blocks

__all__ = ["BindParams"]


@dataclass(frozen=True, eq=False)
class BindParams(Pass):
    """Bind parameters of a function, by name or variable, to arrays (tuples of sizes for shapes, numbers for scalars).

    Raises: PassError W543 for an unknown parameter, W544 when other functions call the function, W545 for a value of
    the wrong kind; DTypeError W320 and ShapeError W202 for an array that does not fit; W510 for an unknown function.
    """

    keeps_meaning: ClassVar[bool] = False  # the function takes fewer parameters on purpose
    func_name: str
    params: Mapping[Any, Any]

    def run(self, module: IRModule) -> IRModule:
        """Bind, then deduce types again."""
        function = module[self.func_name]
        if not isinstance(function, Function):
            raise PassError(f"{self.func_name!r} is no graph function", code="W510")
        callers = [name for name, other in module.items() if self.func_name in referenced_functions(other)]
        if callers:
            raise PassError(
                f"the parameters of {self.func_name!r} cannot be bound: {', '.join(map(repr, callers))} calls it",
                code="W544",
                hint="bind them in the calling function, or inline first",
            )
        values = {self._find(function, key): value for key, value in self.params.items()}
        if not values:
            return module
        constants = {param: _as_constant(param, value) for param, value in values.items()}
        return retype_module(module.with_function(self.func_name, self._bind(function, constants)))

    def _find(self, function: Function, key: Any) -> Var:
        names = [param.name for param in function.params]
        matches = [param for param in function.params if param is key or param.name == key]
        if len(matches) != 1:
            wanted = key.name if isinstance(key, Var) else key
            problem = "several parameters" if matches else "no parameter"
            raise PassError(
                f"function {self.func_name!r} has {problem} {wanted!r}",
                code="W543",
                hint=nearest(str(wanted), names) or f"it has: {', '.join(names) or 'none'}",
            )
        return matches[0]

    def _bind(self, function: Function, constants: Mapping[Var, Expr]) -> Function:
        """The function without the parameters, their symbols substituted, what is left to check cast."""
        types = [param.ty for param in constants]
        match = match_types(types, [infer_type(value) for value in constants.values()])
        bound = {name: dim for name, dim in match.symbols.items() if isinstance(dim, int)}
        binder = _Binder()
        casts = []
        for param, value in constants.items():
            ty = substitute_symbols(param.ty, bound)
            if _restricts(param, ty, infer_type(value)):
                cast = Var(param.name, ty, span=param.span)
                casts.append(MatchCast(cast, value, ty, span=derived(param.span, self.text_name)))
                value = cast
            binder.replaced[param] = value
        new = binder.run(replace(function, params=tuple(p for p in function.params if p not in constants)))
        if casts:
            blocks = merge_blocks((BindingBlock(tuple(casts)), *new.body.blocks))
            new = replace(new, body=replace(new.body, blocks=blocks))
        return substitute_symbols(new, bound)


class _Binder(FunctionRewriter):
    """Puts constants in place of parameters."""


def _restricts(param: Var, wanted: Type, given: Type) -> bool:
    """Whether the value leaves an equality open; ShapeError W202 where it contradicts the parameter."""
    if not isinstance(wanted, (TensorType, ShapeType)) or not isinstance(given, type(wanted)):
        return False
    dims = wanted.dims
    if dims is None:
        return False
    answers = [prove_equal(a, b) for a, b in zip(dims, given.dims or (), strict=True)]
    if False in answers:
        raise ShapeError(
            f"parameter {param.name!r}: expected {type_text(param.ty)}, got {type_text(given)}",
            code="W202",
            span=param.span,
        )
    return None in answers


def _as_constant(param: Var, value: Any) -> Expr:
    """The value as a constant of the parameter's type."""
    ty = param.ty
    if isinstance(ty, ShapeType) and isinstance(value, (tuple, list)):
        new: Expr = ShapeExpr(tuple(int(size) for size in value))
    elif isinstance(ty, PrimType) and isinstance(value, (bool, int, float, np.generic)):
        new = PrimValue(value.item() if isinstance(value, np.generic) else value, ty.dtype)
    elif isinstance(ty, TensorType) and isinstance(value, (np.ndarray, np.generic, Constant)):
        new = value if isinstance(value, Constant) else Constant(np.asarray(value))
    else:
        raise PassError(
            f"parameter {param.name!r} of type {type_text(ty)} cannot be bound to {described(value)}", code="W545"
        )
    _check(param, infer_type(new))
    return replace(new, span=param.span)


def _check(param: Var, given: Type) -> None:
    match = match_types([param.ty], [given])
    if match.answer is False or any(prove_equal(a, b) is False for a, b in match.pairs):
        wanted, got = getattr(param.ty, "dtype", None), getattr(given, "dtype", None)
        kind, code = (DTypeError, "W320") if wanted not in (None, got) else (ShapeError, "W202")
        message = f"parameter {param.name!r}: expected {type_text(param.ty)}, got {type_text(given)}"
        raise kind(message, code=code, span=param.span)
