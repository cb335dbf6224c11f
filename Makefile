# Every target works as the first command in a fresh clone: it makes .venv and installs what is pinned.
PYTHON ?= python3
BIN := .venv/bin
export MUJOCO_GL ?= egl

.PHONY: demo test check format

demo: .venv/installed
	$(BIN)/dris check
	$(BIN)/dris play --agent veltrack --seed 3 --out demo
	@echo "Look at demo/veltrack-paper-3.mp4 and demo/veltrack-paper-3.png"

test: .venv/installed
	$(BIN)/python -m pytest

check: .venv/installed
	$(BIN)/ruff check src tests examples
	$(BIN)/ruff format --check src tests examples
	$(BIN)/mypy

format: .venv/installed
	$(BIN)/ruff check --fix src tests examples
	$(BIN)/ruff format src tests examples

# torch first and exactly: a looser request would bring gigabytes of CUDA along.
.venv/installed: requirements.txt pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet torch==2.13.0
	$(BIN)/python -m pip install --quiet -r requirements.txt
	$(BIN)/python -m pip install --quiet --no-deps --editable .
	touch .venv/installed
