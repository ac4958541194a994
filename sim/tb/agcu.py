"""AGCU: random lists of box nests, loaded, stored, gathered and scattered in a stalling memory."""

from typing import Any

import cocotb
import numpy as np
from amaranth.hdl import Const
from cocotb.triggers import with_timeout

from hw.agcu.unit import Agcu
from hw.arch.agcu import AGCU_STREAMS
from hw.arch.limits import MAX_CREDITS
from hw.command.argument_reader import argument_write_layout
from sim.cocotb.bench_support import (
    PERIOD_NS,
    Sink,
    Source,
    bench,
    clocks,
    random_generator,
    start,
)
from sim.cocotb.stalled_channels import stalled_memory
from sim.cocotb.unit_choice import asked_agcu
from sim.drivers.agcu_case import MEMORY_BYTES, AgcuCase, AgcuSizes, random_case

__all__ = ["design", "random_programs_are_numpys"]

_SIZES = AgcuSizes(64, 32, 32, 4, 2)
_PROGRAMS = 12


def design() -> Agcu:
    """The AGCU under test."""
    return Agcu(**_SIZES._asdict())


class _Bench:
    """Streams, tokens and memory around one AGCU."""

    def __init__(self, dut: Any, sizes: AgcuSizes, stall: float) -> None:
        self.dut, self.stall = dut, stall
        self.memory = stalled_memory(dut, MEMORY_BYTES, stall)
        ports = range(sizes.token_tracks)
        self.inputs = [Source(dut, f"i_store__{n}", stall=stall) for n in range(AGCU_STREAMS)]
        self.loads = [Sink(dut, f"o_load__{n}", stall=stall) for n in range(AGCU_STREAMS)]
        self.tokens = [Source(dut, f"i_token__{n}", stall=stall) for n in ports]
        self.reports = [Sink(dut, f"o_token__{n}", stall=stall) for n in ports[:AGCU_STREAMS]]

    async def launch(self, case: AgcuCase, token_tracks: int) -> None:
        """Write the arguments, and start the program; returns a cycle after its start."""
        dut, layout = self.dut, argument_write_layout()
        dut.config.value = case.program.pack(token_tracks)
        dut.i_last_iteration.value = case.iterations - 1
        for number, argument in enumerate(case.arguments):
            fields: dict[int | str, Any] = {"index": number}
            fields |= {"value": argument.value, "stride": argument.stride}
            dut.i_argument.value = Const.cast(layout.const(fields)).value
            dut.i_argument_valid.value = 1
            await clocks(dut, 1)
        dut.i_argument_valid.value = 0
        dut.i_start.value = 1
        await clocks(dut, 1)
        dut.i_start.value = 0

    async def run(self, case: AgcuCase, sizes: AgcuSizes) -> None:
        """Reset the unit and run a case: all that leaves is numpy's, and nothing follows."""
        dut = self.dut
        dut.rst.value = 1
        await clocks(dut, 3)
        dut.rst.value = 0
        self.memory.write(0, case.memory.tobytes())
        await self.launch(case, sizes.token_tracks)
        sending = [
            cocotb.start_soon(source.send(payloads))
            for source, payloads in zip(
                [*self.inputs, *self.tokens], [*case.inputs, *([0] * n for n in case.given)]
            )
        ]
        sinks = [*self.loads, *self.reports]
        counts = [*(len(vectors) for vectors in case.outputs), *case.reported]
        taking = [cocotb.start_soon(sink.take(n)) for sink, n in zip(sinks, counts)]
        for number, vectors in enumerate(case.outputs):
            got = await taking[number]
            assert got == vectors, f"load {number} of {case.program}"
        for taken in taking[AGCU_STREAMS:]:
            await taken
        for sent in sending:
            await sent
        while not int(dut.o_done.value):
            await clocks(dut, 1)
        for quiet in [cocotb.start_soon(sink.expect_silence(20)) for sink in sinks]:
            await quiet
        assert int(dut.o_done.value) == int(dut.o_idle.value) == 1
        assert int(dut.o_error.value) == case.error, case.program
        memory = np.frombuffer(self.memory.read(0, MEMORY_BYTES), np.uint8)
        wrong = np.flatnonzero(memory != case.expected)
        assert not len(wrong), f"{len(wrong)} bytes differ, the first at {wrong[:1]}"
        for source in self.tokens:
            await self._require_all_taken(source)

    async def _require_all_taken(self, source: Source) -> None:
        """Check that commands took every token: so many more than a port counts find room."""
        before = source.sent
        filling = cocotb.start_soon(source.send([0] * (MAX_CREDITS + 1)))
        await clocks(self.dut, MAX_CREDITS + 10)
        filling.cancel()
        assert self.stall or source.sent - before == MAX_CREDITS, "tokens left or too many taken"


@bench(limit_cycles=20_000_000)
@cocotb.parametrize(stall=[0.0, 0.3, 0.8])
async def random_programs_are_numpys(dut: Any, stall: float) -> None:
    """Vectors, tokens and memory after random programs, with up to four streams at once."""
    sizes, count = asked_agcu() or (_SIZES, _PROGRAMS)
    rng = random_generator()
    test = _Bench(dut, sizes, stall)
    await start(dut, i_drain=0, i_start=0, i_argument_valid=0, i_run=1, i_counter=0)
    for _ in range(count):
        case = random_case(rng, sizes)
        moved = sum(map(len, [*case.inputs, *case.outputs])) + sum(case.given)
        # A program that stops must not take the cycles of all.
        await with_timeout(test.run(case, sizes), PERIOD_NS * (10_000 + 100 * moved), "ns")
