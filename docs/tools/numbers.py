"""Numbers with a unit that a page states without naming their origin."""

import re
from collections.abc import Iterable, Iterator

from docs.tools.blocks import without_blocks
from docs.tools.figures import Figure, Table

__all__ = ["UNITS", "unaccounted"]

#: Words that make a number a figure.
UNITS = (
    *("cycle", "cycles", "s", "ms", "µs", "ns", "ps", "second", "seconds", "minutes", "MHz", "GHz"),
    *("cells", "flip-flops", "transistors", "multiplexers", "definitions", "µm²", "nm"),
    *("bit", "bits", "byte", "bytes", "KiB", "MiB", "GiB", "kB", "MB", "GB"),
    *("%", "ULP", "MAC/cycle", "TOPS", "beats", "bursts", "tests"),
    *("pairs", "triples", "images", "seeds", "products"),
)
_ADJECTIVES = "generic|module|memory|random|data|k|M"
_UNITS = "|".join(map(re.escape, sorted(UNITS, key=len, reverse=True)))
_FIGURE = re.compile(
    rf"(?<![\w.,^/])\d[\d,]*(?:\.\d+)?\s?(?:(?:{_ADJECTIVES})\s)*(?:{_UNITS})(?![\w-])"
)
_ALONE = re.compile(r"\*{0,2}(?:\d{1,3}(?:,\d{3})+|\d+\.\d+)\*{0,2}")
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")
_GROUP = re.compile(r"(?:^\|.*\n?)+", re.MULTILINE)


def _blank(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found[0])


def unaccounted(
    text: str, figures: Iterable[Figure], tables: Iterable[Table] = ()
) -> Iterator[tuple[int, str]]:
    """Line and text of each figure of a page that nothing accounts for.

    Code is left out, for examples are run, and so are generated blocks. In a table a number with
    thousands or decimals is a figure without a unit beside it, too.

    Parameters
    ----------
    text : str
        The page.
    figures, tables : iterable
        Entries of this page.
    """
    spans = [span for figure in figures for span in figure.spans(text)]
    heads = tuple(table.head for table in tables)
    # Lengths stay, so that places are those of the page.
    seen = _FENCED.sub(_blank, without_blocks(text))
    groups = list(_GROUP.finditer(seen))
    listed = [group.span() for group in groups if heads and group[0].startswith(heads)]
    spans += listed
    seen = _CODE.sub(_blank, seen)
    places = [(found.span(), found[0]) for found in _FIGURE.finditer(seen)]
    for group in groups:
        for cell in re.finditer(r"(?<=\|)[^|\n]+(?=\|)", seen[group.start() : group.end()]):
            if _ALONE.fullmatch(cell[0].strip()):
                start = group.start() + cell.start()
                places.append(((start, start + len(cell[0])), cell[0].strip()))
    for (start, end), found in sorted(places):
        if not any(first <= start and end <= last for first, last in spans):
            yield text.count("\n", 0, start) + 1, found
