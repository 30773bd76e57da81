"""Showing modules as TVM's readers of this language want them: versions 0.27 and 0.20.

`script(spelling="tvm-0.27")` gives the text that this version reads as the same module: renamed forms, arguments that
its operators ask for, constants as nested lists, symbols that are declared. What it has no form for is refused by name
(ScriptError W116) and never printed as something else.
"""

from __future__ import annotations

import keyword
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from weft.errors import ScriptError, WeftError
from weft.ir.deduction.device_mesh import DTensorType
from weft.ir.deduction.subtyping import dims_of, type_text
from weft.ir.dim import DimExpr, free_symbols, parse_dim
from weft.ir.graph import (
    Call,
    Constant,
    DataflowBlock,
    Expr,
    ExternFunc,
    Function,
    GlobalVar,
    MatchCast,
    Op,
    PrimValue,
    PythonFunc,
    ShapeExpr,
    Var,
    VarBinding,
)
from weft.ir.module import IRModule
from weft.ir.node import FrozenMap, Node
from weft.ir.node import replace as node_replace
from weft.ir.op import OPS
from weft.ir.structure.visit import walk
from weft.ir.tensor import Buffer, PrimVar
from weft.ir.types import AnyType, FuncType, PrimType, StringType, TensorType, TupleType, Type, VDevice
from weft.script.forms.constants import constant_lists
from weft.script.forms.defaults import DEVICE_KINDS
from weft.script.forms.holes import string_text
from weft.script.forms.syntax import BUFFERS
from weft.script.printer.base import identifier
from weft.script.printer.dim import peer_dim
from weft.script.printer.graph import GraphPrinter, body_symbols, signature_symbols, type_symbols
from weft.script.printer.tvm.tensor import PeerTensorPrinter
from weft.target import Target
from weft.target.syntax import parse_target

__all__ = ["PeerPrinter"]

# Names that a function of a module would hide from the functions after it.
_NAMESPACES = frozenset({"I", "R", "T", "tvm"})


@dataclass(frozen=True)
class _Form:
    """How a call of an operator differs from ours.

    `required` arguments cannot be left out, `names` are other names of arguments, `single` ones take no list, `plain`
    ones no symbols, `called` is its name there.
    """


    required: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    single: tuple[str, ...] = ()
    plain: tuple[str, ...] = ()
    called: str = ""


_CALLS: dict[str, _Form] = {
    "flip": _Form(single=("axis",)),
    "one_hot": _Form(plain=("depth",)),
    "repeat": _Form(plain=("repeats",)),
    "tile": _Form(plain=("repeats",)),
    "zeros": _Form(("dtype",)),
    "ones": _Form(("dtype",)),
    "call_pure_packed": _Form(("ty_args",)),
    "call_inplace_packed": _Form(("ty_args",)),
    "call_py": _Form(names={"func_name": "py_func_name"}, called="call_py_func"),
    "invoke_closure": _Form(("ty_args",)),
    "invoke_pure_closure": _Form(("ty_args",)),
    "builtin.alloc_tensor": _Form(("runtime_device_index",)),
    "memory.alloc_storage": _Form(("virtual_device_index", "storage_scope", "dtype")),
    "vm.alloc_storage": _Form(("runtime_device_index", "dtype"), {"size": "shape"}),
    "vm.alloc_tensor": _Form(names={"runtime_device_index": "runtime_device_ind"}),
}
_OF_NUMBERS = frozenset({"arange", "clip", "eye", "eye_like", "tril", "triu"})  # these take no tensors as numbers
_LOGICAL = frozenset({"logical_and", "logical_not", "logical_or", "logical_xor"})  # these give the dtype that they take
_OWN = ("dynamic.", "inspect.")  # operators that only weft has a spelling for


class PeerPrinter(GraphPrinter, PeerTensorPrinter):
    """What both versions want; the class of a version says what differs."""

    external: AbstractSet[str] = frozenset()  # names of external functions of the module
    operator = ""  # the operator whose call is being printed
    place: str = ""  # the function and binding being printed

    def __init__(self, spelling: str, annotate: bool) -> None:
        super().__init__(spelling, annotate)
        self.order: dict[str, int] = {}  # the symbols of the function being printed, as it names them
        if spelling == "tvm-0.27":
            self.block_buffer = replace(BUFFERS["T.alloc_buffer"], name="T.sblock_alloc_buffer")
        else:
            self.older = True
            self.operators = "tir"

    def refuse(self, what: str, node: Any = None, hint: str | None = None) -> ScriptError:
        """The error that a construct has no form in the spelling."""
        where = f" (in {self.place})" if self.place else ""
        span = getattr(node, "span", None)
        return ScriptError(
            f'{what} has no form with spelling="{self.spelling}"{where}', code="W116", span=span, hint=hint
        )

    # -----------------------------------------------------------------------------------------------------------------
    # Modules and functions
    # -----------------------------------------------------------------------------------------------------------------

    def python_member(self, name: str, function: PythonFunc) -> None:
        """Refused: these versions print of such a function only that there is one."""
        self.place = ""
        raise self.refuse(f"the Python function '{name}'", function, "replace it by an R.ExternFunc of its name")

    def class_name(self, module: IRModule) -> str:
        """A name of the class that nothing inside of it has: the functions speak of it."""
        self.external = {name for name, function in module.functions.items() if isinstance(function, ExternFunc)}
        wanted = identifier(module.name or "Module")
        taken = set(module.functions) | set(_names_in(module)) | _NAMESPACES
        while wanted in taken or keyword.iskeyword(wanted):
            wanted += "_"
        return wanted

    def function_name(self, name: str, taken: set[str]) -> str:
        """The name of a function, which is the name of its definition."""
        self.place = f"the function '{name}'"
        if not name.isidentifier() or keyword.iskeyword(name) or name in _NAMESPACES:
            why = "it is no name" if not name.isidentifier() or keyword.iskeyword(name) else "it hides the namespace"
            self.place = ""
            raise self.refuse(f"a function called {string_text(name)}", hint=f"{why}: rename the function")
        return name

    def graph_function(self, written: str, name: str, function: Function) -> None:
        """`@R.function def ...`."""
        before, order = self.place, self.order
        self.place, self.order = f"the function '{name}'", {**order}
        for param in function.params:
            self._number_symbols(param.ty)
        super().graph_function(written, name, function)
        self.place, self.order = before, order

    def _number_symbols(self, ty: Type | None) -> None:
        """Number the symbols of a type after those that are known."""
        if isinstance(ty, TupleType):
            for part in ty.fields:
                self._number_symbols(part)
        elif ty is not None:
            for dim in dims_of(ty) or ():
                for symbol in free_symbols(dim):
                    self.order.setdefault(symbol, len(self.order))

    def result_text(self, function: Function) -> str:
        """What a signature says of its result; strings have no type there."""
        unsaid = _mentions_strings(function.ret_type) or _mentions_no_place(function.ret_type)
        return "" if unsaid else super().result_text(function)

    def binding(self, binding: VarBinding | MatchCast) -> None:
        """One binding as one statement (an if as several)."""
        before, self.place = self.place, f"the binding of '{binding.var.name}'"
        super().binding(binding)
        self.place = before

    def _dataflow(self, block: DataflowBlock) -> None:
        # Names of a `with` end with it, but symbols hold for the rest of the function: they are declared before.
        for binding in block.bindings:
            if isinstance(binding, MatchCast):
                self.declare_symbols(binding.ty)
                self._number_symbols(binding.ty)
        super()._dataflow(block)

    def _target(self, var: Var, annotate: bool) -> str:
        """The variable with its annotation, where that has a form."""
        if _mentions_strings(var.ty) or _mentions_no_place(var.ty):  # what has no form in annotations is deduced
            return self.name(var)
        unknown = type_symbols(var.ty) - self.symbols
        if unknown:
            raise self.refuse(
                f"the size '{min(unknown)}', which comes from the data", var,
                hint="name it with R.match_cast before",
            )  # fmt: skip
        return super()._target(var, annotate)

    # -----------------------------------------------------------------------------------------------------------------
    # Types and sizes
    # -----------------------------------------------------------------------------------------------------------------

    def show_type(self, ty: Type) -> str:
        """A type."""
        if isinstance(ty, StringType) and not self.older:
            raise self.refuse("the type of a string")
        if isinstance(ty, DTensorType) and (ty.mesh is None or ty.placement is None):
            hint = "annotate the variable with its placement"
            raise self.refuse("a spread tensor whose place is not said", hint=hint)
        return super().show_type(ty)

    def _prim_type(self, ty: PrimType) -> str:
        if ty.value is None:
            return super()._prim_type(ty)
        if not self.older:
            hint = 'say R.Prim("int64"), and the size by a shape'
            raise self.refuse(f"the scalar type {type_text(ty)}", ty, hint)
        return f"R.Prim(value={self.scalar_value(ty)})"

    def scalar_value(self, ty: PrimType) -> str:
        """The value of a scalar type, which says the dtype too."""
        if ty.dims is not None:
            return self.show_dim(ty.dims[0])
        return self._typed_number(PrimValue(ty.value, ty.dtype))  # type: ignore[arg-type]

    def _func_type(self, ty: FuncType) -> str:
        if ty.derive is None and ty.params is not None:
            return super()._func_type(ty)
        if ty.params is not None:
            raise self.refuse("a function type with parameters and a derivation")
        if ty.derive and not isinstance(ty.ret, AnyType):
            raise self.refuse("a function type with a result and a derivation")
        result = f"derive_func={string_text(ty.derive)}" if ty.derive else f"ret={self.show_type(ty.ret)}"
        return f"R.Callable({result}, purity={ty.pure})"

    def dim_text(self, value: DimExpr) -> str:
        """A dimension."""
        return peer_dim(value, self.order)

    def _known_shape(self, value: ShapeExpr) -> str:
        return self.leaf(value)

    def _shape(self, value: ShapeExpr) -> str:
        """Sizes as their text spelt them, where they are still the same: other readers compare expressions."""
        texts = value.written if len(value.written) == len(value.dims) else ("",) * len(value.dims)
        shown = (
            text if isinstance(dim, DimExpr) and _means(text, dim) else self.show_dim(dim)
            for text, dim in zip(texts, value.dims, strict=True)
        )
        return f"R.shape([{', '.join(shown)}])"

    # -----------------------------------------------------------------------------------------------------------------
    # Values
    # -----------------------------------------------------------------------------------------------------------------

    def _constant(self, value: Constant) -> str:
        text = constant_lists(value)
        if text is None or value.dtype in ("int4", "uint4"):
            what = "shape" if value.data.size == 0 else "elements"
            raise self.refuse(f"a constant of {value.dtype} with these {what}", value)
        return f'R.const({text}, "{value.dtype}")'

    def _prim_value(self, value: PrimValue) -> str:
        return f"R.prim_value({self._typed_number(value)})"

    def _scalar(self, value: PrimValue) -> str:
        return self._typed_number(value)

    def _typed_number(self, value: PrimValue) -> str:
        """A number whose text says its dtype: bare ones are int64 and bool."""
        number = value.value
        if isinstance(number, DimExpr):
            if value.dtype != "int64":
                return f'T.Cast("{value.dtype}", {self.show_dim(number)})'
            return self.show_dim(number)
        if value.dtype == "int64" or value.dtype == "bool":
            return self.show_literal(number)
        if isinstance(number, float) and not np.isfinite(number):
            return f'T.{value.dtype}("{number}")'
        return f"T.{value.dtype}({self.show_literal(number)})"

    def global_name(self, value: GlobalVar) -> str:
        """A function of the module."""
        if value.name in self.external:
            raise self.refuse(f"a use of the external function '{value.name}' of the module", value)
        return f"cls.{value.name}"

    def literal_node(self, value: Any) -> str:
        """A node in attribute data."""
        if isinstance(value, Target):
            return f"T.target({self.show_literal(FrozenMap(value.to_dict()))})"
        return super().literal_node(value)

    def show_literal(self, value: Any) -> str:
        """Attribute data; the description of a target is one."""
        if isinstance(value, (FrozenMap, dict)):
            items = (f"{string_text(key)}: {self._attribute(key, item)}" for key, item in value.items())
            return f"{{{', '.join(items)}}}"
        if isinstance(value, DimExpr):
            if not set(free_symbols(value)) <= self.symbols:
                raise self.refuse(f"attribute data with the size '{value}'")
            return peer_dim(value, self.order)
        return super().show_literal(value)

    def _attribute(self, key: str, value: Any) -> str:
        text = self.show_literal(value)
        return f"T.target({text})" if key == "target" and isinstance(value, FrozenMap) and "kind" in value else text

    # -----------------------------------------------------------------------------------------------------------------
    # Calls
    # -----------------------------------------------------------------------------------------------------------------

    def call(self, call: Call) -> str:
        """A call."""
        if isinstance(call.op, Op):
            definition = OPS.get(call.op.name)
            if definition is None or call.op.name.startswith(_OWN) or not self._declared(definition, call):
                raise self.refuse(f"R.{call.op.name}", call)
            self.operator = call.op.name
            if call.op.name in _LOGICAL and any(_not_bool(argument) for argument in call.args):
                raise self.refuse(f"R.{call.op.name} of numbers", call, hint='convert them: R.astype(x, "bool")')
        if isinstance(call.op, ExternFunc) and call.op.ty is not None and not call.attrs and not call.ty_args:
            return f"{self.leaf(call.op)}({', '.join(map(self.leaf, call.args))})"  # call_packed takes a name only
        return super().call(call)

    def show_callee(self, value: Expr) -> str:
        """The function of a call: some operators take a string for a string."""
        by_name = self.operator not in ("vm.call_tir_dyn", "make_closure")
        return super().show_callee(value) if by_name else self.leaf(value)

    def show_vdevice(self, value: Any) -> str:
        """A virtual device, whose target newer readers know as a dictionary only, or by a kind or tag."""
        target = value.target if isinstance(value, VDevice) else None
        if isinstance(target, str) and " " in target.strip() and not self.older:
            parts = parse_target(target)
            told = {key: int(item) if str(item).isdecimal() else item for key, item in parts.items()}
            value = node_replace(value, target=FrozenMap(told))
        return super().show_vdevice(value)

    def _operator(self, name: str, definition: Any, call: Call) -> str:
        """A call as the operator's declaration says it is called there."""
        form = _CALLS.get(name)
        if form is None:
            return super()._operator(name, definition, call)
        values = definition.values(call)
        given = {param.name for param, _ in definition.unbind(call)}
        parts: list[str] = []
        in_order = True
        for param in definition.params:
            value = values[param.name]
            if param.kind == "variadic":
                parts.extend(map(self.leaf, value))
                in_order = False
                continue
            if param.name not in given and param.name not in form.required:
                in_order = False
                continue
            in_order = in_order and param.kind not in ("attr", "dtype", "types")
            if param.name in form.plain and any(isinstance(item, DimExpr) for item in _items(value)):
                raise self.refuse(f"a symbol as the argument '{param.name}' of R.{name}", call)
            if param.name in form.single and isinstance(value, tuple):
                if len(value) != 1:
                    raise self.refuse(f"R.{name} with {len(value)} values of '{param.name}'", call)
                value = value[0]
            text = self._required_argument(param, value)
            parts.append(text if in_order else f"{form.names.get(param.name, self.spelled(param.name))}={text}")
        return f"R.{form.called or name}({', '.join(parts)})"

    def _required_argument(self, param: Any, value: Any) -> str:
        if value is None and param.kind == "types":
            raise self.refuse(f"a call without {self.spelled(param.name)}")
        if value is None:
            return self.show_literal(param.default)
        if param.kind == "types" and self.operator in ("invoke_closure", "invoke_pure_closure"):
            text = self._argument(param, value)  # these take types, and no names that stand for one
            return text if text.endswith((")", "]")) else f"{text}()"
        return self._argument(param, value)

    def type_value(self, ty: Type) -> str:
        """A type as an argument, where that of strings has a form."""
        return "I.StringType()" if isinstance(ty, StringType) and not self.older else super().type_value(ty)

    def _argument(self, param: Any, value: Any) -> str:
        """An argument of an operator by the kind of its parameter."""
        if param.name == "fill_value" and isinstance(value, PrimValue):
            return self._filling(value)
        if param.kind == "prim" and isinstance(value, (PrimValue, Var)):
            return self._scalar(value) if isinstance(value, PrimValue) else self.leaf(value)
        if param.kind == "prim" and isinstance(value, Constant) and self.operator in _OF_NUMBERS:
            raise self.refuse(f"a constant tensor as the argument '{param.name}'", value, hint="use R.prim_value")
        if param.name == "tir_vars" and not self.older:
            raise self.refuse("a kernel call with tir_vars", value, hint="give the kernel its sizes by its buffers")
        if param.of.startswith("index_map") and isinstance(value, str):
            return f"T.index_map({value})"
        if param.of.startswith("device") and isinstance(value, VDevice) and self.operator == "hint_on_device":
            return self._device(value)
        return super()._argument(param, value)

    def _filling(self, value: PrimValue) -> str:
        """A number that fills a tensor, which is a tensor there."""
        if isinstance(value.value, DimExpr):
            raise self.refuse(f"the size '{value.value}' as the value that fills a tensor", value)
        return self._constant(Constant(np.array(value.value, value.dtype), value.dtype))

    def _device(self, value: VDevice) -> str:
        """A device of the run time, which is told by its number."""
        kind = value.target.get("kind") if isinstance(value.target, FrozenMap) else str(value.target)
        number = next((number for number, name in DEVICE_KINDS.items() if name == kind), None)
        if number is None or value.scope != "global":
            raise self.refuse("a hint with a target", value)
        return f"R.device({number}, {value.index})"

    _LEAVES: ClassVar[dict[type, Any]] = {
        **GraphPrinter._LEAVES,
        Constant: lambda self, value: self._constant(value),
        PrimValue: lambda self, value: self._prim_value(value),
        ShapeExpr: lambda self, value: self._shape(value),
        GlobalVar: lambda self, value: self.global_name(value),
    }


def _items(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _not_bool(value: Any) -> bool:
    ty = value.ty
    return isinstance(ty, TensorType) and ty.dtype is not None and ty.dtype != "bool"


def _mentions_strings(ty: Type | None) -> bool:
    """Whether a type is or holds that of strings."""
    if isinstance(ty, TupleType):
        return any(map(_mentions_strings, ty.fields))
    return isinstance(ty, StringType)


def _mentions_no_place(ty: Type | None) -> bool:
    """Whether a type is or holds that of a spread tensor whose place is not said."""
    if isinstance(ty, TupleType):
        return any(map(_mentions_no_place, ty.fields))
    return isinstance(ty, DTensorType) and (ty.mesh is None or ty.placement is None)


def _names_in(module: IRModule) -> Iterator[str]:
    """The names of variables, buffers and symbols of a module."""
    for function in module.functions.values():
        if isinstance(function, Function):
            yield from signature_symbols(function) | body_symbols(function)
        for node in walk(function) if isinstance(function, Node) else ():
            if isinstance(node, (Var, PrimVar, Buffer)):
                yield node.name


def _means(text: str, dim: DimExpr) -> bool:
    """Whether a text over symbols, numbers and operators is a dimension."""
    try:
        return bool(text) and parse_dim(text) == dim
    except WeftError:
        return False
