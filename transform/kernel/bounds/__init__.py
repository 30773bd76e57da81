"""What `check_bounds` is made of: checks as data, the checks of expressions, and those that move before loops."""
