"""Reading as a trial: what is read can be undone, so that nothing of it stays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from weft.errors import WeftError
from weft.script.reader.graph.session import GraphSession

__all__ = ["restore_names", "tried", "undone"]


@contextmanager
def undone(session: GraphSession) -> Iterator[None]:
    """Read something as if it had not been read; the first error is raised."""
    scope, names, blocks = session.scope, dict(session.scope.names), session.blocks
    symbols, hidden, state = set(session.symbols), dict(session.hidden), dict(vars(session))
    lists = [(value, list(value)) for value in names.values() if isinstance(value, list)]
    done, bindings = list(blocks.done), list(blocks.bindings)
    findings, session.unit.findings = session.unit.findings, None
    try:
        yield
    finally:
        vars(session).update(state)
        scope.names, blocks.done, blocks.bindings = names, done, bindings
        restore_names(session, symbols, hidden)
        for value, kept in lists:
            value[:] = kept
        session.unit.findings = findings


def tried(session: GraphSession, read: Callable[[], None]) -> WeftError | None:
    """Whether something can be read: None, or the error that says why not. Nothing of it stays."""
    try:
        with undone(session):
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
