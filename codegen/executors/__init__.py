"""Executors: how the graph functions of a lowered module run. All read the same explicit-memory form.

native   one machine-code entry for each graph function
vm       bytecode over registers: control flow, closures, profiles and traces
graph    a list of nodes with storage planned ahead: straight-line code of static or bounded sizes
aot      a shared object with a C header, and C source for machines without anything else
"""
