"""Flipped bits of images on RTL: a wrong checksum is refused, a right one agrees with the proof."""

import collections
import random

import pytest

from sim.campaign.kinds import KINDS
from sim.campaign.models import Models

_FLIPS = 12


@pytest.mark.slow
@pytest.mark.parametrize("signed", [False, True])
def test_no_flipped_bit_goes_by_unseen(signed, seed, heavy):
    rng, shared = random.Random(seed), random.Random(seed)
    fields = KINDS["bit"].draw(rng, shared)
    while fields["program"]["chip"] != "tiny":
        fields = KINDS["bit"].draw(rng, shared)
    outcomes = collections.Counter()
    with Models() as models:
        for _ in range(_FLIPS):
            case = {**fields, "bit": round(rng.random(), 6), "signed": signed}
            verdict = KINDS["bit"].judge(case, models)
            assert verdict.problems == (), case
            outcomes[verdict.outcome] += 1
    assert signed or set(outcomes) == {"refused"}
