# make demo      a short tour of the bundled model
# make test      all tests
# make lint      linter, formatter check, type checker
# make format    format the code
# make bench     speed on a CPU, compared with AllenNLP and BERT if they are set up
# make docs      build the documentation site into site/
# make dist      build and check wheel and sdist; install the wheel elsewhere and run the tour from it
# make test-isa  numerical tests on other code paths of the processor
# make fuzz      damaged models, odd texts, wrong commands and killed jobs; about four minutes
# make test-cluster  tests on a Ray cluster of two nodes and with a server of S3, all on this machine
# make test-integrations  spaCy, transformers, sentence-transformers and flair, in environments of their own
# make test-serve  the service against its OpenAPI schema, 5,000 requests; about two minutes
# make test-page  the service's page in a browser, which has to be installed; about three minutes
# make clean     remove everything these create
#
# Each sets up what it needs in a virtual environment on first use. Variables:
# PYTHON chooses the interpreter. PIP_ARGS is passed to every pip install; for instance
#   make demo PIP_ARGS="--extra-index-url https://download.pytorch.org/whl/cpu"
# takes PyTorch's much smaller build for machines without a GPU.

PYTHON ?= python3
PIP_ARGS ?=
VENV ?= .venv
TEST_PROCESSES ?= 2
BIN := $(VENV)/bin
PIP_OPTIONS := --quiet --disable-pip-version-check -c $(CURDIR)/constraints.txt $(PIP_ARGS)
PIP_INSTALL := $(BIN)/python -m pip install $(PIP_OPTIONS)

.PHONY: demo test lint format bench docs dist test-isa fuzz test-cluster test-integrations test-serve test-page clean

demo: $(VENV)/.base
	$(BIN)/elmokit demo --out demo

# several processes with one thread each: most tests are too small for two threads
test: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(TEST_PROCESSES) --dist worksteal

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/cpu.py
	$(BIN)/python benchmarks/onnx_latency.py

docs: $(VENV)/.docs
	$(BIN)/python docs/make_pages.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open site/index.html"

dist: $(VENV)/.dist
	rm -rf build dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/twine check --strict dist/*
	$(BIN)/python tests/try_wheel.py dist/*.whl -- $(PIP_OPTIONS)

test-isa: $(VENV)/.dev
	$(BIN)/python tests/isa.py

# Ray and S3 in environments of their own: they are large, and not needed by the other tests
test-cluster: $(VENV)-ray/.ready $(VENV)-s3/.ready
	OMP_NUM_THREADS=1 $(VENV)-ray/bin/python -m pytest tests/cluster
	OMP_NUM_THREADS=1 $(VENV)-s3/bin/python -m pytest tests/cluster/test_s3.py

fuzz: $(VENV)/.dev
	$(BIN)/python fuzz/loaders.py
	$(BIN)/python fuzz/texts.py
	$(BIN)/python fuzz/commands.py
	$(BIN)/python fuzz/indexes.py
	$(BIN)/python fuzz/kills.py

# these tools conflict with each other or are too large for every run of the tests
test-integrations: $(VENV)-spacy/.ready $(VENV)-transformers/.ready $(VENV)-flair/.ready
	OMP_NUM_THREADS=1 $(VENV)-spacy/bin/python -m pytest tests/integrations/test_spacy*.py \
	    tests/docs/test_code.py -k spacy
	OMP_NUM_THREADS=1 $(VENV)-transformers/bin/python -m pytest \
	    tests/integrations/test_transformers.py tests/integrations/test_hugging*.py
	OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 $(VENV)-transformers/bin/python -m pytest \
	    tests/integrations/test_sentence_transformers.py tests/integrations/test_word_codes.py \
	    tests/docs/test_code.py -k "sentence or word_codes"
	OMP_NUM_THREADS=1 $(VENV)-flair/bin/python -m pytest tests/integrations/test_flair*.py \
	    tests/docs/test_code.py -k flair

test-serve: $(VENV)-serve/.ready
	$(VENV)-serve/bin/python fuzz/service.py

# Debian's own browser, because playwright's downloads may be out of reach
test-page: $(VENV)-page/.ready
	@for browser in "$$ELMOKIT_CHROMIUM" chromium chromium-browser google-chrome; do \
	    if [ -n "$$browser" ] && command -v "$$browser" > /dev/null; then exit 0; fi; \
	done; echo "no browser; on Debian: sudo apt-get install chromium fonts-noto-cjk" >&2; exit 1
	OMP_NUM_THREADS=1 $(VENV)-page/bin/python -m pytest tests/page

clean:
	rm -rf $(VENV) $(VENV)-spacy $(VENV)-transformers $(VENV)-flair $(VENV)-ray $(VENV)-s3 $(VENV)-serve $(VENV)-page \
	    build dist site demo *.egg-info src/*.egg-info \
	    .pytest_cache .mypy_cache .ruff_cache .hypothesis

# torch first and by its pinned version: a later line must never bring another one
$(VENV)/.base: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "ElmoKit needs Python 3.10 or newer, this is " + sys.version.split()[0] + "; try make PYTHON=python3.12")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP_INSTALL) "$$(grep ^torch== constraints.txt)"
	$(PIP_INSTALL) -e ".[plots]"
	touch $@

$(VENV)/.dev: $(VENV)/.base
	$(PIP_INSTALL) -e ".[dev]"
	touch $@

$(VENV)/.docs: $(VENV)/.base
	$(PIP_INSTALL) -e ".[docs]"
	touch $@

$(VENV)/.dist: $(VENV)/.base
	$(PIP_INSTALL) -e ".[dist]"
	touch $@

$(VENV)-ray/.ready: TOOLS = -e ".[dev,cluster]"
$(VENV)-spacy/.ready: TOOLS = -e ".[spacy]" jieba
$(VENV)-transformers/.ready: TOOLS = -e ".[transformers,sentence-transformers]" accelerate datasets mteb
$(VENV)-serve/.ready: TOOLS = -e ".[serve,parquet,index]" schemathesis
$(VENV)-page/.ready: TOOLS = -e ".[serve]" axe-playwright-python httpx playwright
$(VENV)-flair/.ready: TOOLS = -e ".[flair,gensim]"
$(VENV)-s3/.ready: TOOLS = -e ".[parquet]" "moto[s3,server]" s3fs
$(VENV)-s3/.ready: PIP_OPTIONS := $(subst constraints.txt,constraints-s3.txt,$(PIP_OPTIONS))
$(VENV)-flair/.ready: PIP_OPTIONS := $(subst constraints.txt,constraints-flair.txt,$(PIP_OPTIONS))

$(VENV)-%/.ready: pyproject.toml constraints.txt constraints-flair.txt constraints-s3.txt
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install $(PIP_OPTIONS) "$$(grep ^torch== constraints.txt)"
	$(@D)/bin/python -m pip install $(PIP_OPTIONS) $(TOOLS) pytest hypothesis
	touch $@
