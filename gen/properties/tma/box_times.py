"""Property of the engines: a box ends within a time that is linear in its beats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from gen.properties.support import always, given
from gen.properties.tma.open_engines import BoxLoads, BoxStores, ReadMemory, WriteMemory
from hw.tma.layouts import TmaLayouts

__all__ = ["LoadsEnd", "StoresEnd", "TimeBound"]


class TimeBound:
    """Cycles within which a box of n beats ends: fixed + stalls·s + n·(1 + s).

    Parameters
    ----------
    fixed, stalls : int
    stall : int
        s, the most cycles in a row that a handshake waits for the other side.
    """

    def __init__(self, *, fixed: int, stalls: int, stall: int) -> None:
        self.stall = stall
        self._fixed = fixed + stalls * stall

    def cycles(self, beats: int) -> int:
        """Cycles of a box of so many beats."""
        return self._fixed + beats * (1 + self.stall)

    def of(self, beats: Value) -> Value:
        """Cycles of a box of so many beats, in hardware."""
        return self._fixed + beats * (1 + self.stall)

    def patient(self, m: Module, waits: Value) -> None:
        """Assume that a handshake waits no longer than the longest stall."""
        waited = Signal(range(self.stall + 1))
        m.d.sync += waited.eq(Mux(waits, waited + 1, 0))
        m.d.comb += given(~waits | (waited != self.stall))


class _Command:
    """One box of two dimensions at a time, with the time since it was offered.

    Parameters
    ----------
    m : Module
    boxes : stream of :attr:`TmaLayouts.box`
        Of the engine.
    shape : data.View
        Free fields of the box.
    offers : Value
        Free: a box is offered now, if none is at work.
    ended : Value
        The command ends in this cycle.
    most : int
        Most beats.
    bound : TimeBound
    """

    def __init__(
        self,
        m: Module,
        boxes: Any,
        shape: Any,
        *,
        offers: Value,
        ended: Value,
        most: int,
        bound: TimeBound,
    ) -> None:
        box: Any = boxes.payload
        #: A box is at work, or offered; it has been taken.
        self.busy = Signal()
        self.taken = Signal()
        begun = Signal()
        #: Beats that its rows span, in the tensor or not.
        self.beats = Signal(range(most + 1))
        beats = Signal(range(most + 1))
        self.time = Signal(range(most * 64))
        spans = Signal(range(2 * most + 2))
        m.d.comb += [
            self.busy.eq(begun | offers),
            boxes.valid.eq(self.busy & ~self.taken),
            box.address.eq(shape.address),
            box.extents[0].eq(shape.extent),
            box.strides[0].eq(shape.stride),
            box.low[0].eq(shape.low),
            box.high[0].eq(shape.high),
            *(high.eq(1) for high in box.high[1:]),
            box.vectors.eq(shape.vectors),
            box.head.eq(shape.head),
            box.tail.eq(shape.tail),
            spans.eq(shape.vectors + ((shape.address ^ shape.head) & 1)),
            given(shape.vectors != 0),
            given(shape.tail <= shape.vectors << 1),
            given(shape.head <= shape.tail),
            given((shape.extent + 1) * spans <= most),
            self.beats.eq(Mux(self.taken, beats, (shape.extent + 1) * spans)),
        ]
        with m.If(boxes.valid & boxes.ready):
            m.d.sync += [self.taken.eq(1), beats.eq(self.beats)]
        with m.If(self.busy):
            m.d.sync += [self.time.eq(self.time + 1), begun.eq(1)]
        with m.If(ended):
            m.d.sync += [self.taken.eq(0), begun.eq(0), self.time.eq(0)]
        former = Signal.like(shape.as_value())
        offered = Signal()
        m.d.sync += [offered.eq(boxes.valid & ~boxes.ready), former.eq(shape.as_value())]
        m.d.comb += [
            given(~offered | (former == shape.as_value())),
            always(~self.busy | (self.time < bound.of(self.beats))),
        ]


def _shape(layouts: TmaLayouts, most: int) -> Any:
    """Free fields of a box of at most so many beats."""
    size = range(most + 1)
    return data.StructLayout(
        {
            "address": layouts.address_bits,
            "stride": 2,
            "extent": range(most),
            "low": size,
            "high": size,
            "vectors": size,
            "head": range(2 * most + 1),
            "tail": range(2 * most + 1),
        }
    )


class _BoxesEnd(wiring.Component):
    """A box that is offered to an engine ends in time, whatever the other sides do.

    Parameters
    ----------
    engine : component
        Engine whose checked boxes are a stream.
    layouts : TmaLayouts
        Of the engine.
    outstanding : int
        Most bursts that it has outstanding.
    most : int
        Most beats of a box.
    bound : TimeBound
    free : int
        Free bits of the harness.
    """

    shape: Any
    free: Signal
    reached: Signal

    def __init__(
        self,
        engine: Any,
        layouts: TmaLayouts,
        *,
        outstanding: int,
        most: int,
        bound: TimeBound,
        free: int,
    ) -> None:
        self._outstanding = outstanding
        self._most = most
        self._bound = bound
        self._dut = engine
        super().__init__({"shape": In(_shape(layouts, most)), "free": In(free), "reached": Out(3)})

    def _end(
        self,
        m: Module,
        *,
        offers: Value,
        ended: Value,
        spare: int,
        waiting: Sequence[tuple[Value, Value]],
        third: Value,
    ) -> None:
        """Command, stalls and covers: ``third`` is the last of these.

        Boxes end within the bound less ``spare`` cycles; each pair of ``waiting`` is one that
        waits for the other.
        """
        command = _Command(
            m,
            self._dut.boxes,
            self.shape,
            offers=offers,
            ended=ended,
            most=self._most,
            bound=self._bound,
        )
        for waits, comes in waiting:
            self._bound.patient(m, waits & ~comes)
        full = command.beats == self._most
        m.d.comb += self.reached.eq(
            Cat(
                ended & full & command.taken,
                ended & (command.time + 1 + spare == self._bound.of(command.beats)),
                third,
            )
        )


class LoadsEnd(_BoxesEnd):
    """The last vector of a box leaves in time, whatever AR, R and the stream's taker do."""

    def __init__(
        self,
        *,
        width_bits: int,
        address_bits: int,
        landing_beats: int,
        outstanding: int,
        **sizes: Any,
    ) -> None:
        layouts = TmaLayouts(width_bits, address_bits, streams=1)
        engine = BoxLoads(layouts, landing_beats=landing_beats, outstanding=outstanding)
        super().__init__(engine, layouts, outstanding=outstanding, free=4, **sizes)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = self._dut
        axi: Any = dut.axi
        target: Any = dut.o_streams[0]
        offers, accepts, answers, leaves = self.free
        memory = ReadMemory(m, axi, accepts=accepts, answers=answers, outstanding=self._outstanding)
        m.d.comb += target.ready.eq(leaves)
        ended = target.valid & target.ready & target.payload.last
        waiting = (
            (axi.arvalid, axi.arready),
            (memory.open != 0, axi.rvalid),
            (target.valid, target.ready),
        )
        self._end(m, offers=offers, ended=ended, spare=0, waiting=waiting, third=memory.open[1])
        return m


class StoresEnd(_BoxesEnd):
    """A box is stored in time, whatever AW, W and B and the giver of the stream do."""

    def __init__(
        self, *, width_bits: int, address_bits: int, outstanding: int, **sizes: Any
    ) -> None:
        layouts = TmaLayouts(width_bits, address_bits, streams=1)
        engine = BoxStores(layouts, outstanding=outstanding)
        super().__init__(engine, layouts, outstanding=outstanding, free=5, **sizes)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = self._dut
        axi: Any = dut.axi
        source: Any = dut.i_streams[0]
        offers, gives, addresses, beats, answers = self.free
        memory = WriteMemory(
            m,
            axi,
            accepts_address=addresses,
            accepts_data=beats,
            answers=answers,
            outstanding=self._outstanding,
        )
        m.d.comb += source.valid.eq(gives)
        ended = dut.o_stored[0]
        waiting = (
            (axi.awvalid, axi.awready),
            (axi.wvalid, axi.wready),
            (memory.owes, axi.bvalid),
            (source.ready, source.valid),
        )
        wrote = Signal()
        m.d.sync += wrote.eq(~ended & (wrote | axi.wvalid))
        # The bound is that of one beat, of which AW, W and B may wait one after another.
        spare = 2 * self._bound.stall
        self._end(m, offers=offers, ended=ended, spare=spare, waiting=waiting, third=ended & ~wrote)
        return m
