"""The values that the paper published, to stand beside ours."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any


def load_published() -> dict[str, Any]:
    """Bands by "success" or "reward", method and condition; the real robot's trials under "real"."""
    return json.loads((files("dris.experiments.study") / "published.json").read_text())
