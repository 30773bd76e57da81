"""Types and signatures of compiled functions, as records: what codegen states and the runtime checks arguments against.

    signature ::= Signature(name, kind, symbol, params, result, span, private)
    type      ::= Tensor | Buffer | Shape | Scalar | Tuple | String | Function | Object  of parameters and results
                | StridedBuffer | Text                                                  of what compiled code hands out

`str` of a type is what messages show, `words` how many 64-bit words a value of it takes (`weft.runtime.abi.frame`).
The JSON form of all of them is `weft.runtime.abi.json_form`.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any, Literal

from weft.errors import RecursionDepthError, tuple_words
from weft.runtime.abi.dims import Dim, shape_text
from weft.runtime.abi.frame import DYNAMIC_RANK
from weft.support.records import record

__all__ = [
    "Buffer",
    "Function",
    "Object",
    "Parameter",
    "Scalar",
    "Shape",
    "Signature",
    "Sized",
    "StridedBuffer",
    "Strides",
    "String",
    "Tensor",
    "Text",
    "Tuple",
    "Type",
    "Use",
]

_MOST_LEVELS, _MOST_WORDS = 64, 1 << 16
Use = Literal["", "copied", "written", "constant"]
"""What becomes of a tensor: only read; a copy of it written; written in place; a constant, which nobody writes."""


@record
class Tensor:
    """A dense tensor. `dtype` None: any; `dims` None: any of that `rank`; `rank` -1: any.

    >>> str(Tensor("float32", ("n", 128), 2)), Tensor("float32", ("n", 128), 2).words, Tensor(None, None, -1).words
    ('float32[(n, 128)]', 4, 20)
    """

    dtype: str | None
    dims: tuple[Dim, ...] | None
    rank: int
    use: Use = ""

    @property
    def is_static(self) -> bool:
        """Whether rank and dtype are known, so that the words are data, owner and sizes."""
        return self.dtype is not None and self.rank >= 0

    @property
    def words(self) -> int:
        """Data, owner and sizes; with rank and dtype where those are not known."""
        return 2 + self.rank if self.is_static else 4 + DYNAMIC_RANK

    def __str__(self) -> str:
        dtype = self.dtype or "tensor"
        if self.dims is not None:
            return f"{dtype}[{shape_text(self.dims)}]"
        return dtype if self.rank < 0 else f"{dtype} of rank {self.rank}"


@record
class Buffer:
    """A parameter of a tensor-level function; `strides` None: dense."""

    dtype: str
    dims: tuple[Dim, ...]
    strides: tuple[Dim, ...] | None
    written: bool

    @property
    def rank(self) -> int:
        """How many sizes it has."""
        return len(self.dims)

    @property
    def words(self) -> int:
        """Data, owner, sizes and, where they are stated, strides."""
        return 2 + len(self.dims) * (1 if self.strides is None else 2)

    def __str__(self) -> str:
        return f"{self.dtype}[{shape_text(self.dims)}]"


@record
class Shape:
    """A tuple of sizes; `dims` None: any of that `rank`; `rank` -1: any."""

    dims: tuple[Dim, ...] | None
    rank: int

    @property
    def words(self) -> int:
        """Its sizes; with their count where that is not known."""
        return self.rank if self.rank >= 0 else 1 + DYNAMIC_RANK

    def __str__(self) -> str:
        if self.dims is not None:
            return f"shape {shape_text(self.dims)}"
        return "a shape" if self.rank < 0 else f"a shape of {self.rank} sizes"


@record
class Scalar:
    """A number. `dim` names the size that it is, if it is one; a `is_size` is not negative.

    A handle is an array's memory, of at least `dim` bytes.
    """

    dtype: str
    dim: Dim = None
    is_size: bool = False

    @property
    def dims(self) -> tuple[Dim, ...]:
        """The one size."""
        return (self.dim,)

    @property
    def words(self) -> int:
        """Its bits."""
        return 1

    def __str__(self) -> str:
        return self.dtype


@record
class Tuple:
    """Values in order; RecursionDepthError W951 for tuples in more than 64 others, or of more than 65,536 words.

    Whoever walks a type may recurse, and types that are held twice at each of many levels have values without end.
    """

    fields: tuple[Type, ...]
    levels: int = field(init=False, repr=False, compare=False)
    """How many tuples are inside of one another, this one included."""
    words: int = field(init=False, repr=False, compare=False)
    """Those of its fields."""

    def __post_init__(self) -> None:
        levels = 1 + max([part.levels for part in self.fields if isinstance(part, Tuple)], default=0)
        if levels > _MOST_LEVELS:
            message = f"tuples that compiled code takes or gives nest at most {_MOST_LEVELS} levels"
            raise RecursionDepthError(message, code="W951")
        words = sum(part.words for part in self.fields)
        if words > _MOST_WORDS:
            message = f"tuples that compiled code takes or gives have at most {_MOST_WORDS} words, this one {words}"
            raise RecursionDepthError(message, code="W951")
        object.__setattr__(self, "levels", levels)
        object.__setattr__(self, "words", words)

    def __str__(self) -> str:
        return tuple_words(self, lambda item: item.fields if isinstance(item, Tuple) else None, str)


@record
class String:
    """A string, which the runtime holds."""

    @property
    def words(self) -> int:
        """Its number."""
        return 1

    def __str__(self) -> str:
        return "a string"


@record
class Function:
    """A function as a value, which the runtime holds."""

    @property
    def words(self) -> int:
        """Its number."""
        return 1

    def __str__(self) -> str:
        return "a function"


@record
class Object:
    """Any object, which the runtime holds."""

    @property
    def words(self) -> int:
        """Its number."""
        return 1

    def __str__(self) -> str:
        return "anything"


@record
class StridedBuffer:
    """A buffer that a kernel hands to a function outside: data, owner, sizes, strides."""

    dtype: str
    rank: int

    @property
    def words(self) -> int:
        """Data, owner, sizes and strides."""
        return 2 + 2 * self.rank

    def __str__(self) -> str:
        return f"{self.dtype} of rank {self.rank}"


@record
class Text:
    """A string that stands in the program."""

    text: str

    @property
    def words(self) -> int:
        """None."""
        return 0

    def __str__(self) -> str:
        return "a string"


@record
class Strides:
    """The strides of a buffer, as claims about sizes are made: of messages alone."""

    dims: tuple[Dim, ...]

    def __str__(self) -> str:
        return f"strides {shape_text(self.dims)}"


Type = Tensor | Buffer | Shape | Scalar | Tuple | String | Function | Object | StridedBuffer | Text
Sized = Tensor | Buffer | Shape | Scalar | Strides


@record
class Parameter:
    """A parameter; `span` is its place in the source text as data (`weft.runtime.abi.failures.span_of`)."""

    name: str
    type: Type
    span: list[Any] | None = None


@record
class Signature:
    """A compiled function: `symbol` is its entry in the object code ("" for none), `result` None for nothing."""

    name: str
    kind: Literal["graph", "kernel"]
    symbol: str
    params: tuple[Parameter, ...]
    result: Type | None
    span: list[Any] | None = None
    private: bool = False
