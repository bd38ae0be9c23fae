# Every command of this project. `make` alone lists them. Needs Python 3.11 or newer and make; only the targets
# that set up an environment, and `requirements`, need a network.

PYTHON ?= python3
BIN := .venv/bin
PIP := -m pip --disable-pip-version-check --no-input -qq
# thinkback, and the referee, which is a distribution of its own
PROJECTS := pyproject.toml referee/pyproject.toml
PURE := model wire rules settings log compile turn formats
CORPUS = $(if $(THINKBACK_CORPUS),$(THINKBACK_CORPUS),../shared/corpus)
HISTORIES = $(abspath $(if $(THINKBACK_HISTORIES),$(THINKBACK_HISTORIES),$(wildcard ../shared/histories)))

# Processes that start hundreds of times do not compile everything each time; `make clean` removes what they cached.
unexport PYTHONDONTWRITEBYTECODE

comma := ,
space := $(subst ,, )
PURE_FILES := $(subst $(space),$(comma),$(foreach package,$(PURE),src/thinkback/$(package)/*))

# Neighbours stay together: what a module starts, most workers that have tests of it need not start again.
SPREAD = -q -n $(WORKERS) --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help venv demo fuzz test test-pure test-rest rewritten test-version test-versions lint types layers format corpus soak conformance old-logs docs bench bench-gateway clients histories programs adapters agents agents-short agents-trial load browser machines notebook release-check peers requirements clean

help: ## what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

venv: .venv/.ready ## the environment for work on thinkback, in .venv

.venv/.packages: requirements/dev.txt
	$(call environment,.venv,dev)
	@touch $@

.venv/.ready: .venv/.packages $(PROJECTS)
	@$(BIN)/python $(PIP) install --no-deps --no-build-isolation --editable . --editable ./referee
	@touch $@

.venv-demo/.ready: requirements/runtime.txt
	$(call environment,.venv-demo,runtime)
	@touch $@

demo: .venv-demo/.ready ## thinkback at work, with nothing installed but what it needs at run time
	@PYTHONPATH=src:referee/src .venv-demo/bin/python -m thinkback demo

.venv-notebook/.ready: requirements/notebook.txt requirements/runtime.txt
	$(call environment,.venv-notebook,runtime)
	@.venv-notebook/bin/python $(PIP) install --require-hashes --requirement requirements/notebook.txt
	@touch $@

.venv-release/.ready: requirements/release.txt
	$(call environment,.venv-release,release)
	@touch $@

BASE_IMAGE ?=

release-check: venv .venv-release/.ready ## builds both distributions, runs the wheels in an empty environment, writes SBOM and licences; BASE_IMAGE=NAME@sha256:...
	@BASE_IMAGE='$(BASE_IMAGE)' $(BIN)/python -m scripts.release_check

notebook: .venv-notebook/.ready ## a notebook in a real kernel: what it shows of a stream, a reply, a session
	@PYTHONPATH=src:referee/src:. .venv-notebook/bin/python -W ignore -m scripts.notebook

# What runs side by side prints one after the other, each when it is done.
WHOLE := $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)

test: venv ## everything that must hold before a change goes in, side by side
	@$(MAKE) --no-print-directory --keep-going -j5 $(WHOLE) lint types layers test-pure test-rest

PURE_TESTS := $(foreach package,$(PURE),tests/$(package))

# once, before processes that collect at once
rewritten: venv
	@$(BIN)/python -m pytest -p no:terminal -p tests.rewritten

test-pure: rewritten ## the tests of the pure packages alone, which cover them to 100 %, branches included
	@$(BIN)/python -m coverage run -m pytest -q -p no:schemathesis $(PURE_TESTS)
	@$(BIN)/python -m coverage report --fail-under=100 --include='$(PURE_FILES)' > .uncovered.txt \
		|| { cat .uncovered.txt; echo 'the pure packages must be covered to 100 % by their own tests, branches included'; exit 1; }
	@echo 'coverage of the pure packages: 100 %, branches included'

# a number, or auto: as many as there are cores
WORKERS ?= auto

test-rest: rewritten ## all other tests, in WORKERS=auto processes
	@$(BIN)/python -m pytest $(SPREAD) $(foreach place,$(PURE_TESTS),--ignore=$(place))

VERSIONS ?= 3.12 3.13

test-versions: ## all tests with every Python of VERSIONS="3.12 3.13" that is found, each in an environment of its own
	@for version in $(VERSIONS); do \
		for python in python$$version "$$HOME"/.pyenv/versions/$$version.*/bin/python; do \
			if "$$python" -c '' 2>/dev/null; then \
				$(MAKE) --no-print-directory test-version PYTHON="$$python" VERSION=$$version || exit 1; \
				continue 2; \
			fi; \
		done; \
		echo "Python $$version is not here: nothing was run with it"; \
	done

.venv-$(VERSION)/.ready: requirements/dev.txt $(PROJECTS)
	$(call environment,.venv-$(VERSION),dev)
	@.venv-$(VERSION)/bin/python $(PIP) install --no-deps --no-build-isolation --editable . --editable ./referee
	@touch $@

test-version: .venv-$(VERSION)/.ready
	@.venv-$(VERSION)/bin/python -m pytest $(SPREAD) $(TESTS)

lint: venv ## style and unused or undeclared dependencies
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check . || { echo 'run make format'; exit 1; }
	@$(BIN)/deptry --no-ansi src > .deptry.txt 2>&1 || { cat .deptry.txt; exit 1; }
	@$(BIN)/deptry --no-ansi --config referee/pyproject.toml referee/src > .deptry.txt 2>&1 || { cat .deptry.txt; exit 1; }
	@echo 'lint: clean'

types: venv ## mypy, strict, on sources and tests
	@$(BIN)/mypy --no-error-summary
	@echo 'types: clean'

layers: venv ## who may import whom
	@$(BIN)/lint-imports --no-logo > .layers.txt 2>&1 || { cat .layers.txt; exit 1; }
	@echo 'layers: kept'

format: venv ## mend what can be mended without thinking
	@$(BIN)/ruff check --quiet --fix . || true
	@$(BIN)/ruff format --quiet .

corpus: venv ## every recorded exchange in THINKBACK_CORPUS, every history in THINKBACK_HISTORIES; fails if one is left out
	@test -d '$(CORPUS)' || { echo 'no corpus in $(CORPUS): set THINKBACK_CORPUS to its directory'; exit 1; }
	@THINKBACK_CORPUS="$$(cd '$(CORPUS)' && pwd)" THINKBACK_CORPUS_STRICT=1 THINKBACK_HISTORIES='$(HISTORIES)' \
		$(BIN)/python -m pytest $(SPREAD) -m corpus

.venv-fuzz/.ready: requirements/fuzz.txt requirements/runtime.txt
	$(call environment,.venv-fuzz,runtime)
	@.venv-fuzz/bin/python $(PIP) install --require-hashes --requirement requirements/fuzz.txt \
		|| echo 'atheris has no wheel for this Python: the harnesses mutate their seeds blindly'
	@touch $@

SECONDS ?= 60

fuzz: .venv-fuzz/.ready ## bytes of every kind into the parsers, SECONDS=60 each; a finding is kept in .fuzz
	@for harness in chat bedrock tags; do \
		PYTHONPATH=src:. .venv-fuzz/bin/python -m tests.fuzz.atheris_$$harness $(SECONDS) || exit 1; \
	done

MINUTES ?= 60
SEED ?=

soak: venv ## laws with new examples, kills and crashes, for MINUTES=60; SEED=... repeats one
	@$(BIN)/python -m scripts.soak --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) $(TESTS)

conformance: venv ## every dialect to every other and back, judged by the referee; kept in docs/conformance.md
	@$(BIN)/python -m scripts.conformance

old-logs: venv ## logs as this commit writes them, kept in tests/old_logs: the tests read them for good
	@$(BIN)/python -m scripts.old_logs

docs: venv ## the parts of the documentation that are made from the code
	@$(BIN)/python -m scripts.cli_reference
	@$(BIN)/python -m scripts.captures

.venv-view/.ready: requirements/bench-view.txt
	$(call environment,.venv-view,bench-view) \
		|| echo 'the peer of the viewer cannot be installed here: its rows are left out'
	@touch $@

bench: venv .venv-view/.ready ## the benchmarks; results in bench/latest.json
	@$(BIN)/python -m bench

load: venv ## 64 sessions at once for two minutes: is a response lost, does memory grow, does the loop stand
	@$(BIN)/python -m bench.load
	@$(BIN)/python -m bench.hostile
	@$(BIN)/python -m bench.machines --seconds 20

image-check: venv ## the RUN lines of deploy/Dockerfile on this machine's files, in an overlay (root, Linux)
	@$(BIN)/python -m scripts.image_check

alerts: ## deploy/prometheus-rules.yml with the faults that its alerts must find, by promtool (Debian's package prometheus)
	@command -v promtool >/dev/null || { echo "promtool is not there: apt-get install prometheus"; exit 1; }
	@promtool check rules deploy/prometheus-rules.yml
	@promtool test rules deploy/prometheus-rules.test.yml

machines: venv ## three gateways on one PostgreSQL while they and it die: is an answer lost, doubled, not recognised; an upgrade and its roll-back; SEED=... repeats one
	@$(BIN)/python -m bench.machines $(if $(SEED),--seed $(SEED))
	@$(BIN)/python -m bench.upgrade

.venv-bench/.ready: requirements/bench-gateway.txt
	$(call environment,.venv-bench,bench-gateway) \
		|| echo 'the peer cannot be installed here: its rows are left out'
	@touch $@

bench-gateway: venv .venv-bench/.ready ## the gateway beside a bare proxy and a peer; results in bench/gateway.json
	@$(BIN)/python -m bench.gateway

.venv-peers/.ready: requirements/peers.txt
	$(call environment,.venv-peers,peers)
	@touch $@

peers: .venv-peers/.ready ## other clients before the referee, beside thinkback; kept in docs/peers.md
	@PYTHONPATH=src:referee/src .venv-peers/bin/python -m bench.peers

.venv-clients/.ready: requirements/clients.txt
	$(call environment,.venv-clients,clients)
	@touch $@

VERCEL := bench/gateway_clients/vercel

$(VERCEL)/node_modules/.ready: $(VERCEL)/package.json
	@if command -v npm >/dev/null; then \
		echo 'installing the packages of $(VERCEL)'; \
		cd $(VERCEL) && npm install --silent --ignore-scripts --no-audit --no-fund && touch node_modules/.ready; \
	else echo 'npm is not installed: the clients from there are left out'; fi

.venv-browser/.ready: requirements/browser.txt
	$(call environment,.venv-browser,browser)
	@touch $@

AXE := scripts/browser

$(AXE)/node_modules/.ready: $(AXE)/package.json
	@if command -v npm >/dev/null; then \
		cd $(AXE) && npm install --silent --ignore-scripts --no-audit --no-fund --no-package-lock && touch node_modules/.ready; \
	else echo 'npm is not installed: it brings the rules of axe-core'; exit 1; fi

/usr/bin/chromium:
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo 'installing chromium'; apt-get update -qq && apt-get install -y -qq chromium >/dev/null; \
	else echo 'chromium is not installed: on Debian, apt-get install chromium as root'; exit 1; fi

browser: /usr/bin/chromium .venv-browser/.ready $(AXE)/node_modules/.ready ## the viewer in a real browser: its pages, by axe-core's rules too, and pictures of them in .browser
	@PYTHONPATH=src:referee/src:. THINKBACK_HISTORIES='$(HISTORIES)' .venv-browser/bin/python -m scripts.browser $(BROWSER)

clients: venv .venv-clients/.ready $(VERCEL)/node_modules/.ready ## real clients at the referee, alone and through the gateway; kept in docs/clients.md
	@PYTHONPATH=src:referee/src $(BIN)/python -m bench.gateway_clients

ONLY ?=

agents: venv ## real coding agents at the referee, alone and through the gateway; kept in docs/agent-runs.md; ONLY=codex repeats one
	@PYTHONPATH=src:referee/src $(BIN)/python -W ignore -m bench.coding_agents $(if $(ONLY),--only $(ONLY))

agents-trial: venv ## 300 turns of Codex through a gateway, both killed again and again: is a response lost; SEED=... repeats one
	@PYTHONPATH=src:referee/src $(BIN)/python -W ignore -m bench.coding_agents.trial $(if $(SEED),--seed $(SEED))

agents-short: venv ## two agents at two providers, where npm is there
	@PYTHONPATH=src:referee/src $(BIN)/python -W ignore -m bench.coding_agents --short

histories: venv ## what real coding agents stored, imported and compared with what was played; ONLY=codex plays one, WRITE=1 keeps test files
	@PYTHONPATH=src:referee/src $(BIN)/python -W ignore -m scripts.histories $(if $(ONLY),--only $(ONLY)) $(if $(WRITE),--write)

programs: venv .venv-clients/.ready ## programs at the referee, without the transport and with it; kept in docs/programs.md
	@PYTHONPATH=src:referee/src $(BIN)/python -m bench.programs

# the SDKs of providers leave connections to the garbage collector, which is no fault of an adapter
ADAPTERS ?= tests/adapters --ignore=tests/adapters/transport

adapters: venv .venv-clients/.ready ## the adapters of frameworks, with the packages of these; none may be left out
	@THINKBACK_ADAPTERS=1 .venv-clients/bin/python -m pytest -q -W ignore::ResourceWarning $(ADAPTERS)

requirements: ## pin what pyproject.toml asks for, with hashes and without addresses (needs uv; UPGRADE=--upgrade for newer ones)
	@uv pip compile --quiet $(UPGRADE) --universal --python-version 3.11 --generate-hashes --no-header \
		--extra dev -o requirements/dev.txt pyproject.toml
	@uv pip compile --quiet $(UPGRADE) --universal --python-version 3.11 --generate-hashes --no-header \
		--constraint requirements/dev.txt -o requirements/runtime.txt pyproject.toml
	@uv pip compile --quiet $(UPGRADE) --universal --python-version 3.11 --generate-hashes --no-header \
		--extra peers -o requirements/peers.txt pyproject.toml
	@uv pip compile --quiet $(UPGRADE) --universal --python-version 3.11 --generate-hashes --no-header \
		--constraint requirements/peers.txt --extra clients -o requirements/clients.txt pyproject.toml
	@uv pip compile --quiet $(UPGRADE) --universal --python-version 3.11 --generate-hashes --no-header \
		--group pyproject.toml:fuzz -o requirements/fuzz.txt
	@uv pip compile --quiet $(UPGRADE) --universal --python-version 3.11 --generate-hashes --no-header \
		--constraint requirements/runtime.txt --group pyproject.toml:notebook -o requirements/notebook.txt
	@uv pip compile --quiet $(UPGRADE) --universal --python-version 3.11 --generate-hashes --no-header \
		--group pyproject.toml:bench-gateway -o requirements/bench-gateway.txt
	@uv pip compile --quiet $(UPGRADE) --universal --python-version 3.11 --generate-hashes --no-header \
		--group pyproject.toml:bench-view -o requirements/bench-view.txt
	@for extra in gateway viewer postgres; do \
		uv pip compile --quiet $(UPGRADE) --universal --python-version 3.11 --generate-hashes --no-header \
			--constraint requirements/dev.txt --extra $$extra -o requirements/$$extra.txt pyproject.toml || exit 1; \
	done
	@uv pip compile --quiet $(UPGRADE) --universal --python-version 3.11 --generate-hashes --no-header \
		--constraint requirements/dev.txt --group pyproject.toml:build -o requirements/build.txt
	@uv pip compile --quiet $(UPGRADE) --universal --python-version 3.11 --generate-hashes --no-header \
		--group pyproject.toml:release -o requirements/release.txt
	@for agent in aider crewai; do \
		uv pip compile --quiet $(UPGRADE) --universal --python-version 3.11 --generate-hashes --no-header \
			--group pyproject.toml:agent-$$agent -o requirements/agent-$$agent.txt || exit 1; \
	done
	@uv pip compile --quiet $(UPGRADE) --universal --python-version 3.11 --generate-hashes --no-header \
		--constraint requirements/dev.txt --extra gateway --extra postgres --extra viewer --group pyproject.toml:browser -o requirements/browser.txt pyproject.toml
	@! grep -nE '://|^-|@ ' requirements/*.txt || { echo 'an address got into the requirements'; exit 1; }

clean: ## remove what is made here, but for the environments
	@rm -rf build dist referee/build referee/dist .coverage .coverage.* .deptry.txt .layers.txt .uncovered.txt
	@rm -rf .fuzz .browser .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find src referee tests -name __pycache__ -type d -prune -exec rm -rf {} +

# $(call environment,directory,requirements file): a virtual environment with hashed packages and nothing else
define environment
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo '$(PYTHON) is older than 3.11: name another one, as in make venv PYTHON=python3.12'; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null \
		|| { echo '$(PYTHON) cannot make environments: install its venv module (Debian, Ubuntu: python3-venv)'; exit 1; }
	@echo 'installing $(2) requirements into $(1)'
	@$(PYTHON) -m venv $(1)
	@$(1)/bin/python $(PIP) install --require-hashes --requirement requirements/$(2).txt
endef
