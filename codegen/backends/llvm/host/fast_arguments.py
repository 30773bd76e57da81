"""The arguments of a call from Python, as NumPy's arrays lie in memory, and those of `out=`.

What they are is compared with what they must be, which the table of the function says; whatever differs leaves for the
slow path.
"""

from __future__ import annotations

from weft.codegen.backends.llvm.asm.function import Size
from weft.codegen.backends.llvm.asm.instructions import binary, cast, icmp, load, select, store
from weft.codegen.backends.llvm.host.python_calls import PythonCalls
from weft.runtime.programs.fastcall import DIM, DTYPE_BITS, DTYPE_WORD, OBJECT, REFUSED_FLAG
from weft.support.records import dataclass

__all__ = ["Arguments", "Memory"]

_UNKNOWN = -1
"""The value of a symbol that no argument gave one yet."""


@dataclass(frozen=True)
class Memory:
    """Blocks of a call on the stack, some words for each argument or result.

    `kept` and `places` are the arrays that results are in and their addresses, `ends` the addresses at which each array
    starts and ends.
    """

    frame: str
    symbols: str
    arguments: str
    results: str
    kept: str
    places: str
    ends: str


class Arguments:
    """Takes the arguments of a call."""

    def __init__(self, python: PythonCalls, memory: Memory, count: str, results: str) -> None:
        self.python, self.w, self.memory = python, python.w, memory
        self.count, self.results = count, results
        self.length = python.variable(python.entry_of("constant bytes", "i64"))
        self.out = python.variable("null", "ptr")

    def unless(self, condition: str) -> None:
        """Leave for the slow path unless a condition holds."""
        good = self.w.label("good")
        self.w.branch(condition, good, "slow_path")
        self.w.open(good)

    def slow_path(self) -> None:
        """The Python function, with the arguments as they came."""
        self.w.open("slow_path")
        operands = (("ptr", self.python.entry_of("slow")), ("ptr", "%arguments"), ("i64", "%count"), ("ptr", "%names"))
        self.w.ret("ptr", self.python.call("PyObject_Vectorcall", "ptr", *operands))

    def size(self, array: str, axis: str, given: str | None = None) -> str:
        """A size that an array must have; a symbol without a value takes the one that is given."""
        python, w = self.python, self.w
        dim = python.word_at(python.field(array, "dims", "ptr"), w.mul(axis, len(DIM)))
        symbol, factor, offset = (python.load_word(dim, place) for place in DIM.values())
        slot = python.word_at(self.memory.symbols, symbol)
        value = w.emit(load("i64", slot))
        if given is not None:
            unknown = w.emit(icmp("eq", "i64", value, _UNKNOWN))
            takes = python.all_of(unknown, python.differs(factor))
            value = w.emit(select("i1", takes, "i64", given, value))
            w.do(store("i64", value, slot))
        return w.emit(binary("add", "i64", w.emit(binary("mul", "i64", factor, value)), offset))

    # What was passed.

    def take(self) -> None:
        """Look at all arguments, and write their words."""
        python = self.python
        with python.each(python.entry_of("symbols", "i64")) as symbol:
            python.store_word(self.memory.symbols, symbol, _UNKNOWN)
        at = python.variable(0)
        with python.each(self.count) as index:
            array = python.array_at("array of arguments", index)
            words = python.word_at(self.memory.arguments, python.value(at))
            length = self._take_one(python.load_word("%arguments", index, "ptr"), array, index, words)
            python.increase(self.length, length)
            python.increase(at, self.w.add(python.field(array, "rank"), 2))
        with python.where(python.is_set("some written")):
            self._check_overlap()

    def _take_one(self, item: str, array: str, place: Size, words: str) -> str:
        """Compare what an array is with what it must be, and write its words; gives its bytes."""
        python, w = self.python, self.w
        self._check_kind(item, array)
        data, shape = python.load("i64", item, OBJECT["data"]), python.load("ptr", item, OBJECT["shape"])
        length = python.variable(python.field(array, "item bytes"))
        with python.each(python.field(array, "rank")) as axis:
            given = python.load_word(shape, axis)
            self.unless(w.emit(icmp("eq", "i64", given, self.size(array, axis, given))))
            w.do(store("i64", w.mul(python.value(length), given), length))
            python.store_word(words, w.add(axis, 2), given)
        bytes_ = python.value(length)
        self.unless(python.differs(bytes_))
        python.store_word(words, 0, data)
        python.store_word(words, 1, 0)
        for side, end in enumerate((data, w.add(data, bytes_))):
            python.store_word(self.memory.ends, w.add(w.mul(place, 2), side), end)
        return bytes_

    def _check_kind(self, item: str, array: str) -> None:
        """An array of NumPy alone, of the dtype, rank and flags that it must have."""
        python, w = self.python, self.w
        own = python.load("ptr", item, OBJECT["type"])
        self.unless(w.emit(icmp("eq", "ptr", own, python.entry_of("array type"))))
        dtype = python.load("i64", python.load("ptr", item, OBJECT["dtype"]), DTYPE_WORD)
        key = w.emit(binary("and", "i64", dtype, DTYPE_BITS))
        keys = [w.emit(icmp("eq", "i64", key, python.field(array, name))) for name in ("key", "other key")]
        rank = w.emit(cast("zext", "i32", python.load("i32", item, OBJECT["rank"]), "i64"))
        needed = w.emit(cast("trunc", "i64", python.field(array, "flags"), "i32"))
        seen = w.emit(binary("or", "i32", needed, REFUSED_FLAG))
        flags = w.emit(binary("and", "i32", python.load("i32", item, OBJECT["flags"]), seen))
        same = w.emit(icmp("eq", "i64", rank, python.field(array, "rank")))
        self.unless(python.all_of(python.any_of(*keys), same, w.emit(icmp("eq", "i32", flags, needed))))

    def _check_overlap(self) -> None:
        """An array that a kernel writes shares no memory with another one."""
        python, w = self.python, self.w
        with python.each(self.count) as index:
            written = python.differs(python.field(python.array_at("array of arguments", index), "written"))
            with python.where(written), python.each(self.count) as other:
                same = w.emit(icmp("eq", "i64", index, other))
                self.unless(python.any_of(same, *self._apart(index, other)))

    def _apart(self, index: Size, other: Size) -> tuple[str, str]:
        """Whether an array ends before another one, or starts after it."""
        starts, ends = ([self._end(each, side) for each in (index, other)] for side in (0, 1))
        compared = (icmp("ule", "i64", ends[0], starts[1]), icmp("ule", "i64", ends[1], starts[0]))
        return self.w.emit(compared[0]), self.w.emit(compared[1])

    def _end(self, index: Size, side: int) -> str:
        return self.python.load_word(self.memory.ends, self.w.add(self.w.mul(index, 2), side))

    # What results are to be written into.

    def find_out(self) -> None:
        """Where `out=` is the only name: what it holds, else null."""
        python, w = self.python, self.w
        with python.where(w.emit(icmp("ne", "ptr", "%names", "null"))):
            self.unless(python.is_set("results"))
            self.unless(w.emit(icmp("eq", "i64", python.call("PyTuple_Size", "i64", ("ptr", "%names")), "1")))
            name = python.call("PyTuple_GetItem", "ptr", ("ptr", "%names"), ("i64", 0))
            self.unless(w.emit(icmp("eq", "ptr", name, python.entry_of("out"))))
            w.do(store("ptr", python.load_word("%arguments", self.count, "ptr"), self.out))

    def take_out(self) -> None:
        """The arrays of `out=`, each of its dtype and sizes and apart from all others."""
        python, w = self.python, self.w
        out = python.value(self.out, "ptr")
        with python.where(w.emit(icmp("ne", "ptr", out, "null"))):
            self.unless(python.is_set("takes out"))
            with python.where(python.is_set("is tuple")):
                own = python.load("ptr", out, OBJECT["type"])
                self.unless(w.emit(icmp("eq", "ptr", own, python.entry_of("tuple type"))))
                size = python.call("PyTuple_Size", "i64", ("ptr", out))
                self.unless(w.emit(icmp("eq", "i64", size, self.results)))
            with python.each(self.results) as number:
                self._take_out_one(out, number)
            with python.each(self.results) as number:
                python.call("Py_IncRef", "void", ("ptr", python.load_word(self.memory.kept, number, "ptr")))

    def _take_out_one(self, out: str, number: str) -> None:
        """Look at an array that a result is to be written into."""
        python, w = self.python, self.w
        item = python.variable(out, "ptr")
        with python.where(python.is_set("is tuple")):
            w.do(store("ptr", python.call("PyTuple_GetItem", "ptr", ("ptr", out), ("i64", number)), item))
        taken, place = python.value(item, "ptr"), w.add(self.count, number)
        array = python.array_at("array of results", number)
        words = python.word_at(self.memory.results, python.field(array, "word"))
        self._take_one(taken, array, place, words)
        with python.each(place) as other:
            self.unless(python.any_of(*self._apart(place, other)))
        python.store_word(self.memory.kept, number, taken, "ptr")
        python.store_word(self.memory.places, number, python.load_word(words, 0))
