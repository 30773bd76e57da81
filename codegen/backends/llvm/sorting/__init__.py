"""Vector code that sorts unsigned keys: networks in registers, partitions by a pivot, and what drives both."""
