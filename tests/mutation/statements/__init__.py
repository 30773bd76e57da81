"""The faults, a module for each group of statements of docs/requirements.md."""
