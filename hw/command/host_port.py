"""Host port: AXI4-Lite subordinate with the register map."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from amaranth.hdl import Array, Const, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hw.arch.counters import COUNTER_BITS, counter_index
from hw.arch.launch import ENTRY_NUMBER_BITS, trace_layout
from hw.arch.limits import COUNTER_NUMBER_BITS, COUNTER_WORDS
from hw.arch.registers.chip_registers import (
    HOST_ADDRESS_BITS,
    ID,
    MAP_VERSION,
    REGISTERS,
    register,
)
from hw.command.launch_timer import times_layout
from hw.lib.axi import RESP_SLVERR, AxiLiteInterface, AxiLiteSignature
from hw.lib.component import Component
from hw.lib.register_port import answer_reads, take_writes

__all__ = ["HostPort", "error_layout"]

#: Error of a launch, laid out as the register ERROR.
error_layout = register("ERROR").layout


class HostPort(Component):
    """Host port: control and status registers of the chip behind AXI4-Lite with 32-bit data.

    A write takes effect in the cycle in which address and data are both accepted, as soon as both
    are valid and no response is pending; B follows in the next cycle, and so does R after AR. One
    access of each kind every second cycle. Addresses are rounded down to words. SLVERR, without
    any effect, answers: an address without a register, a write to a read-only register, a write
    that does not strobe all four bytes, a launch while busy or in error, a counter that does not
    exist.

    Parameters
    ----------
    fingerprint : int
        Configuration fingerprint, 32 bits.
    rows, width_bits : int
        Geometry of the fabric.
    units : int
        Units with counters that the host can read (0 to 8,191).

    Members
    -------
    axi : ``In(AxiLiteSignature(address_bits=12))``
    o_launch, o_abort : ``Out(1)``
        Command of the host, in the cycle of the write; never both.
    o_list_address, o_list_entries : ``Out(64)``, ``Out(16)``
        Launch list, as last written.
    o_interrupt : ``Out(1)``
        High while enabled and done or in error.
    i_busy : ``In(1)``
        A launch or reset is in progress, from the cycle after its write on.
    i_done, i_failed : ``In(1)``
        A launch ends, with success or with ``i_error`` at ``i_error_entry``.
    i_times : ``In(times_layout)``
    i_trace, i_trace_dropped, o_trace_take : ``In(trace_layout)``, ``In(32)``, ``Out(1)``
        Oldest trace event, and the count of those dropped; the event is read in this cycle.
    o_counter : ``Out(range(COUNTER_WORDS))``
        Number of the counter that every unit outputs.
    i_counters : ``In(ArrayLayout(COUNTER_BITS, units))``
        Value of that counter, per unit.
    """

    axi: AxiLiteInterface
    o_launch: Signal
    o_abort: Signal
    o_list_address: Signal
    o_list_entries: Signal
    o_interrupt: Signal
    i_busy: Signal
    i_done: Signal
    i_failed: Signal
    i_error: data.View[data.StructLayout]
    i_error_entry: Signal
    i_times: data.View[data.StructLayout]
    i_trace: data.View[data.StructLayout]
    i_trace_dropped: Signal
    o_trace_take: Signal
    o_counter: Signal
    i_counters: data.View[data.ArrayLayout]

    def __init__(self, *, fingerprint: int, rows: int, width_bits: int, units: int) -> None:
        geometry: dict[int | str, Any] = {
            "rows": rows,
            "width_bytes": width_bits // 8,
            "counters": counter_index(units, 0),
        }
        self._constants: dict[str, Any] = {
            "ID": Const(ID, 32),
            "VERSION": Const(MAP_VERSION, 32),
            "FINGERPRINT": Const(fingerprint, 32),
            "GEOMETRY": register("GEOMETRY").layout.const(geometry),
        }
        # The registers that the host both reads and changes.
        self._control: Any = Signal(register("CONTROL").layout)
        self._done = Signal()
        self._failed = Signal()
        self._cause: Any = Signal(error_layout)
        self._cause_entry = Signal(ENTRY_NUMBER_BITS)
        self._launches = Signal(32)
        self._select = Signal(COUNTER_NUMBER_BITS)
        self._units = units
        super().__init__(
            {
                "axi": In(AxiLiteSignature(address_bits=HOST_ADDRESS_BITS)),
                "o_launch": Out(1),
                "o_abort": Out(1),
                "o_list_address": Out(64),
                "o_list_entries": Out(ENTRY_NUMBER_BITS),
                "o_interrupt": Out(1),
                "i_busy": In(1),
                "i_done": In(1),
                "i_failed": In(1),
                "i_error": In(error_layout),
                "i_error_entry": In(ENTRY_NUMBER_BITS),
                "i_times": In(times_layout),
                "i_trace": In(trace_layout),
                "i_trace_dropped": In(32),
                "o_trace_take": Out(1),
                "o_counter": Out(range(COUNTER_WORDS)),
                "i_counters": In(data.ArrayLayout(COUNTER_BITS, units)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += [
            self.o_counter.eq(self._select),
            self.o_interrupt.eq(self._control.interrupt_enable & (self._done | self._failed)),
        ]
        self._answer_reads(m)
        self._take_writes(m)
        # Ends of launches are assigned after writes and win over a clear in the same cycle.
        with m.If(self.i_done):
            m.d.sync += [self._done.eq(1), self._launches.eq(self._launches + 1)]
        with m.If(self.i_failed):
            m.d.sync += [
                self._failed.eq(1),
                self._cause.eq(self.i_error),
                self._cause_entry.eq(self.i_error_entry),
            ]
        return m

    def _values(self, m: Module) -> dict[str, Any]:
        """Value of each register of at most 32 bits, by its name."""
        status: Any = Signal(register("STATUS").layout)
        m.d.comb += [
            status.busy.eq(self.i_busy),
            status.done.eq(self._done),
            status.error.eq(self._failed),
        ]
        return {
            **self._constants,
            "CONTROL": self._control,
            "STATUS": status,
            "ERROR": self._cause,
            "ERROR_ENTRY": self._cause_entry,
            "LIST_ADDRESS_LO": self.o_list_address[:32],
            "LIST_ADDRESS_HI": self.o_list_address[32:],
            "LIST_ENTRIES": self.o_list_entries,
            "LAUNCHES": self._launches,
            "FIRST_MAC": self.i_times.first_mac,
            "COUNTER_SELECT": self._select,
            "LAUNCH_CYCLES": self.i_times.launch_cycles,
            "TRACE_DROPPED": self.i_trace_dropped,
        }

    def _answer_reads(self, m: Module) -> None:
        axi = self.axi
        # High halves, held by a read of the low half.
        held: Any = Signal(
            data.StructLayout(
                {"CYCLES": 32, "ENTRY_BEGIN": 32, "COUNTER": COUNTER_BITS - 32, "TRACE": 32}
            )
        )
        # A pipeline register after the wide multiplexer; a read follows the selection by two cycles
        # or more.
        counter = Signal(COUNTER_BITS)
        unit = self._select[len(self.o_counter) :]
        if self._units:
            counters = Array(self.i_counters[index] for index in range(self._units))
            m.d.sync += counter.eq(counters[unit])
        no_counter = unit >= self._units
        times = self.i_times
        values = self._values(m)
        event = self.i_trace.as_value()
        holds = {}
        for name, value, high in (
            ("CYCLES", times.cycles, times.cycles[32:]),
            ("ENTRY_BEGIN", times.entry_begin, times.entry_begin[32:]),
            ("TRACE", event, event[32:]),
            ("COUNTER", counter, Mux(no_counter, held["COUNTER"], counter[32:])),
        ):
            values |= {f"{name}_LO": value[:32], f"{name}_HI": held[name]}
            holds[f"{name}_LO"] = held[name].eq(high)

        def no_such_counter() -> None:
            with m.If(no_counter):
                m.d.sync += [axi.rdata.eq(0), axi.rresp.eq(RESP_SLVERR)]

        def hold(name: str) -> None:
            m.d.sync += holds[name]
            if name == "TRACE_LO":
                m.d.comb += self.o_trace_take.eq(1)
            if name == "COUNTER_LO":
                no_such_counter()

        effects: dict[str, Callable[[], None]] = {
            name: functools.partial(hold, name) for name in holds
        }
        effects["COUNTER_HI"] = no_such_counter
        answer_reads(m, axi, REGISTERS, values, effects=effects)

    def _take_writes(self, m: Module) -> None:
        targets: dict[str, Value] = {
            "LIST_ADDRESS_LO": self.o_list_address[:32],
            "LIST_ADDRESS_HI": self.o_list_address[32:],
            "LIST_ENTRIES": self.o_list_entries,
            "COUNTER_SELECT": self._select,
        }

        def clear(word: Any, refused: Signal) -> None:
            with m.If(word.done):
                m.d.sync += self._done.eq(0)
            with m.If(word.error):
                m.d.sync += [self._failed.eq(0), self._cause.eq(0), self._cause_entry.eq(0)]

        take_writes(
            m,
            self.axi,
            REGISTERS,
            targets,
            effects={"CONTROL": functools.partial(self._take_command, m), "STATUS": clear},
        )

    def _take_command(self, m: Module, word: Any, refused: Signal) -> None:
        launches = word.launch & ~word.abort
        with m.If(launches & (self.i_busy | self._failed)):
            m.d.comb += refused.eq(1)
        with m.Else():
            m.d.sync += self._control.interrupt_enable.eq(word.interrupt_enable)
            m.d.comb += [self.o_launch.eq(launches), self.o_abort.eq(word.abort)]
            with m.If(launches):
                m.d.sync += self._done.eq(0)
