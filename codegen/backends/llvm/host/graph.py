"""Graph functions in explicit-memory form to LLVM functions: one machine-code entry, nothing of Python between kernels.

    entry ::= int32 weft.entry.<name>(frame, argument words, result words)

Symbols are 64-bit integers, bound from the sizes of arguments and by match_cast. Every claim that is not evident (the
sizes that a kernel's signature relates, a match_cast, declared types of results) is compared when the program runs;
the message names the binding, the argument, the symbol and the values.

Memory: an allocation is a reference-counted block, held by a slot of the function and released after its last use or on
the way out (`weft.codegen.backends.llvm.host.heap`); results carry a reference of their own. Arguments are borrowed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from typing import Any

from weft import dtypes
from weft.codegen.backends.llvm.asm.asm import ModuleWriter, Size
from weft.codegen.backends.llvm.asm.program import Program, frame_word, graph_symbol
from weft.codegen.backends.llvm.asm.types import element_bytes, memory_type, value_type
from weft.codegen.backends.llvm.host.direct_outputs import result_words
from weft.codegen.backends.llvm.host.graph_checks import CheckingEmitter, is_void
from weft.codegen.backends.llvm.host.graph_kernels import KernelMatch
from weft.codegen.backends.llvm.host.graph_operators import OPERATORS
from weft.codegen.backends.llvm.host.graph_values import (
    DYNAMIC_WORDS,
    Callable_,
    Dynamic,
    DynamicShape,
    Handle,
    Items,
    Scalar,
    Shape,
    Tensor,
    Text,
    Value,
    load,
    owners,
    read,
    store,
    width,
    write,
)
from weft.codegen.backends.llvm.host.liveness import last_uses
from weft.codegen.backends.llvm.kernel.kernel import (
    call_back,
    from_word,
    kernel_params,
    result_dtype,
    shared_positions,
    to_word,
    written_buffers,
)
from weft.codegen.host.signature import type_data
from weft.errors import ShapeError, Span, TargetError
from weft.ir.dim import Dim, DimExpr, operation
from weft.ir.graph import (
    Binding,
    Call,
    Constant,
    DataTypeImm,
    Expr,
    ExternFunc,
    Function,
    GlobalVar,
    If,
    MatchCast,
    Op,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
)
from weft.ir.prim_dim import prim_to_dim
from weft.ir.tensor import Buffer, PrimExpr, PrimFunc
from weft.ir.types import AnyType, TensorType, TupleType, Type
from weft.ir.upper_bounds import upper_bounds
from weft.runtime.abi.frame import CONSTANTS, DYNAMIC_RANK, HEADER, OUTPUTS, STACK, STACK_LIMIT
from weft.runtime.abi.values import scalar_word

__all__ = ["emit_function"]


def emit_function(module: ModuleWriter, program: Program, name: str, function: Function) -> set[int]:
    """Emit one graph function into a module; gives the positions of the parameters that it writes in place."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, 100_000))  # branches nest as deep as the user's program
    try:
        emitter = GraphEmitter(module, program, name, function)
        emitter.emit()
        return emitter.written
    finally:
        sys.setrecursionlimit(limit)


class GraphEmitter(CheckingEmitter):
    """Emits one graph function."""

    def emit(self) -> None:
        """Emit the whole function."""
        self._parameters()
        value = self.sequence(self.function.body)
        value = self.fitted(value, self.function.ret_type, f"the result of {self.name}", self.function.body.body.span)
        for owner in owners(self.w, value):
            self.w.do(f"call void @weft.retain(i64 {owner})")
        store(self.w, value, self.function.ret_type, "%results")
        self.leave("0")
        self._leave_block()
        self.w.finish()

    def _parameters(self) -> None:
        index = 0
        given: list[tuple[Value, Type, str]] = []
        for position, param in enumerate(self.function.params, 1):
            value, index = load(self.w, param.ty, "%arguments", index)
            if isinstance(value, Tensor):
                value.param = position - 1
            self.variables[param] = value
            given.append((value, param.ty, f"argument {position} `{param.name}`"))
        self.check(given, None)  # what is wrong is the call, whose place the caller notes
        for name, bound in upper_bounds(self.function).items():
            value = self.symbols.get(name)
            if value is not None:
                parts = [f"{name} is ", 0, f" in {self.name}, which states that it is at most {bound}"]
                fine = self.w.emit(f"icmp sle i64 {value}, {bound}")
                self.unless(fine, "ShapeError", parts, [value], self.function.span, "W229")

    def _leave_block(self) -> None:
        """Release what the slots hold and return."""
        w = self.w
        w.open(self.exit)
        if self.slots:
            self.module.declare("llvm.memset.p0.i64", "void", ("ptr", "i8", "i64", "i1 immarg"))
            w.at_entry(f"%slots = alloca [{self.slots} x i64], align 8")
            w.at_entry(f"call void @llvm.memset.p0.i64(ptr %slots, i8 0, i64 {self.slots * 8}, i1 false)")
            w.do(f"call void @weft.release_all(ptr %slots, i64 {self.slots})")
        w.ret(f"i32 {w.emit(f'load i32, ptr {self.status}')}")

    # Bindings

    def sequence(self, seq: SeqExpr) -> Value:
        """Emit bindings in order; gives the value of the body."""
        bindings = [binding for block in seq.blocks for binding in block.bindings]
        ends = last_uses(bindings, seq.body, self.program.functions)
        for index, binding in enumerate(bindings):
            self.binding(binding)
            for var in ends.get(index, ()):
                self.drop(var)
        return self.value(seq.body)

    def binding(self, binding: Binding) -> None:
        """Emit one binding."""
        var, span = binding.var, binding.value.span or binding.span
        if isinstance(binding, MatchCast):
            span = binding.span or span
            self.variables[var] = self.fitted(self.value(binding.value), binding.ty, f"match_cast of {var.name}", span)
            return
        expr = binding.value
        if isinstance(expr, If):
            self.variables[var] = self.branches(expr, var)
        elif isinstance(expr, Call):
            self.variables[var] = self.call(expr, var, span)
        else:
            self.variables[var] = self.value(expr)

    def value(self, expr: Expr) -> Value:
        """The value of a leaf, tuple or tuple field."""
        if isinstance(expr, Var):
            found = self.variables.get(expr)
            if found is None:
                raise TargetError(f"llvm: the variable {expr.name!r} has no value here", code="W744", span=expr.span)
            return found
        method = _VALUES.get(type(expr))
        if method is not None:
            return method(self, expr)
        if isinstance(expr, PrimExpr):
            dim = prim_to_dim(expr)
            if dim is not None:
                return Scalar("int64", str(self.size(dim, expr.span)))
        if isinstance(expr, Function):
            hint = "run LambdaLift first: weft.transform.LambdaLift()(module)"
            raise TargetError("llvm: a local function has no compiled form", code="W743", span=expr.span, hint=hint)
        raise TargetError(
            f"llvm: a {type(expr).__name__} cannot be compiled in a graph function", code="W743", span=expr.span
        )

    def _constant(self, expr: Constant) -> Value:
        index = self.program.constant(expr.data, expr.dtype)
        table = self.w.emit(f"load ptr, ptr {frame_word(self.w, CONSTANTS)}")
        return Tensor(read(self.w, table, index), "0", list(expr.data.shape), expr.dtype, constant=True)

    def _shape(self, expr: ShapeExpr) -> Value:
        return Shape([self.nonnegative(dim, expr.span) for dim in expr.dims])

    def nonnegative(self, dim: Dim, span: Span | None) -> Size:
        """A size; ShapeError W221 when the program finds a negative one."""
        known = dim in self.sizes if isinstance(dim, DimExpr) else True
        size = self.size(dim, span)
        if isinstance(size, int) and size < 0:
            raise ShapeError(f"a shape has the negative size {size}", code="W221", span=span)
        if not known and _may_be_negative(dim):
            fine = self.w.emit(f"icmp sge i64 {size}, 0")
            self.unless(fine, "ShapeError", [f"a shape has the negative size {dim} = ", 0], [size], span, "W221")
        return size

    def _prim(self, expr: PrimValue) -> Value:
        if isinstance(expr.value, DimExpr):
            word = str(self.size(expr.value, expr.span))
            if dtypes.is_float(expr.dtype):
                return Scalar(
                    expr.dtype, to_word(self.scalars, expr.dtype, self.scalars.arith.cast("int64", expr.dtype, word))
                )
            return Scalar(expr.dtype, word)
        return Scalar(expr.dtype, str(scalar_word(expr.value, expr.dtype)))

    def _tuple(self, expr: Tuple) -> Value:
        return Items([self.value(item) for item in expr.fields])

    def _item(self, expr: TupleGetItem) -> Value:
        value = self.value(expr.value)
        if not isinstance(value, Items):
            raise TargetError("llvm: the fields of this tuple are not known", code="W743", span=expr.span)
        return value.fields[expr.index]

    def _text(self, expr: StringImm | DataTypeImm) -> Value:
        return Text(expr.value)

    def _function(self, expr: GlobalVar) -> Value:
        return Callable_(expr.name)

    # Branches

    def branches(self, expr: If, var: Var) -> Value:
        """Emit a conditional; the values of the branches meet in a block of words."""
        w = self.w
        condition = self.truth(expr.cond)
        ty = var.ty
        count = 0 if is_void(ty) else width(ty)
        block = w.alloca("i64", max(1, count))
        then, other, done = w.label("then"), w.label("else"), w.label("endif")
        w.branch(condition, then, other)
        for label, branch in ((then, expr.then_branch), (other, expr.else_branch)):
            w.open(label)
            self._branch(branch, ty, block if count else "")
            if not w.terminated:
                w.jump(done)
        w.open(done)
        return load(w, ty, block)[0] if count else Items()

    def _branch(self, branch: SeqExpr, ty: Type, block: str) -> None:
        """What is bound or computed in a branch is not there after it."""
        outer = dict(self.symbols), dict(self.sources), dict(self.sizes), dict(self.held)
        value = self.sequence(branch)
        if block:
            store(self.w, self.shaped(value, ty, "the value of a branch", branch.body.span), ty, block)
        self.symbols, self.sources, self.sizes, self.held = outer

    def truth(self, expr: Expr) -> str:
        """A condition: a scalar or a tensor of rank 0."""
        value = self.value(expr)
        if isinstance(value, Scalar):
            return self.w.emit(f"icmp ne i64 {value.word}, 0")
        if isinstance(value, Dynamic):
            value = self._static(value, TensorType((), "bool"), "a condition", expr.span)
        if not isinstance(value, Tensor) or any(size != 1 for size in value.sizes):
            raise TargetError("llvm: a condition is a scalar or a tensor of rank 0", code="W743", span=expr.span)
        pointer = self.w.emit(f"inttoptr i64 {value.data} to ptr")
        loaded = self.scalars._from_memory(value.dtype, self.scalars._read(value.dtype, pointer))
        return self.scalars.arith.cast(value.dtype, "bool", loaded)

    # Memory

    def allocate(
        self, sizes: Sequence[Size], dtype: str, span: Span | None, var: Var | None, maker: str = "weft.allocate"
    ) -> Tensor:
        """A fresh tensor."""
        bytes_ = self.bytes_of(sizes, dtype)
        if var in self.direct:
            return self._allocate_result(sizes, dtype, bytes_, span, var, *self.direct[var])
        block = self.w.emit(f"call i64 @{maker}(i64 {bytes_})")
        name = var.name if var is not None else "_"
        found = self.w.emit(f"icmp ne i64 {block}, 0")
        self.unless(found, "MemoryError", [f"no memory for {name}: ", 0, " bytes"], [bytes_], span)
        self.hold(block, var)
        return Tensor(self.w.emit(f"add i64 {block}, {HEADER}"), block, list(sizes), dtype)

    def _allocate_result(
        self, sizes: Sequence[Size], dtype: str, bytes_: Size, span: Span | None, var: Var, word: int, ty: TensorType
    ) -> Tensor:
        """A tensor that becomes a result: where the caller wants it, when that is large enough."""
        w = self.w
        data, owner = w.alloca("i64"), w.alloca("i64")
        asked, wanted, fresh, done = (w.label(name) for name in ("asked", "wanted", "fresh", "done"))
        w.branch(w.emit(f"icmp ne i64 {w.emit(f'load i64, ptr {frame_word(w, OUTPUTS)}')}, 0"), asked, fresh)
        w.open(asked)
        place_ = read(w, "%results", word)
        room: Size = element_bytes(ty.dtype or dtype)
        for axis in range(ty.ndim):
            room = w.emit(f"mul i64 {room}, {read(w, '%results', word + 2 + axis)}")
        given = w.emit(f"icmp ne i64 {place_}, 0")
        fits = w.emit(f"and i1 {given}, {w.emit(f'icmp eq i64 {room}, {bytes_}')}")
        w.branch(fits, wanted, fresh)
        w.open(wanted)
        w.do(f"store i64 {place_}, ptr {data}")
        w.do(f"store i64 0, ptr {owner}")
        w.jump(done)
        w.open(fresh)
        block = w.emit(f"call i64 @weft.allocate(i64 {bytes_})")
        found = w.emit(f"icmp ne i64 {block}, 0")
        self.unless(found, "MemoryError", [f"no memory for {var.name}: ", 0, " bytes"], [bytes_], span)
        w.do(f"store i64 {w.emit(f'add i64 {block}, {HEADER}')}, ptr {data}")
        w.do(f"store i64 {block}, ptr {owner}")
        w.open(done)
        held = w.emit(f"load i64, ptr {owner}")
        self.hold(held, var)
        return Tensor(w.emit(f"load i64, ptr {data}"), held, list(sizes), dtype)

    def bytes_of(self, sizes: Sequence[Size], dtype: str) -> Size:
        """The bytes of a tensor; a number beyond all memory where 64 bits do not hold it."""
        found: Size = element_bytes(dtype)
        for size in sizes:
            known = isinstance(found, int) and isinstance(size, int)
            found = (
                self.w.mul(found, size) if known else self.w.emit(f"call i64 @weft.product(i64 {found}, i64 {size})")
            )
        return found

    def copied(self, value: Tensor, span: Span | None) -> Tensor:
        """A copy that may be written."""
        fresh = self.allocate(value.sizes, value.dtype, span, None)
        size: Size = element_bytes(value.dtype)
        for extent in value.sizes:
            size = self.w.mul(size, extent)
        self.module.declare("llvm.memcpy.p0.p0.i64", "void", ("ptr", "ptr", "i64", "i1 immarg"))
        target, source = (self.w.emit(f"inttoptr i64 {part} to ptr") for part in (fresh.data, value.data))
        self.w.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, i1 false)")
        return fresh

    # Calls

    def call(self, call: Call, var: Var, span: Span | None) -> Value:
        """Emit a call; gives its result."""
        callee = call.op
        if isinstance(callee, Var):
            function = self.value(callee)
            if not isinstance(function, Callable_):
                raise TargetError(
                    f"llvm: the function that {callee.name!r} holds is not known when compiling",
                    code="W743",
                    span=span,
                    hint="run LambdaLift first, or use weft.interpret",
                )
            return self.call_module(function.name, [*function.fixed, *map(self.value, call.args)], call, var, span)
        if isinstance(callee, GlobalVar):
            return self.call_module(callee.name, [self.value(arg) for arg in call.args], call, var, span)
        if isinstance(callee, ExternFunc):
            return self.call_packed(callee.name, list(call.args), call, span)
        if isinstance(callee, Op):
            return self.call_operator(callee.name, call, var, span)
        raise TargetError(f"llvm: cannot call a {type(callee).__name__}", code="W743", span=span)

    def call_module(self, name: str, args: list[Value], call: Call, var: Var, span: Span | None) -> Value:
        """A call of a function of the module."""
        function = self.program.functions.get(name)
        if isinstance(function, PrimFunc):
            return self.call_kernel(name, function, args, call, span)
        if isinstance(function, Function):
            return self.call_graph(name, function, args, var, span)
        if isinstance(function, ExternFunc):
            return self.call_packed(function.name, list(call.args), call, span)
        raise TargetError(f"llvm: the module has no function {name!r}", code="W743", span=span)

    def call_graph(self, name: str, function: Function, args: list[Value], var: Var, span: Span | None) -> Value:
        """A call of another graph function (or of this one): words in, words out; the results' references are ours."""
        w = self.w
        if len(args) != len(function.params):
            raise TargetError(
                f"llvm: {name} takes {len(function.params)} arguments, got {len(args)}", code="W743", span=span
            )
        values = [
            self.shaped(arg, param.ty, f"argument {i} `{param.name}` of {name}", span)
            for i, (arg, param) in enumerate(zip(args, function.params, strict=True), 1)
        ]
        self.check_stack(name, span)
        given = w.alloca("i64", max(1, sum(width(param.ty) for param in function.params)))
        index = 0
        for value, param in zip(values, function.params, strict=True):
            index = store(w, value, param.ty, given, index)
        results = w.alloca("i64", max(1, width(function.ret_type)))
        for word, _ in result_words(function.ret_type):
            write(w, results, word, 0)  # what we want is not what our caller wants
        spelled = self.module.declare(graph_symbol(name), "i32", ("ptr", "ptr", "ptr"))
        self.pass_on(w.emit(f"call i32 {spelled}(ptr %frame, ptr {given}, ptr {results})"), span, placed=True)
        result, _ = load(w, function.ret_type, results)
        for owner in owners(w, result):
            self.hold(owner, var)
        return self.fitted(result, var.ty, var.name or "a value", span) if not is_void(var.ty) else result

    def check_stack(self, name: str, span: Span | None) -> None:
        """W951 where calls of graph functions are nested so deep that the stack would run out."""
        w = self.w
        here = w.emit(f"ptrtoint ptr {self.status} to i64")
        word = frame_word(w, STACK)
        first = w.emit(f"load i64, ptr {word}")
        base = w.emit(f"select i1 {w.emit(f'icmp eq i64 {first}, 0')}, i64 {here}, i64 {first}")
        w.do(f"store i64 {base}, ptr {word}")
        used = self.scalars.arith.call(
            "llvm.abs.i64", "int64", ("i64", w.emit(f"sub i64 {base}, {here}")), ("i1", "false")
        )
        fine = w.emit(f"icmp slt i64 {used}, {STACK_LIMIT}")
        self.unless(fine, "RecursionError", [f"calls of {name} are nested too deep"], [], span)

    def call_kernel(self, name: str, kernel: PrimFunc, args: list[Value], call: Call, span: Span | None) -> Value:
        """A call of a tensor-level function on tensors and scalars."""
        if len(args) != len(kernel.params):
            raise TargetError(
                f"llvm: {name} takes {len(kernel.params)} arguments, got {len(args)}", code="W743", span=span
            )
        written = self.program.written(name, kernel, written_buffers)
        sharing = shared_positions(kernel)
        match = KernelMatch(self, name, kernel, span)
        operands = ["ptr %frame"]
        for position, (param, arg) in enumerate(zip(kernel.params, args, strict=True)):
            if isinstance(param, Buffer):
                tensor = match.tensor(position, param, arg)
                others = written - sharing.get(position, set())
                if position not in written and any(
                    isinstance(o, Tensor) and o.data == tensor.data for o in _at(args, others)
                ):
                    tensor = self.copied(tensor, span)  # what is read stays as it was before the call
                if position in written and tensor.constant:
                    tensor = self.copied(tensor, span)
                    _rebind(self, call, position, tensor)
                elif position in written and tensor.param >= 0:
                    self.written.add(tensor.param)
                operands.append(f"ptr {self.w.emit(f'inttoptr i64 {tensor.data} to ptr')}")
            else:
                word = match.scalar(position, param.dtype, arg)
                operands.append(f"{value_type(param.dtype)} {from_word(self.scalars, param.dtype, word)}")
        operands += [f"i64 {size}" for size in match.finish()]
        dtype = result_dtype(kernel)
        slot = self.w.alloca(memory_type(dtype)) if dtype else ""
        if dtype:
            operands.append(f"ptr {slot}")
        spelled = self.module.declare(
            self.program.kernel_symbol(name), "i32", ("ptr", *(t for t, _ in kernel_params(kernel)))
        )
        self.pass_on(self.w.emit(f"call i32 {spelled}({', '.join(operands)})"), span, placed=True)
        if dtype:
            value = self.scalars._from_memory(dtype, self.scalars._read(dtype, slot))
            return Scalar(dtype, to_word(self.scalars, dtype, value))
        return Items()

    # Calls out of the program

    def call_packed(self, name: str, args: list[Expr], call: Call, span: Span | None) -> Value:
        """A registered Python function; its result has the stated type."""
        ty: Type = call.ty_args[0] if call.ty_args else AnyType()
        if call.attrs.get("dps"):
            ty = TupleType(())
        return self.call_out(name, [self.value(arg) for arg in args], ty, span)

    def call_out(self, name: str, args: Sequence[Value], ty: Type, span: Span | None, **text: Any) -> Value:
        """Call the runtime with values; gives the value of a type that comes back."""
        words: list[Size] = []
        kinds = [self._argument(arg, words) for arg in args]
        result = [] if is_void(ty) else type_data(ty)
        site = self.program.site(kind="call", name=name, args=kinds, result=result, span=span, **text)
        status, block = call_back(self.w, site, words, 0 if not result else width(ty))
        self.pass_on(status)
        if not result:
            return Items()
        value, _ = load(self.w, ty, block)
        self.check([(value, ty, text.get("what") or f"the result of {name!r}")], span)
        return value

    def _argument(self, value: Value, words: list[Size]) -> list[Any]:
        """Append a value's words; gives its type as data."""
        if isinstance(value, Tensor):
            words += [value.data, value.owner, *value.sizes]
            kind = ["tensor", value.dtype, None, len(value.sizes)]
            return [*kind, "constant"] if value.constant else kind
        if isinstance(value, Dynamic):
            words += [read(self.w, value.words, index) for index in range(DYNAMIC_WORDS)]
            return ["tensor", None, None, -1]
        if isinstance(value, Shape):
            words += value.sizes
            return ["shape", None, len(value.sizes)]
        if isinstance(value, DynamicShape):
            words += [read(self.w, value.words, index) for index in range(1 + DYNAMIC_RANK)]
            return ["shape", None, -1]
        if isinstance(value, Scalar):
            words.append(value.word)
            return ["prim", value.dtype, None]
        if isinstance(value, Items):
            return ["tuple", *(self._argument(item, words) for item in value.fields)]
        if isinstance(value, Text):
            return ["string", value.text]
        if isinstance(value, Handle):
            words.append(value.word)
            return ["object"]
        raise TargetError("llvm: a function cannot be passed out of compiled code", code="W743")

    # Operators that are not kernels

    def call_operator(self, name: str, call: Call, var: Var, span: Span | None) -> Value:
        """An operator of the executor; TargetError W745 for one that has no kernel."""
        rule = OPERATORS.get(name)
        if rule is None:
            raise TargetError(
                f"llvm: R.{name} has no kernel in {self.name}", code="W745", span=span,
                hint="run weft.transform.LegalizeOps() before; where a shape is unknown, name it with R.match_cast",
            )  # fmt: skip
        return rule(self, call, var, span)


def _at(values: Sequence[Value], positions: Collection[int]) -> list[Value]:
    return [values[position] for position in positions]


def _rebind(emitter: GraphEmitter, call: Call, position: int, tensor: Tensor) -> None:
    """The variable whose constant was copied before a kernel wrote it now means the copy."""
    arg = call.args[position] if position < len(call.args) else None
    if isinstance(arg, Var):
        emitter.variables[arg] = tensor


def _may_be_negative(dim: Dim) -> bool:
    """Whether a dimension is not evidently at least 0."""
    kind, operands = operation(dim)
    if kind == "constant":
        return operands[0] < 0
    if kind == "symbol":
        return False
    if kind == "pow":
        return _may_be_negative(operands[0])
    return any(_may_be_negative(operand) for operand in operands)


_VALUES: dict[type, Callable[[GraphEmitter, Any], Value]] = {
    Constant: GraphEmitter._constant,
    ShapeExpr: GraphEmitter._shape,
    PrimValue: GraphEmitter._prim,
    Tuple: GraphEmitter._tuple,
    TupleGetItem: GraphEmitter._item,
    StringImm: GraphEmitter._text,
    DataTypeImm: GraphEmitter._text,
    GlobalVar: GraphEmitter._function,
    SeqExpr: GraphEmitter.sequence,
}
