"""Graph functions whose bindings are a chain of steps: what samples of passes over graphs are made of."""

from __future__ import annotations

from collections.abc import Sequence

from weft.transform.infra.generators.choices import Choices

__all__ = ["chain_text"]


def chain_text(choices: Choices, first: str, steps: Sequence[str], parameters: str) -> str:
    """The text of a module whose `main` binds `first`, two to six steps more, and their sum.

    `{0}` in a step is the value before, `{1}` one of those before; `{size}` in the parameters is a size, or a symbol.
    """
    lines = [f"v0 = {first}"]
    for place in range(1, choices.integer(2, 6)):
        step = choices.pick(steps)
        lines.append(f"v{place} = {step.format(f'v{place - 1}', f'v{choices.integer(0, place - 1)}')}")
    stated = parameters.format(size=choices.pick(('"n"', "2", "1")))
    body = "\n            ".join(lines)
    return f"""@I.ir_module
class Module:
    @R.function
    def main({stated}):
        with R.dataflow():
            {body}
            out = R.add(v{len(lines) - 1}, v0)
            R.output(out)
        return out
"""
