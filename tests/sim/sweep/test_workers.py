"""Workers of a sweep that die: no item is lost, and none comes twice."""

import os
import signal
from pathlib import Path

import pytest

from hw.arch.errors import BadInputError
from sim.sweep.pareto import front
from sim.sweep.workers import ATTEMPTS, Died, by_processes


def square(item):
    """The square; a file item kills its process while the file exists."""
    if isinstance(item, str):
        path, keeps = item.split("|")
        if Path(path).exists():
            if keeps == "once":
                Path(path).unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return path
    if item < 0:
        raise BadInputError("Item must be 0 or more")
    return item * item


def test_each_item_ends_once():
    ends = dict(by_processes(square, [1, 2, 3, 4, 5], workers=2))
    assert ends == {1: 1, 2: 4, 3: 9, 4: 16, 5: 25}


def test_an_item_whose_process_is_killed_runs_again(tmp_path):
    (tmp_path / "mark").touch()
    item = f"{tmp_path / 'mark'}|once"
    ends = list(by_processes(square, [1, item, 2, 3], workers=2))
    assert sorted(map(str, ends)) == sorted(
        map(str, [(1, 1), (item, str(tmp_path / "mark")), (2, 4), (3, 9)])
    )


def test_an_item_that_kills_every_process_is_given_up(tmp_path):
    (tmp_path / "mark").touch()
    item = f"{tmp_path / 'mark'}|always"
    ends = dict(by_processes(square, [item, 1, 2], workers=1))
    assert ends == {item: Died(ATTEMPTS, "its process ended"), 1: 1, 2: 4}


def test_an_exception_ends_the_sweep():
    with pytest.raises(BadInputError, match="Item must be 0 or more"):
        list(by_processes(square, [-1], workers=1))


@pytest.mark.parametrize(
    ("figures", "kept"),
    [
        ([], []),
        ([(1, 5), (2, 4), (3, 4), (2, 6)], [0, 1]),
        ([(2, 2), (2, 2), (3, 1)], [0, 1, 2]),
        ([(1, 1), (1, 2), (2, 1)], [0]),
    ],
)
def test_the_front_is_what_no_other_dominates(figures, kept):
    assert front(figures) == kept
