import random
from pathlib import Path

import pytest
from amaranth.sim import Simulator

from hw.arch.limits import COUNTER_WORDS
from hw.arch.registers.chip_registers import (
    HOST_ADDRESS_BITS,
    ID,
    MAP_VERSION,
    REGISTERS,
    register,
)
from hw.arch.registers.register_fields import RegisterAccess, register_table
from hw.command.host_port import HostPort
from tests.hw.command.bench import ABORT, DONE, FINGERPRINT, INTERRUPT, LAUNCH, Bench, random_kernel

OKAY, SLVERR = 0, 2
DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "command.md"

RESET_VALUES = {
    "ID": ID,
    "VERSION": MAP_VERSION,
    "FINGERPRINT": FINGERPRINT,
    "GEOMETRY": 2 | 8 << 8 | 16 << 16,
}

#: What reads back after all ones are written; registers not named here refuse the write.
AFTER_ONES = {
    "STATUS": 0,
    "LIST_ADDRESS_LO": 0xFFFF_FFFF,
    "LIST_ADDRESS_HI": 0xFFFF_FFFF,
    "LIST_ENTRIES": 0xFFFF,
    "COUNTER_SELECT": 0xFFFF,
}


def test_map_is_the_one_in_the_document():
    assert register_table(REGISTERS) in DOCUMENT.read_text(encoding="utf-8")


def test_map_has_no_overlap():
    offsets = [each.offset for each in REGISTERS]
    assert offsets == sorted(set(offsets)) and all(offset % 4 == 0 for offset in offsets)
    assert offsets[-1] < 1 << HOST_ADDRESS_BITS
    for each in REGISTERS:
        end = 0
        for field in each.fields:
            assert field.low >= end
            end = field.low + field.bits
        assert end <= 32
    assert register("STATUS").layout["done"].offset == 1
    assert register("GEOMETRY").layout.from_bits(0x0012_2004)["counters"] == 0x12


def test_registers_after_reset():
    bench = Bench()

    async def story(ctx):
        for each in REGISTERS:
            assert await bench.read(ctx, each.name) == (RESET_VALUES.get(each.name, 0), OKAY)

    bench.run(story)


def test_registers_that_only_read_refuse_writes():
    bench = Bench()

    async def story(ctx):
        for each in REGISTERS:
            if each.name == "CONTROL":
                continue
            before = await bench.read(ctx, each.name)
            response = await bench.write(ctx, each.name, 0xFFFF_FFFF)
            if each.name in AFTER_ONES:
                assert response == OKAY, each.name
                assert await bench.value(ctx, each.name) == AFTER_ONES[each.name]
                assert await bench.write(ctx, each.name, 0) == OKAY
                assert await bench.value(ctx, each.name) == 0
            else:
                assert response == SLVERR, each.name
                assert await bench.read(ctx, each.name) == before
        assert {each.name for each in REGISTERS if each.writable} == {*AFTER_ONES, "CONTROL"}

    bench.run(story)


def test_control_keeps_the_interrupt_enable_alone():
    bench = Bench()
    assert [field.access for field in register("CONTROL").fields] == [
        RegisterAccess.WRITE_ONE,
        RegisterAccess.WRITE_ONE,
        RegisterAccess.READ_WRITE,
    ]

    async def story(ctx):
        for value in (INTERRUPT, 0, ABORT | INTERRUPT):
            assert await bench.write(ctx, "CONTROL", value) == OKAY
            assert await bench.value(ctx, "CONTROL") == value & INTERRUPT
        await bench.idle(ctx)

    bench.run(story)


def test_interrupt_follows_enable_and_status():
    bench = Bench()

    async def story(ctx):
        # No entries: the launch ends with an error at once.
        assert await bench.write(ctx, "CONTROL", LAUNCH) == OKAY
        await bench.idle(ctx)
        assert not ctx.get(bench.dut.o_interrupt)
        await bench.write(ctx, "CONTROL", INTERRUPT)
        assert ctx.get(bench.dut.o_interrupt)
        await bench.write(ctx, "STATUS", 2)
        assert ctx.get(bench.dut.o_interrupt), "done is not error"
        await bench.write(ctx, "STATUS", 4)
        assert not ctx.get(bench.dut.o_interrupt)

    bench.run(story)


def test_what_is_no_register_answers_slverr():
    bench = Bench()
    mapped = {each.offset for each in REGISTERS}

    async def story(ctx):
        await bench.write(ctx, "LIST_ENTRIES", 0x55)
        for offset in [*range(0, 0x80, 4), 0x128, 0x828, 0xFFC]:
            if offset not in mapped:
                assert await bench.read(ctx, None, offset=offset) == (0, SLVERR)
                assert await bench.write(ctx, None, 0x77, offset=offset) == SLVERR
        for strobes in (0x0, 0x1, 0x3, 0x7, 0xE):
            response = await bench.write(ctx, "LIST_ENTRIES", 0x77, strobes=strobes)
            assert response == SLVERR
        assert await bench.value(ctx, "LIST_ENTRIES") == 0x55
        # An address within a word means the word.
        assert await bench.read(ctx, None, offset=0x2B) == (0x55, OKAY)

    bench.run(story)


@pytest.mark.parametrize("units", [1, 3, 5])
def test_counters_read_whole(units):
    bench = Bench(units=units)
    rng = random.Random(units)
    values = [[rng.getrandbits(48) for _ in range(COUNTER_WORDS)] for _ in range(units)]
    moved_on = False

    async def shown(ctx):
        """Each unit shows the counter it is asked for, in the same cycle."""
        while True:
            word = ctx.get(bench.dut.o_counter)
            for unit in range(units):
                value = (1 << 48) - 1 if moved_on else values[unit][word]
                ctx.set(bench.dut.i_counters[unit], value)
            await ctx.tick()
            await ctx.delay(1e-9)

    async def story(ctx):
        nonlocal moved_on
        for index in [
            *range(units * COUNTER_WORDS),
            units * COUNTER_WORDS,
            (units + 1) * COUNTER_WORDS,
            0xFFFF,
        ]:
            await bench.write(ctx, "COUNTER_SELECT", index)
            if index >= units * COUNTER_WORDS:
                assert await bench.read(ctx, "COUNTER_LO") == (0, SLVERR)
                assert await bench.read(ctx, "COUNTER_HI") == (0, SLVERR)
                continue
            low = await bench.value(ctx, "COUNTER_LO")
            # The counter moves on between the two reads; the halves still belong together.
            moved_on = True
            await ctx.tick().repeat(3)
            value = await bench.value(ctx, "COUNTER_HI") << 32 | low
            assert value == values[index // COUNTER_WORDS][index % COUNTER_WORDS]
            moved_on = False

    bench.run(story, shown)


@pytest.mark.parametrize("issued_at", [(3,), (0, 1, 19), (20,), ()])
def test_first_mac_is_the_cycle_of_the_first_vector_of_the_launch(issued_at):
    """Cycles behind the start in which a vector enters a grid; the kernel ends in cycle 20."""
    rng = random.Random(str(issued_at))
    kernels, _ = zip(*(random_kernel(rng, width_bits=64) for _ in range(2)), strict=True)
    bench = Bench()
    bench.store(kernels)

    async def grids(ctx):
        while True:
            starts = bench.when("start")
            since = bench.cycle - starts[-1] - 1 if starts else -1
            ctx.set(bench.dut.i_issue, since in issued_at)
            assert ctx.get(bench.dut.o_run) == (bool(starts) and 0 <= since < bench.run_cycles)
            await ctx.tick()

    async def story(ctx):
        assert await bench.value(ctx, "FIRST_MAC") == 0
        for launch in range(2):
            await bench.begin(ctx, 2)
            assert await bench.end(ctx) == DONE
            first = 0
            if issued_at:
                first = bench.when("start")[2 * launch] + 1 + issued_at[0] - bench.launched
            assert await bench.value(ctx, "FIRST_MAC") == first

    bench.run(story, grids)


@pytest.mark.parametrize("entries", [1, 2, 4])
def test_cycles_of_the_last_entry_are_those_of_its_launch_and_its_kernel(entries, seed):
    rng = random.Random(seed)
    kernels, _ = zip(
        *(random_kernel(rng, width_bits=64, arguments=rng.randint(0, 4)) for _ in range(entries)),
        strict=True,
    )
    bench = Bench(latency=rng.randint(1, 60), jitter=9, stall=0.3, seed=seed)
    bench.store(kernels)

    async def story(ctx):
        for launch in range(2):
            kernel_cycles = [rng.randint(1, 300) for _ in range(entries)]
            bench.runs = [(cycles, None) for cycles in kernel_cycles]
            await bench.begin(ctx, entries)
            assert await bench.end(ctx) == DONE
            starts = bench.when("start")[entries * launch :]
            ended = bench.launched
            for start, cycles in zip(starts, kernel_cycles, strict=True):
                begun, ended = ended, start + cycles
            assert await bench.value(ctx, "LAUNCH_CYCLES") == starts[-1] - begun
            assert await bench.value(ctx, "ENTRY_BEGIN_LO") == begun - bench.launched
            assert await bench.value(ctx, "ENTRY_BEGIN_HI") == 0
            assert await bench.value(ctx, "CYCLES_LO") == ended - bench.launched

    bench.run(story)


@pytest.mark.parametrize("seed", range(4))
def test_channels_of_the_host_port_may_wait_for_each_other(seed):
    """AW and W in either order, answers taken late; reads at the same time as writes."""
    bench = Bench()
    axi = bench.dut.host
    rng = random.Random(seed)
    values = [rng.getrandbits(32) for _ in range(12)]
    written = []

    async def channel(ctx, valid, ready, fields):
        for payload in fields:
            await ctx.tick().repeat(rng.randint(1, 6))
            for signal, value in payload:
                ctx.set(signal, value)
            ctx.set(valid, 1)
            await ctx.tick().until(ready)
            ctx.set(valid, 0)

    async def addresses(ctx):
        offset = register("LIST_ADDRESS_LO").offset
        await channel(ctx, axi.awvalid, axi.awready, [[(axi.awaddr, offset)]] * len(values))

    async def words(ctx):
        fields = [[(axi.wdata, value), (axi.wstrb, 15)] for value in values]
        await channel(ctx, axi.wvalid, axi.wready, fields)

    async def answers(ctx):
        while len(written) < len(values):
            ctx.set(axi.bready, rng.random() < 0.3)
            *_, moves, response = await ctx.tick().sample(axi.bvalid & axi.bready, axi.bresp)
            if moves:
                written.append(response)

    async def reads(ctx):
        offset = register("ID").offset
        await channel(ctx, axi.arvalid, axi.arready, [[(axi.araddr, offset)]] * len(values))

    async def story(ctx):
        taken = 0
        while taken < len(values) or len(written) < len(values):
            ctx.set(axi.rready, rng.random() < 0.3)
            *_, moves, value = await ctx.tick().sample(axi.rvalid & axi.rready, axi.rdata)
            if moves:
                assert value == ID
                taken += 1
        assert written == [OKAY] * len(values)
        assert ctx.get(bench.dut.o_interrupt) == 0
        ctx.set(axi.rready, 0)
        ctx.set(axi.bready, 0)
        assert await bench.value(ctx, "LIST_ADDRESS_LO") == values[-1]

    bench.run(story, addresses, words, answers, reads)


@pytest.mark.parametrize("name", ["CYCLES", "ENTRY_BEGIN"])
def test_cycles_read_whole(name):
    dut = HostPort(fingerprint=FINGERPRINT, rows=1, width_bits=64, units=0)
    axi = dut.axi

    async def read(ctx, name):
        ctx.set(axi.araddr, register(name).offset)
        ctx.set(axi.arvalid, 1)
        ctx.set(axi.rready, 1)
        await ctx.tick().until(axi.arready)
        ctx.set(axi.arvalid, 0)
        value, response = await ctx.tick().sample(axi.rdata, axi.rresp).until(axi.rvalid)
        assert response == OKAY
        return value

    async def story(ctx):
        ctx.set(dut.i_times[name.lower()], 0x1_FFFF_FFFF)
        low = await read(ctx, f"{name}_LO")
        # A carry between the two reads; the halves still belong together.
        ctx.set(dut.i_times[name.lower()], 0x2_0000_0000)
        assert await read(ctx, f"{name}_HI") << 32 | low == 0x1_FFFF_FFFF
        assert await read(ctx, f"{name}_LO") == 0
        assert await read(ctx, f"{name}_HI") == 2

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(story)
    simulator.run()
