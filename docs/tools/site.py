"""The site of ``make docs``: guide, reference and modules, in one folder that opens from disk."""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path
from typing import Any

from mkdocs.commands.build import build as build_site
from mkdocs.config import load_config

from docs.tools.figures import ROOT
from docs.tools.gallery import PICTURES, draw
from docs.tools.pages import write
from docs.tools.site_pages import example_pages, for_site, project_pages

__all__ = ["build", "main", "navigation", "stage"]

_CONFIG = ROOT / "docs" / "mkdocs.yml"


def _sources() -> dict[str, str]:
    """Every page of the site, by its file."""
    own = {name: (ROOT / name).read_text(encoding="utf-8") for name in project_pages()}
    return {name: for_site(text, name) for name, text in (own | example_pages()).items()}


def navigation(entries: Any, pages: list[str]) -> Any:
    """Navigation with the pages of each folder in the place of its name, in the order of names.

    Parameters
    ----------
    entries : list
        As in ``mkdocs.yml``.
    pages : list of str
    """
    found = []
    for entry in entries:
        if isinstance(entry, dict):
            ((title, inside),) = entry.items()
            below = sorted(page for page in pages if page.startswith(f"{inside}/"))
            if isinstance(inside, list):
                found.append({title: navigation(inside, pages)})
            else:
                first = [page for page in below if page.endswith("/index.md")]
                rest = [page for page in below if page not in first]
                found.append({title: [*first, *rest] if below else inside})
        else:
            found.append(entry)
    return found


def stage(folder: Path) -> list[str]:
    """Write what the site is made of below a folder: pages, pictures, modules, style.

    Returns
    -------
    list of str
        Files of the pages.
    """
    pages = _sources()
    for name, text in pages.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    shutil.copytree(ROOT / "docs" / "theme", folder / "theme")
    (folder / PICTURES).mkdir(parents=True)
    with tempfile.TemporaryDirectory() as work:
        for name, drawn in draw(Path(work)).items():
            shutil.copy(drawn, folder / PICTURES / name)
    write(folder / "reference")
    return list(pages)


def build(folder: Path) -> int:
    """Build the site below a folder; a link that leads nowhere ends it.

    Returns
    -------
    int
        Number of pages, those of modules left out.
    """
    with tempfile.TemporaryDirectory() as work:
        staged = Path(work) / "pages"
        pages = stage(staged)
        config = load_config(
            str(_CONFIG), docs_dir=str(staged), site_dir=str(folder.resolve()), strict=True
        )
        config.nav = navigation(config.nav, pages)
        build_site(config)
    # Pages for a server: an answer to addresses that are not there, and a list for crawlers.
    for name in ("404.html", "sitemap.xml", "sitemap.xml.gz"):
        (folder / name).unlink()
    return len(pages)


def main() -> None:
    """Build the site below the folder that the command line names."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    print(f"{build(folder)} pages, and those of the modules: open {folder / 'index.html'}")


if __name__ == "__main__":
    main()
