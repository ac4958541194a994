"""Tables of the pages as Markdown reads them."""

import re
from pathlib import Path

import pytest

from docs.tools.gallery import PICTURES, commands
from sw.kernels import modules

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"]
PAGES += sorted((ROOT / "docs").rglob("*.md"))
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def broken(text):
    """First line of each group of table rows that has no head, or rows of another width."""
    text = _FENCED.sub(lambda found: "\n" * found[0].count("\n"), text)
    for group in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        rows = [row.replace(r"\|", "") for row in group.splitlines()]
        rule = rows[1] if len(rows) > 1 else ""
        widths = {re.sub(r"`[^`]*`", "", row).count("|") for row in rows}
        if not re.fullmatch(r"\|(:?-+:?\|)+", rule) or len(widths) != 1:
            yield rows[0]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_table_has_a_head_and_rows_of_its_width(page):
    assert list(broken(page.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    "text",
    [
        "| a | b |\n|---|---|\n| 1 | 2 |\n\n| 3 | 4 |\n",
        "| a | b |\n| 1 | 2 |\n",
        "| a | b |\n|---|---|\n| 1 |\n",
    ],
)
def test_a_broken_table_is_found(text):
    assert list(broken(text))


def links():
    """Page and target of each link to another file of the project."""
    for page in PAGES:
        text = _FENCED.sub("", page.read_text(encoding="utf-8"))
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
            if "://" not in target:
                yield page, target


def test_every_link_leads_to_a_file():
    # A picture that the gallery draws is there when the site is built.
    drawn = {ROOT / PICTURES / name for name in commands()}
    assert [
        (page.name, target)
        for page, target in links()
        if not (page.parent / target).exists() and (page.parent / target).resolve() not in drawn
    ] == []


def headings(text):
    """Anchors of the headings of a page, as the usual renderers make them."""
    found = re.findall(r"^#+ (.*)$", _FENCED.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


def test_every_link_to_a_section_leads_to_a_heading():
    wrong = []
    for page in PAGES:
        text = _FENCED.sub("", page.read_text(encoding="utf-8"))
        for target, anchor in re.findall(r"\]\(([^)#]*)#([^)]*)\)", text):
            to = page.parent / target if target else page
            if "://" not in target and anchor not in headings(to.read_text(encoding="utf-8")):
                wrong.append((page.name, target, anchor))
    assert wrong == []


def test_the_anchor_of_a_heading():
    assert headings("## Keys of `--set`\n```\n# no\n```\n# µm², a\n") == {"keys-of---set", "µm²-a"}


def test_every_page_is_linked():
    linked = {(page.parent / target).resolve() for page, target in links()}
    # Every contributor opens these.
    opened = {ROOT / name for name in ("README.md", "CONTRIBUTING.md")}
    assert [page.name for page in PAGES if page not in linked | opened] == []


def test_every_kernel_has_a_section():
    page = (ROOT / "docs" / "kernels.md").read_text(encoding="utf-8")
    heads = {
        name for head in re.findall(r"^## (.+)$", page, re.MULTILINE) for name in head.split(", ")
    }
    missing = sorted(set(modules()) - heads)
    assert missing == [], "docs/kernels.md must have a section for each kernel of sw/kernels"


def test_every_testbench_has_a_row():
    page = (ROOT / "docs" / "testbenches.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \|", page.partition("| block |")[2], re.MULTILINE)
    blocks = [file.stem for file in (ROOT / "sim" / "tb").glob("*.py") if file.stem[0] != "_"]
    assert sorted(rows) == sorted(blocks)
