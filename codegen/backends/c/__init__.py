"""C99 for hosts and bare boards: no heap, no runtime files, memory given by the caller."""

from weft.codegen.backends.c.library import CSource, SourceTree, generate, source_tree
