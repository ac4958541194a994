"""slice-i: a placement changes no byte; one track is enough, or is refused by name."""

import dataclasses

import pytest

from hw.configs import named
from hw.errors import BadInputError


@pytest.mark.slow
@pytest.mark.must("slice-i", goal="three placements give equal bytes; T = 1 maps or is refused")
def test_placements_agree(product, heavy, figure):
    cases = [product("small", 100, 70, 90, place_seed=seed) for seed in (1, 2, 3)]
    images = {case.compiled[0].image for case in cases}
    assert len(images) == len(cases)
    outputs = {case.run().report["output_sha256"] for case in cases}
    assert len(outputs) == 1
    figure(f"{len(images)} images, one answer")


@pytest.mark.must("slice-i", goal="three placements give equal bytes; T = 1 maps or is refused")
@pytest.mark.parametrize("tracks", [1, 2])
def test_fewer_tracks_map_or_are_refused(tracks, product, figure):
    config = dataclasses.replace(named["small"], tracks=tracks)
    try:
        case = product(config, 64, 64, 64)
        outcome = case.run("emulator").report["verified"] and "maps"
    except BadInputError as error:
        assert "track" in str(error)
        outcome = f"refused: {error}"
    figure(f"T = {tracks} {outcome}")
