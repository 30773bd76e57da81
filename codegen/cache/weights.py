"""Digests of weights at the speed of memory, for the keys of programs.

    digest ::= sha256 of: number of bytes, NH of each block, bytes after the last whole block
    NH     ::= sum over the 64-bit words of a block of (low half + key) * (high half + key), halves modulo 2^32;
               four of them, each with the keys one vector further on

SHA-256 reads 1 to 2 GB/s, this as much as memory gives. NH with random keys tells any two blocks apart but for one
chance in 2^128 (Black, Halevi, Krawczyk, Krovetz, Rogaway: UMAC, 1999). The keys are random, made once and kept in the
cache of compiled code, so that nobody who does not read that can make weights that are taken for others; in another
folder the same weights have another digest.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
from collections.abc import Sequence

import numpy as np

from weft.errors import ArtifactError
from weft.ir.structure.array_digests import array_digests
from weft.runtime.device.code_cache import object_cache
from weft.runtime.device.linker import Library, machine_code
from weft.support.array_memory import content_bytes
from weft.support.spread import spread

__all__ = ["weight_digests"]

_LARGE = 1 << 20
"""Bytes from which on the digest is worth a call; smaller arrays have that of `array_digests`."""
_BLOCK, _VECTOR, _SUMS = 4096, 64, 4
_KEYS = hashlib.sha256(b"keys of weights 1").hexdigest()
"""The name of the keys in the cache."""


def weight_digests(arrays: Sequence[np.ndarray]) -> list[bytes]:
    """The digests of several arrays, the same in every process that uses the same cache."""
    large = {id(array): array for array in arrays if array.nbytes >= _LARGE}
    hashing = _hash() if large else None
    if hashing is None:
        return array_digests(arrays)
    keys = _keys()
    made = spread(lambda array: _digest(array, hashing[0], keys), list(large.values()))
    digests = dict(zip(large, made, strict=True))
    small = [array for array in arrays if id(array) not in large]
    digests.update(zip(map(id, small), array_digests(small), strict=True))
    return [digests[id(array)] for array in arrays]


def _keys() -> bytes:
    """The random keys of this cache."""
    cache = object_cache()
    found = cache.get(_KEYS)
    if found is not None:
        return bytes(found[0])
    made = os.urandom(_BLOCK + (_SUMS - 1) * _VECTOR)
    cache.put(_KEYS, [made], "")
    return made


def _digest(array: np.ndarray, function: ctypes._CFunctionType, keys: bytes) -> bytes:
    content = content_bytes(array)
    blocks = content.nbytes // _BLOCK
    sums = np.empty((blocks, _SUMS), np.uint64)
    function(content.ctypes.data, blocks, keys, sums.ctypes.data)
    whole = hashlib.sha256(content.nbytes.to_bytes(8, "little"))
    whole.update(sums.data)
    whole.update(content[blocks * _BLOCK :].data)
    return whole.digest()


@functools.cache
def _hash() -> tuple[ctypes._CFunctionType, Library] | None:
    """The code that sums blocks, and what it lives in; None where there is no LLVM to make it."""
    try:
        library = Library([machine_code(_TEXT)], ["weft.nh"])
    except ArtifactError:
        return None
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_char_p, ctypes.c_void_p)
    return kind(library.addresses["weft.nh"]), library


def _lines(line: str) -> str:
    """A line of the code for each of the sums."""
    return "\n".join(line.replace("#", str(number)).replace("AT", str(number * _VECTOR)) for number in range(_SUMS))


_LOW, _HIGH = (f"<{', '.join([f'i64 {number}'] * 8)}>" for number in (0xFFFFFFFF, 32))
_TEXT = f"""
declare i64 @llvm.vector.reduce.add.v8i64(<8 x i64>)
define void @weft.nh(ptr %data, i64 %blocks, ptr %keys, ptr %out) nounwind {{
entry:
  %none = icmp eq i64 %blocks, 0
  br i1 %none, label %done, label %block
block:
  %b = phi i64 [ 0, %entry ], [ %b.next, %end ]
  %start = mul i64 %b, {_BLOCK}
  %from = getelementptr i8, ptr %data, i64 %start
  br label %loop
loop:
  %i = phi i64 [ 0, %block ], [ %i.next, %loop ]
{_lines("  %s# = phi <8 x i64> [ zeroinitializer, %block ], [ %t#, %loop ]")}
  %at = getelementptr i8, ptr %from, i64 %i
  %x = load <16 x i32>, ptr %at, align 1
  %key = getelementptr i8, ptr %keys, i64 %i
{_lines("  %k#.at = getelementptr i8, ptr %key, i64 AT")}
{_lines("  %k# = load <16 x i32>, ptr %k#.at, align 1")}
{_lines("  %a# = add <16 x i32> %x, %k#")}
{_lines("  %w# = bitcast <16 x i32> %a# to <8 x i64>")}
{_lines(f"  %l# = and <8 x i64> %w#, {_LOW}")}
{_lines(f"  %h# = lshr <8 x i64> %w#, {_HIGH}")}
{_lines("  %p# = mul <8 x i64> %l#, %h#")}
{_lines("  %t# = add <8 x i64> %s#, %p#")}
  %i.next = add i64 %i, {_VECTOR}
  %more = icmp ult i64 %i.next, {_BLOCK}
  br i1 %more, label %loop, label %end
end:
  %to = getelementptr [{_SUMS} x i64], ptr %out, i64 %b
{_lines("  %r# = call i64 @llvm.vector.reduce.add.v8i64(<8 x i64> %t#)")}
{_lines(f"  %to# = getelementptr [{_SUMS} x i64], ptr %to, i64 0, i64 #")}
{_lines("  store i64 %r#, ptr %to#")}
  %b.next = add i64 %b, 1
  %again = icmp ult i64 %b.next, %blocks
  br i1 %again, label %block, label %done
done:
  ret void
}}
"""
