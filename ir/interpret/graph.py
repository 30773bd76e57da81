"""Graph-level functions, evaluated binding by binding.

A scope holds the values of variables and of symbols; a nested function sees the scope it was made in. Arguments,
results and the declared type of every binding are checked; so are the conditions that type deduction left open. New
tensors (outputs of kernels, allocations) hold nothing until they are written, and reading them before is an error.
"""

# A parameter of a function that is not typed yet has no type.
# pyright: reportUnnecessaryComparison=false

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol, cast

import numpy as np

from weft.dtypes import conversion_hint
from weft.errors import (
    ArgumentError,
    BoundsError,
    OutOfMemoryError,
    ShapeError,
    Span,
    VerifyError,
    WeftError,
    note_call,
    note_caller,
)
from weft.ir.attrs import DPS
from weft.ir.deduction.infer import ShapeCheck, TypeContext, infer_type, quick_type
from weft.ir.dim import Dim, DimExpr
from weft.ir.dim.upper_bounds import upper_bounds
from weft.ir.graph import (
    Binding,
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
from weft.ir.interpret import values
from weft.ir.interpret.closures.compiled import Lookup
from weft.ir.interpret.closures.intrinsics import missing_function
from weft.ir.interpret.kernel import Caller, Kernel
from weft.ir.interpret.memory import Memory
from weft.ir.interpret.scalars import coerce
from weft.ir.interpret.symbols import SymbolTable, shape_text
from weft.ir.kernel.extents import tensor_bytes
from weft.ir.module import IRModule
from weft.ir.tensor import Buffer, PrimExpr, PrimFunc
from weft.ir.types import TensorType, TupleType, Type
from weft.support.array_memory import memory_bytes
from weft.support.guards import is_tuple
from weft.support.isolation import Isolated, hand_over, map_items, raised_outside, tuple_items

__all__ = ["Closure", "Evaluator", "Scope", "Session", "Storage"]


class Home(Protocol):
    """The interpreter of the module that a function belongs to."""

    module: IRModule
    lookup: Lookup
    deduced: dict[int, tuple[Call, Type, list[ShapeCheck]]]
    apply_operator: Callable[[Any, str, Call, Any], Any]

    def kernel(self, function: PrimFunc) -> Kernel:
        """The compiled form of a PrimFunc."""
        ...


class Storage:
    """Bytes that tensors are laid out in, and which of them lie where: (start, end, tensor)."""

    def __init__(self, size: int) -> None:
        self.raw = np.full(size, 0xA5, np.uint8)
        self.places: list[tuple[int, int, np.ndarray]] = []


class Session:
    """What one call from outside keeps: the trace, and the marks of tensors that are not wholly written."""

    def __init__(self, home: Home, trace: list[tuple[str, Any]] | None = None) -> None:
        self.home = home
        self.trace = trace
        self.partial: dict[int, tuple[np.ndarray, Memory]] = {}
        self.dead: dict[int, Any] = {}
        self.homes: dict[int, tuple[np.ndarray, Storage]] = {}

    def allocate(self, shape: Sequence[int], dtype: str, name: str = "tensor") -> np.ndarray:
        """A tensor that holds nothing; its elements are marked as they are written."""
        array = poisoned(shape, dtype)
        return self.watch(array, name)

    def place(self, storage: Storage, start: int, array: np.ndarray) -> None:
        """Put a tensor into a storage: those that lay there before have lost their memory."""
        end = start + array.nbytes
        kept: list[tuple[int, int, np.ndarray]] = []
        for first, last, other in storage.places:
            if array.nbytes and first < end and start < last:
                self.dead[id(other)] = other
            else:
                kept.append((first, last, other))
        storage.places = [*kept, (start, end, array)]
        self.homes[id(array)] = (array, storage)

    def alias(self, array: np.ndarray, view: np.ndarray) -> None:
        """A view of a tensor loses its memory together with it."""
        if id(array) in self.dead:
            self.dead[id(view)] = view
        home = self.homes.get(id(array))
        if home is not None:
            storage = home[1]
            storage.places += [(first, last, view) for first, last, other in storage.places if other is array]
            self.homes[id(view)] = (view, storage)

    def watch(self, array: np.ndarray, name: str) -> np.ndarray:
        """Take the elements of an array as not written."""
        memory = Memory.of_array(array, 1, written=False, strict=True, name=name)
        self.partial[id(array)] = (array, memory)
        return array

    def memory_of(self, value: Any) -> Memory | None:
        """The marks of a tensor that was not wholly written when last looked at."""
        entry = self.partial.get(id(value))
        return None if entry is None else entry[1]

    def written(self, value: Any) -> None:
        """Take a tensor as wholly written."""
        self.partial.pop(id(value), None)

    def require(self, value: Any, what: str, span: Span | None) -> None:
        """BoundsError W901 when a tensor is read that is not wholly written, W911 when its memory was given back."""
        if is_tuple(value):
            map_items(value, tuple_items, lambda item: self.require(item, what, span))
        elif id(value) in self.dead:
            raise BoundsError(f"{what} is used after its memory was given back", code="W911", span=span)
        elif id(value) in self.partial:
            memory = self.partial[id(value)][1]
            first = memory.first_unwritten()
            if first is None:
                self.written(value)
                return
            index = cast("tuple[Any, ...]", np.unravel_index(first // value.itemsize, value.shape))
            raise BoundsError(
                f"{what} is read before element {shape_text(tuple(int(i) for i in index))} is written",
                code="W901",
                span=span,
            )


def poisoned(shape: Sequence[int], dtype: str) -> np.ndarray:
    """An array whose bytes mean nothing; ShapeError W225 for a negative size."""
    from weft.dtypes import storage

    if any(size < 0 for size in shape):
        raise ShapeError(f"a tensor of shape {shape_text(tuple(shape))} has a negative size", code="W225")
    try:
        array = np.empty(tuple(shape), storage(dtype))
    except (MemoryError, ValueError):  # more than there is, more than an array can have
        raise OutOfMemoryError(f"no memory for a tensor of {tensor_bytes(shape, dtype)} bytes", code="W950") from None
    memory_bytes(array)[:] = 0xA5
    return array


def _noted(function: Callable[..., Any], name: str, span: Span | None) -> Callable[..., Any]:
    """A user's function whose exceptions say where it was called."""

    def called(*args: Any) -> Any:
        try:
            return function(*args)
        except WeftError:
            raise
        except Exception as error:  # it stays what it is
            note_call(error, name, span)
            raise

    return called


class Scope:
    """The values of variables and symbols; lookups go outward."""

    __slots__ = ("outer", "symbols", "variables")

    def __init__(self, outer: Scope | None = None) -> None:
        self.outer = outer
        self.variables: dict[Var, Any] = {}
        self.symbols = SymbolTable(outer.symbols if outer else None)

    def lookup(self, var: Var) -> Any:
        """The value of a variable; VerifyError W401 when it has none."""
        scope: Scope | None = self
        while scope is not None:
            if var in scope.variables:
                return scope.variables[var]
            scope = scope.outer
        raise VerifyError(f"variable {var.name!r} is not defined", code="W401", span=var.span)


class Closure:
    """A function value: a function with the scope it was made in and the arguments that are fixed already."""

    def __init__(
        self, evaluator: Evaluator, function: Function, scope: Scope | None, fixed: tuple[Any, ...] = ()
    ) -> None:
        self.evaluator = evaluator
        self.function = function
        self.scope = scope
        self.fixed = fixed

    def __call__(self, /, *args: Any) -> Any:
        """Call with the remaining arguments."""
        return self.run(args)

    def run(self, args: Sequence[Any]) -> Any:
        """Call with the remaining arguments: as a method, for a call of an object takes the stack of the thread."""
        return self.evaluator.call(self.function, (*self.fixed, *args), self.scope)


def _launched(kernel: Kernel, args: Sequence[Any], caller: Caller) -> Any:
    """What a kernel returns; its errors say where it was called."""
    try:
        return kernel.run(args, caller)
    except Exception as error:
        note_caller(error, caller.span)
        raise


class Evaluator:
    """Evaluates the functions of one module within one session."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.home = session.home

    # Functions

    def call(
        self, function: Function, args: Sequence[Any], outer: Scope | None = None, error: type[WeftError] = ShapeError
    ) -> Any:
        """Call a function: check the arguments, run the body, check the result."""
        scope = Scope(outer)
        _bind_parameters(function, args, scope, error)
        try:
            result = self.sequence(function.body, scope)
            return _checked(result, function.ret_type, f"the result of {function.name}", scope, function.body.body.span)
        except WeftError as failure:
            raise _with_symbols(failure, function, scope) from None

    # Bindings

    def sequence(self, node: SeqExpr, scope: Scope) -> Any:
        """Run the bindings in order and give the value of the body."""
        for block in node.blocks:
            for binding in block.bindings:
                try:
                    self._bind(binding, scope)
                except WeftError as failure:
                    raise failure.at(binding.value.span or binding.span) from None
                except MemoryError as failure:
                    if raised_outside(failure):
                        raise
                    message = self._no_memory(binding, scope) or f"no memory for {binding.var.name}: {failure}"
                    raise OutOfMemoryError(message, code="W950", span=binding.value.span or binding.span) from None
        return self.value(node.body, scope)

    def _no_memory(self, binding: Binding, scope: Scope) -> str | None:
        """The message for a value that there is no memory for, where its size is known."""
        try:
            shape = self.sizes_of(binding.var.ty, scope)
        except WeftError:
            shape = None
        if shape is None:
            return None
        return f"no memory for {binding.var.name}: {tensor_bytes(shape, binding.var.ty.dtype)} bytes"  # type: ignore[union-attr]

    def sizes_of(self, ty: Type | None, scope: Scope) -> tuple[int, ...] | None:
        """The sizes of a tensor of a type as far as they are written out."""
        if not isinstance(ty, TensorType) or ty.dims is None or ty.dtype is None:
            return None
        return tuple(scope.symbols.value(dim) for dim in ty.dims)

    def _bind(self, binding: Binding, scope: Scope) -> None:
        value = self.evaluate(binding.value, scope)
        if isinstance(binding, MatchCast):
            what = f"match_cast of {binding.var.name}"
            value = _checked(value, binding.ty, what, scope, binding.span)
        elif isinstance(binding.value, (Call, If)):
            outside = _called_outside(binding.value)
            what = binding.var.name or "a value" if outside is None else f"the result of {outside!r}"
            code = "W222" if outside is None else "W223"
            value = _checked(value, binding.var.ty, what, scope, binding.value.span, code)
        scope.variables[binding.var] = value
        if self.session.trace is not None:
            self.session.trace.append((binding.var.name, value))

    # Expressions

    def evaluate(self, node: Expr, scope: Scope) -> Any:
        """The value of any expression."""
        if isinstance(node, Call):
            return self._call(node, scope)
        if isinstance(node, If):
            condition = self.read(node.cond, scope)
            return self.sequence(node.then_branch if bool(np.all(condition)) else node.else_branch, scope)
        if isinstance(node, SeqExpr):
            return self.sequence(node, scope)
        return self.value(node, scope)

    def read(self, node: Expr, scope: Scope) -> Any:
        """The value of an expression whose elements are about to be read."""
        value = self.value(node, scope)
        self.session.require(value, _name(node), node.span)
        return value

    def value(self, node: Expr, scope: Scope) -> Any:
        """The value of a leaf, tuple or tuple field."""
        evaluate = _VALUES.get(type(node))
        if evaluate is None:
            if isinstance(node, (Call, If, SeqExpr)):
                return self.evaluate(node, scope)
            if isinstance(node, PrimExpr):
                return _prim_value(node, scope)
            raise ArgumentError(
                f"cannot interpret a {type(node).__name__} in a graph function", code="W860", span=node.span
            )
        return evaluate(self, node, scope)

    def global_(self, node: GlobalVar, scope: Scope) -> Any:
        """A function of the module as a value."""
        function = self.home.module[node.name]
        if isinstance(function, Function):
            return Closure(self, function, None)
        if isinstance(function, ExternFunc):
            return self.external(function.name, node.span)
        return self.home.kernel(function)

    def external(self, name: str, span: Span | None) -> Callable[..., Any]:
        """The Python function behind an external symbol; ArgumentError W861 when there is none."""
        function = self.home.lookup(name)
        if function is None:
            raise missing_function(name, span)

        if isinstance(function, Isolated):
            return Isolated(_noted(function.function, name, span), function.fixed)
        return _noted(function, name, span)

    # Calls

    def _call(self, node: Call, scope: Scope) -> Any:
        callee = node.op
        if isinstance(callee, Op):
            self._open_checks(node, scope)
            return self.home.apply_operator(self, callee.name, node, scope)
        if isinstance(callee, ExternFunc):
            return self.call_external(node, callee.name, scope)
        if isinstance(callee, GlobalVar):
            function = self.home.module[callee.name]
            if isinstance(function, PrimFunc):
                return self.run_in_place(function, [self.value(arg, scope) for arg in node.args], node.span)
            if isinstance(function, ExternFunc):
                return self.call_external(node, function.name, scope)
            return self.call(function, [self.value(arg, scope) for arg in node.args])
        function = self.value(callee, scope)
        if isinstance(function, Closure):
            return function.run([self.value(arg, scope) for arg in node.args])
        if not callable(function):
            raise ArgumentError(f"{_name(callee)} is not a function", code="W851", span=node.span)
        return hand_over(function, *(values.typed(self.value(arg, scope), quick_type(arg)) for arg in node.args))

    def _deduced(self, node: Call) -> tuple[Call, Type, list[ShapeCheck]]:
        """The type of a call of an operator and the equalities that deduction left open (the node keeps its id)."""
        found = self.home.deduced.get(id(node))
        if found is None:
            context = TypeContext(self.home.module.functions)
            found = self.home.deduced[id(node)] = (node, infer_type(node, context), context.checks)
        return found

    def type_of(self, node: Call) -> Type:
        """The deduced type of a call of an operator, or of a declared function."""
        return self._deduced(node)[1]

    def _open_checks(self, node: Call, scope: Scope) -> None:
        """Test the equalities that type deduction could not decide, for the symbols' values."""
        for check in self._deduced(node)[2]:
            names = {name for dim in (check.lhs, check.rhs) if isinstance(dim, DimExpr) for name in dim.names}
            if not names <= set(scope.symbols.values):
                continue  # a symbol that only the result defines
            left, right = scope.symbols.value(check.lhs), scope.symbols.value(check.rhs)
            if not check.holds(left, right):
                raise ShapeError(
                    f"{check.reason}: {_found(check, left, right)}",
                    code="W222",
                    span=check.span or node.span,
                    notes=[scope.symbols.explain((check.lhs, check.rhs))],
                )

    def call_external(self, node: Call, name: str, scope: Scope) -> Any:
        """Call an external function; with `dps` its outputs are its last arguments."""
        function = self.external(name, node.span)
        in_place = bool(node.attrs.get(DPS))
        args = [self.value(arg, scope) for arg in node.args]
        if not in_place:
            self.session.require(tuple(args), f"an argument of {name}", node.span)
        result = hand_over(function, *map(values.typed, args, map(quick_type, node.args)))
        for arg in args:
            self.session.written(arg)
        ty = self.type_of(node) if isinstance(node.op, GlobalVar) else quick_type(node)  # a declaration says it
        return () if in_place or (isinstance(ty, TupleType) and not ty.fields) else result

    def run_in_place(self, function: PrimFunc, args: Sequence[Any], span: Span | None) -> Any:
        """A call of a kernel as it is: outputs are among the arguments, and what it returns is the value."""
        for arg in args:
            if id(arg) in self.session.dead:
                self.session.require(arg, f"an argument of {function.name}", span)
        partial = {i: memory for i, arg in enumerate(args) if (memory := self.session.memory_of(arg)) is not None}
        caller = Caller(ShapeError, span=span, outputs=frozenset(), partial=partial)
        returned = _launched(self.home.kernel(function), args, caller)
        for arg in args:
            memory = self.session.memory_of(arg)
            if memory is not None and memory.first_unwritten() is None:
                self.session.written(arg)
        return () if returned is None else returned

    def run_kernel(
        self,
        name: str,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        extra: Sequence[Any],
        span: Span | None,
        inplace: Collection[int] = (),
    ) -> None:
        """Run a kernel whose `outputs` hold nothing yet and must be wholly written; it may write the inputs at
        `inplace`.
        """
        function = self.home.module[name]
        if not isinstance(function, PrimFunc):
            raise ArgumentError(f"{name} is not a kernel", code="W865", span=span)
        kernel = self.home.kernel(function)
        for position, param in enumerate(function.params[: len(inputs)]):
            if isinstance(param, Buffer) and kernel.written.get(param) and position not in inplace:
                message = f"kernel {name} writes its input {param.name!r}, and the call promises that it does not"
                raise VerifyError(message, code="W435", span=span)
        positions = frozenset(range(len(inputs), len(inputs) + len(outputs)))
        caller = Caller(ShapeError, span=span, outputs=positions)
        _launched(kernel, [*inputs, *outputs, *extra], caller)

    def allocate_type(self, ty: Type, scope: Scope, span: Span | None) -> np.ndarray:
        """A tensor of a type, holding nothing."""
        if not isinstance(ty, TensorType) or ty.dtype is None or ty.shape is None:
            raise ShapeError(
                f"an output needs a shape and a dtype, got {values.expected_text(ty)}", code="W206", span=span
            )
        shape = (
            scope.lookup(ty.shape)
            if isinstance(ty.shape, Var)
            else tuple(scope.symbols.value(d) for d in ty.dims or ())
        )
        return poisoned(shape, ty.dtype)

    def result_types(self, node: Call) -> tuple[Type, ...]:
        """The types of the outputs of a call that states them."""
        ty = node.ty_args[0]
        return ty.fields if isinstance(ty, TupleType) else (ty,)


def _bind_parameters(function: Function, args: Sequence[Any], scope: Scope, error: type[WeftError]) -> None:
    names = ", ".join(param.name for param in function.params)
    if len(args) != len(function.params):
        raise error(
            f"{function.name} takes {len(function.params)} arguments ({names}), got {len(args)}",
            code="W850",
            span=function.span,
        )
    adopted = [values.adopt(arg, param.ty) for param, arg in zip(function.params, args, strict=True)]
    if error is ArgumentError:  # they come from outside
        adopted = [values.masked(value, param.ty) for param, value in zip(function.params, adopted, strict=True)]
    triples: list[tuple[Any, Type, str]] = []
    for position, (param, value) in enumerate(zip(function.params, adopted, strict=True), 1):
        scope.variables[param] = value
        if param.ty is not None:
            triples.append((value, param.ty, f"argument {position} `{param.name}`"))
    try:
        values.check(triples, scope.symbols, scope.lookup)
        _check_bounds(function, scope)
    except values.Mismatch as mismatch:
        place = mismatch.place
        param = function.params[int(place.split()[1]) - 1]
        # A call inside the program is wrong at the call, one from outside at what it should have been.
        outside = error is ArgumentError
        span, hint = param.span if outside else None, None
        if outside and mismatch.kind == "W851" and isinstance(param.ty, TensorType):
            hint = conversion_hint(param.name, scope.variables[param], param.ty.dtype)
        raise error(f"{place} of {function.name}: {mismatch}", code=mismatch.kind, span=span, hint=hint) from None


def _called_outside(value: Expr) -> str | None:
    """The name of the function outside of the module that a call is of."""
    if isinstance(value, Call) and isinstance(value.op, ExternFunc):
        return value.op.name
    first = value.args[0] if isinstance(value, Call) and isinstance(value.op, Op) and value.args else None
    return first.name if isinstance(first, ExternFunc) else None


def _checked(value: Any, ty: Type | None, what: str, scope: Scope, span: Span | None, code: str = "W222") -> Any:
    """A value in the form of its type; ShapeError W222 when it does not have it, W223 one from outside."""
    if ty is None:
        return value
    value = values.adopt(value, ty)
    if code == "W223":
        value = values.masked(value, ty)
    try:
        values.check([(value, ty, what)], scope.symbols, scope.lookup)
    except values.Mismatch as mismatch:
        raise ShapeError(f"{what}: {mismatch}", code=code, span=span) from None
    return value


def _found(check: ShapeCheck, left: int, right: int) -> str:
    """The two sides of a check that does not hold, with their values."""
    sides = [f"{dim} is {value}" for dim, value in ((check.lhs, left), (check.rhs, right)) if isinstance(dim, DimExpr)]
    constant = check.rhs if isinstance(check.lhs, DimExpr) else check.lhs
    return ", ".join(sides) if len(sides) != 1 or check.relation == "<=" else f"{sides[0]}, not {constant}"


def _with_symbols(failure: WeftError, function: Function, scope: Scope) -> WeftError:
    """The error with the symbol values of the innermost function it passed through."""
    note = ", ".join(f"{name}={value}" for name, value in scope.symbols.values.items())
    if note and not any(old.startswith("in ") for old in failure.notes):
        failure.notes = (*failure.notes, f"in {function.name} with {note}")
    return failure


def _check_bounds(function: Function, scope: Scope) -> None:
    """ShapeError W229 for a symbol above the bound that the function states: what is planned relies on it."""
    for name, bound in upper_bounds(function).items():
        value = scope.symbols.values.get(name)
        if value is not None and value > bound:
            raise ShapeError(
                f"{name} is {value} in {function.name}, which states that it is at most {bound}",
                code="W229",
                span=function.span,
            )


def _name(node: Expr) -> str:
    return f"`{node.name}`" if isinstance(node, (Var, GlobalVar)) and node.name else "a value"


def _prim_value(node: PrimExpr, scope: Scope) -> Any:
    """Tensor-level scalars in a graph function: expressions over its symbols."""
    from weft.ir.kernel.prim_dim import prim_to_dim

    dim = prim_to_dim(node)
    if dim is None:
        message = f"cannot interpret a {type(node).__name__} in a graph function"
        raise ArgumentError(message, code="W860", span=node.span)
    return scope.symbols.value(dim)


def _scalar(node: PrimValue, scope: Scope) -> Any:
    value = scope.symbols.value(node.value) if isinstance(node.value, DimExpr) else node.value
    return coerce(value, node.dtype)


def _item(evaluator: Evaluator, node: TupleGetItem, scope: Scope) -> Any:
    return evaluator.value(node.value, scope)[node.index]


def _size(dim: Dim, node: ShapeExpr, scope: Scope) -> int:
    value = scope.symbols.value(dim)
    # A constant -1 is not a size but asks an operator to find it.
    if value < 0 and isinstance(dim, DimExpr):
        raise ShapeError(f"a shape has the negative size {value} ({dim})", code="W221", span=node.span)
    return value


_VALUES: dict[type, Callable[[Evaluator, Any, Scope], Any]] = {
    Var: lambda evaluator, node, scope: scope.lookup(node),
    DataflowVar: lambda evaluator, node, scope: scope.lookup(node),
    Constant: lambda evaluator, node, scope: node.data,
    ShapeExpr: lambda evaluator, node, scope: tuple(_size(dim, node, scope) for dim in node.dims),
    PrimValue: lambda evaluator, node, scope: _scalar(node, scope),
    StringImm: lambda evaluator, node, scope: node.value,
    DataTypeImm: lambda evaluator, node, scope: node.value,
    Tuple: lambda evaluator, node, scope: tuple(evaluator.value(field, scope) for field in node.fields),
    TupleGetItem: _item,
    GlobalVar: Evaluator.global_,
    ExternFunc: lambda evaluator, node, scope: evaluator.external(node.name, node.span),
    Function: lambda evaluator, node, scope: Closure(evaluator, node, scope),
}
