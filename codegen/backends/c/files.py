"""C files of a program: one entry with caller-provided memory, kernels, constants, no heap.

    int32_t <model>_run(const struct <model>_inputs *, struct <model>_outputs *, struct <model>_workspaces *,
                        struct <model>_devices *)

The result is 0, or the number of a failed check, whose text `<model>_message` gives; a device or another code generator
may give numbers of its own. Devices are switched on before the first step and off after the last, opened and closed
around each of their operators; a device or function that is null is passed over.

    together    <model>.h, <model>.c                                      everything static, for one processor
    apart       include/<model>.h, src/<model>_ops.h, src/<model>_ops_<label>.c, src/<model>_main.c, src/<model>_data.c
                each file compiled for its own processor
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from weft import dtypes
from weft.codegen.backends.c.expressions import float_literal, hex_literal, int_literal
from weft.codegen.backends.c.helpers import c_type
from weft.codegen.backends.c.profile import profile_prototypes
from weft.codegen.backends.c.program import Memory, Operator, Program, size_of, static_shape
from weft.codegen.backends.c.short_floats import SHORT_FLOATS
from weft.codegen.backends.c.spelling import c_comment, c_string
from weft.codegen.backends.header import header_text
from weft.ir.types import TensorType

__all__ = ["apart", "ops_file", "together"]

_INCLUDES = ["#include <math.h>", "#include <string.h>", ""]


def together(program: Program) -> dict[str, str]:
    """The files of a program for one processor: a header and a source."""
    model = program.model
    source = [
        f'#include "{model}.h"',
        "",
        *_INCLUDES,
        *program.externs.values(),
        *_helper_lines(program),
        "",
        *(_constant(name, *key, storage="static ") for key, name in program.constants.items()),
        "",
        *(f"static {kernel.text()}\n" for kernel in program.kernels.values()),
        *_main_lines(program),
    ]
    return {f"{model}.h": header(program), f"{model}.c": "\n".join(source)}


def _helper_lines(program: Program) -> list[str]:
    """Prototypes of external functions and definitions of helpers that the kernels of all parts use."""
    externs: dict[str, str] = {}
    definitions: dict[str, str] = {}
    for helpers in program.helpers.values():
        externs.update(helpers.externs)
        definitions.update(helpers.definitions)
    return [*(text for name, text in externs.items() if name not in program.externs), *definitions.values()]


def ops_file(model: str, label: str) -> str:
    """The name of the file with the kernels of a part."""
    return f"src/{model}_ops_{label or 'host'}.c"


def apart(program: Program) -> dict[str, str]:
    """The files of a program whose parts are compiled each for its own processor."""
    model = program.model
    guard = f"{model.upper()}_OPS_H"
    shared = [
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        "#include <stdint.h>",
        "",
        *(f"extern const {c_type(key[0])} {name}[{_count(key)}];" for key, name in program.constants.items()),
        *(f"{kernel.head()};" for kernel in program.kernels.values()),
        "",
        "#endif",
        "",
    ]
    data = [
        f'#include "{model}_ops.h"',
        "",
        *(_constant(name, *key) for key, name in program.constants.items()),
        *([] if program.constants else [f"extern const char {model}_no_constants;"]),
        "",
    ]
    main = [f'#include "{model}.h"', f'#include "{model}_ops.h"', "", *_INCLUDES, *program.externs.values(), ""]
    files = {
        f"include/{model}.h": header(program),
        f"src/{model}_ops.h": "\n".join(shared),
        f"src/{model}_data.c": "\n".join(data),
        f"src/{model}_main.c": "\n".join([*main, *_main_lines(program)]),
    }
    for label in program.labels:
        helpers = program.helpers[label]
        kernels = [writer for (_, owner, _), writer in program.kernels.items() if owner == label]
        lines = [
            f'#include "{model}_ops.h"',
            "",
            *_INCLUDES,
            *helpers.externs.values(),
            *helpers.definitions.values(),
            "",
            *(f"{kernel.text()}\n" for kernel in kernels),
        ]
        files[ops_file(model, label)] = "\n".join(lines)
    return files


# The header.


def header(program: Program) -> str:
    """The public header: the structures of the entry, the bytes of memory that it needs."""
    model, upper = program.model, program.model.upper()
    pools = [f"  uint8_t *{pool}; /* {upper}_{pool.upper()}_BYTES bytes, aligned to 16 */" for pool in program.sizes]
    devices = [f"  struct {model}_device *{label};" for label in program.devices]
    fields: dict[str, list[str]] = {
        "inputs": [_field("const ", memory, "inputs->") for memory in program.inputs],
        "outputs": [_field("", memory, "outputs->") for memory in program.outputs],
        "workspaces": pools,
        "devices": devices or ["  void *host; /* unused */"],
    }
    structs = []
    for name, members in fields.items():
        structs += [f"struct {model}_{name} {{", *(members or ["  char unused;"]), "};", ""]
    entry = ",\n    ".join(_entry(program))
    sizes = [(pool.upper(), size) for pool, size in program.sizes.items()]
    device = _DEVICE.format(model=model).splitlines() if program.devices else []
    called = {name for helpers in program.helpers.values() for name in helpers.externs}
    return header_text(model, sizes, [*profile_prototypes(called), *device, *structs], entry)


_DEVICE = """\
/* A device: each function gets the context, gives 0 or the number of a failure, and may be null. */
struct {model}_device {{
  void *context;
  int32_t (*activate)(void *context);
  int32_t (*open)(void *context);
  int32_t (*close)(void *context);
  int32_t (*deactivate)(void *context);
}};

"""


def _entry(program: Program) -> tuple[str, str]:
    model = program.model
    return (
        f"int32_t {model}_run(const struct {model}_inputs *inputs, struct {model}_outputs *outputs",
        f"struct {model}_workspaces *workspaces, struct {model}_devices *devices)",
    )


def _field(qualifier: str, memory: Memory, prefix: str) -> str:
    return f"  {qualifier}{c_type(memory.ty.dtype or '')} *{memory.text.removeprefix(prefix)};{_note(memory.ty)}"


def _note(ty: TensorType) -> str:
    return " " + c_comment(f"{ty.dtype}[{', '.join(map(str, static_shape(ty)))}]")


# The entry.


def _main_lines(program: Program) -> list[str]:
    model = program.model
    steps = [line for operator in program.operators for line in _step(model, operator)]
    steps += [f"  memcpy({text}, {memory.text}, {size_of(memory.ty)});" for text, memory in program.copies]
    pools = [f"  uint8_t *{pool} = workspaces ? workspaces->{pool} : 0;" for pool in program.sizes]
    unused = "".join(f" (void){pool};" for pool in program.sizes)
    names = ",\n    ".join(_entry(program))
    body = [
        "  int32_t failed = 0;",
        *pools,
        f"  (void)inputs; (void)outputs; (void)devices; (void)failed;{unused}",
        *steps,
        "  return failed;",
        "}",
        "",
    ]
    if not program.devices:
        lines = [f"{names} {{", *body]
    else:
        inner = names.replace(f"int32_t {model}_run(", f"static int32_t {model}_steps(")
        lines = [_CALL.format(model=model), f"{inner} {{", *body, f"{names} {{", *_bracket(program), "}", ""]
    messages = [f"  case {i + 1}: return {c_string(text)};" for i, text in enumerate(program.messages)]
    return [
        *lines,
        f"const char *{model}_message(int32_t code) {{",
        "  switch (code) {",
        *messages,
        '  default: return "";',
        "  }",
        "}",
        "",
    ]


_CALL = """\
static int32_t {model}_tell(int32_t (*function)(void *), void *context) {{ return function ? function(context) : 0; }}
#define {model}_TELL(label, what) \\
  (devices && devices->label ? {model}_tell(devices->label->what, devices->label->context) : 0)
"""


def _step(model: str, operator: Operator) -> list[str]:
    """The lines of one operator: the call, in brackets where it is on a device."""
    call = operator.write()
    line = f"failed = {call};" if operator.checked else f"{call};"
    if not operator.device:
        return [f"  {line}", "  if (failed) return failed;"] if operator.checked else [f"  {line}"]
    return [
        f"  failed = {model}_TELL({operator.device}, open);",
        "  if (failed) return failed;",
        f"  {line}",
        f"  {{ const int32_t closed = {model}_TELL({operator.device}, close); if (!failed) failed = closed; }}",
        "  if (failed) return failed;",
    ]


def _bracket(program: Program) -> Iterable[str]:
    """Switch devices on in order, run, switch those that are on off in the reverse order, whatever failed."""
    model, devices = program.model, program.devices
    yield "  int32_t failed = 0, off = 0, on = 0;"
    for label in devices:
        yield f"  if (!failed) {{ failed = {model}_TELL({label}, activate); if (!failed) ++on; }}"
    yield f"  if (!failed) failed = {model}_steps(inputs, outputs, workspaces, devices);"
    for index, label in reversed(list(enumerate(devices))):
        yield f"  if (on > {index}) {{ off = {model}_TELL({label}, deactivate); if (!failed) failed = off; }}"
    yield "  return failed;"


# Constants.


def _count(key: tuple[str, bytes, tuple[int, ...]]) -> int:
    """The elements of the array in C: a complex number is two floats."""
    return max(1, int(np.prod(key[2], dtype=np.int64)) * (1 + dtypes.is_complex(key[0])))


def _constant(name: str, dtype: str, content: bytes, shape: tuple[int, ...], storage: str = "") -> str:
    note = c_comment(f"{dtype}[{', '.join(map(str, shape))}]")
    dtype = dtypes.part(dtype)
    is_short = dtype in SHORT_FLOATS
    kind = dtypes.storage(dtype)
    values = np.frombuffer(content, f"uint{8 * kind.itemsize}" if is_short else kind).tolist() or [0]
    write = hex_literal if is_short else float_literal if dtypes.is_float(dtype) else int_literal
    texts = [write(value, dtype) for value in values]
    rows = ["  " + ", ".join(texts[i : i + 12]) for i in range(0, len(texts), 12)]
    return f"{storage}const {c_type(dtype)} {name}[{len(texts)}] = {{ {note}\n" + ",\n".join(rows) + "\n};"
