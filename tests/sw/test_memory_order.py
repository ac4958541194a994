"""Order of loads and stores in memory: refused exactly where iterations meet without a token."""

import random

import pytest

from hw.arch.config import named
from hw.arch.launch import Argument
from sw.prove.memory_order import memory_faults
from tests.units_chain import GemvChain

CHAIN = GemvChain(named["tiny"], 16, 8)
#: Bytes that a matrix, and a vector with its padding but that of the last element, take.
MATRIX, VECTOR = 16 * 32, 15 * 16 + 2
WEIGHTS = Argument(1 << 20, MATRIX)


def faults(x, y, repeat, *, ordered=True, weights=WEIGHTS):
    """Texts of the faults of the chain with other places of its vectors."""
    chain = GemvChain(CHAIN.config, 16, 8, ordered=ordered)
    found = memory_faults(chain.program, [weights, x, y], repeat)
    assert all(each.text.startswith(f"AGCU {each.agcu} ") for each in found)
    return tuple(each.text for each in found)


def test_a_chain_is_in_order_by_its_token():
    weights, x, y = CHAIN.arguments
    for repeat in (1, 2, 8, 10**6):
        assert faults(x, y, repeat, weights=Argument(1 << 40, MATRIX)) == ()
    assert faults(x, y, 8, ordered=False) == (
        "AGCU 0 load 1 must wait for a token of AGCU 0 store 1, which writes what it reads "
        "1 iterations later",
    )
    assert faults(x, y, 1, ordered=False) == ()
    assert weights.stride == MATRIX


@pytest.mark.parametrize("distance", range(-4, 5))
def test_only_what_was_stored_in_an_earlier_iteration_may_be_read(distance):
    """The vector is read so many iterations after it was written."""
    x = Argument(1 << 16, 256)
    y = Argument((1 << 16) + 256 * distance, 256)
    later = "AGCU 0 load 1 must not read where AGCU 0 store 1 writes in a later iteration"
    waits = "AGCU 0 load 1 must wait for a token of AGCU 0 store 1, which writes what it reads"
    for ordered in (True, False):
        found = faults(x, y, 4, ordered=ordered)
        if abs(distance) >= 4 or (distance > 0 and ordered):
            assert found == ()
        elif distance < 0:
            assert found == (later,)
        else:
            assert found == (waits + (f" {distance} iterations later" if distance else ""),)


@pytest.mark.parametrize("count", [60, pytest.param(300, marks=pytest.mark.slow)])
def test_iterations_that_meet_are_those_whose_ranges_do(count, seed):
    """Against ranges compared pair by pair, strides of either sign."""
    rng = random.Random(seed)
    for _ in range(count):
        stride = 16 * rng.randint(-20, 20)
        x = Argument(1 << 16, stride)
        y = Argument((1 << 16) + 16 * rng.randint(-60, 60), stride)
        repeat = rng.randint(1, 6)
        meets = {
            i - j
            for i in range(repeat)
            for j in range(repeat)
            if x.value + i * stride < y.value + j * stride + VECTOR
            and y.value + j * stride < x.value + i * stride + VECTOR
        }
        found = faults(x, y, repeat, ordered=False)
        assert bool(found) == bool(meets), (x, y, repeat)
        if meets:
            assert ("wait for a token" in found[0]) == (min(meets) >= 0)


def test_other_strides_must_never_meet():
    x = Argument(1 << 16, 256)
    assert faults(x, Argument((1 << 16) + 8 * 256, 512), 8) == ()
    assert len(faults(x, Argument((1 << 16) + 8 * 256, -512), 8)) == 1
