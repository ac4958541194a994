"""Netlist between lowering and placement: unit programs, and nets between their pins."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from hw.arch.ports import UnitProgram

__all__ = ["Pin", "Net", "Netlist"]


@dataclasses.dataclass(frozen=True, order=True)
class Pin:
    """A pin: one port of one unit.

    Parameters
    ----------
    unit : str
        Name of the unit in the netlist.
    port : int
        Of vectors: input or output of the unit's kind (`hw.arch.unit_kind`), such as
        `PcuInput.WEIGHT`. Of tokens: the token output of a PMU or an AGCU, the token port of an
        AGCU.
    """

    unit: str
    port: int


@dataclasses.dataclass(frozen=True)
class Net:
    """A net: packets of its sources, merged in a fixed rotation and delivered to every sink.

    Parameters
    ----------
    name : str
    sources : tuple of (Pin, int)
        Outputs in the order of the rotation, each with its packets per turn.
    sinks : tuple of Pin
        Inputs, each of which receives every packet.
    tokens : bool
        Whether it is a net of the token network, where each token is a packet.
    """

    name: str
    sources: tuple[tuple[Pin, int], ...]
    sinks: tuple[Pin, ...]
    tokens: bool = False


@dataclasses.dataclass(frozen=True)
class Netlist:
    """Netlist: the units in use and the nets between them.

    Parameters
    ----------
    units : mapping of str to UnitProgram
        Program of each unit by its name; the type of the program tells the kind of the unit.
    nets : tuple of Net
    fixed : mapping of str to int
        AGCU number of each unit that is an AGCU.
    """

    units: Mapping[str, UnitProgram]
    nets: tuple[Net, ...]
    fixed: Mapping[str, int]
