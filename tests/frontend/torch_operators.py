# pyright: reportMissingImports=false
"""PyTorch's collection of operators, given to weft: python tests/frontend/torch_operators.py [PATTERN] [--samples 2]

For every operator of `op_db` that takes float32 (or --dtype complex64, bfloat16, int64), the first samples of its
arguments are exported, imported, compiled and run, and held against eager PyTorch. What cannot be exported, and what is
random, does not count. Printed are how many operators are right in all of their samples, and how many of these have no
node in Python. `--minimum 0.9 --native 0.8` make the exit status say whether that holds. Needs torch and its test
package expecttest.
"""

from __future__ import annotations

import collections
import gc
import itertools
import signal
import sys
import time
from typing import Any

import numpy as np
import torch
from outcomes import closed, computed, failed, options_of, parser_of
from torch.utils import _pytree as pytree

import weft
from weft.frontend import import_report
from weft.frontend.torch import array_of

LIMIT = 120  # seconds for one sample


class Applied(torch.nn.Module):
    """An operator on a sample: the tensors are inputs, everything else is as it stands in the sample."""

    def __init__(self, operator: Any, sample: Any) -> None:
        super().__init__()
        self.operator = operator
        leaves, self.tree = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
        self.inputs = [leaf.detach().clone() for leaf in leaves if isinstance(leaf, torch.Tensor)]
        self.leaves = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        self.places = [at for at, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    def forward(self, *tensors: Any) -> Any:
        leaves = list(self.leaves)
        for place, tensor in zip(self.places, tensors, strict=True):
            leaves[place] = tensor
        first, args, kwargs = pytree.tree_unflatten(leaves, self.tree)
        return self.operator(first, *args, **kwargs)


def tensors(result: Any) -> list[Any]:
    """The tensors of a result, in order; numbers as tensors."""
    found = [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, (torch.Tensor, int, float, bool))]
    dtypes = {float: torch.float64, int: torch.int64, bool: torch.bool}
    return [leaf if isinstance(leaf, torch.Tensor) else torch.tensor(leaf, dtype=dtypes[type(leaf)]) for leaf in found]


def copies(net: Applied) -> list[Any]:
    """The inputs of a sample, which operators in place may change."""
    return [tensor.clone() for tensor in net.inputs]


def beyond_comparison(program: Any) -> str:
    """Why nothing can be said of the results of a program, empty where something can."""
    for node in program.graph.nodes:
        if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
            return "random"
        if getattr(node.target, "_opname", "").startswith(("empty", "new_empty")):
            return "what nobody has written"
        if isinstance(node.meta.get("val"), torch.Tensor) and node.meta["val"].layout != torch.strided:
            return "a sparse tensor"
    return ""


def difference(found: Any, wanted: Any) -> str:
    """What differs, empty when nothing does."""
    wanted = array_of(wanted)
    found = np.asarray(found)
    if found.shape != wanted.shape:
        return f"shape {found.shape}, expected {wanted.shape}"
    if found.dtype != wanted.dtype:
        return f"dtype {found.dtype}, expected {wanted.dtype}"
    if wanted.dtype.kind in "biu":
        return "" if (found == wanted).all() else f"{found.reshape(-1)[:4]}, expected {wanted.reshape(-1)[:4]}"
    rtol, atol = _TOLERANCES.get(wanted.dtype.name, (1e-3, 1e-4))
    found, wanted = (value.astype("float32") if wanted.dtype.itemsize == 2 else value for value in (found, wanted))
    if np.allclose(found, wanted, rtol, atol, equal_nan=True):
        return ""
    worst = np.nanargmax(np.abs(found.reshape(-1) - wanted.reshape(-1)))
    return f"at {worst} {found.reshape(-1)[worst]}, expected {wanted.reshape(-1)[worst]}"


_TOLERANCES = {"float16": (5e-3, 5e-3), "bfloat16": (4e-2, 4e-2)}
"""Of a few roundings of what lies between two operators of PyTorch's: relative and absolute."""
_SIGNS = ("linalg_eigh", "_linalg_eigh")
"""Operators whose vectors are known but for their signs."""


def signless(program: Any) -> bool:
    """Whether results may have other signs."""
    return any(getattr(node.target, "_opname", "") in _SIGNS for node in program.graph.nodes)


def run(net: Applied) -> tuple[str, str]:
    """(status, detail) of one sample: native, python, wrong, the stage that failed; skip where nothing can be said."""
    try:
        with torch.no_grad():
            wanted, again = tensors(net(*copies(net))), tensors(net(*copies(net)))
            if any(not torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(wanted, again, strict=True)):
                return "skip", "random"
            program = torch.export.export(net, tuple(copies(net)))
        if why := beyond_comparison(program):
            return "skip", why
    except Exception as error:
        return "skip", f"not exported: {type(error).__name__}: {str(error).strip().splitlines()[:1]}"
    stage = "import"
    try:
        module = weft.frontend.torch.from_exported(program)
        report = import_report(module)
        stage = "compile"
        main = weft.compile(module)["main"]
        stage = "run"
        results = main(*map(array_of, copies(net)))
        found = list(results) if isinstance(results, tuple) else [results]
        found = [value for value in found if value is not None]
        if len(found) < len(wanted):
            return "wrong", f"{len(found)} results, expected {len(wanted)}"
        if signless(program):
            found, wanted = [np.abs(value) for value in found], [value.abs() for value in wanted]
        for a, b in zip(found, wanted, strict=False):  # inputs that the operator changes come last
            if told := difference(a, b):
                return "wrong", told
    except Exception as error:
        return failed(stage, error)
    return computed(report)


_WORST = ("import", "compile", "run", "wrong", "python", "native", "skip")


def samples(info: Any, count: int, dtype: torch.dtype) -> list[Applied]:
    """The first samples of an operator."""
    torch.manual_seed(0)
    made = info.sample_inputs("cpu", dtype, requires_grad=False)
    found = [Applied(info.op, sample) for sample in itertools.islice(made, count)]
    del made
    gc.collect()  # what generators do when they end must not be traced
    return found


def operator_status(info: Any, count: int, dtype: torch.dtype) -> tuple[str, str]:
    """The worst status of the samples of an operator that count, and its detail."""
    try:
        nets = samples(info, count, dtype)
    except Exception as error:
        return "skip", f"no samples: {error}"
    found = [limited(net) for net in nets]
    counted = [item for item in found if item[0] != "skip"]
    return min(counted or found or [("skip", "no samples")], key=lambda item: _WORST.index(item[0]))


def limited(net: Applied) -> tuple[str, str]:
    """The status of a sample; one that takes too long fails."""

    def late(*_: Any) -> None:
        raise TimeoutError(f"more than {LIMIT} s")

    signal.signal(signal.SIGALRM, late)
    signal.alarm(LIMIT)
    try:
        return run(net)
    except TimeoutError as error:
        return "run", str(error)
    finally:
        signal.alarm(0)


def main() -> int:
    """Run and print."""
    parser = parser_of(__doc__)
    parser.add_argument("--samples", type=int, default=2)
    parser.add_argument("--part", default="0/1", help="only every n-th operator: 1/2 is the second half")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--list", default="wrong,import,compile,run")
    options = options_of(parser)
    from torch.testing._internal.common_methods_invocations import op_db

    start, counts = time.perf_counter(), collections.Counter()
    dtype = getattr(torch, options.dtype)
    number, parts = map(int, options.part.split("/"))
    wanted = [info for info in op_db if dtype in info.dtypes and options.pattern in info.name]
    for info in wanted[number::parts]:
        status, detail = operator_status(info, options.samples, dtype)
        counts[status] += 1
        if status in options.list.split(","):
            name = f"{info.name}.{info.variant_test_name}" if info.variant_test_name else info.name
            print(f"{status:8} {name}: {detail[:300]}", flush=True)
    return closed(counts, time.perf_counter() - start, options.minimum, options.native)


if __name__ == "__main__":
    sys.exit(main())
