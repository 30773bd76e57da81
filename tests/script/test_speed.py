# ruff: noqa: E501  (scripts inside strings)
"""Reading and printing stay within the promised times of a processor (ten times of them: machines differ)."""

from __future__ import annotations

import time

import weft
from weft.script import parse, script_of


def chain(count: int) -> str:
    """A function of `count` bindings, each of the one before."""
    lines = [
        "@R.function",
        'def main(x: R.Tensor(("n", 784), "float32"), w: R.Tensor((784,), "float32")) -> R.Tensor(("n", 784), "float32"):',
        "    with R.dataflow():",
    ]
    before = "x"
    for index in range(count):
        value = (f"R.add({before}, w)", f"R.nn.relu({before})", f"R.multiply({before}, w)", f"R.exp({before})")[
            index % 4
        ]
        lines.append(f'        lv{index}: R.Tensor((n, 784), "float32") = {value}')
        before = f"lv{index}"
    return "\n".join([*lines, f"        R.output({before})", f"    return {before}", ""])


def test_a_thousand_bindings_read_and_print_at_once() -> None:
    text = chain(1000)
    parse(text)
    start = time.process_time()
    function = parse(text)
    read = time.process_time()
    script_of(function)
    printed = time.process_time()
    assert read - start < 1.0  # about 0.1 s where nothing else runs
    assert printed - read < 0.4  # about 0.01 s


def test_ten_thousand_bindings_read_back() -> None:
    text = chain(10_000)
    function = parse(text)
    printed = script_of(function)
    again = parse(printed)
    weft.assert_structural_equal(function, again)
    assert script_of(again) == printed
