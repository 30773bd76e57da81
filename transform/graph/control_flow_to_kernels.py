"""ControlFlowToKernels: loops and branches of graph functions become kernels, which call those of their bodies.

    s = R.loop(body, (x,), range=(0, k, 1))     s = R.call_tir(cls.main_loop, (x, k), out_ty=...)

    @T.prim_func(private=True)
    def main_loop(x, k, s):
        rooms[0, ...] = x[...]
        for step in range(count):
            a = T.decl_buffer(data=rooms[step % 2, 0])              a carried value, and the one that follows it
            b = T.decl_buffer(data=rooms[(step + 1) % 2, 0])
            cls.add(T.address_of(a[0]), T.address_of(b[0]))
        s[...] = rooms[count % 2, ...]

For programs without control flow of their own (graph, aot, C). Run it when operators are calls of kernels, and local
functions are lifted. What the bodies compute stands in memory of the kernel, which the planners of memory see; what an
iteration hands on changes its room there, and is not copied (`carried_memory`).

Errors: TargetError W741 for what no kernel can do: calls out of the program, sizes that only values decide.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, ClassVar

from weft.errors import Span, TargetError
from weft.ir import (
    Binding,
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    If,
    IRModule,
    MatchCast,
    Op,
    PrimFunc,
    PrimType,
    PrimValue,
    SeqExpr,
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
    substitute,
    walk,
)
from weft.ir.deduction.infer import TypeContext, infer_type
from weft.ir.dim import Dim, DimExpr, free_symbols, interval_of, operation, symbol
from weft.ir.dim.intervals import NATURAL
from weft.ir.dim.representation import Interval
from weft.ir.dim.upper_bounds import upper_bounds
from weft.ir.kernel.prim import as_expr, binary, cast, const, unary
from weft.ir.kernel.prim_dim import dim_to_prim
from weft.ir.node import FrozenMap
from weft.ir.op import get_op
from weft.ir.op.program.loop import carried_types, stacked_types
from weft.ir.structure.references import reached_from, referenced_functions
from weft.ir.tensor import (
    AllocBuffer,
    AssertStmt,
    Bind,
    Break,
    Buffer,
    BufferLoad,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    IfThenElse,
    IntImm,
    PrimCall,
    PrimExpr,
    PrimVar,
    Select,
    SeqStmt,
    Stmt,
    While,
)
from weft.support.records import dataclass
from weft.transform.analysis.free_symbols import symbols_of_type
from weft.transform.analysis.ownership import overwritable
from weft.transform.graph.carried_memory import Carried, address_of_first, copied, made_in_rows, moves, taken_numbers
from weft.transform.graph.run_time_sizes import has_run_time_sizes, with_run_time_sizes_apart
from weft.transform.graph.to_non_dataflow import PlainBlocks
from weft.transform.infra.base import Pass
from weft.transform.infra.rewriting import FunctionRewriter, derived

__all__ = ["ControlFlowToKernels"]

_LOOPS = ("loop", "loop_with_effects")
_INDEX = "int64"
Value = Any  # a buffer, a scalar of the kernel, sizes, a tuple of values, or a closure


@dataclass(frozen=True)
class ControlFlowToKernels(Pass):
    """Make a kernel of each loop and each branch of the functions that others may call.

    >>> ControlFlowToKernels().text_name
    'control-flow-to-kernels'
    """

    aliases: ClassVar[tuple[str, ...]] = ()

    def run(self, module: IRModule) -> IRModule:
        """Rewrite the functions; those that only loops called go."""
        kernels: dict[str, PrimFunc] = {}
        module = module.with_functions({name: _plain(function) for name, function in module.items()})
        allowed = overwritable(module.functions)
        new = dict(module.functions)
        for name, function in module.items():
            if isinstance(function, Function) and not function.private:
                new[name] = _Rewriter(module, kernels, name, self.text_name, allowed, upper_bounds(function)).run(
                    function
                )
        if not kernels:
            return module
        return module.with_functions(_reachable({**new, **kernels}))


def _plain(function: Any) -> Any:
    """A function; without dataflow blocks where it has sizes that values decide."""
    if isinstance(function, Function) and not function.private and has_run_time_sizes(function):
        return PlainBlocks().run(function)
    return function


def _reachable(functions: dict[str, Any]) -> dict[str, Any]:
    """The functions without private graph functions that nothing refers to."""
    names = [name for name, function in functions.items() if not isinstance(function, Function) or not function.private]
    found = reached_from(functions, names)
    return {name: function for name, function in functions.items() if name in found}


class _Rewriter(FunctionRewriter):
    """Replaces the control flow of one function; closures are remembered by their variables."""

    def __init__(
        self,
        module: IRModule,
        kernels: dict[str, PrimFunc],
        name: str,
        origin: str,
        allowed: Mapping[Var, frozenset[int]],
        most: Mapping[str, int],
    ) -> None:
        super().__init__()
        self.module, self.kernels, self.name, self.origin = module, kernels, name, origin
        self.allowed, self.most = allowed, most
        self.closures: dict[Var, _Closure] = {}
        self.context = TypeContext(module.functions)
        self.visible: frozenset[str] = frozenset()

    def rewrite_parameter(self, param: Var) -> Var:
        self.visible |= set(symbols_of_type(param.ty)) if param.ty is not None else set()
        return param

    def run(self, function: Function) -> Function:
        return super().run(with_run_time_sizes_apart(function) if has_run_time_sizes(function) else function)

    def sequence(self, seq: SeqExpr) -> SeqExpr:
        """A body; the symbols that it binds end with it."""
        before = self.visible
        new = super().sequence(seq)
        self.visible = before
        return new

    def rewrite_binding(self, binding: Binding) -> Binding | Sequence[Binding]:
        value = binding.value
        if isinstance(binding, MatchCast):
            self.visible |= set(symbols_of_type(binding.ty))
        if isinstance(binding, VarBinding) and _is_call(value, "make_closure"):
            assert isinstance(value, Call)
            self.closures[binding.var] = _Closure(value.args[0], value.args[1])
            return ()
        if isinstance(binding, VarBinding) and (isinstance(value, (If, SeqExpr)) or _is_call(value, *_LOOPS)):
            return self._kernel(binding)
        return binding

    def _kernel(self, binding: VarBinding) -> list[Binding]:
        """The call of the kernel that computes a value, and the value in the form that it had."""
        span = derived(binding.span or binding.value.span, self.origin)
        what = "loop" if isinstance(binding.value, Call) else "branch" if isinstance(binding.value, If) else "part"
        types = list(_leaf_types(binding.var.ty, span))
        if not types:
            return [replace(binding, value=Tuple((), span=span))]
        functions = {**self.module.functions, **self.kernels}
        writer = _Writer(functions, dict(self.closures), self.fresh, self.visible, self.allowed, self.most)
        kernel = writer.kernel(self._free_name(what), binding.value, types, span)
        self.kernels[kernel.name] = kernel
        given: Type = types[0] if len(types) == 1 else TupleType(tuple(types))
        arguments: tuple[Expr, ...] = (GlobalVar(kernel.name), Tuple(tuple(writer.operands)))
        if writer.scalars:
            arguments = (*arguments, ShapeExpr(tuple(symbol(item.name) for item in writer.scalars)))
        call = Call(Op("call_tir"), arguments, ty_args=(given,), span=span)
        taken = [
            VarBinding(var, TupleGetItem(whole, place), span=span) for (whole, place), var in writer.fields.items()
        ]
        return [*taken, *self._in_form(binding, call, given, span)]

    def _in_form(self, binding: VarBinding, call: Call, given: Type, span: Span | None) -> list[Binding]:
        if isinstance(binding.var.ty, TensorType):
            return [replace(binding, value=call)]
        result = self.fresh(binding.var.name, given, span)
        made: list[Binding] = [VarBinding(result, call, span=span)]
        leaves: Iterator[Expr] = iter([result])
        if isinstance(given, TupleType):
            items = [self.fresh(f"{binding.var.name}_{place}", ty, span) for place, ty in enumerate(given.fields)]
            made += [VarBinding(item, TupleGetItem(result, place), span=span) for place, item in enumerate(items)]
            leaves = iter(items)
        return [*made, replace(binding, value=_nested(binding.var.ty, leaves))]

    def _free_name(self, what: str) -> str:
        base, count = f"{self.name}_{what}", 0
        name = base
        while name in self.module.functions or name in self.kernels:
            count += 1
            name = f"{base}_{count}"
        return name


def _is_call(value: Expr, *names: str) -> bool:
    return isinstance(value, Call) and isinstance(value.op, Op) and value.op.name in names


def _leaf_types(ty: Type | None, span: Span | None) -> Iterator[TensorType]:
    """The tensors of a type; W741 for what is none, or of unknown sizes."""
    if isinstance(ty, TupleType):
        for part in ty.fields:
            yield from _leaf_types(part, span)
    elif isinstance(ty, TensorType) and ty.dims is not None and ty.dtype is not None:
        yield ty
    else:
        raise _refused("a value that is no tensor of known shape and dtype", span)


def _nested(ty: Type | None, leaves: Iterator[Any]) -> Any:
    """Leaves in the form of a type: expressions as a Tuple."""
    return Tuple(tuple(_nested(part, leaves) for part in ty.fields)) if isinstance(ty, TupleType) else next(leaves)


def _refused(what: str, span: Span | None, hint: str = "") -> TargetError:
    return TargetError(
        f"{what} cannot be in a loop or a branch of a straight-line program",
        code="W741",
        span=span,
        hint=f'{hint}executor="native" and executor="vm" can',
    )


def _refused_call(call: Call, functions: Mapping[str, Any], span: Span | None) -> TargetError:
    """A call that no kernel does: of an operator, or of a function that is not part of its caller."""
    if isinstance(call.op, Op):
        return _refused(f"R.{call.op.name}", span)
    name = call.op.name if isinstance(call.op, GlobalVar) else ""
    callee = functions.get(name)
    if not isinstance(callee, Function):
        return _refused("a call of a function value", span)
    reached = reached_from(functions, referenced_functions(callee) & functions.keys())
    if name in reached:
        return _refused(f"a call of the graph function {name!r}, which calls itself,", span)
    hint = "make it private (@R.function(private=True)), so that it becomes part of its callers; "
    return _refused(f"a call of the graph function {name!r}", span, "" if callee.private else hint)


@dataclass(frozen=True)
class _Closure:
    """A function of the module, and what comes before its arguments."""

    callee: Expr
    fixed: Expr | None = None


@dataclass(frozen=True)
class _Sizes:
    """A shape."""

    values: tuple[PrimExpr, ...]


@dataclass
class _Scope:
    """What variables and symbols mean in one function."""

    values: dict[Var, Value] = field(default_factory=dict)
    symbols: dict[str, PrimExpr] = field(default_factory=dict)


class _Values:
    """What operands, sizes and parameters mean in a kernel; `operands` are the tensors that it reads from outside.

    `visible` are the symbols that have a value outside, `most` the greatest values of some, `allowed` the operands that
    calls may write over.
    """

    def __init__(
        self,
        functions: Mapping[str, Any],
        closures: dict[Var, _Closure],
        variable: Callable[..., Var],
        visible: frozenset[str],
        allowed: Mapping[Var, frozenset[int]],
        most: Mapping[str, int],
    ) -> None:
        self.functions, self.closures, self.variable, self.visible = functions, closures, variable, visible
        self.allowed, self.most = allowed, most
        self.operands: list[Expr] = []
        self.inputs: list[Buffer] = []
        self.known: dict[Any, Buffer] = {}  # of operands: constants by their values, variables by identity
        self.fields: dict[tuple[Expr, int], Var] = {}  # of tuples: they are bound before the call
        self.outer: dict[str, PrimVar] = {}
        self.intervals: dict[PrimExpr, Interval] = {}
        self.scope = _Scope()
        self.is_outer = True
        self.locals: list[Stmt] = []
        self.count = 0

    # Memory

    def extent(self, dim: Dim) -> Any:
        """A size over the symbols of the scope."""
        for name in free_symbols(dim) if isinstance(dim, DimExpr) else ():
            if name not in self.scope.symbols and self.is_outer:
                variable = self.scope.symbols[name] = self.outer.setdefault(name, PrimVar(name, _INDEX))
                self.intervals[variable] = 0, self.most.get(name, math.inf)
        return dim_to_prim(dim, self.scope.symbols)  # type: ignore[arg-type]

    def buffer(self, name: str, dims: Sequence[Dim], dtype: str) -> Buffer:
        return Buffer(name, tuple(self.extent(dim) for dim in dims), dtype)

    def fresh(self, base: str, ty: TensorType, into: list[Stmt]) -> Buffer:
        """Memory for a value: of the kernel, or of the iteration where its size is known there only."""
        self.count += 1
        made = self.buffer(f"{base or 't'}_{self.count}", ty.dims or (), str(ty.dtype))
        most = self.at_most(ty.dims or ()) if self.is_of_iteration(made) else None
        if most is None:
            self.allocate(made, into)
            return made
        room = Buffer(f"{made.name}_room", (most,), made.dtype)
        self.locals.append(AllocBuffer(room))
        made = replace(made, data=address_of_first(room))
        into.append(DeclBuffer(made))
        return made

    def at_most(self, dims: Sequence[Dim]) -> int | None:
        """The greatest number of elements of a tensor; None where only a run knows."""
        known = {name: self.interval(value) for name, value in self.scope.symbols.items()}
        most = [interval_of(dim, known)[1] for dim in dims]
        return math.prod(max(0, int(size)) for size in most) if all(map(math.isfinite, most)) else None

    def interval(self, value: PrimExpr) -> Interval:
        """The bounds of a number of the kernel."""
        return (value.value, value.value) if isinstance(value, IntImm) else self.intervals.get(value, NATURAL)

    def is_of_iteration(self, buffer: Buffer) -> bool:
        """Whether only an iteration knows the size of a buffer."""
        used = {node for extent in buffer.shape for node in _nodes(extent) if isinstance(node, PrimVar)}
        return not used <= set(self.outer.values())

    def allocate(self, buffer: Buffer, into: list[Stmt]) -> None:
        (into if self.is_of_iteration(buffer) else self.locals).append(AllocBuffer(buffer))

    def forget(self, buffers: Sequence[Buffer], into: list[Stmt]) -> None:
        """Take back memory that was made for values which stand elsewhere."""
        for made in (self.locals, into):
            made[:] = [stmt for stmt in made if not (isinstance(stmt, AllocBuffer) and stmt.buffer in buffers)]

    # Values

    def value(self, expr: Expr) -> Value:
        """What an operand stands for."""
        if isinstance(expr, Var) and expr in self.scope.values:
            return self.scope.values[expr]
        if isinstance(expr, Tuple):
            return tuple(map(self.value, expr.fields))
        if isinstance(expr, TupleGetItem):
            return self.value(expr.value)[expr.index]
        if isinstance(expr, ShapeExpr):
            return _Sizes(tuple(as_expr(self.extent(dim), _INDEX) for dim in expr.dims))
        if isinstance(expr, PrimValue):
            if isinstance(expr.value, DimExpr):
                return cast(expr.dtype, as_expr(self.extent(expr.value), _INDEX))
            return const(expr.value, expr.dtype)
        if isinstance(expr, GlobalVar):
            return _Closure(expr)
        if isinstance(expr, Constant) or (isinstance(expr, Var) and self.is_outer):
            return self.operand(expr)
        raise _refused(f"a {type(expr).__name__}", expr.span)

    def operand(self, expr: Expr) -> Value:
        """A tensor from outside of the kernel."""
        if isinstance(expr, Var) and expr in self.closures:
            return self.closures[expr]
        key: Any = (expr.dtype, expr.data.shape, expr.data.tobytes()) if isinstance(expr, Constant) else id(expr)
        if key not in self.known:
            ty = infer_type(expr, TypeContext({}))
            if isinstance(ty, TupleType):
                return tuple(self.field_of(expr, place, part) for place, part in enumerate(ty.fields))
            if not isinstance(ty, TensorType) or ty.dims is None or ty.dtype is None:
                raise _refused(f"{getattr(expr, 'name', 'a value')!r}, which is no tensor of known shape,", expr.span)
            self.known[key] = self.buffer(getattr(expr, "name", "") or "constant", ty.dims, ty.dtype)
            self.inputs.append(self.known[key])
            self.operands.append(expr)
        return self.known[key]

    def field_of(self, whole: Expr, place: int, ty: Type) -> Value:
        """A field of a tuple from outside of the kernel, which gets a variable of its own."""
        key = (whole, place)
        if key not in self.fields:
            self.fields[key] = self.variable(f"{getattr(whole, 'name', '') or 'field'}_{place}", ty, whole.span)
        return self.operand(self.fields[key])

    def load(self, value: Value, span: Span | None) -> PrimExpr:
        """A scalar."""
        if isinstance(value, Buffer) and not value.shape:
            return BufferLoad(value, ())
        if isinstance(value, PrimExpr):
            return value
        raise _refused("a scalar that is no tensor of rank 0", span)

    def closure(self, expr: Expr, span: Span | None) -> tuple[Function, list[Value]]:
        """The function of a body or a condition, and the values that come before its arguments."""
        found = self.value(expr)
        fixed: list[Value] = []
        if isinstance(found, tuple):
            found, given = found
            fixed = list(given)
        elif isinstance(found, _Closure) and found.fixed is not None:
            fixed = list(self.value(found.fixed))
        callee = found.callee if isinstance(found, _Closure) else None
        function = self.functions.get(callee.name) if isinstance(callee, GlobalVar) else None
        if not isinstance(function, Function):
            raise _refused("a loop of a function that is not known when compiling", span)
        return function, fixed

    def pass_to(self, param: Var, value: Value, into: list[Stmt]) -> None:
        """Bind a parameter, and the symbols of its type."""
        ty = param.ty
        if isinstance(ty, PrimType) and isinstance(value, PrimExpr):
            variable = PrimVar(param.name or "index", _INDEX)
            into.append(Bind(variable, value))
            self.intervals[variable] = self.interval(value)
            value = variable
            self.name_sizes(ty.dims or (), (variable,) * len(ty.dims or ()))
        elif isinstance(ty, TensorType) and isinstance(value, Buffer):
            self.name_sizes(ty.dims or (), value.shape)
        elif isinstance(ty, ShapeType) and isinstance(value, _Sizes):
            self.name_sizes(ty.dims or (), value.values)
        elif isinstance(ty, TupleType) and isinstance(value, tuple):
            for part, item in zip(ty.fields, value, strict=True):
                if isinstance(part, TensorType) and isinstance(item, Buffer):
                    self.name_sizes(part.dims or (), item.shape)
        self.scope.values[param] = value

    def name_sizes(self, dims: Sequence[Dim], extents: Sequence[Any]) -> None:
        for dim, extent in zip(dims, extents, strict=True):
            kind, operands = operation(dim)
            if kind == "symbol":
                self.scope.symbols.setdefault(operands[0], as_expr(extent, _INDEX))

    def match(self, binding: MatchCast, into: list[Stmt]) -> None:
        """Sizes that a match_cast names, and those that it claims."""
        value, ty = self.value(binding.value), binding.ty
        shape = value.values if isinstance(value, _Sizes) else value.shape if isinstance(value, Buffer) else None
        dims = ty.dims if isinstance(ty, (TensorType, ShapeType)) else None
        if shape is None or dims is None or len(shape) != len(dims):
            raise _refused("a match_cast of what is no tensor of known shape", binding.span)
        for dim, extent in zip(dims, shape, strict=True):
            kind, operands = operation(dim)
            if kind == "symbol" and not self.has_value(str(operands[0])):
                self.scope.symbols[operands[0]] = as_expr(extent, _INDEX)
                continue
            same = binary("eq", as_expr(self.extent(dim), _INDEX), as_expr(extent, _INDEX))
            text = f"match_cast of {binding.var.name}: a size is not {dim}"
            into.append(AssertStmt(same, text, "ShapeError", span=binding.span))
        self.scope.values[binding.var] = value

    def sizes_in(self, call: Call, into: list[Stmt]) -> _Sizes:
        """The sizes that a vector holds at this moment."""
        vector = self.value(call.args[0])
        if not isinstance(vector, Buffer) or not isinstance(vector.shape[0], int):
            raise _refused("R.tensor_to_shape of a vector of unknown length", call.span)
        found = [PrimVar("size", _INDEX) for _ in range(vector.shape[0])]
        for place, size in enumerate(found):
            into.append(Bind(size, cast(_INDEX, BufferLoad(vector, (const(place, _INDEX),)))))
            is_size = binary("ge", size, const(0, _INDEX))
            into.append(AssertStmt(is_size, "R.tensor_to_shape: a size is negative", "BoundsError", span=call.span))
        return _Sizes(tuple(found))

    def has_value(self, name: str) -> bool:
        """Whether a symbol means something before a match_cast that names it."""
        return name in self.scope.symbols or (self.is_outer and name in self.visible)


class _Writer(_Values):
    """Writes one kernel; `scalars` are the symbols that no tensor binds."""

    scalars: Sequence[PrimVar] = ()

    def kernel(self, name: str, value: Expr, types: Sequence[TensorType], span: Span | None) -> PrimFunc:
        """The kernel that computes a loop or an If of the function around."""
        outputs = [self.buffer(f"out{place}", ty.dims or (), str(ty.dtype)) for place, ty in enumerate(types)]
        body: list[Stmt] = []
        given = self.computed(value, outputs, body)
        body += [self.copy(item, target, span) for item, target in zip(given, outputs, strict=True)]
        params = [*self.inputs, *outputs]
        bound = {extent for buffer in params for extent in buffer.shape if isinstance(extent, PrimVar)}
        self.scalars = [variable for variable in self.outer.values() if variable not in bound]
        whole = SeqStmt((*self.locals, *body))
        attrs = FrozenMap({"op_pattern": "opaque"})
        return PrimFunc((*params, *self.scalars), whole, name=name, private=True, attrs=attrs, span=span)

    # Statements

    def computed(
        self,
        value: Expr,
        outputs: Sequence[Buffer],
        into: list[Stmt],
        allowed: frozenset[int] = frozenset(),
    ) -> list[Value]:
        """Write the statements that compute a value into buffers; gives those where it is then.

        They are others for what a sequence gives, and where values stay in memory that is changed in place: carried
        values that the loop may overwrite, and what both branches leave in one place.
        """
        if isinstance(value, SeqExpr):
            return _flat(self.sequence(value, into, outputs))
        if isinstance(value, If):
            return self.branches(value, outputs, into)
        assert isinstance(value, Call)
        return self.loop(value, outputs, into, allowed)

    def branches(self, value: If, outputs: Sequence[Buffer], into: list[Stmt]) -> list[Buffer]:
        condition = self.load(self.value(value.cond), value.span)
        parts: list[list[Stmt]] = []
        found: list[list[Value]] = []
        for branch in (value.then_branch, value.else_branch):
            inside, symbols = list[Stmt](), dict(self.scope.symbols)
            found.append(_flat(self.sequence(branch, inside, outputs)))
            self.scope.symbols = symbols  # those that a branch binds end with it
            parts.append(inside)
        places = [
            first if isinstance(first, Buffer) and first is second else target
            for first, second, target in zip(*found, outputs, strict=True)
        ]
        for inside, items in zip(parts, found, strict=True):
            inside += [self.copy(item, place, value.span) for item, place in zip(items, places, strict=True)]
        first, second = (SeqStmt(tuple(inside)) if inside else Evaluate(IntImm(0)) for inside in parts)
        into.append(IfThenElse(condition, first, second))
        return places

    def sequence(self, sequence: Expr, into: list[Stmt], targets: Sequence[Buffer] = ()) -> Value:
        """The statements of a body; what it returns is computed in the targets where it can be."""
        assert isinstance(sequence, SeqExpr)
        wanted = self.wanted(sequence, targets)
        for block in sequence.blocks:
            for binding in block.bindings:
                self.binding(binding, into, wanted)
        return self.value(sequence.body)

    @staticmethod
    def wanted(sequence: SeqExpr, targets: Sequence[Buffer]) -> dict[Var, Buffer]:
        """The variables of a body that it returns in one place only, with these places."""
        results = [leaf for leaf in _result_leaves(sequence.body)]
        if len(results) != len(targets):
            return {}
        own = {binding.var for block in sequence.blocks for binding in block.bindings}
        return {
            leaf: target
            for leaf, target in zip(results, targets, strict=True)
            if isinstance(leaf, Var)
            and isinstance(leaf.ty, TensorType)
            and leaf in own
            and sum(leaf is other for other in results) == 1
        }

    def binding(self, binding: Binding, into: list[Stmt], wanted: Mapping[Var, Buffer]) -> None:
        value, var = binding.value, binding.var
        if isinstance(binding, MatchCast):
            self.match(binding, into)
        elif isinstance(value, If) or _is_call(value, *_LOOPS):
            types = list(_leaf_types(var.ty, binding.span))
            buffers = [wanted[var]] if var in wanted else [self.fresh(var.name, ty, into) for ty in types]
            allowed = self.allowed.get(var, frozenset[int]())
            places = self.computed(value, buffers, into, allowed)
            self.forget([buffer for buffer in buffers if buffer not in places and var not in wanted], into)
            self.scope.values[var] = _shaped(var.ty, iter(places))
        elif _is_call(value, "call_tir", "call_tir_inplace"):
            assert isinstance(value, Call)
            self.launch(var, value, into, wanted)
        elif _is_call(value, "tensor_to_shape"):
            assert isinstance(value, Call)
            self.scope.values[var] = self.sizes_in(value, into)
        elif _is_call(value, "make_closure"):
            assert isinstance(value, Call)
            self.scope.values[var] = (_Closure(value.args[0]), self.value(value.args[1]))
        elif isinstance(value, Call):
            raise _refused_call(value, self.functions, binding.span or value.span)
        else:
            self.scope.values[var] = self.value(value)

    def launch(self, var: Var, call: Call, into: list[Stmt], wanted: Mapping[Var, Buffer]) -> None:
        """The call of a kernel."""
        callee = call.args[0]
        kernel = self.functions.get(callee.name) if isinstance(callee, GlobalVar) else None
        if not isinstance(kernel, PrimFunc) or not isinstance(callee, GlobalVar):
            raise _refused("a call of what is no kernel of the module", call.span)
        types = list(_leaf_types(call.ty_args[0], call.span))
        inputs = _flat(self.value(call.args[1]))
        outputs, fresh = list[Buffer](), list[Buffer]()
        for ty, index in zip(types, _overwritten(call) or [-1] * len(types), strict=True):
            if index >= 0 and index in self.allowed.get(var, ()):
                outputs.append(inputs[index])
                continue
            outputs.append(self.fresh(var.name, ty, into) if var not in wanted else wanted[var])
            if index < 0:
                fresh.append(outputs[-1])
            else:
                into.append(self.copy(inputs[index], outputs[-1], call.span))
                inputs[index] = outputs[-1]
        given = (*inputs, *fresh)
        arguments: list[Expr] = [address_of_first(item) if isinstance(item, Buffer) else item for item in given]
        if len(call.args) > 2:
            sizes = self.value(call.args[2])
            arguments += sizes.values if isinstance(sizes, _Sizes) else _flat(sizes)
        arguments = [
            cast(param.dtype, item) if isinstance(param, PrimVar) and isinstance(item, PrimExpr) else item
            for param, item in zip(kernel.params, arguments, strict=True)
        ]
        into.append(Evaluate(PrimCall(callee, tuple(arguments), "int32", span=call.span)))
        self.scope.values[var] = _shaped(call.ty_args[0], iter(outputs))

    def copy(self, value: Value, target: Buffer, span: Span | None) -> Stmt:
        """A value into a buffer of its shape."""
        if not isinstance(value, (Buffer, PrimExpr)):
            raise _refused("a value that is no tensor", span)
        return copied(value, target)

    # Loops

    def loop(self, call: Call, outputs: Sequence[Buffer], into: list[Stmt], allowed: frozenset[int]) -> list[Buffer]:
        """A loop; its carried values stand where it leaves them then, its rows in the outputs."""
        parts = get_op("loop").values(replace(call, op=Op("loop")))
        types = TupleType(carried_types(parts["out_ty"], parts["stacked"]))
        rows = outputs[len(outputs) - len(stacked_types(parts["out_ty"], parts["stacked"])) :]
        before = self.value(parts["initial"])
        owned = [] if self.is_outer else [leaf for number in allowed for leaf in _flat(before[number])]
        initial = _flat(before)
        places = [
            item if isinstance(item, Buffer) and item in owned else target
            for item, target in zip(initial, outputs, strict=False)
        ]
        state = [Buffer(item.name, item.shape, item.dtype) if item.shape else item for item in places]
        carried = [_shaped(ty, leaves) for leaves in (iter(state),) for ty in types.fields]
        function = self.closure(parts["body"], call.span)
        condition = self.closure(parts["condition"], call.span) if parts["condition"] is not None else None
        counter = PrimVar("step", _INDEX)
        bounds = (
            [self.load(item, call.span) for item in self.value(parts["range"])] if parts["range"] is not None else []
        )
        index, count = _range_of(bounds, counter, into, call.span)
        if index is not None:
            self.intervals[index] = _index_interval(*map(self.interval, bounds))
        inside, known = list[Stmt](), set(self.locals)
        if condition is not None:
            answer = self.load(self.call(condition, carried, inside, ()), call.span)
            inside.append(IfThenElse(unary("not", answer), Break()))
        arguments = carried if index is None else [index, *carried]
        given = _flat(self.call(function, arguments, inside, ()))
        if len(given) != len(state) + len(rows) or not all(isinstance(item, (Buffer, PrimExpr)) for item in given):
            raise _refused("a loop whose body gives other values than it takes", call.span)
        made = [stmt.buffer for stmt in self.locals if isinstance(stmt, AllocBuffer) and stmt not in known]
        in_rows = made_in_rows(given, rows, made, counter)
        self.forget(list(in_rows), into)
        made = [item for item in made if item not in in_rows]
        inside = [*map(DeclBuffer, in_rows.values()), *(substitute(stmt, in_rows) for stmt in inside)]
        for item, target in zip(given[len(state) :], rows, strict=True):
            inside += [copied(item, target, counter)] if item not in in_rows else []
        values = [Carried(*item) for item in zip(state, initial, places, given, strict=False)]
        after = self.repeat(values, made, (counter, count, condition is not None), inside, into, call.span)
        return [*(after.get(item, item) for item in state), *rows]

    def repeat(
        self,
        values: Sequence[Carried],
        made: Sequence[Buffer],
        control: tuple[PrimVar, PrimExpr | None, bool],
        inside: list[Stmt],
        into: list[Stmt],
        span: Span | None,
    ) -> dict[Buffer, Buffer]:
        """The statement of a loop; gives where its tensors stand then.

        `control` is the number of an iteration, how many there are, and whether the loop may end before.
        """
        counter, count, is_left = control
        steps = Buffer("steps", (), _INDEX)
        is_counted = count is None or is_left
        rounds = BufferLoad(steps, ()) if count is None or is_left else count
        moved = moves([item for item in values if item.state.shape], made, counter, rounds)
        scalars = [item for item in values if not item.state.shape]
        self.forget(moved.gone, into)
        for block in moved.blocks:
            self.allocate(block, into)
        into += [copied(item.initial, item.place) for item in scalars if item.initial is not item.place]
        into += moved.before
        if moved.blocks and is_counted:
            self.locals.append(AllocBuffer(steps))
            into.append(BufferStore(steps, const(0, _INDEX), ()))
            moved.last.append(BufferStore(steps, counter + 1, ()))
            if count is None:
                moved.first.insert(0, Bind(counter, rounds))
        taken, held = taken_numbers(scalars)
        self.locals += map(AllocBuffer, held)
        body = [substitute(stmt, moved.during) for stmt in (*inside, *taken)]
        whole = SeqStmt((*moved.first, *body, *moved.last))
        if count is None:
            into.append(While(const(True, "bool"), whole, span=span))
        else:
            into.append(For(counter, 0, count, whole, span=span))
        into += moved.finally_
        return moved.after

    def call(
        self,
        closure: tuple[Function, list[Value]],
        arguments: Sequence[Value],
        into: list[Stmt],
        targets: Sequence[Buffer],
    ) -> Value:
        """The statements of a function, in a scope of its own."""
        function, fixed = closure
        before = self.scope, self.is_outer
        self.scope, self.is_outer = _Scope(), False
        for param, value in zip(function.params, (*fixed, *arguments), strict=True):
            self.pass_to(param, value, into)
        result = self.sequence(function.body, into, targets)
        self.scope, self.is_outer = before
        return result


def _range_of(
    bounds: Sequence[PrimExpr], counter: PrimVar, into: list[Stmt], span: Span | None
) -> tuple[PrimExpr | None, PrimExpr | None]:
    """The index of an iteration, and how many there are; None for a loop without a range."""
    if not bounds:
        return None, None
    names = [PrimVar(name, _INDEX) for name in ("first", "stop", "by")]
    into += [Bind(name, cast(_INDEX, value)) for name, value in zip(names, bounds, strict=True)]
    first, end, by = names
    zero = const(0, _INDEX)
    into.append(AssertStmt(binary("ne", by, zero), "the step of a loop is 0", "ArgumentError", span=span))
    up = binary("gt", by, zero)
    distance = Select(up, end - first, first - end)
    size = Select(up, by, unary("neg", by))
    whole = binary("floordiv", binary("max", distance, zero) + size - 1, binary("max", size, const(1, _INDEX)))
    return first + counter * by, whole


def _index_interval(start: Interval, stop: Interval, step: Interval) -> Interval:
    """The bounds of an index between those of its range."""
    up, down = (start[0], stop[1] - 1), (stop[0] + 1, start[1])
    return up if step[0] > 0 else down if step[1] < 0 else (min(up[0], down[0]), max(up[1], down[1]))


def _overwritten(call: Call) -> tuple[int, ...] | None:
    """Of each output the input that it is written over, or -1."""
    indices = call.attrs.get("inplace_indices")
    return (indices,) if isinstance(indices, int) else indices


def _nodes(extent: Any) -> Iterator[Any]:
    return walk(extent) if isinstance(extent, PrimExpr) else iter(())


def _flat(value: Value) -> list[Value]:
    return [leaf for part in value for leaf in _flat(part)] if isinstance(value, tuple) else [value]


def _shaped(ty: Type | None, leaves: Iterator[Buffer]) -> Value:
    """Buffers in the form of a type."""
    return tuple(_shaped(part, leaves) for part in ty.fields) if isinstance(ty, TupleType) else next(leaves)


def _result_leaves(body: Expr) -> Iterator[Expr]:
    if isinstance(body, Tuple):
        for part in body.fields:
            yield from _result_leaves(part)
    else:
        yield body
