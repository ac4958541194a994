"""Formats of a chip's products: operand formats of its cells, and formats of their sums."""

from __future__ import annotations

from collections.abc import Iterable

from hw.arch.checks import refusal
from hw.numeric.formats import (
    OPERANDS,
    PAIRS,
    Format,
    bf16,
    e4m3,
    e5m2,
    fp16,
    fp32,
    int8,
    int32,
    named,
)

__all__ = ["CELL_SETS", "DEFAULT_CELLS", "RESULT_FORMATS", "cell_set", "result_formats"]

#: Result formats by operand format. A sum of 16-bit floats may be rounded to the format of the
#: operands. 8-bit floats have bf16 instead, which has the range of the sums: in their own format
#: results would need a scale.
RESULT_FORMATS: dict[Format, tuple[Format, ...]] = {
    bf16: (bf16, fp32),
    fp16: (fp16, fp32),
    int8: (int32,),
    e4m3: (bf16, fp32),
    e5m2: (bf16, fp32),
}

#: Sets of operand formats that the cells of a chip can have, each in the order of `OPERANDS`.
CELL_SETS: tuple[tuple[Format, ...], ...] = (
    *((each,) for each in OPERANDS if each in RESULT_FORMATS),
    *(pair for pair in PAIRS if all(each in RESULT_FORMATS for each in pair)),
)

#: Operand formats of the cells of a chip whose configuration names none.
DEFAULT_CELLS = (bf16, int8)


def result_formats(first: Format, second: Format) -> tuple[Format, ...]:
    """Formats of the sums of products of two formats, the shortest first.

    Returns
    -------
    tuple of Format
        Empty if no cell multiplies the two: they differ, and are not floats of one width.
    """
    if {first, second} <= RESULT_FORMATS.keys() and (
        first == second or first.is_float and second.is_float and first.bits == second.bits
    ):
        found = {*RESULT_FORMATS[first], *RESULT_FORMATS[second]}
        return tuple(each for each in named.values() if each in found)
    return ()


def cell_set(names: Iterable[str]) -> tuple[Format, ...]:
    """The set of `CELL_SETS` with these names, in any order.

    Raises
    ------
    BadInputError
        There is none.
    """
    wanted = tuple(names) if isinstance(names, list | tuple) else ()
    for formats in CELL_SETS:
        if len(wanted) == len(formats) and all(each.name in wanted for each in formats):
            return formats
    sets = " or ".join(" and ".join(each.name for each in formats) for formats in CELL_SETS)
    raise refusal("Formats of a PCU", f"be a list of {sets}", names)
