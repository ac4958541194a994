"""What sums pass on their way out: bias, scale, rectifier, saturation, cast."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.numeric.conversion import narrow
from hw.numeric.formats import fp32
from hw.numeric.fp32_units import fma_fp32
from hw.numeric.wires import named
from hw.shared import shared
from hw.stream import ElasticBuffer
from hw.systolic.sums import row_layout
from hw.systolic.unit_config import UnitConfig

__all__ = ["SCALE_BITS", "Activation", "Affine", "result_layout"]

#: Width of the factor that int32 sums are scaled by.
SCALE_BITS = 16
_SHIFT_BITS = 6
_BIASED_BITS = 33
_SCALED_BITS = _BIASED_BITS + SCALE_BITS


def result_layout(columns: int, bits: int) -> data.StructLayout:
    """Layout of a row of results; ``last`` ends a packet."""
    return data.StructLayout({"data": bits * columns, "last": 1})


def _scaled(m: Module, product: Value, shift: Value, index: int) -> Value:
    """``product / 2^shift`` to the nearest integer, ties to even, saturated to int8."""
    # Half a unit less the smallest step, and that step again if the kept part is odd.
    odd = product.bit_select(shift, 1)
    half = Signal(_SCALED_BITS, name=f"half_{index}")
    m.d.comb += half.eq(((1 << shift) >> 1)[:_SCALED_BITS])
    up = Mux(shift == 0, 0, half - 1 + odd)
    total = Signal(_SCALED_BITS + 1, name=f"rounded_{index}")
    m.d.comb += total.eq((product + up.as_signed()).as_signed() >> shift)
    value = total.as_signed()
    return Mux(value > 127, 127, Mux(value < -128, 0x80, value[:8]))[:8]


class Affine(wiring.Component):
    """``i_sum · i_scale + i_bias`` of fp32, rounded once; a zero sum counts as +0."""

    i_sum: Signal
    i_scale: Signal
    i_bias: Signal
    o_result: Signal

    def __init__(self) -> None:
        ports = {f"i_{name}": In(32) for name in ("sum", "scale", "bias")}
        super().__init__(ports | {"o_result": Out(32)})

    @property
    def definition_name(self) -> str:
        """Name of the shared module."""
        return "affine_fp32"

    def elaborate(self, platform: object) -> Module:
        m = Module()
        magnitude = self.i_sum[:-1]
        total = Cat(magnitude, self.i_sum[-1] & magnitude.any())
        m.d.comb += self.o_result.eq(fma_fp32(m, total, self.i_scale, self.i_bias))
        return m


class Activation(wiring.Component):
    """Rows of sums to rows of results, one a cycle.

    fp32 sums leave as they are, or as ``sum·scale + bias``, rounded once, zeros as +0; then they
    are cast to a shorter float if that is asked for, as :func:`hw.numeric.reference.cast` does,
    which saturates to floats of 8 bits. int32 sums leave as they are or, with int8 results, as
    ``saturate(round((sum + bias)·scale / 2^shift))``: exact but for one rounding to nearest even.
    With ``relu``, what is below zero leaves as 0; NaN
    stays.

    Parameters
    ----------
    config : UnitConfig

    Members
    -------
    i_rows : stream of `row_layout`
    o_result : stream of `result_layout`
    activation_mode, relu
        Static: with bf16 and int8, 1 if sums are int32; negative results become 0.
    scale, shift
        Static, of units that scale: factor, of int32 unsigned 16 bits, of fp32 an fp32; and the
        power of two that a product of int32 is divided by, at most 47.
    i_bias : stream of C int32 or fp32
        One vector for each packet; only of units with a bias.
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
            members |= {"scale": In(SCALE_BITS), "shift": In(_SHIFT_BITS)}
        if config.affine:
            members["scale"] = In(32)
        if config.bias:
            members["i_bias"] = In(stream.Signature(data.ArrayLayout(32, columns)))
        #: What a unit passes on to its outside.
        self.outer_members = members
        super().__init__({"i_rows": In(stream.Signature(row_layout(columns)))} | members)

    @property
    def definition_name(self) -> str:
        """Name of the shared module."""
        config = self._config
        kind = "integer" if config.integer_only else "float"
        if config.array.cell.has_mode:
            kind = "both"
        out = "sums" if config.out is None else config.out.name
        return f"activation_{config.array.columns}_{kind}_{out}{'_bias' * config.bias}"

    def connect_outside(self, m: Module, unit: wiring.Component, rows: stream.Interface) -> None:
        """Join it to the members of a unit and to a queue of rows."""
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
        # Each a signal of its own: elaboration of a slice takes as long as its whole vector.
        row = self.i_rows.payload.sums
        sums = [named(m, f"sum_{column}", row[column]).as_signed() for column in range(columns)]
        if config.bias:
            valid = valid & self.i_bias.valid
            m.d.comb += self.i_bias.ready.eq(
                self.i_rows.valid & self.i_rows.ready & self.i_rows.payload.last
            )
        if config.bias and config.integer_only:
            sums = [
                total + self.i_bias.payload[column].as_signed() for column, total in enumerate(sums)
            ]
        last: Value = self.i_rows.payload.last
        if config.scales or config.affine:
            width = _SCALED_BITS if config.scales else 32
            stage = ElasticBuffer(data.StructLayout({"scaled": width * columns, "last": 1}))
            m.submodules.stage = stage
            scaled = self._scaled_sums(m, sums)
            m.d.comb += [
                stage.i_stream.payload.scaled.eq(Cat(*scaled)),
                stage.i_stream.payload.last.eq(last),
                stage.i_stream.valid.eq(valid),
                stage.o_stream.ready.eq(port.i_stream.ready),
            ]
            ready, valid = stage.i_stream.ready, stage.o_stream.valid
            last = stage.o_stream.payload.last
            held = stage.o_stream.payload.scaled
            sums = [
                named(m, f"held_{column}", held.word_select(column, width)).as_signed()
                for column in range(columns)
            ]
        if config.scales:
            results = [
                self._rectified(_scaled(m, total, self.shift, column))
                for column, total in enumerate(sums)
            ]
        else:
            results = [self._result(m, total[:32]) for total in sums]
        m.d.comb += [
            self.i_rows.ready.eq(ready & (self.i_bias.valid if config.bias else 1)),
            port.i_stream.valid.eq(valid),
            port.i_stream.payload.data.eq(Cat(*results)),
            port.i_stream.payload.last.eq(last),
        ]
        return m

    def _scaled_sums(self, m: Module, sums: list[Value]) -> list[Value]:
        """Products of integer sums, before rounding; float sums scaled and biased."""
        scaled: list[Value] = []
        for column, total in enumerate(sums):
            if self._config.affine:
                affine = Affine()
                m.submodules[f"affine_{column}"] = shared(affine)
                m.d.comb += [
                    affine.i_sum.eq(total),
                    affine.i_scale.eq(self.scale),
                    affine.i_bias.eq(self.i_bias.payload[column]),
                ]
                scaled.append(affine.o_result)
            else:
                # The width is that of a biased sum's product, whether there is a bias or not.
                product = Signal(signed(_SCALED_BITS), name=f"scaled_{column}")
                m.d.comb += product.eq(total * self.scale)
                scaled.append(product)
        return scaled

    def _rectified(self, result: Value) -> Value:
        return Mux(self.relu & result[-1], 0, result)

    def _result(self, m: Module, total: Value) -> Value:
        """A sum that is not scaled, as it leaves."""
        if self._config.integer_only:
            return Mux(self.relu & total[-1], 0, total)
        integer = self.activation_mode if self._config.array.cell.has_mode else Const(0)
        # A product of +0 turns -0 into +0: a zero does not tell how far K was padded.
        zero = ~total[:31].any() & ~integer
        nan = total[23:31].all() & total[:23].any() & ~integer
        positive = Mux(self.relu & total[31] & ~nan, 0, Cat(total[:31], total[31] & ~zero))
        out = self._config.out
        if out is None or out == fp32:
            return positive
        return narrow(m, positive, out, saturate=out.bits == 8)
