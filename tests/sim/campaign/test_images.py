"""Images without a compiler: live as drawn, short of something afterwards."""

import copy
import random

import pytest

from hw.arch.config import named
from sim.campaign.generators.images import arrays_of, chip_program_of, random_image, take_away
from sim.campaign.kinds import draw, judge
from sw.prove import prove
from tests.sw.chips import agcu_changed, copier

ALIKE = [(0, 1), (1, 1)]


def drawn(seed, count):
    """Images on `tiny` and `small` that place and route."""
    rng = random.Random(seed)
    found = []
    while len(found) < count:
        config = named[rng.choice(["tiny", "small"])]
        image = random_image(rng, config)
        try:
            found.append((config, image, chip_program_of(config, image)))
        except ValueError:  # no room on the links
            continue
    return found


def test_most_images_as_drawn_are_live_and_leave_nothing_over(seed):
    # Two stores of an AGCU take turns, which some pairs of streams do not bear.
    answers = [prove(program) for _, _, program in drawn(seed, 25)]
    assert not any(answer.faults for answer in answers)
    assert sum(answer.live for answer in answers) >= 12


def test_what_is_taken_away_changes_one_number(seed):
    rng = random.Random(seed)
    for config, image, _ in drawn(seed, 10):
        short = copy.deepcopy(image)
        take_away(rng, short)
        assert short != image
        assert len(arrays_of(config, short)) == len(image["sources"]) + len(image["sinks"])


def test_some_images_are_dead_and_no_answer_contradicts_another(seed):
    verdicts = [judge(draw(seed, "image", number), None) for number in range(25)]
    assert [verdict.problems for verdict in verdicts if verdict.problems] == []
    outcomes = [verdict.outcome for verdict in verdicts]
    assert outcomes.count("dead") >= 2 and outcomes.count("live") >= 5


@pytest.mark.parametrize(("credits", "is_open"), [((2, 2), False), ((3, 3), True)])
def test_the_proof_says_whether_the_order_of_boxes_is_open(credits, is_open):
    # With a credit more than there are slots a box can be under way that finds no room.
    program = copier(first=ALIKE, second=ALIKE, packet=4)
    answer = prove(agcu_changed(program, credits=credits))
    assert bool(answer.open_order) == is_open
