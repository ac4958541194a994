"""Descriptor cache: which descriptors of memory the descriptor file holds, and their fetches."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.hdl import Assert as Check
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arch.descriptor import DESCRIPTOR_BYTES, STORED_WORDS, WORD_BITS, descriptor_layout
from hw.arch.error_codes import TmaError
from hw.emit.shared import shared
from hw.lib.axi import RESP_DECERR, Axi4ReadInterface, Axi4ReadSignature
from hw.lib.bursts import issue_reads
from hw.lib.component import Component
from hw.tma.descriptor_file import descriptor_write_layout
from hw.tma.standalone.tickets import TICKETS
from hw.tma.tensor_end import TensorEnd

__all__ = ["DescriptorCache"]


class DescriptorCache(Component):
    """Descriptor cache: fully associative; one fetch at a time, with a check of the tensor's end.

    Byte 15 of a descriptor in the file is 1 if its tensor passes the address width, otherwise 0.

    Parameters
    ----------
    data_bits, address_bits : int
        Those of the AXI4 port.
    descriptors : int
        Entries.

    Members
    -------
    i_pointer
        Address of a descriptor.
    o_hit, o_entry
        Whether the file holds it, and where; in the same cycle.
    i_use
        A command that hits is given to the engine.
    i_invalidate
        Forget the descriptor, if the file holds it.
    i_fetch, o_busy
        Start to fetch the descriptor, unless busy.
    o_done, o_code
        High for one cycle when a fetch has ended; its code, 0 if the file holds the descriptor.
    i_freed : two ``entry`` with ``valid``
        A use of an entry is over.
    o_write : stream of :func:`hw.tma.descriptor_file.descriptor_write_layout`
        To the descriptor file, which is always ready.
    axi : read half of an AXI4 manager port
    i_drain
        Start no burst.
    o_idle
        No burst is open.
    """

    i_pointer: Signal
    o_hit: Signal
    o_entry: Signal
    i_use: Signal
    i_invalidate: Signal
    i_fetch: Signal
    o_busy: Signal
    o_done: Signal
    o_code: Signal
    i_freed: Sequence[Any]
    o_write: stream.Interface
    axi: Axi4ReadInterface
    i_drain: Signal
    o_idle: Signal

    def __init__(self, *, data_bits: int, address_bits: int, descriptors: int) -> None:
        self._data_bits = data_bits
        self._address_bits = address_bits
        self._descriptors = descriptors
        entry = range(descriptors)
        freed = wiring.Signature({"valid": Out(1), "entry": Out(entry)})
        port = Axi4ReadSignature(data_bits=data_bits, address_bits=address_bits)
        super().__init__(
            {
                "i_pointer": In(address_bits),
                "o_hit": Out(1),
                "o_entry": Out(entry),
                "i_use": In(1),
                "i_invalidate": In(1),
                "i_fetch": In(1),
                "o_busy": Out(1),
                "o_done": Out(1),
                "o_code": Out(8),
                "i_freed": In(freed).array(2),
                "o_write": Out(stream.Signature(descriptor_write_layout(descriptors))),
                "axi": Out(port),
                "i_drain": In(1),
                "o_idle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        known = Signal(self._descriptors)
        tags = [
            Signal(self._address_bits, name=f"tag{number}") for number in range(self._descriptors)
        ]
        hits = Signal(self._descriptors)
        m.d.comb += [
            hits.eq(Cat(tag == self.i_pointer for tag in tags) & known),
            self.o_hit.eq(hits.any()),
        ]
        for number in range(self._descriptors):
            with m.If(hits[number]):
                m.d.comb += self.o_entry.eq(number)
        forgotten = Mux(self.i_invalidate, hits, 0)
        m.d.sync += known.eq(known & ~forgotten)

        used = self._count_uses(m)
        self._fetch(m, known, tags, used)
        return m

    def _count_uses(self, m: Module) -> Signal:
        """Whether each entry is used by a command that the engine has not read yet."""
        used = Signal(self._descriptors)
        for number in range(self._descriptors):
            # Each side has fewer commands than this between its tags and its reports.
            count = Signal(range(2 * TICKETS), name=f"uses{number}")
            freed = [port.valid & (port.entry == number) for port in self.i_freed]
            m.d.sync += count.eq(
                count + (self.i_use & (self.o_entry == number)) - freed[0] - freed[1]
            )
            m.d.comb += used[number].eq(count != 0)
            with m.If(freed[0] | freed[1]):
                m.d.sync += Check(used[number], "an entry is freed that no command uses")
        return used

    def _fetch(self, m: Module, known: Signal, tags: list[Signal], used: Signal) -> None:
        """Choose an entry that nobody uses, read 128 bytes and write them to the file."""
        beat_bytes = self._data_bits // 8
        beats = DESCRIPTOR_BYTES // beat_bytes
        pointer = Signal(self._address_bits)
        victim = Signal(range(self._descriptors))
        choosing = Signal()
        chosen = Signal()
        reading = Signal()
        # A use of this cycle is not counted yet.
        taken = self.i_use & (self.o_entry == victim)
        free = Array(~used[number] for number in range(self._descriptors))[victim] & ~taken
        following = Mux(victim == self._descriptors - 1, 0, victim + 1)
        end = TensorEnd(address_bits=self._address_bits)
        m.submodules.end = shared(end)
        m.d.comb += self.o_busy.eq(
            choosing | chosen | reading | end.i_start | end.o_busy | self.o_done
        )
        with m.If(self.i_fetch & ~self.o_busy):
            m.d.sync += [choosing.eq(1), pointer.eq(self.i_pointer)]
        with m.If(choosing):
            with m.If(free):
                m.d.sync += [
                    choosing.eq(0),
                    chosen.eq(1),
                    known.bit_select(victim, 1).eq(0),
                ]
            with m.Else():
                m.d.sync += victim.eq(following)
        issue, in_flight = issue_reads(
            m,
            self.axi,
            offered=chosen & ~self.i_drain,
            address=pointer >> (beat_bytes.bit_length() - 1),
            length=Const(beats - 1, 8),
            most=1,
        )
        with m.If(issue):
            m.d.sync += [chosen.eq(0), reading.eq(1)]

        axi = self.axi
        words = Signal(DESCRIPTOR_BYTES * 8)
        code = Signal(8)
        failed = Signal(8)
        arrived = Signal()
        ended = Signal()
        write: Any = self.o_write.payload
        stored = STORED_WORDS * WORD_BITS
        m.d.comb += [
            self.o_idle.eq(in_flight == 0),
            axi.rready.eq(1),
            arrived.eq(axi.rvalid & axi.rready),
            ended.eq(arrived & axi.rlast),
            failed.eq(code),
        ]
        with m.If((code == TmaError.NONE.value) & axi.rresp[1]):
            decerr = axi.rresp == RESP_DECERR
            m.d.comb += failed.eq(
                Mux(decerr, TmaError.READ_DECERR.value, TmaError.READ_SLVERR.value)
            )
        with m.If(arrived):
            m.d.sync += [
                words.eq(Cat(words, axi.rdata)[self._data_bits :]),
                code.eq(Mux(axi.rlast, TmaError.NONE.value, failed)),
            ]
        refused = ended & (failed != TmaError.NONE.value)
        m.d.sync += [
            end.i_start.eq(ended & ~refused),
            self.o_done.eq(refused | end.o_ends),
            self.o_code.eq(Mux(refused, failed, 0)),
        ]
        # The flag of the file takes the place of a byte that is ignored in memory.
        flag = descriptor_layout["reserved_15"]
        flagged = Cat(
            words[: flag.offset], end.o_passes, Const(0, flag.width - 1), words[flag.offset + 8 :]
        )
        m.d.comb += end.i_descriptor.eq(words)
        succeeded = self.o_done & (self.o_code == TmaError.NONE.value)
        m.d.comb += [
            self.o_write.valid.eq(succeeded),
            write.index.eq(victim),
            *(
                write.words[number].eq(flagged[:stored].word_select(number, WORD_BITS))
                for number in range(STORED_WORDS)
            ),
        ]
        with m.If(ended):
            m.d.sync += reading.eq(0)
        with m.If(self.o_done):
            m.d.sync += victim.eq(following)
        with m.If(succeeded):
            m.d.sync += known.bit_select(victim, 1).eq(1)
            for number, tag in enumerate(tags):
                with m.If(victim == number):
                    m.d.sync += tag.eq(pointer)
