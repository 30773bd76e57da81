"""Reading tensor-level calls: intrinsics, casts, typed constants, calls of functions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from weft import dtypes
from weft.errors import WeftError
from weft.ir.graph import Expr, GlobalVar, StringImm
from weft.ir.kernel.intrinsics import INTRINSICS
from weft.ir.kernel.prim import as_expr, cast, const, intrinsic, lane_count
from weft.ir.node import EMPTY, FrozenMap
from weft.ir.op import OPS
from weft.ir.tensor import (
    Binary,
    Buffer,
    BufferLoad,
    Cast,
    FloatImm,
    Let,
    PrimCall,
    PrimExpr,
    PrimFunc,
    PrimVar,
    Ramp,
    Select,
)
from weft.ir.types import PrimType
from weft.script.forms.defaults import (
    DTYPE_FIRST,
    DTYPE_LAST,
    DTYPE_MAYBE_FIRST,
    DTYPE_OF_ARGUMENT,
    OLD_OPERATORS,
    RESULT_DTYPES,
    is_device_name,
)
from weft.script.forms.syntax import BUFFERS, CALLED_KINDS, CLAUSES, LOOPS, NAMES, SCALARS, SCOPES, UNARY
from weft.script.reader.base import Scope, describe
from weft.script.reader.tensor.scalar import ScalarReader

__all__ = ["IntrinsicReader"]


_MASKS: dict[Any, str] = {1: "r", 2: "w", 3: "rw"}


class IntrinsicReader(ScalarReader):
    """Reads calls inside scalar expressions."""

    def call_named(self, name: str, tree: ast.Call) -> Any:
        """A call of a name of T."""
        method = self._TENSOR_FORMS.get(name)
        if method is not None:
            return method(self, tree)
        if name in CALLED_KINDS:
            return self._operator_call(CALLED_KINDS[name], name, tree)
        if name in SCALARS:
            return self._scalar_form(name, tree)
        dtype = self.dtype_name(name)
        if dtype is not None:
            return self._typed(dtype, tree)
        if name.startswith("T."):
            short = name[2:]
            if short in INTRINSICS:
                return self._intrinsic(short, tree)
            if name in BUFFERS or name in LOOPS or name in SCOPES or name in CLAUSES:
                raise self.fail("W114", f"`{name}` cannot stand inside an expression", tree)
            if is_device_name(short):
                return self._opaque(short, tree)
        return super().call_named(name, tree)

    def unknown(self, name: str, tree: ast.AST) -> WeftError:
        """The error for a name that I, R or T does not have, or has for graph functions only."""
        if name.startswith("R.") and (name[2:] in OPS or name in NAMES):
            hint = self.instead_of(name)
            return self.fail("W115", f"`{name}` is graph-level: it belongs in an @R.function", tree, hint)
        return super().unknown(name, tree)

    def instead_of(self, name: str) -> str | None:
        """The scalar function of that name."""
        short = name.rpartition(".")[2]
        return f"did you mean `T.{short}`?" if short in INTRINSICS or f"T.{short}" in NAMES else None

    def extra_names(self, root: str) -> list[str]:
        """Intrinsics, for suggestions."""
        return [f"T.{name}" for name in INTRINSICS] if root == "T" else []

    def _operator_call(self, kind: str, name: str, tree: ast.Call) -> PrimExpr:
        """`T.max(a, b)` and the like."""
        values = self._values(tree)
        if kind in UNARY:
            if len(values) != 1:
                raise self.fail("W113", f"{name} takes 1 argument, got {len(values)}", tree)
            return self.combine_unary(kind, values[0], tree)
        if len(values) != 2:
            raise self.fail("W113", f"{name} takes 2 arguments, got {len(values)}", tree)
        left, right = (self._side(value, tree) for value in values)
        if not isinstance(left, PrimExpr) and not isinstance(right, PrimExpr):
            left = as_expr(left)
        if kind == "div":  # T.Div divides integers too, as C does
            made = self._common(left, right, tree)
            return Binary("div", *made, span=self.span(tree))
        return self.combine(kind, left, right, tree)

    def _values(self, tree: ast.Call, keywords: Sequence[str] = ()) -> list[Any]:
        for keyword in tree.keywords:
            if keyword.arg not in keywords and keyword.arg != "span":
                raise self.fail("W113", f"`{ast.unparse(tree.func)}` has no argument '{keyword.arg}'", keyword)
        return [self.value(argument) for argument in self._spread(tree)]

    def _scalar_form(self, name: str, tree: ast.Call) -> PrimExpr:
        values = self.bind(SCALARS[name], tree)
        return SCALARS[name].build(**values, span=self.span(tree))  # type: ignore[misc]

    def read_lanes(self, tree: ast.expr) -> int:
        """A number of lanes: a constant, or a multiple of `T.vscale()`."""
        value = self.value(tree)
        lanes = self.fold(lambda: lane_count(value), tree)
        if lanes is None or isinstance(value, bool):
            what = repr(value) if isinstance(value, (bool, float, str)) else describe(value)
            hint = "a constant, or a multiple of T.vscale()"
            raise self.fail("W114", f"expected an integer, got {what}", tree, hint)
        return lanes

    def _cast(self, tree: ast.Call) -> PrimExpr:
        """`T.Cast("float32", x)`; `T.cast(x, "float32")` is the same."""
        named = {keyword.arg: self.value(keyword.value) for keyword in tree.keywords}
        values = [self.value(argument) for argument in self._spread(tree)]
        if "dtype" in named:
            values.insert(0, named.pop("dtype"))
        values.extend(named.values())
        if len(values) == 2 and isinstance(values[1], str):
            values.reverse()
        if len(values) != 2 or not isinstance(values[0], (str, np.dtype)):
            raise self.fail("W113", "T.Cast takes a dtype and a value", tree, 'T.Cast("float32", value)')
        dtype = self.fold(lambda: dtypes.check_dtype(values[0]), tree)
        return Cast(dtype, self.as_prim(values[1], tree), span=self.span(tree))

    def _select(self, tree: ast.Call) -> PrimExpr:
        values = self._values(tree)
        if len(values) != 3:
            raise self.fail(
                "W113",
                f"T.Select takes 3 arguments, got {len(values)}",
                tree,
                "T.Select(condition, true_value, false_value)",
            )
        sides = [value.dtype for value in values[1:] if isinstance(value, PrimExpr)]
        if len(set(sides)) > 1:
            raise self.fail("W123", f"T.Select chooses between a {sides[0]} and a {sides[1]}", tree, "use T.Cast")
        a, b = self._common(values[1], values[2], tree)
        return Select(self._as_bool(self.as_prim(values[0], tree), tree), a, b, span=self.span(tree))

    def _if_then_else(self, tree: ast.Call) -> PrimExpr:
        values = self._values(tree, ("dtype",))
        if len(values) != 3:
            raise self.fail("W113", f"T.if_then_else takes 3 arguments, got {len(values)}", tree)
        a, b = self._common(values[1], values[2], tree)
        test = self._as_bool(self.as_prim(values[0], tree), tree)
        return self._stated(PrimCall("if_then_else", (test, a, b), a.dtype, span=self.span(tree)), tree)

    def _stated(self, value: PrimExpr, tree: ast.Call) -> PrimExpr:
        """A value whose call may state the dtype that it has anyway, as texts of the field once did."""
        stated = [keyword.value for keyword in tree.keywords if keyword.arg == "dtype"]
        if not stated:
            return value
        dtype = self.fold(lambda: dtypes.check_dtype(self.constant(stated[0])), stated[0])
        if dtype != value.dtype:
            raise self.fail("W123", f"the value is {value.dtype}, not {dtype}", stated[0])
        return value

    def _let(self, tree: ast.Call) -> PrimExpr:
        values = self.bind(SCALARS["T.Let"], tree)
        where = values["where"]
        bindings: list[tuple[PrimVar, PrimExpr]] = []
        saved = self.scope
        try:
            for key, item in zip(where.keys, where.values, strict=True):
                value = self.prim(item)
                var = PrimVar(key.id, value.dtype, span=self.span(key))
                bindings.append((var, value))
                self.scope = Scope(self.scope)
                self.scope.names[key.id] = var
            result = self.prim(values["body"])
        finally:
            self.scope = saved
        for var, value in reversed(bindings):
            result = Let(var, value, result, span=self.span(tree))
        return result

    def read_where(self, tree: ast.expr) -> ast.Dict:
        """The bindings of T.Let: `{v: value}`."""
        if not isinstance(tree, ast.Dict) or not all(isinstance(key, ast.Name) for key in tree.keys):
            raise self.fail("W114", "expected {v: value}", tree)
        return tree

    def _typed(self, dtype: str, tree: ast.Call) -> PrimExpr:
        """`T.float32(1)`: a constant of a dtype; of an expression, a cast."""
        if len(tree.args) != 1 or tree.keywords:
            hint = f"a symbol is declared by an assignment: `n = T.{dtype}()`" if not tree.args else None
            raise self.fail("W113", f"T.{dtype} takes 1 argument, got {len(tree.args)}", tree, hint)
        value = self.value(tree.args[0])
        return self.typed_value(dtype, value, tree)

    def typed_value(self, dtype: str, value: Any, tree: ast.AST) -> PrimExpr:
        """A constant of a dtype, or a cast of an expression."""
        if isinstance(value, str) and dtypes.is_float(dtype):
            return FloatImm(self.float_text(value, tree), dtype, span=self.span(tree))
        if isinstance(value, (bool, int, float)):
            return self.fold(lambda: const(value, dtype), tree)
        if isinstance(value, str):
            raise self.fail("W114", f"expected a {dtype} value, got the string {value!r}", tree)
        return self.fold(lambda: cast(dtype, self.as_prim(value, tree)), tree)

    def float_text(self, text: str, tree: ast.AST) -> float:
        """A float written as a string: nan, inf, -inf."""
        try:
            return float(text)
        except ValueError:
            raise self.fail("W152", f"{text!r} is not a number", tree) from None

    def _limit(self, name: str) -> Callable[[ast.Call], PrimExpr]:
        def read(tree: ast.Call) -> PrimExpr:
            values = self._values(tree)
            if len(values) != 1:
                raise self.fail("W113", f"{name} takes a dtype", tree)
            dtype = self.fold(lambda: dtypes.check_dtype(values[0]), tree)
            if name == "T.infinity" and not dtypes.is_float(dtype):
                raise self.fail("W123", f"{dtype} has no infinity", tree, "T.max_value")
            if name == "T.infinity":
                return FloatImm(float("inf"), dtype, span=self.span(tree))
            bound = dtypes.min_value(dtype) if name == "T.min_value" else dtypes.max_value(dtype)
            return self.fold(lambda: const(bound, dtype), tree)

        return read

    def _infinity(self, tree: ast.Call) -> PrimExpr:
        return self._limit("T.infinity")(tree)

    def _min_value(self, tree: ast.Call) -> PrimExpr:
        return self._limit("T.min_value")(tree)

    def _max_value(self, tree: ast.Call) -> PrimExpr:
        return self._limit("T.max_value")(tree)

    def _ceildiv_call(self, tree: ast.Call) -> Any:
        values = self._values(tree)
        if len(values) != 2:
            raise self.fail("W113", f"T.ceildiv takes 2 arguments, got {len(values)}", tree)
        return self._ceildiv(values[0], values[1], tree)

    def _intrinsic(self, name: str, tree: ast.Call) -> PrimExpr:
        entry = INTRINSICS[name]
        if entry.rule == "given":
            return self._given(name, tree)
        values = [self._side(value, tree) for value in self._values(tree, ("dtype",))]
        if entry.arity >= 0 and len(values) != entry.arity:
            many = "s" if entry.arity != 1 else ""
            raise self.fail("W113", f"T.{name} takes {entry.arity} argument{many}, got {len(values)}", tree)
        return self._stated(self.fold(lambda: intrinsic(name, *values, span=self.span(tree)), tree), tree)

    def _given(self, name: str, tree: ast.Call) -> PrimExpr:
        """A call that states its dtype: first, by keyword, or the usual one of that intrinsic."""
        masked = self._masked_load(tree) if name == "masked_load" else None
        if masked is not None:
            return masked
        stated = [keyword.value for keyword in tree.keywords if keyword.arg == "dtype"]
        attrs = [self.read_literal(keyword.value) for keyword in tree.keywords if keyword.arg == "attrs"]
        values = self._values(tree, ("dtype", "attrs"))
        if stated:
            dtype = self._dtype_of(self.constant(stated[0]), stated[0])
        elif name in DTYPE_FIRST:
            if not values or not isinstance(values[0], (str, type)):
                raise self.fail(
                    "W113", f"T.{name} takes the dtype of its result first", tree, f'T.{name}("float32", ...)'
                )
            dtype = self._dtype_of(values[0], tree)
            values = values[1:]
        elif name in DTYPE_MAYBE_FIRST and values and _is_dtype(values[0]):
            dtype = self._dtype_of(values[0], tree)
            values = values[1:]
        elif name in DTYPE_LAST and len(values) == DTYPE_LAST[name] + 1 and _is_dtype(values[-1]):
            dtype = self._dtype_of(values[-1], tree)
            values = values[:-1]
        elif name in DTYPE_OF_ARGUMENT and len(values) > DTYPE_OF_ARGUMENT[name]:
            dtype = self.as_prim(values[DTYPE_OF_ARGUMENT[name]], tree).dtype
        else:
            dtype = RESULT_DTYPES.get(name, "void")
        args = tuple(self._call_argument(value, tree) for value in values)
        if name == "reinterpret":
            self._check_reinterpret(args, dtype, tree)
        return PrimCall(name, args, dtype, attrs[0] if attrs else EMPTY, span=self.span(tree))

    def _masked_load(self, tree: ast.Call) -> PrimExpr | None:
        """`T.masked_load(dtype, A, *indices, mask)` as a load with a predicate, or None where A is a pointer."""
        source = self.value(tree.args[1]) if len(tree.args) > 3 and not tree.keywords else None
        if not isinstance(source, Buffer):
            return None
        indices, mask = self.masked_indices(source, tree.args[2:], tree)
        return BufferLoad(source, indices, mask, span=self.span(tree)) if indices else None

    def masked_indices(
        self, buffer: Buffer, trees: Sequence[ast.expr], tree: ast.AST
    ) -> tuple[tuple[PrimExpr, ...], PrimExpr]:
        """The indices before a mask, and the mask; no indices where they are no vector."""
        *parts, mask = [self.prim(item) for item in trees]
        if len(parts) != buffer.ndim:
            raise self.fail("W121", f"'{buffer.name}' has {buffer.ndim} dimensions, got {len(parts)} indices", tree)
        return (tuple(parts) if dtypes.lanes(parts[-1].dtype) != 1 else ()), self._as_bool(mask, tree)

    def _check_reinterpret(self, args: tuple[Expr, ...], dtype: str, tree: ast.AST) -> None:
        """W123: bits are read as a value of the same size."""
        if len(args) != 1:
            raise self.fail("W113", "T.reinterpret takes a dtype and a value", tree)
        given = args[0].dtype if isinstance(args[0], PrimExpr) else "handle"
        sizes = [dtypes.bits(name) * dtypes.lanes(name) for name in (dtype, given) if name not in ("handle", "void")]
        if len(set(sizes)) > 1:
            raise self.fail("W123", f"the bits of {given} are not those of a {dtype}", tree)

    def _dtype_of(self, value: Any, tree: ast.AST) -> str:
        """A stated dtype; the empty one says that there is no result."""
        return "void" if value == "" else self.fold(lambda: dtypes.check_dtype(value), tree)

    def read_operand(self, tree: ast.expr) -> Expr:
        """An argument of a call: a scalar, the address of a buffer, or a string."""
        return self._call_argument(self.value(tree), tree)

    def _call_argument(self, value: Any, tree: ast.AST) -> Expr:
        if isinstance(value, Buffer) and not (value.shape in ((1,), ()) and value.name in self.scalars):
            return self._data_of(value, tree)
        if isinstance(value, str):
            return StringImm(value, span=self.span(tree))
        if isinstance(value, Expr):
            return value
        return self.as_prim(value, tree)

    def _opaque(self, name: str, tree: ast.Call) -> PrimExpr:
        """An intrinsic of some device: kept as it is written, by the name that all releases understand."""
        return self._given(OLD_OPERATORS.get(name, name), tree)

    def _call_intrin(self, tree: ast.Call) -> PrimExpr:
        values = self.bind(SCALARS["T.call_intrin"], tree)
        op = self.constant(values["op"])
        if not isinstance(op, str):
            raise self.fail("W114", "the intrinsic is named by a string", tree)
        op = op.removeprefix("tirx.").removeprefix("tir.")  # the namespaces of operators in other spellings
        op = OLD_OPERATORS.get(op, op)
        return PrimCall(op, values["args"], values["dtype"], values["attrs"], span=self.span(tree))

    def _comm_reducer(self, tree: ast.Call) -> PrimExpr:
        """`T.comm_reducer(lambda x, y: x + y, [identity])`: a reduction as text, with its identities."""
        if len(tree.args) != 2 or tree.keywords:
            raise self.fail("W113", "T.comm_reducer takes a function and its identities", tree)
        combine = tree.args[0]
        text = ast.unparse(combine) if isinstance(combine, ast.Lambda) else self.constant(combine)
        if not isinstance(text, str):
            raise self.fail("W114", "expected a lambda or its text", combine)
        identities = self.read_prims(tree.args[1])
        dtype = identities[0].dtype if identities else "void"
        return PrimCall("comm_reducer", (StringImm(text), *identities), dtype, span=self.span(tree))

    def call_other(self, tree: ast.Call) -> Any:
        """A call of a function of the module, or a method of a buffer."""
        name = self.global_name(tree.func)
        if name is not None:
            callee = GlobalVar(name, self.span(tree.func))
            stated = [keyword.value for keyword in tree.keywords if keyword.arg == "dtype"]
            values = self._values(tree, ("dtype",))
            dtype = self.constant(stated[0]) if stated else self.module.return_dtype(name)
            return PrimCall(
                callee, tuple(self._call_argument(value, tree) for value in values), dtype, span=self.span(tree)
            )
        if isinstance(tree.func, ast.Attribute):
            base = self.value(tree.func.value)
            return self._method(base, tree.func.attr, tree)
        if isinstance(tree.func, ast.Name):
            found = self.lookup(tree.func.id, tree.func)
            if isinstance(found, PrimFunc):
                callee = GlobalVar(self.module.adopt(found, self.span(tree.func)), self.span(tree.func))
                dtype = found.ret_type.dtype if isinstance(found.ret_type, PrimType) else "void"
                args = tuple(self._call_argument(value, tree) for value in self._values(tree))
                return PrimCall(callee, args, dtype, span=self.span(tree))
        return super().call_other(tree)

    def _method(self, base: Any, name: str, tree: ast.Call) -> Any:
        if isinstance(base, Buffer):
            if name == "vload":
                return self._vload(base, tree)
            if name == "access_ptr":
                return self._access_ptr(base, tree)
        if isinstance(base, PrimExpr) and name == "astype":
            values = self._values(tree)
            if len(values) == 1:
                return self.fold(lambda: cast(dtypes.check_dtype(values[0]), base), tree)
        raise self.fail("W115", f"{describe(base)} has no method '{name}' in a script", tree.func)

    def _access_ptr(self, buffer: Buffer, tree: ast.Call) -> PrimExpr:
        """`A.access_ptr(access_mask, ptr_type, content_lanes, offset, extent)`: the offset counts elements.

        The rest only tells other compilers what is done with the pointer.
        """
        names = ("access_mask", "ptr_type", "content_lanes", "offset", "extent")
        values = dict(zip(names, self._values(tree, names), strict=False))
        values.update({word.arg: self.value(word.value) for word in tree.keywords if word.arg in names})
        mask = values.pop("access_mask", None)
        mask = _MASKS.get(mask, mask)
        if len(tree.args) > len(names) or not isinstance(mask, str) or not mask or set(mask) - {"r", "w"}:
            raise self.fail("W113", "access_ptr takes a mask of `r` and `w` first", tree, 'A.access_ptr("rw")')
        offset = values.pop("offset", 0)
        plain = {"ptr_type": "handle", "content_lanes": 1, "extent": None}
        told = {key: value for key, value in values.items() if value != plain[key]}
        attrs = FrozenMap({key: self.attribute_value(value, tree) for key, value in told.items()})  # type: ignore[arg-type]
        args = (self._data_of(buffer, tree), StringImm(mask, span=self.span(tree)))
        pointer = PrimCall("access_ptr", args, "handle", attrs, span=self.span(tree))
        if isinstance(offset, int) and offset == 0:
            return pointer
        size = dtypes.bits(buffer.dtype) * dtypes.lanes(buffer.dtype)
        if size % 8:
            raise self.fail("W115", f"an offset into {buffer.dtype} may be inside a byte", tree)
        moved = self.binary("mul", self._side(offset, tree), size // 8, tree)
        args = (pointer, self.as_prim(moved, tree))
        return PrimCall("handle_add_byte_offset", args, "handle", span=self.span(tree))

    def _vload(self, buffer: Buffer, tree: ast.Call) -> PrimExpr:
        values = self._values(tree, ("dtype", "predicate"))
        indices = values[0] if values and isinstance(values[0], (tuple, list)) else values[:1]
        stated = [self.constant(keyword.value) for keyword in tree.keywords if keyword.arg == "dtype"] or values[1:2]
        lanes = dtypes.lanes(self._dtype_of(stated[0], tree)) if stated else 1
        made = [self.as_prim(index, tree) for index in indices]
        if lanes > 1:
            made[-1] = Ramp(made[-1], const(1, made[-1].dtype), lanes)
        return BufferLoad(buffer, tuple(made), self._predicate(tree), span=self.span(tree))

    def _predicate(self, tree: ast.Call) -> PrimExpr | None:
        found = [keyword.value for keyword in tree.keywords if keyword.arg == "predicate"]
        return self.prim(found[0]) if found else None

    def _immediate(self, tree: ast.Call) -> PrimExpr:
        """`T.IntImm("int4", 3)`, `T.FloatImm("float64", 1e300)`: a constant by the dtype as a string."""
        values = self._values(tree)
        if len(values) != 2 or not _is_dtype(values[0]) or not isinstance(values[1], (int, float)):
            raise self.fail("W113", "a constant takes a dtype and a number", tree)
        return self.fold(lambda: const(values[1], dtypes.check_dtype(values[0])), tree)

    def attribute_of(self, base: Any, tree: ast.Attribute) -> Any:
        """`A.data`, `A.shape`, `A.dtype`, `x.dtype` and the like."""
        if isinstance(base, Buffer):
            if tree.attr == "data":
                pointer = base.data is not None and not isinstance(base.data, PrimCall)
                return base.data if pointer else self._data_of(base, tree)
            if tree.attr == "source" and base.name in self.scalars:
                return base  # where a local scalar stands for what it holds
            if tree.attr == "elem_offset" and base.elem_offset is None:
                return 0  # a buffer that says nothing starts at its pointer
            if tree.attr in ("shape", "dtype", "ndim", "strides", "elem_offset", "scope", "name"):
                return getattr(base, tree.attr)
        if isinstance(base, PrimExpr) and tree.attr == "dtype":
            return base.dtype
        return super().attribute_of(base, tree)

    _TENSOR_FORMS: ClassVar[dict[str, Callable[[Any, ast.Call], Any]]] = {}


def _is_dtype(value: Any) -> bool:
    try:
        return isinstance(value, str) and bool(dtypes.check_dtype(value))
    except WeftError:
        return False


IntrinsicReader._TENSOR_FORMS = {
    "T.Cast": IntrinsicReader._cast,
    "T.Select": IntrinsicReader._select,
    "T.IntImm": IntrinsicReader._immediate,
    "T.FloatImm": IntrinsicReader._immediate,
    "T.if_then_else": IntrinsicReader._if_then_else,
    "T.Let": IntrinsicReader._let,
    "T.infinity": IntrinsicReader._infinity,
    "T.min_value": IntrinsicReader._min_value,
    "T.max_value": IntrinsicReader._max_value,
    "T.ceildiv": IntrinsicReader._ceildiv_call,
    "T.call_intrin": IntrinsicReader._call_intrin,
    "T.comm_reducer": IntrinsicReader._comm_reducer,
}
