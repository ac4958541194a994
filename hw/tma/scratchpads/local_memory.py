"""Local memory of a TMA unit: a scratchpad with its bank of barriers."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arch import limits
from hw.arch.tma_sizes import TmaSizes
from hw.emit.shared import shared
from hw.lib.component import Component
from hw.tma.barriers.barrier_bank import BarrierBank
from hw.tma.barriers.barrier_layouts import (
    barrier_answer_layout,
    barrier_operation_layout,
    barrier_result_layout,
    barrier_wait_layout,
)
from hw.tma.standalone.vector_scratchpad import Scratchpad, scratchpad_write_layout

__all__ = [
    "BANK_LIMITS",
    "LocalMemory",
    "connect_operations",
    "connect_user",
    "routed_operation_layout",
    "user_ports",
    "users_of",
]

#: Largest counts of a bank of barriers, whatever its size.
BANK_LIMITS = {
    "arrivals": limits.BARRIER_ARRIVALS.high,
    "tx_bytes": limits.BARRIER_TX_BYTES.high,
}


def routed_operation_layout() -> data.StructLayout:
    """Layout of an operation on the barriers of one of several scratchpads, by its number."""
    operation = barrier_operation_layout(**BANK_LIMITS)
    return data.StructLayout({"scratchpad": range(limits.SCRATCHPADS.high), **operation.members})


def user_ports(sizes: TmaSizes, ports: int) -> dict[str, wiring.Member]:
    """Members for the accelerator beside a unit: those of its scratchpads and their barriers.

    Those of the scratchpads beyond the first are in the array ``further``.
    """
    if sizes.scratchpads == 1:
        return _members(sizes, ports, barrier_operation_layout(**BANK_LIMITS))
    one = _members(sizes, ports, routed_operation_layout())
    return {**one, "further": Out(wiring.Signature(one)).array(sizes.scratchpads - 1)}


def users_of(component: Any) -> list[Any]:
    """Each scratchpad's members of a component that has those of :func:`user_ports`."""
    return [component, *getattr(component, "further", ())]


def _members(sizes: TmaSizes, ports: int, operation: data.StructLayout) -> dict[str, wiring.Member]:
    answers = barrier_answer_layout(**BANK_LIMITS)
    answer = wiring.Signature({"valid": Out(1), "payload": Out(answers)})
    read = wiring.Signature({"valid": Out(1), "data": Out(sizes.width_bits)})
    return {
        "i_operations": In(stream.Signature(operation)).array(ports),
        "o_answers": Out(answer).array(ports),
        "i_waits": In(stream.Signature(barrier_wait_layout)).array(ports),
        "o_waits": Out(stream.Signature(barrier_result_layout)).array(ports),
        "o_phases": Out(sizes.barriers),
        "o_flags": Out(sizes.barriers),
        "o_valid": Out(sizes.barriers),
        "i_writes": In(stream.Signature(scratchpad_write_layout(sizes.width_bits, sizes.vectors))),
        "i_reads": In(stream.Signature(range(sizes.vectors))),
        "o_data": Out(read),
    }


class LocalMemory(Component):
    """Local memory: a scratchpad and its barriers, with ports of the user and of the unit.

    Parameters
    ----------
    sizes : TmaSizes
    ports : int
        Ports of barrier operations, and waiters, of the user.
    others : int
        Further ports of operations, behind those.

    Members
    -------
    i_operations, o_answers, i_waits, o_waits, o_phases, o_flags, o_valid
        Of the user, as in :class:`hw.tma.barriers.barrier_bank.BarrierBank`.
    i_writes, i_reads, o_data
        Of the user, as in :class:`hw.tma.standalone.vector_scratchpad.Scratchpad`.
    i_box_write, i_box_read, o_box_data
        Of the unit, as there.
    i_own_operations, o_own_answers
        Port of the unit at the bank.
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
    i_box_write: stream.Interface
    i_box_read: stream.Interface
    o_box_data: Signal
    i_own_operations: stream.Interface
    o_own_answers: Any

    def __init__(self, sizes: TmaSizes, *, ports: int, others: int = 0) -> None:
        self._sizes = sizes
        self._ports = ports
        self._others = others
        operation = barrier_operation_layout(**BANK_LIMITS)
        users = _members(sizes, ports, operation)
        further = _members(sizes, ports + others, operation)
        users |= {name: further[name] for name in ("i_operations", "o_answers")}
        answers = barrier_answer_layout(**BANK_LIMITS)
        super().__init__(
            {
                **users,
                "i_box_write": users["i_writes"],
                "i_box_read": users["i_reads"],
                "o_box_data": Out(sizes.width_bits),
                "i_own_operations": In(stream.Signature(operation)),
                "o_own_answers": Out(wiring.Signature({"valid": Out(1), "payload": Out(answers)})),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        sizes, ports = self._sizes, self._ports
        scratchpad = Scratchpad(width_bits=sizes.width_bits, vectors=sizes.vectors)
        # The first port of the bank is the unit's own.
        bank = BarrierBank(
            barriers=sizes.barriers, ports=1 + ports + self._others, waiters=ports, **BANK_LIMITS
        )
        m.submodules.scratchpad = shared(scratchpad)
        m.submodules.bank = shared(bank)
        for outer, inner in (
            (self.i_writes, scratchpad.i_writes),
            (self.i_reads, scratchpad.i_reads),
            (self.i_box_write, scratchpad.i_box_write),
            (self.i_box_read, scratchpad.i_box_read),
            (self.i_own_operations, bank.i_operations[0]),
            *zip(self.i_operations, bank.i_operations[1:], strict=True),
            *zip(self.i_waits, bank.i_waits, strict=True),
        ):
            wiring.connect(m, wiring.flipped(outer), inner)
        for given, result in zip(bank.o_waits, self.o_waits, strict=True):
            wiring.connect(m, given, wiring.flipped(result))
        for answer, given in zip(
            (self.o_own_answers, *self.o_answers), bank.o_answers, strict=True
        ):
            m.d.comb += [answer.valid.eq(given.valid), answer.payload.eq(given.payload)]
        m.d.comb += [
            self.o_phases.eq(bank.o_phases),
            self.o_flags.eq(bank.o_flags),
            self.o_valid.eq(bank.o_valid),
            self.o_data.valid.eq(scratchpad.o_data.valid),
            self.o_data.data.eq(scratchpad.o_data.data),
            self.o_box_data.eq(scratchpad.o_box_data),
        ]
        return m


def connect_user(m: Module, outer: Any, inner: Any) -> None:
    """Connect the user's members of a component to those of one in it.

    The inner one may have more ports; the first are those of the outer one.
    """
    for name in ("i_writes", "i_reads"):
        wiring.connect(m, wiring.flipped(getattr(outer, name)), getattr(inner, name))
    for number, given in enumerate(outer.i_waits):
        wiring.connect(m, wiring.flipped(given), inner.i_waits[number])
        wiring.connect(m, inner.o_waits[number], wiring.flipped(outer.o_waits[number]))
    m.d.comb += [
        outer.o_phases.eq(inner.o_phases),
        outer.o_flags.eq(inner.o_flags),
        outer.o_valid.eq(inner.o_valid),
        outer.o_data.valid.eq(inner.o_data.valid),
        outer.o_data.data.eq(inner.o_data.data),
    ]


def connect_operations(m: Module, outer: Any, inner: Any) -> None:
    """Connect the user's ports of operations of a component to those of one in it, as above."""
    for number, given in enumerate(outer.i_operations):
        wiring.connect(m, wiring.flipped(given), inner.i_operations[number])
        m.d.comb += [
            outer.o_answers[number].valid.eq(inner.o_answers[number].valid),
            outer.o_answers[number].payload.eq(inner.o_answers[number].payload),
        ]
