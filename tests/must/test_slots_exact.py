"""pipe-i: compiled kernels with one slot fewer than they need are refused, and hang on the RTL."""

import dataclasses

import numpy as np
import pytest

from hw.arch.config import named
from hw.arch.errors import BadInputError
from hw.arch.pmu import PmuProgram
from hw.numeric.formats import bf16
from sim.run.driver import compile_job, run
from sim.run.endings import HangError
from sim.run.job import Job, Problem
from sw.prove import prove
from tests.sw.kernels.test_golden_kernels import KERNELS

TINY = named["tiny"]
#: Kernels whose slots a barrier keeps, whatever the order of boxes, and the side of each.
SIDES = {
    "matmul": (32, 36, 40, 44, 48, 52, 56, 60),
    "linear_gelu": (32, 36, 40, 48),
    "attention": (24, 32, 36, 40),
}
#: Kernels of random sizes that are live, and how many of each a part draws.
LIVE = ("matmul", "linear_gelu", "softmax", "rms_norm", "add")
EACH, PARTS, MOST = 4, 5, 40
GOAL = "16 programs live at depth d, refused at d - 1, a named hang in RTL; 100 live ones end"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def with_slots(program, at, buffer, count):
    """A program whose buffer has another number of slots."""
    tile = program.tiles[at]

    def changed(engine):
        if engine is None or engine.ring.buffer != buffer:
            return engine
        return dataclasses.replace(engine, ring=dataclasses.replace(engine.ring, count=count))

    unit = dataclasses.replace(
        tile.unit,
        writers=tuple(map(changed, tile.unit.writers)),
        readers=tuple(map(changed, tile.unit.readers)),
    )
    return dataclasses.replace(
        program, tiles={**program.tiles, at: dataclasses.replace(tile, unit=unit)}
    )


def buffers_of(program):
    """Position, buffer and slots of each buffer with two slots or more."""
    for at, tile in program.tiles.items():
        if isinstance(tile.unit, PmuProgram):
            engines = [engine for engine in tile.unit.engines if engine is not None]
            slots = {engine.ring.buffer: engine.ring.count for engine in engines}
            yield from ((at, buffer, count) for buffer, count in slots.items() if count > 1)


def boundary(program):
    """The live program with the fewest slots in one buffer, the refused one below it, and s."""
    for at, buffer, slots in buffers_of(program):
        live = program
        for count in range(slots - 1, 0, -1):
            try:
                fewer = with_slots(program, at, buffer, count)
            except BadInputError:
                break  # a window that is read again must fit in the ring
            answer = prove(fewer)
            if answer.waits:
                return live, fewer, count + 1, answer.early
            live = fewer
    return None


def job_of(name, dims, seed):
    problem = Problem(kernel=KERNELS[name], config=TINY, dims=dims, dtype=bf16)
    return Job(problem, backend="rtl", seed=seed % 1000)


@pytest.mark.must("pipe-i", goal=GOAL)
@pytest.mark.parametrize(
    ("name", "side"), [(name, side) for name, sides in SIDES.items() for side in sides]
)
def test_one_slot_fewer_hangs(name, side, seed, heavy, figure):
    """The part with the boundary ends or hangs in its launch list, as the proof says."""
    dims = {dim: {"H": 2, "G": 1}.get(dim, side) for dim in KERNELS[name].signature.dims}
    job = job_of(name, dims, seed)
    compiled, fields = compile_job(job)
    found = ((number, boundary(part.chip)) for number, part in enumerate(compiled.parts))
    number, (live, fewer, depth, early) = next((n, each) for n, each in found if each)

    def launched(program):
        part = dataclasses.replace(compiled.parts[number], chip=program, image=program.pack())
        parts = (*compiled.parts[:number], part, *compiled.parts[number + 1 :])
        return run(job, dataclasses.replace(compiled, parts=parts), fields)

    assert prove(live).live and launched(live).report["verified"]
    with pytest.raises(HangError, match=r"pmu_\d_\d waits for .*barrier .* of slot") as caught:
        launched(fewer)
    named_unit = str(caught.value).partition("; ")[2][:60]
    figure(f"{name} {side}: d = {depth}, s = {early}: {named_unit}")


@pytest.mark.must("pipe-i", goal=GOAL)
@pytest.mark.parametrize("part", range(PARTS))
def test_live_programs_are_accepted_and_end(part, seed, heavy, figure):
    """Kernels of random sizes: every image is proved live, ends in RTL, and is golden's."""
    rng = np.random.default_rng((seed, part))
    for name in LIVE * EACH:
        dims = {dim: int(rng.integers(1, MOST + 1)) for dim in KERNELS[name].signature.dims}
        job = job_of(name, dims, int(rng.integers(1000)))
        compiled, fields = compile_job(job)
        assert all(prove(each.chip).live for each in compiled.parts), dims
        assert run(job, compiled, fields).report["verified"], (name, dims)
    figure(f"{len(LIVE) * EACH} live programs end")
