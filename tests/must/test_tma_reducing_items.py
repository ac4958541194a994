"""tma-b: TMA-7, every reduction on every format that it takes, of four units at once."""

import pytest

from hw.arch.boxes.reductions import (
    FLOAT_FORMATS,
    INTEGER_FORMATS,
    REDUCED_FORMATS,
    ReductionOperation,
)
from tests.hw.tma.reduction.random_reductions import run_reductions

_INTEGERS = [(operation, format) for operation in ReductionOperation for format in INTEGER_FORMATS]
_FLOATS = [(ReductionOperation.ADD, format) for format in FLOAT_FORMATS]
#: Runs of each pair.
_RUNS = 40


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.must("tma-b", goal="TMA-7: reducing stores, every operation on every format")
def test_tma_7_reducing_stores(reducing_units, seed, figure):
    """Integers of four units, and floats of one, whose sums have the order of its commands."""
    pairs = [(each, format) for each, formats in REDUCED_FORMATS.items() for format in formats]
    assert sorted(pairs, key=str) == sorted(_INTEGERS + _FLOATS, key=str)
    integers = run_reductions(reducing_units, 4, seed, _RUNS * len(_INTEGERS), _INTEGERS)
    floats = run_reductions(reducing_units, 1, seed, _RUNS * len(_FLOATS), _FLOATS)
    assert integers.wrong == floats.wrong == 0
    figure(
        f"TMA-7: {len(pairs)} pairs of operation and format, "
        f"{integers.commands + floats.commands:,} commands"
    )
