"""tma-b: TMA-7, every reduction on every format that it takes, of four units at once."""

import pytest

from hw.arch.boxes.reductions import REDUCED_FORMATS
from tests.hw.tma.reduction.random_reductions import run_reductions

_PAIRS = [(each, format) for each, formats in REDUCED_FORMATS.items() for format in formats]
#: Runs of each pair.
_RUNS = 40


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.must("tma-b", goal="TMA-7: reducing stores, every operation on every format")
def test_tma_7_reducing_stores(reducing_units, seed, figure):
    sums = run_reductions(reducing_units, 4, seed, _RUNS * len(_PAIRS), _PAIRS)
    assert sums.wrong == 0
    figure(f"TMA-7: {len(_PAIRS)} pairs of operation and format, {sums.commands:,} commands")
