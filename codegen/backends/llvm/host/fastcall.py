"""Calls from Python as machine code: CPython's vectorcall convention, arrays read through the buffer protocol.

    PyObject *weft.python.<name>(self, PyObject *const *arguments, intptr_t count, PyObject *names)

takes the arguments that most calls pass: as many NumPy arrays as there are parameters, dense, writable, aligned, of
the right dtypes and sizes, and such arrays as `out=`. For everything else it calls the Python function of
`CompiledFunction`, which accepts or refuses it with its messages; so nothing is checked less here, only sooner.
Results whose sizes follow from those of the arguments are NumPy arrays that the code writes into, large ones blocks
of its own. The GIL is released for calls that see much data.

The table `weft.python.<name>.table` (words, filled in when the code is loaded) holds what it needs of the process:

    table ::= slow path, failure, wrap, numpy.empty, None, type of arrays, constants, parallel, into, "out",
              type of tuples, begin, end, callback, dtype of each result

A program that calls Python functions has a record of each call: `begin` makes it and gives its handle, `end` forgets it
(so do `failure`, `wrap` and `into`, which come last where they come).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from weft.codegen.backends.llvm.asm.function import FunctionWriter, Size
from weft.codegen.backends.llvm.asm.instructions import binary, call, cast, getelementptr, icmp, load, select, store
from weft.codegen.backends.llvm.asm.module import ModuleWriter
from weft.runtime.abi.frame import CALLBACK, CONSTANTS, FRAME_WORDS, HANDLE, OUTPUTS, PARALLEL, POLL, VALUES
from weft.runtime.abi.values import storage
from weft.runtime.programs.fastcall import FORMATS, TABLE, result_tensors, takes_fast_calls

__all__ = ["emit_fast_call"]

_PARAMS = [("ptr", "self"), ("ptr", "arguments"), ("i64", "count"), ("ptr", "names")]
_WRITABLE, _FORMAT, _C_CONTIGUOUS = 0x01, 0x04, 0x38
_BUF, _LEN, _NDIM, _FORMAT_AT, _SHAPE = 0, 16, 36, 40, 48  # bytes within a Py_buffer, as the limited API fixes it
_VIEW_WORDS = 10
MOST_PAIRS = 512
"""`out=` of so many arrays that more pairs would have to be compared is left to Python, which sorts them."""
LARGE = 64 << 10
"""Results from so many bytes on are blocks of the executable, whose memory is used again."""
HOLDS_GIL = 32 << 10
"""Calls that see less data than this keep the GIL: they end sooner than it changes hands."""


def emit_fast_call(
    module: ModuleWriter, signature: Mapping[str, Any], constant_bytes: int, calls_out: bool = False
) -> bool:
    """Emit the function for a signature; False where its parameters or results are not of the kind that it takes."""
    if not takes_fast_calls(signature):
        return False
    _Writer(module, signature, constant_bytes, calls_out).emit()
    return True


@dataclass
class _Argument:
    """A parameter while its argument is read."""

    view: str
    data: str = ""
    length: str = ""
    dims: list[str] = field(default_factory=list)


class _Writer:
    def __init__(
        self, module: ModuleWriter, signature: Mapping[str, Any], constant_bytes: int, calls_out: bool
    ) -> None:
        self.module = module
        self.signature = signature
        self.constant_bytes = constant_bytes
        self.types: list[Sequence[Any]] = [param["type"] for param in signature["params"]]
        self.results = result_tensors(signature["result"])
        self.w = FunctionWriter(module, f"weft.python.{signature['name']}", "ptr", _PARAMS, "nounwind")
        self.symbols: dict[str, str] = {}
        self.arguments: list[_Argument] = []
        self.views: list[str] = []
        self.most_taken = 0
        self.made: list[str] = []
        self.places: list[str] = []
        self.status = self.frame = ""
        self.calls_out = calls_out
        self.handle = "0"
        self.out = ""
        self.given: list[str] = []
        self.table = f'@"weft.python.{signature["name"]}.table"'

    # CPython

    def call(self, name: str, result: str, *operands: tuple[str, Size]) -> str:
        """Call a function of the process; gives its result."""
        spelled = self.module.declare(name, result, tuple(ty for ty, _ in operands))
        instruction = call(result, spelled, operands)
        if result == "void":
            self.w.do(instruction)
            return ""
        return self.w.emit(instruction)

    def entry_of(self, slot: str) -> str:
        """A pointer of the table."""
        return self.w.emit(load("ptr", self.at(self.table, 8 * TABLE[slot])))

    def at(self, base: str, offset: Size) -> str:
        """An address so many bytes further on."""
        return base if offset == 0 else self.w.emit(getelementptr("i8", base, offset))

    def load(self, ty: str, base: str, offset: int) -> str:
        """A value at an address."""
        return self.w.emit(load(ty, self.at(base, offset)))

    def unless(self, condition: str, taken: int, clear: bool = False) -> None:
        """Leave for the slow path unless a condition holds; the first `taken` buffers are given back on the way."""
        w = self.w
        good, way = w.label("good"), f"release.{taken}" if taken else "slow_path"
        self.most_taken = max(self.most_taken, taken)
        bad = w.label("slow") if clear else way
        w.branch(condition, good, bad)
        if clear:
            w.open(bad)
            self.call("PyErr_Clear", "void")
            w.jump(way)
        w.open(good)

    def give_back(self, count: int) -> None:
        """Release the buffers of the first arguments."""
        for argument in self.arguments[:count]:
            self.call("PyBuffer_Release", "void", ("ptr", argument.view))

    # The function

    def emit(self) -> None:
        """Emit all of it."""
        w = self.w
        size = len(TABLE) + len(self.results)
        self.module.add_global(f"{self.table} = global [{size} x i64] zeroinitializer, align 8")
        self.unless(w.emit(icmp("eq", "i64", "%count", len(self.types))), 0)
        if self.results:
            self.find_out()
        else:
            self.unless(w.emit(icmp("eq", "ptr", "%names", "null")), 0)
        objects = [self.load("ptr", "%arguments", 8 * i) for i in range(len(self.types))]
        kind = self.entry_of("array type")
        for item in objects:
            own = self.load("ptr", item, 8)  # ob_type, as `weft.runtime.programs.fastcall` has made sure
            self.unless(w.emit(icmp("eq", "ptr", own, kind)), 0)
        for position, (item, ty) in enumerate(zip(objects, self.types, strict=True)):
            self.argument(position, item, ty)
        self.check_overlap()
        if self.results:
            self.take_out()
        words = self.words()
        frame = w.alloca("i64", FRAME_WORDS)
        for word in range(VALUES):
            self.store_word(frame, word, 0)
        self.store_word(frame, CONSTANTS, self.load("i64", self.table, 8 * TABLE["constants"]))
        self.store_word(frame, PARALLEL, self.load("i64", self.table, 8 * TABLE["parallel"]))
        self.store_word(frame, POLL, self.load("i64", self.table, 8 * TABLE["poll"]))
        self.store_word(frame, OUTPUTS, 1 if self.results else 0)
        results = self.make_results()
        if self.calls_out:
            self.begin(frame)
        self.run(frame, words, results)
        self.finish(results)
        self.slow_path()
        w.finish()

    def store_word(self, base: str, index: int, word: Size) -> None:
        """Set a word of a block."""
        self.w.do(store("i64", word, self.at(base, 8 * index)))

    def find_out(self) -> None:
        """Where `out=` is the only name: what it holds, else null."""
        w = self.w
        self.out = w.alloca("ptr")
        w.do(store("ptr", "null", self.out))
        named, on = w.label("named"), w.label("positional")
        w.branch(w.emit(icmp("eq", "ptr", "%names", "null")), on, named)
        w.open(named)
        self.unless(w.emit(icmp("eq", "i64", self.call("PyTuple_Size", "i64", ("ptr", "%names")), "1")), 0)
        name = self.call("PyTuple_GetItem", "ptr", ("ptr", "%names"), ("i64", 0))
        self.unless(w.emit(icmp("eq", "ptr", name, self.entry_of("out"))), 0)
        w.do(store("ptr", self.load("ptr", "%arguments", 8 * len(self.types)), self.out))
        w.open(on)

    def take_out(self) -> None:
        """The arrays of `out=`, each of its dtype and sizes and apart from all others; `given` holds them."""
        w = self.w
        count = len(self.types)
        self.given = [w.alloca("ptr") for _ in self.results]
        places = [w.alloca("i64") for _ in self.results]
        for slot in self.given:
            w.do(store("ptr", "null", slot))
        self.places = places
        out = w.emit(load("ptr", self.out))
        if len(places) * (len(places) + count) > MOST_PAIRS:
            self.unless(w.emit(icmp("eq", "ptr", out, "null")), count)
            return
        take, on = w.label("take"), w.label("taken")
        w.branch(w.emit(icmp("eq", "ptr", out, "null")), on, take)
        w.open(take)
        items = [out]
        if self.signature["result"][0] == "tuple":
            self.unless(w.emit(icmp("eq", "ptr", self.load("ptr", out, 8), self.entry_of("tuple type"))), count)
            size = self.call("PyTuple_Size", "i64", ("ptr", out))
            self.unless(w.emit(icmp("eq", "i64", size, len(self.results))), count)
            items = [self.call("PyTuple_GetItem", "ptr", ("ptr", out), ("i64", i)) for i in range(len(self.results))]
        for number, (item, (dtype, dims, _)) in enumerate(zip(items, self.results, strict=True)):
            own = self.load("ptr", item, 8)
            self.unless(w.emit(icmp("eq", "ptr", own, self.entry_of("array type"))), count + number)
            self.argument(count + number, item, ("tensor", dtype, [self.size(dim) for dim in dims]), sizes=True)
        ends = [w.emit(binary("add", "i64", a.data, a.length)) for a in self.arguments]
        for i in range(count, len(self.arguments)):
            for j in range(i):
                before = w.emit(icmp("ule", "i64", ends[i], self.arguments[j].data))
                after = w.emit(icmp("ule", "i64", ends[j], self.arguments[i].data))
                self.unless(w.emit(binary("or", "i1", before, after)), len(self.arguments))
        for item, slot, place, taken in zip(items, self.given, places, self.arguments[count:], strict=True):
            self.call("PyBuffer_Release", "void", ("ptr", taken.view))
            self.call("Py_IncRef", "void", ("ptr", item))
            w.do(store("ptr", item, slot))
            w.do(store("i64", taken.data, place))
        del self.arguments[count:]
        w.open(on)

    def begin(self, frame: str) -> None:
        """Make the record of a call for the Python functions that the program calls."""
        w = self.w
        made = self.vectorcall(self.entry_of("begin"), "null", 0)
        bad, good = w.label("no_record"), w.label("record")
        w.branch(w.emit(icmp("eq", "ptr", made, "null")), bad, good)
        w.open(bad)
        self.give_back(len(self.arguments))
        for slot in self.made:
            self.call("Py_DecRef", "void", ("ptr", w.emit(load("ptr", slot))))
        w.ret("ptr", "null")
        w.open(good)
        self.handle = self.call("PyLong_AsLongLong", "i64", ("ptr", made))
        self.call("Py_DecRef", "void", ("ptr", made))
        self.store_word(frame, HANDLE, self.handle)
        self.store_word(frame, CALLBACK, self.load("i64", self.table, 8 * TABLE["callback"]))

    def end(self) -> None:
        """Forget the record of the call."""
        if self.calls_out:
            self.call("Py_DecRef", "void", ("ptr", self.call_with_numbers("end", [self.handle])))

    def argument(self, position: int, item: str, ty: Sequence[Any], sizes: bool = False) -> None:
        """Take the buffer of one argument, and compare what it is with what it must be.

        With `sizes`, those of the type are values and no symbols.
        """
        w = self.w
        view = w.alloca("i64", _VIEW_WORDS)
        self.views.append(view)
        flags = _C_CONTIGUOUS | _FORMAT | _WRITABLE
        status = self.call("PyObject_GetBuffer", "i32", ("ptr", item), ("ptr", view), ("i32", flags))
        self.unless(w.emit(icmp("eq", "i32", status, "0")), position, clear=True)
        argument = _Argument(view)
        self.arguments.append(argument)
        dtype, dims = ty[1], ty[2]
        text = self.load("ptr", view, _FORMAT_AT)
        end = w.emit(icmp("eq", "i8", self.load("i8", text, 1), "0"))
        first = self.load("i8", text, 0)
        codes = [w.emit(icmp("eq", "i8", first, ord(code))) for code in FORMATS[storage(dtype).name]]
        known = codes[0] if len(codes) == 1 else w.emit(binary("or", "i1", codes[0], codes[1]))
        rank = w.emit(icmp("eq", "i32", self.load("i32", view, _NDIM), len(dims)))
        argument.length = self.load("i64", view, _LEN)
        argument.data = self.load("i64", view, _BUF)
        some = w.emit(icmp("ne", "i64", argument.length, "0"))
        low = w.emit(binary("and", "i64", argument.data, storage(dtype).alignment - 1))
        conditions = [end, known, rank, some, w.emit(icmp("eq", "i64", low, "0"))]
        self.unless(self.all_of(conditions), position + 1)
        shape = self.load("ptr", view, _SHAPE)
        conditions = []
        for axis, dim in enumerate(dims):
            size = self.load("i64", shape, 8 * axis)
            argument.dims.append(size)
            wanted = dim if sizes or isinstance(dim, int) else self.symbols.setdefault(dim, size)
            if wanted != size:
                conditions.append(w.emit(icmp("eq", "i64", size, wanted)))
        if conditions:
            self.unless(self.all_of(conditions), position + 1)

    def all_of(self, conditions: Sequence[str]) -> str:
        """The conjunction."""
        found = conditions[0]
        for condition in conditions[1:]:
            found = self.w.emit(binary("and", "i1", found, condition))
        return found

    def check_overlap(self) -> None:
        """An array that a kernel writes shares no memory with another one."""
        w = self.w
        ends = [w.emit(binary("add", "i64", a.data, a.length)) for a in self.arguments]
        for i, ty in enumerate(self.types):
            for j in range(len(self.types)) if ty[0] == "buffer" and ty[4] else ():
                if j != i and not (j < i and self.types[j][0] == "buffer" and self.types[j][4]):
                    before = w.emit(icmp("ule", "i64", ends[i], self.arguments[j].data))
                    after = w.emit(icmp("ule", "i64", ends[j], self.arguments[i].data))
                    self.unless(w.emit(binary("or", "i1", before, after)), len(self.types))

    def words(self) -> str:
        """The words of the arguments."""
        flat: list[Size] = [word for a in self.arguments for word in (a.data, 0, *a.dims)]
        block = self.w.alloca("i64", max(1, len(flat)))
        for index, word in enumerate(flat):
            self.store_word(block, index, word)
        return block

    def make_results(self) -> str:
        """The words of the results; `made` and `places` hold the array made for each (or null) and its address."""
        w = self.w
        count = max([1, *(word + 2 + len(dims) for _, dims, word in self.results)])
        block = w.alloca("i64", count)
        if not self.results:
            self.store_word(block, 0, 0)
        for number, (dtype, dims, word) in enumerate(self.results):
            self.made.append(self.given[number])
            self.store_word(block, word + 1, 0)
            sizes = [self.size(dim) for dim in dims]
            bytes_: Size = storage(dtype).itemsize
            for axis, size in enumerate(sizes):
                self.store_word(block, word + 2 + axis, size)
                bytes_ = w.mul(bytes_, size)
            own, fresh, done = w.label("own"), w.label("fresh"), w.label("placed")
            there = w.emit(icmp("ne", "ptr", w.emit(load("ptr", self.made[-1])), "null"))
            w.branch(there, own, fresh)
            w.open(own)
            self.store_word(block, word, w.emit(load("i64", self.places[number])))
            w.jump(done)
            w.open(fresh)
            w.do(store("i64", "0", self.places[number]))
            self.store_word(block, word, 0)
            small = w.emit(icmp("ult", "i64", bytes_, LARGE))
            fine = [w.emit(icmp("ult", "i64", size, LARGE)) for size in sizes]
            make, skip = w.label("make"), w.label("skip")
            w.branch(self.all_of([small, *fine]), make, skip)
            w.open(make)
            self.array(number, sizes, block, word)
            w.open(skip)
            w.open(done)
        return block

    def size(self, dim: Any) -> Size:
        """A size of a result from the symbols: an int, a name, or (name, factor, offset)."""
        if isinstance(dim, int):
            return dim
        if isinstance(dim, str):
            return self.symbols[dim]
        name, factor, offset = dim
        return self.w.add(self.w.mul(factor, self.symbols[name]), offset)

    def array(self, number: int, sizes: Sequence[Size], block: str, word: int) -> None:
        """A NumPy array for a result; where none can be made, the code makes a block itself."""
        w = self.w
        shape = self.call("PyTuple_New", "ptr", ("i64", len(sizes)))
        got, skip = w.label("got"), w.label("none")
        w.branch(w.emit(icmp("eq", "ptr", shape, "null")), skip, got)
        w.open(got)
        for axis, size in enumerate(sizes):
            item = self.call("PyLong_FromLongLong", "ptr", ("i64", size))
            self.call("PyTuple_SetItem", "i32", ("ptr", shape), ("i64", axis), ("ptr", item))
        operands = w.alloca("ptr", 2)
        w.do(store("ptr", shape, operands))
        dtype = self.load("ptr", self.table, 8 * (len(TABLE) + number))
        w.do(store("ptr", dtype, self.at(operands, 8)))
        made = self.vectorcall(self.entry_of("empty"), operands, 2)
        self.call("Py_DecRef", "void", ("ptr", shape))
        whole = w.label("made")
        w.branch(w.emit(icmp("eq", "ptr", made, "null")), skip, whole)
        w.open(whole)
        w.do(store("ptr", made, self.made[number]))
        view = w.alloca("i64", _VIEW_WORDS)
        status = self.call("PyObject_GetBuffer", "i32", ("ptr", made), ("ptr", view), ("i32", _C_CONTIGUOUS))
        seen = w.label("seen")
        w.branch(w.emit(icmp("eq", "i32", status, "0")), seen, skip)
        w.open(seen)
        place = self.load("i64", view, _BUF)
        self.store_word(block, word, place)
        w.do(store("i64", place, self.places[number]))
        self.call("PyBuffer_Release", "void", ("ptr", view))
        done = w.label("done")
        w.jump(done)
        w.open(skip)
        self.call("PyErr_Clear", "void")
        w.open(done)

    def vectorcall(self, function: str, operands: str, count: int) -> str:
        """Call a Python object."""
        return self.call(
            "PyObject_Vectorcall", "ptr", ("ptr", function), ("ptr", operands), ("i64", count), ("ptr", "null")
        )

    def run(self, frame: str, words: str, results: str) -> None:
        """Call the entry, without the GIL when there is much to do; a failure is raised by Python."""
        w = self.w
        total: Size = self.constant_bytes
        for argument in self.arguments:
            total = w.add(total, argument.length)
        state = w.alloca("ptr")
        long, go = w.label("long"), w.label("go")
        w.do(store("ptr", "null", state))
        big = w.emit(icmp("ugt", "i64", total, HOLDS_GIL))
        w.branch(big, long, go)
        w.open(long)
        w.do(store("ptr", self.call("PyEval_SaveThread", "ptr"), state))
        w.open(go)
        spelled = self.module.declare(self.signature["symbol"], "i32", ("ptr", "ptr", "ptr"))
        status = w.emit(call("i32", spelled, [("ptr", frame), ("ptr", words), ("ptr", results)]))
        back, on = w.label("back"), w.label("on")
        w.branch(big, back, on)
        w.open(back)
        self.call("PyEval_RestoreThread", "void", ("ptr", w.emit(load("ptr", state))))
        w.open(on)
        self.give_back(len(self.arguments))
        bad, good = w.label("failed"), w.label("good")
        self.status, self.frame = status, frame
        w.branch(w.emit(icmp("eq", "i32", status, "0")), good, bad)
        w.open(bad)
        w.jump("failure")
        w.open(good)

    def finish(self, results: str) -> None:
        """Give back the result, or say why there is none."""
        w = self.w
        if not self.results:
            self.end()
            none = self.entry_of("none")
            self.call("Py_IncRef", "void", ("ptr", none))
            w.ret("ptr", none)
        else:
            self.give_results(results)
        w.open("failure")
        for slot in self.made:
            self.call("Py_DecRef", "void", ("ptr", w.emit(load("ptr", slot))))
        word = w.emit(cast("zext", "i32", self.status, "i64"))
        place = w.emit(cast("ptrtoint", "ptr", self.frame, "i64"))
        w.ret("ptr", self.call_with_numbers("failure", [word, place]))

    def give_results(self, results: str) -> None:
        """The arrays that were made, when all results are in them; else what `wrap` makes of the words."""
        w = self.w
        arrays = [w.emit(load("ptr", slot)) for slot in self.made]
        conditions = []
        for place, (_, _, word) in zip(self.places, self.results, strict=True):
            own = w.emit(load("i64", place))
            conditions.append(w.emit(icmp("ne", "i64", own, "0")))
            conditions.append(w.emit(icmp("eq", "i64", own, self.load("i64", results, 8 * word))))
        direct, wrap = w.label("direct"), w.label("wrap")
        w.branch(self.all_of(conditions), direct, wrap)
        w.open(direct)
        self.end()
        if self.signature["result"][0] == "tensor":
            w.ret("ptr", arrays[0])
        else:
            made_tuple = self.call("PyTuple_New", "ptr", ("i64", len(arrays)))
            for index, array in enumerate(arrays):
                self.call("PyTuple_SetItem", "i32", ("ptr", made_tuple), ("i64", index), ("ptr", array))
            w.ret("ptr", made_tuple)
        w.open(wrap)
        place = w.emit(cast("ptrtoint", "ptr", results, "i64"))
        none = self.entry_of("none")
        items = [w.emit(select("i1", w.emit(icmp("eq", "ptr", a, "null")), "ptr", none, a)) for a in arrays]
        slot = w.alloca("ptr")
        asked, fresh, wrapped = w.label("asked"), w.label("unasked"), w.label("wrapped")
        out = w.emit(load("ptr", self.out))
        w.branch(w.emit(icmp("eq", "ptr", out, "null")), fresh, asked)
        w.open(asked)
        w.do(store("ptr", self.call_with_numbers("into", [place, self.handle], [out, *items]), slot))
        w.jump(wrapped)
        w.open(fresh)
        w.do(store("ptr", self.call_with_numbers("wrap", [place, self.handle], items), slot))
        w.open(wrapped)
        value = w.emit(load("ptr", slot))
        for array in arrays:
            self.call("Py_DecRef", "void", ("ptr", array))
        w.ret("ptr", value)

    def call_with_numbers(self, slot: str, numbers: Sequence[str], objects: Sequence[str] = ()) -> str:
        """Call a Python function of the table with numbers, then objects."""
        w = self.w
        count = len(numbers) + len(objects)
        operands = w.alloca("ptr", count)
        made = [self.call("PyLong_FromLongLong", "ptr", ("i64", number)) for number in numbers]
        for index, item in enumerate([*made, *objects]):
            w.do(store("ptr", item, self.at(operands, 8 * index)))
        value = self.vectorcall(self.entry_of(slot), operands, count)
        for item in made:
            self.call("Py_DecRef", "void", ("ptr", item))
        return value

    def slow_path(self) -> None:
        """The Python function, with the arguments as they came; before it, what gives back the buffers taken so far."""
        w = self.w
        for taken in range(self.most_taken, 0, -1):
            w.open(f"release.{taken}")
            self.call("PyBuffer_Release", "void", ("ptr", self.views[taken - 1]))
        w.open("slow_path")
        operands = (("ptr", self.entry_of("slow")), ("ptr", "%arguments"), ("i64", "%count"), ("ptr", "%names"))
        w.ret("ptr", self.call("PyObject_Vectorcall", "ptr", *operands))
