"""Writes the generated blocks, figures and pictures of the pages: ``make figures``."""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

from docs.tools.blocks import replaced
from docs.tools.figures import ROOT, figures
from docs.tools.gallery import COMMITTED, PICTURES, draw
from docs.tools.generated import GENERATED
from docs.tools.site_pages import GUIDE
from docs.tools.walkthrough import rewritten

__all__ = ["main", "update"]


def update(page: str, *, slow: bool) -> bool:
    """Bring one page up to date.

    Parameters
    ----------
    page : str
        File of the page, from the top of the project.
    slow : bool
        Whether to include what synthesizes, emits or simulates a chip.

    Returns
    -------
    bool
        Whether the page has changed.
    """
    contents = {
        name: block.make()
        for name, block in GENERATED.items()
        if block.page == page and (slow or not block.slow)
    }
    computed = {
        figure: figure.expected
        for figure in figures()
        if figure.page == page and figure.values and (slow or not figure.slow)
    }
    # Read last: what is made above may take minutes, in which the page may be edited.
    path = ROOT / page
    before = text = path.read_text(encoding="utf-8")
    if slow and page.startswith(f"{GUIDE}/"):
        text = rewritten(path)
    for name, content in contents.items():
        text = replaced(text, name, content)
    for figure, values in computed.items():
        text = figure.corrected(text, values)
    if text != before:
        path.write_text(text, encoding="utf-8")
    return text != before


def main() -> None:
    """Bring the pages up to date, all of them or those that are named."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("page", nargs="*", help="file of a page; all by default")
    parser.add_argument("--quick", action="store_true", help="leave out what runs or emits a chip")
    args = parser.parse_args()
    pages = {block.page for block in GENERATED.values()} | {figure.page for figure in figures()}
    pages |= {file.relative_to(ROOT).as_posix() for file in (ROOT / GUIDE).rglob("*.md")}
    unknown = sorted(set(args.page) - pages)
    if unknown:
        parser.error(
            f"page must have generated blocks or figures, as docs/stages.md, not {unknown[0]}"
        )
    for page in sorted(args.page or pages):
        changed = update(page, slow=not args.quick)
        print(f"{page}: {'written' if changed else 'as it was'}", flush=True)
    if not args.page:
        with tempfile.TemporaryDirectory() as work:
            for name, file in draw(Path(work), COMMITTED).items():
                shutil.copy(file, ROOT / PICTURES / name)
                print(f"{PICTURES}/{name}: written", flush=True)


if __name__ == "__main__":
    main()
