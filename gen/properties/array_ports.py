"""Property of matrix units: stability of the streams at their ports."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from gen.properties.array_tags import tagged
from gen.properties.support import always, given, offers_stay
from hw.array.dataflow import ArrayConfig, Dataflow
from hw.matrix.systolic_unit import SystolicUnit
from hw.matrix.unit_config import UnitConfig
from hw.numeric.formats import int8

__all__ = ["OffersStay"]


def _old(a: Value, b: Value, old: Value) -> Value:
    """Tag of a sum: the old one, since streams do not depend on sums."""
    return old


class OffersStay(wiring.Component):
    """A result that a unit offers stays, unchanged, until it is taken; so does readiness.

    The unit is the unmodified RTL, except for the arithmetic of its cells.

    Parameters
    ----------
    rows, columns, latency : int
    dataflow : Dataflow
    """

    valid: Signal
    marks: Signal
    ready: Signal
    reached: Signal

    def __init__(self, rows: int, columns: int, latency: int, dataflow: Dataflow) -> None:
        array = ArrayConfig(rows, columns, dataflow, (int8,), latency)
        self._config = UnitConfig(array, accumulator_rows=2, result_rows=4)
        super().__init__({"valid": In(2), "marks": In(3), "ready": In(1), "reached": Out(2)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        unit = SystolicUnit(self._config)
        m.submodules.dut = tagged(unit, _old)
        inputs = unit.i_activation, unit.i_weight
        moving = inputs[self._config.array.dataflow == Dataflow.IS]
        m.d.comb += unit.o_result.ready.eq(self.ready)
        for index, port in enumerate(inputs):
            valid = self.valid[index]
            m.d.comb += port.valid.eq(valid)
            marks = self.marks if port is moving else self.marks[:0]
            offers_stay(m, valid, port.ready, marks)
            waits = Signal(name=f"waits_{index}")
            m.d.sync += waits.eq(port.ready & ~valid)
            m.d.comb += always(~waits | port.ready)
        payload = moving.payload
        if self._config.array.dataflow == Dataflow.OS:
            m.d.comb += payload.finish.eq(self.marks[0])
        else:
            # No tile has more rows than the accumulators that its sums need.
            row = Signal()
            with m.If(moving.valid & moving.ready):
                m.d.sync += row.eq(Mux(payload.last, 0, 1))
            m.d.comb += [
                Cat(payload.last, payload.accumulate, payload.finish).eq(self.marks),
                given(~moving.valid | payload.last | ~row),
            ]
        result = unit.o_result
        offered, kept = Signal(), Signal(len(Value.cast(result.payload)))
        m.d.sync += [offered.eq(result.valid & ~result.ready), kept.eq(result.payload)]
        m.d.comb += [
            always(~offered | (result.valid & (Value.cast(result.payload) == kept))),
            self.reached.eq(Cat(offered, result.valid & result.ready & ~offered)),
        ]
        return m
