"""Instruction decoder of a tensor unit, with the checks that need one instruction alone."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arch.tensor_instructions import INSTRUCTION, Fault, Opcode
from hw.lib.component import Component
from hw.lib.stream import ElasticBuffer
from hw.tpu.tensor_config import TensorConfig

__all__ = ["Decoder"]

_MOST_SHIFT = 47
_SCALE_BITS = 16


class Decoder(Component):
    """Instruction decoder: minimal fields, end address and fault of each instruction.

    Parameters
    ----------
    config : TensorConfig

    Members
    -------
    i_instructions : stream of `INSTRUCTION`
    o_orders : stream of :attr:`TensorConfig.order`
    """

    i_instructions: stream.Interface
    o_orders: stream.Interface

    def __init__(self, config: TensorConfig) -> None:
        self._config = config
        super().__init__(
            {
                "i_instructions": In(stream.Signature(INSTRUCTION)),
                "o_orders": Out(stream.Signature(config.order)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        m.submodules.before = before = ElasticBuffer(INSTRUCTION)
        m.submodules.behind = behind = ElasticBuffer(config.order)
        wiring.connect(m, wiring.flipped(self.i_instructions), before.i_stream)
        wiring.connect(m, behind.o_stream, wiring.flipped(self.o_orders))
        found, order = before.o_stream.payload, behind.i_stream.payload
        m.d.comb += [
            behind.i_stream.valid.eq(before.o_stream.valid),
            before.o_stream.ready.eq(behind.i_stream.ready),
        ]
        for name in config.order.members:
            if name not in ("fault", "end"):
                m.d.comb += order[name].eq(found[name])

        is_ = {code: found.opcode == code for code in Opcode}
        end = Signal(33 + config.sizes.parts.bit_length())
        vectors = Mux(is_[Opcode.ACTIVATE], found.rows * config.sizes.parts, found.rows)
        m.d.comb += [end.eq(found.address + vectors), order.end.eq(end)]
        # Sums that leave at once need no accumulator, however many rows their tile has.
        crowded = (found.rows > config.unit.accumulator_rows) & (found.accumulate | ~found.finish)
        unscaled = (found.shift > _MOST_SHIFT) | (found.scale >> _SCALE_BITS).any()
        with m.If(is_[Opcode.CONFIGURE]):
            if config.unit.scales:
                m.d.comb += order.fault.eq(Mux(unscaled, Fault.SCALING, Fault.NONE))
        with m.Elif(
            ~(
                is_[Opcode.READ_HOST]
                | is_[Opcode.WRITE_HOST]
                | is_[Opcode.MULTIPLY]
                | is_[Opcode.ACTIVATE]
            )
        ):
            m.d.comb += order.fault.eq(Fault.OPCODE)
        with m.Elif((found.rows == 0) | (is_[Opcode.MULTIPLY] & crowded)):
            m.d.comb += order.fault.eq(Fault.ROWS)
        with m.Elif(end > config.buffer_rows):
            m.d.comb += order.fault.eq(Fault.ADDRESS)
        with m.Elif(is_[Opcode.ACTIVATE] & (found.slot >= config.sizes.slots)):
            m.d.comb += order.fault.eq(Fault.SLOT)
        return m
