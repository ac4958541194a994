"""Checker of AXI4: a passive component that watches one port and tells which rules break."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, ValueLike
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from hw.arch.checks import require_int
from hw.arch.errors import BadInputError
from hw.lib.axi import (
    BOUNDARY_BYTES,
    MAX_BURST_BEATS,
    Axi4ReadSignature,
    Axi4Signature,
    Axi4WriteSignature,
    full_width_size,
)
from hw.lib.axi_rules import AxiRule
from hw.lib.component import Component

__all__ = ["AxiChecker"]

_FIXED, _WRAP, _RESERVED = 0b00, 0b10, 0b11
_EXOKAY = 0b01

#: Signals of each channel that stay until the handshake.
_ADDRESS = ("addr", "prot", "id", "len", "size", "burst", "cache", "qos")
_PAYLOADS = {
    "aw": _ADDRESS,
    "w": ("data", "strb", "last"),
    "b": ("id", "resp"),
    "ar": _ADDRESS,
    "r": ("id", "data", "resp", "last"),
}


class AxiChecker(Component):
    """Checker of AXI4: every wire of a port is an input, and each broken rule an output bit.

    A rule of AW, AR, R and B is judged in the cycle of its VALID. A beat of W is judged in the
    cycle of its VALID if the address of its burst is known, otherwise later, a beat per cycle.
    Read data may come out of order and interleaved between ids. See docs/axi.md.

    Parameters
    ----------
    data_bits, address_bits, id_bits : int
        As :class:`hw.lib.axi.Axi4Signature`.
    reads : int
        Most bursts outstanding on the read side (0 to 1,024); 0: the port has no read channels.
    writes : int
        The same of the write side.
    early_beats : int
        Most beats of W that wait for their AW (1 to 65,536).
    qos_bits : int
        As :class:`hw.lib.axi.Axi4Signature`.

    Members
    -------
    monitor : every signal of the port, as input
    o_breaks
        Bit n: the rule of :class:`hw.lib.axi_rules.AxiRule` with value n breaks in this cycle.
    o_broken
        Bit n: it has been broken in a cycle since reset.

    Raises
    ------
    BadInputError
        If a parameter lies outside its domain.
    """

    monitor: Any
    o_breaks: Signal
    o_broken: Signal

    def __init__(
        self,
        *,
        data_bits: int,
        address_bits: int,
        id_bits: int = 1,
        reads: int = 16,
        writes: int = 16,
        early_beats: int = 2 * MAX_BURST_BEATS,
        qos_bits: int = 0,
    ) -> None:
        require_int("Outstanding reads", reads, 0, 1024)
        require_int("Outstanding writes", writes, 0, 1024)
        require_int("Early beats", early_beats, 1, 1 << 16)
        if not reads and not writes:
            raise BadInputError("Outstanding reads or writes must be above 0, not both 0")
        kinds = {(True, True): Axi4Signature, (True, False): Axi4ReadSignature}
        kind = kinds.get((reads > 0, writes > 0), Axi4WriteSignature)
        port = kind(
            data_bits=data_bits, address_bits=address_bits, id_bits=id_bits, qos_bits=qos_bits
        )
        self._reads = reads
        self._writes = writes
        self._early_beats = early_beats
        self._id_bits = id_bits
        self._lane_bits = full_width_size(data_bits)
        watched = {name: Out(member.shape) for name, member in port.members.items()}
        super().__init__(
            {
                "monitor": In(wiring.Signature(watched)),
                "o_breaks": Out(len(AxiRule)),
                "o_broken": Out(len(AxiRule)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        begun = Signal()
        m.d.sync += [begun.eq(1), self.o_broken.eq(self.o_broken | self.o_breaks)]
        channels = ("aw", "w", "b") * (self._writes > 0) + ("ar", "r") * (self._reads > 0)
        for channel in channels:
            self._handshake(m, channel, begun)
        for channel in ("aw", "ar"):
            if channel in channels:
                self._address(m, channel)
        if self._writes:
            self._write_responses(m, begun)
            self._write_data(m)
        if self._reads:
            self._read_data(m, begun)
        return m

    def _breaks(self, m: Module, name: str, condition: ValueLike) -> None:
        m.d.comb += self.o_breaks[AxiRule[name].value].eq(condition)

    def _signals(self, channel: str, *names: str) -> list[Signal]:
        return [getattr(self.monitor, channel + name) for name in names]

    def _handshake(self, m: Module, channel: str, begun: Signal) -> None:
        """Rules of VALID, and of the payload that waits for READY."""
        valid, ready = self._signals(channel, "valid", "ready")
        there = self.monitor.signature.members
        names = [name for name in _PAYLOADS[channel] if channel + name in there]
        payload = Cat(self._signals(channel, *names))
        waits = Signal(name=f"{channel}_waits")
        offered = Signal(len(payload), name=f"{channel}_offered")
        m.d.sync += [waits.eq(valid & ~ready), offered.eq(payload)]
        name = channel.upper()
        self._breaks(m, f"{name}_RESET", valid & ~begun)
        self._breaks(m, f"{name}_HELD", waits & ~valid)
        self._breaks(m, f"{name}_STABLE", waits & valid & (payload != offered))

    def _address(self, m: Module, channel: str) -> None:
        """Rules of the structure of a burst."""
        names = ("valid", "addr", "len", "size", "burst", "cache")
        valid, address, length, size, burst, cache = self._signals(channel, *names)
        page_bits = (BOUNDARY_BYTES - 1).bit_length()
        within = Signal(page_bits, name=f"{channel}_within")
        unaligned = Signal(page_bits, name=f"{channel}_unaligned")
        last = Signal(page_bits + 4, name=f"{channel}_last")
        m.d.comb += [
            within.eq(address),
            unaligned.eq(_lower(within, size)),
            last.eq(within - unaligned + (length << size)),
        ]
        fixed, wraps, reserved = (burst == code for code in (_FIXED, _WRAP, _RESERVED))
        powers = (length == 1) | (length == 3) | (length == 7) | (length == 15)
        rules = {
            "SIZE": size > self._lane_bits,
            "BURST": reserved,
            "FIXED": fixed & (length > 15),
            "WRAP_LENGTH": wraps & ~powers,
            "WRAP_ALIGNED": wraps & (unaligned != 0),
            "BOUNDARY": ~fixed & ~wraps & ~reserved & (last >= BOUNDARY_BYTES),
            "CACHE": cache[2:].any() & ~cache[1],
        }
        for name, condition in rules.items():
            self._breaks(m, f"{channel.upper()}_{name}", valid & condition)

    def _read_data(self, m: Module, begun: Signal) -> None:
        """Rules of R, from the outstanding bursts in the order of AR."""
        port = self.monitor
        left = [Signal(8, name=f"read{index}_left") for index in range(self._reads)]
        ids = [Signal(self._id_bits, name=f"read{index}_id") for index in range(self._reads)]
        used = Signal(self._reads, name="reads_used")
        oldest, found = _oldest(m, "read", ids, used, port.rid)
        beats = Signal(8, name="read_beats_left")
        for index, each in enumerate(left):
            with m.If(oldest[index]):
                m.d.comb += beats.eq(each)
        enters, moves, leaves = Signal(), Signal(), Signal()
        m.d.comb += [
            enters.eq(port.arvalid & port.arready),
            moves.eq(port.rvalid & port.rready & found),
            leaves.eq(moves & port.rlast),
        ]
        self._breaks(m, "R_ID", port.rvalid & begun & ~found)
        self._breaks(m, "R_LAST", port.rvalid & found & (port.rlast != (beats == 0)))
        self._breaks(m, "R_EXOKAY", port.rvalid & (port.rresp == _EXOKAY))
        self._breaks(m, "READS_BOUND", enters & used.all() & ~leaves)
        counted = [
            Mux(oldest[i] & moves & (beats != 0), beats - 1, left[i]) for i in range(len(left))
        ]
        kept, lasting = _shifted(m, "read", used, oldest, leaves)
        free = (kept << 1 | 1) & ~kept
        m.d.sync += used.eq(kept | Mux(enters, free, 0))
        for index in range(self._reads):
            above = min(index + 1, self._reads - 1)
            new = enters & free[index]
            with m.If(new):
                m.d.sync += [ids[index].eq(port.arid), left[index].eq(port.arlen)]
            with m.Elif(lasting[index]):
                m.d.sync += left[index].eq(counted[index])
            with m.Else():
                m.d.sync += [ids[index].eq(ids[above]), left[index].eq(left[above])]

    def _write_responses(self, m: Module, begun: Signal) -> None:
        """Rules of B, from the unanswered bursts in the order of AW, the first ones with data."""
        port = self.monitor
        ids = [Signal(self._id_bits, name=f"write{index}_id") for index in range(self._writes)]
        used, done = Signal(self._writes, name="writes_used"), Signal(self._writes)
        #: Bursts whose last beat has come, but not their address.
        surplus = Signal(range(self._early_beats + 1))
        oldest, found = _oldest(m, "write", ids, used, port.bid)
        enters, leaves, ends, has_data = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            enters.eq(port.awvalid & port.awready),
            ends.eq(port.wvalid & port.wready & port.wlast),
            has_data.eq((oldest & done).any()),
            leaves.eq(port.bvalid & port.bready & found),
        ]
        self._breaks(m, "B_ID", port.bvalid & begun & ~found)
        self._breaks(m, "B_DATA", port.bvalid & found & ~has_data)
        self._breaks(m, "B_EXOKAY", port.bvalid & (port.bresp == _EXOKAY))
        self._breaks(m, "WRITES_BOUND", enters & used.all() & ~leaves)
        kept, lasting = _shifted(m, "write", used, oldest, leaves)
        free = (kept << 1 | 1) & ~kept
        later, whole = Signal(self._writes), Signal(self._writes)
        finishes = Signal()
        m.d.comb += [
            later.eq(kept | Mux(enters, free, 0)),
            whole.eq(Mux(leaves & has_data, done >> 1, done)),
            finishes.eq((ends | (surplus != 0)) & (later != whole)),
        ]
        m.d.sync += [
            used.eq(later),
            done.eq(Mux(finishes, whole << 1 | 1, whole)),
            surplus.eq(surplus + ends - finishes),
        ]
        for index in range(self._writes):
            with m.If(enters & free[index]):
                m.d.sync += ids[index].eq(port.awid)
            with m.Elif(~lasting[index]):
                m.d.sync += ids[index].eq(ids[min(index + 1, self._writes - 1)])

    def _write_data(self, m: Module) -> None:
        """Rules of W: each beat beside the address of its burst, whichever of them comes first."""
        port = self.monitor
        beat_layout = data.StructLayout({"strobes": len(port.wstrb), "last": 1})
        burst_layout = data.StructLayout(
            {"address": self._lane_bits, "length": 8, "size": 3, "kind": 2}
        )
        beat_now: Any = Signal(beat_layout)
        burst_now: Any = Signal(burst_layout)
        m.d.comb += [
            beat_now.strobes.eq(port.wstrb),
            beat_now.last.eq(port.wlast),
            burst_now.address.eq(port.awaddr),
            burst_now.length.eq(port.awlen),
            burst_now.size.eq(port.awsize),
            burst_now.kind.eq(port.awburst),
        ]
        # A response may overtake the judgement of early beats: then its address waits here too.
        waiting = self._writes + self._early_beats
        beats = _Waiting(m, "early_beats", beat_layout, self._early_beats, beat_now)
        bursts = _Waiting(m, "open_bursts", burst_layout, waiting, burst_now)
        address_known, judged, takes = Signal(), Signal(), Signal()
        accepted = Signal()
        number = Signal(8)
        m.d.comb += [
            accepted.eq(port.wvalid & port.wready),
            address_known.eq(bursts.some | (port.awvalid & port.awready)),
            judged.eq(address_known & (beats.some | port.wvalid)),
            takes.eq(address_known & (beats.some | accepted)),
        ]
        beat, burst = beats.oldest, bursts.oldest
        lost = beats.moves(m, enters=accepted, leaves=takes)
        bursts.moves(m, enters=port.awvalid & port.awready, leaves=takes & beat.last)
        with m.If(takes):
            m.d.sync += number.eq(Mux(beat.last, 0, number + 1))
        lanes = _lanes(burst, number, self._lane_bits)
        self._breaks(m, "EARLY_BOUND", lost)
        self._breaks(m, "W_LAST", judged & (beat.last != (number == burst.length)))
        self._breaks(m, "W_STROBES", judged & (beat.strobes & ~lanes).any())


class _Waiting:
    """Queue of what waits for its partner, or what comes now if nothing waits."""

    def __init__(
        self, m: Module, name: str, layout: data.StructLayout, depth: int, now: Any
    ) -> None:
        cells: Any = memory.Memory(shape=layout, depth=depth, init=[])
        m.submodules[name] = cells
        self._depth = depth
        self._now = now
        self._reader = cells.read_port(domain="comb")
        self._writer = cells.write_port()
        self._level = Signal(range(depth + 1), name=f"{name}_level")
        self.some: Value = self._level != 0
        self.oldest: Any = Signal(layout, name=f"{name}_oldest")
        m.d.comb += self.oldest.eq(Mux(self.some, self._reader.data.as_value(), now.as_value()))

    def moves(self, m: Module, *, enters: ValueLike, leaves: ValueLike) -> Signal:
        """Push of what comes now and pop of the oldest; returns whether the queue overflows."""
        pushed, popped, lost = Signal(), Signal(), Signal()
        m.d.comb += [
            popped.eq(leaves & self.some),
            pushed.eq(enters & ~(leaves & ~self.some)),
            lost.eq(pushed & ~popped & (self._level == self._depth)),
            self._writer.en.eq(pushed & ~lost),
            self._writer.data.eq(self._now),
        ]
        m.d.sync += self._level.eq(self._level + (pushed & ~lost) - popped)
        for port, turns in ((self._writer, pushed & ~lost), (self._reader, popped)):
            place = Signal.like(port.addr)
            m.d.comb += port.addr.eq(place)
            with m.If(turns):
                m.d.sync += place.eq(Mux(place == self._depth - 1, 0, place + 1))
        return lost


def _lower(address: Value, size: Value) -> Value:
    """Offset of an address within a block of 2 to the power of ``size`` bytes."""
    return address & ((Const(1) << size) - 1)


def _lanes(burst: Any, number: Value, lane_bits: int) -> Value:
    """Byte lanes of a beat of a burst, one bit each."""
    if not lane_bits:
        return Const(1, 1)
    inside = ((Const(1) << burst.size) - 1)[:lane_bits]
    container = (((burst.length + 1) << burst.size) - 1)[:lane_bits]
    start = burst.address - _lower(burst.address, burst.size)
    advanced = (start + (number << burst.size))[:lane_bits]
    wrapped = burst.address - (burst.address & container) + (advanced & container)
    moving = Mux(burst.kind == _WRAP, wrapped, Mux(number == 0, burst.address, advanced))
    first = Mux(burst.kind == _FIXED, burst.address, moving)[:lane_bits]
    lanes: Value = (Const(2) << (first | inside)) - (Const(1) << first)
    return lanes[: 1 << lane_bits]


def _oldest(
    m: Module, name: str, ids: list[Signal], used: Signal, wanted: Signal
) -> tuple[Signal, Signal]:
    """Oldest entry of an id, one-hot, and whether there is one."""
    same, oldest = Signal(len(ids), name=f"{name}_same"), Signal(len(ids), name=f"{name}_oldest")
    found = Signal(name=f"{name}_found")
    m.d.comb += [
        same.eq(Cat(each == wanted for each in ids) & used),
        oldest.eq(same & -same),
        found.eq(same.any()),
    ]
    return oldest, found


def _shifted(
    m: Module, name: str, used: Signal, oldest: Signal, leaves: Signal
) -> tuple[Signal, Signal]:
    """Entries in use after one has left, and the places that keep their entry."""
    kept, lasting = Signal(len(used), name=f"{name}_kept"), Signal(len(used), name=f"{name}_lasts")
    m.d.comb += [kept.eq(Mux(leaves, used >> 1, used)), lasting.eq(Mux(leaves, oldest - 1, -1))]
    return kept, lasting
