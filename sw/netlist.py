"""The netlist between lowering and placement: programs of units, and nets that join their ports."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from hw.arch.agcu import AgcuProgram
from hw.arch.pcu import PcuProgram
from hw.arch.pmu import PmuProgram

__all__ = ["End", "Net", "Netlist", "UnitProgram"]

UnitProgram = PcuProgram | PmuProgram | AgcuProgram


@dataclasses.dataclass(frozen=True, order=True)
class End:
    """A port of a unit.

    Parameters
    ----------
    unit : str
        Name of the unit in the netlist.
    port : int
        Of vectors: input or output of the unit in the order of `hw.arch.places` (PCU: activation,
        weight, auxiliary; PMU: W0, W1 and R0, R1; AGCU: the load or store stream). Of tokens:
        the token output of a PMU or an AGCU, the token port of an AGCU.
    """

    unit: str
    port: int


@dataclasses.dataclass(frozen=True)
class Net:
    """Packets of one or more sources, merged in a fixed rotation, delivered to every sink.

    Parameters
    ----------
    name : str
    sources : tuple of (End, int)
        Outputs in the order of the rotation, each with the packets it gives before the next.
    sinks : tuple of End
        Inputs; each sees every packet.
    tokens : bool
        The net is one of tokens; a token is a packet.
    """

    name: str
    sources: tuple[tuple[End, int], ...]
    sinks: tuple[End, ...]
    tokens: bool = False


@dataclasses.dataclass(frozen=True)
class Netlist:
    """Units that are in use, and what joins them.

    Parameters
    ----------
    units : mapping of str to UnitProgram
        Program of each unit by its name; the program's type says the kind of unit.
    nets : tuple of Net
    fixed : mapping of str to int
        Number of the AGCU for each unit that is one.
    """

    units: Mapping[str, UnitProgram]
    nets: tuple[Net, ...]
    fixed: Mapping[str, int]
