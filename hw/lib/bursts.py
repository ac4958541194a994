"""AXI read and write bursts: consecutive beats cut at 4 KiB, reads issued up to a limit."""

from typing import NamedTuple

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from hw.lib.axi import (
    BOUNDARY_BYTES,
    MAX_BURST_BEATS,
    Axi4ReadInterface,
    full_width_size,
    read_constants,
)

__all__ = ["FirstBurst", "first_burst", "issue_reads", "longest_burst"]


def longest_burst(data_bits: int) -> int:
    """Beats of the longest aligned burst: `MAX_BURST_BEATS`, or up to the boundary."""
    return min(MAX_BURST_BEATS, BOUNDARY_BYTES // (data_bits // 8))


class FirstBurst(NamedTuple):
    """First burst of consecutive beats, and what it leaves of them."""

    beats: Value
    #: It is the last one; then address and number of later beats mean nothing.
    ends: Signal
    later_address: Value
    later_beats: Value


def first_burst(m: Module, address: Signal, beats: Signal, most: int) -> FirstBurst:
    """Cut consecutive beats at the next multiple of ``most`` beats, a power of two; combinational.

    ``address`` counts beats. No burst crosses a boundary that is a multiple of ``most``.
    """
    within = (most - 1).bit_length()
    # Beats to the next boundary.
    room = Signal(range(most + 1))
    ends = Signal()
    m.d.comb += [room.eq(Const(most) - address[:within]), ends.eq(beats <= room)]
    return FirstBurst(Mux(ends, beats, room), ends, address + room, beats - room)


def issue_reads(
    m: Module,
    axi: Axi4ReadInterface,
    *,
    offered: Value,
    address: Value,
    length: Value,
    most: int,
    id: Value | None = None,
) -> tuple[Signal, Signal]:
    """Put bursts on AR, one per cycle, while fewer than ``most`` are outstanding.

    A burst is ``address`` in beats and ``length`` in beats minus one, and of the ``id``, or of ID
    0 without one; it is on AR one cycle after it is taken.

    Returns
    -------
    issue, in_flight : Signal
        The burst offered is taken in this cycle; bursts taken whose last beat has not come.
    """
    issue = Signal()
    in_flight = Signal(range(most + 1))
    size = full_width_size(len(axi.rdata))
    shown = None if id is None else Signal.like(axi.arid, name="shown_id")
    m.d.comb += read_constants(axi, shown)
    m.d.comb += issue.eq(offered & (~axi.arvalid | axi.arready) & (in_flight != most))
    m.d.sync += in_flight.eq(in_flight + issue - (axi.rvalid & axi.rready & axi.rlast))
    with m.If(issue):
        m.d.sync += [
            axi.arvalid.eq(1),
            axi.araddr.eq(Cat(Const(0, size), address)),
            axi.arlen.eq(length),
        ]
        if shown is not None:
            m.d.sync += shown.eq(id)
    with m.Elif(axi.arready):
        m.d.sync += axi.arvalid.eq(0)
    return issue, in_flight
