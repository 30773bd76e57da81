"""Text stays text inside C, comments and build files, whatever is in it."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import weft
from weft.codegen.backends.c import source_tree
from weft.codegen.backends.c.program import member_names
from weft.codegen.backends.c.spelling import c_comment, c_string, plain_word
from weft.errors import TargetError
from weft.ir import IRModule
from weft.runtime.artifact import Artifact, ArtifactSet, Symbol

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="GCC says what C reads")
STRICT = ["gcc", "-std=c99", "-trigraphs", "-pedantic", "-Wall", "-Wextra", "-Werror"]
HOSTILE = [
    "what??/",
    'end"; abort(); //',
    "\\",
    "\n*/ int x; /*",
    "a\0b",
    "\r",
    "é\u2028",
    "??=include",
    "%s%n",
    "\x7f",
    "0\\0",
]
PIECES = st.sampled_from([*"?/\\\"'*\n\r\t 0179aé%<:>", "??/", "*/", "/*", "\x00", "\x1b", "\ud800", "#include"])


@needs_gcc
@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(PIECES, max_size=8).map("".join), min_size=1, max_size=80))
def test_a_literal_is_the_text_and_a_comment_is_nothing(tmp_path: Path, texts: list[str]) -> None:
    texts += HOSTILE
    lines = ["#include <stdio.h>", "static const struct { const char *text; unsigned long size; } all[] = {"]
    lines += [f"  {c_comment(text)} {{ {c_string(text)}, sizeof {c_string(text)} - 1 }}," for text in texts]
    lines += ["};", "int main(void) {", f"  for (int i = 0; i < {len(texts)}; ++i) {{"]
    lines += ['    printf("%lu ", all[i].size); fwrite(all[i].text, 1, all[i].size, stdout);', "  }", "  return 0;"]
    Path(tmp_path, "a.c").write_text("\n".join([*lines, "}", ""]))
    subprocess.run([*STRICT, str(tmp_path / "a.c"), "-o", str(tmp_path / "a")], check=True)
    contents = [text.encode("utf-8", "backslashreplace") for text in texts]
    said = subprocess.run([str(tmp_path / "a")], capture_output=True, check=True).stdout
    assert said == b"".join(b"%d %s" % (len(content), content) for content in contents)


@needs_gcc
def test_the_message_of_an_assertion_is_never_code(tmp_path: Path) -> None:
    message = 'no??/"; abort(); } /* \\" \n é'
    module = weft.parse(f"""
@I.ir_module
class M:
    @T.prim_func
    def message(x: T.Buffer((1,), "float32"), y: T.Buffer((1,), "float32")):
        assert x[0] > T.float32(0), {message!r}
        y[0] = x[0]

    @R.function
    def main(x: R.Tensor((1,), "float32")) -> R.Tensor((1,), "float32"):
        y = R.call_tir(cls.message, (x,), out_ty=R.Tensor((1,), "float32"))
        return y
""")
    assert isinstance(module, IRModule)
    weft.compile(module, "c").export(tmp_path / "m.so")
    said = ctypes.CDLL(str(tmp_path / "m.so")).model_message
    said.restype = ctypes.c_char_p
    assert said(1).decode() == f"AssertionError: {message}"


def test_a_package_is_named_like_a_c_function() -> None:
    function = weft.parse('@R.function\ndef main(x: R.Tensor((1,), "float32")): return R.exp(x)\n')
    for kind in ("c", "llvm -mtriple=aarch64-linux-gnu"):
        target = weft.Target({"kind": "config", "parts": {"host": kind}, "package": {"name": "x() { abort(); }"}})
        with pytest.raises(TargetError, match="is no C name"):
            weft.compile(function, target)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("name", ["$(shell touch x).c", "a b.c", "a;b.c", "é.c", "a\n.c", "..", "`x`.c"])
def test_files_of_others_are_named_by_words_in_build_files(name: str) -> None:
    with pytest.raises(TargetError, match="cannot stand in build files"):
        plain_word(name, "the file name")


def test_a_source_of_another_code_generator_does_not_write_the_makefile() -> None:
    driver = Artifact("c", "$(shell id).c", b"int outside(void *x, void *y);", provides=(Symbol("outside"),))
    module = weft.parse("""
@I.ir_module
class M:
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        return R.call_dps_packed("outside", (x,), out_ty=R.Tensor((4,), "float32"))
""")
    assert isinstance(module, IRModule)
    with pytest.raises(TargetError, match="cannot stand in build files"):
        weft.compile(module.with_attr("artifacts", ArtifactSet([driver])), "c", trust=True)
    with pytest.raises(TargetError, match="is no C name"):
        source_tree({"a": IRModule({}), "b": IRModule({})}, "c", name="x: ; touch y")


@given(st.lists(st.sampled_from(["x", "int", "é", "ü", "1a", "", "a b", "x_1", "*/", "main"]), max_size=8))
def test_members_of_structures_are_c_names_and_no_two_are_the_same(names: list[str]) -> None:
    found = member_names(names, ["output0"])
    assert len(set(found) | {"output0"}) == len(names) + 1
    assert all(name.isidentifier() and name.isascii() and name != "int" for name in found)


def test_the_header_of_an_object_keeps_the_names_that_c_allows() -> None:
    function = weft.parse(
        '@R.function\ndef main(x: R.Tensor((2,), "float32"), int: R.Tensor((2,), "float32")): return x + int'
    )
    made = weft.compile(function, "llvm -mtriple=aarch64-linux-gnu")  # pyright: ignore[reportArgumentType]
    header = made["model.h"].data.decode()
    assert "float *x;" in header
    assert "float *v_int;" in header
