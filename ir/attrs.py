"""Every attribute key that weft reads or writes: what carries it, the type of its value, what it means.

    R.func_attr({"tir_var_upper_bound": {"n": 2048}})         functions
    I.module_attrs({"exactness": "bit"})                      modules
    T.serial(8, annotations={"weft.streams": 67108864})       loops
    T.attr(None, "prefetch", A[i])                            statements

A module, function, loop, block or statement may carry any other key as well: it is kept and printed, and means nothing
here. The constants are what code uses; docs/reference/attributes.md is made from the table, and the verifier holds
values against it (W436).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from weft.ir.tensor import MATRIX_TILES, PREFETCH, IntImm
from weft.support.guards import is_listing, is_mapping
from weft.support.records import record

__all__ = [
    "ABSENT", "ARTIFACTS", "ASSIGNED", "ATTRIBUTES", "BASE_PY_MODULE", "CARRIED", "CHAIN", "CHEAPER", "CODEGEN",
    "COMPOSITE", "CONSTANT", "CONSTANTS", "COPIES", "DECISIONS", "DEVICE_ENTRY", "DOC", "DOUBLE_BUFFER", "DPS", "ENTRY",
    "EXACTNESS",
    "FORCE_PURE", "FUSION", "GLOBAL_SYMBOL", "HANDLE_BYTES", "HINT", "IN_PLACE", "KERNELS", "KEYS", "LABEL",
    "MATRIX_TILES", "NAME", "NOALIAS", "NUM_INPUT", "OP_PATTERN", "PERSISTENT", "PIPELINE_ASYNC", "PIPELINE_ORDER",
    "PIPELINE_STAGE", "PREFETCH", "PRIMITIVE", "REWRITER", "SCHEDULED", "SCRATCH", "SHARED",
    "SHARES_MEMORY", "STREAMS", "THREAD_EXTENT", "TOLERANCE", "UPPER_BOUNDS", "VIRTUAL_THREAD", "WHERE",
    "WORKSPACE_SIZE",
    "AttributeKey", "Carrier", "attribute", "wrong_values",
]


class Carrier(StrEnum):
    """What an attribute stands on."""

    MODULE = "modules"
    RULE = "modules that are rules"
    GRAPH = "graph functions"
    KERNEL = "tensor-level functions"
    CALL = "calls of graph functions"
    LOOP = "loops"
    BLOCK = "blocks"
    STATEMENT = "attribute statements"


@record
class AttributeKey:
    """One key: what carries it, its value in words and as a test, its meaning, other spellings that are read as it."""

    name: str
    carriers: tuple[Carrier, ...]
    type: str
    accepts: Callable[[Any], bool]
    meaning: str
    aliases: tuple[str, ...] = ()


KEYS: dict[tuple[Carrier, str], AttributeKey] = {}
"""The table, by what carries an attribute and its key or another spelling."""
_ALIASES: dict[str, tuple[str, ...]] = {}

_FUNCTIONS = (Carrier.GRAPH, Carrier.KERNEL)


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, IntImm) else value


def _flag(value: Any) -> bool:
    return isinstance(_plain(value), (bool, int))


def _count(value: Any) -> bool:
    value = _plain(value)
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _several(accepts: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: is_listing(value) and all(map(accepts, value))


def _anything(value: Any) -> bool:
    return True


_TYPES: dict[str, Callable[[Any], bool]] = {
    "flag": _flag,
    "number from 0": _count,
    "text": _text,
    "text or number": lambda value: _text(value) or _count(value),
    "texts": _several(_text),
    "numbers from 0": _several(_count),
    "pairs of positions": _several(lambda pair: _several(_count)(pair) and len(pair) == 2),
    "mapping": lambda value: is_mapping(value),
    "sizes by symbol": lambda value: is_mapping(value) and all(map(_count, value.values())),
    "records": _several(lambda item: is_mapping(item)),
    "number": lambda value: isinstance(_plain(value), (int, float)) and not isinstance(value, bool),
    "value": _anything,
}
"""The values that attributes have, by the words for them."""


def _key(name: str, carriers: Carrier | tuple[Carrier, ...], type: str, meaning: str, *aliases: str) -> str:
    carriers = (carriers,) if isinstance(carriers, Carrier) else carriers
    row = AttributeKey(name, carriers, type, _TYPES[type], meaning, aliases)
    if aliases:
        _ALIASES[name] = aliases
    KEYS.update({(carrier, spelling): row for carrier in carriers for spelling in (name, *aliases)})
    return name


# ---------------------------------------------------------------------------------------------------------------------
# Functions
# ---------------------------------------------------------------------------------------------------------------------

GLOBAL_SYMBOL = _key("global_symbol", _FUNCTIONS, "text", "The name that callers outside know: its own.")
LABEL = _key("target", (*_FUNCTIONS, Carrier.CALL), "value", "The label of the part of the target that does this.")
NOALIAS = _key("noalias", _FUNCTIONS, "flag", "Buffer arguments do not overlap; false: they may.",
               "tir.noalias", "tirx.noalias")
SCHEDULED = _key("tir.is_scheduled", Carrier.KERNEL, "flag",
                 "A schedule arranged the loops: rules and fusion leave them as they are.")
OP_PATTERN = _key("op_pattern", Carrier.KERNEL, "text or number", "How the kernel may be fused; see `fuse-ops`.")
DECISIONS = _key("decisions", _FUNCTIONS, "records", "What the default schedule chose, and may be told to choose.")
SHARES_MEMORY = _key("shares_memory", Carrier.KERNEL, "pairs of positions",
                     "(input, output) positions that may be given the same memory.")
SCRATCH = _key("scratch", Carrier.KERNEL, "numbers from 0",
               "Positions of parameters that are memory of the kernel's own: nothing else looks into them.")
HANDLE_BYTES = _key("handle_bytes", Carrier.KERNEL, "value",
                    "How many bytes the kernel looks at behind its bare handles, in their order.")
ENTRY = _key("entry", Carrier.KERNEL, "flag", "The whole program of a graph function, as one function.")
COPIES = _key("copies", Carrier.KERNEL, "text", "The kernel carries a tensor to another part of the target.")
PERSISTENT = _key("tirx.persistent_kernel", Carrier.KERNEL, "flag", "Written `persistent=True` in texts for TVM.")
PRIMITIVE = _key("primitive", _FUNCTIONS, "flag", "A group of kernels that becomes one kernel.", "Primitive")
FUSION = _key("fusion", _FUNCTIONS, "text", "Why these calls are one group; `explain` prints it.")
IN_PLACE = _key("in_place", Carrier.KERNEL, "text", "Why it changes an input where that is; `explain` prints it.")
KERNELS = _key("kernels", Carrier.GRAPH, "texts", "The kernels of a group, in order.")
COMPOSITE = _key("Composite", Carrier.GRAPH, "text", "The name of the pattern that the function was cut out by.")
CODEGEN = _key("Codegen", Carrier.GRAPH, "text", "The code generator that takes the function, as TVM writes it.")
WORKSPACE_SIZE = _key(
    "WorkspaceSize", Carrier.GRAPH, "number from 0", "The bytes of scratch memory that the function needs."
)
NUM_INPUT = _key("num_input", Carrier.GRAPH, "number from 0", "How many parameters are inputs; the rest are weights.")
UPPER_BOUNDS = _key("tir_var_upper_bound", Carrier.GRAPH, "sizes by symbol",
                    "The greatest values of symbols: plans of memory rely on them, calls are checked.")
FORCE_PURE = _key("relax.force_pure", Carrier.GRAPH, "flag", "The author vouches that no effect can be seen outside.")
ASSIGNED = _key("assigned", Carrier.GRAPH, "flag", "Calls have their labels: places are chosen once.")

# ---------------------------------------------------------------------------------------------------------------------
# Calls, loops, statements
# ---------------------------------------------------------------------------------------------------------------------

DPS = _key("dps", Carrier.CALL, "flag", "The call writes its last arguments, which are made for it, and gives nothing.")
ABSENT = _key("absent", Carrier.CALL, "texts", "Parameters that are left out before one that is given.")
STREAMS = _key("weft.streams", Carrier.LOOP, "number from 0",
               "Stores go past the caches (non-temporal) where the buffer has so many bytes or more.")
CHAIN = _key("weft.chain", Carrier.LOOP, "flag", "A loop over blocks of a chain of contractions.")
SHARED = _key("weft.shared", Carrier.LOOP, "flag", "A loop that was made to be shared by threads.")
PIPELINE_STAGE = _key("software_pipeline_stage", Carrier.LOOP, "numbers from 0",
                      "How many iterations each part of the body is behind; see `inject-software-pipeline`.")
PIPELINE_ORDER = _key("software_pipeline_order", Carrier.LOOP, "numbers from 0",
                      "The place of each part of the body in a step of the pipeline.")
PIPELINE_ASYNC = _key("software_pipeline_async_stages", Carrier.LOOP, "numbers from 0",
                      "Stages that graphics processors run by themselves; `inject-software-pipeline` refuses them.")
DOUBLE_BUFFER = _key("double_buffer_scope", Carrier.BLOCK, "number from 0",
                     "The block fills the buffer of this number one iteration ahead; see `inject-double-buffer`.")
_key(MATRIX_TILES, Carrier.STATEMENT, "text", "The instruction over matrices that may do what the body says.")
_key(PREFETCH, Carrier.STATEMENT, "value", "Wanted soon, of `nearest` very soon: no result changes, it may not exist.")
HINT = _key("tirx.hint", Carrier.STATEMENT, "mapping", "What `T.hint` of texts for TVM says.")
THREAD_EXTENT = _key("thread_extent", Carrier.STATEMENT, "value", "How many threads of an axis there are.")
VIRTUAL_THREAD = _key("virtual_thread", Carrier.STATEMENT, "value", "How many threads of an axis one thread plays.")
DEVICE_ENTRY = _key("tirx.device_entry", Carrier.STATEMENT, "value", "What `T.device_entry()` of texts for TVM says.")

# ---------------------------------------------------------------------------------------------------------------------
# Modules
# ---------------------------------------------------------------------------------------------------------------------

CARRIED = _key("target", Carrier.MODULE, "value", "The target that the module is compiled for.")
ARTIFACTS = _key("artifacts", Carrier.MODULE, "value", "The compiled code that the module carries.")
CONSTANTS = _key("constants", Carrier.MODULE, "value", "The arrays that a lowered entry reads.")
BASE_PY_MODULE = _key("base_py_module", Carrier.MODULE, "flag", "The class derives from `BasePyModule`.")
REWRITER = _key("rewriter", Carrier.MODULE, "flag", "The module is a rule, which `@R.rewriter` says of a class.")
NAME = _key("name", Carrier.RULE, "text", "Its name.")
DOC = _key("doc", Carrier.RULE, "text", "What it does, in a sentence.")
EXACTNESS = _key("exactness", Carrier.RULE, "text", "How exact it is; one of `EXACTNESS`.")
TOLERANCE = _key("tolerance", Carrier.RULE, "number", "By how much results may differ.")
CONSTANT = _key("constant", Carrier.RULE, "texts", "Parameters that have to be constants.")
WHERE = _key("where", Carrier.RULE, "texts", "Relations of sizes that have to hold.")
ATTRIBUTES = _key("attributes", Carrier.RULE, "texts", "Attributes that both sides share.")
CHEAPER = _key("cheaper", Carrier.RULE, "flag", "It applies only where the replacement costs less.")


def attribute(attrs: Mapping[str, Any], key: str, default: Any = None) -> Any:
    """The value of a key, or of another spelling of it.

    >>> attribute({"Primitive": 1}, PRIMITIVE)
    1
    """
    return next((attrs[name] for name in (key, *_ALIASES.get(key, ())) if name in attrs), default)


def wrong_values(attrs: Mapping[str, Any], carrier: Carrier) -> list[tuple[AttributeKey, Any]]:
    """The keys of the table whose values are of another type, with their values.

    >>> [row.type for row, value in wrong_values({"op_pattern": [1]}, Carrier.KERNEL)]
    ['text or number']
    """
    if not attrs:
        return []
    rows = [(KEYS.get((carrier, name)), value) for name, value in attrs.items()]
    return [(row, value) for row, value in rows if row is not None and not row.accepts(value)]
