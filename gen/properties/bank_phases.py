"""Property of the barrier bank: no phase is lost, counted twice or skipped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from gen.properties.support import always, given, kept
from hw.arch.error_codes import BarrierError
from hw.tma.barriers.barrier_bank import BarrierBank
from hw.tma.barriers.barrier_layouts import BarrierOperation, barrier_operation_layout

__all__ = ["BankCompletes"]

_ARRIVING = ("ARRIVE", "ARRIVE_NO_COMPLETE", "ARRIVE_EXPECT", "DROP")
_EXPECTING = ("ARRIVE_EXPECT", "EXPECT")


class BankCompletes(wiring.Component):
    """Every phase of any barrier completes exactly when all that it waits for has come, once.

    The harness follows one barrier, any of them. It counts what has come since the phase began in
    the operations that the two ports accept, and judges each operation itself.
    """

    operations: Sequence[stream.Interface]
    watched: Signal
    reached: Signal

    def __init__(self, *, barriers: int, arrivals: int, tx_bytes: int) -> None:
        self._dut = BarrierBank(barriers=barriers, arrivals=arrivals, tx_bytes=tx_bytes, ports=2)
        self._barriers = barriers
        self._arrivals = arrivals
        self._tx_bytes = tx_bytes
        layout = barrier_operation_layout(arrivals=arrivals, tx_bytes=tx_bytes)
        super().__init__(
            {
                "operations": In(stream.Signature(layout)).array(2),
                "watched": In(range(barriers)),
                "reached": Out(4),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = self._dut
        kept(m, self.watched)
        m.d.comb += given(self.watched < self._barriers)
        # The operation that was accepted one cycle ago, and the port that it came from.
        applied, operation = Signal(), Signal.like(self.operations[0].payload)
        taken = Signal(len(self.operations))
        for number, (offers, port) in enumerate(zip(self.operations, dut.i_operations)):
            wiring.connect(m, wiring.flipped(offers), port)
            m.d.sync += taken[number].eq(offers.valid & offers.ready)
            with m.If(offers.valid & offers.ready):
                m.d.sync += operation.eq(offers.payload)
        m.d.comb += applied.eq(taken.any())
        watches = applied & (operation.barrier == self.watched)
        row: Any = dut.counts.read_port(domain="comb")
        m.d.comb += row.addr.eq(self.watched)

        def of(*names: str) -> Value:
            return Cat(operation.operation == BarrierOperation[each] for each in names).any()

        coming = Mux(of(*_ARRIVING), operation.arrivals, 0)
        dropping = Mux(of("DROP"), operation.arrivals, 0)
        asking = Mux(of(*_EXPECTING), operation.bytes, 0)
        landing = Mux(of("COMPLETE"), operation.bytes, 0)

        # What came since the phase began, and what it was to wait for; of the bytes the surplus.
        count, size = range(self._arrivals + 1), signed(self._tx_bytes.bit_length() + 1)
        came, dropped, wanted = Signal(count), Signal(count), Signal(count)
        owed = Signal(size)
        known, phase, flag = Signal(), Signal(), Signal()
        came_now, dropped_now = came + coming, dropped + dropping
        owed_now = owed + asking - landing
        some = Cat(coming, asking, landing).any()
        complete = some & (came_now == wanted) & (owed_now == 0)
        wrong = (came_now > wanted) | (owed_now > self._tx_bytes) | (owed_now < -self._tx_bytes)
        wrong |= (wanted == 0) & some
        wrong |= of("ARRIVE_NO_COMPLETE") & complete
        wrong |= operation.operation.as_value() > max(each.value for each in BarrierOperation)
        begins = (operation.arrivals != 0) & (operation.arrivals <= self._arrivals)
        verdict = Mux(of("INIT"), ~begins, ~known | wrong)
        with m.If(watches):
            with m.If(verdict):
                m.d.sync += flag.eq(flag | known)
            with m.Elif(of("INIT")):
                m.d.sync += [each.eq(0) for each in (came, dropped, owed, phase, flag)]
                m.d.sync += [wanted.eq(operation.arrivals), known.eq(1)]
            with m.Elif(of("INVALIDATE")):
                m.d.sync += known.eq(0)
            with m.Else():
                with m.If(complete):
                    m.d.sync += [each.eq(0) for each in (came, dropped, owed)]
                    m.d.sync += [phase.eq(~phase), wanted.eq(wanted - dropped_now)]
                with m.Else():
                    m.d.sync += [came.eq(came_now), dropped.eq(dropped_now), owed.eq(owed_now)]
                m.d.sync += flag.eq(flag | of("COMPLETE") & operation.failed)
        self._compare(m, watches, row.data, (known, phase, flag), (came, dropped, wanted, owed))
        waiting = Signal(len(self.operations))
        for number, (answers, offers) in enumerate(zip(dut.o_answers, self.operations)):
            answer = answers.payload
            refused = answer.error != BarrierError.NONE
            elsewhere = ~(watches & answers.valid)
            before = (
                (answer.phase, phase),
                (answer.flag, flag),
                (answer.pending, wanted - came),
                (answer.expected, wanted - dropped),
                (answer.tx, owed),
            )
            m.d.sync += waiting[number].eq(offers.valid & ~offers.ready)
            m.d.comb += [
                # One answer for each operation, at its port.
                always(answers.valid == taken[number]),
                always(elsewhere | (refused == verdict)),
                *(always(elsewhere | (shown == Mux(known, value, 0))) for shown, value in before),
                always(~answers.valid | refused | (operation.barrier < self._barriers)),
                # With two ports an offer waits for one operation of the other.
                always(~(waiting[number] & offers.valid) | offers.ready),
            ]
        m.d.comb += [
            # Invariants of the bank: it applies the operation that the ports have given.
            always(dut.applied == applied),
            always(taken & (taken - 1) == 0),
            always(~applied | (dut.operation.as_value() == operation.as_value())),
            self.reached.eq(
                Cat(
                    phase,
                    known & (came == wanted) & (owed < 0),
                    flag & (owed > 0),
                    watches & complete & ~verdict & (dropped_now == wanted),
                )
            ),
        ]
        return m

    def _compare(
        self,
        m: Module,
        watches: Value,
        row: Any,
        bits: tuple[Signal, Signal, Signal],
        counts: tuple[Signal, Signal, Signal, Signal],
    ) -> None:
        """State of the bank for the watched barrier, in terms of what came."""
        dut = self._dut
        known, phase, flag = bits
        came, dropped, wanted, owed = counts
        m.d.comb += [
            always(dut.o_valid.bit_select(self.watched, 1) == known),
            always(dut.o_phases.bit_select(self.watched, 1) == phase),
            always(dut.o_flags.bit_select(self.watched, 1) == flag),
            always(~known | (came + row.pending == wanted)),
            always(~known | (dropped + row.expected == wanted)),
            always(~known | (row.tx == owed)),
            always(dropped <= came),
            always((owed <= self._tx_bytes) & (owed >= -self._tx_bytes)),
            always(wanted <= self._arrivals),
            # A complete phase never persists.
            always(~known | (wanted == 0) | (came != wanted) | (owed != 0)),
            always(~known | (wanted != 0) | ((came == 0) & (owed == 0))),
            always(~watches | (dut.reader.data.as_value() == row.as_value())),
        ]
