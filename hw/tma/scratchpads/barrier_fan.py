"""Barrier fan: one operation of the unit on the banks of several scratchpads."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arch.error_codes import BarrierError
from hw.lib.component import Component
from hw.tma.barriers.barrier_layouts import barrier_answer_layout, barrier_operation_layout
from hw.tma.scratchpads.local_memory import BANK_LIMITS

__all__ = ["BarrierFan"]


class BarrierFan(Component):
    """Barrier fan: broadcast of one operation to chosen barrier banks, each of which takes it once.

    It takes one cycle if no bank has other operations. The answer follows in the cycle after the
    operation was taken: it has the first error of a bank, and no other field.

    Parameters
    ----------
    scratchpads : int
        Banks.

    Members
    -------
    i_operations : stream of :func:`hw.tma.barriers.barrier_layouts.barrier_operation_layout`
    i_pads
        A bit per bank; constant while an operation is offered.
    o_answers
        Answer, with ``valid``.
    o_banks, i_answers
        Operations to each bank, and their answers.
    """

    i_operations: stream.Interface
    i_pads: Signal
    o_answers: Any
    o_banks: Sequence[stream.Interface]
    i_answers: Sequence[Any]

    def __init__(self, scratchpads: int) -> None:
        operations = stream.Signature(barrier_operation_layout(**BANK_LIMITS))
        answers = barrier_answer_layout(**BANK_LIMITS)
        answer = wiring.Signature({"valid": Out(1), "payload": Out(answers)})
        super().__init__(
            {
                "i_operations": In(operations),
                "i_pads": In(scratchpads),
                "o_answers": Out(answer),
                "o_banks": Out(operations).array(scratchpads),
                "i_answers": In(answer).array(scratchpads),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        given = self.i_operations
        taken = Signal.like(self.i_pads)  # banks that have the operation already
        missing = Signal.like(self.i_pads)
        kept, error = Signal(BarrierError), Signal(BarrierError)
        for number, bank in enumerate(self.o_banks):
            m.d.comb += [
                bank.valid.eq(given.valid & self.i_pads[number] & ~taken[number]),
                bank.payload.eq(given.payload),
                missing[number].eq(self.i_pads[number] & ~taken[number] & ~bank.ready),
            ]
            with m.If(bank.valid & bank.ready):
                m.d.sync += taken[number].eq(1)
        m.d.comb += given.ready.eq(~missing.any())
        ends = given.valid & given.ready
        with m.If(ends):
            m.d.sync += taken.eq(0)
        # The last assignment wins: an error of before, then that of the first bank.
        for answer in reversed(self.i_answers):
            found = answer.payload.error
            with m.If(answer.valid & (found != BarrierError.NONE)):
                m.d.comb += error.eq(found)
        with m.If(kept != BarrierError.NONE):
            m.d.comb += error.eq(kept)
        m.d.comb += self.o_answers.payload.error.eq(error)
        m.d.sync += [self.o_answers.valid.eq(ends), kept.eq(Mux(self.o_answers.valid, 0, error))]
        return m
