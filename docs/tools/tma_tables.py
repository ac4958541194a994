"""Tables of the TMA unit's page of reductions."""

from docs.tools.markdown import table
from hw.arch.boxes.reductions import REDUCED_FORMATS
from hw.arch.descriptor import ElementFormat

__all__ = ["reductions"]


def reductions() -> str:
    """Which operation takes which format."""
    rows = [
        (
            f"`{format.name}`",
            *("yes" if format in formats else "–" for formats in REDUCED_FORMATS.values()),
        )
        for format in ElementFormat
    ]
    return table(("format", *(f"`{each.name}` {each.value}" for each in REDUCED_FORMATS)), rows)
