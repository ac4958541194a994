"""Slots of commands in flight: identifiers of the host, and the ends of commands."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arch.error_codes import TmaError
from hw.arch.registers.tma_registers import COMMAND_ID_BITS
from hw.emit.shared import shared
from hw.lib.component import Component
from hw.lib.fifo import Queue
from hw.tma.standalone.unit_commands import (
    completion_layout,
    unit_command_layout,
)

__all__ = ["CommandSlots"]


class CommandSlots(Component):
    """Slots of commands: the unit knows a command by its slot, the host by its identifier.

    A slot is taken in turn when a command is given, and is free again when its command has
    completed. A command is taken if the slot in turn is free, and if fewer commands than slots are
    in flight or have completions that were not taken. So completions are never held up.

    Parameters
    ----------
    address_bits : int
        Width of a byte address of memory.
    slots : int
        Slots, a power of two (`limits.COMMAND_SLOTS`).
    scratchpads : int
        Scratchpads of the unit.

    Members
    -------
    i_commands, o_commands : streams of :func:`hw.tma.standalone.unit_commands.unit_command_layout`
        From the host and to the unit. Commands to the unit wait in a queue that has room for all.
    i_completions, o_completions : streams of
            :data:`hw.tma.standalone.unit_commands.completion_layout`
        From the unit, always taken, and to the host.
    i_aborting, i_reset
        An abort of the unit is under way; nothing is left of the commands in the unit.
    o_aborting
        The abort is under way, or commands that it ended have no completion yet.
    o_idle
        No command is in flight.
    o_done, o_failed
        A completion with code 0, or with another, is there for the host from now on.
    """

    i_commands: stream.Interface
    o_commands: stream.Interface
    i_completions: stream.Interface
    o_completions: stream.Interface
    i_aborting: Signal
    i_reset: Signal
    o_aborting: Signal
    o_idle: Signal
    o_done: Signal
    o_failed: Signal

    def __init__(self, *, address_bits: int, slots: int, scratchpads: int = 1) -> None:
        self._slots = slots
        self._commands = unit_command_layout(address_bits, scratchpads)
        super().__init__(
            {
                "i_commands": In(stream.Signature(self._commands)),
                "o_commands": Out(stream.Signature(self._commands)),
                "i_completions": In(stream.Signature(completion_layout)),
                "o_completions": Out(stream.Signature(completion_layout)),
                "i_aborting": In(1),
                "i_reset": In(1),
                "o_aborting": Out(1),
                "o_idle": Out(1),
                "o_done": Out(1),
                "o_failed": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        slots = self._slots
        flying = Signal(slots)
        turn = Signal(range(slots))
        used = Signal(range(slots + 1))  # in flight, or completed and not taken
        ids: Any = memory.Memory(shape=COMMAND_ID_BITS, depth=slots, init=[])
        m.submodules.ids = ids
        writer, reader = ids.write_port(), ids.read_port()
        waiting = Queue(self._commands, depth=slots)
        ended = Queue(completion_layout, depth=slots)
        m.submodules.waiting = shared(waiting)
        m.submodules.ended = shared(ended)

        cursor = Signal(range(slots))
        left = Signal(range(slots + 1))
        sweeping = left != 0
        m.d.comb += self.o_aborting.eq(self.i_aborting | sweeping)

        given: Any = self.i_commands.payload
        entering: Any = waiting.i_stream.payload
        taken = Signal()
        m.d.comb += [
            self.i_commands.ready.eq(
                (used != slots) & ~flying.bit_select(turn, 1) & ~self.o_aborting
            ),
            taken.eq(self.i_commands.valid & self.i_commands.ready),
            writer.addr.eq(turn),
            writer.data.eq(given.id),
            writer.en.eq(taken),
            entering.eq(given),
            entering.id.eq(turn),
            waiting.i_stream.valid.eq(taken),
            self.o_commands.payload.eq(waiting.o_stream.payload),
            self.o_commands.valid.eq(waiting.o_stream.valid & ~self.o_aborting),
            waiting.o_stream.ready.eq(self.o_commands.ready | self.o_aborting),
        ]

        # An end: of the unit, or while sweeping of the slot at the cursor.
        completion: Any = self.i_completions.payload
        ends, slot, code = Signal(), Signal(range(slots)), Signal(8)
        m.d.comb += [
            self.i_completions.ready.eq(1),
            ends.eq(Mux(sweeping, flying.bit_select(cursor, 1), self.i_completions.valid)),
            slot.eq(Mux(sweeping, cursor, completion.id)),
            code.eq(Mux(sweeping, TmaError.ABORTED.value, completion.code)),
            reader.addr.eq(slot),
            reader.en.eq(ends),
        ]
        with m.If(self.i_reset):
            m.d.sync += [cursor.eq(turn), left.eq(slots)]
        with m.Elif(sweeping):
            m.d.sync += [cursor.eq(cursor + 1), left.eq(left - 1)]
        begun, ended_now = taken << turn, ends << slot
        m.d.sync += [
            flying.eq((flying | begun) & ~ended_now),
            turn.eq(turn + taken),
            used.eq(used + taken - (self.o_completions.valid & self.o_completions.ready)),
        ]
        arrived, ending, ending_code = Signal(), Signal(2), Signal(8)
        leaving: Any = ended.i_stream.payload
        m.d.sync += [arrived.eq(ends), ending_code.eq(code)]
        m.d.comb += [
            leaving.id.eq(reader.data),
            leaving.code.eq(ending_code),
            ended.i_stream.valid.eq(arrived),
            self.o_idle.eq(~flying.any() & ~arrived),
        ]
        wiring.connect(m, ended.o_stream, wiring.flipped(self.o_completions))
        # A payload takes two cycles through the queue.
        failed = arrived & (ending_code != TmaError.NONE.value)
        m.d.sync += [
            ending.eq(Cat(arrived & ~failed, failed)),
            Cat(self.o_done, self.o_failed).eq(ending),
        ]
        return m
