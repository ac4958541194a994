"""Phase barrier: counts arrivals and bytes, and flips its phase when all have arrived."""

from amaranth.hdl import Cat, Module, Signal, Value, signed
from amaranth.lib.wiring import In, Out

from hw.arch.limits import BARRIER_ARRIVALS, BARRIER_TX_BYTES
from hw.lib.component import Component

__all__ = ["Barrier", "has_passed"]


def has_passed(phase: Value, parity: Value) -> Value:
    """Wait condition: the phase of the waiter's parity has completed exactly if they differ."""
    return phase != parity


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
        # One bit more than the ports: a sum of arrivals must not wrap before the comparison.
        arriving = Signal(self._arrivals.bit_length() + 1)
        m.d.comb += arriving.eq(self.i_arrive + self.i_drop)
        pending = self.o_pending - arriving
        expected = self.o_expected - self.i_drop
        operations = [self.i_arrive, self.i_drop]
        wrong = arriving > self.o_pending
        settled = arriving == self.o_pending
        if self._tx_bytes:
            operations += [self.i_expect, self.i_complete]
            tx = Signal(signed(self._tx_bytes.bit_length() + 3))
            m.d.comb += tx.eq(self.o_tx + self.i_expect - self.i_complete)
            retired = (self.o_expected == 0) & Cat(operations).any()
            wrong |= (tx > self._tx_bytes) | (tx < -self._tx_bytes) | retired
            settled &= tx == 0
        with m.If(self.i_init):
            m.d.sync += [
                self.o_phase.eq(0),
                self.o_expected.eq(self.i_expected),
                self.o_pending.eq(self.i_expected),
                self.o_error.eq(0),
            ]
            if self._tx_bytes:
                m.d.sync += self.o_tx.eq(0)
        with m.Elif(Cat(operations).any() & ~self.o_error):
            with m.If(wrong):
                m.d.sync += self.o_error.eq(1)
            with m.Else():
                m.d.sync += [self.o_expected.eq(expected), self.o_pending.eq(pending)]
                if self._tx_bytes:
                    m.d.sync += self.o_tx.eq(tx)
                with m.If(settled):
                    m.d.sync += [self.o_phase.eq(~self.o_phase), self.o_pending.eq(expected)]
        return m
