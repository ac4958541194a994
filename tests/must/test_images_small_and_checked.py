"""unit-l: a short launch, a small image, and no flipped bit of an image that goes by unseen."""

import collections
import random

import pytest

from sim.campaign.kinds import KINDS
from sim.campaign.models import Models
from tests.hw.command.test_first_address import GOAL, first_address
from tests.sw.test_image import image_on_a_large_mesh

FLIPS = 1000
#: Flips of each program.
_OF_A_PROGRAM = 50


@pytest.mark.slow
@pytest.mark.must("unit-l", goal="launch write to the first data AR, 256^3 on small: <= 345 cycles")
def test_the_first_operand_is_asked_for_early(figure):
    found = first_address()
    figure(f"start {found['start']}, first AR {found['address']} cycles")
    assert found["address"] <= GOAL == 345


@pytest.mark.must("unit-l", goal="image of one PCU on 40 x 52 tiles: <= 3 KiB")
def test_an_image_carries_what_is_in_use(figure):
    size = len(image_on_a_large_mesh())
    figure(f"{size:,} bytes")
    assert size <= 3 << 10


def _program(rng, signed):
    """A random program on `tiny`, as the fields of a case."""
    while True:
        fields = KINDS["bit"].draw(rng, rng)
        if fields["program"]["chip"] == "tiny":
            return {**fields, "signed": signed}


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.must("unit-l", goal="1,000 flips: an error code; 1,000 signed anew: live <=> RTL ends")
def test_no_flip_of_a_thousand_goes_by_unseen(signed, seed, heavy, figure):
    """The judge holds the proof against the end of the RTL, and compares all memory."""
    rng = random.Random(f"{seed} {signed}")
    outcomes = collections.Counter()
    with Models() as models:
        for number in range(FLIPS):
            if number % _OF_A_PROGRAM == 0:
                fields = _program(rng, signed)
            case = {**fields, "bit": round(rng.random(), 6)}
            verdict = KINDS["bit"].judge(case, models)
            assert verdict.problems == (), case
            outcomes[verdict.outcome] += 1
    figure(", ".join(f"{count} {name}" for name, count in sorted(outcomes.items())))
    assert outcomes.total() == FLIPS
    assert signed or outcomes == {"refused": FLIPS}
