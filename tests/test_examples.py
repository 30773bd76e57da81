"""The examples run as a user runs them, in a process of their own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"


def run_example(script: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run([sys.executable, str(script)], cwd=cwd, env=environment, capture_output=True, text=True)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    return run_example(EXAMPLES / "digits.py", tmp_path_factory.mktemp("anywhere"))


def test_the_demo_succeeds_and_classifies_above_096(demo: subprocess.CompletedProcess[str]) -> None:
    assert demo.returncode == 0, demo.stdout[-3000:] + demo.stderr[-3000:]
    (accuracy,) = re.findall(r"^accuracy ([\d.]+) on 500 test images", demo.stdout, re.MULTILINE)
    assert float(accuracy) > 0.96


def test_the_demo_prints_the_module_its_round_trip_and_its_times(demo: subprocess.CompletedProcess[str]) -> None:
    for kind in ("R.nn.conv2d", "R.call_tir", "R.call_dps_packed", "@T.prim_func", "the same module"):
        assert kind in demo.stdout
    assert re.search(r"compile for every batch size: [\d.]+ s", demo.stdout)
    for batch in (1, 7, 64, 500):
        assert re.search(rf"^ +{batch} +0\.\d+ +[\d.]+ us +yes$", demo.stdout, re.MULTILINE)


def test_the_demo_prints_no_escape_sequences_into_a_pipe(demo: subprocess.CompletedProcess[str]) -> None:
    assert "\x1b" not in demo.stdout


def test_the_weights_can_be_made_again(tmp_path: Path) -> None:
    """The training script, run on the data alone, gives weights of the same shapes that classify as well."""
    shutil.copy(EXAMPLES / "train_digits.py", tmp_path)
    (tmp_path / "data").mkdir()
    shutil.copy(EXAMPLES / "data" / "digits.npz", tmp_path / "data")
    run = run_example(tmp_path / "train_digits.py", tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr
    with (
        np.load(tmp_path / "data" / "digits_weights.npz") as new,
        np.load(EXAMPLES / "data" / "digits_weights.npz") as kept,
    ):
        assert {name: new[name].shape for name in new} == {name: kept[name].shape for name in kept}
        assert all(new[name].dtype == np.float32 for name in new)


def test_the_data_files_are_small_and_state_their_licence() -> None:
    assert (EXAMPLES / "data" / "digits.npz").stat().st_size < 100_000
    assert (EXAMPLES / "data" / "digits_weights.npz").stat().st_size < 200_000
    text = (EXAMPLES / "data" / "README.md").read_text(encoding="utf-8")
    assert "CC BY 4.0" in text
    assert "UCI Machine Learning Repository" in text
