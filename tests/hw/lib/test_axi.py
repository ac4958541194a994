import re

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, flipped

from gen.verilog import convert
from hw.arch.errors import BadInputError
from hw.lib.axi import (
    Axi4ReadSignature,
    Axi4Signature,
    Axi4WriteSignature,
    AxiLiteSignature,
    full_width_size,
    read_constants,
    write_constants,
)


class Wire(wiring.Component):
    """A port passed through, so that both directions appear in the emitted module."""

    def __init__(self, signature):
        super().__init__({"s_axi": In(signature), "m_axi": Out(signature)})

    def elaborate(self, platform):
        m = Module()
        wiring.connect(m, flipped(self.s_axi), flipped(self.m_axi))
        return m


def emitted_ports(signature):
    text = convert(Wire(signature))
    found = re.findall(r"^  (input|output) (?:\[(\d+):0\] )?(\w+);", text, re.MULTILINE)
    return {name: (way, int(top or 0) + 1) for way, top, name in found}


#: AMBA AXI4 (IHI 0022) names and widths for 64-bit data, 40-bit addresses and 2-bit ids.
AXI4_READ = {
    "arid": 2,
    "araddr": 40,
    "arlen": 8,
    "arsize": 3,
    "arburst": 2,
    "arcache": 4,
    "arprot": 3,
    "arvalid": 1,
    "arready": -1,
    "rid": -2,
    "rdata": -64,
    "rresp": -2,
    "rlast": -1,
    "rvalid": -1,
    "rready": 1,
}
AXI4_WRITE = {
    "awid": 2,
    "awaddr": 40,
    "awlen": 8,
    "awsize": 3,
    "awburst": 2,
    "awcache": 4,
    "awprot": 3,
    "awvalid": 1,
    "awready": -1,
    "wdata": 64,
    "wstrb": 8,
    "wlast": 1,
    "wvalid": 1,
    "wready": -1,
    "bid": -2,
    "bresp": -2,
    "bvalid": -1,
    "bready": 1,
}
AXI_LITE = {
    "awaddr": 12,
    "awprot": 3,
    "awvalid": 1,
    "awready": -1,
    "wdata": 32,
    "wstrb": 4,
    "wvalid": 1,
    "wready": -1,
    "bresp": -2,
    "bvalid": -1,
    "bready": 1,
    "araddr": 12,
    "arprot": 3,
    "arvalid": 1,
    "arready": -1,
    "rdata": -32,
    "rresp": -2,
    "rvalid": -1,
    "rready": 1,
}


@pytest.mark.parametrize(
    ("signature", "expected"),
    [
        (Axi4Signature(data_bits=64, address_bits=40, id_bits=2), AXI4_READ | AXI4_WRITE),
        (Axi4ReadSignature(data_bits=64, address_bits=40, id_bits=2), AXI4_READ),
        (Axi4WriteSignature(data_bits=64, address_bits=40, id_bits=2), AXI4_WRITE),
        (
            Axi4Signature(data_bits=64, address_bits=40, id_bits=2, qos_bits=4),
            AXI4_READ | AXI4_WRITE | {"arqos": 4, "awqos": 4},
        ),
        (
            Axi4ReadSignature(data_bits=64, address_bits=40, id_bits=2, qos_bits=4),
            AXI4_READ | {"arqos": 4},
        ),
        (AxiLiteSignature(address_bits=12), AXI_LITE),
    ],
    ids=["full", "read", "write", "full with QoS", "read with QoS", "lite"],
)
def test_emitted_ports_have_the_names_and_widths_of_the_standard(signature, expected):
    manager = {
        f"m_axi__{name}": ("output" if bits > 0 else "input", abs(bits))
        for name, bits in expected.items()
    }
    subordinate = {
        f"s_axi__{name}": ("input" if bits > 0 else "output", abs(bits))
        for name, bits in expected.items()
    }
    assert emitted_ports(signature) == manager | subordinate


def test_parameters_are_readable_and_equal_ports_compare_equal():
    one = Axi4Signature(data_bits=128, address_bits=48)
    assert (one.data_bits, one.address_bits, one.id_bits) == (128, 48, 1)
    assert one == Axi4Signature(data_bits=128, address_bits=48, id_bits=1)
    assert one != Axi4Signature(data_bits=64, address_bits=48)
    assert repr(one) == "Axi4Signature(data_bits=128, address_bits=48, id_bits=1)"
    served = Axi4Signature(data_bits=128, address_bits=48, qos_bits=4)
    assert repr(served) == repr(one)[:-1] + ", qos_bits=4)" and served != one
    assert (
        repr(AxiLiteSignature(address_bits=9)) == "AxiLiteSignature(data_bits=32, address_bits=9)"
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Axi4Signature(data_bits=96, address_bits=48), "AXI data bits must be .* not 96"),
        (lambda: AxiLiteSignature(data_bits=8, address_bits=4), "must be one of 32, 64, not 8"),
        (lambda: Axi4ReadSignature(data_bits=64, address_bits=65), "address bits must .* not 65"),
        (
            lambda: Axi4WriteSignature(data_bits=64, address_bits=8, id_bits=0),
            "AXI id bits must be an integer from 1 to 32, not 0",
        ),
        (
            lambda: Axi4Signature(data_bits=64, address_bits=8, qos_bits=3),
            "AXI QoS bits must be 0 or 4, not 3",
        ),
    ],
)
def test_parameters_outside_their_domain_are_refused(make, message):
    with pytest.raises(BadInputError, match=message):
        make()


@pytest.mark.parametrize(("bits", "size"), [(8, 0), (64, 3), (256, 5), (1024, 7)])
def test_size_is_log2_of_the_beat_bytes(bits, size):
    assert full_width_size(bits) == size


def test_constants_ask_for_full_width_incrementing_bursts():
    port = Axi4Signature(data_bits=64, address_bits=40).create()
    m = Module()
    m.d.comb += read_constants(port) + write_constants(port)
    constants = [port.arsize, port.arburst, port.awsize, port.awburst]
    text = convert(m, ports=constants)
    for name, value in (
        ("arsize", "3'h3"),
        ("arburst", "2'h1"),
        ("awsize", "3'h3"),
        ("awburst", "2'h1"),
    ):
        assert f"assign {name} = {value};" in text
