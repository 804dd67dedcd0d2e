# Every target works in a fresh checkout. The first target called makes a virtual environment, and each target
# installs the extras of pyproject.toml that it needs. `.venv` never holds torch: `.venv-torch` does.
# `make test PYTHON=python3.13 VENV=.venv-3.13` tests with another Python, and the newest JAX that pip takes there.
PYTHON ?= python3
VENV ?= .venv
PORT ?= 8000

export PIP_DISABLE_PIP_VERSION_CHECK = 1
# what is measured and tested is compiled, and nothing is left in the user's cache
export JAXGRAD_CACHE = off
export NO_MKDOCS_2_WARNING = 1  # Material says at each build which program its authors write now
python := $(VENV)/bin/python
pytest := -m pytest -n auto --dist worksteal

# Make an environment anew that was copied along with its checkout, or that lost its Python.
$(foreach venv,$(VENV) .venv-torch .venv-ecosystem .venv-onnx .venv-exports .venv-accelerator,$(shell test -x $(venv)/bin/python && \
    grep -qsF '$(CURDIR)/$(venv)' $(venv)/pyvenv.cfg || rm -f $(venv)/made))

.PHONY: demo test quick test-all lint docs docs-serve docs-check stubs cards templates record oracle mutate bench figures ecosystem ecosystem-recorded onnx exports accelerator walk wheel release-check clean
.NOTPARALLEL:  # two runs of pip in one environment disturb each other

demo: $(VENV)/demo  # train a network on handwritten digits, four ways
	$(python) docs/examples/digits.py $(ARGUMENTS)

test: $(VENV)/test $(VENV)/demo  # the tests that are not slow, some of each file; they read the examples
	$(python) $(pytest) --slow-one-of 0 $(ARGUMENTS)

quick: $(VENV)/test  # one of eight of these
	$(python) $(pytest) --slow-one-of 0 --one-of 8 $(ARGUMENTS)

test-all: $(VENV)/test $(VENV)/demo  # all tests, or a part of them: SHARD=2/6
	$(python) $(pytest) $(if $(SHARD),--shard $(SHARD)) $(ARGUMENTS)

lint: $(VENV)/lint
	$(python) -m ruff check .
	$(python) -m ruff format --check .

docs: $(VENV)/docs  # build the site in build/site; the tutorials run, which takes minutes the first time
	$(python) -m mkdocs --quiet build --config-file docs/site/mkdocs.yml $(ARGUMENTS)

docs-serve: docs  # and show it at http://localhost:8000
	@echo "http://localhost:$(PORT)"
	$(python) -m http.server --bind localhost --directory build/site $(PORT)

# --noconftest: the settings of the other tests need what they install. nbclient leaves its event loops to the collector.
docs-check: docs  # the tests of the site, and a visit of each page where Chromium and playwright are installed
	$(python) -m pytest --noconftest --quiet -W ignore::ResourceWarning tests/docs_site/built_site.py tests/docs_site/made_pages.py
	@if which chromium chromium-browser google-chrome >/dev/null && $(python) -c 'import playwright' 2>/dev/null; then \
	    $(python) tests/docs_site/browser.py; fi

stubs: $(VENV)/test  # write the type stubs, jaxgrad/**/*.pyi, for editors: a wheel has them
	$(python) -m jaxgrad stubs

cards: $(VENV)/test  # write the pages of the operators, docs/api
	$(python) tests/commands/cards.py

templates: $(VENV)/test  # write jaxgrad/templates.tsv, the programs that new processes need not trace
	$(python) tests/commands/templates.py

record: .venv-torch/oracle  # record all of PyTorch's answers, or PARTS="autograd models" or OPERATORS="i0 copysign", and write what `make cards` writes
	.venv-torch/bin/python tests/oracle/record.py $(PARTS) $(if $(OPERATORS),--operators $(OPERATORS))
	.venv-torch/bin/python tests/commands/cards.py

oracle: .venv-torch/oracle  # compare with PyTorch itself on new inputs; ARGUMENTS="sparse vmap --seed 17": a part, and old ones
	.venv-torch/bin/python tests/oracle/run.py $(ARGUMENTS)

mutate: $(VENV)/test  # damage every formula in turn (SAMPLE=20: twenty of them); the tests must notice
	$(python) tests/commands/mutate.py $(if $(SAMPLE),--sample $(SAMPLE))

bench: $(VENV)/demo
	$(python) tests/benchmarks/run.py $(ARGUMENTS)

walk: $(VENV)/test  # how many files a call visits, and how deep the imports go
	$(python) tests/benchmarks/walk.py $(ARGUMENTS)

figures: .venv-torch/figures  # measure what docs/figures.md shows, all or ARGUMENTS="training eager", and write it
	.venv-torch/bin/python tests/benchmarks/measure.py $(ARGUMENTS)

ecosystem: .venv-ecosystem/packages .venv-torch/oracle  # run other people's packages, all or ARGUMENTS="--only timm", and write docs/ecosystem.md
	ECOSYSTEM_PATH=$(wildcard .venv-ecosystem/lib/python*/site-packages) .venv-ecosystem/bin/python tests/ecosystem/run.py $(ARGUMENTS)

ecosystem-recorded: $(VENV)/quick_packages  # run those that are installed within seconds, without PyTorch: its answers are recorded
	ECOSYSTEM_PATH=build/ecosystem/quick_packages $(python) tests/ecosystem/run.py --recorded $(ARGUMENTS)

onnx: .venv-onnx/onnx  # the export to ONNX, whose converter has an environment of its own
	.venv-onnx/bin/python -m pytest tests/onnx $(ARGUMENTS)

exports: .venv-exports/exports  # ten architectures through each export, run without jaxgrad; ARGUMENTS="--only ONNX"
	.venv-exports/bin/python tests/exports/run.py $(ARGUMENTS)

accelerator: .venv-accelerator/accelerator  # is it right and fast on this machine's GPU or TPU? ten minutes, and a report to send back
	.venv-accelerator/bin/python tests/accelerator/run.py $(ARGUMENTS)

# From a clean export of HEAD: setuptools would also ship what an earlier build left in build/.
wheel: $(VENV)/made  # dist/*.whl
	rm -rf dist/export && mkdir -p dist/export
	git archive HEAD | tar -x -C dist/export
	$(python) -m pip wheel --quiet --no-deps --wheel-dir dist dist/export
	rm -rf dist/export

# By the Pythons that pyproject.toml names; pyenv's run only by their paths.
supported := 3.11 3.12 3.13
PYTHONS ?= $(foreach version,$(supported),$(shell command -v pyenv >/dev/null && \
    echo "$$(pyenv prefix "$$(pyenv latest $(version))")/bin/python" || echo python$(version)))

release-check: wheel  # install the wheel in new environments, of each Python, and use it there as users do
	$(python) tests/commands/release_check.py dist/jaxgrad-*.whl $(PYTHONS)

clean:  # remove everything that the other targets made, environments included
	rm -rf .venv* build dist *.egg-info .hypothesis .pytest_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

# Prints why a Python cannot be used. It must also parse in the old ones it turns away.
objection := import sys; sys.version_info < (3, 11) and sys.exit("is version %d.%d" % sys.version_info[:2]); \
             import importlib.util as util; util.find_spec("ensurepip") or sys.exit("lacks ensurepip")

# A Python that is named is used or refused; without one, others may do.
candidates := '$(PYTHON)' $(if $(filter file,$(origin PYTHON)),python3.13 python3.12 python3.11)

$(VENV)/made .venv-torch/made .venv-ecosystem/made .venv-onnx/made .venv-exports/made .venv-accelerator/made:
	@for candidate in $(candidates); do \
	    if why=$$("$$candidate" -c '$(objection)' 2>&1); then \
	        echo "making $(@D) with $$candidate"; \
	        "$$candidate" -m venv --clear $(@D) && touch $@; exit; \
	    fi; \
	    reason=$${reason:-"$$candidate $$(echo "$$why" | tail -n 1)"}; \
	done; \
	echo "jaxgrad needs Python 3.11 or later with venv ($$reason):" \
	     "install python3 and python3-venv, or run make PYTHON=/path/to/python" >&2; exit 1

# torchdiffeq asks for torch, in whose place its tests have jaxgrad.
$(VENV)/demo $(VENV)/test $(VENV)/lint $(VENV)/docs: $(VENV)/made pyproject.toml
	$(python) -m pip install --editable '.[$(@F)]'
	$(if $(filter test,$(@F)),$(python) -m pip install --no-deps torchdiffeq==0.2.5)
	@touch $@

.venv-torch/oracle: .venv-torch/made pyproject.toml
	.venv-torch/bin/python -m pip install --editable '.[test,oracle]' torchdiffeq==0.2.5
	@touch $@

.venv-torch/figures: .venv-torch/oracle
	.venv-torch/bin/python -m pip install --editable '.[demo,figures]'
	@touch $@

.venv-onnx/onnx: .venv-onnx/made pyproject.toml
	.venv-onnx/bin/python -m pip install --editable '.[onnx]' hypothesis 'pytest>=8.3'
	@touch $@

# TensorFlow is of 1.3 GB, so no other target installs it.
.venv-exports/exports: .venv-exports/made pyproject.toml
	.venv-exports/bin/python -m pip install --editable '.[onnx,tensorflow]'
	@touch $@

# JAX for the accelerator of this machine, as far as its driver's version goes. The times of PyTorch stand beside ours where
# WITH_TORCH=torch, or another requirement of pip, is in the environment.
.venv-accelerator/accelerator: .venv-accelerator/made pyproject.toml tests/accelerator/extra_of_jax
	extra=$$(tests/accelerator/extra_of_jax) && .venv-accelerator/bin/python -m pip install "jax$$extra" --editable '.[test]' $(WITH_TORCH)
	@touch $@

# Without what they depend on: many ask for torch, in whose place they have jaxgrad. The extra demo brings matplotlib
# and what scikit-learn needs.
.venv-ecosystem/packages: .venv-ecosystem/made pyproject.toml $(wildcard tests/ecosystem/*packages.txt)
	.venv-ecosystem/bin/python -m pip install --editable '.[test,demo]'
	.venv-ecosystem/bin/python -m pip install --no-deps --requirement tests/ecosystem/packages.txt
	@touch $@

$(VENV)/quick_packages: $(VENV)/test tests/ecosystem/quick_packages.txt
	$(python) -m pip install --no-deps --upgrade --target build/ecosystem/quick_packages --requirement tests/ecosystem/quick_packages.txt
	@touch $@
