"""assemble: build the program of the chip from unit programs, placement and routes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from hw.arch.agcu import AgcuProgram
from hw.arch.config import ChipConfig
from hw.arch.places import token_ports, vector_ports
from hw.arch.switch import OutputProgram, SwitchProgram
from sw.chip_program import ChipProgram, TileProgram
from sw.fabric.graph import Place
from sw.fabric.netlist_comparison import require_netlist
from sw.fabric.place import Placement
from sw.fabric.route import Hop, Routes
from sw.netlist import Netlist

__all__ = ["assemble"]


def assemble(
    netlist: Netlist, placement: Placement, routes: Routes, config: ChipConfig
) -> ChipProgram:
    """Assemble the program of a chip, and check it against the netlist extracted from it.

    Raises
    ------
    NetlistMismatchError
        If the switch programs do not implement the netlist: a fault of the router.
    BadInputError
        If two nets use the same switch output.
    """
    vectors, tokens = _outputs(routes.vectors), _outputs(routes.tokens)
    units = {placement.tiles[name]: name for name in placement.tiles}
    tiles = {}
    for place in sorted({*units, *vectors, *tokens}):
        kind = config.unit_at(*place)
        unit = netlist.units[units[place]] if place in units else None
        tiles[place] = TileProgram(
            unit,
            SwitchProgram(vector_ports(config, kind), vectors.get(place, ())),
            SwitchProgram(token_ports(config, kind), tokens.get(place, ())),
        )
    agcus = {}
    for name, number in sorted(netlist.fixed.items(), key=lambda each: each[1]):
        agcu = netlist.units[name]
        assert isinstance(agcu, AgcuProgram)
        agcus[number] = agcu
    program = ChipProgram(config, tiles, agcus)
    require_netlist(netlist, placement.tiles, program)
    return program


def _outputs(nets: Mapping[str, Iterable[Hop]]) -> dict[Place, list[OutputProgram]]:
    outputs: defaultdict[Place, list[OutputProgram]] = defaultdict(list)
    for hops in nets.values():
        for hop in hops:
            outputs[hop.place].append(hop.program)
    return outputs
