"""Script text as TVM reads it."""
