"""What is checked after each pass (`WEFT_CHECK`, or the setting `check.level`), and the report of a failure.

    0  nothing
    1  the module is well formed
    2  1, and the text of the module reads back as the module
    3  2, and the interpreter gives the same results before and after on small random inputs

Levels are `PassContext(level=...)`, else WEFT_CHECK. Each error names the guilty pass, that of level 3 the first
binding that differs, with a script of what the function needs. A failure inside a pass leaves a reproducer: a file with
the module as it was. The error says where it is, and how to run the pass on it again.
"""

from __future__ import annotations

import os
import tempfile
import traceback

from weft.errors import PassError, VerifyError, WeftError
from weft.ir import IRModule, first_mismatch
from weft.ir.verify import assert_well_formed, fault_of
from weft.support.providers import provider
from weft.transform.infra.context import check_level, setting
from weft.transform.infra.registry import PassType

__all__ = ["check_pass", "ill_formed", "verify_after", "write_reproducer"]


def check_pass(old: IRModule, new: IRModule, item: PassType) -> None:
    """Check the result of a pass as the current level asks; nothing when the pass changed nothing or is a pipeline."""
    if new is old or item.checks_itself:
        return
    level = check_level()
    if level >= 1:
        verify_after(new, item)
    if level >= 2:
        _check_text(new, item)
    if level >= 3 and item.keeps_meaning:
        _check_meaning(old, new, item)


def verify_after(module: IRModule, item: PassType) -> None:
    """Raise the first finding of the verifier as a VerifyError that names the pass."""
    try:
        assert_well_formed(module)
    except VerifyError as error:
        error.notes = (*error.notes, f"the module is not well formed after pass {item.name}")
        raise


def ill_formed(module: IRModule, item: PassType) -> WeftError | None:
    """What the verifier finds in a module that a pass failed on: then the pass is not at fault."""
    error = fault_of(module)
    if error is not None:
        error.notes = (*error.notes, f"the module was not well formed before pass {item.name}, which failed on it")
    return error


def _check_text(module: IRModule, item: PassType) -> None:
    """PassError W521 unless the module equals what its text reads as."""
    text = module.script()
    try:
        mismatch = first_mismatch(module, provider("parse")(text))
    except WeftError as error:
        raise PassError(
            f"the text of the module after pass {item.name} does not read", code="W521", notes=_keep(text, item)
        ) from error
    if mismatch is not None:
        raise PassError(
            f"the text of the module after pass {item.name} reads as another module: {mismatch}",
            code="W521",
            notes=_keep(text, item),
        )


def _check_meaning(old: IRModule, new: IRModule, item: PassType) -> None:
    """PassError W522 unless the public functions of both modules give the same results on small random inputs."""
    from weft.transform.infra.comparison import comparable_functions, first_difference, needed_for  # the interpreter

    for name in comparable_functions(old, new):
        difference = first_difference(old, new, name)
        if difference is not None:
            raise PassError(
                f"pass {item.name} changed what function {name!r} computes: {difference}",
                code="W522",
                notes=_keep(needed_for(old, name).script(), item),
            )


def write_reproducer(module: IRModule, item: PassType, error: BaseException) -> tuple[str, ...]:
    """Write the module and the pass to a file; the notes say where it is (or why there is none)."""
    try:
        text = module.script()
    except Exception as problem:  # the printer may be what is broken: keep the report of the first failure
        return (f"no reproducer: the module cannot be printed ({type(problem).__name__})",)
    return _keep(text, item, "".join(traceback.format_exception(error)))


def _keep(text: str, item: PassType, trace: str = "") -> tuple[str, ...]:
    directory = setting("check.directory") or tempfile.gettempdir()
    comment = "".join(f"# {line}\n" for line in trace.splitlines())
    try:
        handle, path = tempfile.mkstemp(prefix=f"weft-{item.name}-", suffix=".py", dir=directory)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(f"# before pass {item}\n{comment}{text}\n")
    except OSError as problem:
        return (f"no reproducer: {problem}",)
    # Only passes of this package whose options have a text can be named on the command line.
    named = type(item).__module__.startswith("weft.") and "<" not in str(item)
    return (f"reproducer: {path}", *([f"run it again: weft pass '{item}' {path}"] if named else []))
