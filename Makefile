# Two commands on a fresh machine: `make demo` and `make test`. Both set everything up in .venv.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.ready

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-hosts lint types bench fuzz wheel chromium clean

help:   ## list the commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(STAMP)   ## create .venv with pinned versions and this package in it

# torch comes first and by exact version: the pinned build is the small CPU one.
$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/pip install --quiet --constraint constraints.txt torch
	$(BIN)/pip install --quiet --constraint constraints.txt --group dev --editable ".[notebook,parse,serve,ray,remote]"
	touch $@

demo: setup   ## run the bundled models over the bundled corpus into headscope-demo/
	$(BIN)/headscope demo
	@echo "For the command headscope in this shell: source $(BIN)/activate"

test: setup lint types chromium   ## lint, types, then every test, Chromium included
	$(BIN)/pytest -n 2 --dist loadgroup

# Hosts want other versions than the project pins, so they have an environment of their own.
HOSTS := .venv-hosts
$(HOSTS)/.ready: tests/hosts/requirements.txt pyproject.toml
	test -x $(HOSTS)/bin/python || $(PYTHON) -m venv $(HOSTS)
	$(HOSTS)/bin/pip install --quiet --constraint constraints.txt torch
	$(HOSTS)/bin/pip install --quiet --requirement tests/hosts/requirements.txt
	$(HOSTS)/bin/pip install --quiet --no-deps --editable .
	touch $@

test-hosts: $(HOSTS)/.ready chromium   ## the views in real JupyterLab, Notebook, marimo, Gradio, Streamlit, nbconvert, Firefox
	mkdir -p tests/artefacts
	$(HOSTS)/bin/python -m pytest --confcutdir=tests/hosts tests/hosts

lint: setup   ## style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup   ## static types of the Python, and of the JavaScript where there is npm
	$(BIN)/pyright
	@if command -v npm >/dev/null; then \
	  npm install --silent --no-audit --no-fund --no-package-lock && npm run --silent types; \
	else \
	  echo "npm is not here: the types of the JavaScript are not checked." >&2; \
	fi

chromium:   # browser tests need a real Chromium; Debian's is installed where we may
	@command -v chromium >/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; \
	  else \
	    echo "Chromium is missing: install it (Debian: apt-get install chromium) and run make test again." >&2; exit 1; \
	  fi; }

bench: setup   ## measure every speed claim, side by side
	$(BIN)/python -m benchmarks

SEED ?= 0
SECONDS ?= 300
fuzz: setup   ## damage corpora, caches, runs and requests at random: make fuzz SEED=1 SECONDS=300
	$(BIN)/python -m tests.fuzz --seed $(SEED) --seconds $(SECONDS)

wheel: setup   ## build the wheel into dist/
	$(BIN)/python -m hatchling build -t wheel

clean:   ## remove what the other commands made
	rm -rf .venv .venv-hosts dist headscope-demo runs .pytest_cache .ruff_cache .hypothesis
