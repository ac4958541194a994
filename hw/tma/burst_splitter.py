"""Burst splitter of a TMA engine: rows into AXI bursts that cross no 4 KiB boundary."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from hw.arch.descriptor import TmaFeature
from hw.arch.errors import BadInputError, shown
from hw.lib.bursts import first_burst
from hw.lib.component import Component
from hw.tma.layouts import TmaLayouts

__all__ = ["BurstSplitter"]


class BurstSplitter(Component):
    """Burst splitter: rows into bursts that cross no multiple of ``burst_beats``, one per cycle.

    A row's plan leaves with its first burst, or alone if the row has none.

    Parameters
    ----------
    layouts : TmaLayouts
    burst_beats : int
        Beats of the longest burst (a power of two), at most ``layouts.burst_beats``.

    Members
    -------
    i_stream : stream of :attr:`TmaLayouts.row`
    o_plans : stream of :attr:`TmaLayouts.plan`
    o_bursts : stream of :attr:`TmaLayouts.burst`
        Both must feed buffers, whose ready ignores valid: each is valid only while the other
        is ready.

    Attributes
    ----------
    started, later_address, later_beats : Signal
        The row's first burst has left; the rest of the row, for proofs.

    Raises
    ------
    BadInputError
        If ``burst_beats`` lies outside its domain.
    """

    i_stream: stream.Interface
    o_plans: stream.Interface
    o_bursts: stream.Interface

    def __init__(self, layouts: TmaLayouts, *, burst_beats: int) -> None:
        most = layouts.burst_beats
        if burst_beats not in [1 << power for power in range(most.bit_length())]:
            raise BadInputError(
                f"Beats of a burst must be a power of two of at most {most}, "
                f"not {shown(burst_beats)}"
            )
        self._layouts = layouts
        self._burst_beats = burst_beats
        self.started = Signal()
        self.later_address = Signal(layouts.row["address"].shape)
        self.later_beats = Signal(layouts.row["beats"].shape)
        super().__init__(
            {
                "i_stream": In(stream.Signature(layouts.row)),
                "o_plans": Out(stream.Signature(layouts.plan)),
                "o_bursts": Out(stream.Signature(layouts.burst)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        row: Any = self.i_stream.payload
        plans, bursts = self.o_plans, self.o_bursts
        burst: Any = bursts.payload
        started = self.started
        address = Signal.like(row.address)
        beats = Signal.like(row.beats)
        some = Signal()
        cut = first_burst(m, address, beats, self._burst_beats)
        m.d.comb += [
            address.eq(Mux(started, self.later_address, row.address)),
            beats.eq(Mux(started, self.later_beats, row.beats)),
            some.eq(beats != 0),
            burst.address.eq(address),
            burst.length.eq(cut.beats - 1),
            plans.payload.eq(row.plan),
            bursts.valid.eq(self.i_stream.valid & some & (started | plans.ready)),
            plans.valid.eq(self.i_stream.valid & ~started & (~some | bursts.ready)),
            self.i_stream.ready.eq((started | plans.ready) & (~some | (cut.ends & bursts.ready))),
        ]
        if TmaFeature.JOINED_BURSTS in self._layouts.features:
            m.d.comb += burst.ends.eq(row.plan.last & cut.ends)
        if TmaFeature.REDUCE in self._layouts.features:
            m.d.comb += burst.reduction.eq(row.reduction)
        with m.If(bursts.valid & bursts.ready):
            m.d.sync += [
                started.eq(~cut.ends),
                self.later_address.eq(cut.later_address),
                self.later_beats.eq(cut.later_beats),
            ]
        return m
