"""A graph of ATen operators as a module: placeholders are parameters or constants, nodes bindings in order.

A node is imported by the row of its operator, else it is a Python function that runs in PyTorch. Sizes that PyTorch
calls `s0` are symbols; what it computes of them is computed while importing, and numbers that only the run can tell are
scalars, which become sizes where a size is wanted.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from weft.errors import ModelError, Source, Span
from weft.frontend.emitter import Emitter, Unsupported, identifier
from weft.frontend.extras import require
from weft.frontend.report import How, ImportedNode, ImportReport
from weft.frontend.torch.node import FxNode
from weft.frontend.torch.numbers import number_of
from weft.frontend.torch.reference import FUNCTION, call_data
from weft.frontend.torch.sizes import Sizes
from weft.frontend.torch.table import TABLE, reason
from weft.frontend.torch.types import Types
from weft.ir.dim import DimExpr
from weft.ir.graph import BindingBlock, Constant, Expr, PrimValue, SeqExpr, StringImm, Tuple, TupleGetItem, Var
from weft.ir.module import IRModule
from weft.ir.types import TupleType, Type
from weft.script import relax as R
from weft.support.records import dataclass

__all__ = ["CHECKS", "Call", "Importer", "call_of"]

CHECKS = ("_assert", "sym_constrain", "_guards", "_linalg_check_errors", "_functional_assert", "_functional_sym")


@dataclass(frozen=True, eq=False)
class Call:
    """A node of the graph, or the call inside one that says which effects it has."""

    name: str
    target: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    value: Any  # what PyTorch knows of the result
    users: Sequence[Any]

    @property
    def operator(self) -> str:
        """The name of the operator without its overload."""
        found = getattr(self.target, "_opname", None)
        return found or getattr(self.target, "__name__", str(self.target))


def call_of(node: Any) -> Call:
    """The call that a node is."""
    return Call(node.name, node.target, tuple(node.args), node.kwargs, node.meta.get("val"), list(node.users))


def needed(graph: Any) -> set[Any]:
    """The nodes that the results of a graph depend on: not those that only checks read."""
    found: set[Any] = set()
    for node in reversed(graph.nodes):
        if node.op in ("output", "placeholder") or node in found:
            found.update((node, *node.all_input_nodes))
    return found


class Importer:
    """One import: what the nodes stand for, and what became of them."""

    def __init__(self) -> None:
        self.torch = require("torch", "torch")
        self.out = Emitter()
        self.sizes = Sizes()
        self.types = Types(self.torch, self.out, self.sizes)
        self.values: dict[Any, Any] = {}  # node -> expression, dimension, number, or a list of them
        self.rows: list[ImportedNode] = []
        self.failed: list[Any] = []
        self.graphs: dict[Any, Any] = {}  # node -> the graph that it names
        self.lines = 0

    def run(
        self,
        owner: Any,
        graph: Any,
        placeholder: Callable[[Any], Any],
        outputs: Callable[[Any], Sequence[Any]],
        attrs: Mapping[str, Any] | None = None,
    ) -> tuple[IRModule, ImportReport]:
        """The module of a graph.

        `placeholder` gives the array of a placeholder that is none of the function's parameters, False for one that is
        left out (a size that others have), a name for one that comes after the others, and None for the others.
        """
        params: list[Var] = []
        later: list[Var] = []
        given = [(node.name, node.meta.get("val")) for node in graph.nodes if node.op == "placeholder"]
        shapes = [(name, value.shape) for name, value in given if isinstance(value, self.torch.Tensor)]
        sizes = [(name, [value]) for name, value in given if isinstance(value, self.torch.SymInt)]
        self.sizes.bind([*shapes, *sizes], self.out.fresh)
        for node in graph.nodes:
            if node.op == "placeholder":
                array = placeholder(node)
                if array is None:
                    self.values[node] = self.types.parameter(node.meta["val"], node.name, params)
                elif isinstance(array, str):
                    self.values[node] = self.types.parameter(node.meta["val"], array, later)
                elif array is not False:
                    self.values[node] = Constant(array)
                elif isinstance(node.meta.get("val"), self.torch.SymInt):
                    self.values[node] = self.sizes.dim(node.meta["val"])
        params.extend(later)
        with self.out.builder.function("main", params, attrs=dict(attrs) if attrs else None):
            self.out.reserve(params)
            results = [self.result(item) for item in outputs(self.nodes(owner, graph))]
            body = results[0] if len(results) == 1 else Tuple(tuple(results))
            self.out.builder.emit_func_output(body)
        return self.out.builder.get(), ImportReport(tuple(self.rows))

    def nodes(self, owner: Any, graph: Any) -> Any:
        """Import the nodes of a graph in order, as far as its results need them; its output node."""
        wanted = needed(graph)
        for node in graph.nodes:
            if node not in wanted:
                self._left_out(node)
            elif node.op == "get_attr":
                self._attribute(owner, node)
            elif node.op == "call_function":
                self.node(node)
            elif node.op == "output":
                return node
        raise ModelError("the graph has no output", code="W977")

    def _left_out(self, node: Any) -> None:
        if node.op == "call_function" and call_of(node).operator.startswith(CHECKS):
            self.out.used, self.out.cost = [], 0.0
            self._note(call_of(node), "known", "a check of PyTorch's, which is left out")

    def inlined(self, node: Any, inputs: Sequence[Any]) -> list[Any]:
        """The results of the graph that a node names, on values, in place."""
        owner = self.graphs[node]
        places = [item for item in owner.graph.nodes if item.op == "placeholder"]
        self.values.update(zip(places, inputs, strict=True))
        found = self.nodes(owner, owner.graph).args[0]
        return [self.argument(item) for item in (found if isinstance(found, (list, tuple)) else [found])]

    def collected(self, step: Callable[[], list[Expr]]) -> tuple[SeqExpr, Type]:
        """What a step emits, as a sequence of its own with its results as a tuple."""
        with self.out.builder.collect() as bindings:
            results = step()
        made = Tuple(tuple(results))
        block = (BindingBlock(tuple(bindings)),) if bindings else ()
        return SeqExpr(block, made), TupleType(tuple(self.out.type(result) for result in results))

    def _attribute(self, owner: Any, node: Any) -> None:
        found = owner
        for part in node.target.split("."):
            found = getattr(found, part)
        if isinstance(found, self.torch.Tensor):
            from weft.frontend.torch.program import array_of

            self.values[node] = Constant(array_of(found))
        else:
            self.graphs[node] = found

    def result(self, item: Any) -> Expr:
        """A value of the program as a result of a function."""
        value = self.argument(item)
        if value is None:
            return self.out.builder.emit(R.null_value(), "none")
        if isinstance(value, (bool, float)):
            value = R.const(value, "bool" if isinstance(value, bool) else "float64")
        if isinstance(value, (int, DimExpr)):
            return PrimValue(value)
        if isinstance(value, str):
            return StringImm(value)
        if not isinstance(value, Expr):
            raise ModelError(f"a result of the type {type(value).__name__} has no form", code="W977")
        return value if isinstance(value, Var) else self.out.builder.emit(value, identifier(str(item)))

    # Nodes

    def argument(self, value: Any) -> Any:
        """An argument of a node: what the node it names stands for."""
        if isinstance(value, self.torch.fx.Node):
            return value if value in self.graphs else self.values[value]
        if isinstance(value, (list, tuple)):
            return [self.argument(item) for item in value]
        if isinstance(value, dict):
            return {key: self.argument(item) for key, item in value.items()}
        if isinstance(value, slice):
            return slice(*(self.argument(item) for item in (value.start, value.stop, value.step)))
        return value

    def node(self, node: Any) -> None:
        """Import one node, and note what became of it."""
        call, out = call_of(node), self.out
        before = out.span, out.used, out.cost
        self.lines += 1
        text = node.format_node() or str(node)
        if out.span is None:
            out.span = Span(Source("<exported>", text, self.lines), 0, len(text))
        out.used, out.cost = [], 0.0
        self._imported(node, call)
        out.span = before[0]
        out.used, out.cost = before[1] + (out.used if before[0] is not None else []), before[2]

    def _imported(self, node: Any, call: Call) -> None:
        if call.target is operator.getitem:
            self.values[node] = self._part(call)
            return
        if call.operator == "with_effects":
            _, target, *rest = call.args
            inner = call.value[1] if len(call.value) == 2 else call.value[1:]
            call = Call(call.name, target, tuple(rest), call.kwargs, inner, [])
            self.values[node] = [None, self._value(call)]
        else:
            self.values[node] = self._value(call)

    def _part(self, call: Call) -> Any:
        whole, index = self.argument(call.args[0]), call.args[1]
        if isinstance(whole, (list, tuple)):
            return whole[index]
        return self.out.emit(TupleGetItem(whole, index), call.name)

    def _value(self, call: Call) -> Any:
        """What a call stands for."""
        if call.operator.startswith(CHECKS):  # one with an effect, whose token is a result
            self._note(call, "known", "a check of PyTorch's, which is left out")
            return None
        if isinstance(call.value, (self.torch.SymInt, self.torch.SymFloat, self.torch.SymBool)):
            return self._number(call)
        if isinstance(call.value, (int, float, bool)) and call.target not in TABLE:
            return call.value
        found: list[Any] = []
        why = self.out.attempt(lambda: found.append(self.by_table(call)))
        if why is None:
            how: How = "native" if len(self.out.used) == 1 else "composed" if self.out.used else "known"
            if "call_py" in self.out.used:
                how, why = "python", "a node of its graph has no native form"
            self._note(call, how, why or "")
            return found[0]
        if not hasattr(call.target, "_opname"):
            raise ModelError(f"{call.name}: {call.operator} has no form: {why}", code="W977", span=self.out.span)
        result = self._by_reference(call)
        self.failed.append(call.target)
        self._note(call, "python", why)
        return result

    def _number(self, call: Call) -> Any:
        try:
            return number_of(self, call)
        except Unsupported as error:
            raise ModelError(f"{call.name}: {error} has no form", code="W977", span=self.out.span) from None

    def _note(self, call: Call, how: How, why: str) -> None:
        used = tuple(dict.fromkeys(self.out.used))
        self.rows.append(ImportedNode(call.name, str(call.target), how, used, why, self.out.cost))

    def by_table(self, call: Call) -> Any:
        """The expression that the row of a call gives."""
        function = TABLE.get(call.operator)
        if function is None:
            raise Unsupported(reason(call.operator) or "there is no row for the operator")
        try:
            found = function(FxNode(self, call), *self.argument(list(call.args)), **self.argument(dict(call.kwargs)))
        except TypeError as error:
            raise Unsupported(f"arguments that the row does not take: {error}") from None
        return self._bound(call, found, call.value)

    def _bound(self, call: Call, found: Any, value: Any) -> Any:
        """A result bound to a name, with the sizes that PyTorch has named."""
        if isinstance(found, (list, tuple)):
            values = value if isinstance(value, (list, tuple)) else [None] * len(found)
            return [
                None if item is None else self._bound(call, item, values[at] if at < len(values) else None)
                for at, item in enumerate(found)
            ]
        if not isinstance(found, Expr) or isinstance(found, Constant):
            return found
        var = found if isinstance(found, Var) else self.out.emit(found, call.name)
        return self.types.named(var, value, call.name)

    def _by_reference(self, call: Call) -> Any:
        """A call of the operator in PyTorch."""
        operands: list[Expr] = []

        def operand(value: Any) -> int | None:
            if not isinstance(value, self.torch.fx.Node):
                return None
            found = self.values.get(value)
            if isinstance(found, (list, tuple)) or found is None:
                raise ModelError(f"{call.name}: an argument that is a list of results has no text", code="W977")
            operands.append(found if isinstance(found, Expr) else PrimValue(found))
            return len(operands) - 1

        data = call_data(call.target, call.args, call.kwargs, operand)
        ty = self.types.type_of(call.value)
        var = self.out.emit(R.call_py(FUNCTION, (StringImm(data), *operands), out_ty=ty), call.name)
        if not isinstance(ty, TupleType):
            return self.types.named(var, call.value, call.name)
        parts = [self.out.emit(TupleGetItem(var, index), call.name) for index in range(len(ty.fields))]
        return [self.types.named(part, value, part.name) for part, value in zip(parts, call.value, strict=True)]
