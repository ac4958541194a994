"""Property of the store engine: each response is taken in time and reported with its box."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from gen.properties.support import always, given
from gen.properties.tma.open_engines import OpenStores
from hw.arch.descriptor import TmaFeature
from hw.lib.axi import failed_bits
from hw.tma.layouts import TmaLayouts

__all__ = ["WritesAreReported"]


class WritesAreReported(wiring.Component):
    """Every B is taken; a box is reported once, after its last B, with the responses of all.

    A row has one burst, or no byte in the tensor. The harness chooses a row with a burst, any of
    them, and counts the responses and the boxes before it. B waits, and a box whose responses have
    all come is reported, within as many cycles as there are records.
    """

    rows: Signal
    free: Signal
    response: Signal
    reached: Signal

    def __init__(self, *, width_bits: int, outstanding: int, beats: int) -> None:
        layouts = TmaLayouts(width_bits, 12, streams=1, features=(TmaFeature.PARALLEL_BOXES,))
        self._outstanding = outstanding
        self._beats = beats
        self._dut = OpenStores(layouts, outstanding=outstanding)
        super().__init__(
            {
                "rows": In(3),
                "free": In(7),
                "response": In(2),
                "reached": Out(4),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = self._dut
        axi: Any = dut.axi
        plan: Any = dut.plans.payload
        offered, present, last = self.rows
        aw_ready, w_ready, answers, vectors, bursts, chooses, drains = self.free
        drained = Signal()
        burst_open = Signal()
        m.d.sync += drained.eq(dut.i_drain)
        # Bursts of which AW, and the last beat of W, were transferred, and B was not.
        addressed = Signal(range(self._outstanding + 2))
        written = Signal.like(addressed)
        answered = Signal()
        pulse = Signal()
        m.d.comb += [
            dut.plans.valid.eq(offered),
            plan.vectors.eq(self._beats),
            plan.end.eq(Mux(present, self._beats, 0)),
            plan.last.eq(last),
            dut.bursts.valid.eq(bursts),
            dut.bursts.payload.length.eq(self._beats - 1),
            dut.i_streams[0].valid.eq(vectors),
            dut.i_drain.eq(drained | drains),
            axi.awready.eq(aw_ready),
            axi.wready.eq(w_ready),
            axi.bvalid.eq(burst_open & (addressed != 0) & (written != 0)),
            axi.bresp.eq(self.response),
            answered.eq(axi.bvalid & axi.bready),
            pulse.eq(dut.o_stored[0]),
        ]
        m.d.sync += [
            addressed.eq(addressed + (axi.awvalid & axi.awready) - answered),
            written.eq(written + (axi.wvalid & axi.wready & axi.wlast) - answered),
        ]
        # An answer that waits stays.
        waiting = Signal(range(2 * self._outstanding + 3))
        held = Signal(2)
        m.d.comb += burst_open.eq(answers | (waiting != 0))
        m.d.sync += [waiting.eq(Mux(axi.bvalid & ~axi.bready, waiting + 1, 0)), held.eq(axi.bresp)]
        m.d.comb += given((waiting == 0) | (axi.bresp == held))
        # An offer of a row stays.
        shown = Signal()
        offer = Signal(2)
        taken = Signal()
        m.d.comb += taken.eq(dut.plans.valid & dut.plans.ready)
        m.d.sync += [shown.eq(dut.plans.valid & ~dut.plans.ready), offer.eq(self.rows[1:])]
        m.d.comb += given(~shown | (offered & (offer == self.rows[1:])))

        # Responses to come of the rows taken, and their boxes to be reported.
        owed = Signal(range(2 * self._outstanding + 2))
        boxes = Signal(range(4 * self._outstanding))
        late = Signal(range(4 * self._outstanding + 4))
        m.d.sync += [
            owed.eq(owed + (taken & present) - answered),
            boxes.eq(boxes + (taken & last) - pulse),
            late.eq(Mux((boxes != 0) & (owed == 0) & ~pulse, late + 1, 0)),
        ]
        follows = Signal()
        came = Signal()
        ahead = Signal.like(owed)
        before = Signal.like(boxes)
        chosen = Signal(2)
        with m.If(~follows & taken & present & chooses):
            m.d.sync += [
                follows.eq(1),
                came.eq(0),
                ahead.eq(owed - answered),
                before.eq(boxes - pulse),
            ]
        with m.Elif(follows):
            with m.If(answered & ~came):
                m.d.sync += ahead.eq(ahead - 1)
                with m.If(ahead == 0):
                    m.d.sync += [came.eq(1), chosen.eq(failed_bits(axi.bresp))]
            with m.If(pulse):
                m.d.sync += [before.eq(before - 1), follows.eq(before != 0)]
        reports = follows & pulse & (before == 0) & ~drained
        most = 2 * self._outstanding
        m.d.comb += [
            always(waiting <= most),
            always(drained | ~answered | (owed != 0)),
            always(drained | ~pulse | (boxes != 0)),
            always(~reports | came),
            always(~reports | (chosen & ~dut.o_stored_response == 0)),
            always(drained | (late <= most)),
            self.reached.eq(
                Cat(
                    reports & (dut.o_stored_response == 3) & (chosen == 1),
                    reports & (boxes == 2),
                    waiting == 1,
                    drained & answered,
                )
            ),
        ]
        return m
