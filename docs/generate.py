"""Write the pages that are made from tables and declarations (`PAGES`): python docs/generate.py

The operators come from their declarations, the forms from the syntax table, the error codes, attributes and dtypes
from their tables, the passes from their classes. A test compares the pages with what this script would write.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from weft import dtypes, errors
from weft.command.listing import families
from weft.command.operators.pages import cell, heading_anchor, title
from weft.command.operators.pages import operators_page as page_of_operators
from weft.command.passes import described_passes
from weft.error_codes import ERROR_CODES
from weft.frontend import onnx as _onnx  # noqa: F401  the rows of the tables come with these
from weft.frontend import torch as _torch  # noqa: F401
from weft.frontend.onnx import table as onnx_table
from weft.frontend.torch import table as torch_table
from weft.ir import IRModule
from weft.ir.attrs import KEYS, Carrier
from weft.ir.op import OpDef
from weft.script import ir as script_ir
from weft.script import parse, relax, tir
from weft.script.forms import syntax
from weft.script.reader.expression.arguments import signature_text
from weft.target.kinds import KINDS, Field, TargetKind
from weft.target.schema import POOL, SCHEMA
from weft.testing.accuracy import ACCURACY, CHAINS
from weft.transform.autoschedule.knobs import Knobs
from weft.transform.infra.generators.choices import Choices
from weft.transform.infra.registry import find_pass

ROOT = Path(__file__).resolve().parent.parent
_NOTE = "<!-- written by docs/generate.py; do not edit -->"


def operators_page() -> str:
    """The families of operators, with the names in each."""
    parts = [
        _NOTE,
        "# Operators",
        "Written `R.<name>` in scripts and in Python; each family has a page. `weft ops NAME` prints one entry.\n"
        "An operator of your own is one declaration: [extending.md](../extending.md).",
    ]
    rows = []
    for family, definitions in families().items():
        names = ", ".join(f"[{item.name}]({_place(family)}#{heading_anchor(item.name)})" for item in definitions)
        rows.append(f"| [{title(family)}]({_place(family)}) | {names} |")
    parts.append("| family | operators |\n|---|---|\n" + "\n".join(rows))
    return "\n\n".join(parts) + "\n"


_THEMES = ("nn", "vision")
"""What the names of many families begin with: their pages share a folder."""


def _place(family: str) -> str:
    """Where the page of a family is, from docs/reference/."""
    theme, _, rest = family.partition("_")
    return f"operators/{theme}/{rest}.md" if theme in _THEMES else f"operators/{family}.md"


def family_page(family: str, definitions: Sequence[OpDef]) -> str:
    """The operators of a family."""
    more = f"\nAll families: [operators]({'../' * _place(family).count('/')}operators.md)."
    return f"{_NOTE}\n\n{page_of_operators(title(family), definitions, more)}"


_GROUPS = {
    "Types": syntax.TYPES,
    "Leaves and calls of graph functions": syntax.VALUES,
    "Scalar expressions of tensor functions": syntax.SCALARS,
    "Buffers": syntax.BUFFERS,
    "Loops": syntax.LOOPS,
    "Scopes, after `with`": syntax.SCOPES,
    "Statements of tensor functions": syntax.CLAUSES,
    "Statements of graph functions and modules": syntax.DIRECTIVES,
}


def forms_page() -> str:
    """Every form of the script, by the place where it stands."""
    parts = [
        _NOTE,
        "# Forms of the script",
        "What a script says by calls, besides [operators](operators.md) and intrinsics. Arguments are written as in\n"
        "Python; `*` takes all the rest. A statement form of your own is one row: [extending.md](../extending.md).",
    ]
    for heading, group in _GROUPS.items():
        rows = [f"| `{_signature(form)}` | {_form_doc(form)} |" for _, form in sorted(group.items())]
        parts.append(f"## {heading}\n\n| form | meaning |\n|---|---|\n" + "\n".join(rows))
    return "\n\n".join(parts) + "\n"


def _signature(form: syntax.Form) -> str:
    return signature_text(form).replace("FrozenMap({})", "{}")


def _form_doc(form: syntax.Form) -> str:
    function = getattr({"R": relax, "T": tir, "I": script_ir}.get(form.name[0]), form.name[2:], None)
    doc = form.doc or inspect.getdoc(function) or inspect.getdoc(form.node) or ""
    return cell(doc.split("\n\n")[0].removesuffix(" Read inside decorated functions."))


def errors_page() -> str:
    """Every error code: what is wrong, and a message with it."""
    parts = [
        _NOTE,
        "# Error codes",
        "Every error that a user can cause is a `weft.WeftError` with a stable `code`, a `message`, a `span` (file,\n"
        "line and column), `notes`, and a `hint` when the fix is known; `error.to_json()` and `weft check --json` are\n"
        "the same as data. The table is `weft.error_codes.ERROR_CODES`.",
    ]
    for cls, first, last in _classes():
        rows = [row for row in ERROR_CODES.values() if first <= int(row.code[1:]) <= last]
        parts.append(f"## {cls.__name__} (W{first:03}-W{last:03})\n\n{(cls.__doc__ or '').strip().splitlines()[0]}")
        lines = [f"| {row.code} | {cell(row.sentence)} | {cell(row.example)} |" for row in rows]
        parts.append("\n".join(["| code | what is wrong | a message |", "|---|---|---|", *lines]))
    return "\n\n".join(parts) + "\n"


def _classes() -> Iterator[tuple[type, int, int]]:
    """The error classes with the ranges of codes that they have, in order."""
    classes = [getattr(errors, name) for name in errors.__all__]
    classes = [cls for cls in classes if isinstance(cls, type) and issubclass(cls, errors.WeftError)]
    classes = [cls for cls in classes if cls is errors.WeftError or errors.WeftError in cls.__bases__]
    ordered = sorted(classes, key=lambda cls: int(cls.default_code[1:]))
    ends = [int(cls.default_code[1:]) - 1 for cls in ordered[1:]] + [999]
    for cls, last in zip(ordered, ends, strict=True):
        yield cls, int(cls.default_code[1:]), last


_EXACT = {"bit": "", "real": ", in real arithmetic", "approximate": ", approximately"}


def passes_page() -> str:
    """Every pass of weft."""
    parts = [
        _NOTE,
        "# Passes",
        "Named in pipelines (`weft pass NAME{option=value},... FILE`, `weft.transform.parse_pipeline`) and in\n"
        "`weft.transform` by their classes. `weft pass --list NAME` prints one of these entries. A pass that keeps\n"
        "what programs compute is compared by the interpreter under `WEFT_CHECK=3`.",
    ]
    for facts in described_passes(own=True):
        runs = f"Runs in {', '.join(facts['phases'])}" if facts["phases"] else "Runs where it is asked for"
        keeps = f"keeps what programs compute{_EXACT[facts['exact']]}"
        keeps = keeps if facts["keeps_meaning"] else "changes signatures or results on purpose"
        also = f", also `{'`, `'.join(facts['aliases'])}`" if facts["aliases"] else ""
        parts.append(f"## {facts['name']}\n\n`weft.transform.{facts['class']}`{also}, `{facts['source']}`.")
        parts.append(f"{runs}, from opt={facts['level']} on; {keeps}.\n\n```\n{facts['about']}\n```")
        parts.extend(_before_and_after(facts["name"]))
        rows = [_option_row(item) for item in facts["options"]]
        if rows:
            parts.append("\n".join(["| option | type | default |", "|---|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


def _before_and_after(name: str) -> list[str]:
    """The simplest sample of a pass, and what the pass makes of it."""
    made = find_pass(name).sample(_Simplest())
    if made is None:
        return []
    item, text = made
    before = parse(text)
    assert isinstance(before, IRModule)
    after = item(before)
    return [f"`{item}` makes of", _script(before), "this:", _script(after)]


def _script(module: IRModule) -> str:
    lines = module.script().splitlines()
    first = next(place for place, line in enumerate(lines) if line.startswith(("@", "class")))
    return "\n".join(["```", *lines[first:], "```"])


class _Simplest(Choices):
    """The first of all options, and the least of all numbers."""

    def integer(self, low: int, high: int) -> int:
        """The least."""
        return low

    def any_float(self) -> float:
        """Zero."""
        return 0.0

    def any_text(self) -> str:
        """No text."""
        return ""


def _option_row(item: dict[str, str]) -> str:
    kind = item["type"].replace("|", "\\|")
    return f"| `{item['name']}` | {kind} | {item['default'] or 'required'} |"


def attributes_page() -> str:
    """Every attribute key that weft reads or writes, by what carries it."""
    parts = [
        _NOTE,
        "# Attributes",
        "Modules, functions, calls, loops and statements carry attributes: `I.module_attrs`, `R.func_attr`,\n"
        "`T.func_attr`, `annotations=` of loops, `T.attr`. Keys of your own are kept and printed. These are the ones\n"
        "that weft obeys; the verifier reports W436 for a value of another type. The table is `weft.ir.attrs.KEYS`.",
    ]
    for carrier in Carrier:
        rows = {row.name: row for (where, _), row in KEYS.items() if where is carrier}
        lines = [
            f"| {', '.join(f'`{name}`' for name in (row.name, *row.aliases))} | {row.type} | {cell(row.meaning)} |"
            for row in rows.values()
        ]
        heading = f"## Of {carrier.value}"
        parts.append("\n".join([heading, "", "| key, other spellings | value | meaning |", "|---|---|---|", *lines]))
    return "\n\n".join(parts) + "\n"


_COMPLEX = """\
Complex numbers lie as two floats, the real part first. A product is (a c - b d, a d + b c), a quotient Smith's, in
every executor as in NumPy: the special cases of Annex G of C are not applied, so that an infinity or nan in one part
may make both nan, and functions (`exp`, `log`, `acos`, ...) are formulas of the parts, with the branch cuts of NumPy.
A variance is a float. They have no order: `less`,
`max`, `sort`, `floor` and their like refuse them (W321), and so does a conversion to a real type, which would drop the
imaginary part (`R.real` does). Kernels compute on the floats (`LowerComplex`): vectors of complex numbers and complex
scalar parameters are refused there (W318)."""


def _range(name: str) -> tuple[Any, Any]:
    """The least and the greatest value of a dtype; nothing of complex numbers, which have no order."""
    if dtypes.is_bool(name):
        return "false", "true"
    return ("", "") if dtypes.is_complex(name) else (dtypes.min_value(name), dtypes.max_value(name))


def dtypes_page() -> str:
    """Every scalar dtype: its bits, how it is stored, its types in C and LLVM, its range."""
    lines = []
    for name, row in dtypes.SCALARS.items():
        low, high = _range(name)
        layout = row.layout
        parts = f"{layout.exponent}, {layout.mantissa}, {layout.special}" if layout else ""
        cells = (f"`{name}`", row.bits, parts, low, high, f"`{dtypes.storage(name)}`", f"`{row.c}`", f"`{row.llvm}`")
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    head = "| dtype | bits | exponent, mantissa, specials | least | greatest | stored as | in C | in LLVM |"
    return (
        "\n\n".join(
            [
                _NOTE,
                "# Data types",
                "A dtype is a text: one of these, with lanes `float32x4` or `float32xvscalex4`, or `handle` or\n"
                "`void`. Arrays of types that NumPy lacks are arrays of `ml_dtypes`. Specials say which values are\n"
                "no numbers: `ieee` has infinities and nan, `fn` nan only, `fnuz` nan in the place of -0, `none`\n"
                "neither. The table is `weft.dtypes.SCALARS`.",
                _COMPLEX,
                "\n".join([head, "|---|---|---|---|---|---|---|---|", *lines]),
            ]
        )
        + "\n"
    )


def knobs_page() -> str:
    """Every tunable of the scheduler: default, range, meaning."""
    lines = [
        f"| `{item.name}` | {item.default} | {item.metadata['range'][0]} to {item.metadata['range'][1]} "
        f"| {cell(item.metadata['doc'])} |"
        for item in Knobs.known()
    ]
    return (
        "\n\n".join(
            [
                _NOTE,
                "# Knobs",
                "The numbers that schedules are tuned by. They are given to\n"
                "`weft.compile(..., opt=weft.transform.Knobs(mc=96))`, in the text of a pipeline\n"
                "(`tile-contractions{knobs={mc: 96}}`) or in a context\n"
                '(`PassContext(config={"knobs": {"mc": 96}})`).\n'
                'What a machine has is in its target: `Target("llvm").explain()`.\n'
                "What follows for one kernel is its decision, which can be pinned in the kernel's text:\n"
                "[extending.md](../extending.md#a-rule-of-the-scheduler).",
                "\n".join(["| knob | default | range | meaning |", "|---|---|---|---|", *lines]),
            ]
        )
        + "\n"
    )


def targets_page() -> str:
    """Every field of every built-in kind of target and of configurations."""
    parts = [
        _NOTE,
        "# Fields of targets",
        "What a target may say, as its text has it and as the command line has it; `weft compile --help-target` lists\n"
        "the same, with the fields of installed plug-ins. `Target(...).explain()` and `weft target explain` show what\n"
        "holds and who said so; what a target cannot obey is refused with the reason.",
    ]
    for kind in sorted(_builtin_kinds(), key=lambda item: item.name):
        rows = [
            _field_row(f"-{name.replace('_', '-')}", f"--target-{kind.name}-{name.replace('_', '-')}", field)
            for name, field in kind.fields.items()
        ]
        parts += [f"## `{kind.name}`: {kind.doc}", "\n".join([*_FIELD_HEAD, *rows])]
    rows = [
        _field_row(f"-{name}.{key}", f"--{name}" if key == next(iter(fields)) else f"--{name}-{key}", field)
        for name, fields in SCHEMA.items()
        for key, field in fields.items()
    ]
    rows += [_field_row(f"-memory.POOL.{key}", "", field) for key, field in POOL.items()]
    parts += ["## Configurations", "\n".join([*_FIELD_HEAD, *rows])]
    return "\n\n".join(parts) + "\n"


_FIELD_HEAD = ("| text | command line | values | default | meaning |", "|---|---|---|---|---|")


def _builtin_kinds() -> list[TargetKind]:
    """The kinds of weft itself whose parts have options, whatever plug-ins are there."""
    return [KINDS[name] for name in ("c", "llvm")]


def _field_row(text: str, option: str, field: Field) -> str:
    bounds = f"{field.bounds[0]} to {field.bounds[1]}" if field.bounds is not None else field.type
    values = ", ".join(f"`{item}`" for item in field.choices) or bounds
    default = "" if field.default in (None, ()) else f"`{str(field.default).lower()}`"
    shown = f"`{option}`" if option else ""
    return f"| `{text}` | {shown} | {values} | {default} | {cell(field.doc)} |"


def accuracy_page() -> str:
    """How far results may be from exact arithmetic."""
    rows = [
        f"| {row.title} | {', '.join(dict.fromkeys(f'`{case.name}`' for case in row.cases))} "
        f"| {row.roundings} | {cell(row.scale) or 'none'} |"
        for row in ACCURACY
    ]
    chains = [f"| {cell(what)} | {cell(length)} |" for what, length in CHAINS]
    return (
        "\n\n".join(
            [
                _NOTE,
                "# Accuracy",
                "How far the result of one operator in `float16`, `bfloat16` or `float32` may be from the exact\n"
                "result of the same operands, at every `opt` level, in the interpreter, and with any number of\n"
                "threads, where operands and results are finite and normal:",
                "```\n|result - exact|  <=  ulp(exact) / 2  +  roundings * 2^-24 * scale\n```",
                "`ulp` is the distance of neighbours in the type that stores the result: 2^-10 of a power of two\n"
                "in `float16`, 2^-7 in `bfloat16`, 2^-23 in `float32`. Narrower types compute and sum in\n"
                "`float32` and are rounded once, so most of their results are the exact one, rounded. L is the\n"
                "longest chain of additions that one of n terms goes through. The bounds are for the worst case:\n"
                "sums whose roundings are random are off by about the square root. The table is\n"
                "`weft.testing.accuracy.ACCURACY`; a test draws types, sizes, levels and values, and holds\n"
                "results against float64.",
                "\n".join(["| results | operators | roundings | scale |", "|---|---|---|---|", *rows]),
                "## Long sums",
                "One accumulator of `float32` stands still at 2^24 ones. Sums of more than 4096 terms run in\n"
                "blocks, each with an accumulator of its own (`BlockSums`, and the tiles of products), or in many\n"
                "lanes:",
                "\n".join(["| sums of n terms | L |", "|---|---|", *chains]),
                "## Winograd convolutions",
                "From `opt=2` on, convolutions of 3x3 that move by one and sum in `float32` take Winograd's products\n"
                "where these cost less and weights are constants (the decision `form`, `winograd2`: tiles of 2x2\n"
                "results). They are equal in real arithmetic, and what they round follows from the window and the\n"
                "weights as a whole, not from each product: a large element that meets a small weight counts as if\n"
                "it met the large ones. `opt=weft.transform.Knobs(winograd=4)` allows tiles of 4x4 (`winograd4`),\n"
                "which save more: there the 6x6 elements of a tile count for each of its results, and the scale is\n"
                "that of the transforms with absolute factors (L + 18 roundings; `toom_cook.py` has them).\n"
                "Results of `float16` and `bfloat16` allow them by default: operands are widened, transforms and\n"
                "sums are `float32`, and what is stored is rounded once. Half a unit in the last place of 1 is\n"
                "4.9e-4 (`float16`) or 3.9e-3 (`bfloat16`): errors in the table add 0.05 of it at most, more where\n"
                "a result is small beside what its tile reads, as above.\n"
                "`winograd=0`, or `opt=1`, takes all products. Blocks of tiles that have an infinity, nan, or\n"
                "elements beyond 2^117 take all products too, so that infinities and nan are where sums of\n"
                "products have them. The greatest errors of normal elements, and weights of a variance of\n"
                "1 / (9 n), so that results are about 1, at 14x14:",
                "\n".join(
                    [
                        "| n | all products | `winograd2` | `winograd4` |",
                        "|---|---|---|---|",
                        "| 16 | 2.5e-6 | 9e-7 | 4.8e-6 |",
                        "| 64 | 4.0e-6 | 1.8e-6 | 7.7e-6 |",
                        "| 256 | 7.4e-6 | 3.6e-6 | 1.7e-5 |",
                        "| 512 (all products in blocks) | 1.7e-6 | 3.8e-6 | 2.1e-5 |",
                    ]
                ),
                "## Attention of bfloat16\n\n"
                "Where processors have instructions over matrices for `bfloat16` (Intel AMX), attention of known\n"
                "sizes multiplies queries, keys and values as they are stored, sums in `float32`, and rounds\n"
                "probabilities to `bfloat16` before they meet the values, as oneDNN does: each term of a result is\n"
                "off by at most 2^-8 of itself. Of normal elements, 8 heads of 512x64, the greatest error was 1.6e-3\n"
                "of the greatest result (1.4e-3 in `float32`, rounded once). All is computed in `float32` with\n"
                "`opt=weft.transform.Knobs(narrow_attention=0)`, and with `-strict_math`.",
                "## The interpreter\n\n"
                "The interpreter computes whole operators by NumPy, which sums neighbours in pairs and everything\n"
                "else in order, and products by its BLAS; kernels (`R.call_tir`) run as they are written, in the\n"
                "types that they name: their L is n. Where n is large and float32 not enough, write\n"
                '`out_dtype="float64"` beside a product, or cast to `float64` before a sum.',
            ]
        )
        + "\n"
    )


def foreign_page() -> str:
    """What importers have for each operator of another format."""
    own = {domain: sorted(name for where, name in onnx_table.TABLE if where == domain) for domain in _DOMAINS}
    parts = [
        _NOTE,
        "# Operators of other formats",
        "What becomes of a node of an imported model ([importing.md](../guide/importing.md)), by its operator.\n"
        "One that has an expression can still run in Python for attributes that it has no form for: the report\n"
        "of an import says so. Names are those without overloads.",
        f"## ONNX\n\nOf the default domain {len(own['']) + 1 + len(onnx_table.DEFINED)} names have an expression and\n"
        f"{len(onnx_table.REASONS)} a reason; a test holds them against the schemas of the installed `onnx`.\n"
        "`Constant`, and what is computed of known values, needs no operator. "
        f"What ONNX defines in terms of others is taken apart: {_names(onnx_table.DEFINED)}.",
        *(f"{title_}: {_names(own[domain])}." for domain, title_ in _DOMAINS.items()),
        _reasons(onnx_table.REASONS),
        "## PyTorch\n\nATen operators without an expression or a reason are taken apart by PyTorch's own definitions\n"
        "(`torch.export`'s, those of composite operators, and `torch._decomp`'s).",
        f"An expression: {_names(torch_table.TABLE)}.",
        _reasons(torch_table.REASONS),
    ]
    return "\n\n".join(parts) + "\n"


_DOMAINS = {
    "": "A row of the table",
    "ai.onnx.ml": "Of `ai.onnx.ml`",
    "com.microsoft": "Of `com.microsoft` (onnxruntime)",
}


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


def _reasons(reasons: Mapping[str, str]) -> str:
    """A row for each reason, with the names that have it; a star stands for any letters."""
    rows = [
        f"| {cell(why)} | {_names(name for name, its in reasons.items() if its == why)} |"
        for why in dict.fromkeys(reasons.values())
    ]
    return "\n".join(["| runs in Python, because | operators |", "|---|---|", *rows])


PAGES: dict[str, Callable[[], str]] = {
    "foreign.md": foreign_page,
    "accuracy.md": accuracy_page,
    "operators.md": operators_page,
    "forms.md": forms_page,
    "errors.md": errors_page,
    "passes.md": passes_page,
    "attributes.md": attributes_page,
    "dtypes.md": dtypes_page,
    "knobs.md": knobs_page,
    "targets.md": targets_page,
}


PAGES |= {_place(family): partial(family_page, family, members) for family, members in families().items()}
REFERENCE = ROOT / "docs" / "reference"


def main() -> int:
    """Write every page, and take away those of families that are no more."""
    for name, page in PAGES.items():
        path = REFERENCE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page(), encoding="utf-8")
    for path in (REFERENCE / "operators").rglob("*.md"):
        if str(path.relative_to(REFERENCE)) not in PAGES:
            path.unlink()
    print(f"wrote {len(PAGES)} pages to docs/reference/")
    return 0


if __name__ == "__main__":
    sys.exit(main())
