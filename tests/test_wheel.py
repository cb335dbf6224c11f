"""The wheel: what a user installs holds all that the package needs, and the one version."""

import re
import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

import dris

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "dris"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built offline, from a copy: setuptools leaves folders behind."""
    copy, dist = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, listed.stdout.split("\0")):
        if name.startswith("src/") or "/" not in name:
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_bytes((ROOT / name).read_bytes())
    command = ["pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    out = subprocess.run(
        [sys.executable, "-m", *command, "--wheel-dir", str(dist), str(copy)], capture_output=True, text=True
    )
    assert out.returncode == 0, out.stderr
    (file,) = dist.glob("*.whl")
    return file


def test_every_file_of_the_source_comes_along(wheel):
    listed = subprocess.run(
        ["git", "ls-files", "-z", "src/dris"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    wanted = {name.removeprefix("src/") for name in filter(None, listed.stdout.split("\0"))}
    there = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("dris/")}
    assert wanted - there == set(), "no pattern of package-data in pyproject.toml takes them along"
    assert there - wanted == set()


@pytest.mark.parametrize(
    "pattern",
    [
        r"dris/py\.typed",
        r"dris/catching/assets/.+\.xml",
        r"dris/catching/policies/dris-200\.safetensors",
        r"dris/experiments/study/published\.json",
    ],
)
def test_what_the_commands_read_is_there(wheel, pattern):
    assert any(re.fullmatch(pattern, name) for name in zipfile.ZipFile(wheel).namelist())


def test_templates_of_the_pages_are_there(wheel):
    folders = {file.parent for file in SOURCE.rglob("*.html")}
    assert folders
    names = zipfile.ZipFile(wheel).namelist()
    for folder in folders:
        assert any(name.startswith(f"dris/{folder.relative_to(SOURCE).as_posix()}/") for name in names)


def test_the_wheel_has_the_source_s_version(wheel):
    assert wheel.name.startswith(f"dris-{dris.__version__}-py3-none-any")
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        found = Parser().parsestr(archive.read(metadata).decode())
        (scripts,) = [name for name in archive.namelist() if name.endswith("entry_points.txt")]
        assert "dris = dris.cli.main:main" in archive.read(scripts).decode()
    assert found["Version"] == dris.__version__
    assert found["License-Expression"] == "Apache-2.0"
    assert found["Requires-Python"] == ">=3.11"


def test_the_wheel_runs_without_the_source(wheel, tmp_path):
    """Unpacked elsewhere, in a folder and a search path that know nothing of this one."""
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    script = (
        f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r})\n"
        "import dris, dris.catching.task as task, dris.catching.baselines as baselines\n"
        f"assert dris.__file__.startswith({str(tmp_path)!r}), dris.__file__\n"
        "from dris import Env, EnvConfig\n"
        "env = Env(task.CatchingTask(), EnvConfig(sets=2, instances=3))\n"
        "print(tuple(env.reset().states.shape), dris.__version__)\n"
    )
    out = subprocess.run(
        [sys.executable, "-P", "-c", script], capture_output=True, text=True, cwd=tmp_path, env={"PATH": ""}
    )
    assert out.returncode == 0, out.stderr
    assert out.stdout.splitlines()[-1] == f"(2, 3, 6) {dris.__version__}"
