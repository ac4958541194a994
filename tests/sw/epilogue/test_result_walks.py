"""Orders of results: passes of one PCU column beside vectors of several rows."""

import dataclasses
import itertools

import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import named
from hw.arch.errors import BadInputError
from hw.numeric.formats import e5m2
from sim.operands import random_operand
from sw.kernels.transposed.matmul_tt import matmul_tt

TINY = named["tiny"]
CHIP = dataclasses.replace(
    TINY, rows=2, columns=4, pcu=dataclasses.replace(TINY.pcu, formats=("e5m2",))
)


def test_results_of_any_number_of_passes_are_stored_or_the_plan_is_refused(seed):
    """Three passes of a column each do not end with a vector of two rows."""
    rng, served = np.random.default_rng(seed), 0
    for columns, rows in itertools.product((5, 8, 13), (1, 3)):
        a, b = random_operand(rng, (4, 1), e5m2), random_operand(rng, (columns, 4), e5m2)
        schedule = tw.Schedule(row_par={"c": rows})
        try:
            result = matmul_tt.run(a, b, config=CHIP, backend="emulator", schedule=schedule)
        except BadInputError as error:
            with pytest.raises(BadInputError, match="end with a vector of 2 rows"):
                raise error
            continue
        served += 1
        assert result.verified, (columns, rows, result.problems)
    assert served >= 4
