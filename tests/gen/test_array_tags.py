# amaranth: UnusedElaboratable=no
"""Arrays with tags: what stands for the arithmetic has its timing."""

import pytest
from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator

from gen.properties import array_tags
from hw.array import mac as fused
from hw.array.cell_config import CellConfig
from hw.float.recode import recode
from hw.numeric.formats import bf16, int8


def _compare(a, b, old):
    """As sparing as can be: 1 if both operands, or the sum, are there."""
    return (a.any() & b.any()) | old.any()


def _delays(add, config, one):
    """Cycles in which the output shows a product, and a sum from above, of cycle 0."""
    m = Module()
    a, b = Signal(config.operand_bits), Signal(config.operand_bits)
    old = Signal(32)
    result = add(m, config, a, b, old)
    shown = {}

    async def bench(ctx):
        for name, inputs in (("product", (a, b)), ("sum", (old,))):
            for each in inputs:
                ctx.set(each, one if each is not old else 0x3F80_0000)
            seen = []
            for cycle in range(6):
                seen += [cycle] * bool(ctx.get(result))
                await ctx.tick()
                for each in inputs:
                    ctx.set(each, 0)
            shown[name] = seen

    simulator = Simulator(m)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return shown


@pytest.mark.parametrize("latency", [1, 2, 3])
@pytest.mark.parametrize("fmt", [int8, bf16], ids=["int8", "bf16"])
def test_tags_pass_the_registers_that_numbers_pass(fmt, latency):
    config = CellConfig((fmt,), latency)
    one = 0x0101 if fmt == int8 else _recoded_one(config)

    def numbers(m, config, a, b, old):
        return fused.multiply_add(m, config, a, b, old, mode=None)

    def tags(m, config, a, b, old):
        return array_tags.multiply_add(m, config, a, b, old, _compare)

    expected = {"product": [latency], "sum": [latency - 1]}
    assert _delays(numbers, config, one) == _delays(tags, config, one) == expected


def _recoded_one(config):
    """The operand of 1.0."""
    m = Module()
    value = Signal(16, init=0x3F80)
    operand = Signal(config.operand_bits)
    m.d.comb += operand.eq(recode(m, value, bf16, config.coding))
    found = []

    async def bench(ctx):
        found.append(ctx.get(operand))

    simulator = Simulator(m)
    simulator.add_testbench(bench)
    simulator.run()
    return found[0]
