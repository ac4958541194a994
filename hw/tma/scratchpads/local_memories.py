"""Local memories of a TMA unit: several scratchpads, each with its bank of barriers."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arch.tma_sizes import TmaSizes
from hw.emit.shared import shared
from hw.lib.component import Component
from hw.tma.barriers.barrier_layouts import barrier_answer_layout, barrier_operation_layout
from hw.tma.scratchpads.barrier_fan import BarrierFan
from hw.tma.scratchpads.local_memory import (
    BANK_LIMITS,
    LocalMemory,
    connect_user,
    user_ports,
    users_of,
)
from hw.tma.scratchpads.operation_router import OperationRouter

__all__ = ["LocalMemories"]


class LocalMemories(Component):
    """Local memories: what the unit writes goes to several scratchpads in the same cycle.

    A write waits until the write port of every scratchpad that it goes to is free.

    Parameters
    ----------
    sizes : TmaSizes
        Of two scratchpads or more.
    ports : int
        Ports of barrier operations, and waiters, of the user of each scratchpad.

    Members
    -------
    i_operations, o_answers, i_waits, o_waits, o_phases, o_flags, o_valid, i_writes, i_reads, o_data
        Of the first scratchpad, as of :class:`hw.tma.scratchpads.local_memory.LocalMemory`; an
        operation names the scratchpad of its barrier.
    further
        The same members for each other scratchpad.
    i_box_write, i_write_pads
        Writes of the unit, with a bit per scratchpad.
    i_box_read, i_read_pads, o_box_data
        Reads of boxes, with a bit per scratchpad, of which one is set.
    i_copy_read, i_copy_pads, o_copy_data
        Reads of copies.
    i_own_operations, i_operation_pads, o_own_answers
        Operations of the unit, as of :class:`hw.tma.scratchpads.barrier_fan.BarrierFan`.
    i_reset
        Forget an operation of the unit that only some banks have taken.
    """

    i_operations: Sequence[stream.Interface]
    o_answers: Sequence[Any]
    i_waits: Sequence[stream.Interface]
    o_waits: Sequence[stream.Interface]
    o_phases: Signal
    o_flags: Signal
    o_valid: Signal
    i_writes: stream.Interface
    i_reads: stream.Interface
    o_data: Any
    further: Sequence[Any]
    i_box_write: stream.Interface
    i_write_pads: Signal
    i_box_read: stream.Interface
    i_read_pads: Signal
    o_box_data: Signal
    i_copy_read: stream.Interface
    i_copy_pads: Signal
    o_copy_data: Signal
    i_own_operations: stream.Interface
    i_operation_pads: Signal
    o_own_answers: Any
    i_reset: Signal

    def __init__(self, sizes: TmaSizes, *, ports: int) -> None:
        self._sizes = sizes
        self._ports = ports
        users = user_ports(sizes, ports)
        answers = barrier_answer_layout(**BANK_LIMITS)
        pads = sizes.scratchpads
        super().__init__(
            {
                **users,
                "i_box_write": users["i_writes"],
                "i_write_pads": In(pads),
                "i_box_read": users["i_reads"],
                "i_read_pads": In(pads),
                "o_box_data": Out(sizes.width_bits),
                "i_copy_read": users["i_reads"],
                "i_copy_pads": In(pads),
                "o_copy_data": Out(sizes.width_bits),
                "i_own_operations": In(stream.Signature(barrier_operation_layout(**BANK_LIMITS))),
                "i_operation_pads": In(pads),
                "o_own_answers": Out(wiring.Signature({"valid": Out(1), "payload": Out(answers)})),
                "i_reset": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        sizes, ports = self._sizes, self._ports
        memories = [
            LocalMemory(sizes, ports=ports, others=1) for _ in range(self._sizes.scratchpads)
        ]
        for number, (user, memory) in enumerate(zip(users_of(self), memories, strict=True)):
            m.submodules[f"memory{number}"] = shared(memory)
            connect_user(m, user, memory)
        self._write(m, memories)
        self._read(m, memories)
        fan = BarrierFan(sizes.scratchpads)
        m.submodules.fan = shared(fan, reset=self.i_reset)
        wiring.connect(m, wiring.flipped(self.i_own_operations), fan.i_operations)
        m.d.comb += fan.i_pads.eq(self.i_operation_pads)
        m.d.comb += _copied(self.o_own_answers, fan.o_answers)
        router = OperationRouter(scratchpads=sizes.scratchpads, ports=ports)
        m.submodules.router = shared(router)
        for number, (user, memory) in enumerate(zip(users_of(self), memories, strict=True)):
            wiring.connect(m, fan.o_banks[number], memory.i_own_operations)
            wiring.connect(m, router.o_remote[number], memory.i_operations[ports])
            m.d.comb += _copied(fan.i_answers[number], memory.o_own_answers)
            m.d.comb += _copied(router.i_remote[number], memory.o_answers[ports])
            for port in range(ports):
                at = number * ports + port
                wiring.connect(m, wiring.flipped(user.i_operations[port]), router.i_operations[at])
                wiring.connect(m, router.o_own[at], memory.i_operations[port])
                m.d.comb += _copied(router.i_own[at], memory.o_answers[port])
                m.d.comb += _copied(user.o_answers[port], router.o_answers[at])
        return m

    def _write(self, m: Module, memories: Sequence[LocalMemory]) -> None:
        """Write to all scratchpads in the same cycle."""
        given, pads = self.i_box_write, self.i_write_pads
        busy = Signal.like(pads)
        for number, memory in enumerate(memories):
            target = memory.i_box_write
            m.d.comb += [
                busy[number].eq(pads[number] & ~target.ready),
                target.valid.eq(given.valid & pads[number] & given.ready),
                target.payload.eq(given.payload),
            ]
        m.d.comb += given.ready.eq(~busy.any())

    def _read(self, m: Module, memories: Sequence[LocalMemory]) -> None:
        """Reads of boxes and of copies: in turn if they are of the same scratchpad."""
        boxes, copies = self.i_box_read, self.i_copy_read
        both = Signal()
        turn = Signal()  # a copy goes first
        m.d.comb += both.eq(
            boxes.valid & copies.valid & (self.i_read_pads & self.i_copy_pads).any()
        )
        clients = (
            (boxes, self.i_read_pads, self.o_box_data, ~both | ~turn),
            (copies, self.i_copy_pads, self.o_copy_data, ~both | turn),
        )
        free = Signal.like(self.i_read_pads)
        for number, memory in enumerate(memories):
            target = memory.i_box_read
            chosen = copies.valid & self.i_copy_pads[number] & clients[1][3]
            m.d.comb += [
                free[number].eq(target.ready),
                target.valid.eq(chosen | (boxes.valid & self.i_read_pads[number])),
                target.payload.eq(Mux(chosen, copies.payload, boxes.payload)),
            ]
        for client, pads, word, goes in clients:
            last = Signal.like(pads)  # of the read in the cycle before
            m.d.sync += last.eq(pads)
            m.d.comb += [
                client.ready.eq(goes & (pads & free).any()),
                word.eq(_selected(last, [memory.o_box_data for memory in memories])),
            ]
        with m.If(both & (boxes.ready | copies.ready)):
            m.d.sync += turn.eq(~turn)


def _selected(pads: Value, words: Sequence[Value]) -> Value:
    """The word whose bit is set; 0 without one."""
    found: Value = Mux(pads[0], words[0], 0)
    for number, word in enumerate(words[1:], 1):
        found |= Mux(pads[number], word, 0)
    return found


def _copied(target: Any, source: Any) -> list[Any]:
    """Statements that give an answer on."""
    return [target.valid.eq(source.valid), target.payload.eq(source.payload)]
