"""Simulations of designs that are elaborated and compiled once for all tests that use them."""

import functools
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from amaranth.sim import Simulator

__all__ = ["Actor", "Simulation", "forget_designs"]

Actor = Callable[[Any], Coroutine[Any, Any, None]]
Design = TypeVar("Design")

#: Testbenches that a simulation may have.
_PLACES = 48


class _Stage(Generic[Design]):
    """A design, and its simulator from the first run on."""

    def __init__(self, design: Design) -> None:
        self.design = design
        self._actors: list[tuple[Actor, bool]] = []
        self._simulator: Simulator | None = None

    def run(self, actors: list[tuple[Actor, bool]]) -> None:
        """Run actors, each with whether it is in the background, from reset."""
        self._actors = actors
        if self._simulator is None:
            self._simulator = Simulator(self.design)
            self._simulator.add_clock(1e-6)
            for number in range(_PLACES):
                self._simulator.add_testbench(self._place(number), background=True)
        else:
            self._simulator.reset()
        self._simulator.run()

    def _place(self, number: int) -> Actor:
        async def play(ctx: Any) -> None:
            if number >= len(self._actors):
                return
            actor, background = self._actors[number]
            if background:
                await actor(ctx)
            else:
                with ctx.critical():
                    await actor(ctx)

        return play


@functools.lru_cache(maxsize=8)
def _stage(
    make: Callable[..., Design], parameters: tuple[Any, ...], named: tuple[tuple[str, Any], ...]
) -> _Stage[Design]:
    return _Stage(make(*parameters, **dict(named)))


def forget_designs() -> None:
    """Let each simulation to come make its design."""
    _stage.cache_clear()


class Simulation(Generic[Design]):
    """One run of a design from the start of time, with testbenches as Amaranth's simulator has.

    Simulations with equal ``make`` and parameters share the design, and one runs at a time. Around
    a fault planted behind ``make`` designs are to be forgotten (fixture `planted`).

    Parameters
    ----------
    make : callable
        Returns a design, whose domain is ``sync``; called only where none of the last eight
        designs is the one wanted.
    parameters, named
        Its arguments.

    Members
    -------
    design : object
        What ``make`` has returned. Parts may be kept in it, and nothing that a run changes.
    """

    def __init__(self, make: Callable[..., Design], *parameters: Any, **named: Any) -> None:
        self._stage = _stage(make, parameters, tuple(named.items()))
        self._actors: list[tuple[Actor, bool]] = []
        self.design = self._stage.design

    def add_testbench(self, actor: Actor, *, background: bool = False) -> None:
        """Add a coroutine function; the run ends when those not in the background have ended."""
        self._actors.append((actor, background))

    def run(self) -> None:
        """Run from the initial state of every signal and memory."""
        assert len(self._actors) <= _PLACES
        self._stage.run(self._actors)
