"""Pages from templates: one base, one style sheet, text escaped, nothing written before all is made."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from dris.core.files import write_atomically


@cache
def _templates() -> Environment:
    found = Environment(
        loader=PackageLoader("dris.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    found.filters["fixed"] = format  # {{ value | fixed(".2f") }}
    found.filters["median"] = median
    return found


def write_page(out: Path, template: str, files: dict[str, bytes], **context: Any) -> Path:
    """Write `out/index.html` from a template, and the files that it shows; returns the page."""
    page = _templates().get_template(template).render(context, files=files)
    out.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        write_atomically(out / name, content)
    # Half a surrogate pair, which JSON may hold and UTF-8 not, is shown as its number.
    write_atomically(out / "index.html", page.encode(errors="xmlcharrefreplace"))
    return out / "index.html"
