"""How many bytes a graph function holds at once, as an expression of its sizes.

    peak_memory(module, "main")            the greatest sum of values that are there together
    live_bytes(module, "main")             the sum at each binding of the body, in order

Counted is what the function makes: in explicit-memory form the tensors and storages that it allocates (of views and
tensors in a storage only the storage), before that every value that a call computes. Parameters and constants are not,
results are to the end. A value is there from its binding to the last use of anything that may share its memory.
"""

from __future__ import annotations

from collections.abc import Callable

from weft.errors import PassError
from weft.ir import Call, Function, If, IRModule, Op, Var
from weft.ir.dim import Dim, maximum, prove_le
from weft.ir.graph import ShapeExpr
from weft.transform.analysis.lifetimes import END, Groups, Lifetimes, variables
from weft.transform.analysis.op_cost import bytes_of

__all__ = ["live_bytes", "peak_memory"]

_STORAGES = ("memory.alloc_storage", "vm.alloc_storage")
_ALLOCATES = ("builtin.alloc_tensor", *_STORAGES)
_IN_STORAGE = ("memory.alloc_tensor", "vm.alloc_tensor", "memory.view", "memory.ensure_zero_offset")


def peak_memory(module: IRModule, name: str = "main") -> Dim:
    """The most bytes that a function holds at once.

    Raises PassError W510 for a name that is no graph function, W530 where the size of a value is not known.

    >>> import weft
    >>> text = '@R.function\\ndef main(x: R.Tensor(("n",), "float32")):\\n    y = R.exp(x)\\n    return R.exp(y)'
    >>> peak_memory(weft.IRModule({"main": weft.parse(text)}))
    8 * n
    """
    peak: Dim = 0
    for now in live_bytes(module, name):
        peak = now if prove_le(peak, now) is True else peak if prove_le(now, peak) is True else maximum(peak, now)
    return peak


def live_bytes(module: IRModule, name: str = "main") -> list[Dim]:
    """The bytes that are there while each binding is computed, those of branches included, in the order of the text."""
    function = module[name]
    if not isinstance(function, Function):
        raise PassError(f"{name!r} is no graph function", code="W510")
    lifetimes = Lifetimes(function, module.functions)
    explicit = any(_is_call_of(binding.value, _ALLOCATES) for binding in lifetimes.steps)
    last = lifetimes.last if explicit else _last_uses(function, lifetimes)
    spans: dict[int, tuple[int, int]] = {}
    for step, binding in enumerate(lifetimes.steps):
        value = binding.value
        if _is_call_of(value, _ALLOCATES) if explicit else isinstance(value, Call):
            spans[step] = (step, max(step, last(binding.var)))
        elif _is_call_of(value, _IN_STORAGE) and isinstance(value, Call):
            _extend(spans, lifetimes, value.args[0], last(binding.var))
    sizes = {step: _size(lifetimes.steps[step].var, lifetimes.steps[step].value) for step in spans}
    total: list[Dim] = []
    for step in range(len(lifetimes.steps)):
        now: Dim = 0
        for made, (first, end) in spans.items():
            if first <= step <= end:
                now = now + sizes[made]
        total.append(now)
    return total


def _last_uses(function: Function, lifetimes: Lifetimes) -> Callable[[Var], int]:
    """The last step that uses each value: itself, by another name, in a tuple, or as what a branch gives."""
    groups = Groups()
    for binding in lifetimes.steps:
        value = binding.value
        named = [value.then_branch.body, value.else_branch.body] if isinstance(value, If) else [value]
        for part in named:
            if not isinstance(part, Call):
                for var in variables(part):
                    groups.join(binding.var, var)
    found: dict[Var, int] = {groups.root(var): END for var in variables(function.body.body)}
    for step, binding in enumerate(lifetimes.steps):
        for var in variables(binding.value):
            root = groups.root(var)
            found[root] = max(found.get(root, -1), step)
    return lambda var: found.get(groups.root(var), -1)


def _extend(spans: dict[int, tuple[int, int]], lifetimes: Lifetimes, source: object, last: int) -> None:
    """Let a storage live as long as a tensor in it."""
    made = lifetimes.made.get(source, -1) if isinstance(source, Var) else -1
    if made in spans:
        spans[made] = (spans[made][0], max(spans[made][1], last))


def _is_call_of(value: object, names: tuple[str, ...]) -> bool:
    return isinstance(value, Call) and isinstance(value.op, Op) and value.op.name in names


def _size(var: Var, value: object) -> Dim:
    if isinstance(value, Call) and _is_call_of(value, _STORAGES):
        size = value.args[0]
        return size.dims[0] if isinstance(size, ShapeExpr) and len(size.dims) == 1 else 0
    found = bytes_of(var.ty)
    if found is None:
        raise PassError(f"the size of {var.name!r} is not known", code="W530", span=var.span)
    return found
