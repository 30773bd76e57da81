"""Values of other projects' kinds, odd ones among them, as arguments and outputs of guarded programs.

    python tests/fuzz/host_values.py [--tries 2000] [--start 0] [--only views,memory]

A try calls one function of `PROGRAMS` with values of one host, compiled in guarded memory
(`weft.runtime.device.guards`) and interpreted. What an array held before the call says what must come back; what has
another dtype or shape must be refused, and so must what is no array. Anything but that value and an error of weft's is
a finding, told with its host and try (`--only HOST --start TRY --tries 1` runs it again); a process that ends is one.
"""

from __future__ import annotations

import argparse
import array as array_module
import contextlib
import ctypes
import gc
import importlib
import mmap
import random
import sys
import tempfile
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

if __name__ == "__main__":  # from the checkout, installed or not
    ROOT = Path(__file__).resolve().parents[2]
    sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

import weft
from weft.dtypes import array_dtype
from weft.runtime.device.guards import guarded
from weft.support.dlpack import to_dlpack

Array = np.ndarray[Any, Any]

PROGRAMS = """
@I.ir_module
class Module:
    @T.prim_func
    def written(a: T.Buffer(("n",), "float32"), b: T.Buffer(("n",), "float32")):
        for i in range(n):
            b[i] = a[n - 1 - i] * T.float32(2)

    @T.prim_func
    def strided(a: T.Buffer(("n",), "float32", strides=("s",)), b: T.Buffer(("n",), "float32")):
        for i in range(n):
            b[i] = a[n - 1 - i] * T.float32(2)

    @R.function
    def added(x: R.Tensor(("n",), "float32"), y: R.Tensor(("n",), "float32")):
        return x * R.const(2.0, "float32") + y, R.flip(y, axis=0)

    @R.function
    def handed(x: R.Tensor(("n",), "float32"), y: R.Tensor(("n",), "float32")):
        return x, (y, x)

    @R.function
    def of_any(x: R.Tensor("float32", ndim=1), y: R.Tensor("float32")):
        return R.sum(x, axis=[0]), R.sum(y)

    @R.function
    def in_tuple(t: R.Tuple(R.Tensor(("n",), "float32"), R.Shape(["n"])), y: R.Tensor(("n",), "float32")):
        return t[0] - y

    @R.function
    def whole(x: R.Tensor(("n",), "int64"), y: R.Tensor(("n",), "int64")):
        return R.call_tir(Module.taken, (x, y), out_ty=R.Tensor((n,), "int64"))

    @T.prim_func(private=True)
    def taken(a: T.Buffer(("n",), "int64"), b: T.Buffer(("n",), "int64"), c: T.Buffer(("n",), "int64")):
        for i in range(n):
            c[i] = a[b[i]]

    @R.function
    def halves(x: R.Tensor(("n",), "bfloat16"), y: R.Tensor(("n",), "bfloat16")):
        return R.maximum(x, y)
"""


@cache
def programs() -> tuple[Any, Any]:
    """The programs in guarded memory, and interpreted."""
    module: Any = weft.parse(PROGRAMS)
    with guarded():
        compiled = weft.compile(module)
    return compiled, weft.interpret(module)


@dataclass
class Value:
    """A value of a host, what it holds as an array where that is sure, and whether weft must take it where it fits."""

    given: Any
    held: Array | None
    plain: bool = False


class Finding(AssertionError):
    """What must not be."""


def _numbers(rng: random.Random, size: int, dtype: str = "float32") -> Array:
    if dtype == "index":
        return np.array([rng.randrange(max(size, 1)) for _ in range(size)], "int64")
    return np.array([rng.randrange(-4, 9) for _ in range(size)]).astype(array_dtype(dtype))


def _plain(rng: random.Random, size: int, dtype: str) -> Value:
    array = _numbers(rng, size, dtype)
    return Value(array, array.copy(), True)


def views(rng: random.Random, size: int, dtype: str) -> Value:
    """Views of NumPy arrays: steps below zero and of zero, odd addresses, other byte orders, read-only, other ranks."""
    base = _numbers(rng, size, dtype)
    kind = base.dtype
    whole = np.zeros(4 * size + 8, kind)
    raw = np.zeros(size * kind.itemsize + 8, "uint8")[rng.choice((1, 2, 3, 5)) :][: size * kind.itemsize]
    made: list[Callable[[], Array]] = [
        lambda: base[::-1],
        lambda: whole[1 : 1 + 3 * size : 3],
        lambda: whole[3 * size + 2 :: -3][:size],
        lambda: np.broadcast_to(base[:1], (size,)) if size else base,
        lambda: np.lib.stride_tricks.as_strided(base, (size,), (0,)),
        lambda: raw.view(kind),
        lambda: base.astype(kind.newbyteorder(">")),
        lambda: np.frombuffer(base.tobytes(), kind),
        lambda: base.reshape(1, size)[0],
        lambda: np.asfortranarray(np.stack([base, base]))[1],
        lambda: np.lib.stride_tricks.sliding_window_view(np.zeros(size + 3, kind), 3)[:size, 1],
        lambda: np.zeros(size, [("a", "u1"), ("b", kind)])["b"],
        lambda: np.concatenate([base, base])[:size],
    ]
    wrong: list[Callable[[], Array]] = [
        lambda: base[None],
        lambda: base.astype("float64"),
        lambda: np.zeros(size, [("a", "f4")]),
        lambda: base.astype(object),
        lambda: base.astype("S4"),
        lambda: np.zeros(size, "datetime64[s]"),
        lambda: np.zeros(size, "complex64"),
        lambda: np.zeros((0, 2**40), kind),
        lambda: np.zeros((), kind),
        lambda: np.zeros((size, 0, 3), kind),
        lambda: np.zeros([1] * 40, kind),
    ]
    array = rng.choice(made * 3 + wrong)()
    if array.flags.writeable and array.dtype == kind and array.shape == (size,) and 0 not in array.strides and size:
        array[...] = _numbers(rng, size, dtype)
    if rng.random() < 0.2:
        array = array.view()
        array.flags.writeable = False
    return Value(array, array.copy(), True)


def classes(rng: random.Random, size: int, dtype: str) -> Value:
    """Subclasses of arrays, which may say anything of themselves."""
    base = _numbers(rng, size, dtype)

    class Lying(np.ndarray):
        shape = property(lambda self: (2**40,))  # pyright: ignore[reportIncompatibleMethodOverride]
        dtype = property(lambda self: np.dtype("int8"))  # pyright: ignore[reportIncompatibleMethodOverride]
        nbytes = property(lambda self: 1)  # pyright: ignore[reportIncompatibleMethodOverride]

    class Raising(np.ndarray):
        def __array_finalize__(self, other: Any) -> None:
            if rng.random() < 0.3:
                raise RuntimeError("no")

        @property
        def flags(self) -> Any:
            raise RuntimeError("no flags")

    class Counting(np.ndarray):
        def __len__(self) -> int:
            return 2**40

        def __getitem__(self, key: Any) -> Any:
            return 1

        def __eq__(self, other: object) -> Any:
            raise RuntimeError("no")

        __hash__ = None

        def __array__(self, *args: Any, **options: Any) -> Any:
            return np.zeros(2**10, "int8")

        @property
        def __array_interface__(self) -> Any:
            return {"shape": (2**30,), "typestr": "<f4", "data": (16, False), "version": 3}

    kinds: list[Callable[[], Any]] = [
        lambda: base.view(Lying),
        lambda: base.view(Raising),
        lambda: base.view(Counting),
        lambda: np.ma.masked_array(base, [rng.random() < 0.1 for _ in range(size)]),
        lambda: np.matrix(base),
        lambda: base.view(np.recarray),
        lambda: base[0] if size else base,
        lambda: np.float32(3),
        lambda: _mapped(base),
    ]
    return Value(rng.choice(kinds)(), None)


def _mapped(base: Array) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "array"
        made = np.memmap(path, base.dtype, "w+", shape=(max(1, len(base)),))
        made[: len(base)] = base
        return made[: len(base)]


class _Offering:
    """Something with chosen methods of the protocols."""

    def __init__(self, **methods: Callable[..., Any]) -> None:
        self.methods = methods

    def __getattr__(self, name: str) -> Any:
        if name in self.__dict__.get("methods", {}):
            return self.methods[name]
        raise AttributeError(name)


def _offering(**methods: Callable[..., Any]) -> Any:
    """An object of a class of its own with these methods: protocols look in the class."""
    named = {
        f"__{name}__": (
            property(lambda self, f=f: f()) if name == "array_interface" else lambda self, *a, f=f, **k: f()
        )
        for name, f in methods.items()
    }
    return type("Offering", (_Offering,), named)()


def protocols(rng: random.Random, size: int, dtype: str) -> Value:
    """Objects with `__array__`, `__array_interface__`, `__dlpack__`, that raise, change, call back, or free memory."""
    base = _numbers(rng, size, dtype)
    compiled, _ = programs()
    answers = [
        base,
        base[::-1],
        base[: size // 2],
        base.astype("float64"),
        np.zeros((size, 2), base.dtype),
        None,
        3,
        "x",
    ]
    kept = [np.array(base)]

    def raises() -> Any:
        raise rng.choice(
            (ValueError("no"), RuntimeError(), MemoryError(), RecursionError(), AttributeError("x"), KeyError())
        )

    def changes() -> Any:
        return rng.choice(answers)

    def calls() -> Any:
        with contextlib.suppress(weft.WeftError):
            compiled["added"](
                np.ones(size, "float32"), _offering(array=raises) if rng.random() < 0.3 else np.ones(size, "float32")
            )
        return base

    def frees() -> Any:
        found = kept.pop() if kept else np.array(base)
        gc.collect()
        return found[:]

    def forgets() -> Any:
        whole = np.zeros(size * 8 + 64, "uint8")
        weakref.ref(whole)
        return np.frombuffer(memoryview(whole.data)[: size * base.itemsize], base.dtype)

    def interface() -> Any:
        return dict(np.array(base).__array_interface__) | rng.choice(
            (
                {"shape": (size, 1)},
                {"typestr": "<f8", "shape": (size // 2,)},
                {"strides": (0,)},
                {"version": 2},
                {"shape": "x"},
                {"data": None},
            )
        )

    def held() -> Any:
        return base.__array_interface__

    used = base.__dlpack__()
    with contextlib.suppress(Exception):
        np.from_dlpack(_offering(dlpack=lambda: used, dlpack_device=lambda: (1, 0)))

    def altered() -> Any:
        capsule = np.array(base).__dlpack__()
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
        place = pointer(capsule, b"dltensor")
        field, wrong = rng.choice(((20, (0, 4, 9, 255)), (21, (0, 1, 4, 8, 33)), (8, (2, 10, 255))))
        ctypes.c_uint8.from_address(place + field).value = rng.choice(wrong)
        return capsule

    made: list[Callable[[], Any]] = [
        *[lambda f=f: _offering(array=f) for f in (raises, changes, calls, frees, forgets)],
        lambda: _offering(array_interface=interface, array=changes),
        lambda: _offering(array_interface=interface),
        lambda: _offering(array_interface=held),
        *[
            lambda f=f: _offering(dlpack=f, dlpack_device=lambda: (1, 0))
            for f in (raises, changes, altered, lambda: used)
        ],
        lambda: _offering(
            dlpack=np.array(base).__dlpack__, dlpack_device=lambda: rng.choice(((2, 0), (1, 7), 3, "x", None))
        ),
        lambda: _offering(dlpack=np.array(base).__dlpack__, dlpack_device=lambda: (1, 0)),
        lambda: _offering(dlpack=raises, dlpack_device=lambda: (1, 0), array=lambda: base),
        lambda: to_dlpack(base),
        lambda: _offering(dlpack_device=raises, dlpack=raises, is_conj=raises),
    ]
    return Value(rng.choice(made)(), None)


def memory(rng: random.Random, size: int, dtype: str) -> Value:
    """Buffers of Python: bytes, memory views, arrays of `array` and `ctypes`, mappings of memory."""
    base = _numbers(rng, size, dtype)
    content = base.tobytes()

    def mapping() -> Any:
        made = mmap.mmap(-1, max(1, len(content)))
        made[: len(content)] = content
        return made

    def released() -> Any:
        view = memoryview(bytearray(content))
        view.release()
        return view

    kinds: list[Callable[[], Any]] = [
        lambda: content,
        lambda: bytearray(content),
        lambda: memoryview(bytearray(content)).cast("B"),
        lambda: memoryview(base.data),
        lambda: memoryview(base.data)[::-1],
        released,
        mapping,
        lambda: array_module.array("f", base.tolist()),
        lambda: (ctypes.c_float * size)(*base.tolist()),
        lambda: ctypes.pointer(ctypes.c_float(2)),
        lambda: ctypes.create_string_buffer(len(content) + 1),
        lambda: np.frombuffer(bytearray(content), base.dtype),
        lambda: np.frombuffer(mapping(), base.dtype, size),
        lambda: np.ctypeslib.as_array((ctypes.c_float * size)(*base.tolist())) if size else base,
        lambda: np.frombuffer(array_module.array("f", base.tolist()), "float32"),
    ]
    return Value(rng.choice(kinds)(), None)


def python(rng: random.Random, size: int, dtype: str) -> Value:
    """Lists, numbers, texts, generators, classes and modules."""
    base = _numbers(rng, size, dtype)
    nested: list[Any] = []
    nested.append(nested)
    kinds: list[Any] = [
        base.tolist(),
        tuple(base.tolist()),
        [base],
        (base,),
        nested,
        {},
        {"x": base},
        set(),
        None,
        ...,
        NotImplemented,
        "x",
        b"",
        3,
        2**70,
        1.5,
        1j,
        float("nan"),
        range(size),
        (x for x in base),
        object(),
        type,
        np,
        np.ndarray,
        np.float32,
        np.dtype("f4"),
        lambda: base,
        weft,
        iter([]),
        slice(1),
        Exception("x"),
        base.__array_interface__,
        base.tolist,
        (size,),
        (-1,),
        (2**63,),
        [size],
        np.array([size]),
        (np.int64(size),),
        (True,),
        (1.0,),
        ((size,),),
    ]
    return Value(rng.choice(kinds), None)


def small_floats(rng: random.Random, size: int, dtype: str) -> Value:
    """Arrays of ml_dtypes, their views, and their bits."""
    types = importlib.import_module("ml_dtypes")
    name = rng.choice(
        ("bfloat16", "bfloat16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "float4_e2m1fn", "uint2")
    )
    base = np.array(_numbers(rng, size)).astype(getattr(types, name))
    turns: list[Callable[[], Any]] = [
        lambda: base,
        lambda: base[::-1],
        lambda: base.view(f"uint{8 * base.itemsize}"),
        lambda: to_dlpack(base),
        lambda: np.concatenate([base, base])[::2],
        lambda: base.reshape(1, -1),
        lambda: np.frombuffer(b"\0" + base.tobytes(), base.dtype, size, 1) if size else base,
    ]
    return Value(rng.choice(turns)(), None)


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def torch(rng: random.Random, size: int, dtype: str) -> Value:
    """Tensors of PyTorch; plain arrays where it is not installed."""
    library = _module("torch")
    if library is None:
        return _plain(rng, size, dtype)
    base = library.tensor(_numbers(rng, size, dtype))
    kinds: list[Callable[[], Any]] = [
        lambda: base,
        lambda: library.stack([base, base], 1)[:, 1],
        lambda: base.clone().requires_grad_() if base.is_floating_point() else base,
        lambda: base.to("meta"),
        lambda: base.to_sparse(),
        lambda: base.to(library.bfloat16),
        lambda: library.complex(base.double(), base.double()).conj().imag,
        lambda: base.expand(2, size),
        lambda: base[:1].expand(size),
        lambda: library._neg_view(base),
        lambda: library.nn.Parameter(base.float()),
        lambda: library.quantize_per_tensor(base.float(), 0.1, 0, library.qint8),
        lambda: library.empty(0),
        lambda: library.func.functional_call,
        lambda: base.clone().resize_(size * 2),
    ]
    return Value(rng.choice(kinds)(), None)


def jax(rng: random.Random, size: int, dtype: str) -> Value:
    """Arrays of JAX, deleted and traced ones too; plain arrays where it is not installed."""
    library = _module("jax.numpy")
    if library is None:
        return _plain(rng, size, dtype)
    base = library.asarray(_numbers(rng, size, dtype))

    def deleted() -> Any:
        made = base + 1
        made.delete()
        return made

    whole: Any = importlib.import_module("jax")
    kinds: list[Callable[[], Any]] = [
        lambda: base,
        lambda: base.astype("bfloat16"),
        deleted,
        lambda: whole.ShapeDtypeStruct((size,), "float32"),
        lambda: whole.random.key(1),
        lambda: whole.eval_shape(lambda x: x, base),
    ]
    return Value(rng.choice(kinds)(), None)


def tables(rng: random.Random, size: int, dtype: str) -> Value:
    """What looks like tables and sparse matrices: of scipy and pandas where they are, else what acts like them."""
    base = _numbers(rng, size, dtype)
    sparse, pandas = _module("scipy.sparse"), _module("pandas")

    class Series:
        values, shape, dtype, ndim = base, base.shape, base.dtype, 1

        def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
            return base if dtype is None else base.astype(dtype)

        def __len__(self) -> int:
            return size

        def __getitem__(self, key: Any) -> Any:
            return base[key]

    kinds: list[Callable[[], Any]] = [Series, lambda: Series]
    if sparse is not None:
        kinds += [
            lambda: sparse.csr_matrix(base[None]),
            lambda: sparse.coo_array(base[None]),
            lambda: sparse.eye(max(1, size)),
        ]
    if pandas is not None:
        kinds += [
            lambda: pandas.Series(base),
            lambda: pandas.DataFrame({"x": base}),
            lambda: pandas.array(base),
            lambda: pandas.NA,
        ]
    return Value(rng.choice(kinds)(), None)


HOSTS: dict[str, Callable[[random.Random, int, str], Value]] = {
    "views": views,
    "classes": classes,
    "protocols": protocols,
    "memory": memory,
    "python": python,
    "small_floats": small_floats,
    "torch": torch,
    "jax": jax,
    "tables": tables,
}
WANTED: dict[str, str] = {
    "written": "float32", "strided": "float32", "added": "float32", "handed": "float32", "of_any": "float32",
    "in_tuple": "float32", "whole": "index", "halves": "bfloat16",
}  # fmt: skip


def _result(name: str, x: Array, y: Array) -> Any:
    """What NumPy computes; None for what is not judged."""
    if name in ("written", "strided"):
        return x[::-1] * np.float32(2)
    if name == "added":
        return x * np.float32(2) + y, y[::-1]
    if name == "handed":
        return x, (y, x)
    if name == "in_tuple":
        return x - y
    return x[y] if name == "whole" and (not len(x) or ((y >= 0).all() and (y < len(x)).all())) else None


def _same(got: Any, want: Any) -> bool:
    if isinstance(want, tuple):
        return isinstance(got, tuple) and len(got) == len(want) and all(map(_same, got, want))
    got, want = np.asarray(got), np.asarray(want)  # whatever the classes of arrays say of themselves
    return (
        got.shape == want.shape
        and got.dtype == want.dtype
        and np.array_equal(got, want, equal_nan=want.dtype.kind == "f")
    )


def _fits(value: Value, name: str) -> bool:
    """Whether a value is sure to be what the function takes."""
    held = value.held
    wanted = "int64" if WANTED[name] == "index" else WANTED[name]
    return held is not None and held.ndim == 1 and held.dtype == array_dtype(wanted)  # in the order of the machine


def _told(host: str, name: str, values: tuple[Value, ...], what: str) -> Finding:
    kinds = ", ".join(f"{type(value.given).__name__} {getattr(value.held, 'dtype', '')}" for value in values)
    return Finding(f"{host} {name}({kinds}): {what}")


def attempt(rng: random.Random, host: str) -> None:
    """One call with a value of a host, in both ways to run; Finding for what must not be."""
    size, name = rng.choice((0, 1, 2, 3, 5, 17, 64)), rng.choice([*WANTED])
    dtype = WANTED[name]
    try:
        odd, other = HOSTS[host](rng, size, dtype), (HOSTS[host] if rng.random() < 0.3 else _plain)(rng, size, dtype)
    except Exception:  # the host makes no such value
        return
    if rng.random() < 0.15:
        other = odd  # one memory twice
    values = (odd, other) if rng.random() < 0.5 else (other, odd)
    found = [_call(rng, run[name], host, name, values, size) for run in programs()]
    TAKEN[host] = TAKEN.get(host, 0) + sum(one is not None for one in found)
    if (
        host != "protocols" and all(one is not None for one in found) and not _same(*found)
    ):  # those change from question to question
        raise _told(host, name, values, "the ways to run give different values")


TAKEN: dict[str, int] = {}
"""How many calls of each host gave a value."""


def _call(
    rng: random.Random, run: Callable[..., Any], host: str, name: str, values: tuple[Value, ...], size: int
) -> Any:
    before = [None if value.held is None else value.held.copy() for value in values]
    given: list[Any] = [value.given for value in values]
    if name == "in_tuple":
        given[0] = (given[0], (size,))
    options: dict[str, Any] = {}
    if rng.random() < 0.1 and name == "whole":
        with contextlib.suppress(Exception):  # the host makes no such value
            options["out"] = HOSTS[host](rng, size, WANTED[name]).given
    try:
        got = run(*given, **options)
    except weft.WeftError as error:
        if all(value.plain and _fits(value, name) for value in values) and not options and _equal_sizes(values):
            read_only = name in ("written", "strided") and not values[1].given.flags.writeable
            out_of_range = name == "whole"
            if not read_only and not out_of_range and error.code != "W852":
                raise _told(host, name, values, f"refused: {error.code} {error.message}") from None
        return None
    except Exception as error:
        raise _told(host, name, values, f"{type(error).__name__}: {error}") from error
    if name in ("of_any", "halves") or any(held is None for held in before):
        return None if name in ("written", "strided") else got
    x, y = (held for held in before if held is not None)
    if not all(_fits(value, name) for value in values) or not _equal_sizes(values):
        raise _told(host, name, values, "taken, and does not fit")
    if values[0] is values[1] and name in ("written", "strided"):
        return None  # what one kernel makes of itself, in order
    want = _result(name, x, y)
    if name in ("written", "strided"):
        got = values[1].given if 0 not in values[1].given.strides else want  # all elements in one place
        values[1].held = np.array(values[1].given)  # the next way to run begins with that
        if np.may_share_memory(values[0].given, values[1].given):
            return None
    if want is not None and not _same(got, want):
        raise _told(host, name, values, "another value")
    return got


def _equal_sizes(values: tuple[Value, ...]) -> bool:
    shapes = {value.held.shape for value in values if value.held is not None}
    return len(shapes) == 1


def main() -> int:
    """Run; the exit code."""
    parser = argparse.ArgumentParser(description="values of other projects as arguments of guarded programs")
    parser.add_argument("--tries", type=int, default=2000, help="of each host")
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--only", default=",".join(HOSTS))
    options = parser.parse_args()
    found: dict[str, int] = {}
    for host in options.only.split(","):
        for number in range(options.start, options.start + options.tries):
            try:
                attempt(random.Random(f"{host} {number}"), host)
            except Finding as finding:
                text = str(finding)
                found[text] = found.get(text, 0) + 1
                if found[text] == 1:
                    print(f"finding {host} {number}: {text}", flush=True)
        print(f"{host}: {options.tries} tries, {TAKEN.get(host, 0)} calls gave a value", flush=True)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
