"""What every page has: a picture first, tables that can be sorted, two colour schemes, nothing from elsewhere."""

import re
import shutil
from pathlib import Path

import pytest
from test_report import make_run

from dris.report.run_page import report_run
from dris.report.trials_page import report_trials

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "results").glob("*/index.html"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_a_page_begins_with_a_picture_and_words_and_asks_nobody(page):
    text = page.read_text()
    body = text.partition("<h1>")[2]
    figure, words, table = (body.find(tag) for tag in ("<figure", "<p>", "<table"))
    assert 0 < figure < words and (table == -1 or words < table)
    assert "prefers-color-scheme: dark" in text and "width=device-width" in text
    for source in re.findall(r'(?:src|href)="([^"]+)"', text):
        assert not source.startswith(("http", "//")) and (page.parent / source).exists(), source


def test_a_run_s_page_shows_its_film_and_links_its_replay(tmp_path):
    run = make_run(tmp_path / "mine")
    for name in (
        "mine-n60-3.mp4",
        "mine-n60-3.png",
        "veltrack-n10-3.mp4",
        "veltrack-n10-3.png",
        "mine-n60-3.html",
    ):
        (run / name).write_bytes(b"")
    text = report_run(run, run).read_text()
    assert (
        text.index('src="mine-n60-3.png"') < text.index("<p>") < text.index("<video") < text.index("<table")
    )
    assert text.count('href="mine-n60-3.html"') == 2 and "succeeds on 80% of 100 single objects" in text
    report_run(run, run)
    assert 'href="index.html"' not in report_run(run, run).read_text()  # it is no replay


def test_the_page_of_trials_links_a_replay_beside_its_film(tmp_path):
    folder, out = tmp_path / "trials", tmp_path / "page"
    folder.mkdir()
    shutil.copy(ROOT / "results" / "trials" / "ramps.json", folder)
    for name in ("ramps-dris-200-caught.mp4", "ramps-dris-200-caught.html", "ramps-dris-200-lost.mp4"):
        (folder / name).write_bytes(name.encode())
    text = report_trials(folder, out).read_text()
    films = re.findall(r"<figure><video.*?</figure>", text)
    assert len(films) == 2 and 'src="ramps-dris-200-caught.mp4"' in films[0]
    assert 'href="ramps-dris-200-caught.html"' in films[0] and "href" not in films[1]
    assert (out / "ramps-dris-200-caught.html").read_bytes() == b"ramps-dris-200-caught.html"


def test_a_click_sorts_a_table_by_its_numbers(tmp_path, browser):
    """Success at noise-2: mine was never measured, so that it comes last either way."""
    run = make_run(tmp_path / "run")
    page = browser.new_page()
    page.set_viewport_size({"width": 400, "height": 800})
    page.goto(report_run(run, run).as_uri())
    names = page.locator("table").first.locator("td:first-child")

    def order(heading):
        page.locator("th").filter(has_text=heading).click()
        return names.all_inner_texts()

    assert names.all_inner_texts() == ["runs/mine", "still"]
    assert order("clean") == ["still", "runs/mine"] and order("clean") == ["runs/mine", "still"]
    assert order("noise-2") == ["still", "runs/mine"] and order("noise-2") == ["still", "runs/mine"]
    assert page.evaluate("document.documentElement.scrollWidth") == 400  # nothing sticks out
    dark = "matchMedia('(prefers-color-scheme: dark)').matches"
    colours = {}
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate(dark) == (scheme == "dark")
        colours[scheme] = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert colours == {"light": "rgb(255, 255, 255)", "dark": "rgb(21, 24, 29)"}
    assert browser.errors == []
