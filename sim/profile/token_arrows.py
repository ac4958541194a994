"""Tokens of a kernel: the turn of a slot, or the stored box, that lets a box of an AGCU begin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from hw.arch.pmu import PmuProgram
from hw.arch.unit_kind import AGCU
from sw.fabric.nets import Output, find_nets
from sw.prove.credits import tokens_needed
from sw.timing.prediction import unit_name

if TYPE_CHECKING:
    from sw.chip_program import ChipProgram
    from sw.compiled_part import CompiledPart

__all__ = ["Place", "token_arrows"]

#: Unit, part and number of a block.
Place = tuple[str, str, int]

_ENGINES = ("W0", "W1", "R0", "R1")


def token_arrows(part: CompiledPart) -> Iterator[tuple[Place, Place]]:
    """Where the last token comes from that a box needs, and the box: from each source.

    Boxes that the initial credits let begin have none.

    Parameters
    ----------
    part : CompiledPart
    """
    program = part.chip
    nets = find_nets(program)
    for index, agcu in program.agcus.items():
        for side, issuers in (("load", agcu.loads), ("store", agcu.stores)):
            for stream, issuer in enumerate(issuers):
                if issuer is None:
                    continue
                sink = unit_name(AGCU, (index,)), f"{side} {stream}"
                for output, given in tokens_needed(program, nets, index, issuer):
                    unit, sender = _sender(program, output)
                    for box in np.flatnonzero(np.diff(given, prepend=0)):
                        yield (unit, sender, int(given[box]) - 1), (*sink, int(box))


def _sender(program: ChipProgram, output: Output) -> tuple[str, str]:
    """Unit and part that send the tokens of an output."""
    unit = program.unit(output.at)
    name = unit_name(output.kind, output.at)
    if isinstance(unit, PmuProgram):
        return name, _ENGINES[int(unit.tokens[output.port].value) - 1]
    return name, f"store {output.port}"
