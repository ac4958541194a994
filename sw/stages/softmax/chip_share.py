"""Equal shares of a chip, on each of which a pipeline of its own computes a point of a launch."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from hw.arch.config import ChipConfig
from hw.arch.descriptor import Descriptor
from hw.arch.errors import BadInputError
from sw.array_spec import ArraySpec
from sw.passes.field_limits import Unfit
from sw.stages.pipeline import PipelineParts
from sw.stages.stage_graph import Load, Socket, Store, Stream

__all__ = ["of_all_points", "share_of"]


def share_of(config: ChipConfig, points: int) -> ChipConfig:
    """Chip of one of as many equal shares: of its PCUs, PMUs and AGCUs.

    Where the units lie is left to the placement.

    Parameters
    ----------
    config : ChipConfig
    points : int

    Raises
    ------
    Unfit
        If the AGCUs, and the rows or columns of the mesh, are not divisible.
    """
    if points == 1:
        return config
    agcu = dataclasses.replace(config.agcu, count=max(1, config.agcu.count // points))
    for side in ("columns", "rows"):
        length = max(1, getattr(config, side) // points)
        try:
            share = dataclasses.replace(config, agcu=agcu, **{side: length})
        except BadInputError:
            continue
        counts = ("pcu_count", "pmu_count")
        if agcu.count * points == config.agcu.count and all(
            getattr(share, each) * points == getattr(config, each) for each in counts
        ):
            return share
    units = f"{config.pcu_count} PCUs, {config.pmu_count} PMUs and {config.agcu.count} AGCUs"
    rule = f"be divisible among {points} points"
    raise Unfit(f"A chip must {rule}, not have {units}", value=points, rule=rule)


def of_all_points(
    share: PipelineParts, config: ChipConfig, arrays: Sequence[ArraySpec], points: int
) -> PipelineParts:
    """Stages and streams of all points: for each those of the first, on units of its own.

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
    for point in range(points):
        for name, stage in share.stages.items():
            if isinstance(stage, Load | Store):
                stage = _moved(stage, point, share.config.agcu.count, arrays)
            whole.stages[_named(name, point)] = stage
        for stream in share.streams:
            sources = tuple((_socket(each, point), count) for each, count in stream.sources)
            sinks = tuple(_socket(each, point) for each in stream.sinks)
            whole.streams.append(Stream(_named(stream.name, point), sources, sinks))
        for buffer in share.buffers:
            whole.buffers.append(dataclasses.replace(buffer, name=_named(buffer.name, point)))
    return whole


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
