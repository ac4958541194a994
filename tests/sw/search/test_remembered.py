"""Answers of searches that are drawn once, and forgotten between compilations."""

import itertools

import pytest

from hw.arch.errors import BadInputError
from sw.search.remembered import Drawn, forget_searches, remembered


def test_readers_share_what_is_drawn():
    drawn = []

    def items():
        for each in range(5):
            drawn.append(each)
            yield each

    numbers = Drawn(items())
    first, second = iter(numbers), iter(numbers)
    assert [next(first), next(first), next(second)] == [0, 1, 0]
    assert drawn == [0, 1]
    assert list(second) == [1, 2, 3, 4] and list(first) == [2, 3, 4]
    assert list(numbers) == drawn == [0, 1, 2, 3, 4]


def test_a_refusal_is_raised_for_each_reader():
    def items():
        yield 1
        raise BadInputError("no more")

    drawn = Drawn(items())
    assert list(itertools.islice(drawn, 1)) == [1]
    for _ in range(2):
        with pytest.raises(BadInputError, match="no more"):
            list(drawn)


def test_answers_are_kept_until_they_are_forgotten():
    asked = []

    @remembered
    def square(number):
        asked.append(number)
        return number**2

    assert [square(3), square(3)] == [9, 9] and asked == [3]
    forget_searches()
    assert square(3) == 9 and asked == [3, 3]
