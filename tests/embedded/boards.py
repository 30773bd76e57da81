"""Building generated C for Cortex-M and running it on emulated boards.

`run` compiles the files for a target, links them with a start-up of its own (vector table, semihosting, no C library
start), feeds the inputs as data of the image and reads the outputs back from what the program writes.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from weft.codegen.backends.c import CSource, SourceTree
from weft.target import Target

BOARD = Path(__file__).parent / "board"
TOOLS = ("arm-none-eabi-gcc", "qemu-system-arm")


@dataclass(frozen=True)
class Machine:
    """An emulated board: its name in QEMU and where its memories start."""

    name: str
    flash: tuple[int, int]
    ram: tuple[int, int]


MACHINES = {
    "cortex-m0": Machine("microbit", (0, 256 << 10), (0x20000000, 16 << 10)),
    "cortex-m3": Machine("mps2-an385", (0, 4 << 20), (0x20000000, 4 << 20)),
    "cortex-m4": Machine("mps2-an386", (0, 4 << 20), (0x20000000, 4 << 20)),
    "cortex-m7": Machine("mps2-an500", (0, 4 << 20), (0x20000000, 4 << 20)),
    "cortex-m33": Machine("mps2-an505", (0x10000000, 4 << 20), (0x38000000, 2 << 20)),
    "cortex-m55": Machine("mps3-an547", (0, 512 << 10), (0x20000000, 512 << 10)),
}


def missing_tools() -> list[str]:
    """The tools that are not installed."""
    return [tool for tool in TOOLS if shutil.which(tool) is None]


def _array(name: str, data: np.ndarray) -> str:
    bits = data.view(f"uint{data.dtype.itemsize * 8}").ravel().tolist()
    kind = f"uint{data.dtype.itemsize * 8}_t"
    return f"static const {kind} {name}[] = {{ {', '.join(f'{value}u' for value in bits)} }};"


def _main(model: str, inputs: dict[str, np.ndarray], outputs: list[np.ndarray]) -> str:
    """The program: call the model once, write every output as hexadecimal bytes, exit with the result."""
    lines = [f'#include "{model}.h"', "#include <stddef.h>", "void board_write(const char *text);"]
    lines += [_array(f"given_{name}", data) for name, data in inputs.items()]
    lines += [f"static double result_{i}[{-(-out.nbytes // 8) or 1}];" for i, out in enumerate(outputs)]
    lines.append(f"static double workspace[{model.upper()}_WORKSPACE_BYTES / 8 + 2];")
    lines += [
        "static void dump(const uint8_t *data, size_t size) {",
        '  static const char digits[] = "0123456789abcdef";',
        "  char text[65];",
        "  for (size_t i = 0; i < size;) {",
        "    size_t n = 0;",
        "    for (; n < 32 && i < size; ++n, ++i) {",
        "      text[2 * n] = digits[data[i] >> 4];",
        "      text[2 * n + 1] = digits[data[i] & 15];",
        "    }",
        "    text[2 * n] = 0;",
        "    board_write(text);",
        "  }",
        '  board_write("\\n");',
        "}",
        "int main(void) {",
        "  uint8_t *aligned = (uint8_t *)(((uintptr_t)workspace + 15) & ~(uintptr_t)15);",
        f"  struct {model}_inputs inputs = {{ {', '.join(f'(const void *)given_{name}' for name in inputs)} }};",
        f"  struct {model}_outputs outputs = {{ {', '.join(f'(void *)result_{i}' for i in range(len(outputs)))} }};",
        f"  struct {model}_workspaces workspaces = {{ aligned }};",
        f"  struct {model}_devices devices = {{ NULL }};",
        f"  int32_t code = {model}_run(&inputs, &outputs, &workspaces, &devices);",
    ]
    lines += [f"  dump((const uint8_t *)result_{i}, {out.nbytes});" for i, out in enumerate(outputs)]
    return "\n".join([*lines, "  return code;", "}", ""])


def build(source: CSource, model: str, target: Target, main: str, folder: Path, machine: Machine | None = None) -> Path:
    """Compile and link an image; gives its path."""
    assert target.cpu is not None
    machine = machine or MACHINES[str(target.cpu)]
    for name, text in {**source.files, "main.c": main}.items():
        (folder / name).write_text(text)
    _write_script(folder, machine)
    image = folder / "image.elf"
    strict = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off", "-O2", "-ffunction-sections"]
    objects = []
    for file in (f"{model}.c", "main.c"):
        objects.append(folder / f"{file}.o")
        subprocess.run(
            [TOOLS[0], *target.gcc_flags(), *strict, "-c", folder / file, "-o", objects[-1]],
            check=True,
            capture_output=True,
        )
    subprocess.run(
        [TOOLS[0], *target.gcc_flags(), "-O2", *_link(folder), BOARD / "start.c", *objects, "-lm", "-o", image],
        check=True,
        capture_output=True,
    )
    return image


def _write_script(folder: Path, machine: Machine) -> None:
    """The linker script of a board: its memories, and how they are filled."""
    flash, ram = machine.flash, machine.ram
    script = (
        f"MEMORY {{ flash (rx) : ORIGIN = {flash[0]:#x}, LENGTH = {flash[1]}\n"
        f"         ram (rwx) : ORIGIN = {ram[0]:#x}, LENGTH = {ram[1]} }}\n" + (BOARD / "board.ld").read_text()
    )
    (folder / "board.ld").write_text(script)


def _link(folder: Path) -> list[object]:
    script = folder / "board.ld"
    return ["-nostartfiles", "-Wl,--gc-sections", "-T", script, "--specs=nano.specs", "--specs=nosys.specs"]


def build_tree(tree: SourceTree, main: str, folder: Path, machine: Machine) -> Path:
    """Compile every source of a tree for its own processor with its own Makefile, and link one image of all.

    The libraries of the compiler are those of the first processor, the least of all; the start-up is compiled for the
    one that has most, so that it switches the floating-point unit on.
    """
    tree.write(folder)
    (folder / "main.c").write_text(main)
    _write_script(folder, machine)
    _run(["make", "-s", "-C", folder])
    parts = sorted(tree.parts.values(), key=lambda part: (part.features.has_fpu, part.features.has_dsp))
    least, most = parts[0].gcc_flags(), parts[-1].gcc_flags()
    for name, source, flags in (("start", BOARD / "start.c", most), ("main", folder / "main.c", least)):
        _run([TOOLS[0], *flags, "-std=c99", "-O2", f"-I{folder}/include", "-c", source, "-o", folder / f"{name}.o"])
    image = folder / "image.elf"
    objects = [folder / "start.o", folder / "main.o", folder / f"lib{tree.name}.a"]
    _run([TOOLS[0], *least, "-O2", *_link(folder), *objects, "-lm", "-o", image])
    return image


def _run(command: list[object]) -> None:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def run_tree(
    tree: SourceTree, model: str, inputs: dict[str, np.ndarray], outputs: list[np.ndarray], folder: Path,
    machine: Machine,
) -> list[np.ndarray]:  # fmt: skip
    """The outputs of one call of a tree's image on an emulated board."""
    image = build_tree(tree, _main(model, inputs, outputs), folder, machine)
    return _outputs(emulate(image, machine), outputs, machine.name)


def emulate(image: Path, machine: Machine, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    """Run an image on an emulated board; what it writes comes on the error stream."""
    command = ["qemu-system-arm", "-M", machine.name, "-nographic", "-monitor", "none", "-serial", "none"]
    command += ["-semihosting-config", "enable=on,target=native", "-kernel", str(image)]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)


def run(
    source: CSource, model: str, target: Target, inputs: dict[str, np.ndarray], outputs: list[np.ndarray], folder: Path
) -> list[np.ndarray]:
    """The outputs of one call on the emulated board of the target's processor."""
    assert target.cpu is not None
    image = build(source, model, target, _main(model, inputs, outputs), folder)
    return _outputs(emulate(image, MACHINES[str(target.cpu)]), outputs, str(target.cpu))


def _outputs(done: subprocess.CompletedProcess[str], outputs: list[np.ndarray], place: str) -> list[np.ndarray]:
    if done.returncode != 0:
        raise RuntimeError(f"exit {done.returncode} on {place}: {done.stderr[-500:]}")
    rows = done.stderr.strip().splitlines()
    return [
        np.frombuffer(bytes.fromhex(row), out.dtype).reshape(out.shape) for row, out in zip(rows, outputs, strict=True)
    ]
