"""An AGCU with a memory: rows that indices name are gathered and scattered, no others touched."""

import random

import numpy as np
import pytest

from hw.agcu.unit import Agcu
from hw.arch.agcu import AgcuProgram
from hw.arch.boxes.issuer_program import IssuerProgram
from hw.arch.descriptor import Descriptor, ElementFormat
from hw.arch.error_codes import UnitError
from hw.arch.loops import BoxLoop
from tests.hw.lib.checked_port import CheckedPort
from tests.hw.reused_simulator import Simulation
from tests.hw.tma.memory import AxiMemory

ROWS, ELEMENTS, BEATS = 20, 12, 3
TABLE = 0x1000
SIZE = 32 * ROWS
DESCRIPTOR = Descriptor(
    base=0,
    format=ElementFormat.INT16,
    dims=(ELEMENTS, ROWS),
    strides=(32,),
    box=(ELEMENTS, 1),
)


def _checked_agcu():
    agcu = Agcu(width_bits=64, axi_address_bits=32, landing_beats=16, outstanding=4, token_tracks=1)
    return CheckedPort(agcu, agcu.axi, outstanding=4)


class Bench:
    """An AGCU with one table, whose rows take three beats of 64 bits."""

    def __init__(self, program, seed, stall):
        self.rng = random.Random(seed)
        self.simulator = Simulation(_checked_agcu)
        self.agcu = self.simulator.design.design
        self.data = np.frombuffer(bytearray(self.rng.randbytes(TABLE + SIZE + 64)), np.uint8)
        table = [(TABLE, TABLE + SIZE)]
        axi = self.agcu.axi
        self.memory = AxiMemory(
            axi, self.data, self.rng, stall=stall, jitter=9, readable=table, writable=table
        )
        self.program, self.stall = program, stall

    def run(self, indices, rows=()):
        """Run the program; the vectors that were loaded, and the error."""
        agcu, loaded = self.agcu, []
        sent = {0: indices.view("<u8").tolist(), 1: list(rows)}

        def sender(port):
            async def send(ctx):
                for vector in sent[port]:
                    while self.rng.random() < self.stall:
                        await ctx.tick()
                    ctx.set(agcu.i_store[port].payload.data, vector)
                    ctx.set(agcu.i_store[port].valid, 1)
                    await ctx.tick().until(agcu.i_store[port].ready)
                    ctx.set(agcu.i_store[port].valid, 0)

            return send

        async def take(ctx):
            port = agcu.o_load[0]
            while True:
                ready = self.rng.random() >= self.stall
                ctx.set(port.ready, ready)
                moves, payload = (await ctx.tick().sample(port.valid, port.payload))[2:]
                if moves and ready:
                    loaded.append(int(payload.data))

        async def control(ctx):
            ctx.set(agcu.config.as_value(), self.program.pack(1))
            ctx.set(agcu.i_argument_valid, 1)
            ctx.set(agcu.i_argument.value, TABLE)
            await ctx.tick()
            ctx.set(agcu.i_argument_valid, 0)
            ctx.set(agcu.i_start, 1)
            await ctx.tick()
            ctx.set(agcu.i_start, 0)
            await ctx.tick().until(agcu.o_done)
            self.error = ctx.get(agcu.o_error)

        simulator = self.simulator
        for actor in (self.memory.run, take, sender(0), sender(1)):
            simulator.add_testbench(actor, background=True)
        simulator.add_testbench(control)
        simulator.run()
        return loaded

    def row(self, index):
        """Vectors of a row in memory; zeros if there is no such row."""
        if not 0 <= index < ROWS:
            return [0] * BEATS
        at = TABLE + 32 * index
        return np.frombuffer(self.data[at : at + 8 * BEATS].tobytes(), "<u8").tolist()


def _indices(rng, count, *, outside):
    """Indices of which some are out of range, in vectors of two."""
    found = [rng.randrange(ROWS) for _ in range(count)]
    if outside:
        for index in (ROWS, -1, 1 << 30, -(1 << 31)):
            found[rng.randrange(count)] = index
    return np.array(found, "<i4")


@pytest.mark.few(2)
@pytest.mark.parametrize("stall", [0.0, 0.4])
@pytest.mark.parametrize("outside", [False, True])
def test_rows_are_gathered_in_the_order_of_their_indices(outside, stall, seed):
    """Two programs of 7 and of 6 rows: the first one leaves an index of its last vector."""
    rng = random.Random(seed)
    first, second = (IssuerProgram(0, (BoxLoop(count),), index=1) for count in (7, 6))
    program = AgcuProgram(
        loads=(IssuerProgram(0, first.loops, index=1, following=(second,)),),
        descriptors=((DESCRIPTOR, 0),),
    )
    bench = Bench(program, seed, stall)
    indices = _indices(rng, 14, outside=outside)
    wanted = [vector for at in (*range(7), *range(8, 14)) for vector in bench.row(indices[at])]
    assert bench.run(indices) == wanted
    used = np.delete(indices, 7)
    reported = ((used < 0) | (used >= ROWS)).any()
    assert bench.error == (UnitError.INDEX if reported else 0)


@pytest.mark.few(2)
@pytest.mark.parametrize("stall", [0.0, 0.4])
@pytest.mark.parametrize("outside", [False, True])
def test_rows_are_scattered_in_the_order_of_their_indices(outside, stall, seed):
    """Of two rows with one index the later one stays; the bytes between rows are kept."""
    rng = random.Random(seed)
    program = AgcuProgram(
        stores=(None, IssuerProgram(0, (BoxLoop(30),), index=1)), descriptors=((DESCRIPTOR, 0),)
    )
    bench = Bench(program, seed, stall)
    indices = _indices(rng, 30, outside=outside)
    rows = [rng.getrandbits(64) for _ in range(30 * BEATS)]
    wanted = bytearray(bench.data.tobytes())
    for number, index in enumerate(indices.tolist()):
        if 0 <= index < ROWS:
            words = np.array(rows[BEATS * number :][:BEATS], "<u8").tobytes()
            wanted[TABLE + 32 * index : TABLE + 32 * index + 8 * BEATS] = words
    assert bench.run(indices, rows) == []
    assert bench.data.tobytes() == wanted
    assert bench.error == (UnitError.INDEX if outside else 0)
