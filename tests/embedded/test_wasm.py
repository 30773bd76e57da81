"""The digits network as WebAssembly, in node."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from tests.embedded import network, quantised

import weft
from weft.ir import IRModule

TOOLS = ("node", "wasm-ld")
MISSING = [tool for tool in TOOLS if shutil.which(tool) is None]
RUN = Path(__file__).parent / "wasm" / "run.mjs"
pytestmark = pytest.mark.skipif(
    bool(MISSING), reason=f"not installed: {', '.join(MISSING)} (make test-embedded installs them)"
)


def run(module: IRModule, images: np.ndarray, outputs: list[np.ndarray], folder: Path) -> list[np.ndarray]:
    """The outputs of one call in node."""
    made = weft.compile(module, "llvm -mtriple=wasm32-unknown-unknown")
    made.export(folder)
    exports = [f"--export={name}" for name in ("model_run", "model_message", "__heap_base")]
    link = ["wasm-ld", "--no-entry", *exports, "--allow-undefined", "model.o", "-o", "model.wasm"]
    subprocess.run(link, cwd=folder, check=True, capture_output=True)
    size = re.search(r"MODEL_WORKSPACE_BYTES (\d+)", made["model.h"].data.decode())
    assert size is not None
    (folder / "input.bin").write_bytes(images.tobytes())
    sizes = json.dumps({"outputs": [item.nbytes for item in outputs], "workspace": int(size.group(1))})
    command = ["node", str(RUN), "model.wasm", "input.bin", sizes]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=60)
    answer = json.loads(done.stdout)
    assert answer["code"] == 0
    pairs = zip(answer["result"], outputs, strict=True)
    return [np.frombuffer(bytes.fromhex(text), item.dtype).reshape(item.shape) for text, item in pairs]


def test_the_network_runs_in_node(tmp_path: Path) -> None:
    """G7: within 1e-5 of the interpreter, the digit exactly."""
    module, image = network.bound(1), network.images(1)
    expected = list(weft.interpret(module)["main"](image))
    digit, confidence = run(module, image, expected, tmp_path)
    assert digit.tolist() == expected[0].tolist()
    np.testing.assert_allclose(confidence, expected[1], atol=1e-5)


def test_the_integer_network_gives_the_same_bits_in_node(tmp_path: Path) -> None:
    """G7: equal to the last bit."""
    model = quantised.Quantised()
    images = model.images(1)
    expected = model.logits(images)
    (logits,) = run(quantised.module(model, 1), images, [expected], tmp_path)
    np.testing.assert_array_equal(logits, expected)
