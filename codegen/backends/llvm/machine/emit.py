"""The child process of `machine.cross`: a request on the standard input, object code on the output."""

from __future__ import annotations

import json
import sys
from typing import Any


def main() -> int:
    """Emit one object."""
    import llvmlite.binding as llvm  # the process exists for it

    request: dict[str, Any] = json.load(sys.stdin)
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(request["triple"])
    level = request["level"]
    machine = target.create_target_machine(
        cpu=request["cpu"], features=request["features"], opt=level if level in (0, 3) else 2, reloc="static" if
        "linux" not in request["triple"] else "pic", codemodel=request["code_model"], abiname=request["abi"],
    )  # fmt: skip
    module = llvm.parse_assembly(request["text"])
    module.triple = request["triple"]
    module.data_layout = str(machine.target_data)
    module.verify()
    if level:
        options = llvm.create_pipeline_tuning_options(speed_level=level)
        options.loop_vectorization = options.slp_vectorization = level >= 2
        builder = llvm.create_pass_builder(machine, options)
        builder.getModulePassManager().run(module, builder)
    sys.stdout.buffer.write(machine.emit_object(module))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except RuntimeError as error:  # of LLVM: its lines point at a column, which one line cannot
        sys.exit(" ".join(str(error).split()))
