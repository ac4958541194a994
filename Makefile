# Every target is one call of the `tilewright` command or of pytest; outputs go to build/.
#   make run CONFIG=tiny SEED=7

CONFIG ?= small
KERNEL ?= matmul
SEED   ?= 1
JOBS   ?= 2
HOURS  ?= 0.05
SET    ?= $(SET_$(KERNEL))

# Parameters that `make run` gives a kernel; make run KERNEL=matmul SET="M=64 N=64 K=64"
SET_matmul := M=256 N=256 K=256

# The first that starts and is new enough; a shim of that name may do neither.
PYTHON ?= $(firstword $(foreach name,python3.11 python3,$(shell $(name) -c $(IS_NEW) 2>/dev/null && \
  command -v $(name))) python3)
IS_NEW := 'import sys; sys.exit(sys.version_info < (3, 11))'

# make's own flags and variables must not reach the make that builds a Verilator model. Without
# bytecode every command that a test starts would compile the packages again.
CLEAN_ENV  := env -u MAKEFLAGS -u MFLAGS -u MAKEOVERRIDES -u PYTHONDONTWRITEBYTECODE
TILEWRIGHT := $(CLEAN_ENV) .venv/bin/python -m tilewright
PYTEST     := $(CLEAN_ENV) .venv/bin/python -m pytest
READY      := .venv/.ready

.PHONY: help setup run test regress must campaign lint verilog sim area bench prove docs figures clean durations coverage
.DEFAULT_GOAL := help

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "  variables  CONFIG=$(CONFIG) KERNEL=$(KERNEL) SEED=$(SEED) JOBS=$(JOBS)"

setup: $(READY) ## make .venv with every tool, once; nothing after it needs a network

# Without --no-compile pip writes bytecode of every file; Python does so for those it imports.
$(READY): requirements.txt pyproject.toml
	@"$(PYTHON)" -c $(IS_NEW) 2>/dev/null || { \
	  echo "setup: Python must be 3.11 or newer, not '$$("$(PYTHON)" -V 2>&1)'; set PYTHON=" >&2; \
	  exit 3; }
	@echo "setup: making .venv and installing the packages of requirements.txt there (0.5 GB, some minutes)"
	@"$(PYTHON)" -m venv .venv
	@.venv/bin/python -m pip install --quiet --no-compile --requirement requirements.txt
	@echo "setup: installing this clone there"
	@.venv/bin/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@
	@echo "setup: done; .venv/bin/tilewright doctor checks every tool"

run: $(READY) ## compile KERNEL for CONFIG, run it on the RTL, compare with numpy
	$(TILEWRIGHT) run $(KERNEL) --config $(CONFIG) $(addprefix --set ,$(SET)) --seed $(SEED)

test: $(READY) ## lint, types and every test that is not slow
	$(PYTEST) -m "not slow" --seed-base=$(SEED) -n $(JOBS) --dist loadgroup --durations=10

regress: $(READY) ## every test, the slow ones too, on seeds from SEED
	$(PYTEST) -m "not hour" --seed-base=$(SEED) -n $(JOBS) --dist loadgroup --durations=10

# With a space, pytest would take the report of the last run for a test file.
must: $(READY) ## the acceptance tests; their figures into build/must-show.json
	$(PYTEST) -m must --seed-base=$(SEED) --must-report=build/must-show.json

campaign: $(READY) ## random cases for HOURS, of SEED (by default today's date); failures into tests/corpus/
	$(CLEAN_ENV) .venv/bin/python -m sim.campaign --hours $(HOURS) --corpus tests/corpus \
	  $(if $(filter command environment,$(firstword $(origin SEED))),--seed $(SEED))

coverage: $(READY) ## lines of Python; lines, branches and toggles of the RTL
	$(CLEAN_ENV) .venv/bin/python -m coverage run -m pytest -m "not slow" --seed-base=$(SEED)
	.venv/bin/python -m coverage report
	$(CLEAN_ENV) SEED=$(SEED) .venv/bin/python -m tests.rtl_coverage

lint: $(READY) ## ruff and mypy, no warning left
	.venv/bin/python -m ruff check
	.venv/bin/python -m ruff format --check
	.venv/bin/python -m mypy

verilog: $(READY) ## the Verilog of CONFIG, into build/
	$(TILEWRIGHT) verilog --config $(CONFIG) -o build/$(CONFIG).v

sim: $(READY) ## the cocotb testbench of every block
	$(TILEWRIGHT) sim --seed $(SEED)

area: $(READY) ## the area of CONFIG, unit by unit
	$(TILEWRIGHT) area --config $(CONFIG) --json build/area-$(CONFIG).json

bench: $(READY) ## utilization in three matmuls, beside that of peers
	$(TILEWRIGHT) bench --quick --json build/bench.json

prove: $(READY) ## every formal proof
	$(TILEWRIGHT) prove --json build/prove.json

docs: $(READY) ## the site: guide, reference, modules; every picture drawn anew; into build/docs/
	$(CLEAN_ENV) .venv/bin/python -m docs.tools.site build/docs

figures: $(READY) ## every generated table and computed figure, into the pages
	$(CLEAN_ENV) .venv/bin/python -m docs.tools.update

durations: $(READY) ## the ten slowest tests of the last run, into docs/testing.md
	.venv/bin/python tests/durations.py

clean: ## remove everything made but .venv
	rm -rf build dist
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
