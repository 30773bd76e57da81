"""Attention: a chain of two products with a softmax between them, over blocks of rows and of keys.

    c[s, t] = q[s, :] . k[t, :]                   for blocks of keys:  k, turned, and v copied side by side
    x[s, t] = anything of c[s, t]                 for blocks of rows:
    m[s]    = max(x[s, :])                            m, l, y = -inf, 0, 0
    p[s, t] = exp(x[s, t] - m[s])                     for blocks of keys:
    l[s]    = sum(p[s, :])                                x[s, t] = anything of q[s, :] . k[t, :]
    y[s, d] = p[s, :] . v[:, d]                           n[s] = max(m[s], max(x[s, :]))
                                                          f[s] = exp(m[s] - n[s]);  m[s] = n[s]
                                                          p[s, t] = exp(x[s, t] - n[s])
                                                          l[s] = l[s] * f[s] + sum(p[s, :])
                                                          y[s, d] = y[s, d] * f[s] + p[s, :] . v[:, d]

Sums that go on are scaled to the greatest value so far (online softmax), so that scores are never stored for more than
a block. Weights that are divided by l before the second product are divided by what l is so far, and y is scaled by
the quotient of both. Keys and values are copied once for all rows, into float types that vectors sum in.

Values that are hidden (-inf) have weight 0. While a row has seen nothing else, its m is -inf; where the kernel takes
exp(x - m) as it is, such a row is nan in the end, as it would be at once. Chains of keys that a condition on the
positions hides from all rows of a block (causal masks, windows) are left out, unless they have a value that is not
finite: 0 * nan and 0 * inf are nan, and belong to the sum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from weft.dtypes import storage
from weft.ir import FrozenMap, substitute, walk
from weft.ir.kernel.prim import as_expr, binary, const
from weft.ir.tensor import (
    AllocBuffer,
    Binary,
    Buffer,
    BufferLoad,
    BufferStore,
    Cast,
    Extent,
    FloatImm,
    For,
    IfThenElse,
    PrimCall,
    PrimExpr,
    PrimVar,
    Select,
    SeqStmt,
    Stmt,
)
from weft.transform.analysis.access_pattern import Nest
from weft.transform.autoschedule.rules.axes import CHAIN, Axis, Chains, Cut, in_part, in_place, over_rows, small_buffer
from weft.transform.autoschedule.rules.loops import INDEX, block_nest, minus, plus, times, vector_loop
from weft.transform.autoschedule.rules.row_fusion import Member
from weft.transform.autoschedule.rules.strides import difference_along, loads_in, same_place, uses
from weft.transform.fusion.fuse_tir import copied

__all__ = ["Attention", "attention_of"]

_INFINITY = float("inf")


@dataclass(frozen=True)
class _Role:
    """What a nest of the chain is for: scores, map, greatest, powers, total, weights, product or after.

    `key` is its variable of the keys.
    """

    name: str
    nest: Nest
    number: int
    key: PrimVar | None = None


@dataclass
class Attention:
    """A chain that was recognised: the roles of its nests, its axes, and where buffers have the keys.

    `hides` says whether hidden scores have weight 0 whatever the greatest one is.
    """

    roles: list[_Role]
    own: set[Buffer]
    outer: Sequence[Axis]
    row: Axis
    keys: Extent
    wide: dict[Buffer, int]
    hides: bool = False

    def get(self, name: str) -> _Role | None:
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

    def build(self, loops: Sequence[PrimVar], size: Chains) -> Stmt:
        """What is done for one value of the outer loops."""
        return _Builder(self, loops, size).build()


# Recognition --------------------------------------------------------------------------------------------------------


def attention_of(chain: Sequence[Member], own: set[Buffer], outer: Sequence[Axis], row: Axis) -> Attention | None:
    """The chain as attention, or None."""
    first = chain[0].nest
    key = _other_variable(first, 0, (*outer, row))
    if key is None or chain[0].condition is not None or first.store.buffer not in own or not _starts_at(first, 0.0):
        return None
    place = first.store.indices.index(key)
    roles = [_Role("scores", first, 0, key)]
    found = Attention(roles, own, outer, row, first.extents[key], {first.store.buffer: place})
    filled: set[Buffer] = set()
    for number, member in enumerate(chain[1:], 1):
        if member.condition is not None:  # what a sum of nothing is
            if member.nest.reduction or not _is_number(member.nest.store.value, 0.0):
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
    greatest, total, product = (found.buffer(name) for name in ("greatest", "total", "product"))
    if greatest is None or total is None or product is None or not {greatest, total} <= found.own:
        return False
    if filled - {total, product} or _factors(found, "scores") is None or _factors(found, "product") is None:
        return False
    written = {role.nest.store.buffer for role in found.roles}
    inputs = [load.buffer for name in ("scores", "product") for load in loads_in(_factors_of(found, name)[1])]
    return not written & set(inputs) and product.dtype == greatest.dtype


def _other_variable(nest: Nest, number: int, axes: Sequence[Axis]) -> PrimVar | None:
    """The one variable of what a nest stores that is none of the axes."""
    known = {axis.variables[number] for axis in axes}
    others = [var for var in nest.spatial if var not in known]
    once = len(others) == 1 and sum(index is others[0] for index in nest.store.indices) == 1
    return others[0] if once else None


def _role_of(found: Attention, nest: Nest, number: int) -> _Role | None:
    loads = [load for load in loads_in(nest.store.value) if load.buffer in found.wide]
    if not loads:
        return _Role("after", nest, number) if found.get("product") is not None and not nest.reduction else None
    keys = list(dict.fromkeys(load.indices[found.wide[load.buffer]] for load in loads))
    key, buffer = keys[0], nest.store.buffer
    if len(keys) != 1 or not isinstance(key, PrimVar) or any(load.dtype != buffer.dtype for load in loads):
        return None
    if key in nest.reduction:
        name = _role_of_reduction(found, nest, number, loads)
        return None if name is None else _Role(name, nest, number, key)
    places = [k for k, index in enumerate(nest.store.indices) if index is key]
    if nest.reduction or len(places) != 1 or buffer not in found.own or found.get("product") is not None:
        return None
    if found.wide.setdefault(buffer, places[0]) != places[0]:
        return None
    name = _role_of_map(found, nest)
    return None if name is None else _Role(name, nest, number, key)


def _role_of_map(found: Attention, nest: Nest) -> str | None:
    """Powers: the exponential of scores less the greatest; weights: powers by their total; else a map of scores."""
    value = nest.store.value
    rows = {load.buffer for load in loads_in(value)} - set(found.wide)
    if rows & (found.own - {found.buffer("greatest"), found.buffer("total")}):
        return None
    if found.get("greatest") is None:
        return "map"
    if found.get("powers") is None:
        hides = _hides(found, value)
        found.hides = bool(hides)
        return None if hides is None else "powers"
    return "weights" if _is_quotient(found, value) and found.get("weights") is None else None


def _hides(found: Attention, value: PrimExpr) -> bool | None:
    """Whether powers are 0 for scores of -inf (exp of the difference otherwise); None for any other value."""
    scores, hides = _scores(found), isinstance(value, Select)
    if isinstance(value, Select):
        test = value.condition
        if not _is_number(value.true_value, 0.0) or not isinstance(test, Binary) or test.kind != "eq":
            return None
        if not _is_number(test.b, -_INFINITY) or not _is_load(test.a, scores):
            return None
        value = value.false_value
    power = value.args[0] if isinstance(value, PrimCall) and value.op == "exp" else None
    if not isinstance(power, Binary) or power.kind != "sub":
        return None
    return hides if _is_load(power.a, scores) and _is_load(power.b, found.buffer("greatest")) else None


def _scores(found: Attention) -> Buffer | None:
    """What the greatest values are looked for in."""
    role = found.get("greatest")
    loads = () if role is None else loads_in(role.nest.store.value)
    return next((load.buffer for load in loads if load.buffer in found.wide), None)


def _is_load(value: object, buffer: Buffer | None) -> bool:
    return isinstance(value, BufferLoad) and value.buffer is buffer


def _is_number(value: object, number: float) -> bool:
    return isinstance(value, FloatImm) and value.value == number


def _is_quotient(found: Attention, value: PrimExpr) -> bool:
    """p / l, or p * (1 / l)."""
    if not isinstance(value, Binary) or not _is_load(value.a, found.buffer("powers")):
        return False
    divisor = value.b
    if value.kind == "mul" and isinstance(divisor, Binary) and divisor.kind == "div" and _is_number(divisor.a, 1.0):
        divisor = divisor.b
    elif value.kind != "div":
        return False
    return _is_load(divisor, found.buffer("total"))


def _role_of_reduction(found: Attention, nest: Nest, number: int, loads: Sequence[BufferLoad]) -> str | None:
    value, store = nest.store.value, nest.store
    if not isinstance(value, Binary) or len(nest.reduction) != 1 or len(loads) != 1:
        return None
    axes = (*found.outer, found.row)
    if nest.is_contraction:
        weights = found.buffer("weights") or found.buffer("powers")
        right = loads[0].buffer is weights and found.get("product") is None and _starts_at(nest, 0.0)
        return "product" if right and _other_variable(nest, number, axes) is not None else None
    own = [part for part in (value.a, value.b) if isinstance(part, BufferLoad) and same_place(part, store)]
    if len(own) != 1 or not any(part is loads[0] for part in (value.a, value.b)) or len(nest.spatial) != len(axes):
        return None
    if value.kind == "max" and found.get("greatest") is None and _starts_at(nest, -_INFINITY):
        return "greatest"
    sums = value.kind == "add" and found.get("total") is None and _starts_at(nest, 0.0)
    return "total" if sums and _is_load(loads[0], found.buffer("powers")) else None


def _starts_at(nest: Nest, value: float) -> bool:
    return nest.init is not None and _is_number(nest.init.value, value)


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


def _factors_of(found: Attention, name: str) -> tuple[PrimExpr, PrimExpr]:
    factors = _factors(found, name)
    assert factors is not None
    return factors


def _uncast(value: PrimExpr) -> PrimExpr:
    while isinstance(value, Cast):
        value = value.value
    return value


# What is visible ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Limit:
    """Keys are visible below `end` of a row (from `end` on where `is_first`), which grows with the row."""

    end: PrimExpr
    is_first: bool


def _limits(found: Attention) -> tuple[_Role, list[_Limit]] | None:
    """The last map of scores and the limits that its condition sets; None where there are none."""
    scores = _scores(found)
    maps = [role for role in found.roles if role.name == "map" and role.nest.store.buffer is scores]
    role = maps[-1] if maps else None
    value = None if role is None else role.nest.store.value
    if role is None or role.key is None or not isinstance(value, Select):
        return None
    if not _is_number(value.false_value, -_INFINITY):
        return None
    row = found.row.variables[role.number]
    limits = [limit for test in _terms(value.condition) if (limit := _limit(test, role.key, row)) is not None]
    return (role, limits) if limits else None


def _terms(test: PrimExpr) -> Iterator[PrimExpr]:
    if isinstance(test, Binary) and test.kind == "and":
        yield from _terms(test.a)
        yield from _terms(test.b)
    else:
        yield test


_TURNED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def _limit(test: PrimExpr, key: PrimVar, row: PrimVar) -> _Limit | None:
    if not isinstance(test, Binary) or test.kind not in _TURNED:
        return None
    kind, end = (test.kind, test.b) if test.a is key else (_TURNED[test.kind], test.a)
    if key not in (test.a, test.b) or uses(end, key) or any(True for _ in loads_in(end)):
        return None
    step = difference_along(end, row)
    if step is None or step < 0:
        return None
    return _Limit(plus(end, 1) if kind in ("le", "gt") else end, kind in ("gt", "ge"))


# Chains -------------------------------------------------------------------------------------------------------------


class _Builder:
    """The loops over blocks; each statement in them is a nest that other rules turn into tiles and vectors."""

    def __init__(self, found: Attention, loops: Sequence[PrimVar], size: Chains) -> None:
        self.found, self.loops, self.rows = found, loops, size.rows
        self.line_bytes = size.machine.line_bytes
        self.limits = _limits(found)
        # Smaller blocks where some are left out: those that a limit goes through are done whole.
        self.size = _block_of_keys(found.keys, size.keys if self.limits is None else max(1, size.keys // 2))
        self.dtype = found.roles[0].nest.store.buffer.dtype
        self.depth = self._extent("product", self._variable("product"))
        (self.terms,) = (found.roles[0].nest.extents[var] for var in found.roles[0].nest.reduction)
        blocks = _ceil(found.keys, self.size)
        self.blocks = blocks
        self.value = Buffer("values", (blocks, self.size, self._line(self.depth)), self.dtype)
        self.wild = Buffer("wild", (blocks,), self.dtype)
        rows, columns = size.tile(self.dtype)
        self.tile = rows if self._ignores(lambda role: found.row.variables[role.number]) else 1
        self.columns = columns if self._ignores(lambda role: role.key) else 1
        self.line = self._line(-(-self.size // self.columns) * self.columns)
        self.key = Buffer("keys", (blocks, self.terms, self.line), self.dtype)

    def build(self) -> Stmt:
        """Copies of keys and values, then the blocks of rows."""
        buffers = (self.key, self.value) if self.limits is None else (self.key, self.value, self.wild)
        rows = over_rows(self.found.row, self.rows, self._rows)
        return SeqStmt((*map(AllocBuffer, buffers), self._over_keys(self._copies), *rows))

    # Sizes and places

    def _line(self, extent: Extent) -> Extent:
        """The elements from one row of a copy to the next: an odd number of cache lines, so that columns spread over
        all of the cache."""
        if not isinstance(extent, int):
            return extent
        line = self.line_bytes // storage(self.dtype).itemsize
        return (-(-extent // line) | 1) * line

    def _variable(self, name: str) -> PrimVar:
        role = self.found.get(name)
        assert role is not None
        var = _other_variable(role.nest, role.number, (*self.found.outer, self.found.row))
        assert var is not None
        return var

    def _extent(self, name: str, var: PrimVar) -> Extent:
        role = self.found.get(name)
        assert role is not None
        return role.nest.extents[var]

    def _gone(self, number: int) -> dict[PrimVar, PrimExpr]:
        """The loops outside for the outer variables of a nest."""
        return {axis.variables[number]: loop for axis, loop in zip(self.found.outer, self.loops, strict=True)}

    def _ignores(self, variable: Callable[[_Role], PrimVar | None]) -> bool:
        """Whether maps of scores use an axis for nothing but scores, so that they may go beyond its end."""
        for role in self.found.roles:
            var = variable(role)
            loads = [load for load in loads_in(role.nest.store.value) if load.buffer not in self.found.wide]
            if role.name == "map" and var is not None and any(uses(x, var) for load in loads for x in load.indices):
                return False
        return True

    def columns_of(self, count: Extent) -> Extent:
        """Columns of products with so many keys: whole tiles, where their number is not known."""
        if isinstance(count, int) or self.columns == 1:
            return count
        return binary("mul", as_expr(_ceil(count, self.columns), INDEX), const(self.columns, INDEX))

    def _over_keys(self, body: Callable[[PrimVar, PrimExpr, Extent], Stmt]) -> Stmt:
        """A loop over the blocks of keys: `body(block, first key, how many)`."""
        index, extent = PrimVar("key_block", INDEX), self.found.keys
        start = as_expr(times(index, self.size), INDEX)
        count: Extent = self.size
        if not isinstance(extent, int) or extent % self.size:
            count = binary("min", binary("sub", as_expr(extent, INDEX), start), const(self.size, INDEX))
        return For(index, 0, self.blocks, body(index, start, count), annotations=FrozenMap({CHAIN: True}))

    # Copies

    def _copies(self, block: PrimVar, start: PrimExpr, count: Extent) -> Stmt:
        key, k = PrimVar("vt", INDEX), PrimVar("vk", INDEX)
        scores, product = self.found.get("scores"), self.found.get("product")
        assert scores is not None
        assert product is not None
        assert scores.key is not None
        assert product.key is not None
        here = {scores.key: plus(start, key), scores.nest.reduction[0]: k, **self._gone(0)}
        value = substitute(_factors_of(self.found, "scores")[1], here)
        parts = [block_nest("keys", [(key, count), (k, self.terms)], [], BufferStore(self.key, value, (block, k, key)))]
        if not isinstance(count, int) and self.columns > 1:
            parts.insert(0, self._zeros(block, count))
        row, d = PrimVar("vt", INDEX), PrimVar("vd", INDEX)
        here = {product.key: plus(start, row), self._variable("product"): d, **self._gone(product.number)}
        value = substitute(_factors_of(self.found, "product")[1], here)
        copy = BufferStore(self.value, value, (block, row, d))
        parts.append(block_nest("values", [(row, count), (d, self.depth)], [], copy))
        if self.limits is not None:
            parts.append(self._wildness(block, count))
        return SeqStmt(tuple(parts))

    def _zeros(self, block: PrimVar, count: Extent) -> Stmt:
        """Zeros in the last tile of keys, where that is not full."""
        k, columns = PrimVar("k", INDEX), const(self.columns, INDEX)
        done = times(binary("floordiv", as_expr(count, INDEX), columns), self.columns)
        zero = const(0.0, self.dtype)
        row = vector_loop(done, self.columns, lambda j: BufferStore(self.key, zero, (block, k, j)))
        clear = For(k, 0, self.terms, row)
        rest = binary("floormod", as_expr(count, INDEX), columns)
        return IfThenElse(binary("gt", rest, const(0, INDEX)), clear, None)

    def _wildness(self, block: PrimVar, count: Extent) -> Stmt:
        """0 where all values of a block are finite, else nan."""
        row, d, zero = PrimVar("vt", INDEX), PrimVar("vd", INDEX), const(0.0, self.dtype)
        sums = BufferLoad(self.wild, (block,))
        term = binary("mul", BufferLoad(self.value, (block, row, d)), zero)
        store = BufferStore(self.wild, binary("add", sums, term), (block,))
        return block_nest("wild", [], [(row, count), (d, self.depth)], store, BufferStore(self.wild, zero, (block,)))

    # Rows

    def _rows(self, start: PrimExpr, count: Extent, size: int) -> Stmt:
        rows = _Rows(self, start, count, size, 1 if isinstance(count, int) else self.tile)
        stmt = rows.build()
        return _Rows(self, start, count, size, 1).build() if rows.is_apart else stmt


class _Rows:
    """One block of rows: `count` from `start` on, `size` at most.

    Products of an unknown number of rows go in whole tiles: what stands beyond the last row are zeros.
    """

    def __init__(self, whole: _Builder, start: PrimExpr, count: Extent, size: int, tile: int) -> None:
        self.whole, self.found, self.start, self.count, self.tile = whole, whole.found, start, count, tile
        found, dtype = whole.found, whole.dtype
        self.padded: Extent = count
        self.is_apart = False
        if tile > 1:
            self.padded = binary("mul", as_expr(_ceil(count, tile), INDEX), const(tile, INDEX))
            size = -(-size // tile) * tile
        self.query = Buffer("queries", (size, whole.terms), dtype)
        self.small = {
            buffer: small_buffer(buffer, found.outer, [(found.row.places[buffer], size)])
            for buffer in found.own if buffer not in found.wide
        }  # fmt: skip
        self.wide = {
            buffer: small_buffer(
                buffer, found.outer, [(found.row.places[buffer], size), (place, whole.line)]
            )
            for buffer, place in found.wide.items()
        }  # fmt: skip
        product = self._role("product")
        self.target = product.nest.store.buffer
        self.sums = Buffer(self.target.name, (size, whole.depth), dtype)
        self.greatest, self.total = (self.small[self._role(name).nest.store.buffer] for name in ("greatest", "total"))
        self.newest, self.factor, self.part, self.scale, self.divisor = (
            Buffer(name, (size,), dtype) for name in ("newest", "factor", "part_of_total", "scale", "divisor")
        )
        self.reference = self.newest if found.hides else Buffer("reference", (size,), dtype)

    def _role(self, name: str) -> _Role:
        role = self.found.get(name)
        assert role is not None
        return role

    def build(self) -> Stmt:
        """Start, all blocks of keys, what becomes of the sums."""
        k, row = PrimVar("vk", INDEX), PrimVar("vs", INDEX)
        nest, whole = self._role("scores").nest, self.whole
        here = {self.found.row.variables[0]: plus(self.start, row), nest.reduction[0]: k, **whole._gone(0)}
        value = substitute(_factors_of(self.found, "scores")[0], here)
        copy = BufferStore(self.query, value, (row, k))
        body: list[Stmt] = [block_nest("queries", [(row, self.count), (k, whole.terms)], [], copy)]
        if self.tile > 1:
            beyond, k = PrimVar("beyond", INDEX), PrimVar("vk", INDEX)
            zero = BufferStore(self.query, const(0.0, whole.dtype), (plus(self.count, beyond), k))
            fill, rest = block_nest("queries", [(k, whole.terms)], [], zero), minus(self.padded, self.count)
            body.append(For(beyond, 0, rest, fill, annotations=FrozenMap({CHAIN: True})))
        if isinstance(whole.blocks, int):
            body.append(self._all_keys(whole.size) if whole.blocks == 1 else self._blocks_of_keys())
        else:
            keys = as_expr(self.found.keys, INDEX)
            few = binary("le", keys, const(whole.size, INDEX))
            count = binary("min", keys, const(whole.size, INDEX))
            at_once = copied(self._all_keys(count), {}, lambda name: name)
            body.append(IfThenElse(few, at_once, self._blocks_of_keys()))
        body.extend(self._after())
        used = {part for stmt in body for part in walk(stmt) if isinstance(part, Buffer)}
        kept = [buffer for buffer in (self.query, self.sums, *self.small.values()) if buffer in used]
        return SeqStmt((*map(AllocBuffer, sorted(kept, key=lambda buffer: buffer.name)), *body))

    def _each_row(self, buffer: Buffer, value: Callable[..., PrimExpr], *operands: Buffer) -> Stmt:
        """A value for each row, made of those of operands."""
        row = PrimVar("vs", INDEX)
        store = BufferStore(buffer, value(*(BufferLoad(operand, (row,)) for operand in operands)), (row,))
        return block_nest(buffer.name, [(row, self.count)], [], store)

    def _each_sum(self, value: Callable[[PrimVar, PrimVar], PrimExpr], count: Extent | None = None) -> Stmt:
        row, d = PrimVar("vs", INDEX), PrimVar("vd", INDEX)
        store = BufferStore(self.sums, value(row, d), (row, d))
        rows = self.count if count is None else count
        return block_nest(self.sums.name, [(row, rows), (d, self.whole.depth)], [], store)

    def _unseen(self) -> Iterator[Stmt]:
        """Rows that saw -inf alone: nan, where there was a key at all."""
        nan, extent = const(float("nan"), self.whole.dtype), self.found.keys

        def corrected(value: PrimExpr, greatest: PrimExpr) -> PrimExpr:
            test = binary("eq", greatest, const(-_INFINITY, self.whole.dtype))
            test = test if isinstance(extent, int) else binary("and", test, binary("gt", extent, const(0, INDEX)))
            return Select(test, nan, value)

        yield self._each_sum(lambda row, d: corrected(
            BufferLoad(self.sums, (row, d)), BufferLoad(self.greatest, (row,))
        ))  # fmt: skip
        yield self._each_row(self.total, corrected, self.total, self.greatest)

    def _after(self) -> Iterator[Stmt]:
        """The nests after the products; the sums to where they belong, where others use them."""
        product = self._role("product")
        small = {**self.small, self.target: self.sums}
        if self.target not in self.found.own:
            row, d = PrimVar("vs", INDEX), PrimVar("vd", INDEX)
            row_of, d_of = self.found.row.variables[product.number], self.whole._variable("product")
            here = {row_of: plus(self.start, row), d_of: d, **self.whole._gone(product.number)}
            indices = tuple(substitute(index, here) for index in product.nest.store.indices)
            store = BufferStore(self.target, BufferLoad(self.sums, (row, d)), indices, span=product.nest.store.span)
            yield block_nest(self.target.name, [(row, self.count), (d, self.whole.depth)], [], store)
            small = self.small
        for role in self.found.roles:
            if role.name == "after":
                yield self._cut(role, small, None)

    def _cut(self, role: _Role, small: Mapping[Buffer, Buffer], keys: tuple[PrimExpr, Extent] | None) -> Stmt:
        """A nest of the chain on this block."""
        count = self.padded if role.name == "map" else self.count
        cuts = [Cut(self.found.row.variables[role.number], self.found.row.places, self.start, count)]
        if keys is not None and role.key is not None:
            start, columns = keys
            columns = self.whole.columns_of(columns) if role.name == "map" else columns
            cuts.append(Cut(role.key, self.found.wide, start, columns))
        return in_part(role.nest, self.whole._gone(role.number), cuts, small, self.found.outer)

    # Keys

    def _visible_keys(self, block: PrimVar, start: PrimExpr, count: Extent) -> Stmt:
        body = self._keys(block, start, count)
        if self.whole.limits is None:
            return body
        role, limits = self.whole.limits
        row = self.found.row.variables[role.number]
        first, last = self.start, plus(self.start, binary("sub", as_expr(self.count, INDEX), const(1, INDEX)))
        gone = self.whole._gone(role.number)
        tests: list[PrimExpr] = []
        for limit in limits:
            end = substitute(limit.end, {row: first if limit.is_first else last, **gone})
            end_of_block = plus(start, as_expr(count, INDEX))
            tests.append(binary("gt", end_of_block, end) if limit.is_first else binary("lt", start, end))
        seen = tests[0]
        for test in tests[1:]:
            seen = binary("and", seen, test)
        wild = binary("ne", BufferLoad(self.whole.wild, (block,)), const(0.0, self.whole.dtype))
        return IfThenElse(binary("or", seen, wild), body, None)

    def _blocks_of_keys(self) -> Stmt:
        """Chains of keys one after another."""
        dtype = self.whole.dtype
        body = [
            self._each_row(self.greatest, lambda: const(-_INFINITY, dtype)),
            self._each_row(self.total, lambda: const(0.0, dtype)),
            self._each_sum(lambda row, d: const(0.0, dtype), self.padded),
            self.whole._over_keys(self._visible_keys),
        ]
        return SeqStmt((*body, *(() if self.found.hides else self._unseen())))

    def _all_keys(self, count: Extent) -> Stmt:
        """The only block of keys: nothing goes on."""
        block, keys = const(0, INDEX), (const(0, INDEX), count)
        body: list[Stmt] = [self._scores(block, count)]
        for role in self.found.roles:
            if role.name in ("map", "greatest", "powers", "total", "weights"):
                body.append(self._cut(role, {**self.small, **self.wide}, keys))
        return self._with_memory([*body, self._product(block, count, goes_on=False)])

    def _with_memory(self, body: list[Stmt]) -> Stmt:
        """The statements with the memory that they alone need."""
        wide = sorted(self.wide.values(), key=lambda buffer: buffer.name)
        body = in_place(body, wide)
        used = {part for stmt in body for part in walk(stmt) if isinstance(part, Buffer)}
        self.is_apart = self.is_apart or (self.tile > 1 and sum(buffer in used for buffer in wide) > 1)
        rows = {self.newest, self.reference, self.factor, self.part, self.scale, self.divisor}
        buffers = (*wide, *sorted(rows, key=lambda buffer: buffer.name))
        return SeqStmt((*(AllocBuffer(buffer) for buffer in buffers if buffer in used), *body))

    def _keys(self, block: PrimVar, start: PrimExpr, count: Extent) -> Stmt:
        """One block of keys."""
        body: list[Stmt] = [self._scores(block, count)]
        for role in self.found.roles:
            if role.name == "map":
                body.append(self._cut(role, {**self.small, **self.wide}, (start, count)))
        body.extend(self._newest(count))
        body.extend(self._powers(start, count))
        body.append(self._each_sum(lambda row, d: binary(
            "mul", BufferLoad(self.sums, (row, d)), BufferLoad(self.factor, (row,))
        )))  # fmt: skip
        body.append(self._product(block, count))
        return self._with_memory(body)

    def _scores(self, block: PrimExpr, count: Extent) -> Stmt:
        row, key, k = PrimVar("vs", INDEX), PrimVar("vt", INDEX), PrimVar("vk", INDEX)
        buffer = self.wide[self._role("scores").nest.store.buffer]
        at = self._in_wide(self._role("scores").nest.store.buffer, row, key)
        product = binary("mul", BufferLoad(self.query, (row, k)), BufferLoad(self.whole.key, (block, k, key)))
        store = BufferStore(buffer, binary("add", BufferLoad(buffer, at), product), at)
        init = BufferStore(buffer, const(0.0, buffer.dtype), at)
        columns = self.whole.columns_of(count)
        return block_nest(buffer.name, [(row, self.padded), (key, columns)], [(k, self.whole.terms)], store, init)

    def _in_wide(self, buffer: Buffer, row: PrimExpr, key: PrimExpr) -> tuple[PrimExpr, ...]:
        """The place of a row and a key in a buffer that has both."""
        first = self.found.row.places[buffer] < self.found.wide[buffer]
        return (row, key) if first else (key, row)

    def _newest(self, count: Extent) -> Iterator[Stmt]:
        """The greatest values so far, and what the sums shrink by."""
        dtype, row, key = self.whole.dtype, PrimVar("vs", INDEX), PrimVar("vt", INDEX)
        scores = _scores(self.found)
        assert scores is not None
        load = BufferLoad(self.wide[scores], self._in_wide(scores, row, key))
        store = BufferStore(self.newest, binary("max", BufferLoad(self.newest, (row,)), load), (row,))
        init = BufferStore(self.newest, BufferLoad(self.greatest, (row,)), (row,))
        yield block_nest(self.newest.name, [(row, self.count)], [(key, count)], store, init)
        unseen = const(-_INFINITY, dtype)
        if not self.found.hides:
            yield self._each_row(self.reference, lambda newest: Select(
                binary("eq", newest, unseen), const(0.0, dtype), newest
            ), self.newest)  # fmt: skip

        def factor(before: PrimExpr, reference: PrimExpr) -> PrimExpr:
            power = PrimCall("exp", (binary("sub", before, reference),), dtype)
            return Select(binary("eq", before, unseen), const(0.0, dtype), power) if self.found.hides else power

        yield self._each_row(self.factor, factor, self.greatest, self.reference)
        yield self._each_row(self.greatest, lambda newest: newest, self.newest)

    def _powers(self, start: PrimExpr, count: Extent) -> Iterator[Stmt]:
        """Powers and their sum; with weights, these and the scale of the sums before."""
        dtype, row, key = self.whole.dtype, PrimVar("vs", INDEX), PrimVar("vt", INDEX)
        powers, keys = self._role("powers"), (start, count)
        buffers = {**self.wide, self._role("greatest").nest.store.buffer: self.reference}
        yield self._cut(powers, buffers, keys)
        buffer = powers.nest.store.buffer
        load = BufferLoad(self.wide[buffer], self._in_wide(buffer, row, key))
        sums = BufferStore(self.part, binary("add", BufferLoad(self.part, (row,)), load), (row,))
        init = BufferStore(self.part, const(0.0, dtype), (row,))
        yield block_nest(self.part.name, [(row, self.count)], [(key, count)], sums, init)
        weights = self.found.get("weights")
        if weights is None:
            yield self._each_row(self.total, lambda total, factor, part: binary(
                "add", binary("mul", total, factor), part
            ), self.total, self.factor, self.part)  # fmt: skip
            return
        yield self._each_row(self.scale, lambda a, b: binary("mul", a, b), self.total, self.factor)
        yield self._each_row(self.total, lambda a, b: binary("add", a, b), self.scale, self.part)
        one, zero = const(1.0, dtype), const(0.0, dtype)
        yield self._each_row(self.divisor, lambda a: Select(binary("eq", a, zero), one, a), self.total)
        yield self._each_row(self.factor, lambda a, b: binary("div", a, b), self.scale, self.divisor)
        buffers = {**self.wide, self._role("total").nest.store.buffer: self.divisor}
        yield self._cut(weights, buffers, keys)

    def _product(self, block: PrimExpr, count: Extent, goes_on: bool = True) -> Stmt:
        """The sums go on with the values of a block: a nest that does not start anew."""
        role = self.found.get("weights") or self._role("powers")
        row, d, key = PrimVar("vs", INDEX), PrimVar("vd", INDEX), PrimVar("vt", INDEX)
        buffer = role.nest.store.buffer
        weight = BufferLoad(self.wide[buffer], self._in_wide(buffer, row, key))
        product = binary("mul", weight, BufferLoad(self.whole.value, (block, key, d)))
        sums = BufferLoad(self.sums, (row, d))
        store = BufferStore(self.sums, binary("add", sums, product), (row, d))
        init = None if goes_on else BufferStore(self.sums, const(0.0, self.whole.dtype), (row, d))
        return block_nest(self.sums.name, [(row, self.padded), (d, self.whole.depth)], [(key, count)], store, init)


def _ceil(extent: Extent, size: int) -> Extent:
    if isinstance(extent, int):
        return -(-extent // size)
    return binary("floordiv", plus(extent, size - 1), const(size, INDEX))


def _block_of_keys(extent: Extent, most: int) -> int:
    """The keys of a block: a known number in even blocks, of whole vectors where that is possible."""
    if not isinstance(extent, int):
        return most
    if extent <= most:
        return extent
    even = next((size for size in range(most, most // 2, -16) if extent % size == 0), 0)
    blocks = -(-extent // most)
    return even or min(most, -(-extent // (blocks * 16)) * 16)
