"""Reducing port of a TMA unit: its burst reducer, whose reads share the ID of descriptors."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.arch.tma_sizes import TmaSizes
from hw.emit.shared import shared
from hw.lib.axi import Axi4Interface, Axi4ReadInterface, Axi4ReadSignature, Axi4Signature
from hw.lib.component import Component
from hw.tma.load import id_bits_of
from hw.tma.reduction.burst_reducer import BurstReducer
from hw.tma.reduction.read_turns import ReadTurns
from hw.tma.reduction.reduction_fields import reduction_layout
from hw.tma.reduction.reduction_interlock import interlock_signature

__all__ = ["ReducingPort"]


class ReducingPort(Component):
    """Reducing port: stands between engine and descriptor cache of a unit and its memory port.

    Parameters
    ----------
    sizes : TmaSizes

    Members
    -------
    i_boxes : AXI4 port, seen from memory
        Of the engine.
    i_reduction, o_failed_read, interlock, i_drain
        As of :class:`hw.tma.reduction.burst_reducer.BurstReducer`.
    i_descriptors : read half of an AXI4 port, seen from memory
    boxes : AXI4 manager port
        Loads as they are, and stores.
    descriptors : read half of an AXI4 manager port
        Reads of descriptors and of reducing bursts, one at a time.
    """

    i_boxes: Axi4Interface
    i_reduction: Any
    o_failed_read: Signal
    i_descriptors: Axi4ReadInterface
    boxes: Axi4Interface
    descriptors: Axi4ReadInterface
    interlock: Any
    i_drain: Signal

    def __init__(self, sizes: TmaSizes) -> None:
        self._outstanding = sizes.outstanding
        self._port = {"data_bits": sizes.width_bits, "address_bits": sizes.address_bits}
        boxes = Axi4Signature(**self._port, id_bits=id_bits_of(sizes.read_ids))
        descriptors = Axi4ReadSignature(**self._port)
        super().__init__(
            {
                "i_boxes": In(boxes),
                "i_reduction": In(reduction_layout),
                "o_failed_read": Out(1),
                "i_descriptors": In(descriptors),
                "boxes": Out(boxes),
                "descriptors": Out(descriptors),
                "interlock": Out(interlock_signature(sizes.address_bits)),
                "i_drain": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        reducer = BurstReducer(**self._port, outstanding=self._outstanding)
        turns = ReadTurns(**self._port)
        m.submodules.reducer = shared(reducer)
        m.submodules.turns = shared(turns)
        for source, target in (
            (wiring.flipped(self.i_descriptors), turns.i_first),
            (reducer.reads, turns.i_second),
            (turns.axi, wiring.flipped(self.descriptors)),
            (reducer.interlock, wiring.flipped(self.interlock)),
        ):
            wiring.connect(m, source, target)
        engine, boxes = self.i_boxes, self.boxes
        for wire, member in boxes.signature.members.items():
            inner, outer = getattr(engine, wire), getattr(boxes, wire)
            pairs = [(inner, outer)]
            if wire in reducer.writes.signature.members:
                stores, writes = getattr(reducer.i_stores, wire), getattr(reducer.writes, wire)
                pairs = [(inner, stores), (writes, outer)]
            for one, other in pairs:
                m.d.comb += other.eq(one) if member.flow == Out else one.eq(other)
        m.d.comb += [
            reducer.i_reduction.eq(self.i_reduction),
            reducer.i_drain.eq(self.i_drain),
            self.o_failed_read.eq(reducer.o_failed_read),
        ]
        return m
