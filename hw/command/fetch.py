"""Launch fetcher: reads list entries, arguments and images, one kernel ahead of execution."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from hw.arch.error_codes import LaunchError, ReadPhase
from hw.arch.image import IMAGE_MAGIC, IMAGE_VERSION, MAX_ROW_BEATS, header_beats, header_layout
from hw.arch.launch import (
    ARGUMENT_BYTES,
    ENTRY_BYTES,
    ENTRY_NUMBER_BITS,
    MAX_ARGUMENTS,
    MAX_IMAGE_BYTES,
    alignment_bytes,
    argument_layout,
    entry_layout,
)
from hw.command.burst_reader import BEATS_BITS, beat_layout, run_layout
from hw.command.host_port import error_layout
from hw.lib.axi import RESP_DECERR, RESP_OKAY, full_width_size
from hw.lib.component import Component

__all__ = ["LaunchFetcher", "argument_write_layout"]

if TYPE_CHECKING:
    _View = data.View[data.StructLayout]
else:
    _View = data.View


def argument_write_layout() -> data.StructLayout:
    """Layout of one write on the argument port: index, value and stride."""
    return data.StructLayout({"index": (MAX_ARGUMENTS - 1).bit_length()} | argument_layout.members)


class LaunchFetcher(Component):
    """Launch fetcher: reads and checks list entries, and fills the configuration chain's shadow.

    An entry costs two round trips to memory: its 64 bytes, then arguments and image back to back.
    Throughput is one image beat or one argument per cycle. The next entry is fetched after this
    entry's image has been loaded from the shadow (``i_taken``), so while this one runs.

    Parameters
    ----------
    width_bits : int
        Width of the memory port and of the chain.
    rows : int
        Rows of the fabric, each with a chain.
    address_bits : int
        Width of a byte address.
    fingerprint : int
        Configuration fingerprint of this chip.

    Members
    -------
    i_start, i_list_address, i_list_entries : ``In(1)``, ``In(64)``, ``In(16)``
        Starts a launch; only while none is in progress.
    i_stop : ``In(1)``
        Ends it in any state. The parent stops the reader as well, until that is idle.
    i_taken : ``In(1)``
        The image has been loaded from the shadow; only while ``o_ready``.
    o_decoded : ``Out(1)``
        ``o_entry`` is valid: the entry has been checked and its image not yet loaded.
    o_entry, o_entry_index, o_last : ``Out(entry_layout)``, ``Out(16)``, ``Out(1)``
        The entry, its index in the list, and whether it is the last.
    o_ready : ``Out(1)``
        The whole image is in the shadow from the next cycle on.
    o_failed, o_error : ``Out(1)``, ``Out(error_layout)``
        The entry cannot run; held until ``i_stop``.
    o_run, i_beat : streams to and from the `RunReader`
    o_argument : stream of `argument_write_layout`
    o_shift, o_data : ``Out(rows)``, ``Out(width_bits)``
        Word for the chain of the one row whose bit is set.
    """

    i_start: Signal
    i_list_address: Signal
    i_list_entries: Signal
    i_stop: Signal
    i_taken: Signal
    o_decoded: Signal
    o_entry: _View
    o_entry_index: Signal
    o_last: Signal
    o_ready: Signal
    o_failed: Signal
    o_error: _View
    o_run: stream.Interface
    i_beat: stream.Interface
    o_argument: stream.Interface
    o_shift: Signal
    o_data: Signal

    def __init__(self, *, width_bits: int, rows: int, address_bits: int, fingerprint: int) -> None:
        self._width_bits = width_bits
        self._rows = rows
        self._address_bits = address_bits
        self._fingerprint = fingerprint
        super().__init__(
            {
                "i_start": In(1),
                "i_list_address": In(64),
                "i_list_entries": In(ENTRY_NUMBER_BITS),
                "i_stop": In(1),
                "i_taken": In(1),
                "o_decoded": Out(1),
                "o_entry": Out(entry_layout),
                "o_entry_index": Out(ENTRY_NUMBER_BITS),
                "o_last": Out(1),
                "o_ready": Out(1),
                "o_failed": Out(1),
                "o_error": Out(error_layout),
                "o_run": Out(stream.Signature(run_layout(width_bits, address_bits))),
                "i_beat": In(stream.Signature(beat_layout(width_bits))),
                "o_argument": Out(stream.Signature(argument_write_layout())),
                "o_shift": Out(rows),
                "o_data": Out(width_bits),
            }
        )

    @property
    def definition_name(self) -> str:
        """Name of the shared module."""
        return (
            f"launch_fetcher_{self._width_bits}x{self._rows}_a{self._address_bits}"
            f"_f{self._fingerprint:08x}"
        )

    def _misplaced(self, address: Any) -> Value:
        low = alignment_bytes(self._width_bits).bit_length() - 1
        return Cat(address[:low], address[self._address_bits :]).any()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        width_bits = self._width_bits
        size = full_width_size(width_bits)
        beat_bytes = width_bits // 8
        entry_beats = max(1, ENTRY_BYTES // beat_bytes)
        head_beats = header_beats(self._rows, width_bits)
        entry = self.o_entry
        beat = self.i_beat
        beat_data: Value = beat.payload.data
        takes = Signal()
        m.d.comb += takes.eq(beat.valid & beat.ready)

        # Position in the launch; `beats_left` counts down the beats of the current phase.
        list_address = Signal(self._address_bits - size)
        index = self.o_entry_index
        entries_left = Signal(ENTRY_NUMBER_BITS)
        beats_left = Signal(BEATS_BITS)
        image_beats = entry.image_bytes[size:BEATS_BITS]
        m.d.comb += self.o_last.eq(entries_left == 1)

        phase = Signal(ReadPhase)
        refusal = Signal(LaunchError)
        refused = Signal()
        m.d.comb += refused.eq(refusal != LaunchError.NONE)

        def refuse(*rules: tuple[LaunchError, Any]) -> None:
            """Set the code of the first rule that is broken."""
            for code, broken in reversed(rules):
                with m.If(broken):
                    m.d.comb += refusal.eq(code)

        # Beats enter entry and header at the high end, so the first one ends at the low end.
        raw_header = Signal(head_beats * width_bits)
        head_layout = header_layout(self._rows)
        header: Any = Signal(head_layout)
        m.d.comb += header.eq(raw_header[: head_layout.size])

        def collect(register: Value) -> None:
            """Shift a beat into a register, which may be narrower than the beat."""
            low = register[width_bits:]
            m.d.sync += register.eq(Cat(low, beat_data))

        # A beat holds several arguments, sent one per cycle, or half of one.
        arguments_left = Signal(range(MAX_ARGUMENTS + 1))
        argument_index = Signal(range(MAX_ARGUMENTS))
        lanes = max(1, beat_bytes // ARGUMENT_BYTES)
        halves = max(1, ARGUMENT_BYTES // beat_bytes)
        argument: Any = Signal(argument_layout)
        m.d.comb += [
            self.o_argument.payload.index.eq(argument_index),
            self.o_argument.payload.value.eq(argument.value),
            self.o_argument.payload.stride.eq(argument.stride),
        ]
        lane = argument_index[: lanes.bit_length() - 1]
        half = Signal()
        low_half = Signal(width_bits)
        if halves == 2:
            m.d.comb += argument.eq(Cat(low_half, beat_data))
        else:
            m.d.comb += argument.eq(beat_data.word_select(lane, ARGUMENT_BYTES * 8))
        argument_beats = (arguments_left * halves + lanes - 1) >> (lanes.bit_length() - 1)

        # Row of the next image word.
        row = Signal(range(self._rows))
        row_left = Signal(range(MAX_ROW_BEATS + 1))
        row_beats = Array(header.beats[each] for each in range(self._rows))
        next_row = Signal(range(self._rows + 1))
        m.d.comb += next_row.eq(row + 1)
        m.d.sync += self.o_shift.eq(0)

        failed_read = Signal()
        m.d.comb += failed_read.eq(takes & (beat.payload.response != RESP_OKAY))

        @contextmanager
        def state(name: str) -> Iterator[None]:
            """State that is left on an error and on a stop."""
            with m.State(name):
                yield
                with m.If(refused):
                    m.d.sync += [self.o_error.code.eq(refusal), self.o_error.detail.eq(0)]
                    m.next = "FAILED"
                with m.If(failed_read):
                    code = Mux(
                        beat.payload.response == RESP_DECERR,
                        LaunchError.READ_DECERR,
                        LaunchError.READ_SLVERR,
                    )
                    m.d.sync += [self.o_error.code.eq(code), self.o_error.detail.eq(phase)]
                    m.next = "FAILED"
                with m.If(self.i_stop):
                    m.next = "IDLE"

        with m.FSM():
            with state("IDLE"):
                m.d.sync += [
                    list_address.eq(self.i_list_address[size : self._address_bits]),
                    entries_left.eq(self.i_list_entries),
                    index.eq(0),
                ]
                with m.If(self.i_start):
                    refuse(
                        (LaunchError.NO_ENTRIES, self.i_list_entries == 0),
                        (LaunchError.LIST_ADDRESS, self._misplaced(self.i_list_address)),
                    )
                    m.next = "REQUEST_ENTRY"
            with state("REQUEST_ENTRY"):
                m.d.comb += [
                    self.o_run.valid.eq(1),
                    self.o_run.payload.address.eq(list_address),
                    self.o_run.payload.beats.eq(entry_beats),
                ]
                m.d.sync += [phase.eq(ReadPhase.LIST), beats_left.eq(entry_beats)]
                with m.If(self.o_run.ready):
                    m.next = "ENTRY"
            with state("ENTRY"):
                m.d.comb += beat.ready.eq(1)
                with m.If(takes):
                    collect(Value.cast(entry))
                    m.d.sync += beats_left.eq(beats_left - 1)
                    with m.If(beats_left == 1):
                        m.next = "CHECK_ENTRY"
            with state("CHECK_ENTRY"):
                wide = (entry.image_bytes > MAX_IMAGE_BYTES) | (entry.image_bytes == 0)
                some = entry.argument_count != 0
                refuse(
                    (LaunchError.IMAGE_ADDRESS, self._misplaced(entry.image_address)),
                    (LaunchError.IMAGE_BYTES, wide | entry.image_bytes[:size].any()),
                    (LaunchError.ARGUMENT_COUNT, entry.argument_count > MAX_ARGUMENTS),
                    (LaunchError.ARGUMENT_ADDRESS, some & self._misplaced(entry.argument_address)),
                    (LaunchError.REPEAT, entry.repeat == 0),
                    (LaunchError.RESERVED, entry.reserved.any()),
                )
                m.d.sync += [
                    arguments_left.eq(entry.argument_count),
                    argument_index.eq(0),
                    half.eq(0),
                ]
                m.next = "REQUEST_IMAGE"
                with m.If(some):
                    m.next = "REQUEST_ARGUMENTS"
            with state("REQUEST_ARGUMENTS"):
                m.d.comb += [
                    self.o_run.valid.eq(1),
                    self.o_run.payload.address.eq(
                        entry.argument_address[size : self._address_bits]
                    ),
                    self.o_run.payload.beats.eq(argument_beats),
                ]
                with m.If(self.o_run.ready):
                    m.next = "REQUEST_IMAGE"
            with state("REQUEST_IMAGE"):
                m.d.comb += [
                    self.o_decoded.eq(1),
                    self.o_run.valid.eq(1),
                    self.o_run.payload.address.eq(entry.image_address[size : self._address_bits]),
                    self.o_run.payload.beats.eq(image_beats),
                ]
                with m.If(self.o_run.ready):
                    m.next = "ARGUMENTS"
                    with m.If(arguments_left == 0):
                        m.next = "HEADER"
                m.d.sync += [
                    phase.eq(Mux(arguments_left == 0, ReadPhase.IMAGE, ReadPhase.ARGUMENTS)),
                    beats_left.eq(head_beats),
                ]
            with state("ARGUMENTS"):
                last = Signal()
                sends = Signal()
                m.d.comb += [
                    self.o_decoded.eq(1),
                    last.eq(arguments_left == 1),
                    sends.eq(beat.valid & (half == halves - 1)),
                    self.o_argument.valid.eq(sends & (beat.payload.response == 0)),
                    beat.ready.eq(~sends | (self.o_argument.ready & (last | lane.all()))),
                ]
                with m.If(beat.valid & ~sends):
                    m.d.sync += [half.eq(1), low_half.eq(beat_data)]
                with m.If(sends & self.o_argument.ready):
                    m.d.sync += [
                        half.eq(0),
                        argument_index.eq(argument_index + 1),
                        arguments_left.eq(arguments_left - 1),
                    ]
                    with m.If(last):
                        m.d.sync += phase.eq(ReadPhase.IMAGE)
                        m.next = "HEADER"
            with state("HEADER"):
                m.d.comb += [self.o_decoded.eq(1), beat.ready.eq(1)]
                with m.If(takes):
                    collect(raw_header)
                    m.d.sync += beats_left.eq(beats_left - 1)
                    with m.If(beats_left == 1):
                        m.next = "CHECK_HEADER"
            with state("CHECK_HEADER"):
                m.d.comb += self.o_decoded.eq(1)
                refuse(
                    (LaunchError.MAGIC, header.magic != IMAGE_MAGIC),
                    (LaunchError.VERSION, header.version != IMAGE_VERSION),
                    (LaunchError.FINGERPRINT, header.fingerprint != Const(self._fingerprint, 32)),
                    (LaunchError.ROWS, header.rows != self._rows),
                    (LaunchError.RESERVED, header.reserved != 0),
                    (LaunchError.IMAGE_SIZE, image_beats <= head_beats),
                )
                m.d.sync += [
                    row.eq(0),
                    row_left.eq(header.beats[0]),
                    beats_left.eq(image_beats - head_beats),
                ]
                m.next = "IMAGE"
            with state("IMAGE"):
                m.d.comb += [self.o_decoded.eq(1), beat.ready.eq(1)]
                m.d.sync += self.o_data.eq(beat_data)
                row_ends = row_left == 1
                rows_end = row_ends & (next_row == self._rows)
                with m.If(takes):
                    m.d.sync += [
                        self.o_shift.eq(Const(1) << row),
                        beats_left.eq(beats_left - 1),
                        row_left.eq(row_left - 1),
                    ]
                    with m.If(row_ends):
                        m.d.sync += [row.eq(next_row), row_left.eq(row_beats[next_row])]
                    refuse((LaunchError.IMAGE_SIZE, rows_end != (beats_left == 1)))
                    with m.If(beats_left == 1):
                        # The last word enters the shadow in the next cycle, before any load.
                        m.next = "READY"
            with state("READY"):
                m.d.comb += [self.o_decoded.eq(1), self.o_ready.eq(1)]
                with m.If(self.i_taken):
                    m.d.sync += [
                        list_address.eq(list_address + (alignment_bytes(width_bits) >> size)),
                        entries_left.eq(entries_left - 1),
                        index.eq(index + 1),
                    ]
                    m.next = "REQUEST_ENTRY"
                    with m.If(self.o_last):
                        m.next = "IDLE"
            with m.State("FAILED"):
                # Beats still to come are dropped: the running kernel may take long to end.
                m.d.comb += [self.o_failed.eq(1), beat.ready.eq(1)]
                with m.If(self.i_stop):
                    m.next = "IDLE"
        return m
