"""What the index analyzer claims, against brute force and against z3: proofs in integers, and exactness in 64 bits."""

from __future__ import annotations

import itertools

import pytest
import z3
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from weft.ir.dim import symbol
from weft.ir.kernel.prim import binary, cast
from weft.ir.tensor import Binary, Buffer, Cast, IntImm, PrimExpr, PrimFunc, PrimVar
from weft.transform.analysis.index_analyzer import IndexAnalyzer
from weft.transform.analysis.indices.conditions import Conditions
from weft.transform.analysis.indices.exactness import LARGEST, limits_of, most_elements
from weft.transform.analysis.indices.facts import Facts
from weft.transform.analysis.indices.translation import dtype_facts
from weft.transform.kernel.check_bounds import check_bounds

X, Y, M = PrimVar("i", "int64"), PrimVar("j", "int64"), PrimVar("n", "int64")
_KINDS = ["add", "sub", "mul", "floordiv", "floormod", "min", "max"]
_COMPARED = {"lt": int.__lt__, "le": int.__le__, "eq": int.__eq__, "gt": int.__gt__, "ge": int.__ge__}


def expressions(*leaves: PrimVar) -> st.SearchStrategy[PrimExpr]:
    """Index arithmetic over variables."""
    leaf = st.sampled_from(leaves) | st.integers(-3, 5).map(lambda value: IntImm(value, "int64"))
    return st.recursive(
        leaf,
        lambda inner: st.builds(lambda kind, a, b: Binary(kind, a, b), st.sampled_from(_KINDS), inner, inner),
        max_leaves=5,
    )


def value(expr: PrimExpr | int, at: dict[PrimVar, int]) -> int | None:
    """The value in integers; None for a division by zero."""
    if isinstance(expr, int):
        return expr
    if isinstance(expr, IntImm):
        return expr.value
    if isinstance(expr, PrimVar):
        return at[expr]
    if isinstance(expr, Cast):
        return value(expr.value, at)
    assert isinstance(expr, Binary)
    a, b = value(expr.a, at), value(expr.b, at)
    if a is None or b is None or (b == 0 and expr.kind.startswith("floor")):
        return None
    return {
        "add": a + b,
        "sub": a - b,
        "mul": a * b,
        "min": min(a, b),
        "max": max(a, b),
        "floordiv": a // b if b else 0,
        "floormod": a % b if b else 0,
    }[expr.kind]


def loop_of(extents: tuple[int, int]) -> tuple[IndexAnalyzer, Facts]:
    """i and j in loops of these extents, and n of any value."""
    known = IndexAnalyzer()
    facts = known.unknown(M, Facts())
    facts = known.range(X, 0, extents[0], facts)
    return known, known.range(Y, 0, extents[1], facts)


@settings(deadline=None, max_examples=60)
@given(expressions(X, Y, M), st.tuples(st.integers(1, 4), st.integers(1, 4)))
def test_what_is_proved_not_to_be_negative_is_not(expr: PrimExpr, extents: tuple[int, int]) -> None:
    known, facts = loop_of(extents)
    proved = known.proves(known.dim(expr, facts), facts)
    for i, j, n in itertools.product(range(extents[0]), range(extents[1]), range(-4, 5)):
        found = value(expr, {X: i, Y: j, M: n})
        assert not proved or found is None or found >= 0, (i, j, n)


@settings(deadline=None, max_examples=40)
@given(expressions(X, M), expressions(X, M), st.sampled_from(sorted(_COMPARED)), expressions(X, M))
def test_what_holds_where_a_condition_does_is_so(a: PrimExpr, b: PrimExpr, kind: str, claim: PrimExpr) -> None:
    known, facts = loop_of((4, 1))
    facts = known.assume(Binary(kind, a, b), facts)
    proved = known.proves(known.dim(claim, facts), facts)
    for i, n in itertools.product(range(4), range(-5, 6)):
        values = [value(part, {X: i, M: n}) for part in (a, b, claim)]
        if None not in values and _COMPARED[kind](values[0], values[1]):  # type: ignore[arg-type]
            assert not proved or values[2] >= 0, (i, n)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("claim", "is_proved"),
    [
        (3 - X, True),
        (2 - X, False),
        (X * 4 + Y, True),
        (15 - (X * 4 + Y), True),
        (14 - (X * 4 + Y), False),
        (M * M, True),
        (X - Y, False),
        (binary("floormod", M, 4), True),
        (binary("floordiv", X, 2) - Y, False),
    ],
)
def test_claims_with_a_counterexample_are_not_proved(claim: PrimExpr, is_proved: bool) -> None:
    known, facts = loop_of((4, 4))
    assert known.proves(known.dim(claim, facts), facts) is is_proved
    points = itertools.product(range(4), range(4), (-3, 0, 5, 2**32))
    least = min(value(claim, {X: i, Y: j, M: n}) for i, j, n in points)  # type: ignore[type-var]
    assert is_proved is (least >= 0)  # type: ignore[operator]


# 64 bits


def words(expr: PrimExpr, at: dict[PrimVar, z3.BitVecRef]) -> z3.BitVecRef:
    """Sums and products as machine words."""
    if isinstance(expr, IntImm):
        return z3.BitVecVal(expr.value, 64)
    if isinstance(expr, PrimVar):
        return at[expr]
    assert isinstance(expr, Binary)
    a, b = words(expr.a, at), words(expr.b, at)
    return {"add": a + b, "sub": a - b, "mul": a * b}[expr.kind]


LINEAR = [X + Y, X * 8 + Y, X - Y, 8 * X, X + IntImm(LARGEST, "int64"), (X + Y) * 2 - Y, X * (2**40) + Y]


@pytest.mark.parametrize("expr", LINEAR)
@pytest.mark.parametrize("largest", [2**31, 2**61, LARGEST])
def test_what_counts_as_exact_is_what_machine_words_have(expr: PrimExpr, largest: int) -> None:
    known, facts = IndexAnalyzer(), Facts()
    known.size(X, largest)
    known.size(Y, largest)
    claimed = known.is_exact(known.dim(expr, facts), facts)
    i, j = z3.BitVec("i", 64), z3.BitVec("j", 64)
    at = {X: i, Y: j}
    wide = {X: z3.ZeroExt(64, i), Y: z3.ZeroExt(64, j)}

    def integer(part: PrimExpr) -> z3.BitVecRef:
        if isinstance(part, IntImm):
            return z3.BitVecVal(part.value, 128)
        if isinstance(part, PrimVar):
            return wide[part]
        assert isinstance(part, Binary)
        a, b = integer(part.a), integer(part.b)
        return {"add": a + b, "sub": a - b, "mul": a * b}[part.kind]

    solver = z3.Solver()
    solver.add(*(z3.And(var >= 0, var <= z3.BitVecVal(largest, 64)) for var in (i, j)))
    solver.add(z3.SignExt(64, words(expr, at)) != integer(expr))
    wraps = solver.check() == z3.sat
    assert claimed is not wraps


def test_a_product_of_sizes_is_exact_only_where_a_tensor_has_as_many_elements() -> None:
    buffer = Buffer("x", (M, Y), "float32")
    for exists in (False, True):
        known, facts = IndexAnalyzer(), Facts()
        sides = tuple(known.size(extent, most_elements(buffer)) for extent in (M, Y))
        if exists:
            known.exactness.exists(buffer, sides)
        assert known.is_exact(known.dim(M * Y, facts), facts) is exists
        assert known.is_exact(known.dim(M + 14, facts), facts)
        assert not known.is_exact(known.dim(M * M, facts), facts)


def test_what_may_wrap_is_an_atom_to_quotients_and_comparisons() -> None:
    known, facts = IndexAnalyzer(), Facts()
    facts = known.unknown(M, facts)
    product, small = M * M, Binary("lt", M * M, IntImm(8, "int64"))
    inside = known.assume(small, facts)
    assert not known.proves(7 - known.dim(product, inside), inside)  # what is below 8 is what is left of n * n
    assert known.proves(7 - known.compared(product, inside), inside)
    exact = known.assume(small, facts, exact=True)  # in a check of bounds overflow is no success
    assert known.proves(7 - known.dim(product, exact), exact)
    quotient = known.dim(binary("floordiv", 8 * M, 8), facts)
    assert quotient != known.dim(M, facts)


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8", "int64", "uint64", "bool"])
def test_a_value_of_a_dtype_lies_between_its_limits(dtype: str) -> None:
    variable = PrimVar("x", dtype)
    known = IndexAnalyzer()
    facts = known.unknown(variable, Facts())
    low, high = limits_of(dtype)
    dim = known.dim(variable, facts)
    if dtype != "uint64":
        assert known.is_exact(dim, facts, dtype)
        assert known.is_exact(dim, facts)
    if dtype not in ("int64", "uint64"):
        assert known.proves(dim - low, facts)
        assert not known.proves(dim - low - 1, facts)
    assert (low, high) == (max(low, -(1 << 63)), min(high, LARGEST))


def test_conditions_in_a_narrow_dtype_say_nothing_of_the_number_in_64_bits() -> None:
    a = PrimVar("a", "int32")
    known = IndexAnalyzer()
    facts = known.unknown(a, Facts())
    inside = known.assume(Binary("lt", a * a, IntImm(8, "int32")), facts)
    index = known.dim(cast("int64", a * a), inside)
    assert not known.proves(7 - index, inside)


@pytest.mark.parametrize("dtype", ["int64", "int64x16"])
def test_the_bounds_of_64_bits_say_nothing_of_a_value(dtype: str) -> None:
    assert dtype_facts(dtype, symbol("n") - symbol("m")) == ()


def test_a_condition_is_asked_again_when_its_variables_get_facts() -> None:
    """What was not proved is kept only as long as the facts that are connected with it stay as they are."""
    known, facts = IndexAnalyzer(), Facts()
    for variable in (X, Y, M):
        facts = known.unknown(variable, facts)
    unless_positive = Binary("le", X, IntImm(0, "int64"))
    facts = known.assume(Binary("or", unless_positive, Binary("le", Y, IntImm(9, "int64"))), facts)
    small = 9 - known.dim(Y, facts)
    assert not known.proves(small, facts)
    assert not known.proves(small, known.assume(Binary("gt", M, IntImm(0, "int64")), facts))
    above = known.assume(Binary("gt", X, M), facts)
    assert not known.proves(small, above)
    assert known.proves(small, known.assume(Binary("ge", M, IntImm(0, "int64")), above))


def test_facts_that_exclude_each_other_prove_everything() -> None:
    known, facts = IndexAnalyzer(), Facts()
    for variable in (X, Y):
        facts = known.unknown(variable, facts)
    for kind in ("gt", "lt"):
        assert not known.proves(-known.dim(Y, facts), facts)
        facts = known.assume(Binary(kind, X, IntImm(3, "int64")), facts)
    assert known.proves(-known.dim(Y, facts), facts)


def test_loops_over_ranges_in_memory_ask_few_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the checks of one loop leave open says nothing new of the next one, which reads other memory."""
    asked: list[PrimExpr] = []
    holds = Conditions.holds
    monkeypatch.setattr(Conditions, "holds", lambda self, what, facts: asked.append(what) or holds(self, what, facts))

    def questions(count: int) -> int:
        asked.clear()
        loops = "".join(f"    v{k} = A[{k}]\n    for i in range(v{k}):\n        B[i] = 1.0\n" for k in range(count))
        head = f'@T.prim_func\ndef main(A: T.Buffer(({count},), "int32"), B: T.Buffer((64,), "float32")):\n'
        function = weft.parse(head + loops)
        assert isinstance(function, PrimFunc)
        check_bounds(function)
        return len(asked)

    assert questions(16) < 3 * questions(8)
