"""One graph function while it is emitted: its values, the references it holds, the ways out."""

from __future__ import annotations

from collections.abc import Sequence

from weft.codegen.backends.llvm.asm.function import FunctionWriter, Size
from weft.codegen.backends.llvm.asm.instructions import call, icmp, load, select, store
from weft.codegen.backends.llvm.asm.module import ModuleWriter
from weft.codegen.backends.llvm.asm.program import Program, frame_word
from weft.codegen.backends.llvm.host.direct_outputs import direct_results
from weft.codegen.backends.llvm.host.values import Value, place, write
from weft.codegen.backends.llvm.kernel.kernel_entry import ENTRY_PARAMS
from weft.codegen.backends.llvm.math.arithmetic import Arithmetic
from weft.codegen.backends.llvm.values.memory import MemoryEmitter
from weft.codegen.host.program import HostFunction, HostProgram
from weft.codegen.host.signature import graph_symbol
from weft.errors import Span
from weft.ir.dim import DimExpr
from weft.ir.graph import Var
from weft.runtime.abi.frame import PLACE

__all__ = ["FunctionState"]


Known = tuple[dict[str, Size], dict[str, str], dict[DimExpr, Size], dict[Var, list[int]]]


class FunctionState:
    """What every part of the emitter of one graph function stands on."""

    def __init__(self, module: ModuleWriter, program: Program, host: HostProgram, function: HostFunction) -> None:
        self.module = module
        self.program = program
        self.host = host
        self.name = function.name
        self.function = function
        attributes = program.attributes(function.name)
        self.w = FunctionWriter(module, graph_symbol(function.name), "i32", ENTRY_PARAMS, attributes)
        self.arith = Arithmetic(self.w, "", program.strict_math, program.features)
        self.memory = MemoryEmitter(self.w)
        self.variables: dict[Var, Value] = {}
        self.symbols: dict[str, Size] = {}
        self.sources: dict[str, str] = {}
        self.sizes: dict[DimExpr, Size] = {}
        self.written: set[int] = set()  # the parameters that kernels write in place
        self.slots = 0  # how many references the function may hold
        self.held: dict[Var, list[int]] = {}
        self.direct = direct_results(function)
        self.status = self.w.alloca("i32", align=4)
        self.exit = self.w.label("exit")

    def leave(self, status: str) -> None:
        """Go to the way out with a status."""
        self.w.do(store("i32", status, self.status))
        self.w.jump(self.exit)

    # What is known at a place

    def known(self) -> Known:
        """Symbols, where each came from, sizes computed and references held up to here."""
        return dict(self.symbols), dict(self.sources), dict(self.sizes), dict(self.held)

    def forget_all_but(self, known: Known) -> None:
        """Go back to what was known: the code since then may not have run."""
        self.symbols, self.sources, self.sizes, self.held = (dict(part) for part in known)  # type: ignore[assignment]

    # References

    def hold(self, owner: str, var: Var | None = None) -> None:
        """Keep a reference in a new slot until the variable's last use, or to the end."""
        if var is not None:
            self.held.setdefault(var, []).append(self.slots)
        write(self.w, "%slots", self.slots, owner)
        self.slots += 1

    def drop(self, var: Var) -> None:
        """Release what a variable holds."""
        for slot in self.held.pop(var, ()):
            pointer = place(self.w, "%slots", slot)
            self.w.do(call("void", "@weft.release", [("ptr", self.w.emit(load("ptr", pointer)))]))
            self.w.do(store("i64", "0", pointer))

    # Failing

    def fail(
        self, kind: str, parts: Sequence[str | int], values: Sequence[Size], span: Span | None, code: str | None = None
    ) -> None:
        """Record a failure and leave."""
        self.program.fail(self.w, kind, parts, values, code=code, span=span)
        self.leave("1")

    def unless(
        self,
        condition: str,
        kind: str,
        parts: Sequence[str | int],
        values: Sequence[Size],
        span: Span | None,
        code: str | None = None,
    ) -> None:
        """Fail unless a condition holds."""
        bad, good = self.w.label("bad"), self.w.label("good")
        self.w.branch(condition, good, bad)
        self.w.open(bad)
        self.fail(kind, parts, values, span, code)
        self.w.open(good)

    def leave_if(self, status: str) -> None:
        """Leave with a status that is not 0."""
        self.pass_on(status)

    def pass_on(self, status: str, span: Span | None = None, *, placed: str = "") -> None:
        """Leave with a status that is not 0; the failure is also placed at the innermost call it happened in.

        `placed` is the kind of its site (KERNEL_CALL, GRAPH_CALL), nothing for what is no call.
        """
        bad, good = self.w.label("failed"), self.w.label("good")
        self.w.branch(self.w.emit(icmp("eq", "i32", status, "0")), good, bad)
        self.w.open(bad)
        if placed and span is not None:
            word = frame_word(self.w, PLACE)
            before = self.w.emit(load("i64", word))
            inner = self.w.emit(icmp("ne", "i64", before, "0"))
            here = self.program.place(placed, span) + 1
            self.w.do(store("i64", self.w.emit(select("i1", inner, "i64", before, here)), word))
        self.leave(status)
        self.w.open(good)
