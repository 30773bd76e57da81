"""ToMixedPrecision: products of float32 compute in half precision, and sum in float32.

    h = R.matmul(x, w)                x16 = R.astype(x, "float16")
    r = R.nn.relu(h)                  w16 = R.astype(w, "float16")
    y = R.matmul(r, v)          ->    h = R.matmul(x16, w16, out_dtype="float32")
    s = R.nn.softmax(y)               r = R.nn.relu(h)
                                      r16 = R.astype(r, "float16")
                                      v16 = R.astype(v, "float16")
                                      y = R.matmul(r16, v16, out_dtype="float32")
                                      s = R.nn.softmax(y)

Each operator declares a policy (`weft.ir.op.precision`). Operands of products are cast (`always`), and they sum in
`out_dtype` where the operator has such an attribute. What needs float32 has it (`never`). Other operators `follow`: a
value that products read, and nothing needs in float32, is stored in half, and what moves elements moves half ones.
Elementwise operators between others become part of their kernels: they compute in float32 as it is in the registers,
and what they give is rounded once.

Parameters and results of functions keep their types, so do the values that loops and branches carry, and the operands
of kernels and of other functions. Constants stay as they are; `FoldConstant` casts each once at compile time. Casts
that cancel are removed (`RemoveRedundantCasts`). `decisions` of a function say what became of each operator, and why.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from weft.errors import PassError
from weft.ir import (
    Binding,
    BindingBlock,
    Call,
    DataflowVar,
    Expr,
    Function,
    If,
    IRModule,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    Var,
    VarBinding,
    replace,
)
from weft.ir.attrs import CODEGEN, COMPOSITE, PRIMITIVE, attribute
from weft.ir.builder import BlockBuilder
from weft.ir.deduction.infer import TypeContext
from weft.ir.op import OpDef, get_op
from weft.ir.op.precision import Policy, Precision, Reads
from weft.support.records import dataclass
from weft.transform.infra.base import Pass, map_functions
from weft.transform.infra.decisions import Decision, with_decisions
from weft.transform.infra.generators.chains import chain_text
from weft.transform.infra.generators.choices import Choices
from weft.transform.infra.rewriting import FunctionRewriter, derived, operands
from weft.transform.infra.writing_out import as_declared, written_out
from weft.transform.quantize.half_readers import WIDE, HalfReaders, changing, is_wide, leaves, precision_of
from weft.transform.rewrite.remove_redundant_casts import RemoveRedundantCasts

__all__ = ["ToMixedPrecision"]

_KIND = "mixed-precision"
_SEALED = (PRIMITIVE, CODEGEN, COMPOSITE)
"""Functions with one of these are what was made of operators before."""


@dataclass(frozen=True)
class ToMixedPrecision(Pass):
    """Compute products in half precision; `out_dtype` is the type in which they give their sums.

    Raises: PassError W502 where `out_dtype` is the other half type.

    >>> str(ToMixedPrecision("bfloat16"))
    'to-mixed-precision{dtype=bfloat16}'
    """

    keeps_meaning: ClassVar[bool] = False  # the numbers are others on purpose
    dtype: Literal["float16", "bfloat16"] = "float16"
    out_dtype: Literal["float32", "float16", "bfloat16"] = "float32"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.out_dtype not in (WIDE, self.dtype):
            message = f"out_dtype of {self.text_name} is float32 or the dtype, got {self.out_dtype} for {self.dtype}"
            raise PassError(message, code="W502")

    @classmethod
    def sample(cls, choices: Choices) -> tuple[ToMixedPrecision, str]:
        """Products, and operators of each policy between them."""
        return cls(choices.pick(("float16", "bfloat16"))), _sample(choices)

    def run(self, module: IRModule) -> IRModule:
        """The module with its graph functions in mixed precision."""
        context, builder = TypeContext(module.functions), BlockBuilder(module)

        def mixed(name: str, function: Function) -> Function:
            if any(attribute(function.attrs, key) for key in _SEALED):
                return function
            return _Mixing(self, _WritingOut(builder, context).run(function), context).mixed()

        new = map_functions(module, mixed)
        return module if new is module else RemoveRedundantCasts().run(new)


class _WritingOut(FunctionRewriter):
    """Writes operators out whose parts have policies of their own."""

    def __init__(self, builder: BlockBuilder, context: TypeContext) -> None:
        super().__init__()
        self.builder, self.context = builder, context

    def rewrite_binding(self, binding: Binding) -> Binding | Sequence[Binding]:
        value = binding.value
        found = precision_of(value)
        if found is None or not found[1].by_parts or not isinstance(binding, VarBinding):
            return binding
        definition, decompose = found[0], found[0].decompose
        assert isinstance(value, Call)
        if decompose is None or not is_wide(self.context.type_of(value)):
            return binding
        origin = ToMixedPrecision.text_name
        new = written_out(
            binding, lambda b: decompose(definition.arguments(value), b), self.builder, self.in_dataflow, origin
        )
        return as_declared(new, self.context)


class _Mixing(FunctionRewriter):
    """Rewrites one function. `narrow` holds the half version of values, `stored` what is there in half only."""

    def __init__(self, options: ToMixedPrecision, function: Function, context: TypeContext) -> None:
        super().__init__()
        self.options, self.function, self.context = options, function, context
        self.readers = HalfReaders(function, options.dtype, context)
        self.narrow: dict[Expr, Var] = {}
        self.stored: set[Var] = set()
        self.made: list[Binding] = []
        self.done = self.changed = False
        self.decisions: list[Decision] = []

    def mixed(self) -> Function:
        """The function, with what was decided about its operators."""
        new = self.run(self.function)
        return with_decisions(new, self.decisions) if self.changed else self.function

    # The walk

    def _block(self, block: BindingBlock) -> BindingBlock:
        new = super()._block(block)
        # What was bound inside of a dataflow block is not seen outside.
        self.narrow = {key: var for key, var in self.narrow.items() if not isinstance(var, DataflowVar)}
        self.replaced = {var: leaf for var, leaf in self.replaced.items() if not isinstance(leaf, DataflowVar)}
        return new

    def _inner(self, value: If | Function) -> Expr:
        narrow, replaced = dict(self.narrow), dict(self.replaced)
        if isinstance(value, Function):
            new = super()._inner(value)
        else:
            outer = self.in_dataflow
            then_branch = self.sequence(value.then_branch)
            self.narrow, self.replaced = dict(narrow), dict(replaced)
            new = replace(value, then_branch=then_branch, else_branch=self.sequence(value.else_branch))
            self.in_dataflow = outer
        self.narrow, self.replaced = narrow, replaced
        return new

    def mapped_binding(self, binding: Binding) -> Binding:
        """The binding in mixed precision in `made`, or as it is after casts back of what it reads."""
        self.made, self.done = [], False
        if isinstance(binding, VarBinding) and self._is_mixed(binding):
            self.done = True
            return binding
        for leaf in _read(binding.value):
            if isinstance(leaf, Var) and leaf in self.stored:
                self.replaced[leaf] = self._wide(leaf)
        before, self.made = self.made, []
        mapped = super().mapped_binding(binding)
        self.made, self.done = [*before, mapped], bool(before)
        return mapped

    def rewrite_binding(self, binding: Binding) -> Binding | Sequence[Binding]:
        return self.made if self.done else binding

    # Values in both precisions

    def _emit(self, value: Expr, name: str, ty: Type, like: Expr | None = None) -> Var:
        self.changed = True
        outside = isinstance(like, Var) and not isinstance(like, DataflowVar)
        var = Var(name, ty) if outside else self.fresh(name, ty)
        self.made.append(VarBinding(var, value, span=derived(value.span, self.options.text_name)))
        return var

    def _half(self, leaf: Expr) -> Var:
        """A value in half precision, cast where it is not there so."""
        if leaf not in self.narrow:
            ty = self.context.type_of(leaf)
            name = getattr(leaf, "name", "constant")
            self.narrow[leaf] = self._emit(
                get_op("astype")(self._plain(leaf), self.options.dtype), name, self._narrowed(ty)
            )
        return self.narrow[leaf]

    def _wide(self, leaf: Expr) -> Expr:
        """A value in float32."""
        plain = self._plain(leaf)
        if not isinstance(leaf, Var) or plain is not leaf or leaf not in self.stored:
            return plain
        narrow = self.narrow[leaf]
        if not isinstance(leaf.ty, TupleType):
            return self._emit(get_op("astype")(narrow, WIDE), leaf.name, leaf.ty)
        fields = [
            self._emit(TupleGetItem(narrow, place), leaf.name, self._narrowed(ty))
            for place, ty in enumerate(leaf.ty.fields)
        ]
        casts = [
            self._emit(get_op("astype")(field, WIDE), leaf.name, ty)
            for field, ty in zip(fields, leaf.ty.fields, strict=True)
        ]
        return self._emit(Tuple(tuple(casts)), leaf.name, leaf.ty)

    def _plain(self, leaf: Expr) -> Expr:
        return self.replaced.get(leaf, leaf) if isinstance(leaf, Var) else leaf

    def _narrowed(self, ty: Type) -> Type:
        if isinstance(ty, TupleType):
            return replace(ty, fields=tuple(map(self._narrowed, ty.fields)))
        assert isinstance(ty, TensorType)
        return replace(ty, dtype=self.options.dtype)

    # Operators

    def _is_mixed(self, binding: VarBinding) -> bool:
        """Compute a binding in mixed precision; whether anything of it is to be otherwise than it was."""
        value, var = binding.value, binding.var
        if isinstance(value, TupleGetItem):
            return self._is_field(binding, value)
        found = precision_of(value)
        if found is None or not isinstance(value, Call):
            return False
        definition, precision = found
        named = changing(value, definition, var.ty, self.context)
        if named is None:
            _decide_never(self, binding, value, precision)
            self._remember_cast(var, value, definition)
            return False
        if precision.policy == Policy.ALWAYS:
            self._product(binding, definition, named)
            return True
        tensors = [leaf for operand in named.values() for leaf in leaves(operand)]
        half = self._follows(var, precision, tensors)
        if half:
            self._store(binding, self._call(value, definition, named, self._half), self.options.dtype)
        else:
            self._store(binding, self._call(value, definition, named, self._wide), WIDE)
        _decide_follow(self, binding, half)
        return True

    def _remember_cast(self, var: Var, value: Call, definition: OpDef) -> None:
        """What the program casts from half is there in half already."""
        source = value.args[0] if definition.name == "astype" else None
        if isinstance(source, Var) and isinstance(source.ty, TensorType) and source.ty.dtype == self.options.dtype:
            if is_wide(var.ty):
                self.narrow[var] = source

    def _follows(self, var: Var, precision: Precision, tensors: list[Expr]) -> bool:
        """Whether an operator that follows computes in half precision."""
        if not self.readers.stores_half(var):
            return False
        return precision.reads == Reads.WHOLE or all(leaf in self.narrow for leaf in tensors)

    def _product(self, binding: VarBinding, definition: OpDef, named: Any) -> None:
        assert isinstance(binding.value, Call)
        sums = any(param.name == "out_dtype" for param in definition.params)
        gives = self.options.out_dtype if sums else self.options.dtype
        changed = {} if gives == self.options.dtype else {"out_dtype": gives}
        self._store(binding, self._call(binding.value, definition, named, self._half, **changed), gives)
        values = {"policy": "always", "dtype": self.options.dtype, "out_dtype": gives}
        self._decide(binding.var, values, "a product: half operands, sums in float32")

    def _call(self, call: Call, definition: OpDef, named: Any, version: Any, **changed: Any) -> Call:
        """The call on one version of the operands that its policy is about, and on the others in float32."""
        given: dict[str, Any] = {}
        for param, value in definition.unbind(call):
            if param.name in named:
                given[param.name] = _mapped(value, version)
            else:
                given[param.name] = _mapped(value, self._wide) if isinstance(value, Expr) else value
        given.pop("out_dtype", None)
        return definition.bind((), given | changed, call.span)

    def _store(self, binding: VarBinding, value: Expr, gives: str) -> None:
        """Bind a value that was computed in a type, in the precision in which it is read."""
        var = binding.var
        keeps_half = self.readers.stores_half(var)
        if gives != WIDE:
            narrow = self._emit(value, var.name, self._narrowed(var.ty), var)
            self._keep(var, narrow)
            if not keeps_half:
                self._wide(var)
                last = self.made[-1]
                assert isinstance(last, VarBinding)
                self.made[-1] = replace(last, var=var)
                self.stored.discard(var)
        elif keeps_half and not isinstance(var.ty, TupleType):
            wide = self._emit(value, var.name, var.ty)
            self._keep(
                var, self._emit(get_op("astype")(wide, self.options.dtype), var.name, self._narrowed(var.ty), var)
            )
        else:
            self.made.append(replace(binding, value=value))

    def _keep(self, var: Var, narrow: Var) -> None:
        self.narrow[var] = narrow
        self.stored.add(var)

    def _is_field(self, binding: VarBinding, value: TupleGetItem) -> bool:
        """A field of a tuple that is there in half."""
        if not isinstance(value.value, Var) or value.value not in self.stored:
            return False
        self._store(binding, replace(value, value=self.narrow[value.value]), self.options.dtype)
        return True

    # What is said of it

    def _decide(self, var: Var, values: dict[str, str], reason: str) -> None:
        self.decisions.append(Decision(var.name, _KIND, dict(values), reason))


def _decide_follow(mixing: _Mixing, binding: VarBinding, half: bool) -> None:
    if half:
        reason = "what reads it wants half"
    elif mixing.readers.stores_half(binding.var):
        reason = "its operands are float32; what it gives is stored in half"
    else:
        reason = "nothing that reads it wants half, or something needs float32"
    mixing._decide(binding.var, {"policy": "follow", "dtype": mixing.options.dtype if half else WIDE}, reason)


def _decide_never(mixing: _Mixing, binding: VarBinding, call: Call, precision: Precision) -> None:
    if precision.policy == Policy.NEVER and any(isinstance(leaf, Var) and is_wide(leaf.ty) for leaf in operands(call)):
        mixing._decide(binding.var, {"policy": "never", "dtype": WIDE}, precision.reason)


def _mapped(value: Any, version: Any) -> Any:
    """An operand with each of its tensors in a version."""
    if isinstance(value, Tuple):
        return replace(value, fields=tuple(_mapped(item, version) for item in value.fields))
    return version(value)


def _read(value: Expr) -> Sequence[Expr]:
    """The leaves that a binding reads itself: what is inside of a local function reads for itself."""
    return [] if isinstance(value, Function) else list(operands(value))


_STEPS = (
    "R.nn.relu({0})",
    "R.add({0}, b)",
    "R.multiply({0}, {1})",
    "R.matmul({0}, w)",
    "R.matmul({0}, R.matmul(w, w))",
    "R.nn.softmax({0}, axis=-1)",
    "R.exp(R.tanh({0}))",
    "R.permute_dims(R.permute_dims({0}))",
    "R.concat(R.split({0}, 2, axis=1)[::-1], axis=1)",
    'R.astype(R.astype({0}, "float16"), "float32")',
    "R.subtract({0}, R.mean({0}, axis=[1], keepdims=True))",
    "R.take({0}, R.argmax(w, axis=1), axis=1)",
    'R.einsum(({0}, w), "ij,jk->ik")',
)


def _sample(choices: Choices) -> str:
    parameters = 'x: R.Tensor(({size}, 4), "float32"), w: R.Tensor((4, 4), "float32"), b: R.Tensor((4,), "float32")'
    return chain_text(choices, "R.matmul(x, w)", _STEPS, parameters)
