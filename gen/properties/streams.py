"""Properties of the stream blocks: elastic buffer, eager fork, ordered merge, packet filter."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from gen.properties.support import always, given, kept, offers_stay
from hw.arch.switch import rotation_layout
from hw.lib.packet_filter import PacketFilter
from hw.lib.stream import ElasticBuffer, vector_layout
from hw.mesh.fork import EagerFork
from hw.mesh.merge import OrderedMerge

__all__ = ["BufferIsAQueue", "FilterTakesItsOwn", "ForkGivesOnce", "MergeRotates"]


class BufferIsAQueue(wiring.Component):
    """An elastic buffer is a FIFO of two entries, whose offers stay until taken or cleared."""

    i: stream.Interface
    o: stream.Interface
    clear: Signal
    reached: Signal

    def __init__(self) -> None:
        signature = stream.Signature(2)
        super().__init__(
            {"i": In(signature), "o": Out(signature), "clear": In(1), "reached": Out(3)}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = ElasticBuffer(2)
        wiring.connect(m, wiring.flipped(self.i), dut.i_stream)
        wiring.connect(m, dut.o_stream, wiring.flipped(self.o))
        queue = Array([Signal(2, name=f"queue{index}") for index in range(3)])
        count = Signal(2)
        push = self.i.valid & self.i.ready
        pop = self.o.valid & self.o.ready
        m.d.sync += count.eq(count + push - pop)
        with m.If(pop):
            m.d.sync += [queue[0].eq(queue[1]), queue[1].eq(queue[2])]
        with m.If(push):
            m.d.sync += queue[(count - pop)[:2]].eq(self.i.payload)
        with m.If(self.clear):
            m.d.sync += count.eq(0)
        m.d.comb += [
            dut.i_clear.eq(self.clear),
            always(count <= 2),
            always(self.o.valid == (count != 0)),
            always(self.i.ready == (count != 2)),
            always((count == 0) | (self.o.payload == queue[0])),
            always((count != 2) | (dut.spare == queue[1])),
            self.reached.eq(
                Cat((count == 2) & pop, (count == 1) & push & pop, (count == 2) & self.clear)
            ),
        ]
        return m


class ForkGivesOnce(wiring.Component):
    """An eager fork gives each branch each payload once; no branch waits for another one."""

    valid: Signal
    feeds: Signal
    ready: Signal
    reached: Signal

    def __init__(self, branches: int) -> None:
        self._branches = branches
        super().__init__(
            {"valid": In(1), "feeds": In(branches), "ready": In(branches), "reached": Out(2)}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = EagerFork(branches=self._branches)
        got = Signal(self._branches)
        m.d.comb += [
            dut.i_valid.eq(self.valid),
            dut.feeds.eq(self.feeds),
            dut.i_ready.eq(self.ready),
            given(self.feeds.any()),
        ]
        kept(m, self.feeds)
        offers_stay(m, self.valid, dut.o_ready, self.feeds)
        takes = dut.o_valid & self.ready
        leaves = self.valid & dut.o_ready
        m.d.sync += got.eq(Mux(leaves, 0, got | takes))
        m.d.comb += [
            always(dut.done == got),
            always(got & ~self.feeds == 0),
            # A branch is offered exactly what it lacks, whatever its siblings do.
            always(dut.o_valid == Mux(self.valid, self.feeds & ~got, 0)),
            always(leaves == (self.valid & ((got | takes) == self.feeds))),
            self.reached.eq(Cat(leaves & (got != 0), leaves & (got == 0) & takes.all())),
        ]
        return m


class MergeRotates(wiring.Component):
    """A merge takes whole packets of its sources in the order of its rotation."""

    rotation: Any
    transfer: Signal
    last: Signal
    reached: Signal

    def __init__(self, sources: int, turns: int) -> None:
        self._sources = sources
        self._turns = turns
        super().__init__(
            {
                "rotation": In(rotation_layout(sources=sources, turns=turns)),
                "transfer": In(1),
                "last": In(1),
                "reached": Out(2),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = OrderedMerge(sources=self._sources, turns=self._turns)
        turns = [self.rotation[index] for index in range(self._turns)]
        for former, turn in zip(turns, turns[1:], strict=False):
            m.d.comb += given((turn.packets == 0) | (former.packets != 0))
        m.d.comb += [given(turn.source < self._sources) for turn in turns]
        m.d.comb += given(turns[0].packets != 0)
        kept(m, self.rotation.as_value())
        m.d.comb += [
            dut.rotation.eq(self.rotation),
            dut.i_transfer.eq(self.transfer),
            dut.i_last.eq(self.last),
        ]
        # Packets since the rotation began, and where each turn's share of it begins and ends.
        number = Signal(8)
        ends: list[Value] = []
        begins: list[Value] = []
        for turn in turns:
            begins.append(ends[-1] if ends else Signal(8, name="zero"))
            ends.append(begins[-1] + turn.packets)
        with m.If(self.transfer & self.last):
            m.d.sync += number.eq(Mux(number + 1 == ends[-1], 0, number + 1))
        for index, turn in enumerate(turns):
            inside = (number >= begins[index]) & (number < ends[index])
            m.d.comb += [
                always(~inside | (dut.o_source == turn.source)),
                always(~inside | (dut.at == index)),
                always(~inside | (number == begins[index] + dut.passed)),
            ]
        m.d.comb += [
            always(number < ends[-1]),
            self.reached.eq(Cat(number == begins[-1] + 1, (number == 2) & (turns[0].packets == 1))),
        ]
        return m


class FilterTakesItsOwn(wiring.Component):
    """A packet filter passes packet i exactly if i mod P is its index, and drops others at once."""

    i: stream.Interface
    ready: Signal
    modulus: Signal
    index: Signal
    reached: Signal

    def __init__(self, width_bits: int) -> None:
        self._dut = PacketFilter(width_bits=width_bits)
        super().__init__(
            {
                "i": In(stream.Signature(vector_layout(width_bits))),
                "ready": In(1),
                "modulus": In(5),
                "index": In(4),
                "reached": Out(2),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = self._dut
        wiring.connect(m, wiring.flipped(self.i), dut.i_stream)
        m.d.comb += [
            dut.modulus.eq(self.modulus),
            dut.index.eq(self.index),
            dut.o_stream.ready.eq(self.ready),
            given((self.modulus >= 1) & (self.modulus <= 16) & (self.index < self.modulus)),
        ]
        kept(m, Cat(self.modulus, self.index))
        # Packets until the next one of this unit, counted down: opposite to the filter's count.
        wait = Signal(5)
        begun = Signal()
        left = Mux(begun, wait, self.index)
        m.d.sync += begun.eq(1)
        closes = self.i.valid & self.i.ready & self.i.payload.last
        m.d.sync += wait.eq(Mux(closes, Mux(left == 0, self.modulus, left) - 1, left))
        own = left == 0
        passes = dut.o_stream.valid & self.ready
        m.d.comb += [
            always(left < self.modulus),
            always(dut.position == Mux(left <= self.index, 0, self.modulus) + self.index - left),
            always(dut.o_stream.valid == (self.i.valid & own)),
            always(self.i.ready == (self.ready | ~own)),
            always(~passes | (dut.o_stream.payload.as_value() == self.i.payload.as_value())),
            self.reached.eq(Cat(passes & (self.index == 2), closes & ~own & ~self.ready)),
        ]
        return m
