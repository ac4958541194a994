"""Ordered merge: whole packets of several sources in a fixed rotation."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from hw.arch.checks import require_int
from hw.arch.limits import TURNS
from hw.arch.switch import MAX_PACKETS, rotation_layout
from hw.lib.component import Component

__all__ = ["OrderedMerge"]


class OrderedMerge(Component):
    """Control of an ordered merge: which source an output takes packets from.

    It takes ``packets`` whole packets of turn 0, then of turn 1, and so on, and restarts after the
    last turn of the rotation; the order never depends on arrival. Latency 0, and a change of turn
    costs no cycle.

    Parameters
    ----------
    sources : int
        Inputs that can reach the output (2 to 64).
    turns : int
        Longest rotation (1 to 8).

    Members
    -------
    rotation : ``In(rotation_layout(sources=sources, turns=turns))``
        The turns; static. The first one without packets ends the rotation.
    o_feeds : ``Out(sources)``
        Sources in the rotation.
    o_source : ``Out(range(sources))``
        Source of the current turn, computed from a register and the rotation.
    o_select : ``Out(sources)``
        The same, one-hot. An output that is off selects a source that does not feed it.
    i_transfer : ``In(1)``
        The output transfers a payload of that source.
    i_last : ``In(1)``
        That payload ends a packet.
    i_clear : ``In(1)``
        Restarts with turn 0.

    Attributes
    ----------
    at, passed : Signal
        Current turn, and the number of its packets that have passed, for proofs.

    Raises
    ------
    BadInputError
        If a parameter lies outside its domain.
    """

    rotation: data.View[data.ArrayLayout]
    o_feeds: Signal
    o_source: Signal
    o_select: Signal
    i_transfer: Signal
    i_last: Signal
    i_clear: Signal

    def __init__(self, *, sources: int, turns: int) -> None:
        require_int("Merge sources", sources, 2, 64)
        TURNS.require("Merge turns", turns)
        self._sources = sources
        self._turns = turns
        self.at = Signal(range(turns))
        self.passed = Signal(range(MAX_PACKETS))
        super().__init__(
            {
                "rotation": In(rotation_layout(sources=sources, turns=turns)),
                "o_feeds": Out(sources),
                "o_source": Out(range(sources)),
                "o_select": Out(sources),
                "i_transfer": In(1),
                "i_last": In(1),
                "i_clear": In(1),
            }
        )

    @property
    def sources(self) -> int:
        """Inputs that can reach the output."""
        return self._sources

    @property
    def turns(self) -> int:
        """Longest rotation."""
        return self._turns

    def elaborate(self, platform: object) -> Module:
        m = Module()
        turns = [self.rotation[index] for index in range(self._turns)]
        present = [turn.packets != 0 for turn in turns]
        at, passed = self.at, self.passed
        packets = Signal(bits_for(MAX_PACKETS))
        follower = Signal.like(at)
        with m.Switch(at):
            for index, turn in enumerate(turns):
                with m.Case(index) if index + 1 < self._turns else m.Default():
                    m.d.comb += [self.o_source.eq(turn.source), packets.eq(turn.packets)]
                    if index + 1 < self._turns:
                        with m.If(present[index + 1]):
                            m.d.comb += follower.eq(index + 1)
        for index in range(self._sources):
            named = (there & (turn.source == index) for there, turn in zip(present, turns))
            m.d.comb += [
                self.o_feeds[index].eq(Cat(*named).any()),
                self.o_select[index].eq(self.o_source == index),
            ]
        with m.If(self.i_clear):
            m.d.sync += [at.eq(0), passed.eq(0)]
        with m.Elif(self.i_transfer & self.i_last):
            with m.If(passed + 1 == packets):
                m.d.sync += [at.eq(follower), passed.eq(0)]
            with m.Else():
                m.d.sync += passed.eq(passed + 1)
        return m
