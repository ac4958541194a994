"""Choice of a pipeline for a region of element math, best first."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

from hw.arch.config import ChipConfig
from hw.arch.lanes.phase_word import PHASES
from sw.array_spec import ArraySpec
from sw.lane_codes.lane_code import LaneCode
from sw.lane_codes.lane_codes import lane_codes
from sw.passes.field_limits import Unfit, unfit
from sw.stages.column_pipeline import column_pipelines
from sw.stages.elements.element_pipeline import element_pipelines
from sw.stages.move_pipelines import move_pipelines, moves
from sw.stages.pipeline import Pipeline, fitting
from sw.stages.region import Part, Region
from sw.stages.row_pipeline import row_pipelines

__all__ = ["pipelines"]


def pipelines(
    region: Region,
    arrays: tuple[ArraySpec, ...],
    config: ChipConfig,
    name: str,
    *,
    in_order: bool = True,
) -> Iterator[Pipeline]:
    """Pipelines for a region on a chip, best first.

    Parameters
    ----------
    region : Region
    arrays : tuple of ArraySpec
        Arguments of the launch.
    config : ChipConfig
    name : str
        The kernel.
    in_order : bool
        Whether the best must come first: to know whether there is one takes less time.

    Raises
    ------
    BadInputError
        If none fits; the message names what is needed and what there is.
    ProgramError
        At a node that no lane program computes.
    """
    return fitting(_candidates(region, arrays, config, in_order=in_order), name)


def _candidates(
    region: Region, arrays: tuple[ArraySpec, ...], config: ChipConfig, *, in_order: bool
) -> Iterator[Pipeline | Unfit]:
    if moves(region):
        yield from move_pipelines(region, arrays, config)
        return
    if config.pcu.lanes == 0:
        yield Unfit(
            "Element math needs lanes, and `pcu.lanes` is 0", value=0, rule="PCUs with lanes"
        )
        return
    vectors = any(each.part in (Part.ROW, Part.COLUMN) for each in region.inputs.values())
    rows = functools.partial(row_pipelines, in_order=in_order)
    build: Callable[..., Iterator[Pipeline | Unfit]]
    if region.reduces == {0}:
        build, codes = column_pipelines, _codes(region, config, 1)
    elif region.reduces:
        build, codes = rows, _codes(region, config, 0)
    elif vectors:
        build, codes = rows, _codes(region, config, 0, phases=1)
    else:
        build, codes = element_pipelines, _codes(region, config, 1, phases=1)
    phases = [each for code in codes for each in code.phases]
    taken = {value for each in phases for value in (each.source, each.auxiliary)}
    again = [value for value in region.outputs if value in taken]
    if again:
        yield unfit(f"Stored value `{again[0]}`", "be used by nothing else in a chain", len(again))
        return
    yield from build(region, codes, arrays, config)


def _codes(
    region: Region, config: ChipConfig, lane_axis: int, *, phases: int = PHASES
) -> tuple[LaneCode, ...]:
    types = {name: each.type for name, each in region.inputs.items()}
    formats = {value: region.formats[tensor] for value, tensor in region.outputs.items()}
    bits = config.pcu.function_bits
    repeated = Part.ROW if region.reduces and lane_axis else Part.COLUMN
    return lane_codes(
        region.nodes,
        types,
        formats,
        lane_axis=lane_axis,
        function_bits=bits,
        repeated=[name for name, each in region.inputs.items() if each.part is repeated],
        returns=not region.reduces,
        numbered=bool(region.reduces),
        phases=phases,
    )
