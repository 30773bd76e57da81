"""CombineParallelMatmul: products of one matrix with several others become one product and slices of it.

    q = R.matmul(x, w1)          q_k = R.matmul(x, w)        w = w1 and w2 side by side
    k = R.matmul(x, w2)          q = R.strided_slice(q_k, axes=[-1], begin=[0], end=[6])
                                 k = R.strided_slice(q_k, axes=[-1], begin=[6], end=[12])

The slices are computed by whatever reads them (biases and activations, by fusion) or copied. The pass decides, then
applies; the decision is a function from the products that share an operand to groups of them. The built-in one,
`combine_where_it_pays`, joins

    narrow products             whose columns leave a large part of the vector registers empty: an operand of four
                                columns takes as long as one of sixteen
    wide products of few rows   as of a decoder's queries, keys and values: there is little work for threads to share,
                                and little to copy

Wide products of many rows are left apart: each keeps every register and thread busy, and the slices would be copies.
Right operands are joined when the module is compiled, so only constants are; a decision that joins parameters makes a
copy of them in every call.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import ClassVar

import numpy as np

from weft import dtypes
from weft.errors import PassError
from weft.ir import (
    Binding,
    BindingBlock,
    Call,
    Constant,
    Expr,
    FrozenMap,
    Function,
    IRModule,
    Op,
    TensorType,
    Tuple,
    Var,
    VarBinding,
    replace,
)
from weft.ir.attrs import LABEL, PRIMITIVE, attribute
from weft.ir.deduction.infer import infer_type
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import Dim, product, prove_equal
from weft.support.records import dataclass, record
from weft.target.machine_model import widest_vector
from weft.transform.infra.base import FunctionPass
from weft.transform.infra.rewriting import FunctionRewriter, derived

__all__ = ["CombineDecision", "CombineParallelMatmul", "ParallelProduct", "SharedOperand", "combine_where_it_pays"]


@record
class ParallelProduct:
    """One of the products: its variable, the columns of its right operand, and whether that is a constant."""

    name: str
    columns: Dim
    constant: bool


@record
class SharedOperand:
    """Products that share their left operand: `rows` of `sums` terms each, batches counted as rows."""

    name: str
    dtype: str
    rows: Dim
    sums: Dim
    products: tuple[ParallelProduct, ...]


CombineDecision = Callable[[SharedOperand], Sequence[Sequence[int]]]
"""products of one operand -> groups of their indices, each to become one product."""

_VECTOR_BITS = widest_vector()
_COPY = 48  # terms of a sum that a vector must save to make up for the copies of the slices
_FEW_ROWS = 16
_WIDE = 512  # columns, and terms


def combine_where_it_pays(shared: SharedOperand) -> list[list[int]]:
    """The built-in decision: narrow constants, and wide ones for few rows."""
    if shared.dtype not in ("float32", "float64") or not isinstance(shared.sums, int):
        return []
    columns = {
        index: item.columns
        for index, item in enumerate(shared.products)
        if item.constant and isinstance(item.columns, int)
    }
    found = _narrow(shared, shared.sums, columns), _wide(shared, shared.sums, columns)
    return [group for group in found if len(group) > 1]


def _wide(shared: SharedOperand, sums: int, columns: Mapping[int, int]) -> list[int]:
    """Products of few rows; whole vectors, so that each slice of a single row starts at one."""
    if not isinstance(shared.rows, int) or shared.rows > _FEW_ROWS or sums < _WIDE:
        return []
    lanes = _VECTOR_BITS // dtypes.bits(shared.dtype)
    return [index for index, count in columns.items() if _WIDE <= count <= 3 * sums and count % lanes == 0]


def _narrow(shared: SharedOperand, sums: int, columns: Mapping[int, int]) -> list[int]:
    """Products of fewer columns than two vectors, where joining them saves vectors.

    A single column is a sum of products already, and the slices of a single row would be results of their own that lie
    anywhere in memory: both stay.
    """
    lanes = _VECTOR_BITS // dtypes.bits(shared.dtype)
    narrow = {index: count for index, count in columns.items() if 1 < count < 2 * lanes and shared.rows != 1}
    apart = sum(-(-columns // lanes) for columns in narrow.values())
    together = -(-sum(narrow.values()) // lanes)
    return list(narrow) if (apart - together) * sums >= _COPY * max(1, apart) else []


@dataclass(frozen=True)
class CombineParallelMatmul(FunctionPass):
    """Join products that share their left operand, where `decide` says so (by default `combine_where_it_pays`).

    Functions with the attribute `primitive`, and products with different labels, are left apart. Raises: PassError W534
    for groups that overlap or name no product.
    """

    level: ClassVar[int] = 1
    aliases: ClassVar[tuple[str, ...]] = ("combine-matmul",)
    decide: CombineDecision | None = field(default=None)

    def run_function(self, name: str, function: Function, module: IRModule) -> Function:
        """The function with the products joined."""
        return function if attribute(function.attrs, PRIMITIVE) else _Combiner(self, function).run(function)

    def explain(self, module: IRModule) -> str:
        """What the pass would do, as text: a line for each operand that several products share.

        >>> CombineParallelMatmul().explain(IRModule({}))
        'no products share an operand'
        """
        lines = []
        for name, function in module.items():
            if isinstance(function, Function) and not attribute(function.attrs, PRIMITIVE):
                combiner = _Combiner(self, function)
                combiner.run(function)
                lines += [f"{name}: {line}" for line in combiner.record]
        return "\n".join(lines) or "no products share an operand"


def _label(binding: VarBinding) -> dict[str, object]:
    """The label of a call, for those that are made beside it."""
    attrs = binding.value.attrs if isinstance(binding.value, Call) else {}
    return {LABEL: attrs[LABEL]} if LABEL in attrs else {}


def _is_product(binding: Binding) -> bool:
    call = binding.value
    return isinstance(call, Call) and isinstance(call.op, Op) and call.op.name == "matmul"


class _Combiner(FunctionRewriter):
    changes_blocks = True

    def __init__(self, options: CombineParallelMatmul, function: Function) -> None:
        super().__init__()
        self.decide = options.decide or combine_where_it_pays
        self.origin = options.text_name
        self.params = set(function.params)
        self.record: list[str] = []

    def rewrite_block(self, block: BindingBlock, bindings: tuple[Binding, ...]) -> BindingBlock:
        """The block with one product in place of the first of each group, and slices in place of all."""
        sharing: dict[Hashable, list[VarBinding]] = {}
        for binding in bindings:
            if isinstance(binding, VarBinding) and _is_product(binding):
                key = self._key(binding)
                if key is not None:
                    sharing.setdefault(key, []).append(binding)
        new: dict[Binding, list[Binding]] = {}
        for items in sharing.values():
            if len(items) > 1:
                self._combine(items, new)
        if not new:
            return replace(block, bindings=bindings)
        return replace(block, bindings=tuple(part for item in bindings for part in new.get(item, (item,))))

    def _key(self, binding: VarBinding) -> Hashable | None:
        """What products that may be joined have in common; None for one that takes no part."""
        call = binding.value
        assert isinstance(call, Call)
        x, w = call.args
        ours, dims = infer_type(w), dims_of(binding.var.ty)
        known = isinstance(w, Constant) or w in self.params
        if not isinstance(x, Var) or not known or dims is None or not isinstance(ours, TensorType):
            return None
        sizes, left = dims_of(ours), dims_of(x.ty)
        if sizes is None or left is None or len(sizes) < 2 or len(left) < 2 or not prove_equal(left[-1], sizes[-2]):
            return None
        return x, call.attrs, ours.dtype, ours.vdevice, sizes[:-1], dims[:-1]

    def _combine(self, items: Sequence[VarBinding], new: dict[Binding, list[Binding]]) -> None:
        calls = [item.value for item in items if isinstance(item.value, Call)]
        weights = [call.args[1] for call in calls]
        columns = [_dims(infer_type(weight))[-1] for weight in weights]
        shared = SharedOperand(
            calls[0].args[0].name,  # type: ignore[attr-defined]
            infer_type(weights[0]).dtype,  # type: ignore[attr-defined]
            product(_dims(items[0].var.ty)[:-1]),
            _dims(infer_type(weights[0]))[-2],
            tuple(
                ParallelProduct(item.var.name, count, isinstance(weight, Constant))
                for item, weight, count in zip(items, weights, columns, strict=True)
            ),
        )
        groups = [sorted(group) for group in self.decide(shared)]
        _check(groups, shared)
        self._note(shared, groups)
        for group in groups:
            if len(group) > 1:
                self._join([items[i] for i in group], [columns[i] for i in group], new)

    def _join(self, items: Sequence[VarBinding], columns: Sequence[Dim], new: dict[Binding, list[Binding]]) -> None:
        """One product before the first of the items, and a slice of it for each."""
        first = items[0]
        calls = [item.value for item in items if isinstance(item.value, Call)]
        span = derived(first.span, self.origin)
        together, made = self._side_by_side([call.args[1] for call in calls], first)
        call = replace(calls[0], args=(calls[0].args[0], together), span=span)
        name = "_".join(item.var.name for item in items)
        joined = self.fresh(name if len(name) <= 60 else "products", infer_type(call), span)
        made.append(VarBinding(joined, call, span=span))
        label = _label(first)
        start: Dim = 0
        for item, count in zip(items, columns, strict=True):
            where = {"axes": (-1,), "begin": (start,), "end": (start + count,), "assume_inbound": True}
            part = Call(Op("strided_slice"), (joined,), FrozenMap({**where, **label}), span=span)
            sliced = replace(item, value=part, span=derived(item.span, self.origin))
            new[item] = [*made, sliced] if item is first else [sliced]
            start = start + count

    def _side_by_side(self, weights: Sequence[Expr], first: VarBinding) -> tuple[Expr, list[Binding]]:
        """The right operands as one, and the binding that joins them unless they are constants."""
        constants = [weight for weight in weights if isinstance(weight, Constant)]
        if len(constants) == len(weights):
            data = np.concatenate([constant.data for constant in constants], axis=-1)
            return Constant(data, constants[0].dtype, span=constants[0].span), []
        span = derived(first.span, self.origin)
        call = Call(Op("concat"), (Tuple(tuple(weights)),), FrozenMap({"axis": -1, **_label(first)}), span=span)
        var = self.fresh("weights", infer_type(call), span)
        return var, [VarBinding(var, call, span=span)]

    def _note(self, shared: SharedOperand, groups: Sequence[Sequence[int]]) -> None:
        """A line of `explain`."""
        joined = {index for group in groups if len(group) > 1 for index in group}
        parts = [_names(shared, group) + " joined" for group in groups if len(group) > 1]
        alone = [index for index in range(len(shared.products)) if index not in joined]
        if alone:
            parts.append(_names(shared, alone) + " apart")
        self.record.append(f"products of {shared.name} over {shared.sums} terms: {'; '.join(parts)}")


def _names(shared: SharedOperand, group: Iterable[int]) -> str:
    found = [shared.products[index] for index in group]
    kind = {True: "", False: " of a parameter"}
    return ", ".join(f"{item.name} ({item.columns} columns{kind[item.constant]})" for item in found)


def _dims(ty: object) -> tuple[Dim, ...]:
    assert isinstance(ty, TensorType)
    dims = dims_of(ty)
    assert dims is not None
    return tuple(dims)


def _check(groups: Sequence[Sequence[int]], shared: SharedOperand) -> None:
    seen: list[int] = [index for group in groups for index in group]
    if len(set(seen)) < len(seen) or not set(seen) <= set(range(len(shared.products))):
        raise PassError(
            f"combine-parallel-matmul: the groups {groups} are no groups of {len(shared.products)} products of "
            f"{shared.name}",
            code="W534",
            hint="each group lists indices of the given products, none of them twice",
        )
