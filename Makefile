# Every target works in a fresh checkout: the first one called makes .venv, the later ones use it.
PYTHON ?= python3

export PIP_DISABLE_PIP_VERSION_CHECK = 1
python := .venv/bin/python
pytest := $(python) -m pytest -n auto --dist worksteal

# An environment that was copied along with its checkout, or has lost its Python, is made anew.
$(shell test -x $(python) && grep -qsF '$(CURDIR)/.venv' .venv/pyvenv.cfg || rm -f .venv/made)

.PHONY: demo test quick lint oracle mutate bench wheel clean

demo: .venv/installed  # train a network on handwritten digits, four ways
	$(python) examples/digits.py $(ARGUMENTS)

test: .venv/installed  # all tests
	$(pytest) $(ARGUMENTS)

quick: .venv/installed  # the tests that are not marked slow
	$(pytest) -m "not slow" $(ARGUMENTS)

lint: .venv/installed
	$(python) -m ruff check .

oracle: .venv/torch  # compare with the installed PyTorch instead of its recorded answers
	$(pytest) tests/oracle/live.py tests/oracle/live_programs.py \
	    tests/oracle/live_matrix.py tests/oracle/live_forward_ad.py \
	    tests/oracle/live_functions.py tests/oracle/live_transforms.py \
	    tests/oracle/live_samples.py tests/oracle/live_rules.py $(ARGUMENTS)

mutate: .venv/installed  # damage every formula in turn (SAMPLE=20: twenty of them); the tests must notice
	$(python) tests/mutate.py $(if $(SAMPLE),--sample $(SAMPLE))

bench: .venv/installed
	$(python) benchmarks/run.py $(ARGUMENTS)

# From a clean export of HEAD: setuptools would also ship what an earlier build left in build/.
wheel: .venv/installed  # dist/*.whl
	rm -rf dist/export && mkdir -p dist/export
	git archive HEAD | tar -x -C dist/export
	$(python) -m pip wheel --quiet --no-deps --wheel-dir dist dist/export
	rm -rf dist/export

clean:  # remove all that the other targets made, .venv too
	rm -rf .venv build dist *.egg-info .hypothesis .pytest_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

# Prints why a Python cannot be used. It must also parse in the old ones it turns away.
objection := import sys; sys.version_info < (3, 11) and sys.exit("is version %d.%d" % sys.version_info[:2]); \
             import importlib.util as found; found.find_spec("ensurepip") or sys.exit("lacks ensurepip")

.venv/made:
	@for candidate in '$(PYTHON)' python3.13 python3.12 python3.11; do \
	    if why=$$("$$candidate" -c '$(objection)' 2>&1); then \
	        echo "making .venv with $$candidate"; \
	        "$$candidate" -m venv --clear .venv && touch $@; exit; \
	    fi; \
	    reason=$${reason:-"$$candidate $$(echo "$$why" | tail -n 1)"}; \
	done; \
	echo "jaxgrad needs Python 3.11 or later with venv ($$reason):" \
	     "install python3 and python3-venv, or run make PYTHON=/path/to/python" >&2; exit 1

.venv/installed: .venv/made pyproject.toml
	$(python) -m pip install --editable '.[test,demo,lint]'
	@touch $@

.venv/torch: .venv/installed
	$(python) -m pip install --editable '.[oracle]'
	@touch $@
