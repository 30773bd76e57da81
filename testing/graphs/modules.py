"""Modules: several functions, kernels and external functions, and `main`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from weft.ir.deduction.infer import infer_type
from weft.ir.dim import fresh_name, symbol
from weft.ir.graph import (
    BindingBlock,
    Call,
    ExternFunc,
    Function,
    GlobalVar,
    If,
    PythonFunc,
    SeqExpr,
    Var,
    VarBinding,
)
from weft.ir.module import BaseFunc, DummyGlobalInfo, IRModule
from weft.ir.node import FrozenMap
from weft.ir.op import OPS, OpDef, get_op
from weft.ir.op.declare import ParamKind
from weft.ir.types import TensorType, VDevice
from weft.testing.graphs.calls import in_place, kernel_call, library, module_call, opaque
from weft.testing.graphs.control import closure_call, conditional, nested_function
from weft.testing.graphs.examples import by_example
from weft.testing.graphs.leaves import cast_of, copy_of_variable, item, leaf, tuple_of_leaves
from weft.testing.graphs.operators import operator
from weft.testing.graphs.sequences import result, sequence
from weft.testing.graphs.state import FunctionState
from weft.testing.graphs.types import parameter_type, weaker
from weft.testing.kernels import free_kernel
from weft.testing.opaque import opaque_kernel
from weft.transform.infra.generators.choices import Choices
from weft.transform.infra.generators.values import attribute_map, constant

_FUNCTIONS = ("helper", "f", "fused_add", "main_1", "R", "_private", "x", "forward")
_KERNELS = ("kernel", "tir_add", "k", "x", "n", "scale", "T")
_NEVER = frozenset("print assert_op stop_lift_params wrap_param".split())


_PYTHON = (
    "def {name}(self, x):\n    return x",
    "def {name}(self): return 1",
    '@other("""\n x""")\ndef {name}(x, *y, k="名"):\n\n    """Any\n  margin.\n"""\n    # why\n    return (x +\n k)',
    "def {name}(self, x):\n\tif x:\n\t    return '\\\n'\n\treturn f'''\n{{x}}\n'''",
)


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
            self.add(self._function(self.fresh(_FUNCTIONS), choices.integer(1, 5)))
        if choices.flip(10):
            self.add(free_kernel(choices, self.fresh(_KERNELS)))
        if not self.runnable:
            self._extras()
        self.add(self._function("main", choices.integer(1, self.bindings)))
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

    def _function(self, name: str, budget: int) -> Function:
        return _build(FunctionState(self, name, budget, _makers))

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
        and not any(param.kind in (ParamKind.CALLEE, ParamKind.TYPES) for param in definition.params)
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


def _build(f: FunctionState) -> Function:
    choices = f.choices
    for _ in range(choices.integer(1, 4)):
        f.parameter(parameter_type(f))
    body = sequence(f, f.budget, partial(result, f))
    ret = infer_type(body, f.context())
    if choices.flip(10):
        ret = weaker(f, ret)
    attrs = attribute_map(choices) if choices.flip(20) else FrozenMap()
    private = f.name != "main" and choices.flip(40)
    return Function(tuple(f.params), body, ret, f.pure, private, attrs, name=f.name)


def _makers(f: FunctionState) -> list[tuple[int, Callable[[], tuple[Any, bool]]]]:
    makers: list[tuple[int, Callable[[], tuple[Any, bool]]]] = [
        (24, partial(operator, f)),
        (10, partial(by_example, f)),
        (6, partial(kernel_call, f)),
        (2, partial(in_place, f)),
        (3, lambda: (constant(f.choices, runnable=f.runnable), True)),
        (3, partial(tuple_of_leaves, f)),
        (3, partial(item, f)),
        (3, partial(cast_of, f)),
        (2, partial(leaf, f)),
        (3, partial(library, f)),
        (3, partial(module_call, f)),
        (1, partial(copy_of_variable, f)),
    ]
    if not f.dataflow and f.nested < 2:
        makers.extend(((4, partial(conditional, f)), (3, partial(nested_function, f)), (3, partial(closure_call, f))))
    if not f.runnable:
        makers.append((3, partial(opaque, f)))
    return makers
