"""Random decisions, values and arguments: what checks of passes and `weft.testing` draw from."""
