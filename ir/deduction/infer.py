"""Type deduction: the type of an expression from the types of its variables.

    infer_type(expr, context)          the type; raises where a claim or constraint is refuted
    TypeContext                        functions in scope, what is known about symbols, checks left for run time
    func_type(function)                the signature of a function of any level
    signature_type(params, ret, pure)  that of a graph function with these parameters
    check_claim(declared, computed)    a type that the user wrote against the deduced one

Deduction is forward and never loses a fact in silence: an equality of dimensions is proved, refuted (ShapeError), or
recorded in `context.checks`, which the compiled program performs (in the kernel's buffer shapes, its asserts, or at a
function boundary). A claim (an annotation, a declared result, the outputs that a call of a kernel states) is proved,
refuted where no sizes satisfy it, or left to a check too; a binding whose type is such a claim is a `MatchCast`.

Errors: ShapeError W201 refuted constraint, W202 wrong rank, W210 refuted claim, W211 claim that cannot be deduced,
W212 call that contradicts a kernel's signature; DTypeError W320 wrong dtype; ScriptError W130 wrong number of
arguments, W131 not a function, W132 unknown function, W133 tuple index, W134 wrong kind of value.
"""

# A variable of a function that is not typed yet has no type.
# pyright: reportUnnecessaryComparison=false

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Any, Literal
from weakref import WeakKeyDictionary

from weft.errors import DTypeError, ScriptError, ShapeError, Span, WeftError
from weft.ir.attrs import DPS
from weft.ir.deduction.device_mesh import DTensorType, is_spread, whole_tensors
from weft.ir.deduction.subtyping import (
    Match,
    common_base,
    dims_of,
    erase,
    is_base_of,
    match_types,
    substitute_type,
    type_symbols,
    type_text,
    unnamed,
)
from weft.ir.dim import (
    Dim,
    DimExpr,
    Facts,
    counterexample,
    evaluate,
    free_symbols,
    prove_equal,
    prove_le,
    prove_nonnegative,
)
from weft.ir.graph import (
    Call,
    Constant,
    DataflowVar,
    DataTypeImm,
    Expr,
    ExternFunc,
    Function,
    GlobalVar,
    If,
    MatchCast,
    Op,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
)
from weft.ir.kernel.prim_dim import kernel_signature
from weft.ir.module import BaseFunc
from weft.ir.node import replace
from weft.ir.structure.visit import walk
from weft.ir.tensor import PrimExpr, PrimFunc
from weft.ir.types import AnyType, FuncType, PrimType, ShapeType, StringType, TensorType, TupleType, Type
from weft.support.providers import provider
from weft.support.records import dataclass, record

__all__ = [
    "VOID",
    "ShapeCheck",
    "TypeContext",
    "check_claim",
    "common_base",
    "erase",
    "exact_type",
    "func_type",
    "infer_type",
    "is_base_of",
    "match_call",
    "quick_type",
    "signature_type",
    "type_text",
]

VOID = TupleType(())


@record
class ShapeCheck:
    """Two dimensions that must be equal, or in order, when the program runs, and why."""

    lhs: Dim
    rhs: Dim
    reason: str
    span: Span | None = None
    relation: Literal["==", "<="] = "=="

    def __str__(self) -> str:
        return f"{self.lhs} {self.relation} {self.rhs} ({self.reason})"

    def holds(self, left: int, right: int) -> bool:
        """Whether the values of the two dimensions are as they must be."""
        return left == right if self.relation == "==" else left <= right


_MOST_FACTS = 64  # the cost of a proof grows with them


@dataclass
class TypeContext:
    """What deduction may use, and the run-time checks it had to leave.

    `functions` maps names to functions, or to signatures where a body is not there yet (recursion). Inside a `scope`
    (of a function or a branch, whose symbols mean one thing) what was checked is known to what follows.
    """

    functions: Mapping[str, BaseFunc | FuncType] = field(default_factory=dict[str, BaseFunc | FuncType])
    facts: Facts = field(default_factory=Facts)
    checks: list[ShapeCheck] = field(default_factory=list[ShapeCheck])
    nested: dict[int, tuple[Expr, Type]] = field(default_factory=dict[int, tuple[Expr, Type]], repr=False)
    """Expressions inside others that were typed before these, by number."""
    _learning: bool = field(default=False, repr=False)

    @contextmanager
    def scope(self) -> Generator[None]:
        """The body of a function or a branch: equalities that are checked inside are facts until it ends."""
        before = self.facts, self._learning
        self._learning = True
        try:
            yield
        finally:
            self.facts, self._learning = before

    @contextmanager
    def one_call(self) -> Generator[None]:
        """One check of a call against a signature: what it compares first is known to what it compares later."""
        if self._learning:
            yield
            return
        with self.scope():
            yield

    @contextmanager
    def taking(self, types: Iterable[tuple[Expr, Type]]) -> Generator[None]:
        """While it lasts, the given expressions have the given types."""
        before = dict(self.nested)
        self.nested.update({id(expr): (expr, ty) for expr, ty in types})
        try:
            yield
        finally:
            self.nested.clear()
            self.nested.update(before)

    def learn_sizes(self, ty: Type) -> None:
        """Take the sizes of a value that exists for what sizes are, not negative: `n - 1` in a type says n >= 1."""
        if isinstance(ty, TupleType):
            for part in ty.fields:
                self.learn_sizes(part)
            return
        for dim in (dims_of(ty) or ()) if self._learning else ():
            if prove_nonnegative(dim, self.facts) is None and len(self.facts.orders) < _MOST_FACTS:
                self.facts = self.facts.assume_nonnegative(dim)

    def learn(self, declared: Type, found: Type) -> None:
        """Take the sizes of two types for equal, one having been cast to the other at run time."""
        self.learn_sizes(declared)
        if isinstance(declared, TupleType) and isinstance(found, TupleType):
            for a, b in zip(declared.fields, found.fields, strict=False):
                self.learn(a, b)
            return
        wanted, given = dims_of(declared), dims_of(found)
        if wanted is not None and given is not None and len(wanted) == len(given):
            for a, b in zip(wanted, given, strict=True):
                self.learn_equal(a, b)

    def learn_equal(self, a: Dim, b: Dim) -> None:
        """Take two dimensions for equal, a check before having made sure of it."""
        if self._learning and len(self.facts.equalities) < _MOST_FACTS and prove_equal(a, b, self.facts) is None:
            self.facts = self.facts.assume_equal(a, b)

    def require_equal(self, a: Dim, b: Dim, reason: str, span: Span | None = None) -> None:
        """Prove the dimensions equal, raise ShapeError W201 where they never are, else record a run-time check."""
        answer = prove_equal(a, b, self.facts)
        # What only earlier checks exclude may stand where nothing comes to: it fails when it is reached.
        if answer is False and prove_equal(a, b) is False:
            raise ShapeError(f"{reason}: {a} is not {b}", code="W201", span=span, notes=_example(a, b))
        if answer is not True:
            self.checks.append(ShapeCheck(a, b, reason, span))
            self.learn_equal(a, b)

    def require_le(self, a: Dim, b: Dim, reason: str, span: Span | None = None) -> None:
        """Prove that a <= b, raise ShapeError W201 where it never is, else record a run-time check."""
        if prove_le(a, b, self.facts) is True:
            return
        if prove_le(a, b) is False:
            raise ShapeError(f"{reason}: {b} is less than {a}", code="W201", span=span)
        self.learn_check(ShapeCheck(a, b, reason, span, "<="))
        self.checks.append(ShapeCheck(a, b, reason, span, "<="))

    def learn_check(self, check: ShapeCheck) -> None:
        """Take for known what the program checks."""
        if check.relation == "==":
            self.learn_equal(check.lhs, check.rhs)
        elif self._learning and len(self.facts.orders) < _MOST_FACTS:
            self.facts = self.facts.assume_le(check.lhs, check.rhs)

    def type_of(self, expr: Expr) -> Type:
        """The type of an argument; arguments that are calls themselves are deduced without recursion on depth."""
        found = self.nested.get(id(expr))
        return found[1] if found is not None else infer_type(expr, self)

    def signature(self, name: str, span: Span | None = None) -> FuncType:
        """The signature of a function of the module; ScriptError W132 when there is none."""
        function = self.functions.get(name)
        if function is None:
            known = ", ".join(self.functions) or "none"
            raise ScriptError(f"the module has no function {name!r}", code="W132", span=span, hint=f"it has: {known}")
        return function if isinstance(function, FuncType) else func_type(function)


def _example(a: Dim, b: Dim, facts: Facts | None = None) -> list[str]:
    """A note with numbers for two dimensions that differ, where symbols occur."""
    if not isinstance(a, DimExpr) and not isinstance(b, DimExpr):
        return []
    values = counterexample(a, b, facts)
    if values is None:
        return []
    setting = ", ".join(f"{name}={value}" for name, value in values.items())
    return [f"{setting}: {evaluate(a, values)} and {evaluate(b, values)}"]


_SIGNATURES: WeakKeyDictionary[Any, FuncType] = WeakKeyDictionary()


def func_type(function: BaseFunc) -> FuncType:
    """The signature of a function; a PrimFunc writes its outputs in place, so it is impure and has no result."""
    found = _SIGNATURES.get(function)
    if found is None:
        found = _SIGNATURES[function] = _func_type(function)
    return found


def signature_type(params: Sequence[Var], ret: Type, pure: bool) -> FuncType:
    """The type of a graph function; nothing outside of the function sees the names of its shape variables.

    >>> shape = Var("s", ShapeType(ndim=2))
    >>> type_text(signature_type([shape], TensorType(shape, "float32"), True).ret)
    'R.Tensor(dtype="float32", ndim=2)'
    """
    shapes = [param for param in params if isinstance(param.ty, ShapeType)]
    return FuncType(tuple(unnamed(param.ty, shapes) for param in params), unnamed(ret, shapes), pure)


def _func_type(function: BaseFunc) -> FuncType:
    if isinstance(function, Function):
        return signature_type(function.params, function.ret_type, function.pure)
    if isinstance(function, PrimFunc):
        return FuncType(kernel_signature(function), function.ret_type or VOID, pure=False)
    return function.ty if isinstance(function.ty, FuncType) else FuncType(None, function.ty or AnyType(), pure=False)


# ---------------------------------------------------------------------------------------------------------------------
# Expressions
# ---------------------------------------------------------------------------------------------------------------------


def infer_type(expr: Expr, context: TypeContext | None = None) -> Type:
    """The type of an expression; errors carry its span.

    >>> from weft.ir.graph import Constant
    >>> import numpy as np
    >>> type_text(infer_type(Constant(np.zeros((2, 3), "float32"))))
    'R.Tensor((2, 3), "float32")'
    """
    context = context or TypeContext()
    if isinstance(expr, (Call, Tuple, TupleGetItem)) and any(_is_compound(child) for child in _operands(expr)):
        _infer_nested(expr, context)
    return _infer_shallow(expr, context)


_quick: WeakKeyDictionary[Expr, Type] = WeakKeyDictionary()


def quick_type(expr: Expr) -> Type:
    """The type of an expression outside any module, remembered: what operators on Python values look at."""
    if isinstance(expr, Var):
        return expr.ty if expr.ty is not None else AnyType()
    found = _quick.get(expr)
    if found is None:
        context = TypeContext()
        for nested in [*_compound_first(expr, lambda part: part in _quick), expr]:
            for part in _operands(nested):
                if part in _quick:
                    context.nested[id(part)] = (part, _quick[part])
            found = _quick[nested] = _infer_shallow(nested, context)
        assert found is not None
    return found


def _operands(expr: Expr) -> tuple[Expr, ...]:
    if isinstance(expr, Call):
        return expr.args
    if isinstance(expr, Tuple):
        return expr.fields
    return (expr.value,) if isinstance(expr, TupleGetItem) else ()


def _is_compound(expr: Expr) -> bool:
    return isinstance(expr, (Call, TupleGetItem)) or (isinstance(expr, Tuple) and any(map(_is_compound, expr.fields)))


def _compound_first(root: Expr, known: Callable[[Expr], bool]) -> Generator[Expr]:
    """The compound expressions below root, operands before what uses them, each once; `known` ones are not entered."""
    stack = [(root, False)]
    done: set[int] = set()
    while stack:
        current, expanded = stack.pop()
        if id(current) in done or (current is not root and known(current)):
            continue
        if expanded:
            done.add(id(current))
            if current is not root:
                yield current
        else:
            stack.append((current, True))
            stack.extend(
                (child, False) for child in _operands(current) if isinstance(child, (Call, Tuple, TupleGetItem))
            )


def _infer_nested(expr: Expr, context: TypeContext) -> None:
    for nested in _compound_first(expr, lambda part: id(part) in context.nested):
        context.nested[id(nested)] = (nested, _infer_shallow(nested, context))


def _infer_shallow(expr: Expr, context: TypeContext) -> Type:
    rule = _RULES.get(type(expr), _prim)
    try:
        return rule(expr, context)
    except WeftError as error:
        raise error.at(expr.span) from None


def _prim(expr: Expr, context: TypeContext) -> Type:
    if isinstance(expr, PrimExpr):
        return PrimType(expr.dtype)
    raise ScriptError(f"a {type(expr).__name__} is not a graph-level value", code="W134")


def _var(expr: Var, context: TypeContext) -> Type:
    return expr.ty if expr.ty is not None else AnyType()


def _tuple(expr: Tuple, context: TypeContext) -> Type:
    return TupleType(tuple(context.type_of(item) for item in expr.fields))


def _tuple_item(expr: TupleGetItem, context: TypeContext) -> Type:
    ty = context.type_of(expr.value)
    if isinstance(ty, AnyType):
        return AnyType()
    if not isinstance(ty, TupleType):
        raise ScriptError(f"field {expr.index} of {type_text(ty)}, which is no tuple", code="W133")
    if not 0 <= expr.index < len(ty.fields):
        raise ScriptError(f"field {expr.index} of a tuple of {len(ty.fields)}", code="W133")
    return ty.fields[expr.index]


def _extern(expr: ExternFunc, context: TypeContext) -> Type:
    return expr.ty if expr.ty is not None else FuncType(None, AnyType(), pure=False)


def _if(expr: If, context: TypeContext) -> Type:
    return common_base(infer_type(expr.then_branch, context), infer_type(expr.else_branch, context))


def _seq(expr: SeqExpr, context: TypeContext) -> Type:
    """The type of the result without shape variables and symbols that only the sequence defines."""
    ty = infer_type(expr.body, context)
    bindings = [binding for block in expr.blocks for binding in block.bindings]
    own = {binding.var for binding in bindings}
    symbols = type_symbols(ty)
    introduced = {name for binding in bindings if isinstance(binding, MatchCast) for name in type_symbols(binding.ty)}
    if introduced & symbols:
        # A symbol in a match_cast may be an outer one: the types of variables from outside tell.
        free = (var for var in walk(expr) if isinstance(var, Var) and var not in own and var.ty is not None)
        introduced -= {name for var in free for name in type_symbols(var.ty)}
    return erase(ty, symbols - introduced, (shape for shape in _shape_variables(ty) if shape not in own))


def _shape_variables(ty: Type) -> Iterator[Var]:
    if isinstance(ty, DTensorType):
        yield from _shape_variables(ty.tensor)
    elif isinstance(ty, TensorType) and isinstance(ty.shape, Var):
        yield ty.shape
    elif isinstance(ty, TupleType):
        for part in ty.fields:
            yield from _shape_variables(part)


# ---------------------------------------------------------------------------------------------------------------------
# Calls
# ---------------------------------------------------------------------------------------------------------------------


def _call(expr: Call, context: TypeContext) -> Type:
    callee = expr.op
    if isinstance(callee, Op):
        operator = provider("operator")(callee.name, expr.span)
        if not callee.name.startswith("dist."):
            values = [arg for arg in expr.args if isinstance(arg, (Var, Tuple, TupleGetItem, Call))]
            spread = [(arg, ty) for arg in values if is_spread(ty := context.type_of(arg))]
            if spread:
                with context.taking((arg, whole_tensors(ty)) for arg, ty in spread):
                    return _spread(operator.infer(expr, context))
        return operator.infer(expr, context)
    if isinstance(callee, ExternFunc):
        return _extern_call(expr, callee, context)
    if isinstance(callee, GlobalVar):
        return match_call(callee.name, context.signature(callee.name, expr.span), expr, context)
    ty = context.type_of(callee)
    if isinstance(ty, FuncType):
        return match_call(callee.name if isinstance(callee, Var) else "the function", ty, expr, context)
    if isinstance(ty, AnyType):
        return expr.ty_args[0] if expr.ty_args else AnyType()
    raise ScriptError(f"a {type_text(ty)} is not a function", code="W131")


def _spread(ty: Type) -> Type:
    """The result of an operator on spread tensors: where it is, only an annotation says."""
    if isinstance(ty, TupleType):
        return TupleType(tuple(map(_spread, ty.fields)))
    return DTensorType(ty) if isinstance(ty, TensorType) else ty


def _extern_call(expr: Call, callee: ExternFunc, context: TypeContext) -> Type:
    if expr.attrs.get(DPS):
        return VOID
    if isinstance(callee.ty, FuncType):
        return match_call(callee.name, callee.ty, expr, context)
    if expr.ty_args:
        return expr.ty_args[0]
    return AnyType()


def match_call(name: str, signature: FuncType, call: Call, context: TypeContext) -> Type:
    """The result type of calling a function with a signature: its symbols are bound by the arguments.

    Errors: W130 number of arguments; W201, W202, W320 arguments that do not match. A result that mentions a symbol
    which no argument binds is known by rank only.
    """
    if signature.params is None:
        return call.ty_args[0] if call.ty_args else signature.ret
    if len(call.args) != len(signature.params):
        wanted = len(signature.params)
        is_kernel = signature.ret is VOID and len(call.args) < wanted
        raise ScriptError(
            f"{name} takes {wanted} argument{'s' * (wanted != 1)}, got {len(call.args)}",
            code="W130",
            span=call.span,
            hint="R.call_tir makes the outputs of a kernel: R.call_tir(f, (x,), out_ty=...)" if is_kernel else None,
        )
    match = match_types(signature.params, [exact_type(arg, context) for arg in call.args])
    require_match(name, match, context, call.span)
    own = type_symbols(signature.ret)
    result = erase(signature.ret, own & set(match.symbols), _shape_variables(signature.ret))
    return substitute_type(result, match.symbols)


def exact_type(expr: Expr, context: TypeContext) -> Type:
    """The type of an expression, with the value of a scalar that is written out.

    >>> type_text(exact_type(PrimValue(3), TypeContext()))
    'R.Prim("int64", value=3)'
    """
    return PrimType(expr.dtype, expr.value) if isinstance(expr, PrimValue) else context.type_of(expr)


def require_match(name: str, match: Match, context: TypeContext, span: Span | None) -> None:
    """Raise what the match refutes; record what it leaves open."""
    if match.answer is False:
        kind = DTypeError if _is_dtype_mismatch(match.reason) else ShapeError
        message = f"argument {match.index + 1} of {name}: {match.reason}"
        raise kind(message, code="W320" if kind is DTypeError else "W202", span=span)
    for wanted, given in match.pairs:
        context.require_equal(wanted, given, f"argument of {name}", span)


def _is_dtype_mismatch(reason: str) -> bool:
    wanted, _, given = reason.partition(", got ")
    return wanted.count('"') == 2 and given.count('"') == 2 and wanted.split('"')[1] != given.split('"')[1]


_RULES: dict[type, Callable[[Any, TypeContext], Type]] = {
    Call: _call,
    Tuple: _tuple,
    TupleGetItem: _tuple_item,
    Constant: lambda expr, context: expr.ty,
    ShapeExpr: lambda expr, context: expr.ty,
    PrimValue: lambda expr, context: PrimType(expr.dtype),
    StringImm: lambda expr, context: StringType(),
    DataTypeImm: lambda expr, context: AnyType(),
    GlobalVar: lambda expr, context: context.signature(expr.name, expr.span),
    ExternFunc: _extern,
    Op: lambda expr, context: FuncType(None, AnyType(), pure=False),
    Function: lambda expr, context: func_type(expr),
    If: _if,
    SeqExpr: _seq,
    Var: _var,
    DataflowVar: _var,
}


# ---------------------------------------------------------------------------------------------------------------------
# Claims
# ---------------------------------------------------------------------------------------------------------------------


def check_claim(
    declared: Type,
    computed: Type,
    context: TypeContext,
    what: str = "annotation",
    span: Span | None = None,
    *,
    at_run_time: bool = False,
) -> bool:
    """Check a declared type against the deduced one; gives whether it holds for all symbol values, whatever is assumed.

    What only some symbol values satisfy is refused, unless the program checks it `at_run_time`: then it is noted in
    `context.checks`, and a fact from then on.

    Raises: ShapeError W210 with a counter-example where the claim does not hold (`at_run_time`: where no sizes satisfy
    it), W211 where less is known than is declared (not `at_run_time`); DTypeError W320 for another dtype.
    """
    if declared is computed:
        return True
    if (
        isinstance(declared, TupleType)
        and isinstance(computed, TupleType)
        and len(declared.fields) == len(computed.fields)
    ):
        parts = [
            check_claim(a, b, context, f"{what}, field {index}", span, at_run_time=at_run_time)
            for index, (a, b) in enumerate(zip(declared.fields, computed.fields, strict=True))
        ]
        return all(parts)
    if isinstance(declared, DTensorType) and isinstance(computed, DTensorType):
        # What is not known of the place, the declaration decides.
        place = DTensorType(computed.tensor, computed.mesh or declared.mesh, computed.placement)
        if is_base_of(replace(declared, tensor=computed.tensor), place) is not False:
            return check_claim(declared.tensor, computed.tensor, context, what, span, at_run_time=at_run_time)
    _refute_dtype(declared, computed, what, span)
    wanted, given = dims_of(declared), dims_of(computed)
    proved = True
    if wanted is not None and given is not None and type(declared) is type(computed) and len(wanted) == len(given):
        proved = _claim_dims(wanted, given, context, what, span, at_run_time)
        answer = is_base_of(_static(declared), _static(computed), context.facts)
    else:
        answer = is_base_of(declared, computed, context.facts)
    if answer is False:
        raise ShapeError(
            f"{what}: declared {type_text(declared)}, computed {type_text(computed)}", code="W210", span=span
        )
    if answer is None and not at_run_time:
        raise ShapeError(
            f"{what}: declared {type_text(declared)}, but only {type_text(computed)} is known",
            code="W211",
            span=span,
            hint=f"use R.match_cast(value, {type_text(declared)}) to check it at run time",
        )
    return proved and answer is True


def _static(ty: Type) -> Type:
    """The type without its dimensions."""
    if isinstance(ty, TensorType):
        return TensorType(None, ty.dtype, ty.ndim, ty.vdevice)
    if isinstance(ty, PrimType):
        return PrimType(ty.dtype)
    return ShapeType(None, ty.ndim) if isinstance(ty, ShapeType) else ty


def _refute_dtype(declared: Type, computed: Type, what: str, span: Span | None) -> None:
    both = isinstance(declared, (TensorType, PrimType)) and type(declared) is type(computed)
    if both and declared.dtype and computed.dtype and declared.dtype != computed.dtype:  # type: ignore[union-attr]
        raise DTypeError(
            f"{what}: declared {type_text(declared)}, computed {type_text(computed)}",
            code="W320",
            span=span,
            hint=f'use R.astype(value, "{declared.dtype}") to convert',  # type: ignore[union-attr]
        )


def _claim_dims(
    wanted: Sequence[Dim], given: Sequence[Dim], context: TypeContext, what: str, span: Span | None, at_run_time: bool
) -> bool:
    """Whether the declared sizes are proved to be the computed ones; raises what is refuted, notes what is left."""
    if never_equal(wanted, given):
        raise _refuted(wanted, given, context, what, span, never=True)
    proved = True
    for declared, computed in zip(wanted, given, strict=True):
        if prove_equal(declared, computed) is True:
            continue
        if prove_equal(declared, computed, context.facts) is not True:
            if not at_run_time and counterexample(declared, computed, context.facts) is not None:
                raise _refuted(wanted, given, context, what, span, never=False)
            context.checks.append(ShapeCheck(declared, computed, what, span))
            context.learn_equal(declared, computed)
        proved = False
    return proved


def never_equal(wanted: Sequence[Dim], given: Sequence[Dim]) -> bool:
    """Whether no sizes make all the pairs equal, but for tensors that are empty because of it.

    A pair may contradict itself or the others.

    >>> from weft.ir.dim import symbol
    >>> n = symbol("n")
    >>> never_equal((n, n), (2, 3)), never_equal((n,), (2 * n,)), never_equal((n,), (n * n,))
    (True, True, False)
    """
    pairs = [(a, b) for a, b in zip(wanted, given, strict=True) if prove_equal(a, b) is not True]
    return _contradictory(pairs, empty=True) or _contradictory(pairs, empty=False)


def _contradictory(pairs: Iterable[tuple[Dim, Dim]], *, empty: bool) -> bool:
    """Whether the equalities exclude each other; unless `empty`, for sizes that are not 0."""
    facts = Facts()
    for a, b in pairs:
        if not empty and isinstance(a, DimExpr) and isinstance(b, DimExpr):
            facts = facts.assume_le(1, a)
        if prove_equal(a, b, facts) is False:
            return True
        facts = facts.assume_equal(a, b)
    return False


def _refuted(
    wanted: Sequence[Dim], given: Sequence[Dim], context: TypeContext, what: str, span: Span | None, *, never: bool
) -> ShapeError:
    """The error for a claim that does not hold: with symbol values that show it, where symbols occur."""
    symbolic = f"declared ({_listed(wanted)}), computed ({_listed(given)})"
    values = _values_that_differ(wanted, given, context)
    if not values:
        return ShapeError(f"{what}: {symbolic}", code="W210", span=span, hint=f"declare ({_listed(given)})")
    setting = ", ".join(f"{name}={value}" for name, value in values.items())
    numbers = [tuple(_value(dim, values) for dim in dims) for dims in (wanted, given)]
    hint = "fix the shape, or use R.match_cast to check it at run time"
    if never:
        empty = "" if _contradictory(zip(wanted, given, strict=True), empty=True) else "but 0 "
        hint = f"no sizes {empty}make them equal: declare ({_listed(given)})"
    return ShapeError(
        f"{what}: {setting}: declared {numbers[0]}, computed {numbers[1]}",
        code="W210",
        span=span,
        notes=[symbolic],
        hint=hint,
    )


def _values_that_differ(wanted: Sequence[Dim], given: Sequence[Dim], context: TypeContext) -> dict[str, int]:
    """Values for all symbols of two shapes at which the shapes differ; such that no size is negative, if there are."""
    names = sorted({name for dim in (*wanted, *given) for name in free_symbols(dim)})
    sizes = context.facts
    for dim in (*wanted, *given):
        sizes = sizes.assume_nonnegative(dim)
    for facts in (sizes, context.facts, None):
        for declared, computed in zip(wanted, given, strict=True):
            values = counterexample(declared, computed, facts)
            if values is not None:
                return {name: values.get(name, 1) for name in names}
    return dict.fromkeys(names, 1)


def _value(dim: Dim, values: Mapping[str, int]) -> int | str:
    try:
        return evaluate(dim, values)
    except ShapeError:  # undefined there (a division by zero)
        return "undefined"


def _listed(dims: Sequence[Dim]) -> str:
    return ", ".join(str(dim) for dim in dims) + ("," if len(dims) == 1 else "")
