"""MachineModel: what a processor has, as far as schedules follow from it.

    model ::= a row of the table of processors  <  the machine options of the target      (what is given wins)

Every number about hardware that a pass goes by is here or follows from here: width and number of vector registers,
masks, gathers, caches, cores, non-temporal stores, the stack, and the one table of dot-product instructions. The model
of a target is `Target.machine`; `Target.explain()` prints the one that code is scheduled by, which is that of the
processor found where the target is this machine. Options that override it are declared by a kind under the names in
`OVERRIDES` (the kind `llvm` has them all; a kind of a plug-in may have some).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from weft import dtypes
from weft.support.records import dataclass, record
from weft.target.features import vector_bits, with_flags
from weft.target.processors import CPUS, CPUFacts

__all__ = [
    "DOT_PRODUCTS",
    "OVERRIDES",
    "STACK_BYTES",
    "STACK_TOTAL",
    "DotProduct",
    "MachineModel",
    "machine_model",
    "useful_dots",
    "widest_vector",
]

STACK_BYTES = 16 << 10
"""A buffer of at most so many bytes is put on the stack of the thread that needs it."""
STACK_TOTAL = 24 << 10
"""What all buffers of a function take there together: threads may have small stacks."""


@record
class DotProduct:
    """An instruction that adds up products: c[m, n] += a[m, k] * b[k, n] for each group of lanes (or once, in tiles).

    `feature` is LLVM's name of what a processor needs for it, `shape` (m, n, k) of one group, `types` those of a, b
    and c. `intrinsic` is LLVM's, over vectors of so many `{bits}` or over matrices by their numbers, and `operand` the
    type of the elements that vectors of it have; without one it is not emitted. On which processors it is slow, the
    table of processors says, and `slow_beside`: features of processors that may go by another's name, as those of
    virtual machines do. `caches` are the bytes of the first and second level that processors with it have at least,
    whatever name they go by.
    """

    feature: str
    instruction: str
    shape: tuple[int, int, int]
    types: tuple[str, str, str]
    intrinsic: str = ""
    operand: str = ""
    slow_beside: tuple[str, ...] = ()
    caches: tuple[int, int] = (0, 0)

    @property
    def terms(self) -> int:
        """The terms of each sum that one instruction adds."""
        return self.shape[2]

    @property
    def is_vector(self) -> bool:
        """Whether each lane of c has a sum of its own, and compiled code has the instruction."""
        return self.shape[:2] == (1, 1) and bool(self.intrinsic)

    @property
    def is_matrix(self) -> bool:
        """Whether c is a matrix in a register of its own kind, and compiled code has the instruction."""
        return self.shape[0] > 1 and bool(self.intrinsic)


_AMX_CACHES = (48 << 10, 2 << 20)
DOT_PRODUCTS = (
    DotProduct(
        "avx512vnni", "vpdpbusd", (1, 1, 4), ("uint8", "int8", "int32"), "llvm.x86.avx512.vpdpbusd.{bits}", "i8"
    ),
    DotProduct("avxvnni", "vpdpbusd", (1, 1, 4), ("uint8", "int8", "int32"), "llvm.x86.avx512.vpdpbusd.{bits}", "i8"),
    DotProduct(
        "avx512vnni", "vpdpwssd", (1, 1, 2), ("int16", "int16", "int32"), "llvm.x86.avx512.vpdpwssd.{bits}", "i16"
    ),
    DotProduct("avxvnni", "vpdpwssd", (1, 1, 2), ("int16", "int16", "int32"), "llvm.x86.avx512.vpdpwssd.{bits}", "i16"),
    DotProduct(
        "avx512bf16",
        "vdpbf16ps",
        (1, 1, 2),
        ("bfloat16", "bfloat16", "float32"),
        "llvm.x86.avx512bf16.dpbf16ps.{bits}",
        "bfloat",
        slow_beside=("amx-bf16", "avx512fp16"),  # Intel's: 99 beside 161 GF/s of converted operands, 512x512x512
    ),
    DotProduct("amx-int8", "tdpbssd", (16, 16, 64), ("int8", "int8", "int32"), "llvm.x86.tdpbssd", caches=_AMX_CACHES),
    DotProduct("amx-int8", "tdpbsud", (16, 16, 64), ("int8", "uint8", "int32"), "llvm.x86.tdpbsud", caches=_AMX_CACHES),
    DotProduct("amx-int8", "tdpbusd", (16, 16, 64), ("uint8", "int8", "int32"), "llvm.x86.tdpbusd", caches=_AMX_CACHES),
    DotProduct(
        "amx-int8", "tdpbuud", (16, 16, 64), ("uint8", "uint8", "int32"), "llvm.x86.tdpbuud", caches=_AMX_CACHES
    ),
    DotProduct(
        "amx-bf16",
        "tdpbf16ps",
        (16, 16, 32),
        ("bfloat16", "bfloat16", "float32"),
        "llvm.x86.tdpbf16ps",
        caches=_AMX_CACHES,
    ),
    DotProduct("dotprod", "sdot", (1, 1, 4), ("int8", "int8", "int32")),
    DotProduct("dotprod", "udot", (1, 1, 4), ("uint8", "uint8", "uint32")),
    DotProduct("i8mm", "smmla", (2, 2, 8), ("int8", "int8", "int32")),
    DotProduct("bf16", "bfdot", (1, 1, 2), ("bfloat16", "bfloat16", "float32")),
    DotProduct("dsp", "smlad", (1, 1, 2), ("int16", "int16", "int32")),
    DotProduct("mve", "vmladava.s8", (1, 1, 16), ("int8", "int8", "int32")),
)
"""Every dot-product instruction that is known; nothing else lists them."""

OVERRIDES: Mapping[str, str] = {
    "vector_bits": "vector_bits",
    "vector_registers": "vector_registers",
    "masks": "masks",
    "gather": "gather",
    "l1_cache": "l1_bytes",
    "l2_cache": "l2_bytes",
    "l3_cache": "l3_bytes",
    "cores": "cores",
    "streaming_bytes": "nontemporal_bytes",
    "stack_bytes": "stack_bytes",
}
"""Option of a target -> field of the model."""


@dataclass(frozen=True)
class MachineModel:
    """What schedules know of a machine; sizes are in bytes.

    `vector_bits` and `vector_registers` are 0 where there are no vectors. `masks` says whether part of a vector is
    loaded and stored by one instruction (None: as wide vectors have it), `gather` whether lanes are loaded from
    anywhere, `compress` whether the lanes that a mask picks are put together, `compress_narrow` whether those of 16
    bits are. `cores` is 0 where only the process that runs the code knows, and 1 where one thread runs it. Results of
    `nontemporal_bytes` or more are stored past the caches (0: none is). `dot_features` name the rows of `DOT_PRODUCTS`
    that there are. Buffers of at most `stack_bytes` stay on the stack.

    >>> model = MachineModel(vector_bits=512, vector_registers=32)
    >>> model.has_masks, model.lanes(["float32", "float16"]), model.dot_products
    (True, 16, ())
    >>> str(model)
    '{vector_bits: 512, vector_registers: 32}'
    """

    vector_bits: int = 256
    vector_registers: int = 16
    masks: bool | None = None
    gather: bool = False
    compress: bool = False
    compress_narrow: bool = False
    l1_bytes: int = 32 << 10
    l2_bytes: int = 1 << 20
    l3_bytes: int = 32 << 20
    line_bytes: int = 64
    cores: int = 0
    nontemporal_bytes: int = 0
    stack_bytes: int = STACK_BYTES
    dot_features: tuple[str, ...] = ()

    @property
    def dot_products(self) -> tuple[DotProduct, ...]:
        """The dot-product instructions that there are and that pay."""
        return tuple(dot for dot in DOT_PRODUCTS if dot.feature in self.dot_features)

    @property
    def matrix_caches(self) -> tuple[int, int]:
        """The bytes of the first and second cache where matrices are multiplied: a name may stand for processors with
        smaller ones, which have no such instruction.

        >>> MachineModel(dot_features=("amx-bf16",)).matrix_caches
        (49152, 2097152)
        """
        known = [(self.l1_bytes, self.l2_bytes), *(dot.caches for dot in self.dot_products)]
        return max(first for first, _ in known), max(second for _, second in known)

    @property
    def sort_bits(self) -> int:
        """The width of the vectors that sort unsigned keys of 32 or 64 bits (T.sort_keys); 0 where none do.

        >>> MachineModel(vector_bits=512, compress=True).sort_bits, MachineModel().sort_bits
        (512, 0)
        """
        return min(self.vector_bits, 512) if self.compress and self.vector_bits >= 256 else 0

    @property
    def sorted_widths(self) -> tuple[int, ...]:
        """The bits of elements that are sorted by vectors of them (T.sort_values).

        >>> MachineModel(vector_bits=512, compress=True).sorted_widths, MachineModel().sorted_widths
        ((32, 64), ())
        """
        if not self.sort_bits:
            return ()
        return (16, 32, 64) if self.compress_narrow else (32, 64)

    @property
    def has_masks(self) -> bool:
        """Whether part of a vector is loaded and stored by one instruction."""
        return self.vector_bits >= 256 if self.masks is None else self.masks

    def lanes(self, kinds: Iterable[str]) -> int:
        """Lanes of vectors whose widest elements (of several dtypes) fill a register.

        >>> MachineModel(vector_bits=128).lanes(["float64"])
        2
        """
        return max(1, min(64, self.vector_bits // max((dtypes.bits(kind) for kind in kinds), default=64)))

    def chains(self, lanes: int) -> int:
        """How many vectors a long computation takes at once: chains hide each other's latency, and need registers.

        >>> MachineModel(512, 32).chains(16), MachineModel().chains(8)
        (4, 2)
        """
        return max(1, min(self.vector_registers // 8, 64 // lanes))

    def to_dict(self) -> dict[str, Any]:
        """The fields that differ from the defaults, as plain data."""
        values = ((item, getattr(self, item.name)) for item in fields(self))
        return {item.name: value for item, value in values if value != item.default}

    def __str__(self) -> str:
        return "{" + ", ".join(f"{name}: {_shown(value)}" for name, value in self.to_dict().items()) + "}"

    def explain(self, given: Mapping[str, Any] | None = None) -> list[str]:
        """A line for each field: its value, and whether an option of the target gave it."""
        stated = {OVERRIDES[name] for name in given or {} if name in OVERRIDES}
        lines: list[str] = []
        for item in fields(self):
            value = getattr(self, item.name)
            if item.name == "dot_features":
                value = " ".join(value) or "none"
            if item.name == "masks":
                value = self.has_masks
            if item.name == "cores" and not value:
                value = "those of the process that runs it"
            lines.append(f"machine.{item.name} = {_shown(value)} ({'given' if item.name in stated else 'derived'})")
        return lines


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def machine_model(facts: CPUFacts | None, options: Mapping[str, Any], features: Sequence[str] = ()) -> MachineModel:
    """The model of a processor (None: nothing is known of it) under the options and `+features` of a target.

    Code of one thread is cut for one core.
    """
    known = facts or CPUFacts("")
    flags = ",".join(features)
    if flags:
        known = replace(known, vector_bits=vector_bits(known.arch, known.vector_bits, flags))
    has = with_flags(known.features, flags)
    l1, l2, l3 = known.caches
    model = MachineModel(
        vector_bits=known.vector_bits,
        vector_registers=known.vector_registers,
        gather=bool(has & {"avx2", "avx512f", "sve"}),
        compress="avx512f" in has,
        compress_narrow="avx512vbmi2" in has,
        l1_bytes=l1,
        l2_bytes=l2,
        l3_bytes=l3,
        nontemporal_bytes=known.nontemporal_bytes,
        cores=1 if options.get("threads") == 1 else 0,
        dot_features=useful_dots(known, has),
    )
    given = {OVERRIDES[name]: value for name, value in options.items() if name in OVERRIDES and value is not None}
    return replace(model, **given) if given else model


def useful_dots(facts: CPUFacts, features: Collection[str]) -> tuple[str, ...]:
    """The features of dot-product instructions among those of a processor, without instructions that are slow there.

    >>> useful_dots(CPUS["sapphirerapids"], ["avx512bf16", "avx512vnni"])
    ('avx512vnni',)
    >>> useful_dots(CPUS["znver4"], ["avx512bf16"]), useful_dots(CPUS["znver4"], ["avx512bf16", "amx-bf16"])
    (('avx512bf16',), ('amx-bf16',))
    """
    useful = (
        dot
        for dot in DOT_PRODUCTS
        if dot.instruction not in facts.slow and not any(name in features for name in dot.slow_beside)
    )
    return tuple(dict.fromkeys(dot.feature for dot in useful if dot.feature in features))


def widest_vector() -> int:
    """The widest vectors of all processors that are known: what is even there is even everywhere, in bits."""
    return max(facts.vector_bits for facts in CPUS.values())
