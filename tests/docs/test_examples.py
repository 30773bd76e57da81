"""The examples run as a user runs them, in a process of their own."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft

ROOT = Path(__file__).resolve().parents[2]
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


def test_the_quantized_model_reads_as_well(tmp_path: Path) -> None:
    run = run_example(EXAMPLES / "quantize_digits.py", tmp_path)
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
    found = dict(re.findall(r"^(\S+): accuracy ([\d.]+)", run.stdout, re.MULTILINE))
    assert len(found) == 6
    assert float(found["int8"]) > float(found["float32"]) - 0.005


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


def example_module(name: str) -> Any:
    """A module of the examples, imported as the examples import each other."""
    folder = EXAMPLES / "search" if name != "llama" else EXAMPLES
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(folder))


def test_the_decoder_gives_the_same_for_a_prompt_at_once_and_token_by_token(tmp_path: Path) -> None:
    llama = example_module("llama")
    config = llama.Config(vocabulary=64, hidden=32, wide=48, layers=1, heads=4)
    llama.random_checkpoint(config, tmp_path / "small.safetensors")
    step = weft.interpret(llama.decoder(config, weft.frontend.safetensors.load(tmp_path / "small.safetensors")))["step"]
    prompt = np.array([5, 9, 60, 2, 33])
    keys = values = np.zeros((1, 0, 2, 8), "float32")
    whole, *_ = step(prompt, keys, values)
    for token in prompt:
        scores, keys, values = step(np.array([token]), keys, values)
    np.testing.assert_allclose(scores, whole, rtol=1e-4, atol=1e-5)
    assert keys.shape == (1, 5, 2, 8)


def test_words_are_taken_apart_into_the_longest_pieces(tmp_path: Path) -> None:
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "un", "##break", "##able", "break", "cafe", ".", "中"]
    (tmp_path / "vocab.txt").write_text("\n".join(pieces), encoding="utf-8")
    words = example_module("tokenizer").WordPiece(tmp_path / "vocab.txt")
    named = [pieces[number] for number in words.encode("Unbreakable CAFÉ.中中 zz\x00")]
    assert named == ["[CLS]", "un", "##break", "##able", "cafe", ".", "中", "中", "[UNK]", "[SEP]"]
    assert len(words.encode("break " * 300)) == 256
    ids, mask = words.batch(["break", "unbreakable ."])
    assert ids.shape == mask.shape == (2, 6)
    assert mask.sum(axis=1).tolist() == [3, 6]


def test_without_its_weights_the_search_says_what_to_install() -> None:
    run = run_example(EXAMPLES / "search" / "search.py", ROOT)
    assert run.returncode == 1
    assert "make example-search" in run.stderr
    assert "Traceback" not in run.stderr
