"""Lane programs of a region of the tile IR: element math, casts and reductions of one tile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hw.arch.config import PcuConfig
from hw.arch.lanes.phase_word import PHASES
from sw.ir import nodes as ir
from sw.ir.format_rules import Format
from sw.ir.types import TileType
from sw.language.errors import ProgramError
from sw.stages.lane_code import LaneCode

__all__ = ["lane_codes"]


def lane_codes(
    nodes: Sequence[ir.Node],
    inputs: Mapping[str, TileType],
    outputs: Mapping[str, Format],
    *,
    lane_axis: int,
    phases: int = PHASES,
    function_bits: int = PcuConfig.function_bits,
) -> tuple[LaneCode, ...]:
    """Programs of the lanes of one or more PCUs that compute a region.

    Parameters
    ----------
    nodes : sequence of Node
        The region in the order of its values: `Map`, `Reduce`, `Cast`, `Full`, `Buffer`, `Mask`.
    inputs : mapping of str to TileType
        Loaded tiles by the names of their values.
    outputs : mapping of str to Format
        Values to send, in the format in which they are stored.
    lane_axis : int
        Axis that lies on the positions of a vector: 0 for rows, 1 for columns.
    phases : int
        Most phases of a program.
    function_bits : int
        Significand bits of the functions, with which constants are computed.

    Raises
    ------
    ProgramError
        At the first node that lanes cannot compute.
    """
    raise ProgramError("unserved", "Lane programs are not made yet", nodes[0].span)
