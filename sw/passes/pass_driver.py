"""Pass driver: runs a list of passes with backtracking over alternatives; keeps each text."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Any, Generic, Protocol, TypeVar

from hw.arch.errors import BadInputError
from sw.ir.program import Program
from sw.ir.text import print_program
from sw.ir.verify import verify

__all__ = ["Pass", "State", "later", "program_text", "run_passes"]

#: New objects between two collections of garbage.
_ALLOCATIONS = 100_000


class State(Protocol):
    """What passes read and set.

    Members
    -------
    failures : dict of str to list of BadInputError
        Alternatives that failed, by pass.
    """

    failures: dict[str, list[BadInputError]]


_S = TypeVar("_S", bound=State)


def later() -> Any:
    """Field of a dataclass that is a `State`, set by a pass."""
    return dataclasses.field(init=False, repr=False)


@dataclasses.dataclass(frozen=True)
class Pass(Generic[_S]):
    """One entry of a pass list.

    Parameters
    ----------
    name, summary : str
    run : callable
        Reads and sets members of a `State`. A pass with alternatives is an iterator that sets
        one alternative per step, best first.
    needs, leaves : tuple of str
        Members that must be set before the pass, and members that it sets.
    text : callable
        Function to the text form of the pass's results.
    retries : tuple of exception types
        Failures of a later pass after which the next alternative is tried.
    give_up : callable or None
        Function from the failures of all alternatives to the resulting error.
    """

    name: str
    summary: str
    run: Callable[[_S], Iterator[None] | None]
    needs: tuple[str, ...]
    leaves: tuple[str, ...]
    text: Callable[[_S], str]
    retries: tuple[type[BadInputError], ...] = ()
    give_up: Callable[[Sequence[BadInputError]], BadInputError] | None = None


def program_text(name: str) -> Callable[[Any], str]:
    """Function to the text of a program, a member of the state with this name."""
    program: Callable[[Any], Program] = attrgetter(name)
    return lambda state: print_program(program(state), spans=False)


def run_passes(passes: Sequence[Pass[_S]], state: _S) -> dict[str, str]:
    """Run passes in order; when a later pass fails, backtrack to the next alternative.

    Returns
    -------
    dict of str to str
        Text after each pass, in the order of the list.

    Raises
    ------
    BadInputError
        If a pass refuses the program, or all alternatives of a pass fail.
    """
    texts: dict[str, str] = {}
    with _few_collections():
        _run(passes, state, texts)
    return texts


@contextlib.contextmanager
def _few_collections() -> Iterator[None]:
    """Context manager in which Python's garbage collector runs seldom.

    Passes make many objects that live on, and few cycles: a tenth of their time went to searches
    for garbage.
    """
    often = gc.get_threshold()
    gc.set_threshold(max(often[0], _ALLOCATIONS), *often[1:])
    try:
        yield
    finally:
        gc.set_threshold(*often)


def _run(passes: Sequence[Pass[_S]], state: _S, texts: dict[str, str]) -> None:
    for number, each in enumerate(passes):
        missing = [name for name in each.needs if not hasattr(state, name)]
        assert not missing, f"{each.name} needs {missing}"
        alternatives = each.run(state)
        if alternatives is None:
            texts[each.name] = _left(each, state)
            continue
        assert each.give_up is not None
        failures = state.failures[each.name] = []
        for _ in alternatives:
            texts[each.name] = _left(each, state)
            try:
                return _run(passes[number + 1 :], state, texts)
            except each.retries as failure:
                failures.append(failure)
        raise each.give_up(failures)


def _left(each: Pass[_S], state: _S) -> str:
    """Text after a pass, after verification of the programs it has set."""
    for name in each.leaves:
        value = getattr(state, name)
        if isinstance(value, Program):
            verify(value)
    return each.text(state)
