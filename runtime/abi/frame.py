"""What compiled code and the runtime agree on: the frame of a call, and values as 64-bit words.

    entry   ::= int32 entry(int64* frame, int64* arguments, int64* results)      0 is success
    frame   ::= site, callback, handle, constants, place, stack, outputs, parallel, poll, loop, values[16]  64-bit words
    tensor  ::= data, owner, dim*                                     rank and dtype known
              | data, owner, rank, dtype, dim[16]                     otherwise ("dynamic")
    shape   ::= dim*                       | rank, dim[16]            otherwise
    prim    ::= bits of the scalar         object ::= number of an object that the runtime holds for the call
    tuple   ::= the words of its fields

`owner` is the block of memory that compiled code allocated for the tensor (0: somebody else's memory). A block starts
HEADER bytes before the data that was allocated, with a reference count in its first word. On failure (1) `site`
numbers the place in the program, whose text the executable holds, and `values` are the numbers that belong in its
message; `place`, when not 0, numbers (from 1) the call in a graph function inside which it failed. `stack` is the
lowest address of the thread's stack that nested calls may reach, 0 until one asks for it.
When `outputs` is not 0, the words of `results` say before the call where the caller wants results (data 0: anywhere)
and their sizes; a result that was made elsewhere comes back with another address. `parallel` is the function that
runs the iterations of a loop on several threads (`weft.runtime.device.threads`), 0 for none; `poll` is what long
loops ask now and then (`weft.runtime.device.interrupts`), 0 for nothing. Its status is
INTERRUPTED, and STOPPED for the other threads of the parallel loop whose context `loop` is (0 outside of one).

    context ::= frame of the caller, lock, first iteration of the earliest failure, its status, ...
"""

from __future__ import annotations

import hashlib

__all__ = [
    "BINDING",
    "CALLBACK",
    "CONSTANTS",
    "DYNAMIC_RANK",
    "FRAME_WORDS",
    "HANDLE",
    "HEADER",
    "INTERRUPTED",
    "LOOP",
    "LOOP_EARLIEST",
    "LOOP_LOCK",
    "LOOP_OUTPUTS",
    "LOOP_STATUS",
    "OUTPUTS",
    "PARALLEL",
    "PLACE",
    "POLL",
    "SITE",
    "STACK",
    "STOPPED",
    "VALUES",
    "VALUE_COUNT",
]

SITE, CALLBACK, HANDLE, CONSTANTS, PLACE, STACK, OUTPUTS, PARALLEL, POLL, LOOP = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
INTERRUPTED, STOPPED = 3, -1
LOOP_LOCK, LOOP_EARLIEST, LOOP_STATUS = 1, 2, 3
LOOP_OUTPUTS = 2
"""OUTPUTS while the body of a loop runs: results words hold the owner of each place too, which gets a reference."""
VALUES, VALUE_COUNT = 10, 16
FRAME_WORDS = VALUES + VALUE_COUNT
DYNAMIC_RANK = 16
HEADER = 64
BINDING = hashlib.sha256(b"weft.binding").digest()
"""The bytes of `weft.binding` in object code; in a saved file the hash of the manifest stands in their place."""
