"""Rules of the default schedule, one per file: each says when it applies and what it makes of a nest of loops.

    rule ::= (nest, Facts) -> statement | None            None: the nest is not of the kind

Rules are told by the form of the loops, never by names, and take what the machine has as data (`facts`).
"""
