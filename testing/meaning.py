"""Whether two programs compute the same, judged by the reference interpreter on random arguments.

    assert_same_meaning(before, after)                      both interpreted
    assert_same_meaning(before, after, target="llvm")       `after` compiled
    compare(before, run, name, arguments)                   one set of arguments; False where `before` has no result
    compare_random(module, run, seed)                       a random module, at the first sizes that have a result

Floats may differ by what one unit in the last place of the inputs does to the result (`checks.assert_agree`), all else
not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from weft.codegen import compile
from weft.errors import ArgumentError, WeftError
from weft.ir.graph import Function
from weft.ir.interpret import interpret
from weft.ir.module import IRModule
from weft.ir.node import FrozenMap
from weft.ir.tensor import PrimFunc
from weft.runtime import Executable, find_func, register_func
from weft.testing import checks, graphs, kernels, opaque
from weft.transform.infra.generators import arguments as generated
from weft.transform.infra.generators.choices import SeededChoices

__all__ = [
    "assert_same_meaning",
    "compare",
    "compare_random",
    "random_arguments",
    "random_kernel",
    "random_module",
    "register_library",
    "runner",
]

Program = IRModule | Function | PrimFunc | Executable
Run = Callable[[str, Sequence[Any]], Any]


def random_module(seed: int, *, runnable: bool = True, bindings: int = 15) -> IRModule:
    """A well-formed module of graph functions, kernels and library calls with a function `main`.

    `runnable` modules have a result for any arguments that fit, up to sizes that an operator refuses; others hold
    anything that can be written. `bindings` bounds the length of `main`. The same seed gives the same module in any
    process.

    >>> random_module(3).script() == random_module(3).script()
    True
    """
    return graphs.module(SeededChoices(seed), runnable=runnable, bindings=bindings)


def random_kernel(seed: int, *, runnable: bool = True) -> PrimFunc:
    """A tensor-level function that writes every element of its outputs, for all sizes from 0 up.

    >>> random_kernel(1).name
    'kernel'
    """
    return (kernels.free_kernel if runnable else opaque.opaque_kernel)(SeededChoices(seed))


def random_arguments(
    function: Function | PrimFunc, seed: int = 0, *, symbols: Mapping[str, int] | None = None
) -> list[Any]:
    """Arguments that fit the signature of a function: NumPy arrays of moderate values, sizes from 0 up, or `symbols`.

    Errors: ArgumentError W866 where no sizes were found that make every dimension of the signature at least 0.

    >>> main = random_module(1)["main"]
    >>> len(random_arguments(main, 5)) == len(main.params)
    True
    """
    return generated.random_arguments(function, SeededChoices(seed), symbols)


def _as_module(program: IRModule | Function | PrimFunc) -> IRModule:
    return program if isinstance(program, IRModule) else IRModule(FrozenMap({program.name: program}))


def _library(name: str) -> Callable[..., Any] | None:
    """The functions that random modules call, and the registered ones."""
    return graphs.extern(name) or find_func(name)


def register_library() -> None:
    """Compiled code finds the functions that random modules call among the registered ones."""
    for name, function in graphs.EXTERN.items():
        if find_func(name) is None:
            register_func(name, function)


def runner(program: Program, target: Any = None) -> Run:
    """How to run a function of a program by name on copies of arguments: compiled for a target, else interpreted.

    What comes back is the result, or for a kernel its arguments after the call.
    """
    made = program if isinstance(program, Executable) else _as_module(program)
    if isinstance(made, IRModule) and target is not None:
        register_library()
        made = compile(made, target)
    functions: Any = interpret(made, functions=_library) if isinstance(made, IRModule) else made

    def run(name: str, arguments: Sequence[Any]) -> Any:
        values = generated.copied(arguments)
        result = functions[name](*values)
        return tuple(values) if result is None else result

    return run


def compare(
    before: IRModule,
    run: Run,
    name: str,
    arguments: Sequence[Any],
    no_result: Callable[[WeftError], bool] = lambda error: True,
) -> bool:
    """Hold `run` against the interpreter on one set of arguments; False where `before` has no result for them.

    `no_result` says which errors of `before` mean that, any by default. Raises AssertionError that says where the
    results differ.
    """
    try:
        expected = runner(before)(name, arguments)
    except WeftError as error:
        if not no_result(error):
            raise
        return False
    near_module, near_arguments = checks.nudged(before, arguments)
    try:
        nearby = runner(near_module)(name, near_arguments)
    except WeftError:  # a check that holds by a hair
        nearby = expected
    checks.assert_agree(expected, run(name, arguments), nearby, checks.precision(before), name)
    return True


def compare_random(module: IRModule, run: Run, seed: int, attempts: int = 4) -> bool:
    """Hold `run` against the interpreter on `main` of a random module, at the first sizes that have a result.

    False where none of the attempts found any: the operators of random modules refuse some sizes, and what is computed
    and not used may be refused by one of the two alone.
    """
    main = module["main"]
    assert isinstance(main, Function)
    for attempt in range(attempts):
        try:
            if compare(module, run, "main", random_arguments(main, seed + 7919 * attempt), checks.has_no_result):
                return True
        except WeftError as error:
            if not checks.has_no_result(error):
                raise
    return False


def _names(before: IRModule, name: str | None) -> list[str]:
    if name is not None:
        return [name]
    return [
        found
        for found, function in before.functions.items()
        if isinstance(function, (Function, PrimFunc)) and not function.private
    ]


def assert_same_meaning(
    before: IRModule | Function | PrimFunc,
    after: Program,
    *,
    name: str | None = None,
    arguments: Sequence[Any] | None = None,
    trials: int = 4,
    seed: int = 0,
    target: Any = None,
) -> None:
    """Assert that `after` computes what `before` does, for the public functions of `before` or the one named.

    `before` is interpreted; `after` is interpreted, or run as it is when it is an Executable, or compiled for `target`.
    The arguments are random, `trials` sets for each function, unless they are given. Raises AssertionError with the
    function, the element of the result and both values; and where no trial found arguments that `before` accepts, since
    then nothing was compared.

    >>> import weft
    >>> module = random_module(1)
    >>> assert_same_meaning(module, weft.transform.LegalizeOps()(module))
    """
    old = _as_module(before)
    run = runner(after, target)
    for found in _names(old, name):
        function = old[found]
        assert isinstance(function, (Function, PrimFunc)), f"{found} is no function that runs"
        compared = 0
        for trial in range(trials if arguments is None else 1):
            try:
                given = random_arguments(function, seed + 7919 * trial) if arguments is None else arguments
            except ArgumentError:
                continue
            compared += compare(old, run, found, given)
        assert compared, f"{found}: none of {trials} sets of random arguments has a result; give arguments="
