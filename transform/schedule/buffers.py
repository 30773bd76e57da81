"""What primitives ask about buffers: who allocates, writes and reads them; conditions for moving what computes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from weft.ir import replace, walk
from weft.ir.tensor import AllocBuffer, Binary, Block, Buffer, BufferLoad, IfThenElse, IntImm, PrimExpr, PrimFunc, Stmt
from weft.transform.analysis.loops.affine import Bindings
from weft.transform.analysis.loops.dependence import barrier, update_of
from weft.transform.analysis.loops.points import Point, variables_in
from weft.transform.schedule.failure import failure
from weft.transform.schedule.primitives.queries import scope_blocks, written_buffers
from weft.transform.schedule.tree import Tree, blocks_in, buffers_of, loads_in, sequence, stores_in

__all__ = [
    "bindings_of",
    "empty_cases",
    "nest_blocks",
    "only_output",
    "reads_of",
    "require_complete",
    "require_covering",
    "require_dividing",
    "require_local",
    "require_plain_uses",
    "require_reduction",
    "require_sole_writer",
    "require_unchanged",
    "sets_result_when_empty",
    "with_allocation",
    "without_allocation",
    "writers",
]


def writers(tree: Tree, buffer: Buffer) -> list[Block]:
    """The blocks (not those around them) that store to a buffer."""
    found = [block for block in tree.blocks.values() if stores_in(block, buffer)]
    return [b for b in found if not any(o is not b and tree.is_above(b, o) for o in found)]


def only_output(tree: Tree, block: Block) -> Buffer:
    """The one buffer that a block writes; W609 when there are several, or none."""
    found = written_buffers(block)
    if len(found) != 1:
        names = ", ".join(repr(buffer.name) for buffer in found) or "nothing"
        raise failure("W609", f"the block {block.name!r} writes {names}, not one buffer", tree, block)
    return found[0]


def require_local(tree: Tree, block: Block, buffer: Buffer) -> Stmt:
    """The statement that allocates a buffer; W612 when it is a parameter, or memory of another kind."""
    if buffer in tree.function.params:
        raise failure("W612", f"{buffer.name!r} is a parameter of the function: its values must be stored", tree, block)
    place = tree.allocated_at(buffer)
    if place is None or tree.is_view(buffer):
        raise failure("W612", f"{buffer.name!r} is a view of other memory", tree, block)
    return place


def require_sole_writer(tree: Tree, block: Block, buffer: Buffer) -> None:
    """W613 unless a block alone writes a buffer."""
    stores = len(stores_in(tree.function.body, buffer))
    own = sum(len(stores_in(part, buffer)) for part in (block.body, block.init) if part is not None)
    own += sum(len(stores_in(item, buffer)) for item in empty_cases(tree, block, buffer))
    others = [item for item in writers(tree, buffer) if item is not block]
    if stores != own:
        which = f"block {others[0].name!r}" if others else "other code"
        raise failure("W613", f"{buffer.name!r} is also written by {which}", tree, block)


def empty_cases(tree: Tree, block: Block, buffer: Buffer) -> list[Block]:
    """The blocks that store the result of a sum where it has no terms: `if k == 0` before its loops."""
    if block.init is None:
        return []
    point = Point(tree.function)
    sizes = [point.dim(item.extent) for item in block.iter_vars if item.kind == "reduce"]

    def is_empty_case(stmt: Stmt) -> bool:
        if not isinstance(stmt, IfThenElse) or stmt.else_body is not None:
            return False
        parts = _alternatives(stmt.condition)
        empty = [point.dim(part.a) for part in parts if isinstance(part, Binary) and part.kind == "eq"]
        zeros = [part.b for part in parts if isinstance(part, Binary) and isinstance(part.b, IntImm)]
        plain = len(empty) == len(zeros) == len(parts) and all(zero.value == 0 for zero in zeros)
        return plain and all(point.at_most(1, size) or any(point.same(size, dim) for dim in empty) for size in sizes)

    found = [item for item in writers(tree, buffer) if item is not block]
    return [item for item in found if any(map(is_empty_case, tree.conditions_around(item)))]


def _alternatives(condition: PrimExpr) -> list[PrimExpr]:
    if isinstance(condition, Binary) and condition.kind == "or":
        return [*_alternatives(condition.a), *_alternatives(condition.b)]
    return [condition]


def sets_result_when_empty(tree: Tree, block: Block) -> bool:
    """Whether the result of a sum is set apart from its loops where it has no terms, or it always has some."""
    point = Point(tree.function)
    steps = [item for item in block.iter_vars if item.kind == "reduce"]
    if all(point.at_most(1, point.dim(item.extent)) for item in steps):
        return True
    return any(empty_cases(tree, block, buffer) for buffer in written_buffers(block))


def require_complete(tree: Tree, block: Block) -> Buffer:
    """The buffer of a block of which each instance computes elements of one buffer of their own; else W609."""
    buffer = only_output(tree, block)
    odd = next((item for item in block.iter_vars if item.kind != "spatial"), None)
    if odd is not None:
        raise failure(
            "W609", f"the variable {odd.var.name!r} of block {block.name!r} is {odd.kind}, not spatial", tree, block
        )
    if loads_in(block.body, buffer):
        raise failure("W609", f"the block {block.name!r} reads {buffer.name!r}, which it writes", tree, block)
    if barrier(block.body) is not None:
        raise failure("W609", f"the block {block.name!r} has effects that are not known", tree, block)
    require_sole_writer(tree, block, buffer)
    return buffer


def require_reduction(tree: Tree, block: Block) -> Buffer:
    """The buffer of a block that initialises and updates elements of one buffer; else W610."""
    buffer = only_output(tree, block)
    if block.init is None or update_of(block) is None:
        raise failure(
            "W610", f"the block {block.name!r} is no reduction: an init, then x = x + y or the like", tree, block
        )
    odd = next((item for item in block.iter_vars if item.kind not in ("spatial", "reduce")), None)
    if odd is not None:
        raise failure("W610", f"the variable {odd.var.name!r} of block {block.name!r} is {odd.kind}", tree, block)
    require_sole_writer(tree, block, buffer)
    return buffer


def bindings_of(tree: Tree, block: Block) -> Bindings:
    """The bindings of a block over the loops of its scope."""
    loops = tree.loops_around(block)
    return Bindings.of(block, loops, Point.around(tree, loops[0] if loops else block))


def require_covering(tree: Tree, block: Block) -> Bindings:
    """The bindings of a block whose loops reach its whole domain, under no condition; else W611 or W615."""
    stops = tree.conditions_around(block)
    if stops:
        raise failure("W615", f"the block {block.name!r} runs under a condition", tree, stops[0])
    found = bindings_of(tree, block)
    if not found.is_affine:
        raise failure("W611", f"the bindings of block {block.name!r} are not affine in its loops", tree, block)
    if not found.covers():
        raise failure(
            "W611", f"the loops around block {block.name!r} are not proved to reach its whole domain", tree, block
        )
    return found


def nest_blocks(tree: Tree, block: Block) -> list[Block]:
    """The other blocks of the loops around a block: they run between its instances."""
    loops = tree.loops_around(block)
    return [item for item in blocks_in(loops[0]) if item is not block] if loops else []


def require_unchanged(tree: Tree, block: Block, what: Iterable[Buffer]) -> None:
    """W613 when something after a block in its scope, or in the loops around it, writes what the block reads.

    A block before it in the loops may compute elements that, once computed, stay as they are.
    """
    wanted = set(what)
    others = scope_blocks(tree, block)
    place = next(i for i, item in enumerate(others) if item is block)
    beside = [item for item in nest_blocks(tree, block) if item in others[:place] and not _is_final(tree, item, block)]
    for item in (*others[place + 1 :], *beside):
        changed = wanted & set(written_buffers(item))
        if changed:
            name = next(iter(changed)).name
            raise failure("W613", f"block {item.name!r} changes {name!r}, which block {block.name!r} reads", tree, item)
    inside = {store for item in others for store in stores_in(item)}
    loose = [store for store in stores_in(tree.scope_body(block)) if store not in inside and store.buffer in wanted]
    if loose:
        raise failure("W613", f"{loose[0].buffer.name!r}, which block {block.name!r} reads, is changed", tree, loose[0])


def _is_final(tree: Tree, item: Block, block: Block) -> bool:
    """Whether a block gives each element its final value in one iteration of the loops that it shares with another."""
    written = written_buffers(item)
    alone = len(written) == 1 and not any(
        stores_in(other, written[0])
        for other in tree.blocks.values()
        if other is not item and not tree.is_above(other, item)
    )
    if not alone or any(it.kind not in ("spatial", "reduce") for it in item.iter_vars):
        return False
    common = {loop.loop_var for loop in tree.loops_around(item)} & {loop.loop_var for loop in tree.loops_around(block)}
    if any(it.kind == "reduce" and variables_in(it.value) & common for it in item.iter_vars):
        return False
    return item.init is not None or not loads_in(item.body, written[0])


def require_plain_uses(tree: Tree, block: Block, buffer: Buffer) -> None:
    """W612 unless a buffer is only read and written element by element, in its usual layout."""
    body = tree.function.body
    for part in (*loads_in(body, buffer), *stores_in(body, buffer)):
        if part.predicate is not None or any(index.dtype not in ("int32", "int64") for index in part.indices):
            raise failure("W612", f"{buffer.name!r} is accessed by vectors", tree, block)
    if tree.is_view(buffer) or buffer.strides is not None or buffer.elem_offset is not None:
        raise failure("W612", f"{buffer.name!r} shares memory, or has a layout of its own", tree, block)
    for part in walk(body):
        if buffer in getattr(part, "args", ()):
            raise failure("W612", f"{buffer.name!r} is passed on", tree, block)
        if getattr(part, "op", None) == "address_of":
            taken = part.args[0]  # type: ignore[attr-defined]
            if isinstance(taken, BufferLoad) and taken.buffer is buffer:
                raise failure("W612", f"the address of {buffer.name!r} is taken", tree, block)


def reads_of(block: Block) -> set[Buffer]:
    """The buffers that a block uses, apart from those that it writes."""
    return set(buffers_of(block)) - set(written_buffers(block)) - set(block.alloc_buffers)


def without_allocation(function: PrimFunc, buffer: Buffer) -> PrimFunc:
    """The function without the allocation of a buffer."""
    tree = Tree("", function)
    place = tree.allocated_at(buffer)
    if isinstance(place, Block):
        new = replace(place, alloc_buffers=tuple(item for item in place.alloc_buffers if item is not buffer))
        return tree.replaced((place, new))
    assert place is not None
    return tree.replaced((place, sequence(())))


def with_allocation(function: PrimFunc, scope: Block | None, buffer: Buffer) -> PrimFunc:
    """The function with a buffer allocated in a scope: in a block of that name, or at the start of the function."""
    if scope is None:
        return replace(function, body=sequence((AllocBuffer(buffer), function.body)))
    tree = Tree("", function)
    current = tree.blocks[scope.name]
    return tree.replaced((current, replace(current, alloc_buffers=(*current.alloc_buffers, buffer))))


def require_dividing(tree: Tree, block: Block, name: str, ndim: int, separators: Sequence[int]) -> None:
    """W604 unless separators of axes grow from 1 to the number of dimensions of a buffer."""
    if not all(a < b for a, b in zip((0, *separators), (*separators, ndim), strict=True)):
        raise failure(
            "W604",
            f"{list(separators)} does not divide the {ndim} dimensions of {name!r}",
            tree,
            block,
            hint="growing numbers between the dimensions",
        )
