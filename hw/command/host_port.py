"""Host port: AXI4-Lite subordinate with the register map."""

from typing import TYPE_CHECKING

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hw.arch.counters import COUNTER_BITS, COUNTER_NUMBER_BITS, COUNTER_WORDS, counter_index
from hw.arch.launch import ENTRY_NUMBER_BITS
from hw.arch.registers import HOST_ADDRESS_BITS, ID, MAP_VERSION, REGISTERS, RegisterAccess
from hw.lib.axi import RESP_OKAY, RESP_SLVERR, AxiLiteInterface, AxiLiteSignature
from hw.lib.component import Component

__all__ = ["HostPort", "error_layout"]

#: Error of a launch, laid out as the register ERROR.
error_layout = data.StructLayout({"code": 8, "detail": 8, "unit": 8})

if TYPE_CHECKING:
    _Error = data.View[data.StructLayout]
    _Counters = data.View[data.ArrayLayout]
else:
    _Error = _Counters = data.View


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
    i_cycles : ``In(64)``
        Cycles of the launch.
    i_first_mac : ``In(32)``
        Cycle of the launch in which the first vector entered an array; 0 before.
    i_launch_cycles : ``In(32)``
        Cycles of the last entry outside its kernel.
    i_entry_begin : ``In(64)``
        Cycle of the launch in which the entry before the last ended; 0 if there is none.
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
    i_error: _Error
    i_error_entry: Signal
    i_cycles: Signal
    i_first_mac: Signal
    i_launch_cycles: Signal
    i_entry_begin: Signal
    o_counter: Signal
    i_counters: _Counters

    def __init__(self, *, fingerprint: int, rows: int, width_bits: int, units: int) -> None:
        self._constants = {
            "ID": Const(ID, 32),
            "VERSION": Const(MAP_VERSION, 32),
            "FINGERPRINT": Const(fingerprint, 32),
            "GEOMETRY": Cat(
                Const(rows, 8),
                Const(width_bits // 8, 8),
                Const(counter_index(units, 0), COUNTER_NUMBER_BITS),
            ),
        }
        self._units = units
        self._name = f"host_port_{width_bits}x{rows}_f{fingerprint:08x}_u{units}"
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
                "i_cycles": In(64),
                "i_first_mac": In(32),
                "i_launch_cycles": In(32),
                "i_entry_begin": In(64),
                "o_counter": Out(range(COUNTER_WORDS)),
                "i_counters": In(data.ArrayLayout(COUNTER_BITS, units)),
            }
        )

    @property
    def definition_name(self) -> str:
        """Name of the shared module."""
        return self._name

    def elaborate(self, platform: object) -> Module:
        m = Module()
        axi = self.axi
        enable = Signal()
        done = Signal()
        error = Signal()
        cause = Signal(error_layout)
        cause_entry = Signal(ENTRY_NUMBER_BITS)
        select = Signal(COUNTER_NUMBER_BITS)
        launches = Signal(32)
        held_cycles = Signal(32)
        held_begin = Signal(32)
        held_counter = Signal(COUNTER_BITS - 32)
        # A pipeline register after the wide multiplexer; a read follows the selection by two cycles
        # or more.
        counter = Signal(COUNTER_BITS)
        unit = select[len(self.o_counter) :]
        if self._units:
            counters = Array(self.i_counters[index] for index in range(self._units))
            m.d.sync += counter.eq(counters[unit])
        no_counter = unit >= self._units
        m.d.comb += self.o_counter.eq(select)
        m.d.comb += self.o_interrupt.eq(enable & (done | error))

        values: dict[str, Value] = {
            **self._constants,
            "CONTROL": Cat(Const(0, 2), enable),
            "STATUS": Cat(self.i_busy, done, error),
            "ERROR": Value.cast(cause),
            "ERROR_ENTRY": cause_entry,
            "LIST_ADDRESS_LO": self.o_list_address[:32],
            "LIST_ADDRESS_HI": self.o_list_address[32:],
            "LIST_ENTRIES": self.o_list_entries,
            "CYCLES_LO": self.i_cycles[:32],
            "CYCLES_HI": held_cycles,
            "LAUNCHES": launches,
            "FIRST_MAC": self.i_first_mac,
            "COUNTER_SELECT": select,
            "COUNTER_LO": counter[:32],
            "COUNTER_HI": held_counter,
            "LAUNCH_CYCLES": self.i_launch_cycles,
            "ENTRY_BEGIN_LO": self.i_entry_begin[:32],
            "ENTRY_BEGIN_HI": held_begin,
        }

        # Reads.
        m.d.comb += axi.arready.eq(~axi.rvalid)
        with m.If(axi.rvalid & axi.rready):
            m.d.sync += axi.rvalid.eq(0)
        with m.If(axi.arvalid & axi.arready):
            m.d.sync += [axi.rvalid.eq(1), axi.rdata.eq(0), axi.rresp.eq(RESP_OKAY)]
            with m.Switch(axi.araddr[2:]):
                for each in REGISTERS:
                    with m.Case(each.offset >> 2):
                        m.d.sync += axi.rdata.eq(values[each.name])
                        if each.name == "CYCLES_LO":
                            m.d.sync += held_cycles.eq(self.i_cycles[32:])
                        if each.name == "ENTRY_BEGIN_LO":
                            m.d.sync += held_begin.eq(self.i_entry_begin[32:])
                        if each.name in ("COUNTER_LO", "COUNTER_HI"):
                            with m.If(no_counter):
                                m.d.sync += [axi.rdata.eq(0), axi.rresp.eq(RESP_SLVERR)]
                        if each.name == "COUNTER_LO":
                            with m.If(~no_counter):
                                m.d.sync += held_counter.eq(counter[32:])
                with m.Default():
                    m.d.sync += axi.rresp.eq(RESP_SLVERR)

        # Writes. Ends of launches are assigned after them and win over a clear in the same cycle.
        write = Signal()
        refused = Signal(init=1)
        word = axi.wdata
        m.d.comb += [
            write.eq(axi.awvalid & axi.wvalid & ~axi.bvalid),
            axi.awready.eq(write),
            axi.wready.eq(write),
        ]
        targets: dict[str, Value] = {
            "LIST_ADDRESS_LO": self.o_list_address[:32],
            "LIST_ADDRESS_HI": self.o_list_address[32:],
            "LIST_ENTRIES": self.o_list_entries,
            "COUNTER_SELECT": select,
        }
        with m.If(axi.bvalid & axi.bready):
            m.d.sync += axi.bvalid.eq(0)
        with m.If(write):
            m.d.sync += [axi.bvalid.eq(1), axi.bresp.eq(Mux(refused, RESP_SLVERR, RESP_OKAY))]
        with m.If(write & axi.wstrb.all()), m.Switch(axi.awaddr[2:]):
            for each in REGISTERS:
                if not each.writable:
                    continue
                with m.Case(each.offset >> 2):
                    m.d.comb += refused.eq(0)
                    if each.name == "CONTROL":
                        launch, abort, enabled = (word[field.low] for field in each.fields)
                        with m.If(launch & ~abort & (self.i_busy | error)):
                            m.d.comb += refused.eq(1)
                        with m.Else():
                            m.d.sync += enable.eq(enabled)
                            m.d.comb += self.o_launch.eq(launch & ~abort)
                            m.d.comb += self.o_abort.eq(abort)
                            with m.If(launch & ~abort):
                                m.d.sync += done.eq(0)
                    elif each.name == "STATUS":
                        with m.If(word[each.field("done").low]):
                            m.d.sync += done.eq(0)
                        with m.If(word[each.field("error").low]):
                            m.d.sync += [error.eq(0), cause.eq(0), cause_entry.eq(0)]
                    else:
                        assert all(
                            field.access is RegisterAccess.READ_WRITE for field in each.fields
                        )
                        m.d.sync += targets[each.name].eq(word)
        with m.If(self.i_done):
            m.d.sync += [done.eq(1), launches.eq(launches + 1)]
        with m.If(self.i_failed):
            m.d.sync += [error.eq(1), cause.eq(self.i_error), cause_entry.eq(self.i_error_entry)]
        return m
