.DEFAULT_GOAL := help
SHELL := /bin/sh
BIN := .venv/bin
ARGS ?=
# A console or a locale of plain ASCII must not decide how files are read and results are printed.
export PYTHONUTF8 := 1
export PYTHONIOENCODING := utf-8
# Four processes at least, so that tests that wait do not wait one after the other.
WORKERS ?= $(shell n=$$(nproc 2>/dev/null || echo 2); [ $$n -lt 4 ] && echo 4 || echo $$n)

.PHONY: help setup fmt check test test-slow demo bench docs clean

help: ## Show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: .venv/.installed ## Create .venv with all that the other commands need

.venv/.installed: pyproject.toml scripts/setup
	@echo "setting up .venv (once) ..." && scripts/setup

fmt: setup ## Format the code and mend what the linter can mend
	$(BIN)/ruff format . && $(BIN)/ruff check --fix .

check: setup ## Formatting, lint, types and the import contract
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Compiled once: hundreds of children import them, and an environment may forbid them to keep what they compiled.
# A clone that may not be written to, or holds a file that does not compile, is for the tests to judge.
COMPILE = $(BIN)/python -m compileall -qq -j 0 src tests || true

test: setup ## Every test, the proofs at reduced scale (ARGS="-k name" to choose)
	@$(COMPILE)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow" $(ARGS)

test-slow: setup ## The proofs at full scale
	@$(COMPILE)
	$(BIN)/python -m pytest -n 2 --dist worksteal -m slow $(ARGS)

demo: setup ## Watch it work (ARGS="--seconds 20" ends by itself)
	@$(BIN)/python -m interlock demo $(ARGS)

bench: setup ## The benchmarks of bench/
	$(BIN)/python -m bench $(ARGS)

docs: setup ## Write the generated reference pages anew
	$(BIN)/python scripts/reference.py

clean: ## Remove what the commands above made
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis dist build
	find src tests -name __pycache__ -prune -exec rm -rf {} +
