"""Tools that load what only `make test-frontends` installs hold no tests."""

collect_ignore = ["node_tests.py", "torch_operators.py"]
