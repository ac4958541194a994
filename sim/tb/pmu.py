"""PMU: slots read by rows, pieces and columns, gathered and scattered by indices: numpy's."""

from typing import Any

import cocotb
from cocotb.triggers import with_timeout

from hw.pmu.unit import Pmu
from sim.cocotb.bench_support import (
    PERIOD_NS,
    Sink,
    Source,
    bench,
    clocks,
    random_generator,
    start,
)
from sim.cocotb.unit_choice import asked_pmu
from sim.drivers.pmu_case import PmuCase, PmuSizes, Vectors, matrix_case
from sim.drivers.pmu_index_case import gather_case, scatter_case

__all__ = ["design", "random_programs_are_numpys"]

#: Those of the PMUs of `tiny`.
_SIZES = PmuSizes(64, 4096, 16)
_PROGRAMS = 40
_KINDS = {"matrices": matrix_case, "gather": gather_case, "scatter": scatter_case}


def design() -> Pmu:
    """The pattern memory unit under test."""
    return Pmu(**_SIZES._asdict())


def _integers(vectors: Vectors) -> list[int]:
    return [int.from_bytes(payload.tobytes(), "little") for payload in vectors.words]


async def _run(dut: Any, sizes: PmuSizes, case: PmuCase, stall: float) -> None:
    """Clear the unit and run a case: all that leaves is numpy's, and nothing follows."""
    sources = [Source(dut, f"i_stream__{index}", stall=stall) for index in range(2)]
    sinks = [Sink(dut, f"o_stream__{index}", stall=stall) for index in range(2)]
    tokens = [Sink(dut, f"o_token__{index}", stall=stall) for index in range(2)]
    config = case.program.pack(**sizes._asdict())
    await start(dut, config=config, i_last_iteration=0, i_clear=1, i_run=0)
    await clocks(dut, 1)
    dut.i_clear.value, dut.i_run.value = 0, 1
    for source, vectors in zip(sources, case.inputs):
        cocotb.start_soon(source.send(_integers(vectors)))
    reported = [cocotb.start_soon(sink.take(number)) for sink, number in zip(tokens, case.tokens)]
    taking = [
        cocotb.start_soon(sink.take(len(vectors.last)))
        for sink, vectors in zip(sinks, case.outputs)
    ]
    for index, task in enumerate(taking):
        assert await task == _integers(case.outputs[index]), f"R{index} of {case.program}"
    for task in reported:
        await task
    silent = [cocotb.start_soon(sink.expect_silence(20)) for sink in [*sinks, *tokens]]
    for quiet in silent:
        await quiet
    assert int(dut.o_done.value) == 15
    assert int(dut.o_error.value) == case.error


@bench(limit_cycles=2_000_000)
@cocotb.parametrize(kind=list(_KINDS), stall=[0.0, 0.3, 0.8])
async def random_programs_are_numpys(dut: Any, kind: str, stall: float) -> None:
    """Packets of other units between those of the program, pauses on every stream."""
    sizes, count = asked_pmu() or (_SIZES, _PROGRAMS)
    rng = random_generator()
    for _ in range(count):
        case = _KINDS[kind](rng, sizes)
        # A program that stops must not take the cycles of all.
        moved = sum(len(each.last) for each in (*case.inputs, *case.outputs))
        limit = PERIOD_NS * (1_000 + 20 * moved)
        await with_timeout(_run(dut, sizes, case, stall), limit, "ns")
