"""Counts of blocks of rows that are tried: multiples of the least one, and the two after it."""

import pytest

from hw.arch.config import named
from hw.numeric.formats import bf16
from sw.search.candidates import plans_of
from sw.search.constraints import Constraints
from tests.sw.passes.test_units import product


@pytest.mark.parametrize(("row_tile", "counts"), [(256, {2, 3, 4, 6}), (100, {6, 7, 8})])
def test_next_counts_are_tried_beside_multiples_of_the_least(row_tile, counts):
    wanted = product(512, 512, 512, bf16, bf16)
    plans = plans_of(wanted, named["large"], Constraints(row_tile=row_tile))
    found = {plan.row_blocks for plan, _ in plans if (plan.row_par, plan.col_par) == (3, 6)}
    assert counts <= found and min(found) == min(counts)
