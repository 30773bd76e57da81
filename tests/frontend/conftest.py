"""Tools that load what only `make test-frontends` installs hold no tests."""

collect_ignore = [
    "node_tests.py",
    "random_models.py",
    "random_nodes.py",
    "node_recipes.py",
    "architectures.py",
    "torch_operators.py",
]
