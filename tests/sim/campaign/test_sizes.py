"""Random sizes and schedules."""

import random

from hw.arch.config import named
from hw.numeric.formats import bf16
from sim.campaign.generators.random_sizes import random_schedule, random_sides
from sw.kernels.gemm import gemm
from sw.kernels.matmul import matmul
from sw.language.schedule import check_schedule

SMALL = named["small"]


def test_sides_are_spread_and_meet_the_edges(seed):
    rng = random.Random(seed)
    sides = [side for _ in range(300) for side in random_sides(rng, SMALL, 3)]
    assert min(sides) == 1 and 300 < max(sides) <= 1200
    for edge in (1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 255, 256, 257):
        assert edge in sides
    assert 0.2 < sum(side <= 17 for side in sides) / len(sides) < 0.8
    for _ in range(50):
        shorter, longer = sorted(random_sides(rng, SMALL, 2, most=6))
        assert 1 <= shorter <= longer <= (24 if shorter <= 2 else 6)


def test_schedules_name_what_the_program_has(seed):
    rng = random.Random(seed)
    met = set()
    for kernel in (matmul, gemm):
        program = kernel.trace(dtype=bf16, out=None, M=20, N=20, K=20)
        for _ in range(100):
            schedule = random_schedule(rng, program, SMALL)
            check_schedule(schedule, program)
            for name in ("tile", "row_par", "col_par", "slots"):
                met |= {(name, key) for key in getattr(schedule, name)}
            met |= {"beyond" for size in schedule.tile.values() if size > 300}
    assert {("tile", "i"), ("tile", "k"), ("row_par", "c"), ("slots", "a_tile"), "beyond"} <= met
