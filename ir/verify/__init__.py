"""The verifier: a table of coded checks over a module, and all that is wrong with it at once.

    verify(module)               every finding, in the order of the functions; [] is well formed
    assert_well_formed(module)   raises the first finding as a VerifyError, with the others as notes
    fault_of(module)             the first finding, or None: for what fails on a module
    certain_findings(...)        the part of it that reading a script asks for
    refuse_ill_formed_kernels    the part of it that code generators rely on
    CHECKS                       code -> rule

Names, form, effects and types of graph functions are in `names`, `form`, `purity`, `values`; scopes, accesses,
expressions and blocks of tensor-level functions in `tensor`, `accesses`, `expressions`, `blocks`. Time is linear in
the size of the module.
"""

from weft.ir.verify.entry import (
    assert_well_formed,
    certain_findings,
    fault_of,
    refuse_ill_formed_kernels,
    valueless_symbols,
    verify,
)
from weft.ir.verify.findings import CHECKS, Finding

__all__ = [
    "CHECKS",
    "Finding",
    "assert_well_formed",
    "certain_findings",
    "fault_of",
    "refuse_ill_formed_kernels",
    "valueless_symbols",
    "verify",
]
