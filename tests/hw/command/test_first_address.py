"""Cycles from the write of a launch to the first address of operands, for a product."""

import numpy as np
import pytest
from amaranth.hdl import Elaboratable, Module, ResetInserter
from amaranth.sim import Simulator

from hw.agcu.unit import Agcu
from hw.arch.config import named
from hw.arch.places import row_segments
from hw.arch.registers.chip_registers import register
from hw.arch.unit_kind import AGCU
from hw.command.processor import CommandProcessor
from hw.lib.config_segment import ConfigSegment
from hw.numeric.formats import bf16
from sim.launch_memory import LaunchMemory
from sw.compiler import compile_kernel
from sw.kernels.matmul import matmul
from tests.hw.command.bench import Memory

SMALL = named["small"]
LATENCY = 100
#: Most cycles at that latency.
GOAL = 345


class LaunchPath(Elaboratable):
    """What a chip has between the host and the addresses of operands: no tile is on that way."""

    def __init__(self, chip):
        self.processor = CommandProcessor.of_chip(chip)
        self.agcus = [Agcu.of_chip(chip) for _ in range(chip.agcu.count)]
        self._chip = chip

    def elaborate(self, platform):
        m = Module()
        m.submodules.processor = processor = self.processor
        in_fabric = ResetInserter(processor.o_clear)
        for row in range(self._chip.rows):
            for number, (kind, index, bits) in enumerate(row_segments(self._chip, row)):
                if kind is not AGCU:
                    continue
                segment = ConfigSegment(width_bits=self._chip.width_bits, config_bits=bits)
                agcu = self.agcus[index]
                m.submodules += [in_fabric(segment), in_fabric(agcu)]
                m.d.comb += [
                    segment.i_begin.eq(processor.o_begin),
                    segment.i_write.eq(processor.o_row[row] & processor.o_segment[number]),
                    segment.i_word.eq(processor.o_word),
                    segment.i_data.eq(processor.o_data),
                    segment.i_load.eq(processor.o_load),
                    agcu.config.eq(segment.o_config),
                    agcu.i_start.eq(processor.o_start),
                    agcu.i_argument_valid.eq(processor.o_argument_valid),
                    agcu.i_argument.eq(processor.o_argument),
                ]
        return m


async def _write(ctx, axi, name, value):
    """Write a register; returns in the cycle after the one in which the write is taken."""
    ctx.set(axi.awaddr, register(name).offset)
    ctx.set(axi.wdata, value)
    ctx.set(axi.wstrb, 0xF)
    for wire in (axi.awvalid, axi.wvalid, axi.bready):
        ctx.set(wire, 1)
    await ctx.tick().until(axi.awready & axi.wready)
    ctx.set(axi.awvalid, 0)
    ctx.set(axi.wvalid, 0)


def first_address():
    """Cycles from the launch write to ``o_start`` and to the first address, of 256³ on `small`."""
    compiled = compile_kernel(matmul, SMALL, dims=dict.fromkeys("MNK", 256), dtype=bf16)
    place = LaunchMemory.of_kernel(compiled, seed=1)
    zeros = {
        spec.name: np.zeros(spec.shape, spec.format.dtype)
        for spec in compiled.arrays
        if not spec.output
    }
    raw = place.bytes_before(zeros)
    dut = LaunchPath(SMALL)
    memory = Memory(dut.processor.memory, latency=LATENCY)
    for name in ("launch list", "arguments", "image"):
        first, size = place.places[name]
        memory.put(first, bytes(raw[first : first + size]))
    found = {}

    async def host(ctx):
        axi = dut.processor.host
        await _write(ctx, axi, "LIST_ADDRESS_LO", place.list_address)
        await ctx.tick()
        await _write(ctx, axi, "LIST_ENTRIES", 1)
        await ctx.tick()
        await _write(ctx, axi, "CONTROL", 1)
        for cycle in range(1, 600):
            if ctx.get(dut.processor.o_start):
                found["start"] = cycle
            if any(ctx.get(agcu.axi.arvalid) for agcu in dut.agcus):
                found["address"] = cycle
                return
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(memory.run, background=True)
    simulator.add_testbench(host)
    simulator.run()
    return found


@pytest.mark.slow
def test_a_product_of_256_reaches_its_operands_early():
    found = first_address()
    assert found["start"] < found["address"] <= GOAL, found
