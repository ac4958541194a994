"""pipe-h, faults: faults planted in the compiler are found by random programs, and shrunk.

Each is found within 200 programs on the emulator. The program is reduced as long as it fails in the
same way with the fault and is right without it.
"""

import functools
import random

import pytest

from hw.arch.config import named
from sim.campaign.case import Verdict, line
from sim.campaign.shrink import shrink
from tests.sw.sources.planted_faults import FAULTS
from tests.sw.sources.random_sources import draw_source
from tests.sw.sources.source_cases import judge_source
from tests.sw.sources.source_reduction import smaller_source

PROGRAMS, LINES = 200, 8
TRIES, SECONDS = 400, 300
GOAL = "faults planted before and behind golden's form: each found in 200 programs, in 8 lines"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def judge_with(plant, fields):
    """Verdict with a fault; a program that fails without it proves nothing and counts as right."""
    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        verdict = judge_source(fields)
    if verdict.problems and judge_source(fields).outcome != "right":
        return Verdict("right")
    return verdict


def first_found(draw, judge):
    """The first program that fails: its number, fields and verdict."""
    for number in range(1, PROGRAMS + 1):
        fields = draw_source(draw, named[draw.choice(("small", "small", "tiny"))])
        verdict = judge(fields)
        if verdict.problems:
            return number, fields, verdict
    return None, None, None


@pytest.mark.must("pipe-h", goal=GOAL)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_and_shrunk(fault, seed, figure):
    judge = functools.partial(judge_with, FAULTS[fault])
    number, fields, verdict = first_found(random.Random(seed), judge)
    assert number is not None, f"{fault}: not found in {PROGRAMS} programs"
    small, found = shrink(fields, verdict, judge, smaller_source, tries=TRIES, seconds=SECONDS)
    lines = len(small["lines"])
    assert lines <= LINES, (found.problems, line(small))
    figure(f"{fault}: program {number}, {lines} lines: {found.problems[0][:60]}")
