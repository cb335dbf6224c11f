"""The site, built as `make docs` builds it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    out = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        capture_output=True, text=True, cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert out.returncode == 0, out.stderr
    return folder


def test_a_page_asks_nobody_for_anything(site):
    """Scripts, styles, fonts and pictures are the site's own."""
    pages = list(site.rglob("*.html"))
    assert len(pages) > 15
    for page in pages:
        text = page.read_text()
        loaded = re.findall(r"<(?:script|img|iframe|video|source)[^>]*\ssrc=[\"']?([^\"' >]+)", text)
        loaded += re.findall(r"<link[^>]*\shref=[\"']?([^\"' >]+)", text)
        assert not [one for one in loaded if one.startswith(("http", "//"))], page


def test_the_reference_has_every_public_name_with_its_docstring(site):
    import dris

    text = (site / "reference" / "api.html").read_text()
    for name in dris.__all__:
        assert f'id="{getattr(dris, name).__module__}.{name}"' in text, name
    assert "sets that evolve side by side" in text  # of EnvConfig.sets


def test_the_result_pages_come_along(site):
    assert (site / "results" / "paper" / "index.html").is_file()
    assert 'href="../results/paper/index.html"' in (site / "reports" / "study.html").read_text()
