"""Generated blocks of a page: Markdown between two marker comments.

A block begins with the line ``<!-- generated: NAME -->`` and ends with ``<!-- end of NAME -->``.
"""

import re

__all__ = ["blocks", "replaced", "without_blocks"]

_BLOCK = re.compile(
    r"(<!-- generated: (?P<name>[\w-]+) -->\n)(?P<content>.*?)(<!-- end of (?P=name) -->)",
    re.DOTALL,
)


def blocks(text: str) -> dict[str, str]:
    """Contents of the blocks of a page, by name."""
    return {found["name"]: found["content"] for found in _BLOCK.finditer(text)}


def replaced(text: str, name: str, content: str) -> str:
    """Page with the content of one block replaced.

    Raises
    ------
    ValueError
        If the page has not exactly one block of that name.
    """
    count = sum(found["name"] == name for found in _BLOCK.finditer(text))
    if count != 1:
        raise ValueError(f"Blocks `{name}` of the page must be 1, not {count}")

    def change(found: re.Match[str]) -> str:
        return found[1] + content + found[4] if found["name"] == name else found[0]

    return _BLOCK.sub(change, text)


def without_blocks(text: str) -> str:
    """Page of the same length with blanks in the place of generated blocks."""
    return _BLOCK.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
