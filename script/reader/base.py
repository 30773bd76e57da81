"""What the readers of both levels share beyond expressions and calls: types, dimensions, decorators."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from weft.dtypes import can_hold, check_dtype, is_float, is_integer
from weft.errors import ShapeError, WeftError
from weft.ir.deduction.device_mesh import DeviceMesh, DTensorType, Placement, parse_placement
from weft.ir.dim import Dim, DimExpr, parse_dim, symbol
from weft.ir.graph import PrimValue, Var
from weft.ir.kernel.index_map import MappedLayout, index_map, index_map_text
from weft.ir.node import FrozenMap, replace
from weft.ir.structure.structural import structural_equal
from weft.ir.tensor import FloatImm, IntImm
from weft.ir.types import FuncType, PrimType, TensorType, TupleType, Type, VDevice
from weft.providers import provider
from weft.script.forms.defaults import DEVICE_KINDS
from weft.script.forms.syntax import (
    ALL_FORMS,
    TYPES,
)
from weft.script.forms.unsupported import why_unread
from weft.script.reader.call import BUILTINS, OLD_KEYWORDS, KnownValue, signature_text
from weft.script.reader.device import FOREIGN_TARGETS, is_target_kind
from weft.script.reader.macros import Macro
from weft.script.reader.scope import ModuleScope, Scope, describe, is_dim
from weft.script.reader.static import StaticReader, macro_of
from weft.script.source.diagnostics import did_you_mean, fail
from weft.target import Target

__all__ = [
    "OLD_KEYWORDS",
    "ModuleScope",
    "Reader",
    "Scope",
    "definition_options",
    "describe",
    "is_dim",
    "macro_of",
    "signature_text",
]

_MAX_FIELDS = 100_000

_OPTIONS: dict[str, dict[str, Any]] = {
    "R.function": {"pure": True, "private": False, "check_well_formed": True, "name": None},
    "T.prim_func": {"private": False, "check_well_formed": True, "s_tir": False, "persistent": False, "name": None},
    "I.ir_module": {"check_well_formed": True, "s_tir": False, "target": None},
    "R.rewriter": {},
}


class Reader(StaticReader):
    """The base of the readers; one object reads one function."""

    def bare_type(self, name: str, tree: ast.expr) -> Any:
        """A type written without parentheses (`R.Tensor`)."""
        if name == "R.Callable":
            return FuncType(None, ALL_FORMS["R.Any"].build(), False, span=self.span(tree))  # type: ignore[misc]
        form = TYPES.get(name)
        if form is None or name in ("R.Prim", "I.vdevice", "R.DTensor", "R.device_mesh"):
            raise self.fail("W114", f"`{name}` must be called here", tree, f"write `{name}(...)`")
        return form.build(span=self.span(tree))  # type: ignore[misc]

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
            return PrimType(value, span=self.span(tree))
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
        if len(tree.args) == 3 and not any(k.arg == "vdevice" for k in tree.keywords):
            device = ast.copy_location(ast.keyword("vdevice", tree.args[2]), tree.args[2])
            tree = ast.copy_location(ast.Call(tree.func, tree.args[:2], [*tree.keywords, device]), tree)
        if len(tree.args) == 1 and self._is_dtype(tree.args[0]) and not any(k.arg == "dtype" for k in tree.keywords):
            tree = ast.Call(
                tree.func, [ast.copy_location(ast.Constant(None), tree.args[0]), tree.args[0]], tree.keywords
            )
            ast.copy_location(tree, tree.func)
        values = self.bind(form, tree)
        if isinstance(values["shape"], tuple) and values["ndim"] not in (-1, len(values["shape"])):
            raise self.fail("W121", f"ndim={values['ndim']} contradicts the shape of rank {len(values['shape'])}", tree)
        return TensorType(**values, span=self.span(tree))

    def _spread_type(self, tree: ast.Call) -> DTensorType:
        values = self.bind(TYPES["R.DTensor"], tree)
        mesh, placement = values.pop("device_mesh"), values.pop("placement")
        if isinstance(values["shape"], tuple) and values["ndim"] not in (-1, len(values["shape"])):
            raise self.fail("W121", f"ndim={values['ndim']} contradicts the shape of rank {len(values['shape'])}", tree)
        tensor = TensorType(**values, span=self.span(tree))
        given = [keyword.value for keyword in tree.keywords if keyword.arg == "placement"] or tree.args[3:4]
        made = self.fold(lambda: DTensorType(tensor, mesh, placement), given[0] if given else tree)
        return replace(made, span=self.span(tree))

    def _vdevice(self, tree: ast.Call) -> VDevice:
        values = self.bind(TYPES["I.vdevice"], tree)
        if not is_target_kind(values["target"]):
            place = next((word.value for word in tree.keywords if word.arg == "target"), (tree.args or [tree])[0])
            raise self.fail("W114", f"there is no kind of target {describe(values['target'])}", place)
        return VDevice(**values, span=self.span(tree))

    def _mesh(self, tree: ast.Call) -> DeviceMesh:
        values = self.bind(TYPES["R.device_mesh"], tree)
        for name, value in values.items():
            if not isinstance(value, tuple) or not all(type(item) is int and item >= 0 for item in value):
                raise self.fail("W114", f"{name} must be a list of numbers, got {describe(value)}", tree)
        made = self.fold(lambda: DeviceMesh(values["shape"], values["device_ids"]), tree)
        return replace(made, span=self.span(tree))

    def _form_range(self, tree: ast.Call) -> tuple[int, ...]:
        """`I.Range(0, 4)`: numbers of devices that follow one another."""
        bounds = [self.constant(argument) for argument in tree.args]
        if len(bounds) != 2 or tree.keywords or not all(type(bound) is int for bound in bounds):
            raise self.fail("W113", "I.Range takes the first number and the one after the last", tree)
        if bounds[1] - bounds[0] > _MAX_FIELDS:
            raise self.fail("W103", f"a mesh of more than {_MAX_FIELDS} devices", tree)
        return tuple(range(*bounds))

    def read_mesh(self, tree: ast.expr) -> DeviceMesh:
        """A mesh of devices: its place among the infos of the module (`"mesh[0]"`), or written out."""
        return self.as_mesh(self.value(tree), tree)

    def as_mesh(self, value: Any, tree: ast.AST) -> DeviceMesh:
        """A value as a mesh of devices; W111 for a name that the module does not have."""
        if isinstance(value, str):
            name, _, index = value.partition("[")
            known = [
                f"{key}[{place}]"
                for key, infos in self.module.infos.items()
                for place, info in enumerate(infos if isinstance(infos, tuple) else ())
                if isinstance(info, DeviceMesh)
            ]
            if value not in known:
                hint = did_you_mean(value, known) or f"it has: {', '.join(known) or 'none'}"
                raise self.fail("W111", f"the module has no mesh {value!r}", tree, hint)
            value = self.module.infos[name][int(index[:-1])]
        if not isinstance(value, DeviceMesh):
            raise self.fail("W114", f"expected a mesh of devices, got {describe(value)}", tree)
        return value

    def read_placement(self, tree: ast.expr) -> Placement:
        """Where a tensor is on a mesh: `"S[0], R"`."""
        value = self.constant(tree)
        if not isinstance(value, str):
            raise self.fail("W114", f"expected a placement, got {describe(value)}", tree, 'write "S[0], R"')
        return self.fold(lambda: parse_placement(value), tree)

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

    scopes_function_types = True  # whether the symbols of a function type are read as its own

    def _func_type(self, tree: ast.Call) -> FuncType:
        known, before = set(self.symbols), self.defining
        if self.scopes_function_types:
            self.defining = True
        try:
            values = self.bind(TYPES["R.Callable"], tree)
        finally:
            self.defining = before
            if self.scopes_function_types:
                self.symbols &= known
        opaque = values["params"] is None
        ret = values["ret"] if values["ret"] is not None else ALL_FORMS["R.Any"].build()  # type: ignore[misc]
        pure = values["pure"] if values["pure"] is not None else not opaque
        return FuncType(values["params"], ret, pure, values["derive"], span=self.span(tree))

    def _prim_type(self, tree: ast.Call) -> PrimType:
        """`R.Prim("int64")`, `R.Prim(value="n")`: a scalar, or the one that has a value."""
        if not tree.args and not tree.keywords:
            raise self.fail("W113", "R.Prim takes a dtype or a value", tree, 'R.Prim("int64")')
        values = self.bind(TYPES["R.Prim"], tree)
        if values["value"] is None:
            return PrimType(values["dtype"], span=self.span(tree))
        natural, value = values["value"]
        dtype = values["dtype"] or natural
        if dtype != natural:
            integral = type(value) is int and is_integer(dtype) and can_hold(dtype, value)
            if not integral and not (type(value) is float and is_float(dtype)):
                raise self.fail("W123", f"the value is {natural}, not {dtype}", tree)
        return PrimType(dtype, value, self.span(tree))

    def read_scalar_value(self, tree: ast.expr) -> tuple[str, Any] | None:
        """The value of a scalar type with its dtype: a dimension, or a constant; None for none."""
        value = self.value(tree)
        if value is None:
            return None
        if isinstance(value, (bool, float)):
            return ("bool" if isinstance(value, bool) else "float32"), value
        if isinstance(value, (FloatImm, IntImm, PrimValue)) and not isinstance(value.value, DimExpr):
            number = bool(value.value) if value.dtype == "bool" else value.value
            return value.dtype, number if value.dtype != "int64" else self.as_dim(number, tree)
        return "int64", self.as_dim(value, tree)

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
            hint = "the shape comes first, then the dtype" if isinstance(value, str) else None
            raise self.fail("W114", f"expected a shape, got {describe(value)}", tree, hint)
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
        if isinstance(value, Var) and isinstance(value.ty, PrimType) and value.ty.dims is not None:
            value = value.ty.dims[0]  # a scalar that is a size
        if isinstance(value, (int, DimExpr)) and not isinstance(value, bool):
            if isinstance(value, int) and not -(2**63) <= value < 2**63:
                raise self.fail("W103", f"the dimension {value} does not fit in 64 bits", tree)
            if isinstance(value, int) and value < 0 and self.negative_dims is False:
                raise self.fail("W114", f"a dimension cannot be negative, got {value}", tree)
            return value
        hint = 'a size that only the run can tell is a symbol, as "n"' if value is None else None
        raise self.fail("W114", f"expected a dimension, got {describe(value)}", tree, hint)

    negative_dims: bool = True

    def dim_text(self, text: str, tree: ast.expr) -> Dim:
        """A dimension written as a string; in a signature it may define symbols."""
        if text.isidentifier():
            self.use_symbol(text, tree)
            return self.fold(lambda: symbol(text), tree)
        inner = self.text_tree(text, tree)
        for name in {node.id for node in ast.walk(inner) if isinstance(node, ast.Name)} - BUILTINS.keys():
            if self.unit.namespace(name) is None or name in self.symbols:
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
            raise self.not_a_size(text, tree) from None
        for node in ast.walk(inner):
            if isinstance(node, ast.Div):
                raise self.not_a_size(text, tree)
            ast.copy_location(node, tree)
        return inner

    def not_a_size(self, text: str, tree: ast.expr) -> WeftError:
        """The error for a string that does not read as a size, with what the grammar of sizes says of it."""
        try:
            parse_dim(text)
        except ShapeError as error:
            return self.fail(error.code, f"{text!r} is not a size: {error.message}", tree, error.hint)
        return self.fail("W101", f"{text!r} is not an expression", tree)

    def use_symbol(self, name: str, tree: ast.expr) -> None:
        """A symbol named by a string: defined here in a signature, else it must be known."""
        if name in self.symbols:
            return
        if self.defining or name in self.unit.symbols:
            self.symbols.add(name)
            return
        hint = did_you_mean(name, self.symbols) or "symbols come from the signature or from R.match_cast"
        raise self.fail("W117", f"undefined symbol '{name}'", tree, hint)

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

    def stated_target(self, tree: ast.expr) -> Target:
        """A target given as a string, as a dictionary, as `I.target(...)` or as a captured Target."""
        spec = self.attribute_value(self.value(tree), tree)
        if not isinstance(spec, (str, FrozenMap, Target)):
            raise self.fail("W113", "a target is a string, a dictionary or I.target(...)", tree)
        return spec if isinstance(spec, Target) else self.fold(lambda: Target(spec), tree)

    def _form_artifacts(self, tree: ast.Call) -> Any:
        data = self.attribute_value(self.value(tree.args[0]), tree) if len(tree.args) == 1 else None
        if not isinstance(data, tuple) or not all(isinstance(item, FrozenMap) for item in data):
            raise self.fail("W113", "I.artifacts takes a list of dictionaries", tree)
        return self.fold(lambda: provider("artifacts")(data), tree)

    def _form_foreign_target(self, tree: ast.Call) -> Target | FrozenMap:
        """`T.target(...)`: a target of weft, or the description of another project's as plain data."""
        spec = self.attribute_value(self.value(tree.args[0]), tree) if tree.args else None
        try:
            return self._form_target(tree)
        except WeftError:
            if isinstance(spec, str) and spec.split()[:1] and spec.split()[0] in FOREIGN_TARGETS:
                spec = FrozenMap({"kind": spec})
            if not isinstance(spec, FrozenMap):
                raise
        if "kind" not in spec and "tag" not in spec:
            hint = did_you_mean(next(iter(spec), ""), ["kind"]) or 'T.target({"kind": "llvm"})'
            raise self.fail("W114", "a target says its kind", tree, hint)
        host = [self.value(item) for item in tree.args[1:2]]
        host += [self.value(keyword.value) for keyword in tree.keywords if keyword.arg == "host"]
        return FrozenMap({**spec, "host": self.attribute_value(host[0], tree)}) if host else spec

    def _form_device(self, tree: ast.Call) -> VDevice:
        """`R.device(2, 0)`, `R.cuda(0)`: a device of the field, by the number or name of its kind."""
        name = self.dotted(tree.func) or ""
        given = {keyword.arg: self.constant(keyword.value) for keyword in tree.keywords}
        values = [self.constant(argument) for argument in tree.args]
        if name == "R.device":
            kind = given.pop("device_type", None) if not values else values.pop(0)
        else:
            kind = name[2:]
        index = values.pop(0) if values else given.pop("index", given.pop("dev_id", 0))
        kind = DEVICE_KINDS.get(kind, kind)
        if values or given or kind not in DEVICE_KINDS.values() or type(index) is not int:
            known = ", ".join(f"{number} ({text})" for number, text in DEVICE_KINDS.items())
            raise self.fail("W114", f"{name} takes a known kind of device and an index", tree, f"kinds: {known}")
        return VDevice(FrozenMap({"kind": kind}), index, span=self.span(tree))

    private = False

    def joined(self, known: FrozenMap, new: FrozenMap, what: str, tree: ast.AST) -> FrozenMap:
        """Attributes said in several places: dictionaries are joined, W118 where two values contradict."""
        result: dict[str, Any] = dict(known)
        for key, value in new.items():
            before = result.get(key)
            if isinstance(before, FrozenMap) and isinstance(value, FrozenMap):
                result[key] = self.joined(before, value, what, tree)
            elif key in result and not structural_equal(before, value):
                raise self.fail("W118", f"the {what} has the attribute {key!r} already, with another value", tree)
            else:
                result[key] = value
        return FrozenMap(result)

    def _check_private(self, attrs: FrozenMap, tree: ast.AST) -> None:
        if self.private and "global_symbol" in attrs:
            hint = "leave out private=True, or the attribute"
            raise self.fail("W113", "a private function has no global_symbol: nothing outside can name it", tree, hint)

    def _form_meta_var(self, tree: ast.Call) -> Any:
        if len(tree.args) != 1 or tree.keywords:
            raise self.fail("W113", "I.meta_var takes one argument", tree)
        return self.value(tree.args[0])

    def _form_index_map(self, tree: ast.Call) -> MappedLayout:
        """`T.index_map(lambda i, j: (j, i))`: where elements go, as attribute data."""
        named = {keyword.arg: keyword for keyword in tree.keywords}
        wrong = next((word for name, word in named.items() if name not in ("inverse_index_map", "index_dtype")), None)
        if wrong is not None or len(tree.args) != 1:
            place = tree if wrong is None else wrong
            raise self.fail("W113", "T.index_map takes a function of the indices, and inverse_index_map", place)
        text = self._map_text(tree.args[0])
        inverse = named.get("inverse_index_map")
        stated = inverse is not None and not (isinstance(inverse.value, ast.Constant) and inverse.value.value is None)
        back = self._map_text(inverse.value) if inverse is not None and stated else ""
        return MappedLayout(text, back, span=self.span(tree))

    def _map_text(self, tree: ast.expr) -> str:
        """The canonical text of a map given as a lambda (which may use what is known while reading) or as text."""
        found = self.value(tree)
        if isinstance(found, Macro) and isinstance(found.body, ast.expr):
            names = [*found.arguments.posonlyargs, *found.arguments.args]
            indices = [KnownValue(symbol(f"i{position}"), tree) for position in range(len(names))]
            targets = self.expand(found, ast.copy_location(ast.Call(tree, indices, []), tree))  # type: ignore[arg-type]
            return self.fold(lambda: str(index_map(len(names), targets)), tree)
        if not isinstance(found, str):
            raise self.fail("W114", f"expected a lambda, got {describe(found)}", tree, "lambda i, j: (j, i)")
        return self.fold(lambda: index_map_text(found), tree)

    _TYPE_FORMS: ClassVar[dict[str, Callable[[Any, ast.Call], Any]]] = {}


Reader._METHODS = {
    ast.Constant: Reader._constant, ast.Name: Reader._name, ast.Attribute: Reader._attribute, ast.BinOp: Reader._binop,
    ast.BoolOp: Reader._boolop, ast.Compare: Reader._compare, ast.UnaryOp: Reader._unaryop, ast.IfExp: Reader._ifexp,
    ast.Tuple: Reader._tuple, ast.List: Reader._list, ast.Dict: Reader._dict, ast.Subscript: Reader._subscript,
    ast.JoinedStr: Reader._joined_string, ast.Call: Reader._call, KnownValue: Reader._known,
    ast.Lambda: Reader._lambda, ast.ListComp: Reader._comprehension, ast.GeneratorExp: Reader._comprehension,
    ast.DictComp: Reader._dict_comprehension,
}  # fmt: skip
Reader._TYPE_FORMS = {
    "R.Tensor": Reader._tensor_type, "R.Tuple": Reader._tuple_type, "R.Callable": Reader._func_type,
    "R.Prim": Reader._prim_type, "I.vdevice": Reader._vdevice, "R.DTensor": Reader._spread_type,
    "R.device_mesh": Reader._mesh,
}  # fmt: skip
Reader._FORMS = {
    "I.float_bits": Reader._form_float_bits, "I.dim": Reader._form_dim, "I.meta_var": Reader._form_meta_var,
    "T.meta_var": Reader._form_meta_var,
    "I.target": Reader._form_target, "I.artifacts": Reader._form_artifacts,
    "T.target": Reader._form_foreign_target,
    "T.index_map": Reader._form_index_map,
    "I.Range": Reader._form_range, "R.Range": Reader._form_range,
    "R.device": Reader._form_device,
    **{f"R.{kind}": Reader._form_device for kind in DEVICE_KINDS.values()},
}  # fmt: skip


def definition_options(reader: Reader, tree: ast.FunctionDef | ast.ClassDef) -> tuple[str, dict[str, Any]]:
    """The decorator of a definition (R.function, T.prim_func, I.ir_module, R.rewriter) and its options with defaults.

    ScriptError W104 when there is none, W113 for an option that it does not have.
    """
    for decorator in tree.decorator_list:
        call = decorator if isinstance(decorator, ast.Call) else None
        name = reader.dotted(call.func if call else decorator)
        if name not in _OPTIONS:
            continue
        _check_other_decorators(reader, tree, decorator)
        options = dict(_OPTIONS[name])
        for keyword in call.keywords if call else []:
            if keyword.arg not in options:
                hint = did_you_mean(keyword.arg or "", options) or f"it takes: {', '.join(options) or 'none'}"
                raise reader.fail("W113", f"{name} has no option '{keyword.arg}'", keyword, hint)
            read = reader.stated_target if keyword.arg == "target" else reader.constant
            options[keyword.arg] = read(keyword.value)
        if call and call.args:
            raise reader.fail("W113", f"{name} takes keyword options only", call.args[0])
        return name, options
    for decorator in tree.decorator_list:
        tried = reader.dotted(decorator.func if isinstance(decorator, ast.Call) else decorator)
        if tried is not None and why_unread(tried) is not None:
            raise reader.unknown(tried, decorator)
        if tried is not None:
            hint = did_you_mean(tried, _OPTIONS) or f"decorators are {', '.join(_OPTIONS)}"
            raise reader.fail("W111", f"`{tried}` does not decorate a {_kind_of(tree)}", decorator, hint)
    what = _kind_of(tree)
    raise fail(
        "W104", f"the {what} '{tree.name}' has no decorator of the script", reader.unit.name_span(tree),
        hint="@I.ir_module for a class; @R.function or @T.prim_func for a function",
    )  # fmt: skip


def _kind_of(tree: ast.FunctionDef | ast.ClassDef) -> str:
    return "class" if isinstance(tree, ast.ClassDef) else "function"


def _check_other_decorators(reader: Reader, tree: ast.FunctionDef | ast.ClassDef, chosen: ast.expr) -> None:
    """Decorators above are Python's business in a running program; below, and in a text, they would be ignored."""
    position = tree.decorator_list.index(chosen)
    others = tree.decorator_list if reader.unit.captured is None else tree.decorator_list[position:]
    for other in others:
        name = other.id if isinstance(other, ast.Name) else ""
        if other is not chosen and name != "staticmethod" and not reader.unit.partial:
            raise reader.fail(
                "W115", f"the decorator `{ast.unparse(other)[:60]}` has no meaning for a script", other,
                "the script is read as it is written",
            )  # fmt: skip


def _type_hint(tree: ast.expr) -> str | None:
    if not isinstance(tree, ast.Constant) or not isinstance(tree.value, str):
        return None
    if tree.value.partition(".")[0] in ("R", "T", "I"):
        return "write the type without quotes"
    return f"did you mean `R.Prim({ast.unparse(tree)[:60]})`?"
