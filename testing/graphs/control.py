"""Branches and local functions."""

from __future__ import annotations

from functools import partial

from weft.ir.deduction.infer import infer_type
from weft.ir.graph import (
    BindingBlock,
    Call,
    Expr,
    Function,
    If,
    SeqExpr,
    Tuple,
    Var,
    VarBinding,
)
from weft.ir.node import replace
from weft.ir.types import FuncType, PrimType, TensorType, Type
from weft.testing.graphs.sequences import result, sequence
from weft.testing.graphs.state import FunctionState, Rejected
from weft.testing.graphs.types import is_definite, same_type
from weft.transform.infra.generators.values import constant


def condition(f: FunctionState) -> Var:
    """A visible truth value, or a new parameter."""
    fitting = [
        var
        for var in f.visible
        if (isinstance(var.ty, TensorType) and var.ty.dims == () and var.ty.dtype == "bool" and var in f.exact)
        or (isinstance(var.ty, PrimType) and var.ty.dtype == "bool")
    ]
    if fitting and f.choices.flip(80):
        return f.choices.pick(fitting[::-1])
    if f.nested:
        raise Rejected
    return f.parameter(f.choices.pick((TensorType((), "bool"), PrimType("bool"))))


def conditional(f: FunctionState) -> tuple[Expr, bool]:
    """An `if` whose branches give values of one type."""
    chosen = condition(f)
    branches: list[SeqExpr] = []
    wanted: Type | None = None
    exact = True
    for _ in range(2):
        with f.inner():
            made = branch(f, wanted)
        assert isinstance(made.body, Var)
        wanted = made.body.ty
        exact = exact and made.body in f.exact
        branches.append(made)
    return If(chosen, branches[0], branches[1]), exact


def branch(f: FunctionState, wanted: Type | None) -> SeqExpr:
    """A branch whose result is bound last; of the wanted type when something is."""
    before = len(f.visible)
    made = sequence(f, f.choices.integer(1, 2), lambda: Tuple(()), blocks_allowed=False)
    bindings = list(made.blocks[0].bindings) if made.blocks else []
    inner = f.visible[before:]
    fitting = [var for var in f.visible if wanted is not None and same_type(var.ty, wanted)]
    if wanted is not None and fitting and not (inner and inner[-1] in fitting):
        source = f.choices.pick(fitting)
        var = Var(f.choices.name(), source.ty)
        bindings.append(VarBinding(var, source))
        f.visible.append(var)
        if source in f.exact:
            f.exact.add(var)
    elif not inner or bindings[-1].var is not inner[-1] or isinstance(inner[-1].ty, FuncType):
        value = constant(f.choices, runnable=f.runnable)
        var = Var(f.choices.name(), value.ty)
        bindings.append(VarBinding(var, value))
        f.exact.add(var)
    return SeqExpr((BindingBlock(tuple(bindings)),), bindings[-1].var)


def nested_function(f: FunctionState) -> tuple[Expr, bool]:
    """A local function; it may use what is visible."""
    choices = f.choices
    like = [var for var in f.known_tensors()]
    if not like:
        raise Rejected
    outer_pure = f.pure
    with f.inner():
        f.pure = True
        params = []
        for _ in range(choices.integer(1, 2)):
            var = Var(choices.name(), replace(choices.pick(like[::-1]).ty, vdevice=None))
            params.append(var)
            f.visible.append(var)
        body = sequence(f, choices.integer(1, 3), partial(result, f))
        pure = f.pure
        f.pure = outer_pure
        ret = infer_type(body, f.context())
        if f.runnable and not is_definite(ret):
            raise Rejected
        name = choices.name()
    return Function(tuple(params), body, ret, pure, name=name), False


def closure_call(f: FunctionState) -> tuple[Expr, bool]:
    """A call of a visible local function."""
    closures = [var for var in f.visible if isinstance(var.ty, FuncType) and var.ty.params is not None]
    if not closures:
        raise Rejected
    var = f.choices.pick(closures[::-1])
    signature = var.ty
    assert isinstance(signature, FuncType)
    args = []
    for ty in signature.params or ():
        fitting = [value for value in f.visible if same_type(value.ty, ty)]
        if not fitting:
            raise Rejected
        args.append(f.choices.pick(fitting))
    f.pure = f.pure and signature.pure
    return Call(var, tuple(args)), False
