"""The data's way: a module imports only from what stands before it; no file outgrows its limit."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "dris"
# Rooms in order. A module may import from its own room and from rooms before it.
ROOMS = [
    ["runtime", "edges"],
    ["draws"],
    ["domain"],
    ["task"],
    ["env"],
    ["check", "adapters"],
    ["encoder"],
    ["policy"],
    ["stats"],
    ["evaluate"],
    ["runs"],
    ["report"],
    ["load"],
    ["recipe"],
    ["train"],
    ["sim"],
    ["catching"],
    ["names"],
    ["physx"],
    ["bench"],
    ["twin"],
    ["worlds"],
    ["eyes"],
    ["study"],
    ["outside"],
    ["trials"],
    ["cli_experiments"],
    ["cli"],
]
CORE = {
    "runtime",
    "edges",
    "draws",
    "domain",
    "task",
    "env",
    "check",
    "adapters",
    "encoder",
    "policy",
    "stats",
    "evaluate",
    "runs",
    "report",
    "load",
    "recipe",
    "train",
    "sim",
}
LINES = 350
"""About 300, with room for docstrings."""

MODULES = sorted(SOURCE.rglob("*.py"))


def room_of(name: str) -> int:
    return next(k for k, room in enumerate(ROOMS) if name in room)


def imports(path: Path) -> set[str]:
    """Rooms that a module imports from, wherever the import stands."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            names = [node.module or ""]
            if node.module == "dris":  # `from dris import edges`
                names = [f"dris.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("dris.")}
    return found


@pytest.mark.parametrize("path", [m for m in MODULES if m != SOURCE / "__init__.py"], ids=str)
def test_imports_follow_the_datas_way(path):
    own = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    for other in imports(path):
        assert room_of(other) <= room_of(own), f"{own} imports {other}, which stands after it"
        if own in CORE:
            assert other in CORE, f"the core's {own} imports the case study's {other}"


def test_what_users_import_is_the_core():
    assert imports(SOURCE / "__init__.py") <= CORE


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_files_stay_readable(path):
    assert len(path.read_text().splitlines()) <= LINES


def test_importing_does_no_work():
    import subprocess
    import sys

    script = "import dris, warp; assert warp._src.context.runtime is None; print('quiet')"
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert out.stdout == "quiet\n" and out.stderr == ""
