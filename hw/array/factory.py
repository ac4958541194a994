"""Factory of systolic arrays of every dataflow."""

from hw.array.dataflow import ArrayConfig, Dataflow
from hw.array.output_stationary import OutputArray
from hw.array.stationary import StationaryArray

__all__ = ["SystolicArray", "systolic_array"]

SystolicArray = StationaryArray | OutputArray


def systolic_array(config: ArrayConfig, *, skewed: bool = True) -> SystolicArray:
    """Systolic array of these parameters; unless ``skewed``, its neighbour skews the lanes."""
    if config.dataflow == Dataflow.OS:
        return OutputArray(config, skewed=skewed)
    return StationaryArray(config, skewed=skewed)
