"""What a user who knows NumPy, PyTorch or TVM writes at first, and the other way that the error names."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.script import relax as R
from weft.script import tir as T

GRAPH = '@R.function\ndef f(x: R.Tensor(("n", 4), "float32"), c: R.Tensor((), "bool")):\n    '
KERNEL = '@T.prim_func\ndef f(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):\n    '
MODULE = (
    '@I.ir_module\nclass M:\n    @T.prim_func\n    def k(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):\n'
    "        for i in range(4):\n            y[i] = x[i]\n\n"
    '    @R.function\n    def main(x: R.Tensor((4,), "float32")):\n        '
)
# head, the rest of the text, code, what the caret underlines, hint
MISTAKES = {
    "method of PyTorch": (GRAPH, "return x.view(2, 2)", "W115", "x.view", "write `R.reshape(x, ...)`"),
    "method that is an operator": (GRAPH, "return x.relu()", "W115", "x.relu", "write `R.nn.relu(x)`"),
    "method of a list": (
        GRAPH,
        "a = [x, x + 1]; b = a.pop(); return b",
        "W115",
        "a.pop",
        "write `last, a = a[-1], a[:-1]`",
    ),
    "transposed": (GRAPH, "return x.T", "W115", "x.T", "write `R.permute_dims(x, ...)`"),
    "name of PyTorch": (GRAPH, "return R.cat([x, x])", "W140", "R.cat", "did you mean R.concat?"),
    "elements assigned": (GRAPH, "x[0] = x\n    return x", "W202", "x[0]", "the shape of the elements"),
    "elements of one array": (GRAPH, "y = x; y[0] = 1; return x + y", "W115", "y[0]", "write `y = y.copy()` before"),
    "condition of many values": (
        GRAPH,
        "if x > 0:\n        y = x\n    else:\n        y = -x\n    return y",
        "W123",
        "x > 0",
        "R.where(",
    ),
    "size as a constant": (GRAPH, 'return x * R.const(n, "float32")', "W114", "n", 'R.astype(n, "float32")'),
    "step that a run computes beside an index": (
        GRAPH,
        "return x[:: R.argmax(x), 0]",
        "W115",
        ":: R.argmax(x)",
        "R.arange(",
    ),
    "axis out of range": (GRAPH, "return R.sum(x, axis=2)", "W203", "R.sum(x, axis=2)", "axes are -2 to 1"),
    "print": (GRAPH, "print(x)\n    return x", "W110", "print", "R.print"),
    "operator without its namespace": (GRAPH, "return relu(x)", "W110", "relu", "did you mean `R.nn.relu`?"),
    "module of NumPy": (GRAPH, "return np.exp(x)", "W110", "np", "R has the operators"),
    "function of the module": (MODULE, "return k(x)", "W110", "k", "functions of the module are called as `M.k`"),
    "scalar function in a graph": (GRAPH, "return T.exp(x)", "W115", "T.exp", "did you mean `R.exp`?"),
    "operator in a kernel": (KERNEL, "y[0] = R.exp(x[0])", "W115", "R.exp", "did you mean `T.exp`?"),
    "parameter bound anew": (KERNEL, "y = x", "W115", "y", "`y[...] = ...` writes elements"),
    "kernel called like a function": (MODULE, "return M.k(x)", "W130", "M.k(x)", "R.call_tir(f, (x,), out_ty=...)"),
    "function that is not there": (MODULE, "return M.q(x)", "W110", "M.q", "it has: k, main"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_the_message_names_another_way(name: str) -> None:
    head, rest, code, marked, hint = MISTAKES[name]
    with pytest.raises(weft.WeftError) as caught:
        weft.parse(head + rest + "\n")
    error = caught.value
    assert error.code == code, error
    assert error.span is not None
    assert error.span.source.text[error.span.start : error.span.end] == marked, error
    assert error.span.line == head.count("\n") + 1, error
    assert hint in (error.hint or ""), error


def test_a_list_of_tuples_is_told_to_be_two_lists() -> None:
    with pytest.raises(weft.ScriptError, match="the list 'a' becomes a tensor") as caught:
        weft.parse(GRAPH + "a = []\n    for row in x:\n        a.append((row, -row))\n    return a\n")
    assert caught.value.hint == "append each of its tensors to a list of its own"


@pytest.mark.parametrize(
    ("declared", "hint"),
    [
        ('("n * 2", 4)', "no sizes but 0 make them equal: declare (n, 4)"),
        ('("n + 1", 4)', "no sizes make them equal: declare (n, 4)"),
        ("(5, 5)", "no sizes make them equal: declare (n, 4)"),
    ],
)
def test_an_annotation_that_no_sizes_satisfy_is_refused(declared: str, hint: str) -> None:
    with pytest.raises(weft.ShapeError) as caught:
        weft.parse(GRAPH + f'y: R.Tensor({declared}, "float32") = R.exp(x)\n    return y\n')
    assert caught.value.code == "W210"
    assert caught.value.hint == hint


def test_the_shape_to_declare_is_named_where_it_is_fixed() -> None:
    with pytest.raises(weft.ShapeError) as caught:
        weft.parse('@R.function\ndef f(x: R.Tensor((3,), "int8")) -> R.Tensor((4,), "int8"):\n    return x\n')
    assert (caught.value.code, caught.value.hint) == ("W210", "declare (3,)")


def test_types_in_quotes_and_sizes_of_none_are_explained() -> None:
    for annotation, column, hint in (
        ("'R.Tensor((2,), \"float32\")'", 10, "write the type without quotes"),
        ('R.Tensor((None, 3), "float32")', 20, 'a size that only the run can tell is a symbol, as "n"'),
    ):
        with pytest.raises(weft.ScriptError) as caught:
            weft.parse(f"@R.function\ndef f(x: {annotation}):\n    return x\n")
        assert caught.value.span is not None
        assert (caught.value.span.line, caught.value.span.column, caught.value.hint) == (2, column, hint)


def test_self_is_no_parameter_of_a_function_in_a_module() -> None:
    with pytest.raises(weft.ScriptError, match="parameter 'self' has no type") as caught:
        weft.parse("@I.ir_module\nclass M:\n    @R.function\n    def f(self, x: R.Tensor):\n        return x\n")
    assert caught.value.hint == "functions of a module have no `self`"


def test_a_function_of_numpy_on_values_of_a_script_names_the_operator() -> None:
    with pytest.raises(weft.ScriptError, match=r"np\.exp") as caught:

        @R.function
        def graph(x: R.Tensor((4,), "float32")):
            return np.exp(x)

    assert caught.value.code == "W153"
    assert "did you mean `R.exp`?" in str(caught.value.hint)
    with pytest.raises(weft.ScriptError, match=r"np\.exp") as caught:

        @T.prim_func
        def kernel(x: T.Buffer((4,), "float32")):
            x[0] = np.exp(x[0])

    assert caught.value.code == "W153"
    assert caught.value.hint == "did you mean `T.exp`?"


def test_an_if_without_else_keeps_what_the_name_was_bound_to() -> None:
    @R.function
    def maybe(x: R.Tensor(("n",), "float32"), c: R.Tensor((), "bool")):
        y = x + 1.0
        if c:
            y = y * 2.0
        return y

    x = np.arange(3, dtype="float32")
    assert weft.interpret(maybe)(x, np.array(True)).tolist() == [2, 4, 6]
    assert weft.compile(maybe)["maybe"](x, np.array(False)).tolist() == [1, 2, 3]
    assert weft.structural_equal(weft.parse(maybe.script()), maybe)


def test_an_if_without_else_that_binds_a_new_name_is_an_error() -> None:
    with pytest.raises(weft.ScriptError, match="an `if` needs an `else`") as caught:
        weft.parse(GRAPH + "if c:\n        y = x\n    return y\n")
    assert caught.value.span is not None
    assert (caught.value.span.line, caught.value.span.column) == (3, 5)
    assert caught.value.hint == "write `else:` with another value of `y`, or bind `y` before"


def test_tuples_of_the_graph_are_joined_by_plus() -> None:
    @R.function
    def states(x: R.Tensor((2,), "float32")):
        found = (x,)
        for i in range(2):
            x = x + float(i)
            found = found + (x,)  # noqa: RUF005
        return found + R.split(x, 2)

    result = weft.interpret(states)(np.zeros(2, "float32"))
    assert [part.tolist() for part in result] == [[0, 0], [0, 0], [1, 1], [1], [1]]


def test_an_array_beside_a_tensor_is_given_as_a_constant() -> None:
    weights = np.ones((4, 3))
    with pytest.raises(weft.ScriptError, match="`@` of a tensor and a ndarray") as caught:

        @R.function
        def graph(x: R.Tensor(("n", 4), "float32")):
            return x @ weights

    assert (caught.value.code, caught.value.hint) == ("W114", "arrays are given as `R.const(array)`")
