"""The steps in which LLVM makes code of a text, and the child process that runs them.

    pipeline  ::= "" | "registers" | "O1" | "O2" | "O3"      nothing, local memory into registers alone, LLVM's own
    request   ::= {triple, cpu, features, abi, code_model, reloc, level, pipeline, text} as JSON
    answer    ::= error, object code, LLVM assembly          the error is empty where there is none
    message   ::= length (8 bytes, little endian), so many bytes

As a program, this file answers requests on the standard input until that ends. It loads LLVM and nothing else of the
compiler. LLVM ends the process on what it cannot compile: then there is no answer.
"""

from __future__ import annotations

import functools
import json
import sys
from typing import IO, Any

__all__ = ["REGISTERS", "optimise", "parsed", "read_message", "write_message"]

REGISTERS = "registers"
"""The pipeline that only keeps local memory in registers, and puts functions where they are called that say so."""


def parsed(llvm: Any, layout: str, triple: str, text: str) -> Any:
    """The module of a text, verified, for a machine whose data lie so; RuntimeError for what LLVM refuses.

    Whoever asked closes it.
    """
    module = llvm.parse_assembly(text, llvm.create_context())
    try:
        module.triple = triple
        module.data_layout = layout
        module.verify()
    except BaseException:
        module.close()  # before its context, which the collector of garbage might take first
        raise
    return module


def optimise(llvm: Any, target_machine: Any, module: Any, pipeline: str) -> None:
    """Run a pipeline over a module."""
    if not pipeline:
        return
    # Made for each module: managers that ran before end the process.
    if pipeline == REGISTERS:
        builder = llvm.create_pass_builder(target_machine, _options(llvm, 1))
        manager = llvm.create_new_module_pass_manager()
        manager.add_always_inliner_pass()
        manager.add_sroa_pass()
    else:
        builder = llvm.create_pass_builder(target_machine, _options(llvm, int(pipeline[1:])))
        manager = builder.getModulePassManager()
    manager.run(module, builder)


@functools.lru_cache(maxsize=8)
def _options(llvm: Any, level: int) -> Any:
    """What a builder of pipelines copies."""
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = level >= 2
    return options


def read_message(stream: IO[bytes]) -> bytes | None:
    """The next message, None where there is no whole one any more."""
    head = stream.read(8)
    size = int.from_bytes(head, "little")
    found = stream.read(size) if len(head) == 8 else b""
    return found if len(head) == 8 and len(found) == size else None


def write_message(stream: IO[bytes], content: bytes) -> None:
    """Write a message."""
    stream.write(len(content).to_bytes(8, "little") + content)


def _answer(llvm: Any, request: dict[str, Any]) -> tuple[bytes, str]:
    target_machine = llvm.Target.from_triple(request["triple"]).create_target_machine(
        cpu=request["cpu"],
        features=request["features"],
        opt=request["level"],
        reloc=request["reloc"],
        codemodel=request["code_model"],
        abiname=request["abi"],
    )
    with parsed(llvm, str(target_machine.target_data), request["triple"], request["text"]) as module:
        optimise(llvm, target_machine, module, request["pipeline"])
        return target_machine.emit_object(module), str(module)


def main() -> None:
    """Answer requests."""
    import llvmlite.binding as llvm  # the process exists for it

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    while (request := read_message(source)) is not None:
        error, code, assembly = "", b"", ""
        try:
            code, assembly = _answer(llvm, json.loads(request))
        except RuntimeError as refused:  # LLVM's lines point at a column, which one line cannot
            error = " ".join(str(refused).split())
        for content in (error.encode(), code, assembly.encode()):
            write_message(sink, content)
        sink.flush()


if __name__ == "__main__":
    main()
