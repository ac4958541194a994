"""Delay lines: a value some clock edges ago, in chains of any length."""

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Module, Signal, signed, unsigned
from amaranth.lib import data
from amaranth.sim import Simulator

from hw.lib.delay import delayed


@pytest.mark.parametrize("cycles", [1, 3])
@pytest.mark.parametrize("shape", [unsigned(4), signed(4)])
def test_a_value_appears_after_its_cycles_in_its_shape(shape, cycles):
    m = Module()
    value, seen = Signal(shape), Signal(signed(8))
    m.d.comb += seen.eq(delayed(m, value, cycles, name="line"))
    given, found = [5, 7, 0, 3, -1 if shape.signed else 15, 4], []

    async def drive(ctx):
        for number in [*given, *[0] * cycles]:
            ctx.set(value, number)
            found.append(ctx.get(seen))
            await ctx.tick()

    simulator = Simulator(m)
    simulator.add_clock(1e-6)
    simulator.add_testbench(drive)
    simulator.run()
    assert found[cycles:] == given


def test_no_cycles_are_the_value_itself():
    m, value = Module(), Signal(4)
    assert delayed(m, value, 0, name="line") is value
    rtlil.convert(m, ports=[value])


def test_fields_stay_fields():
    m = Module()
    late = delayed(m, Signal(data.StructLayout({"a": 1, "b": 3})), 2, name="line")
    assert (len(late.a), len(late.b)) == (1, 3)
    rtlil.convert(m, ports=[])


def test_a_chain_of_lines_is_emitted_however_long_it_is():
    m = Module()
    value = first = Signal(3)
    for number in range(1200):
        value = delayed(m, value, 1, name=f"line_{number}")
    m.d.comb += (last := Signal(3)).eq(value)
    assert "line_1199" in rtlil.convert(m, ports=[first, last])
