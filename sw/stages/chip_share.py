"""Equal shares of a chip, on each of which stages of its own compute a point of a launch."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from hw.arch.config import ChipConfig
from hw.arch.descriptor import Descriptor
from hw.arch.limits import MESH_SIDE
from sw.array_spec import ArraySpec
from sw.passes.field_limits import Unfit
from sw.passes.pack import Home
from sw.stages.pipeline import PipelineParts
from sw.stages.stage_graph import Load, Socket, Stage, StageGraph, Store, Stream

__all__ = ["beside_text", "graph_of_all_points", "homes_of_all_points", "of_all_points", "share_of"]


def share_of(config: ChipConfig, points: int) -> ChipConfig:
    """Chip of one of as many equal shares: of its PCUs, PMUs and AGCUs, as far as they go round.

    Where the units lie is left to the placement: the mesh of a share is one that has so many. A
    unit or an AGCU is left out where no mesh does.

    Parameters
    ----------
    config : ChipConfig
    points : int

    Raises
    ------
    Unfit
        If a share has no PCU, no PMU or no AGCU.
    """
    if points == 1:
        return config
    pcus, pmus = config.pcu_count // points, config.pmu_count // points
    agcus = config.agcu.count // points
    if not pcus or not pmus or not agcus:
        have = f"{config.pcu_count} PCUs, {config.pmu_count} PMUs and {config.agcu.count} AGCUs"
        rule = f"have a PCU, a PMU and an AGCU for each of {points} points"
        raise Unfit(f"A chip must {rule}, not {have}", value=points, rule=rule)
    units = pcus + pmus
    meshes = (
        (rows, min(MESH_SIDE.high, units // rows))
        for rows in range(1, min(MESH_SIDE.high, units) + 1)
    )
    # A row has two AGCUs at most.
    rows, columns = max(
        meshes, key=lambda mesh: (mesh[0] * mesh[1], min(agcus, 2 * mesh[0]), -mesh[0])
    )
    while pcus + pmus > rows * columns:
        pcus, pmus = (pcus - 1, pmus) if pcus > pmus else (pcus, pmus - 1)
    letters = "c" * pcus + "m" * pmus
    pattern = "/".join(letters[at : at + columns] for at in range(0, len(letters), columns))
    agcu = dataclasses.replace(config.agcu, count=min(agcus, 2 * rows))
    return dataclasses.replace(config, rows=rows, columns=columns, pattern=pattern, agcu=agcu)


def beside_text(points: int) -> str:
    """Beginning of the text of what each of some points takes; empty for a single one."""
    return f"{points} points beside one another, each on " if points > 1 else ""


def of_all_points(
    share: PipelineParts, config: ChipConfig, arrays: Sequence[ArraySpec], points: int
) -> PipelineParts:
    """A pipeline of all points: for each the stages of the first, on units of its own.

    Parameters
    ----------
    share : PipelineParts
        Those of the first point, for a `share_of` the chip.
    config : ChipConfig
    arrays : sequence of ArraySpec
        Arguments of the launch, with the places of the points.
    points : int
    """
    whole = PipelineParts(config)
    graph = StageGraph(share.stages, tuple(share.streams))
    every = graph_of_all_points(graph, share.config, arrays, points)
    whole.stages, whole.streams = dict(every.stages), list(every.streams)
    for point in range(points):
        for buffer in share.buffers:
            whole.buffers.append(dataclasses.replace(buffer, name=_named(buffer.name, point)))
    return whole


def graph_of_all_points(
    graph: StageGraph, share: ChipConfig, arrays: Sequence[ArraySpec], points: int
) -> StageGraph:
    """Stages and streams of all points.

    Parameters
    ----------
    graph : StageGraph
        Of the first point.
    share : ChipConfig
        The `share_of` the chip that it is for.
    arrays : sequence of ArraySpec
        Arguments of the launch, with the places of the points.
    points : int
    """
    if points == 1:
        return graph
    stages: dict[str, Stage] = {}
    streams: list[Stream] = []
    for point in range(points):
        for name, stage in graph.stages.items():
            if isinstance(stage, Load | Store):
                stage = _moved(stage, point, share.agcu.count, arrays)
            stages[_named(name, point)] = stage
        for stream in graph.streams:
            sources = tuple((_socket(each, point), count) for each, count in stream.sources)
            sinks = tuple(_socket(each, point) for each in stream.sinks)
            streams.append(Stream(_named(stream.name, point), sources, sinks))
    return StageGraph(stages, tuple(streams))


def homes_of_all_points(
    homes: Mapping[str, Home], share: ChipConfig, points: int
) -> dict[str, Home]:
    """Allocation of the buffers of all points.

    Parameters
    ----------
    homes : mapping of str to Home
        Of the first point.
    share : ChipConfig
        The `share_of` the chip that they are on.
    points : int
    """
    return {
        _named(name, point): dataclasses.replace(home, pmu=home.pmu + point * share.pmu_count)
        for point in range(points)
        for name, home in homes.items()
    }


def _named(name: str, point: int) -> str:
    return f"point{point}_{name}" if point else name


def _socket(socket: Socket, point: int) -> Socket:
    return dataclasses.replace(socket, stage=_named(socket.stage, point))


def _moved(
    stage: Load | Store, point: int, agcus: int, arrays: Sequence[ArraySpec]
) -> Load | Store:
    """A transfer of the first point as that of another one, at its AGCUs."""

    def there(box: Descriptor, argument: int) -> Descriptor:
        return dataclasses.replace(box, base=box.base + point * arrays[argument].points[1])

    return dataclasses.replace(
        stage,
        agcu=stage.agcu + point * agcus,
        descriptor=there(stage.descriptor, stage.argument),
        following=tuple((there(*each[:2]), *each[1:]) for each in stage.following),
    )
