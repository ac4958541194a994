"""Operation router: operations of every scratchpad's user on the barriers of any scratchpad."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arch.error_codes import BarrierError
from hw.lib.component import Component
from hw.tma.barriers.barrier_layouts import barrier_answer_layout, barrier_operation_layout
from hw.tma.scratchpads.local_memory import BANK_LIMITS, routed_operation_layout

__all__ = ["OperationRouter"]


class OperationRouter(Component):
    """Operation router: an operation goes to the bank of the scratchpad that it names.

    One operation per cycle and bank comes from the ports of other scratchpads, in turn; each is
    answered in the cycle after it was taken. An operation on the barriers of a scratchpad that
    does not exist is answered with INDEX.

    Parameters
    ----------
    scratchpads, ports : int
        Scratchpads, and ports of the user of each.

    Members
    -------
    i_operations : streams of :func:`hw.tma.scratchpads.local_memory.routed_operation_layout`
    o_answers
        Of the ports of scratchpad 0, then of 1, and so on.
    o_own, i_own
        Operations of each port on the bank of its own scratchpad, and their answers.
    o_remote, i_remote
        Operations of the other scratchpads' ports on each bank, and their answers.
    """

    i_operations: Sequence[stream.Interface]
    o_answers: Sequence[Any]
    o_own: Sequence[stream.Interface]
    i_own: Sequence[Any]
    o_remote: Sequence[stream.Interface]
    i_remote: Sequence[Any]

    def __init__(self, *, scratchpads: int, ports: int) -> None:
        self._scratchpads = scratchpads
        self._ports = ports
        count = scratchpads * ports
        operations = stream.Signature(barrier_operation_layout(**BANK_LIMITS))
        answers = barrier_answer_layout(**BANK_LIMITS)
        answer = wiring.Signature({"valid": Out(1), "payload": Out(answers)})
        super().__init__(
            {
                "i_operations": In(stream.Signature(routed_operation_layout())).array(count),
                "o_answers": Out(answer).array(count),
                "o_own": Out(operations).array(count),
                "i_own": In(answer).array(count),
                "o_remote": Out(operations).array(scratchpads),
                "i_remote": In(answer).array(scratchpads),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        served = [self._choose(m, bank) for bank in range(self._scratchpads)]
        for number, port in enumerate(self.i_operations):
            home = number // self._ports
            own, answer = self.o_own[number], self.o_answers[number]
            operation: Any = port.payload
            absent = operation.scratchpad >= self._scratchpads
            refused = Signal(name=f"refused{number}")
            m.d.comb += own.valid.eq(port.valid & (operation.scratchpad == home))
            m.d.comb += _fields(own.payload, operation)
            m.d.sync += refused.eq(port.valid & absent)
            with m.If(operation.scratchpad == home):
                m.d.comb += port.ready.eq(own.ready)
            with m.Elif(absent):
                m.d.comb += port.ready.eq(1)
            with m.If(refused):
                m.d.comb += [answer.valid.eq(1), answer.payload.error.eq(BarrierError.INDEX)]
            with m.Elif(self.i_own[number].valid):
                m.d.comb += [answer.valid.eq(1), answer.payload.eq(self.i_own[number].payload)]
            for bank in range(self._scratchpads):
                found = self.i_remote[bank]
                if bank == home:
                    continue
                with m.If(found.valid & (served[bank] == number)):
                    m.d.comb += [answer.valid.eq(1), answer.payload.eq(found.payload)]
        return m

    def _choose(self, m: Module, bank: int) -> Signal:
        """Give a bank the next operation of other scratchpads; the port that was served last."""
        target = self.o_remote[bank]
        first, last = bank * self._ports, (bank + 1) * self._ports
        ports = [each for each in range(len(self.i_operations)) if not first <= each < last]
        served = Signal(range(len(self.i_operations)), init=ports[0], name=f"served{bank}")
        chosen = Signal.like(served, name=f"chosen{bank}")
        wants = {
            each: self.i_operations[each].valid
            & (self.i_operations[each].payload.scratchpad == bank)
            for each in ports
        }
        # The last assignment wins: the first port that wants the bank, beyond the one served.
        for each in reversed(ports):
            with m.If(wants[each]):
                m.d.comb += chosen.eq(each)
        for each in reversed(ports[ports[0] == 0 :]):
            with m.If(wants[each] & (served < each)):
                m.d.comb += chosen.eq(each)
        m.d.comb += target.valid.eq(Cat(wants.values()).any())
        with m.Switch(chosen):
            for each in ports:
                with m.Case(each):
                    m.d.comb += _fields(target.payload, self.i_operations[each].payload)
                    with m.If(wants[each]):
                        m.d.comb += self.i_operations[each].ready.eq(target.ready)
        with m.If(target.valid & target.ready):
            m.d.sync += served.eq(chosen)
        return served


def _fields(target: Any, source: Any) -> list[Any]:
    """Statements that give an operation on without the scratchpad that it names."""
    return [target[name].eq(source[name]) for name, _ in target.shape()]
