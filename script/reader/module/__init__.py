"""Reading texts, units and modules."""
