"""Pipelines as objects and as text; the phases."""

from __future__ import annotations

from typing import Any

import pytest

from weft.errors import PassError
from weft.ir import IRModule
from weft.target import Target
from weft.transform import (
    BindSymbolicVars,
    DeadCodeElimination,
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
    with PassContext(level=2):
        assert pipeline(IRModule()).attrs["log"] == ("a", "late")


def test_a_pass_called_directly_runs_at_any_level() -> None:
    assert append_late(IRModule()).attrs["log"] == ("late",)


def test_a_pipeline_holds_passes_only() -> None:
    with pytest.raises(TypeError, match="a pipeline holds passes, got the class LegalizeOps"):
        Pipeline([LegalizeOps])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("legalize", LegalizeOps()),
        ("LegalizeOps", LegalizeOps()),
        ("dce", DeadCodeElimination()),
        ("dead-code-elimination{entry_functions=[a, \"b c\"]}", DeadCodeElimination(("a", "b c"))),
        ("bind-symbolic-vars{binding_map={n: 7}}", BindSymbolicVars({"n": 7})),
        ("bind-symbolic-vars{binding_map={n: 7}, func_name=main}", BindSymbolicVars({"n": 7}, "main")),
    ],
)  # fmt: skip
def test_pipeline_text_names_passes_and_options(text: str, expected: Any) -> None:
    assert parse_pipeline(text).passes == (expected,)


@pytest.mark.parametrize(
    ("text", "code", "column", "message", "hint"),
    [
        ("legalise-ops", "W501", 1, "there is no pass 'legalise-ops'", "did you mean `legalize-ops`"),
        ("dce, nonsense", "W501", 6, "there is no pass 'nonsense'", ""),
        ("dce{entry_function=[]}", "W502", 5, "has no option 'entry_function'", "did you mean `entry_functions`"),
        ("legalize,dce{entry_functions=3}", "W502", 14, "takes tuple[str, ...], got 3", ""),
        ("append{item=1}", "W502", 8, "option item of append takes str, got 1", ""),
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
        "import", "partition", "assign", "legalize", "optimize", "fuse", "schedule", "lower", "plan", "codegen", "link",
    ]  # fmt: skip
    assert all(isinstance(phase(name), Pipeline) for name in names)


def test_an_unknown_phase_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(PassError) as caught:
        phase("optimise")
    assert caught.value.code == "W507"
    assert caught.value.hint == "did you mean `optimize`?"


def test_every_pass_of_the_field_has_its_name() -> None:
    wanted = {
        "normalize", "legalize-ops", "fold-constant", "canonicalize-bindings", "dead-code-elimination",
        "eliminate-common-subexpr", "bind-params", "bind-symbolic-vars", "inline-private-functions", "lambda-lift",
        "to-non-dataflow", "lower-to-memory",
    }  # fmt: skip
    assert wanted <= set(pass_names())


def test_a_target_may_be_text() -> None:
    text = "llvm -mcpu=x86-64-v3"
    assert str(default_pipeline(text)) == str(default_pipeline(Target(text)))
    assert str(phase("schedule", text)) == str(phase("schedule", Target(text)))
    assert run_phases(IRModule({}), text).functions == {}
