"""Which values may end the program with an error when they are evaluated: a pass that leaves such a value out changes
what the program does.

    operators            where deduction leaves a check of sizes open, or a size of the result may be negative, or the
                         kernel has assertions (indices, domains)
    calls of kernels     the same, and where accesses are not proved to stay inside their buffers
    extern functions     always: what they give is held against its declared type
    loops                where the body may; always where it is not known, or the loop may not end: it has no range, or
                         one whose step a run decides
    graph functions      where a binding of theirs may, or what they declare of their result is not proved
"""

from __future__ import annotations

from weft.errors import ShapeError, WeftError
from weft.ir import (
    Call,
    Expr,
    ExternFunc,
    Function,
    GlobalVar,
    If,
    IRModule,
    MatchCast,
    Op,
    PrimFunc,
    SeqExpr,
    ShapeExpr,
    ShapeType,
    Var,
    walk,
)
from weft.ir.builder import BlockBuilder
from weft.ir.deduction.infer import TypeContext, infer_type, is_base_of
from weft.ir.deduction.subtyping import has_sizes
from weft.ir.dim import Dim, DimExpr
from weft.ir.op import OPS
from weft.ir.op.program.loop import iterations
from weft.ir.tensor import AssertStmt
from weft.transform.infra.rewriting import bindings_of, operands
from weft.transform.kernel.check_bounds import check_bounds

__all__ = ["CanFail"]

_EXTERN = {"call_dps_packed", "call_py", "call_pure_packed", "call_inplace_packed", "invoke_pure_closure"}
_ON_VALUES = {"tensor_to_shape"}


class CanFail:
    """Answers for the values of one module; what is found of a function is remembered.

    `local` are the functions that variables are bound to: the bodies of loops.
    """

    def __init__(self, module: IRModule) -> None:
        self.module = module
        self.local: dict[Var, Function] = {}
        self.known: dict[int, tuple[PrimFunc | Function, bool]] = {}

    def __call__(self, value: Expr) -> bool:
        """Whether evaluating the value may end with an error."""
        if isinstance(value, If):
            return self._sequence(value.then_branch) or self._sequence(value.else_branch)
        return isinstance(value, Call) and (self._sizes(value) or self._callee(value))

    def _sequence(self, seq: SeqExpr) -> bool:
        return any(isinstance(binding, MatchCast) or self(binding.value) for binding in bindings_of(seq))

    def _sizes(self, call: Call) -> bool:
        context = TypeContext(self.module.functions)
        with context.scope():
            for leaf in operands(call):
                if isinstance(leaf, Var):
                    context.learn_sizes(leaf.ty)
            known = context.facts
            try:
                found = infer_type(call, context)
            except ShapeError:  # right only after checks further up
                return True
        written = [ShapeType(tuple(filter(_is_symbolic, arg.dims))) for arg in call.args if isinstance(arg, ShapeExpr)]
        return bool(context.checks) or not all(has_sizes(ty, known) for ty in (found, *written))

    def _callee(self, call: Call) -> bool:
        if isinstance(call.op, (ExternFunc, GlobalVar)):
            return self._named(call.op)
        if not isinstance(call.op, Op):
            return True
        if call.op.name in _EXTERN or call.op.name in _ON_VALUES:
            return True
        if call.op.name == "loop":
            return self._loop(call)
        kernels = [arg for arg in call.args if isinstance(arg, (GlobalVar, ExternFunc))]
        return any(map(self._named, kernels)) if kernels else self._operator(call, call.op.name)

    def _named(self, callee: GlobalVar | ExternFunc) -> bool:
        function = self.module.functions.get(callee.name) if isinstance(callee, GlobalVar) else None
        if not isinstance(function, (PrimFunc, Function)):
            return True
        found = self.known.get(id(function))
        if found is None:
            self.known[id(function)] = (function, True)  # a recursive one may never end
            may = _kernel(function) if isinstance(function, PrimFunc) else self._function(function)
            found = self.known[id(function)] = (function, may)
        return found[1]

    def _loop(self, call: Call) -> bool:
        args = OPS["loop"].arguments(call)
        if iterations(args.range) is None:
            return True
        bodies = [self.local.get(value) for value in (args.body, args.condition) if value is not None]
        return any(body is None or self._function(body) for body in bodies)

    def _function(self, function: Function) -> bool:
        given = infer_type(function.body.body, TypeContext(self.module.functions))
        return is_base_of(function.ret_type, given) is not True or self._sequence(function.body)

    def _operator(self, call: Call, name: str) -> bool:
        definition = OPS.get(name)
        if definition is None:
            return True
        try:
            kernel = definition.lower(call, TypeContext(self.module.functions), name)
            if kernel is not None:
                return _asserts(kernel)
            if definition.decompose is None:
                return False  # one of the executors', or of shapes that are not known
            builder = BlockBuilder(self.module)
            with builder.collect() as before:
                last = definition.decompose(definition.arguments(call), builder)
            if last is call:
                return False
        except WeftError:
            return True
        return any(self(binding.value) for binding in before) or self(last)


def _is_symbolic(dim: Dim) -> bool:
    """Whether a size is no number: a -1 asks for the size that fits."""
    return isinstance(dim, DimExpr)


def _asserts(kernel: PrimFunc) -> bool:
    return any(isinstance(node, AssertStmt) for node in walk(kernel.body))


def _kernel(kernel: PrimFunc) -> bool:
    try:
        return _asserts(check_bounds(kernel))
    except WeftError:
        return True
