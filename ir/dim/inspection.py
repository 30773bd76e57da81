"""Looking into dimensions, substitution and evaluation."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence, Set
from functools import lru_cache
from operator import index
from typing import Any, cast

from weft.errors import ShapeError
from weft.ir.dim.expression import (
    Dim,
    DimExpr,
    as_dim,
    atom_dim,
    floordiv,
    floormod,
    make_expression,
    maximum,
    minimum,
)
from weft.ir.dim.representation import ONE, Atom, Monomial, dim_error, make_monomial


def is_symbolic(d: Dim) -> bool:
    """Whether the dimension depends on a symbol."""
    return isinstance(d, DimExpr)


def free_symbols(d: Dim) -> tuple[str, ...]:
    """The names of the symbols that occur in the dimension, sorted."""
    return tuple(sorted(d.names)) if isinstance(d, DimExpr) else ()


def same(a: Dim, b: Dim) -> bool:
    """Whether the two are one canonical expression (True proves equality; False proves nothing)."""
    return a is b or a == b


def operation(d: Dim) -> tuple[str, tuple[Any, ...]]:
    """One step of the dimension's structure, for code that translates it: (kind, operands).

    Kinds: ``constant`` (int,), ``symbol`` (name,), ``add`` and ``mul`` (dims of two or more), ``pow`` (dim, int),
    ``floordiv``, ``mod`` (dim, dim), ``min`` and ``max`` (dims of two or more).

    >>> from weft.ir.dim import symbol
    >>> operation(2 * symbol("n") + 1)
    ('add', (2 * n, 1))
    """
    return _operation(d) if isinstance(d, DimExpr) else ("constant", (d,))


@lru_cache(maxsize=1 << 12)
def _operation(d: DimExpr) -> tuple[str, tuple[Any, ...]]:
    (monomial, coefficient), *others = d.terms
    if others:
        return "add", tuple(make_expression({monomial: coefficient}) for monomial, coefficient in d.terms)
    factors = [make_expression({make_monomial(((atom, power),)): 1}) for atom, power in monomial.powers]
    if coefficient != 1 or len(factors) > 1:
        return "mul", (*([coefficient] if coefficient != 1 else []), *factors)
    atom, power = monomial.powers[0]
    if power > 1:
        return "pow", (atom_dim(atom), power)
    return atom.kind, atom.arguments


BUILD: dict[str, Callable[..., Dim]] = {"floordiv": floordiv, "mod": floormod, "min": minimum, "max": maximum}


def substitute(d: Dim, values: Mapping[str, Dim]) -> Dim:
    """The dimension with symbols replaced, all at once; names that do not occur are ignored.

    >>> from weft.ir.dim import symbol
    >>> n = symbol("n")
    >>> substitute((n + 1) // 2, {"n": 2 * n})
    n
    """
    images: dict[Atom, Dim] = {}

    def image(dim: Dim) -> Dim:
        return map_atoms(dim, replace, images) if isinstance(dim, DimExpr) and dim.names & values.keys() else dim

    def replace(atom: Atom) -> Dim:
        if atom.kind == "symbol":
            name = atom.arguments[0]
            return as_dim(values[name]) if name in values else atom_dim(atom)
        return BUILD[atom.kind](*map(image, atom.arguments))

    return image(d)


def pattern(dims: Iterable[Dim]) -> Hashable:
    """What dimensions have in common with those that differ from them by the names of their symbols alone.

    >>> from weft.ir.dim import symbol
    >>> m, n = symbol("m"), symbol("n")
    >>> pattern([m // 2, m + 1]) == pattern([n // 2, n + 1]), pattern([m, m]) == pattern([m, n])
    (True, False)
    """
    numbers: dict[str, int] = {}
    found: list[Hashable] = []
    for dim in dims:
        form, names = _pattern(dim) if isinstance(dim, DimExpr) else (dim, ())
        found.append((form, tuple([numbers.setdefault(name, len(numbers)) for name in names])))
    return tuple(found)


@lru_cache(maxsize=1 << 13)
def _pattern(dim: DimExpr) -> tuple[Hashable, tuple[str, ...]]:
    """A dimension with numbers in place of its symbols, and their names."""
    numbers: dict[str, int] = {}

    def form(part: Dim) -> Hashable:
        if not isinstance(part, DimExpr):
            return part
        return tuple([(count, tuple([(of_atom(atom), power) for atom, power in m.powers])) for m, count in part.terms])

    def of_atom(atom: Atom) -> Hashable:
        if atom.kind == "symbol":
            return numbers.setdefault(atom.arguments[0], len(numbers))
        return atom.kind, *map(form, atom.arguments)

    return form(dim), tuple(numbers)


def map_atoms(d: Dim, replace: Callable[[Atom], Dim], images: dict[Atom, Dim] | None = None) -> Dim:
    """The polynomial with every atom of its monomials replaced; what atoms have become may be shared by several."""
    if not isinstance(d, DimExpr):
        return d
    images = {} if images is None else images
    total: dict[Monomial, int] = {}
    for monomial, coefficient in d.terms:
        image: Dim = 1
        for atom, power in monomial.powers:
            factor = images.get(atom)
            if factor is None:
                factor = images[atom] = replace(atom)
            for _ in range(power):
                image = factor if image == 1 else image * factor
        # A scaled image is part of the sum only: it is no dimension that is made and interned.
        for part, count in image.terms if isinstance(image, DimExpr) else ((ONE, image),):
            total[part] = total.get(part, 0) + coefficient * count
    return make_expression(total)


def evaluate(d: Dim, values: Mapping[str, int]) -> int:
    """The dimension's value; ShapeError W286 names a missing symbol, W280 a zero divisor.

    >>> from weft.ir.dim import symbol
    >>> evaluate(symbol("n") // 2, {"n": 7})
    3
    """
    return _evaluate(d, values, {})


def evaluator(values: Mapping[str, int]) -> Callable[[Dim], int]:
    """`evaluate` for several dimensions at one point, where what they share is computed once."""
    known: dict[Atom, int] = {}
    return lambda d: _evaluate(d, values, known)


def _evaluate(d: Dim, values: Mapping[str, int], known: dict[Atom, int]) -> int:
    """The value; an atom that stands in several others is computed once."""
    if not isinstance(d, DimExpr):
        return d
    total = 0
    for monomial, coefficient in d.terms:
        for atom, power in monomial.powers:
            value = known.get(atom)
            if value is None:
                value = known[atom] = _evaluate_atom(atom, values, known)
            coefficient *= value if power == 1 else value**power
        total += coefficient
    return total


def value_at(d: Dim, values: Mapping[str, int]) -> int | None:
    """The dimension's value, None where it has none: a divisor is 0 there.

    >>> from weft.ir.dim import symbol
    >>> value_at(8 // symbol("n"), {"n": 0}), value_at(8 // symbol("n"), {"n": 2})
    (None, 4)
    """
    try:
        return evaluate(d, values)
    except ShapeError as error:
        if error.code != "W280":
            raise
        return None


def _evaluate_atom(atom: Atom, values: Mapping[str, int], known: dict[Atom, int]) -> int:
    if atom.kind == "symbol":
        name = atom.arguments[0]
        if name not in values:
            raise dim_error("W286", f"the symbol {name} has no value", f"values are given for {sorted(values)}")
        return index(values[name])
    arguments = [_evaluate(argument, values, known) for argument in atom.arguments]
    if atom.kind == "min":
        return min(arguments)
    if atom.kind == "max":
        return max(arguments)
    if arguments[1] == 0:
        raise dim_error("W280", f"division by zero in {atom.text}: {atom.arguments[1]} is 0")
    return arguments[0] // arguments[1] if atom.kind == "floordiv" else arguments[0] % arguments[1]


def fresh_name(base: str, used: Iterable[str]) -> str:
    """``base``, or ``base_1``, ``base_2``, ...: the first that is not used, or another where those used have gaps.

    >>> fresh_name("n", {"n", "n_1"})
    'n_2'
    """
    taken: Container[str] = cast("Container[str]", used) if isinstance(used, (Set, Mapping)) else set(used)
    if base not in taken:
        return base
    return f"{base}_{first_free(lambda number: f'{base}_{number}' in taken, 1)}"


def first_free(is_taken: Callable[[int], bool], start: int) -> int:
    """A free number from `start` on whose predecessor is taken: the first where those taken have no gaps.

    >>> first_free(lambda number: number < 1000, 1)
    1000
    """
    if not is_taken(start):
        return start
    step = 1
    while is_taken(start + step):
        step *= 2
    taken, free = start + step // 2, start + step
    while free - taken > 1:
        middle = (taken + free) // 2
        taken, free = (middle, free) if is_taken(middle) else (taken, middle)
    return free


def joined_axes(
    source: Sequence[Dim], target: Sequence[Dim], equal: Callable[[Dim, Dim], bool] = same
) -> list[tuple[range, range]]:
    """The axes of two shapes of equally many elements in groups that stand for the same part of a position.

    In most a single axis of one shape is the product of those of the other one; what does not come apart so is one
    group of several axes on both sides. Products are compared as they are written, single sizes by `equal`.

    >>> from weft.ir.dim import symbol
    >>> joined_axes((symbol("n"), 12, 64), (symbol("n"), 768))
    [(range(0, 1), range(0, 1)), (range(1, 3), range(1, 2))]
    >>> joined_axes((4, 6, 5), (8, 3, 5))
    [(range(0, 2), range(0, 2)), (range(2, 3), range(2, 3))]
    """
    front, (i, j) = _groups_of_axes(source, target, equal)
    back, (from_end, from_other_end) = _groups_of_axes(source[i:][::-1], target[j:][::-1], equal)
    middle = (range(i, len(source) - from_end), range(j, len(target) - from_other_end))
    turned = [(_from_start(a, len(source)), _from_start(b, len(target))) for a, b in reversed(back)]
    return [*front, *([middle] if middle[0] or middle[1] else []), *turned]


def _from_start(axes: range, rank: int) -> range:
    """Axes that are counted from the last one."""
    return range(rank - axes.stop, rank - axes.start)


def _groups_of_axes(
    source: Sequence[Dim], target: Sequence[Dim], equal: Callable[[Dim, Dim], bool]
) -> tuple[list[tuple[range, range]], tuple[int, int]]:
    """The groups from the first axes on in which one side has one axis, and where what is left starts."""
    found: list[tuple[range, range]] = []
    i = j = 0
    while i < len(source) and j < len(target):
        counts = _first_equal(source[i:], target[j:], equal)
        if counts is None:
            break
        found.append((range(i, i + counts[0]), range(j, j + counts[1])))
        i, j = i + counts[0], j + counts[1]
    return found, (i, j)


def _first_equal(
    source: Sequence[Dim], target: Sequence[Dim], equal: Callable[[Dim, Dim], bool]
) -> tuple[int, int] | None:
    """How many axes of the two have equal products, the fewest of which one is 1; None where none have."""
    if equal(source[0], target[0]):
        return 1, 1
    left, right = source[0], target[0]
    for count in range(2, 1 + max(len(source), len(target))):
        left = left * source[count - 1] if count <= len(source) else 0
        right = right * target[count - 1] if count <= len(target) else 0
        if count <= len(source) and same(left, target[0]):
            return count, 1
        if count <= len(target) and same(right, source[0]):
            return 1, count
    return None
