"""TMA unit with registers for a host."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arch import limits
from hw.arch.checks import Domain
from hw.arch.registers.tma_registers import TMA_ADDRESS_BITS
from hw.arch.tma_sizes import TmaSizes
from hw.emit.shared import shared
from hw.lib.axi import Axi4Interface, Axi4Signature, AxiLiteInterface, AxiLiteSignature
from hw.lib.component import Component
from hw.tma.host_port.command_chain import CommandChain
from hw.tma.host_port.command_slots import CommandSlots
from hw.tma.host_port.front_end import TmaFrontEnd
from hw.tma.host_port.traffic_counters import TrafficCounters
from hw.tma.reduction.reduction_interlock import interlock_signature
from hw.tma.scratchpads.local_memory import connect_operations, connect_user, user_ports, users_of
from hw.tma.standalone.axi_attributes import DEFAULT_ATTRIBUTES, AxiAttributes
from hw.tma.standalone.tma_unit import TmaUnit

__all__ = ["TmaTop"]


class TmaTop(Component):
    """TMA unit behind AXI4-Lite registers, with a port of barriers for the accelerator beside it.

    Parameters
    ----------
    sizes : TmaSizes
    ports : int
        Ports of barrier operations, and waiters, of the accelerator.
    commands : int
        Most commands in flight, or with completions that the host did not read
        (`limits.COMMAND_SLOTS`).
    attributes : AxiAttributes
        Of all bursts.
    reduces : bool
        As of :class:`hw.tma.standalone.tma_unit.TmaUnit`.

    Members
    -------
    host : AXI4-Lite subordinate port
        The registers of `hw.arch.registers.tma_registers`.
    o_interrupt
        High while an interrupt that is enabled has its cause.
    axi : AXI4 manager port
        As of :class:`hw.tma.standalone.tma_unit.TmaUnit`.
    interlock : :func:`hw.tma.reduction.reduction_interlock.interlock_signature`
        With ``reduces``.
    i_writes, i_reads, o_data
        Of the scratchpad, as in :class:`hw.tma.standalone.vector_scratchpad.Scratchpad`.
    further
        With several scratchpads, the members above and below for each beyond the first.
    i_operations, o_answers, i_waits, o_waits, o_phases, o_flags, o_valid
        Ports and waiters, as many as ``ports``, of the
        :class:`hw.tma.barriers.barrier_bank.BarrierBank`.

    Raises
    ------
    BadInputError
        If a parameter lies outside its domain.
    """

    host: AxiLiteInterface
    o_interrupt: Signal
    axi: Axi4Interface
    interlock: Any
    i_writes: stream.Interface
    i_reads: stream.Interface
    o_data: Any
    further: Sequence[Any]
    i_operations: Sequence[stream.Interface]
    o_answers: Sequence[Any]
    i_waits: Sequence[stream.Interface]
    o_waits: Sequence[stream.Interface]
    o_phases: Signal
    o_flags: Signal
    o_valid: Signal

    def __init__(
        self,
        sizes: TmaSizes,
        *,
        ports: int = 1,
        commands: int = 64,
        attributes: AxiAttributes = DEFAULT_ATTRIBUTES,
        reduces: bool = False,
    ) -> None:
        # The unit, the registers and the chain have a port of their own.
        # With several scratchpads, one port of each is that of the others.
        taken = 3 if sizes.scratchpads == 1 else 4
        Domain(1, limits.BARRIER_PORTS.high - taken).require("Ports of the accelerator", ports)
        limits.COMMAND_SLOTS.require("Commands in flight", commands)
        self._sizes = sizes
        self._ports = ports
        self._commands = commands
        self._attributes = attributes
        self._reduces = reduces
        interlock = interlock_signature(sizes.address_bits)
        super().__init__(
            {
                "host": In(AxiLiteSignature(address_bits=TMA_ADDRESS_BITS)),
                "o_interrupt": Out(1),
                "axi": Out(
                    Axi4Signature(
                        data_bits=sizes.width_bits,
                        address_bits=sizes.address_bits,
                        id_bits=attributes.id_bits(sizes),
                        qos_bits=4,
                    )
                ),
                **({"interlock": Out(interlock)} if reduces else {}),
                **user_ports(sizes, ports),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        sizes, own = self._sizes, self._ports
        unit = TmaUnit(sizes, ports=own + 2, attributes=self._attributes, reduces=self._reduces)
        slots = CommandSlots(
            address_bits=sizes.address_bits, slots=self._commands, scratchpads=sizes.scratchpads
        )
        chain = CommandChain(
            address_bits=sizes.address_bits,
            barriers=sizes.barriers,
            scratchpads=sizes.scratchpads,
        )
        registers = TmaFrontEnd(sizes)
        counters = TrafficCounters(width_bits=sizes.width_bits)
        m.submodules.unit = shared(unit)
        m.submodules.slots = shared(slots)
        m.submodules.chain = shared(chain)
        m.submodules.registers = shared(registers)
        m.submodules.counters = shared(counters)
        pairs: list[tuple[Any, Any]] = [
            (wiring.flipped(self.host), registers.host),
            (registers.o_commands, slots.i_commands),
            (slots.o_commands, chain.i_commands),
            (chain.o_commands, unit.i_commands),
            (unit.o_completions, chain.i_completions),
            (chain.o_completions, slots.i_completions),
            (chain.o_waits, unit.i_waits[own + 1]),
            (unit.o_waits[own + 1], chain.i_results),
            (slots.o_completions, registers.i_completions),
            (registers.o_operations, unit.i_operations[own]),
            (unit.axi, wiring.flipped(self.axi)),
        ]
        if self._reduces:
            pairs.append((unit.interlock, wiring.flipped(self.interlock)))
        for source, target in pairs:
            wiring.connect(m, source, target)
        for outer, inner in zip(users_of(self), users_of(unit), strict=True):
            connect_user(m, outer, inner)
            connect_operations(m, outer, inner)
        m.d.comb += [
            registers.i_answer.valid.eq(unit.o_answers[own].valid),
            registers.i_answer.payload.eq(unit.o_answers[own].payload),
            self.o_interrupt.eq(registers.o_interrupt),
            unit.i_abort.eq(registers.o_abort),
            slots.i_aborting.eq(unit.o_aborting),
            slots.i_reset.eq(unit.o_reset),
            chain.i_answer.valid.eq(unit.o_answers[own + 1].valid),
            chain.i_answer.payload.eq(unit.o_answers[own + 1].payload),
            chain.i_loop.valid.eq(registers.o_loop.valid),
            chain.i_loop.payload.eq(registers.o_loop.payload),
            chain.config.eq(registers.o_chain),
            chain.i_submitted.eq(registers.o_submitted),
            chain.i_reset.eq(unit.o_reset),
            registers.i_chain_busy.eq(chain.o_busy),
            registers.i_chain_steps.eq(chain.o_steps),
            registers.i_idle.eq(slots.o_idle),
            registers.i_aborting.eq(slots.o_aborting),
            registers.i_done.eq(slots.o_done),
            registers.i_failed.eq(slots.o_failed),
            registers.i_groups_read.eq(unit.o_groups_read),
            registers.i_groups_stored.eq(unit.o_groups_stored),
            registers.i_counts.eq(counters.o_counts),
            counters.i_clear.eq(registers.o_clear),
        ]
        self._wait(m, registers, unit)
        # A ring's barriers are those of the first scratchpad.
        asked = unit.i_operations[own + 1]
        m.d.comb += [
            asked.valid.eq(chain.o_operations.valid),
            chain.o_operations.ready.eq(asked.ready),
            *(
                asked.payload[name].eq(chain.o_operations.payload[name])
                for name, _ in chain.o_operations.payload.shape()
            ),
        ]
        axi = self.axi
        for channel, valid, ready in (
            (counters.i_read.address, axi.arvalid, axi.arready),
            (counters.i_read.data, axi.rvalid, axi.rready),
            (counters.i_write.address, axi.awvalid, axi.awready),
            (counters.i_write.data, axi.wvalid, axi.wready),
        ):
            m.d.comb += [channel.valid.eq(valid), channel.ready.eq(ready)]
        return m

    def _wait(self, m: Module, registers: TmaFrontEnd, unit: TmaUnit) -> None:
        """Waits of the host: at the scratchpad that it names."""
        own, users = self._ports, users_of(unit)
        if len(users) == 1:
            wiring.connect(m, registers.o_waits, unit.i_waits[own])
            wiring.connect(m, unit.o_waits[own], registers.i_results)
            return
        asked, result = registers.o_waits, registers.i_results
        for number, user in enumerate(users):
            waits, found = user.i_waits[own], user.o_waits[own]
            here = registers.o_wait_pad == number
            m.d.comb += [
                waits.valid.eq(asked.valid & here),
                waits.payload.eq(asked.payload),
                found.ready.eq(1),
            ]
            # A wait of the host ends before its next one begins.
            with m.If(here):
                m.d.comb += [
                    asked.ready.eq(waits.ready),
                    result.valid.eq(found.valid),
                    result.payload.eq(found.payload),
                ]
