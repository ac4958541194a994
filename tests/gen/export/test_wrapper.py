"""Wrappers of exported cores: names, connections, comments."""

import functools

import pytest

from gen.export.bus_ports import bus_groups
from gen.export.wrapper import wrapper
from gen.verilog import emit
from hw.arch.config import named
from sim.components import COMPONENTS
from tests.gen.export.axi_names import broken_names, buses_of, ports_of

TINY = named["tiny"]
SMALL = {
    "tma_top": ["width_bits=64", "landing_beats=32", "descriptors=4"],
    "tma_unit": ["width_bits=64", "landing_beats=32", "descriptors=4"],
}


@functools.cache
def made(name):
    entry = COMPONENTS[name]
    words = [word.split("=") for word in SMALL.get(name, [])]
    component = entry.build(TINY, entry.values(TINY, [(key, int(text)) for key, text in words]))
    design = emit(component)
    groups = bus_groups(component.signature, design.definitions[design.top].ports)
    return design, groups, wrapper(f"core_{name}", design.top, groups, entry.summary)


QUICK = ["barrier", "token_switch", "fp_fma", "fp_exp"]
SLOW = [name for name in COMPONENTS if not name.startswith("fp_") and name not in QUICK]
UNITS = QUICK + [pytest.param(name, marks=pytest.mark.slow) for name in SLOW]


@pytest.mark.parametrize("name", UNITS)
def test_names_are_those_of_axi_and_each_port_inside_is_connected_once(name):
    design, groups, text = made(name)
    assert broken_names(text) == []
    inside = [port for group in groups for port in group.connections]
    assert sorted(inside) == sorted(design.definitions[design.top].ports)
    declared = [port.name for group in groups for port in group.ports]
    assert list(ports_of(text)) == declared and len(set(declared)) == len(declared)


def test_a_register_port_and_a_memory_port_are_axi_lite_and_axi4():
    *_, text = made("tma_top")
    buses, stray = buses_of(ports_of(text))
    assert {"m_axi_", "s_axi_", "s_axis_writes_", "m_axis_waits_0_"} <= buses.keys() and not stray
    assert "awlen" in buses["m_axi_"] and "awlen" not in buses["s_axi_"]
    assert "tready" not in buses["m_axis_answers_0_"]
    # Verilator takes the name "interrupt" for a word of C++.
    assert "irq" in ports_of(text) and "interrupt" not in ports_of(text)
    assert "  // AXI4-Lite subordinate s_axi_*" in text.splitlines()
    # Places of the fields of a payload, and which of them is signed.
    assert "[40:21] pending, [61:41] tx (signed), [62:62] flag" in " ".join(text.split())


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("s_axi_awaddr", "s_axi_awadr", "s_axi_awadr: no signal of this bus"),
        ("s_axi_awaddr", "s_axi_awadr", "s_axi_awaddr: missing"),
        ("output wire m_axi_awvalid", "input  wire m_axi_awvalid", "must not be an input"),
        ("wire [7:0] m_axi_awlen", "wire [8:0] m_axi_awlen", "m_axi_awlen: must not have 9 bits"),
        ("[7:0] m_axi_wstrb", "[3:0] m_axi_wstrb", "m_axi_wstrb: must have a bit per byte"),
        ("[55:0] s_axis_operations_0_tdata", "[54:0] s_axis_operations_0_tdata", "whole bytes"),
        ("s_axis_waits_0_tvalid", "s_axis_waits_0_valid", "s_axis_waits_0_valid: of no bus"),
    ],
)
def test_a_wrong_name_direction_or_width_is_found(old, new, complaint):
    *_, text = made("tma_top")
    assert old in text
    assert any(complaint in each for each in broken_names(text.replace(old, new)))
