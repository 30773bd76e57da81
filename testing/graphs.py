"""Random modules of graph functions, kernels and library calls, well formed at both levels.

    module(choices)                    a module that runs: `weft.interpret(module, functions=extern)["main"](...)`
    module(choices, runnable=False)    with anything that can be written: opaque calls, refutable casts, odd data

Operators come from the registry: arguments are tried (visible variables, constants, numbers, attributes) until the
operator's own type rule accepts them, or taken from the examples of its declaration. In a module that runs, nothing is
left that might fail at run time: casts hold, constraints are proved, values stay in the ranges that operators state.
A value is *exact* when rounding cannot change it much (see `scalars`); only such values decide anything (comparisons,
rounding, indices).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from weft import dtypes
from weft.errors import WeftError
from weft.ir.dim import Dim, DimExpr, fresh_name, is_symbolic, prove_equal, substitute, symbol
from weft.ir.graph import (
    Binding,
    BindingBlock,
    Call,
    Constant,
    DataflowBlock,
    DataflowVar,
    DataTypeImm,
    Expr,
    ExternFunc,
    Function,
    GlobalVar,
    If,
    MatchCast,
    PrimValue,
    PythonFunc,
    SeqExpr,
    ShapeExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from weft.ir.infer import TypeContext, infer_type
from weft.ir.module import BaseFunc, DummyGlobalInfo, IRModule
from weft.ir.node import FrozenMap, replace
from weft.ir.op import OPS, OpDef, Param, get_op
from weft.ir.subtyping import dims_of, match_types, substitute_type, type_symbols
from weft.ir.types import AnyType, FuncType, PrimType, ShapeType, StringType, TensorType, TupleType, Type, VDevice
from weft.testing.kernels import free_kernel, kernel
from weft.testing.opaque import opaque_kernel
from weft.transform.infra.generators.choices import Choices
from weft.transform.infra.generators.values import DTYPES, attribute_map, constant, small_array

__all__ = ["extern", "module"]

_SYMBOLS = ("n", "m", "k", "batch", "x", "lv")
_FUNCTIONS = ("helper", "f", "fused_add", "main_1", "R", "_private", "x", "forward")
_KERNELS = ("kernel", "tir_add", "k", "x", "n", "scale", "T")
_MOVING = ("manipulate", "index", "create", "datatype")
_STEPS = frozenset(
    "floor ceil round trunc sign floor_divide floor_mod mod sort argsort topk median unique quantile bucketize".split()
)
_CONDITIONAL = frozenset(["bucketize"])  # defined for some values only (sorted boundaries), which the examples have
_NEVER = frozenset("print assert_op stop_lift_params wrap_param".split())


def _reversed(*args: Any) -> None:
    args[-1][...] = args[0].reshape(-1)[::-1].reshape(args[0].shape)


_EXTERN: dict[str, Callable[..., Any]] = {"test.reversed": _reversed, "test.copy": lambda x, *rest: np.array(x)}


def extern(name: str) -> Callable[..., Any] | None:
    """The external functions that generated modules call."""
    return _EXTERN.get(name)


_PYTHON = (
    "def {name}(self, x):\n    return x",
    "def {name}(self): return 1",
    '@other("""\n x""")\ndef {name}(x, *y, k="名"):\n\n    """Any\n  margin.\n"""\n    # why\n    return (x +\n k)',
    "def {name}(self, x):\n\tif x:\n\t    return '\\\n'\n\treturn f'''\n{{x}}\n'''",
)


class Rejected(Exception):
    """What was tried is not well formed."""


def module(choices: Choices, *, runnable: bool = True, bindings: int = 15) -> IRModule:
    """A random module with a function `main`."""
    return _Module(choices, runnable, bindings).build()


class _Module:
    """A module in the making."""

    def __init__(self, choices: Choices, runnable: bool, bindings: int) -> None:
        self.choices = choices
        self.runnable = runnable
        self.bindings = bindings
        self.functions: dict[str, BaseFunc] = {}
        self.taken = {"main"}
        self.devices: list[VDevice] = []
        self.operators = _operators(runnable)

    def build(self) -> IRModule:
        choices = self.choices
        infos: dict[str, Any] = {}
        if choices.flip(10):
            self.devices = [VDevice("llvm", index) for index in range(choices.integer(1, 2))]
            infos["vdevice"] = tuple(self.devices)
        if choices.flip(5):
            infos["mesh"] = (DummyGlobalInfo(),)
        for _ in range(choices.weighted(((6, 0), (3, 1), (1, 2)))):
            self.add(_Function(self, self.fresh(_FUNCTIONS), choices.integer(1, 5)).build())
        if choices.flip(10):
            self.add(free_kernel(choices, self.fresh(_KERNELS)))
        if not self.runnable:
            self._extras()
        self.add(_Function(self, "main", choices.integer(1, self.bindings)).build())
        names = list(self.functions)
        if choices.flip(30):
            names.insert(0, names.pop())
        attrs = attribute_map(choices) if choices.flip(15) else FrozenMap()
        ordered = FrozenMap({name: self.functions[name] for name in names})
        return IRModule(ordered, attrs, FrozenMap(infos), name=choices.pick(("Module", "Model", "M", "n", "main")))

    def _extras(self) -> None:
        choices = self.choices
        for _ in range(choices.weighted(((5, 0), (3, 1), (1, 2)))):
            self.add(opaque_kernel(choices, self.fresh(_KERNELS)))
        if choices.flip(8):
            self.functions[self.fresh(("ext", "library"))] = ExternFunc(
                choices.pick(("lib.function", "f", "two words"))
            )
        if choices.flip(8):
            self.add(_recursive(choices, self.fresh(("loop", "again"))))
        if choices.flip(8):
            name = self.fresh(("python", "py"))
            self.add(PythonFunc(name, source=choices.pick(_PYTHON).format(name=name)))

    def fresh(self, names: Sequence[str]) -> str:
        """A function name that is free."""
        name = fresh_name(self.choices.pick(names), self.taken)
        self.taken.add(name)
        return name

    def add(self, function: Any) -> GlobalVar:
        """Add a function under its own name."""
        self.functions[function.name] = function
        return GlobalVar(function.name)


def _operators(runnable: bool) -> list[OpDef]:
    """The operators that bindings use, in a fixed order."""
    return [
        definition
        for name, definition in sorted(OPS.items())
        if not definition.builtin
        and definition.rule.__module__.startswith("weft.")  # and none that a test declared
        and name not in _NEVER
        and not any(param.kind in ("callee", "types") for param in definition.params)
        and (definition.pure or not runnable)
        and not (runnable and ("dropout" in name or "multinomial" in name))
    ]


def _recursive(choices: Choices, name: str) -> Function:
    """A function that calls itself under a condition."""
    ty = TensorType((symbol("n"), 4), "float32")
    x, again = Var("x", ty), Var("again", TensorType((), "bool"))
    called = Var(choices.name(), ty)
    kept = Var(choices.name(), ty)
    result = Var("r", ty)
    then = SeqExpr((BindingBlock((VarBinding(called, Call(GlobalVar(name), (x, again))),)),), called)
    otherwise = SeqExpr((BindingBlock((VarBinding(kept, get_op("add").bind((x, x))),)),), kept)
    body = SeqExpr((BindingBlock((VarBinding(result, If(again, then, otherwise)),)),), result)
    return Function((x, again), body, ty, private=choices.flip(), name=name)


class _Function:
    """A graph function in the making."""

    def __init__(self, home: _Module, name: str, budget: int) -> None:
        self.home = home
        self.choices = home.choices
        self.runnable = home.runnable
        self.name = name
        self.budget = budget
        self.params: list[Var] = []
        self.visible: list[Var] = []
        self.exact: set[Var] = set()
        self.symbols: list[str] = []
        self.used_symbols: set[str] = set()
        self.dataflow = False
        self.pure = True
        self.nested = 0
        self.before: list[Binding] = []  # what the binding in the making needs bound before it

    # Frame -----------------------------------------------------------------------------------------------------------

    def build(self) -> Function:
        choices = self.choices
        for _ in range(choices.integer(1, 4)):
            self.parameter(self._parameter_type())
        body = self._sequence(self.budget, self._result)
        ret = infer_type(body, self.context())
        if choices.flip(10):
            ret = self._weaker(ret)
        attrs = attribute_map(choices) if choices.flip(20) else FrozenMap()
        private = self.name != "main" and choices.flip(40)
        return Function(tuple(self.params), body, ret, self.pure, private, attrs, name=self.name)

    def context(self) -> TypeContext:
        """The context of a deduction."""
        return TypeContext(functions=self.home.functions)

    def parameter(self, ty: Type) -> Var:
        """A new parameter."""
        var = Var(self.choices.name(), ty)
        self.params.append(var)
        self.visible.append(var)
        self.exact.add(var)
        self.symbols.extend(name for name in sorted(type_symbols(ty)) if name not in self.symbols)
        self.used_symbols.update(self.symbols)
        return var

    def _bindable(self) -> Dim:
        """A dimension that a parameter may define."""
        return symbol(self.choices.pick(_SYMBOLS[:3] if self.choices.flip(80) else _SYMBOLS))

    def _dim(self) -> Dim:
        """A dimension over visible symbols."""
        if self.symbols and self.choices.flip(60):
            base = symbol(self.choices.pick(self.symbols))
            return self.choices.pick((base, base * 2, base + 1, base // 2, base + 3)) if self.choices.flip(15) else base
        return self.choices.pick((4, 3, 1, 2, 8, 6)) if not self.choices.flip(2) else 0

    def _parameter_type(self, depth: int = 1) -> Type:
        choices = self.choices
        kind = choices.integer(0, 19)
        if kind < 13 or (depth == 0 and kind == 17):
            dims = [self._bindable() if choices.flip(40) else self._dim() for _ in range(choices.pick((2, 1, 3, 0, 4)))]
            device = choices.pick(self.home.devices) if self.home.devices and choices.flip(30) else None
            return TensorType(tuple(dims), choices.pick(DTYPES), vdevice=device)
        if kind == 13:
            return TensorType((), "bool")
        if kind == 14:
            return PrimType(choices.pick(("int64", "float32", "bool", "int32")))
        if kind == 15:
            return ShapeType(tuple(self._bindable() for _ in range(choices.integer(1, 2))))
        if kind == 16:
            shapes = [var for var in self.params if isinstance(var.ty, ShapeType)]
            if shapes and choices.flip():
                return TensorType(choices.pick(shapes), choices.pick(DTYPES))
            return choices.pick(
                (ShapeType(ndim=2), ShapeType(), TensorType(ndim=2, dtype="float32"), TensorType(dtype="int32"))
            )
        if kind == 17:
            return TupleType(tuple(choices.several(1, 3, lambda: self._parameter_type(depth - 1))))
        if kind == 18 and not self.runnable:
            tensor = TensorType((symbol("n"),), "float32")
            return choices.pick(
                (AnyType(), FuncType((tensor,), tensor), FuncType(None, AnyType(), False), TensorType())
            )
        return choices.pick((StringType(), TensorType(ndim=1, dtype="float32")))

    def _weaker(self, ty: Type) -> Type:
        """A type of which the given one is a subtype."""
        if isinstance(ty, TensorType) and self.choices.flip():
            return TensorType(None, ty.dtype, ty.ndim)
        if isinstance(ty, TupleType) and ty.fields and self.choices.flip():
            return TupleType(tuple(self._weaker(field) for field in ty.fields))
        return self.choices.pick((ty, AnyType())) if not isinstance(ty, FuncType) else ty

    def _result(self) -> Expr:
        """What the function returns: variables, a tuple of them, seldom a constant."""
        choices = self.choices
        candidates = [var for var in self.visible if not isinstance(var.ty, (FuncType, AnyType)) or not self.runnable]
        candidates = [var for var in candidates if var.name != "_" or not _is_void(var.ty)]
        if choices.flip(3) or not candidates:
            return constant(choices, runnable=self.runnable)
        if choices.flip(20):
            return Tuple(tuple(choices.several(0 if choices.flip(10) else 1, 3, lambda: self._recent(candidates))))
        return self._recent(candidates)

    def _recent(self, candidates: Sequence[Var]) -> Var:
        """A variable, mostly one of the last."""
        return self.choices.pick(candidates[::-1][:3]) if self.choices.flip(80) else self.choices.pick(candidates)

    # Sequences -------------------------------------------------------------------------------------------------------

    def _sequence(self, budget: int, result: Callable[[], Expr], blocks_allowed: bool = True) -> SeqExpr:
        blocks: list[BindingBlock] = []
        while budget > 0:
            size = self.choices.integer(1, budget)
            budget -= size
            dataflow = blocks_allowed and self.choices.flip(65)
            if dataflow:
                block: BindingBlock = self._dataflow_block(size)
            else:
                block = BindingBlock(tuple(self._bindings(size)))
            if not dataflow and blocks and type(blocks[-1]) is BindingBlock:
                blocks[-1] = BindingBlock((*blocks[-1].bindings, *block.bindings))
            elif block.bindings:
                blocks.append(block)
        return SeqExpr(tuple(blocks), result())

    def _dataflow_block(self, size: int) -> DataflowBlock:
        self.dataflow = True
        bindings = list(self._bindings(size))
        self.dataflow = False
        self.visible = [var for var in self.visible if not isinstance(var, DataflowVar)]
        return DataflowBlock(tuple(bindings))

    def _bindings(self, size: int) -> Iterator[Binding]:
        for position in range(size):
            binding = self._binding(last=position == size - 1)
            yield from self.before
            self.before.clear()
            yield binding

    def _binding(self, last: bool = True) -> Binding:
        for _ in range(6):
            try:
                made, exact = self.choices.weighted(self._makers())()
                return self._bound(made, exact, last)
            except (Rejected, WeftError):
                self.before.clear()
                continue
        return self._bound(constant(self.choices, runnable=self.runnable), True, last)

    def _bound(self, made: Expr | Callable[[Var], Binding], exact: bool, last: bool) -> Binding:
        """Bind a value to a new variable."""
        choices = self.choices
        if isinstance(made, MatchCast):
            var, ty = made.var, made.ty
            binding: Binding = made
        else:
            context = self.context()
            ty = infer_type(made, context)  # type: ignore[arg-type]
            if self.runnable and context.checks:
                raise Rejected
            if self.runnable and not _is_definite(ty):
                raise Rejected
            kind = DataflowVar if self.dataflow and not (last or choices.flip(30)) else Var
            annotated = self._weaker(ty) if choices.flip(4) and not isinstance(ty, AnyType) else ty
            if self.runnable and isinstance(annotated, AnyType):
                annotated = ty
            var = kind("_" if _is_void(ty) else choices.name(), annotated)
            binding = VarBinding(var, made)  # type: ignore[arg-type]
        if not _is_void(ty):
            self.visible.append(var)
        if exact:
            self.exact.add(var)
        return binding

    def _makers(self) -> list[tuple[int, Callable[[], tuple[Any, bool]]]]:
        makers: list[tuple[int, Callable[[], tuple[Any, bool]]]] = [
            (24, self._operator),
            (10, self._by_example),
            (6, self._kernel_call),
            (2, self._in_place),
            (3, lambda: (constant(self.choices, runnable=self.runnable), True)),
            (3, self._tuple),
            (3, self._item),
            (3, self._cast),
            (2, self._leaf),
            (3, self._library),
            (3, self._module_call),
            (1, self._copy),
        ]
        if not self.dataflow and self.nested < 2:
            makers.extend(((4, self._if), (3, self._nested_function), (3, self._closure_call)))
        if not self.runnable:
            makers.append((3, self._opaque))
        return makers

    # Values ----------------------------------------------------------------------------------------------------------

    def _tensors(self, exact: bool = False) -> list[Var]:
        return [var for var in self.visible if isinstance(var.ty, TensorType) and (var in self.exact or not exact)]

    def _known_tensors(self) -> list[Var]:
        """Tensors of known dtype and dimensions."""
        return [var for var in self._tensors() if var.ty.dtype is not None and var.ty.dims is not None]  # type: ignore[attr-defined]

    def _copy(self) -> tuple[Expr, bool]:
        if not self.visible:
            raise Rejected
        var = self.choices.pick(self.visible[::-1])
        if isinstance(var.ty, FuncType):
            raise Rejected
        return var, var in self.exact

    def _leaf(self) -> tuple[Expr, bool]:
        choices = self.choices
        kind = choices.integer(0, 4)
        if kind == 0:
            return ShapeExpr(tuple(self._dim() for _ in range(choices.integer(0, 3)))), True
        if kind == 1:
            return PrimValue(self._dim()), True
        if kind == 2:
            value = choices.number() if not self.runnable else 0.5
            return choices.pick(
                (PrimValue(True), PrimValue(value), PrimValue(3, "int32"), PrimValue(value, "float64"))
            ), True
        if kind == 3:
            return StringImm(choices.text()), True
        if self.runnable:
            raise Rejected
        return DataTypeImm(choices.pick(("float32", "bfloat16", "bool", "int8", "float32x4"))), True

    def _tuple(self) -> tuple[Expr, bool]:
        fields = self.choices.several(0 if self.choices.flip(10) else 1, 3, self._any_leaf)
        return Tuple(tuple(fields)), all(not isinstance(field, Var) or field in self.exact for field in fields)

    def _any_leaf(self) -> Expr:
        values = [var for var in self.visible if not isinstance(var.ty, FuncType)]
        if values and self.choices.flip(85):
            return self.choices.pick(values[::-1])
        return self.choices.pick((constant(self.choices, runnable=self.runnable), ShapeExpr((self._dim(),)), Tuple(())))

    def _item(self) -> tuple[Expr, bool]:
        tuples = [var for var in self.visible if isinstance(var.ty, TupleType) and var.ty.fields]
        if not tuples:
            raise Rejected
        var = self.choices.pick(tuples[::-1])
        return TupleGetItem(var, self.choices.integer(0, len(var.ty.fields) - 1)), var in self.exact  # type: ignore[attr-defined]

    def _cast(self) -> tuple[Expr | MatchCast, bool]:
        """A match_cast: it holds in a module that runs."""
        values = [var for var in self.visible if isinstance(var.ty, (TensorType, ShapeType)) and var.ty.ndim >= 0]
        if not values:
            raise Rejected
        source = self.choices.pick(values[::-1])
        ty = source.ty
        assert isinstance(ty, (TensorType, ShapeType))
        known = dims_of(ty) or (None,) * ty.ndim
        target: Type
        if self.choices.flip(10):
            target = ShapeType(ndim=ty.ndim) if isinstance(ty, ShapeType) else TensorType(None, ty.dtype, ty.ndim)
        else:
            dims = tuple(self._cast_dim(dim) for dim in known)
            target = ShapeType(dims) if isinstance(ty, ShapeType) else TensorType(dims, ty.dtype, vdevice=ty.vdevice)
        kind = DataflowVar if self.dataflow and self.choices.flip(60) else Var
        return MatchCast(kind(self.choices.name(), target), source, target), source in self.exact

    def _cast_dim(self, dim: Dim | None) -> Dim:
        if dim is not None and not self.choices.flip(30):
            return dim
        if not self.runnable and is_symbolic(dim) and self.choices.flip():  # type: ignore[arg-type]
            other = self._dim()
            return dim if prove_equal(dim, other) is False else other  # type: ignore[arg-type]
        name = fresh_name(self.choices.pick(("p", "q", "n", "rows")), self.used_symbols)
        self.used_symbols.add(name)
        self.symbols.append(name)
        return symbol(name)

    # Operators -------------------------------------------------------------------------------------------------------

    def _operator(self) -> tuple[Expr, bool]:
        """A call of an operator with arguments that its rule accepts."""
        for _ in range(5):
            definition = self.choices.pick(self.home.operators)
            bounded = any(example.ranges for example in definition.examples)
            if self.runnable and (bounded or definition.name in _CONDITIONAL):
                continue
            for _ in range(3):
                try:
                    call = self._try(definition)
                    context = self.context()
                    ty = infer_type(call, context)
                except (Rejected, WeftError):
                    continue
                if not (self.runnable and (context.checks or _too_large(ty))):
                    return self._judged(definition, call, ty)
        raise Rejected

    def _judged(self, definition: OpDef, call: Call, ty: Type) -> tuple[Expr, bool]:
        """The call and whether it is exact; Rejected where rounding would decide something."""
        inexact = [var for var in _variables(call) if var not in self.exact]
        if not inexact:
            return call, definition.family in _MOVING or _is_discrete(ty) or definition.name in _STEPS
        floats = [var for var in inexact if not _is_discrete(var.ty)]
        if floats and (definition.name in _STEPS or _is_partly_discrete(ty)):
            raise Rejected
        return call, False

    def _try(self, definition: OpDef) -> Call:
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        chosen: list[Var] = []
        for param in definition.params:
            if param.default is None and param.kind in ("expr", "exprs", "shape") and self.choices.flip():
                continue
            value = self._argument(definition, param, chosen)
            if value is _DEFAULT:
                continue
            if param.kind == "variadic":
                args.extend(value)
            elif param.kind == "expr" and not kwargs and len(args) == definition.params.index(param):
                args.append(value)
            else:
                kwargs[param.name] = value
        return definition.bind(args, kwargs)

    def _argument(self, definition: OpDef, param: Param, chosen: list[Var]) -> Any:
        choices = self.choices
        if param.kind == "expr":
            return self._operand(chosen)
        if param.kind in ("exprs", "variadic"):
            return [self._operand(chosen) for _ in range(choices.integer(1, 3))]
        promised = self.runnable and param.name == "assume_inbound"
        if param.default is not _required() and (promised or choices.flip(50)):
            return _DEFAULT
        if param.kind == "shape":
            return self._shape(chosen)
        if param.kind == "prim":
            return choices.pick((1, 2, 0, -1, 0.5, self._dim()))
        if param.kind == "dtype":
            return choices.pick(DTYPES)
        rank = getattr(chosen[0].ty, "ndim", 1) if chosen else 1
        axis = choices.integer(-1, max(rank - 1, 0))
        kinds: dict[str, Callable[[], Any]] = {
            "int": lambda: axis,
            "bool": lambda: choices.flip(),
            "float": lambda: 0.5 if self.runnable else choices.number(),
            "dim": self._dim,
            "ints": lambda: choices.several(1, 3, lambda: choices.integer(-1, max(rank - 1, 2))),
            "dims": lambda: choices.several(1, 3, self._dim),
        }
        kind = param.of.rstrip("?")
        if kind in kinds and choices.flip(70):
            return kinds[kind]()
        return self._exemplary(definition, param)

    def _exemplary(self, definition: OpDef, param: Param) -> Any:
        """A value of an attribute in some example."""
        values = [example.kwargs[param.name] for example in definition.examples if param.name in example.kwargs]
        index = definition.params.index(param)
        values.extend(example.args[index] for example in definition.examples if index < len(example.args))
        if not values:
            if param.default is _required():
                raise Rejected
            return _DEFAULT
        value = self.choices.pick(values)
        if _symbols_in(value):
            raise Rejected
        return value

    def _operand(self, chosen: list[Var]) -> Any:
        choices = self.choices
        candidates = self._tensors()
        if self.runnable:  # what an operator would ask of unknown ranks and dtypes may not hold
            candidates = self._known_tensors()
        if chosen and choices.flip(90):
            candidates = [var for var in candidates if var.ty.dtype == chosen[0].ty.dtype]  # type: ignore[attr-defined]
            if choices.flip(60):
                same = [var for var in candidates if _same_shape(var.ty, chosen[0].ty)]
                candidates = same or candidates
        if not candidates or choices.flip(6):
            return constant(choices, runnable=self.runnable)
        if chosen and choices.flip(8):
            return choices.pick((1, 2, 0.5))
        var = choices.pick(candidates[::-1])
        chosen.append(var)
        return var

    def _shape(self, chosen: list[Var]) -> Any:
        shapes = [var for var in self.visible if isinstance(var.ty, ShapeType) and (var.ty.dims or not self.runnable)]
        if shapes and self.choices.flip(20):
            return self.choices.pick(shapes)
        known = [dims for var in chosen if (dims := dims_of(var.ty)) is not None]
        if known and self.choices.flip(70):
            dims = list(self.choices.pick(known))
            if len(dims) > 1 and self.choices.flip():
                at = self.choices.integer(0, len(dims) - 2)
                dims[at : at + 2] = [dims[at] * dims[at + 1]] if self.choices.flip() else [dims[at + 1], dims[at]]
            elif self.choices.flip():
                dims.insert(0, self.choices.pick((1, self._dim())))
            return tuple(dims)
        return tuple(self._dim() for _ in range(self.choices.integer(0, 3)))

    def _by_example(self) -> tuple[Expr, bool]:
        """A call from an example of a declaration, with parameters or constants of the example's types."""
        choices = self.choices
        definition = choices.pick(self.home.operators)
        if not definition.examples:
            raise Rejected
        example = choices.pick(definition.examples)
        if self.runnable and "assume_inbound" in example.kwargs:
            raise Rejected
        # Constants for what has a range; parameters only at the top level, and not too many.
        with_parameters = not example.ranges and not self.nested and len(self.params) < 7 and choices.flip(60)
        names = sorted(_symbols_in((*example.args, *example.kwargs.values(), *_bounds(example.ranges))))
        values: dict[str, Dim] = {}
        if with_parameters and not set(names) <= _bare_symbols((*example.args, *example.kwargs.values())):
            raise Rejected
        for name in names:
            values[name] = self._example_symbol() if with_parameters else choices.pick((2, 3, 1))
        args = [
            self._from_example(value, values, self._range(example, definition, index), with_parameters)
            for index, value in enumerate(example.args)
        ]
        kwargs = {
            name: self._from_example(value, values, example.ranges.get(name), with_parameters)
            for name, value in example.kwargs.items()
        }
        call = definition.bind(args, kwargs)
        context = self.context()
        ty = infer_type(call, context)
        if self.runnable and (context.checks or _too_large(ty)):
            raise Rejected
        return self._judged(definition, call, ty)

    def _example_symbol(self) -> Dim:
        if self.symbols and self.choices.flip():
            bound = [name for name in self.symbols if any(name in type_symbols(var.ty) for var in self.params)]
            if bound:
                return symbol(self.choices.pick(bound))
        name = fresh_name(self.choices.pick(("n", "b", "m")), self.used_symbols)
        return symbol(name)

    @staticmethod
    def _range(example: Any, definition: OpDef, index: int) -> Any:
        params = definition.params
        name = params[index].name if index < len(params) else params[-1].name
        return example.ranges.get(name)

    def _from_example(self, value: Any, symbols: Mapping[str, Dim], limits: Any, with_parameters: bool) -> Any:
        if isinstance(value, Type):
            ty = substitute_type(value, symbols)
            if with_parameters:
                fitting = [var for var in self.visible if _same_type(var.ty, ty)]
                if fitting and self.choices.flip(40):
                    return self.choices.pick(fitting)
                return self.parameter(ty)
            return self._constant_of(ty, limits, symbols)
        if isinstance(value, (list, tuple)):
            return type(value)(self._from_example(item, symbols, limits, with_parameters) for item in value)
        if isinstance(value, DimExpr):
            return substitute(value, symbols)
        return value

    def _constant_of(self, ty: Type, limits: Any, symbols: Mapping[str, Dim]) -> Expr:
        if not isinstance(ty, TensorType) or ty.dims is None or any(is_symbolic(dim) for dim in ty.dims):
            raise Rejected
        dtype = ty.dtype or "float32"
        if not dtypes.is_numpy(dtype):
            raise Rejected
        low, high = limits if limits is not None else (None, None)
        low, high = (substitute(end, symbols) if isinstance(end, DimExpr) else end for end in (low, high))
        shape = tuple(dim for dim in ty.dims if isinstance(dim, int))
        if isinstance(high, int) and isinstance(low, int) and high < low:
            raise Rejected
        return Constant(small_array(self.choices, dtype, shape, low, high), dtype)

    # Calls -----------------------------------------------------------------------------------------------------------

    def _kernel_call(self) -> tuple[Expr, bool]:
        """A call_tir of a kernel made for it, or of one that is there already and fits."""
        choices = self.choices
        known = [var for var in self._known_tensors() if dtypes.is_numpy(var.ty.dtype)]  # type: ignore[attr-defined]
        inputs: list[Var] = [choices.pick(known[::-1]) for _ in range(choices.integer(0, 3))] if known else []
        types: list[Any] = [var.ty for var in inputs]
        values: list[Expr] = list(inputs)
        if choices.flip(10):
            scalars = [var for var in self.visible if isinstance(var.ty, PrimType)]
            scalar: Expr = choices.pick(scalars) if scalars else PrimValue(2, "int64")
            types.append(infer_type(scalar))
            values.append(scalar)
        dims = [dim for var in inputs for dim in var.ty.dims]  # type: ignore[attr-defined]
        shape = self._output_shape(inputs, dims)
        outputs = [TensorType(shape, choices.pick(DTYPES))]
        if choices.flip(15):
            outputs.append(TensorType(self._output_shape(inputs, dims), choices.pick(DTYPES)))
        exact = all(var in self.exact for var in inputs)
        extra = choices.integer(1, 2) if choices.flip(10) else 0
        function = kernel(choices, types, outputs, self.home.fresh(_KERNELS), choices.flip(), exact, extra)
        out: Any = outputs if len(outputs) > 1 or choices.flip(10) else outputs[0]
        name = "call_tir" if choices.flip(90) else "call_tir_with_grad"
        options: dict[str, Any] = {"te_grad_name": "grad"} if name == "call_tir_with_grad" else {}
        if extra:
            options["tir_vars"] = tuple(self._dim() for _ in range(extra))
        self.home.functions[function.name] = function
        try:
            call = get_op(name).bind((GlobalVar(function.name), values), {"out_ty": out, **options})
            context = self.context()
            infer_type(call, context)
            if self.runnable and context.checks:
                raise Rejected
        except (WeftError, Rejected):
            del self.home.functions[function.name]
            raise Rejected from None
        return call, all(not dtypes.is_float(ty.dtype or "float32") for ty in outputs)

    def _in_place(self) -> tuple[Expr, bool]:
        """A kernel that writes over a tensor made for it, which nothing else uses."""
        choices = self.choices
        known = [var for var in self._known_tensors() if dtypes.is_numpy(var.ty.dtype)]  # type: ignore[attr-defined]
        if not known:
            raise Rejected
        source = choices.pick(known[::-1])
        made = choices.pick((get_op("zeros_like"), get_op("ones_like"), get_op("abs"))).bind((source,))
        ty = infer_type(made, self.context())
        assert isinstance(ty, TensorType)
        others = [choices.pick(known) for _ in range(choices.integer(0, 2))]
        at = choices.integer(0, len(others))
        exact = all(var in self.exact for var in others)
        function = kernel(
            choices,
            [var.ty for var in others],  # type: ignore[misc]
            [ty],
            self.home.fresh(_KERNELS),
            choices.flip(),
            exact,
        )
        params = list(function.params)
        params.insert(at, params.pop())
        function = replace(function, params=tuple(params))
        over = (DataflowVar if self.dataflow else Var)(choices.name(), ty)
        values: list[Expr] = list(others)
        values.insert(at, over)
        self.home.functions[function.name] = function
        call = get_op("call_tir_inplace").bind(
            (GlobalVar(function.name), values, [at]), {"out_ty": replace(ty, vdevice=None)}
        )
        try:
            context = self.context()
            infer_type(call, context)
            if self.runnable and context.checks:
                raise Rejected
        except (WeftError, Rejected):
            del self.home.functions[function.name]
            raise Rejected from None
        self.before.append(VarBinding(over, made))
        return call, not dtypes.is_float(ty.dtype or "float32")

    def _output_shape(self, inputs: Sequence[Var], dims: Sequence[Dim]) -> tuple[Dim, ...]:
        choices = self.choices
        if inputs and choices.flip(60):
            shape = choices.pick(inputs).ty.dims  # type: ignore[attr-defined]
            return shape[:-1] if shape and choices.flip(20) else shape
        pool = (*dims, 4, 1, 3)
        return tuple(choices.pick(pool) for _ in range(choices.integer(0, 2)))

    def _library(self) -> tuple[Expr, bool]:
        """A call of an external function."""
        choices = self.choices
        known = self._known_tensors()
        if not known:
            raise Rejected
        var = choices.pick(known[::-1])
        kind = choices.integer(0, 2)
        ty = replace(var.ty, vdevice=None)
        if kind == 0:
            return get_op("call_dps_packed").bind(("test.reversed", [var]), {"out_ty": ty}), var in self.exact
        if kind == 1:
            return get_op("call_pure_packed").bind(("test.copy", var), {"ty_args": ty}), var in self.exact
        if self.dataflow:
            raise Rejected
        self.pure = False
        return Call(ExternFunc("test.copy"), (var,), ty_args=(ty,)), var in self.exact

    def _opaque(self) -> tuple[Expr, bool]:
        """A call that only a reader needs to understand."""
        choices = self.choices
        args = choices.several(0, 3, self._any_leaf)
        ty = choices.pick((TensorType(ndim=2, dtype="float32"), AnyType(), TensorType((4, self._dim()), "float32")))
        kind = choices.integer(0, 3)
        if kind == 0:
            tensor = TensorType((4, self._dim()), "float32")
            types = choices.pick((tensor, TupleType((tensor, tensor))))
            return get_op("call_dps_packed").bind((choices.pick(("f", "lib.g", "é")), args), {"out_ty": types}), False
        if kind == 1:
            return get_op("call_pure_packed").bind(("lib.pure", *args), {"ty_args": ty}), False
        if self.dataflow:
            raise Rejected
        self.pure = False
        if kind == 2:
            return Call(ExternFunc(choices.pick(("vm.builtin", "two words"))), tuple(args), ty_args=(ty,)), False
        return Call(ExternFunc("lib.effect"), tuple(args), ty_args=(TupleType(()),)), False

    def _module_call(self) -> tuple[Expr, bool]:
        """A call of another graph function of the module."""
        functions = [name for name, function in self.home.functions.items() if isinstance(function, Function)]
        if not functions:
            raise Rejected
        name = self.choices.pick(functions)
        function = self.home.functions[name]
        assert isinstance(function, Function)
        if not function.pure and self.dataflow:
            raise Rejected
        args = self._fitting([param.ty for param in function.params])
        call = Call(GlobalVar(name), tuple(args))
        context = self.context()
        infer_type(call, context)
        if self.runnable and context.checks:
            raise Rejected
        if any(isinstance(arg, Var) and arg not in self.exact for arg in args):
            raise Rejected  # the function takes its parameters as exact
        self.pure = self.pure and function.pure
        return call, False

    def _fitting(self, types: Sequence[Type]) -> list[Expr]:
        """Visible values for parameter types; a new parameter of the type where there is none."""
        args: list[Expr] = []
        for ty in types:
            fitting = [var for var in self.visible if match_types([ty], [var.ty]).answer is True]
            if fitting and self.choices.flip(70):
                args.append(self.choices.pick(fitting[::-1]))
            elif not self.nested and len(self.params) < 8 and not _needs_other(ty) and not self._taken(ty):
                args.append(self.parameter(ty))
            else:
                raise Rejected
        return args

    def _taken(self, ty: Type) -> bool:
        """Whether a type names symbols that a match_cast defines: no parameter may define them too."""
        bound = set().union(*(type_symbols(param.ty) for param in self.params))
        return bool(type_symbols(ty) & self.used_symbols - bound)

    # Control ---------------------------------------------------------------------------------------------------------

    @contextmanager
    def _inner(self) -> Iterator[None]:
        """What is defined inside is not visible outside; parameters added meanwhile stay."""
        visible, symbols, before = list(self.visible), list(self.symbols), len(self.params)
        self.nested += 1
        try:
            yield
        finally:
            self.nested -= 1
            self.visible = visible + self.params[before:]
            self.symbols = symbols

    def _condition(self) -> Var:
        fitting = [
            var
            for var in self.visible
            if (isinstance(var.ty, TensorType) and var.ty.dims == () and var.ty.dtype == "bool" and var in self.exact)
            or (isinstance(var.ty, PrimType) and var.ty.dtype == "bool")
        ]
        if fitting and self.choices.flip(80):
            return self.choices.pick(fitting[::-1])
        if self.nested:
            raise Rejected
        return self.parameter(self.choices.pick((TensorType((), "bool"), PrimType("bool"))))

    def _if(self) -> tuple[Expr, bool]:
        condition = self._condition()
        branches: list[SeqExpr] = []
        wanted: Type | None = None
        exact = True
        for _ in range(2):
            with self._inner():
                branch = self._branch(wanted)
            assert isinstance(branch.body, Var)
            wanted = branch.body.ty
            exact = exact and branch.body in self.exact
            branches.append(branch)
        return If(condition, branches[0], branches[1]), exact

    def _branch(self, wanted: Type | None) -> SeqExpr:
        """A branch whose result is bound last; of the wanted type when something is."""
        before = len(self.visible)
        made = self._sequence(self.choices.integer(1, 2), lambda: Tuple(()), blocks_allowed=False)
        bindings = list(made.blocks[0].bindings) if made.blocks else []
        inner = self.visible[before:]
        fitting = [var for var in self.visible if wanted is not None and _same_type(var.ty, wanted)]
        if wanted is not None and fitting and not (inner and inner[-1] in fitting):
            source = self.choices.pick(fitting)
            var = Var(self.choices.name(), source.ty)
            bindings.append(VarBinding(var, source))
            self.visible.append(var)
            if source in self.exact:
                self.exact.add(var)
        elif not inner or bindings[-1].var is not inner[-1] or isinstance(inner[-1].ty, FuncType):
            value = constant(self.choices, runnable=self.runnable)
            var = Var(self.choices.name(), value.ty)
            bindings.append(VarBinding(var, value))
            self.exact.add(var)
        return SeqExpr((BindingBlock(tuple(bindings)),), bindings[-1].var)

    def _nested_function(self) -> tuple[Expr, bool]:
        """A local function; it may use what is visible."""
        choices = self.choices
        like = [var for var in self._known_tensors()]
        if not like:
            raise Rejected
        outer_pure = self.pure
        with self._inner():
            self.pure = True
            params = []
            for _ in range(choices.integer(1, 2)):
                var = Var(choices.name(), replace(choices.pick(like[::-1]).ty, vdevice=None))
                params.append(var)
                self.visible.append(var)
            body = self._sequence(choices.integer(1, 3), self._result)
            pure = self.pure
            self.pure = outer_pure
            ret = infer_type(body, self.context())
            if self.runnable and not _is_definite(ret):
                raise Rejected
            name = choices.name()
        return Function(tuple(params), body, ret, pure, name=name), False

    def _closure_call(self) -> tuple[Expr, bool]:
        closures = [var for var in self.visible if isinstance(var.ty, FuncType) and var.ty.params is not None]
        if not closures:
            raise Rejected
        var = self.choices.pick(closures[::-1])
        signature = var.ty
        assert isinstance(signature, FuncType)
        args = []
        for ty in signature.params or ():
            fitting = [value for value in self.visible if _same_type(value.ty, ty)]
            if not fitting:
                raise Rejected
            args.append(self.choices.pick(fitting))
        self.pure = self.pure and signature.pure
        return Call(var, tuple(args)), False


class _Default:
    """An argument that is left out."""


_DEFAULT = _Default()


def _required() -> Any:
    from weft.ir.op import REQUIRED

    return REQUIRED


def _is_void(ty: Type) -> bool:
    return isinstance(ty, TupleType) and not ty.fields


def _variables(call: Call) -> Iterator[Var]:
    for arg in call.args:
        for leaf in arg.fields if isinstance(arg, Tuple) else (arg,):
            if isinstance(leaf, Var):
                yield leaf


def _is_discrete(ty: Type) -> bool:
    """Whether a value of the type holds no floats."""
    if isinstance(ty, (TensorType, PrimType)):
        return ty.dtype is not None and not dtypes.is_float(ty.dtype)
    if isinstance(ty, TupleType):
        return all(_is_discrete(field) for field in ty.fields)
    return isinstance(ty, (ShapeType, StringType))


def _is_partly_discrete(ty: Type) -> bool:
    if isinstance(ty, TupleType):
        return any(_is_partly_discrete(field) for field in ty.fields)
    return _is_discrete(ty)


def _is_definite(ty: Type) -> bool:
    """Whether a type says enough for a program that runs."""
    if isinstance(ty, TupleType):
        return all(_is_definite(field) for field in ty.fields)
    return not isinstance(ty, AnyType)


def _too_large(ty: Type) -> bool:
    if isinstance(ty, TupleType):
        return any(_too_large(field) for field in ty.fields)
    if not isinstance(ty, TensorType):
        return False
    if ty.ndim > 6 or (ty.dtype is not None and not dtypes.is_numpy(ty.dtype)):
        return True
    count = 1
    for dim in ty.dims or ():
        count *= dim if isinstance(dim, int) else 4 * len(str(dim))
    return count > 20_000


def _same_shape(a: Type, b: Type) -> bool:
    left, right = dims_of(a), dims_of(b)
    return left is not None and right is not None and left == right


def _same_type(a: Type, b: Type) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        return a.dtype == b.dtype and a.dims is not None and a.dims == b.dims and a.vdevice is b.vdevice
    if isinstance(a, PrimType) and isinstance(b, PrimType):
        return a.dtype == b.dtype
    return False


def _needs_other(ty: Type) -> bool:
    """Whether a type mentions variables or symbols that only another parameter defines."""
    if isinstance(ty, TensorType):
        return isinstance(ty.shape, Var) or any(
            is_symbolic(dim) and not str(dim).isidentifier() for dim in ty.dims or ()
        )
    if isinstance(ty, TupleType):
        return any(_needs_other(field) for field in ty.fields)
    return isinstance(ty, FuncType)


def _symbols_in(value: Any) -> set[str]:
    if isinstance(value, Type):
        return type_symbols(value)
    if isinstance(value, DimExpr):
        return type_symbols(TensorType((value,)))
    if isinstance(value, (list, tuple)):
        return set().union(*(_symbols_in(item) for item in value)) if value else set()
    return set()


def _bare_symbols(value: Any) -> set[str]:
    """The symbols that some tensor type in a value has as a dimension of its own."""
    if isinstance(value, TensorType):
        return {str(dim) for dim in value.dims or () if is_symbolic(dim)}
    if isinstance(value, (list, tuple)):
        return set().union(*(_bare_symbols(item) for item in value)) if value else set()
    return set()


def _bounds(ranges: Mapping[str, tuple[Any, Any]]) -> list[Any]:
    return [end for pair in ranges.values() for end in pair]
