"""Images without a compiler: live as drawn, short of something afterwards."""

import copy
import random

import pytest

from hw.configs import named
from sim.campaign.images import arrays_of, chip_program_of, random_image, take_away
from sim.campaign.kinds import draw, judge
from sw.prove import prove
from tests.sw.chips import copier

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


def test_an_image_as_drawn_is_live_or_leaves_the_order_of_boxes_open(seed):
    answers = [prove(program) for _, _, program in drawn(seed, 25)]
    assert all(answer.live or answer.open_order for answer in answers), answers
    assert not any(answer.faults for answer in answers)
    assert sum(answer.live for answer in answers) >= 15


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


@pytest.mark.parametrize("waits", [True, False])
def test_the_proof_says_whether_the_order_of_boxes_is_open(waits):
    answer = prove(copier(first=ALIKE, second=ALIKE, packet=4, waits=waits))
    assert bool(answer.open_order) == waits
