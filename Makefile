# Two commands do everything on a machine with Python 3.11, 3.12, 3.13 or 3.14 and make:
#   make compare   the main job          make test   the tests
VENV   ?= .venv
# In most containers' images: each interpreter, of which there are hundreds, would compile all anew.
unexport PYTHONDONTWRITEBYTECODE
BIN    := $(VENV)/bin
# The interpreter of the environment that is there, so that PYTHON need be given only once.
PYTHON ?= $(or $(wildcard $(BIN)/python),python3)
# Pinned, so that a run today and a run next month resolve to the same torch.
# Set TORCH= (empty) to use the torch that $(PYTHON) already has.
TORCH  ?= torch==2.13.0
# Files of tests go to this many processes. ARGS="--hypothesis-profile full" tries each property on
# 100 examples where this tries 8, as `make deep` does; tests/examples.py has the shares.
JOBS   ?= auto
PYTEST := $(BIN)/python -m pytest --numprocesses $(JOBS) --maxprocesses 8 --dist loadfile \
          --no-loadscope-reorder
# What ARGS=tests/… names runs whole; pyproject.toml says which tests are slow.
TIER   ?= $(if $(findstring tests/,$(ARGS)),not gpu,not slow)
CHOSEN := $(PYTEST) -m "$(TIER) and not gpu"
# Tests that count tracked objects: full collections, over what all other tests import too if they
# ran beside them. They have processes of their own, one for each of the three folders, which are
# sent nothing while they count, unless ARGS names what to run.
COUNTING := tests/gcbench tests/harness/collector \
            $(patsubst %,tests/harness/trial/test_%.py,modes request_costs leaks)
BY_FOLDER := --dist loadscope $(if $(filter auto,$(JOBS)),--numprocesses 3)
NONE_CHOSEN := 5

.PHONY: install compare asv nightly sglang vllm test deep torture soak gpu-check lint typecheck check figures \
        docs clean
install:
	@.ci/install "$(PYTHON)" "$(VENV)" "$(TORCH)"

compare: install
	@$(BIN)/gcbench compare $(ARGS)

# The last commit's engines by this checkout's harness, in asv's own environment; docs/asv.md.
asv: install
	@$(BIN)/asv machine --yes >/dev/null
	@$(BIN)/asv run --quick --record-samples --show-stderr HEAD^! $(ARGS)

# What is new since the last night, and the page; docs/nightly.md.
nightly: install
	@$(BIN)/gcbench nightly --results results $(ARGS)

sglang vllm: install
	@$(BIN)/gcbench releases $@ --prepare

test: install
ifneq ($(findstring tests/,$(ARGS)),)
	@$(CHOSEN) $(ARGS)
else
	@$(CHOSEN) $(BY_FOLDER) $(ARGS) $(COUNTING) || [ $$? = $(NONE_CHOSEN) ]
	@$(CHOSEN) $(ARGS) $(COUNTING:%=--ignore=%)
endif

# All there is, in parts, of which those that have passed on this tree are not run again; CONTRIBUTING.md.
deep: install
	@$(BIN)/python tests/deep.py $(PARTS)

# Tries to break it, from a minute to an hour; docs/reliability.md. PARTS: lines signals disks files
# points; ATTEMPTS is of each; SEED draws others; ONLY repeats one.
torture: install
	@$(BIN)/python tests/torture $(PARTS) $(ATTEMPTS:%=--attempts %) $(SEED:%=--seed %) \
	  $(ONLY:%=--only %)

# Processes that come and go below `gcbench probe` for HOURS, against a hook of their own; SEED.
soak: install
	@$(BIN)/python tests/soak $(HOURS:%=--hours %) $(SEED:%=--seed %)

# Needs a CUDA device and a python3 that has torch, Triton and what docs/gpu.md names; installs
# nothing. PARTS: tests tiles copies kernels launch aims verdict calibrate grid churn; OUTPUT=DIR
# takes the results (results/published/gpu); BEFORE=TREE is another checkout, for launch; REHEARSE=1
# makes the same calls on a CPU. docs/gpu.md.
gpu-check:
	@$(PYTHON) benchmarks/gpu_check.py $(PARTS) $(OUTPUT:%=--output %) \
	  $(BEFORE:%=--before %) $(REHEARSE:%=--rehearse)

lint: install
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .

typecheck: install
	@$(BIN)/mypy && $(BIN)/mypy --python-version 3.12 -m gcbench.opcodes_monitoring

check: lint typecheck test

# Every figure and picture of README and docs that is traced to results/published, written anew from
# there; benchmarks/figures/figures.toml says which is which.
figures: install
	@$(BIN)/python -m benchmarks.figures

# The docs as a site in build/docs; any warning, such as a link that leads nowhere, is an error.
docs: install
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

clean:
	rm -rf $(VENV) .asv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache
