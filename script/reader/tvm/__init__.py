"""Spellings of other releases of the language, in the terms of this one."""
