"""Cases of exported TMA units: the commands for several scratchpads, and boxes added to memory."""

import numpy as np
import pytest

from gen.export.bus_ports import bus_groups
from hw.arch.config import named
from hw.arch.registers.tma_registers import tma_register
from hw.tma.standalone.unit_commands import TmaOperation, unit_command_layout
from sim.cocotb.bench_runner import port_names
from sim.components import COMPONENTS
from sim.export.cases.tma_cases import register_cases, unit_cases
from tests.unelaborated import unelaborated

_SET = [("width_bits", 64), ("scratchpads", 3), ("reduces", 1)]
_OPERATIONS = [TmaOperation.LOAD, TmaOperation.LOAD, TmaOperation.STORE, TmaOperation.REDUCE]


def _unit(name, settings):
    """Parameters and ports of a unit."""
    values = COMPONENTS[name].values(named["tiny"], settings)
    unit = unelaborated(COMPONENTS[name].build(named["tiny"], values))
    return values, bus_groups(unit.signature, port_names(unit))


def _recorded(name, cases, seed):
    """Parameters of the unit, and its cases as plain data."""
    values, groups = _unit(name, _SET)
    return values, [case.record() for case in cases(np.random.default_rng(seed), groups, values)]


def test_commands_name_every_scratchpad_and_the_last_one(seed):
    values, cases = _recorded("tma_unit", unit_cases, seed)
    layout = unit_command_layout(values["address_bits"], 3)
    for case in cases:
        granted, *steps = case["steps"]
        assert granted["set"] == {"interlock_granted": "0x1"}
        sent = [beats for step in steps for beats in step["send"].values()]
        commands = [layout.from_bits(int(beat[0], 0)) for ((beat,),) in zip(sent)]
        assert [each.operation for each in commands] == _OPERATIONS
        assert {(each.destinations, each.source) for each in commands} == {(0b111, 2)}


def test_a_host_names_them_by_a_register(seed):
    _, (_, *boxes) = _recorded("tma_top", register_cases, seed)
    each = tma_register("DESTINATIONS")
    word = f"write {each.word(mask=0b111, source=2):#x}"
    for case in boxes:
        (registers,) = (step["registers"] for step in case["steps"] if "registers" in step)
        assert [kind for offset, kind, *_ in registers if offset == hex(each.offset)] == [word]


@pytest.mark.parametrize("width_bits", [512, 1024])
def test_boxes_of_wide_units_have_rows_that_a_descriptor_takes(width_bits):
    values, groups = _unit("tma_unit", [("width_bits", width_bits)])
    for seed in range(20):
        assert list(unit_cases(np.random.default_rng(seed), groups, values))
