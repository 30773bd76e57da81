"""Reading Python expressions: names, operators, containers, and arithmetic on what is known while reading.

`value(tree)` gives what an expression stands for: an IR expression, a type, a dimension, or a plain Python value
(numbers, strings, tuples, ...). Arithmetic on plain values is folded within limits; everything else is built as it is
written.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from weft.dtypes import USUAL_DTYPES, check_dtype
from weft.errors import Span, WeftError
from weft.ir.dim import DimExpr, free_symbols, symbol
from weft.ir.graph import GlobalVar
from weft.ir.kernel.prim import never_defined
from weft.ir.node import FrozenMap, Node
from weft.ir.tensor import Binary, PrimVar
from weft.script.forms.defaults import DEVICE_KINDS
from weft.script.forms.syntax import (
    ALIASES,
    ALL_FORMS,
    BINARY_BY_TREE,
    COMPARE_BY_TREE,
    NAMES,
    TYPES,
    UNARY_BY_TREE,
)
from weft.script.forms.unsupported import why_unread
from weft.script.reader.folding import binary, check_bits, contains, too_many, unary
from weft.script.reader.macros import Macro
from weft.script.reader.scope import Called, Hidden, ModuleScope, Scope, describe, is_dim, is_plain, plain_capture
from weft.script.source.budget import OPERATION, VALUE, measure
from weft.script.source.diagnostics import did_you_mean, fail
from weft.script.source.text import MISSING, NAMESPACE_MODULES, Unit
from weft.target import Target

__all__ = ["ExpressionReader"]

# Names of the package itself, by the path behind it.
_OF_THE_PACKAGE = {
    "script.ir_module": "I.ir_module", "script.tir": "T.prim_func", "target.Target": "T.target",
    **{name: f"R.{name}" for name in ("device", *DEVICE_KINDS.values())},
}  # fmt: skip
_SCALARS = frozenset({bool, int, float, type(None)})
_CONTAINERS = (tuple, list, dict, FrozenMap, str, range)

_UNSUPPORTED = {
    ast.SetComp: "a set comprehension", ast.Await: "`await`", ast.Yield: "`yield`", ast.YieldFrom: "`yield`",
    ast.NamedExpr: "an assignment expression", ast.Set: "a set", ast.Starred: "a starred expression",
    ast.FormattedValue: "a format", ast.AsyncFunctionDef: "an asynchronous function", ast.AsyncFor: "`async for`",
    ast.AsyncWith: "`async with`", ast.ClassDef: "a class", ast.FunctionDef: "a function without a decorator",
    ast.Delete: "`del`", ast.ImportFrom: "`import`",
}  # fmt: skip

_HINTS: dict[type, str] = {
    ast.While: "write the loop as a T.prim_func, or use a static `for i in range(3)`",
    ast.NamedExpr: "bind the name in a statement of its own",
    ast.Set: "write a tuple or a list",
    ast.SetComp: "write a list comprehension",
    ast.Try: "nothing can be caught while a script runs; choose with `if`",
    ast.Raise: "`assert condition, message` is checked",
    ast.Import: "import outside the script",
    ast.ImportFrom: "import outside the script",
    ast.Match: "write `if` and `elif`",
    ast.FunctionDef: "decorate it with @R.function, @R.macro or @T.macro",
    ast.ClassDef: "define it outside the script",
    ast.Delete: "names end with their block",
    ast.Global: "a script binds its own names only; outside names can be read as they are",
    ast.Nonlocal: "a script binds its own names only; outside names can be read as they are",
    ast.Yield: "a function gives its result by `return`",
    ast.YieldFrom: "a function gives its result by `return`",
    ast.Await: "scripts are not asynchronous",
    ast.AsyncFunctionDef: "scripts are not asynchronous",
    ast.AsyncFor: "scripts are not asynchronous",
    ast.AsyncWith: "scripts are not asynchronous",
}

_BUILTIN_HINTS = {
    "float": 'dtypes are strings, as "float32"',
    "int": 'dtypes are strings, as "int64"',
    "bool": 'the dtype is written "bool"',
    "str": "a string is written I.StringType()",
    "print": "a script is read, not run: R.print in a function with pure=False prints when it runs",
    "super": "a script has no classes; functions of the module are called as `cls.f`",
    "self": "functions of the module are called as `cls.f`, and have no `self`",
    "torch": "a script sees tensors of weft only: R has the operators",
}

_DIM_KINDS = frozenset({"add", "sub", "mul", "floordiv", "floormod", "pow"})

_SHORT_DTYPES = {
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    "bf16": "bfloat16",
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
}


class ExpressionReader:
    """Elaborates expressions; the levels say what operators on IR values mean."""

    if TYPE_CHECKING:

        def constant(self, tree: ast.expr) -> Any:
            """A plain Python value (see `read_call`)."""
            ...

        def settled(self, value: Any, tree: ast.expr) -> Any:
            """A value that may be used more than once (see `read_static`)."""
            ...

        def bare_type(self, name: str, tree: ast.expr) -> Any:
            """A type written without parentheses (see `reader`)."""
            ...

        def type_call(self, name: str, tree: ast.Call) -> Any:
            """A type written as a call (see `reader`)."""
            ...

    def __init__(self, unit: Unit, module: ModuleScope) -> None:
        self.unit = unit
        self.module = module
        self.scope = Scope()
        self.symbols: set[str] = set()
        self.defining = False  # whether strings in shapes may define symbols
        self.foreign = False  # whether a macro from outside the function is being read: its own names come first
        self.depth = 0

    def span(self, tree: ast.AST) -> Span:
        """The place of a syntax tree."""
        return self.unit.span(tree)

    def fail(self, code: str, message: str, tree: ast.AST, hint: str | None = None) -> WeftError:
        """The error to raise about a syntax tree."""
        return fail(code, message, self.span(tree), hint)

    def unsupported(self, tree: ast.AST, hint: str | None = None) -> WeftError:
        """The error for Python that the script does not read."""
        what = _UNSUPPORTED.get(type(tree), f"`{type(tree).__name__.lower()}`")
        return self.fail("W115", f"{what} is not part of the script", tree, hint or _HINTS.get(type(tree)))

    def value(self, tree: ast.expr) -> Any:
        """What an expression stands for."""
        self.unit.charge(VALUE, tree)
        self.depth += 1
        if self.depth > self.unit.limits.nesting:
            raise self.fail(
                "W103", f"expressions nest deeper than {self.unit.limits.nesting}", tree,
                "name parts of it by bindings; Limits(nesting=...) allows more",
            )  # fmt: skip
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
            hint = "Limits(digits=...) allows more"
            raise self.fail("W103", f"an integer of more than {self.unit.limits.digits} digits", tree, hint)
        return value

    def _name(self, tree: ast.Name) -> Any:
        return self.lookup(tree.id, tree)

    def lookup(self, name: str, tree: ast.AST) -> Any:
        """The meaning of a name; W110 when it has none."""
        found = self.scope.get(name)
        if isinstance(found, Hidden):
            raise self.fail("W119", f"'{name}' is not visible here", tree, found.why)
        if found is not MISSING:
            return found
        if name in self.symbols and not (self.foreign and self.unit.capture(name) is not MISSING):
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
        if name == "metadata":
            hint = "print the text with its metadata section: script(show_meta=True)"
            return self.fail("W110", "the text names constants of a metadata section that it does not have", tree, hint)
        hint = _BUILTIN_HINTS.get(name) or did_you_mean(name, {*self.scope.visible(), *self.symbols})
        if hint is None and name in self.module.function_names:
            hint = f"functions of the module are called as `cls.{name}`"
        return self.fail("W110", f"undefined name '{name}'", tree, hint)

    def symbol_value(self, name: str, tree: ast.AST) -> Any:
        """What a symbol name stands for at this level."""
        self.symbols.add(name)
        return symbol(name)

    def captured(self, value: Any, name: str, tree: ast.AST) -> Any:
        """A Python value from outside; W150 when the script cannot hold it."""
        made = self.adapted(value, name, tree)
        if isinstance(made, list):
            self.unit.charge(1 + len(made) // 8, tree)
            return list(made)  # a script that adds to it does not change the program's list
        if isinstance(made, (Node, np.dtype, DimExpr, Macro, Target, tuple)) or is_plain(made):
            return made
        raise self.fail(
            "W150", f"'{name}' is a Python {type(value).__name__}, which a script cannot use", tree,
            "numbers, strings, dtypes, arrays, tuples, types and functions of weft can be captured; "
            "`I.meta_var(...)` holds any object",
        )  # fmt: skip

    def adapted(self, value: Any, name: str, tree: ast.AST) -> Any:
        """A Python value from outside as what it means in a script, or as it is."""
        value = plain_capture(value)
        if hasattr(value, "__weft_dtype__"):
            return value.__weft_dtype__
        if isinstance(value, TypeVar):
            return self.symbol_value(value.__name__, tree)
        if isinstance(value, PrimVar) and value.dtype != "handle":
            return self.declared_outside(name, value, tree)
        if isinstance(value, DimExpr):
            self.symbols.update(free_symbols(value))
            return value
        if isinstance(value, type) and issubclass(value, np.generic):
            return check_dtype(value)
        return value

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
            space = self._namespace_path(root, parts) or self._written_path(root, parts)
            if space is None:
                return None
        parts.append(space)
        name = ".".join(reversed(parts))
        return ALIASES.get(name, name)

    def _written_path(self, root: str, parts: list[str]) -> str | None:
        """The namespace of a path written out from its package (`tvm.script.ir_module`); consumes the path."""
        if root not in ("tvm", "weft") or self.unit.capture(root) is not MISSING:
            return None
        meaning = _OF_THE_PACKAGE.get(".".join(reversed(parts)))
        if meaning is not None:
            space, _, name = meaning.partition(".")
            parts[:] = [name]
            return space
        path = root
        for taken, part in enumerate(reversed(parts), 1):
            path = f"{path}.{part}"
            if path in NAMESPACE_MODULES and taken < len(parts):
                del parts[-taken:]
                return NAMESPACE_MODULES[path]
        return None

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
            known = ", ".join(sorted(self.module.function_names)) or "none"
            hint = did_you_mean(name, self.module.function_names, f"{root}.") or f"it has: {known}"
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
        pointer = self.pointer_dtype(tree)
        return self.attribute_of(self.value(tree.value), tree) if pointer is None else pointer

    def pointer_dtype(self, tree: ast.Attribute) -> str | None:
        """The dtype of `T.handle("float32").ty`, None for any other attribute (see `read_declaration`)."""
        return None

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
        if name in self.extra_names(name[0]):
            return Called(name)
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

    def unknown(self, name: str, tree: ast.AST) -> WeftError:
        """The error for a name that I, R or T does not have."""
        why = why_unread(name)
        if why is not None:
            return self.fail("W115", f"`{name}` is not read: {why}", tree)
        root = name.partition(".")[0]
        known = [full for full in NAMES if full.startswith(root + ".")]
        known += [f"T.{dtype}" for dtype in USUAL_DTYPES] if root == "T" else []
        known += self.extra_names(root)
        inside = [full for full in known if full.startswith(name + ".")]
        if inside:
            return self.fail("W114", f"`{name}` is a namespace, not a value", tree, f"it has `{min(inside)}`")
        hint = did_you_mean(name, known)
        return self.fail("W111", f"`{name}` does not exist", tree, hint)

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
            if self.known(result, operand) and bool(result) == (kind == "or"):
                return result  # as in Python, the rest is not read
            result = self.binary(kind, result, self.value(operand), tree)
        return result

    def _compare(self, tree: ast.Compare) -> Any:
        left = self.value(tree.left)
        result: Any = None
        for op, comparator in zip(tree.ops, tree.comparators, strict=True):
            kind = COMPARE_BY_TREE.get(type(op))
            right = self.value(comparator)
            part = self.binary(kind, left, right, tree) if kind is not None else self._membership(op, left, right, tree)
            result = part if result is None else self.binary("and", result, part, tree)
            left = right
        return result

    def _membership(self, op: ast.cmpop, left: Any, right: Any, tree: ast.AST) -> bool:
        """`in` and `is`, where both sides are known while reading."""
        if isinstance(op, (ast.Is, ast.IsNot)) and (left is None or right is None):
            return (left is right) == isinstance(op, ast.Is)
        known = self.known(left, tree) and isinstance(right, _CONTAINERS) and self.known(right, tree)
        if isinstance(op, (ast.In, ast.NotIn)) and known:
            return self.fold_known(contains, (left, right), tree) == isinstance(op, ast.In)
        raise self.fail(
            "W115", "`in` and `is` work on what is known while reading", tree,
            "compare with None, or ask whether a number or string is in a tuple, list or dictionary",
        )  # fmt: skip

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
            if self.known(result, node):
                result = self.fold_known(unary, (kind, result), node)
            elif isinstance(result, DimExpr) and kind == "neg":
                result = -result
            else:
                result = self.combine_unary(kind, result, node)
        return result

    def binary(self, kind: str, left: Any, right: Any, tree: ast.AST) -> Any:
        """A binary operation: folded on plain values, symbolic on dimensions, else built by the level."""
        if self.known(left, tree) and self.known(right, tree):
            if kind in ("and", "or"):
                return (left and right) if kind == "and" else (left or right)
            return self.fold_known(binary, (kind, left, right, self.unit.limits), tree)
        joined = kind == "add" and isinstance(left, (tuple, list)) and type(left) is type(right)
        if joined or (kind == "mul" and isinstance(left, (tuple, list)) and isinstance(right, int)):
            return self.fold_known(binary, (kind, left, right, self.unit.limits), tree)
        self.unit.charge(OPERATION, tree)
        if is_dim(left) and is_dim(right) and kind in _DIM_KINDS:
            return self.fold(lambda: binary(kind, left, right, self.unit.limits), tree)
        made = self.combine(kind, left, right, tree)
        # Passes may make such nodes of code that does not run: those are written as calls (`T.floordiv(x, 0)`).
        wrong = never_defined(kind, made.a, made.b) if isinstance(made, Binary) else None
        if wrong is not None:
            raise self.fail("W124", wrong, tree)
        return made

    def too_many(self, what: str, tree: ast.AST) -> WeftError:
        """The error for a constant over the limit."""
        return too_many(what, self.unit.limits).at(self.span(tree))

    def known(self, value: Any, tree: ast.AST) -> bool:
        """Whether a value is Python data that is known while reading; looking at it is charged."""
        if type(value) in _SCALARS:
            return True
        found = measure(value, self.unit.budget.left)
        self.unit.charge(found.units, tree)
        return found.plain

    def fold_known(self, function: Callable[..., Any], values: tuple[Any, ...], tree: ast.AST) -> Any:
        """A function of Python on values that are known while reading, charged by the sizes of what goes in and out."""
        for value in values:
            if type(value) not in _SCALARS:
                self.unit.charge(measure(value, self.unit.budget.left, deep=True).units, tree)
        made = self.fold(lambda: check_bits(function(*values)), tree)
        if isinstance(made, (str, tuple, list)):
            self.unit.charge(len(made), tree)
        return made

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

    def items(self, trees: list[ast.expr]) -> list[Any]:
        """The values of the elements; a starred plain tuple is spread."""
        result: list[Any] = []
        for tree in trees:
            if isinstance(tree, ast.Starred):
                result.extend(self.spread(self.value(tree.value), tree))
            else:
                result.append(self.value(tree))
        return result

    def spread(self, value: Any, tree: ast.expr) -> Sequence[Any]:
        """The parts of `*value`."""
        if not isinstance(value, (tuple, list, range)):
            raise self.fail("W115", "only tuples known while reading can be spread with *", tree)
        self.check_rounds(value, self.unit.limits.parts, tree)
        return value

    def check_rounds(self, values: Sequence[Any], most: int, tree: ast.AST) -> None:
        """Charge for going through values once; W103 when they are more than a limit."""
        count = _length(values)
        if count > most:
            raise self.fail(
                "W103", f"{count} rounds of a static loop, the limit is {most}", tree,
                "Limits(unrolled=...) allows more",
            )  # fmt: skip
        self.unit.charge(count, tree)

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
            result[name] = self.settled(self.value(item), item)  # type: ignore[index]
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
            if isinstance(key, slice) and not isinstance(base, range):
                self.unit.charge(len(base), tree)
            return self.fold(lambda: plain_capture(base[key]), tree)  # type: ignore[index]
        raise self.fail("W115", f"{describe(base)} has no elements", tree)

    def slice_of(self, tree: ast.expr) -> Any:
        """A plain index or slice."""
        if isinstance(tree, ast.Slice):
            parts = [self.constant(part) if part is not None else None for part in (tree.lower, tree.upper, tree.step)]
            return slice(*parts)
        return self.constant(tree)

    def _joined_string(self, tree: ast.JoinedStr) -> str:
        parts: list[str] = []
        length = 0
        for part in tree.values:
            if isinstance(part, ast.Constant):
                parts.append(str(part.value))
            elif isinstance(part, ast.FormattedValue):
                value = self.constant(part.value)
                if part.format_spec is not None or not isinstance(value, (int, float, str)):
                    raise self.fail("W115", "only plain numbers and strings can stand in a format string", part.value)
                parts.append(self.fold_known(str, (value,), part))
            length += len(parts[-1])
            if length > self.unit.limits.parts:
                raise self.too_many("characters", tree)
        return "".join(parts)

    _METHODS: ClassVar[dict[type, Callable[[Any, Any], Any]]] = {}


def _length(values: Sequence[Any]) -> int:
    """How many elements there are; `len` has no answer for a range of 2**63 and more."""
    if isinstance(values, range):
        return max(0, -((values.start - values.stop) // values.step))
    return len(values)
