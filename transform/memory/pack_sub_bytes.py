"""PackSubBytes: constants and intermediate tensors of 4, 2 and 1 bits an element are bytes with several elements each.

    w = R.const([1, -2, 3, 4, 5], "int4")                   w = R.const([225, 67, 5], "uint8")
    y = R.call_tir(k, (x, w), R.Tensor((n, 5), "int4"))     y = R.call_tir(k_packed, (x, w), R.Tensor((s,), "uint8"))
                                                            s = (5 * n + 1) // 2

The first element has the lowest bits, as in ONNX. What callers pass and get keeps its dtype and has a byte for each
element, as the arrays of `ml_dtypes` have. A value stays as it is where something else than a kernel uses it, where a
kernel looks at its memory in another way than element by element, or where sizes of a kernel follow from it alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np

from weft import dtypes
from weft.ir import (
    Binding,
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    IRModule,
    Op,
    PrimFunc,
    TensorType,
    Tuple,
    Type,
    Var,
    VarBinding,
    replace,
    walk,
)
from weft.ir.builder import BlockBuilder
from weft.ir.dim import product
from weft.ir.kernel.prim_dim import buffer_symbols
from weft.ir.tensor import Buffer, PrimVar
from weft.support.array_memory import aligned_zeros, content_bytes
from weft.support.records import dataclass
from weft.transform.infra.base import Pass, map_functions
from weft.transform.infra.rewriting import FunctionRewriter
from weft.transform.kernel.sub_bytes import packable_params, packed_bytes, with_packed_params

__all__ = ["PackSubBytes", "packed_array"]


@dataclass(frozen=True)
class PackSubBytes(Pass):
    """Keep constants and intermediate tensors of less than a byte an element packed."""

    def run(self, module: IRModule) -> IRModule:
        """The module whose kernels read and write packed bytes."""
        packable = {
            name: params
            for name, function in module.functions.items()
            if isinstance(function, PrimFunc) and (params := packable_params(function))
        }
        if not packable:
            return module
        builder = BlockBuilder(module)
        known: dict[int, tuple[Constant, Constant]] = {}
        made: dict[tuple[str, frozenset[int]], GlobalVar] = {}
        new = map_functions(module, lambda name, function: _Packing(builder, packable, known, made).run(function))
        if new is module:
            return module
        added = {name: function for name, function in builder.get().items() if name not in module}
        return _without_unused(new.with_functions({**new.functions, **added}), packable)


def _without_unused(module: IRModule, kernels: Mapping[str, object]) -> IRModule:
    """The module without private kernels that nothing mentions any more."""
    used = {
        node.name
        for f in module.functions.values()
        if isinstance(f, (Function, PrimFunc))
        for node in walk(f)
        if isinstance(node, GlobalVar)
    }
    gone = [name for name in kernels if name not in used and module[name].private]  # type: ignore[union-attr]
    return module.without(*gone) if gone else module


def packed_array(array: np.ndarray, dtype: str) -> np.ndarray:
    """The bytes of an array of elements of less than a byte.

    >>> packed_array(np.array([1, -2, 3, 4, 5], "int8"), "int4").tolist()
    [225, 67, 5]
    """
    per, width = dtypes.per_byte(dtype), dtypes.bits(dtype)
    count = int(packed_bytes(array.size, dtype))
    flat, found = np.zeros(count * per, np.uint8), aligned_zeros((count,), np.uint8)
    np.bitwise_and(content_bytes(array), (1 << width) - 1, out=flat[: array.size])
    found |= flat[::per]
    for part in range(1, per):
        found |= flat[part::per] << (part * width)
    return found


@dataclass(frozen=True)
class _KernelCall:
    """A call of a kernel: the variable of its result, and what stands for each tensor that it takes and gives."""

    var: Var
    kernel: PrimFunc
    name: str
    items: tuple[Expr | None, ...]


def _kernel_calls(function: Function, module: Mapping[str, object]) -> Iterator[_KernelCall]:
    """The calls of kernels whose inputs are single values; outputs of a call with several stand for nothing."""
    for binding in walk(function):
        call = binding.value if isinstance(binding, VarBinding) else None
        if not isinstance(call, Call) or not isinstance(call.op, Op) or call.op.name != "call_tir":
            continue
        kernel, inputs = call.args[:2]
        found = module.get(kernel.name) if isinstance(kernel, GlobalVar) else None
        if isinstance(found, PrimFunc) and isinstance(kernel, GlobalVar) and isinstance(inputs, Tuple):
            output = binding.var if isinstance(call.ty_args[0], TensorType) else None  # type: ignore[union-attr]
            yield _KernelCall(binding.var, found, kernel.name, (*inputs.fields, output))  # type: ignore[union-attr]


def _is_narrow(ty: Type | None) -> bool:
    """Whether tensors of a type have several elements in a packed byte, and a known shape."""
    return isinstance(ty, TensorType) and ty.dtype is not None and ty.dims is not None and dtypes.per_byte(ty.dtype) > 1


class _Packing(FunctionRewriter):
    """Packs the constants and intermediate values of one function that nothing but kernels use."""

    def __init__(
        self,
        builder: BlockBuilder,
        packable: Mapping[str, frozenset[int]],
        known: dict[int, tuple[Constant, Constant]],
        kernels: dict[tuple[str, frozenset[int]], GlobalVar],
    ) -> None:
        super().__init__()
        self.builder, self.packable, self.known, self.kernels = builder, packable, known, kernels
        self.values: set[Var] = set()
        self.calls: dict[Var, tuple[_KernelCall, frozenset[int]]] = {}

    def run(self, function: Function) -> Function:
        """The function with packed values."""
        if not self.calls:
            calls = list(_kernel_calls(function, self.builder.get().functions))
            self.values = self._narrow_values(function, calls)
            self.calls = self._packed_positions(calls)
        return super().run(function) if self.calls else function

    def _narrow_values(self, function: Function, calls: list[_KernelCall]) -> set[Var]:
        """The variables that are only ever a packable parameter of a kernel: where they are bound, and where used."""
        made = {
            node.var
            for node in walk(function)
            if isinstance(node, VarBinding) and isinstance(node.value, Constant) and _is_narrow(node.value.ty)
        }
        allowed: Counter[Expr | None] = Counter(made)
        for call in calls:
            here = self.packable.get(call.name, frozenset())
            allowed.update(item for at, item in enumerate(call.items) if at in here)
            if isinstance(call.items[-1], Var) and _is_narrow(call.var.ty):
                made.add(call.var)
        uses = Counter(node for node in walk(function) if isinstance(node, Var) and node in made)
        return {var for var in made if uses[var] == allowed[var]}

    def _packed_positions(self, calls: list[_KernelCall]) -> dict[Var, tuple[_KernelCall, frozenset[int]]]:
        """The packed parameters of each call; values that sizes of a kernel follow from alone are left out."""
        while True:
            found: dict[Var, tuple[_KernelCall, frozenset[int]]] = {}
            lost: set[Var] = set()
            for call in calls:
                positions = {
                    at
                    for at, item in enumerate(call.items)
                    if at in self.packable.get(call.name, ()) and (item in self.values or isinstance(item, Constant))
                }
                needed = _sized_by(call.kernel, positions)
                lost |= {item for at, item in enumerate(call.items) if at in needed and isinstance(item, Var)}
                if positions - needed:
                    found[call.var] = call, frozenset(positions - needed)
            if not lost:
                return found
            self.values -= lost

    def rewrite_binding(self, binding: Binding) -> Binding:
        """A constant as its bytes, a call with packed parameters."""
        if not isinstance(binding, VarBinding):
            return binding
        if binding.var in self.calls:
            binding = replace(binding, value=self._call(binding.value, *self.calls[binding.var]))  # type: ignore[arg-type]
        elif binding.var in self.values:
            binding = replace(binding, value=self._constant(binding.value))  # type: ignore[arg-type]
        if binding.var not in self.values:
            return binding
        new = self.replaced[binding.var] = replace(binding.var, ty=_packed_type(binding.var.ty))
        return replace(binding, var=new)

    def _call(self, call: Call, found: _KernelCall, positions: frozenset[int]) -> Call:
        key = found.name, positions
        if key not in self.kernels:
            packed = replace(with_packed_params(found.kernel, positions), private=True)
            self.kernels[key] = self.builder.add_func(packed, f"{found.name}_packed")
        inputs = call.args[1]
        assert isinstance(inputs, Tuple)
        fields = tuple(
            self._constant(item) if at in positions and isinstance(item, Constant) else item
            for at, item in enumerate(inputs.fields)
        )
        args = (self.kernels[key], replace(inputs, fields=fields), *call.args[2:])
        types = (_packed_type(call.ty_args[0]),) if len(found.items) - 1 in positions else call.ty_args
        return replace(call, args=args, ty_args=types)

    def _constant(self, constant: Constant) -> Constant:
        key = id(constant.data)
        if key not in self.known:
            data = packed_array(constant.data, constant.dtype)
            data.flags.writeable = False
            self.known[key] = constant, Constant(data, "uint8", span=constant.span)  # the first one stays alive
        return self.known[key][1]


def _sized_by(kernel: PrimFunc, positions: set[int]) -> set[int]:
    """The positions of parameters without which sizes of the kernel are not known."""
    buffers = {at: param for at, param in enumerate(kernel.params) if isinstance(param, Buffer)}
    others = {x for at, buffer in buffers.items() if at not in positions for x in (*buffer.shape, buffer.elem_offset)}
    missing = {x for x in buffer_symbols(kernel) if x not in others}
    return {at for at in positions if any(isinstance(x, PrimVar) and x in missing for x in buffers[at].shape)}


def _packed_type(ty: Type | None) -> TensorType:
    assert isinstance(ty, TensorType)
    assert ty.dtype is not None
    return replace(ty, shape=(packed_bytes(product(ty.dims or ()), ty.dtype),), dtype="uint8")
