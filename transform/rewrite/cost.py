"""What calls of operators cost, in floating-point operations and bytes, with symbolic sizes.

    cost(call) ::= flops + bytes / 4 * BYTES_AS_FLOPS        a dimension: a number, or an expression of sizes

Products and convolutions count two operations for each term of their sums, everything else one for each element that it
reads or gives; every operand is read and every result written once. What is known at compile time costs nothing, since
`FoldConstant` computes it then. Costs are compared for all sizes: `cheaper` is a proof.
"""

from __future__ import annotations

from collections.abc import Iterable

from weft import dtypes
from weft.ir import Call, Expr, Op, TensorType, Tuple, TupleGetItem, TupleType, Type
from weft.ir.deduction.infer import TypeContext, infer_type
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import Dim, floordiv, maximum, product, prove_equal, prove_le
from weft.ir.op import OPS
from weft.transform.pattern.rule import Site

__all__ = ["call_cost", "cheaper", "flops", "memory_traffic", "replacement_costs", "terms_of_sums"]

BYTES_AS_FLOPS = 1
"""What four bytes of memory traffic are worth, in operations: little enough that large products decide."""


def flops(call: Call, context: TypeContext) -> Dim | None:
    """The operations of a call; None where sizes are not known.

    >>> import weft
    >>> head = '@R.function\\ndef f(a: R.Tensor(("n", 8), "float32"), b: R.Tensor((8, 4), "float32")):\\n'
    >>> f = weft.parse(head + "    return R.matmul(a, b)")
    >>> flops(f.body.blocks[0].bindings[0].value, TypeContext())
    64 * n
    """
    result, operands = _sizes(infer_type(call, context)), [_sizes(infer_type(arg, context)) for arg in call.args]
    if result is None or any(size is None for size in operands) or not isinstance(call.op, Op):
        return None
    terms = terms_of_sums(call, context)
    if terms is not None:
        return 2 * terms * result
    return maximum(result, *(size for size in operands if size is not None))


def terms_of_sums(call: Call, context: TypeContext) -> Dim | None:
    """The terms of each sum of a product or a convolution; None for other operators."""
    name = call.op.name if isinstance(call.op, Op) else ""
    dims = [dims_of(infer_type(arg, context)) or () for arg in call.args]
    if name == "matmul":
        return dims[0][-1] if dims[0] else 1
    if name.startswith("nn.conv") and "transpose" not in name and len(dims) >= 2:
        values = OPS[name].values(call)
        out = str(values.get("kernel_layout", "OI")).find("O")
        kernel = product(dims[1])
        return floordiv(kernel, dims[1][out]) if 0 <= out < len(dims[1]) else None
    return None


def memory_traffic(call: Call, context: TypeContext) -> Dim | None:
    """The bytes that a call reads and writes; None where sizes are not known."""
    types = [infer_type(call, context), *(infer_type(arg, context) for arg in call.args)]
    found: Dim = 0
    for ty in types:
        size = _bytes(ty)
        if size is None:
            return None
        found = found + size
    return found


def call_cost(call: Call, context: TypeContext) -> Dim | None:
    """Operations and traffic as one number; None where sizes are not known."""
    operations, traffic = flops(call, context), memory_traffic(call, context)
    return None if operations is None or traffic is None else operations + floordiv(traffic, 4) * BYTES_AS_FLOPS


def _sizes(ty: Type) -> Dim | None:
    if isinstance(ty, TupleType):
        sizes = [_sizes(field) for field in ty.fields]
        known = [size for size in sizes if size is not None]
        return sum(known, 0) if len(known) == len(sizes) else None  # type: ignore[arg-type]
    if isinstance(ty, TensorType):
        dims = dims_of(ty)
        return None if dims is None else product(dims)
    return 0


def _bytes(ty: Type) -> Dim | None:
    if isinstance(ty, TupleType):
        sizes = [_bytes(field) for field in ty.fields]
        known = [size for size in sizes if size is not None]
        return sum(known, 0) if len(known) == len(sizes) else None  # type: ignore[arg-type]
    if isinstance(ty, TensorType):
        dims = dims_of(ty)
        return None if dims is None or ty.dtype is None else product(dims) * max(1, dtypes.bits(ty.dtype) // 8)
    return 0


def cheaper(new: Dim, old: Dim) -> bool:
    """Whether a cost is proved to be no greater for any sizes, and is another one.

    >>> from weft.ir.dim import symbol
    >>> n = symbol("n")
    >>> cheaper(4 * n, 8 * n + 1), cheaper(4 * n, 4 * n), cheaper(n, 3 + 0 * n)
    (True, False, False)
    """
    return prove_le(new, old) is True and prove_equal(new, old) is not True


def replacement_costs(site: Site, new: Expr) -> tuple[Dim, Dim] | None:
    """The cost of what is replaced and nothing else uses, and of what takes its place; None for unknown sizes."""
    context = TypeContext()
    given = {id(site.value(expr)) for expr in site.found.values()}
    old = [
        call for call in _calls(site.call, site) if call is site.call or (id(call) in given and site.is_used_once(call))
    ]
    made = [call for call in _nested(new) if id(call) not in given or call is site.call]
    costs = [_total(calls, site, context) for calls in (old, made)]
    return None if costs[0] is None or costs[1] is None else (costs[0], costs[1])


def _total(calls: Iterable[Call], site: Site, context: TypeContext) -> Dim | None:
    found: Dim = 0
    for call in calls:
        if all(site.is_constant(arg) for arg in call.args):
            continue
        cost = call_cost(call, context)
        if cost is None:
            return None
        found = found + cost
    return found


def _calls(root: Expr, site: Site) -> list[Call]:
    """The calls behind a value that only it needs."""
    found: dict[int, Call] = {}
    pending: list[Expr] = [root]
    while pending:
        expr = pending.pop()
        value = expr if expr is root else site.value(expr)
        if expr is not root and not site.is_used_once(expr):
            continue
        if isinstance(value, Call):
            if id(value) in found:
                continue
            found[id(value)] = value
        pending.extend(_parts(value))
    return list(found.values())


def _nested(root: Expr) -> list[Call]:
    """The calls of an expression that is not bound yet."""
    found: dict[int, Call] = {}
    pending = [root]
    while pending:
        expr = pending.pop()
        if isinstance(expr, Call):
            if id(expr) in found:
                continue
            found[id(expr)] = expr
        pending.extend(_parts(expr))
    return list(found.values())


def _parts(expr: Expr) -> tuple[Expr, ...]:
    if isinstance(expr, Call):
        return expr.args
    if isinstance(expr, Tuple):
        return expr.fields
    return (expr.value,) if isinstance(expr, TupleGetItem) else ()
