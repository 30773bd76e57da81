"""The entry to the interpreter: a mapping of the functions of a module to callables."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np

from weft.errors import (
    ArgumentError,
    OutOfMemoryError,
    PassError,
    RecursionDepthError,
    ShapeError,
    Span,
    described,
)
from weft.ir.deduction.infer import ShapeCheck
from weft.ir.deduction.one_device import on_one_device
from weft.ir.graph import BindingBlock, Call, ExternFunc, Function, GlobalVar, SeqExpr, Var, VarBinding
from weft.ir.interpret.closures.compiled import Lookup
from weft.ir.interpret.closures.intrinsics import missing_function
from weft.ir.interpret.graph import Evaluator, Scope, Session
from weft.ir.interpret.kernel import Caller, Kernel, in_order, quiet_room, too_deep
from weft.ir.interpret.operators import apply_operator
from weft.ir.interpret.values import shown
from weft.ir.module import BaseFunc, IRModule
from weft.ir.structure.malformed import FAILURES
from weft.ir.structure.recursion import USUAL_NESTING, nesting
from weft.ir.structure.visit import walk
from weft.ir.tensor import PrimFunc
from weft.ir.types import Type
from weft.ir.verify import fault_of
from weft.ir.verify.spread import refuse_spread
from weft.support.isolation import apart_from, arrays_in, hand_over, isolated, refuse_nested
from weft.support.profile import Profiled

__all__ = ["Interpreter", "interpret", "value_of_call"]


class Interpreter(Mapping[str, Callable[..., Any]]):
    """The functions of a module as callables on arrays; compiled when first called, kept after that."""

    def __init__(self, module: IRModule, lookup: Lookup, trace: bool = False) -> None:
        self.module = module
        self.functions = lookup
        self.trace = trace
        self.deduced: dict[int, tuple[Call, Type, list[ShapeCheck]]] = {}
        self._kernels: dict[int, Kernel] = {}
        self._levels: dict[str, int] = {}

    def __getitem__(self, name: str) -> Callable[..., Any]:
        if name == "main" and name not in self.module and len(self.module) == 1:
            name = next(iter(self.module))  # the only function is the main one, as in an executable
        function = self.module[name]
        if isinstance(function, PrimFunc):
            return self.kernel(function, self.levels(name))
        if isinstance(function, Function):
            return GraphFunction(self, function, self.levels(name))
        external = self.functions(function.name)
        if external is None:
            raise missing_function(function.name, function.span)
        return external

    def __iter__(self) -> Iterator[str]:
        return iter(self.module)

    def __len__(self) -> int:
        return len(self.module)

    def __call__(self, /, *args: Any, **options: Any) -> Any:
        """Call the only function, or `main`."""
        names = list(self.module)
        if len(names) != 1 and "main" not in names:
            raise PassError(f"the module has {len(names)} functions and no `main`: choose one by name", code="W510")
        return self["main" if "main" in names else names[0]](*args, **options)

    def lookup(self, name: str) -> Callable[..., Any] | None:
        """The function behind an external symbol, on arrays of its own; None when there is none."""
        found = self.functions(name)
        return None if found is None else isolated(found)

    def levels(self, name: str) -> int:
        """How deeply a function and those that it calls nest; a great number where one of them may call itself."""
        found = self._levels.get(name)
        if found is None:
            found = self._levels[name] = _levels(self.module, name)
        return found

    def apply_operator(self, evaluator: Evaluator, name: str, node: Call, scope: Scope) -> Any:
        """The value of a call of an operator."""
        return apply_operator(evaluator, name, node, scope)

    def kernel(self, function: PrimFunc, levels: int = 0) -> Kernel:
        """The compiled form of a PrimFunc; `levels` are those of what it calls, for a call from outside."""
        found = self._kernels.get(id(function))
        if found is None:
            try:
                found = self._kernels[id(function)] = Kernel(function, self._call_kernel, self.lookup)
                found.levels = max(found.levels, levels)
            except RecursionError:
                raise too_deep(function) from None
            except FAILURES as error:
                raise fault_of(function) or error from error.__cause__
        return found

    def _call_kernel(self, name: str, values: list[Any], span: Span | None) -> Any:
        """A call from one PrimFunc to another; what it writes of its arguments is for the caller to complete."""
        function = self.module[name]
        if isinstance(function, ExternFunc):
            external = self.lookup(function.name)
            if external is None:
                raise missing_function(function.name, span)
            return hand_over(external, *values)
        if not isinstance(function, PrimFunc):
            raise ArgumentError(f"{name} is not a tensor-level function", code="W865", span=span)
        return self.kernel(function).run(values, Caller(ShapeError, span=span, outputs=frozenset()))


class GraphFunction(Profiled):
    """A graph function as a callable."""

    def __init__(self, interpreter: Interpreter, function: Function, levels: int) -> None:
        self.interpreter = interpreter
        self.function = function
        self.levels = levels

    def __call__(self, /, *args: Any, trace: bool | None = None, **named: Any) -> Any:
        """Run on arrays, by position or name; with `trace` the result comes with a list of (binding name, value)."""
        if named:
            args = tuple(in_order(self.function, args, named))
        wanted = self.interpreter.trace if trace is None else trace
        try:
            with quiet_room(self.levels):
                return self._run(tuple(map(_from_outside, args)), [] if wanted else None)
        except RecursionError:
            if not self.levels > USUAL_NESTING:
                raise  # of a registered function
            raise RecursionDepthError(
                f"calls of {self.function.name} are nested too deep",
                code="W951",
                span=self.function.span,
                hint="a recursion needs a condition under which it ends",
            ) from None

    def _run(self, args: tuple[Any, ...], steps: list[tuple[str, Any]] | None) -> Any:
        refuse_nested()
        session = Session(self.interpreter, steps)
        try:
            result = Evaluator(session).call(self.function, args, None, ArgumentError)
        except FAILURES as error:
            raise fault_of(self.interpreter.module) or error from error.__cause__
        session.require(result, f"the result of {self.function.name}", self.function.span)
        try:
            result = shown(_own(result, args), self.function.ret_type)
        except MemoryError as failure:
            message = f"no memory for the result of {self.function.name}: {failure}"
            raise OutOfMemoryError(message, code="W950", span=self.function.span) from None
        return result if steps is None else (result, steps)


def _levels(module: IRModule, name: str) -> int:
    open_, done, looked = {name: iter(_called(module, name))}, set[str](), set[str]()
    total = nesting(module[name])
    while open_:
        current = next(reversed(open_))
        callee = next(open_[current], None)
        if current not in looked:
            looked.add(current)
            if any(map(_calls_itself, walk(module[current]))):
                return _RECURSIVE
        if callee is None:
            done.add(current)
            del open_[current]
        elif callee in open_:
            return _RECURSIVE
        elif callee not in done:
            open_[callee] = iter(_called(module, callee))
            total += nesting(module[callee])
    return total


def _calls_itself(part: Any) -> bool:
    """Whether a node binds a local function that mentions itself."""
    return isinstance(part, VarBinding) and isinstance(part.value, Function) and part.var in set(walk(part.value))


def _called(module: IRModule, name: str) -> set[str]:
    """The functions of a module that one of them names."""
    names = {node.name for node in walk(module[name]) if isinstance(node, GlobalVar)}
    return {callee for callee in names if callee in module}


_RECURSIVE = 1 << 20
"""More levels than any thread has stack for."""


def _own(result: Any, args: Any) -> Any:
    """A result in memory of its own, as compiled code gives it: a reshaped argument is a view of the argument."""
    return apart_from(result, list(arrays_in(args)))


def _from_outside(value: Any) -> Any:
    """An argument; a function of the caller's works on arrays of its own."""
    return isolated(value) if value.__class__ in _FUNCTIONS else value


_FUNCTIONS = (FunctionType, BuiltinFunctionType, MethodType, functools.partial, np.ufunc)


def _no_functions(name: str) -> None:
    return None


def value_of_call(call: Call, ty: Type) -> Any:
    """The value of a call of an operator on constants, which is of a type; raises what the operator raises.

    The same as interpreting a function of it, for which nothing has to be looked for.
    """
    result = Var("result", ty)
    body = SeqExpr((BindingBlock((VarBinding(result, call),)),), result)
    return GraphFunction(Interpreter(IRModule(), _no_functions), Function((), body, ty, name="call"), 0)()


def interpret(value: IRModule | BaseFunc, *, functions: Lookup | None = None, trace: bool = False) -> Interpreter:
    """A mapping of function names to callables on NumPy arrays; callable itself when it has one function, or `main`.

    `functions(name)` finds external functions. With `trace` a graph function returns its result and a list of (binding
    name, value). Raises what the program raises; ArgumentError for wrong arguments,
    BoundsError for indices out of range, values read before they are written and outputs that are not wholly written.

    >>> import numpy as np
    >>> from weft.ir.tensor import Buffer, BufferLoad, BufferStore, For, PrimFunc, PrimVar
    >>> i, x, y = PrimVar("i"), Buffer("x", (3,)), Buffer("y", (3,))
    >>> double = PrimFunc((x, y), For(i, 0, 3, BufferStore(y, BufferLoad(x, (i,)) * 2, (i,))))
    >>> out = np.zeros(3, "float32")
    >>> interpret(double)(np.ones(3, "float32"), out)
    >>> out
    array([2., 2., 2.], dtype=float32)
    """
    lookup = functions or _no_functions
    if isinstance(value, (PrimFunc, Function)):
        value = IRModule({value.name or "main": value})
    if not isinstance(value, IRModule):
        raise PassError(
            f"cannot interpret {described(value)}", code="W511", hint="give an IRModule, or a function of a script"
        )
    value = on_one_device(value)
    refuse_spread(value.functions.values())
    return Interpreter(value, lookup, trace)
