"""Host programs: what the steps between kernels are, read once for all executors."""

from __future__ import annotations

import pytest

import weft
from weft.codegen.host.program import Alloc, Conditional, Extern, Free, HostFunction, Invoke, Launch, Match, View
from weft.codegen.host.read import read_function, read_program
from weft.errors import TargetError
from weft.ir import Function

HEAD = """from weft.script import ir as I, relax as R, tir as T

@I.ir_module
class M:
    @T.prim_func(private=True)
    def double(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
        for i in range(4):
            y[i] = x[i] + x[i]

    @R.function(pure=False)
    def main(x: R.Tensor((4,), "float32"), c: R.Tensor((), "bool")) -> R.Tensor((4,), "float32"):
"""


def read(body: str) -> HostFunction:
    module = weft.parse(HEAD + "".join(f"        {line}\n" for line in body.splitlines()))
    assert isinstance(module, weft.IRModule)
    lowered = weft.transform.LowerToMemory()(module)
    function = lowered["main"]
    assert isinstance(function, Function)
    return read_function("main", function, lowered.functions)


CHAIN = """y = R.call_tir(cls.double, (x,), out_ty=R.Tensor((4,), "float32"))
z = R.call_tir(cls.double, (y,), out_ty=R.Tensor((4,), "float32"))
return z"""


def test_kernels_are_launched_on_memory_that_is_freed_after_its_last_use() -> None:
    assert str(read(CHAIN)).splitlines() == [
        'func main(x: R.Tensor((4,), "float32"), c: R.Tensor((), "bool")) -> R.Tensor((4,), "float32")',
        "  y = alloc (4,) float32",
        "  launch double(x, y)",
        "  z = alloc (4,) float32",
        "  launch double(y, z)",
        "  free y",
        "  return z",
    ]


def test_both_bodies_of_a_conditional_are_programs_of_their_own() -> None:
    function = read("""if c:
    y = R.call_tir(cls.double, (x,), out_ty=R.Tensor((4,), "float32"))
else:
    y = x
return y""")
    (step,) = [step for step in function.body.steps if isinstance(step, Conditional)]
    assert [type(inner) for inner in step.then.steps[:2]] == [Alloc, Launch]
    assert not [inner for inner in step.other.steps if isinstance(inner, (Alloc, Launch))]
    assert "  y = if c" in str(function)
    assert "  else" in str(function)


def test_blocks_of_memory_hold_tensors_at_offsets() -> None:
    function = read("""s = R.memory.alloc_storage(R.shape([64]), 0, "global", "uint8")
y = R.memory.alloc_tensor(s, R.prim_value(16), R.shape([4]), dtype="float32")
cls.double(x, y)
z = R.memory.view(y, R.shape([2, 2]))
w = R.match_cast(z, R.Tensor((2, 2), "float32"))
R.memory.kill_storage(s)
return x""")
    block, place, _, view, match, freed, *_ = function.body.steps
    assert isinstance(block, Alloc)
    assert block.block
    assert str(place) == "y = view s + 16:int64 (4,) float32"
    assert isinstance(view, View)
    assert not view.block
    assert isinstance(freed, Free)
    assert freed.stated
    assert isinstance(match, Match)


def test_calls_out_say_what_comes_back() -> None:
    function = read("""y = R.call_packed("f", x, ty_args=R.Tensor((4,), "float32"))
z = R.call_dps_packed("g", (y,), out_ty=R.Tensor((4,), "float32"))
return z""")
    first, second = [step for step in function.body.steps if isinstance(step, Extern)]
    assert str(first) == 'y: R.Tensor((4,), "float32") = extern f(x)'
    assert str(second) == "extern g(y, z)"


def test_the_arguments_of_a_closure_may_be_a_tuple_that_has_a_name() -> None:
    function = read("""given = (x, c)
closure = R.call_packed("make", x)
y = R.invoke_closure(closure, given, ty_args=R.Tensor((4,), "float32"))
return y""")
    (step,) = [step for step in function.body.steps if isinstance(step, Invoke)]
    assert [str(arg) for arg in step.arguments] == ["given[0]", "given[1]"]


def test_a_local_function_is_refused_with_the_pass_that_lifts_it() -> None:
    with pytest.raises(TargetError, match="a local function has no compiled form") as caught:
        read("""@R.function(pure=False)
def inner(y: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
    return y
return inner(x)""")
    assert caught.value.code == "W743"


def test_a_program_has_all_graph_functions_and_kernels_of_a_module() -> None:
    module = weft.parse(HEAD + "        return x\n")
    assert isinstance(module, weft.IRModule)
    program = read_program(module)
    assert list(program.functions) == ["main"]
    assert list(program.kernels) == ["double"]
