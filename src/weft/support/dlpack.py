"""Arrays and tensors of other projects over one memory, by DLPack, for the dtypes that NumPy lacks too.

    capsule ::= DLManagedTensor { data, device (type, id), ndim, dtype (code, bits, lanes), shape, strides, offset, .. }

NumPy reads and makes capsules of its own dtypes. For the others the code of the dtype in the capsule is read or set
here, and NumPy sees unsigned integers of the same width. Memory lives as long as the capsule, which the array holds.
"""

from __future__ import annotations

import ctypes
from typing import Any, cast

import numpy as np

from weft.dtypes import SCALARS, array_dtype
from weft.errors import ArgumentError

__all__ = ["CODES", "array_over", "offered_array", "to_dlpack"]

CODES = {
    4: "bfloat16",
    7: "float8_e3m4",
    8: "float8_e4m3",
    9: "float8_e4m3b11fnuz",
    10: "float8_e4m3fn",
    11: "float8_e4m3fnuz",
    12: "float8_e5m2",
    13: "float8_e5m2fnuz",
    14: "float8_e8m0fnu",
}
"""The codes of DLPack for floats that NumPy lacks and that fill whole bytes."""
_OWN = {name: code for code, name in CODES.items()}
_CPU = 1
_NAME = b"dltensor"


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    )


def _tensor_of(capsule: Any) -> _Tensor:
    """What a capsule holds, to be read and changed in its place."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    return _Tensor.from_address(pointer(capsule, _NAME))


class _Held:
    """The memory of a capsule, as the base of an array."""

    def __init__(self, capsule: Any, interface: dict[str, Any]) -> None:
        self.capsule, self.__array_interface__ = capsule, interface


def array_over(value: Any) -> np.ndarray | None:
    """An array over the memory of a tensor of a dtype that NumPy lacks; None for one of another dtype or device.

    >>> array_over(to_dlpack(np.array([1.5, -2], array_dtype("bfloat16"))))
    array([1.5, -2], dtype=bfloat16)
    """
    capsule = value.__dlpack__()
    tensor = _tensor_of(capsule)
    dtype = CODES.get(tensor.code)
    if dtype is None or tensor.device[0] != _CPU or tensor.bits != SCALARS[dtype].bits or tensor.lanes != 1:
        return None
    shape, size = tuple(tensor.shape[: tensor.ndim]), tensor.bits // 8
    strides = tuple(step * size for step in tensor.strides[: tensor.ndim]) if tensor.strides else None
    data = ((tensor.data or 0) + tensor.offset, False)
    if 0 in shape:
        return np.empty(shape, array_dtype(dtype))
    interface = {"shape": shape, "strides": strides, "typestr": f"<u{size}", "data": data, "version": 3}
    return np.asarray(_Held(capsule, interface)).view(array_dtype(dtype))


def offered_array(value: Any) -> np.ndarray | None:
    """An array over the memory of what offers one by `__array__` or `__dlpack__`; None for what offers none.

    Raises: ArgumentError W851 for what offers one and then fails, as tensors of other projects do that are on another
    device, sparse, without data, or part of a computation of gradients.
    """
    try:
        if isinstance(value, (np.ndarray, np.generic)):
            if np.any(getattr(cast("Any", value), "mask", False)):
                hint = "give the masked elements a value: x.filled(0)"
                raise ArgumentError("some elements of the masked array have no value", code="W851", hint=hint)
            return np.asarray(cast("Any", value))
        if not hasattr(value, "__dlpack__"):
            return np.asarray(value) if hasattr(value, "__array__") else None
        return _offered_tensor(value)
    except ArgumentError:
        raise
    except Exception as error:  # whatever the other project raises
        message = f"the {type(cast('Any', value)).__name__} gives no array: {error}"
        hint = "pass a dense array in the memory of the processor (of torch: `x.detach().cpu().numpy()`)"
        raise ArgumentError(message, code="W851", hint=hint) from error


_LAZY = (("is_conj", "resolve_conj"), ("is_neg", "resolve_neg"))


def _offered_tensor(value: Any) -> np.ndarray:
    for lazy, resolve in _LAZY:  # of torch: the memory has not the values yet
        if getattr(value, lazy, bool)():
            value = getattr(value, resolve)()
    try:
        return np.asarray(value) if hasattr(value, "__array__") else np.from_dlpack(value)
    except Exception:  # a dtype that NumPy lacks, or no array at all
        found = array_over(value)
        if found is None:
            raise
        return found


class _Exported:
    """An array with the protocol of DLPack."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CPU, 0

    def __dlpack__(self, **options: Any) -> Any:
        code = _OWN.get(self.array.dtype.name)
        if code is None:
            return self.array.__dlpack__(**options)
        capsule = self.array.view(f"uint{8 * self.array.itemsize}").__dlpack__()
        _tensor_of(capsule).code = code
        return capsule


def to_dlpack(array: np.ndarray) -> Any:
    """What `from_dlpack` of other projects takes in place of an array, of dtypes that NumPy lacks too.

    Raises: BufferError where NumPy gives no capsule (read-only arrays).

    >>> exported = to_dlpack(np.zeros(3, array_dtype("bfloat16")))      # torch.from_dlpack(exported) is torch.bfloat16
    >>> exported.__dlpack_device__()
    (1, 0)
    """
    return _Exported(array)
