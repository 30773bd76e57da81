"""SplitCallTIRByPattern: the first part of a kernel that computes what a pattern computes becomes a call of its own.

    SplitCallTIRByPattern([matmul], lambda match: "blas.matmul")

    r = R.call_tir(cls.fused_matmul_relu, (x, w), out)      lv = R.call_dps_packed("blas.matmul", (x, w), out of it)
                                                   becomes  r = R.call_tir(cls.fused_matmul_relu_rest, (lv,), out)

A pattern is a kernel; the loops at the start of another one match it where they are the same, up to names, annotations
and widths of indices. Symbols of a pattern stand for any sizes. The function of the user's names the library function
that the part becomes a call of; where it gives None the part becomes a kernel, with the name of its pattern as the
attribute `pattern`. Kernels that a schedule has arranged, or that take scalars, stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from weft.errors import PassError, described
from weft.ir import (
    EMPTY,
    Binding,
    Call,
    Expr,
    FrozenMap,
    GlobalVar,
    IRModule,
    Op,
    PrimFunc,
    TensorType,
    Tuple,
    VarBinding,
    replace,
    rewrite,
    structural_equal,
    substitute,
    te,
    walk,
)
from weft.ir.builder import BlockBuilder
from weft.ir.deduction.infer import TypeContext, infer_type
from weft.ir.deduction.subtyping import match_types
from weft.ir.dim import substitute as substitute_dim
from weft.ir.graph import ExternFunc
from weft.ir.kernel.prim_dim import kernel_signature
from weft.ir.kernel.simplify import simplify
from weft.ir.node import Node
from weft.ir.op import get_op
from weft.ir.tensor import (
    AllocBuffer,
    Block,
    Buffer,
    BufferLoad,
    BufferStore,
    Extent,
    IfThenElse,
    IntImm,
    PrimExpr,
    PrimVar,
    Stmt,
)
from weft.support.records import dataclass
from weft.transform.graph.dead_code import remove_unreachable
from weft.transform.infra.base import Pass, map_functions
from weft.transform.infra.generators.choices import Choices
from weft.transform.infra.rewriting import FunctionRewriter
from weft.transform.kernel.scheduled import is_scheduled
from weft.transform.kernel.widen_indices import with_wide_indices
from weft.transform.schedule.copies import fresh_buffer, fresh_function
from weft.transform.schedule.tree import loads_in, sequence, statements_of, stores_in

__all__ = ["SplitCallTIRByPattern", "TIRMatch"]

PATTERN = "pattern"


@dataclass(frozen=True)
class TIRMatch:
    """What matched: the kernel, the pattern, and the kernel's own form of it (with its sizes)."""

    kernel: PrimFunc
    pattern: PrimFunc
    part: PrimFunc


@dataclass(frozen=True, eq=False)
class SplitCallTIRByPattern(Pass):
    """Let library functions, or kernels of their own, compute the parts of kernels that patterns find.

    `patterns` are tried in order; `codegen` gets a `TIRMatch`, and names a library function, or gives None. Raises
    PassError W550 for what is no kernel, or a name that is none.
    """

    keeps_meaning: ClassVar[bool] = True
    patterns: tuple[PrimFunc, ...]
    codegen: Callable[[TIRMatch], str | None] | None = None

    @classmethod
    def sample(cls, choices: Choices) -> tuple[SplitCallTIRByPattern, str]:
        """A sum of rows, and what follows it in the same kernel."""
        width = choices.pick((6, 1))
        rest = choices.pick(("T.exp(s[vi])", "s[vi] * T.float32(2)", "T.max(s[vi], y[vi])"))
        x = te.placeholder((4, width), name="x")
        k = te.reduce_axis((0, width), name="k")
        pattern = te.create_prim_func([x, te.compute((4,), lambda i: te.sum(x[i, k], axis=k), name="s")], "row_sum")
        return (
            cls((pattern,)),
            f"""@I.ir_module
class Module:
    @T.prim_func(private=True)
    def fused(x: T.Buffer((4, {width}), "float32"), y: T.Buffer((4,), "float32"), out: T.Buffer((4,), "float32")):
        s = T.alloc_buffer((4,), "float32")
        for i, k in T.grid(4, {width}):
            with T.block("s"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    s[vi] = T.float32(0)
                s[vi] = s[vi] + x[vi, vk]
        for i in range(4):
            with T.block("out"):
                vi = T.axis.spatial(4, i)
                out[vi] = {rest}

    @R.function
    def main(x: R.Tensor((4, {width}), "float32"), y: R.Tensor((4,), "float32")):
        with R.dataflow():
            out = R.call_tir(Module.fused, (x, y), out_ty=R.Tensor((4,), "float32"))
            R.output(out)
        return out
""",
        )

    def __post_init__(self) -> None:
        given = (self.patterns,) if isinstance(self.patterns, PrimFunc) else tuple(self.patterns)
        wrong = next((item for item in given if not isinstance(item, PrimFunc)), None)
        if wrong is not None:
            raise PassError(f"a pattern is a tensor function, got {described(wrong)}", code="W550")
        object.__setattr__(self, "patterns", given)

    def run(self, module: IRModule) -> IRModule:
        """Split the calls of every graph function; kernels that nothing calls any more go away."""
        builder = BlockBuilder(module)
        new = map_functions(module, lambda name, function: _Splitter(self, builder, module).run(function))
        if new is module:
            return module
        added = {name: function for name, function in builder.get().items() if name not in module}
        return remove_unreachable(new.with_functions({**new.functions, **added}))


class _Splitter(FunctionRewriter):
    """The work on one graph function."""

    def __init__(self, item: SplitCallTIRByPattern, builder: BlockBuilder, module: IRModule) -> None:
        super().__init__()
        self.item, self.builder, self.module = item, builder, module
        self.context = TypeContext(module.functions)

    def rewrite_binding(self, binding: Binding) -> Binding | Sequence[Binding]:
        """A call as the call of its first part, and that of the rest."""
        call = binding.value
        split = self.split_of(call) if isinstance(binding, VarBinding) and isinstance(call, Call) else None
        if split is None or not isinstance(call, Call) or not isinstance(binding, VarBinding):
            return binding
        kernel = self.module.functions[call.args[0].name]  # type: ignore[attr-defined]
        assert isinstance(kernel, PrimFunc)
        given = call.args[1].fields if isinstance(call.args[1], Tuple) else (call.args[1],)
        values: dict[Buffer, Expr] = dict(zip(kernel.params, given, strict=False))  # type: ignore[arg-type]
        chosen = self.item.codegen(TIRMatch(kernel, split.pattern, split.part)) if self.item.codegen else None
        if chosen is not None and (not isinstance(chosen, str) or not chosen):
            raise PassError(f"a library function has a name, got {described(chosen)}", code="W550")
        made = _type_of(split.made, kernel, given, self.context)
        inputs = Tuple(tuple(values[buffer] for buffer in split.inputs))
        if chosen is not None:
            first = get_op("call_dps_packed")(ExternFunc(chosen), inputs, made)
        else:
            part = replace(fresh_function(split.part), private=True, attrs=FrozenMap({PATTERN: split.pattern.name}))
            first = get_op("call_tir")(self.builder.add_func(part, f"{kernel.name}_{split.pattern.name}"), inputs, made)
        if split.rest is None:
            return replace(binding, value=first)
        var = self.fresh(split.made.name, infer_type(first, self.context))
        rest = self.builder.add_func(fresh_function(split.rest), f"{kernel.name}_rest")
        left = Tuple((*(values[buffer] for buffer in split.rest_inputs), var))
        if split.in_place:
            places = [len(split.rest_inputs)]
            second = get_op("call_tir_inplace")(rest, left, places, call.ty_args[0])
        else:
            second = get_op("call_tir")(rest, left, call.ty_args[0])
        return [VarBinding(var, first, span=binding.span), replace(binding, value=second)]

    def split_of(self, call: Call) -> _Split | None:
        """The first pattern that the kernel of a call starts with."""
        plain = isinstance(call.op, Op) and call.op.name == "call_tir" and isinstance(call.args[0], GlobalVar)
        if not plain or len(call.args) != 2 or not isinstance(call.ty_args[0], TensorType):
            return None
        kernel = self.module.functions.get(call.args[0].name)  # type: ignore[attr-defined]
        if not isinstance(kernel, PrimFunc) or is_scheduled(kernel):
            return None
        if not all(isinstance(param, Buffer) for param in kernel.params):
            return None
        forms = [(pattern, form) for pattern in self.item.patterns for form in _forms(pattern)]
        found = (_matched(kernel, pattern, form) for pattern, form in forms)
        return next((split for split in found if split is not None), None)


# Matching -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Split:
    """A kernel in two: the part that a pattern is, over `inputs` to `made`, and the rest, if there is any."""

    pattern: PrimFunc
    part: PrimFunc
    inputs: tuple[Buffer, ...]
    made: Buffer
    rest: PrimFunc | None
    rest_inputs: tuple[Buffer, ...]
    in_place: bool


@dataclass(frozen=True)
class _Parts:
    """The statements of a kernel: what it allocates, and what it does."""

    allocated: tuple[Buffer, ...]
    nests: tuple[Stmt, ...]

    @classmethod
    def of(cls, function: PrimFunc) -> _Parts:
        found = statements_of(function.body)
        allocated = tuple(part.buffer for part in found if isinstance(part, AllocBuffer))
        return cls(allocated, tuple(part for part in found if not isinstance(part, AllocBuffer)))


def _forms(pattern: PrimFunc) -> list[PrimFunc]:
    """A pattern, and as it is for sums that have terms: without what it does where a size is 0."""
    found = statements_of(pattern.body)
    left = [part for part in found if not isinstance(part, IfThenElse)]
    return [pattern] if len(left) in (0, len(found)) else [pattern, replace(pattern, body=sequence(left))]


def _matched(kernel: PrimFunc, whole: PrimFunc, pattern: PrimFunc) -> _Split | None:
    """The split of a kernel whose first nests compute what a form of a pattern computes; None for others."""
    own, wanted = _Parts.of(kernel), _Parts.of(pattern)
    count = len(wanted.nests)
    if count == 0 or count > len(own.nests) or not all(isinstance(param, Buffer) for param in pattern.params):
        return None
    first, later = sequence(own.nests[:count]), own.nests[count:]
    written = _in_order(BufferStore, first)
    left = {buffer for nest in later for buffer in (*_in_order(BufferLoad, nest), *_in_order(BufferStore, nest))}
    made = [buffer for buffer in written if buffer in left or buffer in kernel.params]
    targets = [buffer for buffer in _in_order(BufferStore, pattern.body) if buffer in pattern.params]
    if len(made) != 1 or len(targets) != 1:
        return None
    read = [buffer for buffer in _in_order(BufferLoad, first) if buffer in kernel.params and buffer not in written]
    given = set(pattern.params) - set(targets)
    places = [buffer for buffer in _in_order(BufferLoad, pattern.body) if buffer in given]
    if len(read) != len(places):
        return None
    places_of: dict[Any, Buffer] = dict(zip((*places, *targets), (*read, *made), strict=True))
    if set(places_of) != set(pattern.params):
        return None
    params = tuple(places_of[param] for param in pattern.params)
    local = [buffer for buffer in own.allocated if buffer in written and buffer not in made]
    part = _function(params, local, own.nests[:count], pattern.name)
    if not _is_same(part, whole, pattern):
        return None
    inputs = tuple(buffer for buffer in params if buffer not in made)
    if not later:
        return _Split(whole, part, inputs, made[0], None, (), False)
    rest_read = {buffer for nest in later for buffer in _in_order(BufferLoad, nest)}
    rest_inputs = tuple(p for p in kernel.params[:-1] if p in rest_read and isinstance(p, Buffer))
    in_place = made[0] is kernel.params[-1]
    outputs = (made[0],) if in_place else (made[0], kernel.params[-1])
    kept = [buffer for buffer in own.allocated if buffer in left and buffer not in made]
    rest = replace(_function((*rest_inputs, *outputs), kept, later, f"{kernel.name}_rest"), private=True)
    return _Split(whole, part, inputs, made[0], rest, rest_inputs, in_place)


def _in_order(kind: type[BufferLoad] | type[BufferStore], stmt: Stmt) -> list[Buffer]:
    """The buffers that a statement loads from, or stores to, by first use."""
    found = loads_in(stmt) if kind is BufferLoad else stores_in(stmt)
    return list(dict.fromkeys(part.buffer for part in found))


def _function(params: Sequence[Any], allocated: Sequence[Buffer], nests: Sequence[Stmt], name: str) -> PrimFunc:
    return PrimFunc(tuple(params), sequence((*map(AllocBuffer, allocated), *nests)), name=name)


def _is_same(part: PrimFunc, whole: PrimFunc, form: PrimFunc) -> bool:
    """Whether a part is a form of a pattern, with sizes in the places of its symbols, that its sizes allow."""
    sizes = _sizes(form, part)
    if sizes is None:
        return False
    kept = statements_of(form.body)
    gone = [stmt for stmt in statements_of(whole.body) if isinstance(stmt, IfThenElse) and stmt not in kept]
    never = all(_is_false(substitute(stmt.condition, sizes)) for stmt in gone)
    return never and structural_equal(_plain(substitute(form, sizes)), _plain(part))


def _is_false(condition: PrimExpr) -> bool:
    found = simplify(condition)
    return isinstance(found, IntImm) and not found.value


def _sizes(pattern: PrimFunc, part: PrimFunc) -> dict[Node, Node] | None:
    """The numbers that a pattern's symbols stand for; symbols of the part are matched as they are."""
    found: dict[Node, Node] = {}
    for wanted, own in zip(pattern.params, part.params, strict=True):
        assert isinstance(wanted, Buffer)
        assert isinstance(own, Buffer)
        if wanted.ndim != own.ndim or wanted.dtype != own.dtype:
            return None
        for size, given in zip(wanted.shape, own.shape, strict=True):
            if isinstance(size, PrimVar) and isinstance(given, int):
                if found.setdefault(size, IntImm(given, size.dtype)).value != given:  # type: ignore[attr-defined]
                    return None
    return found


def _plain(function: PrimFunc) -> PrimFunc:
    """The function with wide indices, plain numbers as sizes, and blocks that say nothing but what they do."""

    def post(node: Node) -> Node | None:
        if isinstance(node, Block):
            return replace(node, name="", annotations=EMPTY, reads=None, writes=None)
        return None

    buffers = {part for part in walk(function) if isinstance(part, Buffer)}
    plain: dict[Node, Node] = {
        buffer: fresh_buffer(buffer, {}, name="", shape=tuple(map(_number, buffer.shape))) for buffer in buffers
    }
    body = substitute(function.body, plain)
    params = tuple(plain.get(param, param) for param in function.params)
    body = rewrite(with_wide_indices(body), post)
    return PrimFunc(params, body)  # type: ignore[arg-type]


def _number(extent: Extent) -> Extent:
    return extent.value if isinstance(extent, IntImm) else extent


def _type_of(buffer: Buffer, kernel: PrimFunc, given: Sequence[Expr], context: TypeContext) -> TensorType:
    """The type of a buffer of a kernel in the sizes of a call."""
    types = [infer_type(value, context) for value in given]
    sizes = match_types(kernel_signature(kernel)[: len(types)], types).symbols
    (own,) = kernel_signature(replace(kernel, params=(*kernel.params, buffer)))[-1:]
    assert isinstance(own, TensorType)
    dims = tuple(dim if isinstance(dim, int) else substitute_dim(dim, sizes) for dim in own.dims or ())
    return TensorType(dims, buffer.dtype)
