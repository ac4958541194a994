"""Command processor: executes a launch list after one register write of the host."""

from typing import TYPE_CHECKING, Any

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.arch.counters import COUNTER_BITS, COUNTER_WORDS, UNIT_COUNT
from hw.arch.error_codes import LaunchError
from hw.arch.launch import ENTRY_NUMBER_BITS, MAX_ARGUMENTS
from hw.arch.limits import AXI_ADDRESS_BITS, FABRIC_ROWS, FINGERPRINT, LINK_BITS
from hw.arch.registers import HOST_ADDRESS_BITS
from hw.command.burst_reader import RunReader
from hw.command.fetch import LaunchFetcher, argument_write_layout
from hw.command.host_port import HostPort, error_layout
from hw.emit.shared import shared
from hw.lib.axi import Axi4ReadInterface, Axi4ReadSignature, AxiLiteInterface, AxiLiteSignature
from hw.lib.component import Component
from hw.lib.fifo import Queue

__all__ = ["CommandProcessor"]

if TYPE_CHECKING:
    _View = data.View[data.StructLayout]
    _Counters = data.View[data.ArrayLayout]
else:
    _View = _Counters = data.View


class CommandProcessor(Component):
    """Command processor: fetches images and arguments, configures the fabric and runs kernels.

    For each entry: ``o_clear``, the arguments, one per cycle, ``o_load``, and ``o_start`` in the
    next cycle; then ``i_done``, ``i_error`` or the host's abort. The next entry is fetched
    meanwhile. A launch that fails or is aborted raises ``o_stop`` until its own reads and the units
    are drained, then ``o_clear``. An entry's error is reported in the entry's turn: the kernels
    before it run to their end.

    With memory of latency L that answers bursts back to back, ``o_start`` of the first entry comes
    2·L + 9 cycles after the write, plus one per beat of list entry and image, and one per
    argument.

    Parameters
    ----------
    width_bits : int
        Link width, and width of the memory port.
    rows : int
        Rows of the fabric (`FABRIC_ROWS`): configuration chains.
    axi_address_bits : int
        Width of a byte address of memory (`AXI_ADDRESS_BITS`).
    fingerprint : int
        Configuration fingerprint of the chip, 32 bits.
    units : int
        Units with counters that the host can read (0 to 8,191).

    Members
    -------
    host : ``In(AxiLiteSignature(address_bits=12))``
    memory : ``Out(Axi4ReadSignature(...))``
    o_interrupt : ``Out(1)``
    o_shift, o_data : ``Out(rows)``, ``Out(width_bits)``
        Word for the chain of the one row whose bit is set.
    o_clear : ``Out(1)``
        Resets the fabric, for one cycle; chain shadows keep their contents.
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
    o_shift: Signal
    o_data: Signal
    o_clear: Signal
    o_argument_valid: Signal
    o_argument: _View
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
    i_counters: _Counters

    def __init__(
        self,
        *,
        width_bits: int,
        rows: int,
        axi_address_bits: int,
        fingerprint: int,
        units: int,
    ) -> None:
        LINK_BITS.require("Link width in bits", width_bits)
        FABRIC_ROWS.require("Fabric rows", rows)
        AXI_ADDRESS_BITS.require("AXI address bits", axi_address_bits)
        FINGERPRINT.require("Fingerprint", fingerprint)
        UNIT_COUNT.require("Units", units)
        self._width_bits = width_bits
        self._rows = rows
        self._axi_address_bits = axi_address_bits
        self._fingerprint = fingerprint
        self._units = units
        memory = Axi4ReadSignature(data_bits=width_bits, address_bits=axi_address_bits)
        super().__init__(
            {
                "host": In(AxiLiteSignature(address_bits=HOST_ADDRESS_BITS)),
                "memory": Out(memory),
                "o_interrupt": Out(1),
                "o_shift": Out(rows),
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

    @property
    def definition_name(self) -> str:
        """Name of the shared module."""
        return (
            f"command_processor_{self._width_bits}x{self._rows}_a{self._axi_address_bits}"
            f"_f{self._fingerprint:08x}_u{self._units}"
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        host = HostPort(
            fingerprint=self._fingerprint,
            rows=self._rows,
            width_bits=self._width_bits,
            units=self._units,
        )
        reader = RunReader(width_bits=self._width_bits, address_bits=self._axi_address_bits)
        fetch = LaunchFetcher(
            width_bits=self._width_bits,
            rows=self._rows,
            address_bits=self._axi_address_bits,
            fingerprint=self._fingerprint,
        )
        arguments = Queue(argument_write_layout(), depth=MAX_ARGUMENTS)
        m.submodules.host = shared(host)
        m.submodules.reader = shared(reader)
        m.submodules.fetch = shared(fetch)
        m.submodules.arguments = shared(arguments)
        wiring.connect(m, host.axi, wiring.flipped(self.host))
        wiring.connect(m, reader.axi, wiring.flipped(self.memory))
        wiring.connect(m, fetch.o_run, reader.i_run)
        wiring.connect(m, reader.o_beat, fetch.i_beat)
        wiring.connect(m, fetch.o_argument, arguments.i_stream)

        busy = Signal()
        stop = Signal()
        cycles = Signal(64)
        argument = arguments.o_stream
        arguments_left = Signal(range(MAX_ARGUMENTS + 1))
        m.d.comb += [
            self.o_interrupt.eq(host.o_interrupt),
            self.o_shift.eq(fetch.o_shift),
            self.o_data.eq(fetch.o_data),
            self.o_argument.eq(argument.payload),
            self.o_stop.eq(stop),
            host.i_counters.eq(self.i_counters),
            self.o_counter.eq(host.o_counter),
            host.i_busy.eq(busy),
            host.i_cycles.eq(cycles),
            fetch.i_start.eq(host.o_launch),
            fetch.i_list_address.eq(host.o_list_address),
            fetch.i_list_entries.eq(host.o_list_entries),
            fetch.i_stop.eq(stop),
            reader.i_stop.eq(stop),
        ]

        # Error of a launch that is stopped; none means a reset while nothing ran.
        error: Any = Signal(error_layout)
        entry = Signal(ENTRY_NUMBER_BITS)
        last = Signal()
        m.d.comb += [host.i_error.eq(error), host.i_error_entry.eq(entry)]
        aborted = Signal()
        m.d.comb += aborted.eq(host.o_abort)
        # One cycle after the vector entered, the count equals that vector's cycle.
        entered = Signal()
        first_mac = Signal(32)
        m.d.sync += entered.eq(self.i_issue)
        # Every cycle of a launch belongs to a kernel, which the units count, or is counted here.
        launch_cycles = Signal(32)
        entry_begin = Signal(64)
        m.d.comb += [
            host.i_first_mac.eq(first_mac),
            host.i_launch_cycles.eq(launch_cycles),
            host.i_entry_begin.eq(entry_begin),
        ]
        with m.If(busy):
            m.d.sync += cycles.eq(cycles + 1)
            with m.If(~self.o_run):
                m.d.sync += launch_cycles.eq(launch_cycles + 1)
            with m.If(entered & (first_mac == 0)):
                m.d.sync += first_mac.eq(cycles)

        def stop_if_failed() -> None:
            """Leave the state if the entry cannot be fetched, or the host aborts."""
            with m.If(fetch.o_failed):
                m.d.sync += [error.eq(fetch.o_error), entry.eq(fetch.o_entry_index)]
                m.next = "STOP"
            stop_if_aborted()

        def stop_if_aborted() -> None:
            with m.If(aborted):
                m.d.sync += error.eq(error_layout.const({"code": LaunchError.ABORTED}))
                m.next = "STOP"

        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += [error.eq(0), entry.eq(0)]
                with m.If(host.o_launch):
                    m.d.sync += [busy.eq(1), cycles.eq(0), first_mac.eq(0)]
                    m.d.sync += [launch_cycles.eq(0), entry_begin.eq(0)]
                    m.next = "DECODE"
                with m.If(host.o_abort):
                    m.d.sync += busy.eq(1)
                    m.next = "STOP"
            with m.State("DECODE"):
                with m.If(fetch.o_decoded):
                    m.d.sync += [
                        arguments_left.eq(fetch.o_entry.argument_count),
                        entry.eq(fetch.o_entry_index),
                    ]
                    m.next = "CLEAR"
                stop_if_failed()
            with m.State("CLEAR"):
                # Every entry starts with a reset, then its arguments.
                m.d.comb += self.o_clear.eq(1)
                m.next = "ARGUMENTS"
                stop_if_failed()
            with m.State("ARGUMENTS"):
                m.d.comb += [
                    self.o_argument_valid.eq(argument.valid),
                    argument.ready.eq(1),
                ]
                with m.If(argument.valid):
                    m.d.sync += arguments_left.eq(arguments_left - 1)
                with m.If(fetch.o_ready & (arguments_left == 0)):
                    m.next = "LOAD"
                stop_if_failed()
            with m.State("LOAD"):
                m.d.comb += [self.o_load.eq(1), fetch.i_taken.eq(1)]
                m.d.sync += [self.o_repeat.eq(fetch.o_entry.repeat), last.eq(fetch.o_last)]
                m.next = "START"
                stop_if_aborted()
            with m.State("START"):
                m.d.comb += self.o_start.eq(1)
                m.next = "RUN"
                stop_if_aborted()
            with m.State("RUN"):
                m.d.comb += self.o_run.eq(1)
                with m.If(self.i_done):
                    m.next = "DECODE"
                    with m.If(last):
                        m.d.comb += host.i_done.eq(~self.i_error & ~aborted)
                        m.d.sync += busy.eq(0)
                        m.next = "IDLE"
                    with m.Else():
                        m.d.sync += [launch_cycles.eq(0), entry_begin.eq(cycles + 1)]
                with m.If(self.i_error):
                    m.d.sync += [
                        busy.eq(1),
                        error.code.eq(LaunchError.UNIT),
                        error.detail.eq(self.i_error_code),
                        error.unit.eq(self.i_error_unit),
                    ]
                    m.next = "STOP"
                with m.If(aborted):
                    m.d.sync += busy.eq(1)
                stop_if_aborted()
            with m.State("STOP"):
                m.d.comb += stop.eq(1)
                m.next = "DRAIN"
            with m.State("DRAIN"):
                m.d.comb += [stop.eq(1), argument.ready.eq(1)]
                with m.If(reader.o_idle & ~argument.valid & self.i_drained):
                    m.next = "RESET"
            with m.State("RESET"):
                m.d.comb += [
                    self.o_clear.eq(1),
                    host.i_failed.eq(error.code != LaunchError.NONE),
                ]
                m.d.sync += busy.eq(0)
                m.next = "IDLE"
        return m
