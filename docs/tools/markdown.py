"""Tables in Markdown."""

from collections.abc import Iterable, Sequence

__all__ = ["table"]


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Markdown table; integers get separators of thousands.

    Parameters
    ----------
    heads : sequence of str
    rows : iterable of sequences
        Cells; anything but an integer is written as it prints.
    """

    def line(cells: Sequence[object]) -> str:
        texts = (f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in cells)
        return f"| {' | '.join(texts)} |"

    return "\n".join([line(heads), "|" + "---|" * len(heads), *map(line, rows)]) + "\n"
