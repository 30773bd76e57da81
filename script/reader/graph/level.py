"""The level of graph functions: what names, operators and calls mean there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from weft.ir.deduction.infer import TypeContext
from weft.script.forms.reading import GRAPH
from weft.script.reader.expression.level import AROUND
from weft.script.reader.graph import branches
from weft.script.reader.graph.bindings import settled_value, undefined_value
from weft.script.reader.graph.conditions import read_condition, unary_value
from weft.script.reader.graph.expressions import emit_te, forms, updates  # noqa: F401  their forms
from weft.script.reader.graph.expressions.call import call_function, call_graph
from weft.script.reader.graph.expressions.elements import (
    attribute_of_value,
    element_of_value,
    iterable_value,
    spread_value,
)
from weft.script.reader.graph.expressions.operators import (
    builtin_of_values,
    combine_values,
    contained_value,
    operator_instead,
    operator_names,
)
from weft.script.reader.graph.function import expand_graph_macro
from weft.script.reader.graph.loops.comprehensions import comprehension_value, reduction_value
from weft.script.reader.graph.session import GraphSession
from weft.script.reader.graph.statements import statement_list
from weft.script.reader.scope import ModuleScope
from weft.script.source.text import Unit

__all__ = ["graph_session"]

_LEVEL = replace(
    AROUND,
    letter="R",
    readers=GRAPH,
    undefined=undefined_value,
    extra_names=operator_names,
    instead_of=operator_instead,
    attribute_of=attribute_of_value,
    subscript_of=element_of_value,
    spread=spread_value,
    settled=settled_value,
    iterable=iterable_value,
    combine=combine_values,
    combine_unary=unary_value,
    contained=contained_value,
    condition=read_condition,
    comprehension=comprehension_value,
    reduction=reduction_value,
    conditional=branches.conditional_value,
    either=branches.either_value,
    call_named=call_graph,
    call_other=call_function,
    builtin_of=builtin_of_values,
    expand_body=expand_graph_macro,
    statement_list=statement_list,
)


def graph_session(unit: Unit, module: ModuleScope, functions: Mapping[str, Any]) -> GraphSession:
    """A session for a graph function that may call others."""
    return GraphSession(unit, module, _LEVEL, context=TypeContext(functions))
