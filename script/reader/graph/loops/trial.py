"""Reading as a trial: what is read can be undone, so that nothing of it stays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from weft.errors import WeftError
from weft.script.reader.graph.session import GraphSession

__all__ = ["restore_names", "tried", "undone"]


@contextmanager
def undone(session: GraphSession, *, keeps: bool = False) -> Iterator[None]:
    """Read something as if it had not been read, or, where it `keeps` what can be, only what cannot.

    The first error is raised.
    """
    scope, names, blocks = session.scope, dict(session.scope.names), session.blocks
    symbols, hidden, state = set(session.symbols), dict(session.hidden), dict(vars(session))
    lists = [(value, list(value)) for value in names.values() if isinstance(value, list)]
    done, bindings = list(blocks.done), list(blocks.bindings)
    findings, session.unit.findings = session.unit.findings, None
    can_be_read = False
    try:
        yield
        can_be_read = True
    finally:
        if not (keeps and can_be_read):
            vars(session).update(state)
            scope.names, blocks.done, blocks.bindings = names, done, bindings
            restore_names(session, symbols, hidden)
            for value, kept in lists:
                value[:] = kept
        session.unit.findings = findings


def tried(session: GraphSession, read: Callable[[], None], *, keeps: bool = False) -> WeftError | None:
    """Whether something can be read: None, or the error that says why not. Of the former it `keeps` what it read."""
    try:
        with undone(session, keeps=keeps):
            read()
    except WeftError as error:
        if error.code == "W103":
            raise
        return error
    return None


def restore_names(session: GraphSession, symbols: set[str], hidden: Mapping[str, str]) -> None:
    """Have the symbols and the hidden names of a function that it had before."""
    session.symbols.clear()
    session.symbols.update(symbols)
    session.hidden.clear()
    session.hidden.update(hidden)
