"""Golden and the emulator have the bits of the definition; rules of sums of the definition."""

import collections
import random

import numpy as np

from hw.arch.config import named
from tests.sw.sources.eager_language import computed
from tests.sw.sources.random_sources import draw_source
from tests.sw.sources.source_cases import judge_source

PROGRAMS = 25

SUMS = """
def drawn(X, Y):
    y = tw.full(2, 2, 1.0)
    for n in tw.each(2):
        y += tw.load_tile(X[n]) @ tw.load_tile(X[0])
    large, ones = tw.load_tile(X[0]), tw.load_tile(X[2])
    z = tw.zeros(2, 2) + large @ large
    z = z + ones @ ones
    tw.store_tile(Y[0], y)
    tw.store_tile(Y[1], z)
"""


def test_random_programs_equal_the_definition(seed, draws):
    draw, count = random.Random(seed), draws(6, PROGRAMS)
    outcomes = collections.Counter()
    while outcomes["right"] < count:
        fields = draw_source(draw, named[draw.choice(("small", "tiny"))])
        verdict = judge_source(fields)
        assert not verdict.problems, (verdict.problems, fields)
        outcomes[verdict.outcome] += 1
    assert outcomes["refused"] < 3 * count


def test_sums_go_on_from_sums_and_are_added_to_other_tiles_at_their_end():
    large = np.array([[2.0**12, 0], [0, 0]])
    x = np.array([large, -large, np.ones((2, 2))]).astype("bfloat16")
    found = computed(SUMS, "drawn", {"X": x}, {"Y": ((2, 2, 2), np.dtype(np.float32))}, 16)["Y"]
    # 2^24 + 1 is no fp32: 1 would be lost before -2^24 is added.
    assert found[0].tolist() == [[1, 1], [1, 1]]
    # Each 1 is lost beside 2^24; their sum would not be.
    assert found[1].tolist() == [[2.0**24, 2], [2, 2]]
