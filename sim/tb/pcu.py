"""PCU with lanes: random products, lane programs and parts of fused softmax, equal to numpy."""

from typing import Any

import cocotb

from hw.arch.config import AgcuConfig, ChipConfig, PcuConfig
from hw.pcu.unit import Pcu
from sim.cocotb.bench_support import Sink, Source, bench, clocks, random_generator, start
from sim.cocotb.unit_choice import asked_pcu
from sim.drivers.pcu_case import random_case
from sim.drivers.products import stream_values

__all__ = ["design", "random_programs_are_numpys"]

_PROGRAMS = 60
_CHIP = ChipConfig(
    rows=2,
    columns=2,
    width_bits=64,
    pcu=PcuConfig(accumulator_rows=16),
    agcu=AgcuConfig(count=1),
)


def design() -> Pcu:
    """The compute unit under test."""
    return Pcu(width_bits=_CHIP.width_bits, config=_CHIP.pcu)


@bench(limit_cycles=2_000_000)
async def random_programs_are_numpys(dut: Any) -> None:
    """Every kind of program, packets of other units between, stalls from none to most of the time.

    Each begins with a clear of the lanes and of the filters.
    """
    chip, count = asked_pcu() or (_CHIP, _PROGRAMS)
    rng = random_generator()
    for _ in range(count):
        case = random_case(rng, chip)
        stalls = rng.choice([0.0, 0.3, 0.7], 4)
        sources = {
            name: Source(dut, f"i_{name}", stall=stall)
            for name, stall in zip(("activation", "weight", "auxiliary"), stalls[1:])
        }
        sink = Sink(dut, "o_result", stall=stalls[0])
        config = case.program.pack(chip.pcu.lanes)
        await start(dut, config=config, i_clear=1, i_run=0, i_counter=4)
        await clocks(dut, 1)
        dut.i_clear.value, dut.i_run.value = 0, 1
        sending = [
            cocotb.start_soon(sources[port.name.lower()].send(stream_values(words)))
            for port, words in case.streams.items()
        ]
        got = await sink.take(len(case.results))
        assert got == stream_values(case.results), case.program
        for task in sending:
            await task
        await sink.expect_silence(40)
