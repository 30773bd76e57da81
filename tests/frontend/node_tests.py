"""The tests of ONNX for backends, given to weft: python tests/frontend/node_tests.py [PATTERN] [--interpret]

For every test of one node (and of a node expanded into its definition) the model is imported, compiled and run on the
test's inputs, and held against its outputs with its own tolerances; tests whose outputs are no measure have a row in
JUDGED, with the reason. Printed are how many are right, how many of these by such a row, how many have no node in
Python, and which are not. `--minimum 0.95 --native 0.9` make the exit status say whether that holds.
`--kind pytorch-converted,pytorch-operator,simple` are the groups of models that come with the package.
"""

from __future__ import annotations

import collections
import dataclasses
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from outcomes import computed, failed, options_of, parser_of

import weft
from weft.frontend import import_report


def cases(kinds: str, pattern: str) -> Iterator[Any]:
    """The tests of some kinds whose name has the pattern in it."""
    from onnx.backend.test.loader import load_model_tests

    for kind in kinds.split(","):
        for case in load_model_tests(kind=kind):
            if pattern in case.name:
                yield case if case.model is not None else loaded(case)


def loaded(case: Any) -> Any:
    """A test whose model and data lie in files, with both."""
    import onnx

    folder = Path(case.model_dir)
    model = onnx.load(folder / "model.onnx")
    sets = [
        [
            [of_type(path, item.type) for path, item in zip(listed(data, what), items, strict=False)]
            for what, items in (("input", model.graph.input), ("output", model.graph.output))
        ]
        for data in sorted(folder.glob("test_data_set_*"))
    ]
    return dataclasses.replace(case, model=model, data_sets=sets)


def listed(folder: Path, what: str) -> list[Path]:
    """The files of the inputs or outputs of a data set, by their number."""
    return sorted(folder.glob(f"{what}_*.pb"), key=lambda path: int(path.stem.rpartition("_")[2]))


def of_type(path: Path, kind: Any) -> Any:
    """The value in a file, which the type of an input or output says how to read."""
    import onnx

    kinds = {"tensor_type": onnx.TensorProto, "sequence_type": onnx.SequenceProto, "optional_type": onnx.OptionalProto}
    value = kinds[kind.WhichOneof("value")]()
    value.ParseFromString(path.read_bytes())
    return value


def within_two_units(found: np.ndarray, expected: np.ndarray) -> bool:
    """Whether values differ by at most two units in the last place of their dtype."""
    info = ml_dtypes.finfo(expected.dtype)
    a, b = found.astype("float64"), expected.astype("float64")
    unit = 2.0 ** (np.floor(np.log2(np.maximum(np.abs(b), float(info.smallest_normal)))) - info.nmant)
    return bool(((np.abs(a - b) <= 2 * unit) | (a == b)).all())


def of_the_greatest(found: np.ndarray, expected: np.ndarray) -> bool:
    """Whether values differ by less than a millionth of the greatest."""
    return bool((np.abs(found - expected) <= 1e-6 * np.abs(expected).max()).all())


def drawn(found: np.ndarray, expected: np.ndarray) -> bool:
    """Whether values are what may be drawn: zeros and ones."""
    return bool(((found == 0) | (found == 1)).all())


@dataclasses.dataclass(frozen=True)
class Judged:
    """Tests whose values are held against their outputs by a rule of their own, and why."""

    names: str
    rule: Callable[[np.ndarray, np.ndarray], bool]
    why: str


JUDGED = (
    Judged(
        r"test_attention_[34]d_\w*(fp16|bf16)",
        within_two_units,
        "the definition rounds every intermediate value to half precision, and so does the reference, whose outputs "
        "are up to 1.7 units in the last place from the exact ones; ours rounds fewer times (up to 1.4 units). The "
        "stated tolerance, 0.001, is less than half a unit of bfloat16",
    ),
    Judged(
        r"test_dft_inverse",
        of_the_greatest,
        "the outputs are what pocketfft rounds to in complex64; the exact transform of the inputs, rounded once, is as "
        "far from the zeros among them (2e-6 where the greatest value is 54) as ours, and the tolerance there is 1e-7",
    ),
    Judged(r"test_bernoulli", drawn, "the values are random: every generator draws others"),
)


def judged(case: Any) -> Judged | None:
    """The row of a test, None for one whose outputs are the measure."""
    return next((item for item in JUDGED if re.match(item.names, case.name)), None)


def equal(found: Any, expected: Any, case: Any) -> str:
    """What differs, empty when nothing does."""
    if isinstance(expected, list):
        if not isinstance(found, (list, tuple)) or len(found) != len(expected):
            return f"expected a sequence of {len(expected)}, got {type(found).__name__}"
        return next(filter(None, (equal(a, b, case) for a, b in zip(found, expected, strict=True))), "")
    if expected is None:
        return "" if found is None else "expected nothing"
    found = np.asarray(found)
    if found.shape != expected.shape:
        return f"shape {found.shape}, expected {expected.shape}"
    if expected.dtype == object or expected.dtype.kind in "US":
        return "" if (found.astype(str) == expected.astype(str)).all() else "strings differ"
    if found.dtype != expected.dtype:
        return f"dtype {found.dtype}, expected {expected.dtype}"
    wide = (lambda a: a) if expected.dtype.kind in "biucf" else (lambda a: a.astype("float32"))
    if np.allclose(wide(found), wide(expected), rtol=case.rtol, atol=case.atol, equal_nan=True):
        return ""
    rule = judged(case)
    if rule is not None and rule.rule(found, expected):
        return ""
    return f"values differ: {found.reshape(-1)[:4]} expected {expected.reshape(-1)[:4]}"


def plain(value: Any) -> Any:
    """A value of a test as an array, or a list of them."""
    import onnx

    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    if isinstance(value, onnx.SequenceProto):
        return onnx.numpy_helper.to_list(value)
    if isinstance(value, onnx.OptionalProto):
        return onnx.numpy_helper.to_optional(value)
    return value


def run(case: Any, interpret: bool) -> tuple[str, str]:
    """(status, detail): native, python, wrong, or the stage that failed."""
    stage = "import"
    try:
        module = weft.frontend.onnx.load(case.model)
        report = import_report(module)
        stage = "compile"
        main = weft.interpret(module)["main"] if interpret else weft.compile(module)["main"]
        stage = "run"
        for inputs, outputs in case.data_sets:
            results = main(*map(plain, inputs))
            results = results if isinstance(results, tuple) and len(outputs) > 1 else (results,)
            for found, expected in zip(results, map(plain, outputs), strict=True):
                difference = equal(found, expected, case)
                if difference:
                    return "wrong", difference
    except Exception as error:
        return failed(stage, error)
    return computed(report)


def main() -> int:
    """Run and print."""
    parser = parser_of(__doc__)
    parser.add_argument("--kind", default="node")
    parser.add_argument("--interpret", action="store_true")
    parser.add_argument("--list", default="wrong,import,compile,run")
    options = options_of(parser)
    start, counts, by_rule = time.perf_counter(), collections.Counter(), 0
    for case in cases(options.kind, options.pattern):
        status, detail = run(case, options.interpret)
        counts[status] += 1
        by_rule += status in ("native", "python") and judged(case) is not None
        if status in options.list.split(","):
            print(f"{status:8} {case.name}: {detail[:300]}", flush=True)
    total, right = sum(counts.values()), counts["native"] + counts["python"]
    native = counts["native"] / right if right else 0.0
    print(
        f"{right} of {total} right ({right / max(total, 1):.1%}), {native:.1%} of these native; {dict(counts)}; "
        f"{by_rule} have a row in JUDGED; {time.perf_counter() - start:.0f} s"
    )
    return 0 if right >= options.minimum * total and native >= options.native else 1


if __name__ == "__main__":
    sys.exit(main())
