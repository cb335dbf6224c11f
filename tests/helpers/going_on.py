"""Searches of hours, run by hand: they go on where their file ends."""

import sys

from dris.core.files import read_json


def begun(file, seed, **nothing_yet):
    """What a file holds of a search, or what one begins with; ends the program if it is of another seed."""
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.exists():
        return {"schema": 1, "seed": seed, **nothing_yet}
    found = read_json(file)
    if found["seed"] != seed:
        sys.exit(f"{file} is of seed {found['seed']}, not {seed}: choose another file")
    return found
