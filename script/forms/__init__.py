"""The syntax table and what belongs to it: holes, defaults, constants, what is not supported."""
