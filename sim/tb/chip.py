"""Chip `tiny`: launches over AXI4-Lite, data over AXI4, random programs bit-exact against numpy."""

import contextlib
import itertools
import math
import random
from collections.abc import Iterator, Mapping
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import FallingEdge, ReadOnly, RisingEdge
from cocotbext.axi import AxiBus, AxiLiteBus, AxiLiteMaster, AxiRam, AxiRamRead, AxiReadBus

from hw.arch.config import named
from hw.arch.counters import ACTIVITIES, counter_index, engine_states, named_counters, unit_kinds
from hw.arch.error_codes import LaunchError
from hw.arch.errors import BadInputError
from hw.arch.launch import MAX_ARGUMENTS, entry_layout
from hw.arch.limits import COUNTER_WORDS
from hw.arch.registers.chip_registers import REGISTERS, register
from hw.chip import Chip
from hw.numeric.formats import Format, bf16, fp32, int8
from sim.campaign.generators.images import chip_program_of, placed_image, routable_image
from sim.campaign.generators.programs import Program, program_of, random_program
from sim.cocotb.bench_support import bench, random_generator, start
from sim.cocotb.lite_registers import LiteRegisters
from sim.cocotb.stalled_channels import stall_channels
from sim.emulator import emulate
from sim.launch_memory import LaunchMemory
from sim.operands import random_inputs
from sim.run.job import Problem
from sw.chip_program import ChipProgram
from sw.kernels.argmax import argmax
from sw.kernels.flash_attention import flash_attention
from sw.kernels.gelu import gelu
from sw.kernels.layer_norm import layer_norm
from sw.kernels.linear_gelu import linear_gelu
from sw.kernels.numbered.embedding import embedding
from sw.kernels.numbered.histogram import histogram
from sw.kernels.numbered.scatter import scatter
from sw.kernels.rope import rope
from sw.kernels.softmax import softmax
from sw.kernels.transpose import transpose
from sw.language import Kernel
from sw.prove import prove

__all__ = [
    "a_refused_image_leaves_the_chip_usable",
    "design",
    "kernels_leave_memory_as_the_emulator_does",
    "netlists_leave_memory_as_the_emulator_does",
    "netlists_that_repeat_leave_memory_as_the_emulator_does",
    "programs_follow_each_other",
    "programs_survive_a_slow_memory",
    "registers_keep_what_is_written",
]

_CONFIG = named["tiny"]
_MEMORY_BYTES = 1 << 18
_ADDRESS_BITS = _CONFIG.agcu.axi_address_bits
#: Byte of a list's entry that has the number of arguments.
_ARGUMENT_COUNT = entry_layout["argument_count"].offset // 8
#: Byte of a list's entry that has the low bits of its number of iterations.
_REPEAT = entry_layout["repeat"].offset // 8
_OFFSETS = {register.name: register.offset for register in REGISTERS}
_NETLISTS = 16
#: Largest extent of a product, but for that of a long one.
_MOST_SIDE = 64
_LAUNCH, _ERROR_DONE = 0b101, 0b110


def design() -> Chip:
    """The chip under test."""
    return Chip(_CONFIG)


class _Host:
    """Model of host and memory, with register access as by host software."""

    def __init__(self, dut: Any, rng: np.random.Generator, *, pauses: float = 0.0) -> None:
        self._dut = dut
        self._rng = rng
        self._memory = AxiRam(
            AxiBus.from_prefix(dut, "memory__0_"), dut.clk, dut.rst, size=_MEMORY_BYTES
        )
        launches = AxiRamRead(
            AxiReadBus.from_prefix(dut, "launch_"),
            dut.clk,
            dut.rst,
            size=_MEMORY_BYTES,
            mem=self._memory.mem,
        )
        self._registers = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "host_"), dut.clk, dut.rst)
        self._beats = 0
        cocotb.start_soon(self._count_beats())
        if pauses:
            read, write = self._memory.read_if, self._memory.write_if
            channels = (
                read.ar_channel,
                read.r_channel,
                write.aw_channel,
                write.w_channel,
                write.b_channel,
                launches.ar_channel,
                launches.r_channel,
            )
            stall_channels(channels, rng, pauses)

    async def _write(self, name: str, value: int) -> None:
        await self._registers.write_dword(_OFFSETS[name], value)

    async def _read(self, name: str) -> int:
        return int(await self._registers.read_dword(_OFFSETS[name]))

    async def _count_beats(self) -> None:
        dut = self._dut
        channels = [
            (getattr(dut, f"memory__0__{name}valid"), getattr(dut, f"memory__0__{name}ready"))
            for name in "rw"
        ]
        while True:
            await FallingEdge(dut.clk)
            await ReadOnly()
            if not int(dut.rst.value):
                self._beats += sum(int(valid.value) & int(ready.value) for valid, ready in channels)

    async def counters(self) -> dict[str, dict[str, int]]:
        """Read all counters, by unit and name."""
        counters = {}
        for unit, (name, kind) in enumerate(unit_kinds(_CONFIG).items()):
            words = []
            for word in range(COUNTER_WORDS):
                await self._write("COUNTER_SELECT", counter_index(unit, word))
                low = await self._read("COUNTER_LO")
                words.append(await self._read("COUNTER_HI") << 32 | low)
            counters[name] = named_counters(kind, words)
        return counters

    async def _check_counters(self, program: Program, cycles: int) -> None:
        """Check that each unit's counters sum to the kernel's cycles and match the program."""
        first = await self._read("FIRST_MAC")
        counters = await self.counters()
        sums = {name: sum(each[kind] for kind in ACTIVITIES) for name, each in counters.items()}
        launch = await self._read("LAUNCH_CYCLES")
        assert set(sums.values()) == {cycles - launch}, (sums, cycles, launch)
        assert await self._read("ENTRY_BEGIN_LO") == 0
        assert launch < first < cycles, (first, cycles)
        compiled = program.compiled
        vectors = sum(each.get("vectors", 0) for each in counters.values())
        products = _CONFIG.grid_rows * _CONFIG.grid_columns * 16 // compiled.dtype.bits
        assert vectors * products == compiled.macs_issued
        (part,) = compiled.parts
        agcu = part.chip.agcus[0]
        issuers = [issuer for issuer in (*agcu.loads, *agcu.stores) if issuer]
        nests = [program.loops for issuer in issuers for program in issuer.programs]
        boxes = sum(math.prod(loop.count for loop in loops) for loops in nests)
        counted = counters["agcu_0"]
        assert (counted["commands"], counted["boxes"]) == (boxes, boxes)
        assert counted["bytes"] == self._beats * _CONFIG.width_bits // 8
        assert sums["agcu_0"] - self._beats <= counted["bus_idle"] < sums["agcu_0"]
        for row, column in itertools.product(range(_CONFIG.rows), range(_CONFIG.columns)):
            name = f"{_CONFIG.unit_at(row, column).name}_{row}_{column}"
            if part.chip.unit((row, column)) is None:
                assert counters[name]["idle"] == sums[name], name
            elif "state" in counters[name]:
                states = engine_states(counters[name]["state"]).values()
                assert all(state["done"] for state in states), states

    async def launch(self, list_address: int, entries: int = 1) -> int:
        """Launch the list at an address; returns the status at the interrupt."""
        await self._write("LIST_ADDRESS_LO", list_address & 0xFFFF_FFFF)
        await self._write("LIST_ADDRESS_HI", list_address >> 32)
        await self._write("LIST_ENTRIES", entries)
        await self._write("CONTROL", _LAUNCH)
        if not int(self._dut.o_interrupt.value):
            await RisingEdge(self._dut.o_interrupt)
        return await self._read("STATUS")

    async def error(self) -> int:
        """Read and clear the error code."""
        code = await self._read("ERROR") & 0xFF
        await self._write("STATUS", _ERROR_DONE)
        return code

    async def run_program(self, program: Program) -> None:
        """Run a compiled program; check its bytes, and that no other byte was written."""
        launch = self._placed(program)
        before = launch.bytes_before(program.inputs)
        before += self._rng.bytes(_MEMORY_BYTES - launch.size)
        # Arguments that no descriptor adds are what lies behind the table.
        before[launch.places["launch list"][0] + _ARGUMENT_COUNT] = MAX_ARGUMENTS
        self._memory.write(0, before)
        self._beats = 0
        assert await self.launch(launch.list_address) == 0b010, f"error code {await self.error()}"
        cycles = await self._read("CYCLES_LO")
        await self._check_counters(program, cycles)
        await self._write("STATUS", _ERROR_DONE)
        after = self._memory.read(0, _MEMORY_BYTES)
        what = program.compiled.report()
        for name, expected in program.oracle.items():
            assert launch.read(after, name).tobytes() == expected.tobytes(), what
        assert launch.changed_outside(before, after) is None, what
        cocotb.log.info("%d cycles of %s", cycles, what)

    def _placed(self, program: Program) -> LaunchMemory:
        """Memory layout of a program at a random address; the memory model wraps around."""
        origin = _MEMORY_BYTES * int(self._rng.integers((1 << _ADDRESS_BITS) // _MEMORY_BYTES))
        seed = int(self._rng.integers(1 << 40))
        return LaunchMemory.of_kernel(program.compiled, seed=seed, origin=origin)

    async def run_image(self, fields: Mapping[str, Any], repeat: int = 1) -> None:
        """Run a generated image, repeated; final memory must equal that of the emulator."""
        raw = chip_program_of(_CONFIG, fields).pack()
        launch, before = placed_image(_CONFIG, fields, raw, int(self._rng.integers(1 << 40)))
        before[launch.places["launch list"][0] + _REPEAT] = repeat
        expected = bytearray(before)
        assert emulate(_CONFIG, expected, list_address=launch.list_address).status == "done"
        self._memory.write(0, bytes(before))
        assert await self.launch(launch.list_address) == 0b010, f"error code {await self.error()}"
        await self._write("STATUS", _ERROR_DONE)
        after = self._memory.read(0, len(expected))
        assert after == expected, f"{fields}"

    async def run_kernel(
        self, kernel: Kernel, sizes: Mapping[str, int], dtype: Format | None
    ) -> None:
        """Run a kernel's parts as one list; final memory must equal that of the emulator."""
        problem = Problem(kernel, _CONFIG, sizes, dtype)
        compiled = problem.compile()
        seed = int(self._rng.integers(1 << 40))
        launch = LaunchMemory.of_kernel(compiled, seed=seed)
        assert launch.size <= _MEMORY_BYTES, kernel.name
        inputs = random_inputs(problem.inputs, seed, limits=problem.row_limits)
        before = launch.bytes_before(inputs)
        before += bytes(_MEMORY_BYTES - len(before))
        expected = bytearray(before)
        where, entries = launch.list_address, launch.entries
        found = emulate(_CONFIG, expected, list_address=where, entries=entries)
        assert found.status == "done", kernel.name
        self._memory.write(0, bytes(before))
        assert await self.launch(where, entries) == 0b010, f"error code {await self.error()}"
        await self._write("STATUS", _ERROR_DONE)
        assert self._memory.read(0, _MEMORY_BYTES) == expected, kernel.name

    def spoil(self, program: Program, offset: int) -> int:
        """Store a program with one wrong byte in its entry; returns the launch list's address."""
        launch = self._placed(program)
        memory = launch.bytes_before(program.inputs)
        memory[launch.places["launch list"][0] + offset] ^= 0x10
        self._memory.write(0, memory)
        return launch.list_address


def _python_generator(rng: np.random.Generator) -> random.Random:
    return random.Random(int(rng.integers(1 << 40)))


def _programs(rng: random.Random) -> Iterator[Program]:
    """Random programs that fit the chip and the model of its memory."""
    while True:
        fields = random_program(rng, _CONFIG, most=_MOST_SIDE, launches=False)
        with contextlib.suppress(BadInputError):
            program = program_of(fields)
            if program.memory(1, seed=0).size <= _MEMORY_BYTES:
                yield program


@bench(limit_cycles=400_000)
async def programs_follow_each_other(dut: Any) -> None:
    """Programs of every format, ragged in all extents, in consecutive launches."""
    rng = random_generator()
    host = _Host(dut, rng)
    await start(dut)
    for program in itertools.islice(_programs(_python_generator(rng)), 10):
        await host.run_program(program)


@bench(limit_cycles=800_000)
@cocotb.parametrize(pauses=[0.3, 0.8])
async def programs_survive_a_slow_memory(dut: Any, pauses: float) -> None:
    """Every AXI channel stalls at random."""
    rng = random_generator()
    host = _Host(dut, rng, pauses=pauses)
    await start(dut)
    for program in itertools.islice(_programs(_python_generator(rng)), 4):
        await host.run_program(program)


@bench(limit_cycles=200_000)
async def a_refused_image_leaves_the_chip_usable(dut: Any) -> None:
    """Wrong magic, version or fingerprint: the error code, then a correct product."""
    rng = random_generator()
    host = _Host(dut, rng)
    await start(dut)
    programs = _programs(_python_generator(rng))
    for offset, code in (
        (28, LaunchError.MAGIC),
        (32, LaunchError.VERSION),
        (36, LaunchError.FINGERPRINT),
        (40, LaunchError.CHECKSUM),
    ):
        program = next(programs)
        assert await host.launch(host.spoil(program, offset)) == 0b100
        assert await host.error() == code.value
        await host.run_program(program)
        await FallingEdge(dut.clk)


def _live_images(rng: random.Random, repeat: int = 1) -> Iterator[Mapping[str, Any]]:
    """Random images with multicasts, merges and loop nests that are proved live."""
    while True:
        fields = routable_image(rng, _CONFIG)
        raw = chip_program_of(_CONFIG, fields).pack()
        if prove(ChipProgram.unpack(_CONFIG, raw), repeat=repeat).live:
            yield fields


@bench(limit_cycles=800_000)
async def netlists_leave_memory_as_the_emulator_does(dut: Any) -> None:
    """Generated multicast trees, merges and loop nests over all links and ports."""
    rng = random_generator()
    host = _Host(dut, rng)
    await start(dut)
    images = _live_images(_python_generator(rng))
    for fields in itertools.islice(images, _NETLISTS):
        await host.run_image(fields)


@bench(limit_cycles=800_000)
@cocotb.parametrize(pauses=[0.0, 0.5])
async def netlists_that_repeat_leave_memory_as_the_emulator_does(dut: Any, pauses: float) -> None:
    """Two to five iterations of one launch, whose slots, rotations and tokens go on."""
    rng = random_generator()
    host = _Host(dut, rng, pauses=pauses)
    await start(dut)
    images = _live_images(_python_generator(rng), repeat=2)
    for fields in itertools.islice(images, _NETLISTS // 2):
        await host.run_image(fields, repeat=int(rng.integers(2, 6)))


#: Kernels that use the lanes, the indices of PMUs and AGCUs, fused softmax and lists of parts.
_KERNELS: list[tuple[Kernel, Mapping[str, int], Format | None]] = [
    (softmax, {"M": 9, "N": 21}, bf16),
    (softmax, {"M": 5, "N": 300}, fp32),
    (layer_norm, {"M": 7, "N": 20}, fp32),
    (argmax, {"M": 9, "N": 30}, bf16),
    (gelu, {"M": 9, "N": 30}, int8),
    (transpose, {"M": 17, "N": 30}, bf16),
    (rope, {"M": 9, "N": 32}, bf16),
    (linear_gelu, {"M": 9, "K": 20, "N": 16}, bf16),
    (embedding, {"V": 20, "N": 16, "M": 12}, bf16),
    (scatter, {"V": 20, "N": 16, "M": 12}, bf16),
    (histogram, {"N": 40, "V": 16}, None),
    (flash_attention, {"H": 2, "M": 9, "D": 8, "G": 1, "S": 20}, bf16),
]


@bench(limit_cycles=2_000_000)
async def kernels_leave_memory_as_the_emulator_does(dut: Any) -> None:
    """A kernel for every part of the units, the parts of each in one launch list."""
    host = _Host(dut, random_generator())
    await start(dut)
    for kernel, sizes, dtype in _KERNELS:
        await host.run_kernel(kernel, sizes, dtype)


@bench(limit_cycles=100_000)
async def registers_keep_what_is_written(dut: Any) -> None:
    """Every register of the map answers; those of plain fields keep what is written."""
    host = LiteRegisters(dut, "host", register)
    await start(dut)
    await host.require_map(REGISTERS, random_generator())
