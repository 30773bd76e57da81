"""The level around functions: of a module's attributes, of constants and of what decorators take."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from weft.script.forms.reading import COMMON
from weft.script.reader.expression import objects, places  # noqa: F401  their forms
from weft.script.reader.expression.arguments import as_it_is, spread_container
from weft.script.reader.expression.call import call_form, refuse_call
from weft.script.reader.expression.dims import dim_of_text, use_symbol_name
from weft.script.reader.expression.expansion import expand_expression
from weft.script.reader.expression.names import (
    captured_value,
    declared_symbol,
    lookup_name,
    no_names,
    symbol_dim,
    undefined_name,
    unknown_name,
)
from weft.script.reader.expression.operators import (
    both_operands,
    no_operator,
    no_unary_operator,
    not_contained,
    plain_condition,
    refuse_conditional,
)
from weft.script.reader.expression.python_functions import no_reduction, refuse_builtin
from weft.script.reader.expression.static import nothing_instead
from weft.script.reader.expression.unrolling import iterable_container, static_comprehension
from weft.script.reader.expression.values import attribute_of_object, element_of_container, no_pointer
from weft.script.reader.scope import ModuleScope
from weft.script.reader.session import Level, Session
from weft.script.source.text import Unit

__all__ = ["AROUND", "session_around"]


def _no_statements(session: Session, trees: Sequence[ast.stmt]) -> list[Any]:
    raise session.unsupported(trees[0])


AROUND = Level(
    letter="",
    readers=COMMON,
    loop_hint="loop over range(3), a tuple or a list",
    lookup=lookup_name,
    undefined=undefined_name,
    unknown=unknown_name,
    extra_names=no_names,
    instead_of=nothing_instead,
    captured=captured_value,
    symbol_value=symbol_dim,
    use_symbol=use_symbol_name,
    declared_outside=declared_symbol,
    dim_text=dim_of_text,
    attribute_of=attribute_of_object,
    pointer_dtype=no_pointer,
    subscript_of=element_of_container,
    spread=spread_container,
    settled=as_it_is,
    iterable=iterable_container,
    combine=no_operator,
    combine_unary=no_unary_operator,
    contained=not_contained,
    condition=plain_condition,
    comprehension=static_comprehension,
    reduction=no_reduction,
    conditional=refuse_conditional,
    either=both_operands,
    call_named=call_form,
    call_other=refuse_call,
    builtin_of=refuse_builtin,
    expand_body=expand_expression,
    statement_list=_no_statements,
)


def session_around(unit: Unit, module: ModuleScope) -> Session:
    """A session for what stands around functions."""
    return Session(unit, module, AROUND)
