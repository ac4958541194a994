"""Output stage of a matrix unit: bias, requantization, ReLU, saturation and cast."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.emit.shared import shared
from hw.float.convert import narrow
from hw.float.fp32 import fma_fp32
from hw.float.wires import named
from hw.lib.component import Component
from hw.lib.stream import ElasticBuffer
from hw.matrix.requantizer import SCALE_BITS, SHIFT_BITS, FactorRecoder, Scaler
from hw.matrix.result_fifo import row_layout
from hw.matrix.unit_config import UnitConfig
from hw.numeric.formats import fp32

__all__ = ["OutputStage", "Affine", "result_layout"]


def result_layout(columns: int, bits: int) -> data.StructLayout:
    """Layout of a row of results; ``last`` ends a packet."""
    return data.StructLayout({"data": bits * columns, "last": 1})


class Affine(Component):
    """Scale-and-bias unit ``i_sum * i_scale + i_bias`` of fp32, rounded once; a zero sum is +0.

    Members
    -------
    i_take, i_sum, i_scale, i_bias
        A sum is taken in this cycle, with its scale and bias.
    o_result
        Result of the last sum taken, from the next cycle on.
    """

    i_take: Signal
    i_sum: Signal
    i_scale: Signal
    i_bias: Signal
    o_result: Signal

    def __init__(self) -> None:
        ports = {f"i_{name}": In(32) for name in ("sum", "scale", "bias")}
        super().__init__({"i_take": In(1)} | ports | {"o_result": Out(32)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        magnitude = self.i_sum[:-1]
        total = Cat(magnitude, self.i_sum[-1] & magnitude.any())
        held = Signal(32, reset_less=True)
        with m.If(self.i_take):
            m.d.sync += held.eq(fma_fp32(m, total, self.i_scale, self.i_bias))
        m.d.comb += self.o_result.eq(held)
        return m


class OutputStage(Component):
    """Output stage of a matrix unit: one row of sums in, one row of results out per cycle.

    fp32 sums leave unchanged, or as ``sum·scale + bias``, rounded once, zeros as +0. Then they are
    cast to a shorter float if the unit has one as result format; the cast is that of
    :func:`hw.numeric.reference.cast`, which saturates to floats of 8 bits. int32 sums leave
    unchanged or, with int8 results, as
    ``saturate(round((sum + bias)·scale / 2^shift))``: exact but for one rounding to nearest even.
    ``relu`` replaces negative results by 0; NaN stays. A scaled row takes one more cycle.

    Parameters
    ----------
    config : UnitConfig

    Members
    -------
    i_rows : stream of `row_layout`
    o_result : stream of `result_layout`
    activation_mode, relu
        Static: in a unit with bf16 and int8, 1 if sums are int32; negative results become 0.
    scale, shift
        Static, in units that scale: the factor, an unsigned 16-bit integer for int32 sums, an fp32
        for fp32 sums; and the right shift of an int32 sum's product, at most 47.
    i_bias : stream of C int32 or fp32
        One vector per packet; only in units with a bias.
    """

    i_rows: stream.Interface
    o_result: stream.Interface
    activation_mode: Signal
    relu: Signal
    scale: Signal
    shift: Signal
    i_bias: stream.Interface

    def __init__(self, config: UnitConfig) -> None:
        self._config = config
        columns = config.array.columns
        members = {
            "o_result": Out(stream.Signature(result_layout(columns, config.out_bits))),
            "activation_mode": In(1),
            "relu": In(1),
        }
        if config.scales:
            members |= {"scale": In(SCALE_BITS), "shift": In(SHIFT_BITS)}
        if config.affine:
            members["scale"] = In(32)
        if config.bias:
            members["i_bias"] = In(stream.Signature(data.ArrayLayout(32, columns)))
        #: Members that the containing unit has as ports of its own.
        self.outer_members = members
        super().__init__({"i_rows": In(stream.Signature(row_layout(columns)))} | members)

    def connect_outside(self, m: Module, unit: wiring.Component, rows: stream.Interface) -> None:
        """Connect it to the ports of a unit and to the output of a result FIFO."""
        wiring.connect(m, rows, self.i_rows)
        for name, member in self.outer_members.items():
            inner, outer = getattr(self, name), getattr(unit, name)
            if not member.is_signature:
                m.d.comb += inner.eq(outer)
            elif member.flow == In:
                wiring.connect(m, wiring.flipped(outer), inner)
            else:
                wiring.connect(m, inner, wiring.flipped(outer))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        columns = config.array.columns
        m.submodules.port = port = ElasticBuffer(result_layout(columns, config.out_bits))
        wiring.connect(m, port.o_stream, wiring.flipped(self.o_result))
        valid: Value = self.i_rows.valid
        ready: Value = port.i_stream.ready
        # One signal per column: elaborating a slice costs as much as elaborating its whole vector.
        row = self.i_rows.payload.sums
        sums = [named(m, f"sum_{column}", row[column]).as_signed() for column in range(columns)]
        if config.bias:
            valid = valid & self.i_bias.valid
            m.d.comb += self.i_bias.ready.eq(
                self.i_rows.valid & self.i_rows.ready & self.i_rows.payload.last
            )
        last: Value = self.i_rows.payload.last
        if config.scales or config.affine:
            # Pipeline register of a scaled row; it advances as soon as the output buffer has room.
            full, ends = Signal(), Signal(reset_less=True)
            ready = ~full | port.i_stream.ready
            scaled = self._scaled(m, sums, named(m, "take", valid & ready))
            with m.If(ready):
                m.d.sync += [full.eq(valid), ends.eq(last)]
            valid, last = full, ends
        if config.scales:
            results = scaled
        elif config.affine:
            results = [self._result(m, result) for result in scaled]
        else:
            results = [self._result(m, total) for total in self._biased(sums)]
        m.d.comb += [
            self.i_rows.ready.eq(ready & (self.i_bias.valid if config.bias else 1)),
            port.i_stream.valid.eq(valid),
            port.i_stream.payload.data.eq(Cat(*results)),
            port.i_stream.payload.last.eq(last),
        ]
        return m

    def _biased(self, sums: list[Value]) -> list[Value]:
        """Sums plus biases, in a unit with a bias."""
        if not self._config.bias:
            return sums
        biases = self.i_bias.payload
        return [(total + biases[column])[:32] for column, total in enumerate(sums)]

    def _scaled(self, m: Module, sums: list[Value], take: Value) -> list[Value]:
        """Scaled and biased results of the sums taken in the cycle before; int8 ones after ReLU."""
        config = self._config
        if config.scales:
            m.submodules.recoder = recoder = FactorRecoder()
            m.d.comb += [recoder.i_scale.eq(self.scale), recoder.i_shift.eq(self.shift)]
            factor = Value.cast(recoder.o_factor)
        scaled: list[Value] = []
        for column, total in enumerate(sums):
            scaler = Scaler(bias=config.bias) if config.scales else Affine()
            m.submodules[f"scaler_{column}"] = shared(scaler)
            m.d.comb += [scaler.i_take.eq(take), scaler.i_sum.eq(total)]
            if config.bias:
                m.d.comb += scaler.i_bias.eq(self.i_bias.payload[column])
            if isinstance(scaler, Scaler):
                m.d.comb += [scaler.i_factor.eq(factor), scaler.i_relu.eq(self.relu)]
            else:
                m.d.comb += scaler.i_scale.eq(self.scale)
            scaled.append(scaler.o_result)
        return scaled

    def _result(self, m: Module, total: Value) -> Value:
        """Result of a sum that is not scaled: ReLU, sign of zero cleared, cast."""
        if self._config.integer_only:
            return Mux(self.relu & total[-1], 0, total)
        integer = self.activation_mode if self._config.array.cell.has_mode else Const(0)
        # A product of +0 turns -0 into +0: results do not depend on how far K was padded.
        zero = ~total[:31].any() & ~integer
        nan = total[23:31].all() & total[:23].any() & ~integer
        positive = Mux(self.relu & total[31] & ~nan, 0, Cat(total[:31], total[31] & ~zero))
        out = self._config.out
        if out is None or out == fp32:
            return positive
        return narrow(m, positive, out, saturate=out.bits == 8)
