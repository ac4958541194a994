"""Launch fetcher: reads list entries, arguments and images, one kernel ahead of execution."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arch.error_codes import LaunchError, ReadPhase
from hw.arch.image import IMAGE_MAGIC, IMAGE_VERSION
from hw.arch.launch import (
    ENTRY_BYTES,
    ENTRY_NUMBER_BITS,
    MAX_ARGUMENTS,
    MAX_IMAGE_BYTES,
    alignment_bytes,
    entry_layout,
)
from hw.command.argument_reader import ArgumentReader, argument_write_layout
from hw.command.burst_reader import BEATS_BITS, beat_layout, read_request_layout
from hw.command.host_port import error_layout
from hw.command.run_writer import RunWriter
from hw.lib.axi import RESP_DECERR, RESP_OKAY, full_width_size
from hw.lib.component import Component
from hw.lib.crc32 import Crc32

__all__ = ["LaunchFetcher"]


class LaunchFetcher(Component):
    """Launch fetcher: reads and checks list entries, and writes images to the segments' shadows.

    An entry costs two round trips to memory: its 64 bytes, then arguments and image back to back.
    Throughput is one image beat or one argument per cycle. The next entry is fetched after this
    entry's image has been loaded from the shadow (``i_taken``), so while this one runs, or, if the
    entry says so, after its kernel has ended.

    Parameters
    ----------
    width_bits : int
        Width of the memory port and of a segment's words.
    segments : tuple of tuple of int
        Words of every segment of the fabric, by row.
    address_bits : int
        Width of a byte address.
    fingerprint : int
        Configuration fingerprint of this chip.

    Members
    -------
    i_start, i_list_address, i_list_entries : ``In(1)``, ``In(64)``, ``In(16)``
        Starts a launch of that list; only while none is in progress.
    i_stop : ``In(1)``
        Ends it in any state. The parent stops the reader as well, until that is idle.
    i_taken : ``In(1)``
        The image has been loaded from the shadows; only while ``o_ready``.
    i_ended : ``In(1)``
        The kernel that was taken has ended.
    o_decoded : ``Out(1)``
        ``o_entry`` is valid: the entry has been checked and its image not yet loaded.
    o_entry, o_entry_index, o_last : ``Out(entry_layout)``, ``Out(16)``, ``Out(1)``
        The entry, its index in the list, and whether it is the last.
    o_ready : ``Out(1)``
        The whole image is in the shadows from the next cycle on, and its checksum is right.
    o_failed, o_error : ``Out(1)``, ``Out(error_layout)``
        The entry cannot run; held until ``i_stop``.
    o_request, i_beat : streams to and from the burst reader
    o_argument : stream of `argument_write_layout`
    o_begin : ``Out(1)``
        The shadows have no word any more; those of the next image follow.
    o_row, o_segment, o_word, o_data
        A word for a shadow, as of `RunWriter`.
    """

    i_start: Signal
    i_list_address: Signal
    i_list_entries: Signal
    i_stop: Signal
    i_taken: Signal
    i_ended: Signal
    o_decoded: Signal
    o_entry: data.View[data.StructLayout]
    o_entry_index: Signal
    o_last: Signal
    o_ready: Signal
    o_failed: Signal
    o_error: data.View[data.StructLayout]
    o_request: stream.Interface
    i_beat: stream.Interface
    o_argument: stream.Interface
    o_begin: Signal
    o_row: Signal
    o_segment: Signal
    o_word: Signal
    o_data: Signal

    def __init__(
        self,
        *,
        width_bits: int,
        segments: tuple[tuple[int, ...], ...],
        address_bits: int,
        fingerprint: int,
    ) -> None:
        self._width_bits = width_bits
        self._address_bits = address_bits
        self._fingerprint = fingerprint
        self._arguments = ArgumentReader(width_bits=width_bits)
        self._writer = RunWriter(width_bits=width_bits, segments=segments)
        self._checksum = Crc32(width_bits=width_bits)
        # Position in the launch; the beats still to come in the current phase, and that phase.
        self._list_address = Signal(address_bits - full_width_size(width_bits))
        self._entries_left = Signal(ENTRY_NUMBER_BITS)
        self._beats_left = Signal(BEATS_BITS)
        self._phase = Signal(ReadPhase)
        self._takes = Signal()
        self._refusal = Signal(LaunchError)
        super().__init__(
            {
                "i_start": In(1),
                "i_list_address": In(64),
                "i_list_entries": In(ENTRY_NUMBER_BITS),
                "i_stop": In(1),
                "i_taken": In(1),
                "i_ended": In(1),
                "o_decoded": Out(1),
                "o_entry": Out(entry_layout),
                "o_entry_index": Out(ENTRY_NUMBER_BITS),
                "o_last": Out(1),
                "o_ready": Out(1),
                "o_failed": Out(1),
                "o_error": Out(error_layout),
                "o_request": Out(stream.Signature(read_request_layout(width_bits, address_bits))),
                "i_beat": In(stream.Signature(beat_layout(width_bits))),
                "o_argument": Out(stream.Signature(argument_write_layout())),
                "o_begin": Out(1),
                **{
                    name: Out(len(getattr(self._writer, name)))
                    for name in ("o_row", "o_segment", "o_word", "o_data")
                },
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.arguments = arguments = self._arguments
        m.submodules.writer = writer = self._writer
        m.submodules.checksum = checksum = self._checksum
        wiring.connect(m, arguments.o_argument, wiring.flipped(self.o_argument))
        m.d.comb += [
            self._takes.eq(self.i_beat.valid & self.i_beat.ready),
            self.o_last.eq(self._entries_left == 1),
            arguments.i_count.eq(self.o_entry.argument_count),
            arguments.i_beat.payload.eq(self.i_beat.payload),
            writer.i_start.eq(self.o_begin),
            writer.i_data.eq(self.i_beat.payload.data),
            checksum.i_start.eq(self.o_begin),
            checksum.i_valid.eq(writer.i_valid),
            checksum.i_data.eq(self.i_beat.payload.data),
            self.o_row.eq(writer.o_row),
            self.o_segment.eq(writer.o_segment),
            self.o_word.eq(writer.o_word),
            self.o_data.eq(writer.o_data),
        ]
        with m.FSM():
            self._start_states(m)
            self._entry_states(m)
            self._request_states(m)
            self._argument_state(m)
            self._image_states(m)
            with m.State("FAILED"):
                # Beats still to come are dropped: the running kernel may take long to end.
                m.d.comb += [self.o_failed.eq(1), self.i_beat.ready.eq(1)]
                with m.If(self.i_stop):
                    m.next = "IDLE"
        return m

    @contextmanager
    def _state(self, m: Module, name: str) -> Iterator[None]:
        """State that is left on an error and on a stop."""
        response = self.i_beat.payload.response
        with m.State(name):
            yield
            with m.If(self._refusal != LaunchError.NONE):
                m.d.sync += [self.o_error.code.eq(self._refusal), self.o_error.detail.eq(0)]
                m.next = "FAILED"
            with m.If(self._takes & (response != RESP_OKAY)):
                code = Mux(
                    response == RESP_DECERR, LaunchError.READ_DECERR, LaunchError.READ_SLVERR
                )
                m.d.sync += [self.o_error.code.eq(code), self.o_error.detail.eq(self._phase)]
                m.next = "FAILED"
            with m.If(self.i_stop):
                m.next = "IDLE"

    def _refuse(self, m: Module, *rules: tuple[LaunchError, Any]) -> None:
        """Set the code of the first rule that is broken."""
        for code, broken in reversed(rules):
            with m.If(broken):
                m.d.comb += self._refusal.eq(code)

    def _misplaced(self, address: Any) -> Value:
        """Whether an address is misaligned or beyond memory."""
        low = alignment_bytes(self._width_bits).bit_length() - 1
        return Cat(address[:low], address[self._address_bits :]).any()

    def _beat_address(self, address: Any) -> Value:
        """Address in beats of an aligned byte address."""
        beats: Value = address[full_width_size(self._width_bits) : self._address_bits]
        return beats

    @property
    def _image_beats(self) -> Value:
        beats: Value = self.o_entry.image_bytes[full_width_size(self._width_bits) : BEATS_BITS]
        return beats

    def _request(self, m: Module, address: Value, beats: Any) -> None:
        """Offer a request to the burst reader."""
        m.d.comb += [
            self.o_request.valid.eq(1),
            self.o_request.payload.address.eq(address),
            self.o_request.payload.beats.eq(beats),
        ]

    def _start_states(self, m: Module) -> None:
        with self._state(m, "IDLE"):
            m.d.sync += [
                self._list_address.eq(self._beat_address(self.i_list_address)),
                self._entries_left.eq(self.i_list_entries),
                self.o_entry_index.eq(0),
            ]
            with m.If(self.i_start):
                self._refuse(
                    m,
                    (LaunchError.NO_ENTRIES, self.i_list_entries == 0),
                    (LaunchError.LIST_ADDRESS, self._misplaced(self.i_list_address)),
                )
                m.next = "REQUEST_ENTRY"

    def _entry_states(self, m: Module) -> None:
        entry, header = self.o_entry, self.o_entry.header
        beats = max(1, ENTRY_BYTES * 8 // self._width_bits)
        with self._state(m, "REQUEST_ENTRY"):
            self._request(m, self._list_address, beats)
            m.d.sync += [self._phase.eq(ReadPhase.LIST), self._beats_left.eq(beats)]
            with m.If(self.o_request.ready):
                m.next = "ENTRY"
        with self._state(m, "ENTRY"):
            # From its high end; it may be narrower than a beat.
            register = Value.cast(entry)
            m.d.comb += self.i_beat.ready.eq(1)
            with m.If(self._takes):
                m.d.sync += [
                    register.eq(Cat(register[self._width_bits :], self.i_beat.payload.data)),
                    self._beats_left.eq(self._beats_left - 1),
                ]
                with m.If(self._beats_left == 1):
                    m.next = "CHECK_ENTRY"
        with self._state(m, "CHECK_ENTRY"):
            size = full_width_size(self._width_bits)
            bad_size = (entry.image_bytes > MAX_IMAGE_BYTES) | (entry.image_bytes == 0)
            has_arguments = entry.argument_count != 0
            self._refuse(
                m,
                (LaunchError.IMAGE_ADDRESS, self._misplaced(entry.image_address)),
                (LaunchError.IMAGE_BYTES, bad_size | entry.image_bytes[:size].any()),
                (LaunchError.ARGUMENT_COUNT, entry.argument_count > MAX_ARGUMENTS),
                (
                    LaunchError.ARGUMENT_ADDRESS,
                    has_arguments & self._misplaced(entry.argument_address),
                ),
                (LaunchError.REPEAT, entry.repeat == 0),
                (LaunchError.RESERVED, entry.reserved.any() | header.reserved.any()),
                (LaunchError.MAGIC, header.magic != IMAGE_MAGIC),
                (LaunchError.VERSION, header.version != IMAGE_VERSION),
                (LaunchError.FINGERPRINT, header.fingerprint != Const(self._fingerprint, 32)),
            )
            m.d.comb += [self._arguments.i_start.eq(1), self.o_begin.eq(1)]
            m.next = "REQUEST_IMAGE"
            with m.If(has_arguments):
                m.next = "REQUEST_ARGUMENTS"

    def _request_states(self, m: Module) -> None:
        arguments = self._arguments
        with self._state(m, "REQUEST_ARGUMENTS"):
            self._request(m, self._beat_address(self.o_entry.argument_address), arguments.o_beats)
            with m.If(self.o_request.ready):
                m.next = "REQUEST_IMAGE"
        with self._state(m, "REQUEST_IMAGE"):
            m.d.comb += self.o_decoded.eq(1)
            self._request(m, self._beat_address(self.o_entry.image_address), self._image_beats)
            with m.If(self.o_request.ready):
                m.next = "ARGUMENTS"
                with m.If(arguments.o_empty):
                    m.next = "IMAGE"
            m.d.sync += [
                self._phase.eq(Mux(arguments.o_empty, ReadPhase.IMAGE, ReadPhase.ARGUMENTS)),
                self._beats_left.eq(self._image_beats),
            ]

    def _argument_state(self, m: Module) -> None:
        arguments = self._arguments
        with self._state(m, "ARGUMENTS"):
            m.d.comb += [
                self.o_decoded.eq(1),
                arguments.i_beat.valid.eq(self.i_beat.valid),
                self.i_beat.ready.eq(arguments.i_beat.ready),
            ]
            with m.If(arguments.o_end):
                m.d.sync += self._phase.eq(ReadPhase.IMAGE)
                m.next = "IMAGE"

    def _image_states(self, m: Module) -> None:
        stride = alignment_bytes(self._width_bits) * 8 // self._width_bits
        with self._state(m, "IMAGE"):
            m.d.comb += [
                self.o_decoded.eq(1),
                self.i_beat.ready.eq(1),
                self._writer.i_valid.eq(self._takes),
            ]
            with m.If(self._takes):
                m.d.sync += self._beats_left.eq(self._beats_left - 1)
                self._refuse(m, (LaunchError.RUN, self._writer.o_misplaced))
                with m.If(self._beats_left == 1):
                    # The last word enters its shadow in the next cycle, before any load.
                    m.next = "READY"
        with self._state(m, "READY"):
            self._refuse(
                m,
                (LaunchError.CHECKSUM, self._checksum.o_value != self.o_entry.header.checksum),
                (LaunchError.IMAGE_SIZE, ~self._writer.o_complete),
            )
            m.d.comb += [
                self.o_decoded.eq(1),
                self.o_ready.eq(self._refusal == LaunchError.NONE),
            ]
            with m.If(self.i_taken):
                m.d.sync += [
                    self._list_address.eq(self._list_address + stride),
                    self._entries_left.eq(self._entries_left - 1),
                    self.o_entry_index.eq(self.o_entry_index + 1),
                ]
                m.next = "REQUEST_ENTRY"
                with m.If(self.o_entry.hold_next):
                    m.next = "HELD"
                with m.If(self.o_last):
                    m.next = "IDLE"
        with self._state(m, "HELD"), m.If(self.i_ended):
            m.next = "REQUEST_ENTRY"
