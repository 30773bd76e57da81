"""A graph of ATen operators as a module: placeholders are parameters or constants, nodes bindings in order.

A node is imported by the row of its operator, else it is a Python function that runs in PyTorch. Sizes that PyTorch
calls `s0` are symbols; what it computes of them is computed while importing.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from weft.errors import ModelError, Source, Span, WeftError
from weft.frontend.emitter import Emitter, Unsupported, identifier
from weft.frontend.extras import require
from weft.frontend.report import How, ImportedNode, ImportReport
from weft.frontend.torch.node import Node
from weft.frontend.torch.reference import FUNCTION, call_data
from weft.frontend.torch.table import TABLE
from weft.ir.dim import Dim, DimExpr, parse_dim
from weft.ir.graph import Constant, Expr, PrimValue, StringImm, Tuple, TupleGetItem, Var
from weft.ir.module import IRModule
from weft.ir.types import AnyType, PrimType, TensorType, TupleType, Type
from weft.script import relax as R

__all__ = ["Importer"]

_PYTHON: dict[Any, Callable[..., Any]] = {
    operator.add: operator.add, operator.sub: operator.sub, operator.mul: operator.mul, operator.neg: operator.neg,
    operator.floordiv: operator.floordiv, operator.mod: operator.mod,
}  # fmt: skip
"""Functions of Python that graphs apply to sizes."""
_DTYPES = {"half": "float16", "float": "float32", "double": "float64", "long": "int64", "int": "int32"}


def dtype_name(dtype: Any) -> str:
    """The dtype of a torch.dtype.

    >>> dtype_name("torch.float32")
    'float32'
    """
    name = str(dtype).removeprefix("torch.")
    return _DTYPES.get(name, name)


class Importer:
    """One import: what the nodes stand for, and what became of them."""

    def __init__(self) -> None:
        self.torch = require("torch", "torch")
        self.out = Emitter()
        self.values: dict[Any, Any] = {}  # node -> expression, dimension, number, or a list of them
        self.rows: list[ImportedNode] = []
        self.lines = 0

    def run(
        self, graph: Any, placeholder: Callable[[Any], np.ndarray | None], outputs: Callable[[Any], Sequence[Any]],
        attrs: Mapping[str, Any] | None = None, attribute: Callable[[str], Any] | None = None,
    ) -> tuple[IRModule, ImportReport]:  # fmt: skip
        """The module of a graph; `placeholder` gives the array of one that is no parameter of the function."""
        params: list[Var] = []
        results: list[Expr] = []
        for node in graph.nodes:
            if node.op == "placeholder":
                array = placeholder(node)
                if array is not None:
                    self.values[node] = Constant(array)
                else:
                    params.extend(self._parameter(node))
        with self.out.builder.function("main", params, attrs=attrs):
            self.out.reserve(params)
            for node in graph.nodes:
                if node.op == "get_attr" and attribute is not None:
                    self.values[node] = Constant(attribute(node.target))
                elif node.op == "call_function":
                    self._node(node)
                elif node.op == "output":
                    results = [self._result(item) for item in outputs(node)]
            body = results[0] if len(results) == 1 else Tuple(tuple(results))
            self.out.builder.emit_func_output(body)
        return self.out.builder.get(), ImportReport(tuple(self.rows))

    def _parameter(self, node: Any) -> list[Var]:
        value = node.meta["val"]
        if isinstance(value, self.torch.SymInt):
            dim = self.dim(value)
            self.values[node] = dim
            return [self.out.parameter(node.name, PrimType("int64", dim))]
        if not isinstance(value, self.torch.Tensor):
            self.values[node] = value
            return []
        var = self.out.parameter(node.name, self.type_of(value))
        self.values[node] = var
        return [var]

    def _result(self, item: Any) -> Expr:
        value = self.argument(item)
        if isinstance(value, (int, DimExpr)):
            return PrimValue(value)
        if value is None:
            raise ModelError("a result that is None has no form", code="W977")
        return value if isinstance(value, Var) else self.out.builder.emit(value, identifier(str(item)))

    # Types

    def dim(self, size: Any) -> Dim:
        """A size of PyTorch's: a number, or an expression over its symbols."""
        if isinstance(size, int):
            return size
        node = getattr(size, "node", None)
        if node is not None and node.maybe_as_int() is not None:
            return node.maybe_as_int()
        text = str(size).replace("Max(", "max(").replace("Min(", "min(")
        try:
            return parse_dim(text)
        except WeftError:
            raise Unsupported(f"the size {text}") from None

    def type_of(self, value: Any) -> Type:
        """The type of a value that PyTorch has deduced."""
        if isinstance(value, (list, tuple)):
            return TupleType(tuple(map(self.type_of, value)))
        if isinstance(value, self.torch.Tensor):
            try:
                return TensorType(tuple(self.dim(size) for size in value.shape), dtype_name(value.dtype))
            except (WeftError, Unsupported):
                return TensorType(None, dtype_name(value.dtype), value.ndim)
        return AnyType()

    def result_type(self, node: Any) -> Type:
        """The type that PyTorch gives a node."""
        return self.type_of(node.meta.get("val"))

    # Nodes

    def argument(self, value: Any) -> Any:
        """An argument of a node: what the node it names stands for."""
        if isinstance(value, self.torch.fx.Node):
            return self.values[value]
        if isinstance(value, (list, tuple)):
            return [self.argument(item) for item in value]
        if isinstance(value, slice):
            return slice(*(self.argument(item) for item in (value.start, value.stop, value.step)))
        return value

    def _node(self, node: Any) -> None:
        target, out = node.target, self.out
        self.lines += 1
        text = node.format_node() or str(node)
        out.span, out.used, out.cost = Span(Source("<exported>", text, self.lines), 0, len(text)), [], 0.0
        if self._known(node):
            return
        how: How = "native"
        name = getattr(target, "_opname", str(target))
        why = out.attempt(lambda: self._by_table(node, name))
        if why is not None:
            how = "python"
            self._by_reference(node)
        elif len(out.used) != 1:
            how = "composed" if out.used else "known"
        self.rows.append(ImportedNode(node.name, str(target), how, tuple(dict.fromkeys(out.used)), why or "", out.cost))

    def _known(self, node: Any) -> bool:
        """What graphs say of sizes, and the parts of results."""
        target = node.target
        if target is operator.getitem:
            whole, index = self.argument(node.args[0]), node.args[1]
            if isinstance(whole, (list, tuple)):
                self.values[node] = whole[index]
            else:
                self.values[node] = self.out.emit(TupleGetItem(whole, index), node.name)
            return True
        if target in _PYTHON:
            self.values[node] = _PYTHON[target](*(self.argument(item) for item in node.args))
            return True
        name = getattr(target, "_opname", "")
        if name == "sym_size" or isinstance(node.meta.get("val"), self.torch.SymInt):
            if len(node.args) == 2 and name == "sym_size":
                ty = self.out.type(self.argument(node.args[0]))
                if isinstance(ty, TensorType) and ty.dims is not None:
                    self.values[node] = ty.dims[node.args[1]]
                    return True
            self.values[node] = self.dim(node.meta["val"])
            return True
        if name.startswith(("_assert", "sym_constrain", "_guards")) or "assert" in str(target):
            self.values[node] = None
            return True
        return target in (operator.eq, operator.ge, operator.le, operator.gt, operator.lt, operator.ne) and (
            self.values.setdefault(node, True) is not None
        )

    def _by_table(self, node: Any, name: str) -> None:
        function = TABLE.get(name)
        if function is None:
            raise Unsupported("there is no row for the operator")
        try:
            found = function(Node(self, node), *self.argument(list(node.args)),
                             **{key: self.argument(item) for key, item in node.kwargs.items()})  # fmt: skip
        except TypeError as error:
            raise Unsupported(f"arguments that the row does not take: {error}") from None
        self.values[node] = self._bound(node, found)

    def _bound(self, node: Any, found: Any) -> Any:
        if isinstance(found, (list, tuple)):
            return [None if item is None else self._bound(node, item) for item in found]
        if not isinstance(found, Expr) or isinstance(found, (Var, Constant)):
            return found
        return self.out.emit(found, node.name)

    def _by_reference(self, node: Any) -> None:
        """A call of the operator in PyTorch."""
        operands: list[Expr] = []

        def operand(value: Any) -> int | None:
            if not isinstance(value, self.torch.fx.Node):
                return None
            found = self.values[value]
            if isinstance(found, (list, tuple)) or found is None:
                raise ModelError(f"{node.name}: an argument that is a list of results has no text", code="W977")
            operands.append(found if isinstance(found, Expr) else PrimValue(found))
            return len(operands) - 1

        data = call_data(node.target, node.args, node.kwargs, operand)
        ty = self.result_type(node)
        var = self.out.emit(R.call_py(FUNCTION, (StringImm(data), *operands), out_ty=ty), node.name)
        if isinstance(ty, TupleType):
            parts = [self.out.emit(TupleGetItem(var, index), node.name) for index in range(len(ty.fields))]
            self.values[node] = [self.out.named_result(part, part.name) for part in parts]
        else:
            self.values[node] = self.out.named_result(var, node.name)
