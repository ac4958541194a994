"""Load and store engine of a proof: boxes, or plans and bursts, come from the harness."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import stream

from hw.tma.box_engine import BoxEngine
from hw.tma.layouts import TmaLayouts
from hw.tma.load import LoadEngine
from hw.tma.store import StoreEngine

__all__ = ["BoxLoads", "BoxStores", "OpenLoads", "OpenStores", "ReadMemory", "WriteMemory"]


class _Boxes(BoxEngine):
    """Engine whose checked boxes are a stream that the harness drives."""

    boxes: stream.Interface

    def _read(self, m: Module) -> tuple[stream.Interface, Signal]:
        return self.boxes, Signal(8)


class BoxLoads(_Boxes, LoadEngine):
    """Load engine whose checked boxes are a stream that the harness drives."""

    def __init__(self, layouts: TmaLayouts, *, landing_beats: int, outstanding: int) -> None:
        super().__init__(
            layouts, landing_beats=landing_beats, outstanding=outstanding, descriptors=2
        )
        self.boxes = stream.Signature(layouts.box).create()


class BoxStores(_Boxes, StoreEngine):
    """Store engine whose checked boxes are a stream that the harness drives."""

    def __init__(self, layouts: TmaLayouts, *, outstanding: int) -> None:
        super().__init__(layouts, outstanding=outstanding, descriptors=2)
        self.boxes = stream.Signature(layouts.box).create()


class OpenLoads(LoadEngine):
    """Load engine whose plans of rows and bursts are streams that the harness drives."""

    def __init__(self, layouts: TmaLayouts, *, landing_beats: int, outstanding: int) -> None:
        super().__init__(
            layouts, landing_beats=landing_beats, outstanding=outstanding, descriptors=2
        )
        self.plans: Any = stream.Signature(layouts.plan).create()
        self.bursts: Any = stream.Signature(layouts.burst).create()

    def _boxes(
        self, m: Module, *, burst_beats: int, plans: int
    ) -> tuple[stream.Interface, stream.Interface, Signal]:
        return self.plans, self.bursts, Signal(8)


class OpenStores(StoreEngine):
    """Store engine whose plans of rows and bursts are streams that the harness drives."""

    def __init__(self, layouts: TmaLayouts, *, outstanding: int) -> None:
        super().__init__(layouts, outstanding=outstanding, descriptors=2)
        self.plans: Any = stream.Signature(layouts.plan).create()
        self.bursts: Any = stream.Signature(layouts.burst).create()

    def _boxes(
        self, m: Module, *, burst_beats: int, plans: int
    ) -> tuple[stream.Interface, stream.Interface, Signal]:
        return self.plans, self.bursts, Signal(8)


class ReadMemory:
    """Memory of a proof behind AR and R: bursts are answered in order, beat by beat.

    Parameters
    ----------
    m : Module
    axi : Axi4ReadInterface
    accepts, answers : Value
        Free: AR is accepted, and the next beat is on R, if there is one, in this cycle.
    outstanding : int
        Most bursts that the manager has outstanding.
    """

    def __init__(
        self, m: Module, axi: Any, *, accepts: Value, answers: Value, outstanding: int
    ) -> None:
        #: Beats less one that each open burst still has, oldest first.
        self.left = [Signal.like(axi.arlen, name=f"left{number}") for number in range(outstanding)]
        #: Bursts open; one opens, a beat is transferred in this cycle.
        self.open = Signal(range(outstanding + 1))
        self.opens = Signal()
        self.beat = Signal()
        ends = Signal()
        after = Signal.like(self.open)
        m.d.comb += [
            axi.arready.eq(accepts & (self.open != outstanding)),
            self.opens.eq(axi.arvalid & axi.arready),
            axi.rvalid.eq(answers & (self.open != 0)),
            axi.rlast.eq(self.left[0] == 0),
            self.beat.eq(axi.rvalid & axi.rready),
            ends.eq(self.beat & axi.rlast),
            after.eq(self.open - ends),
        ]
        m.d.sync += self.open.eq(after + self.opens)
        for number, entry in enumerate(self.left):
            with m.If(ends):
                if number + 1 < outstanding:
                    m.d.sync += entry.eq(self.left[number + 1])
            if number == 0:
                with m.Elif(self.beat):
                    m.d.sync += entry.eq(entry - 1)
            with m.If(self.opens & (after == number)):
                m.d.sync += entry.eq(axi.arlen)


class WriteMemory:
    """Memory of a proof behind AW, W and B: a burst is answered after its address and last beat.

    Parameters
    ----------
    m : Module
    axi : Axi4WriteInterface
    accepts_address, accepts_data, answers : Value
        Free: AW and W are accepted, and the next answer is on B, if there is one, in this cycle.
    outstanding : int
        Most bursts that the manager has outstanding.
    """

    def __init__(
        self,
        m: Module,
        axi: Any,
        *,
        accepts_address: Value,
        accepts_data: Value,
        answers: Value,
        outstanding: int,
    ) -> None:
        # Bursts of which AW, and the last beat of W, were transferred, and B was not.
        addressed = Signal(range(outstanding + 2))
        written = Signal.like(addressed)
        #: A burst may be answered; one is in this cycle.
        self.owes = (addressed != 0) & (written != 0)
        self.answered = Signal()
        m.d.comb += [
            axi.awready.eq(accepts_address),
            axi.wready.eq(accepts_data),
            axi.bvalid.eq(answers & self.owes),
            self.answered.eq(axi.bvalid & axi.bready),
        ]
        m.d.sync += [
            addressed.eq(addressed + (axi.awvalid & axi.awready) - self.answered),
            written.eq(written + (axi.wvalid & axi.wready & axi.wlast) - self.answered),
        ]
