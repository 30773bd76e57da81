"""Lowering hooks, code generators and the merge of what they return, with a kind from outside the package."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.plugins import toy_accelerator

import weft
from weft import Artifact, ArtifactSet
from weft.codegen.backends.generators import generate_artifacts
from weft.errors import ArtifactError, PassError, TargetError, WeftError
from weft.ir import Function, GlobalVar, IRModule, PrimFunc, structural_hash
from weft.ir.verify import assert_well_formed
from weft.runtime.artifact import Symbol
from weft.target import Target, TargetKind
from weft.transform import Pipeline, default_pipeline

MODEL = """
@I.ir_module
class Module:
    @R.function(private=True)
    def block(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        R.func_attr({"target": "acc"})
        y = R.exp(x)
        z = R.add(y, x)
        return z

    @R.function(private=True)
    def other(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        R.func_attr({"target": "acc2"})
        y = R.tanh(x)
        return y

    @R.function
    def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        a = R.multiply(x, x)
        b = Module.block(a)
        c = Module.other(b)
        d = R.add(c, a)
        return d
"""
KERNEL = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def {name}(x: T.handle, y: T.handle):
        n = T.int64()
        X = T.match_buffer(x, (n, {columns}), "{dtype}")
        Y = T.match_buffer(y, (n, {columns}), "{dtype}")
        for i, j in T.grid(n, {columns}):
            Y[i, j] = {value}
"""
TARGET = "host: llvm; acc: toy; acc2: toy2"


@pytest.fixture
def toy() -> Iterator[TargetKind]:
    with toy_accelerator.installed() as kind:
        yield kind


@pytest.fixture
def toy2() -> Iterator[TargetKind]:
    with toy_accelerator.installed("toy2") as kind:
        yield kind


def parse(text: str) -> IRModule:
    found = weft.parse(text)
    assert isinstance(found, IRModule)
    return found


def kernel(name: str, value: str, dtype: str = "float32", columns: int = 4) -> IRModule:
    return parse(KERNEL.format(name=name, value=value, dtype=dtype, columns=columns))


def lowered(text: str = MODEL, target: str = TARGET) -> IRModule:
    new = default_pipeline(Target(target))(parse(text))
    assert_well_formed(new)
    return new


def run(module: IRModule, x: np.ndarray) -> np.ndarray:
    return weft.compile(module, pipeline=Pipeline([]), trust=True)["main"](x)


X = np.linspace(-1, 1, 12, dtype="float32").reshape(3, 4)


def expected(x: np.ndarray) -> np.ndarray:
    a = x * x
    return np.tanh(np.exp(a) + a) + a


def test_the_form_of_a_lowering_hook_is_checked_when_it_is_registered(toy: TargetKind) -> None:
    """B2: a module and a function go in."""
    wrong: Any = lambda module: module
    with pytest.raises(TargetError, match="lowering hook of target kind 'toy' must take 2 arguments") as caught:
        toy.lowering(wrong)
    assert caught.value.code == "W706"
    nothing: Any = 5
    with pytest.raises(TargetError, match=r"W706: the lowering hook of .* got no function but 5"):
        toy.lowering(nothing)
    toy.lowering(toy_accelerator.lower)
    assert toy.lowering_hook is toy_accelerator.lower


def test_a_lowering_hook_gets_whole_operators_while_the_host_is_legalized(toy: TargetKind, toy2: TargetKind) -> None:
    """B2: the function comes with its operators, and the module around it to look at."""
    seen: list[tuple[str, set[str]]] = []

    @toy.lowering
    def lower(module: IRModule, function: Function) -> tuple[IRModule, GlobalVar]:
        seen.append((function.script(), set(module)))
        return toy_accelerator.lower(module, function)

    toy2.lowering(toy_accelerator.lower)
    lowered()
    ((text, names),) = seen
    assert "R.exp(x)" in text
    assert "R.add(y, x)" in text
    assert {"main", "block", "other", "multiply", "add"} <= names


def test_the_module_that_a_hook_looks_at_cannot_be_changed(toy: TargetKind, toy2: TargetKind) -> None:
    """B3: every way to change it raises, and its hash stays."""
    hashes = []

    @toy.lowering
    def lower(module: IRModule, function: Function) -> tuple[IRModule, GlobalVar]:
        hashes.append(structural_hash(module))
        with pytest.raises((AttributeError, TypeError)):
            module.functions = {}  # type: ignore[misc]
        with pytest.raises(TypeError):
            module.functions["main"] = function  # type: ignore[index]
        with pytest.raises((AttributeError, TypeError)):
            function.params[0].name = "other"  # type: ignore[misc]
        with pytest.raises(TypeError):
            del function.attrs["target"]  # type: ignore[attr-defined]
        hashes.append(structural_hash(module))
        return toy_accelerator.lower(module, function)

    toy2.lowering(toy_accelerator.lower)
    lowered()
    assert len(hashes) == 2
    assert hashes[0] == hashes[1]


def test_a_hook_may_return_several_functions_and_names_the_top_one(toy: TargetKind, toy2: TargetKind) -> None:
    """B4: three functions come back, and the steps of the top one stand where it was called."""
    returned: list[IRModule] = []

    @toy.lowering
    def lower(module: IRModule, function: Function) -> tuple[IRModule, GlobalVar]:
        made, top = toy_accelerator.lower(module, function)
        returned.append(made)
        return made, top

    toy2.lowering(toy_accelerator.lower)
    new = lowered()
    assert [type(function) for _, function in returned[0].items()] == [Function, PrimFunc, PrimFunc]
    kernels = [name for name, function in returned[0].items() if isinstance(function, PrimFunc)]
    assert all(f"cls.{name}(" in new["main"].script() for name in kernels)
    assert not {"block", "entry"} & set(new)
    np.testing.assert_allclose(run(new, X), expected(X), rtol=1e-6)


def test_the_name_that_a_hook_returns_decides_among_functions_of_one_form(toy: TargetKind, toy2: TargetKind) -> None:
    """B4: whatever their order, and whatever else could be called."""

    @toy.lowering
    def lower(module: IRModule, function: Function) -> tuple[IRModule, GlobalVar]:
        made, top = toy_accelerator.lower(module, function)
        other = kernel("first", "X[i, j] * X[i, j]")["first"]
        return IRModule({"first": other, **dict(made.items()), "last": other}), top

    toy2.lowering(toy_accelerator.lower)
    np.testing.assert_allclose(run(lowered(), X), expected(X), rtol=1e-6)


def test_a_kernel_may_stand_for_a_graph_function(toy: TargetKind, toy2: TargetKind) -> None:
    """B4: it is called with the inputs and the result."""
    toy.lowering(lambda module, function: (kernel("fast", "T.exp(X[i, j]) + X[i, j]"), GlobalVar("fast")))
    toy2.lowering(lambda module, function: (kernel("quick", "T.tanh(X[i, j])"), GlobalVar("quick")))
    new = lowered()
    assert "cls.fast(a, b)" in new["main"].script()
    np.testing.assert_allclose(run(new, X), expected(X), rtol=1e-6)


def test_a_public_function_keeps_its_name_and_form(toy: TargetKind, toy2: TargetKind) -> None:
    """B4: callers from outside find the function that they knew."""
    toy.lowering(lambda module, function: (kernel("fast", "T.exp(X[i, j]) + X[i, j]"), GlobalVar("fast")))
    toy2.lowering(toy_accelerator.lower)
    new = lowered(MODEL.replace("@R.function(private=True)", "@R.function", 1))
    assert isinstance(new["block"], Function)
    np.testing.assert_allclose(run(new, X), expected(X), rtol=1e-6)
    out = weft.compile(new, pipeline=Pipeline([]))["block"](X)
    np.testing.assert_allclose(out, np.exp(X) + X, rtol=1e-6)


BREACHES = {
    "missing": (lambda m, f: (kernel("fast", "X[i, j]"), GlobalVar("fats")), "names 'fats', which is not in the"),
    "tuple": (lambda m, f: kernel("fast", "X[i, j]"), r"must return \(IRModule, GlobalVar\), it returned an IRModule"),
    "none": (lambda m, f: None, r"must return \(IRModule, GlobalVar\), it returned None"),
    "name": (lambda m, f: (m, "fast"), r"must return \(IRModule, GlobalVar\), it returned an IRModule, a str"),
    "dtype": (
        lambda m, f: (kernel("fast", "X[i, j]", "float64"), GlobalVar("fast")),
        "another signature: .*float64",
    ),
    "size": (lambda m, f: (kernel("fast", "X[i, j]", columns=5), GlobalVar("fast")), "size 5 in place of 4"),
    "count": (
        lambda m, f: (weft.ir.replace(m, functions={**m.functions, "more": m["multiply"]}), GlobalVar("more")),
        "a function of 3 tensors in place of 2",
    ),
    "operators": (
        lambda m, f: (IRModule({"again": weft.ir.replace(f, name="again")}), GlobalVar("again")),
        "left operators in 'again': add, exp",
    ),
}


@pytest.mark.parametrize("breach", BREACHES)
def test_a_breach_of_the_contract_is_an_error(toy: TargetKind, toy2: TargetKind, breach: str) -> None:
    """B5: no such global variable, another signature, operators left; target and function are named."""
    hook, message = BREACHES[breach]
    toy.lowering(hook)
    with pytest.raises(PassError, match=f"the lowering hook of toy for function 'block' .*{message}") as caught:
        lowered()
    assert caught.value.code == "W562"


def test_names_that_two_hooks_share_are_renamed(toy: TargetKind, toy2: TargetKind) -> None:
    """B6: both return `helper`; each caller gets its own, and both run right."""
    toy.lowering(lambda module, function: (kernel("helper", "T.exp(X[i, j]) + X[i, j]"), GlobalVar("helper")))
    toy2.lowering(lambda module, function: (kernel("helper", "T.tanh(X[i, j])"), GlobalVar("helper")))
    new = lowered()
    text = new["main"].script()
    assert "cls.helper(a, b)" in text
    assert "cls.helper_1(b, c)" in text
    np.testing.assert_allclose(run(new, X), expected(X), rtol=1e-6)


def test_a_hook_cannot_take_over_a_public_name(toy: TargetKind, toy2: TargetKind) -> None:
    """B7: a different public function of a name that is taken is an error; an equal one is shared."""
    public = KERNEL.replace("(private=True)", "")

    def returning(value: str) -> Any:
        made = parse(public.format(name="shared", value=value, dtype="float32", columns=4))
        return lambda module, function: (made, GlobalVar("shared"))

    toy.lowering(returning("T.tanh(X[i, j])"))
    toy2.lowering(returning("T.tanh(X[i, j])"))
    assert [name for name in lowered() if name.startswith("shared")] == ["shared"]
    toy2.lowering(returning("T.exp(X[i, j])"))
    with pytest.raises(PassError, match="different public function 'shared'") as caught:
        lowered()
    assert caught.value.code == "W530"


LIBRARY = """
@T.prim_func
def library(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")):
    for i in range(64):
        y[i] = x[i] * T.float32({})
"""
USING = """
@I.ir_module
class Module:{}
    @R.function(private=True)
    def block(x: R.Tensor((64,), "float32")):
        R.func_attr({{"target": "toy"}})
        y = R.exp(x)
        return y

    @R.function
    def main(x: R.Tensor((64,), "float32")):
        a = R.call_tir(Module.library, (x,), out_ty=R.Tensor((64,), "float32"))
        b = Module.block(a)
        return b
"""


@pytest.mark.parametrize("opt", [0, 2])
@pytest.mark.parametrize("staged", [False, True])
def test_a_public_function_is_recognised_as_it_was_written(toy: TargetKind, opt: int, staged: bool) -> None:
    """B7: a hook returns it as the user wrote it, when the module's has been scheduled; another one is refused."""
    target, factor = "host: llvm; toy: toy", [2]

    @toy.lowering
    def lower(module: IRModule, function: Function) -> tuple[IRModule, GlobalVar]:
        made, top = toy_accelerator.lower(module, function)
        library = weft.parse(LIBRARY.format(factor[0]))
        return made.with_functions({**made.functions, "library": library}), top  # type: ignore[dict-item]

    module = parse(USING.format("".join(f"\n    {line}" for line in LIBRARY.format(2).splitlines())))
    start = None
    if staged:
        module, start = parse(weft.lower(module, target, stop="schedule", opt=opt).script()), "lower"
    x = np.linspace(-1, 1, 64, dtype="float32")
    got = weft.compile(module, target, opt=opt, start=start)["main"](x)
    np.testing.assert_allclose(got, np.exp(2 * x), rtol=1e-5)
    factor[0] = 3
    with pytest.raises(PassError) as caught:
        weft.compile(module, target, opt=opt, start=start)
    assert caught.value.code == "W530"


def test_the_suffix_of_a_name_is_its_counter() -> None:
    """B8: func12 is followed by func14 where func13 is taken."""
    function = kernel("f", "X[i, j]")["f"]
    module = IRModule(dict.fromkeys(("func12", "func13", "func4"), function))
    assert module.fresh_name("func12") == "func14"
    assert module.fresh_name("func4") == "func5"
    assert module.fresh_name("func") == "func"


def test_a_code_generator_gets_its_functions_and_its_target(toy: TargetKind, toy2: TargetKind) -> None:
    """B10: the artifacts stand in the module, and the host calls their symbols."""
    seen: list[tuple[list[str], Target]] = []

    @toy.codegen
    def generate(module: IRModule, target: Target) -> list[Artifact]:
        seen.append((list(module), target))
        return toy_accelerator.compile_functions(module, target)

    toy.lowering(lambda module, function: (kernel("fast", "T.exp(X[i, j]) + X[i, j]"), GlobalVar("fast")))
    toy2.lowering(toy_accelerator.lower)
    target = "host: llvm; acc: toy -lanes=8; acc2: toy2"
    before = lowered(target=target)
    new = generate_artifacts(before, Target(target))
    assert_well_formed(new)
    assert seen == [(["fast"], Target("toy -lanes=8"))]
    assert "fast" not in new
    assert 'R.call_packed("fast", a, b' in new["main"].script()
    (artifact,) = new.attrs["artifacts"].values()
    assert (artifact.codegen, Target(artifact.target)) == ("toy", Target("toy -lanes=8"))
    assert [symbol.name for symbol in artifact.provides] == ["fast"]

    # What the symbol stands for is supplied by the device; here a function of the host plays its part.
    calls = []

    def device(x: np.ndarray, y: np.ndarray) -> None:
        calls.append(x.shape)
        y[...] = np.exp(x) + x

    weft.register_func("fast", device, override=True)
    np.testing.assert_allclose(run(new, X), expected(X), rtol=1e-6)
    assert calls == [(3, 4)]


def test_artifacts_of_several_code_generators_are_ordered_by_name() -> None:
    """B10: whatever the order of the parts."""
    orders = []
    for target in ("host: llvm; acc: toy; acc2: toy2", "host: llvm; acc2: toy2; acc: toy"):
        with toy_accelerator.installed() as one, toy_accelerator.installed("toy2") as two:
            for kind, value in ((one, "T.exp(X[i, j]) + X[i, j]"), (two, "T.tanh(X[i, j])")):
                made = kernel(f"{kind.name}_kernel", value)
                kind.lowering(lambda module, function, made=made: (made, GlobalVar(next(iter(made)))))
                kind.codegen(toy_accelerator.named)
            orders.append(generate_artifacts(lowered(target=target), target).attrs["artifacts"])
    assert orders[0].names == orders[1].names == ("toy.bin", "toy2.bin")
    assert orders[0] == orders[1]


def test_a_target_without_code_generators_leaves_the_module(toy: TargetKind, toy2: TargetKind) -> None:
    """B10: the code generator belongs to the kind, not to an attribute of functions."""
    toy.lowering(toy_accelerator.lower)
    toy2.lowering(toy_accelerator.lower)
    module = lowered()
    assert generate_artifacts(module, TARGET) is module


@pytest.mark.parametrize("provided", [(), ("fats",)])
def test_a_code_generator_provides_what_it_promised(
    toy: TargetKind, toy2: TargetKind, provided: tuple[str, ...]
) -> None:
    """B11: the error names the symbol and the code generator."""
    toy.lowering(lambda module, function: (kernel("fast", "T.exp(X[i, j])"), GlobalVar("fast")))
    toy2.lowering(toy_accelerator.lower)
    toy.codegen(lambda module, target: Artifact("toy", "a.bin", b"", provides=tuple(map(Symbol, provided))))
    with pytest.raises(ArtifactError) as caught:
        generate_artifacts(lowered(), TARGET)
    assert caught.value.code == "W817"
    assert "code generator of toy (part 'acc') does not provide fast" in caught.value.message
    assert caught.value.hint == f"it provides {', '.join(provided) or 'nothing'}"


@pytest.mark.parametrize("returned", [b"bytes", None, [1], "text"])
def test_a_code_generator_returns_artifacts(toy: TargetKind, toy2: TargetKind, returned: object) -> None:
    """B11: anything else is refused."""
    toy.lowering(lambda module, function: (kernel("fast", "X[i, j]"), GlobalVar("fast")))
    toy2.lowering(toy_accelerator.lower)
    toy.codegen(lambda module, target: returned)
    with pytest.raises(ArtifactError, match=r"code generator of toy .* must return artifacts") as caught:
        generate_artifacts(lowered(), TARGET)
    assert caught.value.code == "W816"


def test_artifacts_of_a_module_are_kept_when_more_join() -> None:
    """B10: and they are part of what makes two modules equal."""
    with toy_accelerator.installed() as toy:
        toy.codegen(toy_accelerator.compile_functions)
        old = Artifact("note", "readme.txt", b"text")
        module = kernel("fast", "X[i, j]").with_attr("artifacts", ArtifactSet([old]))
        new = generate_artifacts(module, "toy")
    assert new.attrs["artifacts"].names == ("readme.txt", "toy.bin")
    assert len(new) == 0
    assert not weft.structural_equal(new, new.with_attr("artifacts", ArtifactSet([old])))


def test_artifacts_are_part_of_the_text_of_a_module() -> None:
    """C1, C3: kind, target, symbols and data are printed, and read back into equal artifacts."""
    artifact = Artifact(
        "toy-program",
        "toy.bin",
        bytes(range(256)),
        target=Target("c").to_json(),
        codegen="toy",
        provides=(Symbol("fast", "void fast(float *)"),),
        needs=(Symbol("exp"),),
        provenance={"flags": {"level": [1]}},
    )
    module = kernel("fast", "X[i, j]").with_attr("artifacts", ArtifactSet([artifact]))
    text = module.script()
    for part in ("I.artifacts([", '"kind": "toy-program"', '"fast"', '"name": "toy.bin"'):
        assert part in text
    again = parse(text)
    assert again.attrs["artifacts"] == module.attrs["artifacts"]
    assert again.attrs["artifacts"]["toy.bin"].data == artifact.data
    assert again.script() == text
    assert structural_hash(again) == structural_hash(module)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        ("3", "W113"),
        ("[3]", "W113"),
        ("[{}]", "W810"),
        ('[{"data": "!"}]', "W810"),
        (
            '[{"kind": "c", "name": "../a", "target": "", "provides": [], "needs": [], "codegen": "", "loader": "",'
            ' "provenance": {}, "serialisable": True, "data": ""}]',
            "W810",
        ),
        (
            '[{"kind": "c", "name": "a", "target": "", "provides": [3], "needs": [], "codegen": "", "loader": "",'
            ' "provenance": {}, "serialisable": True, "data": ""}]',
            "W810",
        ),
        (
            '[{"kind": "c", "name": "a", "target": "", "provides": [], "needs": [], "codegen": "", "loader": "",'
            ' "provenance": 3, "serialisable": True, "data": "", "more": 1}]',
            "W810",
        ),
    ],
)
def test_hostile_artifacts_in_a_text_are_refused(data: str, code: str) -> None:
    """C3: with the place in the text."""
    with pytest.raises(WeftError) as caught:
        parse(f'@I.ir_module\nclass Module:\n    I.module_attrs({{"artifacts": I.artifacts({data})}})\n')
    assert caught.value.code == code
    assert caught.value.span is not None
