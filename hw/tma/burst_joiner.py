"""Burst joiner: bursts that continue one another become one while they wait."""

from typing import Any

from amaranth.hdl import Const, Module, Signal, Value
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from hw.arch.descriptor import TmaFeature
from hw.lib.component import Component
from hw.tma.layouts import TmaLayouts

__all__ = ["BurstJoiner"]


class BurstJoiner(Component):
    """Burst joiner: holds a burst, and appends the bursts that continue it until it is taken.

    A burst is offered when nothing more can be appended in this cycle, or when it has more beats
    than bursts are in flight. So with n bursts in flight about n² / 2 beats are, whatever the
    length of a row: enough for a memory of that latency. One burst per cycle.

    Parameters
    ----------
    layouts : TmaLayouts
        With `TmaFeature.JOINED_BURSTS`.
    burst_beats : int
        Beats (a power of two) at whose multiples a burst ends.
    outstanding : int
        Most bursts in flight.
    by_box : bool
        Join no bursts of two boxes, unless the first ends outside its tensor.

    Members
    -------
    i_stream : stream of :attr:`TmaLayouts.burst`
    i_in_flight : ``In(range(outstanding + 1))``
        Bursts taken that are not ended.
    o_valid, o_burst, i_take
        The burst held, offered; it may grow until the cycle in which it is taken.
    """

    i_stream: stream.Interface
    i_in_flight: Signal
    o_valid: Signal
    o_burst: Any
    i_take: Signal

    def __init__(
        self, layouts: TmaLayouts, *, burst_beats: int, outstanding: int, by_box: bool
    ) -> None:
        assert TmaFeature.JOINED_BURSTS in layouts.features
        self._reduces = TmaFeature.REDUCE in layouts.features
        self._burst_beats = burst_beats
        self._by_box = by_box
        super().__init__(
            {
                "i_stream": In(stream.Signature(layouts.burst)),
                "i_in_flight": In(range(outstanding + 1)),
                "o_valid": Out(1),
                "o_burst": Out(layouts.burst),
                "i_take": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        held: Any = self.o_burst
        given: Any = self.i_stream.payload
        full = Signal()
        joins = Signal()
        following = Signal.like(held.address)
        within = (self._burst_beats - 1).bit_length()
        apart: Value = held.ends if self._by_box else Const(0)
        if self._reduces:
            apart |= given.reduction != held.reduction
        m.d.comb += [
            following.eq(held.address + held.length + 1),
            joins.eq(
                self.i_stream.valid
                & (given.address == following)
                & following[:within].any()
                & ~apart
            ),
            self.o_valid.eq(full & (~joins | (held.length >= self.i_in_flight))),
            self.i_stream.ready.eq(~full | self.i_take | joins),
        ]
        with m.If(~full | self.i_take):
            m.d.sync += [full.eq(self.i_stream.valid), held.eq(given)]
        with m.Elif(joins):
            m.d.sync += [
                held.length.eq(held.length + given.length + 1),
                held.ends.eq(given.ends),
            ]
        return m
