"""Native models that tests share: parts of PCUs, stand-alone units, and the units of slow tests."""

import pytest

from gen.verilog import emit
from hw.matrix.output_stage import OutputStage
from hw.matrix.systolic_unit import SystolicUnit
from hw.pcu.unit import Pcu
from hw.tpu.unit import TensorUnit
from tests.hw import units
from tests.hw.agcu.agcu_stand import AGCU_SETS, AgcuStand
from tests.hw.command.command_stand import COMMAND_SETS, CommandStand
from tests.hw.lib.nest_bench import issuer_chain
from tests.hw.pcu.lane_units import UNITS, Piped
from tests.hw.pmu.pmu_stand import PMU_SETS, PmuStand
from tests.hw.reused_simulator import forget_designs
from tests.hw.tma.standalone.unit_stand import STAND_SIZES, UnitStand
from tests.native.clocked_bundle import ClockedBundle
from tests.native.heavy_model import heavy_model


@pytest.fixture
def planted(monkeypatch):
    """As `monkeypatch`, for faults of designs: none is shared with other tests."""
    forget_designs()
    yield monkeypatch
    forget_designs()


@pytest.fixture(scope="session")
def pcu_units(heavy_lock):
    """Design, bundle and model of PCUs and of what is in them, ports after their names."""
    parts = {name: units.matrix_unit(*size) for name, size in units.MATRIX_UNITS.items()}
    parts |= {
        name: units.matrix_unit(*units.CELLS_SIZE, cells) for name, cells in units.CELLS.items()
    }
    pcus = {
        name: Pcu(width_bits=chip.width_bits, config=chip.pcu) for name, chip in units.PCUS.items()
    }
    lanes = {name: units.lanes_of(*sizes) for name, sizes in units.LANES.items()}
    lanes |= {
        name: units.lanes_of(*sizes, units.FUNCTIONS)
        for name, sizes in units.FUNCTION_LANES.items()
    }
    lane_units = {name: Piped(name) for name in UNITS}
    bundle = ClockedBundle(parts | pcus | lanes | lane_units | {"chain": issuer_chain()})
    design = emit(bundle)
    with heavy_model(heavy_lock, design, bundle) as model:
        yield design, bundle, model


@pytest.fixture(scope="session")
def systolic_units(heavy_lock):
    """Model of units by themselves that are no PCU, ports after their names."""
    parts = {name: SystolicUnit(config) for name, config in units.SYSTOLIC_UNITS.items()}
    tensors = {name: TensorUnit(config) for name, config in units.TENSOR_UNITS.items()}
    readouts = {f"readout_{name}": OutputStage(config) for name, config in units.READOUTS.items()}
    bundle = ClockedBundle(parts | tensors | readouts)
    with heavy_model(heavy_lock, emit(bundle), bundle) as model:
        yield model


@pytest.fixture(scope="session")
def tma_unit(heavy_lock):
    """Model of a TMA unit by itself, of slow tests, ports after its name."""
    bundle = ClockedBundle({"tma": UnitStand(STAND_SIZES[256])})
    with heavy_model(heavy_lock, emit(bundle), bundle) as model:
        yield model


@pytest.fixture(scope="session")
def more_tensor_units(heavy_lock):
    """Model of the tensor units of slow tests, ports after their names."""
    bundle = ClockedBundle(
        {name: TensorUnit(config) for name, config in units.MORE_TENSOR_UNITS.items()}
    )
    with heavy_model(heavy_lock, emit(bundle), bundle) as model:
        yield model


@pytest.fixture(scope="session")
def units_with_memories(heavy_lock):
    """Model of units whose memories are gates there, ports after their names; of slow tests."""
    bundle = ClockedBundle(
        {
            "pmu": PmuStand(PMU_SETS["a"]),
            "agcu": AgcuStand(AGCU_SETS["a"]),
            "command": CommandStand(COMMAND_SETS["a"]),
        }
    )
    with heavy_model(heavy_lock, emit(bundle), bundle) as model:
        yield model
