"""FuseTIR: a `primitive` function of kernel calls becomes one kernel.

    z = cls.fused_add_relu(x, b)      z = R.call_tir(cls.fused_add_relu, (x, b), out_ty=...)

The bodies of the kernels follow each other, with what they hand on as buffers of the merged kernel and every variable
copied; then values are computed where they are read and buffers are reused as `inline_blocks` says. Symbols that no
buffer binds become scalar parameters. What a primitive function may hold: `call_tir` of kernels whose shapes are
proved to fit, tuples, projections, and constants, which become arguments; fields of tuples become parameters of
their own, and scalars stay some. Others are left as they are. Kernels that nothing calls any more are removed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar

from weft.dtypes import is_integer
from weft.errors import Span
from weft.ir import (
    Binding,
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    IRModule,
    Node,
    Op,
    PrimFunc,
    PrimType,
    PrimValue,
    ShapeExpr,
    ShapeType,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    Var,
    VarBinding,
    replace,
    rewrite,
    substitute,
    walk,
)
from weft.ir.attrs import KERNELS, OP_PATTERN, PRIMITIVE, attribute
from weft.ir.deduction.infer import TypeContext, infer_type
from weft.ir.deduction.subtyping import has_sizes, match_types
from weft.ir.dim import Dim, DimExpr, symbol
from weft.ir.kernel.prim import as_expr, cast, const
from weft.ir.kernel.prim_dim import buffer_symbols, dim_to_prim, kernel_signature, symbol_names
from weft.ir.module import fresh_name
from weft.ir.structure.references import referenced_functions
from weft.ir.tensor import (
    AllocBuffer,
    AssertStmt,
    Bind,
    Block,
    Buffer,
    DeclBuffer,
    For,
    IterVar,
    Let,
    MatchBufferRegion,
    PrimExpr,
    PrimVar,
    SeqStmt,
    Stmt,
)
from weft.support.records import dataclass
from weft.transform.analysis.access_pattern import statements_of
from weft.transform.analysis.free_symbols import bare_symbols, symbols_of
from weft.transform.fusion.annotate_pattern import op_pattern
from weft.transform.fusion.inline_blocks import inline_producers, reuse_outputs
from weft.transform.infra.base import Pass, map_functions
from weft.transform.infra.rewriting import FunctionRewriter, bindings_of, derived
from weft.transform.interface.expand_tuple_arguments import with_expanded_tuples
from weft.transform.kernel.bounds.elements import with_exact_sizes
from weft.transform.kernel.scheduled import is_scheduled
from weft.transform.kernel.widen_indices import with_wide_indices

__all__ = ["FuseTIR", "copied"]

INDEX = "int64"


@dataclass(frozen=True)
class FuseTIR(Pass):
    """Make one kernel of every private graph function that has the attribute `primitive`."""

    text_name: ClassVar[str] = "fuse-tir"
    aliases: ClassVar[tuple[str, ...]] = ()

    def run(self, module: IRModule) -> IRModule:
        """Merge the primitive functions, then call the kernels that they became."""
        given, names = module, _primitive(module)
        if not names:
            return module
        module = with_expanded_tuples(module, names)
        primitive = {name: f for name, f in module.items() if name in names and isinstance(f, Function)}
        merged: dict[str, _Merged] = {}
        for name in sorted(set(primitive) - _used_as_values(module)):
            found = _merge(name, primitive[name], module)
            if found is not None:
                merged[name] = found
        if not merged:
            return given
        context = TypeContext(module.functions)
        kept = {name: function for name, function in module.items() if name not in merged}
        rest = module.with_functions(kept)
        called = map_functions(rest, lambda _, function: _Caller(merged, context, self.text_name).run(function))
        functions = {name: merged[name].kernel if name in merged else called[name] for name in module}
        return _without_unused(module, module.with_functions(functions))


def _primitive(module: IRModule) -> set[str]:
    """The private graph functions that are to be kernels."""
    functions = ((name, function) for name, function in module.items() if isinstance(function, Function))
    return {name for name, function in functions if function.private and attribute(function.attrs, PRIMITIVE)}


def _used_as_values(module: IRModule) -> set[str]:
    """The functions that occur elsewhere than as the callee of a call."""
    uses: Counter[str] = Counter()
    for function in module.functions.values():
        for node in walk(function):
            if isinstance(node, GlobalVar):
                uses[node.name] += 1
            elif isinstance(node, Call) and isinstance(node.op, GlobalVar):
                uses[node.op.name] -= 1
    return {name for name, count in uses.items() if count}


def _without_unused(old: IRModule, new: IRModule) -> IRModule:
    """The module without the private kernels that lost their callers."""
    before = {used for function in old.functions.values() for used in referenced_functions(function)}
    after = {used for function in new.functions.values() for used in referenced_functions(function)}
    gone = [
        name
        for name, function in new.items()
        if isinstance(function, PrimFunc) and function.private and name in before - after
    ]
    return new.without(*gone)


@dataclass(frozen=True)
class _Merged:
    """A merged kernel: which symbols and constants its calls pass."""

    kernel: PrimFunc
    function: Function
    constants: tuple[Constant, ...]
    scalars: tuple[str, ...]


class _Unsuited(Exception):
    """A primitive function holds what a kernel cannot."""


def _merge(name: str, function: Function, module: IRModule) -> _Merged | None:
    try:
        return _Merging(name, function, module).build()
    except _Unsuited:
        return None


class _Merging:
    """One primitive function on its way to a kernel."""

    def __init__(self, name: str, function: Function, module: IRModule) -> None:
        self.name = name
        self.function = function
        self.module = module
        self.context = TypeContext(module.functions)
        self.symbols = {text: PrimVar(text, INDEX) for text in sorted(symbols_of(function))}
        self.buffers: dict[Var, tuple[Buffer, ...]] = {}  # a result of several tensors has several
        self.given: dict[Var, PrimVar] = {}  # scalar parameters
        self.constants: dict[Constant, Buffer] = {}
        self.names: set[str] = set()
        self.stmts: list[Stmt] = []
        self.doubted: list[Buffer] = []  # whose sizes may be negative

    def build(self) -> _Merged:
        """The merged kernel; _Unsuited when there is none."""
        function = self.function
        params: list[Buffer | PrimVar] = []
        sizes: list[str] = []
        for param in function.params:
            if isinstance(param.ty, ShapeType):
                sizes.extend(self._sizes(param.ty))
            elif isinstance(param.ty, PrimType):
                params.append(self._scalar(param, param.ty))
            else:
                buffer = self._buffer(param.name, param.ty)
                self.buffers[param] = (buffer,)
                params.append(buffer)
        with self.context.scope():
            return self._built(params, sizes)

    def _built(self, params: list[Buffer | PrimVar], sizes: list[str]) -> _Merged:
        function = self.function
        for param in function.params:
            self.context.learn_sizes(param.ty)
        result = function.body.body
        outputs = self._outputs(result.fields if isinstance(result, Tuple) else (result,))
        for binding in bindings_of(function.body):
            self._binding(binding, outputs)
        written = [self.buffers[var][0] for var in outputs]
        params = [*params, *self.constants.values(), *written]
        stmts = reuse_outputs(inline_producers([with_wide_indices(stmt) for stmt in self.stmts]), written)
        stmts = _with_own_names(stmts)
        body = stmts[0] if len(stmts) == 1 else SeqStmt(stmts)
        attrs = function.attrs.without(OP_PATTERN, KERNELS)
        kernel = PrimFunc(tuple(params), body, private=True, attrs=attrs, name=self.name, span=function.span)
        bound = {variable.name for variable in buffer_symbols(kernel)}
        used = {x for x in walk(body) if isinstance(x, PrimVar)} | _in_shapes(params, body)
        scalars = tuple(text for text, var in self.symbols.items() if text not in bound and var in used)
        if set(scalars) - set(sizes) - _carried(function):
            raise _Unsuited
        kernel = replace(kernel, params=(*params, *(self.symbols[text] for text in scalars)))
        kernel = kernel.with_attr(OP_PATTERN, op_pattern(kernel))
        left = {*_allocated(stmts), *written}
        gone = [buffer for buffer in _allocated(self.stmts) if buffer not in left]
        kernel = with_exact_sizes(kernel, gone, self.doubted)
        return _Merged(kernel, function, tuple(self.constants), scalars)

    def _scalar(self, param: Var, ty: PrimType) -> PrimVar:
        """A scalar parameter; one that is also a size is not merged."""
        if param.name in self.symbols:
            raise _Unsuited
        self.given[param] = PrimVar(self._unique(param.name), ty.dtype)
        return self.given[param]

    def _sizes(self, ty: ShapeType) -> list[str]:
        if ty.dims is None or any(not isinstance(dim, DimExpr) or str(dim) not in self.symbols for dim in ty.dims):
            raise _Unsuited
        return [str(dim) for dim in ty.dims]

    def _outputs(self, results: Sequence[Expr]) -> dict[Var, None]:
        """The result variables; each is one tensor of its own that a call computes."""
        outputs = {var: None for var in results if isinstance(var, Var)}
        if len(outputs) != len(results) or any(var in self.function.params for var in outputs):
            raise _Unsuited
        return outputs

    def _buffer(self, name: str, ty: Type) -> Buffer:
        if not isinstance(ty, TensorType) or not isinstance(ty.shape, tuple) or ty.dtype is None:
            raise _Unsuited
        shape = tuple(dim_to_prim(dim, self.symbols) for dim in ty.shape)
        return Buffer(self._unique(name), shape, ty.dtype)

    def _unique(self, name: str) -> str:
        unique = fresh_name(name, self.names)
        self.names.add(unique)
        return unique

    def _binding(self, binding: Binding, outputs: dict[Var, None]) -> None:
        value, var = binding.value, binding.var
        if not isinstance(binding, VarBinding):
            raise _Unsuited
        if isinstance(value, TupleGetItem) and isinstance(value.value, Var) and value.value in self.buffers:
            self.buffers[var] = (self.buffers[value.value][value.index],)
            if var in outputs:
                raise _Unsuited
            return
        if isinstance(value, Tuple) and var not in outputs:
            parts = [self.buffers.get(field) if isinstance(field, Var) else None for field in value.fields]
            if any(part is None or len(part) != 1 for part in parts):
                raise _Unsuited
            self.buffers[var] = tuple(buffer for part in parts for buffer in part or ())
            return
        if not isinstance(value, Call) or not isinstance(value.op, Op) or value.op.name != "call_tir":
            raise _Unsuited
        callee = self.module.functions.get(getattr(value.args[0], "name", ""))
        if not isinstance(callee, PrimFunc):
            raise _Unsuited
        types = value.ty_args[0].fields if isinstance(value.ty_args[0], TupleType) else value.ty_args
        results = tuple(
            self._buffer(var.name if len(types) == 1 else f"{var.name}_{index}", ty) for index, ty in enumerate(types)
        )
        if var not in outputs:
            self.stmts.extend(AllocBuffer(buffer) for buffer in results)
            facts = self.context.facts
            self.doubted += [buffer for buffer, ty in zip(results, types, strict=True) if not has_sizes(ty, facts)]
        elif len(results) != 1 or isinstance(value.ty_args[0], TupleType):
            raise _Unsuited
        self.buffers[var] = results
        self._call(value, callee, results)

    def _call(self, call: Call, callee: PrimFunc, results: Sequence[Buffer]) -> None:
        """The body of a kernel over the buffers of this one; a kernel that a schedule has arranged stays one."""
        if is_scheduled(callee):
            raise _Unsuited
        before = len(self.context.checks)
        infer_type(call, self.context)
        if len(self.context.checks) != before or not isinstance(call.args[1], Tuple):
            raise _Unsuited
        inputs = call.args[1].fields
        extra = call.args[2] if len(call.args) > 2 else ShapeExpr(())
        if not isinstance(extra, ShapeExpr):
            raise _Unsuited
        given: list[Any] = [*map(self._argument, inputs), *results, *map(self._size, extra.dims)]
        mapping: dict[Any, Any] = {}
        for param, value in zip(callee.params, given, strict=True):
            if isinstance(param, Buffer) != isinstance(value, Buffer):
                raise _Unsuited
            if isinstance(param, Buffer) and not _is_whole(param):
                raise _Unsuited
            mapping[param] = value if isinstance(param, Buffer) else cast(param.dtype, value)
        mapping.update(self._symbols_of_call(call, callee, inputs))
        body = _placed(copied(callee.body, mapping, self._unique), derived(call.span, FuseTIR.text_name))
        self.stmts.extend(statements_of(body))

    def _argument(self, arg: Expr) -> Buffer | PrimExpr:
        if isinstance(arg, Var) and len(self.buffers.get(arg, ())) == 1:
            return self.buffers[arg][0]
        if isinstance(arg, Var) and arg in self.given:
            return self.given[arg]
        if isinstance(arg, Constant):
            if arg not in self.constants:
                self.constants[arg] = self._buffer("constant", arg.ty)
            return self.constants[arg]
        if isinstance(arg, PrimValue):
            if isinstance(arg.value, DimExpr):
                return self._size(arg.value)
            return const(arg.value, arg.dtype)
        raise _Unsuited

    def _size(self, dim: Dim) -> PrimExpr:
        return as_expr(dim_to_prim(dim, self.symbols), INDEX)

    def _symbols_of_call(self, call: Call, callee: PrimFunc, inputs: Sequence[Expr]) -> dict[PrimVar, PrimExpr]:
        """What the symbols of a kernel stand for in this call."""
        buffers = [index for index, param in enumerate(callee.params) if isinstance(param, Buffer)]
        signature = kernel_signature(callee)
        outputs = call.ty_args[0].fields if isinstance(call.ty_args[0], TupleType) else call.ty_args
        given = [*(infer_type(arg, self.context) for arg in inputs), *outputs]
        match = match_types([signature[i] for i in buffers], [given[i] for i in buffers])
        names = symbol_names(callee)
        values: dict[PrimVar, PrimExpr] = {}
        for variable in buffer_symbols(callee):
            if not is_integer(variable.dtype) or names[variable] not in match.symbols:
                raise _Unsuited
            values[variable] = cast(variable.dtype, self._size(match.symbols[names[variable]]))
        return values


def _with_own_names(stmts: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """The statements with names of blocks that no other block has."""
    used: set[str] = set()

    def named(node: Any) -> Any:
        if not isinstance(node, Block) or not node.name:
            return None
        name = fresh_name(node.name, used)
        used.add(name)
        return None if name == node.name else replace(node, name=name)

    return tuple(rewrite(stmt, named) for stmt in stmts)


def _is_whole(buffer: Buffer) -> bool:
    """Whether a parameter is compact memory of its own."""
    return (
        buffer.strides is None
        and buffer.elem_offset is None
        and buffer.data is None
        and buffer.scope == "global"
        and not buffer.axis_separators
    )


def _carried(function: Function) -> set[str]:
    """The symbols that the parameters of a function bind."""
    return {name for param in function.params for name in bare_symbols(param.ty)}


def _allocated(stmts: Sequence[Stmt]) -> list[Buffer]:
    """The buffers that statements allocate themselves."""
    return [stmt.buffer for stmt in stmts if isinstance(stmt, AllocBuffer)]


def _in_shapes(params: Sequence[Buffer | PrimVar], body: Stmt) -> set[PrimVar]:
    """The variables in shapes of parameters and of allocations."""
    buffers = [*params, *(stmt.buffer for stmt in walk(body) if isinstance(stmt, AllocBuffer))]
    return {
        part
        for buffer in buffers
        if isinstance(buffer, Buffer)
        for extent in buffer.shape
        if isinstance(extent, PrimExpr)
        for part in walk(extent)
        if isinstance(part, PrimVar)
    }


def _placed(body: Stmt, span: Span | None) -> Stmt:
    """A body whose assertions, where they have no place of their own, have that of the call which is merged."""
    if not any(isinstance(node, AssertStmt) and node.span is None for node in walk(body)):
        return body

    def at_call(node: Node) -> Node | None:
        return replace(node, span=span) if isinstance(node, AssertStmt) and node.span is None else None

    return rewrite(body, post=at_call)


def copied(body: Stmt, mapping: dict[Any, Any], unique: Any) -> Stmt:
    """A body with the given replacements and with new variables and buffers in place of those that it binds."""
    mapping = dict(mapping)
    for node in walk(body):
        if isinstance(node, For):
            mapping[node.loop_var] = PrimVar(node.loop_var.name, node.loop_var.dtype, span=node.loop_var.span)
        elif isinstance(node, (IterVar, Bind, Let)):
            mapping[node.var] = PrimVar(node.var.name, node.var.dtype, node.var.pointee, node.var.scope, node.var.span)
    for node in walk(body):
        if isinstance(node, (AllocBuffer, DeclBuffer, MatchBufferRegion)):
            mapping[node.buffer] = _copied_buffer(node.buffer, mapping, unique)
        elif isinstance(node, Block):
            for buffer in node.alloc_buffers:
                mapping[buffer] = _copied_buffer(buffer, mapping, unique)
    return rewrite(body, pre=lambda node: mapping.get(node), types=True)


def _copied_buffer(buffer: Buffer, mapping: dict[Any, Any], unique: Any) -> Buffer:
    inner = {key: value for key, value in mapping.items() if key is not buffer}
    new = substitute(buffer, inner)
    name = unique(buffer.name)
    return replace(new, name=name) if new is not buffer else _twin(buffer, name)


def _twin(buffer: Buffer, name: str) -> Buffer:
    """Another buffer with the same fields."""
    return Buffer(
        name,
        buffer.shape,
        buffer.dtype,
        buffer.scope,
        buffer.strides,
        buffer.elem_offset,
        buffer.data,
        buffer.align,
        buffer.offset_factor,
        buffer.axis_separators,
        buffer.span,
    )


class _Caller(FunctionRewriter):
    """Turns calls of merged functions into calls of their kernels."""

    def __init__(self, merged: dict[str, _Merged], context: TypeContext, origin: str) -> None:
        super().__init__()
        self.merged = merged
        self.context = context
        self.origin = origin

    def rewrite_binding(self, binding: Binding) -> Binding:
        call = binding.value
        if not isinstance(call, Call) or not isinstance(call.op, GlobalVar) or call.op.name not in self.merged:
            return binding
        item = self.merged[call.op.name]
        args = [arg for arg, param in zip(call.args, item.function.params, strict=True) if not _is_shape(param)]
        new: tuple[Expr, ...] = (call.op, Tuple((*args, *item.constants)))
        if item.scalars:
            new = (*new, ShapeExpr(tuple(self._scalars(call, item))))
        span = derived(call.span, self.origin)
        value = Call(Op("call_tir"), new, ty_args=(infer_type(call, self.context),), span=span)
        return replace(binding, value=value)

    def _scalars(self, call: Call, item: _Merged) -> list[Dim]:
        types = [infer_type(arg, self.context) for arg in call.args]
        values = match_types([param.ty for param in item.function.params], types).symbols
        return [values.get(name, symbol(name)) for name in item.scalars]


def _is_shape(param: Var) -> bool:
    return isinstance(param.ty, ShapeType)
