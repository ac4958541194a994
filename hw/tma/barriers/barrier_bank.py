"""Barrier bank: phase barriers in a memory, reached by streams of operations and of waits."""

import functools
from collections.abc import Iterable, Sequence
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arch.error_codes import BarrierError
from hw.arch.limits import (
    BARRIER_ARRIVALS,
    BARRIER_PORTS,
    BARRIER_TX_BYTES,
    BARRIER_WAITERS,
    BARRIERS,
)
from hw.emit.shared import shared
from hw.lib.barrier import BarrierStep, barrier_step
from hw.lib.component import Component
from hw.tma.barriers.barrier_layouts import (
    BarrierOperation,
    barrier_answer_layout,
    barrier_counts_layout,
    barrier_operation_layout,
    barrier_result_layout,
    barrier_wait_layout,
    is_above,
)
from hw.tma.barriers.barrier_waiter import BarrierWaiter

__all__ = ["BarrierBank"]

_ARRIVING = (
    BarrierOperation.ARRIVE,
    BarrierOperation.ARRIVE_NO_COMPLETE,
    BarrierOperation.ARRIVE_EXPECT,
)
_EXPECTING = (BarrierOperation.ARRIVE_EXPECT, BarrierOperation.EXPECT)


class BarrierBank(Component):
    """Bank of phase barriers, whose ports take turns at one operation per cycle.

    An operation is accepted in every cycle in which a port offers one, and answered in the next
    cycle. Operations on the same barrier may follow each other without a pause.

    Parameters
    ----------
    barriers : int
        Barriers of the bank.
    arrivals : int
        Greatest number of arrivals that a phase may expect.
    tx_bytes : int
        Largest magnitude of a transaction count.
    ports : int
        Ports of operations.
    waiters : int
        Waits at a time.

    Members
    -------
    i_operations : array of streams
        Operations, of :func:`hw.tma.barriers.barrier_layouts.barrier_operation_layout`.
    o_answers : array, with ``valid``
        Answers, of :func:`hw.tma.barriers.barrier_layouts.barrier_answer_layout`. Valid for one
        cycle, the one after an operation of the port was accepted; from bit 0 on: phase,
        expected, pending, tx, flag, error.
    i_waits : array of streams
        Waits until the phase of a parity has completed, of
        :data:`hw.tma.barriers.barrier_layouts.barrier_wait_layout`.
    o_waits : array of streams
        The end of each wait, of :data:`hw.tma.barriers.barrier_layouts.barrier_result_layout`.
    o_phases : ``Out(barriers)``
        Parity of the phase of each barrier.
    o_flags : ``Out(barriers)``
        Error flag of each barrier.
    o_valid : ``Out(barriers)``
        Whether each barrier is initialised.

    Attributes
    ----------
    applied, operation : Signal, View
        The operation that was accepted one cycle ago, for proofs.

    Raises
    ------
    BadInputError
        If a parameter lies outside its domain.
    """

    i_operations: Sequence[stream.Interface]
    o_answers: Sequence[Any]
    i_waits: Sequence[stream.Interface]
    o_waits: Sequence[stream.Interface]
    o_phases: Signal
    o_flags: Signal
    o_valid: Signal

    def __init__(
        self,
        *,
        barriers: int = 32,
        arrivals: int = BARRIER_ARRIVALS.high,
        tx_bytes: int = BARRIER_TX_BYTES.high,
        ports: int = 2,
        waiters: int = 1,
    ) -> None:
        BARRIERS.require("Barriers of a bank", barriers)
        BARRIER_ARRIVALS.require("Barrier arrivals", arrivals)
        BARRIER_TX_BYTES.require("Barrier transaction bytes", tx_bytes)
        BARRIER_PORTS.require("Barrier ports", ports)
        BARRIER_WAITERS.require("Barrier waiters", waiters)
        self._barriers = barriers
        self._arrivals = arrivals
        self._tx_bytes = tx_bytes
        self._ports = ports
        self._waiters = waiters
        most = {"arrivals": arrivals, "tx_bytes": tx_bytes}
        answer = wiring.Signature({"valid": Out(1), "payload": Out(barrier_answer_layout(**most))})
        super().__init__(
            {
                "i_operations": In(stream.Signature(barrier_operation_layout(**most))).array(ports),
                "o_answers": Out(answer).array(ports),
                "i_waits": In(stream.Signature(barrier_wait_layout)).array(waiters),
                "o_waits": Out(stream.Signature(barrier_result_layout)).array(waiters),
                "o_phases": Out(barriers),
                "o_flags": Out(barriers),
                "o_valid": Out(barriers),
            }
        )
        self.applied = Signal()
        self.operation: Any = Signal(barrier_operation_layout(**most), reset_less=True)

    @functools.cached_property
    def counts(self) -> Any:
        """Memory of counts."""
        shape = barrier_counts_layout(arrivals=self._arrivals, tx_bytes=self._tx_bytes)
        return memory.Memory(shape=shape, depth=self._barriers, init=[])

    @functools.cached_property
    def reader(self) -> Any:
        """Read port, which has what is written in the same cycle."""
        return self.counts.read_port(transparent_for=(self._writer,))

    @functools.cached_property
    def _writer(self) -> Any:
        return self.counts.write_port()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.counts = self.counts
        port = self._accept(m)
        operation, counts = self.operation, self.reader.data
        kind = operation.operation
        step = barrier_step(
            m,
            (counts.expected, counts.pending, counts.tx),
            (
                Mux(_is_any(kind, _ARRIVING), operation.arrivals, 0),
                Mux(kind == BarrierOperation.DROP, operation.arrivals, 0),
                Mux(_is_any(kind, _EXPECTING), operation.bytes, 0),
                Mux(kind == BarrierOperation.COMPLETE, operation.bytes, 0),
            ),
            arrivals=self._arrivals,
            tx_bytes=self._tx_bytes,
        )
        here, known = Signal(self._barriers), Signal()
        m.d.comb += [here.eq(1 << operation.barrier), known.eq((self.o_valid & here).any())]
        error = Signal(BarrierError)
        self._judge(m, step, known, error)
        self._apply(m, step, here, known & (error != BarrierError.NONE), error)
        for number, answers in enumerate(self.o_answers):
            answer = answers.payload
            m.d.comb += [answers.valid.eq(self.applied & (port == number)), answer.error.eq(error)]
            with m.If(known):
                m.d.comb += [
                    answer.phase.eq((self.o_phases & here).any()),
                    answer.flag.eq((self.o_flags & here).any()),
                    *(answer[name].eq(counts[name]) for name in ("expected", "pending", "tx")),
                ]
        for number in range(self._waiters):
            waiter = BarrierWaiter(barriers=self._barriers)
            m.submodules[f"waiter{number}"] = shared(waiter)
            wiring.connect(m, wiring.flipped(self.i_waits[number]), waiter.i_wait)
            wiring.connect(m, waiter.o_result, wiring.flipped(self.o_waits[number]))
            m.d.comb += [
                waiter.i_phases.eq(self.o_phases),
                waiter.i_flags.eq(self.o_flags),
                waiter.i_valid.eq(self.o_valid),
            ]
        return m

    def _accept(self, m: Module) -> Signal:
        """Accept an operation of the nearest port behind the one before, and read its counts."""
        ports = range(self._ports)
        served, chosen = Signal(ports), Signal(ports)
        with m.Switch(served):
            for former in ports:
                with m.Case(former):
                    # The last assignment wins: the port right behind the former one.
                    m.d.comb += chosen.eq(former)
                    for distance in reversed(ports[1:]):
                        candidate = (former + distance) % self._ports
                        with m.If(self.i_operations[candidate].valid):
                            m.d.comb += chosen.eq(candidate)
        accepted = Signal.like(self.operation)
        offered = Signal()
        with m.Switch(chosen):
            for number, offers in enumerate(self.i_operations):
                with m.Case(number):
                    m.d.comb += [
                        offered.eq(offers.valid),
                        offers.ready.eq(1),
                        accepted.eq(offers.payload),
                    ]
        m.d.comb += [self.reader.addr.eq(accepted.barrier), self.reader.en.eq(offered)]
        m.d.sync += self.applied.eq(offered)
        with m.If(offered):
            m.d.sync += [served.eq(chosen), self.operation.eq(accepted)]
        return served

    def _judge(self, m: Module, step: BarrierStep, known: Value, error: Signal) -> None:
        """Find the first reason to refuse the operation."""
        operation = self.operation
        kind = operation.operation
        starts = kind == BarrierOperation.INIT
        unfit = (operation.arrivals == 0) | is_above(operation.arrivals, self._arrivals)
        early = (kind == BarrierOperation.ARRIVE_NO_COMPLETE) & step.some & step.settled
        reasons = (
            (is_above(operation.barrier, self._barriers - 1), BarrierError.INDEX),
            (~_is_any(kind, BarrierOperation), BarrierError.OPERATION),
            (starts & unfit, BarrierError.EXPECTED),
            (~starts & ~known, BarrierError.UNINITIALISED),
            (~starts & step.retired, BarrierError.RETIRED),
            (~starts & step.excess, BarrierError.ARRIVALS),
            (~starts & step.outside, BarrierError.TX),
            (early, BarrierError.COMPLETES),
        )
        # The last assignment wins: the first reason.
        for refused, code in reversed(reasons):
            with m.If(refused):
                m.d.comb += error.eq(code)

    def _apply(
        self, m: Module, step: BarrierStep, here: Value, spoilt: Value, error: Signal
    ) -> None:
        """Write the next state, or raise the flag of a barrier whose operation is refused."""
        operation, writer = self.operation, self._writer
        m.d.comb += [
            writer.addr.eq(operation.barrier),
            writer.data.expected.eq(step.expected),
            writer.data.pending.eq(Mux(step.settled, step.expected, step.pending)),
            writer.data.tx.eq(step.tx),
        ]
        with m.If(self.applied & (error == BarrierError.NONE)):
            with m.Switch(operation.operation):
                with m.Case(BarrierOperation.INIT):
                    m.d.comb += [
                        writer.en.eq(1),
                        writer.data.expected.eq(operation.arrivals),
                        writer.data.pending.eq(operation.arrivals),
                        writer.data.tx.eq(0),
                    ]
                    m.d.sync += [
                        self.o_phases.eq(self.o_phases & ~here),
                        self.o_flags.eq(self.o_flags & ~here),
                        self.o_valid.eq(self.o_valid | here),
                    ]
                with m.Case(BarrierOperation.INVALIDATE):
                    m.d.sync += self.o_valid.eq(self.o_valid & ~here)
                with m.Default():
                    with m.If(step.some):
                        m.d.comb += writer.en.eq(1)
                        m.d.sync += self.o_phases.eq(self.o_phases ^ Mux(step.settled, here, 0))
            with m.If((operation.operation == BarrierOperation.COMPLETE) & operation.failed):
                m.d.sync += self.o_flags.eq(self.o_flags | here)
        with m.If(self.applied & spoilt):
            m.d.sync += self.o_flags.eq(self.o_flags | here)


def _is_any(kind: Any, operations: Iterable[BarrierOperation]) -> Value:
    """Whether an operation is one of several."""
    return Cat(kind == each for each in operations).any()
