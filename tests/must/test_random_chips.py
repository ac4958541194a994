"""edge-c, chips: random chips, sizes and schedules give the right bytes or a clear refusal."""

import collections

import pytest

from sim.campaign.case import command, generator
from sim.campaign.generators.chips import random_chip
from sim.campaign.generators.programs import random_program
from sim.campaign.kinds import judge

GOAL = "1,500 random chips × sizes × schedules verified or refused with value and rule, no fault"


def _outcomes(seed, chips, *, most_tiles, sides):
    """Cases by outcome, one program on each chip; a case with a problem fails with its command."""
    outcomes = collections.Counter()
    for number in range(chips):
        rng = generator(seed, "edge-c", number)
        chip = random_chip(rng, most_tiles=most_tiles)
        program = random_program(rng, chip, most=rng.choice(sides), launches=False)
        fields = {"kind": "chip", **program}
        verdict = judge(fields, None)
        assert not verdict.problems, f"{verdict.problems}; {command(fields)} --emulator"
        outcomes[verdict.outcome] += 1
    return outcomes


@pytest.mark.must("edge-c", goal=GOAL)
def test_some_random_chips_are_verified_or_refused(seed, figure, draws):
    chips = draws(20, 60)
    outcomes = _outcomes(seed, chips, most_tiles=16, sides=(8, 30, 60))
    figure(f"{chips} chips: {outcomes['right']} verified, {outcomes['refused']} refused")
    assert outcomes["right"] >= chips // 10
    assert outcomes["right"] + outcomes["refused"] == chips


@pytest.mark.slow
@pytest.mark.timeout(5400)
@pytest.mark.must("edge-c", goal=GOAL)
def test_many_random_chips_are_verified_or_refused(seed, figure):
    outcomes = _outcomes(seed, 1500, most_tiles=256, sides=(12, 60, 200))
    figure(f"1,500 chips: {outcomes['right']} verified, {outcomes['refused']} refused")
    assert outcomes["right"] >= 150
    assert outcomes["right"] + outcomes["refused"] == 1500
