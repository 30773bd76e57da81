"""Ctrl-C in compiled code: a function of machine code that long loops call, and the exception that it brings back.

    poll(frame) -> int32      0: go on; INTERRUPTED: leave, a handler of Python raised
    call(frame, site, arguments, results) -> int32      a Python function of these, whose result is the status

Every POLL_MILLISECONDS the function takes the GIL and asks Python for signals, whose handlers run in the main thread
alone; a call that holds the GIL lets other threads in. What a handler raises (KeyboardInterrupt, unless the program has
a handler of its own) is kept in the first values of the frame until `raised` takes it. Threads
of the pool never take the GIL: they stop when the thread of the call was interrupted. Code without a runtime has no
such function, and polls nothing.

A handler may run, and raise, as a callback into Python begins, before any `try` of the callback. So `call` asks for
signals before, and calls the function itself: whatever comes out of it is kept like what `poll` finds. (ctypes would
report it as ignored, and go on.)
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Sequence

from weft.errors import ArtifactError
from weft.runtime.abi.frame import INTERRUPTED, LOOP, LOOP_STATUS, STOPPED, VALUES
from weft.runtime.device.linker import Library, machine_code

__all__ = ["caller", "poller", "raised"]

POLL_MILLISECONDS = 50
_MONOTONIC = 6 if sys.platform == "darwin" else 1

_KEEP_ERROR = f"""\
  %kind = getelementptr i64, ptr %frame, i64 {VALUES}
  %value = getelementptr i64, ptr %frame, i64 {VALUES + 1}
  %trace = getelementptr i64, ptr %frame, i64 {VALUES + 2}
  call void @PyErr_Fetch(ptr %kind, ptr %value, ptr %trace)"""
"""Code that moves the error of Python to the frame."""

# The time of the last question stands in a word of the frame, which belongs to one thread.
_TEXT = f"""
declare i32 @clock_gettime(i32, ptr)
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare i32 @PyGILState_Check()
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare i32 @PyErr_CheckSignals()
declare void @PyErr_Fetch(ptr, ptr, ptr)

declare ptr @PyGILState_GetThisThreadState()

define i32 @weft.poll(ptr %frame) nounwind {{
entry:
  %time = alloca [2 x i64]
  %loop.at = getelementptr i64, ptr %frame, i64 {LOOP}
  %loop = load ptr, ptr %loop.at
  %serial = icmp eq ptr %loop, null
  br i1 %serial, label %look, label %inside
inside:
  %failed.at = getelementptr i64, ptr %loop, i64 {LOOP_STATUS}
  %failed = load atomic i64, ptr %failed.at monotonic, align 8
  %over = icmp eq i64 %failed, {INTERRUPTED}
  br i1 %over, label %stop, label %whose
stop:
  ret i32 {STOPPED}
whose:
  %python = call ptr @PyGILState_GetThisThreadState()
  %foreign = icmp eq ptr %python, null
  br i1 %foreign, label %on, label %look
look:
  %read = call i32 @clock_gettime(i32 {_MONOTONIC}, ptr %time)
  %seconds = load i64, ptr %time
  %part.at = getelementptr i64, ptr %time, i64 1
  %part = load i64, ptr %part.at
  %whole = mul i64 %seconds, 1000
  %fine = sdiv i64 %part, 1000000
  %now = add i64 %whole, %fine
  %last.at = getelementptr i64, ptr %frame, i64 {VALUES + 3}
  %last = load i64, ptr %last.at
  %since = sub i64 %now, %last
  %early = icmp ult i64 %since, {POLL_MILLISECONDS}
  br i1 %early, label %on, label %ask
on:
  ret i32 0
ask:
  store i64 %now, ptr %last.at
  %held = call i32 @PyGILState_Check()
  %alone = icmp ne i32 %held, 0
  br i1 %alone, label %yield, label %take
yield:
  %thread = call ptr @PyEval_SaveThread()
  call void @PyEval_RestoreThread(ptr %thread)
  br label %take
take:
  %state = call i32 @PyGILState_Ensure()
  %wrong = call i32 @PyErr_CheckSignals()
  %raised = icmp ne i32 %wrong, 0
  br i1 %raised, label %keep, label %free
keep:
{_KEEP_ERROR}
  br label %free
free:
  %status = phi i32 [ 0, %take ], [ {INTERRUPTED}, %keep ]
  call void @PyGILState_Release(i32 %state)
  ret i32 %status
}}
"""


_CALL = f"""
declare i32 @weft.poll(ptr)
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare ptr @PyObject_CallFunction(ptr, ptr, ...)
declare i64 @PyLong_AsLongLong(ptr)
declare void @Py_DecRef(ptr)
declare void @PyErr_Fetch(ptr, ptr, ptr)

@format = private constant [5 x i8] c"LLLL\\00"

define i32 @weft.call(ptr %frame, i64 %site, ptr %arguments, ptr %results) nounwind {{
entry:
  %last.at = getelementptr i64, ptr %frame, i64 {VALUES + 3}
  store i64 0, ptr %last.at
  %raised = call i32 @weft.poll(ptr %frame)
  %leave = icmp ne i32 %raised, 0
  br i1 %leave, label %out, label %enter
out:
  ret i32 %raised
enter:
  %state = call i32 @PyGILState_Ensure()
  %function = inttoptr i64 ADDRESS to ptr
  %result = call ptr (ptr, ptr, ...) @PyObject_CallFunction(ptr %function, ptr @format,
    ptr %frame, i64 %site, ptr %arguments, ptr %results)
  %lost = icmp eq ptr %result, null
  br i1 %lost, label %keep, label %take
keep:
{_KEEP_ERROR}
  br label %free
take:
  %long = call i64 @PyLong_AsLongLong(ptr %result)
  %returned = trunc i64 %long to i32
  call void @Py_DecRef(ptr %result)
  br label %free
free:
  %status = phi i32 [ {INTERRUPTED}, %keep ], [ %returned, %take ]
  call void @PyGILState_Release(i32 %state)
  ret i32 %status
}}
"""


@functools.cache
def _library() -> Library | None:
    try:
        return Library([machine_code(_TEXT, 0)], ["weft.poll"])  # never unloaded
    except ArtifactError:  # an interpreter that does not export these: loops are not interrupted
        return None


@functools.cache
def poller() -> int:
    """The address of `poll`; 0 where this interpreter has no such functions."""
    library = _library()
    return 0 if library is None else library.addresses["weft.poll"]


@functools.cache
def caller(function: Callable[[int, int, int, int], int]) -> int:
    """The address of `call` for a function; 0 where this interpreter has no such functions."""
    if not poller():
        return 0
    text = _CALL.replace("ADDRESS", str(id(function)))  # which the cache of this function keeps
    library = Library([machine_code(text, 0)], ["weft.call"], {"weft.poll": poller()})
    _callers.append(library)
    return library.addresses["weft.call"]


_callers: list[Library] = []
"""Never unloaded."""


def raised(values: Sequence[int]) -> BaseException:
    """The exception that a handler raised, out of the first values of the frame; taken once."""
    restore = ctypes.pythonapi.PyErr_Restore
    restore.restype, restore.argtypes = None, [ctypes.c_void_p] * 3
    try:
        restore(*(value or None for value in values[:3]))
    except BaseException as error:
        return error
    return KeyboardInterrupt()
