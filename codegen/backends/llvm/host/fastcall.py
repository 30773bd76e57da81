"""Calls from Python as machine code: CPython's vectorcall convention, NumPy's arrays as they lie in memory.

    PyObject *weft.python.call(self, PyObject *const *arguments, intptr_t count, PyObject *names)

takes the arguments that most calls pass: as many NumPy arrays as there are parameters, dense, writable, aligned, of
the right dtypes and sizes, and such arrays as `out=`. For everything else it calls the Python function of
`CompiledFunction`, which accepts or refuses it with its messages; so nothing is checked less here, only sooner.
Results whose sizes follow from those of the arguments are NumPy arrays that the code writes into, large ones and those
of other sizes blocks of its own; of these, small ones are copied. The GIL is released for calls that see much data.

It is the same code for all functions: what one takes and gives stands in its table, whose address is the first item of
`self` (`weft.runtime.programs.fastcall`). So it is compiled once, and a program takes no longer to compile for it.

A function of a program that calls Python functions has a record of each call: `begin` makes it and gives its handle,
`end` forgets it (so do `failure`, `wrap` and `into`, which come last where they come).
"""

from __future__ import annotations

from weft.codegen.backends.llvm.asm.function import FunctionWriter, Size
from weft.codegen.backends.llvm.asm.instructions import alloca, call, cast, icmp, load, select, store
from weft.codegen.backends.llvm.asm.module import ModuleWriter
from weft.codegen.backends.llvm.host.fast_arguments import Arguments, Memory
from weft.codegen.backends.llvm.host.python_calls import PythonCalls
from weft.runtime.abi.frame import CALLBACK, CONSTANTS, FRAME_WORDS, HANDLE, OUTPUTS, PARALLEL, POLL, VALUES
from weft.runtime.programs.fastcall import CODE, OBJECT

__all__ = ["emit_fast_calls"]

_PARAMS = [("ptr", "self"), ("ptr", "arguments"), ("i64", "count"), ("ptr", "names")]
LARGE = 256 << 10
"""Results from so many bytes on are blocks of the executable, whose memory is used again: to wrap one takes longer than
to get smaller memory, for larger one the system is asked each time."""
COPIED = 16 << 10
"""Results of fewer bytes whose sizes the program finds are copied into arrays."""
HOLDS_GIL = 32 << 10
"""Calls that see less data than this keep the GIL: they end sooner than it changes hands."""


def emit_fast_calls(module: ModuleWriter) -> None:
    """Emit the function through which Python calls those of a program."""
    _Call(module).emit()


class _Record:
    """The record of a call for the Python functions that the program calls, if it calls any."""

    def __init__(self, python: PythonCalls, given: Arguments) -> None:
        self.python, self.given = python, given
        self.calls_out = python.is_set("calls out")
        self.handle = python.variable(0)

    def begin(self, frame: str) -> None:
        """Make the record of a call for the Python functions that the program calls."""
        python, w = self.python, self.python.w
        with python.where(self.calls_out):
            made = python.vectorcall(python.entry_of("begin"), "null", 0)
            good = w.label("record")
            w.branch(python.is_null(made), "lost", good)
            w.open(good)
            handle = python.call("PyLong_AsLongLong", "i64", ("ptr", made))
            python.forget(made)
            w.do(store("i64", handle, self.handle))
            python.store_word(frame, HANDLE, handle)
            python.store_word(frame, CALLBACK, python.entry_of("callback", "i64"))

    def end(self) -> None:
        """Forget the record of the call."""
        python = self.python
        with python.where(self.calls_out):
            operands = python.w.alloca("ptr")
            number = python.number(python.value(self.handle))
            python.w.do(store("ptr", number, operands))
            python.forget(python.vectorcall(python.entry_of("end"), operands, 1))
            python.forget(number)


class _Results:
    """The arrays of the results; `kept` holds the array made for each, or null, `places` its address."""

    def __init__(self, given: Arguments, record: _Record) -> None:
        self.python, self.w, self.memory = given.python, given.w, given.memory
        self.given, self.record, self.count = given, record, given.results

    def make_results(self) -> None:
        """The words of the results, and arrays for those that are small and whose sizes follow."""
        python, w, memory = self.python, self.w, self.memory
        python.store_word(memory.results, 0, 0)
        with python.each(self.count) as number:
            array = python.array_at("array of results", number)
            words = python.word_at(memory.results, python.field(array, "word"))
            place = python.load_word(memory.places, number)
            python.store_word(words, 0, place)
            python.store_word(words, 1, 0)
            with python.where(python.differs(python.field(array, "follows"))):
                largest = self._sizes(array, words)
                small = w.emit(icmp("ult", "i64", python.value(largest), LARGE))
                there = python.load_word(memory.kept, number, "ptr")
                with python.where(python.all_of(small, python.is_null(there))):
                    self.array(array, number, words)

    def _sizes(self, array: str, words: str) -> str:
        """Write the sizes of a result that follow from the arguments; where the most of them and its bytes stands."""
        python, w = self.python, self.w
        bytes_, largest = python.variable(python.field(array, "item bytes")), python.variable(0)
        with python.each(python.field(array, "rank")) as axis:
            size = self.given.size(array, axis)
            python.store_word(words, w.add(axis, 2), size)
            self._grow(bytes_, largest, size)
        self._most(largest, python.value(bytes_))
        return largest

    def _grow(self, bytes_: str, largest: str, size: str) -> None:
        """Take a size into account: of bytes, and of the largest that was seen."""
        self.w.do(store("i64", self.w.mul(self.python.value(bytes_), size), bytes_))
        self._most(largest, size)

    def _most(self, largest: str, size: str) -> None:
        before = self.python.value(largest)
        more = self.w.emit(icmp("ugt", "i64", size, before))
        self.w.do(store("i64", self.w.emit(select("i1", more, "i64", size, before)), largest))

    def array(self, array: str, number: str, words: str) -> None:
        """A NumPy array for a result; where none can be made, the code makes a block itself."""
        python, w = self.python, self.w
        some, none, on = w.label("some"), w.label("none"), w.label("made")
        dtype = python.field(array, "dtype", "ptr")
        python.call("Py_IncRef", "void", ("ptr", dtype))  # which the next call takes over
        operands = [("i32", w.emit(cast("trunc", "i64", python.field(array, "rank"), "i32")))]
        operands += [("ptr", python.word_at(words, 2)), ("ptr", dtype), ("i32", "0")]
        made = w.emit(call("ptr", python.entry_of("empty"), operands))
        w.branch(python.is_null(made), none, some)
        w.open(some)
        place = python.load("i64", made, OBJECT["data"])
        python.store_word(words, 0, place)
        python.store_word(self.memory.places, number, place)
        python.store_word(self.memory.kept, number, made, "ptr")
        w.jump(on)
        w.open(none)
        python.call("PyErr_Clear", "void")
        w.open(on)

    def copy_small(self) -> None:
        """Small results whose sizes the program found as NumPy arrays: to copy them takes less than to wrap blocks."""
        python, memory = self.python, self.memory
        with python.where(python.is_null(python.value(self.given.out, "ptr"))), python.each(self.count) as number:
            array = python.array_at("array of results", number)
            words = python.word_at(memory.results, python.field(array, "word"))
            found = self.w.emit(icmp("eq", "i64", python.field(array, "follows"), 0))
            owned = python.differs(python.load_word(words, 1))
            with python.where(python.all_of(found, owned)):
                self._copy(array, number, words)

    def _copy(self, array: str, number: str, words: str) -> None:
        """The array of a result that is small, instead of the block that it is in."""
        python, w = self.python, self.w
        start, owner = python.load_word(words, 0), python.load_word(words, 1)
        bytes_, largest = python.variable(python.field(array, "item bytes")), python.variable(0)
        with python.each(python.field(array, "rank")) as axis:
            self._grow(bytes_, largest, python.load_word(words, w.add(axis, 2)))
        self._most(largest, python.value(bytes_))
        with python.where(w.emit(icmp("ult", "i64", python.value(largest), COPIED))):
            self.array(array, number, words)
            place = python.load_word(self.memory.places, number)
            with python.where(python.differs(place)):
                target, source, block = (python.as_pointer(each) for each in (place, start, owner))
                length = python.value(bytes_)
                python.call("memcpy", "ptr", ("ptr", target), ("ptr", source), ("i64", length))
                python.call("weft.release", "void", ("ptr", block))
                python.store_word(words, 1, 0)

    def give_results(self) -> None:
        """The arrays that were made, when all results are in them; else what `wrap` makes of the words."""
        python, w, memory = self.python, self.w, self.memory
        self.copy_small()
        wrap, direct, several = w.label("wrap"), w.label("direct"), w.label("several")
        with python.each(self.count) as number:
            place = python.load_word(memory.places, number)
            word = python.field(python.array_at("array of results", number), "word")
            same = w.emit(icmp("eq", "i64", place, python.load_word(memory.results, word)))
            good = w.label("good")
            w.branch(python.all_of(python.differs(place), same), good, wrap)
            w.open(good)
        self.record.end()
        w.branch(python.is_set("is tuple"), several, direct)
        w.open(direct)
        w.ret("ptr", python.load_word(memory.kept, 0, "ptr"))
        w.open(several)
        self._tuple()
        w.open(wrap)
        self._wrap()

    def _tuple(self) -> None:
        """Return a tuple of the arrays."""
        python, w = self.python, self.w
        made, good = python.call("PyTuple_New", "ptr", ("i64", self.count)), w.label("some")
        w.branch(python.is_null(made), "lost", good)
        w.open(good)
        with python.each(self.count) as number:
            item = python.load_word(self.memory.kept, number, "ptr")
            python.call("PyTuple_SetItem", "i32", ("ptr", made), ("i64", number), ("ptr", item))
        w.ret("ptr", made)

    def _wrap(self) -> None:
        """Return what Python makes of the words of the results, in arrays of the caller where there are some."""
        python, w = self.python, self.w
        out = python.value(self.given.out, "ptr")
        fresh = python.is_null(out)
        numbers = [python.number(python.as_word(self.memory.results)), python.number(python.value(self.record.handle))]
        operands = w.emit(alloca("ptr", 8, w.add(self.count, 3)))
        for index, item in enumerate([*numbers, out]):
            python.store_word(operands, index, item, "ptr")
        # The arrays follow the numbers, or `out`.
        arrays = python.word_at(operands, w.emit(select("i1", fresh, "i64", 2, 3)))
        none = python.entry_of("none")
        with python.each(self.count) as number:
            item = python.load_word(self.memory.kept, number, "ptr")
            shown = w.emit(select("i1", python.is_null(item), "ptr", none, item))
            python.store_word(arrays, number, shown, "ptr")
        count = w.add(self.count, w.emit(select("i1", fresh, "i64", 2, 3)))
        function = w.emit(select("i1", fresh, "ptr", python.entry_of("wrap"), python.entry_of("into")))
        value = python.vectorcall(function, operands, count)
        for item in numbers:
            python.forget(item)
        self.forget()
        w.ret("ptr", value)

    def forget(self) -> None:
        """Give back the arrays."""
        with self.python.each(self.count) as number:
            self.python.forget(self.python.load_word(self.memory.kept, number, "ptr"))


class _Call:
    """The function itself."""

    def __init__(self, module: ModuleWriter) -> None:
        self.w = FunctionWriter(module, CODE, "ptr", _PARAMS, "nounwind")
        self.python = PythonCalls(module, self.w, "")
        place = self.python.call("PyTuple_GetItem", "ptr", ("ptr", "%self"), ("i64", 0))
        self.python.table = self.python.as_pointer(self.python.call("PyLong_AsLongLong", "i64", ("ptr", place)))

    def emit(self) -> None:
        """Emit all of it."""
        python, w = self.python, self.w
        count, results = python.entry_of("arguments", "i64"), python.entry_of("results", "i64")
        given = Arguments(python, self._memory(count, results), count, results)
        record = _Record(python, given)
        made = _Results(given, record)
        given.unless(w.emit(icmp("eq", "i64", "%count", count)))
        given.find_out()
        given.take()
        given.take_out()
        self._fill_frame(given.memory.frame, results)
        made.make_results()
        record.begin(given.memory.frame)
        self._run(given)
        self._finish(given, made, record)
        given.slow_path()
        w.finish()

    def _memory(self, count: str, results: str) -> Memory:
        """Blocks on the stack; those that are empty at first are one after the other."""
        python, w = self.python, self.w
        words = {
            "kept": results,
            "places": results,
            "frame": FRAME_WORDS,
            "symbols": python.entry_of("symbols", "i64"),
            "arguments": python.entry_of("argument words", "i64"),
            "results": python.entry_of("result words", "i64"),
            "ends": w.mul(w.add(count, results), 2),
        }
        starts: dict[str, Size] = {}
        total: Size = 0
        for name, size in words.items():
            starts[name] = total
            total = w.add(total, size)
        block = w.emit(alloca("i64", 16, total))
        empty = w.mul(w.add(w.mul(results, 2), VALUES), 8)
        python.call("memset", "ptr", ("ptr", block), ("i32", 0), ("i64", empty))
        return Memory(**{name: python.word_at(block, start) for name, start in starts.items()})

    def _fill_frame(self, frame: str, results: str) -> None:
        """The words of the frame that are not 0."""
        python, w = self.python, self.w
        for word, entry in ((CONSTANTS, "constants"), (PARALLEL, "parallel"), (POLL, "poll")):
            python.store_word(frame, word, python.entry_of(entry, "i64"))
        python.store_word(frame, OUTPUTS, w.emit(cast("zext", "i1", python.differs(results), "i64")))

    def _run(self, given: Arguments) -> None:
        """Call the entry, without the GIL when there is much to do; a failure is raised by Python."""
        python, w, memory = self.python, self.w, given.memory
        state = python.variable("null", "ptr")
        big = w.emit(icmp("ugt", "i64", python.value(given.length), HOLDS_GIL))
        with python.where(big):
            w.do(store("ptr", python.call("PyEval_SaveThread", "ptr"), state))
        operands = [("ptr", memory.frame), ("ptr", memory.arguments), ("ptr", memory.results)]
        status = w.emit(call("i32", python.entry_of("entry"), operands))
        with python.where(big):
            python.call("PyEval_RestoreThread", "void", ("ptr", w.emit(load("ptr", state))))
        self.status = status

    def _finish(self, given: Arguments, made: _Results, record: _Record) -> None:
        """Give back the result, or say why there is none."""
        python, w = self.python, self.w
        bad, good, some, nothing = (w.label(name) for name in ("failed", "good", "some", "nothing"))
        w.branch(w.emit(icmp("eq", "i32", self.status, "0")), good, bad)
        w.open(good)
        w.branch(python.differs(given.results), some, nothing)
        w.open(nothing)
        record.end()
        none = python.entry_of("none")
        python.call("Py_IncRef", "void", ("ptr", none))
        w.ret("ptr", none)
        w.open(some)
        made.give_results()
        w.open(bad)
        operands = w.alloca("ptr", 2)
        words = (w.emit(cast("zext", "i32", self.status, "i64")), python.as_word(given.memory.frame))
        numbers = [python.number(word) for word in words]
        for index, number in enumerate(numbers):
            python.store_word(operands, index, number, "ptr")
        made.forget()
        value = python.vectorcall(python.entry_of("failure"), operands, 2)
        for number in numbers:
            python.forget(number)
        w.ret("ptr", value)
        w.open("lost")
        made.forget()
        w.ret("ptr", "null")
