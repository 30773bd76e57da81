"""ConvertToDataflow."""

from __future__ import annotations

import pytest
from tests.transform.helpers import check, left_alone

from weft.errors import PassError
from weft.transform import ConvertToDataflow


def test_runs_of_pure_bindings_become_dataflow_blocks() -> None:
    check(
        ConvertToDataflow(),
        """
        @R.function(pure=False)
        def main(x: R.Tensor((4,), "float32"), c: R.Tensor((), "bool")) -> R.Tensor((4,), "float32"):
            a = R.exp(x)
            b = R.add(a, x)
            R.print(b, format="{}")
            d = R.tanh(b)
            if c:
                e = R.exp(d)
                f = R.negative(e)
            else:
                f = d
            g = R.exp(f)
            h = R.add(g, f)
            return h
        """,
        """
        @R.function(pure=False)
        def main(x: R.Tensor((4,), "float32"), c: R.Tensor((), "bool")) -> R.Tensor((4,), "float32"):
            with R.dataflow():
                a = R.exp(x)
                b = R.add(a, x)
                R.output(b)
            R.print(b, format="{}")
            d = R.tanh(b)
            if c:
                with R.dataflow():
                    e = R.exp(d)
                    f1 = R.negative(e)
                    R.output(f1)
                f = f1
            else:
                f = d
            with R.dataflow():
                g = R.exp(f)
                h = R.add(g, f)
                R.output(h)
            return h
        """,
    )


def test_a_run_below_the_smallest_size_stays_plain() -> None:
    text = """
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        a = R.exp(x)
        b = R.add(a, x)
        return b
    """
    left_alone(ConvertToDataflow(min_size=3), text)
    with pytest.raises(PassError):
        ConvertToDataflow(min_size=0)


def test_values_of_unknown_purity_stay_outside() -> None:
    left_alone(
        ConvertToDataflow(min_size=1),
        """
        @R.function(pure=False)
        def main(x: R.Tensor((4,), "float32"), f: R.Callable) -> R.Any:
            a = f(x)
            b = R.call_packed("g", a, ty_args=R.Any)
            return b
        """,
    )
