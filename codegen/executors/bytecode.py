"""What bytecode is written with: registers, calls, checks of types, sizes, and operands as data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from weft import dtypes
from weft.codegen.host import program as host
from weft.codegen.host.signature import abi_dim, abi_type, span_json
from weft.errors import Span, TargetError
from weft.ir.dim import Dim
from weft.ir.graph import Constant, Var
from weft.ir.types import AnyType, FuncType, TensorType, TupleType, Type
from weft.runtime.abi import types as abi
from weft.runtime.abi.dims import Expression, Operation
from weft.runtime.abi.json_form import type_to_json
from weft.runtime.executable import Program

__all__ = ["BytecodeBuilder", "Operand", "OperandEmitter", "handed_type", "handed_types", "type_of", "vm_type"]

Operand = list[Any]


def vm_type(ty: Type | None) -> abi.Type:
    """A type as the runtime knows it."""
    if ty is None:
        return abi.Object()
    if isinstance(ty, FuncType):
        return abi.Function()
    if isinstance(ty, TupleType):
        return abi.Tuple(tuple(map(vm_type, ty.fields)))
    return abi_type(ty)


def handed_type(ty: Type | None) -> abi.Type:
    """What a function outside has to know of a value's type: the dtypes of its tensors."""
    if isinstance(ty, TupleType):
        return abi.Tuple(tuple(map(handed_type, ty.fields)))
    return abi.Tensor(ty.dtype, None, -1) if isinstance(ty, TensorType) and ty.dtype is not None else abi.Object()


def type_of(operand: host.Operand) -> Type | None:
    """The type of an operand as far as it holds tensors."""
    if isinstance(operand, Var):
        return operand.ty
    if isinstance(operand, Constant):
        return TensorType(tuple(operand.data.shape), operand.dtype)
    if isinstance(operand, host.Group):
        return TupleType(tuple(type_of(item) or AnyType() for item in operand.fields))
    if isinstance(operand, host.Item):
        whole = type_of(operand.value)
        return whole.fields[operand.index] if isinstance(whole, TupleType) else None
    return None


def handed_types(operands: Sequence[host.Operand]) -> list[Any]:
    """The types of what is handed to a function outside, as JSON."""
    return type_to_json(abi.Tuple(tuple(handed_type(type_of(operand)) for operand in operands)))


class BytecodeBuilder:
    """The instructions of one function; `spans` are the places in the source text of all functions of a program."""

    def __init__(self, spans: list[Any]) -> None:
        self.spans = spans
        self.registers: dict[Var, int] = {}
        self.code: list[Any] = []
        self.computed: dict[Operation, int] = {}
        """Sizes that have been computed on every way to here -> their registers."""
        self.here: Span | None = None
        """The place of the step that is emitted."""
        self.count = 0

    def register(self, var: Var) -> int:
        """The register of a variable."""
        if var not in self.registers:
            self.registers[var] = self.count
            self.count += 1
        return self.registers[var]

    def span(self, span: Span | None) -> int:
        """The number of a place in the source text."""
        if span is None:
            return -1
        self.spans.append(span_json(span))
        return len(self.spans) - 1

    def call(self, into: int, kind: str, name: Any, operands: Sequence[Operand], span: Span | None) -> None:
        """Append a call."""
        self.code.append(["call", into, [kind, name], list(operands), self.span(span)])

    def match(self, operand: Operand, ty: Type | None, what: str, span: Span | None) -> None:
        """Append the check that a value has a type; a register holds it from there on as one of the type."""
        if ty is None or isinstance(ty, (AnyType, FuncType)) or (isinstance(ty, TupleType) and not ty.fields):
            return
        into = operand[1] if operand[0] == "r" else -1
        self.call(into, "builtin", "match", [operand, ["ty", type_to_json(vm_type(ty))], ["s", what]], span)

    def leave_unless(self, condition: Operand, exits: list[int]) -> None:
        """Append a jump whose target is set later, taken unless the condition holds."""
        exits.append(len(self.code))
        self.code.append(["if", condition, 0])

    def new_register(self) -> int:
        """A register of no variable."""
        self.count += 1
        return self.count - 1

    def size(self, dim: Dim) -> Any:
        """A size as data: a number, a symbol, or the register that holds what is computed of them."""
        found = abi_dim(dim)
        if not isinstance(found, Expression):
            return found
        tree = found.tree
        assert isinstance(tree, Operation)
        return [self.compute(tree, found.text), found.text]

    def compute(self, tree: Operation, text: str) -> int:
        """The register of an operation on sizes, computed where it was not yet."""
        if tree not in self.computed:
            operands = [
                [self.compute(operand, text), text] if isinstance(operand, Operation) else operand
                for operand in tree.operands
            ]
            register = self.new_register()
            self.code.append(["size", register, tree.name, operands, text, self.span(self.here)])
            self.computed[tree] = register
        return self.computed[tree]


class OperandEmitter:
    """Operands of a host program as data; constants join those of the kernels' program."""

    def __init__(self, out: BytecodeBuilder, kernels: Program, constants: dict[int, int]) -> None:
        self.out, self.kernels, self.constants = out, kernels, constants

    def operand(self, operand: host.Operand) -> Operand:
        """An operand as data; sizes in it are computed first."""
        if isinstance(operand, Var):
            return self.variable(operand)
        if isinstance(operand, host.Size):
            return ["d", self.out.size(operand.dim)]
        if isinstance(operand, host.Extents):
            return ["shape", list(map(self.out.size, operand.dims))]
        return _OPERANDS[type(operand)](self, operand)

    def variable(self, var: Var) -> Operand:
        """The register of a variable; TargetError W744 where it has no value."""
        if var not in self.out.registers:
            raise TargetError(f"vm: the variable {var.name!r} has no value here", code="W744", span=var.span)
        return ["r", self.out.registers[var]]

    def constant(self, constant: Constant) -> Operand:
        """The number of a constant, each array once."""
        index = self.constants.get(id(constant.data))
        if index is None:
            index = self.constants[id(constant.data)] = len(self.kernels.constants)
            self.kernels.constants.append((constant.data, constant.dtype))
        return ["k", index]

    def item(self, item: host.Item) -> Operand:
        """The register of an item of a tuple, taken here."""
        into = self.out.new_register()
        self.out.call(into, "builtin", "item", [self.operand(item.value), ["i", item.index]], item.span)
        return ["r", into]


def _number(number: host.Number) -> Operand:
    if dtypes.is_float(number.dtype):
        return ["x", float(number.value).hex()]
    return ["i", bool(number.value) if dtypes.is_bool(number.dtype) else int(number.value)]


_OPERANDS: Mapping[type, Callable[[OperandEmitter, Any], Operand]] = {
    Constant: OperandEmitter.constant,
    host.Item: OperandEmitter.item,
    host.Number: lambda emitter, operand: _number(operand),
    host.Group: lambda emitter, operand: ["t", [emitter.operand(item) for item in operand.fields]],
    host.Text: lambda emitter, operand: ["s", operand.text],
    host.FunctionName: lambda emitter, operand: ["f", operand.name],
}
