"""Primitives that make blocks of blocks: blockize, tensorize.

    blockize    the loops from one inward, and the block in them, as one block over the loops that are left; or several
                blocks, with their loops inside of those that they share
    tensorize   such a block, when it computes what an intrinsic is described to do, done by the intrinsic

An intrinsic is a pair of tensor functions over the same parameters: `desc` says in loops what it computes, `impl` how
it is done. `TensorIntrin.register` adds one by name.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace as dataclass_replace

from weft.ir import replace, rewrite, structural_equal, substitute
from weft.ir.dim import Dim, ceildiv, floordiv
from weft.ir.kernel.prim import as_expr, binary
from weft.ir.node import Node
from weft.ir.structure.visit import children
from weft.ir.tensor import (
    Block,
    Buffer,
    BufferLoad,
    BufferRegion,
    BufferStore,
    For,
    IterVar,
    MatchBufferRegion,
    PrimExpr,
    PrimFunc,
    PrimVar,
    Range,
    SeqStmt,
    Stmt,
)
from weft.support.records import dataclass
from weft.transform.analysis.loops.affine import Bindings, Value
from weft.transform.analysis.loops.dependence import without_bindings
from weft.transform.analysis.loops.points import Point, conjuncts, variables_in
from weft.transform.infra.registry import nearest
from weft.transform.schedule.buffers import bindings_of
from weft.transform.schedule.copies import fresh_copy, fresh_variable
from weft.transform.schedule.core import ScheduleCore, primitive
from weft.transform.schedule.failure import failure
from weft.transform.schedule.handles import BlockRV, LoopRV
from weft.transform.schedule.primitives.loops import chain_between
from weft.transform.schedule.rebuild import all_of, nest_of_loops
from weft.transform.schedule.tree import Tree, blocks_in, sequence, statements_of, without_regions

__all__ = ["Blocks", "TensorIntrin"]

_INTRINSICS: dict[str, TensorIntrin] = {}


@dataclass(frozen=True)
class TensorIntrin:
    """A tensor intrinsic: what it computes and how it is done, over the same parameters."""

    name: str
    desc: PrimFunc
    impl: PrimFunc

    @staticmethod
    def register(name: str, desc: PrimFunc, impl: PrimFunc, override: bool = False) -> TensorIntrin:
        """Add an intrinsic; ScheduleError W604 for a name that is taken or functions that do not fit together."""
        if name in _INTRINSICS and not override:
            raise failure("W604", f"there is an intrinsic {name!r} already", hint="override=True replaces it")
        buffers = [[item for item in function.params if isinstance(item, Buffer)] for function in (desc, impl)]
        fits = len(buffers[0]) == len(buffers[1]) == len(desc.params) == len(impl.params)
        alike = fits and all(
            a.dtype == b.dtype and a.shape == b.shape and a.scope == b.scope for a, b in zip(*buffers, strict=True)
        )
        if not alike:
            raise failure("W604", f"description and implementation of {name!r} have different parameters")
        if any(not isinstance(extent, int) for buffer in buffers[0] for extent in buffer.shape):
            raise failure("W604", f"the intrinsic {name!r} has parameters of unknown size")
        _INTRINSICS[name] = TensorIntrin(name, desc, impl)
        return _INTRINSICS[name]

    @staticmethod
    def get(name: str) -> TensorIntrin:
        """The intrinsic of a name; ScheduleError W604 when there is none."""
        if name not in _INTRINSICS:
            known = list(_INTRINSICS)
            raise failure(
                "W604",
                f"there is no intrinsic {name!r}",
                hint=nearest(name, known) or f"there are: {', '.join(known) or 'none'}",
            )
        return _INTRINSICS[name]


class Blocks(ScheduleCore):
    """Blocks of blocks."""

    @primitive
    def blockize(self, target: LoopRV | Sequence[BlockRV | str], preserve_unit_iters: bool = True) -> BlockRV:
        """Make the loops from one inward, with the block in them, one block over the loops around; gives that block.

        Of several blocks, which stand one after the other: they and their loops inside of those that they share.
        ScheduleError W605 when anything stands beside the loops or between the blocks, W611 when a variable does not
        fall into a part of the outer loops and one of the inner ones, W615 a condition that does not.
        """
        if isinstance(target, (list, tuple)):
            return self._blockize_several(target, preserve_unit_iters)
        tree, loop = self._loop(target)
        blocks = list(blocks_in(loop))
        if len(blocks) != 1:
            raise failure("W605", f"there is not one block under the loop {loop.loop_var.name!r}", tree, loop)
        block = blocks[0]
        around = tree.loops_around(block)
        inner = around[around.index(loop) :]
        if chain_between(tree, inner) != inner or inner[-1].body is not block:
            raise failure("W605", f"something stands beside block {block.name!r} under the loop", tree, loop)
        outer_block = _Blockizer(tree, block, inner, preserve_unit_iters).build()
        self._set(tree, tree.replaced((loop, outer_block)))
        return self._block_handle(tree.name, outer_block.name)

    def _blockize_several(self, handles: Sequence[BlockRV | str], units: bool) -> BlockRV:
        found = [self._block(handle) for handle in handles]
        if not found or len({block for _, block in found}) != len(found):
            raise failure("W604", f"different blocks are needed, and at least one, not {len(found)}")
        tree = found[0][0]
        group = _Group(tree, tree.order([block for _, block in found]), units)  # type: ignore[arg-type]
        self._set(tree, tree.replaced(group.change()))
        return self._block_handle(tree.name, group.name)

    @primitive
    def tensorize(
        self, block_or_loop: BlockRV | LoopRV | str, tensor_intrin: str, preserve_unit_iters: bool = True
    ) -> None:
        """Let an intrinsic do what the loops from one inward compute, or the body of a block.

        ScheduleError W604 no such intrinsic, W617 code that is not what the intrinsic is described to do.
        """
        known = TensorIntrin.get(tensor_intrin)
        block = block_or_loop
        if isinstance(block, LoopRV):
            block = self.blockize(block, preserve_unit_iters)
        tree, found = self._block(block)
        regions = _Matcher(tree, found, known).regions()
        body, own = _without_root(known.impl.body)
        matches = tuple(
            MatchBufferRegion(param, regions[described])
            for param, described in zip(known.impl.params, known.desc.params, strict=True)
            if isinstance(param, Buffer) and isinstance(described, Buffer)
        )
        made = Block("", body, alloc_buffers=own, match_buffers=matches)
        fresh = fresh_copy(substitute(made, _fresh_layout(matches)), set(tree.blocks))
        assert isinstance(fresh, Block)
        new = replace(
            without_regions(found),
            body=fresh.body,
            match_buffers=fresh.match_buffers,
            alloc_buffers=fresh.alloc_buffers,
        )
        self._set(tree, tree.replaced((found, new)))


class _Blockizer:
    """Divides the variables of a block between the loops outside and those inside."""

    def __init__(self, tree: Tree, block: Block, inner: list[For], units: bool) -> None:
        self.tree, self.block, self.inner, self.units = tree, block, inner, units
        self.bindings: Bindings = bindings_of(tree, block)
        self.point: Point = self.bindings.reader.point
        self.names = {self.point.name(loop.loop_var) for loop in inner}
        self.outer_items: list[IterVar] = []
        self.outside: list[PrimExpr] = []  # conditions that keep outer variables inside of their domains
        self.values: dict[PrimVar, PrimExpr] = {}  # of block variables, over outer variables and inner loops

    def divide(self) -> tuple[list[PrimExpr], list[PrimExpr]]:
        """Divide every variable; the conditions of the outer block and those of the inner one."""
        for loop in self.inner:
            if self.point.name(loop.loop_var) not in self.bindings.reader.extents:
                raise failure(
                    "W606",
                    f"the range of {loop.loop_var.name!r} does not start at 0, or is no dimension",
                    self.tree,
                    loop,
                )
        for item in self.block.iter_vars:
            self._divide(item)
        return self._conditions()

    def core(self, inside: Sequence[PrimExpr]) -> Block:
        """The inner block."""
        items = tuple(replace(item, value=self.values[item.var]) for item in self.block.iter_vars)
        return without_regions(replace(self.block, iter_vars=items, predicate=all_of(inside)))

    def build(self) -> Block:
        """The outer block."""
        block = self.block
        outside, inside = self.divide()
        core = self.core(inside)
        init: Stmt | None = None
        if block.init is not None and any(item.kind == "reduce" for item in self.outer_items):
            init = self._init()
            core = replace(core, init=None)
        name = self.tree.fresh_block_name(f"{block.name}_o")
        return Block(
            name, nest_of_loops(self.inner, core), tuple(self.outer_items), all_of(outside), init=init, span=block.span
        )

    def _divide(self, item: IterVar) -> None:
        value, reader, point = self.bindings.values[item.var], self.bindings.reader, self.point
        size = self.bindings.extents[item.var]
        if value is None or size is None or not self._whole(value):
            raise self._refuse(item)
        low = Value(tuple(t for t in value.terms if set(_names(t.source.dim)) & self.names))
        high = Value(tuple(t for t in value.terms if t not in low.terms), value.base)
        dtype = item.var.dtype
        if not high.terms and point.same(high.base, 0):
            self.values[item.var] = reader.expr_of(low, dtype)
            if self.units:
                variable = PrimVar(f"{item.var.name}o", dtype)
                self.outer_items.append(IterVar(variable, 0, 1, item.kind, as_expr(0, dtype)))
            return
        count = reader.extent_of(low)
        if count is None:
            raise self._refuse(item)
        divided = all(point.same(floordiv(t.scale, count) * count, t.scale) for t in high.terms)
        base: Dim = floordiv(high.base, count)
        if not divided or not point.same(base * count, high.base):
            raise self._refuse(item)
        outer = Value(tuple(dataclass_replace(t, scale=floordiv(t.scale, count)) for t in high.terms), base)
        variable = PrimVar(f"{item.var.name}o", dtype)
        limit, placed = ceildiv(size, count), reader.expr_of(outer, dtype)
        extent = point.extent(limit, dtype)
        self.outer_items.append(IterVar(variable, 0, extent, item.kind, placed))
        if not point.at_most(reader.extent_of(outer), limit):
            self.outside.append(binary("lt", placed, as_expr(extent, dtype)))
        first: PrimExpr = variable if point.same(count, 1) else binary("mul", variable, point.expr(count, dtype))
        self.values[item.var] = first if not low.terms else binary("add", first, reader.expr_of(low, dtype))

    def _whole(self, value: Value) -> bool:
        """Whether no part of a value is of loops on both sides."""
        return all(
            not set(_names(t.source.dim)) & self.names or set(_names(t.source.dim)) <= self.names for t in value.terms
        )

    def _refuse(self, item: IterVar) -> Exception:
        return failure(
            "W611",
            f"the variable {item.var.name!r} of block {self.block.name!r} does not fall into a part of the"
            f" loops outside and one of the loops from {self.inner[0].loop_var.name!r} inward",
            self.tree,
            self.block,
        )

    def _conditions(self) -> tuple[list[PrimExpr], list[PrimExpr]]:
        """Conditions of the outer block, and of the inner one, over what each of them sees."""
        outside = list(self.outside)
        inside: list[PrimExpr] = []
        loops = {loop.loop_var for loop in self.inner}
        for part in conjuncts(self.block.predicate):
            if not variables_in(part) & loops:
                outside.append(part)
                continue
            left = self.point.dim(getattr(part, "a", 0))
            whole = (item for item in self.block.iter_vars if item.value is not None)
            same = next((item for item in whole if self.point.same(self.point.dim(item.value), left)), None)  # type: ignore[arg-type]
            if same is None:
                raise failure(
                    "W615",
                    f"the condition {part.script()} is not about one variable of block {self.block.name!r}",
                    self.tree,
                    self.block,
                )
            inside.append(binary(part.kind, self.values[same.var], part.b))  # type: ignore[attr-defined]
        return outside, inside

    def _init(self) -> Stmt:
        """The init of the inner block over the inner loops of the result."""
        block = self.block
        assert block.init is not None
        spatial = [item for item in block.iter_vars if item.kind == "spatial"]
        used = {var for item in spatial for var in variables_in(self.values[item.var])}
        kept = [loop for loop in self.inner if loop.loop_var in used]
        loops = {loop.loop_var: fresh_variable(loop.loop_var, f"{loop.loop_var.name}_init") for loop in kept}
        fresh = {item.var: fresh_variable(item.var) for item in spatial}
        items = tuple(
            replace(item, var=fresh[item.var], value=substitute(self.values[item.var], loops)) for item in spatial
        )
        steps = {
            var for item in block.iter_vars if item.kind != "spatial" for var in variables_in(self.values[item.var])
        }
        _, inside = self._conditions()
        conditions = all_of(substitute(part, loops) for part in inside if not variables_in(part) & steps)
        name = self.tree.fresh_block_name(f"{block.name}_init")
        inner = Block(name, substitute(block.init, fresh), items, conditions, span=block.init.span)
        nest = [replace(loop, loop_var=loops[loop.loop_var], kind="serial", thread=None) for loop in kept]
        return nest_of_loops(nest, inner)


class _Group:
    """Several blocks of one scope that become one over the loops that they share."""

    def __init__(self, tree: Tree, blocks: Sequence[Block], units: bool) -> None:
        self.tree, self.blocks, self.units = tree, blocks, units
        self.name = tree.fresh_block_name(f"{'_'.join(block.name for block in blocks)}_o")
        stranger = next((item for item in blocks if tree.scope(item) is not tree.scope(blocks[0])), None)
        if stranger is not None:
            names = f"{blocks[0].name!r} and {stranger.name!r}"
            raise failure("W605", f"the blocks {names} are not in one scope", tree, stranger)
        self.loops = [tree.loops_around(block) for block in blocks]
        shared = itertools.takewhile(lambda level: len(set(level)) == 1, zip(*self.loops, strict=False))
        self.shared = [level[0] for level in shared]
        self.items: list[IterVar] = []

    def change(self) -> tuple[Stmt, Stmt]:
        """The statement that changes, and what it becomes."""
        body = self.shared[-1].body if self.shared else self.tree.scope_body(self.blocks[0])
        parts = statements_of(body)
        holding = [place for place, part in enumerate(parts) if self._holds(part)]
        run = parts[holding[0] : holding[-1] + 1]
        other = next((item for part in run for item in blocks_in(part) if item not in self.blocks), None)
        if other is not None:
            names = ", ".join(repr(block.name) for block in self.blocks)
            raise failure("W605", f"block {other.name!r} stands between the blocks {names}", self.tree, other)
        outer = self._outer(run)
        return body, sequence((*parts[: holding[0]], outer, *parts[holding[-1] + 1 :]))

    def _holds(self, part: Stmt) -> bool:
        return any(part is block or self.tree.is_above(part, block) for block in self.blocks)

    def _outer(self, run: Sequence[Stmt]) -> Block:
        cores: dict[Node, Block] = {}
        conditions: list[list[PrimExpr]] = []
        for block, loops in zip(self.blocks, self.loops, strict=True):
            parts = _Blockizer(self.tree, block, loops[len(self.shared) :], self.units)
            outside, inside = parts.divide()
            if block.init is not None and any(item.kind == "reduce" for item in parts.outer_items):
                message = f"the sum of block {block.name!r} runs over a loop that the blocks share"
                hint = "sch.decompose_reduction gives its init a block of its own"
                raise failure("W611", message, self.tree, block, hint=hint)
            core = parts.core(inside)
            cores[block] = substitute(core, self._joined(parts.outer_items))
            conditions.append(outside)
        if any(not _same_conditions(conditions[0], each) for each in conditions[1:]):
            raise failure(
                "W615",
                "the blocks run under different conditions on the loops that they share",
                self.tree,
                self.blocks[0],
            )
        body = sequence(rewrite(part, pre=lambda node: cores.get(node)) for part in run)
        return Block(self.name, body, tuple(self.items), all_of(conditions[0]), span=self.blocks[0].span)

    def _joined(self, items: Sequence[IterVar]) -> dict[PrimVar, PrimVar]:
        """Take variables of the outer block; which of them it has already, and as what."""
        known: dict[PrimVar, PrimVar] = {}
        for item in items:
            same = next((each for each in self.items if _same_binding(each, item)), None)
            if same is None:
                self.items.append(item)
            else:
                known[item.var] = same.var
        return known


def _same_binding(a: IterVar, b: IterVar) -> bool:
    same = a.kind == b.kind and a.var.dtype == b.var.dtype and a.value is not None and b.value is not None
    return same and structural_equal(a.value, b.value) and structural_equal(as_expr(a.extent), as_expr(b.extent))


def _same_conditions(a: Sequence[PrimExpr], b: Sequence[PrimExpr]) -> bool:
    return len(a) == len(b) and all(structural_equal(x, y) for x, y in zip(a, b, strict=True))


def _names(dim: Dim) -> frozenset[str]:
    return frozenset() if isinstance(dim, int) else frozenset(dim.names)


# Intrinsics ---------------------------------------------------------------------------------------------------------


def _without_root(stmt: Stmt) -> tuple[Stmt, tuple[Buffer, ...]]:
    """The body inside of a block without variables around everything, and what that block allocates."""
    parts = statements_of(stmt)
    if len(parts) == 1 and isinstance(parts[0], Block) and not parts[0].iter_vars and parts[0].init is None:
        return parts[0].body, parts[0].alloc_buffers
    return stmt, ()


def _fresh_layout(matches: tuple[MatchBufferRegion, ...]) -> dict[Node, Node]:
    """New variables for those that strides and offsets of matched buffers stand for."""
    parts = [p for m in matches for p in (*(m.buffer.strides or ()), m.buffer.elem_offset) if isinstance(p, PrimVar)]
    return {part: fresh_variable(part) for part in parts}


class _Matcher:
    """Compares a block's body with the description of an intrinsic."""

    def __init__(self, tree: Tree, block: Block, intrinsic: TensorIntrin) -> None:
        self.tree, self.block, self.intrinsic = tree, block, intrinsic
        self.point = Point.inside(tree, block)
        self.loops: dict[PrimVar, PrimVar] = {}  # of the description -> of the code
        self.bases: dict[Buffer, tuple[Buffer, tuple[Dim, ...]]] = {}

    def regions(self) -> dict[Buffer, BufferRegion]:
        """The part of a buffer that stands for each parameter of the intrinsic; else W617."""
        described, _ = _without_root(self.intrinsic.desc.body)
        self._statement(without_bindings(self.block.body), without_bindings(described))
        found: dict[Buffer, BufferRegion] = {}
        for param in self.intrinsic.desc.params:
            assert isinstance(param, Buffer)
            if param not in self.bases:
                raise self._refuse(f"its parameter {param.name!r} is not used")
            buffer, base = self.bases[param]
            sizes = (*(1 for _ in range(buffer.ndim - param.ndim)), *param.shape)
            found[param] = BufferRegion(
                buffer,
                tuple(Range(self.point.extent(b, self._dtype()), s) for b, s in zip(base, sizes, strict=True)),
            )
        return found

    def _dtype(self) -> str:
        return self.block.iter_vars[0].var.dtype if self.block.iter_vars else "int32"

    def _refuse(self, why: str) -> Exception:
        name = self.intrinsic.name
        return failure(
            "W617",
            f"the block {self.block.name!r} is not what the intrinsic {name!r} does: {why}",
            self.tree,
            self.block,
        )

    def _statement(self, code: Stmt, desc: Stmt) -> None:
        if isinstance(code, For) and isinstance(desc, For):
            if not (code.start == 0 and desc.start == 0 and self.point.equal(code.extent, desc.extent)):
                raise self._refuse(f"the loops {code.loop_var.name!r} and {desc.loop_var.name!r} differ")
            self.loops[desc.loop_var] = code.loop_var
            self.point = self.point.copy([code])
            self._statement(code.body, desc.body)
        elif isinstance(code, Block) and isinstance(desc, Block):
            if code.predicate is not None or (code.init is None) != (desc.init is None):
                what = "a condition" if code.predicate is not None else "an init on one side"
                raise self._refuse(f"there is {what}")
            if code.init is not None and desc.init is not None:
                self._statement(code.init, desc.init)
            self._statement(code.body, desc.body)
        elif isinstance(code, BufferStore) and isinstance(desc, BufferStore):
            self._access(code.buffer, code.indices, desc.buffer, desc.indices)
            self._value(code.value, desc.value)
        elif isinstance(code, SeqStmt) and isinstance(desc, SeqStmt) and len(code.stmts) == len(desc.stmts):
            for a, b in zip(code.stmts, desc.stmts, strict=True):
                self._statement(a, b)
        else:
            raise self._refuse(f"a {type(code).__name__} stands for a {type(desc).__name__}")

    def _value(self, code: Node, desc: Node) -> None:
        if isinstance(code, BufferLoad) and isinstance(desc, BufferLoad):
            self._access(code.buffer, code.indices, desc.buffer, desc.indices)
            return
        if isinstance(desc, PrimVar):
            if self.loops.get(desc) is not code:
                raise self._refuse(f"{desc.name!r} stands for something else")
            return
        plain = ("kind", "value", "dtype", "op", "lanes")
        same = type(code) is type(desc) and all(
            getattr(code, key, None) == getattr(desc, key, None)
            for key in plain
            if not isinstance(getattr(code, key, None), Node)
        )
        parts = list(zip(children(code, types=False), children(desc, types=False), strict=False))
        if not same or len(parts) != len(list(children(desc, types=False))):
            shown = code.script() if isinstance(code, PrimExpr) else type(code).__name__
            raise self._refuse(f"it computes {shown}")
        for a, b in parts:
            self._value(a, b)

    def _access(
        self, buffer: Buffer, indices: tuple[PrimExpr, ...], param: Buffer, wanted: tuple[PrimExpr, ...]
    ) -> None:
        if buffer.dtype != param.dtype or buffer.scope != param.scope or buffer.ndim < param.ndim:
            raise self._refuse(
                f"{buffer.name!r} does not fit the parameter {param.name!r}"
                f" ({buffer.dtype} in {buffer.scope}, {param.dtype} in {param.scope})"
            )
        lead = buffer.ndim - param.ndim
        base: list[Dim] = []
        inner = {self.point.name(var) for var in self.loops.values()}
        local: list[PrimExpr | int] = [*(0 for _ in range(lead)), *(substitute(index, self.loops) for index in wanted)]
        for index, part in zip(indices, local, strict=True):
            here, there = self.point.dim(index), self.point.dim(part)
            offset = None if here is None or there is None else here - there
            if offset is None or set(_names(offset)) & inner:
                raise self._refuse(f"{buffer.name!r} is accessed at {index.script()}")
            base.append(offset)
        known = self.bases.setdefault(param, (buffer, tuple(base)))
        if known[0] is not buffer or any(not self.point.same(a, b) for a, b in zip(known[1], base, strict=True)):
            raise self._refuse(f"{param.name!r} stands for several parts of memory")
