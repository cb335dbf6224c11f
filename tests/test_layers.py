"""The data's way: a package imports only from those before it; no file outgrows its limit."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "dris"

MAY_IMPORT = {
    "core": set(),
    "adapters": {"core"},
    "belief": {"core"},
    "learning": {"core", "belief"},
    "evaluation": {"core", "belief", "learning"},
    "sim": {"core"},
    "perception": {"core"},
    "catching": {"core", "belief", "learning", "evaluation", "sim", "perception"},
    "robot": {"core", "belief", "learning", "evaluation", "perception", "catching"},
    "physx": {"core", "sim", "catching"},
    "lab": {"core", "belief", "evaluation", "catching", "perception"},
    "experiments": {
        *("core", "belief", "learning", "evaluation", "sim", "perception", "catching", "robot", "physx"),
        "lab",
    },
    "report": {"core", "learning", "evaluation", "experiments"},
    "view": {"core", "belief", "learning", "evaluation", "catching", "lab"},
    "cli": {
        *("core", "belief", "learning", "evaluation", "catching", "physx", "lab", "experiments"),
        *("report", "view", "robot"),
    },
}
"""What each package may import besides itself: the table of the README's map."""
LINES = 350
"""About 300, with room for docstrings."""

MODULES = sorted(SOURCE.rglob("*.py"))


def packages() -> list[Path]:
    """Modules in a package."""
    return [path for path in MODULES if path.parent != SOURCE]


def package_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0]


def imports(path: Path) -> set[str]:
    """Packages that a module imports from, wherever the import stands."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            names = [node.module or ""]
            if node.module == "dris":  # `from dris import core`
                names = [f"dris.{alias.name}" for alias in node.names if alias.name != "__version__"]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("dris.")}
    return found


def test_every_package_has_its_row():
    assert {package_of(path) for path in packages()} == set(MAY_IMPORT)


@pytest.mark.parametrize("path", packages(), ids=str)
def test_imports_follow_the_datas_way(path):
    own = package_of(path)
    assert imports(path) - {own} <= MAY_IMPORT[own], f"{own} imports what stands after it"


def test_what_users_import_is_no_case_study():
    assert imports(SOURCE / "__init__.py") <= {"core", "belief", "learning", "evaluation"}


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_files_stay_readable(path):
    assert len(path.read_text().splitlines()) <= LINES


def test_the_package_itself_can_be_called():
    assert imports(SOURCE / "__main__.py") == {"cli"}


def test_importing_does_no_work():
    script = "import dris, sys; assert not {'torch', 'warp', 'mujoco'} & set(sys.modules); print('quiet')"
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert out.stdout == "quiet\n" and out.stderr == ""
