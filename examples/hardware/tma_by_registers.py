"""A TMA unit driven by its registers: tiles in flight, completions, interrupt, error and abort.

The unit is Amaranth HDL, simulated by Amaranth; `tilewright verilog --component tma_top` emits it.
docs/tma_unit.md has its registers.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from amaranth.sim import Simulator
from axi_memory import AxiMemory

import tilewright as tw
from hw.arch.error_codes import TmaError
from hw.arch.registers.tma_registers import tma_register
from hw.arch.tma_sizes import TmaSizes
from hw.tma.host_port.tma_top import TmaTop
from hw.tma.standalone.unit_commands import TmaOperation

#: Addresses in memory: the two descriptors, the source and the target of the tiles.
LOAD_FROM, STORE_TO, SOURCE, TARGET = 0x0, 0x80, 0x1000, 0x3000
TILES, TILE_ROWS, COLUMNS = 4, 8, 32
TILE_BYTES = TILE_ROWS * COLUMNS * 4


class Host:
    """Registers of the unit by name, through AXI4-Lite."""

    def __init__(self, ctx: Any, unit: TmaTop) -> None:
        self.ctx, self.port, self.interrupt = ctx, unit.host, unit.o_interrupt

    async def write(self, name: str, **fields: int) -> None:
        """Write the fields of a register, the others as 0."""
        ctx, port, register = self.ctx, self.port, tma_register(name)
        ctx.set(port.awaddr, register.offset)
        ctx.set(port.wdata, register.word(**fields))
        ctx.set(port.wstrb, 0xF)
        for valid in (port.awvalid, port.wvalid, port.bready):
            ctx.set(valid, 1)
        await ctx.tick().until(port.awready & port.wready)
        ctx.set(port.awvalid, 0)
        ctx.set(port.wvalid, 0)
        (response,) = await ctx.tick().sample(port.bresp).until(port.bvalid)
        if response:
            raise RuntimeError(f"the unit refuses a write of {name}")

    async def read(self, name: str) -> dict[str, int]:
        """Fields of a register."""
        ctx, port, register = self.ctx, self.port, tma_register(name)
        ctx.set(port.araddr, register.offset)
        ctx.set(port.arvalid, 1)
        ctx.set(port.rready, 1)
        await ctx.tick().until(port.arready)
        ctx.set(port.arvalid, 0)
        (word,) = await ctx.tick().sample(port.rdata).until(port.rvalid)
        return register.values(word)

    async def submit(
        self, operation: TmaOperation, id: int, descriptor: int = 0, row: int = 0, local: int = 0
    ) -> None:
        """Give a command for the tile that begins at a row."""
        await self.write("DESCRIPTOR_LO", value=descriptor)
        await self.write("COORDINATE_1", value=row)
        await self.write("LOCAL", value=local)
        await self.write("SUBMIT", operation=operation.value, id=id)

    async def interrupted(self) -> dict[str, int]:
        """Wait for the interrupt, clear its causes and return them."""
        await self.ctx.tick().until(self.interrupt)
        causes = await self.read("INTERRUPT_STATUS")
        await self.write("INTERRUPT_STATUS", **causes)
        return causes

    async def completions(self, count: int) -> list[tuple[int, str]]:
        """Identifiers and codes of so many completions, which may be still to come."""
        found: list[tuple[int, str]] = []
        while len(found) < count:
            end = await self.read("COMPLETION")
            if end["valid"]:
                found.append((end["id"], TmaError(end["code"]).name))
        return found


def descriptor(base: int) -> bytes:
    """Descriptor of a matrix at an address, moved by tiles of whole rows."""
    return bytes(
        tw.TensorMap.encode(
            tensor_data_type="FLOAT32",
            global_address=base,
            global_dim=(COLUMNS, TILES * TILE_ROWS),
            global_strides=(COLUMNS * 4,),
            box_dim=(COLUMNS, TILE_ROWS),
        )
    )


def session(unit: TmaTop, log: Callable[[str], None]) -> Callable[[Any], Any]:
    """What the host does, as a testbench."""

    async def work(ctx: Any) -> None:
        host = Host(ctx, unit)
        load, store = TmaOperation.LOAD, TmaOperation.STORE
        await host.write("INTERRUPT_ENABLE", done=1, error=1)
        for tile in range(TILES):
            await host.submit(load, tile, LOAD_FROM, tile * TILE_ROWS, tile * TILE_BYTES)
        log(f"idle while tiles are in flight: {(await host.read('STATUS'))['idle']}")
        log(f"interrupt: {await host.interrupted()}")
        log(f"loads: {await host.completions(TILES)}")
        for tile in range(TILES):
            row = (TILES - 1 - tile) * TILE_ROWS
            await host.submit(store, 10 + tile, STORE_TO, row, tile * TILE_BYTES)
        log(f"stores: {await host.completions(TILES)}")
        await host.write("INTERRUPT_STATUS", done=1)
        await host.submit(load, 20, LOAD_FROM + 8)
        log(f"interrupt: {await host.interrupted()}")
        log(f"misplaced descriptor: {await host.completions(1)}")
        for tile in range(TILES):
            await host.submit(load, 30 + tile, LOAD_FROM, tile * TILE_ROWS)
        await host.write("CONTROL", abort=1)
        log(f"aborted: {await host.completions(TILES)}")
        while (await host.read("STATUS"))["aborting"]:
            pass
        await host.submit(load, 40, LOAD_FROM)
        log(f"after the abort: {await host.completions(1)}")

    return work


def main() -> None:
    """Move four tiles to memory in reverse order, then provoke an error and an abort."""
    data = np.zeros(0x5000, np.uint8)
    data[LOAD_FROM : LOAD_FROM + 128] = np.frombuffer(descriptor(SOURCE), np.uint8)
    data[STORE_TO : STORE_TO + 128] = np.frombuffer(descriptor(TARGET), np.uint8)
    tiles = np.random.default_rng(1).integers(0, 256, (TILES, TILE_BYTES), np.uint8)
    data[SOURCE : SOURCE + tiles.size] = tiles.reshape(-1)
    unit = TmaTop(TmaSizes(width_bits=128, scratchpad_bytes=8192), commands=8)
    simulator = Simulator(unit)
    simulator.add_clock(1e-9)
    simulator.add_testbench(AxiMemory(unit.axi, data, latency=200).run, background=True)
    simulator.add_testbench(session(unit, print))
    simulator.run()
    stored = data[TARGET : TARGET + tiles.size].reshape(tiles.shape)
    print("equal to numpy:", np.array_equal(stored, tiles[::-1]))


if __name__ == "__main__":
    main()
