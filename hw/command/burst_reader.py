"""Burst reader of an AXI4 read port: requests of consecutive beats, split into INCR bursts."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from hw.arch.launch import MAX_IMAGE_BYTES
from hw.lib.axi import Axi4ReadInterface, Axi4ReadSignature, full_width_size
from hw.lib.bursts import first_burst, issue_reads, longest_burst
from hw.lib.component import Component

__all__ = ["BEATS_BITS", "BurstReader", "beat_layout", "read_request_layout"]

#: Width of the beat count of one request: the most is an image.
BEATS_BITS = MAX_IMAGE_BYTES.bit_length()
_MOST_BURSTS = 15


def read_request_layout(width_bits: int, address_bits: int) -> data.StructLayout:
    """Layout of a request: ``beats`` (at least 1) from beat ``address`` on, counted in beats."""
    return data.StructLayout(
        {"address": address_bits - full_width_size(width_bits), "beats": BEATS_BITS}
    )


def beat_layout(width_bits: int) -> data.StructLayout:
    """Layout of a beat read: its data and response code."""
    return data.StructLayout({"data": width_bits, "response": 2})


class BurstReader(Component):
    """AXI4 burst reader: requests of consecutive beats in, one stream of beats out.

    Bursts are as long as 4 KiB boundaries allow, at most `MAX_BURST_BEATS`. One is put on AR per
    cycle while fewer than 15 are outstanding, whether or not earlier beats have been taken. The
    first address is on AR two cycles after its request. Beats come in the order of requests,
    directly from R.

    Parameters
    ----------
    width_bits : int
        Width of the data (64 to 1,024).
    address_bits : int
        Width of a byte address.

    Members
    -------
    i_request : stream of `read_request_layout`
    o_beat : stream of `beat_layout`
    i_stop : ``In(1)``
        Drops pending requests and drains outstanding bursts: no new burst starts, beats are
        dropped. Held until ``o_idle``.
    o_idle : ``Out(1)``
        No request is pending and no burst is outstanding.
    axi : ``Out(Axi4ReadSignature(...))``
    """

    i_request: stream.Interface
    o_beat: stream.Interface
    i_stop: Signal
    o_idle: Signal
    axi: Axi4ReadInterface

    def __init__(self, *, width_bits: int, address_bits: int) -> None:
        self._width_bits = width_bits
        self._address_bits = address_bits
        super().__init__(
            {
                "i_request": In(stream.Signature(read_request_layout(width_bits, address_bits))),
                "o_beat": Out(stream.Signature(beat_layout(width_bits))),
                "i_stop": In(1),
                "o_idle": Out(1),
                "axi": Out(Axi4ReadSignature(data_bits=width_bits, address_bits=address_bits)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        axi = self.axi
        request: Any = Signal.like(self.i_request.payload)
        left = request.beats
        cut = first_burst(m, request.address, left, longest_burst(self._width_bits))
        issue, in_flight = issue_reads(
            m,
            axi,
            offered=(left != 0) & ~self.i_stop,
            address=request.address,
            length=cut.beats - 1,
            most=_MOST_BURSTS,
        )
        with m.If(issue):
            m.d.sync += [
                request.address.eq(cut.later_address),
                left.eq(Mux(cut.ends, 0, cut.later_beats)),
            ]
        m.d.comb += self.i_request.ready.eq((left == 0) & ~self.i_stop)
        with m.If(self.i_request.valid & self.i_request.ready):
            m.d.sync += request.eq(self.i_request.payload)
        with m.If(self.i_stop):
            m.d.sync += left.eq(0)
        m.d.comb += [
            self.o_beat.valid.eq(axi.rvalid & ~self.i_stop),
            self.o_beat.payload.data.eq(axi.rdata),
            self.o_beat.payload.response.eq(axi.rresp),
            axi.rready.eq(self.o_beat.ready | self.i_stop),
            self.o_idle.eq((left == 0) & (in_flight == 0)),
        ]
        return m
