"""Word of a PCU's program: its layout, and the bits that choose formats."""

from __future__ import annotations

import functools
from typing import Any

from hw.arch.lanes.phase_word import lane_layout
from hw.arch.lanes.softmax_program import softmax_layout
from hw.arch.limits import MAX_MODULUS, PACKET_VECTORS
from hw.arch.words.word_layout import WordLayout
from hw.numeric.formats import Format, int8
from hw.numeric.product_formats import DEFAULT_CELLS, RESULT_FORMATS

__all__ = ["format_modes", "pcu_layout", "rounded_formats"]


@functools.cache
def _filter_layout() -> WordLayout:
    return WordLayout(
        {"modulus": range(MAX_MODULUS + 1), "index": range(MAX_MODULUS)},
    )


def rounded_formats(cells: tuple[Format, ...]) -> tuple[Format, ...]:
    """Formats to which a PCU with these cells can round its sums."""
    found = (each for cell in cells for each in RESULT_FORMATS[cell] if each != cell.accumulator)
    return tuple(dict.fromkeys(found))


def format_modes(cells: tuple[Format, ...]) -> tuple[str, ...]:
    """Bits of the program of a PCU with these cells that choose formats.

    ``int8``: both operands are int8, else floats. ``activation_X``, ``weight_X``: that operand has
    format X, the second of two floats, else the first. ``to_X``: sums are rounded to X.
    """
    second = cells[-1].name
    pair = ("int8",) if cells[-1] == int8 else (f"activation_{second}", f"weight_{second}")
    operands = pair if len(cells) > 1 else ()
    return (*operands, *(f"to_{each.name}" for each in rounded_formats(cells)))


@functools.cache
def pcu_layout(
    lanes: int, cells: tuple[Format, ...] = DEFAULT_CELLS, function_units: int = 0
) -> WordLayout:
    """Layout of a PCU's program.

    Parameters
    ----------
    lanes : int
        Lanes of the PCU (`hw.arch.config.PcuConfig`); 0: no lane program.
    cells : tuple of Format
        Operand formats of its cells.
    function_units : int
        Function units of a lane beside its special function unit.
    """
    fields: dict[str, Any] = {
        **dict.fromkeys(format_modes(cells), 1),
        "weights_by_row": 1,
        "activation": _filter_layout(),
        "weight": _filter_layout(),
        "packet_vectors": range(PACKET_VECTORS.high + 1),
        "by_group": 1,
    }
    if lanes:
        fields |= {
            "auxiliary": _filter_layout(),
            "lanes": lane_layout(function_units),
            "softmax": softmax_layout(),
        }
    return WordLayout(fields)
