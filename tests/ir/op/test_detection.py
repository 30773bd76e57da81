"""Detection: boxes over a threshold, boxes from anchors, boxes that overlap no better one."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft import IRModule, ShapeError


def compiled(call: str, *params: str) -> weft.Executable:
    names = ", ".join(f"x{i}: R.Tensor({param})" for i, param in enumerate(params))
    head = f"@I.ir_module\nclass M:\n    @R.function\n    def main({names}):\n"
    module = weft.parse(f"{head}        y = R.vision.{call}\n        return y\n")
    assert isinstance(module, IRModule)
    return weft.compile(module)


def test_boxes_over_a_threshold_move_to_the_front() -> None:
    first, second = [[0, 0.9, 1], [-1, 0.8, 2], [1, 0.1, 3], [2, 0.5, 4]], [[0, 0, 5], [0, 0, 6], [0, 0, 7], [0, 0, 8]]
    data = np.array([first, second], "float32")
    exe = compiled("get_valid_counts(x0, score_threshold=0.2)", '("b", 4, 3), "float32"')
    counts, boxes, places = exe["main"](data)
    assert counts.tolist() == [2, 0]
    assert places.tolist() == [[0, 3, -1, -1], [-1] * 4]
    np.testing.assert_array_equal(boxes[0], [data[0, 0], data[0, 3], [-1] * 3, [-1] * 3])
    np.testing.assert_array_equal(boxes[1], -1)
    every = compiled("get_valid_counts(x0, score_threshold=0.2, id_index=-1)", '("b", 4, 3), "float32"')
    assert every["main"](data)[2].tolist() == [[0, 1, 3, -1], [-1] * 4]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("get_valid_counts(x0, score_index=3)", "score_index is 3, and rows have 3 elements"),
        ("get_valid_counts(x0, id_index=4)", "id_index is 4, and rows have 3 elements"),
        ("get_valid_counts(x0, score_index=-1)", "score_index is the place of the score in a row, got -1"),
        (
            "multibox_transform_loc(x0, x1, x2, variances=(1.0, 2.0))",
            "variances are four numbers (x, y, w, h), got (1.0, 2.0)",
        ),
    ],
)
def test_places_outside_of_rows_are_refused(call: str, said: str) -> None:
    with pytest.raises(ShapeError) as caught:
        compiled(call, '(2, 4, 3), "float32"', '(2, 12), "float32"', '(1, 3, 4), "float32"')
    assert caught.value.code == "W205"
    assert said in caught.value.message
    assert caught.value.span is not None
    assert (caught.value.span.line, caught.value.span.column) == (5, 13)


def test_anchors_and_offsets_are_boxes() -> None:
    """An anchor without an offset is the box; its corners come as (top, left, bottom, right)."""
    exe = compiled(
        "multibox_transform_loc(x0, x1, x2, threshold=0.4, keep_background=False, clip=True)",
        '(1, 2, 2), "float32"',
        '(1, 8), "float32"',
        '(1, 2, 4), "float32"',
    )
    offsets = np.array([[0, 0, 0, 0, 1, 0, 0, np.log(2)]], "float32")
    anchors = np.array([[[0.1, 0.2, 0.3, 0.6], [0.5, 0.5, 0.7, 0.9]]], "float32")
    boxes, scores = exe["main"](np.array([[[2, 0], [2, 1]]], "float32"), offsets, anchors)
    np.testing.assert_allclose(boxes[0], [[0.2, 0.1, 0.6, 0.3], [0.3, 0.7, 1.0, 0.9]], rtol=1e-6)
    np.testing.assert_allclose(scores[0], [[0, 0], [0.5, 1 / (1 + np.exp(-1))]], rtol=1e-6)
