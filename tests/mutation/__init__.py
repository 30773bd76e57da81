"""Faults planted into weft on purpose: tests that prove a statement fail under the fault of that statement."""
