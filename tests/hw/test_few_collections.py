"""The collector of cyclic garbage runs rarely inside, and as before behind it."""

import gc

import pytest

from hw.few_collections import few_collections


def test_the_former_thresholds_come_back():
    former = gc.get_threshold()
    with few_collections():
        assert gc.get_threshold() == (1_000_000, *former[1:])
    assert gc.get_threshold() == former


def test_they_come_back_behind_an_error_too():
    former = gc.get_threshold()
    with pytest.raises(ValueError), few_collections():
        raise ValueError
    assert gc.get_threshold() == former
