"""Pages of the site: those of the project, with their links set to what the site has.

A link to a module or a package leads to its page of the reference, one to an example to its page.
Markdown is read here by a stricter reader than elsewhere: a list needs a blank line before it, and
the items in an item four blanks.
"""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path, PurePosixPath

from docs.tools.figures import ROOT
from docs.tools.gallery import PICTURES, commands
from docs.tools.pages import PACKAGES

__all__ = ["GUIDE", "example_pages", "for_site", "project_pages"]

GUIDE = "docs/guide"
_TOP = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")
_FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_MARKER = re.compile(r"^<!-- (?:generated: |end of )[\w-]+ -->$", re.MULTILINE)
_LINK = re.compile(r"(?<=\]\()(?P<target>[^)#\s]+)(?P<anchor>#[^)\s]*)?(?=\))")
_ITEM = re.compile(r"(?: *)(?:[-*]|\d+\.) ")


def project_pages() -> list[str]:
    """Files of all pages, from the top of the project."""
    below = sorted((ROOT / "docs").rglob("*.md"))
    return [*_TOP, *(file.relative_to(ROOT).as_posix() for file in below)]


def _examples() -> list[Path]:
    return sorted((ROOT / "examples").rglob("*.py"))


def _page_of_example(file: Path) -> str:
    return file.relative_to(ROOT).with_suffix(".md").as_posix()


def example_pages() -> dict[str, str]:
    """Pages of the examples: the docstring as text, and the source below it; and their list."""
    pages, listed = {}, ["# Examples\n"]
    for file in _examples():
        source = file.read_text(encoding="utf-8")
        docstring = ast.get_docstring(ast.parse(source)) or ""
        head, _, rest = docstring.partition("\n")
        title = head.rstrip(".")
        body = source.split('"""', 2)[2].lstrip("\n")
        name = file.relative_to(ROOT).as_posix()
        pages[_page_of_example(file)] = (
            f"# {title}\n{rest}\n\n`{name}`:\n\n```python\n{body}```\n\n"
            f"Run it with `python {name}`.\n"
        )
        listed.append(f"- [{title}]({file.relative_to(ROOT / 'examples').with_suffix('.md')})")
    return {"examples/index.md": "\n".join([listed[0], *listed[1:]]) + "\n", **pages}


def _in_site(target: str, page: str) -> str:
    """Target in the site of a link of a page.

    Raises
    ------
    ValueError
        If the site has no page for it.
    """
    start = PurePosixPath(page).parent
    path = os.path.normpath((start / target).as_posix())
    file = ROOT / path
    if file.suffix == ".md":
        return target
    if path.startswith(f"{PICTURES}/") and file.name in commands():
        return target
    if path.startswith("examples"):
        to = "examples/index.md" if file.is_dir() else _page_of_example(file)
    elif PurePosixPath(path).parts[0] in PACKAGES and (file.is_dir() or file.suffix == ".py"):
        to = f"reference/{path.removesuffix('.py')}.html"
    else:
        raise ValueError(f"Link of {page} must lead to a page, module or picture, not {target}")
    return os.path.relpath(to, start)


def _with_lists(text: str) -> str:
    """Text with a blank line before each list, and items in items set in by four blanks."""
    lines: list[str] = []
    before = ""
    for line in text.split("\n"):
        item = _ITEM.match(line)
        if item and before.strip() and not before.startswith(" ") and not _ITEM.match(before):
            # An item that follows the end of an item of several lines is none of these.
            if not _in_list(lines):
                lines.append("")
        if item:
            blanks = len(line) - len(line.lstrip())
            line = " " * (2 * blanks) + line.lstrip()
        lines.append(line)
        before = line
    return "\n".join(lines)


def _in_list(lines: list[str]) -> bool:
    """Whether the paragraph that the lines end with belongs to an item."""
    for line in reversed(lines):
        if not line.strip():
            return False
        if _ITEM.match(line):
            return True
    return False


def for_site(text: str, page: str) -> str:
    """Markdown of a page as the site reads it.

    Parameters
    ----------
    text : str
    page : str
        File of the page, from the top of the project.
    """

    def linked(found: re.Match[str]) -> str:
        target, anchor = found["target"], found["anchor"] or ""
        return found[0] if "://" in target else _in_site(target, page) + anchor

    parts = _FENCED.split(text)
    for number, part in enumerate(parts):
        if number % 2 == 0:
            parts[number] = _with_lists(_LINK.sub(linked, _MARKER.sub("", part)))
    return "".join(parts)
