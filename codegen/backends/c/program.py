"""The program of one model, ready to be written as C (`weft.codegen.backends.c.files`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

from weft import dtypes
from weft.codegen.backends.c.helpers import c_type
from weft.codegen.backends.c.kernel import Helpers, KernelWriter
from weft.codegen.backends.c.memory import Pool
from weft.codegen.backends.c.names import c_name, identifier, is_word
from weft.errors import Span, TargetError
from weft.ir.dim import free_symbols, product
from weft.ir.types import TensorType
from weft.runtime.artifact import Artifact
from weft.support.records import dataclass
from weft.target import Target
from weft.transform.graph.bind_symbolic_vars import how_to_bind

__all__ = ["Memory", "MemoryView", "Operator", "Program", "member_names", "size_of", "static_shape"]


@dataclass
class Memory:
    """Where a tensor lives: a C expression of its first element, its type, and for allocations their number."""

    text: str
    ty: TensorType
    allocation: int | None = None


class MemoryView(Memory):
    """The memory of another tensor, wherever it is placed in the end, seen with a type of its own."""

    def __init__(self, source: Memory, ty: TensorType) -> None:
        self.source, self.ty, self.allocation = source, ty, source.allocation

    @property
    def text(self) -> str:  # type: ignore[override]
        """The first element: a cast where C has another type for the elements."""
        kind, own = c_type(self.ty.dtype or ""), c_type(self.source.ty.dtype or "")
        return self.source.text if kind == own else f"(({kind} *)(uintptr_t){self.source.text})"


@dataclass(frozen=True)
class Operator:
    """One call of a kernel or external function: its lines, the device it runs on (or none), what metadata says."""

    name: str
    label: str
    device: str
    scratch: int
    write: Callable[[], str]
    checked: bool


@dataclass
class Program:
    """What `files` needs to write the C of one model."""

    model: str
    function: str
    target: Target
    parts: dict[str, Target]
    main_label: str
    inputs: list[Memory]
    outputs: list[Memory] = field(default_factory=list)
    operators: list[Operator] = field(default_factory=list)
    copies: list[tuple[str, Memory]] = field(default_factory=list)
    constants: dict[tuple[str, bytes, tuple[int, ...]], str] = field(default_factory=dict)
    kernels: dict[tuple[str, str, tuple[int, ...]], KernelWriter] = field(default_factory=dict)
    helpers: dict[str, Helpers] = field(default_factory=dict)
    externs: dict[str, str] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)
    artifacts: list[Artifact] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    pools: tuple[Pool, ...] = ()

    @property
    def labels(self) -> list[str]:
        """The labels of the parts that have kernels, in the order of the parts."""
        used = {label for _, label, _ in self.kernels}
        return [label for label in self.parts if label in used]

    @property
    def devices(self) -> list[str]:
        """The labels of the devices that are called, in the order of the parts."""
        used = {operator.device for operator in self.operators if operator.device}
        return [label for label in self.parts if label in used]

    @property
    def constant_bytes(self) -> int:
        """Bytes of all constants."""
        return sum(len(content) for _, content, _ in self.constants)


def static_shape(ty: TensorType, span: Span | None = None) -> tuple[int, ...]:
    """The shape of a tensor; TargetError W745 when a size is not known."""
    if ty.dims is None or ty.dtype is None or not all(isinstance(dim, int) for dim in ty.dims):
        unknown = [name for dim in ty.dims or () for name in free_symbols(dim)]
        raise TargetError(
            f"c: every size must be known at compile time{f', and {unknown[0]} is not' if unknown else ''}",
            code="W745",
            span=span,
            hint=f"bind it: {how_to_bind(unknown[0])}" if unknown else "state the shape and the dtype",
        )
    return ty.dims  # type: ignore[return-value]


def size_of(ty: TensorType) -> int:
    """Bytes of a tensor."""
    return int(product(static_shape(ty))) * max(1, dtypes.bits(ty.dtype or "") // 8)  # type: ignore[arg-type]


def member_names(wanted: Sequence[str], others: Sequence[str] = ()) -> list[str]:
    """Names for members of a structure beside others: the wanted ones where C allows it, and no two the same.

    >>> member_names(["x", "int", "x", "é"])
    ['x', 'v_int', 'x_1', '_']
    """
    taken = set(others)
    found: list[str] = []
    for index, given in enumerate(wanted):
        name = c_name(given)
        if not name or name in taken or is_word(name) or name[0].isdigit():
            name = identifier(name or f"input{index}", taken)
        taken.add(name)
        found.append(name)
    return found
