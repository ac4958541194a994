"""Registers behind an AXI4-Lite subordinate with 32-bit data."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value, ValueLike
from amaranth.lib import data

from hw.arch.registers.register_fields import Register, RegisterAccess
from hw.lib.axi import RESP_OKAY, RESP_SLVERR, AxiLiteInterface

__all__ = ["answer_reads", "take_writes"]


def answer_reads(
    m: Module,
    axi: AxiLiteInterface,
    registers: Iterable[Register],
    values: Mapping[str, ValueLike],
    *,
    effects: Mapping[str, Callable[[], None]],
) -> None:
    """Answer reads: R in the cycle after AR, one read every second cycle.

    Addresses are rounded down to words; one without a register answers SLVERR.

    Parameters
    ----------
    m : Module
    axi : AxiLiteInterface
        Port, as the subordinate has it.
    registers : iterable of Register
    values : mapping
        Value of each register by name, at most 32 bits.
    effects : mapping
        By name, what adds statements for the cycle in which a register is read, after those of its
        value; it may assign ``rdata`` and ``rresp``, too.
    """
    m.d.comb += axi.arready.eq(~axi.rvalid)
    with m.If(axi.rvalid & axi.rready):
        m.d.sync += axi.rvalid.eq(0)
    with m.If(axi.arvalid & axi.arready):
        m.d.sync += [axi.rvalid.eq(1), axi.rdata.eq(0), axi.rresp.eq(RESP_OKAY)]
        with m.Switch(axi.araddr[2:]):
            for each in registers:
                with m.Case(each.offset >> 2):
                    m.d.sync += axi.rdata.eq(values[each.name])
                    if each.name in effects:
                        effects[each.name]()
            with m.Default():
                m.d.sync += axi.rresp.eq(RESP_SLVERR)


def take_writes(
    m: Module,
    axi: AxiLiteInterface,
    registers: Iterable[Register],
    targets: Mapping[str, Value],
    *,
    effects: Mapping[str, Callable[[Any, Signal], None]],
    hold: Value | None = None,
) -> None:
    """Take writes: in the cycle in which AW and W are both valid and no B waits; B follows.

    Addresses are rounded down to words. SLVERR, without an effect, answers an address without a
    register, a write to a register that is only read, and a write that does not strobe all four
    bytes.

    Parameters
    ----------
    m : Module
    axi : AxiLiteInterface
        Port, as the subordinate has it.
    registers : iterable of Register
    targets : mapping
        Signal that keeps the word of a register, by name, for registers that are only kept.
    effects : mapping
        By name, what adds statements for the cycle of the write to any other register. It gets
        the word by fields, and a signal that answers SLVERR if set.
    hold : Value, optional
        Takes no write in this cycle.
    """
    write = Signal()
    refused = Signal(init=1)
    offered = axi.awvalid & axi.wvalid & ~axi.bvalid
    m.d.comb += [
        write.eq(offered if hold is None else offered & ~hold),
        axi.awready.eq(write),
        axi.wready.eq(write),
    ]
    with m.If(axi.bvalid & axi.bready):
        m.d.sync += axi.bvalid.eq(0)
    with m.If(write):
        m.d.sync += [axi.bvalid.eq(1), axi.bresp.eq(Mux(refused, RESP_SLVERR, RESP_OKAY))]
    with m.If(write & axi.wstrb.all()), m.Switch(axi.awaddr[2:]):
        for each in registers:
            if not each.writable:
                continue
            with m.Case(each.offset >> 2):
                m.d.comb += refused.eq(0)
                if each.name in effects:
                    word: Any = data.View(each.layout, axi.wdata[: each.layout.size])
                    effects[each.name](word, refused)
                else:
                    assert all(field.access is RegisterAccess.READ_WRITE for field in each.fields)
                    m.d.sync += targets[each.name].eq(axi.wdata)
