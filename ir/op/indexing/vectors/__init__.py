"""Forms of sorts, selections and searches in rows for machines that put picked lanes of vectors together."""
