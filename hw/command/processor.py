"""Command processor: executes a launch list after one register write of the host."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.arch.config import ChipConfig
from hw.arch.counters import COUNTER_BITS
from hw.arch.error_codes import LaunchError
from hw.arch.image import fingerprint as chip_fingerprint
from hw.arch.launch import ENTRY_NUMBER_BITS, MAX_ARGUMENTS, TraceKind
from hw.arch.limits import (
    AXI_ADDRESS_BITS,
    COUNTER_WORDS,
    FABRIC_ROWS,
    FINGERPRINT,
    LINK_BITS,
    SEGMENT_WORDS,
    SEGMENTS,
    UNIT_COUNT,
)
from hw.arch.places import chip_segments
from hw.arch.registers.chip_registers import HOST_ADDRESS_BITS
from hw.command.argument_reader import argument_write_layout
from hw.command.burst_reader import BurstReader
from hw.command.fetch import LaunchFetcher
from hw.command.host_port import HostPort, error_layout
from hw.command.launch_timer import launch_times
from hw.command.trace_ring import TraceRing
from hw.emit.shared import shared
from hw.lib.axi import Axi4ReadInterface, Axi4ReadSignature, AxiLiteInterface, AxiLiteSignature
from hw.lib.component import Component
from hw.lib.fifo import Queue

__all__ = ["CommandProcessor"]


class CommandProcessor(Component):
    """Command processor: fetches images and arguments, configures the fabric and runs kernels.

    For each entry: ``o_clear``, the arguments, one per cycle, ``o_load``, and ``o_start`` in the
    next cycle; then ``i_done``, ``i_error`` or the host's abort. The next entry is fetched
    meanwhile. A launch that fails or is aborted raises ``o_stop`` until its own reads and the units
    are drained, then ``o_clear``. An entry's error is reported in the entry's turn: the kernels
    before it run to their end.

    With memory of latency L that answers bursts back to back, ``o_start`` of the first entry comes
    2·L + 8 cycles after the write, plus one per beat of list entry and image, and one per
    argument.

    Parameters
    ----------
    width_bits : int
        Link width, and width of the memory port.
    segments : tuple of tuple of int
        Words of every segment, by row of the fabric (`FABRIC_ROWS`, `SEGMENTS`, `SEGMENT_WORDS`).
    axi_address_bits : int
        Width of a byte address of memory (`AXI_ADDRESS_BITS`).
    fingerprint : int
        Configuration fingerprint of the chip, 32 bits.
    units : int
        Units with counters that the host can read (0 to 8,191).

    Members
    -------
    host : ``In(AxiLiteSignature(address_bits=12))``
        AXI4-Lite, commanded by the host: its registers are in docs/command.md.
    memory : ``Out(Axi4ReadSignature(...))``
        AXI4 read, commanded by the processor: launch lists, arguments and images.
    o_interrupt : ``Out(1)``
        High while an interrupt is pending.
    o_begin : ``Out(1)``
        The shadows of the segments have no word any more.
    o_row, o_segment : ``Out(rows)``, ``Out(segments of the longest row)``
        A word for the segment whose row and number in it have their bits set.
    o_word, o_data : ``Out(range(256))``, ``Out(width_bits)``
        Number of the word in the segment, and the word.
    o_clear : ``Out(1)``
        Resets the fabric, for one cycle; shadows keep their contents.
    o_argument_valid, o_argument : ``Out(1)``, ``Out(argument_write_layout())``
        Argument, taken in this cycle; between ``o_clear`` and ``o_load``.
    o_load, o_start : ``Out(1)``
        All shadows become active; one cycle later the fabric starts.
    o_run : ``Out(1)``
        A kernel runs: from the cycle after ``o_start`` to that of ``i_done``; low after a stop.
    o_repeat : ``Out(32)``
        Iterations of the outermost loop; stable from ``o_start`` to the next ``o_load``.
    i_done : ``In(1)``
        The fabric has finished and memory has answered every store; sampled from the cycle after
        ``o_start`` until the entry ends.
    i_error, i_error_code, i_error_unit : ``In(1)``, ``In(8)``, ``In(8)``
        A unit has failed; sampled in the same cycles, before ``i_done``.
    o_stop : ``Out(1)``
        Units start no new burst and drain the outstanding ones.
    i_drained : ``In(1)``
        No burst of a unit is outstanding; sampled while ``o_stop``, from its second cycle on.
    i_issue : ``In(1)``
        A vector enters an array in this cycle.
    o_counter, i_counters : ``Out(range(COUNTER_WORDS))``, ``In(ArrayLayout(COUNTER_BITS, units))``
        Number of the counter that every unit outputs, and its value per unit.

    Raises
    ------
    BadInputError
        If a parameter lies outside its domain.
    """

    host: AxiLiteInterface
    memory: Axi4ReadInterface
    o_interrupt: Signal
    o_begin: Signal
    o_row: Signal
    o_segment: Signal
    o_word: Signal
    o_data: Signal
    o_clear: Signal
    o_argument_valid: Signal
    o_argument: data.View[data.StructLayout]
    o_load: Signal
    o_start: Signal
    o_run: Signal
    o_repeat: Signal
    i_done: Signal
    i_error: Signal
    i_error_code: Signal
    i_error_unit: Signal
    o_stop: Signal
    i_drained: Signal
    i_issue: Signal
    o_counter: Signal
    i_counters: data.View[data.ArrayLayout]

    def __init__(
        self,
        *,
        width_bits: int,
        segments: tuple[tuple[int, ...], ...],
        axi_address_bits: int,
        fingerprint: int,
        units: int,
    ) -> None:
        LINK_BITS.require("Link width in bits", width_bits)
        FABRIC_ROWS.require("Fabric rows", len(segments))
        for row in segments:
            SEGMENTS.require("Segments of a row", len(row))
            for words in row:
                SEGMENT_WORDS.require("Words of a segment", words)
        AXI_ADDRESS_BITS.require("AXI address bits", axi_address_bits)
        FINGERPRINT.require("Fingerprint", fingerprint)
        UNIT_COUNT.require("Units", units)
        memory = Axi4ReadSignature(data_bits=width_bits, address_bits=axi_address_bits)
        super().__init__(
            {
                "host": In(AxiLiteSignature(address_bits=HOST_ADDRESS_BITS)),
                "memory": Out(memory),
                "o_interrupt": Out(1),
                "o_begin": Out(1),
                "o_row": Out(len(segments)),
                "o_segment": Out(max(map(len, segments))),
                "o_word": Out(range(SEGMENT_WORDS.high + 1)),
                "o_data": Out(width_bits),
                "o_clear": Out(1),
                "o_argument_valid": Out(1),
                "o_argument": Out(argument_write_layout()),
                "o_load": Out(1),
                "o_start": Out(1),
                "o_run": Out(1),
                "o_repeat": Out(32),
                "i_done": In(1),
                "i_error": In(1),
                "i_error_code": In(8),
                "i_error_unit": In(8),
                "o_stop": Out(1),
                "i_drained": In(1),
                "i_issue": In(1),
                "o_counter": Out(range(COUNTER_WORDS)),
                "i_counters": In(data.ArrayLayout(COUNTER_BITS, units)),
            }
        )

    @classmethod
    def of_chip(cls, config: ChipConfig) -> CommandProcessor:
        """Command processor of a chip."""
        return cls(
            width_bits=config.width_bits,
            segments=chip_segments(config),
            axi_address_bits=config.agcu.axi_address_bits,
            fingerprint=chip_fingerprint(config),
            units=config.rows * config.columns + config.agcu.count,
        )

    def _add_parts(self, m: Module) -> None:
        """Add the components and the state of a launch."""
        width_bits, segments, axi_address_bits, fingerprint, units = self.parameters.values()
        self._host = HostPort(
            fingerprint=fingerprint, rows=len(segments), width_bits=width_bits, units=units
        )
        self._reader = BurstReader(width_bits=width_bits, address_bits=axi_address_bits)
        self._fetch = LaunchFetcher(
            width_bits=width_bits,
            segments=segments,
            address_bits=axi_address_bits,
            fingerprint=fingerprint,
        )
        self._arguments = Queue(argument_write_layout(), depth=MAX_ARGUMENTS)
        self._launch, self._next_entry = Signal(), Signal()
        m.submodules.host = shared(self._host)
        m.submodules.reader = shared(self._reader)
        m.submodules.fetch = shared(self._fetch)
        m.submodules.arguments = shared(self._arguments)
        m.submodules.trace = self._trace = TraceRing()
        self._busy = Signal()
        # Error of a launch that is stopped; none means a reset while nothing ran.
        self._error: Any = Signal(error_layout)
        self._entry = Signal(ENTRY_NUMBER_BITS)
        self._last = Signal()
        self._arguments_left = Signal(range(MAX_ARGUMENTS + 1))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self._add_parts(m)
        host, reader, fetch = self._host, self._reader, self._fetch
        times = launch_times(
            m,
            launch=self._launch,
            next_entry=self._next_entry,
            busy=self._busy,
            run=self.o_run,
            issue=self.i_issue,
        )
        wiring.connect(m, host.axi, wiring.flipped(self.host))
        wiring.connect(m, reader.axi, wiring.flipped(self.memory))
        wiring.connect(m, fetch.o_request, reader.i_request)
        wiring.connect(m, reader.o_beat, fetch.i_beat)
        wiring.connect(m, fetch.o_argument, self._arguments.i_stream)
        m.d.comb += [
            self.o_interrupt.eq(host.o_interrupt),
            self.o_begin.eq(fetch.o_begin),
            self.o_row.eq(fetch.o_row),
            self.o_segment.eq(fetch.o_segment),
            self.o_word.eq(fetch.o_word),
            self.o_data.eq(fetch.o_data),
            self.o_argument.eq(self._arguments.o_stream.payload),
            host.i_counters.eq(self.i_counters),
            self.o_counter.eq(host.o_counter),
            host.i_busy.eq(self._busy),
            host.i_times.eq(times),
            host.i_trace.eq(self._trace.o_event),
            host.i_trace_dropped.eq(self._trace.o_dropped),
            self._trace.i_take.eq(host.o_trace_take),
            self._trace.i_clear.eq(self._launch),
            # Times are those of the cycle before.
            self._trace.i_event.entry.eq(self._entry),
            self._trace.i_event.cycle.eq(Mux(self._launch, 0, times.cycles + 1)),
            host.i_error.eq(self._error),
            host.i_error_entry.eq(self._entry),
            fetch.i_start.eq(host.o_launch),
            fetch.i_list_address.eq(host.o_list_address),
            fetch.i_list_entries.eq(host.o_list_entries),
            fetch.i_ended.eq(self._next_entry),
            fetch.i_stop.eq(self.o_stop),
            reader.i_stop.eq(self.o_stop),
        ]
        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += [self._error.eq(0), self._entry.eq(0)]
                with m.If(host.o_launch):
                    m.d.comb += self._launch.eq(1)
                    self._record(m, TraceKind.LAUNCH)
                    m.d.sync += self._busy.eq(1)
                    m.next = "DECODE"
                with m.If(host.o_abort):
                    m.d.sync += self._busy.eq(1)
                    m.next = "STOP"
            self._configure_states(m)
            self._run_states(m)
            self._stop_states(m)
        return m

    def _record(self, m: Module, kind: TraceKind) -> None:
        """Put an event of this cycle into the trace."""
        m.d.comb += self._trace.i_event.kind.eq(kind)

    def _stop_if_failed(self, m: Module) -> None:
        """Leave the state if the entry cannot be fetched, or the host aborts."""
        with m.If(self._fetch.o_failed):
            m.d.sync += [
                self._error.eq(self._fetch.o_error),
                self._entry.eq(self._fetch.o_entry_index),
            ]
            m.next = "STOP"
        self._stop_if_aborted(m)

    def _stop_if_aborted(self, m: Module) -> None:
        with m.If(self._host.o_abort):
            m.d.sync += self._error.eq(error_layout.const({"code": LaunchError.ABORTED}))
            m.next = "STOP"

    def _configure_states(self, m: Module) -> None:
        """Reset the fabric and pass on the arguments, until arguments and image are complete."""
        fetch, argument = self._fetch, self._arguments.o_stream
        with m.State("DECODE"):
            with m.If(fetch.o_decoded):
                m.d.sync += [
                    self._arguments_left.eq(fetch.o_entry.argument_count),
                    self._entry.eq(fetch.o_entry_index),
                ]
                m.next = "CLEAR"
            self._stop_if_failed(m)
        with m.State("CLEAR"):
            # Every entry starts with a reset, then its arguments.
            m.d.comb += self.o_clear.eq(1)
            self._record(m, TraceKind.CLEAR)
            m.next = "ARGUMENTS"
            self._stop_if_failed(m)
        with m.State("ARGUMENTS"):
            m.d.comb += [self.o_argument_valid.eq(argument.valid), argument.ready.eq(1)]
            with m.If(argument.valid):
                m.d.sync += self._arguments_left.eq(self._arguments_left - 1)
            with m.If(fetch.o_ready & (self._arguments_left == 0)):
                m.next = "LOAD"
            self._stop_if_failed(m)

    def _run_states(self, m: Module) -> None:
        """Load and start the kernel, and wait for its end."""
        host, fetch, error = self._host, self._fetch, self._error
        with m.State("LOAD"):
            m.d.comb += [self.o_load.eq(1), fetch.i_taken.eq(1)]
            m.d.sync += [self.o_repeat.eq(fetch.o_entry.repeat), self._last.eq(fetch.o_last)]
            m.next = "START"
            self._stop_if_aborted(m)
        with m.State("START"):
            m.d.comb += self.o_start.eq(1)
            self._record(m, TraceKind.START)
            m.next = "RUN"
            self._stop_if_aborted(m)
        with m.State("RUN"):
            m.d.comb += self.o_run.eq(1)
            with m.If(self.i_done):
                with m.If(~self.i_error & ~host.o_abort):
                    self._record(m, TraceKind.END)
                m.next = "DECODE"
                with m.If(self._last):
                    m.d.comb += host.i_done.eq(~self.i_error & ~host.o_abort)
                    m.d.sync += self._busy.eq(0)
                    m.next = "IDLE"
                with m.Else():
                    m.d.comb += self._next_entry.eq(1)
            with m.If(self.i_error):
                m.d.sync += [
                    self._busy.eq(1),
                    error.code.eq(LaunchError.UNIT),
                    error.detail.eq(self.i_error_code),
                    error.unit.eq(self.i_error_unit),
                ]
                m.next = "STOP"
            with m.If(host.o_abort):
                m.d.sync += self._busy.eq(1)
            self._stop_if_aborted(m)

    def _stop_states(self, m: Module) -> None:
        """Drain reads and arguments, and reset the fabric."""
        argument = self._arguments.o_stream
        with m.State("STOP"):
            m.d.comb += self.o_stop.eq(1)
            self._record(m, TraceKind.STOP)
            m.next = "DRAIN"
        with m.State("DRAIN"):
            m.d.comb += [self.o_stop.eq(1), argument.ready.eq(1)]
            with m.If(self._reader.o_idle & ~argument.valid & self.i_drained):
                m.next = "RESET"
        with m.State("RESET"):
            m.d.comb += [
                self.o_clear.eq(1),
                self._host.i_failed.eq(self._error.code != LaunchError.NONE),
            ]
            m.d.sync += self._busy.eq(0)
            m.next = "IDLE"
