"""Factories of arrays and matrix units of every dataflow from one parameter object."""

from hw.array.dataflow import ArrayConfig, Dataflow
from hw.array.output_stationary import OutputArray
from hw.array.stationary import StationaryArray
from hw.matrix.output_stationary_unit import OutputUnit
from hw.matrix.stationary_unit import StationaryUnit
from hw.matrix.unit_config import UnitConfig

__all__ = ["SystolicArray", "SystolicUnit", "systolic_array", "systolic_unit"]

SystolicArray = StationaryArray | OutputArray
SystolicUnit = StationaryUnit | OutputUnit


def systolic_array(config: ArrayConfig, *, skewed: bool = True) -> SystolicArray:
    """Systolic array of these parameters; unless ``skewed``, its neighbour skews the lanes."""
    if config.dataflow == Dataflow.OS:
        return OutputArray(config, skewed=skewed)
    return StationaryArray(config, skewed=skewed)


def systolic_unit(config: UnitConfig) -> SystolicUnit:
    """Matrix unit of these parameters."""
    if config.array.dataflow == Dataflow.OS:
        return OutputUnit(config)
    return StationaryUnit(config)
