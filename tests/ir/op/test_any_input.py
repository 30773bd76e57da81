"""Whatever an operator is given, it answers with a call or with an error that a user can read."""

from __future__ import annotations

import contextlib
import random
from typing import Any

import numpy as np
import pytest

from weft.errors import WeftError
from weft.ir.deduction.infer import TypeContext, infer_type
from weft.ir.dim import symbol
from weft.ir.graph import Constant, DataTypeImm, ExternFunc, GlobalVar, PrimValue, ShapeExpr, StringImm, Tuple, Var
from weft.ir.op import OPS, OpDef
from weft.ir.types import AnyType, FuncType, PrimType, ShapeType, StringType, TensorType, TupleType, Type

n = symbol("n")


def tensor(*dims: Any, dtype: str = "float32") -> TensorType:
    return TensorType(dims, dtype)


TYPES: list[Type] = [
    tensor(n, 4),
    tensor(2, 3),
    tensor(n, 4, dtype="int64"),
    tensor(3, dtype="bool"),
    tensor(),
    tensor(0, 4),
    tensor(n, 3, 8, 8),
    tensor(n, n),
    TensorType(),
    TensorType(ndim=2),
    TensorType(None, "float32", 3),
    TensorType((2,), None),
    TensorType(Var("s", ShapeType(ndim=2)), "float32"),
    ShapeType((n, 2)),
    ShapeType(ndim=2),
    ShapeType(),
    TupleType((tensor(2), tensor(2))),
    TupleType(()),
    AnyType(),
    StringType(),
    PrimType("int64"),
    PrimType("float32"),
    FuncType((tensor(2),), tensor(2)),
]
VALUES: list[Any] = [
    1,
    0,
    -1,
    2.5,
    1e300,
    float("nan"),
    float("inf"),
    True,
    None,
    "a",
    "float32",
    1 << 70,
    -(1 << 63),
    n,
    n - 1,
    2 * n + 1,
    [],
    [1, 2],
    (0,),
    [n, 2],
    ["a"],
    [-1],
    (2, -1),
    [[1, 2], [3]],
    {},
    object(),
    np.float32(2),
    np.array(3),
    np.ones((2, 3), "float32"),
    GlobalVar("f"),
    ExternFunc("g"),
    ShapeExpr((n, 2)),
    PrimValue(3),
    PrimValue(2.0),
    StringImm("x"),
    DataTypeImm("int8"),
    Tuple((Var("a", tensor(2)), Var("b", tensor(3)))),
    tensor(2, 3),
    [tensor(2)],
    [Var("a", tensor(2, 3)), Var("b", tensor(n, 3))],
    [Var("a", tensor(2)), 1],
    Constant(np.ones((2, 2))),
]
POOL = [*(Var("v", ty) for ty in TYPES), *VALUES]


def variables(value: Any) -> Any:
    if isinstance(value, Type):
        return Var("v", value)
    return tuple(map(variables, value)) if isinstance(value, (tuple, list)) else value


def mutated(definition: OpDef, rng: random.Random) -> tuple[list[Any], dict[str, Any]]:
    """Arguments: of an example with one replaced, or wholly at random."""
    args = [rng.choice(POOL) for _ in range(rng.randint(0, min(len(definition.params) + 1, 6)))]
    kwargs: dict[str, Any] = {}
    if definition.examples and rng.random() < 0.6:
        example = rng.choice(definition.examples)
        args, kwargs = [variables(arg) for arg in example.args], dict(example.kwargs)
        if args and rng.random() < 0.6:
            args[rng.randrange(len(args))] = rng.choice(POOL)
            return args, kwargs
    if definition.params and rng.random() < 0.6:
        kwargs[rng.choice(definition.params).name] = rng.choice(POOL)
    return args, kwargs


@pytest.mark.parametrize("definition", OPS.values(), ids=list(OPS))
def test_wrong_arguments_give_readable_errors_and_never_another_exception(definition: OpDef) -> None:
    rng = random.Random(definition.name)
    for _ in range(80):
        args, kwargs = mutated(definition, rng)
        with contextlib.suppress(WeftError):
            call = definition.bind(args, kwargs)
            infer_type(call, TypeContext())
            definition.unbind(call)
            definition.lower(call, TypeContext(), "kernel")
