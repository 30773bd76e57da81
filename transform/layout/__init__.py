"""Passes over the order in which the axes of values lie in memory."""
