"""Rules as passes: sets of rules under names, what they cost, and the ones that weft comes with, one pass in a file.

rule_set.py       sets, known by their names           cost.py     operations and bytes with symbolic sizes
apply_rules.py    the pass that applies sets           the rest    a set and its pass each
"""
