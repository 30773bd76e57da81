"""Every rule for graph functions: a minimal module that breaks it, and modules that break none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft.errors import Source, Span, VerifyError
from weft.ir import Finding, IRModule, assert_well_formed, verify
from weft.ir.dim import symbol
from weft.ir.graph import (
    BindingBlock,
    Call,
    Constant,
    DataflowBlock,
    DataflowVar,
    Expr,
    ExternFunc,
    Function,
    GlobalVar,
    If,
    MatchCast,
    Op,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    Tuple,
    Var,
    VarBinding,
)
from weft.ir.node import FrozenMap
from weft.ir.op import get_op
from weft.ir.tensor import Buffer, BufferLoad, BufferStore, Evaluate, FloatImm, For, IntImm, PrimFunc, PrimVar, SeqStmt
from weft.ir.types import FuncType, PrimType, ShapeType, TensorType, TupleType, Type
from weft.ir.verify import CHECKS

n, m = symbol("n"), symbol("m")
T44 = TensorType((4, 4), "float32")
TN4 = TensorType((n, 4), "float32")
VOID = TupleType(())


def call(name: str, *args: Any, **attrs: Any) -> Call:
    return get_op(name).bind(args, attrs)


def function(
    params: list[Var], blocks: list[BindingBlock], body: Expr, ret: Type | None = T44, **options: Any
) -> Function:
    return Function(tuple(params), SeqExpr(tuple(blocks), body), ret, **options)  # type: ignore[arg-type]


def chain(*bindings: Any, dataflow: bool = False) -> BindingBlock:
    block = DataflowBlock if dataflow else BindingBlock
    return block(tuple(VarBinding(*item) if isinstance(item, tuple) else item for item in bindings))


def x44(name: str = "x") -> Var:
    return Var(name, T44)


def codes(value: Any) -> list[str]:
    return [finding.code for finding in verify(value)]


def used_before_definition() -> Any:
    x, y, z = x44(), x44("y"), x44("z")
    return function([x], [chain((y, call("exp", z)), (z, call("exp", x)))], y)


def used_after_its_branch() -> Any:
    x, c, y, inner = x44(), Var("c", TensorType((), "bool")), x44("y"), x44("inner")
    then = SeqExpr((chain((inner, call("exp", x))),), inner)
    return function([x, c], [chain((y, If(c, then, SeqExpr((), x))))], inner)


def defined_twice() -> Any:
    x, y = x44(), x44("y")
    return function([x], [chain((y, call("exp", x)), (y, call("exp", x)))], y)


def dataflow_variable_leaves() -> Any:
    x, y = x44(), DataflowVar("y", T44)
    return function([x], [chain((y, call("exp", x)), dataflow=True)], y)


def shared_parameter() -> Any:
    x = x44()
    return IRModule({"f": function([x], [], x), "g": function([x], [], x)})


def dataflow_parameter() -> Any:
    x = DataflowVar("x", T44)
    return function([x], [], x)


def dataflow_variable_in_plain_block() -> Any:
    x, y = x44(), DataflowVar("y", T44)
    return function([x], [chain((y, call("exp", x)))], x)


def symbol_without_value() -> Any:
    x, y = x44(), Var("y", TensorType((m, 4), "float32"))
    return function([x], [chain((y, call("zeros", ShapeExpr((m, 4)), dtype="float32")))], x)


def symbol_only_in_a_quotient() -> Any:
    x = Var("x", TensorType((n // 2, 4), "float32"))
    return function([x], [], x, TensorType((n // 2, 4), "float32"))


def symbol_only_in_the_result() -> Any:
    x = x44()
    return function([x], [], x, TensorType((m, 4), "float32"))


def dataflow_variable_in_a_type() -> Any:
    x, s = x44(), DataflowVar("s", ShapeType((4, 4)))
    y = DataflowVar("y", TensorType(s, "float32"))
    return function([x], [chain((s, ShapeExpr((4, 4))), MatchCast(y, x, TensorType(s, "float32")), dataflow=True)], x)


def unknown_function() -> Any:
    x, y = x44(), x44("y")
    return IRModule({"main": function([x], [chain((y, Call(GlobalVar("nowhere"), (x,))))], x)})


def attribute_of_another_type() -> Any:
    x = x44()
    return function([x], [], x).with_attr("tir_var_upper_bound", {"n": "many"})


def nested_call() -> Any:
    x, y = x44(), x44("y")
    return function([x], [chain((y, call("exp", call("exp", x))))], y)


def if_in_dataflow() -> Any:
    x, c, y = x44(), Var("c", TensorType((), "bool")), DataflowVar("y", T44)
    return function([x, c], [chain((y, If(c, SeqExpr((), x), SeqExpr((), x))), dataflow=True)], x)


def sequence_as_value() -> Any:
    x, y = x44(), x44("y")
    return function([x], [chain((y, SeqExpr((), x)))], y)


def kernel_as_value() -> Any:
    x, y = x44(), Var("y", FuncType((), VOID, False))
    return function([x], [chain((y, PrimFunc((), Evaluate(IntImm(0)))))], x)


def result_is_a_call() -> Any:
    x = x44()
    return function([x], [], call("exp", x))


def effect_in_dataflow() -> Any:
    x, u = x44(), DataflowVar("_", VOID)
    return function([x], [chain((u, Call(ExternFunc("f"), (x,), ty_args=(VOID,))), dataflow=True)], x, pure=False)


def effect_in_pure_function() -> Any:
    x, u = x44(), Var("_", VOID)
    return function([x], [chain((u, Call(ExternFunc("f"), (x,), ty_args=(VOID,))))], x)


def missing_type() -> Any:
    x, y = x44(), Var("y")
    return function([x], [chain((y, call("exp", x)))], x)


def missing_result_type() -> Any:
    x = x44()
    return function([x], [], x, None)


def impossible_match_cast() -> Any:
    x, y = x44(), Var("y", TensorType((4, 4), "int32"))
    return function([x], [chain(MatchCast(y, x, TensorType((4, 4), "int32")))], x)


def kernel_without_output() -> Any:
    a, b = Buffer("a", (4, 4)), Buffer("b", (4, 4))
    kernel = PrimFunc((a, b), Evaluate(BufferLoad(a, (IntImm(0), IntImm(0)))))
    return calls_kernel(kernel)


def calls_kernel(kernel: PrimFunc) -> IRModule:
    x, y = x44(), x44("y")
    body = call("call_tir", GlobalVar("k"), (x,), out_ty=T44)
    return IRModule({"k": kernel, "main": function([x], [chain((y, body))], y)})


def kernel_that_writes_its_input() -> Any:
    i, a, b = PrimVar("i"), Buffer("a", (4, 4)), Buffer("b", (4, 4))
    body = For(i, 0, 4, SeqStmt((BufferStore(b, FloatImm(1.0), (i, i)), BufferStore(a, FloatImm(0.0), (i, i)))))
    return calls_kernel(PrimFunc((a, b), body))


def wrong_global_symbol() -> Any:
    x = x44()
    return IRModule({"main": function([x], [], x, attrs=FrozenMap({"global_symbol": "other"}))})


BROKEN: list[tuple[str, Callable[[], Any]]] = [
    ("W401", used_before_definition),
    ("W401", used_after_its_branch),
    ("W402", defined_twice),
    ("W403", dataflow_variable_leaves),
    ("W404", shared_parameter),
    ("W405", dataflow_parameter),
    ("W405", dataflow_variable_in_plain_block),
    ("W406", symbol_without_value),
    ("W406", symbol_only_in_a_quotient),
    ("W406", symbol_only_in_the_result),
    ("W407", dataflow_variable_in_a_type),
    ("W408", unknown_function),
    ("W410", nested_call),
    ("W411", if_in_dataflow),
    ("W412", sequence_as_value),
    ("W413", kernel_as_value),
    ("W414", result_is_a_call),
    ("W420", effect_in_dataflow),
    ("W421", effect_in_pure_function),
    ("W430", missing_type),
    ("W431", missing_result_type),
    ("W432", impossible_match_cast),
    ("W433", kernel_without_output),
    ("W434", wrong_global_symbol),
    ("W435", kernel_that_writes_its_input),
    ("W436", attribute_of_another_type),
]


@pytest.mark.parametrize(("code", "build"), BROKEN, ids=lambda value: getattr(value, "__name__", value))
def test_a_module_that_breaks_a_rule_is_reported_under_its_code(code: str, build: Callable[[], Any]) -> None:
    assert code in codes(build())


def test_every_rule_for_graph_functions_is_tested() -> None:
    assert {code for code in CHECKS if code < "W450"} == {code for code, _ in BROKEN}


@pytest.mark.parametrize(
    "build",
    [
        pytest.param(lambda x, y: [(y, call("exp", x))], id="an operator"),
        pytest.param(lambda x, y: [(y, call("add", x, Constant(np.ones((4, 4), "float32"))))], id="a constant"),
    ],
)
def test_a_well_formed_function_has_no_findings(build: Callable[..., Any]) -> None:
    x, y = x44(), x44("y")
    assert verify(function([x], [chain(*build(x, y))], y)) == []


@pytest.mark.parametrize(
    ("declared", "code"),
    [
        (TensorType((4, 5), "float32"), "W210"),
        (TensorType((4, 4), "int32"), "W320"),
        (TensorType((4,), "float32"), "W210"),
    ],
)
def test_an_annotation_that_is_wrong_keeps_the_code_of_deduction(declared: Type, code: str) -> None:
    x, y = x44(), Var("y", declared)
    assert codes(function([x], [chain((y, call("exp", x)))], x)) == [code]


def test_a_wrong_result_type_is_reported() -> None:
    x = Var("x", TN4)
    findings = verify(function([x], [], x, TensorType((n, 5), "float32")))
    assert [finding.code for finding in findings] == ["W210"]
    assert "the declared result" in findings[0].message


def test_a_call_with_wrong_arguments_is_reported() -> None:
    a, x, y = x44("a"), Var("x", TensorType((2, 2), "float32")), x44("y")
    module = IRModule(
        {
            "g": function([a], [], a),
            "main": function([x], [chain((y, Call(GlobalVar("g"), (x,))))], y),
        }
    )
    assert codes(module) == ["W202"] or codes(module) == ["W201"]


def test_a_kernel_call_that_contradicts_the_kernel_is_reported() -> None:
    x, y = x44(), x44("y")
    i, a, b = PrimVar("i"), Buffer("a", (4,)), Buffer("b", (4,))
    kernel = PrimFunc((a, b), For(i, 0, 4, BufferStore(b, BufferLoad(a, (i,)), (i,))))
    bad = call("call_tir", GlobalVar("k"), (x,), out_ty=T44)
    assert codes(IRModule({"k": kernel, "main": function([x], [chain((y, bad))], y)})) == ["W202"]


@pytest.mark.parametrize(
    ("rows", "update", "expected"),
    [(4, False, []), (3, False, ["W433"]), (4, True, ["W433"])],
    ids=["all rows", "the last row is missing", "init is missing"],
)
def test_an_output_that_a_kernel_cannot_set_is_reported(rows: int, update: bool, expected: list[str]) -> None:
    i, j, a, b = PrimVar("i"), PrimVar("j"), Buffer("a", (4, 4)), Buffer("b", (4, 4))
    value = BufferLoad(a, (i, j)) + BufferLoad(b if update else a, (i, j))
    kernel = PrimFunc((a, b), For(i, 0, rows, For(j, 0, 4, BufferStore(b, value, (i, j)))))
    assert codes(calls_kernel(kernel)) == expected


def test_symbols_come_from_match_cast_and_from_results() -> None:
    x, y = Var("x", TensorType(None, "float32", 2)), Var("y", TensorType((m, 4), "float32"))
    z = Var("z", TensorType((m, 4), "float32"))
    body = [
        chain(MatchCast(y, x, TensorType((m, 4), "float32")), (z, call("zeros", ShapeExpr((m, 4)), dtype="float32")))
    ]
    assert verify(function([x], body, z, TensorType((m, 4), "float32"))) == []


def test_a_scalar_over_an_unknown_symbol_is_reported() -> None:
    x, p = x44(), Var("p", PrimType("int64"))
    assert codes(function([x], [chain((p, PrimValue(m)))], x)) == ["W406"]


def test_a_local_function_sees_what_is_around_it_and_itself() -> None:
    x, z, inner, out = x44(), x44("z"), Var("inner", FuncType((T44,), T44)), x44("out")
    again = x44("again")
    local = function([z], [chain((again, Call(inner, (x,))))], again)
    assert verify(function([x], [chain((inner, local), (out, Call(inner, (x,))))], out)) == []


def test_the_explicit_memory_form_is_well_formed_in_a_pure_function() -> None:
    x, alloc, u, v = x44(), x44("alloc"), Var("_", VOID), Var("_", VOID)
    i, a, b = PrimVar("i"), Buffer("a", (4, 4)), Buffer("b", (4, 4))
    kernel = PrimFunc((a, b), For(i, 0, 4, BufferStore(b, BufferLoad(a, (i, i)), (i, i))))
    bindings = [
        (alloc, call("builtin.alloc_tensor", ShapeExpr((4, 4)), dtype="float32", runtime_device_index=0)),
        (u, Call(GlobalVar("k"), (x, alloc))),
        (v, Call(ExternFunc("f"), (x, alloc), FrozenMap({"dps": True}), (VOID,))),
    ]
    assert verify(IRModule({"k": kernel, "main": function([x], [chain(*bindings)], alloc)})) == []


def test_an_operator_that_is_not_declared_has_effects() -> None:
    x, y = x44(), x44("y")
    found = codes(function([x], [chain((y, Call(Op("mystery.op"), (x,))))], y))
    assert "W421" in found


def test_all_findings_are_reported_and_the_first_is_raised() -> None:
    x, y, z = x44(), x44("y"), DataflowVar("z", T44)
    broken = function([x], [chain((y, call("exp", z)), (y, call("exp", x)))], Tuple((y,)), T44)
    found = codes(broken)
    assert {"W401", "W402", "W210"} <= set(found)
    with pytest.raises(VerifyError) as caught:
        assert_well_formed(broken)
    assert caught.value.code == found[0]
    assert len([note for note in caught.value.notes if note.startswith("also ")]) == len(found) - 1


def test_a_function_alone_may_name_functions_that_are_not_there() -> None:
    x, y = x44(), x44("y")
    assert verify(function([x], [chain((y, Call(GlobalVar("elsewhere"), (x,))))], x)) == []


def test_a_finding_has_a_caret_a_function_a_path_and_a_reason() -> None:
    source = Source("model.py", "y = exp(z)")
    x, y, z = x44(), x44("y"), Var("z", T44, span=Span(source, 8, 9))
    finding = verify(IRModule({"main": function([x], [chain((y, call("exp", z)))], y)}))[0]
    assert isinstance(finding, Finding)
    assert (finding.function, finding.path, finding.reason) == ("main", "y", CHECKS["W401"])
    assert "model.py:1:9" in str(finding)
    data = finding.to_json()
    assert (data["code"], data["line"], data["column"], data["function"]) == ("W401", 1, 9, "main")


def test_assert_well_formed_says_nothing_about_a_good_module() -> None:
    assert_well_formed(IRModule({}))


def test_ten_thousand_bindings_verify_in_linear_time() -> None:
    import time

    def long(count: int) -> IRModule:
        x = Var("x", TN4)
        current, bindings = x, []
        for index in range(count):
            var = DataflowVar(f"v{index}", TN4)
            bindings.append((var, call("add", current, x)))
            current = var
        out = Var("out", TN4)
        return IRModule({"main": function([x], [chain(*bindings, (out, current), dataflow=True)], out, TN4)})

    def seconds(module: IRModule) -> float:
        start = time.process_time()
        assert verify(module) == []
        return time.process_time() - start

    verify(long(10))
    small, large = seconds(long(1000)), seconds(long(10_000))
    assert large < 40 * small + 0.5


def test_a_script_is_well_formed() -> None:
    module = weft.parse("""
@I.ir_module
class Module:
    @T.prim_func
    def scale(x: T.Buffer(("n", 4), "float32"), y: T.Buffer(("n", 4), "float32")):
        for i, j in T.grid(n, 4):
            with T.block("scale"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(x[vi, vj])
                T.writes(y[vi, vj])
                y[vi, vj] = x[vi, vj] * T.float32(2)

    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), c: R.Tensor((), "bool")) -> R.Tensor(("n", 4), "float32"):
        cls = Module
        with R.dataflow():
            h = R.add(x, x)
            y = R.call_tir(cls.scale, (h,), out_ty=R.Tensor((n, 4), "float32"))
            R.output(y)
        if c:
            z = R.exp(y)
        else:
            z = y
        return z
""")
    assert verify(module) == []
