"""Command processor: random valid and invalid launch lists against fabric and register models."""

import itertools
import logging
from collections.abc import Iterator
from typing import Any

import cocotb
from cocotb.triggers import FallingEdge, ReadOnly, RisingEdge
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiRamRead, AxiReadBus, AxiResp

from hw.arch.counters import COUNTER_BITS
from hw.arch.error_codes import LaunchError, ReadPhase
from hw.arch.image import IMAGE_VERSION
from hw.arch.launch import LaunchEntry, alignment_bytes
from hw.arch.limits import COUNTER_WORDS
from hw.arch.registers.chip_registers import register
from hw.command.argument_reader import argument_write_layout
from hw.command.processor import CommandProcessor
from hw.numeric.division import ceil_div
from sim.cocotb.bench_support import bench, clocks, random_generator, start
from sim.cocotb.stalled_channels import stall_channels
from sim.cocotb.unit_choice import asked_command
from sim.drivers.command_case import (
    LISTED_CHIP,
    REGION_BYTES,
    CommandSizes,
    Event,
    ListedKernel,
    random_kernels,
    store_list,
)

__all__ = [
    "an_abort_at_any_time_leaves_a_processor_that_works",
    "design",
    "errors_of_memory_and_of_units_end_a_launch_at_their_entry",
    "lists_run_in_order_whatever_pauses",
    "what_cannot_run_is_refused_at_its_entry",
]

_SIZES = CommandSizes(64, 40, ((4, 1), (3,)), 3)
#: Lists that run in a test of those that are valid.
_LISTS = 12
_LAUNCH, _ABORT, _INTERRUPT = 1, 2, 4
_DONE, _ERROR = 2, 4


def design() -> CommandProcessor:
    """The command processor under test."""
    return CommandProcessor(**_SIZES._asdict(), fingerprint=LISTED_CHIP)


class _Memory:
    """Memory that returns errors at some addresses."""

    def __init__(self, dut: Any, sizes: CommandSizes, pauses: float) -> None:
        bus = AxiReadBus.from_prefix(dut, "memory_")
        ram = AxiRamRead(bus, dut.clk, dut.rst, size=1 << sizes.axi_address_bits)
        ram.log.setLevel(logging.WARNING)
        self.write = ram.write
        self.errors: dict[int, AxiResp] = {}
        answer = AxiResp.OKAY
        read, send = ram._read, ram.r_channel.send

        async def looked_up(address: int, length: int) -> bytes:
            nonlocal answer
            answer = self.errors.get(address, AxiResp.OKAY)
            return bytes(await read(address, length))

        async def answered(beat: Any) -> None:
            beat.rresp = answer
            await send(beat)

        ram._read, ram.r_channel.send = looked_up, answered
        stall_channels((ram.ar_channel, ram.r_channel), random_generator("memory"), pauses)


class _Bench:
    """Models of host, memory and a fabric that logs its commands and is busy for random times."""

    def __init__(self, dut: Any, *, pauses: float = 0.0) -> None:
        self.dut = dut
        self.sizes, self.lists = asked_command() or (_SIZES, _LISTS)
        self.rng = random_generator("bench")
        self.memory = _Memory(dut, self.sizes, pauses)
        self._host = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "host_"), dut.clk, dut.rst)
        for side in (self._host.write_if, self._host.read_if):
            side.log.setLevel(logging.WARNING)
        self.log: list[Event] = []
        #: Number of the kernel since the launch whose unit fails, with its code and unit.
        self.unit_errors: dict[int, tuple[int, int]] = {}
        self.launched = self.first_issue = self.started_at = self.done_at = self.begun_at = 0
        self.launches = self.list = 0
        self.counters = [
            [int(value) for value in self.rng.integers(0, 1 << COUNTER_BITS, COUNTER_WORDS)]
            for _ in range(self.sizes.units)
        ]

    async def begin(self) -> None:
        """Reset, and start the fabric."""
        inputs = "done error error_code error_unit drained issue counters".split()
        await start(self.dut, **{f"i_{name}": 0 for name in inputs})
        cocotb.start_soon(self._fabric())

    # The fabric: inputs change at falling edges, outputs are sampled before the rising edge.

    async def _fabric(self) -> None:
        dut, rng = self.dut, self.rng
        shadows: dict[tuple[int, int], int] = {}
        left, drains = -1, 0
        for cycle in itertools.count():
            failing = self.unit_errors.get(self.starts() - 1) if left == 0 else None
            issues = left > 0 and rng.random() < 0.1
            dut.i_done.value = int(left == 0 and failing is None)
            dut.i_error.value = int(failing is not None)
            dut.i_error_code.value, dut.i_error_unit.value = failing or (0, 0)
            dut.i_issue.value = int(issues)
            dut.i_drained.value = int(drains == 0)
            await ReadOnly()
            if issues and not self.first_issue:
                self.first_issue = cycle
            if left == 0 and failing is None:
                self.begun_at, self.done_at = self.done_at, cycle
            if int(dut.host__wvalid.value) and int(dut.host__wready.value):
                control = int(dut.host__awaddr.value) == register("CONTROL").offset
                if control and int(dut.host__wdata.value) & (_LAUNCH | _ABORT) == _LAUNCH:
                    self.launched = self.done_at = cycle
                    self.first_issue = 0
            stop, clear = int(dut.o_stop.value), int(dut.o_clear.value)
            assert int(dut.o_run.value) == (left >= 0 and not stop)
            left = -1 if stop or clear else left - (left >= 0)
            assert not (clear and drains), "a reset before the units are drained"
            if stop and self.log[-1:] != [("stop",)]:
                self.log.append(("stop",))
                drains = int(rng.integers(0, 30))
            drains -= drains > 0
            if clear:
                self.log.append(("clear",))
            self._take_argument()
            if int(dut.o_load.value):
                self.log.append(("load", shadows))
            if int(dut.o_start.value):
                self.log.append(("start", int(dut.o_repeat.value)))
                self.started_at = cycle
                left = int(rng.integers(0, 80))
            shadows = {} if int(dut.o_begin.value) else shadows
            self._take_word(shadows)
            shown = int(dut.o_counter.value)
            await FallingEdge(dut.clk)
            words = [unit[shown] << COUNTER_BITS * i for i, unit in enumerate(self.counters)]
            dut.i_counters.value = sum(words)

    def _take_word(self, shadows: dict[tuple[int, int], int]) -> None:
        dut = self.dut
        if row := int(dut.o_row.value):
            at = row.bit_length() - 1, int(dut.o_segment.value).bit_length() - 1
            word = int(dut.o_data.value) << self.sizes.width_bits * int(dut.o_word.value)
            shadows[at] = shadows.get(at, 0) | word

    def _take_argument(self) -> None:
        if int(self.dut.o_argument_valid.value):
            fields: Any = argument_write_layout().from_bits(int(self.dut.o_argument.value))
            self.log.append(("argument", fields["index"], fields["value"], fields["stride"]))

    def starts(self) -> int:
        return sum(event[0] == "start" for event in self.log)

    # The host.

    async def write(self, name: str, value: int) -> None:
        await self._host.write_dword(register(name).offset, value)

    async def read(self, name: str) -> int:
        return int(await self._host.read_dword(register(name).offset))

    def store(self, kernels: list[ListedKernel]) -> list[LaunchEntry]:
        """Store a list and everything it refers to in memory, at a random address."""
        regions = (1 << self.sizes.axi_address_bits) // REGION_BYTES
        region = REGION_BYTES * int(self.rng.integers(0, regions))
        self.list, entries = store_list(kernels, region, self.sizes, self.memory.write)
        return entries

    @property
    def pitch(self) -> int:
        """Bytes from an entry of a list to the next."""
        return alignment_bytes(self.sizes.width_bits)

    def kernels(self, most: int = 4) -> list[ListedKernel]:
        """A random list of kernels."""
        return random_kernels(self.rng, self.sizes, most)

    async def launch(self, entries: int, address: int | None = None) -> None:
        address = self.list if address is None else address
        self.log.clear()
        await self.write("LIST_ADDRESS_LO", address & 0xFFFF_FFFF)
        await self.write("LIST_ADDRESS_HI", address >> 32)
        await self.write("LIST_ENTRIES", entries)
        await self.write("CONTROL", _LAUNCH | _INTERRUPT)

    async def end(self) -> int:
        """Wait for the interrupt; returns STATUS and clears it."""
        if not int(self.dut.o_interrupt.value):
            await RisingEdge(self.dut.o_interrupt)
        return await self.read("STATUS")

    async def run(self, kernels: list[ListedKernel]) -> None:
        """Launch a valid list; check the order of its kernels and the registers."""
        self.store(kernels)
        await self.launch(len(kernels))
        assert await self.end() == _DONE
        assert self.log == [event for kernel in kernels for event in kernel.events()]
        self.launches += 1
        assert await self.read("LAUNCHES") == self.launches
        assert await self.read("CYCLES_LO") == self.done_at - self.launched
        assert await self.read("ENTRY_BEGIN_LO") == self.begun_at - self.launched
        assert await self.read("LAUNCH_CYCLES") == self.started_at - self.begun_at
        first = self.first_issue - self.launched if self.first_issue else 0
        assert await self.read("FIRST_MAC") == first
        index = int(self.rng.integers(0, self.sizes.units * COUNTER_WORDS))
        await self.write("COUNTER_SELECT", index)
        counter = await self.read("COUNTER_LO") | await self.read("COUNTER_HI") << 32
        assert counter == self.counters[index // COUNTER_WORDS][index % COUNTER_WORDS]

    async def fail(self, kernels: list[ListedKernel], entry: int, error: int) -> None:
        """Check that the launch ends with an error at an entry, after the entries before it ran."""
        assert await self.end() == _ERROR
        assert await self.read("ERROR") == error
        assert await self.read("ERROR_ENTRY") == entry
        assert await self.read("LAUNCHES") == self.launches
        self.check_stopped(kernels, entry)
        await self.write("STATUS", _ERROR)

    def check_stopped(self, kernels: list[ListedKernel], ran: int) -> None:
        """Check the fabric's log: complete kernels, possibly a partial one, stop and reset."""
        expected = [event for kernel in kernels for event in kernel.events()]
        assert self.log[-2:] == [("stop",), ("clear",)], self.log
        seen = self.log[:-2]
        assert seen == expected[: len(seen)] and self.starts() >= ran, (seen, expected)


@bench(limit_cycles=5_000_000)
@cocotb.parametrize(pauses=[0.0, 0.3, 0.8])
async def lists_run_in_order_whatever_pauses(dut: Any, pauses: float) -> None:
    """Every kernel starts from reset, with its own image, arguments and repeat count."""
    test = _Bench(dut, pauses=pauses)
    await test.begin()
    for _ in range(test.lists):
        await test.run(test.kernels())


def _refusals(sizes: CommandSizes) -> Iterator[tuple[str, int, int, int, LaunchError]]:
    """Invalid lists and images: part, byte, value, size, and the expected error."""
    code = LaunchError
    yield from (
        ("entry", 0, 0x1_0020, 8, code.IMAGE_ADDRESS),
        ("entry", 0, 1 << sizes.axi_address_bits, 8, code.IMAGE_ADDRESS),
        ("entry", 16, 0, 4, code.IMAGE_BYTES),
        ("entry", 16, 36, 4, code.IMAGE_BYTES),
        ("entry", 16, 1 << 24, 4, code.IMAGE_BYTES),
        ("entry", 20, 17, 4, code.ARGUMENT_COUNT),
        ("entry", 24, 0, 4, code.REPEAT),
        ("entry", 60, 1 << 31, 4, code.RESERVED),
        ("entry", 28, 0x4D49_5755, 4, code.MAGIC),
        ("entry", 32, IMAGE_VERSION + 1, 2, code.VERSION),
        ("entry", 34, 3, 2, code.RESERVED),
        ("entry", 36, LISTED_CHIP ^ 1, 4, code.FINGERPRINT),
        ("entry", 40, 0, 4, code.CHECKSUM),
        ("image", 0, len(sizes.segments), 1, code.RUN),
        ("image", 1, max(map(len, sizes.segments)), 1, code.RUN),
        ("image", 2, max(sizes.words.values()), 1, code.RUN),
    )


@bench(limit_cycles=200_000)
async def what_cannot_run_is_refused_at_its_entry(dut: Any) -> None:
    """Kernels before the invalid entry complete; after a clear the next launch works."""
    test = _Bench(dut, pauses=0.2)
    await test.begin()
    for entries, address, code in (
        (0, 0, LaunchError.NO_ENTRIES),
        (1, 32, LaunchError.LIST_ADDRESS),
        (1, 1 << test.sizes.axi_address_bits, LaunchError.LIST_ADDRESS),
    ):
        await test.launch(entries, address)
        await test.fail([], 0, code.value)
    for part, offset, value, size, code in _refusals(test.sizes):
        kernels = test.kernels()
        entries_there = test.store(kernels)
        wrong = int(test.rng.integers(0, len(kernels)))
        entry = test.list + wrong * test.pitch
        at = entry if part == "entry" else entries_there[wrong].image_address
        test.memory.write(at + offset, value.to_bytes(size, "little"))
        await test.launch(len(kernels))
        await test.fail(kernels, wrong, code.value)
        await test.run(test.kernels(2))


@bench(limit_cycles=200_000)
async def errors_of_memory_and_of_units_end_a_launch_at_their_entry(dut: Any) -> None:
    """SLVERR or DECERR at any beat read, or an error of a unit."""
    test = _Bench(dut, pauses=0.2)
    rng, beat = test.rng, test.sizes.width_bits // 8
    await test.begin()
    for _ in range(40):
        kernels = test.kernels()
        entries = test.store(kernels)
        wrong = int(rng.integers(0, len(kernels)))
        entry = entries[wrong]
        spans = {
            ReadPhase.LIST: (test.list + wrong * test.pitch, test.pitch),
            ReadPhase.ARGUMENTS: (entry.argument_address, 16 * entry.argument_count),
            ReadPhase.IMAGE: (entry.image_address, entry.image_bytes),
        }
        choice = list(spans)[rng.integers(3)] if rng.random() < 0.7 else None
        if choice is None:
            unit_code, unit = (int(value) for value in rng.integers(1, 256, 2))
            test.unit_errors = {wrong: (unit_code, unit)}
            error, ran = LaunchError.UNIT.value | unit_code << 8 | unit << 16, wrong + 1
        else:
            first, size = spans[choice]
            size = ceil_div(size, beat) * beat
            if not size:
                continue
            answer = (AxiResp.SLVERR, AxiResp.DECERR)[rng.integers(2)]
            test.memory.errors = {first + beat * int(rng.integers(0, size // beat)): answer}
            code = LaunchError[f"READ_{answer.name}"]
            error, ran = code.value | choice.value << 8, wrong
        await test.launch(len(kernels))
        await test.fail(kernels, wrong, error)
        assert test.log.count(("clear",)) >= ran
        test.memory.errors, test.unit_errors = {}, {}
        await test.run(test.kernels(2))


@bench(limit_cycles=200_000)
@cocotb.parametrize(pauses=[0.0, 0.5])
async def an_abort_at_any_time_leaves_a_processor_that_works(dut: Any, pauses: float) -> None:
    """An abort stops, drains and resets; a late abort resets an idle chip."""
    test = _Bench(dut, pauses=pauses)
    await test.begin()
    aborted = 0
    for _ in range(50):
        kernels = test.kernels()
        test.store(kernels)
        await test.launch(len(kernels))
        await clocks(dut, int(test.rng.integers(0, 300)))
        await test.write("CONTROL", _ABORT | _INTERRUPT)
        while (status := await test.read("STATUS")) & 1:
            pass
        if status == _DONE:
            test.launches += 1
            assert test.log[-2:] == [("stop",), ("clear",)]
        else:
            aborted += 1
            assert await test.read("ERROR") == LaunchError.ABORTED.value
            assert await test.read("ERROR_ENTRY") in (test.starts() - 1, test.starts())
            test.check_stopped(kernels, 0)
        await test.write("STATUS", _ERROR | _DONE)
        await test.run(test.kernels(2))
    assert 10 < aborted < 50
