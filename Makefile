# Two commands do everything on a machine with Python 3.11+ and make:
#   make compare   the main job          make test   the tests
PYTHON ?= python3
# Pinned, so that a run today and a run next month resolve to the same torch.
# Set TORCH= (empty) to use the torch that $(PYTHON) already has.
TORCH  ?= torch==2.13.0
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: install compare asv nightly vllm test test-slow gpu-check lint typecheck check clean
install: $(STAMP)

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "gcbench needs Python 3.11 or later; set PYTHON=/path/to/python3.11"; exit 2; }
	@echo "installing into $(VENV): torch, NumPy, pandas and friends; one to several minutes"
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	  && apt-get -qq update && apt-get -qq install -y python3-venv; } || \
	  { echo "$(PYTHON) has no venv module; on Debian: apt-get install python3-venv"; exit 2; }
	@$(PYTHON) -m venv $(if $(TORCH),,--system-site-packages) $(VENV)
	@$(if $(TORCH),$(BIN)/python -m pip install -qq "$(TORCH)",true)
	@$(BIN)/python -m pip install -qq --editable '.[dev]'
	@touch $@

compare: install
	@$(BIN)/gcbench compare $(ARGS)

# The last commit's engines by this checkout's harness, in asv's own environment; docs/asv.md.
asv: install
	@$(BIN)/asv machine --yes >/dev/null
	@$(BIN)/asv run --quick --record-samples --show-stderr HEAD^! $(ARGS)

# What is new since the last night, and the page; docs/nightly.md.
nightly: install
	@$(BIN)/gcbench nightly --results results $(ARGS)

vllm: install
	@$(BIN)/gcbench releases vllm --prepare

test: install
	@$(BIN)/python -m pytest -m "not slow and not gpu" $(ARGS)

test-slow: install
	@$(BIN)/python -m pytest -m "slow and not gpu" $(ARGS)

# Needs a CUDA device and a python3 that has torch, Triton, pytest, click and msgspec; installs
# nothing. PARTS: tests aims verdict grid; results are written to results/published.
gpu-check:
	@$(PYTHON) benchmarks/gpu_check.py $(PARTS)

lint: install
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .

typecheck: install
	@$(BIN)/mypy

check: lint typecheck test

clean:
	rm -rf $(VENV) .asv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache
