"""Passes as objects: names, options, what they take and return, and the report of a failure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.transform.helpers import module

from weft.errors import PassError, ShapeError
from weft.ir import Function, IRModule
from weft.transform import FunctionPass, Pass, PassContext, Pipeline, function_pass, module_pass, parse_pipeline
from weft.transform.infra.options import is_restricted
from weft.transform.infra.registry import find_pass, is_built_in, named_passes

IDENTITY = """
@R.function
def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
    return x
"""


@dataclass(frozen=True)
class CountCalls(Pass):
    """A pass with options of several types."""

    aliases: ClassVar[tuple[str, ...]] = ("count",)
    limit: int = 3
    names: tuple[str, ...] = ()
    strict: bool = False

    def run(self, module: IRModule) -> IRModule:
        return module.with_attr("limit", self.limit)


OWN_PASSES = sorted({cls for cls in named_passes().values() if is_built_in(cls)}, key=lambda cls: cls.text_name)


@pytest.mark.parametrize("cls", OWN_PASSES, ids=lambda cls: cls.text_name)
def test_every_number_that_is_an_option_has_a_range_or_choices(cls: type[Pass]) -> None:
    for option, hint in cls.option_types().items():
        assert hint is not int
        if is_restricted(hint):
            with pytest.raises(PassError, match=f"option {option} of {cls.text_name} takes") as caught:
                cls(**{option: -1 if isinstance(getattr(cls(), option), int) else "neither"})
            assert caught.value.code == "W502"


def test_a_pass_is_named_after_its_class() -> None:
    assert CountCalls().name == "count-calls"
    assert find_pass("count") is CountCalls
    assert find_pass("CountCalls") is CountCalls


def test_the_text_of_a_pass_shows_options_that_differ_from_their_defaults() -> None:
    assert str(CountCalls()) == "count-calls"
    assert str(CountCalls(limit=8, names=("main", "two words"))) == 'count-calls{limit=8, names=[main, "two words"]}'


def test_the_text_of_a_pass_reads_back_as_an_equal_pass() -> None:
    item = CountCalls(limit=-1, names=("a", "true", ""), strict=True)
    assert parse_pipeline(str(item)).passes == (item,)


def test_a_pass_is_immutable() -> None:
    with pytest.raises(AttributeError):
        CountCalls().limit = 4  # type: ignore[misc]


def test_a_pass_runs_on_a_module() -> None:
    assert CountCalls(limit=5)(IRModule()).attrs["limit"] == 5


def test_a_pass_refuses_a_function() -> None:
    with pytest.raises(PassError, match="count-calls takes an IRModule, got a Function"):
        CountCalls()(module(IDENTITY)["main"])  # type: ignore[arg-type]


@pytest.mark.parametrize(("result", "said"), [(None, "None"), ((1, 2), "a tuple"), ("text", "a str")])
def test_a_pass_that_returns_no_module_is_named(result: Any, said: str) -> None:
    """A7: a pass returns an IRModule and nothing else."""

    @module_pass
    def broken_result(module: IRModule) -> Any:
        return result

    for item in (broken_result, Pipeline([broken_result])):
        with pytest.raises(TypeError, match=f"broken-result must return an IRModule, it returned {said}"):
            item(IRModule())


def test_a_function_pass_that_returns_no_function_is_named() -> None:
    """A7: a pass returns an IRModule and nothing else."""

    @function_pass
    def broken_function(function: Function) -> Any:
        return None

    with pytest.raises(TypeError, match="broken-function must return a function for 'main', it returned None"):
        broken_function(module(IDENTITY))


def test_module_pass_takes_the_module_and_the_context() -> None:
    seen = []

    @module_pass(name="SeeContext", level=2)
    def look(module: IRModule, context: PassContext) -> IRModule:
        seen.append(context.opt)
        return module

    with PassContext(opt=3):
        look(IRModule())
    assert seen == [3]
    assert (look.name, look.level) == ("see-context", 2)


def test_function_pass_maps_graph_functions_and_keeps_an_unchanged_module() -> None:
    @function_pass
    def seal_once(function: Function, module: IRModule) -> Function:
        return function if "sealed" in function.attrs else function.with_attr("sealed", len(module))

    once = seal_once(module(IDENTITY))
    assert once["main"].attrs["sealed"] == 1
    assert seal_once(once) is once


def test_keyword_parameters_of_a_decorated_function_are_options() -> None:
    @module_pass
    def mark_with(module: IRModule, *, value: int = 1, note: str = "x") -> IRModule:
        return module.with_attr("mark", (value, note))

    assert mark_with(IRModule()).attrs["mark"] == (1, "x")
    (read,) = parse_pipeline("mark-with{value=7, note=hello}").passes
    assert read(IRModule()).attrs["mark"] == (7, "hello")


def test_an_option_of_a_decorated_function_needs_a_default() -> None:
    with pytest.raises(PassError) as caught:

        @module_pass
        def no_default(module: IRModule, *, value: int) -> IRModule:
            return module

    assert caught.value.code == "W506"


def test_a_user_cannot_take_the_name_of_a_built_in_pass() -> None:
    with pytest.raises(PassError) as caught:

        @module_pass(name="legalize-ops")
        def other(module: IRModule) -> IRModule:
            return module

    assert caught.value.code == "W503"


def test_a_failure_inside_a_pass_names_pass_and_function_and_leaves_a_reproducer(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Stumble(FunctionPass):
        def run_function(self, name: str, function: Function, module: IRModule) -> Function:
            raise KeyError("lost")

    with PassContext(config={"check.directory": str(tmp_path)}), pytest.raises(PassError) as caught:
        Stumble()(module(IDENTITY))
    error = caught.value
    assert error.message == "pass stumble failed on function 'main': KeyError: 'lost'"
    assert error.code == "W520"
    assert isinstance(error.__cause__, KeyError)
    (file,) = tmp_path.iterdir()
    assert error.notes[0] == f"reproducer: {file}"
    assert "def main" in file.read_text()
    assert "before pass stumble" in file.read_text()


def test_an_error_that_a_user_can_cause_passes_through_with_a_note_on_the_pass() -> None:
    @function_pass
    def refuse(function: Function) -> Function:
        raise ShapeError("2 is not 3")

    with pytest.raises(ShapeError) as caught:
        refuse(module(IDENTITY))
    assert caught.value.notes == ("in pass refuse, function 'main'",)
