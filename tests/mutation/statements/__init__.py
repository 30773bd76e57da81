"""The faults, a module for each group of statements of tests/requirements/proofs.md."""
