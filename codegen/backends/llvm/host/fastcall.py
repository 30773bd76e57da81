"""Calls from Python as machine code: CPython's vectorcall convention, arrays read through the buffer protocol.

    PyObject *weft.python.<name>(self, PyObject *const *arguments, intptr_t count, PyObject *names)

takes the arguments that most calls pass: as many NumPy arrays as there are parameters, dense, writable, aligned, of
the right dtypes and sizes, and such arrays as `out=`. For everything else it calls the Python function of
`CompiledFunction`, which accepts or refuses it with its messages; so nothing is checked less here, only sooner.
Results whose sizes follow from those of the arguments are NumPy arrays that the code writes into, large ones and those
of other sizes blocks of its own; of these, small ones are copied. The GIL is released for calls that see much data.

The table `weft.python.<name>.table` (words, filled in when the code is loaded) holds what it needs of the process:

    table ::= slow path, failure, wrap, numpy.empty, None, type of arrays, constants, parallel, into, "out",
              type of tuples, begin, end, callback, dtype of each result

A program that calls Python functions has a record of each call: `begin` makes it and gives its handle, `end` forgets it
(so do `failure`, `wrap` and `into`, which come last where they come).
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.codegen.backends.llvm.asm.function import FunctionWriter, Size
from weft.codegen.backends.llvm.asm.instructions import call, cast, icmp, load, select, store
from weft.codegen.backends.llvm.asm.module import ModuleWriter
from weft.codegen.backends.llvm.host.fast_arguments import BUF, C_CONTIGUOUS, VIEW_WORDS, Arguments, linear_size
from weft.codegen.backends.llvm.host.python_calls import PythonCalls
from weft.runtime.abi import types as abi
from weft.runtime.abi.frame import CALLBACK, CONSTANTS, FRAME_WORDS, HANDLE, OUTPUTS, PARALLEL, POLL, VALUES
from weft.runtime.abi.scalars import storage
from weft.runtime.programs.fastcall import TABLE, ResultTensor, fast_arguments, fast_results

__all__ = ["emit_fast_call"]

_PARAMS = [("ptr", "self"), ("ptr", "arguments"), ("i64", "count"), ("ptr", "names")]
LARGE = 64 << 10
"""Results from so many bytes on are blocks of the executable, whose memory is used again."""
COPIED = 16 << 10
"""Results of fewer bytes whose sizes the program finds are copied into arrays."""
HOLDS_GIL = 32 << 10
"""Calls that see less data than this keep the GIL: they end sooner than it changes hands."""


def emit_fast_call(
    module: ModuleWriter, signature: abi.Signature, constant_bytes: int, calls_out: bool = False
) -> bool:
    """Emit the function for a signature; False where its parameters or results are not of the kind that it takes."""
    arrays = fast_arguments(signature)
    if arrays is None:
        return False
    name = f"weft.python.{signature.name}"
    python = PythonCalls(module, FunctionWriter(module, name, "ptr", _PARAMS, "nounwind"), f'@"{name}.table"')
    tensors = fast_results(signature)
    given = Arguments(python, arrays, tensors, isinstance(signature.result, abi.Tuple))
    record = _Record(python, given, calls_out)
    _Call(given, _Results(given, tensors, record), record, signature.symbol, constant_bytes).emit()
    return True


class _Record:
    """The record of a call for the Python functions that the program calls, if it calls any."""

    def __init__(self, python: PythonCalls, given: Arguments, calls_out: bool) -> None:
        self.python, self.given, self.calls_out = python, given, calls_out
        self.handle = "0"

    def begin(self, frame: str, made_arrays: list[str]) -> None:
        """Make the record of a call for the Python functions that the program calls."""
        w = self.python.w
        made = self.python.vectorcall(self.python.entry_of("begin"), "null", 0)
        bad, good = w.label("no_record"), w.label("record")
        w.branch(w.emit(icmp("eq", "ptr", made, "null")), bad, good)
        w.open(bad)
        self.given.give_back(len(self.given.arguments))
        for slot in made_arrays:
            self.python.call("Py_DecRef", "void", ("ptr", w.emit(load("ptr", slot))))
        w.ret("ptr", "null")
        w.open(good)
        self.handle = self.python.call("PyLong_AsLongLong", "i64", ("ptr", made))
        self.python.call("Py_DecRef", "void", ("ptr", made))
        self.python.store_word(frame, HANDLE, self.handle)
        self.python.store_word(frame, CALLBACK, self.python.load("i64", self.python.table, 8 * TABLE["callback"]))

    def end(self) -> None:
        """Forget the record of the call."""
        if self.calls_out:
            self.python.call("Py_DecRef", "void", ("ptr", self.python.call_with_numbers("end", [self.handle])))


class _Results:
    """The arrays of the results; `made` holds the array made for each, or null."""

    def __init__(self, given: Arguments, tensors: Sequence[ResultTensor], record: _Record) -> None:
        self.python, self.w = given.python, given.w
        self.given, self.tensors, self.record = given, tensors, record
        self.made: list[str] = []

    def make_results(self) -> str:
        """The words of the results; `made` and `places` hold the array made for each (or null) and its address."""
        w = self.w
        count = max([1, *(result.word + 2 + len(result.dims) for result in self.tensors)])
        block = w.alloca("i64", count)
        if not self.tensors:
            self.python.store_word(block, 0, 0)
        for number, result in enumerate(self.tensors):
            word = result.word
            self.made.append(self.given.kept[number])
            self.python.store_word(block, word + 1, 0)
            if not result.follows(self.given.symbols):  # the program finds its sizes, and makes it
                self.python.store_word(block, word, 0)
                w.do(store("i64", "0", self.given.places[number]))
                continue
            sizes = [linear_size(w, dim, self.given.symbols) for dim in result.dims]
            bytes_: Size = storage(result.dtype).itemsize
            for axis, size in enumerate(sizes):
                self.python.store_word(block, word + 2 + axis, size)
                bytes_ = w.mul(bytes_, size)
            own, fresh, done = w.label("own"), w.label("fresh"), w.label("placed")
            there = w.emit(icmp("ne", "ptr", w.emit(load("ptr", self.made[-1])), "null"))
            w.branch(there, own, fresh)
            w.open(own)
            self.python.store_word(block, word, w.emit(load("i64", self.given.places[number])))
            w.jump(done)
            w.open(fresh)
            w.do(store("i64", "0", self.given.places[number]))
            self.python.store_word(block, word, 0)
            small = w.emit(icmp("ult", "i64", bytes_, LARGE))
            fine = [w.emit(icmp("ult", "i64", size, LARGE)) for size in sizes]
            make, skip = w.label("make"), w.label("skip")
            w.branch(self.python.all_of([small, *fine]), make, skip)
            w.open(make)
            self.array(number, sizes, block, word)
            w.open(skip)
            w.open(done)
        return block

    def array(self, number: int, sizes: Sequence[Size], block: str, word: int) -> None:
        """A NumPy array for a result; where none can be made, the code makes a block itself."""
        w = self.w
        shape = self.python.call("PyTuple_New", "ptr", ("i64", len(sizes)))
        got, skip = w.label("got"), w.label("none")
        w.branch(w.emit(icmp("eq", "ptr", shape, "null")), skip, got)
        w.open(got)
        for axis, size in enumerate(sizes):
            item = self.python.call("PyLong_FromLongLong", "ptr", ("i64", size))
            self.python.call("PyTuple_SetItem", "i32", ("ptr", shape), ("i64", axis), ("ptr", item))
        operands = w.alloca("ptr", 2)
        w.do(store("ptr", shape, operands))
        dtype = self.python.load("ptr", self.python.table, 8 * (len(TABLE) + number))
        w.do(store("ptr", dtype, self.python.at(operands, 8)))
        made = self.python.vectorcall(self.python.entry_of("empty"), operands, 2)
        self.python.call("Py_DecRef", "void", ("ptr", shape))
        whole = w.label("made")
        w.branch(w.emit(icmp("eq", "ptr", made, "null")), skip, whole)
        w.open(whole)
        w.do(store("ptr", made, self.made[number]))
        view = w.alloca("i64", VIEW_WORDS)
        status = self.python.call("PyObject_GetBuffer", "i32", ("ptr", made), ("ptr", view), ("i32", C_CONTIGUOUS))
        seen = w.label("seen")
        w.branch(w.emit(icmp("eq", "i32", status, "0")), seen, skip)
        w.open(seen)
        place = self.python.load("i64", view, BUF)
        self.python.store_word(block, word, place)
        w.do(store("i64", place, self.given.places[number]))
        self.python.call("PyBuffer_Release", "void", ("ptr", view))
        done = w.label("done")
        w.jump(done)
        w.open(skip)
        self.python.call("PyErr_Clear", "void")
        w.open(done)

    def copy_small(self, results: str) -> None:
        """Small results whose sizes the program found as NumPy arrays: to copy them takes less than to wrap blocks."""
        w = self.w
        fresh = w.emit(icmp("eq", "ptr", w.emit(load("ptr", self.given.out)), "null"))
        for number, result in enumerate(self.tensors):
            if result.follows(self.given.symbols):
                continue
            start, owner, *sizes = (
                self.python.load("i64", results, 8 * (result.word + i)) for i in range(2 + len(result.dims))
            )
            bytes_: Size = storage(result.dtype).itemsize
            for size in sizes:
                bytes_ = w.mul(bytes_, size)
            few = [w.emit(icmp("ult", "i64", each, COPIED)) for each in (bytes_, *sizes)]
            copy, fill, skip = w.label("copy"), w.label("fill"), w.label("large")
            w.branch(self.python.all_of([fresh, w.emit(icmp("ne", "i64", owner, 0)), *few]), copy, skip)
            w.open(copy)
            self.array(number, sizes, results, result.word)
            place = w.emit(load("i64", self.given.places[number]))
            w.branch(w.emit(icmp("ne", "i64", place, 0)), fill, skip)
            w.open(fill)
            block, target, source = (w.emit(cast("inttoptr", "i64", each, "ptr")) for each in (owner, place, start))
            self.python.call("memcpy", "ptr", ("ptr", target), ("ptr", source), ("i64", bytes_))
            self.python.call("weft.release", "void", ("ptr", block))
            self.python.store_word(results, result.word + 1, 0)
            w.open(skip)

    def give_results(self, results: str) -> None:
        """The arrays that were made, when all results are in them; else what `wrap` makes of the words."""
        w = self.w
        self.copy_small(results)
        arrays = [w.emit(load("ptr", slot)) for slot in self.made]
        conditions = []
        for place, result in zip(self.given.places, self.tensors, strict=True):
            own = w.emit(load("i64", place))
            conditions.append(w.emit(icmp("ne", "i64", own, "0")))
            conditions.append(w.emit(icmp("eq", "i64", own, self.python.load("i64", results, 8 * result.word))))
        direct, wrap = w.label("direct"), w.label("wrap")
        w.branch(self.python.all_of(conditions), direct, wrap)
        w.open(direct)
        self.record.end()
        if not self.given.several:
            w.ret("ptr", arrays[0])
        else:
            made_tuple = self.python.call("PyTuple_New", "ptr", ("i64", len(arrays)))
            for index, array in enumerate(arrays):
                self.python.call("PyTuple_SetItem", "i32", ("ptr", made_tuple), ("i64", index), ("ptr", array))
            w.ret("ptr", made_tuple)
        w.open(wrap)
        place = w.emit(cast("ptrtoint", "ptr", results, "i64"))
        none = self.python.entry_of("none")
        items = [w.emit(select("i1", w.emit(icmp("eq", "ptr", a, "null")), "ptr", none, a)) for a in arrays]
        slot = w.alloca("ptr")
        asked, fresh, wrapped = w.label("asked"), w.label("unasked"), w.label("wrapped")
        out = w.emit(load("ptr", self.given.out))
        w.branch(w.emit(icmp("eq", "ptr", out, "null")), fresh, asked)
        w.open(asked)
        w.do(store("ptr", self.python.call_with_numbers("into", [place, self.record.handle], [out, *items]), slot))
        w.jump(wrapped)
        w.open(fresh)
        w.do(store("ptr", self.python.call_with_numbers("wrap", [place, self.record.handle], items), slot))
        w.open(wrapped)
        value = w.emit(load("ptr", slot))
        for array in arrays:
            self.python.call("Py_DecRef", "void", ("ptr", array))
        w.ret("ptr", value)


class _Call:
    """The function of one signature."""

    def __init__(self, given: Arguments, results: _Results, record: _Record, symbol: str, constant_bytes: int) -> None:
        self.python, self.w = given.python, given.w
        self.given, self.results, self.record = given, results, record
        self.symbol, self.constant_bytes = symbol, constant_bytes
        self.status = self.frame = ""

    def emit(self) -> None:
        """Emit all of it."""
        w = self.w
        size = len(TABLE) + len(self.results.tensors)
        self.python.module.add_global(f"{self.python.table} = global [{size} x i64] zeroinitializer, align 8")
        self.given.unless(w.emit(icmp("eq", "i64", "%count", len(self.given.arrays))), 0)
        if self.results.tensors:
            self.given.find_out()
        else:
            self.given.unless(w.emit(icmp("eq", "ptr", "%names", "null")), 0)
        objects = [self.python.load("ptr", "%arguments", 8 * i) for i in range(len(self.given.arrays))]
        kind = self.python.entry_of("array type")
        for item in objects:
            own = self.python.load("ptr", item, 8)  # ob_type, as `weft.runtime.programs.fastcall` has made sure
            self.given.unless(w.emit(icmp("eq", "ptr", own, kind)), 0)
        for position, (item, array) in enumerate(zip(objects, self.given.arrays, strict=True)):
            self.given.argument(position, item, array.dtype, array.dims, bind=True)
        self.given.check_overlap()
        if self.results.tensors:
            self.given.take_out()
        words = self.given.words()
        frame = w.alloca("i64", FRAME_WORDS)
        for word in range(VALUES):
            self.python.store_word(frame, word, 0)
        self.python.store_word(frame, CONSTANTS, self.python.load("i64", self.python.table, 8 * TABLE["constants"]))
        self.python.store_word(frame, PARALLEL, self.python.load("i64", self.python.table, 8 * TABLE["parallel"]))
        self.python.store_word(frame, POLL, self.python.load("i64", self.python.table, 8 * TABLE["poll"]))
        self.python.store_word(frame, OUTPUTS, 1 if self.results.tensors else 0)
        results = self.results.make_results()
        if self.record.calls_out:
            self.record.begin(frame, self.results.made)
        self.run(frame, words, results)
        self.finish(results)
        self.slow_path()
        w.finish()

    def run(self, frame: str, words: str, results: str) -> None:
        """Call the entry, without the GIL when there is much to do; a failure is raised by Python."""
        w = self.w
        total: Size = self.constant_bytes
        for argument in self.given.arguments:
            total = w.add(total, argument.length)
        state = w.alloca("ptr")
        long, go = w.label("long"), w.label("go")
        w.do(store("ptr", "null", state))
        big = w.emit(icmp("ugt", "i64", total, HOLDS_GIL))
        w.branch(big, long, go)
        w.open(long)
        w.do(store("ptr", self.python.call("PyEval_SaveThread", "ptr"), state))
        w.open(go)
        spelled = self.python.module.declare(self.symbol, "i32", ("ptr", "ptr", "ptr"))
        status = w.emit(call("i32", spelled, [("ptr", frame), ("ptr", words), ("ptr", results)]))
        back, on = w.label("back"), w.label("on")
        w.branch(big, back, on)
        w.open(back)
        self.python.call("PyEval_RestoreThread", "void", ("ptr", w.emit(load("ptr", state))))
        w.open(on)
        self.given.give_back(len(self.given.arguments))
        bad, good = w.label("failed"), w.label("good")
        self.status, self.frame = status, frame
        w.branch(w.emit(icmp("eq", "i32", status, "0")), good, bad)
        w.open(bad)
        w.jump("failure")
        w.open(good)

    def finish(self, results: str) -> None:
        """Give back the result, or say why there is none."""
        w = self.w
        if not self.results.tensors:
            self.record.end()
            none = self.python.entry_of("none")
            self.python.call("Py_IncRef", "void", ("ptr", none))
            w.ret("ptr", none)
        else:
            self.results.give_results(results)
        w.open("failure")
        for slot in self.results.made:
            self.python.call("Py_DecRef", "void", ("ptr", w.emit(load("ptr", slot))))
        word = w.emit(cast("zext", "i32", self.status, "i64"))
        place = w.emit(cast("ptrtoint", "ptr", self.frame, "i64"))
        w.ret("ptr", self.python.call_with_numbers("failure", [word, place]))

    def slow_path(self) -> None:
        """The Python function, with the arguments as they came; before it, what gives back the buffers taken so far."""
        w = self.w
        for taken in range(self.given.most_taken, 0, -1):
            w.open(f"release.{taken}")
            self.python.call("PyBuffer_Release", "void", ("ptr", self.given.views[taken - 1]))
        w.open("slow_path")
        operands = (("ptr", self.python.entry_of("slow")), ("ptr", "%arguments"), ("i64", "%count"), ("ptr", "%names"))
        w.ret("ptr", self.python.call("PyObject_Vectorcall", "ptr", *operands))
