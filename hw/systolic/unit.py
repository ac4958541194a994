"""Matrix units of every dataflow from one parameter object."""

from hw.systolic.dataflow import Dataflow
from hw.systolic.output_unit import OutputUnit
from hw.systolic.stationary_unit import StationaryUnit
from hw.systolic.unit_config import UnitConfig

__all__ = ["SystolicUnit", "systolic_unit"]

SystolicUnit = StationaryUnit | OutputUnit


def systolic_unit(config: UnitConfig) -> SystolicUnit:
    """The matrix unit of these parameters."""
    if config.array.dataflow == Dataflow.OS:
        return OutputUnit(config)
    return StationaryUnit(config)
