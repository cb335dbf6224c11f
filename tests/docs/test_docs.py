"""Words: what README and docs say is short enough to read, leads somewhere and exists."""

import re
from pathlib import Path

import pytest

import dris
from dris.cli import main

ROOT = Path(__file__).parents[2]
DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS]
PARAGRAPH = 500
"""Most characters of a paragraph or of an item of a list."""


def name(page):
    return page.relative_to(ROOT).as_posix()


def without_code(text):
    """The text without fenced and indented blocks."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    return "\n".join(line for line in text.splitlines() if not re.match(r" {4}(?! *[-*] )", line))


def paragraphs(text):
    """Paragraphs and items of lists; headings, tables and code are none."""
    for block in re.split(r"\n\s*\n", without_code(text)):
        if not block.lstrip().startswith(("|", "#")):
            yield from re.split(r"\n(?=\s*(?:[-*]|\d+\.) )", block)


def code(text):
    """Commands: inline code, indented blocks, and fenced ones that are not Python."""
    text = re.sub(r"^```python.*?^```", "", text, flags=re.M | re.S)
    indented = re.findall(r"^ {4,}(.*)$", text, flags=re.M)
    return [*indented, *re.findall(r"`([^`\n]+)`", text)]


def python_blocks(text):
    return re.findall(r"^```python\n(.*?)^```", text, flags=re.M | re.S)


def test_what_counts_as_a_paragraph():
    text = "# Long heading\n\none\nparagraph\n\n    code\n\n| a | table |\n\n- first\n- second\n\n```python\ncode\n```\n"
    assert [part.strip() for part in paragraphs(text) if part.strip()] == [
        "one\nparagraph",
        "- first",
        "- second",
    ]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_paragraphs_can_be_read(page):
    for paragraph in paragraphs(page.read_text()):
        assert len(paragraph) <= PARAGRAPH, f"{len(paragraph)} characters: {paragraph[:80]}..."


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 130


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=name)
def test_every_relative_link_leads_to_a_file(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if not target.startswith(("http://", "https://", "#")):
            assert (page.parent / target.partition("#")[0]).exists(), f"{name(page)}: {target}"


def test_every_page_is_in_the_site_s_contents():
    contents = (ROOT / "mkdocs.yml").read_text()
    for page in DOCS:
        assert page.relative_to(ROOT / "docs").as_posix() in contents


def test_every_command_that_is_named_exists():
    """`dris VERB` of README and docs, and every verb has its row in the reference."""
    verbs = set(main.verbs([]))
    named = {
        (verb, name(page))
        for page in PAGES
        for text in code(page.read_text())
        for verb in re.findall(r"(?:^|[\s/(])dris ([a-z][a-z-]*)", text)
    }
    assert {(verb, page) for verb, page in named if verb not in verbs} == set()
    assert set(verbs) <= {verb for verb, page in named if page == "docs/reference/command-line.md"}


def test_every_package_is_on_the_map():
    named = set(re.findall(r"`(\w+)`", (ROOT / "README.md").read_text().partition("## Map")[2]))
    packages = {path.parent.name for path in (ROOT / "src" / "dris").glob("*/__init__.py")}
    assert packages and packages <= named


def test_every_name_that_is_imported_is_offered():
    """`from dris import ...` in README and docs."""
    blocks = [(name(page), block) for page in PAGES for block in python_blocks(page.read_text())]
    wanted = {
        (page, one)
        for page, block in blocks
        for names in re.findall(r"^from dris import (.+)$", block, flags=re.M)
        for one in names.split(", ")
    }
    assert wanted
    assert {(page, one) for page, one in wanted if one not in dris.__all__} == set()


def test_python_in_the_docs_can_be_read():
    for page in PAGES:
        for block in python_blocks(page.read_text()):
            compile(block, name(page), "exec")


def test_the_snippets_for_other_learners_run():
    page = (ROOT / "docs" / "guides" / "other-learners.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", page, flags=re.M | re.S)
    assert len(blocks) == 4
    for number, block in enumerate(blocks):
        exec(compile(block, f"snippet {number}", "exec"), {"__name__": "snippet"})


def test_the_guide_s_simulator_keeps_all_promises():
    """The gantry of docs/guides/own-simulator.md, as it stands there."""
    (block,) = python_blocks((ROOT / "docs/guides/own-simulator.md").read_text())
    scope = {"__name__": "gantry"}
    exec(compile(block, "gantry.py", "exec"), scope)
    assert {
        verdict.promise: verdict.problem
        for verdict in dris.check_task(scope["GantryTask"])
        if verdict.problem
    } == {}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_file_of_the_source_that_is_named_exists(page):
    files = {
        path.relative_to(ROOT).as_posix()
        for part in ("src", "tests", "examples")
        for path in (ROOT / part).rglob("*.py")
    }
    made_up = {"gantry.py", "path/file.py"}
    named = {
        one
        for text in re.findall(r"`([^`\n]+)`", page.read_text())
        for one in re.findall(r"[\w/]+\.py", text)
    }
    assert {
        one for one in named - made_up if not any(f"/{file}".endswith(f"/{one}") for file in files)
    } == set()


def test_every_document_that_the_source_names_exists():
    for path in (ROOT / "src").rglob("*.py"):
        for one in re.findall(r"docs/[\w/-]+\.(?:md|png)", path.read_text()):
            assert (ROOT / one).exists(), f"{path.relative_to(ROOT)} names {one}"


def test_every_step_of_the_data_s_way_is_a_module():
    way = (ROOT / "README.md").read_text().partition("The data's way")[2].partition("What a package")[0]
    modules = re.findall(r"\b\w+/\w+\.py\b", way)
    assert len(set(modules)) >= 12
    assert [m for m in modules if not (ROOT / "src" / "dris" / m).exists()] == []
