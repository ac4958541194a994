"""pipe-h, programs: random source text on random chips: definition = golden = emulator = RTL.

The definition executes the same text by numpy and imports nothing of the project
(`tests/sw/sources/eager_language.py`).
"""

import collections
import random

import pytest

from hw.arch.config import named
from sim.campaign.case import line
from sim.campaign.generators.chips import random_chip
from tests.sw.sources.random_sources import draw_source
from tests.sw.sources.source_cases import judge_source

BATCHES, PROGRAMS, RTL_PROGRAMS = 8, 50, 8
#: Programs drawn for each one that is not refused.
MOST_DRAWN = 6
GOAL = (
    "400 random programs as source text on random chips, 64 on RTL: equal by bytes to a definition"
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


def chip_of_batch(draw):
    """`small`, `tiny`, or in one of three cases a chip of any parameters.

    Without lanes nearly every program is refused, so such a chip is drawn again, once.
    """
    if draw.random() < 0.33:
        first, second = (random_chip(draw, most_tiles=12, most_cells=512) for _ in range(2))
        return first if first.pcu.lanes else second
    return named[draw.choice(("small", "small", "tiny"))]


@pytest.mark.must("pipe-h", goal=GOAL)
@pytest.mark.parametrize("batch", range(BATCHES))
def test_random_programs_equal_their_definition(batch, seed, heavy, figure):
    draw = random.Random(seed)
    outcomes, counts, chips = collections.Counter(), collections.Counter(), set()
    while outcomes["right"] < PROGRAMS:
        fields = draw_source(draw, chip_of_batch(draw))
        rtl = counts["rtl"] < RTL_PROGRAMS and isinstance(fields["chip"], str)
        verdict = judge_source(fields, rtl=rtl)
        assert not verdict.problems, (verdict.problems, line(fields))
        outcomes[verdict.outcome] += 1
        counts.update(verdict.counts)
        if verdict.outcome == "right":
            chips.add(line({"chip": fields["chip"]}))
        assert sum(outcomes.values()) < MOST_DRAWN * PROGRAMS, outcomes
    assert counts["rtl"] == RTL_PROGRAMS
    assert len(chips) >= 5
    several = PROGRAMS - counts["parts 1"]
    figure(
        f"{PROGRAMS} programs on {len(chips)} chips, {several} of several parts, "
        f"{counts['rtl']} on RTL, {outcomes['refused']} refused"
    )
