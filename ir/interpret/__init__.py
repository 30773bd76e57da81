"""The reference interpreter: the meaning of a module, on NumPy.

    interpret(module, functions=lookup)["main"](*arrays)        any function of a module, at any phase
    interpret(function)(*arrays)                                one function alone

`functions(name)` gives the Python function of an external symbol or None. Everything is checked: indices, reads of
what was never written, outputs that were not wholly written, shapes and dtypes of arguments. Speed is not a goal.
"""

from weft.ir.interpret.entry import Interpreter, interpret
from weft.support.small_floats import decode, encode

__all__ = ["Interpreter", "decode", "encode", "interpret"]
