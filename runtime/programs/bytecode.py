"""Bytecode of the executor `vm`: plain data, checked before it runs.

    program     ::= {format, version, functions: [function], spans: [span | null]}
    function    ::= {name, params: [{name, type, span}], result: type, registers, code: [instruction], private, sizes}
    sizes       ::= {number of a call of a kernel: [[message]]}            of an argument whose size breaks a relation
    message     ::= [text | 0 | 1]                                         0 the size that is wanted, 1 the one given
    instruction ::= ["call", register | -1, callee, [operand], span]     -1: the result is dropped
                  | ["size", register, operation, [size], text, span]    a number, exactly; for the size that is `text`
                  | ["ret", operand]
                  | ["if", operand, offset]                              skips `offset` instructions when false
                  | ["goto", offset]
    callee      ::= ["kernel", name] | ["function", name] | ["packed", name] | ["builtin", name]
                  | ["value", operand, types of arguments, type of result]
    operand     ::= ["r", register] | ["k", constant] | ["i", int or bool] | ["x", float in hexadecimal] | ["s", text]
                  | ["d", size] | ["shape", [size]] | ["t", [operand]] | ["f", function] | ["ty", type]
    size        ::= integer | symbol | [register, text]                  a computed one has been computed before

A call of a packed function has two operands more: the types of its arguments as one tuple, and the type of its result
(an empty one: it writes outputs); `print` and `assert` have the types of what they show.
Types are those of `weft.runtime.abi.json_form`, operations those of `weft.runtime.abi.dims`; spans number the table, -1
is none. Symbols have the values that matched types gave them; each computed size is computed once, where it is first
needed. A program is trusted as
far as its form goes only after `check_program`: registers, functions, constants and jumps that are not there are
refused.

Errors: ArtifactError W840 for what has not this form.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from weft.errors import ArtifactError
from weft.runtime.abi.dims import OPERATIONS
from weft.runtime.abi.json_form import parameter_from_json, type_from_json
from weft.runtime.abi.types import Signature
from weft.support.records import record

__all__ = [
    "BUILTINS",
    "FORMAT",
    "VERSION",
    "BytecodeFunction",
    "check_program",
    "listing",
    "program_bytes",
    "program_hash",
    "read_functions",
]

FORMAT, VERSION = "weft-bytecode", 3
BUILTINS = (
    "alloc_tensor",
    "alloc_storage",
    "tensor_in_storage",
    "view",
    "kill",
    "same",
    "null",
    "shape_of",
    "tensor_to_shape",
    "shape_to_tensor",
    "print",
    "assert",
    "make_closure",
    "match",
    "item",
    "enter",
    "leave",
    "range",
    "more",
    "index",
    "increment",
    "set_row",
)
_CALLEES = ("kernel", "function", "packed", "value", "builtin")


def program_bytes(program: Mapping[str, Any]) -> bytes:
    """The canonical text of a program without its places in source text: what a compiled program is compared by.

    >>> program_bytes({"format": FORMAT, "version": 3, "functions": [], "spans": []})
    b'{"format":"weft-bytecode","functions":[],"version":3}'
    """
    return json.dumps(_without_spans(program), sort_keys=True, separators=(",", ":")).encode()


def program_hash(program: Mapping[str, Any]) -> str:
    """SHA-256 of `program_bytes`, in hexadecimal."""
    return hashlib.sha256(program_bytes(program)).hexdigest()


def _without_spans(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_spans(item) for key, item in value.items() if key not in ("span", "spans", "sizes")}
    if isinstance(value, (list, tuple)):
        if (len(value), value[0] if value else "") in ((5, "call"), (6, "size")):
            value = value[:-1]
        return [_without_spans(item) for item in value]
    return value


def check_program(program: Mapping[str, Any], kernels: Collection[str], constants: int) -> None:
    """Refuse a program that refers to what is not there; ArtifactError W840 names the function and instruction."""
    if program.get("format") != FORMAT or program.get("version") != VERSION:
        raise ArtifactError(f"not bytecode of version {VERSION}", code="W840")
    try:
        names = {function["name"] for function in program["functions"]}
        for function in program["functions"]:
            _Check(function, names, kernels, constants, len(program["spans"])).run()
    except (KeyError, TypeError, IndexError, ValueError, AttributeError) as error:
        raise ArtifactError(f"malformed bytecode: {type(error).__name__} {error}", code="W840") from None


class _Check:
    def __init__(
        self, function: Mapping[str, Any], names: Collection[str], kernels: Collection[str], constants: int, spans: int
    ) -> None:
        self.function, self.names, self.kernels = function, names, kernels
        self.constants, self.spans = constants, spans
        self.place = 0

    def run(self) -> None:
        code, registers = self.function["code"], self.function["registers"]
        rows = [row for call in self.function.get("sizes", {}).values() for row in call]
        if not all(isinstance(part, str) or part in (0, 1) for row in rows for message in row for part in message):
            raise self.refuse("has a message of another form")
        if not code or code[-1][0] != "ret" or len(self.function["params"]) > registers:
            raise self.refuse("does not end with ret, or has too few registers")
        for self.place, instruction in enumerate(code):
            kind = instruction[0]
            if kind == "call" and len(instruction) == 5:
                self.call(*instruction[1:])
            elif kind == "size" and len(instruction) == 6:
                self.computed(*instruction[1:])
            elif kind == "ret" and len(instruction) == 2:
                self.operand(instruction[1])
            elif kind == "if" and len(instruction) == 3:
                self.operand(instruction[1])
                self.jump(instruction[2], back=False)
            elif kind == "goto" and len(instruction) == 2:
                self.jump(instruction[1], back=True)
            else:
                raise self.refuse(f"has no instruction {kind!r} of this form")

    def refuse(self, what: str) -> ArtifactError:
        return ArtifactError(f"bytecode of {self.function['name']!r}, instruction {self.place}: {what}", code="W840")

    def jump(self, offset: Any, *, back: bool) -> None:
        target = self.place + 1 + offset
        least = 0 if back else self.place + 1
        if not isinstance(offset, int) or not least <= target < len(self.function["code"]):
            raise self.refuse("jumps out of the function")

    def call(self, register: Any, callee: Any, operands: Any, span: Any) -> None:
        if register != -1:
            self.register(register)
        self.place_of(span)
        kind, name, *types = callee
        known = {"kernel": self.kernels, "function": self.names, "builtin": BUILTINS}
        if kind not in _CALLEES or (kind in known and name not in known[kind]):
            raise self.refuse(f"calls the {kind} {name!r}, which is not there")
        shown = {"print": 1, "assert": 2}.get(name, 0) if kind == "builtin" else 0
        if kind == "value":
            self.operand(name)
            arguments, _ = types
            self.types(arguments, len(operands))
        elif kind == "packed":
            self.types(operands[-2][1], len(operands) - 2)
        elif shown:
            self.types(operands[-1][1], len(operands) - 1 - shown)
        for operand in operands:
            self.operand(operand)
            if callee == ["builtin", "kill"]:
                self.register(operand[1])

    def types(self, types: Any, count: int) -> None:
        if types[0] != "tuple" or len(types) - 1 != count:
            raise self.refuse(f"does not have {count} types for {count} arguments")

    def computed(self, register: Any, operation: Any, sizes: Any, text: Any, span: Any) -> None:
        self.register(register)
        self.place_of(span)
        if operation not in OPERATIONS or not isinstance(text, str) or not sizes:
            raise self.refuse(f"has no operation {operation!r} on sizes")
        for size in sizes:
            self.size(size)

    def size(self, size: Any) -> None:
        if isinstance(size, list):
            register, text = size
            self.register(register)
            size = text
        if not isinstance(size, (int, str)) or isinstance(size, bool):
            raise self.refuse(f"has no size {size!r}")

    def place_of(self, span: Any) -> None:
        if not isinstance(span, int) or not -1 <= span < self.spans:
            raise self.refuse(f"has no span {span!r}")

    def register(self, number: Any) -> None:
        if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < self.function["registers"]:
            raise self.refuse(f"has no register {number!r}")

    def operand(self, operand: Any) -> None:
        kind = operand[0]
        value = operand[1]
        if kind == "r":
            self.register(value)
        elif kind == "k":
            if not isinstance(value, int) or not 0 <= value < self.constants:
                raise self.refuse(f"has no constant {value!r}")
        elif kind == "t":
            for item in value:
                self.operand(item)
        elif kind == "f":
            if value not in self.names and value not in self.kernels:
                raise self.refuse(f"names the function {value!r}, which is not there")
        elif kind == "x":
            float.fromhex(value)
        elif kind in ("d", "shape"):
            for size in value if kind == "shape" else [value]:
                self.size(size)
        elif kind not in ("i", "s", "ty"):
            raise self.refuse(f"has no operand {kind!r}")


@record
class BytecodeFunction:
    """A function as the machine runs it: the operands that are types and sizes are records."""

    signature: Signature
    registers: int
    code: tuple[tuple[Any, ...], ...]
    sizes: Mapping[int, Sequence[Sequence[Sequence[str | int]]]]
    """Number of a call of a kernel -> for each argument and axis the message of a size that breaks a relation."""


def read_functions(program: Mapping[str, Any]) -> dict[str, BytecodeFunction]:
    """The functions of a program that was checked; ArtifactError W840 for types and sizes that are none."""
    try:
        return {function["name"]: _read_function(function) for function in program["functions"]}
    except (KeyError, TypeError, ValueError) as error:
        raise ArtifactError(f"malformed bytecode: {type(error).__name__} {error}", code="W840") from None


def _read_function(function: Mapping[str, Any]) -> BytecodeFunction:
    params = tuple(map(parameter_from_json, function["params"]))
    result, private = type_from_json(function["result"]), bool(function.get("private"))
    signature = Signature(function["name"], "graph", "", params, result, function.get("span"), private)
    sizes = {int(place): rows for place, rows in function.get("sizes", {}).items()}
    return BytecodeFunction(signature, function["registers"], tuple(map(_read_instruction, function["code"])), sizes)


def _read_instruction(instruction: Sequence[Any]) -> tuple[Any, ...]:
    kind = instruction[0]
    if kind == "call":
        _, into, (callee, name, *types), operands, span = instruction
        if callee == "value":
            called = callee, _read_operand(name), *map(type_from_json, types)
        else:
            called = callee, name
        return kind, into, called, tuple(map(_read_operand, operands)), span
    if kind == "size":
        _, into, operation, sizes, text, span = instruction
        return kind, into, OPERATIONS[operation], tuple(map(_read_size, sizes)), text, span
    return (kind, _read_operand(instruction[1]), *instruction[2:]) if kind in ("if", "ret") else tuple(instruction)


def _read_size(size: Any) -> Any:
    return tuple(size) if isinstance(size, list) else size


def _read_operand(operand: Sequence[Any]) -> tuple[str, Any]:
    kind, value = operand
    read = _OPERANDS.get(kind)
    return kind, value if read is None else read(value)


_OPERANDS: Mapping[str, Callable[[Any], Any]] = {
    "ty": type_from_json,
    "d": _read_size,
    "shape": lambda sizes: tuple(map(_read_size, sizes)),
    "t": lambda operands: tuple(map(_read_operand, operands)),
    "x": float.fromhex,
}


def listing(program: Mapping[str, Any]) -> str:
    """The program as text, one instruction a line."""
    lines = []
    for function in program["functions"]:
        params = ", ".join(f"r{i} {param['name']}" for i, param in enumerate(function["params"]))
        lines.append(f"{function['name']}({params}), {function['registers']} registers:")
        for place, instruction in enumerate(function["code"]):
            lines.append(f"  {place:4} {_text(instruction, place)}")
    return "\n".join(lines) + "\n"


def _text(instruction: Sequence[Any], place: int) -> str:
    if instruction[0] == "call":
        _, register, (kind, name, *_), operands, _ = instruction
        called = _operand(name) if kind == "value" else f"{kind} {name}"
        return f"{f'r{register} = ' if register >= 0 else ''}{called}({', '.join(map(_operand, operands))})"
    if instruction[0] == "size":
        _, register, operation, sizes, text, _ = instruction
        return f"r{register} = {operation}({', '.join(map(_size, sizes))})    # {text}"
    if instruction[0] == "if":
        return f"if not {_operand(instruction[1])} goto {place + 1 + instruction[2]}"
    if instruction[0] == "goto":
        return f"goto {place + 1 + instruction[1]}"
    return f"ret {_operand(instruction[1])}"


def _operand(operand: Sequence[Any]) -> str:
    kind, value = operand
    if kind == "t":
        return f"({', '.join(map(_operand, value))})"
    if kind == "shape":
        return f"shape ({', '.join(map(_size, value))})"
    if kind == "ty":
        return f"{kind} {json.dumps(value)}"
    if kind == "d":
        return _size(value)
    return f"{kind}{value}" if kind in ("r", "k") else json.dumps(value)


def _size(size: Any) -> str:
    return f"r{size[0]}" if isinstance(size, list) else str(size)
