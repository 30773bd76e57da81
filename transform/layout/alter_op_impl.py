"""AlterOpImpl: kernels are replaced by others that compute the same on operands of other layouts.

    AlterOpImpl({"relax.add": kernel}, {"relax.add": [f, f, f]})

    z = R.call_tir(cls.add, (x, y), out)      x1 = R.layout_transform(x, f);  y1 = R.layout_transform(y, f)
    (add has operator_name "relax.add")  ->   z1 = R.call_tir(cls.add_replacement, (x1, y1), out of f)
                                              z = R.layout_transform(z1, the inverse of f)

One layout for each buffer of the kernel, inputs first; None leaves it as it is. A layout has to be a permutation of
axes, with axes split by factors that divide them: then it has an inverse, and nothing is padded.
`OptimizeLayoutTransform` joins what meets between two such kernels. That a replacement computes the same is the
caller's promise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from weft.errors import PassError, described
from weft.ir import (
    Binding,
    Call,
    Expr,
    GlobalVar,
    IRModule,
    Op,
    PrimFunc,
    TensorType,
    Tuple,
    VarBinding,
    replace,
    te,
)
from weft.ir.builder import BlockBuilder
from weft.ir.deduction.infer import TypeContext, infer_type
from weft.ir.dim import Dim, operation, prove_equal, symbol
from weft.ir.kernel.index_map import IndexMap, index_map_text, read_index_map
from weft.ir.op import get_op
from weft.support.records import dataclass
from weft.transform.infra.base import Pass, map_functions
from weft.transform.infra.generators.choices import Choices
from weft.transform.infra.rewriting import FunctionRewriter

__all__ = ["AlterOpImpl"]

OPERATOR_NAME = "operator_name"


@dataclass(frozen=True, eq=False)
class AlterOpImpl(Pass):
    """Replace kernels by the operator that they implement, with the layouts that the replacements want.

    Raises: PassError W506 for a replacement that is no kernel, the wrong number of layouts, or a layout without an
    inverse.
    """

    keeps_meaning: ClassVar[bool] = True
    op_impl_map: Mapping[str, PrimFunc]
    op_buffer_transforms: Mapping[str, Sequence[Any]]

    @classmethod
    def sample(cls, choices: Choices) -> tuple[AlterOpImpl, str]:
        """A sum of matrices, computed on rows in blocks or on transposed matrices."""
        layout, shape = choices.pick(
            (
                ("lambda i, j: (i, j // 4, j % 4)", (4, 2, 4)),
                ("lambda i, j: (j, i)", (8, 4)),
                ("lambda i, j: (i // 2, j, i % 2)", (2, 8, 2)),
            )
        )
        x, y = te.placeholder(shape, name="x"), te.placeholder(shape, name="y")
        z = te.compute(shape, lambda *i: x(*i) + y(*i), name="z")
        kernel = replace(te.create_prim_func([x, y, z], "add"), private=True)
        layouts = [layout] * 3
        return (
            cls({"relax.add": kernel}, {"relax.add": layouts}),
            """@I.ir_module
class Module:
    @T.prim_func(private=True)
    def add(x: T.Buffer((4, 8), "float32"), y: T.Buffer((4, 8), "float32"), z: T.Buffer((4, 8), "float32")):
        T.func_attr({"operator_name": "relax.add"})
        for i, j in T.grid(4, 8):
            with T.block("z"):
                vi, vj = T.axis.remap("SS", [i, j])
                z[vi, vj] = x[vi, vj] + y[vi, vj]

    @R.function
    def main(x: R.Tensor((4, 8), "float32"), y: R.Tensor((4, 8), "float32")):
        with R.dataflow():
            out = R.call_tir(Module.add, (x, y), out_ty=R.Tensor((4, 8), "float32"))
            R.output(out)
        return out
""",
        )

    def __post_init__(self) -> None:
        for name, kernel in self.op_impl_map.items():
            if not isinstance(kernel, PrimFunc):
                raise PassError(f"the replacement of {name!r} is a kernel, got {described(kernel)}", code="W506")
            layouts = self.op_buffer_transforms.get(name, ())
            if layouts and len(layouts) != len(kernel.params):
                wanted = f"{len(kernel.params)} layouts, one for each buffer"
                raise PassError(f"the replacement of {name!r} takes {wanted}, got {len(layouts)}", code="W506")

    def run(self, module: IRModule) -> IRModule:
        """Replace the calls in every graph function."""
        builder = BlockBuilder(module)
        new = map_functions(module, lambda name, function: _Altered(self, builder, module).run(function))
        added = {name: function for name, function in builder.get().items() if name not in module}
        return new.with_functions({**new.functions, **added}) if added else new


class _Altered(FunctionRewriter):
    def __init__(self, item: AlterOpImpl, builder: BlockBuilder, module: IRModule) -> None:
        super().__init__()
        self.item, self.builder, self.module = item, builder, module
        self.context = TypeContext(module.functions)
        self.made: list[Binding] = []

    def rewrite_binding(self, binding: Binding) -> Binding | Sequence[Binding]:
        value = binding.value
        if not isinstance(binding, VarBinding) or not isinstance(value, Call) or not isinstance(value.op, Op):
            return binding
        name = self.operator(value)
        if name is None or name not in self.item.op_impl_map or not isinstance(value.ty_args[0], TensorType):
            return binding
        self.made = []
        kernel = self.item.op_impl_map[name]
        layouts = list(map(_read, self.item.op_buffer_transforms.get(name) or [None] * len(kernel.params)))
        given = value.args[1].fields if isinstance(value.args[1], Tuple) else (value.args[1],)
        inputs = [self.moved(arg, layout) for arg, layout in zip(given, layouts, strict=False)]
        out, last = value.ty_args[0], layouts[len(given)]
        callee = self.builder.add_func(kernel, f"{value.args[0].name}_replacement")  # type: ignore[attr-defined]
        inner = out if last is None else replace(out, shape=last.sizes(out.dims or ()))
        call = get_op("call_tir")(callee, Tuple(tuple(inputs)), inner, *value.args[2:])
        if last is None:
            return [*self.made, replace(binding, value=call)]
        computed = self.bound(call, binding.var.name)
        back = get_op("layout_transform")(computed, str(_inverse(last, out.dims or (), name)))
        return [*self.made, replace(binding, value=back)]

    def operator(self, call: Call) -> str | None:
        """The operator that a kernel says it implements."""
        if call.op.name != "call_tir" or not isinstance(call.args[0], GlobalVar):  # type: ignore[union-attr]
            return None
        function = self.module.functions.get(call.args[0].name)
        name = function.attrs.get(OPERATOR_NAME) if isinstance(function, PrimFunc) else None
        return name if isinstance(name, str) else None

    def moved(self, value: Expr, layout: IndexMap | None) -> Expr:
        """An operand in its layout."""
        if layout is None:
            return value
        ty = infer_type(value, self.context)
        dims = ty.dims if isinstance(ty, TensorType) else None
        _inverse(layout, dims or (), "an operand")  # refuses what would pad
        return self.bound(get_op("layout_transform")(value, str(layout)), getattr(value, "name", "moved"))

    def bound(self, value: Expr, name: str) -> Expr:
        var = self.fresh(name, infer_type(value, self.context))
        self.made.append(VarBinding(var, value))
        return var


def _read(layout: Any) -> IndexMap | None:
    return None if layout is None else read_index_map(index_map_text(layout))


def _inverse(layout: IndexMap, dims: Sequence[Dim], what: str) -> IndexMap:
    """The map back; PassError W506 where there is none, or a factor is not proved to divide a size."""
    places: dict[str, Any] = {}
    outer: dict[str, tuple[int, int]] = {}
    for place, target in enumerate(layout.targets):
        kind, operands = operation(target)
        if kind == "symbol":
            places[str(target)] = symbol(f"i{place}")
        elif kind == "floordiv" and operation(operands[0])[0] == "symbol" and isinstance(operands[1], int):
            outer[str(operands[0])] = (place, operands[1])
    for place, target in enumerate(layout.targets):
        kind, operands = operation(target)
        name = str(operands[0]) if kind == "mod" else ""
        if name in outer and outer[name][1] == operands[1] and len(dims) == len(layout.names):
            if prove_equal(dims[layout.names.index(name)] % operands[1], 0) is True:
                places[name] = symbol(f"i{outer[name][0]}") * operands[1] + symbol(f"i{place}")
    used = len(outer) * 2 + len([name for name in places if name not in outer])
    if set(places) != set(layout.names) or used != len(layout.targets):
        hint = "a permutation of axes, and axes split by factors that divide them: lambda n, c: (n, c // 4, c % 4)"
        raise PassError(f"the layout {layout} of {what} has no inverse without padding", code="W506", hint=hint)
    return IndexMap(len(layout.targets), tuple(places[name] for name in layout.names))
