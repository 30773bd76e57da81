"""The threads that parallel loops of compiled code share: one pool for the process, made of machine code.

    run(chunk, context, first, last, limit)    calls chunk(context, begin, end, slot) for parts of [first, last) on
    several threads

Threads start when they are first needed, spin for a while after each loop and then sleep. Each has a share of the
range, in parts of one size: it takes those of its own first, so that from loop to loop it finds what it wrote in its
cache, and then what others have left. `run` returns when all are done. Where a loop of another thread is running
already, or inside of such a loop, the caller does all of it alone. Threads that work on a loop at once have different
slots, numbers below that of its iterations; the caller has 0. Iterations never wait for each other, so this changes
nothing but time. A caller that waits for the others asks now and then whether it was interrupted;
the context begins as `weft.runtime.abi.frame` says. After a fork the child starts threads of its own.

The number of threads is `set_num_threads`, else WEFT_NUM_THREADS, else OMP_NUM_THREADS, else that of the processor
cores that this process may run on.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import sys
import threading
from pathlib import Path

from weft.errors import ArgumentError
from weft.runtime.abi.frame import FRAME_WORDS, INTERRUPTED, LOOP_EARLIEST, LOOP_LOCK, LOOP_STATUS, POLL, VALUES
from weft.runtime.device.linker import Library, machine_code
from weft.support.forks import free_in_child, in_child

__all__ = ["get_num_threads", "runner", "set_num_threads"]

MOST = 255
STACK_BYTES = 8 << 20
"""The stack of each, whatever the limits of the process: what calls need to take more runs in the thread that calls."""
_SPINS = 20_000
_ATTRIBUTES = 128  # bytes, more than a pthread_attr_t takes anywhere
_PARTS = 4
"""Parts for each thread: one that falls behind leaves some of its share to the others."""
_lock = free_in_child(threading.Lock())
_wanted: int | None = None


def set_num_threads(count: int) -> None:
    """Let parallel loops use up to `count` threads, the calling one included.

    Raises: ArgumentError W857 for a number below 1.

    >>> set_num_threads(2)
    >>> get_num_threads()
    2
    """
    global _wanted
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ArgumentError(f"the number of threads is at least 1, got {count!r}", code="W857")
    _wanted = min(count, MOST)
    if _pool.cache_info().currsize:
        _pool().set(_wanted)


def get_num_threads() -> int:
    """How many threads a parallel loop may use.

    >>> get_num_threads() >= 1
    True
    """
    return _wanted if _wanted is not None else _default()


def runner() -> int:
    """The address of `run`."""
    with _lock:
        return _pool().address


def _default() -> int:
    for name in ("WEFT_NUM_THREADS", "OMP_NUM_THREADS"):
        text = os.environ.get(name, "").split(",")[0].strip()
        if text.isdigit() and int(text) > 0:
            return min(int(text), MOST)
        if text and name == "WEFT_NUM_THREADS":
            message = f"WEFT_NUM_THREADS is {text!r}: the number of threads is at least 1"
            raise ArgumentError(message, code="W857", hint="leave it out for one thread on each core")
    return min(_cores(), MOST)


@functools.cache
def _cores() -> int:
    """The physical cores that this process may run on, and no more than its share of the machine."""
    if not hasattr(os, "sched_getaffinity"):
        return os.cpu_count() or 1
    cores = set()
    for cpu in os.sched_getaffinity(0):
        path = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        siblings = str(cpu)
        with contextlib.suppress(OSError):
            siblings = path.read_text().strip()
        cores.add(siblings)
    share = len(cores)
    with contextlib.suppress(OSError, ValueError):
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        if quota != "max":
            share = max(1, -(-int(quota) // int(period)))
    return max(1, min(len(cores), share))


class _Pool:
    """The loaded code."""

    def __init__(self) -> None:
        library = Library([machine_code(_text())], ["weft.pool.run", "weft.pool.set", "weft.pool.forked"])
        self.library = library  # never unloaded: its threads run in it
        self.address = library.addresses["weft.pool.run"]
        self.set = ctypes.CFUNCTYPE(None, ctypes.c_int64)(library.addresses["weft.pool.set"])
        in_child(ctypes.CFUNCTYPE(None)(library.addresses["weft.pool.forked"]))
        self.set(get_num_threads())


@functools.cache
def _pool() -> _Pool:
    return _Pool()


_PAUSE = {"x86_64": "@llvm.x86.sse2.pause()", "aarch64": "@llvm.aarch64.hint(i32 1)"}
_FUTEX = {"x86_64": 202, "aarch64": 98}


def _text() -> str:
    """The code of the pool for this machine."""
    machine = os.uname().machine.lower()
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)
    pause = _PAUSE.get(machine, "")
    if sys.platform == "linux" and machine in _FUTEX:
        call = f"  call i64 (i64, ...) @syscall(i64 {_FUTEX[machine]}, ptr @word"
        sleep = f"  %low = trunc i64 %check to i32\n{call}, i32 128, i32 %low, ptr null, ptr null, i32 0)"
        wake = f"{call}, i32 129, i32 %waking, ptr null, ptr null, i32 0)"
    else:
        sleep, wake = "  call i32 @usleep(i32 200)", ""
    lines = {"  PAUSE": f"  call void {pause}" if pause else "", "SLEEP": sleep, "WAKE": wake}
    text = "\n".join(lines.get(line, line) for line in _POOL.split("\n"))
    declared = f"declare void {pause.replace('i32 1', 'i32 immarg')}\n" if pause else ""
    return text.replace("SPINS", str(_SPINS)).replace("MOST", str(MOST)).replace("PARTS", str(_PARTS)) + declared


# word ::= number of the loop, open (1 bit), threads that may join (8), threads that have (8), from the highest bits on
# A thread joins by changing the word as it saw it, so never a loop that is over; the caller closes the loop when all of
# its parts are taken, and waits for those that joined. One that sleeps or has no processor is not waited for.
_OPEN, _NUMBER = 1 << 16, 17


def _spins(then: str) -> str:
    """The blocks of a loop that looks at the word again, or after many iterations goes on to a block."""
    return f"""wait:
  %i.next = add i64 %i, 1
  %long = icmp ugt i64 %i, SPINS
  br i1 %long, label %{then}, label %again
again:
  PAUSE
  br label %spin"""


_POOL = f"""
@word = internal global i64 0, align 64
@taken = internal global [MOST x [8 x i64]] zeroinitializer, align 64
@slots = internal global i64 1, align 64
@asleep = internal global i64 0, align 64
@busy = internal global i64 0, align 64
@chunk = internal global ptr null, align 64
@context = internal global ptr null
@first = internal global i64 0
@last = internal global i64 0
@parts = internal global i64 0
@shares = internal global i64 1
@threads = internal global i64 1, align 64
@started = internal global i64 0

declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(i64)
declare i32 @pthread_attr_init(ptr)
declare i32 @pthread_attr_setstacksize(ptr, i64)
declare i32 @pthread_attr_destroy(ptr)
declare i32 @sched_yield()
declare i32 @usleep(i32)
declare i64 @syscall(i64, ...)
declare i64 @llvm.umin.i64(i64, i64)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1 immarg)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1 immarg)

define void @weft.pool.set(i64 %count) nounwind {{
  store atomic i64 %count, ptr @threads monotonic, align 8
  ret void
}}

define void @weft.pool.forked() nounwind {{
  store i64 0, ptr @started
  store i64 0, ptr @asleep
  store i64 0, ptr @word
  store atomic i64 0, ptr @busy release, align 8
  ret void
}}

; The first iteration of a part: those that are one longer are spread evenly.
define internal i64 @start_of(i64 %index, i64 %from, i64 %size, i64 %rest, i64 %count) alwaysinline nounwind {{
  %whole = mul i64 %index, %size
  %some = mul i64 %index, %rest
  %longer = udiv i64 %some, %count
  %offset = add i64 %whole, %longer
  %begin = add i64 %from, %offset
  ret i64 %begin
}}

define internal void @take_parts(i64 %home, i64 %slot) nounwind {{
entry:
  %f = load ptr, ptr @chunk
  %c = load ptr, ptr @context
  %from = load i64, ptr @first
  %to = load i64, ptr @last
  %count = load i64, ptr @parts
  %shares = load i64, ptr @shares
  %all = sub i64 %to, %from
  %size = udiv i64 %all, %count
  %rest = urem i64 %all, %count
  br label %share
share:
  %turn = phi i64 [ 0, %entry ], [ %turn.next, %next ]
  %turned = add i64 %home, %turn
  %chosen = urem i64 %turned, %shares
  %taken = getelementptr [8 x i64], ptr @taken, i64 %chosen
  %share.next = add i64 %chosen, 1
  %low.times = mul i64 %chosen, %count
  %low = udiv i64 %low.times, %shares
  %high.times = mul i64 %share.next, %count
  %high = udiv i64 %high.times, %shares
  br label %take
take:
  %before = atomicrmw add ptr %taken, i64 1 monotonic
  %index = add i64 %low, %before
  %more = icmp ult i64 %index, %high
  br i1 %more, label %run, label %next
run:
  %begin = call i64 @start_of(i64 %index, i64 %from, i64 %size, i64 %rest, i64 %count)
  %after = add i64 %index, 1
  %end = call i64 @start_of(i64 %after, i64 %from, i64 %size, i64 %rest, i64 %count)
  call void %f(ptr %c, i64 %begin, i64 %end, i64 %slot)
  br label %take
next:
  %turn.next = add i64 %turn, 1
  %others = icmp ult i64 %turn.next, %shares
  br i1 %others, label %share, label %done
done:
  ret void
}}

define internal ptr @worker(ptr %argument) nounwind {{
entry:
  %told = ptrtoint ptr %argument to i64
  %start = lshr i64 %told, 8
  %home = and i64 %told, 255
  br label %idle
idle:
  %seen = phi i64 [ %start, %entry ], [ %number, %missed ], [ %number, %joined ]
  br label %spin
spin:
  %i = phi i64 [ 0, %idle ], [ %i.next, %again ], [ 0, %woken ], [ 0, %join ]
  %word = load atomic i64, ptr @word acquire, align 8
  %number = lshr i64 %word, {_NUMBER}
  %same = icmp eq i64 %number, %seen
  br i1 %same, label %wait, label %look
{_spins("rest")}
rest:
  %a = atomicrmw add ptr @asleep, i64 1 seq_cst
  %check = load atomic i64, ptr @word seq_cst, align 8
  %check.number = lshr i64 %check, {_NUMBER}
  %still = icmp eq i64 %check.number, %seen
  br i1 %still, label %sleep, label %woken
sleep:
SLEEP
  br label %woken
woken:
  %b = atomicrmw sub ptr @asleep, i64 1 seq_cst
  br label %spin
look:
  %open.bit = and i64 %word, {_OPEN}
  %open = icmp ne i64 %open.bit, 0
  %have = and i64 %word, 255
  %room.bits = lshr i64 %word, 8
  %room = and i64 %room.bits, 255
  %free = icmp ult i64 %have, %room
  %may = and i1 %open, %free
  br i1 %may, label %join, label %missed
missed:
  br label %idle
join:
  %new = add i64 %word, 1
  %pair = cmpxchg ptr @word, i64 %word, i64 %new acquire monotonic
  %got = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %got, label %joined, label %spin
joined:
  %slot = atomicrmw add ptr @slots, i64 1 monotonic
  call void @take_parts(i64 %home, i64 %slot)
  %left = atomicrmw sub ptr @word, i64 1 release
  br label %idle
}}

; The caller, which waits for others, asks whether it was interrupted: they stop when its loop says so.
define internal void @ask(ptr %frame, ptr %context) nounwind {{
entry:
  %outer = load ptr, ptr %context
  %poll.at = getelementptr i64, ptr %outer, i64 {POLL}
  %poll = load ptr, ptr %poll.at
  %nothing = icmp eq ptr %poll, null
  br i1 %nothing, label %done, label %question
question:
  %answer = call i32 %poll(ptr %frame)
  %over = icmp eq i32 %answer, {INTERRUPTED}
  br i1 %over, label %stop, label %done
stop:
  %lock = getelementptr i64, ptr %context, i64 {LOOP_LOCK}
  br label %again
again:
  %before = atomicrmw xchg ptr %lock, i64 1 acquire
  %free = icmp eq i64 %before, 0
  br i1 %free, label %locked, label %again
locked:
  %earliest = getelementptr i64, ptr %context, i64 {LOOP_EARLIEST}
  store i64 {-(1 << 63)}, ptr %earliest
  %from = getelementptr i64, ptr %frame, i64 {VALUES}
  %to = getelementptr i64, ptr %outer, i64 {VALUES}
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 24, i1 false)
  %status = getelementptr i64, ptr %context, i64 {LOOP_STATUS}
  store atomic i64 {INTERRUPTED}, ptr %status release, align 8
  store atomic i64 0, ptr %lock release, align 8
  br label %done
done:
  ret void
}}

define void @weft.pool.run(ptr %chunk, ptr %context, i64 %first, i64 %last, i64 %limit) nounwind {{
entry:
  %thread = alloca i64
  %attributes = alloca [{_ATTRIBUTES} x i8], align 16
  %own.frame = alloca [{FRAME_WORDS} x i64], align 8
  %count = sub i64 %last, %first
  %threads = load atomic i64, ptr @threads monotonic, align 8
  %some = call i64 @llvm.umin.i64(i64 %threads, i64 %count)
  %none = icmp eq i64 %limit, 0
  %most = select i1 %none, i64 MOST, i64 %limit
  %wanted = call i64 @llvm.umin.i64(i64 %some, i64 %most)
  %few = icmp ule i64 %wanted, 1
  br i1 %few, label %alone, label %lock
lock:
  %pair = cmpxchg ptr @busy, i64 0, i64 1 acquire monotonic
  %got = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %got, label %grow, label %alone
alone:
  call void %chunk(ptr %context, i64 %first, i64 %last, i64 0)
  ret void
grow:
  %have = load i64, ptr @started
  %need = sub i64 %wanted, 1
  %enough = icmp uge i64 %have, %need
  br i1 %enough, label %publish, label %more
more:
  %old = load atomic i64, ptr @word monotonic, align 8
  %old.number = lshr i64 %old, {_NUMBER}
  %now = add i64 %have, 1
  %seen = shl i64 %old.number, 8
  %told = or i64 %seen, %now
  %argument = inttoptr i64 %told to ptr
  %attributes.made = call i32 @pthread_attr_init(ptr %attributes)
  %sized = call i32 @pthread_attr_setstacksize(ptr %attributes, i64 {STACK_BYTES})
  %status = call i32 @pthread_create(ptr %thread, ptr %attributes, ptr @worker, ptr %argument)
  %attributes.gone = call i32 @pthread_attr_destroy(ptr %attributes)
  %made = icmp eq i32 %status, 0
  br i1 %made, label %made.one, label %publish
made.one:
  %handle = load i64, ptr %thread
  %detached = call i32 @pthread_detach(i64 %handle)
  store i64 %now, ptr @started
  br label %grow
publish:
  %several = mul i64 %wanted, PARTS
  %parts = call i64 @llvm.umin.i64(i64 %several, i64 %count)
  store ptr %chunk, ptr @chunk
  store ptr %context, ptr @context
  store i64 %first, ptr @first
  store i64 %last, ptr @last
  store i64 %parts, ptr @parts
  store i64 %wanted, ptr @shares
  %used = mul i64 %wanted, 64
  call void @llvm.memset.p0.i64(ptr @taken, i8 0, i64 %used, i1 false)
  store atomic i64 1, ptr @slots monotonic, align 8
  %before = load atomic i64, ptr @word monotonic, align 8
  %number = lshr i64 %before, {_NUMBER}
  %number.next = add i64 %number, 1
  %high = shl i64 %number.next, {_NUMBER}
  %room = shl i64 %need, 8
  %open = or i64 %high, {_OPEN}
  %new = or i64 %open, %room
  store atomic i64 %new, ptr @word seq_cst, align 8
  %sleepers = load atomic i64, ptr @asleep seq_cst, align 8
  %quiet = icmp eq i64 %sleepers, 0
  %waking = trunc i64 %need to i32
  br i1 %quiet, label %own, label %wake
wake:
WAKE
  br label %own
own:
  call void @take_parts(i64 0, i64 0)
  call void @llvm.memset.p0.i64(ptr %own.frame, i8 0, i64 {8 * FRAME_WORDS}, i1 false)
  %closed = atomicrmw and ptr @word, i64 {~_OPEN} acq_rel
  br label %spin
spin:
  %i = phi i64 [ 0, %own ], [ %i.next, %again ], [ 0, %yield ]
  %state = load atomic i64, ptr @word acquire, align 8
  %joined = and i64 %state, 255
  %over = icmp eq i64 %joined, 0
  br i1 %over, label %finish, label %wait
{_spins("yield")}
yield:
  %y = call i32 @sched_yield()
  call void @ask(ptr %own.frame, ptr %context)
  br label %spin
finish:
  store atomic i64 0, ptr @busy release, align 8
  ret void
}}
"""
