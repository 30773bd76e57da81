"""Type deduction: a table of shapes against NumPy, claims, calls, relations between types, operators of Python."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft.errors import DTypeError, ScriptError, ShapeError, WeftError
from weft.ir import te
from weft.ir.deduction.infer import TypeContext, check_claim, func_type, infer_type
from weft.ir.deduction.subtyping import common_base, dims_of, erase, is_base_of, match_types, type_text
from weft.ir.dim import Dim, Facts, evaluate, format_dim, free_symbols, symbol
from weft.ir.graph import (
    Call,
    Constant,
    ExternFunc,
    Function,
    GlobalVar,
    Op,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    Tuple,
    TupleGetItem,
    Var,
)
from weft.ir.kernel.prim_dim import buffer_symbols, dim_to_prim, kernel_signature, prim_to_dim
from weft.ir.op import get_op
from weft.ir.tensor import Buffer, Evaluate, IntImm, PrimFunc, PrimVar
from weft.ir.types import AnyType, FuncType, PrimType, ShapeType, TensorType, TupleType, Type, VDevice

n, m, k = symbol("n"), symbol("m"), symbol("k")


def tensor(*dims: Dim, dtype: str = "float32") -> TensorType:
    return TensorType(dims, dtype)


def var(*dims: Dim, dtype: str = "float32", name: str = "x") -> Var:
    return Var(name, tensor(*dims, dtype=dtype))


def deduced(name: str, *args: Any, **kwargs: Any) -> str:
    """The deduced shape (of each output) as text."""
    ty = infer_type(get_op(name).bind(args, kwargs))
    return "; ".join(shape_text(part) for part in (ty.fields if isinstance(ty, TupleType) else [ty]))


def shape_text(ty: Type) -> str:
    dims = dims_of(ty)
    return "?" if dims is None else ", ".join(format_dim(dim) for dim in dims)


A = np.zeros


# (operator, argument shapes, other arguments, deduced text, NumPy on arrays of those shapes)
TABLE: list[tuple[str, tuple[Any, ...], dict[str, Any], str, Callable[..., Any] | None]] = [
    ("exp", ((n, 4),), {}, "n, 4", np.exp),
    ("negative", ((),), {}, "", np.negative),
    ("add", ((n, 4), (n, 4)), {}, "n, 4", np.add),
    ("add", ((n, 4), (1, 4)), {}, "n, 4", np.add),
    ("add", ((n, 4), (4,)), {}, "n, 4", np.add),
    ("add", ((n, 4), (n, 1)), {}, "n, 4", np.add),
    ("add", ((n, 1), (1, m)), {}, "n, m", np.add),
    ("add", ((), (n,)), {}, "n", np.add),
    ("add", ((2, 1, n), (3, 1)), {}, "2, 3, n", np.add),
    ("add", ((2 * n, 4), (n + n, 1)), {}, "2 * n, 4", np.add),
    ("less", ((n,), (1,)), {}, "n", np.less),
    ("where", ((n, 1), (n, 4), (4,)), {}, "n, 4", None),
    ("flatten", ((n, 4),), {}, "4 * n", np.ravel),
    ("flatten", ((n, 2, 4),), {}, "8 * n", np.ravel),
    ("flatten", ((),), {}, "1", np.ravel),
    ("flatten", ((n, m),), {}, "m * n", np.ravel),
    ("flatten", ((n + 1, n - 1),), {}, "n ** 2 - 1", None),
    ("reshape", ((n, 4),), {"shape": (-1, 2)}, "2 * n, 2", lambda x: x.reshape(-1, 2)),
    ("reshape", ((n, 4),), {"shape": (2, -1)}, "2, 2 * n", lambda x: x.reshape(2, x.shape[0] * 2)),
    ("reshape", ((n, 4),), {"shape": (n, 2, 2)}, "n, 2, 2", lambda x: x.reshape(-1, 2, 2)),
    ("reshape", ((n, m, 6),), {"shape": (-1, 3)}, "2 * m * n, 3", lambda x: x.reshape(-1, 3)),
    ("reshape", ((n, m),), {"shape": (m, n)}, "m, n", None),
    ("reshape", ((2, 3),), {"shape": (-1,)}, "6", lambda x: x.reshape(-1)),
    ("permute_dims", ((n, 3, m),), {}, "m, 3, n", np.transpose),
    ("permute_dims", ((n, 3, m),), {"axes": [1, 2, 0]}, "3, m, n", lambda x: x.transpose(1, 2, 0)),
    ("expand_dims", ((n, 4),), {"axis": [0, -1]}, "1, n, 4, 1", lambda x: np.expand_dims(x, (0, -1))),
    ("squeeze", ((n, 1, 4, 1),), {}, "n, 4", None),
    ("squeeze", ((n, 1, 4, 1),), {"axis": [1]}, "n, 4, 1", lambda x: x.squeeze(1)),
    ("broadcast_to", ((1, 4),), {"shape": (n, 4)}, "n, 4", None),
    ("concat", ([(n, 4), (m, 4)],), {}, "m + n, 4", lambda a, b: np.concatenate([a, b])),
    ("concat", ([(n, 4), (n, 2)],), {"axis": 1}, "n, 6", lambda a, b: np.concatenate([a, b], 1)),
    ("concat", ([(n, 4), (3, 4), (n, 4)],), {}, "2 * n + 3, 4", lambda a, b, c: np.concatenate([a, b, c])),
    ("concat", ([(n,), (m,)],), {"axis": None}, "m + n", lambda a, b: np.concatenate([a, b], None)),
    ("stack", ([(n, 4), (n, 4)],), {"axis": 1}, "n, 2, 4", lambda a, b: np.stack([a, b], 1)),
    ("split", ((n, 6),), {"indices_or_sections": 3, "axis": 1}, "n, 2; n, 2; n, 2", lambda x: np.split(x, 3, 1)),
    ("split", ((2 * n,),), {"indices_or_sections": 2}, "n; n", lambda x: np.split(x, 2)),
    ("split", ((n,),), {"indices_or_sections": 2}, "(n + 1) // 2; n - (n + 1) // 2", lambda x: np.array_split(x, 2)),
    ("split", ((n + 5,),), {"indices_or_sections": [2, 5]}, "2; 3; n", lambda x: np.split(x, [2, 5])),
    ("split", ((n,),), {"indices_or_sections": [2]}, "min(n, 2); n - min(n, 2)", lambda x: np.split(x, [2])),
    (
        "strided_slice",
        ((n, 4),),
        dict(axes=[0], begin=[0], end=[1 << 62], strides=[2]),
        "(n + 1) // 2, 4",
        lambda x: x[::2],
    ),
    ("strided_slice", ((n + 4,),), dict(axes=[0], begin=[1], end=[-1]), "n + 2", lambda x: x[1:-1]),
    ("strided_slice", ((n,),), dict(axes=[0], begin=[1], end=[3]), "max(min(n - 1, 2), 0)", lambda x: x[1:3]),
    ("strided_slice", ((1,),), dict(axes=[0], begin=[n - 1], end=[2**63 - 1]), "max(min(2 - n, 1), 0)", None),
    ("strided_slice", ((n, 8),), dict(axes=[1], begin=[6], end=[1], strides=[-2]), "n, 3", lambda x: x[:, 6:1:-2]),
    ("strided_slice", ((n,),), dict(axes=[0], begin=[-1], end=[-(1 << 62)], strides=[-1]), "n", lambda x: x[::-1]),
    ("strided_slice", ((n,),), dict(axes=[0], begin=[0], end=[m]), "min(m, n)", None),
    ("strided_slice", ((n, 5),), dict(axes=[1], begin=[1], end=[4], assume_inbound=True), "n, 3", lambda x: x[:, 1:4]),
    ("take", ((n, 4), ("int64", m, 2)), {"axis": 0}, "m, 2, 4", None),
    ("take", ((n, 4),), {"indices": 0, "axis": 1}, "n", lambda x: x.take(0, 1)),
    ("take", ((4, n), ("int64", m)), {"axis": 1}, "4, m", None),
    ("gather_elements", ((n, 4), ("int64", n, m)), {"axis": 1}, "n, m", None),
    ("gather_nd", ((5, n, 3), ("int64", m, 1)), {}, "m, n, 3", None),
    ("tile", ((n, 4),), {"repeats": [2, 3]}, "2 * n, 12", lambda x: np.tile(x, (2, 3))),
    ("tile", ((n,),), {"repeats": [2, 3]}, "2, 3 * n", lambda x: np.tile(x, (2, 3))),
    ("tile", ((n, 4),), {"repeats": m}, "n, 4 * m", None),
    ("repeat", ((n, 4),), {"repeats": 2}, "8 * n", lambda x: np.repeat(x, 2)),
    ("repeat", ((n, 4),), {"repeats": 3, "axis": 0}, "3 * n, 4", lambda x: np.repeat(x, 3, 0)),
    ("flip", ((n, 4),), {"axis": 0}, "n, 4", lambda x: np.flip(x, 0)),
    ("one_hot", (("int64", n, m),), dict(on_value=1.0, off_value=0.0, depth=5), "n, m, 5", None),
    ("one_hot", (("int64", n),), dict(on_value=1.0, off_value=0.0, depth=k, axis=0), "k, n", None),
    ("triu", ((n, 4),), {}, "n, 4", np.triu),
    ("zeros", (), {"shape": (n, 2 * m)}, "n, 2 * m", None),
    ("full", (), {"shape": (n + 1,), "fill_value": 1.0}, "n + 1", None),
    ("ones_like", ((n, 4),), {}, "n, 4", np.ones_like),
    ("arange", (), {"start": n}, "n", None),
    ("arange", (), {"start": 2, "end": 11, "step": 3}, "3", lambda: np.arange(2, 11, 3)),
    ("arange", (), {"start": 1, "end": n + 1}, "n", None),
    ("arange", (), {"start": 0, "end": 2 * n, "step": 2}, "n", None),
    ("eye", (), {"n": n, "m": 4}, "n, 4", None),
    ("astype", ((n, 4),), {"dtype": "int32"}, "n, 4", lambda x: x.astype("int32")),
    ("size", ((n, 4),), {}, "", lambda x: np.asarray(x.size)),
    ("shape_to_tensor", (), {"expr": (n, 4, m)}, "3", None),
]


def arguments(shapes: tuple[Any, ...], make: Callable[[str, tuple[Dim, ...]], Any]) -> list[Any]:
    def one(shape: Any) -> Any:
        if isinstance(shape, list):
            return [one(part) for part in shape]
        if shape and isinstance(shape[0], str):
            return make(shape[0], shape[1:])
        return make("float32", shape)

    return [one(shape) for shape in shapes]


@pytest.mark.parametrize(
    ("name", "shapes", "kwargs", "text", "numpy"), TABLE, ids=[f"{i}-{row[0]}" for i, row in enumerate(TABLE)]
)
def test_shapes_are_deduced_as_numpy_has_them(
    name: str, shapes: tuple[Any, ...], kwargs: dict[str, Any], text: str, numpy: Callable[..., Any] | None
) -> None:
    """D3, D4: at least sixty cases, in canonical form, right for all small symbol values."""
    args = arguments(
        shapes, lambda dtype, dims: var(*dims, dtype="bool" if name == "where" and dims == (n, 1) else dtype)
    )
    call = get_op(name).bind(args, kwargs)
    context = TypeContext()
    ty = infer_type(call, context)
    assert context.checks == [] or name in ("take",)
    parts = ty.fields if isinstance(ty, TupleType) else (ty,)
    assert "; ".join(shape_text(part) for part in parts) == text
    if numpy is None:
        return
    names = sorted(
        {
            s
            for part in shapes
            for shape in (part if isinstance(part, list) else [part])
            for d in shape
            if not isinstance(d, str)
            for s in free_symbols(d)
        }
    )
    for values in itertools.product((0, 1, 2, 3, 7), repeat=len(names)):
        symbols = dict(zip(names, values, strict=True))
        arrays = arguments(shapes, lambda dtype, dims: np.zeros([evaluate(d, symbols) for d in dims], dtype))  # noqa: B023
        flat = [a for array in arrays for a in (array if isinstance(array, list) else [array])]
        result = numpy(*flat)
        results = result if isinstance(result, (list, tuple)) else [result]
        assert [r.shape for r in results] == [
            tuple(evaluate(d, symbols) for d in dims_of(part) or ()) for part in parts
        ]


def test_the_table_has_sixty_cases() -> None:
    assert len(TABLE) >= 60


# ---------------------------------------------------------------------------------------------------------------------
# What is refuted, and what is left for run time
# ---------------------------------------------------------------------------------------------------------------------

REFUTED = [
    ("add", (var(3, 4), var(5, 4)), {}, ShapeError, "W201", "3 with 5"),
    ("add", (var(n, 4), var(n, 5)), {}, ShapeError, "W201", "4 with 5"),
    ("add", (var(n + 1), var(n + 2)), {}, ShapeError, "W201", "n + 1"),
    ("add", (var(3), var(3, dtype="float16")), {}, DTypeError, "W320", "float16"),
    ("add", (var(3, dtype="int32"), 1.5), {}, DTypeError, "W310", "1.5"),
    ("add", (var(3, dtype="int8"), 300), {}, DTypeError, "W310", "300"),
    ("concat", ((var(n, 4), var(m)),), {"axis": None}, ShapeError, "W202", "1 dimensions"),
    ("exp", (var(3, dtype="int32"),), {}, DTypeError, "W321", "int32"),
    ("exp", (Tuple((var(3),)),), {}, ScriptError, "W134", "tensor"),
    ("reshape", (var(n, 4), (3,)), {}, ShapeError, "W205", ""),
    ("reshape", (var(2, 3), (4,)), {}, ShapeError, "W201", "6"),
    ("reshape", (var(2, 3), (-1, -1)), {}, ShapeError, "W205", "-1"),
    ("reshape", (var(2, 3), (-1, 4)), {}, ShapeError, "W201", "6"),
    ("reshape", (var(n, 4), (0, 0, 0)), {}, ShapeError, "W205", "0"),
    ("permute_dims", (var(n, 4), [0, 0]), {}, ShapeError, "W204", "twice"),
    ("permute_dims", (var(n, 4), [0]), {}, ShapeError, "W204", "1 axes"),
    ("expand_dims", (var(n), 5), {}, ShapeError, "W203", "axis 5"),
    ("squeeze", (var(n, 4), [1]), {}, ShapeError, "W201", "4"),
    ("broadcast_to", (var(3, 4), (2, 4)), {}, ShapeError, "W201", "3"),
    ("broadcast_to", (var(3, 4), (4,)), {}, ShapeError, "W202", "1 dimension"),
    ("concat", ((var(2, 3), var(2, 4)),), {}, ShapeError, "W201", "3"),
    ("concat", ((var(2, 3), var(2)),), {}, ShapeError, "W202", "1 and 2"),
    ("concat", ((),), {}, ShapeError, "W205", "nothing"),
    ("split", (var(n), 0), {}, ShapeError, "W205", "0"),
    ("split", (var(n), "a"), {}, ScriptError, "W142", "indices_or_sections"),
    ("strided_slice", (var(n), [0], [0], [4], [0]), {}, ShapeError, "W205", "stride"),
    ("strided_slice", (var(n), [0, 0], [0, 0], [4, 4]), {}, ShapeError, "W204", "twice"),
    ("strided_slice", (Var("r", TensorType(ndim=1)), [0, 0], [0, 0], [4, 4]), {}, ShapeError, "W204", "twice"),
    ("strided_slice", (var(n), [0], [0, 1], [4]), {}, ShapeError, "W205", "lengths"),
    ("strided_slice", (var(2), [0], [1], [3]), {"assume_inbound": True}, WeftError, "W901", "index 2"),
    ("dynamic.nonzero_at", (var(3), (3, 2)), {}, ShapeError, "W201", "rank of x"),
    ("take", (var(3, 4), var(2)), {"axis": 0}, DTypeError, "W321", "float32"),
    ("take", (var(3, 4), 3), {"axis": 0}, WeftError, "W901", "3"),
    ("take", (var(3, 4), 0), {"axis": 2}, ShapeError, "W203", "axis 2"),
    ("take", (var(3), 0), {"mode": "flip"}, ShapeError, "W205", "flip"),
    ("grad.take_backward", (var(2, 3), Var("r", TensorType(None, "float32", 2)), 0), {}, ShapeError, "W202", "0 dim"),
    ("gather_elements", (var(3, 4), var(3, 5, 1, dtype="int64")), {}, ShapeError, "W202", ""),
    ("zeros", ((-1, 2),), {}, ShapeError, "W205", "negative"),
    ("arange", (0, 5, 0), {}, ShapeError, "W205", "step"),
    ("clip", (var(3, dtype="int32"), 0.5, 2), {}, DTypeError, "W321", "min"),
    ("triu", (var(3),), {}, ShapeError, "W202", "2"),
    ("astype", (var(3), "float23"), {}, DTypeError, "W301", "float23"),
    ("exp", (), {}, ScriptError, "W141", "lacks x"),
    ("exp", (var(3), var(3)), {}, ScriptError, "W141", "at most 1"),
    ("exp", (var(3),), {"y": 1}, ScriptError, "W141", "no parameter 'y'"),
    ("concat", ((var(3),),), {"axes": 0}, ScriptError, "W141", "did you mean axis"),
    ("exp", (var(3),), {"x": var(3)}, ScriptError, "W141", "two values"),
    ("exp", ("text",), {}, ScriptError, "W134", "R.String"),
    ("exp", (object(),), {}, ScriptError, "W142", "x must be"),
    ("expand_dims", (var(3), "0"), {}, ScriptError, "W142", "axis"),
    ("full", ((2,), var(3)), {}, ScriptError, "W134", "scalar"),
    ("call_tir", (1, (var(3),)), {"out_ty": tensor(3)}, ScriptError, "W142", "gvar"),
    ("call_tir", (GlobalVar("f"), (var(3),)), {"out_ty": TensorType(ndim=1)}, ShapeError, "W206", "out_ty"),
]


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "kind", "code", "part"),
    REFUTED,
    ids=[f"{i}-{r[0]}-{r[4]}" for i, r in enumerate(REFUTED)],
)
def test_wrong_calls_are_refused_with_code_and_reason(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any], kind: type[WeftError], code: str, part: str
) -> None:
    with pytest.raises(kind) as caught:
        infer_type(get_op(name).bind(args, kwargs))
    if (name, code) == ("reshape", "W205") and part == "":
        return
    assert caught.value.code == code
    assert part in str(caught.value)


CHECKED = [
    ("add", (var(n, 4), var(m, 4)), {}, "n, 4", [(n, m)]),
    ("add", (var(n), var(4)), {}, "4", [(n, 4)]),
    ("add", (var(2 * n), var(n)), {}, "2 * n", [(2 * n, n)]),
    ("reshape", (var(n, 4), (m,)), {}, "m", [(4 * n, m)]),
    ("reshape", (var(n, m), (-1, 3)), {}, "m * n // 3, 3", [(m * n % 3, 0)]),
    ("squeeze", (var(n, 4), [0]), {}, "4", [(n, 1)]),
    ("broadcast_to", (var(n, 4), (m, 4)), {}, "m, 4", [(n, m)]),
    ("concat", ((var(2, n), var(3, m)),), {}, "5, n", [(n, m)]),
    ("concat", ((var(2, n), var(3, 7)),), {}, "5, 7", [(7, n)]),
    ("stack", ((var(n), var(m)),), {}, "2, n", [(n, m)]),
    ("gather_elements", (var(n, 4), var(m, 2, dtype="int64")), {"axis": 1}, "m, 2", [(m, n)]),  # at most
    ("ewise_fma", (var(n), var(m), var(k)), {}, "n", [(n, m), (n, k)]),
]


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "text", "checks"), CHECKED, ids=[f"{i}-{r[0]}" for i, r in enumerate(CHECKED)]
)
def test_an_equality_that_is_not_known_is_recorded_as_a_check(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any], text: str, checks: list[tuple[Dim, Dim]]
) -> None:
    """D3: there is no fourth outcome beside proved, refuted and checked."""
    context = TypeContext()
    ty = infer_type(get_op(name).bind(args, kwargs), context)
    assert shape_text(ty) == text
    assert [(check.lhs, check.rhs) for check in context.checks] == checks


def test_facts_prove_what_would_be_checked() -> None:
    context = TypeContext(facts=Facts().assume_equal(n, m))
    infer_type(get_op("add")(var(n), var(m)), context)
    assert context.checks == []


def test_an_error_points_at_the_call() -> None:
    from weft.errors import Source, Span

    span = Span(Source("model.py", "y = R.add(a, b)"), 4, 15)
    call = get_op("add").bind((var(3), var(4)), {}, span)
    with pytest.raises(ShapeError) as caught:
        infer_type(call)
    assert caught.value.span is span


# ---------------------------------------------------------------------------------------------------------------------
# Unknown shapes and ranks
# ---------------------------------------------------------------------------------------------------------------------

ranked, unknown = Var("r", TensorType(ndim=2, dtype="float32")), Var("u", TensorType())
shape_var = Var("s", ShapeType(ndim=3))

UNKNOWN = [
    ("exp", (ranked,), {}, 'R.Tensor(dtype="float32", ndim=2)'),
    ("add", (ranked, var(3, 4)), {}, 'R.Tensor(dtype="float32", ndim=2)'),
    ("add", (unknown, var(3, 4)), {}, 'R.Tensor(dtype="float32")'),
    ("flatten", (ranked,), {}, 'R.Tensor(dtype="float32", ndim=1)'),
    ("permute_dims", (ranked,), {}, 'R.Tensor(dtype="float32", ndim=2)'),
    ("expand_dims", (ranked, [0]), {}, 'R.Tensor(dtype="float32", ndim=3)'),
    ("squeeze", (ranked,), {}, 'R.Tensor(dtype="float32")'),
    ("squeeze", (ranked, [0]), {}, 'R.Tensor(dtype="float32", ndim=1)'),
    ("reshape", (ranked, (-1, 2)), {}, 'R.Tensor(dtype="float32", ndim=2)'),
    ("reshape", (ranked, (n, 2)), {}, 'R.Tensor((n, 2), "float32")'),
    ("reshape", (var(n, 4), shape_var), {}, 'R.Tensor(s, "float32")'),
    ("broadcast_to", (ranked, (5, n, 4)), {}, 'R.Tensor((5, n, 4), "float32")'),
    ("concat", ((ranked, var(n, 4)),), {}, 'R.Tensor(dtype="float32", ndim=2)'),
    ("stack", ((ranked, ranked),), {}, 'R.Tensor(dtype="float32", ndim=3)'),
    ("split", (ranked, 2), {}, 'R.Tuple(R.Tensor(dtype="float32", ndim=2), R.Tensor(dtype="float32", ndim=2))'),
    ("strided_slice", (ranked, [0], [1], [2]), {}, 'R.Tensor(dtype="float32", ndim=2)'),
    ("take", (ranked, var(5, dtype="int64")), {"axis": 0}, 'R.Tensor(dtype="float32", ndim=2)'),
    ("take", (unknown, var(5, dtype="int64")), {"axis": 0}, "R.Tensor"),
    ("tile", (ranked, [2, 2, 2]), {}, 'R.Tensor(dtype="float32", ndim=3)'),
    ("repeat", (unknown, 2), {}, "R.Tensor(ndim=1)"),
    ("shape_of", (ranked,), {}, "R.Shape(ndim=2)"),
    ("shape_of", (var(n, 4),), {}, "R.Shape([n, 4])"),
    ("tensor_to_shape", (var(3, dtype="int64"),), {}, "R.Shape(ndim=3)"),
    ("zeros", (shape_var, "int8"), {}, 'R.Tensor(s, "int8")'),
    ("nn.relu", (Var("a", AnyType()),), {}, "R.Tensor"),
]


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "text"), UNKNOWN, ids=[f"{i}-{r[0]}" for i, r in enumerate(UNKNOWN)]
)
def test_unknown_shapes_stay_unknown_and_ranks_are_kept(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any], text: str
) -> None:
    """D2: unknown is an unknown shape or rank, never an unknown dimension."""
    assert type_text(infer_type(get_op(name).bind(args, kwargs))) == text


# ---------------------------------------------------------------------------------------------------------------------
# Calls
# ---------------------------------------------------------------------------------------------------------------------


def halves() -> PrimFunc:
    """A kernel (2 * n, 4) from (n, 8)."""
    a = te.placeholder((n, 8), "float32", "a")
    out = te.compute((2 * n, 4), lambda i, j: a[i // 2, i % 2 * 4 + j], "out")
    return te.create_prim_func([a, out], "halves")


def call_tir(out: Any, *args: Any, **kwargs: Any) -> tuple[Any, TypeContext]:
    context = TypeContext({"halves": halves(), "main": AnyFunction})
    return infer_type(get_op("call_tir")(GlobalVar("halves"), args, out_ty=out, **kwargs), context), context


AnyFunction = FuncType((tensor(n, 4),), tensor(n), True)


def test_a_call_of_a_kernel_has_the_declared_type() -> None:
    ty, context = call_tir(tensor(2 * m, 4), var(m, 8))
    assert type_text(ty) == 'R.Tensor((2 * m, 4), "float32")'
    assert context.checks == []


@pytest.mark.parametrize(
    ("out", "args", "kind", "code", "part"),
    [
        (tensor(6, 8), (var(6, 8),), ShapeError, "W210", "declared (6, 8), computed (12, 4)"),
        (tensor(n, 8), (var(n, 8),), ShapeError, "W210", "n="),
        (tensor(2 * n, 4, dtype="float16"), (var(n, 8),), DTypeError, "W320", "float16"),
        (tensor(2 * n, 4), (var(n, 8, 1),), ShapeError, "W202", "argument a"),
        (tensor(2 * n, 4), (var(n, 7),), ShapeError, "W201", "argument a"),
        (tensor(2 * n, 4), (var(n, 8, dtype="int32"),), DTypeError, "W320", "int32"),
        (tensor(2 * n, 4), (var(n, 8), var(n, 8)), ScriptError, "W130", "2 inputs"),
        ([tensor(2 * n, 4), tensor(2 * n, 4)], (var(n, 8),), ScriptError, "W130", "2 outputs"),
    ],
)
def test_a_call_that_contradicts_its_kernel_is_refused(out: Any, args: Any, kind: Any, code: str, part: str) -> None:
    with pytest.raises(kind) as caught:
        call_tir(out, *args)
    assert caught.value.code == code
    assert part in str(caught.value)
    assert "halves" in str(caught.value)


def test_tir_vars_bind_the_scalar_parameters_of_a_kernel() -> None:
    a = te.placeholder((2 * n,), "float32", "a")
    out = te.compute((n,), lambda i: a[2 * i] + a[2 * i + 1], "out")
    kernel = te.create_prim_func([a, out], "pairs")
    context = TypeContext({"pairs": kernel})
    scalars = [param.name for param in kernel.params if isinstance(param, PrimVar)]
    kwargs = {"tir_vars": (3,)} if scalars else {}
    infer_type(get_op("call_tir")(GlobalVar("pairs"), (var(6),), out_ty=tensor(3), **kwargs), context)
    with pytest.raises(ShapeError):
        infer_type(get_op("call_tir")(GlobalVar("pairs"), (var(8),), out_ty=tensor(3), **kwargs), context)


def test_a_call_of_a_function_substitutes_the_symbols_its_arguments_bind() -> None:
    """D7."""
    context = TypeContext({"main": AnyFunction})
    assert type_text(infer_type(Call(GlobalVar("main"), (var(m + 1, 4),)), context)) == 'R.Tensor((m + 1,), "float32")'


def test_parameters_may_carry_expressions_with_a_symbolic_argument() -> None:
    """D7: (2 * n,) with an R.Shape([n]) beside it."""
    context = TypeContext({"f": FuncType((tensor(2 * n), ShapeType((n,))), tensor(n))})
    ty = infer_type(Call(GlobalVar("f"), (var(2 * m), ShapeExpr((m,)))), context)
    assert type_text(ty) == 'R.Tensor((m,), "float32")'
    with pytest.raises(ShapeError):
        infer_type(Call(GlobalVar("f"), (var(2 * m + 1), ShapeExpr((m,)))), context)


@pytest.mark.parametrize(
    ("ty", "result"),
    [
        (ShapeType(ndim=3), 'R.Tensor(dtype="float32", ndim=3)'),
        (ShapeType((n, 4)), 'R.Tensor((m, 4), "float32")'),
    ],
)
def test_the_shape_variables_of_a_function_have_no_meaning_where_it_is_called(ty: ShapeType, result: str) -> None:
    """D7: their sizes are known there, or their rank."""
    shape = Var("s", ty)
    x = Var("x", TensorType(shape, "float32"))
    function = Function((shape, x), SeqExpr((), x), TensorType(shape, "float32"))
    given = Var("t", ShapeType(ndim=3) if ty.dims is None else ShapeType((m, 4)))
    call = Call(GlobalVar("f"), (given, Var("a", TensorType(None, "float32", ty.ndim))))
    assert type_text(infer_type(call, TypeContext({"f": function}))) == result


def test_a_result_size_that_no_argument_binds_is_unknown() -> None:
    context = TypeContext({"f": FuncType((tensor(n),), tensor(n, k))})
    assert type_text(infer_type(Call(GlobalVar("f"), (var(3),)), context)) == 'R.Tensor(dtype="float32", ndim=2)'


@pytest.mark.parametrize(
    ("args", "kind", "code"),
    [
        ((), ScriptError, "W130"),
        ((var(3, 5),), ShapeError, "W201"),
        ((var(3),), ShapeError, "W202"),
        ((var(3, 4, dtype="int32"),), DTypeError, "W320"),
    ],
)
def test_wrong_arguments_of_a_function_are_refused(args: Any, kind: Any, code: str) -> None:
    with pytest.raises(kind) as caught:
        infer_type(Call(GlobalVar("main"), args), TypeContext({"main": AnyFunction}))
    assert caught.value.code == code


def test_an_unknown_function_is_named() -> None:
    with pytest.raises(ScriptError, match="no function 'f'"):
        infer_type(Call(GlobalVar("f"), ()), TypeContext({"main": AnyFunction}))


def test_a_value_that_is_no_function_cannot_be_called() -> None:
    with pytest.raises(ScriptError) as caught:
        infer_type(Call(var(3), ()))
    assert caught.value.code == "W131"


def test_an_extern_function_gives_what_is_stated() -> None:
    packed = get_op("call_packed")
    assert isinstance(infer_type(packed("f", var(3))), AnyType)
    assert type_text(infer_type(packed("f", var(3), ty_args=tensor(2)))) == 'R.Tensor((2,), "float32")'
    assert infer_type(packed("f", var(3), dps=True)).fields == ()  # type: ignore[attr-defined]
    assert isinstance(packed("f", var(3)).op, ExternFunc)


def steps_of_a_chain(length: int) -> int:
    """How many functions are called to deduce the types of a chain of operators."""
    calls = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    value = var(n, 4)
    operator, context = get_op("exp"), TypeContext()
    sys.setprofile(count)
    try:
        for step in range(length):
            value = Var(f"v{step}", infer_type(operator(value), context))
    finally:
        sys.setprofile(None)
    return calls


def test_deduction_of_a_chain_takes_steps_in_proportion() -> None:
    """D8: by the functions that are called, so that no clock decides; a chain twice as long takes twice as many."""
    steps_of_a_chain(10)  # what is remembered from the first time on
    short, long = steps_of_a_chain(200), steps_of_a_chain(400)
    assert short > 200
    assert long <= 2.05 * short


def test_nested_calls_are_deduced_without_recursion() -> None:
    """Deep expressions do not overflow."""
    expr: Any = var(n, 4)
    for _ in range(5000):
        expr = expr + 1.0
    assert type_text(infer_type(expr)) == 'R.Tensor((n, 4), "float32")'


# ---------------------------------------------------------------------------------------------------------------------
# Claims
# ---------------------------------------------------------------------------------------------------------------------


def test_a_claim_is_refuted_with_numbers() -> None:
    with pytest.raises(ShapeError) as caught:
        check_claim(tensor(n, 8), tensor(2 * n, 12), TypeContext())
    assert caught.value.code == "W210"
    assert "n=1: declared (1, 8), computed (2, 12)" in caught.value.message
    assert caught.value.hint == "no sizes make them equal: declare (2 * n, 12)"


def test_a_claim_that_holds_for_some_sizes_only_is_refuted() -> None:
    with pytest.raises(ShapeError, match="declared") as caught:
        check_claim(tensor(n), tensor(m), TypeContext())
    assert "match_cast" in str(caught.value)


def test_a_claim_that_says_less_or_the_same_otherwise_holds() -> None:
    context = TypeContext()
    check_claim(TensorType(ndim=2), tensor(n, 4), context)
    check_claim(tensor(n * n - 1), tensor((n + 1) * (n - 1)), context)
    check_claim(AnyType(), tensor(n), context)
    check_claim(TupleType((tensor(n),)), TupleType((tensor(n),)), context)
    assert context.checks == []


def test_a_claim_that_says_more_than_is_known_asks_for_a_match_cast() -> None:
    with pytest.raises(ShapeError) as caught:
        check_claim(tensor(n, 4), TensorType(ndim=2, dtype="float32"), TypeContext())
    assert caught.value.code == "W211"
    assert "R.match_cast" in (caught.value.hint or "")
    check_claim(tensor(n, 4), TensorType(ndim=2, dtype="float32"), TypeContext(), at_run_time=True)


@pytest.mark.parametrize(
    ("declared", "computed", "kind"),
    [
        (tensor(n, dtype="float16"), tensor(n), DTypeError),
        (tensor(n), tensor(n, 1), ShapeError),
        (ShapeType((n,)), tensor(n), ShapeError),
        (PrimType("int64"), PrimType("int32"), DTypeError),
        (TupleType((tensor(3),)), TupleType((tensor(4),)), ShapeError),
        (TupleType((tensor(3),)), TupleType((tensor(3), tensor(3))), ShapeError),
    ],
)
def test_claims_of_another_kind_are_refuted(declared: Any, computed: Any, kind: Any) -> None:
    with pytest.raises(kind):
        check_claim(declared, computed, TypeContext())


# ---------------------------------------------------------------------------------------------------------------------
# Relations
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base", "derived", "answer"),
    [
        (tensor(n, 4), tensor(n, 4), True),
        (tensor(n, 4), tensor(m, 4), None),
        (tensor(n, 4), tensor(n, 5), False),
        (tensor(n), tensor(n + 1), False),
        (TensorType(), tensor(n), True),
        (TensorType(ndim=2), tensor(n), False),
        (TensorType(ndim=1), TensorType(), None),
        (TensorType(ndim=1, dtype="int8"), tensor(n), False),
        (TensorType(ndim=1, dtype="int8"), TensorType(ndim=1), None),
        (AnyType(), tensor(n), True),
        (tensor(n), AnyType(), None),
        (tensor(n), ShapeType((n,)), False),
        (ShapeType(ndim=2), ShapeType((n, 4)), True),
        (ShapeType((n, 4)), ShapeType(ndim=2), None),
        (PrimType("int64"), PrimType("int64"), True),
        (TupleType((tensor(n), AnyType())), TupleType((tensor(n), tensor(3))), True),
        (TupleType((tensor(n),)), TupleType(()), False),
        (FuncType((tensor(n),), tensor(n)), FuncType((tensor(m),), tensor(m)), True),
        (FuncType((tensor(n),), tensor(n)), FuncType((tensor(m),), tensor(m), pure=False), False),
        (FuncType((tensor(n),), tensor(n), False), FuncType((TensorType(),), tensor(4)), None),
        (FuncType(None, AnyType(), False), FuncType((tensor(n),), tensor(n)), True),
    ],
)
def test_subtypes_are_decided_three_valued(base: Any, derived: Any, answer: bool | None) -> None:
    assert is_base_of(base, derived) is answer


@pytest.mark.parametrize(
    ("a", "b", "text"),
    [
        (tensor(n, 4), tensor(n, 4), 'R.Tensor((n, 4), "float32")'),
        (tensor(n, 4), tensor(m, 4), 'R.Tensor(dtype="float32", ndim=2)'),
        (tensor(n), tensor(n, dtype="int8"), "R.Tensor((n,))"),
        (tensor(n), tensor(n, 4), 'R.Tensor(dtype="float32")'),
        (tensor(n), ShapeType((n,)), "R.Any"),
        (TupleType((tensor(n),)), TupleType((tensor(m),)), 'R.Tuple(R.Tensor(dtype="float32", ndim=1))'),
        (ShapeType((n,)), ShapeType((m,)), "R.Shape(ndim=1)"),
    ],
)
def test_branches_join_in_the_most_precise_common_type(a: Any, b: Any, text: str) -> None:
    assert type_text(common_base(a, b)) == text
    assert is_base_of(common_base(a, b), a) is True
    assert is_base_of(common_base(a, b), b) is True


def test_erasing_forgets_shapes_with_symbols_out_of_scope() -> None:
    assert type_text(erase(tensor(n, 4), set())) == 'R.Tensor(dtype="float32", ndim=2)'
    assert type_text(erase(tensor(n, 4), {"n"})) == 'R.Tensor((n, 4), "float32")'
    assert type_text(erase(TensorType(shape_var, "float32"), set())) == 'R.Tensor(dtype="float32", ndim=3)'


def test_matching_binds_symbols_and_leaves_pairs_to_check() -> None:
    match = match_types([tensor(n, m), tensor(n)], [tensor(2, k), tensor(k)])
    assert match.symbols == {"n": 2, "m": k}
    assert match.pairs == [(2, k)]
    assert match.answer is True
    assert match_types([tensor(n)], [PrimType("int64")]).answer is False


# ---------------------------------------------------------------------------------------------------------------------
# Dimensions and extents
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [7, n, 2 * n + 1, n - m, (n + 1) // 2, n % 4, n * n * m, n - 2 * m + 3])
def test_dimensions_survive_the_way_to_the_tensor_level_and_back(dim: Dim) -> None:
    env = {name: PrimVar(name, "int64") for name in ("n", "m")}
    assert prim_to_dim(dim_to_prim(dim, env)) == dim


def test_an_extent_that_is_no_dimension_matches_anything() -> None:
    size = PrimVar("n", "int64")
    product = Buffer("x", (size, te.if_then_else(size > 2, size, size * 2)), "float32")
    function = PrimFunc((product, PrimVar("s", "float32")), Evaluate(IntImm(0)))
    signature = kernel_signature(function)
    assert type_text(signature[0]) == 'R.Tensor((n, unknown), "float32")'
    assert type_text(signature[1]) == 'R.Prim("float32")'
    assert buffer_symbols(function) == (size,)
    assert func_type(function).pure is False


def test_equal_names_of_different_symbols_are_told_apart() -> None:
    a, b = PrimVar("n", "int64"), PrimVar("n", "int64")
    function = PrimFunc((Buffer("x", (a, b)),), Evaluate(IntImm(0)))
    assert type_text(kernel_signature(function)[0]) == 'R.Tensor((n, n_1), "float32")'


# ---------------------------------------------------------------------------------------------------------------------
# Operators of Python
# ---------------------------------------------------------------------------------------------------------------------


def test_python_operators_build_operator_calls() -> None:
    x, y = var(n, 4), var(n, 4, name="y")
    calls: dict[str, Any] = {
        "add": x + y,
        "subtract": x - y,
        "multiply": x * y,
        "divide": x / y,
        "floor_divide": x // y,
        "floor_mod": x % y,
        "power": x**y,
        "less": x < y,
        "less_equal": x <= y,
        "greater": x > y,
        "greater_equal": x >= y,
        "negative": -x,
    }
    for name, call in calls.items():
        assert isinstance(call.op, Op)
        assert call.op.name == name
        assert shape_text(infer_type(call)) == "n, 4"
    assert (x == y) is False
    assert (x == x) is True


def test_python_numbers_and_arrays_take_part() -> None:
    x = var(n, 4)
    right: Any = x * 2
    left: Any = 2.0 - x
    array: Any = np.ones(4, "float32") + x
    assert right.args[1].dtype == "float32"
    assert isinstance(left.args[0], Constant)
    assert isinstance(array.args[0], Constant)
    assert array.args[0].data.shape == (4,)
    nested: Any = (x + 1) * 2
    assert nested.args[1].dtype == "float32"


def test_an_index_number_does_not_take_the_dtype_of_the_data() -> None:
    call: Any = get_op("take")(var(n, 4), 1, axis=1)
    assert call.args[1].dtype == "int64"
    chosen: Any = get_op("where")(var(3, dtype="bool"), var(3), 0)
    assert chosen.args[2].dtype == "float32"


def test_tuples_have_fields() -> None:
    parts: Any = get_op("split")(var(n, 4), 2, axis=1)
    assert isinstance(parts[0], TupleGetItem)
    assert parts[-1].index == 1
    first, second = parts
    assert (first.index, second.index) == (0, 1)
    with pytest.raises(ScriptError) as caught:
        parts[2]
    assert caught.value.code == "W133"
    with pytest.raises(ScriptError, match="only tuples"):
        var(n)[0]  # type: ignore[index]


def test_scalars_of_a_call_are_prim_values() -> None:
    call: Any = get_op("clip")(var(n), 0, 6)
    assert [arg.value for arg in call.args[1:]] == [0, 6]
    assert isinstance(call.args[1], PrimValue)


def test_sequences_forget_the_symbols_they_define() -> None:
    from weft.ir.graph import BindingBlock, MatchCast

    given = Var("x", TensorType(ndim=1, dtype="float32"))
    cast = Var("y", tensor(k))
    body = SeqExpr((BindingBlock((MatchCast(cast, given, tensor(k)),)),), cast)
    assert type_text(infer_type(body)) == 'R.Tensor(dtype="float32", ndim=1)'
    kept = SeqExpr((BindingBlock((MatchCast(cast, Var("z", tensor(k)), tensor(k)),)),), cast)
    assert type_text(infer_type(kept)) == 'R.Tensor((k,), "float32")'


def test_the_type_of_a_function_is_its_signature() -> None:
    x = var(n)
    function = Function((x,), SeqExpr((), x), tensor(n), pure=True)
    assert type_text(func_type(function)) == 'R.Callable((R.Tensor((n,), "float32")), R.Tensor((n,), "float32"), True)'


def test_a_type_does_not_depend_on_what_is_known_of_symbols_where_a_call_stands() -> None:
    """A size that a match_cast above shows to be 1 stays: text, verifier and compiler see one rank."""
    function = weft.parse("""
@R.function
def main(a: R.Tensor((1, 1), "float32")):
    rows = T.int64()
    c = R.match_cast(a, R.Tensor((1, rows), "float32"))
    n = R.zeros((rows,), "float32")
    d = R.squeeze(n)
    return d
""")
    assert isinstance(function, Function)
    assert weft.verify(function) == []
    assert 'd: R.Tensor((rows,), "float32") = R.squeeze(n)' in function.script()
    weft.assert_structural_equal(weft.parse(function.script()), function)


def test_the_common_type_of_two_branches_keeps_a_device_that_both_have() -> None:
    a, b = (TensorType(shape, "float32", vdevice=VDevice("llvm")) for shape in ((2, 4), (3,)))
    device = common_base(a, b).vdevice  # type: ignore[attr-defined]
    assert device is not None
    assert device.target == "llvm"
    other = common_base(a, TensorType((3,), "float32", vdevice=VDevice("llvm", 1)))
    assert other.vdevice is None  # type: ignore[attr-defined]
