"""Lane programs of a region of the tile IR: element math, casts and reductions of one tile."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from hw.arch.checks import require_int
from hw.arch.lanes.phase_word import PHASES
from sw.ir import nodes as ir
from sw.ir.format_rules import Format
from sw.ir.types import TileType
from sw.lane_codes.lane_code import LaneCode
from sw.lane_codes.lane_region import RegionWords
from sw.lane_codes.lane_words import Place
from sw.lane_codes.phase_schedule import Schedule
from sw.lane_codes.unit_packing import drafts_of
from sw.language.program_error import refused

__all__ = ["lane_codes"]


def lane_codes(
    nodes: Sequence[ir.Node],
    inputs: Mapping[str, TileType],
    outputs: Mapping[str, Format],
    *,
    lane_axis: int,
    phases: int = PHASES,
    function_bits: int | None = None,
    repeated: Collection[str] = (),
    kept: Collection[str] = (),
    returns: bool = True,
    first: str | None = None,
    numbered: bool = False,
    pairs: bool = False,
) -> tuple[LaneCode, ...]:
    """Programs of the lanes of one or more PCUs that compute a region.

    Parameters
    ----------
    nodes : sequence of Node
        The region in the order of its values: `Map`, `Reduce`, `Cast`, `Full`, `Iota`, `Buffer`,
        `Mask`.
    inputs : mapping of str to TileType
        Loaded tiles by the names of their values.
    outputs : mapping of str to Format
        Values to send, in the format in which they are stored.
    lane_axis : int
        Axis that lies on the positions of a vector: 0 for rows, 1 for columns.
    phases : int
        Most phases of a program.
    function_bits : int or None
        Significand bits of the chip's functions, with which functions of constants are computed;
        None leaves those to the lanes.
    repeated : collection of str
        Inputs of one element per position that come for every vector, as if all were the same.
    kept : collection of str
        Inputs of one element per position, but none of int8, that come once for a packet, in W/16
        elements, and become statistics of the first program.
    returns : bool
        Whether what a program sends may come back to it in a later phase.
    first : str or None
        Input that is the source of the first program, if any phase can take it.
    numbered : bool
        Whether a packet of the first program has all vectors of the region, so that their numbers
        are those of an axis.
    pairs : bool
        Whether a phase may take two inputs of one element per vector, as pairs of a stream.

    Raises
    ------
    ProgramError
        At the first node that lanes cannot compute.
    """
    require_int("Phases of a lane program", phases, 1, PHASES)
    region = RegionWords(
        tuple(nodes), inputs, lane_axis, function_bits, repeated, kept, numbered, pairs
    )
    makers = {node.result.name: node for node in nodes}
    for name, format_ in outputs.items():
        region.send(name, format_, makers.get(name))
    formats = {name: type_.format for name, type_ in inputs.items()}
    drafts = drafts_of(region.table, returns=returns)
    schedule = Schedule(region.table, drafts, formats, phases, returns=returns, first=first)
    codes = schedule.codes()
    if schedule.left:
        numbers = next((node for node in nodes if isinstance(node, ir.Iota)), None)
        if numbers and any(
            region.table.places[leaf] is Place.NUMBER
            for draft in schedule.left
            for leaf in draft.leaves
        ):
            noun = ("row", "col")[numbers.axis]
            rule = "lanes have numbers in the program that reduces, not in one behind it"
            raise refused(numbers, f"`{noun}_index` is not supported here: {rule}")
        names = {each.send.value for each in schedule.left if each.send} & set(outputs)
        name = min(names, default=next(iter(outputs)))
        message = f"`{name}` fits no lane programs of {phases} phases"
        if not any(region.table.places[each] is Place.FULL for each in region.table.ports):
            message = f"`{name}` has rows and columns, and no tile that is loaded has both"
        raise refused(makers.get(name), message, name)
    return codes
