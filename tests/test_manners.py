"""What the project promises about itself: one version, a list of slow tests that does not rot."""

import ast
import re
import tomllib

import pytest
import yaml

import dris
from conftest import SLOW, TESTS

ROOT = TESTS.parent


@pytest.mark.parametrize("entry", sorted(SLOW))
def test_a_test_that_is_listed_as_slow_is_there(entry):
    file, _, function = entry.partition("::")
    tree = ast.parse((TESTS / file).read_text())
    names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert not function or function in names, f"tests/{file} has no {function}: mend tests/conftest.py"


def test_the_halves_of_the_quick_tests_are_all_of_them_and_none_twice():
    halves = re.findall(r'pytest -m "not slow" (\S+)', (ROOT / "Makefile").read_text())
    taken = [file for half in halves for path in ROOT.glob(half) for file in files_of(path)]
    assert len(halves) == 2 and sorted(taken) == sorted(files_of(TESTS))


def files_of(path):
    """The files of tests below a path, or that one."""
    return list(path.rglob("test_*.py")) if path.is_dir() else [path]


def test_the_version_is_written_once():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" not in project["project"] and project["project"]["dynamic"] == ["version"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "dris.__version__"}
    for name in ("CITATION.cff", "README.md", "mkdocs.yml"):
        assert not re.search(
            rf"(?<![\d.]){re.escape(dris.__version__)}(?![\d.])", (ROOT / name).read_text()
        ), name


def test_what_is_pinned_serves_what_is_asked_for():
    """Every dependency and extra of pyproject.toml has its pin; dris itself (bench) has none."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    pinned = {line.split("==")[0].lower().replace("_", "-") for line in lines if not line.startswith("#")}
    asked = [
        *project["dependencies"],
        *(one for extra in project["optional-dependencies"].values() for one in extra),
    ]
    names = {re.match(r"[\w-]+", one).group().lower().replace("_", "-") for one in asked}
    assert names - {"dris"} <= pinned


def test_the_workflow_tries_every_python_that_is_named():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = {line.rpartition(" ")[2] for line in project["classifiers"] if "Python :: 3." in line}
    jobs = yaml.safe_load((ROOT / ".github/workflows/check.yml").read_text())["jobs"]
    assert set(jobs["tests"]["strategy"]["matrix"]["python"]) == named == {"3.11", "3.12", "3.13"}


def test_the_makefile_has_the_targets_that_are_named():
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), flags=re.M))
    files = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    named = {
        name for file in files for name in re.findall(r"(?:`|^ {4})make (\w+)", file.read_text(), flags=re.M)
    }
    assert named and named <= targets
