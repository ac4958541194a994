"""Refused parameters: one class of error from every component, and no warning behind it."""

import contextlib
import gc
import importlib
import inspect
import pkgutil
import warnings

import pytest
from amaranth.hdl import UnusedElaboratable
from amaranth.sim import Simulator

import hw
from hw.agcu.unit import Agcu
from hw.arch.config import ChipConfig, PcuConfig
from hw.arch.errors import BadInputError
from hw.arch.lanes.lane_function import LaneFunction
from hw.arch.tma_sizes import TmaSizes
from hw.array.cell import Cell
from hw.array.dataflow import ArrayConfig, Dataflow
from hw.array.operand import OperandRecoder
from hw.array.stationary import StationaryArray
from hw.command.processor import CommandProcessor
from hw.float.operations import OperationUnit
from hw.float.special_function_unit import SpecialFunctionUnit
from hw.float.special_functions import ReciprocalUnit
from hw.lib.axi_checker import AxiChecker
from hw.lib.barrier import Barrier
from hw.lib.component import Component
from hw.lib.config_segment import ConfigSegment
from hw.lib.crc32 import Crc32
from hw.lib.delay_memory import DelayMemory
from hw.lib.fifo import Queue
from hw.lib.loop_nest import CounterChain
from hw.lib.packet_filter import PacketFilter
from hw.matrix.accumulator import AccumulatorColumn
from hw.matrix.matrix_unit import MatrixUnit
from hw.matrix.result_fifo import ResultFifo
from hw.matrix.unit_config import UnitConfig
from hw.matrix.weight_buffer import WeightBuffer
from hw.mesh.fork import EagerFork
from hw.mesh.merge import OrderedMerge
from hw.mesh.switch import Switch
from hw.numeric.formats import bf16, e4m3, int8
from hw.pcu.lane import Lane
from hw.pcu.lanes import Lanes
from hw.pcu.unit import Pcu
from hw.pmu.banks import Banks
from hw.pmu.unit import Pmu
from hw.tile import Tile
from hw.tma.barriers.barrier_bank import BarrierBank
from hw.tma.burst_splitter import BurstSplitter
from hw.tma.engine import TmaEngine
from hw.tma.host_port.tma_top import TmaTop
from hw.tma.layouts import TmaLayouts
from hw.tma.reduction.reduction_interlock import ReductionInterlock
from hw.tma.reorder_buffer import ReorderBuffer
from hw.tma.standalone.tma_unit import TmaUnit
from hw.tpu.tensor_config import TensorConfig
from hw.tpu.tensor_top import TensorTop

_CHIP = ChipConfig(rows=2, columns=2, tracks=1)
_ARRAY = ArrayConfig(3, 2, Dataflow.WS, (bf16,), 1)
_TENSOR = TensorConfig(UnitConfig(_ARRAY, accumulator_rows=16, out=bf16), 64)
_PROCESSOR = {
    "width_bits": 64,
    "segments": ((1,),),
    "axi_address_bits": 32,
    "fingerprint": 0,
    "units": 1,
}
_GRID = {"rows": 4, "columns": 2, "formats": (bf16, int8), "latency": 1, "accumulator_rows": 16}
_PORT = {"width_bits": 64, "axi_address_bits": 32, "landing_beats": 16, "outstanding": 1}

#: A construction of each component that checks its parameters, with one that it refuses.
REFUSED = [
    (ReductionInterlock, {"ports": 1}, "Ports of an interlock must be"),
    (Agcu, _PORT | {"token_tracks": 0}, "Token tracks must be"),
    (Agcu, _PORT | {"token_tracks": 1, "landing_beats": 17}, "Landing beats must be"),
    (AxiChecker, {"data_bits": 64, "address_bits": 65}, "AXI address bits must be"),
    (Banks, {"width_bits": 64, "capacity_bytes": 32}, "PMU capacity in bytes must be"),
    (Barrier, {"arrivals": 0, "tx_bytes": 0}, "Barrier arrivals must be"),
    (BarrierBank, {"barriers": 257}, "Barriers of a bank must be"),
    (Cell, {"formats": (bf16,), "latency": 4}, "Cell latency must be"),
    (ConfigSegment, {"width_bits": 0, "config_bits": 1}, "Segment width must be"),
    (CommandProcessor, _PROCESSOR | {"width_bits": 100}, "Link width in bits must be"),
    (Crc32, {"width_bits": 100}, "Width in bits must be"),
    (CounterChain, {"loops": 0, "count_bits": 1, "offset_bits": 1}, "Chain loops must be"),
    (EagerFork, {"branches": "2"}, "Fork branches must be"),
    (MatrixUnit, _GRID | {"columns": 4}, "Rows of a matrix unit must be"),
    (MatrixUnit, _GRID | {"formats": (e4m3, int8)}, "Cell formats must be"),
    (MatrixUnit, _GRID | {"accumulator_rows": 0}, "Accumulator rows must be"),
    (OperandRecoder, {"formats": (bf16, e4m3)}, "Cell formats must be"),
    (
        Lanes,
        {"width_bits": 64, "lanes": 4, "function_bits": 16},
        "Lanes must be at most the 2 words of a vector",
    ),
    (
        Lane,
        {"function_bits": 16, "functions": (LaneFunction("twice", EagerFork, 0, abs, ""),) * 2},
        "Function units of a lane must have different names, not twice, twice",
    ),
    (OperationUnit, {"name": "sinus"}, "Operation must be one of"),
    (OrderedMerge, {"sources": 1, "turns": 1}, "Merge sources must be"),
    (PacketFilter, {"width_bits": None}, "Vector width must be"),
    (AccumulatorColumn, {"rows": 0, "banks": 1}, "Accumulator rows must be"),
    (Pcu, {"width_bits": 100, "config": PcuConfig()}, "Link width in bits must be"),
    (Pmu, {"width_bits": 64, "capacity_bytes": 1024, "slots": 1}, "PMU slots must be"),
    (Queue, {"payload_shape": 1, "depth": 1}, "Queue depth must be"),
    (
        ReorderBuffer,
        {"payload_shape": 1, "depth": 16, "outstanding": 4, "read_ids": 3},
        "Read IDs must be",
    ),
    (ReciprocalUnit, {"width": 3}, "Function width must be"),
    (ResultFifo, {"columns": 1, "rows": 3}, "Result rows must be"),
    (ResultFifo, {"columns": 1, "rows": 2, "together": 3}, "Result rows reserved at once must be"),
    (
        BurstSplitter,
        {"layouts": TmaLayouts(64, 32, streams=1), "burst_beats": 3},
        "Beats of a burst must be",
    ),
    (DelayMemory, {"width": 8, "most": 1}, "Greatest delay must be"),
    (SpecialFunctionUnit, {"function_bits": 25}, "Function bits must be"),
    (StationaryArray, {"config": _ARRAY, "by_column": True}, "Rows of an array"),
    (
        Switch,
        {"payload_shape": 1, "tracks": 9, "unit_outputs": 1, "unit_inputs": 1},
        "Switch tracks must be",
    ),
    (Tile, {"config": _CHIP, "kind": "dsp"}, "Tile kind must be"),
    (WeightBuffer, {"config": _ARRAY, "tiles": 0}, "Tiles ahead must be"),
    (TensorTop, {"config": _TENSOR, "instructions": 3}, "Instructions waiting must be a power of"),
    (TmaEngine, {"width_bits": 100}, "Width in bits must be a power of two"),
    (TmaTop, {"sizes": TmaSizes(), "commands": 63}, "Commands in flight must be a power of two"),
    (TmaUnit, {"sizes": TmaSizes(), "ports": 16}, "Ports of the user must be"),
]


@pytest.fixture(autouse=True)
def _warned(monkeypatch):
    # Amaranth keeps silent until a process elaborates something.
    Simulator(PacketFilter(width_bits=1))
    assert not UnusedElaboratable._MustUse__silence


@pytest.mark.parametrize(("component", "parameters", "message"), REFUSED)
def test_a_refused_component_raises_one_class(component, parameters, message):
    with pytest.raises(BadInputError, match=message) as refused:
        component(**parameters)
    assert isinstance(refused.value, ValueError)
    assert "\n" not in str(refused.value)


def test_refused_components_leave_no_warning():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for component, parameters, _ in REFUSED:
            with contextlib.suppress(BadInputError):
                component(**parameters)
        gc.collect()
    assert [str(each.message) for each in caught] == []


def test_a_component_that_was_made_and_forgotten_is_still_warned_of():
    with pytest.warns(UnusedElaboratable, match="created but never used"):
        EagerFork(branches=2)
        gc.collect()


def _components():
    for module in pkgutil.walk_packages(hw.__path__, "hw."):
        yield from (
            each
            for each in vars(importlib.import_module(module.name)).values()
            if inspect.isclass(each) and issubclass(each, Component)
        )


def test_every_component_that_checks_its_parameters_is_in_the_table():
    known = {component for component, _, _ in REFUSED}
    checks = {
        each
        for each in _components()
        if "__init__" in vars(each)
        and any(word in inspect.getsource(each.__init__) for word in ("require", "raise "))
    }
    # Units of functions share the check of their base class.
    assert {each.__name__ for each in checks - known} <= {"FunctionUnit"}
