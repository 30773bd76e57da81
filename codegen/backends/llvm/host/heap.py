"""Memory of graph functions: reference-counted blocks, and those that wait to be used again.

    block ::= count, capacity, pool (0: none), unused[5], data       words of 64 bits; the data starts at HEADER
    pool  ::= slot[8]                                                each empty or a block that nothing refers to

`weft.block` makes a block for the storage of a call: the first waiting one that is large enough, else a new one
(waiting ones that are too small are freed, so a function that grows keeps one block and not its history). Several
calls at once each take another block. `weft.allocate` makes one for a result; those that are not small wait too, since
fresh pages cost more than most kernels, but only for a result of about their size and only KEPT_BYTES of them in all;
large ones have slots of their own. Slots are taken and filled with single atomic instructions: no locks, nothing that a
fork could leave locked. `weft.trim` frees everything that waits. From HUGE bytes on the system is asked for huge pages,
which are faster to get and to use.

The code is the same for every executable, each of which has its own copy with pools of its own.
"""

from __future__ import annotations

import re
import sys

from weft.codegen.backends.llvm.asm.module import ModuleWriter
from weft.runtime.abi.frame import HEADER

__all__ = ["declare_heap", "emit_heap"]

SLOTS = 8
SMALL, LARGE, HUGE = 16 << 10, 256 << 10, 4 << 20
HUGE_PAGE = 2 << 20
_MADV_HUGEPAGE = 14  # of Linux
KEPT_BYTES = 256 << 20
STORAGES, RESULTS = 1, 2


def emit_heap(module: ModuleWriter, *, guarded: bool = False) -> None:
    """Emit the functions that graph functions and the runtime call; `guarded` blocks end where their data does.

    Guarded blocks are not used again either.
    """
    module.declare("aligned_alloc", "ptr", ("i64", "i64"))
    if _LINUX:
        module.declare("madvise", "i32", ("ptr", "i64", "i32"))
    module.declare("free", "void", ("ptr",))
    module.add_global(f"@weft.storages = internal global [{SLOTS} x i64] zeroinitializer, align 64")
    module.add_global(f"@weft.middling = internal global [{SLOTS} x i64] zeroinitializer, align 64")
    module.add_global(f"@weft.results = internal global [{SLOTS} x i64] zeroinitializer, align 64")
    module.add_global("@weft.kept = internal global i64 0, align 64")
    for name, text in _FUNCTIONS.items():
        for usual, exact in _GUARDED.items() if guarded else ():
            text = text.replace(usual, exact)
        module.define(name, text)


def declare_heap(module: ModuleWriter) -> None:
    """Declare what graph functions call."""
    for name, text in _FUNCTIONS.items():
        head = re.match(r"define (\S+) @[\w.]+\((.*?)\)", text)
        if head is not None:  # the others are internal
            params = tuple(param.split()[0] for param in head[2].split(", ") if param)
            module.declare(name, head[1], params)


def _each_slot(body: str) -> str:
    """A loop over the slots of `%pool`; `body` goes on to `next` or leaves."""
    return f"""  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %following, %next ]
  %more = icmp ult i64 %i, {SLOTS}
  br i1 %more, label %slot, label %over
slot:
  %place = getelementptr i64, ptr %pool, i64 %i
{body}
next:
  %following = add i64 %i, 1
  br label %head
"""


def _uncounted(block: str, then: str) -> str:
    """From the block named here on a waiting block counts no more, unless it is a storage, which never did."""
    return f"""  br i1 %storage, label %{then}, label %{block}
{block}:
  %{block}.before = atomicrmw sub ptr @weft.kept, i64 %capacity monotonic
  br label %{then}
{then}:"""


_LINUX = sys.platform == "linux"
_ADVICE = f"call i32 @madvise(ptr %block, i64 %size, i32 {_MADV_HUGEPAGE})" if _LINUX else ""  # refused: as before
_GUARDED = {
    "%size = and i64 %sum, -64": f"%size = add i64 %bytes, {HEADER}",
    f"i64 %bytes, i64 {STORAGES})": "i64 %bytes, i64 0)",
    f"icmp ult i64 %bytes, {SMALL}": "icmp eq i64 0, 0",
}
"""What blocks with exact ends, each made anew, have instead."""
_FUNCTIONS = {
    # Frees a block, or lets it wait.
    "weft.retire": f"""define internal void @weft.retire(ptr %block) nounwind {{
entry:
  %kind.at = getelementptr i64, ptr %block, i64 2
  %kind = load i64, ptr %kind.at
  %capacity.at = getelementptr i64, ptr %block, i64 1
  %capacity = load i64, ptr %capacity.at
  %word = ptrtoint ptr %block to i64
  %none = icmp eq i64 %kind, 0
  br i1 %none, label %free, label %waits
waits:
  %storage = icmp eq i64 %kind, {STORAGES}
  %large = icmp uge i64 %capacity, {LARGE}
  %others = select i1 %large, ptr @weft.results, ptr @weft.middling
  %pool = select i1 %storage, ptr @weft.storages, ptr %others
  br i1 %storage, label %start, label %count
count:
  %before = atomicrmw add ptr @weft.kept, i64 %capacity monotonic
  %kept = add i64 %before, %capacity
  %much = icmp ugt i64 %kept, {KEPT_BYTES}
  br i1 %much, label %uncount, label %start
start:
{
        _each_slot('''  %held = load atomic i64, ptr %place monotonic, align 8
  %empty = icmp eq i64 %held, 0
  br i1 %empty, label %put, label %next
put:
  %pair = cmpxchg ptr %place, i64 0, i64 %word release monotonic
  %done = extractvalue { i64, i1 } %pair, 1
  br i1 %done, label %out, label %next''').replace("%entry", "%start")
    }over:
{_uncounted("uncount", "free")}
  call void @free(ptr %block)
  ret void
out:
  ret void
}}
""",
    # A waiting block for so many bytes, or null.
    "weft.reuse": f"""define internal ptr @weft.reuse(ptr %pool, i64 %size, i1 %storage) nounwind {{
entry:
{
        _each_slot('''  %held = load atomic i64, ptr %place monotonic, align 8
  %empty = icmp eq i64 %held, 0
  br i1 %empty, label %next, label %take
take:
  %word = atomicrmw xchg ptr %place, i64 0 acquire
  %gone = icmp eq i64 %word, 0
  br i1 %gone, label %next, label %got
got:
  %block = inttoptr i64 %word to ptr
  %capacity.at = getelementptr i64, ptr %block, i64 1
  %capacity = load i64, ptr %capacity.at
  %enough = icmp uge i64 %capacity, %size
  %twice = shl i64 %size, 1
  %close = icmp ule i64 %capacity, %twice
  %near = or i1 %close, %storage
  %fits = and i1 %enough, %near
  br i1 %fits, label %found, label %other
other:
  br i1 %storage, label %free, label %back
back:
  %pair = cmpxchg ptr %place, i64 0, i64 %word release monotonic
  %done = extractvalue { i64, i1 } %pair, 1
  br i1 %done, label %next, label %uncount
uncount:
  %less = atomicrmw sub ptr @weft.kept, i64 %capacity monotonic
  br label %free
free:
  call void @free(ptr %block)
  br label %next''')
    }found:
{_uncounted("taken", "give")}
  store i64 1, ptr %block
  ret ptr %block
over:
  ret ptr null
}}
""",
    "weft.fresh": f"""define internal ptr @weft.fresh(i64 %bytes, i64 %kind) nounwind {{
  %sum = add i64 %bytes, {HEADER + 63}
  %size = and i64 %sum, -64
  %huge = icmp uge i64 %size, {HUGE}
  %align = select i1 %huge, i64 {HUGE_PAGE}, i64 64
  %block = call ptr @aligned_alloc(i64 %align, i64 %size)
  %none = icmp eq ptr %block, null
  br i1 %none, label %done, label %asks
asks:
  br i1 %huge, label %advise, label %some
advise:
  {_ADVICE}
  br label %some
some:
  store i64 1, ptr %block
  %capacity.at = getelementptr i64, ptr %block, i64 1
  store i64 %bytes, ptr %capacity.at
  %kind.at = getelementptr i64, ptr %block, i64 2
  store i64 %kind, ptr %kind.at
  br label %done
done:
  ret ptr %block
}}
""",
    "weft.block": f"""define i64 @weft.block(i64 %bytes) nounwind {{
  %waiting = call ptr @weft.reuse(ptr @weft.storages, i64 %bytes, i1 true)
  %none = icmp eq ptr %waiting, null
  br i1 %none, label %make, label %done
make:
  %fresh = call ptr @weft.fresh(i64 %bytes, i64 {STORAGES})
  br label %done
done:
  %block = phi ptr [ %waiting, %0 ], [ %fresh, %make ]
  %word = ptrtoint ptr %block to i64
  ret i64 %word
}}
""",
    "weft.allocate": f"""define i64 @weft.allocate(i64 %bytes) nounwind {{
entry:
  %small = icmp ult i64 %bytes, {SMALL}
  br i1 %small, label %plain, label %waits
waits:
  %large = icmp uge i64 %bytes, {LARGE}
  %pool = select i1 %large, ptr @weft.results, ptr @weft.middling
  %waiting = call ptr @weft.reuse(ptr %pool, i64 %bytes, i1 false)
  %none = icmp eq ptr %waiting, null
  br i1 %none, label %plain, label %done
plain:
  %kind = select i1 %small, i64 0, i64 {RESULTS}
  %fresh = call ptr @weft.fresh(i64 %bytes, i64 %kind)
  br label %done
done:
  %block = phi ptr [ %waiting, %waits ], [ %fresh, %plain ]
  %word = ptrtoint ptr %block to i64
  ret i64 %word
}}
""",
    "weft.release": """define void @weft.release(ptr %block) nounwind {
  %none = icmp eq ptr %block, null
  br i1 %none, label %done, label %some
some:
  %before = atomicrmw sub ptr %block, i64 1 acq_rel
  %last = icmp eq i64 %before, 1
  br i1 %last, label %retire, label %done
retire:
  call void @weft.retire(ptr %block)
  br label %done
done:
  ret void
}
""",
    "weft.retain": """define void @weft.retain(i64 %owner) nounwind {
  %none = icmp eq i64 %owner, 0
  br i1 %none, label %done, label %some
some:
  %block = inttoptr i64 %owner to ptr
  %before = atomicrmw add ptr %block, i64 1 monotonic
  br label %done
done:
  ret void
}
""",
    "weft.release_all": """define void @weft.release_all(ptr %slots, i64 %count) nounwind {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %body, label %done
body:
  %place = getelementptr i64, ptr %slots, i64 %i
  %block = load ptr, ptr %place
  call void @weft.release(ptr %block)
  %next = add i64 %i, 1
  br label %head
done:
  ret void
}
""",
    "weft.trim": f"""define void @weft.trim() nounwind {{
entry:
  call void @weft.empty(ptr @weft.storages)
  call void @weft.empty(ptr @weft.middling)
  call void @weft.empty(ptr @weft.results)
  store atomic i64 0, ptr @weft.kept monotonic, align 8
  ret void
}}
define internal void @weft.empty(ptr %pool) nounwind {{
entry:
{
        _each_slot('''  %word = atomicrmw xchg ptr %place, i64 0 acquire
  %block = inttoptr i64 %word to ptr
  call void @free(ptr %block)
  br label %next''')
    }over:
  ret void
}}
""",
}
