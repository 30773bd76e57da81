"""What the functions of one executable share while they are emitted: failure sites, constants, callbacks, names.

A site is a place in the program that may stop it. Its text travels in the executable's manifest:

    site ::= {kind, code, message: (text | number)*, span, hint}     a number stands for a value of the frame
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from weft.codegen.backends.llvm.asm.function import FunctionWriter, Size
from weft.codegen.backends.llvm.asm.instructions import getelementptr, store
from weft.codegen.backends.llvm.asm.key_vector import KeyVector
from weft.codegen.backends.llvm.asm.stack import NO_TAIL_CALLS, deep_calls, recursive_calls
from weft.codegen.host.signature import span_json
from weft.errors import Span
from weft.ir.module import BaseFunc
from weft.ir.tensor import PrimFunc
from weft.runtime.abi.frame import SITE, VALUE_COUNT, VALUES
from weft.support.records import dataclass

__all__ = ["Program", "kernel_symbol"]


def kernel_symbol(name: str) -> str:
    """The linker's name of a tensor-level function of the module."""
    return f"weft.kernel.{name}"


@dataclass
class Program:
    """Collects what the emitters of one executable produce besides code.

    `features` are those of the processor that code may use by name; without them it is the same for every processor.
    `gathers` says whether lanes are loaded from anywhere by one instruction.
    `sorts` is the width in bits of vectors that sort keys, 0 where there are none; `sorted_keys` collects those for
    which functions are linked.
    `c_functions` are C functions that may be called beside those that are declared; with `links_later` they are found
    when the object code is linked, not in this process. Memory of `guarded` code has no room behind it.
    """

    functions: Mapping[str, BaseFunc]
    opt: int = 2
    fast_math: bool = False
    parallel: bool = False
    threads: int = 0
    serial: bool = False
    strict_math: bool = False
    features: frozenset[str] = frozenset()
    gathers: bool = True
    sorts: int = 0
    aliases: Mapping[str, str] = field(default_factory=dict)
    c_functions: frozenset[str] = frozenset()
    links_later: bool = False
    guarded: bool = False
    sites: list[dict[str, Any]] = field(default_factory=list)
    sorted_keys: set[KeyVector] = field(default_factory=set)
    constants: list[tuple[np.ndarray, str]] = field(default_factory=list)
    _deep: frozenset[str] | None = None
    _constant_ids: dict[int, int] = field(default_factory=dict)
    _written: dict[str, set[int]] = field(default_factory=dict)
    _kernel_types: dict[str, Any] = field(default_factory=dict)

    def nests_deeply(self, name: str) -> bool:
        """Whether calls of a function may nest so deeply that the stack has to be asked; never without a runtime."""
        if self._deep is None:
            self._deep = frozenset() if self.links_later else deep_calls(self.functions)
        return name in self._deep

    def has_no_end(self, name: str) -> bool:
        """Whether calls of a function may nest without end where nothing asks for the stack: without a runtime."""
        return self.links_later and name in recursive_calls(self.functions)

    def attributes(self, name: str) -> str:
        """The attributes of the code of a function of the module."""
        return f"nounwind {NO_TAIL_CALLS}" if self.nests_deeply(name) else "nounwind"

    def kernel(self, name: str) -> PrimFunc | None:
        """The tensor-level function of that name, when the module has one."""
        found = self.functions.get(name)
        return found if isinstance(found, PrimFunc) else None

    def kernel_symbol(self, name: str) -> str:
        """The linker's name of the code of a tensor-level function, which equal functions share."""
        return kernel_symbol(self.aliases.get(name, name))

    def written(self, name: str, kernel: PrimFunc, find: Callable[..., set[int]]) -> set[int]:
        """The parameters that a kernel writes, found once."""
        if name not in self._written:
            self._written[name] = find(kernel, self.functions)
        return self._written[name]

    def kernel_types(self, name: str, kernel: PrimFunc, find: Callable[[PrimFunc], Any]) -> Any:
        """The names of a kernel's symbols and the types of its parameters, found once."""
        if name not in self._kernel_types:
            self._kernel_types[name] = find(kernel)
        return self._kernel_types[name]

    def constant(self, array: np.ndarray, dtype: str) -> int:
        """The number of a constant in the executable's table; one entry per array object."""
        found = self._constant_ids.get(id(array))
        if found is None:
            found = self._constant_ids[id(array)] = len(self.constants)
            self.constants.append((array, dtype))
        return found

    def site(self, **text: Any) -> int:
        """Number a site; `span` becomes data."""
        text["span"] = span_json(text.get("span"))
        self.sites.append(text)
        return len(self.sites) - 1

    def place(self, kind: str, span: Span | None) -> int:
        """The number of the place of a call (a KERNEL_CALL or a GRAPH_CALL), for failures inside what it calls.

        Every call has one, so that the code is the same whether its text is known or not.
        """
        return self.site(kind=kind, span=span)

    def fail(
        self,
        w: FunctionWriter,
        kind: str,
        message: str | Sequence[str | int],
        values: Sequence[Size] = (),
        *,
        code: str | None = None,
        span: Span | None = None,
        hint: str | None = None,
        note: Sequence[str | int] = (),
    ) -> None:
        """Record a failure in the frame (`%frame`); the caller then leaves with status 1.

        Numbers among the parts of the message and of the note stand for the values of these indices.
        """
        parts = [message] if isinstance(message, str) else list(message)
        site = self.site(kind=kind, code=code, message=parts, span=span, hint=hint, note=list(note))
        self.store_site(w, site, values)

    def store_site(self, w: FunctionWriter, site: int, values: Sequence[Size]) -> None:
        """Write a site's number and values to the frame."""
        w.do(store("i64", site, frame_word(w, SITE)))
        for index, value in enumerate(values[:VALUE_COUNT]):
            w.do(store("i64", value, frame_word(w, VALUES + index)))


def frame_word(w: FunctionWriter, index: int) -> str:
    """The address of a word of the frame."""
    return w.emit(getelementptr("i64", "%frame", index)) if index else "%frame"
