"""attn-g: the form of a softmax over blocks by itself: invariants, bounds, error, spellings."""

import ml_dtypes
import numpy as np
import pytest

import sw.language as tw
from sim.kernels import summed
from sim.run.error_bounds import error_bounds
from sw.passes.accumulate import accumulate
from sw.passes.simplify import simplify
from sw.softmax.online import missed_softmaxes, online
from tests.sw.softmax.invariants import (
    LN2,
    answer,
    exact,
    last_maxima,
    numpy_rows,
    program,
    rows,
    whole_rows,
)
from tests.sw.softmax.spellings import COMPUTED, NEAR_MISSES, SPELLINGS, program_of

ROWS = 1000
KEYS = 200
BLOCKS = (1, 7, 16, 48, 64, 200)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.mark.must("attn-g", goal="shift of a row by a constant: the same bits")
def test_a_shift_changes_no_bit(seed):
    rng = np.random.default_rng(seed)
    arrays = rows(rng, ROWS, KEYS)
    # Scores of at most 9 bits, so that they and their shifts are exact.
    for name in "QK":
        arrays[name] = rng.integers(-3, 4, arrays[name].shape).astype(ml_dtypes.bfloat16)
    arrays["K"][:, 0] = 8
    form = program(ROWS, KEYS, 48, scale=LN2)
    arrays["Q"][:, 0] = 0
    plain = answer(form, arrays)
    for _ in range(3):
        arrays["Q"][:, 0] = rng.integers(-99, 100, ROWS)
        assert answer(form, arrays).tobytes() == plain.tobytes()


@pytest.mark.must("attn-g", goal="order and size of blocks: the same maxima, exact sums by bits")
def test_order_and_size_of_blocks(seed):
    rng = np.random.default_rng(seed)
    random, whole = rows(rng, ROWS, KEYS, spread=3), whole_rows(rng, ROWS, KEYS)
    maxima, answers = set(), set()
    for block in BLOCKS:
        order = np.concatenate(rng.permutation(np.array_split(np.arange(KEYS), 10), axis=0))
        for keys in (np.arange(KEYS), order):
            moved = [
                {"Q": each["Q"], "K": each["K"][keys], "V": each["V"][keys]}
                for each in (random, whole)
            ]
            maxima.add(last_maxima(program(ROWS, KEYS, block), moved[0]).tobytes())
            answers.add(answer(program(ROWS, KEYS, block, scale=LN2), moved[1]).tobytes())
    assert len(maxima) == len(answers) == 1


@pytest.mark.must("attn-g", goal="printed and online forms within their bounds, 1,000 random rows")
def test_both_forms_keep_their_bounds(seed):
    rng = np.random.default_rng(seed)
    for spread in (0.1, 1, 4):
        arrays = rows(rng, ROWS, KEYS, spread=spread)
        for form in (True, False):
            kept = program(ROWS, KEYS, 64, form=form)
            bound = error_bounds(kept, arrays)["O"]
            error = np.abs(answer(kept, arrays).astype(np.float64) - exact(arrays))
            assert np.isfinite(bound).all() and (error <= bound).all()


@pytest.mark.must("attn-g", goal="error at most 1.1 times numpy's of the same roundings and maxima")
def test_the_error_is_that_of_the_roundings(seed):
    rng = np.random.default_rng(seed)
    for spread, block in ((0.1, 16), (1, 64), (2, 48)):
        arrays = rows(rng, ROWS, KEYS, spread=spread)
        wanted = exact(arrays)
        found, numpys = (
            np.sqrt(np.mean((each.astype(np.float64) - wanted) ** 2))
            for each in (
                answer(program(ROWS, KEYS, block), arrays),
                numpy_rows(arrays, block),
            )
        )
        assert found <= 1.1 * numpys, (spread, block, found / numpys)


@pytest.mark.must("attn-g", goal="22 spellings found, 20 others left and told in words")
def test_spellings_are_found_or_told(seed):
    rng = np.random.default_rng(seed)
    plain = program_of({})
    arrays = {
        each.name: rng.standard_normal(each.type.shape).astype(ml_dtypes.bfloat16)
        for each in plain.tensors[:3]
    }
    tiles = {"i": 8, "j": 16}
    wanted = answer(summed(plain, tiles), arrays).tobytes()
    for name, changes in (SPELLINGS | COMPUTED).items():
        assert answer(summed(program_of(changes), tiles), arrays).tobytes() == wanted, name
    for changes, reason in NEAR_MISSES.values():
        program = simplify(online(accumulate(program_of(changes, name="missed"))))
        (problem,) = missed_softmaxes(program)
        with pytest.raises(tw.ProgramError, match=reason):
            raise problem
