"""What the readers of both levels share: names, constants, forms, types, dimensions.

A `Reader` elaborates Python syntax trees. `value(tree)` gives what an expression stands for: an IR expression, a
type, a dimension, or a plain Python value (numbers, strings, tuples, ...) for what is known while reading.
Arithmetic on plain values is folded; everything else is built as it is written.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, ClassVar, TypeVar

import numpy as np

from weft.errors import ShapeError, Span, WeftError
from weft.ir.dim import Dim, DimExpr, ceildiv, free_symbols, maximum, minimum, parse_dim, symbol
from weft.ir.dtype import check_dtype
from weft.ir.graph import Expr, GlobalVar
from weft.ir.node import FrozenMap, Node, freeze
from weft.ir.target import Target
from weft.ir.tensor import FloatImm, IntImm, PrimExpr, PrimVar
from weft.ir.types import FuncType, PrimType, TensorType, TupleType, Type, VDevice
from weft.script.diagnostics import did_you_mean, fail
from weft.script.source import MISSING, Unit
from weft.script.syntax import (
    ALIASES,
    ALL_FORMS,
    BINARY_BY_TREE,
    COMPARE_BY_TREE,
    NAMES,
    REQUIRED,
    TYPES,
    UNARY_BY_TREE,
    Form,
)

__all__ = [
    "ModuleScope",
    "Reader",
    "Scope",
    "definition_options",
    "describe",
    "is_dim",
    "is_plain",
    "parts_of",
    "signature_text",
]

_FOLD: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
    "floordiv": operator.floordiv, "floormod": operator.mod, "pow": operator.pow, "shift_left": operator.lshift,
    "shift_right": operator.rshift, "bitwise_and": operator.and_, "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor, "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le,
    "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip
_FOLD_UNARY: dict[str, Callable[[Any], Any]] = {
    "neg": operator.neg,
    "not": operator.not_,
    "bitwise_not": operator.invert,
}
_MAX_BITS = 4096
_MAX_PARTS = 1_000_000
_MAX_FIELDS = 100_000
_UNSUPPORTED = {
    ast.Lambda: "a lambda", ast.ListComp: "a list comprehension", ast.SetComp: "a set comprehension",
    ast.DictComp: "a dict comprehension", ast.GeneratorExp: "a generator expression", ast.Await: "await",
    ast.Yield: "yield", ast.YieldFrom: "yield", ast.NamedExpr: "an assignment expression", ast.Set: "a set",
    ast.Starred: "a starred expression", ast.FormattedValue: "a format",
}  # fmt: skip


class Scope:
    """Names of a block; inner blocks see outer ones."""

    __slots__ = ("names", "parent")

    def __init__(self, parent: Scope | None = None) -> None:
        self.names: dict[str, Any] = {}
        self.parent = parent

    def get(self, name: str) -> Any:
        """What the name means, or MISSING."""
        scope: Scope | None = self
        while scope is not None:
            found = scope.names.get(name, MISSING)
            if found is not MISSING:
                return found
            scope = scope.parent
        return MISSING

    def visible(self) -> Iterator[str]:
        """Every visible name."""
        scope: Scope | None = self
        while scope is not None:
            yield from scope.names
            scope = scope.parent


class ModuleScope:
    """What a function may ask of the module around it."""

    name: str | None = None
    function_names: tuple[str, ...] = ()

    def adopt(self, function: Any, span: Span) -> str:
        """The name under which a captured function joins the module."""
        raise fail(
            "W150", "a captured function can be called only inside an @I.ir_module class", span,
            hint="put both functions in one class",
        )  # fmt: skip

    def return_dtype(self, name: str) -> str:
        """The dtype that a tensor-level function returns ("void" for none)."""
        return "void"


def is_dim(value: Any) -> bool:
    """Whether a value is a dimension."""
    return isinstance(value, DimExpr) or (isinstance(value, int) and not isinstance(value, bool))


def is_plain(value: Any) -> bool:
    """Whether a value is Python data that can be known while reading."""
    if isinstance(value, (tuple, list)):
        return all(map(is_plain, parts_of(value)))
    return value is None or isinstance(value, (bool, int, float, str, dict, range, FrozenMap, np.ndarray, np.generic))


def parts_of(value: Any) -> list[Any]:
    """The parts of nested tuples and lists; W103 when they are too many (a value may hold another one many times)."""
    found: list[Any] = []
    stack = [value]
    steps = 0
    while stack:
        current = stack.pop()
        steps += 1
        if steps > _MAX_PARTS:
            raise fail("W103", f"a value known while reading has more than {_MAX_PARTS} parts")
        if isinstance(current, (tuple, list)):
            stack.extend(current)
        else:
            found.append(current)
    return found


def _plain_capture(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


class Reader:
    """The base of the readers; one object reads one function."""

    def __init__(self, unit: Unit, module: ModuleScope) -> None:
        self.unit = unit
        self.module = module
        self.scope = Scope()
        self.symbols: set[str] = set()
        self.defining = False  # whether strings in shapes may define symbols
        self.depth = 0

    # -- places and errors ---------------------------------------------------------------------------------------------

    def span(self, tree: ast.AST) -> Span:
        """The place of a syntax tree."""
        return self.unit.span(tree)

    def fail(self, code: str, message: str, tree: ast.AST, hint: str | None = None) -> WeftError:
        """The error to raise about a syntax tree."""
        return fail(code, message, self.span(tree), hint)

    def unsupported(self, tree: ast.AST, hint: str | None = None) -> WeftError:
        """The error for Python that the script does not read."""
        what = _UNSUPPORTED.get(type(tree), f"`{type(tree).__name__.lower()}`")
        return self.fail("W115", f"{what} is not part of the script", tree, hint)

    # -- expressions ---------------------------------------------------------------------------------------------------

    def value(self, tree: ast.expr) -> Any:
        """What an expression stands for."""
        self.depth += 1
        if self.depth > self.unit.limits.nesting:
            raise self.fail(
                "W103", f"expressions nest deeper than {self.unit.limits.nesting}", tree, "name parts of it by bindings"
            )
        try:
            method = self._METHODS.get(type(tree))
            if method is None:
                raise self.unsupported(tree)
            return method(self, tree)
        finally:
            self.depth -= 1

    def _constant(self, tree: ast.Constant) -> Any:
        value = tree.value
        if isinstance(value, (bytes, complex)) or value is Ellipsis:
            raise self.fail("W115", f"{value!r} is not part of the script", tree)
        if type(value) is int and value.bit_length() > self.unit.limits.digits * 4:
            raise self.fail("W103", f"an integer of more than {self.unit.limits.digits} digits", tree)
        return value

    def _name(self, tree: ast.Name) -> Any:
        return self.lookup(tree.id, tree)

    def lookup(self, name: str, tree: ast.AST) -> Any:
        """The meaning of a name; W110 when it has none."""
        found = self.scope.get(name)
        if found is not MISSING:
            return found
        if name in self.symbols:
            return self.symbol_value(name, tree)
        if name in self.unit.symbols:
            return self.symbol_value(name, tree)
        found = self.unit.capture(name)
        if found is not MISSING:
            return self.captured(found, name, tree)
        if name == "cls" or name == self.module.name:
            raise self.fail("W114", f"`{name}` is the module: name one of its functions, `{name}.f`", tree)
        if self.unit.namespace(name):
            raise self.fail("W114", f"`{name}` is a namespace, not a value", tree)
        raise self.undefined(name, tree)

    def undefined(self, name: str, tree: ast.AST) -> WeftError:
        """The error for an unknown name."""
        hint = did_you_mean(name, {*self.scope.visible(), *self.symbols})
        if hint is None and name in self.module.function_names:
            hint = f"functions of the module are called as `cls.{name}`"
        return self.fail("W110", f"undefined name '{name}'", tree, hint)

    def symbol_value(self, name: str, tree: ast.AST) -> Any:
        """What a symbol name stands for at this level."""
        self.symbols.add(name)
        return symbol(name)

    def captured(self, value: Any, name: str, tree: ast.AST) -> Any:
        """A Python value from outside; W140 when the script cannot hold it."""
        value = _plain_capture(value)
        if hasattr(value, "__weft_dtype__"):
            return value.__weft_dtype__
        if isinstance(value, TypeVar):
            return self.symbol_value(value.__name__, tree)
        if isinstance(value, PrimVar) and value.dtype != "handle":
            return self.declared_outside(name, value, tree)
        if isinstance(value, DimExpr):
            self.symbols.update(free_symbols(value))
            return value
        if is_plain(value) or isinstance(value, (Node, np.dtype)):
            return value
        if isinstance(value, type) and issubclass(value, np.generic):
            return check_dtype(value)
        raise self.fail(
            "W150", f"'{name}' is a Python {type(value).__name__}, which a script cannot use", tree,
            "numbers, strings, dtypes, arrays, tuples, types and functions of weft can be captured",
        )  # fmt: skip

    def declared_outside(self, name: str, variable: PrimVar, tree: ast.AST) -> Any:
        """A symbol that Python code outside the script declared by `n = T.int64()`."""
        return self.symbol_value(name, tree)

    def dotted(self, tree: ast.expr) -> str | None:
        """`R.nn.relu` for such a tree when its root is a namespace, in the spelling of the table."""
        parts: list[str] = []
        while isinstance(tree, ast.Attribute):
            parts.append(tree.attr)
            tree = tree.value
        if not isinstance(tree, ast.Name) or not parts:
            return None
        root = tree.id
        if self.scope.get(root) is not MISSING:
            return None
        space = self.unit.namespace(root)
        if space is None:
            space = self._namespace_path(root, parts)
            if space is None:
                return None
        parts.append(space)
        name = ".".join(reversed(parts))
        return ALIASES.get(name, name)

    def _namespace_path(self, root: str, parts: list[str]) -> str | None:
        """The namespace at the end of a captured module path (`script.relax.add`); consumes the path."""
        value = self.unit.capture(root)
        while isinstance(value, ModuleType) and parts:
            value = getattr(value, parts.pop(), None)
            if isinstance(value, ModuleType) and value.__name__ in {
                "weft.script.ir",
                "weft.script.relax",
                "weft.script.tir",
            }:
                return {"ir": "I", "relax": "R", "tir": "T"}[value.__name__.rpartition(".")[2]]
        return None

    def names_module(self, tree: ast.expr) -> bool:
        """Whether an expression is the name of the module around the function (and of nothing nearer)."""
        if not isinstance(tree, ast.Name) or tree.id not in ("cls", self.module.name):
            return False
        return self.scope.get(tree.id) is MISSING and tree.id not in self.symbols

    def global_name(self, tree: ast.expr) -> str | None:
        """`f` for `cls.f`, `Module.f`, `cls["f"]`; W110 when the module is known and has no such function."""
        if isinstance(tree, ast.Attribute) and isinstance(tree.value, ast.Name):
            root, name = tree.value.id, tree.attr
        elif (
            isinstance(tree, ast.Subscript)
            and isinstance(tree.value, ast.Name)
            and isinstance(tree.slice, ast.Constant)
            and isinstance(tree.slice.value, str)
        ):
            root, name = tree.value.id, tree.slice.value
        else:
            return None
        bound = self.scope.get(root)
        if bound is not self.module and (bound is not MISSING or root not in ("cls", self.module.name)):
            return None
        if self.module.name is not None and name not in self.module.function_names:
            hint = did_you_mean(name, self.module.function_names, f"{root}.")
            raise self.fail("W110", f"the module has no function '{name}'", tree, hint)
        return name

    def _attribute(self, tree: ast.Attribute) -> Any:
        name = self.dotted(tree)
        if name is not None:
            return self.named(name, tree)
        function = self.global_name(tree)
        if function is not None:
            return GlobalVar(function, self.span(tree))
        found = self.captured_path(tree)
        if found is not MISSING:
            return self.captured(found, ast.unparse(tree), tree)
        base = self.value(tree.value)
        return self.attribute_of(base, tree)

    def captured_path(self, tree: ast.expr) -> Any:
        """What `config.sizes["hidden"]` is when its root is a Python object of the user's program, or MISSING."""
        if self.unit.captured is None:
            return MISSING
        if isinstance(tree, ast.Name):
            return MISSING if self.scope.get(tree.id) is not MISSING else self.unit.capture(tree.id)
        if isinstance(tree, ast.Attribute) and not tree.attr.startswith("_"):
            base = self.captured_path(tree.value)
            return MISSING if base is MISSING or isinstance(base, Node) else getattr(base, tree.attr, MISSING)
        if isinstance(tree, ast.Subscript):
            base = self.captured_path(tree.value)
            if isinstance(base, (tuple, list, dict)):
                key = self.slice_of(tree.slice)
                return self.fold(lambda: base[key], tree)
        return MISSING

    def named(self, name: str, tree: ast.expr) -> Any:
        """A name of I, R or T that is not called: a type, or a dtype."""
        if name in TYPES or name in ("T.handle",):
            return self.bare_type(name, tree)
        dtype = self.dtype_name(name)
        if dtype is not None:
            return dtype
        if name in NAMES or name in ALL_FORMS:
            raise self.fail("W114", f"`{name}` must be called here", tree, f"write `{name}(...)`")
        raise self.unknown(name, tree)

    @staticmethod
    def dtype_name(name: str) -> str | None:
        """`float32` for `T.float32`."""
        if name.startswith("T.") and name.count(".") == 1:
            short = _SHORT_DTYPES.get(name[2:], name[2:])
            try:
                return check_dtype(short)
            except WeftError:
                return None
        return None

    def bare_type(self, name: str, tree: ast.expr) -> Any:
        """A type written without parentheses (`R.Tensor`)."""
        if name == "R.Callable":
            return FuncType(None, ALL_FORMS["R.Any"].build(), False, span=self.span(tree))  # type: ignore[misc]
        form = TYPES.get(name)
        if form is None or name in ("R.Prim", "I.vdevice"):
            raise self.fail("W114", f"`{name}` must be called here", tree, f"write `{name}(...)`")
        return form.build(span=self.span(tree))  # type: ignore[misc]

    def unknown(self, name: str, tree: ast.AST) -> WeftError:
        """The error for a name that I, R or T does not have."""
        root = name.partition(".")[0]
        known = [full for full in NAMES if full.startswith(root + ".")]
        return self.fail(
            "W111", f"`{name}` does not exist", tree, did_you_mean(name, [*known, *self.extra_names(root)])
        )

    def extra_names(self, root: str) -> list[str]:
        """More names of a namespace for suggestions."""
        return []

    def attribute_of(self, base: Any, tree: ast.Attribute) -> Any:
        """An attribute of a value; only captured Python values have them at the base."""
        if self.unit.captured is not None and not isinstance(base, (Node, DimExpr)) and not tree.attr.startswith("_"):
            found = getattr(base, tree.attr, MISSING)
            if found is not MISSING:
                return self.captured(found, ast.unparse(tree), tree)
        raise self.fail("W115", f"`.{tree.attr}` of {describe(base)} is not part of the script", tree)

    # -- operators -----------------------------------------------------------------------------------------------------

    def _binop(self, tree: ast.BinOp) -> Any:
        chain: list[ast.BinOp] = []
        current: ast.expr = tree
        while isinstance(current, ast.BinOp):  # a + b + c + ... is deep on the left; no recursion there
            chain.append(current)
            current = current.left
        result = self.value(current)
        for node in reversed(chain):
            kind = BINARY_BY_TREE.get(type(node.op))
            if kind is None:
                raise self.unsupported(node.op if hasattr(node.op, "lineno") else node)
            result = self.binary(kind, result, self.value(node.right), node)
        return result

    def _boolop(self, tree: ast.BoolOp) -> Any:
        kind = BINARY_BY_TREE[type(tree.op)]
        result = self.value(tree.values[0])
        for operand in tree.values[1:]:
            result = self.binary(kind, result, self.value(operand), tree)
        return result

    def _compare(self, tree: ast.Compare) -> Any:
        left = self.value(tree.left)
        result: Any = None
        for op, comparator in zip(tree.ops, tree.comparators, strict=True):
            kind = COMPARE_BY_TREE.get(type(op))
            if kind is None:
                raise self.fail("W115", "`in` and `is` are not part of the script", tree)
            right = self.value(comparator)
            part = self.binary(kind, left, right, tree)
            result = part if result is None else self.binary("and", result, part, tree)
            left = right
        return result

    def _unaryop(self, tree: ast.UnaryOp) -> Any:
        count = 0
        current: ast.expr = tree
        chain: list[ast.UnaryOp] = []
        while isinstance(current, ast.UnaryOp):
            chain.append(current)
            current = current.operand
            count += 1
        result = self.value(current)
        for node in reversed(chain):
            if isinstance(node.op, ast.UAdd):
                continue
            kind = UNARY_BY_TREE[type(node.op)]
            if is_plain(result):
                result = self.fold(lambda kind=kind, result=result: _FOLD_UNARY[kind](result), node)
            elif isinstance(result, DimExpr) and kind == "neg":
                result = -result
            else:
                result = self.combine_unary(kind, result, node)
        return result

    def binary(self, kind: str, left: Any, right: Any, tree: ast.AST) -> Any:
        """A binary operation: folded on plain values, symbolic on dimensions, else built by the level."""
        if is_plain(left) and is_plain(right):
            if kind in ("and", "or"):
                return (left and right) if kind == "and" else (left or right)
            self._check_size(kind, left, right, tree)
            return self.fold(lambda: _FOLD[kind](left, right), tree)
        if is_dim(left) and is_dim(right) and kind in _DIM_KINDS:
            return self.fold(lambda: _FOLD[kind](left, right), tree)
        return self.combine(kind, left, right, tree)

    def _check_size(self, kind: str, left: Any, right: Any, tree: ast.AST) -> None:
        sized = (str, tuple, list)
        if (
            kind == "add"
            and isinstance(left, sized)
            and isinstance(right, sized)
            and len(left) + len(right) > _MAX_PARTS
        ):
            raise self.fail("W103", f"the constant would have more than {_MAX_PARTS} parts", tree)
        if kind not in ("pow", "shift_left", "mul"):
            return
        sized = [isinstance(side, (str, list, tuple, np.ndarray)) for side in (left, right)]
        if any(sized):
            raise self.fail("W124", f"{kind} of {describe(left)} and {describe(right)} is not folded", tree)
        if isinstance(left, int) and isinstance(right, int):
            bits = {
                "pow": left.bit_length() * max(right, 0),
                "shift_left": left.bit_length() + right,
                "mul": left.bit_length() + right.bit_length(),
            }[kind]
            if bits > _MAX_BITS:
                raise self.fail("W103", f"the constant would have about {bits} bits, the limit is {_MAX_BITS}", tree)

    def fold(self, compute: Callable[[], Any], tree: ast.AST) -> Any:
        """A constant computation whose failures are the script's."""
        try:
            return compute()
        except WeftError as error:
            raise error.at(self.span(tree)) from None
        except (ArithmeticError, TypeError, ValueError, KeyError, IndexError) as error:
            raise self.fail("W124", f"the constant cannot be computed: {error}", tree) from None

    def combine(self, kind: str, left: Any, right: Any, tree: ast.AST) -> Any:
        """A binary operation on IR values."""
        raise NotImplementedError

    def combine_unary(self, kind: str, operand: Any, tree: ast.AST) -> Any:
        """A unary operation on IR values."""
        raise NotImplementedError

    def _ifexp(self, tree: ast.IfExp) -> Any:
        condition = self.value(tree.test)
        if is_plain(condition):
            return self.value(tree.body if condition else tree.orelse)
        return self.conditional(condition, tree)

    def conditional(self, condition: Any, tree: ast.IfExp) -> Any:
        """`a if c else b` with a condition that is not known while reading."""
        raise self.fail(
            "W115", "a conditional expression needs a condition known while reading", tree, "use R.where or if/else"
        )

    # -- containers ----------------------------------------------------------------------------------------------------

    def items(self, trees: list[ast.expr]) -> list[Any]:
        """The values of the elements; a starred plain tuple is spread."""
        result: list[Any] = []
        for tree in trees:
            if isinstance(tree, ast.Starred):
                spread = self.value(tree.value)
                if not isinstance(spread, (tuple, list)):
                    raise self.fail("W115", "only tuples known while reading can be spread with *", tree)
                result.extend(spread)
            else:
                result.append(self.value(tree))
        return result

    def _tuple(self, tree: ast.Tuple) -> Any:
        return tuple(self.items(tree.elts))

    def _list(self, tree: ast.List) -> Any:
        return self.items(tree.elts)

    def _dict(self, tree: ast.Dict) -> Any:
        result: dict[str, Any] = {}
        for key, item in zip(tree.keys, tree.values, strict=True):
            if key is None:
                raise self.fail("W115", "** is not part of the script", tree)
            name = self.value(key)
            if not isinstance(name, (str, int)):
                raise self.fail("W114", f"a key must be a string, got {describe(name)}", key)
            if name in result:
                raise self.fail("W118", f"the key {name!r} occurs twice", key)
            result[name] = self.value(item)  # type: ignore[index]
        return result

    def _subscript(self, tree: ast.Subscript) -> Any:
        function = self.global_name(tree)
        if function is not None:
            return GlobalVar(function, self.span(tree))
        found = self.captured_path(tree)
        if found is not MISSING:
            return self.captured(found, ast.unparse(tree), tree)
        base = self.value(tree.value)
        return self.subscript_of(base, tree)

    def subscript_of(self, base: Any, tree: ast.Subscript) -> Any:
        """An element of a value; the base takes plain containers."""
        if isinstance(base, (tuple, list, dict, FrozenMap, range)) or (
            isinstance(base, np.ndarray) and self.unit.captured is not None
        ):
            key = self.slice_of(tree.slice)
            return self.fold(lambda: _plain_capture(base[key]), tree)  # type: ignore[index]
        raise self.fail("W115", f"{describe(base)} has no elements", tree)

    def slice_of(self, tree: ast.expr) -> Any:
        """A plain index or slice."""
        if isinstance(tree, ast.Slice):
            parts = [self.constant(part) if part is not None else None for part in (tree.lower, tree.upper, tree.step)]
            return slice(*parts)
        return self.constant(tree)

    def _joined_string(self, tree: ast.JoinedStr) -> str:
        parts: list[str] = []
        for part in tree.values:
            if isinstance(part, ast.Constant):
                parts.append(str(part.value))
            elif isinstance(part, ast.FormattedValue):
                value = self.constant(part.value)
                if part.format_spec is not None or not isinstance(value, (int, float, str)):
                    raise self.fail("W115", "only plain numbers and strings can stand in a format string", part)
                parts.append(str(value))
        return "".join(parts)

    # -- calls ---------------------------------------------------------------------------------------------------------

    def _call(self, tree: ast.Call) -> Any:
        name = self.dotted(tree.func)
        if name is not None:
            return self.call_named(name, tree)
        if isinstance(tree.func, ast.Name) and self.scope.get(tree.func.id) is MISSING:
            found = self.call_builtin(tree.func.id, tree)
            if found is not MISSING:
                return found
        return self.call_other(tree)

    def call_named(self, name: str, tree: ast.Call) -> Any:
        """A call of a name of I, R or T."""
        if name in TYPES:
            return self.type_call(name, tree)
        method = self._FORMS.get(name)
        if method is not None:
            return method(self, tree)
        raise self.unknown(name, tree.func)

    def call_other(self, tree: ast.Call) -> Any:
        """A call of anything else."""
        if isinstance(tree.func, ast.Name):
            self.lookup(tree.func.id, tree.func)
        raise self.fail("W115", f"`{ast.unparse(tree.func)[:60]}` cannot be called in a script", tree.func)

    def call_builtin(self, name: str, tree: ast.Call) -> Any:
        """A call of one of the few Python functions that scripts know, or MISSING."""
        if name not in _BUILTINS:
            return MISSING
        if tree.keywords:
            raise self.fail("W113", f"{name} takes no keyword arguments here", tree)
        values = [self.value(argument) for argument in tree.args]
        if name in ("min", "max", "ceildiv") and values and all(is_dim(value) for value in values):
            function: Any = {"min": minimum, "max": maximum, "ceildiv": ceildiv}[name]
            return self.fold(lambda: function(*values), tree)
        if all(is_plain(value) for value in values) and name != "ceildiv":
            return self.fold(lambda: _BUILTINS[name](*values), tree)
        return self.builtin_of(name, values, tree)

    def builtin_of(self, name: str, values: list[Any], tree: ast.Call) -> Any:
        """A Python function applied to IR values."""
        raise self.fail("W115", f"`{name}` cannot be applied to {describe(values[0]) if values else 'nothing'}", tree)

    def bind(self, form: Form, tree: ast.Call) -> dict[str, Any]:
        """The values of a call's arguments by hole name, each read by its kind; W113 when they do not fit the form."""
        values: dict[str, Any] = {}
        positional = form.positional
        star = next((hole for hole in form.holes if hole.star), None)
        rest: list[Any] = []
        arguments = self._spread(tree)
        for index, argument in enumerate(arguments):
            if index < len(positional):
                hole = positional[index]
                values[hole.name] = hole.kind.read(self, argument)
            elif star is not None:
                rest.append(star.kind.read(self, argument))
            else:
                most = len(positional)
                raise self.fail(
                    "W113",
                    f"{form.name} takes at most {most} argument{'s' * (most != 1)}, got {len(arguments)}",
                    argument,
                )
        by_name = {hole.name: hole for hole in form.holes if not hole.star}
        for keyword in tree.keywords:
            if keyword.arg is None:
                raise self.fail("W115", "** is not part of the script", keyword.value)
            name = (form.old_names or {}).get(keyword.arg, OLD_KEYWORDS.get(keyword.arg, keyword.arg))
            hole = by_name.get(name)
            if hole is None:
                hint = did_you_mean(name, by_name) or f"it takes: {', '.join(by_name) or 'no keyword arguments'}"
                raise self.fail("W113", f"{form.name} has no argument '{keyword.arg}'", keyword, hint)
            if name in values:
                raise self.fail("W113", f"{form.name} got '{name}' twice", keyword)
            values[name] = hole.kind.read(self, keyword.value)
        for hole in form.holes:
            if hole.star:
                values[hole.name] = tuple(rest)
            elif hole.name not in values:
                if hole.default is REQUIRED:
                    raise self.fail(
                        "W113",
                        f"{form.name} lacks its argument '{hole.name}'",
                        tree,
                        f"it is written {signature_text(form)}",
                    )
                values[hole.name] = hole.default
        return values

    def _spread(self, tree: ast.Call) -> list[ast.expr]:
        """The positional argument trees, with `*(a, b)` written out."""
        result: list[ast.expr] = []
        for argument in tree.args:
            if isinstance(argument, ast.Starred) and isinstance(argument.value, (ast.Tuple, ast.List)):
                result.extend(argument.value.elts)
            elif isinstance(argument, ast.Starred):
                spread = self.value(argument.value)
                if not isinstance(spread, (tuple, list)):
                    raise self.fail("W115", "only tuples known while reading can be spread with *", argument)
                result.extend(_Known(item, argument) for item in spread)  # type: ignore[misc]
            else:
                result.append(argument)
        return result

    def _known(self, tree: Any) -> Any:
        return tree.item

    # -- kinds ---------------------------------------------------------------------------------------------------------

    def constant(self, tree: ast.expr) -> Any:
        """A plain Python value; W114 for anything else."""
        value = self.value(tree)
        if isinstance(value, np.dtype):
            return value
        if not is_plain(value):
            raise self.fail("W114", f"expected a constant, got {describe(value)}", tree)
        return value

    def read_anything(self, tree: ast.expr) -> ast.expr:
        """The tree itself: the form's own method reads it."""
        return tree

    def read_literal(self, tree: ast.expr) -> Any:
        """Attribute data."""
        return self.attribute_value(self.value(tree), tree)

    def attribute_value(self, value: Any, tree: ast.expr) -> Any:
        """Attribute data in frozen form; W114 for what cannot be one."""
        if isinstance(value, dict):
            if not all(isinstance(key, str) for key in value):
                raise self.fail("W114", "the keys of attributes are strings", tree)
            return FrozenMap({key: self.attribute_value(item, tree) for key, item in value.items()})
        if isinstance(value, (list, tuple)):
            return tuple(self.attribute_value(item, tree) for item in value)
        if value is None or isinstance(value, (bool, int, float, str, FrozenMap, DimExpr, Node)):
            return freeze(value)
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, Target):
            return value
        raise self.fail("W114", f"{describe(value)} cannot be attribute data", tree)

    def read_vdevice(self, tree: ast.expr) -> VDevice | str:
        """A virtual device: its name in the module's infos, or written out."""
        value = self.value(tree)
        if isinstance(value, (VDevice, str)):
            return value
        raise self.fail("W114", f"expected a virtual device, got {describe(value)}", tree)

    # -- types and dimensions ------------------------------------------------------------------------------------------

    def read_type(self, tree: ast.expr) -> Type:
        """A type; W114 for anything else."""
        value = self.value(tree)
        ty = self.as_type(value, tree)
        if ty is None:
            raise self.fail("W114", f"expected a type, got {describe(value)}", tree, _type_hint(tree))
        return ty

    def as_type(self, value: Any, tree: ast.expr) -> Type | None:
        """A value as a type: types, and dtypes that stand for scalars."""
        if isinstance(value, Type):
            return value
        if value is None:
            return TupleType((), self.span(tree))
        if isinstance(value, str) and isinstance(tree, ast.Attribute):
            return PrimType(value, self.span(tree))
        if isinstance(value, (tuple, list)) and value and all(isinstance(item, Type) for item in value):
            return TupleType(tuple(value), self.span(tree))
        return None

    def read_types(self, tree: ast.expr) -> tuple[Type, ...]:
        """One type or a list of them."""
        if isinstance(tree, (ast.List, ast.Tuple)):
            return tuple(self.read_type(item) for item in tree.elts)
        return (self.read_type(tree),)

    def type_call(self, name: str, tree: ast.Call) -> Any:
        """A type written as a call."""
        method = self._TYPE_FORMS.get(name)
        if method is not None:
            return method(self, tree)
        values = self.bind(TYPES[name], tree)
        return TYPES[name].build(**values, span=self.span(tree))  # type: ignore[misc]

    def _tensor_type(self, tree: ast.Call) -> TensorType:
        form = TYPES["R.Tensor"]
        if len(tree.args) == 1 and self._is_dtype(tree.args[0]) and not any(k.arg == "dtype" for k in tree.keywords):
            tree = ast.Call(
                tree.func, [ast.copy_location(ast.Constant(None), tree.args[0]), tree.args[0]], tree.keywords
            )
            ast.copy_location(tree, tree.func)
        values = self.bind(form, tree)
        if isinstance(values["shape"], tuple) and values["ndim"] not in (-1, len(values["shape"])):
            raise self.fail("W121", f"ndim={values['ndim']} contradicts the shape of rank {len(values['shape'])}", tree)
        return TensorType(**values, span=self.span(tree))

    def _is_dtype(self, tree: ast.expr) -> bool:
        if isinstance(tree, ast.Constant) and isinstance(tree.value, str):
            try:
                check_dtype(tree.value)
            except WeftError:
                return False
            return True
        return isinstance(tree, ast.Attribute) and self.dtype_name(self.dotted(tree) or "") is not None

    def _tuple_type(self, tree: ast.Call) -> TupleType:
        if len(tree.args) == 1 and isinstance(tree.args[0], (ast.List, ast.Tuple)):
            return TupleType(self.read_types(tree.args[0]), self.span(tree))
        fields: list[Type] = []
        for argument in self._spread(tree):
            fields.append(self.read_type(argument))
        self._check_fields(fields, tree)
        if tree.keywords:
            raise self.fail("W113", f"R.Tuple has no argument '{tree.keywords[0].arg}'", tree.keywords[0])
        return TupleType(tuple(fields), self.span(tree))

    def _check_fields(self, fields: list[Type], tree: ast.AST) -> None:
        """A type may hold another one many times: that must not explode."""
        stack: list[Type] = list(fields)
        count = 0
        while stack:
            current = stack.pop()
            count += 1
            if count > _MAX_FIELDS:
                raise self.fail("W103", f"a tuple type of more than {_MAX_FIELDS} parts", tree)
            if isinstance(current, TupleType):
                stack.extend(current.fields)

    def _func_type(self, tree: ast.Call) -> FuncType:
        values = self.bind(TYPES["R.Callable"], tree)
        opaque = values["params"] is None
        ret = values["ret"] if values["ret"] is not None else ALL_FORMS["R.Any"].build()  # type: ignore[misc]
        pure = values["pure"] if values["pure"] is not None else not opaque
        return FuncType(values["params"], ret, pure, values["derive"], span=self.span(tree))

    def _prim_type(self, tree: ast.Call) -> PrimType:
        return PrimType(self.bind(TYPES["R.Prim"], tree)["dtype"], self.span(tree))

    def read_shape(self, tree: ast.expr) -> Any:
        """A shape in a type: dimensions or a variable of shape type."""
        return self.read_dims(tree)

    def read_dims(self, tree: ast.expr) -> tuple[Dim, ...]:
        """A tuple or list of dimensions."""
        if isinstance(tree, (ast.Tuple, ast.List)) and not any(isinstance(item, ast.Starred) for item in tree.elts):
            return tuple(self.read_dim(item) for item in tree.elts)
        value = self.value(tree)
        if is_dim(value):
            raise self.fail("W114", f"expected a shape, got {describe(value)}", tree, f"write `({ast.unparse(tree)},)`")
        if not isinstance(value, (tuple, list)):
            raise self.fail("W114", f"expected a shape, got {describe(value)}", tree)
        return tuple(self.as_dim(item, tree) for item in value)

    def read_dim(self, tree: ast.expr) -> Dim:
        """One dimension."""
        return self.as_dim(self.value(tree), tree)

    def as_dim(self, value: Any, tree: ast.expr) -> Dim:
        """A value as a dimension; strings are expressions over symbols."""
        if isinstance(value, str):
            return self.dim_text(value, tree)
        if isinstance(value, IntImm) and value.dtype != "bool":
            value = value.value
        if isinstance(value, (int, DimExpr)) and not isinstance(value, bool):
            if isinstance(value, int) and not -(2**63) <= value < 2**63:
                raise self.fail("W103", f"the dimension {value} does not fit in 64 bits", tree)
            if isinstance(value, int) and value < 0 and self.negative_dims is False:
                raise self.fail("W114", f"a dimension cannot be negative, got {value}", tree)
            return value
        raise self.fail("W114", f"expected a dimension, got {describe(value)}", tree)

    negative_dims: bool = True

    def dim_text(self, text: str, tree: ast.expr) -> Dim:
        """A dimension written as a string; in a signature it may define symbols."""
        if text.isidentifier():
            self.use_symbol(text, tree)
            return self.fold(lambda: symbol(text), tree)
        inner = self.text_tree(text, tree)
        for name in {node.id for node in ast.walk(inner) if isinstance(node, ast.Name)} - _BUILTINS.keys():
            self.use_symbol(name, tree)
        value = self.value(inner)
        if not is_dim(value):
            raise self.fail("W114", f"expected a dimension, got {describe(value)}", tree)
        return value

    def text_tree(self, text: str, tree: ast.expr) -> ast.expr:
        """The expression that a string holds, with the place of the string."""
        try:
            inner = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise self.fail("W101", f"{text!r} is not an expression", tree) from None
        for node in ast.walk(inner):
            ast.copy_location(node, tree)
        return inner

    def use_symbol(self, name: str, tree: ast.expr) -> None:
        """A symbol named by a string: defined here in a signature, else it must be known."""
        if name in self.symbols:
            return
        if self.defining or name in self.unit.symbols:
            self.symbols.add(name)
            return
        hint = did_you_mean(name, self.symbols) or "symbols come from the signature or from R.match_cast"
        raise self.fail("W117", f"undefined symbol '{name}'", tree, hint)

    # -- forms that both levels read -----------------------------------------------------------------------------------

    def _form_float_bits(self, tree: ast.Call) -> float:
        bits = self.constant(tree.args[0]) if len(tree.args) == 1 else None
        if not isinstance(bits, int) or not 0 <= bits < 2**64:
            raise self.fail("W113", "I.float_bits takes one unsigned 64-bit integer", tree)
        return float(np.uint64(bits).view(np.float64))

    def _form_dim(self, tree: ast.Call) -> Dim:
        text = self.constant(tree.args[0]) if len(tree.args) == 1 else None
        if not isinstance(text, str):
            raise self.fail("W113", "I.dim takes one string", tree)
        try:
            return parse_dim(text)  # by itself: a variable of the same name does not hide a symbol here
        except ShapeError as error:
            raise error.at(self.span(tree)) from None

    def _form_target(self, tree: ast.Call) -> Target:
        spec = self.attribute_value(self.value(tree.args[0]), tree) if len(tree.args) == 1 else None
        if not isinstance(spec, (str, FrozenMap)):
            raise self.fail("W113", "I.target takes a string or a dictionary", tree)
        return self.fold(lambda: Target(spec), tree)

    def _form_meta_var(self, tree: ast.Call) -> Any:
        if len(tree.args) != 1 or tree.keywords:
            raise self.fail("W113", "I.meta_var takes one argument", tree)
        return self.value(tree.args[0])

    _METHODS: ClassVar[dict[type, Callable[[Any, Any], Any]]] = {}
    _FORMS: ClassVar[dict[str, Callable[[Any, ast.Call], Any]]] = {}
    _TYPE_FORMS: ClassVar[dict[str, Callable[[Any, ast.Call], Any]]] = {}


class _Known(ast.expr):
    """A value that is known already, in the place of a syntax tree."""

    _fields = ()

    def __init__(self, item: Any, place: ast.AST) -> None:
        super().__init__()
        self.item = item
        ast.copy_location(self, place)


Reader._METHODS = {
    ast.Constant: Reader._constant, ast.Name: Reader._name, ast.Attribute: Reader._attribute, ast.BinOp: Reader._binop,
    ast.BoolOp: Reader._boolop, ast.Compare: Reader._compare, ast.UnaryOp: Reader._unaryop, ast.IfExp: Reader._ifexp,
    ast.Tuple: Reader._tuple, ast.List: Reader._list, ast.Dict: Reader._dict, ast.Subscript: Reader._subscript,
    ast.JoinedStr: Reader._joined_string, ast.Call: Reader._call, _Known: Reader._known,
}  # fmt: skip
Reader._TYPE_FORMS = {
    "R.Tensor": Reader._tensor_type, "R.Tuple": Reader._tuple_type, "R.Callable": Reader._func_type,
    "R.Prim": Reader._prim_type,
}  # fmt: skip
Reader._FORMS = {
    "I.float_bits": Reader._form_float_bits, "I.dim": Reader._form_dim, "I.meta_var": Reader._form_meta_var,
    "T.meta_var": Reader._form_meta_var,
    "I.target": Reader._form_target,
    "T.target": Reader._form_target,
}  # fmt: skip

_DIM_KINDS = frozenset({"add", "sub", "mul", "floordiv", "floormod", "pow"})
OLD_KEYWORDS = {"out_sinfo": "out_ty", "sinfo_args": "ty_args"}
_SHORT_DTYPES = {
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    "bf16": "bfloat16",
    "i32": "int32",
    "i64": "int64",
}
_BUILTINS: dict[str, Callable[..., Any]] = {
    "float": float, "int": int, "bool": bool, "len": len, "abs": abs, "min": min, "max": max,
    "ceildiv": lambda a, b: -(-a // b), "round": round,
}  # fmt: skip


_OPTIONS: dict[str, dict[str, Any]] = {
    "R.function": {"pure": True, "private": False, "check_well_formed": True, "name": None},
    "T.prim_func": {"private": False, "check_well_formed": True, "s_tir": False, "persistent": False, "name": None},
    "I.ir_module": {"check_well_formed": True, "s_tir": False},
}


def definition_options(reader: Reader, tree: ast.FunctionDef | ast.ClassDef) -> tuple[str, dict[str, Any]]:
    """The decorator of a definition (R.function, T.prim_func, I.ir_module) and its options with defaults.

    ScriptError W104 when there is none, W113 for an option that it does not have.
    """
    for decorator in tree.decorator_list:
        call = decorator if isinstance(decorator, ast.Call) else None
        name = reader.dotted(call.func if call else decorator)
        if name not in _OPTIONS:
            continue
        options = dict(_OPTIONS[name])
        for keyword in call.keywords if call else []:
            if keyword.arg not in options:
                hint = did_you_mean(keyword.arg or "", options) or f"it takes: {', '.join(options)}"
                raise reader.fail("W113", f"{name} has no option '{keyword.arg}'", keyword, hint)
            options[keyword.arg] = reader.constant(keyword.value)
        if call and call.args:
            raise reader.fail("W113", f"{name} takes keyword options only", call.args[0])
        return name, options
    what = "class" if isinstance(tree, ast.ClassDef) else "function"
    raise fail(
        "W104", f"the {what} '{tree.name}' has no decorator of the script", reader.unit.name_span(tree),
        hint="@I.ir_module for a class; @R.function or @T.prim_func for a function",
    )  # fmt: skip


def describe(value: Any) -> str:
    """A value in an error message."""
    if isinstance(value, (bool, int, float, str)) or value is None:
        text = repr(value)
        return text if len(text) <= 60 else text[:57] + "..."
    if isinstance(value, DimExpr):
        return f"the dimension {value}"
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, Type):
        return f"the type {type(value).__name__}"
    if isinstance(value, (PrimExpr, Expr)):
        return f"a {type(value).__name__}"
    return f"a {type(value).__name__}"


def _type_hint(tree: ast.expr) -> str | None:
    text = ast.unparse(tree)[:60]
    return f"did you mean `R.Prim({text})`?" if isinstance(tree, ast.Constant) else None


def signature_text(form: Form) -> str:
    """How a form is written."""
    parts: list[str] = []
    for hole in form.holes:
        if hole.star:
            parts.append(f"*{hole.name}")
        elif hole.default is REQUIRED:
            parts.append(hole.name)
        else:
            parts.append(f"{hole.name}={hole.default!r}")
    return f"{form.name}({', '.join(parts)})"


def typed_constant(value: int | float | bool, dtype: str) -> PrimExpr:
    """A literal of a dtype, exactly as given."""
    if isinstance(value, float):
        return FloatImm(value, dtype)
    return IntImm(int(value), dtype)
