"""The division of a kernel into parts: so far one part, launched once."""

from __future__ import annotations

from hw.arch.config import ChipConfig
from sw.array_spec import arrays_of
from sw.ir.program import Program
from sw.parts.part import Argument, Division, Part, PartLaunch

__all__ = ["divide"]


def divide(program: Program, config: ChipConfig) -> Division:
    """Divide a kernel into parts, each of which one image computes.

    Parameters
    ----------
    program : Program
        After `simplify`.
    config : ChipConfig
        The chip that runs it.
    """
    arrays = arrays_of(program)
    launch = PartLaunch(tuple(Argument(each.name) for each in arrays))
    return Division((Part(program, arrays, (launch,)),))
