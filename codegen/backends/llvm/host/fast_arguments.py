"""The arguments of a call from Python: arrays read through the buffer protocol, and those of `out=`.

What they are is compared with what they must be; whatever differs leaves for the slow path, and what was taken is
given back on the way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from weft.codegen.backends.llvm.asm.function import FunctionWriter, Size
from weft.codegen.backends.llvm.asm.instructions import binary, icmp, load, store
from weft.codegen.backends.llvm.host.python_calls import PythonCalls
from weft.runtime.abi.scalars import storage
from weft.runtime.abi.values import PlainArray
from weft.runtime.programs.fastcall import FORMATS, Linear, ResultTensor

__all__ = ["BUF", "C_CONTIGUOUS", "VIEW_WORDS", "Arguments", "linear_size"]

_WRITABLE, _FORMAT, C_CONTIGUOUS = 0x01, 0x04, 0x38
BUF, _LEN, _NDIM, _FORMAT_AT, _SHAPE = 0, 16, 36, 40, 48  # bytes within a Py_buffer, as the limited API fixes it
VIEW_WORDS = 10
MOST_PAIRS = 512
"""`out=` of so many arrays that more pairs would have to be compared is left to Python, which sorts them."""


@dataclass
class _Argument:
    """A parameter while its argument is read."""

    view: str
    data: str = ""
    length: str = ""
    dims: list[str] = field(default_factory=list)


def linear_size(w: FunctionWriter, dim: int | Linear | None, symbols: Mapping[str, str]) -> Size:
    """A size of a result from the symbols."""
    if isinstance(dim, int):
        return dim
    assert dim is not None  # `takes_fast_calls` has seen to it
    if (dim.factor, dim.offset) == (1, 0):
        return symbols[dim.name]
    return w.add(w.mul(dim.factor, symbols[dim.name]), dim.offset)


class Arguments:
    """Takes the arguments of one function; `kept` and `places` hold the arrays of `out=` and their addresses."""

    def __init__(
        self,
        python: PythonCalls,
        arrays: Sequence[PlainArray],
        results: Sequence[ResultTensor],
        several: bool,
    ) -> None:
        self.python, self.w = python, python.w
        self.arrays, self.results, self.several = arrays, results, several
        self.symbols: dict[str, str] = {}
        self.arguments: list[_Argument] = []
        self.views: list[str] = []
        self.most_taken = 0
        self.out = ""
        self.kept: list[str] = []
        self.places: list[str] = []

    def unless(self, condition: str, taken: int, clear: bool = False) -> None:
        """Leave for the slow path unless a condition holds; the first `taken` buffers are given back on the way."""
        w = self.w
        good, way = w.label("good"), f"release.{taken}" if taken else "slow_path"
        self.most_taken = max(self.most_taken, taken)
        bad = w.label("slow") if clear else way
        w.branch(condition, good, bad)
        if clear:
            w.open(bad)
            self.python.call("PyErr_Clear", "void")
            w.jump(way)
        w.open(good)

    def give_back(self, count: int) -> None:
        """Release the buffers of the first arguments."""
        for argument in self.arguments[:count]:
            self.python.call("PyBuffer_Release", "void", ("ptr", argument.view))

    def find_out(self) -> None:
        """Where `out=` is the only name: what it holds, else null."""
        w = self.w
        self.out = w.alloca("ptr")
        w.do(store("ptr", "null", self.out))
        named, on = w.label("named"), w.label("positional")
        w.branch(w.emit(icmp("eq", "ptr", "%names", "null")), on, named)
        w.open(named)
        self.unless(w.emit(icmp("eq", "i64", self.python.call("PyTuple_Size", "i64", ("ptr", "%names")), "1")), 0)
        name = self.python.call("PyTuple_GetItem", "ptr", ("ptr", "%names"), ("i64", 0))
        self.unless(w.emit(icmp("eq", "ptr", name, self.python.entry_of("out"))), 0)
        w.do(store("ptr", self.python.load("ptr", "%arguments", 8 * len(self.arrays)), self.out))
        w.open(on)

    def take_out(self) -> None:
        """The arrays of `out=`, each of its dtype and sizes and apart from all others."""
        w = self.w
        count = len(self.arrays)
        self.kept = [w.alloca("ptr") for _ in self.results]
        places = [w.alloca("i64") for _ in self.results]
        for slot in self.kept:
            w.do(store("ptr", "null", slot))
        self.places = places
        out = w.emit(load("ptr", self.out))
        follow = all(result.follows(self.symbols) for result in self.results)
        if not follow or len(places) * (len(places) + count) > MOST_PAIRS:
            self.unless(w.emit(icmp("eq", "ptr", out, "null")), count)
            return
        take, on = w.label("take"), w.label("taken")
        w.branch(w.emit(icmp("eq", "ptr", out, "null")), on, take)
        w.open(take)
        items = [out]
        if self.several:
            kind = self.python.load("ptr", out, 8)
            self.unless(w.emit(icmp("eq", "ptr", kind, self.python.entry_of("tuple type"))), count)
            size = self.python.call("PyTuple_Size", "i64", ("ptr", out))
            self.unless(w.emit(icmp("eq", "i64", size, len(self.results))), count)
            several = range(len(self.results))
            items = [self.python.call("PyTuple_GetItem", "ptr", ("ptr", out), ("i64", i)) for i in several]
        for number, (item, result) in enumerate(zip(items, self.results, strict=True)):
            own = self.python.load("ptr", item, 8)
            self.unless(w.emit(icmp("eq", "ptr", own, self.python.entry_of("array type"))), count + number)
            sizes = [linear_size(w, dim, self.symbols) for dim in result.dims]
            self.argument(count + number, item, result.dtype, sizes)
        ends = [w.emit(binary("add", "i64", a.data, a.length)) for a in self.arguments]
        for i in range(count, len(self.arguments)):
            for j in range(i):
                before = w.emit(icmp("ule", "i64", ends[i], self.arguments[j].data))
                after = w.emit(icmp("ule", "i64", ends[j], self.arguments[i].data))
                self.unless(w.emit(binary("or", "i1", before, after)), len(self.arguments))
        for item, slot, place, taken in zip(items, self.kept, places, self.arguments[count:], strict=True):
            self.python.call("PyBuffer_Release", "void", ("ptr", taken.view))
            self.python.call("Py_IncRef", "void", ("ptr", item))
            w.do(store("ptr", item, slot))
            w.do(store("i64", taken.data, place))
        del self.arguments[count:]
        w.open(on)

    def argument(self, position: int, item: str, dtype: str, dims: Sequence[int | str], *, bind: bool = False) -> None:
        """Take the buffer of one argument, and compare what it is with what it must be.

        With `bind`, names among the sizes are symbols, which it may give their values.
        """
        w = self.w
        view = w.alloca("i64", VIEW_WORDS)
        self.views.append(view)
        flags = C_CONTIGUOUS | _FORMAT | _WRITABLE
        status = self.python.call("PyObject_GetBuffer", "i32", ("ptr", item), ("ptr", view), ("i32", flags))
        self.unless(w.emit(icmp("eq", "i32", status, "0")), position, clear=True)
        argument = _Argument(view)
        self.arguments.append(argument)
        text = self.python.load("ptr", view, _FORMAT_AT)
        formats = FORMATS[storage(dtype).name]
        second = ord(formats[0][1]) if len(formats[0]) > 1 else 0  # of `Zf`, or the end
        end = w.emit(icmp("eq", "i8", self.python.load("i8", text, 1), str(second)))
        first = self.python.load("i8", text, 0)
        codes = [w.emit(icmp("eq", "i8", first, ord(code[0]))) for code in formats]
        known = codes[0] if len(codes) == 1 else w.emit(binary("or", "i1", codes[0], codes[1]))
        rank = w.emit(icmp("eq", "i32", self.python.load("i32", view, _NDIM), len(dims)))
        argument.length = self.python.load("i64", view, _LEN)
        argument.data = self.python.load("i64", view, BUF)
        some = w.emit(icmp("ne", "i64", argument.length, "0"))
        low = w.emit(binary("and", "i64", argument.data, storage(dtype).alignment - 1))
        conditions = [end, known, rank, some, w.emit(icmp("eq", "i64", low, "0"))]
        self.unless(self.python.all_of(conditions), position + 1)
        shape = self.python.load("ptr", view, _SHAPE)
        conditions = []
        for axis, dim in enumerate(dims):
            size = self.python.load("i64", shape, 8 * axis)
            argument.dims.append(size)
            wanted = self.symbols.setdefault(dim, size) if bind and isinstance(dim, str) else dim
            if wanted != size:
                conditions.append(w.emit(icmp("eq", "i64", size, wanted)))
        if conditions:
            self.unless(self.python.all_of(conditions), position + 1)

    def check_overlap(self) -> None:
        """An array that a kernel writes shares no memory with another one."""
        w = self.w
        ends = [w.emit(binary("add", "i64", a.data, a.length)) for a in self.arguments]
        for i, array in enumerate(self.arrays):
            for j in range(len(self.arrays)) if array.written else ():
                if j != i and not (j < i and self.arrays[j].written):
                    before = w.emit(icmp("ule", "i64", ends[i], self.arguments[j].data))
                    after = w.emit(icmp("ule", "i64", ends[j], self.arguments[i].data))
                    self.unless(w.emit(binary("or", "i1", before, after)), len(self.arrays))

    def words(self) -> str:
        """The words of the arguments."""
        flat: list[Size] = [word for a in self.arguments for word in (a.data, 0, *a.dims)]
        block = self.w.alloca("i64", max(1, len(flat)))
        for index, word in enumerate(flat):
            self.python.store_word(block, index, word)
        return block
