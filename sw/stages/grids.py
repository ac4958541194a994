"""Grids of chains of lane programs on a chip, and the pipelines on them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

from hw.arch.config import ChipConfig
from hw.numeric.division import ceil_div
from sw.passes.field_limits import Unfit
from sw.stages.pipeline import Pipeline

__all__ = ["Grid", "grids", "most_chains", "on_grids", "on_lines", "opened"]

Choice = TypeVar("Choice")


class _Estimated(Protocol):
    @property
    def cycles(self) -> float: ...


Estimated = TypeVar("Estimated", bound=_Estimated)


@dataclasses.dataclass(frozen=True)
class Grid:
    """Chains of lane programs on the PCUs of a chip.

    Parameters
    ----------
    lines : int
        One per AGCU, or several that share it.
    copies : int
        Chains of a line.
    share : int
        Chains that share the PCUs of all programs but the first; a divisor of the copies.
    """

    lines: int
    copies: int
    share: int = 1

    def pcus(self, programs: int) -> int:
        """PCUs of chains of so many programs."""
        return self.lines * (self.copies + (programs - 1) * self.copies // self.share)


def grids(
    config: ChipConfig, programs: int, copies: int, *, sharing: int = 1, shares: int = 1
) -> list[Grid]:
    """Grids of chains of lane programs on a chip, those of most PCUs first.

    Parameters
    ----------
    config : ChipConfig
    programs : int
        Lane programs of a chain, a PCU each.
    copies : int
        Most copies of a chain in a line.
    sharing : int
        Most lines that share an AGCU.
    shares : int
        Most chains that share PCUs.

    Raises
    ------
    Unfit
        If the chip has fewer PCUs than a chain.
    """
    if programs > config.pcu_count:
        raise Unfit(
            f"A chain of {programs} lane programs must fit the chip's {config.pcu_count} PCUs",
            value=programs,
            rule=f"at most {config.pcu_count} PCUs",
        )
    found = [
        Grid(lines, each, share)
        for lines in range(1, sharing * config.agcu.count + 1)
        for each in range(1, copies + 1)
        for share in range(1, (shares if programs > 1 else 1) + 1)
        if not each % share
    ]

    def order(grid: Grid) -> tuple[int, ...]:
        lines = ceil_div(grid.lines, config.agcu.count)
        return grid.share, -grid.lines * grid.copies, lines, -grid.lines

    found = [each for each in found if each.pcus(programs) <= config.pcu_count]
    return sorted(found, key=order)


def most_chains(config: ChipConfig, programs: int, shares: int) -> int:
    """Most chains of lane programs on a chip, of which so many share all PCUs but the first."""
    fitting = (
        chains
        for share in range(1, shares + 1)
        for chains in range(share, config.pcu_count + 1, share)
        if Grid(1, chains, share).pcus(programs) <= config.pcu_count
    )
    return max(fitting, default=1)


def on_grids(
    config: ChipConfig, programs: int, copies: int, build: Callable[[Grid], Pipeline]
) -> Iterator[Pipeline | Unfit]:
    """Pipelines of chains of lane programs, those of most PCUs first.

    Parameters
    ----------
    config, programs, copies
        As of `grids`.
    build : callable
        Function from a grid to a pipeline.

    Yields
    ------
    Pipeline or Unfit
        Why a choice does not fit, in its place.
    """
    try:
        found = grids(config, programs, copies)
    except Unfit as problem:
        yield problem
    else:
        yield from _tried(build, found)


def on_lines(config: ChipConfig, build: Callable[[int], Pipeline]) -> Iterator[Pipeline | Unfit]:
    """Pipelines without PCUs, those of most lines first, one line per AGCU.

    Parameters
    ----------
    config : ChipConfig
    build : callable
        Function from the number of lines to a pipeline.

    Yields
    ------
    Pipeline or Unfit
        Why a choice does not fit, in its place.
    """
    yield from _tried(build, range(config.agcu.count, 0, -1))


def opened(
    number: int, build: Callable[[], Estimated], problems: dict[int, Unfit], weight: float = 1.0
) -> list[tuple[float, int, Estimated]]:
    """Build a choice, as a group of `BestFirst`.

    Parameters
    ----------
    number : int
        Of the choice.
    build : callable
        Function that returns its pipeline, or the builder of one, with the estimated cycles.
    problems : dict of int to Unfit
        Takes why the choice does not fit.
    weight : float
        By how much its estimated cycles count more.

    Returns
    -------
    list of (float, int, object)
        What was built, with its weighted cycles; empty if it does not fit.
    """
    try:
        built = build()
    except Unfit as problem:
        problems[number] = problem
        return []
    return [(weight * built.cycles, number, built)]


def _tried(
    build: Callable[[Choice], Pipeline], choices: Iterable[Choice]
) -> Iterator[Pipeline | Unfit]:
    """The pipeline of each choice, or why it does not fit."""
    for choice in choices:
        try:
            yield build(choice)
        except Unfit as problem:
            yield problem
