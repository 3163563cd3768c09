# Everything is set up in .venv: needs Python 3.11 or later, git and g++ (torch.compile builds C++).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# In a container one is often root, which Jupyter wants to be told.
ROOT_FLAG := $(if $(filter 0,$(shell id -u)),--allow-root)
NOTEBOOKS := $(sort $(wildcard notebooks/*.ipynb))
# Its outputs have times and process numbers of their own.
LIVE := notebooks/08_watch_a_live_compile.ipynb
STRICT := $(filter-out $(LIVE),$(NOTEBOOKS))
# Loading nbval takes each process some seconds, and only the notebooks need it.
TESTS := $(BIN)/python -m pytest -p no:nbval --numprocesses 2 --dist worksteal --doctest-modules --benchmark-disable
# Two halves instead of xdist, which spends 3 ms on each test: more than most of these thousands take.
HALF := $(addprefix tests/,analysis answers auditing cli devices keys locking readers/remote_cache redaction report wild)
UNIT := $(BIN)/python -m pytest -p no:nbval -p no:xdist -p no:logging --capture sys --benchmark-disable --hypothesis-profile few -m "not slow" --quiet

.PHONY: demo lab test sweep unit unit-one unit-other lint release bench models fuzz mutants notebooks readme accuracy docs site lowest clean

# The extra that a target needs is installed once; touching pyproject.toml installs it again.
# pip compiles no editable install: where Python writes no bytecode, each start would compile it all.
$(VENV)/.installed-%: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".$(if $(filter core,$*),,[$*])"
	$(BIN)/python -m compileall -q cachescope
	touch $@

demo: $(VENV)/.installed-core  ## explain the shipped recordings in the terminal
	$(BIN)/cachescope demo

lab: $(VENV)/.installed-lab  ## open JupyterLab on the first notebook
	$(BIN)/jupyter lab $(ROOT_FLAG) notebooks/01_why_did_it_miss.ipynb

# The tests come last, and say in the last line what was left out.
# Notebooks run one after the other: of two processes that start kernels at once, both may have found the same port free.
# A sixteenth of the files with programs of torch and pages in chromium, another one at each commit; and those that the last commit changed.
test: $(VENV)/.installed-test  ## tests, doctests and notebooks; slow suites where what they cover changed, a sixteenth of their files, and all with ALL=1
	@echo "notebooks, strict: $(words $(STRICT)), a test for each code cell"
	$(BIN)/python -m pytest --nbval $(STRICT)
	@echo "notebooks against real torch, lax: $(words $(LIVE)), a test for each code cell"
	$(BIN)/python -m pytest --nbval-lax $(LIVE)
	$(if $(ALL),,CACHESCOPE_SUITES=changed CACHESCOPE_SHARE=$(or $(SHARE),$(shell git rev-parse --short HEAD))) $(TESTS) -m "not models and not sweep" cachescope tests

sweep: $(VENV)/.installed-test  ## what checks every recording, column, command or damage, measures, runs many programs, or has thousands of examples; SHARE=SEED for a quarter of them
	CACHESCOPE_SHARE=$(SHARE) $(TESTS) -m sweep tests

unit: $(VENV)/.installed-test  ## what takes under a minute: no torch, no browser, no doctests, no long property test
	$(MAKE) --jobs 2 unit-one unit-other

unit-one:
	$(UNIT) $(HALF)

unit-other:
	$(UNIT) $(addprefix --ignore ,$(HALF)) tests

lint: $(VENV)/.installed-dev  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

release:  ## what has to pass before a release: everything; notes the commit at which it did
	$(MAKE) test lint docs sweep ALL=1
	$(MAKE) bench models fuzz
	git rev-parse HEAD > .ci/released

bench: $(VENV)/.installed-test  ## measurements beside their peers, at the sizes of their goals
	CACHESCOPE_LOG_MEGABYTES=$${CACHESCOPE_LOG_MEGABYTES:-100,10} CACHESCOPE_SCAN_FILES=$${CACHESCOPE_SCAN_FILES:-100000} \
	    $(BIN)/python -m pytest --benchmark-only tests/benchmarks

models: $(VENV)/.installed-models  ## a thousand lookups of real models, and advice that takes many compiles: an hour or so
	$(BIN)/python -m pytest -p no:nbval -m models tests

fuzz: $(VENV)/.installed-test  ## a million inputs that nobody wrote: an hour or so; SEED=N and INPUTS=N for others
	cd tests && ../$(BIN)/python -m fuzz --seed $(or $(SEED),1) --inputs $(or $(INPUTS),1000000)

mutants: $(VENV)/.installed-test  ## changes to the code that a quick test should notice; SEED=N, COUNT=N, and ARGS="--at PATH" for others
	PYTHONPATH=.:tests $(BIN)/python -m mutants --seed $(or $(SEED),1) --count $(or $(COUNT),300) $(ARGS)

notebooks: $(VENV)/.installed-test  ## execute the notebooks anew
	$(BIN)/jupyter nbconvert --to notebook --execute --inplace \
	    --ClearMetadataPreprocessor.enabled=True \
	    --ClearMetadataPreprocessor.preserve_nb_metadata_mask='{("language_info", "name"), "kernelspec"}' $(NOTEBOOKS)
	$(BIN)/python tests/draw_pictures.py $(NOTEBOOKS)

readme: $(VENV)/.installed-test  ## print the made parts of the README anew
	$(BIN)/python tests/make_readme.py

accuracy: $(VENV)/.installed-test  ## count anew how right it is, and write the page: ten minutes
	$(BIN)/python tests/accuracy.py

docs: $(VENV)/.installed-docs  ## the site, into docs/_build/html; a warning fails it
	$(BIN)/python -m sphinx --builder html --fail-on-warning --keep-going --quiet docs docs/_build/html
	$(BIN)/python docs/make_try.py docs/_build/html/try
	@echo "docs/_build/html/index.html"

site: $(VENV)/.installed-lab  ## the demo without a server, into build/site: a report of every recording
	$(BIN)/python docs/make_demo.py build/site

lowest:  ## the quick tests with the lowest versions that pyproject.toml allows
	test -x .venv-lowest/bin/python || $(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check --constraint tests/lowest.txt --editable ".[test]"
	.venv-lowest/bin/python -m pytest -p no:nbval --numprocesses 2 --dist worksteal --benchmark-disable -m "not slow" tests

clean:
	rm -rf $(VENV) .venv-lowest docs/made docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
