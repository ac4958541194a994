"""Counters of the traffic of one AXI4 port: bytes, bursts and stalls."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hw.lib.component import Component

__all__ = ["TRAFFIC_COUNTS", "TrafficCounters", "traffic_layout"]

#: Counts by name, as the registers name them.
TRAFFIC_COUNTS = (
    "READ_BYTES",
    "WRITTEN_BYTES",
    "READ_BURSTS",
    "WRITE_BURSTS",
    "READ_STALLS",
    "WRITE_STALLS",
)
#: Width of a count.
_BITS = 48

#: Layout of the counts, 48 bits each; they wrap.
traffic_layout = data.StructLayout(dict.fromkeys(TRAFFIC_COUNTS, _BITS))


class TrafficCounters(Component):
    """Counters of what an AXI4 port moves.

    Bytes are those of whole beats, as the bus carries them. A stall is a cycle in which the manager
    offers an address, or data, that memory does not take.

    Parameters
    ----------
    width_bits : int
        Width of AXI's data, a power of two.

    Members
    -------
    i_read, i_write
        Handshakes of a channel in this cycle: ``valid`` and ``ready`` of AR, R, and of AW, W.
    i_clear
        Set every count to 0.
    o_counts : :data:`traffic_layout`
    """

    i_read: Any
    i_write: Any
    i_clear: Signal
    o_counts: Any

    def __init__(self, *, width_bits: int) -> None:
        self._width_bits = width_bits
        handshake = data.StructLayout({"valid": 1, "ready": 1})
        channels = data.StructLayout({"address": handshake, "data": handshake})
        super().__init__(
            {
                "i_read": In(channels),
                "i_write": In(channels),
                "i_clear": In(1),
                "o_counts": Out(traffic_layout),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        read, write = self.i_read, self.i_write
        shift = (self._width_bits // 8).bit_length() - 1

        def happens(channel: Any) -> Any:
            return channel.valid & channel.ready

        def waits(channel: Any) -> Any:
            return channel.valid & ~channel.ready

        events = (
            happens(read.data),
            happens(write.data),
            happens(read.address),
            happens(write.address),
            waits(read.address),
            waits(write.address) | waits(write.data),
        )
        for name, event in zip(TRAFFIC_COUNTS, events, strict=True):
            # Of bytes, the bits above those within a beat are counted.
            unit = shift if name.endswith("BYTES") else 0
            happened, count = Signal(name=f"happens_{name}"), Signal(_BITS - unit, name=name)
            m.d.sync += happened.eq(event)
            m.d.comb += self.o_counts[name].eq(count << unit)
            with m.If(self.i_clear):
                m.d.sync += [count.eq(0), happened.eq(0)]
            with m.Elif(happened):
                m.d.sync += count.eq(count + 1)
        return m
