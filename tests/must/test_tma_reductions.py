"""tma-d: reducing stores of several TMA units into one tile."""

import pytest

from hw.arch.boxes.reductions import ReductionOperation
from hw.arch.descriptor import ElementFormat
from tests.hw.tma.reduction.random_reductions import run_reductions

_SUMS = [(ReductionOperation.ADD, ElementFormat.INT32)]


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.must("tma-d", goal="two and four engines reduce into one int32 tile: exact sums")
@pytest.mark.parametrize("engines", [2, 4])
def test_engines_reduce_into_one_tile(reducing_units, engines, seed, figure):
    """Boxes of one tile overlap, are ragged, and lie across pages; memory answers at random."""
    sums = run_reductions(reducing_units, engines, seed, 1000, _SUMS)
    assert sums.runs == 1000 and sums.wrong == 0
    assert sums.ragged > 300 and sums.across > 100
    figure(
        f"{engines} engines: {sums.runs:,} runs, {sums.commands:,} commands, "
        f"{sums.cycles:,} cycles, {sums.wrong} wrong"
    )


@pytest.mark.slow
@pytest.mark.must("tma-d", goal="without the interlock, sums are wrong")
def test_without_the_interlock_sums_are_wrong(reducing_units, seed, figure):
    sums = run_reductions(reducing_units, 2, seed, 100, _SUMS, broken=True)
    assert sums.wrong > 0
    figure(f"every page granted: {sums.wrong} of {sums.runs} runs wrong")
