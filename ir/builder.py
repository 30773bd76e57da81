"""Building modules step by step: functions, bindings in A-normal form with types, kernels traced from formulas.

    with bb.function("main", [x]):          a scope; ends with emit_func_output
        with bb.dataflow():                 a dataflow block; ends with emit_output
            y = bb.emit(R.add(x, x))        a binding; nested calls become bindings of their own
            y = bb.emit_te(formula, x)      a private kernel in the module (one for equal formulas) and a call_tir of it

Every binding is typed when it is emitted, so errors appear at the emit that causes them. The work is linear in the
number of bindings and does not recurse on the depth of expressions.
"""

# A variable of a function that is not typed yet has no type.
# pyright: reportUnnecessaryComparison=false
# Functions of this file that go through expressions are parts of BlockBuilder.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from typing import Any

import numpy as np

from weft.errors import VerifyError
from weft.ir.deduction.infer import TypeContext, infer_type
from weft.ir.dim import DimExpr
from weft.ir.graph import (
    Binding,
    BindingBlock,
    Call,
    Constant,
    DataflowBlock,
    DataflowVar,
    Expr,
    Function,
    GlobalVar,
    If,
    MatchCast,
    Op,
    PrimValue,
    SeqExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from weft.ir.module import BaseFunc, IRModule
from weft.ir.node import FrozenMap, replace
from weft.ir.structure.structural import structural_equal, structural_hash
from weft.ir.te.emit_te import call_formula
from weft.ir.tensor import PrimFunc
from weft.ir.types import FuncType, TupleType, Type
from weft.support.guards import is_array, is_listing, is_number
from weft.support.records import dataclass

__all__ = ["BlockBuilder", "is_normal", "normalize_function"]


_current: ContextVar[BlockBuilder | None] = ContextVar("current builder", default=None)


@dataclass
class _Scope:
    """Bindings collected for one function or branch."""

    function: bool
    blocks: list[BindingBlock] = field(default_factory=list[BindingBlock])
    bindings: list[Binding] = field(default_factory=list[Binding])
    dataflow: bool = False
    result: Expr | None = None

    def close_block(self) -> None:
        if self.bindings:
            kind = DataflowBlock if self.dataflow else BindingBlock
            self.blocks.append(kind(tuple(self.bindings)))
            self.bindings = []

    def sequence(self, body: Expr) -> SeqExpr:
        self.close_block()
        return SeqExpr(tuple(self.blocks), body)


class _Names:
    """Unique names, each in constant time."""

    def __init__(self, used: Iterable[str] = ()) -> None:
        self._used = set(used)
        self._next: dict[str, int] = {}

    def unique(self, base: str) -> str:
        name = base
        if base in self._used:
            joint = "_" if base[-1:].isdigit() else ""
            count = self._next.get(base, 1)
            while f"{base}{joint}{count}" in self._used:
                count += 1
            self._next[base] = count + 1
            name = f"{base}{joint}{count}"
        self._used.add(name)
        return name


class _ModuleFunctions:
    """The functions of a module that grows; equal private kernels are one."""

    def __init__(self, module: IRModule) -> None:
        self._module = module
        self.by_name: dict[str, BaseFunc | FuncType] = dict(module.functions)
        self.names = _Names(self.by_name)
        self._kernels: dict[int, list[str]] = {}
        self._alone: dict[Any, str] = {}
        """The kernels whose signature no other one has, which are not hashed; empty where several have it."""

    def module(self) -> IRModule:
        """The module with the functions so far; those of which only the type is known stay out."""
        done = {name: function for name, function in self.by_name.items() if not isinstance(function, FuncType)}
        return self._module.with_functions(done)

    def add(self, function: BaseFunc, base: str) -> str:
        """Add a function; its name in the module, which is that of an equal private kernel where there is one."""
        shared = function if isinstance(function, PrimFunc) and function.private else None
        key = None if shared is None else self._hash(shared)
        for known in () if key is None else self._kernels.get(key, ()):
            if structural_equal(self.by_name[known], function):
                return known
        unique = self.names.unique(base)
        named = isinstance(function, (Function, PrimFunc)) and function.name != unique
        self.by_name[unique] = replace(function, name=unique) if named else function
        if key is not None:
            self._kernels.setdefault(key, []).append(unique)
        elif shared is not None:
            self._alone[_signature_of(shared)] = unique
        return unique

    def _hash(self, kernel: PrimFunc) -> int | None:
        """What equal kernels share; None for the first one of its signature."""
        signature = _signature_of(kernel)
        alone = self._alone.get(signature)
        if alone is None:
            return None
        if alone:
            self._alone[signature] = ""
            self._kernels.setdefault(structural_hash(self.by_name[alone]), []).append(alone)
        return structural_hash(kernel)


def _signature_of(kernel: PrimFunc) -> tuple[Any, ...]:
    """What equal kernels share and takes no look at their bodies."""
    return tuple([(x.__class__, x.dtype, len(getattr(x, "shape", ()))) for x in kernel.params])


class BlockBuilder:
    """Builds an IRModule.

    Errors: W483 (used outside the scope it needs), W484 (a function without a result), W485 (an argument that a formula
    cannot take); those of type deduction at the emit that causes them.

    >>> from weft.ir.dim import symbol
    >>> from weft.ir import TensorType, te
    >>> x = Var("x", TensorType((symbol("n"), 4), "float32"))
    >>> bb = BlockBuilder()
    >>> with bb.function("main", [x]):
    ...     y = bb.emit_te(lambda t: te.compute(t.shape, lambda i, j: t[i, j] * 2.0, name="twice"), x)
    ...     _ = bb.emit_func_output(y)
    >>> y.ty.shape, list(bb.get())
    ((n, 4), ['twice', 'main'])
    """

    def __init__(self, module: IRModule | None = None) -> None:
        self._functions = _ModuleFunctions(module or IRModule())
        self._context = TypeContext(functions=self._functions.by_name)
        self._scopes: list[_Scope] = []
        self._names = _Names()
        self._bindings: dict[Var, Expr] = {}
        self._renamed: dict[Var, Var] = {}
        self._params: tuple[Var, ...] = ()

    @property
    def types(self) -> TypeContext:
        """What types are deduced in."""
        return self._context

    # -- modules ------------------------------------------------------------------------------------------------------

    def get(self) -> IRModule:
        """The module built so far."""
        return self._functions.module()

    finalize = get

    def add_func(self, function: BaseFunc, name: str | None = None) -> GlobalVar:
        """Add a function under its name, or the name with the first free number.

        A private PrimFunc that equals one added before is not added again: the reference is to that one.
        """
        return GlobalVar(self._functions.add(function, name or getattr(function, "name", "") or "func"))

    def update_func(self, target: GlobalVar, function: BaseFunc) -> None:
        """Replace a function of the module."""
        if target.name not in self._functions.by_name:
            raise VerifyError(f"the module has no function {target.name!r}", code="W483")
        self._functions.by_name[target.name] = function

    # -- scopes -------------------------------------------------------------------------------------------------------

    @staticmethod
    def current() -> BlockBuilder | None:
        """The builder whose function is being built in this thread or task; None outside of `function`.

        >>> bb = BlockBuilder()
        >>> with bb.function("main", []):
        ...     inside = BlockBuilder.current() is bb
        ...     _ = bb.emit_func_output(Tuple(()))
        >>> inside, BlockBuilder.current()
        (True, None)
        """
        return _current.get()

    @contextmanager
    def function(
        self,
        name: str,
        params: Sequence[Var] | Var | None = None,
        attrs: Mapping[str, Any] | None = None,
        pure: bool = True,
        private: bool = False,
    ) -> Generator[BlockBuilder]:
        """A function of the module; end it with `emit_func_output`, which may also give the parameters."""
        if self._scopes:
            message = f"function {name!r} is begun inside another one"
            raise VerifyError(message, code="W483", hint="finish that one first")
        outer, self._names, self._bindings = self._names, _Names(), {}
        self._params = (params,) if isinstance(params, Var) else tuple(params or ())
        for param in self._params:
            self._names.unique(param.name)
        scope = _Scope(function=True)
        self._scopes.append(scope)
        building = _current.set(self)
        try:
            with self._context.scope():
                yield self
        finally:
            _current.reset(building)
            self._scopes.clear()
            self._names = outer
        if scope.result is None:
            hint = "end it with bb.emit_func_output(value)"
            raise VerifyError(f"function {name!r} has no result", code="W484", hint=hint)
        unique, body = self._functions.names.unique(name), scope.sequence(scope.result)
        made = Function(self._params, body, infer_type(body, self._context), pure=pure, private=private, name=unique)
        self._functions.by_name[unique] = replace(made, attrs=FrozenMap(attrs)) if attrs else made

    @contextmanager
    def dataflow(self) -> Generator[BlockBuilder]:
        """A dataflow block; what leaves it goes through `emit_output`."""
        scope = _open_scope(self, "dataflow")
        if scope.dataflow:
            raise VerifyError("a dataflow block is begun inside another one", code="W483")
        scope.close_block()
        scope.dataflow = True
        try:
            yield self
            scope.close_block()
        finally:
            scope.dataflow = False

    @contextmanager
    def collect(self, dataflow: bool = False) -> Generator[list[Binding]]:
        """Bindings apart from any function, for passes that replace one: what is emitted inside goes into the list."""
        scope, facts = _Scope(function=False, dataflow=dataflow), self._context.facts
        self._scopes.append(scope)
        try:
            yield scope.bindings
        except BaseException:
            self._context.facts = facts  # of checks that nothing will make
            raise
        finally:
            self._scopes.pop()

    def begin_scope(self, params: Sequence[Var] | None = None) -> None:
        """Begin bindings of their own, apart from any function, until `end_scope`; `params` are visible in them."""
        for param in params or ():
            self._names.unique(param.name)
        self._scopes.append(_Scope(function=False))

    def end_scope(self) -> SeqExpr:
        """End what `begin_scope` began; the bindings, with nothing as their result. VerifyError W483 where none is."""
        if not self._scopes or self._scopes[-1].function:
            raise VerifyError("end_scope is used where no scope was begun", code="W483", hint="bb.begin_scope()")
        return self._scopes.pop().sequence(Tuple(()))

    def current_block_is_dataflow(self) -> bool:
        """Whether bindings go into a dataflow block now."""
        return bool(self._scopes) and self._scopes[-1].dataflow

    # -- bindings -----------------------------------------------------------------------------------------------------

    def emit(self, expr: Any, name_hint: str = "") -> Var:
        """Bind an expression to a new variable; nested calls are bound first.

        Python values are taken too: tuples, arrays, numbers, strings.
        """
        scope = _open_scope(self, "emit")
        value = self.normalize(_as_expr(expr))
        return _bind(self, value, name_hint or ("lv" if scope.dataflow else "gv"))

    def match_cast(self, expr: Any, ty: Type, name_hint: str = "") -> Var:
        """Bind a value with a run-time check that it has the given type, which may name new symbols."""
        scope = _open_scope(self, "match_cast")
        value = _leaf(self, _as_expr(expr))
        self._context.learn(ty, infer_type(value, self._context))
        kind = DataflowVar if scope.dataflow else Var
        var = kind(self._names.unique(name_hint or ("lv" if scope.dataflow else "gv")), ty)
        scope.bindings.append(MatchCast(var, value, ty))
        self._bindings[var] = value
        return var

    def emit_output(self, expr: Any, name_hint: str = "gv") -> Var:
        """Bind an expression to a variable that is visible after the dataflow block."""
        if not _open_scope(self, "emit_output").dataflow:
            raise VerifyError("emit_output is used outside a dataflow block", code="W483", hint="use emit")
        return _bind(self, self.normalize(_as_expr(expr)), name_hint, output=True)

    def emit_func_output(self, output: Any, params: Sequence[Var] | Var | None = None) -> None:
        """Give the function its result, and its parameters where `function` did not."""
        scope = _open_scope(self, "emit_func_output")
        if scope.dataflow:
            message = "emit_func_output is used inside a dataflow block"
            raise VerifyError(message, code="W483", hint="use emit_output there")
        if params is not None:
            if self._params:
                raise VerifyError("the function already has parameters", code="W483")
            self._params = (params,) if isinstance(params, Var) else tuple(params)
        result = _leaf(self, _as_expr(output))
        for leaf in result.fields if isinstance(result, Tuple) else (result,):
            if isinstance(leaf, DataflowVar):
                message = f"{leaf.name!r} does not leave its dataflow block"
                raise VerifyError(message, code="W483", hint="bind it with emit_output")
        scope.result = result

    def emit_normalized(self, binding: Binding) -> Var:
        """Append a binding as it is; its parts are in normal form and its variable has a type."""
        _open_scope(self, "emit_normalized").bindings.append(binding)
        self._bindings[binding.var] = binding.value
        return binding.var

    def lookup_binding(self, var: Var) -> Expr | None:
        """The value bound to a variable of this function, or None."""
        return self._bindings.get(var)

    def type_of(self, expr: Expr) -> Type:
        """The type that an expression would have here; what it leaves to check teaches nothing."""
        with self._context.scope():
            return infer_type(expr, self._context)

    def get_unique_name(self, base: str) -> str:
        """`base`, or `base` with the first free number; the name is taken from now on."""
        return self._names.unique(base)

    # -- formulas -----------------------------------------------------------------------------------------------------

    def call_te(self, formula: Callable[..., Any], *args: Any, **options: Any) -> Call:
        """The call of the kernel that a tensor-expression function computes.

        Graph values among the arguments (in lists, tuples and dictionaries too) become te tensors, numbers and
        dimensions; the rest is passed as it is. `primfunc_name_hint` names the kernel, `primfunc_attrs` gives it
        attributes.
        """
        return call_formula(
            formula,
            args,
            options,
            leaf=lambda value: _leaf(self, value),
            infer=lambda value: infer_type(value, self._context),
            add=self.add_func,
        )

    def call_te_with_grad(
        self,
        formula: Callable[..., Any],
        *args: Any,
        te_grad_name: str,
        te_grad_kwargs: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Call:
        """As `call_te`, of a kernel whose gradient is registered under a name."""
        call = self.call_te(formula, *args, **options)
        given = {"te_grad_name": te_grad_name, **({"te_grad_kwargs": te_grad_kwargs} if te_grad_kwargs else {})}
        return replace(call, op=Op("call_tir_with_grad"), attrs=FrozenMap(given))

    def emit_te(self, formula: Callable[..., Any], *args: Any, name_hint: str = "", **options: Any) -> Var:
        """Bind the result of a tensor-expression function; see `call_te`."""
        _open_scope(self, "emit_te")
        return self.emit(self.call_te(formula, *args, **options), name_hint)

    # -- normal form --------------------------------------------------------------------------------------------------

    def normalize(self, expr: Expr) -> Expr:
        """The expression with leaf operands: nested calls are bound in the current block, each once."""
        return _normalized(self, expr, leaf=False)


def _open_scope(builder: BlockBuilder, what: str) -> _Scope:
    if not builder._scopes:
        hint = 'write `with bb.function("main", [x]):`'
        raise VerifyError(f"{what} is used outside a function", code="W483", hint=hint)
    if builder._scopes[-1].result is not None:
        raise VerifyError(f"{what} is used after emit_func_output", code="W483")
    return builder._scopes[-1]


def _bind(builder: BlockBuilder, value: Expr, name: str, output: bool = False) -> Var:
    scope = _open_scope(builder, "a nested expression")
    ty = infer_type(value, builder._context)
    if _is_void(ty):
        name = "_"
    kind = DataflowVar if scope.dataflow and not output else Var
    var = kind(name if name == "_" else builder._names.unique(name), ty, span=value.span)
    scope.bindings.append(VarBinding(var, value, span=value.span))
    builder._bindings[var] = value
    return var


def _leaf(builder: BlockBuilder, expr: Expr) -> Expr:
    return _normalized(builder, expr, leaf=True)


# Normal form --------------------------------------------------------------------------------------------------------


def _normalized(builder: BlockBuilder, root: Expr, leaf: bool) -> Expr:
    done: dict[int, Expr] = {}
    stack: list[tuple[Expr, bool]] = [(root, False)]
    while stack:
        current, expanded = stack.pop()
        if id(current) in done:
            continue
        if not expanded:
            stack.append((current, True))
            stack.extend((operand, False) for operand in reversed(_operands(current)) if id(operand) not in done)
            continue
        new = _rebuilt(builder, current, done)
        if (leaf or current is not root) and not _is_leaf(new):
            new = _bind(builder, new, "lv" if builder.current_block_is_dataflow() else "gv")
        done[id(current)] = new
    return done[id(root)]


def _rebuilt(builder: BlockBuilder, current: Expr, done: Mapping[int, Expr]) -> Expr:
    """The expression over its normalised operands; the same object when none changed."""

    def of(operands: tuple[Expr, ...]) -> tuple[Expr, ...]:
        new = tuple(done[id(operand)] for operand in operands)
        return operands if all(a is b for a, b in zip(new, operands, strict=True)) else new

    if isinstance(current, Var):
        return builder._renamed.get(current, current)
    if isinstance(current, Call):
        return replace(current, op=done[id(current.op)], args=of(current.args))
    if isinstance(current, Tuple):
        return replace(current, fields=of(current.fields))
    if isinstance(current, TupleGetItem):
        return replace(current, value=done[id(current.value)])
    if isinstance(current, If):
        branches = _branch(builder, current.then_branch), _branch(builder, current.else_branch)
        return replace(current, cond=done[id(current.cond)], then_branch=branches[0], else_branch=branches[1])
    if isinstance(current, SeqExpr):
        for block in current.blocks:
            _emit_block(builder, block, inline=True)
        return _leaf(builder, current.body)
    if isinstance(current, Function):
        return _local_function(builder, current)
    return current


def _branch(builder: BlockBuilder, branch: Expr) -> SeqExpr:
    """A branch of an If in normal form, in a scope of its own."""
    sequence = branch if isinstance(branch, SeqExpr) else SeqExpr((), branch)
    if _is_normal_sequence(sequence) and not builder._renamed:
        return sequence
    builder._scopes.append(_Scope(function=False))
    try:
        for block in sequence.blocks:
            _emit_block(builder, block)
        return builder._scopes[-1].sequence(_leaf(builder, sequence.body))
    finally:
        builder._scopes.pop()


def _local_function(builder: BlockBuilder, function: Function) -> Function:
    body = _branch(builder, function.body)
    return replace(function, body=body)


def _emit_block(builder: BlockBuilder, block: BindingBlock, inline: bool = False) -> None:
    """Append the bindings of a block in normal form; `inline` puts them into the current block."""
    scope = builder._scopes[-1]
    outer = scope.dataflow
    if not inline:
        scope.close_block()
        scope.dataflow = isinstance(block, DataflowBlock)
    for binding in block.bindings:
        _emit_binding(builder, binding)
    if not inline:
        scope.close_block()
        scope.dataflow = outer


def _emit_binding(builder: BlockBuilder, binding: Binding) -> None:
    if isinstance(binding, MatchCast):
        value = _leaf(builder, binding.value)
        new: Binding = replace(binding, value=value)
        if binding.var.ty is None:
            new = replace(new, var=_typed(builder, binding.var, binding.ty))
    else:
        value = builder.normalize(binding.value)
        new = replace(binding, value=value)
        if binding.var.ty is None:
            new = replace(new, var=_typed(builder, binding.var, infer_type(value, builder._context)))
    builder._scopes[-1].bindings.append(new)
    builder._bindings[new.var] = value


def _typed(builder: BlockBuilder, var: Var, ty: Type) -> Var:
    new = builder._renamed[var] = type(var)(var.name, ty, span=var.span)
    return new


def _is_void(ty: Type) -> bool:
    """Whether a type has no value."""
    return isinstance(ty, TupleType) and not ty.fields


def _as_expr(value: Any) -> Expr:
    """Python values as graph expressions."""
    if isinstance(value, Expr):
        return value
    if is_listing(value):
        return Tuple(tuple(_as_expr(item) for item in value))
    if is_array(value) or is_number(value):
        return Constant(np.asarray(value))
    if isinstance(value, (bool, int, float, DimExpr)):
        return PrimValue(value)
    if isinstance(value, str):
        return StringImm(value)
    raise VerifyError(f"a {type(value).__name__} is not an expression", code="W486")


_INNER = (Call, TupleGetItem, If, SeqExpr, Function)


def _operands(expr: Expr) -> Sequence[Expr]:
    if isinstance(expr, Call):
        return (expr.op, *expr.args)
    if isinstance(expr, Tuple):
        return expr.fields
    if isinstance(expr, TupleGetItem):
        return (expr.value,)
    return (expr.cond,) if isinstance(expr, If) else ()


def _is_leaf(expr: Expr) -> bool:
    """Whether an expression may stand as an operand."""
    stack = [expr]
    while stack:
        current = stack.pop()
        if isinstance(current, _INNER):
            return False
        if isinstance(current, Tuple):
            stack.extend(current.fields)
    return True


def _is_normal_sequence(sequence: Expr) -> bool:
    if not isinstance(sequence, SeqExpr) or not _is_leaf(sequence.body):
        return False
    return all(_is_normal_binding(binding) for block in sequence.blocks for binding in block.bindings)


def _is_normal_binding(binding: Binding) -> bool:
    value = binding.value
    if binding.var.ty is None:
        return False
    if isinstance(binding, MatchCast):
        return _is_leaf(value)
    if isinstance(value, If):
        return (
            _is_leaf(value.cond) and _is_normal_sequence(value.then_branch) and _is_normal_sequence(value.else_branch)
        )
    if isinstance(value, Function):
        return _is_normal_sequence(value.body)
    return not isinstance(value, SeqExpr) and all(_is_leaf(operand) for operand in _operands(value))


def is_normal(function: Function) -> bool:
    """Whether a function is in A-normal form with a type on every bound variable."""
    return _is_normal_sequence(function.body)


def normalize_function(function: Function, functions: Mapping[str, BaseFunc | FuncType] | None = None) -> Function:
    """The function in A-normal form with types; the same object when it is so already.

    `functions` are those it may call, by name.
    """
    if is_normal(function):
        return function
    builder = BlockBuilder()
    builder._functions.by_name.update(functions or {})
    for bound in _bound_names(function):
        builder._names.unique(bound)
    return _local_function(builder, function)


def _bound_names(function: Function) -> Iterator[str]:
    stack: list[Expr] = [function]
    while stack:
        current = stack.pop()
        if isinstance(current, Function):
            yield from (param.name for param in current.params)
            stack.append(current.body)
        elif isinstance(current, SeqExpr):
            for block in current.blocks:
                for binding in block.bindings:
                    yield binding.var.name
                    stack.append(binding.value)
            stack.append(current.body)
        elif isinstance(current, If):
            stack.extend((current.then_branch, current.else_branch))
