"""Structural equality, hash and the first difference, read off the field roles.

Two nodes are equal when they have the same shape up to the names of bound variables, buffers and symbols. Free
variables are equal only to themselves, except in a tensor-level function: what it declares and nothing binds is its
own, and matched where it occurs first. Floats compare by their bits (nan equals the same nan, 0.0 differs from
-0.0), arrays by dtype, shape and bytes, modules as mappings. A block that states the accesses of its body is equal to
one that states none. Nothing here recurses on depth.
"""

from __future__ import annotations

import hashlib
import struct
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, cast
from weakref import WeakKeyDictionary

import numpy as np

from weft.ir.dim import DimExpr, free_symbols, substitute, symbol
from weft.ir.graph import Function, Var, VarBinding
from weft.ir.kernel.regions import stated_accesses
from weft.ir.module import IRModule
from weft.ir.node import FieldInfo, FrozenMap, Node, fields_of
from weft.ir.structure.array_digests import array_digest
from weft.ir.structure.malformed import explained_by, malformed
from weft.ir.structure.visit import MANY_NODES, refuse_repetition
from weft.ir.tensor import Block, Buffer, PrimFunc, PrimVar
from weft.support.array_memory import content_bytes
from weft.support.guards import is_array, is_tuple

__all__ = ["assert_structural_equal", "first_mismatch", "structural_equal", "structural_hash"]

_IDENTITY = (Var, PrimVar, Buffer)
_SCOPES = (Function, PrimFunc)


def _fields(node: Node) -> tuple[FieldInfo, ...]:
    """The fields in visit order; a local function may call itself, so its variable is bound before its body."""
    infos = fields_of(type(node))
    return infos[::-1] if isinstance(node, VarBinding) and isinstance(node.value, Function) else infos


def _parts(node: Node) -> Callable[[str], Any]:
    """The fields of a node by name, as they are compared: of a block, the accesses that its body does not say."""
    if isinstance(node, Block) and not (node.reads is None and node.writes is None):
        stated = dict(zip(("reads", "writes"), stated_accesses(node), strict=True))
        return lambda name: stated[name] if name in stated else getattr(node, name)
    return partial(getattr, node)


@explained_by(malformed)
def structural_equal(a: Any, b: Any) -> bool:
    """Whether two nodes are equal up to the names of what they bind.

    >>> from weft.ir.types import TensorType
    >>> structural_equal(TensorType((2, 3), "float32"), TensorType((2, 3), "float32"))
    True
    """
    return first_mismatch(a, b) is None


def assert_structural_equal(a: Any, b: Any) -> None:
    """Raise AssertionError with the first difference, underlined in both texts, unless the nodes are equal."""
    mismatch = first_mismatch(a, b)
    if mismatch is not None:
        raise AssertionError(
            f"not structurally equal; first mismatch: {mismatch}\n"
            f"--- left\n{_text(a, mismatch)}\n--- right\n{_text(b, mismatch)}"
        )


def _text(value: Any, path: str) -> str:
    """A node as text, the difference underlined where the text shows it."""
    script = getattr(value, "script", None)
    for options in ({"underline": path}, {}):
        try:
            return script(**options) if script else repr(value)
        except Exception:  # the comparison is what failed; its report must not fail too
            continue
    return repr(value)


def first_mismatch(a: Any, b: Any) -> str | None:
    """The path and kind of the first difference, or None when the nodes are structurally equal."""
    return _Comparison().run(a, b)


class _Path:
    """A path as its last piece and the path before it: written out only where there is a difference."""

    __slots__ = ("before", "piece")

    def __init__(self, before: _Path | None, piece: str) -> None:
        self.before = before
        self.piece = piece

    def __str__(self) -> str:
        pieces: list[str] = []
        path: _Path | None = self
        while path is not None:
            pieces.append(path.piece)
            path = path.before
        return "".join(reversed(pieces))


_FEW_STEPS = 10_000
"""The steps of a comparison for which it is quicker to compare pairs again than to remember them."""
_Pair = tuple[Any, Any, _Path | None, bool]
"""Two values to compare, where they stand (None: the end of a top-level function), and whether they bind."""


class _Comparison:
    """One comparison: the two-way maps of bound objects and of symbol names, and a work list of pairs."""

    def __init__(self) -> None:
        self.left: dict[int, Any] = {}
        self.right: dict[int, Any] = {}
        self.symbols: dict[str, str] = {}
        self.symbols_back: dict[str, str] = {}
        self.later: list[tuple[DimExpr, DimExpr, _Path]] = []
        self.in_kernel = False
        # Pairs that need no second look, with how much was bound at the first: what is bound stays so.
        self.compared: dict[tuple[int, int, bool], tuple[int, Any, Any]] = {}

    def run(self, a: Any, b: Any) -> str | None:
        stack: list[_Pair] = [(a, b, _Path(None, "root"), False)]
        steps = 0
        while stack:
            x, y, path, defines = stack.pop()
            steps += 1
            if steps > _FEW_STEPS and self._was_compared(x, y, defines):
                continue
            if path is None:  # the end of a top-level function: its symbols go out of scope
                self.in_kernel = False
                message = self._finish_scope()
            else:
                message = self._step(x, y, path, defines, stack)
            if message is not None:
                return message
        return self._finish_scope()

    def _was_compared(self, x: Any, y: Any, defines: bool) -> bool:
        """Whether a pair of values with parts was met before, with the same objects bound; else it is noted."""
        if not (isinstance(x, (Node, FrozenMap)) or is_tuple(x)):
            return False
        key, bound = (id(x), id(y), defines), len(self.left)
        known = self.compared.get(key)
        if known is not None and known[0] == bound:
            return True
        self.compared[key] = (bound, x, y)  # which keeps them, and so their ids are theirs
        return False

    def _step(self, x: Any, y: Any, path: _Path, defines: bool, stack: list[_Pair]) -> str | None:
        if isinstance(x, Node) and isinstance(y, Node):
            if type(x) is not type(y):
                return f"{path}: {type(x).__name__} against {type(y).__name__}"
            if isinstance(x, _IDENTITY):
                return self._identity(x, y, path, defines, stack)
            if isinstance(x, IRModule) and isinstance(y, IRModule):
                return self._module(x, y, path, stack)
            if isinstance(x, PrimFunc):
                self.in_kernel = True
            left, right = _parts(x), _parts(y)
            for info in reversed(_fields(x)):
                if info.role != "ignored":
                    inner = _Path(path, f".{info.name}")
                    stack.append((left(info.name), right(info.name), inner, defines or info.role == "binder"))
            return None
        if isinstance(x, tuple) and isinstance(y, tuple):
            left_items = cast("tuple[Any, ...]", x)
            right_items = cast("tuple[Any, ...]", y)
            if len(left_items) != len(right_items):
                return f"{path}: {len(left_items)} items against {len(right_items)}"
            pairs = reversed(list(enumerate(zip(left_items, right_items, strict=True))))
            stack.extend((p, q, _Path(path, f"[{i}]"), defines) for i, (p, q) in pairs)
            return None
        if isinstance(x, FrozenMap) and isinstance(y, FrozenMap):
            if set(x) != set(y):
                return f"{path}: keys {sorted(x)} against {sorted(y)}"
            stack.extend((x[key], y[key], _Path(path, f"[{key!r}]"), defines) for key in reversed(sorted(x)))
            return None
        if isinstance(x, DimExpr) and isinstance(y, DimExpr):
            return self._dimension(x, y, path)
        return None if _same_data(x, y) else f"{path}: {_show(x)} against {_show(y)}"

    def _identity(self, x: Any, y: Any, path: _Path, defines: bool, stack: list[_Pair]) -> str | None:
        known, known_back = self.left.get(id(x)), self.right.get(id(y))
        if known is not None or known_back is not None:
            return None if known is y and known_back is x else f"{path}: {_show(x)} against {_show(y)}"
        if not defines and not (self.in_kernel and isinstance(x, (PrimVar, Buffer))):
            return None if x is y else f"{path}: free {_show(x)} against {_show(y)}"
        self.left[id(x)], self.right[id(y)] = y, x
        if isinstance(x, Var):
            stack.append((x.ty, y.ty, _Path(path, ".ty"), True))
        else:
            for info in reversed(fields_of(x.__class__)):
                if info.role != "ignored":
                    stack.append((getattr(x, info.name), getattr(y, info.name), _Path(path, f".{info.name}"), True))
        return None

    def _module(self, x: IRModule, y: IRModule, path: _Path, stack: list[_Pair]) -> str | None:
        if set(x.functions) != set(y.functions):
            return f"{path}.functions: {sorted(x.functions)} against {sorted(y.functions)}"
        stack.append((x.global_infos, y.global_infos, _Path(path, ".global_infos"), False))
        stack.append((x.attrs, y.attrs, _Path(path, ".attrs"), False))
        for name in reversed(list(x.functions)):
            stack.append((None, None, None, False))
            stack.append((x.functions[name], y.functions[name], _Path(path, f"[{name!r}]"), False))
        return None

    def _dimension(self, x: DimExpr, y: DimExpr, path: _Path) -> str | None:
        names, other = free_symbols(x), free_symbols(y)
        if len(names) != len(other):
            return f"{path}: {x} against {y}"
        if len(names) == 1 and str(x) == names[0] and str(y) == other[0]:
            if self.symbols.setdefault(names[0], other[0]) != other[0]:
                return f"{path}: {x} against {y}"
            if self.symbols_back.setdefault(other[0], names[0]) != names[0]:
                return f"{path}: {x} against {y}"
            return None
        self.later.append((x, y, path))
        return None

    def _finish_scope(self) -> str | None:
        """Compare the compound dimensions of a scope, now that its symbols are matched."""
        for x, y, path in self.later:
            renamed = substitute(x, {name: symbol(self.symbols.get(name, name)) for name in free_symbols(x)})
            if renamed != y:
                return f"{path}: {x} against {y}"
        self.later.clear()
        self.symbols.clear()
        self.symbols_back.clear()
        self.compared.clear()
        return None


def _show(value: Any) -> str:
    name = getattr(value, "name", None)
    text = repr(value) if not isinstance(name, str) else f"{type(value).__name__} {name!r}"
    return text if len(text) < 120 else text[:117] + "..."


def _same_bytes(x: np.ndarray, y: np.ndarray) -> bool:
    return np.array_equal(content_bytes(x), content_bytes(y))


def _same_data(x: Any, y: Any) -> bool:
    if is_array(x) and is_array(y):
        return x is y or (x.dtype == y.dtype and x.shape == y.shape and _same_bytes(x, y))
    if type(x) is not type(y):
        return False
    if isinstance(x, float):
        return struct.pack("<d", x) == struct.pack("<d", y)
    return bool(x == y)


@explained_by(malformed)
def structural_hash(value: Any) -> int:
    """A hash that structurally equal nodes share; the same in every process.

    >>> from weft.ir.types import PrimType
    >>> structural_hash(PrimType("int64")) == structural_hash(PrimType("int64"))
    True
    """
    if not isinstance(value, PrimFunc):
        return int.from_bytes(_Hashing().run(value), "little")
    found = _of_kernels.get(value)
    if found is None:
        found = _of_kernels[value] = int.from_bytes(_Hashing().run(value), "little")
    return found


_of_kernels: WeakKeyDictionary[PrimFunc, int] = WeakKeyDictionary()
"""Hashes that were asked for: a compilation asks for that of each kernel several times."""


_PLAIN_FIELDS: dict[type, tuple[tuple[str, bool], ...]] = {}


def _plain_fields(cls: type) -> tuple[tuple[str, bool], ...]:
    """The fields of a class of nodes that are hashed one by one, in order, and which bind; none for other classes."""
    special = issubclass(cls, _IDENTITY) or issubclass(cls, (IRModule, Block, VarBinding))
    fields = fields_of(cls) if issubclass(cls, Node) and not special else ()
    found = _PLAIN_FIELDS[cls] = tuple((x.name, x.role == "binder") for x in fields if x.role != "ignored")
    return found


class _Hashing:
    """One hash: bound objects and symbols are numbered in the order of their first visit."""

    def __init__(self) -> None:
        self.numbers: dict[int, int] = {}
        self.symbols: dict[str, int] = {}
        self.digest = hashlib.blake2b(digest_size=16)
        self.parts: list[str] = []  # not yet in the digest

    def _put(self, *parts: object) -> None:
        self.parts.append("\x1f".join(map(str, parts)))

    def _flush(self) -> None:
        if self.parts:
            self.digest.update(("\x1e".join(self.parts) + "\x1e").encode("utf-8", "surrogatepass"))
            self.parts.clear()

    def run(self, value: Any) -> bytes:
        stack: list[tuple[Any, bool]] = [(value, False)]
        parts, numbers, known = self.parts, self.numbers, _PLAIN_FIELDS
        steps = MANY_NODES
        while stack:
            for _ in range(steps):
                if not stack:
                    break
                current, defines = stack.pop()
                cls = current.__class__
                plain = known.get(cls)
                if plain is None:
                    plain = _plain_fields(cls)
                if plain:
                    parts.append(cls.__name__)
                    below: list[tuple[Any, bool]] = []
                    for name, binds in plain:
                        value_below = getattr(current, name)
                        kind = value_below.__class__
                        if not below and (kind is str or kind is int):  # data that comes first needs no stack
                            parts.append(f"{kind.__name__}\x1f{value_below}")
                        else:
                            below.append((value_below, defines or binds))
                    stack += below[::-1]
                elif cls is str or cls is int or current is None:
                    parts.append(f"{cls.__name__}\x1f{current}")
                elif cls is tuple:
                    parts.append(f"tuple\x1f{len(current)}")
                    for item in reversed(current):
                        stack.append((item, defines))
                elif (number := numbers.get(id(current))) is not None:  # bound objects that were visited, no other ones
                    parts.append(f"{cls.__name__}\x1f{number}")
                else:
                    self._step(current, defines, stack)
            else:
                refuse_repetition(value)
                steps = sys.maxsize
            self._flush()
        return self.digest.digest()

    def _step(self, x: Any, defines: bool, stack: list[tuple[Any, bool]]) -> None:
        if isinstance(x, IRModule):
            # One digest per function: they may come in any order, and symbols are scoped by function.
            self._put("IRModule", *(f"{name}:{structural_hash(x.functions[name]):x}" for name in sorted(x.functions)))
            stack.extend(((x.global_infos, False), (x.attrs, False)))
        elif isinstance(x, _IDENTITY):
            number = self.numbers.get(id(x))
            if number is None:
                number = self.numbers[id(x)] = len(self.numbers)
                if defines:
                    fields = fields_of(x.__class__)
                    names = ["ty"] if isinstance(x, Var) else [item.name for item in fields if item.role != "ignored"]
                    stack.extend((getattr(x, name), True) for name in reversed(names))
            self._put(type(x).__name__, number)
        elif isinstance(x, Node):
            self.parts.append(type(x).__name__)
            part = _parts(x)
            for info in reversed(_fields(x)):
                if info.role != "ignored":
                    stack.append((part(info.name), defines or info.role == "binder"))
        elif isinstance(x, tuple):
            items = cast("tuple[Any, ...]", x)
            self._put("tuple", len(items))
            stack.extend((item, defines) for item in reversed(items))
        elif isinstance(x, FrozenMap):
            self._put("map", *sorted(x))
            stack.extend((x[key], defines) for key in reversed(sorted(x)))
        else:
            self._data(x)

    def _data(self, x: Any) -> None:
        if isinstance(x, DimExpr):
            names = free_symbols(x)
            if len(names) == 1 and str(x) == names[0]:
                self._put("dim", self.symbols.setdefault(names[0], len(self.symbols)))
            else:  # coarse on purpose: the symbols of a compound dimension may be matched only later
                self._put("dim", "compound", len(names))
        elif is_array(x):
            self._put("array", x.dtype.str, x.shape, array_digest(x).hex())
        elif isinstance(x, float):
            self._put("float", struct.pack("<d", x).hex())
        else:
            self._put(type(x).__name__, x if not hasattr(x, "content_hash") else x.content_hash)
