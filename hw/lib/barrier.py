"""Phase barrier: counts arrivals and bytes, and flips its phase when all have arrived."""

import dataclasses

from amaranth.hdl import Cat, Const, Module, Signal, Value, signed
from amaranth.lib.wiring import In, Out

from hw.arch.limits import BARRIER_ARRIVALS, BARRIER_TX_BYTES
from hw.lib.component import Component

__all__ = ["Barrier", "BarrierStep", "barrier_step", "has_passed"]


def has_passed(phase: Value, parity: Value) -> Value:
    """Wait condition: the phase of the waiter's parity has completed exactly if they differ."""
    return phase != parity


@dataclasses.dataclass(frozen=True)
class BarrierStep:
    """Result of the operations of one cycle on a barrier.

    Members
    -------
    some : Value
        There are operations: a count is not 0.
    wrong, excess, retired, outside : Value
        Nothing is to be applied, because there are more arrivals than pending, or all phases of
        the barrier are complete, or the transaction count is out of range.
    expected, pending, tx : Value
        Counts after the operations.
    settled : Value
        The phase completes: ``pending`` becomes ``expected``, and the phase flips.
    """

    some: Value
    wrong: Value
    excess: Value
    retired: Value
    outside: Value
    expected: Value
    pending: Value
    tx: Value
    settled: Value


def barrier_step(
    m: Module,
    state: tuple[Value, Value, Value],
    operations: tuple[Value, Value, Value, Value],
    *,
    arrivals: int,
    tx_bytes: int,
) -> BarrierStep:
    """Counts of a barrier after the operations of one cycle, and whether its phase completes.

    Parameters
    ----------
    m : Module
    state : tuple of Value
        Expected and pending arrivals, and the transaction count.
    operations : tuple of Value
        Arrivals, dropped arrivals, bytes expected, bytes completed.
    arrivals, tx_bytes : int
        Parameters of the barrier; without ``tx_bytes``, byte counts are not looked at.
    """
    before, waiting, owed = state
    arrive, drop, expect, complete = operations
    # One bit more than the ports: a sum of arrivals must not wrap before the comparison.
    arriving = Signal(arrivals.bit_length() + 1)
    m.d.comb += arriving.eq(arrive + drop)
    wrong = excess = arriving > waiting
    settled = arriving == waiting
    some = Cat(operations[: 4 if tx_bytes else 2]).any()
    # A last phase all of whose arrivals were dropped still waits for its bytes.
    retired = (before == 0) & (owed == 0) & some
    outside: Value = Const(0)
    tx = owed
    if tx_bytes:
        tx = Signal(signed(tx_bytes.bit_length() + 3))
        m.d.comb += tx.eq(owed + expect - complete)
        outside = (tx > tx_bytes) | (tx < -tx_bytes)
        wrong = excess | (outside | retired)
        settled &= tx == 0
    return BarrierStep(
        some=some,
        wrong=wrong,
        excess=excess,
        retired=retired,
        outside=outside,
        expected=before - drop,
        pending=waiting - arriving,
        tx=tx,
        settled=settled,
    )


class Barrier(Component):
    """Phase barrier of one slot: phase bit, expected and pending arrivals, transaction count.

    The signed transaction count is in bytes. Operations of one cycle are summed and applied as one;
    a phase completes exactly when this leaves no arrival pending and a transaction count of zero.
    All outputs are registers.

    Parameters
    ----------
    arrivals : int
        Greatest number of arrivals that a phase may expect (`BARRIER_ARRIVALS`).
    tx_bytes : int
        Largest magnitude of the transaction count (`BARRIER_TX_BYTES`); 0 omits the count and
        its ports.

    Members
    -------
    i_init : ``In(1)``
        Start at phase 0 with ``i_expected`` arrivals; other operations of the cycle are ignored.
    i_expected : ``In(range(arrivals + 1))``
        Arrivals per phase from ``i_init`` on.
    i_arrive : ``In(range(arrivals + 1))``
        Arrivals in this cycle.
    i_drop : ``In(range(arrivals + 1))``
        Arrivals in this cycle that later phases do not expect.
    i_expect : ``In(range(tx_bytes + 1))``
        Bytes that this phase waits for in addition.
    i_complete : ``In(range(tx_bytes + 1))``
        Bytes that have arrived.
    o_phase : ``Out(1)``
        Parity of the phase.
    o_expected, o_pending : ``Out(range(arrivals + 1))``
        Arrivals that a phase expects; those that this phase still lacks.
    o_tx : ``Out(signed)``
        Bytes that this phase still waits for.
    o_error : ``Out(1)``
        More arrivals than pending, or a transaction count out of range; the barrier keeps
        its former state until ``i_init``.

    Raises
    ------
    BadInputError
        If a parameter lies outside its domain.
    """

    i_init: Signal
    i_expected: Signal
    i_arrive: Signal
    i_drop: Signal
    i_expect: Signal
    i_complete: Signal
    o_phase: Signal
    o_expected: Signal
    o_pending: Signal
    o_tx: Signal
    o_error: Signal

    def __init__(self, *, arrivals: int, tx_bytes: int) -> None:
        BARRIER_ARRIVALS.require("Barrier arrivals", arrivals)
        BARRIER_TX_BYTES.require("Barrier transaction bytes", tx_bytes)
        self._arrivals = arrivals
        self._tx_bytes = tx_bytes
        members = {
            "i_init": In(1),
            "i_expected": In(range(arrivals + 1)),
            "i_arrive": In(range(arrivals + 1)),
            "i_drop": In(range(arrivals + 1)),
            "o_phase": Out(1),
            "o_expected": Out(range(arrivals + 1)),
            "o_pending": Out(range(arrivals + 1)),
            "o_error": Out(1),
        }
        if tx_bytes:
            members |= {
                "i_expect": In(range(tx_bytes + 1)),
                "i_complete": In(range(tx_bytes + 1)),
                "o_tx": Out(signed(tx_bytes.bit_length() + 1)),
            }
        super().__init__(members)

    @property
    def arrivals(self) -> int:
        """Greatest number of arrivals that a phase may expect."""
        return self._arrivals

    @property
    def tx_bytes(self) -> int:
        """Largest magnitude of the transaction count."""
        return self._tx_bytes

    def elaborate(self, platform: object) -> Module:
        m = Module()
        sizes = bool(self._tx_bytes)
        step = barrier_step(
            m,
            (self.o_expected, self.o_pending, self.o_tx if sizes else Const(0)),
            (
                self.i_arrive,
                self.i_drop,
                self.i_expect if sizes else Const(0),
                self.i_complete if sizes else Const(0),
            ),
            arrivals=self._arrivals,
            tx_bytes=self._tx_bytes,
        )
        with m.If(self.i_init):
            m.d.sync += [
                self.o_phase.eq(0),
                self.o_expected.eq(self.i_expected),
                self.o_pending.eq(self.i_expected),
                self.o_error.eq(0),
            ]
            if self._tx_bytes:
                m.d.sync += self.o_tx.eq(0)
        with m.Elif(step.some & ~self.o_error):
            with m.If(step.wrong):
                m.d.sync += self.o_error.eq(1)
            with m.Else():
                m.d.sync += [self.o_expected.eq(step.expected), self.o_pending.eq(step.pending)]
                if self._tx_bytes:
                    m.d.sync += self.o_tx.eq(step.tx)
                with m.If(step.settled):
                    m.d.sync += [self.o_phase.eq(~self.o_phase), self.o_pending.eq(step.expected)]
        return m
