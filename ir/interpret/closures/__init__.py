"""A tensor-level function as closures over a frame: expressions, accesses, statements, loops, blocks, buffers."""
