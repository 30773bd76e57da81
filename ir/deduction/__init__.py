"""Types of expressions: deduction, subtyping, and types of tensors spread over a mesh of devices."""
