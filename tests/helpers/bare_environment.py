"""A virtual environment that holds next to nothing, made without a network."""

import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path


def bare_environment(place: Path, packages: tuple[str, ...]) -> Path:
    """Python of a new environment with links to a few of today's packages, and to what they require."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    site = next(place.glob("lib/python*/site-packages"))
    waiting, done = list(packages), set()
    while waiting:
        name = waiting.pop()
        found = importlib.metadata.distribution(name)
        done.add(name)
        needed = [re.match(r"[\w.-]+", line)[0] for line in found.requires or () if "extra ==" not in line]
        waiting += [other for other in needed if other not in done]
        for top in {file.parts[0] for file in found.files} - {"..", "__pycache__"}:
            if not (site / top).exists():
                (site / top).symlink_to(found.locate_file(top))
    return place / "bin" / "python"
