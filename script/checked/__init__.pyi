"""The decorators of functions as type checkers see them; nothing here is imported when a program runs.

The annotations of a script are calls, `x: R.Tensor((2,), "float32")`, which the rules for annotations forbid. Checkers
leave alone what `typing.no_type_check` decorates, and know it by its name and by the name of its stub: hence the names
of the files and functions below. A decorator that is given options is told from one that is given a function by the
default of its parameter.
"""
