"""Questions about programs, in one place: what passes ask, for passes of your own (docs/guide/analysis.md).

Graph functions
    all_variables, bound_variables, used_variables, free_variables       of a function or an expression
    use_counts, users                                                    how often, and by whom
    bindings_of_function                                                 what each variable stands for
    is_pure, checks_sizes, gives_fresh_memory                            what a value may do
    symbols_of, bare_symbols                                             the sizes that occur, and those a type binds
    Lifetimes                                                            where memory is made and used last
    live_bytes, peak_memory                                              bytes that are there, with symbolic sizes
    flops, memory_traffic, function_cost, bytes_of, OpCost               what it costs, with symbolic sizes
    AxisLayout, layout_rule                                              how operators compute on moved axes

Modules
    all_global_variables, call_graph, referenced_functions, reached_from, recursive_groups

Kernels
    access_regions, accesses_of, block_accesses                          what is read and written, and where
    iterations_are_apart, sharing_pairs, is_reshape                      what may run in parallel, or in place
    written_buffers, unproved_reads                                      outputs, and reads before writes
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.ir.interpret.kernel import written_buffers
from weft.ir.kernel.regions import block_accesses
from weft.ir.op import get_op
from weft.ir.op.layout_rules.axis_layout import AxisLayout
from weft.ir.structure.references import call_graph, reached_from, recursive_groups, referenced_functions
from weft.ir.structure.variables import (
    all_global_variables,
    all_variables,
    bound_variables,
    free_variables,
    use_counts,
    used_variables,
    users,
)
from weft.transform.analysis.access_regions import access_regions
from weft.transform.analysis.accesses import accesses_of, is_reshape, iterations_are_apart, sharing_pairs
from weft.transform.analysis.free_symbols import bare_symbols, symbols_of
from weft.transform.analysis.lifetimes import Lifetimes
from weft.transform.analysis.op_cost import OpCost, bytes_of, flops, function_cost, memory_traffic
from weft.transform.analysis.peak_memory import live_bytes, peak_memory
from weft.transform.analysis.purity import checks_sizes, gives_fresh_memory, is_pure
from weft.transform.analysis.written import unproved_reads
from weft.transform.pattern.matching import bindings_of_function

__all__ = [
    "AxisLayout",
    "Lifetimes",
    "OpCost",
    "access_regions",
    "accesses_of",
    "all_global_variables",
    "all_variables",
    "bare_symbols",
    "bindings_of_function",
    "block_accesses",
    "bound_variables",
    "bytes_of",
    "call_graph",
    "checks_sizes",
    "flops",
    "free_variables",
    "function_cost",
    "gives_fresh_memory",
    "is_pure",
    "is_reshape",
    "iterations_are_apart",
    "layout_rule",
    "live_bytes",
    "memory_traffic",
    "peak_memory",
    "reached_from",
    "recursive_groups",
    "referenced_functions",
    "sharing_pairs",
    "symbols_of",
    "unproved_reads",
    "use_counts",
    "used_variables",
    "users",
    "written_buffers",
]


def layout_rule(name: str) -> Callable[..., Any] | str:
    """The rule by which an operator computes on operands whose axes lie otherwise, or the reason why it has none.

    Raises ScriptError W140 for an unknown operator.

    >>> layout_rule("matmul")
    'its rows or matrices are the last axes'
    >>> callable(layout_rule("nn.relu"))
    True
    """
    definition = get_op(name.removeprefix("R.").removeprefix("relax."))
    return definition.layout or "its declaration says nothing of layouts"
