"""Boxes that overlap no better one: the kernels on this machine and in C against the reference and against TVM.

What TVM 0.27 gives for the arrays of `arrays()` stands here as numbers.
"""

from __future__ import annotations

import shutil
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from weft.errors import DTypeError, ShapeError
from weft.ir import IRModule


def module(call: str, *params: str) -> IRModule:
    names = ", ".join(f"x{i}: R.Tensor({param})" for i, param in enumerate(params))
    head = f"@I.ir_module\nclass M:\n    @R.function\n    def main({names}):\n"
    found = weft.parse(f"{head}        y = R.vision.{call}\n        return y\n")
    assert isinstance(found, IRModule)
    return found


CLASSIC = '("b", "n", 6), "float32"', '("b",), "int32"', '("b", "n"), "int32"'
EVERY = '("b", "n", 4), "float32"', '("b", "c", "n"), "float32"', '(), "int64"', '(), "float32"', '(), "float32"'


def classic(options: str = "") -> IRModule:
    return module(f"non_max_suppression(x0, x1, x2{options})", *CLASSIC)


def every(form: str) -> IRModule:
    return module(f'all_class_non_max_suppression(x0, x1, x2, x3, x4, output_format="{form}")', *EVERY)


def arrays() -> tuple[np.ndarray, ...]:
    """Boxes and scores of three classes; rows of class, score and corners with their counts and indices."""
    draw = np.random.default_rng(1)
    boxes = draw.random((2, 6, 4)).astype("float32")
    boxes[..., 2:] += boxes[..., :2] * 0.2
    scores = draw.random((2, 3, 6)).astype("float32")
    data = draw.random((2, 6, 6)).astype("float32")
    data[:, :, 0] = draw.integers(0, 2, (2, 6))
    data[..., 4:] += data[..., 2:4] * 0.3
    data[0, 4:, :] = -1
    return boxes, scores, data, np.array([4, 6], "int32"), np.tile(np.arange(6, dtype="int32"), (2, 1))


TAKEN = [[2, 3, 1, 0, -1, -1], [0, 4, 2, 3, 5, 1]]


@pytest.mark.parametrize(
    ("options", "indices", "counts"),
    [
        ("", TAKEN, [[4], [6]]),
        (", force_suppress=True", TAKEN, [[4], [6]]),
        (", max_output_size=2, top_k=4", [[2, 3, -1, -1, -1, -1], [0, 4, -1, -1, -1, -1]], [[2], [2]]),
    ],
)
def test_the_boxes_that_tvm_takes_are_taken(options: str, indices: list[list[int]], counts: list[list[int]]) -> None:
    _, _, *given_ = arrays()
    for run in programs(f", iou_threshold=0.3{options}"):
        chosen, number = run(*given_)
        assert chosen.tolist() == indices
        assert number.tolist() == counts


def test_soft_suppression_lowers_scores_as_tvm_does() -> None:
    _, _, data, counts, indices = arrays()
    run = weft.compile(classic(", iou_threshold=0.3, soft_nms_sigma=0.5, score_threshold=0.1"))["main"]
    kept, chosen, number = run(data, counts, indices)
    assert chosen.tolist() == [[2, 3, 1, -1, -1, -1], [0, 4, 2, 3, 5, 1]]
    assert number.tolist() == [[3], [6]]
    for image, places in enumerate(chosen):
        rows = data[image, places[places >= 0]]
        np.testing.assert_array_equal(np.delete(kept[image, : len(rows)], 1, 1), np.delete(rows, 1, 1))
        assert (kept[image, : len(rows), 1] <= rows[:, 1]).all()
        assert (kept[image, len(rows) :] == -1).all()


def test_boxes_stay_in_their_places_or_move_to_the_front() -> None:
    rows = [
        [0, 0.5, 0, 0, 1, 1],
        [0, 0.9, 0, 0, 1, 0.75],
        [1, 0.7, 0, 0, 1, 1],
        [0, 0.6, 4, 4, 3, 3],
        [0, 0.0, 8, 8, 9, 9],
    ]
    data = np.array([rows], "float32")
    given_ = data, np.array([5], "int32"), np.arange(5, dtype="int32")[None]
    stay = weft.compile(classic(", return_indices=False"))["main"](*given_)
    front = weft.compile(classic(", return_indices=False, invalid_to_bottom=True"))["main"](*given_)
    nothing = np.full(6, -1, "float32")
    np.testing.assert_array_equal(stay[0], [data[0, 1], data[0, 2], data[0, 3], nothing, nothing])
    np.testing.assert_array_equal(front, stay)
    one_class = weft.compile(classic(", return_indices=False, force_suppress=True"))["main"](*given_)
    np.testing.assert_array_equal(one_class[0], [data[0, 1], nothing, data[0, 3], nothing, nothing])
    moved = weft.compile(classic(", return_indices=False, force_suppress=True, invalid_to_bottom=True"))["main"](
        *given_
    )
    np.testing.assert_array_equal(moved[0], [data[0, 1], data[0, 3], nothing, nothing, nothing])


def test_every_class_takes_its_boxes_as_tvm_does() -> None:
    boxes, scores, *_ = arrays()
    numbers = np.array(3), np.array(0.3, "float32"), np.array(0.2, "float32")
    rows, number = programs("onnx")[0](boxes, scores, *numbers)
    taken = [[1, 5, 3], [4, 3, 2], [4, 3, 2], [3, 2, 1], [5, 0, 4], [1, 0, 4]]
    expected = [[row // 3, row % 3, box] for row, places in enumerate(taken) for box in places]
    assert number.tolist() == [18]
    assert rows[:18].tolist() == expected
    assert not rows[18:].any()
    places, kept, counts = programs("tensorflow")[0](boxes, scores, *numbers)
    assert counts.tolist() == [9, 9]
    assert places[:, :9].reshape(-1, 2).tolist() == [row[1:] for row in expected]
    for image in range(2):
        np.testing.assert_array_equal(kept[image, :9], [scores[image, c, n] for c, n in places[image, :9]])
        assert not kept[image, 9:].any()


EIGHTHS = st.integers(0, 8).map(lambda value: value / 8)


OPTIONS = (
    ", iou_threshold=0.25",
    ", iou_threshold=0.5, top_k=3, max_output_size=2, id_index=-1, return_indices=False",
    ", iou_threshold=1.0, force_suppress=True, return_indices=False, invalid_to_bottom=True",
)


@cache
def programs(options: str) -> tuple[Any, Any]:
    """The compiled program and its reference."""
    program = every(options) if options in ("onnx", "tensorflow") else classic(options)
    return weft.compile(program)["main"], weft.interpret(program)["main"]


def assert_same(got: Any, want: Any) -> None:
    """Results are exactly equal."""
    pairs = zip(got, want, strict=True) if isinstance(got, tuple) else [(got, want)]
    for one, other in pairs:
        np.testing.assert_array_equal(one, other)


@given(st.sampled_from(OPTIONS), st.data())
def test_compiled_suppression_is_the_reference_for_any_boxes(options: str, data: st.DataObject) -> None:
    """D10: batches of any size, ties, counts beyond the rows, scores that are nan; exactly equal."""
    images, number = data.draw(st.integers(0, 2)), data.draw(st.integers(0, 6))
    size = images * number * 6
    rows = np.array(data.draw(st.lists(EIGHTHS, min_size=size, max_size=size)), "float32").reshape(images, number, 6)
    rows[..., 0] = np.round(rows[..., 0])
    if rows.size:
        rows[0, 0, 1] = data.draw(st.sampled_from([rows[0, 0, 1], np.nan, -0.0, -1.0, np.inf]))
    counts = data.draw(st.lists(st.integers(-1, number + 1), min_size=images, max_size=images))
    indices = np.arange(100, 100 + images * number, dtype="int32").reshape(images, number)
    compiled, reference = programs(options)
    arguments = rows, np.array(counts, "int32"), indices
    assert_same(compiled(*arguments), reference(*arguments))


@given(st.sampled_from(["onnx", "tensorflow"]), st.data())
def test_compiled_suppression_of_every_class_is_the_reference(form: str, data: st.DataObject) -> None:
    """D10: exactly equal, for any number of images, classes and boxes."""
    images, classes, number = (data.draw(st.integers(0, most)) for most in (2, 3, 5))
    boxes, scores = (
        np.array(data.draw(st.lists(EIGHTHS, min_size=size, max_size=size)), "float32")
        for size in (images * number * 4, images * classes * number)
    )
    limits = (
        np.array(data.draw(st.integers(-1, 3)), "int64"),
        np.array(data.draw(EIGHTHS), "float32"),
        np.array(data.draw(EIGHTHS), "float32"),
    )
    compiled, reference = programs(form)
    arguments = boxes.reshape(images, number, 4), scores.reshape(images, classes, number), *limits
    assert_same(compiled(*arguments), reference(*arguments))


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize("options", [", iou_threshold=0.3", ", soft_nms_sigma=0.5"])
def test_c_code_suppresses_alike(options: str) -> None:
    program = weft.transform.BindSymbolicVars({"b": 2, "n": 6})(classic(f'{options}, target="part"'))
    _, _, *arguments = arrays()
    got = weft.compile(program, "host: llvm; part: c")["main"](*arguments)
    want = weft.interpret(program)["main"](*arguments)
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


ROWS_OF_3 = ('(2, 4, 3), "float32"', '(2,), "int32"', '(2, 4), "int32"')
ROWS_OF_6 = ('(2, 4, 6), "float32"', '(2,), "int32"', '(2, 4), "int32"')
THREE_COUNTS = ('(2, 4, 6), "float32"', '(3,), "int32"', '(2, 4), "int32"')


@pytest.mark.parametrize(
    ("call", "params", "error", "code", "said"),
    [
        (
            "non_max_suppression(x0, x1, x2)",
            ROWS_OF_3,
            ShapeError,
            "W205",
            "rows have 3 elements, and the corners, the score and the class reach to 6",
        ),
        (
            "non_max_suppression(x0, x1, x2, score_index=-1)",
            ROWS_OF_6,
            ShapeError,
            "W205",
            "score_index is the place of the score in a row, got -1",
        ),
        ("non_max_suppression(x0, x1, x2)", THREE_COUNTS, ShapeError, "W201", "images of data and of valid_count"),
        (
            "all_class_non_max_suppression(x0, x1, x2, x3, x3)",
            ('(2, 4, 4), "float32"', '(2, 3, 4), "float32"', '(2,), "int64"', '(), "float32"'),
            ShapeError,
            "W201",
            "max_output_boxes_per_class is one number",
        ),
        (
            "all_class_non_max_suppression(x0, x1, x2, x3, x3)",
            ('(2, 4, 5), "float32"', '(2, 3, 4), "float32"', '(), "int64"', '(), "float32"'),
            ShapeError,
            "W201",
            "corners of a box",
        ),
        (
            "all_class_non_max_suppression(x0, x1, x2, x3, x3)",
            ('(2, 4, 4), "float32"', '(2, 3, 4), "float32"', '(), "float32"', '(), "float32"'),
            DTypeError,
            "W321",
            "max_output_boxes_per_class must be integer, got float32",
        ),
    ],
)
def test_what_does_not_fit_is_refused_at_the_call(call: str, params: Any, error: Any, code: str, said: str) -> None:
    with pytest.raises(error) as caught:
        module(call, *params)
    assert caught.value.code == code
    assert said in caught.value.message
    assert caught.value.span is not None
    assert (caught.value.span.line, caught.value.span.column) == (5, 13)
