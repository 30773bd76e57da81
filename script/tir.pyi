"""The namespace `T`: tensor-level functions, buffers, expressions. Written from the declarations; do not edit."""

import builtins as _b
import typing as _t
from contextlib import AbstractContextManager as _Context

from weft.script.checked.inline.typing_extensions import no_type_check as _inline
from weft.script.checked.macro.typing_extensions import no_type_check as _macro
from weft.script.checked.tensor.typing_extensions import no_type_check as _prim_func


prim_func = _prim_func
macro = _macro
inline = _inline

class _DType:
    """A dtype: makes constants, casts, and without a value a new symbol."""

    name: _b.str
    def __call__(self, value: _t.Any = None) -> _t.Any: ...

bool: _DType
int4: _DType
int8: _DType
int16: _DType
int32: _DType
int64: _DType
uint4: _DType
uint8: _DType
uint16: _DType
uint32: _DType
uint64: _DType
float16: _DType
float32: _DType
float64: _DType
bfloat16: _DType
float8_e4m3fn: _DType
float8_e5m2: _DType
int8x2: _DType
int8x4: _DType
int8x8: _DType
int8x16: _DType
int8x32: _DType
int8x64: _DType
int32x2: _DType
int32x4: _DType
int32x8: _DType
int32x16: _DType
int32x32: _DType
int32x64: _DType
uint8x2: _DType
uint8x4: _DType
uint8x8: _DType
uint8x16: _DType
uint8x32: _DType
uint8x64: _DType
float16x2: _DType
float16x4: _DType
float16x8: _DType
float16x16: _DType
float16x32: _DType
float16x64: _DType
float32x2: _DType
float32x4: _DType
float32x8: _DType
float32x16: _DType
float32x32: _DType
float32x64: _DType

def Broadcast(value: _t.Any, lanes: _t.Any) -> _t.Any:
    """A scalar in every lane."""

class _BufferForm:
    """A buffer: sizes are ints, expressions, or names of symbols."""

    def __call__(self, shape: _t.Any, dtype: _t.Any = 'float32', *, data: _t.Any = None, strides: _t.Any = None, elem_offset: _t.Any = None, scope: _t.Any = 'global', align: _t.Any = 0, offset_factor: _t.Any = 0, axis_separators: _t.Any = ()) -> _t.Any:
        """A buffer: sizes are ints, expressions, or names of symbols."""
    def __getitem__(self, parts: _t.Any) -> _t.Any: ...

Buffer: _BufferForm

def Cast(dtype: _t.Any, value: _t.Any) -> _t.Any:
    """A value converted to a dtype."""

def Let(body: _t.Any, *, where: _t.Any) -> _t.Any:
    """body with variables standing for values."""

def LetStmt(value: _t.Any, var: _t.Any = None, *, type_annotation: _t.Any = None) -> _Context[_t.Any]:
    """A name for a value."""

def Ramp(base: _t.Any, stride: _t.Any, lanes: _t.Any) -> _t.Any:
    """The vector base, base + stride, ..."""

def Select(condition: _t.Any, true_value: _t.Any, false_value: _t.Any) -> _t.Any:
    """One of two values, both evaluated."""

def Shuffle(vectors: _t.Any, indices: _t.Any) -> _t.Any:
    """Lanes picked from vectors."""

def StringImm(value: _t.Any) -> _t.Any:
    """A string."""

def alloc_buffer(shape: _t.Any, dtype: _t.Any = 'float32', *, data: _t.Any = None, strides: _t.Any = None, elem_offset: _t.Any = None, scope: _t.Any = 'global', align: _t.Any = 0, offset_factor: _t.Any = 0, axis_separators: _t.Any = (), block: _t.Any = True, annotations: _t.Any = ...) -> _t.Any:
    """A temporary buffer."""

def alloc_local(shape: _t.Any, dtype: _t.Any = 'float32', *, data: _t.Any = None, strides: _t.Any = None, elem_offset: _t.Any = None, align: _t.Any = 0, offset_factor: _t.Any = 0, axis_separators: _t.Any = (), annotations: _t.Any = ...) -> _t.Any:
    """A temporary buffer in local memory."""

def alloc_scalar(dtype: _t.Any = 'float32', scope: _t.Any = 'global') -> _t.Any:
    """A variable in the memory of a scope."""

def alloc_shared(shape: _t.Any, dtype: _t.Any = 'float32', *, data: _t.Any = None, strides: _t.Any = None, elem_offset: _t.Any = None, align: _t.Any = 0, offset_factor: _t.Any = 0, axis_separators: _t.Any = (), annotations: _t.Any = ...) -> _t.Any:
    """A temporary buffer in shared memory."""

def allocate(shape: _t.Any, dtype: _t.Any = 'float32', scope: _t.Any = 'global', condition: _t.Any = None, *, annotations: _t.Any = ...) -> _t.Any:
    """A temporary buffer."""

def allocate_const(data: _t.Any, dtype: _t.Any, shape: _t.Any, *, annotations: _t.Any = ...) -> _t.Any:
    """Memory with known content."""

def attr(node: _t.Any, key: _t.Any, value: _t.Any) -> _Context[_t.Any]:
    """An attribute of a node, for the statements inside or after."""

def bind(value: _t.Any, var: _t.Any = None) -> _t.Any:
    """A name for a value."""

def block(name: _t.Any = '', *, no_realize: _t.Any = False) -> _Context[_t.Any]:
    """A unit of computation over iteration variables."""

def block_attr(attrs: _t.Any) -> _t.Any:
    """Attributes of the block."""

def call_intrin(dtype: _t.Any, op: _t.Any, *args: _t.Any, attrs: _t.Any = ...) -> _t.Any:
    """A call of an intrinsic by name."""

def decl_buffer(shape: _t.Any, dtype: _t.Any = 'float32', *, data: _t.Any = None, strides: _t.Any = None, elem_offset: _t.Any = None, scope: _t.Any = 'global', align: _t.Any = 0, offset_factor: _t.Any = 0, axis_separators: _t.Any = ()) -> _t.Any:
    """A buffer over memory that exists."""

def decl_scalar(dtype: _t.Any, data: _t.Any = None, scope: _t.Any = 'global', elem_offset: _t.Any = None) -> _t.Any:
    """A variable in memory that exists."""

def evaluate(value: _t.Any) -> _t.Any:
    """An expression for its effect."""

def func_attr(attrs: _t.Any) -> _t.Any:
    """Attributes of the function."""

def grid(*extents: _t.Any) -> _t.Iterator[_t.Any]:
    """Nested loops, one variable each (a single name stands for the tuple of all)."""

def init() -> _Context[_t.Any]:
    """What runs before the first step of a reduction."""

def launch_thread(thread: _t.Any, extent: _t.Any) -> _t.Any:
    """A thread axis around the rest of the block."""

def local_scalar(dtype: _t.Any = 'float32') -> _t.Any:
    """A local variable."""

def match_buffer(source: _t.Any, shape: _t.Any = None, dtype: _t.Any = 'float32', *, data: _t.Any = None, strides: _t.Any = None, elem_offset: _t.Any = None, scope: _t.Any = 'global', align: _t.Any = 0, offset_factor: _t.Any = 0, axis_separators: _t.Any = ()) -> _t.Any:
    """A buffer over the memory of a handle parameter, or over a region of another buffer."""

def parallel(start: _t.Any, stop: _t.Any = None, *, step: _t.Any = None, annotations: _t.Any = ..., dtype: _t.Any = None, extent: _t.Any = None) -> _t.Iterator[_t.Any]:
    """A loop whose rounds may run at the same time."""

def reads(*regions: _t.Any) -> _t.Any:
    """What the block reads; derived where it is not stated."""

def seq() -> _Context[_t.Any]:
    """Statements kept together."""

def serial(start: _t.Any, stop: _t.Any = None, *, step: _t.Any = None, annotations: _t.Any = ..., dtype: _t.Any = None, extent: _t.Any = None) -> _t.Iterator[_t.Any]:
    """A loop."""

def shared_scalar(dtype: _t.Any = 'float32') -> _t.Any:
    """A variable in shared memory."""

def thread_binding(start: _t.Any, stop: _t.Any = None, thread: _t.Any = '', *, step: _t.Any = None, annotations: _t.Any = ..., dtype: _t.Any = None, extent: _t.Any = None) -> _t.Iterator[_t.Any]:
    """A loop whose rounds are threads of a device."""

def unroll(start: _t.Any, stop: _t.Any = None, *, step: _t.Any = None, annotations: _t.Any = ..., dtype: _t.Any = None, extent: _t.Any = None) -> _t.Iterator[_t.Any]:
    """A loop that is written out."""

def vectorized(start: _t.Any, stop: _t.Any = None, *, step: _t.Any = None, annotations: _t.Any = ..., dtype: _t.Any = None, extent: _t.Any = None) -> _t.Iterator[_t.Any]:
    """A loop of one vector operation."""

def where(predicate: _t.Any) -> _t.Any:
    """When the block runs."""

def writes(*regions: _t.Any) -> _t.Any:
    """What the block writes; derived where it is not stated."""

class axis:
    """Iteration variables of a block."""

    @staticmethod
    def spatial(extent: _t.Any, value: _t.Any = None, *, start: _t.Any = 0, dtype: _t.Any = None) -> _t.Any:
        """An iteration variable each of whose values is a result of its own."""

    @staticmethod
    def reduce(extent: _t.Any, value: _t.Any = None, *, start: _t.Any = 0, dtype: _t.Any = None) -> _t.Any:
        """An iteration variable that is summed over."""

    @staticmethod
    def scan(extent: _t.Any, value: _t.Any = None, *, start: _t.Any = 0, dtype: _t.Any = None) -> _t.Any:
        """An iteration variable that runs in order."""

    @staticmethod
    def opaque(extent: _t.Any, value: _t.Any = None, *, start: _t.Any = 0, dtype: _t.Any = None) -> _t.Any:
        """An iteration variable of unknown kind."""

    @staticmethod
    def remap(kinds: _t.Any, values: _t.Any) -> _t.Any:
        """Iteration variables of given kinds (S spatial, R reduce) for enclosing loops."""
    S = spatial
    R = reduce

def Add(a: _t.Any, b: _t.Any) -> _t.Any:
    """`a + b`."""

def And(a: _t.Any, b: _t.Any) -> _t.Any:
    """`a and b`."""

def bitwise_and(a: _t.Any, b: _t.Any) -> _t.Any:
    """`a & b`."""

def bitwise_or(a: _t.Any, b: _t.Any) -> _t.Any:
    """`a | b`."""

def bitwise_xor(a: _t.Any, b: _t.Any) -> _t.Any:
    """`a ^ b`."""

def Div(a: _t.Any, b: _t.Any) -> _t.Any:
    """`a / b`."""

def EQ(a: _t.Any, b: _t.Any) -> _t.Any:
    """`a == b`."""

def floordiv(a: _t.Any, b: _t.Any) -> _t.Any:
    """`a // b`."""

def floormod(a: _t.Any, b: _t.Any) -> _t.Any:
    """`a % b`."""

def GE(a: _t.Any, b: _t.Any) -> _t.Any:
    """`a >= b`."""

def GT(a: _t.Any, b: _t.Any) -> _t.Any:
    """`a > b`."""

def LE(a: _t.Any, b: _t.Any) -> _t.Any:
    """`a <= b`."""

def LT(a: _t.Any, b: _t.Any) -> _t.Any:
    """`a < b`."""

def max(a: _t.Any, b: _t.Any) -> _t.Any:
    """The max of a and b."""

def min(a: _t.Any, b: _t.Any) -> _t.Any:
    """The min of a and b."""

def Mul(a: _t.Any, b: _t.Any) -> _t.Any:
    """`a * b`."""

def NE(a: _t.Any, b: _t.Any) -> _t.Any:
    """`a != b`."""

def Or(a: _t.Any, b: _t.Any) -> _t.Any:
    """`a or b`."""

def shift_left(a: _t.Any, b: _t.Any) -> _t.Any:
    """`a << b`."""

def shift_right(a: _t.Any, b: _t.Any) -> _t.Any:
    """`a >> b`."""

def Sub(a: _t.Any, b: _t.Any) -> _t.Any:
    """`a - b`."""

def truncdiv(a: _t.Any, b: _t.Any) -> _t.Any:
    """The truncdiv of a and b."""

def truncmod(a: _t.Any, b: _t.Any) -> _t.Any:
    """The truncmod of a and b."""

def bitwise_not(a: _t.Any) -> _t.Any:
    """`~a`."""

def neg(a: _t.Any) -> _t.Any:
    """`-a`."""

def Not(a: _t.Any) -> _t.Any:
    """`not a`."""

def TVMBackendAllocWorkspace(*args: _t.Any, dtype: _t.Any = None) -> _t.Any:
    """The intrinsic TVMBackendAllocWorkspace."""

def TVMBackendFreeWorkspace(*args: _t.Any, dtype: _t.Any = None) -> _t.Any:
    """The intrinsic TVMBackendFreeWorkspace."""

def abs(a: _t.Any) -> _t.Any:
    """the absolute value The result has the dtype of the operands."""

def access_ptr(*args: _t.Any, dtype: _t.Any = None) -> _t.Any:
    """The intrinsic access_ptr."""

def acos(a: _t.Any) -> _t.Any:
    """the inverse cosine Operands are floating; the result has their dtype."""

def acosh(a: _t.Any) -> _t.Any:
    """the inverse hyperbolic cosine Operands are floating; the result has their dtype."""

def address_of(*args: _t.Any, dtype: _t.Any = None) -> _t.Any:
    """The intrinsic address_of."""

def asin(a: _t.Any) -> _t.Any:
    """the inverse sine Operands are floating; the result has their dtype."""

def asinh(a: _t.Any) -> _t.Any:
    """the inverse hyperbolic sine Operands are floating; the result has their dtype."""

def assume(a: _t.Any, *, dtype: _t.Any = None) -> _t.Any:
    """The intrinsic assume."""

def atan(a: _t.Any) -> _t.Any:
    """the inverse tangent Operands are floating; the result has their dtype."""

def atan2(a: _t.Any, b: _t.Any) -> _t.Any:
    """the angle of the point (b, a) Operands are floating; the result has their dtype."""

def atanh(a: _t.Any) -> _t.Any:
    """the inverse hyperbolic tangent Operands are floating; the result has their dtype."""

def call_cpacked(*args: _t.Any, dtype: _t.Any = None) -> _t.Any:
    """The intrinsic call_cpacked."""

def call_cpacked_lowered(*args: _t.Any, dtype: _t.Any = None) -> _t.Any:
    """The intrinsic call_cpacked_lowered."""

def call_extern(*args: _t.Any, dtype: _t.Any = None) -> _t.Any:
    """The intrinsic call_extern."""

def call_kernel(*args: _t.Any, dtype: _t.Any = None) -> _t.Any:
    """The intrinsic call_kernel."""

def call_llvm_intrin(*args: _t.Any, dtype: _t.Any = None) -> _t.Any:
    """The intrinsic call_llvm_intrin."""

def call_llvm_pure_intrin(*args: _t.Any, dtype: _t.Any = None) -> _t.Any:
    """The intrinsic call_llvm_pure_intrin."""

def call_packed(*args: _t.Any, dtype: _t.Any = None) -> _t.Any:
    """The intrinsic call_packed."""

def call_packed_lowered(*args: _t.Any, dtype: _t.Any = None) -> _t.Any:
    """The intrinsic call_packed_lowered."""

def call_pure_extern(*args: _t.Any, dtype: _t.Any = None) -> _t.Any:
    """The intrinsic call_pure_extern."""

def ceil(a: _t.Any) -> _t.Any:
    """the least whole number not below a Operands are floating; the result has their dtype."""

def clz(a: _t.Any) -> _t.Any:
    """how many bits are clear before the highest that is set Operands are integers; the result has their dtype."""

def complex(a: _t.Any, b: _t.Any) -> _t.Any:
    """the number of the real part a and the imaginary part b"""

def conj(a: _t.Any) -> _t.Any:
    """the number of the other sign of the imaginary part"""

def copysign(a: _t.Any, b: _t.Any) -> _t.Any:
    """a with the sign of b Operands are floating; the result has their dtype."""

def cos(a: _t.Any) -> _t.Any:
    """the cosine Operands are floating; the result has their dtype."""

def cosh(a: _t.Any) -> _t.Any:
    """the hyperbolic cosine Operands are floating; the result has their dtype."""

def dot_product(a: _t.Any, b: _t.Any, c: _t.Any) -> _t.Any:
    """each sum in a with the products of its group of elements of b and c added The result has the dtype of the operands."""

def dp4a(*args: _t.Any, dtype: _t.Any = None) -> _t.Any:
    """The intrinsic dp4a."""

def end_profile_intrinsic(a: _t.Any, *, dtype: _t.Any = None) -> _t.Any:
    """the loop of a number is over"""

def erf(a: _t.Any) -> _t.Any:
    """the error function Operands are floating; the result has their dtype."""

def exp(a: _t.Any) -> _t.Any:
    """e to the power of a Operands are floating; the result has their dtype."""

def exp10(a: _t.Any) -> _t.Any:
    """10 to the power of a Operands are floating; the result has their dtype."""

def exp2(a: _t.Any) -> _t.Any:
    """2 to the power of a Operands are floating; the result has their dtype."""

def fabs(a: _t.Any) -> _t.Any:
    """the absolute value Operands are floating; the result has their dtype."""

def floor(a: _t.Any) -> _t.Any:
    """the greatest whole number not above a Operands are floating; the result has their dtype."""

def fma(a: _t.Any, b: _t.Any, c: _t.Any) -> _t.Any:
    """a * b + c, rounded once Operands are floating; the result has their dtype."""

def fmod(a: _t.Any, b: _t.Any) -> _t.Any:
    """what is left of a / b truncated, with the sign of a Operands are floating; the result has their dtype."""

def get_active_lane_mask(*args: _t.Any, dtype: _t.Any = None) -> _t.Any:
    """The intrinsic get_active_lane_mask."""

def handle_add_byte_offset(a: _t.Any, b: _t.Any, *, dtype: _t.Any = None) -> _t.Any:
    """The intrinsic handle_add_byte_offset."""

def has_intrinsic(a: _t.Any, b: _t.Any, *, dtype: _t.Any = None) -> _t.Any:
    """whether code for the target has an intrinsic that few machines have, over a dtype; known when it is compiled"""

def hypot(a: _t.Any, b: _t.Any) -> _t.Any:
    """the length of the vector (a, b) Operands are floating; the result has their dtype."""

def if_then_else(a: _t.Any, b: _t.Any, c: _t.Any) -> _t.Any:
    """lazy: only the chosen value is evaluated"""

def ignore_loop_partition(*args: _t.Any, dtype: _t.Any = None) -> _t.Any:
    """The intrinsic ignore_loop_partition."""

def imag(a: _t.Any) -> _t.Any:
    """the imaginary part"""

def isfinite(a: _t.Any) -> _t.Any:
    """whether a is neither infinite nor nan The result is a bool."""

def isinf(a: _t.Any) -> _t.Any:
    """whether a is an infinity The result is a bool."""

def isnan(a: _t.Any) -> _t.Any:
    """whether a is not a number The result is a bool."""

def isnullptr(a: _t.Any, *, dtype: _t.Any = None) -> _t.Any:
    """whether a pointer points to nothing"""

def keep_keys(a: _t.Any, b: _t.Any, c: _t.Any, d: _t.Any, e: _t.Any, f: _t.Any, g: _t.Any, *, dtype: _t.Any = None) -> _t.Any:
    """the keys, as sort_keys takes them, of those elements whose keys lie from one to another: (to, counts, from, how many, the one, the other, descending); counts (uint64) are how many keys lie before, how many there are, and the greatest of all; -0.0 and 0.0 have one key, and all nan have the greatest (descending: the least)"""

def keep_positions(a: _t.Any, b: _t.Any, c: _t.Any, d: _t.Any, e: _t.Any, *, dtype: _t.Any = None) -> _t.Any:
    """the positions (int64) of those elements that are not zero: (to, counts, from, how many, room); counts (int64) are how many there are, of which those are written that there is room for; what is left of the room is anything"""

def ldexp(a: _t.Any, b: _t.Any) -> _t.Any:
    """a times 2 to the power of b Operands are floating; the result has their dtype."""

def likely(a: _t.Any) -> _t.Any:
    """a, which is expected to hold The result is a bool."""

def llvm_lookup_intrinsic_id(*args: _t.Any, dtype: _t.Any = None) -> _t.Any:
    """The intrinsic llvm_lookup_intrinsic_id."""

def log(a: _t.Any) -> _t.Any:
    """the natural logarithm Operands are floating; the result has their dtype."""

def log10(a: _t.Any) -> _t.Any:
    """the logarithm to the base 10 Operands are floating; the result has their dtype."""

def log1p(a: _t.Any) -> _t.Any:
    """the natural logarithm of 1 + a, exact for small a Operands are floating; the result has their dtype."""

def log2(a: _t.Any) -> _t.Any:
    """the logarithm to the base 2 Operands are floating; the result has their dtype."""

def lookup_param(*args: _t.Any, dtype: _t.Any = None) -> _t.Any:
    """The intrinsic lookup_param."""

def masked_load(*args: _t.Any, dtype: _t.Any = None) -> _t.Any:
    """The intrinsic masked_load."""

def masked_store(*args: _t.Any, dtype: _t.Any = None) -> _t.Any:
    """The intrinsic masked_store."""

def nearbyint(a: _t.Any) -> _t.Any:
    """the nearest whole number, of two the even one Operands are floating; the result has their dtype."""

def nextafter(a: _t.Any, b: _t.Any) -> _t.Any:
    """the number after a in the direction of b Operands are floating; the result has their dtype."""

def popcount(a: _t.Any) -> _t.Any:
    """how many bits are set Operands are integers; the result has their dtype."""

def pow(a: _t.Any, b: _t.Any) -> _t.Any:
    """a to the power of b The result has the dtype of the operands."""

def print_buffer(*args: _t.Any, dtype: _t.Any = None) -> _t.Any:
    """The intrinsic print_buffer."""

def ptr_byte_offset(*args: _t.Any, dtype: _t.Any = None) -> _t.Any:
    """The intrinsic ptr_byte_offset."""

def q_multiply_shift(a: _t.Any, b: _t.Any, c: _t.Any, d: _t.Any, *, dtype: _t.Any = None) -> _t.Any:
    """The intrinsic q_multiply_shift."""

def q_multiply_shift_per_axis(*args: _t.Any, dtype: _t.Any = None) -> _t.Any:
    """The intrinsic q_multiply_shift_per_axis."""

def real(a: _t.Any) -> _t.Any:
    """the real part"""

def reinterpret(a: _t.Any, *, dtype: _t.Any = None) -> _t.Any:
    """The intrinsic reinterpret."""

def round(a: _t.Any) -> _t.Any:
    """the nearest whole number, of two the even one Operands are floating; the result has their dtype."""

def rsqrt(a: _t.Any) -> _t.Any:
    """one over the square root Operands are floating; the result has their dtype."""

def select_key(a: _t.Any, b: _t.Any, c: _t.Any, d: _t.Any, *, dtype: _t.Any = None) -> _t.Any:
    """as sort_keys, but only the key of one rank is put in its place: lesser ones before, greater ones after it"""

def select_pair(a: _t.Any, b: _t.Any, c: _t.Any, d: _t.Any, e: _t.Any, f: _t.Any, *, dtype: _t.Any = None) -> _t.Any:
    """as select_key, of keys with positions beside them"""

def sigmoid(a: _t.Any) -> _t.Any:
    """1 / (1 + exp(-a)), without overflow Operands are floating; the result has their dtype."""

def sin(a: _t.Any) -> _t.Any:
    """the sine Operands are floating; the result has their dtype."""

def sinh(a: _t.Any) -> _t.Any:
    """the hyperbolic sine Operands are floating; the result has their dtype."""

def sort_keys(a: _t.Any, b: _t.Any, c: _t.Any, *, dtype: _t.Any = None) -> _t.Any:
    """sort so many unsigned keys, with as much memory to spare"""

def sort_pairs(a: _t.Any, b: _t.Any, c: _t.Any, d: _t.Any, e: _t.Any, *, dtype: _t.Any = None) -> _t.Any:
    """as sort_keys, of keys with positions beside them: (keys, positions, memory to spare for both, how many)"""

def sort_positions(a: _t.Any, b: _t.Any, c: _t.Any, d: _t.Any, *, dtype: _t.Any = None) -> _t.Any:
    """the positions (int32) that sort elements, as sort_values does, where that takes no sort: (to, from, how many, descending); of elements that are not nearly in order nor of few kinds the first position is -1"""

def sort_values(a: _t.Any, b: _t.Any, c: _t.Any, d: _t.Any, *, dtype: _t.Any = None) -> _t.Any:
    """elements of one memory in ascending or (true) descending order to another: (to, from, how many, descending); equal ones in the order in which they came, nan as the greatest"""

def sqrt(a: _t.Any) -> _t.Any:
    """the square root Operands are floating; the result has their dtype."""

def start_profile_intrinsic(*args: _t.Any, dtype: _t.Any = None) -> _t.Any:
    """a loop begins: its number, and what a profile of the call names it"""

def tan(a: _t.Any) -> _t.Any:
    """the tangent Operands are floating; the result has their dtype."""

def tanh(a: _t.Any) -> _t.Any:
    """the hyperbolic tangent Operands are floating; the result has their dtype."""

def trunc(a: _t.Any) -> _t.Any:
    """a without its fraction Operands are floating; the result has their dtype."""

def tvm_call_packed(*args: _t.Any, dtype: _t.Any = None) -> _t.Any:
    """The intrinsic tvm_call_packed."""

def undef(*, dtype: _t.Any = None) -> _t.Any:
    """The intrinsic undef."""

def vectorcombine(*args: _t.Any, dtype: _t.Any = None) -> _t.Any:
    """The intrinsic vectorcombine."""

def vectorhigh(*args: _t.Any, dtype: _t.Any = None) -> _t.Any:
    """The intrinsic vectorhigh."""

def vectorlow(*args: _t.Any, dtype: _t.Any = None) -> _t.Any:
    """The intrinsic vectorlow."""

def vscale(*args: _t.Any, dtype: _t.Any = None) -> _t.Any:
    """The intrinsic vscale."""

def broadcast(value: _t.Any, lanes: _t.Any) -> _t.Any:
    """A scalar in every lane."""

def ceildiv(a: _t.Any, b: _t.Any) -> _t.Any:
    """a / b rounded up."""

def handle(dtype: _t.Any = None, scope: _t.Any = 'global') -> _t.Any:
    """A pointer parameter."""

def index_map(mapping: _t.Any, *, inverse_index_map: _t.Any = None, index_dtype: _t.Any = 'int64') -> _t.Any:
    """Where elements go under another layout, as attribute data: a function of the indices, or its text."""

def infinity(dtype: _t.Any) -> _t.Any:
    """Positive infinity."""

def max_value(dtype: _t.Any) -> _t.Any:
    """The greatest finite value."""

def meta_var(value: _t.Any) -> _t.Any:
    """The value itself."""

def min_value(dtype: _t.Any) -> _t.Any:
    """The least finite value."""

BitwiseAnd = bitwise_and

BitwiseNot = bitwise_not

BitwiseOr = bitwise_or

BitwiseXor = bitwise_xor

FloorDiv = floordiv

FloorMod = floormod

LShift = shift_left

Max = max

Min = min

Mod = truncmod

RShift = shift_right

boolean = bool

buffer_decl = Buffer

cast = Cast

div = Div

indexdiv = floordiv

indexmod = floormod

left_shift = shift_left

let = LetStmt

logical_and = And

logical_not = Not

logical_or = Or

power = pow

ramp = Ramp

right_shift = shift_right

sblock = block

sblock_alloc_buffer = alloc_buffer

sblock_attr = block_attr

truncDiv = truncdiv

def __getattr__(name: _b.str) -> _t.Any:
    """Intrinsics of devices, and vectors of dtypes."""
