"""slice-i: a placement changes no byte; two tracks are enough, one is or is refused by name."""

import dataclasses

import pytest

from hw.arch.config import named
from hw.arch.errors import BadInputError


@pytest.mark.slow
@pytest.mark.must("slice-i", goal="three placements give equal bytes")
def test_placements_agree(product, heavy, figure):
    cases = [product("small", 100, 70, 90, place_seed=seed) for seed in (1, 2, 3)]
    images = {case.compiled[0].parts[0].image for case in cases}
    assert len(images) == len(cases)
    outputs = {case.run().report["output_sha256"] for case in cases}
    assert len(outputs) == 1
    figure(f"{len(images)} images, one answer")


def mapped(tracks, product):
    """Whether a product maps on `small` with so many tracks and is right; raises if it does not."""
    config = dataclasses.replace(named["small"], tracks=tracks)
    return product(config, 64, 64, 64).run("emulator").report["verified"]


@pytest.mark.must("slice-i", goal="two tracks are enough")
def test_two_tracks_are_enough(product, figure):
    assert mapped(2, product)
    figure("T = 2 maps")


@pytest.mark.must("slice-i", goal="T = 1 maps or is refused by name")
def test_one_track_is_enough_or_refused_by_name(product, figure):
    try:
        assert mapped(1, product)
        figure("T = 1 maps")
    except BadInputError as error:
        assert "track" in str(error)
        figure(f"T = 1 refused: {error}")
