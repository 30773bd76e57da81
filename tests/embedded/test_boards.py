"""The digits network as C on emulated Cortex-M boards."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from tests.embedded import boards, network, quantised

import weft
from weft import ArtifactError, TargetError, transform
from weft.codegen.backends.c import CSource, SourceTree, generate, source_tree
from weft.ir import PrimFunc
from weft.target import Target

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


@pytest.fixture(scope="module")
def quantized() -> tuple[CSource, np.ndarray, np.ndarray]:
    module, images = quantised.by_weft(1), network.images(1)
    lowered = transform.default_pipeline()(module)
    return generate(lowered, model="digits"), images, weft.interpret(module)["main"](images)


@pytest.mark.parametrize("processor", PROCESSORS)
def test_what_weft_quantizes_gives_the_same_bits_on_the_board(processor: str, quantized, tmp_path: Path) -> None:
    """Integer kernels with fixed-point requantization, the floats at both ends too."""
    source, images, expected = quantized
    (scores,) = boards.run(source, "digits", Target(f"c -mcpu={processor}"), {"images": images}, [expected], tmp_path)
    np.testing.assert_array_equal(scores, expected)


def test_an_image_for_another_processor_does_not_run(digits, tmp_path: Path) -> None:
    """B17: an M7 image on an M0 board stops with a fault."""
    source, image, expected = digits
    target, smallest = Target("c -mcpu=cortex-m7f"), boards.of_processor("cortex-m0")
    with pytest.raises(ArtifactError) as caught:
        boards.run(source, "digits", target, {"images": image}, expected, tmp_path, smallest)
    assert caught.value.code == "W826"


BOTH = Target("low_power_cpu: c -mcpu=cortex-m0; inference_cpu: c -mcpu=cortex-m7f")


@pytest.fixture(scope="module")
def tree() -> SourceTree:
    return source_tree(transform.default_pipeline(BOTH)(network.divided(1)), BOTH, name="digits")


def architectures(folder: Path) -> dict[str, str]:
    """The architecture of each object file, as its attributes state it."""
    found = {}
    for path in sorted((folder / "src").glob("*.o")):
        done = subprocess.run(["arm-none-eabi-readelf", "-A", path], capture_output=True, text=True, check=True)
        (line,) = (line for line in done.stdout.splitlines() if "Tag_CPU_arch:" in line)
        found[path.stem] = line.split()[-1]
    return found


def test_two_processors_share_one_image(tree: SourceTree, digits, tmp_path: Path) -> None:
    """B17, G7: one C file per label, each compiled for its own processor; linked, they run on the greater one."""
    _, image, expected = digits
    digit, confidence = boards.run_tree(tree, {"images": image}, expected, tmp_path, boards.of_processor("cortex-m7f"))
    assert digit.tolist() == expected[0].tolist()
    np.testing.assert_allclose(confidence, expected[1], atol=1e-5)
    built = tmp_path / "built" / "tree"
    assert architectures(built) == {
        "digits_data": "v6S-M",
        "digits_main": "v6S-M",
        "digits_ops_low_power_cpu": "v6S-M",
        "digits_ops_inference_cpu": "v7E-M",
    }
    command = ["arm-none-eabi-objdump", "-d", built / "src" / "digits_ops_inference_cpu.o"]
    floats = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "vmul.f32" in floats or "vfma.f32" in floats or "vmla.f32" in floats


def test_the_integer_network_on_two_processors_is_exact(integers, tmp_path: Path) -> None:
    """B17, G7: labels on kernels, in eight-bit integers, to the last bit."""
    _, images, expected = integers
    whole = transform.default_pipeline(BOTH)(quantised.module(quantised.Quantised(), 1))
    labels = {name: "inference_cpu" for name in whole if "conv" in name or "matmul" in name}
    assert labels
    labelled = whole.with_functions(
        {
            name: f.with_attr("target", labels[name]) if name in labels and isinstance(f, PrimFunc) else f
            for name, f in whole.items()
        }
    )
    made = source_tree(labelled, BOTH, name="digits")
    board = boards.of_processor("cortex-m7f")
    (logits,) = boards.run_tree(made, {"images": images}, [expected], tmp_path, board)
    np.testing.assert_array_equal(logits, expected)
    assert set(architectures(tmp_path / "built" / "tree").values()) == {"v6S-M", "v7E-M"}


def test_the_image_of_both_is_refused_by_the_lesser_processor(tree: SourceTree, digits, tmp_path: Path) -> None:
    """B17: code of the greater processor stops the lesser one with a fault."""
    _, image, expected = digits
    with pytest.raises(ArtifactError, match="failed on microbit"):
        boards.run_tree(tree, {"images": image}, expected, tmp_path, boards.of_processor("cortex-m0"))


def test_a_processor_refuses_to_compile_the_code_of_another(tmp_path: Path) -> None:
    """B17: parts that pass floats in different ways cannot be linked, and are refused before they are compiled."""
    hard = Target("low_power_cpu: c -mcpu=cortex-m0; inference_cpu: c -mcpu=cortex-m7f -mfloat-abi=hard")
    module = transform.default_pipeline(hard)(network.divided(1))
    with pytest.raises(TargetError, match="'low_power_cpu' and 'inference_cpu' pass floats in different") as caught:
        source_tree(module, hard, name="digits")
    assert caught.value.code == "W748"
