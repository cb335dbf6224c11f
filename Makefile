# Every target works as the first command in a fresh clone: it makes .venv and installs what is pinned.
PYTHON ?= python3
BIN := .venv/bin
export MUJOCO_GL ?= egl

.PHONY: demo test quick quick-a-to-e quick-f-to-z check format docs

# The main job, from nothing: about 5 minutes on two cores. Interrupt and repeat: it goes on.
demo: .venv/installed
	$(BIN)/dris train catching --instances 10 --iterations 400 --ppo.ema-window 0.05 --evaluate-every 40 --evaluate-episodes 500 --out demo
	$(BIN)/dris evaluate demo e2e veltrack still --conditions clean noise-1 noise-2 noise-3 noise-4 --json demo/scores.json
	$(BIN)/dris play demo --instances 10 --seed 3 --out demo
	$(BIN)/dris play veltrack --instances 10 --seed 3 --out demo
	$(BIN)/dris play demo --html --instances 60 --seed 3 --out demo
	$(BIN)/dris report demo
	@echo "Open demo/index.html, turn demo/demo-n60-3.html around, or throw balls at it yourself: $(BIN)/dris view demo"

# Everything.
test: .venv/installed
	$(BIN)/python -m pytest

# Everything but what tests/conftest.py lists as slow, a half on each of two cores: a minute and a half.
quick: .venv/installed
	@$(MAKE) --no-print-directory -j2 --output-sync=target quick-a-to-e quick-f-to-z

quick-a-to-e: .venv/installed
	$(BIN)/python -m pytest -m "not slow" tests/[a-e]*/

quick-f-to-z: .venv/installed
	$(BIN)/python -m pytest -m "not slow" tests/[f-z]*

check: .venv/installed
	$(BIN)/ruff check src tests examples
	$(BIN)/ruff format --check src tests examples
	$(BIN)/mypy

format: .venv/installed
	$(BIN)/ruff check --fix src tests examples
	$(BIN)/ruff format src tests examples

# The site, in site/index.html. Needs no network; a link or a name that leads nowhere is an error.
docs: .venv/installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# torch first and exactly: a looser request would bring gigabytes of CUDA along.
.venv/installed: requirements.txt pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet torch==2.13.0
	$(BIN)/python -m pip install --quiet --no-deps -r requirements.txt
	$(BIN)/python -m pip install --quiet --no-deps --editable .
	touch .venv/installed
