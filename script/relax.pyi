"""The namespace `R`: graph functions, types, leaves and operators. Written from the declarations; do not edit."""

import typing as _t
from contextlib import AbstractContextManager as _Context

from weft.script.checked.graph.typing_extensions import no_type_check as _function
from weft.script.checked.macro.typing_extensions import no_type_check as _macro


function = _function
macro = _macro

def Any() -> _t.Any:
    """The type of anything."""

def Callable(params: _t.Any = None, ret: _t.Any = None, pure: _t.Any = None, *, purity: _t.Any = None, derive: _t.Any = None, derive_func: _t.Any = None) -> _t.Any:
    """A function type; without params, that of an opaque function."""

def DTensor(shape: _t.Any = None, dtype: _t.Any = None, device_mesh: _t.Any = None, placement: _t.Any = None, *, ndim: _t.Any = -1) -> _t.Any:
    """The type of a tensor that is spread over a mesh; a mesh that is named is known only inside of its module."""

def ExternFunc(name: _t.Any, ty: _t.Any = None) -> _t.Any:
    """A function outside the module, by name."""

def Prim(dtype: _t.Any = None, value: _t.Any = None) -> _t.Any:
    """The type of one scalar; with a value of the one that it is: a number, or a size by name."""

def Shape(dims: _t.Any = None, *, ndim: _t.Any = -1) -> _t.Any:
    """A shape type."""

def Str() -> _t.Any:
    """A string."""

def Tensor(shape: _t.Any = None, dtype: _t.Any = None, vdevice: _t.Any = None, *, ndim: _t.Any = -1) -> _t.Any:
    """A tensor type; dimensions are ints, symbols, or strings such as "n" and "2 * n"."""

def Tuple(*fields: _t.Any) -> _t.Any:
    """A tuple type."""

def TupleGetItem(tuple_value: _t.Any, index: _t.Any) -> _t.Any:
    """A field of a tuple: `t[0]`."""

def call_op(name: _t.Any, *args: _t.Any, attrs: _t.Any = ..., ty_args: _t.Any = ()) -> _t.Any:
    """A call of an operator by name, its parts given as they are."""

def const(data: _t.Any, dtype: _t.Any = None, *, shape: _t.Any = None, bits: _t.Any = False) -> _t.Any:
    """A constant from a number, nested lists or an array."""

def dataflow() -> _Context[_t.Any]:
    """A block of pure bindings; only what R.output names leaves it."""

def device_mesh(shape: _t.Any, device_ids: _t.Any) -> _t.Any:
    """A grid of devices by number; `I.Range(0, 4)` are numbers that follow one another."""

def dtype(value: _t.Any) -> _t.Any:
    """A dtype as a value."""

def emit(value: _t.Any, annotate_ty: _t.Any = None, *, annotate_struct_info: _t.Any = ...) -> _t.Any:
    """The value in a binding of its own, of a type that it is checked to have."""

def func_attr(attrs: _t.Any) -> _t.Any:
    """Attributes of the function."""

def is_impure() -> _t.Any:
    """The function may have effects, as @R.function(pure=False) says."""

def match_cast(value: _t.Any, ty: _t.Any, *, struct_info: _t.Any = ...) -> _t.Any:
    """The value, its type checked when the function runs; symbols of the type that are new are bound."""

def output(*vars: _t.Any) -> _t.Any:
    """The variables that leave a dataflow block, at its end."""

def prim_value(value: _t.Any, dtype: _t.Any = None) -> _t.Any:
    """A scalar as a value."""

def shape(dims: _t.Any) -> _t.Any:
    """A shape as a value."""

def str(value: _t.Any) -> _t.Any:
    """A string as a value."""

def tuple(*fields: _t.Any) -> _t.Any:
    """A tuple as a value."""

def emit_te(func: _t.Any, *args: _t.Any, primfunc_name_hint: _t.Any = None, primfunc_attrs: _t.Any = None, **options: _t.Any) -> _t.Any:
    """A call of the kernel that a Python function over te tensors computes; read inside decorated functions."""

def rewriter(cls: type) -> _t.Any:
    """Read a class of the functions `pattern` and `replacement` as a `weft.transform.pattern.PatternMatchingRewriter`.

        Raises: ScriptError and the errors of type deduction with the place in the user's file; PassError W550 for a class
        that states no rule.
    """

def abs(x: _t.Any) -> _t.Any:
    """The absolute value, elementwise; of complex numbers the length, a float.

    R.abs(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.abs(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
    R.abs(R.Tensor((n,), "float64")) -> R.Tensor((n,), "float64")
    R.abs(R.Tensor((n, 3), "complex64")) -> R.Tensor((n, 3), "float32")
    R.abs(R.Tensor((4,), "complex128")) -> R.Tensor((4,), "float64")
    """

def acos(x: _t.Any) -> _t.Any:
    """The inverse cosine, elementwise; nan outside [-1, 1].

    R.acos(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.acos(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
    R.acos(R.Tensor((n,), "float64")) -> R.Tensor((n,), "float64")
    R.acos(R.Tensor((n, 3), "complex64")) -> R.Tensor((n, 3), "complex64")
    R.acos(R.Tensor((4,), "complex128")) -> R.Tensor((4,), "complex128")
    """

def acosh(x: _t.Any) -> _t.Any:
    """The inverse hyperbolic cosine, elementwise; nan below 1.

    R.acosh(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.acosh(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
    R.acosh(R.Tensor((n,), "float64")) -> R.Tensor((n,), "float64")
    R.acosh(R.Tensor((n, 3), "complex64")) -> R.Tensor((n, 3), "complex64")
    R.acosh(R.Tensor((4,), "complex128")) -> R.Tensor((4,), "complex128")
    """

def add(x1: _t.Any, x2: _t.Any) -> _t.Any:
    """x1 + x2, elementwise; of bools, whether one is true.

    R.add(R.Tensor((2, 3), "float32"), R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.add(R.Tensor((n, 4), "float32"), R.Tensor((4,), "float32")) -> R.Tensor((n, 4), "float32")
    R.add(R.Tensor((n, 1, 4), "float32"), R.Tensor((3, 1), "float32")) -> R.Tensor((n, 3, 4), "float32")
    R.add(R.Tensor((n,), "float32"), R.Tensor((m,), "float32")) -> R.Tensor((n,), "float32")
    R.add(R.Tensor((5,), "int64"), R.Tensor((5,), "int64")) -> R.Tensor((5,), "int64")
    R.add(R.Tensor((n, 4), "complex64"), R.Tensor((4,), "complex64")) -> R.Tensor((n, 4), "complex64")
    R.add(R.Tensor((3, 1), "complex128"), R.Tensor((m,), "complex128")) -> R.Tensor((3, m), "complex128")
    R.add(R.Tensor((2, n), "bool"), R.Tensor((n,), "bool")) -> R.Tensor((2, n), "bool")
    """

def all(x: _t.Any, axis: _t.Any = None, keepdims: _t.Any = False) -> _t.Any:
    """Whether all elements along the axes are not zero; bool. True of no elements.

    R.all(R.Tensor((2, 3), "bool")) -> R.Tensor((), "bool")
    R.all(R.Tensor((n, 4), "bool"), axis=1) -> R.Tensor((n,), "bool")
    R.all(R.Tensor((n, 3), "int32"), axis=[0, 1]) -> R.Tensor((), "bool")
    R.all(R.Tensor((2, 3), "float32"), axis=-1, keepdims=True) -> R.Tensor((2, 1), "bool")
    """

def angle(x: _t.Any) -> _t.Any:
    """The angles of numbers in the plane, elementwise, in (-pi, pi]: of real ones 0 or pi.

    R.angle(R.Tensor((n, 3), "complex64")) -> R.Tensor((n, 3), "float32")
    R.angle(R.Tensor((4,), "complex128")) -> R.Tensor((4,), "float64")
    R.angle(R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32")
    """

def any(x: _t.Any, axis: _t.Any = None, keepdims: _t.Any = False) -> _t.Any:
    """Whether any element along the axes is not zero; bool. False of no elements.

    R.any(R.Tensor((2, 3), "bool")) -> R.Tensor((), "bool")
    R.any(R.Tensor((n, 4), "bool"), axis=1) -> R.Tensor((n,), "bool")
    R.any(R.Tensor((n, 3), "int32"), axis=[0, 1]) -> R.Tensor((), "bool")
    R.any(R.Tensor((2, 3), "float32"), axis=-1, keepdims=True) -> R.Tensor((2, 1), "bool")
    """

def arange(start: _t.Any, end: _t.Any = None, step: _t.Any = 1, dtype: _t.Any = None) -> _t.Any:
    """start, start + step, ... up to end, which is left out. A single value is the end.

    Boundaries and steps that a run computes give a vector whose size only the run knows. Dtype: int64 for integers and
    float32 for floats unless given. Errors: ShapeError W205 a step that is 0; DTypeError W320 a range of bools, W321 a
    bound that the dtype cannot hold.

    R.arange(5) -> R.Tensor((5,), "int64")
    R.arange(n) -> R.Tensor((n,), "int64")
    R.arange(2, n, 3) -> R.Tensor((n // 3,), "int64")
    R.arange(n, 0, -1, dtype='int32') -> R.Tensor((n,), "int32")
    R.arange(0, 1, 0.25) -> R.Tensor((4,), "float32")
    R.arange(1, 2 * n + 1, dtype='float32') -> R.Tensor((2 * n,), "float32")
    R.arange(0, n, 2) -> R.Tensor(((n + 1) // 2,), "int64")
    """

def argmax(x: _t.Any, axis: _t.Any = None, keepdims: _t.Any = False) -> _t.Any:
    """The position of the greatest value along an axis (of the flattened tensor for None), the first of equal ones.

    R.argmax(R.Tensor((2, 5), "float32"), axis=1) -> R.Tensor((2,), "int64")
    R.argmax(R.Tensor((n, 3), "float32"), axis=-1, keepdims=True) -> R.Tensor((n, 1), "int64")
    R.argmax(R.Tensor((3, 4), "float32")) -> R.Tensor((), "int64")
    R.argmax(R.Tensor((n, m), "float32"), axis=0) -> R.Tensor((m,), "int64")
    R.argmax(R.Tensor((3, 6), "int32"), axis=1) -> R.Tensor((3,), "int64")
    """

def argmin(x: _t.Any, axis: _t.Any = None, keepdims: _t.Any = False) -> _t.Any:
    """The position of the least value along an axis (of the flattened tensor for None), the first of equal ones.

    R.argmin(R.Tensor((2, 5), "float32"), axis=1) -> R.Tensor((2,), "int64")
    R.argmin(R.Tensor((n, 3), "float32"), axis=-1, keepdims=True) -> R.Tensor((n, 1), "int64")
    R.argmin(R.Tensor((3, 4), "float32")) -> R.Tensor((), "int64")
    R.argmin(R.Tensor((n, m), "float32"), axis=0) -> R.Tensor((m,), "int64")
    R.argmin(R.Tensor((3, 6), "int32"), axis=1) -> R.Tensor((3,), "int64")
    """

def argsort(data: _t.Any, axis: _t.Any = -1, descending: _t.Any = False, dtype: _t.Any = 'int32') -> _t.Any:
    """The positions that sort an axis; equal elements keep their order.

    Errors: ShapeError W203 the axis; DTypeError W321.

    R.argsort(R.Tensor((3, 9), "float32")) -> R.Tensor((3, 9), "int32")
    R.argsort(R.Tensor((n, 5), "int64"), 0) -> R.Tensor((n, 5), "int32")
    R.argsort(R.Tensor((n,), "int64"), descending=True, dtype='int64') -> R.Tensor((n,), "int64")
    R.argsort(R.Tensor((2, 9), "bool"), descending=True) -> R.Tensor((2, 9), "int32")
    """

def as_strided(x: _t.Any, shape: _t.Any, strides: _t.Any, storage_offset: _t.Any = 0) -> _t.Any:
    """Elements of x, seen as one row of memory, at storage_offset + i * strides[0] + j * strides[1] + ...

    Errors: ShapeError W205 negative strides or other numbers of them than of sizes, W201 a view that goes beyond x.

    R.as_strided(R.Tensor((3, 4), "float32"), (2, 3), [1, 4]) -> R.Tensor((2, 3), "float32")
    R.as_strided(R.Tensor((n, 4), "float32"), (2, 2), [2, 1], 1) -> R.Tensor((2, 2), "float32")
    R.as_strided(R.Tensor((12,), "float32"), (4, 3), [2, 2]) -> R.Tensor((4, 3), "float32")
    """

def asin(x: _t.Any) -> _t.Any:
    """The inverse sine, elementwise; nan outside [-1, 1].

    R.asin(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.asin(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
    R.asin(R.Tensor((n,), "float64")) -> R.Tensor((n,), "float64")
    R.asin(R.Tensor((n, 3), "complex64")) -> R.Tensor((n, 3), "complex64")
    R.asin(R.Tensor((4,), "complex128")) -> R.Tensor((4,), "complex128")
    """

def asinh(x: _t.Any) -> _t.Any:
    """The inverse hyperbolic sine, elementwise.

    R.asinh(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.asinh(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
    R.asinh(R.Tensor((n,), "float64")) -> R.Tensor((n,), "float64")
    R.asinh(R.Tensor((n, 3), "complex64")) -> R.Tensor((n, 3), "complex64")
    R.asinh(R.Tensor((4,), "complex128")) -> R.Tensor((4,), "complex128")
    """

def assert_op(condition: _t.Any, format_args: _t.Any = None, format: _t.Any = '') -> _t.Any:
    """Stop with an AssertionError, whose message the format makes of the values, unless the condition holds."""

def astype(x: _t.Any, dtype: _t.Any) -> _t.Any:
    """The values in another dtype: floats to integers drop the fraction, integers wrap, and anything but zero is true.

    A float that does not fit an integer dtype becomes the nearest value that does, and nan becomes 0. Complex numbers
    become complex ones or bools: DTypeError W321 for others, which would drop the imaginary part.

    R.astype(R.Tensor((2, 3), "float32"), 'int32') -> R.Tensor((2, 3), "int32")
    R.astype(R.Tensor((n,), "int64"), 'float32') -> R.Tensor((n,), "float32")
    R.astype(R.Tensor((n, 4), "float32"), 'float64') -> R.Tensor((n, 4), "float64")
    R.astype(R.Tensor((n,), "float32"), 'bool') -> R.Tensor((n,), "bool")
    R.astype(R.Tensor((n,), "bool"), 'float32') -> R.Tensor((n,), "float32")
    R.astype(R.Tensor((5,), "int32"), 'int8') -> R.Tensor((5,), "int8")
    R.astype(R.Tensor((4,), "float32"), 'float16') -> R.Tensor((4,), "float16")
    R.astype(R.Tensor((n, 2), "float32"), 'complex64') -> R.Tensor((n, 2), "complex64")
    R.astype(R.Tensor((n,), "complex64"), 'complex128') -> R.Tensor((n,), "complex128")
    R.astype(R.Tensor((3,), "complex128"), 'bool') -> R.Tensor((3,), "bool")
    """

def atan(x: _t.Any) -> _t.Any:
    """The inverse tangent, elementwise.

    R.atan(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.atan(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
    R.atan(R.Tensor((n,), "float64")) -> R.Tensor((n,), "float64")
    R.atan(R.Tensor((n, 3), "complex64")) -> R.Tensor((n, 3), "complex64")
    R.atan(R.Tensor((4,), "complex128")) -> R.Tensor((4,), "complex128")
    """

def atan2(x1: _t.Any, x2: _t.Any) -> _t.Any:
    """The angle of the point (x2, x1), elementwise.

    R.atan2(R.Tensor((2, 3), "float32"), R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.atan2(R.Tensor((n, 4), "float32"), R.Tensor((4,), "float32")) -> R.Tensor((n, 4), "float32")
    R.atan2(R.Tensor((n, 1, 4), "float32"), R.Tensor((3, 1), "float32")) -> R.Tensor((n, 3, 4), "float32")
    R.atan2(R.Tensor((n,), "float32"), R.Tensor((m,), "float32")) -> R.Tensor((n,), "float32")
    """

def atanh(x: _t.Any) -> _t.Any:
    """The inverse hyperbolic tangent, elementwise.

    R.atanh(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.atanh(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
    R.atanh(R.Tensor((n,), "float64")) -> R.Tensor((n,), "float64")
    R.atanh(R.Tensor((n, 3), "complex64")) -> R.Tensor((n, 3), "complex64")
    R.atanh(R.Tensor((4,), "complex128")) -> R.Tensor((4,), "complex128")
    """

def bartlett_window(window_size: _t.Any, periodic: _t.Any = True, dtype: _t.Any = 'float32') -> _t.Any:
    """The triangular window 1 - |2 x - 1|, x from 0 to 1.

    Errors: ShapeError W205 a negative size; DTypeError W321 a dtype that is not floating.

    R.bartlett_window(8) -> R.Tensor((8,), "float32")
    R.bartlett_window(n, False, dtype='float64') -> R.Tensor((n,), "float64")
    R.bartlett_window(1, False) -> R.Tensor((1,), "float32")
    R.bartlett_window(1) -> R.Tensor((1,), "float32")
    R.bartlett_window(2, False) -> R.Tensor((2,), "float32")
    """

def bincount(x: _t.Any, length: _t.Any, weights: _t.Any = None) -> _t.Any:
    """How often each number from 0 up to length occurs in a vector (int64), or the sum of the weights where it does.

        Another number is a BoundsError.

    R.bincount(R.Tensor((6,), "int64"), 5) -> R.Tensor((5,), "int64")
    R.bincount(R.Tensor((n,), "int32"), 4, R.Tensor((n,), "float32")) -> R.Tensor((4,), "float32")
    """

def bitwise_and(x1: _t.Any, x2: _t.Any) -> _t.Any:
    """Conjunction of the bits, elementwise.

    R.bitwise_and(R.Tensor((2, 3), "int32"), R.Tensor((2, 3), "int32")) -> R.Tensor((2, 3), "int32")
    R.bitwise_and(R.Tensor((n, 4), "int32"), R.Tensor((4,), "int32")) -> R.Tensor((n, 4), "int32")
    R.bitwise_and(R.Tensor((n, 1, 4), "int32"), R.Tensor((3, 1), "int32")) -> R.Tensor((n, 3, 4), "int32")
    R.bitwise_and(R.Tensor((n,), "int32"), R.Tensor((m,), "int32")) -> R.Tensor((n,), "int32")
    """

def bitwise_not(x: _t.Any) -> _t.Any:
    """All bits inverted, elementwise; logical negation of bools.

    R.bitwise_not(R.Tensor((2, 3), "int32")) -> R.Tensor((2, 3), "int32")
    R.bitwise_not(R.Tensor((n,), "int64")) -> R.Tensor((n,), "int64")
    """

def bitwise_or(x1: _t.Any, x2: _t.Any) -> _t.Any:
    """Disjunction of the bits, elementwise.

    R.bitwise_or(R.Tensor((2, 3), "int32"), R.Tensor((2, 3), "int32")) -> R.Tensor((2, 3), "int32")
    R.bitwise_or(R.Tensor((n, 4), "int32"), R.Tensor((4,), "int32")) -> R.Tensor((n, 4), "int32")
    R.bitwise_or(R.Tensor((n, 1, 4), "int32"), R.Tensor((3, 1), "int32")) -> R.Tensor((n, 3, 4), "int32")
    R.bitwise_or(R.Tensor((n,), "int32"), R.Tensor((m,), "int32")) -> R.Tensor((n,), "int32")
    """

def bitwise_xor(x1: _t.Any, x2: _t.Any) -> _t.Any:
    """Exclusive disjunction of the bits, elementwise.

    R.bitwise_xor(R.Tensor((2, 3), "int32"), R.Tensor((2, 3), "int32")) -> R.Tensor((2, 3), "int32")
    R.bitwise_xor(R.Tensor((n, 4), "int32"), R.Tensor((4,), "int32")) -> R.Tensor((n, 4), "int32")
    R.bitwise_xor(R.Tensor((n, 1, 4), "int32"), R.Tensor((3, 1), "int32")) -> R.Tensor((n, 3, 4), "int32")
    R.bitwise_xor(R.Tensor((n,), "int32"), R.Tensor((m,), "int32")) -> R.Tensor((n,), "int32")
    """

def blackman_window(window_size: _t.Any, periodic: _t.Any = True, dtype: _t.Any = 'float32') -> _t.Any:
    """The window 0.42 - 0.5 cos(2 pi x) + 0.08 cos(4 pi x), x from 0 to 1, of R. B. Blackman.

    Errors: ShapeError W205 a negative size; DTypeError W321 a dtype that is not floating.

    R.blackman_window(8) -> R.Tensor((8,), "float32")
    R.blackman_window(n, False, dtype='float64') -> R.Tensor((n,), "float64")
    R.blackman_window(1, False) -> R.Tensor((1,), "float32")
    R.blackman_window(1) -> R.Tensor((1,), "float32")
    R.blackman_window(2, False) -> R.Tensor((2,), "float32")
    """

def broadcast_to(x: _t.Any, shape: _t.Any) -> _t.Any:
    """The elements repeated along axes of size 1 and along new leading axes.

    Sizes other than 1 must be those of the result: proved, refuted (ShapeError W201), or checked at run time.

    R.broadcast_to(R.Tensor((3,), "float32"), (2, 3)) -> R.Tensor((2, 3), "float32")
    R.broadcast_to(R.Tensor((1, 4), "float32"), (n, 4)) -> R.Tensor((n, 4), "float32")
    R.broadcast_to(R.Tensor((n, 4), "float32"), (2, m, 4)) -> R.Tensor((2, m, 4), "float32")
    R.broadcast_to(R.Tensor((), "float32"), (n, 2)) -> R.Tensor((n, 2), "float32")
    """

def bucketize(input_tensor: _t.Any, boundaries: _t.Any, out_int32: _t.Any = False, right: _t.Any = False) -> _t.Any:
    """The number of ascending boundaries below each value (right: below or equal). Dtype: int64, or int32 if asked.

    Up to 32 boundaries are all looked at, of more log2 as many.

    R.bucketize(R.Tensor((2, 3), "float32"), array([-1. ,  0. ,  0.5,  2. ], dtype=float32)) -> R.Tensor((2, 3), "int64")
    R.bucketize(R.Tensor((n,), "float32"), array([-1. ,  0.5], dtype=float32), right=True, out_int32=True) -> R.Tensor((n,), "int32")
    R.bucketize(R.Tensor((2, 3), "float32"), array([-2.        , -1.9090909 , -1.8181819 , -1.7272727 , -1.6363636 ,
           -1.5454545 , -1.4545455 , -1.3636364 , -1.2727273 , -1.1818181 ,
           -1.0909091 , -1.        , -0.90909094, -0.8181818 , -0.72727275,
           -0.6363636 , -0.54545456, -0.45454547, -0.36363637, -0.27272728,
           -0.18181819, -0.09090909,  0.        ,  0.09090909,  0.18181819,
            0.27272728,  0.36363637,  0.45454547,  0.54545456,  0.6363636 ,
            0.72727275,  0.8181818 ,  0.90909094,  1.        ,  1.0909091 ,
            1.1818181 ,  1.2727273 ,  1.3636364 ,  1.4545455 ,  1.5454545 ,
            1.6363636 ,  1.7272727 ,  1.8181819 ,  1.9090909 ,  2.        ],
          dtype=float32), right=True) -> R.Tensor((2, 3), "int64")
    """

def call_builtin_with_ctx(func: _t.Any, args: _t.Any, ty_args: _t.Any = None) -> _t.Any:
    """Call a builtin of the executor that also receives the executor's state."""

def call_dps_packed(func: _t.Any, args: _t.Any, out_ty: _t.Any) -> _t.Any:
    """Call an extern function on inputs, with new arrays of the declared types passed last for it to write."""

def call_inplace_packed(func: _t.Any, *args: _t.Any, inplace_indices: _t.Any, ty_args: _t.Any = None) -> _t.Any:
    """Call an extern function that changes and returns arguments that are not used afterwards."""

def call_packed(func: _t.Any, *args: _t.Any, ty_args: _t.Any = None, dps: _t.Any = False) -> _t.Any:
    """Call an extern function, which may have effects, for its result; with dps it writes its last arguments."""

def call_pure_packed(func: _t.Any, *args: _t.Any, ty_args: _t.Any = None) -> _t.Any:
    """Call an extern function that has no effects and returns a value of the stated type."""

def call_py(func_name: _t.Any, args: _t.Any, out_ty: _t.Any) -> _t.Any:
    """Call a Python function, registered or of the module, on inputs; it returns new values of the declared types.

    Only executors that live in a Python process run it. Sizes may be left out of the types (`R.Tensor("float32",
    ndim=2)`); what the function returns is held against what they say. `R.call_py_func` is an older spelling.
    """

def call_tir(gvar: _t.Any, args: _t.Any, out_ty: _t.Any, tir_vars: _t.Any = None) -> _t.Any:
    """Call a kernel of the module on inputs; its outputs are new arrays of the declared types."""

def call_tir_inplace(gvar: _t.Any, args: _t.Any, inplace_indices: _t.Any, out_ty: _t.Any, tir_vars: _t.Any = None) -> _t.Any:
    """Call a kernel that writes some outputs over inputs that are not used afterwards."""

def call_tir_with_grad(gvar: _t.Any, args: _t.Any, out_ty: _t.Any, tir_vars: _t.Any = None, te_grad_name: _t.Any = '', te_grad_kwargs: _t.Any = None) -> _t.Any:
    """`call_tir` of a kernel whose gradient is registered under a name."""

def cdist(x1: _t.Any, x2: _t.Any, p: _t.Any = 2.0) -> _t.Any:
    """The distances of each row of x1 from each row of x2 in the p norm; p = 0 counts what differs.

    R.cdist(R.Tensor((2, 3), "float32"), R.Tensor((4, 3), "float32")) -> R.Tensor((2, 4), "float32")
    R.cdist(R.Tensor((n, 3), "float32"), R.Tensor((m, 3), "float32"), p=1.0) -> R.Tensor((n, m), "float32")
    R.cdist(R.Tensor((2, 3, 2), "float32"), R.Tensor((2, 4, 2), "float32")) -> R.Tensor((2, 3, 4), "float32")
    R.cdist(R.Tensor((2, 3), "float32"), R.Tensor((4, 3), "float32"), p=0.0) -> R.Tensor((2, 4), "float32")
    """

def ceil(x: _t.Any) -> _t.Any:
    """The least whole number not below x, elementwise, in the dtype of x.

    R.ceil(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.ceil(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
    R.ceil(R.Tensor((n,), "float64")) -> R.Tensor((n,), "float64")
    """

def clip(x: _t.Any, min: _t.Any, max: _t.Any) -> _t.Any:
    """x limited to [min, max], elementwise; nan stays nan.

    Errors: DTypeError W321 for a floating bound of integers.

    R.clip(R.Tensor((2, 3), "float32"), -1, 1) -> R.Tensor((2, 3), "float32")
    R.clip(R.Tensor((n, 4), "float32"), -0.5, 0.25) -> R.Tensor((n, 4), "float32")
    R.clip(R.Tensor((n,), "int32"), 0, 2) -> R.Tensor((n,), "int32")
    """

def collapse_sum_like(data: _t.Any, collapse_target: _t.Any) -> _t.Any:
    """Data summed to the shape of another tensor, which would broadcast to that of data.

    Errors: ShapeError W201 sizes, W202 ranks; DTypeError W321.

    R.collapse_sum_like(R.Tensor((2, 3, 4), "float32"), R.Tensor((3, 1), "float32")) -> R.Tensor((3, 1), "float32")
    R.collapse_sum_like(R.Tensor((n, 4), "float32"), R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32")
    R.collapse_sum_like(R.Tensor((n, m), "float32"), R.Tensor((n, 1), "float32")) -> R.Tensor((n, 1), "float32")
    R.collapse_sum_like(R.Tensor((2, n), "int32"), R.Tensor((n,), "int32")) -> R.Tensor((n,), "int32")
    R.collapse_sum_like(R.Tensor((2, 3), "float32"), R.Tensor((), "float32")) -> R.Tensor((), "float32")
    """

def collapse_sum_to(data: _t.Any, shape: _t.Any) -> _t.Any:
    """Data summed to a shape, which would broadcast to that of data.

    Errors: ShapeError W201 sizes, W202 ranks; DTypeError W321.

    R.collapse_sum_to(R.Tensor((2, 3, 4), "float32"), (3, 1)) -> R.Tensor((3, 1), "float32")
    R.collapse_sum_to(R.Tensor((n, 4), "float32"), (4,)) -> R.Tensor((4,), "float32")
    R.collapse_sum_to(R.Tensor((n, m, 2), "float32"), (m, 1)) -> R.Tensor((m, 1), "float32")
    R.collapse_sum_to(R.Tensor((30, 2), "float16"), (1, 2)) -> R.Tensor((1, 2), "float16")
    """

def complex(real: _t.Any, imag: _t.Any) -> _t.Any:
    """Complex numbers of real and imaginary parts, broadcast: float32 gives complex64, float64 complex128.

    R.complex(R.Tensor((n, 3), "float32"), R.Tensor((3,), "float32")) -> R.Tensor((n, 3), "complex64")
    R.complex(R.Tensor((4,), "float64"), R.Tensor((4,), "float64")) -> R.Tensor((4,), "complex128")
    """

def concat(tensors: _t.Any, axis: _t.Any = 0) -> _t.Any:
    """Tensors one after the other along an axis, which vectors need not name.

    The other sizes must agree: proved, refuted (ShapeError W201), or checked at run time. Errors: W202 ranks that
    differ, W203 the axis, W205 no tensors; DTypeError W320.

    R.concat((R.Tensor((2, 3), "float32"), R.Tensor((4, 3), "float32"))) -> R.Tensor((6, 3), "float32")
    R.concat((R.Tensor((n, 4), "float32"), R.Tensor((m, 4), "float32"), R.Tensor((2, 4), "float32"))) -> R.Tensor((m + n + 2, 4), "float32")
    R.concat((R.Tensor((n, 4), "float32"), R.Tensor((n, 2), "float32")), axis=-1) -> R.Tensor((n, 6), "float32")
    R.concat((R.Tensor((n, 4), "float32"), R.Tensor((m, 4), "float32")), axis=1) -> R.Tensor((n, 8), "float32")
    R.concat((R.Tensor((n,), "float32"), R.Tensor((3,), "float32")), axis=None) -> R.Tensor((n + 3,), "float32")
    """

def conj(x: _t.Any) -> _t.Any:
    """The numbers with the other sign of the imaginary part, elementwise; real ones as they are.

    R.conj(R.Tensor((n, 3), "complex64")) -> R.Tensor((n, 3), "complex64")
    R.conj(R.Tensor((4,), "complex128")) -> R.Tensor((4,), "complex128")
    R.conj(R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32")
    """

def copysign(x1: _t.Any, x2: _t.Any) -> _t.Any:
    """x1 with the sign of x2, elementwise.

    R.copysign(R.Tensor((2, 3), "float32"), R.Tensor((3,), "float32")) -> R.Tensor((2, 3), "float32")
    R.copysign(R.Tensor((n, 4), "float32"), R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
    R.copysign(R.Tensor((5,), "float64"), R.Tensor((1,), "float64")) -> R.Tensor((5,), "float64")
    """

def cos(x: _t.Any) -> _t.Any:
    """The cosine, elementwise.

    R.cos(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.cos(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
    R.cos(R.Tensor((n,), "float64")) -> R.Tensor((n,), "float64")
    R.cos(R.Tensor((n, 3), "complex64")) -> R.Tensor((n, 3), "complex64")
    R.cos(R.Tensor((4,), "complex128")) -> R.Tensor((4,), "complex128")
    """

def cosh(x: _t.Any) -> _t.Any:
    """The hyperbolic cosine, elementwise.

    R.cosh(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.cosh(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
    R.cosh(R.Tensor((n,), "float64")) -> R.Tensor((n,), "float64")
    R.cosh(R.Tensor((n, 3), "complex64")) -> R.Tensor((n, 3), "complex64")
    R.cosh(R.Tensor((4,), "complex128")) -> R.Tensor((4,), "complex128")
    """

def count_indices(indices: _t.Any, shape: _t.Any) -> _t.Any:
    """How often each index of an axis of one size occurs in a tensor, as a vector of that shape, int64.

    No index counts from the end; one out of range is a BoundsError. Errors: ShapeError W205 another shape than one
    size; DTypeError W321.

    R.count_indices(R.Tensor((6,), "int64"), (5,)) -> R.Tensor((5,), "int64")
    R.count_indices(R.Tensor((n, 2), "int32"), (m,)) -> R.Tensor((m,), "int64")
    """

def cross(x1: _t.Any, x2: _t.Any, axis: _t.Any = -1) -> _t.Any:
    """The vector product along an axis of size 3.

    R.cross(R.Tensor((2, 3), "float32"), R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.cross(R.Tensor((3, n), "float32"), R.Tensor((3, n), "float32"), axis=0) -> R.Tensor((3, n), "float32")
    """

def cummax(data: _t.Any, axis: _t.Any) -> _t.Any:
    """The greatest value so far along an axis; nan stays.

    R.cummax(R.Tensor((2, 5), "float32"), axis=1) -> R.Tensor((2, 5), "float32")
    R.cummax(R.Tensor((n, 3), "float32"), axis=0) -> R.Tensor((n, 3), "float32")
    R.cummax(R.Tensor((m,), "int32"), axis=-1) -> R.Tensor((m,), "int32")
    """

def cummin(data: _t.Any, axis: _t.Any) -> _t.Any:
    """The least value so far along an axis; nan stays.

    R.cummin(R.Tensor((2, 5), "float32"), axis=1) -> R.Tensor((2, 5), "float32")
    R.cummin(R.Tensor((n, 3), "float32"), axis=0) -> R.Tensor((n, 3), "float32")
    R.cummin(R.Tensor((m,), "int32"), axis=-1) -> R.Tensor((m,), "int32")
    """

def cumprod(data: _t.Any, axis: _t.Any = None, dtype: _t.Any = None, exclusive: _t.Any = False) -> _t.Any:
    """The running product along an axis (of the flattened tensor for None); exclusive: of what comes before.

    R.cumprod(R.Tensor((2, 5), "float32"), axis=1) -> R.Tensor((2, 5), "float32")
    R.cumprod(R.Tensor((n, 3), "float32"), axis=0, exclusive=True) -> R.Tensor((n, 3), "float32")
    R.cumprod(R.Tensor((2, 3), "float32")) -> R.Tensor((6,), "float32")
    R.cumprod(R.Tensor((n, m), "float32")) -> R.Tensor((m * n,), "float32")
    R.cumprod(R.Tensor((4,), "int32"), axis=-1, dtype='int64') -> R.Tensor((4,), "int64")
    R.cumprod(R.Tensor((2, n), "bool"), axis=1, dtype='int32') -> R.Tensor((2, n), "int32")
    R.cumprod(R.Tensor((70,), "float16"), axis=0) -> R.Tensor((70,), "float16")
    """

def cumsum(data: _t.Any, axis: _t.Any = None, dtype: _t.Any = None, exclusive: _t.Any = False) -> _t.Any:
    """The running sum along an axis (of the flattened tensor for None); exclusive: of what comes before.

    R.cumsum(R.Tensor((2, 5), "float32"), axis=1) -> R.Tensor((2, 5), "float32")
    R.cumsum(R.Tensor((n, 3), "float32"), axis=0, exclusive=True) -> R.Tensor((n, 3), "float32")
    R.cumsum(R.Tensor((2, 3), "float32")) -> R.Tensor((6,), "float32")
    R.cumsum(R.Tensor((n, m), "float32")) -> R.Tensor((m * n,), "float32")
    R.cumsum(R.Tensor((4,), "int32"), axis=-1, dtype='int64') -> R.Tensor((4,), "int64")
    R.cumsum(R.Tensor((2, n), "bool"), axis=1, dtype='int32') -> R.Tensor((2, n), "int32")
    R.cumsum(R.Tensor((70,), "float16"), axis=0) -> R.Tensor((70,), "float16")
    """

def dequantize(data: _t.Any, scale: _t.Any, zero_point: _t.Any, axis: _t.Any = -1, out_dtype: _t.Any = 'float32', group_size: _t.Any = 0) -> _t.Any:
    """The floats that quantized integers stand for: (data - zero_point) * scale, in out_dtype.

    scale and zero_point are scalars, or vectors along the axis of data; with a group_size they have data's rank, and
    one element for each group_size of data along the axis.

    R.dequantize(R.Tensor((2, 3), "int8"), R.Tensor((3,), "float32"), R.Tensor((3,), "int8")) -> R.Tensor((2, 3), "float32")
    R.dequantize(R.Tensor((n, 4, m), "uint8"), R.Tensor((4,), "float32"), R.Tensor((4,), "int32"), axis=1) -> R.Tensor((n, 4, m), "float32")
    R.dequantize(R.Tensor((n, 4), "int8"), R.Tensor((), "float32"), R.Tensor((), "int8"), out_dtype='float16') -> R.Tensor((n, 4), "float16")
    R.dequantize(R.Tensor((n, 2), "int8"), 0.05, 3) -> R.Tensor((n, 2), "float32")
    R.dequantize(R.Tensor((n,), "int32"), R.Tensor((n,), "float16"), R.Tensor((), "float16"), axis=0) -> R.Tensor((n,), "float32")
    R.dequantize(R.Tensor((8, n), "int8"), R.Tensor((2, n), "float32"), R.Tensor((), "int8"), axis=0, group_size=4) -> R.Tensor((8, n), "float32")
    R.dequantize(R.Tensor((3, 10), "uint8"), R.Tensor((3, 3), "float16"), 7, group_size=4) -> R.Tensor((3, 10), "float32")
    """

def diag_embed(x: _t.Any, offset: _t.Any = 0, axis1: _t.Any = -2, axis2: _t.Any = -1) -> _t.Any:
    """Matrices with the last axis of x as a diagonal, which lies `offset` to the right, and zeros elsewhere.

    axis1 and axis2 are the axes of the matrices in the result. Errors: ShapeError W202 a scalar, W203, W204 the axes.

    R.diag_embed(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3, 3), "float32")
    R.diag_embed(R.Tensor((n,), "float32"), offset=1) -> R.Tensor((n + 1, n + 1), "float32")
    R.diag_embed(R.Tensor((2, n), "float32"), offset=-2, axis1=0, axis2=2) -> R.Tensor((n + 2, 2, n + 2), "float32")
    """

def diagonal(x: _t.Any, offset: _t.Any = 0, axis1: _t.Any = 0, axis2: _t.Any = 1) -> _t.Any:
    """The elements whose indices on two axes differ by offset, along a new last axis.

    R.diagonal(R.Tensor((3, 4), "float32")) -> R.Tensor((3,), "float32")
    R.diagonal(R.Tensor((n, 4), "float32"), offset=1) -> R.Tensor((min(n, 3),), "float32")
    R.diagonal(R.Tensor((2, n, 3), "float32"), offset=-1, axis1=1, axis2=-1) -> R.Tensor((2, max(min(n - 1, 3), 0)), "float32")
    R.diagonal(R.Tensor((n, m), "int32")) -> R.Tensor((min(m, n),), "int32")
    """

def digamma(x: _t.Any) -> _t.Any:
    """The derivative of lgamma, elementwise; nan at whole numbers below 0, -inf at 0.

    R.digamma(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.digamma(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
    R.digamma(R.Tensor((n,), "float64")) -> R.Tensor((n,), "float64")
    """

def divide(x1: _t.Any, x2: _t.Any) -> _t.Any:
    """x1 / x2, elementwise; x / 0 is an infinity or nan. Of integers toward zero, and 0 where x2 is 0 (floor_divide rounds down). Of complex numbers it is Smith's quotient.

    R.divide(R.Tensor((2, 3), "float32"), R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.divide(R.Tensor((n, 4), "float32"), R.Tensor((4,), "float32")) -> R.Tensor((n, 4), "float32")
    R.divide(R.Tensor((n, 1, 4), "float32"), R.Tensor((3, 1), "float32")) -> R.Tensor((n, 3, 4), "float32")
    R.divide(R.Tensor((n,), "float32"), R.Tensor((m,), "float32")) -> R.Tensor((n,), "float32")
    R.divide(R.Tensor((n, 4), "int32"), R.Tensor((n, 4), "int32")) -> R.Tensor((n, 4), "int32")
    R.divide(R.Tensor((40,), "int64"), R.Tensor((1,), "int64")) -> R.Tensor((40,), "int64")
    R.divide(R.Tensor((n, 4), "complex64"), R.Tensor((4,), "complex64")) -> R.Tensor((n, 4), "complex64")
    R.divide(R.Tensor((3, 1), "complex128"), R.Tensor((m,), "complex128")) -> R.Tensor((3, m), "complex128")
    """

def dot(x1: _t.Any, x2: _t.Any) -> _t.Any:
    """The product of vectors and matrices, of one or two dimensions each.

    R.dot(R.Tensor((n,), "float32"), R.Tensor((n,), "float32")) -> R.Tensor((), "float32")
    R.dot(R.Tensor((2, 3), "float32"), R.Tensor((3,), "float32")) -> R.Tensor((2,), "float32")
    R.dot(R.Tensor((n, 4), "float32"), R.Tensor((4, m), "float32")) -> R.Tensor((n, m), "float32")
    """

def dynamic_strided_slice(x: _t.Any, begin: _t.Any, end: _t.Any, strides: _t.Any) -> _t.Any:
    """x[begin:end:strides] along all axes, by vectors that are computed; boundaries are those of Python slices.

    The result is known by its rank only, if that is known. Errors: ShapeError W201, W202; DTypeError W321; BoundsError
    for a stride of 0.
    """

def einsum(operands: _t.Any, subscripts: _t.Any) -> _t.Any:
    """The sum of products that the subscripts describe, as NumPy's.

    Letters name axes; those that are not in the result are summed.

    R.einsum((R.Tensor((2, 3), "float32"), R.Tensor((3, 4), "float32")), 'ij,jk->ik') -> R.Tensor((2, 4), "float32")
    R.einsum((R.Tensor((b, 2, 3), "float32"), R.Tensor((b, 3, n), "float32")), 'bij,bjk->bik') -> R.Tensor((b, 2, n), "float32")
    R.einsum((R.Tensor((3, 3), "float32"),), 'ii->i') -> R.Tensor((3,), "float32")
    R.einsum((R.Tensor((n, n), "float32"),), 'ii') -> R.Tensor((), "float32")
    R.einsum((R.Tensor((2, 3, 4), "float32"), R.Tensor((4, 2), "float32")), 'abc,ca') -> R.Tensor((3,), "float32")
    R.einsum((R.Tensor((n,), "float32"), R.Tensor((m,), "float32")), 'i,j->ij') -> R.Tensor((n, m), "float32")
    R.einsum((R.Tensor((5, 2, 3), "float32"), R.Tensor((3, 4), "float32")), '...ij,jk->...ik') -> R.Tensor((5, 2, 4), "float32")
    R.einsum((R.Tensor((2,), "float32"), R.Tensor((2, 3), "float32"), R.Tensor((3,), "float32")), 'i,ij,j->') -> R.Tensor((), "float32")
    """

def equal(x1: _t.Any, x2: _t.Any) -> _t.Any:
    """Whether x1 equals x2, elementwise; bool.

    R.equal(R.Tensor((2, 3), "int32"), R.Tensor((3,), "int32")) -> R.Tensor((2, 3), "bool")
    R.equal(R.Tensor((n, 4), "float32"), R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "bool")
    R.equal(R.Tensor((n, 1), "int64"), R.Tensor((m,), "int64")) -> R.Tensor((n, m), "bool")
    R.equal(R.Tensor((5,), "float64"), R.Tensor((1,), "float64")) -> R.Tensor((5,), "bool")
    R.equal(R.Tensor((6,), "bool"), R.Tensor((6,), "bool")) -> R.Tensor((6,), "bool")
    R.equal(R.Tensor((n, 4), "complex64"), R.Tensor((4,), "complex64")) -> R.Tensor((n, 4), "bool")
    R.equal(R.Tensor((3, 1), "complex128"), R.Tensor((m,), "complex128")) -> R.Tensor((3, m), "bool")
    """

def erf(x: _t.Any) -> _t.Any:
    """The error function, elementwise.

    R.erf(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.erf(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
    R.erf(R.Tensor((n,), "float64")) -> R.Tensor((n,), "float64")
    """

def erfinv(x: _t.Any) -> _t.Any:
    """The number whose error function is x, elementwise; nan outside [-1, 1].

    R.erfinv(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.erfinv(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
    R.erfinv(R.Tensor((n,), "float64")) -> R.Tensor((n,), "float64")
    """

def ewise_fma(x1: _t.Any, x2: _t.Any, x3: _t.Any) -> _t.Any:
    """x1 * x2 + x3, elementwise, broadcast.

    R.ewise_fma(R.Tensor((2, 3), "float32"), R.Tensor((3,), "float32"), R.Tensor((2, 1), "float32")) -> R.Tensor((2, 3), "float32")
    R.ewise_fma(R.Tensor((n, 4), "float32"), R.Tensor((n, 4), "float32"), R.Tensor((4,), "float32")) -> R.Tensor((n, 4), "float32")
    """

def exp(x: _t.Any) -> _t.Any:
    """e raised to x, elementwise.

    R.exp(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.exp(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
    R.exp(R.Tensor((n,), "float64")) -> R.Tensor((n,), "float64")
    R.exp(R.Tensor((n, 3), "complex64")) -> R.Tensor((n, 3), "complex64")
    R.exp(R.Tensor((4,), "complex128")) -> R.Tensor((4,), "complex128")
    """

def exp2(x: _t.Any) -> _t.Any:
    """2 raised to x, elementwise.

    R.exp2(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.exp2(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
    R.exp2(R.Tensor((n,), "float64")) -> R.Tensor((n,), "float64")
    R.exp2(R.Tensor((n, 3), "complex64")) -> R.Tensor((n, 3), "complex64")
    R.exp2(R.Tensor((4,), "complex128")) -> R.Tensor((4,), "complex128")
    """

def expand_dims(x: _t.Any, axis: _t.Any) -> _t.Any:
    """New dimensions of size 1 at the given positions of the result.

    Errors: ShapeError W203, W204 for the axes.

    R.expand_dims(R.Tensor((2, 3), "float32"), 1) -> R.Tensor((2, 1, 3), "float32")
    R.expand_dims(R.Tensor((n, 4), "float32"), [0, -1]) -> R.Tensor((1, n, 4, 1), "float32")
    R.expand_dims(R.Tensor((), "float32"), 0) -> R.Tensor((1,), "float32")
    """

def expm1(x: _t.Any) -> _t.Any:
    """exp(x) - 1, elementwise, exact for small x.

    R.expm1(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.expm1(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
    R.expm1(R.Tensor((n,), "float64")) -> R.Tensor((n,), "float64")
    R.expm1(R.Tensor((n, 3), "complex64")) -> R.Tensor((n, 3), "complex64")
    R.expm1(R.Tensor((4,), "complex128")) -> R.Tensor((4,), "complex128")
    """

def eye(n: _t.Any, m: _t.Any = None, k: _t.Any = 0, dtype: _t.Any = 'float32') -> _t.Any:
    """Ones on the k-th diagonal of an n by m matrix (square when m is not given), zeros elsewhere.

    R.eye(3) -> R.Tensor((3, 3), "float32")
    R.eye(n, 4, 1) -> R.Tensor((n, 4), "float32")
    R.eye(2, n, -1, dtype='int32') -> R.Tensor((2, n), "int32")
    """

def eye_like(x: _t.Any, k: _t.Any = 0, dtype: _t.Any = None) -> _t.Any:
    """Ones on the k-th diagonal, zeros elsewhere, in the shape (and the dtype, unless given) of the matrix x.

    R.eye_like(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.eye_like(R.Tensor((n, 4), "float32"), 1, 'int32') -> R.Tensor((n, 4), "int32")
    """

def flatten(x: _t.Any) -> _t.Any:
    """All elements in row-major order, in one dimension: (n, 4) becomes (4 * n,).

    R.flatten(R.Tensor((2, 3, 4), "float32")) -> R.Tensor((24,), "float32")
    R.flatten(R.Tensor((n, 4), "float32")) -> R.Tensor((4 * n,), "float32")
    R.flatten(R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32")
    R.flatten(R.Tensor((), "float32")) -> R.Tensor((1,), "float32")
    """

def flip(data: _t.Any, axis: _t.Any) -> _t.Any:
    """The elements along the axes in reverse order. Errors: ShapeError W203, W204.

    R.flip(R.Tensor((2, 3), "float32"), 1) -> R.Tensor((2, 3), "float32")
    R.flip(R.Tensor((n, 4), "float32"), 0) -> R.Tensor((n, 4), "float32")
    R.flip(R.Tensor((n, 4), "float32"), [0, -1]) -> R.Tensor((n, 4), "float32")
    """

def floor(x: _t.Any) -> _t.Any:
    """The greatest whole number not above x, elementwise, in the dtype of x.

    R.floor(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.floor(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
    R.floor(R.Tensor((n,), "float64")) -> R.Tensor((n,), "float64")
    """

def floor_divide(x1: _t.Any, x2: _t.Any) -> _t.Any:
    """The greatest whole number not above x1 / x2, elementwise; of integers 0 where x2 is 0.

    R.floor_divide(R.Tensor((2, 3), "float32"), R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.floor_divide(R.Tensor((n, 4), "float32"), R.Tensor((4,), "float32")) -> R.Tensor((n, 4), "float32")
    R.floor_divide(R.Tensor((n, 4), "int32"), R.Tensor((n, 4), "int32")) -> R.Tensor((n, 4), "int32")
    R.floor_divide(R.Tensor((40,), "int64"), R.Tensor((1,), "int64")) -> R.Tensor((40,), "int64")
    R.floor_divide(R.Tensor((6,), "int8"), 3) -> R.Tensor((6,), "int8")
    R.floor_divide(R.Tensor((n,), "uint8"), R.Tensor((n,), "uint8")) -> R.Tensor((n,), "uint8")
    """

def floor_mod(x1: _t.Any, x2: _t.Any) -> _t.Any:
    """x1 - floor(x1 / x2) * x2, elementwise, with the sign of x2; of integers 0 where x2 is 0.

    R.floor_mod(R.Tensor((2, 3), "float32"), R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.floor_mod(R.Tensor((n, 4), "float32"), R.Tensor((4,), "float32")) -> R.Tensor((n, 4), "float32")
    R.floor_mod(R.Tensor((n, 4), "int32"), R.Tensor((n, 4), "int32")) -> R.Tensor((n, 4), "int32")
    R.floor_mod(R.Tensor((40,), "int64"), R.Tensor((1,), "int64")) -> R.Tensor((40,), "int64")
    R.floor_mod(R.Tensor((6,), "int8"), 3) -> R.Tensor((6,), "int8")
    R.floor_mod(R.Tensor((n,), "uint8"), R.Tensor((n,), "uint8")) -> R.Tensor((n,), "uint8")
    """

def fmod(x1: _t.Any, x2: _t.Any) -> _t.Any:
    """The remainder of x1 / x2 with the sign of x1, elementwise: `mod` by its C name; of integers 0 by 0.

    R.fmod(R.Tensor((2, 3), "float32"), R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.fmod(R.Tensor((n, 4), "float32"), R.Tensor((4,), "float32")) -> R.Tensor((n, 4), "float32")
    R.fmod(R.Tensor((n, 4), "int32"), R.Tensor((n, 4), "int32")) -> R.Tensor((n, 4), "int32")
    """

def frexp(x: _t.Any) -> _t.Any:
    """The mantissa in [0.5, 1) with the sign of x, and the exponent (int32) of x = mantissa * 2**exponent, elementwise.

    0, infinities and nan are their own mantissas, with exponent 0. Dtype: float16, float32 or float64.

    R.frexp(R.Tensor((2, 3), "float32")) -> R.Tuple(R.Tensor((2, 3), "float32"), R.Tensor((2, 3), "int32"))
    R.frexp(R.Tensor((n,), "float32")) -> R.Tuple(R.Tensor((n,), "float32"), R.Tensor((n,), "int32"))
    R.frexp(R.Tensor((5,), "float64")) -> R.Tuple(R.Tensor((5,), "float64"), R.Tensor((5,), "int32"))
    """

def full(shape: _t.Any, fill_value: _t.Any, dtype: _t.Any = None) -> _t.Any:
    """A tensor of the given shape with one value everywhere. Dtype: that of the value unless given.

    R.full((2, 3), 1.5) -> R.Tensor((2, 3), "float32")
    R.full((n, 4), 7, dtype='int32') -> R.Tensor((n, 4), "int32")
    R.full((n,), R.Tensor((), "float32"), dtype='float64') -> R.Tensor((n,), "float64")
    R.full((n + 1, 2), True) -> R.Tensor((n + 1, 2), "bool")
    """

def full_like(x: _t.Any, fill_value: _t.Any, dtype: _t.Any = None) -> _t.Any:
    """One value everywhere, in the shape (and the dtype, unless given) of x.

    R.full_like(R.Tensor((2, 3), "float32"), 4) -> R.Tensor((2, 3), "float32")
    R.full_like(R.Tensor((n, 4), "float32"), 0.5) -> R.Tensor((n, 4), "float32")
    R.full_like(R.Tensor((n,), "float32"), 2, dtype='int64') -> R.Tensor((n,), "int64")
    """

def gather_elements(data: _t.Any, indices: _t.Any, axis: _t.Any = 0) -> _t.Any:
    """out[i, j] = data[indices[i, j], j] (for axis 0): one index per element; the result has the indices' shape.

    The other sizes of the indices are at most those of the data: proved, refuted (ShapeError W201), or checked at run
    time. An index out of range is a BoundsError. Errors: W202 ranks, W203 the axis; DTypeError W321.

    R.gather_elements(R.Tensor((4, 3), "float32"), R.Tensor((2, 3), "int64")) -> R.Tensor((2, 3), "float32")
    R.gather_elements(R.Tensor((4, 3, 5), "float32"), R.Tensor((2, 3, 1), "int64"), axis=1) -> R.Tensor((2, 3, 1), "float32")
    R.gather_elements(R.Tensor((n, 5), "float32"), R.Tensor((n, m), "int64"), axis=1) -> R.Tensor((n, m), "float32")
    R.gather_elements(R.Tensor((n, 5), "float32"), R.Tensor((m, 2), "int64"), axis=-1) -> R.Tensor((m, 2), "float32")
    """

def gather_nd(data: _t.Any, indices: _t.Any, batch_dims: _t.Any = 0) -> _t.Any:
    """Slices of data at index tuples: the last axis of indices holds positions along data's axes after the batch axes.

    An index out of range is a BoundsError. Errors: ShapeError W201 batch sizes that differ, W202 ranks, W205;
    DTypeError W321.

    R.gather_nd(R.Tensor((4, 3), "float32"), R.Tensor((m, 2), "int64")) -> R.Tensor((m,), "float32")
    R.gather_nd(R.Tensor((n, 4, 3), "float32"), R.Tensor((n, 2, 1), "int64"), 1) -> R.Tensor((n, 2, 3), "float32")
    R.gather_nd(R.Tensor((4, n), "float32"), R.Tensor((5, 1), "int64")) -> R.Tensor((5, n), "float32")
    """

def gcd(x1: _t.Any, x2: _t.Any) -> _t.Any:
    """The greatest common divisor, elementwise; 0 of zeros.

    R.gcd(R.Tensor((2, 3), "int32"), R.Tensor((3,), "int32")) -> R.Tensor((2, 3), "int32")
    R.gcd(R.Tensor((n,), "int64"), R.Tensor((1,), "int64")) -> R.Tensor((n,), "int64")
    R.gcd(R.Tensor((30,), "uint8"), R.Tensor((30,), "uint8")) -> R.Tensor((30,), "uint8")
    """

def greater(x1: _t.Any, x2: _t.Any) -> _t.Any:
    """Whether x1 is greater than x2, elementwise; bool. Complex numbers have no order.

    R.greater(R.Tensor((2, 3), "int32"), R.Tensor((3,), "int32")) -> R.Tensor((2, 3), "bool")
    R.greater(R.Tensor((n, 4), "float32"), R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "bool")
    R.greater(R.Tensor((n, 1), "int64"), R.Tensor((m,), "int64")) -> R.Tensor((n, m), "bool")
    R.greater(R.Tensor((5,), "float64"), R.Tensor((1,), "float64")) -> R.Tensor((5,), "bool")
    R.greater(R.Tensor((6,), "bool"), R.Tensor((6,), "bool")) -> R.Tensor((6,), "bool")
    """

def greater_equal(x1: _t.Any, x2: _t.Any) -> _t.Any:
    """Whether x1 is greater than or equal to x2, elementwise; bool. Complex numbers have no order.

    R.greater_equal(R.Tensor((2, 3), "int32"), R.Tensor((3,), "int32")) -> R.Tensor((2, 3), "bool")
    R.greater_equal(R.Tensor((n, 4), "float32"), R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "bool")
    R.greater_equal(R.Tensor((n, 1), "int64"), R.Tensor((m,), "int64")) -> R.Tensor((n, m), "bool")
    R.greater_equal(R.Tensor((5,), "float64"), R.Tensor((1,), "float64")) -> R.Tensor((5,), "bool")
    R.greater_equal(R.Tensor((6,), "bool"), R.Tensor((6,), "bool")) -> R.Tensor((6,), "bool")
    """

def hamming_window(window_size: _t.Any, periodic: _t.Any, alpha: _t.Any, beta: _t.Any, dtype: _t.Any) -> _t.Any:
    """The window alpha - beta * cos(2 pi i / steps), where steps is window_size when periodic, else one less.

    A window of one is 1. Errors: ShapeError W205 a negative size; DTypeError W321 a dtype that is not floating.

    R.hamming_window(8, True, 0.54, 0.46, 'float32') -> R.Tensor((8,), "float32")
    R.hamming_window(n, False, 0.54, 0.46, 'float64') -> R.Tensor((n,), "float64")
    R.hamming_window(1, False, 0.5, 0.5, 'float32') -> R.Tensor((1,), "float32")
    """

def hann_window(window_size: _t.Any, periodic: _t.Any = True, dtype: _t.Any = 'float32') -> _t.Any:
    """The window 0.5 - 0.5 cos(2 pi x), x from 0 to 1, named after Julius von Hann.

    Errors: ShapeError W205 a negative size; DTypeError W321 a dtype that is not floating.

    R.hann_window(8) -> R.Tensor((8,), "float32")
    R.hann_window(n, False, dtype='float64') -> R.Tensor((n,), "float64")
    R.hann_window(1, False) -> R.Tensor((1,), "float32")
    R.hann_window(1) -> R.Tensor((1,), "float32")
    R.hann_window(2, False) -> R.Tensor((2,), "float32")
    """

def hint_on_device(data: _t.Any, dst_vdevice: _t.Any, memory_scope: _t.Any = 'global') -> _t.Any:
    """The tensor itself, with advice about the device that should hold it."""

def histc(x: _t.Any, bins: _t.Any = 100, min: _t.Any = 0.0, max: _t.Any = 0.0) -> _t.Any:
    """How many elements lie in each of `bins` equal parts of [min, max], in the dtype of x; others do not count.

        Where both ends are 0, they are the least and the greatest element; where both are one number, it lies in the middle
        of a range of 2.

    R.histc(R.Tensor((3, 4), "float32"), 5, -1.0, 1.0) -> R.Tensor((5,), "float32")
    R.histc(R.Tensor((n,), "float32"), 4) -> R.Tensor((4,), "float32")
    R.histc(R.Tensor((7,), "float64"), 3, 0, 2) -> R.Tensor((3,), "float64")
    """

def hstack(tensors: _t.Any) -> _t.Any:
    """Tensors beside each other: along axis 1, vectors and scalars along axis 0.

    R.hstack((R.Tensor((2, 3), "float32"), R.Tensor((2, 1), "float32"))) -> R.Tensor((2, 4), "float32")
    R.hstack((R.Tensor((n,), "float32"), R.Tensor((m,), "float32"))) -> R.Tensor((m + n,), "float32")
    """

def hypot(x1: _t.Any, x2: _t.Any) -> _t.Any:
    """sqrt(x1**2 + x2**2), elementwise, without overflow.

    R.hypot(R.Tensor((2, 3), "float32"), R.Tensor((3,), "float32")) -> R.Tensor((2, 3), "float32")
    R.hypot(R.Tensor((n, 4), "float32"), R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
    R.hypot(R.Tensor((5,), "float64"), R.Tensor((1,), "float64")) -> R.Tensor((5,), "float64")
    """

def i0(x: _t.Any) -> _t.Any:
    """The modified Bessel function of order 0, elementwise.

    R.i0(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.i0(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
    R.i0(R.Tensor((n,), "float64")) -> R.Tensor((n,), "float64")
    """

def i1(x: _t.Any) -> _t.Any:
    """The modified Bessel function of order 1, elementwise.

    R.i1(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.i1(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
    R.i1(R.Tensor((n,), "float64")) -> R.Tensor((n,), "float64")
    """

def imag(x: _t.Any) -> _t.Any:
    """The imaginary parts, elementwise: floats for complex numbers, 0 of real ones.

    R.imag(R.Tensor((n, 3), "complex64")) -> R.Tensor((n, 3), "float32")
    R.imag(R.Tensor((4,), "complex128")) -> R.Tensor((4,), "float64")
    R.imag(R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32")
    """

def index_put(data: _t.Any, indices: _t.Any, values: _t.Any, accumulate: _t.Any = False) -> _t.Any:
    """A copy of data with data[indices[0], indices[1], ...] set to the values, or with the values added (accumulate).

    The index tensors broadcast; values broadcast to their shape followed by the other axes of data. Where an index
    occurs twice the last value in row-major order stays. Errors: ShapeError W201, W202, W205 no indices; DTypeError
    W320, W321; BoundsError.

    R.index_put(R.Tensor((4, 3), "float32"), (R.Tensor((5,), "int64"),), R.Tensor((5, 3), "float32")) -> R.Tensor((4, 3), "float32")
    R.index_put(R.Tensor((n, 5, 2), "float32"), (R.Tensor((m, 1), "int64"), R.Tensor((3,), "int32")), R.Tensor((m, 3, 1), "float32"), accumulate=True) -> R.Tensor((n, 5, 2), "float32")
    R.index_put(R.Tensor((6,), "int64"), (R.Tensor((m,), "int64"),), R.Tensor((m,), "int64"), accumulate=True) -> R.Tensor((6,), "int64")
    R.index_put(R.Tensor((3, 4), "float32"), (R.Tensor((2,), "int64"), R.Tensor((2,), "int64")), R.Tensor((), "float32")) -> R.Tensor((3, 4), "float32")
    """

def index_reduce(data: _t.Any, index: _t.Any, source: _t.Any, axis: _t.Any = 0, reduction: _t.Any = 'sum', include_self: _t.Any = True) -> _t.Any:
    """A copy of data with slice i of the source joined to slice index[i] along an axis; see scatter_reduce.

    R.index_reduce(R.Tensor((4, 3), "float32"), R.Tensor((5,), "int64"), R.Tensor((5, 3), "float32")) -> R.Tensor((4, 3), "float32")
    R.index_reduce(R.Tensor((n, 4), "float32"), R.Tensor((m,), "int64"), R.Tensor((n, m), "float32"), axis=1, reduction='amin') -> R.Tensor((n, 4), "float32")
    R.index_reduce(R.Tensor((4, n), "float32"), R.Tensor((5,), "int64"), R.Tensor((5, n), "float32"), reduction='mean', include_self=False) -> R.Tensor((4, n), "float32")
    R.index_reduce(R.Tensor((4, 5), "int32"), R.Tensor((3,), "int64"), R.Tensor((3, 2), "int32"), reduction='mean') -> R.Tensor((4, 5), "int32")
    """

def index_tensor(data: _t.Any, indices: _t.Any) -> _t.Any:
    """data[indices[0], indices[1], ...]: the elements at index tensors, which broadcast, along the leading axes.

    Shape: that of the broadcast indices, then the other axes of data. Errors: ShapeError W201, W202, W205 no indices;
    DTypeError W321; BoundsError.

    R.index_tensor(R.Tensor((4, 3), "float32"), (R.Tensor((5,), "int64"),)) -> R.Tensor((5, 3), "float32")
    R.index_tensor(R.Tensor((n, 5, 2), "float32"), (R.Tensor((m, 1), "int64"), R.Tensor((3,), "int32"))) -> R.Tensor((m, 3, 2), "float32")
    R.index_tensor(R.Tensor((4, 5, n), "float32"), (R.Tensor((m,), "int64"), R.Tensor((m,), "int64"))) -> R.Tensor((m, n), "float32")
    R.index_tensor(R.Tensor((3, 4), "float32"), (R.Tensor((), "int64"), R.Tensor((2, 2), "int64"))) -> R.Tensor((2, 2), "float32")
    """

def invoke_closure(closure: _t.Any, args: _t.Any, ty_args: _t.Any = None) -> _t.Any:
    """Call a closure, which may have effects, on its remaining arguments. ScriptError W131 for what is no function."""

def invoke_pure_closure(closure: _t.Any, args: _t.Any, ty_args: _t.Any = None) -> _t.Any:
    """Call a closure without effects on its remaining arguments. ScriptError W131 for what is no function."""

def isfinite(x: _t.Any) -> _t.Any:
    """Whether x is neither infinite nor nan, elementwise; bool.

    R.isfinite(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "bool")
    R.isfinite(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "bool")
    R.isfinite(R.Tensor((n,), "float64")) -> R.Tensor((n,), "bool")
    R.isfinite(R.Tensor((n, 3), "complex64")) -> R.Tensor((n, 3), "bool")
    R.isfinite(R.Tensor((4,), "complex128")) -> R.Tensor((4,), "bool")
    """

def isin(x: _t.Any, test_elements: _t.Any, invert: _t.Any = False) -> _t.Any:
    """Whether each element of x is one of test_elements (none of them, with invert); bool, in the shape of x.

    Up to 64 of them are compared with each element; numbers of 8 bits and bools are looked up in a table; more numbers
    are sorted, and searched in halves; those of an unknown number are compared with each element. Errors: DTypeError
    W320 two dtypes.

    R.isin(R.Tensor((2, 3), "int32"), R.Tensor((4,), "int32")) -> R.Tensor((2, 3), "bool")
    R.isin(R.Tensor((n,), "int64"), R.Tensor((m,), "int64"), invert=True) -> R.Tensor((n,), "bool")
    R.isin(R.Tensor((3,), "float32"), R.Tensor((2, 2), "float32")) -> R.Tensor((3,), "bool")
    R.isin(R.Tensor((n, 3), "int32"), R.Tensor((9, 9), "int32")) -> R.Tensor((n, 3), "bool")
    R.isin(R.Tensor((n,), "float64"), R.Tensor((70,), "float64"), invert=True) -> R.Tensor((n,), "bool")
    R.isin(R.Tensor((2, n), "int8"), R.Tensor((m,), "int8"), invert=True) -> R.Tensor((2, n), "bool")
    """

def isinf(x: _t.Any) -> _t.Any:
    """Whether x is an infinity, elementwise; bool.

    R.isinf(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "bool")
    R.isinf(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "bool")
    R.isinf(R.Tensor((n,), "float64")) -> R.Tensor((n,), "bool")
    R.isinf(R.Tensor((n, 3), "complex64")) -> R.Tensor((n, 3), "bool")
    R.isinf(R.Tensor((4,), "complex128")) -> R.Tensor((4,), "bool")
    """

def isnan(x: _t.Any) -> _t.Any:
    """Whether x is nan, elementwise; bool.

    R.isnan(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "bool")
    R.isnan(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "bool")
    R.isnan(R.Tensor((n,), "float64")) -> R.Tensor((n,), "bool")
    R.isnan(R.Tensor((n, 3), "complex64")) -> R.Tensor((n, 3), "bool")
    R.isnan(R.Tensor((4,), "complex128")) -> R.Tensor((4,), "bool")
    """

def kaiser_window(window_size: _t.Any, beta: _t.Any = 12.0, periodic: _t.Any = True, dtype: _t.Any = 'float32') -> _t.Any:
    """The window i0(beta sqrt(1 - (2 x - 1)**2)) / i0(beta), x from 0 to 1, of J. F. Kaiser.

    Errors: ShapeError W205 a negative size; DTypeError W321 a dtype that is not floating.

    R.kaiser_window(8) -> R.Tensor((8,), "float32")
    R.kaiser_window(n, 5.0, False, 'float64') -> R.Tensor((n,), "float64")
    R.kaiser_window(1, 3.0) -> R.Tensor((1,), "float32")
    """

def kthvalue(x: _t.Any, k: _t.Any, axis: _t.Any = -1, keepdims: _t.Any = False, largest: _t.Any = False) -> _t.Any:
    """The k-th least (or greatest) value along an axis, and its index (int64); k counts from 1, nan is greatest.

    Of equal values the first counts as the least, and as the greatest. Errors: ShapeError W203 the axis, W205 a k that
    is not from 1 to the size of the axis; DTypeError W321.

    R.kthvalue(R.Tensor((2, 5), "float32"), 2) -> R.Tuple(R.Tensor((2,), "float32"), R.Tensor((2,), "int64"))
    R.kthvalue(R.Tensor((n, 4), "float32"), 4, axis=1, keepdims=True) -> R.Tuple(R.Tensor((n, 1), "float32"), R.Tensor((n, 1), "int64"))
    R.kthvalue(R.Tensor((5, m), "float32"), 1, axis=0) -> R.Tuple(R.Tensor((m,), "float32"), R.Tensor((m,), "int64"))
    R.kthvalue(R.Tensor((2, 5), "float32"), 3, largest=True) -> R.Tuple(R.Tensor((2,), "float32"), R.Tensor((2,), "int64"))
    R.kthvalue(R.Tensor((3, 300), "int32"), 120) -> R.Tuple(R.Tensor((3,), "int32"), R.Tensor((3,), "int64"))
    R.kthvalue(R.Tensor((n,), "float64"), 2) -> R.Tuple(R.Tensor((), "float64"), R.Tensor((), "int64"))
    """

def layout_transform(x: _t.Any, index_map: _t.Any, pad_value: _t.Any = None, axis_separators: _t.Any = (), input_axis_separators: _t.Any = ()) -> _t.Any:
    """The elements of x where an index map puts them: out[index_map(i, j)] = x[i, j].

    The map is a Python function of the indices, or its text. Sizes: one more than the greatest index; c for a remainder
    by c. Elements that nothing is put at are pad_value (0 by default); of several put at one place the last in
    row-major order stays. The separators say which dimensions other compilers keep apart in memory; values do not
    depend on them. Errors: ScriptError W142 no index map; ShapeError W202 the number of indices, W205 an index
    that may be negative, or another form; DTypeError W321 pad_value.

    R.layout_transform(R.Tensor((2, 8, 3), "float32"), 'lambda n, c, w: (n, c // 4, w, c % 4)') -> R.Tensor((2, 2, 3, 4), "float32")
    R.layout_transform(R.Tensor((n, 6), "float32"), 'lambda i, j: (j, i)') -> R.Tensor((6, n), "float32")
    R.layout_transform(R.Tensor((n,), "float32"), 'lambda i: (i // 4, i % 4)', pad_value=-1) -> R.Tensor(((n + 3) // 4, 4), "float32")
    R.layout_transform(R.Tensor((2, m), "int32"), 'lambda i, j: (i + 2 * j,)') -> R.Tensor((2 * m,), "int32")
    R.layout_transform(R.Tensor((3, 5), "float32"), 'lambda i, j: (j // 2, i, j % 2)', pad_value=0.5) -> R.Tensor((3, 3, 2), "float32")
    """

def lcm(x1: _t.Any, x2: _t.Any) -> _t.Any:
    """The least common multiple, elementwise, wrapping; 0 where an operand is 0.

    R.lcm(R.Tensor((2, 3), "int32"), R.Tensor((3,), "int32")) -> R.Tensor((2, 3), "int32")
    R.lcm(R.Tensor((n,), "int64"), R.Tensor((1,), "int64")) -> R.Tensor((n,), "int64")
    R.lcm(R.Tensor((30,), "uint8"), R.Tensor((30,), "uint8")) -> R.Tensor((30,), "uint8")
    """

def left_shift(x1: _t.Any, x2: _t.Any) -> _t.Any:
    """x1 shifted left by x2 bits, elementwise; 0 where x2 is negative or not below the width.

    R.left_shift(R.Tensor((2, 3), "int32"), R.Tensor((2, 3), "int32")) -> R.Tensor((2, 3), "int32")
    R.left_shift(R.Tensor((n, 4), "int32"), R.Tensor((4,), "int32")) -> R.Tensor((n, 4), "int32")
    R.left_shift(R.Tensor((n, 1, 4), "int32"), R.Tensor((3, 1), "int32")) -> R.Tensor((n, 3, 4), "int32")
    R.left_shift(R.Tensor((n,), "int32"), R.Tensor((m,), "int32")) -> R.Tensor((n,), "int32")
    """

def less(x1: _t.Any, x2: _t.Any) -> _t.Any:
    """Whether x1 is less than x2, elementwise; bool. Complex numbers have no order.

    R.less(R.Tensor((2, 3), "int32"), R.Tensor((3,), "int32")) -> R.Tensor((2, 3), "bool")
    R.less(R.Tensor((n, 4), "float32"), R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "bool")
    R.less(R.Tensor((n, 1), "int64"), R.Tensor((m,), "int64")) -> R.Tensor((n, m), "bool")
    R.less(R.Tensor((5,), "float64"), R.Tensor((1,), "float64")) -> R.Tensor((5,), "bool")
    R.less(R.Tensor((6,), "bool"), R.Tensor((6,), "bool")) -> R.Tensor((6,), "bool")
    """

def less_equal(x1: _t.Any, x2: _t.Any) -> _t.Any:
    """Whether x1 is less than or equal to x2, elementwise; bool. Complex numbers have no order.

    R.less_equal(R.Tensor((2, 3), "int32"), R.Tensor((3,), "int32")) -> R.Tensor((2, 3), "bool")
    R.less_equal(R.Tensor((n, 4), "float32"), R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "bool")
    R.less_equal(R.Tensor((n, 1), "int64"), R.Tensor((m,), "int64")) -> R.Tensor((n, m), "bool")
    R.less_equal(R.Tensor((5,), "float64"), R.Tensor((1,), "float64")) -> R.Tensor((5,), "bool")
    R.less_equal(R.Tensor((6,), "bool"), R.Tensor((6,), "bool")) -> R.Tensor((6,), "bool")
    """

def lgamma(x: _t.Any) -> _t.Any:
    """The logarithm of the absolute value of the gamma function, elementwise; an infinity at its poles.

    R.lgamma(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.lgamma(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
    R.lgamma(R.Tensor((n,), "float64")) -> R.Tensor((n,), "float64")
    """

def linear(data: _t.Any, weight: _t.Any, bias: _t.Any = None, out_dtype: _t.Any = None) -> _t.Any:
    """data times the transpose of weight, plus bias: (..., k), (n, k), (n,) -> (..., n).

    R.linear(R.Tensor((n, 4), "float32"), R.Tensor((3, 4), "float32")) -> R.Tensor((n, 3), "float32")
    R.linear(R.Tensor((n, 4), "float32"), R.Tensor((3, 4), "float32"), R.Tensor((3,), "float32")) -> R.Tensor((n, 3), "float32")
    R.linear(R.Tensor((2, n, 4), "float32"), R.Tensor((m, 4), "float32"), R.Tensor((m,), "float32")) -> R.Tensor((2, n, m), "float32")
    R.linear(R.Tensor((2, 70), "float16"), R.Tensor((3, 70), "float16"), R.Tensor((3,), "float16")) -> R.Tensor((2, 3), "float16")
    """

def linspace(start: _t.Any, stop: _t.Any, num: _t.Any, dtype: _t.Any = 'float32') -> _t.Any:
    """num numbers from start to stop, both included, equally far apart, computed in float64.

    R.linspace(start=0.0, stop=1.0, num=5) -> R.Tensor((5,), "float32")
    R.linspace(start=-2.0, stop=3.0, num=1) -> R.Tensor((1,), "float32")
    R.linspace(start=1.0, stop=0.0, num=7, dtype='float64') -> R.Tensor((7,), "float64")
    R.linspace(start=0.0, stop=2.0, num=n) -> R.Tensor((n,), "float32")
    """

def log(x: _t.Any) -> _t.Any:
    """The natural logarithm, elementwise; nan below 0.

    R.log(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.log(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
    R.log(R.Tensor((n,), "float64")) -> R.Tensor((n,), "float64")
    R.log(R.Tensor((n, 3), "complex64")) -> R.Tensor((n, 3), "complex64")
    R.log(R.Tensor((4,), "complex128")) -> R.Tensor((4,), "complex128")
    """

def log10(x: _t.Any) -> _t.Any:
    """The logarithm to base 10, elementwise; nan below 0.

    R.log10(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.log10(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
    R.log10(R.Tensor((n,), "float64")) -> R.Tensor((n,), "float64")
    R.log10(R.Tensor((n, 3), "complex64")) -> R.Tensor((n, 3), "complex64")
    R.log10(R.Tensor((4,), "complex128")) -> R.Tensor((4,), "complex128")
    """

def log1p(x: _t.Any) -> _t.Any:
    """log(1 + x), elementwise, exact for small x; nan below -1.

    R.log1p(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.log1p(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
    R.log1p(R.Tensor((n,), "float64")) -> R.Tensor((n,), "float64")
    R.log1p(R.Tensor((n, 3), "complex64")) -> R.Tensor((n, 3), "complex64")
    R.log1p(R.Tensor((4,), "complex128")) -> R.Tensor((4,), "complex128")
    """

def log2(x: _t.Any) -> _t.Any:
    """The logarithm to base 2, elementwise; nan below 0.

    R.log2(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.log2(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
    R.log2(R.Tensor((n,), "float64")) -> R.Tensor((n,), "float64")
    R.log2(R.Tensor((n, 3), "complex64")) -> R.Tensor((n, 3), "complex64")
    R.log2(R.Tensor((4,), "complex128")) -> R.Tensor((4,), "complex128")
    """

def log_add_exp(x1: _t.Any, x2: _t.Any) -> _t.Any:
    """log(exp(x1) + exp(x2)), elementwise, without overflow.

    R.log_add_exp(R.Tensor((2, 3), "float32"), R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.log_add_exp(R.Tensor((n, 4), "float32"), R.Tensor((4,), "float32")) -> R.Tensor((n, 4), "float32")
    R.log_add_exp(R.Tensor((n, 1, 4), "float32"), R.Tensor((3, 1), "float32")) -> R.Tensor((n, 3, 4), "float32")
    R.log_add_exp(R.Tensor((n,), "float32"), R.Tensor((m,), "float32")) -> R.Tensor((n,), "float32")
    """

def logcumsumexp(data: _t.Any, axis: _t.Any = None, dtype: _t.Any = None, exclusive: _t.Any = False) -> _t.Any:
    """The logarithm of the running sum of exponentials along an axis, without overflow.

    R.logcumsumexp(R.Tensor((2, 5), "float32"), axis=1) -> R.Tensor((2, 5), "float32")
    R.logcumsumexp(R.Tensor((n, 3), "float32"), axis=0, exclusive=True) -> R.Tensor((n, 3), "float32")
    R.logcumsumexp(R.Tensor((2, 3), "float32")) -> R.Tensor((6,), "float32")
    R.logcumsumexp(R.Tensor((n, m), "float32")) -> R.Tensor((m * n,), "float32")
    R.logcumsumexp(R.Tensor((70,), "float16"), axis=0) -> R.Tensor((70,), "float16")
    """

def logical_and(x1: _t.Any, x2: _t.Any) -> _t.Any:
    """Whether both are not zero (false), elementwise; bool.

    R.logical_and(R.Tensor((2, 3), "bool"), R.Tensor((3,), "bool")) -> R.Tensor((2, 3), "bool")
    R.logical_and(R.Tensor((n,), "int32"), R.Tensor((n,), "int32")) -> R.Tensor((n,), "bool")
    """

def logical_not(x: _t.Any) -> _t.Any:
    """Whether x is zero (false), elementwise; bool.

    R.logical_not(R.Tensor((2, 3), "bool")) -> R.Tensor((2, 3), "bool")
    R.logical_not(R.Tensor((n, 4), "int32")) -> R.Tensor((n, 4), "bool")
    R.logical_not(R.Tensor((3,), "float32")) -> R.Tensor((3,), "bool")
    """

def logical_or(x1: _t.Any, x2: _t.Any) -> _t.Any:
    """Whether one at least is not zero (false), elementwise; bool.

    R.logical_or(R.Tensor((2, 3), "bool"), R.Tensor((3,), "bool")) -> R.Tensor((2, 3), "bool")
    R.logical_or(R.Tensor((n,), "int32"), R.Tensor((n,), "int32")) -> R.Tensor((n,), "bool")
    """

def logical_xor(x1: _t.Any, x2: _t.Any) -> _t.Any:
    """Whether exactly one is not zero (false), elementwise; bool.

    R.logical_xor(R.Tensor((2, 3), "bool"), R.Tensor((3,), "bool")) -> R.Tensor((2, 3), "bool")
    R.logical_xor(R.Tensor((n,), "int32"), R.Tensor((n,), "int32")) -> R.Tensor((n,), "bool")
    """

def logsumexp(x: _t.Any, axis: _t.Any = None, keepdims: _t.Any = False) -> _t.Any:
    """log(sum(exp(x))) over the axes, without overflow; infinities stay what they are.

    R.logsumexp(R.Tensor((2, 3), "float32")) -> R.Tensor((), "float32")
    R.logsumexp(R.Tensor((n, 4), "float32"), axis=1) -> R.Tensor((n,), "float32")
    R.logsumexp(R.Tensor((n, 3, 2), "float32"), axis=[1, 2], keepdims=True) -> R.Tensor((n, 1, 1), "float32")
    R.logsumexp(R.Tensor((3, 5), "float64"), axis=-1) -> R.Tensor((3,), "float64")
    """

def loop(body: _t.Any, initial: _t.Any, out_ty: _t.Any, range: _t.Any = None, condition: _t.Any = None, stacked: _t.Any = 0, overwrites: _t.Any = ()) -> _t.Any:
    """Run a pure body over a range, while a condition holds, or both, on values that it carries."""

def loop_with_effects(body: _t.Any, initial: _t.Any, out_ty: _t.Any, range: _t.Any = None, condition: _t.Any = None, stacked: _t.Any = 0, overwrites: _t.Any = ()) -> _t.Any:
    """`loop` of a body or condition that has effects."""

def make_closure(func: _t.Any, args: _t.Any) -> _t.Any:
    """A function with its first arguments fixed."""

def masked_fill(x: _t.Any, mask: _t.Any, value: _t.Any) -> _t.Any:
    """x with a value where the mask is true; both are broadcast.

    R.masked_fill(R.Tensor((2, 3), "float32"), R.Tensor((2, 3), "bool"), value=-1.5) -> R.Tensor((2, 3), "float32")
    R.masked_fill(R.Tensor((n, 4), "float32"), R.Tensor((4,), "bool"), value=0.0) -> R.Tensor((n, 4), "float32")
    R.masked_fill(R.Tensor((3,), "int32"), R.Tensor((3,), "bool"), value=7.0) -> R.Tensor((3,), "int32")
    """

def masked_select(x: _t.Any, mask: _t.Any) -> _t.Any:
    """The elements of x where the mask is true, as a vector, in row-major order; both are broadcast.

    Errors: ShapeError W201, W202 when a rank is not known; DTypeError W321 when the mask is not bool.
    """

def matmul(x1: _t.Any, x2: _t.Any, out_dtype: _t.Any = None) -> _t.Any:
    """The product of matrices, as NumPy's.

    Leading axes are batches that broadcast; one-dimensional operands are vectors.
    Dtype: out_dtype, by default that of the operands.

    R.matmul(R.Tensor((3, 4), "float32"), R.Tensor((4, 5), "float32")) -> R.Tensor((3, 5), "float32")
    R.matmul(R.Tensor((n, 4), "float32"), R.Tensor((4, m), "float32")) -> R.Tensor((n, m), "float32")
    R.matmul(R.Tensor((4,), "float32"), R.Tensor((4,), "float32")) -> R.Tensor((), "float32")
    R.matmul(R.Tensor((4,), "float32"), R.Tensor((b, 4, 3), "float32")) -> R.Tensor((b, 3), "float32")
    R.matmul(R.Tensor((b, 3, 4), "float32"), R.Tensor((4,), "float32")) -> R.Tensor((b, 3), "float32")
    R.matmul(R.Tensor((b, 1, 3, k), "float32"), R.Tensor((2, k, 5), "float32")) -> R.Tensor((b, 2, 3, 5), "float32")
    R.matmul(R.Tensor((n, k), "float32"), R.Tensor((l, 2), "float32")) -> R.Tensor((n, 2), "float32")
    R.matmul(R.Tensor((3, 80), "float16"), R.Tensor((80, 2), "float16")) -> R.Tensor((3, 2), "float16")
    R.matmul(R.Tensor((3, 4), "int8"), R.Tensor((4, 2), "int8"), out_dtype='int32') -> R.Tensor((3, 2), "int32")
    R.matmul(R.Tensor((3, 4), "float16"), R.Tensor((4, 2), "float16"), out_dtype='float32') -> R.Tensor((3, 2), "float32")
    R.matmul(R.Tensor((n, 3), "complex64"), R.Tensor((3, m), "complex64")) -> R.Tensor((n, m), "complex64")
    R.matmul(R.Tensor((3,), "complex128"), R.Tensor((b, 3, 2), "complex128")) -> R.Tensor((b, 2), "complex128")
    """

def matmul_dequantized(x1: _t.Any, x2: _t.Any, scale: _t.Any, zero_point: _t.Any = 0, x1_scale: _t.Any = None, group_size: _t.Any = 0, out_dtype: _t.Any = None) -> _t.Any:
    """x1 times a matrix of few bits: (..., k), (k, n) -> (..., n), as x1 @ ((x2 - zero_point) * scale).

    scale has the shape (ceil(k / group_size), n), (1, n) for group_size 0; zero_point is a scalar or of the same shape.
    Where x1 holds integers, x1_scale has the shape (..., ceil(k / group_size)) and x1 stands for x1 * x1_scale
    (`quantize_dynamic`). Sums are float32 at least; the result has out_dtype, else x1's dtype, else float32. The
    matrix is never there in floats: a tile converts what it reads.

    R.matmul_dequantized(R.Tensor((n, 8), "float32"), R.Tensor((8, 5), "int8"), R.Tensor((2, 5), "float32"), group_size=4) -> R.Tensor((n, 5), "float32")
    R.matmul_dequantized(R.Tensor((n, 8), "float32"), R.Tensor((8, 5), "uint8"), R.Tensor((2, 5), "float32"), R.Tensor((2, 5), "uint8"), group_size=4) -> R.Tensor((n, 5), "float32")
    R.matmul_dequantized(R.Tensor((2, 3, 6), "float32"), R.Tensor((6, m), "int8"), R.Tensor((1, m), "float32")) -> R.Tensor((2, 3, m), "float32")
    R.matmul_dequantized(R.Tensor((2, 10), "float16"), R.Tensor((10, 4), "int8"), R.Tensor((3, 4), "float16"), group_size=4) -> R.Tensor((2, 4), "float16")
    R.matmul_dequantized(R.Tensor((n, 8), "int8"), R.Tensor((8, 4), "uint8"), R.Tensor((2, 4), "float32"), 8, R.Tensor((n, 2), "float32"), group_size=4) -> R.Tensor((n, 4), "float32")
    """

def max(x: _t.Any, axis: _t.Any = None, keepdims: _t.Any = False) -> _t.Any:
    """The greatest value along the axes; nan if there is one.

    R.max(R.Tensor((2, 3, 4), "float32"), axis=1) -> R.Tensor((2, 4), "float32")
    R.max(R.Tensor((n, 4), "float32"), axis=[-1], keepdims=True) -> R.Tensor((n, 1), "float32")
    R.max(R.Tensor((3, 5), "float32")) -> R.Tensor((), "float32")
    R.max(R.Tensor((n, 4, m), "float32"), axis=[0, 1]) -> R.Tensor((m,), "float32")
    R.max(R.Tensor((n, m), "float32"), axis=1) -> R.Tensor((n,), "float32")
    R.max(R.Tensor((2, 70), "float16"), axis=1) -> R.Tensor((2,), "float16")
    R.max(R.Tensor((n, 3), "float64"), axis=-1) -> R.Tensor((n,), "float64")
    R.max(R.Tensor((3, 4), "int32"), axis=0, keepdims=True) -> R.Tensor((1, 4), "int32")
    R.max(R.Tensor((3, n), "bool"), axis=1) -> R.Tensor((3,), "bool")
    """

def maximum(x1: _t.Any, x2: _t.Any) -> _t.Any:
    """The greater of x1 and x2, elementwise; nan where one is nan.

    R.maximum(R.Tensor((2, 3), "float32"), R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.maximum(R.Tensor((n, 4), "float32"), R.Tensor((4,), "float32")) -> R.Tensor((n, 4), "float32")
    R.maximum(R.Tensor((n, 1, 4), "float32"), R.Tensor((3, 1), "float32")) -> R.Tensor((n, 3, 4), "float32")
    R.maximum(R.Tensor((n,), "float32"), R.Tensor((m,), "float32")) -> R.Tensor((n,), "float32")
    R.maximum(R.Tensor((5,), "int64"), R.Tensor((5,), "int64")) -> R.Tensor((5,), "int64")
    R.maximum(R.Tensor((2, n), "bool"), R.Tensor((n,), "bool")) -> R.Tensor((2, n), "bool")
    """

def mean(x: _t.Any, axis: _t.Any = None, keepdims: _t.Any = False) -> _t.Any:
    """The arithmetic mean along the axes. Of integers it is computed in float64 and rounded toward zero; there is none of nothing.

    R.mean(R.Tensor((2, 3, 4), "float32"), axis=1) -> R.Tensor((2, 4), "float32")
    R.mean(R.Tensor((n, 4), "float32"), axis=[-1], keepdims=True) -> R.Tensor((n, 1), "float32")
    R.mean(R.Tensor((3, 5), "float32")) -> R.Tensor((), "float32")
    R.mean(R.Tensor((n, 4, m), "float32"), axis=[0, 1]) -> R.Tensor((m,), "float32")
    R.mean(R.Tensor((n, m), "float32"), axis=1) -> R.Tensor((n,), "float32")
    R.mean(R.Tensor((2, 70), "float16"), axis=1) -> R.Tensor((2,), "float16")
    R.mean(R.Tensor((n, 3), "float64"), axis=-1) -> R.Tensor((n,), "float64")
    R.mean(R.Tensor((3, 4), "int32"), axis=0, keepdims=True) -> R.Tensor((1, 4), "int32")
    R.mean(R.Tensor((n, 4), "complex64"), axis=0) -> R.Tensor((4,), "complex64")
    R.mean(R.Tensor((3, n), "complex128"), axis=1) -> R.Tensor((3,), "complex128")
    """

def median(x: _t.Any, axis: _t.Any = None, keepdims: _t.Any = False) -> _t.Any:
    """The middle value along the axes, the lower one of two; nan if there is one.

    Over one axis that is named also its position along the axis (int64): (values, positions). Of equal values the
    first counts as the smallest; of several nan the last is taken. Errors: ShapeError W203, W204 the axes, W226 an
    empty axis; DTypeError W321.

    R.median(R.Tensor((2, 3, 4), "float32"), axis=1) -> R.Tuple(R.Tensor((2, 4), "float32"), R.Tensor((2, 4), "int64"))
    R.median(R.Tensor((n, 4), "float32"), axis=[-1], keepdims=True) -> R.Tuple(R.Tensor((n, 1), "float32"), R.Tensor((n, 1), "int64"))
    R.median(R.Tensor((3, 5), "float32")) -> R.Tensor((), "float32")
    R.median(R.Tensor((n, 4, m), "float32"), axis=[0, 1]) -> R.Tensor((m,), "float32")
    R.median(R.Tensor((n, m), "float32"), axis=1) -> R.Tuple(R.Tensor((n,), "float32"), R.Tensor((n,), "int64"))
    R.median(R.Tensor((2, 70), "float16"), axis=1) -> R.Tuple(R.Tensor((2,), "float16"), R.Tensor((2,), "int64"))
    R.median(R.Tensor((n, 3), "float64"), axis=[0, 1], keepdims=True) -> R.Tensor((1, 1), "float64")
    R.median(R.Tensor((n, 9), "int32"), axis=1) -> R.Tuple(R.Tensor((n,), "int32"), R.Tensor((n,), "int64"))
    R.median(R.Tensor((3, 40), "uint8"), axis=[1], keepdims=True) -> R.Tuple(R.Tensor((3, 1), "uint8"), R.Tensor((3, 1), "int64"))
    """

def meshgrid(tensors: _t.Any, indexing: _t.Any = 'ij') -> _t.Any:
    """Grids of coordinates: one tensor for each vector, constant along all axes but its own.

    With indexing "xy" the first two axes are exchanged. Errors: ShapeError W202 a tensor that is no vector or scalar,
    W205 no tensors or another indexing; DTypeError W320.

    R.meshgrid((R.Tensor((2,), "float32"), R.Tensor((3,), "float32"))) -> R.Tuple(R.Tensor((2, 3), "float32"), R.Tensor((2, 3), "float32"))
    R.meshgrid((R.Tensor((n,), "float32"), R.Tensor((m,), "float32"), R.Tensor((4,), "float32"))) -> R.Tuple(R.Tensor((n, m, 4), "float32"), R.Tensor((n, m, 4), "float32"), R.Tensor((n, m, 4), "float32"))
    R.meshgrid((R.Tensor((n,), "float32"), R.Tensor((3,), "float32"), R.Tensor((2,), "float32")), indexing='xy') -> R.Tuple(R.Tensor((3, n, 2), "float32"), R.Tensor((3, n, 2), "float32"), R.Tensor((3, n, 2), "float32"))
    """

def min(x: _t.Any, axis: _t.Any = None, keepdims: _t.Any = False) -> _t.Any:
    """The least value along the axes; nan if there is one.

    R.min(R.Tensor((2, 3, 4), "float32"), axis=1) -> R.Tensor((2, 4), "float32")
    R.min(R.Tensor((n, 4), "float32"), axis=[-1], keepdims=True) -> R.Tensor((n, 1), "float32")
    R.min(R.Tensor((3, 5), "float32")) -> R.Tensor((), "float32")
    R.min(R.Tensor((n, 4, m), "float32"), axis=[0, 1]) -> R.Tensor((m,), "float32")
    R.min(R.Tensor((n, m), "float32"), axis=1) -> R.Tensor((n,), "float32")
    R.min(R.Tensor((2, 70), "float16"), axis=1) -> R.Tensor((2,), "float16")
    R.min(R.Tensor((n, 3), "float64"), axis=-1) -> R.Tensor((n,), "float64")
    R.min(R.Tensor((3, 4), "int32"), axis=0, keepdims=True) -> R.Tensor((1, 4), "int32")
    R.min(R.Tensor((3, n), "bool"), axis=1) -> R.Tensor((3,), "bool")
    """

def minimum(x1: _t.Any, x2: _t.Any) -> _t.Any:
    """The smaller of x1 and x2, elementwise; nan where one is nan.

    R.minimum(R.Tensor((2, 3), "float32"), R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.minimum(R.Tensor((n, 4), "float32"), R.Tensor((4,), "float32")) -> R.Tensor((n, 4), "float32")
    R.minimum(R.Tensor((n, 1, 4), "float32"), R.Tensor((3, 1), "float32")) -> R.Tensor((n, 3, 4), "float32")
    R.minimum(R.Tensor((n,), "float32"), R.Tensor((m,), "float32")) -> R.Tensor((n,), "float32")
    R.minimum(R.Tensor((5,), "int64"), R.Tensor((5,), "int64")) -> R.Tensor((5,), "int64")
    R.minimum(R.Tensor((2, n), "bool"), R.Tensor((n,), "bool")) -> R.Tensor((2, n), "bool")
    """

def mod(x1: _t.Any, x2: _t.Any) -> _t.Any:
    """The remainder of x1 / x2 with the sign of x1 (as in C), elementwise; of integers 0 where x2 is 0.

    R.mod(R.Tensor((2, 3), "float32"), R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.mod(R.Tensor((n, 4), "float32"), R.Tensor((4,), "float32")) -> R.Tensor((n, 4), "float32")
    R.mod(R.Tensor((n, 4), "int32"), R.Tensor((n, 4), "int32")) -> R.Tensor((n, 4), "int32")
    R.mod(R.Tensor((40,), "int64"), R.Tensor((1,), "int64")) -> R.Tensor((40,), "int64")
    R.mod(R.Tensor((6,), "int8"), 3) -> R.Tensor((6,), "int8")
    R.mod(R.Tensor((n,), "uint8"), R.Tensor((n,), "uint8")) -> R.Tensor((n,), "uint8")
    """

def mode(x: _t.Any, axis: _t.Any = -1, keepdims: _t.Any = False) -> _t.Any:
    """The most frequent value along an axis, the least of several, and the index (int64) of its last occurrence.

        Of a sorted row, the longest run of equal values: at each place the run has begun at the last place where the value
        changed. Costs a sort.

    R.mode(R.Tensor((2, 6), "int32")) -> R.Tuple(R.Tensor((2,), "int32"), R.Tensor((2,), "int64"))
    R.mode(R.Tensor((n, 5), "int64"), axis=1) -> R.Tuple(R.Tensor((n,), "int64"), R.Tensor((n,), "int64"))
    R.mode(R.Tensor((4, 3), "int32"), axis=0, keepdims=True) -> R.Tuple(R.Tensor((1, 3), "int32"), R.Tensor((1, 3), "int64"))
    R.mode(R.Tensor((m,), "float32")) -> R.Tuple(R.Tensor((), "float32"), R.Tensor((), "int64"))
    """

def multinomial_from_uniform(prob: _t.Any, uniform_sample: _t.Any, sample_indices: _t.Any, dtype: _t.Any = 'int64') -> _t.Any:
    """The class that each uniform random number chooses from a row of probabilities: the first one whose cumulative
    probability exceeds the number (the last class if none does).

    prob (b, c), uniform_sample (n, 1), sample_indices (n, 1) with the row for each -> (n, 1). Errors: ShapeError W201,
    W202; DTypeError W321; BoundsError for a row that does not exist.

    R.multinomial_from_uniform(R.Tensor((3, 5), "float32"), R.Tensor((4, 1), "float32"), R.Tensor((4, 1), "int64")) -> R.Tensor((4, 1), "int64")
    R.multinomial_from_uniform(R.Tensor((b, c), "float32"), R.Tensor((n, 1), "float32"), R.Tensor((n, 1), "int32"), dtype='int32') -> R.Tensor((n, 1), "int32")
    """

def multiply(x1: _t.Any, x2: _t.Any) -> _t.Any:
    """x1 * x2, elementwise; of bools, whether both are true; of complex numbers (a c - b d, a d + b c).

    R.multiply(R.Tensor((2, 3), "float32"), R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.multiply(R.Tensor((n, 4), "float32"), R.Tensor((4,), "float32")) -> R.Tensor((n, 4), "float32")
    R.multiply(R.Tensor((n, 1, 4), "float32"), R.Tensor((3, 1), "float32")) -> R.Tensor((n, 3, 4), "float32")
    R.multiply(R.Tensor((n,), "float32"), R.Tensor((m,), "float32")) -> R.Tensor((n,), "float32")
    R.multiply(R.Tensor((5,), "int64"), R.Tensor((5,), "int64")) -> R.Tensor((5,), "int64")
    R.multiply(R.Tensor((n, 4), "complex64"), R.Tensor((4,), "complex64")) -> R.Tensor((n, 4), "complex64")
    R.multiply(R.Tensor((3, 1), "complex128"), R.Tensor((m,), "complex128")) -> R.Tensor((3, m), "complex128")
    R.multiply(R.Tensor((2, n), "bool"), R.Tensor((n,), "bool")) -> R.Tensor((2, n), "bool")
    """

def nan_to_num(x: _t.Any, nan: _t.Any = 0.0, posinf: _t.Any = None, neginf: _t.Any = None) -> _t.Any:
    """x with numbers for nan and infinities: by default 0 and the greatest and least finite values.

    R.nan_to_num(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.nan_to_num(R.Tensor((n,), "float32"), nan=1.0, posinf=2.0, neginf=-2.0) -> R.Tensor((n,), "float32")
    R.nan_to_num(R.Tensor((3,), "float64")) -> R.Tensor((3,), "float64")
    """

def negative(x: _t.Any) -> _t.Any:
    """-x, elementwise.

    R.negative(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.negative(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
    R.negative(R.Tensor((n,), "float64")) -> R.Tensor((n,), "float64")
    R.negative(R.Tensor((n, 3), "complex64")) -> R.Tensor((n, 3), "complex64")
    R.negative(R.Tensor((4,), "complex128")) -> R.Tensor((4,), "complex128")
    """

def nextafter(x1: _t.Any, x2: _t.Any) -> _t.Any:
    """The next number after x1 in the direction of x2, elementwise.

    R.nextafter(R.Tensor((2, 3), "float32"), R.Tensor((3,), "float32")) -> R.Tensor((2, 3), "float32")
    R.nextafter(R.Tensor((n, 4), "float32"), R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
    R.nextafter(R.Tensor((5,), "float64"), R.Tensor((1,), "float64")) -> R.Tensor((5,), "float64")
    """

def nonzero(x: _t.Any) -> _t.Any:
    """The positions of the elements that are not zero, in row-major order: (rank, how many), of int64.

    A scalar counts as a vector of one. Errors: ShapeError W202 when the rank of x is not known.
    """

def not_equal(x1: _t.Any, x2: _t.Any) -> _t.Any:
    """Whether x1 differs from x2, elementwise; bool.

    R.not_equal(R.Tensor((2, 3), "int32"), R.Tensor((3,), "int32")) -> R.Tensor((2, 3), "bool")
    R.not_equal(R.Tensor((n, 4), "float32"), R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "bool")
    R.not_equal(R.Tensor((n, 1), "int64"), R.Tensor((m,), "int64")) -> R.Tensor((n, m), "bool")
    R.not_equal(R.Tensor((5,), "float64"), R.Tensor((1,), "float64")) -> R.Tensor((5,), "bool")
    R.not_equal(R.Tensor((6,), "bool"), R.Tensor((6,), "bool")) -> R.Tensor((6,), "bool")
    R.not_equal(R.Tensor((n, 4), "complex64"), R.Tensor((4,), "complex64")) -> R.Tensor((n, 4), "bool")
    R.not_equal(R.Tensor((3, 1), "complex128"), R.Tensor((m,), "complex128")) -> R.Tensor((3, m), "bool")
    """

def null_value() -> _t.Any:
    """The value that stands for nothing."""

def one_hot(indices: _t.Any, on_value: _t.Any, off_value: _t.Any, depth: _t.Any, axis: _t.Any = -1) -> _t.Any:
    """A new axis of size depth that holds on_value at the index and off_value elsewhere (everywhere, for other
    indices).

    Dtype: that of on_value. Errors: ShapeError W203 the axis; DTypeError W320 two dtypes, W321 indices that are no
    integers.

    R.one_hot(R.Tensor((3,), "int64"), 1.0, 0.0, 5) -> R.Tensor((3, 5), "float32")
    R.one_hot(R.Tensor((n, 2), "int64"), 1, 0, 4, axis=1) -> R.Tensor((n, 4, 2), "int64")
    R.one_hot(R.Tensor((n,), "int32"), 2.0, -1.0, m, axis=0) -> R.Tensor((m, n), "float32")
    """

def ones(shape: _t.Any, dtype: _t.Any = 'float32') -> _t.Any:
    """A tensor of ones.

    R.ones((2, 3), 'float32') -> R.Tensor((2, 3), "float32")
    R.ones((n, 4), 'int64') -> R.Tensor((n, 4), "int64")
    R.ones((2 * n, m), 'bool') -> R.Tensor((2 * n, m), "bool")
    """

def ones_like(x: _t.Any, dtype: _t.Any = None) -> _t.Any:
    """A tensor of ones in the shape (and the dtype, unless given) of x.

    R.ones_like(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.ones_like(R.Tensor((n, 4), "float32"), dtype='int32') -> R.Tensor((n, 4), "int32")
    """

def outer(x1: _t.Any, x2: _t.Any) -> _t.Any:
    """The products of all pairs of elements of two vectors: (n,), (m,) -> (n, m).

    R.outer(R.Tensor((3,), "float32"), R.Tensor((4,), "float32")) -> R.Tensor((3, 4), "float32")
    R.outer(R.Tensor((n,), "float32"), R.Tensor((m,), "float32")) -> R.Tensor((n, m), "float32")
    """

def permute_dims(x: _t.Any, axes: _t.Any = None) -> _t.Any:
    """The dimensions in another order; reversed when no axes are given.

    Errors: ShapeError W202 axes of an unknown rank, W203 an axis out of range, W204 axes that are no permutation.

    R.permute_dims(R.Tensor((2, 3), "float32")) -> R.Tensor((3, 2), "float32")
    R.permute_dims(R.Tensor((n, 3, m), "float32"), [2, 0, 1]) -> R.Tensor((m, n, 3), "float32")
    R.permute_dims(R.Tensor((n, 4), "float32"), axes=[-1, 0]) -> R.Tensor((4, n), "float32")
    """

def polygamma(x: _t.Any, n: _t.Any) -> _t.Any:
    """The n-th derivative of digamma, elementwise, for x >= 0; nan below 0 where n > 0.

    Errors: ShapeError W205 for an order below 0 or above 20.

    R.polygamma(R.Tensor((2, 3), "float32"), 1) -> R.Tensor((2, 3), "float32")
    R.polygamma(R.Tensor((n,), "float32"), 0) -> R.Tensor((n,), "float32")
    R.polygamma(R.Tensor((5,), "float64"), 3) -> R.Tensor((5,), "float64")
    """

def power(x1: _t.Any, x2: _t.Any) -> _t.Any:
    """x1 to the power of x2, elementwise; of integers it wraps, and a negative exponent truncates toward 0. Complex numbers to a small whole number are multiplied, else it is exp(x2 log(x1)).

    R.power(R.Tensor((2, 3), "float32"), R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.power(R.Tensor((n, 4), "float32"), R.Tensor((4,), "float32")) -> R.Tensor((n, 4), "float32")
    R.power(R.Tensor((n,), "float32"), 2) -> R.Tensor((n,), "float32")
    R.power(R.Tensor((n,), "int32"), R.Tensor((n,), "int32")) -> R.Tensor((n,), "int32")
    R.power(R.Tensor((4,), "int64"), 3) -> R.Tensor((4,), "int64")
    R.power(R.Tensor((n,), "complex64"), 3) -> R.Tensor((n,), "complex64")
    R.power(R.Tensor((n,), "complex128"), R.Tensor((n,), "complex128")) -> R.Tensor((n,), "complex128")
    """

def print(*values: _t.Any, format: _t.Any = '') -> _t.Any:
    """Print values, by a Python format string where one is given."""

def prod(x: _t.Any, axis: _t.Any = None, keepdims: _t.Any = False) -> _t.Any:
    """The product along the axes; of bools, whether all are true.

    R.prod(R.Tensor((2, 3, 4), "float32"), axis=1) -> R.Tensor((2, 4), "float32")
    R.prod(R.Tensor((n, 4), "float32"), axis=[-1], keepdims=True) -> R.Tensor((n, 1), "float32")
    R.prod(R.Tensor((3, 5), "float32")) -> R.Tensor((), "float32")
    R.prod(R.Tensor((n, 4, m), "float32"), axis=[0, 1]) -> R.Tensor((m,), "float32")
    R.prod(R.Tensor((n, m), "float32"), axis=1) -> R.Tensor((n,), "float32")
    R.prod(R.Tensor((2, 70), "float16"), axis=1) -> R.Tensor((2,), "float16")
    R.prod(R.Tensor((n, 3), "float64"), axis=-1) -> R.Tensor((n,), "float64")
    R.prod(R.Tensor((3, 4), "int32"), axis=0, keepdims=True) -> R.Tensor((1, 4), "int32")
    R.prod(R.Tensor((n, 4), "complex64"), axis=0) -> R.Tensor((4,), "complex64")
    R.prod(R.Tensor((3, n), "complex128"), axis=1) -> R.Tensor((3,), "complex128")
    R.prod(R.Tensor((3, n), "bool"), axis=1) -> R.Tensor((3,), "bool")
    """

def quantize(data: _t.Any, scale: _t.Any, zero_point: _t.Any, axis: _t.Any = -1, out_dtype: _t.Any = 'int8', group_size: _t.Any = 0) -> _t.Any:
    """Floats as integers: clip(round(data / scale) + zero_point), limited to the values of out_dtype.

    scale and zero_point are scalars, or vectors along the axis of data; with a group_size they have data's rank, and
    one element for each group_size of data along the axis. The quotient is taken in float32 (in float64 of float64,
    and for integers of more than 16 bits). A nan gives 0.

    R.quantize(R.Tensor((2, 3), "float32"), R.Tensor((3,), "float32"), R.Tensor((3,), "int8")) -> R.Tensor((2, 3), "int8")
    R.quantize(R.Tensor((n, 4, m), "float32"), R.Tensor((4,), "float32"), R.Tensor((4,), "int32"), axis=1) -> R.Tensor((n, 4, m), "int8")
    R.quantize(R.Tensor((n, 4), "float32"), R.Tensor((), "float32"), R.Tensor((), "int8"), out_dtype='uint8') -> R.Tensor((n, 4), "uint8")
    R.quantize(R.Tensor((n,), "float16"), R.Tensor((n,), "float32"), R.Tensor((), "int8"), axis=0, out_dtype='int16') -> R.Tensor((n,), "int16")
    R.quantize(R.Tensor((n, 2), "float32"), 0.05, 3) -> R.Tensor((n, 2), "int8")
    R.quantize(R.Tensor((5,), "float32"), R.Tensor((), "float32"), R.Tensor((), "int32"), out_dtype='int32') -> R.Tensor((5,), "int32")
    R.quantize(R.Tensor((n, 10), "float32"), R.Tensor((n, 3), "float32"), R.Tensor((n, 3), "int8"), group_size=4) -> R.Tensor((n, 10), "int8")
    """

def quantize_dynamic(data: _t.Any, group_size: _t.Any = 0, out_dtype: _t.Any = 'int8') -> _t.Any:
    """Floats as integers with a scale for each group of neighbours along the last axis: (quantized, scale).

    The scale is max|data| / max of out_dtype of the group (group_size 0: of the row), in float32; quantized is
    round(data * (1 / scale)), so that zero stays zero and quantized * scale is data up to half of the scale:
    (..., k) -> (..., k), (..., ceil(k / group_size)). Halves are rounded to even, and nan is 0.

    R.quantize_dynamic(R.Tensor((2, 8), "float32")) -> R.Tuple(R.Tensor((2, 8), "int8"), R.Tensor((2, 1), "float32"))
    R.quantize_dynamic(R.Tensor((n, 8), "float32"), group_size=4) -> R.Tuple(R.Tensor((n, 8), "int8"), R.Tensor((n, 2), "float32"))
    R.quantize_dynamic(R.Tensor((n, 3, 10), "float32"), group_size=4) -> R.Tuple(R.Tensor((n, 3, 10), "int8"), R.Tensor((n, 3, 3), "float32"))
    R.quantize_dynamic(R.Tensor((2, 8), "float16"), group_size=2, out_dtype='int16') -> R.Tuple(R.Tensor((2, 8), "int16"), R.Tensor((2, 4), "float32"))
    """

def real(x: _t.Any) -> _t.Any:
    """The real parts, elementwise: floats for complex numbers, real ones as they are.

    R.real(R.Tensor((n, 3), "complex64")) -> R.Tensor((n, 3), "float32")
    R.real(R.Tensor((4,), "complex128")) -> R.Tensor((4,), "float64")
    R.real(R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32")
    """

def remainder(x1: _t.Any, x2: _t.Any) -> _t.Any:
    """The remainder of x1 / x2 with the sign of x2, elementwise: `floor_mod` by its name in Python.

    R.remainder(R.Tensor((2, 3), "float32"), R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.remainder(R.Tensor((n, 4), "float32"), R.Tensor((4,), "float32")) -> R.Tensor((n, 4), "float32")
    R.remainder(R.Tensor((n, 4), "int32"), R.Tensor((n, 4), "int32")) -> R.Tensor((n, 4), "int32")
    """

def repeat(data: _t.Any, repeats: _t.Any, axis: _t.Any = None) -> _t.Any:
    """Every element repeated along an axis (of the flattened tensor when the axis is None), as in NumPy.

    R.repeat(R.Tensor((2, 3), "float32"), 2) -> R.Tensor((12,), "float32")
    R.repeat(R.Tensor((n, 4), "float32"), 3, axis=0) -> R.Tensor((3 * n, 4), "float32")
    R.repeat(R.Tensor((n, 4), "float32"), m, axis=-1) -> R.Tensor((n, 4 * m), "float32")
    R.repeat(R.Tensor((2,), "float32"), 0) -> R.Tensor((0,), "float32")
    """

def requantize(data: _t.Any, multiplier: _t.Any, zero_point: _t.Any = 0, shift: _t.Any = 0, axis: _t.Any = -1, out_dtype: _t.Any = 'int8') -> _t.Any:
    """Integers under another scale: clip(round(data * multiplier / 2**shift) + zero_point), within out_dtype.

    data is of at most 32 bits. multiplier (int32) and zero_point are scalars, or vectors along the axis of data. The
    product is exact in 64 bits and rounded once, halves to even, so that every target gives the same bits. The shift
    is from 0 to 62.

    R.requantize(R.Tensor((2, 3), "int32"), R.Tensor((3,), "int32"), 3, shift=36) -> R.Tensor((2, 3), "int8")
    R.requantize(R.Tensor((n, 4, m), "int32"), R.Tensor((4,), "int32"), shift=38, axis=1) -> R.Tensor((n, 4, m), "int8")
    R.requantize(R.Tensor((n, 4), "int32"), R.Tensor((), "int32"), R.Tensor((), "int8"), shift=35, out_dtype='uint8') -> R.Tensor((n, 4), "uint8")
    R.requantize(R.Tensor((n,), "int8"), 3, out_dtype='int32') -> R.Tensor((n,), "int32")
    R.requantize(R.Tensor((n, 2), "int8"), 3, -1, shift=1, out_dtype='int16') -> R.Tensor((n, 2), "int16")
    """

def reshape(x: _t.Any, shape: _t.Any) -> _t.Any:
    """The elements in row-major order under another shape.

    One size may be -1, which is computed; 0 is the size that x has on that axis (or, where x is empty, 0).

    Errors: ShapeError W201 when the numbers of elements differ, W205 for an impossible shape.

    R.reshape(R.Tensor((2, 6), "float32"), (3, 4)) -> R.Tensor((3, 4), "float32")
    R.reshape(R.Tensor((n, 4, 3), "float32"), (0, -1)) -> R.Tensor((n, 12), "float32")
    R.reshape(R.Tensor((2, 3, 4), "float32"), (0, 0, 2, 2)) -> R.Tensor((2, 3, 2, 2), "float32")
    R.reshape(R.Tensor((n, 4), "float32"), (-1, 2)) -> R.Tensor((2 * n, 2), "float32")
    R.reshape(R.Tensor((n, 2, 3), "float32"), (-1, 6)) -> R.Tensor((n, 6), "float32")
    R.reshape(R.Tensor((2, 3, 4), "float32"), (2, 12)) -> R.Tensor((2, 12), "float32")
    R.reshape(R.Tensor((), "float32"), (1, 1)) -> R.Tensor((1, 1), "float32")
    """

def reverse_sequence(data: _t.Any, seq_lengths: _t.Any, seq_axis: _t.Any = 1, batch_axis: _t.Any = 0) -> _t.Any:
    """The first seq_lengths[b] elements along the sequence axis of each batch b reversed, the others as they are.

    Errors: ShapeError W201, W202, W203 the axes, W204 one axis given twice; DTypeError W321; BoundsError for a length
    that exceeds the axis.

    R.reverse_sequence(R.Tensor((3, 5), "float32"), R.Tensor((3,), "int64")) -> R.Tensor((3, 5), "float32")
    R.reverse_sequence(R.Tensor((s, n, 2), "float32"), R.Tensor((n,), "int32"), 0, 1) -> R.Tensor((s, n, 2), "float32")
    R.reverse_sequence(R.Tensor((2, 3, 4), "float32"), R.Tensor((2,), "int64"), seq_axis=-1) -> R.Tensor((2, 3, 4), "float32")
    """

def right_shift(x1: _t.Any, x2: _t.Any) -> _t.Any:
    """x1 shifted right by x2 bits, keeping the sign, elementwise; 0 or -1 where x2 is negative or not below the width.

    R.right_shift(R.Tensor((2, 3), "int32"), R.Tensor((2, 3), "int32")) -> R.Tensor((2, 3), "int32")
    R.right_shift(R.Tensor((n, 4), "int32"), R.Tensor((4,), "int32")) -> R.Tensor((n, 4), "int32")
    R.right_shift(R.Tensor((n, 1, 4), "int32"), R.Tensor((3, 1), "int32")) -> R.Tensor((n, 3, 4), "int32")
    R.right_shift(R.Tensor((n,), "int32"), R.Tensor((m,), "int32")) -> R.Tensor((n,), "int32")
    """

def roll(x: _t.Any, shift: _t.Any, axis: _t.Any) -> _t.Any:
    """The elements moved along axes by a number of places; what leaves at the end comes in at the front.

    R.roll(R.Tensor((5,), "float32"), 2, 0) -> R.Tensor((5,), "float32")
    R.roll(R.Tensor((n, 4), "float32"), shift=[-1, 6], axis=[0, 1]) -> R.Tensor((n, 4), "float32")
    R.roll(R.Tensor((2, m), "int32"), -3, -1) -> R.Tensor((2, m), "int32")
    """

def rot90(x: _t.Any, k: _t.Any = 1, axes: _t.Any = (0, 1)) -> _t.Any:
    """x turned k times by a right angle, from the first of two axes towards the second.

    R.rot90(R.Tensor((2, 3), "float32")) -> R.Tensor((3, 2), "float32")
    R.rot90(R.Tensor((n, 4), "float32"), k=2) -> R.Tensor((n, 4), "float32")
    R.rot90(R.Tensor((2, n, 3), "float32"), k=3, axes=[1, 2]) -> R.Tensor((2, 3, n), "float32")
    R.rot90(R.Tensor((2, 3), "float32"), k=-4) -> R.Tensor((2, 3), "float32")
    """

def round(x: _t.Any) -> _t.Any:
    """The nearest whole number, halves to even, elementwise, in the dtype of x.

    R.round(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.round(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
    R.round(R.Tensor((n,), "float64")) -> R.Tensor((n,), "float64")
    """

def rsqrt(x: _t.Any) -> _t.Any:
    """One over the square root, elementwise.

    R.rsqrt(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.rsqrt(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
    R.rsqrt(R.Tensor((n,), "float64")) -> R.Tensor((n,), "float64")
    R.rsqrt(R.Tensor((n, 3), "complex64")) -> R.Tensor((n, 3), "complex64")
    R.rsqrt(R.Tensor((4,), "complex128")) -> R.Tensor((4,), "complex128")
    """

def scatter_elements(data: _t.Any, indices: _t.Any, updates: _t.Any, axis: _t.Any = 0, reduction: _t.Any = 'update') -> _t.Any:
    """A copy of data with out[indices[i, j], j] set to updates[i, j] (for axis 0), or combined with it by the
    reduction.

    Reductions: update, add, mul, min, max, and mean, half of the sum, one update after the other. Updates have the
    indices' shape, which fits into that of data on the other axes. Errors: ShapeError W201 sizes, W202 ranks, W203 the
    axis, W205 the reduction; DTypeError W320, W321.

    R.scatter_elements(R.Tensor((4, 3), "float32"), R.Tensor((2, 3), "int64"), R.Tensor((2, 3), "float32")) -> R.Tensor((4, 3), "float32")
    R.scatter_elements(R.Tensor((n, 5), "float32"), R.Tensor((n, m), "int64"), R.Tensor((n, m), "float32"), axis=1, reduction='add') -> R.Tensor((n, 5), "float32")
    R.scatter_elements(R.Tensor((6,), "int64"), R.Tensor((n,), "int32"), R.Tensor((n,), "int64"), reduction='max') -> R.Tensor((6,), "int64")
    R.scatter_elements(R.Tensor((4,), "float32"), R.Tensor((n,), "int64"), R.Tensor((n,), "float32"), reduction='mean') -> R.Tensor((4,), "float32")
    R.scatter_elements(R.Tensor((4,), "int32"), R.Tensor((n,), "int64"), R.Tensor((n,), "int32"), reduction='mean') -> R.Tensor((4,), "int32")
    """

def scatter_nd(data: _t.Any, indices: _t.Any, updates: _t.Any, reduction: _t.Any = 'update') -> _t.Any:
    """A copy of data with the slice at each index tuple set to its update, or combined with it by the reduction.

    The last axis of indices holds positions along data's leading axes. Reductions: update, add, mul, min, max.
    Errors: ShapeError W201 sizes, W202 ranks, W205; DTypeError W320, W321.

    R.scatter_nd(R.Tensor((4, 3), "float32"), R.Tensor((m, 1), "int64"), R.Tensor((m, 3), "float32")) -> R.Tensor((4, 3), "float32")
    R.scatter_nd(R.Tensor((4, 3, n), "float32"), R.Tensor((5, 2), "int64"), R.Tensor((5, n), "float32"), reduction='add') -> R.Tensor((4, 3, n), "float32")
    R.scatter_nd(R.Tensor((4,), "float32"), R.Tensor((2, m, 1), "int64"), R.Tensor((2, m), "float32"), reduction='mul') -> R.Tensor((4,), "float32")
    """

def scatter_reduce(data: _t.Any, indices: _t.Any, updates: _t.Any, axis: _t.Any = 0, reduction: _t.Any = 'sum', include_self: _t.Any = True) -> _t.Any:
    """A copy of data with updates joined to out[indices[i, j], j] (for axis 0): sum, prod, mean, amax or amin.

        Without include_self what stands in a place that is updated does not count. Integer means are rounded down.

    R.scatter_reduce(R.Tensor((4, 3), "float32"), R.Tensor((2, 3), "int64"), R.Tensor((2, 3), "float32"), reduction='mean') -> R.Tensor((4, 3), "float32")
    R.scatter_reduce(R.Tensor((n, 5), "float32"), R.Tensor((n, 4), "int64"), R.Tensor((n, 4), "float32"), axis=1, reduction='amax', include_self=False) -> R.Tensor((n, 5), "float32")
    R.scatter_reduce(R.Tensor((4,), "int32"), R.Tensor((6,), "int64"), R.Tensor((6,), "int32"), reduction='prod', include_self=False) -> R.Tensor((4,), "int32")
    R.scatter_reduce(R.Tensor((4,), "float32"), R.Tensor((6,), "int64"), R.Tensor((6,), "float32"), reduction='mean', include_self=False) -> R.Tensor((4,), "float32")
    """

def scatter_slices(data: _t.Any, indices: _t.Any, updates: _t.Any, axis: _t.Any = 0, reduction: _t.Any = 'update') -> _t.Any:
    """A copy of data with slice indices[i] along an axis set to slice i of the updates, or combined with it by the
    reduction.

    Reductions: update, add, mul, min, max, and mean, half of the sum, one update after the other. The other axes of the
    updates fit into those of data. Errors: ShapeError W201 sizes, W202 ranks, W203 the axis, W205 the reduction;
    DTypeError W320, W321.

    R.scatter_slices(R.Tensor((4, 3), "float32"), R.Tensor((5,), "int64"), R.Tensor((5, 3), "float32")) -> R.Tensor((4, 3), "float32")
    R.scatter_slices(R.Tensor((n, 4), "float32"), R.Tensor((m,), "int64"), R.Tensor((n, m), "float32"), axis=1, reduction='max') -> R.Tensor((n, 4), "float32")
    R.scatter_slices(R.Tensor((2, 3, 5), "int32"), R.Tensor((4,), "int64"), R.Tensor((2, 4, 5), "int32"), 1, 'add') -> R.Tensor((2, 3, 5), "int32")
    R.scatter_slices(R.Tensor((4, n), "float32"), R.Tensor((m,), "int32"), R.Tensor((m, n), "float32"), reduction='mul') -> R.Tensor((4, n), "float32")
    R.scatter_slices(R.Tensor((3, 4), "float32"), R.Tensor((2,), "int64"), R.Tensor((2, 3), "float32"), reduction='mean') -> R.Tensor((3, 4), "float32")
    """

def searchsorted(sorted_sequence: _t.Any, values: _t.Any, right: _t.Any = False, out_int32: _t.Any = False) -> _t.Any:
    """Where values would stand in a sorted vector: before equal elements, after them with right; int64.

    R.searchsorted(R.Tensor((5,), "float32"), R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "int64")
    R.searchsorted(R.Tensor((n,), "int64"), R.Tensor((m,), "int64"), right=True) -> R.Tensor((m,), "int64")
    """

def segment_reduce(data: _t.Any, segment_ids: _t.Any, num_segments: _t.Any, reduction: _t.Any = 'sum') -> _t.Any:
    """The slices of data with one segment id joined: sum, prod, mean, amax or amin; a row for each of num_segments.

        The ids may be in any order. A segment without slices gives 0, 1, nan, and the least and the greatest value.

    R.segment_reduce(R.Tensor((6, 2), "float32"), R.Tensor((6,), "int64"), 4) -> R.Tensor((4, 2), "float32")
    R.segment_reduce(R.Tensor((n,), "float32"), R.Tensor((n,), "int64"), 3, reduction='mean') -> R.Tensor((3,), "float32")
    R.segment_reduce(R.Tensor((n, 2), "int32"), R.Tensor((n,), "int64"), 3, reduction='amax') -> R.Tensor((3, 2), "int32")
    """

def shape_of(expr: _t.Any) -> _t.Any:
    """The shape of a tensor as a value."""

def shape_to_tensor(expr: _t.Any) -> _t.Any:
    """A shape as a tensor of int64 with one element per dimension.

    R.shape_to_tensor((2, 3)) -> R.Tensor((2,), "int64")
    R.shape_to_tensor((n, 4, m + 1)) -> R.Tensor((3,), "int64")
    """

def sigmoid(x: _t.Any) -> _t.Any:
    """1 / (1 + exp(-x)), elementwise.

    R.sigmoid(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.sigmoid(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
    R.sigmoid(R.Tensor((n,), "float64")) -> R.Tensor((n,), "float64")
    R.sigmoid(R.Tensor((n, 3), "complex64")) -> R.Tensor((n, 3), "complex64")
    R.sigmoid(R.Tensor((4,), "complex128")) -> R.Tensor((4,), "complex128")
    """

def sign(x: _t.Any) -> _t.Any:
    """-1, 0 or 1 as x is negative, zero or positive, elementwise.

    R.sign(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.sign(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
    R.sign(R.Tensor((n,), "float64")) -> R.Tensor((n,), "float64")
    """

def sin(x: _t.Any) -> _t.Any:
    """The sine, elementwise.

    R.sin(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.sin(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
    R.sin(R.Tensor((n,), "float64")) -> R.Tensor((n,), "float64")
    R.sin(R.Tensor((n, 3), "complex64")) -> R.Tensor((n, 3), "complex64")
    R.sin(R.Tensor((4,), "complex128")) -> R.Tensor((4,), "complex128")
    """

def sinc(x: _t.Any) -> _t.Any:
    """sin(pi x) / (pi x), elementwise; 1 at 0.

    R.sinc(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.sinc(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
    R.sinc(R.Tensor((n,), "float64")) -> R.Tensor((n,), "float64")
    R.sinc(R.Tensor((n, 3), "complex64")) -> R.Tensor((n, 3), "complex64")
    R.sinc(R.Tensor((4,), "complex128")) -> R.Tensor((4,), "complex128")
    """

def sinh(x: _t.Any) -> _t.Any:
    """The hyperbolic sine, elementwise.

    R.sinh(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.sinh(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
    R.sinh(R.Tensor((n,), "float64")) -> R.Tensor((n,), "float64")
    R.sinh(R.Tensor((n, 3), "complex64")) -> R.Tensor((n, 3), "complex64")
    R.sinh(R.Tensor((4,), "complex128")) -> R.Tensor((4,), "complex128")
    """

def size(expr: _t.Any) -> _t.Any:
    """The number of elements of a tensor, as a scalar tensor of int64.

    R.size(R.Tensor((2, 3), "float32")) -> R.Tensor((), "int64")
    R.size(R.Tensor((n, 4), "float32")) -> R.Tensor((), "int64")
    R.size(R.Tensor((), "float32")) -> R.Tensor((), "int64")
    """

def slice_scatter(input_tensor: _t.Any, src: _t.Any, start: _t.Any, end: _t.Any, step: _t.Any, axis: _t.Any = 0) -> _t.Any:
    """A copy of the input with input[start:end:step] along an axis set to src; boundaries are those of Python slices.

    Errors: ShapeError W201 src of other sizes, W202 ranks, W203 the axis, W205 a step below 1; DTypeError W320.

    R.slice_scatter(R.Tensor((6, 3), "float32"), R.Tensor((2, 3), "float32"), 1, 5, 2) -> R.Tensor((6, 3), "float32")
    R.slice_scatter(R.Tensor((n, 5), "float32"), R.Tensor((n, 2), "float32"), -2, 4611686018427387904, 1, axis=1) -> R.Tensor((n, 5), "float32")
    R.slice_scatter(R.Tensor((n,), "float32"), R.Tensor((m,), "float32"), 1, n, 1) -> R.Tensor((n,), "float32")
    R.slice_scatter(R.Tensor((4, 4), "float32"), R.Tensor((4, 0), "float32"), 3, 2, 1, axis=-1) -> R.Tensor((4, 4), "float32")
    """

def sort(x: _t.Any, axis: _t.Any = -1, descending: _t.Any = False) -> _t.Any:
    """The elements along an axis in ascending (or descending) order; nan counts as the greatest, False is below True.

    Errors: ShapeError W203 the axis; DTypeError W321.

    R.sort(R.Tensor((3, 9), "float32")) -> R.Tensor((3, 9), "float32")
    R.sort(R.Tensor((n, 5), "float32"), 0, True) -> R.Tensor((n, 5), "float32")
    R.sort(R.Tensor((n,), "int64"), descending=True) -> R.Tensor((n,), "int64")
    R.sort(R.Tensor((2, n, 3), "float32"), axis=1) -> R.Tensor((2, n, 3), "float32")
    R.sort(R.Tensor((3, n), "bool")) -> R.Tensor((3, n), "bool")
    """

def split(x: _t.Any, indices_or_sections: _t.Any, axis: _t.Any = 0) -> _t.Any:
    """Parts of a tensor along an axis: so many of ceil(size / sections) each (the last ones may be smaller, or empty),
    or cut at the given positions, which are read as in Python slices.

    Errors: ShapeError W203 the axis, W205 fewer than one section, or more than 65,536.

    R.split(R.Tensor((6, 2), "float32"), 3) -> R.Tuple(R.Tensor((2, 2), "float32"), R.Tensor((2, 2), "float32"), R.Tensor((2, 2), "float32"))
    R.split(R.Tensor((n, 2), "float32"), 2) -> R.Tuple(R.Tensor(((n + 1) // 2, 2), "float32"), R.Tensor((n - (n + 1) // 2, 2), "float32"))
    R.split(R.Tensor((2, n), "float32"), 3, axis=1) -> R.Tuple(R.Tensor((2, (n + 2) // 3), "float32"), R.Tensor((2, min(2 * ((n + 2) // 3), n) - (n + 2) // 3), "float32"), R.Tensor((2, n - min(2 * ((n + 2) // 3), n)), "float32"))
    R.split(R.Tensor((n, 4), "float32"), [1, 3], axis=-1) -> R.Tuple(R.Tensor((n, 1), "float32"), R.Tensor((n, 2), "float32"), R.Tensor((n, 1), "float32"))
    R.split(R.Tensor((n,), "float32"), [2, n - 1]) -> R.Tuple(R.Tensor((min(n, 2),), "float32"), R.Tensor((max(max(n - 1, 0) - min(n, 2), 0),), "float32"), R.Tensor((1,), "float32"))
    R.split(R.Tensor((n,), "float32"), [2, 5]) -> R.Tuple(R.Tensor((min(n, 2),), "float32"), R.Tensor((min(n, 5) - min(n, 2),), "float32"), R.Tensor((n - min(n, 5),), "float32"))
    """

def sqrt(x: _t.Any) -> _t.Any:
    """The square root, elementwise; nan below 0.

    R.sqrt(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.sqrt(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
    R.sqrt(R.Tensor((n,), "float64")) -> R.Tensor((n,), "float64")
    R.sqrt(R.Tensor((n, 3), "complex64")) -> R.Tensor((n, 3), "complex64")
    R.sqrt(R.Tensor((4,), "complex128")) -> R.Tensor((4,), "complex128")
    """

def square(x: _t.Any) -> _t.Any:
    """x * x, elementwise.

    R.square(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.square(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
    R.square(R.Tensor((n,), "float64")) -> R.Tensor((n,), "float64")
    R.square(R.Tensor((n, 3), "complex64")) -> R.Tensor((n, 3), "complex64")
    R.square(R.Tensor((4,), "complex128")) -> R.Tensor((4,), "complex128")
    """

def squeeze(x: _t.Any, axis: _t.Any = None) -> _t.Any:
    """Dimensions of size 1 removed: those named, which must be 1 (a run-time check where that is not known), else all
    that are known to be 1. A symbolic size that is 1 by chance stays.

    Errors: ShapeError W201 a named size that is not 1, W203, W204 for the axes.

    R.squeeze(R.Tensor((2, 1, 3, 1), "float32")) -> R.Tensor((2, 3), "float32")
    R.squeeze(R.Tensor((n, 1, 4), "float32"), 1) -> R.Tensor((n, 4), "float32")
    R.squeeze(R.Tensor((1, n), "float32"), [0]) -> R.Tensor((n,), "float32")
    R.squeeze(R.Tensor((n, 4), "float32"), [0]) -> R.Tensor((4,), "float32")
    """

def stack(tensors: _t.Any, axis: _t.Any = 0) -> _t.Any:
    """Tensors of one shape along a new axis.

    Errors: ShapeError W201 sizes that differ, W202 ranks, W203 the axis, W205 no tensors; DTypeError W320.

    R.stack((R.Tensor((2, 3), "float32"), R.Tensor((2, 3), "float32"))) -> R.Tensor((2, 2, 3), "float32")
    R.stack((R.Tensor((n, 4), "float32"), R.Tensor((m, 4), "float32"), R.Tensor((n, 4), "float32")), axis=-1) -> R.Tensor((n, 4, 3), "float32")
    """

def std(x: _t.Any, axis: _t.Any = None, keepdims: _t.Any = False) -> _t.Any:
    """The square root of the variance along the axes. Of complex numbers it is a float. Of integers it is computed in float64 and rounded toward zero; there is none of nothing.

    R.std(R.Tensor((2, 3, 4), "float32"), axis=1) -> R.Tensor((2, 4), "float32")
    R.std(R.Tensor((n, 4), "float32"), axis=[-1], keepdims=True) -> R.Tensor((n, 1), "float32")
    R.std(R.Tensor((3, 5), "float32")) -> R.Tensor((), "float32")
    R.std(R.Tensor((n, 4, m), "float32"), axis=[0, 1]) -> R.Tensor((m,), "float32")
    R.std(R.Tensor((n, m), "float32"), axis=1) -> R.Tensor((n,), "float32")
    R.std(R.Tensor((2, 70), "float16"), axis=1) -> R.Tensor((2,), "float16")
    R.std(R.Tensor((n, 3), "float64"), axis=-1) -> R.Tensor((n,), "float64")
    R.std(R.Tensor((3, 4), "int32"), axis=0, keepdims=True) -> R.Tensor((1, 4), "int32")
    R.std(R.Tensor((n, 4), "complex64"), axis=0) -> R.Tensor((4,), "float32")
    R.std(R.Tensor((3, n), "complex128"), axis=1) -> R.Tensor((3,), "float64")
    """

def strided_slice(x: _t.Any, axes: _t.Any, begin: _t.Any, end: _t.Any, strides: _t.Any = None, assume_inbound: _t.Any = False) -> _t.Any:
    """x[begin:end:stride] along each of the axes, with Python's rules: negative boundaries count from the end, and all
    are clamped to the axis. With assume_inbound boundaries are taken as they are, which the kernel checks.

    Of symbolic sizes it is checked at run time that a boundary such as `n - 3` is not negative, and that a slice of at
    most one element (`x[:1]`), which has the size 1, is not empty.

    Errors: ShapeError W201 an element that is never there, W203, W204 for the axes, W205 lists of different lengths or
    a stride of 0; BoundsError W901 an element that assume_inbound promises and that is never there.

    R.strided_slice(R.Tensor((6, 4), "float32"), [0, 1], [1, 0], [5, -1], [2, 1]) -> R.Tensor((2, 3), "float32")
    R.strided_slice(R.Tensor((n, 4), "float32"), [0], [0], [9223372036854775807], [2]) -> R.Tensor(((n + 1) // 2, 4), "float32")
    R.strided_slice(R.Tensor((n, 4), "float32"), [0, 1], [-2, 3], [9223372036854775807, -5], [1, -1]) -> R.Tensor((min(n, 2), 4), "float32")
    R.strided_slice(R.Tensor((n, 3), "float32"), [0], [1], [n - 1]) -> R.Tensor((max(n - 2, 0), 3), "float32")
    R.strided_slice(R.Tensor((n,), "float32"), [0], [-1], [-1152921504606846976], [-2]) -> R.Tensor(((n - max(n - 1152921504606846976, -1)) // 2,), "float32")
    R.strided_slice(R.Tensor((n, 6), "float32"), [1], [1], [4], assume_inbound=True) -> R.Tensor((n, 3), "float32")
    R.strided_slice(R.Tensor((n,), "float32"), [0], [1], [3], assume_inbound=True) -> R.Tensor((2,), "float32")
    R.strided_slice(R.Tensor((8,), "float32"), [0], [100], [-100], [-3]) -> R.Tensor((3,), "float32")
    """

def subtract(x1: _t.Any, x2: _t.Any) -> _t.Any:
    """x1 - x2, elementwise.

    R.subtract(R.Tensor((2, 3), "float32"), R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.subtract(R.Tensor((n, 4), "float32"), R.Tensor((4,), "float32")) -> R.Tensor((n, 4), "float32")
    R.subtract(R.Tensor((n, 1, 4), "float32"), R.Tensor((3, 1), "float32")) -> R.Tensor((n, 3, 4), "float32")
    R.subtract(R.Tensor((n,), "float32"), R.Tensor((m,), "float32")) -> R.Tensor((n,), "float32")
    R.subtract(R.Tensor((5,), "int64"), R.Tensor((5,), "int64")) -> R.Tensor((5,), "int64")
    R.subtract(R.Tensor((n, 4), "complex64"), R.Tensor((4,), "complex64")) -> R.Tensor((n, 4), "complex64")
    R.subtract(R.Tensor((3, 1), "complex128"), R.Tensor((m,), "complex128")) -> R.Tensor((3, m), "complex128")
    """

def sum(x: _t.Any, axis: _t.Any = None, keepdims: _t.Any = False) -> _t.Any:
    """The sum along the axes; of bools, whether one is true.

    R.sum(R.Tensor((2, 3, 4), "float32"), axis=1) -> R.Tensor((2, 4), "float32")
    R.sum(R.Tensor((n, 4), "float32"), axis=[-1], keepdims=True) -> R.Tensor((n, 1), "float32")
    R.sum(R.Tensor((3, 5), "float32")) -> R.Tensor((), "float32")
    R.sum(R.Tensor((n, 4, m), "float32"), axis=[0, 1]) -> R.Tensor((m,), "float32")
    R.sum(R.Tensor((n, m), "float32"), axis=1) -> R.Tensor((n,), "float32")
    R.sum(R.Tensor((2, 70), "float16"), axis=1) -> R.Tensor((2,), "float16")
    R.sum(R.Tensor((n, 3), "float64"), axis=-1) -> R.Tensor((n,), "float64")
    R.sum(R.Tensor((3, 4), "int32"), axis=0, keepdims=True) -> R.Tensor((1, 4), "int32")
    R.sum(R.Tensor((n, 4), "complex64"), axis=0) -> R.Tensor((4,), "complex64")
    R.sum(R.Tensor((3, n), "complex128"), axis=1) -> R.Tensor((3,), "complex128")
    R.sum(R.Tensor((3, n), "bool"), axis=1) -> R.Tensor((3,), "bool")
    """

def take(x: _t.Any, indices: _t.Any, axis: _t.Any = None, mode: _t.Any = 'fast') -> _t.Any:
    """The elements of an axis (which vectors need not name) at integer indices.

    Shape: the indices' shape stands where the axis was. Mode "fast" checks indices (BoundsError W901; negative ones
    count from the end), "clip" limits them, "wrap" takes them modulo the size, "nan" gives nan for those outside, which
    negative ones are, too. Errors: DTypeError W321, ShapeError W202 no axis, W203, W205 another mode.

    R.take(R.Tensor((5,), "float32"), R.Tensor((3,), "int64")) -> R.Tensor((3,), "float32")
    R.take(R.Tensor((n, 4), "float32"), R.Tensor((m, 2), "int64"), axis=0) -> R.Tensor((m, 2, 4), "float32")
    R.take(R.Tensor((2, 5, 3), "float32"), R.Tensor((m,), "int32"), axis=-2) -> R.Tensor((2, m, 3), "float32")
    R.take(R.Tensor((2, 3), "float32"), R.Tensor((m,), "int64"), axis=0, mode='clip') -> R.Tensor((m, 3), "float32")
    R.take(R.Tensor((2, 3), "float32"), R.Tensor((m,), "int64"), axis=1, mode='wrap') -> R.Tensor((2, m), "float32")
    R.take(R.Tensor((2, n), "float32"), 1, axis=0) -> R.Tensor((n,), "float32")
    R.take(R.Tensor((6,), "float32"), R.Tensor((m,), "int64")) -> R.Tensor((m,), "float32")
    R.take(R.Tensor((2, 3, 2), "float32"), R.Tensor((m,), "int64"), axis=1, mode='nan') -> R.Tensor((2, m, 2), "float32")
    """

def tan(x: _t.Any) -> _t.Any:
    """The tangent, elementwise.

    R.tan(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.tan(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
    R.tan(R.Tensor((n,), "float64")) -> R.Tensor((n,), "float64")
    R.tan(R.Tensor((n, 3), "complex64")) -> R.Tensor((n, 3), "complex64")
    R.tan(R.Tensor((4,), "complex128")) -> R.Tensor((4,), "complex128")
    """

def tanh(x: _t.Any) -> _t.Any:
    """The hyperbolic tangent, elementwise.

    R.tanh(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.tanh(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
    R.tanh(R.Tensor((n,), "float64")) -> R.Tensor((n,), "float64")
    R.tanh(R.Tensor((n, 3), "complex64")) -> R.Tensor((n, 3), "complex64")
    R.tanh(R.Tensor((4,), "complex128")) -> R.Tensor((4,), "complex128")
    """

def tensor_to_shape(expr: _t.Any) -> _t.Any:
    """A vector of integers as a shape, whose sizes a match_cast may name."""

def tile(data: _t.Any, repeats: _t.Any) -> _t.Any:
    """The tensor repeated as a whole along each axis (the last ones, when fewer counts are given), as in NumPy.

    R.tile(R.Tensor((2, 3), "float32"), [2, 2]) -> R.Tensor((4, 6), "float32")
    R.tile(R.Tensor((n, 4), "float32"), 3) -> R.Tensor((n, 12), "float32")
    R.tile(R.Tensor((n,), "float32"), [2, m]) -> R.Tensor((2, m * n), "float32")
    R.tile(R.Tensor((2, 1, 3), "float32"), [2, 1]) -> R.Tensor((2, 2, 3), "float32")
    """

def to_vdevice(data: _t.Any, dst_vdevice: _t.Any) -> _t.Any:
    """The tensor on another device."""

def topk(data: _t.Any, k: _t.Any = 1, axis: _t.Any = -1, ret_type: _t.Any = 'both', largest: _t.Any = True, dtype: _t.Any = 'int32') -> _t.Any:
    """The k greatest (or least) elements along an axis in order, their positions, or both; all of them when k is below
    1.

    An axis shorter than k is refuted (ShapeError W201) or stops the kernel. Errors: W203 the axis, W205 another
    ret_type; DTypeError W321.

    R.topk(R.Tensor((3, 9), "float32"), 2) -> R.Tuple(R.Tensor((3, 2), "float32"), R.Tensor((3, 2), "int32"))
    R.topk(R.Tensor((n, 5), "float32"), 3, ret_type='values', largest=False) -> R.Tensor((n, 3), "float32")
    R.topk(R.Tensor((n, 4), "int64"), 1, axis=0, ret_type='indices', dtype='int64') -> R.Tensor((1, 4), "int64")
    R.topk(R.Tensor((n,), "float32"), 0) -> R.Tuple(R.Tensor((n,), "float32"), R.Tensor((n,), "int32"))
    R.topk(R.Tensor((n, 3), "float32"), 2, axis=0) -> R.Tuple(R.Tensor((2, 3), "float32"), R.Tensor((2, 3), "int32"))
    """

def trace(x: _t.Any, offset: _t.Any = 0, axis1: _t.Any = 0, axis2: _t.Any = 1) -> _t.Any:
    """The sum of a diagonal.

    R.trace(R.Tensor((3, 4), "float32")) -> R.Tensor((), "float32")
    R.trace(R.Tensor((n, 4), "float32"), offset=1) -> R.Tensor((), "float32")
    R.trace(R.Tensor((2, n, 3), "float32"), axis1=1, axis2=2) -> R.Tensor((2,), "float32")
    """

def tril(x: _t.Any, k: _t.Any = 0) -> _t.Any:
    """The elements on and below the k-th diagonal of the last two dimensions, zeros above.

    R.tril(R.Tensor((3, 4), "float32")) -> R.Tensor((3, 4), "float32")
    R.tril(R.Tensor((n, 4), "float32"), 1) -> R.Tensor((n, 4), "float32")
    R.tril(R.Tensor((2, n, 3), "int64"), -1) -> R.Tensor((2, n, 3), "int64")
    R.tril(R.Tensor((n, 2), "float32"), R.Tensor((), "int64")) -> R.Tensor((n, 2), "float32")
    """

def triu(x: _t.Any, k: _t.Any = 0) -> _t.Any:
    """The elements on and above the k-th diagonal of the last two dimensions, zeros below.

    R.triu(R.Tensor((3, 4), "float32")) -> R.Tensor((3, 4), "float32")
    R.triu(R.Tensor((n, 4), "float32"), 1) -> R.Tensor((n, 4), "float32")
    R.triu(R.Tensor((2, n, 3), "int64"), -1) -> R.Tensor((2, n, 3), "int64")
    R.triu(R.Tensor((n, 2), "float32"), R.Tensor((), "int64")) -> R.Tensor((n, 2), "float32")
    """

def trunc(x: _t.Any) -> _t.Any:
    """x without its fraction, elementwise, in the dtype of x.

    R.trunc(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.trunc(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
    R.trunc(R.Tensor((n,), "float64")) -> R.Tensor((n,), "float64")
    """

def unbind(x: _t.Any, axis: _t.Any = 0) -> _t.Any:
    """The slices along an axis, without it, as a tuple; the size of the axis has to be a number.

    R.unbind(R.Tensor((3, 4), "float32")) -> R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32"), R.Tensor((4,), "float32"))
    R.unbind(R.Tensor((n, 2), "float32"), axis=1) -> R.Tuple(R.Tensor((n,), "float32"), R.Tensor((n,), "float32"))
    R.unbind(R.Tensor((2, m), "int32"), axis=-2) -> R.Tuple(R.Tensor((m,), "int32"), R.Tensor((m,), "int32"))
    R.unbind(R.Tensor((3,), "float32")) -> R.Tuple(R.Tensor((), "float32"), R.Tensor((), "float32"), R.Tensor((), "float32"))
    """

def unique(x: _t.Any, sorted: _t.Any = True, return_index: _t.Any = False, return_inverse: _t.Any = False, return_counts: _t.Any = False, axis: _t.Any = None) -> _t.Any:
    """The distinct elements in ascending order (slices along an axis), and as asked for: the position of the first of
    each, for each element the position of its value among the distinct ones, and how often each occurs (int64 vectors).

    The results are known by rank only; they are sorted whatever `sorted` says, and all nan are one. Errors: ShapeError
    W202, W203; DTypeError W321.
    """

def variance(x: _t.Any, axis: _t.Any = None, keepdims: _t.Any = False) -> _t.Any:
    """The mean squared deviation from the mean along the axes. Of complex numbers it is a float. Of integers it is computed in float64 and rounded toward zero; there is none of nothing.

    R.variance(R.Tensor((2, 3, 4), "float32"), axis=1) -> R.Tensor((2, 4), "float32")
    R.variance(R.Tensor((n, 4), "float32"), axis=[-1], keepdims=True) -> R.Tensor((n, 1), "float32")
    R.variance(R.Tensor((3, 5), "float32")) -> R.Tensor((), "float32")
    R.variance(R.Tensor((n, 4, m), "float32"), axis=[0, 1]) -> R.Tensor((m,), "float32")
    R.variance(R.Tensor((n, m), "float32"), axis=1) -> R.Tensor((n,), "float32")
    R.variance(R.Tensor((2, 70), "float16"), axis=1) -> R.Tensor((2,), "float16")
    R.variance(R.Tensor((n, 3), "float64"), axis=-1) -> R.Tensor((n,), "float64")
    R.variance(R.Tensor((3, 4), "int32"), axis=0, keepdims=True) -> R.Tensor((1, 4), "int32")
    R.variance(R.Tensor((n, 4), "complex64"), axis=0) -> R.Tensor((4,), "float32")
    R.variance(R.Tensor((3, n), "complex128"), axis=1) -> R.Tensor((3,), "float64")
    """

def view_as_complex(x: _t.Any) -> _t.Any:
    """Complex numbers of which the last axis of two has the parts: (..., 2) float -> (...) complex. Nothing is copied.

    Errors: ShapeError W202, W205 for another last axis; DTypeError W321.

    R.view_as_complex(R.Tensor((n, 3, 2), "float32")) -> R.Tensor((n, 3), "complex64")
    R.view_as_complex(R.Tensor((2,), "float64")) -> R.Tensor((), "complex128")
    """

def view_as_real(x: _t.Any) -> _t.Any:
    """The parts of complex numbers along a new last axis: (...) complex -> (..., 2) float. Nothing is copied.

    Errors: ShapeError W202; DTypeError W321.

    R.view_as_real(R.Tensor((n, 3), "complex64")) -> R.Tensor((n, 3, 2), "float32")
    R.view_as_real(R.Tensor((), "complex128")) -> R.Tensor((2,), "float64")
    """

def vstack(tensors: _t.Any) -> _t.Any:
    """Tensors on top of each other: along axis 0, vectors as rows.

    R.vstack((R.Tensor((2, 3), "float32"), R.Tensor((4, 3), "float32"))) -> R.Tensor((6, 3), "float32")
    R.vstack((R.Tensor((n,), "float32"), R.Tensor((n,), "float32"))) -> R.Tensor((2, n), "float32")
    """

def where(condition: _t.Any, x1: _t.Any, x2: _t.Any) -> _t.Any:
    """x1 where the (bool) condition holds, x2 elsewhere; the three broadcast. Dtype: that of x1 and x2.

    R.where(R.Tensor((2, 3), "bool"), R.Tensor((2, 3), "float32"), R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.where(R.Tensor((n, 1), "bool"), R.Tensor((4,), "float32"), R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
    R.where(R.Tensor((n,), "bool"), R.Tensor((m,), "float32"), R.Tensor((), "float32")) -> R.Tensor((n,), "float32")
    R.where(R.Tensor((3,), "bool"), R.Tensor((3,), "int64"), R.Tensor((2, 1), "int64")) -> R.Tensor((2, 3), "int64")
    """

def wrap_param(data: _t.Any, dtype: _t.Any = 'float32') -> _t.Any:
    """A parameter of a model in the dtype that the computation uses.

    R.wrap_param(R.Tensor((2, 3), "float16")) -> R.Tensor((2, 3), "float32")
    R.wrap_param(R.Tensor((n,), "float64"), dtype='float32') -> R.Tensor((n,), "float32")
    """

def zeros(shape: _t.Any, dtype: _t.Any = 'float32') -> _t.Any:
    """A tensor of zeros.

    R.zeros((2, 3), 'float32') -> R.Tensor((2, 3), "float32")
    R.zeros((n, 4), 'int64') -> R.Tensor((n, 4), "int64")
    R.zeros((2 * n, m), 'bool') -> R.Tensor((2 * n, m), "bool")
    """

def zeros_like(x: _t.Any, dtype: _t.Any = None) -> _t.Any:
    """A tensor of zeros in the shape (and the dtype, unless given) of x.

    R.zeros_like(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
    R.zeros_like(R.Tensor((n, 4), "float32"), dtype='int32') -> R.Tensor((n, 4), "int32")
    """

DeviceMesh = device_mesh

Object = Any

ShapeExpr = shape

String = Str

call_py_func = call_py

class builtin:
    """Operators `R.builtin.*`."""

    @staticmethod
    def alloc_tensor(shape: _t.Any, dtype: _t.Any, runtime_device_index: _t.Any = 0, storage_scope: _t.Any = 'global') -> _t.Any:
        """A new tensor whose contents are undefined until a kernel writes them."""

    @staticmethod
    def stop_lift_params(x: _t.Any) -> _t.Any:
        """The value itself; computations after it are not moved to load time."""

class ccl:
    """Operators `R.ccl.*`."""

    @staticmethod
    def allgather(x: _t.Any, num_workers: _t.Any, in_group: _t.Any = True) -> _t.Any:
        """The tensors of all workers (of the worker's group) one after the other along the first axis.

        R.ccl.allgather(R.Tensor((n, 3), "float32"), 1) -> R.Tensor((n, 3), "float32")
        """

    @staticmethod
    def allreduce(x: _t.Any, op_type: _t.Any = 'sum', in_group: _t.Any = True) -> _t.Any:
        """The tensors of all workers (of the worker's group) joined elementwise: sum, prod, min, max or avg.

        R.ccl.allreduce(R.Tensor((n, 3), "float32"), 'max') -> R.Tensor((n, 3), "float32")
        """

    @staticmethod
    def broadcast_from_worker0(x: _t.Any) -> _t.Any:
        """The tensor of the first worker, on every worker.

        R.ccl.broadcast_from_worker0(R.Tensor((n, 3), "float32")) -> R.Tensor((n, 3), "float32")
        """

    @staticmethod
    def scatter_from_worker0(x: _t.Any, num_workers: _t.Any, axis: _t.Any = 0) -> _t.Any:
        """The worker's part of the first worker's tensor, which is cut into equal parts along an axis.

        R.ccl.scatter_from_worker0(R.Tensor((n, 3), "float32"), 1) -> R.Tensor((n, 3), "float32")
        """

class dist:
    """Operators `R.dist.*`."""

    @staticmethod
    def annotate_sharding(input: _t.Any, device_mesh: _t.Any, placement: _t.Any) -> _t.Any:
        """The input, and a wish for where passes place it: the type stays. Errors: W203, W205 the placement."""

    @staticmethod
    def call_tir(gvar: _t.Any, args: _t.Any, out_ty: _t.Any, tir_vars: _t.Any = None) -> _t.Any:
        """Call a kernel of the module that works on the whole tensors. Errors: W206 outputs without a place."""

    @staticmethod
    def call_tir_local_view(gvar: _t.Any, args: _t.Any, out_ty: _t.Any, tir_vars: _t.Any = None) -> _t.Any:
        """Call a kernel of the module that works on the part of one device. Errors: W201, W206 as for the types."""

    @staticmethod
    def redistribute(input: _t.Any, device_mesh: _t.Any, placement: _t.Any) -> _t.Any:
        """The same whole tensor, spread over the mesh in another way. Errors: W203, W205 the placement."""

    @staticmethod
    def redistribute_replica_to_shard(input: _t.Any, num_workers: _t.Any, axis: _t.Any) -> _t.Any:
        """The worker's part of a tensor that every worker has, which is cut into equal parts along an axis.

        R.dist.redistribute_replica_to_shard(R.Tensor((n, 3), "float32"), 1, axis=1) -> R.Tensor((n, 3), "float32")
        """

    @staticmethod
    def DTensor(shape: _t.Any = None, dtype: _t.Any = None, device_mesh: _t.Any = None, placement: _t.Any = None, *, ndim: _t.Any = -1) -> _t.Any:
        """The type of a tensor that is spread over a mesh; a mesh that is named is known only inside of its module."""

    @staticmethod
    def device_mesh(shape: _t.Any, device_ids: _t.Any) -> _t.Any:
        """A grid of devices by number; `I.Range(0, 4)` are numbers that follow one another."""

class dynamic:
    """Operators `R.dynamic.*`."""

    @staticmethod
    def nonzero_at(x: _t.Any, shape: _t.Any) -> _t.Any:
        """What nonzero gives, in a result of a shape that is known; BoundsError for another number of elements.

        R.dynamic.nonzero_at(R.Tensor((n, 4), "float32"), (2, 4 * n)) -> R.Tensor((2, 4 * n), "int64")
        R.dynamic.nonzero_at(R.Tensor((3,), "int32"), (1, 3)) -> R.Tensor((1, 3), "int64")
        """

    @staticmethod
    def nonzero_shape(x: _t.Any) -> _t.Any:
        """The shape that nonzero gives: (rank, how many).

        R.dynamic.nonzero_shape(R.Tensor((2, 5), "int64")) -> R.Tensor((2,), "int64")
        R.dynamic.nonzero_shape(R.Tensor((n,), "float32")) -> R.Tensor((2,), "int64")
        R.dynamic.nonzero_shape(R.Tensor((3,), "bool")) -> R.Tensor((2,), "int64")
        """

    @staticmethod
    def range_shape(start: _t.Any, end: _t.Any, step: _t.Any) -> _t.Any:
        """How many elements arange gives, as a shape.

        Errors: DTypeError W321 complex numbers; when it runs BoundsError a step of 0, boundaries of 2**61 and more.

        R.dynamic.range_shape(R.Tensor((), "int64"), n, 2) -> R.Tensor((1,), "int64")
        R.dynamic.range_shape(9, R.Tensor((), "int64"), -3) -> R.Tensor((1,), "int64")
        R.dynamic.range_shape(R.Tensor((), "float32"), 4.0, 0.5) -> R.Tensor((1,), "int64")
        """

    @staticmethod
    def row_order(rows: _t.Any) -> _t.Any:
        """The positions of the rows of a matrix in ascending order, and for each in this order how many different rows
        stand before it; nan counts as the greatest, and all nan are one.

        Errors: ShapeError W202 for another rank; DTypeError W321.

        R.dynamic.row_order(R.Tensor((n, 3), "int32")) -> R.Tuple(R.Tensor((n,), "int64"), R.Tensor((n,), "int64"))
        R.dynamic.row_order(R.Tensor((7, m), "int64")) -> R.Tuple(R.Tensor((7,), "int64"), R.Tensor((7,), "int64"))
        R.dynamic.row_order(R.Tensor((5, 2), "float32")) -> R.Tuple(R.Tensor((5,), "int64"), R.Tensor((5,), "int64"))
        """

    @staticmethod
    def slice_at(x: _t.Any, begin: _t.Any, strides: _t.Any, shape: _t.Any) -> _t.Any:
        """The elements of a strided slice that has a shape that is known; BoundsError where it leaves x.

        R.dynamic.slice_at(R.Tensor((6, 5), "float32"), R.Tensor((2,), "int64"), R.Tensor((2,), "int64"), (2, 2)) -> R.Tensor((2, 2), "float32")
        R.dynamic.slice_at(R.Tensor((n, 5), "float32"), R.Tensor((2,), "int64"), R.Tensor((2,), "int64"), (n, 2)) -> R.Tensor((n, 2), "float32")
        """

    @staticmethod
    def slice_shape(x: _t.Any, begin: _t.Any, end: _t.Any, strides: _t.Any) -> _t.Any:
        """The shape that dynamic_strided_slice gives.

        R.dynamic.slice_shape(R.Tensor((4, 5), "float32"), R.Tensor((2,), "int64"), R.Tensor((2,), "int64"), R.Tensor((2,), "int64")) -> R.Tensor((2,), "int64")
        R.dynamic.slice_shape(R.Tensor((n, 3), "float32"), R.Tensor((2,), "int64"), R.Tensor((2,), "int64"), R.Tensor((2,), "int64")) -> R.Tensor((2,), "int64")
        """

    @staticmethod
    def unique_runs(ordered: _t.Any, order: _t.Any, shape: _t.Any) -> _t.Any:
        """The values of a sorted vector, the first position of each, the place of each element among them, and counts.

        `order` tells where each sorted element stood; BoundsError where there are not as many values as the shape says.

        R.dynamic.unique_runs(R.Tensor((1,), "float32"), R.Tensor((1,), "int64"), (1,)) -> R.Tuple(R.Tensor((1,), "float32"), R.Tensor((1,), "int64"), R.Tensor((1,), "int64"), R.Tensor((1,), "int64"))
        R.dynamic.unique_runs(R.Tensor((3,), "int32"), array([2, 0, 1]), (1,)) -> R.Tuple(R.Tensor((1,), "int32"), R.Tensor((1,), "int64"), R.Tensor((3,), "int64"), R.Tensor((1,), "int64"))
        R.dynamic.unique_runs(R.Tensor((n,), "int64"), R.Tensor((n,), "int64"), ((n + 9) // 10,)) -> R.Tuple(R.Tensor(((n + 9) // 10,), "int64"), R.Tensor(((n + 9) // 10,), "int64"), R.Tensor((n,), "int64"), R.Tensor(((n + 9) // 10,), "int64"))
        """

    @staticmethod
    def unique_shape(ordered: _t.Any) -> _t.Any:
        """How many different values a sorted vector has, as a shape.

        R.dynamic.unique_shape(R.Tensor((n,), "int64")) -> R.Tensor((1,), "int64")
        R.dynamic.unique_shape(R.Tensor((5,), "float32")) -> R.Tensor((1,), "int64")
        """

    @staticmethod
    def unique_values(ordered: _t.Any, shape: _t.Any) -> _t.Any:
        """The values of a sorted vector; BoundsError where there are not as many as the shape says.

        R.dynamic.unique_values(R.Tensor((1,), "float32"), (1,)) -> R.Tensor((1,), "float32")
        R.dynamic.unique_values(R.Tensor((3,), "int32"), (1,)) -> R.Tensor((1,), "int32")
        R.dynamic.unique_values(R.Tensor((n,), "int64"), ((n + 9) // 10,)) -> R.Tensor(((n + 9) // 10,), "int64")
        """

class fft:
    """Operators `R.fft.*`."""

    @staticmethod
    def fft(x: _t.Any, n: _t.Any = None, axis: _t.Any = -1, norm: _t.Any = 'backward') -> _t.Any:
        """The discrete Fourier transform along an axis: X[k] = sum of x[j] exp(-2 pi i j k / n).

        n values along the axis are taken, the first ones, or zeros added. norm backward divides the inverse by n, forward the other, ortho each by the root. Lengths that are known, at most 4096 and without large prime factors run everywhere, others where there is Python. Errors: ShapeError W202, W203, W205; DTypeError W321.

        R.fft.fft(R.Tensor((b, 8), "complex64")) -> R.Tensor((b, 8), "complex64")
        R.fft.fft(R.Tensor((6, 3), "complex128"), axis=0, norm='ortho') -> R.Tensor((6, 3), "complex128")
        R.fft.fft(R.Tensor((2, m), "complex64")) -> R.Tensor((2, m), "complex64")
        R.fft.fft(R.Tensor((2, 5), "complex64"), n=8, norm='forward') -> R.Tensor((2, 8), "complex64")
        R.fft.fft(R.Tensor((b, 6), "float32")) -> R.Tensor((b, 6), "complex64")
        """

    @staticmethod
    def fft2(x: _t.Any, s: _t.Any = None, axes: _t.Any = (-2, -1), norm: _t.Any = 'backward') -> _t.Any:
        """Fourier transforms along the last two axes, or those that are named, the last one first.

        s has how many values are taken along each, norm what results are divided by, as R.fft.fft has them. Errors: ShapeError W202, W203, W205; DTypeError W321.

        R.fft.fft2(R.Tensor((b, 4, 6), "complex64"), axes=[1, 2]) -> R.Tensor((b, 4, 6), "complex64")
        R.fft.fft2(R.Tensor((3, 5), "complex64"), s=[4, 6], axes=[0, 1], norm='ortho') -> R.Tensor((4, 6), "complex64")
        R.fft.fft2(R.Tensor((m, 3), "complex64"), axes=[0, 1], norm='forward') -> R.Tensor((m, 3), "complex64")
        """

    @staticmethod
    def fftfreq(n: _t.Any, d: _t.Any = 1.0, dtype: _t.Any = 'float32') -> _t.Any:
        """The frequencies of the values of fft of n values, d apart: k / (n d), those above the middle negative.

        R.fft.fftfreq(8) -> R.Tensor((8,), "float32")
        R.fft.fftfreq(7, 0.5, 'float64') -> R.Tensor((7,), "float64")
        R.fft.fftfreq(n, 2.0) -> R.Tensor((n,), "float32")
        """

    @staticmethod
    def fftn(x: _t.Any, s: _t.Any = None, axes: _t.Any = None, norm: _t.Any = 'backward') -> _t.Any:
        """Fourier transforms along all axes, or those that are named, the last one first.

        s has how many values are taken along each, norm what results are divided by, as R.fft.fft has them. Errors: ShapeError W202, W203, W205; DTypeError W321.

        R.fft.fftn(R.Tensor((b, 4, 6), "complex64"), axes=[1, 2]) -> R.Tensor((b, 4, 6), "complex64")
        R.fft.fftn(R.Tensor((3, 5), "complex64"), s=[4, 6], axes=[0, 1], norm='ortho') -> R.Tensor((4, 6), "complex64")
        R.fft.fftn(R.Tensor((m, 3), "complex64"), axes=[0, 1], norm='forward') -> R.Tensor((m, 3), "complex64")
        """

    @staticmethod
    def fftshift(x: _t.Any, axes: _t.Any = None) -> _t.Any:
        """The values of transforms with that of frequency 0 in the middle, along all axes or those that are named.

        R.fft.fftshift(R.Tensor((4, 5), "float32")) -> R.Tensor((4, 5), "float32")
        R.fft.fftshift(R.Tensor((m, 3), "complex64"), axes=[0]) -> R.Tensor((m, 3), "complex64")
        R.fft.fftshift(R.Tensor((7,), "int32")) -> R.Tensor((7,), "int32")
        """

    @staticmethod
    def hfft(x: _t.Any, n: _t.Any = None, axis: _t.Any = -1, norm: _t.Any = 'backward') -> _t.Any:
        """The transform, which is real, of numbers of which the second half is the conjugate of the first.

        n values along the axis are taken, the first ones, or zeros added. norm backward divides the inverse by n, forward the other, ortho each by the root. Lengths that are known, at most 4096 and without large prime factors run everywhere, others where there is Python. Errors: ShapeError W202, W203, W205; DTypeError W321.

        R.fft.hfft(R.Tensor((b, 5), "complex64")) -> R.Tensor((b, 8), "float32")
        R.fft.hfft(R.Tensor((5, 3), "complex128"), n=9, axis=0, norm='ortho') -> R.Tensor((9, 3), "float64")
        R.fft.hfft(R.Tensor((2, m), "complex64")) -> R.Tensor((2, 2 * m - 2), "float32")
        """

    @staticmethod
    def ifft(x: _t.Any, n: _t.Any = None, axis: _t.Any = -1, norm: _t.Any = 'backward') -> _t.Any:
        """The inverse transform along an axis: x[j] = sum of X[k] exp(2 pi i j k / n) / n.

        n values along the axis are taken, the first ones, or zeros added. norm backward divides the inverse by n, forward the other, ortho each by the root. Lengths that are known, at most 4096 and without large prime factors run everywhere, others where there is Python. Errors: ShapeError W202, W203, W205; DTypeError W321.

        R.fft.ifft(R.Tensor((b, 8), "complex64")) -> R.Tensor((b, 8), "complex64")
        R.fft.ifft(R.Tensor((6, 3), "complex128"), axis=0, norm='ortho') -> R.Tensor((6, 3), "complex128")
        R.fft.ifft(R.Tensor((2, m), "complex64")) -> R.Tensor((2, m), "complex64")
        R.fft.ifft(R.Tensor((2, 5), "complex64"), n=8, norm='forward') -> R.Tensor((2, 8), "complex64")
        """

    @staticmethod
    def ifft2(x: _t.Any, s: _t.Any = None, axes: _t.Any = (-2, -1), norm: _t.Any = 'backward') -> _t.Any:
        """Inverse Fourier transforms along the last two axes, or those that are named, the last one first.

        s has how many values are taken along each, norm what results are divided by, as R.fft.fft has them. Errors: ShapeError W202, W203, W205; DTypeError W321.

        R.fft.ifft2(R.Tensor((b, 4, 6), "complex64"), axes=[1, 2]) -> R.Tensor((b, 4, 6), "complex64")
        R.fft.ifft2(R.Tensor((3, 5), "complex64"), s=[4, 6], axes=[0, 1], norm='ortho') -> R.Tensor((4, 6), "complex64")
        R.fft.ifft2(R.Tensor((m, 3), "complex64"), axes=[0, 1], norm='forward') -> R.Tensor((m, 3), "complex64")
        """

    @staticmethod
    def ifftn(x: _t.Any, s: _t.Any = None, axes: _t.Any = None, norm: _t.Any = 'backward') -> _t.Any:
        """Inverse Fourier transforms along all axes, or those that are named, the last one first.

        s has how many values are taken along each, norm what results are divided by, as R.fft.fft has them. Errors: ShapeError W202, W203, W205; DTypeError W321.

        R.fft.ifftn(R.Tensor((b, 4, 6), "complex64"), axes=[1, 2]) -> R.Tensor((b, 4, 6), "complex64")
        R.fft.ifftn(R.Tensor((3, 5), "complex64"), s=[4, 6], axes=[0, 1], norm='ortho') -> R.Tensor((4, 6), "complex64")
        R.fft.ifftn(R.Tensor((m, 3), "complex64"), axes=[0, 1], norm='forward') -> R.Tensor((m, 3), "complex64")
        """

    @staticmethod
    def ifftshift(x: _t.Any, axes: _t.Any = None) -> _t.Any:
        """The inverse of fftshift: the value in the middle first, along all axes or those that are named.

        R.fft.ifftshift(R.Tensor((4, 5), "float32")) -> R.Tensor((4, 5), "float32")
        R.fft.ifftshift(R.Tensor((m, 3), "complex64"), axes=[0]) -> R.Tensor((m, 3), "complex64")
        R.fft.ifftshift(R.Tensor((7,), "int32")) -> R.Tensor((7,), "int32")
        """

    @staticmethod
    def ihfft(x: _t.Any, n: _t.Any = None, axis: _t.Any = -1, norm: _t.Any = 'backward') -> _t.Any:
        """The inverse of hfft: the first half of the inverse transform of real numbers.

        n values along the axis are taken, the first ones, or zeros added. norm backward divides the inverse by n, forward the other, ortho each by the root. Lengths that are known, at most 4096 and without large prime factors run everywhere, others where there is Python. Errors: ShapeError W202, W203, W205; DTypeError W321.

        R.fft.ihfft(R.Tensor((b, 8), "float32")) -> R.Tensor((b, 5), "complex64")
        R.fft.ihfft(R.Tensor((6, 3), "float64"), axis=0, norm='ortho') -> R.Tensor((4, 3), "complex128")
        R.fft.ihfft(R.Tensor((2, m), "float32")) -> R.Tensor((2, m // 2 + 1), "complex64")
        R.fft.ihfft(R.Tensor((2, 9), "float32"), n=6) -> R.Tensor((2, 4), "complex64")
        """

    @staticmethod
    def irfft(x: _t.Any, n: _t.Any = None, axis: _t.Any = -1, norm: _t.Any = 'backward') -> _t.Any:
        """The real numbers of which rfft gives the transform: m values give n, by default 2 m - 2.

        n values along the axis are taken, the first ones, or zeros added. norm backward divides the inverse by n, forward the other, ortho each by the root. Lengths that are known, at most 4096 and without large prime factors run everywhere, others where there is Python. Errors: ShapeError W202, W203, W205; DTypeError W321.

        R.fft.irfft(R.Tensor((b, 5), "complex64")) -> R.Tensor((b, 8), "float32")
        R.fft.irfft(R.Tensor((5, 3), "complex128"), n=9, axis=0, norm='ortho') -> R.Tensor((9, 3), "float64")
        R.fft.irfft(R.Tensor((2, m), "complex64")) -> R.Tensor((2, 2 * m - 2), "float32")
        """

    @staticmethod
    def irfft2(x: _t.Any, s: _t.Any = None, axes: _t.Any = (-2, -1), norm: _t.Any = 'backward') -> _t.Any:
        """Real numbers of halves of transforms, inverse transforms along the last two axes, or those that are named, the last one first.

        s has how many values are taken along each, norm what results are divided by, as R.fft.fft has them. Errors: ShapeError W202, W203, W205; DTypeError W321.

        R.fft.irfft2(R.Tensor((b, 4, 6), "complex64"), axes=[1, 2]) -> R.Tensor((b, 4, 10), "float32")
        R.fft.irfft2(R.Tensor((3, 5), "complex64"), s=[4, 6], axes=[0, 1], norm='ortho') -> R.Tensor((4, 6), "float32")
        R.fft.irfft2(R.Tensor((m, 3), "complex64"), axes=[0, 1], norm='forward') -> R.Tensor((m, 4), "float32")
        """

    @staticmethod
    def irfftn(x: _t.Any, s: _t.Any = None, axes: _t.Any = None, norm: _t.Any = 'backward') -> _t.Any:
        """Real numbers of halves of transforms, inverse transforms along all axes, or those that are named, the last one first.

        s has how many values are taken along each, norm what results are divided by, as R.fft.fft has them. Errors: ShapeError W202, W203, W205; DTypeError W321.

        R.fft.irfftn(R.Tensor((b, 4, 6), "complex64"), axes=[1, 2]) -> R.Tensor((b, 4, 10), "float32")
        R.fft.irfftn(R.Tensor((3, 5), "complex64"), s=[4, 6], axes=[0, 1], norm='ortho') -> R.Tensor((4, 6), "float32")
        R.fft.irfftn(R.Tensor((m, 3), "complex64"), axes=[0, 1], norm='forward') -> R.Tensor((m, 4), "float32")
        """

    @staticmethod
    def rfft(x: _t.Any, n: _t.Any = None, axis: _t.Any = -1, norm: _t.Any = 'backward') -> _t.Any:
        """The first half of the transform of real numbers, which says the rest: n values give n // 2 + 1.

        n values along the axis are taken, the first ones, or zeros added. norm backward divides the inverse by n, forward the other, ortho each by the root. Lengths that are known, at most 4096 and without large prime factors run everywhere, others where there is Python. Errors: ShapeError W202, W203, W205; DTypeError W321.

        R.fft.rfft(R.Tensor((b, 8), "float32")) -> R.Tensor((b, 5), "complex64")
        R.fft.rfft(R.Tensor((6, 3), "float64"), axis=0, norm='ortho') -> R.Tensor((4, 3), "complex128")
        R.fft.rfft(R.Tensor((2, m), "float32")) -> R.Tensor((2, m // 2 + 1), "complex64")
        R.fft.rfft(R.Tensor((2, 9), "float32"), n=6) -> R.Tensor((2, 4), "complex64")
        """

    @staticmethod
    def rfft2(x: _t.Any, s: _t.Any = None, axes: _t.Any = (-2, -1), norm: _t.Any = 'backward') -> _t.Any:
        """Fourier transforms of real numbers, half of the values of the last axis, along the last two axes, or those that are named, the last one first.

        s has how many values are taken along each, norm what results are divided by, as R.fft.fft has them. Errors: ShapeError W202, W203, W205; DTypeError W321.

        R.fft.rfft2(R.Tensor((b, 4, 6), "float32"), axes=[1, 2]) -> R.Tensor((b, 4, 4), "complex64")
        R.fft.rfft2(R.Tensor((3, 5), "float32"), s=[4, 6], axes=[0, 1], norm='ortho') -> R.Tensor((4, 4), "complex64")
        R.fft.rfft2(R.Tensor((m, 3), "float32"), axes=[0, 1], norm='forward') -> R.Tensor((m, 2), "complex64")
        """

    @staticmethod
    def rfftfreq(n: _t.Any, d: _t.Any = 1.0, dtype: _t.Any = 'float32') -> _t.Any:
        """The frequencies of the values of rfft of n values, d apart: k / (n d), up to the middle.

        R.fft.rfftfreq(8) -> R.Tensor((5,), "float32")
        R.fft.rfftfreq(7, 0.5, 'float64') -> R.Tensor((4,), "float64")
        R.fft.rfftfreq(n, 2.0) -> R.Tensor((n // 2 + 1,), "float32")
        """

    @staticmethod
    def rfftn(x: _t.Any, s: _t.Any = None, axes: _t.Any = None, norm: _t.Any = 'backward') -> _t.Any:
        """Fourier transforms of real numbers, half of the values of the last axis, along all axes, or those that are named, the last one first.

        s has how many values are taken along each, norm what results are divided by, as R.fft.fft has them. Errors: ShapeError W202, W203, W205; DTypeError W321.

        R.fft.rfftn(R.Tensor((b, 4, 6), "float32"), axes=[1, 2]) -> R.Tensor((b, 4, 4), "complex64")
        R.fft.rfftn(R.Tensor((3, 5), "float32"), s=[4, 6], axes=[0, 1], norm='ortho') -> R.Tensor((4, 4), "complex64")
        R.fft.rfftn(R.Tensor((m, 3), "float32"), axes=[0, 1], norm='forward') -> R.Tensor((m, 2), "complex64")
        """

class grad:
    """Operators `R.grad.*`."""

    @staticmethod
    def avg_pool2d_backward(output_grad: _t.Any, data: _t.Any, pool_size: _t.Any = (1, 1), strides: _t.Any = (1, 1), padding: _t.Any = (0, 0, 0, 0), dilation: _t.Any = (1, 1), ceil_mode: _t.Any = False, count_include_pad: _t.Any = False, layout: _t.Any = 'NCHW', out_layout: _t.Any = None) -> _t.Any:
        """The gradient of nn.avg_pool2d for data: each output's gradient in equal shares to the elements of its window.

        R.grad.avg_pool2d_backward(R.Tensor((1, 2, 3, 3), "float32"), R.Tensor((1, 2, 6, 7), "float32"), pool_size=(2, 2), strides=(2, 2)) -> R.Tensor((1, 2, 6, 7), "float32")
        R.grad.avg_pool2d_backward(R.Tensor((n, 1, 3, 2), "float32"), R.Tensor((n, 1, 5, 4), "float32"), pool_size=3, strides=2, padding=(1, 1), count_include_pad=True) -> R.Tensor((n, 1, 5, 4), "float32")
        R.grad.avg_pool2d_backward(R.Tensor((1, 4, 3, 2), "float32"), R.Tensor((1, 7, 6, 2), "float32"), pool_size=(2, 3), strides=2, ceil_mode=True, layout='NHWC') -> R.Tensor((1, 7, 6, 2), "float32")
        R.grad.avg_pool2d_backward(R.Tensor((1, 1, 5, 5), "float16"), R.Tensor((1, 1, 7, 7), "float16"), pool_size=3) -> R.Tensor((1, 1, 7, 7), "float16")
        """

    @staticmethod
    def end_checkpoint(input: _t.Any) -> _t.Any:
        """The value itself, where a part of the model ends whose values are computed again for the gradient.

        R.grad.end_checkpoint(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
        R.grad.end_checkpoint(R.Tensor((n,), "int32")) -> R.Tensor((n,), "int32")
        """

    @staticmethod
    def max_pool2d_backward(output_grad: _t.Any, data: _t.Any, pool_size: _t.Any = (1, 1), strides: _t.Any = (1, 1), padding: _t.Any = (0, 0, 0, 0), dilation: _t.Any = (1, 1), ceil_mode: _t.Any = False, count_include_pad: _t.Any = False, layout: _t.Any = 'NCHW', out_layout: _t.Any = None) -> _t.Any:
        """The gradient of nn.max_pool2d for data: each output's gradient goes to the greatest element of its window, the
        first of equal ones.

        R.grad.max_pool2d_backward(R.Tensor((1, 2, 3, 3), "float32"), R.Tensor((1, 2, 6, 7), "float32"), pool_size=(2, 2), strides=(2, 2)) -> R.Tensor((1, 2, 6, 7), "float32")
        R.grad.max_pool2d_backward(R.Tensor((n, 1, 3, 2), "float32"), R.Tensor((n, 1, 5, 4), "float32"), pool_size=3, strides=2, padding=(1, 1)) -> R.Tensor((n, 1, 5, 4), "float32")
        R.grad.max_pool2d_backward(R.Tensor((1, 4, 3, 2), "float32"), R.Tensor((1, 7, 6, 2), "float32"), pool_size=(2, 3), strides=2, ceil_mode=True, layout='NHWC') -> R.Tensor((1, 7, 6, 2), "float32")
        R.grad.max_pool2d_backward(R.Tensor((1, 1, 4, 4), "float32"), R.Tensor((1, 1, 6, 6), "float32"), pool_size=2, dilation=2) -> R.Tensor((1, 1, 6, 6), "float32")
        """

    @staticmethod
    def nll_loss_backward(output_grad: _t.Any, predictions: _t.Any, targets: _t.Any, weights: _t.Any = None, reduction: _t.Any = 'mean', ignore_index: _t.Any = -100) -> _t.Any:
        """The gradient of nn.nll_loss for predictions: minus the target's weight where the class is the target, else 0.

        output_grad has the shape of the targets for reduction "none", else it is a scalar.

        R.grad.nll_loss_backward(R.Tensor((), "float32"), R.Tensor((4, 5), "float32"), R.Tensor((4,), "int64")) -> R.Tensor((4, 5), "float32")
        R.grad.nll_loss_backward(R.Tensor((), "float32"), R.Tensor((n, 3), "float32"), R.Tensor((n,), "int64"), R.Tensor((3,), "float32"), reduction='sum') -> R.Tensor((n, 3), "float32")
        R.grad.nll_loss_backward(R.Tensor((n, m), "float32"), R.Tensor((n, 3, m), "float32"), R.Tensor((n, m), "int32"), reduction='none', ignore_index=1) -> R.Tensor((n, 3, m), "float32")
        R.grad.nll_loss_backward(R.Tensor((), "float32"), R.Tensor((5,), "float32"), R.Tensor((), "int64")) -> R.Tensor((5,), "float32")
        R.grad.nll_loss_backward(R.Tensor((), "float32"), R.Tensor((6, 3, 2), "float32"), R.Tensor((6, 2), "int64"), R.Tensor((3,), "float32"), ignore_index=0) -> R.Tensor((6, 3, 2), "float32")
        """

    @staticmethod
    def no_grad(input: _t.Any) -> _t.Any:
        """The value itself; no gradient flows through it.

        R.grad.no_grad(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
        R.grad.no_grad(R.Tensor((n,), "int32")) -> R.Tensor((n,), "int32")
        """

    @staticmethod
    def start_checkpoint(input: _t.Any) -> _t.Any:
        """The value itself, where a part of the model starts whose values are computed again for the gradient.

        R.grad.start_checkpoint(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
        R.grad.start_checkpoint(R.Tensor((n,), "int32")) -> R.Tensor((n,), "int32")
        """

    @staticmethod
    def take_backward(output_grad: _t.Any, x: _t.Any, indices: _t.Any, axis: _t.Any = None, mode: _t.Any = '') -> _t.Any:
        """The gradient of take for x: each element is the sum of the gradients of the places that it was taken to.

        Negative indices count from the end; one out of range is a BoundsError.

        R.grad.take_backward(R.Tensor((m, 4), "float32"), R.Tensor((5, 4), "float32"), R.Tensor((m,), "int64"), axis=0) -> R.Tensor((5, 4), "float32")
        R.grad.take_backward(R.Tensor((2, 3, 2, n), "float32"), R.Tensor((2, 6, n), "float32"), R.Tensor((3, 2), "int64"), axis=1) -> R.Tensor((2, 6, n), "float32")
        R.grad.take_backward(R.Tensor((7,), "float32"), R.Tensor((2, 3), "float32"), R.Tensor((7,), "int64")) -> R.Tensor((2, 3), "float32")
        R.grad.take_backward(R.Tensor((n,), "float32"), R.Tensor((2, n), "float32"), R.Tensor((n,), "int64")) -> R.Tensor((2, n), "float32")
        R.grad.take_backward(R.Tensor((2,), "float32"), R.Tensor((2, 3), "float32"), 1, axis=-1) -> R.Tensor((2, 3), "float32")
        """

class image:
    """Operators `R.image.*`."""

    @staticmethod
    def affine_grid(data: _t.Any, size: _t.Any, align_corners: _t.Any = True) -> _t.Any:
        """The grid of image.grid_sample that an affine map of each batch gives.

        data (n, 2, 3), size (y, x) -> (n, 2, y, x); three sizes for data (n, 3, 4).

        The first and the last position of an axis stand for -1 and 1 with align_corners; without, the outer edges of the
        first and the last element do. One size stands for all axes.

        R.image.affine_grid(R.Tensor((2, 2, 3), "float32"), (3, 4)) -> R.Tensor((2, 2, 3, 4), "float32")
        R.image.affine_grid(R.Tensor((n, 2, 3), "float32"), (h, 5), align_corners=False) -> R.Tensor((n, 2, h, 5), "float32")
        R.image.affine_grid(R.Tensor((1, 2, 3), "float32"), 1) -> R.Tensor((1, 2, 1, 1), "float32")
        R.image.affine_grid(R.Tensor((1, 3, 4), "float32"), (2, 3, 4)) -> R.Tensor((1, 3, 2, 3, 4), "float32")
        """

    @staticmethod
    def grid_sample(data: _t.Any, grid: _t.Any, method: _t.Any = 'bilinear', layout: _t.Any = 'NCHW', padding_mode: _t.Any = 'zeros', align_corners: _t.Any = False) -> _t.Any:
        """The image at positions that a grid gives: data (n, c, h, w), grid (n, 2, y, x) -> (n, c, y, x), or with a third
        axis and layout NCDHW; the result has the layout of data.

        The grid holds the position along w, then h (then d): -1 is the start and 1 the end of the axis, the middle of the
        outermost elements with align_corners, else their outer edges. Methods: nearest, bilinear, bicubic (two axes).
        padding_mode says what is outside: zeros, the border, or the image reflected.

        R.image.grid_sample(R.Tensor((1, 2, 4, 5), "float32"), R.Tensor((1, 2, 3, 3), "float32")) -> R.Tensor((1, 2, 3, 3), "float32")
        R.image.grid_sample(R.Tensor((n, 1, h, 4), "float32"), R.Tensor((n, 2, 2, w), "float32"), padding_mode='border', align_corners=True) -> R.Tensor((n, 1, 2, w), "float32")
        R.image.grid_sample(R.Tensor((1, 2, 4, 5), "float32"), R.Tensor((1, 2, 3, 2), "float32"), method='nearest', padding_mode='reflection') -> R.Tensor((1, 2, 3, 2), "float32")
        R.image.grid_sample(R.Tensor((1, 1, 4, 5), "float32"), R.Tensor((1, 2, 2, 2), "float32"), method='bicubic') -> R.Tensor((1, 1, 2, 2), "float32")
        R.image.grid_sample(R.Tensor((1, 1, 4, 5), "float32"), R.Tensor((1, 2, 2, 2), "float32"), method='bicubic', padding_mode='reflection', align_corners=True) -> R.Tensor((1, 1, 2, 2), "float32")
        R.image.grid_sample(R.Tensor((1, 2, 3, 4, 2), "float32"), R.Tensor((1, 3, 2, 2, 2), "float32"), layout='NCDHW', padding_mode='reflection') -> R.Tensor((1, 2, 2, 2, 2), "float32")
        R.image.grid_sample(R.Tensor((1, 2, 4, 5, 3), "float32"), R.Tensor((1, 2, 3, 2), "float32"), layout='NCHW3c') -> R.Tensor((1, 2, 3, 2, 3), "float32")
        """

    @staticmethod
    def resize2d(data: _t.Any, size: _t.Any, roi: _t.Any = None, layout: _t.Any = 'NCHW', method: _t.Any = 'linear', coordinate_transformation_mode: _t.Any = 'half_pixel', rounding_method: _t.Any = 'round', cubic_alpha: _t.Any = -0.75, cubic_exclude: _t.Any = 0, extrapolation_value: _t.Any = 0.0, out_dtype: _t.Any = None) -> _t.Any:
        """Images of 2 axes at another size (one number stands for all axes).

        Methods: nearest_neighbor, linear, cubic (cubic_alpha is its parameter; cubic_exclude leaves out what is
        outside). rounding_method says which neighbour is nearest: round (halves to even), round_prefer_floor,
        round_prefer_ceil, floor, ceil, or nothing for floor (round with align_corners). With tf_crop_and_resize,
        roi gives the starts and then the ends of a region as shares of the image, and what is outside the image is
        extrapolation_value. Dtype: out_dtype, by default that of data.

        R.image.resize2d(R.Tensor((1, 2, 4, 5), "float32"), (8, 3)) -> R.Tensor((1, 2, 8, 3), "float32")
        R.image.resize2d(R.Tensor((n, 3, h, 4), "float32"), (7, 6), coordinate_transformation_mode='align_corners') -> R.Tensor((n, 3, 7, 6), "float32")
        R.image.resize2d(R.Tensor((1, 4, 5, 2), "float32"), (9, 2), layout='NHWC', method='nearest_neighbor', rounding_method='floor', coordinate_transformation_mode='asymmetric') -> R.Tensor((1, 9, 2, 2), "float32")
        R.image.resize2d(R.Tensor((1, 1, 5, 6), "float32"), (4, 9), method='cubic') -> R.Tensor((1, 1, 4, 9), "float32")
        R.image.resize2d(R.Tensor((1, 1, 5, 6), "float32"), (10, 3), method='cubic', cubic_exclude=1, cubic_alpha=-0.5) -> R.Tensor((1, 1, 10, 3), "float32")
        R.image.resize2d(R.Tensor((1, 2, 5, 6), "float32"), (3, 4), roi=(0.1, -0.2, 0.9, 0.8), coordinate_transformation_mode='tf_crop_and_resize', extrapolation_value=3.0) -> R.Tensor((1, 2, 3, 4), "float32")
        R.image.resize2d(R.Tensor((1, 2, 4, 4), "uint8"), 6, method='nearest_neighbor', rounding_method='round_prefer_ceil') -> R.Tensor((1, 2, 6, 6), "uint8")
        R.image.resize2d(R.Tensor((1, 2, 4, 4), "float16"), (3, 1), coordinate_transformation_mode='pytorch_half_pixel', out_dtype='float32') -> R.Tensor((1, 2, 3, 1), "float32")
        R.image.resize2d(R.Tensor((1, 2, 3, 4), "float32"), (5, 7), method='nearest_neighbor', coordinate_transformation_mode='tf_half_pixel_for_nn', rounding_method='ceil') -> R.Tensor((1, 2, 5, 7), "float32")
        R.image.resize2d(R.Tensor((n, c, 3, 4, 4), "float32"), (5, 2), layout='NCHW4c') -> R.Tensor((n, c, 5, 2, 4), "float32")
        """

    @staticmethod
    def resize3d(data: _t.Any, size: _t.Any, roi: _t.Any = None, layout: _t.Any = 'NCDHW', method: _t.Any = 'linear', coordinate_transformation_mode: _t.Any = 'half_pixel', rounding_method: _t.Any = '', cubic_alpha: _t.Any = -0.75, cubic_exclude: _t.Any = 0, extrapolation_value: _t.Any = 0.0, out_dtype: _t.Any = None) -> _t.Any:
        """Images of 3 axes at another size (one number stands for all axes).

        Methods: nearest_neighbor, linear, cubic (cubic_alpha is its parameter; cubic_exclude leaves out what is
        outside). rounding_method says which neighbour is nearest: round (halves to even), round_prefer_floor,
        round_prefer_ceil, floor, ceil, or nothing for floor (round with align_corners). With tf_crop_and_resize,
        roi gives the starts and then the ends of a region as shares of the image, and what is outside the image is
        extrapolation_value. Dtype: out_dtype, by default that of data.

        R.image.resize3d(R.Tensor((1, 2, 3, 4, 5), "float32"), (6, 3, 4)) -> R.Tensor((1, 2, 6, 3, 4), "float32")
        R.image.resize3d(R.Tensor((n, 1, d, 3, 4), "float32"), (4, 5, 6), method='nearest_neighbor') -> R.Tensor((n, 1, 4, 5, 6), "float32")
        R.image.resize3d(R.Tensor((1, 4, 3, 5, 2), "float32"), (2, 6, 5), layout='NDHWC', method='cubic', coordinate_transformation_mode='align_corners') -> R.Tensor((1, 2, 6, 5, 2), "float32")
        """

class inspect:
    """Operators `R.inspect.*`."""

    @staticmethod
    def tensor_byte_offset(tensor: _t.Any) -> _t.Any:
        """Where a tensor starts in its memory, in bytes: 0."""

    @staticmethod
    def tensor_dtype_bits(tensor: _t.Any) -> _t.Any:
        """The bits of an element of a tensor; those of a truth value are a byte."""

    @staticmethod
    def tensor_dtype_code(tensor: _t.Any) -> _t.Any:
        """The kind of dtype of a tensor: 0 integers, 1 unsigned integers, 2 floats, 4 bfloat16, 6 bool."""

    @staticmethod
    def tensor_dtype_lanes(tensor: _t.Any) -> _t.Any:
        """How many values an element of a tensor holds: 1."""

    @staticmethod
    def tensor_elem_offset(tensor: _t.Any) -> _t.Any:
        """Where a tensor starts in its memory, in elements: 0."""

    @staticmethod
    def tensor_ndim(tensor: _t.Any) -> _t.Any:
        """The number of dimensions of a tensor."""

    @staticmethod
    def tensor_shape_i(tensor: _t.Any, axis: _t.Any) -> _t.Any:
        """The size of an axis of a tensor.

        Errors: ShapeError W203 an axis that is out of range or not known.
        """

    @staticmethod
    def tensor_stride_i(tensor: _t.Any, axis: _t.Any) -> _t.Any:
        """How many elements apart neighbours along an axis of a tensor are: the product of the sizes after it.

        Errors: ShapeError W203 an axis that is out of range or not known.
        """

class linalg:
    """Operators `R.linalg.*`."""

    @staticmethod
    def cholesky(x: _t.Any, upper: _t.Any = False) -> _t.Any:
        """The lower triangular L with x = L L^T of symmetric positive definite matrices, whose lower triangles are read.

        With upper it is L^T. Of Hermitian matrices L^T stands for its conjugate. Of up to 64 rows a kernel, else LAPACK.
        Errors: ShapeError W201, W202; DTypeError W321; ArgumentError at the call where one is not positive definite.

        R.linalg.cholesky(array([[4. , 1. , 0.5],
               [1. , 3. , 0.2],
               [0.5, 0.2, 2. ]], dtype=float32)) -> R.Tensor((3, 3), "float32")
        R.linalg.cholesky(array([[[4.        , 1.        , 0.5       ],
                [1.        , 3.        , 0.2       ],
                [0.5       , 0.2       , 2.        ]],

               [[8.        , 2.        , 1.        ],
                [2.        , 6.        , 0.40000001],
                [1.        , 0.40000001, 4.        ]]]), upper=True) -> R.Tensor((2, 3, 3), "float64")
        R.linalg.cholesky(R.Tensor((b, 1, 1), "float32")) -> R.Tensor((b, 1, 1), "float32")
        R.linalg.cholesky(array([[ 4. +0.j ,  1. -1.j ,  0. +0.5j],
               [ 1. +1.j ,  3. +0.j ,  0.2+0.j ],
               [-0. -0.5j,  0.2+0.j ,  2. +0.j ]])) -> R.Tensor((3, 3), "complex128")
        R.linalg.cholesky(array([[ 4. +0.j ,  1. -1.j ,  0. +0.5j],
               [ 1. +1.j ,  3. +0.j ,  0.2+0.j ],
               [-0. -0.5j,  0.2+0.j ,  2. +0.j ]], dtype=complex64), upper=True) -> R.Tensor((3, 3), "complex64")
        """

    @staticmethod
    def det(x: _t.Any) -> _t.Any:
        """The determinants of square matrices: products of the diagonal of U.

        R.linalg.det(array([[0. , 2. , 1. ],
               [1. , 0.5, 0. ],
               [3. , 1. , 2. ]], dtype=float32)) -> R.Tensor((), "float32")
        R.linalg.det(R.Tensor((b, 2, 2), "float32")) -> R.Tensor((b,), "float32")
        R.linalg.det(R.Tensor((2, 4, 4), "float64")) -> R.Tensor((2,), "float64")
        R.linalg.det(R.Tensor((b, 3, 3), "complex128")) -> R.Tensor((b,), "complex128")
        """

    @staticmethod
    def eigh(x: _t.Any) -> _t.Any:
        """The eigenvalues, ascending, and the eigenvectors (columns) of symmetric matrices, whose lower triangles are read.

        (..., n, n) -> (..., n), (..., n, n). Complex ones are Hermitian: their eigenvalues are floats. Errors: ShapeError
        W201, W202; DTypeError W321.

        R.linalg.eigh(array([[2. , 0.5, 0.1],
               [0.5, 1. , 0.3],
               [0.1, 0.3, 4. ]], dtype=float32)) -> R.Tuple(R.Tensor((3,), "float32"), R.Tensor((3, 3), "float32"))
        R.linalg.eigh(R.Tensor((b, 1, 1), "float64")) -> R.Tuple(R.Tensor((b, 1), "float64"), R.Tensor((b, 1, 1), "float64"))
        R.linalg.eigh(array([[2. +0.j, 0.5-1.j],
               [0.5+1.j, 4. +0.j]])) -> R.Tuple(R.Tensor((2,), "float64"), R.Tensor((2, 2), "complex128"))
        """

    @staticmethod
    def inv(x: _t.Any) -> _t.Any:
        """The inverses of square matrices; an ArgumentError at the call for a singular one.

        R.linalg.inv(array([[0. , 2. , 1. ],
               [1. , 0.5, 0. ],
               [3. , 1. , 2. ]], dtype=float32)) -> R.Tensor((3, 3), "float32")
        R.linalg.inv(array([[[0. , 2. , 1. ],
                [1. , 0.5, 0. ],
                [3. , 1. , 2. ]],

               [[0. , 1. , 3. ],
                [2. , 0.5, 1. ],
                [1. , 0. , 2. ]]])) -> R.Tensor((2, 3, 3), "float64")
        R.linalg.inv(R.Tensor((b, 1, 1), "float32")) -> R.Tensor((b, 1, 1), "float32")
        R.linalg.inv(array([[0. +0.j, 0. +2.j, 1. +0.j],
               [1. -1.j, 0.5+0.j, 0. +0.j],
               [3. +0.j, 1. +0.j, 2. +1.j]], dtype=complex64)) -> R.Tensor((3, 3), "complex64")
        """

    @staticmethod
    def lstsq(a: _t.Any, b: _t.Any) -> _t.Any:
        """The x with the least |a x - b|, the shortest of several: (..., m, n), (..., m, k) -> (..., n, k).

        R.linalg.lstsq(R.Tensor((4, 2), "float32"), R.Tensor((4, m), "float32")) -> R.Tensor((2, m), "float32")
        R.linalg.lstsq(R.Tensor((2, 2, 3), "float64"), R.Tensor((2, 2, 1), "float64")) -> R.Tensor((2, 3, 1), "float64")
        R.linalg.lstsq(R.Tensor((3, 2), "complex128"), R.Tensor((3, 1), "complex128")) -> R.Tensor((2, 1), "complex128")
        """

    @staticmethod
    def lu_factor(x: _t.Any) -> _t.Any:
        """L and U of matrices with their rows exchanged, in one matrix, and the exchanges: (..., m, n), (..., min(m, n)).

        Below the diagonal stands L, whose diagonal is ones, on and above it U. Row i was exchanged with row pivots[i] - 1
        (int32, as LAPACK has them). A singular matrix has a zero on the diagonal. Errors: ShapeError W202; DTypeError W321.

        R.linalg.lu_factor(R.Tensor((3, 3), "float32")) -> R.Tuple(R.Tensor((3, 3), "float32"), R.Tensor((3,), "int32"))
        R.linalg.lu_factor(R.Tensor((2, 3, 4), "float64")) -> R.Tuple(R.Tensor((2, 3, 4), "float64"), R.Tensor((2, 3), "int32"))
        R.linalg.lu_factor(R.Tensor((n, 3), "float32")) -> R.Tuple(R.Tensor((n, 3), "float32"), R.Tensor((min(n, 3),), "int32"))
        R.linalg.lu_factor(R.Tensor((n, n), "float32")) -> R.Tuple(R.Tensor((n, n), "float32"), R.Tensor((n,), "int32"))
        R.linalg.lu_factor(R.Tensor((n, 3), "complex128")) -> R.Tuple(R.Tensor((n, 3), "complex128"), R.Tensor((min(n, 3),), "int32"))
        """

    @staticmethod
    def matrix_norm(x: _t.Any, ord: _t.Any = 'fro', axes: _t.Any = (-2, -1), keepdims: _t.Any = False) -> _t.Any:
        """A norm of matrices along two axes: fro the root of the sum of squares; 1 and inf the greatest sum of sizes of a
            column and of a row, -1 and -inf the least; nuc the sum of the singular values, 2 and -2 the greatest and the least.

        R.linalg.matrix_norm(R.Tensor((2, 3), "float32")) -> R.Tensor((), "float32")
        R.linalg.matrix_norm(R.Tensor((n, 3, 2), "float32"), '1') -> R.Tensor((n,), "float32")
        R.linalg.matrix_norm(R.Tensor((3, 2), "float32"), '-inf', keepdims=True) -> R.Tensor((1, 1), "float32")
        R.linalg.matrix_norm(R.Tensor((2, n, 3), "float32"), 'inf', axes=[0, 2]) -> R.Tensor((n,), "float32")
        R.linalg.matrix_norm(R.Tensor((3, 3), "float64"), 'nuc') -> R.Tensor((), "float64")
        R.linalg.matrix_norm(R.Tensor((4, 3), "float32"), '2') -> R.Tensor((), "float32")
        R.linalg.matrix_norm(R.Tensor((n, 3), "complex64")) -> R.Tensor((), "float32")
        R.linalg.matrix_norm(R.Tensor((3, 2), "complex128"), 'nuc') -> R.Tensor((), "float64")
        R.linalg.matrix_norm(R.Tensor((3, 2), "complex64"), '1') -> R.Tensor((), "float32")
        """

    @staticmethod
    def matrix_power(x: _t.Any, n: _t.Any) -> _t.Any:
        """The n-th power of square matrices, by squares; of the inverses for n below 0.

        R.linalg.matrix_power(R.Tensor((3, 3), "float32"), 5) -> R.Tensor((3, 3), "float32")
        R.linalg.matrix_power(R.Tensor((b, 2, 2), "float32"), 0) -> R.Tensor((b, 2, 2), "float32")
        R.linalg.matrix_power(array([[0. , 2. , 1. ],
               [1. , 0.5, 0. ],
               [3. , 1. , 2. ]], dtype=float32), -2) -> R.Tensor((3, 3), "float32")
        R.linalg.matrix_power(array([[0. +0.j, 0. +2.j, 1. +0.j],
               [1. -1.j, 0.5+0.j, 0. +0.j],
               [3. +0.j, 1. +0.j, 2. +1.j]], dtype=complex64), -1) -> R.Tensor((3, 3), "complex64")
        """

    @staticmethod
    def pinv(x: _t.Any, rcond: _t.Any = None) -> _t.Any:
        """The inverses of Moore and Penrose: (..., m, n) -> (..., n, m).

        Singular values up to rcond times the greatest count as 0; by default the precision of the dtype times max(m, n).

        R.linalg.pinv(R.Tensor((4, 2), "float32")) -> R.Tensor((2, 4), "float32")
        R.linalg.pinv(R.Tensor((b, 2, 3), "float64"), rcond=1e-06) -> R.Tensor((b, 3, 2), "float64")
        R.linalg.pinv(R.Tensor((3, 2), "complex64")) -> R.Tensor((2, 3), "complex64")
        """

    @staticmethod
    def qr(x: _t.Any, mode: _t.Any = 'reduced') -> _t.Any:
        """q with orthonormal columns and the upper triangular r of x = q r: (..., m, n) -> (..., m, k), (..., k, n).

        k is min(m, n), or m for the mode complete. Errors: ShapeError W202, W205; DTypeError W321.

        R.linalg.qr(R.Tensor((4, 2), "float32")) -> R.Tuple(R.Tensor((4, 2), "float32"), R.Tensor((2, 2), "float32"))
        R.linalg.qr(R.Tensor((b, 3, 5), "float64")) -> R.Tuple(R.Tensor((b, 3, 3), "float64"), R.Tensor((b, 3, 5), "float64"))
        R.linalg.qr(R.Tensor((4, 2), "float32"), 'complete') -> R.Tuple(R.Tensor((4, 4), "float32"), R.Tensor((4, 2), "float32"))
        R.linalg.qr(R.Tensor((3, 2), "complex64")) -> R.Tuple(R.Tensor((3, 2), "complex64"), R.Tensor((2, 2), "complex64"))
        """

    @staticmethod
    def slogdet(x: _t.Any) -> _t.Any:
        """The signs and the logarithms of the sizes of determinants; 0 and -inf of singular matrices.

            The sign of a complex number is the number over its size, and the logarithm is a float.

        R.linalg.slogdet(array([[0. , 2. , 1. ],
               [1. , 0.5, 0. ],
               [3. , 1. , 2. ]], dtype=float32)) -> R.Tuple(R.Tensor((), "float32"), R.Tensor((), "float32"))
        R.linalg.slogdet(R.Tensor((b, 3, 3), "float64")) -> R.Tuple(R.Tensor((b,), "float64"), R.Tensor((b,), "float64"))
        R.linalg.slogdet(array([[0. +0.j, 0. +2.j, 1. +0.j],
               [1. -1.j, 0.5+0.j, 0. +0.j],
               [3. +0.j, 1. +0.j, 2. +1.j]], dtype=complex64)) -> R.Tuple(R.Tensor((), "complex64"), R.Tensor((), "float32"))
        """

    @staticmethod
    def solve(a: _t.Any, b: _t.Any) -> _t.Any:
        """x of a x = b: (..., n, n), (..., n, m) -> (..., n, m), or a vector b of one matrix.

        Of up to 64 rows a kernel, by elimination with exchanges of rows, else LAPACK. Errors: ShapeError W201, W202;
        DTypeError W320, W321; ArgumentError at the call for a singular matrix.

        R.linalg.solve(array([[0. , 2. , 1. ],
               [1. , 0.5, 0. ],
               [3. , 1. , 2. ]], dtype=float32), R.Tensor((3, m), "float32")) -> R.Tensor((3, m), "float32")
        R.linalg.solve(array([[0. , 2. , 1. ],
               [1. , 0.5, 0. ],
               [3. , 1. , 2. ]], dtype=float32), R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32")
        R.linalg.solve(array([[[0. , 2. , 1. ],
                [1. , 0.5, 0. ],
                [3. , 1. , 2. ]],

               [[0. , 1. , 3. ],
                [2. , 0.5, 1. ],
                [1. , 0. , 2. ]]]), R.Tensor((2, 3, 1), "float64")) -> R.Tensor((2, 3, 1), "float64")
        R.linalg.solve(array([[0. +0.j, 0. +2.j, 1. +0.j],
               [1. -1.j, 0.5+0.j, 0. +0.j],
               [3. +0.j, 1. +0.j, 2. +1.j]], dtype=complex64), R.Tensor((3, m), "complex64")) -> R.Tensor((3, m), "complex64")
        """

    @staticmethod
    def svd(x: _t.Any, full_matrices: _t.Any = True) -> _t.Any:
        """u, the singular values in descending order, and v^T of x = u diag(s) v^T: (..., m, n) -> (..., m, m), (..., k),
        (..., n, n).

        k is min(m, n); without full_matrices u has k columns and v^T k rows. Of complex numbers v^T is the conjugate, too,
        and singular values are floats. Errors: ShapeError W202; DTypeError W321.

        R.linalg.svd(R.Tensor((3, 2), "float32")) -> R.Tuple(R.Tensor((3, 3), "float32"), R.Tensor((2,), "float32"), R.Tensor((2, 2), "float32"))
        R.linalg.svd(R.Tensor((b, 2, 4), "float64"), full_matrices=False) -> R.Tuple(R.Tensor((b, 2, 2), "float64"), R.Tensor((b, 2), "float64"), R.Tensor((b, 2, 4), "float64"))
        R.linalg.svd(R.Tensor((2, 3), "complex64")) -> R.Tuple(R.Tensor((2, 2), "complex64"), R.Tensor((2,), "float32"), R.Tensor((3, 3), "complex64"))
        """

    @staticmethod
    def triangular_solve(a: _t.Any, b: _t.Any, upper: _t.Any = False, transpose: _t.Any = False, unit_diagonal: _t.Any = False) -> _t.Any:
        """x of a x = b, a lower (or upper) triangular: (..., n, n), (..., n, m) -> (..., n, m).

        The other triangle is not read, and with unit_diagonal neither is the diagonal, which counts as ones. With transpose
        a^T x = b. A zero on the diagonal gives infinities. Errors: ShapeError W201, W202; DTypeError W320, W321.

        R.linalg.triangular_solve(R.Tensor((3, 3), "float32"), R.Tensor((3, 2), "float32")) -> R.Tensor((3, 2), "float32")
        R.linalg.triangular_solve(R.Tensor((2, 3, 3), "float64"), R.Tensor((2, 3, m), "float64"), upper=True) -> R.Tensor((2, 3, m), "float64")
        R.linalg.triangular_solve(R.Tensor((n, n), "float32"), R.Tensor((n, 2), "float32"), unit_diagonal=True, transpose=True) -> R.Tensor((n, 2), "float32")
        R.linalg.triangular_solve(array([[2. +0.j, 1. -1.j, 3. +0.j],
               [0. +2.j, 2.5+0.j, 1. +0.j],
               [1. +0.j, 0. +0.j, 4. +1.j]], dtype=complex64), R.Tensor((3, 2), "complex64"), transpose=True) -> R.Tensor((3, 2), "complex64")
        """

    @staticmethod
    def vector_norm(x: _t.Any, ord: _t.Any = 2.0, axis: _t.Any = None, keepdims: _t.Any = False) -> _t.Any:
        """(sum |x|**ord)**(1 / ord) over the axes (all of them for None); inf and -inf give the greatest and the least |x|,
            0 the number of elements that are not 0.

        R.linalg.vector_norm(R.Tensor((2, 3), "float32")) -> R.Tensor((), "float32")
        R.linalg.vector_norm(R.Tensor((n, 4), "float32"), 1.0, axis=[1]) -> R.Tensor((n,), "float32")
        R.linalg.vector_norm(R.Tensor((2, 4), "float32"), 3.0, axis=[0], keepdims=True) -> R.Tensor((1, 4), "float32")
        R.linalg.vector_norm(R.Tensor((3, m), "float32"), inf, axis=[0]) -> R.Tensor((m,), "float32")
        R.linalg.vector_norm(R.Tensor((2, 3), "float64"), 0.0, axis=[-1]) -> R.Tensor((2,), "float64")
        R.linalg.vector_norm(R.Tensor((n, 3), "complex64"), axis=[1]) -> R.Tensor((n,), "float32")
        R.linalg.vector_norm(R.Tensor((2, 3), "complex128"), 3.0) -> R.Tensor((), "float64")
        R.linalg.vector_norm(R.Tensor((4,), "complex64"), 0.0) -> R.Tensor((), "float32")
        """

class memory:
    """Operators `R.memory.*`."""

    @staticmethod
    def alloc_storage(size: _t.Any, virtual_device_index: _t.Any = 0, storage_scope: _t.Any = 'global', dtype: _t.Any = 'uint8') -> _t.Any:
        """A block of memory of so many elements, that tensors are placed in."""

    @staticmethod
    def alloc_tensor(storage: _t.Any, offset: _t.Any, shape: _t.Any, dtype: _t.Any, runtime_device_ind: _t.Any = 0) -> _t.Any:
        """A tensor at an offset in a block of memory; its contents are undefined until a kernel writes them."""

    @staticmethod
    def ensure_zero_offset(data: _t.Any) -> _t.Any:
        """The tensor, copied if it does not start where its memory starts."""

    @staticmethod
    def kill_storage(storage: _t.Any) -> _t.Any:
        """The block of memory is not used after this."""

    @staticmethod
    def kill_tensor(tensor: _t.Any) -> _t.Any:
        """The tensor is not used after this."""

    @staticmethod
    def view(data: _t.Any, shape: _t.Any = None, dtype: _t.Any = None, relative_byte_offset: _t.Any = None) -> _t.Any:
        """The memory of a tensor seen with another shape, dtype or start."""

class nn:
    """Operators `R.nn.*`."""

    @staticmethod
    def adaptive_avg_pool1d(data: _t.Any, output_size: _t.Any = None, layout: _t.Any = 'NCW', out_layout: _t.Any = None) -> _t.Any:
        """The means of output_size nearly equal parts of data (of the elements themselves for None) along one axis.

        R.nn.adaptive_avg_pool1d(R.Tensor((2, 3, 7), "float32"), output_size=3) -> R.Tensor((2, 3, 3), "float32")
        R.nn.adaptive_avg_pool1d(R.Tensor((n, 2, w), "float32"), output_size=[2]) -> R.Tensor((n, 2, 2), "float32")
        """

    @staticmethod
    def adaptive_avg_pool2d(data: _t.Any, output_size: _t.Any = None, layout: _t.Any = 'NCHW', out_layout: _t.Any = None) -> _t.Any:
        """The means of output_size nearly equal parts of data (of the elements themselves for None) along two axes.

        R.nn.adaptive_avg_pool2d(R.Tensor((1, 2, 6, 4), "float32"), output_size=[3, 2]) -> R.Tensor((1, 2, 3, 2), "float32")
        R.nn.adaptive_avg_pool2d(R.Tensor((n, h, 5, 3), "float32"), output_size=[2, 3], layout='NHWC') -> R.Tensor((n, 2, 3, 3), "float32")
        R.nn.adaptive_avg_pool2d(R.Tensor((n, 2, h, w), "float32"), output_size=1) -> R.Tensor((n, 2, 1, 1), "float32")
        R.nn.adaptive_avg_pool2d(R.Tensor((1, 2, 3, w), "float32")) -> R.Tensor((1, 2, 3, w), "float32")
        R.nn.adaptive_avg_pool2d(R.Tensor((1, 1, 12, 12), "float16"), output_size=1) -> R.Tensor((1, 1, 1, 1), "float16")
        R.nn.adaptive_avg_pool2d(R.Tensor((1, 1, 5, 7), "int32"), output_size=2) -> R.Tensor((1, 1, 2, 2), "int32")
        R.nn.adaptive_avg_pool2d(R.Tensor((1, 2, 6, 4, 4), "float32"), output_size=[3, 2], layout='NCHW4c', out_layout='NCHW8c') -> R.Tensor((1, 1, 3, 2, 8), "float32")
        """

    @staticmethod
    def adaptive_avg_pool3d(data: _t.Any, output_size: _t.Any = None, layout: _t.Any = 'NCDHW', out_layout: _t.Any = None) -> _t.Any:
        """The means of output_size nearly equal parts of data (of the elements themselves for None) along three axes.

        R.nn.adaptive_avg_pool3d(R.Tensor((n, 2, 3, 4, 5), "float32"), output_size=[2, 4, 1]) -> R.Tensor((n, 2, 2, 4, 1), "float32")
        """

    @staticmethod
    def attention(query: _t.Any, key: _t.Any, value: _t.Any, bias: _t.Any = None, scale: _t.Any = None, causal_mask: _t.Any = None, window_size: _t.Any = None, safe_softmax: _t.Any = True, masked_bias: _t.Any = None) -> _t.Any:
        """softmax(query key^T * scale + bias) value, for each batch and head; scale is 1 / sqrt(h) by default.

        query (b, s, n, h), key (b, t, m, h), value (b, t, m, v), bias with sizes 1 or (b, n, s, t) -> (b, s, n, v). Where
        n is a multiple of m, n / m neighbouring heads of the query share one of key and value. A causal mask lets query i
        see the keys up to i ("TopLeft"), or up to i + t - s ("BottomRight"); with window_size only that many of the last of
        them. Scores that the mask hides are -inf; with masked_bias that is added to them instead. A query that sees no key
        (whose scores are all -inf) gives zeros; nan with safe_softmax=False, as softmax(scores) value does where it is
        written out.

        R.nn.attention(R.Tensor((2, 3, 2, 4), "float32"), R.Tensor((2, 5, 2, 4), "float32"), R.Tensor((2, 5, 2, 3), "float32")) -> R.Tensor((2, 3, 2, 3), "float32")
        R.nn.attention(R.Tensor((b, s, 2, 4), "float32"), R.Tensor((b, t, 2, 4), "float32"), R.Tensor((b, t, 2, 4), "float32"), scale=0.5, causal_mask='TopLeft') -> R.Tensor((b, s, 2, 4), "float32")
        R.nn.attention(R.Tensor((1, s, 2, 4), "float32"), R.Tensor((1, t, 2, 4), "float32"), R.Tensor((1, t, 2, 4), "float32"), causal_mask='BottomRight') -> R.Tensor((1, s, 2, 4), "float32")
        R.nn.attention(R.Tensor((1, 5, 1, 4), "float32"), R.Tensor((1, 6, 1, 4), "float32"), R.Tensor((1, 6, 1, 4), "float32"), causal_mask='BottomRight', window_size=2) -> R.Tensor((1, 5, 1, 4), "float32")
        R.nn.attention(R.Tensor((1, 4, 1, 8), "float16"), R.Tensor((1, 4, 1, 8), "float16"), R.Tensor((1, 4, 1, 8), "float16")) -> R.Tensor((1, 4, 1, 8), "float16")
        R.nn.attention(R.Tensor((1, s, 6, 4), "float32"), R.Tensor((1, t, 2, 4), "float32"), R.Tensor((1, t, 2, 4), "float32"), causal_mask='BottomRight') -> R.Tensor((1, s, 6, 4), "float32")
        R.nn.attention(R.Tensor((1, s, 2, 4), "float32"), R.Tensor((1, t, 2, 4), "float32"), R.Tensor((1, t, 2, 4), "float32"), safe_softmax=False) -> R.Tensor((1, s, 2, 4), "float32")
        R.nn.attention(R.Tensor((1, s, 2, 4), "float32"), R.Tensor((1, t, 2, 4), "float32"), R.Tensor((1, t, 2, 4), "float32"), causal_mask='BottomRight', masked_bias=-1e+30) -> R.Tensor((1, s, 2, 4), "float32")
        R.nn.attention(R.Tensor((2, 3, 2, 4), "float32"), R.Tensor((2, 5, 2, 4), "float32"), R.Tensor((2, 5, 2, 4), "float32"), R.Tensor((2, 1, 3, 5), "float32")) -> R.Tensor((2, 3, 2, 4), "float32")
        """

    @staticmethod
    def attention_bias(query: _t.Any, key: _t.Any, value: _t.Any, bias: _t.Any, scale: _t.Any = None, causal_mask: _t.Any = None, window_size: _t.Any = None, safe_softmax: _t.Any = True, masked_bias: _t.Any = None) -> _t.Any:
        """Attention with a bias that is always given; see nn.attention.

        R.nn.attention_bias(R.Tensor((2, 3, 2, 4), "float32"), R.Tensor((2, 5, 2, 4), "float32"), R.Tensor((2, 5, 2, 4), "float32"), R.Tensor((2, 2, 3, 5), "float32")) -> R.Tensor((2, 3, 2, 4), "float32")
        R.nn.attention_bias(R.Tensor((b, s, 2, 4), "float32"), R.Tensor((b, t, 2, 4), "float32"), R.Tensor((b, t, 2, 4), "float32"), R.Tensor((1, 1, s, t), "float32"), scale=1.0) -> R.Tensor((b, s, 2, 4), "float32")
        """

    @staticmethod
    def attention_var_len(queries: _t.Any, keys: _t.Any, values: _t.Any, seqstart_q: _t.Any, max_seqlen_q: _t.Any, seqstart_k: _t.Any = None, max_seqlen_k: _t.Any = None, scale: _t.Any = None, causal_mask: _t.Any = None, window_size: _t.Any = None) -> _t.Any:
        """Attention within each of several sequences that lie one after the other: see nn.attention.

        queries (1, s, n, h), keys (1, t, n, h), values (1, t, n, v) -> (1, s, n, v). Sequence i of the queries is the rows
        from seqstart_q[i] up to seqstart_q[i + 1]; without seqstart_k the keys are cut alike.
        """

    @staticmethod
    def avg_pool1d(data: _t.Any, pool_size: _t.Any = (1,), strides: _t.Any = (1,), padding: _t.Any = (0,), dilation: _t.Any = (1,), ceil_mode: _t.Any = False, count_include_pad: _t.Any = True, layout: _t.Any = 'NCW', out_layout: _t.Any = None) -> _t.Any:
        """The mean of each window that slides over one axis. Padding counts as zeros when count_include_pad is true, else not at all.

        R.nn.avg_pool1d(R.Tensor((2, 3, 8), "float32"), pool_size=3, strides=2, padding=1) -> R.Tensor((2, 3, 4), "float32")
        R.nn.avg_pool1d(R.Tensor((n, 2, 7), "float32"), pool_size=3, strides=3, padding=[1, 0], ceil_mode=True, count_include_pad=False) -> R.Tensor((n, 2, 3), "float32")
        """

    @staticmethod
    def avg_pool2d(data: _t.Any, pool_size: _t.Any = (1, 1), strides: _t.Any = (1, 1), padding: _t.Any = (0, 0), dilation: _t.Any = (1, 1), ceil_mode: _t.Any = False, count_include_pad: _t.Any = False, layout: _t.Any = 'NCHW', out_layout: _t.Any = None) -> _t.Any:
        """The mean of each window that slides over two axes. Padding counts as zeros when count_include_pad is true, else not at all.

        R.nn.avg_pool2d(R.Tensor((1, 2, 6, 7), "float32"), pool_size=[2, 2], strides=[2, 2]) -> R.Tensor((1, 2, 3, 3), "float32")
        R.nn.avg_pool2d(R.Tensor((n, 3, h, 5), "float32"), pool_size=3, strides=[1, 2], padding=[1, 1], count_include_pad=True) -> R.Tensor((n, 3, h, 3), "float32")
        R.nn.avg_pool2d(R.Tensor((1, 7, 7, 2), "float32"), pool_size=[2, 3], strides=3, dilation=[2, 1], padding=1, ceil_mode=True, layout='NHWC') -> R.Tensor((1, 3, 3, 2), "float32")
        R.nn.avg_pool2d(R.Tensor((1, 1, 6, 6), "float32"), pool_size=3, strides=2, ceil_mode=True, count_include_pad=True, padding=1) -> R.Tensor((1, 1, 4, 4), "float32")
        R.nn.avg_pool2d(R.Tensor((1, 1, 9, 9), "float16"), pool_size=9) -> R.Tensor((1, 1, 1, 1), "float16")
        R.nn.avg_pool2d(R.Tensor((1, 2, 5, 5), "int8"), pool_size=3, padding=1) -> R.Tensor((1, 2, 5, 5), "int8")
        R.nn.avg_pool2d(R.Tensor((n, c, 6, 6, 4), "float32"), pool_size=3, strides=2, padding=1, layout='NCHW4c', out_layout='NHWC') -> R.Tensor((n, 3, 3, 4 * c), "float32")
        """

    @staticmethod
    def avg_pool3d(data: _t.Any, pool_size: _t.Any = (1, 1, 1), strides: _t.Any = (1, 1, 1), padding: _t.Any = (0, 0, 0), dilation: _t.Any = (1, 1, 1), ceil_mode: _t.Any = False, count_include_pad: _t.Any = True, layout: _t.Any = 'NCDHW', out_layout: _t.Any = None) -> _t.Any:
        """The mean of each window that slides over three axes. Padding counts as zeros when count_include_pad is true, else not at all.

        R.nn.avg_pool3d(R.Tensor((n, 2, 4, 5, 3), "float32"), pool_size=[2, 3, 1], strides=[2, 1, 1], padding=[1, 1, 0]) -> R.Tensor((n, 2, 3, 5, 3), "float32")
        """

    @staticmethod
    def batch_flatten(data: _t.Any) -> _t.Any:
        """The tensor as a matrix: the first axis stays, the others become one. ShapeError W202: fewer than two axes.

        R.nn.batch_flatten(R.Tensor((2, 3, 4), "float32")) -> R.Tensor((2, 12), "float32")
        R.nn.batch_flatten(R.Tensor((n, 3, m), "float32")) -> R.Tensor((n, 3 * m), "float32")
        R.nn.batch_flatten(R.Tensor((n, 3), "float32")) -> R.Tensor((n, 3), "float32")
        """

    @staticmethod
    def batch_norm(data: _t.Any, gamma: _t.Any, beta: _t.Any, moving_mean: _t.Any, moving_var: _t.Any, axis: _t.Any, epsilon: _t.Any = 1e-05, center: _t.Any = True, scale: _t.Any = True, momentum: _t.Any = 0.1, training: _t.Any = True) -> _t.Any:
        """A triple: data normalised for each index along an axis, and the running mean and variance.

        With training the statistics are those of data, and the running ones move towards them by momentum; without it the
        running ones are used and stay. gamma (if scale) and beta (if center) have the size of the axis.

        R.nn.batch_norm(R.Tensor((2, 3, 4), "float32"), R.Tensor((3,), "float32"), R.Tensor((3,), "float32"), R.Tensor((3,), "float32"), R.Tensor((3,), "float32"), axis=1) -> R.Tuple(R.Tensor((2, 3, 4), "float32"), R.Tensor((3,), "float32"), R.Tensor((3,), "float32"))
        R.nn.batch_norm(R.Tensor((4, c), "float32"), R.Tensor((c,), "float32"), R.Tensor((c,), "float32"), R.Tensor((c,), "float32"), R.Tensor((c,), "float32"), axis=-1, training=False) -> R.Tuple(R.Tensor((4, c), "float32"), R.Tensor((c,), "float32"), R.Tensor((c,), "float32"))
        R.nn.batch_norm(R.Tensor((3, 2), "float32"), R.Tensor((2,), "float32"), R.Tensor((2,), "float32"), R.Tensor((2,), "float32"), R.Tensor((2,), "float32"), axis=1, momentum=0.3, center=False) -> R.Tuple(R.Tensor((3, 2), "float32"), R.Tensor((2,), "float32"), R.Tensor((2,), "float32"))
        """

    @staticmethod
    def celu(data: _t.Any, alpha: _t.Any = 1.0) -> _t.Any:
        """data where it is positive, else alpha * (exp(data / alpha) - 1).

        R.nn.celu(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
        R.nn.celu(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
        R.nn.celu(R.Tensor((5,), "float64")) -> R.Tensor((5,), "float64")
        """

    @staticmethod
    def conv1d(data: _t.Any, weight: _t.Any, strides: _t.Any = (1,), padding: _t.Any = (0,), dilation: _t.Any = (1,), groups: _t.Any = 1, data_layout: _t.Any = 'NCW', kernel_layout: _t.Any = 'OIW', out_layout: _t.Any = None, out_dtype: _t.Any = None) -> _t.Any:
        """The convolution over one axis: sums of products of windows of data with a kernel, by groups of channels.

        R.nn.conv1d(R.Tensor((2, 3, 9), "float32"), R.Tensor((4, 3, 3), "float32")) -> R.Tensor((2, 4, 7), "float32")
        R.nn.conv1d(R.Tensor((n, 4, w), "float32"), R.Tensor((2, 2, 1), "float32"), groups=2) -> R.Tensor((n, 2, w), "float32")
        R.nn.conv1d(R.Tensor((n, 8, 3), "float32"), R.Tensor((3, 3, 2), "float32"), strides=2, padding=1, data_layout='NWC', kernel_layout='WIO') -> R.Tensor((n, 4, 2), "float32")
        R.nn.conv1d(R.Tensor((1, 2, 9), "float32"), R.Tensor((2, 2, 3), "float32"), dilation=2, padding=[1, 2], out_layout='NWC') -> R.Tensor((1, 8, 2), "float32")
        """

    @staticmethod
    def conv1d_transpose(data: _t.Any, weight: _t.Any, strides: _t.Any = (1,), padding: _t.Any = (0,), output_padding: _t.Any = (0,), dilation: _t.Any = (1,), groups: _t.Any = 1, data_layout: _t.Any = 'NCW', kernel_layout: _t.Any = 'IOW', out_layout: _t.Any = None, out_dtype: _t.Any = None) -> _t.Any:
        """The transposed convolution over one axis: every element of data adds its multiple of the kernel to the result.

        R.nn.conv1d_transpose(R.Tensor((2, 3, 5), "float32"), R.Tensor((3, 4, 3), "float32")) -> R.Tensor((2, 4, 7), "float32")
        R.nn.conv1d_transpose(R.Tensor((n, 2, w), "float32"), R.Tensor((2, 2, 3), "float32"), strides=2, padding=1, output_padding=1) -> R.Tensor((n, 2, 2 * w), "float32")
        R.nn.conv1d_transpose(R.Tensor((1, 5, 4), "float32"), R.Tensor((4, 2, 3), "float32"), groups=2, dilation=2, data_layout='NWC') -> R.Tensor((1, 9, 4), "float32")
        """

    @staticmethod
    def conv2d(data: _t.Any, weight: _t.Any, strides: _t.Any = (1, 1), padding: _t.Any = (0, 0), dilation: _t.Any = (1, 1), groups: _t.Any = 1, data_layout: _t.Any = 'NCHW', kernel_layout: _t.Any = 'OIHW', out_layout: _t.Any = None, out_dtype: _t.Any = None) -> _t.Any:
        """The convolution over two axes: sums of products of windows of data with a kernel, by groups of channels.

        R.nn.conv2d(R.Tensor((1, 3, 6, 7), "float32"), R.Tensor((4, 3, 3, 2), "float32")) -> R.Tensor((1, 4, 4, 6), "float32")
        R.nn.conv2d(R.Tensor((n, 2, h, 5), "float32"), R.Tensor((3, 2, 1, 3), "float32"), padding=[1, 1]) -> R.Tensor((n, 3, h + 2, 5), "float32")
        R.nn.conv2d(R.Tensor((1, 7, 6, 3), "float32"), R.Tensor((2, 2, 3, 4), "float32"), strides=[2, 1], padding=[1, 0, 2, 1], data_layout='NHWC', kernel_layout='HWIO') -> R.Tensor((1, 5, 6, 4), "float32")
        R.nn.conv2d(R.Tensor((2, 4, 7, 7), "float32"), R.Tensor((6, 2, 3, 3), "float32"), groups=2, dilation=2, out_layout='NHWC') -> R.Tensor((2, 3, 3, 6), "float32")
        R.nn.conv2d(R.Tensor((1, 3, 5, 5), "float32"), R.Tensor((3, 1, 3, 3), "float32"), groups=3, padding=1) -> R.Tensor((1, 3, 5, 5), "float32")
        R.nn.conv2d(R.Tensor((1, c, 4, 4), "float32"), R.Tensor((o, c, 2, 2), "float32"), strides=2) -> R.Tensor((1, o, 2, 2), "float32")
        R.nn.conv2d(R.Tensor((1, 8, 4, 4), "float16"), R.Tensor((2, 8, 3, 3), "float16")) -> R.Tensor((1, 2, 2, 2), "float16")
        R.nn.conv2d(R.Tensor((1, 2, 4, 4), "int8"), R.Tensor((2, 2, 2, 2), "int8"), out_dtype='int32') -> R.Tensor((1, 2, 3, 3), "int32")
        R.nn.conv2d(R.Tensor((1, 2, 5, 5, 4), "float32"), R.Tensor((2, 8, 3, 3, 4), "float32"), padding=1, data_layout='NCHW4c', kernel_layout='OIHW4o') -> R.Tensor((1, 2, 5, 5, 4), "float32")
        R.nn.conv2d(R.Tensor((1, 2, 4, 4, 2), "float32"), R.Tensor((1, 2, 2, 2, 2, 4), "float32"), data_layout='NCHW2c', kernel_layout='OIHW2i4o', out_layout='NHWC') -> R.Tensor((1, 3, 3, 4), "float32")
        R.nn.conv2d(R.Tensor((2, 4, 4, 4), "float32"), R.Tensor((4, 2, 3, 3), "float32"), groups=2, out_layout='NHWC2n2c') -> R.Tensor((1, 2, 2, 2, 2, 2), "float32")
        R.nn.conv2d(R.Tensor((n, c, 4, 4, 4), "float32"), R.Tensor((o, 8, 3, 3, 4), "float32"), data_layout='NCHW4c', kernel_layout='OIHW4o') -> R.Tensor((n, o, 2, 2, 4), "float32")
        """

    @staticmethod
    def conv2d_transpose(data: _t.Any, weight: _t.Any, strides: _t.Any = (1, 1), padding: _t.Any = (0, 0), output_padding: _t.Any = (0, 0), dilation: _t.Any = (1, 1), groups: _t.Any = 1, data_layout: _t.Any = 'NCHW', kernel_layout: _t.Any = 'IOHW', out_layout: _t.Any = None, out_dtype: _t.Any = None) -> _t.Any:
        """The transposed convolution over two axes: every element of data adds its multiple of the kernel to the result.

        R.nn.conv2d_transpose(R.Tensor((1, 2, 3, 4), "float32"), R.Tensor((2, 3, 3, 2), "float32"), strides=[2, 1], padding=[1, 0, 0, 1]) -> R.Tensor((1, 3, 6, 4), "float32")
        R.nn.conv2d_transpose(R.Tensor((n, 3, 3, 4), "float32"), R.Tensor((2, 2, 2, 4), "float32"), strides=2, groups=2, data_layout='NHWC', kernel_layout='HWOI') -> R.Tensor((n, 6, 6, 4), "float32")
        R.nn.conv2d_transpose(R.Tensor((1, 2, 3, w), "float32"), R.Tensor((2, 2, 2, 4), "float32"), strides=[3, 2], padding=[0, 2], output_padding=[2, 0]) -> R.Tensor((1, 2, 10, 2 * w - 2), "float32")
        R.nn.conv2d_transpose(R.Tensor((2, 2, 3, 3), "float32"), R.Tensor((2, 2, 3, 2), "float32"), strides=[1, 4], dilation=[2, 1], padding=[3, 0]) -> R.Tensor((2, 2, 1, 10), "float32")
        R.nn.conv2d_transpose(R.Tensor((1, 2, 3, 3), "float32"), R.Tensor((2, 1, 3, 2), "float32"), strides=4, groups=2, padding=1, out_layout='NHWC') -> R.Tensor((1, 9, 8, 2), "float32")
        R.nn.conv2d_transpose(R.Tensor((1, 2, 3, 3, 2), "float32"), R.Tensor((4, 1, 3, 2, 2), "float32"), strides=[1, 2], data_layout='NCHW2c', kernel_layout='IOHW2o') -> R.Tensor((1, 1, 5, 6, 2), "float32")
        """

    @staticmethod
    def conv3d(data: _t.Any, weight: _t.Any, strides: _t.Any = (1, 1, 1), padding: _t.Any = (0, 0, 0), dilation: _t.Any = (1, 1, 1), groups: _t.Any = 1, data_layout: _t.Any = 'NCDHW', kernel_layout: _t.Any = 'OIDHW', out_layout: _t.Any = None, out_dtype: _t.Any = None) -> _t.Any:
        """The convolution over three axes: sums of products of windows of data with a kernel, by groups of channels.

        R.nn.conv3d(R.Tensor((1, 2, 4, 5, 4), "float32"), R.Tensor((2, 2, 2, 3, 2), "float32")) -> R.Tensor((1, 2, 3, 3, 3), "float32")
        R.nn.conv3d(R.Tensor((n, 3, 3, 4, 2), "float32"), R.Tensor((2, 2, 2, 1, 1), "float32"), strides=[1, 2, 1], padding=1, groups=2, data_layout='NDHWC', kernel_layout='ODHWI', dilation=[1, 1, 2]) -> R.Tensor((n, 4, 2, 6, 2), "float32")
        """

    @staticmethod
    def conv3d_transpose(data: _t.Any, weight: _t.Any, strides: _t.Any = (1, 1, 1), padding: _t.Any = (0, 0, 0), output_padding: _t.Any = (0, 0, 0), dilation: _t.Any = (1, 1, 1), groups: _t.Any = 1, data_layout: _t.Any = 'NCDHW', kernel_layout: _t.Any = 'IODHW', out_layout: _t.Any = None, out_dtype: _t.Any = None) -> _t.Any:
        """The transposed convolution over three axes: every element of data adds its multiple of the kernel to the result.

        R.nn.conv3d_transpose(R.Tensor((n, 2, 2, 3, 2), "float32"), R.Tensor((2, 1, 2, 2, 3), "float32"), strides=[1, 2, 1], padding=[0, 1, 1]) -> R.Tensor((n, 1, 3, 4, 2), "float32")
        """

    @staticmethod
    def cross_entropy_with_logits(predictions: _t.Any, labels: _t.Any) -> _t.Any:
        """-sum(predictions * labels), divided by the number of rows of a matrix; predictions are log probabilities.

        R.nn.cross_entropy_with_logits(R.Tensor((3, 4), "float32"), R.Tensor((3, 4), "float32")) -> R.Tensor((), "float32")
        R.nn.cross_entropy_with_logits(R.Tensor((n, c), "float32"), R.Tensor((n, c), "float32")) -> R.Tensor((), "float32")
        R.nn.cross_entropy_with_logits(R.Tensor((5,), "float32"), R.Tensor((5,), "float32")) -> R.Tensor((), "float32")
        """

    @staticmethod
    def ctc_loss(log_probs: _t.Any, targets: _t.Any, input_lengths: _t.Any, target_lengths: _t.Any, blank: _t.Any = 0, reduction: _t.Any = 'mean', zero_infinity: _t.Any = False) -> _t.Any:
        """-log of the probability that sequences of classes, without repetitions and blanks, are the targets.

        log_probs (t, n, c), targets of integers (n, s), or one after the other (s,); input_lengths and target_lengths (n,)
        say how much of them counts. A target that no path gives has the loss inf, or 0 with zero_infinity.
        reduction: "none" (n,), "sum", or "mean" of the losses over the target lengths (at least 1).

        R.nn.ctc_loss(R.Tensor((5, 3, 4), "float32"), R.Tensor((3, 2), "int64"), R.Tensor((3,), "int64"), R.Tensor((3,), "int64")) -> R.Tensor((), "float32")
        R.nn.ctc_loss(R.Tensor((5, n, 4), "float32"), R.Tensor((n, 2), "int64"), R.Tensor((n,), "int64"), R.Tensor((n,), "int64"), reduction='none') -> R.Tensor((n,), "float32")
        R.nn.ctc_loss(R.Tensor((5, 3, 4), "float32"), R.Tensor((6,), "int32"), R.Tensor((3,), "int64"), R.Tensor((3,), "int64"), reduction='sum', zero_infinity=True) -> R.Tensor((), "float32")
        R.nn.ctc_loss(R.Tensor((t, 2, 4), "float64"), R.Tensor((2, 3), "int64"), R.Tensor((2,), "int64"), R.Tensor((2,), "int64"), blank=3, zero_infinity=True) -> R.Tensor((), "float64")
        """

    @staticmethod
    def deformable_conv2d(data: _t.Any, offset: _t.Any, weight: _t.Any, mask: _t.Any = None, strides: _t.Any = (1, 1), padding: _t.Any = (0, 0), dilation: _t.Any = (1, 1), groups: _t.Any = 1, offset_groups: _t.Any = 1) -> _t.Any:
        """A convolution over two axes whose windows read each element beside its place, moved by an offset.

        data (n, c, h, w), weight (o, c / groups, kh, kw), offset (n, 2 offset_groups kh kw, h', w') with the rows and the
        columns of each element in turn, mask (n, offset_groups kh kw, h', w') of factors. Elements between others are
        interpolated linearly, with 0 around data.

        R.nn.deformable_conv2d(R.Tensor((1, 2, 5, 4), "float32"), R.Tensor((1, 12, 4, 2), "float32"), R.Tensor((3, 2, 2, 3), "float32")) -> R.Tensor((1, 3, 4, 2), "float32")
        R.nn.deformable_conv2d(R.Tensor((n, 4, 5, 6), "float32"), R.Tensor((n, 16, 2, 3), "float32"), R.Tensor((2, 2, 2, 2), "float32"), R.Tensor((n, 8, 2, 3), "float32"), strides=2, groups=2, offset_groups=2) -> R.Tensor((n, 2, 2, 3), "float32")
        R.nn.deformable_conv2d(R.Tensor((1, 1, h, 5), "float32"), R.Tensor((1, 18, h, 3), "float32"), R.Tensor((2, 1, 3, 3), "float32"), padding=[1, 0]) -> R.Tensor((1, 2, h, 3), "float32")
        R.nn.deformable_conv2d(R.Tensor((1, 2, 4, 4), "float16"), R.Tensor((1, 8, 2, 2), "float16"), R.Tensor((1, 2, 2, 2), "float16"), dilation=2) -> R.Tensor((1, 1, 2, 2), "float16")
        """

    @staticmethod
    def dropout(data: _t.Any, rate: _t.Any = 0.5) -> _t.Any:
        """A pair: data as it is (nothing is dropped when a model is run, only when it is trained), and a mask of ones.

        R.nn.dropout(R.Tensor((2, 3), "float32")) -> R.Tuple(R.Tensor((2, 3), "float32"), R.Tensor((2, 3), "float32"))
        R.nn.dropout(R.Tensor((n, 4), "float32"), rate=0.1) -> R.Tuple(R.Tensor((n, 4), "float32"), R.Tensor((n, 4), "float32"))
        """

    @staticmethod
    def elu(data: _t.Any, alpha: _t.Any = 1.0) -> _t.Any:
        """data where it is positive, else alpha * (exp(data) - 1).

        R.nn.elu(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
        R.nn.elu(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
        R.nn.elu(R.Tensor((5,), "float64")) -> R.Tensor((5,), "float64")
        """

    @staticmethod
    def embedding(weight: _t.Any, indices: _t.Any) -> _t.Any:
        """The rows of weight that indices choose: (v, h), (...) -> (..., h).

        R.nn.embedding(R.Tensor((5, 3), "float32"), R.Tensor((2, 4), "int64")) -> R.Tensor((2, 4, 3), "float32")
        R.nn.embedding(R.Tensor((v, 3), "float32"), R.Tensor((n,), "int32")) -> R.Tensor((n, 3), "float32")
        """

    @staticmethod
    def embedding_bag(weight: _t.Any, indices: _t.Any, offsets: _t.Any = None, per_sample_weights: _t.Any = None, mode: _t.Any = 'mean', padding_idx: _t.Any = None, include_last_offset: _t.Any = False) -> _t.Any:
        """The sum, mean or maximum of the rows of weight in each bag; zeros for an empty one.

            Bags are the rows of indices (b, k), or the parts of indices (n,) that begin at the offsets, which ascend from 0;
            with include_last_offset the last offset is where the last bag ends. Rows with the index padding_idx do not count.
            Weights, of each index, go with the mode sum.

        R.nn.embedding_bag(R.Tensor((5, 3), "float32"), R.Tensor((2, 4), "int64")) -> R.Tensor((2, 3), "float32")
        R.nn.embedding_bag(R.Tensor((5, 3), "float32"), R.Tensor((6,), "int64"), array([0, 2, 2, 5]), mode='sum') -> R.Tensor((4, 3), "float32")
        R.nn.embedding_bag(R.Tensor((5, 3), "float32"), R.Tensor((n,), "int64"), array([0, 0]), R.Tensor((n,), "float32"), mode='sum') -> R.Tensor((2, 3), "float32")
        R.nn.embedding_bag(R.Tensor((5, 3), "float32"), R.Tensor((n, 2), "int64"), mode='max', padding_idx=1) -> R.Tensor((n, 3), "float32")
        R.nn.embedding_bag(R.Tensor((5, 3), "float32"), R.Tensor((6,), "int64"), array([0, 4, 6]), padding_idx=2, include_last_offset=True) -> R.Tensor((2, 3), "float32")
        """

    @staticmethod
    def fold(data: _t.Any, output_size: _t.Any, kernel_size: _t.Any, strides: _t.Any = (1, 1), padding: _t.Any = (0, 0), dilation: _t.Any = (1, 1)) -> _t.Any:
        """The columns of windows added where they came from: (n, c, h, w) of output_size; unfold transposed (col2im).

        R.nn.fold(R.Tensor((1, 12, 9), "float32"), output_size=[4, 5], kernel_size=[2, 3]) -> R.Tensor((1, 2, 4, 5), "float32")
        R.nn.fold(R.Tensor((n, 12, 10), "float32"), output_size=[4, 4], kernel_size=[3, 2], strides=[2, 1], padding=[1, 1]) -> R.Tensor((n, 2, 4, 4), "float32")
        """

    @staticmethod
    def fractional_max_pool2d(data: _t.Any, samples: _t.Any, pool_size: _t.Any, output_size: _t.Any) -> _t.Any:
        """(values, indices): the greatest elements of output_size windows, spread over two axes by samples, and their indices in the channel.

        data (n, c, ...), samples (n, c, 2) in [0, 1), for the columns and the rows. Window i of k along an axis of m elements begins at
        int((i + u) a) - int(u a), a = (m - pool_size) / (k - 1) and u its sample; the last one ends with the axis.
        Source: Graham, Fractional max-pooling, 2014.

        R.nn.fractional_max_pool2d(R.Tensor((1, 2, 7, 6), "float32"), R.Tensor((1, 2, 2), "float32"), pool_size=[2, 3], output_size=[3, 2]) -> R.Tuple(R.Tensor((1, 2, 3, 2), "float32"), R.Tensor((1, 2, 3, 2), "int64"))
        R.nn.fractional_max_pool2d(R.Tensor((n, 1, h, 5), "float32"), R.Tensor((n, 1, 2), "float32"), 2, 2) -> R.Tuple(R.Tensor((n, 1, 2, 2), "float32"), R.Tensor((n, 1, 2, 2), "int64"))
        R.nn.fractional_max_pool2d(R.Tensor((1, 1, 4, 4), "int32"), R.Tensor((1, 1, 2), "float32"), 2, [1, 3]) -> R.Tuple(R.Tensor((1, 1, 1, 3), "int32"), R.Tensor((1, 1, 1, 3), "int64"))
        """

    @staticmethod
    def fractional_max_pool3d(data: _t.Any, samples: _t.Any, pool_size: _t.Any, output_size: _t.Any) -> _t.Any:
        """(values, indices): the greatest elements of output_size windows, spread over three axes by samples, and their indices in the channel.

        data (n, c, ...), samples (n, c, 3) in [0, 1), one for each axis. Window i of k along an axis of m elements begins at
        int((i + u) a) - int(u a), a = (m - pool_size) / (k - 1) and u its sample; the last one ends with the axis.
        Source: Graham, Fractional max-pooling, 2014.

        R.nn.fractional_max_pool3d(R.Tensor((n, 2, 6, 4, 5), "float32"), R.Tensor((n, 2, 3), "float32"), 2, [3, 2, 4]) -> R.Tuple(R.Tensor((n, 2, 3, 2, 4), "float32"), R.Tensor((n, 2, 3, 2, 4), "int64"))
        """

    @staticmethod
    def gelu(data: _t.Any) -> _t.Any:
        """data * P(X <= data) for a standard normal X, elementwise, by the error function.

        R.nn.gelu(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
        R.nn.gelu(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
        R.nn.gelu(R.Tensor((n,), "float16")) -> R.Tensor((n,), "float16")
        """

    @staticmethod
    def gelu_tanh(data: _t.Any) -> _t.Any:
        """The approximation of gelu by tanh, elementwise.

        R.nn.gelu_tanh(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
        R.nn.gelu_tanh(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
        R.nn.gelu_tanh(R.Tensor((n,), "float16")) -> R.Tensor((n,), "float16")
        """

    @staticmethod
    def group_norm(data: _t.Any, gamma: _t.Any, beta: _t.Any, num_groups: _t.Any, channel_axis: _t.Any, axes: _t.Any, epsilon: _t.Any = 1e-05, center: _t.Any = True, scale: _t.Any = True) -> _t.Any:
        """data normalised over the axes and the channels of each group, times gamma, plus beta, given by channel.

        R.nn.group_norm(R.Tensor((2, 6, 4, 5), "float32"), R.Tensor((6,), "float32"), R.Tensor((6,), "float32"), num_groups=3, channel_axis=1, axes=[2, 3]) -> R.Tensor((2, 6, 4, 5), "float32")
        R.nn.group_norm(R.Tensor((n, 4, h, 4), "float32"), R.Tensor((4,), "float32"), R.Tensor((4,), "float32"), num_groups=2, channel_axis=-1, axes=[1, 2], scale=False) -> R.Tensor((n, 4, h, 4), "float32")
        R.nn.group_norm(R.Tensor((2, 4, 30), "float16"), R.Tensor((4,), "float16"), R.Tensor((4,), "float16"), 2, 1, [2]) -> R.Tensor((2, 4, 30), "float16")
        """

    @staticmethod
    def gru(data: _t.Any, weight: _t.Any, recurrent: _t.Any, bias: _t.Any = None, sequence_lengths: _t.Any = None, initial_h: _t.Any = None, direction: _t.Any = 'forward', activations: _t.Any = None, activation_alpha: _t.Any = None, activation_beta: _t.Any = None, clip: _t.Any = None, linear_before_reset: _t.Any = False, layout: _t.Any = 0, gates: _t.Any = 'zrh') -> _t.Any:
        """A gated recurrent layer; gives y and the last h.

            z = f(x Wz^T + h Rz^T + bz), r = f(x Wr^T + h Rr^T + br), n = g(x Wh^T + (r h) Rh^T + bh) or, with
            linear_before_reset, g(x Wh^T + wh + r (h Rh^T + rh)); the new h is (1 - z) n + z h. `gates` is the order of z, r
            and h in the weights. data (t, b, i), weight (d, 3 h, i), recurrent (d, 3 h, h), bias (d, 6 h): those of the inputs,
            then those of the state; sequence_lengths (b,), initial_h (d, b, h) -> y (t, d, b, h), (d, b, h); with layout 1
            data (b, t, i), states (b, d, h), y (b, t, d, h).

        R.nn.gru(R.Tensor((t, 2, 3), "float32"), R.Tensor((1, 12, 3), "float32"), R.Tensor((1, 12, 4), "float32"), R.Tensor((1, 24), "float32")) -> R.Tuple(R.Tensor((t, 1, 2, 4), "float32"), R.Tensor((1, 2, 4), "float32"))
        R.nn.gru(R.Tensor((t, b, 3), "float32"), R.Tensor((1, 12, 3), "float32"), R.Tensor((1, 12, 4), "float32"), R.Tensor((1, 24), "float32"), linear_before_reset=True, clip=0.5) -> R.Tuple(R.Tensor((t, 1, b, 4), "float32"), R.Tensor((1, b, 4), "float32"))
        R.nn.gru(R.Tensor((2, 3, 2), "float32"), R.Tensor((2, 9, 2), "float32"), R.Tensor((2, 9, 3), "float32"), R.Tensor((2, 18), "float32"), R.Tensor((2,), "int32"), R.Tensor((2, 2, 3), "float32"), direction='bidirectional', layout=1, gates='rzh') -> R.Tuple(R.Tensor((2, 3, 2, 3), "float32"), R.Tensor((2, 2, 3), "float32"))
        """

    @staticmethod
    def hardshrink(data: _t.Any, alpha: _t.Any = 0.5) -> _t.Any:
        """data where it is further than alpha from 0, else 0.

        R.nn.hardshrink(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
        R.nn.hardshrink(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
        R.nn.hardshrink(R.Tensor((5,), "float64")) -> R.Tensor((5,), "float64")
        """

    @staticmethod
    def hardsigmoid(data: _t.Any, alpha: _t.Any = 0.16666666666666666, beta: _t.Any = 0.5) -> _t.Any:
        """alpha * data + beta, limited to [0, 1].

        R.nn.hardsigmoid(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
        R.nn.hardsigmoid(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
        R.nn.hardsigmoid(R.Tensor((5,), "float64")) -> R.Tensor((5,), "float64")
        """

    @staticmethod
    def hardswish(data: _t.Any) -> _t.Any:
        """data * hardsigmoid(data).

        R.nn.hardswish(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
        R.nn.hardswish(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
        R.nn.hardswish(R.Tensor((5,), "float64")) -> R.Tensor((5,), "float64")
        """

    @staticmethod
    def hardtanh(data: _t.Any, min_val: _t.Any = -1.0, max_val: _t.Any = 1.0) -> _t.Any:
        """data limited to [min_val, max_val].

        R.nn.hardtanh(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
        R.nn.hardtanh(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
        R.nn.hardtanh(R.Tensor((5,), "float64")) -> R.Tensor((5,), "float64")
        """

    @staticmethod
    def instance_norm(data: _t.Any, gamma: _t.Any, beta: _t.Any, channel_axis: _t.Any, axes: _t.Any, epsilon: _t.Any = 1e-05, center: _t.Any = True, scale: _t.Any = True) -> _t.Any:
        """data normalised over the axes for each instance and channel, times gamma, plus beta, given by channel.

        R.nn.instance_norm(R.Tensor((2, 3, 4, 5), "float32"), R.Tensor((3,), "float32"), R.Tensor((3,), "float32"), channel_axis=1, axes=[2, 3]) -> R.Tensor((2, 3, 4, 5), "float32")
        R.nn.instance_norm(R.Tensor((n, 4, c), "float32"), R.Tensor((c,), "float32"), R.Tensor((c,), "float32"), channel_axis=-1, axes=[1]) -> R.Tensor((n, 4, c), "float32")
        """

    @staticmethod
    def layer_norm(data: _t.Any, gamma: _t.Any, beta: _t.Any, axes: _t.Any, epsilon: _t.Any = 1e-05, center: _t.Any = True, scale: _t.Any = True) -> _t.Any:
        """(data - mean) / sqrt(variance + epsilon) over the axes, times gamma (if scale), plus beta (if center).

        gamma and beta have the sizes of the axes.

        R.nn.layer_norm(R.Tensor((2, 5), "float32"), R.Tensor((5,), "float32"), R.Tensor((5,), "float32"), axes=-1) -> R.Tensor((2, 5), "float32")
        R.nn.layer_norm(R.Tensor((n, 3, 4), "float32"), R.Tensor((3, 4), "float32"), R.Tensor((3, 4), "float32"), axes=[-2, -1], epsilon=0.01) -> R.Tensor((n, 3, 4), "float32")
        R.nn.layer_norm(R.Tensor((n, m), "float32"), R.Tensor((m,), "float32"), R.Tensor((m,), "float32"), axes=[1], center=False) -> R.Tensor((n, m), "float32")
        R.nn.layer_norm(R.Tensor((2, 70), "float16"), R.Tensor((70,), "float16"), R.Tensor((70,), "float16"), axes=[1], scale=False) -> R.Tensor((2, 70), "float16")
        R.nn.layer_norm(R.Tensor((3, 2, 4), "float32"), R.Tensor((4, 3), "float32"), R.Tensor((4, 3), "float32"), axes=[2, 0]) -> R.Tensor((3, 2, 4), "float32")
        """

    @staticmethod
    def leakyrelu(data: _t.Any, alpha: _t.Any = 0.01) -> _t.Any:
        """data where it is positive, alpha * data elsewhere.

        R.nn.leakyrelu(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
        R.nn.leakyrelu(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
        R.nn.leakyrelu(R.Tensor((n,), "float16")) -> R.Tensor((n,), "float16")
        R.nn.leakyrelu(R.Tensor((2, 3), "float32"), alpha=0.3) -> R.Tensor((2, 3), "float32")
        """

    @staticmethod
    def local_response_norm(data: _t.Any, size: _t.Any, alpha: _t.Any = 0.0001, beta: _t.Any = 0.75, bias: _t.Any = 1.0) -> _t.Any:
        """data / (bias + alpha / size * s)**beta, s the sum of squares of size channels (axis 1) around each.

            Source: Krizhevsky et al., ImageNet classification with deep convolutional neural networks, 2012.

        R.nn.local_response_norm(R.Tensor((2, 5, 3), "float32"), size=3, alpha=0.5) -> R.Tensor((2, 5, 3), "float32")
        R.nn.local_response_norm(R.Tensor((n, 4, 2, 3), "float32"), size=2, beta=0.5, bias=2.0) -> R.Tensor((n, 4, 2, 3), "float32")
        """

    @staticmethod
    def log_softmax(data: _t.Any, axis: _t.Any = -1) -> _t.Any:
        """The logarithm of the softmax along an axis, without overflow or cancellation.

        R.nn.log_softmax(R.Tensor((2, 5), "float32")) -> R.Tensor((2, 5), "float32")
        R.nn.log_softmax(R.Tensor((n, m), "float32")) -> R.Tensor((n, m), "float32")
        R.nn.log_softmax(R.Tensor((n, 3, 4), "float32"), axis=1) -> R.Tensor((n, 3, 4), "float32")
        R.nn.log_softmax(R.Tensor((2, 70), "float16")) -> R.Tensor((2, 70), "float16")
        """

    @staticmethod
    def logsigmoid(data: _t.Any) -> _t.Any:
        """log(1 / (1 + exp(-data))), without overflow.

        R.nn.logsigmoid(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
        R.nn.logsigmoid(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
        R.nn.logsigmoid(R.Tensor((5,), "float64")) -> R.Tensor((5,), "float64")
        """

    @staticmethod
    def lp_pool2d(data: _t.Any, p: _t.Any = 2.0, pool_size: _t.Any = (1, 1), strides: _t.Any = (1, 1), padding: _t.Any = (0, 0)) -> _t.Any:
        """The p norm of each window of the last two axes: (sum |x|**p)**(1 / p); padding counts as 0.

        R.nn.lp_pool2d(R.Tensor((1, 2, 5, 4), "float32"), pool_size=[2, 2], strides=[1, 2]) -> R.Tensor((1, 2, 4, 2), "float32")
        R.nn.lp_pool2d(R.Tensor((n, 2, 4, 4), "float32"), p=3.0, pool_size=[3, 2], padding=[1, 0]) -> R.Tensor((n, 2, 4, 3), "float32")
        """

    @staticmethod
    def lstm(data: _t.Any, weight: _t.Any, recurrent: _t.Any, bias: _t.Any = None, sequence_lengths: _t.Any = None, initial_h: _t.Any = None, initial_c: _t.Any = None, peephole: _t.Any = None, direction: _t.Any = 'forward', activations: _t.Any = None, activation_alpha: _t.Any = None, activation_beta: _t.Any = None, clip: _t.Any = None, input_forget: _t.Any = False, layout: _t.Any = 0, gates: _t.Any = 'iofc') -> _t.Any:
        """A layer with long short-term memory; gives y, the last h and the last c.

            i, o, f = f(x W^T + h R^T + b + p c) and n = g(x W^T + h R^T + b) of the gates i, o, f, c (o sees the new c); the
            new c is f c + i n, the new h is o h(c). With input_forget f is 1 - i. `gates` is the order of i, o, f and c in the
            weights; peepholes p are always in the order i, o, f. clip limits what f and g are applied to. data (t, b, i),
            weight (d, 4 h, i), recurrent (d, 4 h, h), bias (d, 8 h): those of the inputs, then those of the state;
            sequence_lengths (b,), initial_h and initial_c (d, b, h), peephole (d, 3 h) -> y (t, d, b, h), two times
            (d, b, h); with layout 1 data (b, t, i), states (b, d, h), y (b, t, d, h).

        R.nn.lstm(R.Tensor((t, 2, 3), "float32"), R.Tensor((1, 16, 3), "float32"), R.Tensor((1, 16, 4), "float32"), R.Tensor((1, 32), "float32")) -> R.Tuple(R.Tensor((t, 1, 2, 4), "float32"), R.Tensor((1, 2, 4), "float32"), R.Tensor((1, 2, 4), "float32"))
        R.nn.lstm(R.Tensor((t, b, 3), "float32"), R.Tensor((1, 16, 3), "float32"), R.Tensor((1, 16, 4), "float32"), direction='reverse', gates='ifco') -> R.Tuple(R.Tensor((t, 1, b, 4), "float32"), R.Tensor((1, b, 4), "float32"), R.Tensor((1, b, 4), "float32"))
        R.nn.lstm(R.Tensor((3, 2, 2), "float32"), R.Tensor((2, 12, 2), "float32"), R.Tensor((2, 12, 3), "float32"), R.Tensor((2, 24), "float32"), R.Tensor((2,), "int32"), R.Tensor((2, 2, 3), "float32"), R.Tensor((2, 2, 3), "float32"), R.Tensor((2, 9), "float32"), direction='bidirectional', clip=0.7) -> R.Tuple(R.Tensor((3, 2, 2, 3), "float32"), R.Tensor((2, 2, 3), "float32"), R.Tensor((2, 2, 3), "float32"))
        R.nn.lstm(R.Tensor((2, t, 2), "float32"), R.Tensor((1, 12, 2), "float32"), R.Tensor((1, 12, 3), "float32"), R.Tensor((1, 24), "float32"), R.Tensor((2,), "int32"), R.Tensor((2, 1, 3), "float32"), R.Tensor((2, 1, 3), "float32"), layout=1, input_forget=True, activations=['HardSigmoid', 'Softsign', 'ScaledTanh']) -> R.Tuple(R.Tensor((2, t, 1, 3), "float32"), R.Tensor((2, 1, 3), "float32"), R.Tensor((2, 1, 3), "float32"))
        """

    @staticmethod
    def max_pool1d(data: _t.Any, pool_size: _t.Any = (1,), strides: _t.Any = (1,), padding: _t.Any = (0,), dilation: _t.Any = (1,), ceil_mode: _t.Any = False, count_include_pad: _t.Any = False, layout: _t.Any = 'NCW', out_layout: _t.Any = None) -> _t.Any:
        """The greatest value of each window that slides over one axis.

        R.nn.max_pool1d(R.Tensor((2, 3, 8), "float32"), pool_size=3, strides=2, padding=1) -> R.Tensor((2, 3, 4), "float32")
        R.nn.max_pool1d(R.Tensor((n, w, 2), "float32"), pool_size=2, ceil_mode=True, strides=2, layout='NWC') -> R.Tensor((n, (w + 1) // 2, 2), "float32")
        """

    @staticmethod
    def max_pool1d_with_indices(data: _t.Any, pool_size: _t.Any = (1,), strides: _t.Any = (1,), padding: _t.Any = (0,), dilation: _t.Any = (1,), ceil_mode: _t.Any = False) -> _t.Any:
        """(values, indices): the greatest element of each window that slides over one axis, and its index among the elements of a channel, the first one of several.

        data (n, c, ...); the index of a window without an element, in the padding alone, is -1.

        R.nn.max_pool1d_with_indices(R.Tensor((2, 3, 8), "float32"), pool_size=3, strides=2, padding=1) -> R.Tuple(R.Tensor((2, 3, 4), "float32"), R.Tensor((2, 3, 4), "int64"))
        R.nn.max_pool1d_with_indices(R.Tensor((n, 2, w), "float32"), pool_size=2, ceil_mode=True, strides=2) -> R.Tuple(R.Tensor((n, 2, (w + 1) // 2), "float32"), R.Tensor((n, 2, (w + 1) // 2), "int64"))
        """

    @staticmethod
    def max_pool2d(data: _t.Any, pool_size: _t.Any = (1, 1), strides: _t.Any = (1, 1), padding: _t.Any = (0, 0), dilation: _t.Any = (1, 1), ceil_mode: _t.Any = False, count_include_pad: _t.Any = False, layout: _t.Any = 'NCHW', out_layout: _t.Any = None) -> _t.Any:
        """The greatest value of each window that slides over two axes.

        R.nn.max_pool2d(R.Tensor((1, 2, 6, 7), "float32"), pool_size=[2, 2], strides=[2, 2]) -> R.Tensor((1, 2, 3, 3), "float32")
        R.nn.max_pool2d(R.Tensor((n, 3, h, 5), "float32"), pool_size=3, strides=[1, 2], padding=[1, 1]) -> R.Tensor((n, 3, h, 3), "float32")
        R.nn.max_pool2d(R.Tensor((1, 7, 7, 2), "float32"), pool_size=[2, 3], strides=3, dilation=[2, 1], ceil_mode=True, layout='NHWC') -> R.Tensor((1, 3, 3, 2), "float32")
        R.nn.max_pool2d(R.Tensor((1, 2, 5, 5), "float32"), pool_size=2, padding=[0, 1, 1, 0], out_layout='NHWC') -> R.Tensor((1, 5, 5, 2), "float32")
        R.nn.max_pool2d(R.Tensor((1, 1, 4, 4), "int32"), pool_size=3, padding=1) -> R.Tensor((1, 1, 4, 4), "int32")
        R.nn.max_pool2d(R.Tensor((1, 2, 5, 5, 4), "float32"), pool_size=2, layout='NCHW4c') -> R.Tensor((1, 2, 4, 4, 4), "float32")
        """

    @staticmethod
    def max_pool2d_with_indices(data: _t.Any, pool_size: _t.Any = (1, 1), strides: _t.Any = (1, 1), padding: _t.Any = (0, 0), dilation: _t.Any = (1, 1), ceil_mode: _t.Any = False) -> _t.Any:
        """(values, indices): the greatest element of each window that slides over two axes, and its index among the elements of a channel, the first one of several.

        data (n, c, ...); the index of a window without an element, in the padding alone, is -1.

        R.nn.max_pool2d_with_indices(R.Tensor((1, 2, 6, 7), "float32"), pool_size=[2, 2], strides=[2, 2]) -> R.Tuple(R.Tensor((1, 2, 3, 3), "float32"), R.Tensor((1, 2, 3, 3), "int64"))
        R.nn.max_pool2d_with_indices(R.Tensor((n, 3, h, 5), "float32"), pool_size=3, strides=[1, 2], padding=[1, 1]) -> R.Tuple(R.Tensor((n, 3, h, 3), "float32"), R.Tensor((n, 3, h, 3), "int64"))
        R.nn.max_pool2d_with_indices(R.Tensor((1, 2, 7, 7), "float32"), pool_size=[2, 3], strides=3, dilation=[2, 1], ceil_mode=True) -> R.Tuple(R.Tensor((1, 2, 3, 3), "float32"), R.Tensor((1, 2, 3, 3), "int64"))
        R.nn.max_pool2d_with_indices(R.Tensor((1, 1, 4, 4), "int32"), pool_size=3, padding=1) -> R.Tuple(R.Tensor((1, 1, 4, 4), "int32"), R.Tensor((1, 1, 4, 4), "int64"))
        R.nn.max_pool2d_with_indices(R.Tensor((1, 2, 3, 3), "float16"), pool_size=1, padding=[1, 0, 0, 1]) -> R.Tuple(R.Tensor((1, 2, 4, 4), "float16"), R.Tensor((1, 2, 4, 4), "int64"))
        """

    @staticmethod
    def max_pool3d(data: _t.Any, pool_size: _t.Any = (1, 1, 1), strides: _t.Any = (1, 1, 1), padding: _t.Any = (0, 0, 0), dilation: _t.Any = (1, 1, 1), ceil_mode: _t.Any = False, count_include_pad: _t.Any = False, layout: _t.Any = 'NCDHW', out_layout: _t.Any = None) -> _t.Any:
        """The greatest value of each window that slides over three axes.

        R.nn.max_pool3d(R.Tensor((n, 2, 4, 5, 3), "float32"), pool_size=[2, 3, 1], strides=[2, 1, 1], padding=[1, 0, 0]) -> R.Tensor((n, 2, 3, 3, 3), "float32")
        """

    @staticmethod
    def max_pool3d_with_indices(data: _t.Any, pool_size: _t.Any = (1, 1, 1), strides: _t.Any = (1, 1, 1), padding: _t.Any = (0, 0, 0), dilation: _t.Any = (1, 1, 1), ceil_mode: _t.Any = False) -> _t.Any:
        """(values, indices): the greatest element of each window that slides over three axes, and its index among the elements of a channel, the first one of several.

        data (n, c, ...); the index of a window without an element, in the padding alone, is -1.

        R.nn.max_pool3d_with_indices(R.Tensor((n, 2, 4, 5, 3), "float32"), pool_size=[2, 3, 1], strides=[2, 1, 1], padding=[1, 0, 0]) -> R.Tuple(R.Tensor((n, 2, 3, 3, 3), "float32"), R.Tensor((n, 2, 3, 3, 3), "int64"))
        """

    @staticmethod
    def max_unpool(data: _t.Any, indices: _t.Any, output_size: _t.Any) -> _t.Any:
        """Zeros of another size with each element of data in the place that its index says: the inverse of a pool.

            data and indices (n, c, ...), output_size the sizes of the axes after the channels, in whose planes the indices
            count in row-major order. Of several elements with one index the last counts.

        R.nn.max_unpool(R.Tensor((1, 2, 2, 2), "float32"), array([[[[ 0,  3],
                 [ 8, 11]],

                [[ 5,  2],
                 [ 9, 14]]]]), (4, 4)) -> R.Tensor((1, 2, 4, 4), "float32")
        R.nn.max_unpool(R.Tensor((n, 1, 3), "float32"), R.Tensor((n, 1, 3), "int64"), (6,)) -> R.Tensor((n, 1, 6), "float32")
        """

    @staticmethod
    def mish(data: _t.Any) -> _t.Any:
        """data * tanh(softplus(data)).

        R.nn.mish(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
        R.nn.mish(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
        R.nn.mish(R.Tensor((5,), "float64")) -> R.Tensor((5,), "float64")
        """

    @staticmethod
    def nll_loss(predictions: _t.Any, targets: _t.Any, weights: _t.Any = None, reduction: _t.Any = 'mean', ignore_index: _t.Any = -100) -> _t.Any:
        """The negative log likelihood of the target classes: -predictions[target] * weights[target], reduced.

        predictions (n, c, ...) or (c,), targets (n, ...) or () of integers, weights (c,). Targets equal to ignore_index
        count for nothing. reduction: "none", "sum", or "mean" (the sum divided by the weights that count).

        R.nn.nll_loss(R.Tensor((4, 5), "float32"), R.Tensor((4,), "int64")) -> R.Tensor((), "float32")
        R.nn.nll_loss(R.Tensor((n, 3), "float32"), R.Tensor((n,), "int64"), R.Tensor((3,), "float32"), reduction='sum') -> R.Tensor((), "float32")
        R.nn.nll_loss(R.Tensor((n, 3, m), "float32"), R.Tensor((n, m), "int32"), reduction='none', ignore_index=1) -> R.Tensor((n, m), "float32")
        R.nn.nll_loss(R.Tensor((5,), "float32"), R.Tensor((), "int64")) -> R.Tensor((), "float32")
        R.nn.nll_loss(R.Tensor((6, 3, 2), "float32"), R.Tensor((6, 2), "int64"), R.Tensor((3,), "float32"), ignore_index=0) -> R.Tensor((), "float32")
        R.nn.nll_loss(R.Tensor((20, 3), "float16"), R.Tensor((20,), "int64")) -> R.Tensor((), "float16")
        """

    @staticmethod
    def pad(data: _t.Any, pad_width: _t.Any, pad_mode: _t.Any = 'constant', pad_value: _t.Any = 0.0) -> _t.Any:
        """data with elements added before and after it along each axis.

        pad_width is before and after of the first axis, then of the second, and so on. The added elements are pad_value
        (constant), the mirror image without the edge (reflect), the edge (replicate or edge), or the other end (circular).

        R.nn.pad(R.Tensor((2, 3), "float32"), [1, 0, 2, 1]) -> R.Tensor((3, 6), "float32")
        R.nn.pad(R.Tensor((n, 4), "float32"), [0, 2, 1, 1], pad_value=-1.5) -> R.Tensor((n + 2, 6), "float32")
        R.nn.pad(R.Tensor((n, 4), "float32"), [0, 0, 3, 2], pad_mode='reflect') -> R.Tensor((n, 9), "float32")
        R.nn.pad(R.Tensor((2, m), "float32"), [1, 1, 0, 2], pad_mode='replicate') -> R.Tensor((4, m + 2), "float32")
        R.nn.pad(R.Tensor((3, m), "float32"), [2, 1, 1, 0], pad_mode='circular') -> R.Tensor((6, m + 1), "float32")
        R.nn.pad(R.Tensor((3,), "int32"), [1, 1], pad_value=7) -> R.Tensor((5,), "int32")
        """

    @staticmethod
    def pixel_shuffle(data: _t.Any, upscale_factor: _t.Any) -> _t.Any:
        """Channels moved into the plane: (..., c * r**2, h, w) -> (..., c, h * r, w * r) for the factor r.

        R.nn.pixel_shuffle(R.Tensor((2, 8, 3, 4), "float32"), 2) -> R.Tensor((2, 2, 6, 8), "float32")
        R.nn.pixel_shuffle(R.Tensor((9, h, w), "float32"), 3) -> R.Tensor((1, 3 * h, 3 * w), "float32")
        """

    @staticmethod
    def prelu(data: _t.Any, alpha: _t.Any, axis: _t.Any = 1) -> _t.Any:
        """data where it is positive, elsewhere data times alpha, which has a value for each index along an axis, or one.

        R.nn.prelu(R.Tensor((2, 3, 4), "float32"), R.Tensor((3,), "float32")) -> R.Tensor((2, 3, 4), "float32")
        R.nn.prelu(R.Tensor((n, c), "float32"), R.Tensor((c,), "float32"), axis=-1) -> R.Tensor((n, c), "float32")
        R.nn.prelu(R.Tensor((n, 3), "float32"), R.Tensor((1,), "float32")) -> R.Tensor((n, 3), "float32")
        """

    @staticmethod
    def relu(data: _t.Any) -> _t.Any:
        """max(data, 0), elementwise.

        R.nn.relu(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
        R.nn.relu(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
        R.nn.relu(R.Tensor((n,), "float16")) -> R.Tensor((n,), "float16")
        R.nn.relu(R.Tensor((2, 3), "int32")) -> R.Tensor((2, 3), "int32")
        """

    @staticmethod
    def relu6(data: _t.Any) -> _t.Any:
        """min(max(data, 0), 6), elementwise.

        R.nn.relu6(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
        R.nn.relu6(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
        R.nn.relu6(R.Tensor((n,), "float16")) -> R.Tensor((n,), "float16")
        R.nn.relu6(R.Tensor((2, 3), "int32")) -> R.Tensor((2, 3), "int32")
        """

    @staticmethod
    def rms_norm(data: _t.Any, weight: _t.Any, axes: _t.Any = (-1,), epsilon: _t.Any = 1e-05) -> _t.Any:
        """data / sqrt(mean(data**2) + epsilon) over the axes, times weight, which has the sizes of the axes.

        R.nn.rms_norm(R.Tensor((2, 5), "float32"), R.Tensor((5,), "float32")) -> R.Tensor((2, 5), "float32")
        R.nn.rms_norm(R.Tensor((n, m), "float32"), R.Tensor((m,), "float32"), axes=-1) -> R.Tensor((n, m), "float32")
        R.nn.rms_norm(R.Tensor((n, 3, 4), "float32"), R.Tensor((3, 4), "float32"), axes=[1, 2], epsilon=0.1) -> R.Tensor((n, 3, 4), "float32")
        R.nn.rms_norm(R.Tensor((2, 70), "float16"), R.Tensor((70,), "float16")) -> R.Tensor((2, 70), "float16")
        """

    @staticmethod
    def rnn(data: _t.Any, weight: _t.Any, recurrent: _t.Any, bias: _t.Any = None, sequence_lengths: _t.Any = None, initial_h: _t.Any = None, direction: _t.Any = 'forward', activations: _t.Any = None, activation_alpha: _t.Any = None, activation_beta: _t.Any = None, clip: _t.Any = None, layout: _t.Any = 0, gates: _t.Any = 'i') -> _t.Any:
        """A recurrent layer: h = f(x W^T + h R^T + the biases) at each step; gives y and the last h.

            data (t, b, i), weight (d, h, i), recurrent (d, h, h), bias (d, 2 h), sequence_lengths (b,), initial_h (d, b, h)
            -> y (t, d, b, h), (d, b, h); with layout 1 data (b, t, i), states (b, d, h), y (b, t, d, h).

        R.nn.rnn(R.Tensor((t, 2, 3), "float32"), R.Tensor((1, 4, 3), "float32"), R.Tensor((1, 4, 4), "float32")) -> R.Tuple(R.Tensor((t, 1, 2, 4), "float32"), R.Tensor((1, 2, 4), "float32"))
        R.nn.rnn(R.Tensor((3, 2, 3), "float32"), R.Tensor((2, 4, 3), "float32"), R.Tensor((2, 4, 4), "float32"), R.Tensor((2, 8), "float32"), R.Tensor((2,), "int32"), R.Tensor((2, 2, 4), "float32"), direction='bidirectional', activations=['Relu', 'Affine'], activation_alpha=[0.5]) -> R.Tuple(R.Tensor((3, 2, 2, 4), "float32"), R.Tensor((2, 2, 4), "float32"))
        """

    @staticmethod
    def rotary_embedding(x: _t.Any, cos: _t.Any, sin: _t.Any, interleaved: _t.Any = False) -> _t.Any:
        """The pairs of the last axis of x turned by angles, given by their cosines and sines (half as long, broadcast).

            Pairs are one of each half, or neighbours with interleaved. Source: Su et al., RoFormer, 2021.

        R.nn.rotary_embedding(R.Tensor((2, 3, 4), "float32"), R.Tensor((3, 2), "float32"), R.Tensor((3, 2), "float32")) -> R.Tensor((2, 3, 4), "float32")
        R.nn.rotary_embedding(R.Tensor((1, n, 6), "float32"), R.Tensor((n, 3), "float32"), R.Tensor((n, 3), "float32"), interleaved=True) -> R.Tensor((1, n, 6), "float32")
        """

    @staticmethod
    def selu(data: _t.Any) -> _t.Any:
        """scale * (max(data, 0) + min(alpha * (exp(data) - 1), 0)) with the self-normalising constants.

        R.nn.selu(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
        R.nn.selu(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
        R.nn.selu(R.Tensor((n,), "float16")) -> R.Tensor((n,), "float16")
        """

    @staticmethod
    def silu(data: _t.Any) -> _t.Any:
        """data * sigmoid(data), elementwise.

        R.nn.silu(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
        R.nn.silu(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
        R.nn.silu(R.Tensor((n,), "float16")) -> R.Tensor((n,), "float16")
        """

    @staticmethod
    def softmax(data: _t.Any, axis: _t.Any = -1) -> _t.Any:
        """exp(data) divided by its sum along an axis, without overflow.

        R.nn.softmax(R.Tensor((2, 5), "float32")) -> R.Tensor((2, 5), "float32")
        R.nn.softmax(R.Tensor((n, m), "float32")) -> R.Tensor((n, m), "float32")
        R.nn.softmax(R.Tensor((n, 3, 4), "float32"), axis=1) -> R.Tensor((n, 3, 4), "float32")
        R.nn.softmax(R.Tensor((2, 70), "float16")) -> R.Tensor((2, 70), "float16")
        """

    @staticmethod
    def softplus(data: _t.Any, beta: _t.Any = 1.0, threshold: _t.Any = 20.0) -> _t.Any:
        """log(1 + exp(beta * data)) / beta, elementwise; data itself where beta * data exceeds the threshold.

        R.nn.softplus(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
        R.nn.softplus(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
        R.nn.softplus(R.Tensor((n,), "float16")) -> R.Tensor((n,), "float16")
        R.nn.softplus(R.Tensor((2, 3), "float32"), beta=2.0, threshold=1.0) -> R.Tensor((2, 3), "float32")
        """

    @staticmethod
    def softshrink(data: _t.Any, alpha: _t.Any = 0.5) -> _t.Any:
        """data moved towards 0 by alpha, 0 within.

        R.nn.softshrink(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
        R.nn.softshrink(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
        R.nn.softshrink(R.Tensor((5,), "float64")) -> R.Tensor((5,), "float64")
        """

    @staticmethod
    def softsign(data: _t.Any) -> _t.Any:
        """data / (1 + |data|).

        R.nn.softsign(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
        R.nn.softsign(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
        R.nn.softsign(R.Tensor((5,), "float64")) -> R.Tensor((5,), "float64")
        """

    @staticmethod
    def thresholded_relu(data: _t.Any, alpha: _t.Any = 1.0) -> _t.Any:
        """data where it is above alpha, else 0.

        R.nn.thresholded_relu(R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32")
        R.nn.thresholded_relu(R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32")
        R.nn.thresholded_relu(R.Tensor((5,), "float64")) -> R.Tensor((5,), "float64")
        """

    @staticmethod
    def unfold(data: _t.Any, kernel_size: _t.Any, strides: _t.Any = (1, 1), padding: _t.Any = (0, 0), dilation: _t.Any = (1, 1)) -> _t.Any:
        """The windows of the last two axes of (n, c, h, w) as columns: (n, c * kh * kw, windows); padding is 0 (im2col).

        R.nn.unfold(R.Tensor((1, 2, 4, 5), "float32"), kernel_size=[2, 3]) -> R.Tensor((1, 12, 9), "float32")
        R.nn.unfold(R.Tensor((n, 2, 4, 4), "float32"), kernel_size=[3, 2], strides=[2, 1], padding=[1, 0], dilation=[1, 2]) -> R.Tensor((n, 12, 4), "float32")
        """

class random:
    """Operators `R.random.*`."""

    @staticmethod
    def bernoulli(key: _t.Any, shape: _t.Any, p: _t.Any = 0.5) -> _t.Any:
        """True with probability p, that follow from a key; bool.

        R.random.bernoulli(R.Tensor((2,), "uint32"), (2, 3)) -> R.Tensor((2, 3), "bool")
        R.random.bernoulli(R.Tensor((2,), "uint32"), (n, 3)) -> R.Tensor((n, 3), "bool")
        """

    @staticmethod
    def bits(key: _t.Any, shape: _t.Any, stream: _t.Any = 0) -> _t.Any:
        """Random words of 32 bits that follow from a key; streams of one key are independent.

        R.random.bits(R.Tensor((2,), "uint32"), (2, 3)) -> R.Tensor((2, 3), "uint32")
        R.random.bits(R.Tensor((2,), "uint32"), (n, 3), stream=1) -> R.Tensor((n, 3), "uint32")
        """

    @staticmethod
    def exponential(key: _t.Any, shape: _t.Any, rate: _t.Any = 1.0) -> _t.Any:
        """Exponentially distributed float32 of a rate above 0, that follow from a key: -log(1 - u) / rate.

        R.random.exponential(R.Tensor((2,), "uint32"), (2, 3)) -> R.Tensor((2, 3), "float32")
        R.random.exponential(R.Tensor((2,), "uint32"), (n, 3)) -> R.Tensor((n, 3), "float32")
        """

    @staticmethod
    def integers(key: _t.Any, shape: _t.Any, low: _t.Any, high: _t.Any, dtype: _t.Any = 'int64') -> _t.Any:
        """Whole numbers from low up to high, which is left out, that follow from a key: word * (high - low) / 2**32.

            All are equally likely up to (high - low) / 2**32, at most 2**32 of them.

        R.random.integers(R.Tensor((2,), "uint32"), (2, 3), 0, 6) -> R.Tensor((2, 3), "int64")
        R.random.integers(R.Tensor((2,), "uint32"), (n,), -3, 4, 'int32') -> R.Tensor((n,), "int32")
        """

    @staticmethod
    def multinomial(key: _t.Any, probabilities: _t.Any, num_samples: _t.Any = 1, replacement: _t.Any = True) -> _t.Any:
        """Places chosen in each row by chances that are given, not necessarily of sum 1: (b, n) -> (b, num_samples), int64.

            Without replacement no place is chosen twice: those are chosen whose exponentially distributed waiting times, of
            rates that are the chances, end first.

        R.random.multinomial(R.Tensor((2,), "uint32"), R.Tensor((2, 5), "float32"), 4) -> R.Tensor((2, 4), "int64")
        R.random.multinomial(R.Tensor((2,), "uint32"), R.Tensor((n, 5), "float32"), 3, False) -> R.Tensor((n, 3), "int64")
        """

    @staticmethod
    def normal(key: _t.Any, shape: _t.Any, mean: _t.Any = 0.0, deviation: _t.Any = 1.0) -> _t.Any:
        """Normally distributed float32 that follow from a key, by Box and Muller.

        R.random.normal(R.Tensor((2,), "uint32"), (2, 3)) -> R.Tensor((2, 3), "float32")
        R.random.normal(R.Tensor((2,), "uint32"), (n, 3)) -> R.Tensor((n, 3), "float32")
        """

    @staticmethod
    def permutation(key: _t.Any, n: _t.Any) -> _t.Any:
        """The numbers from 0 up to n in an order that follows from a key; int64. Costs a sort.

        R.random.permutation(R.Tensor((2,), "uint32"), 7) -> R.Tensor((7,), "int64")
        R.random.permutation(R.Tensor((2,), "uint32"), (n,)) -> R.Tensor((n,), "int64")
        """

    @staticmethod
    def uniform(key: _t.Any, shape: _t.Any, low: _t.Any = 0.0, high: _t.Any = 1.0) -> _t.Any:
        """float32 in [low, high), equally likely, that follow from a key.

        R.random.uniform(R.Tensor((2,), "uint32"), (2, 3)) -> R.Tensor((2, 3), "float32")
        R.random.uniform(R.Tensor((2,), "uint32"), (n, 3)) -> R.Tensor((n, 3), "float32")
        """

class signal:
    """Operators `R.signal.*`."""

    @staticmethod
    def fft(x: _t.Any, length: _t.Any = None, axis: _t.Any = -2, inverse: _t.Any = False, norm: _t.Any = 'backward') -> _t.Any:
        """X[k] = sum of x[j] exp(-2 pi i j k / n) along an axis: (..., n, 1 or 2) -> (..., n, 2); the inverse is exp(2 pi i
        j k / n).

        length is n where it is not the size of the axis: values are left out, or zeros added. norm "backward" divides the
        inverse by n, "forward" the other, "ortho" each by the root. Errors: ShapeError W202, W203, W205; DTypeError W321.

        R.signal.fft(R.Tensor((b, 8, 1), "float32")) -> R.Tensor((b, 8, 2), "float32")
        R.signal.fft(R.Tensor((5, 3, 2), "float64"), axis=0, inverse=True) -> R.Tensor((5, 3, 2), "float64")
        R.signal.fft(R.Tensor((2, n, 2), "float32"), norm='ortho') -> R.Tensor((2, n, 2), "float32")
        R.signal.fft(R.Tensor((3, 2), "float32"), length=70) -> R.Tensor((70, 2), "float32")
        """

    @staticmethod
    def irfft(x: _t.Any, length: _t.Any = None, axis: _t.Any = -2, norm: _t.Any = 'backward') -> _t.Any:
        """The real values of which signal.rfft gives the transform: (..., m, 2) -> (..., length), by default 2 m - 2.

        Errors: ShapeError W202, W203, W205; DTypeError W321.

        R.signal.irfft(R.Tensor((b, 5, 2), "float32"), length=9) -> R.Tensor((b, 9), "float32")
        R.signal.irfft(R.Tensor((5, 2, 2), "float64"), axis=0) -> R.Tensor((8, 2), "float64")
        R.signal.irfft(R.Tensor((2, n, 2), "float32")) -> R.Tensor((2, 2 * n - 2), "float32")
        R.signal.irfft(R.Tensor((1, 40, 2), "float32"), length=78, norm='ortho') -> R.Tensor((1, 78), "float32")
        """

    @staticmethod
    def istft(x: _t.Any, window: _t.Any, step: _t.Any, onesided: _t.Any = True) -> _t.Any:
        """The signal of which signal.stft has these transforms, as near as squares go: (..., f, bins, 2), (n,) -> (...,
            (f - 1) step + n).

            Frames are transformed back, times the window, added where they overlap, and divided by the sum of the squared
            windows there; where that is not above 1e-11 the signal is 0. bins are n // 2 + 1 where it is onesided, else n.
            Errors: ShapeError W201, W202, W205; DTypeError W320, W321.

            Source: Griffin and Lim, Signal estimation from modified short-time Fourier transform, 1984.

        R.signal.istft(R.Tensor((b, 4, 5, 2), "float32"), R.Tensor((8,), "float32"), 4) -> R.Tensor((b, 20), "float32")
        R.signal.istft(R.Tensor((n, 5, 2), "float64"), R.Tensor((5,), "float64"), 2, onesided=False) -> R.Tensor((2 * n + 3,), "float64")
        R.signal.istft(R.Tensor((2, 3, 4, 2), "float32"), R.Tensor((7,), "float32"), 9) -> R.Tensor((2, 25), "float32")
        """

    @staticmethod
    def mel_weight_matrix(num_mel_bins: _t.Any, dft_length: _t.Any, sample_rate: _t.Any, lower_edge_hertz: _t.Any, upper_edge_hertz: _t.Any, dtype: _t.Any = 'float32') -> _t.Any:
        """Weights by which bins of a transform are joined to bands of equal width in mels: (dft_length // 2 + 1,
            num_mel_bins).

            The bands are triangles between num_mel_bins + 2 edges from lower_edge_hertz on; 1 mel is 700 (10**(m / 2595) - 1)
            hertz, and the edges are rounded down to bins. The edges are computed in float64.
            Errors: ShapeError W205; DTypeError W321.

            Source: MelWeightMatrix of ONNX; Stevens, Volkmann and Newman, A scale for the measurement of pitch, 1937.

        R.signal.mel_weight_matrix(8, 16, 8192, 0.0, 4096.0) -> R.Tensor((9, 8), "float32")
        R.signal.mel_weight_matrix(bands, 64, 16000, 20.0, 7600.0, 'float64') -> R.Tensor((33, bands), "float64")
        R.signal.mel_weight_matrix(5, n, 8000, 100.0, 3000.0) -> R.Tensor((n // 2 + 1, 5), "float32")
        """

    @staticmethod
    def overlap_add(frames: _t.Any, step: _t.Any) -> _t.Any:
        """The signal whose frames, one every `step` values, are added where they overlap: (..., f, n) -> (..., (f - 1) step
        + n).

        Errors: ShapeError W202, W205 a step below 1 or no frame; DTypeError W321.

        R.signal.overlap_add(R.Tensor((2, 3, 8), "float32"), 4) -> R.Tensor((2, 16), "float32")
        R.signal.overlap_add(R.Tensor((b, n, m), "float32"), 3) -> R.Tensor((b, m + 3 * n - 3), "float32")
        R.signal.overlap_add(R.Tensor((4, 2), "int32"), 3) -> R.Tensor((11,), "int32")
        R.signal.overlap_add(R.Tensor((3, 7), "float16"), 1) -> R.Tensor((9,), "float16")
        """

    @staticmethod
    def rfft(x: _t.Any, length: _t.Any = None, axis: _t.Any = -1, norm: _t.Any = 'backward') -> _t.Any:
        """The first half of the transform of real values, which says the rest: (..., n) -> (..., n // 2 + 1, 2).

        length and norm are those of signal.fft. Errors: ShapeError W202, W203, W205; DTypeError W321.

        R.signal.rfft(R.Tensor((b, 75), "float32")) -> R.Tensor((b, 38, 2), "float32")
        R.signal.rfft(R.Tensor((5, 2), "float64"), axis=0, norm='forward') -> R.Tensor((3, 2, 2), "float64")
        R.signal.rfft(R.Tensor((2, n), "float32")) -> R.Tensor((2, n // 2 + 1, 2), "float32")
        R.signal.rfft(R.Tensor((2, 9), "float32"), length=6) -> R.Tensor((2, 4, 2), "float32")
        """

    @staticmethod
    def stft(x: _t.Any, window: _t.Any, step: _t.Any, onesided: _t.Any = True) -> _t.Any:
        """Transforms of the frames of a signal, one every `step` values, each times the window: (..., t), (n,) -> (...,
        (t - n) // step + 1, n // 2 + 1, 2), with n bins where it is not onesided.

        Errors: ShapeError W201 a window longer than x, W202, W205; DTypeError W320, W321.

        R.signal.stft(R.Tensor((b, 20), "float32"), R.Tensor((8,), "float32"), 4) -> R.Tensor((b, 4, 5, 2), "float32")
        R.signal.stft(R.Tensor((17,), "float64"), R.Tensor((5,), "float64"), 5, onesided=False) -> R.Tensor((3, 5, 2), "float64")
        """

class vision:
    """Operators `R.vision.*`."""

    @staticmethod
    def all_class_non_max_suppression(boxes: _t.Any, scores: _t.Any, max_output_boxes_per_class: _t.Any, iou_threshold: _t.Any, score_threshold: _t.Any, output_format: _t.Any = 'onnx') -> _t.Any:
        """Boxes that overlap no better one of their class, for every class.

        boxes (b, n, 4), scores (b, c, n). "onnx": rows (image, class, box) of shape (b * c * n, 3) and their number (1,);
        "tensorflow": rows (class, box) of shape (b, c * n, 2), their scores (b, c * n), and a number per image (b,). The
        boxes of a class whose score is over score_threshold are taken by descending score, at most
        max_output_boxes_per_class of them; one that is taken suppresses those whose overlap with it is at least
        iou_threshold. Each of the three is one number. The results are filled up with 0.

        R.vision.all_class_non_max_suppression(R.Tensor((b, n, 4), "float32"), R.Tensor((b, 3, n), "float32"), R.Tensor((), "int64"), R.Tensor((), "float32"), R.Tensor((), "float32")) -> R.Tuple(R.Tensor((3 * b * n, 3), "int64"), R.Tensor((1,), "int64"))
        R.vision.all_class_non_max_suppression(R.Tensor((2, 5, 4), "float32"), R.Tensor((2, 2, 5), "float32"), R.Tensor((1,), "int64"), R.Tensor((1,), "float32"), R.Tensor((1,), "float32"), 'tensorflow') -> R.Tuple(R.Tensor((2, 10, 2), "int64"), R.Tensor((2, 10), "float32"), R.Tensor((2,), "int64"))
        R.vision.all_class_non_max_suppression(R.Tensor((b, n, 4), "float32"), R.Tensor((b, c, n), "float32"), R.Tensor((), "int64"), R.Tensor((), "float32"), R.Tensor((), "float32"), 'tensorflow') -> R.Tuple(R.Tensor((b, c * n, 2), "int64"), R.Tensor((b, c * n), "float32"), R.Tensor((b,), "int64"))
        R.vision.all_class_non_max_suppression(R.Tensor((1, 6, 4), "float32"), R.Tensor((1, 2, 6), "float32"), 2, 0.5, 0.25) -> R.Tuple(R.Tensor((12, 3), "int64"), R.Tensor((1,), "int64"))
        """

    @staticmethod
    def get_valid_counts(data: _t.Any, score_threshold: _t.Any = 0.0, id_index: _t.Any = 0, score_index: _t.Any = 1) -> _t.Any:
        """Boxes whose score is over a threshold: (their number per image, the boxes moved to the front, their indices).

        data (b, n, e), rows of class, score and corners -> ((b,), (b, n, e), (b, n)), counts and indices int32.

        R.vision.get_valid_counts(R.Tensor((2, 7, 6), "float32"), 0.2) -> R.Tuple(R.Tensor((2,), "int32"), R.Tensor((2, 7, 6), "float32"), R.Tensor((2, 7), "int32"))
        R.vision.get_valid_counts(R.Tensor((b, n, 5), "float32"), 0.0, -1, 4) -> R.Tuple(R.Tensor((b,), "int32"), R.Tensor((b, n, 5), "float32"), R.Tensor((b, n), "int32"))
        R.vision.get_valid_counts(R.Tensor((1, 4, 3), "float32"), 9.0, 2, 0) -> R.Tuple(R.Tensor((1,), "int32"), R.Tensor((1, 4, 3), "float32"), R.Tensor((1, 4), "int32"))
        """

    @staticmethod
    def multibox_transform_loc(cls_pred: _t.Any, loc_pred: _t.Any, anchor: _t.Any, clip: _t.Any = False, threshold: _t.Any = 0.0, variances: _t.Any = (1.0, 1.0, 1.0, 1.0), keep_background: _t.Any = True, apply_softmax: _t.Any = True) -> _t.Any:
        """Boxes from anchors and predicted offsets, with the scores of every class.

        cls_pred (b, c, n), loc_pred (b, 4 * n) as (x, y, w, h), anchor (1, n, 4) as (left, top, right, bottom) -> boxes
        (b, n, 4) as (top, left, bottom, right), scores (b, c, n). Offsets are multiplied by the variances; scores below the
        threshold are 0, after softmax over the classes, and those of class 0 without keep_background.

        R.vision.multibox_transform_loc(R.Tensor((2, 3, 5), "float32"), R.Tensor((2, 20), "float32"), R.Tensor((1, 5, 4), "float32")) -> R.Tuple(R.Tensor((2, 5, 4), "float32"), R.Tensor((2, 3, 5), "float32"))
        R.vision.multibox_transform_loc(R.Tensor((b, 4, n), "float32"), R.Tensor((b, 4 * n), "float32"), R.Tensor((1, n, 4), "float32"), clip=True, threshold=0.3, variances=(0.1, 0.2, 0.3, 0.4)) -> R.Tuple(R.Tensor((b, n, 4), "float32"), R.Tensor((b, 4, n), "float32"))
        R.vision.multibox_transform_loc(R.Tensor((1, 2, 3), "float32"), R.Tensor((1, 12), "float32"), R.Tensor((1, 3, 4), "float32"), keep_background=False, apply_softmax=False) -> R.Tuple(R.Tensor((1, 3, 4), "float32"), R.Tensor((1, 2, 3), "float32"))
        """

    @staticmethod
    def non_max_suppression(data: _t.Any, valid_count: _t.Any, indices: _t.Any, max_output_size: _t.Any = -1, iou_threshold: _t.Any = 0.5, force_suppress: _t.Any = False, top_k: _t.Any = -1, coord_start: _t.Any = 2, score_index: _t.Any = 1, id_index: _t.Any = 0, return_indices: _t.Any = True, invalid_to_bottom: _t.Any = False, soft_nms_sigma: _t.Any = 0.0, score_threshold: _t.Any = 0.0) -> _t.Any:
        """Boxes that overlap no better one: their indices (b, n) and number (b, 1), or the boxes themselves.

        data (b, n, e), of which the first valid_count of an image count and only the top_k best of these where it is over
        0. Boxes whose score is over 0 are taken by descending score, at most max_output_size where it is over 0; one that
        is taken suppresses those whose overlap with it is at least iou_threshold, of the same class unless id_index is
        below 0 or force_suppress holds. The results are filled up with -1. Without return_indices: the boxes in the order
        of their scores, each in its place, or moved to the front with invalid_to_bottom. With soft_nms_sigma an overlap
        below the threshold multiplies the score by exp(-overlap**2 / (2 * soft_nms_sigma)), boxes count while their score
        is over score_threshold, and the boxes with their new scores, at the front, come before the indices and the number.

        R.vision.non_max_suppression(R.Tensor((b, n, 6), "float32"), R.Tensor((b,), "int32"), R.Tensor((b, n), "int32")) -> R.Tuple(R.Tensor((b, n), "int32"), R.Tensor((b, 1), "int32"))
        R.vision.non_max_suppression(R.Tensor((2, 9, 6), "float32"), R.Tensor((2,), "int32"), R.Tensor((2, 9), "int32"), 2, 0.2, True, 6) -> R.Tuple(R.Tensor((2, 9), "int32"), R.Tensor((2, 1), "int32"))
        R.vision.non_max_suppression(R.Tensor((b, 7, 6), "float32"), R.Tensor((b,), "int32"), R.Tensor((b, 7), "int32"), return_indices=False) -> R.Tensor((b, 7, 6), "float32")
        R.vision.non_max_suppression(R.Tensor((b, n, 5), "float32"), R.Tensor((b,), "int32"), R.Tensor((b, n), "int32"), iou_threshold=0.1, id_index=-1, coord_start=1, score_index=0, return_indices=False, invalid_to_bottom=True) -> R.Tensor((b, n, 5), "float32")
        R.vision.non_max_suppression(R.Tensor((b, n, 6), "float32"), R.Tensor((b,), "int32"), R.Tensor((b, n), "int32"), soft_nms_sigma=0.5, score_threshold=0.2, max_output_size=3) -> R.Tuple(R.Tensor((b, n, 6), "float32"), R.Tensor((b, n), "int32"), R.Tensor((b, 1), "int32"))
        R.vision.non_max_suppression(R.Tensor((2, 5, 6), "float64"), R.Tensor((2,), "int64"), R.Tensor((2, 5), "int64"), soft_nms_sigma=0.3, id_index=-1, return_indices=False) -> R.Tensor((2, 5, 6), "float64")
        """

    @staticmethod
    def roi_align(data: _t.Any, rois: _t.Any, pooled_size: _t.Any, spatial_scale: _t.Any, sample_ratio: _t.Any = -1, aligned: _t.Any = False, layout: _t.Any = 'NCHW', mode: _t.Any = 'avg') -> _t.Any:
        """Each region cut into pooled_size bins, of whose values between elements the mean (avg) or the greatest (max) is
        taken: data (n, c, h, w), rois (r, 5) -> (r, c, y, x).

        A bin has sample_ratio samples along an axis, as many as it has elements when that is not positive. Unless aligned,
        a region is at least one element large. A bin without samples is 0.

        R.vision.roi_align(R.Tensor((1, 2, 6, 5), "float32"), R.Tensor((3, 5), "float32"), (2, 3), 5.0) -> R.Tensor((3, 2, 2, 3), "float32")
        R.vision.roi_align(R.Tensor((1, 1, h, 4), "float32"), R.Tensor((r, 5), "float32"), 2, 4.0, sample_ratio=2, aligned=True, mode='max') -> R.Tensor((r, 1, 2, 2), "float32")
        R.vision.roi_align(R.Tensor((1, 4, 5, 2), "float32"), R.Tensor((2, 5), "float32"), (2, 2), 6.0, layout='NHWC') -> R.Tensor((2, 2, 2, 2), "float32")
        """

    @staticmethod
    def roi_pool(data: _t.Any, rois: _t.Any, pooled_size: _t.Any, spatial_scale: _t.Any, layout: _t.Any = 'NCHW') -> _t.Any:
        """Each region, rounded to whole elements (halves away from zero), cut into pooled_size bins, of which the greatest
        element is taken: data (n, c, h, w), rois (r, 5) -> (r, c, y, x).

        A bin without elements is 0.

        R.vision.roi_pool(R.Tensor((1, 2, 6, 5), "float32"), R.Tensor((3, 5), "float32"), (2, 3), 6.0) -> R.Tensor((3, 2, 2, 3), "float32")
        R.vision.roi_pool(R.Tensor((1, 1, h, 4), "float32"), R.Tensor((r, 5), "float32"), 2, 5.0) -> R.Tensor((r, 1, 2, 2), "float32")
        R.vision.roi_pool(R.Tensor((1, 4, 5, 2), "float32"), R.Tensor((2, 5), "float32"), (2, 2), 6.0, layout='NHWC') -> R.Tensor((2, 2, 2, 2), "float32")
        """

class vm:
    """Operators `R.vm.*`."""

    @staticmethod
    def alloc_storage(size: _t.Any, runtime_device_index: _t.Any = 0, dtype: _t.Any = 'uint8', storage_scope: _t.Any = 'global') -> _t.Any:
        """A block of memory from the virtual machine's pool."""

    @staticmethod
    def alloc_tensor(storage: _t.Any, offset: _t.Any, shape: _t.Any, dtype: _t.Any, runtime_device_index: _t.Any = 0) -> _t.Any:
        """A tensor at an offset in a block of memory of the virtual machine."""

    @staticmethod
    def call_tir_dyn(func: _t.Any, args: _t.Any) -> _t.Any:
        """Call a kernel with the inputs, the outputs and a shape whose sizes are its scalar parameters."""

    @staticmethod
    def kill_object(obj: _t.Any) -> _t.Any:
        """The value is not used after this."""
