"""Host programs as LLVM functions.

graph        one entry for each graph function          state       values, references, ways out
operations   memory, shapes, printing, assertions       sizes       dimensions as integers
calls        calls of all kinds                         checks      values against types, calls out
launches     one call of a kernel                       operands    values of operands, fresh memory
values       values and their words in memory           heap        the memory of graph functions
direct_outputs   results in the caller's memory         fastcall    built-in functions for calls from Python
"""
