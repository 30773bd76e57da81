"""Executors: how the graph functions of a lowered module run. All read the same explicit-memory form.

native   one machine-code entry for each graph function
vm       bytecode over registers: control flow, closures, profiles and traces
graph    a list of nodes with storage planned ahead: straight-line code of static or bounded sizes
aot      a shared object with a C header, and C source for machines without anything else

An executor is a function (module, plan, owner) -> `weft.runtime.executable.Program`. Machine code it asks of the back
end that drives (`weft.codegen.backends.base`), so that every back end with machine code has all of them.
"""

EXECUTORS: dict[str, str] = {
    "native": "weft.codegen.executors.native:native",
    "vm": "weft.codegen.executors.vm:vm",
    "graph": "weft.codegen.executors.entry:graph",
    "aot": "weft.codegen.executors.entry:aot",
}
"""The place of each executor, which is imported when it is first asked for."""
