"""The state of a schedule: the module, the function in work, the handles, and how primitives read and change them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.ir import IRModule, walk
from weft.ir.tensor import Block, For, PrimFunc, PrimVar, Stmt
from weft.support.records import dataclass
from weft.transform.infra.registry import nearest
from weft.transform.kernel.scheduled import SCHEDULED, is_scheduled
from weft.transform.schedule.failure import failure
from weft.transform.schedule.handles import BlockRV, ExprRV, Handle, LoopRV
from weft.transform.schedule.tree import Tree

__all__ = ["INDEPENDENT", "Proven", "ScheduleState"]

INDEPENDENT = {"parallel": "run in parallel", "vectorized": "be vectorized", "thread_binding": "be bound to threads"}
"""The kinds of loops whose iterations must have nothing in common, and what a loop of a kind does."""


@dataclass(frozen=True)
class _Saved:
    module: IRModule
    function: str | None
    keys: dict[Handle, tuple[str, Any]]
    separate: Mapping[PrimVar, Proven | None]


@dataclass(frozen=True)
class Proven:
    """A loop whose iterations were proved to be separate, and what was known of the places around it then."""

    loop: For
    around: tuple[object, ...]

    @staticmethod
    def of(tree: Tree, loop: For) -> Proven:
        """A loop where it stands now."""
        around: list[object] = []
        for stmt in tree.above(loop):
            if isinstance(stmt, For):
                around += (stmt.loop_var, stmt.start, stmt.extent)
            elif isinstance(stmt, Block):
                around.append(stmt.iter_vars)
        return Proven(loop, tuple(around))

    def holds_for(self, other: Proven) -> bool:
        """Whether a proof is one of another loop too: the same node in the same ranges."""
        if self.loop is not other.loop or len(self.around) != len(other.around):
            return False
        return all(a is b or (isinstance(a, int) and a == b) for a, b in zip(self.around, other.around, strict=True))


class ScheduleState:
    """What primitives are written with: handles -> (function, loop variable | block name | number) -> nodes."""

    def __init__(self, module: IRModule, function: str | None) -> None:
        self._module = module
        self._function = function
        self._keys: dict[Handle, tuple[str, Any]] = {}
        self._trees: dict[str, Tree] = {}
        self._separate: Mapping[PrimVar, Proven | None] = {}  # loops that must stay independent, and the last proof

    def _saved(self) -> _Saved:
        return _Saved(self._module, self._function, dict(self._keys), self._separate)

    def _restore(self, saved: _Saved) -> None:
        """Be as it was when `saved` was taken."""
        self._module, self._function, self._keys = saved.module, saved.function, saved.keys
        self._trees, self._separate = {}, saved.separate

    def _name_of_function(self, name: str | None) -> str:
        name = self._function if name is None else name
        functions = [key for key, function in self._module.items() if isinstance(function, PrimFunc)]
        if not functions:
            raise failure("W601", "the module has no tensor function", hint="weft.transform.LegalizeOps() makes them")
        if name is None:
            raise failure(
                "W601",
                "the module has several tensor functions, and none is chosen",
                hint=f"sch.work_on(...) one of {', '.join(functions)}",
            )
        if name not in functions:
            raise failure(
                "W601",
                f"the module has no tensor function {name!r}",
                hint=nearest(name, functions) or f"it has: {', '.join(functions)}",
            )
        return name

    def _tree(self, name: str) -> Tree:
        function = self._module[name]
        assert isinstance(function, PrimFunc)
        found = self._trees.get(name)
        if found is None or found.function is not function or found.module is not self._module:
            found = self._trees[name] = Tree(name, function, self._module)
        return found

    def _key(self, handle: Any, kind: type[Handle], what: str) -> tuple[str, Any]:
        if not isinstance(handle, kind):
            raise failure(
                "W604",
                f"a {what} handle is needed, not {type(handle).__name__}",
                hint='sch.get_block("name") and sch.get_loops(block) give handles',
            )
        if handle not in self._keys:
            raise failure("W603", f"this {what} handle is none of this schedule")
        return self._keys[handle]

    def _loop(self, handle: Any) -> tuple[Tree, For]:
        """The tree and the loop of a handle."""
        name, variable = self._key(handle, LoopRV, "loop")
        tree = self._tree(name)
        found = tree.loop(variable)
        if found is None:
            raise failure("W603", f"the loop {variable.name!r} is gone: an earlier step has replaced it")
        return tree, found

    def _block(self, handle: Any) -> tuple[Tree, Block]:
        """The tree and the block of a handle, or of its name in the function in work."""
        name, key = self._named(handle) if isinstance(handle, str) else self._key(handle, BlockRV, "block")
        tree = self._tree(name)
        found = tree.block(key)
        if found is None:
            raise failure("W603", f"the block {key!r} is gone: an earlier step has removed it")
        return tree, found

    def _named(self, block: str, function: str | None = None) -> tuple[str, str]:
        """What the handle of a block's name stands for, by default in the function in work; W602 when there is none."""
        function = self._name_of_function(function)
        known = list(self._tree(function).blocks)
        if block not in known and block != "root":
            raise failure(
                "W602",
                f"function {function!r} has no block {block!r}",
                hint=nearest(block, known) or (f"it has: {', '.join(known)}" if known else "it has no blocks"),
            )
        return function, block

    def _number(self, value: Any) -> int:
        """A number, or that of a handle."""
        if isinstance(value, ExprRV):
            return self._key(value, ExprRV, "number")[1]
        if isinstance(value, bool) or not isinstance(value, int):
            raise failure("W604", f"a whole number is needed, not {value!r}")
        return value

    def _loop_handle(self, name: str, variable: PrimVar) -> LoopRV:
        handle = LoopRV(variable.name)
        self._keys[handle] = (name, variable)
        return handle

    def _block_handle(self, name: str, block: str) -> BlockRV:
        handle = BlockRV(block)
        self._keys[handle] = (name, block)
        return handle

    def _rename(self, function: str, old: str, new: str) -> None:
        """Let the handles of a block stand for it under another name."""
        self._keys = {
            handle: (function, new) if key == (function, old) and isinstance(handle, BlockRV) else key
            for handle, key in self._keys.items()
        }

    def _expr_handle(self, value: int) -> ExprRV:
        handle = ExprRV(str(value))
        self._keys[handle] = ("", value)
        return handle

    def _keep_separate(self, stmt: Stmt) -> None:
        """Let copies of loops whose iterations must stay independent be such loops too."""
        copies = {part.loop_var for part in walk(stmt) if isinstance(part, For) and part.kind in INDEPENDENT}
        self._separate = {**self._separate, **dict.fromkeys(copies)}

    def _set(self, tree: Tree, function: PrimFunc) -> Tree:
        """Keep a new form of a function; the new tree."""
        if function is tree.function:
            return tree
        if not is_scheduled(function):
            function = function.with_attr(SCHEDULED, True)
        self._module = self._module.with_function(tree.name, function)
        return self._tree(tree.name)
