"""TMA unit driven by its registers: random boxes through AXI memories that stall and reorder."""

from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import FallingEdge, ReadOnly

from hw.arch.descriptor import DESCRIPTOR_BYTES, MAX_RANK, Descriptor, ElementFormat
from hw.arch.error_codes import TmaError
from hw.arch.registers.tma_registers import TMA_REGISTERS, tma_register
from hw.arch.tma_sizes import TmaSizes
from hw.lib.axi import RESP_DECERR, RESP_SLVERR
from hw.lib.axi_rules import broken_rules
from hw.numeric.division import ceil_div
from hw.tma.barriers.barrier_layouts import BarrierOperation
from hw.tma.standalone.unit_commands import TmaOperation
from sim.cocotb.address_monitor import AddressMonitor
from sim.cocotb.bench_support import bench, clocks, random_generator, start
from sim.cocotb.checked_component import CheckedComponent
from sim.cocotb.lite_registers import LiteRegisters
from sim.cocotb.reordering_memory import ReorderingMemory
from sim.cocotb.stalled_channels import stalled_memory
from sim.cocotb.tma_choice import TmaChoice, asked_tma
from sim.drivers.passed_tile import (
    TILE_DESCRIPTORS,
    TILE_MEMORY_BYTES,
    TILES,
    PassedTile,
)

__all__ = [
    "boxes_by_registers_are_numpys_slices",
    "boxes_out_of_order_are_numpys_slices",
    "design",
    "error_responses_end_their_command",
    "registers_keep_what_is_written",
]

#: The unit under test: the selected one, or one whose queues and memories fill.
_UNIT = asked_tma() or TmaChoice(
    TmaSizes(
        width_bits=64,
        address_bits=32,
        landing_beats=32,
        outstanding=4,
        descriptors=4,
        barriers=4,
        scratchpad_bytes=1 << 15,
    ),
    commands=8,
)
_SIZES = _UNIT.sizes
_TILE_BYTES = _SIZES.scratchpad_bytes // TILES
_ROUNDS = 8
_BARRIER = _SIZES.barriers // 2
_PADS = range(_SIZES.scratchpads)


def design() -> CheckedComponent:
    """The unit under test, with a checker of AXI4 beside its port."""
    return _UNIT.design()


class _Host(LiteRegisters):
    """Commands and barrier operations of the unit, by its registers."""

    def __init__(self, dut: Any) -> None:
        super().__init__(dut, "host", tma_register)

    async def submit(
        self,
        operation: TmaOperation,
        id: int,
        *,
        descriptor: int = 0,
        corner: tuple[int, ...] | list[int] = (),
        local: int = 0,
        barrier: int | None = None,
        destinations: int = 1,
        source: int = 0,
    ) -> None:
        """Give a command."""
        if len(_PADS) > 1:
            await self.write("DESTINATIONS", mask=destinations, source=source)
        await self.write("DESCRIPTOR_LO", value=descriptor)
        for number in range(MAX_RANK):
            coordinate = corner[number] if number < len(corner) else 0
            await self.write(f"COORDINATE_{number}", value=coordinate & 0xFFFF_FFFF)
        await self.write("LOCAL", value=local)
        await self.write("SIGNAL", signals=barrier is not None, barrier=barrier or 0)
        await self.write("SUBMIT", operation=operation.value, id=id)

    async def operate(self, operation: BarrierOperation, pad: int, **values: int) -> None:
        """Apply an operation to the barrier of a scratchpad, which accepts it."""
        await self.write("BARRIER_ARRIVALS", value=values.get("arrivals", 0))
        await self.write("BARRIER_BYTES", value=values.get("bytes", 0))
        where = {"barrier": _BARRIER, "scratchpad": pad}
        await self.write("BARRIER_OPERATION", operation=operation.value, **where)
        assert not (await self.until("BARRIER_ANSWER", "valid"))["error"]

    async def completions(self, count: int) -> dict[int, int]:
        """Codes of the next completions, by the commands' identifiers."""
        found = [await self.until("COMPLETION", "valid") for _ in range(count)]
        return {each["id"]: each["code"] for each in found}


def _monitor() -> AddressMonitor:
    """Monitor that allows reads of the descriptors."""
    monitor = AddressMonitor(TILE_MEMORY_BYTES, _SIZES.width_bits // 8)
    monitor.readable[TILE_DESCRIPTORS:] = True
    return monitor


async def _watch(dut: Any, monitor: AddressMonitor) -> None:
    """See that no rule of AXI4 is broken, and that no beat leaves a tensor."""
    while True:
        await ReadOnly()
        broken = broken_rules(int(dut.o_broken.value))
        assert not broken, [f"{rule.name}: {rule.statement}" for rule in broken]
        if not int(dut.rst.value):
            monitor.sample(dut)
        await FallingEdge(dut.clk)


async def _started(dut: Any, monitor: AddressMonitor) -> _Host:
    """Host of the unit, which is reset and watched."""
    host = _Host(dut)
    idle: dict[str, int] = {"interlock__granted": 0} if _UNIT.reduces else {}
    for user in ("", *(f"further__{pad}__" for pad in _PADS[:-1])):
        idle |= {f"{user}i_reads__valid": 0, f"{user}i_writes__valid": 0}
        for port in range(_UNIT.ports):
            idle |= {f"{user}i_waits__{port}__valid": 0, f"{user}i_operations__{port}__valid": 0}
            idle[f"{user}o_waits__{port}__ready"] = 1
    await start(dut, **idle)
    cocotb.start_soon(_watch(dut, monitor))
    if _UNIT.reduces:
        cocotb.start_soon(_grant(dut))
    return host


async def _grant(dut: Any) -> None:
    """Grant each page a cycle after it was asked for, as to the only unit at an interlock."""
    while True:
        await ReadOnly()
        asks = int(dut.interlock__asks.value)
        await FallingEdge(dut.clk)
        dut.interlock__granted.value = asks


async def _interrupted(dut: Any, host: _Host, *causes: str) -> None:
    """Wait for the interrupt by one of its causes, and clear it."""
    await host.write("INTERRUPT_ENABLE", **dict.fromkeys(causes, 1))
    while not int(dut.o_interrupt.value):
        await clocks(dut, 1)
    found = await host.read("INTERRUPT_STATUS")
    assert any(found[cause] for cause in causes)
    await host.write("INTERRUPT_STATUS", **found)


async def _load(dut: Any, host: _Host, tiles: list[PassedTile], *, abort_after: int | None) -> bool:
    """Load the tiles, with one command that is refused among them; whether none was aborted."""
    for pad in _PADS:
        sizes = (
            tile.tensor.descriptor.box_bytes * (tile.destinations >> pad & 1) for tile in tiles
        )
        await host.operate(BarrierOperation.INIT, pad, arrivals=1)
        await host.operate(BarrierOperation.ARRIVE_EXPECT, pad, arrivals=1, bytes=sum(sizes))
    await host.write("WAIT_CYCLES", value=1_000_000)
    await host.write("WAIT", parity=0, barrier=_BARRIER, scratchpad=_PADS[-1])
    load = TmaOperation.LOAD
    for tile in tiles:
        where: dict[str, Any] = {"local": tile.number * _TILE_BYTES, "barrier": _BARRIER}
        where |= {"destinations": tile.destinations, "descriptor": tile.pointers[0]}
        await host.submit(load, tile.number, corner=tile.corner, **where)
    await host.submit(load, 99, descriptor=TILE_DESCRIPTORS + 8)
    if abort_after is not None:
        await clocks(dut, abort_after)
        await host.write("CONTROL", abort=1)
    results = []
    for pad in reversed(_PADS):
        await _interrupted(dut, host, "wait")
        results.append(await host.until("WAIT_RESULT", "valid"))
        if pad:
            await host.write("WAIT", parity=0, barrier=_BARRIER, scratchpad=pad - 1)
    codes = await host.completions(TILES + 1)
    assert codes.pop(99) in (TmaError.POINTER.value, TmaError.ABORTED.value)
    if abort_after is None:
        passed = {"passed": 1, "flag": 0, "timed_out": 0, "valid": 1, "error": 0}
        assert results == [passed] * len(_PADS)
        assert not any(codes.values())
        return True
    assert set(codes.values()) <= {0, TmaError.ABORTED.value}
    while (await host.read("STATUS"))["aborting"]:
        pass
    assert (await host.read("STATUS"))["idle"]
    return False


@bench(limit_cycles=2_000_000)
@cocotb.parametrize(stall=[0.0, 0.5, 0.9])
async def boxes_by_registers_are_numpys_slices(dut: Any, stall: float) -> None:
    """Tiles pass through the scratchpad; an abort ends some loads; memory is as numpy has it."""
    await _pass_tiles(dut, stalled_memory(dut, TILE_MEMORY_BYTES, stall))


@bench(limit_cycles=2_000_000)
@cocotb.parametrize(stall=[0.0, 0.5], interleaves=[False, True])
async def boxes_out_of_order_are_numpys_slices(dut: Any, stall: float, interleaves: bool) -> None:
    """The same, where data of different IDs come in any order."""
    memory = ReorderingMemory(dut, TILE_MEMORY_BYTES, stall=stall, interleaves=interleaves)
    memory.start()
    await _pass_tiles(dut, memory)
    assert memory.out_of_order


async def _pass_tiles(dut: Any, memory: Any) -> None:
    """Pass random tiles through the scratchpad, abort some loads, and compare the memory."""
    rng = random_generator()
    image = rng.integers(0, 256, TILE_MEMORY_BYTES, dtype=np.uint8)
    memory.write(0, image.tobytes())
    monitor = _monitor()
    host = await _started(dut, monitor)
    aborted = 0
    for round_ in range(_ROUNDS):
        tiles = []
        for number in range(TILES):
            tile = PassedTile.random(
                rng,
                number,
                vector_bytes=_SIZES.width_bits // 8,
                most_bytes=_TILE_BYTES,
                reduces=_UNIT.reduces,
                scratchpads=_SIZES.scratchpads,
            )
            tiles.append(tile)
            tile.tensor.owns(monitor.readable)
            tile.owns(monitor.writable)
            tile.owns(monitor.readable, tile.adds)
            for pointer, one in zip(tile.pointers, (tile.tensor.descriptor, tile.target)):
                memory.write(pointer, one.pack())
                image[pointer : pointer + DESCRIPTOR_BYTES] = np.frombuffer(one.pack(), np.uint8)
        pointers = [pointer for tile in tiles for pointer in tile.pointers]
        for number, pointer in enumerate(pointers):
            await host.submit(TmaOperation.INVALIDATE, number, descriptor=pointer)
        assert set((await host.completions(len(pointers))).values()) == {0}
        abort_after = int(rng.integers(0, 300)) if round_ % 3 == 1 else None
        if not await _load(dut, host, tiles, abort_after=abort_after):
            aborted += 1
            assert await _load(dut, host, tiles, abort_after=None)
        await _copy(host, tiles)
        for tile in tiles:
            where: dict[str, Any] = {"descriptor": tile.pointers[1], "source": tile.leaves}
            where["local"] = tile.number * _TILE_BYTES
            operation = TmaOperation.REDUCE if tile.adds else TmaOperation.STORE
            await host.submit(operation, tile.number, **where)
        groups = (await host.read("GROUPS"))["stored"]
        await host.submit(TmaOperation.COMMIT, 77)
        codes = await host.completions(TILES + 1)
        assert codes == dict.fromkeys([*range(TILES), 77], 0)
        assert (await host.read("GROUPS"))["stored"] == groups + 1
        for tile in tiles:
            tile.expected(image)
    assert aborted
    found = np.frombuffer(memory.read(0, TILE_MEMORY_BYTES), np.uint8)
    wrong = np.flatnonzero(found != image)
    assert not len(wrong), f"{len(wrong)} bytes differ, the first at {wrong[:1]}"


async def _copy(host: _Host, tiles: list[PassedTile]) -> None:
    """Copy tiles that leave from another scratchpad than one that they were loaded to."""
    copied = [tile for tile in tiles if tile.leaves != tile.source]
    for tile in copied:
        # A copy is of whole units of 16 bytes.
        size = ceil_div(tile.tensor.descriptor.box_bytes, 16) * 16
        local = tile.number * _TILE_BYTES
        where = {"destinations": 1 << tile.leaves, "source": tile.source, "local": local}
        await host.submit(TmaOperation.COPY, tile.number, descriptor=local, corner=[size], **where)
    codes = await host.completions(len(copied))
    assert codes == {tile.number: 0 for tile in copied}


@bench(limit_cycles=500_000)
@cocotb.parametrize(response=[RESP_SLVERR, RESP_DECERR])
async def error_responses_end_their_command(dut: Any, response: int) -> None:
    """A load, a store and a read of a descriptor that fail have their code; the next ones work."""
    memory = ReorderingMemory(dut, TILE_MEMORY_BYTES, stall=0.3)
    memory.start()
    monitor = _monitor()
    host = await _started(dut, monitor)
    slave = response == RESP_SLVERR
    read_error = TmaError.READ_SLVERR if slave else TmaError.READ_DECERR
    write_error = TmaError.WRITE_SLVERR if slave else TmaError.WRITE_DECERR
    tensor = Descriptor(base=0, format=ElementFormat.INT8, dims=(64, 4), strides=(64,), box=(64, 4))
    pointer, content = TILE_DESCRIPTORS, random_generator().bytes(tensor.box_bytes)
    memory.write(pointer, tensor.pack())
    memory.write(0, content)
    monitor.readable[: tensor.box_bytes] = monitor.writable[: tensor.box_bytes] = True
    for place, operation, code in (
        (pointer + 64, TmaOperation.LOAD, read_error),
        (128, TmaOperation.LOAD, read_error),
        (128, TmaOperation.STORE, write_error),
    ):
        for failing in (True, False):
            memory.errors[:] = [(place, place + 8, response)] if failing else []
            await host.submit(TmaOperation.INVALIDATE, 1, descriptor=pointer)
            await host.submit(operation, 2, descriptor=pointer)
            ended = await host.completions(2)
            assert ended == {1: 0, 2: code.value if failing else 0}
    assert memory.read(0, tensor.box_bytes) == content


@bench(limit_cycles=100_000)
async def registers_keep_what_is_written(dut: Any) -> None:
    """Every register of the map answers; those of plain fields keep what is written."""
    memory = ReorderingMemory(dut, TILE_MEMORY_BYTES)
    memory.start()
    host = await _started(dut, _monitor())
    await host.require_map(TMA_REGISTERS, random_generator())
