"""Matching of attention: which nest of a chain is which part of a softmax between two products."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.tensor import (
    Binary,
    Buffer,
    BufferLoad,
    Cast,
    Extent,
    FloatImm,
    PrimCall,
    PrimExpr,
    PrimVar,
    Select,
)
from weft.support.records import dataclass
from weft.transform.analysis.access_pattern import Nest
from weft.transform.autoschedule.rules.axes import Axis, Chains
from weft.transform.autoschedule.rules.row_fusion import Member
from weft.transform.autoschedule.rules.strides import loads_in, same_place, uses

__all__ = ["INFINITY", "Attention", "Role", "attention_of", "factors_of", "is_number", "other_variable", "scores_of"]

INFINITY = float("inf")


@dataclass(frozen=True)
class Role:
    """What a nest of the chain is for: scores, score_map, row_max, exp, row_sum, probs, product or after.

    `key` is its variable of the keys.
    """

    name: str
    nest: Nest
    number: int
    key: PrimVar | None = None


@dataclass
class Attention:
    """A chain that is attention: the roles of its nests, its axes, and which axis of a buffer is that of the keys.

    `zeroes_masked`: masked scores (-inf) have probability 0 whatever the maximum is.
    """

    roles: list[Role]
    own: set[Buffer]
    outer: Sequence[Axis]
    row: Axis
    keys: Extent
    key_axes: dict[Buffer, int]
    zeroes_masked: bool = False

    def get(self, name: str) -> Role | None:
        """The nest with a role that one nest has; None where there is none."""
        return next((role for role in self.roles if role.name == name), None)

    def buffer(self, name: str) -> Buffer | None:
        """What the nest with a role writes."""
        role = self.get(name)
        return None if role is None else role.nest.store.buffer

    def pays(self, size: Chains) -> bool:
        """Whether there are rows enough for copies of all keys, and more of them or of keys than one block has."""
        extent = self.row.extent
        if isinstance(extent, int) and extent < size.knobs.attention_rows:
            return False
        if not isinstance(extent, int) or not isinstance(self.keys, int):
            return True
        return self.keys > 0 and (extent > size.rows or self.keys > size.keys)


# Matching -----------------------------------------------------------------------------------------------------------


def attention_of(chain: Sequence[Member], own: set[Buffer], outer: Sequence[Axis], row: Axis) -> Attention | None:
    """The chain as attention, or None."""
    first = chain[0].nest
    key = other_variable(first, 0, (*outer, row))
    if key is None or chain[0].condition is not None or first.store.buffer not in own or not _starts_at(first, 0.0):
        return None
    place = first.store.indices.index(key)
    roles = [Role("scores", first, 0, key)]
    found = Attention(roles, own, outer, row, first.extents[key], {first.store.buffer: place})
    filled: set[Buffer] = set()
    for number, member in enumerate(chain[1:], 1):
        if member.condition is not None:  # an empty sum
            if member.nest.reduction or not is_number(member.nest.store.value, 0.0):
                return None
            filled.add(member.nest.store.buffer)
            continue
        role = _role_of(found, member.nest, number)
        if role is None:
            return None
        found.roles.append(role)
    return found if _is_whole(found, filled) else None


def _is_whole(found: Attention, filled: set[Buffer]) -> bool:
    """Whether all parts are there, and the buffers that only blocks have are used in blocks alone."""
    row_max, row_sum, product = (found.buffer(name) for name in ("row_max", "row_sum", "product"))
    if row_max is None or row_sum is None or product is None or not {row_max, row_sum} <= found.own:
        return False
    if filled - {row_sum, product} or _factors(found, "scores") is None or _factors(found, "product") is None:
        return False
    written = {role.nest.store.buffer for role in found.roles}
    inputs = [load.buffer for name in ("scores", "product") for load in loads_in(factors_of(found, name)[1])]
    return not written & set(inputs) and product.dtype == row_max.dtype


def other_variable(nest: Nest, number: int, axes: Sequence[Axis]) -> PrimVar | None:
    """The one variable of what a nest stores that is none of the axes."""
    known = {axis.variables[number] for axis in axes}
    others = [var for var in nest.spatial if var not in known]
    once = len(others) == 1 and sum(index is others[0] for index in nest.store.indices) == 1
    return others[0] if once else None


def _role_of(found: Attention, nest: Nest, number: int) -> Role | None:
    loads = [load for load in loads_in(nest.store.value) if load.buffer in found.key_axes]
    if not loads:
        return Role("after", nest, number) if found.get("product") is not None and not nest.reduction else None
    keys = list(dict.fromkeys(load.indices[found.key_axes[load.buffer]] for load in loads))
    key, buffer = keys[0], nest.store.buffer
    if len(keys) != 1 or not isinstance(key, PrimVar) or any(load.dtype != buffer.dtype for load in loads):
        return None
    if key in nest.reduction:
        name = _role_of_reduction(found, nest, number, loads)
        return None if name is None else Role(name, nest, number, key)
    places = [k for k, index in enumerate(nest.store.indices) if index is key]
    if nest.reduction or len(places) != 1 or buffer not in found.own or found.get("product") is not None:
        return None
    if found.key_axes.setdefault(buffer, places[0]) != places[0]:
        return None
    name = _role_of_score_map(found, nest)
    return None if name is None else Role(name, nest, number, key)


def _role_of_score_map(found: Attention, nest: Nest) -> str | None:
    """exp: the exponential of scores less their maximum; probs: that by its sum; else a map of scores."""
    value = nest.store.value
    rows = {load.buffer for load in loads_in(value)} - set(found.key_axes)
    if rows & (found.own - {found.buffer("row_max"), found.buffer("row_sum")}):
        return None
    if found.get("row_max") is None:
        return "score_map"
    if found.get("exp") is None:
        zeroes_masked = _zeroes_masked(found, value)
        found.zeroes_masked = bool(zeroes_masked)
        return None if zeroes_masked is None else "exp"
    return "probs" if _is_quotient(found, value) and found.get("probs") is None else None


def _zeroes_masked(found: Attention, value: PrimExpr) -> bool | None:
    """Whether exponentials are 0 for scores of -inf (exp of the difference otherwise); None for any other value."""
    scores, zeroes_masked = scores_of(found), isinstance(value, Select)
    if isinstance(value, Select):
        test = value.condition
        if not is_number(value.true_value, 0.0) or not isinstance(test, Binary) or test.kind != "eq":
            return None
        if not is_number(test.b, -INFINITY) or not _is_load(test.a, scores):
            return None
        value = value.false_value
    power = value.args[0] if isinstance(value, PrimCall) and value.op == "exp" else None
    if not isinstance(power, Binary) or power.kind != "sub":
        return None
    return zeroes_masked if _is_load(power.a, scores) and _is_load(power.b, found.buffer("row_max")) else None


def scores_of(found: Attention) -> Buffer | None:
    """What the maximum is looked for in."""
    role = found.get("row_max")
    loads = () if role is None else loads_in(role.nest.store.value)
    return next((load.buffer for load in loads if load.buffer in found.key_axes), None)


def _is_load(value: object, buffer: Buffer | None) -> bool:
    return isinstance(value, BufferLoad) and value.buffer is buffer


def is_number(value: object, number: float) -> bool:
    """Whether a value is this constant."""
    return isinstance(value, FloatImm) and value.value == number


def _is_quotient(found: Attention, value: PrimExpr) -> bool:
    """p / l, or p * (1 / l)."""
    if not isinstance(value, Binary) or not _is_load(value.a, found.buffer("exp")):
        return False
    divisor = value.b
    if value.kind == "mul" and isinstance(divisor, Binary) and divisor.kind == "div" and is_number(divisor.a, 1.0):
        divisor = divisor.b
    elif value.kind != "div":
        return False
    return _is_load(divisor, found.buffer("row_sum"))


def _role_of_reduction(found: Attention, nest: Nest, number: int, loads: Sequence[BufferLoad]) -> str | None:
    value, store = nest.store.value, nest.store
    if not isinstance(value, Binary) or len(nest.reduction) != 1 or len(loads) != 1:
        return None
    axes = (*found.outer, found.row)
    if nest.is_contraction:
        probs = found.buffer("probs") or found.buffer("exp")
        right = loads[0].buffer is probs and found.get("product") is None and _starts_at(nest, 0.0)
        return "product" if right and other_variable(nest, number, axes) is not None else None
    own = [part for part in (value.a, value.b) if isinstance(part, BufferLoad) and same_place(part, store)]
    if len(own) != 1 or not any(part is loads[0] for part in (value.a, value.b)) or len(nest.spatial) != len(axes):
        return None
    if value.kind == "max" and found.get("row_max") is None and _starts_at(nest, -INFINITY):
        return "row_max"
    is_sum = value.kind == "add" and found.get("row_sum") is None and _starts_at(nest, 0.0)
    return "row_sum" if is_sum and _is_load(loads[0], found.buffer("exp")) else None


def _starts_at(nest: Nest, value: float) -> bool:
    return nest.init is not None and is_number(nest.init.value, value)


def _factors(found: Attention, name: str) -> tuple[PrimExpr, PrimExpr] | None:
    """What a product multiplies: the factor with rows, the factor without; None where it has another form."""
    role = found.get(name)
    if role is None or role.key is None or len(role.nest.reduction) != 1:
        return None
    store, row = role.nest.store, found.row.variables[role.number]
    value = store.value
    if not isinstance(value, Binary) or value.kind != "add":
        return None
    products = [part for part in (value.a, value.b) if isinstance(part, Binary) and part.kind == "mul"]
    own = [part for part in (value.a, value.b) if isinstance(part, BufferLoad) and same_place(part, store)]
    if len(products) != 1 or len(own) != 1:
        return None
    for rows, keys in ((products[0].a, products[0].b), (products[0].b, products[0].a)):
        plain = all(isinstance(_uncast(part), BufferLoad) for part in (rows, keys))
        if plain and uses(rows, row) and not uses(keys, row) and uses(keys, role.key):
            return None if name == "scores" and uses(rows, role.key) else (rows, keys)
    return None


def factors_of(found: Attention, name: str) -> tuple[PrimExpr, PrimExpr]:
    """What a product of the chain multiplies: the factor with rows, the factor without."""
    factors = _factors(found, name)
    assert factors is not None
    return factors


def _uncast(value: PrimExpr) -> PrimExpr:
    while isinstance(value, Cast):
        value = value.value
    return value
