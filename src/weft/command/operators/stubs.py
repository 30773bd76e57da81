"""Stubs: what editors and type checkers see of R and T, made from the declarations of operators, from the table of
intrinsics and from the syntax table. Those of weft lie beside the sources (docs/stubs.py writes them);
`weft ops --stubs FOLDER` writes them with what installed plug-ins add.

A script's annotations are calls (`x: R.Tensor((2,), "float32")`), which checkers allow only where
`typing.no_type_check` stands; script/checked holds the decorators with that meaning.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from weft.command.listing import describe_operator
from weft.ir.kernel.intrinsics import INTRINSICS
from weft.ir.op import OPS, REQUIRED, OpDef
from weft.ir.op.declare import ParamKind
from weft.script import relax, tir
from weft.script.forms import syntax
from weft.script.forms.syntax import ALIASES, ALL_FORMS, BINARY_CALLS, LOOPS, SCOPES, TYPES, UNARY_CALLS, Form

__all__ = ["stub_package", "stubs"]

_HEAD = '"""{what} Written from the declarations; do not edit."""\n\n{imports}'
_DTYPES = (
    "bool",
    *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (4, 8, 16, 32, 64)),
    "float16",
    "float32",
    "float64",
    "bfloat16",
    "float8_e4m3fn",
    "float8_e5m2",
)
_LANES = (2, 4, 8, 16, 32, 64)

_RULES = {
    "float": "Operands are floating; the result has their dtype.",
    "integer": "Operands are integers; the result has their dtype.",
    "bool": "The result is a bool.",
    "same": "The result has the dtype of the operands.",
}


def stubs() -> dict[str, str]:
    """The text of every stub by its path below the package `weft`, for all operators, intrinsics and forms that are
    declared when it is called.

    >>> sorted(stubs())
    ['script/relax.pyi', 'script/tir.pyi', 'script/tirx.pyi']
    """
    return {
        "script/relax.pyi": _graph_stub(),
        "script/tir.pyi": _tensor_stub(),
        "script/tirx.pyi": '"""Another name of `weft.script.tir`. Written from the declarations; do not edit."""\n\n'
        "from weft.script.tir import *\n",
    }


def stub_package() -> dict[str, str]:
    """What `R` and `T` have now, plug-ins included, as the files of a package of stubs that completes the installed
    weft, by their paths.

    The package is `weft-stubs`, marked as partial (PEP 561): type checkers look into it where it is installed, or where
    its folder is their path of stubs. It has the decorators of script/checked too: checkers know `no_type_check` only
    in a stub that they find beside those that name it.

    >>> stub_package()["weft-stubs/py.typed"]
    'partial\\n'
    """
    return {f"weft-stubs/{name}": text for name, text in {"py.typed": "partial\n", **stubs(), **_decorators()}.items()}


def _decorators() -> dict[str, str]:
    """The stubs of script/checked by their paths below the package `weft`."""
    script = Path(relax.__file__).parent
    return {
        f"script/{path.relative_to(script).as_posix()}": path.read_text(encoding="utf-8")
        for path in sorted((script / "checked").rglob("*.pyi"))
    }


def _docstring(text: str, indent: str = "    ") -> str:
    body = text.strip().replace("\\", "\\\\").replace('"""', "'''")
    return textwrap.indent(f'"""{body}{chr(10) if chr(10) in body else ""}"""', indent)


def _function(name: str, parameters: Iterable[str], result: str, doc: str, *, member: bool = False) -> str:
    made = f"def {name}({', '.join(parameters)}) -> {result}:\n{_docstring(doc)}"
    return textwrap.indent(f"@staticmethod\n{made}", "    ") if member else made


def _value(value: Any) -> str:
    if value is None or isinstance(value, (bool, int, float, str, tuple)):
        return repr(value)
    return "..."


# ---------------------------------------------------------------------------------------------------------------------
# R
# ---------------------------------------------------------------------------------------------------------------------


def _graph_stub() -> str:
    imports = (
        "import typing as _t\nfrom contextlib import AbstractContextManager as _Context\n\n"
        "from weft.script.checked.graph.typing_extensions import no_type_check as _function\n"
        "from weft.script.checked.macro.typing_extensions import no_type_check as _macro\n"
    )
    parts = [_HEAD.format(what="The namespace `R`: graph functions, types, leaves and operators.", imports=imports)]
    parts.append("function = _function\nmacro = _macro")
    forms = [form for name, form in ALL_FORMS.items() if name.startswith("R.") and name[2:] not in OPS]
    for form in sorted(forms, key=lambda form: form.name):
        parts.append(_form(form, form.name[2:], _of_namespace(relax, form.name[2:])))
    parameters = _parameters(inspect.signature(relax.emit_te))
    parts.append(_function("emit_te", parameters, "_t.Any", relax.emit_te.__doc__ or ""))
    parts.append(_function("rewriter", ["cls: type"], "_t.Any", relax.rewriter.__doc__ or ""))
    spaces: dict[str, list[OpDef]] = {}
    for name in sorted(OPS):
        space, _, _ = name.rpartition(".")
        spaces.setdefault(space, []).append(OPS[name])
    parts.extend(_operator(definition) for definition in spaces.pop("", []))
    for alias, name in sorted(ALIASES.items()):
        if alias.startswith("R.") and alias.count(".") == 1:
            parts.append(f"{alias[2:]} = {name[2:]}")
    for space, definitions in spaces.items():
        members = [_operator(definition, member=True) for definition in definitions]
        members += [
            _form(ALL_FORMS[name], alias.rpartition(".")[2], _of_namespace(relax, name[2:]), member=True)
            for alias, name in sorted(ALIASES.items())
            if alias.startswith(f"R.{space}.")
        ]
        parts.append(f"class {space}:\n{_docstring(f'Operators `R.{space}.*`.')}\n\n" + "\n\n".join(members))
    return "\n\n".join(parts) + "\n"


def _operator(definition: OpDef, *, member: bool = False) -> str:
    parameters: list[str] = []
    for param in definition.params:
        if param.kind == ParamKind.VARIADIC:
            parameters.append(f"*{param.name}: _t.Any")
        elif param.default is REQUIRED:
            parameters.append(f"{param.name}: _t.Any")
        else:
            parameters.append(f"{param.name}: _t.Any = {_value(param.default)}")
    facts = describe_operator(definition)
    doc = facts["doc"]
    if facts["examples"]:
        doc += "\n\n" + "\n".join(facts["examples"])
    return _function(definition.name.rpartition(".")[2], parameters, "_t.Any", doc, member=member)


# ---------------------------------------------------------------------------------------------------------------------
# T
# ---------------------------------------------------------------------------------------------------------------------


def _tensor_stub() -> str:
    imports = (
        "import builtins as _b\nimport typing as _t\n"
        "from contextlib import AbstractContextManager as _Context\n\n"
        "from weft.script.checked.inline.typing_extensions import no_type_check as _inline\n"
        "from weft.script.checked.macro.typing_extensions import no_type_check as _macro\n"
        "from weft.script.checked.tensor.typing_extensions import no_type_check as _prim_func\n"
    )
    parts = [_HEAD.format(what="The namespace `T`: tensor-level functions, buffers, expressions.", imports=imports)]
    parts.append("prim_func = _prim_func\nmacro = _macro\ninline = _inline")
    parts.append(
        "class _DType:\n"
        + _docstring("A dtype: makes constants, casts, and without a value a new symbol.")
        + "\n\n    name: _b.str\n    def __call__(self, value: _t.Any = None) -> _t.Any: ..."
    )
    parts.append("\n".join(f"{name}: _DType" for name in _dtype_names()))
    done: set[str] = set()
    forms = [form for name, form in ALL_FORMS.items() if name.startswith("T.")]
    axes = [form for form in forms if form.name.startswith("T.axis.")]
    for form in sorted(forms, key=lambda form: form.name):
        name = form.name[2:]
        if form not in axes:
            done.add(name)
            parts.append(_buffer_form(form) if name == "Buffer" else _form(form, name, _of_namespace(tir, name)))
    members = [_form(form, form.name[7:], None, member=True) for form in axes]
    short = "\n    S = spatial\n    R = reduce"
    parts.append(f"class axis:\n{_docstring('Iteration variables of a block.')}\n\n" + "\n\n".join(members) + short)
    for kind, name in sorted(BINARY_CALLS.items()):
        done.add(name[2:])
        parts.append(_function(name[2:], ["a: _t.Any", "b: _t.Any"], "_t.Any", _operator_doc(kind, "a", "b")))
    for kind, name in sorted(UNARY_CALLS.items()):
        done.add(name[2:])
        parts.append(_function(name[2:], ["a: _t.Any"], "_t.Any", _operator_doc(kind, "a")))
    for name, entry in sorted(INTRINSICS.items()):
        if name not in done and name.isidentifier():
            done.add(name)
            parts.append(_intrinsic(name, entry))
    for name in sorted(_functions_of(tir) - done):
        done.add(name)
        function = getattr(tir, name)
        parts.append(_function(name, _parameters(inspect.signature(function)), "_t.Any", function.__doc__ or ""))
    for alias, name in sorted(ALIASES.items()):
        if alias.startswith("T.") and alias.count(".") == 1 and alias[2:] not in done:
            parts.append(f"{alias[2:]} = {name[2:]}")
    rest = _docstring("Intrinsics of devices, and vectors of dtypes.")
    parts.append(f"def __getattr__(name: _b.str) -> _t.Any:\n{rest}")
    return "\n\n".join(parts) + "\n"


def _dtype_names() -> list[str]:
    scalars = list(_DTYPES)
    vectors = [f"{name}x{lanes}" for name in ("int8", "int32", "uint8", "float16", "float32") for lanes in _LANES]
    return scalars + vectors


def _operator_doc(kind: str, *names: str) -> str:
    row = syntax.BINARY.get(kind) or syntax.UNARY.get(kind)
    if row is None:
        return f"The {kind} of {' and '.join(names)}."
    return f"`{row.text}{names[0]}`." if len(names) == 1 else f"`{names[0]} {row.text} {names[1]}`."


def _intrinsic(name: str, entry: Any) -> str:
    names = ["*args: _t.Any"] if entry.arity < 0 else [f"{letter}: _t.Any" for letter in "abcdefgh"[: entry.arity]]
    keywords = ["*", "dtype: _t.Any = None"] if entry.arity >= 0 else ["dtype: _t.Any = None"]
    parameters = names + (keywords if entry.rule == "given" else [])
    doc = entry.doc or f"The intrinsic {name}."
    return _function(name, parameters, "_t.Any", f"{doc} {_RULES.get(entry.rule, '')}".strip())


def _buffer_form(form: Form) -> str:
    call = ", ".join(["self", *_holes(form)])
    doc = _docstring("A buffer: sizes are ints, expressions, or names of symbols.")
    indent = "    "
    return (
        f"class _BufferForm:\n{doc}\n\n{indent}def __call__({call}) -> _t.Any:\n{textwrap.indent(doc, indent)}\n"
        f"{indent}def __getitem__(self, parts: _t.Any) -> _t.Any: ...\n\nBuffer: _BufferForm"
    )


# ---------------------------------------------------------------------------------------------------------------------
# Both
# ---------------------------------------------------------------------------------------------------------------------


def _form(form: Form, name: str, function: Any, *, member: bool = False) -> str:
    """A form of the syntax table as a function: its documentation is that of the function of the same name, or ours."""
    result = "_t.Any"
    if form.name in SCOPES:
        result = "_Context[_t.Any]"
    elif form.name in LOOPS and form.name != "T.launch_thread":
        result = "_t.Iterator[_t.Any]"
    doc = form.doc or inspect.getdoc(function) or inspect.getdoc(form.node) or ""
    if not doc:
        raise ValueError(f"{form.name} has no documentation")
    # What makes a type is called in annotations, by Python: its own parameters count.
    called = form.name in TYPES and inspect.isfunction(function)
    parameters = _parameters(inspect.signature(function)) if called else _holes(form)
    return _function(name, parameters, result, doc.split("\n\n")[0], member=member)


def _holes(form: Form) -> list[str]:
    made: list[str] = []
    named = False
    for hole in form.holes:
        if hole.star:
            made.append(f"*{hole.name}: _t.Any")
            named = True
            continue
        if hole.named and not named:
            made.append("*")
            named = True
        default = "" if hole.default is syntax.REQUIRED else f" = {_default(hole.default)}"
        made.append(f"{hole.name}: _t.Any{default}")
    old = {new: [before for before, now in (form.old_names or {}).items() if now == new] for new in _names(form)}
    extra = [name for names in old.values() for name in names]
    if extra and not named:
        made.append("*")
    return made + [f"{name}: _t.Any = ..." for name in extra]


def _names(form: Form) -> list[str]:
    return [hole.name for hole in form.holes]


def _default(value: Any) -> str:
    return "..." if isinstance(value, Mapping) else _value(value)


def _of_namespace(space: Any, name: str) -> Any:
    try:
        return getattr(space, name)
    except AttributeError:
        return None


def _functions_of(space: Any) -> set[str]:
    return {
        name
        for name, value in vars(space).items()
        if inspect.isfunction(value) and value.__module__ == space.__name__ and not name.startswith("_")
    }


def _parameters(signature: inspect.Signature) -> list[str]:
    made = []
    named = False
    for parameter in signature.parameters.values():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not named:
            made.append("*")
        named = named or parameter.kind in (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_POSITIONAL)
        star = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        default = "" if parameter.default is inspect.Parameter.empty else f" = {_value(parameter.default)}"
        made.append(f"{star}{parameter.name}: _t.Any{default}")
    return made
