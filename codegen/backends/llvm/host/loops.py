"""Loops of graph functions: the carried values stand in a block of words, which each iteration replaces.

    state ::= the words of the carried values, in the layout of their types
    slot  ::= one for each tensor of the state, with the reference that the state holds of it

An iteration calls the body as any function is called, stores what it gave into the state, and releases what the state
held before. Two buffers for each tensor of the state are made before the loop: the body writes into the one that
nothing else refers to, where it makes its result itself, so that an iteration allocates nothing for what it carries.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.codegen.backends.llvm.asm.instructions import binary, call, cast, icmp, load, select, store
from weft.codegen.backends.llvm.asm.program import frame_word
from weft.codegen.backends.llvm.host.calls import Wanted, call_value
from weft.codegen.backends.llvm.host.direct_outputs import direct_results, result_words
from weft.codegen.backends.llvm.host.operands import OperandEmitter
from weft.codegen.backends.llvm.host.values import (
    Callable_,
    Items,
    Scalar,
    Tensor,
    Value,
    load_value,
    place,
    read,
    store_value,
    width,
)
from weft.codegen.backends.llvm.kernel.polls import Poll
from weft.codegen.host import program as host
from weft.errors import Span, TargetError
from weft.ir.graph import Var
from weft.ir.op.program.loop import row_type
from weft.ir.types import PrimType, ShapeType, TensorType, TupleType, Type
from weft.runtime.abi.frame import LOOP_OUTPUTS, OUTPUTS

__all__ = ["loop"]

EVERY = 64
"""Iterations between two questions whether the caller was interrupted: kernels that take long ask by themselves."""


def loop(emitter: OperandEmitter, step: host.Loop) -> Value:
    """Emit a loop; gives the carried values after it."""
    return _LoopEmitter(emitter, step).run()


class _LoopEmitter:
    """One loop while it is emitted."""

    def __init__(self, emitter: OperandEmitter, step: host.Loop) -> None:
        self.emitter, self.step, self.w = emitter, step, emitter.w
        self.type = TupleType(step.types)
        self.body = self._function(step.body, "body")
        self.condition = None if step.condition is None else self._function(step.condition, "condition")
        self.state = self.w.alloca("i64", max(1, width(self.type)))
        self.owner_words = list(_owner_words(step.types, 0, step.span))
        self.first_slot = 0
        self.buffers: dict[int, tuple[Tensor, Tensor]] = {}
        self.given = TupleType((*step.types, *map(row_type, step.stacked)))
        self.rows: list[_Rows] = []

    def _function(self, operand: host.Operand, what: str) -> Callable_:
        value = self.emitter.value(operand)
        if not isinstance(value, Callable_):
            hint = "run LambdaLift first; weft.interpret runs functions that are chosen while the program runs"
            message = f"llvm: the {what} of a loop is not known when compiling"
            raise TargetError(message, code="W743", span=self.step.span, hint=hint)
        return value

    def run(self) -> Value:
        """The loop: head (ends? condition?), body, step."""
        w = self.w
        self._make_buffers()
        self._begin()
        self.rows = [_Rows(self.emitter, ty, self.step) for ty in self.step.stacked]
        asked_before = w.emit(load("i64", frame_word(w, OUTPUTS)))
        if self.buffers or self.rows:
            w.do(store("i64", LOOP_OUTPUTS, frame_word(w, OUTPUTS)))
        counter = None if self.step.bounds is None else _Counter(self.emitter, self.step.bounds, self.step.span)
        poll = None if self.emitter.program.links_later else Poll(self.emitter, EVERY)
        head, done = w.label("loop"), w.label("loopend")
        known = self.emitter.known()
        w.jump(head)
        w.open(head)
        if counter is not None:
            go_on = w.label("iteration")
            w.branch(counter.more(), go_on, done)
            w.open(go_on)
        if self.condition is not None:
            go_on = w.label("iteration")
            w.branch(self._asked(self.condition), go_on, done)
            w.open(go_on)
        if poll is not None:
            poll.ask()
        self._iterate([] if counter is None else [Scalar("int64", counter.index())])
        if counter is None:
            w.jump(head)
        else:
            counter.advance(head, done)
        w.open(done)
        self.emitter.forget_all_but(known)  # a loop may have no iteration
        if self.buffers or self.rows:
            w.do(store("i64", asked_before, frame_word(w, OUTPUTS)))
        value, _ = load_value(w, self.type, self.state)
        assert isinstance(value, Items)
        return Items([*value.fields, *(rows.whole for rows in self.rows)])

    def _make_buffers(self) -> None:
        """Two buffers for each tensor of known rank and dtype that the body makes, in the form of the state."""
        emitter, body = self.emitter, self.emitter.host.functions[self.body.name]
        result = body.result
        made = {word for word, _ in direct_results(body).values()}  # not what it hands on, or changes in place
        given = {word: ty for word, ty in result_words(result) if word in made} if self.fits(result) else {}
        for word, ty in result_words(self.type):
            known = all(emitter.symbols.keys() >= getattr(dim, "names", frozenset()) for dim in ty.dims or ())
            if ty.dims is None or not known or word not in given or given[word].dtype != ty.dtype:
                continue
            sizes = [emitter.nonnegative(dim, self.step.span) for dim in ty.dims]
            pair = [emitter.allocate(sizes, ty.dtype or "", self.step.span, self.step.into) for _ in range(2)]
            self.buffers[word] = (pair[0], pair[1])

    def fits(self, result: Type) -> bool:
        return width(result) == width(self.given)

    def _wanted(self) -> Wanted:
        """For each tensor a buffer that nothing refers to but the loop; address 0 where both are in use."""
        found = {word: self._free_one(*pair) for word, pair in self.buffers.items()}
        word = width(self.type)
        for rows in self.rows:
            found[word] = rows.next_row()
            word += width(rows.row)
        return found

    def _free_one(self, first: Tensor, second: Tensor) -> Tensor:
        w = self.w
        data, owner = "0", "0"
        for buffer in (second, first):
            count = w.emit(load("i64", w.emit(cast("inttoptr", "i64", buffer.owner, "ptr"))))
            free = w.emit(icmp("eq", "i64", count, "1"))
            data = w.emit(select("i1", free, "i64", buffer.data, data))
            owner = w.emit(select("i1", free, "i64", buffer.owner, owner))
        return Tensor(data, owner, first.sizes, first.dtype)

    def _begin(self) -> None:
        """The state before the first iteration: the initial values, with references of its own."""
        emitter, index = self.emitter, 0
        values = [emitter.value(operand) for operand in self.step.initial]
        for number, (value, ty) in enumerate(zip(values, self.step.types, strict=True), 1):
            fitted = emitter.shaped(value, ty, f"initial value {number} of the loop", self.step.span)
            index = store_value(self.w, fitted, ty, self.state, index)
        self.first_slot = emitter.slots
        for word in self.owner_words:
            owner = read(self.w, self.state, word)
            self.w.do(call("void", "@weft.retain", [("i64", owner)]))
            emitter.hold(owner, self.step.into)

    def _asked(self, condition: Callable_) -> str:
        """Whether the condition holds for the state."""
        state, _ = load_value(self.w, self.type, self.state)
        assert isinstance(state, Items)
        answer = Var("condition", _result_type(self.emitter, condition))
        value = call_value(self.emitter, condition, state.fields, answer, self.step.span, self._place_of(answer))
        holds = self.emitter.truth(value, self.step.span)
        self.emitter.drop(answer)
        return holds

    def _place_of(self, answer: Var) -> Wanted:
        """Where a condition may write a truth value that it computes: a word of the stack."""
        ty = answer.ty
        if not self.buffers or not isinstance(ty, TensorType) or ty.dims != () or ty.dtype is None:
            return {}
        word = self.w.emit(cast("ptrtoint", "ptr", self.w.alloca("i64"), "i64"))
        return {0: Tensor(word, "0", [], ty.dtype)}

    def _iterate(self, index: list[Value]) -> None:
        """Call the body; the state gives up what it held and takes what the body gave."""
        emitter, w = self.emitter, self.w
        state, _ = load_value(w, self.type, self.state)
        assert isinstance(state, Items)
        result, wanted = Var("iteration", self.given), self._wanted()
        value = call_value(emitter, self.body, [*index, *state.fields], result, self.step.span, wanted)
        if not isinstance(value, Items):
            raise TargetError("llvm: the body of a loop gives a tuple", code="W743", span=self.step.span)
        word = 0
        for item, ty in zip(value.fields, self.step.types, strict=False):
            word = store_value(w, item, ty, self.state, word)
        for item, rows in zip(value.fields[len(self.step.types) :], self.rows, strict=True):
            rows.take(item)
        for slot, owner_word in enumerate(self.owner_words, self.first_slot):
            owner = read(w, self.state, owner_word)
            w.do(call("void", "@weft.retain", [("i64", owner)]))
            pointer = place(w, "%slots", slot)
            w.do(call("void", "@weft.release", [("ptr", w.emit(load("ptr", pointer)))]))
            w.do(store("i64", owner, pointer))
        emitter.drop(result)


class _Rows:
    """A stacked result: its memory, and the row that the next iteration fills."""

    def __init__(self, emitter: OperandEmitter, ty: TensorType, step: host.Loop) -> None:
        self.w, self.row = emitter.w, row_type(ty)
        sizes = [emitter.nonnegative(dim, step.span) for dim in ty.dims or ()]
        self.whole = emitter.allocate(sizes, ty.dtype or "", step.span, step.into)
        self.bytes = emitter.bytes_of(sizes[1:], ty.dtype or "")
        self.place = self.w.alloca("i64")
        self.w.do(store("i64", self.whole.data, self.place))

    def next_row(self) -> Tensor:
        """The row as the place of a result."""
        data = self.w.emit(load("i64", self.place))
        return Tensor(data, "0", self.whole.sizes[1:], self.whole.dtype)

    def take(self, value: Value) -> None:
        """Copy what the body gave, where it did not write it here, and go on to the next row."""
        w = self.w
        assert isinstance(value, Tensor)
        place = w.emit(load("i64", self.place))
        copy, on = w.label("copy"), w.label("copied")
        w.branch(w.emit(icmp("ne", "i64", place, value.data)), copy, on)
        w.open(copy)
        target, source = (w.emit(cast("inttoptr", "i64", part, "ptr")) for part in (place, value.data))
        w.module.declare("llvm.memcpy.p0.p0.i64", "void", ("ptr", "ptr", "i64", "i1 immarg"))
        arguments = [("ptr", target), ("ptr", source), ("i64", self.bytes), ("i1", "false")]
        w.do(call("void", "@llvm.memcpy.p0.p0.i64", arguments))
        w.jump(on)
        w.open(on)
        w.do(store("i64", w.emit(binary("add", "i64", place, self.bytes)), self.place))


class _Counter:
    """The index of a loop over a range, and how many iterations are left."""

    def __init__(self, emitter: OperandEmitter, bounds: Sequence[host.Operand], span: Span | None) -> None:
        self.w = w = emitter.w
        start, stop, self.step = (_integer(emitter, bound, span) for bound in bounds)
        nonzero = w.emit(icmp("ne", "i64", self.step, "0"))
        emitter.unless(nonzero, "ArgumentError", ["the step of a loop is 0"], [], span, "W868")
        # The distance of two 64-bit numbers needs 65 bits; it is divided as an unsigned number.
        up = w.emit(icmp("sgt", "i64", self.step, "0"))
        forward = w.emit(binary("sub", "i64", stop, start))
        back = w.emit(binary("sub", "i64", start, stop))
        distance = w.emit(select("i1", up, "i64", forward, back))
        size = w.emit(select("i1", up, "i64", self.step, w.emit(binary("sub", "i64", "0", self.step))))
        whole = w.emit(binary("udiv", "i64", w.emit(binary("sub", "i64", distance, "1")), size))
        count = w.emit(binary("add", "i64", whole, "1"))
        rising, falling = w.emit(icmp("slt", "i64", start, stop)), w.emit(icmp("sgt", "i64", start, stop))
        some = w.emit(select("i1", up, "i1", rising, falling))
        self.place, self.left = w.alloca("i64"), w.alloca("i64")
        w.do(store("i64", start, self.place))
        w.do(store("i64", w.emit(select("i1", some, "i64", count, "0")), self.left))

    def more(self) -> str:
        """Whether there is another iteration."""
        return self.w.emit(icmp("ne", "i64", self.w.emit(load("i64", self.left)), "0"))

    def index(self) -> str:
        """The index of this iteration."""
        return self.w.emit(load("i64", self.place))

    def advance(self, head: str, done: str) -> None:
        """Go on to the next iteration; the index after the last one may wrap, and is not used."""
        w = self.w
        w.do(store("i64", w.emit(binary("add", "i64", w.emit(load("i64", self.place)), self.step)), self.place))
        w.do(store("i64", w.emit(binary("sub", "i64", w.emit(load("i64", self.left)), "1")), self.left))
        w.jump(head)


def _integer(emitter: OperandEmitter, operand: host.Operand, span: Span | None) -> str:
    """An integer scalar as a 64-bit word."""
    value = emitter.value(operand)
    if isinstance(value, Scalar):
        return value.word
    if not isinstance(value, Tensor) or value.sizes:
        raise TargetError("llvm: the bounds of a loop are integer scalars", code="W743", span=span)
    pointer = emitter.w.emit(cast("inttoptr", "i64", value.data, "ptr"))
    loaded = emitter.memory.from_memory(value.dtype, emitter.memory.read(value.dtype, pointer))
    return emitter.arith.cast(value.dtype, "int64", loaded)


def _owner_words(types: Sequence[Type], word: int, span: Span | None) -> Sequence[int]:
    """Where in the words of values of some types their owners stand."""
    found: list[int] = []
    for ty in types:
        if isinstance(ty, TensorType):
            found.append(word + 1)
        elif isinstance(ty, TupleType):
            found.extend(_owner_words(ty.fields, word, span))
        elif not isinstance(ty, (PrimType, ShapeType)):
            message = f"llvm: a loop cannot carry a value of type {type(ty).__name__}"
            raise TargetError(message, code="W743", span=span)
        word += width(ty)
    return found


def _result_type(emitter: OperandEmitter, function: Callable_) -> Type:
    return emitter.host.functions[function.name].result
