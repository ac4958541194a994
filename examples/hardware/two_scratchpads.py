"""A TMA engine in an accelerator of one's own: two scratchpads, and C = A + B of int32 tiles.

The engine moves boxes between memory and streams of vectors. What stands at the streams is the
user's: here a scratchpad for each operand, and an adder.
"""

from typing import Any

import numpy as np
from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator
from axi_memory import AxiMemory

import tilewright as tw
from hw.arch.descriptor import STORED_WORDS
from hw.lib.axi import Axi4Signature
from hw.tma.descriptor_file import descriptor_write_layout
from hw.tma.engine import TmaEngine

WIDTH = 128
LANES = WIDTH // 32
ROWS, COLUMNS = 24, 40
#: A tile, and the vectors of it; tiles at the matrix's edges are ragged.
TILE_ROWS, TILE_COLUMNS = 8, 16
VECTORS = TILE_ROWS * TILE_COLUMNS // LANES
#: Addresses of the matrices in memory; also the number of each one's descriptor.
BASES = (0x0, 0x2000, 0x4000)


class TileAdder(wiring.Component):
    """Adder of matrices, tile by tile: loads two tiles, adds them and stores the sum."""

    i_descriptors: Any
    i_tiles: Any
    o_stored: Signal
    axi: Any

    def __init__(self) -> None:
        place = {"column": 32, "row": 32}
        super().__init__(
            {
                "i_descriptors": In(stream.Signature(descriptor_write_layout(len(BASES)))),
                "i_tiles": In(stream.Signature(data.StructLayout(place))),
                "o_stored": Out(1),
                "axi": Out(Axi4Signature(data_bits=WIDTH, address_bits=32)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.engine = engine = TmaEngine(
            width_bits=WIDTH,
            address_bits=32,
            descriptors=len(BASES),
            load_streams=2,
            store_streams=1,
        )
        wiring.connect(m, wiring.flipped(self.i_descriptors), engine.i_descriptor_write)
        wiring.connect(m, engine.axi, wiring.flipped(self.axi))
        m.d.comb += self.o_stored.eq(engine.o_stored)

        # A tile is three commands: two loads and a store, of descriptors 0, 1 and 2.
        ports = [*engine.i_load_commands, engine.i_store_commands[0]]
        given = Signal(len(ports))
        taken = [port.valid & port.ready for port in ports]
        for number, port in enumerate(ports):
            m.d.comb += [
                port.valid.eq(self.i_tiles.valid & ~given[number]),
                port.payload.descriptor.eq(number),
                port.payload.coordinates[0].eq(self.i_tiles.payload.column),
                port.payload.coordinates[1].eq(self.i_tiles.payload.row),
            ]
        m.d.comb += self.i_tiles.ready.eq((given | Cat(taken)).all())
        m.d.sync += given.eq((given | Cat(taken)) & ~self.i_tiles.ready.replicate(len(ports)))

        # Each load fills a scratchpad; the sums are read out when both are full.
        full, operands = Signal(2), []
        place, reading = Signal(range(VECTORS)), Signal()
        for number, loaded in enumerate(engine.o_loaded):
            m.submodules[f"pad{number}"] = pad = memory.Memory(shape=WIDTH, depth=VECTORS, init=[])
            write, read = pad.write_port(), pad.read_port(domain="comb")
            count = Signal(range(VECTORS))
            m.d.comb += [
                loaded.ready.eq(~full[number]),
                write.en.eq(loaded.valid & loaded.ready),
                write.addr.eq(count),
                write.data.eq(loaded.payload.data),
                read.addr.eq(place),
            ]
            with m.If(write.en):
                m.d.sync += [count.eq(count + 1), full[number].eq(loaded.payload.last)]
            operands.append(read.data)
        sums = engine.i_vectors[0]
        words = [[operand.word_select(n, 32) for n in range(LANES)] for operand in operands]
        m.d.comb += [
            reading.eq(full.all()),
            sums.valid.eq(reading),
            sums.payload.data.eq(Cat((a + b)[:32] for a, b in zip(*words))),
        ]
        with m.If(reading & sums.ready):
            m.d.sync += place.eq(place + 1)
            with m.If(place == VECTORS - 1):
                m.d.sync += full.eq(0)
        return m


def main() -> None:
    """Add two matrices whose edges are no multiples of a tile."""
    rng = np.random.default_rng(2)
    operands = rng.integers(-(2**31), 2**31, (2, ROWS - 3, COLUMNS - 4), np.int64).astype(np.int32)
    content = np.zeros(0x6000, np.uint8)
    for base, operand in zip(BASES, operands):
        content[base : base + operand.size * 4] = operand.reshape(-1).view(np.uint8)
    maps = [
        tw.TensorMap.encode(
            tensor_data_type="INT32",
            global_address=base,
            global_dim=operands.shape[:0:-1],
            global_strides=(operands.shape[2] * 4,),
            box_dim=(TILE_COLUMNS, TILE_ROWS),
        )
        for base in BASES
    ]
    corners = [(c, r) for r in range(0, ROWS, TILE_ROWS) for c in range(0, COLUMNS, TILE_COLUMNS)]
    adder = TileAdder()

    async def host(ctx: Any) -> None:
        for index, one in enumerate(maps):
            words = np.frombuffer(bytes(one), np.uint64)[:STORED_WORDS]
            ctx.set(adder.i_descriptors.payload, {"index": index, "words": list(map(int, words))})
            ctx.set(adder.i_descriptors.valid, 1)
            await ctx.tick()
        ctx.set(adder.i_descriptors.valid, 0)
        for column, row in corners:
            ctx.set(adder.i_tiles.payload, {"column": column, "row": row})
            ctx.set(adder.i_tiles.valid, 1)
            await ctx.tick().until(adder.i_tiles.ready)
        ctx.set(adder.i_tiles.valid, 0)

    async def count(ctx: Any) -> None:
        cycles = 0
        for _ in corners:
            stored = 0
            while not stored:
                *_, stored = await ctx.tick().sample(adder.o_stored)
                cycles += 1
        print(f"{len(corners)} tiles in {cycles:,} cycles")

    simulator = Simulator(adder)
    simulator.add_clock(1e-9)
    simulator.add_testbench(AxiMemory(adder.axi, content).run, background=True)
    simulator.add_testbench(host)
    simulator.add_testbench(count)
    simulator.run()
    found = content[BASES[2] :][: operands[0].nbytes].view(np.int32).reshape(operands[0].shape)
    print("equal to numpy:", np.array_equal(found, operands[0] + operands[1]))
    print("bytes after the sum unchanged:", not content[BASES[2] + operands[0].nbytes :].any())


if __name__ == "__main__":
    main()
