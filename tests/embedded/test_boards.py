"""The digits network as C on emulated Cortex-M boards."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from tests.embedded import boards, network, quantised

import weft
from weft import transform
from weft.codegen.c import CSource, generate
from weft.ir.target import Target

pytestmark = pytest.mark.skipif(
    bool(boards.missing_tools()),
    reason=f"not installed: {', '.join(boards.missing_tools())} (make test-embedded installs them)",
)
PROCESSORS = ("cortex-m0", "cortex-m3", "cortex-m4f", "cortex-m7f", "cortex-m33f", "cortex-m55")


@pytest.fixture(scope="module")
def digits() -> tuple[CSource, np.ndarray, list[np.ndarray]]:
    module = network.bound(1)
    image = network.images(1)
    expected = list(weft.interpret(module)["main"](image))
    return generate(transform.default_pipeline()(module), model="digits"), image, expected


@pytest.mark.parametrize("processor", PROCESSORS)
def test_the_network_runs_on_the_board(processor: str, digits, tmp_path: Path) -> None:
    """G7: within 1e-5 of the interpreter on every board, the digit exactly."""
    source, image, expected = digits
    digit, confidence = boards.run(
        source, "digits", Target(f"c -mcpu={processor}"), {"images": image}, expected, tmp_path
    )
    assert digit.tolist() == expected[0].tolist()
    np.testing.assert_allclose(confidence, expected[1], atol=1e-5)


@pytest.fixture(scope="module")
def integers() -> tuple[CSource, np.ndarray, np.ndarray]:
    model = quantised.Quantised()
    images = model.images(1)  # the smallest board has 16 KiB of memory
    lowered = transform.default_pipeline()(quantised.module(model, 1))
    return generate(lowered, model="digits"), images, model.logits(images)


@pytest.mark.parametrize("processor", PROCESSORS)
def test_the_integer_network_gives_the_same_bits_on_the_board(processor: str, integers, tmp_path: Path) -> None:
    """G7: the eight-bit network is equal to the last bit on every board."""
    source, images, expected = integers
    (logits,) = boards.run(source, "digits", Target(f"c -mcpu={processor}"), {"images": images}, [expected], tmp_path)
    np.testing.assert_array_equal(logits, expected)


def test_an_image_for_another_processor_does_not_run(digits, tmp_path: Path) -> None:
    """B17: an M7 image on an M0 board stops with a fault."""
    source, image, expected = digits
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(boards.MACHINES, "cortex-m7", boards.MACHINES["cortex-m0"])
        try:
            boards.run(source, "digits", Target("c -mcpu=cortex-m7f"), {"images": image}, expected, tmp_path)
        except (RuntimeError, subprocess.TimeoutExpired):
            return
    pytest.fail("the wrong processor ran the image")


def test_two_processors_give_two_object_codes(digits, tmp_path: Path) -> None:
    """B17: the parts of one composite target are compiled for their own processors."""
    source, image, expected = digits
    target = Target("low_power_cpu: c -mcpu=cortex-m0; inference_cpu: c -mcpu=cortex-m7f")
    for label, architecture in (("low_power_cpu", "v6S-M"), ("inference_cpu", "v7E-M")):
        folder = tmp_path / label
        folder.mkdir()
        boards.run(source, "digits", target.part(label), {"images": image}, expected, folder)
        attributes = subprocess.run(
            ["arm-none-eabi-readelf", "-A", folder / "digits.c.o"], capture_output=True, text=True, check=True
        )
        assert architecture in attributes.stdout
