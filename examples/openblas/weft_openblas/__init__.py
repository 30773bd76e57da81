"""OpenBLAS for weft: importing this module adds the kind of target `openblas`, which does products of float matrices.

    host: llvm; blas: openblas

    partition   products of two float32 or float64 matrices, of any sizes, become functions of the library
    lower       each becomes a call of `openblas_matmul`; memory and everything around it stay with the host
    run         the library is the one that NumPy brings along, or the one that `OPENBLAS_LIBRARY` names

A library needs no code generator: the host's code carries the call.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import weft
from weft import ir
from weft.ir.dim import prove_equal
from weft.transform import PartitionCalls

OPENBLAS = weft.target_kind("openblas", {}, doc="products of matrices by OpenBLAS")
SYMBOL = "openblas_matmul"
PATTERNS = {"openblas.matmul": ("matmul",)}
_ROW_MAJOR, _NO_TRANSPOSE = 101, 111
# Prefixes, suffixes and the integers that go with them, of the builds of the library that are around.
_SPELLINGS: list[tuple[str, str, Any]] = [
    (prefix, suffix, integer)
    for suffix, integer in (("64_", ctypes.c_int64), ("", ctypes.c_int))
    for prefix in ("scipy_", "")
]


@functools.cache
def library() -> tuple[ctypes.CDLL, str, str, Any]:
    """The shared object, and how its functions and integers are spelt; OSError when there is none."""
    given = os.environ.get("OPENBLAS_LIBRARY")
    places = [Path(np.__file__).parent.parent / "numpy.libs", Path(np.__file__).parent / ".dylibs"]
    found = [given] if given else sorted(str(path) for place in places for path in place.glob("*openblas*"))
    for path in found:
        loaded = ctypes.CDLL(path)
        for prefix, suffix, integer in _SPELLINGS:
            if hasattr(loaded, f"{prefix}cblas_sgemm{suffix}"):
                return loaded, prefix, suffix, integer
    raise OSError("no OpenBLAS is there: set OPENBLAS_LIBRARY to its path")


@weft.register_func(SYMBOL)
def matmul(x: np.ndarray, y: np.ndarray, out: np.ndarray) -> None:
    """out = x @ y for row-major matrices of one type, by cblas_sgemm or cblas_dgemm."""
    loaded, prefix, suffix, integer = library()
    letter, real = ("s", ctypes.c_float) if out.dtype == np.float32 else ("d", ctypes.c_double)
    if 0 in out.shape or not x.shape[1]:
        out[...] = 0  # the library asks for at least one of each
        return
    gemm = getattr(loaded, f"{prefix}cblas_{letter}gemm{suffix}")
    (rows, inner), columns = x.shape, y.shape[1]
    x, y = np.ascontiguousarray(x), np.ascontiguousarray(y)
    sizes = [integer(value) for value in (rows, columns, inner)]
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (x, y, out)]
    strides = [integer(value) for value in (inner, columns, columns)]
    order = [ctypes.c_int(value) for value in (_ROW_MAJOR, _NO_TRANSPOSE, _NO_TRANSPOSE)]
    (a, b, c), (lda, ldb, ldc) = pointers, strides
    gemm(*order, *sizes, real(1), a, lda, b, ldb, real(0), c, ldc)


@dataclass(frozen=True)
class PartitionForOpenblas(PartitionCalls):
    """Give products of two float matrices to the library."""

    def accepts(self, name: str, calls: Sequence[ir.Call]) -> bool:
        """Two matrices of one type, whose inner sizes are known to agree."""
        x, y = (getattr(arg, "ty", None) for arg in calls[0].args)
        if not isinstance(x, ir.TensorType) or not isinstance(y, ir.TensorType):
            return False
        if x.dims is None or y.dims is None or len(x.dims) != 2 or len(y.dims) != 2:
            return False
        same = x.dtype == y.dtype == (calls[0].attrs.get("out_dtype") or x.dtype)
        return same and x.dtype in ("float32", "float64") and prove_equal(x.dims[1], y.dims[0]) is True


@OPENBLAS.hook("partition", scope="module")
def partition(target: weft.Target, label: str) -> PartitionForOpenblas:
    """The pass that gives functions to the library."""
    return PartitionForOpenblas(label, PATTERNS)


@OPENBLAS.lowering
def lower(module: ir.IRModule, function: ir.Function) -> tuple[ir.IRModule, ir.GlobalVar]:
    """The same function, with a call of the library in place of the operator."""
    (binding,) = PartitionForOpenblas("", PATTERNS).taken(function)[1]
    call: Any = binding.value
    args = (ir.ExternFunc(SYMBOL), ir.Tuple(call.args))
    library_call = ir.Call(ir.Op("call_dps_packed"), args, ty_args=(binding.var.ty,), span=call.span)
    result = ir.Var("result", binding.var.ty)
    body = ir.SeqExpr((ir.BindingBlock((ir.VarBinding(result, library_call),)),), result)
    entry = ir.replace(function, name="openblas_entry", body=body, attrs=ir.FrozenMap())
    return ir.IRModule({"openblas_entry": entry}), ir.GlobalVar("openblas_entry")
