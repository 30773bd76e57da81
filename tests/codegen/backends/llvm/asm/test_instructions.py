"""Records of LLVM instructions: each is printed as LLVM's assembly, and read back as the same record."""

from __future__ import annotations

import pytest
from tests.codegen.backends.llvm.asm.assembly import instruction_of, read

from weft.codegen.backends.llvm.asm import instructions as llvm

LINES = [
    "%1 = add nsw i64 %x, -1",
    "%1 = fadd reassoc contract <4 x float> %a, splat (float 0x3FF0000000000000)",
    "%1 = icmp slt <2 x i32> <i32 0, i32 1>, %b",
    "%1 = fcmp uno double %a, %a",
    "%1 = fneg half %a",
    "%1 = trunc <4 x i64> %x to <4 x i32>",
    "%1 = select <4 x i1> %m, <4 x float> %a, <4 x float> zeroinitializer",
    "%1 = getelementptr float, ptr %p, i64 -3",
    "%1 = getelementptr float, ptr %p, <4 x i64> %v",
    "%1 = load <4 x float>, ptr %p, align 4",
    "%1 = load volatile i8, ptr %p",
    "%1 = load atomic i64, ptr %p acquire, align 8",
    "store i64 3, ptr inttoptr (i64 8 to ptr), align 8, !nontemporal !3",
    "store atomic i64 0, ptr %p release, align 8",
    "store volatile i64 0, ptr %p",
    "%1 = extractelement <4 x float> %v, i64 3",
    "%1 = extractvalue { i64, i1 } %pair, 1",
    "%1 = insertelement <4 x float> poison, float %a, i64 0",
    "%1 = shufflevector <2 x float> %a, <2 x float> %b, <2 x i32> <i32 3, i32 0>",
    '%1 = call nsz float @"odd (name)"(float %a, i64 3)',
    "call void %callback(ptr %frame, <2 x i64> <i64 1, i64 2>)",
    "call void @f()",
    "%i = phi i64 [ 0, %body ], [ %n, %for.1 ]",
    "br label %done",
    'br i1 %c, label %then.1, label %else.2, !prof !{!"branch_weights", i32 1, i32 2000}',
    "br label %for.1, !llvm.loop !0",
    "ret void",
    "ret i32 %1",
    "%1 = alloca [4 x i64], align 8",
    "%1 = atomicrmw xchg ptr %p, i64 1 acquire",
    "unreachable",
]


@pytest.mark.parametrize("line", LINES)
def test_every_form_is_printed_as_it_was_read(line: str) -> None:
    name, instruction = read(line)
    assert name == (line.partition(" = ")[0] if line.startswith("%") else "")
    assert f"{name} = {llvm.text_of(instruction)}" == line if name else llvm.text_of(instruction) == line


def test_the_makers_make_what_the_reader_reads() -> None:
    made = {
        "add nsw i64 %x, 1": llvm.binary("add", "i64", "%x", 1, "nsw"),
        "fneg float %a": llvm.fneg("float", "%a"),
        "icmp eq ptr %p, null": llvm.icmp("eq", "ptr", "%p", "null"),
        "fcmp olt float %a, %b": llvm.fcmp("olt", "float", "%a", "%b"),
        "sext i32 %x to i64": llvm.cast("sext", "i32", "%x", "i64"),
        "select i1 %c, i64 %x, i64 0": llvm.select("i1", "%c", "i64", "%x", "0"),
        "getelementptr float, ptr %p, i64 2": llvm.getelementptr("float", "%p", 2),
        "load float, ptr %p, align 4": llvm.load("float", "%p", 4),
        "store float %a, ptr %p, align 4, !nontemporal !0": llvm.store("float", "%a", "%p", 4, "!nontemporal !0"),
        "extractelement <2 x float> %v, i64 1": llvm.extractelement("<2 x float>", "%v", 1),
        "insertelement <2 x float> %v, float %a, i64 1": llvm.insertelement("<2 x float>", "%v", "float", "%a", 1),
        "shufflevector <2 x i8> %a, <2 x i8> %b, <3 x i32> <i32 2, i32 1, i32 0>": llvm.shufflevector(
            "<2 x i8>", "%a", "%b", [2, 1, 0]
        ),
        "call i32 @f(ptr %p, i64 7)": llvm.call("i32", "@f", [("ptr", "%p"), ("i64", 7)]),
        "phi i64 [ 0, %a ], [ %x, %b ]": llvm.phi("i64", (0, "a"), ("%x", "b")),
        "br i1 %c, label %a, label %b": llvm.br("a", "b", condition="%c"),
        "ret i32 0": llvm.ret("i32", "0"),
    }
    for line, instruction in made.items():
        assert (line, instruction_of(line)) == (llvm.text_of(instruction), instruction)


@pytest.mark.parametrize("line", ["%1 = frobnicate i64 %x", "fence seq_cst", ""])
def test_other_forms_are_refused(line: str) -> None:
    with pytest.raises(ValueError, match="no form"):
        read(line)
