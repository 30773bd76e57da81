"""ConvertLayout: operators compute in the layouts that the user wants, and what lies between them follows.

    ConvertLayout({"relax.nn.conv2d": ["NHWC", "OHWI"]})

    y = R.nn.conv2d(x, w)              x1 = R.permute_dims(x, axes=[0, 2, 3, 1])
    z = R.nn.relu(y)            ->     w1 = R.permute_dims(w, axes=[0, 2, 3, 1])
                                       y1 = R.nn.conv2d(x1, w1, data_layout="NHWC", kernel_layout="OHWI")
                                       z1 = R.nn.relu(y1)
                                       z = R.permute_dims(z1, axes=[0, 3, 1, 2])

For each operator: the layouts of data, of the kernel, and of the result where it differs; NCHW4c has channels in
blocks of four, where they are proved to divide. An operator that has a rule (`OpDef.layout`) computes on moved
operands; before one that has none they are moved back. Nothing is moved twice, permutations of the program join with
those of the pass, and of operands that lie differently the smaller ones move. A new call must have the type that the
old one says, else the old one stays. Bindings outside of dataflow blocks go into ones first, where there is such an
operator among them; calls with a label of a target stay as they are. Reductions add in another order of elements, so
results are equal in real arithmetic. `FoldConstant` moves constants.

    ConvertLayout({"relax.nn.conv2d": [["NHWC", "OHWI"], ["NCHW", "OIHW"]]})

Where an operator has several layouts, the ones are taken with which the whole function moves the fewest bytes, what the
program moves itself among them; the first of equals. Constants cost nothing. Symbols count as 64 where one is not
proved to be less than the other.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, ClassVar

from weft.errors import PassError, WeftError
from weft.ir import (
    Binding,
    BindingBlock,
    Call,
    Constant,
    DataflowBlock,
    DataflowVar,
    Expr,
    Function,
    IRModule,
    Op,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    Var,
    VarBinding,
    replace,
    walk,
)
from weft.ir.deduction.infer import TypeContext, infer_type
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import Dim, evaluate, free_symbols, prove_equal
from weft.ir.op import OPS, get_op
from weft.ir.op.layout_rules.axis_layout import AxisLayout, LayoutAnswer, LayoutQuestion
from weft.ir.op.nn.layouts import read_layout
from weft.ir.structure.variables import free_variables
from weft.support.records import dataclass
from weft.transform.analysis.op_cost import memory_traffic
from weft.transform.graph.convert_to_dataflow import ConvertToDataflow
from weft.transform.graph.dead_code import without_dead_bindings
from weft.transform.infra.base import FunctionPass
from weft.transform.infra.generators.chains import chain_text
from weft.transform.infra.generators.choices import Choices
from weft.transform.infra.rewriting import FunctionRewriter, derived, is_marked, operands
from weft.transform.rewrite.cost import cheaper

__all__ = ["ConvertLayout", "Mover"]

Layouts = AxisLayout | list[AxisLayout]

MOST_CHOICES = 64
"""Combinations of layouts that are compared, each on the whole function."""
TYPICAL_SIZE = 64
"""What a symbol is taken for where costs are not ordered for all sizes."""
_MOVES = frozenset({"permute_dims", "layout_transform"})


@dataclass(frozen=True)
class ConvertLayout(FunctionPass):
    """Compute operators in the wanted layouts, and move as few values as that needs.

    >>> str(ConvertLayout({"relax.nn.conv2d": ["NHWC", "OHWI"]}))
    'convert-layout{desired_layouts={"nn.conv2d": [NHWC, OHWI]}}'
    """

    exact: ClassVar[str] = "real"
    desired_layouts: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        wanted: dict[str, tuple[Any, ...]] = {}
        for name, texts in self.desired_layouts.items():
            several = bool(texts) and not any(isinstance(text, str) for text in texts)
            own = name.removeprefix("relax.")
            wanted[own] = tuple(map(tuple, texts)) if several else tuple(texts)
            for choice in wanted[own] if several else (wanted[own],):
                _check(own, choice)
        object.__setattr__(self, "desired_layouts", wanted)
        if len(self._choices()) > MOST_CHOICES:
            message = f"there are {len(self._choices())} choices of layouts, at most {MOST_CHOICES} are compared"
            raise PassError(message, code="W506")

    def _choices(self) -> list[dict[str, Sequence[str]]]:
        """The layouts of each operator, in every combination of those that are given."""
        options = [
            list(texts) if texts and not isinstance(texts[0], str) else [texts]
            for texts in self.desired_layouts.values()
        ]
        return [dict(zip(self.desired_layouts, chosen, strict=True)) for chosen in itertools.product(*options)]

    @classmethod
    def sample(cls, choices: Choices) -> tuple[ConvertLayout, str]:
        """Convolutions, and operators of each family that has a rule between them."""
        layouts = choices.pick((("NHWC", "OHWI"), ("NHWC", "HWIO"), ("NCHW4c", "OIHW4o"), ("HWNC", "OIHW", "NCHW")))
        return cls({"relax.nn.conv2d": layouts}), _sample(choices)

    def run_function(self, name: str, function: Function, module: IRModule) -> Function:
        """The function in the wanted layouts, or in those of several that move the fewest bytes."""
        prepared = function
        if self.desired_layouts and any(_is_outside(block, self.desired_layouts) for block in _blocks(function)):
            prepared = ConvertToDataflow(1).run_function(name, function, module)
        best: Function | None = None
        for wanted in self._choices():
            new = Mover(wanted, module).run(prepared)
            new = new if new is prepared else without_dead_bindings(new, module)
            if best is None or _moves_less(new, best, module):
                best = new
        return function if best is None or best is prepared else best


def _blocks(function: Function) -> Iterable[BindingBlock]:
    return (part for part in walk(function) if isinstance(part, BindingBlock))


def _calls(block: BindingBlock) -> Iterable[tuple[Call, str]]:
    """The calls of operators in a block, with the names of these."""
    values = (binding.value for binding in block.bindings)
    return ((value, value.op.name) for value in values if isinstance(value, Call) and isinstance(value.op, Op))


def _is_outside(block: BindingBlock, names: Iterable[str]) -> bool:
    """Whether an operator of a name stands outside of dataflow blocks."""
    return not isinstance(block, DataflowBlock) and any(name in names for _, name in _calls(block))


def _moves_less(new: Function, old: Function, module: IRModule) -> bool:
    """Whether a function moves fewer bytes than another one: for all sizes, else for such as programs have."""
    left, right = _moved_bytes(new, module), _moved_bytes(old, module)
    if left is None or right is None:
        return False
    return cheaper(left, right) or (not cheaper(right, left) and _typical(left) < _typical(right))


def _typical(bytes_moved: Dim) -> int:
    return evaluate(bytes_moved, dict.fromkeys(free_symbols(bytes_moved), TYPICAL_SIZE))


def _moved_bytes(function: Function, module: IRModule) -> Dim | None:
    """The bytes that permutations read and write; of values that are known when compiling none."""
    context, constant = TypeContext(module.functions), set[Expr]()
    total: Dim = 0
    for block in _blocks(function):
        for binding in block.bindings:
            used = (arg for arg in operands(binding.value) if not isinstance(arg, Op))
            if all(isinstance(arg, Constant) or arg in constant for arg in used):
                constant.add(binding.var)
                continue
            value = binding.value
            if isinstance(value, Call) and isinstance(value.op, Op) and value.op.name in _MOVES:
                traffic = memory_traffic(value, context)
                if traffic is None:
                    return None
                total = total + traffic
    return total


def _check(name: str, texts: Sequence[str]) -> None:
    """PassError W506 for an operator or a layout that there is not."""
    definition = OPS.get(name)
    if definition is None or not any(param.name.endswith("layout") for param in definition.params):
        raise PassError(
            f"desired_layouts names {name!r}, which is no operator with a layout",
            code="W506",
            hint='operators with one are those of convolution, pooling and images: {"nn.conv2d": ["NHWC", "OHWI"]}',
        )
    if not 1 <= len(texts) <= 3:
        raise PassError(f"{name} takes one to three layouts (data, kernel, result), got {len(texts)}", code="W506")
    for text, param in zip(texts, (p for p in definition.params if p.name.endswith("layout")), strict=False):
        default = param.default or definition.params[0].default
        layout = read_layout(text)
        letters = default if isinstance(default, str) else None
        if layout is None or (letters is not None and sorted(layout.letters) != sorted(letters)):
            raise PassError(f"{name}: {param.name} is an order of {letters or 'axes'}, got {text!r}", code="W506")


class Mover(FunctionRewriter):
    """Rewrites dataflow blocks. `held` says under which variables the value of one is there, by layout."""

    def __init__(self, wanted: Mapping[str, Sequence[str]], module: IRModule) -> None:
        super().__init__()
        self.wanted = wanted
        self.context = TypeContext(module.functions)
        self.held: dict[Expr, dict[AxisLayout, Expr]] = {}
        self.parts: dict[Var, tuple[Var, list[AxisLayout]]] = {}
        self.made: list[Binding] = []
        self.done = False

    # The walk --------------------------------------------------------------------------------------------------------

    def _block(self, block: BindingBlock) -> BindingBlock:
        new = super()._block(block)
        if isinstance(block, DataflowBlock):
            self.held, self.parts = {}, {}  # what was moved inside is not seen outside
        return new

    def mapped_binding(self, binding: Binding) -> Binding:
        """The binding, or what computes it elsewhere in `made`; what it reads as written is moved back before it."""
        self.made, self.done = [], False
        if not self.in_dataflow:
            return super().mapped_binding(binding)
        if isinstance(binding, VarBinding) and self._moved(binding):
            self.done = True
            return binding
        for leaf in _read(binding.value):
            self._plain(leaf)
        before, self.made = self.made, []
        mapped = super().mapped_binding(binding)
        self._note_permutation(mapped)
        self.made, self.done = [*before, mapped], bool(before)
        return mapped

    def _note_permutation(self, binding: Binding) -> None:
        """Of what the program permutes itself, the operand is the result in another layout."""
        value, ty = binding.value, binding.var.ty
        if not isinstance(value, Call) or not isinstance(value.op, Op) or value.op.name != "permute_dims":
            return
        if isinstance(ty, TensorType) and ty.dims is not None and not is_marked(value):
            plain = AxisLayout.plain(len(ty.dims))
            axes = value.attrs.get("axes")
            order = [axis % len(ty.dims) for axis in axes] if axes is not None else range(len(ty.dims))[::-1]
            layout = plain.renumbered({axis: place for place, axis in enumerate(order)})
            if not layout.is_plain:
                self.held[binding.var] = {plain: binding.var, layout: value.args[0]}

    def rewrite_binding(self, binding: Binding) -> Binding | Sequence[Binding]:
        """What stands for the binding."""
        return self.made if self.done else binding

    def emit(self, value: Expr, name: str, ty: Type | None = None) -> Var:
        """A new variable for a value."""
        var = DataflowVar(name, ty or infer_type(value, self.context))
        self.made.append(VarBinding(var, value, span=derived(value.span, "convert layout")))
        return var

    # Values in layouts -----------------------------------------------------------------------------------------------

    def lies(self, value: Expr) -> AxisLayout | None:
        """How a value lies: moved, if it is there only so."""
        ty = self.context.type_of(value)
        if not isinstance(ty, TensorType) or ty.dims is None:
            return None
        own = (layout for layout in self.held.get(value, {}) if layout.ndim == ty.ndim)
        return next(own, AxisLayout.plain(ty.ndim))

    def _is_both(self, value: Expr) -> bool:
        """Whether a value is there moved and as written."""
        return any(layout.is_plain for layout in self.held.get(value, ()))

    def _plain(self, leaf: Expr) -> Expr:
        """A value as it is written, moved back where it is not there so."""
        if not isinstance(leaf, Var) or leaf in self.replaced:
            return self.replaced.get(leaf, leaf) if isinstance(leaf, Var) else leaf
        if leaf in self.parts:
            moved, layouts = self.parts[leaf]
            fields = [self._field(leaf, moved, place) for place in range(len(layouts))]
            self.replaced[leaf] = self.emit(Tuple(tuple(map(self._plain, fields))), leaf.name, leaf.ty)
        elif leaf in self.held:
            self.replaced[leaf] = self._at(leaf, AxisLayout.plain(leaf.ty.ndim))  # type: ignore[union-attr]
        return self.replaced.get(leaf, leaf)

    def _field(self, owner: Var, moved: Var, place: int) -> Var:
        """A field of a moved tuple as a variable that stands for the field as written."""
        assert isinstance(owner.ty, TupleType)
        stands = DataflowVar(owner.name, owner.ty.fields[place])
        layout = self.parts[owner][1][place]
        self.held[stands] = {layout: self.emit(TupleGetItem(moved, place), owner.name)}
        if layout.is_plain:
            self.replaced[stands] = self.held[stands][layout]
        return stands

    def _at(self, value: Expr, layout: AxisLayout) -> Expr:
        """A value in a layout of its rank or a higher one."""
        ty = self.context.type_of(value)
        assert isinstance(ty, TensorType)
        there = self.held.setdefault(value, {})
        if layout in there:
            return there[layout]
        dims = dims_of(ty) or ()
        name = getattr(value, "name", "") or "moved"
        near = next((own for own in there if sorted(own.axes) == sorted(layout.axes)), None)
        if near is not None:
            made = self._permuted(there[near], [near.axes.index(axis) for axis in layout.axes], name)
        else:
            made = self._spread(self._whole(value, dims, name), dims, layout, name)
        there[layout] = made
        return made

    def _whole(self, value: Expr, dims: Sequence[Any], name: str) -> Expr:
        """A value as written, put together from where it is moved only."""
        plain = AxisLayout.plain(len(dims))
        there = self.held.get(value, {})
        source = next((layout for layout in there if layout.ndim == len(dims)), plain)
        if plain in there or source is plain:
            return there.get(plain) or (self.replaced.get(value, value) if isinstance(value, Var) else value)
        grouped = self._permuted(there[source], source.grouped(), name)
        there[plain] = self.emit(get_op("reshape")(grouped, dims), name) if source.blocks else grouped
        return there[plain]

    def _spread(self, value: Expr, dims: Sequence[Any], layout: AxisLayout, name: str) -> Expr:
        """A value as written, moved: axes of one in front if the layout has more, blocks apart, and in order."""
        missing = layout.ndim - len(dims)
        if missing:
            dims = (*(1 for _ in range(missing)), *dims)
        sizes = layout.dims(dims)
        if sizes is None:
            raise _Unfit
        if layout.blocks or (missing and layout.axes):
            by_axis = dict(zip(layout.axes, sizes, strict=True))
            value = self.emit(get_op("reshape")(value, tuple(by_axis[axis] for axis in sorted(by_axis))), name)
        order = sorted(layout.axes)
        return self._permuted(value, [order.index(axis) for axis in layout.axes], name)

    def _permuted(self, value: Expr, axes: list[int], name: str) -> Expr:
        if axes == sorted(axes):
            return value
        return self.emit(get_op("permute_dims")(value, axes=tuple(axes)), name)

    # Calls -----------------------------------------------------------------------------------------------------------

    def _moved(self, binding: VarBinding) -> bool:
        """Compute a binding on moved operands; whether that was done."""
        value, var = binding.value, binding.var
        if isinstance(value, TupleGetItem):
            return self._taken(var, value)
        if not isinstance(value, Call) or not isinstance(value.op, Op) or is_marked(value):
            return False
        definition = OPS.get(value.op.name)
        if definition is None or not callable(definition.layout):
            return False
        question = LayoutQuestion(
            definition.arguments(value),
            self.context,
            self.lies,
            tuple(self.wanted.get(value.op.name, ())),
            self._is_both,
        )
        answer = definition.layout(question)
        if answer is None or not _changes(answer):
            return False
        saved = {key: dict(there) for key, there in self.held.items()}, dict(self.replaced)
        try:
            new = self._call(question, answer)
        except (WeftError, _Unfit):
            self.made, (self.held, self.replaced) = [], saved
            return False
        self._bind(var, new, answer.result)
        return True

    def _call(self, question: LayoutQuestion, answer: LayoutAnswer) -> Expr:
        """The call on moved operands, of the type that it is to have; _Unfit for another one."""
        call, definition = question.args.call, OPS[question.args.call.op.name]  # type: ignore[union-attr]
        if answer.same is not None:
            layout = answer.operands[answer.same]
            assert isinstance(layout, AxisLayout)
            return self._at(question.args[answer.same], layout)
        given: dict[str, Any] = {}
        for param, value in definition.unbind(call):
            layout = answer.operands.get(param.name)
            if layout is None:
                given[param.name] = self._as_written(value)
            elif isinstance(layout, list):
                given[param.name] = Tuple(
                    tuple(self._at(item, own) for item, own in zip(value.fields, layout, strict=True))
                )
            else:
                given[param.name] = self._at(value, layout)
        for name, changed in answer.attributes.items():
            given.pop(name, None) if changed is None else given.update({name: changed})
        made = definition.bind((), given, call.span)
        self._check_type(infer_type(made, self.context), call, answer.result)
        return made

    def _as_written(self, value: Any) -> Any:
        """An operand that no layout moves."""
        if isinstance(value, Tuple):
            return replace(value, fields=tuple(self._as_written(item) for item in value.fields))
        return self._plain(value) if isinstance(value, Var) else value

    def _check_type(self, new: Type, call: Call, layouts: Layouts) -> None:
        old = infer_type(call, self.context)
        pairs = (
            list(zip(new.fields, old.fields, _listed(layouts), strict=True))
            if isinstance(new, TupleType) and isinstance(old, TupleType)
            else [(new, old, layouts)]
        )
        if not all(isinstance(layout, AxisLayout) and _is_moved(a, b, layout) for a, b, layout in pairs):
            raise _Unfit

    def _taken(self, var: Var, value: TupleGetItem) -> bool:
        """A field of a moved tuple."""
        if not isinstance(value.value, Var) or value.value not in self.parts:
            return False
        moved, layouts = self.parts[value.value]
        self._bind(var, TupleGetItem(moved, value.index, span=value.span), layouts[value.index])
        return True

    def _bind(self, var: Var, value: Expr, layouts: Layouts) -> None:
        """Bind a moved value, and the variable as written where others than this block see it."""
        if isinstance(layouts, AxisLayout) and layouts.is_plain:
            if isinstance(value, Var) and isinstance(var, DataflowVar):
                self.replaced[var] = value
            else:
                self.made.append(VarBinding(var, value, span=value.span))
            return
        name = var.name if isinstance(var, DataflowVar) else f"{var.name}_moved"
        moved = value if isinstance(value, Var) else self.emit(value, name)
        if isinstance(layouts, list):
            self.parts[var] = moved, layouts
        else:
            self.held[var] = {layouts: moved}
        if isinstance(var, DataflowVar):
            return
        plain = self._plain(var)
        del self.replaced[var]
        last = self.made[-1] if self.made else None
        if last is not None and plain is last.var and isinstance(last, VarBinding):
            self.made[-1] = replace(last, var=var)
        else:
            self.made.append(VarBinding(var, plain))
        if isinstance(layouts, AxisLayout):
            self.held[var][AxisLayout.plain(layouts.ndim)] = var


def _read(value: Expr) -> Iterable[Expr]:
    return free_variables(value) if isinstance(value, Function) else operands(value)


def _changes(answer: LayoutAnswer) -> bool:
    """Whether anything lies, or is to lie, otherwise than as written."""
    layouts = [item for layout in answer.operands.values() for item in _listed(layout)]
    return any(not layout.is_plain for layout in (*layouts, *_listed(answer.result)))


_STEPS = (
    "R.nn.relu({0})",
    "R.add({0}, b)",
    "R.multiply({0}, {1})",
    "R.subtract(R.sum({0}, axis=[1], keepdims=True), {0})",
    "R.nn.softmax({0}, axis=1)",
    "R.nn.max_pool2d({0}, pool_size=3, strides=1, padding=1)",
    "R.nn.conv2d({0}, w, padding=1)",
    "R.nn.batch_norm({0}, v, v, v, v, axis=1, training=False)[0]",
    "R.flip({0}, axis=1)",
    "R.split(R.concat(({0}, {1}), axis=1), 2, axis=1)[1]",
    "R.strided_slice(R.nn.pad({0}, [0, 0, 0, 0, 1, 1, 0, 0]), axes=[2], begin=[0], end=[5])",
    "R.permute_dims(R.permute_dims({0}, axes=[0, 2, 3, 1]), axes=[0, 3, 1, 2])",
    "R.squeeze(R.expand_dims({0}, axis=[2]), axis=[2])",
    "R.where(R.greater({0}, {1}), {0}, {1})",
    "R.cumsum({0}, axis=2)",
    "R.nn.group_norm({0}, v, v, num_groups=2, channel_axis=1, axes=[2, 3])",
)


def _sample(choices: Choices) -> str:
    parameters = (
        'x: R.Tensor(({size}, 8, 5, 4), "float32"), w: R.Tensor((8, 8, 3, 3), "float32"), '
        'b: R.Tensor((8, 1, 1), "float32"), v: R.Tensor((8,), "float32")'
    )
    return chain_text(choices, "R.nn.conv2d(x, w, padding=1)", _STEPS, parameters)


class _Unfit(Exception):
    """A call cannot be computed in the layouts that its rule gave."""


def _listed(layouts: Layouts) -> list[AxisLayout]:
    return layouts if isinstance(layouts, list) else [layouts]


def _is_moved(new: Type, old: Type, layout: AxisLayout) -> bool:
    """Whether a type is that of a value of another type in a layout."""
    if not isinstance(new, TensorType) or not isinstance(old, TensorType):
        return False
    own, other = dims_of(old), dims_of(new)
    wanted = None if own is None else layout.dims(own)
    if wanted is None or other is None or len(wanted) != len(other) or new.dtype != old.dtype:
        return False
    return new.vdevice == old.vdevice and all(prove_equal(a, b) is True for a, b in zip(wanted, other, strict=True))
