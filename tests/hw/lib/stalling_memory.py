"""An AXI4 memory in gates that pauses at random, for native models of units with a memory port."""

from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal, unsigned
from amaranth.lib import memory, stream
from amaranth.lib.wiring import In, Out

from hw.lib.axi import Axi4Signature
from hw.lib.component import Component
from hw.lib.fifo import Queue

__all__ = ["WORDS_AT_ONCE", "StallingMemory"]

#: Bursts that wait in each direction.
_BURSTS = 16
#: Words that are filled in, or given back, in one cycle.
WORDS_AT_ONCE = 8


class StallingMemory(Component):
    """Memory from address 0 behind one AXI4 port; each channel waits at random.

    Parameters
    ----------
    data_bits, address_bits : int
        Of the port. A burst that leaves the memory sets ``o_outside``.
    words : int
        Words of ``data_bits``, a power of two.

    Members
    -------
    axi : ``In(Axi4Signature(...))``
    i_fill, o_dump : streams of `WORDS_AT_ONCE` words
        The content before, and after ``i_dump``; each from the first word to the last.
    o_filled : ``Out(1)``
        Every word has been filled in.
    i_seed, i_pause : ``In(64)``, ``In(8)``
        Seed of the pauses, and in how many of 256 cycles a channel begins none.
    """

    def __init__(self, *, data_bits: int, address_bits: int, words: int) -> None:
        self._sizes = data_bits, address_bits, words
        row = stream.Signature(WORDS_AT_ONCE * data_bits)
        super().__init__(
            {
                "axi": In(Axi4Signature(data_bits=data_bits, address_bits=address_bits)),
                "i_fill": In(row),
                "o_dump": Out(row),
                "i_dump": In(1),
                "o_filled": Out(1),
                "o_outside": Out(1),
                "i_seed": In(64),
                "i_pause": In(8),
            }
        )

    @property
    def parameters(self) -> dict[str, Any]:
        """Sizes of the port and of the memory."""
        return dict(zip(("data_bits", "address_bits", "words"), self._sizes, strict=True))

    def _channels(self, m: Module) -> list[Signal]:
        """A signal for each of AR, R, AW, W, B: the channel may begin a transfer in this cycle."""
        seeded, state = Signal(), Signal(64)
        mixed = state
        for step, left in ((13, True), (7, False), (17, True)):
            following = Signal(64)
            m.d.comb += following.eq(mixed ^ (mixed << step if left else mixed >> step))
            mixed = following
        m.d.sync += [seeded.eq(1), state.eq(self.i_seed | 1)]
        with m.If(seeded):
            m.d.sync += state.eq(mixed)
        may = [Signal(name=f"may_{channel}") for channel in ("ar", "r", "aw", "w", "b")]
        m.d.comb += [
            each.eq(state[8 * n : 8 * n + 8] >= self.i_pause) for n, each in enumerate(may)
        ]
        return may

    def _burst(self, m: Module, channel: str, may: Signal, ends: Signal) -> tuple[Signal, Any]:
        """Queue the bursts of a channel; returns the address of a beat's word, and the burst."""
        axi: Any = self.axi
        data_bits, address_bits, words = self._sizes
        shift = (data_bits // 8).bit_length() - 1
        bursts: Any = Queue(address_bits + 8, depth=_BURSTS)
        m.submodules[channel] = bursts
        valid, ready = getattr(axi, channel + "valid"), getattr(axi, channel + "ready")
        address, length = getattr(axi, channel + "addr"), getattr(axi, channel + "len")
        m.d.comb += [
            bursts.i_stream.payload.eq(Cat(length, address)),
            bursts.i_stream.valid.eq(valid & may),
            ready.eq(bursts.i_stream.ready & may),
            bursts.o_stream.ready.eq(ends),
        ]
        word = address >> shift
        with m.If(valid & ((word + length) >= words)):
            m.d.sync += self.o_outside.eq(1)
        return bursts.o_stream.payload[8 + shift :], bursts.o_stream

    def elaborate(self, platform: object) -> Module:
        m = Module()
        axi: Any = self.axi
        data_bits, _, words = self._sizes
        may_ar, may_r, may_aw, may_w, may_b = self._channels(m)
        depth, low = words // WORDS_AT_ONCE, (WORDS_AT_ONCE - 1).bit_length()
        reads, writes = [], []
        for bank in range(WORDS_AT_ONCE):
            cells: Any = memory.Memory(shape=unsigned(data_bits), depth=depth, init=[])
            m.submodules[f"bank_{bank}"] = cells
            reads.append(cells.read_port(domain="comb"))
            writes.append(cells.write_port(granularity=8))
        filled, dumped = Signal(range(depth + 1)), Signal(range(depth + 1))
        dumps = self.i_dump & (dumped != depth)
        m.d.comb += self.o_filled.eq(filled == depth)

        # Reads: one beat after another; one that is offered stays.
        beat, held = Signal(8), Signal()
        takes, ends = axi.rvalid & axi.rready, Signal()
        first, burst = self._burst(m, "ar", may_ar, ends)
        place = first + beat
        m.d.comb += [
            reads[bank].addr.eq(Mux(dumps, dumped, place >> low)) for bank in range(len(reads))
        ]
        m.d.comb += [
            axi.rvalid.eq(burst.valid & (may_r | held)),
            axi.rdata.eq(Array(each.data for each in reads)[place[:low]]),
            axi.rlast.eq(beat == burst.payload[:8]),
            ends.eq(takes & axi.rlast),
        ]
        m.d.sync += held.eq(axi.rvalid & ~axi.rready)
        with m.If(takes):
            m.d.sync += beat.eq(beat + 1)
        with m.If(ends):
            m.d.sync += beat.eq(0)

        # Writes: beats after their address; a response for each burst.
        stored, ended, owed, answers = Signal(8), Signal(), Signal(16), Signal()
        target, order = self._burst(m, "aw", may_aw, ended)
        m.d.comb += [
            axi.wready.eq(order.valid & may_w),
            ended.eq(axi.wvalid & axi.wready & axi.wlast),
            axi.bvalid.eq((owed != 0) & (may_b | answers)),
        ]
        m.d.sync += [
            answers.eq(axi.bvalid & ~axi.bready),
            owed.eq(owed + ended - (axi.bvalid & axi.bready)),
        ]
        spot = target + stored
        stores, fills = axi.wvalid & axi.wready, self.i_fill.valid & ~self.o_filled
        m.d.comb += self.i_fill.ready.eq(~self.o_filled)
        for bank, port in enumerate(writes):
            with m.If(fills):
                m.d.comb += [
                    port.addr.eq(filled),
                    port.data.eq(self.i_fill.payload.word_select(bank, data_bits)),
                    port.en.eq(~0),
                ]
            with m.Elif(stores & (spot[:low] == bank)):
                m.d.comb += [
                    port.addr.eq(spot >> low),
                    port.data.eq(axi.wdata),
                    port.en.eq(axi.wstrb),
                ]
        m.d.sync += [filled.eq(filled + fills), stored.eq(stored + stores)]
        with m.If(ended):
            m.d.sync += stored.eq(0)

        m.d.comb += [
            self.o_dump.payload.eq(Cat(each.data for each in reads)),
            self.o_dump.valid.eq(dumps),
        ]
        m.d.sync += dumped.eq(dumped + (dumps & self.o_dump.ready))
        return m
