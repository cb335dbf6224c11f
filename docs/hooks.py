"""What `mkdocs build` does besides: takes the pages under results/ along, and lists the public names."""

import importlib
from pathlib import Path

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
PAGES = (".html", ".png", ".json", ".mp4", ".css", ".js")
"""Kinds of files under results/ that belong to its pages."""
PUBLIC_NAMES = "<!-- public names -->"
TITLES = {
    "core": "Tasks, environments and conditions",
    "belief": "Beliefs",
    "learning": "Encoder, policy and training",
    "evaluation": "Evaluation",
}
"""Sections of the reference, by the package that a public name lives in."""


def on_files(files: Files, config) -> Files:
    """Add the result pages beside the documentation."""
    for path in sorted((ROOT / "results").rglob("*")):
        if path.suffix in PAGES:
            uri = path.relative_to(ROOT).as_posix()
            files.append(File.generated(config, uri, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page, config, files: Files) -> str:
    """Write out the public names; lead links to results/ to where the site has them."""
    up = "../" * page.file.src_uri.count("/")
    markdown = markdown.replace(f"]({up}../results/", f"]({up}results/")
    if PUBLIC_NAMES in markdown:
        markdown = markdown.replace(PUBLIC_NAMES, public_names())
    return markdown


def public_names() -> str:
    """A section a package, an entry a name that `import dris` offers."""
    dris = importlib.import_module("dris")
    found: dict[str, list[str]] = {package: [] for package in TITLES}
    values = {name: getattr(dris, name) for name in dris.__all__}
    for name in sorted(values, key=lambda name: (name.endswith("Error"), name.lower())):  # errors last
        home = values[name].__module__
        found[home.split(".")[1]].append(f"::: {home}.{name}\n")
    sections = (f"## {TITLES[package]}\n\n" + "\n".join(names) for package, names in found.items() if names)
    return "\n".join(sections)
