"""Classes of the parts of a token-level run, which a run with a clock replaces by its own."""

from __future__ import annotations

import dataclasses

from sw.prove.agcu_actors import BoxServer, BoxStream, IndexVectors, StoredTokens, TokenCount
from sw.prove.lane_actors import LaneUnit
from sw.prove.machine import Channel, Machine, Port
from sw.prove.merge_actors import ClosedEnd, Merge, MergeConsumer
from sw.prove.pcu_actors import Grid, ResultDrain
from sw.prove.pmu_actors import IndexPort, ReadEngine, WriteEngine

__all__ = ["UNTIMED", "Kinds"]


@dataclasses.dataclass(frozen=True)
class Kinds:
    """Class of each kind of part: what a part does is in the base class, a clock adds when.

    Parameters
    ----------
    machine, channel, port, index_port, closed_end, merge, merge_consumer, write_engine, \
read_engine, grid, result_drain, lane_unit, box_stream, box_server, token_count, index_vectors, \
stored_tokens : type
        The class that the network makes its parts of.
    """

    machine: type[Machine] = Machine
    channel: type[Channel] = Channel
    port: type[Port] = Port
    index_port: type[IndexPort] = IndexPort
    closed_end: type[ClosedEnd] = ClosedEnd
    merge: type[Merge] = Merge
    merge_consumer: type[MergeConsumer] = MergeConsumer
    write_engine: type[WriteEngine] = WriteEngine
    read_engine: type[ReadEngine] = ReadEngine
    grid: type[Grid] = Grid
    result_drain: type[ResultDrain] = ResultDrain
    lane_unit: type[LaneUnit] = LaneUnit
    box_stream: type[BoxStream] = BoxStream
    box_server: type[BoxServer] = BoxServer
    token_count: type[TokenCount] = TokenCount
    index_vectors: type[IndexVectors] = IndexVectors
    stored_tokens: type[StoredTokens] = StoredTokens


#: The parts of a run that knows no time.
UNTIMED = Kinds()
