"""Pipelines as objects and as text; the phases."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from weft import parse, structural_equal
from weft.errors import PassError
from weft.ir import IRModule
from weft.target import Target, remove_target_kind, target_kind
from weft.transform import (
    BindSymbolicVars,
    DeadCodeElimination,
    Instrument,
    LegalizeOps,
    PassContext,
    Pipeline,
    default_pipeline,
    module_pass,
    parse_pipeline,
    pass_names,
    phase,
    phases,
    run_phases,
)


@module_pass
def append(module: IRModule, *, item: str = "a") -> IRModule:
    return module.with_attr("log", (*module.attrs.get("log", ()), item))


@module_pass(level=2)
def append_late(module: IRModule) -> IRModule:
    return module.with_attr("log", (*module.attrs.get("log", ()), "late"))


def test_a_pipeline_runs_its_passes_in_order() -> None:
    pipeline = parse_pipeline("append{item=x},append{item=y}")
    assert pipeline(IRModule()).attrs["log"] == ("x", "y")


def test_a_pipeline_is_a_pass_and_may_hold_pipelines() -> None:
    inner = Pipeline([append, append], name="twice")
    outer = Pipeline([inner, append])
    assert outer(IRModule()).attrs["log"] == ("a", "a", "a")
    assert str(outer) == "append,append,append"
    assert inner.name == "twice"


def test_an_empty_pipeline_returns_the_module_itself() -> None:
    module = IRModule()
    assert Pipeline([])(module) is module
    assert parse_pipeline("  ")(module) is module


def test_a_pipeline_leaves_out_passes_above_the_level_of_the_context() -> None:
    pipeline = Pipeline([append, append_late])
    assert pipeline(IRModule()).attrs["log"] == ("a",)
    with PassContext(opt=2):
        assert pipeline(IRModule()).attrs["log"] == ("a", "late")


def test_a_pass_called_directly_runs_at_any_level() -> None:
    assert append_late(IRModule()).attrs["log"] == ("late",)


def test_a_pipeline_holds_passes_only() -> None:
    with pytest.raises(TypeError, match="a pipeline holds passes, got the class LegalizeOps"):
        Pipeline([LegalizeOps])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("legalize-ops", LegalizeOps()),
        ("LegalizeOps", LegalizeOps()),
        ("dce", DeadCodeElimination()),
        ('dead-code-elimination{entry_functions=[a, "b c"]}', DeadCodeElimination(("a", "b c"))),
        ("bind-symbolic-vars{binding_map={n: 7}}", BindSymbolicVars({"n": 7})),
        ("bind-symbolic-vars{binding_map={n: 7}, func_name=main}", BindSymbolicVars({"n": 7}, "main")),
    ],
)
def test_pipeline_text_names_passes_and_options(text: str, expected: Any) -> None:
    assert parse_pipeline(text).passes == (expected,)


@pytest.mark.parametrize(
    ("text", "code", "column", "message", "hint"),
    [
        ("legalise-ops", "W501", 1, "there is no pass or phase 'legalise-ops'", "did you mean `legalize-ops`"),
        ("dce, nonsense", "W501", 6, "there is no pass or phase 'nonsense'", ""),
        ("dce{entry_function=[]}", "W502", 5, "has no option 'entry_function'", "did you mean `entry_functions`"),
        ("legalize,dce{entry_functions=3}", "W502", 14, "takes tuple[str, ...], got 3", ""),
        ("append{item=1}", "W502", 8, "option item of append takes str, got 1", ""),
        ("fuze", "W501", 1, "there is no pass or phase 'fuze'", "did you mean `fuse`"),
        ("fuse{maxops=8}", "W502", 6, "phase fuse has no option 'maxops'", "did you mean `max_ops`?"),
        ("fuse{max_ops=x}", "W502", 6, "option max_ops of fuse-ops takes int of at least 1, got 'x'", ""),
        ("fuse{max_ops=-1}", "W502", 6, "takes int of at least 1, got -1", ""),
        ("dce,apply-rules{exactness=foo}", "W502", 17, "takes bit, real, approximate or level, got 'foo'", ""),
        ("narrow-data-type{target_bits=12}", "W502", 18, "takes 8, 16 or 32, got 12", ""),
        ('dce, apply-rules{exactness="\\q"}', "W500", 18, "option exactness cannot be read: Invalid \\escape", ""),
        ("fuse{max_ops=" + "9" * 5000 + "}", "W500", 6, "option max_ops cannot be read: Exceeds the limit", ""),
        ("fuse{max_ops=" + "[" * 3000 + "]" * 3000 + "}", "W500", 6, "it is nested too deeply", ""),
        ("link{speed=1}", "W502", 6, "phase link has no option 'speed'", "its passes have none"),
        ("schedule{knobs={mc: 8}}", "W502", 10, "several passes of phase schedule have", "the passes themselves"),
        ("append{item=a, item=b}", "W502", 16, "option item is given twice", ""),
        ("bind-symbolic-vars", "W502", 1, "needs the option 'binding_map'", ""),
        ("dce{", "W500", 5, "the pipeline ends too early", "name{option=value, ...}"),
        ("dce,", "W500", 5, "the pipeline ends too early", ""),
        ("dce}legalize", "W500", 4, "unexpected '}'", ""),
        ("dce ? x", "W500", 5, "unexpected '?'", ""),
    ],
)
def test_wrong_pipeline_text_is_pointed_at(text: str, code: str, column: int, message: str, hint: str) -> None:
    with pytest.raises(PassError) as caught:
        parse_pipeline(text)
    error = caught.value
    assert error.code == code
    assert message in error.message
    assert hint in (error.hint or "")
    assert error.span is not None
    assert (error.span.line, error.span.column) == (1, column)


def test_the_text_of_the_default_pipeline_reads_back() -> None:
    text = str(default_pipeline())
    assert str(parse_pipeline(text)) == text


def test_the_phases_are_in_order_and_each_is_a_pipeline() -> None:
    names = phases()
    assert names == [
        "import",
        "partition",
        "assign",
        "legalize",
        "optimize",
        "fuse",
        "schedule",
        "lower",
        "plan",
        "codegen",
        "link",
    ]
    assert all(isinstance(phase(name), Pipeline) for name in names)


def test_an_unknown_phase_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(PassError) as caught:
        phase("optimise")
    assert caught.value.code == "W507"
    assert caught.value.hint == "did you mean `optimize`?"


def test_every_pass_of_the_field_has_its_name() -> None:
    wanted = {
        "normalize",
        "legalize-ops",
        "fold-constant",
        "canonicalize-bindings",
        "dead-code-elimination",
        "eliminate-common-subexpr",
        "bind-params",
        "bind-symbolic-vars",
        "inline-private-functions",
        "lambda-lift",
        "to-non-dataflow",
        "lower-to-memory",
    }
    assert wanted <= set(pass_names())


def test_a_target_may_be_text() -> None:
    text = "llvm -mcpu=x86-64-v3"
    assert str(default_pipeline(text)) == str(default_pipeline(Target(text)))
    assert str(phase("schedule", text)) == str(phase("schedule", Target(text)))
    assert run_phases(IRModule({}), text).functions == {}


# -- phases in the text of a pipeline --------------------------------------------------------------------------------

CHAIN = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32")):
        a = R.exp(x)
        b = R.add(a, x)
        c = R.sin(b)
        d = R.cos(c)
        return d
"""


def chain() -> IRModule:
    found = parse(CHAIN)
    assert isinstance(found, IRModule)
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("legalize,fuse{max_ops=8}", "legalize,fuse{max_ops=8}"),
        ("legalize,fuse{max_ops=8},codegen", "legalize,fuse{max_ops=8},lower,plan,codegen"),
        ("import,fuse", "import,partition,assign,legalize,fuse"),
        ("fuse,legalize", "fuse,legalize"),
        ("legalize,dce,lower", "legalize,dead-code-elimination,lower"),
        ('schedule{target="llvm -mcpu=x86-64-v3"}', 'schedule{target="llvm -mcpu=x86-64-v3"}'),
    ],
)
def test_a_phase_is_a_name_and_a_later_one_brings_the_mandatory_ones_between(text: str, expected: str) -> None:
    pipeline = parse_pipeline(text)
    assert str(pipeline) == expected
    assert parse_pipeline(expected) == pipeline


def test_a_phase_in_text_runs_its_passes_with_the_option() -> None:
    whole = parse_pipeline("legalize,fuse")(chain())
    assert structural_equal(whole, Pipeline([phase("legalize"), phase("fuse")])(chain()))
    assert [name for name in whole if name.startswith("fused")] == ["fused_exp_add_sin_cos"]
    pairs = parse_pipeline("legalize,fuse{max_ops=2}")(chain())
    assert [name for name in pairs if name.startswith("fused")] == ["fused_exp_add", "fused_sin_cos"]


def test_a_phase_in_text_runs_for_the_target_of_its_option_of_the_context_or_of_the_module() -> None:
    target = "llvm -mcpu=x86-64-v3"
    module = run_phases(chain(), target, stop="fuse")
    expected = run_phases(module, target, start="schedule", stop="schedule")
    assert not structural_equal(module, expected)
    assert structural_equal(parse_pipeline(f'schedule{{target="{target}"}}')(module), expected)
    carried = parse_pipeline("schedule")(module.with_attr("target", target))
    assert structural_equal(carried.without_attr("target"), expected)
    with Target(target):
        assert structural_equal(parse_pipeline("schedule")(module), expected)
    assert parse_pipeline("schedule")(module) is module


def test_a_compiled_pipeline_of_phases_runs_none_of_them_twice() -> None:
    ran: list[str] = []

    class Count(Instrument):
        def before(self, module: IRModule, item: Any) -> None:
            ran.append(item.name)

    x = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
    expected = weft.interpret(chain())["main"](x)
    for text in ("legalize,fuse{max_ops=2}", "fuse,schedule", "dce,legalize,plan"):
        ran.clear()
        with PassContext(instruments=[Count()]):
            exe = weft.compile(chain(), pipeline=text)
        np.testing.assert_allclose(exe["main"](x), expected, rtol=1e-5)
        assert ran.count("legalize-ops") == ran.count("lower-to-memory") == 1, text


@pytest.mark.parametrize("text", ["fuse,codegen", "dce,legalize,link"])
def test_phases_that_compiling_runs_itself_are_refused_in_a_pipeline(text: str) -> None:
    with pytest.raises(PassError) as info:
        weft.compile(chain(), pipeline=text)
    assert info.value.code == "W543"


@pytest.mark.parametrize("late", [False, True])
def test_an_option_that_a_target_has_no_pass_for_is_refused(late: bool) -> None:
    target_kind("tests-optioned").hook("optimize")(lambda target: append)
    try:
        with Target("tests-optioned"):
            pipeline = parse_pipeline("optimize{item=z}")
            assert pipeline(IRModule()).attrs["log"] == ("z",)
        with pytest.raises(PassError, match="phase optimize has no option 'item'"):
            pipeline(IRModule()) if late else parse_pipeline("optimize{item=z}")
    finally:
        remove_target_kind("tests-optioned")
