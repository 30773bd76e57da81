"""PassContext: level, disabled passes, settings; instruments."""

from __future__ import annotations

import io
import threading

import pytest
from tests.transform.helpers import module

from weft.errors import PassError
from weft.ir import IRModule
from weft.transform import (
    Instrument,
    Pass,
    PassContext,
    Pipeline,
    PrintAfter,
    PrintBefore,
    Timing,
    module_pass,
)
from weft.transform.infra.context import check_level


@module_pass
def step(module: IRModule, *, value: int = 1) -> IRModule:
    return module.with_attr("steps", (*module.attrs.get("steps", ()), value))


@module_pass
def nothing(module: IRModule) -> IRModule:
    return module


def test_contexts_nest_and_end() -> None:
    outside = PassContext.current()
    with PassContext(opt=2) as outer:
        assert PassContext.current() is outer
        with PassContext(opt=0) as inner:
            assert PassContext.current() is inner
        assert PassContext.current() is outer
    assert PassContext.current() is outside


def test_a_context_ends_when_an_error_leaves_it() -> None:
    outside = PassContext.current()
    with pytest.raises(KeyError), PassContext():
        raise KeyError
    assert PassContext.current() is outside


def test_a_context_belongs_to_its_thread() -> None:
    seen = []
    with PassContext(opt=7):
        thread = threading.Thread(target=lambda: seen.append(PassContext.current().opt))
        thread.start()
        thread.join()
    assert seen == [1]


def test_a_disabled_pass_is_left_out_wherever_it_is_called() -> None:
    with PassContext(disabled=["step"]):
        assert "steps" not in step(IRModule()).attrs
        assert "steps" not in Pipeline([step])(IRModule()).attrs
        with PassContext(opt=3):
            assert "steps" not in step(IRModule()).attrs


def test_an_unknown_name_in_disabled_is_an_error_with_the_nearest_name() -> None:
    with pytest.raises(PassError) as caught:
        PassContext(disabled=["fold-constants"])
    assert caught.value.code == "W504"
    assert "fold-constant" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("key", "value", "hint"),
    [
        ("step.valeu", 1, "step.value"),
        ("no-such-pass.x", 1, ""),
        ("check.levle", 1, "check.level"),
    ],
)
def test_an_unknown_setting_is_an_error(key: str, value: object, hint: str) -> None:
    with pytest.raises(PassError) as caught:
        PassContext(config={key: value})
    assert caught.value.code == "W505"
    assert hint in (caught.value.hint or "")


def test_a_setting_of_the_wrong_type_is_an_error() -> None:
    with pytest.raises(PassError) as caught:
        PassContext(config={"step.value": "many"})
    assert caught.value.code == "W502"
    with pytest.raises(PassError):
        PassContext(config={"check.level": 4})


def test_a_setting_changes_options_that_are_at_their_defaults() -> None:
    with PassContext(config={"step.value": 5}):
        assert step(IRModule()).attrs["steps"] == (5,)
        assert type(step)(value=2)(IRModule()).attrs["steps"] == (2,)  # type: ignore[call-arg]
        with PassContext(config={"step.value": 6}):
            assert step(IRModule()).attrs["steps"] == (6,)
    assert step(IRModule()).attrs["steps"] == (1,)


def test_the_check_level_comes_from_the_setting_or_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CHECK", "2")
    assert check_level() == 2
    with PassContext(config={"check.level": 0}):
        assert check_level() == 0
    monkeypatch.setenv("WEFT_CHECK", "high")
    with pytest.raises(PassError) as caught:
        check_level()
    assert caught.value.code == "W505"


class Recorder(Instrument):
    """Writes down every hook."""

    def __init__(self, refuse: str = "") -> None:
        self.log: list[str] = []
        self.refuse = refuse

    def enter_context(self, context: PassContext) -> None:
        self.log.append("enter")

    def exit_context(self, context: PassContext) -> None:
        self.log.append("exit")

    def should_run(self, module: IRModule, item: Pass) -> bool:
        return item.name != self.refuse

    def before(self, module: IRModule, item: Pass) -> None:
        self.log.append(f"before {item.name}")

    def after(self, old: IRModule, new: IRModule, item: Pass) -> None:
        self.log.append(f"after {item.name} {'same' if new is old else 'changed'}")


def test_instruments_see_every_pass_and_pipelines_around_their_parts() -> None:
    recorder = Recorder()
    with PassContext(instruments=[recorder]):
        Pipeline([step, nothing], name="both")(IRModule())
    assert recorder.log == [
        "enter",
        "before both",
        "before step",
        "after step changed",
        "before nothing",
        "after nothing same",
        "after both changed",
        "exit",
    ]


def test_an_instrument_can_leave_a_pass_out() -> None:
    recorder = Recorder(refuse="step")
    with PassContext(instruments=[recorder]):
        assert "steps" not in step(IRModule()).attrs
    assert recorder.log == ["enter", "exit"]


def test_instruments_of_outer_contexts_see_inner_passes_once() -> None:
    recorder = Recorder()
    with PassContext(instruments=[recorder]), PassContext(instruments=[recorder]):
        nothing(IRModule())
    assert recorder.log.count("before nothing") == 1


def test_timing_lists_passes_with_their_depth() -> None:
    timing = Timing()
    with PassContext(instruments=[timing]):
        Pipeline([step, nothing], name="both")(IRModule())
    assert [(item.name, item.depth) for item in timing.times] == [("both", 0), ("step", 1), ("nothing", 1)]
    assert all(item.seconds >= 0 for item in timing.times)
    assert "  step" in timing.render()


def test_timing_goes_on_after_a_failed_pass() -> None:
    @module_pass
    def explode(module: IRModule) -> IRModule:
        raise RuntimeError

    timing = Timing()
    with pytest.raises(PassError), PassContext(instruments=[timing]):
        explode(IRModule())
    with PassContext(instruments=[timing]):
        nothing(IRModule())
    assert [item.name for item in timing.times] == ["nothing"]


def test_printing_shows_the_module_before_and_after_the_named_passes() -> None:
    out = io.StringIO()
    text = """
    @R.function
    def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        return x
    """
    with PassContext(instruments=[PrintBefore(["step"], out), PrintAfter(["nothing"], out)]):
        Pipeline([step, nothing])(module(text))
    lines = [line for line in out.getvalue().splitlines() if line.startswith(("# before", "# after"))]
    assert lines == ["# before step", "# after nothing"]
    assert "def main" in out.getvalue()


def test_printing_refuses_unknown_passes() -> None:
    with pytest.raises(PassError):
        PrintAfter(["no-such-pass"])
