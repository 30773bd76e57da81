"""LLVM assembly under construction: text, types, what memory is known to hold, the shared program."""
