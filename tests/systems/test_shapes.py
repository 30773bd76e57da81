"""Shapes are never silently wrong: what is declared or combined is proved, refuted with numbers, or checked.

Each case is a function that other compilers accept although it is wrong for some (or all) sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import weft
from weft import WeftError
from weft.ir.deduction.subtyping import dims_of
from weft.ir.interpret import interpret

HEAD = """from weft.script import ir as I, relax as R, tir as T

@I.ir_module
class M:
"""

TWICE = """    @T.prim_func
    def twice(A: T.Buffer(("n", 4), "float32"), B: T.Buffer(("n * 2", 4), "float32")):
        n = T.int64()
        for i, j in T.grid(n * 2, 4):
            B[i, j] = A[i // 2, j]

"""

HALF = """    @R.function(private=True)
    def half(x: R.Tensor(("n * 2",), "float32"), h: R.Tensor(("n",), "float32")):
        return h

"""


RESIZED = """    @R.function(private=True)
    def resized(x: R.Tensor(("a",), "float32"), w: R.Tensor(("b",), "float32")) -> R.Tensor(("b",), "float32"):
        y = R.exp(x)
        return y

"""


def main(signature: str, *lines: str) -> str:
    return "".join((f"    @R.function\n    def main({signature}:\n", *(f"        {line}\n" for line in lines)))


def zeros(*shape: int) -> np.ndarray[Any, Any]:
    return np.zeros(shape, "float32")


@dataclass(frozen=True)
class Refused:
    """A text with an error: the code, the marked line, and what the message has to say."""

    text: str
    line: str
    code: str
    says: tuple[str, ...]


REFUTED = {
    "a result that the body does not give": Refused(
        main(
            'x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 8), "float32")',
            "y = R.reshape(x, (2, -1))",
            "return y",
        ),
        "return y",
        "W210",
        ("n=1: declared (1, 8), computed (2, 2)", "declared (n, 8), computed (2, 2 * n)", "no sizes make"),
    ),
    "an output that the kernel does not write": Refused(
        TWICE
        + main(
            'x: R.Tensor(("n", 4), "float32"))',
            "n = T.int64()",
            'y = R.call_tir(M.twice, (x,), out_ty=R.Tensor((n * 3, 4), "float32"))',
            "return y",
        ),
        "y = R.call_tir",
        "W210",
        ("output B of kernel twice", "n=1: declared (3, 4), computed (2, 4)"),
    ),
    "an argument whose size no parameter has": Refused(
        HALF + main('x: R.Tensor((7,), "float32"), h: R.Tensor(("k",), "float32"))', "return M.half(x, h)"),
        "return M.half",
        "W201",
        ("argument of half", "2 * k is not 7", "k=1: 2 and 7"),
    ),
    "sizes that never agree": Refused(
        main(
            'x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("n + 1", 4), "float32"))',
            "n = T.int64()",
            "z = R.add(x, y)",
            "return z",
        ),
        "z = R.add",
        "W201",
        ("n",),
    ),
}


@pytest.mark.parametrize("case", REFUTED.values(), ids=REFUTED)
def test_what_is_wrong_is_refuted_with_numbers_where_it_stands(case: Refused) -> None:
    """C9, D5: the line, the declaration or operator, and sizes for which it fails."""
    text = HEAD + case.text
    with pytest.raises(WeftError) as caught:
        weft.parse(text)
    error = caught.value
    assert error.code == case.code
    assert error.span is not None
    assert text.splitlines()[error.span.line - 1].strip().startswith(case.line)
    for part in case.says:
        assert part in str(error)


@dataclass(frozen=True)
class Checked:
    """A text that is right for some sizes: arguments that fit, arguments that do not, the line that finds it."""

    text: str
    good: tuple[Any, ...]
    bad: tuple[Any, ...]
    line: str
    says: tuple[str, ...]  # what both the interpreter and compiled code say


CHECKED = {
    "add": Checked(
        main('x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("m", 4), "float32"))', "z = R.add(x, y)", "return z"),
        (zeros(3, 4), zeros(3, 4)),
        (zeros(2, 4), zeros(3, 4)),
        "z = R.add",
        ("n", "2", "3"),
    ),
    "add of one row": Checked(
        main('x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("m", 4), "float32"))', "z = R.add(x, y)", "return z"),
        (zeros(1, 4), zeros(1, 4)),
        (zeros(1, 4), zeros(3, 4)),
        "z = R.add",
        ("n", "1", "3"),
    ),
    "matmul": Checked(
        main('x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("m", 5), "float32"))', "z = R.matmul(x, y)", "return z"),
        (zeros(2, 4), zeros(4, 5)),
        (zeros(2, 4), zeros(7, 5)),
        "z = R.matmul",
        ("4", "7"),
    ),
    "broadcast": Checked(
        main(
            'x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("m",), "float32"))',
            "m = T.int64()",
            "z = R.broadcast_to(x, (m, 4))",
            "return z",
        ),
        (zeros(7, 4), zeros(7)),
        (zeros(2, 4), zeros(7)),
        "z = R.broadcast_to",
        ("n", "m", "2", "7"),
    ),
    "squeeze": Checked(
        main('x: R.Tensor(("n", 1, 4), "float32"))', "z = R.squeeze(x, axis=[0])", "return z"),
        (zeros(1, 1, 4),),
        (zeros(3, 1, 4),),
        "z = R.squeeze",
        ("1", "3"),
    ),
    "concat": Checked(
        main(
            'x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("n", "k"), "float32"))',
            "z = R.concat((x, y), axis=0)",
            "return z",
        ),
        (zeros(2, 4), zeros(2, 4)),
        (zeros(2, 4), zeros(2, 5)),
        "z = R.concat",
        ("4", "5"),
    ),
    "reshape": Checked(
        main(
            'x: R.Tensor(("n", 4), "float32"), s: R.Tensor(("m",), "float32"))',
            "m = T.int64()",
            "y = R.reshape(x, (m, 2))",
            "return y",
        ),
        (zeros(3, 4), zeros(6)),
        (zeros(3, 4), zeros(5)),
        "y = R.reshape",
        ("n=3", "m=5"),
    ),
    "a function of the module": Checked(
        HALF + main('x: R.Tensor(("m",), "float32"), h: R.Tensor(("k",), "float32"))', "y = M.half(x, h)", "return y"),
        (zeros(6), zeros(3)),
        (zeros(7), zeros(3)),
        "y = M.half",
        ("7",),
    ),
    "match_cast": Checked(
        main(
            'x: R.Tensor(("n",), "float32"), s: R.Shape(["q"]))',
            "q = T.int64()",
            'g = R.match_cast(x, R.Tensor((q * 2,), "float32"))',
            "return g",
        ),
        (zeros(6), (3,)),
        (zeros(7), (3,)),
        "g = R.match_cast",
        ("7",),
    ),
    "an annotation": Checked(
        main(
            'x: R.Tensor(("n", 4), "float32"), w: R.Tensor(("m", 4), "float32"))',
            'y: R.Tensor(("m", 4), "float32") = R.exp(x)',
            "z = R.add(y, w)",
            "return z",
        ),
        (zeros(3, 4), zeros(3, 4)),
        (zeros(3, 4), zeros(2, 4)),
        "y: R.Tensor",
        ("m=2", "(3, 4)"),
    ),
    "an annotation with a constant": Checked(
        main('x: R.Tensor(("n", 4), "float32"))', 'y: R.Tensor((3, 4), "float32") = R.exp(x)', "return y"),
        (zeros(3, 4),),
        (zeros(2, 4),),
        "y: R.Tensor",
        ("(3, 4)", "(2, 4)"),
    ),
    "a declared result": Checked(
        main(
            'x: R.Tensor(("n",), "float32"), w: R.Tensor(("m",), "float32")) -> R.Tensor(("m",), "float32")',
            "y = R.exp(x)",
            "return y",
        ),
        (zeros(3), zeros(3)),
        (zeros(3), zeros(2)),
        "y = R.exp",
        ("m=2", "(3,)"),
    ),
    "a declared field of a result": Checked(
        main(
            'x: R.Tensor(("n",), "float32"), w: R.Tensor(("m",), "float32")) -> '
            'R.Tuple(R.Tensor(("n",), "float32"), R.Tensor(("m",), "float32"))',
            "y = R.exp(x)",
            "return (y, y)",
        ),
        (zeros(3), zeros(3)),
        (zeros(3), zeros(2)),
        "return (y, y)",
        ("m=2", "(3,)"),
    ),
    "a declared result of a private function": Checked(
        RESIZED
        + main('x: R.Tensor(("n",), "float32"), w: R.Tensor(("m",), "float32"))', "y = M.resized(x, w)", "return y"),
        (zeros(3), zeros(3)),
        (zeros(3), zeros(2)),
        "",
        ("2", "(3,)"),
    ),
    "the output of a kernel": Checked(
        TWICE
        + main(
            'x: R.Tensor(("n", 4), "float32"), w: R.Tensor(("m",), "float32"))',
            'y = R.call_tir(M.twice, (x,), out_ty=R.Tensor((m, 4), "float32"))',
            "return y",
        ),
        (zeros(2, 4), zeros(4)),
        (zeros(2, 4), zeros(5)),
        "y = R.call_tir",
        ("4", "5"),
    ),
    "a slice of one element": Checked(
        main('x: R.Tensor(("n",), "float32"))', "y = x[:1]", "z = x - y", "w = R.squeeze(y)", "return (z, w)"),
        (zeros(4),),
        (zeros(0),),
        "y = x[:1]",
        ("R.strided_slice", "must have its one element", "n=0"),
    ),
    "the last row": Checked(
        main(
            'h: R.Tensor((2, "n", 3), "float32")) -> R.Tensor((2, 1, 3), "float32")',
            "y = R.strided_slice(h, [1], [n - 1], [n])",
            "return y",
        ),
        (zeros(2, 4, 3),),
        (zeros(2, 0, 3),),
        "y = R.strided_slice",
        ("axis 1 must have its one element", "n=0"),
    ),
    "one element where a symbol says": Checked(
        main(
            'x: R.Tensor(("n", 4), "float32"), w: R.Tensor(("i",), "float32"))',
            "y = x[i:i + 1]",
            "z = x - y",
            "return (z, R.squeeze(y))",
        ),
        (zeros(3, 4), zeros(2)),
        (zeros(3, 4), zeros(3)),
        "y = x[i:i + 1]",
        ("axis 0 must have its one element", "i=3"),
    ),
    "a boundary that small sizes make negative": Checked(
        main('x: R.Tensor(("n",), "float32"))', "y = x[n - 3:]", "return y"),
        (zeros(4),),
        (zeros(2),),
        "y = x[n - 3:]",
        ("begin n - 3 of axis 0 must not be negative", "n=2"),
    ),
    "a declared difference of neighbours": Checked(
        main('x: R.Tensor(("n",), "float32")) -> R.Tensor(("n - 1",), "float32")', "y = x[1:] - x[:-1]", "return y"),
        (zeros(4),),
        (zeros(0),),
        "y = x[1:]",
        ("(n - 1,)", "(0,)", "n=0"),
    ),
    "boundaries that are promised to be inside": Checked(
        main(
            'x: R.Tensor(("n",), "float32")) -> R.Tensor((3,), "float32")',
            "y = R.strided_slice(x, [0], [1], [4], assume_inbound=True)",
            "return y",
        ),
        (zeros(4),),
        (zeros(3),),
        "y = R.strided_slice",
        ("the slice of axis 0 is out of range",),
    ),
    "a promised slice of no length": Checked(
        main(
            'x: R.Tensor(("n",), "float32")) -> R.Tensor(("n - 1",), "float32")',
            "y = R.strided_slice(x, [0], [1], [n], assume_inbound=True)",
            "return y",
        ),
        (zeros(4),),
        (zeros(0),),
        "y = R.strided_slice",
        ("n - 1", "-1"),
    ),
    "a relation of an operator that a kernel relies on": Checked(
        TWICE
        + main(
            'x: R.Tensor(("n", 4), "float32"), w: R.Tensor(("m", 4), "float32"))',
            "with R.dataflow():",
            "    d = R.subtract(w, x)",
            '    y = R.call_tir(M.twice, (d,), out_ty=R.Tensor((2 * n, 4), "float32"))',
            "    z = R.exp(y)",
            "    R.output(z)",
            "return z",
        ),
        (zeros(3, 4), zeros(3, 4)),
        (zeros(3, 4), zeros(2, 4)),
        "d = R.subtract",
        ("3", "2"),
    ),
}

Run = Callable[..., Any]


def runs(text: str) -> dict[str, Run]:
    module = weft.parse(HEAD + text)
    ways = {"opt 0": weft.compile(module, opt=0), "opt 2": weft.compile(module)}
    ways["bytecode"] = weft.compile(module, executor="vm")
    return {"interpreted": interpret(module), **{way: made["main"] for way, made in ways.items()}}


@pytest.mark.parametrize("case", CHECKED.values(), ids=CHECKED)
def test_what_depends_on_the_sizes_is_checked_where_it_stands(case: Checked) -> None:
    """C9, D5: both ways of running a program name the line and the numbers."""
    text = HEAD + case.text
    results = []
    for way, run in runs(case.text).items():
        results.append(run(*case.good))
        with pytest.raises(WeftError) as caught:
            run(*case.bad)
        error = caught.value
        assert error.span is not None, way
        assert text.splitlines()[error.span.line - 1].strip().startswith(case.line), way
        for part in case.says:
            assert part in str(error), way
    first = results[0]
    assert all(np.array_equal(a, b) for result in results for a, b in zip(first, result, strict=True))


@pytest.mark.parametrize(
    ("slice_", "size"),
    [
        ("x[1:]", "max(n - 1, 0)"),
        ("x[:-1]", "max(n - 1, 0)"),
        ("x[1:-1]", "max(n - 2, 0)"),
        ("x[1:][1:][:-1]", "max(n - 3, 0)"),
        ("x[:8]", "min(n, 8)"),
        ("x[-8:]", "min(n, 8)"),
        ("x[2:8]", "max(min(n - 2, 6), 0)"),
        ("x[:1]", "1"),
        ("x[-1:]", "1"),
        ("x[n - 1:n]", "1"),
        ("x[n - 3:n]", "3"),
        ("x[:n % 2]", "n % 2"),
        ("x[:n - 1]", "max(n - 1, 0)"),
        ("x[::2]", "(n + 1) // 2"),
    ],
)
def test_slices_have_the_sizes_that_one_would_write(slice_: str, size: str) -> None:
    """Clamped as in Python; one element is one element, and `n - 3` is not negative, which is checked."""
    module = weft.parse(HEAD + main('x: R.Tensor(("n",), "float32"))', f"y = {slice_}", "return y"))
    dims = dims_of(module["main"].ret_type)
    assert dims is not None
    assert [str(dim) for dim in dims] == [size]
    assert weft.structural_equal(weft.parse(module.script()), module)


KNOWN_AFTER_A_CHECK = {
    "the result of a sum has either size": main(
        'x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("m", 4), "float32")) -> R.Tensor(("m", 4), "float32")',
        "z = R.add(x, y)",
        "return z",
    ),
    "a check of a value that nothing uses": main(
        'x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("m", 4), "float32")) -> R.Tensor(("m", 4), "float32")',
        "with R.dataflow():",
        "    z = R.add(x, y)",
        "    w = R.nn.relu(R.exp(x))",
        "    R.output(w)",
        "return w",
    ),
    "a cast of the same value": main(
        'x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("m", 4), "float32")) -> R.Tensor(("n", 4), "float32")',
        "n = T.int64()",
        'g = R.match_cast(y, R.Tensor((n, 4), "float32"))',
        "w = R.reshape(y, (4, n))",
        "v = R.reshape(w, (n, 4))",
        "return v",
    ),
}


@pytest.mark.parametrize("text", KNOWN_AFTER_A_CHECK.values(), ids=KNOWN_AFTER_A_CHECK)
@pytest.mark.parametrize("opt", [0, 2])
def test_an_equality_that_was_checked_is_known_after_it(text: str, opt: int) -> None:
    """D5: claims may rest on it, and the check is not optimized away."""
    run = weft.compile(weft.parse(HEAD + text), opt=opt)["main"]
    assert run(zeros(3, 4), zeros(3, 4)).shape == (3, 4)
    with pytest.raises(WeftError):
        run(zeros(3, 4), zeros(2, 4))


def test_an_equality_of_one_branch_is_not_known_in_the_other_nor_after_them() -> None:
    signature = (
        'x: R.Tensor(("n",), "float32"), y: R.Tensor(("m",), "float32"), c: R.Tensor((), "bool")) '
        '-> R.Tensor(("m",), "float32")'
    )
    branches = ("if c:", "    z = R.add(x, y)", "else:", "    z = R.exp(x)", "w = R.exp(x)", "return w")
    for run in runs(main(signature, *branches)).values():
        assert run(zeros(3), zeros(3), np.array(False)).shape == (3,)
        with pytest.raises(WeftError, match=r"the result of main: expected float32\[\(m,\)\], got float32\[\(3,\)\]"):
            run(zeros(3), zeros(2), np.array(False))
