"""A tensor-level function as a tree of statements in which loops and blocks are found, and statements replaced.

scope ::= a block, or the function itself       the loops of a scope end at the blocks in it
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from weft.ir import IRModule, Node, replace, rewrite, walk
from weft.ir.dim import fresh_name
from weft.ir.structure.visit import inner_statements, map_statements
from weft.ir.tensor import (
    AllocBuffer,
    AttrStmt,
    Bind,
    Block,
    Buffer,
    BufferLoad,
    BufferRegion,
    BufferStore,
    DeclBuffer,
    For,
    IfThenElse,
    PrimCall,
    PrimFunc,
    PrimVar,
    SeqStmt,
    Stmt,
    While,
)

__all__ = [
    "Tree",
    "blocks_in",
    "buffers_of",
    "loads_in",
    "map_buffers",
    "sequence",
    "statements_of",
    "stores_in",
    "unique_block_names",
    "with_early_allocations",
    "without_regions",
]


def statements_of(stmt: Stmt) -> tuple[Stmt, ...]:
    """The statements of a sequence, or the one statement."""
    return stmt.stmts if isinstance(stmt, SeqStmt) else (stmt,)


def sequence(stmts: Iterable[Stmt]) -> Stmt:
    """The statements one after the other."""
    found = [part for stmt in stmts for part in statements_of(stmt)]
    return found[0] if len(found) == 1 else SeqStmt(tuple(found))


def blocks_in(stmt: Stmt, *, nested: bool = False) -> Iterator[Block]:
    """The blocks below a statement (itself included) in order; those inside other blocks only if asked for."""
    stack: list[Stmt] = [stmt]
    while stack:
        current = stack.pop()
        if isinstance(current, Block):
            yield current
            if not nested:
                continue
        stack.extend(reversed(inner_statements(current)))


def loads_in(node: Node, buffer: Buffer | None = None) -> list[BufferLoad]:
    """The loads below a node, of one buffer if given."""
    found = [part for part in walk(node) if isinstance(part, BufferLoad)]
    return found if buffer is None else [load for load in found if load.buffer is buffer]


def stores_in(node: Node, buffer: Buffer | None = None) -> list[BufferStore]:
    """The stores below a node, to one buffer if given."""
    found = [part for part in walk(node) if isinstance(part, BufferStore)]
    return found if buffer is None else [store for store in found if store.buffer is buffer]


def buffers_of(node: Node) -> dict[Buffer, None]:
    """The buffers that a node reads, writes or passes on, in order; declared regions do not count."""
    found: dict[Buffer, None] = {}
    for part in walk(node):
        if isinstance(part, (BufferLoad, BufferStore)):
            found[part.buffer] = None
        elif isinstance(part, PrimCall):
            found.update(dict.fromkeys(arg for arg in part.args if isinstance(arg, Buffer)))
        elif isinstance(part, Block):
            found.update(dict.fromkeys(match.source.buffer for match in part.match_buffers))
    return found


def without_regions(block: Block) -> Block:
    """The block with reads and writes as its body does them."""
    return block if block.reads is None and block.writes is None else replace(block, reads=None, writes=None)


def map_buffers(
    root: Stmt,
    *,
    load: Callable[[BufferLoad], Node | None] | None = None,
    store: Callable[[BufferStore], Node | None] | None = None,
    touched: Iterable[Buffer] = (),
) -> Stmt:
    """The statement with loads and stores replaced; blocks that declare accesses of `touched` do so no more."""
    gone = set(touched)

    def post(node: Node) -> Node | None:
        if load is not None and isinstance(node, BufferLoad):
            return load(node)
        if store is not None and isinstance(node, BufferStore):
            return store(node)
        if isinstance(node, Block):
            declared: tuple[BufferRegion, ...] = (*(node.reads or ()), *(node.writes or ()))
            if any(region.buffer in gone for region in declared):
                return without_regions(node)
        return None

    return rewrite(root, post)


def unique_block_names(function: PrimFunc) -> PrimFunc:
    """The function with a name of its own for each block: the schedule knows blocks by their names."""
    blocks = list(blocks_in(function.body, nested=True))
    if len({block.name for block in blocks}) == len(blocks):
        return function
    taken = {block.name for block in blocks}
    seen: set[str] = set()
    new: dict[int, str] = {}
    for block in blocks:
        if block.name in seen:
            new[id(block)] = fresh_name(block.name, taken)
            taken.add(new[id(block)])
        seen.add(block.name)
    body = _Renamed(new).statement(function.body)
    return replace(function, body=body)


def with_early_allocations(function: PrimFunc) -> PrimFunc:
    """The function with the allocations of its outermost sequence at the start, so that what uses them may move."""
    parts = statements_of(function.body)
    bound = {part.var for part in parts if isinstance(part, Bind)}
    views = {part.buffer for part in parts if isinstance(part, DeclBuffer)}

    def is_free(part: Stmt) -> bool:
        if not isinstance(part, AllocBuffer):
            return False
        return not any(item in bound or item in views for item in walk(part.buffer))

    first = [part for part in parts if is_free(part)]
    rest = [part for part in parts if not is_free(part)]
    same = all(a is b for a, b in zip((*first, *rest), parts, strict=True))
    return function if same else replace(function, body=sequence((*first, *rest)))


class _Renamed:
    """Renames blocks, outer ones before the ones in them."""

    def __init__(self, names: dict[int, str]) -> None:
        self.names = names

    def statement(self, stmt: Stmt) -> Stmt:
        """The statement with its blocks renamed."""
        new = map_statements(stmt, self.statement)
        return replace(new, name=self.names.get(id(stmt), new.name)) if isinstance(new, Block) else new


class Tree:
    """One function: where its loops and blocks are.

    >>> from weft.ir.tensor import FloatImm, PrimVar
    >>> x, i = Buffer("x", (4,)), PrimVar("i")
    >>> tree = Tree("f", PrimFunc((x,), For(i, 0, 4, BufferStore(x, FloatImm(0.0), (i,)))))
    >>> tree.loop(i).extent
    4
    """

    def __init__(self, name: str, function: PrimFunc, module: IRModule | None = None) -> None:
        self.name = name
        self.function = function
        self.module = module
        self.parents: dict[Stmt, Stmt | None] = {}
        self.loops: dict[PrimVar, For] = {}
        self.blocks: dict[str, Block] = {}
        stack: list[tuple[Stmt, Stmt | None]] = [(function.body, None)]
        while stack:
            current, parent = stack.pop()
            self.parents[current] = parent
            if isinstance(current, For):
                self.loops[current.loop_var] = current
            elif isinstance(current, Block):
                self.blocks[current.name] = current
            stack.extend((child, current) for child in reversed(inner_statements(current)))

    def loop(self, variable: PrimVar) -> For | None:
        """The loop of a variable."""
        return self.loops.get(variable)

    def block(self, name: str) -> Block | None:
        """The block of a name."""
        return self.blocks.get(name)

    def above(self, stmt: Stmt) -> Iterator[Stmt]:
        """The statements around one, from the inside out."""
        current = self.parents[stmt]
        while current is not None:
            yield current
            current = self.parents[current]

    def scope(self, stmt: Stmt) -> Block | None:
        """The block around a statement; None for the function itself."""
        return next((item for item in self.above(stmt) if isinstance(item, Block)), None)

    def scope_body(self, stmt: Stmt) -> Stmt:
        """The body of the scope that a statement is in; of a block the init where the statement is in that."""
        below = stmt
        for item in self.above(stmt):
            if isinstance(item, Block):
                return below
            below = item
        return self.function.body

    def loops_around(self, stmt: Stmt) -> list[For]:
        """The loops around a statement inside its scope, from the outside in."""
        found: list[For] = []
        for item in self.above(stmt):
            if isinstance(item, Block):
                break
            if isinstance(item, For):
                found.append(item)
        return found[::-1]

    def all_loops_around(self, stmt: Stmt) -> list[For]:
        """The loops around a statement, outside of its scope too, from the outside in."""
        return [item for item in self.above(stmt) if isinstance(item, For)][::-1]

    def conditions_around(self, stmt: Stmt) -> list[Stmt]:
        """What may keep a statement from running every time, inside its scope."""
        found: list[Stmt] = []
        for item in self.above(stmt):
            if isinstance(item, Block):
                break
            if isinstance(item, (IfThenElse, While)):
                found.append(item)
        return found

    def is_above(self, outer: Stmt, inner: Stmt) -> bool:
        """Whether a statement is inside another one."""
        return any(item is outer for item in self.above(inner))

    def with_body(self, body: Stmt) -> PrimFunc:
        """The function with another body."""
        return replace(self.function, body=body)

    def replaced(self, *changes: tuple[Stmt, Stmt]) -> PrimFunc:
        """The function with some statements (not inside one another) replaced; an empty sequence removes one."""
        new: dict[Stmt, Stmt] = dict(changes)
        targets = set(new)
        touched: set[Stmt] = set()
        for target in targets:
            touched.update(self.above(target))
        return self.with_body(_rebuilt(self.function.body, new, touched))

    def place_of(self, stmt: Stmt) -> Stmt:
        """The statement of the scope's own sequence that a statement is in or is: its nest."""
        current = stmt
        for item in self.above(stmt):
            if isinstance(item, (Block, SeqStmt)):
                top = item
                if isinstance(top, Block) or self.is_scope_sequence(top):
                    return current
            current = item
        return current

    def is_scope_sequence(self, stmt: SeqStmt) -> bool:
        """Whether a sequence is the body of a scope."""
        parent = self.parents[stmt]
        return parent is None or isinstance(parent, Block)

    def allocated_at(self, buffer: Buffer) -> Stmt | None:
        """The statement that allocates a buffer: an AllocBuffer or a Block."""
        for stmt in self.parents:
            if isinstance(stmt, AllocBuffer) and stmt.buffer is buffer:
                return stmt
            if isinstance(stmt, Block) and buffer in stmt.alloc_buffers:
                return stmt
        return None

    def is_view(self, buffer: Buffer) -> bool:
        """Whether a buffer shows memory that others may reach."""
        if buffer.data is not None:
            return True
        for stmt in self.parents:
            if isinstance(stmt, DeclBuffer) and stmt.buffer is buffer:
                return True
            if isinstance(stmt, Block):
                if any(buffer in (match.buffer, match.source.buffer) for match in stmt.match_buffers):
                    return True
        return False

    def fresh_block_name(self, base: str) -> str:
        """A block name near the given one that is free."""
        return fresh_name(base, set(self.blocks)) if base in self.blocks else base

    def order(self, stmts: Sequence[Stmt]) -> list[Stmt]:
        """Statements in the order in which they stand."""
        positions = {stmt: index for index, stmt in enumerate(self.parents)}
        return sorted(stmts, key=lambda stmt: positions[stmt])


_EMPTY = SeqStmt()


def _is_empty(stmt: Stmt | None) -> bool:
    return isinstance(stmt, SeqStmt) and not stmt.stmts


def _rebuilt(stmt: Stmt, new: dict[Stmt, Stmt], touched: set[Stmt]) -> Stmt:
    if stmt in new:
        return new[stmt]
    if stmt not in touched:
        return stmt
    if isinstance(stmt, SeqStmt):
        parts = [part for item in stmt.stmts if not _is_empty(part := _rebuilt(item, new, touched))]
        return sequence(parts)
    if isinstance(stmt, IfThenElse):
        other = None if stmt.else_body is None else _rebuilt(stmt.else_body, new, touched)
        body = _rebuilt(stmt.then_body, new, touched)
        if _is_empty(body) and (other is None or _is_empty(other)):
            return _EMPTY
        return replace(stmt, then_body=body, else_body=other)
    if isinstance(stmt, Block):
        init = None if stmt.init is None else _rebuilt(stmt.init, new, touched)
        return replace(stmt, init=init, body=_rebuilt(stmt.body, new, touched))
    assert isinstance(stmt, (For, While, AttrStmt))
    body = _rebuilt(stmt.body, new, touched)
    return _EMPTY if isinstance(stmt, For) and _is_empty(body) else replace(stmt, body=body)
