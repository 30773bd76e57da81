"""Relations between types: text, subtypes, common bases, matching of parameters with arguments, erasure.

Answers about subtypes have three values: True (for all symbol values), False (for none, or the kinds differ), None (it
depends on the values, or only a run-time check can tell).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from weft.ir.deduction.device_mesh import DTensorType, placement_text, same_mesh
from weft.ir.dim import Dim, Facts, free_symbols, match_dims, prove_equal, prove_nonnegative, same, substitute
from weft.ir.graph import Var
from weft.ir.node import replace
from weft.ir.structure.structural import structural_equal
from weft.ir.types import AnyType, FuncType, PrimType, ShapeType, StringType, TensorType, TupleType, Type
from weft.support.guards import is_tuple
from weft.support.records import dataclass

__all__ = [
    "Match",
    "all_of",
    "common_base",
    "dims_of",
    "erase",
    "has_sizes",
    "is_base_of",
    "match_types",
    "substitute_type",
    "type_symbols",
    "type_text",
    "unnamed",
]


def type_text(ty: Type | None) -> str:
    """A type as the script writes it, for messages.

    >>> type_text(TensorType((2, 3), "float32"))
    'R.Tensor((2, 3), "float32")'
    """
    if isinstance(ty, TensorType):
        parts = ", ".join(_tensor_parts(ty))
        return f"R.Tensor({parts})" if parts else "R.Tensor"
    if isinstance(ty, DTensorType):
        return f"R.DTensor({', '.join(_spread_parts(ty))})"
    if isinstance(ty, ShapeType):
        if ty.dims is not None:
            return f"R.Shape([{', '.join(str(dim) for dim in ty.dims)}])"
        return f"R.Shape(ndim={ty.ndim})" if ty.ndim >= 0 else "R.Shape"
    if isinstance(ty, PrimType):
        return f'R.Prim("{ty.dtype}"{"" if ty.value is None else f", value={ty.value}"})'
    if isinstance(ty, TupleType):
        return f"R.Tuple({', '.join(type_text(field) for field in ty.fields)})"
    if isinstance(ty, FuncType):
        params = "..." if ty.params is None else f"({', '.join(type_text(param) for param in ty.params)})"
        return f"R.Callable({params}, {type_text(ty.ret)}, {ty.pure})"
    return _NAMES.get(type(ty), "no type")


_NAMES: dict[type, str] = {StringType: "R.String", AnyType: "R.Any"}


def _tensor_parts(ty: TensorType) -> Iterator[str]:
    if ty.dims is not None:
        yield f"({', '.join(str(dim) for dim in ty.dims)}{',' if len(ty.dims) == 1 else ''})"
    elif isinstance(ty.shape, Var):
        yield ty.shape.name
    if ty.dtype is not None:
        yield f'"{ty.dtype}"' if ty.shape is not None else f'dtype="{ty.dtype}"'
    if ty.shape is None and ty.ndim >= 0:
        yield f"ndim={ty.ndim}"


def _spread_parts(ty: DTensorType) -> Iterator[str]:
    yield from _tensor_parts(ty.tensor)
    if ty.mesh is not None:
        yield f"device_mesh=R.device_mesh({ty.mesh.shape}, {list(ty.mesh.devices)})"
    if ty.placement is not None:
        yield f'placement="{placement_text(ty.placement)}"'


def dims_of(ty: Type) -> tuple[Dim, ...] | None:
    """The dimensions that a tensor or shape type writes out (through a shape variable too), else None.

    The value of a scalar type is one as well.
    """
    if isinstance(ty, DTensorType):
        return dims_of(ty.tensor)
    if isinstance(ty, TensorType):
        return dims_of(ty.shape.ty) if isinstance(ty.shape, Var) else ty.dims
    return ty.dims if isinstance(ty, (ShapeType, PrimType)) else None


def has_sizes(ty: Type, facts: Facts | None = None) -> bool:
    """Whether every size that a tensor, shape or tuple type writes out is proved not to be negative.

    >>> from weft.ir.dim import symbol
    >>> has_sizes(ShapeType((symbol("n") + 1,))), has_sizes(ShapeType((symbol("n") - 1,)))
    (True, False)
    """
    if isinstance(ty, TupleType):
        return all(has_sizes(part, facts) for part in ty.fields)
    if isinstance(ty, PrimType):
        return True
    return all(prove_nonnegative(dim, facts) is True for dim in dims_of(ty) or ())


def all_of(answers: Iterable[bool | None]) -> bool | None:
    """The conjunction of three-valued answers: False wins, then None."""
    result: bool | None = True
    for answer in answers:
        if answer is False:
            return False
        if answer is None:
            result = None
    return result


# ---------------------------------------------------------------------------------------------------------------------
# Subtypes
# ---------------------------------------------------------------------------------------------------------------------


def is_base_of(base: Type, derived: Type, facts: Facts | None = None) -> bool | None:
    """Whether every value of `derived` is one of `base`.

    >>> is_base_of(TensorType(ndim=2), TensorType((2, 3), "float32"))
    True
    >>> is_base_of(TensorType((2, 4), "float32"), TensorType((2, 3), "float32"))
    False
    """
    if base is derived or isinstance(base, AnyType):
        return True
    if isinstance(derived, AnyType):
        return None
    if type(base) is not type(derived):
        return False
    return _RULES[type(base)](base, derived, facts)


def _tensor_base(base: TensorType, derived: TensorType, facts: Facts | None) -> bool | None:
    return all_of((_rank_base(base, derived), _dtype_base(base.dtype, derived.dtype), _dims_base(base, derived, facts)))


def _spread_base(base: DTensorType, derived: DTensorType, facts: Facts | None) -> bool | None:
    return all_of((_place_base(base, derived), is_base_of(base.tensor, derived.tensor, facts)))


def _place_base(base: DTensorType, derived: DTensorType) -> bool | None:
    """What is not said of the base may be anything; what is not said of the other is not known."""
    if base.mesh is not None and derived.mesh is not None and not same_mesh(base.mesh, derived.mesh):
        return False
    if None not in (base.placement, derived.placement) and base.placement != derived.placement:
        return False
    mesh_known = base.mesh is None or derived.mesh is not None
    return True if mesh_known and (base.placement is None or derived.placement is not None) else None


def _shape_base(base: ShapeType, derived: ShapeType, facts: Facts | None) -> bool | None:
    return all_of((_rank_base(base, derived), _dims_base(base, derived, facts)))


def _rank_base(base: TensorType | ShapeType, derived: TensorType | ShapeType) -> bool | None:
    if base.ndim < 0 or base.ndim == derived.ndim:
        return True
    return None if derived.ndim < 0 else False


def _dtype_base(base: str | None, derived: str | None) -> bool | None:
    if base is None or base == derived:
        return True
    return None if derived is None else False


def _dims_base(base: TensorType | ShapeType, derived: TensorType | ShapeType, facts: Facts | None) -> bool | None:
    wanted, given = dims_of(base), dims_of(derived)
    if (
        isinstance(base, TensorType)
        and isinstance(base.shape, Var)
        and isinstance(derived, TensorType)
        and base.shape is derived.shape
    ):
        return True
    if wanted is None:
        return None if isinstance(base, TensorType) and isinstance(base.shape, Var) else True
    if given is None or len(wanted) != len(given):
        return None
    return all_of(prove_equal(a, b, facts) for a, b in zip(wanted, given, strict=True))


def _scalar_base(base: PrimType, derived: PrimType, facts: Facts | None) -> bool | None:
    if base.dtype != derived.dtype or base.value is None:
        return base.dtype == derived.dtype
    if derived.value is None:
        return None
    if base.dims is not None and derived.dims is not None:
        return prove_equal(base.dims[0], derived.dims[0], facts)
    return str(base.value) == str(derived.value)  # constants: nan is itself, -0.0 is not 0.0


def _tuple_base(base: TupleType, derived: TupleType, facts: Facts | None) -> bool | None:
    if len(base.fields) != len(derived.fields):
        return False
    return all_of(is_base_of(a, b, facts) for a, b in zip(base.fields, derived.fields, strict=True))


def _func_base(base: FuncType, derived: FuncType, facts: Facts | None) -> bool | None:
    if base.pure and not derived.pure:
        return False
    if base.params is None:
        return is_base_of(base.ret, derived.ret, facts)
    if derived.params is None:
        return None
    if len(base.params) != len(derived.params):
        return False
    # The symbols of a function type are its own: the derived function must accept what the base is called with.
    match = match_types(derived.params, base.params)
    accepted = all_of((match.answer, *(prove_equal(a, b, facts) for a, b in match.pairs)))
    return all_of((accepted, is_base_of(base.ret, substitute_type(derived.ret, match.symbols), facts)))


_RULES: dict[type, Callable[[Any, Any, Facts | None], bool | None]] = {
    TensorType: _tensor_base,
    DTensorType: _spread_base,
    ShapeType: _shape_base,
    PrimType: _scalar_base,
    StringType: lambda base, derived, facts: True,
    TupleType: _tuple_base,
    FuncType: _func_base,
}


# ---------------------------------------------------------------------------------------------------------------------
# Matching
# ---------------------------------------------------------------------------------------------------------------------


@dataclass
class Match:
    """What a call binds: values of the parameters' symbols, dimensions that must be equal, and the answer without them.

    `answer` False means that kinds, ranks or dtypes differ (`reason` says how, `index` at which parameter); None that
    only a run-time check can tell.
    """

    symbols: dict[str, Dim] = field(default_factory=dict[str, Dim])
    pairs: list[tuple[Dim, Dim]] = field(default_factory=list[tuple[Dim, Dim]])
    answer: bool | None = True
    index: int = -1
    reason: str = ""

    def fail(self, index: int, answer: bool | None, reason: str) -> None:
        """Record that parameter `index` does not match, or is not known to."""
        if self.answer is True or (self.answer is None and answer is False):
            self.answer, self.index, self.reason = answer, index, reason


def match_types(params: Sequence[Type], args: Sequence[Type]) -> Match:
    """Match parameter types (whose symbols are free to bind) with argument types; both have one length.

    >>> from weft.ir.dim import symbol
    >>> match_types([TensorType((symbol("n"), 4))], [TensorType((2, 4))]).symbols
    {'n': 2}
    """
    match = Match()
    pattern: list[Dim] = []
    values: list[Dim] = []
    for index, (param, arg) in enumerate(zip(params, args, strict=True)):
        _collect(match, index, param, arg, pattern, values)
    match.symbols, match.pairs = match_dims(pattern, values)
    unbound = {name for dim in pattern for name in free_symbols(dim)} - set(match.symbols)
    # A symbol that no argument binds says nothing here: its pairs are for the callee to check.
    match.pairs = [(a, b) for a, b in match.pairs if unbound.isdisjoint(free_symbols(a))]
    return match


def _collect(match: Match, index: int, param: Type, arg: Type, pattern: list[Dim], values: list[Dim]) -> None:
    if isinstance(param, TupleType) and isinstance(arg, TupleType) and len(param.fields) == len(arg.fields):
        for a, b in zip(param.fields, arg.fields, strict=True):
            _collect(match, index, a, b, pattern, values)
        return
    if isinstance(param, DTensorType) and isinstance(arg, DTensorType):
        place = _place_base(param, arg)
        if place is not True:
            match.fail(index, place, f"expected {type_text(param)}, got {type_text(arg)}")
        _collect(match, index, param.tensor, arg.tensor, pattern, values)
        return
    if isinstance(param, (TensorType, ShapeType)) and type(param) is type(arg):
        rank = _rank_base(param, arg)  # type: ignore[arg-type]
        dtype = _dtype_base(param.dtype, arg.dtype) if isinstance(param, TensorType) else True  # type: ignore[union-attr]
        if all_of((rank, dtype)) is not True:
            match.fail(index, all_of((rank, dtype)), f"expected {type_text(param)}, got {type_text(arg)}")
        wanted, given = dims_of(param), dims_of(arg)
        if wanted is not None and given is not None and len(wanted) == len(given):
            pattern.extend(wanted)
            values.extend(given)
        elif wanted is not None and rank is True:
            match.fail(index, None, f"expected {type_text(param)}, got {type_text(arg)}")
        return
    if isinstance(param, PrimType) and isinstance(arg, PrimType) and param.dtype == arg.dtype:
        if param.dims is not None and arg.dims is not None:
            pattern.extend(param.dims)
            values.extend(arg.dims)
            return
    answer = is_base_of(param, arg)
    if answer is not True:
        match.fail(index, answer, f"expected {type_text(param)}, got {type_text(arg)}")


# ---------------------------------------------------------------------------------------------------------------------
# Common bases, substitution, erasure
# ---------------------------------------------------------------------------------------------------------------------


def common_base(a: Type, b: Type) -> Type:
    """The most precise type that both types are known to be subtypes of (the type of an If).

    >>> type_text(common_base(TensorType((2, 4), "float32"), TensorType((3, 4), "float32")))
    'R.Tensor(dtype="float32", ndim=2)'
    """
    if a is b or is_base_of(a, b) is True:
        return a
    if is_base_of(b, a) is True:
        return b
    if type(a) is not type(b):
        return AnyType()
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        device = a.vdevice if structural_equal(a.vdevice, b.vdevice) else None
        dims = _common_dims(a, b)
        return TensorType(dims, a.dtype if a.dtype == b.dtype else None, a.ndim if a.ndim == b.ndim else -1, device)
    if isinstance(a, DTensorType) and isinstance(b, DTensorType):
        tensor = common_base(a.tensor, b.tensor)
        assert isinstance(tensor, TensorType)
        if not same_mesh(a.mesh, b.mesh):
            return DTensorType(tensor)
        kept = a.placement == b.placement and tensor.ndim == a.tensor.ndim
        return DTensorType(tensor, a.mesh, a.placement if kept else None)
    if isinstance(a, ShapeType) and isinstance(b, ShapeType):
        return ShapeType(_common_dims(a, b), a.ndim if a.ndim == b.ndim else -1)
    if isinstance(a, PrimType) and isinstance(b, PrimType) and a.dtype == b.dtype:
        return PrimType(a.dtype)
    if isinstance(a, TupleType) and isinstance(b, TupleType) and len(a.fields) == len(b.fields):
        return TupleType(tuple(common_base(x, y) for x, y in zip(a.fields, b.fields, strict=True)))
    if isinstance(a, FuncType) and isinstance(b, FuncType):
        return FuncType(None, common_base(a.ret, b.ret), a.pure and b.pure)
    return AnyType()


def _common_dims(a: TensorType | ShapeType, b: TensorType | ShapeType) -> tuple[Dim, ...] | None:
    left, right = dims_of(a), dims_of(b)
    if left is None or right is None or len(left) != len(right):
        return None
    return left if all(same(x, y) or prove_equal(x, y) for x, y in zip(left, right, strict=True)) else None


def substitute_type(ty: Type, symbols: Mapping[str, Dim]) -> Type:
    """The type with named symbols replaced."""
    return _map_dims(ty, lambda dims: tuple(substitute(dim, symbols) for dim in dims)) if symbols else ty


def erase(ty: Type, symbols: set[str] | frozenset[str], variables: Iterable[Var] = ()) -> Type:
    """The type without shapes that mention other symbols or shape variables than the given (rank, dtype stay)."""
    visible = set(variables)

    def keep(dims: tuple[Dim, ...]) -> tuple[Dim, ...] | None:
        return dims if all(set(free_symbols(dim)) <= symbols for dim in dims) else None

    return _map_dims(ty, keep, lambda var: var if var in visible else None)


def unnamed(ty: Type, variables: Iterable[Var]) -> Type:
    """The type without the names of shape variables: the sizes that they stand for, their rank where these are unknown.

    >>> from weft.ir.dim import symbol
    >>> shape = Var("s", ShapeType((symbol("n"), 4)))
    >>> type_text(unnamed(TensorType(shape, "float32"), [shape]))
    'R.Tensor((n, 4), "float32")'
    """
    hidden = set(variables)
    return _map_dims(ty, lambda dims: dims, lambda var: dims_of(var.ty) if var in hidden else var) if hidden else ty


def _map_dims(
    ty: Type,
    dims: Callable[[tuple[Dim, ...]], tuple[Dim, ...] | None],
    variable: Callable[[Var], Var | tuple[Dim, ...] | None] = lambda var: var,
) -> Type:
    """The type with the dims of every tensor and shape in it mapped; itself when nothing changes."""
    if isinstance(ty, TensorType) and ty.shape is not None:
        new = variable(ty.shape) if isinstance(ty.shape, Var) else dims(ty.shape)
        return ty if _unchanged(new, ty.shape) else replace(ty, shape=new)
    if isinstance(ty, ShapeType) and ty.dims is not None:
        new = dims(ty.dims)
        return ty if _unchanged(new, ty.dims) else replace(ty, dims=new)
    if isinstance(ty, PrimType) and ty.dims is not None:
        new = dims(ty.dims)
        return ty if _unchanged(new, ty.dims) else replace(ty, value=None if new is None else new[0])
    if isinstance(ty, DTensorType):
        return replace(ty, tensor=_map_dims(ty.tensor, dims, variable))
    if isinstance(ty, TupleType):
        fields = tuple(_map_dims(part, dims, variable) for part in ty.fields)
        return ty if _unchanged(fields, ty.fields) else replace(ty, fields=fields)
    # The symbols of a function type are its own: nothing outside replaces or hides them.
    return ty


def _unchanged(new: object, old: object) -> bool:
    if is_tuple(new) and is_tuple(old):
        return len(new) == len(old) and all(
            a is b or (a.__class__ is int and a == b) for a, b in zip(new, old, strict=True)
        )
    return new is old


def type_symbols(ty: Type) -> set[str]:
    """The names of the symbols that occur in a type."""
    if isinstance(ty, (TensorType, DTensorType, ShapeType, PrimType)):
        return {name for dim in dims_of(ty) or () for name in free_symbols(dim)}
    if isinstance(ty, TupleType):
        return set[str]().union(*map(type_symbols, ty.fields))
    return set()
